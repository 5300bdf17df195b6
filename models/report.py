"""Quantities that a story says of its parameters, beside them: what a reader asks for."""

from contextlib import ExitStack

import numpyro
from jax import Array


def report(name: str, value: Array, *dims: str) -> None:
    """Let ``fit.reported`` have ``value`` under ``name``; its dimensions are named as plates are.

    Engines never compute it. Names that crowdppl knows get their ids: ``task``, ``worker``, ``class``, ``response``.
    """
    with ExitStack() as plates:
        for i, dim in enumerate(dims):
            plates.enter_context(numpyro.plate(dim, value.shape[i], dim=i - len(dims)))
        numpyro.deterministic(name, value)
