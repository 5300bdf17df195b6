"""Weights of several stories for their average."""

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..densities.model import Model
from ..fitted.fitted import Fitted
from .marginal_likelihood import at_mean, compared_by, log_probabilities_of_parts

LEAST = 0.005  # weights below it are 0
BY_PROBABILITY = 0.5  # part of the weight that is by how probable the annotations are by each story
RESAMPLES = 1000  # of the Bayesian bootstrap
BLOCKS = 20_000  # units at the most for the Bayesian bootstrap; of more, adjacent ones are summed
AT_A_TIME = 100  # resamples that are held in memory


def weights_by_probability(fits: Mapping[str, Fitted], shares: Mapping[str, float]) -> pd.Series:
    r"""Weights of stories by how probable the annotations are by each, of which a part is kept for any story.

    Stories of which one is another with a part over it, such as errors that workers share, are a family. They divide
    its weight in proportion to their shares without a look at the annotations, times how probable the annotations are
    with and without the part (:func:`.log_probabilities_of_parts`): it has parameters of its own, whose prior costs it
    more than it gains where the annotations do not ask for it.

    Families f are compared by how probable the annotations are by their plain stories, :math:`\exp(m_f)`
    (:attr:`.AtMean.log_marginal_likelihood`). This tells little of a crowd that asks for a part, which other families
    may lack; and no story is true, so that of many annotations the labels of one alone would be too sure where others
    had differed. So of families that can be compared, with shares :math:`w_f` that sum to 1, :math:`p_f` the weight of
    parts in the family times its share of the families with parts, and :math:`\lambda` of :data:`BY_PROBABILITY`, each
    has

    .. math:: (1 - \lambda) w_f + \lambda \Big(p_f + \big(1 - \sum_g p_g\big)
        \frac{w_f \exp(m_f)}{\sum_g w_g \exp(m_g)}\Big)

    of the sum of their shares. The others keep their share.

    Args:
        fits: by name.
        shares: of each story without a look at the annotations, by name.

    Returns:
        by name; they sum to 1, and those below :data:`LEAST` are 0.
    """
    families: dict[Model, dict[str, Fitted]] = {}
    for name, fitted in fits.items():
        families.setdefault(fitted.model.plain or fitted.model, {})[name] = fitted
    heights = {name: at_mean(fitted) for name, fitted in fits.items()}
    compared: dict[Hashable, list[dict[str, Fitted]]] = {}
    for model, family in families.items():
        plain = _plain(family)
        is_known = np.isfinite(heights[plain].log_marginal_likelihood)
        compared.setdefault((compared_by(fits[plain]) if is_known else None) or model, []).append(family)
    found: dict[str, float] = {}
    for group in compared.values():
        share = np.array([sum(shares[name] for name in family) for family in group])
        of_parts = [log_probabilities_of_parts([heights[name] for name in family]) for family in group]
        within = [_proportional([shares[name] for name in one], log) for one, log in zip(group, of_parts, strict=True)]
        has_part = [[fit.model.plain is not None for fit in family.values()] for family in group]
        weight_of_parts = [weight[has].sum() for weight, has in zip(within, has_part, strict=True)]
        of_all = share * list(map(any, has_part))
        asked = np.array(weight_of_parts) * of_all / max(of_all.sum(), share.min())
        log = [heights[_plain(family)].log_marginal_likelihood if len(group) > 1 else 0.0 for family in group]
        by_probability = asked + (1 - asked.sum()) * _proportional(share, log)
        of_family = (1 - BY_PROBABILITY) * share + BY_PROBABILITY * share.sum() * by_probability
        for family, weight, own in zip(group, within, of_family, strict=True):
            found |= dict(zip(family, own * weight, strict=True))
    of_each = pd.Series(found)[list(fits)].rename_axis("story").rename("weight")
    of_each = of_each.where(of_each >= LEAST * of_each.sum(), 0.0)
    return of_each / of_each.sum()


def weights_by_likelihood(fits: Mapping[str, Fitted], shares: Mapping[str, float]) -> pd.Series:
    r"""Weights of stories with about as many parameters as each other, by the likelihood of the annotations.

    .. math:: w_m \propto s_m \exp\Big(\frac1S \sum_s \log p(y \mid \theta_{ms})\Big)

    over the draws of the fit of m, or at its mode; the truth is summed out.

    Args:
        fits: by name.
        shares: :math:`s`, of each story without a look at the annotations, by name.

    Returns:
        by name; they sum to 1, and those below :data:`LEAST` are 0.
    """
    log = [fit.log_likelihood().sum(-1, dtype=float).mean() for fit in fits.values()]
    names = pd.Index(list(fits), name="story")
    of_each = pd.Series(_proportional([shares[name] for name in fits], log), names, name="weight")
    of_each = of_each.where(of_each >= LEAST, 0.0)
    return of_each / of_each.sum()


def _plain(family: Mapping[str, Fitted]) -> str:
    """The name of the story without a part, or the first where each has one."""
    return min(family, key=lambda name: family[name].model.plain is not None)


def _proportional(shares: ArrayLike, log: ArrayLike) -> np.ndarray:
    """Return numbers that sum to 1, in proportion to shares times the exponentials of others."""
    weight = np.asarray(shares) * np.exp(log - np.max(log))
    return np.asarray(weight / weight.sum())


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
