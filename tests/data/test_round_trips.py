"""What goes in comes out: the same annotations, from every kind of table, with their types."""

import datetime as dt
import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdppl.data import Annotations, Ids

KINDS = {
    "text": st.text(  # a blank is a missing value
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4
    ).filter(str.strip),
    "unicode": st.sampled_from(["Ж", "日本", "é", "e\u0301", "🙂", "NA", "None", "007", "1e5"]),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),  # infinity names nothing
    "bool": st.booleans(),
    "uuid": st.uuids(),
    "date": st.dates(),
    "pair": st.tuples(st.integers(0, 3), st.sampled_from("ab")),
}
COLUMNS = ("task", "worker", "label")


@st.composite
def tables(draw, kinds=tuple(KINDS)):
    """Draw a table whose columns are each of one kind, with at least two labels."""
    ids = [draw(st.lists(KINDS[draw(st.sampled_from(kinds))], min_size=2, max_size=5, unique=True)) for _ in COLUMNS]
    # 0.0 and −0.0 are one value; −0.0 would come back as whichever came first.
    ids = [[0.0 if value == 0 and isinstance(value, float) else value for value in column] for column in ids]
    n = draw(st.integers(0, 12))
    rows = [tuple(draw(st.sampled_from(column)) for column in ids) for _ in range(n)]
    return [*rows, (ids[0][0], ids[1][0], ids[2][0]), (ids[0][1], ids[1][1], ids[2][1])]


def exact(rows):
    """Count the rows, with the types of their values."""
    return Counter(tuple((type(value), value) for value in row) for row in rows)


def frame_of(rows):
    columns = list(zip(*rows, strict=True))
    # Through lists, because pandas would make levels of tuples.
    return pd.DataFrame(
        {name: pd.Series(list(values), dtype=None) for name, values in zip(COLUMNS, columns, strict=True)}
    )


def listed(rows):
    """List the classes where they are floats, which would be refused, or whole numbers, otherwise."""
    classes = sorted({label for _, _, label in rows})
    return {"classes": classes} if isinstance(classes[0], float) else {}


def rows_of(annotations):
    return [tuple(row) for row in zip(*(annotations.to_frame()[name].tolist() for name in COLUMNS), strict=True)]


@given(tables())
def test_a_frame_comes_back_as_the_same_rows_with_the_same_types_sorted_by_task(rows):
    annotations = Annotations.from_frame(frame_of(rows), **listed(rows))
    assert exact(rows_of(annotations)) == exact(rows)
    order = {task: position for position, task in enumerate(dict.fromkeys(task for task, _, _ in rows))}
    assert rows_of(annotations) == sorted(rows, key=lambda row: order[row[0]])  # sorted() is stable
    assert list(annotations.tasks) == list(order)
    assert list(annotations.classes) == sorted({label for _, _, label in rows})


def same(one, two):
    """Tell whether two annotations hold the same in the same order."""
    arrays = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("task", "worker", "label"))
    return arrays and (one.tasks, one.workers, one.classes) == (two.tasks, two.workers, two.classes)


def test_arrow_tables_keep_the_order_and_the_numbers_of_their_dictionaries():
    """An ordered dictionary became names by the alphabet, and codes of numbers became text."""
    rows = pd.DataFrame({"task": pd.Categorical([7, 8, 7, 8]), "worker": list("aabb")})
    graded = rows.assign(label=pd.Categorical(["low", "high", "mid", "low"], ["low", "mid", "high"], ordered=True))
    table = pa.Table.from_pandas(graded)
    found = Annotations.from_frame(pa.concat_tables([table.slice(0, 2), table.slice(2)]))
    assert (list(found.classes), list(found.tasks)) == (["low", "mid", "high"], [7, 8])
    assert found.kind == Annotations.from_frame(graded).kind
    assert found.kind.in_order


@given(tables(kinds=("text", "unicode", "integer", "float", "bool")))
def test_pandas_polars_and_pyarrow_agree(rows):
    frame = frame_of(rows)
    expected = Annotations.from_frame(frame, **listed(rows))
    data = {name: frame[name].tolist() for name in COLUMNS}
    for table in (pl.DataFrame(data), pl.DataFrame(data).lazy(), pa.table(data), frame.astype(object)):
        assert same(Annotations.from_frame(table, **listed(rows)), expected)


def test_dates_and_categories_agree_between_libraries():
    days = [dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    data = {"task": days, "worker": ["w", "w"], "label": ["a", "b"]}
    for table in (pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
        assert Annotations.from_frame(table).tasks == Ids(days)
    categories = pd.DataFrame(data).astype({"label": "category", "worker": "category"})
    plain = Annotations.from_frame(pd.DataFrame(data))
    assert same(Annotations.from_frame(categories), plain)
    assert same(Annotations.from_frame(pl.DataFrame(data, schema_overrides={"label": pl.Categorical})), plain)
    assert same(Annotations.from_frame(pd.DataFrame(data).convert_dtypes()), plain)


@given(tables())
def test_a_nested_dictionary_agrees_where_no_worker_annotates_a_task_twice(rows):
    nested = {}
    for task, worker, label in rows:
        nested.setdefault(task, {})[worker] = label
    kept = [(task, worker, label) for task, by_worker in nested.items() for worker, label in by_worker.items()]
    classes = sorted({label for _, _, label in rows})
    assert same(Annotations.from_dict(nested, classes=classes), Annotations.from_frame(frame_of(kept), classes=classes))


@given(st.data())
def test_a_dense_matrix_agrees_with_its_long_form(data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 4)))
    cells = data.draw(st.lists(st.integers(-1, 2), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    matrix = np.array(cells).reshape(shape)
    matrix[0, 0] = 0
    long = pd.DataFrame([(i, j, matrix[i, j]) for i, j in np.argwhere(matrix >= 0)], columns=list(COLUMNS))
    options = {"tasks": range(shape[0]), "workers": range(shape[1]), "classes": range(3)}
    expected = Annotations.from_frame(long, **options)
    assert same(Annotations.from_matrix(matrix, classes=range(3)), expected)
    assert same(Annotations.from_matrix(pd.DataFrame(matrix), classes=range(3)), expected)
    assert same(Annotations.from_matrix(matrix.astype("int8"), classes=range(3)), expected)
    text = np.where(matrix < 0, "", matrix.astype(str))
    named = Annotations.from_matrix(text, missing="", classes=["0", "1", "2"])
    assert np.array_equal(named.label, expected.label)
    gaps = Annotations.from_matrix(
        pd.DataFrame(text).replace("", None).astype(object), missing=None, classes=["0", "1", "2"]
    )
    assert same(gaps, named)
    by_worker = pl.DataFrame(
        {f"w{j}": [v if v >= 0 else None for v in matrix[:, j].tolist()] for j in range(shape[1])},
        schema={f"w{j}": pl.Int64 for j in range(shape[1])},
    )
    assert np.array_equal(Annotations.from_matrix(by_worker, missing=None, classes=range(3)).label, expected.label)


@given(tables(kinds=("text", "integer")))
def test_without_names_the_annotations_are_counted(rows):
    annotations = Annotations.from_frame(frame_of(rows), worker=None)
    counted = Counter((task, label) for task, _, label in rows)
    frame = annotations.to_frame()
    assert dict(zip(zip(frame["task"], frame["label"], strict=True), frame["count"], strict=True)) == counted
    assert annotations.n_annotations == len(rows)
    assert (annotations.worker, annotations.n_workers, annotations.named) == (None, 0, False)
    again = Annotations.from_counts(annotations.votes(), tasks=annotations.tasks, classes=annotations.classes)
    assert np.array_equal(again.votes(), annotations.votes())
    assert np.array_equal(again.count, annotations.count)


@given(tables(kinds=("unicode", "integer")))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_give_the_same_annotations_with_the_same_types(tmp_path, rows):
    frame = frame_of(rows)
    expected = Annotations.from_frame(frame)
    frame.to_csv(tmp_path / "crowd.csv", index=False)
    assert same(Annotations.read(tmp_path / "crowd.csv"), expected)
    frame.to_csv(tmp_path / "crowd.tsv", index=False, sep="\t")
    assert same(Annotations.read(tmp_path / "crowd.tsv"), expected)
    frame.to_parquet(tmp_path / "crowd.parquet")
    assert same(Annotations.read(tmp_path / "crowd.parquet"), expected)
    nested = {}
    for task, worker, label in rows:
        nested.setdefault(task, {})[worker] = label
    (tmp_path / "crowd.json").write_text(json.dumps(nested), encoding="utf-8")
    assert same(
        Annotations.read(tmp_path / "crowd.json", classes=expected.classes),
        Annotations.from_dict(nested, classes=expected.classes),
    )
