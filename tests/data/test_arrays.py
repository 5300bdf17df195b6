"""Tables of counts."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from crowdppl.data import Annotations
from crowdppl.data.arrays import expected_counts, midranks


def test_expected_counts_are_sums_of_label_probabilities_by_worker_and_annotation():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"task": rng.integers(0, 60, 200), "worker": rng.integers(0, 30, 200)})
    frame["label"], frame["count"] = rng.integers(0, 3, 200), rng.integers(1, 3, 200)
    annotations = Annotations.from_frame(frame, count="count", ordered=False)
    truth = rng.dirichlet(np.ones(3), annotations.n_tasks)
    expected = np.zeros((annotations.n_workers, 3, 3))
    rows = zip(annotations.task, annotations.worker, annotations.label, annotations.count, strict=True)
    for task, worker, label, count in rows:
        expected[worker, :, label] += count * truth[task]
    np.testing.assert_allclose(expected_counts(annotations, annotations.label, truth), expected)
    by_row = expected_counts(annotations, annotations.label, truth[annotations.task], by_row=True)
    np.testing.assert_allclose(by_row, expected)


@pytest.mark.parametrize("values", [[], [0.5], [3, 1, 3, 2, 1, 3]])
def test_midranks_are_those_of_scipy(values):
    np.testing.assert_array_equal(midranks(np.array(values)), rankdata(values))
