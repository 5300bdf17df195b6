"""A worker's layer on top of the classifier: :mod:`crowdppl.models.crowd_layer` in Pyro."""

from typing import Literal

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from ...data.errors import check_name
from ..crowd_layer import FORMS, PACE
from ..parts.concentration import positive
from ..parts.scored_annotations import checked_focus
from ..parts.truth import named_workers
from .derived import derived
from .emissions import CrowdLayer, Emission, Focused
from .truth import TruthPrior, by_classifier, observe, tasks
from .twins import takes_arrays


@takes_arrays
def crowd_layer(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    form: Literal["matrix", "vector", "scale_and_bias"] = "matrix",
    spread: float = 5.0,
    focus: float = 0.0,
) -> None:
    """Each worker has a layer on top of a classifier of the tasks, which is needed, and labels are the classifier's.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.crowd_layer`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    check_name("form", form, FORMS)
    log_probs = by_classifier("crowd_layer", annotations, truth_prior)
    deviation = positive("spread", spread) / PACE
    identity = torch.eye(n_classes, device=device) if form == "matrix" else torch.ones(n_classes, device=device)
    bias = None
    with pyro.plate("worker", n_workers, dim=-1):
        layer = identity + PACE * _offsets("offset", identity, deviation)
        if form == "scale_and_bias":
            bias = PACE * _offsets("bias_offset", identity, deviation)
    if layer.ndim > 3 and form != "matrix":  # of several particles
        layer = torch.diag_embed(layer)
    weights = log_probs if annotations.evidence is None else log_probs + annotations.evidence
    emission: Emission = CrowdLayer(layer, bias, torch.softmax(weights, dim=-1))
    if exponent := checked_focus(focus):
        emission = Focused(emission, exponent)
    with tasks(annotations, log_probs) as truth:
        observe(truth, emission, annotations)
    derived("layer", layer, "worker", *(["class", "annotation"] if form == "matrix" else ["annotation"]))
    if bias is not None:
        derived("bias", bias, "worker", "annotation")


def _offsets(name: str, like: Tensor, deviation: float) -> Tensor:
    """Sample offsets of each worker."""
    return pyro.sample(name, dist.Normal(torch.zeros_like(like), deviation).to_event(like.ndim))
