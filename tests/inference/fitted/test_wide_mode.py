"""EM says where its mode has a scale that is too large."""

import numpy as np
import pytest

import crowdppl as cp


def said(fit):
    return [text for text in fit.warnings if "differ more than they do" in text]


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_em_says_that_workers_of_few_annotations_differ_more_at_the_mode_than_they_do():
    """Nine of ten labels are said to be right, and four are; votes are right for 55 %."""
    sizes = {"n_tasks": 3000, "n_workers": 300, "n_classes": 4, "annotations_per_task": 3}
    annotations, parameters = cp.simulate("hierarchical_dawid_skene", **sizes, seed=12)
    fit = cp.fit("hierarchical_dawid_skene", annotations.without_gold(), progress=False)
    right = (fit.labels["label"].to_numpy() == np.asarray(annotations.gold)).mean()
    assert fit.labels["probability"].mean() - right > 0.3
    assert fit.parameters["spread"].mean() > 3 * parameters["spread"].mean()
    (text,) = said(fit)
    assert "'individual'" in text
    assert "method='svi'" in text


def test_em_says_nothing_of_workers_of_many_annotations_and_of_stories_without_a_learned_scale():
    sizes = {"n_tasks": 1000, "n_workers": 5, "annotations_per_task": 5, "n_classes": 3}
    annotations, _ = cp.simulate("hierarchical_dawid_skene", **sizes, seed=1)
    for story in ("hierarchical_dawid_skene", "dawid_skene", "glad"):
        assert not said(cp.fit(story, annotations.without_gold(), progress=False))
