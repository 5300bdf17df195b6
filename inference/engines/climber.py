"""The protocol of a climber, and the one loop that drives it over any source.

A climber is an engine that goes uphill: :meth:`Climber.point` says where to look, :meth:`Climber.look` looks at some of
the tasks, :meth:`Climber.step` takes what it saw. EM looks at all tasks before a step (it moves by ``"pass"``);
stochastic EM, minibatch EM and SVI step after each batch.

Where the source is in memory, many moves are one compiled program. Over files a program works on one batch. The state
is all that a later process needs, so that a fit which is stopped goes on to the same bits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ..densities.model import Model
from ..densities.programs import compiled
from ..sources.memory import InMemory, Minibatch
from ..sources.source import Source
from .checkpoints import Checkpoints, Tree, packed, unpacked
from .looks import PART, look_over

S = TypeVar("S")
MOST = 100  # moves at the most that one program takes


class Climber(Protocol[S]):
    """An engine that goes uphill; a pytree, since compiled programs take it as an argument.

    Its states ``S`` are NamedTuples of arrays, which a checkpoint saves. ``like`` are annotations with the structure of
    all, of which only shapes matter.
    """

    model: Model

    @property
    def moves(self) -> str:
        """``"pass"`` or ``"batch"``: what it looks at before a step."""

    @property
    def most(self) -> int:
        """The number of moves, up to :data:`MOST`, in one program and between two reports of progress."""

    @property
    def quantity(self) -> str:
        """The name of its :meth:`value`."""

    @property
    def stage(self) -> str:
        """The name of its state in a checkpoint."""

    def point(self, like: Annotations, state: S) -> Any:
        """Return where it looks next."""

    def look(self, like: Annotations, batch: Any, at: Any) -> Any:
        """Return what it sees there of some of the tasks."""

    def step(self, like: Annotations, state: S, at: Any, look: Any) -> S:
        """Return the state after a look."""

    def finished(self, state: S) -> Array:
        """Return whether it is at its end."""

    def n_values(self, state: S) -> Array:
        """Return the number of entries that its history has."""

    def value(self, state: S) -> tuple[Array, ...]:
        """Return the newest entry of its history, in parts that add up to it."""

    def batch(self, source: InMemory, state: S) -> Any:
        """Return what the next look takes of annotations in memory."""

    def check(self, state: S, history: list[float], n_new: int) -> None:
        """Refuse values that are not finite, of which the last are new."""


class InOrder(Climber[S], Protocol[S]):
    """A climber that moves after each batch, in an order of its own in each pass."""

    def order(self, state: S, n_batches: int) -> tuple[np.ndarray, int]:
        """Return the order of the batches in the state's pass, and how many of them it has behind it."""


def climb(
    climber: Any,
    source: Source,
    state: S,
    *,
    keep: Checkpoints,
    tell: Callable[[int, str], None],
    after: Callable[[S], None] = lambda state: None,
) -> tuple[S, list[float]]:
    """Drive a climber over a source until it has finished.

    Args:
        climber: the :class:`Climber`.
        state: before the first move; its arrays' shapes are enough where a checkpoint has a later one.
        tell: called with the number of entries of the history and a text.
        after: called with the state after each piece of the work.

    Returns:
        the last state, and the history.

    Raises:
        FloatingPointError: as of :meth:`Climber.check`.
    """
    history: list[float] = []
    on_disk = not isinstance(source, InMemory)

    def note(state: S, *, milestone: bool) -> None:
        at = partial(_noted, state, history, len(history))
        keep.save(climber.stage, at, milestone=milestone, over=PART if on_disk and milestone else None)

    if (earlier := keep.found(climber.stage)) is not None:
        state, history = unpacked(earlier["state"], state), earlier["history"].tolist()
    elif on_disk:
        note(state, milestone=True)
        after(state)
    pace = keep.pace(climber.most)
    move = _pass if climber.moves == "pass" else _batches
    while not climber.finished(_with_numbers(state)):
        if isinstance(source, InMemory):
            with pace.timed(pace.steps):
                state, values = advance(climber, source, state, pace.steps)
                new = np.asarray(values)[: int(climber.n_values(_with_numbers(state))) - len(history)].tolist()
                history += new
            climber.check(state, history, len(new))
        else:
            state = move(climber, source, state, history, keep, tell, note)
        tell(len(history), _text(climber, history))
        note(state, milestone=on_disk)
        after(state)
    return state, history


def _with_numbers(state: S) -> S:
    """The state with its single numbers as NumPy's, of which a question is no program."""

    def of(leaf: Any) -> Any:
        is_number = jnp.ndim(leaf) == 0 and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
        return np.asarray(leaf) if is_number else leaf

    found: S = jax.tree.map(of, state)
    return found


def _pass(
    climber: Any, source: Source, state: S, history: list[float], keep: Checkpoints, tell: Callable, note: Callable
) -> S:
    """Return the state after a look at all batches."""

    def tell_batch(done: int) -> None:
        tell(len(history), _text(climber, history, done, source.n_batches))

    at = next_point(climber, source.like, state)
    look, _ = look_over(climber.model, source, at, tell=tell_batch, keep=keep)
    state = after_look(climber, source.like, state, at, look)
    _add_value(climber, state, history)
    return state


def _batches(
    climber: Any, source: Source, state: S, history: list[float], keep: Checkpoints, tell: Callable, note: Callable
) -> S:
    """Return the state after a move on each batch that is left in its pass."""
    order, begin = climber.order(state, source.n_batches)
    for done, batch in enumerate(source.batches(order, begin=begin), start=begin + 1):
        state = move_on(climber, source.like, batch, state)
        _add_value(climber, state, history)
        if done < len(order):
            note(state, milestone=False)
            tell(len(history), _text(climber, history, done, source.n_batches))
    return state


def _add_value(climber: Any, state: Any, history: list[float]) -> None:
    """Add the state's value to the history where it is new; sums are in double precision."""
    if int(climber.n_values(state)) > len(history):
        history.append(sum(map(float, climber.value(state))))
        climber.check(state, history, 1)


def _text(climber: Any, history: list[float], done: int | None = None, n_batches: int = 1) -> str:
    text = f"{climber.quantity} {history[-1]:,.2f}" if history else ""
    if done is None:
        return text
    return f"{text}{', ' if text else ''}chunk {done:,} of {n_batches:,}"


def _noted(state: Any, history: list[float], n: int) -> Tree:
    """Return a checkpoint with ``n`` entries of the history; the list may have grown since."""
    return {"state": packed(state), "history": np.array(history[:n])}


@compiled(once="looped")
def advance(climber: Any, source: InMemory, state: S, n_moves: Array | int) -> tuple[S, Array]:
    """Take at most ``n_moves`` moves, fewer where the climber finishes.

    Returns:
        the state, and what is new in the history, ``(MOST,)``, then NaN.
    """
    before = climber.n_values(state)

    def unfinished(carry: tuple[Any, Array, Array]) -> Array:
        state, _, i = carry
        return (i < n_moves) & ~climber.finished(state)

    def body(carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        state, history, i = carry
        at = climber.point(source.like, state)
        look = climber.look(source.like, climber.batch(source, state), at)
        after = climber.step(source.like, state, at, look)
        place = jnp.where(climber.n_values(after) > climber.n_values(state), climber.n_values(state) - before, MOST)
        return after, history.at[place].set(sum(climber.value(after)), mode="drop"), i + 1

    history = jnp.full(MOST, jnp.nan)
    state, history, _ = jax.lax.while_loop(unfinished, body, (state, history, jnp.int32(0)))
    return state, history


@compiled
def move_on(climber: Any, like: Annotations, batch: Annotations, state: S) -> S:
    """Return the state after a move on one batch."""
    at = climber.point(like, state)
    after: S = climber.step(like, state, at, climber.look(like, Minibatch(batch), at))
    return after


@compiled
def next_point(climber: Any, like: Annotations, state: Any) -> Any:
    """Return :meth:`Climber.point`."""
    return climber.point(like, state)


@compiled
def after_look(climber: Any, like: Annotations, state: S, at: Any, look: Any) -> S:
    """Return :meth:`Climber.step`."""
    after: S = climber.step(like, state, at, look)
    return after
