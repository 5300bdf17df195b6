"""Stories that are programs in both languages: which program in Pyro is the twin of which in NumPyro."""

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import Tensor

from ...data import Annotations
from .tensors import tensors

Program = Callable[..., Any]

_programs: dict[Program, Program] = {}  # NumPyro's by what they are, in Pyro
_taking: Any = WeakSet()  # programs that take annotations of arrays
_of_arrays: Any = WeakKeyDictionary()  # annotations of tensors, by the annotations


def twin_of(story: Program) -> Callable[[Program], Program]:
    """Declare that a program in Pyro is the story ``story``, a NumPyro program, so that Pyro's engines fit it.

    Both keep the contract of a story: the same sites with the same shapes, the same hyperparameters, and ``truth`` and
    ``annotation`` by the helpers of their language. Starting points, names of dimensions, derived quantities and views
    of a fit are those of the NumPyro program. A fit compares both densities where it starts.

    .. code-block:: python

        @twin_of(my_story)
        def in_pyro(annotations, *, truth_prior=None): ...


        cp.fit(my_story, annotations, backend="pyro", classifier=module)

    Args:
        story: the NumPyro program.

    Returns:
        a decorator; the program that it gives takes annotations of arrays too.
    """

    def declare(program: Program) -> Program:
        taking = takes_arrays(program)
        _programs[story] = taking
        return taking

    return declare


def program_of(story: Program) -> Program | None:
    """The Pyro program of a NumPyro story, or None where none is known."""
    return _programs.get(story)


def numpyro_twin(program: Program) -> Program:
    """The NumPyro story of a Pyro program; a story that is no Pyro program itself."""
    return next((story for story, twin in _programs.items() if twin is program), program)


def takes_arrays(program: Program) -> Program:
    """The Pyro program, which makes tensors of annotations of arrays; every story of this package is so declared."""
    if program in _taking:
        return program

    @functools.wraps(program)
    def taking(annotations: Annotations, *arguments: Any, **hyperparameters: Any) -> Any:
        return program(_as_tensors(annotations), *arguments, **hyperparameters)

    _taking.add(taking)
    return taking


def _as_tensors(annotations: Annotations) -> Annotations:
    """The annotations with tensors for arrays, the same each time; annotations of tensors as they are."""
    if isinstance(annotations.task, Tensor):
        return annotations
    if annotations not in _of_arrays:
        _of_arrays[annotations] = tensors(annotations)
    found: Annotations = _of_arrays[annotations]
    return found
