"""Connected parts of a graph."""

import numpy as np


def connected_parts(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """Return the number of the connected part that each of n nodes is of, ``(n,)``, in the order of their first nodes.

    Parts that an edge joins take the lower of their numbers, until no edge joins two (Shiloach & Vishkin 1982): a few
    passes over the edges, and only over those that still do.

    >>> connected_parts(np.array([3, 0]), np.array([1, 4]), 5).tolist()
    [0, 1, 2, 1, 0]

    Args:
        first: a node of each edge, ``(E,)``.
        second: the other, ``(E,)``.
        n: nodes.
    """
    part = np.arange(n)
    few = max(len(first) // (2 * n), 1)
    for every in (few, 1) if few > 1 else (1,):  # a few edges of each node join nearly all that all edges do
        one_end, other_end = first[::every], second[::every]
        while len(one_end):
            one, other = part[one_end], part[other_end]
            apart = one != other
            one_end, other_end, one, other = (nodes[apart] for nodes in (one_end, other_end, one, other))
            np.minimum.at(part, np.maximum(one, other), np.minimum(one, other))
            while (part != (above := part[part])).any():
                part = above
        if not part.any():  # all nodes are of one part
            break
    found: np.ndarray = np.unique(part, return_inverse=True)[1]
    return found
