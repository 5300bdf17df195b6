"""What each kind of input means where it leaves a choice."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations, Ids, UnknownNameError
from crowdppl.data.errors import AnnotationWarning


def csv(tmp_path, text, name="crowd.csv", **options):
    (tmp_path / name).write_text(text, encoding=options.pop("encoding", "utf-8"), newline="")
    return Annotations.read(tmp_path / name, **options)


def test_text_in_csv_stays_as_it_is_unless_a_whole_column_is_whole_numbers(tmp_path):
    annotations = csv(tmp_path, "task,worker,label\n007,1,NA\n7,-2,None\n1.0,30,nan\n")
    assert annotations.tasks == Ids(["007", "7", "1.0"])
    assert annotations.workers == Ids([1, -2, 30])
    assert annotations.classes == Ids(["NA", "None", "nan"])
    largest = csv(tmp_path, "task,worker,label\n9223372036854775807,+1,0\n-9223372036854775808,1,1\n")
    assert largest.tasks == Ids([2**63 - 1, -(2**63)])
    assert largest.workers == Ids(["+1", "1"])
    assert csv(tmp_path, "task,worker,label\n9223372036854775808,w,0\n1,-0,1\n").tasks == Ids(
        ["9223372036854775808", "1"]
    )


def test_csv_may_have_a_byte_order_mark_blank_lines_quotes_other_columns_and_other_separators(tmp_path):
    expected = csv(tmp_path, "task,worker,label\nt 1,w,0\n2,w,1\n")
    texts = ["\n\nx,label,worker,task\r\n,0,w,t 1\r\n\r\n1,1,w,2\r\n\r\n", 'task,"worker",label\n"t 1",w,"0"\n2,w,1']
    for text in texts:
        annotations = csv(tmp_path, text, encoding="utf-8-sig")
        assert annotations.to_frame().equals(expected.to_frame())
    assert csv(tmp_path, "task;worker;label\nt 1;w;0\n2;w;1\n", separator=";").to_frame().equals(expected.to_frame())
    assert csv(tmp_path, 'task,worker,label\n"a,\n""b",w,0\n2,w,1\n').tasks == Ids(['a,\n"b', "2"])


def test_columns_may_have_other_names_in_every_kind_of_file(tmp_path):
    frame = pd.DataFrame({"item": [3, 1], "who": ["x", "y"], "said": ["p", "q"], "n": [2, 1]})
    options = {"task": "item", "worker": "who", "label": "said", "count": "n"}
    expected = Annotations.from_frame(frame, **options)
    frame.to_csv(tmp_path / "c.csv", index=False)
    frame.to_parquet(tmp_path / "c.parquet")
    for name in ("c.csv", "c.parquet"):
        found = Annotations.read(tmp_path / name, **options)
        assert found.to_frame().equals(expected.to_frame())
        unnamed = Annotations.read(tmp_path / name, **(options | {"worker": None}))
        assert np.array_equal(unnamed.votes(), expected.votes())
        assert not unnamed.named


def test_keys_of_json_are_read_as_in_csv_and_labels_keep_their_type(tmp_path):
    annotations = csv(tmp_path, '{"10": {"a": 1, "02": 0}, "9": {}, "-3": {"a": 1}}', name="c.json")
    assert annotations.tasks == Ids([10, 9, -3])
    assert annotations.workers == Ids(["a", "02"])
    assert annotations.classes == Ids([0, 1])
    assert annotations.votes().sum(axis=1).tolist() == [2, 0, 1]


def test_a_task_with_an_empty_dictionary_has_no_annotation():
    annotations = Annotations.from_dict({"a": {}, "b": {"u": 0, "v": 1}})
    assert list(annotations.tasks) == ["a", "b"]
    assert annotations.votes().tolist() == [[0, 0], [1, 1]]


def test_tables_name_the_rows_and_columns_of_a_matrix_and_arrays_count_them():
    table = pd.DataFrame([[1, -1], [0, 1]], index=["t", "u"], columns=["ann", "bob"])
    annotations = Annotations.from_matrix(table)
    assert annotations.to_frame().to_numpy().tolist() == [["t", "ann", 1], ["u", "ann", 0], ["u", "bob", 1]]
    turned = Annotations.from_matrix(table, tasks=["u", "t"], workers=["bob", "ann"])
    assert turned.to_frame().to_numpy().tolist() == [["u", "bob", 1], ["u", "ann", 0], ["t", "ann", 1]]
    array = Annotations.from_matrix(table.to_numpy(), workers=["ann", "bob"])
    assert (array.tasks, array.workers) == (Ids.range(2), Ids(["ann", "bob"]))
    assert Annotations.from_matrix(pl.from_pandas(table)).workers == Ids(["ann", "bob"])


def test_rows_and_columns_of_a_matrix_without_annotations_are_kept():
    annotations = Annotations.from_matrix([[-1, -1, -1], [0, -1, 1]])
    assert (annotations.n_tasks, annotations.n_workers, annotations.n_annotations) == (2, 3, 2)


def test_the_missing_marker_may_be_a_number_a_text_or_nothing():
    assert Annotations.from_matrix([[9, 0], [1, 9]], missing=9).votes().tolist() == [[1, 0], [0, 1]]
    for blank in (None, float("nan"), pd.NA):
        table = pd.DataFrame([["a", blank], ["b", "a"]], dtype=object)
        assert Annotations.from_matrix(table, missing=None).votes().tolist() == [[1, 0], [1, 1]]
    whole = pd.DataFrame([[0, None], [1, 0]], dtype="Int64")
    assert Annotations.from_matrix(whole, missing=None).classes == Ids([0, 1])


def test_counts_take_their_names_from_a_table_or_from_the_caller():
    counts = np.array([[0, 2, 1], [4, 0, 0]], np.uint8)
    annotations = Annotations.from_counts(counts, tasks=["x", "y"], classes=["a", "b", "c"], gold={"y": "a"})
    assert annotations.to_frame().to_numpy().tolist() == [["x", "b", 2], ["x", "c", 1], ["y", "a", 4]]
    assert annotations.gold.tolist() == [-1, 0]
    table = pd.DataFrame(counts, index=["x", "y"], columns=["a", "b", "c"])
    assert Annotations.from_counts(table, classes=["c", "a", "b"]).votes().tolist() == counts[:, [2, 0, 1]].tolist()
    assert Annotations.from_counts(counts.astype(float)).classes == Ids.range(3)
    assert Annotations.from_counts(np.vstack([counts, [0, 0, 0]])).n_tasks == 3


def test_classes_are_those_given_in_that_order_or_sorted():
    rows = pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": ["10", "9", "b"]})
    assert list(Annotations.from_frame(rows).classes) == ["10", "9", "b"]
    assert list(Annotations.from_frame(rows, classes=["b", "z", "9", "10"]).classes) == ["b", "z", "9", "10"]
    assert list(Annotations.from_frame(rows.assign(label=[10, 9, -1])).classes) == [-1, 9, 10]
    assert list(Annotations.from_frame(rows.assign(label=["b", 10, (1,)])).classes) == [(1,), 10, "b"]  # by text


def test_labels_that_pandas_made_floats_of_are_the_integers_that_they_were():
    rows = pd.DataFrame({"task": [1, 2], "worker": "w", "label": [1.0, 2.0]})
    for frame in (rows, rows.astype({"label": object}), rows.astype({"label": "category"}), pl.from_pandas(rows)):
        annotations = Annotations.from_frame(frame, classes=None, gold={1: 2.0}, abstain=None)
        assert (annotations.classes, annotations.gold.tolist()) == (Ids([1, 2]), [1, -1])
        assert annotations.joined(Annotations.from_frame(rows).to_frame().assign(worker="v")).n_annotations == 4
        assert Annotations.from_frame(frame, classes=[1, 2, 3]).n_classes == 3
    assert Annotations.from_frame(rows, abstain=2.0, classes=[1, 3]).abstentions == Ids([2])
    assert Annotations.from_matrix([[1.0, np.nan], [2.0, 1.0]], missing=None).classes == Ids([1, 2])
    mixed = pd.DataFrame({"u": [1, 2], "v": [1.0, None]}, dtype=object)
    assert Annotations.from_matrix(mixed, missing=None).votes().tolist() == [[2, 0], [0, 1]]
    assert Annotations.from_dict({"t": {"u": 1.0, "v": 2}}).classes == Ids([1, 2])


@pytest.mark.parametrize("listed", [np.array, pd.Index, pd.Series, tuple])
def test_classes_of_a_file_may_be_listed_in_an_array(tmp_path, listed):
    rows = pd.DataFrame({"task": [1, 2], "worker": ["u", "v"], "label": ["a", "b"]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    for read in (Annotations.from_csv, cp.read):
        assert list(read(tmp_path / "a.csv", classes=listed(["b", "a", "z"])).classes) == ["b", "a", "z"]


def test_floats_that_are_listed_as_classes_stay_floats():
    rows = pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": [1.0, 0.5, 0.0]})
    known = Annotations.from_frame(rows[rows["label"] != 0.5], classes=[0.0, 0.5, 1.0], gold={1: 1.0})
    assert (known.classes, known.gold.tolist()) == (Ids([0.0, 0.5, 1.0]), [2, -1])
    assert known.joined(pd.DataFrame({"task": [9], "worker": "w", "label": [1.0]})).votes()[-1].tolist() == [0, 0, 1]


def test_whole_numbers_that_are_text_are_sorted_as_numbers():
    rows = pd.DataFrame({"task": [1, 2, 3, 4], "worker": "w", "label": ["10", "2", "1", "-1"]})
    assert list(Annotations.from_frame(rows).classes) == ["-1", "1", "2", "10"]
    assert list(Annotations.from_frame(rows.assign(label=["10", "2", "1", "skip"]), abstain="skip").classes) == [
        "1",
        "2",
        "10",
    ]
    assert list(Annotations.from_frame(rows.assign(label=["010", "9", "9b", "2"])).classes) == ["010", "2", "9", "9b"]


@pytest.mark.parametrize("truth", ["task,label\n1,2.0\n", "id,answer\n1,2\n", "item;gold\n1;2.0\n"])
def test_labels_written_with_a_point_are_whole_numbers_in_csv_files_and_their_gold(tmp_path, truth):
    (tmp_path / "truth.csv").write_text(truth)
    text = "task,worker,label\n1,a,1.0\n1,b,2\n2,a,2.0\n"
    assert csv(tmp_path, text).classes == Ids([1, 2])
    assert csv(tmp_path, text, gold=tmp_path / "truth.csv").gold.tolist() == [1, -1]
    assert csv(tmp_path, text).with_gold(tmp_path / "truth.csv").gold.tolist() == [1, -1]
    classes = ["1.0", "2", "2.5"]
    assert csv(tmp_path, text.replace("2.0", "2.5"), classes=classes).classes == Ids(classes)
    assert csv(tmp_path, text.replace("1,b", "1.0,b")).tasks == Ids(["1", "1.0", "2"])


def test_many_classes_are_accepted_when_they_are_listed():
    rows = pd.DataFrame({"task": 0, "worker": range(2000), "label": range(2000)})
    assert Annotations.from_frame(rows, classes=range(2000)).n_classes == 2000


def test_workers_and_tasks_with_one_annotation_and_a_task_with_a_thousand():
    rows = pd.DataFrame(
        {"task": ["big"] * 1000 + ["small"], "worker": [*range(1000), 1000], "label": [0, 1] * 500 + [1]}
    )
    annotations = Annotations.from_frame(rows)
    assert annotations.votes().tolist() == [[500, 500], [0, 1]]
    assert annotations.describe()["annotations per worker, max"] == 1


def test_other_columns_and_a_meaningless_index_do_not_matter():
    rows = pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": [0, 1]})
    other = rows.assign(seconds=[[1], None]).set_index(pd.Index([5, 5]))
    assert Annotations.from_frame(other).to_frame().equals(Annotations.from_frame(rows).to_frame())


@pytest.mark.parametrize("suffix", [".CSV", ".Tsv"])
def test_suffixes_are_known_in_any_case(tmp_path, suffix):
    separator = "," if suffix == ".CSV" else "\t"
    text = "\n".join(separator.join(row) for row in (("task", "worker", "label"), "abc", "acd"))
    assert csv(tmp_path, text, name=f"c{suffix}").n_annotations == 2


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_a_type_that_lists_its_values_gives_the_classes_in_its_order_also_unused_ones(library):
    grades = ["poor", "fair", "good", "excellent"]
    rows = pd.DataFrame({"task": [0, 0, 1], "worker": list("uvu"), "label": ["good", "poor", "good"]})
    frame = library(rows)
    if library is pd.DataFrame:
        frame["label"] = pd.Categorical(rows["label"], categories=grades)
    else:
        frame = frame.with_columns(pl.col("label").cast(pl.Enum(grades)))
    annotations = Annotations.from_frame(frame)
    assert list(annotations.classes) == grades
    assert annotations.label.tolist() == [2, 0, 2]
    assert list(Annotations.from_frame(frame, classes=["good", "poor"]).classes) == ["good", "poor"]
    assert Annotations.from_frame(frame, worker=None).votes().tolist() == [[1, 0, 1, 0], [0, 0, 1, 0]]


def test_categories_of_numbers_keep_their_type_and_categories_of_tasks_are_no_tasks():
    rows = pd.DataFrame({"task": ["a", "b"], "worker": ["u", "u"], "label": [3, 1]})
    rows["label"] = pd.Categorical(rows["label"], categories=[3, 2, 1], ordered=True)
    rows["task"] = pd.Categorical(rows["task"], categories=["c", "b", "a"])
    annotations = Annotations.from_frame(rows)
    assert list(annotations.classes) == [3, 2, 1]
    assert [type(name) for name in annotations.classes] == [int] * 3
    assert list(annotations.tasks) == ["a", "b"]


def test_one_category_alone_and_categories_of_identifiers_are_refused_as_other_labels_are():
    rows = pd.DataFrame({"task": [0, 1], "worker": ["u", "u"], "label": pd.Categorical(["x", "x"])})
    with pytest.raises(AnnotationError, match="holds a single class, 'x'"):
        Annotations.from_frame(rows)
    many = pd.DataFrame({"task": 0, "worker": "u", "label": [f"x{i}" for i in range(60)]})
    with pytest.raises(AnnotationError, match="looks like an identifier"):
        Annotations.from_frame(many.astype({"label": "category"}))


def test_dictionaries_by_worker_are_asked_about_and_read_where_it_is_said(tmp_path):
    panel = {
        judge: {item: "xy"[(item + number) % 2] for item in range(10)} for number, judge in enumerate(["j1", "j2"])
    }
    turned = {item: {judge: panel[judge][item] for judge in panel} for item in range(10)}
    with pytest.warns(AnnotationWarning, match=r"2 dictionaries of 10 keys are read as 2 tasks .* give outer='worker'"):
        assert Annotations.from_dict(panel).n_workers == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = Annotations.from_dict(turned).to_frame()
        found = Annotations.from_dict(panel, outer="worker")
        assert Annotations.from_dict(panel, outer="task").n_tasks == 2
        assert Annotations.from_dict({"t": turned[0] | {f"w{i}": "x" for i in range(20)}}).n_tasks == 1
        (tmp_path / "panel.json").write_text(json.dumps(panel))
        assert Annotations.read(tmp_path / "panel.json", outer="worker").tasks == found.tasks
    pd.testing.assert_frame_equal(found.to_frame(), expected)
    with pytest.raises(AnnotationError, match=r"worker 'j3': expected a dictionary {task: label}"):
        Annotations.from_dict(panel | {"j3": "x"}, outer="worker")
    with pytest.raises(AnnotationError, match="task 3, worker 'j2'"):
        Annotations.from_dict({**panel, "j2": {3: None}}, outer="worker")
    with pytest.raises(UnknownNameError, match="unknown value of outer 'judge'"):
        Annotations.from_dict(panel, outer="judge")


@pytest.mark.parametrize(
    ("rows", "encoding"),
    [
        ("1,Иван,да\n2,Мария,нет\n3,Иван,не знаю\n", "cp1251"),
        ("1,王,是的我同意\n2,李,否我不同意这个\n", "gb18030"),
        ("1,Zoë,ja für mich\n2,Jürgen,schöne Grüße\n", "cp1252"),
        ("1,ÀÈÌ,sí\n2,Ñandú,día\n", "cp1252"),
        ("1,A,“ja”\n2,B,nein\n", "cp1252"),
    ],
)
def test_a_file_in_an_older_encoding_is_read_as_the_language_that_it_is_of_and_said_to_be(tmp_path, rows, encoding):
    text = "task,worker,label\n" + rows * 3
    (tmp_path / "old.csv").write_bytes(text.encode(encoding))
    with pytest.warns(AnnotationWarning, match=rf"old\.csv is not UTF-8 and is read as {encoding}"):
        annotations = Annotations.from_csv(tmp_path / "old.csv")
    workers = [line.split(",")[1] for line in rows.splitlines()]
    assert list(annotations.workers) == list(dict.fromkeys(workers))
