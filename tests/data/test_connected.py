"""Connected parts of a graph are what paths along its edges join."""

import numpy as np
import pytest

from crowdppl.data.arrays import connected_parts


@pytest.mark.parametrize(("n", "n_edges"), [(1, 0), (5, 0), (50, 20), (100, 70), (100, 500), (20, 5000)])
def test_nodes_are_of_one_part_where_a_path_joins_them(n, n_edges):
    first, second = np.random.default_rng(n_edges).integers(0, n, (2, n_edges))
    joined = np.eye(n, dtype=bool)
    joined[first, second] = joined[second, first] = True
    for _ in range(int(np.ceil(np.log2(n)))):  # each time paths twice as long
        joined = joined @ joined
    parts = connected_parts(first, second, n)
    np.testing.assert_array_equal(parts[:, None] == parts, joined)


def test_parts_are_numbered_in_the_order_of_their_first_nodes():
    first, second = np.random.default_rng(0).integers(0, 50, (2, 20))
    _, begins = np.unique(connected_parts(first, second, 50), return_index=True)
    assert (np.diff(begins) > 0).all()


def test_a_path_in_any_order_is_one_part():
    nodes = np.random.default_rng(0).permutation(2000)
    assert set(connected_parts(nodes[:-1], nodes[1:], 2000)) == {0}
