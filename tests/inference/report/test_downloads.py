"""Tables to download: the same numbers come back, and no cell is a formula to a spreadsheet."""

import base64
import csv
import io

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_pages import EVIL, Page

from crowdppl.data.harmless_csv import harmless
from crowdppl.inference.report import sections
from crowdppl.inference.report.sections import BYTE_ORDER_MARK, csv_text, download

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


def rows_of(text):
    assert text.startswith(BYTE_ORDER_MARK)
    return list(csv.reader(io.StringIO(text.removeprefix(BYTE_ORDER_MARK))))


@given(st.lists(TEXT, min_size=1, max_size=5), TEXT)
@example(["a;=1+1", '"', "a,b", "line"], "=heading")
def test_text_comes_back_from_csv_behind_at_most_an_apostrophe(names, heading):
    columns = pd.Index([heading, "x"])  # two, also where the heading is "x"
    frame = pd.DataFrame(zip(names, range(len(names)), strict=True), pd.Index(names, name="task"), columns)
    heads, *rows = rows_of(csv_text(frame))
    assert heads == ["task", str(harmless(heading)), "x"]
    assert rows == [[str(harmless(name))] * 2 + [str(i)] for i, name in enumerate(names)]


def test_all_text_is_quoted_so_that_no_separator_makes_two_cells_of_one():
    frame = pd.DataFrame({"a": ["x;=1+1", None], "p": [0.5, float("nan")]}, index=pd.Index(["t", "u"], name="task"))
    assert csv_text(frame).removeprefix(BYTE_ORDER_MARK).split("\r\n") == [
        '"task","a","p"',
        '"t","x;=1+1",0.5',
        '"u","",""',
        "",
    ]


def test_a_link_holds_its_file_whatever_the_names_are():
    frame = pd.DataFrame({"label": ["Ωμέγα #1", '">', "100%"]}, index=pd.Index([EVIL, "a&b", "=1"], name="task"))
    link, note = Page(download("labels", [("all 3 labels", frame)])).all("a", "small")
    assert link["download"] == "labels.csv"
    assert note["text"] == "all 3 labels"
    kind, _, data = link["href"].partition(",")
    assert kind == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(data).decode("utf-8") == csv_text(frame)


@pytest.mark.parametrize(("most", "said"), [(10**6, "all 9 rows"), (1000, "5 of 9 rows"), (10, "2 of 9 rows")])
def test_a_file_that_no_browser_downloads_gives_way_to_a_shorter_one(monkeypatch, most, said):
    monkeypatch.setattr(sections, "MOST", most)
    frame = pd.DataFrame({"x": ["y" * 100] * 9}, index=pd.RangeIndex(9, name="row"))
    frames = [("all 9 rows", frame), ("5 of 9 rows", frame.head(5)), ("2 of 9 rows", frame.head(2))]
    assert Page(download("x", frames)).all("small")[0]["text"] == said
