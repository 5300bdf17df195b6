"""Every plot draws in the axes that it is given: one as `ax`, several as `axes`."""

import inspect

import matplotlib.pyplot as plt
import pytest

import crowdppl as cp
from crowdppl.inference.plots.style import given_axes

PLOTS = [name for name in dir(cp) if name.startswith("plot_")]


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_takes_ax(name):
    assert "ax" in inspect.signature(getattr(cp, name)).parameters


def test_one_axes_are_enough_for_one_panel():
    ax = plt.figure().add_subplot()
    assert list(given_axes(None, ax, 1, "groups")) == [ax]
    assert given_axes(None, None, 1, "groups") is None


def test_one_axes_are_too_few_for_several_panels():
    ax = plt.figure().add_subplot()
    with pytest.raises(ValueError, match="ax=1 axes: the 3 groups need one each; give axes=, a list of 3"):
        given_axes(None, ax, 3, "3 groups")
    with pytest.raises(ValueError, match="give one of them"):
        given_axes([ax], ax, 1, "groups")


def test_a_worker_is_drawn_beside_annotations_of_nobody():
    annotations = cp.load_dataset("anesthesia")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    left, right = plt.subplots(1, 2)[1]
    assert list(cp.plot_confusions(fit, workers=[3], ax=left)) == [left]
    votes = cp.Annotations.from_counts(annotations.votes().astype(int))
    assert list(cp.plot_annotations(votes, ax=right)) == [right]
    assert left.images
    assert right.patches
    with pytest.raises(ValueError, match="give axes=, a list of 2"):
        cp.plot_annotations(annotations, ax=right)
