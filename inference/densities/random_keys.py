"""Random keys of seeds, without a program of their own for each operation."""

from typing import Any

import jax
import numpy as np
from jax import Array

from ...models.parts.kernels import FAST
from .programs import compiled

DEFAULT = "threefry2x32"  # JAX's generator, unless a user has chosen another
REPEATED = {DEFAULT: 1, FAST: 2}  # how often a key of a generator has the seed in it


def key_of(seed: int, impl: str | None = None) -> Array:
    """Return ``jax.random.key(seed, impl=impl)``: of most seeds it is the seed itself, which needs no program.

    Args:
        seed: the same gives the same key.
        impl: the generator; None for JAX's default.
    """
    generator = jax.config.values["jax_default_prng_impl"] if impl is None else impl
    if generator not in REPEATED or not 0 <= seed < 2**31:
        return jax.random.key(seed, impl=impl)
    data: Any = np.array([0, seed] * REPEATED[generator], np.uint32)
    return jax.random.wrap_key_data(data, impl=generator)


def keys_of(seed: int, shape: int | tuple[int, ...], impl: str | None = None) -> Array:
    """Return ``jax.random.split(jax.random.key(seed, impl=impl), shape)``."""
    found: Array = _split(key_of(seed, impl), shape)
    return found


@compiled(once=True, static=("shape",))
def _split(key: Array, shape: int | tuple[int, ...]) -> Array:
    return jax.random.split(key, shape)
