"""Simulated data: the design that was asked for, and the story's own frequencies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.inference.densities import programs


def test_every_worker_annotates_every_task_by_default():
    annotations, parameters = cp.simulate("dawid_skene", n_tasks=7, n_workers=3, n_classes=4)
    assert annotations.to_frame().groupby("task")["worker"].agg(list).tolist() == [[0, 1, 2]] * 7
    assert {name: value.shape for name, value in parameters.items()} == {"prevalence": (4,), "confusion": (3, 4, 4)}
    assert (annotations.gold >= 0).all()


def test_each_task_is_annotated_by_as_many_different_workers_as_asked_for():
    annotations, _ = cp.simulate("one_coin", n_tasks=500, n_workers=20, annotations_per_task=4)
    by_task = annotations.to_frame().groupby("task")["worker"]
    assert (by_task.size() == 4).all()
    assert (by_task.nunique() == 4).all()


def test_a_tail_gives_the_first_worker_the_largest_share():
    """One annotation a task: shares are proportional to 1 / rank, within five standard errors."""
    annotations, _ = cp.simulate("one_coin", n_tasks=20_000, n_workers=10, annotations_per_task=1, tail=1.0)
    share = np.bincount(annotations.worker, minlength=10) / 20_000
    expected = 1 / np.arange(1, 11) / (1 / np.arange(1, 11)).sum()
    np.testing.assert_allclose(share, expected, atol=5 * 0.5 / np.sqrt(20_000))


def test_gold_is_given_for_its_share_and_is_the_truth_that_was_annotated():
    kwargs = {"n_tasks": 200, "n_workers": 4, "seed": 3, "parameters": {"ability": np.tile([0.0, 1.0], (4, 1))}}
    some, _ = cp.simulate("one_coin", gold=0.25, **kwargs)
    every, _ = cp.simulate("one_coin", gold=1.0, **kwargs)
    known = some.gold >= 0
    assert known.sum() == 50
    np.testing.assert_array_equal(some.gold[known], every.gold[known])
    np.testing.assert_array_equal(every.label, every.gold[every.task])  # workers who are always right
    assert cp.simulate("one_coin", gold=0.0, **kwargs)[0].gold is None


def test_annotations_have_the_frequencies_of_the_given_tables():
    """8,000 annotations of each worker: shares within five standard errors."""
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (2, 3))
    annotations, parameters = cp.simulate(
        "dawid_skene",
        n_tasks=8000,
        n_workers=2,
        n_classes=3,
        parameters={"confusion": confusion, "prevalence": [0.2, 0.3, 0.5]},
    )
    np.testing.assert_allclose(parameters["confusion"], confusion, rtol=1e-6)
    np.testing.assert_allclose(np.bincount(annotations.gold) / 8000, [0.2, 0.3, 0.5], atol=5 * 0.5 / np.sqrt(8000))
    for worker in range(2):
        for truth in range(3):
            rows = (annotations.worker == worker) & (annotations.gold[annotations.task] == truth)
            share = np.bincount(annotations.label[rows], minlength=3) / rows.sum()
            np.testing.assert_allclose(share, confusion[worker, truth], atol=5 * 0.5 / np.sqrt(rows.sum()))


def test_the_same_seed_gives_the_same_data():
    first, again, other = (
        cp.simulate("two_coin", n_tasks=50, n_workers=9, annotations_per_task=3, seed=s)[0] for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.label, again.label)
    np.testing.assert_array_equal(first.worker, again.worker)
    assert (first.worker != other.worker).any()


def test_another_value_of_a_number_needs_no_program_of_its_own_and_a_wrong_one_is_refused():
    sizes = {"n_tasks": 21, "n_workers": 4, "n_classes": 2}
    few = cp.simulate("dawid_skene", diagonal=8.0, **sizes)[1]["confusion"]
    before = list(programs._kept)
    many = cp.simulate("dawid_skene", diagonal=800, **sizes)[1]["confusion"]
    assert list(programs._kept) == before
    assert np.diagonal(many, axis1=1, axis2=2).min() > 0.95 > np.diagonal(few, axis1=1, axis2=2).min()
    with pytest.raises(cp.StoryError, match="diagonal=-1: a finite number above 0 is needed"):
        cp.simulate("dawid_skene", diagonal=-1, **sizes)


def test_a_truth_prior_sees_the_features_and_the_annotations_keep_them():
    """20,000 tasks: shares of the classes at either value of the feature within five standard errors."""
    x = np.repeat([[-1.0], [1.0]], 10_000, axis=0)

    def by_feature(annotations):
        return jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(annotations.features), annotations.features], axis=1))

    annotations, parameters = cp.simulate(
        "one_coin", n_tasks=20_000, n_workers=1, features=x, truth_prior=by_feature, seed=5
    )
    assert set(parameters) == {"ability"}
    assert annotations.features.dtype == np.float32
    np.testing.assert_array_equal(annotations.features, x)
    for value in (-1.0, 1.0):
        share = annotations.gold[x[:, 0] == value].mean()
        assert abs(share - 1 / (1 + np.exp(-value))) < 5 * 0.5 / np.sqrt(10_000)


def test_a_story_sees_the_features_of_workers():
    def known_ability(annotations, *, truth_prior=None):
        right = annotations.worker_features[:, 0, None, None]
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Confusion(jnp.where(jnp.eye(2, dtype=bool), right, 1 - right)), annotations)

    annotations, _ = cp.simulate(known_ability, n_tasks=50, n_workers=2, worker_features=[[1.0], [0.0]])
    right = annotations.label == annotations.gold[annotations.task]
    assert right[annotations.worker == 0].all()
    assert not right[annotations.worker == 1].any()
    np.testing.assert_array_equal(annotations.worker_features, [[1.0], [0.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": np.zeros((4, 2))}, r"features: expected shape \(5, ...\).* got \(4, 2\)"),
        ({"features": np.zeros(5)}, r"features: expected shape \(5, ...\).* got \(5,\)"),
        ({"features": np.full((5, 1), np.nan)}, "features, task 0, column 0: nan is not a finite"),
        ({"worker_features": np.zeros((5, 2))}, r"worker_features: expected shape \(3, D\).* got \(5, 2\)"),
        ({"worker_features": np.zeros((3, 2, 2))}, r"worker_features: expected shape \(3, D\).* got \(3, 2, 2\)"),
    ],
)
def test_features_of_another_shape_are_refused_with_both_shapes(options, message):
    with pytest.raises(AnnotationError, match=message):
        cp.simulate("one_coin", n_tasks=5, n_workers=3, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"annotations_per_task": 4}, ValueError, "annotations_per_task=4: 1 to 3"),
        ({"n_classes": 1}, ValueError, "n_classes=1: a whole number from 2"),
        ({"n_tasks": 0}, ValueError, "n_tasks=0"),
        ({"gold": 1.5}, ValueError, "gold=1.5: a finite number from 0 to 1"),
        ({"tail": -1}, ValueError, "tail=-1: a finite number from 0 is"),
        ({"parameters": {"confuson": 1}}, UnknownNameError, "confusion"),
        ({"parameters": {"prevalence": [1.0]}}, ValueError, r"'prevalence' has shape \(1,\); \(2,\) is needed"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        cp.simulate("dawid_skene", **({"n_tasks": 5, "n_workers": 3} | options))


EFFECTS = [1.6, -1.6, 0.8, 0.0, -0.8]


def compared(story="one_coin", **options):
    common = {"n_tasks": 1500, "n_workers": 6, "items": 5, "annotations_per_task": 3, "seed": 2}
    given = {"item_effect": EFFECTS, "item_scale": 1.0, **options.pop("parameters", {})}
    return cp.simulate(story, parameters=given, **common, **options)


def test_comparisons_are_of_two_items_each_in_both_orders():
    annotations, parameters = compared()
    assert list(annotations.classes) == ["left", "right"]
    assert set(parameters) == {"item_effect", "item_scale", "ability"}
    left, right = np.asarray(annotations.sides).T
    assert (left != right).all()
    assert set(np.bincount(np.r_[left, right], minlength=5) > 400) == {True}
    first = np.r_[True, np.diff(annotations.task) > 0]
    assert not annotations.mirrored[first].any()
    assert abs(annotations.mirrored[~first].mean() - 0.5) < 5 * 0.5 / np.sqrt((~first).sum())


def test_a_worker_who_takes_what_stands_left_takes_it_in_either_order():
    left_alone = np.tile([[1.0, 0.0], [1.0, 0.0]], (6, 1, 1))
    annotations, _ = compared("dawid_skene", parameters={"confusion": left_alone})
    np.testing.assert_array_equal(annotations.label, annotations.mirrored.astype(int))


def test_truths_of_comparisons_follow_scores_and_ties():
    """1,500 tasks: how often the better item is the true one, and no tie, is within five standard errors of the sum."""
    annotations, _ = compared(n_classes=3, parameters={"tie": 0.2})
    assert list(annotations.classes) == ["left", "right", "tie"]
    scores = np.asarray(EFFECTS)[np.asarray(annotations.sides)]
    ties = np.exp(0.2 + scores.mean(1))
    expected = np.exp(scores.max(1)) / (np.exp(scores).sum(1) + ties)
    right = annotations.gold == np.argmax(scores, axis=1)
    assert abs(right.mean() - expected.mean()) < 5 * 0.5 / np.sqrt(1500)


def test_a_fit_of_simulated_comparisons_has_their_ranking():
    """Items' scores lie 0.8 log-odds apart, and the standard error of each is about a tenth of that."""
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=1500, n_workers=6, items=list("abcde"), annotations_per_task=3, gold=0.0, seed=2,
        parameters={"item_effect": EFFECTS, "item_scale": 1.0, "ability": np.full((6, 2), [0.1, 0.9])},
    )  # fmt: skip
    ranking = cp.fit("one_coin", annotations, progress=False).ranking
    assert list(ranking.index) == [name for _, name in sorted(zip(EFFECTS, "abcde", strict=True), reverse=True)]
    np.testing.assert_allclose(ranking["score"].loc[list("abcde")], EFFECTS, atol=0.4)


def test_questions_have_truths_of_their_own_and_each_worker_of_a_task_answers_all():
    """2,000 tasks: the classes' shares of each question within five standard errors."""
    x = np.random.default_rng(0).normal(size=(2000, 2))
    annotations, parameters = cp.simulate(
        "one_coin", n_tasks=2000, n_workers=5, questions=["helpful", "safe"], annotations_per_task=2, features=x,
        parameters={"prevalence": [[0.2, 0.8], [0.9, 0.1]]},
    )  # fmt: skip
    assert parameters["ability"].shape == (5, 2)
    assert list(annotations.questions) == ["helpful", "safe"]
    workers = annotations.to_frame().groupby(["task", "question"])["worker"].agg(frozenset).unstack("question")
    assert (workers["helpful"] == workers["safe"]).all()
    assert {len(of) for of in workers["safe"]} == {2}
    for name, share in (("helpful", 0.8), ("safe", 0.1)):
        one = annotations.of_question(name)
        assert abs(one.gold.mean() - share) < 5 * 0.5 / np.sqrt(2000)
        np.testing.assert_allclose(one.features, x, rtol=1e-6)


def test_truths_of_questions_that_depend_on_each_other_are_drawn_together():
    """Two kinds of tasks, of one class in both questions nearly always: without kinds half of them would agree."""
    kinds = np.array([[[0.95, 0.05]] * 2, [[0.05, 0.95]] * 2])
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=500, n_workers=2, questions=2, truth_prior=cp.CorrelatedQuestions(kinds=2),
        parameters={"kind_share": [0.5, 0.5], "kind_prevalence": kinds},
    )  # fmt: skip
    truths = annotations.gold.reshape(500, 2)
    assert (truths[:, 0] == truths[:, 1]).mean() > 0.8


def test_a_fit_of_simulated_questions_has_their_truths():
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=150, n_workers=6, questions=["helpful", "safe"], seed=3,
        parameters={"ability": np.full((6, 2), [0.1, 0.9])},
    )  # fmt: skip
    labels = cp.fit("one_coin", annotations.replace(gold=None), progress=False).labels
    assert labels.index.names == ["task", "question"]
    assert (labels["label"].to_numpy() == annotations.gold).mean() > 0.95  # votes of six who are right in nine of ten


@pytest.mark.parametrize(
    ("story", "options", "message"),
    [
        ("one_coin", {"items": 1}, "items=1"),
        ("one_coin", {"items": ["a"]}, r"len\(items\)=1"),
        ("one_coin", {"items": 3, "n_classes": 4}, "n_classes=4: of comparisons it is 2, or 3 with ties"),
        ("one_coin", {"items": 3, "questions": 2}, "questions=2: comparisons have one question"),
        ("one_coin", {"questions": 0}, "questions=0"),
        ("graded_response", {"items": 3}, "graded_response is of ordered classes"),
    ],
)
def test_items_and_questions_that_cannot_be_are_refused(story, options, message):
    with pytest.raises(ValueError, match=message):
        cp.simulate(story, n_tasks=5, n_workers=3, **options)
