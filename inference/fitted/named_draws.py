"""Arrays by site as xarray datasets, with named tasks, workers and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import Annotations
from ...models.parts.abstaining import DIM
from ...models.parts.general import coordinates

if TYPE_CHECKING:
    import xarray as xr

RENAMED = {"class": "truth"}  # a story's plate may not bear the name of the site ``truth``; a dimension may


def parameter_dataset(
    draws: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    annotations: Annotations,
    hyperparameters: Mapping[str, Any],
) -> xr.Dataset:
    """Draws ``(chain, draw, ...)`` as a dataset with dimensions named by plates and events.

    Args:
        draws: by site.
        dims: names of each site's dimensions.
        annotations: whose tasks, workers and classes give the coordinates.
        hyperparameters: of the story, which name the families of workers.
    """
    import xarray as xr

    names = {site: ("chain", "draw", *(RENAMED.get(dim, dim) for dim in dims[site])) for site in draws}
    variables = {site: (names[site], value) for site, value in draws.items()}
    wanted = {dim for site_dims in names.values() for dim in site_dims}
    coords = coords_of(annotations, wanted)
    coords |= {dim: values for dim, values in coordinates(hyperparameters).items() if dim in wanted}
    shape = next((values.shape[:2] for values in draws.values()), (0, 0))
    return xr.Dataset(variables, coords | {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])})


def coords_of(annotations: Annotations, dims: Iterable[str]) -> dict[str, np.ndarray]:
    """The ids along those of the dimensions that have any."""
    classes = annotations.classes.coords()
    known = {
        "task": annotations.tasks.coords(),
        "worker": annotations.workers.coords(),
        "truth": classes,
        "annotation": annotations.levels.coords(),
        "kind": annotations.categories.coords(),
        "model": annotations.models.coords(),
        "question": annotations.questions.coords(),
        "item": annotations.items.coords(),
        DIM: np.array(["a class", *map(str, annotations.abstentions)]),
    }
    wanted = set(dims)
    return {dim: values for dim, values in known.items() if dim in wanted and len(values)}
