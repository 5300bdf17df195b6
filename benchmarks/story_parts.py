"""Labels of real crowds without, with shared errors, with difficulty of tasks, with both."""

import warnings

import numpy as np
import typer
from accuracy import DATASETS
from shared_errors import DIGITS, scores
from support.report import Report

import crowdppl as cp

PARTS = {
    "nothing": {},
    "shared": {"shared_error": True},
    "difficulty": {"task_difficulty": True},
    "both": {"shared_error": True, "task_difficulty": True},
}
FURTHER = ("judges_llmbar", "temp")


def main(datasets: str = ",".join((*DATASETS, *FURTHER)), story: str = "dawid_skene", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        datasets: names, with commas.
        story: the story that is fitted by EM with its defaults.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report("Parts that any story takes")
    found = {name: measured(name, story) for name in datasets.split(",")}
    for measure, digits in DIGITS.items():
        rows = [
            {"dataset": name, **{part: f"{reached[part][measure]:.{digits}f}" for part in PARTS}}
            for name, reached in found.items()
        ]
        means = {part: np.mean([reached[part][measure] for reached in found.values()]) for part in PARTS}
        rows.append({"dataset": "mean", **{part: f"{mean:.{digits}f}" for part, mean in means.items()}})
        report.table(f"{measure.capitalize()} of {story} by EM", rows)
    levels = [
        {"dataset": name, **{part: f"{reached[part]['difficulty']:.2f}" for part in ("difficulty", "both")}}
        for name, reached in found.items()
    ]
    report.table("Mean difficulty of tasks", levels)
    report.note(
        "Accuracy in percent, mean log-score of the gold label (probabilities from 10⁻¹²), expected calibration error "
        "in ten bins; no gold label is in view. Difficulty: by how much the log-odds of annotations are smaller than "
        "those of the easiest tasks, in the mean."
    )
    if write:
        report.write()


def measured(name: str, story: str) -> dict[str, dict[str, float]]:
    """Scores of one dataset with each of the parts, and the mean difficulty where there is one."""
    annotations = cp.load_dataset(name)
    found = {}
    for part, options in PARTS.items():
        fit = cp.fit(story, annotations, progress=False, **options)
        found[part] = scores(fit.posterior, np.asarray(annotations.gold))
        if "task_difficulty" in options:
            share = fit.parameters["difficulty_share"]
            found[part]["difficulty"] = float((share * share["difficulty_level"]).sum())
    return found


if __name__ == "__main__":
    typer.run(main)
