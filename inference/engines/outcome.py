"""The results of every engine, whichever it is."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..densities.enumerated import Parameters


class Modes(NamedTuple):
    """The modes in which several starts of EM, or several chains, ended: M of them, that of the largest mass first."""

    log_posterior: np.ndarray  # (M,) with probability tables in log-odds, as EM climbs it
    log_mass: np.ndarray  # (M,) of the posterior around the mode, by Laplace's approximation
    labels: np.ndarray  # (M, N) positions of the most probable classes
    of_end: np.ndarray  # (ends,) the mode of each start or chain
    kept: int = -1  # of EM: the start that the fit is; -1 of chains, which are all kept


class Outcome(NamedTuple):
    """Draws of the parameters, and how they came about. EM's solution is one draw of one chain."""

    draws: dict[str, np.ndarray]  # site -> (chain, draw, ...)
    fixed: dict[str, Any]  # parameters without a posterior: a classifier's weights that have no prior
    history: np.ndarray  # (iterations,) EM: log-posterior; SVI: negative ELBO; NUTS: empty
    stats: dict[str, np.ndarray]  # NUTS: (chain, draw) sampler statistics, by ArviZ's names
    facts: Mapping[str, Any] = {}  # of the engine's course, such as the last change, of which findings are made
    is_point: bool = False  # whether the only draw is a point estimate, which says nothing of uncertainty
    ends: tuple[dict[str, np.ndarray], ...] = ()  # by start of EM, where there are several, all parameters by site
    modes: Modes | None = None  # what is made of these, or of several chains


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


def check_finite(history: Sequence[float]) -> None:
    """Refuse a log-posterior that is not finite.

    Raises:
        FloatingPointError: with the first iteration that has one.
    """
    if history and not np.isfinite(history[-1]):
        first = int(np.flatnonzero(~np.isfinite(history))[0])
        raise FloatingPointError(f"the log-posterior is {history[first]} at iteration {first + 1}")


class Solution(NamedTuple):
    """The end of one start of EM."""

    parameters: Parameters
    history: list[float]  # log-posterior by iteration or epoch; the last is of these parameters
    facts: Mapping[str, Any] = {}  # as of an outcome
    ends: tuple[Parameters, ...] = ()  # of all starts, where there are several
