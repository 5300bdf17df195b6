"""A check, before anything is fitted, that a user's own story has rows of probabilities in its emission."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers
from numpyro.infer import init_to_uniform

from ...data import Annotations, Ids
from ...data.arrays import BY_ROW, changed
from ...models import Emission, StoryError
from ...models.parts.contract import is_promised
from ...models.parts.general import GENERAL
from ...models.parts.truth_prior import CLOSE
from .enumerated import Site, run_enumerated
from .model import Model
from .padded_sites import dirichlet_of, is_table
from .prior import quick_rows
from .programs import compiled

ENTRIES = 2**18  # of the rows looked at, at the most
ACCEPTED = (
    "rows P(annotation | true class) are needed, from 0 and with sum 1, along the last dimension: counts are divided "
    "by their sum, log-probabilities go through jnp.exp, and logits through jax.nn.softmax"
)


def check_rows(model: Model, annotations: Annotations) -> None:
    """Refuse a story of a user's own whose emission has rows that are no probabilities.

    The story runs once, at parameters drawn from its prior, and its emission is asked for all annotations; where they
    are many, for one of each worker. A story that promises such rows is not run. What is no number, as at the ends of
    a wide prior, is passed over.

    Args:
        model: the story; the parts that any story takes stay off.
        annotations: the data, as they are given.

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
    kinds: list[type] = []
    jax.eval_shape(lambda: kinds.append(type(_emission(bare, data))))
    story = getattr(model.story, "__name__", repr(model.story))
    raise StoryError(
        f"{kinds[0].__name__} in the story {story!r} has rows that are no probabilities: at parameters drawn from the "
        f"prior the row of {', '.join(names)} is [{shown}], with sum {probs[a, k].sum():.4g}; {ACCEPTED}"
    )


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
    _, by_task = run_enumerated(model, annotations, handlers.substitute(substitute_fn=_drawn), None)
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
