"""Parquet files that stay on the disk: what a scan says of them, and how they are coded, sorted and cut."""

import datetime
import decimal
import errno
import gc
import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data import frames, preparing
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.scan import parse_size
from crowdppl.data.store import open_store


def table(n_rows=3000, n_tasks=300, seed=0, text=True):
    """Annotations in no order."""
    rng = np.random.default_rng(seed)
    task = rng.integers(0, n_tasks, n_rows)
    frame = pd.DataFrame(
        {"task": task, "worker": rng.integers(0, 7, n_rows), "label": rng.choice(["a", "b", "c"], n_rows)}
    )
    return frame.assign(task=[f"t{i}" for i in task], worker=[f"w{i}" for i in frame["worker"]]) if text else frame


def rows_of(store, chunk_rows):
    """All rows as they come out of the chunks, with their names."""
    plan = store.plan(chunk_rows)
    found = []
    for piece, chunk in zip(plan.slices, store.batches(plan), strict=True):
        n_rows = piece.rows.stop - piece.rows.start
        columns = {"task": store.tasks(piece)[chunk.task[:n_rows]]}
        if store.named:
            columns["worker"] = store.workers.to_index()[chunk.worker[:n_rows]]
        columns["label"] = store.classes.to_index()[chunk.label[:n_rows]]
        found.append(pd.DataFrame(columns).assign(count=chunk.count[:n_rows]))
        assert (chunk.count[n_rows:] == 0).all()
        assert (chunk.task[n_rows:] >= chunk.n_real[0]).all()
    return pd.concat(found, ignore_index=True)


@pytest.fixture
def few_rows(monkeypatch):
    """Batches of few rows, so that small files need many."""
    monkeypatch.setattr(preparing, "BATCH", 90)
    monkeypatch.setattr(preparing, "SORTED_BATCH", 200)


def of_labels(folder, labels, **options):
    frame = table(text=False).assign(label=lambda rows: np.resize(labels, len(rows)))
    frame.to_parquet(folder / "rows.parquet")
    return cp.scan(folder / "rows.parquet", folder=folder, **options)


def test_a_scan_takes_an_order_and_says_that_whole_numbers_have_one(tmp_path, recwarn):
    for _ in ("prepared anew", "prepared already"):
        store = open_store(of_labels(tmp_path, [3, 1, 2]))
        assert (store.kind.name, list(store.classes)) == ("ordered", [1, 2, 3])
        assert store.names().kind.name == store.batch(store.plan(100), 0).kind.name == "ordered"
        (said,) = (str(each.message) for each in recwarn)
        assert re.search(r"column 'label'.*1, 2, 3.*ordered=True.*ordered=False", said)
        recwarn.clear()
    for options, kind, classes in (
        ({"ordered": False}, "nominal", [1, 2, 3]),
        ({"classes": [3, 2, 1]}, "nominal", [3, 2, 1]),
        ({"ordered": True}, "ordered", [1, 2, 3]),
        ({"ordered": [3, 2, 1, 0]}, "ordered", [3, 2, 1, 0]),
    ):
        store = open_store(of_labels(tmp_path, [3, 1, 2], **options))
        assert (store.kind.name, list(store.classes)) == (kind, classes)
    assert not recwarn.list
    assert "from the least to the greatest" in repr(of_labels(tmp_path, ["b"], ordered=["b", "a"]))
    assert "bias" in cp.fit("one_coin", of_labels(tmp_path, [3, 1, 2], ordered=True), progress=False).workers


def test_a_scan_of_text_needs_its_order(tmp_path):
    for options, option in (
        ({"ordered": ["b", "a"]}, "ordered"),
        ({"ordered": True, "classes": ["b", "a"]}, "classes"),
    ):
        with pytest.raises(cp.data.AnnotationError, match=rf"row 2, column 'label': 'c' is not in {option}="):
            open_store(of_labels(tmp_path, ["a", "b", "c"], **options))
    with pytest.raises(cp.data.AnnotationError, match=r"column 'label'.*no order.*ordered=\[\.\.\.\]"):
        open_store(of_labels(tmp_path, ["low", "high"], ordered=True))
    with pytest.raises(cp.data.AnnotationError, match=r"classes= and ordered="):
        of_labels(tmp_path, ["low", "high"], classes=["low", "high"], ordered=["low", "high"])


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_come_out_sorted_by_task_and_otherwise_in_the_order_of_the_files(tmp_path, few_rows, text, is_sorted):
    frame = table(text=text)
    if is_sorted:
        frame = frame.sort_values("task", kind="stable", ignore_index=True)
    frame[:1000].to_parquet(tmp_path / "a.parquet", row_group_size=300)
    frame[1000:].to_parquet(tmp_path / "b.parquet", row_group_size=700)
    scan = cp.scan(tmp_path)
    assert scan.is_sorted == is_sorted
    store = open_store(scan)
    expected = frame.sort_values("task", kind="stable", ignore_index=True)
    for chunk_rows in (30, 250, 10_000):
        pd.testing.assert_frame_equal(rows_of(store, chunk_rows).drop(columns="count"), expected, check_dtype=False)
    assert list(store.workers) == list(dict.fromkeys(frame["worker"]))  # in order of first appearance
    assert store.n_by_worker.tolist() == frame["worker"].value_counts().reindex(store.workers.to_index()).tolist()
    assert store.n_tasks == frame["task"].nunique()


def test_chunks_are_of_whole_tasks_and_of_one_size(tmp_path, few_rows):
    table().to_parquet(tmp_path / "a.parquet")
    store = open_store(cp.scan(tmp_path / "a.parquet"))
    plan = store.plan(40)
    assert len(plan.slices) > 50
    assert [one.tasks.stop for one in plan.slices[:-1]] == [other.tasks.start for other in plan.slices[1:]]
    assert plan.slices[-1].rows.stop == store.n_rows
    shapes = {(chunk.n_rows, chunk.n_tasks) for chunk in store.batches(plan)}
    assert shapes == {(plan.n_rows, plan.n_tasks)}
    assert plan.n_rows <= 40
    assert store.plan(1).n_rows == store.most_rows  # a task is never cut


def test_counts_and_rows_without_workers_come_out_as_they_went_in(tmp_path):
    frame = table(text=False).drop(columns="worker").assign(n=np.arange(3000) % 4)
    frame.to_parquet(tmp_path / "a.parquet")
    store = open_store(cp.scan(tmp_path / "a.parquet", worker=None, count="n"))
    expected = frame.sort_values("task", kind="stable", ignore_index=True).rename(columns={"n": "count"})
    pd.testing.assert_frame_equal(rows_of(store, 100), expected, check_dtype=False)
    assert store.n_annotations == frame["n"].sum()
    assert not store.named


def test_other_names_categories_and_classes_are_taken(tmp_path):
    frame = table().rename(columns={"task": "item", "label": "says"}).astype({"says": "category", "item": "category"})
    frame.to_parquet(tmp_path / "a.parquet")
    store = open_store(cp.scan(tmp_path / "a.parquet", task="item", label="says", classes=["c", "b", "a", "never"]))
    assert list(store.classes) == ["c", "b", "a", "never"]
    by_label = frame["says"].value_counts()
    assert store.by_class.tolist() == [by_label["c"], by_label["b"], by_label["a"], 0]


def test_a_scan_reads_no_row_and_says_what_there_is(tmp_path, monkeypatch):
    table().to_parquet(tmp_path / "a.parquet", row_group_size=1000)
    table(500, seed=1).to_parquet(tmp_path / "b.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    monkeypatch.setattr(pq, "read_table", None)
    said = repr(cp.scan(tmp_path / "*.parquet", memory="2GiB", folder=tmp_path / "work"))
    for text in ("2 Parquet files", "3,500 rows in 4 row groups", "task (", "not sorted by task", "2.0 GiB", "work"):
        assert text in said
    assert not (tmp_path / "work").exists()
    table().to_parquet(tmp_path / "one.parquet")
    assert "one row group, whose rows are sorted by task" in repr(cp.scan(tmp_path / "one.parquet"))


@pytest.mark.parametrize(
    ("size", "n_bytes"), [("4GiB", 2**32), ("1.5 gib", 3 * 2**29), (2**30, 2**30), ("500MB", 500 * 10**6)]
)
def test_sizes_are_read(size, n_bytes):
    assert parse_size("memory", size) == n_bytes


@pytest.mark.parametrize("size", ["four", "4 GiBi", -1, 0, True, None, 1.5, "12"])
def test_what_is_no_size_is_refused_with_the_argument(size):
    with pytest.raises(ValueError, match=re.escape(f"memory={size!r}")):
        parse_size("memory", size)


def test_what_is_prepared_is_used_again_until_a_file_changes(tmp_path, monkeypatch):
    path, work = tmp_path / "a.parquet", tmp_path / "work"
    table().to_parquet(path)
    first = open_store(cp.scan(path, folder=work))
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "_coded_rows", None)  # nothing is read again
        again = open_store(cp.scan(path, folder=work))
    assert again.folder == first.folder
    table(100).to_parquet(path)
    other = open_store(cp.scan(path, folder=work))
    assert other.folder != first.folder
    assert other.n_rows == 100


def test_half_of_a_preparation_is_not_taken_for_all_of_it(tmp_path, few_rows, monkeypatch):
    path, work = tmp_path / "a.parquet", tmp_path / "work"
    table().to_parquet(path)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for part in ("_coded", "_of_whole_tasks"):
        with monkeypatch.context() as patch:
            patch.setattr(preparing, part, interrupted)
            with pytest.raises(KeyboardInterrupt):
                open_store(cp.scan(path, folder=work))
        assert [each for each in work.iterdir() if each.is_dir()] == []
    store = open_store(cp.scan(path, folder=work))
    expected = table().sort_values("task", kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(rows_of(store, 99).drop(columns="count"), expected, check_dtype=False)
    assert [each.name for each in work.iterdir() if each.is_dir()] == [Path(store.folder).name]
    assert not (Path(store.folder) / "sorting").exists()


def test_an_error_names_the_place(tmp_path, few_rows):
    frame, work = table(900), tmp_path / "work"
    for i in range(3):
        frame[300 * i : 300 * i + 300].to_parquet(tmp_path / f"{i}.parquet", row_group_size=100)
    broken = frame[600:].copy()
    broken.iloc[217, 2] = None
    broken.to_parquet(tmp_path / "2.parquet", row_group_size=100)
    with pytest.raises(cp.AnnotationError, match=r"2\.parquet, row group 2, row 217, column 'label'.*missing \(None\)"):
        open_store(cp.scan(tmp_path, folder=work))
    frame[600:].to_parquet(tmp_path / "2.parquet", row_group_size=100)
    store = open_store(cp.scan(tmp_path, folder=work))
    expected = frame.sort_values("task", kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(rows_of(store, 99).drop(columns="count"), expected, check_dtype=False)
    assert list(store.workers) == list(dict.fromkeys(frame["worker"]))


@pytest.mark.parametrize("empty", [None, ""])
def test_rows_that_lack_a_value_are_left_out_where_that_is_asked_for(tmp_path, few_rows, empty):
    """As Annotations.from_parquet(path, missing="drop") leaves them out."""
    frame = table(900)
    frame.iloc[[3, 500], 2], frame.iloc[[4, 500, 899], 1] = empty, empty
    frame[:300].to_parquet(tmp_path / "0.parquet", row_group_size=100)
    frame[300:].to_parquet(tmp_path / "1.parquet", row_group_size=100)
    scan = cp.scan(tmp_path, missing="drop")
    assert "rows that lack a value are left out" in repr(scan)
    with pytest.warns(AnnotationWarning, match=r"missing='drop' left out 4 of 900 rows"):
        store = open_store(scan)
    whole = frame.replace("", None).dropna()
    expected = whole.sort_values("task", kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(rows_of(store, 99).drop(columns="count"), expected, check_dtype=False)
    with pytest.raises(cp.AnnotationError, match=r"row 4, column 'worker'.*missing='drop' leaves them out"):
        open_store(cp.scan(tmp_path))
    with pytest.raises(cp.UnknownNameError, match="did you mean 'drop'"):
        cp.scan(tmp_path, missing="drops")
    frame.assign(worker=pd.Series(None, range(900), dtype="string")).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(cp.AnnotationError, match="leaves no row: each of the 900"):
        open_store(cp.scan(tmp_path / "none.parquet", missing="drop"))


def test_a_file_that_is_meant_twice_and_a_table_in_memory_are_refused(tmp_path):
    table(20).to_parquet(tmp_path / "a.parquet")
    for paths in ([tmp_path / "a.parquet"] * 2, [tmp_path, str(tmp_path / "*.parquet")]):
        with pytest.raises(cp.AnnotationError, match=r"a\.parquet is meant twice"):
            cp.scan(paths)
    for frame in (table(20), pa.table(table(20))):
        with pytest.raises(cp.AnnotationError, match=r"no table that is in memory.*cp\.fit and cp\.read take it"):
            cp.scan(frame)


@pytest.mark.parametrize("column", ["worker", "label"])
def test_names_of_folders_are_a_column_that_the_files_lack(tmp_path, column):
    frame = table(300)
    frame.to_parquet(tmp_path / "hive", partition_cols=[column])
    store = open_store(cp.scan(tmp_path / "hive"))
    by = ["task", "worker", "label"]
    found = rows_of(store, 99)[by].astype(str).sort_values(by, ignore_index=True)
    pd.testing.assert_frame_equal(found, frame[by].astype(str).sort_values(by, ignore_index=True))


def test_names_of_folders_that_differ_stay_apart_and_a_broken_file_below_is_named(tmp_path):
    frame = table(90).assign(worker=np.resize(["7", "007", "12"], 90))
    frame.to_parquet(tmp_path / "text", partition_cols=["worker"])
    assert sorted(open_store(cp.scan(tmp_path / "text")).workers) == ["007", "12", "7"]
    frame.assign(worker=np.resize([7, 70, 12], 90)).to_parquet(tmp_path / "numbers", partition_cols=["worker"])
    assert sorted(open_store(cp.scan(tmp_path / "numbers")).workers) == [7, 12, 70]
    (tmp_path / "text" / "worker=12" / "z.parquet").write_bytes(b"none")
    with pytest.raises(cp.AnnotationError, match=r"z\.parquet is no Parquet file that can be read"):
        cp.scan(tmp_path / "text")


def test_a_row_that_lacks_a_value_does_not_move_the_place_of_a_later_error(tmp_path):
    frame = table(100)
    frame.iloc[10, 2], frame.iloc[60, 2] = None, "z"
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cp.AnnotationError, match="row 60, column 'label': 'z' is not in classes"):
        open_store(cp.scan(tmp_path, classes=["a", "b", "c"], missing="drop"))


def test_a_worker_of_a_broken_file_alone_is_not_remembered(tmp_path, few_rows):
    frame, work = table(600), tmp_path / "work"
    frame[:300].to_parquet(tmp_path / "0.parquet")
    broken = frame[300:].copy()
    broken.iloc[0, 1], broken.iloc[-1, 2] = "nobody", None
    broken.to_parquet(tmp_path / "1.parquet")
    with pytest.raises(cp.AnnotationError, match="missing"):
        open_store(cp.scan(tmp_path, folder=work))
    frame[300:].to_parquet(tmp_path / "1.parquet")
    assert "nobody" not in open_store(cp.scan(tmp_path, folder=work)).workers


def written(tmp_path, **columns):
    frame = table(100).assign(**columns)
    frame.to_parquet(tmp_path / "b.parquet")
    table(100).to_parquet(tmp_path / "a.parquet")
    return tmp_path


def test_a_later_file_without_a_column_or_of_another_kind_is_named(tmp_path):
    table(100).drop(columns="worker").to_parquet(written(tmp_path) / "b.parquet")
    with pytest.raises(cp.AnnotationError, match=r"b\.parquet has no column 'worker'"):
        cp.scan(tmp_path)
    written(tmp_path, label=1)
    with pytest.raises(cp.AnnotationError, match=r"b\.parquet, column 'label'.* whole numbers.*a\.parquet are text"):
        cp.scan(tmp_path)
    written(tmp_path, task=pd.Timestamp("2024-02-29"))
    with pytest.raises(cp.AnnotationError, match=r"b\.parquet, column 'task'.*timestamp.*whole numbers or text"):
        cp.scan(tmp_path)


@pytest.mark.parametrize(
    ("column", "of_number"),
    [
        ("worker", float),
        ("worker", lambda number: number % 2 == 0),
        ("worker", lambda number: bytes([number % 3, 200])),
        ('task\'s "day"', lambda number: datetime.date(2024, 1, 1) + datetime.timedelta(days=number)),
        ("task", lambda number: decimal.Decimal(number) / 4),
        ("task", lambda number: 2**63 + number),
        ("label", lambda number: datetime.date(2024, 1, 1 + number % 2)),
    ],
)
def test_the_advice_on_a_column_of_another_type_can_be_followed_to_the_letter(tmp_path, column, of_number):
    role = column.split("'")[0]
    frame = table(100).rename(columns={role: column})
    frame[column] = [of_number(number) for number in range(100)]
    frame.to_parquet(tmp_path / "it's.parquet")
    with pytest.raises(cp.AnnotationError, match=r"whole numbers (or text|of 64 bits)") as refused:
        open_store(cp.scan(tmp_path / "it's.parquet", **{role: column}))
    advice = re.search(r"cp\.scan\((duckdb\..*), …\), for which", str(refused.value))
    scanned = cp.scan(eval(advice[1], {"duckdb": duckdb}), **{role: column})
    store = open_store(scanned)
    assert store.n_annotations == 100
    sizes = {"task": store.n_tasks, "worker": len(store.workers), "label": len(store.classes)}
    assert sizes[role] == frame[column].nunique()


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"label": "x"}, {}, "holds a single class, 'x', in all 100 rows"),
        ({"label": "d"}, {"classes": ["a", "b", "c"]}, "row group 0, row 0, column 'label': 'd' is not in classes"),
        ({"n": -1}, {"count": "n"}, "row group 0, row 0, column 'n': -1 is no number of annotations"),
        ({"n": 0}, {"count": "n"}, "column 'n' is 0 in every row"),
        ({"label": range(100)}, {"classes": [0, 1]}, "row 2, column 'label': 2 is not in classes=[0, 1]"),
    ],
)
def test_values_that_cannot_be_used_are_named(tmp_path, columns, options, said):
    table(100).assign(**columns).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cp.AnnotationError, match=re.escape(said)):
        open_store(cp.scan(tmp_path / "a.parquet", **options))


def test_labels_that_look_like_identifiers_are_refused(tmp_path):
    table(2000).assign(label=range(2000)).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cp.AnnotationError, match=r"more than 1,000 distinct values.*looks like an identifier"):
        open_store(cp.scan(tmp_path / "a.parquet"))


def test_files_that_are_not_there_or_no_parquet_files_are_named(tmp_path):
    for path in ("no.parquet", "no/*.parquet"):
        with pytest.raises(cp.AnnotationError, match=r"(no file|no file is named like).*a pattern"):
            cp.scan(tmp_path / path)
    with pytest.raises(cp.AnnotationError, match=r"has no file \*\.parquet"):
        cp.scan(tmp_path)
    (tmp_path / "a.parquet").write_text("task,worker,label\n")
    with pytest.raises(cp.AnnotationError, match=r"a\.parquet is no Parquet file"):
        cp.scan(tmp_path)
    table(100)[:0].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cp.AnnotationError, match="no row"):
        cp.scan(tmp_path)


def test_a_file_that_changes_after_the_scan_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    table(100).to_parquet(path)
    scan = cp.scan(path)
    table(200).to_parquet(path)
    with pytest.raises(cp.AnnotationError, match="has changed since it was scanned"):
        open_store(scan)


def test_too_small_a_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    table(1000).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(cp.StorageError, match=r"are needed to sort 1,000 rows.*0 bytes are free.*folder="):
        open_store(cp.scan(tmp_path / "a.parquet", folder=tmp_path / "work"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), r"the disk is full; make room.*folder="),
        (duckdb.IOException("Could not write file: No space left on device"), r"the disk is full; make room.*folder="),
        (duckdb.OutOfMemoryException("failed to pin block"), r"too little memory to sort; give scan\(…, memory=…\)"),
    ],
)
def test_a_full_disk_and_too_little_memory_are_named_with_what_mends_them(tmp_path, monkeypatch, error, said):
    table().to_parquet(tmp_path / "a.parquet")
    scan = cp.scan(tmp_path / "a.parquet", folder=tmp_path / "work")

    def failing(batches):
        yield next(batches)
        raise error

    whole = preparing._of_whole_tasks
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "_of_whole_tasks", lambda batches: failing(whole(batches)))
        with pytest.raises(cp.StorageError, match=said):
            open_store(scan)
    assert open_store(scan).n_rows == 3000


@pytest.mark.parametrize(
    "name", ['a"; DROP TABLE rows; --.parquet', "a' OR 1=1.parquet", "position.parquet", "*.parquet"]
)
def test_names_of_files_and_columns_are_no_sql(tmp_path, name):
    columns = {"task": 'x" FROM rows; SELECT "y', "worker": "position", "label": "'"}
    table(100).rename(columns=columns).to_parquet(tmp_path / name)
    store = open_store(cp.scan([tmp_path / name], **columns))
    expected = table(100).sort_values("task", kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(rows_of(store, 99).drop(columns="count"), expected, check_dtype=False)


@settings(max_examples=12, deadline=None)  # each writes and syncs files
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=3), st.sampled_from("ab"), st.integers(0, 3)), min_size=2, max_size=40
    ),
    st.integers(1, 7),
)
def test_whatever_the_batches_all_rows_come_out_once_and_in_order(rows, size):
    rows = [*rows, ("x", "a", 1), ("x", "b", 2)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame["label"] = frame["label"].astype(str)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "BATCH", size)
        patch.setattr(preparing, "SORTED_BATCH", 8 - size)
        frame.to_parquet(Path(folder) / "a.parquet", row_group_size=5)
        store = open_store(cp.scan(Path(folder) / "a.parquet"))
        expected = frame.iloc[sorted(range(len(frame)), key=lambda i: frame["task"][i].encode())]
        pd.testing.assert_frame_equal(
            rows_of(store, 9).drop(columns="count"), expected.reset_index(drop=True), check_dtype=False
        )


def test_a_temporary_folder_goes_when_nobody_needs_it(tmp_path):
    table(100).to_parquet(tmp_path / "a.parquet")
    store = open_store(cp.scan(tmp_path / "a.parquet"))
    folder = Path(store.folder)
    assert folder.exists()
    del store
    gc.collect()
    assert not folder.exists()


def test_what_is_on_the_disk_is_small(tmp_path):
    table(3000, text=False).to_parquet(tmp_path / "a.parquet")
    folder = open_store(cp.scan(tmp_path / "a.parquet", folder=tmp_path / "work")).folder
    assert (folder / "worker").stat().st_size == 4 * 3000
    assert (folder / "label").stat().st_size == 3000
    assert json.loads((folder / "about.json").read_text())["rows"] == 3000


def test_whole_numbers_of_any_width_are_one_kind(tmp_path):
    for name, kind in (("a", pa.int32()), ("b", pa.int64())):
        numbers = pa.array([3, 1, 2, 1], kind)
        pq.write_table(pa.table({"task": numbers, "worker": numbers, "label": numbers}), tmp_path / f"{name}.parquet")
    store = open_store(cp.scan(tmp_path))
    assert rows_of(store, 100)["task"].tolist() == [1, 1, 1, 1, 2, 2, 3, 3]


def test_a_parquet_file_that_may_not_fit_into_memory_comes_with_advice(tmp_path, monkeypatch):
    table(100).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(frames, "physical_memory", lambda: 100 * frames.BYTES_IN_MEMORY - 1)
    with pytest.warns(UserWarning, match=r"100 rows, which may take 39\.1 KiB of memory.*cp\.scan\(path\)"):
        cp.Annotations.from_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize("option", ["classes", "ordered"])
@pytest.mark.parametrize("listed", [[1, 2, 3], [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("kind", [int, float])
def test_listed_whole_numbers_are_those_of_the_labels_whatever_their_type_as_in_memory(option, listed, kind, tmp_path):
    file = tmp_path / "scores.parquet"
    pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": map(kind, [1, 2, 1])}).to_parquet(file)
    expected = cp.Annotations.from_parquet(file, **{option: listed}).classes
    fit = cp.fit("one_coin", cp.scan(file, **{option: listed}), progress=False)
    assert cp.data.ids.Ids(fit.classes) == expected
    with pytest.raises(cp.AnnotationError, match=r"'label': 2(\.0)? is not in"):
        cp.fit("one_coin", cp.scan(file, **{option: [1, 3]}), progress=False)


def test_questions_are_refused_with_a_scan_of_one_that_runs(tmp_path):
    file = tmp_path / "file.parquet"
    asked = table(100, 10).assign(question=["tone", "style"] * 50)
    asked.to_parquet(file)
    with pytest.raises(cp.AnnotationError, match=r"question='question': .*from_parquet") as refused:
        cp.scan(file, question="question")
    mend = re.search(r"cp\.scan\(.*?\)\)", str(refused.value)).group()
    found = eval(mend.replace("file.parquet", str(file)), {"cp": cp, "duckdb": duckdb})
    assert cp.fit("one_coin", found, progress=False).n_annotations == 50


def test_more_classes_than_two_bytes_number_are_refused(tmp_path):
    table(100).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cp.AnnotationError, match=r"32,768 classes; at most 32,767"):
        cp.scan(tmp_path / "a.parquet", classes=range(2**15))
