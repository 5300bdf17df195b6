"""The majority vote's accuracy on gold tasks."""

import numpy as np

from crowdppl.data.gold import right_shares
from crowdppl.data.kinds import NOMINAL


def test_ties_count_by_the_chance_to_be_right():
    votes = np.array([[3, 1], [0, 2], [1, 1], [0, 0]])
    assert right_shares(NOMINAL.majority(votes), np.array([0, 0, 1, 1])).tolist() == [1, 0, 0.5, 0.5]
