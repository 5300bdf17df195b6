"""What every engine returns, whichever it is."""

from typing import Any, NamedTuple

import numpy as np

from ..densities.enumerated import Parameters


class Outcome(NamedTuple):
    """Draws of the parameters, and how they came about. EM's solution is one draw of one chain."""

    draws: dict[str, np.ndarray]  # site -> (chain, draw, ...)
    fixed: dict[str, Any]  # parameters without a posterior: a classifier's weights that have no prior
    history: np.ndarray  # (iterations,) EM: log-posterior; SVI: negative ELBO; NUTS: empty
    stats: dict[str, np.ndarray]  # NUTS: (chain, draw) sampler statistics, by ArviZ's names
    warnings: tuple[str, ...]  # what a user should act on
    is_point: bool = False  # whether the only draw is a point estimate, which says nothing of uncertainty


def as_point(draws: dict[str, np.ndarray], *, is_point: bool = False) -> tuple[dict[str, np.ndarray], bool]:
    """Return the draws, one of them where they are a point, and whether they are a point.

    Args:
        draws: of each site, ``(chain, draw, ...)``.
        is_point: whether the engine knows that they are; else they are where there are several and all are equal.
    """
    several = any(value.shape[0] * value.shape[1] > 1 for value in draws.values())
    if is_point or (several and all((value == value[:1, :1]).all() for value in draws.values())):
        return {name: value[:1, :1] for name, value in draws.items()}, True
    return draws, False


class Solution(NamedTuple):
    """Where one start of EM ended."""

    parameters: Parameters
    history: list[float]  # log-posterior by iteration or epoch; the last is of these parameters
    warnings: tuple[str, ...]


class ConvergenceWarning(UserWarning):
    """An engine stopped before its result can be trusted; the message says what to do."""
