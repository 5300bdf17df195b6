r"""What a point says of its uncertainty: draws of the parameters around it, by a few steps of data augmentation.

From a mode the true labels are drawn from their posterior, then the parameters given these labels, and so on, for each
draw by itself (Tanner & Wong 1987). The first step is the poor man's data augmentation of Wei & Tanner (1990), which
takes the labels' posterior at the mode for granted: where a part :math:`\gamma` of what the parameters are known by is
missing with the labels, its variances are :math:`1 - \gamma^2` of the posterior's, and after :math:`m` steps
:math:`1 - \gamma^{2m}`. A row of probabilities is drawn from its Dirichlet posterior; other parameters take a step of
Newton's from the mode towards the labels drawn, each for itself, and a normal number with the variance of their
curvature.

It needs no derivation for a story: concentrations and steps are gradients of the complete data's log-density, and a
curvature is a derivative along one direction, since given the labels workers have nothing to do with each other.
"""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...models.parts.emissions import SMALLEST
from .enumerated import Density, Parameters, density
from .model import Model
from .programs import compiled
from .sites import Anatomy, anatomy

STEPS = 8  # of data augmentation: 99 % of the variances where three quarters of the knowledge is missing
AT_ONCE = 2**18  # numbers of the labels' densities that steps are taken of side by side, about
BLOCK = 2**20  # numbers of tables that are drawn at once, about
DIRECTIONS = 600  # along which curvatures are taken at the most; a parameter of more of them stays where it is
FLATTEST = 0.01  # curvature at the least
APART = ("worker", "task")  # dimensions whose members have nothing to do with each other, given the labels


def augmented_draws(
    model: Model, annotations: Annotations, mode: Parameters, fixed: Parameters, n: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draws of the parameters around a mode, by site, ``(n, ...)``.

    Args:
        model: the story.
        annotations: the data.
        mode: the parameters that are drawn, by site.
        fixed: those that stay where they are.
        n: how many draws.
        seed: the same seed gives the same draws.
    """
    rng = np.random.default_rng(seed)
    draws = {name: np.broadcast_to(value, (n, *np.shape(value))) for name, value in mode.items()}
    for key in jax.random.split(jax.random.key(seed), STEPS):
        counts, reals = _given_labels(model, annotations, mode, fixed, draws, jax.random.split(key, n))
        draws = {name: np.asarray(values) for name, values in reals.items()}
        for name, values in counts.items():
            blocks = np.array_split(np.asarray(values), min(n, 1 + values.size // BLOCK))
            draws[name] = np.concatenate([dirichlet_rows(rng, block) for block in blocks])
    return draws


def dirichlet_rows(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Rows of probabilities of Dirichlet distributions, one of each, of the concentrations' shape and type.

    Gamma variates in logs, one for each number, since those of small concentrations are too small for a float: one of
    shape :math:`a + 1` times :math:`U^{1 / a}` is one of shape :math:`a` (Marsaglia & Tsang 2000, section 6). NumPy
    draws a million in 0.1 seconds; JAX, on CPU, one after the other, in 10.

    Args:
        rng: of NumPy.
        concentration: above 0, ``(..., K)``.
    """
    logs = np.log(rng.standard_gamma(concentration + 1.0))
    logs -= rng.standard_exponential(concentration.shape) / concentration
    rows = np.exp(logs - logs.max(-1, keepdims=True))
    rows /= rows.sum(-1, keepdims=True)
    return np.maximum(rows, 2 * SMALLEST).astype(concentration.dtype)


@compiled(once=True)
def _given_labels(
    model: Model, annotations: Annotations, mode: Parameters, fixed: Parameters, draws: Parameters, keys: Array
) -> tuple[Parameters, Parameters]:
    """Given labels that are drawn at each draw: the tables' Dirichlet concentrations, draws of the other parameters."""
    parts = anatomy(model, annotations)
    tables = {name: mode[name] for name in parts.tables}
    reals = {name: bijection.inv(mode[name]) for name, bijection in parts.bijections.items() if name in mode}

    def at(own: Parameters) -> Density:
        return density(model, own | fixed, annotations)

    still = at(mode)

    def of_both(tables: Parameters, reals: Parameters, labels: Array) -> Array:
        """The log-density of parameters in log-odds and labels ``(N, K)``, probabilities or ones and zeros."""
        own = {name: parts.bijections[name](real) for name, real in reals.items()}
        here = at(tables | own)
        return jnp.where(labels > 0, labels * here.log_joint, 0.0).sum() + here.log_prior_in_log_odds

    slopes = jax.grad(of_both, argnums=(0, 1))
    flat = _curvatures(lambda reals: slopes(tables, reals, still.posterior)[1], reals, parts)

    def step(drawn: tuple[Parameters, Array]) -> tuple[Parameters, Parameters]:
        own, key = drawn
        of_label, of_real = jax.random.split(key)
        log_joint = at(own).log_joint
        labels = (jax.random.categorical(of_label, log_joint)[:, None] == jnp.arange(log_joint.shape[-1])).astype(float)
        of_tables, slope = slopes(tables, reals, labels)
        counts = {name: jnp.maximum(table * of_tables[name], SMALLEST) for name, table in tables.items()}
        moved = {}
        for number, (name, real) in enumerate(reals.items()):
            if name in flat:
                noise = jax.random.normal(jax.random.fold_in(of_real, number), real.shape)
                real = real + slope[name] / flat[name] + noise / jnp.sqrt(flat[name])
            moved[name] = parts.bijections[name](real)
        return counts, moved

    at_once = int(np.clip(AT_ONCE / still.log_joint.size, 1, len(keys)))
    return jax.lax.map(step, (draws, keys), batch_size=at_once)


def _curvatures(slope: Callable[[Parameters], Parameters], reals: Parameters, parts: Anatomy) -> Parameters:
    """The negative second derivative of each real-valued parameter, but of those with too many directions.

    Args:
        slope: of all of them, as a function of them.
        reals: where it is taken.
        parts: of the story.
    """
    nothing = jax.tree.map(jnp.zeros_like, reals)
    found = {}
    for name, real in reals.items():
        apart = [dim in APART for dim in parts.dims[name]] + [False] * real.ndim
        ways = [1 if apart[axis] else size for axis, size in enumerate(real.shape)]
        if np.prod(ways, dtype=float) > DIRECTIONS:
            continue

        def add(total: Array, place: Array, name: str = name, apart: list[bool] = apart) -> tuple[Array, None]:
            zeros = nothing[name]
            at = tuple(slice(None) if apart[axis] else place[axis] for axis in range(zeros.ndim))
            direction = zeros.at[at].set(1.0)
            _, change = jax.jvp(slope, (reals,), (nothing | {name: direction},))
            return total - direction * change[name], None

        places = np.array(list(itertools.product(*map(range, ways))), dtype=int).reshape(math.prod(ways), real.ndim)
        total, _ = jax.lax.scan(add, nothing[name], jnp.asarray(places))
        found[name] = jnp.maximum(total, FLATTEST)
    return found
