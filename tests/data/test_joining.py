"""Annotations that came later, put to those that were there, are what all of them together would be."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdppl as cp

ROWS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("uvwx"), st.sampled_from(["yes", "no"])),
    min_size=1,
    max_size=12,
)
CLASSES = ["no", "yes"]


def annotations(rows, **options):
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, classes=CLASSES, **options)


NAMED = {"task": "Post", "worker": "Coder", "label": "Code"}


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "json"])
def test_a_table_that_is_added_or_joined_is_read_by_the_columns_of_the_first_one(form, tmp_path):
    table = pd.DataFrame({"Post": ["p", "p", "q"], "Coder": ["a", "b", "a"], "Code": ["y", "n", "y"]})
    more = pd.DataFrame({"Post": ["q", "r"], "Coder": ["b", "b"], "Code": ["n", "y"], "Date": ["1.", "2."]})
    fit = cp.fit("one_coin", cp.Annotations.from_frame(table, **NAMED), progress=False)
    fit.save(tmp_path / "fit")
    source, path = more, tmp_path / f"more.{form}"
    if form != "frame":
        source = path
        more.to_csv(path, index=False) if form == "csv" else None
        more.to_parquet(path) if form == "parquet" else None
        more.to_json(path, orient="records") if form == "json" else None
    whole = cp.Annotations.from_frame(pd.concat([table, more]), **NAMED).to_frame()
    for of in (fit, cp.load_fit(tmp_path / "fit")):
        both = of.update(source, progress=False).annotations
        pd.testing.assert_frame_equal(both.to_frame(), whole)
        assert dict(both.columns) == NAMED
    assert fit.join(more[["Post"]].iloc[:1])["label"].tolist() == [fit.labels.loc["q", "label"]]
    gold = pd.DataFrame({"Post": ["q"], "task": ["p"], "Code": ["n"]})
    assert fit.annotations.with_gold(gold).gold.tolist() == [-1, 0]
    assert fit.annotations.joined(pd.DataFrame({"task": ["r"], "worker": ["a"], "label": ["y"]})).n_tasks == 3


def test_columns_of_questions_and_of_comparisons_are_those_of_the_first_table():
    wide = pd.DataFrame({"Post": list("ppq"), "Coder": list("aba"), "tone": list("yny"), "style": list("nny")})
    asked = cp.Annotations.from_frame(wide, task="Post", worker="Coder", question=["tone", "style"])
    added = wide.iloc[:1].assign(Coder="c")
    assert asked.joined(added).n_annotations == 8
    assert cp.fit("one_coin", asked, progress=False).update(added, progress=False).annotations.n_annotations == 8
    long = asked.to_frame().rename(columns={"question": "which", "task": "Post", "worker": "Coder", "label": "Code"})
    again = cp.Annotations.from_frame(long, question="which", **NAMED)
    assert again.joined(long.iloc[:1].assign(Coder="c")).n_annotations == 7
    rows = pd.DataFrame({"A": ["x"], "B": ["y"], "Ask": ["p"], "Coder": ["a"], "Code": ["A"]})
    columns = {"left": "A", "right": "B", "prompt": "Ask", "worker": "Coder", "label": "Code"}
    tags = pd.DataFrame({"Post": [1, 1, 2], "Coder": list("aba"), "topics": ["art|sport", "art", "food"]})
    tagged = cp.Annotations.from_tags(tags, task="Post", worker="Coder", tags="topics")
    added = pd.DataFrame({"Post": [2], "Coder": ["b"], "topics": ["art"]})
    for both in (tagged.joined(added), cp.fit("one_coin", tagged, progress=False).update(added).annotations):
        given = both.to_frame().query("task == 2 and worker == 'b'")
        assert dict(zip(given["question"], given["label"], strict=True)) == {"art": "yes", "sport": "no", "food": "no"}
    with pytest.raises(cp.AnnotationError, match="the tag 'law' is none of"):
        tagged.joined(added.assign(topics="law"))
    compared = cp.Annotations.from_comparisons(rows, **columns, classes=["left", "right"])
    joined = compared.joined(rows.assign(Coder="b", Code="B"))
    assert (list(joined.tasks), joined.votes().tolist()) == ([("p", "x", "y")], [[1, 1]])


@given(ROWS, ROWS)
def test_both_together_have_the_rows_of_both(first, more):
    both, at_once = annotations(first).joined(annotations(more)), annotations(first + more)
    by = ["task", "worker", "label"]
    pd.testing.assert_frame_equal(
        both.to_frame().astype(str).sort_values(by, ignore_index=True),
        at_once.to_frame().astype(str).sort_values(by, ignore_index=True),
    )
    assert (np.diff(both.task) >= 0).all()
    assert list(both.tasks) == list(dict.fromkeys(row[0] for row in first + more))
    assert list(both.workers) == list(dict.fromkeys(row[1] for row in first + more))


def test_a_table_is_taken_too():
    first = annotations([("a", "u", "yes"), ("b", "u", "no")])
    more = pd.DataFrame({"task": ["c"], "worker": ["v"], "label": ["yes"]})
    assert first.joined(more).votes().tolist() == [[0, 1], [1, 0], [0, 1]]


def test_counts_times_gold_and_features_of_both_are_kept():
    first = annotations(
        [("a", "u", "yes"), ("b", "u", "no")],
        gold={"a": "yes"},
        features=pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"]),
    )
    more = annotations(
        [("b", "v", "yes"), ("c", "v", "yes")],
        gold={"c": "no", "b": "yes"},
        features=pd.DataFrame({"x": [9.0, 3.0]}, index=["b", "c"]),
    )
    both = first.joined(more)
    assert both.gold.tolist() == [1, 1, 0]
    assert both.features.ravel().tolist() == [1.0, 2.0, 3.0]
    counted = first.joined(more.replace(count=np.array([2.0, 1.0], np.float32)))
    assert counted.votes().tolist() == [[0, 1], [1, 2], [0, 1]]
    timed = first.joined(more.replace(seconds=np.array([2.0, 1.0], np.float32)))
    assert np.isnan(timed.seconds).tolist() == [True, True, False, False]


def test_a_class_a_feature_or_a_name_that_is_missing_is_named():
    first = annotations([("a", "u", "yes"), ("b", "u", "no")])
    other = cp.Annotations.from_frame(
        pd.DataFrame({"task": ["c"], "worker": ["v"], "label": ["maybe"]}), classes=["maybe", "yes"]
    )
    with pytest.raises(cp.AnnotationError, match=r"the class 'maybe' is none of the 2 classes \['no', 'yes'\]"):
        first.joined(other)
    with_features = annotations([("a", "u", "yes")], features=pd.DataFrame({"x": [1.0]}, index=["a"]))
    with pytest.raises(cp.AnnotationError, match=r"features.* none of 'b'"):
        with_features.joined(first)
    with pytest.raises(cp.AnnotationError, match="only these annotations name workers"):
        first.joined(first.replace(worker=None))


FIRST = [("a", "u", "yes"), ("b", "u", "no")]
AGAIN = [("a", "u", "no"), ("a", "v", "yes"), ("a", "v", "no")]


@pytest.mark.parametrize("as_table", [False, True])
def test_the_rule_for_repeated_annotations_holds_for_both_together(as_table):
    more = pd.DataFrame(AGAIN, columns=["task", "worker", "label"]) if as_table else annotations(AGAIN)
    with pytest.warns(UserWarning, match="left out 2 of 5 annotations"):
        both = annotations(FIRST, repeats="first").joined(more)
    assert both.to_frame().to_numpy().tolist() == [["a", "u", "yes"], ["a", "v", "yes"], ["b", "u", "no"]]
    with pytest.raises(cp.AnnotationError, match=r"worker 'u' annotated task 'a' more than once.*made with repeats"):
        annotations(FIRST, repeats="error").joined(more)
    assert annotations(FIRST).joined(more).n_annotations == 5


def test_the_rule_for_repeated_annotations_is_kept_by_what_is_joined_and_counts():
    first = annotations(FIRST, repeats="first")
    for _ in range(2):
        with pytest.warns(UserWarning, match="left out"):
            first = first.joined(annotations(FIRST).replace(count=np.array([3.0, 1.0], np.float32)))
    assert first.votes().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("role", ["task", "worker"])
@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 99.0], [900.0, 901.0], [Decimal(1), Decimal(2)]])
def test_names_of_another_type_are_refused_by_name(role, values):
    """A column of whole numbers comes back as floats from many a tool; text among them is a name like any other."""
    rows = pd.DataFrame({"task": [1, 2, 3], "worker": [1, 2, 1], "label": ["a", "b", "a"]})
    more = rows[:2].assign(**{role: pd.Series(values, dtype=object)})
    kind = type(values[0]).__name__
    with pytest.raises(cp.AnnotationError, match=rf"the {role} .* of type {kind}, .* of type int, such as 1: convert"):
        cp.Annotations.from_frame(rows).joined(more)


def test_a_table_without_rows_adds_nothing():
    first = annotations(FIRST)
    assert first.joined(pd.DataFrame(columns=["task", "worker", "label"])) is first
    assert first.joined(None) is first


def test_a_new_class_in_a_table_is_named_with_its_row_and_what_can_be_done():
    more = pd.DataFrame([*FIRST, ("c", "u", "maybe")], columns=["task", "worker", "label"])
    with pytest.raises(cp.AnnotationError, match=r"row 2: the class 'maybe' is none of the 2 classes.*fit them anew"):
        annotations(FIRST).joined(more)


def test_a_table_to_be_added_has_the_names_of_columns_that_cp_read_knows():
    """The message for a column that was not there named an option that update does not have."""
    more = pd.DataFrame(AGAIN, columns=["item", "judge", "verdict"])
    expected = annotations(FIRST).joined(annotations(AGAIN)).to_frame()
    pd.testing.assert_frame_equal(annotations(FIRST).joined(more).to_frame(), expected)
    with pytest.raises(cp.AnnotationError, match=r"no column 'task'.* Rename the column of tasks to 'task'"):
        annotations(FIRST).joined(more.rename(columns={"item": "thing"}))
    with pytest.raises(cp.AnnotationError, match=r"'rater' and 'judge' .*rename one to 'worker'"):
        annotations(FIRST).joined(more.assign(rater="m")[["item", "rater", "judge", "verdict"]])


def test_annotations_that_are_all_there_already_are_told():
    with pytest.warns(UserWarning, match="all of the 2 annotations"):
        assert annotations(FIRST).joined(annotations(FIRST)).n_annotations == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        annotations(FIRST).joined(annotations([*FIRST, ("c", "u", "no")]))
