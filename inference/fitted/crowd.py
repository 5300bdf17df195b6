"""The crowd's tables at their mean over the draws, whether its workers are named or not."""

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations, Ids
from ..densities.enumerated import Parameters, density
from ..densities.model import Model

if TYPE_CHECKING:
    from ..results import Fit

MOST_DRAWS = 500  # whose truths are drawn, for an interval


def mean_confusions(fit: "Fit") -> np.ndarray:
    """Each worker's confusion matrix, averaged over the draws: ``(J, K, L)``.

    Where no worker is named there is one table, of everyone: ``(1, K, L)``.
    """
    data = fit.annotations.replace(gold=None)
    of = data if data.named else data.replace(worker=np.zeros(data.n_rows, np.int32), workers=Ids.range(1))
    return np.asarray(_mean_confusions(fit.model, data, of, fit.outcome.draws, fit.outcome.fixed), dtype=float)


def agreement(fit: "Fit") -> np.ndarray:
    r"""The expected share of each worker's annotations that equal the truth: ``(J,)``, NaN for a worker without annotations.

    .. math:: \frac{1}{n_j} \sum_{a \in j} P(z_{i_a} = y_a \mid y)
    """
    annotations = fit.annotations
    right = fit.posterior.astype(float)[annotations.task, annotations.label]
    weight = 1.0 if annotations.count is None else np.asarray(annotations.count)
    asked = _asked(annotations)
    return np.bincount(np.asarray(annotations.worker), right * weight, annotations.n_workers) / asked


def agreement_draws(fit: "Fit", n: int = MOST_DRAWS, seed: int = 0) -> np.ndarray:
    """That share itself, at truths drawn from the posterior: ``(draw, J)``.

    Args:
        fit: whose workers are named.
        n: draws of the parameters at the most, each with its own truths.
        seed: of the truths.
    """
    chains, draws = next(iter(fit.outcome.draws.values())).shape[:2]
    n = min(chains * draws, n)
    data = jax.tree.map(jnp.asarray, fit.annotations.replace(gold=None))
    keys = jax.random.split(jax.random.key(seed), n)
    right = _agreements(fit.model, data, thinned(fit, n), fit.outcome.fixed, keys)
    return np.asarray(right, dtype=float) / _asked(fit.annotations)


def thinned(fit: "Fit", n: int) -> Parameters:
    """``n`` of the fit's draws, evenly spaced over all chains, ``(n, ...)`` each; again and again where there are less.

    What is drawn beside them, such as replicated annotations, is then new each time.
    """
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in fit.outcome.draws.items()}
    total = len(next(iter(flat.values())))
    chosen = np.linspace(0, total - 1, n).round().astype(int) if n <= total else np.arange(n) % total
    return {name: value[chosen] for name, value in flat.items()}


def one_row_an_annotation(annotations: Annotations) -> Annotations:
    """The same annotations without counts: a row that stands for several annotations comes as often."""
    if annotations.count is None:
        return annotations
    times = np.asarray(annotations.count).astype(np.int64)
    rows = {name: getattr(annotations, name) for name in ("task", "worker", "label", "seconds")}
    repeated = {name: None if value is None else np.repeat(value, times) for name, value in rows.items()}
    return annotations.replace(count=None, **repeated)


def annotations_by_worker(annotations: Annotations) -> np.ndarray:
    """How many annotations each worker gave, ``(J,)``."""
    return np.bincount(np.asarray(annotations.worker), annotations.count, annotations.n_workers)


def _asked(annotations: Annotations) -> np.ndarray:
    answers = annotations_by_worker(annotations)
    return np.where(answers > 0, answers, np.nan)


@partial(jax.jit, static_argnames="model")
def _mean_confusions(model: Model, data: Annotations, of: Annotations, draws: Parameters, fixed: Parameters) -> Array:
    flat = jax.tree.map(lambda value: jnp.reshape(value, (-1, *value.shape[2:])), draws)

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return total + density(model, draw | fixed, data).responses.emission.confusions(of), None

    zero = jnp.zeros((of.n_workers, of.n_classes, of.n_classes))
    total, _ = jax.lax.scan(add, zero, flat)
    return total / len(next(iter(flat.values())))


@partial(jax.jit, static_argnames="model")
def _agreements(model: Model, data: Annotations, draws: Parameters, fixed: Parameters, keys: Array) -> Array:
    def of_draw(draw_and_key: tuple[Parameters, Array]) -> Array:
        draw, key = draw_and_key
        truth = jax.random.categorical(key, density(model, draw | fixed, data).log_joint)
        right = (truth[data.task] == data.label).astype(float)
        weighted = right if data.count is None else right * data.count
        return jax.ops.segment_sum(weighted, jnp.asarray(data.worker), data.n_workers)

    return jax.lax.map(of_draw, (draws, keys))
