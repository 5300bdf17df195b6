"""A story's prior: draws of its parameters, and its log-density site by site."""

import jax
import jax.numpy as jnp
from jax import Array
from numpyro import handlers

from ...data import Annotations
from .enumerated import Parameters, is_latent, site_values
from .model import Model
from .programs import compiled


@compiled(static=("model",))
def prior_draws(model: Model, design: Annotations, keys: Array) -> Parameters:
    """Parameters, true labels and annotations drawn from the story: by site, one draw for each of the keys ``(S,)``.

    Args:
        model: the story. The weights of a network without a prior are as they start.
        design: who annotates what; the labels are not looked at, and gold labels do not count.
        keys: random keys.
    """
    unannotated = design.replace(label=None, gold=None)

    def once(key: Array) -> Parameters:
        with handlers.trace() as sites, handlers.substitute(substitute_fn=site_values({})), handlers.seed(rng_seed=key):
            model(unannotated)
        return {name: site["value"] for name, site in sites.items() if is_latent(site) or name == "annotation"}

    return jax.lax.map(once, keys)


def log_prior_by_site(model: Model, parameters: Parameters, annotations: Annotations) -> Parameters:
    """The log-density of each parameter's site given those that it depends on, a number each.

    Sites without a prior, such as the weights of a network that are optimised, are left out.
    """
    values = {**parameters, "truth": jnp.zeros(annotations.n_tasks, jnp.int32)}
    held = handlers.substitute(substitute_fn=site_values(values))
    with handlers.trace() as sites, held, handlers.seed(rng_seed=0):
        model(annotations)
    latents = {name: site for name, site in sites.items() if site["type"] == "sample" and name in parameters}
    return {name: site["fn"].log_prob(site["value"]).sum() for name, site in latents.items()}
