"""How often the intervals of workers' accuracies hold what the workers got right on gold tasks."""

import warnings
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.checks.simulation_based_calibration import crowd_quantities
from crowdppl.inference.densities.model import Model
from crowdppl.models import find_story

DATASETS = ("rte", "bluebird", "dog", "music", "labelme")
LEAST = 10  # annotations to gold tasks, for a worker to count
STORIES = (
    "dawid_skene,one_coin,two_coin,glad,item_response,common_individual,hierarchical_dawid_skene"  # by EM, simulated
)
SHAPES = {
    "100 × 6": {"n_tasks": 100, "n_workers": 10, "annotations_per_task": 6},
    "40 × 4": {"n_tasks": 40, "n_workers": 8, "annotations_per_task": 4},
}
"""Simulated crowds of two classes."""
ROUNDING = 1e-6
BAD = 0.6  # accuracy under which a worker is bad
JUDGES = {"severity": (0.0, 0.3, -0.3, 0.5, 0.0, -0.2), "noise": (0.5, 0.6, 0.8, 0.7, 1.2, 0.9)}
"""Of six judges who score 200 answers from 1 to 5, in levels; they are of no story here."""
COPIED = 0.85  # of the fifth judge's scores that the sixth copies, where one does
OF_SCORES = ("auto", "graded_response", "ordinal_dawid_skene", "score_factor")


def main(stories: str = STORIES, crowds: int = 20, seed: int = 200, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        stories: their names, with commas, for simulated crowds.
        crowds: how many are simulated of each story and shape.
        seed: of the first.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Coverage of 90 % intervals of the workers' accuracy")
    report.table("dawid_skene with default priors, NUTS", [{"dataset": name, **coverage(name)} for name in DATASETS])
    report.note(
        f"Workers with at least {LEAST} annotations to gold tasks. Covered: the share of them whose gold accuracy, the "
        "share of these annotations that are right, lies in the 90 % interval of the accuracy. A gold accuracy has an "
        "error of its own, so that intervals that are right cover somewhat less than 90 %. 2 chains of 500 draws."
    )
    rows = [
        {"story": story, "tasks × annotations": shape} | simulated(story, sizes, range(seed, seed + crowds))
        for story in stories.split(",")
        for shape, sizes in SHAPES.items()
    ]
    report.table("Simulated crowds, EM", rows)
    report.note(
        f"{crowds} crowds of two classes by story and shape, parameters drawn from the story's prior, of 10 and 8 "
        "workers. Covered: in percent of the workers, with the standard error over crowds, whose actual probability of "
        "a right annotation lies in the interval of accuracy; of workers for whom it is under "
        f"{BAD}; and of realised accuracies, the share of the annotations given that are right, with its error. "
        "Better: crowds whose workers are right with a probability over a half in the mean. Of others the annotations "
        "do not tell which class is which: a story that expects workers to be right takes one class for the other, "
        "and its intervals are those of the labels turned around."
    )
    rows = [judged(story, range(seed, seed + crowds // 2), copies) for copies in (False, True) for story in OF_SCORES]
    report.table("Judges' scores from 1 to 5, EM", rows)
    report.note(
        f"{crowds // 2} panels of six judges who score 200 answers, with a severity and noise of their own "
        f"(benchmarks/accuracy_intervals.py); where one copies, {COPIED:.0%} of the sixth's scores are the fifth's. "
        "Covered: in percent of the judges, whose share of right scores lies in the interval of realised accuracy. "
        "Above: how far the mean estimate is above that share. Warned: of the panels, by a finding of any kind."
    )
    if write:
        report.write()


def judged(story: str, seeds: Iterable[int], copies: bool) -> dict[str, Any]:
    """How often intervals hold the shares of right scores of judges, of whom one may copy another."""
    held, above, right, said, warned = [], [], [], [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = rng.choice(5, 200, p=[0.1, 0.2, 0.3, 0.25, 0.15])
        noise = rng.normal(size=(200, 6)) * JUDGES["noise"]
        score = np.clip(np.rint(truth[:, None] + JUDGES["severity"] + noise), 0, 4).astype(int)
        if copies:
            copied = rng.random(200) < COPIED
            score[copied, 5] = score[copied, 4]
        fit = cp.fit(story, cp.Annotations.from_matrix(1 + score, ordered=True), progress=False)
        share = (score == truth[:, None]).mean(0)
        held.append(share_held(fit.workers, share))
        above.append((fit.workers["realised_accuracy"] - share).mean())
        right.append((fit.posterior.argmax(1) == truth).mean())
        said.append(fit.posterior.max(1).mean())
        warned.append(bool(fit.findings.warnings))
    return {
        "story": story,
        "one copies": "yes" if copies else "no",
        "covered, %": 100 * np.mean(held),
        "error": 100 * np.std(held) / np.sqrt(len(held)),
        "above": np.mean(above),
        "labels right": np.mean(right),
        "labels' mean probability": np.mean(said),
        "warned, %": 100 * np.mean(warned),
    }


def simulated(story: str, sizes: dict[str, int], seeds: Iterable[int]) -> dict[str, Any]:
    """How often intervals after EM hold the actual accuracies of crowds that the story simulated."""
    held, of_bad, realised, better = [], [], [], []
    for seed in seeds:
        annotations, parameters = cp.simulate(story, seed=seed, **sizes)
        crowd = annotations.without_gold()
        quantities = crowd_quantities(Model(find_story(story), {}), crowd)
        first = np.asarray(quantities({name: jnp.asarray(value) for name, value in parameters.items()})["confusion"])
        rows = np.concatenate([first, 1 - first], axis=-1)
        accuracy = np.einsum("k,jkk->j", parameters.get("prevalence", np.array([0.5, 0.5])), rows)
        right = np.asarray(annotations.label) == np.asarray(annotations.gold)[annotations.task]
        n = np.maximum(annotations.n_by_worker(), 1)
        share = np.bincount(annotations.worker, right, annotations.n_workers) / n
        workers = cp.fit(story, crowd, progress=False).workers
        holds = workers["accuracy_low"].le(accuracy) & workers["accuracy_high"].ge(accuracy)
        held.append(holds.mean())
        of_bad += holds[accuracy < BAD].tolist()
        realised.append(share_held(workers, share))
        better.append(accuracy.mean() > 0.5)
    return {
        "covered, %": 100 * np.mean(held),
        "error": 100 * np.std(held) / np.sqrt(len(held)),
        "bad workers": len(of_bad),
        "of them covered, %": 100 * np.mean(of_bad),
        "realised, %": 100 * np.mean(realised),
        "its error": 100 * np.std(realised) / np.sqrt(len(realised)),
        "better, %": 100 * np.mean(better),
        "of them realised, %": 100 * np.mean(np.array(realised)[better]),
    }


def share_held(workers: pd.DataFrame, share: np.ndarray) -> float:
    """Of how many workers the interval of the realised accuracy holds the actual one, to rounding."""
    low, high = workers["realised_accuracy_low"] - ROUNDING, workers["realised_accuracy_high"] + ROUNDING
    return float((low.le(share) & high.ge(share)).mean())


def coverage(name: str) -> dict[str, float]:
    """For one dataset how many workers count, the share covered in percent, and means of both accuracies."""
    fit = cp.fit("dawid_skene", cp.load_dataset(name), method="nuts", chains=2, seed=0, progress=False)
    workers = fit.workers[fit.workers["gold_annotations"] >= LEAST]
    held = workers["gold_accuracy"].between(workers["accuracy_low"], workers["accuracy_high"])
    return {
        "workers": len(workers),
        "covered, %": 100 * held.mean(),
        "mean accuracy": workers["accuracy"].mean(),
        "mean gold accuracy": workers["gold_accuracy"].mean(),
    }


if __name__ == "__main__":
    typer.run(main)
