"""Plots and tables of ordered classes: in their order, with what lies more than one class apart told from the rest."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.plots.confusion_matrices import plot_confusions
from crowdppl.inference.plots.ranking import plot_expected
from crowdppl.inference.report import sections
from crowdppl.inference.report.label_sections import given_in_words
from crowdppl.inference.report.sections import csv_text

GRADES = ["low", "mid", "high"]


def rows(n_tasks=6):
    return pd.DataFrame(
        [(f"t{i}", f"w{j}", GRADES[min(2, (i + (j == 2)) % 4)]) for i in range(n_tasks) for j in range(4)],
        columns=["task", "worker", "label"],
    )


@pytest.fixture(scope="module")
def ordered():
    return cp.fit("one_coin", cp.Annotations.from_frame(rows(), ordered=GRADES), progress=False)


@pytest.fixture(scope="module")
def nominal():
    return cp.fit("one_coin", cp.Annotations.from_frame(rows(), classes=GRADES), progress=False)


def test_expected_scores_stand_by_task_with_their_intervals_and_the_names_of_the_classes(ordered):
    ax = plot_expected(ordered, interval=0.5)
    expected = ordered.expected_scores(0.5).sort_values("expected", kind="stable")
    assert ax.collections[-1].get_offsets()[:, 0].tolist() == pytest.approx(expected["expected"].tolist())
    ends = np.array([line[:, 0] for line in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ends, expected[["expected_low", "expected_high"]])
    assert [text.get_text() for text in ax.get_yticklabels()] == expected.index.tolist()
    assert [text.get_text() for text in ax.get_xticklabels()] == GRADES
    assert "50%" in ax.get_title()


def test_many_expected_scores_are_drawn_by_rank(ordered):
    many = cp.fit("naive_soft", cp.Annotations.from_frame(rows(50), ordered=GRADES))
    ax = plot_expected(many, ax=plt.subplots()[1])
    assert ax.lines[0].get_ydata().tolist() == pytest.approx(many.expected["expected"].sort_values().tolist()[::-1])
    assert [text.get_text() for text in ax.get_yticklabels()] == GRADES


def test_classes_without_an_order_have_no_expected_scores(nominal):
    with pytest.raises(cp.AnnotationError, match=r"'low'.*no order.*ordered="):
        plot_expected(nominal)


def test_a_line_parts_errors_by_one_class_from_larger_ones_and_the_title_has_the_error(ordered, nominal):
    ax = plot_confusions(ordered, workers="w0")[0]
    around = {tuple(zip(*map(tuple, line.get_data()), strict=True)) for line in ax.lines}
    corners = {((1.5, -0.5), (1.5, 0.5)), ((1.5, 0.5), (2.5, 0.5)), ((0.5, 1.5), (0.5, 2.5)), ((-0.5, 1.5), (0.5, 1.5))}
    assert around == corners
    score = ordered.workers.loc["w0"]
    assert f"off by {score['mean_absolute_error']:.2f}, bias {score['bias']:+.2f}".replace("-", "−") in ax.get_title()
    ax = plot_confusions(nominal, workers="w0")[0]
    assert not ax.lines
    assert "bias" not in ax.get_title()


def test_annotations_in_words_are_in_the_order_of_the_classes_and_of_nominal_ones_by_number(ordered, nominal):
    at = np.array([2])  # high three times, and high
    frame = pd.DataFrame({"task": "t", "worker": list("abcde"), "label": ["high", "high", "mid", "low", "mid"]})
    for options, said in (({"ordered": GRADES}, "low, mid ×2, high ×2"), ({"classes": GRADES}, "mid ×2, high ×2, low")):
        annotations = cp.Annotations.from_frame(frame, **options)
        assert given_in_words(annotations, np.array([0])) == [said]
    assert given_in_words(ordered.annotations, at) == ["high ×4"]


def test_the_report_of_ordered_classes_draws_the_expected_scores_and_has_them_to_download(
    ordered, nominal, tmp_path, monkeypatch
):
    written = []
    monkeypatch.setattr(sections, "csv_text", lambda table, most: written.append(list(table)) or csv_text(table, most))
    for fit, has in ((ordered, True), (nominal, False)):
        written.clear()
        fit.report(tmp_path / f"{has}.html")
        assert ("Expected scores of the tasks" in (tmp_path / f"{has}.html").read_text()) == has
        assert any({"expected", "expected_low", "expected_high", "median"} <= set(names) for names in written) == has
