"""The sections on what is labelled: data, labels, ranking, questions, the majority vote, and what to do next."""

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data import Annotations
from ...data.description import count_text
from ...data.gold import right_shares
from ...data.id_text import name_text
from ...data.questions import Units
from ..findings.facts import SURE, beside_votes
from ..findings.summary import certainty, class_frame
from ..fitted.decisions import expected_where_ordered
from ..fitted.intervals import INTERVAL
from ..fitted.item_ranking import beats, item_ranking, ranks_items
from ..fitted.next_annotations import next_annotations
from ..fitted.question_frame import class_rows, has_totals, question_frame, totals
from ..fitted.tasks import task_scores
from ..plots.ranking import plot_expected, plot_ranking
from ..plots.style import every
from ..plots.task_annotations import plot_annotations, plot_entropy
from ..scores.against_gold import with_gold
from .details import task_details
from .sections import Section, number, section
from .subject import Subject

ALL_TASKS = 2_000  # tasks up to which all labels are in the page
MOST_UNCERTAIN = 500  # labels that are in the page where there are more tasks
PROPOSED = 10  # annotations that are proposed
SHOWN_NOTE = "The majority vote is the class with the most annotations; where several have as many it is left out."
SHOWN_CLASSES = 6  # classes among the annotations of a task that are written out
MOST_ITEMS = 100  # that are listed
MOST_PAIRS = 12  # items whose probabilities of being better than each other are shown
MOST_TOTALS = 100  # tasks whose totals are listed
MOST_PANELS = 12  # questions whose expected scores are drawn
MOST_DIFFERING = 100  # tasks that are listed


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
    """By class, or by question and class, its share of annotations, mean probability and prevalence."""
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
    both = Markup("{} <small>{}</small>")
    runners_up = [both.format(names[k], number(q)) for k, q in zip(second, others.max(-1), strict=True)]
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
    if "better" in labels:
        frame.insert(list(frame.columns).index("probability"), "better", labels["better"].map(str).to_numpy()[shown])
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


def ranking_section(subject: Subject, interval: float = INTERVAL) -> Section | None:
    """Scores and ranks of what was compared, and who beats whom; None where the fit gives no scores."""
    source = subject.source
    if not ranks_items(source):
        return None
    items, pairs = item_ranking(source, interval), beats(source)
    items.index, pairs.index = items.index.map(str), pairs.index.map(str)
    n = len(items)
    return section(
        "ranking",
        "Ranking",
        n=n,
        interval=f"{interval:.0%}",
        n_parts=int(items["part"].max()) if "part" in items else 1,
        items=items.head(MOST_ITEMS),
        pairs=pairs.set_axis(pairs.columns.map(str), axis=1) if n <= MOST_PAIRS else None,
        files=[(every(n, "item"), items), ("Probability of being better than another", pairs)],
        drawn=lambda: plot_ranking(source, interval=interval),  # type: ignore[arg-type]
    )


def question_section(subject: Subject) -> Section | None:
    """Classes, agreement and certainty by question, and the tasks' totals; None where one question is asked."""
    source, annotations = subject.source, subject.annotations
    if not isinstance(annotations.tasks, Units):
        return None
    questions = question_frame(source)
    found = totals(source, seed=subject.seed) if has_totals(source) else None
    in_order = [name for name in annotations.questions if annotations.question_classes(name)[1].in_order]
    most = None if found is None else found.sort_values("total", ascending=False, kind="stable").head(MOST_TOTALS)
    return section(
        "questions",
        "Questions",
        sure=SURE,
        questions=questions,
        classes=classes(subject),
        totals=most,
        n_totals=0 if found is None else len(found),
        files=[(every(len(questions), "question"), questions)],
        files_of_totals=None if found is None else [(every(len(found), "total"), found), ("The greatest", most)],
        expected=(lambda: plot_expected(source)) if 0 < len(in_order) <= MOST_PANELS else None,
    )


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
        chance = right_shares(votes, found.gold)
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
