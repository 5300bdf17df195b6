"""Stories with parameters by task in minibatches: they reach what all data reach, and learn with a network."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import Classifier
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_spec, starting_point
from crowdppl.inference.engines import local_steps
from crowdppl.models import STORIES

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
N_TASKS, N_WORKERS = 200, 6
EVERYTHING = {"discrimination": True, "guessing": True}  # of the tasks' own


@pytest.fixture(scope="module")
def crowd():
    """Two classes that two features tell apart, and workers who are right seven times in ten, three a task."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, N_TASKS)
    x = (1.5 * np.eye(2)[truth] + rng.normal(size=(N_TASKS, 2))).astype("f4")
    rows = [
        (i, j, truth[i] if rng.random() < 0.7 else 1 - truth[i])
        for i in range(N_TASKS)
        for j in rng.choice(N_WORKERS, 3, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, tasks=range(N_TASKS), features=dict(enumerate(x)))


@pytest.mark.parametrize(
    ("story", "options"), [("glad", {}), pytest.param("item_response", EVERYTHING, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("batch_size", [32, pytest.param(N_TASKS, marks=pytest.mark.slow)])
def test_minibatches_reach_the_log_posterior_of_em_over_all_data(crowd, story, options, batch_size):
    """200 is no multiple of 32, so that some tasks come twice in the last batch.

    The log-posterior of the start lies 100 nats below; it has flat ridges, on which Adam's steps of 0.05 stop within 2,
    and on which labels of tasks with three annotations move by some hundredths.
    """
    whole = cp.fit(story, crowd, progress=False, **options)
    some = cp.fit(story, crowd, batch_size=batch_size, epochs=200, progress=False, **options)
    assert some.outcome.history[-1] == pytest.approx(whole.outcome.history[-1], abs=2.0)
    assert np.abs(some.posterior - whole.posterior).mean() < 0.1


@pytest.mark.parametrize(("story", "options"), [("glad", {}), ("item_response", EVERYTHING)])
def test_em_over_all_data_never_falls_with_a_logistic_regression(crowd, story, options):
    history = cp.fit(story, crowd, classifier="logistic", progress=False, **options).outcome.history
    assert (np.diff(history) >= -1e-6 * np.abs(history[1:])).all()
    assert history[-1] > history[0]


@pytest.mark.slow
def test_svi_in_minibatches_finds_the_posterior_of_all_data(crowd):
    """Of 200 means two guides differ by a tenth of the posterior's standard deviation, 0.9, where Adam has settled."""
    options = {"method": "svi", "progress": False}
    whole = cp.fit("glad", crowd, max_iterations=2000, **options).outcome.draws["difficulty"]
    some = cp.fit("glad", crowd, max_iterations=6000, batch_size=50, **options).outcome.draws["difficulty"]
    assert some.shape == whole.shape == (1, 1000, N_TASKS)
    assert np.abs(some.mean((0, 1)) - whole.mean((0, 1))).mean() < 0.15
    assert some.std((0, 1)).mean() == pytest.approx(whole.std((0, 1)).mean(), rel=0.05)


def test_a_guide_of_all_tasks_together_is_refused_in_minibatches(crowd):
    with pytest.raises(ValueError, match=r"'difficulty' .* give guide='normal'"):
        cp.fit("glad", crowd, method="svi", guide="low_rank", batch_size=50, progress=False)


def test_a_batch_moves_its_own_tasks_alone_and_none_that_only_fills_it_up(crowd):
    model = Model(STORIES["item_response"], EVERYTHING)
    data = jax.tree.map(jnp.asarray, crowd)
    chosen, weight = jnp.array([3, 7, 11]), jnp.array([1.0, 0.0, 1.0])

    @jax.jit
    def moved():
        parts = parameter_spec(model, data)
        before = local_steps.by_task(parts, starting_point(model, data, jax.random.key(0)))
        here = local_steps.of_tasks(before, parts, chosen)
        here = here._replace(
            **{kind: {n: v + 1 for n, v in getattr(here, kind).items()} for kind in ("tables", "reals")}
        )
        return before, local_steps.put_back(before, here, parts, chosen, weight)

    before, after = moved()
    assert set(after.reals) == {"difficulty", "discrimination"}
    assert set(after.tables) == {"guess"}
    for old, new in zip(jax.tree.leaves(before[:2]), jax.tree.leaves(after[:2]), strict=True):
        assert np.flatnonzero(np.any(np.reshape(old != new, (N_TASKS, -1)), axis=-1)).tolist() == [3, 11]


@pytest.fixture(scope="module")
def digits():
    return cp.load_dataset("digits")


@pytest.mark.parametrize(("method", "options"), [("em", {}), ("svi", {"max_iterations": 500, "batch_size": 128})])
def test_glad_learns_digits_with_a_network(digits, method, options):
    """The votes are right in 77 % of the tasks; dawid_skene with this network reaches 95 % of them."""
    fit = cp.fit("glad", digits, method=method, classifier="mlp", progress=False, **options)
    assert (fit.posterior.argmax(-1) == digits.gold).mean() > 0.94
    assert (fit.predict_proba(digits.features).argmax(-1) == digits.gold).mean() > 0.92


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), [("em", {}), ("svi", {"max_iterations": 500, "batch_size": 128})])
def test_item_response_learns_odd_and_even_digits_with_a_network(digits, method, options):
    frame = digits.to_frame()
    frame["label"] = frame["label"].astype(int) % 2
    features = dict(zip(digits.tasks, np.asarray(digits.features), strict=True))
    odd = cp.Annotations.from_frame(frame, features=features)
    gold = np.array([int(digits.classes[k]) % 2 for k in digits.gold])
    votes = (odd.votes().argmax(-1) == gold).mean()
    fit = cp.fit("item_response", odd, method=method, classifier="mlp", progress=False, **options)
    assert (fit.posterior.argmax(-1) == gold).mean() > max(votes + 0.03, 0.9)


@pytest.mark.slow
def test_the_network_and_the_tasks_own_parameters_learn_from_the_same_labels(crowd):
    """Without features that say anything the network stays at the prevalence, and labels are those without it."""
    blind = crowd.replace(features=np.zeros_like(crowd.features))
    network = Classifier("mlp", hidden=(4,), dropout=0.0)
    with_network = cp.fit("glad", blind, classifier=network, epochs=80, network_rate=3e-3, progress=False)
    without = cp.fit("glad", blind, batch_size=64, epochs=80, progress=False)
    assert np.abs(with_network.posterior - without.posterior).mean() < 0.03
