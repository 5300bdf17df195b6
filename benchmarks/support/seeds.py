"""Figures of several seeds in a cell of a table."""

import numpy as np

import crowdppl as cp


def with_error(values: np.ndarray, digits: int) -> str:
    """The mean ± its standard error; a dash where there are no values."""
    return _cell(values, digits, np.std(values, ddof=1) / np.sqrt(len(values)))


def with_deviation(values: np.ndarray, digits: int) -> str:
    """The mean ± the standard deviation; a dash where there are no values."""
    return _cell(values, digits, np.std(values, ddof=1))


def target(
    what: str, values: np.ndarray, digits: int, *, least: float = -np.inf, most: float = np.inf
) -> dict[str, object]:
    """A row of what was to be reached: the mean of some values ± its standard error, beside its bounds."""
    bounds = {"≥": least, "≤": most}
    wanted = " and ".join(f"{sign} {bound:.{digits}f}" for sign, bound in bounds.items() if np.isfinite(bound))
    reached = bool(least <= np.mean(values) <= most)
    return {"what": what, "measured": with_error(values, digits), "target": wanted, "reached": reached}


def majority(annotations: cp.Annotations) -> dict:
    """The most frequent label of each task that has annotations, by task; ties for the first class."""
    votes = annotations.votes()
    annotated = votes.sum(-1) > 0
    tasks, classes = list(annotations.tasks), list(annotations.classes)
    return {tasks[i]: classes[votes[i].argmax()] for i in np.flatnonzero(annotated)}


def _cell(values: np.ndarray, digits: int, spread: float) -> str:
    return f"{np.mean(values):.{digits}f} ± {spread:.{digits}f}" if np.isfinite(values).all() else "–"
