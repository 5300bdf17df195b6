"""Draws without an engine: a fit at its mode, with draws scattered around it."""

import dataclasses

import numpy as np

from crowdppl import Fit


def with_draws(fit: Fit, n: int = 3) -> Fit:
    """The same fit, all of whose parameters are probabilities, with ``n`` draws around its mode."""
    rng = np.random.default_rng(0)

    def around(mode):
        moved = mode ** rng.uniform(0.5, 1.5, (1, n, *mode.shape[2:]))
        return (moved / moved.sum(-1, keepdims=True)).astype(np.float32)

    draws = {name: around(value) for name, value in fit.outcome.draws.items()}
    return dataclasses.replace(fit, method="svi", outcome=fit.outcome._replace(draws=draws))
