"""Scores of labels and of confusion matrices where the truth is known."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .calibration import expected_calibration_error, reliability
    from .divergences import confusion_divergences, empirical_confusions, worker_divergences
    from .label_scores import label_confusion, roc, score

__getattr__, __dir__ = lazy_names(__name__, __file__)

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
