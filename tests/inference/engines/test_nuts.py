"""NUTS: an outside implementation's published figures, known parameters, and what a user is warned about."""

import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of

from crowdppl import ConvergenceWarning, Prevalence, fit, load_dataset, simulate
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import nuts
from crowdppl.inference.engines.settings import NUTSSettings
from crowdppl.inference.findings.of_draws import smallest_ess, worst_rhat
from crowdppl.models import find_story

RATER = {"truth_prior": Prevalence(3.0), "diagonal": 8 * 0.6, "off_diagonal": 8 * 0.4 / 3}


@pytest.fixture(scope="module")
def anesthesia():
    """The anesthesia data under rater's default priors; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return fit(
            "dawid_skene", load_dataset("anesthesia"), method="nuts", draws=1500, seed=1, progress=False, **RATER
        )


def test_prevalence_is_the_one_that_rater_publishes(anesthesia):
    """The published posterior mean has its own Monte Carlo error; ours is below 0.001."""
    published = [0.3756, 0.4073, 0.1432, 0.0738]
    np.testing.assert_allclose(anesthesia.parameters["prevalence"], published, atol=0.005)


def test_chains_agree_and_none_diverges(anesthesia):
    assert anesthesia.warnings == ()
    assert anesthesia.outcome.stats["diverging"].sum() == 0
    assert worst_rhat(anesthesia.draws)[0] < 1.01
    assert smallest_ess(anesthesia.draws)[0] > 400


def test_labels_agree_with_svi_and_em_where_the_data_are_clear(anesthesia):
    data = load_dataset("anesthesia")
    for method in ("em", "svi"):
        other = fit("dawid_skene", data, method=method, progress=False, **RATER)
        clear = anesthesia.posterior.max(-1) > 0.9
        assert clear.mean() > 0.8
        assert (other.posterior.argmax(-1) == anesthesia.posterior.argmax(-1))[clear].all()
        np.testing.assert_allclose(other.parameters["prevalence"], anesthesia.parameters["prevalence"], atol=0.05)


def test_mean_field_svi_has_the_means_and_intervals_of_nuts(anesthesia):
    """Means within half a posterior standard deviation, spreads within a third: what a mean field can do here."""
    svi = fit("dawid_skene", load_dataset("anesthesia"), method="svi", progress=False, **RATER)
    ours, exact = svi.outcome.draws["confusion"][0], anesthesia.outcome.draws["confusion"].reshape(-1, 5, 4, 4)
    sd = exact.std(0)
    assert (np.abs(ours.mean(0) - exact.mean(0)) < 0.5 * sd).all()
    assert np.median(np.abs(ours.std(0) / sd - 1)) < 1 / 3


def test_known_parameters_lie_in_their_intervals():
    """300 tasks, 6 workers, 54 cells: of the 95 % intervals at least 85 % hold the truth (binomial, 1 in 1,000)."""
    annotations, parameters = simulate("dawid_skene", n_tasks=300, n_workers=6, n_classes=3, diagonal=6.0, seed=2)
    result = fit("dawid_skene", annotations, method="nuts", chains=2, diagonal=6.0, progress=False)
    draws = result.outcome.draws["confusion"].reshape(-1, 6, 3, 3)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    true = parameters["confusion"]
    assert ((low <= true) & (true <= high)).mean() >= 0.85


def test_no_cpu_devices_are_made_by_importing_crowdppl_or_by_sampling(tiny):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit("dawid_skene", tiny, method="nuts", chains=4, warmup=5, draws=5, progress=False)
    assert jax.local_device_count() == 1


@pytest.mark.slow
def test_chains_in_threads_and_vectorised_chains_are_the_same_chains(tiny):
    """Float64 keeps rounding, which trajectories blow up, out of sight for a few steps."""
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, tiny)
        model, settings = Model(find_story("dawid_skene")), NUTSSettings(warmup=5, draws=4)
        values = {"prevalence": jnp.full(3, 1 / 3), "confusion": jnp.full((3, 3, 3), 1 / 3)}
        start, keys = nuts.start_at(model, data, values), jax.random.split(jax.random.key(0), 2)
        told = []
        threads = nuts._in_threads(model, start, keys, settings, told.append)
        vectorised = nuts._vectorised(model, start, keys, settings, told.append)
    assert max(told) == 2 * 9
    for one, other in zip(jax.tree.leaves(threads), jax.tree.leaves(vectorised), strict=True):
        assert one.shape[:2] == (2, 4)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert threads.draws["confusion"].dtype == np.float64


def test_a_chains_draws_do_not_depend_on_how_many_chains_there_are(tiny):
    model, data = Model(find_story("dawid_skene")), jax.tree.map(jnp.asarray, tiny)
    values = {"prevalence": jnp.full(3, 1 / 3), "confusion": jnp.full((3, 3, 3), 1 / 3)}
    keys, start = jax.random.split(jax.random.key(0), 4), nuts.start_at(model, data, values)
    settings = NUTSSettings(warmup=5, draws=60)
    four = nuts._in_threads(model, start, keys, settings._replace(chains=4), lambda _: None)
    last = nuts._in_threads(model, start, keys[3:], settings._replace(chains=1), lambda _: None)
    np.testing.assert_array_equal(four.draws["confusion"][3], last.draws["confusion"][0])
    each = [set(draws.tolist()) for draws in four.draws["confusion"][:, :, 0, 0, 0]]
    assert (
        len(set().union(*each)) == sum(map(len, each)) > 200
    )  # a draw may be the one before it, and none is another's


def test_an_error_in_one_chain_ends_the_others(tiny):
    """Not only reports it when they are done: 100,000 draws would take minutes."""
    model, data = Model(find_story("dawid_skene")), jax.tree.map(jnp.asarray, tiny)
    values = {"prevalence": jnp.full(3, 1 / 3), "confusion": jnp.full((3, 3, 3), 1 / 3)}
    keys, start = jax.random.split(jax.random.key(0), 2), nuts.start_at(model, data, values)

    def broken(done):
        raise RuntimeError("stop")

    begin = time.process_time()
    with pytest.raises(RuntimeError, match="stop"):
        nuts._in_threads(model, start, keys, NUTSSettings(chains=2, warmup=5, draws=1_000_000), broken)
    assert time.process_time() - begin < 60


def test_a_start_where_the_density_is_not_finite_is_refused(tiny):
    model, data = Model(find_story("dawid_skene")), jax.tree.map(jnp.asarray, tiny)
    values = {"prevalence": jnp.full(3, 1 / 3), "confusion": jnp.full((3, 3, 3), jnp.nan)}
    with pytest.raises(FloatingPointError, match="where the chains start"):
        nuts._in_threads(
            model,
            nuts.start_at(model, data, values),
            jax.random.split(jax.random.key(0), 1),
            NUTSSettings(),
            lambda _: None,
        )


def test_the_same_seed_gives_the_same_draws_and_another_seed_others(tiny):
    short = {"method": "nuts", "chains": 2, "warmup": 20, "draws": 20, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, again, other = (fit("dawid_skene", tiny, seed=s, **short) for s in (7, 7, 8))
    np.testing.assert_array_equal(first.outcome.draws["confusion"], again.outcome.draws["confusion"])
    np.testing.assert_array_equal(first.posterior, again.posterior)
    assert (first.outcome.draws["confusion"] != other.outcome.draws["confusion"]).any()


def test_too_few_draws_are_warned_about_by_name(tiny):
    with pytest.warns(ConvergenceWarning) as caught:
        result = fit("dawid_skene", tiny, method="nuts", chains=2, warmup=10, draws=10, progress=False)
    assert ("tail", 200) in [(each.values["kind"], each.values["limit"]) for each in findings_of(result, "ess")]
    assert set(result.warnings) == {str(one.message) for one in caught}


def test_another_models_probabilities_reach_the_sampler():
    """Patient 36 is of class 3 or 4 by the annotations; a model that knows it to be of class 2 decides."""
    evidence = pd.DataFrame([[0.0, 1.0, 0.0, 0.0]], index=[36], columns=[1, 2, 3, 4])
    short = {"method": "nuts", "chains": 1, "warmup": 100, "draws": 100, "progress": False, **RATER}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        told = fit("dawid_skene", load_dataset("anesthesia"), evidence=evidence, **short)
    assert told.probabilities.loc[36, 2] > 0.999
