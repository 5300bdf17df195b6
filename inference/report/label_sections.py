"""The sections on the data, on the labels, and on what to annotate next."""

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data import Annotations
from ...data.description import count_text
from ...data.id_text import name_text
from ..findings.summary import certainty, class_frame
from ..fitted.expected_scores import expected_where_ordered
from ..fitted.next_annotations import next_annotations
from ..fitted.question_frame import class_rows
from ..fitted.tasks import task_scores
from ..plots.ranking import plot_expected
from ..plots.style import every
from ..plots.task_annotations import plot_annotations, plot_entropy
from .details import task_details
from .sections import Section, section
from .subject import Subject
from .tables import number

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
    return section("data", "Data", facts=_facts(described), histograms=lambda: plot_annotations(annotations))


def labels_section(subject: Subject) -> Section:
    """Classes, a histogram of the labels' entropy, and the labels, the most uncertain first."""
    annotations = subject.annotations
    frame = _labels(subject)
    n, order = len(frame), np.argsort(-frame["entropy"].to_numpy(), kind="stable")
    at = order if n <= ALL_TASKS else order[:MOST_UNCERTAIN]
    shown = _shown_labels(subject, at)
    accuracies = None if subject.scores is None else subject.scores["accuracy"]
    several = bool(len(annotations.questions))
    is_ordered = annotations.kind.in_order and not several
    asked = [annotations.question_classes(name)[0] for name in annotations.questions]
    most_classes = max(map(len, asked), default=annotations.n_classes)
    files = [(every(n, "label"), _with_probabilities(subject, frame))]
    files.append((f"{every(n, 'label')}, without the classes’ probabilities", frame))
    files.append((f"{every(n, 'label')}, with nothing but the probability", frame[["label", "probability"]]))
    files.append((f"{len(at):,} of {count_text(n, 'label')}, the most uncertain", frame.iloc[at]))
    return section(
        "labels",
        "Labels",
        certainty=certainty(subject.source),
        n=n,
        everything=n <= ALL_TASKS,
        files=files,
        shown=shown,
        details=task_details(subject, at, accuracies, frame),
        n_classes=most_classes,
        most_entropy=np.log(most_classes),
        majority_note=SHOWN_NOTE,
        has_ambiguity="ambiguity" in frame,
        entropies=lambda: plot_entropy(subject.source),  # type: ignore[arg-type]
        expected=(lambda: plot_expected(subject.source)) if is_ordered else None,  # type: ignore[arg-type]
        classes=None if several else classes(subject),
    )


def next_section(subject: Subject) -> Section:
    """Tasks where one more annotation lowers the entropy of the label the most."""
    found = next_annotations(subject.lead[1], PROPOSED)
    useful = found[found["expected_gain"] > 0]
    shown = useful.assign(task=useful["task"].map(name_text)).set_index("task")
    return section("next", "What to annotate next", of_lead=subject.of_lead, useful=shown)


def classes(subject: Subject) -> pd.DataFrame:
    """By class, of several questions by question and class, its share of annotations and labels, and its prevalence."""
    source, annotations = subject.source, subject.annotations
    frame = class_frame(source if source.only is None else source.only)
    names = {"prevalence": "prevalence", "low": "prevalence_low", "high": "prevalence_high"}
    frame = frame.rename(columns=names)
    frame.insert(0, "share_of_annotations", class_rows(annotations).shares(annotations.votes()))
    levels = [frame.index.get_level_values(level).map(str) for level in range(frame.index.nlevels)]
    index = pd.MultiIndex.from_arrays(levels) if len(levels) > 1 else levels[0]
    return frame.set_axis(index.set_names(frame.index.names), axis=0)


def _labels(subject: Subject) -> pd.DataFrame:
    """All labels, as they are downloaded, with majority vote and gold label."""
    source, annotations = subject.source, subject.annotations
    names = [str(name) for name in annotations.classes]
    frame = source.labels
    frame = frame.set_axis(frame.index.map(name_text).rename("task"), axis=0)
    frame["label"] = [str(name) for name in frame["label"]]
    frame["majority_vote"] = _majorities(annotations, np.arange(len(frame)), names)
    if annotations.gold is not None:
        frame["gold"] = gold_names(annotations, np.arange(len(frame)))
    if source.only is not None:
        scores = task_scores(source, seed=subject.seed)
        frame["ambiguity"] = scores["ambiguity"].to_numpy(dtype=float)
        frame["surprise_p"] = scores["surprise_p"].to_numpy(dtype=float)
    return frame


def _with_probabilities(subject: Subject, labels: pd.DataFrame) -> pd.DataFrame:
    """The labels with their expected scores, where there are any, and a column for the probability of each class."""
    names = [f"p_{name}" for name in subject.annotations.classes]
    probabilities = pd.DataFrame(subject.source.posterior.astype(float), index=labels.index, columns=names)
    expected = expected_where_ordered(subject.source.probabilities, subject.annotations.kind).set_axis(labels.index)
    return pd.concat([labels, expected, probabilities], axis=1)


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
    tasks = task_names(annotations, shown)
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
        frame.insert(after, "gold", gold_names(annotations, shown))
        frame.insert(after + 1, "right", right)
    frame.insert(list(frame.columns).index("runner-up"), "majority_vote", _majorities(annotations, shown, names))
    return frame


def given_in_words(annotations: Annotations, shown: np.ndarray) -> list[str]:
    """The annotations of each task in words, such as "cat ×3, dog", in the order of their kind.

    Args:
        annotations: the data.
        shown: positions of the tasks.
    """
    names = [str(name) for name in annotations.categories]
    votes = annotations.counts_by_kind()[shown]
    found = []
    for row in votes:
        n_given = int(np.count_nonzero(row))
        given = annotations.kind.shown(row, min(n_given, SHOWN_CLASSES))
        words = [names[k] + (f" ×{row[k]:,}" if row[k] > 1 else "") for k in given]
        more = f" and {n_given - SHOWN_CLASSES} others" if n_given > SHOWN_CLASSES else ""
        found.append(", ".join(words) + more if words else "none")
    return found


def task_names(annotations: Annotations, shown: np.ndarray) -> pd.Index:
    """The tasks at these positions, as text."""
    return pd.Index([name_text(task) for task in annotations.tasks.to_index()[shown]], name="task")


def gold_names(annotations: Annotations, shown: np.ndarray) -> list[str | None]:
    """The gold labels of the tasks at these positions, as text; None where there are none."""
    names = [str(name) for name in annotations.classes]
    return [names[k] if k >= 0 else None for k in np.asarray(annotations.gold)[shown]]


def _majorities(annotations: Annotations, shown: np.ndarray, names: list[str]) -> list[str | None]:
    """The class with the most annotations of each task; None where several have as many, or there are none."""
    votes = annotations.votes()[shown]
    only = (votes == votes.max(-1, keepdims=True)).sum(-1) == 1
    return [names[k] if one else None for k, one in zip(votes.argmax(-1), only, strict=True)]


def _with_probability(name: str, probability: float) -> Markup:
    return Markup("{} <small>{}</small>").format(name, number(probability))


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
