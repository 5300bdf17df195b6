"""Tables of names and texts show their texts whole, in a terminal and in a notebook."""

from html import unescape

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.cards import Listing

LISTS = (cp.list_stories, cp.list_baselines, cp.list_datasets, cp.list_reference_posteriors)


def words(text: str) -> list[str]:
    return text.replace("─", " ").split()


@pytest.mark.parametrize("listing", LISTS)
def test_no_text_is_cut_in_a_terminal_or_in_a_notebook(listing, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = listing()
    printed, page = repr(found), found._repr_html_()
    assert "…" not in printed.replace("vector, …", "")
    flat = found.reset_index() if any(found.index.names) else found
    shown = set(words(printed))
    for name in flat.columns:
        assert str(name) in shown
        for text in (value for value in flat[name] if isinstance(value, str)):
            assert set(words(text)) <= shown
            assert text in unescape(page)


@pytest.mark.parametrize("listing", [cp.list_stories, cp.list_baselines])
def test_texts_are_wrapped_to_the_terminal(listing, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = repr(listing()).rsplit("\n", 1)[0]
    assert max(map(len, table.splitlines())) <= 80


def test_the_last_line_says_where_to_look_next():
    assert repr(cp.list_stories()).splitlines()[-1].startswith("`cp.describe_story(name)` has")
    assert "<code>cp.describe_story(name)</code> has" in cp.list_stories()._repr_html_()


def test_what_is_taken_from_a_listing_is_an_ordinary_frame():
    found = cp.list_stories()
    assert isinstance(found, pd.DataFrame)
    assert type(found.head(2)) is pd.DataFrame
    assert type(found.reset_index()) is pd.DataFrame
    assert type(found["says"]) is pd.Series
    assert found.loc["dawid_skene", "says"].startswith("Every worker has a confusion matrix")


def test_texts_are_escaped_and_what_is_missing_is_blank():
    found = Listing.of(pd.DataFrame({"name": ["<b>", None], "share": [0.25, float("nan")], "n": [1200, 3]}))
    assert "&lt;b&gt;" in found._repr_html_()
    assert "nan" not in repr(found).lower()
    assert "0.250" in repr(found)
    assert "1,200" in repr(found)


def test_stories_are_said_without_markup():
    assert not cp.list_stories()["says"].str.contains("`").any()
