"""Stories that score each annotation by itself under a classifier: CrowdLayer and Anno-Reg."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax
from whole_density import density

import crowdppl as cp
from crowdppl import Classifier, StoryError, UnknownNameError
from crowdppl.inference.densities.model import Model
from crowdppl.models import WITH_CLASSIFIER, CrowdLayer
from crowdppl.models.crowd_layer import PACE

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
N, J, K = 12, 3, 3
EVERY = pytest.mark.parametrize("name", WITH_CLASSIFIER)


def linear(x):
    """A function without weights as classifier, so that its probabilities are known."""
    return x


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 2, (N, K)).astype(np.float32)
    rows = [(i, j, rng.integers(K)) for i in range(N) for j in range(J) if rng.random() < 0.7]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(
        frame, tasks=range(N), workers=range(J), classes=range(K), features=dict(enumerate(x))
    )
    return annotations, softmax(x, axis=-1)


def at(name, annotations, parameters, **options):
    model = Model(WITH_CLASSIFIER[name], {"truth_prior": Classifier(linear), **options})
    parameters = {site: jnp.asarray(value, float) for site, value in parameters.items()}
    return density(model, parameters, jax.tree.map(jnp.asarray, annotations))


@pytest.mark.parametrize("form", ["matrix", "vector", "scale_and_bias"])
def test_the_likelihood_is_the_softmax_of_the_workers_layer_over_the_classifier(crowd, form):
    annotations, f = crowd
    rng = np.random.default_rng(1)
    layer = rng.normal(0, 2, (J, K, K) if form == "matrix" else (J, K))
    bias = rng.normal(0, 1, (J, K)) if form == "scale_and_bias" else np.zeros((J, K))
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        logits = f[i] @ layer[j] if form == "matrix" else f[i] * layer[j]
        expected[i] += log_softmax(logits + bias[j])[label]
    around = np.eye(K) if form == "matrix" else np.ones(K)
    parameters = {"offset": (layer - around) / PACE}
    parameters |= {"bias_offset": bias / PACE} if form == "scale_and_bias" else {}
    found = at("crowd_layer", annotations, parameters, form=form)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.posterior, f, atol=1e-6)


def test_the_likelihood_of_anno_reg_sums_the_truth_out_of_each_annotation(crowd):
    annotations, f = crowd
    confusion = np.random.default_rng(2).dirichlet(np.ones(K), (J, K))
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        expected[i] += np.log(f[i] @ confusion[j][:, label])
    found = at("anno_reg", annotations, {"confusion": confusion})
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.posterior, f, atol=1e-6)
    without = at("anno_reg", annotations, {"confusion": confusion}, weight=0.0)
    traces = np.trace(confusion, axis1=-2, axis2=-1).sum()
    np.testing.assert_allclose(found.log_prior - without.log_prior, -0.1 * traces, rtol=1e-4)


def test_a_layer_has_the_confusion_matrix_of_a_classifier_that_is_certain():
    rng = np.random.default_rng(3)
    layer, bias = rng.normal(0, 2, (J, K, K)), rng.normal(0, 1, (J, K))
    emission = CrowdLayer(jnp.asarray(layer), jnp.asarray(bias), jnp.eye(K))
    worker, truth = np.repeat(np.arange(J), K), np.tile(np.arange(K), J)
    found = emission.confusions(None).reshape(-1, K)
    np.testing.assert_allclose(found, emission.probs_given(worker, truth, truth), rtol=1e-5)
    diagonal = CrowdLayer(jnp.asarray(layer[:, 0]), None, jnp.eye(K)).confusions(None)
    full = CrowdLayer(jnp.asarray(layer[:, 0, None] * np.eye(K)), None, jnp.eye(K)).confusions(None)
    np.testing.assert_allclose(diagonal, full, rtol=1e-6)


@EVERY
def test_what_is_known_of_a_task_is_its_class_in_the_likelihood_too(crowd, name):
    annotations, f = crowd
    evidence = np.zeros((N, K), np.float32)
    evidence[4] = [-np.inf, 0, -np.inf]
    parameter = (
        {"offset": np.eye(K)[None].repeat(J, 0) / PACE}
        if name == "crowd_layer"
        else {"confusion": np.full((J, K, K), 1 / K)}
    )
    found = at(name, annotations.replace(evidence=evidence), parameter)
    np.testing.assert_allclose(found.posterior[4], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(found.posterior[3], f[3], atol=1e-6)
    assert np.isfinite(found.log_likelihood).all()


@EVERY
@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_every_engine_fits_it_and_labels_are_the_classifiers(crowd, name, method):
    annotations, _ = crowd
    few = {
        "em": {"max_iterations": 20},
        "svi": {"max_iterations": 50},
        "nuts": {"warmup": 20, "draws": 20, "chains": 1},
    }
    fit = cp.fit(name, annotations, method=method, classifier="logistic", progress=False, **few[method])
    np.testing.assert_allclose(fit.posterior, fit.predict_proba(annotations.features), atol=1e-4)
    assert fit.workers["accuracy"].between(0, 1).all()


@EVERY
def test_plain_annotations_are_refused_with_what_is_needed(crowd, name):
    annotations, _ = crowd
    for options in ({}, {"truth_prior": cp.Prevalence()}):
        with pytest.raises(StoryError, match="give classifier="):
            cp.fit(name, annotations, progress=False, **options)


@EVERY
def test_the_focal_loss_weighs_each_annotation_by_what_is_missing_to_certainty(crowd, name):
    annotations, f = crowd
    rng = np.random.default_rng(3)
    layer, confusion = rng.normal(0, 2, (J, K, K)), rng.dirichlet(np.ones(K), (J, K))
    parameters = {"offset": (layer - np.eye(K)) / PACE} if name == "crowd_layer" else {"confusion": confusion}
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        p = (softmax(f[i] @ layer[j]) if name == "crowd_layer" else f[i] @ confusion[j])[label]
        expected[i] += (1 - p) ** 2 * np.log(p)
    found = at(name, annotations, parameters, focus=2.0)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.posterior, f, atol=1e-6)


def test_the_focal_loss_refuses_shared_errors(crowd):
    annotations, _ = crowd
    with pytest.raises(StoryError, match="one by one"):
        cp.fit("crowd_layer", annotations, classifier="logistic", focus=2.0, shared_error=True, progress=False)


def test_options_that_cannot_be_are_refused(crowd):
    annotations, _ = crowd
    for name, options, error, message in [
        ("crowd_layer", {"form": "vectr"}, UnknownNameError, "vector"),
        ("crowd_layer", {"spread": 0.0}, StoryError, "spread=0.0"),
        ("anno_reg", {"weight": -1.0}, StoryError, "weight=-1.0"),
        ("crowd_layer", {"focus": -1.0}, StoryError, "focus=-1.0"),
    ]:
        with pytest.raises(error, match=message):
            cp.fit(name, annotations, classifier="logistic", progress=False, **options)


def test_the_weight_of_the_trace_makes_workers_less_reliable(crowd):
    annotations, f = crowd
    traces = [
        np.trace(
            cp.fit("anno_reg", annotations, truth_prior=f, weight=weight, progress=False).parameters["confusion"],
            axis1=-2,
            axis2=-1,
        ).mean()
        for weight in (0.0, 2.0)
    ]
    assert traces[1] < traces[0] - 0.1


@EVERY
def test_it_comes_back_from_the_disk_and_simulates_itself(crowd, name, tmp_path):
    annotations, _ = crowd
    fit = cp.fit(name, annotations, classifier=Classifier("mlp", hidden=(4,)), epochs=2, progress=False)
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(
        back.predict_proba(annotations.features), fit.predict_proba(annotations.features), atol=1e-6
    )
    assert fit.posterior_predictive()["annotation"].shape == (1, 1, annotations.n_rows)


@pytest.mark.slow
def test_a_network_learns_through_workers_who_name_the_classes_otherwise():
    """Two of three workers exchange the classes 1 and 2 in a third of their annotations; the network sees 300 tasks.

    Votes are then right in 67 to 78 % of the annotations; classes lie three standard deviations apart, so that a
    network that has learnt them is right in more than 90 % of the tasks.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    x = rng.normal(3 * np.eye(3)[truth], 1.0).astype(np.float32)
    swap = np.array([0, 2, 1])
    rows = [
        (i, j, swap[truth[i]] if j < 2 and rng.random() < 1 / 3 else truth[i]) for i in range(300) for j in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(frame, features=dict(enumerate(x)))
    for name in WITH_CLASSIFIER:
        fit = cp.fit(
            name, annotations, classifier=Classifier("mlp", hidden=(16,)), network_rate=3e-3, epochs=30, progress=False
        )
        assert (fit.posterior.argmax(-1) == truth).mean() > 0.9
        assert fit.confusion_draws[0, 0, 2, 1, 1] > fit.confusion_draws[0, 0, 0, 1, 1]
