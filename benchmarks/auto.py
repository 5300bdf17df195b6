"""`cp.fit("auto")` on seventeen datasets, one setting for all, beside majority vote and Dawid–Skene alone.

With `--leave-one-dataset-out` also what would have been chosen, among sets of stories, their weights and shares of the
votes, for each dataset by the others. With `--unnamed` the ten datasets without the workers' names, for which auto has
other stories.
"""

import itertools
import time
import warnings
from typing import NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import typer
from accuracy import DATASETS
from support.data import accuracy, data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.comparison.default_set import DEFAULT_SET, DEFAULT_SET_UNNAMED
from crowdppl.inference.comparison.weights import weights_of_parts

FURTHER = ("labelme", "temp", "fact_eval", "relevance", "ws_youtube", "ws_sms", "judges_llmbar")
AUTO, ALONE, MAJORITY = "auto", "dawid_skene", "majority vote"
SHARED = next(iter(DEFAULT_SET))
STORIES = DEFAULT_SET | {"glad": {}}


class Votes(NamedTuple):
    """The share of the votes of a task without annotations, and the number of them at which it is half of that."""

    share: float
    half: float


def _with(other: str, share: float) -> dict[str, float]:
    """Shares of both forms of Dawid and Skene's story, and of another."""
    return {SHARED: (1 - share) / 2, ALONE: (1 - share) / 2, other: share}


FIXED: dict[str, dict[str, float]] = {
    "shared": {SHARED: 1.0},
    "dawid_skene": {ALONE: 1.0},
    "one_coin": {"one_coin": 1.0},
    "shared, dawid_skene": {SHARED: 0.5, ALONE: 0.5},
    "shared, one_coin 0.15": {SHARED: 0.85, "one_coin": 0.15},
    "shared, one_coin 0.5": {SHARED: 0.5, "one_coin": 0.5},
}
BY_PARTS: dict[str, dict[str, float]] = {
    "shared or dawid_skene": {SHARED: 0.5, ALONE: 0.5},
    **{f"shared or dawid_skene, one_coin {share}": _with("one_coin", share) for share in (0.15, 0.3, 0.5)},
    "shared or dawid_skene, glad 0.15": _with("glad", 0.15),
}
VOTES = (
    Votes(0.0, np.inf),
    Votes(1 / 3, np.inf),
    Votes(1 / 3, 40.0),
    Votes(0.5, 20.0),
    Votes(0.5, 10.0),
    Votes(0.5, 5.0),
)
MISLED = (0.0, 0.05)
MEASURES = ("accuracy", "log-score", "ECE")


def main(leave_one_dataset_out: bool = False, unnamed: bool = False, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        leave_one_dataset_out: compare sets of stories, weights and shares of the votes too.
        unnamed: drop the workers' names of the ten datasets, and compare auto with each of its stories and the votes.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    if unnamed:
        compare_unnamed(write)
        return
    report = Report('Labels of cp.fit("auto")')
    rows = {name: measure(name) for name in (*DATASETS, *FURTHER)}
    report.table(
        "Accuracy in percent, mean log-score of the gold label in nats, expected calibration error",
        _with_means(pd.DataFrame(rows).T),
        absolute=["seconds"],
    )
    report.note(
        "One setting, the default, by EM, and no gold label in view. Majority vote's probabilities are the shares of "
        "the votes; a tie counts for its share. Abstentions are data for the stories, and no votes. Seconds are of "
        "auto, with what it compiles, in one process."
    )
    if leave_one_dataset_out:
        compare_choices(report)
    if write:
        report.write()


def measure(name: str) -> dict[str, float]:
    """Scores on one dataset, and the seconds that auto took."""
    annotations, gold = given(name)
    began = time.perf_counter()
    stack = cp.fit("auto", annotations, progress=False)
    seconds = time.perf_counter() - began
    found = {
        AUTO: stack.probabilities,
        ALONE: cp.fit("dawid_skene", annotations, progress=False).probabilities,
        MAJORITY: in_frame(shares_of_votes(annotations), annotations),
    }
    scores = {method: scored(probabilities, gold) for method, probabilities in found.items()}
    flat = {f"{method}, {measure}": scores[method][measure] for measure in MEASURES for method in found}
    return flat | {"seconds": seconds}


def compare_unnamed(write: bool) -> None:
    """Auto's labels of the ten datasets without worker names, beside each of its stories alone and majority vote."""
    report = Report('Labels of cp.fit("auto") without worker names')
    frame = pd.DataFrame({name: measure_unnamed(name) for name in DATASETS}).T
    frame.loc["mean"] = frame.mean()
    for what in MEASURES:
        shown = {name.removesuffix(f", {what}"): frame[name] for name in frame if name.endswith(f", {what}")}
        report.table(what, [{"dataset": str(name), **row} for name, row in pd.DataFrame(shown).iterrows()])
    report.note(
        f"By EM, one setting, and no gold label in view; auto took {frame.loc['mean', 'seconds']:.1f} s in the mean, "
        "with what it compiles."
    )
    if write:
        report.write()


def measure_unnamed(name: str) -> dict[str, float]:
    """Scores on one dataset without worker names, and the seconds that auto took."""
    annotations, gold = given(name)
    annotations = annotations.replace(worker=None)
    began = time.perf_counter()
    stack = cp.fit("auto", annotations, progress=False)
    seconds = time.perf_counter() - began
    found = {
        AUTO: stack.probabilities,
        "auto, votes=0": cp.stack(stack.fits, weights=stack.weights).probabilities,
        **{story: stack.fits[story].probabilities for story in DEFAULT_SET_UNNAMED},
        MAJORITY: in_frame(shares_of_votes(annotations), annotations),
    }
    scores = {method: scored(probabilities, gold) for method, probabilities in found.items()}
    flat = {f"{method}, {what}": scores[method][what] for what in MEASURES for method in found}
    return flat | {"seconds": seconds}


def given(name: str) -> tuple[cp.Annotations, pd.Series]:
    """A dataset's annotations without its gold labels, and these by task."""
    annotations = cp.load_dataset(name)
    return annotations.without_gold(), gold_of(annotations)


def gold_of(annotations: cp.Annotations) -> pd.Series:
    """The classes of the tasks with a gold label, by task."""
    gold = pd.Series(np.asarray(annotations.gold), index=annotations.tasks.to_index("task"))
    classes = annotations.classes.to_index("class")
    return gold[gold >= 0].map(lambda at: classes[at])


def shares_of_votes(annotations: cp.Annotations) -> np.ndarray:
    """``(N, K)``; of a task without votes all classes are alike."""
    votes = np.asarray(annotations.votes(), dtype=float)
    n = votes.sum(1, keepdims=True)
    return np.where(n > 0, votes / np.where(n > 0, n, 1), 1 / votes.shape[1])


def in_frame(probabilities: np.ndarray, annotations: cp.Annotations) -> pd.DataFrame:
    """Tasks × classes."""
    tasks, classes = annotations.tasks.to_index("task"), annotations.classes.to_index("class")
    return pd.DataFrame(probabilities, index=tasks, columns=classes)


def scored(probabilities: pd.DataFrame, gold: pd.Series) -> dict[str, float]:
    """Accuracy, log-score and calibration error."""
    scores = cp.score(probabilities, gold)
    found = (accuracy(probabilities, gold), float(scores["log_score"]), float(scores["ece"]))
    return dict(zip(MEASURES, found, strict=True))


def compare_choices(report: Report) -> None:
    """What each choice of stories and of both shares reaches, and what the other datasets choose for each."""
    by_choice = {name: of_choices(name) for name in (*DATASETS, *FURTHER)}
    choices = list(itertools.product((*FIXED, *BY_PARTS), VOTES, MISLED))
    found = {
        measure: pd.DataFrame({name: {c: rows[c][measure] for c in choices} for name, rows in by_choice.items()})
        for measure in MEASURES
    }
    means = pd.concat(
        {
            f"{measure}, {label}": found[measure][list(names)].mean(axis=1)
            for measure in MEASURES
            for label, names in GROUPS
        },
        axis=1,
    )
    report.table(
        "Sets of stories with their weights, shares of the votes, and of misled tasks",
        [
            {"stories": stories, "votes": votes_text(votes), "misled": f"{misled:.2f}", **row}
            for (stories, votes, misled), row in zip(choices, means.to_dict("records"), strict=True)
        ],
    )
    rows = []
    for measure in ("log-score", "accuracy"):
        best = {name: choices[found[measure].drop(columns=name).mean(axis=1).to_numpy().argmax()] for name in by_choice}
        reached = {
            f"{what}, {label}": np.mean([by_choice[name][best[name]][what] for name in names])
            for what in MEASURES
            for label, names in GROUPS
        }
        distinct = sorted(
            {f"{stories} with {votes_text(votes)}, {misled:.2f}" for stories, votes, misled in best.values()}
        )
        rows.append({"chosen by": measure, "choices": "; ".join(distinct), **reached})
    report.table("Chosen for each dataset by the mean over the other sixteen", rows)
    report.note(
        "shared: Dawid and Skene's story with errors that workers share; shared or dawid_skene: weights within the two "
        "by the heights of their log-posteriors, as auto has them. votes: share of the votes of a task without "
        "annotations, and the number of annotations at which it is half of that."
    )


def votes_text(votes: Votes) -> str:
    """A choice of the votes' share in words."""
    return f"{votes.share:.2f}" + ("" if np.isinf(votes.half) else f", half at {votes.half:g}")


GROUPS = (("the ten", DATASETS), ("all", (*DATASETS, *FURTHER)))


def of_choices(name: str) -> dict[tuple[str, Votes, float], dict[str, float]]:
    """Scores on one dataset of each set of stories with each share of the votes and of misled tasks."""
    annotations, gold = given(name)
    fits = {
        story: cp.fit(**({"story": story, "sweeps": 0} | options), annotations=annotations, progress=False)
        for story, options in STORIES.items()
    }
    weights = FIXED | {
        label: weights_of_parts({story: fits[story].fitted for story in shares}, shares).to_dict()
        for label, shares in BY_PARTS.items()
    }
    found = {}
    for (label, own), votes, misled in itertools.product(weights.items(), VOTES, MISLED):
        stack = cp.stack({story: fits[story] for story in own}, weights=own, votes=votes.share, misled=misled)
        with mock.patch("crowdppl.inference.fitted.posterior.HALF", votes.half):
            found[label, votes, misled] = scored(stack.probabilities, gold)
    return found


def _with_means(frame: pd.DataFrame) -> list[dict[str, object]]:
    means = {f"mean of {label}": frame.loc[list(names)].mean() for label, names in GROUPS}
    rows = pd.concat([frame, pd.DataFrame(means).T])
    return [{"dataset": str(name), **row} for name, row in rows.iterrows()]


if __name__ == "__main__":
    typer.run(main)
