"""Decisions against the expected costs of every label, computed in loops."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdppl.inference.fitted.decisions import decide


def table(rows, classes="abc"):
    return pd.DataFrame(rows, columns=list(classes), index=pd.Index(range(len(rows)), name="task"))


@given(st.integers(0, 2**31))
def test_no_label_costs_less_than_the_one_taken(seed):
    rng = np.random.default_rng(seed)
    probabilities, costs = table(rng.dirichlet(np.ones(3), 6)), rng.random((3, 3))
    decided = decide(probabilities, costs=costs)
    for row, p in zip(decided.itertuples(), probabilities.to_numpy(), strict=True):
        expected = [sum(p[k] * costs[k, label] for k in range(3)) for label in range(3)]
        assert row.expected_cost == pytest.approx(min(expected))
        assert expected["abc".index(row.label)] == pytest.approx(min(expected))


def test_without_costs_the_most_probable_class_is_taken_and_its_cost_is_the_rest():
    decided = decide(table([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]))
    assert list(decided["label"]) == ["b", "a"]
    np.testing.assert_allclose(decided["expected_cost"], [0.5, 0.6])
    np.testing.assert_allclose(decided["probability"], [0.5, 0.4])


def test_costs_as_a_frame_are_read_by_name():
    costs = pd.DataFrame([[0, 1], [9, 0]], index=["b", "a"], columns=["b", "a"])  # calling an a "b" costs 9
    assert list(decide(table([[0.2, 0.8]], "ab"), costs=costs)["label"]) == ["a"]


def test_a_task_that_would_cost_more_than_abstaining_gets_no_label():
    decided = decide(table([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]), abstain=0.3)
    assert list(decided["label"]) == [None, "a"]
    np.testing.assert_allclose(decided["expected_cost"], [0.3, 0.1])
    assert np.isnan(decided["probability"][0])


@pytest.mark.parametrize(("positive", "labels"), [(None, ["a", "b", "b"]), ("a", ["a", "a", "b"])])
def test_a_threshold_labels_positive_from_it_on(positive, labels):
    probabilities = table([[0.75, 0.25], [0.7, 0.3], [0.1, 0.9]], "ab")
    threshold = 0.3 if positive is None else 0.7
    assert list(decide(probabilities, threshold=threshold, positive=positive)["label"]) == labels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "needs two classes, these are 3"),
        ({"costs": np.zeros((2, 2))}, r"costs of shape \(2, 2\)"),
        ({"costs": pd.DataFrame(0, index=list("abx"), columns=list("abc"))}, "no row or no column for the class 'c'"),
        ({"costs": np.full((3, 3), np.nan)}, "row 'a' .* column 'a' .*: nan; a finite number, zero or more"),
        ({"costs": np.eye(3) - 2 * (np.arange(3) == 2)}, "row 'a' .* column 'c' .*: -2; a finite number, zero or mo"),
        ({"abstain": "0.2"}, "abstain='0.2': .* a number, zero or more"),
        ({"abstain": -1}, "zero or more"),
        ({"threshold": 0.5, "costs": np.eye(3)}, "not both"),
    ],
)
def test_unfit_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        decide(table([[0.2, 0.5, 0.3]]), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"threshold": 1.5}, "0 to 1"), ({"threshold": 0.5, "positive": "z"}, "'z' is no class")],
)
def test_unfit_thresholds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        decide(table([[0.5, 0.5]], "ab"), **options)


def test_no_label_that_would_cost_more_than_any_is_refused():
    frame = pd.DataFrame([[0.6, 0.4]], index=["t"], columns=["a", "b"])
    with pytest.raises(ValueError, match="abstain=1: no label costs more than 1"):
        decide(frame, abstain=1)
    assert decide(frame, costs=[[0, 4], [3, 0]], abstain=1).label.tolist() == [None]


def test_costs_that_are_no_table_are_refused_with_one_that_would_do():
    posterior = pd.DataFrame([[0.3, 0.7]], columns=["bad", "good"])
    with pytest.raises(ValueError, match=r"numbers is needed, .*pd\.DataFrame\(1\.0, index=\['bad'"):
        decide(posterior, costs={"bad": {"good": 5}})


@pytest.mark.parametrize(("classes", "kind"), [([3, 4], "int64"), ([False, True], "bool"), (["3", "4"], "object")])
def test_labels_have_the_type_of_the_classes_and_none_has_a_place_among_them(classes, kind):
    probabilities = table([[0.1, 0.9], [0.55, 0.45]], classes)
    assert decide(probabilities)["label"].dtype == kind
    assert decide(probabilities)["label"].tolist() == [classes[1], classes[0]]
    assert decide(probabilities, abstain=0.3)["label"].tolist() == [classes[1], None]
