"""What pictures have in common: names that can be read, axes that keep their size."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import crowdppl as cp
from crowdppl.data.description import count_text
from crowdppl.inference.plots.style import (
    axes_beside,
    density_colours,
    every,
    faint,
    figure_title,
    ink,
    name_points,
    palette,
    paper,
    share,
    short,
    signed,
    strong,
    title,
)


def test_names_of_crowded_points_lie_neither_on_each_other_nor_on_points_nor_outside():
    points = np.random.default_rng(0).uniform(0, 1, (60, 2))
    _, ax = plt.subplots(layout="constrained")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.scatter(*points.T)
    name_points(ax, *points.T, [f"worker {i}" for i in range(60)])
    assert 5 < len(ax.texts) < 60
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    dots = ax.transData.transform(points)
    assert not any(box.count_contains(dots) for box in boxes)
    room = ax.get_window_extent()
    assert all(room.contains(*corner) for box in boxes for corner in box.corners())


def test_the_first_of_two_names_in_one_place_is_written():
    _, ax = plt.subplots(figsize=(0.9, 0.5))
    name_points(ax, [0.5] * 12, [0.5] * 12, [f"name {i}" for i in range(12)])
    assert ax.texts[0].get_text() == "name 0"
    assert len(ax.texts) < 12


@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize("dpi", [60, 100])
def test_axes_beside_keep_their_inches_whatever_the_size_of_the_others(layout, dpi):
    figure, ax = plt.subplots(figsize=(6, 3), layout=layout, dpi=dpi)
    right, below = axes_beside(ax, side="right", gap=0.2, size=1), axes_beside(ax, side="below", gap=0.1, size=0.5)
    figure.draw_without_rendering()
    box, at_right, at_bottom = (a.get_window_extent() for a in (ax, right, below))
    np.testing.assert_allclose([at_right.x0, at_right.width], [box.x1 + 0.2 * dpi, dpi])
    np.testing.assert_allclose([at_right.y0, at_right.height], [box.y0, box.height])
    np.testing.assert_allclose([at_bottom.y1, at_bottom.height], [box.y0 - 0.1 * dpi, 0.5 * dpi])
    if layout:
        assert right.get_tightbbox().x1 <= figure.bbox.x1 + 1
        assert below.get_tightbbox().y0 >= -1


def test_numbers_and_names_are_written_for_people():
    assert [count_text(n, "task") for n in (0, 1, 2000)] == ["0 tasks", "1 task", "2,000 tasks"]
    assert [share(p) for p in (0, 0.0004, 0.004, 0.5, 0.996, 0.9996, 1)] == [
        *("0%", "<0.1%", "0.4%"),
        *("50%", "99.6%", ">99.9%", "100%"),
    ]
    assert signed(-1234.56) == "\N{MINUS SIGN}1,234.6"
    assert signed(2) == "+2.0"
    assert short("a" * 30 + "end", 12) == "aaaaaaa…aend"
    assert short(("corpus", 3), 20) == "corpus · 3"
    assert short("日本語" * 10, 12) == "日本語…本語"
    assert [every(n, "task") for n in (1, 2000)] == ["the only task", "all 2,000 tasks"]


@pytest.mark.parametrize(
    ("plot", "source"),
    [
        (cp.plot_checks, r"cp\.check\(fit\)"),
        (cp.plot_ranks, r"cp\.calibrate"),
        (cp.plot_comparison, r"cp\.compare\(fits\)"),
        (cp.plot_pareto_k, r"cp\.loo\(fit\)"),
    ],
)
def test_a_plot_that_is_given_a_fit_names_the_call_that_it_needs(tiny, plot, source):
    fit = cp.fit("majority_vote", tiny)
    with pytest.raises(TypeError, match=f"what {source}.* returns is needed, got a Fit"):
        plot(fit)


def test_ink_is_of_the_text_of_the_style_so_that_names_are_seen_on_dark_pages():
    from matplotlib.colors import to_rgba

    for style, colour in (("default", "black"), ("dark_background", "white")):
        with plt.style.context(style):
            assert ink(0.85) == to_rgba(colour, 0.85)
            _, ax = plt.subplots()
            ax.scatter([0, 1], [0, 1])
            name_points(ax, [0, 1], [0, 1], ["a", "b"])
            assert {text.get_color() for text in ax.texts} == {ink(0.85)}


def contrast(one, other):
    """The contrast of two colours, 1 to 21 (WCAG 2, relative luminance)."""
    linear = [
        np.where((c := np.array(to_rgb(colour))) <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        for colour in (one, other)
    ]
    low, high = sorted(float(rgb @ [0.2126, 0.7152, 0.0722]) for rgb in linear)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_data_are_seen_on_light_pages_and_on_dark_ones(look):
    """At least 3 to 1, as WCAG asks of graphics; what is faint stands for areas, and less is enough for these."""
    with plt.style.context(look):
        assert contrast(strong(), paper()) > 7
        assert contrast(faint(), paper()) > 1.7
        assert contrast(strong(), faint()) > 3
        assert min(contrast(colour, paper()) for colour in palette()) > 1.7
        shades = density_colours()(np.linspace(0, 1, 9))
        from_page = [contrast(shade[:3], paper()) for shade in shades]
        assert from_page == sorted(from_page)
        assert from_page[0] > 1.5


def test_intervals_of_many_workers_are_seen_in_a_dark_style():
    rng = np.random.default_rng(0)
    given = np.where(rng.random((40, 310)) < 0.8, np.arange(40)[:, None] % 2, 1 - np.arange(40)[:, None] % 2)
    fit = cp.fit("two_coin", cp.Annotations.from_matrix(given), progress=False)
    with plt.style.context("dark_background"):
        ax = cp.plot_sensitivity_specificity(fit)
        lines = [one for one in ax.collections if isinstance(one, LineCollection)]
        assert len(lines) == 2
        assert all(contrast(one.get_color()[0][:3], ax.get_facecolor()[:3]) > 7 for one in lines)


@pytest.mark.parametrize("of_all", [False, True])
def test_a_title_that_is_wider_than_the_picture_has_several_lines(of_all):
    figure, ax = plt.subplots(figsize=(3, 2), layout="constrained")
    text = "Sensitivity and specificity of all 8 pairs of a worker and a question"
    if of_all:
        figure_title(figure, text)
    else:
        title(ax, text)
    figure.draw_without_rendering()
    box = (figure.texts[0] if of_all else ax.title).get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1
    assert box.y0 >= ax.get_window_extent().y1
