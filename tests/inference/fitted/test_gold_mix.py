"""Weights and a power from gold labels: the mode of their posterior."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from crowdppl.inference.fitted.gold_mix import (
    CENTRE,
    LEAST,
    PRIOR,
    STIFFNESS,
    Mix,
    learned,
    mixed,
    tempered,
)


@pytest.fixture(scope="module")
def problem():
    """Three components of 30 tasks: one that is right and sure, one that is too sure, one that knows nothing."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 3, 30)
    right = 0.1 + 0.7 * np.eye(3)[gold]
    wrong = 0.001 + 0.997 * np.eye(3)[np.where(rng.random(30) < 0.6, gold, (gold + 1) % 3)]
    return np.stack([right, wrong, np.full((30, 3), 1 / 3)]), gold


def test_weights_and_power_are_the_mode(problem):
    components, gold = problem
    expected = np.array([1.0, 2.0, 1.0])

    def loss(x):
        q = mixed(components, Mix(softmax(x[:3]), np.exp(x[3])))
        prior = PRIOR * expected / 4 @ np.log(softmax(x[:3])) - STIFFNESS * (x[3] - CENTRE) ** 2
        return -np.log(q[np.arange(30), gold]).sum() - prior

    best = minimize(loss, np.zeros(4))
    mix = learned(components, gold, expected)
    np.testing.assert_allclose(mix.weights, softmax(best.x[:3]), atol=0.02)  # the power is one of a grid
    assert np.log(mix.power) == pytest.approx(best.x[3], abs=0.13)
    assert mix.weights[0] > 0.6


def test_few_gold_labels_leave_the_weights_that_are_expected(problem):
    components, gold = problem
    expected = np.array([1.0, 2.0, 1.0])
    near, far = (learned(components[:, :n], gold[:n], expected).weights for n in (1, 30))
    assert np.abs(near - expected / 4).max() < 0.12
    assert np.abs(far - expected / 4).max() > 0.3


def test_a_power_makes_probabilities_less_sure_and_keeps_a_sure_story_from_excluding_a_class():
    p = np.array([[0.9, 0.1], [1.0, 0.0]])
    np.testing.assert_allclose(tempered(p, 1.0)[0], p[0])
    assert tempered(p, 0.5)[0, 0] == pytest.approx(3 / 4)
    assert tempered(p, 1.0)[1, 1] == pytest.approx(LEAST / (1 + LEAST))
