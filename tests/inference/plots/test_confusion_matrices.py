"""Confusion matrices show the fit's own numbers, and refuse what they cannot draw."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from made_fits import made_fit

import crowdppl as cp
from crowdppl.inference.plots.confusion_matrices import plot_confusions


@pytest.fixture
def crowd_fit(em):
    def fitted(n_workers, names=("a", "b"), worker="worker {}".format):
        """A fit of workers of whom number j has annotated j + 1 tasks."""
        pairs = [(j, task) for j in range(n_workers) for task in range(j + 1)]
        rows = [(task, worker(j), names[(task + j * task) % len(names)]) for j, task in pairs]
        frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
        return made_fit(em, cp.Annotations.from_frame(frame, classes=names), draws=1)

    return fitted


def cells(ax):
    """Texts of the cells by (truth, annotation)."""
    found = {}
    for text in ax.texts:
        given, truth = text.xy
        found.setdefault((truth, given), []).append(text.get_text())
    return found


def test_cells_hold_the_probabilities_and_the_bounds_of_their_intervals(svi):
    axes = plot_confusions(svi, interval=0.8)
    table = svi.confusions(interval=0.8).set_index(["worker", "truth", "annotation"])
    assert len(axes) == 5
    for ax, worker in zip(axes, [1, 2, 3, 4, 5], strict=True):
        assert ax.get_title().startswith(f"worker {worker}: ")
        for (truth, given), (value, bounds) in cells(ax).items():
            row = table.loc[(worker, truth + 1, given + 1)]
            assert float(value) == pytest.approx(row["probability"], abs=0.0051)
            low, high = map(float, bounds.split("–"))
            assert [low, high] == pytest.approx([row["low"], row["high"]], abs=0.0051)
        assert len(cells(ax)) == 16


def test_titles_say_annotations_and_accuracy_with_its_interval(svi):
    ax = plot_confusions(svi, workers=[3], interval=0.5)[0]
    score = svi.worker_scores(0.5).loc[3]
    bounds = f"({score['accuracy_low']:.2f}–{score['accuracy_high']:.2f})"
    off = f"off by {score['mean_absolute_error']:.2f}, bias {score['bias']:+.2f}"
    assert ax.get_title() == f"worker 3: 45 annotations\naccuracy {score['accuracy']:.2f} {bounds}\n{off}"


def test_around_a_point_there_are_intervals_too_which_hold_the_point(em):
    axes = plot_confusions(em)
    for value, bounds in (texts for ax in axes for texts in cells(ax).values()):
        low, high = map(float, bounds.split("–"))
        assert low <= float(value) <= high
    assert all("(" in ax.get_title() for ax in axes)


def test_the_colours_are_the_probabilities(em):
    axes = plot_confusions(em)
    np.testing.assert_allclose([ax.images[0].get_array() for ax in axes], em.confusion_draws[0, 0], rtol=1e-6)
    assert {ax.images[0].get_clim() for ax in axes} == {(0, 1)}


def test_of_many_workers_those_with_the_most_annotations_are_shown(crowd_fit):
    fit = crowd_fit(30)
    axes = plot_confusions(fit)
    titles = [ax.get_title().partition(":")[0] for ax in axes]
    assert titles == [f"worker {j}" for j in range(29, 9, -1)]
    figure = axes[0].figure
    assert "20 of 30 workers, those with the most annotations" in figure.get_suptitle()
    assert len(figure.axes) == 20 + 1  # the colour bar
    assert len(plot_confusions(fit, max_workers=3)) == 3


def test_workers_are_shown_in_the_order_asked_for(em):
    axes = plot_confusions(em, workers=[4, 2])
    assert [ax.get_title().partition(":")[0] for ax in axes] == ["worker 4", "worker 2"]
    assert "2 of 5 workers" in axes[0].figure.get_suptitle()
    assert [ax.get_title().partition(":")[0] for ax in plot_confusions(em, workers=4)] == ["worker 4"]


def test_given_axes_are_used_and_no_figure_is_made(em):
    figure, grid = plt.subplots(1, 3)
    axes = plot_confusions(em, axes=grid)
    assert list(axes) == list(grid)
    assert all(ax.images for ax in grid)
    assert figure.axes == list(grid)
    assert plt.get_fignums() == [figure.number]
    one = plt.figure().add_subplot()
    assert list(plot_confusions(em, workers=[1], axes=one)) == [one]


@pytest.mark.parametrize(
    ("names", "cell_texts"), [(("open country", "tall building"), 8), ([f"class {k}" for k in range(12)], 0)]
)
def test_names_of_classes_are_on_the_outer_axes_and_do_not_overlap(crowd_fit, names, cell_texts):
    axes = plot_confusions(crowd_fit(12, names))
    figure = axes[0].figure
    figure.canvas.draw()
    first, last = axes[0], axes[-1]
    assert [t.get_text() for t in first.get_yticklabels()] == list(names)
    assert [t.get_text() for t in last.get_xticklabels()] == list(names)
    assert not any(t.get_text() for t in axes[1].get_yticklabels())
    assert len(first.texts) == cell_texts
    boxes = [t.get_window_extent() for t in first.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    turned = {t.get_rotation() for t in last.get_xticklabels()}
    assert turned == {45.0}


def test_ids_with_dollars_and_of_any_length_are_written_as_they_are(crowd_fit):
    fit = crowd_fit(2, names=("$a_1$", "$b$"), worker=lambda j: f"$x^{j}$" if j else "z" * 50 + "end")
    axes = plot_confusions(fit)
    axes[0].figure.canvas.draw()
    assert axes[0].get_title().startswith("$x^1$: 2 annotations")
    assert not axes[0].title.get_parse_math()
    name, _, rest = axes[1].get_title().partition("\n")
    assert name.endswith("end")
    assert len(name) == 24
    assert rest.startswith("1 annotation\n")


def test_unknown_workers_are_refused_with_the_nearest_name(em, crowd_fit):
    with pytest.raises(cp.UnknownNameError, match=r"unknown worker '1'.*there is 1, of type int"):
        plot_confusions(em, workers=["1"])
    with pytest.raises(cp.UnknownNameError, match=r"unknown worker 'worker 77'; did you mean 'worker 7'\?.* 50 in all"):
        plot_confusions(crowd_fit(50), workers=["worker 77"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": []}, "selects no worker"),
        ({"max_workers": 0}, "max_workers=0"),
        ({"interval": 1.5}, "interval=1.5"),
    ],
)
def test_an_empty_selection_and_a_wrong_interval_are_refused(svi, options, said):
    with pytest.raises(ValueError, match=said):
        plot_confusions(svi, **options)


def test_fewer_axes_than_workers_are_refused(em):
    _, grid = plt.subplots(1, 2)
    with pytest.raises(ValueError, match="the 3 workers need one each"):
        plot_confusions(em, workers=[1, 2, 3], axes=grid)


def test_unnamed_workers_are_refused(unnamed):
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        plot_confusions(unnamed)


def test_a_name_stands_alone_above_its_matrix_and_a_number_is_said_to_be_a_worker():
    names = ["qwen", "7", "gpt-4o-mini-2024-07-18"]
    rows = [(task, name, "xy"[task % 2]) for task in range(4) for name in names]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    fit = cp.fit("one_coin", cp.Annotations.from_frame(frame), progress=False)
    first = [ax.get_title().split("\n")[0] for ax in plot_confusions(fit, workers=names)]
    assert first == ["qwen: 4 annotations", "worker 7: 4 annotations", "gpt-4o-mini-2024-07-18"]


def test_a_worker_who_was_left_out_has_what_the_prior_says():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    rows = [(t, w, truth[t] if rng.random() < 0.8 else int(rng.integers(3))) for t in range(60) for w in "abcd"]
    rows += [(t, "same", 1) for t in range(60)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(frame, ordered=False), progress=False)
    (ax,) = plot_confusions(fit, workers="same")
    assert ax.get_title() == "same: 60 annotations\nleft out: what the prior says"
    assert "its annotations are left out" in fit.workers.loc["same", "reason"]
    assert plot_confusions(fit, workers="a")[0].get_title().startswith("a: 60 annotations\naccuracy ")


@pytest.mark.parametrize(("n_classes", "n_shown"), [(5, 12), (7, 6), (12, 8)])
def test_matrices_of_many_classes_are_two_rows_whose_intervals_stand_in_their_cells(crowd_fit, n_classes, n_shown):
    axes = plot_confusions(crowd_fit(12, [f"c{k}" for k in range(n_classes)]))
    assert len(axes) == n_shown
    figure = axes[0].figure
    figure.canvas.draw()
    width, height = figure.get_size_inches()
    assert height < width
    side = axes[0].get_window_extent().width / n_classes
    assert all(text.get_window_extent().width < side for text in axes[0].texts)
    assert bool(axes[0].texts) == (n_classes <= 10)


@pytest.mark.parametrize("name", ["محمد", "ד״ר לוי"])
def test_a_name_from_right_to_left_has_a_line_of_its_own_beside_which_no_number_is_turned(crowd_fit, name):
    axes = plot_confusions(crowd_fit(2, worker=lambda j: name if j else "b"))
    lines = {ax.get_title().split("\n")[0].partition(":")[0]: ax.get_title().split("\n") for ax in axes}
    assert lines[name][:2] == [name, "2 annotations"]
    assert lines["b"][0].startswith("b: 1 annotation")


def test_rows_that_no_annotated_task_tells_are_hatched_and_the_legend_says_so():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    rows = [(i, w, "xy"[truth[i] ^ (rng.random() < 0.1)]) for i in range(80) for w in "abcd"]
    rows += [(i, "e", "x") for i in np.flatnonzero(truth == 0)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    classes = ["x", "y", "z"]  # of the last there is no task
    fit = cp.fit(
        "dawid_skene", cp.Annotations.from_frame(frame, classes=classes), constant_workers="keep", progress=False
    )
    assert fit.probabilities["z"].sum() < 0.5
    axes = plot_confusions(fit, workers=["a", "e"])
    hatched = [[round(one.get_y() + 0.5) for one in ax.patches if one.get_hatch()] for ax in axes]
    assert hatched == [[2], [1, 2]]
    legend = [ax.get_ylabel() for ax in axes[0].figure.axes if "P(annotation" in ax.get_ylabel()]
    assert "hatched: hardly any task tells this row" in legend[0]
    _, given = plt.subplots(1, 2)
    plot_confusions(fit, workers=["a", "e"], axes=given)
    assert all(ax.get_xlabel() == "hatched: hardly any task tells this row" for ax in given)
    best = plot_confusions(fit, by="accuracy")
    assert all([round(one.get_y() + 0.5) for one in ax.patches if one.get_hatch()][-1] == 2 for ax in best)
    told = cp.fit("dawid_skene", cp.Annotations.from_frame(frame), constant_workers="keep", progress=False)
    axes = plot_confusions(told, workers=["a"])
    assert not any(one.get_hatch() for one in axes[0].patches)
    assert not any("hatched" in ax.get_ylabel() for ax in axes[0].figure.axes)


def test_no_text_is_cut_where_one_matrix_is_drawn(binary):
    (ax,) = plot_confusions(binary, max_workers=1)
    figure = ax.figure
    figure.draw_without_rendering()
    bar = next(other for other in figure.axes if other is not ax)
    for text in (*figure.texts, bar.yaxis.label):
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
