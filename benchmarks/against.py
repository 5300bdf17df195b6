"""This checkout against another, such as the one before a change: seconds of fits, of what follows them, and of starts.

``python benchmarks/against.py /path/to/other/checkout`` runs both in turn, in processes of their own whose compiled
programs are on the disk, and prints the ratio of this checkout's median to the other's. Only public names are used.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import typer
from support.report import Report

HERE = Path(__file__).resolve().parents[1]
JOBS = Path(__file__).parent / "support" / "jobs.py"


def main(other: Path, repeats: int = 3, jobs: str = "", torch: bool = True) -> None:
    """Measure, and print what was found.

    Args:
        other: root of the other checkout.
        repeats: counted runs of each checkout, after one that compiles.
        jobs: names of the jobs, separated by commas; all of them by default.
        torch: also train a torch module, which needs the extra ``pyro``.
    """
    with tempfile.TemporaryDirectory() as folder:
        runs = [Checkout(HERE, Path(folder) / "here"), Checkout(other.resolve(), Path(folder) / "other")]
        names = jobs.split(",") if jobs else [*json.loads(runs[0].run("list")["names"])]
        names = [name for name in names if torch or name != "torch"]
        rows = []
        for name in names:
            for checkout in runs:
                checkout.run(name)
            seconds = [[checkout.run(name)["seconds"] for checkout in runs] for _ in range(repeats)]
            here, there = (statistics.median(column) for column in zip(*seconds, strict=True))
            rows.append({"job": name, "seconds here": here, "seconds there": there, "ratio": here / there})
        report = Report("This checkout against another")
        report.table("Seconds by job, medians, and their ratio", rows, absolute=["seconds here", "seconds there"])


class Checkout:
    """A checkout that runs jobs.

    Args:
        root: of the checkout.
        folder: for its compiled programs, and for the link by which Python finds it.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        (folder / "path").mkdir(parents=True)
        (folder / "path" / "crowdppl").symlink_to(root, target_is_directory=True)
        self.environment = os.environ | {"PYTHONPATH": str(folder / "path"), "CROWDPPL_CACHE": str(folder / "cache")}

    def run(self, name: str) -> dict:
        """What the job prints, which is JSON.

        Raises:
            RuntimeError: the job fails.
        """
        command = [sys.executable, str(JOBS), name]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    typer.run(main)
