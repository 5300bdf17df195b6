r"""A worker's layer on top of the classifier gives that worker's annotations (Rodrigues & Pereira 2018, CrowdLayer).

.. math::
    W_j &= I + \epsilon \, o_j, \quad b_j = \epsilon \, c_j & (J, K, K), (J, K) \\
    o_{jkl}, c_{jl} &\sim \text{Normal}(0, (s / \epsilon)^2) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid x_i) &= \text{softmax}_l\left(\sum_k W_{j_a k l} f_k(x_i) + b_{j_a l}\right) & (A)

The annotations depend on the classifier's probabilities :math:`f(x_i)` and on nothing else of the task, so that they
leave its class at them: a label is the classifier's prediction. The prior keeps the layers near the identity, where
the published training starts. The parameters are offsets from it in steps of :math:`\epsilon = 0.1`: Adam moves every
number as far in a step, and a layer that moves faster than the network below it loses classes.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpyro

from ..data import Annotations
from ..data.errors import check_name
from .parts.concentration import positive
from .parts.derived import derived
from .parts.offsets import PACE, sample_offsets
from .parts.scored_annotations import CrowdLayer, by_classifier, focused
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior

FORMS = ("matrix", "vector", "scale_and_bias")


def crowd_layer(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    form: Literal["matrix", "vector", "scale_and_bias"] = "matrix",
    spread: float = 5.0,
    focus: float = 0.0,
) -> None:
    r"""Each worker has a layer on top of a classifier of the tasks, which is needed, and labels are the classifier's.

    Sites: ``offset (J, K, K)``, or ``(J, K)`` of a diagonal; ``bias_offset (J, K)`` with ``form="scale_and_bias"``;
    ``truth (N,)``, ``annotation (A,)``. Derived: ``layer``, from classes to annotations, and ``bias``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: a classifier of the tasks' features, or other probabilities of the classes by task.
        form: ``"matrix"`` for a full layer, ``"vector"`` for a weight of each class, ``"scale_and_bias"`` for weights
            and biases (MW, VW and VW+B in the paper).
        spread: :math:`s`, standard deviation of each number of the layer around the identity.
        focus: :math:`\gamma`, exponent of the focal loss in the place of the log-probability of each annotation (Lin et
            al. 2017); 0 for the log-probability itself.

    Raises:
        UnknownNameError: there is no such form.
        StoryError: no worker is named, there is no prior by task, the spread is not positive, or the focus is
            negative.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    check_name("form", form, FORMS)
    log_probs = by_classifier("crowd_layer", annotations, truth_prior)
    spread = positive("spread", spread)
    identity = jnp.eye(n_classes) if form == "matrix" else jnp.ones(n_classes)
    dims = ["class", "annotation"] if form == "matrix" else ["annotation"]
    bias = None
    with numpyro.plate("worker", n_workers, dim=-1):
        layer = identity + PACE * sample_offsets("offset", identity.shape, spread / PACE, dims, n=n_workers)
        if form == "scale_and_bias":
            bias = PACE * sample_offsets("bias_offset", (n_classes,), spread / PACE, ["annotation"], n=n_workers)
    probs = jnp.exp(log_probs)
    if annotations.evidence is not None:
        probs = jax.nn.softmax(log_probs + annotations.evidence)
    with tasks(annotations, log_probs) as truth:
        observe(truth, focused(CrowdLayer(layer, bias, probs), focus), annotations)
    derived("layer", layer, "worker", *dims)
    if bias is not None:
        derived("bias", bias, "worker", "annotation")
