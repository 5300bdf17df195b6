r"""A story with its hyperparameters, and its densities with the true labels summed out.

Everything that engines need of a story is here, written once for all of them. The story is run with ``truth`` set to
all classes at once, ``(K, 1)``, which is what enumeration means; the sites in the plate ``task`` then score every
task under every class, :math:`\log p(z_i = k, y_i \mid \theta)`.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
from jax import Array
from jax.scipy.special import logsumexp
from numpyro import handlers
from numpyro.distributions import Dirichlet, Distribution, biject_to, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform
from numpyro.infer import init_to_median

from ...data import Annotations
from ...models import Given, Responses, Story, StoryError
from ...models.parts.classifier import PREFIX, Classifier, training

UNROLLED = 32  # classes at the most for which sums over them are written out

Parameters = dict[str, Array]
Site = dict[str, Any]
Dims = dict[str, tuple[str, ...]]  # names of the dimensions, by site


@dataclass(frozen=True, eq=False)
class Model:
    """A story and its hyperparameters; equal where both are, so that compiled engines are shared between fits."""

    story: Story
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, annotations: Annotations) -> None:
        """Run the story, as a NumPyro program."""
        self.story(annotations, **self.hyperparameters)

    @property
    def classifier(self) -> Classifier | None:
        """The classifier that is the truth's prior, where there is one."""
        prior = self.hyperparameters.get("truth_prior")
        return prior if isinstance(prior, Classifier) else None

    @property
    def torch_classifier(self) -> Any:
        """The torch classifier whose probabilities are the truth's prior, where there is one."""
        prior = self.hyperparameters.get("truth_prior")
        return prior.by if isinstance(prior, Given) else None

    @cached_property
    def _key(self) -> tuple:
        return (self.story, *((name, _by_value_or_identity(value)) for name, value in self.hyperparameters.items()))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._key == other._key


@dataclass(frozen=True, eq=False)
class _Same:
    value: object

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def _by_value_or_identity(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return value


class Density(NamedTuple):
    """A story's density at some parameters, with every task scored under every class."""

    log_joint: Array  # (N, K) log p(z_i = k, y_i | θ)
    log_prior: Array  # () log p(θ) with regularisers, in the parameters' own space
    scale: Array  # () tasks in the population for each task here
    truth_prior: Array  # (K,) or (N, K) log-probabilities of the classes before any annotation
    responses: Responses
    running: Parameters  # statistics that a classifier keeps while it is trained

    @property
    def log_likelihood(self) -> Array:
        r"""Of each task, the truth summed out: :math:`\log \sum_k p(z_i = k, y_i \mid \theta)`, ``(N,)``."""
        return _log_sum_exp(self.log_joint)

    @property
    def posterior(self) -> Array:
        r""":math:`P(z_i = k \mid y_i, \theta)`, ``(N, K)``."""
        return jax.nn.softmax(self.log_joint, axis=-1)

    @property
    def log_posterior(self) -> Array:
        """Log-posterior of the parameters up to a constant, ``()``."""
        return self.scale * self.log_likelihood.sum() + self.log_prior


def density(
    model: Model, parameters: Parameters, annotations: Annotations, key: Array | None = None, *, train: bool = False
) -> Density:
    """Run the story at ``parameters`` (by site) with the true labels enumerated.

    Args:
        model: the story.
        parameters: by site; sites that are not among them are drawn, or start as the story says.
        annotations: the data.
        key: for what is drawn, and for dropout.
        train: let classifiers run in training mode.
    """
    with training() if train else nullcontext():
        sites, by_task = _run(model, annotations, handlers.substitute(substitute_fn=site_values(parameters)), key)
    log_prior = sum((_log_prob(s).sum() for s in sites.values() if s["type"] == "sample"), start=jnp.zeros(()))
    return Density(
        _log_joint(by_task, annotations),
        log_prior,
        jnp.asarray(_scale(by_task)),
        by_task["truth"]["fn"].log_probs,
        by_task["annotation"]["fn"],
        {name: site["value"]["value"] for name, site in sites.items() if site["type"] == "mutable"},
    )


class Anatomy(NamedTuple):
    """What a story's parameters are, and how engines may move them.

    Supports may depend on traced values, so an anatomy belongs to the trace that it was made in.
    """

    tables: tuple[str, ...]  # Dirichlet sites, whose M-step is closed
    bijections: dict[str, Transform]  # from the reals, for every other parameter
    weights: tuple[str, ...]  # of a classifier, among the latter
    has_factors: bool  # something besides the priors touches the parameters
    dims: dict[str, tuple[str, ...]]
    without_posterior: tuple[str, ...]  # sites to optimise, and running statistics

    def to_reals(self, parameters: Parameters) -> Parameters:
        """The parameters that are no tables, unconstrained."""
        return {name: bijection.inv(parameters[name]) for name, bijection in self.bijections.items()}

    def from_reals(self, reals: Parameters) -> Parameters:
        """The same in their own space."""
        return {name: self.bijections[name](real) for name, real in reals.items()}


def anatomy(model: Model, annotations: Annotations) -> Anatomy:
    """Run the story once and look at its sites; inside a compiled function nothing of it is computed."""
    sites, _ = _run(model, annotations, handlers.substitute(substitute_fn=_placeholder), None)
    latents = {name: site for name, site in sites.items() if is_latent(site)}
    tables = tuple(name for name, site in latents.items() if _is_table(site))
    return Anatomy(
        tables,
        {name: biject_to(_support(site)) for name, site in latents.items() if name not in tables},
        tuple(name for name, site in latents.items() if site["type"] == "param" or name.startswith(PREFIX)),
        any(site["type"] == "sample" and site["is_observed"] for site in sites.values()),
        {name: _dims(site) for name, site in latents.items()},
        tuple(name for name, site in sites.items() if site["type"] in ("param", "mutable")),
    )


def parameter_sites(model: Model, annotations: Annotations) -> dict[str, Site]:
    """The sites of the story's parameters, which hold placeholders for values: for their supports and names."""
    sites, _ = _run(model, annotations, handlers.substitute(substitute_fn=_placeholder), None)
    return {name: site for name, site in sites.items() if is_latent(site)}


def parameter_dims(model: Model, annotations: Annotations) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of each parameter, found without computing anything."""
    dims: dict[str, tuple[str, ...]] = {}
    jax.eval_shape(lambda: dims.update(anatomy(model, annotations).dims))
    return dims


def constants(model: Model, annotations: Annotations) -> set[str]:
    """Names of what has no posterior: sites to optimise, and running statistics of a classifier."""
    names: set[str] = set()
    jax.eval_shape(lambda: names.update(anatomy(model, annotations).without_posterior))
    return names


def site_kinds(model: Model, annotations: Annotations) -> dict[str, str]:
    """What the story says that its parameters and derived quantities are, found without computing anything.

    Returns:
        by site its :data:`~crowdppl.models.parts.derived.Kind`; sites that have none are left out.
    """
    found: dict[str, str] = {}

    def look() -> None:
        sites, _ = _run(model, annotations, handlers.substitute(substitute_fn=_placeholder), None)
        said = {name: site.get("infer", {}).get("kind") for name, site in sites.items()}
        found.update({name: kind for name, kind in said.items() if kind is not None})

    jax.eval_shape(look)
    return found


def derived(model: Model, parameters: Parameters, annotations: Annotations) -> tuple[Parameters, Dims]:
    """The story's derived quantities at ``parameters`` (:func:`crowdppl.derived`), and their dimensions' names."""
    sites, _ = _run(model, annotations, handlers.substitute(substitute_fn=site_values(parameters)), None)
    found = {name: site for name, site in sites.items() if site["type"] == "deterministic"}
    return {name: site["value"] for name, site in found.items()}, {name: _dims(site) for name, site in found.items()}


def starting_point(model: Model, annotations: Annotations, key: Array) -> Parameters:
    """Where engines start: as a site's ``infer={"start": fn}`` says, ``fn`` a function of a random key.

    Without it tables are uniform, and other parameters near the median of their prior. Running statistics of a
    classifier are among the values.
    """
    median = init_to_median(num_samples=15)

    def value(site: Site) -> Any:
        if site["type"] != "sample" or site["is_observed"]:
            return None
        if "start" in site["infer"]:
            return site["infer"]["start"](site["kwargs"]["rng_key"])
        return _placeholder(site) if _is_table(site) else median(site)

    sites, _ = _run(model, annotations, handlers.substitute(substitute_fn=value), key)
    running = {name: jnp.asarray(site["value"]["value"]) for name, site in sites.items() if site["type"] == "mutable"}
    return {name: jnp.asarray(site["value"]) for name, site in sites.items() if is_latent(site)} | running


def marginal_program(
    model: Model, fixed: Parameters | None = None, *, train: bool = False, by_task: bool = False
) -> Callable[[Annotations], None]:
    """The story as a NumPyro program with ``truth`` summed out: the factor ``log_likelihood`` stands in its place.

    It has only continuous sites, so any of NumPyro's samplers, optimisers and guides runs on it.

    Args:
        model: the story.
        fixed: values of sites that are not to be sampled or optimised.
        train: let classifiers run in training mode.
        by_task: have the factor's values by task, in the plate ``task``, and keep the derived quantities; engines need
            neither.
    """

    def program(annotations: Annotations) -> None:
        held = handlers.substitute(substitute_fn=site_values(fixed or {}))
        silent = handlers.block(hide_fn=lambda site: not by_task and site["type"] == "deterministic")
        with training() if train else nullcontext(), silent, held:
            scored = _enumerated(model, annotations)
        log_likelihood = _log_sum_exp(_log_joint(scored, annotations))
        if not by_task:
            numpyro.factor("log_likelihood", _scale(scored) * log_likelihood.sum())
            return
        with numpyro.plate("task", annotations.n_tasks, dim=-1), handlers.scale(scale=_scale(scored)):
            numpyro.factor("log_likelihood", log_likelihood)

    return program


marginal = marginal_program


def _base(fn: Any) -> Any:
    """The distribution beneath expansions, masks and declarations of independence."""
    while isinstance(fn, Distribution) and hasattr(fn, "base_dist"):
        fn = fn.base_dist
    return fn


def _is_table(site: Site) -> bool:
    return site["type"] == "sample" and isinstance(_base(site["fn"]), Dirichlet)


def site_values(parameters: Parameters) -> Callable[[Site], Any]:
    """The values of a run's sites, in the form that each kind of site has them."""

    def value(site: Site) -> Any:
        found = parameters.get(site["name"])
        return {"value": found} if site["type"] == "mutable" and found is not None else found

    return value


def _placeholder(site: Site) -> Array | None:
    """For a latent site a value that costs nothing to make; a table's is uniform."""
    if site["type"] != "sample" or site["is_observed"]:
        return None
    shape = site["fn"].shape()
    return jnp.full(shape, 1 / shape[-1] if shape else 0.5)


def _run(
    model: Model, annotations: Annotations, values: handlers.substitute, key: Array | None
) -> tuple[dict[str, Site], dict[str, Site]]:
    """Sites of the parameters, and sites that score the tasks, of the story run under the handler ``values``."""
    with handlers.trace() as sites, values, handlers.seed(rng_seed=jax.random.key(0) if key is None else key):
        by_task = _enumerated(model, annotations)
    return sites, by_task


def _enumerated(model: Model, annotations: Annotations) -> dict[str, Site]:
    """Run the story with ``truth`` at all classes; hide what it says of single tasks from outer handlers, return it."""
    truth = jnp.arange(annotations.n_classes)[:, None]
    with handlers.block(hide_fn=_scores_tasks), handlers.trace() as sites, handlers.substitute(data={"truth": truth}):
        model(annotations)
    check_contract(model.story, sites)
    return {name: site for name, site in sites.items() if _scores_tasks(site)}


def check_contract(story: Story, sites: Mapping[str, Site]) -> None:
    """Check that a story's sites have what the engines need.

    Args:
        story: for its name.
        sites: of a run of it.

    Raises:
        StoryError: there is no site ``truth`` or ``annotation`` in the plate ``task``.
    """
    for name, helper in (("truth", "cp.tasks(annotations, truth_prior) as truth"), ("annotation", "cp.observe(…)")):
        site = sites.get(name)
        if site is None or all(frame.name != "task" for frame in site.get("cond_indep_stack", ())):
            raise StoryError(
                f"the story {getattr(story, '__name__', repr(story))!r} has no site {name!r} in the plate 'task', "
                f"which the helper {helper} makes; a story reads: with cp.tasks(annotations, truth_prior) as truth: "
                "cp.observe(truth, emission, annotations)"
            )


def _scores_tasks(site: Site) -> bool:
    in_plate = any(frame.name == "task" for frame in site.get("cond_indep_stack", ()))
    return site["type"] == "sample" and in_plate and (site["name"] == "truth" or site["is_observed"])


def is_latent(site: Site) -> bool:
    """Whether the story samples the site, or has it as a parameter to optimise."""
    return site["type"] == "param" or (site["type"] == "sample" and not site["is_observed"])


def _support(site: Site) -> Constraint:
    return site["kwargs"].get("constraint", constraints.real) if site["type"] == "param" else site["fn"].support


def _dims(site: Site) -> tuple[str, ...]:
    """Names of the dimensions of a site's value: its plates, then its ``event_dims`` where the story names them."""
    frames = sorted(site.get("cond_indep_stack", ()), key=lambda frame: frame.dim)
    plates = tuple(frame.name for frame in frames)
    n_event = jnp.ndim(site["value"]) - len(plates)
    events = tuple(site.get("infer", {}).get("event_dims", ()))
    named = events if len(events) == n_event else tuple(f"{site['name']}_dim_{i}" for i in range(n_event))
    return plates + named


def _scale(by_task: dict[str, Site]) -> Array | float:
    scale = by_task["truth"]["scale"]
    return 1.0 if scale is None else scale


def _log_joint(by_task: dict[str, Site], annotations: Annotations) -> Array:
    total = sum(site["fn"].log_prob(site["value"]) for site in by_task.values())
    return jnp.broadcast_to(total, (annotations.n_classes, annotations.n_tasks)).T


def _log_sum_exp(scores: Array) -> Array:
    """Over the classes, ``(N, K)`` to ``(N,)``: class by class, which XLA on CPU does faster than a reduce."""
    if scores.shape[-1] > UNROLLED:
        return logsumexp(scores, axis=-1)
    columns = [scores[:, k] for k in range(scores.shape[-1])]
    peak = jax.lax.stop_gradient(reduce(jnp.maximum, columns))
    return peak + jnp.log(reduce(jnp.add, [jnp.exp(column - peak) for column in columns]))


def _log_prob(site: Site) -> Array:
    log_prob = site["fn"].log_prob(site["value"])
    return log_prob if site["scale"] is None else site["scale"] * log_prob
