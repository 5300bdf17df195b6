r"""Annotations that are levels, of a truth whose classes are others: scores from 0 to 9 of a truth that is no or yes.

In arrays the L levels come after the K classes, as abstentions do, so that nobody annotates a class.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.levels import level_shares
from .contract import StoryError
from .emissions import Emission, Over


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OfLevels(Over):
    """Another emission, of K classes and L levels, where annotations count the classes before the levels.

    Args:
        emission: of levels from 0 on, rows of L probabilities.
        n_classes: K.
    """

    emission: Emission
    n_classes: int = field(metadata={"static": True})

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Nothing of the classes, and then the levels: ``(A, K, K + L)``."""
        return self._padded(self.emission.probs(worker, task))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Log-probability of each level by the emission beneath: ``(A, K)``."""
        return self.emission.log_prob(worker, task, self._level(annotation))

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """Log-probability of each task's levels together by the emission beneath: ``(N, K)``."""
        return self.emission.by_task(annotations, self._level(annotation))

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Nothing of the classes, and then the levels, under one true class a row: ``(A, K + L)``."""
        return self._padded(self.emission.probs_given(worker, task, truth))

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One level a row, ``(A,)``, as the emission beneath draws it."""
        return self.n_classes + self.emission.sample(key, worker, task, truth)

    def over_classes(self, wrap: Any) -> "OfLevels":
        """Return ``wrap`` of the emission beneath, of levels."""
        return replace(self, emission=self.emission.over_classes(wrap))

    def further(self, annotations: Annotations, annotation: Array) -> Emission | None:
        """Return the emission beneath, given the levels."""
        beneath = self.emission.further(annotations, self._level(annotation))
        return None if beneath is None else replace(self, emission=beneath)

    def difficulties(self, annotations: Annotations, annotation: Array, posterior: Array) -> Array | None:
        """The difficulties that the emission beneath tells of the levels: ``(N,)``, or None."""
        return self.emission.difficulties(annotations, self._level(annotation), posterior)

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix of verdicts, levels by the class that they lie in: ``(J, K, K)``."""
        table = self.emission.confusions(annotations)
        return table @ jnp.asarray(level_shares(table.shape[-1], self.n_classes), table.dtype)

    def _level(self, annotation: Array) -> Array:
        return jnp.maximum(annotation - self.n_classes, 0)  # padded rows have 0

    def _padded(self, rows: Array) -> Array:
        return jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(self.n_classes, 0)])


def of_levels(emission: Emission, annotations: Annotations) -> Emission:
    """The emission of a story where the annotations are levels of another truth.

    Raises:
        StoryError: the story's rows are not of the levels.
    """
    worker = None if annotations.worker is None else jnp.asarray(annotations.worker)
    n_columns = jax.eval_shape(lambda: emission.probs(worker, jnp.asarray(annotations.task))).shape[-1]
    if n_columns != annotations.n_levels:
        raise StoryError(
            f"this story has annotations of the {annotations.n_classes} classes, and these are "
            f"{annotations.n_levels} levels of another truth (truth_classes=); fit score_factor, graded_response or "
            "ordinal_dawid_skene, or the verdicts that the levels are by annotations.verdicts()"
        )
    return OfLevels(emission, annotations.n_classes)


def level_places(annotations: Annotations) -> np.ndarray:
    """Return where levels lie among the classes, which are at 0 to K − 1, ``(L,)``: on the classes where L is K."""
    n_levels, n_classes = annotations.n_levels, annotations.n_classes
    return (np.arange(n_levels) + 0.5) * n_classes / n_levels - 0.5
