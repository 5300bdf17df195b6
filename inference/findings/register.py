"""The register of checks, each of which looks at a result for one finding, and how findings are rendered."""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data import Annotations, cards
from ...data.cards import never_raising
from ..engines.finding import About, Finding, Severity, plain
from ..engines.outcome import Outcome
from ..fitted.remembered import once as once

T = TypeVar("T")

NEEDS: dict[str, Callable[[Any], bool]] = {
    "engine": lambda of: hasattr(of, "outcome"),  # with its method and settings
    "sampler": lambda of: hasattr(of, "outcome") and bool(of.outcome.stats),
    "story": lambda of: hasattr(of, "model"),  # one, and no average of several
    "memory": lambda of: hasattr(of, "annotations"),  # and no files
    "average": lambda of: getattr(of, "is_average", False) and not of.on_disk,  # of stories, or of one and the votes
    "workers": lambda of: hasattr(of, "annotations") and of.annotations.named,
}
"""Needs that a check may have of a result, each with a test for it. A check without any is asked of every result."""
COLUMNS = ("story", "code", "about", "severity", "text", "remedy")


class Labels(Protocol):
    """Labels of a crowd, whatever made them."""

    @property
    def annotations(self) -> Annotations:
        """The data."""

    @property
    def given(self) -> Annotations:
        """The annotations as they were given: those that do not count, too."""

    @property
    def posterior(self) -> np.ndarray:
        """``P(truth | annotations)``, ``(N, K)``."""


class Run(NamedTuple):
    """A run of an engine, of whose course findings are asked where there is no fitted story."""

    outcome: Outcome
    method: str
    settings: Mapping[str, Any]


class Said(NamedTuple):
    """A check's answer on a result: the fields of its :class:`.Finding`."""

    text: str
    remedy: str = ""
    values: Mapping[str, Any] = {}
    severity: Severity = "warning"


@dataclass(frozen=True)
class Check:
    """A function that looks at a result for one finding.

    Args:
        code: of its findings.
        about: their subject.
        needs: what it needs of a result, from :data:`NEEDS`.
        look: from the result to what it says.
    """

    code: str
    about: About
    needs: frozenset[str]
    look: Callable[[Any], Iterable[Said]] = field(repr=False)

    def __call__(self, of: Any) -> list[Finding]:
        """Return the findings on a result; empty where it lacks what the check needs."""
        if not all(NEEDS[name](of) for name in self.needs):
            return []
        return [
            Finding(self.code, self.about, said.severity, said.text, said.remedy, plain(said.values))
            for said in self.look(of)
        ]


CHECKS: dict[str, Check] = {}
"""By code, in the order in which they are asked."""


def check(
    code: str, about: About, *, needs: Collection[str] = ()
) -> Callable[[Callable[[Any], Iterable[Said]]], Check]:
    """Register the decorated function, from a result to what it says of it, as a check.

    Args:
        code: of its findings; no other check has it.
        about: their subject.
        needs: what it needs of a result, from :data:`NEEDS`.

    Raises:
        ValueError: another check has the code, or a need is none of these.
    """
    if code in CHECKS:
        raise ValueError(f"two checks have the code {code!r}")
    if unknown := sorted(set(needs) - set(NEEDS)):
        raise ValueError(f"the check {code!r} needs {unknown[0]!r}; known are {', '.join(NEEDS)}")

    def register(look: Callable[[Any], Iterable[Said]]) -> Check:
        CHECKS[code] = Check(code, about, frozenset(needs), look)
        return CHECKS[code]

    return register


class Findings(tuple[Finding, ...]):
    """Findings on a result, in the order in which they should be read; a table in notebooks.

    A tuple of :class:`crowdppl.Finding`.
    """

    __slots__ = ()

    @property
    def warnings(self) -> "Findings":
        """Those that a user should act on."""
        return Findings(finding for finding in self if finding.severity == "warning")

    def to_text(self) -> str:
        """Return a paragraph for each finding, behind the word for its severity."""
        return "\n\n".join(f"{finding.severity.capitalize()}: {finding.sentence}" for finding in self)

    def to_html(self) -> Markup:
        """Return a box for each finding, as cards and summaries show them in notebooks."""
        return Markup().join(cards.warning(finding.sentence) for finding in self)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each finding: code, about, severity, text, remedy; and story, where there are several."""
        columns = [name for name in COLUMNS if name != "story" or any(finding.story for finding in self)]
        return pd.DataFrame([[getattr(finding, name) for name in columns] for finding in self], columns=columns)

    def warn(self, stacklevel: int = 1) -> None:
        """Give Python's warning of each finding that a user should act on, a Crowd- or a ConvergenceWarning.

        Args:
            stacklevel: of the caller to whom it is shown, as for :func:`warnings.warn`; 1 is who calls this.
        """
        for finding in self.warnings:
            warnings.warn(finding.warning, stacklevel=stacklevel + 1)

    def __repr__(self) -> str:
        return self.to_text() or "Findings()"

    @never_raising
    def _repr_html_(self) -> str:
        return Markup('<div style="max-width:100%;overflow-x:auto">{}</div>').format(
            Markup(self.to_frame().to_html(index=False))
        )
