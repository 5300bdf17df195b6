"""Random keys of seeds, without a program of their own."""

from typing import Any

import jax
import numpy as np
from jax import Array

DEFAULT = "threefry2x32"  # JAX's generator, unless a user has chosen another


def key_of(seed: int) -> Array:
    """Return ``jax.random.key(seed)``: of JAX's default generator it is the seed itself, which needs no program."""
    if jax.config.values["jax_default_prng_impl"] != DEFAULT or not 0 <= seed < 2**31:
        return jax.random.key(seed)
    data: Any = np.array([0, seed], np.uint32)
    return jax.random.wrap_key_data(data, impl=DEFAULT)
