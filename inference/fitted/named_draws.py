"""Arrays by site with named tasks, workers and classes, and as xarray datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...data import Annotations
from ...models.parts.abstaining import DIM
from ...models.parts.general import coordinates

if TYPE_CHECKING:
    import xarray as xr

RENAMED = {"class": "truth"}  # a story's plate may not bear the name of the site ``truth``; a dimension may


Variable: TypeAlias = tuple[tuple[str, ...], np.ndarray] | tuple[tuple[str, ...], np.ndarray, dict[str, str]]
"""Dimensions, values, and what may be said of them."""


@dataclass(frozen=True)
class NamedArrays:
    """The content of a dataset of xarray's: arrays with named dimensions.

    A fit is written to files without xarray, which takes longer to import than the fit takes.

    Args:
        variables: by name.
        coords: the ids along a dimension, by its name.
        attrs: text about all of it.
    """

    variables: Mapping[str, Variable]
    coords: Mapping[str, np.ndarray] = field(default_factory=dict)
    attrs: Mapping[str, str] = field(default_factory=dict)

    def with_more(
        self,
        variables: Mapping[str, Variable] | None = None,
        coords: Mapping[str, np.ndarray] | None = None,
        attrs: Mapping[str, str] | None = None,
    ) -> NamedArrays:
        """These and others."""
        return NamedArrays(
            {**self.variables, **(variables or {})}, {**self.coords, **(coords or {})}, {**self.attrs, **(attrs or {})}
        )

    def without(self, names: Iterable[str]) -> NamedArrays:
        """These without some of the variables and coordinates."""
        left_out = set(names)
        variables = {name: value for name, value in self.variables.items() if name not in left_out}
        return NamedArrays(variables, {dim: ids for dim, ids in self.coords.items() if dim not in left_out}, self.attrs)

    def dataset(self) -> xr.Dataset:
        """The dataset."""
        import xarray as xr

        return xr.Dataset(dict(self.variables), dict(self.coords), dict(self.attrs))


def parameter_arrays(
    draws: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    annotations: Annotations,
    hyperparameters: Mapping[str, Any],
) -> NamedArrays:
    """Draws ``(chain, draw, ...)`` with dimensions named by plates and events.

    Args:
        dims: names of each site's dimensions.
        annotations: whose tasks, workers and classes give the coordinates.
        hyperparameters: of the story, which name the families of workers.
    """
    names = {site: ("chain", "draw", *(RENAMED.get(dim, dim) for dim in dims[site])) for site in draws}
    variables = {site: (names[site], value) for site, value in draws.items()}
    wanted = {dim for site_dims in names.values() for dim in site_dims}
    coords = coords_of(annotations, wanted)
    coords |= {dim: values for dim, values in coordinates(hyperparameters).items() if dim in wanted}
    shape = next((values.shape[:2] for values in draws.values()), (0, 0))
    return NamedArrays(variables, coords | {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])})


def coords_of(annotations: Annotations, dims: Iterable[str]) -> dict[str, np.ndarray]:
    """The ids along those of the dimensions that have any."""
    classes = annotations.classes.coords()
    known = {
        "task": annotations.tasks.coords(),
        "worker": annotations.workers.coords(),
        "truth": classes,
        "annotation": annotations.levels.coords(),
        "verdict": classes,
        "kind": annotations.categories.coords(),
        "model": annotations.models.coords(),
        "question": annotations.questions.coords(),
        "item": annotations.items.coords(),
        "feature": annotations.feature_names.coords(),
        "item_feature": annotations.item_feature_names.coords(),
        DIM: np.array(["a class", *map(str, annotations.abstentions)]),
    }
    wanted = set(dims)
    return {dim: values for dim, values in known.items() if dim in wanted and len(values)}
