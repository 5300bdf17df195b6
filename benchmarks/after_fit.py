"""What follows a fit by EM, in processor time beside the fit: checks, workers, summary, tasks, report, comparison."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import typer
from support.data import simulate_many
from support.report import Report

import crowdppl as cp
from crowdppl.inference.findings.look import look_at

N_CLASSES, PER_TASK = 10, 10
SIZES = {20_000: 400, 500_000: 10_000, 10_000_000: 10_000}
"""Workers by annotations."""


def main(largest: int = 10_000_000, views: bool = False, write: bool = False, size: int = 0) -> None:
    """Measure, and print what was found.

    Args:
        largest: annotations at the most.
        views: the tasks, the report and the comparison too, which take minutes.
        write: refresh this section of RESULTS.md.
        size: measure it alone, in this process, and print JSON; what the script asks of itself.
    """
    if size:
        sys.stdout.write(json.dumps(measured(size, views=views)))
        return
    report = Report("What follows a fit by EM, beside the fit")
    rows = []
    for n_rows in (n for n in SIZES if n <= largest):
        of_itself = [sys.executable, __file__, "--size", str(n_rows), *(["--views"] if views else [])]
        run = [json.loads(subprocess.run(of_itself, check=True, capture_output=True).stdout) for _ in range(2)][-1]
        shown = {name: f"{run[name] / run['fit']:.2f}" if name in run else "–" for name in NAMES}
        rows.append({"annotations": f"{n_rows:,}", **shown, "fit, s": round(run["fit"], 1)})
    report.table(
        "Processor time as a part of the fit's, in a new process whose programs an earlier one kept",
        rows,
        absolute=["fit, s"],
    )
    report.note(
        f"Dawid and Skene's story, {N_CLASSES} classes, {PER_TASK} annotations a task. The fit has its checks in it, "
        "which are run once more; each view is asked for after those before it, with which it shares the draws around "
        "the mode. The comparison is with one_coin."
    )
    if write:
        report.write()


NAMES = ("checks", "workers", "summary", "tasks", "report", "compare")


def measured(n_rows: int, *, views: bool) -> dict[str, float]:
    """Seconds of processor time by what is asked for."""
    annotations = simulate_many(n_rows // PER_TASK, SIZES[n_rows], N_CLASSES, PER_TASK)
    found: dict[str, float] = {}

    def timed(name: str, run: Callable[[], object]) -> object:
        before = time.process_time()
        result = run()
        found[name] = time.process_time() - before
        return result

    fit = timed("fit", lambda: cp.fit("dawid_skene", annotations, progress=False))
    assert isinstance(fit, cp.Fit)
    timed("checks", lambda: look_at(fit.fitted.replace(settings=dict(fit.fitted.settings))))
    timed("workers", lambda: fit.workers)
    timed("summary", lambda: str(fit.summary()))
    if views:
        timed("tasks", lambda: fit.tasks)
        with tempfile.TemporaryDirectory() as folder:
            timed("report", lambda: fit.report(Path(folder) / "report.html"))
        other = cp.fit("one_coin", annotations, progress=False)
        timed("compare", lambda: cp.compare({"dawid_skene": fit, "one_coin": other}))
    return found


if __name__ == "__main__":
    typer.run(main)
