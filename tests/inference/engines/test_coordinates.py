"""The sampler's coordinates: a standard normal where the posterior is a Dirichlet, and the density they belong to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import potential_energy
from scipy.stats import beta as beta_distribution
from whole_density import density

from crowdppl import simulate
from crowdppl.data.padding import padded
from crowdppl.inference.densities import padded_sites
from crowdppl.inference.densities.marginals import marginal_program, potential
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims, starting_point
from crowdppl.inference.engines import coordinates
from crowdppl.inference.engines.nuts import HALF_PERIOD, STRETCH, fitting
from crowdppl.models import find_story

STORIES = [
    "dawid_skene",
    "glad",
    *(pytest.param(story, marks=pytest.mark.slow) for story in ("common_individual", "worker_clusters", "two_coin")),
]


def small(story):
    """Ten tasks, four workers; a story, its coordinates at its start, and a point near it."""
    annotations, _ = simulate(story, n_tasks=10, n_workers=4, n_classes=2 if story == "two_coin" else 3, seed=1)
    annotations = jax.tree.map(jnp.asarray, annotations.replace(gold=None))
    model = Model(find_story(story))
    values = jax.jit(lambda key: starting_point(model, annotations, key))(jax.random.key(0))
    found = coordinates.coordinates_near(model, annotations, values, {})
    point = coordinates.origin(found)
    return model, annotations, values, found, point + 0.3 * jax.random.normal(jax.random.key(2), point.shape)


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_rows_are_probabilities_whose_volume_is_the_product_of_their_entries(n):
    log_odds = jnp.asarray(np.random.default_rng(n).normal(size=n - 1), jnp.float32)
    log_probs = coordinates.log_probabilities(log_odds)
    np.testing.assert_allclose(jnp.exp(log_probs).sum(), 1.0, rtol=1e-6)
    jacobian = jax.jacobian(lambda z: jnp.exp(coordinates.log_probabilities(z))[:-1])(log_odds)
    np.testing.assert_allclose(jnp.linalg.slogdet(jacobian)[1], log_probs.sum(), rtol=1e-4)


def test_the_slopes_at_even_log_odds_are_those_beside_them():
    slopes = jax.jacobian(coordinates.log_probabilities)
    np.testing.assert_allclose(slopes(jnp.zeros(3)), slopes(jnp.full(3, 1e-6)), atol=1e-5)


def test_far_log_odds_have_finite_probabilities_and_slopes():
    far = jnp.array([200.0, -200.0, 30.0, 0.0])
    assert np.isfinite(coordinates.log_probabilities(far)).all()
    assert np.isfinite(jax.jacobian(coordinates.log_probabilities)(far)).all()


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 4.0), (60.0, 1.0), (3.0, 60.0), (400.0, 90.0)])
def test_the_log_odds_of_a_beta_are_nearly_normal_in_the_coordinates(a, b):
    """Unit variance within a fifth, kurtosis 3 within 0.7; of the log-odds of Beta(60, 1) it is 5.4."""
    x = np.linspace(-9, 9, 20_001)
    row = jnp.array([a, b])
    cuts = coordinates._cuts(row / row.sum(), row)
    log_odds, log_slope = (np.asarray(value[..., 0], float) for value in cuts.log_odds(jnp.asarray(x[:, None])))
    assert (np.diff(log_odds) > 0).all()
    bent = beta_distribution.pdf(1 / (1 + np.exp(-log_odds)), a, b) / (2 + 2 * np.cosh(log_odds)) * np.exp(log_slope)
    np.testing.assert_allclose(np.trapezoid(bent, x), 1.0, atol=1e-3)
    mean = np.trapezoid(bent * x, x)
    assert abs(np.trapezoid(bent * (x - mean) ** 2, x) - 1) < 0.2
    kurtosis = np.trapezoid(bent * (x - mean) ** 4, x) / np.trapezoid(bent * (x - mean) ** 2, x) ** 2
    assert abs(kurtosis - 3) < 0.7


@pytest.mark.parametrize("far", [20.0, 40.0])
def test_a_sparse_prior_has_a_finite_density_where_probabilities_are_too_small_for_float32(far):
    """Weights of Dirichlet(0.1) reach e^-100 once in some thousand draws, and a density at zero would be infinite."""
    annotations, _ = simulate("annotator_groups", n_tasks=10, n_workers=4, membership="worker", groups=2, seed=1)
    annotations = jax.tree.map(jnp.asarray, annotations.replace(gold=None))
    model = Model(find_story("annotator_groups"), {"membership": "worker", "groups": 2})
    values = jax.jit(lambda key: starting_point(model, annotations, key))(jax.random.key(0))
    found = coordinates.coordinates_near(model, annotations, values, {})
    origin, back = ravel_pytree({name: jnp.zeros_like(cuts.centre) for name, cuts in found.tables.items()})

    def log_posterior(x):
        moved = ravel_pytree(back(origin) | {"weights": jnp.full_like(back(origin)["weights"], x)})[0]
        at = coordinates.place(model, annotations, found, moved)
        prior = density(model, at.parameters, annotations).log_posterior
        return prior + at.log_det + at.correction, at.parameters["weights"]

    (value, weights), slope = jax.jit(jax.value_and_grad(log_posterior, has_aux=True))(far)
    assert weights.min() == pytest.approx(np.exp(coordinates.LOWEST), rel=1e-3)
    assert np.isfinite(value)
    assert slope < 0


@pytest.mark.parametrize("story", STORIES)
def test_the_origin_is_the_start_and_the_density_that_of_numpyros_unconstrained_space(story):
    model, annotations, values, found, point = small(story)
    for name, value in coordinates.place(model, annotations, found, coordinates.origin(found)).parameters.items():
        np.testing.assert_allclose(value, values[name], rtol=1e-4, atol=1e-5)
    at = coordinates.place(model, annotations, found, point)
    target = potential(story, annotations)
    energy = potential_energy(marginal_program(model), (annotations,), {}, target.unconstrain(at.parameters))
    from crowdppl.inference.densities.enumerated import density

    ours = density(model, at.parameters, annotations).log_posterior + at.log_det
    np.testing.assert_allclose(ours, -energy, rtol=1e-4)


@pytest.mark.parametrize("story", STORIES)
def test_the_volume_of_the_coordinates_is_that_of_their_jacobian(story):
    """Against the determinant of all partial derivatives, tables without their last column."""
    model, annotations, _, found, point = small(story)

    def free(point):
        parameters = coordinates.place(model, annotations, found, point).parameters
        tables = {name: parameters[name][..., :-1] for name in found.tables}
        return ravel_pytree(tables | {name: parameters[name] for name in found.reals})[0]

    at = coordinates.place(model, annotations, found, point)
    jacobian = np.asarray(jax.jacobian(free)(point), float)
    np.testing.assert_allclose(np.linalg.slogdet(jacobian)[1], at.log_det + at.correction, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("story", STORIES)
def test_padded_workers_and_tasks_stand_beside_the_real_ones(story):
    """What is real has the same coordinates, and the same density in them: padded coordinates change it by a term."""
    model, annotations, values, found, point = small(story)
    seen = jax.tree.map(jnp.asarray, padded(annotations, fine=True))
    dims = parameter_dims(model, annotations)
    grown = coordinates.coordinates_near(model, seen, padded_sites.grown(values, dims, seen), {})
    by_site = ravel_pytree(coordinates._centres(found))[1]

    def energies(data, of, x):
        at = coordinates.place(model, data, of, x)
        from numpyro.infer.util import log_density

        log_joint, _ = log_density(marginal_program(model, proper=True), (data,), {}, at.parameters)
        return log_joint + at.log_det + at.correction

    origin = ravel_pytree(coordinates._centres(grown))[1](coordinates.origin(grown))
    moved = {}
    for name, value in by_site(point).items():
        full = np.asarray(origin[name]).copy()
        full[tuple(slice(size) for size in value.shape)] = value
        moved[name] = jnp.asarray(full)
    shift = energies(seen, grown, ravel_pytree(moved)[0]) - energies(seen, grown, ravel_pytree(origin)[0])
    exact = energies(annotations, found, point) - energies(annotations, found, coordinates.origin(found))
    np.testing.assert_allclose(shift, exact, rtol=1e-3, atol=1e-3)


def test_steps_just_too_short_for_a_tree_to_turn_are_stretched_and_others_stay():
    for depth in range(1, 9):
        turning = HALF_PERIOD / (2**depth - 1)
        np.testing.assert_allclose(fitting(jnp.float32(0.95 * turning)), turning, rtol=1e-5)
        np.testing.assert_allclose(fitting(jnp.float32(1.01 * turning)), 1.01 * turning, rtol=1e-5)
    steps = jnp.geomspace(1e-3, 4.0, 400)
    stretched = jax.vmap(fitting)(steps)
    assert (stretched >= steps * (1 - 1e-6)).all()
    assert (stretched <= steps * STRETCH * (1 + 1e-6)).all()
