"""The gradient of a Pyro story's log-posterior, and the exact M-steps of the probability tables that follow."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ....data import Annotations
from ....models.parts.emissions import SMALLEST
from ...densities.model import Model
from .density import Anatomy, Density, Parameters, density


class Gradient(NamedTuple):
    """The log-posterior's gradient at some parameters."""

    counts: Parameters  # of each probability table, those of the prior included
    slope: Parameters  # of the other parameters, unconstrained
    at: Density


def gradient(model: Model, annotations: Annotations, parts: Anatomy, parameters: Mapping[str, Tensor]) -> Gradient:
    """Return the counts of the probability tables and the slopes of the others: the E-step of one EM iteration."""
    tables = {name: parameters[name].detach().requires_grad_() for name in parts.tables}
    reals = {name: value.detach().requires_grad_() for name, value in parts.to_reals(parameters).items()}
    at = density(model, {**tables, **parts.from_reals(reals)}, annotations)
    slopes = slopes_of(at.log_posterior_in_log_odds, tables | reals)
    counts = {name: table.detach() * slopes[name] for name, table in tables.items()}
    return Gradient(counts, {name: slopes[name] for name in reals}, at)


def slopes_of(value: Tensor, parameters: Parameters) -> Parameters:
    """Return the gradient of ``value`` with respect to each parameter, zero where it does not depend on it."""
    if not parameters:
        return {}
    slopes = torch.autograd.grad(value, list(parameters.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(parameters, slopes, strict=True))


def tables_mode(counts: Parameters, parameters: Mapping[str, Tensor]) -> Parameters:
    r"""Return the mode of each row, :math:`\propto \max(n, 0)`; a row without any counts stays as it is."""
    modes = {}
    for name, count in counts.items():
        count = count.clamp_min(0.0)
        total = count.sum(-1, keepdim=True)
        mode = torch.where(total > SMALLEST, count / total.clamp_min(SMALLEST), parameters[name])
        modes[name] = mode.clamp_min(2 * SMALLEST)
    return modes
