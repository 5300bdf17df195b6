"""Workers to review: how many simulated spammers are named, and how many of the named are spammers."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import typer
from scipy.stats import binom, norm
from support.crowd_shapes import BOUNDS, HEALTHY, SPREAD, accuracies, crowd, drawn
from support.report import Report

import crowdppl as cp
from crowdppl.inference.findings.review import review
from crowdppl.inference.fitted.workers import gold_scores

N_WORKERS, PER_TASK = 30, 5
SHARES, CLASSES, EACH = (0.1, 0.2, 0.3), (2, 3, 5), "20,50"
ABLE = "0.87,0.8,0.73"  # mean accuracies of the others
KINDS = ("uniform", "constant", "adversarial")
TARGET = 0.9
REAL = ("bluebird", "rte", "trec", "adult", "product", "labelme", "music", "movie_sp")


def main(
    seeds: int = 20,
    story: str = "dawid_skene",
    able: str = ABLE,
    each: str = EACH,
    real: bool = True,
    write: bool = False,
) -> None:
    """Measure, and print what was found.

    Args:
        seeds: crowds of each shape.
        story: that is fitted, by EM.
        able: mean accuracies of the others, with commas between them.
        each: annotations of each worker, likewise.
        real: look at the open crowds, too.
        write: refresh this section of RESULTS.md.
    """
    report = Report(f"Workers to review, {seeds} crowds of each shape, {story} by EM")
    rows = []
    for mean, n_classes, n, share, kind in product(
        map(float, able.split(",")), CLASSES, map(int, each.split(",")), SHARES, KINDS
    ):
        for seed in range(seeds):
            made, spammers = _crowd(np.random.default_rng(seed), mean, n_classes, n, share, kind)
            named = _named(story, made)
            counts = {"named": len(named), "spammers": len(spammers), "right": len(named & spammers)}
            rows.append({"able": mean, "classes": n_classes, "annotations": n, "share": share, "kind": kind} | counts)
    found = pd.DataFrame(rows)
    for by in (["able"], ["able", "classes"], ["annotations"], ["able", "annotations"], ["share"], ["kind"]):
        report.table(f"By {' and '.join(by)}", _scores(found, by))
    report.table("All", _scores(found.assign(able="all"), ["able"]))
    report.table(
        "At best, of spammers who draw a class: who knows every true label and the crowd",
        [
            {"able": mean, "classes": n_classes, "annotations": n, "share": share} | _at_best(mean, n_classes, n, share)
            for mean, n_classes, n, share in product(
                map(float, able.split(",")), CLASSES, map(int, each.split(",")), SHARES
            )
        ],
    )
    healthy = []
    for name, shape in HEALTHY.items():
        made = [shape(np.random.default_rng(seed)) for seed in range(seeds)]
        named = [len(_named(story, one.without_gold())) for one in made]
        workers = sum(one.n_workers for one in made)
        rate = f"{sum(named) / workers:.1%}"
        healthy.append({"crowd": name, "workers": workers, "named": sum(named), "of all": rate})
    report.table("Healthy crowds: workers named, all of them wrongly", healthy)
    if real:
        report.table("Open crowds: right annotations of gold tasks", [_of_real(name, story) for name in REAL])
    report.note(
        f"{N_WORKERS} workers, {PER_TASK} annotations a task, classes of equal shares; able: the mean accuracy of the "
        "others, normal with a standard deviation of 0.1 between 0.4 and 0.97, so that of two classes some of the "
        "others guess as well. uniform: draws a class; constant: gives one class; adversarial: right in 15 %. "
        f"Asked is {TARGET} of both. The constants of the rule were chosen among some seven variants, with crowds like "
        "these (seeds 0 to 2 of them) and the gold labels of open datasets in view; the prior of the kinds' shares "
        "among six, with seeds 100 to 105 and 200 to 205."
    )
    if write:
        report.write()


def _crowd(
    rng: np.random.Generator, mean: float, n_classes: int, each: int, share: float, kind: str
) -> tuple[cp.Annotations, set[int]]:
    """A crowd, and which of its workers are spammers."""
    n_tasks, n = N_WORKERS * each // PER_TASK, round(N_WORKERS * share)
    able = accuracies(rng, N_WORKERS, mean)
    truth, label, _ = drawn(rng, able, n_tasks=n_tasks, n_classes=n_classes, per_task=PER_TASK)
    turns = np.concatenate([rng.permutation(N_WORKERS) for _ in range(each)]).reshape(n_tasks, PER_TASK)
    given = np.zeros(label.shape, bool)
    np.put_along_axis(given, turns, True, 1)  # each worker as many
    if kind == "uniform":
        label[:, :n] = rng.integers(0, n_classes, (n_tasks, n))
    elif kind == "constant":
        label[:, :n] = rng.integers(0, n_classes, n)
    else:
        wrong = (truth[:, None] + rng.integers(1, n_classes, (n_tasks, n))) % n_classes
        label[:, :n] = np.where(rng.random((n_tasks, n)) < 0.85, wrong, truth[:, None])
    return crowd(truth, label, given, n_classes).without_gold(), set(range(n))


def _at_best(mean: float, n_classes: int, each: int, share: float) -> dict[str, str]:
    """Recall and precision of Bayes' rule on the number of right annotations, where all that is unknown is known."""
    right, level = np.arange(each + 1), np.clip(norm.ppf((np.arange(400) + 0.5) / 400, mean, SPREAD), *BOUNDS)
    of_others = binom.pmf(right[:, None], each, level).mean(1) * (1 - share)
    of_spammers = binom.pmf(right, each, 1 / n_classes) * share
    named = of_spammers > of_others
    found = of_spammers[named].sum()
    precision = found / (found + of_others[named].sum()) if named.any() else 1.0
    return {"recall": f"{found / share:.3f}", "precision": f"{precision:.3f}"}


def _named(story: str, annotations: cp.Annotations) -> set[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workers = review(cp.fit(story, annotations, progress=False))
    return set(workers.index[workers["review"]])


def _scores(found: pd.DataFrame, by: list[str]) -> list[dict[str, object]]:
    totals = found.groupby(by, sort=False)[["spammers", "named", "right"]].sum().reset_index()
    rows = []
    for row in totals.to_dict("records"):
        recall, precision = row["right"] / row["spammers"], row["right"] / max(row["named"], 1)
        reached = "yes" if min(recall, precision) >= TARGET else "no"
        del row["right"]
        rows.append(row | {"recall": f"{recall:.3f}", "precision": f"{precision:.3f}", "both asked": reached})
    return rows


def _of_real(name: str, story: str) -> dict[str, object]:
    annotations = cp.load_dataset(name)
    named, given = _named(story, annotations.without_gold()), gold_scores(annotations)
    is_named = given.index.isin(named)
    shares = [part["gold_right"].sum() / max(part["gold_annotations"].sum(), 1) for part in _parts(given, is_named)]
    return {
        "crowd": name,
        "workers": annotations.n_workers,
        "named": len(named),
        "of theirs": f"{shares[0]:.2f}" if named else "–",
        "of the others'": f"{shares[1]:.2f}",
        "chance": f"{1 / annotations.n_classes:.2f}",
    }


def _parts(given: pd.DataFrame, is_named: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    return given[is_named], given[~is_named]


if __name__ == "__main__":
    typer.run(main)
