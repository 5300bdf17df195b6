"""What every engine returns, whichever it is."""

from typing import NamedTuple

import numpy as np

from .model import Parameters


class Outcome(NamedTuple):
    """Draws of the parameters, and how they came about. EM's solution is one draw of one chain."""

    draws: dict[str, np.ndarray]  # site -> (chain, draw, ...)
    fixed: Parameters  # parameters without a posterior: a classifier's weights under EM and SVI
    history: np.ndarray  # (iterations,) EM: log-posterior; SVI: negative ELBO; NUTS: empty
    stats: dict[str, np.ndarray]  # NUTS: (chain, draw) sampler statistics, by ArviZ's names
    warnings: tuple[str, ...]  # what a user should act on


class ConvergenceWarning(UserWarning):
    """An engine stopped before its answer can be trusted; the message says what to do."""
