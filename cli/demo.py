"""The demonstration: Dawid and Skene's anaesthetists by all three engines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from ..data import Annotations, load_dataset
from ..inference.fit import fit
from ..inference.fitted.intervals import INTERVAL
from ..inference.results import Fit
from ..models import Prevalence
from .export import FILES, export, results_folder
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
    "em": {"restarts": 5},
    "svi": {},
    "nuts": {},
}  # the first start of EM ends on a lower mode
INTRODUCTION = """\
Five anaesthetists judged from their notes how fit 45 patients were for anaesthesia, from 1 (fit) to 4; the first one \
judged every patient three times. Nobody knows the true classes. The story: each anaesthetist has a table of how \
often a patient of one class is called another (Dawid & Skene 1979).

Priors: as if each anaesthetist had been seen to judge eight patients of every class before, 60 % of them rightly, and \
three patients of every class had come (those of the R package rater).
"""


def run_demo(out: Path, console: Console, *, seed: int = 0) -> None:
    """Fit the story by all engines, print the results side by side, and write those of NUTS to a folder.

    Args:
        out: the folder; an earlier demo's is replaced.
        console: where to print.
        seed: of all engines.

    Raises:
        StorageError: the folder cannot be written, or holds something else; said before anything is fitted.
    """
    with results_folder(out, overwrite=True) as folder:
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
                    seed=seed,
                    progress=False,
                    **PRIORS,
                    **OPTIONS[method],
                )
                seconds[method] = time.perf_counter() - began
            status.update("writing …")
            export(fits["nuts"], folder)
    _show_engines(seconds, console)
    _show_prevalence(fits, console)
    _show_doubtful(fits, annotations, console)
    _show_workers(fits, console)
    console.print(Text("\nFiles of the fit by NUTS:", style="bold"))
    show_files(out, FILES, console)
    console.print(Text("\nNext, with your own table of task, worker and label:", style="bold"))
    console.print(Text("crowdppl fit your.csv --out results", style="cyan"))


def _show_engines(seconds: dict[str, float], console: Console) -> None:
    table = make_table("Three engines, one story")
    table.add_column("engine")
    table.add_column("gives")
    table.add_column("seconds", justify="right")
    for method, gives in ENGINES.items():
        table.add_row(method.upper(), gives, f"{seconds[method]:.1f}")
    console.print(table)
    console.print("Most of the time goes into compiling the programs.\n", style="dim")


def _show_prevalence(fits: dict[str, Fit], console: Console) -> None:
    table = make_table("How common is each class?")
    table.add_column("class")
    for method in fits:
        table.add_column(f"{method.upper()}{f' ({INTERVAL:.0%} interval)' if fits[method].has_draws else ''}")
    draws = {method: result.outcome.draws["prevalence"] for method, result in fits.items()}
    for k, name in enumerate(fits["em"].annotations.classes):
        table.add_row(str(name), *(_estimate(draws[method][..., k], fits[method].has_draws) for method in fits))
    console.print(table)
    console.print("rater's published means: 0.376, 0.407, 0.143, 0.074\n", style="dim")


def _show_doubtful(fits: dict[str, Fit], annotations: Annotations, console: Console) -> None:
    top = fits["nuts"].probabilities.max(axis=1)
    answers = annotations.to_frame().groupby("task", sort=False)["label"].agg(lambda labels: " ".join(map(str, labels)))
    table = make_table("Three patients in doubt")
    for heading in ("patient", "annotations", "engine"):
        table.add_column(heading)
    for name in annotations.classes:
        table.add_column(f"P({name})", justify="right")
    for patient in top.nsmallest(3).index:
        for method, result in fits.items():
            probabilities = result.probabilities.loc[patient]
            first = (str(patient), answers[patient]) if method == "em" else ("", "")
            cells = [
                Text(f"{p:.2f}", style="bold" if p == probabilities.max() else "dim" if p < 0.005 else "")
                for p in probabilities
            ]
            table.add_row(*first, method.upper(), *cells)
        table.add_section()
    console.print(table)
    console.print("annotations: three of anaesthetist 1, then one each of 2, 3, 4 and 5", style="dim")
    console.print("EM takes one best guess of the tables for the truth, and so is too sure.\n", style="dim")


def _show_workers(fits: dict[str, Fit], console: Console) -> None:
    scores = {method: result.workers for method, result in fits.items()}
    order = scores["nuts"]["accuracy"].sort_values(ascending=False).index
    table = make_table("Who judges best, who worst?")
    table.add_column("anaesthetist")
    for method in fits:
        table.add_column(f"accuracy by {method.upper()}")
    for rank, worker in (("best", order[0]), ("worst", order[-1])):
        table.add_row(f"{worker} ({rank})", *(_score(frame.loc[worker]) for frame in scores.values()))
    console.print(table)


def _estimate(draws: np.ndarray, with_interval: bool) -> str:
    if not with_interval:
        return f"{draws.mean():.3f}"
    low, high = np.quantile(draws, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return f"{draws.mean():.3f} ({interval_text(low, high)})"


def _score(score: pd.Series) -> str:
    if "accuracy_low" not in score:
        return f"{score['accuracy']:.3f}"
    return f"{score['accuracy']:.3f} ({interval_text(score['accuracy_low'], score['accuracy_high'])})"
