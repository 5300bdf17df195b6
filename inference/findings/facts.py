"""Figures that summary, card and page have in common."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.id_text import listing, name_quoted
from ..fitted.by_batch import SURE as SURE
from ..sources.on_disk import Files
from .register import Labels

SHOWN = 4  # names of a group


def listed(names: Sequence[Hashable]) -> str:
    """Return names in words, the first :data:`SHOWN` of many."""
    return listing(names, SHOWN, name_quoted, last=" and ")


def certainty(of: Labels) -> np.ndarray:
    """Return the probability that each label is right, or on a long scale near it (:meth:`.Kind.near`), ``(N,)``."""
    annotations, posterior = of.annotations, np.asarray(of.posterior, float)
    found: np.ndarray = annotations.kind.certainty(posterior, annotations.question)
    return found


def n_sure(of: Labels) -> int:
    """Return the number of labels whose :func:`certainty` is at least :data:`SURE`."""
    return int((certainty(of) >= SURE).sum())


def sure_of_what(annotations: Annotations | Files) -> str:
    """Return what of a label is sure where a level beside it is as good; empty where none is.

    >>> import pandas as pd
    >>> frame = {"task": [1, 2], "worker": ["a", "a"], "label": [0, 9]}
    >>> sure_of_what(Annotations.from_frame(pd.DataFrame(frame), classes=range(10), ordered=True))
    ' that the label is at most one level off'
    """
    near = annotations.kind.near(annotations.n_classes)
    return f" that the label is at most {'one level' if near == 1 else f'{near} levels'} off" if near else ""


class BesideVotes(NamedTuple):
    """Labels beside the majority vote, ``(N,)`` each."""

    decided: np.ndarray  # whether a single class is the majority vote
    tied: np.ndarray  # whether several are
    differs: np.ndarray  # whether the label is another class than a decided vote


def beside_votes(of: Labels) -> BesideVotes:
    """Return how the labels compare with the majority vote of the annotations as they were given."""
    votes, kind = of.given.votes(), of.given.kind
    most, voted = kind.majority(votes) > 0, votes.sum(-1) > 0
    decided = voted & (most.sum(-1) == 1)
    return BesideVotes(decided, voted & ~decided, decided & ~most[np.arange(len(votes)), kind.label(of.posterior)])
