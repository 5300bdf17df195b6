"""The result for users: labels, workers and views under the names in the data, whatever made it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..data import AnnotationError
from ..data.cards import never_raising
from ..data.errors import StorageError, each_once
from ..data.exports.reading import NAMING, read_more
from ..data.pseudonyms import Key, check_workers, read_key
from .comparison.comparing import check_same_data
from .comparison.stacking import averaged, stacked_groups
from .densities.model import Model
from .densities.probabilities import Probabilities
from .densities.sites import Dims
from .engines.finding import sentences
from .engines.outcome import Outcome
from .findings.look import findings
from .findings.register import Findings
from .findings.result_card import card_of
from .findings.review import with_review
from .findings.summary import in_brief, summary
from .findings.verdict import Verdict, verdict
from .fit_story import update
from .fitted.confusions import confusion_frame, extreme_frame, new_worker_confusions
from .fitted.decisions import decide, expected_scores
from .fitted.given_models import model_frame
from .fitted.intervals import INTERVAL
from .fitted.item_ranking import beats, beats_by_position, item_ranking
from .fitted.modes import mode_frame, mode_labels
from .fitted.new_tasks import predict_proba
from .fitted.posterior import OneStoryError, Posterior
from .fitted.question_frame import question_frame, totals
from .fitted.replicated_annotations import posterior_predictive
from .fitted.tasks import task_scores
from .fitted.workers import gold_scores, worker_scores
from .report.write import report
from .storage.arviz_groups import make_idata, to_groups
from .storage.folder import read, save
from .storage.label_files import iter_labels, join_labels, write_labels
from .storage.privacy import groups_without_workers, labels_alone, pseudonymised, shown, worker_groups

if TYPE_CHECKING:
    import xarray as xr


class Fit(Posterior):
    """Labels and workers of a crowd: by a story, by an average of several, or by a rule without a likelihood.

    Made by :func:`crowdppl.fit`, :func:`crowdppl.stack`, :func:`crowdppl.label_then_train`, :func:`crowdppl.self_train`
    and :func:`crowdppl.load_fit`. Whatever made it, it has labels, decisions, workers, a report and a folder. Views of
    one story's parameters, such as :attr:`draws` and :attr:`modes`, are refused of an average, whose stories have them
    in :attr:`fits`, and of labels without a likelihood.

    The annotations of a :func:`crowdppl.scan` stay on the disk, and what grows with the tasks is not in memory:
    :meth:`write_labels` writes the labels to files, and :meth:`iter_labels` yields them chunk by chunk. Such a fit has
    :attr:`workers`, :attr:`parameters`, :attr:`derived` and :meth:`summary`; views that need the annotations are
    refused. What follows from SVI's guide and needs the annotations is averaged over some of its draws.
    """

    worker_scores = worker_scores
    task_scores = task_scores
    confusions = confusion_frame
    extreme_confusions = extreme_frame
    new_worker_confusions = new_worker_confusions
    predict_proba = predict_proba
    posterior_predictive = posterior_predictive
    rubric_totals = totals
    item_ranking = item_ranking
    beats_by_position = beats_by_position
    summary = summary
    join = join_labels
    iter_labels = iter_labels
    write_labels = write_labels
    pseudonymised = pseudonymised

    @property
    def findings(self) -> Findings:
        """Notes and warnings to know or act on, made with the fits that have weight; a table in notebooks."""
        return findings(self)

    @property
    def verdict(self) -> Verdict:
        """Can this crowd be trusted, which labels are doubtful, whom to review, what to do next: :func:`.verdict`."""
        return verdict(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Findings to act on, a sentence each; empty where nothing was found."""
        return sentences(self.findings)

    @property
    def workers(self) -> pd.DataFrame:
        """By worker: annotations, whether to review and the reason, accuracy and more, with 90 % intervals.

        Whom to review, and why, is by :func:`.review.review`, of many annotations in files by a sample; the scores are
        :meth:`worker_scores`.
        """
        scores, here = self.worker_scores(), self.in_memory
        return scores if here is None else with_review(scores, here)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """By task its label, the doubt about it, and whether task or crowd are its cause: :meth:`task_scores`."""
        return self.task_scores()

    def gold_scores(self, gold: Any = None, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker how many annotations of gold tasks are right, with Jeffreys' interval: :func:`.gold_scores`."""
        return gold_scores(self.given, gold, interval=interval)

    def decide(
        self,
        *,
        threshold: float | None = None,
        positive: object = None,
        costs: pd.DataFrame | np.ndarray | str | None = None,
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

    @property
    def expected(self) -> pd.DataFrame:
        """By task the expected score of ordered classes, with its 90 % interval: :meth:`expected_scores`."""
        return self.expected_scores()

    def expected_scores(self, interval: float = INTERVAL) -> pd.DataFrame:
        """By task of ordered classes the expected score, its interval and the median class.

        The score of a class is the class itself where all are numbers that rise, also as text, else its position from
        0. The interval is of the true class, one of the scores, widened to hold the expected score, which lies between
        them: :func:`.decisions.expected_scores`.

        Args:
            interval: mass, between 0 and 1.

        Raises:
            AnnotationError: the classes have no order; the message says how to state one.
        """
        return expected_scores(self.probabilities, self.annotations.kind, interval)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """By question its tasks, agreement, and how sure its labels are: :func:`.question_frame.question_frame`."""
        return question_frame(self)

    @property
    def totals(self) -> pd.DataFrame:
        """By task the total of its true scores over its questions, with 90 % intervals: :meth:`.Fit.rubric_totals`."""
        return self.rubric_totals()

    @property
    def ranking(self) -> pd.DataFrame:
        """By item of comparisons its score and rank, the best first, with 90 % intervals: :meth:`item_ranking`."""
        return self.item_ranking()

    @property
    def beats(self) -> pd.DataFrame:
        """The probability that the row's item is better than the column's, ties half: :func:`.item_ranking.beats`."""
        return beats(self)

    def worker_groups(self, min_group: int = 5) -> pd.DataFrame:
        """A table of the crowd in which every row stands for at least `min_group` workers (k-anonymity).

        Args:
            min_group: k of k-anonymity, at least 2.

        Raises:
            AnnotationError: there are fewer workers than that.
        """
        return worker_groups(self.worker_scores(), min_group)

    def report(self, path: str | PathLike, *, workers: str = "keep", key: Key | None = None, **options: Any) -> Path:
        """Write one self-contained page with labels, workers, checks and pictures: :func:`.write.report`.

        Args:
            path: of the new file, such as ``"report.html"``.
            workers: what the page has of the workers: ``"keep"`` their names, ``"hash"`` pseudonyms, ``"drop"``
                nothing.
            key: of the pseudonyms: 16 to 64 random bytes, or a file that holds them.
            options: ``title``, ``fits`` to compare with by name, ``gold``, ``checks=False`` to leave the checks out,
                ``folder`` where the fit is saved, for commands of the shell.

        Raises:
            StorageError: the file cannot be written; said before anything is computed.
            UnknownNameError: `workers` is something else.
            AnnotationError: the key is missing, is none, or is given for something else.
        """
        if workers != "keep" and options.get("fits") is not None:
            raise AnnotationError("fits= names the workers of other fits; give workers='keep', or leave fits= out")
        return report(shown(self, workers, key), path, **options)

    @property
    def fits(self) -> dict[str, Fit]:
        """The fits of an average by name, of a story's fit itself; empty where the labels are without a likelihood."""
        return {name: Fit.of(fitted) for name, fitted in self.members.items()}

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks."""
        return self.source.n_tasks

    @property
    def n_workers(self) -> int:
        """J, the number of workers; 0 where none is named."""
        return self.source.n_workers

    @property
    def n_annotations(self) -> int:
        """The number of annotations that were given."""
        return (self.source if self.on_disk else self.given).n_annotations

    @property
    def classes(self) -> list[Any]:
        """The K classes in their order."""
        return list(self.source.classes)

    @property
    def class_totals(self) -> pd.DataFrame:
        """By class the expected number of tasks, and the number of annotations that are of it."""
        return self.fitted.class_totals

    @property
    def confusion_matrices(self) -> np.ndarray:
        """Each worker's confusion matrix, the mean over the draws: ``(J, K, L)``.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        return self.confusion_draws.mean((0, 1))

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
        """The engine's options, the seed and the backend; by a rule those of its classifier's training, if any."""
        return self.fitted.settings if self.rule is None else dict(self.rule.settings)

    @property
    def outcome(self) -> Outcome:
        """The engine's outcome: draws by site, parameters without draws, history, statistics, facts."""
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

    def log_likelihood(self) -> np.ndarray:
        """Of each task in each draw, the truth summed out: ``(chain, draw, N)``."""
        return self.fitted.log_likelihood()

    @property
    def models(self) -> pd.DataFrame:
        """By model whose probabilities were given, what they were found to be worth: :func:`.given_models.model_frame`.

        Raises:
            AnnotationError: no probabilities were given.
        """
        return model_frame(self)

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
    def idata(self) -> Any:
        """ArviZ data as :meth:`to_idata` makes it by default, for ArviZ's functions, with names as coordinates."""
        return self.to_idata()

    def to_idata(
        self,
        *,
        log_likelihood: str | None = "task",
        derived: bool | None = None,
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

        - posterior: the parameters, what the story derives from them (:attr:`derived`), and ``truth_probability``
          (chain, draw, task, truth), which is :math:`P(z_i = k \mid \theta, y)`. Its attributes say where the draws
          come from: story, hyperparameters, engine, settings, seed, versions, time and a fingerprint of the data.
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

        Of an average of stories the group posterior has about 1,000 draws of their mixture, of each fit in proportion
        to its weight, around it where it is a point: the parameters that all fits with weight have,
        ``worker_confusion`` (worker, truth, annotation) and ``truth_probability`` (task, truth), unless that were more
        than 5 million numbers. The group fit has the averaged label probabilities, in which the votes have their share,
        and the weights; observed_data and constant_data have the annotations. There is no log-likelihood: of a mixture
        ``fit.comparison`` says it; and of the options only `workers` and `key` are known.

        ``az.plot_ppc`` draws a curve for every draw, which takes a minute of thousands: give it ``num_pp_samples=100``.

        Args:
            log_likelihood: ``"task"``, ``"annotation"``, or None for no such group.
            derived: whether `posterior` has what the story derives from its parameters, a story's own deterministic
                sites among it. None, here and below, is for yes unless that were more than 5 million numbers.
            truth_probability: whether `posterior` has the label probabilities in each draw.
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
            OneStoryError: the labels are without a likelihood, or an option is of one story and this is an average.
            UnknownNameError: `log_likelihood` or `workers` is none of these.
            AnnotationError: annotations are to be replicated one by one that depend on each other beyond the class, of
                rows that stand for several; the key is missing, is none, or is given for something else.
            StoryError: draws from the prior are asked for that the story does not have.
        """
        check_workers(workers, key)
        options: dict[str, Any] = {
            "log_likelihood": log_likelihood,
            "derived": derived,
            "truth_probability": truth_probability,
            "posterior_predictive": posterior_predictive,
            "prior": prior,
            "uncertainty": uncertainty,
            "seed": seed,
        }
        source = pseudonymised(self, read_key(key)) if workers == "hash" else self
        if self.is_average:
            usual = inspect.signature(self.to_idata).parameters
            if other := [name for name, value in options.items() if value != usual[name].default]:
                name = next(iter(self.stories))
                raise OneStoryError(
                    f"{other[0]}={options[other[0]]!r}: an option of one story's data, and this is an average; give it "
                    f"to one of its fits, fit.fits[{name!r}].to_idata({other[0]}=…)"
                )
            groups = stacked_groups(source.with_uncertainty)
        else:
            groups = to_groups(source.fitted, **options)
        return make_idata(groups_without_workers(groups) if workers == "drop" else groups)

    def update(
        self,
        more: Any = None,
        *,
        gold: Any = None,
        evidence: pd.DataFrame | np.ndarray | None = None,
        probabilities: Probabilities = None,
        progress: bool = True,
        **options: Any,
    ) -> Fit:
        """Fit the same story to these annotations and more of them, starting from this fit: :func:`.fit_story.update`.

        EM starts where this fit ended and needs few iterations to end where a fit of everything would; SVI and NUTS
        start from its solution and draw anew. This fit stays as it is. Of an average each fit is updated, and the
        weights stay; ``cp.stack(updated.fits)`` compares the fits anew.

        >>> import crowdppl as cp
        >>> first = cp.Annotations.from_dict({"t1": {"ann": "cat", "bob": "cat"}, "t2": {"ann": "dog", "bob": "cat"}})
        >>> fit = cp.fit("dawid_skene", first, progress=False)
        >>> more = pd.DataFrame({"task": ["t2", "t3"], "worker": ["cy", "cy"], "label": ["dog", "cat"]})
        >>> fit.update(more, progress=False).labels.index.tolist()
        ['t1', 't2', 't3']

        Args:
            more: annotations of old and new tasks by old and new workers, of the same classes; or a path, a table or
                records, as :func:`crowdppl.read` takes them; None, or a table without rows, where only gold labels or
                evidence are new. Where a worker annotates a task again, what `repeats` was given when the fit's
                annotations were made holds (:meth:`.Annotations.joined`).
            gold: known labels to use from now on, beside those that this fit has used, as for :func:`crowdppl.fit`; of
                a task that has two the new one.
            evidence: another model's probabilities of the classes, likewise.
            probabilities: models' probabilities as for :func:`crowdppl.fit`, of these and of further tasks; what is
                given of a model and a task again takes the old one's place.
            progress: show a progress bar, and say what was taken for what in a file.
            options: how `more` is read, as for :func:`crowdppl.read` (``worker="student", label="topic"``). Its classes
                and abstentions are those of the fit unless they are given, and columns that are called as those of the
                first annotations have their roles. And hyperparameters of this fit that are tables and grow with
                workers or tasks, such as ``history``, for all of them; of ``worker_families`` those of new workers are
                enough, and of an average none: a new worker is alone in theirs, with a warning. Of an average they are
                of the fits that have them.

        Raises:
            OneStoryError: the labels are without a likelihood.
            OnDiskError: the fit is of a scan.
            FileNotFoundError: `more` is the path of no file.
            AnnotationError: `more` cannot be read, a class is new (a fit's classes cannot be added to: fit everything
                anew), or a new task or worker lacks features that the others have.
            StoryError: a new worker lacks a family.
            ValueError: the fit is one of Pyro's, its story is trained in minibatches, or a hyperparameter is given that
                is no table of this fit.
        """
        given: dict[str, Any] = {"gold": gold, "evidence": evidence, "probabilities": probabilities}
        tables = {name: options[name] for name in options if name not in NAMING}
        if not self.on_disk:
            reading = {name: options[name] for name in options if name in NAMING}
            more = read_more(self.annotations, more, tell=progress, **reading)
        known = {name for one in self.stories.values() for name in one.model.hyperparameters}
        members = {}
        with each_once():
            for story, one in self.stories.items():  # a table is of those that have it, and what nobody has is refused
                own = {name: tables[name] for name in tables if name in one.model.hyperparameters or name not in known}
                own |= {"found_families": self.is_average}
                members[story] = update(one, more, progress=progress, **given, **own)
        updated = replace(self, members=members)
        Findings(updated.findings).warn(stacklevel=2)
        return updated

    def save(
        self, path: str | PathLike, *, overwrite: bool = False, workers: str = "keep", key: Key | None = None
    ) -> None:
        """Write the fit, or the average with all its fits, to the folder ``path``, whole or not at all.

        The files are netCDF, safetensors and JSON.

        Args:
            path: of the folder; :func:`crowdppl.load_fit` reads it.
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
        save(shown(self, workers, key), path, overwrite=overwrite)

    def __repr__(self) -> str:
        if self.only is not None and self.only.files is not None:
            return str(in_brief(self.only, self.only.files))
        if self.is_average:
            return f"Fit({self.weights_text}; {self.annotations!r})"
        by = "" if self.only is None else f", method={self.only.method!r}"
        return f"Fit({self.story!r}{by}, {self.annotations!r})"

    @never_raising
    def _repr_html_(self) -> str:
        return card_of(self)


def stack(
    fits: Mapping[str, Fit] | Iterable[Fit],
    weights: Mapping[str, float] | pd.Series | None = None,
    *,
    votes: float = 0.0,
    misled: float | None = 0.0,
    power: float | None = None,
    **options: object,
) -> Fit:
    """Average fits of the same annotations by stacking weights (Yao, Vehtari, Simpson & Gelman 2018).

    Args:
        fits: as for :func:`crowdppl.compare`.
        weights: by name, instead of those of the comparison; they are scaled to sum 1.
        votes: share of the label probabilities that is the votes' of a task with hardly any annotations, from 0 to
            below 1; of one with ten it is half of that.
        misled: share of tasks that is expected to mislead the whole crowd, from 0 to below 1, for which the label
            probabilities allow; None for what is usual, as in ``"auto"``.
        power: of the label probabilities of each fit and of the votes, before they are averaged, as in ``"auto"`` with
            gold labels; with `weights`.
        options: of :func:`crowdppl.compare`, such as ``by`` and ``method``.

    Raises:
        ValueError: for fits that cannot be compared, weights that are negative, not finite or all 0, or a share
            that is none.
        UnknownNameError: a weight is of no fit.
    """
    return Fit.of(averaged(fits, weights, votes=votes, misled=misled, power=power, **options))


def without_workers(fit: Posterior) -> Fit:
    """The labels of a fit or an average, with nothing that describes a worker.

    They have the probabilities of the labels, and of the annotations how many there are of each class and task. There
    is no way back to a fit: they have no confusion matrices, and cannot be updated or compared.

    Args:
        fit: what has the labels.
    """
    return Fit.of(labels_alone(fit))


def load_fit(path: str | PathLike, *, story: Any = None, classifier: Any = None) -> Fit:
    """Read a fit that :meth:`Fit.save` wrote.

    Args:
        path: the folder.
        story: the function, where the story is not one of crowdppl's own; of an average such functions by name of the
            fit.
        classifier: the module or function, where the classifier is not one of crowdppl's own, or is a torch module; its
            weights are read.

    Raises:
        StorageError: where there is no fit, a file is not as it was written, it was written by a newer crowdppl, its
            story or its classifier's network is not known, or the network given has other weights.
    """
    found = read(path, story=story, classifier=classifier)
    if found.is_average:
        try:
            check_same_data(found.members)
        except ValueError as error:
            raise StorageError(f"{path} holds fits of different annotations: {error}") from error
    return Fit.of(found)
