r"""Probabilities that models give the classes, such as a classifier's: each model is one more fallible worker.

A model's probabilities :math:`p_i` of a task's classes say what its class is only as far as the model is right, and a
model may be far too sure. So they are tempered: with :math:`x_{ik} = \log p_{ik} - \frac{1}{K} \sum_l \log p_{il}`,

.. math::
    \text{slope}_m &\sim \text{Normal}(1, 1), \quad \text{bias}_{mk} \sim \text{Normal}(0, 2) & (M), (M, K) \\
    q_{mik} &= \operatorname{softmax}_k(\text{slope}_m \, x_{mi} + \text{bias}_m)_k & (M, N, K) \\
    p(x_{mi} \mid z_i = k) &= g_m(x_{mi}) \, q_{mik} \Big/ \frac{1}{n_m} \sum_{i'} q_{mi'k} & (N)

where :math:`g_m` is how the model's probabilities are distributed over its tasks, whatever that is: no shape is
assumed, and the last line is a density for all slopes and biases (exponential tilting, Qin & Zhang 1997; where
the truth is known it is logistic regression). The reciprocal of the slope is the temperature (Guo et al. 2017). A slope
of 1 is a model as sure as it may be, a slope of 0 one whose probabilities say nothing. Without a crowd the data say
nothing of the slope, since any slope explains the model's probabilities equally well; how often crowd and model agree
says all of it.

Given the true class, models and workers err independently of each other. Probabilities of models that err together,
such as of one language model asked twice, are to be averaged and given as those of one.
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from .contract import StoryError

SLOPE = "model_slope"
"""The site of each model's slope."""

START = 0.1
"""Where slopes start: at nearly nothing, so that the crowd says what a model is worth before the model says anything.

From 1 on EM ends, beside a model that is all but certain of everything, in a far worse mode that believes the model.
"""

BIAS = "model_bias"
"""The site of each model's biases, of which only differences between classes matter."""


def model_evidence(annotations: Annotations) -> Array:
    """Sample the models' slopes and biases, and say what their probabilities tell of each task: log-weights ``(N, K)``.

    Args:
        annotations: with probabilities of models.
    """
    n_models = len(annotations.models)
    with numpyro.plate("model", n_models, dim=-1):
        slope = numpyro.sample(SLOPE, dist.Normal(1.0, 1.0), infer={"start": lambda key: jnp.full(n_models, START)})
        biases = dist.Normal(0.0, 2.0).expand((annotations.n_classes,)).to_event(1)
        start = {"start": lambda key: jnp.zeros((n_models, annotations.n_classes))}
        bias = numpyro.sample(BIAS, biases, infer={"event_dims": ["truth"]} | start)
    scores, reference = (jnp.asarray(given) for given in (annotations.model_scores, annotations.model_reference))
    return log_weights(scores, reference, slope, bias)


def log_weights(scores: Array, reference: Array, slope: Array, bias: Array) -> Array:
    """Return the log-weights of each task's classes by the models' probabilities, over all models: ``(N, K)``.

    Args:
        scores: centred log-probabilities, ``(N, M, K)``, NaN where a model has none of a task.
        reference: those of the tasks over which the models' shares of the classes are taken, ``(M, R, K)``, NaN beyond
            their number.
        slope: of each model, ``(M,)``.
        bias: of each model, ``(M, K)``.
    """
    is_given = ~jnp.isnan(scores[..., :1])
    told = tempered(scores, slope, bias) - _log_shares(reference, slope, bias)
    return jnp.where(is_given, told, 0.0).sum(-2)


def tempered(scores: Array, slope: Array, bias: Array) -> Array:
    """The models' log-probabilities at their slopes and biases, ``(..., M, K)``, even where there are none."""
    scores = jnp.where(jnp.isnan(scores), 0.0, scores)
    return jax.nn.log_softmax(slope[:, None] * scores + bias, axis=-1)


def _log_shares(reference: Array, slope: Array, bias: Array) -> Array:
    """The logarithm of each class's share of a model's tempered probabilities, ``(M, K)``."""
    is_given = ~jnp.isnan(reference[..., :1])
    by_task = tempered(reference.swapaxes(0, 1), slope, bias).swapaxes(0, 1)
    return logsumexp(jnp.where(is_given, by_task, -jnp.inf), axis=1) - jnp.log(is_given.sum(1))


def refuse_probabilities(annotations: Annotations, why: str) -> None:
    """Refuse models' probabilities where they cannot be used.

    Raises:
        StoryError: there are some.
    """
    if annotations.model_scores is not None:
        raise StoryError(f"probabilities of the models {list(annotations.models[:5])} are given, {why}; leave them out")
