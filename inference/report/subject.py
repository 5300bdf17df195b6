"""What a report is of: a fit, or a stack of fits, with all that its sections share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...data import Annotations
from ..comparison.comparing import by_name, compare
from ..comparison.stacking import Averaged
from ..fitted.fitted import Fitted, HoldsFitted, fitted_of

Fits = Mapping[str, HoldsFitted] | Iterable[HoldsFitted] | None


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is of.

    Args:
        source: whose labels and workers these are.
        fits: by name, `source` itself or a stack's fits first; those that are compared.
        comparison: of `fits`; None where there is one, or their weights were given.
        seed: of all that is drawn at random.
    """

    source: Fitted | Averaged
    fits: dict[str, Fitted]
    comparison: pd.DataFrame | None
    seed: int

    @property
    def annotations(self) -> Annotations:
        """The data."""
        return self.source.annotations

    @property
    def stack(self) -> Averaged | None:
        """The stack, where it is one."""
        return self.source if isinstance(self.source, Averaged) else None

    @property
    def lead(self) -> tuple[str, Fitted]:
        """The fit that single stories' sections are of, with its name: of a stack the one of most weight."""
        if isinstance(self.source, Averaged):
            name = str(self.source.weights.idxmax())
            return name, self.source.fits[name]
        return next(iter(self.fits)), self.source

    @property
    def of_lead(self) -> str:
        """Words before what holds for the leading fit of a stack alone; empty for a fit."""
        return f"This is of {self.lead[0]}, the story of most weight. " if self.stack is not None else ""

    @property
    def warnings(self) -> list[str]:
        """Of all fits, the leading one's first."""
        found = [f"{name}: {text}" for name, fit in self.fits.items() for text in fit.warnings]
        return found if len(self.fits) > 1 else list(self.source.warnings)


def subject(source: Any, fits: Fits, gold: Any, seed: int) -> Subject:
    """Put together what a report is of.

    Args:
        source: a fit or a stack.
        fits: others of the same annotations, to compare a fit with.
        gold: label by task, in place of the annotations' own; None for these.
        seed: of all that is drawn at random.

    Raises:
        ValueError: `source` is neither, a stack comes with other fits, or fits cannot be compared.
        AnnotationError: gold labels that do not fit the annotations.
    """
    if isinstance(source, Averaged):
        if fits is not None:
            raise ValueError("a stack brings the fits that it averages; leave out fits=")
        named = _with_gold(source.fits, source.annotations, gold)
        return Subject(replace(source, fits=named), named, source.comparison, seed)
    try:
        source = fitted_of(source)
    except TypeError as error:
        raise ValueError(
            f"a {type(source).__name__} cannot be reported; a fit by cp.fit, or a stack of fits, can"
        ) from error
    named = {source.story: source} if fits is None else _with_source(source, fits)
    comparison = None if fits is None else compare(named, seed=seed, progress=False)
    named = _with_gold(named, source.annotations, gold)
    return Subject(next(iter(named.values())), named, comparison, seed)


def _with_gold(fits: dict[str, Fitted], annotations: Annotations, gold: Any) -> dict[str, Fitted]:
    """The fits with the gold labels that were given, or else those of the annotations, to be judged by the same."""
    judge = (annotations if gold is None else annotations.with_gold(gold)).gold
    return {name: fitted.replace(annotations=fitted.annotations.replace(gold=judge)) for name, fitted in fits.items()}


def _with_source(source: Fitted, fits: Mapping[str, HoldsFitted] | Iterable[HoldsFitted]) -> dict[str, Fitted]:
    """All fits by name, the one that is reported first."""
    if isinstance(fits, Mapping):
        others = {name: fit for name, fit in fits.items() if fitted_of(fit) is not source}
        own = [name for name, fit in fits.items() if fitted_of(fit) is source] or [source.story]
        if own[0] in others:
            raise ValueError(
                f"fits= has another fit by the name {own[0]!r}, that of the fit that is reported; rename it"
            )
        return by_name({own[0]: source, **others})
    return by_name([source, *(fit for fit in fits if fitted_of(fit) is not source)])
