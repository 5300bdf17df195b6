"""A warning where a story's classifier did not learn the classes, and silence where it did."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from picked_findings import findings_of

import crowdppl as cp
from crowdppl import Classifier
from crowdppl.benchmarks.papers.setups import two_gaussians
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import classifier_decides_annotations, starting_point
from crowdppl.inference.engines.minibatch_em import WARM, speaks_at_random, warm_epochs
from crowdppl.inference.engines.settings import EMSettings
from crowdppl.inference.findings.of_classifier import above_chance, linear_rule
from crowdppl.models import STORIES

NETWORK = Classifier("mlp", hidden=(64,), dropout=0.0)
TRAINING = {"epochs": 12, "network_rate": 3e-3, "progress": False}


def crowd(accuracy=0.7, n_classes=4, n_tasks=400, per_task=4, tells=1.0, seed=0):
    """Clusters of tasks, a class each, and workers who are right with one accuracy; features that tell, or do not."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    x = (3 * tells * np.eye(n_classes)[truth] + rng.normal(size=(n_tasks, n_classes))).astype("f4")
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_tasks, per_task))) % n_classes
    labels = np.where(rng.random((n_tasks, per_task)) < accuracy, truth[:, None], wrong)
    return cp.Annotations.from_matrix(
        labels, classes=range(n_classes), features=x, gold=dict(enumerate(truth.tolist()))
    )


def said_by(story, annotations, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = cp.fit(story, annotations, **options)
    findings = findings_of(fit, "not_learnt")
    messages = [one.message for one in caught if isinstance(one.message, cp.ConvergenceWarning)]
    assert [message.finding for message in messages if message.finding.code == "not_learnt"] == findings
    return findings, fit


def said(story, annotations, **options):
    findings, fit = said_by(story, annotations, classifier=NETWORK, **(TRAINING | options))
    return findings, float((fit.predict_proba(annotations.features).argmax(-1) == annotations.gold).mean())


@pytest.fixture(scope="module")
def digits():
    return cp.load_dataset("digits")


@pytest.mark.parametrize("story", ["dawid_skene", "one_coin", "difficulty", "crowd_layer", "anno_reg"])
def test_it_is_silent_where_the_classifier_learns(story):
    findings, right = said(story, crowd())
    assert (findings, right > 0.9) == ([], True)


def test_features_of_an_unusual_scale_are_told_where_a_network_does_not_learn():
    large = crowd(n_classes=2, n_tasks=1000)
    large = large.replace(features=1e4 * large.features)
    (finding,), _ = said("dawid_skene", large, epochs=3, network_rate=0.1)
    assert "The features' root mean square is 2.3" in finding.remedy
    assert "bring each to a mean of 0 and a deviation of 1" in finding.remedy


def test_features_in_units_of_their_own_are_told_where_a_network_does_not_learn():
    """A year beside shares: first steps follow the year, which tells nothing, and standardised features teach."""
    years = crowd(n_classes=2, n_tasks=1000)
    year = 2000 + 10 * np.random.default_rng(1).normal(size=(years.n_tasks, 1))
    years = years.replace(features=np.hstack([years.features / 10, year]).astype("f4"))
    (finding,), wrong = said("dawid_skene", years)
    assert "2e+03 at most: bring each to a mean of 0 and a deviation of 1" in finding.remedy
    x = years.features
    findings, right = said("dawid_skene", years.replace(features=(x - x.mean(0)) / x.std(0)))
    assert (findings, wrong < 0.8 < 0.9 < right) == ([], True)


@pytest.mark.parametrize("accuracy", [0.3, 0.45])
def test_it_is_silent_where_features_or_workers_say_little(accuracy):
    assert said("dawid_skene", crowd(tells=0.0), epochs=3)[0] == []
    assert said("dawid_skene", crowd(accuracy, n_classes=4))[0] == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("story", ["two_coin", "difficulty"])
def test_it_is_silent_where_a_linear_classifier_and_the_rule_learn_the_same(story, seed):
    """Two Gaussians, where the best rule is linear: which of the two agrees more is chance."""
    data, x, y = two_gaussians(seed)
    findings, fit = said_by(story, data, classifier="logistic", progress=False)
    assert (findings, (fit.predict_proba(x).argmax(-1) == y).mean() > 0.8) == ([], True)


def test_a_network_that_mutes_everybody_on_digits_is_said_and_the_default_cures_it(digits):
    """Without a warm start all tasks count as so hard that annotations say nothing."""
    options = {"epochs": 20, "network_rate": 1e-3}
    (finding,), right = said("difficulty", digits, warmup=1, **options | {"network_rate": 3e-4})
    assert right < 0.3
    assert "cp.label_then_train('majority_vote', …)" in finding.remedy
    findings, right = said("difficulty", digits, **options)
    assert (findings, right > 0.85) == ([], True)


def test_a_network_that_learns_where_workers_agree_is_said(digits):
    (finding,), right = said("difficulty", digits, through_difficulty=True, epochs=20, network_rate=1e-3)
    assert right < 0.6
    assert finding.values["classifier"] < finding.values["rule"]


def test_the_rules_scores_of_a_task_are_those_of_a_ridge_regression_without_it():
    rng = np.random.default_rng(0)
    x, shares = rng.normal(size=(40, 6)), rng.dirichlet(np.ones(3), 40)
    scaled = (x - x.mean(0)) / x.std(0) / np.sqrt(6)
    by_penalty = []
    for penalty in np.logspace(-3, 3, 13):
        scores = np.empty_like(shares)
        for i in range(40):
            others = np.arange(40) != i
            design = np.column_stack([np.ones(39), scaled[others]])
            ridge = np.diag([0.0, *[penalty] * 6])
            scores[i] = np.r_[1, scaled[i]] @ np.linalg.solve(design.T @ design + ridge, design.T @ shares[others])
        by_penalty.append((float(((scores - shares) ** 2).mean()), scores))
    _, expected = min(by_penalty, key=lambda pair: pair[0])
    np.testing.assert_allclose(linear_rule(x, shares), expected, atol=1e-8)
    wide = rng.normal(size=(12, 30))  # more features than tasks
    scores = linear_rule(wide, shares[:12])
    assert scores.shape == (12, 3)
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)


def test_agreement_above_chance_is_counted():
    votes = np.array([[2, 0], [1, 1], [0, 3.0]])
    share = above_chance(np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]), votes)
    assert share.mean() == pytest.approx((2 + 1 + 3) / 7 - (1 / 3 * 3 / 7 + 2 / 3 * 4 / 7))
    assert above_chance(np.tile([0.6, 0.4], (3, 1)), votes).mean() == pytest.approx(0)


@pytest.mark.parametrize(
    ("options", "misleads", "expected"),
    [
        ({}, True, 30 // WARM),
        ({}, False, 1),
        ({"warmup": 4}, True, 4),
        ({"held_out": 0.1}, True, 15 // WARM),  # of the usual number, which may be fewer
        ({"held_out": 0.1, "epochs": 9}, True, 9 // WARM),
    ],
)
def test_a_third_of_the_epochs_learns_from_the_votes_where_the_classifier_would_mislead_at_first(
    options, misleads, expected
):
    assert warm_epochs(EMSettings(**{"epochs": 30, **options}), 15, misleads=misleads) == expected


@pytest.mark.parametrize(
    ("weights", "at_random"), [(np.eye(4), False), (np.eye(4)[[1, 2, 3, 0]], True), (0 * np.eye(4), False)]
)
def test_a_module_that_says_something_at_random_is_told_from_one_that_knows_the_classes_or_says_nothing(
    weights, at_random
):
    module = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    module.kernel[...] = jnp.asarray(weights)
    model, annotations = Model(STORIES["dawid_skene"], {"truth_prior": Classifier(module)}), crowd(n_tasks=60)
    start = starting_point(model, annotations, jax.random.key(0))
    assert speaks_at_random(model, start, annotations) == at_random


@pytest.mark.parametrize(("story", "decides"), [("difficulty", True), ("dawid_skene", False)])
def test_a_classifier_decides_the_annotations_of_some_stories(story, decides):
    model = Model(STORIES[story], {"truth_prior": NETWORK})
    assert classifier_decides_annotations(model, crowd(n_tasks=60)) == decides


def many_features(n_features, n_tasks=600, seed=0):
    """Three classes that a linear rule of the features tells in 85 % of new tasks or so, and a crowd of ten."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks + 500)
    x = 2 / np.sqrt(n_features) * rng.normal(size=(3, n_features))[truth] + rng.normal(size=(len(truth), n_features))
    right = rng.random((n_tasks, 10)) < rng.uniform(0.5, 0.9, 10)
    known = truth[:n_tasks, None]
    given = np.where(right, known, (known + rng.integers(1, 3, right.shape)) % 3)
    given[rng.random(right.shape).argsort(1) >= 3] = -1
    return cp.Annotations.from_matrix(given, features=x[:n_tasks].astype("f4")), x[n_tasks:], truth[n_tasks:]


def test_a_logistic_regression_that_learnt_its_tasks_by_heart_is_told_and_a_prior_helps():
    annotations, x, truth = many_features(150)
    with pytest.warns(cp.ConvergenceWarning, match="surer than its features"):
        by_heart = cp.fit("dawid_skene", annotations, classifier=Classifier("logistic", prior=None), progress=False)
    (finding,) = findings_of(by_heart, "too_sure")
    assert finding.values["probability"] > finding.values["right"] + 0.1
    assert "prior=1.0" in finding.remedy
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.ConvergenceWarning)
        helped = cp.fit("dawid_skene", annotations, classifier=Classifier("logistic", prior=0.1), progress=False)
    sure, right = {}, {}
    for name, fit in (("by heart", by_heart), ("helped", helped)):
        told = fit.predict_proba(x)
        sure[name], right[name] = told.max(-1).mean(), (told.argmax(-1) == truth).mean()
    assert sure["by heart"] > right["by heart"] + 0.15
    assert sure["helped"] <= right["helped"]
    assert right["helped"] > right["by heart"] + 0.05


@pytest.mark.parametrize("n_tasks", [100, 400, 2000])
def test_a_logistic_regression_that_is_rightly_sure_is_not_told_that_it_is_too_sure(n_tasks):
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.ConvergenceWarning)
        cp.fit("dawid_skene", crowd(n_tasks=n_tasks, tells=2.0), classifier="logistic", progress=False)


def two_classes(n_tasks, seed, tells=None):
    """Three annotations a task of workers who are right in .55 to .9, and ten features, some of which may tell."""
    rng = np.random.default_rng(seed)
    truth, ability = rng.integers(0, 2, n_tasks), rng.uniform(0.55, 0.9, 10)
    given = np.where(rng.random((n_tasks, 10)) < ability, truth[:, None], 1 - truth[:, None])
    given[rng.random(given.shape).argsort(1) >= 3] = -1
    x = rng.normal(size=(n_tasks, 10))
    side = rng.integers(0, 2, n_tasks)
    if tells == "one":
        x[:, 0] += 2 * truth
    elif tells == "whether two differ":  # to which a linear rule is blind
        x[:, :2] += 4 * np.stack([side, side ^ truth], 1) - 2
    return cp.Annotations.from_matrix(given, features=x.astype("f4"), ordered=False)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_features_that_tell_nothing_are_told_where_a_network_learnt_the_tasks_by_heart():
    fits = [cp.fit("dawid_skene", two_classes(150, seed), classifier="mlp", progress=False) for seed in range(4)]
    found = [findings_of(fit, "untold") for fit in fits]
    assert sum(map(bool, found)) >= 3
    values = next(filter(None, found))[0].values
    assert values["classifier"] > values["rule"] + 10


@pytest.mark.parametrize("tells", ["one", "whether two differ"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_features_that_tell_are_not_said_to_tell_nothing(tells):
    for seed in range(3):
        fit = cp.fit("dawid_skene", two_classes(400, seed, tells), classifier="mlp", progress=False)
        assert findings_of(fit, "untold") == []


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_features_too_small_for_the_prior_of_the_weights_are_told_with_the_prior_that_suits_them():
    annotations = two_classes(400, 0, "one")
    small = annotations.replace(features=annotations.features / 20)
    fits = {
        name: cp.fit("dawid_skene", data, classifier=classifier, progress=False)
        for name, data, classifier in (
            ("usual", annotations, Classifier("logistic", bias=False)),
            ("small", small, "logistic"),
            ("mended", small, Classifier("logistic", bias=False, prior=20.0)),
            ("flat", small, Classifier("logistic", prior=None)),
        )
    }
    told = {name: findings_of(fit, "small_features") for name, fit in fits.items()}
    assert {name: len(found) for name, found in told.items()} == {"usual": 0, "small": 1, "mended": 0, "flat": 0}
    assert "prior=1" in told["small"][0].remedy
    np.testing.assert_allclose(fits["mended"].posterior, fits["usual"].posterior, atol=2e-3)
