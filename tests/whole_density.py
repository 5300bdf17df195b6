"""A story's density compiled as a whole: run by itself, every operation in it would be a program to be compiled."""

import jax

from crowdppl.inference.densities.enumerated import density as of_single_operations

density = jax.jit(of_single_operations, static_argnums=0, static_argnames="train")
