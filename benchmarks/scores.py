"""Scores that judges give in tens on scales of their own (judges_asset): how near estimates are to the mean rating.

Each method has one setting, and sees no gold label. An estimate is the expected score under the labels' posterior
(`fit.expected`); Kendall's tau is that for ties (b), and the distance is in points of the scale to 100. Then the same
with gold labels of some tasks drawn at random, on the other tasks.
"""

import warnings

import numpy as np
import pandas as pd
import typer
from scipy.stats import kendalltau, rankdata, spearmanr
from support.data import read_annotations, read_gold
from support.report import Report

import crowdppl as cp

STORIES = ("dawid_skene", "hierarchical_dawid_skene", "graded_response", "score_factor", "score_factor, own classes")
"""Names of stories; "own classes" where the truth's ten classes are said not to be the judges' levels."""
POINTS = 10  # of the scale to 100 that a level has
ASKED = {"Kendall": 0.576, "Spearman": 0.757, "MAE": 17.5}


def main(gold: int = 50, draws: int = 5, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        gold: how many tasks have gold labels in the second part.
        draws: of such tasks.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    frame, truth = read_annotations("judges_asset"), read_gold("judges_asset")
    annotations = cp.Annotations.from_frame(frame, ordered=True)
    truth = truth.loc[list(annotations.tasks)]
    report = Report("Scores of judges on scales of their own")
    mean = frame.groupby("task")["label"].mean().loc[truth.index]
    found = {"mean score": mean} | {story: expected(story, annotations) for story in STORIES}
    rows = [{"method": name} | shown(measured(estimate, truth)) for name, estimate in found.items()]
    report.table("no gold label", [*rows, {"method": "asked"} | shown(ASKED)])
    rng = np.random.default_rng(0)
    chosen = [rng.choice(len(truth), gold, replace=False) for _ in range(draws)]
    rows = [{"method": "mean score"} | averaged([measured(mean, truth, tasks) for tasks in chosen])]
    for story in STORIES:
        each = [measured(expected(story, annotations, truth.iloc[tasks]), truth, tasks) for tasks in chosen]
        rows.append({"method": story} | averaged(each))
    last = {"method": "asked", "Kendall": "", "Spearman": "", "MAE": "16.5"}
    report.table(f"{gold} gold labels, mean of {draws} draws, the other tasks", [*rows, last])
    report.table("a truth of two classes: above the middle of the scale or not, no gold label", of_two(frame, truth))
    report.note(
        "One panel: 11 judges, 300 tasks, the mean of 15 human ratings cut into tens. What was asked was measured on "
        "ratings before they were cut, where the mean score has a Kendall's tau of .543 and an MAE of 26.0. People "
        "rate on another scale than these judges. Where the truth's classes are taken for the judges' levels, "
        "score_factor gives the level that judges would give. Classes of its own (truth_classes=) are equally "
        "frequent, which is nearly true of this panel's ratings, by which their MAE profits; the ranks do not. How "
        "its levels follow from the factor was chosen with this panel's ratings in view, and those of judges_llmbar, "
        "before cumulative logits and three other forms, so that its figures are a little too good. No other panel "
        "of scores with a truth is at hand."
    )
    if write:
        report.write()


def of_two(frame: pd.DataFrame, truth: pd.Series) -> list[dict[str, object]]:
    """Scores of labels where the truth is whether the mean rating is above the middle, and the scores are levels."""
    levels = range(POINTS)
    annotations = cp.Annotations.from_frame(frame, ordered=levels, truth_classes=["no", "yes"])
    is_yes = (truth.loc[list(annotations.tasks)] >= POINTS / 2).to_numpy()
    mean = frame.groupby("task")["label"].mean().loc[list(annotations.tasks)].to_numpy() / max(levels)
    found = {"mean score": mean} | {
        f"{story} {title}".strip(): np.asarray(cp.fit(story, given, progress=False).posterior)[:, 1]
        for story, title, given in (
            ("majority_vote", "of verdicts", annotations.verdicts()),
            ("auto", "of verdicts", annotations.verdicts()),
            *((story, "", annotations) for story in ("ordinal_dawid_skene", "graded_response", "score_factor", "auto")),
        )
    }
    return [{"method": name} | of_classes(yes, is_yes) for name, yes in found.items()]


def of_classes(yes: np.ndarray, is_yes: np.ndarray) -> dict[str, str]:
    """AUC, accuracy and mean log-score of the probabilities of the second class."""
    log_score = np.log(np.maximum(np.where(is_yes, yes, 1 - yes), 1e-6)).mean()
    ranks = rankdata(yes)[is_yes].sum()
    auc = (ranks - is_yes.sum() * (is_yes.sum() + 1) / 2) / (is_yes.sum() * (~is_yes).sum())
    values = {"AUC": auc, "accuracy": ((yes > 0.5) == is_yes).mean(), "log-score": log_score}
    return {name: f"{value:.3f}" for name, value in values.items()}


def expected(story: str, annotations: cp.Annotations, gold: pd.Series | None = None) -> pd.Series:
    """The expected score of each task."""
    given = {} if gold is None else {"gold": gold.to_dict()}
    story, *own = story.split(", ")
    if own:
        levels = annotations.classes
        annotations = cp.Annotations.from_frame(annotations.to_frame(), ordered=levels, truth_classes=[*levels])
    return cp.fit(story, annotations, progress=False, **given).expected["expected"]


def measured(estimate: pd.Series, truth: pd.Series, without: np.ndarray | None = None) -> dict[str, float]:
    """Rank correlations and distance of estimates, but for some tasks."""
    kept = np.ones(len(truth), bool)
    kept[[] if without is None else without] = False
    x, y = estimate.loc[truth.index].to_numpy(dtype=float)[kept], truth.to_numpy(dtype=float)[kept]
    return {
        "Kendall": float(kendalltau(x, y)[0]),
        "Spearman": float(spearmanr(x, y)[0]),
        "MAE": POINTS * float(np.abs(x - y).mean()),
    }


def averaged(rows: list[dict[str, float]]) -> dict[str, str]:
    """The mean of each figure, as it is shown."""
    return shown({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})


def shown(figures: dict[str, float]) -> dict[str, str]:
    """Correlations with three digits, distances with one."""
    return {name: f"{value:.1f}" if name == "MAE" else f"{value:.3f}" for name, value in figures.items()}


if __name__ == "__main__":
    typer.run(main)
