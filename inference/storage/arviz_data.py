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

if TYPE_CHECKING:
    import arviz as az
    import xarray as xr

    IData: TypeAlias = az.InferenceData | xr.DataTree

ENGINE: Literal["h5netcdf"] = "h5netcdf"


def make_idata(groups: Mapping[str, xr.Dataset]) -> IData:
    """Put groups together: an ``InferenceData`` with ArviZ 0.23, a ``DataTree`` with ArviZ 1 and later.

    Args:
        groups: dataset by group name, such as ``posterior`` with dimensions chain, draw, ...
    """
    import xarray as xr

    if is_tree():
        return xr.DataTree.from_dict(dict(groups))
    return _inference_data(groups)


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
    return write_groups({name: group(idata, name) for name in groups(idata)}, path)


def write_groups(groups: Mapping[str, xr.Dataset], path: str | os.PathLike[str]) -> Path:
    """Write groups to one netCDF file, which either line of ArviZ opens with ``az.from_netcdf``.

    An existing file is replaced once the new one is complete. Coordinates keep their types: text, numbers and
    truth values as netCDF has them, others (UUIDs, dates, tuples, a mixture) as text with JSON beside it.

    Raises:
        AnnotationError: an id is of a type that cannot be saved.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        for i, (name, dataset) in enumerate(groups.items()):
            dataset.to_netcdf(part, mode="a" if i else "w", group=name, engine=ENGINE)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def is_tree() -> bool:
    """Return whether the installed ArviZ is version 1 or later, which keeps ``xarray.DataTree``."""
    # Not hasattr(arviz, "InferenceData"): ArviZ 1 still annotations to that name.
    return int(version("arviz").partition(".")[0]) >= 1


def _inference_data(groups: Mapping[str, xr.Dataset]) -> IData:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces ArviZ 1 to whoever imports it
        import arviz as az
    return az.InferenceData(**cast(Any, groups))
