"""What groups of annotators are like, and which of them a worker belongs to, also one whom the fit has not seen."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...models.parts.emissions import SMALLEST
from . import posterior

if TYPE_CHECKING:
    from ..results import Fit


def describe_groups(fit: "Fit", interval: float = 0.9) -> pd.DataFrame:
    """By group: its share of the annotations, its table's entropy in nats, and its similarity to the identity (0 to 1).

    Args:
        fit: of ``annotator_groups``.
        interval: mass of the equal-tailed intervals, where the engine has draws.

    Raises:
        ValueError: the story has no groups.
    """
    _tables(fit)
    names = ("group_share", "group_entropy", "group_similarity")
    draws = fit.derived_draws(*names)
    frame = pd.DataFrame(index=pd.RangeIndex(draws.sizes["group"], name="group"))
    for name in names:
        column, values = name.removeprefix("group_"), draws[name].to_numpy()
        frame[column] = values.mean((0, 1))
        if fit.has_draws:
            tail = (1 - interval) / 2
            frame[f"{column}_low"], frame[f"{column}_high"] = np.quantile(values, [tail, 1 - tail], axis=(0, 1))
    return frame


def group_memberships(fit: "Fit", annotations: Annotations | None = None) -> pd.DataFrame:
    r"""Probability that a worker is of each group, given all of his annotations: workers × groups.

    .. math:: p(m \mid j) \propto \alpha_m \prod_{a \in j} \sum_k P(z_{i_a} = k) \, \beta^{(m)}_{k y_a}

    at the mean of the parameters, with the truth's posterior of each task.

    Args:
        fit: of ``annotator_groups``.
        annotations: of workers in or outside the training data; those of the fit by default. Tasks that the fit has not
            seen get their posterior from these annotations, for which ``membership="answer"`` is needed.

    Raises:
        ValueError: the story has no groups.
        AnnotationError: no worker is named, the classes are others, or a task is new where that cannot be.
    """
    tables = _tables(fit)
    asked = fit.annotations if annotations is None else annotations
    if not asked.named:
        raise AnnotationError("the annotations name no workers, so there is nobody to give a group")
    truth = _truth(fit, asked)
    share = fit.derived["group_share"].to_numpy()
    by_annotation = np.log(np.maximum(np.einsum("ak,mka->am", truth[asked.task], tables[:, :, asked.label]), SMALLEST))
    if asked.count is not None:
        by_annotation *= np.asarray(asked.count)[:, None]
    scores = np.tile(np.log(np.maximum(share, SMALLEST)), (asked.n_workers, 1))
    np.add.at(scores, np.asarray(asked.worker), by_annotation)
    columns = pd.RangeIndex(len(share), name="group")
    return pd.DataFrame(jax.nn.softmax(jnp.asarray(scores)), index=asked.workers.to_index("worker"), columns=columns)


def group_worker_confusions(fit: "Fit", annotations: Annotations | None = None) -> np.ndarray:
    r"""Each worker's table by his groups, :math:`\sum_m p(m \mid j) \, \beta^{(m)}`: ``(J, K, K)``.

    Arguments and errors as of :func:`group_memberships`.
    """
    return np.einsum("jm,mkl->jkl", group_memberships(fit, annotations).to_numpy(), _tables(fit))


def _tables(fit: "Fit") -> np.ndarray:
    if "group_confusion" not in fit.outcome.draws:
        raise ValueError(f"{fit.story} has no groups of annotators; fit annotator_groups")
    return fit.outcome.draws["group_confusion"].mean((0, 1))


def _truth(fit: "Fit", asked: Annotations) -> np.ndarray:
    """The truth's posterior of the tasks asked for, ``(N, K)``: the fit's own where it has seen the task."""
    if asked is fit.annotations:
        return fit.posterior
    if list(asked.classes) != list(fit.annotations.classes):
        raise AnnotationError(
            f"the classes are {list(asked.classes)}, and the fit's are {list(fit.annotations.classes)}; give "
            "classes=fit.annotations.classes when you make the annotations"
        )
    at = fit.annotations.tasks.index_of(list(asked.tasks))
    new = at < 0
    truth = fit.posterior[at]
    if not new.any():
        return truth
    if "worker" in fit.dims.get("weights", ()):
        raise AnnotationError(
            f"task {asked.tasks[int(np.argmax(new))]!r} is none of the fit's, and with membership='worker' nothing is "
            "known of new workers' annotations to new tasks; ask for the fit's own tasks"
        )
    data = asked.replace(gold=None)
    found = np.asarray(posterior.label_posteriors(fit.model, data, fit.outcome.draws, fit.outcome.fixed)).mean(0)
    return np.where(new[:, None], found, truth)
