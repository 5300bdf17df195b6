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
    is_point: bool = False  # whether the draws are one point, so that they say nothing of uncertainty


class Solution(NamedTuple):
    """Where one start of EM ended."""

    parameters: Parameters
    history: list[float]  # log-posterior by iteration or epoch; the last is of these parameters
    warnings: tuple[str, ...]


class ConvergenceWarning(UserWarning):
    """An engine stopped before its annotation can be trusted; the message says what to do."""
