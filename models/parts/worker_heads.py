"""One network with an output for each worker, whose average is a classifier (Guan et al. 2018, "Who said what")."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array

from .classifier import PREFIX, Classifier, at_weights
from .contract import promised

AVERAGING = PREFIX + "averaging"
"""The site of the workers' weights in the average: ``(J,)``, which sum to one."""


@promised
@dataclass(frozen=True, repr=False)
class WorkerHeads(Classifier):
    r"""A network whose last layer has the classes once for each worker.

    .. math:: P(y_{ij} = l) = h_{jl}(x_i), \quad f_k(x_i) = \sum_j w_j h_{jk}(x_i)

    Args:
        network: as of :class:`.Classifier`; a module of one's own gives :math:`J K` logits a task.
        hidden: as of :class:`.Classifier`.
        dropout: as of :class:`.Classifier`.
        batch_norm: as of :class:`.Classifier`.
        prior: as of :class:`.Classifier`.
        n_workers: J.
    """

    n_workers: int = 1

    kind: ClassVar[str] = "worker_heads"

    @classmethod
    def of(cls, classifier: Classifier, n_workers: int) -> "WorkerHeads":
        """The network of a classifier with an output for each worker."""
        options = {name: getattr(classifier, name) for name in ("network", "hidden", "dropout", "batch_norm", "prior")}
        return cls(**options, n_workers=n_workers)

    @property
    def is_linear(self) -> bool:
        """No: Newton's steps are written for one logistic regression."""
        return False

    def heads(self, x: Array, n_classes: int) -> Array:
        r"""Log-probabilities :math:`\log h` of what each worker annotates: ``(n, J, K)`` of features ``(n, ...)``."""
        logits = self._logits(x, self.n_workers * n_classes)
        return jax.nn.log_softmax(logits.reshape(len(x), self.n_workers, n_classes))

    def log_probs(self, x: Array, n_classes: int) -> Array:
        """Log-probabilities of the average over the workers: ``(n, K)``."""
        weight = numpyro.param(AVERAGING, jnp.full(self.n_workers, 1 / self.n_workers))
        return jax.nn.logsumexp(self.heads(x, n_classes) + jnp.log(weight)[:, None], axis=1)

    def shapes(self, shape: tuple[int, ...], n_classes: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights and running statistics by site, the weights of the average among them."""
        return super().shapes(shape, self.n_workers * n_classes) | {AVERAGING: (self.n_workers,)}

    def predict_heads(self, x: Any, n_classes: int, weights: Mapping[str, Any]) -> np.ndarray:
        """Probabilities of what each worker annotates to tasks with features ``x (n, ...)``: ``(n, J, K)``."""
        return np.asarray(_predicted(self, n_classes, jnp.asarray(x), {k: jnp.asarray(v) for k, v in weights.items()}))


@partial(jax.jit, static_argnames=("network", "n_classes"))
def _predicted(network: WorkerHeads, n_classes: int, x: Array, weights: dict[str, Array]) -> Array:
    with at_weights(weights):
        return jnp.exp(network.heads(x, n_classes))
