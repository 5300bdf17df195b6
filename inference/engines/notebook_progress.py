"""Progress in a notebook: one line with a bar, that is written over, and needs nothing but IPython."""

from time import monotonic
from typing import Any

from markupsafe import Markup

EVERY = 0.2  # seconds between two updates, at the least
WIDTH = 160  # of the bar, in pixels

_of_cell: dict[str, Any] = {}  # the display of the cell that runs: several fits, and what they start from, share it


class NotebookLine:
    """Progress of one piece of work in a notebook, with the methods of Rich's ``Progress``."""

    def __init__(self) -> None:
        self._now: dict[str, Any] = {}
        self._begun = monotonic()
        self._written = 0.0
        self._seen = False

    def add_task(self, what: str, **fields: Any) -> int:
        """Say what is done; there is one."""
        self._now = {"what": what, **fields}
        return 0

    def update(self, task: int, **fields: Any) -> None:
        """Change what is said: total, completed, steps, note."""
        self._now |= fields
        if self._seen and monotonic() - self._written >= EVERY:
            self._write()

    def start(self) -> None:
        """Show the line."""
        self._seen = True
        self._write()

    def stop(self) -> None:
        """Leave an empty line."""
        self._seen = False
        _show({"text/plain": "", "text/html": ""})

    def _write(self) -> None:
        self._written = monotonic()
        steps, note = str(self._now.get("steps", "")), str(self._now.get("note", ""))
        elapsed = int(self._written - self._begun)
        parts = [str(self._now["what"]), steps, f"{elapsed // 60}:{elapsed % 60:02}", note]
        total, completed = self._now.get("total"), self._now.get("completed", 0)
        plain = "  ".join(part for part in parts if part)
        bar = Markup('<progress style="width:{}px" value="{}" max="{}"></progress>').format(WIDTH, completed, total)
        html = Markup("<div>{} <small>{}</small></div>").format(bar if total else "", plain)
        _show({"text/plain": plain, "text/html": str(html)})


def _show(said: dict[str, str]) -> None:
    """Write over the display of the cell that runs, or make it."""
    from IPython.core.getipython import get_ipython
    from IPython.display import display, update_display

    cell = getattr(get_ipython(), "execution_count", None)
    if _of_cell.get("cell") == cell:
        update_display(said, display_id=_of_cell["handle"].display_id, raw=True)
    elif any(said.values()):
        _of_cell.update(cell=cell, handle=display(said, raw=True, display_id=True))
