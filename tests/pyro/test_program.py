"""Any story as a Pyro program: what Pyro makes of it is the story's own density, posterior and slopes."""

import numpy as np
import pytest
from conftest import random_annotations
from rubrics import CLASSES, rubric
from story_options import DEFAULTS, FURTHER, Option, as_parameters

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

import jax
import jax.numpy as jnp
from pyro import poutine
from pyro.distributions.transforms import biject_to
from pyro.infer import Trace_ELBO, TraceEnum_ELBO

from crowdppl import BradleyTerry, Classifier, Prevalence, SmoothPrevalence, StoryError
from crowdppl.data import Annotations, Ids
from crowdppl.data.kinds import Ordered, Pairwise
from crowdppl.inference.densities import enumerated
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.programs import compiled
from crowdppl.inference.densities.sites import parameter_spec, starting_point
from crowdppl.inference.torch import in_pyro, marginal_in_pyro
from crowdppl.inference.torch.program import (
    REALS,
    Truth,
    latents_of,
    log_posterior_at,
    many_from_reals,
    select,
    to_reals,
)
from crowdppl.models import KNOWN_STORIES, Given
from crowdppl.models.pyro import STORIES as PLAIN

RELATIVE = 1e-5  # in float64; NumPyro takes a Dirichlet's normaliser in the precision of its concentration, float32
NESTING = 2  # plates at the most around a site
OF_THREE_CLASSES = [
    ("two_coin", 2, {"right": 3.0, "wrong": 0.5}),
    ("dawid_skene", 3, {"truth_prior": Prevalence((1.0, 2.0, 3.0))}),
    ("dawid_skene", 3, {"diagonal": 4.0, "off_diagonal": 0.7, "history": np.ones((4, 3, 3))}),
    ("difficulty", 3, {"kind": "fixed"}),
    ("difficulty", 3, {"kind": "fixed", "by_class": True, "votes_as_prior": False, "location": 1.0, "scale": 0.5}),
    ("annotator_groups", 3, {"groups": 2, "membership": "worker", "share": 2.0}),
    ("annotator_groups", 3, {"gated": True}),
    ("annotator_groups", 3, {"truth": "answer"}),
    ("common_individual", 3, {"embedding": 4, "separation": 0.3}),
    ("common_individual", 3, {"embedding": 4, "hidden": 3, "bias": True, "temperature": 0.3, "groups": 2}),
    ("common_individual", 3, {"by_task": False, "groups": 2, "share": 0.5, "separation": 0.3}),
    ("one_coin", 3, {"right": 3.0}),
    ("mace", 3, {"habit": 2.0}),
    ("glad", 3, {"truth_prior": Prevalence(2.0), "difficulty_scale": 0.5}),
    ("item_response", 2, {"discrimination": True, "guessing": True, "truth_prior": "uniform"}),
    ("hierarchical_dawid_skene", 3, {"diagonal": 0.0, "spread": 0.5}),
    ("worker_clusters", 3, {"strength": 3.0}),
    ("worker_clusters", 3, {"clusters": 1, "truth_prior": (0.2, 0.3, 0.5)}),
    ("independent_confusion_subtypes", 3, {"share": 0.5}),
    ("ebcc", 3, {"subtypes": 4}),
    ("confusion_from_features", 3, {"accuracy": 0.6, "spread": 2.0}),
    ("confusion_from_features", 3, {"hidden": 4, "embedding": 2, "by_task": False}),
    ("crowd_layer", 3, {"truth_prior": Given(), "form": "matrix"}),
    ("crowd_layer", 3, {"truth_prior": Given(), "form": "scale_and_bias"}),
    ("crowd_layer", 3, {"truth_prior": Given(), "focus": 2.0}),
    ("anno_reg", 3, {"truth_prior": Given(), "weight": 0.4}),
]
WITH_CLASSIFIER = [
    ("dawid_skene", 3, {}),
    ("difficulty", 2, {}),
    ("difficulty", 2, {"through_difficulty": True}),
    ("difficulty", 3, {"kind": "fixed"}),
    ("two_coin", 2, {}),
    ("difficulty", 3, {"by_class": True}),
    ("difficulty", 3, {"through_difficulty": True}),
    ("difficulty", 3, {"kind": "fixed", "votes_as_prior": False}),
    ("annotator_groups", 3, {"truth": "answer"}),
    ("annotator_groups", 3, {"membership": "worker"}),
    ("common_individual", 3, {"embedding": 4}),
    ("common_individual", 3, {"truth": "answer", "kernels": "free", "hidden": 3, "bias": True, "separation": 0.3}),
    ("glad", 3, {}),
    ("independent_confusion_subtypes", 3, {}),
    ("confusion_from_features", 3, {"truth": "answer"}),
    ("crowd_layer", 3, {"form": "vector"}),
    ("anno_reg", 3, {}),
]
BY_DEFAULT = 4  # of the cases with a classifier
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
    """Rows drawn flat, other parameters where engines start, in float64."""
    rng, tables = np.random.default_rng(seed), []
    data = jax.tree.map(jnp.asarray, annotations)

    def start(key):
        tables.extend(parameter_spec(model, data).tables)
        return starting_point(model, data, key)

    values = {}
    for name, value in jax.jit(start)(jax.random.key(seed)).items():
        flat = rng.dirichlet(np.ones(value.shape[-1]), value.shape[:-1]) if name in tables else value
        values[name] = np.asarray(flat, dtype=float)
    return values


@compiled
def _of_story(model, annotations, values):
    def total(values):
        at = enumerated.density(model, values, annotations)
        return at.log_posterior, at.posterior

    return jax.value_and_grad(total, has_aux=True)(values)


def of_story(model, annotations, values):
    """Log-posterior, label posterior and the slopes of the former, by the story's own density."""
    (value, posterior), slopes = _of_story(model, jax.tree.map(jnp.asarray, annotations), values)
    return float(value), np.asarray(posterior), slopes


def no_guide(*arguments):
    """Of a program whose parameters all have values."""


def at(program, values):
    return poutine.condition(program, data=values)


def agree(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=RELATIVE, atol=RELATIVE * max(np.abs(theirs).max(), 1e-6))


def same_story(model, annotations, arguments=()):
    """Hold both Pyro programs of a model to its density."""
    values = random_parameters(model, annotations, 1)
    expected, posterior, slopes = of_story(model, annotations, values)
    ours = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    enumerating = TraceEnum_ELBO(max_plate_nesting=NESTING)
    for elbo, make in ((enumerating, in_pyro), (Trace_ELBO(), marginal_in_pyro)):
        loss = elbo.differentiable_loss(at(make(model), ours), no_guide, annotations, *arguments)
        assert -loss.item() == pytest.approx(expected, rel=RELATIVE)
        unused = {"allow_unused": True, "materialize_grads": True}
        for name, grad in zip(ours, torch.autograd.grad(-loss, list(ours.values()), **unused), strict=True):
            agree(grad, slopes[name])
    labels = enumerating.compute_marginals(at(in_pyro(model), ours), no_guide, annotations, *arguments)["truth"]
    agree(labels.logits.softmax(-1).detach(), posterior)


@pytest.mark.parametrize("option", as_parameters([*DEFAULTS, *FURTHER]))
def test_both_programs_have_the_density_label_posterior_and_slopes_of_the_story(option):
    same_story(Model(KNOWN_STORIES[option.story], option.options), option.annotations())


def test_scores_of_items_as_the_prior_are_those_of_the_story():
    annotations = annotations_of(3, 3, evidence=False)
    sides = np.array([[i % 4, (i + 1 + i % 3) % 4] for i in range(9)], dtype=np.int32)
    compared = annotations.replace(sides=sides, items=Ids(["a", "b", "c", "d"]), kind=Pairwise())
    same_story(Model(KNOWN_STORIES["dawid_skene"], {}), compared)
    mirrored = np.random.default_rng(4).random(annotations.n_rows) < 0.5
    same_story(Model(KNOWN_STORIES["dawid_skene"], {}), compared.replace(mirrored=mirrored))
    of_items = np.random.default_rng(5).normal(size=(4, 2)).astype(np.float32)
    by_features = {"truth_prior": BradleyTerry(slope=0.5, by_prompt=0.7)}
    same_story(Model(KNOWN_STORIES["dawid_skene"], by_features), compared.replace(item_features=of_items))


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
@pytest.mark.parametrize(("story", "options"), [("one_coin", {}), ("dawid_skene", {"shared_error": True})])
def test_questions_with_classes_of_their_own_are_those_of_the_story(story, options):
    annotations = Annotations.from_frame(rubric(3, 3)[0], question="question", classes=CLASSES)
    same_story(Model(KNOWN_STORIES[story], options), annotations)


@pytest.mark.parametrize("story", ["score_factor", "graded_response", "ordinal_dawid_skene"])
def test_levels_of_another_truth_are_those_of_the_story(story):
    """Two classes and four levels, which stand after them."""
    annotations, rng = annotations_of(2, 3), np.random.default_rng(5)
    label = (2 + rng.integers(0, 4, annotations.n_rows)).astype(np.int32)
    levels = annotations.replace(label=label, abstentions=Ids.range(4), scored=True)
    same_story(Model(KNOWN_STORIES[story], {}), levels)


def test_classes_that_are_the_levels_and_follow_the_crowd_are_those_of_the_story():
    same_story(Model(KNOWN_STORIES["score_factor"], {}), annotations_of(4, 3).replace(kind=Ordered()))


@pytest.mark.parametrize("scale", [0.2, None])
def test_a_smooth_prevalence_is_that_of_the_story(scale):
    same_story(
        Model(KNOWN_STORIES["dawid_skene"], {"truth_prior": SmoothPrevalence(scale)}),
        annotations_of(3, 3).replace(kind=Ordered()),
    )


@pytest.mark.slow
@pytest.mark.parametrize("population", [None, 90])
@pytest.mark.parametrize(("story", "n_classes", "options"), OF_THREE_CLASSES)
def test_they_have_it_with_counts_evidence_and_in_batches_that_stand_for_more(story, n_classes, options, population):
    annotations = annotations_of(n_classes, 2, worker_features=True).replace(population=population)
    same_story(Model(KNOWN_STORIES[story], options), annotations)


def test_a_batch_of_tasks_stands_for_the_population_also_where_tasks_have_parameters():
    for story, options in (("dawid_skene", {}), ("glad", {})):
        same_story(Model(KNOWN_STORIES[story], options), annotations_of(2, 1).replace(population=90))


PARTICLES = ("dawid_skene", "glad-abstentions", "common_individual-groups=2", "dawid_skene-shared_error=True")


@pytest.mark.parametrize("option", [pytest.param(o, id=o.name) for o in [*DEFAULTS, *FURTHER] if o.name in PARTICLES])
def test_vectorised_particles_have_the_bound_of_particles_one_after_the_other(option):
    """Particles at different parameters, in a plate left of the story's two."""
    annotations, model = option.annotations(), Model(KNOWN_STORIES[option.story], option.options)
    several = [random_parameters(model, annotations, seed) for seed in range(3)]
    found = [of_story(model, annotations, values) for values in several]
    expected = [value for value, _, _ in found]
    program = in_pyro(model)
    sites = poutine.trace(program).get_trace(annotations).nodes
    stacked = {}
    for name in several[0]:
        values = torch.tensor(np.stack([values[name] for values in several]))
        n_own = len(sites[name]["fn"].batch_shape)
        stacked[name] = values.reshape(3, *[1] * (NESTING - n_own), *values.shape[1:]).requires_grad_()
    elbo = TraceEnum_ELBO(max_plate_nesting=NESTING, num_particles=3, vectorize_particles=True)
    loss = elbo.differentiable_loss(at(program, stacked), no_guide, annotations)
    assert -loss.item() == pytest.approx(np.mean(expected), rel=RELATIVE)
    slopes = torch.autograd.grad(-loss, list(stacked.values()), allow_unused=True, materialize_grads=True)
    theirs = [slopes for _, _, slopes in found]
    for name, slope in zip(stacked, slopes, strict=True):
        agree(slope.reshape(3, *theirs[0][name].shape), np.stack([each[name] for each in theirs]) / 3)


@pytest.mark.parametrize(
    ("story", "n_classes", "options"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (i >= BY_DEFAULT)) for i, case in enumerate(WITH_CLASSIFIER)],
)
def test_a_torch_module_as_prior_has_the_slopes_of_the_same_network_in_flax(story, n_classes, options):
    annotations = annotations_of(n_classes, 0)
    model = Model(KNOWN_STORIES[story], {**options, "truth_prior": Classifier("mlp", hidden=(5,), dropout=0.0)})
    parameters = random_parameters(model, annotations, 0)
    for name in ("classifier.out.kernel", "classifier.out.bias"):  # which start at zero
        parameters[name] = np.random.default_rng(0).normal(size=parameters[name].shape)
    expected, _, slopes = of_story(model, annotations, parameters)
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, n_classes))
    sites = {
        "0.weight": "classifier.layers.0.kernel",
        "0.bias": "classifier.layers.0.bias",
        "2.weight": "classifier.out.kernel",
        "2.bias": "classifier.out.bias",
    }
    held_to(module, sites, story, options, annotations, parameters, expected, slopes)


@pytest.mark.parametrize("through", [None, True, False])
def test_a_logistic_regression_learns_through_the_difficulty_as_in_flax_unless_told_not_to(through):
    annotations, options = annotations_of(2, 0), {"through_difficulty": through}
    model = Model(KNOWN_STORIES["difficulty"], {**options, "truth_prior": Classifier("logistic", prior=None)})
    parameters = random_parameters(model, annotations, 0)
    for name in ("classifier.linear.kernel", "classifier.linear.bias"):
        parameters[name] = np.random.default_rng(0).normal(size=parameters[name].shape)
    expected, _, slopes = of_story(model, annotations, parameters)
    sites = {"weight": "classifier.linear.kernel", "bias": "classifier.linear.bias"}
    held_to(torch.nn.Linear(3, 2), sites, "difficulty", options, annotations, parameters, expected, slopes)


def held_to(module, sites, story, options, annotations, parameters, expected, slopes):
    """Hold the Pyro programs of a story with a torch module as prior to a density and its slopes."""
    from crowdppl.inference.torch.backend import prior_of

    with torch.no_grad():
        for name, value in module.named_parameters():
            value.copy_(torch.as_tensor(parameters[sites[name]].T))
    model = Model(KNOWN_STORIES[story], {**options, "truth_prior": prior_of(module)})
    ours = {n: torch.tensor(v) for n, v in parameters.items() if not n.startswith("classifier.")}
    features = torch.as_tensor(np.asarray(annotations.features, dtype=float))  # which are kept as float32
    for elbo, make in ((TraceEnum_ELBO(max_plate_nesting=NESTING), in_pyro), (Trace_ELBO(), marginal_in_pyro)):
        log_prior = torch.log_softmax(module(features), -1)
        loss = elbo.differentiable_loss(at(make(model), ours), no_guide, annotations, log_prior)
        assert -loss.item() == pytest.approx(expected, rel=RELATIVE)
        weights = dict(module.named_parameters())
        for name, grad in zip(weights, torch.autograd.grad(-loss, list(weights.values())), strict=True):
            agree(grad.T, slopes[sites[name]])


def test_log_probabilities_beside_another_prior_are_refused():
    program = in_pyro("dawid_skene", truth_prior=Prevalence(2.0))
    with pytest.raises(StoryError, match=r"truth_prior=Prevalence.* both"):
        program(annotations_of(2, 0), torch.zeros(9, 2))


def test_second_derivatives_of_the_marginal_are_those_of_jax():
    """Which Laplace's approximation asks for."""
    annotations, model = annotations_of(2, 1), Model(KNOWN_STORIES["dawid_skene"], {})
    values = random_parameters(model, annotations, 1)
    share = torch.tensor(values["prevalence"], requires_grad=True)
    ours = {name: torch.tensor(value) for name, value in values.items()} | {"prevalence": share}
    loss = Trace_ELBO().differentiable_loss(at(marginal_in_pyro(model), ours), no_guide, annotations)
    (slope,) = torch.autograd.grad(-loss, share, create_graph=True)
    rows = [torch.autograd.grad(one, share, retain_graph=True)[0] for one in slope]

    def total(share):
        data = jax.tree.map(jnp.asarray, annotations)
        return enumerated.density(model, values | {"prevalence": share}, data).log_posterior

    agree(torch.stack(rows), jax.jit(jax.hessian(total))(values["prevalence"]))


@pytest.mark.parametrize("option", as_parameters(DEFAULTS))
def test_the_reals_of_the_default_guide_are_those_of_pyros_own_bijections(option):
    model, annotations = Model(KNOWN_STORIES[option.story], option.options), option.annotations()
    data = jax.tree.map(jnp.asarray, annotations)
    values = {name: torch.tensor(value) for name, value in random_parameters(model, annotations, 1).items()}
    sampled = {latent.name: biject_to(latent.support) for latent in latents_of(model, data) if not latent.is_param}
    reals, log_det = [], 0.0
    for name, bijection in sampled.items():
        reals.append(bijection.inv(values[name]))
        log_det += bijection.log_abs_det_jacobian(reals[-1], values[name]).sum()
    vector = torch.cat([real.flatten() for real in reals])
    agree(to_reals(model, data, {name: values[name].numpy() for name in sampled}), vector)
    for name, back in many_from_reals(model, data, vector[None].numpy()).items():
        agree(back[0], values[name])
    optimised = {name: value for name, value in values.items() if name not in sampled}
    ours = log_posterior_at(model, data, {REALS: vector, **optimised})
    agree(ours, log_posterior_at(model, data, values) + log_det)


DRAWN = [Option("glad", {}, ("abstentions",)), Option("dawid_skene", {"shared_error": True}), DEFAULTS[0]]


@pytest.mark.parametrize("option", [pytest.param(option, id=option.name) for option in DRAWN])
def test_a_program_run_by_itself_draws_annotations_as_often_as_its_emission_says(option):
    annotations, model = option.annotations(), Model(KNOWN_STORIES[option.story], option.options)
    values = random_parameters(model, annotations, 2)
    truth = np.arange(annotations.n_tasks) % 2
    given = {name: torch.tensor(value) for name, value in values.items()} | {"truth": torch.tensor(truth)}
    torch.manual_seed(0)
    site = poutine.trace(at(in_pyro(model), given)).get_trace(annotations.replace(label=None)).nodes["annotation"]
    assert site["value"].shape == (annotations.n_rows,)
    many = site["fn"].sample((4000,))

    def probabilities(values):
        at = enumerated.density(model, values, jax.tree.map(jnp.asarray, annotations))
        return at.likelihood.emission.probs(annotations.worker, annotations.task)

    probs = np.asarray(jax.jit(probabilities)(values))
    probs = probs[np.arange(annotations.n_rows), truth[annotations.task]]
    shares = torch.nn.functional.one_hot(many, probs.shape[-1]).double().mean(0).numpy()
    error = np.sqrt(probs * (1 - probs) / 4000)
    assert (np.abs(shares - probs) <= 5 * error + 1e-9).all()  # some 40 shares: five standard errors miss once in 10⁵


def test_annotations_that_were_drawn_are_scored_and_not_those_observed():
    annotations, model = annotations_of(3, 0, evidence=False), Model(KNOWN_STORIES["dawid_skene"], {})
    torch.manual_seed(0)
    drawn = poutine.trace(in_pyro(model)).get_trace(annotations.replace(label=None))
    latent = {n: s["value"] for n, s in drawn.nodes.items() if n in ("confusion", "prevalence", "truth")}
    observed = annotations.replace(label=drawn.nodes["annotation"]["value"].numpy().astype(np.int32))
    expected = poutine.trace(at(in_pyro(model), latent)).get_trace(observed)
    torch.testing.assert_close(drawn.log_prob_sum(), expected.log_prob_sum())


def test_truth_is_drawn_from_its_prior_and_enumerated_with_its_log_probabilities():
    log_probs = torch.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
    truth = Truth(log_probs)
    assert truth.enumerate_support(expand=False).tolist() == [[0], [1]]
    torch.testing.assert_close(truth.log_prob(truth.enumerate_support(expand=False)), log_probs.T)
    torch.testing.assert_close(truth.log_prob(torch.tensor([1, 0])), log_probs[[0, 1], [1, 0]])
    torch.manual_seed(0)
    assert truth.sample((4000,)).double().mean(0).numpy() == pytest.approx([0.8, 0.5], abs=0.04)  # 5 standard errors


def test_one_task_is_selected_as_several_are():
    scores = torch.tensor([[0.1, 0.9]])
    assert select(scores, torch.tensor([[0], [1]])).tolist() == [[0.1], [0.9]]
    assert select(scores.expand(2, 2), torch.tensor([[0], [1]])).tolist() == [[0.1, 0.1], [0.9, 0.9]]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_pyro_stories_have_the_density_and_the_label_posterior_of_the_adapter(name, n_classes):
    if name == "two_coin" and n_classes == 3:
        pytest.skip("two_coin is of two classes")
    annotations = annotations_of(n_classes, 3, evidence=False).replace(features=None, prior=None)
    model = Model(KNOWN_STORIES[name], {})
    values = {n: torch.tensor(v) for n, v in random_parameters(model, annotations, 3).items()}
    elbo = TraceEnum_ELBO(max_plate_nesting=NESTING)
    losses, labels = [], []
    for program in (PLAIN[name], in_pyro(model)):
        losses.append(elbo.loss(at(program, values), no_guide, annotations))
        labels.append(elbo.compute_marginals(at(program, values), no_guide, annotations)["truth"].logits.softmax(-1))
    assert losses[0] == pytest.approx(losses[1], rel=RELATIVE)
    agree(labels[0], labels[1])
