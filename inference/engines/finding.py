"""A finding on a fit: what was found, of which subject, and what to do, as data and as a sentence."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ...data.id_text import as_sentence, name_text

About = Literal["draws", "modes", "prior", "classifier", "labels", "crowd", "gold"]
"""Subjects of findings."""

Severity = Literal["note", "warning"]

OF_DATA: tuple[About, ...] = ("crowd", "gold")
"""Subjects that are the annotations' own, whatever story was fitted: an average of several fits says them once."""

NAMES = ("worker", "workers", "families")
"""Values of a finding that name workers."""


class FindingWarning(UserWarning):
    """Python's warning of a finding.

    Args:
        text: the message.
        finding: the finding that it tells of; None where it tells of something else.
    """

    def __init__(self, text: str, finding: "Finding | None" = None) -> None:
        super().__init__(text)
        self.finding = finding


class ConvergenceWarning(FindingWarning):
    """An engine stopped before its result can be trusted; the message says what to do."""


class CrowdWarning(FindingWarning):
    """The annotations by themselves cannot tell what was asked of them; the message says what would."""


@dataclass(frozen=True)
class Finding:
    """A finding on a fit.

    Args:
        code: short name of what was found, by which programs know it, such as ``"not_converged"``.
        about: the subject.
        severity: ``"warning"`` for what a user should act on; ``"note"`` for what is good to know.
        values: figures and names behind the text, by name: numbers, text, and lists of them, as JSON has them.
        text: what was found, as a sentence without its full stop.
        remedy: what to do, as the text's last clause or, with a capital letter, a sentence of its own; may be empty.
        story: the fit's name, where the finding is on one of several.
    """

    code: str
    about: About
    severity: Severity
    text: str
    remedy: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    story: str = ""

    @property
    def sentence(self) -> str:
        """The text with the remedy, behind the fit's name where there are several fits."""
        if not self.remedy:
            return self._named
        return f"{self._named}{'.' if self.remedy[0].isupper() else ';'} {self.remedy}"

    @property
    def standing(self) -> str:
        """The sentence as one that stands by itself, with a capital letter and a full stop."""
        return as_sentence(self.sentence, named=bool(self.story))

    @property
    def short(self) -> str:
        """The text's first sentence, likewise."""
        return as_sentence(self._named, named=bool(self.story), first=True)

    @property
    def _named(self) -> str:
        return f"{self.story}: {self.text}" if self.story else self.text

    @property
    def warning(self) -> FindingWarning:
        """Python's warning of the finding, of the category that its subject has."""
        return (CrowdWarning if self.about in OF_DATA else ConvergenceWarning)(self.sentence, self)

    def renamed(
        self,
        names: Mapping[Hashable, Hashable],
        in_text: Callable[[str, Mapping[Hashable, Hashable], Collection[str]], str],
    ) -> "Finding":
        """Return the finding with other names of workers.

        Args:
            names: the other name of each worker.
            in_text: replaces names in a text, those too that are listed in the values.
        """
        by_text = {form(name): form(other) for name, other in names.items() for form in (str, name_text)}
        listed: set[str] = set()

        def other(value: Any, is_name: bool) -> Any:
            if isinstance(value, Mapping):
                return {name: other(each, name in NAMES) for name, each in value.items()}
            if isinstance(value, list):
                return [other(each, is_name) for each in value]
            if is_name and str(value) in by_text:
                listed.add(str(value))
                return by_text[str(value)]
            return value

        values = {name: other(value, name in NAMES) for name, value in self.values.items()}

        def hidden(text: str) -> str:
            return in_text(text, names, listed)

        texts = {n: hidden(value) for n, value in values.items() if isinstance(value, str) and n not in NAMES}
        return replace(self, text=hidden(self.text), remedy=hidden(self.remedy), values=values | texts)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them; ``Finding(**fields)`` is the finding again."""
        return asdict(self)


def sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the sentences of the findings that are warnings."""
    return tuple(each.sentence for each in findings if each.severity == "warning")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers as Python's, what is not finite as None, other ids as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):  # an identifier, such as a worker and a question
        return name_text(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
