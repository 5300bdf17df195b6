"""Labels of Dawid–Skene and of ``auto`` on ten datasets, beside crowd-kit's MajorityVote and DawidSkene."""

import time
from collections.abc import Callable

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
MAJORITY, PEER, DEFAULT = "majority vote", "crowd-kit DS", "dawid_skene, defaults"
PLAIN, AUTO = "dawid_skene, no priors", "auto"
NO_PRIOR = {"diagonal": 1e-9, "off_diagonal": 1e-9, "truth_prior": cp.Prevalence(1e-9)}


def main(write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("Labels on ten datasets beside crowd-kit's")
    found = {name: methods(read_annotations(name), read_gold(name)) for name in DATASETS}
    tables = [
        pd.DataFrame({name: {m: figures[place] for m, figures in by.items()} for name, by in found.items()}).T
        for place in range(3)
    ]
    titles = "Accuracy, in percent of the gold tasks", "Mean log-score of the gold label, in nats"
    for title, table in zip(titles, tables[:2], strict=True):
        table.loc["mean of the ten"] = table.mean()
        report.table(title, [{"dataset": str(name), **row} for name, row in table.iterrows()])
    seconds = tables[2].sum()
    report.table(
        "Processor time for all ten, over that of crowd-kit's DawidSkene",
        [{str(method): float(seconds[method] / seconds[PEER]) for method in seconds.index}],
    )
    report.note(
        "By EM. Of several annotations of a worker to a task the first counts. A tie between classes counts for its "
        "share. crowd-kit's DawidSkene has 100 iterations. Time is of one process, with what it compiles or finds "
        "in the cache."
    )
    if write:
        report.write()


def methods(frame: pd.DataFrame, gold: pd.Series) -> dict[str, tuple[float, float, float]]:
    """Percent of the gold tasks labelled right, the log-score, and seconds of processor time, by method."""
    annotations = cp.Annotations.from_frame(frame)
    ways: dict[str, Callable[[], pd.DataFrame]] = {
        MAJORITY: lambda: MajorityVote().fit_predict_proba(frame),
        PEER: lambda: DawidSkene(100).fit_predict_proba(frame),
        DEFAULT: lambda: cp.fit("dawid_skene", annotations, progress=False).probabilities,
        PLAIN: lambda: cp.fit("dawid_skene", annotations, **NO_PRIOR, progress=False).probabilities,
        AUTO: lambda: cp.fit("auto", annotations, progress=False).probabilities,
    }
    found = {}
    for method, way in ways.items():
        began = time.process_time()
        probabilities = way()
        seconds = time.process_time() - began
        found[method] = accuracy(probabilities, gold), float(cp.score(probabilities, gold)["log_score"]), seconds
    return found


if __name__ == "__main__":
    typer.run(main)
