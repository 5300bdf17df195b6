r"""Quality pooled over questions: what any story becomes where a worker is nearly as able on one as on another.

Each pair of a worker and a question has parameters of its own, and each worker has parameters for all questions. What a
worker annotates follows either:

.. math:: P(y_a = l \mid z_i = k) = s \, P(l \mid k, j_a) + (1 - s) \, P(l \mid k, (j, q)_a)

with one share :math:`s` for the whole crowd, which the annotations tell: at 1 a worker has one quality, at 0 one for
each question. Stories, priors and starts are as without it, since a worker's parameters for all questions are those of
one more member of the plate ``worker``.
"""

from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from ...data.questions import SHARED, Units
from .contract import Story, StoryError
from .emissions import Emission, Over, OverClasses
from .kernels import safe_log

GENERAL: dict[str, Any] = {"pooled_questions": False}
"""The hyperparameter, which every story takes, with its default; ``cp.fit(…, quality="pooled")`` gives it."""

SHARE = "question_share"
"""The site of how often an annotation follows the parameters of the question, and those of all questions."""

DIM = "quality"
"""The name of its dimension."""

OF = np.array(["question", "all questions"])
"""The labels along it."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledQuestions(Over):
    """Another emission where an annotation follows the parameters of its question, or of all questions.

    Args:
        emission: of pairs of a worker and a question, and of workers on all questions.
        share: how often it follows either, ``(2,)``.
        shared: which of them each pair's worker on all questions is, ``(J,)``.
    """

    emission: Emission
    share: Array
    shared: Array

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The mixture of both: ``(A, K, L)``."""
        own, shared = (self.emission.probs(each, task) for each in (worker, self.shared[worker]))
        return self.share[0] * own + self.share[1] * shared

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Its logarithm: ``(A, K)``."""
        own, shared = (self.emission.log_prob(each, task, annotation) for each in (worker, self.shared[worker]))
        log_share = safe_log(self.share)
        return jnp.logaddexp(log_share[0] + own, log_share[1] + shared)

    def confusions(self, annotations: Annotations) -> Array:
        """Each pair's mixture, and of a worker on all questions what is shared: ``(J, K, L)``."""
        table = self.emission.confusions(annotations)
        return self.share[0] * table + self.share[1] * table[self.shared]


def pooling(story: Story) -> Story:
    """Return the story in which the quality of a worker is pooled over questions."""

    @wraps(story)
    def pooled(annotations: Annotations, **hyperparameters: Any) -> None:
        shared = jnp.asarray(_shared(annotations))
        share = numpyro.sample(SHARE, dist.Dirichlet(jnp.ones(2)), infer={"event_dims": [DIM]})

        def over(emission: Emission) -> PooledQuestions:
            if not emission.independent:
                raise StoryError(
                    f"quality='pooled': the annotations of a task depend on each other in {type(emission).__name__}; "
                    "give quality='by_question'"
                )
            return PooledQuestions(emission, share, shared)

        with OverClasses(over):
            story(annotations, **hyperparameters)

    return pooled


def _shared(annotations: Annotations) -> np.ndarray:
    """The position of each pair's worker on all questions, ``(J,)``."""
    pairs = annotations.workers
    if not isinstance(pairs, Units) or SHARED not in pairs.questions or annotations.population is not None:
        raise StoryError(
            "pooled_questions=True is of annotations.by_question(shared=True), all of them in memory and on one "
            "device: give quality='pooled' instead"
        )
    return pairs.index_of([(pairs.tasks[int(j)], SHARED) for j in pairs.task])
