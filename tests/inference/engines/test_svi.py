"""SVI: the same bound as NumPyro's own enumeration, unbiased minibatches, and warnings."""

from functools import partial

import jax
import numpy as np
import pytest
from conftest import random_annotations
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate
from numpyro.infer import Trace_ELBO, TraceEnum_ELBO
from numpyro.infer.autoguide import AutoDelta
from whole_density import density

from crowdppl import ConvergenceWarning, UnknownNameError, fit, simulate
from crowdppl.inference.densities.marginals import marginal_program
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import svi
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.outcome import as_point
from crowdppl.inference.engines.settings import SVISettings
from crowdppl.inference.sources.memory import InMemory, in_batches
from crowdppl.models import find_story

MODEL = Model(find_story("dawid_skene"))


@pytest.fixture(scope="module")
def ragged():
    return random_annotations(np.random.default_rng(4), n_tasks=12, n_workers=4, n_classes=3, n_rows=60)


def test_the_bound_is_that_of_numpyros_enumeration(ragged):
    """A guide without randomness leaves rounding as the only difference between the two programs."""
    guide = AutoDelta(marginal_program(MODEL))
    sites = handlers.trace(handlers.seed(guide, 0)).get_trace(ragged)
    params = {name: site["value"] for name, site in sites.items() if site["type"] == "param"}
    key = jax.random.key(3)
    ours = Trace_ELBO().loss(key, params, marginal_program(MODEL), guide, ragged)
    theirs = TraceEnum_ELBO().loss(key, params, config_enumerate(MODEL), guide, ragged)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_batch_holds_its_tasks_annotations_and_nothing_else(ragged):
    source = in_batches(ragged, 5)
    batch = jax.jit(lambda key: source.draw(key).annotations)(jax.random.key(0))
    chosen = np.sort(np.asarray(jax.random.choice(jax.random.key(0), 12, (5,), replace=False)))
    expected = sorted(
        (slot, ragged.worker[row], ragged.label[row])
        for slot, task in enumerate(chosen)
        for row in np.flatnonzero(ragged.task == task)
    )
    real = np.asarray(batch.count) == 1
    got = sorted(zip(*(np.asarray(x)[real] for x in (batch.task, batch.worker, batch.label)), strict=True))
    assert got == expected
    assert (np.diff(batch.task) >= 0).all()
    assert batch.population == 12


def test_minibatches_estimate_the_whole_likelihood_without_bias(ragged):
    """The mean over 4,000 batches lies within five standard errors of the whole."""
    rng = np.random.default_rng(0)
    theta = {"prevalence": rng.dirichlet(np.ones(3)), "confusion": rng.dirichlet(np.ones(3), (4, 3))}
    source = in_batches(ragged, 5)

    def estimate(key):
        at = density(MODEL, theta, source.draw(key).annotations)
        return at.log_posterior - at.log_prior

    estimates = np.asarray(jax.jit(jax.vmap(estimate))(jax.random.split(jax.random.key(0), 4000)))
    whole = density(MODEL, theta, ragged)
    error = estimates.std() / np.sqrt(len(estimates))
    assert abs(estimates.mean() - float(whole.log_posterior - whole.log_prior)) < 5 * error


@pytest.mark.slow
def test_minibatches_reach_the_solution_of_the_whole_data():
    annotations = random_annotations(np.random.default_rng(1), n_tasks=100, n_workers=5, n_classes=2, n_rows=500)
    settings = {"method": "svi", "progress": False, "max_iterations": 3000, "diagonal": 4.0}
    whole = fit("dawid_skene", annotations, **settings)
    parts = fit("dawid_skene", annotations, batch_size=25, **settings)
    sd = whole.outcome.draws["confusion"].std((0, 1))
    distance = np.abs((parts.parameters["confusion"] - whole.parameters["confusion"]).to_numpy()) / sd
    assert np.median(distance) < 0.5


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("guide", ["normal", "low_rank", "multivariate_normal", "delta"])
def test_every_guide_by_name_runs_to_a_lower_loss(ragged, guide):
    result = fit("dawid_skene", ragged, method="svi", guide=guide, max_iterations=400, diagonal=4.0, progress=False)
    history = result.history.to_numpy()
    assert history[-100:].mean() <= history[:20].mean()
    np.testing.assert_allclose(result.posterior.sum(-1), 1, atol=1e-5)


def test_too_few_steps_are_warned_about(ragged):
    with pytest.warns(ConvergenceWarning, match="raise max_iterations"):
        fit("dawid_skene", ragged, method="svi", max_iterations=3, progress=False)


def test_the_same_seed_gives_the_same_draws(ragged):
    first, again = (
        fit("dawid_skene", ragged, method="svi", batch_size=4, max_iterations=200, seed=3, progress=False)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.outcome.draws["confusion"], again.outcome.draws["confusion"])


def test_unfit_options_are_refused(ragged):
    with pytest.raises(UnknownNameError, match="normal"):
        fit("dawid_skene", ragged, method="svi", guide="norml", progress=False)
    with pytest.raises(ValueError, match="batch_size=0: a whole number from 1"):
        fit("dawid_skene", ragged, method="svi", batch_size=0, progress=False)


def test_a_minibatch_larger_than_the_data_is_all_of_them(ragged):
    sizes = (12, 13)
    whole, larger = (fit("dawid_skene", ragged, method="svi", batch_size=n, progress=False) for n in sizes)
    np.testing.assert_array_equal(whole.posterior, larger.posterior)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("guide", ["delta", AutoDelta, partial(AutoDelta, prefix="mine"), "normal"])
def test_a_guide_that_is_a_point_says_so_and_keeps_one_draw(ragged, guide):
    outcome = fit("dawid_skene", ragged, method="svi", guide=guide, max_iterations=20, progress=False).outcome
    assert outcome.is_point == (guide != "normal")
    assert {value.shape[:2] for value in outcome.draws.values()} == {(1, 1) if outcome.is_point else (1, 1000)}


def test_draws_that_are_all_equal_are_a_point():
    same = {"x": np.ones((2, 3, 4)), "y": np.zeros((2, 3))}
    assert as_point(same)[1]
    assert as_point(same)[0]["x"].shape == (1, 1, 4)
    assert not as_point(same | {"y": np.arange(6.0).reshape(2, 3)})[1]
    assert not as_point({"x": np.ones((1, 1, 4))})[1]  # one draw of a guide that may be of any kind


def test_a_step_whose_loss_is_not_finite_changes_nothing(ragged):
    """With scales of the guide beyond single precision."""
    values = {name: site[0, 0] for name, site in fit("dawid_skene", ragged, progress=False).outcome.draws.items()}
    key, source = jax.random.key(0), InMemory(ragged)
    climber = svi.climber_of(MODEL, source, values, key, SVISettings())
    state = climber.init(source, key)
    optimizer = svi._engine(climber, ragged, source.draw(key), key)[0].optim
    parameters = optimizer.get_params(state.svi.optim_state)
    far = {name: value + 1e3 if "scale" in name else value for name, value in parameters.items()}
    for start, is_taken in (
        (state, True),
        (state._replace(svi=state.svi._replace(optim_state=optimizer.init(far))), False),
    ):
        after, (loss, *_) = advance(climber, source, start, 1)
        assert np.isfinite(loss) == is_taken
        before, now = (optimizer.get_params(each.svi.optim_state) for each in (start, after))
        assert any((before[name] != now[name]).any() for name in before) == is_taken


def test_a_few_lost_steps_are_left_out_and_more_are_an_error_that_names_the_first():
    few, many = [3.0, np.nan, np.inf, 1.0], [1.0] * 593 + [np.nan] * 7
    svi.check_losses(few)
    np.testing.assert_array_equal(svi.without_gaps(few), [3.0, 3.0, 3.0, 1.0])
    with pytest.raises(FloatingPointError, match="nan at step 594; lower learning_rate"):
        svi.check_losses(many)
    svi.check_losses([1.0] * 700 + [np.nan] * 7)
    assert svi.facts([1.0] * 700 + [np.nan]) == {"steps_left_out": 1}
    assert svi.facts([1.0] * 700) == {}


@pytest.mark.slow
def test_many_classes_are_fitted_though_a_draw_has_probabilities_of_zero():
    """Of the 2,500 steps one had a loss that is not finite, which was an error."""
    crowd = simulate("dawid_skene", n_tasks=400, n_workers=20, n_classes=20, annotations_per_task=5, seed=1)[0]
    with pytest.warns(ConvergenceWarning, match="left out 1 of 2,500 steps"):
        found = fit("dawid_skene", crowd.without_gold(), method="svi", seed=1, max_iterations=2500, progress=False)
    assert np.isfinite(found.outcome.history).all()
    np.testing.assert_allclose(found.posterior.sum(1), 1, atol=1e-5)
