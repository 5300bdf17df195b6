"""Figures on the terminal, and the same figures in RESULTS.md."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import jax
import pandas as pd
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parents[1] / "RESULTS.md"
PACKAGES = ("jax", "numpyro", "numpy", "pandas", "crowd-kit")
PREAMBLE = """# Results

Every figure here was printed by a script of this folder, which refreshes its own section with `--write`:

```sh
make test                           # makes .venv with what the benchmarks need
export CROWDPPL_DATA=…              # the folder of datasets
.venv/bin/python benchmarks/em.py --write
```

Peers run in the same process, in turn with crowdppl. Times measured on a CPU are given as ratios to the peer's in
the same run; the terminal shows them in seconds too.
"""


class Report:
    """Tables and sentences of one benchmark: shown as they come, kept for RESULTS.md.

    Args:
        title: the heading of the section.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.blocks: list[str] = []
        self.console = Console(width=140)
        self.console.print(f"[bold]{title}[/bold]\n{circumstances()}")

    def table(self, title: str, rows: Sequence[dict[str, object]], absolute: Sequence[str] = ()) -> None:
        """Show a table, and keep it.

        Args:
            title: what it shows.
            rows: one dictionary a row, with the same keys.
            absolute: columns of absolute times, which RESULTS.md holds only where they come from a GPU.
        """
        frame = pd.DataFrame(rows)
        self._show(title, frame)
        kept = frame if jax.default_backend() == "gpu" else frame.drop(columns=list(absolute))
        self.blocks.append(f"**{title}**\n\n{_markdown(kept)}")

    def note(self, text: str) -> None:
        """Show a sentence, and keep it."""
        self.console.print(text, markup=False)
        self.blocks.append(text)

    def write(self) -> None:
        """Put the section into RESULTS.md, in the place of its predecessor."""
        name = Path(sys.argv[0]).stem
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        blocks = [begin, f"## {self.title}", circumstances(), *self.blocks, end]
        section = "\n\n".join(blocks)
        text = RESULTS.read_text() if RESULTS.exists() else PREAMBLE
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if pattern.search(text):
            text = pattern.sub(lambda _: section, text)
        else:
            text = f"{text.rstrip()}\n\n{section}\n"
        RESULTS.write_text(text)
        self.console.print(f"written to {RESULTS}")

    def _show(self, title: str, frame: pd.DataFrame) -> None:
        table = Table(title=title, title_justify="left")
        for column in frame:
            table.add_column(str(column), justify="left" if frame[column].dtype == object else "right")
        for row in frame.itertuples(index=False):
            table.add_row(*map(_text, row))
        self.console.print(table)


def circumstances() -> str:
    """The command, the day, the machine and the versions, in a line."""
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    device = jax.devices()[0].device_kind if jax.default_backend() == "gpu" else "no GPU"
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES if find_spec(package.replace("-", "")))
    machine = f"{os.cpu_count()} cores ({_cpu()}), {device}"
    return f"`{command}` · {date.today()} · {machine} · Python {platform.python_version()}, {versions}"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _markdown(frame: pd.DataFrame) -> str:
    header = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    rows = header + [list(map(_text, row)) for row in frame.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
