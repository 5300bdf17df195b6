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
from ..densities.model import Model
from ..densities.portable import real_numbers, with_numbers
from ..densities.programs import compiled
from ..densities.sites import parameter_names
from .fitted import Fitted

LEARNED = "learned"
"""The value of a hyperparameter that is to be learned."""

SPREAD = 2.0
"""Standard deviation of the logarithm of such a hyperparameter, around the story's own value or 1."""


def to_learn(story: Story, hyperparameters: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the hyperparameters with values from which those that are :data:`LEARNED` start, and the names of these.

    Args:
        story: whose own values they start from, None among them, by which it takes a number of its own, such as one
            that depends on the number of classes; from 1 where it has none.

    Raises:
        StoryError: one is no real number, by the story's own value or its annotation, or is not positive.
    """
    names = tuple(name for name, value in hyperparameters.items() if isinstance(value, str) and value == LEARNED)
    if not names:
        return dict(hyperparameters), ()
    own, numbers = hyperparameters_of(story), real_numbers(story) - {"truth_prior"}
    start: dict[str, float | None] = {}
    for name in names:
        if name not in numbers:
            known = f"one of {listing(sorted(numbers), 5)}" if numbers else "and the story has none"
            raise StoryError(f"{name}={LEARNED!r}: only a real number is learned, {known}")
        value = start[name] = own[name] if isinstance(own[name], float | int | None) else 1.0
        if value is not None and value <= 0:
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
    Rows are independent in it: what the rows of one worker have in common is left out, so that workers of many classes
    are taken for more alike than they are (of three classes 90 % intervals of accuracies between .6 and .95 held half).

    Args:
        fitted: by EM, with the values :math:`h_0`.

    Raises:
        StoryError: none of the story's tables has a prior that depends on one of them, or questions have classes of
            their own, of which a fit has no counts.
    """
    from scipy.optimize import minimize  # a third of a second to import

    if fitted.annotations.kind.own is not None:
        raise StoryError(f"{names[0]}={LEARNED!r}: questions have classes of their own, for which none is learned")
    seen = fitted.at_size
    tables = tables_of(seen)

    def cut(found: Parameters) -> dict[str, np.ndarray]:
        """Without what is padded."""
        real = {name: tuple(map(slice, fitted.draws[name].shape[2:])) for name in found}
        return {name: np.asarray(value, float)[real[name]] for name, value in found.items()}

    counts = cut(_counts(seen, tables=tables))

    def by(model: Model, values: dict[str, Any]) -> dict[str, np.ndarray]:
        by_them = replace(model, hyperparameters=dict(model.hyperparameters) | values)
        return cut(_concentrations(seen.replace(model=by_them), tables=tables))

    def number(name: str) -> float:
        """The one that the story takes, of None as its tables tell: their entries that double with it are that."""
        if (value := fitted.model.hyperparameters[name]) is not None:
            return float(value)
        own, one, two = (np.hstack([x.ravel() for x in by(fitted.model, {name: v}).values()]) for v in (None, 1.0, 2.0))
        doubles = np.isclose(two, 2 * one)
        return float(np.median(own[doubles] / one[doubles])) if doubles.any() else 1.0

    own = {name: number(name) for name in names}
    model = with_numbers(
        replace(fitted.model, hyperparameters=dict(fitted.model.hyperparameters) | own), seen.annotations
    )
    start = np.log(list(own.values()))

    def rows(logs: np.ndarray) -> dict[str, np.ndarray]:
        return by(model, dict(zip(names, np.exp(logs), strict=True)))

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
