"""What holds for every story of the collection."""

from functools import cache
from itertools import product

import jax
import numpy as np
import pytest
from conftest import random_annotations
from numpyro import handlers
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.inference.densities.enumerated import is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines.em import EMSettings, run
from crowdppl.models import STORIES, Subtypes

EVERY = pytest.mark.parametrize("name", list(STORIES))

ARGUMENTS = {
    "difficulty": lambda n_tasks: {
        "kind": "fixed",
        "votes": np.random.default_rng(0).dirichlet([0.5, 0.5], n_tasks),
        "votes_as_prior": False,
    },
    "score_factor": lambda _: {"points": 2, "validity": 0.99},  # which annotations do not tell
}
"""What a story needs beside annotations, of so many tasks with two classes."""

ABLE = {
    "one_coin": {"right": 3.0},
    "two_coin": {"right": 3.0},
    "mace": {"knows": 3.0},
    "difficulty": {"location": 2.5, "scale": 0.5},
    "glad": {"ability_scale": 0.5},
    "item_response": {},
    "hierarchical_dawid_skene": {"diagonal": 1.5, "spread": 0.5},
    "worker_clusters": {"diagonal": 2.0, "strength": 10.0},
    "confusion_from_features": {"accuracy": 0.9, "spread": 0.5},
    "graded_response": {"step": 5.0},
    "ordinal_dawid_skene": {"fall": 4.0, "shift": 0.1, "strength": 20.0},
    "score_factor": {"loading": 0.95, "spread": 0.1},
}
"""Hyperparameters that draw workers who are better than chance; the diagonal where there are none here."""

EVEN = {"glad", "score_factor"}  # stories whose two classes are equally frequent if nothing else is said
NAMELESS = {"annotator_groups"}  # stories that follow no worker


def arguments(name, n_tasks):
    return ARGUMENTS[name](n_tasks) if name in ARGUMENTS else {}


def drawn_parameters(name, annotations, seed):
    """Parameters from the prior, in the shapes that go with the annotations."""
    seeded = handlers.trace(handlers.seed(STORIES[name], seed))
    sites = seeded.get_trace(annotations, **arguments(name, annotations.n_tasks))
    return {site["name"]: site["value"] for site in sites.values() if is_latent(site) and site["name"] != "truth"}


@pytest.fixture(scope="module")
def binary():
    return random_annotations(np.random.default_rng(2), n_tasks=6, n_workers=3, n_classes=2, n_rows=14)


@EVERY
@pytest.mark.parametrize("seed", range(2))
def test_density_equals_the_sum_over_all_labellings(name, seed, binary):
    """Over the truth of all six tasks at once, and over their subtypes where they have any."""
    theta = drawn_parameters(name, binary, seed)
    at = density(Model(STORIES[name], arguments(name, 6)), theta, binary)
    prior = np.broadcast_to(np.exp(np.asarray(at.truth_prior, dtype=float)), (6, 2))
    emission = at.likelihood.emission
    weights, of_annotations = (
        np.ones((2, 1)),
        np.asarray(emission.probs(binary.worker, binary.task), dtype=float)[:, :, None],
    )
    if isinstance(emission, Subtypes):
        weights = np.asarray(emission.weights, dtype=float)
        table = np.broadcast_to(emission.table, (3, 2, *emission.table.shape[2:])).astype(float)
        of_annotations = table[binary.worker]  # (A, K, M, L)
    total, mass = 0.0, np.zeros((6, 2))
    for states in product(product(range(2), range(weights.shape[1])), repeat=6):
        p = np.prod([prior[i, k] * weights[k, m] for i, (k, m) in enumerate(states)])
        p *= np.prod([row[states[i]][y] for row, i, y in zip(of_annotations, binary.task, binary.label, strict=True)])
        total += p
        mass[np.arange(6), [k for k, _ in states]] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


@EVERY
def test_an_emissions_forms_agree(name, binary):
    """Each annotation's log-probability and each truth's row are those of the tables that ``probs`` gives."""
    model = Model(STORIES[name], arguments(name, 6))
    emission = density(model, drawn_parameters(name, binary, 5), binary).likelihood.emission
    probs = np.asarray(emission.probs(binary.worker, binary.task))
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-5)
    rows, truth = np.arange(14), binary.label[::-1]
    given = emission.probs_given(binary.worker, binary.task, truth)
    np.testing.assert_allclose(given, probs[rows, truth], atol=1e-5)
    if isinstance(emission, Subtypes):
        return  # whose annotations to a task are not independent
    of_rows = np.log(probs[rows, :, binary.label])
    np.testing.assert_allclose(emission.log_prob(binary.worker, binary.task, binary.label), of_rows, atol=1e-5)
    summed = np.zeros((6, 2))
    np.add.at(summed, binary.task, of_rows)
    np.testing.assert_allclose(emission.by_task(binary, binary.label), summed, atol=1e-5)


@EVERY
def test_log_posterior_never_falls(name, binary):
    """In float64, so that what is left for a tolerance is rounding in the twelfth digit."""
    with jax.enable_x64(True):
        model = Model(STORIES[name], arguments(name, 6))
        history = run(model, binary, jax.random.key(0), EMSettings(60, 1e-14), progress=False).history
    assert np.diff(history).min() >= -1e-12 * np.abs(history).max()


@cache
def own_simulation(name):
    """2,000 tasks, each annotated by all of 8 able workers; what drew the annotations; and a fit of EM."""
    options = arguments(name, 2000) | ABLE.get(name, {"diagonal": 3.0})
    known = {} if name in EVEN else {"prevalence": [0.4, 0.6]}
    annotations, parameters = cp.simulate(
        name, n_tasks=2000, n_workers=8, n_classes=2, seed=4, parameters=known, **options
    )
    fit = cp.fit(name, annotations, progress=False, **arguments(name, 2000))
    return annotations, density(Model(STORIES[name], options), parameters, annotations), fit


@EVERY
def test_em_finds_the_truth_and_the_tables_of_its_own_simulation(name):
    """Tables within five standard errors of 500 annotations.

    The truth within five points of who knows the actual parameters, tasks' difficulties among them.
    """
    annotations, actual, fit = own_simulation(name)
    tables = actual.likelihood.emission.confusions(annotations)
    np.testing.assert_allclose(fit.confusion_draws[0, 0], tables, atol=5 * 0.5 / np.sqrt(500))
    found, best = ((p.argmax(-1) == annotations.gold).mean() for p in (fit.posterior, np.asarray(actual.posterior)))
    assert best > 0.85
    assert found > best - 0.05


@EVERY
def test_simulated_annotations_have_the_frequencies_of_the_tables(name):
    """2,000 annotations of each worker: shares within five standard errors of what the story expects."""
    options = arguments(name, 2000)
    annotations, parameters = cp.simulate(name, n_tasks=2000, n_workers=3, n_classes=2, seed=6, **options)
    emission = density(Model(STORIES[name], options), parameters, annotations).likelihood.emission
    truth = annotations.gold[annotations.task]
    probs = np.asarray(emission.probs_given(annotations.worker, annotations.task, truth))
    for answer in range(2):
        expected = np.bincount(annotations.worker, probs[:, answer]) / 2000
        found = np.bincount(annotations.worker, annotations.label == answer) / 2000
        np.testing.assert_allclose(found, expected, atol=5 * 0.5 / np.sqrt(2000))


@EVERY
def test_replicated_annotations_are_like_those_fitted(name):
    """Each worker's share of the second class, over 2,000 annotations, within five standard errors of both."""
    annotations, _, fit = own_simulation(name)
    replicated = fit.posterior_predictive(seed=1)["annotation"]
    found = np.bincount(annotations.worker, replicated.values[0, 0]) / 2000
    expected = np.bincount(annotations.worker, annotations.label) / 2000
    if name in NAMELESS:
        found, expected = found.mean(), expected.mean()
    np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(2) * 0.5 / np.sqrt(2000))


@EVERY
def test_unnamed_workers_are_refused_by_stories_that_follow_them(name):
    counts = cp.Annotations.from_counts(np.array([[3, 1], [0, 2], [5, 1]]))
    if name in NAMELESS:
        fit = cp.fit(name, counts, progress=False, **arguments(name, 3))
        assert list(fit.labels["label"]) == [0, 1, 0]
        return
    with pytest.raises(StoryError, match="follows each worker"):
        cp.fit(name, counts, progress=False, **arguments(name, 3))
