"""A comparison is drawn as its table says, and unit by unit as the scores say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from crowdppl.inference.comparison.comparing import table
from crowdppl.inference.comparison.elpd import Elpd
from crowdppl.inference.plots.compared_stories import plot_comparison, plot_differences, plot_pareto_k


def elpd(story="first", seed=0, n=30, units=None, by="task", k=None):
    values = -np.random.default_rng(seed).exponential(1.0, n)
    units = pd.Index([f"t{i}" for i in range(n)], name="task") if units is None else units
    return Elpd(story, "kfold" if k is None else "loo", by, units, values, k, 0.7, None)


def minus(text):
    return text.replace("-", "\N{MINUS SIGN}")


@pytest.fixture
def compared():
    ks = np.linspace(-0.2, 1, 30)
    return table({"a": elpd(seed=0, k=ks), "b": elpd(seed=1, k=ks - 0.4), "c": elpd(seed=2, k=ks)})


def test_each_story_has_its_difference_with_one_and_two_standard_errors(compared):
    ax = plot_comparison(compared)
    two, one, dots = ax.collections
    difference, error = compared["difference"].to_numpy(), compared["difference_se"].to_numpy()
    np.testing.assert_allclose(dots.get_offsets()[:, 0], difference)
    for lines, width in ((one, 1), (two, 2)):
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, np.column_stack([difference - width * error, difference + width * error]))
    assert [label.get_text() for label in ax.get_yticklabels()] == list(compared.index)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best is at the top


def test_the_title_tells_a_lead_only_of_two_standard_errors(compared):
    best, second = compared.index[:2]

    def title_of(difference, error):
        changed = compared.assign(difference=[0.0, difference, -9.0], difference_se=[0.0, error, 1.0])
        return plot_comparison(changed).get_title(loc="left")

    assert title_of(-0.7, 3.7) == f"{best} and {second} cannot be told apart: 0.7 ± 3.7"
    assert title_of(-7.5, 3.7) == f"{best} predicts best, ahead of {second} by 7.5 ± 3.7"
    assert title_of(0.0, 0.0) == f"{best} and {second} cannot be told apart: 0.0 ± 0.0"


def test_weights_are_bars_and_units_with_a_high_k_are_counted_where_there_are_any(compared):
    ax = plot_comparison(compared)
    beside = ax.child_axes[0]
    np.testing.assert_allclose([bar.get_width() / 0.3 for bar in beside.patches], compared["weight"])
    texts = [text.get_text() for text in beside.texts]
    assert {minus(f"{value:,.1f}") for value in compared["elpd"]} <= set(texts)
    assert {str(n) for n in compared["n_high_k"]} <= set(texts)
    assert "high k" in texts
    by_folds = compared.assign(n_high_k=pd.array([pd.NA] * 3, "Int64"), pareto_k=np.nan)
    assert "high k" not in [text.get_text() for text in plot_comparison(by_folds).child_axes[0].texts]


def test_what_is_beside_the_rows_is_inside_the_figure(compared):
    ax = plot_comparison(compared)
    ax.figure.draw_without_rendering()
    box = ax.child_axes[0].get_tightbbox()
    assert box.x1 <= ax.figure.bbox.x1 + 1
    assert box.x0 > ax.get_window_extent().x1


def test_comparisons_of_nothing_and_other_frames_are_refused(compared):
    with pytest.raises(ValueError, match="the comparison has no story"):
        plot_comparison(compared.head(0))
    with pytest.raises(ValueError, match="lacks the column 'weight'"):
        plot_comparison(compared.drop(columns="weight"))
    assert plot_comparison(compared.head(1)).get_title(loc="left") == compared.index[0]


def test_differences_are_ranked_and_summed_with_the_error_of_the_comparison():
    first, second = elpd(seed=0), elpd("second", seed=1)
    ax = plot_differences(first, second)
    values = np.sort(first.values - second.values)[::-1]
    drawn = np.where(np.isnan(ax.lines[0].get_ydata()), ax.lines[1].get_ydata(), ax.lines[0].get_ydata())
    np.testing.assert_allclose(drawn, values)
    frame = table({"first": first, "second": second})
    error = frame["difference_se"].iloc[1]
    expected = f"elpd of first less that of second: {minus(f'{values.sum():+,.1f}')} ± {error:,.1f}\n30 tasks"
    assert ax.get_title() == expected
    share = (values > 0).mean()
    assert ax.get_legend().get_texts()[0].get_text() == f"first predicts better: {share:.0%} of the tasks"
    far = (first.values - second.values).argsort()
    named = {text.get_text() for text in ax.texts}
    assert f"t{far[-1]}" in named
    assert f"t{far[0]}" in named


def test_units_are_matched_by_name_and_annotations_are_named_by_task_and_worker():
    first = elpd(seed=0)
    order = np.random.default_rng(5).permutation(30)
    shuffled = Elpd("shuffled", "kfold", "task", first.units[order], first.values[order])
    ax = plot_differences(first, shuffled)
    assert ax.get_title() == "elpd of first less that of shuffled: +0.0 ± 0.0\n30 tasks"
    rows = pd.MultiIndex.from_arrays([range(30), list("uv") * 15, [0, 1] * 15], names=["task", "worker", "label"])
    one, other = (elpd(seed=i, units=rows, by="annotation") for i in (0, 1))
    named = {text.get_text() for text in plot_differences(one, other, names=("x", "y")).texts}
    largest = int((one.values - other.values).argmax())
    assert f"{largest} by {'uv'[largest % 2]}" in named


def test_scores_of_other_units_are_refused():
    first = elpd()
    others = pd.Index([f"t{i}" for i in range(29)] + ["new"], name="task")
    with pytest.raises(ValueError, match=r"not the same; '(new|t29)'"):
        plot_differences(first, elpd(units=others))
    with pytest.raises(ValueError, match="by='task' and by='annotation'"):
        plot_differences(first, elpd(by="annotation"))


def test_pareto_k_is_ranked_and_high_ones_are_diamonds():
    k = np.random.default_rng(0).uniform(0, 1, 30)
    ax = plot_pareto_k(elpd(k=k))
    below, above = (c.get_offsets() for c in ax.collections[:2])
    np.testing.assert_allclose(np.sort(above[:, 1])[::-1], np.sort(k[k > 0.7])[::-1])
    np.testing.assert_allclose(np.concatenate([above, below])[:, 1], np.sort(k)[::-1])
    np.testing.assert_array_equal(np.concatenate([above, below])[:, 0], np.arange(1, 31))
    assert ax.get_title() == f"first: {(k > 0.7).sum()} of 30 tasks have a high Pareto k"
    assert f"t{k.argmax()}" in {text.get_text() for text in ax.texts}


def test_units_without_weights_are_counted_and_a_score_without_any_is_refused():
    k = np.r_[np.full(10, -np.inf), np.linspace(0, 0.5, 20)]
    figure, ax = plt.subplots()
    assert plot_pareto_k(elpd(k=k), ax) is ax
    assert sum(len(c.get_offsets()) for c in ax.collections[:2]) == 20
    assert "10 have equal weights and no k" in ax.get_xlabel()
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match="method='kfold' uses no importance weights"):
        plot_pareto_k(elpd())
