"""Findings on a result, rendered as text, HTML, a table, and Python's warnings."""

import warnings

import pandas as pd
from markupsafe import Markup

from ...data import cards
from ...data.cards import never_raising
from ..engines.finding import Finding

COLUMNS = ("story", "code", "about", "severity", "text", "remedy")


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
