"""Views of a fit, and what follows from annotations or a result, that are computed once."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
import pandas as pd

from ...data import Annotations

T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., pd.DataFrame])


def once(prepare: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function of a result, or of annotations, that is computed once for all who ask for it."""
    known: WeakKeyDictionary[Any, T] = WeakKeyDictionary()

    @wraps(prepare)
    def prepared(of: Any) -> T:
        if of not in known:
            known[of] = prepare(of)
        return known[of]

    return prepared


def once_for_labels(prepare: Callable[[Annotations, np.ndarray], T]) -> Callable[[Annotations, np.ndarray], T]:
    """Return a function of annotations and label probabilities that is computed once for their last labels."""
    known: WeakKeyDictionary[Annotations, tuple[ref[np.ndarray], T]] = WeakKeyDictionary()

    @wraps(prepare)
    def prepared(annotations: Annotations, posterior: np.ndarray) -> T:
        kept = known.get(annotations)
        if kept is None or kept[0]() is not posterior:
            kept = known[annotations] = ref(posterior), prepare(annotations, posterior)
        return kept[1]

    return prepared


def remembered(view: View) -> View:
    """Return a view of a fit that is computed once for the same options; whoever asks has a copy of the frame.

    It is remembered as long as the fit is in memory, whose fields do not change.

    Args:
        view: from a fit and options to a frame.
    """
    shape = signature(view)
    known: WeakKeyDictionary[Any, dict[tuple, pd.DataFrame]] = WeakKeyDictionary()

    @wraps(view)
    def again(fit: Any, *given: Any, **options: Any) -> pd.DataFrame:
        try:
            bound = shape.bind(fit, *given, **options)
            bound.apply_defaults()
            key = tuple((type(value), value) for value in list(bound.arguments.values())[1:])
            hash(key)
            frames = known.setdefault(fit, {})
        except TypeError:  # no fit, or no option: the view says so
            return view(fit, *given, **options)
        if key not in frames:
            frames[key] = view(fit, *given, **options)
        return frames[key].copy()

    return again  # type: ignore[return-value]
