"""Comparing and averaging stories."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_fits import changed

import crowdppl as cp
from crowdppl.inference.comparison.weights import pseudo_bma_weights, stacking_weights
from crowdppl.inference.engines.finding import FindingWarning

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")


@pytest.fixture(scope="module")
def fits():
    annotations = cp.load_dataset("anesthesia")
    options = {"method": "svi", "max_iterations": 500, "progress": False}
    return {story: cp.fit(story, annotations, **options) for story in ("dawid_skene", "one_coin")}


@pytest.fixture(scope="module")
def modes():
    annotations = cp.load_dataset("anesthesia")
    return {s: cp.fit(s, annotations, progress=False) for s in ("dawid_skene", "one_coin")}


def test_the_comparison_is_the_scores_side_by_side(fits):
    found = cp.compare(fits)
    scores = {name: cp.loo(fit) for name, fit in fits.items()}
    assert found.index.tolist() == sorted(scores, key=lambda name: -scores[name].elpd)
    best, other = found.index
    difference = scores[other].values - scores[best].values
    assert found.loc[other, "difference"] == pytest.approx(difference.sum())
    assert found.loc[other, "difference_se"] == pytest.approx(np.sqrt(45) * difference.std())
    assert found.loc[best, ["difference", "difference_se"]].tolist() == [0, 0]
    for name, score in scores.items():
        row = found.loc[name]
        assert (row["elpd"], row["se"], row["p"]) == pytest.approx((score.elpd, score.se, score.p))
        assert row["pareto_k"] == pytest.approx(score.pareto_k.max())
        assert row["n_high_k"] == len(score.high_k)
    assert found["weight"].sum() == pytest.approx(1)
    assert found["pseudo_bma"].sum() == pytest.approx(1)


def test_fits_without_draws_are_compared_by_held_out_annotations(modes):
    found = cp.compare(modes, progress=False)
    scores = {name: cp.kfold(fit, progress=False) for name, fit in modes.items()}
    assert found["elpd"].to_dict() == pytest.approx({name: score.elpd for name, score in scores.items()})
    assert found[["p", "pareto_k", "n_high_k"]].isna().all(axis=None)
    draws = changed(modes["one_coin"], method="svi")
    with pytest.warns(FindingWarning, match="'mode' cannot be by leave-one-out"):
        mixed = cp.compare({"mode": modes["one_coin"], "draws": draws}, refit_by="em", progress=False)
    assert mixed.loc["mode", "elpd"] == pytest.approx(mixed.loc["draws", "elpd"])
    with pytest.raises(ValueError, match=r"one_coin .*method=.em., .*no draws"):
        cp.compare([modes["one_coin"], draws], method="loo")


def test_two_fits_of_one_story_are_numbered(modes):
    found = cp.compare([modes["one_coin"], modes["one_coin"]], progress=False)
    assert set(found.index) == {"one_coin", "one_coin (2)"}


def without(frame, **changes):
    return cp.Annotations.from_frame(frame.assign(**changes), classes=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: cp.Annotations.from_frame(f[f["task"] != 45]), "45 tasks and 44"),
        (lambda f: cp.Annotations.from_frame(f.iloc[1:]), "315 rows of annotations and 314"),
        (
            lambda f: without(f, label=[2, *f["label"].iloc[1:]]),
            "row 0 is task 1, worker 1, label 1 and task 1, .*label 2",
        ),
        (lambda f: without(f, worker=f["worker"].replace({5: 6})), "worker 4 is 5 and 6"),
        (lambda f: without(f, task=f["task"].replace({45: 99})), "task 44 is 45 and 99"),
        (lambda f: cp.Annotations.from_frame(f, classes=[1, 2, 3, 4, 5]), "4 classes and 5"),
    ],
)
def test_fits_of_different_data_are_refused_with_the_difference(modes, change, message):
    other = cp.fit("one_coin", change(modes["one_coin"].annotations.to_frame()), progress=False)
    with pytest.raises(ValueError, match=f"'one' and 'other' .*{message}"):
        cp.compare({"one": modes["one_coin"], "other": other})


def test_fits_that_used_other_gold_labels_are_refused(modes):
    with_gold = cp.fit("one_coin", modes["one_coin"].annotations, gold={3: 2}, progress=False)
    with pytest.raises(ValueError, match="gold labels or evidence, first of task 3"):
        cp.compare([modes["one_coin"], with_gold])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda m: m["one_coin"], "one fit is given, and two at least"),
        (lambda m: [m["one_coin"]], "1 fits are given, and two at least"),
        (lambda m: 5, "5: fits are needed, such as by name"),
        (lambda m: {}, "0 fits are given, and two at least"),
        (lambda m: {"a": m["one_coin"], "b": 3}, "'b': a fit of one story by cp.fit is needed, got a int"),
    ],
)
def test_what_cannot_be_compared_is_refused(modes, given, message):
    with pytest.raises(ValueError, match=message):
        cp.compare(given(modes))


def test_another_method_is_refused(modes):
    with pytest.raises(cp.UnknownNameError, match=r"unknown method 'waic'\. There are: loo, kfold"):
        cp.compare(modes, method="waic")
    with pytest.raises(cp.UnknownNameError, match="bayes"):
        cp.compare(modes, refit_by="bayes", progress=False)


def test_stacking_gives_all_to_a_story_that_is_better_everywhere():
    values = np.log([[0.9, 0.1], [0.8, 0.3], [0.6, 0.5]])
    np.testing.assert_allclose(stacking_weights(values), [1, 0], atol=1e-4)


def test_stacking_splits_evenly_between_stories_that_mirror_each_other():
    np.testing.assert_allclose(stacking_weights(np.log([[0.9, 0.1], [0.1, 0.9]])), [0.5, 0.5], atol=1e-4)


def test_stacking_is_the_best_mixture_on_a_grid():
    values = np.random.default_rng(3).normal(-2, 1, (50, 2))
    grid = np.linspace(0, 1, 2001)
    scores = np.log(grid[:, None] * np.exp(values[:, 0]) + (1 - grid)[:, None] * np.exp(values[:, 1])).sum(1)
    assert stacking_weights(values)[0] == pytest.approx(grid[scores.argmax()], abs=2e-3)


def test_pseudo_bma_weights_average_over_the_bootstrap_distribution_of_the_difference():
    """The bootstrapped difference of two stories is nearly normal; 1,000 resamples leave an error of at most 0.016."""
    values = np.random.default_rng(5).normal([0, 0.005], 0.1, (400, 2))
    gap = values[:, 0] - values[:, 1]
    spread = gap.sum() + np.sqrt(400) * gap.std() * np.random.default_rng(6).normal(size=200_000)
    expected = (1 / (1 + np.exp(-spread))).mean()
    assert pseudo_bma_weights(values)[0] == pytest.approx(expected, abs=4 * 0.016)


@given(arrays(float, 20, elements=st.floats(-800, 0)))
def test_weights_do_not_change_with_what_all_stories_share(shift):
    values = np.random.default_rng(0).normal(-1, 1, (20, 3))
    for weights in (stacking_weights, pseudo_bma_weights):
        np.testing.assert_allclose(weights(values + shift[:, None]), weights(values), atol=2e-3)


def test_a_stack_is_the_weighted_average(fits):
    stack = cp.stack(fits)
    weights = cp.compare(fits)["weight"]
    expected = sum(weights[name] * fit.probabilities for name, fit in fits.items())
    pd.testing.assert_frame_equal(stack.probabilities, expected, check_dtype=False, rtol=1e-6)
    assert (stack.labels["label"] == expected.idxmax(axis=1)).all()
    tables = sum(weights[name] * fit.confusion_draws.mean((0, 1)) for name, fit in fits.items())
    np.testing.assert_allclose(stack.confusion_draws.mean((0, 1)), tables, atol=0.02)  # a share of whole draws
    assert {"accuracy", "accuracy_low", "spammer_score"} <= set(stack.workers)
    assert "predicts held-out annotations best" in str(stack.summary())


def test_a_stack_takes_weights_that_are_given(modes):
    stack = cp.stack(modes, {"dawid_skene": 3, "one_coin": 1})
    assert stack.weights.to_dict() == {"dawid_skene": 0.75, "one_coin": 0.25}
    expected = 0.75 * modes["dawid_skene"].posterior + 0.25 * modes["one_coin"].posterior
    np.testing.assert_allclose(stack.posterior, expected)
    np.testing.assert_allclose(
        stack.confusion_draws, 0.75 * modes["dawid_skene"].confusion_draws + 0.25 * modes["one_coin"].confusion_draws
    )


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"dawid_skene": -1.0}, ValueError, "weight of 'dawid_skene' is -1.0"),
        ({"dawid_skene": np.nan}, ValueError, "weight of 'dawid_skene' is nan"),
        ({"dawid_skene": 0.0}, ValueError, "all weights are 0"),
        ({"david_skene": 1.0}, cp.UnknownNameError, "dawid_skene"),
    ],
)
def test_weights_that_cannot_be_are_refused(modes, weights, error, message):
    with pytest.raises(error, match=message):
        cp.stack(modes, weights)


@pytest.mark.parametrize("arguments", [(["dawid_skene", "one_coin"],), (["dawid_skene", "one_coin"], "annotations")])
def test_names_of_stories_are_to_be_fitted_before_they_are_compared(arguments):
    with pytest.raises(
        ValueError, match=r"fit each first, cp\.compare\(\{'one': cp\.fit\('dawid_skene', annotations\)"
    ):
        cp.compare(*arguments)


def test_annotations_before_the_story_are_told_the_order():
    with pytest.raises(cp.AnnotationError, match=r"the story comes first.*cp\.fit\('dawid_skene', annotations\)"):
        cp.fit([("t", "w", "a")], "dawid_skene")
    with pytest.raises(cp.AnnotationError, match="the story comes first"):
        cp.fit("rows.csv", "one_coin")
