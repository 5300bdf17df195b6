"""The plot of an estimate has its figures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp


@pytest.fixture
def estimates():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    said = np.full((200, 3), 0.1)
    said[np.arange(200), np.where(rng.random(200) < 0.2, rng.integers(0, 3, 200), truth)] = 0.8
    gold = pd.Series(["$x$", "b", "c"])[truth[:60]].tolist()
    frame = pd.DataFrame(said, columns=["$x$", "b", "c"])
    return {method: cp.estimate(frame, dict(enumerate(gold)), method=method) for method in ("ppi", "rogan_gladen")}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_dots_and_lines_stand_at_the_estimates_and_their_intervals(estimates):
    one = estimates["ppi"]
    ax = cp.plot_estimate(one)
    lines, dots, said = ax.collections
    np.testing.assert_allclose(dots.get_offsets()[:, 0], one.table["estimate"])
    np.testing.assert_allclose([segment[:, 0] for segment in lines.get_segments()], one.table[["low", "high"]])
    np.testing.assert_allclose(said.get_offsets()[:, 0], one.table["without_gold"])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["accuracy", "$x$", "b", "c"]
    assert ax.get_legend().get_texts()[0].get_text() == "estimate, 90% interval, 60 gold labels"


def test_several_estimates_stand_beside_each_other(estimates):
    _, own = plt.subplots()
    ax = cp.plot_estimate(estimates, ax=own)
    assert ax is own
    first, second = ax.collections[1], ax.collections[3]
    assert (first.get_offsets()[:, 1] < second.get_offsets()[:, 1]).all()
    names = [text.get_text().split(",")[0] for text in ax.get_legend().get_texts()]
    assert names == ["ppi", "rogan_gladen", "without gold"]


def test_what_is_no_estimate_is_refused(estimates):
    with pytest.raises(TypeError, match=r"'estimate' is a DataFrame; what cp.estimate returns is needed"):
        cp.plot_estimate(estimates["ppi"].table)
    with pytest.raises(ValueError, match="0 estimates: 1 to 7"):
        cp.plot_estimate({})
    other = cp.estimate(pd.DataFrame({"a": [0.9] * 30, "b": [0.1] * 30}), dict.fromkeys(range(25), "a"))
    with pytest.raises(ValueError, match="'other' is of other classes"):
        cp.plot_estimate({"ppi": estimates["ppi"], "other": other})


@pytest.mark.parametrize("n", [1, 3])
def test_the_legend_is_within_the_figure_whatever_the_number_of_classes_and_estimates(n):
    for k in (2, 6):
        rows = pd.DataFrame(np.full((60, k), 1 / k) + np.eye(k)[np.arange(60) % k], columns=[f"c{i}" for i in range(k)])
        gold = {task: f"c{task % k}" for task in range(30)}
        found = cp.estimate(rows.div(rows.sum(1), axis=0), gold)
        ax = cp.plot_estimate({f"method {i}": found for i in range(n)})
        ax.figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        lowest = min(text.get_window_extent().y0 for text in ax.get_legend().get_texts())
        assert ax.get_window_extent().y1 <= lowest
        assert box.y1 <= ax.title.get_window_extent().y0
        assert all(
            ax.figure.bbox.contains(*corner) for one in (box, ax.title.get_window_extent()) for corner in one.corners()
        )


def test_the_title_says_that_the_rarest_of_many_classes_are_left_out():
    k = 40
    rows = pd.DataFrame(np.full((80, k), 1 / k) + np.eye(k)[np.arange(80) % k], columns=[f"c{i}" for i in range(k)])
    found = cp.estimate(rows.div(rows.sum(axis=1), axis=0), {task: f"c{task % k}" for task in range(60)})
    ax = cp.plot_estimate(found)
    drawn = [text.get_text() for text in ax.get_yticklabels()][1:]
    heading = " ".join(ax.get_title().split())
    assert heading == f"Accuracy of the labels and prevalence of the {len(drawn)} most frequent of 40 classes"
    ax.figure.draw_without_rendering()
    box = ax.title.get_window_extent()
    assert ax.figure.bbox.x0 <= box.x0 <= box.x1 <= ax.figure.bbox.x1
