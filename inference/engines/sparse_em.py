r"""EM over the tasks whose labels may move, with the label probabilities of all others held fixed.

New annotations move the labels of few tasks: of those that have them, and of those that were uncertain before. The
expected counts :math:`n` of the probability tables from the others are taken once, by a pass over them at the
parameters of an earlier fit; their expected complete log-likelihood is :math:`\sum n \log \theta` up to a constant, and
the story with it as a factor has, on the tasks that move alone, the steps of EM that Neal & Hinton (1998) call
incremental and sparse ("A view of the EM algorithm that justifies incremental, sparse, and other variants"). An
iteration costs in proportion to these tasks. Probability tables move; other parameters stay where they are. Iterations
over everything then have a short way left to where they end.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ...data.padding import MOST_ROWS, PaddedAnnotations
from ...data.some_tasks import some_tasks
from ...models import Story
from ...models.parts.abstaining import with_category_counts
from ...models.parts.kernels import SMALLEST
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.padded_sites import cut, grown
from ..densities.portable import can_be_padded, sized
from ..densities.programs import compiled
from ..densities.sites import Dims
from . import em
from .m_step import sums_over_tasks
from .settings import EMSettings


@dataclass(frozen=True)
class HoldingTasks:
    """A story whose tables have expected counts of other tasks, and whose other parameters stay where they are."""

    story: Story

    def __call__(
        self, annotations: Annotations, *, held: Parameters, fixed: Parameters, **hyperparameters: Any
    ) -> None:
        """Run the story.

        Args:
            annotations: the tasks that are not held.
            held: expected counts by site, of the tasks that are.
            fixed: values by site of the parameters that do not move.
        """
        hidden, values = handlers.block(hide=list(fixed)), handlers.substitute(data=fixed)
        with hidden, values, handlers.trace() as sites:
            self.story(annotations, **hyperparameters)
        for name, count in held.items():
            table = jnp.maximum(sites[name]["value"], SMALLEST)
            numpyro.factor(f"held_{name}", (count * jnp.log(table)).sum())


def holding_tasks(model: Model, held: Parameters, fixed: Parameters) -> Model:
    """The model that has :class:`HoldingTasks` as its story; arguments are those of a run of it."""
    hyperparameters = dict(model.hyperparameters) | {"held": held, "fixed": fixed}
    return Model(HoldingTasks(model.story), hyperparameters, (*model.numbers, "held", "fixed"))


LITTLE = MOST_ROWS  # rows as far as which the fit's own programs serve an update of everything, and others take longer
MOST = 1 / 2  # of the rows may belong to tasks that move; with more of them nothing is saved
SURE = 0.98  # probability from which on a label stays

_sums = compiled(sums_over_tasks, once=True)


def moving_tasks(changed: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """Return the tasks that move: those that changed and those whose label was uncertain, ``(N,)`` of bool.

    Args:
        changed: whether each task is new or has something new, ``(N,)`` of bool.
        posterior: label probabilities before the change, of the first tasks, ``(n, K)``.
    """
    moving = changed.copy()
    moving[: len(posterior)] |= posterior.max(-1) < SURE
    return moving


def pays(annotations: Annotations, moving: np.ndarray, little: int | None = None) -> bool:
    """Return whether the data have more rows than are ``little``, and the tasks that move few of them."""
    n_moving = int(np.count_nonzero(moving[annotations.task]))
    return annotations.n_rows > (LITTLE if little is None else little) and 0 < n_moving <= MOST * annotations.n_rows


def solution(
    model: Model,
    annotations: Annotations,
    moving: np.ndarray,
    parameters: Parameters,
    dims: Dims,
    key: Array,
    settings: EMSettings,
) -> Parameters:
    """Return the parameters after EM over the tasks that move, from ``parameters``.

    Args:
        moving: whether each task moves, ``(N,)`` of bool.
    """
    held, seen, values = apart(model, annotations, moving, parameters, dims)
    if not held:
        return parameters
    tables = {name: values.pop(name) for name in held}
    beside = holding_tasks(model, held, values)
    found = em.solve(beside, seen, key, settings._replace(restarts=1), progress=False, start=tables)
    return parameters | cut(found.parameters, dims, annotations)


def apart(
    model: Model, annotations: Annotations, moving: np.ndarray, parameters: Parameters, dims: Dims
) -> tuple[Parameters, Annotations, Parameters]:
    """The expected counts of the tasks that are held, the data of those that move, and the parameters at their sizes.

    Args:
        moving: whether each task moves, ``(N,)`` of bool.
    """
    annotations = with_category_counts(annotations)
    pads = can_be_padded(model, annotations, briefly=True)

    def part(chosen: np.ndarray) -> tuple[Annotations, Parameters]:
        data = some_tasks(annotations, chosen)
        values = {
            name: np.compress(chosen, value, dims[name].index("task")) if "task" in dims[name] else value
            for name, value in parameters.items()
        }
        if pads:
            data = sized(model, data, briefly=True)
        if isinstance(data, PaddedAnnotations):
            values = grown(values, dims, data)
        found: tuple[Annotations, Parameters] = jax.device_put((data, values))
        return found

    return _sums(model, *part(~moving)).counts, *part(moving)
