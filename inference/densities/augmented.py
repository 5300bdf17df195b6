r"""Draws of the parameters around a point, by a few steps of data augmentation: its uncertainty.

From a mode the true labels are drawn from their posterior, then the parameters given these labels, and so on, for each
draw by itself (Tanner & Wong 1987); where steps cost much, ten draws are of one such way, each a step after the other.
The first step is the poor man's data augmentation of Wei & Tanner (1990), which takes the labels' posterior at the mode
for granted: where a part :math:`\gamma` of what the parameters are known by is missing with the labels, its variances
are :math:`1 - \gamma^2` of the posterior's, and after :math:`m` steps :math:`1 - \gamma^{2m}`. A row of probabilities
is drawn from its Dirichlet posterior where that is its posterior given the labels. All other parameters, such as
abilities, or rows of stories whose annotations have a latent variable of their own, take a trajectory of Hamiltonian
Monte Carlo together, given the labels and the rows, in units of their curvature at the mode, and stay where they are
where it is refused (Neal 2011, section 5.3): parameters that depend on each other, or whose curvature at the mode says
little, move no farther than their density lets them. The error of a trajectory's energy grows with the number of
parameters: of thousands, as of tasks, only trajectories too short to lead away from the mode would be free of it. So a
small error is allowed for each; leaps that err as little change variances by less than the few steps do.

A mode is not in the middle of where its posterior has its mass, and where the data are thin the draws remember it: of
scores of compared items, whose mode has one and a half times their spread, after forty steps. So where sixty steps, or
thirty at the least, take no more than a second or two, half of the ways take their first labels from the votes, which
are too unsure where the mode is too sure, as half of the chains of :mod:`.sweeps` do; and the steps go on until both
halves have the same means, up to two standard errors, or as far as the work allows. What labels alone do not move, such
as a scale of the workers' differences, which a mode makes too large or too small, would be where the mode is in both
halves and so the same at once. So in the half of the votes it begins where engines begin.

It needs no derivation for a story: concentrations and trajectories follow gradients of the complete data's
log-density, a row's posterior is a Dirichlet distribution where its counts are the same whatever the rows are, and a
curvature is a derivative along one direction, since given the labels workers have nothing to do with each other. Of
shared errors and difficulties of tasks the latent variable is taken for known: their trajectories take minutes.

Most priors expect able workers, by several pseudo-annotations for each class, and say of one who is right in a fifth of
twenty tasks what they expect. So around a mode a row's prior :math:`\text{Dirichlet}(\gamma)` has a heavier tail: with
the probability :data:`OTHERWISE` all rows of a worker are of :math:`\text{Dirichlet}(1 / L, \dots, 1 / L)`, which
counts like one annotation and expects nothing of the worker, and given the labels it is drawn by the odds of both

.. math:: \prod_k \frac{B(n_{jk} + 1 / L) \, B(\gamma_k)}{B(1 / L) \, B(n_{jk} + \gamma_k)}

where :math:`n_{jk}` are the worker's counts and B is the beta function of vectors. A prior that is another for each
worker, as with a history, stays as it is.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr
from scipy.special import expit, gammaln, logit

from ...data import Annotations
from ...data.padding import real_by_plate
from ...models.parts.general import GENERAL
from ...models.parts.kernels import SMALLEST, safe_log
from ...models.parts.starts import soft_votes
from .enumerated import Density, Latent, Parameters, density, drawn_classes
from .model import Model
from .programs import compiled, key_of
from .ready_programs import known
from .sites import ParameterSpec, compiled_start, parameter_names, parameter_spec

STEPS = 8  # of data augmentation: 99 % of the variances where three quarters of the knowledge is missing
MOST_STEPS = 60  # from both ends
BOTH_ENDS = 1e10  # numbers that are computed for all of these at the most, about: a second or two
LITTLE = 2e9  # numbers that are computed for all steps up to which each draw has a way of its own from the mode
KEPT = 10  # draws of a way, one a step, where there is more
FEWEST_WAYS = 5  # of which draws are kept
A_VARIATE = 300  # numbers that are computed in the time that a gamma variate takes, about
NUMBERS = (200, 100, 50, 25)  # of draws
TOGETHER = NUMBERS[-1]  # draws of a step's program, which several runs of it take where there are more
WORK = 1.5e9  # numbers that are computed for a step of all draws, about: a second or so
FEWEST = 50  # draws where parameters take trajectories, which leave each near the last
AT_ONCE = 1e6  # numbers of the densities that steps are taken of side by side, about: they stay in a core's cache
BLOCK = 2**20  # numbers of tables that are drawn at once, about
DIRECTIONS = 600  # along which curvatures are taken at the most
MOST = 5_000  # directions of a parameter of neither workers nor tasks; of more, as a network's weights, it stays put
PROBES = 100  # random directions by which those of a parameter with more of them are estimated
FLATTEST = 0.1  # curvature at the least
LEAPS = 8  # of a trajectory
LONGEST = 0.4  # length of a leap at the most, in units of the curvature: eight of them lead far away
FEW, MANY = 0.6, 0.9  # shares of accepted trajectories under and over which the next leaps are shorter or longer
ALLOWED = 1e-3  # energy that a trajectory may lose for each parameter
SAME = 1e-3  # up to which counts are equal
GRADIENT = 3  # densities, about, whose time one with its gradient takes
TRIES = 5  # of a step whose leaps are so long that hardly a trajectory is accepted
OTHERWISE = 0.2  # probability that a worker is of no kind that the prior expects
APART = ("worker", "task")  # dimensions whose members have nothing to do with each other, given the labels


def augmented_draws(
    steps: Steps,
    mode: Parameters,
    n: int,
    missing: float | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Draws, bool]:
    """Draws of the parameters around a mode, by site, ``(n, ...)``, and whether those of real values went far enough.

    Args:
        steps: of the story on its data, :meth:`Steps.at` the mode.
        mode: the parameters that are drawn, by site.
        n: how many draws at the most, 25 or more; fewer are taken where a density computes much.
        missing: the share of the knowledge that is missing with the labels, from 0 to 1, where it is known.
        tell: is called with the number of steps that are done, and that of all.
    """
    n_steps = STEPS if missing is None else steps_for(missing)
    one: Draws = {name: np.asarray(value)[None] for name, value in mode.items()}
    n = steps.number(n)
    work = n * (steps.work + A_VARIATE * sum(value.size for value in one.values()))
    is_little = work * n_steps <= LITTLE
    n_ways = n if is_little or steps.in_leaps else max(n // KEPT, FEWEST_WAYS)
    draws: Draws = {name: np.broadcast_to(value, (n_ways, *value.shape[1:])) for name, value in one.items()}
    rng, leap, share, found = np.random.default_rng(0), LONGEST, 0.0, []
    key = key_of(0)
    affordable = min(int(BOTH_ENDS / work), MOST_STEPS)
    from_both = missing is None and n_ways == n and affordable >= MOST_STEPS / 2  # fewer ways are no n draws at the end
    on_votes = (np.arange(n_ways) >= n_ways / 2) & from_both
    most = affordable if on_votes.any() else n_steps + n // n_ways - 1
    if on_votes.any() and steps.in_leaps:
        draws |= steps.started(draws, on_votes)
    for done in range(most):
        draws, leap, share = steps.taken(draws, leap, key, done, rng, on_votes & (done == 0))
        tell(done + 1, most)
        if not on_votes.any() and done + 1 >= n_steps:
            found.append(draws)
        elif done + 1 == most or (done + 1 >= n_steps and have_same_means(draws, on_votes)):
            found.append(draws)
            tell(most, most)
            break
    return {name: np.concatenate([one[name] for one in found]) for name in draws}, share >= FEW / 2


def have_same_means(draws: Draws, part: np.ndarray) -> bool:
    """Return whether the means of a half of the draws and of the other differ by two standard errors at the most.

    Of each site in the root mean square over its entries.

    Args:
        draws: by site, ``(n, ...)``.
        part: which are of the one half, ``(n,)``.
    """
    for value in draws.values():
        rows = value.reshape(len(part), -1).astype(float)
        error = rows.std(0) * np.sqrt(1 / part.sum() + 1 / (~part).sum())
        gap = np.abs(rows[part].mean(0) - rows[~part].mean(0))
        if (error > 0).any() and np.square(gap[error > 0] / error[error > 0]).mean() > 2**2:
            return False
    return True


def steps_for(missing: float) -> int:
    """Return how many steps leave one hundredth of the variances where a share of the knowledge is missing.

    >>> [steps_for(share) for share in (0.0, 0.05, 0.1, 0.3, 0.75, 1.0)]
    [1, 1, 1, 2, 8, 8]
    """
    return int(np.clip(np.ceil(np.log(0.01) / (2 * np.log(np.clip(missing, 1e-9, 1 - 1e-9)))), 1, STEPS))


Draws = dict[str, np.ndarray]  # by site, (n, ...)


class Steps(NamedTuple):
    """Steps of data augmentation of a story on its data, of draws side by side.

    Args:
        model: the story.
        annotations: the data.
        fixed: parameters that stay where they are.
        moved: tables that are no Dirichlet distributions given the labels, and move as real-valued parameters do.
        curvatures: of the parameters that take trajectories.
        size: numbers that the density computes.
        leaps: of a trajectory.
        often: whether so many steps follow that their program is worth compiling well.
        tails: whether workers may be of no kind that the prior expects.
    """

    model: Model
    annotations: Annotations
    fixed: Parameters
    moved: tuple[str, ...]
    curvatures: Parameters
    size: int
    leaps: int = LEAPS
    often: bool = False
    tails: bool = False

    @classmethod
    def around(
        cls,
        model: Model,
        annotations: Annotations,
        draws: Mapping[str, Any],
        fixed: Parameters,
        *,
        exact: bool = False,
        leaps: int = LEAPS,
        often: bool = False,
    ) -> Steps:
        """Return the steps around the centre of draws.

        Args:
            draws: by site, ``(n, ...)``, such as a mode as the only one.
            fixed: parameters that stay where they are.
            exact: leave the posterior exactly as it is, for many steps: tables of shared errors and of difficulties of
                tasks take trajectories, too.
            leaps: of a trajectory.
            often: whether so many steps follow that their program is worth compiling well.
        """
        size = size_of(model, annotations, draws, fixed)
        curvatures, is_dirichlet = _around(model, annotations, draws, fixed, moved=())
        moved = tuple(name for name, yes in is_dirichlet.items() if not yes)
        if moved and (exact or not has_parts(model)):
            curvatures, _ = _around(model, annotations, draws, fixed, moved=moved)
        else:
            moved = ()
        return cls(model, annotations, fixed, moved, curvatures, size, leaps, often, not exact)

    @classmethod
    def at(cls, model: Model, annotations: Annotations, mode: Parameters, fixed: Parameters) -> Steps:
        """Return the steps around one point, by site."""
        return cls.around(model, annotations, {name: np.asarray(value)[None] for name, value in mode.items()}, fixed)

    @property
    def in_leaps(self) -> bool:
        """True where some parameters take trajectories."""
        return bool(self.curvatures)

    @property
    def work(self) -> float:
        """Numbers that are computed for a step of one draw, about."""
        return self.size * GRADIENT * (self.leaps if self.in_leaps else 1)

    def started(self, draws: Draws, chosen: np.ndarray) -> Draws:
        """Return the parameters that take trajectories, of the chosen draws where engines start.

        Args:
            draws: ``(n, ...)`` by site.
            chosen: which, ``(n,)``.
        """
        start = compiled_start(self.model, self.annotations, key_of(0))
        return {
            name: np.where(chosen.reshape(-1, *[1] * (draws[name].ndim - 1)), np.asarray(start[name]), draws[name])
            for name in self.curvatures
        }

    def number(self, n: int) -> int:
        """Return how many draws are taken side by side, of ``n`` at the most, 25 or more."""
        n = min(n, max(int(WORK / self.work), FEWEST if self.in_leaps else NUMBERS[-1]))
        return next(number for number in NUMBERS if number <= n)

    def taken(
        self,
        draws: Draws,
        leap: float,
        key: Array,
        number: int,
        rng: np.random.Generator,
        on_votes: np.ndarray | None = None,
    ) -> tuple[Draws, float, float]:
        """Return the draws after a step, the length of the next leaps, and the share of accepted trajectories.

        Args:
            draws: where they are, ``(n, ...)`` by site.
            number: of the step.
            on_votes: by draw whether it takes its labels from the votes instead of its parameters, ``(n,)``.
        """
        n = len(next(iter(draws.values())))
        on_votes = np.zeros(n, bool) if on_votes is None else on_votes
        share = 0.0
        for _ in range(TRIES):
            counts, priors, reals, accepted = self._given_labels(draws, leap, key, number, on_votes)
            share = float(accepted.mean())
            if share < FEW:
                leap /= 2
            elif share > MANY:
                leap = min(1.25 * leap, LONGEST)
            if share >= FEW / 2:
                break
        after = dict(reals)
        if self.tails:
            dims = parameter_names(self.model, self.annotations).dims
            counts = {
                name: with_tails(rng, values, priors[name]) if dims[name][:1] == ("worker",) else values
                for name, values in counts.items()
            }
        for name, values in counts.items():
            blocks = np.array_split(values, min(n, 1 + values.size // BLOCK))
            each = [rng] if len(blocks) == 1 else rng.spawn(len(blocks))
            with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as pool:
                after[name] = np.concatenate(list(pool.map(dirichlet_rows, each, blocks)))
        return after, leap, share

    def _given_labels(
        self, draws: Draws, leap: float, key: Array, number: int, on_votes: np.ndarray
    ) -> tuple[Draws, Draws, Draws, np.ndarray]:
        """Return what the function of this name does of all draws, by one program whatever their number."""
        n = len(on_votes)
        together = n if self.often or n % TOGETHER else TOGETHER
        parts = [
            (_often if self.often else _rarely)(
                *self[:3],
                {name: value[first : first + together] for name, value in draws.items()},
                self.curvatures,
                np.float32(leap),
                key,
                np.int32(number),
                np.int32(first),
                on_votes[first : first + together],
                moved=self.moved,
                at_once=max(each for each in divisors(together) if each <= max(1, AT_ONCE / self.size)),
                leaps=self.leaps,
                tails=self.tails or not self.often,
            )
            for first in range(0, n, together)
        ]
        found: tuple[Draws, Draws, Draws, np.ndarray] = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        return found


def has_parts(model: Model) -> bool:
    """Return whether the story has shared errors or difficulties of tasks, whose trajectories take too long."""
    return any(model.hyperparameters.get(name) for name in GENERAL if name != "pooled_questions")


def with_tails(rng: np.random.Generator, concentration: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Concentrations of workers' rows given labels, of each worker with the prior or with the one of its heavier tail.

    Args:
        rng: of which of both it is.
        concentration: the prior with the counts, ``(n, J, ..., L)``.
        prior: likewise; where it is another for each worker, it stays.
    """
    is_real = prior[0].reshape(prior.shape[1], -1).sum(-1) > SAME  # what is padded has no prior
    if not np.allclose(prior[:, is_real], prior[:, :1], rtol=SAME, atol=SAME):
        return concentration
    other = concentration.dtype.type(1 / prior.shape[-1])
    counts = np.maximum(concentration - prior, 0)
    given = np.flatnonzero(counts)  # of what nobody gave nothing needs a gamma function
    count, prior_count = counts.ravel()[given], prior.ravel()[given]
    by_cell = _log_growth(count, other) - _log_growth(count, prior_count)
    of_rows = np.bincount(given // prior.shape[-1], count, prior[..., 0].size).reshape(prior.shape[:-1])
    by_row = _log_growth(of_rows, 1) - _log_growth(of_rows, prior[:, :1].sum(-1))  # alike for all workers
    shape = prior.shape[:2]
    of_worker = np.bincount(given // prior[0, 0].size, by_cell, math.prod(shape)).reshape(
        shape
    )  # of none whole numbers
    log_odds = of_worker - by_row.reshape(*shape, -1).sum(-1)
    is_other = (rng.random(log_odds.shape) < expit(log_odds + logit(OTHERWISE))) & is_real
    return np.where(is_other.reshape(*is_other.shape, *[1] * (prior.ndim - 2)), counts + other, concentration)


def _log_growth(count: np.ndarray, prior: Any) -> np.ndarray:
    """By how much the logarithm of a gamma function grows with a count."""
    found: np.ndarray = gammaln(count + prior) - gammaln(prior)
    return found


def dirichlet_rows(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Rows of probabilities of Dirichlet distributions, one of each, of the concentrations' shape and type.

    Gamma variates in logs, one for each number, since those of small concentrations are too small for a float: one of
    shape :math:`a + 1` times :math:`U^{1 / a}` is one of shape :math:`a` (Marsaglia & Tsang 2000, section 6). NumPy
    draws a million in 0.03 seconds; JAX, on CPU, one after the other, in 10.

    Args:
        concentration: above 0, ``(..., K)`` of float32 or float64.
    """
    one = concentration.dtype.type(1)
    rows, powers = rng.standard_gamma(concentration + one, dtype=one.dtype), np.empty_like(concentration)
    rng.standard_exponential(out=powers, dtype=one.dtype)
    powers /= concentration
    np.log(np.maximum(rows, SMALLEST, out=rows), out=rows)
    rows -= powers
    rows -= reduce(np.maximum, np.moveaxis(rows, -1, 0))[..., None]  # along an axis so short NumPy is slow
    np.exp(rows, out=rows)
    rows /= np.einsum("...k->...", rows)[..., None]
    return np.maximum(rows, 2 * SMALLEST, out=rows)


class _Complete:
    """The density of parameters and labels together, with the parameters as their steps move them.

    Args:
        model: the story.
        annotations: the data.
        fixed: parameters that stay where they are.
        names: of those that are drawn.
        moved: tables that take trajectories.
    """

    def __init__(
        self, model: Model, annotations: Annotations, fixed: Parameters, names: Iterable[str], moved: tuple[str, ...]
    ) -> None:
        self.spec = parameter_spec(model, annotations)
        self._given = model, annotations, fixed
        self._moved = moved
        self._bijections = {name: self.spec.bijections[name] for name in self.spec.bijections if name in names}
        self._bijections |= {name: Shares() for name in moved}

    def at(self, own: Parameters) -> Density:
        """The density at parameters in their own space."""
        model, annotations, fixed = self._given
        return density(model, own | fixed, annotations)

    def split(self, own: Parameters) -> tuple[Parameters, Parameters]:
        """The tables with Dirichlet distributions, and the other parameters as real numbers."""
        reals = {name: bijection.inv(own[name]) for name, bijection in self._bijections.items()}
        return {name: value for name, value in own.items() if name not in reals}, reals

    def own(self, reals: Parameters) -> Parameters:
        """The other parameters in their own space."""
        return {name: self._bijections[name](real) for name, real in reals.items()}

    def log_density(self, tables: Parameters, reals: Parameters, latent: Latent) -> Array:
        """Of the parameters as they are moved, in log-odds or as real numbers, and labels, or their probabilities."""
        own = self.own(reals)
        here = self.at(tables | own)
        free = sum(jnp.square(reals[name].mean(-1)).sum() for name in self._moved)
        growth = sum(
            bijection.log_abs_det_jacobian(reals[name], own[name]).sum()
            for name, bijection in self._bijections.items()
            if name not in self._moved
        )
        return here.complete(latent) + here.log_prior_in_log_odds + growth - 0.5 * free

    def counted(self, tables: Parameters, reals: Parameters, latent: Latent) -> Parameters:
        """The tables' Dirichlet concentrations given the labels."""
        return concentrations(tables, jax.grad(self.log_density)(tables, reals, latent))

    def prior(self, tables: Parameters, reals: Parameters) -> Parameters:
        """The tables' Dirichlet concentrations before any annotation."""
        slope = jax.grad(lambda tables: self.at(tables | self.own(reals)).log_prior_in_log_odds)(tables)
        return concentrations(tables, slope)


def concentrations(tables: Parameters, slope: Parameters) -> Parameters:
    """Those of Dirichlet distributions whose log-densities in log-odds have such slopes at the tables."""
    return {name: jnp.maximum(table * slope[name], SMALLEST) for name, table in tables.items()}


@compiled(once=True, static=("moved",))
def _around(
    model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters, moved: tuple[str, ...]
) -> tuple[Parameters, Parameters]:
    """Curvatures of the parameters that take trajectories, and whether tables have Dirichlet distributions.

    Both are taken at the draws' centre, of real values their mean in unconstrained space. A table's posterior given the
    labels is a Dirichlet distribution where its counts are the same whatever the tables are. What is padded does not
    move: its curvature is infinite.
    """
    complete = _Complete(model, annotations, fixed, draws, moved)
    tables, reals = jax.tree.map(lambda value: value.mean(0), jax.vmap(complete.split)(draws))
    latent = complete.at(tables | complete.own(reals)).expected
    slope = jax.grad(complete.log_density, argnums=1)
    found = _curvatures(lambda reals: slope(tables, reals, latent), reals, complete.spec)
    is_real = real_by_plate(annotations)
    for name, curvature in found.items():
        for axis, dim in enumerate(complete.spec.dims[name]):
            if dim in is_real:
                along = is_real[dim].reshape(-1, *[1] * (curvature.ndim - axis - 1))
                found[name] = jnp.where(along, found[name], jnp.inf)
    two = {name: jnp.stack([table, (table + 1 / table.shape[-1]) / 2]) for name, table in tables.items()}
    counts = jax.lax.map(lambda tables: complete.counted(tables, reals, latent), two) if two else two
    return found, {name: jnp.allclose(one, other, rtol=SAME, atol=SAME) for name, (one, other) in counts.items()}


def _given_labels(
    model: Model,
    annotations: Annotations,
    fixed: Parameters,
    draws: Parameters,
    curvatures: Parameters,
    leap: Array,
    key: Array,
    number: Array,
    first: Array,
    on_votes: Array,
    moved: tuple[str, ...],
    at_once: int,
    leaps: int,
    tails: bool,
) -> tuple[Parameters, Parameters, Parameters, Array]:
    """Given labels that are drawn at each draw: the tables' Dirichlet concentrations, draws of the other parameters.

    Args:
        fixed: parameters that stay where they are.
        draws: where each draw is, ``(n, ...)`` by site.
        curvatures: of the parameters that take trajectories.
        number: of this one.
        first: how many draws of this step are before these.
        on_votes: whether labels are drawn from the votes, ``(n,)``.
        moved: tables that are no Dirichlet distributions given the labels, and move as real-valued parameters do.
        at_once: steps that are taken side by side; a divisor of n.
        leaps: of a trajectory.
        tails: whether concentrations before any annotation are asked for.

    Returns:
        The concentrations, those before any annotation, the draws, and which draws' trajectories were accepted.
    """
    complete = _Complete(model, annotations, fixed, draws, moved)
    votes = safe_log(soft_votes(annotations))
    keys = jax.random.split(jax.random.fold_in(key, number), max(NUMBERS[0], len(on_votes)))
    keys = jax.lax.dynamic_slice_in_dim(keys, first, len(on_votes))

    def step(drawn: tuple[Parameters, Array, Array]) -> tuple[Parameters, Parameters, Parameters, Array]:
        own, key, on_votes = drawn
        of_label, of_real = jax.random.split(key)
        at = complete.at(own)
        if at.together is None:
            scores = jnp.where(on_votes & (at.log_joint > -jnp.inf), votes, at.log_joint)  # gold labels stay
            latent = at.latent_by(of_label, scores)
        else:
            of_truth, of_votes, of_kind = jax.random.split(of_label, 3)
            by_votes = jnp.where(at.log_joint > -jnp.inf, votes, at.log_joint)
            truth = jnp.where(on_votes, drawn_classes(of_votes, by_votes), at.drawn(of_truth))
            latent = at.latent(of_kind, truth)
        tables, reals = complete.split(own)
        here, slopes = jax.value_and_grad(complete.log_density, (0, 1))(tables, reals, latent)
        there, accepted = trajectory(
            of_real,
            lambda reals: complete.log_density(tables, reals, latent),
            reals,
            (here, slopes[1]),
            curvatures,
            leap,
            leaps,
        )
        prior = complete.prior(tables, reals) if tails else {}
        return concentrations(tables, slopes[0]), prior, complete.own(there), accepted

    found: tuple[Parameters, Parameters, Parameters, Array] = jax.lax.map(
        step, (draws, keys, on_votes), batch_size=at_once
    )
    return found


_rarely = compiled(_given_labels, once="sooner", static=("moved", "at_once", "leaps", "tails"))
_often = compiled(_given_labels, static=("moved", "at_once", "leaps", "tails"))


class Shares:
    """Rows of probabilities as real numbers: their logarithms, which may have any sum."""

    def __call__(self, real: Array) -> Array:
        """The rows ``(..., K)``."""
        return jax.nn.softmax(real, axis=-1)

    def inv(self, rows: Array) -> Array:
        """Logarithms with the mean 0, ``(..., K)``."""
        logs = safe_log(rows)
        return logs - logs.mean(-1, keepdims=True)


def size_of(model: Model, annotations: Annotations, draws: Mapping[str, Any], fixed: Parameters) -> int:
    """Return how many numbers the density at one of the draws ``(n, ...)`` computes."""
    found: int = known(_size_of, model, annotations, draws, fixed)
    return found


def _size_of(model: Model, annotations: Annotations, draws: Mapping[str, Any], fixed: Parameters) -> int:
    one = {name: value[0] for name, value in draws.items()}
    return computed(lambda own: density(model, own | fixed, annotations).log_posterior_in_log_odds, one)


def computed(function: Callable[[Parameters], Array], at: Parameters) -> int:
    """Return how many numbers a function computes, operation by operation: its cost in time and memory."""

    def of(jaxpr: Jaxpr) -> int:
        return sum(of_operation(operation) for operation in jaxpr.eqns)

    def of_operation(operation: Any) -> int:
        inner = [found for value in operation.params.values() for found in jax.tree.leaves(value, is_leaf=is_program)]
        within = [of(getattr(found, "jaxpr", found)) for found in inner if is_program(found)]
        return operation.params.get("length", 1) * sum(within) or sum(made.aval.size for made in operation.outvars)

    def is_program(value: Any) -> bool:
        return isinstance(value, Jaxpr | ClosedJaxpr)

    return of(jax.make_jaxpr(function)(at).jaxpr)


def divisors(n: int) -> list[int]:
    """The sizes of equal parts of so many."""
    return [size for size in range(1, n + 1) if n % size == 0]  # of others, a step is compiled again for what is left


def trajectory(
    key: Array,
    log_density: Callable[[Parameters], Array],
    start: Parameters,
    at_start: tuple[Array, Parameters],
    curvatures: Parameters,
    leap: Array,
    leaps: int = LEAPS,
) -> tuple[Parameters, Array]:
    """A step of Hamiltonian Monte Carlo of the parameters that have curvatures, and whether it was accepted.

    The log-density and its gradient at the start are given: each place that takes them is compiled by itself, which
    costs more than a small crowd's steps.
    """
    if not curvatures:
        return start, jnp.array(True)
    of_momentum, of_leap, of_choice = jax.random.split(key, 3)
    scale = jax.tree.map(lambda curvature: 1 / jnp.sqrt(curvature), curvatures)
    length = leap * jax.random.uniform(of_leap, minval=0.8, maxval=1.2)

    def scaled(slope: Parameters) -> Parameters:
        return {name: slope[name] * scale[name] for name in scale}

    def leapt(now: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        reals, momentum, slope, _ = now
        momentum = jax.tree.map(lambda p, g: p + length / 2 * g, momentum, slope)
        reals = reals | {name: reals[name] + length * scale[name] * momentum[name] for name in scale}
        value, slope = jax.value_and_grad(log_density)(reals)
        slope = scaled(slope)
        return (reals, jax.tree.map(lambda p, g: p + length / 2 * g, momentum, slope), slope, value), None

    def energy(value: Array, momentum: Parameters) -> Array:
        return 0.5 * sum((p**2).sum() for p in momentum.values()) - value

    keys = dict(zip(scale, jax.random.split(of_momentum, len(scale)), strict=True))
    momentum = {name: jax.random.normal(keys[name], scale[name].shape) for name in scale}
    value, slope = at_start
    (end, last, _, there), _ = jax.lax.scan(leapt, (start, momentum, scaled(slope), value), None, leaps)
    gained = energy(value, momentum) - energy(there, last) + ALLOWED * sum(p.size for p in momentum.values())
    accepted = jnp.log(jax.random.uniform(of_choice)) < gained  # a trajectory that ends in NaN is refused
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, start), accepted


def _curvatures(slope: Callable[[Parameters], Parameters], reals: Parameters, spec: ParameterSpec) -> Parameters:
    r"""The negative second derivative of each real-valued parameter, by its own directions or estimated by random ones.

    The estimate is the mean of :math:`v \cdot (-H v)` over random signs :math:`v` (Bekas, Kokiopoulou & Saad 2007).
    Parameters of neither workers nor tasks with thousands of directions, such as a network's weights, are left out.

    Args:
        slope: of all of them, as a function of them.
        reals: where it is taken.
    """
    nothing = jax.tree.map(jnp.zeros_like, reals)
    apart = {name: [dim in APART for dim in spec.dims[name]] + [False] * real.ndim for name, real in reals.items()}
    ways = {
        name: [1 if apart[name][axis] else size for axis, size in enumerate(real.shape)] for name, real in reals.items()
    }
    taken = [name for name in reals if math.prod(ways[name]) <= MOST or any(apart[name])]
    if not taken:
        return {}
    probed = [name for name in taken if math.prod(ways[name]) > DIRECTIONS]
    most = max(real.ndim for real in reals.values())
    turns: list[tuple[int, ...]] = []  # of which parameter, along which of its directions, and by which probe
    for i, name in enumerate(taken):
        places = itertools.product(*map(range, ways[name])) if name not in probed else [()] * PROBES
        turns += [(i, *place, *[0] * (most - len(place)), j % PROBES) for j, place in enumerate(places)]

    def direction(name: str, place: Array, key: Array) -> Array:
        if name in probed:
            return jax.random.rademacher(key, nothing[name].shape, nothing[name].dtype) / math.sqrt(PROBES)
        at = tuple(slice(None) if apart[name][axis] else place[axis] for axis in range(nothing[name].ndim))
        return nothing[name].at[at].set(1.0)

    def along(total: Parameters, turn: tuple[Array, Array]) -> tuple[Parameters, None]:
        numbers, key = turn
        own = {name: numbers[0] == i for i, name in enumerate(taken)}
        ahead = {name: jnp.where(own[name], direction(name, numbers[1:-1], key), 0.0) for name in taken}
        _, change = jax.jvp(slope, (reals,), (nothing | ahead,))
        return {name: total[name] - jnp.where(own[name], ahead[name] * change[name], 0.0) for name in taken}, None

    each = np.array(turns, dtype=int).reshape(len(turns), most + 2)
    keys = jax.random.split(jax.random.key(0), PROBES)[each[:, -1]]
    found, _ = jax.lax.scan(along, {name: nothing[name] for name in taken}, (jnp.asarray(each), keys))
    return {name: jnp.maximum(jnp.nan_to_num(total, nan=1.0, posinf=1.0), FLATTEST) for name, total in found.items()}
