"""Scores of labels and of confusion matrices where the truth is known."""

from .calibration import expected_calibration_error, reliability
from .divergences import confusion_divergences, empirical_confusions, worker_divergences
from .label_scores import label_confusion, roc, score

__all__ = [
    "confusion_divergences",
    "empirical_confusions",
    "expected_calibration_error",
    "label_confusion",
    "reliability",
    "roc",
    "score",
    "worker_divergences",
]
