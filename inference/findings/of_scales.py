r"""Where EM goes wrong with members who differ by a scale that is learned.

A posterior has a mode of members' parameters and of their scale together, which is not where its mass is. Written
around a mean, :math:`a_j \sim \text{Normal}(\mu, \sigma)`, the density grows without end as :math:`\sigma` goes to 0
and all :math:`a_j` to :math:`\mu`: it has no mode, and EM ends nowhere on the way there. Written as :math:`a_j = \mu +
\sigma \epsilon_j` with :math:`\epsilon_j \sim \text{Normal}(0, 1)`, as the package's own stories are, it has one; but
a larger scale makes every offset, and so the price that its prior asks, smaller, so that of members with few
annotations each the mode makes the scale too large, and the offsets' squares far less than the 1 that they have in the
posterior's mean.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import constraints

from ...models.parts.contract import is_promised
from ..densities.enumerated import Parameters, is_latent, run_enumerated, site_values
from ..densities.programs import compiled
from ..densities.sites import starting_point
from ..fitted.fitted import Fitted
from .register import Said, check

NARROW = 0.02  # of the standard deviation that a prior had where EM started
SMALL = 0.15  # mean square of offsets: seen from simulated crowds, and passed by rte, dog and bluebird, labelled well


class Prior(NamedTuple):
    """Spread of a site's prior at some parameters, and whether the prior is standard."""

    deviation: Array  # its standard deviation, the mean over members
    is_standard: Array  # whether each member's has the mean 0 and the variance 1
    is_positive: Array  # whether it is of positive numbers alone, as a scale's is


@check("no_maximum", "draws", needs={"story", "memory"})
def no_maximum(of: Fitted) -> Iterator[Said]:
    """Sites whose prior EM made next to nothing; a story that promises a maximum has none."""
    shared = any("worker" not in dims and "task" not in dims for dims in of.dims.values())
    if of.method != "em" or is_promised(of.model.story) or not shared:
        return
    before, after = (
        {name: float(prior.deviation) for name, prior in _priors(of, parameters).items()}
        for parameters in (None, of.first_draw | of.fixed)
    )
    for name in before:
        if after[name] < NARROW * before[name]:
            yield Said(
                f"the density of {of.story} has no maximum: the prior of {name!r} became ever narrower, its standard "
                f"deviation went from {before[name]:.2g} to {after[name]:.2g}, and its members became alike",
                f"Write {name} = mean + scale * offset, with standard normal offsets as the site (or NumPyro's "
                "LocScaleReparam(0)), which has a maximum; or fix the scale",
                {"site": name, "before": before[name], "after": after[name]},
            )


@check("wide_scale", "draws", needs={"story", "memory"})
def wide_scale(of: Fitted) -> Iterator[Said]:
    """Sites of the workers' standard normal offsets that EM made small beside a scale that is learned."""
    if of.method != "em" or not _has_scale(of):
        return
    end = of.first_draw | of.fixed
    priors = _priors(of, end)
    if not any(prior.is_positive for prior in priors.values()):
        return
    standard = [name for name, prior in priors.items() if prior.is_standard]
    squares = {name: float(jnp.mean(end[name] ** 2)) for name in standard if "worker" in of.dims.get(name, ())}
    for name, square in squares.items():
        if square < SMALL:
            yield Said(
                "EM makes workers differ more than the annotations say: the scale of their differences is about "
                f"{square**-0.5:.0f} times too large (the mean square of the offsets {name!r} is {square:.2f}, and not "
                "1). Labels may be worse than by votes, and too sure",
                "take method='svi' or 'nuts'",
                {"site": name, "square": square},
            )


def _has_scale(fitted: Fitted) -> bool:
    """Return whether workers have parameters of either sign, beside shared positive parameters such as a scale."""
    values = {name: np.asarray(value) for name, value in fitted.draws.items()}
    own = [name for name, dims in fitted.dims.items() if "worker" in dims and name in values]
    shared = [name for name in values if not {"worker", "task"} & set(fitted.dims.get(name, ()))]
    scales = [name for name in shared if (values[name] > 0).all() and not np.allclose(values[name].sum(-1), 1)]
    return bool(scales) and any((values[name] < 0).any() for name in own)


@compiled(once=True)
def _priors(fitted: Fitted, parameters: Parameters | None) -> dict[str, Prior]:
    """Of each site that has one, with its moments; without ``parameters`` where EM starts."""
    model, annotations = fitted.model, fitted.annotations
    at = starting_point(model, annotations, jax.random.key(0)) if parameters is None else parameters
    sites, _ = run_enumerated(model, annotations, site_values(at))
    found: dict[str, Prior] = {}
    for name, site in sites.items():
        if is_latent(site) and site["type"] == "sample":
            try:
                mean, variance = jnp.asarray(site["fn"].mean), jnp.asarray(site["fn"].variance)
            except NotImplementedError:  # of an improper prior
                continue
            is_standard = jnp.all(mean == 0) & jnp.all(variance == 1)
            support = site["fn"].support
            of_one = getattr(support, "base_constraint", support)
            is_positive = jnp.asarray(of_one is constraints.positive)
            found[name] = Prior(jnp.sqrt(jnp.mean(variance)), is_standard, is_positive)
    return found
