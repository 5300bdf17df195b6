"""A classifier as prior of the truth: its density by hand, its two modes, its starts, and what it refuses."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import network_by_hand
import numpy as np
import pytest
from conftest import random_annotations
from flax import nnx
from scipy.stats import norm

import crowdppl as cp
from crowdppl import Classifier, StoryError, UnknownNameError
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims, parameter_names, starting_point
from crowdppl.models import STORIES

NETWORKS = {
    "logistic": (Classifier("logistic"), (4,)),
    "logistic of matrices": (Classifier("logistic"), (2, 3)),
    "perceptron": (Classifier("mlp", hidden=(5, 4)), (3,)),
    "perceptron without hidden layers": (Classifier("mlp", hidden=()), (3,)),
    "perceptron with batch norm": (Classifier("mlp", hidden=(5,), batch_norm=True), (3,)),
    "convolutions": (Classifier("cnn", hidden=(4,)), (5, 7)),
    "convolutions in colour with batch norm": (Classifier("cnn", hidden=(4,), batch_norm=True), (4, 3, 2)),
}


def with_features(shape, seed=0):
    rng = np.random.default_rng(seed)
    annotations = random_annotations(rng, n_tasks=7, n_workers=3, n_classes=3, n_rows=16)
    return annotations.replace(features=rng.normal(size=(7, *shape)).astype("f4"))


def model_of(classifier):
    return Model(STORIES["dawid_skene"], {"truth_prior": classifier})


@partial(jax.jit, static_argnames=("model", "train"))
def seen(model, theta, annotations, key=None, train=False):
    """What the tests look at of a density, in one compiled function."""
    at = density(model, theta, annotations, key, train=train)
    return Seen(at.log_joint, at.log_prior, at.truth_prior, at.running)


class Seen(NamedTuple):
    log_joint: jax.Array
    log_prior: jax.Array
    truth_prior: jax.Array
    running: dict


start = jax.jit(starting_point, static_argnames="model")


def random_parameters(model, annotations, seed=0):
    """Any values of all sites, running variances above zero."""
    rng = np.random.default_rng(seed)
    values = {name: np.asarray(v) for name, v in start(model, annotations, jax.random.key(0)).items()}
    drawn = {name: rng.normal(size=v.shape) * 0.5 for name, v in values.items()}
    drawn |= {name: np.abs(v) + 0.5 for name, v in drawn.items() if name.endswith(".var")}
    drawn["confusion"] = rng.dirichlet(np.ones(3), values["confusion"].shape[:-1])
    return {name: v.astype("f4") for name, v in drawn.items()}


class TwoMasks(nnx.Module):
    """Logits in which two layers of dropout differ, and one after it has normalised."""

    def __init__(self, rngs):
        self.first, self.second = nnx.Dropout(0.5, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.weight = nnx.Param(jnp.eye(3))

    def __call__(self, x):
        return self.norm((self.first(x) - self.second(x)) @ self.weight[...])


@pytest.mark.parametrize("name", list(NETWORKS))
def test_density_is_the_classifiers_probability_times_that_of_the_annotations(name):
    classifier, shape = NETWORKS[name]
    annotations = with_features(shape)
    model = model_of(classifier)
    theta = random_parameters(model, annotations)
    of_classifier = {site: v for site, v in theta.items() if site.startswith("classifier.")}
    expected = np.log(network_by_hand.softmax(network_by_hand.logits(of_classifier, annotations.features)))
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        expected[task] += np.log(theta["confusion"][worker, :, label].astype(float))
    np.testing.assert_allclose(seen(model, theta, annotations).log_joint, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("story", ["one_coin", "mace"])
def test_every_storys_truth_takes_the_classifier_for_its_prior(story):
    annotations = with_features((4,))
    plain, told = (Model(STORIES[story], h) for h in ({}, {"truth_prior": Classifier("logistic")}))
    theta = start(told, annotations, jax.random.key(1))
    theta["classifier.linear.kernel"] = np.random.default_rng(0).normal(size=(4, 3)).astype("f4")
    of_annotations = seen(plain, theta | {"prevalence": jnp.full(3, 1 / 3)}, annotations).log_joint - np.log(1 / 3)
    log_probs = np.log(network_by_hand.softmax(annotations.features @ theta["classifier.linear.kernel"]))
    np.testing.assert_allclose(seen(told, theta, annotations).log_joint, of_annotations + log_probs, atol=1e-4)


def test_weights_with_a_prior_are_normal_and_those_without_are_free():
    annotations = with_features((3,))
    free, bound = model_of(Classifier("mlp", hidden=(5,))), model_of(Classifier("mlp", hidden=(5,), prior=0.7))
    theta = random_parameters(free, annotations)
    weights = np.concatenate([v.ravel() for name, v in theta.items() if name.startswith("classifier.")])
    difference = seen(bound, theta, annotations).log_prior - seen(free, theta, annotations).log_prior
    np.testing.assert_allclose(difference, norm.logpdf(weights, scale=0.7).sum(), rtol=1e-4)
    assert parameter_names(free, annotations).without_posterior == set(theta) - {"confusion"}
    assert not parameter_names(bound, annotations).without_posterior


def test_in_evaluation_a_task_has_its_probabilities_whatever_the_key_and_the_other_tasks():
    annotations = with_features((3,))
    model = model_of(Classifier("mlp", hidden=(6,), dropout=0.8, batch_norm=True))
    theta = random_parameters(model, annotations)
    first = seen(model, theta, annotations, jax.random.key(1))
    again = seen(model, theta, annotations, jax.random.key(2))
    np.testing.assert_array_equal(first.truth_prior, again.truth_prior)
    kept = {name: value for name, value in theta.items() if name.endswith((".mean", ".var"))}
    jax.tree.map(np.testing.assert_array_equal, first.running, kept)
    some = annotations.replace(features=annotations.features[[5, 2]], tasks=cp.data.Ids.range(2))
    rows = annotations.task < 0
    some = some.replace(task=annotations.task[rows], worker=annotations.worker[rows], label=annotations.label[rows])
    np.testing.assert_allclose(seen(model, theta, some).truth_prior, first.truth_prior[jnp.array([5, 2])], rtol=1e-5)


def test_in_training_dropout_follows_the_key():
    annotations = with_features((3,))
    model = model_of(Classifier("mlp", hidden=(6,), dropout=0.5))
    theta = random_parameters(model, annotations)
    first, again, other = (
        np.asarray(seen(model, theta, annotations, jax.random.key(seed), train=True).truth_prior) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    off = model_of(Classifier("mlp", hidden=(6,), dropout=0.0))
    modes = [seen(off, theta, annotations, jax.random.key(1), train=mode).truth_prior for mode in (True, False)]
    np.testing.assert_allclose(*modes, rtol=1e-5)


def test_in_training_batch_norm_normalises_by_the_batch_and_keeps_a_tenth_of_its_statistics():
    annotations = with_features((3,))
    model = model_of(Classifier("mlp", hidden=(6,), dropout=0.0, batch_norm=True))
    theta = random_parameters(model, annotations)
    at = seen(model, theta, annotations, jax.random.key(1), train=True)
    x = annotations.features.astype(float)
    of_batch = {name.removeprefix("classifier."): v for name, v in theta.items() if name.startswith("classifier.")}
    of_batch |= {"norms.0.mean": x.mean(0), "norms.0.var": x.var(0)}
    hidden = (
        network_by_hand.normalised(x, of_batch, "norms.0") @ of_batch["layers.0.kernel"] + of_batch["layers.0.bias"]
    )
    hidden = np.maximum(hidden, 0)
    of_batch |= {"norms.1.mean": hidden.mean(0), "norms.1.var": hidden.var(0)}
    probs = network_by_hand.softmax(network_by_hand.logits(of_batch, x))
    np.testing.assert_allclose(np.exp(at.truth_prior), probs, atol=1e-4)
    assert set(at.running) == {f"classifier.norms.{i}.{name}" for i in (0, 1) for name in ("mean", "var")}
    for site, value in at.running.items():
        expected = 0.9 * theta[site] + 0.1 * of_batch[site.removeprefix("classifier.")]
        np.testing.assert_allclose(value, expected, atol=1e-5)


def test_training_leaves_the_statistics_that_it_was_given_as_they_were():
    """NumPy's arrays can be written into."""
    annotations, module = with_features((3,)), nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    model = model_of(Classifier(module))
    theta = random_parameters(model, annotations)
    before = {name: value.copy() for name, value in theta.items()}
    density(model, theta, annotations, jax.random.key(0), train=True)
    jax.tree.map(np.testing.assert_array_equal, theta, before)
    np.testing.assert_array_equal(module.mean[...], 0)


def test_two_layers_of_dropout_in_a_module_of_ones_own_drop_apart():
    annotations = with_features((3,)).replace(features=np.ones((7, 3), dtype="f4"))
    model = model_of(Classifier(TwoMasks(nnx.Rngs(0))))
    theta = start(model, annotations, jax.random.key(0))
    in_evaluation = seen(model, theta, annotations).truth_prior
    np.testing.assert_allclose(np.exp(in_evaluation), 1 / 3, rtol=1e-5)  # the two cancel
    drops = [seen(model, theta, annotations, jax.random.key(s), train=True).truth_prior for s in (1, 2)]
    assert np.abs(np.exp(drops[0]) - 1 / 3).max() > 0.1
    assert np.abs(drops[0] - drops[1]).max() > 0.1


@pytest.mark.parametrize("name", list(NETWORKS))
def test_ready_made_networks_start_with_even_probabilities_and_weights_that_follow_the_seed(name):
    classifier, shape = NETWORKS[name]
    annotations = with_features(shape)
    model = model_of(classifier)
    first, again, other = (start(model, annotations, jax.random.key(seed)) for seed in (1, 1, 2))
    np.testing.assert_allclose(np.exp(seen(model, first, annotations).truth_prior), 1 / 3, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, first, again)
    hidden = [site for site in first if site.endswith(("layers.0.kernel", "convolutions.0.kernel"))]
    assert all(np.abs(first[site] - other[site]).max() > 0.01 for site in hidden)


def test_a_module_starts_from_the_weights_that_it_has_when_given_and_is_left_as_it_was():
    annotations = with_features((3,))
    module = nnx.Linear(3, 3, rngs=nnx.Rngs(5))
    given = module.kernel[...]
    for prior in (None, 2.0):
        first = start(model_of(Classifier(module, prior=prior)), annotations, jax.random.key(0))
        np.testing.assert_array_equal(first["classifier.kernel"], given)
    early = Classifier(module)
    module.kernel[...] = given + 1
    starts = [start(model_of(c), annotations, jax.random.key(0)) for c in (early, Classifier(module))]
    np.testing.assert_array_equal(starts[0]["classifier.kernel"], given)
    np.testing.assert_array_equal(starts[1]["classifier.kernel"], given + 1)
    cp.fit("dawid_skene", annotations, classifier=module, epochs=1, network_rate=0.1, progress=False)
    np.testing.assert_array_equal(module.kernel[...], given + 1)


def test_arrays_that_a_module_holds_are_constants():
    class Scaled(nnx.Module):
        def __init__(self):
            self.scale, self.weight = jnp.array([1.0, -2.0, 0.5]), nnx.Param(jnp.ones(3))

        def __call__(self, x):
            return x * self.scale * self.weight[...]

    annotations = with_features((3,))
    model = model_of(Classifier(Scaled()))
    theta = start(model, annotations, jax.random.key(0))
    assert {name for name in theta if name.startswith("classifier.")} == {"classifier.weight"}
    expected = network_by_hand.softmax(annotations.features * np.array([1.0, -2.0, 0.5]))
    np.testing.assert_allclose(np.exp(seen(model, theta, annotations).truth_prior), expected, rtol=1e-5)


def test_weights_and_statistics_are_as_precise_as_jax_is_told_to_be():
    annotations = with_features((3,))
    model = model_of(Classifier("mlp", hidden=(4,), batch_norm=True))
    with jax.enable_x64(True):
        theta = start(model, annotations, jax.random.key(0))
        at = seen(model, theta, annotations, jax.random.key(0), train=True)
    assert {np.asarray(value).dtype for value in (*theta.values(), *at.running.values(), at.log_joint)} == {
        np.dtype("f8")
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": 3}, r"network=3: one of \['logistic', 'mlp', 'cnn'\], a flax.nnx module, or a function"),
        ({"network": nnx.Linear}, "a flax.nnx module, or a function"),  # the class, not a module
        ({"hidden": 16}, r"hidden=16: the units of each hidden layer, such as \(128,\)"),
        ({"hidden": (16, 0)}, r"hidden=\(16, 0\): the units of each"),
        ({"dropout": 1.0}, "dropout=1.0: a finite number from 0 and below 1"),
        ({"dropout": "half"}, "dropout='half': a finite number from 0 and below 1"),
        ({"prior": 0.0}, "prior=0.0: a finite number above 0"),
        ({"prior": np.inf}, "prior=inf: a finite number above 0"),
    ],
)
def test_a_classifier_that_cannot_be_is_refused(options, message):
    with pytest.raises(StoryError, match=message):
        Classifier(**options)


def test_an_unknown_network_is_annotated_with_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown network 'logistc'; did you mean 'logistic'"):
        Classifier("logistc")


def test_classifiers_of_the_same_options_are_equal_and_of_another_module_are_not():
    assert Classifier("mlp", hidden=[8]) == Classifier("mlp", hidden=(8,))
    assert hash(Classifier("mlp", hidden=[8])) == hash(Classifier("mlp", hidden=(8,)))
    assert Classifier("mlp") != Classifier("cnn")
    assert Classifier(nnx.Linear(3, 3, rngs=nnx.Rngs(0))) != Classifier(nnx.Linear(3, 3, rngs=nnx.Rngs(0)))


@pytest.mark.parametrize("network", ["logistic", "mlp", "cnn", lambda x: x])
def test_annotations_without_features_are_refused(tiny, network):
    with pytest.raises(StoryError, match="the classifier needs features"):
        cp.fit("dawid_skene", tiny, classifier=network, progress=False)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            lambda x: jnp.zeros((len(x), 4)),
            r"\(7, 4\) for 7 tasks of 3 classes; logits of shape .* \(7, 3\) are needed",
        ),
        (nnx.Linear(3, 4, rngs=nnx.Rngs(0)), r"\(7, 4\) for 7 tasks of 3 classes"),
        (lambda x: x[0], r"\(3,\) for 7 tasks of 3 classes"),
        (lambda x: np.asarray(x) @ np.eye(3), "write it with jax.numpy, .*, or give .* with truth_prior"),
        ("cnn", r"'cnn' needs images \(height, width\) or \(height, width, channels\), not \(3,\)"),
    ],
)
def test_what_does_not_give_a_logit_to_each_class_is_refused_before_anything_is_fitted(network, message):
    with pytest.raises(StoryError, match=message):
        parameter_dims(model_of(Classifier(network)), with_features((3,)))


def test_a_classifier_together_with_another_prior_is_refused():
    with pytest.raises(ValueError, match="a truth_prior, not both"):
        cp.fit("dawid_skene", with_features((3,)), classifier="mlp", truth_prior=cp.Prevalence(), progress=False)


@pytest.mark.parametrize("network", [nnx.Linear(5, 3, rngs=nnx.Rngs(0)), lambda x: x @ jnp.ones((5, 3))])
def test_what_does_not_take_the_features_says_which_it_gets(network):
    with pytest.raises(StoryError, match=r"features, of shape \(7, 4\).*give a network from .*\(tasks, 4\)"):
        cp.fit("dawid_skene", with_features((4,)), classifier=network, progress=False)


def test_a_logistic_regression_without_intercepts_is_even_where_the_features_are_zero():
    annotations = with_features((4,))
    annotations = annotations.replace(features=np.vstack([np.zeros((1, 4)), annotations.features[1:]]).astype("f4"))
    fits = {
        bias: cp.fit("one_coin", annotations, classifier=Classifier("logistic", bias=bias, prior=1.0), progress=False)
        for bias in (True, False)
    }
    assert set(fits[True].parameters) - set(fits[False].parameters) == {"classifier.linear.bias"}
    even = np.full(3, 1 / 3)
    np.testing.assert_allclose(fits[False].predict_proba(np.zeros((1, 4)))[0], even, rtol=1e-6)
    assert np.abs(fits[True].predict_proba(np.zeros((1, 4)))[0] - even).max() > 0.01
    with pytest.raises(StoryError, match="bias=False is of network='logistic'"):
        Classifier("mlp", bias=False)


def test_a_logistic_regression_has_a_prior_unless_it_is_told_to_have_none():
    assert Classifier("logistic") == Classifier("logistic", prior=1.0) != Classifier("logistic", prior=None)
    assert Classifier("mlp").prior is None
    assert [repr(Classifier("logistic", prior=prior)) for prior in (1.0, None, 2.0)] == [
        "Classifier('logistic')",
        "Classifier('logistic', prior=None)",
        "Classifier('logistic', prior=2.0)",
    ]
    flat = Classifier("logistic", prior=None)
    assert Classifier.from_json(flat.to_json()) == flat


def test_few_tasks_are_not_separated_by_a_logistic_regression():
    """200 tasks of three annotations each, and classes two standard deviations apart in one of five features."""
    scores = {None: [], 1.0: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth, ability = rng.integers(0, 2, 200), rng.uniform(0.55, 0.85, 10)
        given = np.where(rng.random((200, 10)) < ability, truth[:, None], 1 - truth[:, None])
        given[rng.random(given.shape).argsort(1) >= 3] = -1
        x = rng.normal(size=(200, 5))
        x[:, 0] += 2 * truth
        annotations = cp.Annotations.from_matrix(given, features=x.astype("f4"), ordered=False)
        for prior, found in scores.items():
            fit = cp.fit("dawid_skene", annotations, classifier=Classifier("logistic", prior=prior), progress=False)
            found.append(np.log(fit.posterior[np.arange(200), truth]).mean())
    assert min(scores[1.0]) > -0.6
    assert np.mean(scores[None]) < np.mean(scores[1.0]) - 0.5


class Softmaxed(nnx.Module):
    """A network that ends in a softmax."""

    def __init__(self):
        self.norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        self.out = nnx.Linear(2, 2, rngs=nnx.Rngs(0))

    def __call__(self, x):
        return jax.nn.softmax(self.out(self.norm(x)))


def needs_torch(x):
    return x.numpy_of_torch()


@pytest.mark.parametrize("story", ["dawid_skene", "majority_vote"])
@pytest.mark.parametrize(
    ("network", "said"),
    [
        (Softmaxed, r"gives probabilities: .* \(\[0\.\d+, 0\.\d+\]\); logits are needed: leave out the softmax"),
        (lambda: lambda x: jax.nn.softmax(x), "gives probabilities: .*or take the logarithm"),
        (
            lambda: needs_torch,
            "the classifier's function fails: .*numpy_of_torch; write it with jax.numpy, give a torch",
        ),
    ],
)
def test_a_network_of_ones_own_that_gives_no_logits_is_found_out_before_anything_is_fitted(story, network, said):
    annotations, _ = cp.simulate("dawid_skene", n_tasks=20, n_workers=4, n_classes=2, seed=0)
    annotations = annotations.replace(features=np.random.default_rng(0).normal(size=(20, 2)).astype("f4"))
    with pytest.raises(StoryError, match=said):
        cp.fit(story, annotations, classifier=network(), progress=False)


def test_a_linen_module_is_refused_with_what_to_write():
    linen = pytest.importorskip("flax.linen")
    with pytest.raises(StoryError, match=r"network=Dense: a flax\.linen module .*nnx\.Linear"):
        Classifier(linen.Dense(2))


def test_batch_norm_with_a_batch_of_one_is_refused():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=6, n_workers=4, n_classes=2, seed=0)
    annotations = annotations.replace(features=np.random.default_rng(0).normal(size=(6, 2)).astype("f4"))
    for network in (Classifier("mlp", batch_norm=True), Logits()):
        with pytest.raises(ValueError, match=r"batch norm, .*give batch_size=2 or more, or a network without it"):
            cp.fit("dawid_skene", annotations, classifier=network, batch_size=1, epochs=1, progress=False)


class Logits(Softmaxed):
    """Its logits."""

    def __call__(self, x):
        return self.out(self.norm(x))
