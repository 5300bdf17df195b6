"""What is said of comparisons."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp


def comparisons(*groups, features=None):
    """Three workers who compare the letters of each group, of which the first ones are better."""
    rng = np.random.default_rng(0)
    pairs = [rng.choice(list(group), 2, replace=False) for group in groups for _ in range(40)]
    rows = [
        (left, right, worker, "left" if (left < right) == (rng.random() < 0.85) else "right")
        for left, right in pairs
        for worker in ("ann", "bob", "cleo")
    ]
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
    return cp.Annotations.from_comparisons(frame, item_features=features)


def test_items_that_nothing_connects_are_in_the_findings_and_the_verdict():
    with pytest.warns(UserWarning, match="'a', 'b', 'c'; 'x', 'y', 'z'"):
        annotations = comparisons("abc", "xyz")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    assert [each.code for each in fit.findings] == ["items_apart"]
    assert fit.verdict.trust == "with care"
    assert any("'x', 'y', 'z'" in each for each in fit.verdict.why)


def test_items_that_comparisons_or_features_connect_are_not():
    fit = cp.fit("dawid_skene", comparisons("abc", "cde"), progress=False)
    assert "items_apart" not in {each.code for each in fit.findings}
    length = pd.DataFrame({"length": range(6)}, pd.Index(list("abcxyz"), name="item"))
    fit = cp.fit("dawid_skene", comparisons("abc", "xyz", features=length), progress=False)
    assert "items_apart" not in {each.code for each in fit.findings}
