r"""Draws in one common order of the groups of workers, the subtypes of a class, and the classes.

Where a story's density does not depend on the order of its groups, each draw may come in another order, and averages
over draws mean nothing (label switching). The draws :math:`\theta^{(s)}` are brought into the order that is nearest to
their common mean,

.. math::
    \pi_s = \arg\max_\pi \sum_{\text{site}} \frac{1}{v} \sum_m \theta^{(s)}_{\pi(m)} \cdot \bar\theta_m, \qquad
    \bar\theta_m = \frac{1}{S} \sum_s \theta^{(s)}_{\pi_s(m)},

in turns until no draw moves (Stephens 2000, algorithm 1 with squared distances; the best order by the Hungarian
method); :math:`v` is the number of the site's entries times their variance, so that every site counts as much.
"""

from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .fitted import Fitted, label_posteriors

Draws = Mapping[str, np.ndarray]  # by site, (chain, draw, ...)

EXCHANGEABLE: dict[str, str | None] = {"group": None, "subtype": "class"}
"""Dimensions that draws may have in any order, and within which other dimension the order is free."""

PERMUTED = "classes_permuted"
"""Key in a fit's origin for the permuted chains and the names that they gave to the classes."""

SAME_DENSITY = 1e-4  # relative difference of two log-densities that float32 may make of one
AMBIGUOUS = 0.5  # a draw is ambiguous whose best order leads the second best by less than this share of the usual
MOST_AMBIGUOUS = 0.1  # share of ambiguous draws from which a user should know
ITERATIONS = 20
TIE = 1e-4  # of the tasks' number: what classes that nearly no task has may gain by an exchange
LOOKED_AT = 50  # draws of a chain from which its order of the classes is found


def aligned(fitted: Fitted) -> Fitted:
    """Return the fit with its draws in one order; the outcome's facts have ``ambiguous`` groups and subtypes.

    These are the dimension, the class within which its order is free, and the share of ambiguous draws.

    Chains that permute the classes are brought to the order of the chain whose labels agree most with the votes, where
    the density is the same in both orders, and the fit's origin says so (:data:`PERMUTED`). So are the ends of several
    starts of EM. Then the dimensions of :data:`EXCHANGEABLE` are put in order, if the density is the same in every
    order.
    """
    dims = fitted.dims
    fitted = _one_name_of_classes(fitted) if not fitted.outcome.ends else _one_name_at_the_ends(fitted)
    ambiguous: list[tuple[str, object, float]] = []
    for dim, within in EXCHANGEABLE.items():
        draws = fitted.draws
        sites = [name for name in draws if dim in dims[name]]
        if not sites:
            continue
        within = within if all(within in dims[name] for name in sites) else None
        blocks = {name: _as_blocks(draws[name], dims[name], dim, within) for name in sites}
        chains, length, n_within, size = next(iter(blocks.values())).shape[:4]
        if chains * length == 1 or size == 1:
            continue
        if not _is_exchangeable(fitted, sites, dim, within, size):
            continue
        flat = {name: block.reshape(chains * length, n_within, size, -1) for name, block in blocks.items()}
        order, lead = _common_order(flat)
        fitted = fitted.with_draws(
            draws
            | {
                name: _permuted(draws[name], dims[name], dim, within, order.reshape(chains, length, n_within, size))
                for name in sites
            }
        )
        names = list(fitted.annotations.classes) if within == "class" else [None] * n_within
        ambiguous += ((dim, *of_class) for of_class in _ambiguities(lead, names))
    facts = {"ambiguous": ambiguous} if ambiguous else {}
    return fitted.replace(outcome=fitted.outcome._replace(facts={**fitted.outcome.facts, **facts}))


def _one_name_at_the_ends(fitted: Fitted) -> Fitted:
    """Return the same, ends of EM's starts that permute the classes permuted back where the density allows it."""
    if fitted.fixed:  # a network's weights, which tell the classes apart
        return fitted
    ends = fitted.outcome.ends
    kept = kept_end(fitted)
    chains = fitted.with_draws({name: np.stack([end[name] for end in ends])[:, None] for name in fitted.draws})
    found = _one_name_of_classes(chains, "start")
    own = fitted.with_draws({name: value[kept : kept + 1] for name, value in found.draws.items()})
    named = tuple({name: value[i, 0] for name, value in found.draws.items()} for i in range(len(ends)))
    return own.replace(outcome=own.outcome._replace(ends=named), origin=found.origin)


def kept_end(fitted: Fitted) -> int:
    """Return the position of the fit among EM's starts."""
    draws = fitted.draws
    same = ([np.array_equal(end[name], draws[name][0, 0]) for name in draws] for end in fitted.outcome.ends)
    return next(i for i, found in enumerate(same) if all(found))


def _one_name_of_classes(fitted: Fitted, chain_is: str = "chain") -> Fitted:
    """Return the same, chains that permute the classes permuted back where the density allows it."""
    draws, dims = fitted.draws, fitted.dims
    sites = {name: dim for name in draws for dim in ("class", "truth") if dim in dims[name]}
    n_chains, n_draws = fitted.shape
    if n_chains == 1 or not sites:
        return fitted
    step = max(n_draws // LOOKED_AT, 1)
    few = fitted.with_draws({name: value[:, ::step] for name, value in draws.items()})
    _, matches = permutations(label_posteriors(few), fitted.annotations.votes())
    said = []
    for chain, match in matches.items():
        own = {name: value[chain : chain + 1] for name, value in draws.items()}
        order = np.broadcast_to(match, (1, n_draws, 1, len(match)))
        other = own | {name: _permuted(own[name], dims[name], dim, None, order) for name, dim in sites.items()}
        if _same_density(fitted.with_draws(own), other):
            draws = {name: np.concatenate([v[:chain], other[name], v[chain + 1 :]]) for name, v in draws.items()}
            said.append(f"{chain_is} {chain + 1}, in which {renamed(match, fitted.annotations.classes)}")
    found = fitted.with_draws(draws)
    return found.replace(origin={**found.origin, PERMUTED: "; ".join(said)}) if said else found


def _is_exchangeable(fitted: Fitted, sites: list[str], dim: str, within: str | None, size: int) -> bool:
    """Return whether a swap of two neighbours and a rotation leave the density equal; both generate every order."""
    draws, dims = fitted.draws, fitted.dims
    for order in {(1, 0, *range(2, size)), (*range(1, size), 0)}:
        everywhere = np.broadcast_to(order, (*fitted.shape, 1, size))
        other = draws | {name: _permuted(draws[name], dims[name], dim, within, everywhere) for name in sites}
        if not _same_density(fitted, other):
            return False
    return True


def _same_density(fitted: Fitted, others: Draws) -> bool:
    """Return whether other draws have equal prior and likelihood, at the first and the last draw of each chain."""

    def log_densities(draws: Draws) -> np.ndarray:
        ends = {name: value[:, [0, -1]].reshape(1, -1, *value.shape[2:]) for name, value in draws.items()}
        return np.asarray(_log_densities(fitted.with_draws(ends)))

    return bool(np.allclose(log_densities(fitted.draws), log_densities(others), rtol=SAME_DENSITY, atol=SAME_DENSITY))


@compiled(once=True)
def _log_densities(fitted: Fitted) -> Array:
    """Log-prior and log-likelihood of each draw, ``(draw, 2)``."""

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        return jnp.stack([at.log_prior, at.total])

    return jax.lax.map(of_draw, fitted.flat_draws)


def _common_order(blocks: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of each draw, and by how much its score exceeds that of the next best order.

    Args:
        blocks: by site, ``(S, W, M, F)``: S draws of M groups, whose order is free within each of W.

    Returns:
        The orders ``(S, W, M)``, whose entry m is the draw's own number of group m, and the leads ``(S, W)``.
    """
    weighted = {}
    for name, block in blocks.items():
        variance = block.var((0, 2), dtype=np.float64).mean() * block.shape[-1]
        if np.isfinite(variance) and variance > 0:
            weighted[name] = (block, 1 / variance)
    n_draws, n_within, size = next(iter(blocks.values())).shape[:3]
    order = np.full((n_draws, n_within, size), -1)
    reference = {name: block[0] for name, (block, _) in weighted.items()}
    for _ in range(ITERATIONS):
        scores = np.zeros((n_draws, n_within, size, size))  # [m, n]: the draw's own n as what is called m
        for name, (block, weight) in weighted.items():
            centred = reference[name] - reference[name].mean(1, keepdims=True)  # what they share tells no order
            scores += weight * np.einsum("wmf,swnf->swmn", centred, block, optimize=True)
        before, order = order, _best(scores)
        if (order == before).all():
            break
        reference = {
            name: np.take_along_axis(block, order[..., None], 2).mean(0) for name, (block, _) in weighted.items()
        }
    return order, _leads(scores, order)


def _best(scores: np.ndarray) -> np.ndarray:
    from scipy.optimize import linear_sum_assignment

    flat = scores.reshape(-1, *scores.shape[-2:])
    return np.array([linear_sum_assignment(s, maximize=True)[1] for s in flat]).reshape(scores.shape[:-1])


def _leads(scores: np.ndarray, order: np.ndarray) -> np.ndarray:
    """By how much the best assignment beats the second, which lacks at least one of its pairs: ``(S, W)``."""
    size = scores.shape[-1]
    best = np.take_along_axis(scores, order[..., None], -1).sum((-1, -2))
    second = np.full(best.shape, -np.inf)
    for m in range(size):
        without = scores.copy()
        np.put_along_axis(without[..., m, :], order[..., m, None], -np.inf, -1)
        other = _best(without)
        second = np.maximum(second, np.take_along_axis(without, other[..., None], -1).sum((-1, -2)))
    return best - second


def _ambiguities(lead: np.ndarray, names: Sequence[object]) -> Iterator[tuple[object, float]]:
    """Yield the class and the share of ambiguous draws, where too many would do nearly as well in another order.

    Of one cloud of draws that is cut into two groups three in ten have a lead under half of the usual; of two groups
    it is one in ten where they are 3.6 standard deviations apart, and every two hundredth draw is then misplaced.
    """
    usual = lead.mean(0)
    share = np.where(usual > 0, (lead < AMBIGUOUS * usual).mean(0), 1.0)
    yield from ((name, float(part)) for name, part in zip(names, share, strict=True) if part > MOST_AMBIGUOUS)


def permutations(posteriors: np.ndarray, votes: np.ndarray | None = None) -> tuple[int, dict[int, np.ndarray]]:
    """Return the chain whose labels agree most with the votes, and those that name the classes otherwise than it.

    Args:
        posteriors: each chain's mean label probabilities, ``(chain, N, K)``.
        votes: annotations of each class to each task, ``(N, K)``; the first chain is the reference without.

    Returns:
        The reference, and by chain its own numbers of the reference's classes, ``(K,)``: the match of most agreement
        (Kuhn's Hungarian method).
    """
    agreement = np.zeros(1) if votes is None else np.einsum("cnk,nk->c", posteriors, votes)
    reference = int(np.argmax(np.round(agreement / max(np.max(agreement), 1), 4)))  # the first of equals
    found: dict[int, np.ndarray] = {}
    if len(posteriors) == 1:
        return reference, found
    from scipy.optimize import linear_sum_assignment

    for chain, posterior in enumerate(posteriors):
        shared = posteriors[reference].T @ posterior
        own, match = linear_sum_assignment(shared, maximize=True)
        if shared[own, match].sum() > np.trace(shared) + TIE * len(posterior):
            found[chain] = match
    return reference, found


def renamed(match: np.ndarray, classes: Sequence[object]) -> str:
    """Say which classes a chain names otherwise, such as ``'a' is 'b' there``."""
    moved = [k for k in range(len(match)) if match[k] != k]
    return ", ".join(f"{classes[k]!r} is {classes[match[k]]!r} there" for k in moved)


def _as_blocks(values: np.ndarray, dims: tuple[str, ...], dim: str, within: str | None) -> np.ndarray:
    """``(chain, draw, W, M, ...)``: first within what the order is free (nothing: W = 1), then what has the order."""
    at = [2 + dims.index(name) for name in (within, dim) if name is not None]
    moved = np.moveaxis(values, at, range(2, 2 + len(at)))
    return moved if within is not None else moved[:, :, None]


def _permuted(values: np.ndarray, dims: tuple[str, ...], dim: str, within: str | None, order: np.ndarray) -> np.ndarray:
    """Values ``(chain, draw, ...)`` whose entry m along ``dim`` is the old ``order[chain, draw, w, m]``."""
    blocks = _as_blocks(values, dims, dim, within)
    taken = np.take_along_axis(blocks, order[(...,) + (None,) * (blocks.ndim - 4)], axis=3)
    taken = taken if within is not None else taken[:, :, 0]
    at = [2 + dims.index(name) for name in (within, dim) if name is not None]
    return np.ascontiguousarray(np.moveaxis(taken, range(2, 2 + len(at)), at))
