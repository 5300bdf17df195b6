r"""Imbalance of the annotated classes, and balanced annotations by weights or by drawing anew."""

from typing import Literal

import numpy as np

from ...data import AnnotationError, Annotations
from ...data.errors import check_name, real_number


def imbalance_ratio(annotations: Annotations) -> float:
    r"""Return how many annotations of the most frequent class there are for each of the rarest.

    .. math:: R = \max_c n_c / \min_c n_c

    Infinite where a class was never annotated. Abstentions do not count, and levels count for the class they lie in.
    """
    return _ratio(_counts(annotations.verdicts()))


def gold_imbalance_ratio(annotations: Annotations) -> float:
    """Return the same ratio of the gold labels of the tasks, :math:`R_g`; NaN without any."""
    if annotations.gold is None or not (np.asarray(annotations.gold) >= 0).any():
        return float("nan")
    gold = np.asarray(annotations.gold)
    return _ratio(np.bincount(gold[gold >= 0], minlength=annotations.n_classes))


def rebalanced(
    annotations: Annotations,
    how: Literal["reweighting", "resampling", "effective_number"] = "reweighting",
    *,
    beta: float = 0.999,
    seed: int = 0,
) -> Annotations:
    r"""Return the annotations with counts in which all classes are as frequent, or nearer to it.

    ``"reweighting"`` gives an annotation of class c the count :math:`A / (K n_c)`; ``"resampling"`` draws :math:`A / K`
    annotations of each class with replacement, so that some count twice and some not at all. ``"effective_number"``
    gives counts in proportion to :math:`(1 - \beta) / (1 - \beta^{n_c})`, of mean 1: annotations of a class overlap, so
    that n of them are like fewer (Cui et al. 2019). With ``focus=`` of a story it is their class-balanced focal loss.

    Args:
        annotations: the annotations; a class that nobody annotated stays as it is.
        how: the way.
        beta: :math:`\beta` of the effective number, from 0 to below 1: at 0 all annotations count 1, and towards 1
            classes are as frequent. Not looked at otherwise.
        seed: of what is drawn.

    Raises:
        UnknownNameError: there is no such way.
        AnnotationError: there are abstentions, or annotations are levels of another truth.
        ValueError: beta is no such number.
    """
    check_name("how", how, ("reweighting", "resampling", "effective_number"))
    beta = real_number("beta", beta, least=0, below=1)
    if annotations.abstains:
        raise AnnotationError("abstentions are of no class; leave them out by annotations.of_classes()")
    if annotations.scored:
        raise AnnotationError(
            "these annotations are levels of another truth (truth_classes=), and not of its classes; take the classes "
            "that they lie in, annotations.verdicts(), or the levels as classes, annotations.by_level()"
        )
    count = annotations.row_counts
    label, by_class = np.asarray(annotations.label), _counts(annotations)
    each = by_class.sum() / max((by_class > 0).sum(), 1)
    if how == "effective_number":
        weight = count * ((1 - beta) / (1 - beta ** np.maximum(by_class, 1)))[label]
        return annotations.replace(count=(weight * by_class.sum() / weight.sum()).astype(np.float32))
    if how == "reweighting":
        return annotations.replace(count=(count * each / by_class[label]).astype(np.float32))
    rng, drawn = np.random.default_rng(seed), np.zeros(annotations.n_rows)
    for k in np.flatnonzero(by_class):
        of_class = np.where(label == k, count, 0.0)
        drawn += rng.multinomial(round(each), of_class / of_class.sum())
    return annotations.replace(count=drawn.astype(np.float32))


def _counts(annotations: Annotations) -> np.ndarray:
    """Annotations of each class, ``(K,)``."""
    count = annotations.row_counts
    return np.bincount(np.asarray(annotations.label), count, annotations.n_categories)[: annotations.n_classes]


def _ratio(counts: np.ndarray) -> float:
    least = counts.min()
    return float(counts.max() / least) if least > 0 else float("inf")
