r"""Any story as a Pyro program: its sites and plates are Pyro's, its densities and draws are those of the story itself.

The story is run once, without computing anything, to find its sites. The Pyro program samples them, and where Pyro asks
for their log-densities, one compiled program of JAX gives those of all sites, and of all tasks under every class, and
another the gradient. Nothing of a story is written twice, so that a story of a user's own is a Pyro program too.

JAX's programs are not traced by PyTorch: ``jit_compile=True`` of Pyro, and samplers whose chains are processes, do not
run them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
import pyro
import torch
from jax import Array
from numpyro.distributions import biject_to
from numpyro.distributions import constraints as in_jax
from numpyro.distributions.transforms import Transform
from pyro.distributions import TorchDistribution
from pyro.distributions import constraints as in_torch
from torch import Tensor, nn

from ...data import Annotations
from ...models import Story, StoryError, find_story
from ..densities.enumerated import Parameters, Site, density, is_latent, run_enumerated, site_values
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_sites, placeholder, starting_point, support
from ..sources.memory import InMemory
from .dlpack import Look, home, to_jax, to_torch
from .module_classifier import GivenByTorch
from .module_program import prior_of_module

Program = Callable[..., None]
Shape = torch.Size | list[int] | tuple[int, ...]

SUPPORTS = (
    "simplex",
    "positive",
    "nonnegative",
    "unit_interval",
    "real",
    "real_vector",
    "ordered_vector",
    "lower_cholesky",
    "corr_cholesky",
)
"""Supports that have one name in NumPyro and in Pyro."""

BOUNDED = {
    in_jax.interval: (in_torch.interval, ("lower_bound", "upper_bound")),
    in_jax.greater_than: (in_torch.greater_than, ("lower_bound",)),
    in_jax.less_than: (in_torch.less_than, ("upper_bound",)),
}
"""Supports with bounds, by NumPyro's class."""


REALS = "(reals)"
"""The name of all sampled parameters together where they are one vector."""


class Latent(NamedTuple):
    """A parameter of a story: its site, as Pyro has to know it."""

    name: str
    batch_shape: tuple[int, ...]
    event_shape: tuple[int, ...]
    support: Any
    plates: tuple[tuple[str, int, int], ...]  # names, sizes, dimensions
    is_param: bool  # a value to optimise, without a density


class Scores(NamedTuple):
    """Log-densities at some parameters."""

    latents: dict[str, Any]  # of each parameter's site: its batch shape
    factors: dict[str, Any]  # of regularisers: ()
    by_task: dict[str, Any]  # of each site that scores tasks under every class, such as "truth": (N, K)


def in_pyro(
    story: str | Story | Model,
    *,
    classifier: nn.Module | None = None,
    weight_prior: float | None = None,
    **hyperparameters: Any,
) -> Program:
    """A story as a Pyro program with its truth enumerated by Pyro.

    The program takes :class:`.Annotations`; where their ``label`` is None it draws annotations. Sites are the story's,
    with ``truth`` and ``annotation`` in the plate ``task``. A torch module of the tasks' features is the truth's prior
    by ``in_pyro("dawid_skene", classifier=module)``: it is trained where it is, or with ``weight_prior=1.0`` its
    weights are sites ``classifier.…`` with a normal prior, which any guide or sampler gives a posterior. What else
    gives probabilities of the classes goes to the program as a second argument, their logarithms ``(N, K)``.

    Args:
        story: a story's name, any function that keeps the contract of a story, or a :class:`.Model`.
        classifier: a module from features ``(N, ...)`` to logits ``(N, K)``; with a ``weight_prior`` it runs in
            evaluation mode, and else in the mode that it is in.
        weight_prior: standard deviation of the normal prior of each of its weights; None for weights without one.
        hyperparameters: of the story, and of what goes over any story, such as ``shared_error=True``.

    Raises:
        UnknownNameError: there is no story of that name.
        StoryError: the classifier is no torch module or does not fit the tasks' features and classes, or the deviation
            is not above 0.
    """
    model, by_module = _model_of(story, hyperparameters), prior_of_module(classifier, weight_prior)
    known: Any = WeakKeyDictionary()  # what is found of annotations once

    def program(annotations: Annotations, log_prior: Tensor | None = None) -> None:
        log_prior = by_module(annotations, log_prior)
        here = model if log_prior is None else _with_prior_of_torch(model)
        data, label = _found(known, annotations, given=log_prior is not None)
        run, n_tasks = Run(here, data, log_prior, label), annotations.n_tasks
        everyone = torch.arange(n_tasks, device=home())  # given, or Pyro would shuffle the whole population
        tasks = pyro.plate("task", annotations.population or n_tasks, subsample=everyone, dim=-1)
        _sample(run, Parameter, {("task", -1): tasks})
        scores = run.scores
        for name, value in scores.factors.items():
            pyro.factor(name, value)
        with tasks:
            truth = pyro.sample("truth", Truth(scores.by_task["truth"]), infer={"enumerate": "parallel"})
            for name, value in scores.by_task.items():
                if name not in ("truth", "annotation"):
                    pyro.factor(name, select(value, truth))
            pyro.sample("annotation", Annotated(run, truth), obs=label)

    return program


def marginal_in_pyro(
    story: str | Story | Model,
    *,
    source: InMemory | None = None,
    classifier: nn.Module | None = None,
    weight_prior: float | None = None,
    **hyperparameters: Any,
) -> Program:
    """A story as a Pyro program with its truth summed out: parameters, and the factor ``log_posterior``.

    All sites are continuous, and value and gradient are one compiled program, so that this is the form for guides, HMC
    and NUTS. The program takes :class:`.Annotations`, as an option the log-probabilities of the classes
    (:func:`in_pyro`), and with a ``source`` the positions of the tasks of a minibatch, which stand for all.

    Args:
        story: a story's name, any function that keeps the contract of a story, or a :class:`.Model`.
        source: of minibatches of the annotations.
        classifier: a torch module, and
        weight_prior: the deviation of its weights, as of :func:`in_pyro`.
        hyperparameters: of the story.

    Raises:
        UnknownNameError: there is no story of that name.
        StoryError: as of :func:`in_pyro`.
    """
    model, by_module = _model_of(story, hyperparameters), prior_of_module(classifier, weight_prior)
    known: Any = WeakKeyDictionary()

    def program(annotations: Annotations, log_prior: Tensor | None = None, chosen: Array | None = None) -> None:
        log_prior = by_module(annotations, log_prior)
        here = model if log_prior is None else _with_prior_of_torch(model)
        data, _ = _found(known, annotations, given=log_prior is not None)
        run = Run(here, data, log_prior, None)
        _sample(run, WithinFactor, {})
        pyro.factor("log_posterior", log_posterior(run, source, chosen))

    return program


def log_posterior_at(
    model: Model,
    annotations: Annotations,
    values: dict[str, Tensor],
    log_prior: Tensor | None = None,
    source: InMemory | None = None,
    chosen: Array | None = None,
) -> Tensor:
    """The factor of :func:`marginal_in_pyro` at parameters by site, without Pyro's handlers, which take longer.

    With :func:`to_reals` of the parameters under ``REALS`` it is their log-density on the reals.
    """
    run = Run(model if log_prior is None else _with_prior_of_torch(model), annotations, log_prior, None)
    run.values = values
    return log_posterior(run, source, chosen)


def log_posterior(run: Run, source: InMemory | None = None, chosen: Array | None = None) -> Tensor:
    """The log-posterior of a run's parameters with the truth summed out, ``()``; of a minibatch scaled up to all."""
    names = tuple(run.values)
    inputs = [*run.values.values(), *([] if run.log_prior is None else [run.log_prior])]
    about = (run.model, run.annotations if chosen is None else None, source, chosen)

    def values_and_slopes(arrays: Any) -> Any:
        return _log_posterior(about, list(arrays), names=names)

    def bends(arrays: Any, along: Any) -> Any:
        return _bends(about, list(arrays), list(along), names=names)

    return Look(values_and_slopes, bends)(*inputs)


@compiled(static=("names",))
def _log_posterior(about: tuple, arrays: list[Array], *, names: tuple[str, ...]) -> tuple[Array, list[Array]]:
    def total(arrays: list[Array]) -> Array:
        model, annotations, source, chosen = about
        if chosen is not None:
            annotations = source.take(chosen).replace(population=source.n_tasks)
        if len(arrays) > len(names):
            annotations = annotations.replace(prior=arrays[-1])
        values, log_det = dict(zip(names, arrays, strict=False)), jnp.zeros(())
        if REALS in values:
            sampled, log_det = from_reals(model, annotations, values.pop(REALS))
            values |= sampled
        return (density(model, values, annotations).log_posterior + log_det).astype(float)

    value, slopes = jax.value_and_grad(total)(arrays)
    return value, slopes


def from_reals(model: Model, annotations: Annotations, reals: Array) -> tuple[Parameters, Array]:
    """Return the sampled parameters that a vector ``(D,)`` stands for, and the logarithm of the determinant."""
    values, log_det, begin = {}, jnp.zeros(()), 0
    for name, (bijection, shape) in _bijections(model, annotations).items():
        on_reals = bijection.inverse_shape(shape)
        end = begin + math.prod(on_reals)
        real = reals[begin:end].reshape(on_reals)
        values[name] = bijection(real)
        log_det += bijection.log_abs_det_jacobian(real, values[name]).sum()
        begin = end
    return values, log_det


@compiled
def many_from_reals(model: Model, annotations: Annotations, reals: Array) -> Parameters:
    """Return the sampled parameters of each of several vectors ``(n, D)``."""
    return jax.vmap(lambda one: from_reals(model, annotations, one)[0])(reals)


@compiled
def to_reals(model: Model, annotations: Annotations, values: Parameters) -> Array:
    """Return the vector of the sampled parameters, each unconstrained, in the story's order."""
    bijections = _bijections(model, annotations)
    reals = [bijection.inv(values[name]).ravel() for name, (bijection, _) in bijections.items()]
    return jnp.concatenate([jnp.zeros(0), *reals])  # none where all is optimised


def _bijections(model: Model, annotations: Annotations) -> dict[str, tuple[Transform, tuple[int, ...]]]:
    """Bijections from the reals, and the shapes of their values; made anew in each trace."""
    sites = {n: site for n, site in parameter_sites(model, annotations).items() if site["type"] == "sample"}
    return {name: (biject_to(support(site)), jnp.shape(site["value"])) for name, site in sites.items()}


@compiled(static=("names",))
def _bends(about: tuple, arrays: list[Array], along: list[Array], *, names: tuple[str, ...]) -> list[Array]:
    _, pull = jax.vjp(lambda arrays: _log_posterior(about, arrays, names=names)[1], arrays)
    (found,) = pull(along)
    return found


def _model_of(story: str | Story | Model, hyperparameters: dict[str, Any]) -> Model:
    return story if isinstance(story, Model) else Model(find_story(story), hyperparameters)


def _with_prior_of_torch(model: Model) -> Model:
    """The model whose truth prior is read as log-probabilities from ``annotations.prior``."""
    prior = model.hyperparameters.get("truth_prior")
    if prior is not None and not isinstance(prior, GivenByTorch):
        raise StoryError(
            f"truth_prior={prior!r}, and log-probabilities of the classes are given to the Pyro program too; both are "
            "a prior of the truth: leave one out"
        )
    by = GivenByTorch() if prior is None else prior
    return Model(model.story, {**model.hyperparameters, "truth_prior": by.in_logarithms()}, model.numbers)


def _found(known: Any, annotations: Annotations, *, given: bool) -> tuple[Annotations, Tensor | None]:
    """Annotations of JAX's arrays, without gold labels, which a story does not see; and their labels, made once.

    Args:
        known: what has been made.
        annotations: as the user has them.
        given: whether log-probabilities of the classes are given; even ones then stand for them where there are none.
    """
    by_given = known.setdefault(annotations, {})
    if given not in by_given:
        data, label = annotations.replace(gold=None), annotations.label
        if given and data.prior is None:
            data = data.replace(prior=np.full((data.n_tasks, data.n_classes), 1 / data.n_classes, np.float32))
        labels = None if label is None else torch.as_tensor(np.array(label)).long().to(home())
        by_given[given] = jax.tree.map(jnp.asarray, data), labels
    found: tuple[Annotations, Tensor | None] = by_given[given]
    return found


def _sample(run: Run, make: type[Parameter], plates: dict[tuple[str, int], Any]) -> None:
    """Sample the parameters of a run; a plate that several of them stand in is one."""
    for latent in latents_of(run.model, run.annotations):
        if latent.is_param:
            run.values[latent.name] = _param(run, latent)
            continue
        with ExitStack() as stack:
            for name, size, dim in latent.plates:
                if (name, dim) not in plates:
                    plates[name, dim] = pyro.plate(name, size, dim=dim)
                stack.enter_context(plates[name, dim])
            run.values[latent.name] = pyro.sample(latent.name, make(run, latent))
        run.latents[latent.name] = latent


def _param(run: Run, latent: Latent) -> Tensor:
    def start() -> Tensor:
        return to_torch(_start(run.model, run.annotations, jax.random.key(0))[latent.name]).clone()

    value: Tensor = pyro.param(latent.name, start, constraint=latent.support)
    return value


_start = compiled(starting_point)


class Run:
    """One run of a story: what has been sampled so far, and the log-densities, asked for when all has been.

    Args:
        model: the story.
        annotations: of JAX's arrays.
        log_prior: log-probabilities of the classes ``(N, K)``, where a torch module gives them.
        label: the annotations observed, ``(A,)``; None where they are drawn.
    """

    def __init__(self, model: Model, annotations: Annotations, log_prior: Tensor | None, label: Tensor | None) -> None:
        self.model, self.label, self.log_prior = model, label, log_prior
        self.annotations = annotations
        self.values: dict[str, Tensor] = {}
        self.latents: dict[str, Latent] = {}
        self.structure: Any = None

    @property
    def outer(self) -> torch.Size:
        """Batch dimensions of particles or samples, with ones in the place of the parameters' own plates."""
        shapes = [torch.Size()]
        for name, latent in self.latents.items():
            batch = self.values[name].shape[: self.values[name].ndim - len(latent.event_shape)]
            n_own = len(latent.batch_shape)
            shapes.append(torch.Size([*batch[: len(batch) - n_own], *[1] * n_own]))
        return torch.broadcast_shapes(*shapes)

    def flat(self, outer: torch.Size) -> dict[str, Tensor]:
        """The values with the dimensions of particles as one, the first; without it where there is one particle."""
        values, n = {}, math.prod(outer)
        for name, value in self.values.items():
            latent = self.latents.get(name)
            own = tuple(value.shape) if latent is None else _own_shape(latent)
            if value.numel() == math.prod(own):  # one for all particles
                values[name] = value.reshape(own) if n == 1 else value.reshape(own).expand(n, *own)
            else:
                lead = outer[: len(outer) - len(own) + len(latent.event_shape)]  # type: ignore[union-attr]
                values[name] = value.expand(*lead, *own).reshape(n, *own)
        return values

    @cached_property
    def scores(self) -> Scores:
        """At the values sampled; what has dimensions of particles has them where Pyro does."""
        return self.scores_of(None)

    def scores_of(self, label: Tensor | None) -> Scores:
        """At the values sampled, of other annotations ``(..., A)`` than those observed where they are given."""
        outer, of_label = self.outer, torch.Size() if label is None else label.shape[:-1]
        outer = torch.broadcast_shapes(outer, of_label)
        n = math.prod(outer)
        if label is not None:
            label = label.expand(*outer, label.shape[-1]).reshape(*([] if n == 1 else [n]), label.shape[-1])
        flat = self.flat(outer)
        self.names, self.mapped = tuple(flat), n > 1
        found = _Densities.apply(self, label, self.log_prior, *flat.values())  # type: ignore[no-untyped-call]
        latents, factors, by_task = jax.tree.unflatten(self.structure, found)

        def placed(value: Tensor, n_own: int, n_plates: int) -> Tensor:
            """The particles' dimension as Pyro's, left of ``n_plates`` of them that the value's last ones have."""
            if n == 1:
                return value
            return value.reshape(*outer[: max(len(outer) - n_plates, 0)], *value.shape[value.ndim - n_own :])

        return Scores(
            {
                m: placed(v, len(self.latents[m].batch_shape), len(self.latents[m].batch_shape))
                for m, v in latents.items()
            },
            {m: placed(v, 0, 0) for m, v in factors.items()},
            {m: placed(v, 2, 1) for m, v in by_task.items()},
        )


def _own_shape(latent: Latent) -> tuple[int, ...]:
    return latent.batch_shape + latent.event_shape


class _Densities(torch.autograd.Function):
    """The tensors of :class:`Scores`, in the order of a tree, at tensors of parameters."""

    @staticmethod
    def forward(ctx: Any, run: Run, label: Tensor | None, log_prior: Tensor | None, *values: Tensor) -> Any:
        given = dict(zip(run.names, map(to_jax, values), strict=True))
        prior, of = (None if x is None else to_jax(x) for x in (log_prior, label))
        found, ctx.pull = _forward(run.model, run.annotations, given, prior, of, mapped=run.mapped)
        leaves, run.structure = jax.tree.flatten(found)
        ctx.names, ctx.structure, ctx.mapped = run.names, run.structure, run.mapped
        return tuple(to_torch(leaf) for leaf in leaves)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        down = jax.tree.unflatten(ctx.structure, [to_jax(slope) for slope in slopes])
        of_values, of_prior = _backward(ctx.pull, down, mapped=ctx.mapped)
        by_name = [to_torch(of_values[name]) for name in ctx.names]
        return None, None, None if of_prior is None else to_torch(of_prior), *by_name


@compiled(static=("mapped",))
def _forward(
    model: Model, annotations: Annotations, values: Parameters, log_prior: Any, label: Any, *, mapped: bool
) -> Any:
    """The scores, and the function that pulls their slopes back; annotations stay outside of the gradient."""

    def one(values: Parameters, label: Any) -> Any:
        return jax.vjp(lambda values, prior: scores(model, annotations, values, prior, label), values, log_prior)

    return jax.vmap(one)(values, label) if mapped else one(values, label)


@compiled(static=("mapped",))
def _backward(pull: Any, slopes: Scores, *, mapped: bool) -> Any:
    if not mapped:
        return pull(slopes)
    of_values, of_prior = jax.vmap(lambda pull, slopes: pull(slopes))(pull, slopes)
    return of_values, None if of_prior is None else of_prior.sum(0)


def scores(model: Model, annotations: Annotations, values: Parameters, log_prior: Any, label: Any) -> Scores:
    """All log-densities of a story at its parameters by site.

    Args:
        values: of the parameters.
        log_prior: log-probabilities of the classes ``(N, K)``, where the story's truth prior reads them; or None.
        label: other annotations to score than those of the data; or None.
    """
    data = annotations if log_prior is None else annotations.replace(prior=log_prior)
    sites, by_task = _sites(model, data, site_values(values))
    sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
    densities = {name: site["fn"].log_prob(site["value"]).astype(float) for name, site in sampled.items()}
    at = {name: site["value"] for name, site in by_task.items()} | ({} if label is None else {"annotation": label})
    size = (data.n_classes, data.n_tasks)
    return Scores(
        {name: value for name, value in densities.items() if is_latent(sites[name])},
        {name: value.sum() for name, value in densities.items() if not is_latent(sites[name])},
        {n: jnp.broadcast_to(s["fn"].log_prob(at[n]), size).T.astype(float) for n, s in by_task.items()},
    )


def _sites(
    model: Model, annotations: Annotations, value: Callable[[Site], Any]
) -> tuple[dict[str, Site], dict[str, Site]]:
    """The story's sites as of :func:`.run_enumerated`; where annotations are to be drawn, any stand for them."""
    if annotations.label is None:
        annotations = annotations.replace(label=jnp.zeros(annotations.n_rows, jnp.int32))
    return run_enumerated(model, annotations, value)


class Parameter(TorchDistribution):
    """The distribution of a parameter: its density and draws are those of the NumPyro story."""

    arg_constraints: ClassVar[dict] = {}

    def __init__(self, run: Run, latent: Latent, batch_shape: Shape | None = None) -> None:
        self.run, self.latent = run, latent
        shape = torch.Size(latent.batch_shape if batch_shape is None else batch_shape)
        super().__init__(shape, torch.Size(latent.event_shape), validate_args=False)

    @property
    def support(self) -> Any:
        """The support of its values."""
        return self.latent.support

    def expand(self, batch_shape: Shape, _instance: object = None) -> Parameter:
        """The parameter of several particles."""
        return type(self)(self.run, self.latent, batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The site's log-density where all sites of the run are at their values."""
        return self.run.scores.latents[self.latent.name]

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """A draw as NumPyro takes it, given what has been sampled before."""
        run, own = self.run, _own_shape(self.latent)
        lead = torch.Size([*sample_shape, *self.batch_shape[: len(self.batch_shape) - len(self.latent.batch_shape)]])
        outer = torch.broadcast_shapes(run.outer, torch.Size([*lead, *[1] * len(self.latent.batch_shape)]))
        n = math.prod(outer)
        before = {name: to_jax(value) for name, value in run.flat(outer).items()}
        before = before if n > 1 else jax.tree.map(lambda value: value[None], before)
        drawn = _drawn(run.model, run.annotations, before, _keys(n), name=self.latent.name)
        return to_torch(drawn).clone().reshape(torch.Size([*lead, *own]))


class WithinFactor(Parameter):
    """A parameter whose density is within the factor ``log_posterior``."""

    def log_prob(self, value: Tensor) -> Tensor:
        """Zeros."""
        return value.new_zeros(self.batch_shape)


@compiled(static=("name",))
def _drawn(model: Model, annotations: Annotations, before: Parameters, keys: Array, *, name: str) -> Array:
    def draw(before: Parameters, key: Array) -> Array:
        found: list[Array] = []

        def value(site: Site) -> Array | None:
            if site["name"] == name and not found:
                found.append(site["fn"].sample(key))
            return before.get(site["name"], placeholder(site))

        _sites(model, annotations, value)
        return found[0]

    return jax.vmap(draw)(before, keys)


def _keys(n: int) -> Array:
    """Keys of JAX's that follow from the state of PyTorch's random numbers."""
    return jax.random.split(jax.random.key(int(torch.randint(2**31, ()))), n)


class Truth(TorchDistribution):
    """True classes of the tasks, of log-probabilities ``(..., N, K)`` that are not normalised again.

    Args:
        logits: these, by the name that Pyro gives them where it makes the labels' posterior.
    """

    arg_constraints: ClassVar[dict] = {}
    has_enumerate_support = True

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        super().__init__(logits.shape[:-1], validate_args=False)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Truth:
        """Return the distribution of the tasks, as many times as asked for."""
        return Truth(self.logits.expand(*batch_shape, self.logits.shape[-1]))

    @in_torch.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The classes, 0 to K − 1."""
        return in_torch.integer_interval(0, self.logits.shape[-1] - 1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All classes, ``(K, 1, …)``, or ``(K, …, N)`` where expanded."""
        classes = torch.arange(self.logits.shape[-1], device=self.logits.device)
        classes = classes.reshape(-1, *[1] * len(self.batch_shape))
        return classes.expand(-1, *self.batch_shape) if expand else classes

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of classes ``(..., N)``, or ``(..., 1)`` where enumerated."""
        return select(self.logits, value)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Classes of all tasks."""
        shape = torch.Size(sample_shape) + self.batch_shape
        return torch.distributions.Categorical(logits=self.logits.detach().expand(*shape, -1)).sample()


class Annotated(TorchDistribution):
    """All annotations of each task given its true class; the ``A`` annotations are one event."""

    arg_constraints: ClassVar[dict] = {}
    support = in_torch.independent(in_torch.nonnegative_integer, 1)

    def __init__(self, run: Run, truth: Tensor, batch_shape: Shape | None = None) -> None:
        self.run, self.truth = run, truth
        shape = torch.broadcast_shapes(truth.shape, run.scores.by_task["annotation"].shape[:-1])
        rows = torch.Size([run.annotations.n_rows])
        super().__init__(shape if batch_shape is None else torch.Size(batch_shape), rows, validate_args=False)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Annotated:
        """Return the distribution of the annotations under a truth that is repeated."""
        return Annotated(self.run, self.truth, batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of annotations ``(..., A)`` of each task."""
        found = self.run.scores if value is self.run.label else self.run.scores_of(value)
        return select(found.by_task["annotation"], self.truth)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Annotations of the given workers to the given tasks, ``(..., A)``."""
        run = self.run
        truth = self.truth.expand(torch.Size(sample_shape) + self.batch_shape)
        rows, outer = truth.reshape(-1, truth.shape[-1]), torch.broadcast_shapes(run.outer, (*truth.shape[:-1], 1))
        mapped = math.prod(run.outer) > 1
        values = {name: to_jax(value) for name, value in run.flat(outer if mapped else torch.Size()).items()}
        drawn = _annotated(run.model, run.annotations, values, to_jax(rows), _keys(len(rows)), mapped=mapped)
        return to_torch(drawn).to(torch.int64).reshape(*truth.shape[:-1], -1)


@compiled(static=("mapped",))
def _annotated(
    model: Model, annotations: Annotations, values: Parameters, truth: Array, keys: Array, *, mapped: bool
) -> Array:
    def draw(values: Parameters, key: Array, truth: Array) -> Array:
        emission = _sites(model, annotations, site_values(values))[1]["annotation"]["fn"].emission
        return emission.sample(key, annotations.worker, annotations.task, truth[annotations.task])

    return jax.vmap(draw, in_axes=(0 if mapped else None, 0, 0))(values, keys, truth)


def select(scores: Tensor, truth: Tensor) -> Tensor:
    r"""The scores :math:`s_{i, z_i}`: those of ``(..., N, K)`` at ``truth (..., N)``, or ``(..., 1)`` for all tasks."""
    if scores.ndim == 2 and truth.shape[-1] == 1 and len(scores) > 1:  # whole columns
        return scores.T[truth.squeeze(-1)]
    batch = torch.broadcast_shapes(truth.shape, scores.shape[:-1])
    return scores.expand(*batch, scores.shape[-1]).gather(-1, truth.expand(batch)[..., None])[..., 0]


def latents_of(model: Model, annotations: Annotations) -> tuple[Latent, ...]:
    """The story's parameters in their order, found without computing anything, once for each data set.

    Raises:
        StoryError: a parameter has a support that Pyro does not have, or a classifier keeps running statistics.
    """
    by_model = _LATENTS.setdefault(annotations, {})
    if model not in by_model:
        by_model[model] = _find_latents(model, annotations)
    return by_model[model]


_LATENTS: Any = WeakKeyDictionary()


def _find_latents(model: Model, annotations: Annotations) -> tuple[Latent, ...]:
    found: list[Latent] = []

    def look() -> None:
        sites, _ = _sites(model, annotations, placeholder)
        for name, site in sites.items():
            if site["type"] == "mutable":
                raise StoryError(
                    f"the site {name!r} is a running statistic, which Pyro does not keep: give the classifier as a "
                    "torch module, which keeps its own, or fit with backend='numpyro'"
                )
            if is_latent(site):
                is_param = site["type"] == "param"
                shape = jnp.shape(site["value"]) if is_param else tuple(site["fn"].event_shape)
                batch = () if is_param else tuple(site["fn"].batch_shape)
                plates = tuple((frame.name, frame.size, frame.dim) for frame in site["cond_indep_stack"])
                where = support_in_torch(support(site), name)
                found.append(Latent(name, batch, tuple(shape), where, () if is_param else plates, is_param))

    jax.eval_shape(look)
    return tuple(found)


def support_in_torch(constraint: Any, site: str) -> Any:
    """The constraint of Pyro's that is NumPyro's.

    Args:
        constraint: of NumPyro.
        site: for the message.

    Raises:
        StoryError: Pyro has none like it, or its bounds depend on other parameters.
    """
    if isinstance(constraint, in_jax.independent):
        base = support_in_torch(constraint.base_constraint, site)
        return in_torch.independent(base, constraint.reinterpreted_batch_ndims)
    for name in SUPPORTS:
        if isinstance(constraint, type(getattr(in_jax, name))) and constraint == getattr(in_jax, name):
            return getattr(in_torch, name)
    for kind, (make, bounds) in BOUNDED.items():
        if isinstance(constraint, kind):
            values = [getattr(constraint, bound) for bound in bounds]
            if not any(isinstance(value, jax.core.Tracer) for value in values):
                return make(*(torch.tensor(np.asarray(value), dtype=torch.get_default_dtype()) for value in values))
    raise StoryError(f"the site {site!r} has the support {constraint!r}, which Pyro lacks; fit with backend='numpyro'")
