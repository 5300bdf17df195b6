"""Simulated data: the design that was asked for, and the story's own frequencies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError


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
