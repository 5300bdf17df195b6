"""Views of a fit that are computed once."""

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.fitted.remembered import remembered


class Anything:
    """What views are asked of."""


def test_a_view_is_computed_once_for_the_same_options_and_each_has_a_frame_of_its_own():
    asked = []

    @remembered
    def view(fit, power=2, *, seed=0):
        asked.append((power, seed))
        return pd.DataFrame({"n": [power, seed]})

    one, other = Anything(), Anything()
    first = view(one)
    first.loc[0, "n"] = 7
    assert view(one, 2, seed=0)["n"].tolist() == [2, 0]
    assert asked == [(2, 0)]
    assert view(one, 2.0)["n"].tolist() == view(other)["n"].tolist() == [2, 0]
    assert asked == [(2, 0), (2.0, 0), (2, 0)]
    view(one, seed=[1])
    view(one, seed=[1])
    assert len(asked) == 5
    with pytest.raises(TypeError, match="unexpected keyword"):
        view(one, sed=1)


def test_scores_of_workers_are_the_same_frame_again_and_options_are_checked_each_time():
    fit = cp.fit("dawid_skene", cp.load_dataset("toy"), progress=False)
    before = fit.workers
    pd.testing.assert_frame_equal(before, fit.workers)
    assert fit.worker_scores().columns.tolist() == [name for name in before if name not in ("review", "reason")]
    for _ in range(2):
        with pytest.raises(ValueError, match="interval"):
            fit.worker_scores(interval=2)
