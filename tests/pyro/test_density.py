"""Two programs of every story, in NumPyro and in Pyro, must have the same density, posterior and gradients."""

import numpy as np
import pytest
from conftest import random_annotations

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

import jax
import jax.numpy as jnp
from pyro.infer import TraceEnum_ELBO
from pyro.infer.autoguide import AutoDelta, init_to_value

from crowdppl import Classifier, Prevalence
from crowdppl.inference.densities import enumerated
from crowdppl.inference.densities import sites as numpyro_sites
from crowdppl.inference.engines.pyro.ascent import slopes_of
from crowdppl.inference.engines.pyro.batches import TaskSource, take
from crowdppl.inference.engines.pyro.density import density
from crowdppl.models import Given, find_story
from crowdppl.models import pyro as stories_in_pyro
from crowdppl.models.pyro import STORIES, TorchClassifier, tensors

RELATIVE = 1e-5  # in float64: what the two programs may differ by
STORY_OPTIONS = [
    ("two_coin", 2, {}),
    ("two_coin", 2, {"right": 3.0, "wrong": 0.5}),
    ("dawid_skene", 3, {"truth_prior": Prevalence((1.0, 2.0, 3.0))}),
    ("dawid_skene", 3, {"diagonal": 4.0, "off_diagonal": 0.7, "history": np.ones((4, 3, 3))}),
    ("difficulty", 2, {"kind": "fixed"}),
    ("difficulty", 3, {"kind": "fixed"}),
    ("difficulty", 3, {"kind": "fixed", "by_class": True, "votes_as_prior": False, "location": 1.0, "scale": 0.5}),
    ("annotator_groups", 3, {}),
    ("annotator_groups", 3, {"groups": 2, "membership": "worker"}),
    ("annotator_groups", 3, {"groups": 2, "membership": "worker", "share": 2.0}),
    ("annotator_groups", 3, {"gated": True}),
    ("annotator_groups", 3, {"truth": "answer"}),
    ("common_individual", 3, {"embedding": 4, "separation": 0.3}),
    ("common_individual", 3, {"by_task": False, "coin": 2.0}),
    ("common_individual", 3, {"embedding": 4, "hidden": 3, "bias": True, "temperature": 0.3, "groups": 2}),
    ("common_individual", 3, {"by_task": False, "groups": 2, "share": 0.5, "separation": 0.3}),
    ("one_coin", 3, {"right": 3.0}),
    ("mace", 3, {"habit": 2.0}),
    ("glad", 3, {}),
    ("glad", 3, {"truth_prior": Prevalence(2.0), "difficulty_scale": 0.5}),
    ("item_response", 2, {}),
    ("item_response", 2, {"discrimination": True, "guessing": True, "truth_prior": "uniform"}),
    ("item_response", 2, {"difficulty": False}),
    ("hierarchical_dawid_skene", 3, {"diagonal": 0.0, "spread": 0.5}),
    ("worker_clusters", 3, {"strength": 3.0}),
    ("worker_clusters", 3, {"clusters": 1, "truth_prior": (0.2, 0.3, 0.5)}),
    ("independent_confusion_subtypes", 3, {"share": 0.5}),
    ("independent_confusion_subtypes", 3, {"subtypes": 1}),
    ("ebcc", 3, {"subtypes": 4}),
    ("confusion_from_features", 3, {"accuracy": 0.6, "spread": 2.0}),
    ("confusion_from_features", 3, {"by_task": False}),
    ("confusion_from_features", 3, {"hidden": 4, "embedding": 2}),
    ("confusion_from_features", 3, {"hidden": 4, "embedding": 2, "by_task": False}),
    ("crowd_layer", 3, {"truth_prior": Given(), "form": "matrix"}),
    ("crowd_layer", 3, {"truth_prior": Given(), "form": "scale_and_bias"}),
    ("crowd_layer", 3, {"truth_prior": Given(), "focus": 2.0}),
    ("anno_reg", 3, {"truth_prior": Given(), "weight": 0.4}),
]
WITH_CLASSIFIER = [
    ("two_coin", 2, {}),
    ("dawid_skene", 3, {}),
    ("difficulty", 2, {}),
    ("difficulty", 3, {"by_class": True}),
    ("difficulty", 2, {"through_difficulty": True}),
    ("difficulty", 3, {"through_difficulty": True}),
    ("difficulty", 3, {"kind": "fixed"}),
    ("difficulty", 3, {"kind": "fixed", "votes_as_prior": False}),
    ("annotator_groups", 3, {"truth": "answer"}),
    ("annotator_groups", 3, {"membership": "worker"}),
    ("common_individual", 3, {"embedding": 4}),
    ("common_individual", 3, {"truth": "answer", "embedding": 4, "diagonal": 3.0}),
    ("common_individual", 3, {"truth": "answer", "by_task": False, "groups": 2}),
    ("common_individual", 3, {"truth": "answer", "kernels": "free", "hidden": 3, "bias": True, "separation": 0.3}),
    ("common_individual", 3, {"truth": "answer", "kernels": "free", "by_task": False, "spread": 2.0}),
    ("glad", 3, {}),
    ("item_response", 2, {}),
    ("independent_confusion_subtypes", 3, {}),
    ("confusion_from_features", 3, {"truth": "answer"}),
    ("crowd_layer", 3, {"form": "vector"}),
    ("anno_reg", 3, {}),
]
BY_TASK = ("glad", "item_response")  # whose parameters a guide of Pyro's has for the tasks of a batch at random
POSITIVE = ("spread", "discrimination")
pytestmark = pytest.mark.usefixtures("double")


def annotations_of(n_classes, seed, *, evidence=True, worker_features=False):
    rng = np.random.default_rng(seed)
    found = random_annotations(rng, n_tasks=9, n_workers=4, n_classes=n_classes, n_rows=40)
    log_weights = rng.normal(size=(9, n_classes))
    log_weights[0, 1:] = -np.inf  # a gold label
    return found.replace(
        features=rng.normal(size=(9, 3)),
        worker_features=rng.normal(size=(4, 2)) if worker_features else None,
        count=rng.integers(1, 4, found.n_rows).astype(float),
        evidence=log_weights if evidence else None,
        prior=rng.dirichlet(np.ones(n_classes), 9),
    )


def random_parameters(model, annotations, seed):
    """Of the shapes that NumPyro's story has: rows drawn flat, reals from a normal, abilities positive."""
    rng, tables = np.random.default_rng(seed), []

    def shapes(key):
        tables.extend(numpyro_sites.anatomy(model, annotations).tables)
        return numpyro_sites.starting_point(model, annotations, key)

    values = {}
    for name, like in jax.eval_shape(shapes, jax.random.key(0)).items():
        if name in tables:
            values[name] = rng.dirichlet(np.ones(like.shape[-1]), like.shape[:-1])
        else:
            is_positive = name in POSITIVE or (name == "ability" and model.story.__name__ == "difficulty")
            values[name] = np.exp(rng.normal(1, 0.5, like.shape)) if is_positive else rng.normal(size=like.shape)
    return values


def of_numpyro(model, parameters, annotations, weight):
    def values(parameters):
        at = enumerated.density(model, parameters, annotations)
        return (at.log_posterior, (weight * at.posterior).sum()), at

    def everything(parameters):
        _, pull, at = jax.vjp(values, parameters, has_aux=True)
        found = (at.log_likelihood, at.posterior, at.log_prior)
        return found, pull((1.0, 0.0))[0], pull((0.0, 1.0))[0]

    return jax.jit(everything)(parameters)  # eager, each of its operations would be compiled by itself


def of_pyro(model, parameters, annotations, weight):
    at = density(model, parameters, annotations)
    log_posterior = at.log_posterior
    label = (torch.as_tensor(weight) * at.posterior).sum()
    unused = {"allow_unused": True, "materialize_grads": True}
    grads = [
        torch.autograd.grad(v, list(parameters.values()), retain_graph=True, **unused) for v in (log_posterior, label)
    ]
    return at, *(dict(zip(parameters, grad, strict=True)) for grad in grads)


def agree(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=RELATIVE, atol=RELATIVE * max(np.abs(theirs).max(), 1e-6))


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2))])
@pytest.mark.parametrize(("story", "n_classes", "options"), STORY_OPTIONS)
def test_both_programs_have_the_same_marginal_likelihood_label_posterior_and_gradients(story, n_classes, options, seed):
    annotations = annotations_of(n_classes, seed, evidence=seed > 0, worker_features=seed == 2)
    model = numpyro_sites.Model(find_story(story), options)
    data = jax.tree.map(jnp.asarray, annotations)
    parameters = random_parameters(model, data, seed)
    weight = np.random.default_rng(seed).normal(size=(9, n_classes))
    (log_likelihood, posterior, log_prior), slope, label_slope = of_numpyro(model, parameters, data, weight)
    ours = {name: torch.tensor(value, requires_grad=True) for name, value in parameters.items()}
    found, our_slope, our_label_slope = of_pyro(
        numpyro_sites.Model(STORIES[story], options), ours, tensors(annotations), weight
    )
    agree(found.log_likelihood.detach(), log_likelihood)
    agree(found.posterior.detach(), posterior)
    # NumPyro takes a Dirichlet's normaliser in the precision of its concentration, which is float32
    assert float(found.log_prior.detach()) == pytest.approx(float(log_prior), abs=1e-4)
    for name in parameters:
        agree(our_slope[name], slope[name])
        agree(our_label_slope[name], label_slope[name])


@pytest.mark.parametrize(
    ("story", "n_classes", "options"),
    [
        ("dawid_skene", 3, {}),
        ("two_coin", 2, {"right": 3.0, "wrong": 0.5}),
        ("annotator_groups", 3, {"groups": 2, "membership": "worker"}),
        ("common_individual", 3, {"by_task": False}),
    ],
)
def test_both_programs_have_the_same_density_of_log_odds_also_at_zero_probabilities(story, n_classes, options):
    """A Dirichlet's density in log-odds is finite at zeros, with its exponents, not those less one, as slopes."""
    annotations = annotations_of(n_classes, 0)
    model = numpyro_sites.Model(find_story(story), options)
    data = jax.tree.map(jnp.asarray, annotations)
    parameters = random_parameters(model, data, 0)
    for value in parameters.values():
        value[(0,) * (value.ndim - 1)] = np.eye(value.shape[-1])[0]  # a row with zeros
    theirs = enumerated.density(model, parameters, data)
    ours = density(
        numpyro_sites.Model(STORIES[story], options),
        {name: torch.tensor(value) for name, value in parameters.items()},
        tensors(annotations),
    )
    assert np.isfinite(float(ours.log_prior_in_log_odds))
    found, expected = float(ours.log_prior_in_log_odds), float(theirs.log_prior_in_log_odds)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-4)
    found, expected = float(ours.log_posterior_in_log_odds), float(theirs.log_posterior_in_log_odds)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("story", "n_classes", "options"), WITH_CLASSIFIER)
def test_both_programs_agree_with_the_same_network_as_prior_also_in_its_weights_gradients(
    story, n_classes, options, seed
):
    annotations = annotations_of(n_classes, seed)
    prior = Classifier("mlp", hidden=(5,), dropout=0.0)
    model = numpyro_sites.Model(find_story(story), {**options, "truth_prior": prior})
    data = jax.tree.map(jnp.asarray, annotations)
    parameters = random_parameters(model, data, seed)
    weight = np.random.default_rng(seed).normal(size=(9, n_classes))
    (log_likelihood, posterior, _), slope, label_slope = of_numpyro(model, parameters, data, weight)

    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, n_classes))
    sites = {
        "0.weight": "classifier.layers.0.kernel",
        "0.bias": "classifier.layers.0.bias",
        "2.weight": "classifier.out.kernel",
        "2.bias": "classifier.out.bias",
    }
    with torch.no_grad():
        for name, value in module.named_parameters():
            value.copy_(torch.as_tensor(parameters[sites[name]].T))
    ours = TorchClassifier(module)
    of_story = {
        name: torch.tensor(value, requires_grad=True)
        for name, value in parameters.items()
        if not name.startswith("classifier.")
    }
    told = numpyro_sites.Model(STORIES[story], {**options, "truth_prior": ours})
    found = density(told, of_story, tensors(annotations))
    agree(found.log_likelihood.detach(), log_likelihood)
    agree(found.posterior.detach(), posterior)
    everything = {**of_story, **dict(ours.module.named_parameters())}
    for value, theirs in (
        (found.log_posterior, slope),
        ((torch.as_tensor(weight) * found.posterior).sum(), label_slope),
    ):
        grads = torch.autograd.grad(
            value, list(everything.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for name, grad in zip(everything, grads, strict=True):
            agree(grad.T if name.endswith(".weight") else grad, theirs[sites.get(name, name)])


@pytest.mark.parametrize("through", [None, True, False])
def test_a_logistic_regression_learns_through_the_difficulty_in_both_programs_unless_told_not_to(through):
    annotations = annotations_of(2, 0)
    options = {"through_difficulty": through}
    model = numpyro_sites.Model(find_story("difficulty"), {**options, "truth_prior": Classifier("logistic")})
    data = jax.tree.map(jnp.asarray, annotations)
    parameters = random_parameters(model, data, 0)
    _, slope, _ = of_numpyro(model, parameters, data, np.zeros((9, 2)))
    module = torch.nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.as_tensor(parameters["classifier.linear.kernel"].T))
        module.bias.copy_(torch.as_tensor(parameters["classifier.linear.bias"]))
    ours = TorchClassifier(module)
    told = numpyro_sites.Model(STORIES["difficulty"], {**options, "truth_prior": ours})
    found = density(told, {"ability": torch.tensor(parameters["ability"])}, tensors(annotations))
    weight, bias = torch.autograd.grad(found.log_posterior, [ours.module.weight, ours.module.bias])
    agree(weight.T, slope["classifier.linear.kernel"])
    agree(bias, slope["classifier.linear.bias"])


@pytest.mark.parametrize("population", [None, 90])
@pytest.mark.parametrize(("story", "n_classes", "options"), STORY_OPTIONS)
def test_pyros_own_enumeration_gives_the_same_log_posterior(story, n_classes, options, population):
    if population is not None and story in BY_TASK:
        pytest.skip("a guide of Pyro's draws tasks of its own, so that its values are other tasks'")
    annotations = annotations_of(n_classes, 1, evidence=False)
    model = numpyro_sites.Model(find_story(story), options)
    parameters = random_parameters(model, jax.tree.map(jnp.asarray, annotations), 1)
    told = numpyro_sites.Model(STORIES[story], options)
    data = tensors(annotations).replace(population=population)
    values = {name: torch.tensor(value) for name, value in parameters.items()}
    with pyro.get_param_store().scope():
        guide = AutoDelta(pyro.poutine.block(told, hide=["truth"]), init_loc_fn=init_to_value(values=values))
        elbo = -TraceEnum_ELBO(max_plate_nesting=2).loss(told, guide, data)
    expected = density(told, values, data)
    assert expected.scale == (1.0 if population is None else 10.0)
    assert elbo == pytest.approx(float(expected.log_posterior), rel=1e-9)


@pytest.mark.parametrize(
    ("story", "n_classes", "options"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case[0] in (story for story, *_ in STORY_OPTIONS[:place])))
        for place, case in enumerate(STORY_OPTIONS)
    ],
)  # by default one case of each story
def test_a_story_run_by_itself_draws_annotations_as_often_as_its_tables_say(story, n_classes, options):
    annotations = annotations_of(n_classes, 2, evidence=False).replace(count=None)
    told = numpyro_sites.Model(STORIES[story], options)
    data = tensors(annotations)
    if options.get("kind") == "fixed":
        told = numpyro_sites.Model(STORIES[story], {**options, "votes": np.full((9, n_classes), 1 / n_classes)})
    model = numpyro_sites.Model(find_story(story), options)
    parameters = random_parameters(model, jax.tree.map(jnp.asarray, annotations), 2)
    values = {name: torch.tensor(value) for name, value in parameters.items()}
    truth = torch.arange(9) % n_classes
    values["truth"] = truth
    torch.manual_seed(0)
    trace = pyro.poutine.trace(pyro.poutine.condition(told, values)).get_trace(data.replace(label=None))
    drawn = trace.nodes["annotation"]
    assert drawn["value"].shape == (annotations.n_rows,)
    many = drawn["fn"].sample((4000,))
    probs = drawn["fn"].emission.probs(data.worker, data.task)[torch.arange(annotations.n_rows), truth[data.task]]
    shares = torch.nn.functional.one_hot(many, n_classes).double().mean(0)
    error = (probs * (1 - probs) / 4000).sqrt()
    assert ((shares - probs).abs() <= 5 * error + 1e-9).all()  # 120 shares: five standard errors miss once in 10,000


def test_truth_is_drawn_from_its_prior_and_enumerated_with_its_log_probabilities():
    from crowdppl.models.pyro import Truth

    log_probs = torch.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
    truth = Truth(log_probs, 2)
    assert truth.enumerate_support(expand=False).tolist() == [[0], [1]]
    torch.testing.assert_close(truth.log_prob(truth.enumerate_support(expand=False)), log_probs.T)
    torch.testing.assert_close(truth.log_prob(torch.tensor([1, 0])), log_probs[[0, 1], [1, 0]])
    torch.manual_seed(0)
    assert truth.sample((4000,)).double().mean(0).numpy() == pytest.approx([0.8, 0.5], abs=0.04)  # 5 standard errors


def test_batches_of_one_epoch_have_the_likelihood_of_all_tasks():
    annotations = annotations_of(3, 1)
    model = numpyro_sites.Model(STORIES["dawid_skene"], {})
    parameters = random_parameters(
        numpyro_sites.Model(find_story("dawid_skene"), {}), jax.tree.map(jnp.asarray, annotations), 1
    )
    values = {name: torch.tensor(value) for name, value in parameters.items()}
    source = TaskSource(tensors(annotations), None, None, torch.device("cpu"))
    whole = density(model, values, source.whole().annotations).log_likelihood.sum()
    parts = [
        (batch.weight * density(model, values, batch.annotations).log_likelihood).sum()
        for batch in source.epoch(4, torch.Generator().manual_seed(0))
    ]
    assert len(parts) == 3
    torch.testing.assert_close(sum(parts), whole)


def test_a_batch_has_all_annotations_of_its_tasks_in_the_order_asked_for():
    annotations = tensors(annotations_of(3, 1))
    rows = torch.bincount(annotations.task, minlength=9)
    some = take(annotations, torch.tensor([5, 0, 5]), torch.cumsum(rows, 0) - rows, rows)
    expected = torch.cat([annotations.label[annotations.task == i] for i in (5, 0, 5)])
    assert some.label.tolist() == expected.tolist()
    assert torch.bincount(some.task, minlength=3).tolist() == rows[[5, 0, 5]].tolist()
    torch.testing.assert_close(some.features, annotations.features[[5, 0, 5]])


def test_what_does_not_matter_has_a_slope_of_zero():
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    slopes = slopes_of((2 * a).sum(), {"a": a, "b": b})
    assert slopes["a"].tolist() == [2.0, 2.0]
    assert slopes["b"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_imported_by_its_name_takes_annotations_of_arrays(name):
    """That of the module, which people import, is the story of the registry, and sees tensors whatever it is given."""
    story = getattr(stories_in_pyro, name)
    assert story is STORIES[name]
    options = next((given for of, _, given in STORY_OPTIONS if of == name), {})
    n_classes = next((classes for of, classes, _ in STORY_OPTIONS if of == name), 3)
    annotations = annotations_of(n_classes, 1, evidence=False)
    assert isinstance(annotations.task, np.ndarray)
    totals = []
    for data in (annotations, jax.tree.map(jnp.asarray, annotations), tensors(annotations)):
        pyro.set_rng_seed(0)
        pyro.clear_param_store()
        with torch.no_grad():
            totals.append(float(pyro.poutine.trace(story).get_trace(data, **options).log_prob_sum()))
    assert np.isfinite(totals[0])
    np.testing.assert_allclose(totals, totals[0], rtol=1e-6)
