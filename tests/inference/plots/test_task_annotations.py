"""Histograms count every task and every worker."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.plots.task_annotations import plot_annotations, plot_entropy


def heights(ax):
    return np.array([bar.get_height() for bar in ax.patches])


def test_bars_count_the_tasks_and_the_workers_by_their_annotations():
    rows = [(0, "u", 0), (0, "v", 1), (0, "w", 1), (1, "u", 1), (1, "v", 1), (2, "u", 0)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    tasks, workers = plot_annotations(cp.Annotations.from_frame(frame, tasks=range(4)))
    assert {bar.get_x() + 0.5: bar.get_height() for bar in tasks.patches} == {0: 1, 1: 1, 2: 1, 3: 1}
    assert tasks.get_title() == "4 tasks: median 1.5 (line), 0 to 3"
    assert heights(workers).tolist() == [1, 1, 1]
    assert workers.get_title() == "3 workers: median 2 (line), 1 to 3"


def test_a_worker_is_one_whatever_the_questions():
    rows = [(task, worker, question, "yes") for task in range(3) for worker in "uv" for question in ("x", "y")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    data = cp.Annotations.from_frame(frame, question="question", classes=["no", "yes"])
    _, workers = plot_annotations(data.by_question())
    assert workers.get_title() == "2 workers: 6 annotations each"


def test_a_fit_shows_its_annotations_and_repeated_annotations_count(em):
    data = cp.load_dataset("anesthesia")
    tasks, workers = plot_annotations(em)
    assert heights(tasks).sum() == data.n_tasks
    assert tasks.get_title() == "45 tasks: 7 annotations each"
    assert heights(workers).sum() == 5
    assert workers.get_title() == "5 workers: median 45 (line), 45 to 135"


def test_unnamed_workers_have_no_picture_and_counts_count():
    (tasks,) = plot_annotations(cp.Annotations.from_counts([[3, 2], [0, 1], [4, 1]]))
    found = {bar.get_x() + 0.5: bar.get_height() for bar in tasks.patches if bar.get_height()}
    assert found == {1: 1, 5: 2}


def test_a_heavy_tail_is_drawn_on_a_logarithmic_scale_that_says_how_many_have_none():
    (ax,) = plot_annotations(cp.Annotations.from_counts([[1, 1]] * 50 + [[900, 100]]))
    assert ax.get_xscale() == "log"
    assert heights(ax).sum() == 51
    last = ax.patches[-1]
    assert last.get_x() <= 1000 < last.get_x() + last.get_width()
    sparse = pd.DataFrame({"task": [0] * 1000 + [1, 2, 3], "worker": range(1003), "label": [0, 1] * 501 + [0]})
    (tasks, _) = plot_annotations(cp.Annotations.from_frame(sparse, tasks=range(12)))
    assert tasks.get_xscale() == "log"
    assert heights(tasks).sum() == 4
    assert "8 tasks without annotations not shown" in tasks.get_xlabel()
    assert tasks.get_xlabel().startswith("annotations per task (log scale)")
    assert "log" not in plot_annotations(cp.Annotations.from_counts([[1, 1]] * 5))[0].get_xlabel()


def test_ticks_of_a_logarithmic_scale_do_not_lie_on_each_other():
    frame = pd.DataFrame({"task": range(20_000), "worker": 0, "label": 0})
    others = pd.DataFrame({"task": range(60), "worker": np.arange(60) % 30 + 1, "label": 1})
    _, ax = plot_annotations(cp.Annotations.from_frame(pd.concat([frame, others])))
    assert ax.get_xscale() == "log"
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    at = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    boxes = [text.get_window_extent() for tick, text in at if low <= tick <= high and text.get_text()]
    assert len(boxes) > 2
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


def test_entropy_counts_all_tasks_and_those_below_probability_0_9(em, binary):
    for fit in (em, binary):
        ax = plot_entropy(fit, bins=7)
        sure, others = heights(ax)[:7], heights(ax)[7:]
        unsure = (fit.labels["probability"] < 0.9).sum()
        assert others.sum() == unsure
        assert sure.sum() == len(fit.labels) - unsure
        edges = np.linspace(0, np.log(fit.annotations.n_classes), 8)
        np.testing.assert_array_equal(sure + others, np.histogram(fit.labels["entropy"], edges)[0])
        assert (
            ax.get_title()
            == f"{unsure} of {len(fit.labels)} labels {'has' if unsure == 1 else 'have'} probability < 0.9"
        )


def test_given_axes_are_used_and_too_few_or_nothing_to_draw_is_refused(em):
    figure, grid = plt.subplots(1, 3)
    assert list(plot_annotations(em, axes=grid)) == list(grid[:2])
    assert plot_entropy(em, ax=grid[2]) is grid[2]
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match="axes=1 axes"):
        plot_annotations(em, axes=grid[0])
    with pytest.raises(ValueError, match="bins=0"):
        plot_entropy(em, bins=0)
    with pytest.raises(cp.AnnotationError, match="no annotations to draw"):
        plot_annotations(em.annotations.replace(task=np.zeros(0, int), label=np.zeros(0, int), worker=np.zeros(0, int)))


@pytest.mark.data
@pytest.mark.parametrize("name", ["anesthesia", "cifar10h", "music", "rte", "trec"])
def test_bars_count_all_tasks_and_workers_of_real_crowds(real, name):
    data = real(name)
    drawn = plot_annotations(data)
    expected = [data.n_tasks] + [data.n_workers] * data.named
    assert [heights(ax).sum() for ax in drawn] == expected
