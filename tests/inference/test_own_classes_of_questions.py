"""Fits of questions with classes of their own, by every engine, and what is seen of them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rubrics import CLASSES, rubric

import crowdppl as cp
from crowdppl.inference.fitted import question_frame

TABLE, TRUTH = rubric(30)
ORDERS = {"safe": False, "helpful": True, "topic": False}


@pytest.fixture(scope="module")
def annotations() -> cp.Annotations:
    return cp.Annotations.from_frame(TABLE, question="question", classes=CLASSES, ordered=ORDERS)


@pytest.fixture(scope="module")
def fit(annotations) -> cp.Fit:
    return cp.fit("one_coin", annotations, progress=False)


def nothing_else(fit) -> bool:
    own = fit.annotations.kind.own[fit.annotations.question]
    return not fit.probabilities.to_numpy()[~own].any()


def test_labels_are_of_the_question_s_classes_and_mostly_right(fit):
    assert nothing_else(fit)
    for (_, question), label in fit.labels["label"].items():
        assert label in CLASSES[question]
    assert cp.score(fit, TRUTH)["accuracy"] > 0.8
    prevalence = fit.parameters["prevalence"].to_pandas()
    assert prevalence.sum(1).to_numpy() == pytest.approx(1)
    assert not prevalence.loc["safe", ["sports", "1"]].any()


def test_expected_scores_are_those_of_ordered_questions_by_their_classes(fit):
    assert set(fit.expected.index.get_level_values("question")) == {"helpful"}
    of_helpful = fit.probabilities.xs("helpful", level="question")[CLASSES["helpful"]]
    np.testing.assert_allclose(fit.expected["expected"], of_helpful @ np.arange(1, 6), rtol=1e-6)


def test_totals_are_scores_and_ones_of_two_classes_and_count_no_names(fit):
    p = fit.probabilities
    yes, scores = p.xs("safe", level="question")["yes"], fit.expected["expected"].droplevel("question")
    np.testing.assert_allclose(fit.totals["total"], yes + scores, rtol=1e-5)
    assert (fit.totals["questions"] == 2).all()
    assert (fit.totals["total_low"] <= fit.totals["total"]).all()
    truth = pd.Series({task: TRUTH[task, "helpful"] + (TRUTH[task, "safe"] == "yes") for task in fit.totals.index})
    assert truth.between(fit.totals["total_low"], fit.totals["total_high"]).mean() > 0.8


@pytest.mark.parametrize("interval", [0.01, 0.9, 0.99])
def test_ends_of_a_total_are_totals_that_a_task_may_have_and_hold_the_mean(fit, interval):
    found = fit.rubric_totals(interval=interval)
    ends = found[["total_low", "total_high"]].to_numpy()
    assert set(ends.ravel()) <= set(range(1, 7))  # from one to five of helpful, and one of a safe answer
    assert ((ends[:, 0] <= found["total"]) & (found["total"] <= ends[:, 1])).all()
    if interval == 0.01:  # of one total, and the next one where the mean is between the two
        assert set(ends[:, 1] - ends[:, 0]) <= {0, 1}


@pytest.mark.parametrize("rule", ["majority_vote", "naive_soft", "wawa", "one_coin"])
@pytest.mark.filterwarnings("ignore")
def test_a_task_without_annotations_may_be_of_its_questions_classes_alone(rule):
    tasks = [f"t{i}" for i in range(30)] + ["new"]
    asked = cp.Annotations.from_frame(TABLE, question="question", classes=CLASSES, tasks=tasks)
    found = cp.fit(rule, asked, progress=False)
    assert nothing_else(found)
    assert found.probabilities.loc[("new", "safe"), "yes"] == pytest.approx(0.5, abs=0.2)


def test_names_alone_have_no_totals_and_no_mean():
    table = TABLE[TABLE["question"] == "topic"]
    both = pd.concat([table, table.assign(question="tone", label=table["label"].str.upper())])
    named = cp.Annotations.from_frame(both, question="question", classes={"topic": CLASSES["topic"]})
    votes = cp.fit("majority_vote", named, progress=False)
    for view in ("totals", "expected"):
        with pytest.raises(cp.AnnotationError, match="no order"):
            getattr(votes, view)


def test_a_saved_fit_comes_back_with_the_kinds_of_its_questions(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.annotations.kind == fit.annotations.kind
    pd.testing.assert_frame_equal(again.totals, fit.totals)
    pd.testing.assert_frame_equal(again.expected, fit.expected)


def test_a_worker_s_accuracy_is_of_the_question_s_classes(annotations, fit):
    """Three in four annotations are right, and a worker's accuracy over 90 of them is within 15 points of that."""
    assert fit.workers["accuracy"].between(0.6, 0.9).all()
    tables = fit.confusion_matrices
    np.testing.assert_allclose(tables.sum(-1), 1, rtol=1e-5)
    of = {k: question for question, classes in enumerate(annotations.kind.of) for k in classes}
    blocks = np.array([[of[k] == of[label] for label in range(10)] for k in range(10)])
    assert not tables[:, ~blocks].any()


@pytest.mark.filterwarnings("ignore")
def test_who_guesses_within_each_question_is_no_worker_who_knows_the_questions(fit):
    table, rng = rubric(60, 6)[0], np.random.default_rng(1)
    guesses = table["worker"] == "w0"
    table.loc[guesses, "label"] = [rng.choice(np.array(CLASSES[q], object)) for q in table["question"][guesses]]
    same = table["worker"] == "w1"
    table.loc[same, "label"] = [CLASSES[q][-1] for q in table["question"][same]]
    asked = cp.Annotations.from_frame(table, question="question", classes=CLASSES, ordered=ORDERS)
    workers = cp.fit("dawid_skene", asked, progress=False).workers
    assert workers["review"].tolist() == [True, True, False, False, False, False]
    assert workers["spammer_score"].iloc[0] < 0.1
    assert np.isnan(workers[["accuracy", "spammer_score"]].iloc[1]).all()  # all of whose annotations are left out
    assert (workers["spammer_score"][2:] > 0.25).all()


def test_scores_by_question_are_those_of_its_classes(fit):
    scores = cp.score(fit, TRUTH, by="question")
    assert scores.index.tolist() == list(CLASSES)
    assert scores["tasks"].tolist() == [30, 30, 30]
    p = fit.probabilities.xs("helpful", level="question")[CLASSES["helpful"]]
    gold = {task: label for (task, question), label in TRUTH.items() if question == "helpful"}
    alone = cp.score(p, gold)
    np.testing.assert_allclose(scores.loc["helpful", ["accuracy", "log_score", "brier"]].astype(float), alone[[
        "accuracy", "log_score", "brier"]], rtol=1e-6)  # fmt: skip
    assert scores["auc"].notna().tolist() == [True, False, False]
    assert scores["mae"].notna().tolist() == [False, True, False]
    np.testing.assert_allclose(np.average(scores["accuracy"]), cp.score(fit, TRUTH)["accuracy"], rtol=1e-6)
    with pytest.raises(cp.UnknownNameError, match="by"):
        cp.score(fit, TRUTH, by="worker")
    with pytest.raises(cp.AnnotationError, match="have one"):
        cp.score(p, gold, by="question")


def test_agreement_is_within_questions_by_their_kinds(annotations):
    found = cp.agreement(annotations, draws=50)
    alone = {name: cp.agreement(annotations.of_question(name), draws=50) for name in CLASSES}
    for name, one in alone.items():
        np.testing.assert_allclose(found.by_group.loc[name], one.table[["estimate", "low", "high"]])
    means = np.mean([one.table["estimate"] for one in alone.values()], axis=0)  # each has 30 tasks
    np.testing.assert_allclose(found.table["estimate"], means)
    np.testing.assert_allclose(annotations.krippendorff_alpha(), found.table.loc["alpha", "estimate"])
    assert annotations.describe()["Krippendorff's alpha"] == annotations.krippendorff_alpha()
    assert found.by_class.index.tolist() == [(name, own) for name, classes in CLASSES.items() for own in classes]
    assert (found.by_worker["tasks"] == 90).all()


@pytest.mark.filterwarnings("ignore")
def test_crowds_who_guess_within_each_question_agree_by_chance(annotations):
    table, rng = rubric(60, 6)[0], np.random.default_rng(0)
    table["label"] = [rng.choice(np.array(CLASSES[q], object)) for q in table["question"]]
    guessed = cp.Annotations.from_frame(table, question="question", classes=CLASSES, ordered=ORDERS)
    codes = [finding.code for finding in cp.fit("one_coin", guessed, progress=False).findings]
    assert "no_agreement" in codes
    assert "no_agreement" not in [finding.code for finding in cp.fit("one_coin", annotations, progress=False).findings]


def test_cells_of_two_questions_are_blank_in_confusion_matrices(fit):
    axes = cp.plot_confusions(fit, workers=["w0"])
    drawn = axes[0].images[0].get_array()
    sizes = [len(classes) for classes in CLASSES.values()]
    assert (~np.ma.getmaskarray(drawn)).sum() == sum(size**2 for size in sizes)
    plt.close("all")


@pytest.mark.long
@pytest.mark.parametrize(
    ("story", "options"),
    [
        ("dawid_skene", {"method": "svi", "max_iterations": 300}),
        ("one_coin", {"method": "nuts", "warmup": 100, "draws": 100, "chains": 2}),
        ("dawid_skene", {"shared_error": True}),
        ("one_coin", {"task_difficulty": True}),
        ("one_coin", {"quality": "pooled"}),
        ("one_coin", {"truth_prior": cp.CorrelatedQuestions(kinds=2)}),
        ("auto", {}),
        ("majority_vote", {}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_every_engine_and_part_keeps_to_the_question_s_classes(annotations, story, options):
    found = cp.fit(story, annotations, progress=False, **options)
    assert nothing_else(found)
    assert cp.score(found, TRUTH)["accuracy"] > 0.75


def test_totals_of_many_fractions_are_looked_up_without_a_list_of_all_sums():
    """Forty questions of two fractions each have a million millions of sums."""
    rng = np.random.default_rng(0)
    found = question_frame._possible([rng.random(2) for _ in range(40)])
    assert len(found) == question_frame.MOST_TOTALS
    assert (np.diff(found) > 0).all()
    np.testing.assert_array_equal(question_frame._possible([np.array([0.0, 1.0, np.nan])] * 3), [0, 1, 2, 3])
