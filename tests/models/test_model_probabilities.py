"""Models' probabilities as one more fallible worker: the density, and what is learned of it."""

import numpy as np
import pandas as pd
import pytest
from brute_force import enumerate_labellings
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.probabilities import with_probabilities
from crowdppl.models import find_story


def softmax(x):
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def crowd():
    """600 tasks of three classes, ten mediocre workers, and scores whose softmax is calibrated at equal prevalence."""
    truth = {"prevalence": [0.4, 0.35, 0.25], "confusion": np.tile(0.2 + 0.4 * np.eye(3), (10, 1, 1))}
    annotations, _ = cp.simulate("dawid_skene", n_tasks=600, n_workers=10, n_classes=3, seed=2, parameters=truth)
    gold = np.asarray(annotations.gold)
    # Normal around a(e_z - 1/K) with spread s: the log-odds of two classes are a/s² = 1.5 times the scores' difference.
    scores = 1.5 * (np.random.default_rng(0).normal(size=(600, 3)) + 1.5 * np.eye(3)[gold])
    return annotations.without_gold(), gold, scores


def frame(p, annotations):
    return pd.DataFrame(p, index=list(annotations.tasks), columns=list(annotations.classes))


def log_score(posterior, gold):
    return np.log(np.maximum(posterior[np.arange(len(gold)), gold], 1e-12)).mean()


def test_the_density_is_that_of_tilted_probabilities_summed_over_every_labelling():
    annotations = cp.Annotations.from_dict(
        {"t1": {"a": "x", "b": "y"}, "t2": {"a": "y", "b": "y"}, "t3": {"a": "x"}, "t4": {"b": "x"}}
    )
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet([1, 1], 4), rng.dirichlet([1, 1], 4)
    q[2] = np.nan
    given = with_probabilities(annotations, {"p": p, "q": q})
    slope, bias = np.array([0.7, -0.4]), np.array([[0.3, -0.2], [0.0, 1.1]])
    evidence = np.zeros((4, 2))
    for m, table in enumerate((p, q)):
        known = ~np.isnan(table[:, 0])
        tempered = table[known] ** slope[m] * np.exp(bias[m])
        tempered /= tempered.sum(1, keepdims=True)
        evidence[known] += np.log(tempered / tempered.mean(0))
    prevalence, confusion = rng.dirichlet([1, 1]), rng.dirichlet([1, 1], (2, 2))
    theta = {"prevalence": prevalence, "confusion": confusion, "model_slope": slope, "model_bias": bias}
    at = density(Model(find_story("dawid_skene")), {k: np.asarray(v, "f4") for k, v in theta.items()}, given)
    log_p, posterior, by_task = enumerate_labellings(annotations, prevalence, confusion, evidence)
    np.testing.assert_allclose(at.log_likelihood.sum(), log_p, atol=1e-4)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)
    np.testing.assert_allclose(at.log_likelihood, by_task, atol=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_a_model_is_tempered_by_what_its_sureness_is_worth(crowd, temperature):
    annotations, _, scores = crowd
    fit = cp.fit("dawid_skene", annotations, probabilities=softmax(scores / temperature), progress=False)
    row = fit.models.loc["model"]
    # The standard error of a logistic regression's slope on 600 true labels is 0.07 of it here.
    assert row["slope"] == pytest.approx(temperature, rel=0.2)
    assert row["slope_low"] < row["slope"] < row["slope_high"]
    assert row["temperature"] == pytest.approx(1 / row["slope"])
    assert (row["calibration_error"] > 0.1) == (temperature < 1)


def test_a_calibrated_model_is_combined_with_the_crowd_by_bayes_rule(crowd):
    annotations, gold, scores = crowd
    p = softmax(scores)
    told = cp.fit("dawid_skene", annotations, probabilities=p, progress=False)
    at = told.fitted.at({name: value[0, 0] for name, value in told.fitted.draws.items()})
    crowd_alone = at.likelihood.emission.by_task(annotations, annotations.label)
    # The scores are calibrated where classes are equally frequent, so that p is proportional to their likelihood.
    best = softmax(np.log(p) + np.asarray(crowd_alone) + np.log(np.bincount(gold) / len(gold)))
    alone = cp.fit("dawid_skene", annotations, progress=False)
    assert np.abs(told.posterior - best).mean() < 0.03
    assert log_score(told.posterior, gold) > log_score(alone.posterior, gold) + 0.05
    assert log_score(told.posterior, gold) == pytest.approx(log_score(best, gold), abs=0.02)


def test_a_worthless_model_changes_little(crowd):
    annotations, _, _ = crowd
    alone = cp.fit("dawid_skene", annotations, progress=False)
    noise = np.random.default_rng(5).dirichlet([0.2, 0.2, 0.2], annotations.n_tasks)
    told = cp.fit("dawid_skene", annotations, probabilities={"noise": noise}, progress=False)
    row = told.models.loc["noise"]
    assert abs(row["slope"]) < 0.04  # its standard error is 0.01
    assert row["realised_accuracy"] < 0.4
    assert np.abs(told.posterior - alone.posterior).mean() < 0.02
    assert "'noise' gave probabilities of 600 of 600 tasks" in told.summary().facts["models"]


@pytest.mark.slow
def test_a_model_says_nothing_of_a_task_that_it_has_not_seen(crowd):
    annotations, _, scores = crowd
    half = frame(softmax(scores), annotations).iloc[:300]
    fit = cp.fit("one_coin", annotations, probabilities={"half": half}, progress=False)
    at = fit.fitted.at({name: value[0, 0] for name, value in fit.fitted.draws.items()})
    by_crowd = at.likelihood.emission.by_task(annotations, annotations.label) + at.truth_prior
    np.testing.assert_allclose(fit.posterior[300:], softmax(np.asarray(by_crowd))[300:], atol=1e-4)
    assert fit.models.loc["half", "tasks"] == 300
    assert "of 300 of 600 tasks" in fit.summary().facts["models"]


@pytest.mark.parametrize(
    ("story", "method"), [("dawid_skene", "svi"), pytest.param("one_coin", "nuts", marks=pytest.mark.slow)]
)
def test_every_engine_learns_the_slope(crowd, story, method):
    annotations, _, scores = crowd
    options = {"draws": 100, "warmup": 150, "chains": 1} if method == "nuts" else {}
    fit = cp.fit(story, annotations, method=method, probabilities=softmax(2 * scores), progress=False, **options)
    row = fit.models.loc["model"]
    assert row["slope_low"] < row["slope"] < row["slope_high"]
    assert row["slope"] == pytest.approx(0.5, rel=0.25)


def test_stories_whose_annotations_share_no_truth_refuse_them(crowd):
    annotations, _, scores = crowd
    with pytest.raises(StoryError, match="share a truth"):
        cp.fit("annotator_groups", annotations, truth="answer", probabilities=softmax(scores), progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("sure", [0.999, 0.999999, 1.0])
def test_a_model_that_is_all_but_certain_is_tempered_as_much(sure):
    """A model that is right in 70 % of the tasks: the labels are better than without it, however sure it says it is."""
    annotations, _ = cp.simulate("dawid_skene", n_tasks=200, n_workers=5, n_classes=2, seed=4, diagonal=8.0)
    gold = np.asarray(annotations.gold)
    named = np.where(np.random.default_rng(0).random(200) < 0.7, gold, 1 - gold)
    table = np.where(named[:, None] == np.arange(2), sure, 1 - sure)
    data = annotations.without_gold()
    fit = cp.fit("dawid_skene", data, probabilities={"model": table}, progress=False)
    alone = cp.fit("dawid_skene", data, progress=False)
    truth = {task: annotations.classes[gold[i]] for i, task in enumerate(annotations.tasks)}
    assert fit.models["slope"].iloc[0] < 0.3
    assert cp.score(fit, truth)["log_score"] >= cp.score(alone, truth)["log_score"] - 0.01
