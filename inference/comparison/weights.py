"""Weights of several stories for their average."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..densities.model import Model
from ..fitted.fitted import Fitted, log_posterior_at_mean

LEAST = 0.005  # weights below it are 0
RESAMPLES = 1000  # of the Bayesian bootstrap
BLOCKS = 20_000  # units at the most for the Bayesian bootstrap; of more, adjacent ones are summed
AT_A_TIME = 100  # resamples that are held in memory


def weights_of_parts(fits: Mapping[str, Fitted], shares: Mapping[str, float]) -> pd.Series:
    r"""Weights of stories, some of which are others with a part over them, such as errors that workers share.

    Stories that differ by their parts alone share the sum of their shares :math:`s_m` by how high their log-posteriors
    :math:`f_m` are, with probability tables in log-odds:

    .. math:: w_m \propto s_m \exp(f_m)

    A part has parameters of its own, whose prior costs it more than it gains where the annotations do not ask for it.
    This is a rough measure of the evidence: heights are compared, not masses. Those of stories with other parameters
    are not comparable at all, so that each keeps its share.

    Args:
        fits: by name.
        shares: of each story without a look at the annotations, by name.

    Returns:
        by name; they sum to 1, and those below :data:`LEAST` are 0.
    """
    families: dict[Model, list[str]] = {}
    for name, fitted in fits.items():
        families.setdefault(fitted.model.plain or fitted.model, []).append(name)
    found: dict[str, float] = {}
    for names in families.values():
        share = np.array([shares[name] for name in names])
        height = np.array([log_posterior_at_mean(fits[name]) if len(names) > 1 else 0.0 for name in names])
        weight = share * np.exp(height - height.max())
        found |= dict(zip(names, weight / weight.sum() * share.sum(), strict=True))
    weight = np.array([found[name] for name in fits])
    weight = np.where(weight < LEAST * weight.sum(), 0.0, weight)
    return pd.Series(weight / weight.sum(), pd.Index(list(fits), name="story"), name="weight")


def stacking_weights(values: np.ndarray) -> np.ndarray:
    r"""Stacking weights: those of the mixture of stories that predicts held-out units best.

    .. math:: \arg\max_w \sum_u \log \sum_m w_m \exp(\text{elpd}_{um})

    (Yao, Vehtari, Simpson & Gelman 2018, eq. 5.) They are sought as ArviZ does, which takes seconds to import.

    Args:
        values: log-probability of each held-out unit by each story, in nats, ``(U, M)``.

    Returns:
        ``(M,)``, with sum 1.
    """
    from scipy.optimize import Bounds, LinearConstraint, minimize  # a third of a second to import

    density = np.exp(values - values.max(1, keepdims=True))  # else that of a large task is 0
    n_stories = density.shape[1]
    with np.errstate(divide="ignore"):  # on the way there, a task may have the density 0
        found = minimize(
            lambda weights: -np.log(density @ weights).sum(),
            np.full(n_stories, 1 / n_stories),
            jac=lambda weights: -(1 / (density @ weights)) @ density,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.ones(n_stories), 1, 1),
        ).x
    found = np.clip(found, 0.0, None)  # the optimiser ends within rounding of 0
    return np.asarray(found / found.sum())


def pseudo_bma_weights(values: np.ndarray, seed: int = 0) -> np.ndarray:
    r"""Pseudo-BMA weights with the Bayesian bootstrap over units (Yao et al. 2018, section 3.4).

    .. math:: w_m = E_b \frac{\exp(U \sum_u b_u \text{elpd}_{um})}{\sum_{m'} \exp(U \sum_u b_u \text{elpd}_{um'})},
        \qquad b \sim \text{Dirichlet}(1, \dots, 1)

    Args:
        values: log-probability of each held-out unit by each story, in nats, ``(U, M)``.
        seed: of the bootstrap.

    Returns:
        ``(M,)``, with sum 1.
    """
    values = values - values.mean(1, keepdims=True)
    if len(values) > BLOCKS:
        values = np.add.reduceat(values, np.linspace(0, len(values), BLOCKS, endpoint=False).astype(int))
    rng, total = np.random.default_rng(seed), np.zeros(values.shape[1])
    for _ in range(RESAMPLES // AT_A_TIME):
        b = rng.dirichlet(np.ones(len(values)), AT_A_TIME)
        elpd = len(values) * b @ values
        weights = np.exp(elpd - elpd.max(1, keepdims=True))
        total += (weights / weights.sum(1, keepdims=True)).sum(0)
    return total / total.sum()
