"""Results of methods without a story's fit: labels without a likelihood, and self-training; and their files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from ..data import Annotations
from ..data.cards import never_raising
from ..data.errors import StorageError
from ..data.pseudonyms import Key
from .baselines.baseline import Baseline
from .baselines.self_training import self_train as train_on_own_annotations
from .baselines.two_step import label_then_train as train_on_labels
from .comparison.comparing import check_same_data
from .comparison.stacking import Averaged
from .engines.checkpoints import wished
from .fitted.crowd_trust import category_of
from .fitted.intervals import INTERVAL
from .fitted.realised import realised_accuracy
from .fitted.result_card import result_card
from .fitted.summary import Summary
from .fitted.workers import fitted_scores
from .results import Fit, Result
from .stack_results import Stack
from .storage.baseline_folder import holds_baseline, read_baseline, save_baseline
from .storage.fit_folder import read
from .storage.privacy import labels_alone, pseudonymised, shown
from .storage.stack_folder import holds_stack, read_stack


@dataclass(frozen=True, eq=False, repr=False)
class BaselineFit(Result[Baseline]):
    """Labels without a likelihood, and a classifier trained on them or beside them, where one was asked for.

    Labels, probabilities, decisions, workers and reports as a fit has them. The workers' confusion matrices are counted
    against the labels, beside a prior of two right annotations and a wrong one of each class. Made by ``cp.fit`` of a
    baseline's name and by :func:`label_then_train`.

    Args:
        baseline: the labels, and the classifier.
    """

    baseline: Baseline

    @property
    def _view(self) -> Baseline:
        return self.baseline

    @property
    def settings(self) -> dict[str, Any]:
        """Options of the classifier's training; empty where there is no classifier."""
        return dict(self.baseline.settings)

    def worker_scores(self, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker the scores from the counted confusion matrices, and what the method itself says of workers.

        ``realised_accuracy`` is the share of the annotations that are the labels, expected under their probabilities;
        of ``"wawa"`` ``vote_weight`` is the weight of the worker's vote.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        frame = fitted_scores(self, interval)
        return frame.assign(
            realised_accuracy=realised_accuracy(self.posterior, self.annotations), **self.baseline.by_worker
        )

    def predict_proba(self, x: Any) -> np.ndarray:
        """The classifier's probabilities for new tasks with features ``x (n, ...)``: ``(n, K)``.

        Raises:
            ValueError: there is no classifier, or the features have another shape or are not finite.
        """
        return self.baseline.predict_proba(x)

    def summary(self) -> Summary:
        """Return a summary: data, method and results; prints as text, shows as a table in notebooks."""
        return self.baseline.summary()

    def pseudonymised(self, key: Key) -> BaselineFit:
        """Return a copy with a pseudonym in the place of each worker's name: :meth:`.Annotations.pseudonymised`.

        Raises:
            AnnotationError: the key is shorter or longer, or its file cannot be read.
        """
        return BaselineFit(pseudonymised(self.baseline, key))

    def save(
        self, path: str | PathLike, *, overwrite: bool = False, workers: str = "keep", key: Key | None = None
    ) -> None:
        """Write it to the folder ``path``, whole or not at all; :func:`load_fit` reads it.

        Args:
            path: of the folder.
            overwrite: replace a folder that has something in it.
            workers: as for :meth:`Fit.save`.
            key: likewise.

        Raises:
            StorageError: the folder cannot be written.
            AnnotationError: for ids of a type that JSON cannot bring back, or a key that is missing or none.
            UnknownNameError: `workers` is none of the three.
        """
        save_baseline(shown(self.baseline, workers, key), path, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"BaselineFit({self.story!r}, {self.annotations!r})"

    @never_raising
    def _repr_html_(self) -> str:
        known = {} if self.baseline.classifier is None else {"classifier": repr(self.baseline.classifier)}
        then = ("fit.labels", "fit.workers", "fit.summary()")
        return result_card(self, f"{self.story}, without a likelihood", known, warnings=self.warnings, then=then)


def without_workers(fit: Result) -> BaselineFit:
    """The labels of a fit or an average, with nothing that describes a worker.

    They have the probabilities of the labels, and of the annotations how many there are of each class and task. There
    is no way back to a fit: they have no confusion matrices, and cannot be updated or compared.

    Args:
        fit: what has the labels.
    """
    return BaselineFit(labels_alone(fit._view))


def label_then_train(
    labels: str | Result,
    annotations: Annotations,
    *,
    classifier: Any,
    soft: bool | None = None,
    label_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    every: float | str | None = None,
    resume: bool = False,
    **options: Any,
) -> BaselineFit:
    """Label the tasks first, and then train a classifier on the labels alone.

    Args:
        labels: what labels the tasks: a rule (``"majority_vote"``, ``"wawa"``, ``"naive_soft"``), any story's name, the
            name that papers give to the two steps together (``"dl_mv"``, ``"dl_ns"``, ``"dl_wawa"``, ``"dl_ds"``,
            ``"dl_glad"``, ``"dl_wc"``), or a fit or stack of these annotations.
        annotations: the data, with features of the tasks.
        classifier: as for :func:`crowdppl.fit`.
        soft: whether the classifier learns from the labels' probabilities; else from the most probable class of each
            task. None for yes after ``"naive_soft"`` and no after everything else, as the papers have it.
        label_options: options of the fit that labels, such as ``{"method": "svi"}``.
        seed: of both steps.
        progress: show a progress bar.
        checkpoint: a folder where both steps keep where they stand, each in a folder within it, as for
            :func:`crowdppl.fit`: the first is not run again once it is finished.
        every: likewise.
        resume: likewise.
        options: of the training: ``epochs``, ``batch_size``, ``network_rate``, and others of EM.

    Returns:
        The labels of the first step, and ``predict_proba`` of the classifier.

    Raises:
        UnknownNameError: nothing of that name labels tasks.
        AnnotationError: the labels are of other tasks.
        StoryError: the tasks have no features.
        ValueError: for options that cannot be.
    """
    return BaselineFit(
        train_on_labels(
            labels,
            annotations,
            classifier=classifier,
            soft=soft,
            label_options=label_options,
            seed=seed,
            progress=progress,
            checkpoints=wished(checkpoint, every, resume),
            **options,
        )
    )


@dataclass(frozen=True, eq=False)
class SelfTrained:
    """Result of self-training. Made by :func:`self_train`.

    Attributes:
        fit: the fit of the last round, beside the annotations that were given.
        rounds: by round, from 0 for the fit without pseudo-annotations: pseudo_annotations; imbalance, annotations of
            the most frequent class for each of the rarest; where gold labels are known precision and recall of the
            pseudo-annotations, accuracy and balanced accuracy of the labels, means over the classes but for accuracy.
        pseudo: the pseudo-annotations: task, worker, label, and the round in which each was made.
        stopped: by round the score of held-out annotations by which the number of rounds was chosen; None where it was
            given.
    """

    fit: Fit | BaselineFit
    rounds: pd.DataFrame
    pseudo: pd.DataFrame
    stopped: pd.Series | None


def self_train(
    story: str | Any,
    annotations: Annotations,
    *,
    rounds: int = 5,
    growth: float = 8.0,
    select: str = "distribution",
    anew: bool = True,
    held_out: float = 0.0,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    every: float | str | None = None,
    resume: bool = False,
    **options: Any,
) -> SelfTrained:
    """Fit a story and let it annotate for its workers what they have not annotated, round by round (DASC).

    A round fits the story, predicts each worker's annotation of each task that the worker has not annotated, and adds
    those it trusts as pseudo-annotations to what the next round is fitted to. They are chosen against the imbalance of
    the classes (Shi, Li & Huang 2022): :mod:`crowdppl.inference.baselines.self_training`. Gold labels are used for
    ``rounds``' scores alone, unless ``gold=`` gives them to the fits.

    Args:
        story: as for :func:`crowdppl.fit`; ``"crowd_layer"``, ``"anno_reg"``, or any story, with a classifier; or a
            baseline, such as ``"wdn"``.
        annotations: the data; workers are named, and there are no abstentions.
        rounds: how many times pseudo-annotations are added; at the most, with ``held_out``.
        growth: how many a round adds for each annotation that was given.
        select: ``"distribution"`` for the paper's quotas of each class; ``"confidence"`` for the surest whatever their
            class, and ``"random"``, which it compares with.
        anew: whether each round predicts and chooses all pseudo-annotations anew, those of earlier rounds too.
        held_out: share of the annotations that choose the number of rounds: the first course of rounds is without them,
            and predicts them; the second is of all annotations, for as many rounds as predicted them best.
        seed: of the fits, and of what is drawn.
        progress: show each fit's progress bar.
        checkpoint: a folder where the fit of each round keeps where it stands, in a folder within it, as for
            :func:`crowdppl.fit`: finished rounds are not run again.
        every: likewise.
        resume: likewise.
        options: of :func:`crowdppl.fit`: ``classifier``, ``method``, hyperparameters, and options of the engine.

    Raises:
        AnnotationError: no worker is named, or there are abstentions.
        UnknownNameError: there is no such way to select.
        ValueError: for numbers that cannot be.
        StoryError: as :func:`crowdppl.fit`.
    """
    found = train_on_own_annotations(
        story,
        annotations,
        rounds=rounds,
        growth=growth,
        select=select,
        anew=anew,
        held_out=held_out,
        seed=seed,
        progress=progress,
        checkpoints=wished(checkpoint, every, resume),
        **options,
    )
    for message in found.fitted.warnings:
        warnings.warn(message, category_of(message), stacklevel=2)
    fit = BaselineFit(found.fitted) if isinstance(found.fitted, Baseline) else Fit(found.fitted)
    return SelfTrained(fit, found.rounds, found.pseudo, found.stopped)


def load_fit(path: str | PathLike, *, story: Any = None, classifier: Any = None) -> Fit | Stack | BaselineFit:
    """Read a fit that :meth:`Fit.save`, :meth:`Stack.save` or :meth:`BaselineFit.save` wrote.

    Args:
        path: the folder.
        story: the function, where the story is not one of crowdppl's own; of an average such functions by name of the
            fit.
        classifier: the module or function, where the classifier is not one of crowdppl's own, or is a torch module; its
            weights are read.

    Raises:
        StorageError: where there is no fit, it was written by a newer crowdppl, its story or its classifier's network
            is not known, or the network given has other weights.
    """
    if holds_stack(path):
        found = read_stack(path, story=story, classifier=classifier)
        try:
            check_same_data(found.fits)
        except ValueError as error:
            raise StorageError(f"{path} holds fits of different annotations: {error}") from error
        return Stack(Averaged(**found._asdict()))
    if holds_baseline(path):
        return BaselineFit(read_baseline(path, classifier=classifier))
    return Fit(read(path, story=story, classifier=classifier))
