"""Workers who change over time: how often the finding names them, and others, and what it is to count each as two."""

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
    report.table("Healthy crowds: those in which somebody is named", [_healthy(shape, draws) for shape in HEALTHY])
    sizes = [(n, k, drop) for n in (250, 1000) for k in (2, 3) for drop in (0.2, 0.4)]
    report.table("20 workers, of whom four become worse, five annotations a task", [_tired(*s, draws) for s in sizes])
    report.note(
        f"dawid_skene by EM, {draws} crowds each. Healthy crowds are those of benchmarks/support/crowd_shapes.py, "
        "annotated task by task or at random times. Tired workers are right in so much less of the later half of the "
        "tasks. The last column has the accuracy of labels where the workers who are named are taken for two."
    )
    if write:
        report.write()


def _fitted(annotations: cp.Annotations, truth: np.ndarray) -> tuple[dict[object, float], float]:
    """Who is named, with the time from which on, and the accuracy of the labels."""
    fit = cp.fit("dawid_skene", annotations, progress=False)
    found = [one.values for one in fit.findings if one.code == "changed"]
    named = dict(zip(found[0]["workers"], found[0]["since"], strict=True)) if found else {}
    return named, float((fit.posterior.argmax(1) == truth[list(fit.annotations.tasks)]).mean())


def _healthy(shape: str, draws: int) -> dict[str, object]:
    """A row for healthy crowds of one shape."""
    row: dict[str, object] = {"shape": shape}
    for order in ("task by task", "at random"):
        n_named = 0
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            annotations = HEALTHY[shape](rng)
            when = annotations.task + rng.random(annotations.n_rows)
            when = rng.permutation(when) if order == "at random" else when
            truth = np.asarray(annotations.gold)
            n_named += bool(_fitted(annotations.without_gold().replace(when=when), truth)[0])
        row[order] = f"{n_named} of {draws}"
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
        found, before = _fitted(cp.Annotations.from_frame(table, when="when", classes=range(n_classes)), truth)
        named, others = named + sum(j < TIRED for j in found), others + any(j >= TIRED for j in found)
        later = table["when"] >= table["worker"].map(found).fillna(np.inf)
        split = table.assign(worker=table["worker"] + WORKERS * later)
        right.append((before, _fitted(cp.Annotations.from_frame(split, classes=range(n_classes)), truth)[1]))
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


if __name__ == "__main__":
    typer.run(main)
