"""Every story by every engine on 20 to 60 tasks: log-score and accuracy, and how far EM and SVI are from NUTS."""

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import typer
from support.report import Report

import crowdppl as cp
from crowdppl.models import KNOWN_STORIES

TASKS = (20, 40, 60)  # by turns
WORKERS, ANNOTATIONS = 10, 4  # workers of a crowd, and of these the number that annotates each task
SMALLEST = 1e-6  # of a label's probability, for its logarithm
ENGINES: dict[str, dict[str, Any]] = {
    "em": {},
    "em, no sweeps": {"method": "em", "sweeps": 0},
    "svi": {},
    "svi, no sweeps": {"method": "svi", "sweeps": 0},
    "nuts": {"chains": 2, "warmup": 400, "draws": 400},
}
"""By name, the options of the fits; the method is of that name where they name none."""


def main(
    stories: str = ",".join(KNOWN_STORIES),
    classes: str = "2,3,6",
    seeds: int = 10,
    results: Path = Path("build/thin.jsonl"),
    stored: bool = False,
    write: bool = False,
) -> None:
    """Fit, and print means over crowds.

    Args:
        stories: their names, with commas; those that cannot do without features are left out.
        classes: numbers of classes, with commas.
        seeds: crowds of each number of classes.
        results: a file that has the fits so far, a line each; a later run goes on from there.
        stored: print what the file has, and fit nothing.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    names, numbers = stories.split(","), [int(number) for number in classes.split(",")]
    found = read(results)
    if not stored:
        for story in names:
            for n_classes in numbers:
                found += fitted(story, n_classes, range(seeds), found, results)
    frame = pd.DataFrame(found)
    frame = frame[frame["story"].isin(names) & frame["classes"].isin(numbers) & (frame["seed"] < seeds)]
    report = Report(f"Crowds of 20 to 60 tasks: {frame['story'].nunique()} stories by every engine")
    report.table("Log-score and accuracy, means over crowds", rows(frame), absolute=["s"])
    report.note(
        f"Crowds of {', '.join(map(str, sorted(frame['classes'].unique())))} classes, up to {frame['seed'].nunique()} "
        f"of each: {WORKERS} workers, {ANNOTATIONS} annotations a task, a worker in five at chance, the others are "
        "right in 73 % on average. The difference is the mean of the log-score less that of NUTS on the crowd, "
        "with its standard error; far, of the fits those with a log-score of more than 0.1 less, and how many of these "
        "have a warning."
    )
    if write:
        report.write()


def crowd(n_classes: int, seed: int) -> cp.Annotations:
    """A thin crowd of no story's prior, with its true labels."""
    rng = np.random.default_rng([n_classes, seed])
    n_tasks = TASKS[seed % len(TASKS)]
    truth = rng.choice(n_classes, n_tasks, p=rng.dirichlet(np.full(n_classes, 5.0)))
    right = np.where(rng.random(WORKERS) < 0.2, 1 / n_classes, rng.beta(8, 3, WORKERS))
    errors = rng.dirichlet(np.full(n_classes, 1.0), (WORKERS, n_classes)) * (1 - np.eye(n_classes))
    matrices = (1 - right)[:, None, None] * errors / errors.sum(-1, keepdims=True)
    matrices += right[:, None, None] * np.eye(n_classes)
    chosen = [(task, worker) for task in range(n_tasks) for worker in rng.choice(WORKERS, ANNOTATIONS, replace=False)]
    table = pd.DataFrame(chosen, columns=["task", "worker"])
    table["label"] = [rng.choice(n_classes, p=matrices[worker, truth[task]]) for task, worker in chosen]
    return cp.Annotations.from_frame(table, classes=list(range(n_classes)), gold=dict(enumerate(truth.tolist())))


def fitted(
    story: str, n_classes: int, seeds: Iterable[int], found: list[dict[str, Any]], results: Path
) -> list[dict[str, Any]]:
    """Fit one story to crowds by every engine, but for what has been fitted before, and keep it."""
    known = {(line["story"], line["classes"], line["seed"], line["engine"]) for line in found}
    made = []
    for seed in seeds:
        annotations = crowd(n_classes, seed)
        for engine, options in ENGINES.items():
            if (story, n_classes, seed, engine) in known:
                continue
            line = {"story": story, "classes": n_classes, "seed": seed, "engine": engine}
            before = process_time()
            try:
                fit = cp.fit(story, annotations, progress=False, **({"method": engine} | options))
            except cp.StoryError:  # it needs features
                return made
            probabilities = np.asarray(fit.posterior)
            gold = np.asarray(annotations.gold)
            of_gold = np.maximum(probabilities[np.arange(len(gold)), gold], SMALLEST)
            line |= {
                "log_score": float(np.log(of_gold).mean()),
                "accuracy": float((probabilities.argmax(-1) == gold).mean()),
                "confidence": float(probabilities.max(-1).mean()),
                "warned": [finding.code for finding in fit.findings if finding.severity == "warning"],
                "s": process_time() - before,
            }
            made.append(line)
            results.parent.mkdir(parents=True, exist_ok=True)
            with results.open("a") as file:
                file.write(json.dumps(line) + "\n")
    return made


def read(results: Path) -> list[dict[str, Any]]:
    """The fits that a file has."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """A row for each story and engine."""
    exact = frame[frame["engine"] == "nuts"].set_index(["story", "classes", "seed"])["log_score"]
    frame = frame.join(exact.rename("exact"), on=["story", "classes", "seed"]).dropna(subset="exact")
    made: list[dict[str, object]] = []
    for (story, engine), part in frame.groupby(["story", "engine"], sort=False):
        difference = part["log_score"] - part["exact"]
        far = part[difference < -0.1]
        error = difference.std() / np.sqrt(len(part))
        made.append(
            {
                "story": story,
                "engine": engine,
                "crowds": len(part),
                "log-score": round(part["log_score"].mean(), 3),
                "less NUTS": "" if engine == "nuts" else f"{difference.mean():+.3f} ± {error:.3f}",
                "accuracy": round(part["accuracy"].mean(), 3),
                "confidence": round(part["confidence"].mean(), 3),
                "far, %": round(100 * len(far) / len(part)),
                "of these warned, %": round(100 * np.mean([bool(codes) for codes in far["warned"]]))
                if len(far)
                else "",
                "s": round(part["s"].median(), 1),
            }
        )
    return made


if __name__ == "__main__":
    typer.run(main)
