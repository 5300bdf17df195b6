"""Workers are drawn the most accurate first: with their names where they are few, by rank where all are asked for."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import crowdppl as cp
from crowdppl.inference.plots.worker_accuracy import plot_workers


def test_workers_are_sorted_by_accuracy_with_their_intervals(svi):
    ax = plot_workers(svi, interval=0.6)
    scores = svi.worker_scores(0.6).sort_values("accuracy")
    assert [t.get_text() for t in ax.get_yticklabels()] == [str(worker) for worker in scores.index]
    dots = next(c for c in ax.collections if len(c.get_offsets()) == 5)
    np.testing.assert_allclose(dots.get_offsets()[:, 0], scores["accuracy"])
    lines = next(c for c in ax.collections if hasattr(c, "get_segments"))
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    np.testing.assert_allclose(ends, scores[["accuracy_low", "accuracy_high"]])
    areas = dict(zip(scores.index, dots.get_sizes(), strict=True))
    assert areas[1] > areas[2] == areas[5]


def test_the_axes_given_are_used(em):
    figure, ax = plt.subplots()
    assert plot_workers(em, ax=ax, max_workers=2) is ax
    assert "2 of 5 workers" in ax.get_title()
    assert plt.get_fignums() == [figure.number]


def test_any_score_of_the_workers_can_be_drawn(svi):
    ax = plot_workers(svi, score="spammer_score")
    dots = next(c for c in ax.collections if len(c.get_offsets()) == 5)
    np.testing.assert_allclose(dots.get_offsets()[:, 0], np.sort(svi.workers["spammer_score"]))
    assert ax.get_title() == "Spammer score of all 5 workers\nwith 90% credible intervals"
    assert ax.get_xlabel() == "spammer score (0: spammer, 1: no errors)"
    with pytest.raises(cp.UnknownNameError, match=r"unknown score 'acuracy'; did you mean 'accuracy'\?"):
        plot_workers(svi, score="acuracy")


@pytest.mark.slow
def test_all_of_many_workers_are_drawn_by_rank_with_the_first_and_the_last_named(crowded):
    scores = crowded.workers["accuracy"].sort_values(ascending=False)
    ax = plot_workers(crowded, max_workers=None)
    ranks, values = next(line for line in ax.lines if len(line.get_xdata()) == 450).get_data()
    np.testing.assert_array_equal(ranks, np.arange(1, 451))
    np.testing.assert_allclose(values, scores)
    assert ax.get_title() == "Accuracy of all 450 workers\nwith 90% credible intervals"
    best, worst = ax.texts
    assert (best.xy[0], best.xy[1]) == (1, pytest.approx(scores.iloc[0]))
    assert scores[int(best.get_text())] == scores.iloc[0]
    assert scores[int(worst.get_text())] == scores.iloc[-1]


def test_each_of_up_to_two_hundred_ranks_has_a_marker(binary, crowded, monkeypatch):
    monkeypatch.setattr("crowdppl.inference.plots.worker_accuracy.NAMED", 5)
    dots = [c.get_offsets() for c in plot_workers(binary, max_workers=None).collections if len(c.get_offsets()) == 12]
    np.testing.assert_allclose(dots[0][:, 1], binary.workers["accuracy"].sort_values(ascending=False))
    assert not [c for c in plot_workers(crowded, max_workers=None).collections if len(c.get_offsets()) == 450]


@pytest.mark.parametrize("separate", [True, False])
def test_intervals_by_rank_are_those_of_the_workers(binary, monkeypatch, separate):
    monkeypatch.setattr("crowdppl.inference.plots.worker_accuracy.NAMED", 5)
    monkeypatch.setattr("crowdppl.inference.plots.ranking.SEPARATE", 400 if separate else 5)
    scores = binary.worker_scores(0.5).sort_values("accuracy", ascending=False)
    bounds = scores[["accuracy_low", "accuracy_high"]].to_numpy()
    drawn = plot_workers(binary, max_workers=None, interval=0.5).collections[0]
    if separate:
        ends = np.array([segment[:, 1] for segment in drawn.get_segments()])
        np.testing.assert_allclose(ends, bounds)
    else:
        outline = drawn.get_paths()[0].vertices[:, 1]
        assert set(np.round(bounds, 9).ravel()) <= set(np.round(outline, 9))


def test_fewer_workers_than_one_and_unnamed_ones_are_refused(em, unnamed):
    with pytest.raises(ValueError, match="max_workers=0"):
        plot_workers(em, max_workers=0)
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        plot_workers(unnamed)


def test_a_stack_is_drawn_as_a_fit_is(svi):
    stack = cp.stack({"only": svi, "other": svi}, weights={"only": 1.0})
    drawn, expected = (
        next(c for c in plot_workers(of).collections if len(c.get_offsets()) == 5).get_offsets()[:, 0]
        for of in (stack, svi)
    )
    np.testing.assert_allclose(drawn, expected, rtol=1e-5)


def test_a_score_that_only_the_full_table_has_can_be_drawn(svi):
    """Trace, informativeness and others come after the first columns, and are computed when they are asked for."""
    ax = plot_workers(svi, score="trace")
    dots = next(c for c in ax.collections if len(c.get_offsets()) == 5)
    np.testing.assert_allclose(dots.get_offsets()[:, 0], np.sort(svi.workers["trace"]))


def test_the_legend_says_what_the_size_of_a_dot_is_and_shows_sizes_of_the_plot(svi):
    ax = plot_workers(svi)
    dots = next(c for c in ax.collections if len(c.get_offsets()) == 5)
    legend = ax.get_legend()
    assert "size" in legend.get_title().get_text()
    texts = [int(text.get_text()) for text in legend.texts]
    shown = dict(zip(texts, (handle.get_sizes()[0] for handle in legend.legend_handles), strict=True))
    assert shown.keys() == set(svi.workers["annotations"])
    assert set(np.round(list(shown.values()), 3)) == set(np.round(dots.get_sizes(), 3))
