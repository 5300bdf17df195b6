import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdppl.data import Annotations

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units.
PUBLISHED = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def alpha_by_pairs(by_task):
    """Return 1 − D_o/D_e from the definition: pairs of annotations of one task against pairs of any two."""
    units = [labels for labels in by_task.values() if len(labels) >= 2]
    pooled = [label for labels in units for label in labels]
    n = len(pooled)
    observed = sum(sum(a != b for a, b in itertools.permutations(labels, 2)) / (len(labels) - 1) for labels in units)
    by_chance = sum(a != b for a, b in itertools.permutations(pooled, 2))
    return 1 - (observed / n) / (by_chance / (n * (n - 1))) if by_chance else math.nan


def test_alpha_of_the_published_example_is_0_743():
    matrix = np.array([line.split() for line in PUBLISHED.split("\n") if line]).T
    alpha = Annotations.from_matrix(matrix, missing=".").krippendorff_alpha()
    assert alpha == pytest.approx(0.743, abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=30))
def test_alpha_is_that_of_the_definition_by_pairs_with_repeats_and_tasks_of_any_size(rows):
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    by_task = frame.groupby("task")["label"].apply(list).to_dict()
    expected = alpha_by_pairs(by_task)
    for worker in ("worker", None):
        found = Annotations.from_frame(frame, worker=worker, classes=range(4)).krippendorff_alpha()
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_alpha_is_one_where_all_agree_and_undefined_where_there_is_nothing_to_compare():
    assert Annotations.from_matrix([[0, 0], [1, 1]]).krippendorff_alpha() == 1
    assert math.isnan(Annotations.from_matrix([[0, -1], [-1, 1]]).krippendorff_alpha())
    assert math.isnan(Annotations.from_matrix([[0, 0]], classes=[0, 1]).krippendorff_alpha())
