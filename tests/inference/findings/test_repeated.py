"""Repeated annotations of a worker: told where they agree more than independent ones would, and only there."""

import warnings

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.inference.findings.repeated import agreeing_repeats


def crowd_with_a_judge(n_classes, same, *, n_tasks=400, runs=3, people=5, seed=0):
    """Five people who are right in 80 %, and a judge right in 75 % whose later runs say the same with a probability."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)

    def annotated(accuracy):
        wrong = (truth + rng.integers(1, n_classes, n_tasks)) % n_classes
        return np.where(rng.random(n_tasks) < accuracy, truth, wrong)

    given = {f"person {j}": [annotated(0.8)] for j in range(people)}
    first = annotated(0.75)
    given["judge"] = [first]
    for _ in range(runs - 1):
        given["judge"].append(np.where(rng.random(n_tasks) < same, first, annotated(0.75)))
    frames = [
        pd.DataFrame({"task": range(n_tasks), "worker": worker, "label": label})
        for worker, labels in given.items()
        for label in labels
    ]
    return cp.Annotations.from_frame(pd.concat(frames))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_repeats_of_a_judge_are_told_with_how_often_independent_ones_would_agree(n_classes):
    (one,) = agreeing_repeats(crowd_with_a_judge(n_classes, same=1.0))
    assert (one.worker, one.n_tasks, one.agreement) == (5, 400, 1.0)
    assert one.expected == pytest.approx(0.75**2 + 0.25**2 / (n_classes - 1), abs=0.08)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_independent_repeats_are_not_told(n_classes, seed):
    assert agreeing_repeats(crowd_with_a_judge(n_classes, same=0.0, seed=seed)) == []


@pytest.mark.parametrize("options", [{}, {"task_difficulty": True}, {"shared_error": True}])
def test_repeats_that_a_story_draws_are_not_told(options):
    """Where tasks differ or errors are shared repeats agree more, and so do the others."""
    fit = cp.fit("dawid_skene", crowd_with_a_judge(3, same=0.3, n_tasks=300), progress=False, **options)
    for seed in range(3):
        drawn = fit.posterior_predictive(seed=seed)["annotation"].values[0, 0]
        assert agreeing_repeats(fit.annotations.replace(label=drawn.astype(np.int32))) == []


def test_repeats_of_two_workers_have_no_others_to_tell_by():
    """A fit of them failed where no task had two others."""
    assert agreeing_repeats(crowd_with_a_judge(2, same=1.0, people=1)) == []


def test_repeats_that_are_few_or_left_out_are_not_told():
    annotations = crowd_with_a_judge(3, same=1.0)
    frame = annotations.to_frame()
    assert agreeing_repeats(cp.Annotations.from_frame(frame.drop_duplicates(["task", "worker"]))) == []
    later = frame.duplicated(["task", "worker"]) & (frame["task"] >= 15)
    assert agreeing_repeats(cp.Annotations.from_frame(frame[~later])) == []


def test_counts_are_repeats_as_rows_are():
    annotations = crowd_with_a_judge(3, same=1.0)
    counted = annotations.to_frame().groupby(["task", "worker", "label"]).size().rename("count").reset_index()
    (counted_once,), (of_rows,) = (
        agreeing_repeats(cp.Annotations.from_frame(counted, count="count")),
        agreeing_repeats(annotations),
    )
    assert (counted_once.agreement, counted_once.expected) == pytest.approx((of_rows.agreement, of_rows.expected))


@pytest.mark.parametrize("story", ["dawid_skene", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_fit_tells_of_repeats_once_with_figures_and_what_mends_it(story):
    with pytest.warns(cp.CrowdWarning) as caught:
        fit = cp.fit(story, crowd_with_a_judge(3, same=1.0), progress=False)
    (finding,) = findings_of(fit, "repeats")
    told = [getattr(one.message, "finding", None) for one in caught]
    assert [one for one in told if one is not None and one.code == "repeats"] == [finding]
    assert finding.values["workers"] == ["judge"]
    assert finding.values["agreement"] == [1.0]
    assert "'judge' annotated 400 tasks more than once" in finding.text
    assert "repeats='first'" in finding.remedy
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.CrowdWarning)
        cp.fit("dawid_skene", crowd_with_a_judge(3, same=0.0), progress=False)


def both_orders(same, seed=0, n_pairs=300):
    """Comparisons by four people, who are right in 80 %, and by a judge, who says the same in both orders so often."""
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(30, 2, replace=False) for _ in range(n_pairs)]
    rows = []
    for k, (a, b) in enumerate(pairs):
        best, worst = min(a, b), max(a, b)
        rows += [(a, b, f"person {j}", best if rng.random() < 0.8 else worst, k) for j in range(4)]
        first, second = (best if rng.random() < 0.7 else worst for _ in range(2))
        rows += [(a, b, "judge", first, k), (b, a, "judge", first if rng.random() < same else second, k)]
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label", "prompt"])
    return cp.Annotations.from_comparisons(frame, prompt="prompt")


def test_repeats_of_both_orders_of_a_pair_are_kept_and_may_err_together():
    annotations = both_orders(same=1.0)
    (finding,) = findings_of(cp.fit("one_coin", annotations, progress=False), "repeats")
    assert finding.values["workers"] == ["judge"]
    assert "repeats='first' would lose" in finding.remedy
    own = {worker: worker for worker in annotations.workers}
    options = {"shared_error": True, "worker_families": own, "progress": False}
    apart, together = (cp.fit("one_coin", annotations, **each) for each in ({"progress": False}, options))
    judge = [fit.workers.loc["judge", "accuracy"] for fit in (apart, together)]
    assert judge[1] != judge[0]
