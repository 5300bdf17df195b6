"""Fits in float32, which is the default, beside the same fits in float64, for every story and where it may matter."""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import numpy as np
import pandas as pd
import typer
from support.crowds import crowd
from support.data import simulate_many
from support.report import Report

import crowdppl as cp
from crowdppl.models import KNOWN_STORIES

SIZES = {"n_tasks": 300, "n_workers": 12, "annotations_per_task": 5}
BRIEF: dict[str, dict[str, Any]] = {
    "em": {},
    "svi": {"max_iterations": 1000, "draws": 200},
    "nuts": {"chains": 2, "warmup": 200, "draws": 200},
}
FEW = {"max_iterations": 20, "tolerance": 0.0}  # of the fits where it may matter, so that both take as many iterations


def main(
    engines: str = "em,svi,nuts",
    stories: str = ",".join(KNOWN_STORIES),
    rows: str = "1e7",
    write: bool = False,
    into: Path | None = None,
) -> None:
    """Fit in processes of both precisions, and print how far they are apart.

    Args:
        engines: to fit with, with commas.
        stories: to fit, with commas.
        rows: annotations of the largest crowd.
        write: refresh this section of RESULTS.md.
        into: the folder to write fits of this process's precision to; what the two processes are asked for.
    """
    warnings.simplefilter("ignore")
    names, methods, n_rows = stories.split(","), engines.split(","), int(float(rows))
    if into is not None:
        write_fits(into, names, methods, n_rows)
        return
    report = Report("float32 beside float64")
    with tempfile.TemporaryDirectory() as folder:
        single, double = (Path(folder) / name for name in ("single", "double"))
        for path, is_double in ((single, "0"), (double, "1")):
            path.mkdir()
            given = ["--engines", engines, "--stories", stories, "--rows", rows, "--into", path]
            subprocess.run(
                [sys.executable, __file__, *given], env=os.environ | {"JAX_ENABLE_X64": is_double}, check=True
            )
        for method in methods:
            found = [{"story": name, **compared(single, double, f"{name} {method}")} for name in names]
            report.table(method, found, absolute=["float64 takes", "seconds"])
        odd = [{"data": name, **compared(single, double, name)} for name in cases(n_rows)]
        report.table("Where rounding may add up, EM, 20 iterations", odd, absolute=["float64 takes", "seconds"])
    report.note(
        f"Crowds that the story draws: {SIZES['n_tasks']} tasks of {SIZES['annotations_per_task']} annotations, "
        f"{SIZES['n_workers']} workers, three classes, or two where a story has two. Greatest differences over tasks "
        "and classes, and over the entries of workers' confusion matrices; of the log-posterior relative to its size. "
        "EM stops by itself, as fits do by default, so that both differ by rounding, by where it ends the iterations, "
        "and where a story starts at random by the start: random numbers of float32 are others than those of float64. "
        "Fits of SVI and NUTS differ by chance as well: beside them what two seeds differ by in float32. At the same "
        "parameters log-likelihoods of all stories differ by less than 4e-7 of their size, and label probabilities by "
        "less than 5e-7, slopes of the log-posterior, by which samplers move, by less than 1.2e-6 of the greatest of "
        "their site (tests/inference/densities/test_precision.py has bounds of five times as much). Where a "
        "log-posterior is of the size of 10⁸, as with counts of 2²⁴, float32 rounds it to 8 nats, and the two fits may "
        "end in other modes; "
        "where a prior counts for a million annotations its constants take up the digits, and labels do not change. "
        "With 1,000 classes one label differs, at the same log-posterior."
    )
    if write:
        report.write()


def write_fits(folder: Path, stories: list[str], methods: list[str], n_rows: int) -> None:
    """Fit everything in the precision of this process, and write what is compared."""
    for story in stories:
        with jax.enable_x64(False):  # whose random numbers are others
            annotations, options = crowd(story, seed=1, **SIZES)
        for method in methods:
            asked = {"method": method, **BRIEF[method], **options}
            numbers = numbers_of(story, annotations, asked)
            if method != "em":
                again = numbers_of(story, annotations, asked | {"seed": 1}, times=1)
                numbers |= {f"{name}, other seed": value for name, value in again.items()}
            np.savez(folder / f"{story} {method}.npz", **numbers)
    for name, (story, make, options) in cases(n_rows).items():
        np.savez(folder / f"{name}.npz", **numbers_of(story, make(), FEW | options, times=1))


def numbers_of(
    story: str, annotations: cp.Annotations, options: dict[str, Any], times: int = 2
) -> dict[str, np.ndarray]:
    """What a fit says, and how long the last of so many took."""
    for _ in range(times):
        began = perf_counter()
        fit = cp.fit(story, annotations, progress=False, **options)
        seconds = perf_counter() - began
    found = {"labels": fit.posterior, "seconds": np.float64(seconds)}
    if annotations.worker is not None:
        found["confusion"] = np.asarray(fit.confusion_draws, np.float64).mean((0, 1))
    if fit.outcome.is_point:
        found["log-posterior"] = np.float64(fit.outcome.history[-1])
    return {name: np.asarray(value, np.float64) for name, value in found.items()}


def cases(n_rows: int) -> dict[str, tuple[str, Callable[[], cp.Annotations], dict[str, Any]]]:
    """Where rounding may add up: a story, its annotations, and options."""
    return {
        f"{n_rows:,} annotations": ("dawid_skene", lambda: simulate_many(n_rows // 10, 1000, 2), {}),
        f"{n_rows:,} annotations of one worker each ten": (
            "one_coin",
            lambda: simulate_many(n_rows // 10, n_rows // 10, 2),
            {},
        ),
        "counts of 2²⁴": ("dawid_skene", lambda: counted(2**24), {}),
        "1,000 classes": ("dawid_skene", lambda: simulate_many(500, 5, 1000, per_task=5), {}),
        "workers who never err": ("dawid_skene", lambda: faultless(300), {"diagonal": 1e6}),
        "workers who never err, one coin": ("one_coin", lambda: faultless(300), {"right": 1e6}),
        "workers who never err, glad": ("glad", lambda: faultless(300), {}),
        "2,000 annotations a task": ("dawid_skene", lambda: simulate_many(50, 100, 3, per_task=2000, right=0.02), {}),
    }


def counted(most: int) -> cp.Annotations:
    """Annotations that stand for up to so many each."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(False):
        annotations, _ = cp.simulate("dawid_skene", n_tasks=50, n_workers=6, n_classes=3, seed=0)
    counts = np.exp2(rng.uniform(0, np.log2(most), annotations.n_rows)).astype(np.float32).round()
    return annotations.without_gold().replace(count=counts)


def faultless(n_tasks: int) -> cp.Annotations:
    """Ten workers who are always right, and one who is right in nine tasks of ten."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=n_tasks)
    label = np.repeat(truth[:, None], 11, axis=1)
    label[rng.random(n_tasks) < 0.1, 10] += 1
    task, worker = np.indices(label.shape)
    frame = pd.DataFrame({"task": task.ravel(), "worker": worker.ravel(), "label": label.ravel() % 3})
    return cp.Annotations.from_frame(frame)


def compared(single: Path, double: Path, name: str) -> dict[str, object]:
    """How far the fits of both precisions are apart."""
    with np.load(single / f"{name}.npz") as one, np.load(double / f"{name}.npz") as two:
        row: dict[str, object] = {}
        for part in ("labels", "confusion"):
            row[part] = _far(one, two, part)
            if f"{part}, other seed" in one:
                row[f"{part}, seeds"] = (
                    f"{np.abs(one[part] - one[f'{part}, other seed']).max():.1e}" if part in one else "–"
                )
        if "log-posterior" in one:
            of = two["log-posterior"]
            row["log-posterior, relative"] = f"{abs(one['log-posterior'] - of) / abs(of):.1e}"
        row["other labels"] = int((one["labels"].argmax(-1) != two["labels"].argmax(-1)).sum())
        row["float64 takes"] = float(two["seconds"] / one["seconds"])
        row["seconds"] = float(one["seconds"])
    return row


def _far(one: Any, two: Any, part: str) -> str:
    return f"{np.abs(one[part] - two[part]).max():.1e}" if part in one else "–"


if __name__ == "__main__":
    typer.run(main)
