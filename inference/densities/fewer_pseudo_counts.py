"""A story whose Dirichlet priors have fewer pseudo-counts, and which is the same in everything else."""

from functools import lru_cache, wraps
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.primitives import Messenger

from ...data import Annotations
from ...models import Story
from .model import Model
from .padded_sites import Site, dirichlet_of, is_table


class _ScaledConcentrations(Messenger):
    """Multiplies the concentrations of Dirichlet sites that are not observed."""

    def __init__(self, power: float) -> None:
        super().__init__(None)
        self._power = power

    def process_message(self, msg: Site) -> None:
        """Put another Dirichlet in the place of the site's, with the same shape."""
        if msg["type"] != "sample" or msg["is_observed"] or not is_table(msg):
            return
        concentration = jnp.broadcast_to(dirichlet_of(msg["fn"]).concentration, msg["fn"].shape()) * self._power
        msg["fn"] = dist.Dirichlet(concentration).to_event(msg["fn"].event_dim - 1)


@lru_cache(maxsize=32)
def _weaker_story(story: Story, power: float) -> Story:
    """One function for each story and power, so that compiled programs are shared."""

    @wraps(story)
    def weaker(annotations: Annotations, **hyperparameters: Any) -> None:
        with _ScaledConcentrations(power):
            story(annotations, **hyperparameters)

    return weaker


def with_fewer_pseudo_counts(model: Model, power: float) -> Model:
    r"""The model whose Dirichlet priors :math:`\text{Dirichlet}(\gamma)` are :math:`\text{Dirichlet}(\alpha \gamma)`.

    Args:
        model: the story with its hyperparameters.
        power: :math:`\alpha`, of the pseudo-counts; other priors stay as they are.
    """
    return Model(_weaker_story(model.story, power), model.hyperparameters, model.numbers)
