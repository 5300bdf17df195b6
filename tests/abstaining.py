"""Small annotations with abstentions, for the tests of several rooms."""

import warnings

import numpy as np
import pandas as pd

from crowdppl import Annotations

ABSTAIN = ["?", "none of these"]


def with_abstentions(seed=0, *, n_tasks=6, n_workers=3, n_classes=2, n_rows=20, abstain=ABSTAIN, **options):
    """Rows drawn at random of classes and abstentions, all tasks, workers and classes declared."""
    rng = np.random.default_rng(seed)
    kinds = np.array([*range(n_classes), *abstain], dtype=object)
    frame = pd.DataFrame(
        {
            "task": rng.integers(0, n_tasks - 1, n_rows),
            "worker": rng.integers(0, n_workers, n_rows),
            "label": kinds[rng.integers(0, len(kinds), n_rows)],
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what random rows leave without a class
        return Annotations.from_frame(
            frame, tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes), abstain=abstain, **options
        )
