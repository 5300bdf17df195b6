"""`cp.fit("auto")` on ten datasets, one setting for all, beside its stories and Dawid–Skene alone."""

import time
import warnings

import pandas as pd
import typer
from accuracy import DATASETS
from crowdkit.aggregation import DawidSkene
from support.data import accuracy, data_folder, read_annotations, read_gold
from support.report import Report

import crowdppl as cp

AUTO, ALONE, PEER = "auto", "dawid_skene", "crowd-kit DS"
BUDGET = 15 * 60  # seconds for all ten


def main(write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore", cp.ConvergenceWarning)
    report = Report('The default set of stories, compared and averaged: cp.fit("auto")')
    rows, weights, seconds = [], [], 0.0
    for name in DATASETS:
        row, weight, took = measure(name)
        rows.append(row)
        weights.append({"dataset": name, **weight})
        seconds += took
    frame = pd.DataFrame(rows).set_index("dataset")
    mean = {"dataset": "mean of the ten", **frame.mean().to_dict()}
    report.table("Accuracy in percent, mean log-score of the gold label, expected calibration error", [*rows, mean])
    better = {
        "log-score": int((frame[f"{AUTO} log-score"] > frame[f"{ALONE} log-score"]).sum()),
        "calibration error": int((frame[f"{AUTO} ECE"] < frame[f"{ALONE} ECE"]).sum()),
    }
    report.table("Datasets of the ten on which auto is better than dawid_skene", [better])
    report.table("Stacking weights", weights)
    report.note(
        "One setting, the default: the default set of stories (`inference/comparison/default_set.py`) by EM, stacked "
        "by five folds of the annotations; dawid_skene by EM at its defaults; crowd-kit's DawidSkene with 100 "
        "iterations. Of several annotations of a worker to a task the first counts. No gold label is seen by a fit or "
        "by the weights; the four stories of the default set were chosen among seven with the gold labels of seven of "
        "these datasets in view. All ten took "
        f"{'less' if seconds < BUDGET else 'more'} than {BUDGET // 60} minutes."
    )
    report.console.print(f"{seconds / 60:.1f} minutes for all ten")
    if write:
        report.write()


def measure(name: str) -> tuple[dict[str, object], dict[str, float], float]:
    """Scores on one dataset, the weights, and the seconds that auto took."""
    frame, gold = read_annotations(name), read_gold(name)
    annotations = cp.Annotations.from_frame(frame)
    began = time.perf_counter()
    stack = cp.fit("auto", annotations, progress=False)
    seconds = time.perf_counter() - began
    found = {
        AUTO: stack.probabilities,
        ALONE: cp.fit("dawid_skene", annotations, progress=False).probabilities,
        PEER: DawidSkene(100).fit_predict_proba(frame),
    }
    row: dict[str, object] = {"dataset": name}
    for method, probabilities in found.items():
        row[method] = accuracy(probabilities, gold)
        if method != PEER:
            scores = cp.score(probabilities, gold[gold.index.isin(probabilities.index)])
            row[f"{method} log-score"], row[f"{method} ECE"] = float(scores["log_score"]), float(scores["ece"])
    return row, stack.weights.to_dict(), seconds


if __name__ == "__main__":
    typer.run(main)
