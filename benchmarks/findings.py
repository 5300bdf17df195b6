"""Findings: how often healthy crowds give a false alarm, and how often crowds that cannot be trusted are said to be."""

import time
import warnings
from collections import Counter
from collections.abc import Iterable

import numpy as np
import typer
from support.crowd_shapes import HEALTHY, UNTRUSTWORTHY
from support.report import Report

import crowdppl as cp

STORIES = ("dawid_skene", "auto", "majority_vote")
NEAR = 0.1  # by which the mean confidence may be above the accuracy of labels that need no warning
QUICK_NUTS = {"chains": 2, "warmup": 300, "draws": 200}
REAL = (
    "bluebird", "dog", "rte", "trec", "adult", "product", "sentiment", "weather_amt", "movie_sp", "labelme", "music",
    "temp", "fact_eval", "relevance",
)  # fmt: skip


def main(draws: int = 20, engines: str = "em", real: bool = True, only: str = "", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: crowds of each shape.
        engines: of em, svi and nuts, with commas between them.
        real: look at the open crowds, too.
        only: shapes whose name has this in it.
        write: refresh this section of RESULTS.md.
    """
    report = Report(f"Findings on {draws} crowds of each shape")
    asked = [(story, engine) for engine in engines.split(",") for story in STORIES]
    asked = [each for each in asked if each[0] != "majority_vote" or each[1] == "em"]
    for name, shapes in (("Healthy crowds", HEALTHY), ("Crowds that cannot be trusted", UNTRUSTWORTHY)):
        rows = [
            _row(shape, story, engine, (_fitted(make(np.random.default_rng(s)), story, engine) for s in range(draws)))
            for shape, make in shapes.items()
            if only in shape
            for story, engine in asked
        ]
        if rows:
            report.table(name, rows)
    if real:
        by_name = {name: cp.load_dataset(name) for name in REAL}
        rows = [_row(name, story, "em", [_fitted(by_name[name], story, "em")]) for name in REAL for story in STORIES]
        report.table("Open crowds", rows)
    report.note(
        "warned: a finding of severity warning; trusted rightly: no warning, and the mean probability of the labels is "
        f"at most {NEAR:.0%} above their accuracy; silent: neither. Shapes are described in "
        "benchmarks/support/crowd_shapes.py. NUTS ran with 2 chains of 300 + 200 draws, so that its findings on chains "
        "are not what its defaults give."
    )
    if write:
        report.write()


def _fitted(annotations: cp.Annotations, story: str, engine: str) -> tuple[float, float, float, set[str]]:
    """Accuracy of the labels and of majority vote, the labels' mean probability, and the codes of warnings.

    All of the tasks with a gold label.
    """
    known = np.flatnonzero(np.asarray(annotations.gold) >= 0)
    gold = np.asarray(annotations.gold)[known]
    options = QUICK_NUTS if engine == "nuts" else {}
    method = {} if story == "majority_vote" else {"method": engine}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cp.fit(story, annotations.without_gold(), progress=False, **method, **options)
    votes, posterior = annotations.votes()[known], np.asarray(fit.posterior)[known]
    most = votes == votes.max(1, keepdims=True)
    by_votes = float((most[np.arange(len(gold)), gold] / most.sum(1)).mean())
    accuracy = float((posterior.argmax(1) == gold).mean())
    return accuracy, by_votes, float(posterior.max(1).mean()), {one.code for one in fit.findings.warnings}


def _row(
    shape: str, story: str, engine: str, fits: Iterable[tuple[float, float, float, set[str]]]
) -> dict[str, object]:
    """A row of the table, from fits of the same story to crowds of one shape."""
    begin = time.perf_counter()
    accuracy, by_votes, confidence, codes = zip(*fits, strict=True)
    warned = np.array([bool(each) for each in codes])
    right = ~warned & (np.array(confidence) <= np.array(accuracy) + NEAR)
    counted = Counter(code for each in codes for code in each)
    row = {
        "shape": shape,
        "fit": story if story == "majority_vote" else f"{story}, {engine}",
        "votes": f"{np.mean(by_votes):.2f}",
        "accuracy": f"{np.mean(accuracy):.2f}",
        "confidence": f"{np.mean(confidence):.2f}",
        "warned": f"{warned.mean():.0%}",
        "trusted rightly": f"{right.mean():.0%}",
        "silent": f"{(~warned & ~right).mean():.0%}",
        "codes": ", ".join(f"{code} {n / len(codes):.0%}" for code, n in counted.most_common()),
    }
    print(*row.values(), f"{time.perf_counter() - begin:.0f} s", sep=" | ", flush=True)
    return row


if __name__ == "__main__":
    typer.run(main)
