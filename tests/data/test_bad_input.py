"""Bad input is refused, with words that name what is wrong, where, and what would do."""

import re
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations
from crowdppl.data.atomic import whole_file, whole_folder
from crowdppl.data.errors import AnnotationWarning, StorageError, UnknownNameError

ROWS = pd.DataFrame({"task": [0, 0, 1, 1], "worker": list("uvuv"), "label": list("abab")})
MANY = pd.DataFrame({"task": np.arange(60) % 9, "worker": np.arange(60) % 7, "label": [f"x{i}" for i in range(60)]})


def says(error, *parts):
    """Assert that the message holds all the parts, in this order."""
    message, at = str(error.value), 0
    for part in parts:
        assert part in message[at:], f"{part!r} is not in the rest of {message!r}"
        at = message.index(part, at) + len(part)


def refused(rows, *parts, **options):
    with pytest.raises(AnnotationError) as error:
        Annotations.from_frame(rows, **options)
    says(error, *parts)


def refused_file(path, content, *parts, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(AnnotationError) as error:
        Annotations.read(path, **options)
    says(error, *parts)


# Columns


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_a_missing_or_misspelt_column_lists_those_there_are_and_the_nearest(library):
    columns = "its columns are 'task', 'worker', 'lable'"
    refused(
        library(ROWS.rename(columns={"label": "lable"})), "no column 'label'", columns, "Did you mean label='lable'?"
    )
    refused(library(ROWS), "no column 'Task'", "Did you mean task='task'?", task="Task")
    refused(library(ROWS.rename(columns={"task": "question"})), "no column 'task'", "Did you mean task='question'?")
    refused(library(ROWS), "no column 'n'", "'task', 'worker', 'label'", count="n")


def test_a_missing_worker_column_says_how_to_go_without():
    refused(ROWS.rename(columns={"worker": "annotator"}), "'worker'", "Did you mean worker='annotator'?", "worker=None")
    refused(ROWS[["task", "label"]], "no column 'worker'", "pass worker=None")


def test_two_columns_of_one_name_and_things_that_are_no_tables():
    refused(pd.concat([ROWS, ROWS[["label"]]], axis=1), "two columns have the same name", "label")
    refused([1, 2], "expected a pandas, polars or pyarrow table, got a list", "from_dict")
    refused("crowd.csv", "got a str", "from_csv")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": "worker"}, "column 'worker' is given for both worker= and label="),
        ({"worker": "task"}, "column 'task' is given for both task= and worker="),
        ({"count": "label"}, "column 'label' is given for both label= and count="),
        ({"seconds": "task", "worker": None}, "column 'task' is given for both task= and seconds="),
    ],
)
def test_one_column_cannot_be_two_things(options, said, tmp_path):
    refused(ROWS, said, "name a column for each", **options)
    ROWS.to_parquet(tmp_path / "c.parquet")
    ROWS.to_csv(tmp_path / "c.csv", index=False)
    for name in ("c.csv", "c.parquet"):
        with pytest.raises(AnnotationError, match=re.escape(said)):
            Annotations.read(tmp_path / name, **options)


@pytest.mark.parametrize("separator", [";;", "", "\n", '"', 3])
def test_a_separator_is_one_character(tmp_path, separator):
    parts = [f"separator={separator!r}", "a single character", "',', ';', '|' or '\\t'"]
    refused_file(tmp_path / "c.csv", "task,worker,label\n1,u,a\n", *parts, separator=separator)


# Rows


def test_no_rows():
    refused(ROWS.iloc[:0], "'task', 'worker', 'label'", "no row")
    refused(pl.from_pandas(ROWS).head(0), "no row")


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_missing_values_are_counted_and_the_first_rows_named(column):
    values = ROWS[column].astype(object)
    refused(
        ROWS.assign(**{column: values.where([True, False, True, False])}), f"column '{column}'", "row 1, row 3;", "fill"
    )
    refused(
        pl.from_pandas(pd.concat([ROWS, ROWS[:1]])).with_columns(pl.lit(None).alias(column)),
        f"'{column}'",
        "row 0, row 1, row 2 and 2 more (5 in all)",
    )
    refused(ROWS.assign(**{column: [0.5, np.nan, 1, 2]}), f"column '{column}'", "missing in row 1;")


@pytest.mark.parametrize("column", ["task", "worker"])
def test_infinite_ids_are_refused_with_their_row(column):
    parts = (f"column '{column}'", "row 2: inf", "finite number")
    for values in ([0.0, 1.0, np.inf, 1.0], ["a", "b", np.inf, "b"]):
        refused(ROWS.assign(**{column: pd.Series(values, dtype=object if "a" in values else float)}), *parts)
    refused(pl.from_pandas(ROWS).with_columns(pl.Series(column, [0.0, 1.0, np.inf, 1.0])), *parts)


def test_unhashable_ids():
    refused(ROWS.assign(task=[[0], [1], [2], [3]]), "column 'task', row 0: [0] is a list", "text, a number or a tuple")
    refused(ROWS.assign(worker=["u", {"v": 1}, "u", "w"]), "column 'worker', row 1: {'v': 1} is a dict")
    refused(pl.from_pandas(ROWS).with_columns(label=pl.Series([[0], [1], [2], [3]])), "column 'label', row 0")


@pytest.mark.parametrize("column", ["task", "worker", "label"])
@pytest.mark.parametrize(
    ("one", "two"), [("1", 1), (1, True), (uuid.UUID(int=5), str(uuid.UUID(int=5))), ((1, 2), (1.0, 2))]
)
def test_ids_that_differ_only_in_type_are_named_both_with_their_rows(column, one, two):
    values = pd.Series([one, "x", "y", two], dtype=object)
    kinds = f"{one!r} ({type(one).__name__}) and {two!r} ({type(two).__name__}) differ only in type"
    refused(ROWS.assign(**{column: values}), f"column '{column}', row 0 and row 3", kinds, "convert them to one type")


def test_ids_of_several_types_that_cannot_be_confused_work():
    rows = ROWS.assign(task=pd.Series([1, "a", 2.5, (3,)], dtype=object))
    assert list(Annotations.from_frame(rows).tasks) == [1, "a", 2.5, (3,)]


# Classes


def test_one_class_only_says_how_to_name_the_others():
    refused(ROWS.assign(label="a"), "column 'label' holds a single class, 'a', in all 4 rows", "classes=[...]")
    assert Annotations.from_frame(ROWS.assign(label="a"), classes=["a", "b"]).n_classes == 2
    refused(ROWS.assign(label="a"), "classes=['a'] must list at least two", classes=["a"])


def test_one_row_only_is_no_plural():
    refused(ROWS[:1], "column 'label' holds a single class, 'a', in its only row, so that there is nothing to infer")


def test_a_label_outside_the_given_classes():
    refused(ROWS, "column 'label', row 1: 'b' is not in classes=['a', 'c']", "add it", classes=["a", "c"])
    refused(ROWS.assign(label=["0", "1"] * 2), "'0'", "there is 0, of type int", "of type str", classes=[0, 1])
    refused(ROWS, "classes: 'a' stands at positions 0 and 2", classes=["a", "b", "a"])
    refused(ROWS, "classes must be a list", "'ab'", classes="ab")


def test_an_identifier_taken_for_labels_names_the_column_that_may_be_meant():
    message = "column 'label' has 60 distinct values in 60 rows, such as 'x0' and 'x1': it looks like an identifier"
    refused(
        MANY.assign(annotation=[0, 1] * 30),
        message,
        "'annotation' has 2 distinct values",
        "label='annotation'",
        "classes=[...]",
    )
    refused(MANY, message, "'worker' has 7 distinct values")
    million = pd.DataFrame({"task": 0, "worker": 0, "label": np.arange(1_000_000)})
    refused(million, "1000000 distinct values in 1000000 rows")
    rare = pd.DataFrame({"task": 0, "worker": 0, "label": np.arange(9000) % 1001})
    refused(rare, "1001 distinct values in 9000 rows")


def test_few_rows_or_half_as_many_classes_as_rows_are_no_identifier():
    assert Annotations.from_frame(MANY.head(49)).n_classes == 49
    assert Annotations.from_frame(MANY.assign(label=np.arange(60) % 30)).n_classes == 30


# Tasks and workers


def test_tasks_and_workers_that_are_not_in_the_given_ones():
    refused(ROWS, "column 'task', row 2: 1 is not in tasks=[0, 2]", "add it to tasks", tasks=[0, 2])
    refused(ROWS, "column 'worker', row 1: 'v' is not in workers=['u']", workers=["u"])
    refused(ROWS, "row 0: 0 is not in tasks=['0', '1']", "'0', of type str", tasks=["0", "1"])
    refused(ROWS, "tasks: 1 stands at positions 1 and 2", tasks=[0, 1, 1])


@pytest.mark.parametrize("option", [{"workers": ["u"]}, {"worker_features": {"u": [1]}}, {"repeats": "first"}])
def test_what_needs_names_of_workers_is_refused_without(option):
    refused(ROWS, f"{next(iter(option))}= cannot be used where no worker is named", worker=None, **option)


# Gold


def test_gold_for_an_unknown_task():
    refused(ROWS, "gold[7]: task 7 is not among the annotated tasks", "tasks=[...]", gold={7: "a"})
    refused(ROWS, "task '1'", "there is 1, of type int, but this is of type str", gold={"1": "a"})
    gold = pd.DataFrame({"task": [1, 8, 9], "label": "a"})
    refused(ROWS, "gold, row 1: task 8", "(2 such tasks)", gold=gold)
    assert Annotations.from_frame(ROWS, gold={7: "a"}, tasks=[0, 1, 7]).gold.tolist() == [-1, -1, 0]


def test_gold_of_an_unknown_class():
    message = "label 'z' of task 1 is none of the classes"
    refused(
        ROWS,
        "gold[1]",
        message,
        "which are 'a', 'b'",
        "correct it, or read the annotations anew with classes=[...] that include it",
        gold={1: "z"},
    )
    refused(ROWS, "gold, row 2", message, gold=pd.DataFrame({"task": [0, 0, 1], "label": ["a", None, "z"]}))
    assert Annotations.from_frame(ROWS, gold={1: "z"}, classes=["z", "a", "b"]).gold.tolist() == [-1, 0]


def test_gold_that_contradicts_itself_or_is_no_table():
    gold = pd.DataFrame({"task": [0, 1, 0], "label": ["a", "b", "b"]})
    refused(ROWS, "task 0 has two labels, 'a' (row 0) and 'b' (row 2)", gold=gold)
    refused(ROWS, "task 0 has two labels", gold=gold.set_index("task")["label"])
    misspelt = gold.rename(columns={"label": "lable"}).assign(again=gold["label"])  # either may be meant
    refused(ROWS, "gold has no column 'label'", "Did you mean 'lable'? Rename", gold=misspelt)
    refused(ROWS, "gold: expected a dictionary task -> label", "got a list", gold=["a", "b"])
    with pytest.raises(AnnotationError, match="task 7 is not among"):
        Annotations.from_frame(ROWS).with_gold({7: "a"})


# Features


@pytest.mark.parametrize(
    ("features", "parts"),
    [
        (np.ones((2, 3)), ["whose order is given: pass tasks=[...]", "dictionary task -> vector"]),
        (pd.DataFrame({"h": [1, 2], "w": [1, np.nan]}), ["task 1, column 'w': nan is not a finite number"]),
        (pd.DataFrame({"task": [1, 0], "h": [1, -np.inf]}), ["task 0, column 'h': -inf"]),
        (pd.DataFrame({"h": ["x", "y"]}), ["column 'h': expected numbers", "'x'"]),
        (pd.DataFrame({"h": [1, "y"]}), ["column 'h': expected numbers", "such as 'y'"]),
        (pl.DataFrame({"h": [1, 2]}), ["no column 'task'", "'h'"]),
        ({0: [1.0], 1: [2.0, 3.0]}, ["task 1 has shape (2,), but task 0 has (1,)"]),
        ({0: [1.0]}, ["task 1 has no features (1 of 2 tasks)"]),
        ({0: [1.0], 1: [2.0], 2: [3.0]}, ["task 2 is not among the annotated tasks", "tasks=[...]"]),
        ({0: [1.0], "1": [2.0]}, ["task '1' is not among", "there is 1, of type int"]),
        ({0: 1.0, 1: 2.0}, ["expected shape (2, ...)", "got (2,)"]),
        (pd.DataFrame({"task": [0, 1, 0], "h": 1.0}), ["0 stands at positions 0 and 2"]),
    ],
)
def test_features_that_cannot_be_used(features, parts):
    refused(ROWS, "features", *parts, features=features)


@pytest.mark.parametrize(
    ("features", "parts"),
    [
        (np.ones((3, 3)), ["expected shape (2, ...)", "got (3, 3)"]),
        (np.ones(2), ["got (2,)", "features[:, None]"]),
        (np.ones((2, 0)), ["at least one feature", "got (2, 0)"]),
        (np.array([[1, 2], [3, np.inf]]), ["task 1, column 1: inf is not a finite number"]),
        (np.array([[1, 1e300], [3, 4]]), ["task 0, column 1: 1e+300 is not a finite number in single precision"]),
        (np.array([[[1, 2], [3, np.nan]]] * 2), ["task 0, column 1, 1: nan"]),
        (np.array([["a"], ["b"]]), ["expected numbers"]),
    ],
)
def test_arrays_of_features_that_cannot_be_used(features, parts):
    refused(ROWS, "features", *parts, tasks=[0, 1], features=features)


def test_features_of_workers_that_cannot_be_used():
    refused(ROWS, "pass workers=[...]", worker_features=np.ones((2, 2)))
    refused(
        ROWS,
        "worker_features: expected shape (2, D)",
        "(2, 2, 2)",
        workers=["u", "v"],
        worker_features=np.ones((2,) * 3),
    )
    refused(ROWS, "worker_features: worker 'v' has no features", worker_features={"u": [1.0]})
    refused(
        ROWS,
        "worker_features, worker 'v', column 'age': nan",
        worker_features=pd.DataFrame({"age": [1, None]}, index=["u", "v"]),
    )


# Counts


def test_counts_that_are_no_numbers_of_annotations():
    for wrong, shown in ([1, -2, 1, 1], "-2"), ([1, 0.5, 1, 1], "0.5"), ([1, 2.0**25, 1, 1], "33554432.0"):
        refused(ROWS.assign(n=wrong), "column 'n', row 1:", shown, "whole number from 0", count="n")
    refused(ROWS.assign(n=["x"] * 4), "column 'n': expected whole numbers", "'x'", count="n")
    refused(ROWS.assign(n=[1, None, 1, 1]), "column 'n'", "missing in row 1", count="n")
    refused(ROWS.assign(n=0), "column 'n' is 0 in every row", count="n")


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ([[1, -2]], ["task 0, class 1: -2 is no number of annotations"]),
        ([[1, 2], [0.5, 1]], ["task 1, class 0: 0.5"]),
        ([[1, np.nan]], ["task 0, class 1: nan"]),
        ([[0, 0]], ["every cell is 0", "at least one annotation"]),
        ([1, 2], ["expected tasks x classes", "got (2,)"]),
        ([[3], [2]], ["at least two classes"]),
    ],
)
def test_tables_of_counts_that_are_none(counts, parts):
    with pytest.raises(AnnotationError) as error:
        Annotations.from_counts(np.array(counts))
    says(error, *parts)


# Matrices and dictionaries


@pytest.mark.parametrize(
    ("matrix", "options", "parts"),
    [
        ([[1.0, np.nan], [0, 1]], {}, ["cell (task 0, worker 1): nan is no label, but missing=-1", "missing=None"]),
        ([[np.nan, np.nan], [np.nan, 2.5]], {"missing": None}, ["cell (task 1, worker 1): 2.5 is a fraction"]),
        (
            pd.DataFrame({"u": [0, None], "v": [1, 0]}, index=["s", "t"]),
            {},
            ["cell (task 't', worker 'u'): nan is no label"],
        ),
        (pd.DataFrame({"u": ["a", 1.5]}, index=["s", "t"]), {}, ["cell (task 't', worker 'u'): 1.5 is a fraction"]),
        (pd.DataFrame({"u": ["a", None], "v": ["a", "b"]}), {}, ["cell (task 1, worker 'u')", "pass missing=None"]),
        ([[-1, -1]], {}, ["all 2 cells are -1", "no annotation"]),
        ([1, 2], {}, ["expected tasks x workers", "got (2,)"]),
        (np.empty((0, 3), int), {}, ["at least one of each", "got (0, 3)"]),
        ([[1, 0]], {"tasks": ["a", "b"]}, ["tasks= names 2 tasks, but the matrix has 1"]),
        ([[0, 1]], {"classes": [1, 2]}, ["label, cell (task 0, worker 0): 0 is not in classes=[1, 2]"]),
        ([["a", "b"]], {"classes": ["a"]}, ["at least two classes"]),
        (pd.DataFrame({"u": [0, 1]}), {"workers": ["v"]}, ["'u' is not in workers=['v']"]),
        (pd.DataFrame({"u": [0, 1]}), {"workers": ["u", "v"]}, ["workers= names 'v', which the matrix does not have"]),
    ],
)
def test_matrices_that_cannot_be_read(matrix, options, parts):
    with pytest.raises(AnnotationError) as error:
        Annotations.from_matrix(matrix if isinstance(matrix, pd.DataFrame) else np.array(matrix), **options)
    says(error, *parts)


@pytest.mark.parametrize(
    ("by_task", "parts"),
    [
        ({}, ["0 tasks and no annotation"]),
        ({"a": {}}, ["1 tasks and no annotation"]),
        ({"a": {"u": 1, "v": 0}, "b": 1}, ["task 'b': expected a dictionary {worker: label}, got 1 (int)"]),
        ([1], ["expected a dictionary {task: {worker: label}}, got a list"]),
        ({"a": {"u": 1, "v": None}}, ["label", "missing in task 'a', worker 'v'"]),
        ({"a": {"u": 1, "v": [0]}}, ["label, task 'a', worker 'v': [0] is a list"]),
        ({"a": {1: 1}, "b": {"1": 0}}, ["task 'a', worker 1 and task 'b', worker '1'", "differ only in type"]),
        ({1: {"u": 1}, "1": {"u": 0}}, ["tasks: 1 (int) and '1' (str) differ only in type"]),
    ],
)
def test_dictionaries_that_cannot_be_read(by_task, parts):
    with pytest.raises(AnnotationError) as error:
        Annotations.from_dict(by_task)
    says(error, *parts)


# Files


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["the file is empty", "task,worker,label"]),
        (" \n\n", ["the file is empty"]),
        (b"\xef\xbb\xbf", ["no CSV file that can be read"]),
        ("task,worker,label\n", ["no row"]),
        (b"\x89PNG\r\n\x1a\n\x00\x00", ["no text file", "zero bytes"]),
        (b"PAR1\x15\x04", ["is a Parquet file", "from_parquet"]),
        ("task,worker,label\n1,2,3\n1,2,3,4\n", ["line 3 has 4 cells, and the header 3", "quotation marks"]),
        ("task,worker,label\n1,2,3,4\n1,2,3,4\n", ["row 0 (line 2): the row has more fields than the header"]),
        ('task,worker,label\n1,"2,3\n4,5,6', ["row 0 (line 2)", "quotation mark"]),
        ("task:worker:label\n1:2:3\n", ["no column 'task'", "'task:worker:label'"]),
        ("task,worker,label,label\n1,2,3,4\n", ["the header names 'label' more than once"]),
        ("Dear all,\nwe met on Monday\n", ["has no column 'task'", "'Dear all'"]),
        ("task,worker,lable\n1,2,3\n", ["crowd.csv has no column 'label'", "label='lable'"]),
        ("task,worker,label\n1,2,3\n\n1,2\n", ["column 'label'", "missing in row 1 (line 4 of crowd.csv)"]),
        ('task,worker,label\n"1\n1",2,3\n\n1,,4\n', ["column 'worker'", "missing in row 1 (line 5 of crowd.csv)"]),
        ('task,worker,label\n1,w,a\n"",w,b\n', ["column 'task'", "missing in row 1 (line 3 of crowd.csv)"]),
    ],
)
def test_files_that_are_no_csv_or_lack_something(tmp_path, content, parts):
    refused_file(tmp_path / "crowd.csv", content, *parts)


def test_a_label_outside_the_classes_is_found_by_its_line(tmp_path):
    content = "task,worker,label\n1,2,a\n1,3,b\n"
    refused_file(tmp_path / "c.csv", content, "row 1 (line 3 of c.csv): 'b' is not in classes", classes=["a", "c"])
    (tmp_path / "truth.csv").write_text("task,label\n1,a\n2,a\n")
    refused_file(tmp_path / "c.csv", content, "row 1 (line 3 of truth.csv): task 2", gold=tmp_path / "truth.csv")


def test_files_that_are_no_parquet(tmp_path):
    refused_file(tmp_path / "c.parquet", b"garbage", "c.parquet is no Parquet file")
    refused_file(tmp_path / "c.parquet", b"", "c.parquet: the file is empty")
    ROWS.to_parquet(tmp_path / "ok.parquet")
    with pytest.raises(
        AnnotationError, match=re.escape("has no column 'lable'; its columns are 'task', 'worker', 'label'")
    ):
        Annotations.read(tmp_path / "ok.parquet", label="lable")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (" ", ["the file is empty", "{task: {worker: label}}"]),
        ("{", ["no JSON file", "line 1 column 2"]),
        ("[1]", ["expected a dictionary {task: {worker: label}}"]),
        ('{"a": 1}', ["expected a dictionary {task: {worker: label}}", "for each task"]),
        ('{"a": {"w": 1, "w": 2}}', ["the key 'w' stands twice", "keep one"]),
        ('{"a": {"w": 1, "v": null}}', ["label", "missing in task 'a', worker 'v'"]),
    ],
)
def test_files_that_are_no_nested_json(tmp_path, content, parts):
    refused_file(tmp_path / "c.json", content, *parts)


def test_other_suffixes_and_files_that_are_not_there(tmp_path):
    refused_file(tmp_path / "c.xlsx", "x", "'.xlsx'", ".csv, .tsv, .parquet, .json")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        Annotations.read(tmp_path / "nowhere.csv")


# Rows that lack a value

GAPS = pd.DataFrame(
    {"task": [1, 1, 2, 2, 3, None], "worker": list("uvuvuv"), "label": ["a", "b", None, "a", None, "b"], "n": 2}
)


def test_all_columns_with_missing_values_are_named_in_one_error():
    for table in (GAPS, pl.from_pandas(GAPS)):
        refused(
            table,
            "column 'task': the value is missing in row 5; column 'label': the value is missing in row 2, row 4; fill",
            "remove the rows first; missing='drop' leaves them out",
        )
    refused(GAPS.iloc[:4], "missing in row 2; fill it in, or remove the row first; missing='drop' leaves it out")
    refused(GAPS.iloc[:4].assign(n=[1, None, 1, 1]), "'label'", "row 2; column 'n'", "in row 1", count="n")


def test_rows_without_a_value_are_dropped_where_that_is_asked_for():
    said = r"missing='drop' left out 3 of 6 rows, .*1 in column 'task', 2 in column 'label'\): row 2, row 4, row 5"
    for table in (GAPS, pl.from_pandas(GAPS)):
        with pytest.warns(AnnotationWarning, match=said):
            found = Annotations.from_frame(table, missing="drop", count="n")
        assert found.votes().tolist() == [[2, 2], [2, 0]]
    with pytest.warns(AnnotationWarning, match="left out 3"):
        found = Annotations.from_frame(GAPS, missing="drop", tasks=[1, 2, 3])
    assert found.votes().tolist() == [[1, 1], [1, 0], [0, 0]]
    with pytest.warns(AnnotationWarning, match="left out 2"):
        numbers = Annotations.from_frame(
            GAPS.assign(task=[1, 1, 2, 2, 3, 3], label=[1, 0, None, 1, None, 1]), missing="drop"
        )
    assert list(numbers.classes) == [0, 1]
    assert all(type(label) is int for label in numbers.classes)


def test_rows_that_are_left_keep_their_numbers_in_messages():
    rows = GAPS.assign(label=[None, "b", None, "a", None, "b"])
    with pytest.warns(AnnotationWarning, match="left out 4"):
        refused(rows, "column 'label', row 3: 'a' is not in classes", missing="drop", classes=["b", "c"])


def test_dropping_needs_its_word_and_a_row_that_is_left():
    with pytest.raises(UnknownNameError, match="unknown value of missing 'dorp'; did you mean 'drop'"):
        Annotations.from_frame(ROWS, missing="dorp")
    refused(GAPS.iloc[[2, 4]], "missing='drop' leaves no row: each of the 2", missing="drop")


def test_tables_that_are_joined_have_no_advice_that_nothing_takes():
    known = Annotations.from_frame(ROWS)
    with pytest.raises(AnnotationError, match=r"remove the rows first$"):
        known.joined(GAPS.iloc[1:5])


def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crowd.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n", encoding="utf-8")
    for reads in (cp.read, Annotations.from_csv, Annotations.from_parquet, Annotations.from_json):
        with pytest.raises(AnnotationError, match="path is empty"):
            reads("")
    with pytest.raises(StorageError, match="path is empty"):
        cp.load_fit("")
    for writes in (whole_file, whole_folder):
        with pytest.raises(StorageError, match="path is empty"), writes(""):
            pass
    assert cp.read(".", tell=False).n_annotations == 2
