r"""A worker's layer on top of the classifier gives that worker's annotations (Rodrigues & Pereira 2018, CrowdLayer).

.. math::
    W_j &\sim \text{Normal}(I, s^2), \quad b_j \sim \text{Normal}(0, s^2) & (J, K, K), (J, K) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid x_i) &= \text{softmax}_l\left(\sum_k W_{j_a k l} f_k(x_i) + b_{j_a l}\right) & (A)

The annotations depend on the classifier's probabilities :math:`f(x_i)` and on nothing else of the task, so that they
leave its class at them: a label is the classifier's prediction. The prior keeps the layers near the identity, where
the published training starts; the gradient of the network is that of the annotations alone, so that EM's ``warmup``
on the votes moves nothing.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from ..data.errors import check_name
from .parts.concentration import positive
from .parts.scored_annotations import CrowdLayer, by_classifier, prior_alone
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior

FORMS = ("matrix", "vector", "scale_and_bias")


def crowd_layer(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    form: Literal["matrix", "vector", "scale_and_bias"] = "matrix",
    spread: float = 1.0,
) -> None:
    r"""Each worker has a layer on top of a classifier of the tasks, which is needed, and labels are the classifier's.

    Sites: ``layer (J, K, K)``, from classes to annotations, or its diagonal ``(J, K)``; ``bias (J, K)`` with
    ``form="scale_and_bias"``; ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: a classifier of the tasks' features, or other probabilities of the classes by task.
        form: ``"matrix"`` for a full layer, ``"vector"`` for a weight of each class, ``"scale_and_bias"`` for weights
            and biases (MW, VW and VW+B in the paper).
        spread: :math:`s`, standard deviation of each number of the layer around the identity.

    Raises:
        UnknownNameError: there is no such form.
        StoryError: no worker is named, there is no prior by task, or the spread is not positive.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    check_name("form", form, FORMS)
    log_probs = by_classifier("crowd_layer", annotations, truth_prior)
    spread = positive("spread", spread)
    identity = jnp.eye(n_classes) if form == "matrix" else jnp.ones(n_classes)
    dims = ["class", "annotation"] if form == "matrix" else ["annotation"]

    def at(start: Array) -> dict:
        return {"start": lambda key: jnp.broadcast_to(start, (n_workers, *start.shape))}

    bias = None
    with numpyro.plate("worker", n_workers, dim=-1):
        around = dist.Normal(identity, spread).to_event(identity.ndim)
        layer = numpyro.sample("layer", around, infer={"event_dims": dims, **at(identity)})
        if form == "scale_and_bias":
            zero = jnp.zeros(n_classes)
            around = dist.Normal(zero, spread).to_event(1)
            bias = numpyro.sample("bias", around, infer={"event_dims": ["annotation"], **at(zero)})
    probs = jnp.exp(log_probs)
    if annotations.evidence is not None:
        probs = jax.nn.softmax(log_probs + annotations.evidence)
    with tasks(annotations, prior_alone(log_probs, annotations)) as truth:
        observe(truth, CrowdLayer(layer, bias, probs), annotations)
