"""ArviZ data, as the installed ArviZ wants it: no other module knows which of its two lines that is.

ArviZ 0.23 keeps its groups (``posterior``, ``sample_stats``, ``log_likelihood``, ...) in ``InferenceData``,
ArviZ 1 and later in ``xarray.DataTree``. The file is the same for both: a netCDF group each, as ArviZ's own.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import xarray as xr

from ..data.id_json import decode_id, encode_id

if TYPE_CHECKING:
    import arviz as az

    IData: TypeAlias = az.InferenceData | xr.DataTree

ENGINE = "h5netcdf"

# Ids that netCDF has no type for are written as text, and as JSON in a second coordinate named with this.
JSON_SUFFIX = "_json"


def make_idata(groups: Mapping[str, xr.Dataset]) -> IData:
    """Put groups together: an ``InferenceData`` with ArviZ 0.23, a ``DataTree`` with ArviZ 1 and later.

    Args:
        groups: dataset by group name, such as ``posterior`` with dimensions chain, draw, ...
    """
    if _is_tree():
        return xr.DataTree.from_dict(dict(groups))
    return _inference_data(groups)


def group(idata: IData, name: str) -> xr.Dataset:
    """One group as a dataset.

    Raises:
        KeyError: there is no such group; the message names those there are.
    """
    if name not in groups(idata):
        raise KeyError(f"no group {name!r}; there are {', '.join(groups(idata)) or 'none'}")
    node = idata[name]
    return node.to_dataset() if isinstance(node, xr.DataTree) else node


def groups(idata: IData) -> list[str]:
    """The names of the groups, such as ``["posterior", "log_likelihood"]``."""
    return list(idata.children) if isinstance(idata, xr.DataTree) else list(idata.groups())


def save_netcdf(idata: IData, path: str | os.PathLike[str]) -> Path:
    """Write every group to one netCDF file, which either line of ArviZ opens with ``az.from_netcdf``.

    An existing file is replaced once the new one is complete. Coordinates keep their types: text, numbers and
    truth values as netCDF has them, others (UUIDs, dates, tuples, a mixture) as text with JSON beside it.

    Raises:
        AnnotationError: an id is of a type that cannot be saved.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        for i, name in enumerate(groups(idata)):
            dataset = _with_plain_ids(group(idata, name))
            dataset.to_netcdf(part, mode="a" if i else "w", group=name, engine=ENGINE)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def load_netcdf(path: str | os.PathLike[str]) -> IData:
    """Read what :func:`save_netcdf` or ArviZ wrote, into memory: the file may be moved or replaced after.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with xr.open_datatree(Path(path).resolve(strict=True), engine=ENGINE) as tree:
        return make_idata(
            {name: _with_own_ids(node.to_dataset().load()) for name, node in tree.children.items()}
        )


def _is_tree() -> bool:
    # Not hasattr(arviz, "InferenceData"): ArviZ 1 still answers to that name.
    return int(version("arviz").partition(".")[0]) >= 1


def _inference_data(groups: Mapping[str, xr.Dataset]) -> IData:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces ArviZ 1 to whoever imports it
        import arviz as az
    return az.InferenceData(**groups)


def _with_plain_ids(dataset: xr.Dataset) -> xr.Dataset:
    plain = {}
    for name, coordinate in dataset.coords.items():
        ids = np.asarray(coordinate.values)
        if ids.dtype.kind == "O" and not all(type(i) is str for i in ids.flat):
            coded = [json.dumps(encode_id(i.item() if isinstance(i, np.generic) else i)) for i in ids.flat]
            plain[f"{name}{JSON_SUFFIX}"] = (coordinate.dims, np.reshape(coded, ids.shape))
            plain[name] = (
                coordinate.dims,
                np.reshape([str(i) for i in ids.flat], ids.shape),
                coordinate.attrs,
            )
        elif not isinstance(coordinate.dtype, np.dtype):  # a column type of pandas
            plain[name] = (coordinate.dims, ids, coordinate.attrs)
    return dataset.assign_coords(plain)


def _with_own_ids(dataset: xr.Dataset) -> xr.Dataset:
    own = {}
    for name, coordinate in dataset.coords.items():
        coded = dataset.coords.get(f"{name}{JSON_SUFFIX}")
        if coded is None:
            continue
        ids = np.empty(coordinate.shape, dtype=object)
        for i, text in enumerate(coded.values.flat):
            ids.flat[i] = decode_id(json.loads(text))
        own[name] = (coordinate.dims, ids, coordinate.attrs)
    return dataset.assign_coords(own).drop_vars([f"{name}{JSON_SUFFIX}" for name in own])
