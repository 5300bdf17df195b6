"""Baselines by name, as `crowdppl.fit` asks for them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.cards import Listing
from ..engines.checkpoints import NOT_KEPT, CheckpointOptions
from ..findings.look import look_at
from ..fitted.by_rule import ByRule
from .max_mig import fit_max_mig
from .two_step import label_by_rule
from .votes import RULES
from .worker_networks import fit_worker_network

BASELINES: dict[str, Callable[..., ByRule]] = {
    **dict.fromkeys(RULES, label_by_rule),
    "doctor_net": fit_worker_network,
    "wdn": fit_worker_network,
    "max_mig": fit_max_mig,
}
"""Functions that fit baselines, by name; each takes the name, the annotations, and :func:`crowdppl.fit`'s options."""

SAYS = {name: rule.says for name, rule in RULES.items()} | {
    "doctor_net": "A network predicts what each worker annotates, and the average of its outputs labels; a classifier.",
    "wdn": "The same with learnt weights of the workers in the average (weighted doctor net).",
    "max_mig": "A classifier and an aggregator of annotations maximise what they tell of each other.",
}
"""One line for each that says what it does."""

OF_STORIES: dict[str, Any] = {
    "method": "em",
    "truth_prior": None,
    "evidence": None,
    "backend": "numpyro",
    "devices": None,
    "abstentions": None,
    "constant_workers": "leave_out",
    "copies": "keep",
}
"""Arguments of :func:`crowdppl.fit` that a baseline has no use for, with their defaults."""


def fit_baseline(
    name: str, annotations: Annotations, *, checkpoints: CheckpointOptions = NOT_KEPT, **options: Any
) -> ByRule:
    """Make a baseline, with the findings on it.

    Arguments are those of :func:`crowdppl.fit` that have a use without a likelihood.

    Args:
        name: one of :data:`BASELINES`.
        checkpoints: where the training of a network is kept.
        options: ``classifier``, ``gold``, ``seed``, ``progress``, and options of the training.

    Raises:
        AnnotationError: for what are no annotations, or none that the baseline can be made of.
        ValueError: for an argument that has no use without a likelihood, or an option that cannot be.
        StoryError: there is a classifier and the tasks have no features.
    """
    if not isinstance(annotations, Annotations):
        raise AnnotationError(
            f"annotations are needed second, got a {type(annotations).__name__}; make them with cp.read(path or table)"
        )
    for option, default in OF_STORIES.items():
        value = options.pop(option, default)
        if value is not default and not (isinstance(value, str) and value == default):
            shown = repr(value) if isinstance(value, str | int) else "…"
            raise ValueError(
                f"{option}={shown}: {name} has no likelihood, so that it has no use for {option}; leave it out, or fit "
                "a story such as dawid_skene"
            )
    found = BASELINES[name](name, annotations, checkpoints=checkpoints, **options)
    return replace(found, findings=(*found.findings, *look_at(found)))


def list_baselines() -> pd.DataFrame:
    """The baselines by name, which have no likelihood, with one line that says what each does."""
    frame = pd.DataFrame({"says": [SAYS[name] for name in BASELINES]}, pd.Index(list(BASELINES), name="baseline"))
    return Listing.of(frame, "`cp.describe_story(name)` has a baseline's options")
