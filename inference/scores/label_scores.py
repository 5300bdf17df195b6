"""Scores of labels and their probabilities where gold labels are known."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...data.arrays import midranks
from ...data.errors import check_name
from ...data.questions import QUESTION
from .against_gold import GoldTasks, against_gold, by_question, ratings_of
from .calibration import calibration_error

SMALLEST = float(np.finfo(np.float32).tiny)  # posteriors are in single precision, which has nothing below but zero


def score(source: Any, gold: Any = None, *, by: Literal["question"] | None = None) -> pd.Series | pd.DataFrame:
    r"""Score labels and their probabilities by gold labels.

    With :math:`p_{ik}` the probability that task :math:`i` is of class :math:`k`, and :math:`g_i` its gold label, the
    means over the gold tasks of

    .. math::
        \text{accuracy}: \frac{[g_i \in B_i]}{|B_i|}, \; B_i = \arg\max_k p_{ik}, \qquad
        \text{log\_score}: \log p_{i g_i}, \qquad
        \text{brier}: \sum_k (p_{ik} - [k = g_i])^2

    so that a tie counts for its share. A probability below 1.2e-38, the smallest in single precision, counts as that:
    a gold label of probability 0 costs 87.3 / n nats. Brier's score is that of Brier (1950), between 0 and 2, lower is
    better. ``ece`` is :func:`.calibration_error` with ten bins. With two classes ``auc`` is the area under
    the ROC curve of the second class.

    Each mean has its standard error, s / √n over tasks; that of ``auc`` is by DeLong, DeLong & Clarke-Pearson (1988,
    eq. 5). Two fits of the same tasks differ by less than these say, since their scores are correlated.

    Example:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia").with_gold({3: 1, 9: 2, 10: 3})
        >>> fit = cp.fit("dawid_skene", annotations, progress=False)
        >>> cp.score(fit)[["tasks", "gold_used"]].astype(int).tolist()
        [3, 0]

    Args:
        source: a fit, a stack, a frame of probabilities (tasks × classes), or a mapping of names to these.
        gold: label by task; None for the gold labels of the annotations. Or of ordered classes numbers that are not all
            whole, such as means of people's ratings.
        by: ``"question"`` for a frame with a row for each question that has gold labels, by its classes: of ordered
            ones, or of two, it has their scores too.

    Returns:
        ``tasks``, how many gold tasks are scored; ``gold_used``, how many are not, because the fit used their gold
        labels; ``accuracy``, ``log_score`` (nats), ``brier``, each with its standard error in ``_se``; ``ece``; with
        two classes ``auc`` and ``auc_se`` (NaN where all gold labels are one class); of ordered classes ``mae``,
        ``ranked_probability``, ``weighted_kappa`` and ``spearman`` (:meth:`.Ordered.label_scores`). By ratings they
        are ``tasks``, ``gold_used``, ``mae``, ``spearman`` and ``kendall`` (:meth:`.Ordered.rating_scores`). For a
        mapping a frame with a row for each name.

    Raises:
        AnnotationError: there is no gold label to score by, or labels do not fit tasks or classes.
        TypeError: a source is something else.
        UnknownNameError: `by` is another word.
        ValueError: a mapping is empty, or given with ``by="question"``.
    """
    if by is not None:
        check_name("by", by, ("question",))
        if isinstance(source, Mapping):
            raise ValueError("by='question' is of one fit; score each of the mapping alone")
        rows = {name: scores_of(found) for name, found in by_question(source, gold).items()}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(QUESTION)
        return frame.astype({"tasks": int, "gold_used": int})
    if isinstance(source, Mapping):
        if not source:
            raise ValueError("there is nothing to score: the mapping is empty; give {name: fit, …}")
        rows = {name: _scores(one, gold) for name, one in source.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("story")
        return frame.astype({"tasks": int, "gold_used": int})
    return pd.Series(_scores(source, gold), name="score")


def label_confusion(source: Any, gold: Any = None) -> pd.DataFrame:
    """Count the gold tasks by gold label (rows) and inferred label (columns).

    The inferred label is the most probable class, of a tie the first, as in ``fit.labels``. Gold tasks whose gold
    labels the fit used are left out.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task; None for the gold labels of the annotations.

    Returns:
        Numbers of tasks, K × K.

    Raises:
        AnnotationError: there is no gold label to score by, or labels do not fit tasks or classes.
        TypeError: `source` is something else.
    """
    from sklearn import metrics  # a second to import

    found = against_gold(source, gold)
    counts = metrics.confusion_matrix(found.gold, found.probabilities.argmax(-1), labels=np.arange(len(found.classes)))
    return pd.DataFrame(counts, index=found.classes.rename("gold"), columns=found.classes.rename("label"))


def roc(source: Any, gold: Any = None, *, positive: object = None) -> pd.DataFrame:
    """The ROC curve of a class's probability: its true and false positive rates by threshold.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task; None for the gold labels of the annotations. Gold tasks whose gold labels the fit used are
            left out.
        positive: the positive class, set against all others; by default the second of two classes.

    Returns:
        By point of the curve: threshold (from infinity down; tasks are classified as positive where the probability is
        at least that), false_positive_rate, true_positive_rate. Points on a straight line between others are left out.

    Raises:
        AnnotationError: there is no gold label to score by.
        UnknownNameError: `positive` is no class.
        ValueError: `positive` is needed, or no gold task, or every one, is of the positive class.
    """
    from sklearn import metrics

    found = against_gold(source, gold)
    at = found.position(positive)
    is_positive = found.gold == at
    if is_positive.all() or not is_positive.any():
        which, name = "every" if is_positive.all() else "no", found.classes.tolist()[at]
        raise ValueError(f"{which} gold task is of class {name!r}: an ROC curve needs gold tasks of it and of others")
    false, true, threshold = metrics.roc_curve(is_positive, found.probabilities[:, at])
    return pd.DataFrame({"threshold": threshold, "false_positive_rate": false, "true_positive_rate": true})


def _scores(source: Any, gold: Any) -> dict[str, float | int]:
    """The scores of one source by name: by gold labels, or by numbers that tasks are rated with."""
    if (ratings := ratings_of(source, gold)) is None:
        return scores_of(against_gold(source, gold))
    rated = np.flatnonzero(~np.isnan(ratings))
    probabilities = source.probabilities.to_numpy(dtype=float)[rated]
    kind, classes = source.annotations.kind, list(source.probabilities.columns)
    return {"tasks": len(rated), "gold_used": 0} | _means(kind.rating_scores(probabilities, ratings[rated], classes))


def _means(scores: Mapping[str, float | np.ndarray]) -> dict[str, float]:
    """Scores by name, those of each task ``(n,)`` as their mean and its standard error."""
    row = {}
    for name, values in scores.items():
        row[name] = float(np.mean(values))
        row |= {f"{name}_se": standard_error(values)} if isinstance(values, np.ndarray) else {}
    return row


def log_scores(found: GoldTasks) -> np.ndarray:
    """The logarithm of the probability of each task's gold label, ``(n,)``."""
    return np.log(np.maximum(found.gold_probability, SMALLEST))


def scores_of(found: GoldTasks) -> dict[str, float | int]:
    """The scores of :func:`score` by name."""
    is_gold = np.arange(len(found.classes)) == found.gold[:, None]
    brier = ((found.probabilities - is_gold) ** 2).sum(-1)
    each = {"accuracy": found.right, "log_score": log_scores(found), "brier": brier}
    row: dict[str, float | int] = {"tasks": len(found.gold), "gold_used": found.gold_used}
    row |= _means(each)
    row["ece"] = calibration_error(found)
    if len(found.classes) == 2:
        row["auc"], row["auc_se"] = _area(found.probabilities[:, 1], found.gold == 1)
    return row | _means(found.kind.label_scores(found.probabilities, found.gold, list(found.classes)))


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean of ``values (n,)``; NaN for a single one."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _area(value: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    r"""The area under the ROC curve, :math:`P(v_+ > v_-) + \frac12 P(v_+ = v_-)`, with its standard error.

    The error is that of each positive's share of negatives with a smaller value, and of each negative's share of
    positives with a larger one (DeLong et al. 1988, eq. 5).
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return np.nan, np.nan
    rank = midranks(value)
    beats = (rank[positive] - midranks(value[positive])) / n
    beaten = 1 - (rank[~positive] - midranks(value[~positive])) / m
    return float(beats.mean()), float(np.hypot(standard_error(beats), standard_error(beaten)))
