"""Candidates for the prior of confusion matrices, Dawid–Skene by EM: labels, and the accuracies of workers.

Datasets of more than two classes, what the others would choose for each, which is what a choice with gold labels in
view is worth, and crowds drawn with errors spread evenly over the wrong classes. Two classes are left out, since most
candidates are the same there, and the datasets ``alttest_*``, which have no gold labels.
"""

import warnings
from collections.abc import Callable
from math import sqrt

import numpy as np
import pandas as pd
import typer
from auto import MEASURES, given, gold_of, in_frame, scored, shares_of_votes
from support.crowd_shapes import accuracies, crowd, drawn
from support.data import data_folder
from support.report import Report

import crowdppl as cp

DATASETS = ("dog", "adult", "weather_amt", "fact_eval", "relevance", "labelme", "music")
CANDIDATES: dict[str, Callable[[int], tuple[float, float]]] = {
    "2, 1 / (K - 1)": lambda classes: (2.0, 1 / (classes - 1)),
    "2, 2 / (K - 1)": lambda classes: (2.0, 2 / (classes - 1)),
    "2, 1 / sqrt(K - 1)": lambda classes: (2.0, 1 / sqrt(classes - 1)),
    "2, 1 / 2": lambda classes: (2.0, 1 / 2),
    "2, 1": lambda classes: (2.0, 1.0),
    "4, 2 / (K - 1)": lambda classes: (4.0, 2 / (classes - 1)),
    "2 sqrt(K - 1), 1 / sqrt(K - 1)": lambda classes: (2 * sqrt(classes - 1), 1 / sqrt(classes - 1)),
}
"""By name, ``diagonal`` and ``off_diagonal`` among so many classes; the first one is the default."""
WORKERS = "workers' accuracy"
FEWEST = 5
"""Annotations of gold tasks of a worker whose accuracy is compared."""
SIMULATED = (5, 10, 20)
"""Numbers of classes of the crowds that are drawn: 40 tasks × 5 a class, 60 workers."""
CROWDS = 4
"""Of each number of classes."""


def main(datasets: str = ",".join(DATASETS), write: bool = False) -> None:
    """Measure, and print a table of means, one of what the other datasets choose, and one of crowds that are drawn.

    Args:
        datasets: their names, with commas.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("The prior of confusion matrices of more than two classes, Dawid–Skene by EM")
    scores = {name: {c: of_candidate(*given(name), c) for c in CANDIDATES} for name in datasets.split(",")}
    columns = (*MEASURES, WORKERS)
    table = {
        what: pd.DataFrame({name: {c: row[what] for c, row in rows.items()} for name, rows in scores.items()})
        for what in columns
    }
    means = [{"right, each wrong": c, **{what: table[what].loc[c].mean() for what in columns}} for c in CANDIDATES]
    report.table(f"Means over {len(scores)} datasets", means)
    by_others = []
    for measured in ("accuracy", "log-score"):
        chosen = {name: table[measured].drop(columns=name).mean(axis=1).idxmax() for name in scores}
        reached = {what: sum(table[what].loc[chosen[n], n] for n in scores) / len(scores) for what in columns}
        by_others.append({"chosen by": measured, "choices": "; ".join(sorted(set(chosen.values()))), **reached})
    report.table("Chosen for each dataset by the mean over the others", by_others)
    by_dataset = table[WORKERS].T.rename_axis("dataset").reset_index()
    report.table(f"{WORKERS.capitalize()} less what they got right", by_dataset.to_dict("records"))
    report.table(f"Crowds with even errors, means over {CROWDS} of each number of classes", simulated())
    report.note(
        f"{WORKERS}: the mean over workers with {FEWEST} annotations of gold tasks or more of their accuracy under the "
        "story less the share of these that is right."
    )
    report.note(
        "The default stays the first: with more of each wrong annotation labels are less sure, but the prior expects "
        "a lower accuracy of more classes, and workers who gave few annotations are drawn to it."
    )
    if write:
        report.write()


def of_candidate(annotations: cp.Annotations, gold: pd.Series, candidate: str) -> dict[str, float]:
    """Scores of the labels and of the workers' accuracies under one candidate."""
    right, wrong = CANDIDATES[candidate](annotations.n_classes)
    fit = cp.fit("dawid_skene", annotations, progress=False, diagonal=right, off_diagonal=wrong)
    rows = annotations.of_classes().to_frame()
    rows = rows[rows["task"].isin(gold.index)]
    is_right = rows["label"].astype(object) == rows["task"].map(gold)
    by_worker = is_right.groupby(rows["worker"]).agg(["mean", "size"])
    confusion, prevalence = (np.asarray(fit.draws[name])[0, 0] for name in ("confusion", "prevalence"))
    by_class = np.diagonal(confusion, axis1=-2, axis2=-1)
    accuracy = pd.Series(by_class @ prevalence, index=annotations.workers.to_index("worker"))
    enough = by_worker[by_worker["size"] >= FEWEST]
    error = accuracy.loc[enough.index] - enough["mean"]
    return scored(fit.probabilities, gold) | {WORKERS: float(error.mean())}


def simulated() -> list[dict[str, object]]:
    """By number of classes and candidate, means over crowds with even errors; the votes among the candidates."""
    rows: list[dict[str, object]] = []
    for classes in SIMULATED:
        scores: dict[str, list[dict[str, float]]] = {name: [] for name in (*CANDIDATES, "votes")}
        for seed in range(CROWDS):
            rng = np.random.default_rng(seed)
            workers = accuracies(rng, 60, 0.65)
            made = crowd(*drawn(rng, workers, n_tasks=40 * classes, n_classes=classes), classes)
            annotations, gold = made.without_gold(), gold_of(made)
            for candidate in CANDIDATES:
                scores[candidate].append(of_candidate(annotations, gold, candidate))
            scores["votes"].append(scored(in_frame(shares_of_votes(annotations), annotations), gold))
        for name, of_crowds in scores.items():
            rows.append({"classes": classes, "right, each wrong": name, **pd.DataFrame(of_crowds).mean()})
    return rows


if __name__ == "__main__":
    typer.run(main)
