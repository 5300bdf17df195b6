"""The No-U-Turn sampler on a Pyro story: its NumPyro twin is sampled, at the classifier's probabilities.

A torch classifier's weights are held at EM's solution, so that what is left to sample is the twin's posterior, which
NumPyro compiles; Pyro's own sampler on Pyro's program has the same one, and is slower.
"""

import jax
import jax.numpy as jnp

from .. import nuts
from ..checkpoints import NOWHERE, Checkpoints
from ..outcome import Outcome
from ..settings import NUTSSettings
from ..unused_options import refuse_unused, unused_at_the_start
from . import em
from .options import unused_with_optimizer
from .problem import Problem, to_arrays
from .steps import refuse


def run(
    problem: Problem, key: jax.Array, settings: NUTSSettings, *, progress: bool, keep: Checkpoints = NOWHERE
) -> Outcome:
    """Sample the posterior, each chain from EM's solution; a classifier's weights are held there.

    Raises:
        FloatingPointError: the log-density is not finite where the chains start.
        ValueError: for an option that this story does not use.
    """
    refuse_unused(
        settings,
        unused_at_the_start(has_network=problem.classifier is not None) | unused_with_optimizer(problem.options),
    )
    start = None
    if problem.classifier is None:
        refuse(problem.options, "NUTS", ("optimizer", "scheduler", "clip"))
    else:
        of_em = nuts.start_settings(settings)
        solution = em.solve(problem, key, of_em, progress=progress, keep=keep.within("training"))
        start = {name: jnp.asarray(value) for name, value in to_arrays(solution.parameters).items()}
        settings = settings._replace(epochs=NUTSSettings().epochs, network_rate=NUTSSettings().network_rate)
    data = problem.with_probabilities()
    found = nuts.run(problem.twin, data, key, settings, progress=progress, start=start, keep=keep)
    return found._replace(fixed=problem.fixed())
