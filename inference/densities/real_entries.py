"""Values by site without the entries of padded tasks, workers and rows, and with them."""

from collections.abc import Mapping
from typing import Any

from ...data import Annotations
from ...data.arrays import lengthened, shortened
from ...data.padding import PaddedAnnotations
from .sites import Dims


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
