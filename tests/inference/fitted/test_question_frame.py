"""What a fit says by question, in Python, in the summary and on the page."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rubrics import CLASSES, rubric

import crowdppl as cp

TABLE, TRUTH = rubric(30)


@pytest.fixture(scope="module")
def fit() -> cp.Fit:
    orders = {"safe": False, "helpful": True, "topic": False}
    own = cp.Annotations.from_frame(TABLE, question="question", classes=CLASSES, ordered=orders)
    return cp.fit("one_coin", own, progress=False)


def test_each_question_has_the_figures_of_its_own_rows(fit):
    found = fit.questions
    assert list(found.index) == list(CLASSES)
    assert found["tasks"].tolist() == [30] * 3
    assert found["annotations"].tolist() == [120] * 3
    labels = fit.labels
    for name, row in found.iterrows():
        own = labels.xs(name, level="question")
        assert row["expected_accuracy"] == pytest.approx(own["probability"].mean())
        assert row["doubtful"] == (own["probability"] < 0.9).sum()
        assert row["alpha"] == pytest.approx(fit.annotations.of_question(name).krippendorff_alpha())
    assert found.loc["helpful", "classes"] == "1 < 2 < 3 < 4 < 5"
    assert found.loc["safe", "classes"] == "no, yes"


def test_mean_scores_add_up_to_the_mean_total_and_names_are_not_counted(fit):
    assert np.isnan(fit.questions.loc["topic", "mean_score"])
    assert fit.questions["mean_score"].sum() == pytest.approx(fit.totals["total"].mean())


def test_expected_accuracy_is_near_the_share_of_right_labels(fit):
    right = pd.Series({unit: label == TRUTH[unit] for unit, label in fit.labels["label"].items()})
    by_question = right.groupby(level=1).mean()
    # Of 30 labels, 27 of them right, the share has a standard error of .055; expectation and share are within three.
    assert (fit.questions["expected_accuracy"] - by_question).abs().max() < 0.165


def test_summary_has_the_same_table_and_the_classes_of_each_question(fit):
    tables = fit.summary().tables
    pd.testing.assert_frame_equal(tables["questions"], fit.questions)
    classes = tables["classes"]
    assert classes.index.tolist() == [(name, each) for name, own in CLASSES.items() for each in own]
    assert classes.groupby(level=0)[["mean_probability", "prevalence"]].sum().to_numpy() == pytest.approx(1)
    assert (classes["low"] <= classes["prevalence"]).all()
    assert (classes["prevalence"] <= classes["high"]).all()
    assert "2 to 5 classes a question" in fit.summary().facts["data"]
    assert "NaN" not in f"{fit.summary()}{fit.summary()._repr_html_()}"  # of topic, which has no mean score


def test_summary_of_very_many_questions_shows_the_most_doubtful_and_says_of_how_many():
    rng = np.random.default_rng(0)
    rows = [(f"t{i}", f"w{j}", f"q{q:02}", rng.integers(2)) for i in range(6) for j in range(3) for q in range(50)]
    many = cp.Annotations.from_frame(
        pd.DataFrame(rows, columns=["task", "worker", "question", "label"]), question="question"
    )
    fit = cp.fit("naive_soft", many)
    tables = fit.summary().tables
    most = tables["the 30 of 50 questions with the most doubtful labels"]
    assert len(most) == 30
    assert most["doubtful"].min() >= fit.questions["doubtful"].drop(most.index).max()
    assert len(tables["classes of the first 20 of 50 questions"]) == 40


def test_page_has_the_table_of_questions_their_classes_and_totals(fit, tmp_path):
    page = fit.report(tmp_path / "page.html", checks=False, progress=False).read_text()
    section = page[page.index('id="questions"') : page.index('id="labels"')]
    for text in ("By question", "1 &lt; 2 &lt; 3 &lt; 4 &lt; 5", "Totals of the tasks", "helpful: expected scores"):
        assert text in section
    assert f"{fit.questions.loc['helpful', 'alpha']:.3f}" in section
    assert "1.61" in page  # the entropy of five classes, the most that a question has


def test_one_question_has_no_table_of_questions():
    one = cp.fit("naive_soft", cp.Annotations.from_frame(TABLE[TABLE["question"] == "safe"].drop(columns="question")))
    with pytest.raises(cp.AnnotationError, match=r"one question.*question="):
        _ = one.questions
    assert list(one.summary().tables)[:1] == ["classes"]


def test_expected_scores_are_drawn_by_ordered_question(fit):
    drawn = cp.plot_expected(fit)
    assert len(drawn) == 1
    assert drawn[0].get_title().startswith("helpful: expected scores of 30 tasks")
    shown = drawn[0].collections[-1].get_offsets()[:, 0]
    assert shown.tolist() == pytest.approx(sorted(fit.expected["expected"]))
    assert [text.get_text() for text in drawn[0].get_xticklabels()] == ["1", "2", "3", "4", "5"]
    same = cp.plot_expected(fit, ax=plt.subplots()[1])
    assert same.shape == (1,)
    plt.close("all")
