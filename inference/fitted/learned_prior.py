"""Hyperparameters that are learned: those by which the counts of a fit are the most probable."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import gammaln

from ...data.id_text import listing
from ...models import Story, StoryError
from ...models.parts.general import hyperparameters_of
from ..densities.enumerated import Parameters
from ..densities.portable import real_numbers
from ..densities.programs import compiled
from ..densities.sites import parameter_names
from .fitted import Fitted

LEARNED = "learned"
"""The value of a hyperparameter that is to be learned."""

SPREAD = 2.0
"""Standard deviation of the logarithm of such a hyperparameter, around the story's own value or 1."""


def to_learn(story: Story, hyperparameters: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the hyperparameters with numbers from which those that are :data:`LEARNED` start, and the names of these.

    Args:
        story: whose own values they start from; from 1 where it has none.

    Raises:
        StoryError: one is no real number, by the story's own value or its annotation, or is not positive.
    """
    names = tuple(name for name, value in hyperparameters.items() if isinstance(value, str) and value == LEARNED)
    own, numbers = hyperparameters_of(story), real_numbers(story) - {"truth_prior"}
    start: dict[str, float] = {}
    for name in names:
        if name not in numbers:
            known = f"one of {listing(sorted(numbers), 5)}" if numbers else "and the story has none"
            raise StoryError(f"{name}={LEARNED!r}: only a real number is learned, {known}")
        start[name] = float(own[name]) if isinstance(own[name], float | int) else 1.0
        if start[name] <= 0:
            raise StoryError(f"{name}={LEARNED!r}: only a positive number is learned, and it is {own[name]} by default")
    return dict(hyperparameters) | start, names


def learned_prior(fitted: Fitted, names: Sequence[str]) -> dict[str, float]:
    r"""Return values of a story's hyperparameters by which the annotations are about the most probable, to four digits.

    With the counts n of what is expected to have been drawn from each row of the story's probability tables, and the
    concentrations :math:`\alpha(h)` of its prior, they maximise

    .. math:: \sum_{\text{rows}} \log \text{DirichletMultinomial}(n; \alpha(h))
        + \sum_h \log \text{LogNormal}(h; \log h_0, \sigma)

    with :math:`h_0` the values of the fit and :math:`\sigma` of :data:`SPREAD`, without which the prior of workers who
    are all alike would have no end. This is empirical Bayes (Robbins 1956) with the labels as they are expected.

    Args:
        fitted: by EM, with the values :math:`h_0`.

    Raises:
        StoryError: none of the story's tables has a prior that depends on one of them, or questions have classes of
            their own, of which a fit has no counts.
    """
    from scipy.optimize import minimize  # a third of a second to import

    model = fitted.model
    if fitted.annotations.kind.own is not None:
        raise StoryError(f"{names[0]}={LEARNED!r}: questions have classes of their own, for which none is learned")
    seen = fitted.at_size
    tables = tables_of(seen)

    def cut(found: Parameters) -> dict[str, np.ndarray]:
        """Without what is padded."""
        real = {name: tuple(map(slice, fitted.draws[name].shape[2:])) for name in found}
        return {name: np.asarray(value, float)[real[name]] for name, value in found.items()}

    counts = cut(_counts(seen, tables=tables))

    def rows(logs: np.ndarray) -> dict[str, np.ndarray]:
        values = dict(zip(names, np.exp(logs), strict=True))
        by_them = replace(model, hyperparameters=dict(model.hyperparameters) | values)
        return cut(_concentrations(seen.replace(model=by_them), tables=tables))

    start = np.log([model.hyperparameters[name] for name in names])
    for name, moved in zip(names, start + np.log(2) * np.eye(len(names)), strict=True):
        if all(np.allclose(rows(moved)[table], value) for table, value in rows(start).items()):
            raise StoryError(f"{name}={LEARNED!r}: {name} is in the prior of no table of probabilities; give a number")

    def depth(logs: np.ndarray) -> float:
        of_tables = sum(_log_probability(counts[name], value) for name, value in rows(logs).items())
        return float((((logs - start) / SPREAD) ** 2).sum() / 2 - of_tables)

    ends = [minimize(depth, start + stronger, method="Nelder-Mead") for stronger in (0.0, 2.0)]
    best = min(ends, key=lambda end: end.fun)
    return {name: float(f"{value:.4g}") for name, value in zip(names, np.exp(best.x), strict=True)}


def _log_probability(counts: np.ndarray, concentration: np.ndarray) -> float:
    """Of counts in rows by Dirichlet-multinomial distributions."""
    of_entries = gammaln(concentration + counts) - gammaln(concentration)
    total, n = concentration.sum(-1), counts.sum(-1)
    return float((gammaln(total) - gammaln(total + n)).sum() + of_entries.sum())


@compiled(once=True, static=("tables",))
def _counts(fitted: Fitted, tables: tuple[str, ...]) -> Parameters:
    stays = {name: jnp.zeros_like(fitted.draws[name][0, 0]) for name in tables}
    return jax.grad(partial(along_tables, fitted, tables))(stays)


@compiled(once=True, static=("tables",))
def _concentrations(fitted: Fitted, tables: tuple[str, ...]) -> Parameters:
    return concentrations(fitted, tables)


def tables_of(fitted: Fitted) -> tuple[str, ...]:
    """Names of the parameters of a fit that are tables of probabilities."""
    return tuple(sorted(parameter_names(fitted.model, fitted.annotations).tables & set(fitted.draws)))


def along_tables(fitted: Fitted, tables: Sequence[str], moves: Parameters) -> Array:
    """The log-likelihood at a fit's first draw, with the logarithms of its tables moved: an entry of 0 stays one."""
    own = fitted.first_draw
    at = fitted.at(own | {name: own[name] * jnp.exp(moves[name]) for name in tables})
    return at.log_posterior_in_log_odds - at.log_prior_in_log_odds


def concentrations(fitted: Fitted, tables: Sequence[str]) -> Parameters:
    """Concentrations of the prior of a fit's tables."""
    own = fitted.first_draw
    here = {name: own[name] for name in tables}
    slope = jax.grad(lambda moved: fitted.at(own | moved).log_prior_in_log_odds)(here)
    return {name: here[name] * value for name, value in slope.items()}
