"""Knowledge of single tasks beside the annotations: gold labels, and probabilities from another model."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpyro import handlers

from ...data import AnnotationError, Annotations
from ...data.errors import check_name
from ...models import Classifier, Given, StoryError, TruthPrior
from ...models.parts.kernels import SMALLEST
from ...models.parts.truth_prior import ClassPrior, FixedPrevalence, by_name, is_torch_module
from .probabilities import refuse_others, values_of

INFORMATIVE, UNINFORMATIVE = "informative", "uninformative"
"""Values of ``abstentions``."""

Gold = bool | Mapping | pd.Series | pd.DataFrame | str | PathLike | None


def with_abstentions_that(annotations: Annotations, are: str | None) -> Annotations:
    """Return the annotations, their abstentions being ``"informative"`` or ``"uninformative"``; None for what they are.

    Raises:
        UnknownNameError: it is another word.
        ValueError: there are no abstentions.
    """
    if are is None:
        return annotations
    check_name("value of abstentions", are, (INFORMATIVE, UNINFORMATIVE))
    if not annotations.abstains:
        raise ValueError(
            f"abstentions={are!r}: the annotations have no abstentions; name the values that are no class when you "
            "make them, as in Annotations.from_frame(frame, abstain=['abstain'])"
        )
    return annotations.replace(informative=are == INFORMATIVE)


def with_evidence(
    annotations: Annotations, gold: Gold = None, evidence: pd.DataFrame | np.ndarray | None = None
) -> Annotations:
    r"""The annotations with log-weights ``(N, K)`` of each task's classes, for the engines to add to the truth's prior.

    Args:
        gold: True for the gold labels that the annotations carry; or labels by task (mapping, series, or frame with
            the columns task and label). A gold task has weight :math:`-\infty` off its class.
        evidence: probabilities of the classes from another model: a frame with tasks as index and classes as columns
            (tasks may be missing), or an array ``(N, K)`` in the order of the annotations. Rows sum to one.

    Raises:
        AnnotationError: for a task or class that the annotations do not know, rows that are no probabilities, or
            gold=True without gold labels.
    """
    labels = _gold_labels(gold, annotations)
    if evidence is None and labels is None:
        return annotations.replace(evidence=None)
    log_weights = np.zeros((annotations.n_tasks, annotations.n_classes), dtype=np.float32)
    if evidence is not None:
        log_weights += np.log(np.maximum(probabilities_of(evidence, annotations), SMALLEST))
    if labels is not None:
        known = labels >= 0
        off = np.arange(annotations.n_classes) != labels[known, None]
        log_weights[known] = np.where(off, -np.inf, log_weights[known])
    return annotations.replace(evidence=log_weights)


def with_truth_prior(
    annotations: Annotations,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    classifier: Any = None,
    *,
    make: Callable[[Any], TruthPrior] = Classifier,
) -> tuple[TruthPrior | None, Annotations]:
    """A truth prior as stories take it, and the annotations with the probabilities that it reads there.

    Args:
        truth_prior: a prior; ``"uniform"``, or shares of the classes, ``(K,)`` or by class; or probabilities of the
            classes by task, as :func:`probabilities_of` takes them.
        classifier: a truth prior that is made of a network, or one that is made already.
        make: the prior of a classifier's network.

    Returns:
        the prior, or None for the story's own, and the annotations.

    Raises:
        ValueError: both a classifier and a truth_prior are given.
        AnnotationError: probabilities that do not fit the annotations.
        StoryError: what is given is no prior.
    """
    if classifier is not None:
        if truth_prior is not None:
            raise ValueError("give a classifier or a truth_prior, not both: a classifier is a prior of the truth")
        is_made = isinstance(classifier, Classifier) and make is Classifier
        prior = classifier if is_made else make(classifier)
        if isinstance(prior, Classifier):
            prior.check(annotations)
        return prior, annotations
    if is_torch_module(truth_prior):
        raise StoryError("truth_prior=…: a torch.nn.Module is given as classifier=module, which takes backend='pyro'")
    truth_prior = by_name(truth_prior, annotations)
    if isinstance(truth_prior, pd.DataFrame | np.ndarray | jax.Array):
        return Given(), annotations.replace(prior=probabilities_of(truth_prior, annotations, "truth_prior"))
    _check_prior(truth_prior, annotations)
    return truth_prior, annotations


def _check_prior(truth_prior: object, annotations: Annotations) -> None:
    """Refuse what is no prior, and a function whose values are no log-probabilities of the classes."""
    if isinstance(truth_prior, FixedPrevalence):
        truth_prior.by_class(annotations)
    if truth_prior is None or isinstance(truth_prior, ClassPrior):
        return
    n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
    if not callable(truth_prior):
        raise StoryError(
            f"truth_prior={truth_prior!r}: a Prevalence such as cp.Prevalence(3.0), 'uniform', shares of the classes "
            "as {class: share} or in a list, probabilities of the classes as a frame or an array (tasks, classes), or "
            "a function of the annotations is needed"
        )
    with handlers.block(), handlers.seed(rng_seed=0):
        values = np.asarray(truth_prior(annotations), dtype=float)
    needed = f"log-probabilities of shape {(n_classes,)} or {(n_tasks, n_classes)}"
    if values.shape not in {(n_classes,), (n_tasks, n_classes)}:
        raise StoryError(f"truth_prior returns an array of shape {values.shape}; {needed} are needed")
    total = np.exp(values).sum(-1)
    if not (np.abs(total - 1) < 1e-3).all():
        raise StoryError(
            f"truth_prior returns {values.reshape(-1, n_classes)[0].tolist()}, whose exponentials do not sum to 1; "
            f"{needed} are needed, such as jnp.log of probabilities"
        )


def _gold_labels(gold: Gold, annotations: Annotations) -> np.ndarray | None:
    if gold is None or gold is False:
        return None
    if gold is not True:
        annotations = annotations.with_gold(gold)
    if annotations.gold is None:
        raise AnnotationError("gold=True, but the annotations carry no gold labels; give gold={task: label, …}")
    return np.asarray(annotations.gold)


def probabilities_of(
    table: pd.DataFrame | np.ndarray, annotations: Annotations, option: str = "evidence"
) -> np.ndarray:
    """Probabilities of the classes of each task, ``(N, K)``, checked; even where a frame does not have the task.

    Args:
        table: a frame with tasks as index and classes as columns, or an array in the order of the annotations.
        option: the argument's name, for messages.

    Raises:
        AnnotationError: for an unknown task or class, another shape, a task with two rows, or rows that are no
            probabilities.
    """
    given = table if isinstance(table, pd.DataFrame) else np.asarray(table)
    values = values_of(option, given, annotations, empty=(1 / annotations.n_classes, 0.0))
    refuse_others(values, lambda row: f"{option} of task {annotations.tasks[row]!r}", annotations.classes)
    return values.astype(np.float32)
