"""The stories in Pyro are plain Pyro programs: Pyro's own samplers, guides, handlers and printers run on them."""

from functools import partial

import numpy as np
import pytest
from story_options import DEFAULTS, FURTHER, N_ROWS, N_TASKS

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro import poutine
from pyro.infer import HMC, MCMC, NUTS, SVI, Predictive, TraceEnum_ELBO, config_enumerate, infer_discrete
from pyro.infer.autoguide import AutoDelta, AutoNormal
from pyro.poutine.util import site_is_subsample

from crowdppl import Classifier
from crowdppl.models.parts.general import GENERAL
from crowdppl.models.parts.simulated_inputs import prepared
from crowdppl.models.pyro import STORIES, TorchClassifier, tensors

NESTING = 2  # plates at the most around a site


def is_pyros(option):
    if option.story not in STORIES or "abstentions" in option.has or not GENERAL.keys().isdisjoint(option.options):
        return False
    return not isinstance(option.options.get("truth_prior"), Classifier)


OPTIONS = [option for option in [*DEFAULTS, *FURTHER] if is_pyros(option)]
OPTIONS.append(DEFAULTS[0]._replace(options={"truth_prior": TorchClassifier(torch.nn.Linear(2, 2))}, has=("features",)))
EVERY_OPTION = pytest.mark.parametrize("option", [pytest.param(o, id=o.name) for o in OPTIONS])


@pytest.fixture(autouse=True)
def _fresh():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()
    torch.set_num_threads(threads)


def program(option):
    return partial(STORIES[option.story], **option.options)


def without_labels(option, annotations):
    """The story and the annotations to draw: difficulties that come from votes need some."""
    story = program(option)
    if option.story == "difficulty" and "truth_prior" not in option.options:
        story = partial(story, votes=np.full((N_TASKS, 2), 0.5, dtype=np.float32))
    return story, annotations.replace(label=None)


def total(handled, annotations):
    return poutine.trace(handled).get_trace(annotations).log_prob_sum()


@EVERY_OPTION
def test_nuts_samples_it_and_its_draws_serve_predictive(option):
    annotations = tensors(option.annotations())
    mcmc = MCMC(NUTS(program(option)), num_samples=2, warmup_steps=2, disable_progbar=True)
    mcmc.run(annotations)
    samples = mcmc.get_samples()
    assert samples
    assert all(torch.isfinite(values).all() for values in samples.values())
    story, new = without_labels(option, annotations)
    replicated = Predictive(story, samples)(new)["annotation"]
    assert replicated.numel() == 2 * N_ROWS
    assert set(replicated.unique().tolist()) <= {0, 1}


@EVERY_OPTION
def test_hmc_samples_it(option):
    mcmc = MCMC(HMC(program(option), num_steps=2), num_samples=2, warmup_steps=2, disable_progbar=True)
    mcmc.run(tensors(option.annotations()))
    assert all(torch.isfinite(values).all() for values in mcmc.get_samples().values())


@EVERY_OPTION
def test_svi_trains_a_mean_field_guide_with_the_truth_enumerated(option):
    story, annotations = program(option), tensors(option.annotations())
    guide = AutoNormal(poutine.block(story, hide=["truth"]))
    svi = SVI(story, guide, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=NESTING))
    losses = [svi.step(annotations) for _ in range(5)]
    assert np.isfinite(losses).all()
    assert np.ptp(losses) > 0


@EVERY_OPTION
def test_predictive_draws_from_the_prior(option):
    story, new = without_labels(option, tensors(option.annotations()))
    drawn = Predictive(story, num_samples=3)(new)
    assert drawn["truth"].numel() == 3 * N_TASKS
    assert drawn["annotation"].numel() == 3 * N_ROWS


@EVERY_OPTION
def test_its_densities_under_handlers_are_those_of_the_story(option):
    """Of one labelling; scaled; without the truth's own density; without the annotations."""
    story, annotations = program(option), tensors(option.annotations())
    sites = poutine.trace(story).get_trace(annotations)
    sites.compute_log_prob()
    latent = {name: sites.nodes[name]["value"] for name in sites.stochastic_nodes if "_INFER" not in str(name)}
    latent = {name: value for name, value in latent.items() if sites.nodes[name]["type"] == "sample"}
    latent = {n: v for n, v in latent.items() if type(sites.nodes[n]["fn"]).__name__ != "_Subsample"}
    at_these = poutine.condition(story, data=latent)
    whole = sites.log_prob_sum()
    torch.testing.assert_close(total(at_these, annotations), whole, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(total(poutine.scale(at_these, scale=2.0), annotations), 2 * whole, rtol=1e-4, atol=1e-4)
    hidden = total(poutine.block(at_these, hide=["annotation"]), annotations)
    of_annotations = sites.nodes["annotation"]["log_prob_sum"]
    torch.testing.assert_close(hidden, whole - of_annotations, rtol=1e-4, atol=1e-4)
    rest = {name: value for name, value in latent.items() if name != "truth"}
    intervened = poutine.do(poutine.condition(story, data=rest), data={"truth": latent["truth"]})
    there = poutine.trace(intervened).get_trace(annotations)  # its site truth is a fresh draw, which nothing reads
    found = there.log_prob_sum() - there.nodes["truth"]["log_prob_sum"]
    torch.testing.assert_close(found, whole - sites.nodes["truth"]["log_prob_sum"], rtol=1e-4, atol=1e-4)


@EVERY_OPTION
def test_a_truth_is_drawn_from_its_posterior(option):
    """Given the annotations and a draw of the parameters, by infer_discrete."""
    drawing = infer_discrete(config_enumerate(program(option)), first_available_dim=-1 - NESTING)
    truth = poutine.trace(drawing).get_trace(tensors(option.annotations())).nodes["truth"]["value"]
    assert truth.numel() == N_TASKS
    assert set(truth.unique().tolist()) <= {0, 1}


@EVERY_OPTION
def test_its_shapes_are_printed(option):
    sites = poutine.trace(program(option)).get_trace(tensors(option.annotations()))
    sites.compute_log_prob()
    printed = sites.format_shapes()
    assert f"truth dist {N_TASKS}" in " ".join(printed.replace("|", "").split())


@EVERY_OPTION
def test_its_graph_is_drawn(option):
    pytest.importorskip("graphviz", reason="render_model needs the Python package graphviz")
    source = pyro.render_model(program(option), model_args=(tensors(option.annotations()),)).source
    assert "truth -> annotation" in source


@pytest.mark.parametrize("name", [option.story for option in DEFAULTS if option.story in STORIES])
def test_it_simulates_itself_with_its_defaults(name):
    option = next(o for o in DEFAULTS if o.story == name)
    design, hyperparameters = prepared(STORIES[name], option.annotations(), {}, np.random.default_rng(0))
    sites = poutine.trace(STORIES[name]).get_trace(tensors(design).replace(label=None), **hyperparameters)
    assert sites.nodes["annotation"]["value"].shape == (N_ROWS,)


@EVERY_OPTION
def test_vectorised_particles_have_the_bound_of_particles_one_after_the_other(option):
    """A guide that is a point draws the same values for each particle, so that their mean bound is that of one."""
    annotations, story = tensors(option.annotations()), program(option)
    guide = AutoDelta(poutine.block(story, hide=["truth"]))
    one = TraceEnum_ELBO(max_plate_nesting=NESTING).loss(story, guide, annotations)
    several = TraceEnum_ELBO(max_plate_nesting=NESTING, num_particles=3, vectorize_particles=True)
    assert several.loss(story, guide, annotations) == pytest.approx(one, rel=1e-4)


@EVERY_OPTION
def test_parallel_posterior_predictions_have_the_frequencies_of_the_tables(option):
    """Of 2,000 replications at one draw and one truth: shares within five standard errors.

    Pyro's ``Predictive`` wants samples with all dimensions of plates, which it cannot tell from those of an event.
    """
    annotations, n_draws = tensors(option.annotations()), 2000
    story, new = without_labels(option, annotations)
    nodes = poutine.trace(story).get_trace(new).nodes
    sites = {n: s for n, s in nodes.items() if s["type"] == "sample" and not site_is_subsample(s)}
    nesting = max(len(site["fn"].batch_shape) for site in sites.values())
    samples = {}
    for name, site in sites.items():
        if name != "annotation" and not site["is_observed"]:
            value = site["value"].detach()
            value = value.reshape(*[1] * (nesting - len(site["fn"].batch_shape)), *value.shape)
            samples[name] = value[None].expand(n_draws, *value.shape)
    drawn = Predictive(story, samples, parallel=True)(new)["annotation"].reshape(n_draws, N_ROWS)
    truth = sites["truth"]["value"][annotations.task]
    probs = sites["annotation"]["fn"].emission.probs(annotations.worker, annotations.task)
    expected = probs[torch.arange(N_ROWS), truth, 1].detach()
    error = (expected * (1 - expected) / n_draws).sqrt()
    assert ((drawn.float().mean(0) - expected).abs() <= 5 * error + 1e-6).all()
