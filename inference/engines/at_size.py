"""Engines run on annotations of the ladder's sizes, so that data of nearby sizes share compiled programs."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from ...data import Annotations
from ...data.padding import MOST_ROWS, PaddedAnnotations, anonymous, padded
from ...data.some_tasks import tasks_alike
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.padded_sites import cut, grown
from ..densities.portable import counts_alike, is_portable, standing_for
from ..densities.sites import Dims, compiled_start
from ..sources.devices import places, sharded
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .outcome import Outcome
from .registry import Engine

MOST_ROWS_BRIEFLY = 2**24
"""Rows as far as which data are padded that are looked at a few times only: a compilation takes longer than that."""


FEWEST_ROWS = 2**12
"""Rows from which on tasks that look alike are counted once: of fewer, nothing is gained."""

SAVED = 2
"""The factor at the least by which the rows are fewer then."""


def can_be_padded(model: Model, annotations: Annotations, *, briefly: bool = False) -> bool:
    """Return whether a story gives on padded annotations what it gives on the annotations themselves.

    Besides :func:`.is_portable` it may have no network, which is trained in minibatches of tasks, and the annotations
    may not be so many that padding them costs more than a compilation (:data:`.MOST_ROWS`, or where they are looked at
    ``briefly`` :data:`MOST_ROWS_BRIEFLY`).
    """
    most = MOST_ROWS_BRIEFLY if briefly else MOST_ROWS
    small = max(annotations.n_rows, annotations.n_tasks, annotations.n_workers) <= most
    return small and annotations.population is None and not model.has_network and is_portable(model, annotations)


def sized(model: Model, annotations: Annotations, *, fine: bool = False, briefly: bool = False) -> Annotations:
    """The annotations as compiled programs see them: padded and without names, as far as the story allows it.

    Args:
        model: the story.
        annotations: the data.
        fine: as of :func:`.padding.padded`.
        briefly: as of :func:`can_be_padded`.
    """
    if isinstance(annotations, PaddedAnnotations):
        return annotations
    if can_be_padded(model, annotations, briefly=briefly):
        return padded(annotations, fine=fine)
    return anonymous(annotations) if is_portable(model, annotations) else annotations


def counted_once(model: Model, annotations: Annotations, dims: Dims, *, fine: bool = False) -> PaddedAnnotations | None:
    """The annotations with each task that looks like others standing for all of them, as compiled programs see them.

    The log-posterior of the parameters is the same, at the cost of the tasks that differ: of a panel of five workers
    who say yes or no, at most 243.

    Args:
        model: the story.
        annotations: the data.
        dims: names of the dimensions of each parameter.
        fine: as of :func:`.padding.padded`.

    Returns:
        None where that would not halve the rows, where a parameter is of single tasks, or where truths depend on each
        other.
    """
    of_single_tasks = any({"task", "row"} & set(names) for names in dims.values())
    few = annotations.n_rows < FEWEST_ROWS or annotations.population is not None
    if few or of_single_tasks or model.has_network or model.truth_prior.joint:
        return None
    if (like := tasks_alike(annotations)) is None:
        return None
    n_rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    if SAVED * n_rows[np.unique(like)].sum() > annotations.n_rows or not counts_alike(model, annotations):
        return None
    return standing_for(annotations, like, fine=fine)


def run(
    engine: Engine,
    model: Model,
    annotations: Annotations,
    dims: Dims,
    key: Array,
    settings: Any,
    *,
    progress: bool,
    mesh: Mesh | None = None,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Outcome:
    """Run an engine on :func:`sized` annotations, and cut what it returns to their own sizes.

    Args:
        engine: the engine.
        model: the story.
        annotations: the data.
        dims: names of the dimensions of each parameter.
        key: random key.
        settings: of the engine.
        progress: whether to show a bar.
        mesh: devices over which the tasks are spread; None for one device.
        start: parameters to start from, of one device; the story's own start by default. From near its end an engine
            has so short a way that its data count as looked at briefly.
        keep: where the fit's state is kept.

    Raises:
        ValueError: several devices for what runs on one only: minibatches, networks and guides that do not factorise.
    """
    if mesh is not None:
        if not engine.pads(settings) or model.has_network:
            raise ValueError(
                f"devices: {engine.name} runs on several devices where it takes all tasks in every step; leave out "
                "devices, or the network, batch_size or guide"
            )
        data = sharded(annotations, mesh)
        real = places(annotations, data)
    else:
        if engine.pads(settings):
            seen = counted_once(model, annotations, dims, fine=engine.fine) or sized(
                model, annotations, fine=engine.fine, briefly=start is not None
            )
        else:
            seen = anonymous(annotations) if is_portable(model, annotations) else annotations
        if start is not None:
            start = grown(start, dims, seen) if isinstance(seen, PaddedAnnotations) else start
            start = jax.device_put(start)
        data, real = jax.device_put(seen), None
    outcome = engine.run(model, data, key, settings, progress=progress, start=start, keep=keep)
    if not isinstance(data, PaddedAnnotations):
        return outcome

    def own(values: Mapping[str, Any], leading: int = 0) -> dict[str, Any]:
        if real is not None:
            axes = {name: leading + dims[name].index("task") for name in values if "task" in dims.get(name, ())}
            values = {name: np.take(v, real, axes[name]) if name in axes else v for name, v in values.items()}
        return cut(values, dims, annotations, leading=leading)

    ends = tuple(map(own, outcome.ends))
    return outcome._replace(draws=own(outcome.draws, 2), fixed=own(outcome.fixed), ends=ends)


def start_of(model: Model, annotations: Annotations, dims: Dims, key: Array) -> Parameters:
    """Return a story's own :func:`.starting_point`, computed on :func:`sized` annotations."""
    seen = sized(model, annotations, briefly=True)
    return cut(jax.device_get(compiled_start(model, seen, key)), dims, annotations)
