"""Arrays of netCDF and safetensors files that others may have changed: sizes and kinds are looked at before reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.errors import StorageError

if TYPE_CHECKING:
    import h5py

Arrays = dict[str, np.ndarray]

RATIO = 100
"""Bytes of numbers that a file may unpack to, for each byte of the file, beside :data:`SPARE`."""

SPARE = 2**20
FILTERS = {1, 2, 3}  # of HDF5's own: deflate, shuffle, fletcher32; others would load plugins


def read_groups(path: Path, names: Iterable[str]) -> dict[str, Arrays]:
    """Read the variables of some groups of a netCDF file that are numbers; coordinates are left out.

    Nothing outside of the file is read (links, external and virtual data), and nothing whose size the file cannot
    account for.

    Args:
        names: of the groups; those that the file lacks are left out.

    Raises:
        StorageError: it is no such file, it is damaged, or its variables are larger than it can hold.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            found = {name: _datasets(file, name, path) for name in names if name in file}
            size = path.stat().st_size
            total = sum(_declared(data) for group in found.values() for data in group.values())
            if total > RATIO * size + SPARE:
                raise StorageError(f"{path} has {size:,} bytes and claims to hold {total:,}, which it cannot")
            return {name: {key: _values(data) for key, data in group.items()} for name, group in found.items()}
    except StorageError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, MemoryError) as error:
        raise StorageError(f"{path} is no netCDF file of a fit that can be read: {error}") from None


def _datasets(file: h5py.File, name: str, path: Path) -> dict[str, h5py.Dataset]:
    """The variables of a group that are numbers, each inside the file and of a size that it accounts for."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Group):
        raise StorageError(f"{path}: {name} is no group of this file")
    group = file[name]
    found = {}
    for key in group:
        if not isinstance(group.get(key, getlink=True), h5py.HardLink):
            raise StorageError(f"{path}: {name}/{key} is a link to another place, which is not followed")
        data = group[key]
        if not isinstance(data, h5py.Dataset) or data.attrs.get("CLASS") == b"DIMENSION_SCALE":
            continue
        if data.dtype.kind not in "biuf" or data.dtype.itemsize > 8:
            continue  # text, of which a fit takes nothing
        _check_inside(data, f"{path}: {name}/{key}")
        found[str(key)] = data
    return found


def _check_inside(data: h5py.Dataset, where: str) -> None:
    made = data.id.get_create_plist()
    filters = {made.get_filter(i)[0] for i in range(made.get_nfilters())}
    if data.is_virtual or data.external:
        raise StorageError(f"{where} keeps its values in another file, which is not read")
    if not filters <= FILTERS:
        raise StorageError(f"{where} is packed by a filter that is not HDF5's own, which is not loaded")
    if not filters and data.id.get_storage_size() < _declared(data):
        raise StorageError(
            f"{where} claims {_declared(data):,} bytes, and the file has {data.id.get_storage_size():,} of them"
        )


def _declared(data: h5py.Dataset) -> int:
    return data.dtype.itemsize * math.prod(map(int, data.shape or ()))  # Python's own numbers do not overflow


def _values(data: h5py.Dataset) -> np.ndarray:
    values = np.asarray(data[()])
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    kind = data.attrs.get("dtype")
    return values.astype(bool) if kind in ("bool", b"bool") else values


def write_weights(weights: Mapping[str, Any], path: Path) -> None:
    """Write arrays to a file of safetensors."""
    from safetensors.numpy import save_file

    save_file({name: np.array(value, order="C") for name, value in weights.items()}, path)


def read_weights(path: Path, names: Iterable[str]) -> Arrays:
    """Read the arrays of a file of safetensors.

    Raises:
        StorageError: it is no such file, it is damaged, or it has other arrays than these names.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        found = load(path.read_bytes())
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        raise StorageError(f"{path} is no file of safetensors that can be read: {error}") from None
    names = list(names)
    if set(found) != set(names):
        lacking, other = sorted(set(names) - set(found)), sorted(set(found) - set(names))
        raise StorageError(
            f"{path} has other weights than the fit: it lacks {lacking[:3]}, and has {other[:3]} besides"
        )
    return {name: found[name] for name in names}
