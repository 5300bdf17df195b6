"""Gathers and sums by position are those of indexing; the guide without handlers is Pyro's."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro import poutine
from pyro.infer.autoguide import AutoNormal, init_to_value

from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines.pyro.density import anatomy, density
from crowdppl.inference.engines.pyro.normals import Normals, draw
from crowdppl.models.pyro import STORIES, tensors
from crowdppl.models.pyro.ragged import gather, gathered_by_task, sum_by

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("counted", [False, True])
def test_sums_and_gathers_are_those_of_indexing_and_each_others_gradients(crowd, counted):
    torch.manual_seed(0)
    counts = np.random.default_rng(0).integers(0, 4, crowd.n_rows).astype(float)
    data = tensors(crowd.replace(count=counts if counted else None))
    position = torch.randint(0, 6, data.task.shape)  # of seven, one of them without a row
    values = torch.randn(7, 3, requires_grad=True)
    weight = data.count[:, None] if counted else 1.0
    expected = torch.zeros(crowd.n_tasks, 3).index_add(0, data.task, values[position] * weight)
    torch.testing.assert_close(gathered_by_task(values, position, data), expected)
    torch.testing.assert_close(gather(values, position), values[position])
    torch.testing.assert_close(
        sum_by(position, values[position], 7), torch.zeros(7, 3).index_add(0, position, values[position])
    )
    assert torch.autograd.gradcheck(lambda v: gathered_by_task(v, position, data), (values,))
    assert torch.autograd.gradgradcheck(lambda v: gather(v, position).exp().sum(0), (values,))


@pytest.mark.parametrize("story", ["dawid_skene", "annotator_groups", "two_coin"])
def test_the_guide_of_normals_has_the_draws_the_density_and_the_gradients_of_pyros_autonormal(crowd, story):
    data, model = tensors(crowd.replace(features=None)), Model(STORIES[story])
    hidden = poutine.block(model, hide=["truth"])
    pyro.clear_param_store()  # where a test before left a guide with sites of the same names
    prior = poutine.trace(hidden).get_trace(data)
    values = {n: prior.nodes[n]["value"] for n in prior.stochastic_nodes if prior.nodes[n]["value"].is_floating_point()}
    ours = Normals(anatomy(model, values, data), values)
    theirs = AutoNormal(hidden, init_loc_fn=init_to_value(values=values))
    with torch.no_grad():
        theirs(data)
    losses = []
    for guide in (ours, theirs):
        torch.manual_seed(1)
        drawn, log_density = draw(guide, (data,))
        losses.append(log_density - density(model, drawn, data).log_posterior)
        losses[-1].backward()
    torch.testing.assert_close(*losses)
    slopes = dict(theirs.named_parameters())
    for name, loc, scale in zip(ours.bijections, ours.locs, ours.scales, strict=True):
        torch.testing.assert_close(loc.grad, slopes[f"locs.{name}_unconstrained"].grad)
        torch.testing.assert_close(scale.grad, slopes[f"scales.{name}_unconstrained"].grad)
