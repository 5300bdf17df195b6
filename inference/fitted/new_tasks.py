"""What a fitted classifier says of tasks that nobody has annotated."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from ...models import Classifier
from ...models.parts.classifier import PREFIX
from ..densities.enumerated import Parameters, site_values
from .fitted import Fitted


def predict_proba(fitted: Fitted, x: Any) -> np.ndarray:
    """The classifier's probabilities for new tasks: see :meth:`.Fit.predict_proba`."""
    annotations, classifier = fitted.annotations, fitted.model.classifier
    in_torch, n_classes = fitted.model.torch_classifier, annotations.n_classes
    if classifier is None and in_torch is None:
        raise ValueError(
            f"{fitted.story} was fitted without a classifier, so it says nothing of tasks without annotations; "
            "fit.probabilities has the tasks that it saw"
        )
    if annotations.features is None:  # the module has its own idea of what x is
        return in_torch.predict_proba(x, n_classes)
    x, shape = np.asarray(x, dtype=np.float32), np.asarray(annotations.features).shape[1:]
    if x.shape[1:] != shape or x.ndim != len(shape) + 1:
        raise ValueError(f"x has shape {x.shape}; (n, {', '.join(map(str, shape))}) is needed, as in the training")
    if not np.isfinite(x).all():
        row = int(np.argmin(np.isfinite(x).reshape(len(x), -1).all(-1)))
        raise ValueError(f"x, row {row}: {x[row].tolist()} has a value that is not finite")
    if not len(x):
        return np.zeros((0, n_classes), dtype=np.float32)
    if classifier is None:
        return in_torch.predict_proba(x, n_classes)
    weights = {name: values for name, values in fitted.draws.items() if name.startswith(PREFIX)}
    return np.asarray(_class_probabilities(classifier, n_classes, x, weights, fitted.fixed))


@partial(jax.jit, static_argnames=("classifier", "n_classes"))
def _class_probabilities(
    classifier: Classifier, n_classes: int, x: Array, weights: Parameters, fixed: Parameters
) -> Array:
    """For features ``x (n, ...)``, averaged over the draws of the weights: ``(n, K)``."""

    def probs(draw: Parameters) -> Array:
        with handlers.substitute(substitute_fn=site_values(draw | fixed)), handlers.seed(rng_seed=0):
            return jnp.exp(classifier.log_probs(x, n_classes))

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return total + probs(draw), None

    if not weights:
        return probs({})
    flat = jax.tree.map(lambda value: value.reshape(-1, *value.shape[2:]), weights)
    total, _ = jax.lax.scan(add, jnp.zeros((len(x), n_classes)), flat)
    return total / total.sum(-1, keepdims=True)
