"""Scans of Parquet at URLs, and of lazy tables of DuckDB, Polars and Arrow, are those of the same rows in a file."""

import errno
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

import crowdppl as cp
from crowdppl.data.store import open_store

fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    task, worker = rng.integers(0, 60, n), rng.integers(0, 8, n)
    frame = pd.DataFrame({"task": [f"t{t}" for t in task], "worker": worker, "label": rng.integers(0, 3, n)})
    return frame.assign(label=frame["label"].map({0: "a", 1: "b", 2: "c"}), n=1 + np.arange(n) % 2)


def content(scan):
    """All that is prepared of a scan."""
    store = open_store(scan)
    batch = store.batch(store.plan(10**6), 0)
    names = (list(store.classes), list(store.workers), store.tasks(store.plan(10**6).slices[0]).tolist())
    return names, [np.asarray(values).tolist() for values in (batch.task, batch.worker, batch.label, batch.count)]


def at_a_url(frame, tmp_path):
    system = fsspec.filesystem("memory")
    with system.open("/crowd/deep/a.parquet", "wb") as file:
        frame[:250].to_parquet(file, index=False)
    with system.open("/crowd/deep/b.parquet", "wb") as file:
        frame[250:].to_parquet(file, index=False)
    return "memory://crowd/deep/*.parquet"


def in_a_folder_at_a_url(frame, tmp_path):
    return at_a_url(frame, tmp_path).removesuffix("/deep/*.parquet")


def at_a_file_url(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    return (tmp_path / "a.parquet").as_uri()


def of_duckdb(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    return duckdb.sql(f"""SELECT task, worker, label, n, 1 AS "an ""other" FROM '{tmp_path}/a.parquet'""")


def of_polars(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    return pl.scan_parquet(tmp_path / "a.parquet").with_columns(label=pl.col("label").cast(pl.Categorical))


def of_arrow(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    return ds.dataset(tmp_path / "a.csv", format="csv")


KINDS = [at_a_url, in_a_folder_at_a_url, at_a_file_url, of_duckdb, of_polars, of_arrow]


@pytest.mark.parametrize("lie", KINDS, ids=lambda function: function.__name__)
def test_what_is_prepared_is_that_of_a_file(tmp_path, lie):
    frame = table()
    frame.to_parquet(tmp_path / "whole.parquet", index=False)
    scan = cp.scan(lie(frame, tmp_path), count="n")
    assert scan.n_rows == len(frame)
    assert content(scan) == content(cp.scan(tmp_path / "whole.parquet", count="n"))


def test_a_lazy_table_is_fitted_and_named(tmp_path):
    frame = table()
    scan = cp.scan(of_polars(frame, tmp_path))
    assert str(scan).startswith("Scan of the LazyFrame of Polars: 400 rows")
    frame.to_parquet(tmp_path / "whole.parquet", index=False)
    fit, expected = (
        cp.fit("dawid_skene", data, progress=False) for data in (scan, cp.scan(tmp_path / "whole.parquet"))
    )
    assert fit.outcome.history.tolist() == expected.outcome.history.tolist()


@pytest.mark.parametrize("lie", [of_duckdb, of_polars, of_arrow], ids=lambda function: function.__name__)
def test_bad_cells_and_columns_of_a_lazy_table_are_named(tmp_path, lie):
    name = {of_duckdb: "relation of DuckDB", of_polars: "LazyFrame of Polars", of_arrow: "Dataset of Arrow"}[lie]
    lacking = table().astype({"worker": "Int64"})
    lacking.loc[7, "worker"] = None
    with pytest.raises(cp.AnnotationError, match=f"{name}.*answer"):
        cp.scan(lie(lacking, tmp_path), label="answer")
    with pytest.raises(cp.AnnotationError, match=rf"{name}, row 7, column 'worker': the value is missing"):
        open_store(cp.scan(lie(lacking, tmp_path)))


def test_each_scan_of_a_lazy_table_is_prepared_anew(tmp_path):
    frame = table()
    first, second = (cp.scan(of_arrow(frame, tmp_path), folder=tmp_path / "work") for _ in range(2))
    assert first.fingerprint != second.fingerprint
    assert open_store(first).folder == open_store(first).folder != open_store(second).folder


def test_a_file_at_a_url_that_changes_is_refused(tmp_path):
    url = at_a_url(table(), tmp_path)
    scan = cp.scan(url)
    at_a_url(table(500), tmp_path)
    with pytest.raises(cp.AnnotationError, match=r"memory:.*a\.parquet has changed.*scan again"):
        open_store(scan)


def test_what_is_not_there_is_said():
    with pytest.raises(cp.AnnotationError, match=re.escape("there is no file at memory://nowhere/a.parquet; give")):
        cp.scan("memory://nowhere/a.parquet")
    with pytest.raises(cp.AnnotationError, match=r"nosuchstore://a cannot be read: ValueError: .*nosuchstore"):
        cp.scan("nosuchstore://a")


class Refuses(type(fsspec.filesystem("memory"))):
    """A store that lists its files, and refuses to give them from some time on."""

    protocol = "refuses"
    left = 0

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("refuses://"))

    def _open(self, path, *args, **options):
        if Refuses.left == 0:
            raise PermissionError(errno.EACCES, "Access Denied\nno such key for you")
        Refuses.left -= 1
        return super()._open(path, *args, **options)


@pytest.mark.parametrize("left", [0, 1])
def test_a_store_that_refuses_is_said_in_one_sentence_and_leaves_nothing(tmp_path, left):
    fsspec.register_implementation("refuses", Refuses, clobber=True)
    Refuses.left = 1
    with fsspec.filesystem("refuses").open("/a.parquet", "wb") as file:
        table().to_parquet(file, index=False)
    Refuses.left = left
    folder = tmp_path / "work"
    with pytest.raises(cp.AnnotationError, match=r"a\.parquet.*Access Denied") as told:
        open_store(cp.scan("refuses:///a.parquet", folder=folder))
    assert "\n" not in str(told.value)
    assert not folder.exists() or not list(folder.glob("prepared*"))


def test_a_query_that_fails_is_said_in_one_sentence():
    relation = duckdb.sql("SELECT 1 AS task, 1 AS worker, CAST('x' || range AS INTEGER) AS label FROM range(5)")
    with pytest.raises(cp.AnnotationError, match=r"the relation of DuckDB cannot be read: ConversionException") as told:
        open_store(cp.scan(relation, classes=[0, 1]))
    assert "\n" not in str(told.value)


def test_a_disk_that_is_full_is_said_of_the_folder_and_not_of_the_table(tmp_path):
    def read(columns, n_rows):
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    scan = cp.scan(duckdb.sql("SELECT 1 AS task, 1 AS worker, 1 AS label"), folder=tmp_path / "work")
    scan.files[0].path.read = read
    with pytest.raises(cp.StorageError, match=r"work cannot be written: the disk is full; make room"):
        open_store(scan)
