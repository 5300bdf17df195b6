r"""Sweeps of data augmentation from an approximate posterior towards the posterior itself.

A guide of variational inference has a shape that the posterior may not have, and is too narrow where parameters depend
on the labels: on forty tasks its label probabilities are far too sure. Sweeps (:mod:`.augmented`) leave the posterior
as it is, and lead whatever they start from towards it. So some chains of them begin, half at draws of the guide and
half at labels drawn from the votes, which are too unsure; of their later parts draws are kept, evenly spaced.

Their number is bounded: all of them compute no more than the steps of the variational inference did, or than two or
three seconds take. Where that is not enough for fifteen of each chain, and for each draw to be of a sweep of its own,
there are none.

A mode is left in the same way, half of the chains beginning at it: by fifteen sweeps, the fewest after which chains do
not remember where they began, unless others are asked for.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from ...data import Annotations
from .augmented import A_VARIATE, GRADIENT, LONGEST, NUMBERS, Draws, Steps, has_parts, size_of
from .enumerated import Parameters
from .model import Model
from .programs import compiled

MOST = 100  # sweeps of a chain: on forty tasks with four annotations each, labels do not change any more
FEWEST = 15  # unless it is asked for: after fewer, chains remember where they began
CHAINS = 100  # side by side, where so many draws are asked for
LATER = 2 / 3  # of the sweeps, of which draws are kept at the most; of many it is the second half
LEAPS = 5  # of a trajectory, which then ends as far from its start as one leads in units of the curvature
WORK = 1e10  # numbers that are computed in any case, about: two or three seconds
LITTLE = 4e9  # numbers that sweeps from a mode compute at the most unless they are asked for, about: less than a second
ENOUGH = 4e8, 2e9  # likewise, of more chains than data ask for: at first, and where labels depend on which they are
FEW_ROWS = 2**17  # annotations up to which there are sweeps from a mode unless they are asked for
LABELLED = 400  # draws over which sweeps from a mode average


class Swept(NamedTuple):
    """Draws at the end of sweeps.

    Args:
        draws: by site, ``(n, ...)``; those of the chains that began at the guide's draws are the first half.
        sweeps: of each chain; none, where they would have cost too much.
        chains: side by side.
    """

    draws: Draws
    sweeps: int
    chains: int


def swept(
    model: Model,
    annotations: Annotations,
    draws: Draws,
    fixed: Parameters,
    key: Array,
    *,
    sweeps: int | None,
    gradients: int,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Swept:
    """Return draws after sweeps, as many as there were, all in the parameters' own space.

    Args:
        draws: of the guide, ``(n, ...)`` by site.
        fixed: parameters without a posterior.
        sweeps: of each chain; None for as many as may be.
        gradients: of the density that the guide took.
        tell: called with the sweeps that are done and their number.
    """
    n = len(next(iter(draws.values())))
    size = size_of(model, annotations, draws, fixed)
    most = max(WORK, gradients * GRADIENT * size)
    if not planned(n, sweeps, int(most / (size * GRADIENT)))[1]:
        return Swept(draws, 0, 0)
    steps = Steps.around(model, annotations, draws, fixed, exact=True, leaps=LEAPS, often=True)
    n_chains, n_sweeps = planned(n, sweeps, int(most / _work(steps, draws)))
    if not n_sweeps:
        return Swept(draws, 0, 0)
    return _after(steps, {name: value[:n_chains] for name, value in draws.items()}, n, n_sweeps, key, tell)


def swept_from(
    model: Model, annotations: Annotations, mode: Parameters, fixed: Parameters, key: Array, *, sweeps: int | None
) -> Iterator[Swept]:
    """Yield draws after sweeps from a mode, in the parameters' own space, then of more chains; none without sweeps.

    Args:
        mode: the parameters that are drawn, by site.
        fixed: parameters without a posterior.
        sweeps: of each chain; None for fifteen, of up to 131,072 annotations and as far as they are little work; where
            there are more parameters than annotations, as far as they take two or three seconds. Of shared errors and
            difficulties of tasks, whose programs take long to compile, there are then none.
    """
    n_sweeps = FEWEST if sweeps is None else sweeps
    draws = {name: np.asarray(value)[None] for name, value in mode.items()}
    n_parameters = sum(value.size for value in draws.values())
    at_most = LITTLE if n_parameters <= annotations.n_rows else WORK
    if sweeps is None:
        if has_parts(model) or annotations.n_rows > FEW_ROWS:
            return
        if NUMBERS[-1] * n_sweeps * GRADIENT * size_of(model, annotations, draws, fixed) > at_most:
            return
    steps = Steps.around(model, annotations, draws, fixed, exact=True)
    of_one = n_sweeps * _work(steps, draws)
    if sweeps is None and NUMBERS[-1] * of_one > at_most:
        return
    asked = NUMBERS[0] * n_parameters / max(annotations.n_rows, 1)
    n_chains = 0
    for enough in ENOUGH:
        most = min(max(enough / of_one, asked), LITTLE / of_one, steps.number(NUMBERS[0]))  # as draws around the mode
        number = next((number for number in NUMBERS if number <= most), NUMBERS[-1])
        if number > n_chains:
            n_chains = number
            at_mode = {name: np.broadcast_to(value, (n_chains, *value.shape[1:])) for name, value in draws.items()}
            yield _after(steps, at_mode, min(LABELLED, n_chains * later(n_sweeps)), n_sweeps, key)


def _work(steps: Steps, draws: Draws) -> float:
    """Numbers that are computed for a sweep of one chain, about."""
    n = len(next(iter(draws.values())))
    return steps.work + A_VARIATE * sum(value.size for name, value in draws.items() if name not in steps.curvatures) / n


def _after(
    steps: Steps,
    now: Draws,
    n: int,
    n_sweeps: int,
    key: Array,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Swept:
    """Return ``n`` draws after sweeps from where each chain is, the second half of them at the votes."""
    n_chains = len(next(iter(now.values())))
    kept = kept_sweeps(n_sweeps, -(-n // n_chains))
    of_steps, of_rows = _keys(key)
    rng = np.random.default_rng(np.asarray(of_rows))
    on_votes = np.arange(n_chains) >= n_chains / 2
    leap, found = LONGEST, []
    now = {name: np.asarray(value) for name, value in now.items()}
    for done in range(n_sweeps):
        now, leap, _ = steps.taken(now, leap, of_steps, done, rng, on_votes & (done == 0))
        if done in kept:
            found.append(now)
        tell(done + 1, n_sweeps)
    by_chain = {name: np.stack([one[name] for one in found], 1) for name in now}  # (chains, kept, ...)
    chosen = np.sort(np.linspace(0, n_chains * len(kept) - 1, n).round().astype(int))
    return Swept(
        {name: value.reshape(-1, *value.shape[2:])[chosen] for name, value in by_chain.items()}, n_sweeps, n_chains
    )


@compiled(once=True)
def _keys(key: Array) -> tuple[Array, Array]:
    """The random key of all steps, and what seeds the rows; as one program, where each operation would be its own."""
    of_steps, of_rows = jax.random.split(jax.random.fold_in(key, 1))  # which the guide's draws are not of
    return of_steps, jax.random.bits(of_rows, (4,))


def planned(n: int, sweeps: int | None, affordable: int) -> tuple[int, int]:
    """Return how many chains take how many sweeps.

    >>> planned(1000, None, 10**6), planned(1000, None, 2000), planned(1000, None, 1000), planned(1000, 8, 0)
    ((100, 100), (100, 20), (0, 0), (200, 8))

    Args:
        n: draws that are to be kept.
        sweeps: of each chain; None for as many as may be.
        affordable: sweeps of one chain that all chains may take together.
    """
    if sweeps is None:
        n_chains = min(n, CHAINS)
        sweeps = min(MOST, affordable // n_chains)
        enough = sweeps >= FEWEST and later(sweeps) * n_chains >= n
        return (n_chains, sweeps) if enough else (0, 0)
    return (max(min(n, CHAINS), -(-n // later(sweeps))), sweeps) if sweeps else (0, 0)


def later(sweeps: int) -> int:
    """Return of how many of the sweeps draws may be kept."""
    return max(int(sweeps * LATER), min(sweeps, 1))


def kept_sweeps(sweeps: int, n: int) -> np.ndarray:
    """Return the ``n`` sweeps that are kept, evenly spaced over the second half, or over the later ones of few."""
    first = sweeps - max(sweeps // 2, n)
    return np.linspace(sweeps - 1, first, n).round().astype(int)[::-1]
