"""CoNAL as published, by options of common_individual: annotations scored by themselves, free kernels, groups."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_softmax, softmax
from whole_density import density

import crowdppl as cp
from crowdppl import Classifier, StoryError, UnknownNameError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.models import Switch, SwitchedKernels, common_individual
from crowdppl.models.parts.offsets import PACE

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
N, J, K, E, H = 12, 4, 3, 5, 6
PUBLISHED = {"truth": "answer", "kernels": "free", "hidden": H, "bias": True, "embedding": E}
FEW = {
    "em": {"max_iterations": 20},
    "svi": {"max_iterations": 50},
    "nuts": {"warmup": 20, "draws": 20, "chains": 1},
}


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


@pytest.fixture(scope="module")
def parameters():
    """Of every site that the options below have, by name."""
    rng = np.random.default_rng(1)
    return {
        "common": rng.dirichlet(np.ones(K), K),
        "individual": rng.dirichlet(np.ones(K), (J, K)),
        "common_offset": rng.normal(0, 10, (K, K)),
        "individual_offset": rng.normal(0, 10, (J, K, K)),
        "task_hidden": rng.normal(size=(K, H)),
        "task_hidden_bias": rng.normal(size=H),
        "task_embedding": rng.normal(size=(H, E)),
        "task_bias": rng.normal(size=E),
        "worker_embedding": rng.normal(size=(J, E)),
        "worker_bias": rng.normal(size=E),
    }


def at(annotations, parameters, **options):
    model = Model(common_individual, {"truth_prior": Classifier(linear), **options})
    data = jax.tree.map(jnp.asarray, annotations)
    sites = jax.eval_shape(lambda: starting_point(model, data, jax.random.key(0)))
    given = {name: jnp.asarray(parameters[name], float) for name in sites}
    return density(model, given, data)


def switch(x, parameters, temperature=1.0):
    v = (x @ parameters["task_hidden"] + parameters["task_hidden_bias"]) @ parameters["task_embedding"]
    v = v + parameters["task_bias"]
    u = parameters["worker_embedding"] + parameters["worker_bias"]
    v, u = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) for vectors in (v, u))
    return expit(u @ v.T / temperature)


@pytest.mark.parametrize("temperature", [None, 0.2])
def test_the_published_likelihood_is_the_softmax_of_the_mixed_kernels_over_the_classifier(
    crowd, parameters, temperature
):
    annotations, f = crowd
    omega = switch(np.asarray(annotations.features), parameters, temperature or 1.0)
    common = 2 * np.eye(K) + PACE * parameters["common_offset"]
    individual = 2 * np.eye(K) + PACE * parameters["individual_offset"]
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        logits = omega[j, i] * (f[i] @ common) + (1 - omega[j, i]) * (f[i] @ individual[j])
        expected[i] += log_softmax(logits)[label]
    found = at(annotations, parameters, **PUBLISHED, temperature=temperature)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.posterior, f, atol=1e-6)


def test_rows_of_each_annotation_by_itself_sum_the_truth_out_under_the_classifier(crowd, parameters):
    annotations, f = crowd
    omega = switch(np.asarray(annotations.features), parameters)
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        table = omega[j, i] * parameters["common"] + (1 - omega[j, i]) * parameters["individual"][j]
        expected[i] += np.log(f[i] @ table[:, label])
    found = at(annotations, parameters, **(PUBLISHED | {"kernels": "rows"}))
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.posterior, f, atol=1e-6)


def test_free_kernels_with_a_coin_of_each_worker_mix_by_its_probability(crowd, parameters):
    annotations, f = crowd
    coin = np.random.default_rng(2).dirichlet([1, 1], J)
    common = 2 * np.eye(K) + PACE * parameters["common_offset"]
    individual = 2 * np.eye(K) + PACE * parameters["individual_offset"]
    expected = np.zeros(N)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        expected[i] += log_softmax(f[i] @ (coin[j, 1] * common + coin[j, 0] * individual[j]))[label]
    found = at(annotations, parameters | {"coin": coin}, truth="answer", kernels="free", by_task=False)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernels", ["rows", "free"])
def test_what_is_known_of_a_task_is_its_class_in_the_likelihood_too(crowd, parameters, kernels):
    annotations, f = crowd
    evidence = np.zeros((N, K), np.float32)
    evidence[4] = [-np.inf, 0, -np.inf]
    certain = np.where(np.arange(N)[:, None] == 4, 20 * np.eye(K)[1], np.log(f))
    known = at(annotations.replace(evidence=evidence), parameters, **(PUBLISHED | {"kernels": kernels}))
    np.testing.assert_allclose(known.posterior[4], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(known.posterior[3], f[3], atol=1e-6)
    prior = Classifier(lambda x: jnp.asarray(certain, x.dtype) + 0 * x)
    alike = at(annotations, parameters, **(PUBLISHED | {"kernels": kernels}), truth_prior=prior)
    here = np.asarray(known.log_likelihood)[4] - np.log(f[4, 1])  # what was known had that probability before
    np.testing.assert_allclose(here, np.asarray(alike.log_likelihood)[4], atol=1e-4)


def test_training_starts_at_twice_the_identity_where_all_workers_are_alike(crowd):
    annotations, f = crowd
    model = Model(common_individual, {"truth_prior": Classifier(linear), **PUBLISHED})
    data = jax.tree.map(jnp.asarray, annotations)
    start = density(model, starting_point(model, data, jax.random.key(0)), data)
    scores = log_softmax(2 * f, axis=-1)[annotations.task, annotations.label]
    np.testing.assert_allclose(start.log_likelihood, np.bincount(annotations.task, scores, N), rtol=1e-5)


@pytest.mark.parametrize("kind", ["groups", "kernels"])
def test_the_forms_of_each_emission_agree(crowd, parameters, kind):
    annotations, f = crowd
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(J, E)), rng.normal(size=(N, E))
    if kind == "groups":
        emission = Switch(rng.dirichlet(np.ones(K), (J, K)), parameters["individual"], u, v)
    else:
        emission = SwitchedKernels(rng.normal(size=(K, K)), rng.normal(size=(J, K, K)), jnp.asarray(f), u, v)
    worker, task, label = annotations.worker, annotations.task, annotations.label
    probs, rows = np.asarray(emission.probs(worker, task)), np.arange(annotations.n_rows)
    np.testing.assert_allclose(probs.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(emission.log_prob(worker, task, label), np.log(probs[rows, :, label]), rtol=1e-4)
    truth = rng.integers(K, size=len(rows))
    np.testing.assert_allclose(emission.probs_given(worker, task, truth), probs[rows, truth], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(emission.confusions(annotations)).sum(-1), 1, rtol=1e-5)


def test_a_workers_confusion_matrix_is_of_a_classifier_that_is_certain(crowd):
    annotations, _ = crowd
    rng = np.random.default_rng(4)
    u, v = rng.normal(size=(J, E)), rng.normal(size=(N, E))
    common, individual = rng.normal(size=(K, K)), rng.normal(size=(J, K, K))
    found = np.asarray(SwitchedKernels(common, individual, jnp.eye(K)[np.arange(N) % K], u, v).confusions(annotations))
    for j in range(J):
        omega = expit(u[j] @ v[annotations.task[annotations.worker == j]].T)[:, None, None]
        tables = softmax(omega * common + (1 - omega) * individual[j], axis=-1)
        np.testing.assert_allclose(found[j], tables.mean(0), rtol=1e-4)


def test_workers_of_one_group_alone_follow_that_groups_common_matrix(crowd, parameters):
    annotations, f = crowd
    common = np.random.default_rng(5).dirichlet(np.ones(K), (2, K))
    group, coin = np.array([0, 1, 1, 0]), np.full((J, 2), 0.5)
    given = parameters | {"common": common, "weights": np.eye(2)[group], "coin": coin}
    found = at(annotations, given, groups=2, by_task=False)
    joint = np.log(f)
    for i, j, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        joint[i] += np.log(0.5 * common[group[j], :, label] + 0.5 * parameters["individual"][j][:, label])
    np.testing.assert_allclose(found.posterior, softmax(joint, axis=-1), rtol=1e-4)


def test_groups_of_workers_with_confusions_of_their_own_are_found():
    """Two groups swap different pairs of four classes half of the time; 400 tasks, 8 workers, all annotate all."""
    rng = np.random.default_rng(6)
    truth, swaps = rng.integers(0, 4, 400), np.array([[1, 0, 2, 3], [0, 1, 3, 2]])
    rows = [
        (i, j, swaps[j // 4][truth[i]] if rng.random() < 0.5 else truth[i] if rng.random() < 0.9 else rng.integers(4))
        for i in range(400)
        for j in range(8)
    ]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    fit = cp.fit("conal", annotations, groups=2, progress=False)
    belongs = np.asarray(fit.parameters["weights"]).reshape(8, 2).argmax(-1)
    assert (belongs[:4] == belongs[0]).all()
    assert (belongs[4:] == belongs[4]).all()
    assert belongs[0] != belongs[4]
    tables = np.asarray(fit.parameters["common"]).reshape(2, 4, 4)
    assert tables[belongs[0], 0, 1] > tables[belongs[4], 0, 1] + 0.2
    assert tables[belongs[4], 2, 3] > tables[belongs[0], 2, 3] + 0.2
    np.testing.assert_allclose(np.asarray(fit.derived["group_share"]).sum(), 1, rtol=1e-5)


def test_unit_vectors_confine_the_switch_and_a_temperature_frees_it(crowd):
    annotations, _ = crowd

    def range_of(**options):
        fit = cp.fit("conal", annotations, progress=False, max_iterations=5, **options)
        values = np.asarray(fit.derived["switch"])
        return values.min(), values.max()

    low, high = range_of()
    assert expit(-1) - 1e-6 <= low < high <= expit(1) + 1e-6
    low, high = range_of(temperature=0.05)
    assert low < expit(-1) < expit(1) < high


@pytest.mark.parametrize(
    ("option", "value", "others"),
    [
        ("truth", "answer", {}),
        ("kernels", "free", {"truth": "answer"}),
        ("groups", 2, {}),
        ("by_task", False, {}),
        ("embedding", 3, {}),
        ("hidden", 3, {}),
        ("bias", True, {}),
        ("bias", True, {"hidden": 3}),
        ("temperature", 0.3, {}),
        ("separation", 2.0, {}),
        ("separation", 2.0, {"truth": "answer", "kernels": "free"}),
        ("diagonal", 5.0, {}),
        ("off_diagonal", 2.0, {}),
        ("coin", 5.0, {"by_task": False}),
        ("share", 2.0, {"groups": 2}),
        ("spread", 0.1, {"truth": "answer", "kernels": "free"}),
    ],
)
def test_every_option_changes_the_density(crowd, option, value, others):
    """Other parameters, or another log-posterior at the same ones."""
    annotations, _ = crowd
    data = jax.tree.map(jnp.asarray, annotations)

    def log_posterior(options):
        model = Model(common_individual, {"truth_prior": Classifier(linear), **options})
        start = starting_point(model, data, jax.random.key(0))
        rng = np.random.default_rng(0)
        moved = {k: jax.nn.softmax(rng.normal(size=v.shape)) if v.ndim > 1 else v + 0.1 for k, v in start.items()}
        return float(density(model, moved, data).log_posterior)

    assert log_posterior(others) != pytest.approx(log_posterior(others | {option: value}), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": "answer"}, r"common_individual\(truth='answer'\) scores annotations by what a classifier says"),
        ({"kernels": "free"}, "kernels='free' .* need truth='answer'"),
        ({"truth": "answer", "kernels": "free", "groups": 2}, "groups=2: groups have rows of probabilities"),
        ({"truth": "answer", "kernels": "free", "diagonal": 3.0}, "diagonal=3.0 would be ignored: free kernels"),
        ({"truth": "answer", "kernels": "free", "off_diagonal": 3.0}, "off_diagonal=3.0 would be ignored"),
        ({"spread": 3.0}, "spread=3.0 would be ignored: it belongs to kernels='free'"),
        ({"coin": 2.0}, "coin=2.0 would be ignored: the switch depends on the tasks' features"),
        ({"by_task": False, "embedding": 3}, "embedding=3 would be ignored: the switch is a coin of each worker"),
        ({"by_task": False, "hidden": 3}, "hidden=3 would be ignored"),
        ({"by_task": False, "bias": True}, "bias=True would be ignored"),
        ({"by_task": False, "temperature": 0.5}, "temperature=0.5 would be ignored"),
        ({"share": 2.0}, "share=2.0 would be ignored: one group has all the weight"),
        ({"groups": 9}, "groups=9: there are 4 workers"),
        ({"temperature": -1.0}, "temperature=-1.0: a finite number above 0"),
        ({"hidden": 0}, "hidden=0: a whole number from 1"),
    ],
)
def test_options_that_others_leave_without_an_effect_are_refused(crowd, options, message):
    annotations, _ = crowd
    with pytest.raises(StoryError, match=message):
        cp.fit("conal", annotations, progress=False, **options)


def test_other_words_are_refused_with_those_that_are_known(crowd):
    annotations, _ = crowd
    with pytest.raises(UnknownNameError, match="answer"):
        cp.fit("conal", annotations, truth="annotation", progress=False)
    with pytest.raises(UnknownNameError, match="free"):
        cp.fit("conal", annotations, kernels="fre", progress=False)


@pytest.mark.parametrize(
    ("kernels", "method"),
    [("rows", "em")]
    + [pytest.param(*each, marks=pytest.mark.slow) for each in [("free", "em"), ("rows", "svi"), ("free", "svi")]]
    + [pytest.param(kernels, "nuts", marks=pytest.mark.slow) for kernels in ("rows", "free")],
)
def test_every_engine_fits_it_as_published_and_labels_are_the_classifiers(crowd, kernels, method):
    annotations, _ = crowd
    options = PUBLISHED | {"kernels": kernels, "separation": 0.01}
    fit = cp.fit("conal", annotations, method=method, classifier="logistic", progress=False, **options, **FEW[method])
    np.testing.assert_allclose(fit.posterior, fit.predict_proba(annotations.features), atol=1e-4)
    assert fit.workers["accuracy"].between(0, 1).all()
    assert np.isfinite(np.asarray(fit.derived["switch"])).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svi", "nuts"])
def test_other_engines_fit_groups_and_a_switch_with_all_its_layers(crowd, method):
    annotations, _ = crowd
    options = {"groups": 2, "hidden": H, "bias": True, "temperature": 0.3, "embedding": E}
    fit = cp.fit("conal", annotations, method=method, progress=False, **options, **FEW[method])
    np.testing.assert_allclose(fit.posterior.sum(-1), 1, atol=1e-4)
    assert {"weights", "task_hidden", "task_bias", "worker_bias"} <= set(fit.parameters)


def confused(n_tasks, n_workers, per_task, seed):
    """Half of the tasks of class 1 look like class 2 to everybody (their feature says so); else 85 % are right."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)
    x = np.column_stack([rng.integers(0, 2, n_tasks), np.ones(n_tasks)]).astype(np.float32)
    believed = np.where((truth == 1) & (x[:, 0] == 1), np.where(rng.random(n_tasks) < 0.5, 2, 1), truth)

    def annotate(i):
        return believed[i] if rng.random() < 0.85 else rng.integers(3)

    rows = [(i, j, annotate(i)) for i in range(n_tasks) for j in rng.choice(n_workers, per_task, replace=False)]
    annotations = cp.Annotations.from_frame(
        pd.DataFrame(rows, columns=["task", "worker", "label"]), features=dict(enumerate(x))
    )
    return annotations, truth, annotate


@pytest.mark.slow
def test_the_gain_of_asking_again_is_the_mutual_information_under_the_switch():
    annotations, _, _ = confused(30, 5, 2, 0)
    fit = cp.fit("conal", annotations, progress=False, max_iterations=30, temperature=0.3)
    asked = cp.next_annotations(fit, 10, workers=[0, 3])
    emission = fit.fitted.at({k: jnp.asarray(v)[0, 0] for k, v in fit.outcome.draws.items()}).likelihood.emission
    for row in asked.itertuples():
        task, worker = annotations.tasks.index_of([row.task]), annotations.workers.index_of([row.worker])
        joint = fit.posterior[task[0]][:, None] * np.asarray(emission.probs(worker, task))[0]
        outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        assert row.expected_gain == pytest.approx((joint * np.log(joint / outer)).sum(), abs=1e-4)
    names = annotations.to_frame()
    given = set(zip(names["task"], names["worker"], strict=True))
    assert not given & set(zip(asked["task"], asked["worker"], strict=True))


@pytest.mark.slow
def test_asking_again_where_it_helps_labels_more_tasks_rightly_than_asking_anywhere():
    """300 tasks of two annotations each, and 150 more: over 3 crowds, the chosen beat those drawn at random."""
    gained = []
    for seed in range(3):
        annotations, truth, annotate = confused(300, 12, 2, seed)
        fit = cp.fit("conal", annotations, progress=False, max_iterations=100)
        chosen = cp.next_annotations(fit, 150, workers=range(12), most_per_worker=20)
        rng = np.random.default_rng(seed)
        anywhere = pd.DataFrame({"task": rng.choice(300, 150, replace=False), "worker": rng.integers(0, 12, 150)})
        right = []
        for more in (chosen, anywhere):
            extra = pd.DataFrame({"task": more["task"], "worker": more["worker"], "label": map(annotate, more["task"])})
            rows = pd.concat([annotations.to_frame()[["task", "worker", "label"]], extra])
            features = dict(zip(range(300), np.asarray(annotations.features), strict=True))
            all_of_them = cp.Annotations.from_frame(rows, features=features)
            again = cp.fit("conal", all_of_them, progress=False, max_iterations=100)
            right.append((again.posterior.argmax(-1) == truth).mean())
        gained.append(right[0] - right[1])
    assert np.mean(gained) > 0.01
    assert min(gained) > 0


def test_annotations_scored_by_themselves_say_nothing_of_labels_so_that_no_question_helps(crowd):
    annotations, _ = crowd
    fit = cp.fit("conal", annotations, classifier="logistic", progress=False, **PUBLISHED, max_iterations=5)
    assert cp.next_annotations(fit, 5)["expected_gain"].max() < 1e-5


def test_intervals_around_a_point_are_there_beside_features_of_tasks(crowd):
    fit = cp.fit("conal", crowd[0], progress=False, max_iterations=50)
    assert np.isfinite(fit.workers[["accuracy_low", "accuracy_high"]].to_numpy()).all()
    assert (fit.workers["accuracy_high"] > fit.workers["accuracy_low"]).all()
