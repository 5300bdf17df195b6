"""Annotations that are no class: how they are read, counted and shown, and what is said of bad ones."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from abstaining import with_abstentions

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations, Ids
from crowdppl.data.agreement import krippendorff_alpha
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.padding import anonymous, padded

BY_TASK = {
    "t1": {"ann": "cat", "bob": "?", "cy": "dog"},
    "t2": {"ann": "dog", "bob": "dog", "cy": "skip"},
    "t3": {"ann": "?", "bob": "cat", "cy": "cat"},
}
ABSTAIN = ["?", "skip"]
ROWS = pd.DataFrame(
    [(task, worker, label) for task, given in BY_TASK.items() for worker, label in given.items()],
    columns=["task", "worker", "label"],
)
CODES = [0, 2, 1, 1, 1, 3, 2, 0, 0]


def every_reader(tmp_path):
    csv, parquet, nested = tmp_path / "crowd.csv", tmp_path / "crowd.parquet", tmp_path / "crowd.json"
    ROWS.to_csv(csv, index=False)
    ROWS.to_parquet(parquet)
    nested.write_text(json.dumps(BY_TASK))
    wide = ROWS.pivot(index="task", columns="worker", values="label")
    return {
        "frame": lambda **o: Annotations.from_frame(ROWS, **o),
        "polars": lambda **o: Annotations.from_frame(pl.from_pandas(ROWS), **o),
        "category": lambda **o: Annotations.from_frame(ROWS.astype({"label": "category"}), **o),
        "dict": lambda **o: Annotations.from_dict(BY_TASK, **o),
        "matrix": lambda **o: Annotations.from_matrix(wide, **o),
        "csv": lambda **o: Annotations.from_csv(csv, **o),
        "parquet": lambda **o: Annotations.from_parquet(parquet, **o),
        "json": lambda **o: Annotations.from_json(nested, **o),
        "read": lambda **o: Annotations.read(csv, **o),
    }


@pytest.mark.parametrize("name", ["frame", "polars", "category", "dict", "matrix", "csv", "parquet", "json", "read"])
def test_every_reader_tells_abstentions_from_classes(tmp_path, name):
    annotations = every_reader(tmp_path)[name](abstain=ABSTAIN)
    assert list(annotations.classes) == ["cat", "dog"]
    assert annotations.abstentions == Ids(ABSTAIN)
    assert list(annotations.categories) == ["cat", "dog", "?", "skip"]
    assert (annotations.n_classes, annotations.n_categories, annotations.abstains) == (2, 4, True)
    assert annotations.label.tolist() == CODES
    back = Annotations.from_frame(annotations.to_frame(), abstain=ABSTAIN)
    assert back.label.tolist() == CODES


def test_counts_have_columns_of_abstentions():
    counts = pd.DataFrame([[2, 1, 0], [0, 3, 4]], columns=["cat", "?", "dog"])
    annotations = Annotations.from_counts(counts, abstain="?")
    assert list(annotations.classes) == ["cat", "dog"]
    assert annotations.votes().tolist() == [[2, 0], [0, 4]]
    assert annotations.counts_by_kind().tolist() == [[2, 0, 1], [0, 4, 3]]


def test_without_abstentions_nothing_changes():
    plain = Annotations.from_dict({"t1": {"ann": "cat", "bob": "dog"}})
    assert plain.categories is plain.classes
    assert not plain.abstains
    assert plain.of_classes() is plain
    assert "share of abstentions" not in plain.describe()


def test_votes_and_agreement_are_of_the_classes_alone():
    annotations = Annotations.from_dict(BY_TASK, abstain=ABSTAIN)
    dropped = Annotations.from_frame(ROWS[~ROWS["label"].isin(ABSTAIN)])
    assert annotations.votes().tolist() == dropped.votes().tolist() == [[1, 1], [0, 2], [2, 0]]
    assert annotations.krippendorff_alpha() == krippendorff_alpha(dropped.votes())
    assert annotations.n_annotations == 9
    assert annotations.of_classes().to_frame().equals(dropped.to_frame())
    described = annotations.describe()
    assert described["annotations"] == 9
    assert described["share of abstentions"] == pytest.approx(3 / 9)
    assert described["share of annotation '?'"] == pytest.approx(2 / 9)
    assert "abstentions '?', 'skip'" in repr(annotations)


def test_an_abstention_that_nobody_used_is_warned_of_with_the_values_found():
    with pytest.warns(AnnotationWarning, match=r"no annotation is 'abstain'.*'cat', '\?', 'dog', 'skip'"):
        annotations = Annotations.from_dict(BY_TASK, abstain=["abstain", "?", "skip"])
    assert annotations.label.tolist() == [code + (code > 1) for code in CODES]


def test_a_misspelt_abstention_is_warned_of_with_the_nearest_value():
    by_task = {1: {"ann": "a", "bob": "tie"}, 2: {"ann": "b", "bob": "b"}}
    with pytest.warns(AnnotationWarning, match=r"no annotation is 'ties' \(did you mean 'tie'\?\); the values found"):
        Annotations.from_dict(by_task, abstain="ties")
    with pytest.warns(AnnotationWarning, match="no annotation is 'ties'; the values found"):
        Annotations.from_dict(by_task, abstain=["tie", "ties"])


def test_an_abstention_of_another_type_than_in_the_data_is_refused():
    with pytest.raises(AnnotationError, match=r"9 \(int\) and '9' \(str\) differ only in type"):
        Annotations.from_dict({1: {1: 0, 2: 9}, 2: {1: 1, 2: 0}}, abstain=["9"])


def test_tasks_and_workers_with_nothing_but_abstentions_are_warned_of():
    with pytest.warns(AnnotationWarning) as said:
        annotations = Annotations.from_dict(BY_TASK | {"t4": {"dan": "?"}}, abstain=ABSTAIN)
    text = [str(warning.message) for warning in said]
    assert any("1 of 4 tasks have abstentions only, such as 't4'" in line for line in text)
    assert any("1 of 4 workers gave abstentions only, such as 'dan'" in line for line in text)
    assert annotations.votes()[3].tolist() == [0, 0]
    assert annotations.describe()["tasks with abstentions only"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"abstain": ["?", "cat"], "classes": ["cat", "dog", "skip"]}, r"'cat' is in classes=\['cat', 'dog', 'skip'\]"),
        ({"abstain": ["?", "skip", "cat", "dog"]}, "every annotation is one of abstain=.*list the classes"),
        ({"abstain": ["?", "?"]}, "abstain.*'\\?'"),
        ({"abstain": ["?"], "classes": ["cat", "dog"]}, "'skip' is not in classes="),
        ({"abstain": ["?", "skip", "dog"]}, "a single class, 'cat'"),
    ],
)
def test_what_cannot_be_is_refused(options, says):
    with pytest.raises(AnnotationError, match=says):
        Annotations.from_dict(BY_TASK, **options)


def test_a_scan_says_where_abstentions_can_be_read(tmp_path):
    ROWS.to_parquet(tmp_path / "crowd.parquet")
    with pytest.raises(AnnotationError, match=r"a scan cannot tell abstentions.*from_parquet"):
        cp.scan(tmp_path / "crowd.parquet", abstain=ABSTAIN)


def test_joined_annotations_keep_their_kinds():
    first = Annotations.from_dict(BY_TASK, abstain=ABSTAIN)
    more = pd.DataFrame({"task": ["t9", "t1"], "worker": ["ann", "eve"], "label": ["skip", "dog"]})
    both = first.joined(more)
    assert both.abstentions == first.abstentions
    assert both.to_frame()["label"].tolist()[-1] == "skip"
    assert both.votes().tolist() == [[1, 2], [0, 2], [2, 0], [0, 0]]
    other = Annotations.from_dict({"t9": {"ann": "cat", "bob": "pass"}}, classes=["cat", "dog"], abstain="pass")
    with pytest.raises(AnnotationError, match="the abstention 'pass' is none of the 2 known ones"):
        first.joined(other)


def test_padded_annotations_have_as_many_kinds():
    annotations = with_abstentions().replace(informative=False)
    for other in (padded(annotations), anonymous(annotations)):
        assert (other.n_classes, other.n_categories, other.informative) == (2, 4, False)


def test_a_dataset_has_its_abstentions(real):
    with pytest.warns(AnnotationWarning, match="180 of 1,686 tasks have abstentions only"):
        youtube = real("ws_youtube")
    assert list(youtube.classes) == ["HAM", "SPAM"]
    assert list(youtube.abstentions) == ["abstain"]
    assert youtube.describe()["share of abstentions"] == pytest.approx(0.830, abs=5e-4)
    assert cp.list_datasets().set_index("name").loc["ws_youtube", "classes"] == 2
    assert np.asarray(youtube.gold).min() == 0


def test_missing_cells_of_a_matrix_that_abstain_names_are_abstentions():
    """The matrices of weak supervision have −1 where a labelling function abstains."""
    matrix = np.array([[0, -1, 1], [-1, 1, 1], [0, 0, -1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        annotations = Annotations.from_matrix(matrix, abstain=-1)
    assert list(annotations.abstentions) == [-1]
    assert annotations.counts_by_kind().tolist() == [[1, 1, 1], [0, 2, 1], [2, 0, 1]]
    assert Annotations.from_matrix(matrix).n_annotations == 6


@pytest.mark.parametrize("shape", ["long", "wide", "grid", "form"])
def test_whole_numbers_in_text_beside_an_abstention_are_scores_in_order(tmp_path, shape):
    """They stayed text in the order of their letters, '1', '10', '2', as soon as one of them was "error"."""
    rng = np.random.default_rng(0)
    rows = [(f"t{i:02}", f"rater{j}", str(s)) for i in range(30) for j, s in enumerate(rng.integers(1, 11, 4))]
    rows[7] = (*rows[7][:2], "error")
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    wide = table.pivot(index="task", columns="worker", values="label")
    tables = {"long": table.set_index("task"), "wide": wide, "form": wide.T, "grid": wide}
    if shape == "grid":
        tables["grid"] = wide.set_axis(["rater1_a", "rater1_b", "rater2_a", "rater2_b"], axis=1)
    tables[shape].to_csv(path := tmp_path / "scores.csv")
    options = {"columns": "tasks", "worker": "worker"} if shape == "form" else {}
    with pytest.warns(AnnotationWarning, match="taken as ordered"):
        annotations = cp.read(path, abstain="error", tell=False, **options)
    assert (list(annotations.classes), list(annotations.abstentions)) == (list(range(1, 11)), ["error"])
    assert annotations.kind.in_order
    with pytest.warns(AnnotationWarning, match="'error' counts as a class"):
        assert "error" in cp.read(path, tell=False, **options).classes


def test_gold_labels_beside_scores_with_an_abstention_are_numbers_too(tmp_path):
    rows = [(f"t{i}", f"w{j}", str((i + j) % 5 + 1), str(i % 5 + 1)) for i in range(20) for j in range(3)]
    table = pd.DataFrame(rows, columns=["task", "worker", "label", "gold"])
    table.loc[3, "label"] = "error"
    table.to_csv(path := tmp_path / "scores.csv", index=False)
    numbers = table.assign(label=[value if value == "error" else int(value) for value in table["label"]])
    for source in (path, pd.read_csv(path), table, numbers.assign(gold=table["gold"].astype(int))):
        with pytest.warns(AnnotationWarning) as told:
            annotations = cp.read(source, abstain="error", tell=False)
        assert ["taken as ordered" in str(each.message) for each in told] == [True]
        assert list(annotations.classes) == [1, 2, 3, 4, 5]
        assert np.asarray(annotations.gold).tolist() == [i % 5 for i in range(20)]
    kept = cp.read(table, gold=None, abstain="error", classes=["1", "2", "3", "4", "5"], tell=False)
    assert kept.classes[0] == "1"
