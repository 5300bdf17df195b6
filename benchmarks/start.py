"""How soon things begin: imports, the command line, first fits, and a process that fits for hours."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from support.data import data_folder, simulate_annotations
from support.report import Report

OPEN = ("anesthesia", "rte", "trec", "product", "bluebird", "labelme", "music", "dog", "movie_sp", "weather_amt")
"""The ten datasets that ``auto`` is timed on."""

CROWD_KIT = """
import sys
import pandas as pd
from crowdkit.aggregation import DawidSkene
DawidSkene(100).fit_predict(pd.read_csv(sys.argv[1])).to_csv(sys.argv[2])
"""

NEW_SIZES = """
import time
import crowdppl as cp
base = dict(n_tasks=800, n_workers=164, n_classes=2, annotations_per_task=10)
sizes = [{"n_tasks": 800 - 7 * i, "n_workers": 164 - 2 * i} for i in range(6)]
crowds = [cp.simulate("dawid_skene", **base | size, seed=i)[0] for i, size in enumerate(sizes)]
cp.fit("dawid_skene", crowds[0].without_gold(), progress=False).labels
times = []
for crowd in crowds[1:]:
    began = time.perf_counter()
    cp.fit("dawid_skene", crowd.without_gold(), progress=False).labels
    times.append(time.perf_counter() - began)
print(sorted(times)[len(times) // 2])
"""

MANY_FITS = """
import json, os, resource, sys, warnings
import numpy as np
import crowdppl as cp
from crowdppl.models import STORIES

warnings.simplefilter("ignore")
page = os.sysconf("SC_PAGE_SIZE")
def maps():
    return sum(1 for _ in open("/proc/self/maps"))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * page / 2**20
rng = np.random.default_rng(0)
stories, found = list(STORIES), []
for number in range(int(sys.argv[1])):
    story = stories[number % len(stories)]
    n_classes = 2 if story in ("two_coin", "item_response") else int(rng.integers(2, 5))
    crowd, _ = cp.simulate(
        story, n_tasks=int(rng.integers(20, 2000)), n_workers=int(rng.integers(5, 100)),
        n_classes=n_classes, annotations_per_task=int(rng.integers(2, 5)), seed=number,
    )
    cp.fit(story, crowd.without_gold(), progress=False, max_iterations=5).workers
    if number in (99, int(sys.argv[1]) // 2, int(sys.argv[1]) - 1):
        found.append({"fits": number + 1, "memory maps": maps(), "resident, MiB": round(resident())})
print(json.dumps(found))
"""

AUTO = """
import sys, time, warnings
import crowdppl as cp
warnings.simplefilter("ignore")
crowds = [cp.load_dataset(name) for name in sys.argv[1:]]
began = time.perf_counter()
for crowd in crowds:
    cp.fit("auto", crowd, progress=False).labels
print(time.perf_counter() - began)
"""


def main(repeats: int = 5, fits: int = 300, auto: bool = False, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        repeats: fresh processes of each command, which take turns.
        fits: fits of random sizes and all stories in one process; 0 for none.
        auto: time ``auto`` on ten datasets too, which takes minutes.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("Ready at once, alive for days")
    with tempfile.TemporaryDirectory() as folder:
        compare_starts(report, Path(folder), repeats)
    if fits:
        loop(report, fits)
    if auto:
        seconds = float(_python({}, AUTO, *OPEN))
        report.table(
            "auto on ten datasets in one process",
            [{"at most 90 s": _reached(seconds, 90), "seconds": seconds}],
            absolute=["seconds"],
        )
    if write:
        report.write()


def compare_starts(report: Report, folder: Path, repeats: int) -> None:
    """Processor time of fresh processes, those to be compared in turn."""
    file = folder / "annotations.csv"
    simulate_annotations(n_tasks=1_000, n_workers=50, n_classes=4, per_task=10).to_csv(file, index=False)
    cache = {"CROWDPPL_CACHE": str(folder / "cache")}
    python, command = [sys.executable, "-W", "ignore"], [sys.executable, "-W", "ignore", "-m", "crowdppl"]
    fit = [*command, "fit", str(file), "--quiet", "--overwrite", "--out"]
    _run([*fit, str(folder / "warm")], cache)  # fills the cache
    commands: dict[str, tuple[list[str], Mapping[str, str]]] = {
        "import numpyro, pandas": ([*python, "-c", "import numpyro, pandas"], {}),
        "import crowdppl": ([*python, "-c", "import crowdppl"], {}),
        "import crowdppl; cp.fit": ([*python, "-c", "import crowdppl as cp; cp.fit"], {}),
        "crowdppl --help": ([*command, "--help"], {}),
        "crowd-kit, 10,000 rows": ([*python, "-c", CROWD_KIT, str(file), str(folder / "peer.csv")], {}),
        "crowdppl fit, 10,000 rows": ([*fit, str(folder / "warm")], cache),
        "crowdppl fit, 10,000 rows, no cache": ([*fit, str(folder / "cold")], {"CROWDPPL_CACHE": "off"}),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, (line, variables) in commands.items():
            times[name].append(_run(line, variables))
    seconds = {name: statistics.median(found) for name, found in times.items()}
    rows = [
        _row("import crowdppl", seconds, peer="import numpyro, pandas", at_most=1.15),
        _row("import crowdppl; cp.fit", seconds, peer="import numpyro, pandas", at_most=1.15),
        _row("crowdppl --help", seconds, within=0.5),
        _row("crowdppl fit, 10,000 rows", seconds, peer="crowd-kit, 10,000 rows", at_most=1.0),
        _row("crowdppl fit, 10,000 rows, no cache", seconds, peer="crowd-kit, 10,000 rows", within=6.0),
    ]
    new_size = float(_python(cache, NEW_SIZES))
    rows.append(
        {
            "what": "EM of a new size within a bucket, of about rte's, in a running process",
            "seconds": new_size,
            "target": "≤ 0.1 s",
            "reached": _reached(new_size, 0.1),
        }
    )
    report.table("Processor time of fresh processes, medians", rows, absolute=["seconds"])


def loop(report: Report, fits: int) -> None:
    """Memory maps and resident memory of one process that fits all stories to data of random sizes."""
    found = json.loads(_python({}, MANY_FITS, str(fits)))
    report.table(f"{fits:,} fits of random sizes and all stories in one process", found)


def _row(
    name: str, seconds: dict[str, float], peer: str = "", at_most: float = 0, within: float = 0
) -> dict[str, object]:
    """What was found of one command, beside a peer or a limit."""
    ratio = seconds[name] / seconds[peer] if peer else None
    reached = (not at_most or (ratio is not None and ratio <= at_most)) and (not within or seconds[name] <= within)
    return {
        "what": name,
        "seconds": seconds[name],
        "peer": peer,
        "times the peer's": "" if ratio is None else f"{ratio:.2f}",
        "target": f"≤ {at_most:g} × the peer's" if at_most else f"≤ {within:g} s",
        "reached": "yes" if reached else "no",
    }


def _reached(seconds: float, limit: float) -> str:
    return "yes" if seconds <= limit else "no"


def _run(line: Sequence[str], variables: Mapping[str, str]) -> float:
    """Processor seconds of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, check=True, env=_environment(variables), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _python(variables: Mapping[str, str], program: str, *arguments: str) -> str:
    """What a program prints in a process of its own."""
    line = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    return subprocess.run(line, check=True, env=_environment(variables), stdout=subprocess.PIPE, text=True).stdout


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without JAX's own cache, and with bytecode, as an installed package has."""
    left_out = ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
    own = {name: value for name, value in os.environ.items() if name not in left_out}
    return own | dict(variables)


if __name__ == "__main__":
    typer.run(main)
