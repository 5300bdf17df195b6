"""SVI on crowds so small that its guide alone could stray: right, or warned of."""

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.data.kinds import Ordered

ALL_SIZES = ("dawid_skene", "one_coin", "annotator_groups", "common_individual")
OF_FORTY = (
    "two_coin",
    "mace",
    "glad",
    "item_response",
    "hierarchical_dawid_skene",
    "worker_clusters",
    "independent_confusion_subtypes",
    "confusion_from_features",
    "difficulty",
    "score_factor",
)
"""Stories tried on 40 tasks alone; of those of an order one."""

OF_AN_ORDER = ("score_factor",)
SEEDS_OF = {"difficulty": range(20)}
"""Of a story of which five crowds say too little: single ones are some tasks above the votes or below."""

TWO_CLASSES = ("two_coin", "item_response")
AT_ONCE = (("dawid_skene", 40), ("one_coin", 40))  # the others are slow
SEEDS = range(5)


def crowd(seed, n_tasks=60, n_classes=3):
    """Ten workers, five annotations a task."""
    sizes = {"n_tasks": n_tasks, "n_workers": 10, "n_classes": n_classes, "annotations_per_task": 5}
    return cp.simulate("dawid_skene", seed=seed, **sizes)[0]


def right(fit):
    return 100 * (fit.posterior.argmax(-1) == np.asarray(fit.annotations.gold)).mean()


def right_by_votes(annotations):
    """Percent of the tasks of which the votes are right; of tied ones what a draw would be."""
    votes, gold = np.asarray(annotations.votes()), np.asarray(annotations.gold)
    most = votes == votes.max(-1, keepdims=True)
    return 100 * (most[np.arange(len(gold)), gold] / most.sum(-1)).mean()


@pytest.mark.parametrize(
    ("story", "n_tasks"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case not in AT_ONCE))
        for case in [*((story, n) for story in ALL_SIZES for n in (20, 40, 60)), *((story, 40) for story in OF_FORTY)]
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_by_svi_are_as_often_right_as_the_votes_or_are_warned_of(story, n_tasks):
    """In the mean of those crowds that no warning is of, at least as often less a point."""
    above = []
    for seed in SEEDS_OF.get(story, SEEDS):
        annotations = crowd(seed, n_tasks, n_classes=2 if story in TWO_CLASSES else 3)
        annotations = annotations.replace(kind=Ordered()) if story in OF_AN_ORDER else annotations
        fit = cp.fit(story, annotations, method="svi", progress=False)
        if not any(finding.severity == "warning" for finding in fit.findings):
            above.append(right(fit) - right_by_votes(annotations))
    assert np.mean(above or [0.0]) >= -1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_of_common_individual_by_svi_are_as_often_right_as_those_by_nuts():
    """In the mean of five crowds at least those of NUTS less a point; draws are few, since labels need few."""
    by = {"svi": [], "nuts": []}
    for seed in SEEDS:
        annotations = crowd(seed)
        for method, options in (("svi", {}), ("nuts", {"chains": 2, "warmup": 200, "draws": 200})):
            by[method].append(right(cp.fit("common_individual", annotations, method=method, progress=False, **options)))
    assert np.mean(by["svi"]) >= np.mean(by["nuts"]) - 1
