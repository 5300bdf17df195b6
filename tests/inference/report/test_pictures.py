"""Plots in the page: the same bytes each time, no figure left open, and the reader's style unchanged."""

import base64
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from report_pages import Page

from crowdppl.inference.report import sections
from crowdppl.inference.report.sections import picture


def draw(n=5, title="What is seen"):
    ax = plt.subplots()[1]
    ax.scatter(np.arange(n), np.arange(n) % 7)
    ax.set_title(title, parse_math=False)
    return ax


def written(*arguments, **options):
    (image,) = Page(picture(lambda: draw(*arguments, **options), "Alt")).all("img")
    kind, _, data = image["src"].removeprefix("data:image/").partition(";base64,")
    return kind, base64.b64decode(data), image["alt"]


def test_the_same_picture_is_the_same_bytes_without_a_date():
    first, second = written(), written()
    assert first == second
    assert b"<dc:date>" not in first[1]


def test_a_picture_of_very_many_marks_is_pixels(monkeypatch):
    kind, small, _ = written()
    assert kind == "svg+xml"
    monkeypatch.setattr(sections, "MOST_SVG", len(small) - 1)
    kind, data, _ = written()
    assert kind == "png"
    assert data.startswith(b"\x89PNG")
    assert written()[1] == data


def test_figures_are_closed_also_when_they_cannot_be_drawn(monkeypatch):
    before = plt.get_fignums()
    written()

    def fail(figure):
        raise RuntimeError("no")

    monkeypatch.setattr(sections, "_written", fail)
    with pytest.raises(RuntimeError):
        written()
    assert plt.get_fignums() == before


def test_letters_that_matplotlib_lacks_are_left_to_the_browser_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, data, alt = written(title="猫 <b> & 🦊 $x")
    assert "猫 &lt;b&gt; &amp; 🦊 $x" in data.decode("utf-8")
    assert alt == "Alt: 猫 <b> & 🦊 $x"


def test_the_reader_s_style_is_as_it_was():
    with mpl.rc_context({"font.size": 21}):
        inside = written()
        assert mpl.rcParams["font.size"] == 21
    assert inside == written()
