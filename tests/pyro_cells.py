"""Every story with every part that goes over any story, for the tests that hold Pyro to NumPyro."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crowdppl import Annotations
from crowdppl.models import STORIES, Classifier, CorrelatedQuestions

N_TASKS, N_WORKERS, EACH = 30, 6, 5


class Cell(NamedTuple):
    """A story with a part: options of ``cp.fit``, and what the annotations have to bring."""

    story: str
    part: str
    options: dict[str, Any]
    has: tuple[str, ...] = ()  # of ``abstentions``, ``questions``, ``features``

    @property
    def name(self) -> str:
        return f"{self.story}, {self.part}"

    @property
    def refusal(self) -> str | None:
        """What the story says where it refuses the part; None where it takes it."""
        found = (
            said for option, (stories, said) in REFUSED.items() if option in self.options and self.story in stories
        )
        return next(found, None)


def probabilities(n_tasks: int) -> np.ndarray:
    """A model's of two classes, which are right of three tasks in four."""
    rng = np.random.default_rng(3)
    right = np.where(rng.random(n_tasks) < 0.75, np.arange(n_tasks) % 2, 1 - np.arange(n_tasks) % 2)
    sure = rng.uniform(0.6, 0.9, n_tasks)
    return np.stack([np.where(right == k, sure, 1 - sure) for k in range(2)], 1)


PARTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "alone": ({}, ()),
    "shared errors": ({"shared_error": True}, ()),
    "difficulty of tasks": ({"task_difficulty": True}, ()),
    "abstentions": ({}, ("abstentions",)),
    "models' probabilities": ({"probabilities": probabilities(N_TASKS)}, ()),
    "a classifier with a prior": ({"classifier": Classifier("logistic", prior=1.0)}, ("features",)),
    "correlated questions": ({"truth_prior": CorrelatedQuestions(2)}, ("questions",)),
    "pooled questions": ({"quality": "pooled"}, ("questions",)),
}
"""By name: options of ``cp.fit``, and what the annotations bring."""

DEPENDENT = ("independent_confusion_subtypes", "score_factor")
"""Stories whose annotations of a task depend on each other."""

REFUSED = {
    "shared_error": (DEPENDENT, "leave shared_error out"),
    "quality": (DEPENDENT, "give quality='by_question'"),
    "truth_prior": (("difficulty", "annotator_groups"), "needs the probabilities of one truth without the others"),
}
"""By option of a part: stories that refuse it in either language, and what the sentence says."""

TOGETHER = ("shared errors", "difficulty of tasks", "abstentions", "models' probabilities")
"""Parts that are also tried all at once."""

CELLS = [Cell(story, part, *PARTS[part]) for part in PARTS for story in STORIES]
ALL_AT_ONCE = [
    Cell(
        story,
        "several parts",
        {name: value for part in TOGETHER for name, value in PARTS[part][0].items()},
        ("abstentions",),
    )
    for story in STORIES
]


def table() -> list[str]:
    """What tests hold of Pyro, as lines of Markdown: how many stories with each part, and by which engines."""
    lines = ["| over the story | stories | EM: density and labels to 1e-5 | SVI | NUTS |", "|---|---|---|---|---|"]
    for part in PARTS:
        n = sum(cell.part == part and cell.refusal is None for cell in CELLS)
        runs = "with the others of these" if part in TOGETHER else "slow test"
        lines.append(f"| {part} | {n} | yes | {runs} | {runs} |")
    return lines


def annotations_for(cell: Cell) -> Annotations:
    """Two classes, alternating, five annotations a task of six workers of whom one errs often."""
    rng = np.random.default_rng(0)
    truth = np.arange(N_TASKS) % 2
    right = np.array([0.9, 0.85, 0.9, 0.8, 0.85, 0.4])
    rows = [(i, j) for i in range(N_TASKS) for j in rng.choice(N_WORKERS, EACH, replace=False)]
    label = [truth[i] if rng.random() < right[j] else 1 - truth[i] for i, j in rows]
    frame = pd.DataFrame(rows, columns=["task", "worker"]).assign(label=label)
    options: dict[str, Any] = {"gold": dict(enumerate(truth.tolist()))}
    if "questions" in cell.has:
        frame = frame.assign(question=np.where(frame["task"] < N_TASKS // 2, "a", "b"))
        frame["task"] %= N_TASKS // 2
        options = {"question": "question"}
    if "abstentions" in cell.has:
        frame["label"] = frame["label"].astype(str)
        frame.loc[::7, "label"] = "none"
        options = {"abstain": ["none"], "gold": {i: str(k) for i, k in enumerate(truth.tolist())}}
    if "features" in cell.has:
        x = rng.normal(size=(N_TASKS, 2)) + 2 * (2 * truth[:, None] - 1)
        options["features"] = dict(enumerate(x))
    return Annotations.from_frame(frame, **options)
