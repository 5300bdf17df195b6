"""Calibrated label probabilities: the temperature that was applied, scikit-learn's steps, and held-out scores."""

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions
from scipy.special import softmax
from sklearn.isotonic import IsotonicRegression

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.scores.label_calibration import METHODS, temperature_of


def too_sure(n, k=3, power=3.0, seed=0):
    """Probabilities whose roots of this degree are right, and gold labels drawn from these."""
    rng = np.random.default_rng(seed)
    right = rng.dirichlet(np.ones(k), n)
    gold = np.array([rng.choice(k, p=p) for p in right])
    said = right**power
    names = [f"c{i}" for i in range(k)]
    frame = pd.DataFrame(said / said.sum(-1, keepdims=True), columns=names)
    return frame, pd.Series([names[i] for i in gold]), gold


@pytest.mark.parametrize("power", [0.5, 1.0, 4.0])
def test_the_temperature_is_the_one_that_was_applied(power):
    probabilities, gold, _ = too_sure(20_000, power=power)
    found = cp.calibrate_labels(probabilities, gold)
    assert found.temperature == pytest.approx(power, rel=0.03)  # its standard error is about 1 %
    right = probabilities.to_numpy() ** (1 / power)
    np.testing.assert_allclose(found.probabilities, right / right.sum(-1, keepdims=True), atol=0.01)


def test_the_temperature_has_the_greatest_likelihood_times_prior():
    probabilities, _, gold = too_sure(40)
    values = probabilities.to_numpy()
    grid = np.exp(np.linspace(-2, 3, 4001))

    def log_posterior(t):
        return np.log(softmax(np.log(values) / t, -1))[np.arange(40), gold].sum() - np.log(t) ** 2 / 2

    best = grid[np.argmax([log_posterior(t) for t in grid])]
    assert temperature_of(values, gold) == pytest.approx(best, rel=0.002)


def test_gold_that_always_agrees_leaves_a_temperature_that_is_bounded_by_its_prior():
    probabilities = pd.DataFrame({"a": [0.9, 0.1] * 15, "b": [0.1, 0.9] * 15})
    found = cp.calibrate_labels(probabilities, {i: "ab"[i % 2] for i in range(30)})
    assert 0.3 < found.temperature < 1
    assert found.probabilities.to_numpy().max() < 0.9999


def test_isotonic_calibration_is_scikit_learns_within_its_bounds():
    probabilities, gold, codes = too_sure(300, 2)
    found = cp.calibrate_labels(probabilities, gold.head(200), method="isotonic").probabilities["c1"]
    p = probabilities["c1"].to_numpy()
    steps = IsotonicRegression(out_of_bounds="clip").fit(p[:200], codes[:200])
    np.testing.assert_allclose(found[:200], np.clip(steps.predict(p[:200]), 1 / 202, 201 / 202), atol=1e-12)
    assert found.between(1 / 202 - 1e-12, 201 / 202 + 1e-12).all()
    assert np.all(np.diff(found.to_numpy()[np.argsort(p)]) >= -1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_calibration_of_labels_that_are_too_sure_gains_on_held_out_gold(method):
    probabilities, gold, _ = too_sure(600)
    found = cp.calibrate_labels(probabilities, gold, method=method)
    before, after = found.scores.loc["as fitted"], found.scores.loc["calibrated"]
    assert found.gain > 3 * found.gain_se
    assert after["log_score"] - before["log_score"] == pytest.approx(found.gain)
    assert after["ece"] < before["ece"] / 2
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert found.probabilities.columns.tolist() == ["c0", "c1", "c2"]
    expected = cp.score(probabilities, gold)
    pd.testing.assert_series_equal(before, expected, check_names=False)


@pytest.mark.parametrize("method", METHODS)
def test_with_a_fold_for_each_gold_task_scores_are_those_of_leaving_each_out(method):
    probabilities, gold, codes = too_sure(60)
    values = probabilities.to_numpy()
    found = cp.calibrate_labels(probabilities, gold, method=method, folds=60)
    log = []
    for i in range(60):
        others = np.delete(np.arange(60), i)
        log.append(np.log(METHODS[method](values[others], codes[others])(values[[i]])[0, codes[i]]))
    assert found.scores.loc["calibrated", "log_score"] == pytest.approx(np.mean(log))


def test_temperature_keeps_labels_and_isotonic_does_not_learn_what_it_is_scored_by():
    probabilities, gold, _ = too_sure(80, 2)
    noise = pd.Series(np.random.default_rng(1).permutation(gold), index=gold.index)
    scaled = cp.calibrate_labels(probabilities, gold).probabilities
    assert (scaled.idxmax(axis=1) == probabilities.idxmax(axis=1)).all()
    steps = cp.calibrate_labels(probabilities, noise, method="isotonic")
    within = cp.score(steps.probabilities, noise)["log_score"]
    assert steps.scores.loc["calibrated", "log_score"] < within  # held out, noise cannot be learnt


def test_folds_and_seed_change_who_is_held_out_together():
    probabilities, gold, _ = too_sure(60)

    def held_out(**options):
        return cp.calibrate_labels(probabilities, gold, **options).scores.loc["calibrated", "log_score"]

    assert held_out() == held_out()
    assert len({held_out(), held_out(seed=1), held_out(folds=3)}) == 3


def test_tasks_whose_label_the_fit_was_told_keep_it():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=80, n_workers=6, seed=0)
    told = {i: int(annotations.gold[i]) for i in range(20)}
    seen = with_evidence(annotations, told)
    found = cp.calibrate_labels(fit_at("dawid_skene", seen, random_confusions(seen)))
    assert found.n_gold == 60
    known = found.probabilities.to_numpy()[np.arange(20), list(told.values())]
    np.testing.assert_allclose(known, 1)


def test_it_prints_what_it_gains():
    probabilities, gold, _ = too_sure(100)
    found = cp.calibrate_labels(probabilities, gold)
    assert repr(found) == str(found)
    assert f"temperature {found.temperature:.2f} on 100 gold labels" in str(found)
    assert f"by {found.gain:+.3f} ± {found.gain_se:.3f}" in str(found)
    steps = cp.calibrate_labels(probabilities, gold, method="isotonic")
    assert steps.temperature is None
    assert "by isotonic regression" in str(steps)


def test_too_few_gold_labels_are_refused_and_few_are_said():
    probabilities, gold, _ = too_sure(100)
    with pytest.raises(AnnotationError, match=r"gold: 5 gold labels .* at least 10 are needed"):
        cp.calibrate_labels(probabilities, gold.head(5))
    with pytest.warns(AnnotationWarning, match="15 gold labels .*method='temperature'; 20"):
        cp.calibrate_labels(probabilities, gold.head(15))
    with pytest.warns(AnnotationWarning, match="30 gold labels .*method='isotonic'; 50"):
        cp.calibrate_labels(probabilities, gold.head(30), method="isotonic")


def test_what_cannot_be_used_is_refused_by_name():
    probabilities, gold, _ = too_sure(50)
    with pytest.raises(UnknownNameError, match="unknown method 'temperatur'; did you mean 'temperature'"):
        cp.calibrate_labels(probabilities, gold, method="temperatur")
    with pytest.raises(ValueError, match="folds=1: a whole number from 2 is needed"):
        cp.calibrate_labels(probabilities, gold, folds=1)
    with pytest.raises(AnnotationError, match="label 'c9' of task 0 is none of the classes"):
        cp.calibrate_labels(probabilities, {0: "c9"})
