"""Draws around a mode of any size: of much data over the tasks alone whose labels are uncertain.

The labels that are sure stay what they are in every step of data augmentation; so they count with their probabilities
once, and a step costs in proportion to the other tasks (:func:`.sparse_em.holding_tasks`), where all that is drawn are
probability tables whose posterior given the labels is a Dirichlet distribution.
"""

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.padding import PaddedAnnotations
from ..densities.augmented import Draws, Steps, augmented_draws
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.padded_sites import cut, grown
from ..densities.portable import counted_once, sized
from ..densities.sites import Dims, parameter_names
from . import sparse_em
from .progress import late_bar
from .sparse_em import holding_tasks

NAME = "draws around the point"
LITTLE = 2**17  # rows as far as which another program takes longer than it saves
ENOUGH = 500  # tasks from which on label probabilities at the mode say how many labels are sure
MOST_WORKERS = 0.9  # share of workers of whom no more is missing than counts
SURE = 0.999  # probability from which on a label counts with its probabilities in all draws


def draws_around(
    model: Model,
    annotations: Annotations,
    mode: Parameters,
    fixed: Parameters,
    dims: Dims,
    posterior: np.ndarray,
    n: int,
    *,
    progress: bool = True,
) -> tuple[Draws, bool]:
    """Draws of the parameters around a mode, by site, ``(n, ...)``, and whether those of real values went far enough.

    Args:
        mode: the parameters that are drawn, by site.
        fixed: those that stay where they are.
        posterior: label probabilities at the mode, ``(N, K)``.
        n: how many draws at the most: :func:`.augmented_draws`.
    """
    known = dims.keys() >= mode.keys()
    alike = counted_once(model, annotations, dims) if known else None
    sure = np.asarray(posterior).max(-1)
    moving = sure < max(SURE, np.nextafter(sure.min(), 2))  # the least sure one in any case
    apart = known and alike is None and not fixed and not model.truth_prior.joint
    is_much = apart and sparse_em.pays(annotations, moving, LITTLE)
    if is_much and parameter_names(model, annotations).tables == mode.keys():
        held, seen, values = sparse_em.apart(model, annotations, moving, mode, dims)
        steps = Steps.at(holding_tasks(model, held, {}), seen, values, {})
        if not steps.in_leaps:
            with late_bar(NAME, show=progress) as tell:
                found, went_far = augmented_draws(steps, values, n, missing=_missing(annotations, moving), tell=tell)
            return cut(found, dims, annotations, leading=1), went_far
    seen = alike or (sized(model, annotations, briefly=True) if known else annotations)
    if isinstance(seen, PaddedAnnotations):
        mode, fixed = grown(mode, dims, seen), grown(fixed, dims, seen)
    steps = Steps.at(model, seen, mode, fixed)
    says_it = annotations.n_tasks >= ENOUGH and not steps.in_leaps and not model.truth_prior.joint
    missing = _missing(annotations, moving) if says_it else None
    with late_bar(NAME, show=progress) as tell:
        found, went_far = augmented_draws(steps, mode, n, missing=missing, tell=tell)
    return cut(found, dims, annotations, leading=1), went_far


def _missing(annotations: Annotations, moving: np.ndarray) -> float:
    """The share of a worker's annotations that are to tasks whose labels are not sure; nine in ten workers have less.

    What a sure label tells is all there. Where workers have no names it is the share of all annotations.
    """
    of_row = moving[annotations.task]
    weight = counts(annotations)
    if annotations.worker is None:
        return float((weight * of_row).sum() / weight.sum())
    worker, count = np.asarray(annotations.worker), annotations.count
    n = np.bincount(worker, count, annotations.n_workers)
    of_moving = np.bincount(worker[of_row], None if count is None else weight[of_row], annotations.n_workers)
    return float(np.quantile(of_moving[n > 0] / n[n > 0], MOST_WORKERS))
