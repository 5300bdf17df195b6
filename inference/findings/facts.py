"""Figures that summary, card and page have in common."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from ...data.id_text import name_quoted
from ..fitted.by_batch import SURE as SURE
from .register import Labels

SHOWN = 4  # names of a group


def listed(names: Sequence[Hashable]) -> str:
    """Return names in words, the first :data:`SHOWN` of many."""
    n_left = len(names) - SHOWN
    shown = [*map(name_quoted, names[:SHOWN]), *([f"{n_left:,} more"] if n_left > 0 else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def n_sure(posterior: np.ndarray) -> int:
    """Return the number of labels of a probability of at least :data:`SURE`, from ``(N, K)``."""
    return int((posterior.max(-1, initial=0.0) >= SURE).sum())


class BesideVotes(NamedTuple):
    """Labels beside the majority vote, ``(N,)`` each."""

    decided: np.ndarray  # whether a single class is the majority vote
    tied: np.ndarray  # whether several are
    differs: np.ndarray  # whether the label is another class than a decided vote


def beside_votes(of: Labels) -> BesideVotes:
    """Return how the labels compare with the majority vote."""
    votes, kind = of.annotations.votes(), of.annotations.kind
    most, voted = kind.majority(votes) > 0, votes.sum(-1) > 0
    decided = voted & (most.sum(-1) == 1)
    return BesideVotes(decided, voted & ~decided, decided & ~most[np.arange(len(votes)), kind.label(of.posterior)])
