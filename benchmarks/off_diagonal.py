"""Candidates for ``off_diagonal``, the concentration of each wrong annotation, Dawid–Skene by EM.

Datasets of more than two classes, and what the others would choose for each, which is what a choice with gold labels
in view is worth. Two classes are left out, since the candidates but the doubled one are the same there.
"""

import math
import warnings
from collections.abc import Callable

import pandas as pd
import typer
from auto import MEASURES, given, scored
from support.data import data_folder
from support.report import Report

import crowdppl as cp

DATASETS = ("dog", "adult", "weather_amt", "fact_eval", "relevance", "labelme", "music")
CANDIDATES: dict[str, Callable[[int], float]] = {
    "1 / (K - 1)": lambda classes: 1 / (classes - 1),
    "2 / (K - 1)": lambda classes: 2 / (classes - 1),
    "1 / sqrt(K - 1)": lambda classes: 1 / math.sqrt(classes - 1),
    "1 / 2": lambda classes: 1 / 2,
    "1": lambda classes: 1.0,
}
"""By name, the concentration of each wrong annotation among so many classes."""


def main(datasets: str = ",".join(DATASETS), write: bool = False) -> None:
    """Measure, and print a table of means and one of what the other datasets choose.

    Args:
        datasets: their names, with commas.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Wrong annotations in the prior of confusion matrices, Dawid–Skene by EM")
    scores = {name: {candidate: measure(name, candidate) for candidate in CANDIDATES} for name in datasets.split(",")}
    table = {
        what: pd.DataFrame({name: {c: row[what] for c, row in rows.items()} for name, rows in scores.items()})
        for what in MEASURES
    }
    means = [
        {"of each wrong annotation": c, **{what: table[what].loc[c].mean() for what in MEASURES}} for c in CANDIDATES
    ]
    report.table(f"Means over {len(scores)} datasets", means)
    by_others = []
    for measured in ("accuracy", "log-score"):
        chosen = {name: table[measured].drop(columns=name).mean(axis=1).idxmax() for name in scores}
        reached = {what: sum(table[what].loc[chosen[n], n] for n in scores) / len(scores) for what in MEASURES}
        by_others.append({"chosen by": measured, "choices": "; ".join(sorted(set(chosen.values()))), **reached})
    report.table("Chosen for each dataset by the mean over the others", by_others)
    if write:
        report.write()


def measure(name: str, candidate: str) -> dict[str, float]:
    """Scores of the labels on one dataset under one candidate."""
    annotations, gold = given(name)
    wrong = CANDIDATES[candidate](annotations.n_classes)
    return scored(cp.fit("dawid_skene", annotations, progress=False, off_diagonal=wrong).probabilities, gold)


if __name__ == "__main__":
    typer.run(main)
