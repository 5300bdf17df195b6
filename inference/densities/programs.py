"""Compiled programs of this process: kept for the next call, but never more than the system bears.

Every program that XLA compiles for a CPU holds some fifty memory maps and some megabytes. Linux allows a process 65,530
maps; a loop over data sets of ever new sizes would die of them. So programs are kept in the order of their last use,
and those not used for longest are let go. Random keys of seeds need none of their own for each operation.
"""

import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper, wraps
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any, Literal, TypeVar

import jax
import numpy as np
from jax import Array
from jax.core import Tracer

from ...models.parts.kernels import FAST
from .ready_programs import ready

MOST_PROGRAMS = 256
"""Programs at the most that are kept at a time."""

SHARE_OF_MAPS = 1 / 4
"""Of the memory maps that Linux allows a process, beyond which programs are let go."""

_WITHOUT_EMITTERS: dict[str, Any] = {}
if version("jaxlib").startswith("0.10."):  # later ones do not have the option, and refuse it
    _WITHOUT_EMITTERS["xla_cpu_use_fusion_emitters"] = False

LEVEL = "xla_backend_optimization_level"  # who names one in XLA_FLAGS has it for all programs

QUICKLY = {LEVEL: 0} | _WITHOUT_EMITTERS
"""XLA's options for a program that runs once, on little: it compiles in a sixth of the time, and takes five times."""

SOONER = {LEVEL: 1} | _WITHOUT_EMITTERS
"""Those for one that runs once, on no more than some: it compiles in half the time, and runs about as fast."""

LITTLE = 2**18  # numbers that a program is given at the most, to be compiled quickly
SOME = 2**23  # and to be compiled sooner

FEWEST = 64
"""Programs that are kept whatever the number of maps: if so few are not the cause, another library's programs are."""
_lock = RLock()
T = TypeVar("T")
DEFAULT = "threefry2x32"  # JAX's generator, unless a user has chosen another
REPEATED = {DEFAULT: 1, FAST: 2}  # how often a key of a generator has the seed in it


@dataclass
class _Kept:
    """A program of this process.

    Args:
        jitted: what :func:`jax.jit` returns.
        ready: of the leaves, where it is kept on the disk, too.
        may_be_ready: whether nobody has looked for it there.
    """

    jitted: Any
    ready: Callable | None = None
    may_be_ready: bool = True


_kept: OrderedDict[tuple, _Kept] = OrderedDict()  # programs, the one used last at the end


class Compiled:
    """A function that is compiled for each structure, size and type of its arguments, as by :func:`jax.jit`.

    Args:
        function: a pure function of JAX arrays.
        static: names of the arguments that programs are compiled for; they are given by name, or as the function has
            them.
        once: whether a fit runs it once or so, and not in a loop: with little to do it is then compiled quickly, and
            with no more than some sooner. ``"looped"`` are programs that a fit runs once, and that are loops: sooner
            with little to do. Those of ``"sooner"`` are compiled sooner whatever there is to do.
        times: name of the argument for each of whose entries it does everything again, which is then no little.
        options: others of :func:`jax.jit`.
    """

    def __init__(
        self,
        function: Callable,
        static: Sequence[str] = (),
        *,
        once: bool | Literal["looped", "sooner"] = False,
        times: str | None = None,
        **options: Any,
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self._names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self._static = frozenset(static)
        self._once = once
        self._times = times
        self._options = options

    def __reduce__(self) -> str:
        """Pickle by name, so that another process has the programs that it compiled."""
        return self.function.__qualname__

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's value; within another compiled function its operations become part of that."""
        leaves, structure = jax.tree.flatten(self._traced(args, named))
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self.function(*args, **named)
        kept = self._program(args, named, leaves, structure)
        if kept.ready is None and kept.may_be_ready:
            kept.may_be_ready = False
            kept.ready = self._ready(args, named, leaves, structure)
        return kept.jitted(*args, **named) if kept.ready is None else kept.ready(leaves)

    def program(self, *args: Any, **named: Any) -> Any:
        """The program for such arguments, which has the methods of what :func:`jax.jit` returns."""
        return self._program(args, named, *jax.tree.flatten(self._traced(args, named))).jitted

    def _traced(self, args: tuple, named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that are not static."""
        by_place = [value for name, value in zip(self._names, args, strict=False) if name not in self._static]
        return by_place, {name: value for name, value in named.items() if name not in self._static}

    def _ready(self, args: tuple, named: dict[str, Any], leaves: list[Any], structure: Any) -> Callable | None:
        """The program as it is kept on the disk; None where it is not."""
        if self._options:
            return None
        given = dict([*zip(self._names, args, strict=False), *named.items()])
        static = {name: value for name, value in given.items() if name in self._static}
        names = [name for name, _ in zip(self._names, args, strict=False) if name not in self._static]
        return ready(self.function, static, names, leaves, structure, self._for_compiler(leaves, given))

    def _program(self, args: tuple, named: dict[str, Any], leaves: list[Any], structure: Any) -> _Kept:
        given = [*zip(self._names, args, strict=False), *sorted(named.items())]
        static = tuple((name, value) for name, value in given if name in self._static)
        key = (
            self.function,
            self._once,
            tuple(named),
            static,
            structure,
            tuple(map(_kind, leaves)),
            jax.config.values["jax_enable_x64"],
            jax.config.values["jax_default_matmul_precision"],
        )
        with _lock:
            if key not in _kept:
                own = _in_full(self.function)  # JAX keeps programs by the function: a new one has its own, to be let go
                options = {"compiler_options": self._for_compiler(leaves, dict(given))} | self._options
                _kept[key] = _Kept(jax.jit(own, static_argnames=tuple(self._static), **options))
                _let_go()
            _kept.move_to_end(key)
            return _kept[key]

    def _for_compiler(self, leaves: list[Any], given: dict[str, Any]) -> dict[str, Any]:
        """XLA's options for the program of these arguments."""
        if not self._once or jax.default_backend() != "cpu" or LEVEL in os.environ.get("XLA_FLAGS", ""):
            return {}
        if self._once == "sooner":
            return SOONER
        n_numbers = sum(map(np.size, leaves))
        if self._once == "looped":
            return SOONER if n_numbers <= LITTLE else {}
        times = 1 if self._times is None else np.size(given[self._times])
        return QUICKLY if times * n_numbers <= LITTLE else SOONER if n_numbers <= SOME else {}


def compiled(
    function: Callable | None = None,
    *,
    static: Sequence[str] = (),
    once: bool | Literal["looped", "sooner"] = False,
    times: str | None = None,
    **options: Any,
) -> Any:
    """Decorate a pure function to be compiled: :class:`Compiled`."""
    if function is None:
        return partial(compiled, static=static, once=once, times=times, **options)
    return Compiled(function, static, once=once, times=times, **options)


def traced(look: Callable[..., T], *given: Any) -> T:
    """Return the result of ``look`` with nothing computed: arrays have no values, here and in it."""
    found: list[T] = []
    jax.eval_shape(lambda *given: found.append(look(*given)), *given)
    return found[0]


def _in_full(function: Callable) -> Callable:
    """A function whose products of matrices are as precise as their factors.

    Without being told, JAX rounds the factors on GPUs and TPUs, to 11 bits or fewer: five steps of EM then ended with
    label probabilities .04 away from the processor's. Who has set ``jax_default_matmul_precision`` keeps it.
    """

    @wraps(function)
    def in_full(*args: Any, **named: Any) -> Any:
        with jax.default_matmul_precision(jax.config.values["jax_default_matmul_precision"] or "highest"):
            return function(*args, **named)

    return in_full


def _let_go() -> None:
    """Let the programs go that were not used for longest, as far as there are too many of them."""
    while len(_kept) > MOST_PROGRAMS:
        _kept.popitem(last=False)
    most = _most_maps()
    if most is None:
        return
    n_maps = _n_maps()
    if n_maps >= most and len(_kept) > FEWEST:
        for _ in range(max(len(_kept) // 8, 1)):
            _kept.popitem(last=False)
        gc.collect()  # what is let go may be held by circles of references
    if n_maps >= 2 * most:  # of programs that are not ours, or of single operations on ever new sizes
        jax.clear_caches()
        gc.collect()


def _kind(leaf: Any) -> tuple:
    """Return the shape and type of an argument that is not static, for which programs are compiled."""
    shape = getattr(leaf, "shape", None)
    if shape is None:
        return (type(leaf),)
    return shape, leaf.dtype, getattr(leaf, "weak_type", False)


def _n_maps() -> int:
    """Memory maps of this process."""
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def _most_maps() -> int | None:
    """Memory maps from which on programs are let go; None on systems that do not count them."""
    limit = Path("/proc/sys/vm/max_map_count")
    return int(int(limit.read_text()) * SHARE_OF_MAPS) if limit.exists() else None


def key_of(seed: int, impl: str | None = None) -> Array:
    """Return ``jax.random.key(seed, impl=impl)``: of most seeds it is the seed itself, which needs no program.

    Args:
        impl: the generator; None for JAX's default.
    """
    generator = jax.config.values["jax_default_prng_impl"] if impl is None else impl
    if generator not in REPEATED or not 0 <= seed < 2**31:
        return jax.random.key(seed, impl=impl)
    data: Any = np.array([0, seed] * REPEATED[generator], np.uint32)
    return jax.random.wrap_key_data(data, impl=generator)


def keys_of(seed: int, shape: int | tuple[int, ...], impl: str | None = None) -> Array:
    """Return ``jax.random.split(jax.random.key(seed, impl=impl), shape)``."""
    found: Array = _split(key_of(seed, impl), shape)
    return found


@compiled(once=True, static=("shape",))
def _split(key: Array, shape: int | tuple[int, ...]) -> Array:
    return jax.random.split(key, shape)
