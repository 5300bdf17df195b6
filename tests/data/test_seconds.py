"""How long annotations took: the times stay with their annotations, and what is no time is refused."""

import datetime as dt

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fit_at import fit_at, random_confusions
from hypothesis import given
from hypothesis import strategies as st
from whole_density import density

import crowdppl as cp
from crowdppl import AnnotationError, Annotations
from crowdppl.inference.densities.model import Model
from crowdppl.models import find_story

ROWS = pd.DataFrame(
    [("b", "ann", "x", 4.5), ("a", "bob", "y", 0.0), ("b", "bob", "y", np.nan), ("a", "ann", "x", 61.0)],
    columns=["task", "worker", "label", "took"],
)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 1)), min_size=3, max_size=20))
def test_each_time_stays_with_its_annotation_whatever_the_order(rows):
    frame = pd.DataFrame([*rows, (0, 0, 0), (0, 0, 1)], columns=["task", "worker", "label"])
    frame["took"] = np.arange(len(frame)) / 2
    back = Annotations.from_frame(frame, seconds="took").to_frame()
    original = frame.set_index("took").loc[back["seconds"].to_numpy()]
    pd.testing.assert_frame_equal(back.drop(columns="seconds"), original.reset_index(drop=True))


def test_times_are_single_precision_with_nan_for_unknown_and_none_where_no_column_is_named():
    annotations = Annotations.from_frame(ROWS, seconds="took")
    assert annotations.seconds.dtype == np.float32
    np.testing.assert_array_equal(annotations.seconds, [4.5, np.nan, 0.0, 61.0])
    assert not annotations.seconds.flags.writeable
    assert Annotations.from_frame(ROWS).seconds is None
    assert "seconds" not in Annotations.from_frame(ROWS).to_frame()


def test_pandas_polars_pyarrow_and_files_agree(tmp_path):
    expected = Annotations.from_frame(ROWS, seconds="took").to_frame()
    plain = {name: [None if value != value else value for value in ROWS[name]] for name in ROWS}
    ROWS.to_csv(tmp_path / "crowd.csv", index=False)
    ROWS.to_parquet(tmp_path / "crowd.parquet")
    for found in (
        Annotations.from_frame(pl.DataFrame(plain), seconds="took"),
        Annotations.from_frame(pa.table(plain), seconds="took"),
        Annotations.from_frame(ROWS.convert_dtypes(), seconds="took"),
        Annotations.read(tmp_path / "crowd.csv", seconds="took"),
        Annotations.read(tmp_path / "crowd.parquet", seconds="took"),
    ):
        pd.testing.assert_frame_equal(found.to_frame(), expected)


def test_of_repeated_annotations_the_first_keeps_its_time():
    frame = pd.concat([ROWS, ROWS.assign(took=999.0)])
    with pytest.warns(UserWarning, match="left out 4 of 8"):
        annotations = Annotations.from_frame(frame, seconds="took", repeats="first")
    np.testing.assert_array_equal(annotations.seconds, Annotations.from_frame(ROWS, seconds="took").seconds)


def test_a_row_that_counts_no_annotation_leaves_with_its_time():
    annotations = Annotations.from_frame(ROWS.assign(n=[1, 0, 2, 3]), seconds="took", count="n")
    np.testing.assert_array_equal(annotations.seconds, [4.5, np.nan, 61.0])


def test_describe_gives_the_median_over_annotations_whose_time_is_known():
    assert Annotations.from_frame(ROWS, seconds="took").describe()["seconds per annotation, median"] == 4.5
    counted = Annotations.from_frame(ROWS.assign(n=[1, 1, 1, 3]), seconds="took", count="n")
    assert counted.describe()["seconds per annotation, median"] == 61.0
    assert "seconds per annotation, median" not in Annotations.from_frame(ROWS).describe()
    assert "seconds of 3 rows" in repr(Annotations.from_frame(ROWS, seconds="took"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1.0, "-1.0"), (np.inf, "inf"), ("soon", "'soon'"), ("-3", "'-3'"), ([1], "[1]"), (True, "True")],
)
def test_what_is_no_time_is_refused_with_column_row_and_value(value, shown):
    took = pd.Series([1.0, 2.0, 3.0, 4.0], dtype=object)
    took[2] = value
    with pytest.raises(AnnotationError) as caught:
        Annotations.from_frame(ROWS.assign(took=took), seconds="took")
    assert f"column 'took', row 2: {shown} is no time; expected a number of seconds from 0" in str(caught.value)


def test_spans_of_time_are_refused_rather_than_read_as_nanoseconds():
    frame = ROWS.assign(took=pd.to_timedelta([1, 2, 3, 4], unit="s"))
    with pytest.raises(AnnotationError, match=r"row 0: Timedelta.* is no time"):
        Annotations.from_frame(frame, seconds="took")
    with pytest.raises(AnnotationError, match="is no time"):
        Annotations.from_frame(frame.assign(took=dt.date(2024, 1, 1)), seconds="took")


def test_a_wrong_time_in_a_file_is_named_with_its_line(tmp_path):
    (tmp_path / "crowd.csv").write_text("task,worker,label,took\na,ann,x,3\n\nb,ann,y,-2\n")
    with pytest.raises(AnnotationError, match=r"row 1 \(line 4 of crowd.csv\): '-2' is no time"):
        Annotations.read(tmp_path / "crowd.csv", seconds="took")


def test_a_missing_column_of_times_is_named_with_the_likeliest_one():
    with pytest.raises(AnnotationError, match=r"no column 'secs'.*Did you mean seconds='duration'"):
        Annotations.from_frame(ROWS.rename(columns={"took": "duration"}), seconds="secs")
    with pytest.raises(AnnotationError, match="no column 'seconds'"):
        Annotations.from_frame(ROWS, seconds="seconds")


def test_annotations_without_workers_are_added_up_and_have_no_times():
    with pytest.raises(AnnotationError, match="seconds= cannot be used"):
        Annotations.from_frame(ROWS, worker=None, seconds="took")


def test_no_story_uses_times_and_they_come_back_from_a_fits_files(tmp_path):
    with_times, without = Annotations.from_frame(ROWS, seconds="took"), Annotations.from_frame(ROWS)
    assert len(jax.tree.leaves(with_times)) == len(jax.tree.leaves(without)) + 1
    confusions = random_confusions(without)
    log_joints = [
        density(
            Model(find_story("dawid_skene")), {name: value[0] for name, value in confusions.items()}, which
        ).log_joint
        for which in (with_times, without)
    ]
    np.testing.assert_array_equal(*log_joints)
    fit_at("dawid_skene", with_times, confusions).save(tmp_path / "fit")
    np.testing.assert_array_equal(cp.load_fit(tmp_path / "fit").annotations.seconds, with_times.seconds)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_every_engine_finds_the_same_with_and_without_times(method):
    options = {"em": {}, "svi": {"batch_size": 1, "max_iterations": 20, "draws": 10},
               "nuts": {"warmup": 20, "draws": 10, "chains": 1}}[method]  # fmt: skip
    fits = [
        cp.fit("dawid_skene", which, method=method, progress=False, **options)
        for which in (Annotations.from_frame(ROWS, seconds="took"), Annotations.from_frame(ROWS))
    ]
    pd.testing.assert_frame_equal(fits[0].probabilities, fits[1].probabilities)


def test_times_with_a_decimal_comma_are_read_and_thousands_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("task;worker;label;Dauer\na;w;x;12,5\nb;w;y;7\na;v;y;\n")
    annotations = cp.read(tmp_path / "a.csv", seconds="Dauer", tell=False)
    assert sorted(np.asarray(annotations.seconds).tolist(), key=str) == [12.5, 7.0, pytest.approx(np.nan, nan_ok=True)]
    for unclear in ("1,250", "1.250,5"):
        (tmp_path / "a.csv").write_text(f"task;worker;label;Dauer\na;w;x;{unclear}\nb;w;y;7\n")
        with pytest.raises(AnnotationError, match=f"'{unclear}' is no time"):
            cp.read(tmp_path / "a.csv", seconds="Dauer", tell=False)
