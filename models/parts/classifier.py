r"""A classifier as prior of the true labels: :math:`z_i \sim \text{Categorical}(\text{softmax}(f_w(x_i)))`.

With Dawid & Skene's workers it is the story of Raykar et al. (2010), whose :math:`f` is logistic, and of AggNet
(Albarqouni et al. 2016), whose :math:`f` is a network. The same classifier serves every story.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeGuard, Union

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpyro import handlers
from numpyro.infer.mcmc import MCMCKernel
from numpyro.primitives import mutable

from ...data import Annotations
from ...data.errors import check_name, real_number, truth_value
from .contract import StoryError, promised, set_to
from .truth import needed_features
from .truth_prior import ClassPrior, is_torch_module

if TYPE_CHECKING:  # half a second to import, which only classifiers are worth
    from flax import nnx

NETWORKS = ("logistic", "mlp", "cnn")
HIDDEN = (128,)  # units of the hidden layers, unless given
OF_LINEAR = 1.0  # standard deviation of a logistic regression's weights, unless given: scikit-learn's C = 1
TRIED = 16  # tasks for which a network of the user's own is tried
SUMS_TO_ONE = 1e-4  # how near to it rows are of which probabilities are made
PREFIX = "classifier."  # of the sites of weights and running statistics

UNTRAINED = (
    "the classifier has no prior, so a sampler leaves its weights as they are drawn at the start: it stays untrained; "
    "give Classifier(…, prior=1.0) for weights with a posterior, or crowdppl.fit(method='nuts'), which trains it first"
)

Network = Union[str, "nnx.Module", Callable[[Array], Array]]  # a name in quotes has no |

_BY_NETWORK: Any = ...  # the prior of weights that is not given

_TRAINING: ContextVar[bool] = ContextVar("training", default=False)


def training() -> AbstractContextManager[Any]:
    """Run classifiers in training mode: dropout drops, batch norm normalises by the batch and keeps statistics."""
    return set_to(_TRAINING, True)


@promised
@dataclass(frozen=True, repr=False)
class Classifier(ClassPrior):
    r"""A classifier of the tasks' features, whose probabilities are the prior of the true labels.

    Weights are sites named ``classifier.…``: with a prior, which a logistic regression has by default as in Raykar et
    al., sample sites that have a posterior under SVI and NUTS and a mode under EM; else ``numpyro.param`` sites, which
    EM optimises; :func:`crowdppl.fit` by SVI and NUTS keeps a network's at EM's solution.

    Args:
        network: ``"logistic"``, ``"mlp"``, ``"cnn"``; any Flax NNX module, of which a copy is kept, to start
            from the weights that it has now; or a function without weights from features ``(n, ...)`` to logits
            ``(n, K)``, written with ``jax.numpy``.
        hidden: units of the hidden layers of ``"mlp"`` and ``"cnn"``.
        dropout: share of their hidden units switched off in training.
        batch_norm: whether they normalise over the batch.
        prior: standard deviation of a normal prior of every weight, None for no prior; :data:`OF_LINEAR` for
            ``"logistic"`` and None for others, unless given. Weights are in logits per unit of a feature.
        bias: whether ``"logistic"`` has an intercept of each class; the networks always have.

    Raises:
        UnknownNameError: for a network of another name.
        StoryError: for sizes, shares or deviations that cannot be.
    """

    network: Network = "mlp"
    hidden: tuple[int, ...] = HIDDEN
    dropout: float = 0.5
    batch_norm: bool = False
    prior: float | None = _BY_NETWORK
    bias: bool = True

    kind: ClassVar[str] = "classifier"
    by_task: ClassVar[bool] = True
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.network, str):
            check_name("network", self.network, NETWORKS)
        elif _is_module(self.network):
            from flax import nnx

            object.__setattr__(self, "network", nnx.clone(self.network))  # what it is later is another classifier
        elif is_torch_module(self.network):
            raise StoryError(
                f"network={type(self.network).__name__}: a torch.nn.Module is a story's truth prior as it is; give "
                "cp.fit('dawid_skene', annotations, classifier=module, backend='pyro'), and elsewhere a flax.nnx module"
            )
        elif (linen := sys.modules.get("flax.linen")) is not None and isinstance(self.network, linen.Module):
            raise StoryError(
                f"network={type(self.network).__name__}: a flax.linen module has its weights elsewhere; give one of "
                "flax.nnx, such as nnx.Linear(n_features, n_classes, rngs=nnx.Rngs(0))"
            )
        elif isinstance(self.network, type) or not callable(self.network):
            raise StoryError(
                f"network={self.network!r}: one of {list(NETWORKS)}, a flax.nnx module, or a function from features "
                "to logits is needed; the probabilities of another library's classifier go into a fit by probabilities="
            )
        sizes = self.hidden
        if not (isinstance(sizes, tuple | list) and all(isinstance(size, int) and size > 0 for size in sizes)):
            raise StoryError(f"hidden={self.hidden!r}: the units of each hidden layer, such as (128,), are needed")
        object.__setattr__(self, "hidden", tuple(sizes))
        truth_value("batch_norm", self.batch_norm, error=StoryError)
        if not truth_value("bias", self.bias, error=StoryError) and self.network != "logistic":
            raise StoryError("bias=False is of network='logistic', and other networks have their own; leave it out")
        real_number("dropout", self.dropout, 0, below=1, error=StoryError)
        if self.prior is _BY_NETWORK:
            object.__setattr__(self, "prior", self._usual_prior)
        if self.prior is not None:
            real_number("prior", self.prior, above=0, error=StoryError)

    def __repr__(self) -> str:
        usual = {option.name: option.default for option in fields(self)[1:]} | {"prior": self._usual_prior}
        changed = [f"{name}={getattr(self, name)!r}" for name, value in usual.items() if getattr(self, name) != value]
        return f"{type(self).__name__}({', '.join([repr(self.network), *changed])})"

    @property
    def is_linear(self) -> bool:
        """True for a logistic regression, for which Newton's steps are right."""
        return self.network == "logistic"

    @property
    def is_network(self) -> bool:
        """True where it has weights that want training in minibatches."""
        return self._has_weights and not self.is_linear

    @property
    def has_posterior(self) -> bool:
        """True where its weights have a prior."""
        return self.prior is not None

    @property
    def normalises_batches(self) -> bool:
        """True where it has a layer of batch norm, which cannot learn from a single task."""
        if isinstance(self.network, str):
            return self.batch_norm and not self.is_linear
        if not _is_module(self.network):
            return False
        from flax import nnx

        return any(isinstance(part, nnx.BatchNorm) for _, part in nnx.iter_graph(self.network))

    @property
    def _usual_prior(self) -> float | None:
        return OF_LINEAR if self.is_linear else None

    @property
    def _has_weights(self) -> bool:
        return isinstance(self.network, str) or _is_module(self.network)

    def shapes(self, shape: tuple[int, ...], n_classes: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights and running statistics by site, for features of ``shape`` each; none of a function."""
        if not self._has_weights:
            return {}
        parts = _parts(self, shape, n_classes)
        return {name: value.shape for name, value in (parts.weights | parts.running).items()}

    def __call__(self, annotations: Annotations) -> Array:
        """Log-probabilities of the classes of each task, ``(N, K)``.

        Raises:
            StoryError: the tasks have no features, or the network's logits are not ``(N, K)``.
        """
        features = jnp.asarray(needed_features(annotations, "the classifier"))
        return self.log_probs(features, annotations.n_classes)

    def check(self, annotations: Annotations) -> None:
        """Look at what a network of the user's own gives for a few tasks.

        Raises:
            StoryError: it does not take the features, gives another shape than logits have, or probabilities.
        """
        if isinstance(self.network, str) or annotations.features is None:
            return

        def logits(x: Array) -> Array:
            with handlers.block(), handlers.seed(rng_seed=0):
                return self._logits(x, annotations.n_classes)

        refuse_probabilities(np.asarray(jax.jit(logits)(jnp.asarray(annotations.features[:TRIED]))))

    def log_probs(self, x: Array, n_classes: int) -> Array:
        """Log-probabilities ``(n, K)`` of features ``(n, ...)``, at the weights that handlers give."""
        return jax.nn.log_softmax(self._logits(x, n_classes))

    def predict_proba(
        self, x: Any, n_classes: int, draws: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Probabilities of the classes for features ``x (n, ...)``, averaged over the weights' draws: ``(n, K)``."""
        own = {name: jnp.asarray(values) for name, values in (draws or {}).items() if name.startswith(PREFIX)}
        held = {name: jnp.asarray(value) for name, value in (fixed or {}).items() if name.startswith(PREFIX)}
        return np.asarray(_mean_probabilities(self, n_classes, jnp.asarray(x), own, held))

    def restored(self, weights: Mapping[str, np.ndarray], annotations: Annotations) -> Self:
        """The classifier, if the weights that a file has are of its network's shapes.

        Raises:
            StoryError: they are another network's.
        """
        shapes = {name: np.shape(value) for name, value in weights.items()}
        needed = self.shapes(np.asarray(annotations.features).shape[1:], annotations.n_classes)
        for name in sorted(set(shapes) | set(needed)):
            if shapes.get(name) != needed.get(name):
                there, here = (s.get(name, "none") for s in (shapes, needed))
                raise StoryError(f"fitted with another network: {name!r} has shape {there} there, {here} here")
        return self

    def to_json(self) -> dict[str, Any]:
        """Its kind and its options; of a network that is no name of :data:`NETWORKS`, only that there was one."""
        options = {option.name: getattr(self, option.name) for option in fields(self)} | {"hidden": list(self.hidden)}
        if not isinstance(self.network, str):
            options["network"] = None
        return {"kind": self.kind, **options}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], network: Any = None) -> Self:
        """The classifier that :meth:`to_json` wrote.

        Args:
            saved: what it wrote.
            network: the Flax module or function, or a classifier that has it, where the network has no name.

        Raises:
            StoryError: a network is needed and was not given.
        """
        options = {name: value for name, value in saved.items() if name != "kind"} | {"hidden": tuple(saved["hidden"])}
        if options["network"] is None:
            if network is None:
                raise StoryError(
                    "the classifier has a network of your own, of which the file has the weights alone; "
                    "give the network: classifier=…"
                )
            options["network"] = network.network if isinstance(network, Classifier) else network
        return cls(**options)

    def _logits(self, x: Array, n_classes: int) -> Array:
        if not isinstance(self.network, str) and not _is_module(self.network):
            return _checked(_called(partial(_of_function, self.network), x), x, n_classes)
        parts = _parts(self, x.shape[1:], n_classes)
        running = {name: mutable(name, {"value": _wide(value)}) for name, value in parts.running.items()}
        values = {name: jnp.asarray(holder["value"]) for name, holder in running.items()}  # Flax writes into NumPy's
        values |= {name: self._weight(name, shape, x.shape[1:], n_classes) for name, shape in parts.weights.items()}
        if not _TRAINING.get():
            network = parts.merge(values, jax.random.key(0))
            network.eval()
            return _checked(_called(network, x), x, n_classes)
        network = parts.merge(values, _typed(numpyro.prng_key()))
        network.train()
        logits = _checked(_called(network, x), x, n_classes)
        after = _variables(network)
        for name, holder in running.items():
            holder["value"] = jax.lax.stop_gradient(after[name][...]).astype(holder["value"].dtype)
        return logits

    def _weight(self, name: str, like: jax.ShapeDtypeStruct, shape: tuple[int, ...], n_classes: int) -> Array:
        def start(key: Array | None) -> Array:
            if key is None:
                raise StoryError(
                    f"the classifier's weight {name!r} has no value here: give trained weights, as in "
                    "Predictive(story, samples, params=svi_result.params), or give the classifier a prior=, under "
                    "which weights are sampled"
                )
            if self.prior is None and _is_sampled():
                warnings.warn(UNTRAINED, stacklevel=2)
            return _variables(_build(self, shape, n_classes, _typed(key)))[name][...].astype(float)

        if self.prior is None:
            return numpyro.param(name, start)
        normal = dist.Normal(0.0, self.prior).expand(like.shape).to_event(len(like.shape))
        return numpyro.sample(name, normal, infer={"start": start})


@partial(jax.jit, static_argnames=("classifier", "n_classes"))
def _mean_probabilities(
    classifier: Classifier, n_classes: int, x: Array, draws: dict[str, Array], fixed: dict[str, Array]
) -> Array:
    """Probabilities ``(n, K)``, averaged over draws ``(chain, draw, ...)`` of the weights, one draw at a time."""

    def probs(weights: dict[str, Array]) -> Array:
        with at_weights(weights):
            return jnp.exp(classifier.log_probs(x, n_classes))

    def add(total: Array, draw: dict[str, Array]) -> tuple[Array, None]:
        return total + probs(draw | fixed), None

    if not draws:
        return probs(fixed)
    flat = jax.tree.map(lambda value: value.reshape(-1, *value.shape[2:]), draws)
    total, _ = jax.lax.scan(add, jnp.zeros((len(x), n_classes)), flat)
    return total / total.sum(-1, keepdims=True)


@contextmanager
def at_weights(weights: Mapping[str, Array]) -> Iterator[None]:
    """Give classifiers their weights and running statistics by site."""

    def value(site: dict[str, Any]) -> Any:
        found = weights.get(site["name"])
        return {"value": found} if site["type"] == "mutable" and found is not None else found

    with handlers.substitute(substitute_fn=value), handlers.seed(rng_seed=0):
        yield


def _is_sampled() -> bool:
    """Return whether one of NumPyro's sampling kernels runs the program: handlers do not tell it from an optimiser."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), MCMCKernel):
            return True
        frame = frame.f_back
    return False


class _Parts(NamedTuple):
    """A network taken apart: its structure, the shapes of its weights, the first values of its running statistics."""

    graph: Any
    state: tuple[tuple[tuple, nnx.Variable | Array], ...]
    weights: dict[str, jax.ShapeDtypeStruct]
    running: dict[str, Array]

    def merge(self, values: dict[str, Array], key: Array) -> nnx.Module:
        """The network with these weights and statistics, and with streams of randomness that come from ``key``."""
        from flax import nnx

        def filled(i: int, path: tuple, variable: nnx.Variable | Array) -> nnx.Variable | Array:
            if not isinstance(variable, nnx.Variable):
                return variable  # an array that the module holds: a constant
            is_key = isinstance(variable, nnx.RngKey)
            return variable.replace(jax.random.fold_in(key, i) if is_key else values.get(_name(path), variable[...]))

        flat = [(path, filled(i, path, variable)) for i, (path, variable) in enumerate(self.state)]
        return nnx.merge(self.graph, nnx.from_flat_state(flat))


@lru_cache(maxsize=64)
def _parts(classifier: Classifier, shape: tuple[int, ...], n_classes: int) -> _Parts:
    from flax import nnx

    with jax.ensure_compile_time_eval():
        graph, state = nnx.split(_build(classifier, shape, n_classes, 0))
    variables = {name: v for name, v in _by_name(state).items() if isinstance(v, nnx.Variable)}
    weights = {name: v for name, v in variables.items() if isinstance(v, nnx.Param)}
    running = {name: v for name, v in variables.items() if not isinstance(v, nnx.Param | nnx.RngState)}
    return _Parts(
        graph,
        tuple(nnx.to_flat_state(state)),
        {name: jax.ShapeDtypeStruct(v.shape, v.dtype) for name, v in weights.items()},
        {name: v[...] for name, v in running.items()},
    )


def _build(classifier: Classifier, shape: tuple[int, ...], n_classes: int, seed: Array | int) -> nnx.Module:
    if _is_module(classifier.network):
        return classifier.network
    from flax import nnx

    from .networks import CNN, MLP, Logistic

    rngs = nnx.Rngs(seed)
    if classifier.network == "logistic":
        return Logistic(shape, n_classes, bias=classifier.bias, rngs=rngs)
    if classifier.network == "cnn" and len(shape) not in (2, 3):
        raise StoryError(f"network='cnn' needs images (height, width) or (height, width, channels), not {shape}")
    make = CNN if classifier.network == "cnn" else MLP
    return make(
        shape,
        n_classes,
        hidden=classifier.hidden,
        dropout=classifier.dropout,
        batch_norm=classifier.batch_norm,
        rngs=rngs,
    )


def _is_module(network: object) -> TypeGuard[nnx.Module]:
    """Return whether it is a module of Flax, of which there is none before Flax is imported."""
    flax = sys.modules.get("flax.nnx")
    return flax is not None and isinstance(network, flax.Module)


def _variables(network: nnx.Module) -> dict[str, nnx.Variable]:
    from flax import nnx

    return _by_name(nnx.state(network))


def _by_name(state: nnx.State) -> dict[str, nnx.Variable]:
    from flax import nnx

    return {_name(path): variable for path, variable in nnx.to_flat_state(state)}


def _name(path: tuple) -> str:
    return PREFIX + ".".join(map(str, path))


def _typed(key: Array) -> Array:
    """A key of JAX's own type, as Flax wants it, where NumPyro has one of plain integers."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)


def _wide(value: Array) -> Array:
    """A real array in the precision that JAX is set to."""
    return value.astype(float) if jnp.issubdtype(value.dtype, jnp.floating) else value


def _called(network: Callable[[Array], Array], x: Array) -> Array:
    """Return the network's logits."""
    try:
        return network(x)
    except (TypeError, ValueError) as error:
        if isinstance(error, StoryError):
            raise
        raise StoryError(
            f"the classifier does not take the tasks' features, of shape {x.shape}, one row a task: "
            f"{str(error).rstrip('.')}; give a network from features of shape "
            f"(tasks, {', '.join(map(str, x.shape[1:]))}) to logits"
        ) from error


def _of_function(function: Callable[[Array], Array], x: Array) -> Array:
    try:
        return function(x)
    except (jax.errors.TracerArrayConversionError, AttributeError) as error:
        why = "turns its features into a NumPy array" if not isinstance(error, AttributeError) else f"fails: {error}"
        raise StoryError(
            f"the classifier's function {why}; write it with jax.numpy, give a torch.nn.Module, or give what it says "
            "of the tasks as probabilities, with truth_prior"
        ) from error


def refuse_probabilities(logits: np.ndarray) -> None:
    """Refuse a classifier's outputs ``(n, K)`` that are probabilities.

    Raises:
        StoryError: they lie between 0 and 1, and each row sums to one.
    """
    if len(logits) and ((logits >= 0) & (logits <= 1)).all() and (np.abs(logits.sum(-1) - 1) < SUMS_TO_ONE).all():
        raise StoryError(
            f"the classifier gives probabilities: its outputs lie between 0 and 1, and each row sums to one "
            f"({[round(float(value), 3) for value in logits[0]]}); logits are needed: leave out the softmax at its "
            "end, or take the logarithm"
        )


def _checked(logits: Array, x: Array, n_classes: int) -> Array:
    if jnp.shape(logits) != (len(x), n_classes):
        raise StoryError(
            f"the classifier gives {jnp.shape(logits)} for {len(x)} tasks of {n_classes} classes; logits of shape "
            f"(tasks, classes) = {(len(x), n_classes)} are needed"
        )
    return jnp.asarray(logits)
