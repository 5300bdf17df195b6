"""Normal numbers around zero, such as offsets from where a published training starts."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

PACE = 0.1
"""Size of a step of the numbers in units of their parameters: Adam moves every parameter as far in a step, and a layer
that moves faster than the network below it loses classes."""


def sample_offsets(
    name: str,
    shape: tuple[int, ...],
    deviation: Array | float,
    dims: Sequence[str],
    *,
    n: int | None = None,
    at_random: bool = False,
) -> Array:
    """Sample normal numbers, which start at zero, or at random: of a product at zero no factor has a slope.

    Args:
        shape: of one member's numbers.
        deviation: their standard deviation.
        dims: names of the dimensions of ``shape``.
        n: how many members a plate around it has; None outside of plates.
        at_random: whether they start at standard normal numbers.

    Returns:
        ``shape``, or ``(n, *shape)`` in a plate.
    """
    whole_shape = shape if n is None else (n, *shape)

    def start(key: Array) -> Array:
        return jax.random.normal(key, whole_shape) if at_random else jnp.zeros(whole_shape)

    around = dist.Normal(0.0, deviation).expand(shape).to_event(len(shape))
    return numpyro.sample(name, around, infer={"event_dims": list(dims), "start": start})
