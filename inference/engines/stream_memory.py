"""What EM over chunks needs of memory, known before it starts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...data.prepared import Cut, Prepared
from ...data.scan import size_text
from ...models import StoryError
from ..densities.model import Model
from . import streaming
from .streaming import Source

MOST_ROWS = 2**20  # of a chunk: larger ones are no faster
LEAST_ROWS = 2**12
COPIES = 16  # of a chunk's rows × classes, and of the parameters, that a program holds at once, at the most


def suited_source(
    model: Model, prepared: Prepared, memory: int, n_rows: int | None = None, most: int | None = None
) -> Source:
    """Cut the data into chunks that are as large as memory allows.

    Args:
        model: the story.
        prepared: the data.
        memory: bytes that the fit may take.
        n_rows: rows of a chunk, of an earlier fit; None to choose.
        most: rows of a chunk at the most, where it should be smaller than memory allows.

    Raises:
        StoryError: the parameters, or the smallest chunk, do not fit.
    """
    largest = memory // (2 * _bytes_a_row(len(prepared.classes)))
    rows = n_rows or max(min(prepared.n_rows, MOST_ROWS, largest, most or MOST_ROWS), LEAST_ROWS)
    while True:
        source = Source(prepared, prepared.cut(rows), model)
        if n_rows is not None or upper_bound(model, source) <= memory // 2:
            return source
        needed = bytes_needed(model, source)
        if needed <= memory:
            return source
        if rows <= LEAST_ROWS or source.cut.n_rows > 4 * rows:
            raise _too_large(model, prepared, source.cut, memory, needed)
        rows = max(rows // 2, LEAST_ROWS)


def check_draws(model: Model, source: Source, n_draws: int, memory: int) -> None:
    """Refuse draws of the parameters that take more than half of the memory.

    Raises:
        StoryError: they do, with how many do not.
    """
    each = _size(streaming.parameter_shapes(model, source.first))
    if n_draws * each <= memory // 2:
        return
    raise StoryError(
        f"draws={n_draws}: each draw of {model.story.__name__}'s parameters takes {size_text(each)}, and all of them "
        f"more than half of memory={size_text(memory)}; give draws={max(memory // 2 // each, 1)} or fewer, or "
        "scan(…, memory=…) more"
    )


def upper_bound(model: Model, source: Source) -> int:
    """What a fit takes, by the sizes of parameters and chunks alone: more than it will be, of most stories."""
    parameters = streaming.parameter_shapes(model, source.first)
    return COPIES * _size(parameters) + source.cut.n_rows * _bytes_a_row(len(source.prepared.classes))


def _bytes_a_row(n_classes: int) -> int:
    return 64 + 4 * n_classes * (COPIES + n_classes)


def bytes_needed(model: Model, source: Source) -> int:
    """What a fit takes at its peak, by XLA's own analysis of the program that works on a chunk."""
    chunk = source.first
    parameters = streaming.parameter_shapes(model, chunk)
    running = jax.eval_shape(streaming.nothing_yet, model, chunk, parameters)
    held = 2 * _size(streaming.state_shapes(model, chunk, accelerated=True)) + _size(running)
    if held > 2**40:  # nothing of that size is worth compiling
        return held
    given = (model, chunk, parameters, running)
    program: Any = streaming.add_chunk.program(*given, on_votes=False).lower(*given, on_votes=False).compile()
    source.add, about = program, program.memory_analysis()
    working = about.argument_size_in_bytes + about.output_size_in_bytes + about.temp_size_in_bytes
    return int(working + held + 2 * _size(chunk))


def _size(tree: Any) -> int:
    return sum(jnp.dtype(leaf.dtype).itemsize * leaf.size for leaf in jax.tree.leaves(tree))


def _too_large(model: Model, prepared: Prepared, cut: Cut, memory: int, needed: int) -> StoryError:
    n_workers, n_classes = len(prepared.n_by_worker), len(prepared.classes)
    parameters = streaming.parameter_shapes(model, prepared.chunk(cut, 0))
    name, largest = max(parameters.items(), key=lambda item: item[1].size)
    story = model.story.__name__
    return StoryError(
        f"{story} needs about {size_text(needed)} of memory for {n_workers:,} workers and {n_classes:,} classes, and "
        f"memory={size_text(memory)} is allowed; its largest parameter is {name!r} {tuple(largest.shape)}, and a chunk "
        f"has {cut.n_rows:,} rows. Give scan(…, memory=…) more, or fit a story with fewer parameters, such as one_coin "
        "(one number a worker), or annotator_groups (none)"
    )
