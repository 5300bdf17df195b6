"""Gold labels and other models' probabilities, in what every engine is given."""

import numpy as np
import pandas as pd
import pytest

from crowdppl import AnnotationError, Annotations, fit
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.densities.model import Model
from crowdppl.models import find_story


@pytest.fixture
def annotations():
    return Annotations.from_dict(
        {"t1": {"w1": "x", "w2": "y"}, "t2": {"w1": "y", "w2": "y"}, "t3": {"w1": "x"}}, gold={"t2": "x"}
    )


def test_without_evidence_there_is_none(annotations):
    assert with_evidence(annotations).evidence is None
    assert with_evidence(annotations, gold=False).evidence is None


def test_gold_leaves_one_class(annotations):
    np.testing.assert_array_equal(with_evidence(annotations, gold=True).evidence, [[0, 0], [0, -np.inf], [0, 0]])
    other = with_evidence(annotations, gold={"t1": "y", "t3": "x"}).evidence
    np.testing.assert_array_equal(other, [[-np.inf, 0], [0, 0], [0, -np.inf]])


def test_probabilities_are_read_by_task_and_class(annotations):
    frame = pd.DataFrame([[0.9, 0.1]], index=["t3"], columns=["y", "x"])
    np.testing.assert_allclose(
        np.exp(with_evidence(annotations, evidence=frame).evidence), [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]], rtol=1e-6
    )


def test_gold_overrules_probabilities(annotations):
    evidence = np.array([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    both = with_evidence(annotations, gold=True, evidence=evidence).evidence
    assert both[1, 1] == -np.inf
    assert np.isfinite(both[1, 0])


def test_evidence_adds_its_log_odds_to_the_posterior(annotations):
    evidence = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    theta = {
        "prevalence": np.array([0.3, 0.7], "f4"),
        "confusion": np.array([[[0.8, 0.2], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]]], "f4"),
    }
    model = Model(find_story("dawid_skene"))
    without, told = (
        density(model, theta, a).posterior for a in (annotations, with_evidence(annotations, None, evidence))
    )
    shift = np.log(told[:, 0] / told[:, 1]) - np.log(without[:, 0] / without[:, 1])
    np.testing.assert_allclose(shift, [np.log(9), 0, 0], atol=1e-5)


@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_gold_holds_in_every_engine_and_is_not_used_unasked(annotations, method):
    short = {
        "em": {},
        "svi": {"max_iterations": 200, "draws": 50},
        "nuts": {"chains": 1, "warmup": 50, "draws": 50},
    }[method]
    told = fit("dawid_skene", annotations, method=method, gold=True, progress=False, **short)
    assert told.probabilities.loc["t2", "x"] == 1.0
    assert "whose labels the fit used" in str(told.summary())
    untold = fit("dawid_skene", annotations, method=method, progress=False, **short)
    assert untold.probabilities.loc["t2", "x"] < 0.5
    assert "did not use" in str(untold.summary())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gold": {"t9": "x"}}, "t9"),
        ({"gold": {"t1": "z"}}, "z"),
        ({"evidence": np.ones((3, 2))}, r"task 't1': \[1.0, 1.0\] are no probabilities"),
        ({"evidence": np.ones((2, 2))}, r"shape is \(2, 2\); \(tasks, classes\) = \(3, 2\)"),
        ({"evidence": pd.DataFrame([[0.5, 0.5]], index=["t9"], columns=["x", "y"])}, "task 't9' is not in"),
        ({"evidence": pd.DataFrame([[0.5, 0.5]], index=["t1"], columns=["x", "q"])}, "column 'q' is no class"),
        ({"evidence": pd.DataFrame([[0.5, 0.5]] * 2, ["t1", "t1"], ["x", "y"])}, "task 't1' has two rows"),
        ({"evidence": np.array([[np.nan, 1], [0.5, 0.5], [0.5, 0.5]])}, "no probabilities"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(annotations, options, message):
    with pytest.raises(AnnotationError, match=message):
        with_evidence(annotations, **options)


def test_gold_true_without_gold_labels_is_refused(annotations):
    with pytest.raises(AnnotationError, match="carry no gold labels"):
        with_evidence(annotations.with_gold(None), gold=True)
