"""Fits of random stories, sizes and engines in one process: whether memory, maps and open files stay where they are."""

import gc
import os

# Most of a short fit's time is XLA's compiler, and how well it optimises is not what is looked at.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import tempfile
import warnings
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import typer
from scipy.stats import theilslopes
from support.crowds import crowd
from support.report import Report

import crowdppl as cp
from crowdppl.models import KNOWN_STORIES

BRIEF: dict[str, dict[str, Any]] = {
    "em": {"max_iterations": 100},
    "svi": {"max_iterations": 100, "draws": 20},
    "nuts": {"chains": 2, "warmup": 20, "draws": 20, "max_tree_depth": 4},
}
"""Options of the engines: what may leak is in how a fit starts and ends, not in how long it runs."""

SMALL, LARGE = ((5, 16), (2, 8), (2, 2)), ((17, 120), (9, 20), (2, 3))
"""Numbers of tasks, of workers and of classes, from and to. Small crowds share programs, so that fits are many."""

FEW_LARGE = 0.15  # share of fits of large crowds, for whose sizes programs are compiled

MEASURED = ["MiB", "maps", "descriptors"]
MAPS = Path("/proc/sys/vm/max_map_count")
GROWS = 0.03  # of the mean level, over the second half of the fits, from which on it is not flat


def main(minutes: float = 60.0, seed: int = 0, keep: Path | None = None, write: bool = False) -> None:
    """Fit until the time is over, and print what the process held after each fit.

    Args:
        minutes: time for fits.
        seed: of the choice of stories, sizes and engines.
        keep: a CSV file with what the process held after each fit, written as it goes on.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report(f"{minutes:g} minutes of fits in one process")
    rng = np.random.default_rng(seed)
    held: list[dict[str, object]] = []
    ended = monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        while monotonic() < ended:
            began = monotonic()
            held.append(one_fit(rng, Path(folder) / str(len(held))) | {"seconds": monotonic() - began} | held_now())
            if keep is not None:
                pd.DataFrame(held).to_csv(keep, index=False)
    frame = pd.DataFrame(held)
    said = ", ".join(f"{n:,} {method}" for method, n in Counter(frame["method"]).items())
    rows = [drift(frame[name].to_numpy(float), name) for name in MEASURED]
    report.table(f"{len(frame):,} fits of {frame['story'].nunique()} stories ({said})", rows)
    report.note(
        f"5 to 16 tasks, 2 to 8 workers, two classes, and in {FEW_LARGE:.0%} of the fits up to 120 tasks, 20 workers "
        "and three classes; each fit's labels, workers and tasks are asked for, and one in four is kept in "
        "checkpoints, saved, and loaded again. What the process holds after a fit is resident memory, memory maps and "
        "open file descriptors, by the system's account. In the first half, caches of compiled programs fill up. "
        "Growth: the median of slopes between pairs of fits of the second half, and its 95 % interval, over as many "
        f"fits as that half has. Flat: the interval begins under {GROWS:.0%} of the mean level. Maps rise and fall: "
        "from a quarter of those that the system allows a process on crowdppl lets programs go, and at half all that "
        f"JAX keeps, here at {int(MAPS.read_text()) // 2:,}; of few rises the growth says little, and the most counts."
    )
    if write:
        report.write()


def one_fit(rng: np.random.Generator, folder: Path) -> dict[str, object]:
    """Fit a random story to a crowd of a random size with a random engine, and ask for what follows from it."""
    story, method = str(rng.choice(list(KNOWN_STORIES))), str(rng.choice(list(BRIEF)))
    n_tasks, n_workers, n_classes = rng.integers(
        *np.transpose(LARGE if rng.random() < FEW_LARGE else SMALL), endpoint=True
    )
    sizes = {"n_tasks": int(n_tasks), "n_workers": int(n_workers), "annotations_per_task": min(int(n_workers), 4)}
    annotations, options = crowd(story, n_classes=int(n_classes), seed=int(rng.integers(2**31)), **sizes)
    kept = bool(rng.random() < 0.25)
    if kept:
        options["checkpoint"] = folder / "checkpoint"
    seed = int(rng.integers(2**31))
    fit = cp.fit(story, annotations, method=method, seed=seed, progress=False, **BRIEF[method], **options)
    if kept:
        fit.save(folder / "fit", overwrite=True)
        fit = cp.load_fit(folder / "fit")
    assert np.isfinite(fit.labels["probability"]).all(), (story, method, sizes)
    assert len(fit.tasks) == n_tasks
    assert len(fit.workers) in (0, n_workers)
    return {"story": story, "method": method, **sizes, "saved": kept}


def held_now() -> dict[str, float]:
    """Resident memory in MiB, memory maps and open file descriptors of this process, after a collection of garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    maps = Path("/proc/self/maps").read_bytes().count(b"\n")
    held = (pages * os.sysconf("SC_PAGE_SIZE") / 2**20, maps, len(os.listdir("/proc/self/fd")))
    return dict(zip(MEASURED, held, strict=True))


def drift(values: np.ndarray, name: str) -> dict[str, object]:
    """Where a quantity began, its level in the second half, by how much it grew there, and whether that is flat."""
    later = values[len(values) // 2 :]
    slope, _, low, high = theilslopes(later)
    n, level = len(later), later.mean()
    return {
        "held": name,
        "after the first fit": float(values[0]),
        "mean of the second half": float(level),
        "most": float(values.max()),
        "growth": f"{slope * n:+.1f} ({low * n:+.1f} to {high * n:+.1f})",
        "flat": bool(low * n < GROWS * level),
    }


if __name__ == "__main__":
    typer.run(main)
