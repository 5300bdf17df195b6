"""EM over Parquet files larger than memory: seconds an iteration, peak of resident memory, and how they grow."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from support.report import Report

CHILD = Path(__file__).parent / "support" / "streamed.py"
PER_TASK, CLASSES, BATCH = 10, 5, 100_000  # annotations to a task; classes; tasks that are simulated at a time
MOST_SECONDS, MOST_MEMORY = 30.0, 4.0  # an iteration at 100,000,000 annotations; GiB


def main(
    rows: str = "100000,1000000", iterations: int = 3, memory: str = "3GiB", labels: bool = True, write: bool = False
) -> None:
    """Measure, and print what was found.

    Args:
        rows: numbers of annotations, separated by commas.
        iterations: of EM, in each fit.
        memory: the limit that each fit is given, beside what Python and JAX take themselves.
        labels: write the labels too.
        write: refresh this section of RESULTS.md.
    """
    report = Report("EM over Parquet files larger than memory")
    sizes = [int(float(text)) for text in rows.split(",")]
    found = [measured(size, iterations, memory, labels=labels) for size in sizes]
    rows_found: list[dict[str, object]] = [row | reached(row) for row in found]
    title = f"Dawid–Skene, {PER_TASK} annotations a task, 1,000 a worker, {CLASSES} classes"
    report.table(title, rows_found, absolute=["prepare, s", "iteration, s", "labels, s"])
    report.note(
        f"Each fit in a fresh process with memory={memory!r}; seconds an iteration are the median of passes over the "
        "data after the first two, which compile. The memory of the process is its peak (VmHWM), Python and JAX "
        f"included. The target at 100,000,000 annotations is {MOST_SECONDS:g} s and {MOST_MEMORY:g} GiB."
    )
    if len(found) > 1:
        counts, seconds = ([row[name] for row in found] for name in ("annotations", "iteration, s"))
        slope = np.polyfit(np.log(counts), np.log(seconds), 1)[0]
        text = (
            f"From {sizes[0]:,} to {sizes[-1]:,} annotations the time grows with the power {slope:.2f} of their number."
        )
        report.note(text)
    if write:
        report.write()


def measured(n_rows: int, iterations: int, memory: str, *, labels: bool) -> dict[str, float]:
    """One size: simulated into a file, prepared and fitted in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("CROWDPPL_SCRATCH")) as folder:
        file = Path(folder) / "annotations.parquet"
        simulate(file, n_rows)
        command = [sys.executable, CHILD, file, Path(folder) / "work", memory, str(iterations), str(int(labels))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
    return {
        "annotations": n_rows,
        "tasks": n_rows // PER_TASK,
        "workers": n_workers(n_rows),
        "chunks": found["chunks"],
        "prepare, s": found["prepare"],
        "iteration, s": float(np.median(found["passes"][2:])),
        "labels, s": found.get("labels", float("nan")),
        "GiB, imported": found["MiB"]["imported"] / 2**10,
        "GiB, prepared": found["MiB"]["prepared"] / 2**10,
        "GiB, in all": max(found["MiB"].values()) / 2**10,
    }


def reached(row: dict[str, float]) -> dict[str, object]:
    """Whether a size, the largest among them, is within the targets of the largest."""
    return {
        f"at most {MOST_SECONDS:g} s": bool(row["iteration, s"] <= MOST_SECONDS),
        f"at most {MOST_MEMORY:g} GiB": bool(row["GiB, in all"] <= MOST_MEMORY),
    }


def n_workers(n_rows: int) -> int:
    """J for so many annotations."""
    return max(n_rows // 1000, 2 * PER_TASK)


def simulate(file: Path, n_rows: int, seed: int = 0) -> None:
    r"""Write annotations drawn from a Dawid–Skene whose workers are right about seven times in ten.

    Rows of their confusion matrices are :math:`\text{Dirichlet}(1, \dots, 1)` with :math:`2 K` added on the diagonal.
    """
    rng = np.random.default_rng(seed)
    workers = n_workers(n_rows)
    tables = np.stack([rng.dirichlet(row, workers) for row in 1 + 2 * CLASSES * np.eye(CLASSES)], axis=1)
    cumulative = tables.cumsum(-1)[..., :-1].astype(np.float32)
    schema = pa.schema({"task": pa.int64(), "worker": pa.int32(), "label": pa.int8()})
    with pq.ParquetWriter(file, schema) as writer:
        for first in range(0, n_rows // PER_TASK, BATCH):
            task = np.repeat(np.arange(first, min(first + BATCH, n_rows // PER_TASK)), PER_TASK)
            truth = np.repeat(rng.integers(CLASSES, size=len(task) // PER_TASK), PER_TASK)
            worker = rng.integers(workers, size=len(task), dtype=np.int32)
            drawn = rng.random((len(task), 1), dtype=np.float32)
            label = (drawn > cumulative[worker, truth]).sum(-1).astype(np.int8)
            writer.write_table(pa.table({"task": task, "worker": worker, "label": label}, schema=schema))


if __name__ == "__main__":
    typer.run(main)
