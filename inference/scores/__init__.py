"""Scores of labels and of confusion matrices where the truth is known."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .calibration import expected_calibration_error, reliability
    from .divergences import confusion_divergences, empirical_confusions, worker_divergences
    from .error_bound import annotations_needed, label_error_bound
    from .estimates import Estimate, estimate
    from .gold_plan import GoldNeeded, gold_needed
    from .label_calibration import LabelCalibration, calibrate_labels
    from .label_scores import label_confusion, roc, score
    from .worker_agreement import Agreement, agreement

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = [
    "Agreement",
    "Estimate",
    "GoldNeeded",
    "LabelCalibration",
    "agreement",
    "annotations_needed",
    "calibrate_labels",
    "confusion_divergences",
    "empirical_confusions",
    "estimate",
    "expected_calibration_error",
    "gold_needed",
    "label_confusion",
    "label_error_bound",
    "reliability",
    "roc",
    "score",
    "worker_divergences",
]
