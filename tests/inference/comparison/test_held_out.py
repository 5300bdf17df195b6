"""Predictions of held-out annotations, against sums over the true classes written out."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from fit_at import fit_at
from hypothesis import given
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data.arrays import counts
from crowdppl.inference.comparison.cross_validation import annotation_folds, task_folds
from crowdppl.inference.comparison.held_out import (
    predict_annotations,
    predict_tasks,
    reads_counts,
    refit_without,
)
from crowdppl.inference.densities.model import Model
from crowdppl.inference.fitted.pointwise import leave_one_annotation_out, rounds


@pytest.fixture(scope="module")
def fit():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=12, n_workers=4, n_classes=3, annotations_per_task=3, seed=1)
    return cp.fit("dawid_skene", annotations, method="svi", max_iterations=200, draws=7, seed=2, progress=False)


def log_p(fit, draw, rows, task):
    """Log-probability of the task's annotations in ``rows`` in one draw, summed over the true classes by hand."""
    prevalence = fit.outcome.draws["prevalence"][0, draw].astype(float)
    confusion = fit.outcome.draws["confusion"][0, draw].astype(float)
    annotations = fit.annotations
    p = prevalence.copy()
    for a in rows:
        if annotations.task[a] == task:
            p = p * confusion[annotations.worker[a], :, annotations.label[a]]
    return np.log(p.sum())


def counted(fit):
    """What was fitted, with a count of one for each row."""
    return fit.fitted.with_data(fit.annotations.replace(gold=None, count=counts(fit.annotations)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dependent(cp.Confusion):
    """Confusion matrices that do not say that annotations are independent given the class, so that none is assumed."""

    independent: ClassVar[bool] = False


def dependent_dawid_skene(annotations, *, truth_prior=None):
    """Dawid and Skene's story with that emission."""
    with numpyro.plate("worker", annotations.n_workers):
        confusion = numpyro.sample("confusion", dist.Dirichlet(jnp.ones((3, 3))).to_event(1))
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, Dependent(confusion), annotations)


def row_by_row(fitted):
    """The same draws of the same density, by a story whose emission has its rows left out one by one."""
    return fitted.replace(model=Model(dependent_dawid_skene))


def subtyped():
    """A draw of a story that sums out each task's subtype, so that annotations depend on each other given the class."""
    annotations, parameters = cp.simulate(
        "independent_confusion_subtypes", n_tasks=9, n_workers=4, n_classes=2, subtypes=2, seed=4
    )
    draws = {name: np.asarray(value)[None] for name, value in parameters.items() if name != "truth"}
    return fit_at("independent_confusion_subtypes", annotations, draws, subtypes=2)


def test_of_annotations_that_depend_on_each_other_given_the_class_each_is_left_out_of_the_density():
    fit = subtyped()
    fitted = counted(fit)
    task = np.asarray(fitted.annotations.task)
    found = np.asarray(leave_one_annotation_out(fitted, rounds(task, np.ones(len(task), bool))))[0, 0]
    whole = fitted.log_likelihood()[0, 0]
    for a in range(len(task)):
        part = fitted.with_data(fitted.annotations.replace(count=(np.arange(len(task)) != a).astype(np.float32)))
        assert found[a] == pytest.approx(whole[task[a]] - part.log_likelihood()[0, 0, task[a]], abs=2e-5)


@pytest.mark.parametrize(
    ("story", "options"), [("two_coin", {}), ("difficulty", {"kind": "fixed"}), ("independent_confusion_subtypes", {})]
)
def test_predictions_of_a_held_out_annotation_sum_to_one_over_its_values(story, options):
    """Also where the story reads the vote counts: the held-out annotation is not among them."""
    annotations, _ = cp.simulate("two_coin", n_tasks=20, n_workers=4, seed=3)
    fitted = cp.fit(story, annotations, tolerance=1e-3, progress=False, **options).fitted
    task = np.asarray(annotations.task)
    held = annotation_folds(annotations, 4, np.random.default_rng(0))[0]
    total = 0.0
    for value in (0, 1):
        label = np.where(held > 0, value, annotations.label).astype(np.int32)
        seen = fitted.with_data(fitted.data.replace(label=label, count=1 - held))
        total = total + np.exp(np.asarray(predict_annotations(seen, rounds(task, held > 0))))
    np.testing.assert_allclose(total[held > 0], 1, atol=1e-5)


def test_stories_that_read_the_vote_counts_are_found(fit):
    assert not reads_counts(fit.fitted)
    assert not reads_counts(subtyped().fitted)
    binary, _ = cp.simulate("two_coin", n_tasks=10, n_workers=3, seed=0)
    assert reads_counts(cp.fit("difficulty", binary, kind="fixed", max_iterations=2, progress=False).fitted)


@pytest.mark.parametrize("independent", [True, False])
def test_an_annotation_left_out_is_predicted_given_the_others_to_its_task(fit, independent):
    fitted = counted(fit)
    fitted = fitted if independent else row_by_row(fitted)
    task = np.asarray(fitted.annotations.task)
    found = np.asarray(leave_one_annotation_out(fitted, rounds(task, np.ones(len(task), bool))))
    assert found.shape == (1, 7, len(task))
    every = range(len(task))
    for draw in (0, 6):
        for a in every:
            others = [b for b in every if b != a]
            expected = log_p(fit, draw, every, task[a]) - log_p(fit, draw, others, task[a])
            assert found[0, draw, a] == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("independent", [True, False])
def test_held_out_annotations_are_predicted_given_the_seen_ones_averaged_over_draws(fit, independent):
    fitted = counted(fit)
    fitted = fitted if independent else row_by_row(fitted)
    task = np.asarray(fitted.annotations.task)
    held = annotation_folds(fit.annotations, 2, np.random.default_rng(0))[0]
    number = rounds(task, held > 0)
    assert number.max() == 1  # some task has two held-out annotations, each predicted given the seen ones alone
    seen = fitted.with_data(fitted.annotations.replace(count=1 - held))
    found = np.asarray(predict_annotations(seen, number))
    shown = np.flatnonzero(held == 0)
    for a in np.flatnonzero(held):
        ratios = [log_p(fit, s, [*shown, a], task[a]) - log_p(fit, s, shown, task[a]) for s in range(7)]
        assert found[a] == pytest.approx(np.log(np.mean(np.exp(ratios))), abs=2e-5)
    assert (found[held == 0] == 0).all()


def test_a_held_out_task_is_predicted_with_its_truth_summed_out(fit):
    fitted, every = counted(fit), range(fit.annotations.n_rows)
    held = np.where(np.isin(fitted.annotations.task, [0, 11]), 1, 0).astype(np.float32)
    found = np.asarray(predict_tasks(fitted.with_data(fitted.annotations.replace(count=1 - held)), held))
    for task in (0, 11):
        expected = np.log(np.mean([np.exp(log_p(fit, s, every, task)) for s in range(7)]))
        assert found[task] == pytest.approx(expected, abs=2e-5)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_rows_of_one_round_share_no_task_and_every_chosen_row_has_a_round(rows):
    task, chosen = (np.array(column) for column in zip(*sorted(rows), strict=True))
    number = rounds(task, chosen)
    assert ((number >= 0) == chosen).all()
    for r in range(number.max() + 1):
        in_round = task[number == r]
        assert len(set(in_round)) == len(in_round)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=3, max_size=15),
    st.integers(2, 4),
    st.integers(0, 9),
)
def test_folds_of_annotations_hold_each_annotation_once_and_spread_each_task(rows, folds, seed):
    task, count = (np.array(column) for column in zip(*sorted(rows), strict=True))
    if count.sum() < folds:
        return
    table = {"task": task, "worker": np.arange(len(task)), "label": np.arange(len(task)) % 2, "count": count}
    annotations = cp.Annotations.from_frame(pd.DataFrame(table), count="count", classes=[0, 1])
    held = annotation_folds(annotations, folds, np.random.default_rng(seed))
    np.testing.assert_array_equal(held.sum(0), counts(annotations))
    for i in range(annotations.n_tasks):
        per_fold = held[:, np.asarray(annotations.task) == i].sum(1)
        assert per_fold.max() - per_fold.min() <= 1


def test_folds_of_tasks_hold_whole_tasks(fit):
    held = task_folds(fit.annotations, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(held.sum(0), counts(fit.annotations))
    task = np.asarray(fit.annotations.task)
    assert all(len(set(map(tuple, (held[:, task == i] > 0).T))) == 1 for i in range(12))


def test_a_refit_without_rows_is_a_fit_of_the_table_without_them():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=60, n_workers=5, n_classes=3, seed=3, diagonal=6.0, gold=0.0)
    whole = cp.fit("dawid_skene", annotations, tolerance=1e-9, max_iterations=300, progress=False)
    held = annotation_folds(annotations, 5, np.random.default_rng(0))[0]
    found = refit_without(whole.fitted, held)
    frame = annotations.to_frame()[held == 0]
    rest = cp.Annotations.from_frame(
        frame, tasks=list(annotations.tasks), workers=list(annotations.workers), classes=list(annotations.classes)
    )
    again = cp.fit("dawid_skene", rest, tolerance=1e-9, max_iterations=300, progress=False)
    for name in ("prevalence", "confusion"):
        np.testing.assert_allclose(found.draws[name][0, 0], again.outcome.draws[name][0, 0], atol=2e-4)
