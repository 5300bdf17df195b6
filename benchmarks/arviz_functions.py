"""ArviZ's functions on fit.idata: which run, with the installed line of ArviZ and with the other one."""

import json
import os
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import matplotlib
import typer
from support.report import Report

import crowdppl as cp

# The calls are those of the tests.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
matplotlib.use("Agg")
OPTIONS: dict[str, Any] = {"method": "nuts", "chains": 4, "warmup": 300, "draws": 300, "progress": False}
HERE = "crowdppl-arviz-table"


def main(
    other: Annotated[Path | None, typer.Option(envvar="OTHER_PYTHON")] = None,
    write: bool = False,
) -> None:
    """Call every function on a fit of the anesthesia data.

    Args:
        other: the Python of an environment with the other line of ArviZ, whose table stands below.
        write: refresh this section of RESULTS.md.
    """
    if os.environ.get(HERE):
        print(json.dumps([line(), table()]))
        return
    report = Report("ArviZ's functions on fit.idata")
    report.table(line(), table(), absolute=["seconds"])
    if other is not None:
        environment = os.environ | {HERE: "1"}
        done = subprocess.run([other, __file__], env=environment, capture_output=True, text=True, check=True)
        title, rows = json.loads(done.stdout.splitlines()[-1])
        report.table(title, rows, absolute=["seconds"])
    report.note(
        "Dawid-Skene on anesthesia by NUTS, 4 chains of 300 draws; `other` is the same story fitted by SVI, `one` the "
        "groups cut to one number a draw. Unit of log-likelihood, replicates and observed data: the task. "
        "`make test` calls the same table (tests/inference/storage/test_arviz_functions.py) with the installed line. "
        "`OTHER_PYTHON` names the Python of the second table."
    )
    if write:
        report.write()


def line() -> str:
    """The versions of ArviZ and Python."""
    return f"ArviZ {version('arviz')}, Python {sys.version_info.major}.{sys.version_info.minor}"


def table() -> list[dict[str, object]]:
    """By function the call, and whether it ran or why not."""
    import matplotlib.pyplot as plt
    from arviz_calls import INSTALLED, run

    patients = cp.load_dataset("anesthesia")
    rows: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few draws, and of Matplotlib to ArviZ
        idata = cp.fit("dawid_skene", patients, **OPTIONS).idata
        other = cp.fit("dawid_skene", patients, method="svi", progress=False).idata
        for name, call in INSTALLED.items():
            begun = perf_counter()
            try:
                run(call, idata, other)
                found = "runs"
            except Exception as error:  # what fails is what is asked for
                found = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
            rows.append({"function": name, "call": f"`{call}`", "result": found, "seconds": perf_counter() - begun})
            plt.close("all")
    return [{**row, "seconds": f"{row['seconds']:.1f}"} for row in rows]


if __name__ == "__main__":
    typer.run(main)
