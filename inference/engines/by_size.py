"""Engines run on annotations of the ladder's sizes, so that data of nearby sizes share compiled programs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from ...data import Annotations
from ...data.arrays import lengthened, shortened
from ...data.padding import MOST_ROWS, PaddedAnnotations, anonymous, padded
from ...data.sharding import places, sharded
from ...models import KNOWN_STORIES
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import Dims, starting_point
from .checkpoints import NOWHERE, Checkpoints
from .outcome import Outcome
from .registry import Engine
from .unused_options import has_network

PLAIN = (bool, int, float, str, type(None))  # types of hyperparameters that do not depend on data

MOST_ROWS_BRIEFLY = 2**24
"""Rows as far as which data are padded that are looked at a few times only: a compilation takes longer than that."""


def knows_no_names(model: Model) -> bool:
    """Whether a story's programs depend on neither names nor sizes but those of the annotations' arrays.

    That is so of this collection's stories and truth priors, where no hyperparameter is an array or a frame, such as
    workers' histories or votes by task. Of a story or truth prior of a user's own it cannot be known.
    """
    if model.story not in KNOWN_STORIES.values():
        return False
    prior = model.hyperparameters.get("truth_prior")
    others = (value for name, value in model.hyperparameters.items() if name != "truth_prior")
    is_ours = prior is None or type(prior).__module__.startswith(f"{__name__.split('.')[0]}.models.parts.")
    has_own_network = model.classifier is not None and not isinstance(model.classifier.network, str)
    return is_ours and not has_own_network and all(isinstance(value, PLAIN) for value in others)


def can_be_padded(model: Model, annotations: Annotations, *, briefly: bool = False) -> bool:
    """Whether a story gives on padded annotations what it gives on the annotations themselves.

    Besides :func:`knows_no_names` it may have no network, which is trained in minibatches of tasks, and the annotations
    may not be so many that padding them costs more than a compilation (:data:`.MOST_ROWS`, or where they are looked at
    ``briefly`` :data:`MOST_ROWS_BRIEFLY`).
    """
    most = MOST_ROWS_BRIEFLY if briefly else MOST_ROWS
    small = max(annotations.n_rows, annotations.n_tasks, annotations.n_workers) <= most
    return small and annotations.population is None and not has_network(model) and knows_no_names(model)


def sized(model: Model, annotations: Annotations, *, fine: bool = False, briefly: bool = False) -> Annotations:
    """The annotations as compiled programs see them: padded and without names, as far as the story allows it.

    Args:
        model: the story.
        annotations: the data.
        fine: as of :func:`.padded`.
        briefly: as of :func:`can_be_padded`.
    """
    if isinstance(annotations, PaddedAnnotations):
        return annotations
    if can_be_padded(model, annotations, briefly=briefly):
        return padded(annotations, fine=fine)
    return anonymous(annotations) if knows_no_names(model) else annotations


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
    keep: Checkpoints = NOWHERE,
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
        return _run_over(mesh, engine, model, annotations, dims, key, settings, progress=progress, keep=keep)
    if engine.pads(settings):
        seen = sized(model, annotations, fine=engine.fine, briefly=start is not None)
    else:
        seen = anonymous(annotations) if knows_no_names(model) else annotations
    if start is not None:
        start = jax.tree.map(jnp.asarray, grown(start, dims, seen) if isinstance(seen, PaddedAnnotations) else start)
    data = jax.tree.map(jnp.asarray, seen)
    outcome = engine.run(model, data, key, settings, progress=progress, start=start, keep=keep)
    if not isinstance(seen, PaddedAnnotations):
        return outcome
    return outcome._replace(
        draws=cut(outcome.draws, dims, annotations, leading=2),
        fixed=cut(outcome.fixed, dims, annotations),
        ends=tuple(cut(end, dims, annotations) for end in outcome.ends),
    )


def _run_over(
    mesh: Mesh,
    engine: Engine,
    model: Model,
    annotations: Annotations,
    dims: Dims,
    key: Array,
    settings: Any,
    *,
    progress: bool,
    keep: Checkpoints,
) -> Outcome:
    """Run an engine with the tasks spread over a mesh."""
    if not engine.pads(settings) or has_network(model):
        raise ValueError(
            f"devices: {engine.name} runs on several devices where it takes all tasks in every step; leave out "
            "devices, or the network, batch_size or guide"
        )
    seen = sharded(annotations, mesh)
    outcome = engine.run(model, seen, key, settings, progress=progress, keep=keep)
    real = places(annotations, seen)

    def own(values: Mapping[str, Any], leading: int) -> dict[str, Any]:
        return {
            name: np.take(value, real, leading + dims[name].index("task")) if "task" in dims.get(name, ()) else value
            for name, value in values.items()
        }

    draws, fixed = own(outcome.draws, 2), own(outcome.fixed, 0)
    return outcome._replace(
        draws=cut(draws, dims, annotations, leading=2),
        fixed=cut(fixed, dims, annotations),
        ends=tuple(cut(own(end, 0), dims, annotations) for end in outcome.ends),
    )


def at_size(
    function: Callable[[Model, Annotations, Parameters], Parameters],
    model: Model,
    annotations: Annotations,
    dims: Dims,
    parameters: Parameters,
) -> Parameters:
    """A compiled function of a story at parameters, computed on :func:`sized` annotations.

    Args:
        function: from the model, annotations and parameters by site to others by site.
        model: the story.
        annotations: the data.
        dims: names of the dimensions of each site.
        parameters: by site.
    """
    seen = jax.tree.map(jnp.asarray, sized(model, annotations, briefly=True))
    if not isinstance(seen, PaddedAnnotations):
        return function(model, seen, parameters)
    return cut(function(model, seen, grown(parameters, dims, seen)), dims, annotations)


def start_of(model: Model, annotations: Annotations, dims: Dims, key: Array) -> Parameters:
    """Where a story starts by itself, computed on :func:`sized` annotations: :func:`.starting_point`."""
    seen = jax.tree.map(jnp.asarray, sized(model, annotations, briefly=True))
    return cut(_starting_point(model, seen, key), dims, annotations)


_starting_point = compiled(starting_point, once=True)


def cut(values: Mapping[str, Any], dims: Dims, annotations: Annotations, leading: int = 0) -> dict[str, Any]:
    """Values by site without the entries of padded tasks, workers and rows.

    Args:
        values: by site, of the padded sizes.
        dims: names of the dimensions of each site.
        annotations: whose sizes to cut to.
        leading: number of dimensions before those named.
    """
    return {
        name: shortened(value, real_axes(dims.get(name, ()), annotations, leading)) for name, value in values.items()
    }


def grown(values: Mapping[str, Any], dims: Dims, annotations: PaddedAnnotations, leading: int = 0) -> dict[str, Any]:
    """Values by site with copies of the last task's and worker's entries for the padded ones: the way back."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found[name] = value
        for axis, size in real_axes(dims.get(name, ()), annotations, leading):
            found[name] = lengthened(found[name], axis, size)
    return found


def real_axes(dims: tuple[str, ...], annotations: Annotations, leading: int = 0) -> list[tuple[int, int]]:
    """The axes of tasks, of workers and of rows, and their sizes."""
    sizes = {"task": annotations.n_tasks, "worker": annotations.n_workers, "row": annotations.n_rows}
    return [(leading + axis, sizes[dim]) for axis, dim in enumerate(dims) if dim in sizes]
