"""Annotations on the disk as a source: batches as large as the memory allows, read one after the other.

Stories that need all annotations at once are refused before they are fitted.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations, Ids
from ...data.batch import Batch
from ...data.kinds import Kind
from ...data.scan import size_text
from ...data.store import Plan, Store
from ...models import StoryError
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.portable import is_portable, promises_it
from ..densities.programs import compiled
from ..densities.sites import Dims, check_rows, check_steps, parameter_dims
from .starting import parameter_shapes, start_from, start_sums

MOST_ROWS = 2**20  # of a batch: larger ones are no faster
LEAST_ROWS = 2**12
LOOK = 2**14  # rows of a batch that a story is tried with, before it is known what fits into memory
COPIES = 16  # of a batch's rows × classes, and of the parameters, that a program holds at once, at the most

IN_MEMORY = "load the annotations with cp.Annotations.from_parquet(path) for that"


class OnDiskError(AttributeError, TypeError):
    """A view needs in memory the annotations that a fit left on the disk.

    It is an ``AttributeError`` where the view is a property, so that ``hasattr`` answers, and a ``TypeError`` where it
    is a function.
    """

    def __init__(self) -> None:
        super().__init__(
            "the annotations are needed in memory, and a streamed fit leaves them on the disk: load them with "
            "cp.Annotations.from_parquet(path) and fit them; a streamed fit has workers, parameters, derived and "
            "summary(), iter_labels() yields its labels chunk by chunk, write_labels(path) writes them, and "
            "cp.fit(story, scan, folder=…) keeps it"
        )


class Files:
    """Annotations in files, as compiled programs take them.

    What is known of them without reading a row has the names of :class:`.Annotations`.

    Args:
        store: the annotations.
        plan: the batches that they are read in.
        model: the story, which may know workers and classes by name.
    """

    progress = False  # whether passes over the data, after those of the engine, show a bar

    def __init__(self, store: Store, plan: Plan, model: Model) -> None:
        self.store, self.plan, self.model = store, plan, model
        self.add: Callable[..., Any] | None = None  # the program that adds a batch's sums, where it is compiled already

    @cached_property
    def with_names(self) -> bool:
        """True where batches have the identifiers of workers and classes, since the story may read them."""
        return not (promises_it(self.model) or is_portable(self.model, self.store.batch(self.plan, 0)))

    @cached_property
    def like(self) -> Batch:
        """The first batch, which stands for all where only shapes matter."""
        return self.batch(0)

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks."""
        return self.store.n_tasks

    @property
    def n_annotations(self) -> int:
        """The number of annotations."""
        return self.store.n_annotations

    @property
    def n_workers(self) -> int:
        """J, the number of workers; 0 where none is named."""
        return len(self.store.n_by_worker)

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return len(self.store.classes)

    @property
    def named(self) -> bool:
        """True where it is known which worker gave which annotation."""
        return self.store.named

    @property
    def workers(self) -> Ids:
        """The J identifiers, in the order in which they came."""
        return self.store.workers

    @property
    def classes(self) -> Ids:
        """The K classes in their order."""
        return self.store.classes

    @property
    def kind(self) -> Kind:
        """The kind of the labels."""
        return self.like.kind

    def all_of_few(self, n_rows: int) -> Annotations | None:
        """Return all annotations in memory, where they are no more rows than these; None of more."""
        return self.store.annotations() if self.store.n_rows <= n_rows else None

    def sample(self, n_rows: int) -> Annotations | None:
        """Return annotations in memory: all of them, or about so many rows of more; None where an engine keeps them."""
        return self.store.annotations(n_rows)

    def n_by_worker(self) -> np.ndarray:
        """The number of annotations of each worker, ``(J,)``."""
        return self.store.n_by_worker

    @property
    def n_batches(self) -> int:
        """The number of batches."""
        return len(self.plan.slices)

    def batch(self, number: int) -> Batch:
        """Read one batch."""
        return self.store.batch(self.plan, number, with_names=self.with_names)

    def batches(self, order: Sequence[int] | np.ndarray | None = None, *, begin: int = 0) -> Iterator[Batch]:
        """Yield batches; the next is read while one is worked on: :meth:`.Source.batches`."""
        order = range(self.n_batches) if order is None else order
        return self.store.batches(self.plan, order[begin:], with_names=self.with_names)

    @staticmethod
    def refuses(option: str) -> str | None:
        """Return why a fit to files does not take an option: :meth:`.Source.refuses`."""
        return REFUSED.get(option)


REFUSED = {
    **dict.fromkeys(
        ("classifier", "truth_prior", "gold", "evidence", "probabilities"),
        f"says something of single tasks, which a fit of a scan does not take; {IN_MEMORY}",
    ),
    "constant_workers": f"a scan has all annotations, and does not look for constant workers; {IN_MEMORY}",
    "copies": f"a scan has all annotations, and does not look for copies; {IN_MEMORY}",
    "abstentions": f"a scan has no abstentions; {IN_MEMORY}",
    "devices": f"a scan is read by one device; leave it out, or {IN_MEMORY}",
    "backend": "a scan is fitted by backend='numpyro'",
    "method": f"a scan is fitted by method='em' or 'svi'; {IN_MEMORY}",
    "batch_size": "a scan is read in chunks, whose size follows from scan(…, memory=…); leave it out",
    "restarts": "a scan is fitted from one start; leave it out",
    **dict.fromkeys(("warmup", "held_out", "patience"), "a scan takes no part of its annotations out; leave it out"),
}
"""Options that a fit to files does not take, with the reason and the mend."""


def suited_files(
    model: Model,
    store: Store,
    memory: int,
    needed: Callable[[Files], int],
    *,
    n_rows: int | None = None,
    n_batches: int = 1,
) -> Files:
    """Cut the data into batches that are as large as memory allows.

    Args:
        model: the story.
        store: the data.
        memory: bytes that the fit may take.
        needed: bytes that a fit to a source takes at its peak.
        n_rows: rows of a batch, of an earlier fit; None to choose.
        n_batches: batches at the least, as far as they have :data:`LEAST_ROWS`.

    Raises:
        StoryError: the parameters, or the smallest batch, do not fit.
    """
    most = min(store.n_rows, MOST_ROWS, rows_within(memory, len(store.classes)))
    if n_batches > 1:
        most = min(most, max(store.n_rows // n_batches, LEAST_ROWS))
    rows = n_rows or max(most, LEAST_ROWS)
    while True:
        source = Files(store, store.plan(rows), model)
        if n_rows is not None or upper_bound(model, source) <= memory // 2:
            return source
        n_bytes = needed(source)
        if n_bytes <= memory:
            return source
        if rows <= LEAST_ROWS or source.plan.n_rows > 4 * rows:
            raise _too_large(model, source, memory, n_bytes)
        rows = max(rows // 2, LEAST_ROWS)


def check_draws(model: Model, source: Files, n_draws: int, memory: int) -> None:
    """Refuse draws of the parameters that take more than half of the memory.

    Raises:
        StoryError: they do, with how many do not.
    """
    each = n_bytes_of(parameter_shapes(model, source.like))
    if n_draws * each <= memory // 2:
        return
    raise StoryError(
        f"draws={n_draws}: each draw of {model.story.__name__}'s parameters takes {size_text(each)}, and all of them "
        f"more than half of memory={size_text(memory)}; give draws={max(memory // 2 // each, 1)} or fewer, or "
        "scan(…, memory=…) more"
    )


def upper_bound(model: Model, source: Files) -> int:
    """Return what a fit takes by the sizes of parameters and batches alone: more than it will be, of most stories."""
    parameters = parameter_shapes(model, source.like)
    return COPIES * n_bytes_of(parameters) + source.plan.n_rows * _bytes_a_row(len(source.store.classes))


def rows_within(memory: int, n_classes: int) -> int:
    """Return the rows of a batch that half of the memory is enough for."""
    return memory // (2 * _bytes_a_row(n_classes))


def n_bytes_of(tree: Any) -> int:
    """Return the bytes of a tree's arrays."""
    return sum(jnp.dtype(leaf.dtype).itemsize * leaf.size for leaf in jax.tree.leaves(tree))


def _bytes_a_row(n_classes: int) -> int:
    return 64 + 4 * n_classes * (COPIES + n_classes)


def _too_large(model: Model, source: Files, memory: int, needed: int) -> StoryError:
    n_workers, n_classes = len(source.store.n_by_worker), len(source.store.classes)
    parameters = parameter_shapes(model, source.like)
    name, largest = max(parameters.items(), key=lambda item: item[1].size)
    story = model.story.__name__
    return StoryError(
        f"{story} needs about {size_text(needed)} of memory for {n_workers:,} workers and {n_classes:,} classes, and "
        f"memory={size_text(memory)} is allowed; its largest parameter is {name!r} {tuple(largest.shape)}, and a chunk "
        f"has {source.plan.n_rows:,} rows. Give scan(…, memory=…) more, or fit a story with fewer parameters, such as "
        "one_coin (one number a worker), or annotator_groups (none)"
    )


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
        first = store.batch(source.plan, 0, with_names=True)
        check_rows(model, first)
        check_steps(model, first)
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
