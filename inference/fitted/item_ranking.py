"""The ranking of items that were compared, and who beats whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...models.parts.kernels import row_weights
from .fitted import Fitted
from .intervals import INTERVAL, checked_tail
from .posterior import Posterior, interval_around


class ItemDraws(NamedTuple):
    """Draws of what a story says of items, of all its chains one after the other.

    Args:
        score: log-odds, ``(S, I)``.
        tie: log-weight of ties beside the mean score of two items, ``(S,)``; minus infinity where there are none.
    """

    score: np.ndarray
    tie: np.ndarray


def item_ranking(fit: Posterior, interval: float = INTERVAL) -> pd.DataFrame:
    r"""The items by their scores, the best first.

    Scores are log-odds that sum to zero: of two items the left one is better with the odds
    :math:`e^{s_l - s_r}`, ties aside. They are of items and not of positions: what a worker owes to the position is in
    his confusion matrix. The intervals of a point are of draws around it.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.
        interval: mass of the intervals, equal-tailed, between 0 and 1.

    Returns:
        By item: score, score_low, score_high; rank, from 1 for the best, rank_low, rank_high; p_best, the probability
        of the highest score; n_comparisons, how many annotations that are no abstentions compared it.

    Raises:
        AnnotationError: the annotations are no comparisons, or the fit gives items no scores.
        OneStoryError: the labels are without a likelihood.
        ValueError: `interval` is not between 0 and 1.
    """
    tail = checked_tail(interval)
    score, draws = _mean_score(fit), item_draws(fit.with_uncertainty).score
    rank, ranks = _ranks(score), _ranks(draws)
    low, high = interval_around(fit, score, draws[None], interval)
    rank_low, rank_high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    columns = {
        "score": score,
        "score_low": low,
        "score_high": high,
        "rank": rank,
        "rank_low": np.minimum(rank_low, rank),
        "rank_high": np.maximum(rank_high, rank),
        "p_best": (ranks == 1).mean(0),
        "n_comparisons": _n_comparisons(fit.annotations),
    }
    return pd.DataFrame(columns, fit.annotations.items.to_index("item")).iloc[np.argsort(rank)]


def beats(fit: Posterior) -> pd.DataFrame:
    r"""The probability that one item is better than another, whatever their positions; a tie counts half.

    .. math:: P(\text{left}) + \tfrac12 P(\text{tie})

    averaged over the draws, of a point over draws around it.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.

    Returns:
        The row's item against the column's, I × I, in the order of :func:`item_ranking`; NaN on the diagonal.

    Raises:
        AnnotationError: the annotations are no comparisons, or the fit gives items no scores.
        OneStoryError: the labels are without a likelihood.
    """
    order = np.argsort(_ranks(_mean_score(fit)))
    score, tie = item_draws(fit.with_uncertainty)
    n_items = score.shape[1]
    total = np.zeros((n_items, n_items))
    for of_items, weight in zip(score, tie, strict=True):
        gap = of_items[:, None] - of_items
        of_tie = np.exp(weight - np.abs(gap) / 2)  # all three beside that of the better item, which cannot overflow
        better, worse = np.exp(np.minimum(gap, 0.0)), np.exp(np.minimum(-gap, 0.0))
        total += (better + of_tie / 2) / (better + worse + of_tie)
    shares = total / len(score)
    np.fill_diagonal(shares, np.nan)
    index = fit.annotations.items.to_index("item")[order]
    return pd.DataFrame(shares[np.ix_(order, order)], index, index.rename("other"))


def ranks_items(fit: Posterior) -> bool:
    """Return whether a fit gives items scores."""
    return fit.rule is None and not fit.on_disk and any(_scores_items(fitted) for fitted, _ in fit.weighty)


def _mean_score(fit: Posterior) -> np.ndarray:
    """The score of each item, averaged over draws and stories: ``(I,)``."""
    each = _scored(fit)
    mean: np.ndarray = np.average([of.score.mean(0) for of, _ in each], axis=0, weights=[weight for _, weight in each])
    return mean


def item_draws(fit: Posterior) -> ItemDraws:
    """Draws of the stories that give items scores, of each in proportion to its weight and evenly far apart."""
    each = _scored(fit)
    most, total = max(len(of.score) for of, _ in each), sum(weight for _, weight in each)
    picked = []
    for of, weight in each:
        chosen = np.linspace(0, len(of.score), round(most * weight / total), endpoint=False).astype(int)
        picked.append((of.score[chosen], of.tie[chosen]))
    return ItemDraws(*map(np.concatenate, zip(*picked, strict=True)))


def _scored(fit: Posterior) -> list[tuple[ItemDraws, float]]:
    """The stories that give items scores and have weight, each with it.

    Raises:
        AnnotationError: there is none.
    """
    if fit.annotations.sides is None:
        raise AnnotationError(
            "these annotations are no comparisons, and have no items to rank; cp.Annotations.from_comparisons makes "
            "such of a table with the columns left, right, worker and label"
        )
    found = [(_item_draws(fitted), weight) for fitted, weight in fit.weighty if _scores_items(fitted)]
    if not found:
        raise AnnotationError(
            "the fit gives items no scores, since its prior of the true labels is another; fit with "
            "truth_prior=cp.BradleyTerry()"
        )
    return found


def _scores_items(fitted: Fitted) -> bool:
    return "item_score" in fitted.roles.values()


def _item_draws(fitted: Fitted) -> ItemDraws:
    score = np.asarray(fitted.draws_of_role("item_score")[0], dtype=float)
    score = score.reshape(-1, score.shape[-1])
    ties = [np.asarray(draws, dtype=float).ravel() for draws in fitted.draws_of_role("tie")]
    return ItemDraws(score, ties[0] if ties else np.full(len(score), -np.inf))


def _ranks(score: np.ndarray) -> np.ndarray:
    """The rank of each item, ``(..., I)``: 1 for the highest score, and of equal ones for the first item."""
    order = np.argsort(-score, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable") + 1


def _n_comparisons(annotations: Annotations) -> np.ndarray:
    """The number of annotations that compared each item, ``(I,)``."""
    given = np.asarray(annotations.label) < annotations.n_classes
    of_rows = np.asarray(annotations.sides)[np.asarray(annotations.task)[given]]
    weights = np.asarray(row_weights(annotations), dtype=float)[given]
    counts = sum(np.bincount(side, weights, len(annotations.items)) for side in of_rows.T)
    return np.asarray(counts).round().astype(int)
