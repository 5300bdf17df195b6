r"""Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018) of NUTS on any story.

Parameters are drawn from the story's prior, data from the parameters, draws from the posterior given the data. The rank
of each parameter among its draws is then uniform, whatever the story, where sampler and story are right.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpyro.infer.hmc import HMCState

from ...data import Annotations
from ...models import Story, find_story
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.simulation import simulate
from ..densities.sites import parameter_dims
from ..engines import em, nuts
from ..engines.climber import advance
from ..engines.em_climber import EMClimber
from ..fitted.intervals import checked_tail
from ..sources.memory import InMemory

EM_STEPS = 25  # before each chain, enough to be near the mode of small data
Quantities = Callable[[Parameters], Mapping[str, Array]]


class Sampled(NamedTuple):
    """Simulations from a story with draws of their posteriors. Made by `sample_simulations`."""

    design: Annotations  # who annotates what, the same in every simulation
    labels: np.ndarray  # (simulation, A), the annotations
    actual: Parameters  # (simulation, ...), what they were drawn with
    draws: Parameters  # (simulation, draw, ...)
    divergences: int


class Ranks(NamedTuple):
    """Ranks of the true parameters among their posterior draws. Made by `calibrate`."""

    ranks: pd.DataFrame  # simulations × entries of parameters, each from 0 to n_draws
    n_draws: int  # of each posterior, thinned so that they are nearly independent
    divergences: int  # in all simulations

    def p_values(self, bins: int = 10) -> pd.Series:
        """The p-value of a χ² test that the ranks are uniform, for each entry of the parameters.

        Args:
            bins: into how many bins the ranks are counted.
        """
        from scipy.stats import chi2

        edges = np.linspace(0, self.n_draws + 1, bins + 1)
        expected = len(self.ranks) * np.diff(np.ceil(edges)) / (self.n_draws + 1)
        found = {}
        for name in self.ranks:
            count, _ = np.histogram(self.ranks[name], bins=np.ceil(edges) - 0.5)
            found[name] = chi2.sf(((count - expected) ** 2 / expected).sum(), bins - 1)
        return pd.Series(found, name="p_value")

    def coverage(self, interval: float = 0.95) -> pd.Series:
        """In what share of the simulations the central interval of the draws holds the actual value, for each entry.

        Ranks are whole numbers, so that the interval has the nearest mass that leaves out as many on either side: 95 %
        exactly of 79 draws, for instance, whose 80 ranks lose two and two.

        Args:
            interval: its mass, between 0 and 1.

        Raises:
            ValueError: `interval` is not between 0 and 1.
        """
        beyond = round((self.n_draws + 1) * checked_tail(interval))
        return self.ranks.apply(lambda rank: rank.between(beyond, self.n_draws - beyond).mean()).rename("coverage")


def calibrate(
    story: str | Story,
    *,
    n_tasks: int,
    n_workers: int,
    n_classes: int | None = None,
    n_simulations: int = 200,
    warmup: int = 300,
    draws: int = 63,
    thinning: int = 8,
    quantities: Quantities | None = None,
    features: np.ndarray | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> Ranks:
    r"""Simulation-based calibration of NUTS on a story: ranks of its parameters in simulations from itself.

    Parameters are drawn from the prior, data from the parameters, and draws from the posterior given the data. Where
    story and sampler are right, the rank of each parameter among its draws is uniform (Talts, Betancourt, Simpson,
    Vehtari & Gelman 2018, theorem 1). All simulations are sampled at once, with one chain each.

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        n_tasks: number of tasks N, each annotated by every worker.
        n_workers: number of workers J.
        n_classes: number of classes K, as for :func:`crowdppl.simulate`.
        n_simulations: number of simulated data sets.
        warmup: number of adaptation steps of each chain.
        draws: number of draws of each chain that are kept.
        thinning: of how many draws one is kept.
        quantities: a function from the parameters, by site, to the quantities to rank instead of them, by name: for a
            story with symmetries, quantities that do not depend on the order of groups.
        features: of the tasks, ``(N, ...)``.
        seed: the same seed gives the same ranks.
        **hyperparameters: of the story. The prior should identify the classes, since one chain sees only one
            permutation of them.

    Returns:
        The ranks, simulations × entries of parameters; :meth:`Ranks.p_values` tests whether they are uniform.

    Raises:
        UnknownNameError: there is no story of that name.
        StoryError: the story does not fit these sizes or hyperparameters.
    """
    found = sample_simulations(
        story,
        n_tasks=n_tasks,
        n_workers=n_workers,
        n_classes=n_classes,
        n_simulations=n_simulations,
        warmup=warmup,
        draws=draws,
        thinning=thinning,
        features=features,
        seed=seed,
        **hyperparameters,
    )
    of = quantities or (lambda parameters: parameters)
    of_each = jax.vmap(of)
    wanted, drawn = jax.jit(lambda actual, draws: (of_each(actual), jax.vmap(of_each)(draws)))(
        found.actual, found.draws
    )
    ranks = ranks_among(wanted, drawn)
    return Ranks(ranks, draws, found.divergences)


def ranks_among(actual: Mapping[str, Array], draws: Mapping[str, Array]) -> pd.DataFrame:
    """Ranks of actual values ``(simulation, ...)`` among draws ``(simulation, draw, ...)``: a column each entry."""
    ranks = {name: np.asarray((draws[name] < value[:, None]).sum(1)) for name, value in actual.items()}
    return pd.DataFrame(
        {
            f"{name}[{', '.join(map(str, at))}]" if at else name: rank[(slice(None), *at)]
            for name, rank in ranks.items()
            for at in np.ndindex(rank.shape[1:])
        }
    )


def sample_simulations(
    story: str | Story,
    *,
    n_tasks: int,
    n_workers: int,
    n_classes: int | None = None,
    n_simulations: int,
    warmup: int = 300,
    draws: int,
    thinning: int = 8,
    features: np.ndarray | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> Sampled:
    """Simulations from a story, and draws of the posterior of each: what :func:`calibrate` ranks, with its arguments.

    Simulations of other seeds have the same shapes, so that one compiled program serves all calls of a story.
    """
    story = find_story(story)
    sizes: dict[str, Any] = {"n_tasks": n_tasks, "n_workers": n_workers, "n_classes": n_classes, "features": features}
    model = Model(story, hyperparameters)
    simulated = [simulate(story, seed=seed + i, **sizes, **hyperparameters) for i in range(n_simulations)]
    design = simulated[0][0].replace(gold=None)
    labels = np.stack([annotations.label for annotations, _ in simulated])
    names = list(parameter_dims(model, design))
    actual: Parameters = {name: jnp.stack([parameters[name] for _, parameters in simulated]) for name in names}
    settings = nuts.NUTSSettings(chains=1, warmup=warmup, draws=draws * thinning)
    keys = jax.random.split(jax.random.key(seed), n_simulations)
    sampled, diverging = _sample(model, design, settings, thinning, keys, labels)
    return Sampled(design, labels, actual, sampled, int(diverging.sum()))


def crowd_quantities(model: Model, design: Annotations) -> Quantities:
    """Return quantities that every story has in any order of its groups: confusion matrices and prevalence.

    Each row ``(K,)`` lacks its last probability, which follows from the others; the prevalence is included where it is
    a parameter.
    """

    def quantities(parameters: Parameters) -> dict[str, Array]:
        emission = density(model, dict(parameters), design).likelihood.emission
        found = {"confusion": emission.confusions(design)[..., :-1]}
        if "prevalence" in parameters:
            found["prevalence"] = parameters["prevalence"][:-1]
        return found

    return quantities


@compiled(static=("model", "settings", "thinning"), once="sooner")
def _sample(
    model: Model, design: Annotations, settings: nuts.NUTSSettings, thinning: int, keys: Array, labels: Array
) -> tuple[Parameters, Array]:
    """Thinned draws of each data set's posterior ``(simulation, draw, ...)``, and which draws diverged."""
    em_settings = em.EMSettings(tolerance=-1.0)
    n_steps = jnp.full(settings.draws // thinning, thinning).at[0].add(settings.warmup)  # one program of a step for all

    def sample(key: Array, label: Array) -> tuple[Parameters, Array]:
        annotations = design.replace(label=label)
        state = em.init(model, annotations, key)
        state, _ = advance(EMClimber(model, em_settings), InMemory(annotations), state, EM_STEPS + 1)
        start = nuts.start_at(model, annotations, state.parameters)
        chain = nuts.init(model, start, key, settings)

        def thinned(chain: HMCState, n_steps: Array) -> tuple[HMCState, tuple[Parameters, Array]]:
            chain = jax.lax.fori_loop(0, n_steps, lambda _, chain: nuts.step(model, start, chain, settings), chain)
            return chain, (nuts.parameters_at(model, start, chain), chain.diverging)

        _, drawn = jax.lax.scan(thinned, chain, n_steps)
        return drawn

    return jax.vmap(sample)(keys, jnp.asarray(labels))
