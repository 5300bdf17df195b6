"""A look at a story of one's own before it is fitted: whether both of its programs are one story."""

import jax
import numpy as np
import torch

from ....data import Annotations
from ....models import StoryError
from ....models.parts.promises import is_promised
from ...densities import enumerated
from ...densities.model import Model
from ...densities.programs import compiled
from .density import density
from .problem import Problem

CLOSE = 1e-3  # relative difference of log-posteriors, of float32


def check_twins(problem: Problem, key: jax.Array) -> None:
    """Compare the densities of a story's two programs where a fit starts; of what is promised tests have done so.

    Raises:
        StoryError: they differ, with both, or the Pyro program asks for a parameter that the other does not have.
    """
    if is_promised(problem.twin.story) and is_promised(problem.model.story):
        return
    data, name = problem.with_probabilities(), getattr(problem.twin.story, "__name__", repr(problem.twin.story))
    start, settled = problem.start(key), problem.settled()
    at_start = {site: value.cpu().numpy() for site, value in start.items()}
    theirs = float(_log_posterior(problem.twin, at_start, data))
    try:
        with torch.no_grad():
            ours = float(density(settled.model, start, settled.source.whole().annotations).log_posterior)
    except KeyError as missing:
        raise StoryError(
            f"the Pyro program of {name!r} samples {missing}, which its NumPyro program does not; its sites are "
            f"{sorted(start)}"
        ) from None
    if not np.isclose(ours, theirs, rtol=CLOSE, atol=CLOSE):
        raise StoryError(
            f"the two programs of {name!r} are not one story: where the fit starts the log-posterior is {ours:.4f} in "
            f"Pyro and {theirs:.4f} in NumPyro; compare priors and emissions site by site"
        )


@compiled(once=True)
def _log_posterior(model: Model, parameters: enumerated.Parameters, annotations: Annotations) -> jax.Array:
    return enumerated.density(model, parameters, annotations).log_posterior
