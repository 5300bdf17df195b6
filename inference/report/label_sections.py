"""The sections of the data, of the labels, and of what to ask next."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data import Annotations
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL
from ..fitted.next_annotations import next_annotations
from ..fitted.summary import certainty, summarise
from ..fitted.tasks import task_scores
from ..plots import plot_annotations, plot_entropy
from .html import Html, Section, facts, paragraph, section, tag, together
from .pictures import picture
from .subject import Subject
from .tables import number, table

ALL_TASKS = 2_000  # tasks up to which all labels are in the page
IN_DOUBT = 500  # of more tasks, those most in doubt
ASKED = 10  # annotations that are proposed
SHOWN_ANSWERS = 6  # different annotations to a task that are written out


def data_section(subject: Subject) -> Section:
    """How many tasks, workers and annotations there are, and how they are spread."""
    annotations = subject.annotations
    described = annotations.describe()
    described = described[~described.index.str.startswith("share of annotation ")]
    alpha = "Krippendorff’s alpha is 1 where all who annotated a task agree, and 0 where they agree as if by chance."
    return section(
        "data",
        "Data",
        facts(_facts(described)),
        paragraph(alpha, class_="note"),
        picture(lambda: plot_annotations(annotations), "Histograms of the annotations per task and worker"),
    )


def labels_section(subject: Subject) -> Section:
    """Classes, the doubt about labels, and the labels, those most in doubt first."""
    annotations = subject.annotations
    shown, said = _shown_labels(subject)
    notes = [
        "Entropy is the doubt about a label in nats: 0 where it is certain, "
        f"{np.log(annotations.n_classes):.2f} where all {annotations.n_classes} classes are as likely. "
        "The runner-up is the next most likely class, with its probability."
    ]
    if "ambiguity" in shown:
        notes.append(
            "Ambiguity is the doubt beyond what these workers leave about a task on average: high where good workers "
            "are split, so that the task is to blame; near 0 where doubt comes from who annotated. The surprise p is "
            "small where the annotations are stranger than the story expects."
        )
    return section(
        "labels",
        "Labels",
        paragraph(f"{certainty(subject.source)}. {said}"),
        picture(lambda: plot_entropy(subject.source), "Histogram of the labels’ entropy"),  # type: ignore[arg-type]
        table(classes(subject), "Classes: their share of the annotations and of the labels"),
        table(shown, "Labels, those most in doubt first", bars={"probability"}),
        *(paragraph(note, class_="note") for note in notes),
    )


def next_section(subject: Subject) -> Section:
    """Which tasks to ask again."""
    found = next_annotations(subject.lead[1], ASKED)
    useful = found[found["expected_gain"] > 0]
    said = (
        "One more annotation by a typical worker is expected to lower the doubt about a label most in these tasks. The "
        "expected gain is by how many nats; the entropy is the doubt now."
        if len(useful)
        else "Nowhere is one more annotation expected to lower the doubt about a label."
    )
    shown = useful.assign(task=useful["task"].map(str)).set_index("task")
    return section(
        "next",
        "What to ask next",
        paragraph(subject.of_lead, said),
        table(shown, "Tasks to ask again, the most worthwhile first") if len(useful) else None,
        paragraph(
            "More, or whom to ask: ", tag("code", "cp.next_annotations(fit, 100, workers=[…])"), ".", class_="note"
        ),
    )


def classes(subject: Subject) -> pd.DataFrame:
    """By class its share of the annotations and the labels, and what the story says of how common it is."""
    source, annotations = subject.source, subject.annotations
    votes = annotations.votes().sum(0)
    frame = pd.DataFrame(
        {"share_of_annotations": votes / votes.sum(), "share_of_labels": source.posterior.mean(0).astype(float)},
        index=pd.Index([str(name) for name in annotations.classes], name="class"),
    )
    if isinstance(source, Fitted):
        found = summarise(source, INTERVAL).tables["classes"]
        names = {"prevalence": "prevalence", "low": "prevalence_low", "high": "prevalence_high"}
        for name, column in names.items():
            if name in found:
                frame[column] = found[name].to_numpy(dtype=float)
    return frame


def _shown_labels(subject: Subject) -> tuple[pd.DataFrame, str]:
    """The labels that the page holds, the most doubtful first, and which these are in words."""
    source, annotations = subject.source, subject.annotations
    n = annotations.n_tasks
    labels = source.labels
    order = np.argsort(-labels["entropy"].to_numpy(), kind="stable")
    shown = order if n <= ALL_TASKS else order[:IN_DOUBT]
    said = (
        f"All {n:,} labels are below."
        if n <= ALL_TASKS
        else f"Below are the {IN_DOUBT:,} of {n:,} labels that are most in doubt; the others are in fit.labels, and in "
        "the labels.csv that the command crowdppl fit writes."
    )
    names = [str(name) for name in annotations.classes]
    p = source.posterior[shown].astype(float)
    best = p.argmax(-1)
    others = p.copy()
    others[np.arange(len(p)), best] = -1.0
    second = others.argmax(-1)
    tasks = pd.Index([str(task) for task in annotations.tasks.to_index()[shown]], name="task")
    runners_up = [_with_probability(names[k], q) for k, q in zip(second, others.max(-1), strict=True)]
    frame = pd.DataFrame(
        {
            "annotations": _answers(annotations, shown, names),
            "label": [names[k] for k in best],
            "probability": p[np.arange(len(p)), best],
            # of objects, as pandas would make text of markup
            "runner-up": pd.Series(runners_up, index=tasks, dtype=object),
            "entropy": labels["entropy"].to_numpy(dtype=float)[shown],
        },
        index=tasks,
    )
    if isinstance(source, Fitted):
        scores = task_scores(source, seed=subject.seed)
        frame["ambiguity"] = scores["ambiguity"].to_numpy(dtype=float)[shown]
        frame["surprise_p"] = scores["surprise_p"].to_numpy(dtype=float)[shown]
    if annotations.gold is not None:
        gold = np.asarray(annotations.gold)[shown]
        frame["gold"] = [names[k] if k >= 0 else None for k in gold]
        frame["as_gold"] = [bool(k == g) if g >= 0 else None for k, g in zip(best, gold, strict=True)]
    return frame, said


def _answers(annotations: Annotations, shown: np.ndarray, names: list[str]) -> list[str]:
    """The annotations to tasks, in words: cat ×3, dog."""
    votes = annotations.votes()[shown]
    found = []
    for row in votes:
        given = np.flatnonzero(row)
        given = given[np.argsort(-row[given], kind="stable")]
        words = [names[k] + (f" ×{row[k]:,}" if row[k] > 1 else "") for k in given[:SHOWN_ANSWERS]]
        more = f" and {len(given) - SHOWN_ANSWERS} others" if len(given) > SHOWN_ANSWERS else ""
        found.append(", ".join(words) + more if words else "none")
    return found


def _with_probability(name: str, probability: float) -> Html:
    return together([name, " ", tag("small", number(probability))])


def _facts(described: pd.Series) -> list[tuple[str, str]]:
    """Names and values of a description, with least, median and most of a number together."""
    found = []
    for name, value in described.items():
        head, comma, which = str(name).rpartition(", ")
        if not (comma and which in ("min", "median", "max") and f"{head}, min" in described):
            found.append((str(name), f"{value:.1%}" if str(name).startswith("share ") else _plain(value)))
        elif which == "median":
            least, most = (_plain(described[f"{head}, {side}"]) for side in ("min", "max"))
            found.append((head, f"median {_plain(value)}, {least} to {most}" if least != most else _plain(value)))
    return found


def _plain(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else number(value, 1 if isinstance(value, float) and abs(value) >= 2 else 3)
