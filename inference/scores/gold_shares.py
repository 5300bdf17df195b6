r"""Shares of the tasks that have a property, from a sample of them and a prediction for each: prediction-powered.

A property is that a task is of some class, or that its label is right; :math:`y_i` is 1 where task i has it, which is
known of n of the N tasks, drawn at random, and :math:`f_i` between 0 and 1 predicts it for all. The point estimate is
that of Angelopoulos, Duchi & Zrnic 2023 ("PPI++", section 6), as the package ``ppi-python`` has it,

.. math::
    \hat\theta = \bar y_{\text{gold}} + \lambda \, (\bar f_{\text{others}} - \bar f_{\text{gold}}), \qquad
    \lambda = \frac{\sum_q \text{cov}_{\text{gold}}(y_q, f_q)}{(1 + \frac{n}{N - n}) \sum_q \text{var}(f_q)}

clipped to 0 … 1, over the properties q that are estimated together. It is unbiased up to the choice of :math:`\lambda`
whatever the predictions are worth. As a correction to the mean over all tasks, gold ones among them, the weight is
:math:`\lambda N / (N - n)`, and so the residuals are :math:`y_i - \lambda \frac{N}{N - n} f_i`.

Its normal interval is too short where few gold tasks contradict the predictions: with none it has no length at all. The
interval here is of Wilson's form. The tasks are cut in two strata by their predictions, the share in each has Wilson's
interval, with n divided by :math:`1 - n_h / N_h` for the finite number of tasks, and the distances of its ends are
added in squares (Zou & Donner 2008; Yan & Su 2010):

.. math::
    \delta_{\text{low}}^2 = \sum_h W_h^2 (\hat p_h - l_h)^2, \qquad
    \delta_{\text{high}}^2 = \sum_h W_h^2 (u_h - \hat p_h)^2

Both are scaled by how much the estimate's residuals are shorter than those within strata, each sum of squares with
:math:`c^2` more, so that few residuals prove nothing: :math:`r^2 = (S_\lambda + c^2) / (S_h + c^2)`. For large n it is
the interval of PPI++.
"""

from typing import NamedTuple

import numpy as np

from ..fitted.intervals import quantile, wilson


class Shares(NamedTuple):
    """Q estimated shares with the distances to the ends of their intervals."""

    estimate: np.ndarray  # (Q,)
    below: np.ndarray  # (Q,) from the low end to the estimate
    above: np.ndarray  # (Q,) from the estimate to the high end


class Stratum(NamedTuple):
    """Tasks whose predictions are alike."""

    tasks: int  # N_h
    gold: float  # n_h; a fraction where it is expected and not drawn
    share: float  # of the gold tasks that have the property; the mean prediction where there are none


class Residuals(NamedTuple):
    """Mean squares of what is left of the properties."""

    tuned: float  # after the predictions, weighted by λ
    within: float  # after the strata's means


def slope(y: np.ndarray, f: np.ndarray, at: np.ndarray) -> float:
    """By how much the properties rise with their predictions, from 0; 0 where the predictions do not differ.

    Args:
        y: 1 where a gold task has the property, ``(n, Q)``.
        f: predictions, ``(N, Q)``.
        at: positions of the gold tasks among all, ``(n,)``.
    """
    spread = f.var(0, ddof=1).sum() if len(f) > 1 else 0.0
    if spread < 1e-12:
        return 0.0
    return max(float(((y - y.mean(0)) * (f[at] - f[at].mean(0))).mean(0).sum() / spread), 0.0)


def power(y: np.ndarray, f: np.ndarray, at: np.ndarray) -> float:
    r"""The weight :math:`\lambda` of the predictions, from 0 to 1; the arguments are as for :func:`slope`."""
    return min(slope(y, f, at) * (1 - len(y) / len(f)), 1.0)


def estimated(y: np.ndarray, f: np.ndarray, upper: np.ndarray, at: np.ndarray, interval: float) -> Shares:
    """Estimate the shares of N tasks that have Q properties.

    Args:
        y: 1 where a gold task has the property, ``(n, Q)``, n from 1.
        f: predictions, ``(N, Q)``.
        upper: whether a task belongs to the upper stratum, ``(N, Q)``, by its predictions alone.
        at: positions of the gold tasks among all, ``(n,)``.
        interval: mass of the intervals.
    """
    # On the mean prediction of all tasks, of which the gold tasks are a part, λ weighs as much as this:
    weight = power(y, f, at) / (1 - len(y) / len(f)) if len(y) < len(f) else 0.0
    means = y.mean(0) + weight * (f.mean(0) - f[at].mean(0))
    found = [_distances(y[:, q], f[:, q], upper[:, q], at, weight, interval) for q in range(y.shape[1])]
    below, above = np.array(found).T
    return Shares(means, below, above)


def counted(y: np.ndarray, n_tasks: int, interval: float) -> Shares:
    """Estimate the same from the gold tasks alone, ``y (n, Q)``, by Wilson's interval for a sample of finitely many."""
    strata = [[Stratum(n_tasks, len(y), float(share))] for share in y.mean(0)]
    below, above = np.array([ends(one, interval) for one in strata]).T
    return Shares(y.mean(0), below, above)


def strata_of(y: np.ndarray, f: np.ndarray, upper: np.ndarray, at: np.ndarray) -> list[Stratum]:
    """The strata of one property, those without tasks left out: ``y (n,)``, ``f (N,)``, ``upper (N,)``, ``at (n,)``."""
    found = []
    for side in (False, True):
        tasks, gold = upper == side, upper[at] == side
        if tasks.any():
            share = y[gold].mean() if gold.any() else f[tasks].mean()
            found.append(Stratum(int(tasks.sum()), int(gold.sum()), float(share)))
    return found


def residuals(y: np.ndarray, f: np.ndarray, upper: np.ndarray, at: np.ndarray, weight: float) -> Residuals:
    """Mean squares over the gold tasks, of one property; arguments as for :func:`strata_of`.

    Args:
        weight: of the predictions, where their mean over all tasks is taken.
    """
    tuned = y - y.mean() - weight * (f[at] - f[at].mean())
    sides = [y[upper[at] == side] for side in (False, True)]
    within = sum(float(((part - part.mean()) ** 2).sum()) for part in sides if len(part))
    return Residuals(float((tuned**2).mean()), within / len(y))


def ends(
    strata: list[Stratum], interval: float, residual: Residuals | None = None, n: float | None = None
) -> tuple[float, float]:
    """Distances from an estimate to the low and the high end of its interval.

    Args:
        strata: with the gold tasks of each.
        interval: mass.
        residual: by which the distances are scaled; None for those of the strata alone.
        n: the number of gold tasks; needed with `residual`.
    """
    total = sum(one.tasks for one in strata)
    below = above = 0.0
    for one in strata:
        if one.gold >= one.tasks:
            continue
        low, high = 0.0, 1.0
        if one.gold > 0:
            low, high = wilson(one.share, one.gold / (1 - one.gold / one.tasks), interval)
        below += (one.tasks / total * (one.share - low)) ** 2
        above += (one.tasks / total * (high - one.share)) ** 2
    scale = 1.0
    if residual is not None and n is not None:
        few = quantile(interval) ** 2
        scale = float(np.sqrt((n * residual.tuned + few) / (n * residual.within + few)))
    return scale * float(np.sqrt(below)), scale * float(np.sqrt(above))


def _distances(
    y: np.ndarray, f: np.ndarray, upper: np.ndarray, at: np.ndarray, weight: float, interval: float
) -> tuple[float, float]:
    return ends(strata_of(y, f, upper, at), interval, residuals(y, f, upper, at, weight), len(y))
