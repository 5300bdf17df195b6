"""What is particular to the stories beside the five: spammers, difficulty, pooling, clusters, subtypes."""

from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from scipy.special import expit
from scipy.stats import chisquare, dirichlet, norm
from whole_density import density

import crowdppl as cp
from crowdppl import Annotations, StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_spec, starting_point
from crowdppl.inference.engines.m_step import gradient
from crowdppl.models import STORIES, AnnotationLikelihood, Correct, Subtypes
from crowdppl.models.parts.subtypes import ConfusionMixture


@pytest.fixture(scope="module")
def binary():
    return random_annotations(np.random.default_rng(2), n_tasks=6, n_workers=3, n_classes=2, n_rows=14)


def test_mace_finds_the_spammer_and_what_he_annotations():
    """Three who know nine times in ten, one who annotates 0.1, 0.2, 0.7 whatever the task; 2,000 tasks."""
    ability = np.array([[0.1, 0.9]] * 3 + [[1.0, 0.0]])
    strategy = np.array([[1 / 3] * 3] * 3 + [[0.1, 0.2, 0.7]])
    annotations, _ = cp.simulate(
        "mace", n_tasks=2000, n_workers=4, n_classes=3, parameters={"ability": ability, "strategy": strategy}, seed=1
    )
    fit = cp.fit("mace", annotations, progress=False)
    np.testing.assert_allclose(fit.parameters["ability"][:, 1], ability[:, 1], atol=0.06)
    np.testing.assert_allclose(fit.parameters["strategy"][3], strategy[3], atol=5 * 0.5 / np.sqrt(2000))
    assert fit.workers["spammer_score"].iloc[3] < 0.01


def test_maces_m_step_counts_who_knew_and_who_spammed(tiny):
    """With r = P(knew | annotation, truth), counted in loops over annotations and classes."""
    rng = np.random.default_rng(0)
    theta = {
        "prevalence": rng.dirichlet(np.ones(3)).astype("f4"),
        "ability": rng.dirichlet([1, 2], 3).astype("f4"),
        "strategy": rng.dirichlet(np.ones(3), 3).astype("f4"),
    }
    model = Model(STORIES["mace"], {"knows": 3.0, "spams": 1.5, "habit": 2.0})
    posterior = np.asarray(density(model, theta, tiny).posterior)
    ability, strategy = np.tile([1.5, 3.0], (3, 1)), np.full((3, 3), 2.0)
    for task, worker, label in zip(tiny.task, tiny.worker, tiny.label, strict=True):
        knew = theta["ability"][worker, 1]
        spammed = theta["ability"][worker, 0] * theta["strategy"][worker, label]
        for k in range(3):
            spam = posterior[task, k] * (spammed / (knew + spammed) if k == label else 1.0)
            ability[worker] += [spam, posterior[task, k] - spam]
            strategy[worker, label] += spam
    counts = gradient(model, tiny, parameter_spec(model, tiny), theta).counts
    np.testing.assert_allclose(counts["ability"], ability, atol=1e-5)
    np.testing.assert_allclose(counts["strategy"], strategy, atol=1e-5)


def test_glads_difficulty_is_higher_where_tasks_are_hard():
    """Half of the tasks hard, 20 workers each: nine in ten are found to be hard or easy rightly."""
    hard = np.arange(400) < 200
    annotations, _ = cp.simulate(
        "glad",
        n_tasks=400,
        n_workers=20,
        n_classes=4,
        parameters={"difficulty": np.where(hard, 1.0, -1.5), "ability": np.linspace(0.5, 1.5, 20)},
        seed=2,
    )
    fit = cp.fit("glad", annotations, progress=False)
    difficulty = fit.parameters["difficulty"].to_numpy()
    assert (difficulty[hard][:, None] > difficulty[~hard]).mean() > 0.9
    assert (fit.posterior.argmax(-1) == annotations.gold)[~hard].mean() > 0.95


@pytest.mark.parametrize("guess", [None, np.array([0.2, 0.5, 0.9])])
@pytest.mark.parametrize("by_class", [True, False])
def test_right_annotations_have_the_formulas_probability(guess, by_class):
    rng = np.random.default_rng(3)
    ability, scale, offset = rng.normal(size=(2, 4 if by_class else 1)), rng.lognormal(size=3), rng.normal(size=3)
    emission = Correct(ability, 4, scale, offset, guess)
    pairs = list(product(range(2), range(3)))
    worker, task = np.array(pairs).T
    expected = np.empty((6, 4, 4))
    for a, (j, i) in enumerate(pairs):
        for k in range(4):
            g = 0.0 if guess is None else guess[i]
            logit = scale[i] * ability[j, k if by_class else 0] + offset[i]
            expected[a, k] = (1 - g) * expit(-logit) / 3
            expected[a, k, k] = g + (1 - g) * expit(logit)
    np.testing.assert_allclose(emission.probs(worker, task), expected, atol=1e-6)
    for y in range(4):
        rows = emission.log_prob(worker, task, jnp.full(6, y))
        np.testing.assert_allclose(rows, np.log(expected[:, :, y]), atol=1e-5)
    for k in range(4):
        np.testing.assert_allclose(emission.probs_given(worker, task, jnp.full(6, k)), expected[:, k], atol=1e-6)


def test_item_response_without_options_is_two_coins_with_normal_logits(binary):
    rng = np.random.default_rng(0)
    sensitivity, specificity, prevalence = rng.normal(size=3), rng.normal(size=3), np.array([0.3, 0.7])
    theta = {"sensitivity": sensitivity, "specificity": specificity, "prevalence": prevalence}
    at = density(Model(STORIES["item_response"], {"difficulty": False}), theta, binary)
    right, wrong = expit(np.stack([specificity, sensitivity], -1)), expit(-np.stack([specificity, sensitivity], -1))
    coins = {"sensitivity": np.stack([wrong, right], -1)[:, 1], "specificity": np.stack([right, wrong], -1)[:, 0]}
    two_coin = density(Model(STORIES["two_coin"]), coins | {"prevalence": prevalence}, binary)
    np.testing.assert_allclose(at.log_joint, two_coin.log_joint, rtol=1e-4)
    log_prior = norm.logpdf(sensitivity, 1, 2).sum() + norm.logpdf(specificity, 2, 2).sum()
    np.testing.assert_allclose(at.log_prior, log_prior, rtol=1e-5)  # the prevalence's is log 1


def test_item_response_has_the_sites_that_are_asked_for(binary):
    seen = {}
    for options in product([False, True], repeat=3):
        asked = dict(zip(("difficulty", "discrimination", "guessing"), options, strict=True))
        sites = set(starting_point(Model(STORIES["item_response"], asked), binary, jax.random.key(0)))
        seen[options] = sites - {"sensitivity", "specificity", "prevalence"}
    names = np.array(["difficulty", "discrimination", "guess"])
    assert seen == {options: set(names[list(options)]) for options in seen}


def test_guesses_raise_what_the_unable_get_right():
    """No worker knows anything, yet each is right by luck three times in four."""
    parameters = {
        "sensitivity": np.full(5, -20.0),
        "specificity": np.full(5, -20.0),
        "guess": np.tile([0.25, 0.75], (4000, 1)),
    }
    annotations, _ = cp.simulate("item_response", n_tasks=4000, n_workers=5, parameters=parameters, guessing=True)
    right = annotations.label == annotations.gold[annotations.task]
    assert abs(right.mean() - 0.75) < 5 * 0.5 / np.sqrt(len(right))


@pytest.mark.parametrize("name", ["two_coin", "item_response"])
def test_stories_of_two_classes_refuse_three(tiny, name):
    with pytest.raises(StoryError, match="the annotations have 3"):
        cp.fit(name, tiny, progress=False)


@pytest.mark.slow
def test_pooling_draws_workers_with_few_annotations_to_the_crowd():
    """One worker of three annotations, all wrong, among 30 good ones: their accuracy is drawn towards the crowd's."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    labels = np.where(rng.random((300, 30)) < 0.9, truth[:, None], 1 - truth[:, None])
    frame = Annotations.from_matrix(labels).to_frame()
    few = {"task": [0, 1, 2], "worker": [30] * 3, "label": 1 - truth[:3]}
    annotations = Annotations.from_frame(pd.concat([frame, pd.DataFrame(few)]))
    alone = cp.fit("dawid_skene", annotations, diagonal=1.0, progress=False).workers["accuracy"].iloc[-1]
    for name in ("hierarchical_dawid_skene", "worker_clusters"):
        pooled = cp.fit(name, annotations, progress=False).workers["accuracy"].iloc[-1]
        assert pooled > alone + 0.05


def test_the_crowds_spread_is_found():
    """Workers who differ in one row of their tables only: that row's spread is the greater one."""
    rng = np.random.default_rng(0)
    individual = rng.normal(size=(60, 2, 2))
    parameters = {
        "common": [[2.0, 0.0], [0.0, 2.0]],
        "spread": [[0.01, 0.01], [1.5, 1.5]],
        "individual": individual,
        "prevalence": [0.5, 0.5],
    }
    annotations, _ = cp.simulate("hierarchical_dawid_skene", n_tasks=500, n_workers=60, parameters=parameters, seed=1)
    spread = cp.fit("hierarchical_dawid_skene", annotations, progress=False).parameters["spread"].to_numpy()
    assert spread[1].mean() > 3 * spread[0].mean()


def test_clusters_of_workers_are_found():
    """36 good workers, 12 spammers, 12 adversaries: every worker is in the cluster of their kind."""
    tables = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]], [[0.2, 0.8], [0.8, 0.2]]])
    actual = np.repeat([0, 0, 0, 1, 2], 12)
    annotations, _ = cp.simulate(
        "worker_clusters", n_tasks=600, n_workers=60, parameters={"confusion": tables[actual]}, seed=0
    )
    fit = cp.fit("worker_clusters", annotations, strength=20.0, progress=False)
    at = {name: value.to_numpy() for name, value in fit.parameters.items()}
    clusters = ConfusionMixture(at["weights"], np.asarray(jax.nn.softmax(at["cluster_logits"])), 20.0)
    found = np.asarray(clusters.membership(at["confusion"])).argmax(-1)
    assert max(np.mean(np.array(names)[found] == actual) for names in permutations(range(3))) == 1.0
    np.testing.assert_allclose(np.sort(fit.parameters["weights"]), [0.2, 0.2, 0.6], atol=0.05)


def test_the_density_of_clustered_tables_is_the_mixture_of_dirichlets():
    rng = np.random.default_rng(0)
    weights, tables, value = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), (3, 4)), rng.dirichlet(np.ones(4), 4)
    with jax.enable_x64(True):
        mixture = ConfusionMixture(jnp.asarray(weights), jnp.asarray(tables), 7.0)
        found, membership = float(mixture.log_prob(value)), np.asarray(mixture.membership(value))
    joint = np.array(
        [
            w * np.prod([dirichlet.pdf(v, 1 / 4 + 7.0 * c) for v, c in zip(value, table, strict=True)])
            for w, table in zip(weights, tables, strict=True)
        ]
    )
    np.testing.assert_allclose(found, np.log(joint.sum()), rtol=1e-10)
    np.testing.assert_allclose(membership, joint / joint.sum(), rtol=1e-8)


@pytest.mark.slow
def test_one_cluster_is_a_common_dirichlet_prior(tiny):
    """With one cluster, and its table known, the workers' tables are Dawid & Skene's under that prior."""
    rng = np.random.default_rng(0)
    confusion, logits = rng.dirichlet(np.ones(3), (3, 3)), rng.normal(size=(1, 3, 3))
    theta = {"confusion": confusion, "prevalence": rng.dirichlet(np.ones(3)), "weights": np.ones(1)}
    model = Model(STORIES["worker_clusters"], {"clusters": 1, "strength": 5.0})
    at = density(model, theta | {"cluster_logits": logits}, tiny)
    centre = np.asarray(jax.nn.softmax(logits[0], -1))
    counts = gradient(
        model, tiny, parameter_spec(model, tiny), jax.tree.map(jnp.asarray, theta | {"cluster_logits": logits})
    )
    plain = Model(
        STORIES["dawid_skene"],
        {"history": np.broadcast_to(5.0 * centre, (3, 3, 3)), "diagonal": 1 / 3, "off_diagonal": 1 / 3},
    )
    theirs = gradient(plain, tiny, parameter_spec(plain, tiny), jax.tree.map(jnp.asarray, theta))
    np.testing.assert_allclose(at.log_joint, theirs.at.log_joint, rtol=1e-5)
    np.testing.assert_allclose(counts.counts["confusion"], theirs.counts["confusion"], atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_cluster_counts_like_one_annotation_more_than_its_strength_whatever_the_classes(n_classes):
    """A worker without annotations has, at the mode of log-odds, the prior's mean: near the cluster's own matrix."""
    table = 0.8 * np.eye(n_classes) + 0.2 * np.full((n_classes, n_classes), 1 / n_classes)
    mixture = ConfusionMixture(jnp.ones(1), jnp.asarray(table)[None], 9.0)
    concentration = np.asarray(mixture.base_dist.concentration)
    np.testing.assert_allclose(concentration.sum(-1), 10.0, rtol=1e-5)
    np.testing.assert_allclose(concentration / 10.0, 0.9 * table + 0.1 / n_classes, rtol=1e-5)
    drawn = np.asarray(mixture.sample(jax.random.key(0), (2_000,)))
    assert np.abs(drawn.mean(0) - concentration / 10.0).max() < 4.5 * 0.5 / np.sqrt(11 * 2_000)


def test_one_subtype_is_dawid_and_skene(binary):
    with jax.enable_x64(True):
        ours = cp.fit("independent_confusion_subtypes", binary, subtypes=1, tolerance=1e-12, progress=False)
        theirs = cp.fit("dawid_skene", binary, tolerance=1e-12, progress=False)
    np.testing.assert_allclose(ours.history.iloc[-1], theirs.history.iloc[-1], rtol=1e-6)
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=1e-3)


def test_subtypes_explain_errors_that_workers_share():
    """A trap in class 1 that most fall into: majorities are wrong about it, the story with subtypes is not.

    Workers annotate one in ten at random; a third of class 1 are traps, annotated 0 by four of five workers and
    1 by two who see through them.
    """
    rng = np.random.default_rng(0)
    n, truth = 1500, rng.integers(0, 2, 1500)
    trap = (truth == 1) & (rng.random(n) < 1 / 3)
    sees_through = np.arange(10) < 2
    labels = np.where(trap[:, None] & ~sees_through, 0, truth[:, None])
    labels = np.where(rng.random((n, 10)) < 0.1, 1 - labels, labels)
    annotations = Annotations.from_matrix(labels, gold=dict(enumerate(truth)))
    plain = cp.fit("dawid_skene", annotations, progress=False)
    fit = cp.fit("independent_confusion_subtypes", annotations, gold={i: truth[i] for i in range(50)}, progress=False)
    assert (plain.posterior.argmax(-1) == truth)[trap].mean() < 0.6
    assert (fit.posterior.argmax(-1) == truth).mean() > 0.9
    np.testing.assert_allclose(np.sort(fit.parameters["weights"][1]), [1 / 3, 2 / 3], atol=0.06)


def test_annotations_to_a_task_share_its_subtype():
    """Rows that are certain given the subtype: all annotations to a task agree, and the tasks split by the weights."""
    table = np.zeros((3, 2, 2, 2), dtype="f4")
    table[:, :, 0, 0] = table[:, :, 1, 1] = 1.0
    weights = np.array([[0.25, 0.75], [0.6, 0.4]])
    annotations = Annotations.from_matrix(np.zeros((8000, 3), dtype=int), classes=range(2))
    truth = jnp.arange(8000) % 2
    answers = AnnotationLikelihood(truth, Subtypes(table, weights), annotations).sample(jax.random.key(0))
    answers = np.asarray(answers).reshape(8000, 3)
    assert (answers == answers[:, :1]).all()
    for k in range(2):
        observed = np.bincount(answers[k::2, 0], minlength=2)
        assert chisquare(observed, 4000 * weights[k]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mace", {"knows": 0}, "knows=0: a finite number above 0"),
        ("mace", {"habit": -1.0}, "habit=-1.0"),
        ("glad", {"ability_scale": 0.0}, "ability_scale=0.0"),
        ("glad", {"difficulty_scale": np.nan}, "difficulty_scale=nan"),
        ("hierarchical_dawid_skene", {"spread": 0}, "spread=0"),
        ("worker_clusters", {"clusters": 0}, "clusters=0: a whole number from 1"),
        ("worker_clusters", {"clusters": 2.5}, "clusters=2.5"),
        ("worker_clusters", {"strength": -1}, "strength=-1"),
        ("independent_confusion_subtypes", {"subtypes": True}, "subtypes=True"),
        ("independent_confusion_subtypes", {"share": 0}, "share=0"),
    ],
)
def test_hyperparameters_that_cannot_be_are_refused_by_name(tiny, name, options, message):
    with pytest.raises(StoryError, match=message):
        cp.fit(name, tiny, progress=False, **options)


@pytest.mark.parametrize(
    ("story", "one"),
    [
        ("annotator_groups", {"groups": 1}),
        pytest.param("annotator_groups", {"groups": 1, "membership": "worker"}, marks=pytest.mark.slow),
        ("worker_clusters", {"clusters": 1}),
        ("independent_confusion_subtypes", {"subtypes": 1}),
    ],
)
def test_one_kind_has_no_shares_to_fit_and_svi_fits_the_rest(story: str, one: dict) -> None:
    fit = cp.fit(story, cp.load_dataset("anesthesia"), method="svi", max_iterations=5, draws=5, progress=False, **one)
    assert "weights" not in fit.draws
    assert np.isfinite(fit.history).all()
    np.testing.assert_allclose(fit.posterior.sum(-1), 1.0, rtol=1e-5)


def test_a_share_of_groups_is_refused_where_no_weights_are_drawn():
    data = cp.load_dataset("anesthesia").without_gold()
    with pytest.raises(cp.StoryError, match=r"share=0\.5 would be ignored"):
        cp.fit("annotator_groups", data, groups=1, share=0.5, max_iterations=2, progress=False)
