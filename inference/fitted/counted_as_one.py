"""Groups of workers of whom each counted as one worker in a fit, ``copies="one"``, and what that leaves to say."""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.description import count_text
from ...data.id_text import listing, n_shown, name_text, places_of
from .fitted import Fitted
from .posterior import Posterior

SHOWN = 5  # groups, and workers of a group


class CountedGroup(NamedTuple):
    """Workers who counted as one."""

    workers: np.ndarray  # their positions
    by: int  # position of the one who has the group's annotations
    n: int  # how many these are
    question: Hashable = None  # where they counted as one; None for everywhere


def counted_groups(fit: Posterior | Fitted) -> list[CountedGroup]:
    """Return the groups of a fit, which its findings name; of an average those of the heaviest fit."""
    if isinstance(fit, Posterior) and not fit.members:
        return []
    fitted = fit.heaviest[1] if isinstance(fit, Posterior) else fit
    told = [one for finding in fitted.findings for one in finding.values.get("as_one", ())]
    return [_group(fitted.annotations, one["workers"], one.get("question")) for one in told]


def _group(annotations: Annotations, names: list[object], question: Hashable) -> CountedGroup:
    workers = np.array(places_of(names, annotations.workers))
    asked = annotations if question is None else annotations.of_question(question)
    given = asked.n_by_worker()[workers]
    return CountedGroup(workers, int(workers[given.argmax()]), int(given.max()), question)


def groups_text(fit: Posterior | Fitted) -> str:
    """Return in words who counted as one worker, on how many annotations, and where; "" where nobody did."""
    groups, workers = counted_groups(fit), list(fit.source.workers)
    if not groups:
        return ""
    said = []
    for group in groups[: n_shown(len(groups), SHOWN)]:
        names = [name_text(workers[j]) for j in group.workers.tolist()]
        where = "" if group.question is None else f" on question {group.question!r}"
        said.append(
            f"{listing(names, SHOWN, str)} as {name_text(workers[group.by])}{where}, with "
            f"{count_text(group.n, 'annotation')}"
        )
    n_left = len(groups) - len(said)
    left = f"; and so {count_text(n_left, 'other group')}" if n_left else ""
    return f"{count_text(len(groups), 'group')} of workers counted as one worker each: {'; '.join(said)}{left}"


def with_groups(frame: pd.DataFrame, fit: Posterior | Fitted) -> pd.DataFrame:
    """Return scores by worker with a column that names the group of those who counted as one; as it is without any.

    A member without annotations, who had none left, has the scores of the one who has the group's annotations. The
    column, `group`, is "" for workers who count by themselves.
    """
    groups = counted_groups(fit)
    if not groups:
        return frame
    scores = frame.drop(columns="group", errors="ignore")
    source, workers = np.arange(len(scores)), list(fit.source.workers)
    named = np.full(len(scores), "", dtype=object)
    given = scores["annotations"].to_numpy()
    for group in groups:
        source[group.workers[given[group.workers] == 0]] = group.by
        text = ", ".join(name_text(workers[j]) for j in group.workers.tolist())
        text += "" if group.question is None else f" on {group.question}"
        for j in group.workers.tolist():
            named[j] = "; ".join(filter(None, [named[j], text]))
    found = scores.iloc[source].set_axis(scores.index)
    return found.assign(annotations=given, group=named)
