"""The command `crowdppl demo`: one story of five anaesthetists, fitted by all three engines."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from .. import Annotations, Fit, Prevalence, fit, load_dataset
from ..inference.fitted.intervals import INTERVAL
from ..inference.fitted.posterior import interval_around
from .output import output_folder, write_results
from .terminal import interval_text, make_table, show_files, stderr

ENGINES = {
    "em": "the highest mode of the posterior",
    "svi": "an approximation of the posterior",
    "nuts": "the posterior itself, by sampling",
}
# The default priors of the R package rater (Pullin, Gurrin & Vukcevic).
TRUTH_PRIOR = Prevalence(3.0)
PRIORS: dict[str, Any] = {"diagonal": 0.6 * 8, "off_diagonal": 0.4 * 8 / 3}
OPTIONS: dict[str, dict[str, Any]] = {
    "em": {"restarts": 5},  # the first start ends in a lower mode
    "svi": {},
    "nuts": {"draws": 1000},  # with 500 of each of the four chains R̂ of some entry is now and then over 1.01
}
INTRODUCTION = """\
Five anaesthetists judged from the notes of 45 patients how fit each patient was for anaesthesia, from 1 (fit) to 4. \
Anaesthetist 1 judged every patient three times, the others once. Nobody knows the true classes. The model: each \
anaesthetist has a confusion matrix, which says how often a patient of one class is judged to be of another (Dawid & \
Skene 1979).

The priors are those of the R package rater. They weigh as much as eight earlier judgements of patients of each class \
by each anaesthetist, 60 % of them correct, and as three earlier patients of each class.
"""


def run_demo(out: Path, console: Console) -> None:
    """Fit the story by all engines, print the results side by side, and write those of NUTS to a folder.

    Args:
        out: the folder; the files of an earlier demo there are replaced.
        console: where to print.

    Raises:
        StorageError: the folder cannot be written, or holds something else. This is checked before anything is fitted.
    """
    with output_folder(out, overwrite=True) as folder:
        annotations = load_dataset("anesthesia")
        console.print(INTRODUCTION)
        fits, seconds = {}, {}
        with stderr().status("") as status:
            for method in ENGINES:
                status.update(f"{method.upper()} …")
                began = time.perf_counter()
                fits[method] = fit(
                    "dawid_skene",
                    annotations,
                    method=method,
                    truth_prior=TRUTH_PRIOR,
                    seed=0,
                    progress=False,
                    **PRIORS,
                    **OPTIONS[method],
                )
                seconds[method] = time.perf_counter() - began
            status.update("writing …")
            files = write_results(fits["nuts"], folder, plot=True)
    _show_engines(seconds, console)
    _show_prevalence(fits, console)
    _show_uncertain(fits, annotations, console)
    _show_workers(fits, console)
    written = {os.path.join(out, name): content for name, content in files.items()}
    show_files(written, console, "Files of the fit by NUTS:")
    console.print(Text("\nNext, with your own table of tasks, workers and labels:", style="bold"))
    console.print(Text("crowdppl fit your.csv --out results", style="cyan"))


def _show_engines(seconds: dict[str, float], console: Console) -> None:
    table = make_table("Three engines, one story", "engine", "gives", "seconds", right=("seconds",))
    for method, gives in ENGINES.items():
        table.add_row(method.upper(), gives, f"{seconds[method]:.1f}")
    console.print(table)
    console.print("Most of the time goes into compiling the programs.\n", style="dim")


def _show_prevalence(fits: dict[str, Fit], console: Console) -> None:
    estimates = [f"{method.upper()} ({INTERVAL:.0%} interval)" for method in fits]
    table = make_table("How common is each class?", "class", *estimates)
    found = {method: result.parameters["prevalence"].to_numpy() for method, result in fits.items()}
    draws = {method: result.fitted.with_uncertainty.draws["prevalence"] for method, result in fits.items()}
    for k, name in enumerate(fits["em"].annotations.classes):
        cells = (_estimate(fits[method], found[method][k], draws[method][..., k]) for method in fits)
        table.add_row(str(name), *cells)
    console.print(table)
    console.print("Posterior means published with rater: 0.376, 0.407, 0.143, 0.074\n", style="dim")


def _show_uncertain(fits: dict[str, Fit], annotations: Annotations, console: Console) -> None:
    top = fits["nuts"].probabilities.max(axis=1)
    given = annotations.to_frame().groupby("task", sort=False)["label"].agg(lambda labels: " ".join(map(str, labels)))
    classes = [f"P({name})" for name in annotations.classes]
    title = "The three patients with the least certain labels"
    table = make_table(title, "patient", "annotations", "engine", *classes, right=classes)
    for patient in top.nsmallest(3).index:
        for method, result in fits.items():
            probabilities = result.probabilities.loc[patient]
            first = (str(patient), given[patient]) if method == "em" else ("", "")
            cells = [
                Text(f"{p:.2f}", style="bold" if p == probabilities.max() else "dim" if p < 0.005 else "")
                for p in probabilities
            ]
            table.add_row(*first, method.upper(), *cells)
        table.add_section()
    console.print(table)
    console.print("annotations: three of anaesthetist 1, then one each of anaesthetists 2, 3, 4 and 5", style="dim")
    console.print(
        "Few annotations tell the confusion matrices, so that EM averages its probabilities over what these may be: at "
        "the mode alone (sweeps=0) they are too extreme.\n",
        style="dim",
    )


def _show_workers(fits: dict[str, Fit], console: Console) -> None:
    scores = {method: result.workers for method, result in fits.items()}
    order = scores["nuts"]["accuracy"].sort_values(ascending=False).index
    accuracies = [f"accuracy by {method.upper()}" for method in fits]
    table = make_table("The most and the least accurate anaesthetist", "anaesthetist", *accuracies)
    for rank, worker in (("best", order[0]), ("worst", order[-1])):
        table.add_row(f"{worker} ({rank})", *(_score(frame.loc[worker]) for frame in scores.values()))
    console.print(table)


def _estimate(fit: Fit, found: float, draws: np.ndarray) -> str:
    low, high = interval_around(fit, found, draws, INTERVAL)
    return f"{found:.3f} ({interval_text(low, high)})"


def _score(score: pd.Series) -> str:
    return f"{score['accuracy']:.3f} ({interval_text(score['accuracy_low'], score['accuracy_high'])})"
