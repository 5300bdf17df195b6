"""What other priors of the confusion matrices give than the default one, Dawid–Skene by EM on seventeen datasets.

For each dataset also what the other sixteen would choose, which is what a choice with gold labels in view is worth.
"""

import warnings

import pandas as pd
import typer
from accuracy import DATASETS
from auto import FURTHER, MEASURES, given, scored
from support.data import data_folder
from support.report import Report

import crowdppl as cp

SIZES = (1.0, 1.5, 3.0, 6.0)  # pseudo-annotations a true class
ACCURACIES = (0.5, 2 / 3, 0.75)  # that they expect
DEFAULT = (3.0, 2 / 3)


def main(datasets: str = ",".join((*DATASETS, *FURTHER)), write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        datasets: their names, with commas.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Priors of the confusion matrices, Dawid–Skene by EM")
    choices = [(size, accuracy) for size in SIZES for accuracy in ACCURACIES]
    found = {name: {choice: measure(name, *choice) for choice in choices} for name in datasets.split(",")}
    table = {
        what: pd.DataFrame({name: {c: row[what] for c, row in rows.items()} for name, rows in found.items()})
        for what in MEASURES
    }
    rows = [
        {
            "pseudo-annotations": size,
            "expected accuracy": accuracy,
            "default": (size, accuracy) == DEFAULT,
            **{what: table[what].loc[[(size, accuracy)]].mean(axis=1).iloc[0] for what in MEASURES},
        }
        for size, accuracy in choices
    ]
    report.table(f"Means over {len(found)} datasets", rows)
    by_others = []
    for measured in ("accuracy", "log-score"):
        chosen = {name: table[measured].drop(columns=name).mean(axis=1).idxmax() for name in found}
        reached = {
            what: sum(table[what].loc[[chosen[name]], name].iloc[0] for name in found) / len(found) for what in MEASURES
        }
        said = "; ".join(f"{size:g} of {accuracy:.2f}" for size, accuracy in sorted(set(chosen.values())))
        by_others.append({"chosen by": measured, "choices": said, **reached})
    report.table("Chosen for each dataset by the mean over the others", by_others)
    report.note(
        "A row of the confusion matrix has so many pseudo-annotations, of which the expected share is right. Before "
        "the default was set, these measures were looked at on sixteen of the datasets; the second table is what "
        "remains where a dataset has no part in the choice."
    )
    if write:
        report.write()


def measure(name: str, size: float, accuracy: float) -> dict[str, float]:
    """Scores of the labels on one dataset under one prior."""
    annotations, gold = given(name)
    prior = {"diagonal": size * accuracy, "off_diagonal": size * (1 - accuracy) / (annotations.n_classes - 1)}
    return scored(cp.fit("dawid_skene", annotations, progress=False, **prior).probabilities, gold)


if __name__ == "__main__":
    typer.run(main)
