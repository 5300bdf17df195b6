"""How good labels and tables are where the truth is known."""

from .calibration import expected_calibration_error, reliability
from .divergences import empirical_tables, table_divergences, worker_divergences
from .label_scores import label_confusion, roc, score

__all__ = [
    "empirical_tables",
    "expected_calibration_error",
    "label_confusion",
    "reliability",
    "roc",
    "score",
    "table_divergences",
    "worker_divergences",
]
