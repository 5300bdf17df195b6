"""Repeated annotations of a worker: told where they agree more than independent ones would, and only there."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.inference.findings.of_copies import given_once
from crowdppl.inference.findings.repeated import agreeing_repeats, contradicting_repeats


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
    one = agreeing_repeats(crowd_with_a_judge(n_classes, same=1.0))
    assert (one.workers.tolist(), one.n_pairs, one.agreement) == ([5], 400, 1.0)
    assert one.expected == pytest.approx(0.75**2 + 0.25**2 / (n_classes - 1), abs=0.08)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_independent_repeats_are_not_told(n_classes, seed):
    assert agreeing_repeats(crowd_with_a_judge(n_classes, same=0.0, seed=seed)) is None


@pytest.mark.parametrize("options", [{}, {"task_difficulty": True}, {"shared_error": True}])
def test_repeats_that_a_story_draws_are_not_told(options):
    """Where tasks differ or errors are shared repeats agree more, and so do the others."""
    fit = cp.fit("dawid_skene", crowd_with_a_judge(3, same=0.3, n_tasks=300), progress=False, **options)
    for seed in range(3):
        drawn = fit.posterior_predictive(seed=seed)["annotation"].values[0, 0]
        assert agreeing_repeats(fit.annotations.replace(label=drawn.astype(np.int32))) is None


def test_repeats_of_two_workers_have_no_others_to_tell_by():
    """A fit of them failed where no task had two others."""
    assert agreeing_repeats(crowd_with_a_judge(2, same=1.0, people=1)) is None


def test_repeats_that_are_few_or_left_out_are_not_told():
    annotations = crowd_with_a_judge(3, same=1.0)
    frame = annotations.to_frame()
    assert agreeing_repeats(cp.Annotations.from_frame(frame.drop_duplicates(["task", "worker"]))) is None
    later = frame.duplicated(["task", "worker"]) & (frame["task"] >= 15)
    assert agreeing_repeats(cp.Annotations.from_frame(frame[~later])) is None


def test_a_task_that_all_workers_repeat_takes_memory_by_its_annotations():
    """And not by their square."""
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame(
        {
            "task": np.r_[np.zeros(2 * n, int), np.arange(1, 40).repeat(4)],
            "worker": np.r_[np.arange(n).repeat(2), np.tile([0, 0, 1, 2], 39)],
        }
    )
    annotations = cp.Annotations.from_frame(frame.assign(label=rng.choice(["a", "b"], len(frame))))
    tracemalloc.start()
    agreeing_repeats(annotations)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * len(frame)


def test_counts_are_repeats_as_rows_are():
    annotations = crowd_with_a_judge(3, same=1.0)
    counted = annotations.to_frame().groupby(["task", "worker", "label"]).size().rename("count").reset_index()
    counted_once, of_rows = (
        agreeing_repeats(cp.Annotations.from_frame(counted, count="count")),
        agreeing_repeats(annotations),
    )
    assert (counted_once.agreement, counted_once.expected) == pytest.approx((of_rows.agreement, of_rows.expected))


def test_annotations_that_count_nothing_are_as_if_left_out():
    """A fit of rows that count 0 failed, as those are that are not drawn where annotations are drawn anew."""
    annotations = crowd_with_a_judge(3, same=1.0)
    counts = np.random.default_rng(0).binomial(1, 0.6, annotations.n_rows)
    counts[np.asarray(annotations.worker) == 5] = 1
    counted, left = (
        agreeing_repeats(each)
        for each in (annotations.replace(count=counts), annotations.replace(count=counts).rows(counts > 0))
    )
    assert counted.workers.tolist() == left.workers.tolist() == [5]
    assert (counted.agreement, counted.expected) == (left.agreement, left.expected)


@pytest.mark.parametrize("story", ["dawid_skene", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_fit_tells_of_repeats_once_with_figures_and_what_mends_it(story):
    with pytest.warns(cp.CrowdWarning) as caught:
        fit = cp.fit(story, crowd_with_a_judge(3, same=1.0), progress=False)
    (finding,) = findings_of(fit, "repeats")
    told = [getattr(one.message, "finding", None) for one in caught]
    assert [one for one in told if one is not None and one.code == "repeats"] == [finding]
    assert finding.values["workers"] == ["judge"]
    assert (finding.values["agreement"], finding.values["pairs"]) == (1.0, 400)
    assert "'judge' annotated tasks again (400 times)" in finding.text
    assert ("copies='keep'" if story == "auto" else "copies='one'") in finding.remedy
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.CrowdWarning)
        cp.fit("dawid_skene", crowd_with_a_judge(3, same=0.0), progress=False)


def crowd_who_repeats(seed, same=0.9, n_tasks=200):
    """Ten workers of three classes, three a task, who give one to five annotations that keep to the first so often."""
    rng = np.random.default_rng(seed)
    truth, accuracies = rng.integers(0, 3, n_tasks), rng.uniform(0.5, 0.9, 10)

    def annotated(task, worker):
        return truth[task] if rng.random() < accuracies[worker] else (truth[task] + rng.integers(1, 3)) % 3

    rows = []
    for task in range(n_tasks):
        for worker in rng.choice(10, 3, replace=False):
            first = annotated(task, worker)
            again = [first if rng.random() < same else annotated(task, worker) for _ in range(rng.integers(0, 5))]
            rows += [(task, worker, label) for label in (first, *again)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return frame.assign(label=frame["label"].map(list("abc").__getitem__)), np.array(list("abc"))[truth]


@pytest.mark.parametrize("seed", range(10))
def test_a_crowd_who_repeats_itself_is_told_together_and_one_that_looks_again_is_not(seed):
    """Each worker has some 48 repeated tasks, with which most cannot be told alone."""
    found = agreeing_repeats(cp.Annotations.from_frame(crowd_who_repeats(seed)[0]))
    assert len(found.workers) >= 8
    assert found.agreement - found.expected > 0.25
    assert agreeing_repeats(cp.Annotations.from_frame(crowd_who_repeats(seed, same=0.0)[0])) is None


def test_auto_counts_dependent_repeats_once_says_so_and_keeps_them_where_asked():
    frame, truth = crowd_who_repeats(0)
    annotations = cp.Annotations.from_frame(frame)
    fit, kept = (cp.fit("auto", annotations, progress=False, **each) for each in ({}, {"copies": "keep"}))
    right, before = (np.mean(each.labels["label"].loc[range(len(truth))] == truth) for each in (fit, kept))
    assert right > before + 0.04
    (finding,), (of_kept,) = (findings_of(each, "repeats") for each in (fit, kept))
    assert finding.severity == of_kept.severity == "warning"
    assert finding.values["left"] == pytest.approx(600 / len(frame))
    assert fit.annotations.n_annotations == 600
    assert "copies='keep'" in finding.remedy
    assert kept.annotations.n_annotations == len(frame)


def test_repeats_that_counted_once_do_so_after_an_update_and_in_a_folder(tmp_path):
    frame, _ = crowd_who_repeats(0)
    fit = cp.fit("one_coin", frame, copies="one", progress=False)
    fit.save(tmp_path / "fit")
    for of in (fit, cp.load_fit(tmp_path / "fit")):
        more = of.update(frame.assign(task=frame["task"] + 1000), progress=False)
        assert [each.severity for each in findings_of(more, "repeats")] == ["note"]
        assert more.annotations.n_annotations == 1200


def test_of_repeats_that_count_once_the_most_frequent_and_of_several_the_first_is_kept():
    rows = [("t", "a", 1), ("t", "a", 0), ("t", "a", 0), ("t", "b", 1), ("t", "b", 0), ("u", "a", 1), ("t", "c", 1)]
    rows += [("t", "c", 0), ("t", "c", 0)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    once = given_once(annotations, np.array([0, 1]))
    expected = [("t", "a", 0), ("t", "b", 1), ("t", "c", 0), ("t", "c", 0), ("t", "c", 1), ("u", "a", 1)]
    assert sorted(map(tuple, once.to_frame().to_numpy().tolist())) == expected
    counted = annotations.to_frame().groupby(["task", "worker", "label"], sort=False).size().rename("count")
    of_counts = given_once(cp.Annotations.from_frame(counted.reset_index(), count="count"), np.array([0, 1]))
    assert (of_counts.votes() == once.votes()).all()


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


@pytest.mark.slow
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


def crowd_again(again, *, n_tasks=300, seed=0, accuracies=(0.85,) * 6):
    """Six workers on tasks of three classes who annotate the first 150 again, as is said of a label and a new draw."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)[:, None]

    def annotated():
        right = rng.random((n_tasks, len(accuracies))) < accuracies
        return np.where(right, truth, (truth + rng.integers(1, 3, right.shape)) % 3)

    first, new = annotated(), annotated()
    rows = pd.DataFrame(first).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    more = rows.assign(label=again(first, new).reshape(-1))[rows["task"] < 150]
    return (each.assign(label=each["label"].map(list("abc").__getitem__)) for each in (rows, pd.concat([rows, more])))


def rotated(first, new):
    return (first + 1) % 3


def test_workers_who_contradict_themselves_are_warned_of_with_figures():
    once, twice = crowd_again(rotated)
    with pytest.warns(cp.CrowdWarning, match="workers contradict themselves"):
        fit = cp.fit("dawid_skene", cp.Annotations.from_frame(twice), progress=False)
    (finding,) = findings_of(fit, "contradictions")
    assert finding.severity == "warning"
    assert finding.values["share"] == pytest.approx(1 / 3)
    assert fit.verdict.trust != "yes"
    assert (finding.values["pairs"], finding.values["agreement"]) == (900, 0.0)
    pairs = twice[twice["task"] < 150].merge(twice, on="task").query("worker_x != worker_y")
    assert finding.values["outside"] == pytest.approx((pairs["label_x"] == pairs["label_y"]).mean())
    assert "repeats='first'" in finding.remedy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert contradicting_repeats(cp.Annotations.from_frame(once)) is None
        _, independent = crowd_again(lambda _, new: new)
        fit = cp.fit("dawid_skene", cp.Annotations.from_frame(independent), progress=False)
    assert not findings_of(fit, "contradictions")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("accuracies", [(0.85,) * 6, (0.5, 0.6, 0.7, 0.8, 0.9, 0.95), (0.4,) * 6])
def test_independent_and_equal_repeats_contradict_nobody(seed, accuracies):
    for again in (lambda _, new: new, lambda first, _: first):
        _, rows = crowd_again(again, seed=seed, accuracies=accuracies)
        assert contradicting_repeats(cp.Annotations.from_frame(rows)) is None


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_worker_alone_who_repeats_and_errs_more_than_the_rest_contradicts_nobody(n_classes, seed):
    assert contradicting_repeats(crowd_with_a_judge(n_classes, same=0.0, n_tasks=2000, seed=seed)) is None


def test_the_answers_to_two_questions_in_one_column_are_contradictions():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (300, 2))[:, None]  # of a task, by question
    label = np.where(rng.random((300, 4, 2)) < 0.9, truth, 1 - truth).reshape(-1)
    task, worker, _ = np.indices((300, 4, 2)).reshape(3, -1)
    mixed = cp.Annotations.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": label}))
    found = contradicting_repeats(mixed)
    assert found.agreement == pytest.approx(0.5, abs=0.05)
    assert found.outside == pytest.approx((0.82 + 0.5) / 2, abs=0.05)


def test_few_repeats_and_counts():
    rows, twice = crowd_again(rotated)
    few = cp.fit("majority_vote", cp.Annotations.from_frame(twice[: len(rows) + 20]), progress=False)
    assert [one.severity for one in findings_of(few, "contradictions")] == ["note"]
    assert contradicting_repeats(cp.Annotations.from_frame(twice[: len(rows) + 19])) is None
    assert contradicting_repeats(cp.Annotations.from_frame(twice[: len(rows) + 20])).n_pairs == 20
    counted = twice.groupby(["task", "worker", "label"]).size().rename("count").reset_index()
    assert contradicting_repeats(cp.Annotations.from_frame(counted, count="count")) == contradicting_repeats(
        cp.Annotations.from_frame(twice)
    )


@pytest.mark.parametrize("accuracy", [(0.95, 0.7, 0.6), (0.9, 0.8, 0.7), (0.95, 0.6, 0.6, 0.6)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_independent_repeats_of_workers_of_unequal_ability_are_no_copies_of_each_other(accuracy, n_classes):
    """The ablest worker's repeats agree more than all others do, and less than the others of that worker allow for."""
    told = {0.0: 0, 0.8: 0}
    for seed in range(20):
        for again in told:
            rng = np.random.default_rng(seed)
            truth = rng.integers(0, n_classes, 120)
            wrong = (truth[:, None] + rng.integers(1, n_classes, (120, 2 * len(accuracy)))) % n_classes
            given = np.where(rng.random(wrong.shape) < np.repeat(accuracy, 2), truth[:, None], wrong)
            given[:, 1::2] = np.where(rng.random((120, len(accuracy))) < again, given[:, ::2], given[:, 1::2])
            task, column = np.indices(given.shape)
            rows = {"task": task.ravel(), "worker": column.ravel() // 2, "label": given.ravel()}
            told[again] += agreeing_repeats(cp.Annotations.from_frame(pd.DataFrame(rows))) is not None
    assert told[0.0] <= 2  # of twenty; all twenty were
    assert told[0.8] == 20
