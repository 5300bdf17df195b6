"""Leave-one-out: against ArviZ, against refits, and what is said where it cannot be trusted."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.storage.arviz_groups import is_tree


@pytest.fixture(scope="module")
def fit():
    return cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", max_iterations=500, progress=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by", ["task", "annotation"])
def test_leave_one_out_is_arvizs_own_of_the_fits_log_likelihood(fit, by):
    import arviz as az

    theirs = az.loo(fit.to_idata(log_likelihood=by), pointwise=True, reff=1.0)
    ours = cp.loo(fit, by=by)
    elpd_i, p = (theirs.elpd_i, theirs.p) if is_tree() else (theirs.loo_i, theirs.p_loo)
    np.testing.assert_allclose(ours.values, np.asarray(elpd_i), rtol=1e-5)
    np.testing.assert_allclose(ours.pareto_k, np.asarray(theirs.pareto_k), atol=1e-4)
    assert ours.p == pytest.approx(float(p), rel=1e-3)
    tasks = [unit[0] for unit in ours.units] if by == "annotation" else ours.units.tolist()
    assert tasks == (fit.annotations.to_frame()["task"].tolist() if by == "annotation" else list(fit.annotations.tasks))


def test_the_total_and_its_standard_error_are_of_the_units(fit):
    found = cp.loo(fit)
    assert found.elpd == pytest.approx(found.table["elpd"].sum())
    assert found.se == pytest.approx(np.sqrt(45) * found.table["elpd"].std(ddof=0))


def test_units_of_high_pareto_k_are_named_the_highest_first_and_reloo_refits_without_them(fit):
    found = cp.loo(fit)
    high = found.high_k
    assert len(high) == found.n_high_k == (found.pareto_k > found.good_k).sum() > 0
    assert high["pareto_k"].is_monotonic_decreasing
    exact = cp.loo(fit, reloo=True)
    assert exact.high_k.empty
    kept = found.pareto_k <= found.good_k
    np.testing.assert_array_equal(exact.values[kept], found.values[kept])
    assert (exact.values[~kept] != found.values[~kept]).all()


def test_a_comparison_warns_once_of_all_its_stories_and_says_how_many_refits_would_mend_it(fit):
    high = cp.loo(fit).high_k
    with pytest.warns(cp.ConvergenceWarning) as told:
        cp.compare({"first": fit, "second": fit})
    (message,) = [str(one.message) for one in told if one.category is cp.ConvergenceWarning]
    for name in ("first", "second"):
        assert f"{len(high)} of 45 tasks under {name}, as {high.index[0]} ({high['pareto_k'].iloc[0]:.2f})" in message
    assert f"reloo=True) refits without each of them, {2 * len(high)} times in all; method='kfold'" in message


@pytest.mark.parametrize("call", [cp.compare, cp.stack])
def test_the_warning_of_high_pareto_k_stands_at_the_users_own_line(fit, call):
    with pytest.warns(cp.ConvergenceWarning, match="Pareto k is high") as told:
        call({"first": fit, "second": fit})
    assert {one.filename for one in told if one.category is cp.ConvergenceWarning} == {__file__}


def test_a_comparison_does_not_warn_where_no_pareto_k_is_high():
    drawn, _ = cp.simulate("one_coin", n_tasks=60, n_workers=5, seed=0)
    coins = cp.fit("one_coin", drawn, method="svi", max_iterations=500, progress=False)
    assert cp.loo(coins).high_k.empty
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.compare([coins, coins])


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


@pytest.mark.parametrize(("method", "options"), [("em", {}), ("svi", {"guide": "delta"})])
def test_a_fit_to_a_point_is_refused(fit, method, options):
    """All draws of EM, or of a delta guide, are one point, whose likelihood is not of held-out data."""
    at_a_point = cp.fit("one_coin", fit.annotations, method=method, max_iterations=5, progress=False, **options)
    with pytest.raises(
        ValueError, match=rf"to a point by method='{method}'.*method='nuts', or 'svi'.*cp\.kfold\(fit\)"
    ):
        cp.loo(at_a_point)


def test_a_story_that_takes_difficulties_from_the_vote_counts_is_refused_and_compared_by_folds():
    annotations, _ = cp.simulate("two_coin", n_tasks=20, n_workers=4, seed=1)
    by_votes = cp.fit("difficulty", annotations, kind="fixed", progress=False)
    drawn = by_votes.fitted.replace(method="svi", outcome=by_votes.outcome._replace(is_point=False))
    with pytest.raises(ValueError, match=r"from the vote counts.*cp\.kfold"):
        cp.loo(drawn)
    assert cp.compare([drawn, drawn], refit_by="em", progress=False)["pareto_k"].isna().all()


def test_another_unit_than_tasks_and_annotations_is_refused(fit):
    with pytest.raises(ValueError, match=r"unknown value of by 'worker'\. There are: task, annotation"):
        cp.loo(fit, by="worker")
    with pytest.raises(ValueError, match=r"unknown value of by 'worker'\. There are: task, annotation"):
        cp.kfold(fit, by="worker")


@pytest.mark.parametrize("folds", [1, 316, 2.5])
def test_folds_that_cannot_be_are_refused(fit, folds):
    with pytest.raises(ValueError, match=f"folds={folds}: a whole number from 2 to 315"):
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
