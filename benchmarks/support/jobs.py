"""One job of ``against.py`` in a process of its own: ``python jobs.py NAME`` prints its seconds as JSON."""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np


def crowd(n_tasks: int, n_classes: int, per_task: int, n_workers: int, features: bool = False):
    """A table of annotations, 60 to 95 % of a worker's right, and features that tell the classes apart."""
    import pandas as pd

    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = rng.integers(0, n_workers, len(task))
    right = rng.random(len(task)) < np.linspace(0.6, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    frame = frame.drop_duplicates(["task", "worker"])
    x = rng.normal(size=(n_tasks, 8)).astype(np.float32) + 2.0 * np.eye(n_classes, 8, dtype=np.float32)[truth]
    return frame, dict(enumerate(x)) if features else None


def timed(run: Callable[[], object], warm: bool = True) -> float:
    """Seconds of a call, the second one where it is to be warm."""
    if warm:
        run()
    start = perf_counter()
    run()
    return perf_counter() - start


def fits(story: str, size: tuple[int, int, int, int], **options: object) -> float:
    """Seconds of a warm fit."""
    import crowdppl as cp

    annotations = cp.Annotations.from_frame(crowd(*size)[0])
    return timed(lambda: cp.fit(story, annotations, progress=False, **options))


def streaming() -> float:
    """Seconds of EM over files, what is prepared included."""
    import crowdppl as cp

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.parquet"
        crowd(60_000, 5, 5, 2_000)[0].to_parquet(path)
        run = lambda: cp.fit("dawid_skene", cp.scan(path, memory="400MB"), max_iterations=8, progress=False)  # noqa: E731
        return timed(run, warm=False)


def update() -> float:
    """Seconds of an update by a thousandth of the data."""
    import crowdppl as cp

    frame = crowd(40_000, 5, 5, 500)[0]
    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(frame.iloc[:-200]), progress=False)
    more = cp.Annotations.from_frame(frame.iloc[-200:], classes=range(5))
    return timed(lambda: fit.update(more, progress=False))


def report() -> float:
    """Seconds of the report of a fit of 2,000 tasks."""
    import crowdppl as cp

    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(crowd(2_000, 4, 5, 60)[0]), progress=False)
    with tempfile.TemporaryDirectory() as folder:
        return timed(lambda: fit.report(Path(folder) / "report.html"))


def workers() -> float:
    """Seconds of the workers' scores after a fit."""
    import crowdppl as cp

    annotations = cp.Annotations.from_frame(crowd(20_000, 5, 5, 300)[0])
    fit = cp.fit("dawid_skene", annotations, progress=False)
    again = cp.fit("dawid_skene", annotations, progress=False)
    _ = fit.workers
    return timed(lambda: again.workers, warm=False)


def torch() -> float:
    """Seconds of a warm fit that trains a torch module."""
    import torch as pytorch

    import crowdppl as cp

    frame, features = crowd(2_000, 4, 4, 30, features=True)
    annotations = cp.Annotations.from_frame(frame, features=features)

    def run() -> object:
        pytorch.manual_seed(0)
        module = pytorch.nn.Sequential(pytorch.nn.Linear(8, 32), pytorch.nn.ReLU(), pytorch.nn.Linear(32, 4))
        return cp.fit("dawid_skene", annotations, classifier=module, backend="pyro", epochs=3, progress=False)

    return timed(run)


def command() -> float:
    """Seconds of ``crowdppl fit`` from a CSV file to files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.csv"
        crowd(2_000, 3, 5, 60)[0].to_csv(path, index=False)
        run = [sys.executable, "-m", "crowdppl", "fit", str(path), "--out", str(Path(folder) / "out"), "--quiet"]
        return timed(lambda: subprocess.run(run, check=True, capture_output=True), warm=False)


def start() -> float:
    """Seconds of ``crowdppl --help``."""
    run = [sys.executable, "-m", "crowdppl", "--help"]
    return timed(lambda: subprocess.run(run, check=True, capture_output=True))


JOBS: dict[str, Callable[[], float]] = {
    "em": lambda: fits("dawid_skene", (100_000, 5, 5, 1_000)),
    "em, no exact step": lambda: fits("glad", (10_000, 3, 5, 200)),
    "em, network": lambda: network(),
    "svi": lambda: fits("dawid_skene", (10_000, 4, 5, 200), method="svi", max_iterations=300),
    "svi, minibatches": lambda: fits(
        "dawid_skene", (10_000, 4, 5, 200), method="svi", max_iterations=300, batch_size=500
    ),
    "nuts": lambda: fits("dawid_skene", (200, 3, 5, 20), method="nuts", warmup=150, draws=150, chains=2),
    "streaming": streaming,
    "update": update,
    "workers": workers,
    "report": report,
    "command": command,
    "start": start,
    "torch": torch,
}


def network() -> float:
    """Seconds of a warm fit that trains a network."""
    import crowdppl as cp

    frame, features = crowd(2_000, 4, 4, 30, features=True)
    annotations = cp.Annotations.from_frame(frame, features=features)
    return timed(lambda: cp.fit("dawid_skene", annotations, classifier="mlp", epochs=10, progress=False))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name = sys.argv[1]
    print(json.dumps({"names": json.dumps(list(JOBS))} if name == "list" else {"seconds": JOBS[name]()}))
