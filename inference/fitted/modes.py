r"""The modes of a posterior in which several starts of EM, or several chains, ended, each with its mass.

Two modes are different readings of a crowd where they give tasks different labels. The mass of a mode is that of the
posterior around it by Laplace's approximation in the sampler's coordinates :math:`x` (:mod:`.coordinates`), in which it
is nearly normal: with the log-density :math:`f`, its gradient :math:`g` and the information :math:`H` at :math:`x = 0`,

.. math:: \log m = f + \tfrac{1}{2} g^\top H^{-1} g + \tfrac{D}{2} \log 2 \pi - \tfrac{1}{2} \log |H|

(Tierney & Kadane 1986). Of more than :data:`LARGEST` parameters :math:`H = I`: what the coordinates are made for is the
information of rows whose labels are known. A network's weights that have no prior are held where they are. The mass of
a mode that a story has several times over, with its groups in other orders, is counted once for each reading.

Where a point is no peak, the density there is no measure of mass, and the mass is unknown, NaN: in some direction the
log-density does not bend down, by less than :data:`FLAT`, or the maximum would be more than :data:`FAR` standard
deviations away. So it is on a ridge, or where a spread vanishes, as EM ends in ``hierarchical_dawid_skene``, or where
two groups of workers have become one.
"""

from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data.ids import class_values
from ..densities.enumerated import density
from ..densities.programs import compiled
from ..engines.coordinates import coordinates_near, origin, place
from ..engines.outcome import Modes
from .alignment import kept_end
from .fitted import Fitted, label_posteriors

LARGEST = 1000  # parameters of which all second derivatives are taken
FLAT = 1e-3  # of the information that the coordinates are made for, which is 1
FAR = 3.0  # standard deviations from a point to the maximum of its parabola
OF_POINTS, OF_CHAINS = 0.1, 0.5
"""By how much a label's probabilities differ at the least between two modes: of chains there is noise."""


class Peak(NamedTuple):
    """A posterior around a point."""

    log_posterior: float  # with probability tables in log-odds
    log_mass: float  # by Laplace's approximation; NaN where the point is no peak


def modes_of(fitted: Fitted, posteriors: np.ndarray) -> Modes | None:
    """Return the modes of a fit of several starts or chains, None of one.

    The mode of the largest mass comes first; where one's mass is unknown, that of the greatest log-posterior.

    Args:
        fitted: with its chains, or the ends of EM's starts.
        posteriors: each chain's mean label probabilities, ``(chain, N, K)``.
    """
    ends = _ends(fitted)
    if len(ends) < 2:
        return None
    kept, least = -1, OF_CHAINS
    if fitted.outcome.ends:
        posteriors = np.concatenate([label_posteriors(end) for end in ends])
        kept, least = kept_end(fitted), OF_POINTS
    of_end = _grouped(posteriors, least, kept)
    n_modes = max(of_end) + 1
    means = np.stack([posteriors[of_end == mode].mean(0) for mode in range(n_modes)])
    if n_modes == 1:
        unknown = np.full(1, np.nan)
        return Modes(unknown, unknown, means.argmax(-1), of_end, kept)
    first = [int(np.flatnonzero(of_end == mode)[0]) for mode in range(n_modes)]
    log_posterior, log_mass = masses([ends[i if i != first[0] or kept < 0 else kept] for i in first])
    order = np.argsort(-(log_mass if np.isfinite(log_mass).all() else log_posterior), kind="stable")
    return Modes(log_posterior[order], log_mass[order], means.argmax(-1)[order], np.argsort(order)[of_end], kept)


def _ends(fitted: Fitted) -> list[Fitted]:
    """The fit at each end of several starts of EM, or at the mean of each chain's draws."""
    found = fitted.outcome.ends
    if not found:
        means = {name: value.mean(1, keepdims=True) for name, value in fitted.draws.items()}
        chains = range(fitted.shape[0])
        return [fitted.with_draws({name: value[c : c + 1] for name, value in means.items()}) for c in chains]
    fits = []
    for end in found:
        draws = {name: end[name][None, None] for name in fitted.draws}
        fixed = {name: end.get(name, value) for name, value in fitted.fixed.items()}
        fits.append(fitted.replace(outcome=fitted.outcome._replace(draws=draws, fixed=fixed), stored_posterior=None))
    return fits


def _grouped(posteriors: np.ndarray, least: float, kept: int) -> np.ndarray:
    """Number the modes ``(ends,)``: two ends are in one where no task has another label, by at least so much."""
    of_end = np.full(len(posteriors), -1)
    seen: list[int] = []
    for end in sorted(range(len(posteriors)), key=lambda i: i != kept):
        for mode, first in enumerate(seen):
            if not differ(posteriors[end], posteriors[first], least).any():
                of_end[end] = mode
                break
        else:
            of_end[end] = len(seen)
            seen.append(end)
    return of_end


def differ(one: np.ndarray, other: np.ndarray, least: float) -> np.ndarray:
    """A mask ``(N,)`` of tasks with another label whose probabilities ``(N, K)`` are ``least`` or more apart."""
    return (one.argmax(-1) != other.argmax(-1)) & (np.abs(one - other).sum(-1) / 2 >= least)


def masses(points: Sequence[Fitted]) -> tuple[np.ndarray, np.ndarray]:
    """The log-posterior at each point, and the logarithm of the mass around it."""
    peaks = [peak(point) for point in points]
    return np.array([found.log_posterior for found in peaks]), np.array([found.log_mass for found in peaks])


def peak(fitted: Fitted) -> Peak:
    """The posterior around the one draw of a fit."""
    seen = fitted.replace(source=fitted.data)
    log_posterior, log_density, slope = map(np.asarray, _slope(seen))
    slope = slope.astype(float)
    log_mass = float(log_density) + len(slope) / 2 * np.log(2 * np.pi)
    if is_small := len(slope) <= LARGEST:
        information = np.asarray(_information(seen), float)
        if not np.isfinite(information).all():
            return Peak(float(log_posterior), np.nan)
        bends, directions = np.linalg.eigh((information + information.T) / 2)
    else:
        bends, directions = _flattest(seen, slope)
    away = np.abs(slope @ directions) / np.sqrt(np.maximum(bends, FLAT))
    if (bends < FLAT).any() or (away > FAR).any():
        return Peak(float(log_posterior), np.nan)
    log_mass += (away @ away - np.log(bends).sum()) / 2 if is_small else slope @ slope / 2
    return Peak(float(log_posterior), float(log_mass))


def _flattest(fitted: Fitted, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest downward curvature of the log-density and its direction ``(D, 1)``, by Lanczos' method."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    def bend(direction: np.ndarray) -> np.ndarray:
        return np.asarray(_bend(fitted, jnp.asarray(direction.ravel(), jnp.float32)), float)

    size = len(slope)
    information = LinearOperator((size, size), matvec=bend, dtype=float)
    return eigsh(information, k=1, which="SA", v0=slope, tol=0.01)


def _in_coordinates(fitted: Fitted) -> tuple[Array, Callable[[Array], Array]]:
    """Zero, and the log-density in the coordinates around the fit's one draw."""
    near = coordinates_near(fitted.model, fitted.annotations, fitted.first_draw | fitted.fixed, fitted.fixed)

    def log_density(x: Array) -> Array:
        at = place(fitted.model, fitted.annotations, near, x)
        found = density(fitted.model, at.parameters | fitted.fixed, fitted.annotations)
        return found.log_posterior + at.log_det + at.correction

    return origin(near), log_density


@compiled(once=True)
def _slope(fitted: Fitted) -> tuple[Array, Array, Array]:
    zero, log_density = _in_coordinates(fitted)
    value, slope = jax.value_and_grad(log_density)(zero)
    return fitted.at(fitted.first_draw).log_posterior_in_log_odds, value, slope


@compiled(once=True)
def _information(fitted: Fitted) -> Array:
    zero, log_density = _in_coordinates(fitted)
    return -jax.lax.map(lambda v: jax.jvp(jax.grad(log_density), (zero,), (v,))[1], jnp.eye(len(zero)))


@compiled
def _bend(fitted: Fitted, direction: Array) -> Array:
    zero, log_density = _in_coordinates(fitted)
    return -jax.jvp(jax.grad(log_density), (zero,), (direction.astype(zero.dtype),))[1]


def shares(modes: Modes) -> np.ndarray:
    """The masses of the modes, which sum to 1, or are all NaN where one is unknown: ``(M,)``."""
    if len(modes.log_mass) == 1:
        return np.ones(1)
    relative = np.exp(modes.log_mass - modes.log_mass.max())  # NaN has no maximum, and makes all NaN
    return relative / relative.sum()


def names(n: int) -> list[str]:
    """Return names for n modes: A, B, …, Z, A2, …"""
    return [ascii_uppercase[i % 26] + (str(i // 26 + 1) if i >= 26 else "") for i in range(n)]


def mode_frame(fitted: Fitted) -> pd.DataFrame:
    """By mode what is known of it: see ``fit.modes``."""
    modes = fitted.outcome.modes
    if modes is None:
        n = fitted.shape[0]
        unknown = np.full(1, np.nan)
        modes = Modes(unknown, unknown, fitted.posterior.argmax(-1)[None], np.zeros(n, int))
    log_posterior, log_mass = modes.log_posterior, modes.log_mass
    if len(log_mass) == 1:
        mean = {name: value.mean((0, 1), keepdims=True) for name, value in fitted.draws.items()}
        log_posterior = np.asarray(_slope(fitted.with_draws(mean).replace(source=fitted.data))[0], float)[None]
    return pd.DataFrame(
        {
            "log_posterior": log_posterior,
            "log_mass": log_mass,
            "mass": shares(modes),
            "ends": [tuple((np.flatnonzero(modes.of_end == m) + 1).tolist()) for m in range(len(log_mass))],
            "tasks_differ": (modes.labels != modes.labels[0]).sum(-1),
        },
        index=pd.Index(names(len(log_mass)), name="mode"),
    )


def mode_labels(fitted: Fitted) -> pd.DataFrame:
    """By task on which the modes differ its label in each: see ``fit.mode_labels``."""
    modes = fitted.outcome.modes
    labels = np.zeros((1, fitted.annotations.n_tasks), int) if modes is None else np.asarray(modes.labels)
    classes = class_values(fitted.annotations.classes.to_index())
    tasks = np.flatnonzero((labels != labels[0]).any(0))
    index = fitted.annotations.tasks.to_index("task")[tasks]
    columns = pd.Index(names(len(labels)), name="mode")
    return pd.DataFrame(classes[labels[:, tasks].T], index, columns, dtype=classes.dtype)
