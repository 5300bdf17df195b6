"""What holds for every story of the collection."""

from itertools import product

import jax
import numpy as np
import pytest
from conftest import random_annotations

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.inference.em import EMSettings, run
from crowdppl.inference.model import Model, density
from crowdppl.models import STORIES

EVERY = pytest.mark.parametrize("name", list(STORIES))


@pytest.fixture(scope="module")
def binary():
    return random_annotations(np.random.default_rng(2), n_tasks=6, n_workers=3, n_classes=2, n_rows=14)


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_density_equals_the_sum_over_all_labellings(name, seed, binary):
    """The truth of all six tasks at once, with the workers' tables as the story reports them."""
    _, theta = cp.simulate(name, n_tasks=1, n_workers=3, seed=seed)
    at = density(Model(STORIES[name]), theta, binary)
    tables = np.asarray(at.responses.emission.tables(binary), dtype=float)
    total, mass = 0.0, np.zeros((6, 2))
    for labelling in product(range(2), repeat=6):
        rows = zip(binary.task, binary.worker, binary.label, strict=True)
        p = np.prod(theta["prevalence"][list(labelling)].astype(float))
        p *= np.prod([tables[w, labelling[t], y] for t, w, y in rows])
        total += p
        mass[np.arange(6), list(labelling)] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), atol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


@EVERY
def test_log_posterior_never_falls(name, binary):
    with jax.enable_x64(True):
        history = run(Model(STORIES[name]), binary, jax.random.key(0), EMSettings(60, 1e-14), progress=False).history
    assert np.diff(history).min() >= -1e-12 * np.abs(history).max()


@EVERY
def test_em_finds_the_truth_and_the_tables_of_its_own_simulation(name):
    """2,000 tasks, each answered by all of 8 workers: tables within five standard errors of a share of 500 answers."""
    better_than_chance = {"diagonal": 3.0} if name == "dawid_skene" else {"right": 3.0}
    annotations, parameters = cp.simulate(
        name, n_tasks=2000, n_workers=8, seed=4, parameters={"prevalence": [0.4, 0.6]}, **better_than_chance
    )
    fit = cp.fit(name, annotations, progress=False)
    actual = density(Model(STORIES[name]), parameters, annotations).responses.emission.tables(annotations)
    np.testing.assert_allclose(fit.worker_draws[0, 0], actual, atol=5 * 0.5 / np.sqrt(500))
    assert (fit.posterior.argmax(-1) == annotations.gold).mean() > 0.9


@EVERY
def test_unnamed_workers_are_refused(name):
    with pytest.raises(StoryError, match="follows each worker"):
        cp.fit(name, cp.Annotations.from_counts(np.array([[3, 1], [0, 2]])), progress=False)


def test_two_coins_are_dawid_and_skenes_tables_of_two_classes(binary):
    coins = cp.fit("two_coin", binary, progress=False)
    tables = cp.fit("dawid_skene", binary, progress=False)
    np.testing.assert_allclose(coins.posterior, tables.posterior, atol=1e-4)
    np.testing.assert_allclose(coins.history.iloc[-1], tables.history.iloc[-1], rtol=1e-5)


def test_two_coins_of_three_classes_are_refused(tiny):
    with pytest.raises(StoryError, match="of two classes, the annotations have 3"):
        cp.fit("two_coin", tiny, progress=False)


def test_a_coins_m_step_is_the_share_of_right_answers(tiny):
    """a_j = (wrong − 1, right − 1) + expected wrong and right answers, computed in loops."""
    from crowdppl.inference.em import expected_counts

    model = Model(STORIES["one_coin"], {"right": 3.0, "wrong": 1.5})
    rng = np.random.default_rng(0)
    theta = {"prevalence": rng.dirichlet(np.ones(3)).astype("f4"), "ability": rng.dirichlet([1, 2], 3).astype("f4")}
    posterior = np.asarray(density(model, theta, tiny).posterior)
    expected = np.tile([0.5, 2.0], (3, 1))
    for task, worker, label in zip(tiny.task, tiny.worker, tiny.label, strict=True):
        expected[worker] += [1 - posterior[task, label], posterior[task, label]]
    counts, _ = expected_counts(model, tiny, theta)
    np.testing.assert_allclose(counts["ability"], expected, atol=1e-5)
