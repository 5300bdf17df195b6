"""The ranking of items that were compared, and who beats whom."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.comparisons import parts
from ...models.parts.kernels import row_weights
from .confusion_scores import given_a_class
from .fitted import Fitted
from .intervals import INTERVAL, checked_tail, of_draws
from .next_annotations import asked_workers
from .posterior import Posterior


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
    his confusion matrix. Scores are medians of the draws that their intervals are of, of a point of draws around it:
    those at a mode, which stay in ``fit.derived``, are too large where judges err often and labels are in doubt.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.
        interval: mass of the intervals, equal-tailed, between 0 and 1.

    Where neither comparisons nor features of the items connect all of them, scores of two parts say nothing of each
    other: they sum to zero within each part, and so do ranks count.

    Returns:
        By item: score, score_low, score_high; rank, from 1 for the best, rank_low, rank_high; p_best, the probability
        of the highest score; n_comparisons, how many annotations that are no abstentions compared it. Where there are
        several parts also part, before the others, from 1 for the one with the most items, within which the items are
        ranked: part by part.

    Raises:
        AnnotationError: the annotations are no comparisons, or the fit gives items no scores.
        OneStoryError: the labels are without a likelihood.
        ValueError: `interval` is not between 0 and 1.
    """
    tail = checked_tail(interval)
    fit = _with_draws(fit)
    part = parts_of(fit.annotations)
    score, draws = item_scores(fit), _centred(item_draws(fit).score, part)
    rank, ranks = _ranks(score, part), _ranks(draws, part)
    low, high = of_draws(draws[None], interval, score)
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
    if part.max(initial=0):
        columns = {"part": part + 1, **columns}
    return pd.DataFrame(columns, fit.annotations.items.to_index("item")).iloc[_order(score, part)]


def parts_of(annotations: Annotations) -> np.ndarray:
    """Return the part of each item, within which comparisons or features of the items connect all: ``(I,)``.

    The one with the most items is 0; so are all items where there is one part.
    """
    n_items, sides = len(annotations.items), np.asarray(annotations.sides)
    if annotations.item_features is not None:
        return np.zeros(n_items, int)
    told = annotations.votes().sum(-1) > 0
    if annotations.evidence is not None:
        told |= np.ptp(np.asarray(annotations.evidence), axis=1) > 0
    found = parts(sides[told], n_items)
    order = np.argsort(-np.bincount(found), kind="stable")
    place: np.ndarray = np.argsort(order)[found]
    return place


def beats(fit: Posterior) -> pd.DataFrame:
    r"""The probability that one item is better than another, whatever their positions; a tie counts half.

    .. math:: P(\text{left}) + \tfrac12 P(\text{tie})

    averaged over the draws, of a point over draws around it.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.

    Returns:
        The row's item against the column's, I × I, in the order of :func:`item_ranking`; NaN on the diagonal, and of
        two items that nothing connects.

    Raises:
        AnnotationError: the annotations are no comparisons, or the fit gives items no scores.
        OneStoryError: the labels are without a likelihood.
    """
    fit = _with_draws(fit)
    draws = item_draws(fit)
    part = parts_of(fit.annotations)
    order = _order(item_scores(fit), part)
    total = np.zeros((len(order), len(order)))
    for score, tie in zip(*draws, strict=True):
        shares = _better(score, tie)
        total += shares[..., 0] + shares[..., 2] / 2
    found = total / len(draws.score)
    np.fill_diagonal(found, np.nan)
    found[part[:, None] != part] = np.nan
    index = fit.annotations.items.to_index("item")[order]
    return pd.DataFrame(found[np.ix_(order, order)], index, index.rename("other"))


def beats_by_position(fit: Posterior, workers: Any = None) -> pd.DataFrame:
    r"""Probabilities that a worker names either of two items, by where they are shown, and the position's part in them.

    .. math::
        p_\text{named\_left} = \sum_k P(z = k \mid i \text{ left}) \, h_k, \quad
        p_\text{named\_right} = 1 - \sum_k P(z = k \mid i \text{ right}) \, h_k, \quad
        h_k = \beta[k, \text{left}] + \tfrac12 \beta[k, \text{tie}]

    of items i and j, shown as (i, j) and as (j, i), and a worker's confusion matrix :math:`\beta` of annotations that
    are no abstentions, averaged over the draws, of a point over draws around it. A tie counts half. Without position
    bias both are alike. With two classes the position's part is half of ``position_bias``, whatever the pair.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.
        workers: one worker or several; None for a typical one, whose confusion matrix is the mean over the annotations.

    Returns:
        By pair of items that something connects, in the order of :func:`item_ranking`: worker (where `workers` are
        given), item and other; p_better, as of :func:`beats`; p_named_left and p_named_right, the probability that the
        worker names `item` where it is shown left and where right; position_part, half of their difference, by which
        the former is above the mean of both.

    Raises:
        AnnotationError: the annotations are no comparisons, the fit gives items no scores, a worker is unknown, or
            nobody knows what was shown left.
        OneStoryError: the labels are without a likelihood.
    """
    annotations = fit.annotations
    fit = _with_draws(fit)
    if not annotations.kind.shows_sides:
        raise AnnotationError(
            "the comparisons do not say which item was shown left, so that they are of no position; fit.beats has the "
            "probability that an item is better"
        )
    part = parts_of(annotations)
    order = _order(item_scores(fit), part)
    asked = None if workers is None else asked_workers(annotations, workers)
    draws, credit = item_draws(fit), _credit_of_left(fit, asked)
    n_items, n_workers = len(order), credit.shape[1]
    better, left, right = np.zeros((n_items, n_items)), *np.zeros((2, n_workers, n_items, n_items))
    for score, tie, of_left in zip(*draws, credit, strict=True):
        shares = _better(score, tie)
        better += shares[..., 0] + shares[..., 2] / 2
        left += np.einsum("ijk,wk->wij", shares, of_left)
        right += 1 - np.einsum("ijk,wk->wij", shares[..., [1, 0, 2]], of_left)
    better, left, right = (total / len(credit) for total in (better, left, right))
    first, second = (order[at] for at in np.triu_indices(n_items, 1))
    first, second = (each[part[first] == part[second]] for each in (first, second))
    names = annotations.items.to_index()
    columns = {
        "item": np.tile(names[first], n_workers),
        "other": np.tile(names[second], n_workers),
        "p_better": np.tile(better[first, second], n_workers),
        "p_named_left": left[:, first, second].ravel(),
        "p_named_right": right[:, first, second].ravel(),
    }
    frame = pd.DataFrame(columns)
    frame["position_part"] = (frame["p_named_left"] - frame["p_named_right"]) / 2
    if asked is not None:
        frame.insert(0, "worker", np.repeat(annotations.workers.to_index()[asked], len(first)))
    return frame


OF_PREFERENCES: dict[str, dict[str, Any]] = {
    "one_coin": {"right": 1000.0, "wrong": 1.0},
    "annotator_groups": {"groups": 1, "diagonal": 1000.0},
}
"""By story its hyperparameters by which annotations are right as they are; the second needs no names of workers."""


def takes_as_given(fit: Posterior) -> bool:
    """Return whether it is a fit by which annotations are right as they are: of :data:`OF_PREFERENCES`."""
    if fit.only is None or fit.only.story not in OF_PREFERENCES:
        return False
    given, right = fit.only.model.hyperparameters, "right" if fit.only.story == "one_coin" else "diagonal"
    least = OF_PREFERENCES[fit.only.story][right] * float(given.get("wrong", 1.0))
    return float(given.get(right, 1.0)) >= least


def ranks_items(fit: Posterior) -> bool:
    """Return whether a fit gives items scores."""
    return fit.rule is None and not fit.on_disk and any(_scores_items(fitted) for fitted, _ in fit.weighty)


def item_scores(fit: Posterior) -> np.ndarray:
    """The median of each item's scores over the draws, in each part less their mean: ``(I,)``.

    Where judges are weak, draws are skewed, and the error of the median is less than that of the mean and of the mode
    (``benchmarks/comparisons.py``).
    """
    draws, part = item_draws(fit.with_uncertainty).score, parts_of(fit.annotations)
    return _centred(np.median(_centred(draws, part), axis=0), part)


def item_draws(fit: Posterior) -> ItemDraws:
    """Draws of the stories that give items scores, of each in proportion to its weight and evenly far apart."""
    each = [(of.score[chosen], of.tie[chosen]) for of, _, chosen in _chosen(fit)]
    return ItemDraws(*map(np.concatenate, zip(*each, strict=True)))


def _with_draws(fit: Posterior) -> Posterior:
    """The fit with draws, where it gives items scores."""
    _scored(fit)  # which refuses what has no items, before draws are made
    return fit.with_uncertainty


def _chosen(fit: Posterior) -> list[tuple[ItemDraws, Fitted, np.ndarray]]:
    """Of each story that gives items scores its draws, and which of them are taken: as many as its weight asks for."""
    each = _scored(fit)
    most, total = max(len(of.score) for of, _, _ in each), sum(weight for _, _, weight in each)
    return [
        (of, fitted, np.linspace(0, len(of.score), round(most * weight / total), endpoint=False).astype(int))
        for of, fitted, weight in each
    ]


def _credit_of_left(fit: Posterior, asked: np.ndarray | None) -> np.ndarray:
    """Shares that a worker gives the left side, of a tie half, by true class: ``(S, W, 3)``, as :func:`item_draws`."""
    annotations, found = fit.annotations, []
    for _, fitted, chosen in _chosen(fit):
        tables = fitted.confusion_draws
        tables = tables.reshape(-1, *tables.shape[2:])[chosen]
        if asked is not None:
            tables = tables[:, asked]
        else:
            by_worker = annotations.n_by_worker() if annotations.named else np.ones(tables.shape[1])
            tables = np.average(tables, axis=1, weights=by_worker)[:, None]
        tables = given_a_class(np.asarray(tables, dtype=float))
        credit = tables[..., 0] + tables[..., 2:].sum(-1) / 2
        found.append(np.pad(credit, [(0, 0), (0, 0), (0, 3 - credit.shape[-1])]))
    return np.concatenate(found)


def _better(score: np.ndarray, tie: float) -> np.ndarray:
    """Probabilities that the row's item is better, that the column's is, and of a tie: ``(I, I, 3)``."""
    gap = score[:, None] - score
    of_tie = np.exp(tie - np.abs(gap) / 2)  # all three beside that of the better item, which cannot overflow
    shares = np.stack([np.exp(np.minimum(gap, 0.0)), np.exp(np.minimum(-gap, 0.0)), of_tie], axis=-1)
    found: np.ndarray = shares / shares.sum(-1, keepdims=True)
    return found


def _scored(fit: Posterior) -> list[tuple[ItemDraws, Fitted, float]]:
    """The stories that give items scores and have weight, each with its draws and with it."""
    if fit.annotations.sides is None:
        raise AnnotationError(
            "these annotations are no comparisons, and have no items to rank; cp.Annotations.from_comparisons makes "
            "such of a table with the columns left, right, worker and label"
        )
    found = [(_item_draws(fitted), fitted, weight) for fitted, weight in fit.weighty if _scores_items(fitted)]
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


def _centred(score: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Scores ``(..., I)`` less their mean in each part, so that they sum to zero there."""
    of_part = np.eye(part.max(initial=0) + 1)[part]
    centred: np.ndarray = score - (score @ of_part / of_part.sum(0))[..., part]
    return centred


def _ranks(score: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The rank of each item in its part, ``(..., I)``: 1 for the highest score, of equal ones for the first item."""
    ranks = np.zeros(score.shape, int)
    for each in range(part.max(initial=0) + 1):
        order = np.argsort(-score[..., part == each], axis=-1, kind="stable")
        ranks[..., part == each] = np.argsort(order, axis=-1, kind="stable") + 1
    return ranks


def _order(score: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The items as they are shown: part by part, the best first."""
    return np.lexsort((_ranks(score, part), part))


def _n_comparisons(annotations: Annotations) -> np.ndarray:
    """The number of annotations that compared each item, ``(I,)``."""
    given = np.asarray(annotations.label) < annotations.n_classes
    of_rows = np.asarray(annotations.sides)[np.asarray(annotations.task)[given]]
    weights = np.asarray(row_weights(annotations), dtype=float)[given]
    counts = sum(np.bincount(side, weights, len(annotations.items)) for side in of_rows.T)
    return np.asarray(counts).round().astype(int)
