"""A story's prior: draws of its parameters, its log-density site by site, and the story with fewer pseudo-counts."""

from functools import lru_cache, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro import handlers
from numpyro.primitives import Messenger

from ...data import Annotations, unknown_name
from ...models import Story, StoryError
from ...models.parts.kernels import SMALLEST
from .enumerated import Parameters, Site, check_contract, is_latent, is_of_tasks, site_values
from .model import Model
from .padded_sites import PaddingWeighsNothing, dirichlet_of, is_table
from .programs import compiled

PROPOSALS = 5  # of a gamma variate


@compiled(static=("model",), once=True)
def prior_draws(model: Model, design: Annotations, keys: Array) -> Parameters:
    """Parameters, true labels and annotations drawn from the story: by site, one draw for each of the keys ``(S,)``.

    Args:
        model: the story. The weights of a network without a prior are as they start.
        design: who annotates what; the labels are not looked at, and gold labels do not count.

    Raises:
        StoryError: nothing can be drawn from the prior of a site.
    """
    unannotated = design.replace(label=None, gold=None)
    return jax.lax.map(lambda key: sampled(model, unannotated, {}, key), keys)


def sampled(model: Model, design: Annotations, parameters: Parameters, key: Array) -> Parameters:
    """Parameters, true labels and annotations of one run of the story, by site; parameters that are given stay so.

    Args:
        design: who annotates what, without labels.

    Raises:
        StoryError: nothing can be drawn from the prior of a site, or the story does not keep the contract.
        UnknownNameError: a parameter is none of the story's.
        ValueError: a parameter has another shape than its site.
    """
    given = handlers.substitute(substitute_fn=site_values(parameters))
    with handlers.trace() as sites, proper(), given, handlers.seed(rng_seed=key):
        model(design)
    check_contract(model.story, {name: site for name, site in sites.items() if is_of_tasks(site)})
    drawn = {name: site for name, site in sites.items() if is_latent(site) or name == "annotation"}
    for name, value in parameters.items():
        if name not in drawn:
            raise unknown_name("parameter", name, [n for n in drawn if n not in ("truth", "annotation")])
        expected = tuple(drawn[name]["fn"].shape()) if drawn[name]["type"] == "sample" else value.shape
        if value.shape != expected:
            raise ValueError(f"parameter {name!r} has shape {value.shape}; {expected} is needed")
    return {name: site["value"] for name, site in drawn.items()}


def proper() -> handlers.substitute:
    """A handler around those that give values to sites, which refuses a prior that nothing can be drawn from.

    Raises:
        StoryError: with the site, when a story runs under the handler.
    """

    def check(site: Site) -> None:
        if site["type"] != "sample" or site["value"] is not None:
            return
        try:
            jax.eval_shape(site["fn"].sample, site["kwargs"]["rng_key"])
        except NotImplementedError as error:
            prior = getattr(site["fn"], "base_dist", site["fn"])
            raise StoryError(
                f"nothing can be drawn from the prior of the site {site['name']!r}, {type(prior).__name__}: give it a "
                f"proper one, such as a wide dist.Normal, or a value in cp.simulate(parameters={{{site['name']!r}: …}})"
            ) from error

    return handlers.substitute(substitute_fn=check)


def quick_rows(key: Array, concentration: Array) -> Array:
    """Rows of probabilities of Dirichlet distributions ``(..., K)``, one of each, in a hundredth of the time of JAX's.

    JAX draws gamma variates on CPU one after the other. Here each has :data:`PROPOSALS` proposals of Marsaglia & Tsang
    (2000), of which 95 in 100 are accepted at the least, and takes the first that is; where none is, which is so of
    one in a million, the first.
    """
    of_normal, of_level, of_power = jax.random.split(key, 3)
    d = concentration + 2 / 3  # of shape + 1, which is at least 1
    normal = jax.random.normal(of_normal, (PROPOSALS, *concentration.shape))
    cube = jnp.maximum(1 + normal / jnp.sqrt(9 * d), 1e-3) ** 3
    level = jax.random.exponential(of_level, normal.shape)
    accepted = -level < 0.5 * normal**2 + d * (1 - cube + jnp.log(cube))
    first = jnp.take_along_axis(cube, accepted.argmax(0)[None], axis=0)[0]
    logs = jnp.log(d * first) - jax.random.exponential(of_power, concentration.shape) / concentration
    return jnp.maximum(jax.nn.softmax(logs, axis=-1), SMALLEST)


def log_prior_by_site(model: Model, parameters: Parameters, annotations: Annotations) -> Parameters:
    """The log-density of each parameter's site given those that it depends on, a number each.

    Sites without a prior, such as the weights of a network that are optimised, are left out.
    """
    with PaddingWeighsNothing(annotations):
        sites = _prior_sites(model, parameters, annotations)
    weights = {name: 1.0 if site["scale"] is None else site["scale"] for name, site in sites.items()}
    return {name: (weights[name] * site["fn"].log_prob(site["value"])).sum() for name, site in sites.items()}


def log_prior_to_scale(model: Model, parameters: Parameters, annotations: Annotations) -> tuple[Array, Array | None]:
    r"""The log-density of the parameters, and of what each worker has of them given the others, to be raised to powers.

    That of a row of probabilities is taken in its log-odds, where :math:`\text{Dirichlet}(\gamma)` is proportional to
    :math:`\prod_k \beta_k^{\gamma_k}` and its power :math:`\alpha` is :math:`\text{Dirichlet}(\alpha \gamma)`: the
    pseudo-counts are multiplied, as the power of a likelihood multiplies counts. (On the simplex the power of a density
    with concentrations below 1 would soon be improper.)

    Returns:
        ``()``, and ``(J,)``, which is None where no parameter is by worker.
    """
    total, by_worker = jnp.zeros(()), None
    for site in _prior_sites(model, parameters, annotations).values():
        each = _log_density_to_scale(site)
        total += each.sum()
        dims = {frame.name: frame.dim for frame in site["cond_indep_stack"]}
        if "worker" in dims:
            of_site = jnp.moveaxis(each, dims["worker"], 0).reshape(annotations.n_workers, -1).sum(-1)
            by_worker = of_site if by_worker is None else by_worker + of_site
    return total, by_worker


def _log_density_to_scale(site: Site) -> Array:
    if not is_table(site):
        return site["fn"].log_prob(site["value"])
    value = jnp.maximum(site["value"], SMALLEST)
    of_table = site["fn"].log_prob(value)  # whose rows may be events of it
    return of_table + jnp.log(value).sum(tuple(range(of_table.ndim, value.ndim)))


def _prior_sites(model: Model, parameters: Parameters, annotations: Annotations) -> dict[str, Site]:
    """The sites of the parameters that have a prior, at these values."""
    values = {**parameters, "truth": jnp.zeros(annotations.n_tasks, jnp.int32)}
    held = handlers.substitute(substitute_fn=site_values(values))
    with handlers.trace() as sites, held, handlers.seed(rng_seed=0):
        model(annotations)
    return {name: site for name, site in sites.items() if site["type"] == "sample" and name in parameters}


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
        power: :math:`\alpha`, of the pseudo-counts; other priors stay as they are.
    """
    return Model(_weaker_story(model.story, power), model.hyperparameters, model.numbers)
