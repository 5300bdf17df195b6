"""Confusion matrices that come from features of worker and task."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from scipy.stats import binom
from whole_density import density

import crowdppl as cp
from crowdppl import AnnotationError, StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.models import STORIES, Given

STORY = STORIES["confusion_from_features"]
K, N, J, D, F = 3, 5, 4, 2, 3
LINEAR = {"spread": 1.5, "by_task": True}
NETWORK = LINEAR | {"hidden": 4, "embedding": 3}


@pytest.fixture(scope="module")
def tiny():
    rng = np.random.default_rng(0)
    found = random_annotations(rng, n_tasks=N, n_workers=J, n_classes=K, n_rows=12)
    x, e = (rng.normal(size=shape).astype("f4") for shape in ((N, D), (J, F)))
    return found.replace(features=x, worker_features=e)


@partial(jax.jit, static_argnums=0)
def at(model, theta, annotations):
    """The likelihood, the labels, and the emission, compiled: one operation after the other takes longer."""
    found = density(model, theta, annotations)
    return found.log_likelihood, found.posterior, found.likelihood.emission


def drawn(model, annotations, seed=1):
    like = starting_point(model, annotations, jax.random.key(0))
    rng = np.random.default_rng(seed)
    found = {name: rng.normal(size=value.shape).astype("f4") for name, value in like.items()}
    return found | {"prevalence": np.array([0.2, 0.3, 0.5], "f4")}


def by_hand(theta, annotations, options):
    """The confusion matrix of every worker and task by the formulas of the story: ``(J, N, K, K)``."""
    theta = {name: np.asarray(value, float) for name, value in theta.items()}
    x, e = annotations.features, annotations.worker_features
    x = None if options.get("by_task") is False else x
    e = np.eye(J) * np.sqrt(J) if e is None else e  # one number a worker is not divided by their number
    s, logits = options.get("spread", 1.0), np.zeros((J, N, K, K))
    for j, i in product(range(J), range(N)):
        if "hidden" not in options:
            own = sum(e[j, f] * theta["worker_weights"][f] for f in range(e.shape[1])) / np.sqrt(e.shape[1])
            of_task = 0 if x is None else sum(x[i, d] * theta["task_weights"][d] for d in range(D)) / np.sqrt(D)
            logits[j, i] = theta["base"] + s * own + s * of_task
            continue
        u = e[j] @ theta["worker_embedding"] / np.sqrt(e.shape[1])
        inputs = u
        if x is not None:
            v = x[i] @ theta["task_embedding"] / np.sqrt(D)
            inputs = np.concatenate([u, v, u * v])
        hidden = np.tanh(inputs @ theta["hidden_weights"] / np.sqrt(len(inputs)) + theta["hidden_bias"])
        logits[j, i] = theta["base"] + s * np.einsum("h,hkl->kl", hidden, theta["output"]) / np.sqrt(len(hidden))
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


@pytest.mark.parametrize("options", [LINEAR, NETWORK, LINEAR | {"by_task": False}, NETWORK | {"by_task": False}])
@pytest.mark.parametrize("featured", [True, False])
def test_the_density_is_the_sum_over_all_labellings_of_the_formulas(tiny, options, featured):
    annotations = tiny if featured else tiny.replace(worker_features=None)
    model = Model(STORY, options)
    theta = drawn(model, annotations)
    tables = by_hand(theta, annotations, options)
    total, mass = 0.0, np.zeros((N, K))
    for truth in product(range(K), repeat=N):
        p = np.prod([theta["prevalence"][k] for k in truth])
        rows = zip(annotations.worker, annotations.task, annotations.label, strict=True)
        p *= np.prod([tables[j, i, truth[i], y] for j, i, y in rows])
        total += p
        mass[np.arange(N), truth] += p
    log_likelihood, posterior, _ = at(model, theta, annotations)
    np.testing.assert_allclose(log_likelihood.sum(), np.log(total), rtol=1e-5)
    np.testing.assert_allclose(posterior, mass / total, atol=1e-5)


@pytest.mark.parametrize("options", [LINEAR, NETWORK])
def test_scored_by_itself_an_annotation_has_the_average_over_the_classifiers_probabilities(tiny, options):
    prior = np.random.default_rng(3).dirichlet(np.ones(K), N).astype("f4")
    annotations, options = tiny.replace(prior=prior), options | {"truth": "answer", "truth_prior": Given()}
    model = Model(STORY, options)
    theta = drawn(model, annotations)
    tables = by_hand(theta, annotations, options)
    rows = zip(annotations.worker, annotations.task, annotations.label, strict=True)
    expected = sum(np.log(prior[i] @ tables[j, i, :, y]) for j, i, y in rows)
    log_likelihood, posterior, _ = at(model, theta, annotations)
    np.testing.assert_allclose(log_likelihood.sum(), expected, rtol=1e-5)
    np.testing.assert_allclose(posterior, prior, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"hidden": 4}, {"accuracy": 0.6}, {"accuracy": 0.6, "by_task": False}])
def test_it_starts_from_matrices_that_are_right_with_the_prior_accuracy(tiny, options):
    model = Model(STORY, options)
    tables = at(model, starting_point(model, tiny, jax.random.key(2)), tiny)[2].confusions(tiny)
    right = options.get("accuracy", 0.8)
    np.testing.assert_allclose(tables, np.where(np.eye(K), right, (1 - right) / (K - 1))[None].repeat(J, 0), atol=1e-6)


@pytest.mark.parametrize("options", [LINEAR, NETWORK])
def test_identical_features_have_identical_matrices(tiny, options):
    x, e = np.array(tiny.features), np.array(tiny.worker_features)
    x[3], e[2] = x[0], e[1]
    alike = tiny.replace(features=x, worker_features=e)
    model = Model(STORY, options)
    emission = at(model, drawn(model, alike), alike)[2]
    workers, tasks = np.array([1, 2, 1, 2, 0]), np.array([0, 0, 3, 3, 0])
    tables = np.asarray(emission.probs(workers, tasks))
    np.testing.assert_array_equal(tables[:4], tables[[0, 0, 0, 0]])
    assert np.abs(tables[4] - tables[0]).max() > 0.01


@pytest.mark.parametrize("options", [LINEAR, NETWORK])
def test_a_worker_without_annotations_has_the_matrix_of_an_average_task(tiny, options):
    """Of counted rows as often as they count; the others have the mean over the tasks that they annotated."""
    worker = np.where(np.asarray(tiny.worker) == 3, 0, tiny.worker).astype("i4")
    count = np.random.default_rng(5).integers(1, 4, tiny.n_rows).astype("f4")
    annotations = tiny.replace(worker=worker, count=count)
    model = Model(STORY, options)
    theta = drawn(model, annotations)
    emission = at(model, theta, annotations)[2]
    found, tables = np.asarray(emission.confusions(annotations)), by_hand(theta, annotations, options)
    rows = worker == 1
    expected = np.average(tables[1, annotations.task[rows]], axis=0, weights=count[rows])
    np.testing.assert_allclose(found[1], expected, atol=1e-5)
    of_average = tiny.replace(features=np.average(tiny.features[tiny.task], axis=0, weights=count)[None].repeat(N, 0))
    np.testing.assert_allclose(found[3], by_hand(theta, of_average, options)[3, 0], atol=1e-5)


def crowd_of_features(n_workers, seed, per_worker=10):
    """Three classes, and workers who are right with a probability that is a logistic function of their first feature.

    Returns:
        annotations, and that probability of every worker.
    """
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n_workers, 3))
    right = 1 / (1 + np.exp(-(0.8 + 1.2 * e[:, 0])))
    n_tasks = n_workers * per_worker // 5
    truth = rng.integers(0, 3, n_tasks)
    worker, task = np.repeat(np.arange(n_workers), per_worker), rng.permutation(np.repeat(np.arange(n_tasks), 5))
    is_right = rng.random(len(task)) < right[worker]
    label = np.where(is_right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label}).drop_duplicates(["task", "worker"])
    features = pd.DataFrame(e, columns=["skill", "age", "pay"])
    annotations = cp.Annotations.from_frame(frame, worker_features=features, gold=dict(enumerate(truth)))
    return annotations, right


@pytest.fixture(scope="module")
def crowd():
    return crowd_of_features(300, seed=1)


@pytest.fixture(scope="module")
def fitted(crowd):
    return cp.fit("madl", crowd[0], progress=False)


def accuracies(confusions):
    """The mean of the diagonal of each worker, from the long form."""
    on_diagonal = confusions[confusions["truth"] == confusions["annotation"]]
    return on_diagonal.groupby("worker")["probability"].mean()


def test_abilities_that_depend_on_features_are_found_from_few_annotations_a_worker(crowd, fitted):
    """Ten a worker: Dawid and Skene's matrices, which know nothing of features, are further off and label worse."""
    annotations, right = crowd
    by_itself = cp.fit("dawid_skene", annotations, progress=False)
    errors, labelled = {}, {}
    for name, fit in (("features", fitted), ("dawid_skene", by_itself)):
        found = np.diagonal(fit.confusion_draws[0, 0], axis1=-2, axis2=-1).mean(-1)
        errors[name] = np.abs(found - right[list(annotations.workers)]).mean()
        labelled[name] = (fit.posterior.argmax(-1) == annotations.gold).mean()
    assert errors["features"] < 0.03
    assert errors["features"] < errors["dawid_skene"] / 2
    assert labelled["features"] > labelled["dawid_skene"]


def test_new_workers_have_confusion_matrices_by_their_features_alone(fitted):
    """Their accuracies near those that 1,000 annotations of each would show, in the intervals mostly."""
    e = np.array([[s, 0.5, -0.5] for s in (-2.0, -1.0, 0.0, 1.0, 2.0)])
    found = fitted.new_worker_confusions(e)
    actual = 1 / (1 + np.exp(-(0.8 + 1.2 * e[:, 0])))
    assert list(found.columns) == ["worker", "truth", "annotation", "probability", "low", "high"]
    np.testing.assert_allclose(found.groupby(["worker", "truth"])["probability"].sum(), 1, atol=1e-5)
    np.testing.assert_allclose(accuracies(found), actual, atol=0.07)
    assert (found["low"] <= found["probability"]).all()
    assert (found["probability"] <= found["high"]).all()
    held = found["truth"] == found["annotation"]
    of_each = found[held].assign(actual=np.repeat(actual, 3))
    assert of_each["actual"].between(of_each["low"] - 0.01, of_each["high"] + 0.01).mean() >= 0.6


def test_a_new_worker_with_an_old_ones_features_has_the_old_ones_matrix(crowd, fitted):
    annotations, _ = crowd
    new = fitted.new_worker_confusions(annotations.worker_features[:2])
    old = fitted.confusions().iloc[: len(new)]
    np.testing.assert_allclose(new["probability"], old["probability"], atol=1e-6)


def test_new_workers_features_come_as_table_mapping_or_array(fitted):
    rows = np.array([[0.1, 0.2, 0.3], [1.0, 0.0, -1.0]])
    by_array = fitted.new_worker_confusions(rows)
    by_mapping = fitted.new_worker_confusions({"zoe": rows[0], "yan": rows[1]})
    table = pd.DataFrame(rows, columns=["skill", "age", "pay"]).assign(worker=["zoe", "yan"])
    for found in (
        by_mapping,
        fitted.new_worker_confusions(table),
        fitted.new_worker_confusions(table.set_index("worker")),
    ):
        assert found["worker"].unique().tolist() == ["zoe", "yan"]
        np.testing.assert_allclose(found["probability"], by_array["probability"])


def test_a_tables_features_are_known_by_their_names_in_any_order(crowd, tmp_path):
    annotations, _ = crowd
    frame = annotations.to_frame()
    names = ["skill", "age", "pay"]
    own = pd.DataFrame(np.asarray(annotations.worker_features), columns=names, index=list(annotations.workers))
    named = cp.Annotations.from_frame(frame, worker_features=own)
    shuffled = cp.Annotations.from_frame(frame, worker_features=own[["pay", "skill", "age"]])
    fit = cp.fit("madl", named, progress=False, max_iterations=3)
    fit.save(tmp_path / "fit")
    rows = pd.DataFrame([[0.1, 0.2, 0.3]], columns=names, index=["zoe"])
    expected = fit.new_worker_confusions(rows)
    for known in (fit, cp.load_fit(tmp_path / "fit")):
        pd.testing.assert_frame_equal(known.new_worker_confusions(rows[["age", "pay", "skill"]]), expected)
        with pytest.raises(AnnotationError, match=r"lacks the columns \['pay'\] and has the columns \['wage'\] more"):
            known.new_worker_confusions(rows.rename(columns={"pay": "wage"}))
    joined = named.joined(shuffled.replace(workers=cp.data.Ids([f"new {name}" for name in shuffled.workers])))
    half = len(own)
    np.testing.assert_array_equal(joined.worker_features[half:], joined.worker_features[:half])


def test_over_given_tasks_a_new_workers_matrix_is_the_mean_of_its_matrices(tiny):
    fit = cp.fit("madl", tiny, progress=False, max_iterations=20, **LINEAR)
    theta = {name: np.asarray(values[0, 0]) for name, values in fit.outcome.draws.items()}
    x, e = np.random.default_rng(4).normal(size=(3, D)).astype("f4"), np.array([[0.3, -0.7, 0.1]], "f4")
    told = tiny.replace(features=np.concatenate([x, x[:2]]), worker_features=e.repeat(J, 0))
    expected = by_hand(theta, told, LINEAR)[0, :3].mean(0)
    found = fit.new_worker_confusions(e, x=x)
    np.testing.assert_allclose(found["probability"], expected.ravel(), atol=1e-5)
    at_own = by_hand(theta, tiny.replace(worker_features=e.repeat(J, 0)), LINEAR)[0].mean(0)
    np.testing.assert_allclose(fit.new_worker_confusions(e)["probability"], at_own.ravel(), atol=1e-5)


def test_what_says_nothing_of_new_workers_is_refused(crowd, fitted, tiny):
    rows = np.zeros((1, 3))
    by_itself = cp.fit("dawid_skene", crowd[0], progress=False, max_iterations=2)
    with pytest.raises(ValueError, match=r"dawid_skene says nothing .*\['confusion'\] are each worker's own"):
        by_itself.new_worker_confusions(rows)
    one_each = cp.fit("madl", tiny.replace(worker_features=None), progress=False, max_iterations=2)
    with pytest.raises(ValueError, match=r"\['worker_weights'\] are each worker's own; .*worker_features="):
        one_each.new_worker_confusions(rows)
    with pytest.raises(ValueError, match="2 columns; 3 are needed"):
        fitted.new_worker_confusions(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="x would say nothing: its tasks have no features"):
        fitted.new_worker_confusions(rows, x=np.zeros((4, 2)))
    with pytest.raises(AnnotationError, match="worker 'zoe', column 'age': nan"):
        fitted.new_worker_confusions(pd.DataFrame({"skill": [1], "age": [np.nan], "pay": [0]}, index=["zoe"]))
    with pytest.raises(ValueError, match=r"x has shape \(4, 3\)"):
        cp.fit("madl", tiny, progress=False, max_iterations=2).new_worker_confusions(np.zeros((1, F)), np.zeros((4, 3)))


def test_without_a_prior_by_task_the_tasks_features_do_not_enter_unasked(tiny):
    plain = cp.fit("madl", tiny, progress=False, max_iterations=3)
    assert "task_weights" not in plain.outcome.draws
    classified = cp.fit("madl", tiny, progress=False, max_iterations=3, classifier="logistic")
    assert "task_weights" in classified.outcome.draws


def test_a_network_finds_workers_who_are_good_at_different_tasks():
    """Half of the workers know the tasks on one side, half those on the other; a linear map has no such workers."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers = 600, 20
    x, kind = rng.choice([-1.0, 1.0], (n_tasks, 1)), np.repeat([-1.0, 1.0], n_workers // 2)[:, None]
    truth = rng.integers(0, 2, n_tasks)
    task = np.repeat(np.arange(n_tasks), 5)
    worker = np.concatenate([rng.choice(n_workers, 5, replace=False) for _ in range(n_tasks)])
    right = np.where(kind[worker, 0] == x[task, 0], 0.95, 0.5)
    label = np.where(rng.random(len(task)) < right, truth[task], 1 - truth[task])
    annotations = cp.Annotations.from_frame(
        pd.DataFrame({"task": task, "worker": worker, "label": label}),
        features=dict(enumerate(x)),
        worker_features=dict(enumerate(kind)),
        gold=dict(enumerate(truth)),
    )
    found = {}
    for name, options in (("linear", {}), ("network", {"hidden": 8, "embedding": 4})):
        fit = cp.fit("madl", annotations, progress=False, max_iterations=150, by_task=True, **options)
        found[name] = (fit.posterior.argmax(-1) == truth).mean()
    assert found["network"] > found["linear"] + 0.03, found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": 1.0}, "accuracy=1.0: a finite number above 0 and below 1"),
        ({"accuracy": "high"}, "accuracy='high'"),
        ({"spread": 0.0}, "spread=0.0: a finite number above 0"),
        ({"hidden": 0}, "hidden=0: a whole number from 1"),
        ({"embedding": 3}, "embedding=3 would be ignored: .* give hidden= too"),
        ({"by_task": "yes"}, "by_task='yes': True, False or None"),
        ({"truth": "answer"}, "give classifier="),
    ],
)
def test_options_that_cannot_be_are_refused(tiny, options, message):
    with pytest.raises(StoryError, match=message):
        cp.fit("madl", tiny, progress=False, **options)


def test_tasks_features_are_asked_for_where_they_are_to_enter(tiny):
    with pytest.raises(StoryError, match=r"by_task=True\) needs features of the tasks"):
        cp.fit("madl", tiny.replace(features=None), by_task=True, progress=False)


@pytest.mark.parametrize(
    ("method", "options"),
    [("nuts", {"warmup": 5, "draws": 5}), pytest.param("svi", {"max_iterations": 30}, marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_it_is_saved_and_loaded_with_what_it_says_of_new_workers(tiny, tmp_path, method, options):
    fit = cp.fit("madl", tiny, method=method, progress=False, **options)
    fit.save(tmp_path / "fit")
    loaded = cp.load_fit(tmp_path / "fit")
    e = np.array([[0.5, 1.0, -0.2]])
    pd.testing.assert_frame_equal(loaded.new_worker_confusions(e), fit.new_worker_confusions(e))
    assert fit.new_worker_confusions(e).eval("low < high").all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_intervals_of_nuts_hold_the_parameters_that_600_tasks_were_simulated_with():
    """Entries outside their 95 % interval: no more than in 999 of 1,000 binomial draws of as many at 5 %."""
    features = np.random.default_rng(0).normal(0, 1.5, (600, 2))
    drawn_from = {"n_tasks": 600, "n_workers": 12, "annotations_per_task": 5, "features": features, "seed": 11}
    annotations, parameters = cp.simulate("confusion_from_features", accuracy=0.85, **drawn_from)
    few = {"chains": 1, "warmup": 250, "draws": 300, "progress": False}
    fit = cp.fit("confusion_from_features", annotations, method="nuts", accuracy=0.85, **few)
    missed = []
    for name, draws in fit.outcome.draws.items():
        low, high = np.quantile(draws, [0.025, 0.975], axis=(0, 1))
        outside = (parameters[name] < low) | (parameters[name] > high)
        missed += outside[: 1 if name == "prevalence" else None].ravel().tolist()  # of two shares one is free
    assert len(missed) == 4 + 1 + 12 * 4  # base, prevalence, and the weights of each worker
    assert sum(missed) <= binom.ppf(0.999, len(missed), 0.05), sum(missed)


@pytest.mark.parametrize(("story", "options"), [("madl", LINEAR), ("conal", {"embedding": 3})])
def test_weights_of_workers_features_and_of_tasks_features_have_names_of_their_own(tiny, story, options):
    fit = cp.fit(story, tiny, progress=False, max_iterations=2, **options)
    assert (fit.parameters.sizes["worker_feature"], fit.parameters.sizes["feature"]) == (F, D)


@pytest.mark.slow
def test_it_trains_beside_a_network_as_classifier(tiny):
    features = jnp.asarray(tiny.features)
    fit = cp.fit("madl", tiny, classifier=cp.Classifier("mlp", hidden=(3,)), truth="answer", progress=False, epochs=2)
    np.testing.assert_allclose(fit.posterior, fit.predict_proba(features), atol=1e-5)
