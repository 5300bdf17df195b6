"""No cell that is written is one that a spreadsheet runs, and every cell comes back the same."""

import csv

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data.frames import read_text_table
from crowdppl.data.harmless_csv import as_before, harmless, would_run, write_csv

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\tx",
    "\rx",
    "\nx",
    "'=1",
    "''@a",
    "＝1+1",
    '="a","b"',
    "  =1+1",
]
CELLS = st.one_of(st.sampled_from(FORMULAS), st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))


@given(CELLS)
@example("'")
@example("-5")
@example("' =1")
@example('=HYPERLINK("http://x","y")')
def test_a_cell_that_is_made_harmless_does_not_run_and_comes_back(text):
    assert not would_run(harmless(text))
    assert as_before(pd.Series([harmless(text)]))[0] == text


@given(st.lists(CELLS, min_size=1, unique=True))
def test_what_differs_in_a_file_never_becomes_the_same(texts):
    assert as_before(pd.Series(texts)).nunique() == len(texts)


@given(tasks=st.lists(CELLS, min_size=1, max_size=6, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_comes_back_from_its_file(tasks, tmp_path):
    table = pd.DataFrame({"label": tasks[::-1], "p": -0.5}, index=pd.Index(tasks, name="task", dtype=object))
    write_csv(table, tmp_path / "t.csv")
    found = read_text_table(tmp_path / "t.csv", separator=",", encoding="utf-8")
    assert found["task"].tolist() == tasks
    assert found["label"].tolist() == tasks[::-1]
    assert set(found["p"]) == {"-0.5"}
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert not any(would_run(cell) for row in csv.reader(file) for cell in row)


def test_labels_are_written_harmless_and_are_read_as_gold_labels_as_they_were(tmp_path):
    names = FORMULAS[:6]
    frame = pd.DataFrame(
        [(t, w, c) for t in names for w in ("=w", "v") for c in ("-x",)], columns=["task", "worker", "label"]
    )
    frame.loc[0, "label"] = "=y"
    fit = cp.fit("majority_vote", cp.Annotations.from_frame(frame))
    path = fit.write_labels(tmp_path / "labels.csv", to="csv")
    gold = read_text_table(path)
    assert gold["task"].tolist() == names
    assert gold["label"].tolist() == fit.labels["label"].tolist()
    assert list(gold.columns[-2:]) == [f"p_{name}" for name in fit.annotations.classes]
    write_csv(frame.set_index("task"), tmp_path / "annotations.csv")
    again = cp.Annotations.from_csv(tmp_path / "annotations.csv", gold=path)
    assert list(again.tasks) == list(fit.annotations.tasks)
    assert again.to_frame().equals(cp.Annotations.from_frame(frame).to_frame())


@pytest.mark.parametrize("label", ["-1", "+1", "+3.5e-2", "'quoted'", "it's"])
def test_numbers_and_other_apostrophes_stay_as_they_are(label):
    assert harmless(label) == label
    assert as_before(pd.Series([label]))[0] == label
