"""A story whose annotations stay on the disk: what follows from its draws, in passes over the data.

Parameters are averaged over all draws. What needs the annotations, such as label probabilities, is averaged over
:data:`FEW` of them, or more where the annotations are few.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
from jax import Array

from ...data import Annotations
from ...data.arrays import counts
from ...data.batch import Batch
from ...data.ids import Ids
from ...data.kinds import Kind
from ...data.packed import task_ids
from ...data.padding import real_tasks
from ...models import Emission
from ...models.parts.whole_sums import collected, given
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.programs import compiled, traced
from ..densities.sites import Dims, derived
from ..engines.progress import progress_bar
from ..sources.on_disk import Files
from ..sources.partitioned import Partitioned
from ..sources.source import added, sum_over_batches
from .confusion_scores import entropy
from .decisions import expected_where_ordered

FEW = 20  # draws at the most that a pass over the data looks at
AT_DRAWS = 2**22  # rows times draws, below which a pass over labels looks at more of these
NUMBERS = 2e6  # in confusion matrices that need no pass, about
NO_DIMS = {"task", "row"}  # quantities by task or by row stay on the disk
SURE = 0.9  # probability from which a label is called certain


class LabelSums(NamedTuple):
    """Sums over all tasks of what is known of their labels."""

    shares: Array  # (K,) expected tasks of each class
    sure: Array  # () tasks whose label is certain
    right: Array  # (J,) expected annotations of each worker that equal the truth; empty where no worker is named


def some_of(draws: Mapping[str, Any], most: int = FEW) -> Parameters:
    """Some of the draws ``(1, draw, ...)``, evenly far apart, by site ``(S, ...)``."""
    n_draws = next(iter(draws.values())).shape[1]
    some = np.unique(np.linspace(0, n_draws - 1, min(most, n_draws)).astype(int))
    return {name: jnp.asarray(value[0, some]) for name, value in draws.items()}


def _for_labels(files: Files, draws: Mapping[str, Any]) -> Parameters:
    """Some of the draws, as many as go over so many annotations in little time."""
    return some_of(draws, max(FEW, AT_DRAWS // max(files.n_annotations, 1)))


def label_sums(model: Model, files: Files, draws: Mapping[str, Any]) -> LabelSums:
    """The sums over all tasks: one pass over the data."""
    few = _for_labels(files, draws)
    zeros = jax.tree.map(jnp.zeros_like, jax.eval_shape(_label_sums, model, files.like, few))
    return _added(files, _label_sums, model, few, zeros)


def sums_of(posterior: np.ndarray, annotations: Annotations) -> LabelSums:
    """The sums over all tasks of label probabilities that are known, ``(N, K)``, of annotations in memory."""
    right = np.zeros(0)
    if annotations.worker is not None:
        agree: np.ndarray = posterior[np.asarray(annotations.task), np.asarray(annotations.label)] * counts(annotations)
        right = np.bincount(np.asarray(annotations.worker), agree, annotations.n_workers).astype(float)
    sure = (annotations.kind.certainty(posterior, annotations.question) >= SURE).sum()
    return LabelSums(*map(jnp.asarray, (posterior.sum(0), sure, right)))


def posteriors(
    model: Model, files: Files, draws: Mapping[str, Any], known: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Yield ``P(truth | annotations)`` of each batch's tasks, ``(n, K)``: those that are `known`, or at some draws."""
    if known is not None:
        yield from (known[piece.tasks] for piece in files.plan.slices)
        return
    few = _for_labels(files, draws)
    for piece, batch in zip(files.plan.slices, files.batches(), strict=True):
        yield np.asarray(_posterior(model, batch, few))[: piece.tasks.stop - piece.tasks.start]


def label_frame(posterior: np.ndarray, tasks: pd.Index, classes: Ids, kind: Kind) -> pd.DataFrame:
    """Return the labels of some tasks: label, probability, entropy, of ordered classes scores, and ``p_<class>``.

    Args:
        posterior: (n, K).
        tasks: the n identifiers.
    """
    names, best = classes.to_index(), kind.label(posterior)
    frame = pd.DataFrame({"label": names[best]}, index=tasks)
    frame["probability"] = posterior[np.arange(len(posterior)), best]
    frame["entropy"] = entropy(posterior.astype(float))
    probabilities = pd.DataFrame(posterior, index=tasks, columns=names)
    expected = expected_where_ordered(probabilities, kind)
    return pd.concat([frame, expected, probabilities.set_axis([f"p_{name}" for name in classes], axis=1)], axis=1)


def label_partitions(
    model: Model, source: Partitioned, draws: Mapping[str, Any], known: np.ndarray | None = None
) -> Any:
    """Return the labels as a frame of the engine that has the annotations: task, and columns of :func:`label_frame`.

    Nothing is computed yet, and nothing comes here. They are by probabilities that are known, ``(N, K)``, or those at
    some draws.
    """
    given = (model, _for_labels(source, draws) if known is None else {}, known)
    made = partial(label_rows, source.classes, source.kind)
    fields = [
        (field.name, pa.string() if pa.types.is_large_string(field.type) else field.type)
        for field in made(source.like, source.store.task_values(source.plan.slices[0]), *given).schema
    ]
    schema = pa.schema(fields)
    return source.map(lambda batch, ids, *given: made(batch, task_ids(ids), *given).cast(schema), schema, given).frame


def label_rows(
    classes: Ids,
    kind: Kind,
    batch: Batch,
    tasks: pa.ChunkedArray,
    model: Model,
    draws: Parameters,
    known: np.ndarray | None,
) -> pa.RecordBatch:
    """Return the labels of a batch's tasks, with their identifiers as first column."""
    first = int(batch.first)
    posterior = np.asarray(_posterior(model, batch, draws)) if known is None else known[first:]
    posterior = posterior[: len(tasks)]
    labels = label_frame(posterior, pd.RangeIndex(len(tasks)), classes, kind)
    table = pa.Table.from_pandas(labels, preserve_index=False).add_column(0, "task", tasks)
    return table.replace_schema_metadata().combine_chunks().to_batches()[0]


def confusions(model: Model, files: Files, draws: Mapping[str, Any]) -> np.ndarray:
    """Each worker's confusion matrix in some of the draws, ``(S, J, K, L)``: a pass where they are means over tasks."""
    few, like = some_of(draws), files.like
    shapes = jax.eval_shape(_confusions, model, like, few)
    if _averages_over_tasks(model, like, _first(few)):
        total, weight = _added(files, _confusions, model, few, jax.tree.map(jnp.zeros_like, shapes))
        return np.asarray(total / jnp.maximum(weight, 1.0)[:, None, None])
    size = int(np.prod(shapes[0].shape[1:]))
    return np.asarray(_plain_confusions(model, like, some_of(draws, max(int(NUMBERS // max(size, 1)), FEW))))


def derived_means(model: Model, files: Files, draws: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], Dims]:
    """Means of the derived quantities but those by task or row, and their dimensions; a pass where they need sums."""
    few, like = some_of(draws), files.like
    dims: Dims = traced(lambda: derived(model, _first(few), like)[1])
    names = tuple(name for name, found in dims.items() if not NO_DIMS & set(found))
    if not names:
        return {}, dims
    totals = jax.tree.map(jnp.zeros_like, jax.eval_shape(_derived_sums, model, like, few))
    if totals:
        totals = _added(files, _derived_sums, model, few, totals)
    values = _derived(model, like, few, totals, names=names)
    return {name: np.asarray(value) for name, value in values.items()}, dims


def _added(files: Files, of_batch: Callable[..., Any], model: Model, few: Parameters, zero: Any) -> Any:
    """Sums over all batches: one pass over the data."""

    def add(batch: Batch, sums: Any, model: Model, few: Parameters) -> Any:
        return added(sums, of_batch(model, batch, few))

    with progress_bar("pass over the data", files.n_batches, show=files.progress) as bar:
        return sum_over_batches(files, add, zero, (model, few), after=lambda sums, done: bar(done, ""))


def _first(draws: Parameters) -> Parameters:
    return {name: value[0] for name, value in draws.items()}


def _mean(function: Callable[[Any], Any], draws: Any) -> Any:
    """A function's mean over draws, ``(S, ...)`` by site, one draw at a time."""
    return jax.tree.map(lambda values: values.mean(0), jax.lax.map(function, draws))


@compiled
def _posterior(model: Model, batch: Batch, draws: Parameters) -> Array:
    found = _mean(lambda draw: density(model, draw, batch).posterior, draws)
    return found / found.sum(-1, keepdims=True)


@compiled
def _label_sums(model: Model, batch: Batch, draws: Parameters) -> LabelSums:
    is_real = jnp.asarray(real_tasks(batch))
    posterior = jnp.where(is_real[:, None], _posterior(model, batch, draws), 0.0)
    sure = (batch.kind.certainty(posterior, batch.question) >= SURE).sum()
    right = jnp.zeros(0)
    if batch.worker is not None:
        agree = posterior[batch.task, batch.label] * jnp.asarray(batch.count)
        right = jax.ops.segment_sum(agree, jnp.asarray(batch.worker), batch.n_workers)
    return LabelSums(posterior.sum(0), sure, right)


@compiled
def _derived_sums(model: Model, batch: Batch, draws: Parameters) -> list[Array]:
    """Return the sums over tasks that derived quantities need, for each draw."""

    def of_draw(draw: Parameters) -> list[Array]:
        with collected() as noted:
            derived(model, draw, batch)
        return noted

    return jax.lax.map(of_draw, draws)


@compiled(static=("names",))
def _derived(model: Model, batch: Batch, draws: Parameters, totals: list[Array], names: tuple[str, ...]) -> Parameters:
    def of_draw(at: tuple[Parameters, list[Array]]) -> Parameters:
        with given(at[1]):
            values = derived(model, at[0], batch)[0]
        return {name: values[name] for name in names}

    return _mean(of_draw, (draws, totals))


@compiled
def _plain_confusions(model: Model, batch: Batch, draws: Parameters) -> Array:
    return jax.lax.map(lambda draw: density(model, draw, batch).likelihood.emission.confusions(batch), draws)


@compiled
def _confusions(model: Model, batch: Batch, draws: Parameters) -> tuple[Array, Array]:
    """The workers' confusion matrices times their annotations in the batch, ``(S, J, K, L)``, and these, ``(J,)``."""
    weight = jax.ops.segment_sum(jnp.asarray(batch.count), jnp.asarray(batch.worker), batch.n_workers)
    return _plain_confusions(model, batch, draws) * weight[:, None, None], weight


def _averages_over_tasks(model: Model, batch: Batch, parameters: Parameters) -> bool:
    """Return whether a worker's confusion matrix is the mean over the tasks that the worker annotated."""
    emission: Any = traced(lambda: density(model, parameters, batch).likelihood.emission)
    return type(getattr(emission, "emission", emission)).confusions is Emission.confusions
