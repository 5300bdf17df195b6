"""What holds for every story of the registry with its defaults, and what a story declares of itself."""

import inspect
import json

import numpy as np
import numpyro
import pandas as pd
import pytest
from numpyro import distributions as dist
from story_options import DEFAULTS, FURTHER, N_TASKS

import crowdppl as cp
from crowdppl import Classifier, Prevalence, SmoothPrevalence, StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import site_roles
from crowdppl.models import KNOWN_STORIES, STORIES, Given, SharedConfusion
from crowdppl.models.parts.general import apply_parts
from crowdppl.models.parts.truth_prior import truth_prior_from_json

HERE = ("dawid_skene", "difficulty")  # tests/models/test_every_story.py simulates and fits the others


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in HERE)) for n in STORIES])
def test_it_simulates_itself_and_fits_what_it_simulated(name):
    annotations, parameters = cp.simulate(name, n_tasks=40, n_workers=5, seed=1)
    assert annotations.n_rows == 200
    assert parameters
    fit = cp.fit(name, annotations, progress=False, max_iterations=5)
    np.testing.assert_allclose(fit.posterior.sum(-1), 1.0, atol=1e-5)


def test_difficultys_simulation_brings_features_that_decide_the_truth():
    """1,000 tasks: logistic regression on the features is right more often than the most frequent class, by far."""
    from sklearn.linear_model import LogisticRegression

    annotations, _ = cp.simulate("difficulty", n_tasks=1000, n_workers=3)
    right = (
        LogisticRegression().fit(annotations.features, annotations.gold).score(annotations.features, annotations.gold)
    )
    assert right > 0.75


def test_difficulties_come_from_the_prior_where_it_differs_by_task_and_from_votes_elsewhere():
    by_prior = next(o for o in FURTHER if o.story == "difficulty" and "prior" in o.has)
    annotations = by_prior.annotations()
    clarity = (annotations.prior.max(-1) - 0.5) ** 2
    shares = np.full((N_TASKS, 2), [0.3, 0.7])
    for options, expected in [
        ({"truth_prior": np.asarray(annotations.prior)}, clarity),
        ({"votes": shares}, np.full(N_TASKS, 0.04)),
        ({"votes": shares, "truth_prior": np.asarray(annotations.prior)}, np.full(N_TASKS, 0.04)),
    ]:
        fit = cp.fit("difficulty", annotations.replace(prior=None), progress=False, max_iterations=2, **options)
        np.testing.assert_allclose(fit.derived["difficulty"], expected, atol=1e-5)


def test_votes_are_refused_where_nothing_reads_them():
    with pytest.raises(StoryError, match="kind='fixed'"):
        cp.fit("difficulty", DEFAULTS[0].annotations(), kind="adaptive", votes=np.full((N_TASKS, 2), 0.5))


def test_a_story_without_truth_or_annotations_says_which_helper_it_lacks():
    def nothing(annotations, *, truth_prior=None):
        pass

    def unobserved(annotations, *, truth_prior=None):
        with cp.tasks(annotations, truth_prior):
            pass

    annotations = DEFAULTS[0].annotations()
    for story, message in [
        (nothing, r"'nothing' has no site 'truth' in the plate 'task', .*cp\.tasks"),
        (unobserved, r"'unobserved' has no site 'annotation' .*cp\.observe"),
    ]:
        with pytest.raises(StoryError, match=message):
            cp.fit(story, annotations, progress=False)
        with pytest.raises(StoryError, match=message):
            cp.simulate(story, n_tasks=3, n_workers=2)


def test_two_sites_of_one_name_over_tasks_are_refused_by_it():
    def twice(annotations, *, truth_prior=None):
        table = numpyro.sample("table", dist.Dirichlet(np.ones((2, 2), np.float32)).to_event(1))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, SharedConfusion(table), annotations)
            cp.observe(truth, SharedConfusion(table), annotations)

    with pytest.raises(StoryError, match="two sites 'annotation' in the plate 'task'; give one another name"):
        cp.fit(twice, DEFAULTS[0].annotations(), progress=False)


ROLES = {
    "dawid_skene": {"confusion": "confusion"},
    "difficulty": {"difficulty": "clarity"},
    "annotator_groups-membership=worker": {
        "group_confusion": "group_confusion",
        "worker_confusion": "confusion",
        "group_share": "group_share",
    },
    "worker_clusters": {
        "confusion": "confusion",
        "group_confusion": "group_confusion",
        "group_share": "group_share",
        "membership": "membership",
    },
    "common_individual": {
        "common": "confusion",
        "individual": "confusion",
        "switch": "switch",
        "switch_by_worker": "switch",
        "switch_by_task": "switch",
    },
    "glad": {},
}


@pytest.mark.parametrize("name", ROLES)
def test_sites_say_what_they_are(name):
    option = next(o for o in [*DEFAULTS, *FURTHER] if o.name == name)
    assert site_roles(Model(STORIES[option.story], option.options), option.annotations()) == ROLES[name]


def test_clusters_shares_are_of_the_annotations():
    annotations, _ = cp.simulate("worker_clusters", n_tasks=30, n_workers=6, annotations_per_task=3, tail=1.0)
    fit = cp.fit("worker_clusters", annotations, progress=False)
    given = np.bincount(annotations.worker, minlength=6)
    expected = given @ fit.derived["membership"].to_numpy() / given.sum()
    np.testing.assert_allclose(fit.derived["group_share"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "prior",
    [
        Prevalence(),
        Prevalence((1.0, 2.0)),
        SmoothPrevalence(),
        SmoothPrevalence(None),
        Given(),
        Classifier("mlp", hidden=(3,), dropout=0.1),
        Classifier(prior=1.0),
    ],
    ids=repr,
)
def test_a_truth_prior_comes_back_from_json(prior):
    assert truth_prior_from_json(json.loads(json.dumps(prior.to_json()))) == prior


def test_a_network_of_ones_own_is_asked_for():
    def network(x):
        return x

    saved = Classifier(network).to_json()
    with pytest.raises(StoryError, match="give the network"):
        truth_prior_from_json(saved)
    assert truth_prior_from_json(saved, network) == Classifier(network)


def test_a_classifier_predicts_new_tasks_from_its_fit_and_a_prevalence_refuses():
    annotations, _ = cp.simulate("difficulty", n_tasks=60, n_workers=5)
    fit = cp.fit("one_coin", annotations, classifier="logistic", progress=False)
    x = np.array([[0.0, 1.0], [2.0, -1.0]], dtype=np.float32)
    prior = fit.model.hyperparameters["truth_prior"]
    found = prior.predict_proba(x, 2, fit.outcome.draws, fit.outcome.fixed)
    np.testing.assert_allclose(found, fit.predict_proba(x), atol=1e-6)
    with pytest.raises(NotImplementedError, match="no classifier"):
        Prevalence().predict_proba(x, 2)


def test_probabilities_of_a_simulation_may_be_a_frame():
    frame = pd.DataFrame(np.eye(2)[[0, 1, 1]])
    annotations, _ = cp.simulate("one_coin", n_tasks=3, n_workers=2, truth_prior=frame)
    np.testing.assert_array_equal(annotations.gold, [0, 1, 1])


def flags():
    """Each story's hyperparameters that are True or False, and whether they may be None."""
    for story in KNOWN_STORIES.values():
        for each in inspect.signature(story).parameters.values():
            kind = str(each.annotation)
            if kind in ("bool", "bool | None", "<class 'bool'>"):
                yield pytest.param(story, each.name, "None" in kind, id=f"{story.__module__}-{each.name}")


@pytest.mark.parametrize(("story", "flag", "maybe"), list(flags()))
@pytest.mark.parametrize("value", ["no", "False", 0, 1.0])
def test_a_flag_is_true_or_false_and_no_text(story, flag, maybe, value):
    needed = "True, False or None is needed" if maybe else "True or False is needed"
    with pytest.raises(StoryError, match=f"^{flag}={value!r}: {needed}$"):
        apply_parts(story, {flag: value})
    for accepted in (True, np.bool_(False), *([None] if maybe else [])):
        assert apply_parts(story, {flag: accepted})[1] == {flag: accepted}


def test_a_fit_refuses_flags_that_are_text():
    annotations = cp.load_dataset("anesthesia")
    for story, given in (
        ("annotator_groups", {"gated": "no"}),
        ("confusion_from_features", {"by_task": "no"}),
        ("common_individual", {"by_task": "no"}),
        ("dawid_skene", {"progress": "no"}),
        ("dawid_skene", {"accelerate": "no"}),
    ):
        with pytest.raises(ValueError, match="='no': True"):
            cp.fit(story, annotations, **given)
    with pytest.raises(StoryError, match="batch_norm='no': True or False is needed"):
        Classifier("mlp", batch_norm="no")
