"""How often intervals of workers' accuracies hold what the workers got right, on real crowds with gold labels."""

import ast
import itertools
import time
import warnings
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.fitted.misled import WEIGHT, misled_share
from crowdppl.inference.fitted.posterior import interval_around
from crowdppl.inference.fitted.realised import n_truths, realised_accuracy, realised_accuracy_draws

DATASETS = "rte,dog,weather_amt,movie_sp,music,labelme,sentiment,bluebird,temp"
OTHERS = "trec,adult,product,relevance,fact_eval,ws_youtube,ws_sms"
LEAST = 30  # annotations of gold tasks, for a worker to count
WIDEST_BIAS = 3.0  # points of percent
LEAST_MEAN, LEAST_EACH = 80.0, 60.0  # percent covered


@dataclass(frozen=True)
class Prior:
    """Of the share of misled tasks: its mean, and its weight in gold labels."""

    share: float
    weight: float


def main(
    method: str = "svi",
    story: str = "dawid_skene",
    options: str = "",
    datasets: str = DATASETS,
    others: str = OTHERS,
    gold: int = 0,
    misled: str = "",
    weights: str = "",
    interval: float = 0.9,
    seed: int = 0,
    write: bool = False,
) -> None:
    """Measure, and print what was found.

    Args:
        method: the engine, or several with commas.
        story: the story's name, or several with commas; ``auto`` for the average that it fits.
        options: of the story and the engine, such as ``"diagonal=1.0,off_diagonal=0.1"``.
        datasets: their names, with commas.
        others: names of those that are reported apart, since most of what is set by gold labels was set without them.
        gold: how many gold labels, drawn at random, the fit is given; none by default.
        misled: expected shares of tasks that mislead the whole crowd, with commas, to compare with the default and
            to choose from for each dataset by the others.
        weights: weights of the prior of this share, in gold labels, with commas; the default alone without.
        interval: mass of the intervals.
        seed: of the fits, and of the draw of gold labels.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore", cp.ConvergenceWarning)
    report = Report(f"What {interval:.0%} intervals of real workers' accuracies hold")
    given, targets = _options(options), []
    priors = [
        Prior(share, weight)
        for share in map(float, filter(None, misled.split(",")))
        for weight in (map(float, filter(None, weights.split(","))) if weights and share else [WEIGHT])
    ]
    compared: dict[str, list[dict[str, Any]]] = {}
    for each, engine in itertools.product(story.split(","), method.split(",")):
        found: dict[str, dict[Prior, dict[str, float]]] = {}
        of = f"{each} by {engine}"
        for names, which in ((datasets.split(","), ""), (others.split(","), "; others")):
            if not all(names):
                continue
            rows = []
            for name in names:
                fit, seconds = fitted(name, each, engine, gold, seed, given)
                rows.append({"dataset": name} | measured(fit, interval) | labels(fit) | {"seconds": seconds})
                found[name] = {prior: held(fit, interval, prior) for prior in priors}
            frame = pd.DataFrame(rows).set_index("dataset")
            mean = (
                {"dataset": f"mean of {len(rows)}"} | frame.mean().to_dict() | {"workers": int(frame["workers"].sum())}
            )
            title = f"{of}, {options or 'default options'}, {gold or 'no'} gold labels given{which}"
            report.table(title, [*rows, mean], absolute=["seconds"])
            targets.append({"fit": of + which} | reached(frame))
        if priors:
            compared[of] = comparison(found, datasets.split(","))
    report.table("Targets, of the realised accuracy", targets)
    for of, rows in compared.items():
        report.table(f"{of}: by the prior of the share of misled tasks, percent", rows)
    report.note(
        f"Workers with at least {LEAST} annotations of gold tasks. Actual: the share of these annotations that are "
        "right. Realised: of the workers, how many have their actual accuracy in the interval of what they got right "
        "of the gold tasks, which is realised_accuracy where all tasks have gold labels, as in all datasets but trec, "
        "adult, relevance and fact_eval. Of all tasks: in that of realised_accuracy itself, which is of the others, "
        "too. Long run: in that of accuracy, of annotations yet to come. Intervals that are right hold the actual "
        "accuracy less often there, since it is of some annotations only. Bias: mean of the realised accuracy of the "
        "gold tasks less actual, in points of percent, and width the mean width of its intervals. Score: the interval "
        "score, which is proper (Gneiting & Raftery 2007, eq. 43): the width, and 2/α for each point by which an "
        "interval misses; less is better. Label accuracy and mean log-score of the gold label (nats) are of the gold "
        "tasks whose labels the fit was not given; it sees no other gold label. Of the sixteen datasets' gold labels "
        "these were set in view: the share of misled tasks that is expected, 0.05, and its weight of 4; the prior of "
        "shared errors, which auto has; and that auto judges workers without the votes' share. Chosen by the others: "
        "each dataset with the prior whose mean score over the other datasets is least."
    )
    if write:
        report.write()


def fitted(name: str, story: str, method: str, gold: int, seed: int, options: dict[str, Any]) -> tuple[cp.Fit, float]:
    """The fit of one dataset, and the seconds it took."""
    annotations = cp.load_dataset(name)
    given = _drawn(annotations, gold, seed) if gold else None
    began = time.perf_counter()
    fit = cp.fit(story, annotations, method=method, gold=given, seed=seed, progress=False, **options)
    return fit, time.perf_counter() - began


def labels(fit: cp.Fit) -> dict[str, float]:
    """Scores of the labels."""
    scores = cp.score(fit)
    return {"label accuracy, %": 100 * float(scores["accuracy"]), "log-score": float(scores["log_score"])}


def measured(fit: cp.Fit, interval: float) -> dict[str, float]:
    """What the intervals hold by default."""
    workers = _judged(fit.worker_scores(interval), fit)
    actual = workers["gold_accuracy"]
    return (
        {"workers": len(workers)}
        | held(fit, interval, None)
        | {
            "of all tasks, %": _covered(workers, "realised_accuracy"),
            "long run, %": _covered(workers, "accuracy"),
            "long-run bias": 100 * float((workers["accuracy"] - actual).mean()),
            "actual, %": 100 * float(actual.mean()),
        }
    )


def held(fit: cp.Fit, interval: float, prior: Prior | None) -> dict[str, float]:
    """What intervals of the share of annotations of gold tasks that are right hold, at a prior of misled tasks."""
    counted = np.asarray(fit.annotations.gold) >= 0
    parts = fit.weighty
    estimates, draws = [], []
    with mock.patch("crowdppl.inference.fitted.misled.WEIGHT", WEIGHT if prior is None else prior.weight):
        for part, weight in parts:
            share = misled_share(part, None if prior is None else prior.share)
            estimates.append(weight * realised_accuracy(share.beside(part.posterior), part.annotations, counted))
            around = part.with_uncertainty
            n = round(weight * max(n_truths(each.with_uncertainty) for each, _ in parts))
            draws.append(realised_accuracy_draws(around, share, n, counted=counted))
    estimate = np.sum(estimates, 0)
    low, high = interval_around(fit, estimate, np.concatenate(draws)[None], interval)
    columns = {"realised_accuracy": estimate, "realised_accuracy_low": low, "realised_accuracy_high": high}
    workers = _judged(pd.DataFrame(columns, index=fit.annotations.workers.to_index("worker")), fit)
    actual, low, high = (workers[name] for name in ("gold_accuracy", "realised_accuracy_low", "realised_accuracy_high"))
    missed = (low - actual).clip(lower=0) + (actual - high).clip(lower=0)
    return {
        "realised, %": _covered(workers, "realised_accuracy"),
        "bias": 100 * float((workers["realised_accuracy"] - actual).mean()),
        "width": _width(workers, "realised_accuracy"),
        "score": 100 * float((high - low + 2 / (1 - interval) * missed).mean()),
    }


def _judged(workers: pd.DataFrame, fit: cp.Fit) -> pd.DataFrame:
    """The workers with enough annotations of gold tasks, with how many of these are right."""
    gold = fit.gold_scores()[["gold_accuracy", "gold_annotations"]]
    workers = workers.drop(columns=list(gold), errors="ignore").join(gold)
    return workers[workers["gold_annotations"] >= LEAST]


def comparison(found: dict[str, dict[Prior, dict[str, float]]], first: list[str]) -> list[dict[str, Any]]:
    """By prior, and with each dataset's chosen by the others: means over the first datasets, the others and all."""
    score = pd.DataFrame({name: {prior: row["score"] for prior, row in rows.items()} for name, rows in found.items()})
    chosen = {name: score.drop(columns=name).mean(axis=1).idxmin() for name in found}
    by_prior = {f"{prior.share:g}, weight {prior.weight:g}": dict.fromkeys(found, prior) for prior in score.index}
    rows = []
    for said, priors in [*by_prior.items(), ("chosen by the others", chosen)]:
        frame = pd.DataFrame({name: found[name][prior] for name, prior in priors.items()}).T
        row: dict[str, Any] = {"expected": said}
        for which, some in (
            ("first", frame.index.isin(first)),
            ("others", ~frame.index.isin(first)),
            ("all", np.ones(len(frame), bool)),
        ):
            mean = frame[some].mean()
            row |= {f"{which}, {column.split(',')[0]}": mean[column] for column in ("realised, %", "width", "score")}
        rows.append(row)
    return rows


def reached(frame: pd.DataFrame) -> dict[str, float | bool]:
    """What is to be reached over the datasets, and whether it is."""
    covered, bias = frame["realised, %"], frame["bias"]
    return {
        "mean coverage, %": covered.mean(),
        f"≥ {LEAST_MEAN:.0f}": bool(covered.mean() >= LEAST_MEAN),
        "least coverage, %": covered.min(),
        f"≥ {LEAST_EACH:.0f}": bool(covered.min() >= LEAST_EACH),
        "widest bias": bias.abs().max(),
        f"≤ {WIDEST_BIAS:.0f}": bool(bias.abs().max() <= WIDEST_BIAS),
        "mean bias": bias.mean(),
    }


def _covered(workers: pd.DataFrame, score: str) -> float:
    """Percent of the workers whose actual accuracy lies in the interval; NaN without intervals."""
    if f"{score}_low" not in workers:
        return np.nan
    slack = 1e-9  # ends of intervals are shares of the same numbers, which interpolation may round
    low, high = workers[f"{score}_low"] - slack, workers[f"{score}_high"] + slack
    return 100 * float(workers["gold_accuracy"].between(low, high).mean())


def _width(workers: pd.DataFrame, score: str) -> float:
    """The mean width of the intervals; NaN without them."""
    if f"{score}_low" not in workers:
        return np.nan
    return 100 * float((workers[f"{score}_high"] - workers[f"{score}_low"]).mean())


def _drawn(annotations: cp.Annotations, n: int, seed: int) -> dict[Any, Any]:
    """Gold labels of ``n`` tasks with gold labels and annotations, drawn at random, by task."""
    gold = np.asarray(annotations.gold)
    annotated = np.unique(np.asarray(annotations.task))
    known = annotated[gold[annotated] >= 0]
    chosen = np.random.default_rng(seed).choice(known, min(n, len(known)), replace=False)
    tasks, classes = list(annotations.tasks), list(annotations.classes)
    return {tasks[i]: classes[gold[i]] for i in chosen}


def _options(text: str) -> dict[str, Any]:
    """Options as written on the command line, by name: numbers where they are numbers, else text."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name.strip()] = value
    return found


if __name__ == "__main__":
    typer.run(main)
