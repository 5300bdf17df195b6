"""Tables and elements: numbers as they are read, and text that stays text."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup
from report_pages import EVIL, Page

from crowdppl.inference.report.sections import LONG, PRINTED, decimals, number, table

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))  # a parser reads control characters its own way


def cells(frame, **options):
    return Page(table(frame, "Caption", **options)).table("Caption")


@given(st.lists(TEXT, min_size=1, max_size=5), TEXT.filter(lambda heading: heading != "unit"))
def test_any_text_comes_back_from_tables(names, heading):
    frame = pd.DataFrame({heading: names}, index=pd.Index(names, name="unit"))
    rows = cells(frame)
    assert rows[0] == ["unit", heading.replace("_", " ")]
    assert rows[1:] == [[name, name] for name in names]


@given(TEXT, TEXT)
@example(EVIL, '"><script>')
def test_any_text_comes_back_from_elements_and_attributes(text, attribute):
    frame = pd.DataFrame({"x": [text]}).rename_axis("unit")
    page = Page(table(frame, attribute))
    assert page.all("td")[0]["text"] == text
    assert page.all("figcaption")[0]["text"] == attribute
    assert page.all("div")[0]["aria-label"] == attribute


def test_markup_is_written_once_and_text_always_escaped():
    frame = pd.DataFrame({"x": ["a<b", Markup("<b>{}</b>").format("a<b")]}, dtype=object)
    made = table(frame, "&")
    assert '<td dir="auto">a&lt;b</td>' in made or '<th scope="row" dir="auto">a&lt;b</th>' in made
    assert "<b>a&lt;b</b>" in made
    assert "<figcaption>&amp;</figcaption>" in made
    assert isinstance(made, Markup)


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (1234567, 3, "1,234,567"),
        (0.12345, 3, "0.123"),
        (-0.0001, 3, "0.000"),
        (-1234.56, 1, "-1,234.6"),
        (np.float32(0.5), 3, "0.500"),
        (float("nan"), 3, "–"),
        (pd.NA, 3, "–"),
        (None, 3, "–"),
        (float("inf"), 3, "inf"),
        (np.int64(-3), 3, "-3"),
    ],
)
def test_numbers_are_written_to_be_read(value, places, shown):
    assert number(value, places) == shown


@pytest.mark.parametrize(
    ("values", "places"), [([0.5, 0.001], 3), ([12.0, -0.1], 2), ([-1234.5], 1), ([0.0], 3), ([2e-5, 1e-6], 8), ([], 3)]
)
def test_a_column_has_as_many_decimals_as_its_largest_number_needs(values, places):
    assert decimals(pd.Series(values, dtype=float)) == places


def test_intervals_and_errors_stand_beside_their_numbers():
    frame = pd.DataFrame(
        {"a": [0.5, np.nan], "a_low": [0.4, np.nan], "a_high": [0.6, np.nan], "b": [1, 2], "b_se": [0.25, 0.5]},
        index=pd.Index(["x", "y"], name="unit"),
    )
    assert cells(frame) == [["unit", "a", "b"], ["x", "0.500 0.400–0.600", "1 ± 0.250"], ["y", "–", "2 ± 0.500"]]
    lonely = pd.DataFrame({"low": [0.4], "high": [0.6]}, index=pd.Index(["x"], name="unit"))
    assert cells(lonely)[0] == ["unit", "low", "high"]


def test_numbers_to_sort_by_are_more_exact_than_those_shown():
    frame = pd.DataFrame({"p": [0.99991, 0.99999, np.nan], "sure": [True, False, True]}).rename_axis("unit")
    page = Page(table(frame, "Caption", bars={"p"}))
    found = [e for e in page.all("td") if "bar" in (e.get("class") or "")]
    assert [e["data-v"] for e in found] == ["0.99991", "0.99999"]
    assert [e["text"] for e in page.all("td") if "data-v" not in e] == ["yes", "no", "–", "yes"]


def test_every_index_level_is_a_column_and_the_first_heads_its_row():
    index = pd.MultiIndex.from_tuples([("w", "a"), ("w", "b")], names=["worker", "truth"])
    page = Page(table(pd.DataFrame({"x": [1, 2]}, index=index), "Caption"))
    assert page.table("Caption") == [["worker", "truth", "x"], ["w", "a", "1"], ["w", "b", "2"]]
    assert [e["scope"] for e in page.all("th")] == ["col", "col", "col", "row", "row"]


def test_long_tables_are_marked_to_be_filtered_and_say_how_many_rows_are_printed():
    def made(n):
        return table(pd.DataFrame({"x": range(n)}), "Caption")

    assert 'class="table long"' not in made(LONG)
    assert 'class="table long"' in made(LONG + 1)
    assert "Printed" not in made(PRINTED)
    assert f"the first {PRINTED} of {PRINTED + 1} rows" in made(PRINTED + 1)


def test_bounds_below_zero_are_not_joined_by_one_more_dash():
    frame = pd.DataFrame({"x": [0.1, 0.2], "x_low": [-0.3, 0.1], "x_high": [-0.1, 0.3]}, index=["a", "b"])
    assert [row[1] for row in cells(frame.rename_axis("unit"))[1:]] == [
        "0.100 -0.300 to -0.100",
        "0.200 0.100 to 0.300",
    ]
    above = frame.assign(x_low=[0.0, 0.1], x_high=[0.2, 0.3]).rename_axis("unit")
    assert [row[1] for row in cells(above)[1:]] == ["0.100 0.000–0.200", "0.200 0.100–0.300"]


def test_numbers_that_eight_decimals_do_not_show_have_three():
    assert decimals(pd.Series([3e-10, -1e-11])) == 3
    assert decimals(pd.Series([3e-6])) == 8
