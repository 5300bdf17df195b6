"""The result for users: a fit, with labels, workers and views under the names in the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pandas as pd

from ..data import AnnotationError, Annotations
from ..data.cards import never_raising
from ..data.pseudonyms import Key, check_workers, read_key
from .densities.model import Model
from .densities.probabilities import Probabilities
from .densities.sites import Dims
from .engines.outcome import Outcome
from .fit_story import update
from .fitted.confusions import confusion_frame, extreme_frame
from .fitted.crowd_trust import category_of
from .fitted.decisions import decide
from .fitted.fitted import Fitted
from .fitted.given_models import model_frame
from .fitted.intervals import INTERVAL
from .fitted.labelled import Labelled
from .fitted.modes import mode_frame, mode_labels
from .fitted.new_tasks import predict_proba
from .fitted.new_workers import new_worker_confusions
from .fitted.replicated_annotations import posterior_predictive
from .fitted.result_card import fit_card
from .fitted.summary import Summary, summarise
from .fitted.tasks import REPLICATES, task_scores
from .fitted.workers import fitted_scores, gold_scores, worker_scores
from .report.write import report
from .storage.arviz_data import make_idata
from .storage.arviz_groups import to_groups
from .storage.baseline_folder import save_baseline
from .storage.fit_folder import save
from .storage.label_files import join_labels, write_labels
from .storage.privacy import groups_without_workers, pseudonymised, shown
from .storage.worker_groups import worker_groups

if TYPE_CHECKING:
    import xarray as xr

    from .baselines.baseline import Baseline
    from .comparison.stacking import Averaged

View = TypeVar("View", "Fitted", "Averaged", "Baseline")


class Result(Labelled, Generic[View]):
    """Base class of fits, stacks of fits and baselines: labels, decisions, scores of workers, a report."""

    @property
    def workers(self) -> pd.DataFrame:
        """By worker: annotations, accuracy in the long run and realised, and more, with 90 % intervals."""
        return self.worker_scores()

    def worker_scores(self, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker the scores that follow from the confusion matrices: :func:`.fitted_scores`.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        return fitted_scores(self, interval)

    def gold_scores(self, gold: Any = None, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker how many annotations of gold tasks are right, with Jeffreys' interval: :func:`.gold_scores`."""
        return gold_scores(self.annotations, gold, interval=interval)

    def confusions(self, interval: float = INTERVAL) -> pd.DataFrame:
        """The workers' confusion matrices in long form: worker, truth, annotation, probability, low, high.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        return confusion_frame(self, interval)

    def extreme_confusions(self, interval: float = INTERVAL) -> pd.DataFrame:
        """The confusion matrices of the best and the worst worker by accuracy, and of the average annotation.

        In long form: which ("best", "worst", "average"), worker, truth, annotation, probability, low, high.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        return extreme_frame(self, interval)

    def decide(
        self,
        *,
        threshold: float | None = None,
        positive: object = None,
        costs: pd.DataFrame | np.ndarray | None = None,
        abstain: float | None = None,
    ) -> pd.DataFrame:
        """A label for each task by a threshold or by least expected cost: :func:`.decisions.decide`."""
        return decide(
            self.probabilities,
            threshold=threshold,
            positive=positive,
            costs=costs,
            abstain=abstain,
            kind=self.annotations.kind,
        )

    def join(self, table: Any, task: str | None = None, prefix: str = "") -> pd.DataFrame:
        """A table of your own with the labels of its tasks beside it: label, probability (of it), entropy (nats).

        Args:
            table: of pandas, polars, pyarrow or Hugging Face, with a column of tasks, in any order and with repeats.
            task: that column; None for the one that is called so or has nothing but tasks of the fit, and without one
                for the index of a pandas table, if it has some.
            prefix: put before the names of the new columns.

        Raises:
            AnnotationError: there is no such column, a new column has the name of one that is there, or no task is
                known.
        """
        return join_labels(self, table, task, prefix)

    def write_labels(
        self,
        path: str | PathLike,
        *,
        to: str | None = None,
        question: str | None = None,
        source: str | PathLike | None = None,
    ) -> Path:
        """Write the labels as predictions with scores, for a tool to import.

        Args:
            path: the file to write or to replace: .json, .parquet for ``"hf"``, .csv for ``"csv"``.
            to: ``"label-studio"``, ``"argilla"``, ``"hf"`` for Hugging Face datasets, with soft labels, or ``"csv"``,
                in which no cell is one that a spreadsheet would run; it has no default.
            question: its name in Label Studio or Argilla; by default the one that the source has, else ``"label"``.
            source: for Label Studio, the export that was read: the predictions are then of its tasks, with their ids
                and data, and have the shape of its question. Without it a task's data are its name. For Argilla, the
                export whose question the suggestions are of.

        Raises:
            UnknownNameError: no such tool is known.
            AnnotationError: no tool is named; the source is no export of the tool, has none of the tasks or several
                questions; an option or a suffix is of another tool.
            StorageError: the file cannot be written.
        """
        return write_labels(self, path, to=to, question=question, source=source)

    def worker_groups(self, min_group: int = 5) -> pd.DataFrame:
        """A table of the crowd in which every row stands for at least `min_group` workers (k-anonymity).

        Args:
            min_group: k of k-anonymity, at least 2.

        Raises:
            AnnotationError: there are fewer workers than that.
        """
        return worker_groups(self.workers, min_group)

    def report(self, path: str | PathLike, *, workers: str = "keep", key: Key | None = None, **options: Any) -> Path:
        """Write one self-contained page with labels, workers, checks and pictures: :func:`.write.report`.

        Args:
            path: of the new file, such as ``"report.html"``.
            workers: what the page has of the workers: ``"keep"`` their names, ``"hash"`` pseudonyms, ``"drop"``
                nothing.
            key: of the pseudonyms: 16 to 64 random bytes, or a file that holds them.
            options: ``title``, ``fits`` to compare with by name, ``gold``, ``checks=False`` to leave the checks out.

        Raises:
            StorageError: the file cannot be written; said before anything is computed.
            UnknownNameError: `workers` is something else.
            AnnotationError: the key is missing, is none, or is given for something else.
        """
        if workers != "keep" and options.get("fits") is not None:
            raise AnnotationError("fits= names the workers of other fits; give workers='keep', or leave fits= out")
        return report(shown(self._view, workers, key), path, **options)

    @property
    def _view(self) -> View:
        """The object inside the result that views are made from."""
        raise NotImplementedError

    @property
    def annotations(self) -> Annotations:
        """The data, with the evidence that was used."""
        return self._view.annotations

    @property
    def story(self) -> str:
        """The story's or the baseline's name; of several the stories that carry weight, the heaviest first."""
        return self._view.story

    @property
    def posterior(self) -> np.ndarray:
        """``P(truth | annotations)``, averaged over the draws and over the stories: ``(N, K)``."""
        return self._view.posterior

    @property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in each draw: ``(chain, draw, J, K, L)``.

        A point is one draw, and draws of several stories are one chain of their mixture. Those of a baseline are
        counted against the labels.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        return self._view.confusion_draws

    @property
    def has_draws(self) -> bool:
        """True where there are draws of the posterior; EM, a guide that is one point, and baselines have none."""
        return self._view.has_draws

    @property
    def shares_errors(self) -> bool:
        """True where the story, or any story with weight in an average, lets workers err together."""
        return self._view.shares_errors

    @property
    def with_uncertainty(self) -> View:
        """The view with draws that show its uncertainty; around a point, draws are made."""
        return self._view.with_uncertainty

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems to act on, a sentence each, from fits that carry weight; empty where nothing was found."""
        return self._view.warnings


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Result[Fitted]):
    """A story fitted to annotations. Made by :func:`crowdppl.fit`.

    Args:
        fitted: the story at draws of its parameters; all views are views of it.
    """

    fitted: Fitted

    @property
    def _view(self) -> Fitted:
        return self.fitted

    @property
    def model(self) -> Model:
        """The story with its hyperparameters."""
        return self.fitted.model

    @property
    def method(self) -> str:
        """The engine's name."""
        return self.fitted.method

    @property
    def settings(self) -> dict[str, Any]:
        """The engine's options, the seed and the backend."""
        return self.fitted.settings

    @property
    def outcome(self) -> Outcome:
        """The engine's outcome: draws by site, parameters without draws, history, statistics, warnings."""
        return self.fitted.outcome

    @property
    def dims(self) -> Dims:
        """Names of the dimensions of each parameter."""
        return self.fitted.dims

    @property
    def history(self) -> pd.Series:
        """By iteration: the log-posterior (EM) or the negative evidence lower bound (SVI); empty for NUTS."""
        return self.fitted.history

    @property
    def draws(self) -> xr.Dataset:
        """The parameters' draws, with the dimensions chain, draw and named others; EM's mode is the only draw."""
        return self.fitted.named_draws

    @property
    def parameters(self) -> xr.Dataset:
        """Each parameter's mean over the draws (EM: the mode), with named dimensions."""
        return self.fitted.parameters

    @property
    def derived(self) -> xr.Dataset:
        """Quantities that the story derives from its parameters, such as a group's share: means over the draws."""
        return self.fitted.derived

    def derived_draws(self, *names: str) -> xr.Dataset:
        """The derived quantities in each draw, with the dimensions chain and draw; all of them unless some are named.

        Raises:
            UnknownNameError: the story derives nothing of that name.
        """
        return self.fitted.derived_draws(*names)

    @property
    def models(self) -> pd.DataFrame:
        """By model whose probabilities were given, what they were found to be worth: :func:`.given_models.model_frame`.

        Raises:
            AnnotationError: no probabilities were given.
        """
        return model_frame(self.fitted)

    @cached_property
    def modes(self) -> pd.DataFrame:
        """By mode in which a start of EM (``restarts=``) or a chain ended, its mass, the largest first.

        - log_posterior: of the parameters, with probability tables in log-odds, as EM climbs it.
        - log_mass: of the posterior around the mode, by Laplace's approximation; NaN where there is one mode, of which
          it is not computed, and where a mode is no peak but a ridge, as where a hierarchy's spread vanishes.
        - mass: its share of the masses; they sum to 1, or are NaN where a log_mass is. What no start found has none.
        - ends: which starts or chains ended there, from 1.
        - tasks_differ: tasks with another label than in the first mode. Starts and chains that label all tasks alike
          are of one mode. With a torch classifier only the best start is known.
        """
        return mode_frame(self.fitted)

    @property
    def mode_labels(self) -> pd.DataFrame:
        """By task on which :attr:`modes` differ its most probable class in each."""
        return mode_labels(self.fitted)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """By task its label, the doubt about it, and whether task or crowd are its cause: :meth:`task_scores`."""
        return self.task_scores()

    def task_scores(self, *, replicates: int = REPLICATES, seed: int = 0) -> pd.DataFrame:
        """:attr:`tasks`, by another number of replicated annotations, or another seed: :func:`.tasks.task_scores`."""
        return task_scores(self.fitted, replicates=replicates, seed=seed)

    def worker_scores(
        self, interval: float = INTERVAL, *, rank_one: bool = False, misled: float | None = None
    ) -> pd.DataFrame:
        """By worker what the fit, the gold labels and the times say, each with ``_low`` and ``_high``.

        - annotations: how many the worker gave.
        - accuracy: in the long run, the probability of a right annotation of a task of the crowd's mix.
        - realised_accuracy: the share of the annotations given that are right. Its interval is from the posterior of
          truth and parameters together: 200 to 500 truths are drawn, at draws of the parameters. What
          gold labels of all tasks would show is this, not the accuracy in the long run. Unlike everything else that
          a fit says it allows for tasks that mislead the whole crowd, of which annotations can tell nothing
          (:mod:`.misled`): a story that takes itself for true is too sure of what real workers got right.
        - error_correlation: the mean correlation of the worker's errors with those of the others on the same tasks, and
          n_effective: like how much of an independent worker that counts (:mod:`.error_correlation`). A story that lets
          workers err independently, one without ``shared_error=True``, is nearly blind to errors that they share. Their
          intervals are of the labels and of which tasks were seen.
        - spammer_score: how far the confusion matrix is from one whose rows are all alike (Raykar & Yu 2011); 0 for a
          spammer.
        - sensitivity, specificity: for two classes, of which the second is the positive one.
        - trace: probability of a right annotation where all classes are equally frequent.
        - informativeness: nats that an annotation says of the truth of a task of the crowd's mix.
        - rank_one_distance: how far the confusion matrix is from a matrix of rank one, where `rank_one` asks for it.
        - gold_annotations, gold_right, gold_accuracy: annotations of the gold tasks, where there are any, counted
          (:func:`.workers.gold_scores`).
        - seconds: the median of how long an annotation took, where times are known.

        The scores from confusion matrices are in :mod:`.confusion_scores`. The intervals of a fit without draws are of
        draws around its point, widened where a score at the point lies outside of theirs (:func:`.interval_around`).
        Those of the last two are described in :meth:`gold_scores` and :func:`.workers.seconds_by_worker`.

        Args:
            interval: mass of the intervals, equal-tailed, between 0 and 1.
            rank_one: whether to take the singular values of all confusion matrices.
            misled: the share of tasks that is expected to mislead the whole crowd, from 0 to below 1: 0.05 by default;
                0 for what follows from the story alone.

        Raises:
            AnnotationError: the annotations name no workers.
            ValueError: for another `interval` or `misled`.
        """
        return worker_scores(self.fitted, interval, rank_one=rank_one, misled=misled)

    @cached_property
    def idata(self) -> Any:
        """ArviZ data as :meth:`to_idata` makes it by default, for ArviZ's functions, with names as coordinates."""
        return self.to_idata()

    def to_idata(
        self,
        *,
        log_likelihood: str | None = "task",
        truth_probability: bool | None = None,
        posterior_predictive: bool | None = None,
        prior: int | None = None,
        uncertainty: bool = True,
        seed: int = 0,
        workers: str = "keep",
        key: Key | None = None,
    ) -> Any:
        r"""ArviZ data: an ``InferenceData`` with ArviZ 0.23, a ``DataTree`` with ArviZ 1 and later.

        The groups, of which those that are large are left out where nobody asks for them (see below):

        - posterior: the parameters, and ``truth_probability`` (chain, draw, task, truth), which is
          :math:`P(z_i = k \mid \theta, y)`. Its attributes say where the draws come from: story,
          hyperparameters, engine, settings, seed, versions, time and a fingerprint of the data.
        - sample_stats: of NUTS.
        - log_prior: of each parameter, on its own space.
        - log_likelihood, posterior_predictive, observed_data: by the unit of `log_likelihood`.
        - prior, prior_predictive: one chain of draws from the prior.
        - constant_data, fit: the rest of the data; label probabilities, history and parameters without draws.

        The unit is what is left out in leave-one-out, and replicates are predictions of it, so that ``loo_pit`` weighs
        what it should. By ``"task"``, the default, the log-likelihood is :math:`\log p(y_i \mid \theta)` with the truth
        summed out, as ``cp.loo`` and ``cp.compare`` have it; it sums to the log-likelihood, which ``psens`` needs. A
        task's annotations are drawn with a new truth. ArviZ wants one number a unit, so the variable is
        ``majority_share`` (task), the share of the task's annotations that are of the most frequent kind among them;
        replicated and observed ``annotation`` (row) are there as well. By ``"annotation"`` all three groups have
        ``annotation`` (row): each given the other annotations of its task. These log-likelihoods do not sum to that of
        the data, and are not for ``psens``.

        A point (EM) has no draws of its own. Those of `posterior` are then around it, by a few steps of data
        augmentation, as for the intervals of :attr:`workers`; ``posterior.attrs["draws"]`` says so. They are not the
        posterior's, so that there is no `log_likelihood` beside them, nor `log_prior`.

        ``az.plot_ppc`` draws a curve for every draw, which takes a minute of thousands: give it ``num_pp_samples=100``.

        Args:
            log_likelihood: ``"task"``, ``"annotation"``, or None for no such group.
            truth_probability: whether `posterior` has the label probabilities in each draw. None, here and below, is
                for yes unless that were more than 5 million numbers.
            posterior_predictive: whether to replicate the annotations, once in each draw. A point (EM) has it on
                request alone.
            prior: number of draws from the prior; 0 for none; by default 1,000, and none for a point, nor for a story
                that takes something from the annotations (``difficulty`` with ``kind="fixed"``).
            uncertainty: whether a point comes with draws around it; False for the point alone, as one draw.
            seed: of what is drawn.
            workers: what the data have of the workers: ``"keep"`` their names, ``"hash"`` pseudonyms, ``"drop"``
                nothing: variables by worker, and whose annotation a row is, are left out.
            key: of the pseudonyms: 16 to 64 random bytes, or a file that holds them.

        Raises:
            UnknownNameError: `log_likelihood` or `workers` is none of these.
            AnnotationError: annotations are to be replicated one by one that depend on each other beyond the class, of
                rows that stand for several; the key is missing, is none, or is given for something else.
            StoryError: draws from the prior are asked for that the story does not have.
        """
        check_workers(workers, key)
        groups = to_groups(
            pseudonymised(self.fitted, read_key(key)) if workers == "hash" else self.fitted,
            log_likelihood=log_likelihood,
            truth_probability=truth_probability,
            posterior_predictive=posterior_predictive,
            prior=prior,
            uncertainty=uncertainty,
            seed=seed,
        )
        return make_idata(groups_without_workers(groups) if workers == "drop" else groups)

    def pseudonymised(self, key: Key) -> Fit:
        """Return a copy with a pseudonym in the place of each worker's name, in warnings and hyperparameters too.

        Args:
            key: 16 to 64 random bytes, or a file that holds them, which you keep: :meth:`.Annotations.pseudonymised`.

        Raises:
            AnnotationError: the key is shorter or longer, or its file cannot be read.
        """
        return Fit(pseudonymised(self.fitted, key))

    def log_likelihood(self) -> np.ndarray:
        """Of each task in each draw, the truth summed out: ``(chain, draw, N)``."""
        return self.fitted.log_likelihood()

    def posterior_predictive(self, *, seed: int = 0) -> xr.Dataset:
        """For each draw a true label of each task given its annotations, and new annotations of the same workers.

        Returns:
            ``truth (chain, draw, task)`` and ``annotation (chain, draw, row)``, as positions of classes.
        """
        return posterior_predictive(self.fitted, seed=seed)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The classifier's probabilities for new tasks, averaged over the draws where its weights have a posterior.

        Args:
            x: features ``(n, ...)``, each of the shape that the classifier was trained on; of a table the columns are
                found by their names, where the fit was given a table too; for a torch module that was trained on a
                Dataset, another one.

        Returns:
            ``(n, K)``, in the order of ``annotations.classes``.

        Raises:
            ValueError: the story was fitted without a classifier, or the features have another shape or are not
                finite.
            AnnotationError: a table lacks a feature, has another one, or one that is no number.
        """
        return predict_proba(self.fitted, x)

    def new_worker_confusions(self, worker_features: Any, x: Any = None, interval: float = INTERVAL) -> pd.DataFrame:
        """The confusion matrices of workers without annotations, from their features, in long form.

        The story must know workers by their features, as ``confusion_from_features`` does of annotations with
        ``worker_features=``. Where the matrix depends on the task too, it is the mean over the tasks.

        Args:
            worker_features: of the new workers, as many as those of the fit have: a mapping worker -> vector, a table
                with the column or index worker, whose other columns are found by their names, or an array ``(n, F)`` of
                workers 0 to n − 1.
            x: features ``(n, ...)`` of the tasks; None for the tasks of the fit.
            interval: mass of the equal-tailed intervals, between 0 and 1.

        Returns:
            worker, truth, annotation, probability, low, high.

        Raises:
            ValueError: the story knows workers by their annotations, or features have another shape or are not finite.
            AnnotationError: the features of a worker cannot be read.
        """
        return new_worker_confusions(self.fitted, worker_features, x, interval)

    def summary(self, interval: float = INTERVAL) -> Summary:
        """Return a summary: story, data, warnings and results; prints as text, shows as a table in notebooks."""
        return summarise(self.fitted, interval)

    def update(
        self,
        more: Annotations | pd.DataFrame | None = None,
        *,
        gold: Any = None,
        evidence: pd.DataFrame | np.ndarray | None = None,
        probabilities: Probabilities = None,
        progress: bool = True,
        **by_worker: Any,
    ) -> Fit:
        """Fit the same story to these annotations and more of them, starting from this fit: :func:`.fit_story.update`.

        EM starts where this fit ended and needs few iterations to end where a fit of everything would; SVI and NUTS
        start from its solution and draw anew. This fit stays as it is.

        >>> import crowdppl as cp
        >>> first = cp.Annotations.from_dict({"t1": {"ann": "cat", "bob": "cat"}, "t2": {"ann": "dog", "bob": "cat"}})
        >>> fit = cp.fit("dawid_skene", first, progress=False)
        >>> more = pd.DataFrame({"task": ["t2", "t3"], "worker": ["cy", "cy"], "label": ["dog", "cat"]})
        >>> fit.update(more, progress=False).labels.index.tolist()
        ['t1', 't2', 't3']

        Args:
            more: annotations of old and new tasks by old and new workers, of the same classes; None, or a table
                without rows, where only gold labels or evidence are new. Where a worker annotates a task again, what
                `repeats` was given when the fit's annotations were made holds (:meth:`.Annotations.joined`).
            gold: known labels to use from now on, beside those that this fit has used, as for :func:`crowdppl.fit`; of
                a task that has two the new one.
            evidence: another model's probabilities of the classes, likewise.
            probabilities: models' probabilities as for :func:`crowdppl.fit`, of these and of further tasks; what is
                given of a model and a task again takes the old one's place.
            progress: show a progress bar.
            by_worker: hyperparameters of this fit that are tables and grow with workers or tasks, such as ``history``,
                for all of them; of ``worker_families`` those of new workers are enough.

        Raises:
            AnnotationError: a class is new (a fit's classes cannot be added to: fit everything anew), or a new task or
                worker lacks features that the others have.
            StoryError: a new worker lacks a family.
            ValueError: the fit is one of Pyro's, its story is trained in minibatches, or a hyperparameter is given that
                is no table of this fit.
        """
        of_tasks: dict[str, Any] = {"gold": gold, "evidence": evidence, "probabilities": probabilities}
        fitted = update(self.fitted, more, **of_tasks, progress=progress, **by_worker)
        for message in fitted.warnings:
            warnings.warn(message, category_of(message), stacklevel=2)
        return Fit(fitted)

    def save(
        self, path: str | PathLike, *, overwrite: bool = False, workers: str = "keep", key: Key | None = None
    ) -> None:
        """Write the fit to the folder ``path`` (netCDF, safetensors and JSON), whole or not at all.

        Args:
            path: of the folder; :func:`crowdppl.load_fit` reads it: :mod:`.fit_folder`.
            overwrite: replace a folder that has something in it.
            workers: what it has of the workers: ``"keep"`` their names, ``"hash"`` pseudonyms, ``"drop"`` nothing: the
                labels are saved alone, as :func:`crowdppl.without_workers` has them.
            key: of the pseudonyms: 16 to 64 random bytes, or a file that holds them.

        Raises:
            StorageError: the folder cannot be written, or a hyperparameter is of a kind that JSON cannot hold.
            AnnotationError: for ids of a type that JSON cannot bring back; or the key is missing, is none, or is given
                for something else.
            UnknownNameError: `workers` is something else.
        """
        found = shown(self.fitted, workers, key)
        write = save_baseline if workers == "drop" else save
        write(found, path, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Fit({self.story!r}, method={self.method!r}, {self.annotations!r})"

    @never_raising
    def _repr_html_(self) -> str:
        return fit_card(self.fitted)
