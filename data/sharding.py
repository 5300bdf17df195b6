"""Annotations cut into blocks of whole tasks, one for each device."""

from dataclasses import dataclass
from dataclasses import fields as fields_of

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .annotations import Annotations, Array, as_pytree
from .ids import Ids
from .padding import PaddedAnnotations

SHARD = "shard"
"""Name of the mesh's only axis."""

WHOLE = ("worker_features", "item_features", "model_reference", "category_counts")  # fields that every device has whole


@dataclass(frozen=True, eq=False, repr=False)
class ShardedAnnotations(PaddedAnnotations):
    """Annotations as global arrays over a mesh of D devices: block d has the tasks of device d, padded to one size.

    Attributes:
        n_real: (D, 2) int32, how many of each block's tasks are real, the first ones, and how many of the workers.
        mesh: the devices.
    """

    mesh: Mesh | None = None

    @property
    def n_blocks(self) -> int:
        """D, the number of devices."""
        return self.mesh.size if self.mesh is not None else 1

    @property
    def is_real(self) -> Array:
        """The mask of real tasks, ``(N,)`` of bool."""
        place = jnp.arange(self.n_tasks // self.n_blocks)
        return (place < jnp.asarray(self.n_real)[:, :1]).reshape(-1)

    @property
    def on_one_device(self) -> Array:
        """Each task's place among the tasks as they are without blocks, ``(N,)``; of padded tasks any."""
        n_real = jnp.asarray(self.n_real)[:, 0]
        place = jnp.arange(self.n_tasks // self.n_blocks)
        return ((jnp.cumsum(n_real) - n_real)[:, None] + jnp.minimum(place, n_real[:, None])).reshape(-1)

    @property
    def specs(self) -> "ShardedAnnotations":
        """Every field's `PartitionSpec` on the mesh, in its place."""
        return jax.tree.map_with_path(lambda path, _: P() if path[-1].name in WHOLE else P(SHARD), self)

    def block(self, number: Array) -> PaddedAnnotations:
        """Return the part of one device, seen from within :func:`jax.shard_map`: annotations of its own tasks only.

        Args:
            number: of the block.
        """
        n_tasks = self.n_tasks // self.n_blocks
        own = {field.name: getattr(self, field.name) for field in fields_of(PaddedAnnotations)}
        own |= {"task": self.task - number * n_tasks, "tasks": Ids.range(n_tasks), "n_real": self.n_real[0]}
        return PaddedAnnotations(**own)


as_pytree(ShardedAnnotations, "once", "mesh")


def as_on_one_device(values: Array, annotations: Annotations, axis: int = 0) -> Array:
    """Random values by task in an order that gives each task the value that it has on one device.

    Args:
        values: with the tasks along ``axis``.
        annotations: over several devices, or not: then the values stay as they are.
        axis: of the tasks.
    """
    if not isinstance(annotations, ShardedAnnotations):
        return values
    return jnp.take(values, annotations.on_one_device, axis=axis)


def on_this_host(values: Array) -> np.ndarray:
    """Values of a global array as NumPy's, of all processes."""
    if isinstance(values, jax.Array) and not values.is_fully_addressable and not values.is_fully_replicated:
        return np.asarray(multihost_utils.process_allgather(values, tiled=True))
    return np.asarray(values)
