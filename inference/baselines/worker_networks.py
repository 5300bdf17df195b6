r"""A network predicts each worker's annotations, and their average labels (Guan et al. 2018: DoctorNet and WDN).

.. math:: \max_h \sum_a \log h_{j_a y_a}(x_{i_a}), \qquad f(x) = \sum_j w_j h_j(x)

DoctorNet takes equal weights. WDN learns them with the network held, so that on each task the average over the workers
who did *not* annotate it predicts the annotations that it got,

.. math:: \max_w \sum_a \log \frac{\sum_{j \notin J_{i_a}} w_j h_{j y_a}(x_{i_a})}{\sum_{j \notin J_{i_a}} w_j}

since a worker's output has learnt from that worker's annotation of the task already. Where more than half of the
workers annotated a task, as with pseudo-annotations, the few others do not stand for all, and it takes all workers.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from ...data import Annotations
from ...models import Classifier, observe, tasks
from ...models.parts.classifier import Network
from ...models.parts.scored_annotations import Heads, Taught, focused
from ...models.parts.worker_heads import AVERAGING, WorkerHeads
from ..densities.evidence import Gold
from ..engines.checkpoints import NOT_KEPT, CheckpointOptions
from ..fitted.by_rule import ByRule
from .training import checked_network, refuse_nameless, train
from .two_step import with_known

ITERATIONS = 200  # of the weights of the average at the most


def fit_worker_network(
    name: str,
    annotations: Annotations,
    *,
    classifier: Network | Classifier | None = None,
    gold: Gold = None,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions = NOT_KEPT,
    focus: float = 0.0,
    **options: Any,
) -> ByRule:
    """Train a network with an output for each worker, and label by their average.

    Args:
        name: ``"doctor_net"`` for equal weights, ``"wdn"`` for learnt ones.
        annotations: the data; workers are named, and there are no abstentions.
        classifier: whose network has its last layer once for each worker.
        gold: labels that are known take the place of those that are predicted.
        seed: of the network's start and the batches.
        progress: whether to show a bar.
        checkpoints: where the training is kept.
        focus: exponent of the focal loss in the place of the log-probability of each annotation; 0 for the latter.
        options: of the training: ``epochs``, ``batch_size``, ``network_rate``, and others of EM.

    Raises:
        AnnotationError: no worker is named, or there are abstentions.
        StoryError: there is no classifier, the tasks have no features, or the focus cannot be.
        ValueError: an option of the training that cannot be.
    """
    refuse_nameless(f"{name} learns what each worker annotates", annotations)
    network = WorkerHeads.of(checked_network(name, annotations, classifier), annotations.n_workers)
    options = {option: value for option, value in options.items() if value is not None}
    found = train(
        _worker_by_worker,
        annotations,
        {"truth_prior": network, "focus": focus},
        seed=seed,
        progress=progress,
        checkpoints=checkpoints,
        **options,
    )
    weights = found.weights
    weights[AVERAGING] = np.full(annotations.n_workers, 1 / annotations.n_workers, np.float32)
    if name == "wdn":
        heads = network.predict_heads(annotations.features, annotations.n_classes, weights)
        weights[AVERAGING] = averaging_weights(annotations, heads)
    posterior = network.predict_proba(annotations.features, annotations.n_classes, None, weights)
    known, annotations = with_known(posterior, annotations, gold)
    by_worker = {"averaging_weight": weights[AVERAGING]}
    about = {"settings": {**options, "focus": focus, "seed": seed}, "by_worker": by_worker, **found._asdict()}
    return ByRule(name, annotations, known, classifier=network, **about)


def averaging_weights(annotations: Annotations, heads: np.ndarray) -> np.ndarray:
    """Weights of the workers whose average, without those who annotated a task, predicts its annotations best.

    Args:
        heads: probabilities of what each worker annotates, ``(N, J, K)``.

    Returns:
        ``(J,)``, which sum to one; beside a prior of one annotation for each worker.
    """
    count = annotations.row_counts
    gave = np.zeros(heads.shape[:2], bool)
    gave[np.asarray(annotations.task)[count > 0], np.asarray(annotations.worker)[count > 0]] = True
    others = np.where(gave.mean(-1, keepdims=True) > 0.5, True, ~gave)
    seen = np.concatenate([others[..., None] * heads, others[..., None]], axis=-1).astype(np.float32)
    lesson = annotations.replace(features=seen, evidence=None)
    found = train(_average, lesson, {}, progress=False, max_iterations=ITERATIONS)
    return found.weights["averaging"].astype(np.float32)


def _worker_by_worker(annotations: Annotations, *, truth_prior: WorkerHeads, focus: float = 0.0) -> None:
    """Annotations are drawn from their workers' outputs of the network."""
    log_probs = truth_prior.heads(jnp.asarray(annotations.features), annotations.n_classes)
    mean = jax.lax.stop_gradient(jax.nn.logsumexp(log_probs, axis=1) - jnp.log(log_probs.shape[1]))
    with tasks(annotations, mean) as truth:
        observe(truth, focused(Heads(log_probs), focus), annotations)


def _average(annotations: Annotations) -> None:
    """Annotations are drawn from an average of rows, of those that the last column names."""
    given = jnp.asarray(annotations.features)
    ones = jnp.ones(given.shape[1])
    infer = {"event_dims": ["worker"], "exact_step": False}
    weight = numpyro.sample("averaging", dist.Dirichlet(ones), infer=infer)
    total = jnp.einsum("j,njk->nk", weight, given)
    log_probs = jnp.log(jnp.maximum(total[:, :-1], 1e-30)) - jnp.log(jnp.maximum(total[:, -1:], 1e-30))
    with tasks(annotations, jax.lax.stop_gradient(log_probs)) as truth:
        observe(truth, Taught(log_probs), annotations)
