"""When annotations were given: dates and numbers stay with their annotations, and what says no time is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, Annotations

ROWS = pd.DataFrame(
    [("b", "ann", "x", "2024-03-01 10:30"), ("a", "bob", "y", None), ("a", "ann", "x", "2024-03-01T12:30:00+02:00")],
    columns=["task", "worker", "label", "at"],
)
TIMES = [1709289000.0, np.nan, 1709289000.0]  # in the order of the tasks


def test_dates_are_seconds_since_1970_in_utc_whatever_the_table(tmp_path):
    ROWS.to_csv(tmp_path / "crowd.csv", index=False)
    stamps = ROWS.assign(at=pd.to_datetime(ROWS["at"], utc=True, format="ISO8601"))
    stamps.to_parquet(tmp_path / "crowd.parquet")
    for found in (
        Annotations.from_frame(ROWS, when="at"),
        Annotations.from_frame(stamps, when="at"),
        Annotations.from_frame(stamps.assign(at=stamps["at"].dt.tz_localize(None)), when="at"),
        Annotations.from_frame(pl.from_pandas(stamps), when="at"),
        Annotations.from_frame(pa.Table.from_pandas(stamps), when="at"),
        cp.read(tmp_path / "crowd.csv", when="at", tell=False),
        cp.read(tmp_path / "crowd.parquet", when="at", tell=False),
        Annotations.from_parquet(tmp_path / "crowd.parquet", when="at"),
    ):
        np.testing.assert_array_equal(found.when, TIMES)
    assert "times of 2 rows" in repr(found)
    assert Annotations.from_frame(ROWS).when is None
    assert "when" not in Annotations.from_frame(ROWS).to_frame()


def test_numbers_are_as_they_are_and_go_round():
    table = ROWS.assign(at=[3, 1, 2])
    found = Annotations.from_frame(table, when="at")
    assert found.when.tolist() == [3, 1, 2]
    again = Annotations.from_frame(found.to_frame(), when="when")
    assert again.when.tolist() == [3, 1, 2]
    more = Annotations.from_frame(pd.DataFrame({"task": ["c"], "worker": "ann", "label": "x"}), classes=["x", "y"])
    np.testing.assert_array_equal(found.joined(more).when, [3, 1, 2, np.nan])
    assert found.without_workers().when is None


def test_comparisons_say_when_too():
    table = pd.DataFrame({"left": ["b", "a", "a"], "right": ["a", "b", "c"], "worker": ["u", "v", "u"]})
    found = Annotations.from_comparisons(table.assign(label=["left", "right", "left"], at=[5, 6, 7]), when="at")
    assert dict(zip(found.to_frame()["when"], found.to_frame()["worker"], strict=True)) == {5: "u", 6: "v", 7: "u"}


@pytest.mark.parametrize(
    ("values", "row", "value"),
    [(["2024-03-01", "soon", None], 1, "'soon'"), ([1.0, 2.0, np.inf], 2, "inf"), ([True, False, True], 0, "True")],
)
def test_what_says_no_time_is_refused_with_its_row(values, row, value):
    with pytest.raises(AnnotationError, match=rf"column 'at', row {row}: {value} does not say when; expected numbers"):
        Annotations.from_frame(ROWS.assign(at=pd.Series(values, dtype=object)), when="at")


def test_tables_without_a_row_for_each_annotation_and_without_workers_have_no_times(tmp_path):
    wide = pd.DataFrame({"item": ["a", "b", "c"], "ann": ["x", "y", "x"], "bob": ["x", "y", "y"]})
    with pytest.raises(AnnotationError, match="when='ann' is of a table with a row for each annotation"):
        cp.read(wide, when="ann", columns="workers", tell=False)
    with pytest.raises(AnnotationError, match="when= cannot be used where no worker is named"):
        Annotations.from_frame(ROWS, worker=None, when="at")
