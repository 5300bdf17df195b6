"""The result of several stories: an average of their fits, with labels, workers and views."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from ..data import Annotations
from ..data.cards import bar, never_raising, short, table
from ..data.pseudonyms import Key, check_workers
from .comparison.stacked_groups import stacked_groups
from .comparison.stacking import Averaged, averaged
from .densities.probabilities import Probabilities
from .fit_story import update
from .fitted.crowd_trust import category_of
from .fitted.given_models import model_frame
from .fitted.intervals import INTERVAL
from .fitted.result_card import result_card
from .fitted.summary import Summary
from .fitted.tasks import REPLICATES
from .results import Fit, Result
from .storage.arviz_data import make_idata
from .storage.baseline_folder import save_baseline
from .storage.privacy import groups_without_workers, pseudonymised, shown
from .storage.stack_folder import Stacked, save_stack


@dataclass(frozen=True, eq=False, repr=False)
class Stack(Result[Averaged]):
    r"""Several fits of the same annotations, averaged: :math:`P(z_i = k) = \sum_m w_m P_m(z_i = k \mid y)`.

    Labels, probabilities, decisions and workers as a fit has them. Made by :func:`stack` and ``cp.fit("auto", …)``.

    Args:
        averaged: the fits, their weights, and what these come from.
    """

    averaged: Averaged

    @property
    def _view(self) -> Averaged:
        return self.averaged

    @property
    def fits(self) -> dict[str, Fit]:
        """By name."""
        return {name: Fit(fitted) for name, fitted in self.averaged.fits.items()}

    @property
    def weights(self) -> pd.Series:
        """Of each fit, by name; they sum to 1."""
        return self.averaged.weights

    @property
    def models(self) -> pd.DataFrame:
        """By model whose probabilities were given, what the fit of the largest weight says of it: :attr:`Fit.models`.

        Raises:
            AnnotationError: no probabilities were given.
        """
        return model_frame(self.averaged.fits[str(self.weights.idxmax())])

    @property
    def comparison(self) -> pd.DataFrame | None:
        """The comparison behind the weights, as :func:`crowdppl.compare` returns it; None where weights were given."""
        return self.averaged.comparison

    @property
    def left_out(self) -> dict[str, str]:
        """Stories that were asked for and do not fit these data, with the reason."""
        return self.averaged.left_out

    def worker_scores(self, interval: float = INTERVAL, *, misled: float | None = None) -> pd.DataFrame:
        """By worker the scores that follow from the confusion matrices, and the realised accuracy.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
            misled: as for :meth:`Fit.worker_scores`; by default the share that the labels allow for and, where they
                allow for none, what is usual.

        Raises:
            AnnotationError: the annotations name no workers.
            ValueError: for another `interval` or `misled`.
        """
        return self.averaged.worker_scores(interval, misled)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The classifiers' probabilities for new tasks with features ``x (n, ...)``, averaged by weight: ``(n, K)``.

        Raises:
            ValueError: a fit that has weight has no classifier, or the features have another shape or are not finite.
        """
        found = [self.weights[name] * fit.predict_proba(x) for name, fit in self.fits.items() if self.weights[name] > 0]
        return np.sum(found, axis=0)

    def update(
        self,
        more: Annotations | pd.DataFrame | None = None,
        *,
        gold: Any = None,
        evidence: pd.DataFrame | np.ndarray | None = None,
        probabilities: Probabilities = None,
        progress: bool = True,
    ) -> Stack:
        """Return the average of the same fits after more annotations: :meth:`Fit.update` of each fit.

        The weights stay; ``cp.stack(stack.fits)`` with the returned stack compares the fits anew.

        Args:
            more: as for :meth:`Fit.update`.
            gold: likewise.
            evidence: likewise.
            probabilities: likewise.
            progress: show a progress bar.

        Raises:
            AnnotationError: as :meth:`Fit.update`.
            ValueError: one of the fits cannot be updated.
        """
        given: dict[str, Any] = {
            "gold": gold,
            "evidence": evidence,
            "probabilities": probabilities,
            "progress": progress,
        }
        fits = {name: update(fitted, more, **given) for name, fitted in self.averaged.fits.items()}
        found = replace(self.averaged, fits=fits)
        for message in found.warnings:
            warnings.warn(message, category_of(message), stacklevel=2)
        return Stack(found)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """By task its averaged label, the doubt about it, and whether task or crowd are its cause."""
        return self.task_scores()

    def task_scores(self, *, replicates: int = REPLICATES, seed: int = 0) -> pd.DataFrame:
        """``fit.tasks`` of the averaged labels; what comes from replicated annotations is averaged over the fits.

        Args:
            replicates: as for :meth:`Fit.task_scores`.
            seed: likewise.
        """
        return self.averaged.task_scores(replicates=replicates, seed=seed)

    @property
    def idata(self) -> Any:
        """ArviZ data as :meth:`to_idata` makes it, with names as coordinates."""
        return self.to_idata()

    def to_idata(self, *, workers: str = "keep", key: Key | None = None) -> Any:
        """ArviZ data of the mixture of the stories; those of one story are ``stack.fits[name].idata``.

        The group posterior has about 1,000 draws, of each fit in proportion to its weight, around it where it is a
        point: the parameters that all fits with weight have, ``worker_confusion`` (worker, truth, annotation) and
        ``truth_probability`` (task, truth), unless that were more than 5 million numbers. The group fit has the
        averaged label probabilities, in which the votes have their share, and the weights; observed_data and
        constant_data have the annotations. There is no log-likelihood: of a mixture ``stack.comparison`` says it.

        Args:
            workers: what the data have of the workers, as for :meth:`Fit.to_idata`.
            key: likewise.

        Raises:
            UnknownNameError: `workers` is something else.
            AnnotationError: the key is missing, is none, or is given for something else.
        """
        check_workers(workers, key)
        averaged = self.averaged if workers != "hash" else pseudonymised(self.averaged, key)
        groups = stacked_groups(averaged.with_uncertainty)
        return make_idata(groups_without_workers(groups) if workers == "drop" else groups)

    def save(
        self, path: str | PathLike, *, overwrite: bool = False, workers: str = "keep", key: Key | None = None
    ) -> None:
        """Write the average with all its fits to the folder ``path``, whole or not at all.

        Args:
            path: of the folder; :func:`crowdppl.load_fit` reads it: :mod:`.stack_folder`.
            overwrite: replace a folder that has something in it.
            workers: as for :meth:`Fit.save`.
            key: likewise.

        Raises:
            StorageError: as :meth:`Fit.save`.
            AnnotationError: likewise.
            UnknownNameError: likewise.
        """
        found = shown(self.averaged, workers, key)
        if workers == "drop":
            save_baseline(found, path, overwrite=overwrite)
            return
        stacked = Stacked(found.fits, found.weights, found.comparison, found.left_out, found.votes, found.misled)
        save_stack(stacked, path, overwrite=overwrite)

    def pseudonymised(self, key: Key) -> Stack:
        """Return a copy with a pseudonym in the place of each worker's name: :meth:`Fit.pseudonymised`.

        Raises:
            AnnotationError: the key is shorter or longer, or its file cannot be read.
        """
        return Stack(pseudonymised(self.averaged, key))

    def summary(self) -> Summary:
        """Return a summary: averaged fits, weights, and the reason; prints as text, shows as a table in notebooks."""
        return self.averaged.summary()

    def __repr__(self) -> str:
        return f"Stack({self.averaged.weights_text}; {self.annotations!r})"

    @never_raising
    def _repr_html_(self) -> str:
        found, weights = self.averaged, self.weights.sort_values(ascending=False)
        known = {"left out": ", ".join(found.left_out)} if found.left_out else {}
        if found.votes:
            known["share of the votes"] = f"{found.votes:.0%}"
        rows = ([short(name), bar(float(weight))] for name, weight in weights.items())
        return result_card(
            found,
            "Average of stories",
            known,
            table("stories", ["story", "weight"], rows),
            warnings=self.warnings,
            then=("stack.labels", "stack.workers", "stack.comparison", "stack.summary()"),
        )


def stack(
    fits: Mapping[str, Fit] | Iterable[Fit],
    weights: Mapping[str, float] | pd.Series | None = None,
    *,
    votes: float = 0.0,
    misled: float | None = 0.0,
    **options: object,
) -> Stack:
    """Average fits of the same annotations by stacking weights (Yao, Vehtari, Simpson & Gelman 2018).

    Args:
        fits: as for :func:`crowdppl.compare`.
        weights: by name, instead of those of the comparison; they are scaled to sum 1.
        votes: share of the label probabilities that is the votes', from 0 to below 1.
        misled: share of tasks that is expected to mislead the whole crowd, from 0 to below 1, for which the label
            probabilities allow; None for what is usual, as in ``"auto"``.
        options: of :func:`crowdppl.compare`, such as ``by`` and ``method``.

    Raises:
        ValueError: for fits that cannot be compared, weights that are negative, not finite or all 0, or a share
            that is none.
        UnknownNameError: a weight is of no fit.
    """
    return Stack(averaged(fits, weights, votes=votes, misled=misled, **options))
