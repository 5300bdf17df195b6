"""What a fit leaves: labels, workers, draws, decisions, each in the names that came in."""

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from ..data import AnnotationError, Annotations, unknown_name
from ..models.parts.classifier import PREFIX
from .densities.model import Model
from .densities.sites import Dims, derived
from .engines.outcome import Outcome
from .fitted import posterior
from .fitted.intervals import INTERVAL
from .fitted.labels import Labelled
from .fitted.summary import Summary, summarise
from .fitted.tasks import REPLICATES, task_scores
from .fitted.workers import worker_scores
from .storage.arviz_data import make_idata
from .storage.arviz_groups import parameter_dataset, to_groups


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Labelled):
    """A story fitted to annotations. Made by :func:`crowdppl.fit`.

    Args:
        model: the story with its hyperparameters.
        annotations: the data, with the evidence that was used.
        method: the engine's name; ``settings`` are its options and the seed.
        outcome: draws of the parameters, the engine's history, statistics and warnings.
        posterior: ``P(truth | annotations)``, averaged over draws of the parameters: ``(N, K)``.
        dims: names of the dimensions of each parameter.
    """

    model: Model
    annotations: Annotations
    method: str
    settings: dict[str, Any]
    outcome: Outcome
    posterior: np.ndarray
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def story(self) -> str:
        """The story's name."""
        return self.model.story.__name__

    @property
    def has_draws(self) -> bool:
        """Whether there are draws to take intervals from; EM has none."""
        return self.method != "em"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was found wrong with the fit, a sentence each; empty where nothing was."""
        return self.outcome.warnings

    @property
    def history(self) -> pd.Series:
        """By iteration: the log-posterior (EM) or the negative evidence lower bound (SVI); empty for NUTS."""
        name = {"em": "log_posterior", "svi": "loss"}.get(self.method, "history")
        return pd.Series(self.outcome.history, name=name).rename_axis("iteration")

    @cached_property
    def draws(self) -> xr.Dataset:
        """The parameters' draws, with the dimensions chain, draw and named others; EM's mode is the only draw."""
        return parameter_dataset(self.outcome.draws, self.dims, self.annotations)

    @cached_property
    def parameters(self) -> xr.Dataset:
        """Each parameter's mean over the draws (EM: the mode), with named dimensions."""
        return self.draws.mean(("chain", "draw"))

    @cached_property
    def derived(self) -> xr.Dataset:
        """What the story says of its parameters beside them, such as a group's share: means over the draws."""
        values = posterior.derived_mean(self.model, self._data, self.outcome.draws, self.outcome.fixed)
        dims = self._derived_dims
        single = {name: np.asarray(value)[None, None] for name, value in values.items()}
        return (
            parameter_dataset(single, dims, self.annotations).isel(chain=0, draw=0, drop=True) if dims else xr.Dataset()
        )

    def derived_draws(self, *names: str) -> xr.Dataset:
        """The same in each draw, with the dimensions chain and draw; all quantities unless some are named.

        Raises:
            UnknownNameError: the story reports nothing of that name.
        """
        dims = self._derived_dims
        for name in names:
            if name not in dims:
                raise unknown_name("derived quantity", name, dims)
        outcome, wanted = self.outcome, names or tuple(dims)
        values = posterior.derived_draws(self.model, self._data, outcome.draws, outcome.fixed, wanted)
        return parameter_dataset({name: np.asarray(v) for name, v in values.items()}, dims, self.annotations)

    @cached_property
    def _derived_dims(self) -> Dims:
        found: Dims = {}
        first = {name: jnp.asarray(draws[0, 0]) for name, draws in self.outcome.draws.items()} | self.outcome.fixed
        jax.eval_shape(lambda: found.update(derived(self.model, first, self._data)[1]))
        return found

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in each draw: ``(chain, draw, J, K, L)``.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        if not self.annotations.named:
            raise AnnotationError(
                "the annotations name no workers, so there is nobody to score; fit.labels has the tasks"
            )
        return np.asarray(posterior.worker_confusions(self.model, self._data, self.outcome.draws, self.outcome.fixed))

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """By task its label, the doubt about it, and whether task or crowd are its cause: :meth:`task_scores`."""
        return self.task_scores()

    def task_scores(self, *, replicates: int = REPLICATES, seed: int = 0) -> pd.DataFrame:
        """:attr:`tasks`, by another number of replicated annotations, or others of them: :func:`.tasks.task_scores`."""
        return task_scores(self, replicates=replicates, seed=seed)

    def worker_scores(self, interval: float = INTERVAL, *, rank_one: bool = False) -> pd.DataFrame:
        """By worker what the fit, the gold labels and the times say; with draws each with ``_low`` and ``_high``.

        - annotations: how many annotations were given.
        - accuracy: probability of a right annotation to a task of the crowd's mix.
        - spammer_score: how far the table is from one whose rows are all alike (Raykar & Yu 2011); 0 for a spammer.
        - sensitivity, specificity: for two classes, of which the second is the positive one.
        - trace: probability of a right annotation where all classes are equally frequent.
        - informativeness: nats that an annotation says of the truth of a task of the crowd's mix.
        - rank_one_distance: how far the table is from a matrix of rank one, where `rank_one` asks for it.
        - agreement: the expected share of the annotations given that equal the truth; its interval is of that share, the
          truths being drawn too (in 500 draws at the most).
        - gold_annotations, gold_right, gold_accuracy: annotations to the gold tasks of the annotations, where there are
          any, counted (:func:`.worker_scores.gold_scores`).
        - seconds: the median of how long an annotation took, where times are known.

        The scores from tables are in :mod:`.workers`. A fit without draws has no intervals here; those of the last two
        are in :meth:`gold_scores` and :func:`.worker_scores.seconds_by_worker`.

        Args:
            interval: mass of the intervals, equal-tailed, between 0 and 1.
            rank_one: whether to take the singular values of all tables.

        Raises:
            AnnotationError: the annotations name no workers.
            ValueError: for another `interval`.
        """
        return worker_scores(self, interval, rank_one=rank_one)

    @cached_property
    def idata(self) -> Any:
        """ArviZ data: posterior, sample_stats, log_likelihood per task, observed_data, constant_data."""
        return self.to_idata()

    def to_idata(self, *, posterior_predictive: bool = False, seed: int = 0) -> Any:
        """:attr:`idata`, with replicated truth and annotations where ``posterior_predictive`` asks for them."""
        groups = to_groups(self)
        if posterior_predictive:
            groups["posterior_predictive"] = self.posterior_predictive(seed=seed)
        return make_idata(groups)

    def log_likelihood(self) -> np.ndarray:
        """Of each task in each draw, the truth summed out: ``(chain, draw, N)``."""
        return np.asarray(posterior.log_likelihood(self.model, self._data, self.outcome.draws, self.outcome.fixed))

    def posterior_predictive(self, *, seed: int = 0) -> xr.Dataset:
        """For each draw a true label of each task given its annotations, and new annotations of the same workers.

        Returns:
            ``truth (chain, draw, task)`` and ``annotation (chain, draw, row)``, as positions of classes.
        """
        chains, draws = next(iter(self.outcome.draws.values())).shape[:2]
        keys = jax.random.split(jax.random.key(seed), (chains, draws))
        truth, answers = posterior.replicate(self.model, self._data, self.outcome.draws, self.outcome.fixed, keys)
        return xr.Dataset(
            {
                "truth": (("chain", "draw", "task"), np.asarray(truth)),
                "annotation": (("chain", "draw", "row"), np.asarray(answers)),
            },
            coords={"task": self.annotations.tasks.coords()},
        )

    def predict_proba(self, x: Any) -> np.ndarray:
        """The classifier's probabilities for new tasks, averaged over the draws where its weights have a posterior.

        Args:
            x: features ``(n, ...)``, each of the shape that the classifier was trained on; for a torch module that
                was trained on a Dataset, another one.

        Returns:
            ``(n, K)``, in the order of ``annotations.classes``.

        Raises:
            ValueError: the story was fitted without a classifier, or the features have another shape or are not
                finite.
        """
        classifier = self.model.classifier
        if classifier is None and self.model.torch_classifier is None:
            raise ValueError(
                f"{self.story} was fitted without a classifier, so it says nothing of tasks without annotations; "
                "fit.probabilities has the tasks that it saw"
            )
        if self.annotations.features is None:  # the module has its own idea of what x is
            return self.model.torch_classifier.predict_proba(x, self.annotations.n_classes)
        x, shape = np.asarray(x, dtype=np.float32), np.asarray(self.annotations.features).shape[1:]
        if x.shape[1:] != shape or x.ndim != len(shape) + 1:
            raise ValueError(f"x has shape {x.shape}; (n, {', '.join(map(str, shape))}) is needed, as in the training")
        if not np.isfinite(x).all():
            row = int(np.argmin(np.isfinite(x).reshape(len(x), -1).all(-1)))
            raise ValueError(f"x, row {row}: {x[row].tolist()} has a value that is not finite")
        if not len(x):
            return np.zeros((0, self.annotations.n_classes), dtype=np.float32)
        if classifier is None:
            return self.model.torch_classifier.predict_proba(x, self.annotations.n_classes)
        outcome = self.outcome
        weights = {name: values for name, values in outcome.draws.items() if name.startswith(PREFIX)}
        return np.asarray(
            posterior.class_probabilities(classifier, self.annotations.n_classes, x, weights, outcome.fixed)
        )

    def summary(self, interval: float = INTERVAL) -> Summary:
        """What was fitted, whether to trust it, and what was found; prints as text, shows as a table in notebooks."""
        return summarise(self, interval)

    def save(self, path: str | PathLike) -> None:
        """Write the fit to the folder ``path`` (netCDF and JSON), whole or not at all: :func:`.storage.save`."""
        from .storage.fit_folder import save

        save(self, path)

    def __repr__(self) -> str:
        return f"Fit({self.story!r}, method={self.method!r}, {self.annotations!r})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def _data(self) -> Annotations:
        """The annotations as the engines saw them: without gold labels that were not asked for."""
        return self.annotations.replace(gold=None)
