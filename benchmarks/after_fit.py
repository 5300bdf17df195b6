"""What follows a fit by EM, in processor time beside the fit: checks, workers, summary, tasks, report, comparison."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from support.data import simulate_many
from support.report import Report

import crowdppl as cp
from crowdppl.inference.findings.look import look_at

N_CLASSES, PER_TASK = 10, 10
SIZES = [20_000, 500_000, 1_000_000, 10_000_000]
LITTLE, VIEWED = 100_000, 500_000  # annotations; up to how many of them all views are asked for
FEW, MANY = 400, 10_000  # workers of so many annotations, and of more

Sizes = Annotated[list[int] | None, typer.Argument(help="numbers of annotations")]


def main(sizes: Sizes = None, views: bool = False, write: bool = False, alone: bool = False) -> None:
    """Measure, and print what was found, each view as soon as it is measured.

    Args:
        sizes: numbers of annotations; 20,000, 500,000, a million and ten million by default.
        views: the tasks, the report and the comparison too, of up to 500,000 annotations.
        write: refresh this section of RESULTS.md.
        alone: measure the one size in this process, and print JSON; what the script asks of itself.
    """
    sizes = sizes or SIZES
    if alone:
        sys.stdout.write(json.dumps(measured(sizes[0], views=views)))
        return
    report = Report("What follows a fit by EM, beside the fit")
    rows = []
    for n_rows in sizes:
        of_itself = [
            sys.executable,
            __file__,
            str(n_rows),
            "--alone",
            *(["--views"] if views and n_rows <= VIEWED else []),
        ]
        runs = [json.loads(subprocess.run(of_itself, check=True, stdout=subprocess.PIPE).stdout) for _ in range(2)]
        run = runs[-1]
        shown = {name: f"{run[name] / run['fit']:.2f}" if name in run else "–" for name in NAMES}
        absolute = {"fit, s": f"{run['fit']:.1f}", "GB": f"{run['memory']:.1f}"}
        rows.append({"annotations": f"{n_rows:,}", **shown, **absolute})
    report.table(
        "Processor time as a part of the fit's, in a new process whose programs an earlier one kept",
        rows,
        absolute=["fit, s"],
    )
    report.note(
        f"Dawid and Skene's story, {N_CLASSES} classes, {PER_TASK} annotations a task, {FEW} workers, or "
        f"{MANY:,} of more than {LITTLE:,} annotations. The fit has its checks in it, which are run once more; each "
        "view is asked for after those before it, with which it shares the draws around the mode. The comparison is "
        "with one_coin."
    )
    if write:
        report.write()


NAMES = ("checks", "workers", "summary", "tasks", "report", "compare")


def measured(n_rows: int, *, views: bool) -> dict[str, float]:
    """Seconds of processor time by what is asked for."""
    n_workers = FEW if n_rows <= LITTLE else MANY
    annotations = simulate_many(n_rows // PER_TASK, n_workers, N_CLASSES, PER_TASK)
    found: dict[str, float] = {}

    def timed(name: str, run: Callable[[], object]) -> object:
        before = time.process_time()
        result = run()
        found[name] = time.process_time() - before
        print(f"{n_rows:,} annotations, {name}: {found[name]:.2f} s", file=sys.stderr, flush=True)
        return result

    fit = timed("fit", lambda: cp.fit("dawid_skene", annotations, progress=False))
    assert isinstance(fit, cp.Fit)
    anew = fit.fitted.replace(source=annotations.replace())  # of which nothing is known yet
    timed("checks", lambda: look_at(anew))
    timed("workers", lambda: fit.workers)
    timed("summary", lambda: str(fit.summary()))
    if views:
        timed("tasks", lambda: fit.tasks)
        with tempfile.TemporaryDirectory() as folder:
            timed("report", lambda: fit.report(Path(folder) / "report.html"))
        other = cp.fit("one_coin", annotations, progress=False)
        timed("compare", lambda: cp.compare({"dawid_skene": fit, "one_coin": other}))
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


if __name__ == "__main__":
    typer.run(main)
