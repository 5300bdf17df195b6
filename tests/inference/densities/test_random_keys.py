"""Keys made without a program are JAX's own."""

import jax
import numpy as np
import pytest

from crowdppl.inference.densities.programs import key_of, keys_of


@pytest.mark.parametrize("impl", [None, "threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("seed", [0, 1, 20_260, 2**31 - 1, 2**31, -1])
def test_keys_of_seeds_are_those_of_jax(seed, impl):
    theirs = jax.random.key(seed, impl=impl)
    for ours, expected in (
        (key_of(seed, impl), theirs),
        (keys_of(seed, (2, 3), impl), jax.random.split(theirs, (2, 3))),
    ):
        assert ours.dtype == expected.dtype
        np.testing.assert_array_equal(jax.random.key_data(ours), jax.random.key_data(expected))


def test_a_generator_that_a_user_chose_is_kept():
    with jax.default_prng_impl("rbg"):
        assert key_of(3).dtype == jax.random.key(3).dtype


def test_a_step_has_the_key_that_a_split_among_all_steps_has():
    """So that draws are those of keys split beforehand."""
    keys = jax.random.split(key_of(5), 7)
    for number in (0, 3, 6):
        folded = jax.random.fold_in(key_of(5), number)
        np.testing.assert_array_equal(jax.random.key_data(folded), jax.random.key_data(keys[number]))
