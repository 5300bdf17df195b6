"""Rates of abstention over every story: its density, what it says of the truth, and that it is simulated and fitted."""

import warnings
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from abstaining import ABSTAIN, with_abstentions
from brute_force import enumerate_labellings
from numpyro import handlers
from story_options import every_story
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data import Annotations, Ids
from crowdppl.data.gold import right_shares
from crowdppl.data.padding import padded
from crowdppl.inference.densities.enumerated import is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.inference.sources.memory import in_batches
from crowdppl.models import STORIES, Abstaining, Confusion, PerAnnotation, Subtypes
from crowdppl.models.parts.abstaining import one_class_alone
from crowdppl.models.parts.starts import soft_votes, vote_confusions

EVERY = pytest.mark.parametrize("name", list(STORIES))
SOME = ("dawid_skene", "one_coin", "glad", "hierarchical_dawid_skene")
VOTES = np.random.default_rng(0).dirichlet([0.5, 0.5], 6)
ARGUMENTS = {
    "difficulty": {"kind": "fixed", "votes": VOTES, "votes_as_prior": False},
    "score_factor": {"points": 2},
}
TABLE = np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.1, 0.9]]])
RATE = np.array(
    [
        [[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]],
        [[0.2, 0.4, 0.4], [0.5, 0.1, 0.4]],
        [[0.8, 0.1, 0.1], [0.3, 0.3, 0.4]],
    ]
)
BY_KIND = np.concatenate([RATE[..., :1] * TABLE, RATE[..., 1:]], -1)
"""P(annotation | truth) of three workers, two classes and two abstentions, ``(3, 2, 4)``."""


@pytest.fixture(scope="module")
def binary():
    return with_abstentions(2)


def parameters(name, annotations, seed=0):
    """Parameters from the prior, in the shapes that go with the annotations."""
    seeded = handlers.trace(handlers.seed(STORIES[name], seed))
    sites = seeded.get_trace(annotations, **ARGUMENTS.get(name, {}))
    return {site["name"]: site["value"] for site in sites.values() if is_latent(site) and site["name"] != "truth"}


def of(name):
    return Model(STORIES[name], ARGUMENTS.get(name, {}))


def test_dawid_skene_is_the_sum_over_all_labellings_with_confusion_matrices_of_k_by_l(binary):
    theta = {"prevalence": jnp.array([0.3, 0.7]), "confusion": jnp.array(TABLE), "abstention": jnp.array(RATE)}
    at = density(of("dawid_skene"), theta, binary)
    log_total, posterior, by_task = enumerate_labellings(binary, [0.3, 0.7], BY_KIND)
    np.testing.assert_allclose(at.log_likelihood.sum(), log_total, rtol=1e-5)
    np.testing.assert_allclose(at.log_likelihood, by_task, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)
    np.testing.assert_allclose(at.likelihood.emission.confusions(binary), BY_KIND, rtol=1e-6)


def test_one_coin_is_the_sum_over_all_labellings_with_a_rate_of_abstention_by_true_class(binary):
    right = np.array([0.9, 0.6, 0.75])
    coins = right[:, None, None] * np.eye(2) + (1 - right)[:, None, None] * (1 - np.eye(2))
    tables = np.concatenate([RATE[..., :1] * coins, RATE[..., 1:]], -1)
    counted = binary.replace(count=np.random.default_rng(0).integers(0, 3, binary.n_rows).astype(np.float32))
    ability = jnp.stack([1 - right, right], -1)
    theta = {"prevalence": jnp.array([0.3, 0.7]), "ability": ability, "abstention": jnp.array(RATE)}
    at = density(of("one_coin"), theta, counted)
    log_total, posterior, _ = enumerate_labellings(counted, [0.3, 0.7], tables)
    np.testing.assert_allclose(at.log_likelihood.sum(), log_total, rtol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)


@pytest.mark.parametrize("name", every_story())
def test_every_storys_density_is_the_sum_over_all_labellings(name, binary):
    theta = parameters(name, binary)
    at = density(of(name), theta, binary)
    emission = at.likelihood.emission
    assert isinstance(emission, Abstaining)
    weights = np.ones((2, 1))
    inner = np.asarray(emission.emission.probs(binary.worker, binary.task), dtype=float)[:, :, None]
    if isinstance(emission.emission, Subtypes):
        weights = np.asarray(emission.emission.weights, dtype=float)
        table = np.asarray(emission.emission.table, dtype=float)
        inner = np.broadcast_to(table, (3, 2, *table.shape[2:]))[binary.worker]  # (A, K, M, K)
    rate = np.asarray(theta["abstention"], dtype=float)[binary.worker][:, :, None]  # (A, K, 1, 3)
    rows = np.concatenate([rate[..., :1] * inner, np.broadcast_to(rate[..., 1:], (*inner.shape[:-1], 2))], -1)
    prior = np.broadcast_to(np.exp(np.asarray(at.truth_prior, dtype=float)), (6, 2))
    total, mass = 0.0, np.zeros((6, 2))
    for states in product(product(range(2), range(weights.shape[1])), repeat=6):
        p = np.prod([prior[i, k] * weights[k, m] for i, (k, m) in enumerate(states)])
        p *= np.prod([row[states[i]][y] for row, i, y in zip(rows, binary.task, binary.label, strict=True)])
        total += p
        mass[np.arange(6), [k for k, _ in states]] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


@EVERY
def test_the_forms_of_its_emission_agree(name, binary):
    emission = density(of(name), parameters(name, binary, 5), binary).likelihood.emission
    probs = np.asarray(emission.probs(binary.worker, binary.task))
    assert probs.shape == (20, 2, 4)
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-5)
    rows, truth = np.arange(20), np.arange(20) % 2
    given = emission.probs_given(binary.worker, binary.task, truth)
    np.testing.assert_allclose(given, probs[rows, truth], atol=1e-5)
    assert emission.confusions(binary).shape == (3, 2, 4)
    if emission.independent:
        of_rows = np.log(probs[rows, :, binary.label])
        np.testing.assert_allclose(emission.log_prob(binary.worker, binary.task, binary.label), of_rows, atol=1e-5)


@pytest.mark.parametrize("name", every_story())
def test_uninformative_abstentions_leave_the_labels_as_dropping_them_does(name, binary):
    silent = binary.replace(informative=False)
    theta = parameters(name, silent)
    assert theta["abstention"].shape == (3, 3)
    kept, dropped = density(of(name), theta, silent), density(of(name), theta, silent.of_classes())
    np.testing.assert_allclose(kept.posterior, dropped.posterior, atol=1e-5)
    rate = np.log(np.asarray(theta["abstention"], dtype=float))[binary.worker, np.maximum(binary.label - 1, 0)]
    said = np.bincount(binary.task, rate, 6)
    np.testing.assert_allclose(kept.log_likelihood, dropped.log_likelihood + said, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "em") for name in SOME),
        *(pytest.param(name, "em", marks=pytest.mark.slow) for name in STORIES if name not in SOME),
        *(pytest.param(name, "svi", marks=pytest.mark.slow) for name in STORIES),
    ],
)
def test_every_story_is_simulated_and_fitted(name, method):
    """By a few steps: that all that a fit computes has a shape for abstentions."""
    options = {} if name != "difficulty" else {"kind": "fixed", "votes": np.full((30, 2), 0.5)}
    annotations, theta = cp.simulate(name, n_tasks=30, n_workers=4, n_classes=2, abstain=ABSTAIN, seed=3, **options)
    assert theta["abstention"].shape == (4, 2, 3)
    assert set(np.unique(annotations.label)) == {0, 1, 2, 3}
    steps = {"max_iterations": 5} | ({"draws": 10} if method == "svi" else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge in five steps
        fit = cp.fit(name, annotations, method=method, progress=False, **steps)
    assert np.isfinite(fit.probabilities.to_numpy()).all()
    assert fit.fitted.confusion_draws.shape[2:] == (4, 2, 4)
    np.testing.assert_allclose(fit.fitted.confusion_draws.sum(-1), 1.0, atol=1e-4)


def test_a_storys_own_confusion_matrix_of_k_by_l_has_the_same_likelihood(binary):
    def k_by_l(annotations):
        with numpyro.plate("worker", 3, dim=-2), numpyro.plate("class", 2, dim=-1):
            table = numpyro.sample("table", dist.Dirichlet(jnp.ones(4)))
        with cp.tasks(annotations) as truth:
            cp.observe(truth, Confusion(table), annotations)

    prevalence = jnp.array([0.3, 0.7])
    whole = density(
        Model(k_by_l, {}),
        {"prevalence": prevalence, "table": jnp.array(BY_KIND)},
        binary.replace(abstentions=Ids()),
    )
    theta = {"prevalence": prevalence, "confusion": jnp.array(TABLE), "abstention": jnp.array(RATE)}
    parts = density(of("dawid_skene"), theta, binary)
    np.testing.assert_allclose(whole.log_likelihood, parts.log_likelihood, rtol=1e-5, atol=1e-5)


def test_rates_of_abstention_are_recovered():
    """400 annotations of a worker to each class: shares within five standard errors."""
    prevalence, table = [0.5, 0.5], np.broadcast_to([[0.8, 0.2], [0.1, 0.9]], (3, 2, 2))
    annotations, _ = cp.simulate(
        "dawid_skene",
        n_tasks=800,
        n_workers=3,
        abstain=ABSTAIN,
        parameters={"prevalence": prevalence, "confusion": table, "abstention": RATE},
        seed=2,
    )
    fit = cp.fit("dawid_skene", annotations, progress=False)
    error = 5 * 0.5 / np.sqrt(400)
    np.testing.assert_allclose(fit.fitted.draws["abstention"][0, 0], RATE, atol=error)
    np.testing.assert_allclose(fit.workers["abstention_rate"], 1 - RATE[..., 0].mean(-1), atol=error)
    np.testing.assert_allclose(fit.fitted.confusion_draws[0, 0, :, :, 2:], RATE[..., 1:], atol=error)


def test_one_rate_of_abstention_is_simulated_for_all():
    annotations, theta = cp.simulate("one_coin", n_tasks=4000, n_workers=2, abstain_rate=0.25, seed=0)
    assert list(annotations.abstentions) == ["abstain"]
    np.testing.assert_allclose(theta["abstention"], np.broadcast_to([0.75, 0.25], (2, 2, 2)))
    assert (annotations.label == 2).mean() == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 8000))
    with pytest.raises(ValueError, match=r"abstain_rate=1\.5: a finite number from 0 to 1"):
        cp.simulate("one_coin", n_tasks=4, n_workers=2, abstain_rate=1.5)


@pytest.mark.slow
def test_intervals_of_nuts_hold_the_rates():
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=60, n_workers=3, abstain=ABSTAIN, parameters={"abstention": RATE}, seed=5
    )
    fit = cp.fit("one_coin", annotations, method="nuts", chains=1, draws=200, warmup=200, progress=False)
    draws = fit.fitted.draws["abstention"]
    low, high = np.quantile(draws, [0.001, 0.999], axis=(0, 1))
    assert ((low <= RATE) & (high >= RATE)).mean() > 0.9


def test_annotations_whose_truth_is_their_own_leave_the_labels_at_the_prior(binary):
    theta = parameters("annotator_groups", binary)
    model = Model(STORIES["annotator_groups"], {"truth": "answer"})
    at = density(model, theta, binary)
    assert isinstance(at.likelihood.emission, PerAnnotation)
    np.testing.assert_allclose(at.posterior, np.broadcast_to(jnp.exp(at.truth_prior), (6, 2)), atol=1e-5)
    np.testing.assert_allclose(at.likelihood.emission.probs(binary.worker, binary.task).sum(-1), 1.0, atol=1e-5)


def test_where_no_worker_is_named_all_have_one_rate():
    counts = np.array([[3, 1, 4], [0, 2, 1], [5, 1, 0]])
    annotations = Annotations.from_counts(counts, classes=["a", "b", "?"], abstain="?")
    fit = cp.fit("annotator_groups", annotations, progress=False)
    assert fit.fitted.draws["abstention"].shape == (1, 1, 2, 2)
    silent = cp.fit("annotator_groups", annotations, abstentions="uninformative", progress=False)
    assert silent.fitted.draws["abstention"].shape == (1, 1, 2)
    np.testing.assert_allclose(silent.fitted.draws["abstention"][0, 0], [13 / 19, 6 / 19], atol=1e-3)


def test_starts_are_of_the_classes_alone(binary):
    dropped = binary.of_classes()
    np.testing.assert_allclose(soft_votes(binary), soft_votes(dropped))
    np.testing.assert_allclose(vote_confusions(binary), vote_confusions(dropped), rtol=1e-6)


def test_a_story_that_opens_its_own_plate_is_told_what_samples_the_rates(binary):
    def own(annotations):
        with numpyro.plate("task", annotations.n_tasks, dim=-1):
            truth = numpyro.sample("truth", dist.Categorical(jnp.array([0.5, 0.5])))
            cp.observe(truth, Confusion(jnp.array(TABLE)), annotations)

    with pytest.raises(StoryError, match=r"sampled by cp\.tasks"):
        handlers.seed(own, jax.random.key(0))(binary)


def rate_prior(annotations):
    """Concentrations of the rates' prior, ``(J, K, 1 + L - K)``."""
    sites = handlers.trace(handlers.seed(STORIES["one_coin"], 0)).get_trace(annotations)
    return np.asarray(sites["abstention"]["fn"].concentration)


def labelled(*labels, abstain="?", **options):
    """Annotations of as many workers as there are strings, a character a task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Annotations.from_matrix(np.array([list(each) for each in labels]).T, abstain=abstain, **options)


def test_the_prior_of_the_rates_lies_around_each_workers_own_rate():
    prior = rate_prior(labelled("abab" + 96 * "?", "ab" * 49 + "??", "ab" * 50))
    mean = prior[..., 0] / prior.sum(-1)
    np.testing.assert_allclose(mean, np.array([4.5, 98.5, 100.5])[:, None] / 101 * np.ones(2), rtol=1e-5)
    rarer = np.array([prior[0, :, 0], prior[1, :, 1], prior[2, :, 1]])
    np.testing.assert_allclose(rarer, 0.5, rtol=0.1)  # of what each does more rarely


def test_a_worker_who_gives_one_class_alone_gives_it_more_to_its_own_tasks():
    prior = rate_prior(labelled("a" * 20 + "?" * 60, "ab" * 10 + "?" * 60, "b" * 20 + "?" * 60, "a" + "?" * 79))
    odds = prior[..., 0] / prior[..., 1]
    np.testing.assert_allclose(odds[:, 0] / odds[:, 1], [18.25 / 2.25, 1.0, 2.25 / 18.25, 1.15 / 0.35], rtol=1e-4)
    rows = prior.sum(-1).mean(-1) - 0.5 * 81 / 20.5  # beside the prior of half an annotation
    assert (rows[[0, 2]] > 0.29 * 80).all()
    assert rows[1] < 2


def test_the_prior_of_the_rates_has_each_workers_own_rate_over_classes_as_frequent_as_the_crowd_gives_them():
    annotations = labelled("a" * 24 + "?" * 56, "ab" * 3 + "a" * 14 + "?" * 60, "b" * 5 + "?" * 75)
    prior = rate_prior(annotations)
    share = np.array([24 + 17 + 1, 3 + 5 + 1]) / 51  # smoothed by one each
    concentration = prior / prior.sum(-1).mean(-1)[:, None, None]
    annotated, abstained = concentration[..., 0] @ share, concentration[:, 0, 1]
    np.testing.assert_allclose(annotated / abstained, [24.5 / 56.5, 20.5 / 60.5, 5.5 / 75.5], rtol=1e-5)


def test_tasks_that_nobody_annotated_are_not_of_a_class_for_being_rarely_given():
    """Functions for the frequent class give more in all, and no more to a task of theirs than those of the rare one."""
    rng = np.random.default_rng(1)
    truth = rng.random(800) < 0.15
    gives = np.arange(24) >= 12
    labels = np.where(rng.random((800, 24)) < np.where(gives == truth[:, None], 0.04, 0.006), gives.astype(int), -1)
    silent = (labels < 0).all(1)
    for story in ("item_response", "hierarchical_dawid_skene"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            annotations = Annotations.from_matrix(labels, abstain=[-1])
            labelled_as = cp.fit(story, annotations, progress=False).posterior.argmax(-1)
        assert (labelled_as == truth)[silent].mean() > 0.75, story


def test_who_met_one_class_of_a_crowd_that_mostly_gives_it_is_not_told_apart():
    counts = jnp.array([[5.0, 0.0], [500.0, 0.0], [0.0, 5.0], [900.0, 100.0]])
    np.testing.assert_allclose(one_class_alone(counts), [0.16, 1.0, 0.96, 0.0], atol=0.05)


def test_some_of_the_tasks_have_the_prior_of_all():
    annotations = with_abstentions(5, n_tasks=12, n_rows=60)
    some = in_batches(annotations, 3).take(jnp.array([1, 4, 8]))
    np.testing.assert_allclose(rate_prior(some), rate_prior(annotations), rtol=1e-5)
    np.testing.assert_allclose(
        rate_prior(padded(some.replace(label=np.asarray(some.label))))[:3], rate_prior(annotations), rtol=1e-5
    )


def test_functions_that_abstain_nearly_always_are_not_ruled_by_the_prior():
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.2
    gives = np.arange(30) >= 10  # ten functions give class 0, twenty class 1
    rate = np.where(gives == truth[:, None], 0.06, 0.006)
    labels = np.where(rng.random(rate.shape) < rate, np.where(gives, "b", "a"), "?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        annotations = Annotations.from_matrix(labels, abstain="?")
        posterior = cp.fit("dawid_skene", annotations, progress=False).probabilities.to_numpy()
    gold = truth.astype(int)
    of_votes = right_shares(annotations.kind.majority(annotations.votes()), gold).mean()
    assert (posterior.argmax(-1) == gold).mean() > of_votes + 0.05
    assert np.log(posterior[np.arange(400), gold]).mean() > np.log(0.6)
