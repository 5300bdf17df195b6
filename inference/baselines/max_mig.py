r"""A classifier and an aggregator of annotations that tell most of each other (Cao et al. 2019, Max-MIG).

.. math::
    h_i &= f_w(x_i), \quad g_i = \text{softmax}\Bigl(b + \sum_{a \in i} W_{j_a y_a}\Bigr) \\
    \kappa_{ii'} &= \sum_c h_{ic} g_{i'c} / p_c, \quad p = \text{softmax}(b) \\
    & \max_{w, W, b} \frac{1}{n} \sum_i \log \kappa_{ii} - \frac{1}{n (n - 1)} \sum_{i \neq i'} \kappa_{ii'}

over minibatches of n tasks: the gain in mutual information with the Kullback–Leibler divergence. Workers who err
together, given the class, tell the aggregator nothing that the features confirm. The aggregator starts as naive Bayes
with the workers' confusion matrices against the majority vote. A label combines both, which are
independent given the class: :math:`P(z_i = c) \propto h_{ic} g_{ic} / p_c`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from ...models import Classifier, observe, tasks
from ...models.parts.classifier import Network
from ...models.parts.kernels import SMALLEST
from ...models.parts.scored_annotations import InformationGain
from ...models.parts.starts import soft_votes, vote_confusions
from ...models.parts.truth_prior import TruthPrior, class_log_probs
from ..densities.evidence import Gold
from ..engines.checkpoints import NOT_KEPT, CheckpointOptions
from ..engines.minibatch_em import BATCH
from ..fitted.by_rule import ByRule
from .training import checked_network, refuse_nameless, train
from .two_step import with_known

PACE = 0.1  # of the aggregator's numbers, in units of its parameters, as of crowd_layer
SPREAD = 5.0  # standard deviation of each of the aggregator's numbers


def fit_max_mig(
    name: str,
    annotations: Annotations,
    *,
    classifier: Network | Classifier | None = None,
    gold: Gold = None,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions = NOT_KEPT,
    **options: Any,
) -> ByRule:
    """Train a classifier and an aggregator of annotations on each other, and label by both.

    Args:
        name: ``"max_mig"``.
        annotations: the data; workers are named, and there are no abstentions.
        classifier: as for :func:`crowdppl.fit`.
        gold: labels that are known take the place of those that are found.
        seed: of the network's start and the batches.
        progress: whether to show a bar.
        checkpoints: where the training is kept.
        options: of the training, which is in minibatches for any classifier: ``epochs``, ``batch_size``,
            ``network_rate``, ``learning_rate``, and others of EM.

    Raises:
        AnnotationError: no worker is named, or there are abstentions.
        StoryError: there is no classifier, or the tasks have no features.
        ValueError: an option of the training that cannot be.
    """
    refuse_nameless(f"{name} learns what each worker annotates", annotations)
    network = checked_network(name, annotations, classifier)
    batch = {"batch_size": min(BATCH, annotations.n_tasks)}
    options = batch | {option: value for option, value in options.items() if value is not None}
    prior = {"truth_prior": network}
    found = train(_gain, annotations, prior, seed=seed, progress=progress, checkpoints=checkpoints, **options)
    votes, bias = (PACE * jnp.asarray(found.weights.pop(site)) for site in ("votes", "bias"))
    log_h = jnp.log(network.predict_proba(annotations.features, annotations.n_classes, None, found.weights) + SMALLEST)
    log_g = InformationGain(votes, bias, log_h).aggregated(annotations, jnp.asarray(annotations.label))
    both = np.asarray(jax.nn.softmax(log_h + log_g - jax.nn.log_softmax(bias)))
    posterior, annotations = with_known(both, annotations, gold)
    about = {"settings": {**options, "seed": seed}, **found._asdict()}
    return ByRule(name, annotations, posterior, classifier=network, **about)


def _gain(annotations: Annotations, *, truth_prior: TruthPrior) -> None:
    """Observe the information that classifier and aggregator share; the aggregator's numbers have a weak prior."""
    log_probs = class_log_probs(annotations, truth_prior)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    votes = _around_zero("votes", (n_workers, n_classes, n_classes), lambda: _naive_bayes(annotations)[0])
    bias = _around_zero("bias", (n_classes,), lambda: _naive_bayes(annotations)[1])
    with tasks(annotations, jax.lax.stop_gradient(log_probs)) as truth:
        observe(truth, InformationGain(votes, bias, log_probs), annotations)


def _around_zero(name: str, shape: tuple[int, ...], start: Callable[[], Array]) -> Array:
    """Sample numbers of the aggregator, which move at its pace."""
    prior = dist.Normal(jnp.zeros(shape), SPREAD / PACE).to_event(len(shape))
    infer = {"event_dims": [f"{name}_{axis}" for axis in range(len(shape))], "start": lambda key: start() / PACE}
    return PACE * numpyro.sample(name, prior, infer=infer)


def _naive_bayes(annotations: Annotations) -> tuple[Array, Array]:
    """Logarithms of the workers' confusion matrices and of the classes' shares by the soft majority vote.

    Returns:
        ``(J, K, K)``, from annotations to classes, and ``(K,)``.
    """
    by_class = jnp.log(vote_confusions(annotations)).swapaxes(-1, -2)
    return by_class, jnp.log(soft_votes(annotations).mean(0) + SMALLEST)
