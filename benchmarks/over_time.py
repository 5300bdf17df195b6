"""Workers, and tasks, that change over time: how often the findings say so, wrongly too, and what it costs."""

import warnings

import numpy as np
import pandas as pd
import typer
from support.crowd_shapes import HEALTHY, accuracies, drawn
from support.report import Report

import crowdppl as cp

WORKERS, TIRED = 20, 4  # of whom the first are worse in their later half


def main(draws: int = 20, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: crowds of each shape.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report("Workers who change over time")
    report.table(
        "Healthy crowds: those in which somebody is named, or tasks are said to be harder or easier",
        [_healthy(shape, draws) for shape in HEALTHY],
    )
    sizes = [(n, k, drop) for n in (250, 1000) for k in (2, 3) for drop in (0.2, 0.4)]
    report.table("20 workers, of whom four become worse, five annotations a task", [_tired(*s, draws) for s in sizes])
    report.table("400 tasks, four annotations each by eight workers, all of whom become worse", [_harder(draws)])
    report.note(
        f"dawid_skene by EM, {draws} crowds each. Healthy crowds are those of benchmarks/support/crowd_shapes.py, "
        "annotated task by task or at random times. Tired workers are right in so much less of the later half of the "
        "tasks; the last column has the accuracy of labels where the workers who are named are taken for two. Where "
        "all become worse they are right in .30 less of the later half, whose labels of a probability of .9 and more "
        "are compared."
    )
    if write:
        report.write()


def _fitted(annotations: cp.Annotations, truth: np.ndarray) -> tuple[dict[object, float], bool, float]:
    """Who is named, with the time from which on, whether tasks are said to change, and the accuracy of the labels."""
    fit = cp.fit("dawid_skene", annotations, progress=False)
    said = {one.code: one.values for one in fit.findings}
    named = dict(zip(said["changed"]["workers"], said["changed"]["since"], strict=True)) if "changed" in said else {}
    right = float((fit.posterior.argmax(1) == truth[list(fit.annotations.tasks)]).mean())
    return named, "agreement_changed" in said, right


def _healthy(shape: str, draws: int) -> dict[str, object]:
    """A row for healthy crowds of one shape."""
    row: dict[str, object] = {"shape": shape}
    for order in ("task by task", "at random"):
        n_named = n_harder = 0
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            annotations = HEALTHY[shape](rng)
            when = annotations.task + rng.random(annotations.n_rows)
            when = rng.permutation(when) if order == "at random" else when
            truth = np.asarray(annotations.gold)
            named, harder, _ = _fitted(annotations.without_gold().replace(when=when), truth)
            n_named, n_harder = n_named + bool(named), n_harder + harder
        row |= {f"{order}: named": f"{n_named} of {draws}", f"{order}: harder": f"{n_harder} of {draws}"}
    print(*row.values(), sep=" | ", flush=True)
    return row


def _tired(n_tasks: int, n_classes: int, drop: float, draws: int) -> dict[str, object]:
    """A row for crowds of whom some become worse."""
    named, others, right = 0, 0, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        truth, label, given = drawn(rng, accuracies(rng, WORKERS, 0.8), n_tasks=n_tasks, n_classes=n_classes)
        late = np.arange(n_tasks)[:, None] >= n_tasks // 2
        errs = late & (np.arange(WORKERS) < TIRED) & (label == truth[:, None]) & (rng.random(label.shape) < drop / 0.8)
        label = np.where(errs, (label + rng.integers(1, n_classes, label.shape)) % n_classes, label)
        task, worker = np.nonzero(given)
        table = pd.DataFrame({"task": task, "worker": worker, "label": label[task, worker]})
        table["when"] = task + rng.random(len(task))
        found, _, before = _fitted(cp.Annotations.from_frame(table, when="when", classes=range(n_classes)), truth)
        named, others = named + sum(j < TIRED for j in found), others + any(j >= TIRED for j in found)
        later = table["when"] >= table["worker"].map(found).fillna(np.inf)
        split = table.assign(worker=table["worker"] + WORKERS * later)
        right.append((before, _fitted(cp.Annotations.from_frame(split, classes=range(n_classes)), truth)[-1]))
    before, after = np.mean(right, 0)
    row: dict[str, object] = {
        "tasks": n_tasks,
        "classes": n_classes,
        "worse by": drop,
        "of the tired named": f"{named / draws / TIRED:.0%}",
        "crowds with others named": f"{others} of {draws}",
        "accuracy": f"{before:.3f}",
        "as two": f"{after:.3f}",
    }
    print(*row.values(), sep=" | ", flush=True)
    return row


def _harder(draws: int) -> dict[str, object]:
    """A row for crowds all of whose workers become worse: what is said, and what sure labels of the later half are."""
    n_tasks, n_workers, n_classes, said = 400, 8, 3, 0
    sure: dict[str, list[np.ndarray]] = {"one fit": [], "halves apart": []}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, n_classes, n_tasks)
        right = np.linspace(0.75, 0.9, n_workers) - 0.3 * (np.arange(n_tasks)[:, None] >= n_tasks // 2)
        errs = rng.random((n_tasks, n_workers)) > right
        label = np.where(errs, truth[:, None] + rng.integers(1, n_classes, errs.shape), truth[:, None]) % n_classes
        task, worker = np.nonzero(rng.random(errs.shape).argsort(1).argsort(1) < 4)
        table = pd.DataFrame({"task": task, "worker": worker, "label": label[task, worker]})
        table["when"] = task + rng.random(len(task))
        late = table["task"] >= n_tasks // 2
        for name, rows in (("one fit", table), ("halves apart", table[late])):
            annotations = cp.Annotations.from_frame(rows, when="when", classes=range(n_classes))
            fit = cp.fit("dawid_skene", annotations, progress=False)
            said += name == "one fit" and any(one.code == "agreement_changed" for one in fit.findings)
            tasks, top = np.array(list(fit.annotations.tasks)), fit.posterior.max(1)
            of_late = (tasks >= n_tasks // 2) & (top >= 0.9)
            is_right = fit.posterior.argmax(1) == truth[tasks]
            sure[name].append(np.stack([top[of_late], is_right[of_late]]))
    row: dict[str, object] = {"crowds in which it is said": f"{said} of {draws}"}
    for name, found in sure.items():
        said_of, is_right = np.concatenate(found, 1)
        row |= {
            f"{name}: sure labels": len(said_of),
            f"{name}: right": f"{is_right.mean():.3f}",
            f"{name}: said": f"{said_of.mean():.3f}",
        }
    return row


if __name__ == "__main__":
    typer.run(main)
