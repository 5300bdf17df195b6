r"""Power-scaling: change of a posterior as its prior, or its likelihood, is raised to a power.

With :math:`p_\alpha(\theta \mid y) \propto p(\theta)^{\alpha} \, p(y \mid \theta)` the draws of the posterior get the
weights :math:`p(\theta)^{\alpha - 1}`, so that nothing is fitted again (Kallioinen, Paananen, Bürkner & Vehtari 2023,
"Detecting and diagnosing prior and likelihood sensitivity with power-scaling").
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from scipy.special import rel_entr

from ...data.arrays import counts
from ...data.errors import real_number
from ..densities.enumerated import Parameters
from ..densities.prior import log_prior_to_scale
from ..densities.programs import compiled
from ..fitted.confusion_scores import accuracy
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior, fitted_of

DELTA = 0.01  # the power's distance from 1
THRESHOLD = 0.05  # from which a quantity is sensitive
MOST_DRAWS = 2000
SHUFFLES = 8  # of the draws, for the noise
CONFLICT, STRONG_PRIOR, NOTHING = "prior-data conflict", "strong prior / weak likelihood", "-"


class Components(NamedTuple):
    """Quantities of each draw, and the log-densities that are scaled."""

    label_share: np.ndarray  # (S, K)
    prior: np.ndarray  # (S,) log-density of all parameters
    likelihood: np.ndarray  # (S,) log-likelihood of all annotations
    accuracy: np.ndarray | None = None  # (S, J)
    prior_by_worker: np.ndarray | None = None  # (S, J) log-density of what each worker has of the parameters
    likelihood_by_worker: np.ndarray | None = None  # (S, J) expected log-probability of the worker's annotations


def prior_sensitivity(fit: Posterior | Fitted, *, threshold: float = THRESHOLD, seed: int = 0) -> pd.DataFrame:
    r"""Measure the sensitivity of accuracies, prevalence and label shares to the prior and to the likelihood.

    The sensitivity is the slope, in :math:`\log_2 \alpha` at :math:`\alpha = 1`, of the distance between the posterior
    and the posterior whose prior (or likelihood) is raised to the power :math:`\alpha`. The distance is the root of the
    cumulative Jensen–Shannon divergence between the two distribution functions, as a share of its bound. For a worker's
    accuracy, only the worker's own part is scaled: the prior of the worker's own parameters, or the worker's own
    annotations. For prevalence and label shares, the whole prior or likelihood is scaled. (Where no parameter is by
    worker, all of the prior is scaled for accuracies too.)

    The power of a Dirichlet prior multiplies its concentrations (:func:`.log_prior_to_scale`), as the power of a
    likelihood multiplies the annotations. ``fit.idata`` has the densities on the simplex, for ArviZ's ``psens``.

    Where prior and likelihood both matter, they pull in different directions, or are about as strong: prior-data
    conflict. Where the prior matters and the likelihood does not, the annotations say little. A quantity counts as
    sensitive where its sensitivity exceeds the threshold and twice its noise. The noise is the mean sensitivity of
    shuffled draws, which depend on nothing: with many parameters and few draws the estimate is noisy.

    Example:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia")
        >>> fit = cp.fit("dawid_skene", annotations, method="svi", draws=400, progress=False)
        >>> list(cp.prior_sensitivity(fit))
        ['prior', 'likelihood', 'prior_noise', 'likelihood_noise', 'diagnosis']

    Args:
        fit: a fit that has draws; those of SVI stand for the posterior that they approximate.
        threshold: from which a quantity counts as sensitive; 0.05 is the authors'.
        seed: of the shuffles.

    Returns:
        By ``quantity`` ("accuracy", "prevalence", "label_share") and ``of`` (the worker or the class): ``prior``,
        ``likelihood``, ``prior_noise``, ``likelihood_noise``, and ``diagnosis``, which is "prior-data conflict",
        "strong prior / weak likelihood" or "-". Quantities that do not vary have NaN and "-".

    Raises:
        TypeError: `fit` is no fit.
        ValueError: the fit is a point, or `threshold` is not positive.
    """
    fitted = fitted_of(fit)
    threshold = real_number("threshold", threshold, above=0)
    if not fitted.has_draws:
        raise ValueError(
            f"the fit by {fitted.method} is one point, and power-scaling weighs draws of the posterior; fit with "
            "method='svi' or method='nuts'"
        )
    some = fitted.thinned(min(int(np.prod(fitted.shape)), MOST_DRAWS))
    of = components(some)
    workers, classes = fitted.annotations.workers, fitted.annotations.classes
    rng = np.random.default_rng(seed)
    frames = []
    if of.accuracy is not None and of.likelihood_by_worker is not None:
        prior = of.prior[:, None] if of.prior_by_worker is None else of.prior_by_worker
        frames.append(_rows("accuracy", list(workers), of.accuracy, prior, of.likelihood_by_worker, rng))
    whole = of.prior[:, None], of.likelihood[:, None]
    prevalence = some.draws_of("prevalence")
    if prevalence is not None and prevalence.ndim == 3:
        frames.append(_rows("prevalence", list(classes), prevalence[0], *whole, rng))
    frames.append(_rows("label_share", list(classes), of.label_share, *whole, rng))
    frame = pd.concat(frames)
    return frame.assign(diagnosis=_diagnosis(frame, threshold))


def components(fitted: Fitted) -> Components:
    """Return the quantities and the scaled log-densities in each draw of a fit with one chain."""
    data = fitted.data.replace(count=counts(fitted.annotations))
    found = {name: np.asarray(value, dtype=float)[0] for name, value in _components(fitted.with_data(data)).items()}
    if data.named:
        found["accuracy"] = accuracy(fitted.confusion_draws, fitted.posterior.mean(0))[0]
    return Components(**found)


@compiled(once=True)
def _components(fitted: Fitted) -> dict[str, Array]:
    """Return the arrays of :class:`Components` by name, with a dimension for the only chain."""
    data = fitted.annotations
    own_counts = jnp.asarray(data.count)

    def of_draw(draw: Parameters) -> dict[str, Array]:
        at, parameters = fitted.at(draw), draw | fitted.fixed
        prior, prior_by_worker = log_prior_to_scale(fitted.model, parameters, data)
        found = {"label_share": at.posterior.mean(0), "prior": prior, "likelihood": at.total}
        if not data.named:
            return found

        def scaled(count: Array) -> Array:
            return fitted.with_data(data.replace(count=count)).at(draw).total

        slope = jax.grad(scaled)(own_counts) * own_counts  # of the worker's annotations' power
        found["likelihood_by_worker"] = jax.ops.segment_sum(slope, jnp.asarray(data.worker), data.n_workers)
        return found if prior_by_worker is None else found | {"prior_by_worker": prior_by_worker}

    return fitted.over_draws(of_draw)


def sensitivity(values: np.ndarray, log_weights: np.ndarray, delta: float = DELTA) -> np.ndarray:
    r"""Return the sensitivity ``(Q,)`` of each quantity's distribution to the power of a component of its density.

    .. math::
        \frac{D(1 + \delta) + D(1 / (1 + \delta))}{2 \log_2 (1 + \delta)}

    with :math:`D(\alpha)` the distance of :func:`distance` between draws with and without the weights
    :math:`f^{\alpha - 1}`.

    Args:
        values: draws of the quantities, ``(S, Q)``.
        log_weights: :math:`\log f` in each draw, ``(S, Q)`` or ``(S, 1)``.
        delta: how far the powers lie from 1.
    """
    centred = log_weights - log_weights.mean(0)
    found = [_largest_distance(values, np.exp((power - 1) * centred)) for power in (1 + delta, 1 / (1 + delta))]
    return sum(found) / (2 * np.log2(1 + delta))


def distance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""The root of the cumulative Jensen–Shannon divergence between draws and the same draws with weights: ``(Q,)``.

    .. math::
        \mathrm{CJS}(P, Q) = \int P \log_2 \frac{2 P}{P + Q} + Q \log_2 \frac{2 Q}{P + Q}

    of the two distribution functions, as a share of its upper bound :math:`\int P + Q` (Nguyen & Vreeken 2015), both
    from the smallest to the largest draw.

    Args:
        values: ``(S, Q)``.
        weights: positive, ``(S, Q)``.
    """
    order = np.argsort(values, axis=0, kind="stable")
    width = np.diff(np.take_along_axis(values, order, 0), axis=0)
    total = np.take_along_axis(weights, order, 0).cumsum(0)
    plain = np.arange(1, len(values))[:, None] / len(values)
    weighted = total[:-1] / total[-1]
    middle = (plain + weighted) / 2
    terms = (rel_entr(plain, middle) + rel_entr(weighted, middle)) / np.log(2)
    bound = (width * (plain + weighted)).sum(0)
    with np.errstate(invalid="ignore"):  # a quantity that does not vary
        return np.sqrt(np.maximum((width * terms).sum(0), 0.0) / bound)


def _largest_distance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The larger distance of the two orders, from below and from above, in which a distribution function sums up."""
    weights = np.broadcast_to(weights, values.shape)
    return np.maximum(distance(values, weights), distance(-values, weights))


def _rows(
    quantity: str, names: list, values: np.ndarray, prior: np.ndarray, likelihood: np.ndarray, rng: np.random.Generator
) -> pd.DataFrame:
    """Sensitivities of a quantity to both, and their noise, by name."""
    found = {"prior": sensitivity(values, prior), "likelihood": sensitivity(values, likelihood)}
    for name, component in (("prior_noise", prior), ("likelihood_noise", likelihood)):
        shuffled = [sensitivity(values, component[rng.permutation(len(component))]) for _ in range(SHUFFLES)]
        found[name] = 2 * np.mean(shuffled, axis=0)
    of = pd.Index(names, dtype=object)
    index = pd.MultiIndex.from_arrays([[quantity] * len(names), of], names=["quantity", "of"])
    return pd.DataFrame(found, index=index)


def _diagnosis(frame: pd.DataFrame, threshold: float) -> np.ndarray:
    prior, likelihood = (
        frame[name] >= np.maximum(frame[f"{name}_noise"], threshold) for name in ("prior", "likelihood")
    )
    return np.select([prior & likelihood, prior], [CONFLICT, STRONG_PRIOR], NOTHING)
