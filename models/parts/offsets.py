"""Unconstrained numbers on top of a network, as offsets from where the published training starts."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

PACE = 0.1
"""Size of a step of the numbers in units of their parameters: Adam moves every parameter as far in a step, and a layer
that moves faster than the network below it loses classes."""


def sample_offsets(
    name: str, shape: tuple[int, ...], deviation: Array | float, dims: Sequence[str], *, n: int | None = None
) -> Array:
    """Sample normal offsets, which start at zero.

    Args:
        name: of the site.
        shape: of one member's offsets.
        deviation: their standard deviation.
        dims: names of the dimensions of ``shape``.
        n: how many members a plate around it has; None outside of plates.

    Returns:
        ``shape``, or ``(n, *shape)`` in a plate.
    """
    around = dist.Normal(jnp.zeros(shape), deviation).to_event(len(shape))

    def start(key: Array) -> Array:
        return jnp.zeros(shape if n is None else (n, *shape))

    return numpyro.sample(name, around, infer={"event_dims": list(dims), "start": start})
