r"""Difficulty of tasks: what any story becomes where the workers know less of some tasks than of others.

Each task :math:`i` has a level of difficulty, and what a worker annotates there is what the story says with its
log-odds times :math:`1 - d_i`: the probabilities go from those of the story towards chance, the same for all K classes.

.. math::
    d_i &\in \{d_0 = 0, \dots, d_{Q-1}\}, \quad P(d_i = d_q) = \text{difficulty\_share}_q & (N) \\
    P(y_a = l \mid z_i = k, d_i) &= \frac{P(l \mid k, j_a)^{1 - d_i}}{\sum_m P(m \mid k, j_a)^{1 - d_i}} & (A)

For two classes and one probability of being right a worker this is Whitehill et al.'s (2009) :math:`\sigma(\alpha_j
\beta_i)` with :math:`\beta_i = 1 - d_i` among a few values. The levels are summed out task by task, so that the
parameters do not grow with the tasks, and neither a task's label nor its held-out likelihood is conditioned on a value
of its difficulty. Where the data show no difficult tasks their shares go to zero, and the story is what it is without.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from .concentration import positive
from .contract import Story
from .emissions import Emission, OverClasses
from .kernels import kind_at, numbers_by, safe_log, upto

LEVELS = np.array([0.0, 0.4, 0.7, 0.9])  # of the difficulty; log-odds at each are about half of those before
USUAL_SHARE = np.array([0.8, 0.2 / 3, 0.2 / 3, 0.2 / 3])  # how often each level is expected
WEIGHT = 10.0  # of this expectation, in tasks

GENERAL: dict[str, Any] = {"task_difficulty": False, "difficulty_weight": WEIGHT}
"""Hyperparameters of :func:`crowdppl.with_task_difficulty`, which every story takes, with their defaults."""

SHARE = "difficulty_share"
"""The site of how often each level of difficulty is."""

DIM = "difficulty_level"
"""The name of its dimension."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TaskDifficulty(Emission):
    """Another emission where tasks have a level of difficulty.

    Args:
        emission: of an annotation to a task of difficulty 0.
        share: probabilities of the levels, ``(Q,)``.
    """

    emission: Emission
    share: Array

    independent: ClassVar[bool] = False

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Of one annotation, the levels summed out: ``(A, K, L)``."""
        return self._averaged(self._by_level(lambda emission: emission.probs(worker, task)))

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """The sum over the levels: ``(N, K)``."""
        return logsumexp(self._scores(annotations, annotation), axis=0)

    def difficulties(self, annotations: Annotations, annotation: Array, posterior: Array) -> Array:
        """The expected level of each task given its annotations and the posterior ``(N, K)`` of its class: ``(N,)``."""
        of_level = jax.nn.softmax(self._scores(annotations, annotation), axis=0)
        return jnp.einsum("q,qnk,nk->n", jnp.asarray(LEVELS, of_level.dtype), of_level, posterior)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``; rows of one task have one level."""
        of_row, of_task = jax.random.split(key)
        level = kind_at(numbers_by(of_task, task, 1)[:, 0], upto(self.share))
        drawn = self._by_level(lambda emission: emission.sample(of_row, worker, task, truth))
        return jnp.take_along_axis(drawn, level[None], axis=0)[0]

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix in the long run, over tasks of all levels: ``(J, K, L)``."""
        return self._averaged(self._by_level(lambda emission: emission.confusions(annotations)))

    def _scores(self, annotations: Annotations, annotation: Array) -> Array:
        """Log-probability of each task's level and annotations under each class: ``(Q, N, K)``."""
        scores = self._by_level(lambda emission: emission.by_task(annotations, annotation))
        return scores + safe_log(self.share)[:, None, None]

    def _by_level(self, of: Callable[[Emission], Array]) -> Array:
        """A function of the emission at each level, ``(Q, ...)``."""
        # The barrier keeps XLA from computing at compile time what it can of engines' constant starting values.
        powers = jax.lax.optimization_barrier(jnp.asarray(1 - LEVELS, float))
        return jax.vmap(lambda power: of(self.emission.tempered(power)))(powers)

    def _averaged(self, by_level: Array) -> Array:
        return jnp.einsum("q,q...->...", self.share, by_level)


def hardening(story: Story, *, difficulty_weight: float = WEIGHT) -> Story:
    """Return the story in which tasks have a level of difficulty: :func:`crowdppl.with_task_difficulty`."""

    @wraps(story)
    def hardened(annotations: Annotations, **hyperparameters: Any) -> None:
        prior = dist.Dirichlet(_prior_share(positive("difficulty_weight", difficulty_weight)))
        share = numpyro.sample(SHARE, prior, infer={"event_dims": [DIM], "exact_step": False})
        with OverClasses(lambda emission: TaskDifficulty(emission, share)):
            story(annotations, **hyperparameters)

    return hardened


def _prior_share(weight: float) -> Array:
    return 1 + weight * jnp.asarray(USUAL_SHARE, float)


def prior_mean(difficulty_weight: float = WEIGHT) -> float:
    """The mean difficulty of tasks, as the prior expects it."""
    concentration = np.asarray(_prior_share(difficulty_weight))
    return float(concentration @ LEVELS / concentration.sum())
