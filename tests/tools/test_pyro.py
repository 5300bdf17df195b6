"""Stories are Pyro programs, adapted or plain: Pyro's own samplers, guides, handlers and printers run on them."""

from functools import partial

import numpy as np
import pytest
from story_options import DEFAULTS, FURTHER, N_ROWS, N_TASKS

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro import poutine
from pyro.infer import HMC, MCMC, NUTS, SVI, Predictive, TraceEnum_ELBO, config_enumerate, infer_discrete
from pyro.infer.autoguide import AutoNormal
from pyro.poutine.util import site_is_subsample

from crowdppl.inference.torch import in_pyro, marginal_in_pyro
from crowdppl.models.pyro import STORIES as PLAIN

NESTING = 2  # plates at the most around a site
MECHANISMS = (
    "dawid_skene",
    "difficulty",
    "glad-abstentions",
    "annotator_groups-truth=answer",
    "common_individual-groups=2",
    "dawid_skene-truth_prior=Classifier('logistic', prior=1.0)-features",
    "dawid_skene-shared_error=True",
)
"""What the adapter meets: tables, parameters by task, abstentions, a classifier, and errors that are shared."""
OPTIONS = [option for option in [*DEFAULTS, *FURTHER] if option.name in MECHANISMS]
EVERY_PROGRAM = pytest.mark.parametrize("name", [o.name for o in OPTIONS] + [f"plain {name}" for name in PLAIN])
ADAPTED = pytest.mark.parametrize("name", [o.name for o in OPTIONS])


@pytest.fixture(autouse=True)
def _fresh():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()
    torch.set_num_threads(threads)


def told(name):
    """A Pyro program and annotations for it."""
    if name.startswith("plain "):
        return PLAIN[name.removeprefix("plain ")], DEFAULTS[0].annotations()
    option = next(option for option in OPTIONS if option.name == name)
    return in_pyro(option.story, **option.options), option.annotations()


def without_labels(name):
    """The program and the annotations to draw: difficulties that come from votes need some."""
    program, annotations = told(name)
    new, shares = annotations.replace(label=None), torch.full((N_TASKS, 2), 0.5)
    if name == "difficulty":
        program = in_pyro(name, votes=shares.numpy())
    elif name == "plain difficulty":
        program = partial(program, votes=shares)
    return program, new


def total(handled, annotations):
    return poutine.trace(handled).get_trace(annotations).log_prob_sum()


@EVERY_PROGRAM
def test_nuts_samples_it_and_its_draws_serve_predictive(name):
    program, annotations = told(name)
    mcmc = MCMC(NUTS(program), num_samples=2, warmup_steps=2, disable_progbar=True)
    mcmc.run(annotations)
    samples = mcmc.get_samples()
    assert samples
    assert all(torch.isfinite(values).all() for values in samples.values())
    program, new = without_labels(name)
    replicated = Predictive(program, samples)(new)["annotation"]
    assert replicated.numel() >= 2 * N_ROWS
    assert set(replicated.unique().tolist()) <= set(range(new.n_categories))


@ADAPTED
def test_hmc_samples_its_marginal(name):
    option = next(option for option in OPTIONS if option.name == name)
    program = marginal_in_pyro(option.story, **option.options)
    mcmc = MCMC(HMC(program, num_steps=2), num_samples=2, warmup_steps=2, disable_progbar=True)
    mcmc.run(option.annotations())
    assert all(torch.isfinite(values).all() for values in mcmc.get_samples().values())


@EVERY_PROGRAM
def test_svi_trains_a_mean_field_guide_with_the_truth_enumerated(name):
    program, annotations = told(name)
    guide = AutoNormal(poutine.block(program, hide=["truth"]))
    svi = SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=NESTING))
    losses = [svi.step(annotations) for _ in range(5)]
    assert np.isfinite(losses).all()
    assert np.ptp(losses) > 0


@EVERY_PROGRAM
def test_predictive_draws_from_the_prior(name):
    program, new = without_labels(name)
    drawn = Predictive(program, num_samples=3)(new)
    assert drawn["truth"].numel() == 3 * N_TASKS
    assert drawn["annotation"].numel() >= 3 * N_ROWS


@ADAPTED
def test_its_densities_under_handlers_are_those_of_the_story(name):
    """Of one labelling; scaled; without the truth's own density; without the annotations."""
    program, annotations = told(name)
    sites = poutine.trace(program).get_trace(annotations)
    sites.compute_log_prob()
    latent = {name: sites.nodes[name]["value"] for name in sites.stochastic_nodes if "_INFER" not in str(name)}
    latent = {name: value for name, value in latent.items() if sites.nodes[name]["type"] == "sample"}
    latent = {n: v for n, v in latent.items() if type(sites.nodes[n]["fn"]).__name__ != "_Subsample"}
    at_these = poutine.condition(program, data=latent)
    whole = sites.log_prob_sum()
    torch.testing.assert_close(total(at_these, annotations), whole, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(total(poutine.scale(at_these, scale=2.0), annotations), 2 * whole, rtol=1e-4, atol=1e-4)
    hidden = total(poutine.block(at_these, hide=["annotation"]), annotations)
    of_annotations = sites.nodes["annotation"]["log_prob_sum"]
    torch.testing.assert_close(hidden, whole - of_annotations, rtol=1e-4, atol=1e-4)
    rest = {name: value for name, value in latent.items() if name != "truth"}
    intervened = poutine.do(poutine.condition(program, data=rest), data={"truth": latent["truth"]})
    there = poutine.trace(intervened).get_trace(annotations)  # its site truth is a fresh draw, which nothing reads
    found = there.log_prob_sum() - there.nodes["truth"]["log_prob_sum"]
    torch.testing.assert_close(found, whole - sites.nodes["truth"]["log_prob_sum"], rtol=1e-4, atol=1e-4)


@EVERY_PROGRAM
def test_a_truth_is_drawn_from_its_posterior(name):
    """Given the annotations and a draw of the parameters, by infer_discrete."""
    program, annotations = told(name)
    drawing = infer_discrete(config_enumerate(program), first_available_dim=-1 - NESTING)
    truth = poutine.trace(drawing).get_trace(annotations).nodes["truth"]["value"]
    assert truth.numel() == N_TASKS
    assert set(truth.unique().tolist()) <= {0, 1}


@EVERY_PROGRAM
def test_its_shapes_are_printed(name):
    program, annotations = told(name)
    sites = poutine.trace(program).get_trace(annotations)
    sites.compute_log_prob()
    printed = sites.format_shapes()
    assert f"truth dist {N_TASKS}" in " ".join(printed.replace("|", "").split())


@EVERY_PROGRAM
def test_its_graph_is_drawn(name):
    pytest.importorskip("graphviz", reason="render_model needs the Python package graphviz")
    program, annotations = told(name)
    source = pyro.render_model(program, model_args=(annotations,)).source
    assert "truth -> annotation" in source


@ADAPTED
def test_parallel_posterior_predictions_have_the_frequencies_of_the_tables(name):
    """Of 2,000 replications at one draw and one truth: shares within five standard errors.

    Pyro's ``Predictive`` wants samples with all dimensions of plates, which it cannot tell from those of an event.
    """
    n_draws, (program, new) = 2000, without_labels(name)
    nodes = poutine.trace(program).get_trace(new).nodes
    sites = {n: s for n, s in nodes.items() if s["type"] == "sample" and not site_is_subsample(s)}
    nesting = max(len(site["fn"].batch_shape) for site in sites.values())
    samples = {}
    for site_name, site in sites.items():
        if site_name != "annotation" and not site["is_observed"]:
            value = site["value"].detach()
            value = value.reshape(*[1] * (nesting - len(site["fn"].batch_shape)), *value.shape)
            samples[site_name] = value[None].expand(n_draws, *value.shape)
    drawn = Predictive(program, samples, parallel=True)(new)["annotation"].reshape(n_draws, N_ROWS)
    one_by_one = sites["annotation"]["fn"].sample((n_draws,)).reshape(n_draws, N_ROWS)
    for kind in range(new.n_categories):
        shares = [(values == kind).double().mean(0) for values in (drawn, one_by_one)]
        pooled = (shares[0] + shares[1]) / 2
        error = (2 * pooled * (1 - pooled) / n_draws).sqrt()
        assert ((shares[0] - shares[1]).abs() <= 5 * error + 1e-6).all()
