"""Tables of a terminal: no number is cut, and none is lost for want of room."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from crowdppl.cli.terminal import frame_table, frame_tables

SCORES = ("accuracy", "spammer_score", "sensitivity", "specificity", "abstention_rate")


def workers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"annotations": [80, 1_234]}, pd.Index(["rater 1", "rater 2"], name="worker"))
    for score in SCORES:
        frame[score], frame[f"{score}_low"], frame[f"{score}_high"] = np.sort(rng.random((2, 3)))[:, [1, 0, 2]].T
    return frame


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    """The width of the terminal is 80, and columns(n) makes it another."""

    def set_to(width):
        monkeypatch.setenv("COLUMNS", str(width))

    set_to(80)
    return set_to


def printed(tables):
    console = Console(record=True, file=io.StringIO())
    for table in tables:
        console.print(table)
    return console.export_text()


@pytest.mark.parametrize("width", [200, 80, 50, 40])
def test_every_number_of_the_workers_stands_in_a_terminal_of_any_width(width, columns):
    columns(width)
    frame = workers()
    text = printed(frame_tables(frame, "workers"))
    numbers = [f"{value:.3f}" for score in SCORES for value in frame[score]]
    ends = [(frame[f"{score}_low"], frame[f"{score}_high"]) for score in SCORES]
    intervals = [f"{low:.3f}–{high:.3f}" for pair in ends for low, high in zip(*pair, strict=True)]
    assert [cell for cell in [*numbers, *intervals, "1,234"] if cell not in text] == []
    assert all(len(line) <= width for line in text.splitlines())


def test_rows_of_tasks_and_questions_have_both_names():
    index = pd.MultiIndex.from_tuples([("t1", "fluency")], names=["task", "question"])
    text = printed(frame_tables(pd.DataFrame({"probability": [0.5]}, index), "labels"))
    assert "task · question" in text
    assert "t1 · fluency" in text


def test_columns_that_go_on_below_have_the_rows_names_and_a_title_again(columns):
    tables = list(frame_tables(workers(), "workers"))
    assert [str(table.title) for table in tables] == ["workers", "workers, more columns", "workers, more columns"]
    assert all(str(table.columns[0].header) == "worker" for table in tables)
    _, further, *_ = frame_tables(workers(), "ranking, within 2 parts")
    assert str(further.title) == "ranking, more columns"
    _, further, *_ = frame_tables(workers(), "the best five of 1,478 workers")
    assert str(further.title) == "the best five of 1,478 workers, more columns"
    columns(200)
    assert len(list(frame_tables(workers(), "workers"))) == 1


def test_a_table_by_itself_says_what_a_wider_terminal_shows():
    caption = str(frame_table(workers(), "workers").caption)
    assert caption == "a wider terminal shows sensitivity; specificity; abstention rate"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_column_is_cut_where_the_words_of_the_headings_fit_and_whole_headings_do_not(width, columns):
    """The ranking of items with names of five letters lost the end of its last column in 80 characters."""
    columns(width)
    interval = {"low": [-4.045, 0.125], "high": [-0.253, 3.82]}
    scores = {"score": [-2.504, 2.255]} | {f"score_{end}": values for end, values in interval.items()}
    scores |= {"rank": [8, 1], "rank_low": [4, 1], "rank_high": [8, 4], "p_best": [0.0, 0.39]}
    for letters in range(1, 30):
        index = pd.Index(["a" * letters, "b" * letters], name="item")
        frame = pd.DataFrame(scores | {"n_comparisons": [145, 156]}, index)
        text = printed(frame_tables(frame, "ranking"))
        cells = ["145", "156", "comparisons", "0.390", "-4.045 to -0.253", "0.125–3.820"]
        assert [cell for cell in cells if cell not in text] == [], letters


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame([[0.25, 0.75]], ["mace"], columns=[100, 200])
    text = printed([frame_table(frame, "passes")])
    assert [word for word in ("100", "200", "0.250", "0.750") if word not in text] == []


def test_a_title_is_not_folded_to_the_width_of_a_narrow_table_and_no_number_is_a_dash():
    frame = pd.DataFrame({"score": [0.5, np.nan], "score_low": [0.1, np.nan], "score_high": [0.9, np.nan]}, ["a", "b"])
    title = "ranking, within 2 parts that no comparison joins, of few columns"
    lines = printed([frame_table(frame, title)]).splitlines()
    assert lines[0].strip() == title
    assert lines[-2].split() == ["b", "–", "–"]
    assert max(map(len, printed([frame_table(frame, title * 2)]).splitlines())) <= 80
