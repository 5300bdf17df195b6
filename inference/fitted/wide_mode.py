r"""Whether EM ended where a learned scale is too large: members who differ more there than they do.

Members whose parameters are a mean, and a scale times standard normal offsets, have a posterior in which the offsets'
squares are 1 in the mean. At the joint mode they are far less where each member has few annotations: a larger scale
makes every offset, and so the price that its prior asks, smaller, and only the scale's own prior bounds it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from ..densities.enumerated import Parameters, is_latent, run_enumerated, site_values
from ..densities.programs import compiled
from .fitted import Fitted

SMALL = 0.15  # mean square of offsets, of 1 that their prior expects


def too_wide(fitted: Fitted) -> list[str]:
    """A warning for each site of the workers' standard normal offsets that are small beside a scale that is learned."""
    if fitted.method != "em" or not _has_scale(fitted):
        return []
    end = {name: jnp.asarray(value)[0, 0] for name, value in fitted.draws.items()} | fitted.fixed
    is_standard = {name: bool(found) for name, found in _standard(fitted, end).items()}
    squares = {name: float(jnp.mean(end[name] ** 2)) for name, found in is_standard.items() if found}
    return [
        f"the mode makes workers differ more than they do: the offsets {name!r} have the mean square {square:.2f} "
        "there, where their prior has 1, and their scale is so much larger. Labels may be worse than by votes, and too "
        "sure; take method='svi' or 'nuts'"
        for name, square in squares.items()
        if "worker" in fitted.dims.get(name, ()) and square < SMALL
    ]


def _has_scale(fitted: Fitted) -> bool:
    """Whether workers have numbers of either sign, and all together positive ones that are no probabilities."""
    values = {name: np.asarray(value) for name, value in fitted.draws.items()}
    own = [name for name, dims in fitted.dims.items() if "worker" in dims and name in values]
    shared = [name for name in values if not {"worker", "task"} & set(fitted.dims.get(name, ()))]
    scales = [name for name in shared if (values[name] > 0).all() and not np.allclose(values[name].sum(-1), 1)]
    return bool(scales) and any((values[name] < 0).any() for name in own)


@compiled(once=True)
def _standard(fitted: Fitted, end: Parameters) -> dict[str, Array]:
    """Of each site whether its prior has the mean 0 and the variance 1."""
    values = handlers.substitute(substitute_fn=site_values(end))
    sites, _ = run_enumerated(fitted.model, fitted.annotations, values, None)
    found: dict[str, Array] = {}
    for name, site in sites.items():
        if is_latent(site) and site["type"] == "sample":
            try:
                prior = site["fn"]
                found[name] = jnp.all(prior.mean == 0) & jnp.all(prior.variance == 1)
            except NotImplementedError:  # of an improper prior
                continue
    return jax.tree.map(jnp.asarray, found)
