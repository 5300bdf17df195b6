"""The sections on the data, on the labels, and on what to annotate next."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data import Annotations
from ..fitted.fitted import Fitted
from ..fitted.next_annotations import next_annotations
from ..fitted.summary import certainty
from ..fitted.tasks import task_scores
from ..plots import plot_annotations, plot_entropy
from ..plots.style import counted, every
from .details import task_details
from .downloads import download
from .html import Html, Section, facts, paragraph, section, tag, together
from .pictures import picture
from .subject import Subject
from .tables import number, table

ALL_TASKS = 2_000  # tasks up to which all labels are in the page
MOST_UNCERTAIN = 500  # labels that are in the page where there are more tasks
PROPOSED = 10  # annotations that are proposed
SHOWN_NOTE = "The majority vote is the class with the most annotations; where several have as many it is left out."
SHOWN_CLASSES = 6  # classes among the annotations of a task that are written out


def data_section(subject: Subject) -> Section:
    """Numbers of tasks, workers and annotations, and their histograms."""
    annotations = subject.annotations
    described = annotations.describe()
    described = described[~described.index.str.startswith("share of annotation ")]
    alpha = (
        "Krippendorff’s alpha is 1 where all workers agree on every task, and 0 where they agree as often as by chance."
    )
    return section(
        "data",
        "Data",
        facts(_facts(described)),
        paragraph(alpha, class_="note"),
        picture(lambda: plot_annotations(annotations), "Histograms of the annotations per task and worker"),
    )


def labels_section(subject: Subject) -> Section:
    """Classes, a histogram of the labels' entropy, and the labels, the most uncertain first."""
    annotations = subject.annotations
    frame = _labels(subject)
    n, order = len(frame), np.argsort(-frame["entropy"].to_numpy(), kind="stable")
    at = order if n <= ALL_TASKS else order[:MOST_UNCERTAIN]
    shown = _shown_labels(subject, at)
    said = (
        f"The table has {every(n, 'label')}."
        if n <= ALL_TASKS
        else f"The table has the {MOST_UNCERTAIN:,} of {n:,} labels that are most uncertain; fit.labels, and the file "
        "labels.csv that the command crowdppl fit writes, have all."
    )
    accuracies = None if subject.scores is None else subject.scores["accuracy"]
    files = [(every(n, "label"), _with_probabilities(subject, frame))]
    files.append((f"{every(n, 'label')}, without the classes’ probabilities", frame))
    files.append((f"{every(n, 'label')}, with nothing but the probability", frame[["label", "probability"]]))
    files.append((f"{len(at):,} of {counted(n, 'label')}, the most uncertain", frame.iloc[at]))
    notes = [
        "Entropy is the uncertainty of a label in nats: 0 where the label is certain, "
        f"{np.log(annotations.n_classes):.2f} where all {annotations.n_classes} classes are equally probable. "
        "The runner-up is the second most probable class, with its probability."
    ]
    notes.append(SHOWN_NOTE)
    if "ambiguity" in frame:
        notes.append(
            "A click on a task shows ambiguity and surprise, too. Ambiguity is the entropy beyond what the same "
            "workers leave on average: it is high where accurate workers disagree, which speaks for an ambiguous task, "
            "and near 0 where the uncertainty comes from the workers. Surprise p is small where the annotations are "
            "less probable than those that the story replicates."
        )
    return section(
        "labels",
        "Labels",
        paragraph(f"{_capital(certainty(subject.source))}. {said}"),
        download("labels", files),
        table(
            shown,
            "Labels, the most uncertain first",
            bars={"probability"},
            details=task_details(subject, at, accuracies, frame),
        ),
        *(paragraph(note, class_="note") for note in notes),
        picture(lambda: plot_entropy(subject.source), "Histogram of the labels’ entropy"),  # type: ignore[arg-type]
        table(classes(subject), "Classes: their shares of the annotations and of the labels"),
    )


def next_section(subject: Subject) -> Section:
    """Tasks where one more annotation lowers the entropy of the label the most."""
    found = next_annotations(subject.lead[1], PROPOSED)
    useful = found[found["expected_gain"] > 0]
    said = (
        "For these tasks one more annotation, by a typical worker, is expected to lower the entropy of the label the "
        "most. Expected gain is by how many nats; entropy is the label’s now."
        if len(useful)
        else "For no task is one more annotation expected to lower the entropy of the label."
    )
    shown = useful.assign(task=useful["task"].map(str)).set_index("task")
    return section(
        "next",
        "What to annotate next",
        paragraph(subject.of_lead, said),
        table(shown, "Tasks to annotate again, the greatest expected gain first") if len(useful) else None,
        paragraph(
            "For more tasks, or for given workers: ",
            tag("code", "cp.next_annotations(fit, 100, workers=[…])"),
            ".",
            class_="note",
        ),
    )


def classes(subject: Subject) -> pd.DataFrame:
    """By class its share of the annotations, its share of the labels, and its prevalence where the story has one."""
    source, annotations = subject.source, subject.annotations
    votes = annotations.votes().sum(0)
    frame = pd.DataFrame(
        {
            "share_of_annotations": votes / max(votes.sum(), 1),
            "share_of_labels": source.posterior.mean(0).astype(float),
        },
        index=pd.Index([str(name) for name in annotations.classes], name="class"),
    )
    if isinstance(source, Fitted):
        found = subject.summary.tables["classes"]
        names = {"prevalence": "prevalence", "low": "prevalence_low", "high": "prevalence_high"}
        for name, column in names.items():
            if name in found:
                frame[column] = found[name].to_numpy(dtype=float)
    return frame


def _labels(subject: Subject) -> pd.DataFrame:
    """All labels, as they are downloaded, with majority vote and gold label."""
    source, annotations = subject.source, subject.annotations
    names = [str(name) for name in annotations.classes]
    frame = source.labels
    frame = frame.set_axis(frame.index.map(str).rename("task"), axis=0)
    frame["label"] = [str(name) for name in frame["label"]]
    frame["majority_vote"] = _majorities(annotations, np.arange(len(frame)), names)
    if annotations.gold is not None:
        frame["gold"] = [names[k] if k >= 0 else None for k in np.asarray(annotations.gold)]
    if isinstance(source, Fitted):
        scores = task_scores(source, seed=subject.seed)
        frame["ambiguity"] = scores["ambiguity"].to_numpy(dtype=float)
        frame["surprise_p"] = scores["surprise_p"].to_numpy(dtype=float)
    return frame


def _with_probabilities(subject: Subject, labels: pd.DataFrame) -> pd.DataFrame:
    """The labels with a column for the probability of each class."""
    names = [f"p_{name}" for name in subject.annotations.classes]
    probabilities = pd.DataFrame(subject.source.posterior.astype(float), index=labels.index, columns=names)
    return pd.concat([labels, probabilities], axis=1)


def _shown_labels(subject: Subject, shown: np.ndarray) -> pd.DataFrame:
    """The labels of the tasks at these positions, as the page shows them."""
    source, annotations = subject.source, subject.annotations
    labels = source.labels
    names = [str(name) for name in annotations.classes]
    p = source.posterior[shown].astype(float)
    best = annotations.kind.label(p)
    others = p.copy()
    others[np.arange(len(p)), best] = -1.0
    second = others.argmax(-1)
    tasks = pd.Index([str(task) for task in annotations.tasks.to_index()[shown]], name="task")
    runners_up = [_with_probability(names[k], q) for k, q in zip(second, others.max(-1), strict=True)]
    frame = pd.DataFrame(
        {
            "annotations": given_in_words(annotations, shown),
            "label": [names[k] for k in best],
            "probability": p[np.arange(len(p)), best],
            # of objects, as pandas would make text of markup
            "runner-up": pd.Series(runners_up, index=tasks, dtype=object),
            "entropy": labels["entropy"].to_numpy(dtype=float)[shown],
        },
        index=tasks,
    )
    if annotations.gold is not None:
        gold = np.asarray(annotations.gold)[shown]
        right = [bool(k == g) if g >= 0 else None for k, g in zip(best, gold, strict=True)]
        after = list(frame.columns).index("probability") + 1
        frame.insert(after, "gold", [names[k] if k >= 0 else None for k in gold])
        frame.insert(after + 1, "right", right)
    frame.insert(list(frame.columns).index("runner-up"), "majority_vote", _majorities(annotations, shown, names))
    return frame


def given_in_words(annotations: Annotations, shown: np.ndarray) -> list[str]:
    """The annotations of each task in words, such as "cat ×3, dog".

    Args:
        annotations: the data.
        shown: positions of the tasks.
    """
    names = [str(name) for name in annotations.kinds]
    votes = annotations.counts_by_kind()[shown]
    found = []
    for row in votes:
        given = np.flatnonzero(row)
        given = given[np.argsort(-row[given], kind="stable")]
        words = [names[k] + (f" ×{row[k]:,}" if row[k] > 1 else "") for k in given[:SHOWN_CLASSES]]
        more = f" and {len(given) - SHOWN_CLASSES} others" if len(given) > SHOWN_CLASSES else ""
        found.append(", ".join(words) + more if words else "none")
    return found


def _majorities(annotations: Annotations, shown: np.ndarray, names: list[str]) -> list[str | None]:
    """The class with the most annotations of each task; None where several have as many, or there are none."""
    votes = annotations.votes()[shown]
    only = (votes == votes.max(-1, keepdims=True)).sum(-1) == 1
    return [names[k] if one else None for k, one in zip(votes.argmax(-1), only, strict=True)]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _with_probability(name: str, probability: float) -> Html:
    return together([name, " ", tag("small", number(probability))])


def _facts(described: pd.Series) -> list[tuple[str, str]]:
    """Names and values of a description, with minimum, median and maximum of a number together."""
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
