r"""Shares of the tasks that have a property, from a sample of them and a prediction for each: prediction-powered.

A property is that a task is of some class, or that its label is right; :math:`y_i` is 1 where task i has it, which is
known of n of the N tasks, and :math:`f_i` between 0 and 1 predicts it for all. The gold tasks are counted; each was
drawn with an inclusion probability :math:`\pi_i` and stands for :math:`v_i = 1 / \pi_i - 1` of the :math:`M = N - n`
others, so that the share of these is estimated by means with the weights v,

.. math::
    \hat\theta_{\text{others}} = \bar y_v + \lambda \, (\bar f_{\text{others}} - \bar f_v), \qquad
    \lambda = \frac{\sum_q \text{cov}_v(y_q, f_q)}{\sum_q \text{var}(f_q)}

cut to 0 … 1, over the properties q that are estimated together. Where all tasks were drawn alike the share of all N is
that of Angelopoulos, Duchi & Zrnic 2023 ("PPI++", section 6), as the package ``ppi-python`` has it. It is nearly
unbiased whatever the predictions are worth.

The normal interval is too short where few gold tasks contradict the predictions: with none it has no length at all. The
interval here is that of a count among finitely many, by mid-P (:func:`.of_count`): as if of :math:`n_v / r` tasks drawn
beside :math:`M / r` others the share :math:`\hat\theta_{\text{others}}` had the property, with
:math:`n_v = (\sum v)^2 / \sum v^2` (Kish 1965) and r how much shorter the residuals of :math:`y - \lambda f` are than
those of y alone, both sums of squares with :math:`c^2` more, so that few residuals prove nothing (after Korn & Graubard
1998).
"""

from typing import NamedTuple

import numpy as np

from ..fitted.intervals import of_count, quantile


class Shares(NamedTuple):
    """Q estimated shares with the distances to the ends of their intervals."""

    estimate: np.ndarray  # (Q,)
    below: np.ndarray  # (Q,) from the low end to the estimate
    above: np.ndarray  # (Q,) from the estimate to the high end


class Residuals(NamedTuple):
    """Mean squares of what is left of Q properties."""

    tuned: np.ndarray  # (Q,) after the predictions, weighted by λ
    alone: np.ndarray  # (Q,) after the mean

    def shorter(self, n: float, interval: float) -> np.ndarray:
        """The factor that makes those after the predictions shorter, by n gold tasks: ``(Q,)``."""
        few = quantile(interval) ** 2
        return (n * self.tuned + few) / (n * self.alone + few)


class GoldDraw(NamedTuple):
    """Gold tasks as a draw from all tasks."""

    n_tasks: int  # N
    at: np.ndarray  # (n,) positions of the gold tasks among all
    others: np.ndarray  # (n,) how many of the other tasks each of them stands for: 1 / π − 1

    @property
    def weights(self) -> np.ndarray:
        """Shares of the others that the gold tasks stand for, ``(n,)``; alike where they stand for none."""
        total = self.others.sum()
        return self.others / total if total > 0 else np.full(len(self.others), 1 / len(self.others))

    @property
    def size(self) -> float:
        """The number of tasks, drawn alike, that would say as much of the others."""
        return float(1 / (self.weights**2).sum())


def drawn_alike(n_tasks: int, at: np.ndarray) -> GoldDraw:
    """A draw in which all tasks had the same chance."""
    return GoldDraw(n_tasks, at, np.full(len(at), n_tasks / len(at) - 1))


def slope(y: np.ndarray, f: np.ndarray, draw: GoldDraw) -> float:
    """By how much the properties rise with their predictions, from 0; 0 where the predictions do not differ.

    Args:
        y: 1 where a gold task has the property, ``(n, Q)``.
        f: predictions, ``(N, Q)``.
    """
    spread = f.var(0, ddof=1).sum() if len(f) > 1 else 0.0
    if spread < 1e-12:
        return 0.0
    products = _about_means(y, draw) * _about_means(f[draw.at], draw)
    return max(float((draw.weights @ products).sum() / spread), 0.0)


def _about_means(values: np.ndarray, draw: GoldDraw) -> np.ndarray:
    """Deviations from the weighted means over the gold tasks: ``(n, Q)``."""
    return values - draw.weights @ values


def estimated(y: np.ndarray, f: np.ndarray, draw: GoldDraw, interval: float, *, by: float | None = None) -> Shares:
    """Estimate the shares of N tasks that have Q properties.

    Args:
        y: 1 where a gold task has the property, ``(n, Q)``, n from 1.
        f: predictions, ``(N, Q)``.
        by: the weight λ of the predictions; by default their slope, and at most what weighs 1 on the mean of all tasks.
    """
    n, total = len(y), len(f)
    m = total - n
    if m == 0:
        return Shares(y.mean(0), *np.zeros((2, y.shape[1])))
    weight = min(slope(y, f, draw), total / m) if by is None else by
    rest = np.delete(f, draw.at, axis=0).mean(0)
    share = np.clip(draw.weights @ y + weight * (rest - draw.weights @ f[draw.at]), 0, 1)
    shorter = residuals(y, f[draw.at], draw, weight).shorter(n, interval)
    ends = [
        of_count(one, draw.size / ratio, round(m / ratio), interval) for one, ratio in zip(share, shorter, strict=True)
    ]
    low, high = np.array(ends).T
    estimate = (y.sum(0) + m * share) / total
    below, above = m / total * np.maximum([share - low, high - share], 0.0)
    return Shares(estimate, below, above)


def residuals(y: np.ndarray, f: np.ndarray, draw: GoldDraw, weight: float) -> Residuals:
    """Mean squares over the gold tasks.

    Args:
        y: 1 where a gold task has the property, ``(n, Q)``.
        f: predictions for the gold tasks, ``(n, Q)``.
        weight: of the predictions, λ.
    """
    return Residuals(*(draw.weights @ _about_means(values, draw) ** 2 for values in (y - weight * f, y)))


def counted(y: np.ndarray, draw: GoldDraw, interval: float) -> Shares:
    """Estimate the same from the gold tasks alone, ``y (n, Q)``."""
    return estimated(y, np.zeros((draw.n_tasks, y.shape[1])), draw, interval, by=0.0)
