"""The request to :func:`crowdppl.read`, as one object that its readers hand on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INFER = "infer"
"""Find the column out by its name."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments of :func:`crowdppl.read` beside the source."""

    question: Any
    looks: bool  # whether a column of questions is looked for, as none was named
    task: str
    worker: str | None
    label: str
    count: str | None
    seconds: str | None
    separator: str | None
    encoding: str | None
    sheet: str | None
    columns: str | None
    outer: str | None
    several: str
    comparisons: bool | None
    meaning: Mapping[Any, str] | None
    preferences: bool
    item_features: Any
    tags: str | None
    tag_separator: str | None
    empty: str | None
    gold: Any
    options: Mapping[str, Any]  # of `Annotations.from_frame`

    @property
    def roles(self) -> dict[str, str | None]:
        """By role the column that was named, None for none, or :data:`INFER`."""
        return {role: getattr(self, role) for role in ("task", "worker", "label", "count", "seconds")}

    @property
    def named(self) -> list[str]:
        """The roles whose column was named."""
        return [role for role, name in self.roles.items() if name not in (INFER, None)]

    @property
    def infers_gold(self) -> bool:
        """True where gold labels are those that the source itself has."""
        return isinstance(self.gold, str) and self.gold == INFER

    @property
    def truth(self) -> Any:
        """The gold labels that were given; None without, or where they are those of the source."""
        return None if self.infers_gold else self.gold
