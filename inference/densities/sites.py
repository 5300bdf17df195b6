"""A story's sites: its parameters, their supports, dimensions and kinds, derived quantities and starting points."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Jaxpr, Var
from numpyro import handlers
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform
from numpyro.infer import init_to_uniform

from ...data import Annotations
from ...data.sharding import as_on_one_device
from ...models import StoryError
from ...models.parts.classifier import PREFIX
from ...models.parts.contract import dim_of_plate
from .enumerated import Parameters, Site, density, is_latent, run_enumerated, site_dims, site_values
from .model import Model
from .padded_sites import Dims, is_table
from .programs import compiled
from .ready_programs import known

MEDIAN_OF = 15  # draws, for a start near the prior's median

TAKEN = {"chain", "draw", "task", "worker", "truth_probability"}  # in results, beside the story's sites


class ParameterSpec(NamedTuple):
    """A story's parameters, and how engines may move them.

    Supports may depend on traced values, so a spec belongs to the trace that it was made in.
    """

    tables: tuple[str, ...]  # Dirichlet sites, whose M-step is closed
    bijections: dict[str, Transform]  # from the reals, for every other parameter
    weights: tuple[str, ...]  # of a classifier, among the latter
    has_factors: bool  # something besides the priors touches the parameters, or a site says that M-steps are not exact
    dims: dict[str, tuple[str, ...]]
    without_posterior: tuple[str, ...]  # sites to optimise, and running statistics

    def to_reals(self, parameters: Parameters) -> Parameters:
        """The parameters that are no tables, unconstrained."""
        return {name: bijection.inv(parameters[name]) for name, bijection in self.bijections.items()}

    def from_reals(self, reals: Parameters) -> Parameters:
        """The parameters that are no tables, in their own space."""
        return {name: self.bijections[name](real) for name, real in reals.items()}


def parameter_spec(model: Model, annotations: Annotations) -> ParameterSpec:
    """Run the story once and look at its sites; inside a compiled function nothing of it is computed."""
    sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=placeholder), None)
    return _spec_of(sites)


def _spec_of(sites: Mapping[str, Site]) -> ParameterSpec:
    """Return the parameters' spec that the sites of one run show.

    Raises:
        StoryError: a parameter is discrete.
    """
    tables, bijections, weights, dims, without_posterior = [], {}, [], {}, []
    has_factors = False
    for name, site in sites.items():
        if site["type"] == "sample":
            # Tables may enter the annotations' probabilities otherwise than as factors and in sums.
            may_overstep = not site.get("infer", {}).get("exact_step", True)
            has_factors |= site["is_observed"] or may_overstep
        elif site["type"] in ("param", "mutable"):
            without_posterior.append(name)
        if not is_latent(site):
            continue
        where = support(site)
        if where.is_discrete:
            raise StoryError(
                f"the site {name!r} is discrete; all parameters of a story are continuous, and 'truth' is its only "
                "discrete site, since engines sum it out: sum others out in an emission, as mace does"
            )
        dims[name] = site_dims(site)
        if is_table(site):
            tables.append(name)
        else:
            bijections[name] = biject_to(where)
        if site["type"] == "param" or name.startswith(PREFIX):
            weights.append(name)
    return ParameterSpec(tuple(tables), bijections, tuple(weights), has_factors, dims, tuple(without_posterior))


def parameter_sites(model: Model, annotations: Annotations) -> dict[str, Site]:
    """The sites of the story's parameters, which hold placeholders for values: for their supports and names."""
    sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=placeholder), None)
    return {name: site for name, site in sites.items() if is_latent(site)}


class ParameterNames(NamedTuple):
    """Names of a story's parameters, and what of them is known without values."""

    dims: dict[str, tuple[str, ...]]  # of each parameter
    without_posterior: frozenset[str]  # sites to optimise, and running statistics of a classifier
    tables: frozenset[str]  # Dirichlet sites


def parameter_names(model: Model, annotations: Annotations) -> ParameterNames:
    """Return the names, found without computing anything, and once for data of one structure and size."""
    leaves, structure = jax.tree.flatten((model, annotations))
    return _names(structure, tuple(jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in leaves))


@lru_cache(maxsize=64)
def _names(structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> ParameterNames:
    found: ParameterNames = known(_traced_names, *jax.tree.unflatten(structure, shapes))
    return found


def _traced_names(model: Model, annotations: Annotations) -> ParameterNames:
    spec: list[ParameterSpec] = []
    jax.eval_shape(lambda *given: spec.append(parameter_spec(*given)), model, annotations)
    return ParameterNames(spec[0].dims, frozenset(spec[0].without_posterior), frozenset(spec[0].tables))


def parameter_dims(model: Model, annotations: Annotations) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of each parameter: :func:`parameter_names`."""
    return dict(parameter_names(model, annotations).dims)


def fitting_dims(model: Model, annotations: Annotations) -> dict[str, tuple[str, ...]]:
    """The names of :func:`parameter_dims`, of annotations as they are given, whose plates have to fit them.

    Raises:
        StoryError: a plate of workers or classes has another size than there are, a site has the name of something
            else in results, or a deterministic site follows from the truth.
    """
    sizes = {"worker": annotations.n_workers, "class": annotations.n_classes}
    dims: dict[str, tuple[str, ...]] = {}

    def look() -> None:
        sampled: list[str] = []  # by the story; a plate of the same name takes the site's place in a trace

        def value(site: Site) -> Array | None:
            if site["type"] == "sample":
                sampled.append(site["name"])
            return placeholder(site)

        sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=value), None)
        spec = _spec_of(sites)
        named = {*spec.dims, *(name for name, site in sites.items() if site["type"] == "deterministic")}
        _check_names(named.union(sampled), {name for name, site in sites.items() if site["type"] == "plate"})
        for name in sorted(named):
            _check_plates(sites[name], sizes)
        dims.update(spec.dims)

    jax.eval_shape(look)
    return dims


def _check_names(of_sites: set[str], of_plates: set[str]) -> None:
    for name in sorted(of_sites & (of_plates | TAKEN)):
        of = "a plate" if name in of_plates else "what results have beside it"
        raise StoryError(f"the site {name!r} has the name of {of}; give it another")


def _check_plates(site: Site, sizes: Mapping[str, int]) -> None:
    """Refuse a site in a plate of another size than its dimension has, or of another shape than its plates have."""
    name, plates = site["name"], site.get("cond_indep_stack", ())
    for frame in plates:
        expected = sizes.get(dim_of_plate(frame.name), frame.size)
        if frame.size != expected:
            raise StoryError(
                f"the site {name!r} stands in the plate {frame.name!r} of size {frame.size}, and the "
                f"annotations have {expected}: take the size from annotations.n_workers or "
                "annotations.n_classes, or give the plate another name"
            )
    if site["type"] != "deterministic" or not plates:
        return
    by_dim = {frame.dim: frame.size for frame in plates}
    needed = tuple(by_dim.get(dim, 1) for dim in range(min(by_dim), 0))
    shape = jnp.shape(site["value"])
    if shape[: len(needed)] != needed:
        within = " and ".join(f"{frame.name!r} of size {frame.size}" for frame in plates)
        raise StoryError(
            f"the deterministic site {name!r} has shape {shape} in the plate {within}: {needed} is needed. A fit sums "
            "the truth out, so that nothing can follow from it; record what follows from the parameters, by "
            "cp.derived(name, value, *dims) outside of all plates"
        )


def site_roles(model: Model, annotations: Annotations) -> dict[str, str]:
    """Roles of the parameters and derived quantities that the story names, found without computing anything.

    Returns:
        by site its :data:`~crowdppl.models.parts.derived.Role`; sites that have none are left out.
    """
    roles: dict[str, str] = {}

    def look() -> None:
        sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=placeholder), None)
        given = {name: site.get("infer", {}).get("role") for name, site in sites.items()}
        roles.update({name: role for name, role in given.items() if role is not None})

    jax.eval_shape(look)
    return roles


def derived(model: Model, parameters: Parameters, annotations: Annotations) -> tuple[Parameters, Dims]:
    """The story's derived quantities at ``parameters`` (:func:`crowdppl.derived`), and their dimensions' names."""
    sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=site_values(parameters)), None)
    found = {name: site for name, site in sites.items() if site["type"] == "deterministic"}
    return {name: site["value"] for name, site in found.items()}, {
        name: site_dims(site) for name, site in found.items()
    }


def starting_point(model: Model, annotations: Annotations, key: Array) -> Parameters:
    """Return the parameters from which engines start, by site: those of :func:`start_and_spec`."""
    return start_and_spec(model, annotations, key)[0]


compiled_start = compiled(starting_point, once=True)
"""Likewise, as one program."""


def start_and_spec(model: Model, annotations: Annotations, key: Array) -> tuple[Parameters, ParameterSpec]:
    """Return the parameters from which engines start, and their spec, by one run of the story.

    A site starts as its ``infer={"start": fn}`` says, ``fn`` a function of a random key. Without it tables are uniform,
    and other parameters near the median of their prior. Running statistics of a classifier are among the values.
    """

    def value(site: Site) -> Any:
        if site["type"] != "sample" or site["is_observed"]:
            return None
        if "start" in site["infer"]:
            return site["infer"]["start"](site["kwargs"]["rng_key"])
        return placeholder(site) if is_table(site) else _in_order(_median(site), site, annotations)

    sites, _ = run_enumerated(model, annotations, handlers.substitute(substitute_fn=value), key)
    running = {name: jnp.asarray(site["value"]["value"]) for name, site in sites.items() if site["type"] == "mutable"}
    spec = _spec_of(sites)
    return {name: jnp.asarray(sites[name]["value"]) for name in spec.dims} | running, spec


def _in_order(value: Array, site: Site, annotations: Annotations) -> Array:
    """A random value whose entries by task are those that the same tasks have on one device."""
    stack = {frame.name: frame.dim for frame in site["cond_indep_stack"]}
    if "task" not in stack:
        return value
    return as_on_one_device(value, annotations, stack["task"] - site["fn"].event_dim)


def _median(site: Site) -> Array:
    """The median of draws from a site's prior, taken in unconstrained space; without a sampler a random value.

    The draws of the first entries along a plate do not depend on its size, so that padding does not change them.
    """
    key, fn = site["kwargs"]["rng_key"], site["fn"]
    try:
        draws = jax.vmap(fn.sample)(jax.random.split(key, MEDIAN_OF))
    except NotImplementedError:
        return init_to_uniform(site)
    transform = biject_to(fn.support)
    return transform(jnp.median(transform.inv(draws), axis=0))


def placeholder(site: Site) -> Array | None:
    """For a latent site a value that costs nothing to make; a table's is uniform."""
    if site["type"] != "sample" or site["is_observed"]:
        return None
    shape = site["fn"].shape()
    return jnp.full(shape, 1 / shape[-1] if shape else 0.5)


def support(site: Site) -> Constraint:
    """Return the support of a parameter's site."""
    return site["kwargs"].get("constraint", constraints.real) if site["type"] == "param" else site["fn"].support


def classifier_decides_annotations(model: Model, annotations: Annotations) -> bool:
    r"""Return whether :math:`P(y \mid z, i, j)` depends on what a classifier says of the task's class.

    It does for ``difficulty``, whose tasks are as difficult as the classifier finds them, and for ``crowd_layer``. Then
    a classifier that has learnt nothing says something wrong of the annotations; else it says nothing. The story's
    operations are followed from the classifier's weights, or from the probabilities that are given in their place;
    nothing is computed.

    Args:
        model: the story.
        annotations: the data.
    """

    def log_likelihood(weights: Parameters, prior: Array | None) -> Array:
        at = density(model, weights, annotations.replace(prior=prior))
        return at.likelihood.log_prob(annotations.label)

    def start() -> Parameters:
        values = starting_point(model, annotations, jax.random.key(0))
        return {name: values[name] for name in parameter_spec(model, annotations).weights}

    weights = jax.eval_shape(start)
    return _depends(jax.make_jaxpr(log_likelihood)(weights, annotations.prior).jaxpr)


def _depends(program: Jaxpr) -> bool:
    """Return whether a program's outputs may come from its inputs, as any output of an operation may from any input."""
    reached = set(program.invars)
    for operation in program.eqns:
        if any(isinstance(value, Var) and value in reached for value in operation.invars):
            reached.update(operation.outvars)
    return any(isinstance(value, Var) and value in reached for value in program.outvars)
