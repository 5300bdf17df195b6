"""The No-U-Turn sampler (Hoffman & Gelman 2014) on a story with its true labels summed out."""

import os
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from numpyro.infer import MCMC, NUTS, init_to_value

from ...data import Annotations
from ..densities.enumerated import Parameters
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.sites import constants
from . import em
from .outcome import Outcome
from .settings import EMSettings

FIELDS = {
    "diverging": "diverging",
    "energy": "energy",
    "accept_prob": "acceptance_rate",
    "num_steps": "n_steps",
    "potential_energy": "lp",
    "adapt_state.step_size": "step_size",
}
"""NumPyro's names of the sampler's statistics, and ArviZ's."""


class NUTSSettings(NamedTuple):
    """Options of ``method="nuts"``.

    Args:
        chains: number of chains: in parallel on CPU devices, vectorised on a GPU.
        warmup: adaptation steps of each chain, thrown away.
        draws: draws kept of each chain.
        target_accept: acceptance probability to adapt the step size to; raise it where transitions diverge.
        max_tree_depth: a draw costs at most two to this power gradients.
        max_iterations: of the EM that finds where the chains start.
        tolerance: of the same.
        epochs: of the same, where the story has a network, which stays as EM leaves it.
        network_rate: learning rate of the network's weights there.
    """

    chains: int = 4
    warmup: int = 500
    draws: int = 500
    target_accept: float = 0.8
    max_tree_depth: int = 10
    max_iterations: int = 200
    tolerance: float = 1e-5
    epochs: int = EMSettings().epochs
    network_rate: float = EMSettings().network_rate


def run(model: Model, annotations: Annotations, key: Array, settings: NUTSSettings, *, progress: bool) -> Outcome:
    """Sample the posterior, each chain from the EM solution moved off the edges of the tables."""
    em_key, key = jax.random.split(key)
    shared = {name: getattr(settings, name) for name in ("max_iterations", "tolerance", "epochs", "network_rate")}
    settings_em = EMSettings(**shared)
    values = em.interior_solution(model, annotations, em_key, settings_em, progress=progress)
    fixed = {name: values[name] for name in constants(model, annotations)}
    sampler = MCMC(
        make_kernel(model, values, fixed, settings),
        num_warmup=settings.warmup,
        num_samples=settings.draws,
        num_chains=settings.chains,
        chain_method=_chain_method(settings.chains),
        progress_bar=progress,
    )
    sampler.run(key, annotations, extra_fields=tuple(FIELDS))
    samples = sampler.get_samples(group_by_chain=True)
    draws = {name: np.asarray(value) for name, value in samples.items() if name not in fixed}
    fields = sampler.get_extra_fields(group_by_chain=True)
    stats = {FIELDS[name]: np.asarray(value) for name, value in fields.items()}
    stats["lp"] = -stats["lp"]
    stats["tree_depth"] = np.log2(stats["n_steps"]).astype(int) + 1
    return Outcome(draws, {name: np.asarray(value) for name, value in fixed.items()}, np.zeros(0), stats, ())


def make_kernel(model: Model, values: Parameters, fixed: Parameters, settings: NUTSSettings) -> NUTS:
    """NumPyro's sampler of the story, to start at ``values``, with the sites ``fixed`` held where they are."""
    return NUTS(
        marginal_program(model, fixed),
        init_strategy=init_to_value(values=values),
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
    )


def _chain_method(chains: int) -> str:
    if jax.default_backend() != "cpu":
        return "vectorized"
    return "parallel" if jax.local_device_count() >= chains else "sequential"


def use_all_cores(devices: int = 4) -> None:
    """Let JAX show the CPU as several devices, on which chains run side by side.

    It does nothing where JAX has started already, or where the user has said how many devices there are.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    if getattr(jax.config, "jax_num_cpu_devices", -1) > 0:
        return
    try:
        jax.config.update("jax_num_cpu_devices", max(devices, os.cpu_count() or 1))
    except RuntimeError:
        return
