"""The variants of the five stories: each against its formula, by loops."""

from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from whole_density import density

import crowdppl as cp
from crowdppl import Classifier, StoryError, UnknownNameError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import derived
from crowdppl.models import STORIES, Correct

N, J, K = 6, 3, 3


def as_they_are(x):
    """A classifier whose logits are the features."""
    return x


LOGITS = Classifier(as_they_are)


@pytest.fixture(scope="module")
def featured():
    rng = np.random.default_rng(4)
    annotations = random_annotations(rng, n_tasks=N, n_workers=J, n_classes=K, n_rows=14)
    return annotations.replace(features=rng.normal(0, 1.5, (N, K)).astype("f4"))


def probabilities(annotations):
    return np.exp(np.asarray(jax.nn.log_softmax(annotations.features), dtype=float))


def by_loops(annotations, prior, table):
    """log p(y_i) and P(z_i = k | y_i), for ``table(worker, task, truth) -> probabilities of the annotations``."""
    joint = np.array(prior, dtype=float)
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        joint[task] *= [table(worker, task, k)[label] for k in range(joint.shape[1])]
    return np.log(joint.sum(-1)), joint / joint.sum(-1, keepdims=True)


def assert_same(at, log_likelihood, posterior):
    np.testing.assert_allclose(at.log_likelihood, log_likelihood, atol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)


def test_adaptive_difficulty_is_the_classifiers_doubt(featured):
    ability = np.random.default_rng(0).lognormal(1.0, 1.0, (J, K)).astype("f4")
    p = probabilities(featured)
    d = (p.max(-1) - 1 / K) ** 2

    def table(worker, task, truth):
        odds = np.exp(float(ability[worker, truth]) * d[task])
        row = np.full(K, 1 / (odds + K - 1))
        row[truth] = odds / (odds + K - 1)
        return row

    model = Model(STORIES["difficulty"], {"truth_prior": LOGITS, "by_class": True})
    assert_same(density(model, {"ability": ability}, featured), *by_loops(featured, p, table))
    values, _ = derived(model, {"ability": ability}, featured)
    np.testing.assert_allclose(values["difficulty"], d, atol=1e-6)
    of_all, ability = Model(STORIES["difficulty"], {"truth_prior": LOGITS}), np.repeat(ability[:, :1], K, axis=1)
    expected = by_loops(featured, p, table)
    assert_same(density(of_all, {"ability": ability[:, :1]}, featured), *expected)


def test_difficulty_of_two_classes_is_the_papers(featured):
    """Equations 1 and 2: σ(λ¹ d) and σ(λ² d) with d = (p − ½)²; an expert's coins are σ(λ / 4)."""
    binary = random_annotations(np.random.default_rng(1), n_tasks=N, n_workers=J, n_classes=2, n_rows=14)
    binary = binary.replace(features=featured.features[:, :2])
    ability = np.array([[1.0, 5.0], [3.0, 0.5], [8.0, 2.0]], dtype="f4")  # λ², λ¹
    p = probabilities(binary)
    d = (p[:, 1] - 0.5) ** 2

    def table(worker, task, truth):
        right = 1 / (1 + np.exp(-float(ability[worker, truth]) * d[task]))
        return [right, 1 - right] if truth == 0 else [1 - right, right]

    model = Model(STORIES["difficulty"], {"truth_prior": LOGITS})
    assert_same(density(model, {"ability": ability}, binary), *by_loops(binary, p, table))
    values, _ = derived(model, {"ability": ability}, binary)
    np.testing.assert_allclose(values["recall"], 1 / (1 + np.exp(-ability / 4)), rtol=1e-5)


def test_fixed_difficulty_has_the_votes_as_prior_and_a_classifier_that_does_not_talk_back(featured):
    ability = np.full((J, 1), 6.0, dtype="f4")
    shares = featured.votes() / np.maximum(featured.votes().sum(-1, keepdims=True), 1)
    shares[featured.votes().sum(-1) == 0] = 1 / K
    silent = density(Model(STORIES["difficulty"], {"kind": "fixed"}), {"ability": ability}, featured)
    np.testing.assert_allclose(np.exp(silent.truth_prior), shares, atol=1e-6)
    student = Model(STORIES["difficulty"], {"kind": "fixed", "truth_prior": Classifier("logistic", prior=None)})
    weights = {"classifier.linear.kernel": np.eye(K, dtype="f4"), "classifier.linear.bias": np.zeros(K, "f4")}

    def log_likelihood(weights):
        return density(student, {"ability": ability} | weights, featured).log_likelihood.sum()

    np.testing.assert_allclose(log_likelihood(weights), silent.log_likelihood.sum(), rtol=1e-6)
    slope = jax.grad(log_likelihood)(weights)["classifier.linear.bias"]
    expected = (np.asarray(silent.posterior) - probabilities(featured)).sum(0)  # of the cross-entropy
    np.testing.assert_allclose(slope, expected, atol=1e-4)


@pytest.mark.parametrize("network", ["logistic", "mlp"])
@pytest.mark.parametrize("through", [None, True, False])
def test_the_gradient_through_the_difficulty_is_that_of_the_whole_likelihood(featured, network, through):
    """The central difference of the log-likelihood, in float64; without it, with the difficulties held."""
    with jax.enable_x64(True):
        told = Classifier(network, hidden=(4,), dropout=0.0, prior=None)
        model = Model(STORIES["difficulty"], {"truth_prior": told, "through_difficulty": through})
        rng = np.random.default_rng(2)
        shapes = told.shapes((K,), K)
        weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        direction = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        ability = {"ability": rng.lognormal(2.0, 0.5, (J, 1))}
        clarity = derived(model, weights | ability, featured)[0]["difficulty"]

        def log_likelihood(weights):
            return density(model, weights | ability, featured).log_likelihood.sum()

        def moved(step):
            there = {name: weights[name] + step * direction[name] for name in weights}
            if learns:
                return log_likelihood(there)
            at = density(model, there | ability, featured)
            held = Correct(ability["ability"], K, scale=clarity, offset=-np.log(K - 1))
            joint = at.truth_prior + held.by_task(featured, featured.label)
            return jax.scipy.special.logsumexp(joint, axis=-1).sum()

        learns = network == "logistic" if through is None else through
        slope = jax.grad(log_likelihood)(weights)
        along = sum((slope[name] * direction[name]).sum() for name in weights)
        difference = (moved(1e-6) - moved(-1e-6)) / 2e-6
        np.testing.assert_allclose(along, difference, rtol=1e-6)


def test_through_difficulty_is_refused_where_nothing_learns_or_all_of_it_must(featured):
    told = {"progress": False, "through_difficulty": False}
    with pytest.raises(StoryError, match="one with a prior has a posterior"):
        cp.fit("difficulty", featured, classifier=Classifier("logistic", prior=1.0), **told)
    with pytest.raises(StoryError, match="given probabilities learn nothing"):
        cp.fit("difficulty", featured, truth_prior=np.full((N, K), 1 / K), **told)
    with pytest.raises(StoryError, match="come from the annotations"):
        cp.fit("difficulty", featured, kind="fixed", **told)


def test_difficulty_needs_something_to_come_from(featured):
    with pytest.raises(StoryError, match=r"give a classifier, .*kind='fixed'"):
        cp.fit("difficulty", featured, kind="adaptive", progress=False)
    with pytest.raises(StoryError, match="has no posterior"):
        cp.fit("difficulty", featured, kind="fixed", classifier=Classifier("logistic", prior=1.0), progress=False)
    with pytest.raises(StoryError, match=r"'adaptive' or 'fixed'"):
        cp.fit("difficulty", featured, kind="adaptiv", progress=False)
    with pytest.raises(StoryError, match=r"votes have shape \(2, 3\); \(tasks, classes\) = \(6, 3\)"):
        cp.fit("difficulty", featured, kind="fixed", votes=np.ones((2, 3)), progress=False)
    with pytest.raises(StoryError, match="to simulate annotations, give votes="):
        cp.simulate("difficulty", n_tasks=3, n_workers=2, kind="fixed")


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(5)
    return {
        "weights": rng.dirichlet(np.ones(2)).astype("f4"),
        "group_confusion": rng.dirichlet(np.ones(K), (2, K)).astype("f4"),
    }


def test_groups_share_their_mixed_table(featured, groups):
    mixed = np.einsum("m,mkl->kl", groups["weights"], groups["group_confusion"])
    model = Model(STORIES["annotator_groups"], {"groups": 2, "truth_prior": LOGITS})
    expected = by_loops(featured, probabilities(featured), lambda worker, task, truth: mixed[truth])
    assert_same(density(model, groups, featured), *expected)


def test_groups_by_worker_mix_by_each_workers_weights(featured, groups):
    weights = np.random.default_rng(6).dirichlet(np.ones(2), J).astype("f4")
    mixed = np.einsum("jm,mkl->jkl", weights, groups["group_confusion"])
    model = Model(STORIES["annotator_groups"], {"groups": 2, "membership": "worker", "truth_prior": LOGITS})
    expected = by_loops(featured, probabilities(featured), lambda worker, task, truth: mixed[worker, truth])
    assert_same(density(model, groups | {"weights": weights}, featured), *expected)


def test_a_truth_of_each_annotation_is_summed_out_annotation_by_annotation(featured, groups):
    """The paper's equations 3 and 4, by enumerating group and truth of every annotation."""
    p, (weights, tables) = probabilities(featured), groups.values()
    model = Model(STORIES["annotator_groups"], {"groups": 2, "truth": "answer", "truth_prior": LOGITS})
    expected = np.zeros(N)
    for task, label in zip(featured.task, featured.label, strict=True):
        pairs = product(range(2), range(K))
        expected[task] += np.log(sum(float(weights[m]) * float(tables[m, k, label]) * p[task, k] for m, k in pairs))
    assert_same(density(model, groups, featured), expected, p)


def test_gated_groups_mix_by_the_tasks_features(featured, groups):
    gate = np.random.default_rng(7).normal(size=(K + 1, 2)).astype("f4")
    scores = np.asarray(featured.features, dtype=float) @ gate[:-1] + gate[-1]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    mixed = np.einsum("im,mkl->ikl", weights, groups["group_confusion"])
    model = Model(STORIES["annotator_groups"], {"groups": 2, "gated": True, "truth_prior": LOGITS})
    parameters = {"gate": gate, "group_confusion": groups["group_confusion"]}
    expected = by_loops(featured, probabilities(featured), lambda worker, task, truth: mixed[task, truth])
    assert_same(density(model, parameters, featured), *expected)


def test_reported_groups_are_what_their_tables_are(featured):
    tables = np.stack([np.eye(K), np.full((K, K), 1 / K)]).astype("f4")
    model = Model(STORIES["annotator_groups"], {"groups": 2})
    parameters = {"weights": np.array([0.3, 0.7], "f4"), "group_confusion": tables, "prevalence": np.full(K, 1 / K)}
    values, dims = derived(model, parameters, featured)
    np.testing.assert_allclose(values["group_entropy"], [0.0, np.log(K)], atol=1e-6)
    middle = np.array([0.5 + 0.5 / K, *[0.5 / K] * (K - 1)])
    uniform, right = np.full(K, 1 / K), np.array([1.0, *[0.0] * (K - 1)])
    divergence = 0.5 * (uniform * np.log2(uniform / middle)).sum() + 0.5 * (right[0] * np.log2(1 / middle[0]))
    np.testing.assert_allclose(values["group_similarity"], [1.0, 1 - divergence], atol=1e-6)
    assert dims["group_share"] == ("group",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "groups=0: a whole number from 1"),
        ({"groups": 15}, "groups=15: there are 14 rows of annotations"),
        ({"gated": True, "membership": "worker"}, "needs membership='answer'"),
    ],
)
def test_groups_that_cannot_be_are_refused(featured, options, message):
    with pytest.raises(StoryError, match=message):
        cp.fit("annotator_groups", featured, progress=False, **options)


def test_a_membership_that_there_is_not_is_refused_with_the_one_that_was_meant(tiny):
    with pytest.raises(UnknownNameError, match="unknown membership 'workers'; did you mean 'worker'"):
        cp.fit("annotator_groups", tiny, progress=False, membership="workers")


def test_gates_without_features_are_refused(tiny):
    with pytest.raises(StoryError, match=r"gated=True\) needs features"):
        cp.fit("annotator_groups", tiny, gated=True, progress=False)


def test_groups_by_worker_need_names_and_the_message_names_what_does_not():
    with pytest.raises(StoryError, match="annotator_groups with membership='answer', which needs no names"):
        cp.fit("annotator_groups", cp.Annotations.from_counts(np.ones((2, 2), dtype=int)), membership="worker")


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(8)
    return {
        "common": rng.dirichlet(np.ones(K), K).astype("f4"),
        "individual": rng.dirichlet(np.ones(K), (J, K)).astype("f4"),
    }


@pytest.mark.parametrize("worker_features", [None, np.array([[1.0, 0.2], [-1.0, 2.0], [0.5, 0.5]], "f4")])
def test_the_switch_is_the_cosine_of_worker_and_task(featured, tables, worker_features):
    rng = np.random.default_rng(9)
    annotations = featured.replace(worker_features=worker_features)
    task_embedding = rng.normal(size=(K, 4)).astype("f4")
    worker_embedding = rng.normal(size=(J if worker_features is None else 2, 4)).astype("f4")
    v = np.asarray(featured.features, dtype=float) @ task_embedding
    u = worker_embedding.astype(float) if worker_features is None else worker_features @ worker_embedding
    cosine = (u / np.linalg.norm(u, axis=-1, keepdims=True)) @ (v / np.linalg.norm(v, axis=-1, keepdims=True)).T
    switch = 1 / (1 + np.exp(-cosine))

    def table(worker, task, truth):
        share = switch[worker, task]
        return share * tables["common"][truth] + (1 - share) * tables["individual"][worker, truth]

    model = Model(STORIES["common_individual"], {"embedding": 4, "truth_prior": LOGITS})
    parameters = tables | {"task_embedding": task_embedding, "worker_embedding": worker_embedding}
    assert_same(density(model, parameters, annotations), *by_loops(annotations, probabilities(annotations), table))
    values, _ = derived(model, parameters, annotations)
    of_rows = switch[annotations.worker, annotations.task]
    np.testing.assert_allclose(values["switch"], of_rows, atol=1e-5)
    by_worker = pd.Series(of_rows).groupby(annotations.worker).mean()
    np.testing.assert_allclose(values["switch_by_worker"], by_worker, atol=1e-5)
    by_task = pd.Series(of_rows).groupby(annotations.task).mean().reindex(range(N))
    np.testing.assert_allclose(values["switch_by_task"], by_task, atol=1e-5)


def test_without_features_the_switch_is_each_workers_coin(tiny, tables):
    coin = np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]], "f4")
    prevalence = np.array([0.2, 0.3, 0.5], "f4")

    def table(worker, task, truth):
        return coin[worker, 1] * tables["common"][truth] + coin[worker, 0] * tables["individual"][worker, truth]

    at = density(Model(STORIES["common_individual"]), tables | {"coin": coin, "prevalence": prevalence}, tiny)
    assert_same(at, *by_loops(tiny, np.tile(prevalence, (tiny.n_tasks, 1)), table))


def test_separation_rewards_the_distance_of_the_tables(tiny, tables):
    parameters = tables | {"coin": np.full((J, 2), 0.5, "f4"), "prevalence": np.full(K, 1 / K, "f4")}
    without, with_it = (
        density(Model(STORIES["common_individual"], {"separation": value}), parameters, tiny).log_posterior
        for value in (0.0, 2.5)
    )
    distance = np.sqrt(((tables["common"] - tables["individual"]) ** 2).sum((-1, -2))).sum()
    np.testing.assert_allclose(with_it - without, 2.5 * distance, rtol=1e-5)


def test_separation_drives_the_tables_apart_and_em_does_not_fall(featured):
    annotations, _ = cp.simulate("common_individual", n_tasks=100, n_workers=6, n_classes=3, seed=2, diagonal=5.0)
    fits = {value: cp.fit("common_individual", annotations, separation=value, progress=False) for value in (0.0, 20.0)}
    far = {
        value: float(np.sqrt(((fit.parameters["common"] - fit.parameters["individual"]) ** 2).sum()))
        for value, fit in fits.items()
    }
    assert far[20.0] > far[0.0]
    history = fits[20.0].history.to_numpy()
    assert np.diff(history).min() >= -1e-6 * np.abs(history).max()


def test_a_switch_by_task_without_features_is_refused(tiny):
    with pytest.raises(StoryError, match=r"by_task=True\) needs features of the tasks"):
        cp.fit("common_individual", tiny, by_task=True, progress=False)
    with pytest.raises(StoryError, match="separation=-1"):
        cp.fit("common_individual", tiny, separation=-1.0, progress=False)


@pytest.mark.parametrize("votes", [[3.0, 1.0], [-0.5, 1.5], [np.nan, 1.0]])
def test_votes_that_are_no_shares_are_refused_with_the_task(votes):
    annotations = cp.Annotations.from_dict({"a": {"x": 0, "y": 1}, "b": {"x": 1, "y": 1}})
    with pytest.raises(cp.StoryError, match="votes of task number 1"):
        cp.fit("difficulty", annotations, votes=np.array([[0.5, 0.5], votes]), progress=False)
