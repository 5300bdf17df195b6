"""Annotations over several devices: blocks of whole tasks, one for each, which programs in memory see as one array."""

import zlib
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ...data import AnnotationError, Annotations, Ids
from ...data.annotations import Array
from ...data.arrays import longer
from ...data.padding import MOST_ROWS, ROWS, TASKS, WORKERS, lengthened_fields
from ...data.sharding import SHARD, ShardedAnnotations


def mesh_of(devices: int | str | Sequence[Any]) -> Mesh:
    """The mesh of some devices.

    Args:
        devices: how many, ``"all"``, or the devices themselves. With several processes (``jax.distributed``) all of
            them take part, and only ``"all"`` or their number is meant.

    Raises:
        ValueError: there are not so many, or it is none of these; or CPUs of several processes run programs one beside
            another, whose sums over the processes may then meet in another order in each.
    """
    there = jax.devices()
    if jax.process_count() > 1 and there[0].platform == "cpu" and jax.config.read("jax_cpu_enable_async_dispatch"):
        raise ValueError(
            f"devices={devices!r}: on CPUs several processes add up in step only where programs wait for each other; "
            'say jax.config.update("jax_cpu_enable_async_dispatch", False) before JAX is first used'
        )
    if isinstance(devices, str):
        if devices != "all":
            raise ValueError(f"devices={devices!r}: 'all', a number of devices, or JAX's devices themselves are needed")
        chosen: Sequence[Any] = there
    elif isinstance(devices, (int, np.integer)) and not isinstance(devices, bool):
        if not 1 <= devices <= len(there):
            raise ValueError(
                f"devices={devices}: JAX sees {len(there)} ({there[0].platform}); give 1 to {len(there)}, or 'all'. A "
                'CPU counts as more where jax.config.update("jax_num_cpu_devices", n) comes before JAX is first used'
            )
        chosen = there[:devices]
    else:
        try:
            chosen = list(devices)  # type: ignore[arg-type]  # bool and the like, which are refused below
        except TypeError:
            chosen = []
        distinct = len(set(map(id, chosen))) == len(chosen)
        if not chosen or not distinct or not all(isinstance(device, jax.Device) for device in chosen):
            raise ValueError(f"devices={devices!r}: 'all', a number of devices, or JAX's devices themselves are needed")
    if jax.process_count() > 1 and len(chosen) != len(there):
        raise ValueError(f"devices={devices!r}: of several processes all devices take part; give devices='all'")
    return Mesh(np.array(chosen), (SHARD,))


def sharded(annotations: Annotations, mesh: Mesh) -> ShardedAnnotations:
    """The annotations over the devices of a mesh, without gold labels, times and names of tasks.

    Args:
        annotations: with labels; no minibatch. With several processes each gives its own tasks, and all know the same
            workers and classes.
        mesh: of :func:`mesh_of`.

    Returns:
        global arrays, of which every device holds its own block.

    Raises:
        AnnotationError: with several processes, whose annotations name other workers or classes than those here, or
            there are probabilities of models.
    """
    n_blocks = len(mesh.local_devices)
    blocks = _bounds(annotations, n_blocks)
    rows = np.searchsorted(annotations.task, blocks)
    if annotations.model_scores is not None and jax.process_count() > 1:
        raise AnnotationError("probabilities of models are not known to several processes; fit in one process")
    largest = np.array([np.diff(rows).max(initial=0), np.diff(blocks).max(initial=0)])
    n_rows, n_tasks = _agreed(annotations, largest)
    n_tasks += 1  # padded rows are of a padded task
    n_workers = annotations.n_workers
    if max(n_rows, n_tasks, n_workers) <= MOST_ROWS:
        n_rows, n_tasks, n_workers = ROWS.bucket(n_rows), TASKS.bucket(n_tasks), WORKERS.bucket(n_workers)
    first = int(np.argmax([device.process_index == jax.process_index() for device in mesh.devices.flat]))

    task = np.concatenate(
        [
            longer(annotations.task[begin:end] - block, n_rows, n_tasks - 1) + (first + number) * n_tasks
            for number, (begin, end, block) in enumerate(zip(rows[:-1], rows[1:], blocks[:-1], strict=True))
        ]
    )
    n_real = np.column_stack([np.diff(blocks), np.full(n_blocks, annotations.n_workers)]).astype(np.int32)
    local = ShardedAnnotations(
        task=task.astype(np.int32),
        tasks=Ids.range(n_tasks * mesh.size),
        n_real=n_real,
        **lengthened_fields(
            annotations,
            n_workers,
            partial(_in_blocks, bounds=rows, size=n_rows),
            partial(_in_blocks, bounds=blocks, size=n_tasks),
        ),
        mesh=mesh,
    )

    def place(values: Any, spec: P) -> Array:
        return jax.make_array_from_process_local_data(NamedSharding(mesh, spec), np.asarray(values))

    return jax.tree.map(place, local, local.specs)


def places(annotations: Annotations, over: ShardedAnnotations) -> np.ndarray:
    """Return the positions of this process's tasks among those of the mesh, ``(N,)``."""
    mesh = over.mesh
    assert mesh is not None
    blocks = _bounds(annotations, len(mesh.local_devices))
    first = int(np.argmax([device.process_index == jax.process_index() for device in mesh.devices.flat]))
    n_tasks = over.n_tasks // over.n_blocks
    of_block = [np.arange(end - begin) for begin, end in pairwise(blocks)]
    return np.concatenate([(first + number) * n_tasks + own for number, own in enumerate(of_block)])


def _bounds(annotations: Annotations, n_blocks: int) -> np.ndarray:
    """The first task of each block, and the number of tasks: blocks of about as many rows and tasks each."""
    per_task = np.bincount(np.asarray(annotations.task), minlength=annotations.n_tasks) + 1
    so_far = np.concatenate([[0], np.cumsum(per_task)])
    return np.searchsorted(so_far, np.linspace(0, so_far[-1], n_blocks + 1))


def _in_blocks(values: Array | None, bounds: np.ndarray, size: int, filling: float) -> np.ndarray | None:
    """Values cut at ``bounds``, each block padded to ``size``, one after the other."""
    if values is None:
        return None
    array = np.asarray(values)
    return np.concatenate([longer(array[begin:end], size, filling) for begin, end in pairwise(bounds)])


def _agreed(annotations: Annotations, largest: np.ndarray) -> np.ndarray:
    """The largest block of all processes, once they are found to know the same workers and classes."""
    if jax.process_count() == 1:
        return largest
    names = (annotations.workers, annotations.classes)
    said = np.array([*largest, *map(len, names), *(zlib.crc32(repr(list(ids)).encode()) >> 1 for ids in names)])
    raise_if_different(multihost_utils.process_allgather(said))
    return np.asarray(multihost_utils.process_allgather(largest)).max(0)


def raise_if_different(said: np.ndarray) -> None:
    """Refuse processes that know other workers or classes than the first.

    Args:
        said: by process, ``(processes, 6)``: two sizes, and then the numbers of workers and of classes with their
            hashes.
    """
    for what, columns in (("workers", [2, 4]), ("classes", [3, 5])):
        differ = (said[:, columns] != said[0, columns]).any(-1)
        if differ.any():
            raise AnnotationError(
                f"process {int(np.argmax(differ))} has other {what} than process 0: each process brings its own tasks, "
                f"and all name the same {what} in the same order; give {what}=[…] when you make the annotations"
            )
