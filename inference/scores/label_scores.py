"""Scores of labels and their probabilities where the truth is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .against_gold import Judged, judged
from .calibration import calibration_error

SMALLEST = float(np.finfo(np.float32).tiny)  # posteriors are in single precision, which has nothing below but zero


def score(source: Any, gold: Any = None) -> pd.Series | pd.DataFrame:
    r"""Score labels and their probabilities by gold labels.

    With :math:`p_{ik}` the probability that task :math:`i` is of class :math:`k`, and :math:`g_i` its gold label, the
    means over the gold tasks of

    .. math::
        \text{accuracy}: \frac{[g_i \in B_i]}{|B_i|}, \; B_i = \arg\max_k p_{ik}, \qquad
        \text{log\_score}: \log p_{i g_i}, \qquad
        \text{brier}: \sum_k (p_{ik} - [k = g_i])^2

    so that a tie counts for its share. A probability below 1.2e-38, the smallest in single precision, counts as that:
    one label that was held for impossible costs 87.3 nats / n. Brier's score is that of Brier (1950), between 0 and
    2. ``ece`` is :func:`.expected_calibration_error` with ten bins. With two classes ``auc`` is the area under the
    ROC curve of the second one.

    Each mean has its standard error, s / √n over tasks; that of ``auc`` is by DeLong, DeLong & Clarke-Pearson (1988).
    They say how far the score would move with other tasks of the kind; two fits of the same tasks differ by less,
    since their scores move together.

    Args:
        source: a fit, a stack, a frame of probabilities (tasks × classes), or a mapping of names to these.
        gold: label by task; None for the gold labels of the annotations. Tasks whose gold label was told to the fit
            are not scored: ``told`` says how many of them there are.

    Returns:
        tasks, told, accuracy, accuracy_se, log_score, log_score_se, brier, brier_se, ece, and with two classes auc,
        auc_se (NaN where all gold labels are one class); for a mapping a frame with a row for each name.

    Raises:
        AnnotationError: there is no gold label to judge by, or labels do not fit tasks or classes.
    """
    if isinstance(source, Mapping):
        if not source:
            raise ValueError("there is nothing to score: the mapping is empty; give {name: fit, …}")
        rows = {name: _score(judged(one, gold)) for name, one in source.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("story")
        return frame.astype({"tasks": int, "told": int})
    return pd.Series(_score(judged(source, gold)), name="score")


def label_confusion(source: Any, gold: Any = None) -> pd.DataFrame:
    """Count the gold tasks by their gold label (rows) and the label that they got (columns), K × K.

    The label is the most probable class, the first of a tie, as in ``fit.labels``. The arguments, and what is raised,
    are as for :func:`score`; of a told fit's tasks, those that it was told are left out.
    """
    from sklearn import metrics  # a second to import

    found = judged(source, gold)
    counts = metrics.confusion_matrix(found.gold, found.probabilities.argmax(-1), labels=np.arange(len(found.classes)))
    return pd.DataFrame(counts, index=found.classes.rename("gold"), columns=found.classes.rename("label"))


def roc(source: Any, gold: Any = None, *, positive: object = None) -> pd.DataFrame:
    """Trace the ROC curve of a class's probability: what is found of it, and what is taken for it, by threshold.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task; None for the gold labels of the annotations. Tasks that were told are left out.
        positive: the class that is looked for; of two the second by default, of more it must be named and is set
            against all others.

    Returns:
        threshold (from infinity down; a task is taken where its probability is at least that), false_positive_rate,
        true_positive_rate. Thresholds that lie on a straight line between others are left out.

    Raises:
        AnnotationError: there is no gold label to judge by.
        ValueError: `positive` is no class or is needed, or no gold task, or every one, is of the positive class.
    """
    from sklearn import metrics

    found = judged(source, gold)
    at = found.position(positive)
    is_positive = found.gold == at
    if is_positive.all() or not is_positive.any():
        which = "every" if is_positive.all() else "no"
        raise ValueError(f"{which} gold task is of class {found.classes[at]!r}: an ROC curve needs some of both kinds")
    false, true, threshold = metrics.roc_curve(is_positive, found.probabilities[:, at])
    return pd.DataFrame({"threshold": threshold, "false_positive_rate": false, "true_positive_rate": true})


def _score(found: Judged) -> dict[str, float | int]:
    log = np.log(np.maximum(found.of_truth, SMALLEST))
    is_gold = np.arange(len(found.classes)) == found.gold[:, None]
    each = {"accuracy": found.right, "log_score": log, "brier": ((found.probabilities - is_gold) ** 2).sum(-1)}
    row: dict[str, float | int] = {"tasks": len(found.gold), "told": found.told}
    for name, values in each.items():
        row |= {name: float(values.mean()), f"{name}_se": _standard_error(values)}
    row["ece"] = calibration_error(found)
    if len(found.classes) == 2:
        row["auc"], row["auc_se"] = _area(found.probabilities[:, 1], found.gold == 1)
    return row


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _area(value: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    r"""The area under the ROC curve, :math:`P(v_+ > v_-) + \frac12 P(v_+ = v_-)`, with its standard error.

    From each positive's share of the negatives that it beats, and the other way round (DeLong et al. 1988, eq. 5).
    """
    from scipy.stats import rankdata

    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return np.nan, np.nan
    rank = rankdata(value)
    beats = (rank[positive] - rankdata(value[positive])) / n
    beaten = 1 - (rank[~positive] - rankdata(value[~positive])) / m
    return float(beats.mean()), float(np.hypot(_standard_error(beats), _standard_error(beaten)))
