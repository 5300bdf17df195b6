"""A guide of independent normals without Pyro's handlers."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from pyro.distributions.transforms import biject_to
from torch import Tensor, nn
from torch.nn.functional import softplus

SCALE = 0.1  # of each normal at the start, as of Pyro's AutoNormal


class Normals(nn.Module):
    r"""A normal for each number of each parameter, on the reals: Pyro's ``AutoNormal``, whose steps and draws it has.

    .. math:: \theta = T(\mu + \sigma \epsilon), \qquad \epsilon \sim \text{Normal}(0, 1)

    Pyro's runs every site through a stack of handlers, which takes longer than the numbers do.

    Args:
        supports: of the parameters by site, which have the bijections :math:`T` from the reals.
        values: of the parameters, where the normals start.
    """

    def __init__(self, supports: Mapping[str, Any], values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.bijections = {name: biject_to(support) for name, support in supports.items()}
        reals = [bijection.inv(values[name]).detach().contiguous() for name, bijection in self.bijections.items()]
        unscaled = math.log(math.expm1(SCALE))  # softplus of it is the scale
        self.locs = nn.ParameterList([nn.Parameter(real.clone()) for real in reals])
        self.scales = nn.ParameterList([nn.Parameter(torch.full_like(real, unscaled)) for real in reals])

    def draw(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return one draw by site, and its log-density."""
        values: dict[str, Tensor] = {}
        density: Any = -0.5 * math.log(2 * math.pi) * sum(loc.numel() for loc in self.locs)
        for (name, bijection), loc, unscaled in zip(self.bijections.items(), self.locs, self.scales, strict=True):
            scale, noise = softplus(unscaled), torch.randn_like(loc)
            real = loc + scale * noise
            values[name] = value = bijection(real)
            density = density - scale.log().sum() - 0.5 * (noise**2).sum()
            density = density - bijection.log_abs_det_jacobian(real, value).sum()
        return values, density

    def forward(self, *arguments: object) -> dict[str, Tensor]:
        """Return one draw, whatever the arguments of the story."""
        return self.draw()[0]
