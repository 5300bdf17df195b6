"""Whether draws can be trusted: R̂, effective sample sizes, divergences, chains that name the classes differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .convergence import Convergence, convergence

if TYPE_CHECKING:
    import xarray as xr

RHAT_LIMIT = 1.01  # Vehtari et al. (2021), section 4
FAR_APART = 1.05  # an R̂ beyond which more draws alone are no help: chains differ by a third of their spread
ESS_LIMIT = 100  # for each chain: 50 for each of its halves, which is what R̂ needs (the same section)
BLOCK = 2_000_000  # numbers to work on at a time
MUCH = 0.25  # share of the annotations from which a class should be some tasks' label
ENOUGH = 5  # tasks that such a class should have before its absence says anything
MOST = 40_000_000  # draws of a parameter to look at; it takes some 20 seconds


def worst_rhat(parameters: xr.Dataset) -> tuple[float, str]:
    """Return the largest rank-normalised split R̂ over all parameters, and the name of that entry (Vehtari et al. 2021).

    Args:
        parameters: draws, with the dimensions chain, draw and named others. Of a parameter with more than
            :data:`MOST` draws only some entries are looked at: half of them those with the largest split R̂ of Gelman &
            Rubin (1992), which is quick to compute, and half spread evenly.
    """
    return _extreme(_look(parameters), lambda found: found.rhat, np.nanargmax)


def smallest_ess(parameters: xr.Dataset) -> tuple[float, str]:
    """Return the smallest effective sample size, of the bulk or the tails, and the name of that entry.

    Args:
        parameters: as for :func:`worst_rhat`.
    """
    return _extreme(_look(parameters), lambda found: np.minimum(found.bulk_ess, found.tail_ess), np.nanargmin)


def sampling_warnings(parameters: xr.Dataset, stats: Mapping[str, np.ndarray], max_tree_depth: int) -> tuple[str, ...]:
    """Return what a user should act on after sampling, a sentence each.

    Args:
        parameters: as for :func:`worst_rhat`.
        stats: the sampler's statistics by ArviZ's names, ``(chain, draw)``.
        max_tree_depth: the depth at which the sampler was stopped.
    """
    found = []
    if divergent := int(stats["diverging"].sum()):
        found.append(
            f"{divergent} of {stats['diverging'].size} draws diverged: the posterior is biased where they did; "
            "raise target_accept (0.95, 0.99), or give stronger priors"
        )
    looked_at = _look(parameters)
    rhat, where = _extreme(looked_at, lambda found: found.rhat, np.nanargmax)
    if rhat > RHAT_LIMIT:
        who = "the chains" if stats["diverging"].shape[0] > 1 else "the two halves of the chain"
        said = "do not agree; raise warmup and draws" if rhat > FAR_APART else "agree only roughly; raise draws"
        found.append(f"R̂ = {rhat:.3f} for {where}, over {RHAT_LIMIT}: {who} {said}")
    limit = ESS_LIMIT * stats["diverging"].shape[0]
    sizes: dict[str, Callable[[Convergence], np.ndarray]] = {
        "bulk": lambda found: found.bulk_ess,
        "tail": lambda found: found.tail_ess,
    }
    for kind, of_kind in sizes.items():
        ess, where = _extreme(looked_at, of_kind, np.nanargmin)
        if ess < limit:
            found.append(
                f"the {kind} effective sample size of {where} is {ess:.0f}, under {limit}, which is {ESS_LIMIT} a "
                "chain; raise draws"
            )
    if deep := int((stats["tree_depth"] >= max_tree_depth).sum()):
        found.append(f"{deep} draws reached the tree depth {max_tree_depth}; raise max_tree_depth for better mixing")
    return tuple(found)


TIE = 1e-4  # of the tasks' number: what classes that nearly no task has may gain by an exchange


def permutations(posteriors: np.ndarray, votes: np.ndarray | None = None) -> tuple[int, dict[int, np.ndarray]]:
    """Return the chain whose labels agree most with the votes, and those that name the classes otherwise than it.

    Args:
        posteriors: each chain's mean label probabilities, ``(chain, N, K)``.
        votes: annotations of each class to each task, ``(N, K)``; the first chain is the reference without.

    Returns:
        The reference, and by chain its own numbers of the reference's classes, ``(K,)``: the match of most agreement
        (Kuhn's Hungarian method).
    """
    from scipy.optimize import linear_sum_assignment

    agreement = np.zeros(1) if votes is None else np.einsum("cnk,nk->c", posteriors, votes)
    reference = int(np.argmax(np.round(agreement / max(np.max(agreement), 1), 4)))  # the first of equals
    found = {}
    for chain, posterior in enumerate(posteriors):
        shared = posteriors[reference].T @ posterior
        own, match = linear_sum_assignment(shared, maximize=True)
        if shared[own, match].sum() > np.trace(shared) + TIE * len(posterior):
            found[chain] = match
    return reference, found


def permuted_chains(
    posteriors: np.ndarray, classes: Sequence[object], votes: np.ndarray | None = None
) -> tuple[str, ...]:
    """Return a warning for each chain that names the classes otherwise than that whose labels are nearest to the votes.

    Args:
        posteriors: each chain's mean label probabilities, ``(chain, N, K)``.
        classes: the names of the classes.
        votes: as of :func:`permutations`.
    """
    reference, found = permutations(posteriors, votes)
    return tuple(
        f"chain {chain + 1} is in another permutation of the classes than chain {reference + 1} "
        f"({renamed(match, classes)}): do not average them; give a heavier diagonal, gold labels, or fewer chains"
        for chain, match in found.items()
    )


def renamed(match: np.ndarray, classes: Sequence[object]) -> str:
    """Say which classes a chain names otherwise, such as ``'a' is 'b' there``."""
    moved = [k for k in range(len(match)) if match[k] != k]
    return ", ".join(f"{classes[k]!r} is {classes[match[k]]!r} there" for k in moved)


def lost_classes(posterior: np.ndarray, votes: np.ndarray, classes: Sequence[object]) -> tuple[str, ...]:
    """Return a warning for each class that many annotations give and hardly any task has.

    Args:
        posterior: label probabilities, ``(N, K)``.
        votes: annotations of each class to each task, ``(N, K)``.
        classes: the names of the classes.
    """
    return lost_from_totals(posterior.sum(0), votes.sum(0), classes)


def lost_from_totals(tasks: np.ndarray, votes: np.ndarray, classes: Sequence[object]) -> tuple[str, ...]:
    """The same, from sums over all tasks.

    Data so small that the class would have fewer than five tasks say nothing: four annotations may well disagree.

    Args:
        tasks: the expected number of tasks of each class, ``(K,)``; they sum to the number of tasks.
        votes: annotations of each class, ``(K,)``.
        classes: the names of the classes.
    """
    n_tasks = tasks.sum()
    given, found = votes / max(votes.sum(), 1), tasks / max(n_tasks, 1)
    lost = np.flatnonzero((given >= MUCH) & (given * n_tasks >= ENOUGH) & (found < given / 10))
    return tuple(
        f"{given[k]:.0%} of the annotations are {classes[k]!r}, and {found[k]:.1%} of the tasks: the story may have "
        "lost the class to its other parameters; compare with majority vote, give gold labels or another story"
        for k in lost.tolist()
    )


class WorstEntry(NamedTuple):
    """The entry of a parameter whose chains agree the least, and the smallest effective sample sizes of any entry."""

    name: str  # of the parameter
    entries: int
    rhat: float
    entry: str  # its name
    bulk_ess: float
    tail_ess: float
    draws: np.ndarray  # of the entry, (chain, draw)


def worst_entries(parameters: xr.Dataset) -> list[WorstEntry]:
    """Return of each parameter the entry with the largest R̂, and the smallest effective sample sizes.

    Parameters whose draws are all equal are left out.

    Args:
        parameters: as for :func:`worst_rhat`.
    """
    made = []
    for values, entries, found in _look(parameters):
        if np.isnan(found.rhat).all():
            continue
        draws = values.transpose("chain", "draw", ...)
        flat = draws.to_numpy().reshape(*draws.shape[:2], -1)
        at = int(entries[np.nanargmax(found.rhat)])
        index = np.unravel_index(np.intp(at), draws.shape[2:])
        smallest = float(np.nanmin(found.bulk_ess)), float(np.nanmin(found.tail_ess))
        made.append(
            WorstEntry(
                str(values.name),
                flat.shape[-1],
                float(np.nanmax(found.rhat)),
                _entry(values, index),
                *smallest,
                flat[..., at],
            )
        )
    return made


class _LookedAt(NamedTuple):
    """What was found of one parameter."""

    values: xr.DataArray
    entries: np.ndarray  # positions of the entries that were looked at, of all but chain and draw
    found: Convergence


def _look(parameters: xr.Dataset) -> list[_LookedAt]:
    """Return the convergence of all parameters, block by block."""
    looked_at = []
    for values in parameters.values():
        draws = values.transpose("chain", "draw", ...).to_numpy()
        draws = draws.reshape(*draws.shape[:2], -1)
        size = draws.shape[0] * draws.shape[1]
        entries = _entries(draws, max(MOST // size, 1))
        step = max(BLOCK // size, 1)
        blocks = [
            convergence(np.ascontiguousarray(draws[..., entries[i : i + step]].transpose(2, 0, 1), dtype=float))
            for i in range(0, len(entries), step)
        ]
        if blocks:
            looked_at.append(_LookedAt(values, entries, Convergence(*map(np.concatenate, zip(*blocks, strict=True)))))
    return looked_at


def _entries(draws: np.ndarray, most: int) -> np.ndarray:
    """Return the positions of at most so many entries of ``draws (chain, draw, entry)``, the worst among them."""
    n_entries = draws.shape[-1]
    if n_entries <= most:
        return np.arange(n_entries)
    half = draws.shape[1] // 2
    means, variances = np.empty((2, 2 * len(draws), n_entries), draws.dtype)
    for i, part in enumerate(part for chain in draws for part in (chain[:half], chain[-half:])):
        means[i], variances[i] = part.mean(0), part.var(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(means.var(0) / variances.mean(0), nan=0.0, posinf=np.inf)
    worst = np.argpartition(ratio, -(most // 2 + 1))[-(most // 2 + 1) :]
    return np.union1d(worst, np.linspace(0, n_entries - 1, max(most // 2, 1)).astype(int))


def _extreme(
    looked_at: Sequence[_LookedAt], score: Callable[[Convergence], np.ndarray], pick: Callable[[np.ndarray], np.intp]
) -> tuple[float, str]:
    """Return the extreme score over all entries of all parameters, and the entry's name."""
    extremes = []
    for values, entries, found in looked_at:
        scores = score(found)
        if not np.isnan(scores).all():
            at = pick(scores)
            shape = values.transpose("chain", "draw", ...).shape[2:]
            extremes.append((float(scores[at]), _entry(values, np.unravel_index(entries[at], shape))))
    return extremes[pick(np.array([score for score, _ in extremes]))] if extremes else (np.nan, "no parameter")


def _entry(values: xr.DataArray, index: tuple[np.intp, ...]) -> str:
    """Return an entry's name, such as ``confusion[worker 2, truth 1, annotation 3]``."""
    dims = values.transpose("chain", "draw", ...).dims[2:]
    names = [f"{dim} {values[dim].to_numpy()[i]}" for dim, i in zip(dims, index, strict=True)]
    return f"{values.name}[{', '.join(names)}]" if names else str(values.name)
