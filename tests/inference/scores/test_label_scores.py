"""Scores of labels against their definitions, scikit-learn's, and brute force."""

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from crowdppl import AnnotationError, Annotations, Fit, UnknownNameError
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.fitted.posterior import equal_weights
from crowdppl.inference.scores.label_scores import label_confusion, roc, score


def table(n, k, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = pd.DataFrame(rng.dirichlet(np.ones(k), n), columns=[f"c{i}" for i in range(k)])
    gold = np.array([rng.choice(k, p=p) for p in probabilities.to_numpy()])
    return probabilities, pd.Series([f"c{g}" for g in gold]), gold


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 60)
    rows = [(i, j, truth[i] if rng.random() < 0.7 else 1 - truth[i]) for i in range(60) for j in rng.permutation(6)[:3]]
    gold = {i: int(truth[i]) for i in rng.permutation(60)[:42]}
    return Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]), gold=gold)


@pytest.fixture(scope="module")
def em(crowd):
    return fit_at("dawid_skene", crowd, random_confusions(crowd))


def fit_with_gold(annotations, gold):
    """A fit that used these gold labels."""
    with_gold = with_evidence(annotations, gold)
    return fit_at("dawid_skene", with_gold, random_confusions(with_gold))


@pytest.mark.parametrize("k", [2, 4])
def test_the_scores_are_scikit_learns(k):
    probabilities, gold, codes = table(200, k)
    found = score(probabilities, gold)
    values = probabilities.to_numpy()
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(codes, values.argmax(1)))
    assert found["log_score"] == pytest.approx(-metrics.log_loss(codes, values))
    assert found["brier"] == pytest.approx(((values - np.eye(k)[codes]) ** 2).sum(1).mean())
    if k == 2:
        assert found["brier"] == pytest.approx(2 * metrics.brier_score_loss(codes, values[:, 1]))
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(codes, values[:, 1]))
    assert ("auc" in found) == (k == 2)
    assert (found["tasks"], found["gold_used"]) == (200, 0)


def test_gold_labels_may_be_those_that_other_annotations_carry(crowd, em):
    plain = fit_at("dawid_skene", crowd.without_gold(), random_confusions(crowd))
    pd.testing.assert_series_equal(score(plain, crowd), score(em))


def test_standard_errors_are_those_of_means():
    probabilities, gold, codes = table(50, 3)
    found, p = score(probabilities, gold), probabilities.to_numpy()[np.arange(50), codes]
    assert found["log_score_se"] == pytest.approx(np.log(p).std(ddof=1) / np.sqrt(50))
    right = probabilities.to_numpy().argmax(1) == codes
    assert found["accuracy_se"] == pytest.approx(right.std(ddof=1) / np.sqrt(50))


def test_the_areas_standard_error_is_delongs_sum_over_all_pairs():
    rng = np.random.default_rng(4)
    positive, value = np.repeat([1, 0], [9, 14]), rng.integers(0, 6, 23) / 6  # with ties
    frame = pd.DataFrame({0: 1 - value, 1: value})
    pairs = np.array([[(a > b) + (a == b) / 2 for b in value[9:]] for a in value[:9]])
    expected = np.sqrt(pairs.mean(1).var(ddof=1) / 9 + pairs.mean(0).var(ddof=1) / 14)
    found = score(frame, dict(enumerate(positive.tolist())))
    assert found["auc"] == pytest.approx(pairs.mean())
    assert found["auc_se"] == pytest.approx(expected)


def test_a_tie_counts_for_its_share():
    frame = pd.DataFrame([[0.5, 0.5, 0.0], [0.4, 0.2, 0.4], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]])
    assert score(frame, {0: 0, 1: 1, 2: 2, 3: 2})["accuracy"] == pytest.approx((1 / 2 + 0 + 1 / 3 + 1) / 4)


def test_a_gold_label_of_probability_zero_costs_a_finite_number_of_nats():
    found = score(pd.DataFrame([[1.0, 0.0], [0.0, 1.0]]), {0: 1, 1: 1})
    assert found["log_score"] == pytest.approx(np.log(np.finfo(np.float32).tiny) / 2)
    assert found["log_score"] == pytest.approx(-87.34 / 2, abs=0.01)


def test_only_gold_tasks_are_scored(em, crowd):
    gold = np.asarray(crowd.gold)
    known = gold >= 0
    found = score(em)
    assert found["tasks"] == known.sum() == 42
    assert found["accuracy"] == pytest.approx((em.posterior.argmax(1) == gold)[known].mean())
    few = {i: int(gold[i]) for i in np.flatnonzero(known)[:5]}
    pd.testing.assert_series_equal(score(em, few), score(em.probabilities, few))


def test_tasks_whose_gold_label_the_fit_used_are_not_scored(crowd):
    some = {i: int(crowd.gold[i]) for i in np.flatnonzero(np.asarray(crowd.gold) >= 0)[:30].tolist()}
    fit = fit_with_gold(crowd, some)
    found = score(fit)
    assert (found["tasks"], found["gold_used"]) == (12, 30)
    rest = np.setdiff1d(np.flatnonzero(np.asarray(crowd.gold) >= 0), list(some))
    right = fit.posterior.argmax(1)[rest] == np.asarray(crowd.gold)[rest]
    assert found["accuracy"] == pytest.approx(right.mean())
    assert label_confusion(fit).to_numpy().sum() == 12
    with pytest.raises(AnnotationError, match="used all of them"):
        score(fit, some)


def test_several_fits_make_a_row_each(em, crowd):
    other = fit_at("dawid_skene", crowd, random_confusions(crowd, seed=1))
    found = score({"one": em, "other": other})
    assert list(found.index) == ["one", "other"]
    assert list(found.columns[:4]) == ["tasks", "gold_used", "accuracy", "accuracy_se"]
    assert found.loc["other", "brier"] == score(other)["brier"] != found.loc["one", "brier"]


def test_a_stack_is_scored_without_the_gold_labels_that_any_of_its_fits_used(em, crowd):
    one = em.fitted.replace(source=crowd.with_gold({0: 1, 1: 0, 2: 1}))
    members = {"one": one, "two": fit_with_gold(crowd, {0: 1}).fitted}
    found = score(Fit(members, equal_weights(members)))
    assert found["gold_used"] == 1
    assert found["tasks"] == 2


@pytest.mark.parametrize(
    ("source", "gold", "error", "message"),
    [
        (pd.DataFrame([[0.5, 0.5]]), None, AnnotationError, "carries no gold labels"),
        (pd.DataFrame([[0.5, 0.4]]), {0: 0}, AnnotationError, "sum to 1"),
        (pd.DataFrame([[0.5, 0.5]]), {7: 0}, AnnotationError, "task 7 is not among"),
        (pd.DataFrame([[0.5, 0.5]]), {0: 5}, AnnotationError, "label 5"),
        (pd.DataFrame([[0.5, 0.5]]), {0: None}, AnnotationError, "all missing"),
        ([[0.5, 0.5]], {0: 0}, TypeError, "frame of probabilities"),
        ({}, None, ValueError, "empty"),
    ],
)
def test_sources_and_gold_labels_that_cannot_be_scored_are_refused(source, gold, error, message):
    with pytest.raises(error, match=message):
        score(source, gold)


def test_label_confusion_counts_gold_by_label():
    probabilities, gold, codes = table(80, 3, seed=2)
    found = label_confusion(probabilities, gold)
    label = probabilities.to_numpy().argmax(1)
    expected = [[int(((codes == k) & (label == j)).sum()) for j in range(3)] for k in range(3)]
    assert found.to_numpy().tolist() == expected
    assert (found.index.name, found.columns.name) == ("gold", "label")
    assert list(found.index) == list(found.columns) == ["c0", "c1", "c2"]


@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_each_point_of_a_roc_curve_counts_the_tasks_over_its_threshold(seed, k):
    probabilities, gold, codes = table(30, k, seed)
    if len(set(codes)) < k:
        return
    curve = roc(probabilities, gold, positive="c1")
    value, positive = probabilities["c1"].to_numpy(), codes == 1
    for row in curve.itertuples():
        taken = value >= row.threshold
        assert row.true_positive_rate == pytest.approx(taken[positive].mean())
        assert row.false_positive_rate == pytest.approx(taken[~positive].mean())
    area = np.trapezoid(curve["true_positive_rate"], curve["false_positive_rate"])
    assert area == pytest.approx(metrics.roc_auc_score(positive, value))


def test_a_roc_curve_needs_a_positive_class_and_both_kinds_of_tasks():
    probabilities, gold, _ = table(30, 3)
    with pytest.raises(ValueError, match="there are 3 classes"):
        roc(probabilities, gold)
    with pytest.raises(UnknownNameError, match=r"unknown class 'x'\. There are: c0, c1, c2"):
        roc(probabilities, gold, positive="x")
    with pytest.raises(ValueError, match="of class 'c0'"):
        roc(probabilities, {0: "c0", 1: "c0"}, positive="c0")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "percent"),
    [("weather_amt", 85.33), ("music", 70.42), ("rte", 89.69), ("bluebird", 75.93), ("dog", 82.22), ("trec", 65.14)],
)
def test_majority_votes_have_the_accuracy_that_others_measured(real, name, percent):
    """crowd-kit 1.4.2's MajorityVote on the first annotations, ties split evenly, to the second decimal."""
    known = real(name)
    first = known.to_frame().drop_duplicates(["task", "worker"])
    votes = Annotations.from_frame(first, classes=known.classes).votes()
    tasks = pd.Index(first["task"].unique())
    shares = pd.DataFrame(votes / votes.sum(1, keepdims=True), index=tasks, columns=list(known.classes))
    gold = {t: known.classes[int(g)] for t, g in zip(known.tasks, known.gold, strict=True) if g >= 0 and t in tasks}
    assert 100 * score(shares, gold)["accuracy"] == pytest.approx(percent, abs=0.005)


@pytest.fixture(scope="module")
def rated():
    """A fit of five ordered classes, and a rating of each task between them."""
    rng = np.random.default_rng(5)
    truth = rng.uniform(1, 5, 50)
    rows = [(f"t{i}", j, int(np.clip(round(truth[i] + rng.normal(0, 0.8)), 1, 5))) for i in range(50) for j in range(5)]
    annotations = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]), ordered=True)
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations))
    return fit, pd.Series(truth, index=[f"t{i}" for i in range(50)])


def test_labels_of_ordered_classes_are_scored_by_ratings_between_them(rated):
    fit, ratings = rated
    asked = ratings.sample(30, random_state=0)
    found, expected = score(fit, asked), fit.probabilities.loc[asked.index].to_numpy() @ np.arange(1, 6)
    assert list(found.index) == ["tasks", "gold_used", "mae", "mae_se", "spearman", "kendall"]
    assert found["tasks"] == 30
    assert found["mae"] == pytest.approx(np.abs(expected - asked).mean(), abs=1e-5)
    assert found["spearman"] == pytest.approx(stats.spearmanr(expected, asked).statistic, abs=1e-5)
    assert found["kendall"] == pytest.approx(stats.kendalltau(expected, asked).statistic, abs=1e-5)
    pd.testing.assert_series_equal(score({"this": fit}, asked).loc["this"], found, check_names=False)


def test_several_ratings_of_a_task_are_their_mean_and_those_of_another_scale_have_no_error(rated):
    fit, ratings = rated
    table = pd.DataFrame({"task": [*ratings.index, *ratings.index], "label": [*(ratings - 0.1), *(ratings + 0.1)]})
    inside = table[table["label"].between(1, 5).groupby(table["task"]).transform("all")]
    means = inside.groupby("task")["label"].mean()
    np.testing.assert_allclose(score(fit, inside), score(fit, means), rtol=1e-6)
    of_hundred = score(fit, 20 * ratings)
    assert np.isnan(of_hundred["mae"])
    assert of_hundred["spearman"] == pytest.approx(score(fit, ratings)["spearman"])


def test_whole_numbers_on_another_scale_are_refused_with_what_rescales_them(rated):
    fit, ratings = rated
    hundred = ((ratings - 1) * 25).round().astype(int)
    with pytest.raises(AnnotationError, match="rescale all to that of the classes") as refused:
        score(fit, hundred)
    rescaled = {
        task: eval(str(refused.value).rpartition(": ")[2], {"rating": int(hundred[task])}) for task in hundred.index
    }
    assert score(fit, rescaled)["mae"] == pytest.approx(score(fit, ratings)["mae"], abs=0.02)  # half a step of 100


def test_classes_that_are_halves_are_labels():
    classes = ["0.5", "1.0", "1.5"]
    rows = [(i, j, classes[(i + j // 2) % 3]) for i in range(6) for j in range(3)]
    annotations = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]), ordered=classes)
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations))
    assert "accuracy" in score(fit, {0: "0.5", 1: "1.5"})


def test_ratings_are_no_labels_where_classes_have_no_order_and_whole_numbers_are_classes(rated, em):
    fit, ratings = rated
    with pytest.raises(AnnotationError, match=r"label 0\.5 of task 0 is none of the classes"):
        score(em, {0: 0.5})
    with pytest.raises(AnnotationError, match="label 7 of task 't0' is none of the classes"):
        score(fit, {"t0": 7})
    with pytest.raises(AnnotationError, match="task 'nobody' is not among"):
        score(fit, {"nobody": 2.5})
    with pytest.raises(AnnotationError, match=r"means of ratings are no labels, and cp\.score"):
        fit.annotations.with_gold(ratings)
