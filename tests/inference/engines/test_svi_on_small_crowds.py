"""SVI of a story with a switch between two confusion matrices, on crowds so small that its guide alone could stray."""

import numpy as np
import pytest

import crowdppl as cp

SEEDS = range(5)


def crowd(seed):
    """Sixty tasks of three classes, ten workers, five annotations a task."""
    return cp.simulate("dawid_skene", n_tasks=60, n_workers=10, n_classes=3, annotations_per_task=5, seed=seed)[0]


def right(fit):
    return 100 * (fit.posterior.argmax(-1) == np.asarray(fit.annotations.gold)).mean()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_of_common_individual_by_svi_are_as_often_right_as_those_by_nuts():
    """In the mean of five crowds at least those of NUTS less a point; draws are few, since labels need few."""
    by = {"svi": [], "nuts": []}
    for seed in SEEDS:
        annotations = crowd(seed)
        for method, options in (("svi", {}), ("nuts", {"chains": 2, "warmup": 200, "draws": 200})):
            by[method].append(right(cp.fit("common_individual", annotations, method=method, progress=False, **options)))
    assert np.mean(by["svi"]) >= np.mean(by["nuts"]) - 1
