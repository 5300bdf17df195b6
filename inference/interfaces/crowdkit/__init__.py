"""Stories behind the classes of crowd-kit, whose user changes one import.

The tables are crowd-kit's: columns task, worker and label go in, and a series by task comes out. The models are stories
of this package, with its priors and engines, so that labels may differ from crowd-kit's where annotations are few.
Without priors, ``DawidSkene(diagonal=1e-6, off_diagonal=1e-6, truth_prior=cp.Prevalence(1e-6))``, they are crowd-kit's.
"""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from crowdppl.data import Annotations
from crowdppl.inference.fit import fit
from crowdppl.inference.fit_story import OPTIONS_ELSEWHERE
from crowdppl.inference.result import Fit

__all__ = ["GLAD", "MACE", "Aggregator", "BradleyTerry", "DawidSkene", "MajorityVote", "OneCoinDawidSkene"]


class Aggregator:
    """Any story of this package as an aggregator of crowd-kit; the subclasses have the names of crowd-kit's.

    Example:
        >>> import pandas as pd
        >>> from crowdppl.crowdkit import DawidSkene
        >>> rows = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> DawidSkene().fit_predict(data).to_dict()
        {'t1': 'cat', 't2': 'dog'}

    Args:
        n_iter: iterations at the most.
        tol: relative change of the log-posterior below which EM has converged.
        options: of crowd-kit ``n_restarts``, ``random_state``, ``verbose`` and ``silent``; and all of
            :func:`crowdppl.fit`, which refuses what the story does not have.

    Attributes:
        fit_: the :class:`.Fit`, with workers, intervals, findings and a report.
    """

    story: ClassVar[str] = "auto"
    """The story that is fitted."""

    def __init__(self, n_iter: int | None = None, tol: float | None = None, **options: Any) -> None:
        given: dict[str, Any] = {"n_iter": n_iter, "tol": tol} | options
        shown = bool(given.pop("verbose", False)) | (not given.pop("silent", True))
        self.options: dict[str, Any] = {"progress": shown}
        self.options |= {OPTIONS_ELSEWHERE.get(name, name): value for name, value in given.items() if value is not None}

    def fit(self, data: Any, true_labels: pd.Series | None = None) -> Self:
        """Fit the story to a table with the columns task, worker and label, one row for each annotation.

        Args:
            data: a table of pandas, polars or pyarrow, ``A`` rows; other columns are not looked at.
            true_labels: those that are known, by task.

        Raises:
            AnnotationError: a column is missing, or a cell cannot be used; the message names column, row and value.
            UnknownNameError: the story and its engine have no such option.
        """
        known: dict[str, Any] = {} if true_labels is None else {"gold": true_labels}
        self.fit_: Fit = fit(self.story, self._annotations(data), **self.options, **known)
        return self

    def fit_predict(self, data: Any, true_labels: pd.Series | None = None) -> pd.Series:
        """The most probable label of each task, a series ``agg_label`` by task; arguments and errors as :meth:`fit`."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: pd.Series | None = None) -> pd.DataFrame:
        """Probabilities of the labels, tasks × labels; arguments and errors as :meth:`fit`."""
        return self.fit(data, true_labels).probas_

    @property
    def labels_(self) -> pd.Series:
        """By task its most probable label."""
        return self.fit_.labels["label"].infer_objects().rename("agg_label")

    @property
    def probas_(self) -> pd.DataFrame:
        """Probabilities of the labels, tasks × labels, whose rows sum to 1."""
        return self.fit_.probabilities.astype(float).rename_axis(columns="label")

    @property
    def priors_(self) -> pd.Series:
        """By label its mean probability over the tasks."""
        return self.probas_.mean().rename("prior")

    @property
    def skills_(self) -> pd.Series:
        """By worker the expected share of the worker's annotations that are right."""
        return self.fit_.workers["realised_accuracy"].rename("skill")

    @property
    def errors_(self) -> pd.DataFrame:
        """Confusion matrices: by worker and label that was given, the probability under each true label."""
        long = self.fit_.confusions().rename(columns={"annotation": "label"})
        return long.pivot(index=["worker", "label"], columns="truth", values="probability")

    def _annotations(self, data: Any) -> Annotations:
        return Annotations.from_frame(data, ordered=False)


class MajorityVote(Aggregator):
    """The votes, whose shares are the probabilities; of several labels with the most votes, the first one."""

    story = "naive_soft"


class DawidSkene(Aggregator):
    """Dawid and Skene (1979): each worker has a confusion matrix."""

    story = "dawid_skene"


class OneCoinDawidSkene(Aggregator):
    """Each worker has one accuracy, and errs evenly."""

    story = "one_coin"


class GLAD(Aggregator):
    """Whitehill et al. (2009): workers' abilities, and the tasks' difficulties."""

    story = "glad"


class MACE(Aggregator):
    """Hovy et al. (2013): workers who annotate, or spam.

    Args:
        n_restarts: starts, of which the best is kept.
        n_iter: iterations at the most.
        options: as :class:`Aggregator`.
    """

    story = "mace"

    def __init__(self, n_restarts: int | None = None, n_iter: int | None = None, **options: Any) -> None:
        super().__init__(n_iter, n_restarts=n_restarts, **options)


class BradleyTerry(Aggregator):
    """Items' scores by comparisons, from tables with the columns worker, left, right and label.

    :class:`crowdppl.BradleyTerry` as truth prior, with one accuracy for each worker, as of crowd-kit's
    ``NoisyBradleyTerry``; the label is the better item. ``labels_`` and others are of pairs.
    """

    story = "one_coin"

    def fit_predict(self, data: Any, true_labels: pd.Series | None = None) -> pd.Series:
        """The items' scores, a series by item: positive, with sum 1; arguments and errors as :meth:`fit`."""
        return self.fit(data, true_labels).scores_

    @property
    def scores_(self) -> pd.Series:
        """By item its score: of two items the one is better with the probability of its share of both scores."""
        ranking = self.fit_.ranking["score"].sort_index()
        return (np.exp(ranking) / np.exp(ranking).sum()).rename("agg_score").rename_axis("label")

    def _annotations(self, data: Any) -> Annotations:
        return Annotations.from_comparisons(data)
