"""Fits of crowds many of whose tasks look alike, with these tasks counted once beside one by one, in processor time."""

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import typer
from support.data import read_annotations
from support.report import Report

import crowdppl as cp
from crowdppl.data.some_tasks import tasks_alike
from crowdppl.inference.densities import portable

PANEL = "panel"  # of five workers who say yes or no, simulated
OPEN = ("ws_sms", "ws_youtube", "product")
ENGINES: dict[str, dict[str, Any]] = {
    "em": {"sweeps": 0},
    "svi": {"draws": 200},
    "nuts": {"draws": 200, "warmup": 200, "chains": 1},
}


def main(n_tasks: int = 20_000, runs: int = 2, write: bool = False) -> None:
    """Fit Dawid and Skene's story in both ways, in turn, and print the ratio of the medians.

    Args:
        n_tasks: of the panel that is simulated.
        runs: of each, after one that compiles.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report("Tasks that look alike, counted once")
    crowds = {f"{PANEL} of five": panel(n_tasks)}
    crowds |= {name: cp.Annotations.from_frame(read_annotations(name), abstain=abstain(name)) for name in OPEN}
    rows = []
    for name, annotations in crowds.items():
        like = tasks_alike(annotations)
        if like is None or len(np.unique(like)) > annotations.n_tasks / portable.SAVED:
            continue
        row: dict[str, object] = {"crowd": name, "tasks": annotations.n_tasks, "different": len(np.unique(like))}
        for engine, options in ENGINES.items():
            once = name.startswith(PANEL) or engine != "nuts"  # which takes minutes task by task
            row[engine] = ratio(annotations, engine, options, runs) if once else "–"
        rows.append(row)
    report.table("Processor time task by task as a multiple of that with equal tasks counted once", rows)
    if write:
        report.write()


def abstain(name: str) -> str | None:
    """Return the label of a dataset that is none: labelling functions abstain."""
    return "abstain" if name.startswith("ws_") else None


def ratio(annotations: cp.Annotations, engine: str, options: dict[str, Any], runs: int) -> str:
    """Return the ratio of processor times of a fit."""
    fewest, times = portable.FEWEST_ROWS, {True: [], False: []}
    for run in range(runs + 1):
        for once, found in times.items():
            portable.FEWEST_ROWS = fewest if once else annotations.n_rows + 1
            before = time.process_time()
            cp.fit("dawid_skene", annotations, method=engine, progress=False, **options)
            found += [time.process_time() - before] if run else []
    portable.FEWEST_ROWS = fewest
    return f"{np.median(times[False]) / np.median(times[True]):.1f}"


def panel(n_tasks: int) -> cp.Annotations:
    """Return annotations of five workers of accuracies from .7 to .9, two classes."""
    rng = np.random.default_rng(0)
    truth, accuracy = rng.integers(0, 2, n_tasks), np.array([0.9, 0.8, 0.85, 0.7, 0.75])
    labels = np.where(rng.random((n_tasks, 5)) < accuracy, truth[:, None], 1 - truth[:, None])
    task, worker = np.repeat(np.arange(n_tasks), 5), np.tile(np.arange(5), n_tasks)
    return cp.Annotations.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": labels.ravel()}))


if __name__ == "__main__":
    typer.run(main)
