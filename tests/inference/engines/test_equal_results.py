"""What a fit finds depends on its data, options and seed, and not on the process, devices, threads and padding."""

import os

import jax
import numpy as np
import pytest
from every_fit import fitted
from killed_fits import assert_same

from crowdppl.models import KNOWN_STORIES

SOME = ("glad",)
"""Stories of the default suite: one with probabilities, real numbers, and parameters by task."""

METHODS = {
    "em": {"max_iterations": 8, "tolerance": 0.0, "sweeps": 0},
    "svi": {"max_iterations": 50, "draws": 10, "sweeps": 0},
    "nuts": {"max_iterations": 8, "tolerance": 0.0, "warmup": 3, "draws": 1, "chains": 2},
}
"""As short as they are, rounding has not grown beyond the tolerances, but most chains have moved: the first two steps
of NUTS are too long and refused. EM's iterations, where NUTS starts, are counted: by a tolerance rounding decides which
is the last. Sweeps draw labels, which depend on the order of the tasks, and are of one device."""

CLOSE = {
    "em": {"rtol": 2e-4, "atol": 2e-4},
    "svi": {"rtol": 5e-3, "atol": 5e-3},
    "nuts": {"rtol": 5e-3, "atol": 5e-3},
}
"""Sums of other orders differ by float32's rounding, and steps of Adam and leaps of NUTS carry it on."""


def cases():
    """An engine, stories and the number of tasks; all but one case are slow."""
    for method in METHODS:
        if method == "em":
            yield pytest.param((method, SOME, 41), id="em, some")
        yield pytest.param((method, tuple(KNOWN_STORIES), 401), id=f"{method}, all", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=cases())
def case(request, tmp_path_factory):
    """An engine, and a function that fits the stories in a process with other circumstances; what one found."""
    method, stories, n_tasks = request.param
    folder = tmp_path_factory.mktemp("fits")

    def other(name, **circumstances):
        return fitted(folder / name, stories, method, METHODS[method], n_tasks=n_tasks, **circumstances)

    return method, other, other("one")


def assert_close(method, one, other, *, draws=True):
    """Label probabilities, draws and the last log-posterior or loss of all stories are close; errors name the story.

    Weights of a classifier without a prior are not compared: where features part the classes they are free to grow,
    and labels do not depend on how far they came. Nor is the iteration at which rounding ended a fit.
    """
    assert set(one) == set(other)
    for story, numbers in one.items():
        assert set(numbers) == set(other[story])
        named = {name for name in numbers if name == "posterior" or name.startswith("draws")} if draws else set()
        for name in named:
            message = f"{story}: {name}"
            np.testing.assert_allclose(other[story][name], numbers[name], **CLOSE[method], err_msg=message)
        last = (found["history"][-1:] for found in (other[story], numbers))  # NUTS has none
        np.testing.assert_allclose(*last, **CLOSE[method], err_msg=f"{story}: history")


def test_another_process_with_other_hashes_of_strings_finds_the_same_bits(case):
    _, other, one = case
    again = other("hashes", hashes="4711")
    for story, numbers in one.items():
        assert_same(numbers, again[story])


@pytest.mark.skipif(os.cpu_count() == 1, reason="there is one core")
def test_one_thread_finds_what_several_find(case):
    method, other, one = case
    assert_close(method, other("one thread", threads=1), one)


def test_four_devices_find_what_one_finds(case):
    """Noise of SVI and NUTS for a parameter of each task goes by the task's place, which blocks of devices change."""
    method, other, one = case
    several = other("four devices", devices=4)
    by_task = {story for story, numbers in one.items() if method != "em" and has_draws_by_task(numbers)}
    assert set(by_task) < set(one)
    one, several = ({name: found[name] for name in set(one) - by_task} for found in (one, several))
    assert_close(method, one, several)


def has_draws_by_task(numbers):
    n_tasks = len(numbers["posterior"])
    return any(n_tasks in value.shape for name, value in numbers.items() if name.startswith("draws"))


def test_annotations_of_their_own_size_have_the_fit_of_padded_ones(case):
    """Of SVI its loss: the random numbers of draws depend on the size, as all do that NUTS takes."""
    method, other, one = case
    if method == "nuts":
        pytest.skip("chains on other sizes take other random numbers")
    assert_close(method, one, other("exact", exact=True), draws=method == "em")


def test_the_comparison_finds_a_difference():
    one = {"story": {"draws a": np.ones(3), "history": np.zeros(1)}}
    with pytest.raises(AssertionError, match="story: draws a"):
        assert_close("em", one, {"story": {"draws a": np.array([1, 1, 1.001]), "history": np.zeros(1)}})


def test_jax_draws_the_same_numbers_whatever_the_number_of_devices():
    """What seeds rest on: JAX's default since 0.5, which a user's configuration could take away."""
    assert jax.config.jax_threefry_partitionable
