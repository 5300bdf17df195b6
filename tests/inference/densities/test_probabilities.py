"""Models' probabilities as they come: tables of all kinds, mistakes in them, and what a fit keeps of them."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, Annotations
from crowdppl.inference.densities.probabilities import REFERENCE, with_probabilities

GOOD = pd.DataFrame([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], index=["t1", "t2", "t3"], columns=["x", "y"])


@pytest.fixture
def annotations():
    return Annotations.from_dict({"t1": {"a": "x", "b": "y"}, "t2": {"a": "y", "b": "y"}, "t3": {"a": "x"}})


def test_tables_of_all_kinds_are_the_same_centred_log_probabilities(annotations):
    centred = np.log(GOOD.to_numpy()) - np.log(GOOD.to_numpy()).mean(1, keepdims=True)
    shuffled = GOOD.loc[["t3", "t1", "t2"], ["y", "x"]]
    for table in (GOOD, shuffled, shuffled.rename_axis("task").reset_index(), GOOD.to_numpy()):
        found = with_probabilities(annotations, {"gpt": table})
        np.testing.assert_allclose(found.model_scores[:, 0], centred, rtol=1e-5)
        assert list(found.models) == ["gpt"]
    assert list(with_probabilities(annotations, GOOD).models) == ["model"]
    assert "probabilities by 'model'" in repr(with_probabilities(annotations, GOOD))


def test_zeros_are_half_the_smallest_positive_probability(annotations):
    hard = pd.DataFrame([[1, 0], [0, 1], [1, 0]], index=GOOD.index, columns=GOOD.columns)
    rounded = pd.DataFrame([[1, 0], [0.04, 0.96], [1, 0]], index=GOOD.index, columns=GOOD.columns)
    for table, least in (
        (hard, 0.001),
        (rounded, 0.001),
        (rounded.replace(0.96, 0.9996).replace(0.04, 0.0004), 0.0002),
    ):
        scores = with_probabilities(annotations, table).model_scores[0, 0]
        assert scores[0] - scores[1] == pytest.approx(-np.log(least), rel=1e-4)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD.rename(index={"t3": "t9"}), "the task 't9' is not in the annotations"),
        (GOOD.rename(columns={"y": "z"}), "the column 'z' is no class; the classes are"),
        (GOOD[["x"]] / GOOD[["x"]], "lack a column for the class 'y'; give 0"),
        (GOOD.assign(y=0.9), r"those of task 't1': \[0.8, 0.9\] are no probabilities"),
        (GOOD.assign(x=-0.1, y=1.1), r"those of task 't1': \[-0.1, 1.1\] are no probabilities"),
        (GOOD.mask(GOOD == 0.9), r"those of task 't3': \[0.1, nan\] are no probabilities"),
        (GOOD * np.nan, "are missing for all tasks"),
        (pd.concat([GOOD, GOOD.iloc[:1]]), "the task 't1' has two rows"),
        (GOOD.to_numpy()[:2], r"the shape is \(2, 2\); \(tasks, classes\) = \(3, 2\)"),
        (GOOD.astype(object).replace(0.8, "often"), "are not all numbers"),
        ("file.csv", "got a str; a frame of pandas with tasks as index"),
    ],
)
def test_what_is_no_table_of_probabilities_is_refused_with_the_place(annotations, table, message):
    with pytest.raises(AnnotationError, match=f"probabilities of 'gpt'.*{message}"):
        with_probabilities(annotations, {"gpt": table})


def test_no_model_at_all_is_refused(annotations):
    with pytest.raises(AnnotationError, match="names no model"):
        with_probabilities(annotations, {})


def test_shares_of_much_data_are_taken_over_tasks_spread_evenly():
    n = 3 * REFERENCE
    annotations = Annotations.from_matrix(np.zeros((n, 1), int), classes=[0, 1])
    p = np.linspace(0.01, 0.99, n)
    found = with_probabilities(annotations, np.column_stack([p, 1 - p])).model_reference
    assert found.shape == (1, REFERENCE, 2)
    assert (1 / (1 + np.exp(found[0, :, 1] - found[0, :, 0]))).mean() == pytest.approx(0.5, abs=0.001)


@pytest.fixture(scope="module")
def fitted():
    annotations, _ = cp.simulate("one_coin", n_tasks=60, n_workers=5, n_classes=2, seed=1)
    p = np.random.default_rng(0).dirichlet([1, 1], 60)
    p[np.arange(60), annotations.gold] += 1
    table = pd.DataFrame(p / p.sum(1, keepdims=True), index=list(annotations.tasks), columns=[0, 1])
    return cp.fit("one_coin", annotations.without_gold(), probabilities={"gpt": table}, progress=False), table


def test_a_fit_on_the_disk_has_its_models(fitted, tmp_path):
    fit, _ = fitted
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.models, fit.models, check_exact=False, rtol=1e-5)
    assert again.parameters["model_slope"]["model"].values.tolist() == ["gpt"]
    assert fit.idata is not None


def test_update_takes_probabilities_of_new_tasks_and_keeps_the_old(fitted):
    fit, table = fitted
    new = pd.DataFrame({"task": ["new"], "worker": [fit.annotations.workers[0]], "label": [0]})
    told = pd.DataFrame([[0.01, 0.99]], index=["new"], columns=[0, 1])
    without = fit.update(new, progress=False)
    updated = fit.update(new, probabilities={"gpt": told}, progress=False)
    assert without.models.loc["gpt", "tasks"] == 60
    assert updated.models.loc["gpt", "tasks"] == 61
    assert updated.probabilities.loc["new", 1] > without.probabilities.loc["new", 1]
    changed = fit.update(probabilities={"gpt": table.iloc[:1, ::-1].set_axis([0, 1], axis=1)}, progress=False)
    old, new = (x.posterior[0].min() for x in (fit, changed))
    assert not np.isclose(old, new, rtol=0.5)


def test_a_fit_without_models_says_so_and_is_not_compared_with_one_that_has_them(fitted):
    fit, _ = fitted
    alone = cp.fit("one_coin", fit.annotations.replace(model_scores=None, model_reference=None, models=cp.data.Ids()))
    with pytest.raises(ValueError, match="other probabilities of the model 'gpt'"):
        cp.stack({"with": fit, "without": alone}, weights={"with": 1.0})
    with pytest.raises(AnnotationError, match="no model's probabilities were given"):
        _ = alone.models


def test_the_report_says_that_its_code_leaves_them_out(fitted, tmp_path):
    fit, _ = fitted
    page = fit.report(tmp_path / "page.html", checks=False).read_text(encoding="utf-8")
    assert "The fit was given probabilities by gpt" in page
    assert "Models whose probabilities were given" in page


def test_auto_takes_them(fitted):
    fit, table = fitted
    plain = fit.annotations.replace(model_scores=None, model_reference=None, models=cp.data.Ids())
    stack = cp.fit("auto", plain, probabilities={"gpt": table}, progress=False)
    assert stack.models.loc["gpt", "tasks"] == 60
