"""What annotations of one task have in common is drawn once for the task, whatever generator the key is of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from crowdppl.models.parts.emissions import SharedConfusion
from crowdppl.models.parts.kernels import kind_at, numbers_by, upto
from crowdppl.models.parts.shared_error import SharedError
from crowdppl.models.parts.subtypes import Subtypes
from crowdppl.models.parts.task_difficulty import LEVELS, TaskDifficulty

GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]
N_TASKS, N_EACH = 20_000, 2
EVENLY = jnp.full((2, 2), 0.5)
TABLE = jnp.eye(2)


def shared_error():
    """Able workers, of whose annotations 0.8 follow an impression, which is right on half of the tasks."""
    strength = jnp.array([[0.0, 0.0, 0.0, 0.0, 1.0]])
    return SharedError(SharedConfusion(TABLE), strength, EVENLY, None), 0.5 * (1 + 0.2**2)


def subtypes():
    """One subtype is always annotated right, the other always wrong."""
    table = jnp.stack([TABLE, 1 - TABLE], axis=1)[None]
    return Subtypes(table, EVENLY), 0.5


def task_difficulty():
    """Half of the tasks are easy, and half so difficult that the odds of a right annotation are 99 to the power 0.1."""
    share = jnp.zeros(len(LEVELS)).at[0].set(0.5).at[-1].set(0.5)
    emission = TaskDifficulty(SharedConfusion(jnp.array([[0.99, 0.01], [0.01, 0.99]])), share)
    odds = 99 ** (1 - LEVELS[-1])
    return emission, 0.5 * (0.99**2 + (odds / (1 + odds)) ** 2)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("made", [shared_error, subtypes, task_difficulty])
def test_two_annotations_are_right_together_as_often_as_their_task_says(made, generator):
    emission, together = made()
    task = jnp.repeat(jnp.arange(N_TASKS), N_EACH)
    truth = jnp.zeros_like(task)
    drawn = emission.sample(jax.random.key(0, impl=generator), jnp.zeros_like(task), task, truth)
    right = np.asarray(drawn == truth).reshape(-1, N_EACH)
    error = np.sqrt(together * (1 - together) / N_TASKS)
    assert right.all(-1).mean() == pytest.approx(together, abs=4 * error)
    assert right.all(-1).mean() > right.mean() ** 2 + 4 * error  # what independent annotations would give


@pytest.mark.parametrize("generator", GENERATORS)
def test_rows_of_one_place_have_the_same_numbers_and_others_have_others(generator):
    place = jnp.array([7, 3, 7, 10**9, 3])
    numbers = np.asarray(numbers_by(jax.random.key(1, impl=generator), place, 2))
    np.testing.assert_array_equal(numbers[[0, 1]], numbers[[2, 4]])
    assert len(np.unique(numbers)) == 6


def test_a_column_comes_as_often_as_it_is_probable_and_never_where_it_is_not():
    probs = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    number = numbers_by(jax.random.key(2), jnp.arange(20_000), 1)[:, 0]
    found = np.bincount(kind_at(number, upto(jnp.asarray(probs))), minlength=len(probs))
    expected = probs / probs.sum(dtype=float)
    assert (found[probs == 0] == 0).all()
    assert chisquare(found[probs > 0], found.sum() * expected[probs > 0]).pvalue > 0.001
    ends = kind_at(jnp.array([0.0, np.nextafter(np.float32(1), np.float32(0))]), upto(jnp.asarray(probs)))
    assert ends.tolist() == [1, 4]
