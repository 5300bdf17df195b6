"""Lists in sentences leave out several names or none, and say how many."""

import pytest

from crowdppl.data.id_text import listing, n_shown


@pytest.mark.parametrize("n", range(1, 12))
def test_a_list_names_all_or_leaves_out_two_or_more_and_counts_them(n):
    names, most = [f"n{i}" for i in range(n)], 4
    said = listing(names, most, str, of="classes")
    named = [name for name in names if name in said.replace(",", "").split()]
    assert named == names[: len(named)]
    if len(named) < n:
        assert len(named) == most
        assert n - most > 1
        assert said.endswith(f" and {n - most} more classes")
    assert n_shown(n, most) == len(named)
