"""A guide of independent normals without Pyro's handlers, and draws of any guide with their log-density."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from pyro import poutine
from pyro.infer.autoguide import AutoGuide
from pyro.poutine.util import site_is_subsample
from torch import Tensor, nn
from torch.nn.functional import softplus

from .density import Anatomy, Parameters

SCALE = 0.1  # of each normal at the start, as of Pyro's AutoNormal


class Normals(nn.Module):
    r"""A normal for each number of each parameter, on the reals: Pyro's ``AutoNormal``, whose steps and draws it has.

    .. math:: \theta = T(\mu + \sigma \epsilon), \qquad \epsilon \sim \text{Normal}(0, 1)

    Pyro's runs every site through a stack of handlers, which takes longer than the numbers do.

    Args:
        parts: of the story, with its bijections :math:`T` from the reals.
        values: of the parameters, where the normals start.
    """

    def __init__(self, parts: Anatomy, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.bijections = parts.all_bijections
        reals = {name: bijection.inv(values[name]).detach() for name, bijection in self.bijections.items()}
        whole = float(torch.tensor(SCALE).expm1().log())  # softplus of it is the scale
        self.locs = nn.ParameterList(
            [nn.Parameter(real.clone(memory_format=torch.contiguous_format)) for real in reals.values()]
        )
        self.scales = nn.ParameterList(
            [
                nn.Parameter(torch.full_like(real, whole, memory_format=torch.contiguous_format))
                for real in reals.values()
            ]
        )

    def draw(self) -> tuple[Parameters, Tensor]:
        """Return one draw, and its log-density."""
        values: Parameters = {}
        density: Any = -0.5 * math.log(2 * math.pi) * sum(loc.numel() for loc in self.locs)
        for (name, bijection), loc, unscaled in zip(self.bijections.items(), self.locs, self.scales, strict=True):
            scale, noise = softplus(unscaled), torch.randn_like(loc)
            real = loc + scale * noise
            values[name] = value = bijection(real)
            density = density - scale.log().sum() - 0.5 * (noise**2).sum()
            density = density - bijection.log_abs_det_jacobian(real, value).sum()
        return values, density

    def forward(self, *arguments: object) -> Parameters:
        """Return one draw, whatever the arguments of the story."""
        return self.draw()[0]


def draw(guide: AutoGuide | Normals, arguments: tuple) -> tuple[Parameters, Tensor | float]:
    """Return one draw of a guide by parameter, and its log-density."""
    if isinstance(guide, Normals):
        return guide.draw()
    trace = poutine.trace(guide).get_trace(*arguments)
    sites = {n: s for n, s in trace.nodes.items() if s["type"] == "sample" and not site_is_subsample(s)}
    values: Any = {name: site["value"] for name, site in sites.items()}
    return values, trace.log_prob_sum()
