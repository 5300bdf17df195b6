"""The marginal likelihood of a story: how probable the annotations are by it, its parameters summed out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import gammaln

from ...models.parts.kernels import SMALLEST
from ..densities.enumerated import Parameters
from ..densities.programs import compiled, key_of
from ..densities.sites import parameter_names
from ..fitted.fitted import Fitted
from ..fitted.learned_prior import along_tables, concentrations, tables_of

PROBES = 16  # signs at random by which the sum of curvatures is estimated, at the most, and
PROBED = 16_000  # annotations over all of them: of many annotations few signs are enough


def compared_by(fitted: Fitted) -> tuple[str, ...] | None:
    """Return the parameters that are no tables, which stories that are compared have in common, after an empty name.

    They are those of the true labels' prior, such as a classifier's weights, or none. None where workers or tasks have
    parameters that are no tables, and where questions have classes of their own: of rows that are cut to them the
    likelihood's slopes are no counts.
    """
    if fitted.annotations.kind.own is not None:
        return None
    found = parameter_names(fitted.model, fitted.at_size.annotations)
    others = sorted(set(fitted.draws) - found.tables)
    return None if any({"worker", "task"} & set(found.dims[name]) for name in others) else ("", *others)


class AtMean(NamedTuple):
    """The log-posterior at the mean of the draws, and log-densities there of a table's rows, by the table's name.

    Args:
        height: of the log-posterior, with tables in log-odds.
        posterior: by the Dirichlet distributions that the rows have about.
        prior: by those that they had before.
    """

    height: float
    posterior: dict[str, float]
    prior: dict[str, float]

    @property
    def log_marginal_likelihood(self) -> float:
        r"""About how probable the annotations are by the story, in nats.

        With :math:`f` the height, up to a constant that is the same for all stories, and :math:`\alpha` the slope along
        the logarithms of a row :math:`\theta`, of which the likelihood's is made less by what is missing with what is
        summed out (Louis 1982), the row's posterior is about :math:`\text{Dirichlet}(\alpha)`. So

        .. math:: \log p(y) \approx f(\theta) - \sum_{\text{rows}} \log \text{Dirichlet}(\theta; \alpha)

        (the identity of Chib 1995, with this distribution for his mean over Gibbs draws). Parameters that are no tables
        count by the height of their density there, which stories that have the same ones are compared by.
        """
        return self.height - sum(self.posterior.values())


def log_probabilities_of_parts(found: Sequence[AtMean]) -> np.ndarray:
    """Return about how probable the annotations are by stories that differ by their parts, in nats up to a constant.

    Each is the height of the log-posterior less the prior's log-density of the tables that not all stories have. More
    is summed out with a part, so that counts as they are expected say less of how well its parameters are known: those
    that all have are taken to be known equally well, and others as before.

    Args:
        found: of S stories.

    Returns:
        ``(S,)``.
    """
    common = set.intersection(*(set(one.prior) for one in found))
    return np.array([one.height - sum(one.prior[name] for name in one.prior.keys() - common) for one in found])


def at_mean(fitted: Fitted) -> AtMean:
    """Return heights at the mean of a fit's draws: EM's, where it ended.

    What was learned (:mod:`.learned_prior`) counts as it was before, since then the story had not seen the annotations.
    """
    own = dict(fitted.model.hyperparameters) | fitted.outcome.facts.get("learned", {})
    fitted = fitted.replace(model=replace(fitted.model, hyperparameters=own))
    mean = {name: value.mean((0, 1), keepdims=True) for name, value in fitted.draws.items()}
    seen = fitted.with_draws(mean).at_size
    tables = tables_of(seen)
    probes = int(np.clip(PROBED // seen.annotations.n_rows, 1, PROBES))
    found = _heights(seen, tables, probes)
    densities = AtMean(float(found.height), {}, {})
    for name in tables:
        real = tuple(map(slice, mean[name].shape[2:]))  # what is padded has its prior
        row = np.asarray(seen.draws[name], float)[0, 0][real]
        prior, counts = (np.asarray(each[name], float)[real] for each in (found.prior, found.counts))
        known = 1 - np.clip(float(found.missing[name]) / max(counts.sum(), SMALLEST), 0.0, 1.0)
        densities.prior[name] = _log_density(row, prior)
        densities.posterior[name] = _log_density(row, prior + known * counts)
    return densities


def _log_density(row: np.ndarray, concentration: np.ndarray) -> float:
    """Of Dirichlet distributions, with their variables in log-odds, over rows; what is never given is left out."""
    given = (row > 0) & ~(concentration <= 0)  # what is no number stays so
    row, concentration = np.where(given, row, 1.0), np.where(given, concentration, 0.0)
    of_entries = concentration * np.log(row) - np.where(given, gammaln(np.where(given, concentration, 1.0)), 0.0)
    of_rows = np.where(given.any(-1), gammaln(np.where(given.any(-1), concentration.sum(-1), 1.0)), 0.0)
    return float(of_entries.sum() + of_rows.sum())


class _Heights(NamedTuple):
    """The log-posterior at a point, concentrations of its tables' prior, counts, and how much of these is missing.

    Args:
        height: of the log-posterior.
        prior: concentrations of the tables' prior.
        counts: of what is expected to have been drawn from the tables: slopes of the log-likelihood.
        missing: the sum of the log-likelihood's curvatures along the logarithms of a table's entries: 0 where nothing
            is summed out.
    """

    height: Array
    prior: Parameters
    counts: Parameters
    missing: Parameters


@compiled(once=True, static=("tables", "probes"))
def _heights(fitted: Fitted, tables: tuple[str, ...], probes: int) -> _Heights:
    here = {name: fitted.draws[name][0, 0] for name in tables}
    stays = jax.tree.map(jnp.zeros_like, here)
    slope = jax.grad(partial(along_tables, fitted, tables))

    def probe(key: Array) -> Parameters:
        """Along signs at random, whose products with the curvature have its diagonal as their mean."""
        keys = dict(zip(tables, jax.random.split(key, len(tables)), strict=True))
        signs = {name: jax.random.rademacher(keys[name], here[name].shape, here[name].dtype) for name in tables}
        return {name: (signs[name] * along).sum() for name, along in jax.jvp(slope, (stays,), (signs,))[1].items()}

    missing = jax.tree.map(lambda each: each.mean(0), jax.lax.map(probe, jax.random.split(key_of(0), probes)))
    height = fitted.at(fitted.first_draw).log_posterior_in_log_odds
    return _Heights(height, concentrations(fitted, tables), slope(stays), missing)
