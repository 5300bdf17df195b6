"""Trust in the computation: an engine's course, R̂, effective sample sizes, divergences, the order of the draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines.minibatch_em import STEPS
from ..engines.settings import EMSettings
from ..fitted.alignment import renamed
from ..fitted.fitted import Fitted, apart
from ..fitted.posterior import Posterior
from .convergence import Convergence, convergence
from .facts import beside_votes
from .of_crowd import HELP
from .register import Labels, Said, check, once

if TYPE_CHECKING:
    import xarray as xr

RHAT_LIMIT = 1.01  # Vehtari et al. (2021), section 4
FAR_APART = 1.05  # an R̂ beyond which more draws alone are no help: chains differ by a third of their spread
ESS_LIMIT = 100  # for each chain: 50 for each of its halves, which is what R̂ needs (the same section)
BLOCK = 2_000_000  # numbers to work on at a time
MOST = 40_000_000  # draws of a parameter to look at; it takes some 20 seconds
STEADY = 1e-3  # relative change of the log-posterior in the last pass, above which stochastic EM still moves
APART = 0.05  # mean difference of label probabilities by where sweeps began, over which they have not met
APART_OF_EM = 0.15  # likewise, of fifteen sweeps
MANY_DIFFER = 0.25  # share of the decided votes that labels may leave without a word
TRAINS = ("em", "svi")  # engines whose networks EM in minibatches trains by options of theirs
STILL_LEARNS = 0.01  # nats an annotation that a network's last quarter of epochs added to the log-posterior
HARDLY_MOVED = 0.1  # what Adam can have moved a network's weight by, below which it has learnt next to nothing
ENOUGH_STEPS = 1600  # of a network's training, from which on what is still learnt are single tasks
FEWEST_STEPS = 100  # of SVI that say whether it converged


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


@check("interrupted", "draws", needs={"engine"})
def interrupted(of: Any) -> Iterator[Said]:
    """Chains that were ended before they had all their draws."""
    if "interrupted" in (facts := of.outcome.facts):
        draws, chains = facts["interrupted"]["draws"], facts["interrupted"]["chains"]
        yield Said(
            f"NUTS was interrupted: these are {draws:,} of {of.settings['draws']:,} draws of {chains} of "
            f"{of.settings['chains']} chains",
            facts["interrupted"]["how_to_go_on"],
            {"draws": draws, "chains": chains},
        )


@check("em_not_converged", "draws", needs={"engine"})
def em_not_converged(of: Any) -> Iterator[Said]:
    """A last iteration of EM that changed the log-posterior by a larger share than the tolerance."""
    change, tolerance, most = (
        of.outcome.facts.get("change"),
        of.settings.get("tolerance"),
        of.settings.get("max_iterations"),
    )
    if change is None or change <= tolerance:
        return
    if not np.isfinite(change):
        yield Said(
            f"EM took {most} iterations, too few to see whether it converged", "raise max_iterations", {"steps": most}
        )
        return
    yield Said(
        f"EM did not converge in {most} iterations: the log-posterior still changes by {change:.1e} of itself a step "
        f"(tolerance {tolerance:.0e})",
        "raise max_iterations",
        {"steps": most, "change": change, "tolerance": tolerance},
    )


@check("network_still_learns", "draws", needs={"engine"})
def network_still_learns(of: Any) -> Iterator[Said]:
    """A network whose training ended while it still rose by much, after few steps; or that could hardly move.

    A step of Adam moves a weight by about its rate at the most, so that few steps, or small ones, leave a network near
    the random weights that it started from. The log-posterior need not show it: it rises by little where each step is
    small. ``benchmarks/network_steps.py`` counts how often this is said, and what more steps would have changed. It is
    not said so of a module, which may come trained, nor where held-out annotations ended the training.
    """
    facts = of.outcome.facts
    if of.method in TRAINS and 0 < facts.get("reach", 0.0) < HARDLY_MOVED:
        rate, usual = of.settings["network_rate"], STEPS * EMSettings().network_rate
        more = math.ceil(facts["epochs"] * usual / facts["reach"])
        yield Said(
            f"the classifier is hardly trained: {facts['steps']:,} steps in {facts['epochs']:,} epochs, each of which "
            f"moves a weight by about {rate:g} at the most, leave it within {facts['reach']:.2g} of its random start",
            f"raise epochs, as to epochs={more}, or network_rate, and see whether labels and predictions change",
            dict(facts),
        )
        return
    if of.method not in TRAINS or facts.get("rise", 0.0) <= STILL_LEARNS or facts["steps"] >= ENOUGH_STEPS:
        return
    more = int(2 * facts["epochs"])
    yield Said(
        f"the classifier was still learning when its training ended, after {facts['steps']:,} steps in "
        f"{facts['epochs']:,} epochs: the last quarter of them raised the log-posterior by {facts['rise']:.2f} nats an "
        "annotation",
        f"raise epochs, as to epochs={more}, or network_rate, and see whether labels and predictions change",
        dict(facts),
    )


@check("stochastic_em_moves", "draws", needs={"engine"})
def stochastic_em_moves(of: Any) -> Iterator[Said]:
    """A last pass of stochastic EM that still changed the log-posterior."""
    if "chunks" not in of.outcome.facts:
        return
    history = of.outcome.history
    change = abs((history[-1] - history[-2]) / history[-1]) if len(history) > 1 else np.inf
    if change > STEADY:
        yield Said(
            f"stochastic EM still moves: the log-posterior changed by {change:.1e} of itself after the last pass",
            "raise epochs, or leave out step for exact steps",
            {"change": change},
        )


@check("one_chunk", "draws", needs={"engine"})
def one_chunk(of: Any) -> Iterator[Said]:
    """A step after each chunk of one."""
    if of.outcome.facts.get("chunks") == 1:
        rows = of.outcome.facts["rows"]
        yield Said(
            f"step='stochastic' takes a step after each chunk, and all {rows:,} rows are one chunk, so "
            "that a pass is one step",
            "leave out step for exact steps, which go further in a pass",
            {"rows": rows},
        )


@check("steps_left_out", "draws", needs={"engine"})
def steps_left_out(of: Any) -> Iterator[Said]:
    """Steps of SVI that were not taken."""
    left_out, steps = of.outcome.facts.get("steps_left_out", 0), len(of.outcome.history)
    if left_out:
        yield Said(
            f"SVI left out {left_out} of {steps:,} steps, whose loss was not finite: draws had probabilities that are "
            "0 in single precision",
            "A prior that expects fewer of them helps, such as a larger off_diagonal=, or JAX_ENABLE_X64=1",
            {"left_out": left_out, "steps": steps},
        )


@check("svi_not_converged", "draws", needs={"engine"})
def svi_not_converged(of: Any) -> Iterator[Said]:
    """A loss that still falls: by three standard errors and the tolerance in its last part.

    The part is a tenth of the steps; of fewer than a thousand a quarter, whose mean is less noisy. Fewer than a hundred
    steps say nothing.
    """
    if of.method != "svi":
        return
    losses, tolerance = of.outcome.history, of.settings["tolerance"]
    if len(losses) < FEWEST_STEPS:
        yield Said(
            f"SVI took {len(losses)} steps, too few to see whether it converged",
            "raise max_iterations",
            {"steps": len(losses)},
        )
        return
    share, name = (10, "tenth") if len(losses) >= 1000 else (4, "quarter")
    part = len(losses) // share
    before, last = losses[-2 * part : -part], losses[-part:]
    fall = before.mean() - last.mean()
    error = np.sqrt(before.var() / len(before) + last.var() / len(last))
    if fall >= 3 * error and fall >= tolerance * abs(last.mean()):
        yield Said(
            f"SVI did not converge in {len(losses)} steps: the loss fell by {fall:,.2f} in the last {name}",
            "raise max_iterations or learning_rate",
            {"steps": len(losses), "fall": fall},
        )


@check("sweeps_apart", "draws")
def sweeps_apart(of: Labels) -> Iterator[Said]:
    """Sweeps of SVI or EM that have other labels by where they began, at its draws or mode or at the votes.

    Where they have met, their label probabilities differ by Monte Carlo error alone: by .01 to .02 on sixty tasks of
    one crowd, and by .05 where thirty sweeps of ``one_coin`` were too few there. By ``one_coin`` it is said of none of
    12 healthy crowds, of five of eight where workers copy, and of three of six where all guess
    (``benchmarks/one_finding.py``). EM's fifteen sweeps differ by up to .07 on healthy and open crowds, and by up to
    .14 on 12 healthy ones of ten classes. Of ten crowds where all take classes for their neighbours it is said of
    seven, whose labels are right in .62 and .82 sure: more than one reading is then about as probable, which more
    sweeps do not bring together. Of an average it is asked of the story with most weight.
    """
    fitted = of.heaviest[1] if isinstance(of, Posterior) and of.members else of
    if not isinstance(fitted, Fitted):
        return
    facts, by_start = fitted.outcome.facts, fitted.by_start
    gap = facts.get("apart", 0.0) if by_start is None else apart(by_start)
    if gap <= (APART_OF_EM if by_start is None else APART):
        return
    if by_start is None:
        began, own, remedy = f"{fitted.story}'s sweeps began, so that another reading may be right", "EM's mode", HELP
    else:
        began, own, remedy = "SVI's sweeps began", "its own draws", "fit with method='nuts', or raise sweeps"
    yield Said(
        f"the labels depend on where {began}: after {facts['sweeps']} sweeps the label probabilities of those from "
        f"{own} and of those from the votes differ by {gap:.2f} on average",
        remedy,
        {"gap": gap, "sweeps": facts["sweeps"]},
    )


@check("leaves_votes", "labels", needs={"story", "memory"})
def leaves_votes(of: Fitted) -> Iterator[Said]:
    """Labels of SVI that are other classes than the votes decided for many tasks, as a note.

    By ``one_coin`` it is said of none of 12 healthy crowds, of five of six where all guess, and of none where a
    majority takes a class for another or workers copy (``benchmarks/one_finding.py``).
    """
    if of.method != "svi":
        return
    beside = beside_votes(of)
    decided, differing = int(beside.decided.sum()), int(beside.differs.sum())
    if differing > MANY_DIFFER * max(decided, 1):
        yield Said(
            f"{differing} of {decided} labels are another class than the majority vote: the story takes some workers "
            "for better than the others, or a class for another",
            "a few gold labels of these tasks tell which is right",
            {"differing": differing, "decided": decided},
            severity="note",
        )


@check("ambiguous_order", "draws", needs={"engine"})
def ambiguous_order(of: Any) -> Iterator[Said]:
    """Groups, or subtypes of a class, whose draws would do nearly as well in another order."""
    for dim, name, share in of.outcome.facts.get("ambiguous", ()):
        of_class = "" if name is None else f" of class {name!r}"
        yield Said(
            f"the {dim}s{of_class} cannot be told apart: {share:.0%} of the draws match the others nearly as well in "
            f"another order, so averages mix the {dim}s",
            f"take fewer {dim}s, or priors that tell them apart",
            {"dimension": dim, "class": name, "share": share},
        )


@check("permuted_chains", "draws", needs={"story", "memory"})
def permuted_chains(of: Fitted) -> Iterator[Said]:
    """Chains that name the classes otherwise than the chain whose labels are nearest to the votes."""
    reference, matches = of.outcome.facts.get("permuted", (0, {}))
    for chain, match in matches.items():
        yield Said(
            f"chain {chain + 1} is in another permutation of the classes than chain {reference + 1} "
            f"({renamed(match, of.annotations.classes)})",
            "do not average them; give a heavier diagonal, gold labels, or fewer chains",
            {"chain": chain + 1, "reference": reference + 1},
        )


@check("divergences", "draws", needs={"sampler"})
def divergences(of: Fitted) -> Iterator[Said]:
    """Draws whose trajectory left the posterior's shape."""
    diverging = of.outcome.stats["diverging"]
    if divergent := int(diverging.sum()):
        yield Said(
            f"{divergent} of {diverging.size} draws diverged: the posterior is biased where they did",
            "raise target_accept (0.95, 0.99), or give stronger priors",
            {"divergences": divergent, "draws": diverging.size},
        )


@check("rhat", "draws", needs={"sampler"})
def rhat(of: Fitted) -> Iterator[Said]:
    """An R̂ beyond :data:`RHAT_LIMIT` of an entry whose effective sample size is small too, or one far beyond it.

    The largest of the R̂ of hundreds of entries is over 1.01 in most fits whose chains agree; that of one that has
    enough effective draws says nothing against them.
    """
    limit = ESS_LIMIT * of.outcome.stats["diverging"].shape[0]

    def in_doubt(found: Convergence) -> np.ndarray:
        few = np.minimum(found.bulk_ess, found.tail_ess) < limit
        return np.where(few | (found.rhat > FAR_APART), found.rhat, np.nan)

    worst, entry = _extreme(_look_at_draws(of), in_doubt, np.nanargmax)
    if worst > RHAT_LIMIT:
        who = "the chains" if of.outcome.stats["diverging"].shape[0] > 1 else "the two halves of the chain"
        far = worst > FAR_APART
        yield Said(
            f"R̂ = {worst:.3f} for {entry}, over {RHAT_LIMIT}: {who} {'do not agree' if far else 'agree only roughly'}",
            "raise warmup and draws" if far else "raise draws",
            {"rhat": worst, "entry": entry, "limit": RHAT_LIMIT},
        )


@check("ess", "draws", needs={"sampler"})
def ess(of: Fitted) -> Iterator[Said]:
    """Effective sample sizes, of the bulk or the tails, under :data:`ESS_LIMIT` a chain."""
    limit = ESS_LIMIT * of.outcome.stats["diverging"].shape[0]
    sizes: dict[str, Callable[[Convergence], np.ndarray]] = {
        "bulk": lambda found: found.bulk_ess,
        "tail": lambda found: found.tail_ess,
    }
    for kind, of_kind in sizes.items():
        smallest, entry = _extreme(_look_at_draws(of), of_kind, np.nanargmin)
        if smallest < limit:
            yield Said(
                f"the {kind} effective sample size of {entry} is {smallest:.0f}, under {limit}, which is {ESS_LIMIT} a "
                "chain",
                "raise draws",
                {"kind": kind, "ess": smallest, "entry": entry, "limit": limit},
            )


@check("tree_depth", "draws", needs={"sampler"})
def tree_depth(of: Fitted) -> Iterator[Said]:
    """Draws whose trajectory was cut at the greatest depth."""
    deepest = of.settings["max_tree_depth"]
    if deep := int((of.outcome.stats["tree_depth"] >= deepest).sum()):
        yield Said(
            f"{deep} draws reached the tree depth {deepest}",
            "raise max_tree_depth for better mixing",
            {"draws": deep, "depth": deepest},
        )


@once
def _look_at_draws(of: Fitted) -> list[_LookedAt]:
    """Return the convergence of a fit's parameters."""
    return _look(of.named_draws)


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
        draws = _flat(values)
        at = int(entries[np.nanargmax(found.rhat)])
        smallest = float(np.nanmin(found.bulk_ess)), float(np.nanmin(found.tail_ess))
        largest = float(np.nanmax(found.rhat))
        made.append(
            WorstEntry(str(values.name), draws.shape[-1], largest, _entry(values, at), *smallest, draws[..., at])
        )
    return made


class _LookedAt(NamedTuple):
    """Diagnostics of one parameter."""

    values: xr.DataArray  # (chain, draw, ...)
    entries: np.ndarray  # positions of the entries that were looked at, of all but chain and draw
    found: Convergence


def _look(parameters: xr.Dataset) -> list[_LookedAt]:
    """Return the convergence of all parameters, block by block."""
    looked_at = []
    for values in parameters.transpose("chain", "draw", ...).values():
        draws = _flat(values)
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


def _flat(values: xr.DataArray) -> np.ndarray:
    return values.to_numpy().reshape(*values.shape[:2], -1)


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
            extremes.append((float(scores[at]), _entry(values, int(entries[at]))))
    return extremes[pick(np.array([score for score, _ in extremes]))] if extremes else (np.nan, "no parameter")


def _entry(values: xr.DataArray, at: int) -> str:
    """Return an entry's name, such as ``confusion[worker 2, truth 1, annotation 3]``."""
    index = np.unravel_index(at, values.shape[2:])
    names = [f"{dim} {values[dim].to_numpy()[i]}" for dim, i in zip(values.dims[2:], index, strict=True)]
    return f"{values.name}[{', '.join(names)}]" if names else str(values.name)
