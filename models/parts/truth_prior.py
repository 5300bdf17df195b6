"""Priors of the true labels: what is known of a task's class before anyone annotates it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Self, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ...data.errors import look_up, unknown_name
from .contract import StoryError, promised
from .kernels import safe_log
from .own_classes import own_of_tasks, within

CLOSE = 1e-3  # to one, of the sum of shares


class ClassPrior:
    """The interface of a truth prior that can be saved, and that may know new tasks.

    A story calls it once, outside the plates, and gets log-probabilities of the classes. Any function of the
    annotations will do for that; the methods here are for what comes after a fit.
    """

    kind: ClassVar[str]  # its name in files
    by_task: ClassVar[bool]  # whether tasks differ in it, not only their questions
    joint: ClassVar[bool] = False  # whether truths of several units depend on each other
    learns: ClassVar[bool] = False  # whether it is a classifier, whose weights a fit trains
    newton: ClassVar[bool] = False  # whether EM moves its parameters by Newton's steps; they are no tables then
    known: ClassVar[dict[str, type["ClassPrior"]]] = {}  # priors by kind

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            cls.known[cls.kind] = cls

    @property
    def is_network(self) -> bool:
        """True for a classifier that is trained in minibatches."""
        return False

    @property
    def has_posterior(self) -> bool:
        """True for a classifier whose weights have a prior, and with it a posterior."""
        return False

    def __call__(self, annotations: Annotations) -> Array:
        """Log-probabilities of the classes, ``(K,)`` or ``(N, K)``; parameters are sampled as sites of the story."""
        raise NotImplementedError(f"{type(self).__name__} cannot be called with annotations")

    def predict_proba(
        self, x: Any, n_classes: int, draws: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Probabilities of the classes of new tasks, averaged over draws.

        Args:
            x: features of the tasks, ``(n, ...)``.
            n_classes: K.
            draws: of the story's parameters by site, ``(chain, draw, ...)``; those that the prior does not have are
                not looked at.
            fixed: values of sites that have no posterior, such as weights of a network.

        Returns:
            ``(n, K)``.

        Raises:
            NotImplementedError: the prior says nothing of new tasks.
        """
        raise NotImplementedError(f"{type(self).__name__} is no classifier, so it says nothing of new tasks")

    def restored(self, weights: Mapping[str, np.ndarray], annotations: Annotations) -> Self:
        """The prior with the weights that a file has of it.

        Args:
            weights: by site, without chains and draws; of a prior without weights, none.
            annotations: that it was fitted to.

        Raises:
            StoryError: the weights are another network's.
        """
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the prior as a file keeps it: its ``kind``, and its numbers by the names of its fields."""
        named: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        values = {field.name: getattr(self, field.name) for field in named}
        return {"kind": self.kind} | {name: None if v is None else np.asarray(v).tolist() for name, v in values.items()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], network: Any = None) -> Self:
        """The prior that :meth:`to_json` wrote; a field that the file does not have is the usual one.

        Args:
            saved: what it wrote.
            network: the network or module of a classifier, where the file has none.

        Raises:
            StoryError: a network is needed and was not given.
        """
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in saved.items() if name != "kind"})


def truth_prior_from_json(saved: Mapping[str, Any], network: Any = None) -> ClassPrior:
    """The truth prior that its ``to_json`` wrote.

    Args:
        saved: what it wrote.
        network: the network or module of a classifier, where the file has none.

    Raises:
        StoryError: there is no prior of that kind (one of torch is known once :mod:`crowdppl.inference.torch`
            is imported), or a network is needed and was not given.
    """
    if saved.get("kind") not in (known := ClassPrior.known):
        raise StoryError(f"a truth prior of kind {saved.get('kind')!r} is not known; known are {sorted(known)}")
    return known[saved["kind"]].from_json(saved, network)


TruthPrior = ClassPrior | Callable[[Annotations], Array] | Sequence[float] | Mapping[Any, float] | str
"""A truth prior is called once, outside the plates, and returns log-probabilities ``(K,)`` or ``(N, K)``; ``"uniform"``
and shares of the classes, ``(K,)`` or by class, stand for a :class:`FixedPrevalence`."""


@promised
@dataclass(frozen=True)
class Prevalence(ClassPrior):
    r"""One share of each class for all tasks, :math:`\rho \sim \text{Dirichlet}(\alpha)`: the site ``prevalence``.

    Where several questions are asked about tasks, each question has shares of its own: the site is ``(Q, K)``.

    Args:
        concentration: :math:`\alpha`, one positive number, or one for each class ``(K,)``.
        by_question: whether each question has its own; False for one share of each class over all questions.
    """

    concentration: float | tuple[float, ...] = 1.0
    by_question: bool = True

    kind: ClassVar[str] = "prevalence"
    by_task: ClassVar[bool] = False

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the prevalence and return its logarithms, ``(K,)``; those of each task's question, ``(N, K)``."""
        prior = dist.Dirichlet(self.by_class(annotations))
        by_question = self.by_question and annotations.question is not None
        plate = numpyro.plate("question", len(annotations.questions), dim=-1) if by_question else nullcontext()
        with plate:
            prevalence = numpyro.sample("prevalence", prior, infer={"event_dims": ["truth"]})
        log_probs = safe_log(prevalence)
        return log_probs[annotations.question] if by_question else log_probs

    def by_class(self, annotations: Annotations) -> np.ndarray:
        """The concentration of each class, ``(K,)``.

        Raises:
            StoryError: it is not positive, or has another number of classes.
        """
        n_classes, concentration = annotations.n_classes, np.asarray(self.concentration, dtype=np.float32)
        if concentration.shape not in {(), (n_classes,)} or not (concentration > 0).all():
            raise StoryError(
                f"Prevalence(concentration={self.concentration}): give one positive number, "
                f"or one for each of the {n_classes} classes {list(annotations.classes)}"
            )
        return np.broadcast_to(concentration, (n_classes,))


@promised
@dataclass(frozen=True)
class FixedPrevalence(ClassPrior):
    r"""Shares of the classes that are known, :math:`\rho`, and not estimated: there is no site.

    Args:
        shares: of each class, ``(K,)``, which sum to one; None for even shares.
    """

    shares: tuple[float, ...] | None = None

    kind: ClassVar[str] = "fixed_prevalence"
    by_task: ClassVar[bool] = False

    def __call__(self, annotations: Annotations) -> Array:
        """Logarithms of the shares, ``(K,)``."""
        return safe_log(jnp.asarray(self.by_class(annotations)))

    def by_class(self, annotations: Annotations) -> np.ndarray:
        """The share of each class, ``(K,)``.

        Raises:
            StoryError: there is another number of them than of classes, or they are no shares.
        """
        n_classes = annotations.n_classes
        if self.shares is None:
            return np.full(n_classes, 1 / n_classes, dtype=np.float32)
        shares = np.asarray(self.shares, dtype=np.float32)
        if shares.shape != (n_classes,) or not (shares >= 0).all() or abs(shares.sum() - 1) > CLOSE:
            raise StoryError(
                f"truth_prior={list(self.shares)}: give one share for each of the {n_classes} classes "
                f"{list(annotations.classes)}, which sum to 1, or 'uniform'"
            )
        return shares


UNIFORM = FixedPrevalence()
"""Even shares of the classes."""


def by_name(truth_prior: Any, annotations: Annotations) -> Any:
    """The prior that a name or a few numbers stand for; anything else as it is.

    Args:
        truth_prior: ``"uniform"``, or the shares of the classes, ``(K,)`` or by class.
        annotations: whose classes these are.

    Raises:
        UnknownNameError: there is no prior, or no class, of that name.
        StoryError: a class has no share, or one that is no number; or a prior is a class that was not called.
    """
    if isinstance(truth_prior, type):
        raise StoryError(f"truth_prior={truth_prior.__name__} is a class; write {truth_prior.__name__}()")
    if isinstance(truth_prior, str):
        return look_up("truth_prior", truth_prior, {"uniform": UNIFORM})
    if isinstance(truth_prior, pd.Series | Mapping):
        truth_prior = _in_order(dict(truth_prior), annotations)
    if isinstance(truth_prior, list | tuple | np.ndarray) and np.ndim(truth_prior) == 1:
        try:
            return FixedPrevalence(tuple(float(share) for share in truth_prior))
        except (TypeError, ValueError) as error:
            raise StoryError(f"truth_prior={list(truth_prior)}: shares of the classes are numbers: {error}") from error
    return truth_prior


def _in_order(shares: Mapping[Any, Any], annotations: Annotations) -> list[Any]:
    """Shares by class in the order of the classes."""
    classes = list(annotations.classes)
    for name in shares:
        if name not in classes:
            raise unknown_name("class in truth_prior", name, classes)
    for name in classes:
        if name not in shares:
            raise StoryError(f"truth_prior={dict(shares)}: the class {name!r} has no share; give one for each class")
    return [shares[name] for name in classes]


@promised
@dataclass(frozen=True)
class Given(ClassPrior):
    """Probabilities of each task's classes that are given from outside: ``annotations.prior``.

    ``crowdppl.fit(truth_prior=frame)`` makes it of a frame tasks × classes.
    """

    kind: ClassVar[str] = "given"
    by_task: ClassVar[bool] = True

    def __call__(self, annotations: Annotations) -> Array:
        """Logarithms of the given probabilities, ``(N, K)``."""
        return safe_log(self.probabilities(annotations))

    def probabilities(self, annotations: Annotations) -> Any:
        """The given probabilities, ``(N, K)``.

        Raises:
            StoryError: none are given.
        """
        if annotations.prior is None:
            raise StoryError("truth_prior=Given(): no probabilities are given; pass truth_prior=frame, tasks × classes")
        return annotations.prior


def class_log_probs(annotations: Annotations, truth_prior: TruthPrior | Array | None = None) -> Array:
    """Prior log-probabilities of the true classes, ``(K,)`` or ``(N, K)``; by default of the prior of their kind.

    A story that needs them beside the truth calls this once, and gives the result to :func:`tasks`.

    Raises:
        StoryError: the prior is one under which truths of several units depend on each other.
    """
    if isinstance(truth_prior, ClassPrior) and truth_prior.joint:
        raise StoryError(
            f"truth_prior={truth_prior}: this story needs the probabilities of one truth without the others; fit "
            "another story, such as dawid_skene, or another prior"
        )
    return log_probs_of(annotations, truth_prior)


def log_probs_of(annotations: Annotations, truth_prior: TruthPrior | Array | None) -> Any:
    """Log-probabilities of the truths by the prior, of classes; where truths depend on each other those of kinds."""
    prior = prior_in_use(annotations, truth_prior)
    found = prior(annotations) if callable(prior) else prior
    own = own_of_tasks(annotations)
    if own is None:
        return found
    return within(found, own) if hasattr(found, "shape") else found.within(own)


def prior_in_use(annotations: Annotations, truth_prior: TruthPrior | Array | None = None) -> Any:
    """Return the prior that is given or named, by default the one of the kind of the labels."""
    return by_name(usual_prior(annotations) if truth_prior is None else truth_prior, annotations)


def usual_prior(annotations: Annotations) -> ClassPrior:
    """The truth prior where none is given, which the kind of the labels names."""
    return ClassPrior.known[annotations.kind.truth_prior]()


def differs_by_task(truth_prior: TruthPrior | Array | None, annotations: Annotations) -> bool:
    """Return whether the prior's log-probabilities are ``(N, K)``, one row a task; no site is sampled to find out."""
    prior = prior_in_use(annotations, truth_prior)
    if isinstance(prior, ClassPrior):
        return prior.by_task
    if not callable(prior):
        return jnp.ndim(prior) == 2
    unseen = handlers.block(handlers.seed(prior, 0))
    return len(jax.eval_shape(lambda: unseen(annotations)).shape) == 2


def is_torch_module(network: object) -> TypeGuard[Any]:
    """Return whether it is a module of PyTorch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(network, torch.nn.Module)
