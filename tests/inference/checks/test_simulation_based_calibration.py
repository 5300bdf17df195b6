"""Simulation-based calibration: ranks are uniform for right stories, and the check finds wrong ones."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy.stats import norm

import crowdppl as cp
from crowdppl.inference.checks.simulation_based_calibration import (
    Ranks,
    crowd_quantities,
    ranks_among,
    sample_simulations,
)
from crowdppl.inference.densities.model import Model
from crowdppl.models import KNOWN_STORIES, WITH_CLASSIFIER, find_story

SIZES = {"n_tasks": 40, "n_workers": 4, "n_classes": 2}
SIMULATIONS = int(os.environ.get("CROWDPPL_SIMULATIONS", "500"))
"""Of each story in the slow suite."""

CHANCE = 0.001  # of a right story failing a test
X = np.random.default_rng(0).normal(0, 1.5, (SIZES["n_tasks"], 2))


def as_they_are(x):
    return x


def adjusted(found: Ranks) -> float:
    """Chance of the smallest p-value among so many independent ones."""
    p_values = found.p_values()
    return 1 - (1 - p_values.min()) ** len(p_values)


def test_p_values_of_uniform_ranks_are_uniform_and_of_others_small():
    rng = np.random.default_rng(0)
    even = pd.DataFrame(rng.integers(0, 64, (400, 500))).rename(columns=str)
    p_values = Ranks(even, 63, 0).p_values()
    assert abs((p_values < 0.1).mean() - 0.1) < 4 * np.sqrt(0.09 / 500)
    slanted = pd.DataFrame({"a": rng.binomial(63, rng.beta(1.5, 1.0, 400))})
    assert Ranks(slanted, 63, 0).p_values()["a"] < 1e-3


def test_coverage_is_the_share_of_actual_values_in_the_central_interval():
    """Of 80 ranks, each as frequent, 95 % lie in the interval; of ranks at the ends none, at the median all."""
    ranks = pd.DataFrame({"even": np.tile(np.arange(80), 3), "ends": np.tile([0, 79], 120), "middle": 40})
    found = Ranks(ranks, 79, 0).coverage(0.95)
    np.testing.assert_allclose(found[["even", "ends", "middle"]], [0.95, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"interval=95: .* above 0 and below 1"):
        Ranks(ranks, 79, 0).coverage(95)


def overconfident(annotations, *, truth_prior=None):
    """A story that draws its workers from a wider prior than the one that it is fitted with."""
    right = 3.0 if annotations.label is None else 30.0
    with numpyro.plate("worker", annotations.n_workers):
        coin = numpyro.sample("coin", dist.Dirichlet(jnp.array([1.0, right])))
    table = jnp.where(jnp.eye(2, dtype=bool), coin[:, 1, None, None], coin[:, 0, None, None])
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)


def test_a_story_that_is_fitted_with_another_prior_is_found_out():
    assert adjusted(cp.calibrate(overconfident, n_simulations=60, **SIZES)) < 1e-6


FEW = {"n_simulations": 32, "warmup": 100, "draws": 19, "thinning": 4}


def of_the_crowd(story, **options):
    """The story's options, as far as its defaults draw no data, and what every story has."""
    if story == "anno_reg":
        options["weight"] = 0.0  # its factor on the trace is no prior that could be drawn from
    if story in ("difficulty", *WITH_CLASSIFIER):
        options |= {"features": X, "truth_prior": cp.Classifier(as_they_are)}
    design = cp.simulate(story, **SIZES | options)[0].without_gold()
    model = Model(find_story(story), {name: value for name, value in options.items() if name != "features"})
    return {"quantities": crowd_quantities(model, design), **options}


def chance_of_moments(found: Ranks) -> float:
    """Chance, among so many, of a mean or a variance as far from that of uniform ranks, of which few were drawn."""
    u = (found.ranks.to_numpy() + 0.5) / (found.n_draws + 1) - 0.5
    z_mean = u.mean(0) / np.sqrt(1 / 12 / len(u))
    z_variance = (np.square(u).mean(0) - 1 / 12) / np.sqrt(1 / 180 / len(u))
    smallest = 2 * norm.sf(np.abs([z_mean, z_variance]).max())
    return 1 - (1 - smallest) ** (2 * u.shape[1])


QUICK = ("dawid_skene", "mace", "worker_clusters")
"""Stories of the default suite, of three kinds; each takes a program of its own."""


@pytest.mark.parametrize(
    "story", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KNOWN_STORIES]
)
def test_every_story_is_calibrated_with_its_default_priors_as_far_as_few_simulations_tell(story):
    assert chance_of_moments(cp.calibrate(story, **FEW, **SIZES, **of_the_crowd(story))) > CHANCE


def test_few_simulations_tell_a_story_that_is_fitted_with_another_prior():
    assert chance_of_moments(cp.calibrate(overconfident, **FEW, **SIZES, **of_the_crowd(overconfident))) < CHANCE / 10


@pytest.mark.slow
@pytest.mark.parametrize("story", KNOWN_STORIES)
def test_intervals_of_every_story_cover_as_they_say_once_the_classes_are_named(story):
    """A chain sees one order of the classes, which default priors may leave open: the nearer one counts."""
    options = of_the_crowd(story)
    of = jax.vmap(options.pop("quantities"))
    found = sample_simulations(story, n_simulations=SIMULATIONS, draws=79, **SIZES | options)
    actual, draws = of(found.actual), jax.vmap(of)(found.draws)
    other = {"confusion": actual["confusion"][:, :, ::-1]}
    if "prevalence" in actual:
        other["prevalence"] = 1 - actual["prevalence"]
    mean = draws["confusion"].mean(1)
    far, near = (np.square(one["confusion"] - mean).sum((1, 2, 3)) for one in (actual, other))
    ranks, of_other = ranks_among(actual, draws), ranks_among(other, draws)
    named = pd.DataFrame(np.where((far <= near)[:, None], ranks, of_other), columns=ranks.columns)
    assert 0.93 <= Ranks(named, 79, found.divergences).coverage(0.95).mean() <= 0.97


@pytest.mark.slow
def test_two_coins_are_calibrated():
    found = cp.calibrate("two_coin", n_simulations=100, right=6.0, wrong=2.0, **SIZES)
    assert adjusted(found) > CHANCE
    assert found.divergences == 0


def without_order(parameters):
    """What does not depend on the order of the groups."""
    weights, tables = parameters["weights"], parameters["group_confusion"]
    return {"prevalence": parameters["prevalence"], "worker": jnp.einsum("jm,mkl->jkl", weights, tables)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "options"),
    [
        ("two_coin", {"right": 6.0, "wrong": 2.0}),
        ("dawid_skene", {"n_classes": 3, "diagonal": 8.0}),
        ("difficulty", {"features": X, "truth_prior": cp.Classifier(as_they_are)}),
        (
            "annotator_groups",
            {"membership": "worker", "groups": 2, "diagonal": 6.0, "quantities": without_order},
        ),
        ("ordinal_dawid_skene", {"n_classes": 3, "fall": 3.0, "shift": 0.2, "strength": 20.0}),
        ("common_individual", {"diagonal": 6.0}),
        ("common_individual", {"diagonal": 6.0, "embedding": 2, "features": X}),
    ],
)
def test_stories_whose_priors_name_the_classes_are_calibrated(story, options):
    found = cp.calibrate(story, n_simulations=300, seed=1000, **SIZES | options)
    assert adjusted(found) > CHANCE
    assert found.divergences < 0.001 * 300 * 504
