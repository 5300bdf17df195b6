"""EM in minibatches: an epoch's M-step is that of all data, steps by hand, held-out annotations, and where it stops."""

import jax
import jax.numpy as jnp
import network_by_hand
import numpy as np
import pytest
from conftest import random_annotations
from flax import nnx

import crowdppl as cp
from crowdppl import Classifier
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_spec, starting_point
from crowdppl.inference.engines import minibatch_em as training
from crowdppl.inference.engines.em import EMSettings
from crowdppl.inference.engines.m_step import gradient
from crowdppl.inference.sources.memory import in_batches
from crowdppl.models import STORIES
from crowdppl.models.parts.starts import soft_votes

N_TASKS, N_CLASSES, DIAGONAL = 13, 3, 2.0
STILL = {"network_rate": 0.0, "learning_rate": 0.0}
CALM = Classifier("mlp", hidden=(4,), dropout=0.0)


@pytest.fixture(scope="module")
def annotations():
    rng = np.random.default_rng(0)
    annotations = random_annotations(rng, n_tasks=N_TASKS, n_workers=4, n_classes=N_CLASSES, n_rows=45)
    evidence = np.where(np.arange(N_TASKS)[:, None] == 2, np.log([0.2, 0.7, 0.1]), 0.0).astype("f4")
    return annotations.replace(features=rng.normal(size=(N_TASKS, 2)).astype("f4"), evidence=evidence)


@pytest.fixture(scope="module")
def separable():
    """Three clusters of tasks, each annotated by five workers who are right seven times in ten."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 150)
    x = 2 * np.eye(3)[truth] + rng.normal(size=(150, 3)) * 0.5
    wrong = (truth[:, None] + rng.integers(1, 3, (150, 5))) % 3
    labels = np.where(rng.random((150, 5)) < 0.7, truth[:, None], wrong)
    return cp.Annotations.from_matrix(labels, features=x, gold=dict(enumerate(truth.tolist())))


def model_of(classifier):
    return Model(STORIES["dawid_skene"], {"truth_prior": classifier, "diagonal": DIAGONAL})


def somewhere(model, annotations):
    """Parameters at which no class is like another."""
    rng = np.random.default_rng(2)
    start = jax.jit(starting_point, static_argnames="model")(model, annotations, jax.random.key(0))
    drawn = {name: (rng.normal(size=value.shape) * 0.5).astype("f4") for name, value in start.items()}
    return drawn | {"confusion": rng.dirichlet([3, 2, 2], (4, 3)).astype("f4")}


def run_epoch(model, annotations, theta, batch_size, settings, key, on_votes=False):
    state = training.start(model, annotations, theta, settings)
    source = in_batches(annotations, batch_size)
    return training.epoch(model, source, state, key, settings, on_votes=on_votes)


def joint_by_hand(annotations, theta):
    """Log-probability of each task's annotations and evidence under each class."""
    joint = np.log(network_by_hand.softmax(network_by_hand.logits(weights_of(theta), annotations.features)))
    joint += annotations.evidence
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        joint[task] += np.log(theta["confusion"][worker, :, label].astype(float))
    return joint


def weights_of(theta):
    return {name: value for name, value in theta.items() if name.startswith("classifier.")}


@pytest.mark.parametrize("batch_size", [1, 5, 13])
def test_an_epoch_gives_the_tables_the_m_step_of_all_data_where_nothing_else_moves(annotations, batch_size):
    """Counted in loops over all annotations, at batch sizes that divide the 13 tasks and one that does not."""
    model = model_of(CALM)
    theta = somewhere(model, annotations)
    settings = EMSettings(**STILL)
    state, watch = run_epoch(model, annotations, theta, batch_size, settings, jax.random.key(3))
    joint = joint_by_hand(annotations, theta)
    posterior = network_by_hand.softmax(joint)
    counts = np.tile(np.where(np.eye(3), DIAGONAL, 0.5), (4, 1, 1))
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        counts[worker, :, label] += posterior[task]
    np.testing.assert_allclose(state.tables["confusion"], counts / counts.sum(-1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(watch.log_likelihood.sum(), np.log(np.exp(joint).sum(-1)).sum(), rtol=1e-5)
    for name, value in weights_of(theta).items():
        np.testing.assert_array_equal(state.reals[name], value)


@pytest.mark.parametrize("on_votes", [False, True])
def test_a_batchs_loss_is_over_its_own_tasks_and_not_over_those_that_fill_it_up(annotations, on_votes):
    r"""−(mean of Σ_k q_ik log p(z_i = k, y_i) + log prior / N), with q the posterior, or the votes in the warm-up."""
    model = model_of(CALM)
    theta = somewhere(model, annotations)
    key = jax.random.key(4)
    _, watch = run_epoch(model, annotations, theta, 5, EMSettings(**STILL), key, on_votes)
    joint = joint_by_hand(annotations, theta)
    posterior = network_by_hand.softmax(joint)
    if on_votes:
        posterior = np.asarray(soft_votes(annotations)) * np.exp(annotations.evidence)
        posterior /= posterior.sum(-1, keepdims=True)
    chosen, weight = (np.asarray(x) for x in in_batches(annotations, 5).shuffled(jax.random.split(key)[0]))
    assert sorted(chosen[weight > 0]) == list(range(N_TASKS))
    log_prior = float(jax.jit(lambda theta: density(model, theta, annotations).log_prior_in_log_odds)(theta))
    for batch in range(3):
        tasks = chosen[batch][weight[batch] > 0]
        expected = (posterior * joint)[tasks].sum(-1).mean() + log_prior / N_TASKS
        np.testing.assert_allclose(watch.loss[batch], -expected, rtol=1e-4)
    assert (weight > 0).sum(-1).tolist() == [5, 5, 3]


def test_the_first_step_is_adams_along_the_gradient_of_the_log_posterior(annotations):
    """Fisher's identity: with the posterior held fixed the expected complete data have the gradient of the marginal.

    Adam's first step is the rate times g / (|g| + 1e-8).
    """
    model = model_of(Classifier("mlp", hidden=(4,), dropout=0.0, prior=1.5))
    theta = somewhere(model, annotations)
    settings = EMSettings(network_rate=0.03)
    state, _ = run_epoch(model, annotations, theta, N_TASKS, settings, jax.random.key(5))
    slope = jax.jit(lambda theta: gradient(model, annotations, parameter_spec(model, annotations), theta).slope)(theta)
    for name, value in weights_of(theta).items():
        g = np.asarray(slope[name], dtype=float) / N_TASKS
        np.testing.assert_allclose(state.reals[name], value + 0.03 * g / (np.abs(g) + 1e-8), atol=1e-4)


def test_weight_decay_adds_its_share_of_the_weights_to_the_slope_before_adams_step(annotations):
    """The slope is that of the mean negative log-joint plus λ w."""
    model = model_of(CALM)
    theta = somewhere(model, annotations)
    settings = EMSettings(network_rate=0.03, weight_decay=0.3)
    state, _ = run_epoch(model, annotations, theta, N_TASKS, settings, jax.random.key(5))
    slope = jax.jit(lambda theta: gradient(model, annotations, parameter_spec(model, annotations), theta).slope)(theta)
    for name, value in weights_of(theta).items():
        g = 0.3 * np.asarray(value, float) - np.asarray(slope[name], float) / N_TASKS
        np.testing.assert_allclose(state.reals[name], value - 0.03 * g / (np.abs(g) + 1e-8), atol=1e-4)


def test_running_statistics_follow_the_batches_and_are_what_predictions_use(separable):
    """Of features, which are normalised first, after E epochs of one batch: 0.9^E the start's, the rest the batch's."""
    epochs = 6
    classifier = Classifier("mlp", hidden=(4,), batch_norm=True, dropout=0.5)
    fit = cp.fit("dawid_skene", separable, classifier=classifier, epochs=epochs, batch_size=150, progress=False)
    x = separable.features.astype(float)
    kept = 0.9**epochs
    found = fit.outcome.fixed
    np.testing.assert_allclose(found["classifier.norms.0.mean"], (1 - kept) * x.mean(0), atol=1e-4)
    np.testing.assert_allclose(found["classifier.norms.0.var"], kept + (1 - kept) * x.var(0), atol=1e-4)
    new = np.random.default_rng(3).normal(size=(4, 3))
    expected = network_by_hand.softmax(network_by_hand.logits(weights_of(found), new))
    np.testing.assert_allclose(fit.predict_proba(new), expected, atol=1e-4)
    np.testing.assert_allclose(fit.predict_proba(new[:1]), expected[:1], atol=1e-4)


def with_held_out(annotations, seed=0, epochs=80, patience=3):
    classifier = Classifier("mlp", hidden=(16,))
    options = {"network_rate": 0.02, "batch_size": 30, "held_out": 0.3, "epochs": epochs, "patience": patience}
    return cp.fit("dawid_skene", annotations, classifier=classifier, seed=seed, progress=False, **options)


@pytest.fixture(scope="module")
def stopped(separable):
    return with_held_out(separable)


def test_training_stops_where_held_out_annotations_are_told_no_better_and_keeps_that_epoch(separable, stopped):
    epochs = len(stopped.history) - 1
    assert epochs < 80
    until_the_best = with_held_out(separable, epochs=epochs - 3, patience=80)
    jax.tree.map(np.testing.assert_array_equal, stopped.outcome.fixed, until_the_best.outcome.fixed)
    np.testing.assert_array_equal(stopped.outcome.draws["confusion"], until_the_best.outcome.draws["confusion"])
    assert stopped.history.iloc[-1] == until_the_best.history.iloc[-1]


def test_the_same_seed_gives_the_same_network_and_another_seed_another(separable, stopped):
    again, other = (with_held_out(separable, seed) for seed in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, stopped.outcome.fixed, again.outcome.fixed)
    np.testing.assert_array_equal(stopped.posterior, again.posterior)
    assert (
        np.abs(stopped.outcome.fixed["classifier.out.kernel"] - other.outcome.fixed["classifier.out.kernel"]).max() > 0
    )


def test_holding_out_looks_at_no_gold_label(separable, stopped):
    for gold in (separable.gold[::-1].copy(), None):
        again = with_held_out(separable.replace(gold=gold))
        np.testing.assert_array_equal(stopped.history, again.history)
        np.testing.assert_array_equal(stopped.posterior, again.posterior)


@pytest.mark.parametrize(("share", "n_out"), [(0.3, 45), (1e-6, 1), (0.999, 149)])
def test_all_annotations_to_the_share_asked_for_of_the_tasks_are_held_out(separable, share, n_out):
    """One task at the least is held out, and one is left."""
    count = np.arange(1, 751, dtype="f4")
    seen = training.annotations_left(separable.replace(count=count), share, jax.random.key(0))
    left = np.asarray(seen.count)
    tasks = np.unique(np.asarray(separable.task)[left == 0])
    assert len(tasks) == n_out
    np.testing.assert_array_equal(left, np.where(np.isin(separable.task, tasks), 0, count))


def test_the_gain_is_how_much_the_networks_classes_say_of_held_out_annotations_beyond_their_mean(stopped, separable):
    """By the formula, task for task, at the parameters of a fit."""
    seen = training.annotations_left(separable, 0.3, jax.random.key(0))
    at_mode = {name: value[0, 0] for name, value in stopped.outcome.draws.items()}
    model, parameters = (
        Model(STORIES["dawid_skene"], {"truth_prior": Classifier("mlp", hidden=(16,))}),
        at_mode | dict(stopped.outcome.fixed),
    )
    p = np.asarray(stopped.predict_proba(separable.features), dtype=float)
    likelihood = np.ones((150, 3))
    rows = np.asarray(stopped.outcome.draws["confusion"][0, 0], dtype=float)
    np.multiply.at(likelihood, np.asarray(separable.task), rows[separable.worker, :, separable.label])
    out = np.unique(np.asarray(separable.task)[np.asarray(seen.count) == 0])
    alone, by_mean = np.log((p * likelihood).sum(-1))[out].sum(), np.log(likelihood @ p.mean(0))[out].sum()
    for decides, expected in ((False, alone - by_mean), (True, alone)):
        assert float(training.gain(model, parameters, separable, seen, decides)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_tables_alone_may_be_trained_in_minibatches_which_are_ems_iterations(separable):
    """Without a network an epoch is an iteration of EM, whatever the batches."""
    parts = cp.fit("dawid_skene", separable, batch_size=40, epochs=8, progress=False)
    whole = cp.fit("dawid_skene", separable, max_iterations=8, tolerance=0.0, accelerate=False, progress=False)
    np.testing.assert_allclose(parts.posterior, whole.posterior, atol=1e-3)
    np.testing.assert_allclose(parts.outcome.draws["confusion"], whole.outcome.draws["confusion"], atol=1e-3)
    np.testing.assert_allclose(parts.history, whole.history, rtol=1e-4)


def test_a_batch_larger_than_the_data_is_all_of_them(separable):
    parts = [
        cp.fit("dawid_skene", separable, classifier=CALM, epochs=3, batch_size=size, progress=False)
        for size in (150, 512)
    ]
    np.testing.assert_array_equal(parts[0].posterior, parts[1].posterior)
    assert parts[1].outcome.facts["steps"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0: a whole number from 1"),
        ({"batch_size": 2.5}, "batch_size=2.5: a whole number from 1"),
        ({"held_out": 1.0}, "held_out=1.0: a finite number from 0 and below 1"),
        ({"epochs": 0}, "epochs=0: a whole number from 1"),
        ({"network_rate": -1e-3}, "network_rate=-0.001: a finite number from 0"),
    ],
)
def test_options_that_cannot_be_are_refused_at_the_front_door(separable, options, message):
    with pytest.raises(ValueError, match=message):
        cp.fit("dawid_skene", separable, classifier=CALM, progress=False, **options)


class Brittle(nnx.Module):
    """Logits that are not finite where a weight has gone beyond 0.05."""

    def __init__(self):
        self.weight = nnx.Param(jnp.zeros((3, 3)))

    def __call__(self, x):
        return jnp.where(jnp.abs(self.weight[...]).max() > 0.05, jnp.nan, x @ self.weight[...])


def test_logits_that_turn_non_finite_are_told_with_the_step(separable):
    """Adam moves a weight by its rate at first: after three steps of 0.02 one is beyond 0.05."""
    with pytest.raises(FloatingPointError, match=r"not finite at step 1 of epoch 2 \(step 4"):
        cp.fit("dawid_skene", separable, classifier=Brittle(), batch_size=50, network_rate=0.02, progress=False)


@pytest.mark.parametrize("held_out", [0.0, 0.2])
def test_logits_that_turn_non_finite_in_the_last_step_are_told_too(separable, held_out):
    with pytest.raises(FloatingPointError, match="not finite"):
        cp.fit(
            "dawid_skene",
            separable,
            classifier=Brittle(),
            batch_size=150,
            epochs=1,
            network_rate=0.1,
            held_out=held_out,
            progress=False,
        )


def test_stopping_by_held_out_annotations_waits_for_a_network_that_still_learns():
    """Workers have more cells than annotations: confusion matrices at their mode call most annotations impossible."""
    digits = cp.load_dataset("digits")
    x, y = cp.load_split("digits", "test")
    fit = cp.fit("dawid_skene", digits, classifier="mlp", network_rate=1e-3, epochs=25, held_out=0.1, progress=False)
    assert len(fit.history) > 20
    assert (
        fit.predict_proba(x).argmax(-1) == y
    ).mean() > 0.85  # the vote is right of 0.77, an untrained network of 0.1


def test_steps_of_svi_leave_a_networks_weights_where_em_led_them(separable):
    options = {"method": "svi", "classifier": CALM, "epochs": 3, "draws": 5, "progress": False, "sweeps": 0}
    few, many = (cp.fit("dawid_skene", separable, max_iterations=n, **options).outcome for n in (1, 30))
    jax.tree.map(np.testing.assert_array_equal, few.fixed, many.fixed)
    assert np.abs(few.draws["confusion"].mean(1) - many.draws["confusion"].mean(1)).max() > 0
    assert "classifier.out.kernel" in few.fixed
