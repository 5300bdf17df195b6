"""The No-U-Turn sampler on a Pyro story with its true labels summed out."""

from typing import Any

import jax
import numpy as np
import pyro
from pyro.infer import MCMC, NUTS
from torch import Tensor

from ..nuts import start_settings
from ..outcome import Outcome
from ..progress import progress_bar
from ..settings import NUTSSettings
from ..unused_options import refuse_unused, unused_at_the_start
from . import em
from .density import Parameters, anatomy, density
from .options import unused_with_optimizer
from .problem import Problem
from .steps import refuse


def run(problem: Problem, key: jax.Array, settings: NUTSSettings, *, progress: bool) -> Outcome:
    """Sample the posterior, one chain after the other, each from EM's solution with probabilities above zero.

    A classifier's weights are held at EM's solution.

    Raises:
        ValueError: for an option that this story does not use.
    """
    refuse_unused(
        settings,
        unused_at_the_start(has_network=problem.classifier is not None) | unused_with_optimizer(problem.options),
    )
    if problem.classifier is None:
        refuse(problem.options, "NUTS", ("optimizer", "scheduler", "clip", "checkpoint", "resume"))
    solution = em.solve(problem, key, start_settings(settings), progress=progress)
    settled = problem.settled()
    values = solution.parameters
    annotations = settled.source.whole().annotations
    bijections = anatomy(settled.model, values, annotations).all_bijections

    def potential(reals: Parameters) -> Tensor:
        parameters = {name: bijections[name](real) for name, real in reals.items()}
        total = density(settled.model, parameters, annotations).log_posterior
        for name, real in reals.items():
            total = total + bijections[name].log_abs_det_jacobian(real, parameters[name]).sum()
        return -total

    start = {name: bijection.inv(values[name]) for name, bijection in bijections.items()}
    chains: list[dict[str, np.ndarray]] = []
    stats: list[dict[str, np.ndarray]] = []
    with progress_bar("NUTS", settings.chains, show=progress) as tell:
        for chain in range(settings.chains):
            kernel = _Recorded(
                potential_fn=potential,
                target_accept_prob=settings.target_accept,
                max_tree_depth=settings.max_tree_depth,
            )
            sampler = MCMC(
                kernel,
                num_samples=settings.draws,
                warmup_steps=settings.warmup,
                initial_params={name: value.clone() for name, value in start.items()},
                disable_progbar=True,
            )
            with pyro.validation_enabled(False):
                sampler.run()
            draws = sampler.get_samples()
            chains.append({name: bijections[name](real).cpu().numpy() for name, real in draws.items()})
            stats.append(kernel.statistics(settings.draws))
            tell(chain + 1, f"chain {chain + 1}")
    return Outcome(
        {name: np.stack([chain[name] for chain in chains]) for name in start},
        problem.fixed(),
        np.zeros(0),
        {name: np.stack([one[name] for one in stats]) for name in stats[0]},
        (),
    )


class _Recorded(NUTS):
    """Pyro's sampler, which records the statistics of each draw that ArviZ has names for."""

    def __init__(self, potential_fn: Any, **options: Any) -> None:
        def counted(reals: Parameters) -> Tensor:
            self.n_gradients += 1
            return potential_fn(reals)

        self.n_gradients = 0
        self._rows: list[dict[str, float]] = []
        self._energy: float | None = None
        super().__init__(potential_fn=counted, **options)

    def _potential(self) -> float:
        return float(self._potential_energy_last)  # type: ignore[arg-type]  # Pyro sets it before the first transition

    def _kinetic_energy(self, r_unscaled: Any) -> Any:
        kinetic = super()._kinetic_energy(r_unscaled)
        if self._energy is None:  # the first of a transition: where its trajectory begins
            self._energy = float(kinetic) + self._potential()
        return kinetic

    def sample(self, params: Any) -> Any:
        """Take one transition, and record its statistics."""
        before, divergences = self.n_gradients, len(self._divergences)
        mean, n = self._mean_accept_prob, max(self._t - int(self._warmup_steps or 0), 0)
        self._energy = None
        found = super().sample(params)
        n_steps = max(self.n_gradients - before, 1)
        self._rows.append(
            {
                "diverging": len(self._divergences) > divergences,
                "energy": self._energy if self._energy is not None else np.nan,
                "acceptance_rate": self._mean_accept_prob * (n + 1) - mean * n,
                "n_steps": n_steps,
                "lp": -self._potential(),
                "step_size": float(self.step_size),
                "tree_depth": int(np.log2(n_steps)) + 1,
            }
        )
        return found

    def statistics(self, n_draws: int) -> dict[str, np.ndarray]:
        """Return the statistics of the last draws, ``(draw,)`` each, by ArviZ's names."""
        rows = self._rows[-n_draws:]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
