"""Draws around a mode: of much data over the tasks with uncertain labels alone."""

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.inference.densities import augmented
from crowdppl.inference.engines import around_mode


@pytest.fixture(scope="module")
def fit():
    crowd = {"n_tasks": 900, "n_workers": 12, "n_classes": 3, "annotations_per_task": 11}
    return cp.fit("dawid_skene", cp.simulate("dawid_skene", **crowd, seed=0)[0].without_gold(), progress=False)


def of_all_tasks(fit):
    return fit.fitted.replace(method="em").with_uncertainty.draws["confusion"][0]


def test_draws_over_uncertain_tasks_alone_spread_like_those_over_all(fit, monkeypatch):
    monkeypatch.setattr(around_mode, "ENOUGH", 10**9)
    every = of_all_tasks(fit)
    assert 0.1 < (fit.posterior.max(-1) < around_mode.SURE).mean() < 0.5
    monkeypatch.setattr(around_mode, "LITTLE", 100)
    some = of_all_tasks(fit)
    assert len(some) == len(every) == 200
    assert np.abs(some - every).max() > 0  # another way
    scale = every.std(0)
    np.testing.assert_allclose((some.mean(0) - every.mean(0)) / scale, 0, atol=0.5)  # 5 errors of both means, 0.07 each
    assert 0.9 < np.median(some.std(0) / scale) < 1.1  # its error is 0.01: a standard deviation's is 0.05 each


def test_the_few_steps_that_sure_labels_need_spread_draws_as_all_steps_do(monkeypatch):
    crowd = {"n_tasks": 1000, "n_workers": 10, "n_classes": 3, "annotations_per_task": 10, "seed": 1}
    sure = cp.fit("dawid_skene", cp.simulate("dawid_skene", **crowd)[0].without_gold(), progress=False)
    steps = []
    taken = augmented.Steps.taken
    monkeypatch.setattr(augmented.Steps, "taken", lambda *given: steps.append(given[4]) or taken(*given))
    few, n_few = of_all_tasks(sure), len(steps)
    monkeypatch.setattr(around_mode, "ENOUGH", 10**9)
    every = of_all_tasks(sure)
    assert n_few < len(steps) - n_few == augmented.STEPS
    assert 0.95 < np.median(few.std(0) / every.std(0)) < 1.05
    np.testing.assert_allclose((few.mean(0) - every.mean(0)) / every.std(0), 0, atol=0.5)


def test_several_draws_of_a_way_spread_like_draws_with_ways_of_their_own(fit, monkeypatch):
    every = of_all_tasks(fit)
    monkeypatch.setattr(augmented, "LITTLE", 0)
    some = of_all_tasks(fit)
    scale = every.std(0)
    np.testing.assert_allclose((some.mean(0) - every.mean(0)) / scale, 0, atol=0.7)  # fewer of them are independent
    assert 0.9 < np.median(some.std(0) / scale) < 1.1


def test_where_every_label_is_sure_tables_still_have_their_spread(fit, monkeypatch):
    told = cp.fit("dawid_skene", fit.annotations, gold=fit.labels["label"], progress=False)
    every = of_all_tasks(told)
    monkeypatch.setattr(around_mode, "LITTLE", 100)
    assert told.posterior.max(-1).min() == 1
    some = of_all_tasks(told)
    assert 0.9 < np.median(some.std(0) / every.std(0)) < 1.1
