"""How a whole is shared out between several kinds."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from .concentration import positive


def sample_shares(name: str, n: int, concentration: float, dim: str, *, plate: tuple[str, int] | None = None) -> Array:
    r"""Sample the site ``name``, shares :math:`\sim \text{Dirichlet}(\eta, \dots, \eta)` of ``n`` kinds.

    One kind has all of it: then there is no site, since engines cannot move a parameter that has no freedom.

    Args:
        name: of the site.
        n: number of kinds.
        concentration: :math:`\eta`.
        dim: what the kinds are, such as ``"group"``.
        plate: name and size of a plate with shares of its own for each member.

    Returns:
        ``(n,)``, or ``(size, n)`` in a plate.

    Raises:
        StoryError: the concentration is not positive.
    """
    prior = dist.Dirichlet(jnp.full(n, positive("share", concentration)))
    if n == 1:
        return jnp.ones((1,) if plate is None else (plate[1], 1))
    if plate is None:
        return numpyro.sample(name, prior, infer={"event_dims": [dim]})
    with numpyro.plate(*plate, dim=-1):
        return numpyro.sample(name, prior, infer={"event_dims": [dim]})
