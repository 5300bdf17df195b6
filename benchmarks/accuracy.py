"""Accuracy of Dawid–Skene's labels on ten datasets, beside crowd-kit's MajorityVote and DawidSkene."""

import pandas as pd
import typer
from crowdkit.aggregation import DawidSkene, MajorityVote
from support.data import accuracy, data_folder, read_annotations, read_gold
from support.report import Report

import crowdppl as cp

DATASETS = (
    "weather_amt",
    "music",
    "movie_sp",
    "product",
    "sentiment",
    "adult",
    "bluebird",
    "dog",
    "rte",
    "trec",
)
MAJORITY, PEER, DEFAULT, PLAIN = "majority vote", "crowd-kit DS", "dawid_skene, defaults", "dawid_skene, no priors"
NO_PRIOR = {"diagonal": 1e-9, "off_diagonal": 1e-9, "truth_prior": cp.Prevalence(1e-9)}


def main(write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("Accuracy of labels, in percent of the gold tasks")
    found = pd.DataFrame({name: accuracies(read_annotations(name), read_gold(name)) for name in DATASETS}).T
    found.loc["mean of the ten"] = found.mean()
    report.table("EM", [{"dataset": str(name), **row} for name, row in found.iterrows()])
    report.note(
        "Of several annotations of a worker to a task the first counts. A tie between classes counts for its share. "
        "crowd-kit's DawidSkene has 100 iterations."
    )
    if write:
        report.write()


def accuracies(frame: pd.DataFrame, gold: pd.Series) -> dict[str, float]:
    """Percent of the gold tasks labelled right, by method."""
    annotations = cp.Annotations.from_frame(frame)
    probabilities = {
        MAJORITY: MajorityVote().fit_predict_proba(frame),
        PEER: DawidSkene(100).fit_predict_proba(frame),
        DEFAULT: cp.fit("dawid_skene", annotations, progress=False).probabilities,
        PLAIN: cp.fit("dawid_skene", annotations, **NO_PRIOR, progress=False).probabilities,
    }
    return {method: accuracy(found, gold) for method, found in probabilities.items()}


if __name__ == "__main__":
    typer.run(main)
