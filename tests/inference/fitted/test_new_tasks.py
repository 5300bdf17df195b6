"""A classifier predicts from a table by the names of its features, whatever their order, and from nothing else."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdppl as cp
from crowdppl import AnnotationError

NAMES = ["length", "links", "capitals"]


@pytest.fixture(scope="module")
def table():
    """Of 40 tasks; the classes follow the first feature, and the others have other scales."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(40, 3)) * [1.0, 10.0, 0.1], columns=NAMES).assign(task=range(40))


@pytest.fixture(scope="module")
def annotations(table):
    truth = (table["length"] > 0).astype(int)
    rows = [{"task": i, "worker": w, "label": truth[i]} for i in range(40) for w in "abc"]
    return cp.Annotations.from_frame(pd.DataFrame(rows), features=table)


@pytest.fixture(scope="module")
def fit(annotations):
    return cp.fit("dawid_skene", annotations, classifier="logistic", progress=False)


@pytest.fixture(scope="module")
def expected(fit, table):
    found = fit.predict_proba(table[NAMES].to_numpy())
    assert found[:, 1].std() > 0.2  # what it says depends on the features
    return found


@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("columns", [NAMES, NAMES[::-1], ["links", "task", "capitals", "length"]])
def test_columns_in_any_order_of_any_library_predict_the_same(fit, table, expected, as_table, columns):
    np.testing.assert_array_equal(fit.predict_proba(as_table(table[columns])), expected)


def test_a_fit_that_was_saved_and_a_baseline_find_columns_by_name_too(fit, annotations, table, expected, tmp_path):
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(cp.load_fit(tmp_path / "fit").predict_proba(table[NAMES[::-1]]), expected)
    voted = cp.label_then_train("majority_vote", annotations, classifier="logistic", progress=False)
    by_place = voted.predict_proba(table[NAMES].to_numpy())
    np.testing.assert_array_equal(voted.predict_proba(table[NAMES[::-1]]), by_place)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.drop(columns="links"), r"x: the table lacks the columns \['links'\]; those of the fit are"),
        (lambda x: x.assign(age=1.0), r"x: the table has the columns \['age'\] more; those of the fit are"),
        (
            lambda x: x.rename(columns={"links": "Links"}),
            r"lacks the columns \['links'\] and has the columns \['Links'\] more",
        ),
        (lambda x: x.assign(links="many"), r"x, column 'links': expected numbers, .* such as 'many'"),
    ],
)
@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.from_pandas])
def test_a_missing_a_foreign_and_a_worded_column_are_refused_by_name(fit, table, as_table, change, message):
    with pytest.raises(AnnotationError, match=message):
        fit.predict_proba(as_table(change(table)))


def test_features_without_names_are_taken_as_they_stand(annotations, table):
    bare = annotations.replace(features=table[NAMES].to_numpy(np.float32), feature_names=())
    fit = cp.fit("dawid_skene", bare, classifier="logistic", progress=False)
    by_place = fit.predict_proba(table[NAMES].to_numpy())
    np.testing.assert_array_equal(fit.predict_proba(table[NAMES].rename(columns=str.upper)), by_place)
