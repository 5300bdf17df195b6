"""Classifiers under EM, SVI and NUTS: solutions by hand and by scikit-learn, what is sampled, files, the digits."""

import warnings

import jax
import jax.numpy as jnp
import network_by_hand
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from whole_density import density

import crowdppl as cp
from crowdppl import AnnotationError, Classifier, ConvergenceWarning, StorageError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines.m_step import newton
from crowdppl.models import STORIES, Given

N_TASKS, DIAGONAL = 120, 2.0
KERNEL = np.array([[1.5, -0.5, -1.0], [-1.0, 1.5, -0.5]])
BIAS = np.array([0.5, 0.0, -0.5])


def model_of(classifier):
    return Model(STORIES["dawid_skene"], {"truth_prior": classifier, "diagonal": DIAGONAL})


def simulated(n_tasks, n_workers=4, seed=0):
    return cp.simulate(
        "dawid_skene",
        n_tasks=n_tasks,
        n_workers=n_workers,
        n_classes=3,
        features=np.random.default_rng(seed).normal(size=(n_tasks, 2)),
        truth_prior=Classifier("logistic", prior=1.0),
        parameters={"classifier.linear.kernel": KERNEL, "classifier.linear.bias": BIAS},
        diagonal=4.0,
        seed=seed,
    )


@pytest.fixture(scope="module")
def annotations():
    return simulated(N_TASKS)[0]


@pytest.fixture(scope="module")
def separable():
    """Three clusters of tasks, each annotated by three workers who are right seven times in ten."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, N_TASKS)
    x = 2 * np.eye(3)[truth] + rng.normal(size=(N_TASKS, 3)) * 0.4
    wrong = (truth[:, None] + rng.integers(1, 3, (N_TASKS, 3))) % 3
    labels = np.where(rng.random((N_TASKS, 3)) < 0.7, truth[:, None], wrong)
    return cp.Annotations.from_matrix(labels, features=x, gold=dict(enumerate(truth.tolist())))


@pytest.fixture(scope="module")
def unseen():
    """A hundred new tasks of the same clusters, and their classes."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 100)
    return (2 * np.eye(3)[truth] + rng.normal(size=(100, 3)) * 0.4).astype("f4"), truth


class Own(nnx.Module):
    """A network of a user's own, with two layers of dropout, and one before them that normalises the features."""

    def __init__(self, rngs):
        self.hidden, self.out = nnx.Linear(3, 6, rngs=rngs), nnx.Linear(6, 3, rngs=rngs)
        self.before, self.after = nnx.Dropout(0.2, rngs=rngs), nnx.Dropout(0.3, rngs=rngs)
        self.norm = nnx.BatchNorm(3, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return self.out(self.after(nnx.relu(self.hidden(self.before(self.norm(x))))))


def own_logits(values, x):
    """:class:`Own` in evaluation, by hand."""
    w = {name.removeprefix("classifier."): np.asarray(value, dtype=float) for name, value in values.items()}
    hidden = network_by_hand.normalised(x, w, "norm") @ w["hidden.kernel"] + w["hidden.bias"]
    return np.maximum(hidden, 0) @ w["out.kernel"] + w["out.bias"]


def distances(x):
    """A classifier without weights: how near a task is to where its clusters stand."""
    return -((x[:, None] - 2 * jnp.eye(3)) ** 2).sum(-1)


@pytest.fixture(scope="module", params=[pytest.param(None, marks=pytest.mark.slow), 0.7])
def exact(request, annotations):
    """EM with a logistic regression, run to the last digit of float64."""
    with jax.enable_x64(True):
        model = model_of(Classifier("logistic", prior=request.param))
        outcome = em.run(model, annotations, jax.random.key(0), em.EMSettings(2000, 1e-15), progress=False)
        theta = {name: value[0, 0] for name, value in outcome.draws.items()} | outcome.fixed

        def log_posterior(weights):
            return density(model, theta | weights, annotations).log_posterior_in_log_odds

        weights = {name: value for name, value in theta.items() if name.startswith("classifier.")}
        slope = jax.jit(jax.grad(log_posterior))(weights)
        posterior = density(model, theta, annotations).posterior
    return model, theta, outcome.history, slope, np.asarray(posterior)


def test_log_posterior_never_falls_with_newtons_steps(exact):
    """In float64, so that what is left for a tolerance is rounding in the twelfth digit."""
    history = exact[2]
    assert np.diff(history).min() >= -1e-12 * np.abs(history).max()


def test_ems_solution_is_a_stationary_point_of_the_weights(exact):
    """Slopes at zero weights are of the order of the 120 tasks; EM converges linearly, to 1e-5 of that."""
    for value in exact[3].values():
        np.testing.assert_allclose(value, 0, atol=1e-3)


def test_ems_logistic_regression_is_scikit_learns_with_the_label_posterior_for_weights(exact, annotations):
    """Raykar et al.'s EM: at its fixed point the classifier is fitted to all tasks as all classes, by their posterior.

    The bias has the same prior as the weights, so that it is the weight of a constant feature.
    """
    model, theta, _, _, posterior = exact
    prior = model.classifier.prior
    x = np.column_stack([annotations.features, np.ones(N_TASKS)])
    peer = LogisticRegression(C=np.inf if prior is None else prior**2, fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(np.repeat(x, 3, axis=0), np.tile(np.arange(3), N_TASKS), sample_weight=posterior.ravel())
    ours = softmax(annotations.features @ theta["classifier.linear.kernel"] + theta["classifier.linear.bias"], axis=-1)
    np.testing.assert_allclose(ours, peer.predict_proba(x), atol=1e-4)


def test_a_newton_step_is_that_of_the_dense_matrix(annotations):
    """Conjugate gradients stop at a residual of 1e-4 of the slope."""
    rng = np.random.default_rng(3)
    prior, x = 0.8, np.column_stack([annotations.features, np.ones(N_TASKS)]).astype(float)
    weights, slope = rng.normal(size=(3, 3)), 10 * rng.normal(size=(3, 3))
    p = softmax(x @ weights, axis=-1)
    information = np.eye(9) / prior**2
    for row, q in zip(x, p, strict=True):
        information += np.kron(np.outer(row, row), np.diag(q) - np.outer(q, q))
    expected = np.linalg.solve(information, slope.ravel()).reshape(3, 3)
    with jax.enable_x64(True):
        step = newton(Classifier("logistic", prior=prior), annotations, by_site(weights), by_site(slope))
    for name, value in by_site(expected).items():
        np.testing.assert_allclose(step[name], value, atol=1e-3 * np.abs(expected).max())


def by_site(weights):
    """A matrix of which the last row is the bias, as the sites of a logistic regression."""
    return {"classifier.linear.kernel": weights[:-1], "classifier.linear.bias": weights[-1]}


def test_known_weights_are_found_again():
    """2,000 tasks: within five standard errors, of the curvature of the log-posterior in the weights alone.

    Logits are alike up to a constant, so that weights are compared after their mean over the classes is taken off.
    """
    annotations, _ = simulated(2000, seed=4)
    fit = cp.fit("dawid_skene", annotations, classifier=Classifier("logistic", prior=10.0), progress=False)
    theta = {name: value[0, 0] for name, value in fit.outcome.draws.items()}
    x = np.column_stack([annotations.features, np.ones(2000)])

    def log_posterior(weights):
        return density(fit.model, theta | by_site(weights), annotations).log_posterior

    found = np.vstack([theta["classifier.linear.kernel"], theta["classifier.linear.bias"]])
    curvature = np.asarray(jax.jit(jax.hessian(log_posterior))(found), dtype=float).reshape(9, 9)
    centre = np.kron(np.eye(3), np.eye(3) - 1 / 3)
    error = np.sqrt(np.diag(centre @ np.linalg.inv(-curvature) @ centre)).reshape(3, 3)
    true = np.vstack([KERNEL, BIAS])
    off = (found - found.mean(-1, keepdims=True)) - (true - true.mean(-1, keepdims=True))
    assert (np.abs(off) < 5 * error).all()
    assert error.max() < 0.2  # so that the test bites
    best = softmax(x @ true, axis=-1)
    assert np.abs(fit.predict_proba(annotations.features) - best).max() < 5 * error.max()


OPTIONS = {
    "em": {"epochs": 40, "network_rate": 0.01},
    "svi": {"max_iterations": 300},
    "nuts": {"chains": 1, "warmup": 60, "draws": 60},
}

SLOW = {name: pytest.param(name, marks=pytest.mark.slow) for name in ("svi", "nuts")}


def fitted(annotations, method, classifier, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = OPTIONS[method] | options
        return cp.fit("dawid_skene", annotations, method=method, classifier=classifier, progress=False, **options)


@pytest.fixture(scope="module", params=["em", SLOW["svi"], SLOW["nuts"]])
def own(request, separable):
    rate = {"network_rate": 0.02} if request.param == "svi" else {}
    return fitted(separable, request.param, Own(nnx.Rngs(0)), **rate)


def test_weights_without_a_prior_are_no_draws_and_predict_as_the_module_itself_does(own, unseen):
    weights = {name for name in own.outcome.fixed if name.startswith("classifier.")}
    assert {name.split(".")[1] for name in weights} == {"hidden", "out", "norm"}
    assert not any(name.startswith("classifier.") for name in own.outcome.draws)
    expected = softmax(own_logits(own.outcome.fixed, unseen[0]), axis=-1)
    np.testing.assert_allclose(own.predict_proba(unseen[0]), expected, atol=1e-4)


def test_a_module_of_ones_own_learns_what_tells_the_clusters_apart(own, unseen, separable):
    """Clusters are 2.8 apart with a deviation of 0.4, so that an optimum gets next to nothing wrong.

    NUTS keeps the weights where EM's own small rate got in 50 epochs: of 100 tasks a third is right by chance, and
    0.48 is three standard errors more.
    """
    x, truth = unseen
    right = (own.predict_proba(x).argmax(-1) == truth).mean()
    if own.method == "nuts":
        assert right > 0.48
        return
    assert right > 0.95
    of_votes, of_fit = ((p.argmax(-1) == separable.gold).mean() for p in (separable.votes(), own.posterior))
    assert of_fit > of_votes + 0.02


def test_running_statistics_move_to_those_of_the_data(own, separable):
    """Of the features, which do not change, they have come to those of EM's batches of 64 tasks."""
    tolerance = 0.2
    x = separable.features.astype(float)
    np.testing.assert_allclose(own.outcome.fixed["classifier.norm.mean"], x.mean(0), atol=tolerance)
    np.testing.assert_allclose(own.outcome.fixed["classifier.norm.var"], x.var(0), atol=tolerance)


def test_a_module_of_ones_own_comes_back_from_a_file_with_the_module_and_not_without(own, unseen, tmp_path):
    own.save(tmp_path / "fit")
    with pytest.raises(StorageError, match=r"a network of your own, .* load_fit\(path, classifier=…\)"):
        cp.load_fit(tmp_path / "fit")
    with pytest.raises(StorageError, match=r"another network: 'classifier.hidden.bias' has shape \(6,\) there, none"):
        cp.load_fit(tmp_path / "fit", classifier=distances)
    with pytest.raises(StorageError, match=r"fitted with another network: 'classifier.bias' has shape none there"):
        cp.load_fit(tmp_path / "fit", classifier=nnx.Linear(3, 3, rngs=nnx.Rngs(0)))
    again = cp.load_fit(tmp_path / "fit", classifier=Own(nnx.Rngs(9)))  # of other weights
    np.testing.assert_array_equal(again.predict_proba(unseen[0]), own.predict_proba(unseen[0]))


@pytest.mark.parametrize("method", ["em", SLOW["svi"], SLOW["nuts"]])
def test_a_function_without_weights_is_the_prior_of_the_truth_under_every_engine(separable, unseen, method, tmp_path):
    trained = ("epochs", "batch_size", "network_rate", "warmup", "held_out", "patience")  # a function has no weights
    options = {name: value for name, value in OPTIONS[method].items() if name not in trained}
    fit = cp.fit("dawid_skene", separable, method=method, classifier=distances, progress=False, **options)
    x, _ = unseen
    np.testing.assert_allclose(fit.predict_proba(x), softmax(np.asarray(distances(x)), axis=-1), atol=1e-5)
    assert set(fit.outcome.draws) == {"confusion"}
    assert not fit.outcome.fixed
    expected = label_posterior(separable, np.asarray(distances(separable.features)), fit.outcome.draws["confusion"])
    np.testing.assert_allclose(fit.posterior, expected, atol=1e-4)
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(cp.load_fit(tmp_path / "fit", classifier=distances).posterior, fit.posterior)


def label_posterior(annotations, log_prior, draws):
    """Mean over draws of ``confusion`` of each task's probabilities, by loops over annotations."""
    each = []
    for confusion in draws.reshape(-1, *draws.shape[2:]).astype(float):
        joint = log_prior.astype(float).copy()
        for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
            joint[task] += np.log(confusion[worker, :, label])
        each.append(softmax(joint, axis=-1))
    return np.mean(each, axis=0)


@pytest.mark.slow
def test_nuts_keeps_weights_without_a_prior_at_ems_solution(annotations):
    same = {"max_iterations": 150, "tolerance": 1e-5}
    logistic = Classifier("logistic", prior=None)
    nuts = fitted(annotations, "nuts", logistic, draws=20, warmup=20, **same)
    mode = cp.fit("dawid_skene", annotations, classifier=logistic, progress=False, **same)
    assert set(nuts.outcome.draws) == {"confusion"}
    for name in ("classifier.linear.kernel", "classifier.linear.bias"):
        np.testing.assert_allclose(nuts.outcome.fixed[name], mode.outcome.fixed[name], rtol=1e-5)


@pytest.fixture(scope="module", params=[SLOW["svi"], "nuts"])
def sampled(request, annotations):
    return fitted(annotations, request.param, Classifier("logistic", prior=1.0))


def test_predictions_average_over_the_draws_of_weights_with_a_prior(sampled, unseen, tmp_path):
    draws = sampled.outcome.draws
    assert set(draws) == {"confusion", "classifier.linear.kernel", "classifier.linear.bias"}
    x = unseen[0][:20, :2]
    kernel, bias = (draws[f"classifier.linear.{n}"].astype(float) for n in ("kernel", "bias"))
    each = softmax(np.einsum("nd,csdk->csnk", x, kernel) + bias[:, :, None], axis=-1)
    np.testing.assert_allclose(sampled.predict_proba(x), each.mean((0, 1)), atol=1e-5)
    of_mean = softmax(x @ kernel.mean((0, 1)) + bias.mean((0, 1)), axis=-1)
    assert np.abs(of_mean - each.mean((0, 1))).max() > 1e-3  # the mean weights would say something else
    sampled.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.model == sampled.model
    np.testing.assert_array_equal(again.predict_proba(x), sampled.predict_proba(x))


@pytest.mark.slow
def test_minibatches_under_svi_reach_the_classifier_of_the_whole_data(annotations):
    """Probabilities within a tenth on average: steps on 40 tasks leave noise of Adam's rate of 0.002 in each weight."""
    whole, parts = (fitted(annotations, "svi", "logistic", batch_size=size, max_iterations=1500) for size in (None, 40))
    x = annotations.features
    assert np.abs(whole.predict_proba(x) - parts.predict_proba(x)).mean() < 0.1


def test_several_particles_are_refused_where_a_network_keeps_statistics(separable):
    classifier = Classifier("mlp", hidden=(4,), batch_norm=True)
    with pytest.raises(ValueError, match=r"particles=3: .* running statistics such as 'classifier.norms.0.mean'"):
        cp.fit("dawid_skene", separable, method="svi", classifier=classifier, particles=3, progress=False)


@pytest.mark.slow
def test_a_loss_that_turns_non_finite_is_told_with_the_step(tiny):
    """The first step goes as far as the rate, 1e38, beyond which single precision has next to nothing."""
    with pytest.raises(FloatingPointError, match=r"the loss is (nan|inf) at step 2; lower learning_rate"):
        cp.fit("dawid_skene", tiny, method="svi", learning_rate=1e38, progress=False)


@pytest.fixture(scope="module")
def given(annotations):
    """Probabilities of all tasks but two, in an order of their own."""
    rows = np.random.default_rng(5).dirichlet([0.7, 0.7, 0.7], N_TASKS - 2).astype("f4")
    return pd.DataFrame(rows, index=range(N_TASKS - 2), columns=[0, 1, 2]).iloc[::-1][[2, 0, 1]]


def test_given_probabilities_are_the_prior_of_the_truth(annotations, given):
    """By hand from the tables found; and what the same probabilities are as evidence beside an even prior."""
    fit = cp.fit("dawid_skene", annotations, truth_prior=given, progress=False)
    log_prior = np.full((N_TASKS, 3), np.log(1 / 3))
    log_prior[: N_TASKS - 2] = np.log(given.sort_index()[[0, 1, 2]])
    expected = label_posterior(annotations, log_prior, fit.outcome.draws["confusion"])
    np.testing.assert_allclose(fit.posterior, expected, atol=1e-5)
    assert set(fit.outcome.draws) == {"confusion"}

    even = np.full((N_TASKS, 3), 1 / 3, dtype="f4")
    model, data = model_of(Given()), annotations.replace(prior=even, evidence=log_prior.astype("f4"))
    beside = density(model, {"confusion": fit.outcome.draws["confusion"][0, 0]}, data).posterior
    np.testing.assert_allclose(beside, fit.posterior, atol=1e-5)


def test_given_probabilities_may_be_an_array_and_come_back_from_files(annotations, given, tmp_path):
    array = np.full((N_TASKS, 3), 1 / 3, dtype="f4")
    array[: N_TASKS - 2] = given.sort_index()[[0, 1, 2]]
    fits = [cp.fit("dawid_skene", annotations, truth_prior=table, progress=False) for table in (given, array)]
    np.testing.assert_allclose(fits[0].posterior, fits[1].posterior, atol=1e-6)
    fits[0].save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    np.testing.assert_array_equal(again.annotations.prior, fits[0].annotations.prior)
    np.testing.assert_allclose(again.log_likelihood(), fits[0].log_likelihood(), rtol=1e-6)


def with_row(table, task, value):
    table = table.copy()
    table.loc[task] = value
    return table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(index={7: "seven"}), "truth_prior: the task 'seven' is not in the annotations"),
        (lambda t: t.rename(columns={2: 9}), "truth_prior: the column .*9.* is no class"),
        (lambda t: with_row(t, 7, 0.5), r"truth_prior of task 7: \[0.5, 0.5, 0.5\] are no probabilities"),
        (lambda t: with_row(t, 7, np.nan), "truth_prior of task 7: .*nan.* are no probabilities"),
        (lambda t: t.to_numpy(), r"truth_prior: the shape is \(118, 3\); \(tasks, classes\) = \(120, 3\) is needed"),
    ],
)
def test_given_probabilities_that_do_not_fit_are_refused_by_name(annotations, given, change, message):
    with pytest.raises(AnnotationError, match=message):
        cp.fit("dawid_skene", annotations, truth_prior=change(given), progress=False)


@pytest.fixture(scope="module")
def digits():
    classifier = Classifier("mlp", batch_norm=True)
    options = {"epochs": 10, "network_rate": 3e-3}
    return cp.fit("dawid_skene", cp.load_dataset("digits"), classifier=classifier, progress=False, **options)


@pytest.mark.slow
def test_a_network_tells_digits_that_the_crowd_mixes_up(digits):
    """Beside the workers' tables alone, and on images that nobody was asked about.

    Measured over ten seeds: labels 0.946 to 0.951 against 0.818, test images 0.956 to 0.970.
    """
    annotations, (x, y) = digits.annotations, cp.load_split("digits", "test")
    plain = cp.fit("dawid_skene", annotations, progress=False)
    right = [(fit.posterior.argmax(-1) == annotations.gold).mean() for fit in (digits, plain)]
    assert right[0] > right[1] + 0.1
    assert (digits.predict_proba(x).argmax(-1) == y).mean() > 0.93


def test_a_ready_made_network_comes_back_from_a_file_with_its_statistics(digits, tmp_path):
    x = cp.load_split("digits", "test")[0][:50]
    expected = softmax(network_by_hand.logits(digits.outcome.fixed, x), axis=-1)
    np.testing.assert_allclose(digits.predict_proba(x), expected, atol=1e-4)
    digits.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.model == digits.model
    np.testing.assert_array_equal(again.predict_proba(x), digits.predict_proba(x))


@pytest.fixture(scope="module")
def of_images(annotations):
    images = annotations.replace(features=np.random.default_rng(0).normal(size=(N_TASKS, 8, 8)).astype(np.float32))
    with warnings.catch_warnings(action="ignore"):
        return cp.fit("dawid_skene", images, classifier="logistic", max_iterations=2, progress=False)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((5, 7, 8)), r"x has shape \(5, 7, 8\); \(n, 8, 8\) is needed, as in the training"),
        (np.zeros((8, 8)), r"x has shape \(8, 8\); \(n, 8, 8\) is needed"),
        (
            np.where(np.arange(3)[:, None, None] == 1, np.nan, np.zeros((3, 8, 8))),
            r"x, row 1, place \(0, 0\): nan is not finite \(64 such\)",
        ),
        (np.full((1, 8, 8), np.inf), r"x, row 0, place \(0, 0\): inf is not finite"),
        ("images.csv", r"x is a str that is no array of numbers; \(n, 8, 8\) is needed"),
        ({"t1": np.zeros((8, 8))}, r"x is a dict that is no array of numbers; \(n, 8, 8\) is needed"),
    ],
)
def test_features_that_cannot_be_predicted_from_are_refused(of_images, x, message):
    with pytest.raises(ValueError, match=message):
        of_images.predict_proba(x)


def test_no_features_have_no_predictions(of_images):
    assert of_images.predict_proba(np.zeros((0, 8, 8))).shape == (0, 3)


def test_a_fit_without_a_classifier_predicts_nothing(annotations, given):
    fit = cp.fit("dawid_skene", annotations, truth_prior=given, progress=False)
    with pytest.raises(ValueError, match=r"fitted without a classifier, .* fit.probabilities has the tasks"):
        fit.predict_proba(annotations.features)
