"""The state of a fit, kept in a folder, so that a later process goes on from there to the same bits.

A user asks for it by :class:`CheckpointOptions`. An engine tells its :class:`Checkpoints`, between two pieces of its
work, where it stands: trees of dictionaries, lists and arrays, one for each stage of the work (EM that finds where
chains start, then the chains). They are written as often as the user asked, all stages in one file beside a fingerprint
of the fit (:mod:`.same_fit`), which is whole or not there at all. Reading the file runs nothing: arrays are NumPy's
without objects, the rest is JSON.
"""

import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from ...data.atomic import whole_file
from ...data.errors import StorageError, truth_value, warn
from .finding import ConvergenceWarning
from .interruptions import Terminated, heed, heeded, terminable
from .same_fit import differences

FILE = "checkpoint.npz"
EVERY = 300.0  # seconds between two writings, where the user says nothing
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class CheckpointOptions(NamedTuple):
    """Checkpoints as a user asked for them."""

    folder: Path | None  # None for none
    every: float = EVERY  # seconds
    resume: bool | None = False  # whether an earlier one is gone on from; None where there is one
    milestones: bool = False  # whether those are written too whose time has not come
    whole: Path | None = None  # the folder that the user named, where this is one within it, of a fit among several

    def within(self, name: str) -> "CheckpointOptions":
        """Return the options for one fit among several, in a folder of its own."""
        if self.folder is None:
            return self
        return self._replace(folder=self.folder / name, whole=self.whole or self.folder)

    def check_new(self) -> None:
        """Refuse a folder that has checkpoints of several fits already, before the first of them runs.

        Raises:
            StorageError: there are some, and ``resume`` is False; or there is one of a single fit.
        """
        if self.folder is None:
            return
        if (self.folder / FILE).exists():
            raise StorageError(
                f"{self.folder / FILE} is of a single fit, and this call makes several; name another folder, or delete "
                "it to begin anew"
            )
        if self.resume is False and (earlier := of_several(self.folder)):
            raise StorageError(
                f"{earlier[0]} is of an earlier run; give resume=True to go on from it, name another folder, or delete "
                f"{self.folder} to begin anew"
            )

    @classmethod
    def of(
        cls,
        checkpoint: str | os.PathLike[str] | None,
        every: float | str | None = None,
        resume: bool = False,
        folder: str | os.PathLike[str] | None = None,
    ) -> "CheckpointOptions":
        """Return the checkpoints that a user asks for by the arguments of :func:`crowdppl.fit`.

        Raises:
            ValueError: ``every`` is no time, ``resume`` neither True nor False, one of them is given without a
                checkpoint, or both ``checkpoint`` and ``folder`` are.
        """
        resume = truth_value("resume", resume)
        if folder is not None and checkpoint is not None:
            raise ValueError(
                f"folder={os.fspath(folder)!r} and checkpoint={os.fspath(checkpoint)!r} both keep the state; give one"
            )
        if checkpoint is None:
            for name, value in (("every", every), ("resume", resume or None)):
                if value is not None:
                    raise ValueError(f"{name}={value!r} belongs to checkpoint=, the folder where a fit keeps its state")
            if folder is not None:
                return cls(Path(folder).absolute(), EVERY, resume=None, milestones=True)
            return cls(None)
        return cls(Path(checkpoint).absolute(), EVERY if every is None else seconds(every), resume)


NOT_KEPT = CheckpointOptions(None)
"""No checkpoints."""


def seconds(every: float | str) -> float:
    """Return a time in seconds.

    >>> seconds("5min"), seconds("30s"), seconds(0.5)
    (300.0, 30.0, 0.5)

    Raises:
        ValueError: it is none.
    """
    if isinstance(every, int | float | np.number) and not isinstance(every, bool) and 0 <= every < np.inf:
        return float(every)
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)?\s*", every) if isinstance(every, str) else None
    if matched is None:
        raise ValueError(f"every={every!r}: seconds, or a time such as '30s', '5min' or '1h', are needed")
    return float(matched[1]) * UNITS[matched[2] or "s"]


def of_several(folder: Path) -> list[Path]:
    """The checkpoints of several fits, each in a folder within ``folder`` or one within that."""
    return sorted([*folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")])


FORMAT = 1
BRIEFLY = 1.0  # seconds that a piece of work takes at the most, as far as it can be cut
ABOUT = "about"  # the file's entry of JSON; arrays are numbered

UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    MemoryError,
    RecursionError,
    BadZipFile,
)
"""Errors that reading a damaged file may raise."""

Tree = Any  # dictionaries, lists and tuples of arrays, numbers, texts and None


@dataclass
class Store:
    """The file that the stages of one fit share, and when it was written."""

    folder: Path | None = None
    every: float = EVERY
    about: Mapping[str, Any] = field(default_factory=dict)
    stages: dict[str, Callable[[], Tree]] = field(default_factory=dict)
    written: float = 0.0  # when, by time.monotonic
    lasts: str = ""  # when that was, for a reader
    milestones: bool = False
    call: str = ""  # that goes on from there, in words

    @property
    def path(self) -> Path | None:
        """The file; None where nothing is kept."""
        return None if self.folder is None else self.folder / FILE

    def write(self) -> None:
        """Write all stages.

        Raises:
            StorageError: they cannot be written; the file is as it was.
        """
        if self.path is None:
            return
        self.written = time.monotonic()  # also of an attempt in vain
        arrays: list[np.ndarray] = []
        said = {"format": FORMAT, "fit": dict(self.about)}
        said["stages"] = {name: encoded(make(), arrays) for name, make in self.stages.items()}
        text = np.frombuffer(json.dumps(said).encode(), np.uint8)
        named = {str(number): array for number, array in enumerate(arrays)}
        with whole_file(self.path) as part, part.open("wb") as file:
            np.savez(file, allow_pickle=False, **{ABOUT: text}, **named)
        self.written = time.monotonic()
        self.lasts = time.strftime("%H:%M:%S")


class Checkpoints:
    """The checkpoints of a fit, to which an engine gives its state, and which it asks for that of an earlier process.

    Args:
        store: that of the fit.
        prefix: of the stages' names.
        interrupts: whether a sampler that is interrupted gives the draws so far instead of the interruption.
        active: False for what keeps nothing and lets engines run as they do.
    """

    def __init__(self, store: Store, prefix: str = "", *, interrupts: bool = False, active: bool = True) -> None:
        self._store, self._prefix = store, prefix
        self.interrupts, self.active = interrupts, active

    def within(self, name: str) -> "Checkpoints":
        """Return the checkpoints of a part of the work, whose stages have names of their own."""
        return Checkpoints(self._store, f"{self._prefix}{name}/", interrupts=self.interrupts, active=self.active)

    def found(self, stage: str) -> Tree | None:
        """Return where an earlier process stood in a stage, with arrays of NumPy; None where it had not come to it."""
        make = self._store.stages.get(self._prefix + stage)
        return None if make is None else make()

    def save(
        self,
        stage: str,
        make: Callable[[], Tree],
        *,
        lasting: bool = True,
        final: bool = False,
        milestone: bool = False,
        over: str | None = None,
    ) -> None:
        """Take note of where a stage stands, and write where it is time to.

        Args:
            make: gives the tree.
            lasting: whether it will give the same later; else it is called now, or not at all.
            final: whether the stage is at its end, so that no later note of it comes.
            milestone: whether it is written where its time has not come but the user asked for that, unless something
                was written within the last second, so that short passes are not all spent on writing.
            over: another stage that is over by this, and forgotten.

        Raises:
            KeyboardInterrupt, SystemExit: a signal came before, and what it asked for was lost.
        """
        if self._store.path is None:
            return
        self._store.stages.pop(self._prefix + (over or ""), None)
        since = time.monotonic() - self._store.written
        is_due = since >= self._store.every or (milestone and self._store.milestones and since >= BRIEFLY)
        if lasting:
            self._store.stages[self._prefix + stage] = make
        elif is_due or final:
            self._store.stages[self._prefix + stage] = partial(_given, make())
        if is_due:
            self.write()
        heed()

    def write(self) -> None:
        """Write what has been noted; where that is in vain there is a warning, and the fit goes on."""
        store = self._store
        try:
            store.write()
        except StorageError as error:
            warn(
                f"{error}; the fit goes on, and tries again every {store.every:g} s. Should it stop, {store.call} "
                f"goes on from the last good checkpoint, that of {store.lasts}",
                CheckpointWarning,
            )

    @property
    def how_to_go_on(self) -> str:
        """The sentence that an interrupted fit ends with."""
        if self._store.path is None:
            return "with checkpoint='folder' an interrupted fit can go on"
        return f"{self._store.call} goes on from there"

    def pace(self, most: int) -> "Pace":
        """Return how many steps to take at a time: ``most``, and fewer where they would take long."""
        return Pace(most, 1 if self.active else most)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Write once more where the block is interrupted, and say how to go on.

        Raises:
            KeyboardInterrupt: by Ctrl-C, with that sentence; a second Ctrl-C leaves the last checkpoint as it is.
            SystemExit: with status 143, where the process is told to end (SIGTERM), with that sentence as a warning.
        """
        if self._store.path is None:
            yield
            return
        with terminable():
            try:
                yield
            except (KeyboardInterrupt, Terminated) as stop:
                heeded()
                with suppress(KeyboardInterrupt):
                    self.write()
                said = f"stopped; {self._store.path} is of {self._store.lasts}: {self.how_to_go_on}"
                if isinstance(stop, Terminated):
                    warn(said, CheckpointWarning)
                    raise
                raise KeyboardInterrupt(said) from None


class CheckpointWarning(ConvergenceWarning):
    """A fit's state could not be kept, or the fit was ended; the message says how to go on."""


NO_CHECKPOINTS = Checkpoints(Store(), active=False)
"""Checkpoints that keep nothing."""


class Pace:
    """The number of steps to take at a time, so few that work is soon done, and can be written or interrupted then.

    Args:
        most: steps at a time.
        first: steps of the first piece.
    """

    def __init__(self, most: int, first: int) -> None:
        self.most, self.steps, self._fixed = most, first, first == most

    def took(self, steps: int, seconds: float) -> None:
        """Learn how long so many steps took, compilation among it the first time."""
        if not self._fixed:
            self.steps = int(min(max(steps * BRIEFLY / max(seconds, 1e-9), 1), self.most))

    @contextmanager
    def timed(self, steps: int) -> Iterator[None]:
        """Take the time of so many steps."""
        began = time.perf_counter()
        yield
        self.took(steps, time.perf_counter() - began)


def opened(options: CheckpointOptions, about: Mapping[str, Any], *, interrupts: bool = False) -> Checkpoints:
    """Return the checkpoints of a fit, with what an earlier process left in the folder.

    Args:
        about: the fit's fingerprint.
        interrupts: as of :class:`Checkpoints`.

    Raises:
        StorageError: the folder has a checkpoint and ``resume`` is False, or one of another fit, of a newer crowdppl,
            or a damaged one; or it cannot be written to.
    """
    store = Store(options.folder, options.every, json.loads(json.dumps(about)), milestones=options.milestones)
    asked = "" if options.resume is None else f" with checkpoint={str(options.whole or store.folder)!r}, resume=True"
    store.call = f"the same call{asked}"
    if store.path is None:
        return Checkpoints(store, interrupts=interrupts)
    if store.path.exists():
        if options.resume is False:
            raise StorageError(
                f"{store.path} is of an earlier run; give resume=True to go on from it, name another folder, or delete "
                "it to begin anew"
            )
        before, stages = read(store.path)
        if differing := differences(before, store.about):
            raise StorageError(
                f"{store.folder} holds another fit, so that it cannot go on: {differing}; name another folder, or "
                f"delete {store.path} to begin anew"
            )
        store.stages = {name: partial(_given, tree) for name, tree in stages.items()}
    try:
        store.path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{store.folder} cannot be made: {error.strerror or error}") from error
    store.write()  # what cannot be written is known before anything runs
    return Checkpoints(store, interrupts=interrupts)


def _given(tree: Tree) -> Tree:
    return tree


def said_of(path: Path) -> dict[str, Any]:
    """Return a checkpoint's fingerprint of its fit, without its arrays.

    Raises:
        StorageError: it is damaged.
    """
    with _opened(path) as (_, said):
        return dict(said["fit"])


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tree]]:
    """Read a checkpoint: the fit's fingerprint, and its stages.

    Raises:
        StorageError: it is damaged, or was written by a newer crowdppl.
    """
    with _opened(path) as (found, said):
        if said["format"] > FORMAT:
            raise StorageError(f"{path} was written by a newer crowdppl (format {said['format']}, known is {FORMAT})")
        arrays = [_array(found, str(number)) for number in range(len(found.files) - 1)]
        return said["fit"], {name: decoded(value, arrays) for name, value in said["stages"].items()}


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The entries of a checkpoint, and what it says of them; what cannot be read in the block is damaged."""
    try:
        _refuse_compressed(path)
        with np.load(path, allow_pickle=False) as found:
            yield found, json.loads(_array(found, ABOUT).tobytes())
    except StorageError:
        raise
    except UNREADABLE as error:
        raise StorageError(f"{path} is damaged ({type(error).__name__}: {error}); delete it to begin anew") from error


def _refuse_compressed(path: Path) -> None:
    """Refuse compressed entries: np.savez stores arrays as they are, which can be no zip bomb."""
    with zipfile.ZipFile(path) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError("an entry is compressed")


def _array(found: Any, name: str) -> np.ndarray:
    """An entry that is an array, and no bare bytes."""
    array = found[name]
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is no array")
    return array


def encoded(tree: Tree, arrays: list[np.ndarray]) -> Any:
    """Return a tree as JSON; its arrays are put at the end of ``arrays``.

    Raises:
        StorageError: it has something else than a tree may have.
    """
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, np.ndarray | np.generic) and not tree.dtype.hasobject:
        arrays.append(np.asarray(tree))
        return {"array": len(arrays) - 1}
    if isinstance(tree, dict):
        return {"dict": [[encoded(key, arrays), encoded(value, arrays)] for key, value in tree.items()]}
    if isinstance(tree, list):
        return [encoded(value, arrays) for value in tree]
    if isinstance(tree, tuple):
        return {"tuple": [encoded(value, arrays) for value in tree]}
    raise StorageError(f"a checkpoint cannot hold a {type(tree).__name__}: {tree!r:.80}")


def decoded(value: Any, arrays: list[np.ndarray]) -> Tree:
    """Return the tree of what :func:`encoded` made."""
    if isinstance(value, list):
        return [decoded(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(decoded(one, arrays) for one in content)
    if kind == "dict":
        return {decoded(key, arrays): decoded(one, arrays) for key, one in content}
    raise ValueError(f"an entry of kind {kind!r}")


def packed(tree: Any) -> list[np.ndarray]:
    """Return the arrays of a tree of JAX's; keys as their data."""
    leaves = jax.tree.leaves(tree)
    return [np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in leaves]


def unpacked(arrays: list[np.ndarray], like: Any) -> Any:
    """Return the tree of :func:`packed` arrays.

    Args:
        arrays: its leaves.
        like: a tree of the same structure, shapes and types: arrays on the devices where these go, or shapes.

    Raises:
        StorageError: the arrays are others.
    """
    leaves, structure = jax.tree.flatten(like)
    if len(arrays) != len(leaves):
        raise StorageError(f"the checkpoint is damaged: {len(arrays)} arrays where {len(leaves)} are needed")
    return jax.tree.unflatten(structure, list(map(_placed, arrays, leaves)))


def _placed(array: np.ndarray, like: Any) -> Any:
    """The array as one like ``like``."""
    kind = jax.eval_shape(jax.random.key_data, like) if _is_key(like) else like
    expected = np.shape(kind), np.dtype(kind.dtype)
    array = array.view(expected[1]) if array.dtype.kind == "V" else array  # bfloat16, which NumPy knows by size alone
    if (array.shape, array.dtype) != expected:
        raise StorageError(f"the checkpoint is damaged: {array.dtype}{array.shape} where {expected} is needed")
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    sharding = getattr(like, "sharding", None)
    if sharding is not None and len(sharding.device_set) > 1:
        return jax.device_put(array, sharding)
    return jnp.asarray(array)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(getattr(leaf, "dtype", np.float32), jax.dtypes.prng_key)
