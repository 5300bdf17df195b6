from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdppl.data import AnnotationError, Annotations
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.some_tasks import some_tasks

ROWS = pd.DataFrame(
    [("t2", "ann", "b"), ("t1", "bob", "a"), ("t2", "bob", "a"), ("t3", "ann", "a")],
    columns=["task", "worker", "label"],
)
TABLE = {"task": ["t3", "t1"], "label": ["b", "a"]}


@pytest.mark.parametrize(
    "gold",
    [
        {"t3": "b", "t1": "a"},
        pd.Series({"t1": "a", "t3": "b", "t2": None}),
        pd.DataFrame(TABLE),
        pd.DataFrame({"task": ["t3", "t1", "t2", "t1"], "label": ["b", "a", None, "a"]}),
        pl.DataFrame(TABLE),
        pa.table(TABLE),
        pd.DataFrame(TABLE).astype("category"),
    ],
)
def test_gold_comes_from_dictionaries_series_and_tables_in_any_order_and_a_missing_label_is_unknown(gold):
    annotations = Annotations.from_frame(ROWS, gold=gold)
    assert dict(zip(annotations.tasks, annotations.gold.tolist(), strict=True)) == {"t1": 0, "t2": -1, "t3": 1}
    assert annotations.gold.dtype == np.int32


def test_gold_that_is_all_unknown_is_not_the_same_as_no_gold():
    assert Annotations.from_frame(ROWS, gold={}).gold.tolist() == [-1, -1, -1]
    assert Annotations.from_frame(ROWS).gold is None


def test_gold_columns_go_by_the_names_of_the_annotations_columns():
    rows = ROWS.rename(columns={"task": "image", "label": "annotation"})
    gold = pd.DataFrame({"image": ["t1"], "annotation": ["b"]})
    annotations = Annotations.from_frame(rows, task="image", label="annotation", gold=gold)
    assert annotations.gold[annotations.tasks.index_of(["t1"])].tolist() == [1]


def test_gold_files_are_read_like_the_annotations(tmp_path):
    (tmp_path / "crowd.csv").write_text("task,worker,label\n1,a,0\n2,a,1\n3,b,1\n")
    (tmp_path / "truth.csv").write_text("task,label\n3,1\n2,\n")
    annotations = Annotations.read(tmp_path / "crowd.csv", gold=tmp_path / "truth.csv")
    assert annotations.gold.tolist() == [-1, -1, 1]
    # One task that is no number makes text of the tasks of both files.
    (tmp_path / "crowd.csv").write_text("task,worker,label\n1,a,0\n2,a,1\n3,b,1\nx,b,1\n")
    annotations = Annotations.read(tmp_path / "crowd.csv", gold=str(tmp_path / "truth.csv"))
    assert list(annotations.tasks) == ["1", "2", "3", "x"]
    assert annotations.gold.tolist() == [-1, -1, 1, -1]
    pd.DataFrame({"task": ["x"], "label": [0]}).to_parquet(tmp_path / "truth.parquet")
    annotations = Annotations.read(tmp_path / "crowd.csv", gold=tmp_path / "truth.parquet")
    assert annotations.gold.tolist() == [-1, -1, -1, 0]
    (tmp_path / "crowd.json").write_text('{"1": {"a": 0, "b": 1}, "2": {}, "3": {"a": 1}}')
    annotations = Annotations.read(tmp_path / "crowd.json", gold=tmp_path / "truth.csv")
    assert annotations.gold.tolist() == [-1, -1, 1]


@pytest.mark.parametrize("kind", [str, Path])
def test_the_path_of_a_file_is_gold_for_every_constructor(tmp_path, kind):
    """Text in the file stands for the task or class that is written so, whatever its type."""
    path = tmp_path / "truth.csv"
    path.write_text("task,label\n1,0\n0,\n")
    given = kind(path)
    matrix, counts = [[0, 1], [1, 0]], np.array([[1, 1], [2, 0]])
    frame = pd.DataFrame({"task": [0, 1], "worker": ["u", "u"], "label": [0, 1]})
    by_task = {0: {"u": 0}, 1: {"u": 1}}
    texts = {"0": {"u": "0"}, "1": {"u": "1"}, "x": {"u": "y"}}
    for annotations in (
        Annotations.from_frame(frame, gold=given),
        Annotations.from_frame(frame).with_gold(given),
        Annotations.from_matrix(matrix, gold=given),
        Annotations.from_counts(counts, gold=given),
        Annotations.from_dict(by_task, gold=given),
        Annotations.from_dict(texts, gold=given),
        Annotations.from_dict(texts).with_gold(given),
    ):
        assert annotations.gold.tolist()[:2] == [-1, 0]


def test_a_file_of_gold_labels_that_is_not_there_or_does_not_fit_is_named(tmp_path):
    annotations = Annotations.from_matrix([[0, 1], [1, 0]])
    with pytest.raises(AnnotationError, match=r"gold='x\.csv': there is no such file; give a \.csv"):
        annotations.with_gold("x.csv")
    for read in (Annotations.from_frame, Annotations.from_csv):
        source = ROWS if read == Annotations.from_frame else tmp_path / "crowd.csv"
        ROWS.to_csv(tmp_path / "crowd.csv", index=False)
        with pytest.raises(AnnotationError, match=r"gold='x\.csv': there is no such file"):
            read(source, gold="x.csv")
    (tmp_path / "truth.csv").write_text("task,label\n0,1\n7,1\n")
    with pytest.raises(AnnotationError, match=r"gold, row 1 \(line 3 of truth\.csv\): task 7 is not among"):
        annotations.with_gold(tmp_path / "truth.csv")
    (tmp_path / "truth.csv").write_text("wer,label\n0,1\n")
    with pytest.raises(
        AnnotationError, match=r"truth.csv' has no column 'task'.* Rename the column of tasks to 'task'"
    ):
        annotations.with_gold(tmp_path / "truth.csv")


VECTORS = {"t1": [1.0, 10.0], "t2": [2.0, 20.0], "t3": [3.0, 30.0]}


@pytest.mark.parametrize(
    "features",
    [
        VECTORS,
        pd.DataFrame.from_dict(VECTORS, orient="index", columns=["h", "w"]),
        pd.DataFrame({"task": list(VECTORS), "h": [1, 2, 3], "w": [10.0, 20.0, 30.0]}).iloc[::-1],
        pl.DataFrame({"h": [2, 1, 3], "task": ["t2", "t1", "t3"], "w": [20, 10, 30]}),
        pa.table({"task": ["t2", "t1", "t3"], "h": [2, 1, 3], "w": [20, 10, 30]}),
    ],
)
def test_features_are_brought_into_the_order_of_the_tasks(features):
    annotations = Annotations.from_frame(ROWS, features=features)
    assert list(annotations.tasks) == ["t2", "t1", "t3"]
    assert annotations.features.tolist() == [[2, 20], [1, 10], [3, 30]]
    assert annotations.features.dtype == np.float32
    assert not annotations.features.flags.writeable


def test_an_array_of_features_is_in_the_order_that_the_caller_gave():
    x = np.arange(4 * 2 * 3).reshape(4, 2, 3)
    tasks = ["t3", "t2", "t1", "t0"]
    annotations = Annotations.from_frame(ROWS, tasks=tasks, features=x)
    assert list(annotations.tasks) == tasks
    assert np.array_equal(annotations.features, x)
    matrix, counts = np.array([[0, 1], [1, 0]]), np.array([[0, 3], [1, 1]])
    assert Annotations.from_matrix(matrix, features=[[1], [2]], worker_features=[[3], [4]]).features.tolist() == [
        [1],
        [2],
    ]
    assert Annotations.from_counts(counts, features=[[1], [2]]).features.tolist() == [[1], [2]]


def test_features_of_workers_are_brought_into_their_order():
    expected = [[1.0], [2.0]]
    for given in ({"bob": [2], "ann": [1]}, pd.DataFrame({"worker": ["bob", "ann"], "age": [2, 1]})):
        annotations = Annotations.from_frame(ROWS, worker_features=given)
        assert list(annotations.workers) == ["ann", "bob"]
        assert annotations.worker_features.tolist() == expected
    annotations = Annotations.from_frame(ROWS, workers=["bob", "ann"], worker_features=expected)
    assert annotations.worker_features.tolist() == expected
    assert list(annotations.workers) == ["bob", "ann"]


def test_gold_that_is_an_abstention_is_refused_as_one():
    by_task = {"t1": {"ann": "cat", "bob": "skip"}, "t2": {"ann": "dog", "bob": "dog"}}
    message = "label 'skip' of task 't1' is an abstention and no class, and the classes are 'cat', 'dog'"
    with pytest.raises(AnnotationError, match=message):
        Annotations.from_dict(by_task, abstain=["skip"], gold={"t1": "skip"})
    with pytest.raises(AnnotationError, match=message):
        Annotations.from_dict(by_task, abstain=["skip"]).with_gold({"t1": "skip"})


def test_columns_of_gold_labels_with_names_in_any_language_are_known_by_what_is_in_them(tmp_path):
    rows = pd.DataFrame({"task": ["a1", "a2", "a3"], "worker": "w", "label": ["gut", "schlecht", "gut"]})
    annotations = Annotations.from_frame(rows)
    gold = pd.DataFrame({"Auftragsnr.": ["a2", "a3"], "Bewertung": ["schlecht", "gut"], "Bemerkung": ["", "geprüft"]})
    gold.to_csv(tmp_path / "gold.csv", sep=";", index=False)
    gold.to_parquet(tmp_path / "gold.parquet")
    for given in (gold, tmp_path / "gold.csv", tmp_path / "gold.parquet"):
        with pytest.warns(AnnotationWarning) as told:
            assert np.asarray(annotations.with_gold(given).gold).tolist() == [-1, 1, 0]
        (said,) = told  # once
        assert "'Auftragsnr.' is taken for the tasks and 'Bewertung' for the labels" in str(said.message)
    for unclear in (gold.assign(again=gold["Bewertung"]), gold.replace("a3", "a9"), gold.replace("gut", "mäßig")):
        with pytest.raises(AnnotationError, match="has no column 'task'"):
            annotations.with_gold(unclear)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ({"t1": np.nan}, "gold: the only label is missing"),
        (pd.Series({"t1": None, "t2": None}), "gold: each of the 2 labels is missing"),
        (pl.DataFrame({"task": ["t1"], "label": [None]}), "gold: the only label is missing"),
    ],
)
def test_gold_labels_that_are_all_missing_are_warned_of(gold, said):
    with pytest.warns(AnnotationWarning, match=said):
        found = Annotations.from_frame(ROWS, gold=gold)
    assert found.gold.tolist() == [-1, -1, -1]


def test_a_file_of_gold_without_a_label_is_warned_of(tmp_path):
    (tmp_path / "gold.csv").write_text("task,label\nt1,\nt2,\n")
    with pytest.warns(AnnotationWarning, match=r"gold\.csv.*each of the 2 labels is missing"):
        Annotations.from_frame(ROWS, gold=tmp_path / "gold.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gold.json", '{"7": "yes", "9": "no"}'),
        ("gold.json", '[{"item": 7, "answer": "yes"}, {"item": 9, "answer": "no"}]'),
        ("gold.jsonl", '{"item": 7, "gold": "yes"}\n{"item": "9", "gold": "no"}\n{"item": 8, "gold": null}\n'),
    ],
)
def test_gold_labels_come_from_json_as_from_csv(tmp_path, name, content):
    rows = pd.DataFrame({"task": [7, 8, 9], "worker": "w", "label": ["yes", "no", "no"]})
    (tmp_path / name).write_text(content)
    gold = Annotations.from_frame(rows, gold=tmp_path / name).gold
    assert np.asarray(gold).tolist() == [1, -1, 0]
    (tmp_path / name).write_text("[1, 2]")
    with pytest.raises(AnnotationError, match=r"a list of records, or .*\{task: label\}"):
        Annotations.from_frame(rows, gold=tmp_path / name)
    (tmp_path / name).write_text("{")
    with pytest.raises(AnnotationError, match="is no JSON file"):
        Annotations.from_frame(rows, gold=tmp_path / name)


def test_gold_labels_come_from_excel_as_from_csv(tmp_path):
    rows = pd.DataFrame({"task": [7, 8, 9], "worker": "w", "label": ["yes", "no", "no"]})
    rows.to_csv(tmp_path / "crowd.csv", index=False)
    path = tmp_path / "gold.xlsx"
    pd.DataFrame({"item": [7, 9, 8], "gold": ["yes", "no", None]}).to_excel(path, index=False)
    for gold in (path, str(path)):
        assert Annotations.from_csv(tmp_path / "crowd.csv", gold=gold).gold.tolist() == [1, -1, 0]
        assert Annotations.read(tmp_path / "crowd.csv", gold=gold).gold.tolist() == [1, -1, 0]
        assert Annotations.from_frame(rows).with_gold(gold).gold.tolist() == [1, -1, 0]
    (tmp_path / "gold.json").write_text('{"7": "yes", "9": "no"}')
    assert Annotations.from_csv(tmp_path / "crowd.csv", gold=tmp_path / "gold.json").gold.tolist() == [1, -1, 0]
    pd.DataFrame({"task": [7, 10], "label": ["yes", "no"]}).to_excel(path, index=False)
    with pytest.raises(AnnotationError, match="gold, row 3 of the sheet: task 10 is not among"):
        Annotations.from_frame(rows, gold=path)
    with pd.ExcelWriter(path) as book:
        for name in ("checked", "doubtful"):
            pd.DataFrame({"task": [7], "label": ["yes"]}).to_excel(book, sheet_name=name, index=False)
    with pytest.raises(AnnotationError, match=r"'checked', 'doubtful'.*read_excel\(path, sheet_name='checked'\)"):
        Annotations.from_frame(rows, gold=path)


def test_gold_labels_that_a_table_lacks_are_told_with_their_number(tmp_path):
    rows = Annotations.from_frame(pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": ["yes", "no", "no"]}))
    gold = pd.DataFrame({"task": [1, 2, 3], "label": ["yes", None, "no"]})
    gold.to_csv(tmp_path / "gold.csv", index=False)
    for given in (gold, tmp_path / "gold.csv"):
        with pytest.warns(AnnotationWarning, match="1 of 3 labels are missing .*no true label of those tasks is known"):
            assert np.asarray(rows.with_gold(given).gold >= 0).tolist() == [True, False, True]


def test_tasks_of_gold_labels_may_be_written_as_pandas_writes_numbers_beside_a_missing_one(tmp_path):
    rows = pd.DataFrame({"task": [0, 1, 2], "worker": "w", "label": ["yes", "no", "no"]})
    rows.to_csv(tmp_path / "crowd.csv", index=False)
    pd.DataFrame({"task": [0.0, 2.0], "label": ["yes", "no"]}).to_csv(tmp_path / "gold.csv", index=False)
    for found in (
        Annotations.from_csv(tmp_path / "crowd.csv", gold=tmp_path / "gold.csv"),
        Annotations.from_frame(rows, gold=tmp_path / "gold.csv"),
    ):
        assert found.gold.tolist() == [1, -1, 0]
        assert list(found.tasks) == [0, 1, 2]
    # where "1.0" is a name of a task, it stays one
    (tmp_path / "crowd.csv").write_text("task,worker,label\n1.0,a,x\n1.1,a,y\n")
    (tmp_path / "gold.csv").write_text("task,label\n1.0,x\n")
    assert Annotations.from_csv(tmp_path / "crowd.csv", gold=tmp_path / "gold.csv").gold.tolist() == [0, -1]


@pytest.mark.parametrize(("tasks", "gold"), [(["0000", "0001"], [0, 1]), ([0, 1], ["0000", "0001"])])
def test_tasks_that_differ_by_leading_zeros_alone_are_said_to(tmp_path, tasks, gold):
    rows = pd.DataFrame({"task": tasks, "worker": "w", "label": ["yes", "no"]})
    truth = pd.DataFrame({"task": gold, "label": ["yes", "no"]})
    rows.to_csv(tmp_path / "crowd.csv", index=False)
    truth.to_csv(tmp_path / "gold.csv", index=False)
    said = r"the annotations have '?0+'?: identifiers with leading zeros are text, so write them alike in both"
    for read in (
        lambda: Annotations.from_frame(rows, gold=truth),
        lambda: Annotations.from_frame(rows, gold=tmp_path / "gold.csv"),
        lambda: Annotations.from_csv(tmp_path / "crowd.csv", gold=tmp_path / "gold.csv"),
    ):
        with pytest.raises(AnnotationError, match=said) as told:
            read()
        assert "tasks=[" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "features", "parts"),
    [
        ("features", np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]]), ["task 't1', column 0: nan", "fill it in"]),
        ("features", np.ones((2, 4)), ["expected shape (3, ...)", "one row a task", "got (2, 4)"]),
        ("features", {"t1": [1.0], "t2": [2.0]}, ["task 't3' has no features (1 of 3 tasks)"]),
        ("worker_features", np.array([[1.0], [np.inf]]), ["worker 'bob', column 0: inf"]),
        ("worker_features", np.ones((3, 4)), ["expected shape (2, D)", "got (3, 4)"]),
    ],
)
def test_features_that_replace_others_are_checked_as_those_of_a_table_are(name, features, parts):
    with pytest.raises(AnnotationError) as error:
        Annotations.from_frame(ROWS).replace(**{name: features})
    assert all(part in str(error.value) for part in [name, *parts]), error.value


def test_features_that_replace_others_come_in_each_form_that_a_table_s_do():
    annotations = Annotations.from_frame(ROWS)
    table = pd.DataFrame({"task": ["t3", "t2", "t1"], "h": [3, 2, 1], "w": [6, 5, 4]})
    by_table = annotations.replace(features=table)
    assert list(by_table.feature_names) == ["h", "w"]
    by_task = {row.task: [row.h, row.w] for row in table.itertuples()}
    expected = Annotations.from_frame(ROWS, features=table).features
    for found in (by_table, annotations.replace(features=by_task), annotations.replace(features=expected.tolist())):
        np.testing.assert_array_equal(found.features, expected)
        assert found.features.dtype == np.float32
    assert annotations.replace(features=None).features is None
    assert some_tasks(by_table, np.zeros(3, bool)).features.shape == (0, 2)
