"""Pyro's No-U-Turn sampler on a story with its true labels summed out, its densities and slopes from JAX.

A torch classifier's weights are held at EM's solution. Chains run one after the other, each from EM's solution moved
off the edges of the probability tables; a checkpoint has the chains that are done, and a chain that was interrupted is
run anew from its own seed, to the same draws.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyro
import torch
from jax import Array
from pyro.infer import NUTS
from pyro.infer.autoguide import init_to_value
from torch import Tensor

from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_names, parameter_spec
from ..engines import em, nuts
from ..engines.checkpoints import NO_CHECKPOINTS, Checkpoints, Tree
from ..engines.interruptions import heeded
from ..engines.outcome import Outcome
from ..engines.progress import progress_bar
from ..engines.settings import NUTSSettings, refuse_unused, unused_at_the_start
from . import module_training
from .dlpack import to_torch
from .problem import Problem
from .program import marginal_in_pyro
from .torch_options import unused_with_optimizer

STAGE = "chains of pyro"  # of a checkpoint
CHUNK = 10  # steps between two looks at the progress
INNER = 0.02  # share of even rows that is mixed into tables where the chains start, to be off their edges

Row = tuple[dict[str, np.ndarray], dict[str, float]]  # a draw by site, and the sampler's statistics
Chain = list[Row]


def run(
    problem: Problem, key: Array, settings: NUTSSettings, *, progress: bool, keep: Checkpoints = NO_CHECKPOINTS
) -> Outcome:
    """Sample the posterior; where ``keep`` says so, an interruption ends sampling with the draws so far.

    Raises:
        FloatingPointError: the log-density is not finite where the chains start.
        KeyboardInterrupt: before there is a draw.
        ValueError: for an option that this story does not use.
    """
    has_module = problem.classifier is not None
    refuse_unused(settings, unused_at_the_start(has_network=has_module) | unused_with_optimizer(problem.options))
    of_em, before = nuts.start_settings(settings), keep.within("before")
    if has_module:
        solution = module_training.solve(problem, key, of_em, progress=progress, keep=before)
    else:
        solution = em.solve(problem.model, problem.data, key, of_em, progress=progress, keep=before)
    data = problem.with_probabilities()
    without_posterior = parameter_names(problem.model, data).without_posterior
    held = {name: solution.parameters[name] for name in without_posterior}
    start = {name: to_torch(value).clone() for name, value in _inner(problem.model, data, solution.parameters).items()}
    program = marginal_in_pyro(problem.model)
    seeds = np.asarray(jax.random.randint(key, (settings.chains,), 0, 2**31 - 1)).tolist()
    chains: list[Chain] = []
    if (found := keep.found(STAGE)) is not None:
        chains = [_unpacked(chain) for chain in found]
    facts: dict[str, Any] = {}
    total = settings.warmup + settings.draws
    with progress_bar("NUTS", settings.chains * total, show=progress) as bar:
        for seed in seeds[len(chains) :]:
            rows: Chain = []
            tell = partial(_tell, bar, len(chains) * total)
            try:
                _sample(program, data, start, held, seed, settings, rows, tell)
            except KeyboardInterrupt:
                heeded()
                if not keep.interrupts or not (rows or chains):
                    raise
                chains = _longest([*chains, rows])
                sizes = {"draws": len(chains[0]), "chains": len(chains)}
                facts = {"interrupted": sizes | {"how_to_go_on": keep.how_to_go_on}}
                break
            chains.append(rows)
            keep.save(STAGE, partial(_packed_chains, tuple(chains)))
    draws = {n: np.stack([[row[0][n] for row in chain] for chain in chains]) for n in chains[0][0][0]}
    stats = {n: np.array([[row[1][n] for row in chain] for chain in chains]) for n in chains[0][0][1]}
    stats["diverging"] = stats["diverging"].astype(bool)
    stats["n_steps"] = stats["n_steps"].astype(int)
    stats["tree_depth"] = np.log2(stats["n_steps"]).astype(int) + 1
    fixed = problem.fixed() | {name: np.asarray(value) for name, value in held.items()}
    return Outcome(draws, fixed, np.zeros(0), stats, facts)


def _tell(bar: Callable[[int, str], None], before: int, done: int) -> None:
    bar(before + done, "draws of all chains, with warmup")


@compiled
def _inner(model: Model, annotations: Any, parameters: Parameters) -> Parameters:
    """Parameters of EM's solution, off the edges of the tables, where unconstrained space has its infinities."""
    spec = parameter_spec(model, annotations)
    tables = {name: parameters[name] for name in spec.tables}
    inner = {name: (1 - INNER) * table + INNER / table.shape[-1] for name, table in tables.items()}
    return {name: jnp.asarray(inner.get(name, parameters[name])) for name in spec.dims}


class _Counted(NUTS):
    """Pyro's sampler, with the numbers of each draw that ArviZ has names for."""

    def setup(self, warmup_steps: int, *args: Any, **kwargs: Any) -> None:
        super().setup(warmup_steps, *args, **kwargs)
        potential = self.potential_fn

        def counted(point: dict[str, Tensor]) -> Tensor:
            self.n_steps += 1
            return potential(point)

        self.potential_fn = counted

    @property
    def potential(self) -> float:
        """The potential energy at the chain's position."""
        return float(self._potential_energy_last)  # type: ignore[arg-type]

    def _sample_r(self, name: str) -> tuple[Any, Any]:
        momenta = super()._sample_r(name)
        self.kinetic = float(self._kinetic_energy(momenta[1]))
        return momenta

    def drawn(self, point: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, float]]:
        """The next point and the statistics of the way to it."""
        self.n_steps, before = 0, self.potential
        mean, n_divergences = self._mean_accept_prob, len(self._divergences)
        point = self.sample(point)
        warmup: int = self._warmup_steps  # type: ignore[assignment]
        n = self._t - warmup if self._t > warmup else self._t  # draws that Pyro has the mean of
        accepted = n * self._mean_accept_prob - (n - 1) * mean
        return point, {
            "lp": -self.potential,
            "energy": before + self.kinetic,
            "acceptance_rate": accepted,
            "step_size": float(self.step_size),
            "n_steps": self.n_steps,
            "diverging": len(self._divergences) > n_divergences,
        }


def _sample(
    program: Callable[..., None],
    data: Any,
    start: dict[str, Tensor],
    held: Parameters,
    seed: int,
    settings: NUTSSettings,
    rows: Chain,
    tell: Callable[[int], None],
) -> None:
    """Run one chain, whose draws after the warmup are added to ``rows``."""
    torch.manual_seed(seed)
    with pyro.get_param_store().scope():
        for name, value in held.items():
            pyro.param(name, to_torch(jnp.asarray(value)))
        kernel = _Counted(
            program,
            target_accept_prob=settings.target_accept,
            max_tree_depth=settings.max_tree_depth,
            init_strategy=init_to_value(values=start),
        )
        kernel.setup(settings.warmup, data)
        if not math.isfinite(kernel.potential):
            raise FloatingPointError(
                f"the log-density is {-kernel.potential} where the chains start, near the solution "
                "of EM; give priors without zeros, or fit by method='em' to look at the solution"
            )
        point = kernel.initial_params
        for i in range(settings.warmup + settings.draws):
            point, stats = kernel.drawn(point)
            if i >= settings.warmup:
                values = {name: kernel.transforms[name].inv(value) for name, value in point.items()}
                rows.append(({name: value.detach().cpu().numpy().copy() for name, value in values.items()}, stats))
            if (i + 1) % CHUNK == 0:
                tell(i + 1)


def _longest(chains: list[Chain]) -> list[Chain]:
    """Return as many chains as have the most draws together, all cut to one length."""
    n_draws = nuts.most_together(len(chain) for chain in chains if chain)
    return [chain[:n_draws] for chain in chains if len(chain) >= n_draws]


def _packed_chains(chains: tuple[Chain, ...]) -> Tree:
    return [_packed(chain) for chain in chains]


def _packed(chain: Chain) -> Tree:
    return {
        part: {name: np.stack([row[i][name] for row in chain]) for name in chain[0][i]}
        for i, part in enumerate(("draws", "stats"))
    }


def _unpacked(found: Any) -> Chain:
    n = len(found["stats"]["lp"])
    draws, stats = found["draws"], found["stats"]
    return [
        ({name: v[i] for name, v in draws.items()}, {name: v[i].item() for name, v in stats.items()}) for i in range(n)
    ]
