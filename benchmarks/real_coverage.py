"""How often intervals of workers' accuracies hold what the workers got right, on real crowds with gold labels."""

import ast
import itertools
import time
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp

DATASETS = "rte,dog,weather_amt,movie_sp,music,labelme,sentiment,bluebird,temp"
OTHERS = "trec,adult,product,relevance,fact_eval,ws_youtube,ws_sms"  # by which the shares of misled tasks were not set
LEAST = 30  # annotations of gold tasks, for a worker to count
WIDEST_BIAS = 3.0  # points of percent
LEAST_MEAN, LEAST_EACH = 80.0, 60.0  # percent covered


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
        others: names of those that are reported apart, since the shares of misled tasks were set without them.
        gold: how many gold labels, drawn at random, the fit is given; none by default.
        misled: expected shares of tasks that mislead the whole crowd, with commas, to compare with the default and
            to choose from for each dataset by the others.
        interval: mass of the intervals.
        seed: of the fits, and of the draw of gold labels.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore", cp.ConvergenceWarning)
    report = Report(f"What {interval:.0%} intervals of real workers' accuracies hold")
    given, targets, weighed = _options(options), [], []
    shares: list[float | None] = [None, *map(float, filter(None, misled.split(",")))]
    for each, engine in itertools.product(story.split(","), method.split(",")):
        by_weight: dict[str, dict[float, float]] = {}
        for names, which in ((datasets.split(","), ""), (others.split(","), "; others")):
            if not all(names):
                continue
            fits = {name: fitted(name, each, engine, gold, seed, given) for name in names}
            found = {name: measure(*fits[name], interval, shares) for name in names}
            for name in names if weights else ():
                known = map(float, weights.split(","))
                by_weight[name] = {weight: _at_weight(fits[name][0], interval, weight) for weight in known}
            for share in shares:
                rows = [{"dataset": name, **found[name][share]} for name in names]
                frame = pd.DataFrame(rows).set_index("dataset")
                n_workers = int(frame["workers"].sum())
                mean = {"dataset": f"mean of {len(rows)}"} | frame.mean().to_dict() | {"workers": n_workers}
                said = "" if share is None else f", misled={share}"
                if share is None:
                    labels = f"{gold or 'no'} gold labels given"
                    title = f"{each} by {engine}, {options or 'default options'}, {labels}{which}"
                    report.table(title, [*rows, mean], absolute=["seconds"])
                reached = _reached(frame["realised, %"], frame["bias"].abs())
                of = {"fit": f"{each} by {engine}{said}{which}"}
                targets.append(of | reached | {"mean bias": frame["bias"].mean()})
            if len(shares) > 1:
                by_others = f"{each} by {engine}, misled chosen by the other datasets{which}"
                targets.append({"fit": by_others, **_chosen_by_others(found)})
        if by_weight:
            weighed.append({"fit": f"{each} by {engine}"} | _weight_by_others(pd.DataFrame(by_weight).T, interval))
    report.table("Targets, of the realised accuracy", targets)
    if weighed:
        report.table("Mean coverage by the prior weight of the share of misled tasks, %", weighed)
    report.note(
        f"Workers with at least {LEAST} annotations of gold tasks. Actual: the share of these annotations that are "
        "right. Realised: of the workers, how many have their actual accuracy in the interval of realised_accuracy; "
        "long run: in that of accuracy, which is of annotations yet to come, so that intervals that are right hold it "
        "less often. Bias: mean of realised_accuracy less actual, in points of percent, and width the mean width of "
        "its intervals. Label accuracy and mean log-score of the gold label (nats) are of the gold tasks whose labels "
        "the fit was not given; it sees no other gold label. Where only some tasks have gold labels, actual is of "
        "these and realised_accuracy of all. The shares of misled tasks that are expected by default, 0.06 and with "
        "shared errors 0.03, were set with the gold labels of the nine datasets in view; their weight of 4, the "
        "prior of shared errors, which auto has, and that auto judges workers without the votes' share, with those of "
        "all. With --misled the last row of an engine takes for each dataset the share with the least mean bias on the "
        "others, and with --weights the weight whose coverage is nearest to the intervals' mass on them."
    )
    if write:
        report.write()


def fitted(
    name: str, story: str, method: str, gold: int, seed: int, options: dict[str, Any]
) -> tuple[cp.Fit | cp.Stack, float]:
    """The fit of one dataset, and the seconds it took."""
    annotations = cp.load_dataset(name)
    given = _drawn(annotations, gold, seed) if gold else None
    began = time.perf_counter()
    fit = cp.fit(story, annotations, method=method, gold=given, seed=seed, progress=False, **options)
    return fit, time.perf_counter() - began


def measure(
    fit: cp.Fit | cp.Stack, seconds: float, interval: float, shares: list[float | None]
) -> dict[float | None, dict[str, float]]:
    """For one dataset, by share of misled tasks, what the intervals hold, and scores of the labels."""
    scores = cp.score(fit)
    labels = {"label accuracy, %": 100 * float(scores["accuracy"]), "log-score": float(scores["log_score"])}
    return {share: _held(fit, interval, share) | labels | {"seconds": seconds} for share in shares}


def _at_weight(fit: cp.Fit | cp.Stack, interval: float, weight: float) -> float:
    """How many of the intervals hold it, percent, at a weight of the default share's prior."""
    with mock.patch("crowdppl.inference.fitted.misled.WEIGHT", weight):
        return _held(fit, interval, None)["realised, %"]


def _weight_by_others(covered: pd.DataFrame, interval: float) -> dict[str, Any]:
    """Means over the datasets ``(dataset, weight)``, and what each gets by the weight that is best on the others."""
    chosen = {name: (covered.drop(index=name).mean() - 100 * interval).abs().idxmin() for name in covered.index}
    reached = np.mean([covered.loc[name, weight] for name, weight in chosen.items()])
    means = {f"weight {weight:g}": mean for weight, mean in covered.mean().items()}
    return means | {
        "chosen by the others": reached,
        "chosen": ", ".join(f"{weight:g}" for weight in sorted(set(chosen.values()))),
    }


def _held(fit: cp.Fit | cp.Stack, interval: float, share: float | None) -> dict[str, float]:
    """What the intervals hold, at an expected share of misled tasks."""
    workers = fit.worker_scores(interval, misled=share).drop(columns=["gold_accuracy"], errors="ignore")
    gold = fit.gold_scores()[["gold_accuracy", "gold_annotations"]]
    workers = workers.drop(columns=["gold_annotations"], errors="ignore").join(gold)
    workers = workers[workers["gold_annotations"] >= LEAST]
    actual = workers["gold_accuracy"]
    return {
        "workers": len(workers),
        "realised, %": _covered(workers, "realised_accuracy"),
        "long run, %": _covered(workers, "accuracy"),
        "bias": 100 * float((workers["realised_accuracy"] - actual).mean()),
        "long-run bias": 100 * float((workers["accuracy"] - actual).mean()),
        "width": _width(workers, "realised_accuracy"),
        "actual, %": 100 * float(actual.mean()),
    }


def _chosen_by_others(found: dict[str, dict[float | None, dict[str, float]]]) -> dict[str, float | bool]:
    """What is reached where each dataset's share is the one with the least mean bias over the other datasets."""
    bias = pd.DataFrame({name: {share: row["bias"] for share, row in rows.items()} for name, rows in found.items()})
    bias = bias.drop(index=[share for share in bias.index if share is None or np.isnan(share)])
    chosen = {name: bias.drop(columns=name).mean(axis=1).abs().idxmin() for name in found}
    rows = pd.DataFrame({name: found[name][share] for name, share in chosen.items()}).T
    said = {"mean bias": rows["bias"].mean(), "chosen": ", ".join(f"{share:g}" for share in chosen.values())}
    return _reached(rows["realised, %"], rows["bias"].abs()) | said


def _reached(covered: pd.Series, bias: pd.Series) -> dict[str, float | bool]:
    """What is to be reached over the datasets, and whether it is."""
    return {
        "mean coverage, %": covered.mean(),
        f"≥ {LEAST_MEAN:.0f}": bool(covered.mean() >= LEAST_MEAN),
        "least coverage, %": covered.min(),
        f"≥ {LEAST_EACH:.0f}": bool(covered.min() >= LEAST_EACH),
        "widest bias": bias.max(),
        f"≤ {WIDEST_BIAS:.0f}": bool(bias.max() <= WIDEST_BIAS),
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
