"""Slips of tables as they come: blank cells, spellings of labels and names, labels that stand for others."""

import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning

CLASSES = ["no", "yes"]
BLANKS = st.sampled_from(["", " ", "  ", "\t", "\xa0"])


def table() -> pd.DataFrame:
    rows = [(f"t{i}", f"w{j}", CLASSES[(i + (j == 0)) % 2]) for i in range(6) for j in range(3)]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def same(one: cp.Annotations, other: cp.Annotations) -> bool:
    names = ("tasks", "workers", "classes")
    arrays = ("task", "worker", "label")
    return all(list(getattr(one, name)) == list(getattr(other, name)) for name in names) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


@pytest.mark.parametrize("column", ["task", "worker", "label"])
@pytest.mark.parametrize("blank", ["", "  ", "\xa0"])
def test_blank_cells_are_missing_and_said_with_place_and_mend(column, blank):
    frame = table()
    frame.loc[4, column] = blank
    with pytest.raises(cp.AnnotationError, match=rf"'{column}'.*row 4.*missing='drop'"):
        cp.Annotations.from_frame(frame)
    with pytest.warns(AnnotationWarning, match="row 4"):
        found = cp.Annotations.from_frame(frame, missing="drop")
    assert same(found, cp.Annotations.from_frame(table().drop(index=4)))


def test_a_blank_label_that_is_listed_is_a_label():
    frame = table()
    frame.loc[4, "label"] = ""
    assert list(cp.Annotations.from_frame(frame, abstain=[""]).abstentions) == [""]
    assert list(cp.Annotations.from_frame(frame, classes=["", *CLASSES]).classes) == ["", *CLASSES]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_tidy_undoes_blanks_and_case_whatever_they_are(data):
    """The first spelling of each is that of the plain table, so that of equally frequent ones it is kept."""
    frame = table()
    noisy = pd.concat([frame, frame], ignore_index=True)
    for row in range(len(frame), len(noisy)):
        for column in frame:
            name = noisy.loc[row, column]
            shown = name.upper() if column != "task" and data.draw(st.booleans()) else name
            noisy.loc[row, column] = data.draw(BLANKS) + shown + data.draw(BLANKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotationWarning)  # each row is there twice
        found, plain = (cp.Annotations.from_frame(each, tidy=True) for each in (noisy, pd.concat([frame, frame])))
    assert same(found, plain)


@pytest.mark.parametrize(("column", "other"), [("worker", "W1"), ("worker", " w1"), ("task", "t1 ")])
def test_names_that_differ_by_slips_are_warned_of_with_the_mend(column, other):
    frame = table()
    frame.loc[4, column] = other
    with pytest.warns(AnnotationWarning, match=rf"'{column}'.*{other!r}.*tidy=True"):
        cp.Annotations.from_frame(frame)


def test_tasks_that_differ_by_case_are_different_tasks():
    frame = table()
    frame.loc[4, "task"] = "T1"
    assert cp.Annotations.from_frame(frame, tidy=True).n_tasks == 7


def test_merged_labels_are_one_class():
    frame = table()
    frame.loc[[1, 4], "label"] = ["yess", "y"]
    merged = cp.Annotations.from_frame(frame, merge={"yess": "yes", "y": "yes"})
    frame.loc[[1, 4], "label"] = "yes"
    assert same(merged, cp.Annotations.from_frame(frame))
    numbers = frame.assign(label=[0, 1, 2] * 6)
    assert list(cp.Annotations.from_frame(numbers, merge={"2": "1"}, ordered=False).classes) == [0, 1]


def test_numbers_in_a_range_are_one_class(tmp_path):
    ranges = {"0..0.3": "0", "0.3..0.7": "1", "0.7..1": "2"}
    frame = pd.DataFrame(
        [(t, w, (10 * t + w) / 40) for t in range(4) for w in range(11)], columns=["task", "worker", "label"]
    )
    wanted = frame.assign(label=[0 if v < 0.3 else 1 if v < 0.7 else 2 for v in frame["label"]])
    assert same(cp.Annotations.from_frame(frame, merge=ranges), cp.Annotations.from_frame(wanted))
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert same(cp.read(tmp_path / "scores.csv", merge=ranges, tell=False), cp.Annotations.from_frame(wanted))
    matrix = frame.pivot(index="task", columns="worker", values="label")
    assert same(cp.Annotations.from_matrix(matrix, merge=ranges), cp.Annotations.from_frame(wanted))
    silent = frame.assign(label=frame["label"].astype(object).where(frame["worker"] > 0, "n/a"))
    assert list(cp.Annotations.from_frame(silent, merge=ranges, abstain="n/a").classes) == [0, 1, 2]


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=3, max_size=30), st.floats(-0.9, 0.9))
def test_each_number_is_in_one_range_whose_ends_are_its_own_low_one_and_the_last_high_one(scores, cut):
    cut = round(cut, 3)
    frame = pd.DataFrame({"task": range(len(scores) + 2), "worker": "a", "label": [-1.0, 1.0, *scores]})
    found = cp.Annotations.from_frame(frame, merge={f"-1..{cut}": "low", f"{cut}..1": "high"}, ordered=["low", "high"])
    names = np.array(list(found.classes))
    assert names[np.asarray(found.label)].tolist() == ["high" if v >= cut else "low" for v in frame["label"]]


@pytest.mark.parametrize(
    ("merge", "said"),
    [
        ({"0..0.5": "low", "0.4..1": "high"}, r"0\.\.0\.5, 0\.4\.\.1 overlap"),
        ({"1..0": "low", "1..2": "high"}, "low end that is not below the high one"),
        ({"0..0.5": "low", "0.5..0.9": "high"}, "column 'label', row 1: 1.0 is in none of the ranges"),
    ],
)
def test_ranges_that_hold_a_number_twice_or_not_at_all_are_refused(merge, said):
    frame = pd.DataFrame({"task": [1, 2], "worker": "a", "label": [0.25, 1.0]})
    with pytest.raises(cp.AnnotationError, match=said):
        cp.Annotations.from_frame(frame, merge=merge)


@pytest.mark.parametrize(
    ("merge", "said"),
    [
        ({"yess": "yes"}, "'yess'.*'yes'"),
        ({"zzz": "yes"}, r"value of column 'label'\. There are"),
        (["yes"], "dictionary"),
    ],
)
def test_a_label_that_nobody_gave_is_refused(merge, said):
    with pytest.raises(cp.AnnotationError, match=said):
        cp.Annotations.from_frame(table(), merge=merge)


def test_a_dictionary_of_workers_is_read_as_such():
    by_worker = {name: dict(zip(rows["task"], rows["label"], strict=True)) for name, rows in table().groupby("worker")}
    with pytest.warns(AnnotationWarning, match="3 workers.*outer='task'"):
        found = cp.read(by_worker, tell=False)
    assert (found.n_workers, found.n_tasks) == (3, 6)


def test_the_command_line_names_its_own_options_and_takes_them(tmp_path):
    frame = table()
    frame.loc[[1, 4], "label"] = ["yess", " "]
    path = tmp_path / "crowd.csv"
    frame.to_csv(path, index=False)
    assert "--missing 'drop'" in refused("fit", path, "--out", tmp_path / "one")
    done = crowdppl("fit", path, "--missing", "drop", "--merge", "yess=yes", "--out", tmp_path / "two")
    assert done.exit_code == 0, done.output
    assert cp.load_fit(tmp_path / "two").classes == CLASSES
    assert "LABEL=LABEL" in refused("fit", path, "--merge", "yess", "--missing", "drop", "--out", tmp_path / "three")


def test_a_list_of_task_worker_and_label_is_read_and_fitted():
    rows = [tuple(row) for row in table().to_numpy().tolist()]
    assert same(cp.read(rows, tell=False), cp.Annotations.from_frame(table()))
    assert cp.fit("one_coin", rows, progress=False).annotations.n_annotations == len(rows)
    with pytest.raises(cp.AnnotationError, match=r"row 18: \('t9', 'w0'\) is not \(task, worker, label\)"):
        cp.read([*rows, ("t9", "w0")])


def test_a_pivoted_table_has_its_tasks_in_the_index():
    wide = table().pivot(index="task", columns="worker", values="label")
    assert same(cp.read(wide, tell=False), cp.Annotations.from_frame(table()))


@pytest.mark.parametrize("unknown", [["task"], ["worker"], ["label"], ["task", "worker", "label"], ["task", "label"]])
def test_columns_of_unknown_names_are_asked_for_by_what_is_in_them(unknown, tmp_path):
    odd = {"task": "Zadanie", "worker": "Osoba", "label": "Ocena"}
    frame = table().rename(columns={name: odd[name] for name in unknown})
    asked = ", ".join(f"{name}='{odd[name]}'" for name in unknown)
    with pytest.raises(cp.AnnotationError, match=rf"By what is in them: {asked}\?"):
        cp.read(frame, tell=False)
    frame.to_csv(tmp_path / "odd.csv", index=False)
    told = refused("fit", tmp_path / "odd.csv", "--out", tmp_path / "out")
    options = " ".join(f"--{name} '{odd[name]}'" for name in unknown)
    assert options in " ".join(told.replace("│", " ").split())
    named = [part for name in unknown for part in (f"--{name}", odd[name])]
    crowdppl("fit", tmp_path / "odd.csv", *named, "--story", "one_coin", "--out", tmp_path / "out")


def test_no_column_is_guessed_that_does_not_look_like_its_role():
    frame = table().rename(columns={"task": "a"}).assign(b=[row % 5 for row in range(18)])
    with pytest.raises(cp.AnnotationError, match="Say which it is by task='COL'"):
        cp.read(frame, tell=False)  # two columns may be meant
    with pytest.raises(cp.AnnotationError, match=r"no column 'task'; its columns are [^?]*$"):
        cp.read(frame.drop(columns="a").assign(b=range(18)), tell=False)  # each value once: numbers of rows


def test_a_column_of_one_value_and_one_of_another_in_every_row_are_of_no_role():
    frame = table().rename(columns={"task": "Zadanie", "worker": "Osoba", "label": "Ocena"})
    frame = frame.assign(Projekt="A7", Zeit=range(18))
    with pytest.raises(cp.AnnotationError, match="By what is in them: task='Zadanie', worker='Osoba', label='Oce"):
        cp.read(frame, tell=False)


def test_a_gold_file_of_any_column_names_is_read_by_what_is_in_it(tmp_path):
    table().to_csv(tmp_path / "annotations.csv", index=False)
    gold = pd.DataFrame({"which": ["t0", "t1"], "what": ["no", "yes"]})
    gold.to_csv(tmp_path / "gold.csv", index=False)
    with pytest.warns(AnnotationWarning, match="'which' .* tasks and 'what' .* labels"):
        found = cp.read(tmp_path / "annotations.csv", gold=tmp_path / "gold.csv", tell=False)
    assert dict(zip(found.tasks, found.gold, strict=True)) == {"t0": 0, "t1": 1} | {f"t{i}": -1 for i in range(2, 6)}
    gold.assign(what=["no", "maybe"]).to_csv(tmp_path / "gold.csv", index=False)
    with pytest.raises(cp.AnnotationError, match="has no column 'task'; its columns are 'which', 'what'"):
        cp.read(tmp_path / "annotations.csv", gold=tmp_path / "gold.csv", tell=False)


def test_several_columns_of_answers_are_asked_for_as_questions_and_none_that_is_taken(tmp_path):
    rows = [(f"r{i}", f"j{j}", (i + j) % 2, i % 2, j % 2) for i in range(6) for j in range(3)]
    frame = pd.DataFrame(rows, columns=["response_id", "rater", "helpful", "harmless", "honest answer"])
    with pytest.raises(
        cp.AnnotationError, match=r"no column 'label'; [^?]*question=\['helpful', 'harmless', 'honest ans"
    ):
        cp.read(frame, task="response_id", tell=False)
    frame.to_csv(tmp_path / "three.csv", index=False)
    told = refused("fit", tmp_path / "three.csv", "--task", "response_id", "--out", tmp_path / "out")
    assert "--question 'helpful,harmless,honest answer'" in told
    asked = ("--question", "helpful,harmless,honest answer", "--story", "one_coin", "--out", tmp_path / "out")
    assert crowdppl("fit", tmp_path / "three.csv", "--task", "response_id", *asked).exit_code == 0
    tagged = pd.DataFrame({"doc": [1, 1], "annotator": ["a", "b"], "tags": ["x", "y"]})
    with pytest.raises(cp.AnnotationError, match=r"no column 'task'; .*Did you mean task='doc'\?"):
        cp.Annotations.from_tags(tagged)


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_blank_after_each_separator_is_no_part_of_the_cells(tmp_path, separator):
    rows = ["task, worker, label", 't1, ann, "a, b; c"', "t1, bob, 2", "t2, ann, 2", 't2, bob, "a, b; c"']
    rows = [rows[0].replace(",", separator)] + [row.replace(",", separator, 2) for row in rows[1:]]
    (path := tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    found = cp.read(path, separator=separator)
    assert (list(found.workers), list(found.classes)) == (["ann", "bob"], ["2", "a, b; c"])
    path.write_text("task,worker,label\nt1, ann,a\nt1,bob,b\n")
    assert list(cp.read(path).workers) == [" ann", "bob"]
