"""Expected gains against enumeration of the annotations, and against asking at random."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from fit_at import fit_at, random_confusions
from scipy.stats import entropy

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.fitted.confusions import mean_confusions
from crowdppl.inference.fitted.next_annotations import information, joint_of, next_annotations


@pytest.fixture(scope="module")
def em():
    annotations = random_annotations(np.random.default_rng(0), n_tasks=6, n_workers=4, n_classes=3, n_rows=11)
    return fit_at("dawid_skene", annotations, random_confusions(annotations))


def one_more(annotations, task, worker, label):
    """The same annotations with one more annotation."""
    row = pd.DataFrame({"task": [task], "worker": [worker], "label": [label]})
    return cp.Annotations.from_frame(
        pd.concat([annotations.to_frame(), row]),
        tasks=annotations.tasks, workers=annotations.workers, classes=annotations.classes,
    )  # fmt: skip


def brute_gain(fit, task, worker):
    """By the label's posterior after each annotation that could come, in each draw."""
    before, k = fit.annotations, fit.annotations.n_classes
    run = jax.jit(lambda draw, data: density(fit.model, draw, data)[0])
    n_draws = next(iter(fit.outcome.draws.values())).shape[1]
    joint = np.zeros((k, k))  # class, annotation
    for d in range(n_draws):
        draw = {name: value[0, d] for name, value in fit.outcome.draws.items()}
        now = np.logaddexp.reduce(np.asarray(run(draw, before), float)[task])
        for label in range(k):
            after = np.asarray(run(draw, one_more(before, task, worker, label)), float)[task]
            joint[:, label] += np.exp(after - now) / n_draws
    answers = joint.sum(0)
    return entropy(joint.sum(1)) - sum(answers[y] * entropy(joint[:, y]) for y in range(k))


@pytest.mark.parametrize("draws", [1, 3])
def test_the_gain_is_the_expected_fall_of_the_entropy(em, draws):
    fit = fit_at("dawid_skene", em.annotations, random_confusions(em.annotations, draws), method="svi")
    found = next_annotations(fit, 100, workers=[1, 3])
    asked_both = {i for i in range(6) if {1, 3} <= set(em.annotations.worker[em.annotations.task == i].tolist())}
    assert sorted(found["task"]) == sorted(set(range(6)) - asked_both)
    for row in found.iloc[[0, 2, -1]].itertuples():
        assert row.expected_gain == pytest.approx(brute_gain(fit, row.task, row.worker), abs=2e-5)


def test_annotations_that_share_more_than_the_class_are_told_by_the_tasks_own(em):
    """The task's annotations bear on its subtype, and so on the next annotation."""
    rng = np.random.default_rng(2)
    parameters = {
        "prevalence": rng.dirichlet(np.ones(3), 1),
        "weights": rng.dirichlet(np.ones(2), (1, 3)),
        "confusion": rng.dirichlet(np.ones(3), (1, 4, 3, 2)),
    }
    fit = fit_at("independent_confusion_subtypes", em.annotations, parameters, subtypes=2)
    found = next_annotations(fit, 2, workers=[0, 2])
    for row in found.itertuples():
        assert row.expected_gain == pytest.approx(brute_gain(fit, row.task, row.worker), abs=2e-5)


def test_each_task_gets_the_worker_who_tells_most_of_those_who_have_not_annotated_it(em):
    annotations = em.annotations
    found = next_annotations(em, 100, workers=range(4)).set_index("task")
    alone = {j: next_annotations(em, 100, workers=[j]).set_index("task")["expected_gain"] for j in range(4)}
    answered = set(zip(annotations.task.tolist(), annotations.worker.tolist(), strict=True))
    for task in range(6):
        free = {j: alone[j][task] for j in range(4) if (task, j) not in answered}
        assert set(free) == {j for j in range(4) if task in alone[j].index}
        assert found.loc[task, "worker"] == max(free, key=free.get)
        assert found.loc[task, "expected_gain"] == pytest.approx(max(free.values()))
    assert found["expected_gain"].is_monotonic_decreasing


def test_a_typical_worker_has_the_average_table(em):
    tables = mean_confusions(em.fitted)
    share = np.bincount(em.annotations.worker, minlength=4) / em.annotations.n_rows
    table = np.einsum("j,jkl->kl", share, tables)
    found = next_annotations(em, 6).set_index("task")
    for i, p in enumerate(em.posterior.astype(float)):
        answers = p @ table
        after = [p * table[:, y] for y in range(3)]
        gain = entropy(p) - sum(m * entropy(q) for m, q in zip(answers, after, strict=True))
        assert found.loc[i, "expected_gain"] == pytest.approx(gain, abs=1e-5)
        assert found.loc[i, "entropy"] == pytest.approx(entropy(p), abs=1e-6)
    assert found.loc[range(6), "annotations"].tolist() == em.annotations.votes().sum(1).tolist()


def test_a_second_annotation_is_worth_what_the_first_leaves(em):
    """All pairs of annotations: I(z; y₁, y₂) − I(z; y₁)."""
    found = next_annotations(em, 12, repeats=2)
    assert found["task"].value_counts().tolist() == [2] * 6
    assert (found["expected_gain"].diff().iloc[1:] <= 1e-9).all()
    tables = mean_confusions(em.fitted)
    share = np.bincount(em.annotations.worker, minlength=4) / em.annotations.n_rows
    table = np.einsum("j,jkl->kl", share, tables)
    for task, gains in found.groupby("task")["expected_gain"]:
        p = em.posterior[task].astype(float)
        both = p[:, None, None] * table[:, :, None] * table[:, None, :]
        total = entropy(p) + entropy(both.sum(0).ravel()) - entropy(both.ravel())
        assert gains.sum() == pytest.approx(total, abs=1e-5)


def test_pairs_of_workers_share_what_they_tell_and_loads_are_kept(em):
    found = next_annotations(em, 100, workers=range(4), repeats=2, most_per_worker=3)
    assert found["worker"].value_counts().max() <= 3
    assert not found.duplicated(["task", "worker"]).any()
    assert (found["expected_gain"].diff().iloc[1:] <= 1e-9).all()
    pairs = found.groupby("task").filter(lambda rows: len(rows) == 2)
    assert len(pairs)
    tables = mean_confusions(em.fitted)
    for task, rows in pairs.groupby("task"):
        p, (one, two) = em.posterior[task].astype(float), (tables[j] for j in rows["worker"])
        both = p[:, None, None] * one[:, :, None] * two[:, None, :]
        total = entropy(p) + entropy(both.sum(0).ravel()) - entropy(both.ravel())
        assert rows["expected_gain"].sum() == pytest.approx(total, abs=1e-4)


def test_information_is_that_of_scipys_entropies():
    joint = np.random.default_rng(0).dirichlet(np.ones(12), 5).reshape(5, 3, 4)
    expected = [entropy(j.ravel(), np.outer(j.sum(1), j.sum(0)).ravel()) for j in joint]
    np.testing.assert_allclose(information(joint), expected)
    np.testing.assert_allclose(information(joint / 5, given=True), np.mean(expected))


def test_unnamed_crowds_can_be_asked_but_not_by_name():
    annotations = cp.Annotations.from_counts([[2, 2], [9, 0], [0, 5]])
    parameters = {"group_confusion": [[[[0.8, 0.2], [0.3, 0.7]]]], "prevalence": [[0.4, 0.6]], "weights": [[1.0]]}
    fit = fit_at("annotator_groups", annotations, parameters, groups=1, truth="shared")
    assert next_annotations(fit, 1)["task"].tolist() == [0]
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        next_annotations(fit, 1, workers=["ann"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, ValueError, "n=0"),
        ({"n": 2.5}, ValueError, "n=2.5"),
        ({"n": 1, "repeats": 0}, ValueError, "repeats=0"),
        ({"n": 1, "repeats": 11}, ValueError, r"can be 3\^11 different"),
        ({"n": 1, "workers": [7]}, cp.AnnotationError, "workers: 7 is not in the annotations"),
        ({"n": 1, "workers": []}, ValueError, "no worker can be asked"),
        ({"n": 1, "most_per_worker": 1}, ValueError, "give workers="),
    ],
)
def test_what_cannot_be_asked_is_said(em, options, error, message):
    with pytest.raises(error, match=message):
        next_annotations(em, **options)


def test_asking_where_it_says_lowers_the_entropy_faster_than_at_random():
    """150 tasks with two annotations each and 60 more to spend; the mean over five random spendings is the rival."""
    rng = np.random.default_rng(0)
    right = np.linspace(0.5, 0.95, 12)
    tables = np.stack([right, 1 - right, 1 - right, right], -1).reshape(12, 2, 2)
    truth = rng.integers(0, 2, 150)

    def observe(task, worker):
        return np.where(rng.random(len(task)) < right[worker], truth[task], 1 - truth[task])

    task, worker = np.repeat(np.arange(150), 2), np.concatenate([rng.permutation(12)[:2] for _ in range(150)])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": observe(task, worker)})
    annotations = cp.Annotations.from_frame(frame, tasks=range(150), workers=range(12), classes=[0, 1])
    fit = fit_at("dawid_skene", annotations, {"confusion": tables[None], "prevalence": [[0.5, 0.5]]})
    mode = {name: jnp.asarray(value[0, 0]) for name, value in fit.outcome.draws.items()}
    after = jax.jit(lambda more: density(fit.model, mode, more).posterior)
    wanted = next_annotations(fit, 60, workers=range(12), most_per_worker=20)

    def entropy_left(pairs):
        task, worker = pairs.T
        new = pd.DataFrame({"task": task, "worker": worker, "label": observe(task, worker)})
        more = cp.Annotations.from_frame(pd.concat([frame, new]), tasks=range(150), workers=range(12), classes=[0, 1])
        return entropy(np.asarray(after(more), dtype=float), axis=1).sum()

    before = entropy(fit.posterior, axis=1).sum()
    chosen = np.mean([entropy_left(wanted[["task", "worker"]].to_numpy()) for _ in range(5)])
    anywhere = []
    for _ in range(5):
        anywhere.append(entropy_left(np.column_stack([rng.permutation(150)[:60], rng.integers(0, 12, 60)])))
    assert before - chosen > 2 * (before - np.mean(anywhere))
    assert before - chosen == pytest.approx(wanted["expected_gain"].sum(), rel=0.35)


def test_one_worker_alone_is_asked_as_in_a_list(em):
    pd.testing.assert_frame_equal(next_annotations(em, 5, workers=2), next_annotations(em, 5, workers=[2]))
    names = ["human", ("model", 1)]
    rows = [(task, names[task % 2], "xyx"[task % 3]) for task in range(6)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    fit = cp.fit("one_coin", annotations, progress=False)
    for name in names:
        found = next_annotations(fit, 5, workers=name)
        assert found["worker"].tolist() == [name] * 3
    with pytest.raises(cp.AnnotationError, match="'hal' is not in"):
        next_annotations(fit, 5, workers="hal")


def test_of_an_average_of_stories_the_joint_probabilities_are_averaged(em):
    other = cp.fit("one_coin", em.annotations, progress=False)
    alone = next_annotations(cp.stack({"a": em, "b": other}, weights={"a": 0.0, "b": 1.0}), 5)
    pd.testing.assert_frame_equal(alone, next_annotations(other, 5))
    both = cp.stack({"a": em, "b": other}, weights={"a": 0.4, "b": 0.6})
    worker = np.array([1])
    joints = [joint_of(fit, worker, np.ones(1)) for fit in (em, other)]
    mean = 0.4 * joints[0] + 0.6 * joints[1]
    np.testing.assert_allclose(joint_of(both, worker, np.ones(1)), mean, rtol=1e-6)
    found = next_annotations(both, 3, workers=em.annotations.workers[1])
    gains = np.sort(information(mean))[::-1]
    assert found["expected_gain"].max() <= gains[0] * (1 + 1e-6)


def test_what_takes_one_story_names_the_fit_of_an_average_that_can_be_given():
    stack = cp.fit("auto", cp.load_dataset("toy"), progress=False)
    name = next(iter(stack.fits))
    with pytest.raises(TypeError, match=rf"got an average of .*; give one of its fits, such as fit\.fits\['{name}'\]"):
        cp.loo(stack)
