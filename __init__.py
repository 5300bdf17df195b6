"""Generative stories of crowd labels as probabilistic programs.

```python
import crowdppl as cp

annotations = cp.load_dataset("anesthesia")
fit = cp.fit("dawid_skene", annotations, method="nuts", seed=0)
fit.labels, fit.probabilities, fit.workers, fit.idata
```
"""

from .data import (
    AnnotationError,
    Annotations,
    UnknownNameError,
    list_datasets,
    load_dataset,
    load_split,
)
from .inference import ConvergenceWarning, Fit, StorageError, fit, load_fit, simulate
from .inference.calibration import Ranks, calibrate
from .inference.groups import describe_groups, group_memberships, group_worker_tables
from .inference.nuts import use_all_cores
from .inference.plot_ranks import plot_ranks
from .inference.plots import plot_confusions, plot_history, plot_workers
from .models import (
    Classifier,
    Correct,
    Emission,
    Prevalence,
    Responses,
    StoryError,
    Table,
    answer,
    class_log_probs,
    list_stories,
    report,
    tasks,
)

__version__ = "0.1.0"

use_all_cores()

__all__ = [
    "AnnotationError",
    "Annotations",
    "Classifier",
    "ConvergenceWarning",
    "Correct",
    "Emission",
    "Fit",
    "Prevalence",
    "Ranks",
    "Responses",
    "StorageError",
    "StoryError",
    "Table",
    "UnknownNameError",
    "answer",
    "calibrate",
    "class_log_probs",
    "describe_groups",
    "fit",
    "group_memberships",
    "group_worker_tables",
    "list_datasets",
    "list_stories",
    "load_dataset",
    "load_fit",
    "load_split",
    "plot_confusions",
    "plot_history",
    "plot_ranks",
    "plot_workers",
    "report",
    "simulate",
    "tasks",
]
