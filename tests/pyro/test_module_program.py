"""A torch module as truth prior of a Pyro program in one line, with weights to train or weights that have a prior."""

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO
from pyro.infer.autoguide import AutoNormal, init_to_median, init_to_value
from torch import nn
from torch_crowd import network

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.programs import compiled
from crowdppl.inference.torch import in_pyro, marginal_in_pyro
from crowdppl.models import find_story

PRIOR = 1.5
OF_FLAX = {
    "0.weight": "classifier.layers.0.kernel",
    "0.bias": "classifier.layers.0.bias",
    "2.weight": "classifier.out.kernel",
    "2.bias": "classifier.out.bias",
}


@pytest.fixture(autouse=True)
def _fresh():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()


@compiled
def log_posterior(model, data, values):
    return density(model, values, data).log_posterior


def no_guide(*arguments):
    """Of a program whose parameters all have values."""


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("elbo", [TraceEnum_ELBO(max_plate_nesting=2), Trace_ELBO()])
def test_weights_with_a_prior_have_the_density_of_the_same_network_in_flax(crowd, elbo):
    """Priors of weights and all."""
    rng, data = np.random.default_rng(0), crowd.replace(gold=None)
    classifier = cp.Classifier("mlp", hidden=(5,), dropout=0.0, prior=PRIOR)
    model = Model(find_story("two_coin"), {"truth_prior": classifier})
    module = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    of_story = {name: rng.dirichlet([3.0, 1.0], 7) for name in ("sensitivity", "specificity")}
    weights = {name: rng.normal(size=value.shape) for name, value in module.named_parameters()}
    there = of_story | {OF_FLAX[name]: value.T for name, value in weights.items()}
    expected = float(log_posterior(model, jax.tree.map(np.asarray, data), there))
    here = of_story | {f"classifier.{name}": value for name, value in weights.items()}
    make = in_pyro if isinstance(elbo, TraceEnum_ELBO) else marginal_in_pyro
    program = make("two_coin", classifier=module, weight_prior=PRIOR)
    at = poutine.condition(program, data={name: torch.tensor(value) for name, value in here.items()})
    assert -elbo.loss(at, no_guide, data) == pytest.approx(expected, rel=1e-5)


def test_nuts_and_a_guide_give_a_torch_modules_weights_a_posterior_that_predicts(crowd):
    module = nn.Linear(2, 2)
    data = crowd.replace(gold=None)
    marginal = marginal_in_pyro("two_coin", classifier=module, weight_prior=1.0)
    able = torch.tensor([0.8, 0.2]).expand(7, 2)  # where nothing says so, the classes exchanged are as good a start
    start = init_to_value(values={"sensitivity": able.flip(-1), "specificity": able}, fallback=init_to_median)
    mcmc = MCMC(
        NUTS(marginal, max_tree_depth=5, init_strategy=start), num_samples=15, warmup_steps=15, disable_progbar=True
    )
    mcmc.run(data)
    program = in_pyro("two_coin", classifier=module, weight_prior=1.0)
    guide = AutoNormal(poutine.block(program, hide=["truth"]), init_loc_fn=start)
    svi = SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=2))
    losses = [svi.step(data) for _ in range(150)]
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    by_guide = Predictive(program, guide=guide, num_samples=15)(data)
    x = torch.as_tensor(np.array(crowd.features))
    for draws in (mcmc.get_samples(), by_guide):
        weight, bias = (draws[f"classifier.{name}"].detach().reshape(15, 2, -1) for name in ("weight", "bias"))
        assert weight.std(0).min() > 0.05
        logits = x @ weight.mT + bias.mT
        assert (logits.softmax(-1).mean(0).argmax(-1).numpy() == np.asarray(crowd.gold)).mean() >= 0.9


def test_without_a_prior_the_module_is_trained_where_it_is(crowd):
    module = network()
    before = {name: value.clone() for name, value in module.named_parameters()}
    program = in_pyro("two_coin", classifier=module)
    guide = AutoNormal(poutine.block(program, hide=["truth"]))
    svi = SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=2))
    for _ in range(60):
        svi.step(crowd)
    assert all(not torch.equal(value, before[name]) for name, value in module.named_parameters())
    found = module(torch.as_tensor(np.array(crowd.features))).argmax(-1).numpy()
    assert (found == np.asarray(crowd.gold)).mean() >= 0.9


def test_frozen_weights_are_no_sites(crowd):
    module = network()
    module[0].requires_grad_(False)
    program = marginal_in_pyro("two_coin", classifier=module, weight_prior=1.0)
    nodes = poutine.trace(program).get_trace(crowd).nodes
    assert {name for name in nodes if name.startswith("classifier.")} == {"classifier.3.weight", "classifier.3.bias"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifier": nn.Linear(3, 2)}, r"does not take the tasks' inputs, of shape \(16, 2\)"),
        ({"classifier": nn.Linear(2, 3)}, r"gives \(16, 3\) for 16 tasks of 2 classes; .*\(16, 2\) are needed"),
        ({"classifier": "mlp"}, r"takes a torch\.nn\.Module from features to logits"),
        ({"weight_prior": 1.0}, r"weight_prior=1\.0: .* classifier=module is needed"),
        ({"classifier": nn.Linear(2, 2), "weight_prior": 0.0}, r"weight_prior=0\.0: .*above 0"),
        ({"classifier": nn.Linear(2, 2), "weight_prior": "wide"}, "weight_prior='wide': .*above 0"),
        ({"classifier": nn.Linear(2, 2), "truth_prior": cp.Prevalence(2.0)}, "both are a prior of the truth"),
    ],
)
def test_what_is_no_prior_of_the_truth_says_what_to_write(crowd, options, message):
    with pytest.raises(cp.StoryError, match=message):
        in_pyro("two_coin", **options)(crowd)


def test_weights_that_are_drawn_several_times_at_once_are_refused(crowd):
    program = in_pyro("two_coin", classifier=nn.Linear(2, 2), weight_prior=1.0)
    guide = AutoNormal(poutine.block(program, hide=["truth"]))
    elbo = TraceEnum_ELBO(max_plate_nesting=2, num_particles=2, vectorize_particles=True)
    with pytest.raises(cp.StoryError, match="one after the other"):
        SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), elbo).step(crowd)


def test_features_are_needed_and_log_probabilities_are_not_given_twice(crowd):
    program = in_pyro("two_coin", classifier=nn.Linear(2, 2))
    with pytest.raises(cp.StoryError, match="the classifier needs features"):
        program(crowd.replace(features=None))
    with pytest.raises(cp.StoryError, match="others are given to it too; leave one out"):
        program(crowd, torch.zeros(40, 2))
