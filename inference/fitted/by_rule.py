"""Labels that come from no likelihood: the workers' confusion matrices against them, and a classifier of new tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data import AnnotationError, Annotations
from ...data.arrays import expected_counts
from ...data.features import checked_features
from ...models import Classifier
from ...models.parts.concentration import diagonal_concentration
from ...models.parts.worker_heads import WorkerHeads
from ..engines.finding import Finding

RIGHT = 2.0  # pseudo-annotations of each class that are right, as by dawid_skene's default; as wrong counts one
ABSTAINED = 0.5  # and of each abstention
DRAWS = 200  # of the confusion matrices around their mean


@dataclass(frozen=True, eq=False, repr=False)
class ByRule:
    """Outcome of a rule or a baseline: labels, and a classifier that was trained on them or beside them.

    Args:
        name: of the rule or the method.
        annotations: the data.
        posterior: probabilities of the labels, ``(N, K)``.
        classifier: the classifier; None where there is none.
        weights: its weights and running statistics by site.
        settings: how it was trained.
        by_worker: further numbers of the workers, each ``(J,)``, by name.
        history: of the training, by epoch.
        findings: what a user should know or act on.
    """

    name: str
    annotations: Annotations
    posterior: np.ndarray
    classifier: Classifier | None = None
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_worker: Mapping[str, np.ndarray] = field(default_factory=dict)
    history: np.ndarray = field(default_factory=lambda: np.zeros(0))
    findings: tuple[Finding, ...] = ()
    has_draws: bool = False

    @property
    def given(self) -> Annotations:
        """The annotations as they were given, each of which counts."""
        return self.annotations

    @cached_property
    def _concentration(self) -> np.ndarray:
        r"""Of each row of the workers' confusion matrices given the labels, ``(J, K, L)``.

        The annotations of each kind, counted by the labels' probabilities, beside a prior of two right annotations and
        a wrong one of each class.
        """
        data = self.annotations.verdicts()
        kinds = data.n_categories
        if data.worker is None:
            raise AnnotationError(
                "the annotations name no workers, so there is nobody to score; labels has the tasks' labels"
            )
        counts = expected_counts(data, data.label, np.asarray(self.posterior, dtype=float))
        prior = np.full((data.n_classes, kinds), ABSTAINED)
        prior[:, : data.n_classes] = diagonal_concentration(data.n_classes, RIGHT)
        return counts + prior

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix, counted against the labels: ``(1, 1, J, K, L)``; draws where it has draws.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        concentration = self._concentration
        if not self.has_draws:
            return (concentration / concentration.sum(-1, keepdims=True))[None, None]
        drawn = np.random.default_rng(0).standard_gamma(concentration, (1, DRAWS, *concentration.shape))
        return drawn / drawn.sum(-1, keepdims=True)

    @property
    def with_uncertainty(self) -> "ByRule":
        """The labels with draws of the confusion matrices, given the labels, which count as known."""
        return self if self.has_draws else replace(self, has_draws=True)

    def predicted_annotations(self) -> np.ndarray:
        r"""Probabilities of what each worker would annotate to each task: ``(N, J, K)``.

        Of a network with an output for each worker that output; else :math:`\sum_k P(z_i = k) P(y_{ij} = l \mid k)`
        with the confusion matrices counted against the labels.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        if isinstance(self.classifier, WorkerHeads):
            x = np.asarray(self.annotations.features)
            return self.classifier.predict_heads(x, self.annotations.n_classes, self.weights)
        table = self.confusion_draws.mean((0, 1))[..., : self.annotations.n_classes]
        found = np.einsum("nk,jkl->njl", self.posterior, table)
        return found / found.sum(-1, keepdims=True)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The classifier's probabilities of new tasks with features ``x (n, ...)``: ``(n, K)``.

        Raises:
            ValueError: there is no classifier, or the features have another shape or are not finite.
        """
        if self.classifier is None:
            raise ValueError(
                f"{self.name} was asked for without a classifier, so it says nothing of tasks without annotations; "
                "give classifier="
            )
        known = self.annotations
        x = checked_features(x, np.asarray(known.features).shape[1:], known.feature_names)
        return self.classifier.predict_proba(x, self.annotations.n_classes, None, self.weights)
