"""The majority vote's accuracy on gold tasks."""

import math

import numpy as np
import pytest

from crowdppl.data.gold import majority_accuracy


def test_ties_count_by_the_chance_to_be_right_and_unknown_tasks_do_not_count():
    votes = np.array([[3, 1], [0, 2], [1, 1], [0, 0], [5, 0]])
    gold = np.array([0, 0, 1, 1, -1])
    assert majority_accuracy(votes, gold) == pytest.approx((1 + 0 + 0.5 + 0.5) / 4)


def test_without_gold_labels_there_is_no_accuracy():
    assert math.isnan(majority_accuracy(np.array([[1, 0]]), np.array([-1])))
