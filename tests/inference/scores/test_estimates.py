"""Accuracy and prevalence from a few gold labels: closed forms, ppi-python, brute force, and coverage."""

import doctest
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions
from scipy import special, stats

import crowdppl as cp
from crowdppl import AnnotationError, Annotations, UnknownNameError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.fitted.intervals import of_count, quantile, wilson
from crowdppl.inference.scores.gold_shares import GoldDraw, counted, drawn_alike, estimated, slope

METHODS = ("ppi", "rogan_gladen", "classical")


def population(n=400, k=3, seed=0, sharp=1.0):
    """Probabilities of n tasks, and their true classes, drawn from them before they are sharpened."""
    rng = np.random.default_rng(seed)
    right = rng.dirichlet(np.ones(k), n)
    truth = np.array([rng.choice(k, p=p) for p in right])
    said = right**sharp
    names = [f"c{i}" for i in range(k)]
    return pd.DataFrame(said / said.sum(-1, keepdims=True), columns=names), pd.Series([names[i] for i in truth])


def drawn(gold, n, seed=0):
    return gold.sample(n, random_state=seed)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 120)
    rows = [(f"t{i}", j, truth[i] if rng.random() < 0.7 else 1 - truth[i]) for i in range(120) for j in range(3)]
    annotations = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    return annotations, {f"t{i}": int(label) for i, label in enumerate(truth)}


@pytest.fixture(scope="module")
def fit(crowd):
    return fit_at("dawid_skene", crowd[0], random_confusions(crowd[0]))


@pytest.mark.parametrize("right", [0, 1, 7, 20])
@pytest.mark.parametrize("interval", [0.5, 0.9, 0.99])
def test_wilsons_interval_is_scipys(right, interval):
    expected = stats.binomtest(right, 20).proportion_ci(interval, method="wilson")
    assert wilson(right / 20, 20, interval) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("right", "n", "others"), [(7, 20, 30), (20, 20, 80), (0, 10, 12), (3, 10, 10**7)])
def test_the_interval_of_a_count_is_the_mid_p_one_of_hypergeometric_tails(right, n, others):
    """To one task: the two tails of the count are halved, and a bound is at the first number that both halves reach."""
    low, high = of_count(right / n, n, others, 0.9)
    if others > 1000:  # nearly binomial
        for beyond, end in ((stats.binom.sf(right, n, low), low), (stats.binom.cdf(right - 1, n, high), high)):
            assert beyond + stats.binom.pmf(right, n, end) / 2 == pytest.approx(0.05, abs=1e-3)
        return
    numbers = np.arange(others + 1) + right
    count = stats.hypergeom(n + others, numbers, n)
    half = count.pmf(right) / 2
    inside = np.flatnonzero((count.sf(right) + half > 0.05) & (count.cdf(right) - half > 0.05))
    assert abs(round(low * others) - inside[0]) <= 1
    assert abs(round(high * others) - inside[-1]) <= 1
    assert round(low * others) <= inside[0]
    assert round(high * others) >= inside[-1]


def test_the_interval_of_a_count_takes_fractions_between_whole_numbers():
    ends = np.array([of_count(share, size, 5000, 0.9) for share, size in [(0.9, 20), (0.9, 25.5), (0.9, 30)]])
    assert (np.diff(ends[:, 0]) > 0).all()
    assert (np.diff(ends[:, 1]) < 0).all()
    assert of_count(1.0, 12.5, 40, 0.9)[1] == 1
    assert of_count(0.0, 12.5, 20_000, 0.9)[0] == 0


@pytest.mark.parametrize("columns", [1, 3])
def test_the_estimate_is_ppi_pythons(columns):
    ppi_py = pytest.importorskip("ppi_py", reason="ppi-python, of the extra test, is not installed")
    for seed in range(10):
        probabilities, gold = population(90, 3, seed, sharp=2.0)
        f, y = probabilities.to_numpy()[:, :columns], pd.get_dummies(gold).to_numpy(float)[:, :columns]
        at = np.random.default_rng(seed).choice(90, 25, replace=False)
        others = np.delete(np.arange(90), at)
        expected = ppi_py.ppi_mean_pointestimate(y[at], f[at], f[others])
        np.testing.assert_allclose(
            estimated(y[at], f, drawn_alike(len(f), at), 0.9).estimate, np.ravel(expected), atol=1e-12
        )


def test_the_weight_of_the_predictions_is_that_of_ppi_plus_plus_written_out():
    probabilities, gold = population(60, 2, 5, sharp=3.0)
    f, y = probabilities.to_numpy()[:, :1], (gold == "c0").to_numpy(float)[:, None]
    at = np.arange(0, 60, 4)
    covariance = np.cov(y[at, 0], f[at, 0], ddof=0)[0, 1]
    expected = covariance / ((1 + 15 / 45) * f.var(ddof=1))
    draw = drawn_alike(60, at)
    assert slope(y[at], f, draw) * 45 / 60 == pytest.approx(expected)  # on the mean of all, not of the others
    assert 0 < expected < 1
    assert slope(1 - y[at], f, draw) == 0  # predictions of the opposite
    assert slope(np.ones((15, 1)), f, draw) == 0
    assert slope(y[at], np.full((60, 1), 0.3), draw) == 0


def test_over_all_samples_the_estimate_is_nearly_unbiased_and_nearer_than_counting():
    f = np.array([0.9, 0.8, 0.95, 0.6, 0.2, 0.1, 0.3, 0.05, 0.4, 0.99, 0.15, 0.7])[:, None]
    y = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1.0])[:, None]
    ours, plain = [], []
    for sample in combinations(range(12), 6):
        at = np.array(sample)
        ours.append(estimated(y[at], f, drawn_alike(len(f), at), 0.9).estimate[0])
        plain.append(counted(y[at], drawn_alike(12, at), 0.9).estimate[0])
    assert np.mean(plain) == pytest.approx(y.mean())
    assert np.mean(ours) == pytest.approx(y.mean(), abs=0.01)  # λ is of the same sample: a bias of order 1/n
    assert np.std(ours) < 0.8 * np.std(plain)


def test_for_many_gold_tasks_the_interval_is_the_normal_one_of_the_residuals():
    rng = np.random.default_rng(0)
    f = rng.beta(2, 2, (40_000, 1))
    y = (rng.random((40_000, 1)) < f) * 1.0
    at = rng.choice(40_000, 10_000, replace=False)
    found = estimated(y[at], f, drawn_alike(len(f), at), 0.9)
    residual = y[at] - np.cov(y[at, 0], f[at, 0])[0, 1] / f.var(ddof=1) * f[at]  # of the regression on predictions
    half = quantile(0.9) * residual.std() * np.sqrt((1 - 10_000 / 40_000) / 10_000)
    assert found.below[0] == pytest.approx(half, rel=0.01)
    assert found.above[0] == pytest.approx(half, rel=0.01)
    plain = counted(y[at], drawn_alike(40_000, at), 0.9)
    assert found.above[0] < 0.95 * plain.above[0]


def test_predictions_that_say_nothing_leave_what_counting_gives():
    gold = pd.Series(["a", "b", "a"] * 20)
    flat = pd.DataFrame({"a": np.full(200, 0.6), "b": np.full(200, 0.4)})
    ppi, plain = (cp.estimate(flat, gold, method=method).table for method in ("ppi", "classical"))
    pd.testing.assert_frame_equal(ppi, plain)


@pytest.mark.parametrize(("n_tasks", "n"), [(40, 20), (100, 20), (1000, 50)])
@pytest.mark.parametrize("right", [0.75, 0.9, 0.98])
@pytest.mark.parametrize("quality", [0.0, 1.0, 3.0])
def test_nine_of_ten_intervals_hold_whatever_the_predictions_are_worth(quality, right, n_tasks, n):
    """Predictions say nothing, are calibrated, or are far too sure; 600 samples: a standard error of 1.2 points."""
    rng = np.random.default_rng(1)
    holds = 0
    for _ in range(600):
        y = (np.arange(n_tasks) < round(right * n_tasks))[:, None] * 1.0
        f = special.expit(quality * (rng.normal(1.5 * (y - right), 1) + special.logit(right)))
        at = rng.choice(n_tasks, n, replace=False)
        found = estimated(y[at], f, drawn_alike(n_tasks, at), 0.9)
        error = found.estimate[0] - y.mean()
        holds += -found.above[0] - 1e-9 <= error <= found.below[0] + 1e-9
    assert holds / 600 >= 0.86


@pytest.mark.parametrize("right", [0.75, 0.95])
def test_nine_of_ten_intervals_hold_where_tasks_were_drawn_with_chances_of_their_own(right):
    """Tasks that are likelier wrong are drawn more often, so that the counts are far from the shares."""
    rng = np.random.default_rng(2)
    y = (np.arange(600) < 600 * right)[:, None] * 1.0
    chance = np.clip(0.04 + 0.3 * (y[:, 0] == 0) * rng.random(600) + 0.02 * rng.random(600), 0, 1)
    holds, counts = 0, 0
    for _ in range(600):
        at = np.flatnonzero(rng.random(600) < chance)
        draw = GoldDraw(600, at, 1 / chance[at] - 1)
        found = counted(y[at], draw, 0.9)
        holds += -found.above[0] <= found.estimate[0] - y.mean() <= found.below[0]
        plain = counted(y[at], drawn_alike(600, at), 0.9)
        counts += -plain.above[0] <= plain.estimate[0] - y.mean() <= plain.below[0]
    assert holds / 600 >= 0.86
    assert counts / 600 < 0.5


def test_rare_errors_of_the_labels_do_not_make_the_interval_too_short():
    """Of 2 % of the tasks the label is wrong, always in one way, so that most samples of 50 have none or one."""
    rng = np.random.default_rng(2)
    y = (rng.random((1000, 1)) < 0.4) * 1.0
    f = np.where((y == 1) & (rng.random((1000, 1)) < 0.05), 0.01, np.where(y == 1, 0.99, 0.01))
    holds, normal = 0, 0
    for _ in range(1000):
        at = rng.choice(1000, 50, replace=False)
        found = estimated(y[at], f, drawn_alike(len(f), at), 0.9)
        error = found.estimate[0] - y.mean()
        holds += -found.above[0] <= error <= found.below[0]
        residual = y[at] - slope(y[at], f, drawn_alike(1000, at)) * 0.95 * f[at]
        normal += abs(error) <= 1.645 * residual.std() / np.sqrt(50)
    assert normal < 750  # what the normal interval is worth here
    assert holds > 870


def test_with_gold_labels_of_all_tasks_the_shares_are_counted_and_leave_no_doubt():
    probabilities, gold = population(90)
    right = (probabilities.idxmax(axis=1) == gold).mean()
    for method in METHODS:
        table = cp.estimate(probabilities, gold, method=method).table
        expected = [right, *gold.value_counts(normalize=True).sort_index()]
        np.testing.assert_allclose(table["estimate"], expected, atol=1e-9)
        np.testing.assert_allclose(table["low"], expected, atol=1e-9)
        np.testing.assert_allclose(table["high"], expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_prevalences_sum_to_one_and_lie_within_their_intervals(method):
    probabilities, gold = population(300, 4, 1, sharp=3.0)
    found = cp.estimate(probabilities, drawn(gold, 60), method=method)
    assert found.prevalence["estimate"].sum() == pytest.approx(1)
    assert ((found.table["low"] <= found.table["estimate"]) & (found.table["estimate"] <= found.table["high"])).all()
    assert (found.n_gold, found.n_tasks, found.method) == (60, 300, method)
    assert found.prevalence.index.tolist() == ["c0", "c1", "c2", "c3"]
    said = probabilities.max(axis=1).mean()
    assert found.accuracy["without_gold"] == pytest.approx(said)


def test_rogan_and_gladens_estimate_is_their_formula():
    probabilities, gold = population(500, 2, 4, sharp=2.0)
    sample = drawn(gold, 120)
    label = probabilities.idxmax(axis=1)
    sensitivity = (label[sample.index] == "c1")[sample == "c1"].mean()
    specificity = (label[sample.index] == "c0")[sample == "c0"].mean()
    expected = ((label == "c1").mean() + specificity - 1) / (sensitivity + specificity - 1)
    found = cp.estimate(probabilities, sample, method="rogan_gladen")
    assert found.prevalence.loc["c1", "estimate"] == pytest.approx(expected)
    right = expected * sensitivity + (1 - expected) * specificity
    assert found.accuracy["estimate"] == pytest.approx(right)


def test_rogan_and_gladens_estimate_holds_where_gold_is_drawn_by_class_and_the_others_do_not():
    """Classes have 80 % and 20 % of the tasks and equal shares of the gold tasks."""
    rng = np.random.default_rng(0)
    truth = rng.random(4000) < 0.2
    wrong = rng.random(4000) < 0.15
    said = np.where(truth ^ wrong, 0.95, 0.05)
    probabilities = pd.DataFrame({"a": 1 - said, "b": said})
    ones, zeros = np.flatnonzero(truth)[:150], np.flatnonzero(~truth)[:150]
    gold = {int(i): "b" if truth[i] else "a" for i in np.concatenate([ones, zeros])}
    rogan = cp.estimate(probabilities, gold, method="rogan_gladen").prevalence.loc["b"]
    ppi = cp.estimate(probabilities, gold).prevalence.loc["b"]
    assert rogan["low"] < truth.mean() < rogan["high"]
    assert rogan["high"] - rogan["low"] < 0.15
    assert not ppi["low"] < truth.mean() < ppi["high"]


def test_rogan_and_gladens_interval_of_the_accuracy_holds_with_few_gold_tasks_of_each_of_many_classes():
    """It held 42 %: draws of a class with six gold tasks are less right than these, in each of the ten classes."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 10, 5000)
        label = np.where(rng.random(5000) < 0.8, truth, (truth + rng.integers(1, 10, 5000)) % 10)
        gold = {int(task): int(truth[task]) for k in range(10) for task in np.flatnonzero(truth == k)[:6]}
        found = cp.estimate(pd.DataFrame(np.eye(10)[label]), gold, method="rogan_gladen").accuracy
        assert found["low"] <= found["estimate"] <= found["high"]
        held.append(found["low"] <= (label == truth).mean() <= found["high"])
    assert np.mean(held) >= 0.8


def test_the_draws_of_rogan_and_gladens_interval_follow_the_seed():
    probabilities, gold = population(300, 2, 4)
    first, again, other = (
        cp.estimate(probabilities, drawn(gold, 60), method="rogan_gladen", seed=seed).table for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(first, again)
    assert (first["low"] != other["low"]).all()
    np.testing.assert_allclose(first["low"], other["low"], atol=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_a_greater_mass_and_a_population_make_intervals_wider(method):
    probabilities, gold = population(300, 2, 4)
    sample = drawn(gold, 80)

    def width(**options):
        table = cp.estimate(probabilities, sample, method=method, **options).table
        return (table["high"] - table["low"]).to_numpy()

    assert (width(interval=0.5) < width()).all()
    assert (width() < width(of="population")).all()


def test_of_a_population_gold_labels_of_all_tasks_leave_wilsons_interval_of_their_number():
    probabilities, gold = population(90)
    accuracy = cp.estimate(probabilities, gold, of="population").accuracy
    expected = wilson(accuracy["estimate"], 90, 0.9)
    assert (accuracy["low"], accuracy["high"]) == pytest.approx(expected)


def test_the_accuracy_is_that_of_the_labels_as_the_fit_gives_them_ties_included():
    tied = pd.DataFrame({"a": [0.5] * 30, "b": [0.5] * 30})
    gold = {task: "a" if task < 12 else "b" for task in range(30)}
    assert cp.estimate(tied, gold).accuracy["estimate"] == pytest.approx(12 / 30)


def test_gold_labels_come_in_every_form(crowd, fit, tmp_path):
    annotations, truth = crowd
    some = dict(list(truth.items())[::3])
    frame = pd.DataFrame({"task": list(some), "label": list(some.values())})
    frame.to_csv(tmp_path / "gold.csv", index=False)
    forms = [some, pd.Series(some), frame, tmp_path / "gold.csv", annotations.with_gold(some)]
    expected = cp.estimate(fit, some).table
    for gold in forms:
        pd.testing.assert_frame_equal(cp.estimate(fit, gold).table, expected)
    carried = fit_at("dawid_skene", annotations.with_gold(some), random_confusions(annotations))
    pd.testing.assert_frame_equal(cp.estimate(carried).table, expected)


@pytest.mark.filterwarnings("ignore:the gold label contradicts")
def test_gold_that_the_fit_was_told_is_no_sample_and_its_tasks_are_known(crowd):
    annotations, truth = crowd
    told = {f"t{i}": truth[f"t{i}"] for i in range(40)}
    others = {f"t{i}": truth[f"t{i}"] for i in range(40, 90)}
    seen = with_evidence(annotations, told)
    fit = fit_at("dawid_skene", seen, random_confusions(seen))
    found = cp.estimate(fit, told | others)
    assert (found.n_gold, found.gold_used, found.n_tasks) == (50, 40, 120)
    rest = cp.estimate(fit.probabilities.iloc[40:], others)
    combined = (80 * rest.accuracy["estimate"] + 40) / 120
    assert found.accuracy["estimate"] == pytest.approx(combined)
    width, alone = (one.accuracy["high"] - one.accuracy["low"] for one in (found, rest))
    assert width == pytest.approx(80 / 120 * alone)
    ones = sum(told.values())
    assert found.prevalence.loc[1, "estimate"] == pytest.approx((80 * rest.prevalence.loc[1, "estimate"] + ones) / 120)
    with pytest.raises(AnnotationError, match="told all of them"):
        cp.estimate(fit, told)


def test_five_gold_labels_are_said_to_be_few_with_the_width_that_they_give():
    probabilities, gold = population(300, 2, 4)
    with pytest.warns(AnnotationWarning, match=r"^5 gold labels are few") as caught:
        found = cp.estimate(probabilities, drawn(gold, 5))
    width = found.accuracy["high"] - found.accuracy["low"]
    assert f"is {width:.2f} wide" in str(caught[0].message)
    right = probabilities.idxmax(axis=1)[drawn(gold, 5).index] == drawn(gold, 5)
    few = quantile(0.9) ** 2
    low, high = wilson((right.sum() + few / 2) / (5 + few), 50 / (1 - 50 / 300), 0.9)
    assert f"50 would make it about {high - low:.2f} wide" in str(caught[0].message)


def test_gold_that_contradicts_a_unanimous_crowd_is_said_with_the_tasks():
    rows = [(f"t{i}", w, "yes" if i % 2 else "no") for i in range(40) for w in "abc"]
    rows = [row for row in rows if row[0] != "t7" or row[1] == "a"]  # one annotation is no crowd
    annotations = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations))
    gold = {f"t{i}": "yes" if i % 2 else "no" for i in range(30)} | {"t4": "yes", "t7": "no"}
    with pytest.warns(AnnotationWarning, match=r"contradicts all annotations of 1 task: 't4' \(gold 'yes', all 3"):
        found = cp.estimate(fit, gold)
    assert found.contradicted.to_dict("index") == {"t4": {"gold": "yes", "annotation": "no", "annotations": 3}}


def test_what_it_prints_has_the_figures():
    probabilities, gold = population(300, 2, 4)
    found = cp.estimate(probabilities, drawn(gold, 60))
    text = str(found)
    assert repr(found) == text
    assert text.startswith(f"{found.accuracy['estimate']:.1%} of 300 labels are right (90% interval ")
    assert f"'c1' {found.prevalence.loc['c1', 'estimate']:.1%}" in text
    assert "prediction-powered inference from 60 gold labels" in text
    summary = found.summary()
    pd.testing.assert_frame_equal(summary.tables["estimates"], found.table)
    assert summary.facts["gold"] == "60 gold labels of 300 tasks"
    assert "labels of tasks like these" in str(cp.estimate(probabilities, drawn(gold, 60), of="population"))


def test_a_table_of_gold_labels_may_say_with_which_probabilities_the_tasks_were_drawn(tmp_path):
    probabilities, gold = population(300, 2, 4)
    drawn_tasks = gold.iloc[:60]
    frame = pd.DataFrame({"task": drawn_tasks.index, "label": drawn_tasks.to_numpy()})
    same = frame.assign(inclusion_probability=60 / 300)
    pd.testing.assert_frame_equal(cp.estimate(probabilities, same).table, cp.estimate(probabilities, frame).table)
    tilted = frame.assign(inclusion_probability=np.where(frame["label"] == "c1", 0.5, 0.1))
    found = cp.estimate(probabilities, tilted, method="classical").prevalence["estimate"]
    others = np.where(frame["label"] == "c1", 1.0, 9.0)
    share = (others * (frame["label"] == "c1")).sum() / others.sum()
    assert found["c1"] == pytest.approx(((frame["label"] == "c1").sum() + 240 * share) / 300)
    tilted.to_csv(tmp_path / "gold.csv", index=False)
    probabilities.index = probabilities.index.astype(str)
    by_file = cp.estimate(probabilities, tmp_path / "gold.csv", method="classical").prevalence["estimate"]
    pd.testing.assert_series_equal(by_file, found)
    with pytest.raises(AnnotationError, match=r"method='rogan_gladen' .*drawn at random"):
        cp.estimate(probabilities, tmp_path / "gold.csv", method="rogan_gladen")
    wrong = tilted.assign(task=tilted["task"].astype(str), inclusion_probability=[0.0, *[0.2] * 59])
    with pytest.raises(AnnotationError, match=r"row 0, column 'inclusion_probability': 0.0 of task '0' is no prob"):
        cp.estimate(probabilities, wrong)


def test_one_gold_label_is_counted_as_one():
    probabilities, gold = population(300, 2, 4)
    with pytest.warns(AnnotationWarning, match="1 gold label is few"):
        found = cp.estimate(probabilities, drawn(gold, 1))
    assert "from 1 gold label:" in str(found)
    assert found.summary().facts["gold"] == "1 gold label of 300 tasks"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gold": {"t999": 0}}, AnnotationError, r"task 't999' is not among the annotated tasks"),
        ({"gold": {"t1": "maybe"}}, AnnotationError, r"label 'maybe' of task 't1' is none of the classes.*0, 1"),
        ({"gold": {}}, AnnotationError, "there is no gold label to estimate from: they are all missing"),
        ({"gold": 3}, AnnotationError, "gold: expected a dictionary task -> label.*got a int"),
        ({"gold": None}, AnnotationError, "carry no gold labels; give gold="),
        ({"method": "ppi++"}, UnknownNameError, "unknown method 'ppi\\+\\+'; did you mean 'ppi'"),
        ({"of": "worker"}, UnknownNameError, "unknown value of of 'worker'.*tasks, population"),
        ({"interval": 90}, ValueError, "interval=90: a finite number above 0 and below 1"),
        ({"interval": "w0"}, ValueError, "interval='w0': a finite number above 0 and below 1"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(crowd, fit, options, error, message):
    with pytest.raises(error, match=message):
        cp.estimate(fit, **{"gold": crowd[1], **options})


def test_what_has_no_labels_is_refused(crowd):
    annotations, truth = crowd
    with pytest.raises(TypeError, match=r"a fit with labels .* got a Annotations"):
        cp.estimate(annotations, truth)
    with pytest.raises(AnnotationError, match=r"task 't0': \[0.7, 0.7\] are no probabilities"):
        cp.estimate(pd.DataFrame({0: [0.7], 1: [0.7]}, index=["t0"]), {"t0": 0})
    with pytest.raises(AnnotationError, match=r"gold: .*no gold labels"):
        cp.estimate(pd.DataFrame({0: [0.7], 1: [0.3]}, index=["t0"]), annotations)


def test_rogan_and_gladens_estimate_refuses_classes_that_have_no_gold_or_no_labels_of_their_own():
    probabilities, gold = population(100, 3)
    with pytest.raises(AnnotationError, match=r"of class 'c2'.*take method='ppi'"):
        cp.estimate(probabilities, gold[gold != "c2"], method="rogan_gladen")
    same = pd.DataFrame({"a": np.full(40, 0.9), "b": np.full(40, 0.1)})
    with pytest.raises(AnnotationError, match="nothing of the prevalence"):
        cp.estimate(same, {task: "ab"[task % 2] for task in range(30)}, method="rogan_gladen")


@pytest.mark.filterwarnings("ignore:the gold label contradicts")
@pytest.mark.parametrize("function", [cp.estimate, cp.gold_needed, cp.calibrate_labels, cp.plot_estimate])
def test_the_examples_give_what_they_show(function):
    found = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    assert found[0].examples
    assert doctest.DocTestRunner().run(found[0]).failed == 0


def test_by_worker_the_share_of_right_annotations_is_of_gold_tasks_alone(crowd, fit):
    annotations, truth = crowd
    gold = dict(list(truth.items())[:40])
    found = cp.estimate(fit, gold, by="worker")
    rows = annotations.to_frame()
    rows["right"] = rows["label"] == rows["task"].map(truth)
    mine = rows[rows["task"].isin(gold) & (rows["worker"] == 1)]["right"]
    low, high = of_count(mine.mean(), 40, 80, 0.9)
    ends = (40 * mine.mean() + 80 * np.array([low, high])) / 120
    assert found.loc[1, ["estimate", "low", "high"]].tolist() == pytest.approx([mine.mean(), *ends])
    assert found.loc[1, ["n_gold", "annotations"]].tolist() == [40, 120]
    assert found["high"].is_monotonic_increasing
    assert not found["drop"].any()


def test_a_worker_whose_interval_is_below_a_guess_is_one_to_drop_and_one_without_gold_tasks_is_not():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    rows = [(i, "good", truth[i]) for i in range(100)] + [(i, "inverse", 1 - truth[i]) for i in range(100)]
    rows += [(i, "elsewhere", truth[i]) for i in range(60, 100)]
    annotations = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations))
    gold = pd.DataFrame({"task": range(30), "label": truth[:30]})
    found = cp.estimate(fit, gold, by="worker")
    assert found["drop"].to_dict() == {"inverse": True, "good": False, "elsewhere": False}
    assert np.isnan(found.loc["elsewhere", "estimate"])
    weighed = cp.estimate(fit, gold.assign(inclusion_probability=0.3), by="worker")
    pd.testing.assert_frame_equal(weighed, found)
    with pytest.raises(UnknownNameError, match="unknown value of by 'task'"):
        cp.estimate(fit, gold, by="task")
    with pytest.raises(AnnotationError, match="the annotations name no workers"):
        cp.estimate(fit.probabilities, gold, by="worker")


def test_a_table_without_a_column_of_labels_is_told_each_name_that_would_do(crowd, fit):
    annotations, gold = crowd
    table = pd.DataFrame({"task": list(annotations.tasks)[:30], "what": range(30)})
    with pytest.raises(AnnotationError) as error:
        cp.estimate(fit, table)
    names = re.findall(r"'(\w+)'", str(error.value).partition("Rename the column")[2])
    assert names == ["label", "gold"]
    assert {cp.estimate(fit, table.assign(**{name: table["task"].map(gold)})).n_gold for name in names} == {30}


@pytest.mark.parametrize("n_classes", [7, 8])
def test_what_it_prints_leaves_no_single_class_out(n_classes):
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=200, n_workers=10, n_classes=n_classes, annotations_per_task=5, seed=0
    )
    fit = cp.fit("one_coin", annotations.without_gold(), progress=False)
    gold = dict(zip(annotations.tasks[:50], np.array(annotations.classes)[annotations.gold[:50]], strict=True))
    said = str(cp.estimate(fit, gold)).partition("Prevalence: ")[2].partition(". By")[0]
    assert said.count("%") // 2 == (7 if n_classes == 7 else 6)
    assert said.endswith("2 more classes") == (n_classes == 8)


def test_classes_that_are_numbers_are_told_from_their_shares():
    annotations, _ = cp.simulate("one_coin", n_tasks=60, n_workers=5, annotations_per_task=4, seed=0)
    fit = cp.fit("one_coin", annotations.without_gold(), progress=False)
    said = str(cp.estimate(fit, dict(enumerate(annotations.gold[:30].tolist()))))
    assert re.search(r"Prevalence: '0' \d+\.\d% \(.*'1' \d+\.\d% \(", said)
