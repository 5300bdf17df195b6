"""Every story with every option that changes its sites, on annotations that are as small as they can be."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import random_annotations

from crowdppl import Annotations, Classifier, Prevalence
from crowdppl.data import Ids
from crowdppl.models import STORIES, Given

N_TASKS, N_WORKERS, N_ROWS = 6, 3, 14


class Option(NamedTuple):
    """A story with its hyperparameters, and the annotations that they need."""

    story: str
    options: dict[str, Any]
    has: tuple[
        str, ...
    ] = ()  # of ``features``, ``worker_features``, ``prior``, ``evidence``, ``count``, ``abstentions``

    @property
    def name(self) -> str:
        return "-".join([self.story, *(f"{name}={value}" for name, value in self.options.items()), *self.has])

    def annotations(self) -> Annotations:
        rng = np.random.default_rng(7)
        plain = random_annotations(rng, n_tasks=N_TASKS, n_workers=N_WORKERS, n_classes=2, n_rows=N_ROWS)
        extra = {
            "features": rng.normal(size=(N_TASKS, 2)),
            "worker_features": rng.normal(size=(N_WORKERS, 2)),
            "prior": rng.dirichlet([1, 1], N_TASKS),
            "evidence": rng.normal(size=(N_TASKS, 2)),
            "count": rng.integers(1, 4, N_ROWS),
        }
        known = plain.replace(**{name: extra[name].astype(np.float32) for name in self.has if name in extra})
        if "abstentions" not in self.has:
            return known
        return known.replace(label=rng.integers(0, 4, N_ROWS).astype(np.int32), abstentions=Ids([2, 3]))


STAND_FOR_OTHERS = ("dawid_skene", "glad", "annotator_groups", "independent_confusion_subtypes")
"""Stories of each kind of emission: rows by worker, scores by task, groups, and subtypes that a task shares."""


def every_story() -> list[Any]:
    """Return all stories as parameters, for a test of what is written once over them.

    Those that stand for the others are tried each time, the others with the long tests.
    """
    return [s if s in STAND_FOR_OTHERS else pytest.param(s, marks=pytest.mark.long) for s in STORIES]


DEFAULTS = [Option(story, {}) for story in STORIES]
FURTHER = [
    Option("dawid_skene", {"truth_prior": Prevalence((1.0, 2.0))}),
    Option("dawid_skene", {}, ("evidence", "count")),
    Option("dawid_skene", {"truth_prior": Given()}, ("prior",)),
    Option("dawid_skene", {"truth_prior": Classifier("logistic", prior=1.0)}, ("features",)),
    Option("difficulty", {"votes_as_prior": False, "by_class": False}),
    Option("difficulty", {"truth_prior": Given()}, ("prior",)),
    Option("difficulty", {"truth_prior": Classifier("logistic", prior=1.0)}, ("features",)),
    Option("annotator_groups", {"membership": "worker"}),
    Option("annotator_groups", {"membership": "worker", "truth": "answer"}),
    Option("annotator_groups", {"truth": "answer"}),
    Option("annotator_groups", {"groups": 1}),
    Option("annotator_groups", {"gated": True}, ("features",)),
    Option("common_individual", {"embedding": 2}, ("features",)),
    Option("common_individual", {"embedding": 2, "separation": 0.1}, ("features", "worker_features")),
    Option("common_individual", {"by_task": False}, ("features",)),
    Option("common_individual", {"groups": 2}),
    Option("common_individual", {"embedding": 2, "hidden": 3, "bias": True, "temperature": 0.5}, ("features",)),
    Option("common_individual", {"truth": "answer", "embedding": 2, "truth_prior": Given()}, ("features", "prior")),
    Option(
        "common_individual",
        {"truth": "answer", "kernels": "free", "embedding": 2, "hidden": 3, "bias": True, "truth_prior": Given()},
        ("features", "prior"),
    ),
    Option("confusion_from_features", {}, ("features", "worker_features")),
    Option("confusion_from_features", {"hidden": 3, "embedding": 2}, ("features",)),
    Option("confusion_from_features", {"hidden": 3, "embedding": 2, "by_task": False}, ("worker_features",)),
    Option("confusion_from_features", {"truth": "answer", "truth_prior": Given()}, ("features", "prior")),
    Option("dawid_skene", {"shared_error": True}),
    Option("dawid_skene", {"task_difficulty": True}),
    Option("glad", {"shared_error": True, "task_difficulty": True}, ("abstentions", "count")),
    Option("item_response", {"difficulty": False}),
    Option("item_response", {"discrimination": True, "guessing": True}),
    Option("worker_clusters", {"clusters": 1}),
    Option("independent_confusion_subtypes", {"subtypes": 1}),
    Option("dawid_skene", {}, ("abstentions", "count")),
    Option("glad", {}, ("abstentions",)),
    Option("annotator_groups", {"truth": "answer"}, ("abstentions",)),
    Option("independent_confusion_subtypes", {}, ("abstentions",)),
]


def as_parameters(options: Iterable[Option]) -> list[Any]:
    """Return options as parameters, for a test of what is written once over them.

    Those of a story that is tried without them too are with the long tests, unless they lie over every story.
    """
    further = [o for o in FURTHER if o.story != "dawid_skene" and "abstentions" not in o.has]
    return [pytest.param(o, id=o.name, marks=pytest.mark.long if o in further else ()) for o in options]
