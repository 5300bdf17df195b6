"""Workers who counted as one worker in a fit, ``copies="one"``, or were left out of it, and what that leaves to say."""

import numpy as np
import pandas as pd

from ...data.description import count_text
from ...data.id_text import listing, n_shown, name_text
from .counted_groups import CountedGroup, stand_ins
from .fitted import Fitted
from .posterior import Posterior

SHOWN = 5  # groups, and workers of a group


def counted_groups(fit: Posterior | Fitted) -> list[CountedGroup]:
    """Return the groups of a fit, which its findings name; of an average those of the heaviest fit."""
    if isinstance(fit, Posterior) and not fit.members:
        return []
    fitted = fit.heaviest[1] if isinstance(fit, Posterior) else fit
    return fitted.counted_groups


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

    A member who had no annotations left has the scores of the one who has the group's annotations, and the number of
    those that it gave itself. The column, `group`, is "" for workers who count by themselves.
    """
    groups = counted_groups(fit)
    if not groups:
        return frame
    scores = frame.drop(columns="group", errors="ignore")
    workers = list(fit.source.workers)
    named = np.full(len(scores), "", dtype=object)
    given, counted = scores["annotations"].to_numpy(), fit.heaviest[1] if isinstance(fit, Posterior) else fit
    for group in groups:
        text = ", ".join(name_text(workers[j]) for j in group.workers.tolist())
        text += "" if group.question is None else f" on {group.question}"
        for j in group.workers.tolist():
            named[j] = "; ".join(filter(None, [named[j], text]))
    found = scores.iloc[stand_ins(groups, counted.annotations)].set_axis(scores.index)
    return found.assign(annotations=given, group=named)


def are_estimated(fit: Posterior | Fitted) -> np.ndarray:
    """Return a mask of the workers of whom a fit says more than the prior: all but those left out, ``(J,)``."""
    if isinstance(fit, Posterior) and not fit.members:
        return np.ones(fit.source.n_workers, bool)
    return ~are_left_out(fit.heaviest[1] if isinstance(fit, Posterior) else fit)


def are_left_out(fitted: Fitted) -> np.ndarray:
    """Return a mask of the workers whose annotations were left out of a fit, of whom it says the prior, ``(J,)``."""
    found = [each.values for each in fitted.findings if each.code == "constant_workers"]
    names: set[str] = set()
    for values in found:
        if values.get("left_out"):
            on = values.get("questions") or [None] * len(values["workers"])
            names |= {name_text(name) for name, asked in zip(values["workers"], on, strict=True) if asked is None}
            nothing = np.asarray(fitted.annotations.n_by_worker()) == 0  # is left of any question
            gone = {name_text(name) for name, none in zip(fitted.annotations.workers, nothing, strict=True) if none}
            names |= gone.intersection(map(name_text, values["workers"]))
    if not names:
        return np.zeros(fitted.source.n_workers, bool)
    return np.array([name_text(name) in names for name in fitted.source.workers], bool)
