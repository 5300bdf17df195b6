"""Cards that notebooks show: escaped, in the notebook's colours, and never an error."""

import re

import numpy as np
import pytest

from crowdppl import Annotations
from crowdppl.data.cards import bar, card, facts, histogram, marked, never_raising, short, table

EVIL = '<img src=x onerror="alert(1)">'


def test_every_text_is_escaped():
    parts = facts({EVIL: EVIL}), table(EVIL, [EVIL], [[EVIL, bar(0.5, EVIL)]], EVIL), histogram(EVIL, [1], EVIL, EVIL)
    shown = card(EVIL, EVIL, *parts, warnings=[EVIL], then=[EVIL])
    assert "<img" not in shown
    assert shown.count("&lt;img") >= 12


def test_text_has_the_colour_of_the_notebook():
    shown = card("a", "b", facts({"c": 1}), table("d", ["e"], [["f"]]), histogram("g", [1, 2], "0", "1"))
    assert re.findall(r"[; \"]color:(?!inherit)", shown) == []
    assert re.findall(r"background:(?!transparent|#4c8bbf)", shown) == []


def test_what_cannot_be_shown_is_shown_as_its_text():
    class Broken:
        def __repr__(self):
            return "<broken>"

        @never_raising
        def _repr_html_(self):
            raise ZeroDivisionError

    assert Broken()._repr_html_() == "<pre>&lt;broken&gt;</pre>"


def test_the_columns_of_a_histogram_are_as_tall_as_their_counts():
    heights = re.findall(r'<rect [^>]*height="([\d.]+)"', histogram("n", [0, 5, 10], "0", "2"))
    assert heights == ["0.0", "22.0", "44.0"]


@pytest.mark.parametrize("values", [np.ones(5), np.zeros(0), np.array([1.0, np.nan])])
def test_a_spread_of_nothing_is_a_dash(values):
    assert marked(values, 1.0) == "–" or not len(values)


def test_a_bar_is_no_longer_than_the_whole_and_an_unknown_share_is_a_dash():
    assert "width:80px" in bar(1.0000001)
    assert bar(float("nan")) == "–"


def test_a_long_name_is_cut():
    assert len(short("x" * 1000)) == 60
    assert short("x" * 1000 + "end").endswith("end")


def test_annotations_without_workers_or_tasks_of_one_size_are_shown():
    shown = Annotations.from_counts(np.array([[3, 0], [1, 2]]))._repr_html_()
    assert "not named" in shown
    assert "annotations by worker" not in shown
    assert not shown.startswith("<pre>")


def test_agreement_that_is_not_defined_is_a_dash():
    shown = Annotations.from_counts([[3, 0]], classes=["no", "yes"])._repr_html_()
    assert "nan" not in shown
    assert "–" in shown


def test_very_many_annotations_are_not_counted_for_their_card(tiny, monkeypatch):
    monkeypatch.setattr("crowdppl.data.annotations.LARGE", 3)
    monkeypatch.setattr(Annotations, "describe", lambda self: 1 / 0)
    shown = tiny._repr_html_()
    assert "9 annotations of 5 tasks by 3 workers" in shown
    assert not shown.startswith("<pre>")
