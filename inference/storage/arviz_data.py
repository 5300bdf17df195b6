"""ArviZ data, as the installed ArviZ wants it: no other module knows which of its two lines that is.

ArviZ 0.23 keeps its groups (``posterior``, ``sample_stats``, ``log_likelihood``, ...) in ``InferenceData``,
ArviZ 1 and later in ``xarray.DataTree``. The file is the same for both: a netCDF group each, as ArviZ's own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from ..fitted.named_draws import NamedArrays

if TYPE_CHECKING:
    import arviz as az
    import xarray as xr

    IData: TypeAlias = az.InferenceData | xr.DataTree

ENGINE: Literal["h5netcdf"] = "h5netcdf"


def make_idata(groups: Mapping[str, NamedArrays | xr.Dataset]) -> IData:
    """Put groups together: an ``InferenceData`` with ArviZ 0.23, a ``DataTree`` with ArviZ 1 and later.

    Args:
        groups: arrays by group name, such as ``posterior`` with dimensions chain, draw, ...
    """
    import xarray as xr

    datasets = {name: of.dataset() if isinstance(of, NamedArrays) else of for name, of in groups.items()}
    return xr.DataTree.from_dict(datasets) if is_tree() else _inference_data(datasets)


def group(idata: IData, name: str) -> xr.Dataset:
    """One group as a dataset.

    Raises:
        KeyError: there is no such group; the message names those there are.
    """
    import xarray as xr

    if name not in groups(idata):
        raise KeyError(f"no group {name!r}; there are {', '.join(groups(idata)) or 'none'}")
    node: Any = idata[name]
    return cast(xr.Dataset, node.to_dataset() if isinstance(node, xr.DataTree) else node)


def groups(idata: IData) -> list[str]:
    """The names of the groups, such as ``["posterior", "log_likelihood"]``."""
    import xarray as xr

    return list(idata.children) if isinstance(idata, xr.DataTree) else list(idata.groups())


def save_netcdf(idata: IData, path: str | os.PathLike[str]) -> Path:
    """Write every group to one netCDF file: see :func:`write_groups`."""
    return write_groups({name: _arrays_of(group(idata, name)) for name in groups(idata)}, path)


def write_groups(groups: Mapping[str, NamedArrays], path: str | os.PathLike[str]) -> Path:
    """Write groups to one netCDF file, which either line of ArviZ opens with ``az.from_netcdf``.

    It has what ``xarray.Dataset.to_netcdf`` writes of the same arrays. An existing file is replaced once the new one is
    complete. Coordinates keep their types: text, numbers and truth values as netCDF has them, others (UUIDs, dates,
    tuples, a mixture) as text with JSON beside it.

    Raises:
        AnnotationError: an id is of a type that cannot be saved.
    """
    import h5netcdf

    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with h5netcdf.File(part, "w") as file:
            for name, arrays in groups.items():
                _write_group(file.create_group(name), arrays)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _write_group(group: Any, arrays: NamedArrays) -> None:
    """Write arrays to a group of a file of h5netcdf's, encoded as xarray does: NaN for what is missing, text, bools."""
    import h5py

    variables = {**arrays.variables, **{dim: ((dim,), values) for dim, values in arrays.coords.items()}}
    for dims, values, *_ in variables.values():
        for dim, length in zip(dims, np.shape(values), strict=True):
            if dim not in group.dimensions:
                group.dimensions[dim] = length
    for name, (dims, values, *said) in variables.items():
        values, attrs = np.asarray(values), dict(said[0] if said else {})
        missing, kind = None, values.dtype
        if kind.kind == "b":
            values, attrs = values.astype(np.int8), attrs | {"dtype": "bool"}
        elif kind.kind == "f":
            missing = kind.type(np.nan)
        elif kind.kind in "UO":
            values = values.astype(object)
        kind = h5py.string_dtype() if values.dtype == object else values.dtype
        written = group.create_variable(name, dims, kind, fillvalue=missing)
        written.attrs.update(attrs)
        if values.size:
            written[...] = values
    group.attrs.update(arrays.attrs)


def _arrays_of(dataset: xr.Dataset) -> NamedArrays:
    return NamedArrays(
        {str(name): (tuple(map(str, of.dims)), of.to_numpy(), of.attrs) for name, of in dataset.data_vars.items()},
        {str(name): of.to_numpy() for name, of in dataset.coords.items()},
        dataset.attrs,
    )


def is_tree() -> bool:
    """Return whether the installed ArviZ is version 1 or later, which keeps ``xarray.DataTree``."""
    # Not hasattr(arviz, "InferenceData"): ArviZ 1 still annotations to that name.
    return int(version("arviz").partition(".")[0]) >= 1


def _inference_data(groups: Mapping[str, xr.Dataset]) -> IData:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces ArviZ 1 to whoever imports it
        import arviz as az
    return az.InferenceData(**cast(Any, groups))
