"""Connected parts of a graph are SciPy's."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from crowdppl.data.arrays import connected_parts


@pytest.mark.parametrize(("n", "n_edges"), [(1, 0), (5, 0), (50, 20), (1000, 700), (1000, 5000), (20, 5000)])
def test_parts_are_numbered_as_scipy_numbers_them(n, n_edges):
    first, second = np.random.default_rng(n_edges).integers(0, n, (2, n_edges))
    graph = coo_matrix((np.ones(n_edges), (first, second)), (n, n))
    expected = connected_components(graph, directed=False)[1]
    np.testing.assert_array_equal(connected_parts(first, second, n), expected)


def test_a_path_in_any_order_is_one_part():
    nodes = np.random.default_rng(0).permutation(2000)
    assert set(connected_parts(nodes[:-1], nodes[1:], 2000)) == {0}
