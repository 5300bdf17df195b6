"""A story fitted to annotations on the disk: what a user holds of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from jax import Array

from ..data import AnnotationError
from ..data.atomic import whole_folder
from ..data.batch import Batch
from ..data.cards import card, facts, never_raising
from ..data.description import count_text
from ..data.padding import real_tasks
from ..data.store import Store
from ..models import Emission
from ..models.parts.whole_sums import collected, given
from .densities.enumerated import Parameters, density
from .densities.model import Model
from .densities.programs import compiled
from .densities.sites import Dims, derived
from .engines.finding import sentences
from .engines.outcome import Outcome
from .engines.progress import progress_bar
from .findings.facts import SURE
from .findings.look import look_at
from .findings.render import Findings
from .findings.summary import Summary, best_and_worst, course, difficulties, options_text, positive_class, shared_errors
from .fitted import confusion_scores
from .fitted.intervals import INTERVAL, of_draws
from .fitted.misled import USUAL, misleading
from .fitted.named_draws import parameter_dataset
from .sources.on_disk import Files

if TYPE_CHECKING:
    import xarray as xr

FEW = 20  # draws at the most that a pass over the data looks at
NUMBERS = 2e6  # in confusion matrices that need no pass, about
NO_DIMS = ("task", "row")  # quantities by task or by row stay on the disk


class Overview(NamedTuple):
    """Sums over all tasks of what is known of their labels."""

    shares: Array  # (K,) expected tasks of each class
    sure: Array  # () tasks whose label has probability 0.9
    right: Array  # (J,) expected annotations of each worker that equal the truth; empty where no worker is named


OF_LABELS = ("labels", "probabilities", "tasks", "decide")
IN_MEMORY = ("annotations", "confusions", "idata", "to_idata", "report", "update", "predict_proba", "fitted")


@dataclass(frozen=True, eq=False, repr=False)
class StreamedFit:
    """A story fitted by EM or SVI to annotations that stay on the disk. Made by :func:`crowdppl.fit` of a `scan`.

    What grows with the tasks is not in memory: :meth:`write_labels` writes the labels to files, and
    :meth:`iter_labels` yields them chunk by chunk. Tasks come in ascending order.

    What follows from the parameters is averaged over draws of SVI's guide: parameters over all of them, and what needs
    the annotations, such as label probabilities, over :data:`FEW` of them.

    Args:
        store: the annotations, sorted by task.
        source: their batches.
        model: the story with its hyperparameters.
        outcome: EM's solution or draws of SVI's guide, the history and facts.
        settings: the engine's options and the seed.
        dims: names of the dimensions of each parameter.
        progress: whether to show bars of further passes over the data.
        method: the engine's name.
    """

    on_disk: ClassVar[bool] = True

    store: Store
    source: Files
    model: Model
    outcome: Outcome
    settings: dict[str, Any]
    dims: Dims
    progress: bool = field(default=False)
    method: str = "em"

    def __getattr__(self, name: str) -> Any:
        if name in OF_LABELS:
            raise AttributeError(
                f"a streamed fit has no {name}: labels stay in files; write_labels(path) writes them, iter_labels() "
                "yields them chunk by chunk"
            )
        if name == "save":
            raise AttributeError(
                "a streamed fit has no save: cp.fit(story, scan, folder=…) keeps it, and the same call reads it again"
            )
        if name in IN_MEMORY:
            lacks = "annotations" if name == "annotations" else f"{name}, which needs the annotations in memory"
            raise AttributeError(
                f"a streamed fit has no {lacks}: they stay on the disk, and cp.Annotations.from_parquet(path) loads "
                "them; a streamed fit has workers, parameters, derived, summary() and write_labels(path)"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def story(self) -> str:
        """The story's name."""
        return self.model.story.__name__

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks."""
        return self.store.n_tasks

    @property
    def n_workers(self) -> int:
        """J, the number of workers; 0 where none is named."""
        return len(self.store.n_by_worker)

    @property
    def n_annotations(self) -> int:
        """The number of annotations."""
        return self.store.n_annotations

    @property
    def classes(self) -> list[Any]:
        """The K classes in their order."""
        return list(self.store.classes)

    @cached_property
    def findings(self) -> Findings:
        """What a user should know or act on; a table in notebooks.

        The first use takes a pass over the data, which serves the summary and the workers' scores too.
        """
        return Findings(look_at(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Findings that a user should act on, a sentence each; empty where nothing was found."""
        return sentences(self.findings)

    @property
    def class_totals(self) -> pd.DataFrame:
        """By class the expected number of tasks, and the number of annotations that are of it."""
        totals = {"tasks": np.asarray(self._overview.shares, float), "annotations": self.store.by_class}
        return pd.DataFrame(totals, self.store.classes.to_index("class"))

    @property
    def has_draws(self) -> bool:
        """True where there are draws to take intervals from; EM, and a guide that is one point, have none."""
        return not self.outcome.is_point

    @property
    def history(self) -> pd.Series:
        """By iteration: the log-posterior (EM) or the negative evidence lower bound (SVI)."""
        name = "log_posterior" if self.method == "em" else "loss"
        return pd.Series(self.outcome.history, name=name).rename_axis("iteration")

    @cached_property
    def draws(self) -> xr.Dataset:
        """The parameters' draws, with the dimensions chain, draw and named others; EM's mode is the only draw."""
        return parameter_dataset(self.outcome.draws, self.dims, self.store.names(), self.model.hyperparameters)

    @cached_property
    def parameters(self) -> xr.Dataset:
        """Each parameter's mean over the draws (EM: the mode), with named dimensions."""
        return self.draws.mean(("chain", "draw"))

    @cached_property
    def derived(self) -> xr.Dataset:
        """Quantities that the story derives from its parameters, such as a group's share, but none by task or row."""
        import xarray as xr

        first = self.source.like
        dims: Dims = {}
        jax.eval_shape(lambda: dims.update(derived(self.model, self._one, first)[1]))
        names = tuple(name for name, found in dims.items() if not set(NO_DIMS) & set(found))
        if not names:
            return xr.Dataset()
        totals = [jnp.zeros(x.shape, x.dtype) for x in jax.eval_shape(_derived_sums, self.model, first, self._few)]
        if totals:
            totals = self._added(lambda batch: _derived_sums(self.model, batch, self._few), totals)
        values = _derived(self.model, first, self._few, totals, names=names)
        draws = {name: np.asarray(value)[None, None] for name, value in values.items()}
        named = parameter_dataset(draws, dims, self.store.names(), self.model.hyperparameters)
        return named.isel(chain=0, draw=0, drop=True)

    @cached_property
    def workers(self) -> pd.DataFrame:
        """By worker: number of annotations, accuracy, spammer score and more, the columns of ``Fit.workers``.

        Workers are in the order in which they first came, as in memory. Where SVI has draws, what follows from
        confusion matrices has 90 % intervals, over some of the draws. EM has none here: draws around its mode would
        take labels and counts of all chunks for each draw.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        frame = pd.DataFrame(index=self.store.workers.to_index("worker"))
        confusions = self.confusion_matrices
        frame["annotations"] = self.store.n_by_worker.astype(int)
        shares = np.asarray(self._overview.shares, dtype=float)
        shares = shares / shares.sum()
        right, n = np.asarray(self._overview.right, float), self.store.n_by_worker
        kind = self.source.like.kind
        scores = confusion_scores.scores(confusions, shares, kind) | confusion_scores.more_scores(confusions, shares)
        draws = self._confusion_draws[None] if self.has_draws else None
        around = {}
        if draws is not None:
            around = confusion_scores.scores(draws, shares, kind) | confusion_scores.more_scores(draws, shares)
        for name, values in scores.items():
            frame[name] = values
            if name in around:
                low, high = of_draws(around[name], INTERVAL)
                frame[f"{name}_low"], frame[f"{name}_high"] = np.minimum(low, values), np.maximum(high, values)
            if name == "accuracy":
                realised = np.minimum(right / np.where(n > 0, n, np.nan), 1.0)  # sums of float32
                frame["realised_accuracy"] = misleading(realised, USUAL, len(self.store.classes))
        return frame

    @cached_property
    def confusion_matrices(self) -> np.ndarray:
        """Each worker's confusion matrix: ``(J, K, L)``.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        return self._confusion_draws.mean(0)

    @cached_property
    def _confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in some of the draws: ``(S, J, K, L)``."""
        if not self.store.named:
            raise AnnotationError("the annotations name no workers, so there is nobody to score")
        zeros, weights = jax.eval_shape(_confusions, self.model, self.source.like, self._few)
        if _averages_over_tasks(self.model, self.source.like, self._one):
            totals = (jnp.zeros(zeros.shape, zeros.dtype), jnp.zeros(weights.shape, weights.dtype))
            total, weight = self._added(lambda batch: _confusions(self.model, batch, self._few), totals)
            return np.asarray(total / jnp.maximum(weight, 1.0)[:, None, None])
        size = int(np.prod(zeros.shape[1:]))
        draws = self._some(max(int(NUMBERS // max(size, 1)), FEW))
        return np.asarray(_plain_confusions(self.model, self.source.like, draws))

    def iter_labels(self) -> Iterator[pd.DataFrame]:
        """Yield the labels chunk by chunk, as frames indexed by task.

        The columns are label (ties: the first class), probability, entropy in nats, and ``p_<class>`` with the
        probability of each class.
        """
        names = [f"p_{name}" for name in self.classes]
        classes = self.store.classes.to_index()
        for piece, posterior in zip(self.source.plan.slices, self._posteriors(), strict=True):
            best = self.source.like.kind.label(posterior)
            frame = pd.DataFrame({"label": classes[best]}, index=self.store.tasks(piece))
            frame["probability"] = posterior[np.arange(len(posterior)), best]
            frame["entropy"] = confusion_scores.entropy(posterior.astype(float))
            yield frame.join(pd.DataFrame(posterior, index=frame.index, columns=names))

    def write_labels(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the labels as a Parquet data set, chunk by chunk; the folder is there when all are written.

        The columns are task and those of :meth:`iter_labels`; the files ``part-00000.parquet``, … are in the order of
        their tasks.

        Args:
            path: of the new folder, such as ``"labels/"``.
            overwrite: replace a folder that has something in it.

        Returns:
            The folder.

        Raises:
            StorageError: it cannot be written, or has something in it.
        """
        n_batches = self.source.n_batches
        with (
            whole_folder(path, overwrite=overwrite) as folder,
            progress_bar("labels", n_batches, show=self.progress) as bar,
        ):
            for number, (piece, frame) in enumerate(zip(self.source.plan.slices, self.iter_labels(), strict=True)):
                table = pa.Table.from_pandas(frame, preserve_index=False)
                table = table.add_column(0, "task", self.store.task_values(piece))
                pq.write_table(table, folder / f"part-{number:05}.parquet")
                bar(number + 1, "")
        return Path(path)

    def summary(self) -> Summary:
        """The fit in a few lines; the certainty of labels and the workers' scores take a pass over the data."""
        overview = self._overview
        shares = np.asarray(overview.shares, dtype=float)
        facts = self._facts() | {
            "labels": f"{int(overview.sure):,} of {self.n_tasks:,} labels have probability ≥ {SURE}",
            **shared_errors(self.model, self.parameters),
            **difficulties(self.model, self.parameters),
        }
        classes = pd.DataFrame({"share_of_labels": shares / shares.sum()}, self.store.classes.to_index("class"))
        tables = {"classes": classes}
        if self.store.named:
            names = (
                "annotations",
                *confusion_scores.scores(self.confusion_matrices[:1], shares, self.source.like.kind),
            )
            shown = [c for c in self.workers if str(c).removesuffix("_low").removesuffix("_high") in names]
            tables |= best_and_worst(self.workers[shown])
            facts |= positive_class(self.store.classes)
        return Summary(self._title, facts, tables, self.findings)

    def __repr__(self) -> str:
        facts = self._facts() | {"labels": "fit.write_labels(folder), fit.iter_labels()"}
        return str(Summary(self._title, facts, {}, self.findings))

    @never_raising
    def _repr_html_(self) -> str:
        known = self._facts()
        then = ("fit.write_labels(folder)", "fit.workers", "fit.parameters", "fit.summary()")
        return card(self._title, known.pop("data"), facts(known), warnings=self.warnings, then=then)

    @property
    def _title(self) -> str:
        return f"{self.story} fitted by {self.method.upper()}, streaming"

    def _facts(self) -> dict[str, str]:
        tasks, given = count_text(self.n_tasks, "task"), count_text(self.n_annotations, "annotation")
        workers = count_text(self.n_workers, "worker")
        n_draws = next(iter(self.outcome.draws.values())).shape[1]
        chunks = count_text(self.source.n_batches, "chunk")
        return {
            "data": f"{tasks}, {workers}, {len(self.classes):,} classes, {given}, in {chunks}",
            "hyperparameters": options_text(self.model),
            "engine": course(self.method, self.outcome.history, n_draws, self.settings["seed"]),
        }

    @property
    def _few(self) -> Parameters:
        """Draws for one pass over the data, at most :data:`FEW`, by site ``(S, ...)``."""
        return self._some(FEW)

    def _some(self, most: int) -> Parameters:
        """Some of the draws, evenly far apart, by site ``(S, ...)``."""
        n_draws = next(iter(self.outcome.draws.values())).shape[1]
        some = np.unique(np.linspace(0, n_draws - 1, min(most, n_draws)).astype(int))
        return {name: jnp.asarray(value[0, some]) for name, value in self.outcome.draws.items()}

    @property
    def _one(self) -> Parameters:
        return {name: value[0] for name, value in self._few.items()}

    def _posteriors(self) -> Iterator[np.ndarray]:
        """``P(truth | annotations)`` of each batch's tasks."""
        few = self._few
        for piece, batch in zip(self.source.plan.slices, self.source.batches(), strict=True):
            yield np.asarray(_posterior(self.model, batch, few))[: piece.tasks.stop - piece.tasks.start]

    @cached_property
    def _overview(self) -> Overview:
        shapes = jax.eval_shape(_overview_of, self.model, self.source.like, self._few)
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return self._added(lambda batch: _overview_of(self.model, batch, self._few), zeros)

    def _added(self, of_batch: Callable[[Batch], Any], total: Any) -> Any:
        """Sums over all batches: one pass over the data."""

        def add(batch: Batch, total: Any) -> Any:
            return jax.tree.map(jnp.add, total, of_batch(batch))

        with progress_bar("pass over the data", self.source.n_batches, show=self.progress) as bar:
            return self.source.total(add, total, after=lambda total, done: bar(done, ""))


def _mean(function: Callable[[Parameters], Any], draws: Parameters) -> Any:
    """A function's mean over draws, ``(S, ...)`` by site, one draw at a time."""
    return jax.tree.map(lambda values: values.mean(0), jax.lax.map(function, draws))


@compiled
def _posterior(model: Model, batch: Batch, draws: Parameters) -> Array:
    found = _mean(lambda draw: density(model, draw, batch).posterior, draws)
    return found / found.sum(-1, keepdims=True)


@compiled
def _overview_of(model: Model, batch: Batch, draws: Parameters) -> Overview:
    is_real = jnp.asarray(real_tasks(batch))
    posterior = jnp.where(is_real[:, None], _posterior(model, batch, draws), 0.0)
    sure = (posterior.max(-1) >= SURE).sum()
    right = jnp.zeros(0)
    if batch.worker is not None:
        agree = posterior[batch.task, batch.label] * jnp.asarray(batch.count)
        right = jax.ops.segment_sum(agree, jnp.asarray(batch.worker), batch.n_workers)
    return Overview(posterior.sum(0), sure, right)


@compiled
def _derived_sums(model: Model, batch: Batch, draws: Parameters) -> list[Array]:
    """Return the sums over tasks that derived quantities need, for each draw."""

    def of_draw(draw: Parameters) -> list[Array]:
        with collected() as noted:
            derived(model, draw, batch)
        return noted

    return jax.lax.map(of_draw, draws)


@compiled(static=("names",))
def _derived(model: Model, batch: Batch, draws: Parameters, totals: list[Array], names: tuple[str, ...]) -> Parameters:
    def of_draw(at: tuple[Parameters, list[Array]]) -> Parameters:
        with given(at[1]):
            values = derived(model, at[0], batch)[0]
        return {name: values[name] for name in names}

    return jax.tree.map(lambda values: values.mean(0), jax.lax.map(of_draw, (draws, totals)))


@compiled
def _plain_confusions(model: Model, batch: Batch, draws: Parameters) -> Array:
    return jax.lax.map(lambda draw: density(model, draw, batch).likelihood.emission.confusions(batch), draws)


@compiled
def _confusions(model: Model, batch: Batch, draws: Parameters) -> tuple[Array, Array]:
    """The workers' confusion matrices times their annotations in the batch, ``(S, J, K, L)``, and these, ``(J,)``."""
    weight = jax.ops.segment_sum(jnp.asarray(batch.count), jnp.asarray(batch.worker), batch.n_workers)
    return _plain_confusions(model, batch, draws) * weight[:, None, None], weight


def _averages_over_tasks(model: Model, batch: Batch, parameters: Parameters) -> bool:
    """Return whether a worker's confusion matrix is the mean over the tasks that the worker annotated."""
    found: list[bool] = []

    def look() -> None:
        emission = density(model, parameters, batch).likelihood.emission
        inner = getattr(emission, "emission", emission)
        found.append(type(inner).confusions is Emission.confusions)

    jax.eval_shape(look)
    return found[0]
