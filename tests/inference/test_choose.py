"""Hyperparameters chosen by held-out annotations."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.choose import _chosen, _combinations


@pytest.fixture(scope="module")
def two_kinds():
    """Twenty able workers, and twenty who exchange the classes: 60 annotations of each worker, two kinds of workers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    rows = [
        (task, worker, int((truth[task] ^ (worker >= 24)) ^ (rng.random() < 0.1)))
        for worker in range(40)
        for task in rng.choice(120, 60, replace=False)
    ]
    return cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))


@pytest.fixture(scope="module")
def found(two_kinds):
    return cp.choose(
        "annotator_groups", two_kinds, {"groups": [1, 2, 3]}, membership="worker", folds=2, seed=3, progress=False
    )


def test_the_number_of_kinds_of_workers_is_found_by_held_out_annotations(found):
    assert found.options[found.chosen] == {"groups": 2}
    assert found.fit is found.fits["groups=2"]
    assert found.fit.fitted.model.hyperparameters["groups"] == 2
    assert found.comparison.loc["groups=1", "difference"] < -5 * found.comparison.loc["groups=1", "difference_se"]
    assert "groups=2, chosen of 3" in repr(found)


def test_the_scores_are_those_of_compare(two_kinds):
    options = {"folds": 2, "seed": 3, "progress": False}
    chosen = cp.choose("dawid_skene", two_kinds, {"diagonal": [1.0, 4.0]}, **options)
    pd.testing.assert_frame_equal(chosen.comparison, cp.compare(chosen.fits, **options))


@pytest.mark.parametrize(
    ("difference", "error", "rule", "chosen"),
    [
        ([-30.0, -9.0, 0.0], [5.0, 8.0, 0.0], "best", "c"),
        ([-30.0, -9.0, 0.0], [5.0, 8.0, 0.0], "one_se", "c"),
        ([-30.0, -9.0, 0.0], [5.0, 10.0, 0.0], "one_se", "b"),
        ([-3.9, -0.1, 0.0], [0.1, 0.1, 0.0], "one_se", "a"),
        ([-3.9, -0.1, 0.0], [0.1, 0.1, 0.0], "best", "c"),
    ],
)
def test_the_simplest_that_predicts_about_as_well_is_chosen_or_the_best(difference, error, rule, chosen):
    table = pd.DataFrame({"difference": difference, "difference_se": error}, index=list("abc"))
    assert _chosen(table.sort_values("difference", ascending=False), list("abc"), rule) == chosen


def test_combinations_of_hyperparameters_are_each_a_candidate():
    candidates = {"diagonal": [2.0, 4.0], "off_diagonal": [0.5, 1.0]}
    named = _combinations(candidates, {})
    assert list(named) == [f"diagonal={a}, off_diagonal={b}" for a in (2.0, 4.0) for b in (0.5, 1.0)]
    assert named["diagonal=4.0, off_diagonal=0.5"] == {"diagonal": 4.0, "off_diagonal": 0.5}


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ({}, {}, "two combinations at least"),
        ({"groups": [2]}, {}, "two combinations at least"),
        ({"groups": [2, 2]}, {}, "groups=2 is given twice"),
        (5, {}, "candidates=5: by name the values to try are needed"),
        ({"groups": [1, 2]}, {"groups": 2}, "'groups' is among the candidates and an option too"),
        ({"groups": [1, 2]}, {"rule": "first"}, "first"),
    ],
)
def test_what_nothing_can_be_chosen_of_is_refused(two_kinds, candidates, options, message):
    with pytest.raises(ValueError, match=message):
        cp.choose("annotator_groups", two_kinds, candidates, progress=False, **options)


def test_one_value_in_the_place_of_several_is_named():
    data = cp.load_dataset("anesthesia").without_gold()
    with pytest.raises(ValueError, match="clusters=2 is one value; a list"):
        cp.choose("worker_clusters", data, {"clusters": 2})
