"""Draws in one order: shuffled ones come back, what the prior tells apart is left, what nothing tells apart warns."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from conftest import random_annotations

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.fitted.alignment import aligned, permutations, renamed
from crowdppl.inference.fitted.fitted import Fitted, label_posteriors

CHAINS, DRAWS, WORKERS, CLASSES, GROUPS = 2, 40, 6, 2, 3


def grouped(annotations, *, truth_prior=None, share=(1.0, 1.0, 1.0)):
    """Workers with own weights over groups, whose tables they annotation by."""
    with numpyro.plate("worker", annotations.n_workers):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.array(share)), infer={"event_dims": ["group"]})
    with numpyro.plate("group", len(share), dim=-2), numpyro.plate("class", annotations.n_classes, dim=-1):
        rows = dist.Dirichlet(jnp.ones(annotations.n_classes))
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["annotation"]})
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(jnp.einsum("jm,mkl->jkl", weights, confusion)), annotations)


def subtyped(annotations, *, truth_prior=None, n_subtypes=3):
    """Tables that are mixtures of subtypes of their class; enough of a story to have subtypes."""
    with numpyro.plate("class", annotations.n_classes):
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(n_subtypes)), infer={"event_dims": ["subtype"]})
    with numpyro.plate("subtype", n_subtypes, dim=-2), numpyro.plate("class", annotations.n_classes, dim=-1):
        rows = dist.Dirichlet(jnp.ones(annotations.n_classes))
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["annotation"]})
    table = jnp.einsum("km,mkl->kl", shares, confusion)
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(jnp.broadcast_to(table, (annotations.n_workers, *table.shape))), annotations)


@pytest.fixture
def data():
    return random_annotations(np.random.default_rng(0), n_tasks=30, n_workers=WORKERS, n_classes=CLASSES, n_rows=120)


def near(rng, shape, concentration=60.0):
    """Draws of tables near random ones, (chain, draw, *shape)."""
    centres = rng.dirichlet(np.full(shape[-1], 0.7), shape[:-1])
    gamma = rng.gamma(concentration * centres + 0.5, size=(CHAINS, DRAWS, *shape))
    return (gamma / gamma.sum(-1, keepdims=True)).astype(np.float32)


def at_draws(story, data, draws, **hyperparameters):
    model = Model(story, hyperparameters)
    return Fitted(model, data, Outcome(draws, {}, np.zeros(0), {}), dims=parameter_dims(model, data))


def align(story, data, draws, **hyperparameters):
    back = aligned(at_draws(story, data, draws, **hyperparameters))
    return back, back.outcome.facts.get("ambiguous", [])


def orders(rng, size, *shape):
    return rng.permuted(np.broadcast_to(np.arange(size), (CHAINS, DRAWS, *shape, size)), axis=-1)


def test_groups_in_any_order_come_back_in_one_and_all_their_sites_with_them(data):
    rng = np.random.default_rng(1)
    tidy = {
        "prevalence": near(rng, (CLASSES,)),
        "weights": near(rng, (WORKERS, GROUPS)),
        "confusion": near(rng, (GROUPS, CLASSES, CLASSES)),
    }
    order = orders(rng, GROUPS)
    shuffled = tidy | {
        "weights": np.take_along_axis(tidy["weights"], order[:, :, None], 3),
        "confusion": np.take_along_axis(tidy["confusion"], order[..., None, None], 2),
    }
    back, found = align(grouped, data, shuffled)
    first = order[0, 0]  # the order of the first draw is everybody's
    np.testing.assert_array_equal(back.draws["weights"], tidy["weights"][..., first])
    np.testing.assert_array_equal(back.draws["confusion"], tidy["confusion"][:, :, first])
    np.testing.assert_array_equal(back.draws["prevalence"], tidy["prevalence"])
    assert found == []


def test_each_draw_is_as_probable_after_its_groups_are_ordered(data):
    rng = np.random.default_rng(2)
    draws = {
        "prevalence": near(rng, (CLASSES,)),
        "weights": near(rng, (WORKERS, GROUPS), 1.0),
        "confusion": near(rng, (GROUPS, CLASSES, CLASSES), 1.0),
    }
    back, _ = align(grouped, data, draws)
    moved = (back.draws["confusion"] != draws["confusion"]).any((2, 3, 4))
    assert moved.sum() > CHAINS * DRAWS / 4
    for at in np.argwhere(moved)[:6]:
        before, after = (
            density(Model(grouped), {name: value[tuple(at)] for name, value in d.items()}, data).log_posterior
            for d in (draws, back.draws)
        )
        np.testing.assert_allclose(after, before, rtol=1e-5)


def test_subtypes_are_ordered_within_each_class(data):
    rng = np.random.default_rng(3)
    tidy = {
        "prevalence": near(rng, (CLASSES,)),
        "shares": near(rng, (CLASSES, 3), 500.0),
        "confusion": near(rng, (3, CLASSES, CLASSES), 500.0),
    }
    order = orders(rng, 3, CLASSES)  # another one for each class
    shuffled = tidy | {
        "shares": np.take_along_axis(tidy["shares"], order, 3),
        "confusion": np.take_along_axis(tidy["confusion"], np.swapaxes(order, 2, 3)[..., None], 2),
    }
    back, found = align(subtyped, data, shuffled)
    for k in range(CLASSES):
        first = order[0, 0, k]
        np.testing.assert_array_equal(back.draws["shares"][:, :, k], tidy["shares"][:, :, k][..., first])
        np.testing.assert_array_equal(back.draws["confusion"][:, :, :, k], tidy["confusion"][:, :, first, k])
    assert found == []


def test_groups_that_the_prior_tells_apart_keep_their_order(data):
    rng = np.random.default_rng(4)
    draws = {
        "prevalence": near(rng, (CLASSES,)),
        "weights": near(rng, (WORKERS, GROUPS), 1.0),
        "confusion": near(rng, (GROUPS, CLASSES, CLASSES), 1.0),
    }
    back, found = align(grouped, data, draws, share=(1.0, 2.0, 5.0))
    np.testing.assert_array_equal(back.draws["weights"], draws["weights"])
    assert found == []


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_groups_that_nothing_tells_apart_warn(data, n_groups):
    """All groups are draws from one distribution, so that there is no order to find."""
    rng = np.random.default_rng(5)
    one = rng.dirichlet(np.ones(CLASSES) * 5, (CHAINS, DRAWS, n_groups, CLASSES)).astype(np.float32)
    draws = {
        "prevalence": near(rng, (CLASSES,)),
        "weights": rng.dirichlet(np.ones(n_groups) * 5, (CHAINS, DRAWS, WORKERS)).astype(np.float32),
        "confusion": one,
    }
    _, found = align(grouped, data, draws, share=(1.0,) * n_groups)
    ((dim, of_class, share),) = found
    assert (dim, of_class) == ("group", None)
    assert share > 0.1


def test_subtypes_that_cannot_be_told_apart_name_their_class(data):
    rng = np.random.default_rng(6)
    draws = {
        "prevalence": near(rng, (CLASSES,)),
        "shares": near(rng, (CLASSES, 3), 500.0),
        "confusion": near(rng, (3, CLASSES, CLASSES), 500.0),
    }
    draws["shares"][:, :, 0] += np.array([0.7, 0.2, 0.1]) - draws["shares"][0, 0, 0]  # far apart, in class 0 only
    draws["shares"][:, :, 1] = rng.dirichlet(np.ones(3) * 5, (CHAINS, DRAWS))
    draws["confusion"][:, :, :, 1] = rng.dirichlet(np.ones(CLASSES) * 5, (CHAINS, DRAWS, 3))
    _, found = align(subtyped, data, draws)
    ((dim, of_class, share),) = found
    assert (dim, of_class) == ("subtype", 1)
    assert share > 0.1


def chains_in_two_permutations(data, match):
    """Draws of Dawid & Skene's story around a right table, whose second chain calls the classes otherwise."""
    rng = np.random.default_rng(7)
    k = data.n_classes
    rows = rng.dirichlet(np.ones(k) + 20 * np.eye(k)[0], (CHAINS, DRAWS, data.n_workers, k))
    confusion = np.stack([np.roll(rows[..., z, :], z, axis=-1) for z in range(k)], axis=-2).astype(np.float32)
    prevalence = rng.dirichlet(10 + np.arange(k), (CHAINS, DRAWS)).astype(np.float32)
    tidy = {"prevalence": prevalence, "confusion": confusion}
    mixed = {name: value.copy() for name, value in tidy.items()}
    mixed["prevalence"][1] = prevalence[1][..., match]
    mixed["confusion"][1] = confusion[1][..., match, :]
    return tidy, mixed


@pytest.fixture
def three_classes():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=4, n_classes=3, diagonal=20.0, seed=1)
    return annotations.replace(gold=None)


def test_a_chain_that_names_the_classes_otherwise_follows_the_first_where_the_story_is_symmetric(three_classes):
    tidy, mixed = chains_in_two_permutations(three_classes, [1, 2, 0])  # of order three: no inverse of itself
    flat = {"diagonal": 1.0, "off_diagonal": 1.0}
    back, found = align(cp.models.find_story("dawid_skene"), three_classes, mixed, **flat)
    for name, value in tidy.items():
        np.testing.assert_array_equal(back.draws[name], value)
    posteriors = label_posteriors(back)  # fmt: skip
    assert permutations(np.asarray(posteriors))[1] == {}
    assert found == []


@pytest.mark.parametrize(
    "options",
    [{}, {"diagonal": 1.0, "truth_prior": cp.Prevalence((3.0, 2.0, 1.0))}],
    ids=["heavier diagonal", "uneven prevalence"],
)
def test_a_chain_in_another_permutation_is_left_with_its_warning_where_the_prior_is_not_symmetric(
    three_classes, options
):
    story = cp.models.find_story("dawid_skene")
    _, mixed = chains_in_two_permutations(three_classes, [1, 2, 0])
    back, _ = align(story, three_classes, mixed, **options)
    for name, value in mixed.items():
        np.testing.assert_array_equal(back.draws[name], value)
    posteriors = np.asarray(label_posteriors(back))
    assert list(permutations(posteriors)[1]) == [1]


def test_gold_labels_tell_the_classes_apart(three_classes):
    story = cp.models.find_story("dawid_skene")
    _, mixed = chains_in_two_permutations(three_classes, [1, 2, 0])
    evidence = np.zeros((40, 3), dtype=np.float32)
    evidence[0, 1:] = -np.inf
    evidence[1, :2] = -3.0
    back, _ = align(story, three_classes.replace(evidence=evidence), mixed, diagonal=1.0)
    np.testing.assert_array_equal(back.draws["confusion"], mixed["confusion"])


def test_a_single_draw_stays_as_it_is(data):
    rng = np.random.default_rng(8)
    draws = {
        "prevalence": near(rng, (CLASSES,))[:1, :1],
        "weights": near(rng, (WORKERS, GROUPS))[:1, :1],
        "confusion": near(rng, (GROUPS, CLASSES, CLASSES))[:1, :1],
    }
    back, found = align(grouped, data, draws)
    for name, value in draws.items():
        np.testing.assert_array_equal(back.draws[name], value)
    assert found == []


def test_chains_in_another_permutation_are_told_with_their_names_of_the_classes():
    posterior = np.eye(3)[np.random.default_rng(0).integers(0, 3, 50)]
    assert permutations(np.stack([posterior, posterior])) == (0, {})
    alike = np.column_stack([posterior[:, :1], posterior[:, 1:].sum(1, keepdims=True) * [0.5, 0.5]])  # two of one share
    assert permutations(np.stack([alike, alike])) == (0, {})
    _, found = permutations(np.stack([posterior, posterior[:, [1, 0, 2]]]))
    assert list(found) == [1]
    assert renamed(found[1], "abc") == "'a' is 'b' there, 'b' is 'a' there"
