"""On crowds of twenty to sixty tasks SVI's label probabilities are those of NUTS: part of ``benchmarks/thin.py``."""

import numpy as np
import pytest

import crowdppl as cp


@pytest.mark.slow
@pytest.mark.parametrize("story", ["dawid_skene", "one_coin"])
def test_label_probabilities_of_svi_are_those_of_nuts(story):
    """Of one_coin the guide's are, too; of dawid_skene they are too sure."""
    annotations = cp.simulate("dawid_skene", n_tasks=40, n_workers=10, annotations_per_task=4, diagonal=2.0, seed=1)[0]
    options = {"progress": False, "seed": 0}
    exact, guide, swept = (
        np.asarray(cp.fit(story, annotations.without_gold(), **options, **engine).posterior)
        for engine in (
            {"method": "nuts", "chains": 2},
            {"method": "svi", "sweeps": 0},
            {"method": "svi"},
        )
    )
    off = [np.abs(found - exact).mean() for found in (guide, swept)]
    assert off[1] < 0.02  # the Monte Carlo error of both
    assert story == "one_coin" or off[1] < off[0]
