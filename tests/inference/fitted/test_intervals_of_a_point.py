"""Draws around a mode say how uncertain it is as a sampler's do, and workers are ranked by them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.findings.summary import best_and_worst
from crowdppl.inference.fitted.intervals import known_quantiles, of_draws
from crowdppl.inference.fitted.posterior import interval_around

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
FURTHER = ("one_coin", "worker_clusters", "mace", "common_individual")
BOUNDS = ["accuracy_low", "accuracy_high"]


@pytest.fixture(scope="module")
def annotations():
    """Twelve workers with a hundred annotations, and one with three that are all right."""
    annotations, _ = cp.simulate(
        "dawid_skene", n_tasks=300, n_workers=12, n_classes=3, annotations_per_task=4, diagonal=6.0, seed=2, gold=1.0
    )
    frame = annotations.to_frame()
    right = np.asarray(annotations.gold)[:3]
    few = pd.DataFrame({"task": list(annotations.tasks)[:3], "worker": "few", "label": right})
    return cp.Annotations.from_frame(pd.concat([frame[["task", "worker", "label"]], few]).astype({"worker": str}))


@pytest.fixture(scope="module")
def em(annotations):
    return cp.fit("dawid_skene", annotations, progress=False)


@pytest.mark.slow
def test_they_are_as_wide_as_a_samplers(annotations, em):
    """Of a posterior that is nearly normal the draws of a few steps of data augmentation are those of a chain."""
    nuts = cp.fit("dawid_skene", annotations, method="nuts", draws=300, warmup=200, chains=1, progress=False)
    ours, theirs = em.workers, nuts.workers
    for name in ("accuracy", "realised_accuracy"):
        widths = [(frame[f"{name}_high"] - frame[f"{name}_low"]).drop("few") for frame in (ours, theirs)]
        assert 0.8 < widths[0].mean() / widths[1].mean() < 1.1
    middle = [frame[BOUNDS].mean(axis=1) for frame in (ours, theirs)]
    np.testing.assert_allclose(*middle, atol=0.05)


@pytest.mark.slow
def test_they_hold_what_data_of_the_prior_were_drawn_with():
    """Three annotations a task leave much of the labels open: of one step 75 % would hold the prevalence."""
    held = []
    for seed in range(50):
        given = {"n_tasks": 100, "n_workers": 6, "n_classes": 3, "annotations_per_task": 3}
        annotations, drawn = cp.simulate("dawid_skene", seed=seed, **given)
        around = cp.fit("dawid_skene", annotations, progress=False).fitted.with_uncertainty.draws
        drawn["accuracy"] = np.einsum("k,jkk->j", drawn["prevalence"], drawn["confusion"])
        around["accuracy"] = np.einsum("cdk,cdjkk->cdj", around["prevalence"], around["confusion"])
        for name in ("prevalence", "confusion", "accuracy"):
            low, high = np.quantile(around[name], [0.05, 0.95], axis=(0, 1), method="weibull")
            held.append({name: ((low <= drawn[name]) & (drawn[name] <= high)).mean()})
    share = pd.DataFrame(held).mean()
    assert (share > 0.82).all(), share
    assert (share < 0.97).all(), share


@pytest.mark.parametrize("story", ["glad", *(pytest.param(s, marks=pytest.mark.slow) for s in FURTHER)])
def test_every_kind_of_parameter_is_drawn_around_the_mode(annotations, story):
    fit = cp.fit(story, annotations, progress=False, max_iterations=100)
    around = fit.with_uncertainty
    assert around.has_draws
    assert not fit.has_draws
    assert around.with_uncertainty is around
    for name, draws in around.fitted.draws.items():
        assert np.isfinite(draws).all()
        assert (np.std(draws, axis=(0, 1)) > 0).any(), name
    workers = fit.workers
    assert (workers["accuracy_low"] <= workers["accuracy"]).all()
    assert (workers["accuracy"] <= workers["accuracy_high"]).all()
    assert (workers["accuracy_low"] < workers["accuracy_high"]).all()


@pytest.mark.slow
def test_they_are_those_of_the_posterior_where_the_mode_is_at_its_edge(annotations):
    """With a difficulty for each task the mode has workers at 0.85; their posterior has them at 0.79."""
    around = cp.fit("glad", annotations, progress=False).workers
    sampled = cp.fit("glad", annotations, method="nuts", chains=2, progress=False).workers
    assert around["accuracy"].mean() > sampled["accuracy"].mean() + 0.03
    for bound in BOUNDS:
        np.testing.assert_allclose(around[bound].mean(), sampled[bound].mean(), atol=0.02)
        np.testing.assert_allclose(around[bound], sampled[bound], atol=0.1)


def test_label_probabilities_stay_those_of_the_point(em):
    np.testing.assert_array_equal(em.with_uncertainty.posterior, em.posterior)


def test_no_draws_are_made_of_a_member_without_weight(annotations):
    fit = cp.fit("auto", annotations, stories=["dawid_skene", "one_coin"], progress=False)
    alone = replace(fit, weights=pd.Series({"dawid_skene": 1.0, "one_coin": 0.0}), votes=0.5)
    around = alone.with_uncertainty
    assert around.has_draws
    assert around.members["dawid_skene"].has_draws
    assert not around.members["one_coin"].has_draws
    assert around.with_uncertainty is around
    workers, own = alone.workers, fit.fits["dawid_skene"].workers
    np.testing.assert_allclose(workers[BOUNDS], own[BOUNDS], atol=0.02)


def test_a_worker_with_few_annotations_is_not_among_the_best(em):
    scores = em.workers
    few = scores.loc["few"]
    assert few["accuracy_high"] - few["accuracy_low"] > 2 * (scores["accuracy_high"] - scores["accuracy_low"]).median()
    best, worst = best_and_worst(scores).values()
    assert "few" not in best.index
    assert best["accuracy_low"].is_monotonic_decreasing
    assert worst["accuracy_high"].max() <= scores["accuracy_high"].nsmallest(5).max()


def test_nobody_is_among_the_best_five_and_the_worst_five():
    """The first has the widest interval: the fifth best by the lower bound, and the worst by the upper one."""
    low = pd.Series(np.arange(11, 0, -1) / 100, index=range(11))
    high = pd.Series(0.5 + np.arange(11) / 100, index=range(11))
    best, worst = best_and_worst(pd.DataFrame({"accuracy_low": low, "accuracy_high": high})).values()
    assert list(best.index) == [0, 1, 2, 3, 4]
    assert sorted(worst.index) == [5, 6, 7, 8, 9]


def test_ties_of_the_majority_vote_are_named_where_it_is_compared():
    rows = pd.DataFrame({"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xyxxyy")})
    fit = cp.fit("one_coin", cp.Annotations.from_frame(rows, gold={1: "x", 2: "x", 3: "y"}), progress=False)
    facts = fit.summary().facts
    assert "the majority vote differs on 0, and is a tie on 1" in facts["labels"]
    assert facts["gold"].endswith("majority vote 0.8333 (1 tie of m classes, each counted as 1/m)")
    said = cp.fit("majority_vote", fit.annotations).summary().facts["gold"]
    assert said.startswith("accuracy 0.8333 ")
    assert "majority vote" not in said


def test_a_stack_of_points_has_intervals_too(annotations, em):
    stack = cp.stack([em, cp.fit("one_coin", annotations, progress=False)], weights={"dawid_skene": 1, "one_coin": 1})
    assert (stack.workers["accuracy_low"] < stack.workers["accuracy_high"]).all()


@pytest.fixture(scope="module")
def spammers():
    """Forty workers who guess, with ten annotations each."""
    rng = np.random.default_rng(5)
    rows = [(task, worker, rng.integers(4)) for worker in range(40) for task in rng.choice(50, 10, replace=False)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]), classes=range(4))
    return cp.fit("dawid_skene", annotations, diagonal=1.0, off_diagonal=1.0, progress=False)


@pytest.mark.parametrize("interval", [0.1, 0.9])
def test_every_interval_around_a_point_holds_the_estimate(spammers, interval):
    """The spammer score of draws that scatter around a spammer is greater than the spammer's."""
    scores = spammers.worker_scores(interval, rank_one=True)
    draws = spammers.with_uncertainty.confusion_draws
    spread = draws - draws.mean(-2, keepdims=True)
    low = of_draws((spread**2).sum((-1, -2)) / 3, interval)[0]
    assert (low > scores["spammer_score"]).sum() > 5
    pairs = [name for name in scores if f"{name}_low" in scores]
    assert {"accuracy", "realised_accuracy", "spammer_score", "informativeness", "rank_one_distance"} <= set(pairs)
    for name in pairs:
        assert (scores[f"{name}_low"] <= scores[name]).all(), name
        assert (scores[name] <= scores[f"{name}_high"]).all(), name
    cells = spammers.confusions(interval)
    assert ((cells["low"] <= cells["probability"]) & (cells["probability"] <= cells["high"])).all()


def test_an_interval_of_draws_is_of_the_draws_alone(em):
    draws = np.linspace(0, 1, 101)[None, 1:-1]  # 99, at a hundredth each
    around = em.fitted.with_uncertainty
    np.testing.assert_allclose(interval_around(around, np.array(2.0), draws, 0.9), [0.05, 0.95])
    np.testing.assert_allclose(interval_around(em, np.array(2.0), draws, 0.9), [0.05, 2.0])
    np.testing.assert_allclose(interval_around(em, np.array(0.5), draws, 0.9), [0.05, 0.95])


def test_gold_labels_that_were_used_are_drawn_as_they_are():
    annotations, _ = cp.simulate("one_coin", n_tasks=30, n_workers=3, n_classes=2, seed=4, gold=1.0)
    fit = cp.fit("one_coin", annotations, gold=True, progress=False)
    known = fit.workers

    width = known["realised_accuracy_high"] - known["realised_accuracy_low"]
    assert width.max() < 1e-6


def test_quantiles_of_columns_with_unknown_values_are_those_of_their_numbers():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((40, 30)) < np.linspace(0, 0.97, 30), np.nan, rng.normal(size=(40, 30)))
    values[:, -1] = np.nan
    found = known_quantiles(values, [0.05, 0.5, 0.95])
    expected = np.nanquantile(values[:, :-1], [0.05, 0.5, 0.95], axis=0, method="weibull")
    np.testing.assert_allclose(found[:, :-1], expected)
    assert np.isnan(found[:, -1]).all()


@pytest.mark.parametrize("n", [25, 50, 200])
def test_intervals_of_few_draws_hold_another_draw_as_often_as_they_say(n):
    numbers = np.random.default_rng(n).exponential(size=(n + 1, 20_000))
    low, high = of_draws(numbers[None, :n], 0.9)
    assert np.mean((low <= numbers[n]) & (numbers[n] <= high)) == pytest.approx(0.9, abs=0.007)  # three errors
