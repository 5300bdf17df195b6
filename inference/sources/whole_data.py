"""Stories that need all annotations at once, which files do not give them: they are refused before they are fitted."""

import jax
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.store import Store
from ...models import StoryError
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import Dims, check_rows, parameter_dims
from .on_disk import IN_MEMORY, Files
from .starting import parameter_shapes, start_from, start_sums

LOOK = 2**14  # rows of a batch that a story is tried with, before it is known what fits into memory


def tried(model: Model, store: Store) -> tuple[Files, Dims]:
    """Return the files in batches to try a story with, and the names of its parameters' dimensions.

    Raises:
        StoryError: the story does not fit these data, or a parameter or hyperparameter grows with the tasks.
    """
    name = model.story.__name__
    for option, value in model.hyperparameters.items():
        if np.ndim(value) and len(value) == store.n_tasks != len(store.n_by_worker):
            raise StoryError(f"{name}({option}=…) has a value for each task, and a scan is read in chunks; {IN_MEMORY}")
    source = Files(store, store.plan(LOOK), model)
    wider = source.plan._replace(n_rows=source.plan.n_rows + 8, n_tasks=source.plan.n_tasks + 8)
    try:
        dims, shapes = parameter_dims(model, source.like), _shapes(model, source)
        others = _shapes(model, Files(store, wider, model))
        check_rows(model, store.batch(source.plan, 0, with_names=True))
    except StoryError as error:
        getattr(error, "__notes__", []).clear()  # what JAX has to say of its own frames
        raise
    for site, names in dims.items():
        if {"task", "row"} & set(names) or shapes[site] != others[site]:
            raise StoryError(
                f"{name}: {site!r} has a value for each task, so that its parameters grow with the tasks and a scan "
                f"cannot be fitted; fit a story whose parameters belong to workers or classes, such as dawid_skene or "
                f"one_coin, or {IN_MEMORY}"
            )
    return source, dims


def refuse_whole_data(model: Model, source: Files, key: Array) -> None:
    """Refuse a story of a user's own that reads something of all annotations where it sees a batch of them.

    Raises:
        StoryError: a start, or the priors, differ between the first batch and the last, with the site.
    """
    if source.n_batches < 2:
        return
    ends = [source.like, source.batch(source.n_batches - 1)]
    totals = [np.ones(x.shape, x.dtype) for x in jax.eval_shape(start_sums, model, ends[0], key)]
    starts = [start_from(model, batch, key, totals) for batch in ends]
    for site, value in starts[0].items():
        if not np.allclose(value, starts[1][site], rtol=1e-4, atol=1e-6, equal_nan=True):
            raise StoryError(
                f"{model.story.__name__}: the start of {site!r} is taken from the annotations, and a scan is read in "
                f"chunks; make it a sum by the functions of crowdppl.models.parts.starts, or {IN_MEMORY}"
            )
    priors = [float(_log_prior(model, batch, starts[0])) for batch in ends]
    if not np.isclose(priors[0], priors[1], rtol=1e-4, equal_nan=True):
        raise StoryError(
            f"{model.story.__name__}: the priors of its parameters depend on the annotations, and a scan is read in "
            f"chunks; {IN_MEMORY}"
        )


@compiled
def _log_prior(model: Model, batch: Annotations, parameters: Parameters) -> Array:
    return density(model, parameters, batch).log_prior


def _shapes(model: Model, source: Files) -> dict[str, tuple[int, ...]]:
    return {name: leaf.shape for name, leaf in parameter_shapes(model, source.like).items()}
