"""A story's sites: parameters, their supports, dimensions and kinds, derived quantities, starts, emissions' rows."""

from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr, Var
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform
from numpyro.infer import init_to_uniform

from ...data import Annotations, Ids
from ...data.arrays import BY_ROW, changed
from ...data.sharding import as_on_one_device
from ...models import Emission, Story, StoryError
from ...models.parts.classifier import PREFIX
from ...models.parts.contract import dim_of_plate, is_promised
from ...models.parts.general import GENERAL
from ...models.parts.truth_prior import CLOSE
from .enumerated import Parameters, Site, density, is_latent, run_enumerated, site_dims, site_values
from .model import Model
from .padded_sites import Dims, dirichlet_of, is_table
from .prior import quick_rows
from .programs import compiled, key_of, traced
from .ready_programs import known

MEDIAN_OF = 15  # draws, for a start near the prior's median

LOOKS = 3  # draws of the parameters, at which a user's own story is asked for expected counts
AT_END = 0.95  # of a row that is near one of its ends
ENTRIES = 2**18  # of the rows of a user's own emission that are looked at, at the most
ACCEPTED = (
    "rows P(annotation | true class) are needed, from 0 and with sum 1, along the last dimension: counts are divided "
    "by their sum, log-probabilities go through jnp.exp, and logits through jax.nn.softmax"
)

_with_steps: deque[tuple[Story, int]] = deque(maxlen=64)  # stories of users that :func:`check_steps` passed, and K

TAKEN = {"annotation", "chain", "draw", "task", "truth", "truth_probability", "worker"}  # beside the story's sites


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
    sites, _ = run_enumerated(model, annotations, placeholder)
    return _spec_of(sites)


def _spec_of(sites: Mapping[str, Site]) -> ParameterSpec:
    """Return the parameters' spec that the sites of one run show."""
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
    sites, _ = run_enumerated(model, annotations, placeholder)
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
    spec = traced(parameter_spec, model, annotations)
    return ParameterNames(spec.dims, frozenset(spec.without_posterior), frozenset(spec.tables))


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

    def look() -> dict[str, tuple[str, ...]]:
        sampled: list[str] = []  # by the story; a plate of the same name takes the site's place in a trace

        def value(site: Site) -> Array | None:
            if site["type"] == "sample":
                around = {frame.name for frame in site["cond_indep_stack"]}
                _check_names({site["name"]} & around, around)
                if site["name"] in sampled:
                    raise StoryError(
                        f"the story samples two sites {site['name']!r}, of which one may be that of cp.tasks or of its "
                        "truth prior; give yours names of their own, or draw many at once in a plate"
                    )
                sampled.append(site["name"])
            return placeholder(site)

        sites, _ = run_enumerated(model, annotations, value)
        spec = _spec_of(sites)
        named = {*spec.dims, *(name for name, site in sites.items() if site["type"] == "deterministic")}
        _check_names(named.union(sampled), {name for name, site in sites.items() if site["type"] == "plate"})
        for name in sorted(named):
            _check_plates(sites[name], sizes)
        return spec.dims

    return traced(look)


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


def check_rows(model: Model, annotations: Annotations) -> None:
    """Refuse a story of a user's own whose emission has rows that are no probabilities.

    The story runs once, at parameters drawn from its prior, and its emission is asked for all annotations; where they
    are many, for one of each worker. A story that promises such rows is not run. What is no number, as at the ends of
    a wide prior, is passed over.

    Args:
        model: the story; the parts that any story takes stay off.

    Raises:
        StoryError: with the emission, the worker, the true class, the row and its sum.
    """
    if is_promised(model.story) or not annotations.n_rows:
        return
    bare = Model(model.story, {name: value for name, value in model.hyperparameters.items() if name not in GENERAL})
    seen = _some_rows(annotations.replace(abstentions=Ids()))
    data = jax.tree.map(jnp.asarray, seen)
    try:
        probs = _probs(bare, data)
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return  # where the fit fails with it, it says so; and a story may have brought values for each row
    if probs is None or probs.ndim != 3:
        return
    probs = np.asarray(probs, dtype=float)
    off = np.maximum(np.abs(probs.sum(-1) - 1), -probs.min(-1))
    a, k = np.unravel_index(np.argmax(np.where(np.isnan(off), 0, off)), off.shape)
    if not off[a, k] > CLOSE:
        return
    names = [] if seen.worker is None else [f"worker {seen.workers[int(seen.worker[a])]!r}"]
    names += [f"task {seen.tasks[int(seen.task[a])]!r}", f"true class {seen.classes[int(k)]!r}"]
    shown = ", ".join(f"{value:.3g}" for value in probs[a, k, :5]) + (", …" if probs.shape[-1] > 5 else "")
    kind = traced(lambda: type(_emission(bare, data)))
    story = getattr(model.story, "__name__", repr(model.story))
    raise StoryError(
        f"{kind.__name__} in the story {story!r} has rows that are no probabilities: at parameters drawn from the "
        f"prior the row of {', '.join(names)} is [{shown}], with sum {probs[a, k].sum():.4g}; {ACCEPTED}"
    )


def check_steps(model: Model, annotations: Annotations) -> None:
    """Refuse a story of a user's own into which a Dirichlet site enters otherwise than EM's steps need.

    Where its probabilities are factors of those of the annotations, and in sums, none of its expected counts is below
    zero, wherever it stands. The story is looked at where its parameters are drawn from their prior. Where EM looks
    after each step whether the density falls, as beside parameters that are no tables, or by ``infer={"exact_step":
    False}``, the story is passed over, and so is one of which this process has looked at so many classes before.

    Raises:
        StoryError: with the site, and how it is written otherwise.
    """
    looked_at = any(story is model.story and n == annotations.n_classes for story, n in _with_steps)
    if is_promised(model.story) or looked_at or not annotations.n_rows:
        return
    bare = Model(model.story, {name: value for name, value in model.hyperparameters.items() if name not in GENERAL})
    data = jax.tree.map(jnp.asarray, _some_rows(annotations.replace(abstentions=Ids())))
    try:
        counts = [_drawn_counts(bare, data, key_of(seed)) for seed in range(LOOKS)]
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return  # as in check_rows
    for name in counts[0]:
        of_site = np.array([each[name] for each in counts])
        lowest, highest = float(np.nanmin(of_site)), float(np.nanmax(np.abs(of_site)))
        if np.isfinite(highest) and lowest < -CLOSE * highest:
            raise StoryError(
                f"the Dirichlet site {name!r} of the story {getattr(model.story, '__name__', repr(model.story))!r} is "
                f"in the way of EM, from whose end all engines start: where one of its probabilities grows the "
                f"annotations become less probable, so that its expected count is {lowest:.3g}. Write the row's other "
                f"probabilities in the place of what is left to one, as {name}[..., 1] for 1 - {name}[..., 0]; draw a "
                'single probability from dist.Beta; or give the site infer={"exact_step": False}, by which EM looks '
                "whether its steps fall"
            )
    _with_steps.append((model.story, annotations.n_classes))


@compiled(once=True)
def _drawn_counts(model: Model, annotations: Annotations, key: Array) -> Parameters:
    """By table its expected counts, at parameters drawn from their prior; none where EM looks after each step.

    Each row of a table is near one of its ends, where a count below zero is far from it.
    """
    sites, _ = run_enumerated(model, annotations, _drawn, key)
    spec = _spec_of(sites)
    if spec.has_factors or spec.bijections:
        return {}
    values = {name: jnp.asarray(sites[name]["value"]) for name in spec.dims}
    tables = {}
    for name in spec.tables:
        row = values[name]
        end = jax.random.randint(key, row.shape[:-1], 0, row.shape[-1])
        tables[name] = AT_END * jax.nn.one_hot(end, row.shape[-1]) + (1 - AT_END) * row
    slope = jax.grad(lambda tables: density(model, values | tables, annotations).total)(tables)
    return {name: table * slope[name] for name, table in tables.items()}


def _some_rows(annotations: Annotations) -> Annotations:
    """The annotations themselves, or where their rows of probabilities are too many the first ones of workers."""
    n = max(1, ENTRIES // annotations.n_classes**2)
    if annotations.n_rows <= n:
        return annotations
    first = np.arange(annotations.n_rows)
    if annotations.worker is not None:
        first = np.sort(np.unique(np.asarray(annotations.worker), return_index=True)[1])
    chosen = first[np.linspace(0, len(first) - 1, min(n, len(first))).astype(int)]
    return annotations.replace(**changed(annotations, ("task", *BY_ROW), lambda values: np.asarray(values)[chosen]))


@compiled(once=True)
def _probs(model: Model, annotations: Annotations) -> Array | None:
    """The emission's rows for each annotation, ``(A, K, L)``; None of one that has none, or whose density is another's.

    A subclass with a `log_prob` of its own is not fitted by the rows that it inherits.
    """
    emission = _emission(model, annotations)
    rows, own = (_place(type(emission), name) for name in ("probs", "log_prob"))
    if type(emission).probs is Emission.probs or own < rows:
        return None
    return emission.probs(annotations.worker, annotations.task)


def _place(kind: type, name: str) -> int:
    """Return how many classes up a method is defined."""
    return next(place for place, each in enumerate(kind.__mro__) if name in vars(each))


def _emission(model: Model, annotations: Annotations) -> Emission:
    """The story's emission at parameters drawn from its prior."""
    _, by_task = run_enumerated(model, annotations, _drawn)
    return by_task["annotation"]["fn"].emission


def _drawn(site: Site) -> Array | None:
    """A draw of a parameter from its prior; of one that nothing can be drawn from some value."""
    if site["type"] != "sample" or site["is_observed"]:
        return None
    if is_table(site):
        concentration = jnp.broadcast_to(dirichlet_of(site["fn"]).concentration, site["fn"].shape())
        return quick_rows(site["kwargs"]["rng_key"], concentration)
    try:
        return site["fn"].sample(site["kwargs"]["rng_key"])
    except NotImplementedError:
        return init_to_uniform(site)


def site_roles(model: Model, annotations: Annotations) -> dict[str, str]:
    """Roles of the parameters and derived quantities that the story names, found without computing anything.

    Returns:
        by site its :data:`~crowdppl.models.parts.derived.Role`; sites that have none are left out.
    """
    sites, _ = traced(lambda: run_enumerated(model, annotations, placeholder))
    given = {name: site.get("infer", {}).get("role") for name, site in sites.items()}
    return {name: role for name, role in given.items() if role is not None}


def derived(model: Model, parameters: Parameters, annotations: Annotations) -> tuple[Parameters, Dims]:
    """The story's derived quantities at ``parameters`` (:func:`crowdppl.derived`), and their dimensions' names."""
    sites, _ = run_enumerated(model, annotations, site_values(parameters))
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

    sites, _ = run_enumerated(model, annotations, value, key)
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
