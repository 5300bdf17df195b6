"""Leave-one-out: against ArviZ, against refits, and what is said where it cannot be trusted."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.storage.arviz_data import is_tree


@pytest.fixture(scope="module")
def fit():
    return cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", max_iterations=500, progress=False)


@pytest.mark.filterwarnings("ignore")
def test_leave_one_task_out_is_arviz_own_of_the_fit(fit):
    import arviz as az

    theirs = az.loo(fit.idata, pointwise=True, reff=1.0)
    ours = cp.loo(fit)
    elpd_i, p = (theirs.elpd_i, theirs.p) if is_tree() else (theirs.loo_i, theirs.p_loo)
    np.testing.assert_allclose(ours.values, np.asarray(elpd_i), rtol=1e-5)
    np.testing.assert_allclose(ours.pareto_k, np.asarray(theirs.pareto_k), atol=1e-4)
    assert ours.p == pytest.approx(float(p), rel=1e-3)
    assert ours.units.tolist() == list(fit.annotations.tasks)


def test_the_total_and_its_standard_error_are_of_the_units(fit):
    found = cp.loo(fit)
    assert found.elpd == pytest.approx(found.table["elpd"].sum())
    assert found.se == pytest.approx(np.sqrt(45) * found.table["elpd"].std(ddof=0))


def test_units_over_the_threshold_are_named_worst_first_and_refits_mend_them(fit):
    found = cp.loo(fit)
    n_high_k = found.high_k
    assert len(n_high_k) == (found.pareto_k > found.good_k).sum() > 0
    assert n_high_k["pareto_k"].is_monotonic_decreasing
    with pytest.warns(cp.ConvergenceWarning, match=rf": {n_high_k.index[0]} \(.*reloo=True.*method='kfold'"):
        cp.compare([fit, fit])
    mended = cp.loo(fit, reloo=True)
    assert mended.high_k.empty
    kept = found.pareto_k <= found.good_k
    np.testing.assert_array_equal(mended.values[kept], found.values[kept])
    assert (mended.values[~kept] != found.values[~kept]).all()


def test_leave_one_annotation_out_counts_a_row_as_often_as_it_stands_for_annotations():
    rows = pd.DataFrame({"task": [0, 0, 1, 1], "worker": list("xyxy"), "label": [0, 1, 0, 0], "count": [3, 1, 2, 1]})
    counted = cp.Annotations.from_frame(rows, count="count")
    repeated = cp.Annotations.from_frame(rows.loc[rows.index.repeat(rows["count"])].drop(columns="count"))
    few, many = (
        cp.loo(cp.fit("one_coin", a, method="svi", max_iterations=50, draws=50, progress=False), by="annotation")
        for a in (counted, repeated)
    )
    assert (len(few.values), len(many.values)) == (4, 7)
    assert few.elpd == pytest.approx(many.elpd, abs=1e-3)


def test_a_fit_without_draws_is_told_what_to_do():
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
    with pytest.raises(ValueError, match=r"method='nuts' or 'svi'.*kfold"):
        cp.loo(fit)


def test_another_unit_than_tasks_and_annotations_is_refused(fit):
    with pytest.raises(ValueError, match="by='worker': 'task' or 'annotation'"):
        cp.loo(fit, by="worker")
    with pytest.raises(ValueError, match="by='worker': 'annotation' or 'task'"):
        cp.kfold(fit, by="worker")


@pytest.mark.parametrize("folds", [1, 316, 2.5])
def test_folds_that_cannot_be_are_refused(fit, folds):
    with pytest.raises(ValueError, match=f"folds={folds}.*2 to the 315 annotations"):
        cp.kfold(fit, folds=folds, progress=False)


def test_tasks_without_annotations_are_no_units():
    frame = {"task": ["a", "a", "b"], "worker": ["x", "y", "x"], "label": [0, 1, 0]}
    annotations = cp.Annotations.from_frame(pd.DataFrame(frame), tasks=["a", "b", "silent"])
    fit = cp.fit("dawid_skene", annotations, method="svi", max_iterations=50, draws=50, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cp.loo(fit).units.tolist() == ["a", "b"]
        assert cp.kfold(fit, by="task", folds=2, refit_by="em", progress=False).units.tolist() == ["a", "b"]
        assert cp.loo(fit, by="annotation").units.tolist() == [("a", "x", 0), ("a", "y", 1), ("b", "x", 0)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_leave_one_task_out_is_what_exact_refits_say_on_anesthesia():
    """Within the standard error of the difference, task by task, over the 45 refits by NUTS."""
    priors = {"diagonal": 4.8, "off_diagonal": 3.2 / 3, "truth_prior": cp.Prevalence(3.0)}
    annotations = cp.load_dataset("anesthesia")
    fit = cp.fit("dawid_skene", annotations, method="nuts", warmup=300, draws=300, progress=False, **priors)
    guessed = cp.loo(fit)
    exact = cp.kfold(fit, by="task", folds=45, progress=False)
    assert exact.units.tolist() == guessed.units.tolist()
    difference = guessed.values - exact.values
    assert abs(difference.sum()) < guessed.se
    assert np.abs(difference[guessed.pareto_k <= guessed.good_k]).max() < 0.5
