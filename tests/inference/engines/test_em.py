"""EM: exact M-steps, a log-posterior that never falls, and solutions at least as good as a peer's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from conftest import random_annotations
from crowdkit.aggregation import DawidSkene
from hypothesis import given, settings
from hypothesis import strategies as st
from picked_findings import findings_of
from whole_density import density

from crowdppl import Annotations, Confusion, ConvergenceWarning, Prevalence, fit, observe, tasks
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_spec
from crowdppl.inference.engines import em
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.em_climber import EMClimber
from crowdppl.inference.engines.looks import look_at
from crowdppl.inference.engines.m_step import gradient
from crowdppl.inference.sources.memory import InMemory
from crowdppl.models import Classifier, find_story
from crowdppl.models.parts.correct import Correct

DAWID_SKENE = find_story("dawid_skene")
NO_PRIOR = {"diagonal": 1e-9, "off_diagonal": 1e-9, "truth_prior": Prevalence(1e-9)}  # the mode is the likelihood's


def one_coin_with_difficulty(annotations, *, truth_prior=None, scale=1.0):
    """A story of a user's own: a worker's ability, a task's easiness, errors spread evenly."""
    with numpyro.plate("worker", annotations.n_workers):
        ability = numpyro.sample("ability", dist.Normal(1.0, scale))
    with numpyro.plate("item", annotations.n_tasks):
        easiness = numpyro.sample("easiness", dist.LogNormal(0.0, 0.5))
    right = jax.nn.sigmoid(ability[annotations.worker] * easiness[annotations.task])
    k = annotations.n_classes

    class Emission(Confusion):
        def log_prob(self, worker, task, y):
            wrong = (1 - right) / (k - 1)
            return jnp.log(jnp.where(jnp.arange(k) == y[:, None], right[:, None], wrong[:, None]))

    with tasks(annotations, truth_prior) as truth:
        observe(truth, Emission(None), annotations)


def test_m_step_is_the_textbook_one(tiny):
    """θ' ∝ α + Σ_i P(z_i = k) [y = l], computed in loops."""
    rng = np.random.default_rng(1)
    theta = {
        "prevalence": rng.dirichlet(np.ones(3)).astype("f4"),
        "confusion": rng.dirichlet(np.ones(3), (3, 3)).astype("f4"),
    }
    model = Model(DAWID_SKENE, {"diagonal": 2.5, "off_diagonal": 1.25})
    posterior = np.asarray(density(model, theta, tiny).posterior)
    counts = np.full((3, 3, 3), 1.25) + 1.25 * np.eye(3)
    for task, worker, label in zip(tiny.task, tiny.worker, tiny.label, strict=True):
        counts[worker, :, label] += posterior[task]
    got = gradient(model, tiny, parameter_spec(model, tiny), theta).counts
    np.testing.assert_allclose(got["confusion"], counts, atol=1e-5)
    np.testing.assert_allclose(got["prevalence"], 1 + posterior.sum(0), atol=1e-5)
    mode = em.tables_mode(got, theta)
    np.testing.assert_allclose(mode["confusion"], counts / counts.sum(-1, keepdims=True), atol=1e-6)


def test_first_m_step_is_that_of_the_votes(tiny):
    state = em.init(Model(DAWID_SKENE, NO_PRIOR), tiny, jax.random.key(0))
    votes = np.asarray(em.soft_votes(tiny))
    np.testing.assert_allclose(votes[4], 1 / 3)  # the task without annotations
    counts = np.zeros((3, 3, 3))
    for task, worker, label in zip(tiny.task, tiny.worker, tiny.label, strict=True):
        counts[worker, :, label] += votes[task]
    total = counts.sum(-1, keepdims=True)
    expected = np.where(total > 0, counts / np.maximum(total, 1e-9), 1 / 3)
    np.testing.assert_allclose(state.parameters["confusion"], expected, atol=1e-5)
    np.testing.assert_allclose(state.parameters["prevalence"], votes.mean(0), atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), prior=st.sampled_from([(1.0, 1.0), (2.0, 1.0), (4.0, 1.5)]))
def test_log_posterior_never_falls(seed, prior):
    """In float64, so that what is left for a tolerance is rounding in the twelfth digit."""
    annotations = random_annotations(np.random.default_rng(seed), n_tasks=12, n_workers=4, n_classes=3, n_rows=40)
    with jax.enable_x64(True):
        model = Model(DAWID_SKENE, {"diagonal": prior[0], "off_diagonal": prior[1]})
        outcome = em.run(model, annotations, jax.random.key(0), em.EMSettings(60, 1e-14), progress=False)
    steps = np.diff(outcome.history)
    assert steps.min() >= -1e-12 * np.abs(outcome.history).max()


def test_generalised_em_never_falls_and_finds_the_able(tiny):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 200)
    ability = np.array([0.95, 0.9, 0.6, 0.4])
    right = rng.random((200, 4)) < ability
    wrong = (truth[:, None] + rng.integers(1, 3, (200, 4))) % 3
    annotations = Annotations.from_matrix(np.where(right, truth[:, None], wrong))
    result = fit(one_coin_with_difficulty, annotations, progress=False)
    assert np.diff(result.history).min() >= -1e-6 * np.abs(result.history).max()
    np.testing.assert_array_equal(np.argsort(-result.parameters["ability"].values), [0, 1, 2, 3])
    assert (result.labels["label"].to_numpy() == truth).mean() > 0.9


@pytest.mark.slow
def test_with_a_factor_on_the_tables_em_never_falls_and_ends_at_the_mode(tiny):
    """The closed-form M-step is a proposal only; at a mode the counts, with the factor's pull, are the table."""

    def regularised(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", 3, dim=-1):
            confusion = numpyro.sample("confusion", dist.Dirichlet(jnp.full(3, 2.0)))
        numpyro.factor("spread", -40.0 * ((confusion - 1 / 3) ** 2).sum())
        with tasks(annotations, truth_prior) as truth:
            observe(truth, Confusion(confusion), annotations)

    model = Model(regularised)
    with jax.enable_x64(True):
        outcome = em.run(model, tiny, jax.random.key(0), em.EMSettings(tolerance=1e-15), progress=False)
        assert np.diff(outcome.history).min() >= -1e-12 * np.abs(outcome.history).max()
        solution = {name: value[0, 0] for name, value in outcome.draws.items()}
        counts = gradient(model, tiny, parameter_spec(model, tiny), solution).counts["confusion"]
        slope = counts - solution["confusion"] * counts.sum(-1, keepdims=True)  # along the simplex, times the table
        start = em.init(model, tiny, jax.random.key(0)).parameters
        proposal = start | em.tables_mode(gradient(model, tiny, parameter_spec(model, tiny), start).counts, start)
        at_both = [density(model, at, tiny).log_posterior_in_log_odds for at in (start, proposal)]
        falls = at_both[1] < at_both[0]
    assert falls
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize(
    ("story", "arguments"),
    [
        ("glad", {}),
        ("dawid_skene", {"truth_prior": Classifier("logistic")}),
        ("common_individual", {"separation": 1.0}),
    ],
)
def test_after_any_look_the_one_kept_is_that_at_the_parameters(story, arguments, accelerated):
    """In every stage of the acceleration's cycle too, where the next look may be at a proposal."""
    rng = np.random.default_rng(7)
    annotations = random_annotations(rng, n_tasks=20, n_workers=4, n_classes=3, n_rows=70)
    annotations = annotations.replace(features=rng.normal(size=(20, 2)))
    options = {"by_task": False} if story == "common_individual" else {}
    model = Model(find_story(story), arguments | options)
    look = jax.jit(lambda parameters: look_at(model, annotations, parameters))
    with jax.enable_x64(True):
        state = em.init(model, annotations, jax.random.key(0), accelerated=accelerated)
        stages = set()
        for _ in range(7):
            stages.add(None if state.squarem is None else int(state.squarem.stage))
            state, _ = advance(EMClimber(model, em.EMSettings()), InMemory(annotations), state, 1)
            expected = look(state.parameters)._replace(direct=state.look.direct)  # by conjugate gradients
            jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), state.look, expected)
    assert stages == ({0, 1, 2} if accelerated and story != "glad" else {None})


def test_an_iteration_that_is_not_halved_runs_the_story_once(tiny):
    runs = []

    def counted(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers):
            ability = numpyro.sample("ability", dist.Normal(1.0, 1.0))
        jax.debug.callback(lambda x: runs.append(float(x)), ability[0])
        with tasks(annotations, truth_prior) as truth:
            observe(truth, Correct(ability[:, None], annotations.n_classes), annotations)

    model, settings = Model(counted), em.EMSettings(tolerance=0.0)
    state = em.init(model, tiny, jax.random.key(0))
    jax.effects_barrier()
    runs.clear()
    state, history = advance(EMClimber(model, settings), InMemory(tiny), state, 10)
    jax.effects_barrier()
    assert float(state.step_size) == 1.0
    assert (np.diff(history[:10]) > 0).all()
    is_placeholder = np.isclose(runs, 1 / tiny.n_workers)  # of runs for the sites' names, which compute nothing else
    assert (~is_placeholder).sum() == 10


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_where_the_log_posterior_is_not_finite_a_step_is_halved(tiny, beyond):
    """Abilities beyond a wall have a log-posterior that is not finite; the first steps of Adam go there."""
    wall = 0.5

    def walled(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers):
            start = {"start": lambda key: jnp.zeros(annotations.n_workers)}
            ability = numpyro.sample("ability", dist.Normal(3.0, 1.0), infer=start)
        numpyro.factor("wall", jnp.where(ability.max() > wall, beyond, 0.0))
        with tasks(annotations, truth_prior) as truth:
            observe(truth, Correct(ability[:, None], annotations.n_classes), annotations)

    model, settings = Model(walled), em.EMSettings(learning_rate=0.8, tolerance=0.0)
    state = em.init(model, tiny, jax.random.key(0))
    state, _ = advance(EMClimber(model, settings), InMemory(tiny), state, 1)
    start = float(state.look.log_posterior)
    state, _ = advance(EMClimber(model, settings), InMemory(tiny), state, 2)  # at the target, and half of the way to it
    assert int(state.iteration) == 1
    assert float(state.step_size) == 0.5
    assert start < float(state.look.log_posterior) < np.inf
    np.testing.assert_allclose(state.parameters["ability"], 0.4, rtol=1e-4)
    state, history = advance(EMClimber(model, settings), InMemory(tiny), state, 20)
    history = history[np.isfinite(history)]
    assert len(history) > 2
    assert (np.diff(history) >= 0).all()


@pytest.mark.data
@pytest.mark.parametrize("name", ["rte", "trec", "product", "bluebird"])
def test_log_likelihood_is_at_least_that_of_crowd_kit(real, name):
    """Without priors, both run to convergence, both scored by the same sums in float64."""
    annotations = real(name)
    frame = annotations.to_frame().drop_duplicates(["task", "worker"])
    annotations = Annotations.from_frame(frame)
    peer = DawidSkene(n_iter=5000, tol=1e-12).fit(frame)
    errors = peer.errors_.reindex(
        [(w, c) for w in annotations.workers for c in annotations.classes], fill_value=0.0
    ).reindex(columns=list(annotations.classes), fill_value=0.0)
    k = annotations.n_classes
    theirs_table = errors.to_numpy().reshape(-1, k, k).swapaxes(-1, -2)  # theirs has responses as rows
    theirs = float64_log_likelihood(annotations, peer.priors_.reindex(list(annotations.classes)), theirs_table)
    with jax.enable_x64(True):
        outcome = em.run(
            Model(DAWID_SKENE, NO_PRIOR), annotations, jax.random.key(0), em.EMSettings(5000, 1e-13), progress=False
        )
    ours = float64_log_likelihood(annotations, outcome.draws["prevalence"][0, 0], outcome.draws["confusion"][0, 0])
    assert ours >= theirs - 1e-6 * abs(theirs)


def float64_log_likelihood(annotations, prevalence, confusion):
    with np.errstate(divide="ignore"):
        scores = np.tile(np.log(np.asarray(prevalence, dtype=float)), (annotations.n_tasks, 1))
        rows = np.log(np.asarray(confusion, dtype=float))[annotations.worker, :, annotations.label]
    np.add.at(scores, annotations.task, rows)
    peak = scores.max(-1)
    return float((peak + np.log(np.exp(scores - peak[:, None]).sum(-1))).sum())


@pytest.mark.parametrize("strong", [1.0, 50.0])
def test_history_of_a_worker_pulls_the_table_towards_it(tiny, strong):
    import pandas as pd

    history = pd.DataFrame({"worker": [0] * 3, "truth": [0, 1, 2], "label": [0, 1, 2], "count": [strong * 20] * 3})
    without = fit("dawid_skene", tiny, progress=False).parameters["confusion"].values[0]
    told = fit("dawid_skene", tiny, history=history, progress=False).parameters["confusion"].values[0]
    assert (np.diag(told) > np.minimum(np.diag(without), 0.9)).all()


def test_restarts_keep_the_best_solution():
    annotations = random_annotations(np.random.default_rng(5), n_tasks=30, n_workers=5, n_classes=3, n_rows=60)
    one = fit("dawid_skene", annotations, progress=False, tolerance=1e-6)
    many = fit("dawid_skene", annotations, progress=False, tolerance=1e-6, restarts=8)
    assert many.history.iloc[-1] > one.history.iloc[-1]  # noise has many modes: one start does not find the best


def test_too_few_iterations_are_warned_about(tiny):
    with pytest.warns(ConvergenceWarning, match="EM did not converge in 2 iterations"):
        result = fit("dawid_skene", tiny, max_iterations=2, progress=False)
    assert len(result.history) == 3  # two steps and what they led to
    assert [finding.values["steps"] for finding in findings_of(result, "em_not_converged")] == [2]


def test_prevalence_prior_counts_as_so_many_tasks(tiny):
    heavy = fit("dawid_skene", tiny, truth_prior=Prevalence((1e6, 2e6, 1e6)), progress=False)
    np.testing.assert_allclose(heavy.parameters["prevalence"], [0.25, 0.5, 0.25], atol=1e-4)
