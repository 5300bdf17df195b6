r"""Whether EM went to where a story of a user's own has a density without end.

Where members have a common prior whose scale is a parameter, :math:`a_j \sim \text{Normal}(\mu, \sigma)`, the joint
density grows without end as :math:`\sigma` goes to 0 and all :math:`a_j` to :math:`\mu`; it has no mode, and EM ends
nowhere on the way there. Not centred, :math:`a_j = \mu + \sigma \epsilon_j` with :math:`\epsilon_j \sim
\text{Normal}(0, 1)`, it has one. The package's own stories are written so.
"""

import jax
import jax.numpy as jnp
from jax import Array
from numpyro import handlers

from ...models import KNOWN_STORIES
from ..densities.enumerated import Parameters, is_latent, run_enumerated, site_values
from ..densities.programs import compiled
from ..densities.sites import starting_point
from .fitted import Fitted

NARROW = 0.02  # of the standard deviation that a prior had where EM started


def endless(fitted: Fitted) -> list[str]:
    """A warning for each site whose prior EM has narrowed to next to nothing; none of the package's own stories."""
    shared = any("worker" not in dims and "task" not in dims for dims in fitted.dims.values())
    if fitted.method != "em" or fitted.model.story in KNOWN_STORIES.values() or not shared:
        return []
    before, after = (jax.tree.map(float, deviations) for deviations in _deviations(fitted))
    return [
        f"the density of {fitted.story} has no maximum: the prior of {name!r} became ever narrower, its standard "
        f"deviation went from {before[name]:.2g} to {after[name]:.2g}, and its members became alike. Write "
        f"{name} = mean + scale * offset, with standard normal offsets as the site (or NumPyro's LocScaleReparam(0)), "
        "which has a maximum; or fix the scale"
        for name in before
        if after[name] < NARROW * before[name]
    ]


@compiled(once=True)
def _deviations(fitted: Fitted) -> tuple[Parameters, Parameters]:
    """The standard deviations of the sites' priors, means over members, at EM's start and at the fit's first draw."""
    start = starting_point(fitted.model, fitted.annotations, jax.random.key(0))
    end = {name: jnp.asarray(value)[0, 0] for name, value in fitted.draws.items()} | fitted.fixed
    return _of_priors(fitted, start), _of_priors(fitted, end)


def _of_priors(fitted: Fitted, parameters: Parameters) -> Parameters:
    values = handlers.substitute(substitute_fn=site_values(parameters))
    sites, _ = run_enumerated(fitted.model, fitted.annotations, values, None)
    found: dict[str, Array] = {}
    for name, site in sites.items():
        if is_latent(site) and site["type"] == "sample":
            try:
                found[name] = jnp.sqrt(jnp.mean(site["fn"].variance))
            except NotImplementedError:  # of an improper prior
                continue
    return found
