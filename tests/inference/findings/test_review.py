"""Workers to review: spammers of each kind, labelling functions that choose their tasks, few annotations."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.findings import review as review_room
from crowdppl.inference.findings.review import (
    BELOW_CHANCE,
    LOOKS,
    SAYS_NOTHING,
    _looked_at,
    _mixture,
    probabilities,
    review,
    spammers,
)
from crowdppl.inference.fitted.posterior import Posterior

N_WORKERS, N_TASKS = 20, 200


def crowd(kind: str, n_classes: int = 3, n: int = 4, seed: int = 0) -> cp.Annotations:
    """200 tasks × 5 by 20 workers who are right in 85 %, the first n of them of another kind."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, N_TASKS)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (N_TASKS, N_WORKERS))) % n_classes
    label = np.where(rng.random(wrong.shape) < 0.85, truth[:, None], wrong)
    if kind == "uniform":
        label[:, :n] = rng.integers(0, n_classes, (N_TASKS, n))
    elif kind == "constant":
        label[:, :n] = rng.integers(0, n_classes, n)
    elif kind == "adversarial":
        label[:, :n] = np.where(rng.random((N_TASKS, n)) < 0.85, wrong[:, :n], truth[:, None])
    given = rng.random(label.shape).argsort(1).argsort(1) < 5
    task, worker = np.nonzero(given)
    frame = pd.DataFrame({"task": task, "worker": [f"w{j:02}" for j in worker], "label": label[task, worker]})
    return cp.Annotations.from_frame(frame, ordered=False)


def fitted(annotations: cp.Annotations, story: str = "dawid_skene") -> cp.Fit:
    return cp.fit(story, annotations, progress=False)


@pytest.mark.parametrize(
    ("kind", "story"),
    [
        ("uniform", "dawid_skene"),
        ("constant", "dawid_skene"),
        ("adversarial", "dawid_skene"),
        ("constant", "majority_vote"),
        ("adversarial", "majority_vote"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_each_kind_of_spammer_is_named_and_nobody_else(kind, story):
    found = review(fitted(crowd(kind), story))
    assert set(found.index[found["review"]]) == {"w00", "w01", "w02", "w03"}
    said = BELOW_CHANCE if kind == "adversarial" else SAYS_NOTHING
    reasons = found["reason"][found["review"]]
    assert all(said in reason or (kind == "constant" and "whatever the task" in reason) for reason in reasons)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_who_names_the_same_wrong_class_as_others_is_said_to_be_wrong_before_they_may_copy():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    label = np.where(rng.random((300, 10)) < 0.8, truth[:, None], (truth[:, None] + rng.integers(1, 3, (300, 10))) % 3)
    label[:, :3] = np.where(rng.random((300, 3)) < 0.95, (truth[:, None] + 1) % 3, truth[:, None])
    task, worker = np.nonzero(rng.random(label.shape).argsort(1).argsort(1) < 5)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label[task, worker]})
    fit = fitted(cp.Annotations.from_frame(frame, ordered=False))
    found = review(fit)
    (copies,) = [each.values["workers"] for each in fit.findings if each.code == "copies"]
    assert set(copies) <= set(found.index[found["review"]]) == {0, 1, 2}
    for worker, reason in found["reason"][found["review"]].items():
        assert reason.startswith(BELOW_CHANCE)
        assert ("; may copy, or be copied by, " in reason) == (worker in copies)


def test_of_many_annotations_as_many_of_each_worker_name_the_same_workers(monkeypatch):
    fit = fitted(crowd("adversarial"))
    every = probabilities(Posterior.of(fit.fitted))
    monkeypatch.setattr(review_room, "LOOKED_AT", 700)
    n = _looked_at(fit.annotations).n_by_worker()
    assert 0.6 * 700 < n.sum() < 0.8 * 1000
    some = probabilities(Posterior.of(fit.fitted))
    assert (some != every).any()
    np.testing.assert_array_equal(some.argmax(1), every.argmax(1))


@pytest.mark.parametrize("story", ["score_factor", "dawid_skene"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_of_judges_on_scales_of_their_own_who_follows_the_order_is_not_named(story):
    """A severe and a lenient judge of 250 answers, one who draws scores, and one who turns the scale around."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=250)
        means, spreads = np.array([5.5, 8.0, 4.0, 6.0, 5.5]), np.array([2.0, 1.0, 0.8, 1.5, -1.5])
        noise = 0.6 * np.abs(spreads) * rng.normal(size=(250, 5))
        scores = np.clip(np.round(means + spreads * quality[:, None] + noise), 1, 10).astype(int)
        scores = np.column_stack([scores, rng.integers(1, 11, 250)])
        frame = pd.DataFrame(scores, columns=["even", "lenient", "severe", "good", "reverse", "random"])
        long = frame.rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
        fit = cp.fit(story, cp.Annotations.from_frame(long, ordered=True), progress=False)
        named = spammers(fit)
        assert set(named) == {"random", "reverse"}
        assert (SAYS_NOTHING in named["random"], BELOW_CHANCE in named["reverse"]) == (True, True)


def test_workers_who_are_known_to_give_one_class_tell_nothing_of_the_others():
    """The shares of the kinds, and how able or wrong workers are, come from the others alone."""
    rng = np.random.default_rng(0)
    looks, below = np.log(rng.random((12, 40))), np.log(rng.random((12, 10)))
    nothing, otherwise = np.log(rng.random((2, 12)))
    known = np.arange(12) < 4
    nothing[known] += 20
    alone = _mixture(looks[4:], below[4:], nothing[4:], otherwise[4:], np.zeros(8, bool))
    np.testing.assert_allclose(_mixture(looks, below, nothing, otherwise, known)[4:], alone, rtol=1e-9)


def test_of_a_healthy_crowd_nobody_is_named():
    found = review(fitted(crowd("none")))
    assert not found["review"].any()
    assert (found["reason"] == "").all()


def test_nobody_is_named_for_a_few_annotations():
    """A worker with one wrong annotation, and one with none, are among those who look."""
    healthy = crowd("none")
    label = fitted(healthy).labels["label"]
    few = pd.DataFrame({"task": [0], "worker": "few", "label": [(label[0] + 1) % 3]})
    table = pd.DataFrame(
        {
            "task": np.asarray(healthy.task),
            "worker": [healthy.workers[j] for j in healthy.worker],
            "label": np.asarray(healthy.label),
        }
    )
    workers = [*healthy.workers, "few", "nobody"]
    fit = fitted(cp.Annotations.from_frame(pd.concat([table, few]), ordered=False, workers=workers))
    found = review(fit)
    assert not found.loc[["few", "nobody"], "review"].any()
    assert probabilities(fit)[-1, LOOKS] == 1.0


def test_who_gives_one_class_where_a_rule_applies_is_not_named():
    """Eight rules that give class 0 or 1 on tasks that are mostly of it, beside ten people."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    rows = []
    for j in range(10):
        tasks = rng.choice(300, 100, replace=False)
        rows += [(t, f"w{j}", int(truth[t] if rng.random() < 0.85 else 1 - truth[t])) for t in tasks]
    for j in range(8):
        applies = rng.random(300) < np.where(truth == j % 2, 0.4, 0.04)
        rows += [(t, f"rule{j}", j % 2) for t in np.flatnonzero(applies)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    assert spammers(fitted(cp.Annotations.from_frame(frame, ordered=False))) == {}


def test_renaming_the_classes_changes_nothing():
    plain = crowd("uniform")
    turned = plain.replace(label=2 - np.asarray(plain.label))
    first, second = (probabilities(fitted(each)) for each in (plain, turned))
    np.testing.assert_allclose(first, second, atol=1e-3)  # both ends of EM, in float32


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_workers_and_summary_have_the_same_names():
    fit = fitted(crowd("uniform"))
    workers = fit.workers
    pd.testing.assert_frame_equal(workers[["review", "reason"]], review(fit))
    names = workers.index[workers["review"]]
    assert all(name in fit.summary().facts["review"] for name in names)
    assert workers.drop(columns=["review", "reason"]).equals(fit.worker_scores())


def test_comparisons_are_looked_at_as_they_were_shown():
    """Judges who give the left side always are named, whatever the order in which pairs were shown."""
    rng = np.random.default_rng(2)
    items = rng.normal(size=12)
    rows = []
    for j in range(10):
        for _ in range(80):
            a, b = rng.choice(12, 2, replace=False)
            better = "left" if rng.random() < 1 / (1 + np.exp(-3 * (items[a] - items[b]))) else "right"
            rows.append((f"i{a}", f"i{b}", f"j{j}", "left" if j < 2 else better))
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
    fit = fitted(cp.Annotations.from_comparisons(frame))
    found = review(fit)
    assert found.index[found["review"]].tolist() == ["j0", "j1"]


def test_whom_the_labels_follow_is_not_said_to_say_nothing():
    """Of a point that is surer of a worker than the labels averaged around it, the opposite is no evidence."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 250)

    def given(i, accuracy):
        return int(truth[i] if rng.random() < accuracy else 1 - truth[i])

    rows = [(i, "many", given(i, 0.8)) for i in range(250)]
    rows += [(i, f"few {rng.integers(1000)}", given(i, 0.75)) for i in range(250) for _ in range(2)]
    fit = cp.fit("dawid_skene", pd.DataFrame(rows, columns=["task", "worker", "label"]), progress=False)
    assert fit.workers.loc["many", "accuracy"] > 0.9
    assert "many" not in spammers(fit)


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_who_agrees_beyond_chance_is_not_said_to_say_nothing_by_labels_of_a_family_that_contradicts_the_own():
    """Five judges who err together on a fifth of the tasks, two who do on others, and one who guesses."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    names, columns = [], []
    for family, size in (("large", 5), ("small", 2)):
        is_misled = rng.random(400) < 0.2
        for j in range(size):
            right = np.where(is_misled & (rng.random(400) < 0.85), False, rng.random(400) < 0.85)
            names.append(f"{family}-{j}")
            columns.append(np.where(right, truth, 1 - truth))
    names.append("guesses")
    columns.append(rng.integers(0, 2, 400))
    frame = pd.DataFrame(
        {"task": np.tile(np.arange(400), 8), "worker": np.repeat(names, 400), "label": np.concatenate(columns)}
    )
    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(frame, ordered=False), shared_error=True, progress=False)
    assert "families" in {finding.code for finding in fit.findings if finding.severity == "warning"}
    assert fit.workers.index[fit.workers["review"]].tolist() == ["guesses"]
    assert fit.workers["reason"].loc[["small-0", "small-1"]].str.startswith("not told: families contradict").all()
