"""Does leave-one-out find the story that the annotations were drawn from? And is it what exact refits say?"""

import warnings

import numpy as np
import typer
from jax import Array
from rich.progress import track
from support.report import Report

import crowdppl as cp

TASKS, WORKERS, PER_TASK = 400, 15, 5
STORIES: dict[str, dict] = {
    "two_coin": {"right": 4.0, "wrong": 1.5},
    "dawid_skene": {"diagonal": 4.0, "off_diagonal": 1.5},
    "difficulty": {},
    "annotator_groups": {"membership": "worker", "groups": 2, "diagonal": 4.0},
    "common_individual": {"by_task": False, "diagonal": 4.0},
}
ENGINES: dict[str, dict] = {
    "SVI": {"method": "svi", "guide": "multivariate_normal", "max_iterations": 3000},
    "NUTS": {"method": "nuts", "chains": 2, "warmup": 300, "draws": 300},
}
RATER = {"diagonal": 4.8, "off_diagonal": 3.2 / 3, "truth_prior": cp.Prevalence(3.0)}


def main(seeds: int = 20, exact: bool = True, write: bool = False) -> None:
    """Draw data from each of the five stories, fit all five to each, and compare.

    Args:
        seeds: data sets of each story.
        exact: refit anesthesia without each of its 45 patients, too.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore", cp.ConvergenceWarning)
    report = Report("Which story? Leave-one-out on data drawn from each of the five")
    rows = [ranked(story, "SVI", seeds) for story in STORIES]
    rows.append(ranked("common_individual", "NUTS", seeds))
    report.table("The generating story by leave-one-task-out", rows)
    report.note(
        f"{TASKS} tasks of two classes, {WORKERS} workers, {PER_TASK} annotations a task, the class probabilities "
        "given by the task's feature, all five stories fitted with the hyperparameters of the draw: by SVI (a "
        "multivariate normal guide, 3,000 steps), common_individual's data by NUTS too (2 chains of 300 draws), since "
        "no normal is near its posterior, in which a worker either follows the common confusion matrix or has one like "
        "it. Within one standard error: of the difference to the best. With two classes two_coin and dawid_skene are "
        "one story with one prior, so that one of them is first by the noise of the fits."
    )
    if exact:
        report.table("Leave-one-task-out of Dawid–Skene on anesthesia, in nats", [against_refits()])
        report.note("rater's priors, NUTS with 4 chains of 500 draws; 45 refits, one without each patient.")
    if write:
        report.write()


def ranked(story: str, engine: str, seeds: int) -> dict[str, object]:
    """How often the generating story is first, and within one standard error of it."""
    first = near = 0
    behind, n_high_k = [], 0
    for seed in track(range(seeds), f"{story}, {engine}"):
        found = cp.compare(fits(story, engine, seed))
        row = found.loc[story]
        first += found.index[0] == story
        near += -row["difference"] <= row["difference_se"]
        behind.append(row["difference"])
        n_high_k += int(found["n_high_k"].sum())
    return {
        "drawn from": story,
        "fitted by": engine,
        "data sets": seeds,
        "first": first,
        "first or within one standard error": near,
        "largest distance, nats": float(-min(behind)),
        "tasks with bad k̂, of all fits": n_high_k,
    }


def fits(story: str, engine: str, seed: int) -> dict[str, cp.Fit]:
    """All five stories fitted to data drawn from one."""
    features = np.random.default_rng(seed).normal(0, 1.5, (TASKS, 2))
    prior = cp.Classifier(_as_they_are)
    annotations, _ = cp.simulate(
        story,
        n_tasks=TASKS,
        n_workers=WORKERS,
        annotations_per_task=PER_TASK,
        features=features,
        truth_prior=prior,
        seed=seed,
        **STORIES[story],
    )
    return {
        name: cp.fit(name, annotations, truth_prior=prior, progress=False, **options, **ENGINES[engine])
        for name, options in STORIES.items()
    }


def against_refits() -> dict[str, object]:
    """Leave-one-task-out by importance sampling beside the exact one."""
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="nuts", progress=False, **RATER)
    guessed, exact = cp.loo(fit), cp.kfold(fit, by="task", folds=45, progress=False)
    trusted = guessed.pareto_k <= guessed.good_k
    return {
        "by importance sampling": guessed.elpd,
        "its standard error": guessed.se,
        "by refits": exact.elpd,
        "largest difference of a patient": float(np.abs(guessed.values - exact.values).max()),
        "with a good k̂": float(np.abs(guessed.values - exact.values)[trusted].max()),
        "patients with bad k̂": len(guessed.n_high_k),
    }


def _as_they_are(x: Array) -> Array:
    """A classifier whose logits are the features."""
    return x


if __name__ == "__main__":
    typer.run(main)
