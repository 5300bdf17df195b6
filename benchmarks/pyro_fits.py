"""Whole fits by SVI in Pyro beside the same in NumPyro, at 10,000 annotations and default settings."""

import warnings
from time import process_time
from typing import Any

import numpy as np
import torch
import typer
from support.report import Report

import crowdppl as cp

SIZES = {"n_tasks": 2000, "n_workers": 100, "annotations_per_task": 5}
STORIES = ("dawid_skene", "two_coin", "one_coin", "common_individual", "item_response")
TARGET = 3.0  # times NumPyro's
BACKENDS: dict[str, dict[str, Any]] = {"NumPyro": {}, "NumPyro, no sweeps": {"sweeps": 0}, "Pyro": {"backend": "pyro"}}


def main(stories: str = ",".join(STORIES), repeats: int = 3, write: bool = False) -> None:
    """Fit by both in turn, and print the ratio of their processor times.

    Args:
        stories: names, separated by commas.
        repeats: rounds that both take turns in, after one that compiles.
        write: refresh this section of RESULTS.md.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", cp.CrowdWarning)
    warnings.simplefilter("ignore", cp.ConvergenceWarning)
    report = Report("SVI in Pyro beside NumPyro: whole fits of 10,000 annotations")
    rows = [row(story, repeats) for story in stories.split(",")]
    report.table("Processor time of a fit", rows, [f"{name}, s" for name in BACKENDS])
    report.note(
        f"The median of {repeats} rounds after one that compiles, default settings (2,000 steps); medians of ratios. "
        "NumPyro's fits end with sweeps of data augmentation, which Pyro's have not; beside it NumPyro's without. "
        f"Target: at most {TARGET:g} times NumPyro's default."
    )
    if write:
        report.write()


def row(story: str, repeats: int) -> dict[str, object]:
    """One story by each backend."""
    annotations, _ = cp.simulate(story, n_classes=2, seed=0, **SIZES)
    taken: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for _ in range(repeats + 1):
        for name, options in BACKENDS.items():
            begun = process_time()
            cp.fit(story, annotations, method="svi", progress=False, **options)
            taken[name].append(process_time() - begun)
    median = {name: np.array(seconds[1:]) for name, seconds in taken.items()}
    ratio, bare = (float(np.median(median["Pyro"] / median[name])) for name in ("NumPyro", "NumPyro, no sweeps"))
    return {
        "story": story,
        **{f"{name}, s": float(np.median(seconds)) for name, seconds in median.items()},
        "Pyro, of NumPyro": ratio,
        "of NumPyro without sweeps": bare,
        "reached": ratio <= TARGET,
    }


if __name__ == "__main__":
    typer.run(main)
