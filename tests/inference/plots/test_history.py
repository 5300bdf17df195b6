"""The history of an engine is drawn as it was, and its absence is explained."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_fits import changed

from crowdppl.inference.plots.history import plot_history


def test_the_history_is_drawn_in_the_axes_given(em):
    figure, ax = plt.subplots()
    assert plot_history(em, ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), em.history)
    assert plt.get_fignums() == [figure.number]


def test_the_history_of_svi_has_its_running_mean(svi):
    each, mean = plot_history(svi).lines
    np.testing.assert_allclose(each.get_ydata(), svi.history)
    assert np.std(np.diff(mean.get_ydata())) < np.std(np.diff(each.get_ydata()))


def test_a_fit_without_a_history_is_refused_with_what_to_look_at(em):
    nuts = changed(em, method="nuts", outcome=em.outcome._replace(history=np.zeros(0)))
    with pytest.raises(ValueError, match=r"'nuts' has no history.*arviz\.plot_trace"):
        plot_history(nuts)
