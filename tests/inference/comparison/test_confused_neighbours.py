"""Whether annotations bear out the order of their classes, whichever classes are frequent."""

from itertools import permutations

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.data.kinds import Ordered
from crowdppl.inference.comparison.confused_neighbours import neighbours_are_confused


def of_scale(n_classes, shares, seed=0):
    """200 tasks by 6 workers who err by normal noise along a scale, of classes with these shares."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, 200, p=shares)
    return np.clip(np.rint(truth[:, None] + rng.normal(0, 0.8, (200, 6))), 0, n_classes - 1).astype(int)


def as_scores(given):
    return cp.Annotations.from_matrix(given, ordered=list(range(given.max() + 1)))


@pytest.mark.parametrize("shares", [[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.05, 0.05, 0.8, 0.1]])
def test_of_all_orders_of_the_classes_of_a_scale_its_own_is_borne_out(shares):
    given = of_scale(4, shares)
    passed = [order for order in permutations(range(4)) if neighbours_are_confused(as_scores(np.array(order)[given]))]
    assert (0, 1, 2, 3) in passed
    assert len(passed) <= 6  # the other end first, and orders with two neighbours exchanged


def test_errors_that_know_no_distance_and_noise_bear_out_no_order():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 7, (600, 1))
    names = np.where(rng.random((600, 6)) < 0.7, truth, rng.integers(0, 7, (600, 6)))
    assert not neighbours_are_confused(as_scores(names))
    assert not neighbours_are_confused(as_scores(rng.integers(0, 7, (600, 6))))


@pytest.mark.parametrize(
    ("name", "expected"), [("adult", True), ("judges_asset", True), ("dog", False), ("relevance", False)]
)
def test_of_open_crowds_those_with_a_scale_bear_it_out(name, expected, real):
    assert neighbours_are_confused(real(name).replace(kind=Ordered())) is expected
