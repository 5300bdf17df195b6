"""The section on the majority vote beside the labels."""

import numpy as np
import pandas as pd

from ..findings.facts import beside_votes
from ..scores.against_gold import with_gold
from .label_sections import SHOWN_NOTE, given_in_words, gold_names, task_names
from .sections import Section, section
from .subject import Subject

MOST_DIFFERING = 100  # tasks that are listed


def votes_section(subject: Subject) -> Section:
    """On how many tasks label and majority vote are the same, which is right more often, and where they differ."""
    differing = int(beside_votes(subject.source).differs.sum())
    return section(
        "votes",
        "Majority vote beside the labels",
        differing=differing,
        n_tasks=subject.annotations.n_tasks,
        sides=_sides(subject),
        where=_where(subject) if differing else None,
        majority_note=SHOWN_NOTE,
    )


def _sides(subject: Subject) -> pd.DataFrame:
    """Numbers of tasks where label and vote are the same, differ, and where there is no majority."""
    source, annotations = subject.source, subject.annotations
    votes = annotations.votes()
    one, tied, other = beside_votes(source)
    kinds = {"the label’s class": one & ~other, "another class": other, "tied": tied}
    kinds["no annotation of a class"] = votes.sum(-1) == 0
    kinds = {name: which for name, which in kinds.items() if which.any()}
    frame = pd.DataFrame({"tasks": {name: int(which.sum()) for name, which in kinds.items()}})
    if annotations.gold is not None:
        found = with_gold(source)
        scored = (found.gold >= 0) & ~found.gold_used
        best = votes == votes.max(-1, keepdims=True)
        chance = best[np.arange(len(best)), found.gold] / best.sum(-1)
        right = annotations.kind.label(source.posterior) == found.gold
        rows = {name: which & scored for name, which in kinds.items()}
        frame["gold_tasks"] = [int(which.sum()) for which in rows.values()]
        frame["labels_right"] = [int(right[which].sum()) for which in rows.values()]
        right_votes = np.array([round(float(chance[which].sum()), 1) for which in rows.values()])
        frame["votes_right"] = right_votes.astype(int) if (right_votes % 1 == 0).all() else right_votes
    return frame.rename_axis("majority vote")


def _where(subject: Subject) -> pd.DataFrame:
    """The tasks where label and majority vote differ, the most probable labels first."""
    source, annotations = subject.source, subject.annotations
    names = [str(name) for name in annotations.classes]
    at = np.flatnonzero(beside_votes(source).differs)
    probability = source.posterior.max(-1)
    at = at[np.argsort(-probability[at], kind="stable")][:MOST_DIFFERING]
    labels, votes = annotations.kind.label(source.posterior)[at], annotations.votes().argmax(-1)[at]
    frame = pd.DataFrame(
        {
            "annotations": given_in_words(annotations, at),
            "majority_vote": [names[k] for k in votes],
            "label": [names[k] for k in labels],
            "probability": probability[at].astype(float),
        },
        index=task_names(annotations, at),
    )
    if annotations.gold is not None:
        gold = np.asarray(annotations.gold)[at]
        frame["gold"] = gold_names(annotations, at)
        frame["right"] = [
            None if g < 0 else "label" if g == label else "majority vote" if g == vote else "neither"
            for g, label, vote in zip(gold, labels, votes, strict=True)
        ]
    return frame
