"""The subject of a report: a fit or a stack of fits, and what the sections of the page share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.id_text import name_text
from ..comparison.comparing import by_name, compare
from ..findings.look import findings
from ..findings.register import Findings
from ..findings.review import with_review
from ..findings.summary import Summary, summarise
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL
from ..fitted.posterior import Posterior, fitted_of, posterior_of
from ..fitted.workers import worker_scores

Fits = Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted] | None


@dataclass(frozen=True, eq=False)
class Subject:
    """A fit or a stack of fits, and what the sections of its page share.

    Args:
        source: the fit or the stack that has the labels and workers of the page.
        fits: the fits that are compared, by name, `source` or the fits of a stack first.
        comparison: of `fits`; None for a single fit, and where the weights of a stack were given.
        seed: of everything that is drawn at random.
    """

    source: Posterior
    fits: dict[str, Any]
    comparison: pd.DataFrame | None
    seed: int

    @property
    def annotations(self) -> Annotations:
        """The annotations as they were given."""
        return self.source.given

    @property
    def stack(self) -> Posterior | None:
        """The stack; None where the report is of a fit."""
        return self.source if self.source.is_average else None

    @property
    def lead(self) -> tuple[str, Any]:
        """Name and fit that the sections on one story describe: of a stack, the fit with the highest weight."""
        return next(iter(self.fits.items())) if self.stack is None else self.source.heaviest

    @cached_property
    def scores(self) -> pd.DataFrame | None:
        """All scores of the workers, and those by gold labels where there are any; None where no worker is named."""
        if not self.annotations.named:
            return None
        found = with_review(worker_scores(self.source), self.source)
        return found.set_axis(pd.Index(list(map(name_text, found.index)), name="worker"), axis=0)

    @cached_property
    def summary(self) -> Summary:
        """The summary of the fit that leads, which must not be a baseline."""
        return summarise(self.lead[1], INTERVAL)

    @property
    def of_lead(self) -> str:
        """A sentence before what is said of one fit of a stack; empty where the report is of a fit."""
        if self.stack is None:
            return ""
        which = "the story with the highest weight" if len(self.fits) > 1 else "as it was fitted, without the votes"
        return f"This section is about {self.lead[0]}, {which}. "

    @cached_property
    def findings(self) -> Findings:
        """The findings on all fits, of a stack those on the fits that have weight."""
        if self.stack is not None or len(self.fits) == 1:
            return findings(self.source)
        return Findings(replace(each, story=name) for name, fit in self.fits.items() for each in fit.findings)


def subject(source: Any, fits: Fits, gold: Any, seed: int) -> Subject:
    """Make the subject of a report.

    Args:
        fits: other fits of the same annotations, to compare a fit with.
        gold: true label by task, in place of the gold labels of the annotations; None for these.

    Raises:
        ValueError: `source` is neither a fit nor a stack, a stack comes with other fits, or fits cannot be compared.
        OnDiskError: the fit leaves its annotations on the disk.
        AnnotationError: `gold` does not fit the annotations.
    """
    if not isinstance(source, Posterior | Fitted):
        raise ValueError(f"a report needs a fit by cp.fit or a stack of fits, got a {type(source).__name__}")
    source = posterior_of(source)
    if source.rule is not None:
        if fits is not None:
            raise ValueError(
                f"fits= compares stories, and {source.story} has no likelihood to compare; leave fits= out"
            )
        rule = source.rule
        judged = rule if gold is None else replace(rule, annotations=rule.annotations.with_gold(gold))
        return Subject(Posterior.of(judged), {rule.name: Posterior.of(judged)}, None, seed)
    if source.only is None:
        if fits is not None:
            raise ValueError(
                "fits= is for a single fit; a stack already has the fits that it averages, so leave fits= out"
            )
        named = _with_gold(source.members, source.annotations, gold)
        return Subject(replace(source, members=named), named, source.comparison, seed)
    own = source.only
    named = {source.story: own} if fits is None else _with_source(own, fits)
    comparison = None if fits is None else compare(named, seed=seed, progress=False)
    named = _with_gold(named, source.annotations, gold)
    lead = next(iter(named.values()))
    return Subject(source if lead is own else Posterior.of(lead), named, comparison, seed)


def _with_gold(fits: Mapping[str, Fitted], annotations: Annotations, gold: Any) -> dict[str, Fitted]:
    """The fits with the gold labels that were given, or else those of the annotations."""
    judge = (annotations if gold is None else annotations.with_gold(gold)).gold
    return {name: _judged_by(fitted, judge) for name, fitted in fits.items()}


def _judged_by(fitted: Fitted, gold: np.ndarray | None) -> Fitted:
    """The fit with these gold labels: itself, with what it has computed already, where it has them."""
    own = fitted.annotations.gold
    return fitted if own is gold else fitted.replace(source=fitted.annotations.replace(gold=gold))


def _with_source(
    source: Fitted, fits: Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted]
) -> dict[str, Fitted]:
    """All fits by name, first the one that is reported."""
    if isinstance(fits, Mapping):
        others = {name: fit for name, fit in fits.items() if fitted_of(fit) is not source}
        own = [name for name, fit in fits.items() if fitted_of(fit) is source] or [source.story]
        if own[0] in others:
            raise ValueError(
                f"fits= has another fit named {own[0]!r}, the name of the fit that is reported; rename one of them"
            )
        return by_name({own[0]: source, **others})
    return by_name([source, *(fit for fit in fits if fitted_of(fit) is not source)])
