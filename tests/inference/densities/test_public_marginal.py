"""The public marginal and potential: against sums over every labelling, and blackjax against crowdppl's NUTS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brute_force import enumerate_labellings
from numpyro.infer.util import log_density
from scipy.stats import dirichlet

import crowdppl as cp
from crowdppl import StoryError, UnknownNameError


def from_reals(target, seed):
    """A point of unconstrained space, and its parameters."""
    rng = np.random.default_rng(seed)
    point = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), target.initial)
    return point, target.constrain(point)


@pytest.mark.parametrize("seed", range(3))
def test_the_log_density_is_that_of_every_labelling_summed_with_priors_and_jacobian(tiny, seed):
    with jax.enable_x64(True):
        target = cp.potential("dawid_skene", tiny, diagonal=1.0, off_diagonal=1.0)  # all Dirichlet priors are flat
        point, theta = from_reals(target, seed)
        log_z, labels, _ = enumerate_labellings(tiny, np.asarray(theta["prevalence"]), np.asarray(theta["confusion"]))
        rows = 1 + tiny.n_workers * 3
        log_prior = rows * dirichlet([1, 1, 1]).logpdf([1 / 3, 1 / 3, 1 / 3])
        # the determinant, from the Jacobian of each row's first two probabilities
        determinants = 0.0
        for name in point:
            reals = np.asarray(point[name]).reshape(-1, 2)
            for i in range(len(reals)):

                def first_two(row, name=name, i=i, reals=reals):
                    at = jnp.asarray(reals).at[i].set(row).reshape(point[name].shape)
                    return target.constrain({**point, name: at})[name].reshape(-1, 3)[i, :2]

                determinants += np.linalg.slogdet(np.asarray(jax.jacobian(first_two)(jnp.asarray(reals[i]))))[1]
        np.testing.assert_allclose(target.log_density(point), log_z + log_prior + determinants, rtol=1e-5)
        np.testing.assert_allclose(target.label_probabilities(point), labels, atol=1e-6)


def test_a_vector_has_the_density_and_the_parameters_of_its_sites(tiny):
    target = cp.potential("dawid_skene", tiny)
    vector = target.as_vector()
    point, theta = from_reals(target, 0)
    flat = vector.unconstrain(theta)
    assert flat.shape == vector.initial.shape == (2 + 3 * 3 * 2,)
    np.testing.assert_allclose(vector.log_density(flat), target.log_density(point), rtol=1e-5)
    np.testing.assert_allclose(vector.constrain(flat)["confusion"], theta["confusion"], atol=1e-5)


def test_the_marginal_program_has_the_likelihood_of_each_task(tiny):
    program, arguments = cp.marginal("dawid_skene", tiny)
    theta = cp.potential("dawid_skene", tiny).constrain(cp.potential("dawid_skene", tiny).initial)
    _, sites = log_density(program, arguments, {}, theta)
    by_task = sites["log_likelihood"]["fn"].log_prob(sites["log_likelihood"]["value"])
    _, _, expected = enumerate_labellings(tiny, np.asarray(theta["prevalence"]), np.asarray(theta["confusion"]))
    # float32 sums of probabilities: the log of a sum of one is zero only up to float32's rounding.
    np.testing.assert_allclose(by_task, expected, rtol=1e-5, atol=1e-6)
    assert "truth" not in sites
    assert all(not site["fn"].support.is_discrete for site in sites.values() if site["type"] == "sample")


def test_gold_and_evidence_are_in_the_density(tiny):
    gold = dict.fromkeys(tiny.tasks, 2)
    target = cp.potential("dawid_skene", tiny, gold=gold)
    np.testing.assert_allclose(target.label_probabilities(target.initial), np.eye(3)[[2] * 5])


@pytest.mark.slow
def test_blackjax_finds_the_posterior_that_crowdppls_nuts_finds():
    """Means of 800 draws of blackjax within five standard errors of the means of crowdppl's.

    Standard errors are those of a quarter as many independent draws, for what autocorrelation takes.
    """
    blackjax = pytest.importorskip("blackjax", reason="blackjax is not installed")
    confusion = np.tile([[0.9, 0.1], [0.2, 0.8]], (4, 1, 1))
    annotations, _ = cp.simulate("dawid_skene", n_tasks=60, n_workers=4, parameters={"confusion": confusion}, seed=3)
    annotations = annotations.replace(gold=None)
    target = cp.potential("dawid_skene", annotations, diagonal=4.0)

    @jax.jit
    def sample(key):
        adapt_key, key = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, target.log_density)
        (state, tuned), _ = adaptation.run(adapt_key, target.initial, num_steps=300)
        step = blackjax.nuts(target.log_density, **tuned).step

        def once(state, key):
            state, _ = step(key, state)
            return state, (target.constrain(state.position), target.label_probabilities(state.position))

        return jax.lax.scan(once, state, jax.random.split(key, 800))[1]

    draws, labels = sample(jax.random.key(0))
    fit = cp.fit(
        "dawid_skene", annotations, method="nuts", diagonal=4.0, chains=1, warmup=300, draws=800, progress=False
    )
    for name, values in draws.items():
        theirs = fit.draws[name].to_numpy()[0]
        error = np.sqrt((np.var(values, axis=0) + theirs.var(0)) / 200)
        np.testing.assert_array_less(np.abs(values.mean(0) - theirs.mean(0)), 5 * error + 1e-3)
    np.testing.assert_allclose(labels.mean(0), fit.posterior, atol=0.05)


def test_a_classifier_that_stays_untrained_is_said(tiny):
    annotations = tiny.replace(features=np.ones((5, 2), dtype=np.float32))
    with pytest.warns(UserWarning, match="stays untrained"):
        target = cp.potential("dawid_skene", annotations, classifier=cp.Classifier("logistic", prior=None))
    assert set(target.initial) == {"confusion"}
    weights = cp.potential("dawid_skene", annotations, classifier=cp.Classifier("logistic", prior=1.0)).initial
    assert "classifier.linear.kernel" in weights


def test_what_cannot_be_fitted_is_refused_at_once(tiny):
    with pytest.raises(UnknownNameError, match="dawid_skene"):
        cp.marginal("david_skene", tiny)
    with pytest.raises(StoryError, match="two classes"):
        cp.potential("two_coin", tiny)
    with pytest.raises(TypeError, match="diagnal"):
        cp.marginal("dawid_skene", tiny, diagnal=2.0)
