"""Abstentions in weak supervision and in judging by language models: accuracy and log-score of auto and every story."""

import warnings

import numpy as np
import typer
from support.report import Report

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data.majority import majority_accuracy
from crowdppl.models import STORIES

DATASETS = ("ws_youtube", "ws_sms", "judges_llmbar")
LEFT_OUT = ("difficulty",)  # which takes difficulties from votes that most tasks do not have
KINDS = ("informative", "uninformative")


def main(write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        write: refresh this section of RESULTS.md.
    """
    report = Report("Abstentions: annotations that are no class")
    for name in DATASETS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tasks and workers with nothing but abstentions
            annotations = cp.load_dataset(name)
        share = float((annotations.label >= annotations.n_classes).mean())
        report.table(f"{name}: {share:.1%} abstentions", rows(annotations))
    report.note(
        "Accuracy in percent and mean log-score of the gold label (probabilities from 10⁻⁶), by EM with the defaults. "
        "Uninformative abstentions are as if they had been left out. Majority vote: of classes, ties at random, its "
        "probabilities are the shares of the votes, even where a task has none. The prior of the rates of abstention "
        "was chosen with the gold labels of ws_sms and ws_youtube in view."
    )
    if write:
        report.write()


def rows(annotations: cp.Annotations) -> list[dict[str, object]]:
    """A row for the majority vote and for each story."""
    votes, gold = annotations.votes(), np.asarray(annotations.gold)
    total = votes.sum(1, keepdims=True)
    shares = np.where(total > 0, votes / np.maximum(total, 1), 1 / annotations.n_classes)
    vote = f"{100 * majority_accuracy(votes, gold):.1f} ({_log_score(shares, gold):.2f})"
    found: list[dict[str, object]] = [{"story": "majority vote", KINDS[0]: vote, KINDS[1]: vote}]
    for story in ("auto", *STORIES):
        if story not in LEFT_OUT:
            found.append({"story": story} | {kind: _scores(story, annotations, kind) for kind in KINDS})
    return found


def _scores(story: str, annotations: cp.Annotations, kind: str) -> str:
    """Accuracy and log-score of a story's labels; a dash where it does not fit the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = cp.fit(story, annotations.without_gold(), abstentions=kind, progress=False)
    except StoryError:
        return "–"
    gold, p = np.asarray(annotations.gold), fit.probabilities.to_numpy()
    known = gold >= 0
    return f"{100 * (p.argmax(-1) == gold)[known].mean():.1f} ({_log_score(p, gold):.2f})"


def _log_score(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Mean log-probability of the gold labels, in nats."""
    known = np.flatnonzero(gold >= 0)
    return float(np.log(np.maximum(probabilities[known, gold[known]], 1e-6)).mean())


if __name__ == "__main__":
    typer.run(main)
