"""ROC curves and reliability are those of the gold tasks whose labels the fit was not given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from made_fits import changed
from sklearn import metrics

import crowdppl as cp
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.plots.reliability_and_roc import plot_reliability, plot_roc
from crowdppl.inference.scores.calibration import reliability

GOLD = {"a": 0, "b": 1, "c": 1, "d": 0, "e": 2, "f": 2}


@pytest.fixture
def three():
    """Probabilities of three classes of six tasks."""
    values = [
        [0.75, 0.15, 0.1],
        [0.05, 0.85, 0.1],
        [0.55, 0.35, 0.1],
        [0.65, 0.25, 0.1],
        [0.05, 0.3, 0.65],
        [0.2, 0.55, 0.25],
    ]
    return pd.DataFrame(values, index=list("abcdef"), columns=[0, 1, 2])


def test_the_curve_and_its_area_are_those_of_the_second_class(binary):
    ax = plot_roc(binary)
    false, true = ax.lines[1].get_data()
    gold, p = binary.annotations.gold, binary.probabilities[1]
    expected = metrics.roc_curve(gold, p)
    np.testing.assert_allclose(false, expected[0])
    np.testing.assert_allclose(true, expected[1])
    assert ax.get_legend().get_texts()[1].get_text() == f"dawid_skene: {metrics.roc_auc_score(gold, p):.3f}"
    assert ax.get_title() == "ROC curve of class 1: 120 gold tasks"


def test_several_sources_have_a_curve_each_that_lines_and_colours_tell_apart(binary):
    flipped = binary.probabilities.iloc[:, ::-1].set_axis([0, 1], axis=1)
    gold = dict(enumerate(binary.annotations.gold.tolist()))
    ax = plot_roc({"fit": binary, "its mirror": flipped}, gold)
    curves = ax.lines[1:]
    assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == 2
    areas = [float(text.get_text().partition(": ")[2]) for text in ax.get_legend().get_texts()[1:]]
    assert sum(areas) == pytest.approx(1, abs=0.0011)


def test_of_several_classes_one_is_set_against_the_rest(three):
    ax = plot_roc(three, GOLD, positive=1)
    assert metrics.auc(*ax.lines[1].get_data()) == metrics.roc_auc_score([0, 1, 1, 0, 0, 0], three[1])
    with pytest.raises(ValueError, match="there are 3 classes"):
        plot_roc(three, GOLD)


def test_sources_with_other_gold_tasks_say_how_many_they_have(three):
    two = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], index=["a", "b"], columns=[0, 1])
    gold = {"a": 0, "b": 1}
    ax = plot_roc({"both": two, "one more": pd.concat([two, two.rename(index={"a": "x", "b": "y"})])}, gold)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "chance: 0.500",
        "both: 1.000",
        "one more: 1.000",
    ]
    other = plot_roc({"three": three, "four": three.drop(index=["e", "f"])}, {k: GOLD[k] for k in "abcd"}, positive=1)
    assert "4 gold tasks" in other.get_title()


def test_gold_tasks_whose_labels_the_fit_was_given_are_counted_apart(binary):
    given = with_evidence(binary.annotations, {task: int(binary.annotations.gold[task]) for task in range(50)})
    fit = changed(binary, source=given)
    assert plot_roc(fit).get_title().endswith("70 gold tasks; the fit was given 50 more")
    assert plot_reliability(fit).get_title().endswith("70 gold tasks; the fit was given 50 more")


def test_a_picture_without_gold_or_sources_is_refused(em, three):
    with pytest.raises(ValueError, match=r"0 sources: 1 to 28 curves"):
        plot_roc({})
    for plot in (plot_roc, plot_reliability):
        with pytest.raises(cp.AnnotationError, match="carry no gold labels; give gold="):
            plot(em)
        with pytest.raises(TypeError, match="got a list"):
            plot([0.3])
    with pytest.raises(ValueError, match=r"no gold task .*1"):
        plot_roc(three, {"a": 0, "d": 0}, positive=1)


def test_dots_are_the_bins_shares_of_right_labels_at_their_mean_probability(binary):
    ax = plot_reliability(binary, bins=5, interval=0.8)
    table = reliability(binary, None, 5, interval=0.8)
    some = table[table["tasks"] > 0]
    dots = ax.collections[1].get_offsets()
    np.testing.assert_allclose(dots, some[["probability", "accuracy"]])
    ends = [segment[:, 1] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(ends, some[["accuracy_low", "accuracy_high"]])
    below = ax.child_axes[0]
    assert [bar.get_height() for bar in below.patches] == some["tasks"].tolist()
    assert [text.get_text() for text in below.texts] == [f"{n:,}" for n in some["tasks"]]


def test_the_calibration_error_is_in_the_title(three):
    """Four of six labels are right: of those of 0.55, 0.65, 0.75 and 0.85 none of 2, 2 of 2, 1 and 1."""
    expected = (2 * 0.55 + 2 * 0.35 + 0.25 + 0.15) / 6
    assert f"calibration error {expected:.3f}" in plot_reliability(three, GOLD).get_title()


def test_the_numbers_of_tasks_do_not_lie_on_the_axes_above(binary):
    figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
    assert plot_reliability(binary, ax=ax) is ax
    figure.draw_without_rendering()
    below = ax.child_axes[0]
    assert below.get_window_extent().y1 < ax.get_window_extent().y0
    assert below.get_tightbbox().y0 >= -1
    assert below.get_window_extent().height == pytest.approx(0.75 * figure.dpi)


def test_the_curve_of_an_average_is_named_so_and_not_after_its_stories(binary):
    stack = cp.stack({"two_coin": binary}, weights={"two_coin": 1.0}, votes=0.5)
    assert plot_roc(stack).get_legend().get_texts()[1].get_text().startswith("average: ")
