"""EM accelerated by SQUAREM: exact on a linear iteration, monotone, and at the end where plain EM is."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import random_annotations
from numpyro.distributions.transforms import IdentityTransform

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import ParameterSpec, parameter_spec
from crowdppl.inference.engines import em, squarem
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.em_climber import EMClimber
from crowdppl.inference.sources.memory import InMemory
from crowdppl.models import find_story

FLAT = {"diagonal": 1.0, "off_diagonal": 1.0}
MODEL = Model(find_story("dawid_skene"), FLAT)
REALS = ParameterSpec((), {"x": IdentityTransform()}, (), has_factors=False, dims={}, without_posterior=())


@pytest.fixture(scope="module")
def noisy():
    """Annotations that say little of the truth, on which EM crawls."""
    return random_annotations(np.random.default_rng(2), n_tasks=60, n_workers=6, n_classes=3, n_rows=200)


def states_of(annotations, *, accelerated=False):
    """EM's state at its start, and after the first and the second step from there."""
    start = em.init(MODEL, annotations, jax.random.key(0), accelerated=accelerated)
    return tuple(advance(EMClimber(MODEL, em.EMSettings()), InMemory(annotations), start, n)[0] for n in (1, 2, 3))


def proposal_after(steps, parts, reach):
    """The memory after two plain steps through the three points."""
    state = squarem.init(steps[0])._replace(reach=jnp.asarray(reach))
    for old, new in pairwise(steps):
        state = squarem.update(state, parts, old, new, jnp.zeros(()))
    return state


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_one_proposal_ends_an_iteration_that_converges_at_one_rate(rate):
    """x_k = x* + ρ^k e has r = (ρ − 1) e, v = (ρ − 1)² e, α = 1 / (1 − ρ), and x' = x*."""
    limit, error = np.array([1.0, -2.0, 3.0]), np.array([0.5, 1.0, -1.0])
    with jax.enable_x64(True):
        steps = [{"x": jnp.asarray(limit + rate**k * error)} for k in range(3)]
        memory = proposal_after(steps, REALS, 1e6)
        np.testing.assert_allclose(memory.aside["x"], limit, atol=1e-9)


def test_the_first_proposal_is_where_two_plain_steps_lead(noisy):
    points = [state.parameters for state in states_of(noisy)]
    memory = proposal_after(points, parameter_spec(MODEL, noisy), 1.0)
    for name, value in points[-1].items():
        np.testing.assert_allclose(memory.aside[name], value, atol=1e-6)


def test_a_long_proposal_has_rows_of_probabilities_and_none_falls_to_zero(noisy):
    points = [state.parameters for state in states_of(noisy)]
    memory = proposal_after(points, parameter_spec(MODEL, noisy), 1e3)
    for name, value in memory.aside.items():
        np.testing.assert_allclose(value.sum(-1), 1.0, atol=1e-5)
        before = np.asarray(points[-1][name])
        assert (np.asarray(value)[before > 1e-20] > 0).all()
    assert np.abs(memory.aside["confusion"] - points[-1]["confusion"]).max() > 0.01


def test_a_proposal_of_a_lower_log_posterior_is_not_taken(noisy):
    _, state, _ = states_of(noisy, accelerated=True)
    assert int(state.squarem.stage) == squarem.PROPOSED
    uniform = jax.tree.map(lambda x: jnp.full_like(x, 1 / x.shape[-1]), state.parameters)
    bad = state._replace(squarem=state.squarem._replace(aside=uniform, reach=jnp.asarray(16.0)))
    after, _ = advance(EMClimber(MODEL, em.EMSettings()), InMemory(noisy), bad, 1)
    assert int(after.iteration) == int(state.iteration)
    assert float(after.look.log_posterior) == float(state.look.log_posterior)
    assert float(after.squarem.reach) == 4.0
    for name, value in state.parameters.items():
        np.testing.assert_array_equal(after.parameters[name], value)


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("story", ["dawid_skene", "annotator_groups", "common_individual"])
def test_the_log_posterior_never_falls(story, seed):
    """In float64, so that what is left for a tolerance is rounding in the twelfth digit."""
    annotations = random_annotations(np.random.default_rng(seed), n_tasks=30, n_workers=5, n_classes=3, n_rows=90)
    options = FLAT if story == "dawid_skene" else {}
    with jax.enable_x64(True):
        history = cp.fit(story, annotations, **options, max_iterations=300, tolerance=0.0, progress=False).history
    assert np.diff(history).min() >= -1e-12 * np.abs(history).max()


def test_wherever_it_stops_the_last_log_posterior_is_that_of_the_solution(noisy):
    """Also where the next step would be from a proposal, which has not been looked at."""
    log_posterior = jax.jit(lambda parameters: density(MODEL, parameters, noisy).log_posterior_in_log_odds)
    with jax.enable_x64(True):
        for n in range(1, 13):
            outcome = em.run(MODEL, noisy, jax.random.key(0), em.EMSettings(n, 0.0), progress=False)
            solution = {name: value[0, 0] for name, value in outcome.draws.items()}
            np.testing.assert_allclose(outcome.history[-1], log_posterior(solution), rtol=1e-12)
            assert len(outcome.history) == n + 1
            assert np.diff(outcome.history).min() >= -1e-12 * np.abs(outcome.history).max()


def test_where_em_crawls_it_ends_at_the_same_mode_in_half_the_iterations(noisy):
    with jax.enable_x64(True):
        plain, fast = (
            cp.fit("dawid_skene", noisy, accelerate=accelerate, tolerance=1e-13, max_iterations=20_000, progress=False)
            for accelerate in (False, True)
        )
    assert len(fast.history) < len(plain.history) / 2
    np.testing.assert_allclose(fast.history.iloc[-1], plain.history.iloc[-1], rtol=1e-9)
    np.testing.assert_allclose(fast.probabilities, plain.probabilities, atol=1e-3)


def test_a_story_with_parameters_of_adam_goes_by_plain_steps(noisy):
    plain, fast = (cp.fit("glad", noisy, accelerate=accelerate, progress=False) for accelerate in (False, True))
    np.testing.assert_array_equal(plain.history, fast.history)
