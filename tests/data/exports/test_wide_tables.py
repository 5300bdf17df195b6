"""Tables with a row for each task: whether their columns are workers or classes, and which column is the task's."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data import Ids
from crowdppl.data.errors import AnnotationWarning

COUNTS = pd.DataFrame({"task": ["t1", "t2", "t3"], "cat": [3, 0, 5], "dog": [2, 5, 0]})
ASKED = (
    r"columns 'cat', 'dog' hold whole numbers, and .*columns='classes' \(cp\.Annotations\.from_counts.*"
    r"columns='workers'"
)


def read(table, **options):
    return cp.read(table, **{"tell": False, **options})


def of_counts(rng, n_tasks, n_classes, fewest, most):
    """Vote counts of workers who are right 7 times in 10."""
    right = np.full((n_classes, n_classes), 0.3 / (n_classes - 1))
    np.fill_diagonal(right, 0.7)
    n_votes = rng.integers(fewest, most + 1, size=n_tasks)
    rows = [rng.multinomial(n, right[rng.integers(n_classes)]) for n in n_votes]
    return pd.DataFrame(rows, columns=[f"kind {chr(97 + k)}{k}x" for k in range(n_classes)]).rename_axis("id")


def of_labels(rng, n_tasks, names, n_classes):
    truth = rng.integers(n_classes, size=(n_tasks, 1))
    right = rng.random((n_tasks, len(names))) < 0.7
    labels = np.where(right, truth, rng.integers(n_classes, size=right.shape))
    return pd.DataFrame(labels, columns=names).rename_axis("id")


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"cat": [3, 0, 1], "dog": [2, 5, 5]},
        {"cat": [3, 40, 1], "dog": [2, 5, 12]},
        {"cat": [3, np.nan, 5], "dog": [2, 5, np.nan]},
        {"cat": [30, 1, 2], "dog": [4, 5, 6]},
    ],
)
def test_vote_counts_are_not_taken_for_the_labels_of_workers(tmp_path, cells):
    table = COUNTS.assign(**cells)
    table.to_csv(tmp_path / "a.csv", index=False)
    expected = cp.Annotations.from_counts(table.set_index("task").fillna(0))
    for source in (table, tmp_path / "a.csv"):
        with pytest.raises(AnnotationError, match=ASKED):
            read(source)
        counted = read(source, columns="classes")
        assert counted.to_frame().equals(expected.to_frame())
        assert not counted.named
        if expected.n_annotations < 20:
            assert list(read(source, columns="workers").workers) == ["cat", "dog"]


def test_simulated_vote_counts_are_asked_about_and_simulated_labels_are_not():
    rng = np.random.default_rng(0)
    for fewest, most in ((5, 5), (3, 7), (1, 50)):
        for n_classes in (2, 3, 5, 10):
            with pytest.raises(AnnotationError, match="columns='classes'"):
                read(of_counts(rng, 40, n_classes, fewest, most).reset_index())
    for names in (["ann", "bob"], ["ann", "bob", "cec"], list("abcde")):
        for n_classes in (2, 3, 5, 10):
            assert list(read(of_labels(rng, 40, names, n_classes).reset_index()).workers) == names


@pytest.mark.parametrize("names", ["r{}", "worker_{}", "Annotator {}", "lf{}", "coder-{}"])
def test_numbered_columns_are_workers_however_little_they_agree(names):
    cells = np.random.default_rng(0).integers(3, size=(4, 5))
    table = pd.DataFrame(cells, columns=[names.format(j + 1) for j in range(5)]).rename_axis("id").reset_index()
    assert read(table).n_workers == 5
    yes_or_no = table.set_axis(["id", *"abcde"], axis=1).assign(
        **(table.iloc[:, 1:] > 0).astype(int).set_axis(list("abcde"), axis=1)
    )
    assert read(yes_or_no).n_workers == 5
    assert read(COUNTS.assign(dog=[2, 0, 3]), workers=["cat", "dog"]).n_workers == 2


def test_counts_of_numbered_classes_leave_out_a_total_and_take_gold(tmp_path):
    table = pd.DataFrame({"id": [7, 8, 9], "0": [3, 0, 1], "10": [2, 5, 4], "total": 5, "gold": [10, None, 0]})
    table.astype({"gold": "Int64"}).to_csv(tmp_path / "a.csv", index=False)
    annotations = read(tmp_path / "a.csv", columns="classes")
    assert (annotations.classes, annotations.votes().tolist()) == (Ids([0, 10]), [[3, 2], [0, 5], [1, 4]])
    assert annotations.gold.tolist() == [1, -1, 0]
    assert annotations.tasks == Ids([7, 8, 9])


def test_what_columns_are_is_refused_where_it_has_no_meaning():
    long = pd.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]})
    with pytest.raises(AnnotationError, match="columns='classes': the table has 0 columns of vote counts"):
        read(long, columns="classes")
    with pytest.raises(AnnotationError, match=r"columns='classes' is of a table.*of workers"):
        read(long, columns="classes", worker="worker")
    with pytest.raises(cp.UnknownNameError, match="unknown value of columns 'class'; did you mean 'classes'"):
        read(COUNTS, columns="class")


@pytest.mark.parametrize("name", ["id", "tweet_id", "postId", "uuid", "row_key", "Nr", "item no"])
def test_an_identifier_is_the_task_rather_than_a_text(name):
    table = pd.DataFrame({"text": ["one", "two", "two"], name: [11, 12, 13], "ann": list("xyx"), "bob": list("xyy")})
    assert read(table).tasks == Ids([11, 12, 13])
    assert read(table.drop(index=1), task="text").tasks == Ids(["one", "two"])
    again = table.assign(text=["one", "two", "three"], **{name: [1, 1, 2]})
    assert name == "id" or read(again).tasks == Ids(["one", "two", "three"])


def test_whole_floats_in_wide_tables_are_integers(tmp_path):
    table = pd.DataFrame({"id": [1, 2, 3], "ann": [1, None, 2], "bob": [1, 2, 2], "gold": [None, 2, 2]})
    assert table["ann"].dtype == float
    table.to_csv(tmp_path / "a.csv", index=False)
    assert "2.0" in (tmp_path / "a.csv").read_text()
    for source in (table, tmp_path / "a.csv"):
        annotations = read(source)
        assert annotations.classes == Ids([1, 2])
        assert annotations.gold.tolist() == [-1, 1, 1]


def test_what_was_found_of_a_table_is_told_in_lines_as_wide_as_the_terminal(tmp_path, capsys, monkeypatch):
    rows = "\n".join(f"i{i},cat,{'dog' if i % 3 else 'cat'},dog" for i in range(12))
    path = tmp_path / "table.csv"
    path.write_text(f"item_id,ann,bob,cy\n{rows}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    cp.read("table.csv")
    whole = capsys.readouterr().err
    assert whole.count("\n") == 1
    monkeypatch.setenv("COLUMNS", "40")
    cp.read("table.csv")
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == whole.rstrip()


def test_an_empty_column_is_no_worker_and_is_named_unless_it_was_listed(tmp_path, capsys):
    labels = {"alice": ["yes", "no"] * 3, "bob": ["yes", "no", "no"] * 2}
    table = pd.DataFrame({"item": range(6), **labels, "carol": None, "notes": None})
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (table, tmp_path / "a.csv"):
        for options in ({}, {"columns": "workers"}):
            assert list(cp.read(source, **options).workers) == ["alice", "bob"]
            assert "left out, as empty: 'carol', 'notes'" in " ".join(capsys.readouterr().err.split())
        assert list(read(source, workers=["alice", "bob", "carol"]).workers) == ["alice", "bob", "carol"]
    with pytest.raises(AnnotationError, match="no column 'worker'"):
        read(table.assign(bob=None))


def test_an_empty_column_does_not_hide_that_others_may_be_vote_counts():
    table = pd.DataFrame({"item": range(6), "toxic": [0, 1, 2] * 2, "ok": [5, 4, 3] * 2, "spam": None})
    with pytest.raises(AnnotationError, match="'toxic', 'ok' hold whole numbers, and their sum is the same"):
        read(table)


def test_empty_columns_of_a_worker_and_a_question_are_named_and_the_others_read(capsys):
    names = [f"rater{rater}_{question}" for rater in (1, 2, 3) for question in ("tone", "style", "length")]
    table = pd.DataFrame({"item": range(8), **{name: [1, 2, 3, 1] * 2 for name in names}})
    empty = [name for name in names if "rater3" in name or "length" in name]
    found = cp.read(table.assign(**dict.fromkeys(empty)))
    assert (list(found.workers), list(found.questions)) == (["rater1", "rater2"], ["tone", "style"])
    assert all(repr(name) in capsys.readouterr().err for name in empty[:1])


@pytest.mark.parametrize("name", ["expected", "Reference", "correct_answer", "target label"])
def test_a_column_of_true_labels_is_gold_and_no_worker(name, capsys):
    table = pd.DataFrame({"item": range(6), name: list("yynnyn"), "ann": list("yynnyy"), "bob": list("ynnnyn")})
    found = cp.read(table)
    assert list(found.workers) == ["ann", "bob"]
    assert [found.classes[k] for k in found.gold] == list("yynnyn")
    assert f"gold labels in {name!r}" in capsys.readouterr().err
    assert read(table, gold=None).gold is None
    assert list(read(table, columns="workers").workers) == [name, "ann", "bob"]
    free = table.assign(**{name: [f"a long answer {n}" for n in range(6)]})
    assert (list(read(free).workers), read(free).gold) == (["ann", "bob"], None)


def test_what_says_something_of_a_task_is_no_worker_though_it_has_the_same_numbers(capsys):
    table = pd.DataFrame(
        {"item": range(6), "ann": [0, 1] * 3, "bob": [0, 1, 1] * 2, "agreement": 1, "batch": [0, 1] * 3}
    )
    assert list(cp.read(table).workers) == ["ann", "bob"]
    assert "left out: 'agreement', 'batch'" in " ".join(capsys.readouterr().err.split())


def test_labels_that_differ_by_case_alone_are_those_of_workers_and_are_told():
    table = pd.DataFrame({"item": range(6), "ann": ["Yes", "no"] * 3, "bob": ["yes ", "NO", "NO"] * 2})
    with pytest.warns(AnnotationWarning, match=r"differ by case.*tidy=True"):
        assert list(read(table).workers) == ["ann", "bob"]
    assert len(read(table, tidy=True).classes) == 2


@pytest.mark.parametrize(("last", "label"), [(["Total", 19, 23], "19"), (["agreement", "80%", "75%"], "'75%'")])
def test_a_row_of_sums_below_the_tasks_is_told(tmp_path, last, label):
    rows = [["t1", 1, 2], ["t2", 2, 2], ["t3", 1, 1], ["t4", 2, 1], ["t5", 1, 2], ["t6", 2, 1]]
    pd.DataFrame([*rows, last], columns=["item", "ann", "bob"]).to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(AnnotationWarning, match=rf"'{last[0]}' is called as a row of sums .* label {label}"):
        read(tmp_path / "a.csv", columns="workers")
    pd.DataFrame([*rows, ["total", 1, 2]], columns=["item", "ann", "bob"]).to_csv(tmp_path / "a.csv", index=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*row of sums")
        assert read(tmp_path / "a.csv", columns="workers").n_tasks == 7


def test_how_sure_a_worker_is_and_what_others_made_of_the_labels_are_no_workers():
    labels = {"rater1_score": [1, 2, 3] * 3, "rater2_score": [1, 3, 3] * 3, "adjudicated_score": [1, 2, 3] * 3}
    sure = {f"rater{n}_confidence": [1, 2, 4] * 3 for n in (1, 2)}
    assert list(read(pd.DataFrame({"item": range(9), **labels, **sure})).workers) == ["rater1_score", "rater2_score"]


def test_identifiers_of_what_is_judged_are_no_labels():
    judges = {"judge": ["x"] * 4 + ["y"] * 4 + ["z"] * 4, "grade": ["pass", "fail"] * 6}
    table = pd.DataFrame({"question_id": [0, 0, 1, 1] * 3, "answer_id": list("abcd") * 3, **judges})
    of_one_answer = table.assign(question_id=list("0123") * 3)
    for each in (table, of_one_answer):
        with pytest.raises(AnnotationError, match=r"no column 'label'.*label='answer_id'"):
            read(each)
    chosen = of_one_answer.assign(answer_id=list("abcdabcbabcd")).drop(columns="grade")
    assert list(read(chosen).classes) == list("abcd")


THREE = (of_labels(np.random.default_rng(0), 60, list("abc"), 5) + 1).reset_index()


@pytest.mark.parametrize(("name", "value"), [("n", 3), ("total", 3), ("temperature", 1)])
def test_a_column_of_numbers_that_says_something_of_the_tasks_is_no_worker(name, value):
    """It was, where its number was among the labels, as 3 beside three judges of 1 to 5."""
    assert list(read(THREE.assign(**{name: value})).workers) == ["a", "b", "c"]


def test_a_column_of_one_value_that_is_taken_for_a_worker_is_warned_of():
    with pytest.warns(AnnotationWarning, match=r"taken for workers, .* in all 60 rows: 'k'; leave out"):
        assert "k" in read(THREE.assign(k=1)).workers
    with warnings.catch_warnings(record=True) as told:
        read(THREE.assign(k=1), workers=[*"abck"])
    assert not any("one value" in str(each.message) for each in told)
