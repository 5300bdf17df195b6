"""Kinds of labels: nominal classes, ordered classes, comparisons. A kind has all that depends on how classes relate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from .columns import Column, Where, encode, row_number
from .errors import AnnotationError
from .ids import Ids
from .text import are_digits

Array = Any  # NumPy where people hold it, JAX inside compiled functions

MOST_CLASSES = 1000
"""More distinct labels than this are taken for identifiers, unless `classes=` lists them."""

LARGEST_WHOLE = 2.0**53
"""Below it, double precision has each whole number."""


class Kind(Protocol):
    """A kind of labels: which classes there are, in what order, and how far apart they are.

    Everything that depends on it asks the kind of the annotations (:attr:`.Annotations.kind`), and nothing asks which
    kind it is. A kind is immutable, hashable and compares by value.
    """

    name: ClassVar[str]
    """Its name in files."""

    def with_classes(self, label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = ...) -> Column:
        """Return the label column with codes into the K classes in their order, which are its `ids`.

        Args:
            label: the labels.
            classes: all classes in the wanted order, or None.
            suggest: says which other column may hold the labels, for the message where this one seems not to.

        Raises:
            AnnotationError: a label cannot be a class.
        """
        ...

    def distance(self, n_classes: int) -> np.ndarray:
        """Return how wrong each label is by true class, shape (K, K): zero on the diagonal, symmetric."""
        ...

    def votes(self, counts: Array) -> Array:
        """Return the classes' probabilities by the votes alone: EM starts there, and soft labels are these.

        Args:
            counts: how many annotations of each class each task has, shape (N, K), of NumPy or JAX; not below 0.

        Returns:
            Rows that sum to 1, shape (N, K); equal shares for a task without annotations.
        """
        ...

    def majority(self, counts: np.ndarray) -> np.ndarray:
        """Return the majority vote as probabilities, shape (N, K): classes that tie have equal shares.

        Args:
            counts: how many annotations of each class each task has, shape (N, K).
        """
        ...

    def label(self, posterior: np.ndarray) -> np.ndarray:
        """Return the label of each task as a class index, shape (N,); of a tie the first class.

        Args:
            posterior: probabilities of the classes, shape (N, K).
        """
        ...

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of workers that this kind has beside those of every kind, by name, shape (..., J) each.

        Args:
            confusions: shape (..., J, K, L): rows are true classes; columns from K on are abstentions.
            shares: of the classes, shape (K,).
        """
        ...


@dataclass(frozen=True)
class Nominal:
    """Classes without an order: a label is right or wrong."""

    name: ClassVar[str] = "nominal"

    def with_classes(
        self, label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = lambda: ""
    ) -> Column:
        """Return the label column with codes into the classes.

        They are those given, in that order; else those that the column's type lists (a pandas Categorical, a polars
        Enum), in its order; else the distinct labels, sorted: text that is whole numbers by number, labels of several
        types by their text.

        Raises:
            AnnotationError: a label is none of the given classes, or a fraction where none were given; there is only
                one class; or the column looks like an identifier, with more than 1000 distinct values, or distinct
                values in more than half of 50 rows or more.
        """
        if classes is not None:
            given = Ids(classes, what="classes")
            if len(given) < 2:
                raise AnnotationError(f"classes={list(given)!r} must list at least two classes")
            return label.aligned(given, "classes")
        if label.categories is not None and len(label.categories) > 1:
            _refuse_identifiers(label, suggest)
            return label.aligned(label.categories, "classes")
        _refuse_fractions(label)
        _refuse_identifiers(label, suggest)
        if len(label.ids) == 1:
            raise single_class(label.title, label.ids[0], len(label.codes))
        return label.aligned(Ids(sorted_labels(label.ids)), "classes")

    def distance(self, n_classes: int) -> np.ndarray:
        """Return 0 for the true class and 1 for every other, shape (K, K)."""
        return 1.0 - np.eye(n_classes)

    def votes(self, counts: Array) -> Array:
        r"""Return each class's share of a task's votes, :math:`n_{ik} / \sum_l n_{il}`, shape (N, K)."""
        total = counts.sum(-1, keepdims=True)
        is_empty = total == 0
        return (counts + is_empty) / (total + is_empty * counts.shape[-1])

    def majority(self, counts: np.ndarray) -> np.ndarray:
        r"""Return equal shares of the classes with the most votes, :math:`\arg\max_k n_{ik}`, shape (N, K)."""
        most = counts == counts.max(-1, keepdims=True)
        return most / most.sum(-1, keepdims=True)

    def label(self, posterior: np.ndarray) -> np.ndarray:
        """Return the most probable class, shape (N,)."""
        return posterior.argmax(-1)

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        """Return no score: those of every kind say how often a worker is right."""
        return {}


@dataclass(frozen=True)
class Ordered(Nominal):
    """Classes in an order, such as low, mid, high: a label is the more wrong, the more classes lie between."""

    name: ClassVar[str] = "ordered"

    def with_classes(
        self, label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = lambda: ""
    ) -> Column:
        """Return the label column with codes into the classes, those of nominal labels.

        Raises:
            AnnotationError: as for nominal labels; or the order is not known, of text without given classes.
        """
        values = label.ids
        if classes is None and label.categories is None and not all(type(value) is int for value in values):
            raise AnnotationError(
                f"{label.title}: labels such as {values[0]!r} have no order of their own; list the classes from the "
                "least to the greatest in ordered=[...]"
            )
        return super().with_classes(label, classes, suggest)

    def distance(self, n_classes: int) -> np.ndarray:
        r"""Return the number of steps between two classes, :math:`|k - l|`, shape (K, K)."""
        position = np.arange(n_classes, dtype=np.float64)
        return np.abs(position[:, None] - position)

    def majority(self, counts: np.ndarray) -> np.ndarray:
        """Return the median vote, shape (N, K): of an even number half each of the two in the middle."""
        cumulative, n_classes = np.cumsum(counts, axis=-1), np.shape(counts)[-1]
        total = cumulative[..., -1:]
        middle = (2 * cumulative < total).sum(-1), (2 * cumulative <= total).sum(-1)  # K where there is no vote
        shares = sum(np.eye(n_classes)[np.minimum(at, n_classes - 1)] for at in middle) / 2
        return np.where(total > 0, shares, 1 / n_classes)

    def label(self, posterior: np.ndarray) -> np.ndarray:
        """Return the median class, shape (N,): the first with at least half of the probability up to it."""
        cumulative = np.cumsum(posterior, axis=-1, dtype=np.float64)
        return (2 * cumulative[..., :-1] < cumulative[..., -1:]).sum(-1)

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        r"""Return bias and mean absolute error in classes, given an annotation that is a class, shape (..., J) each.

        With :math:`w_{kl} = \rho_k \, \beta_j[k, l]` for the K classes l,

        .. math::
            \text{bias}_j = \frac{\sum_{kl} w_{kl} (l - k)}{\sum_{kl} w_{kl}}, \quad
            \text{MAE}_j = \frac{\sum_{kl} w_{kl} |l - k|}{\sum_{kl} w_{kl}},

        which are positive for a worker who annotates too high, and 0 for one without errors.
        """
        n_classes = confusions.shape[-2]
        weights = confusions[..., :n_classes] * shares[:, None]
        total = weights.sum((-1, -2))
        position = np.arange(n_classes)
        errors = {"bias": position - position[:, None], "mean_absolute_error": self.distance(n_classes)}
        return {
            name: np.where(total > 0, (weights * error).sum((-1, -2)) / np.where(total > 0, total, 1.0), np.nan)
            for name, error in errors.items()
        }


SIDES = ("left", "right", "tie")


@dataclass(frozen=True)
class Pairwise(Nominal):
    """Comparisons: a task is a pair of items, and its classes are left, right and, where there are some, tie.

    They are nominal labels with a mirror: the pair with its items exchanged has left for right.
    """

    name: ClassVar[str] = "pairwise"

    def with_classes(
        self, label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = lambda: ""
    ) -> Column:
        """Return the label column with codes into left, right and, where it is given or used, tie.

        Raises:
            AnnotationError: a label or a class is none of these.
        """
        given = None if classes is None else list(classes)
        if given is not None and tuple(given) not in (SIDES, SIDES[:2]):
            raise AnnotationError(f"classes={given!r}: comparisons have the classes {list(SIDES)} or {list(SIDES[:2])}")
        ties = "tie" in label.ids if given is None else "tie" in given
        others = [name for name in label.ids if name not in SIDES]
        return label.aligned(Ids(SIDES if ties or others else SIDES[:2]), "classes")

    def mirror(self, n_classes: int) -> np.ndarray:
        """Return each class of the exchanged pair as a class index, shape (K,): left and right change places."""
        return np.array([1, 0, 2])[:n_classes]


NOMINAL = Nominal()

KINDS: dict[str, Kind] = {kind.name: kind for kind in (NOMINAL, Ordered(), Pairwise())}
"""The kinds by name."""


def encode_labels(
    values: pd.Series, title: str, where: Where = row_number, classes: Iterable[Any] | None = None
) -> Column:
    """Turn a column of labels into codes; whole floats are the integers that they are.

    Args:
        values: the labels, shape (A,).
        title: the column's name for messages.
        where: says where a row is, for messages.
        classes: those that were given; floats among them leave all labels of the type that they have.

    Raises:
        AnnotationError: as `encode`.
    """
    has_floats = classes is not None and any(isinstance(value, float) for value in classes)
    return encode(values if has_floats else whole_as_integers(values), title, where)


def whole_as_integers(values: pd.Series) -> pd.Series:
    """Return a column with its floats as integers where all of them are whole; else unchanged.

    Tables make floats of whole numbers beside an empty cell. Missing values stay.
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.rename_categories(whole_as_integers(values.cat.categories.to_series()).to_list())
    if values.dtype != object and values.dtype.kind != "f":
        return values
    known = values.notna().to_numpy(dtype=bool)
    if values.dtype == object:
        known = known & values.map(lambda value: isinstance(value, float | np.floating)).to_numpy(dtype=bool)
    floats = values[known].to_numpy(dtype=np.float64)
    if not floats.size or not (np.abs(floats) < LARGEST_WHOLE).all() or (floats != np.floor(floats)).any():
        return values
    whole = values.astype(object)
    whole[known] = floats.astype(np.int64).tolist()
    return whole.astype(np.int64) if known.all() else whole


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Return labels sorted: text that is whole numbers by number, and labels of several types by their text."""
    values = list(labels)
    if all(isinstance(value, str) for value in values) and are_digits(values):
        return sorted(values, key=lambda text: (int(text), text))
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def single_class(title: str, value: object, n_rows: int) -> AnnotationError:
    """Make the error for a column whose labels are all alike."""
    return AnnotationError(
        f"{title} holds a single class, {value!r}, in all {n_rows:,} rows, so that there is nothing to infer; if there "
        "are classes that nobody used, list all in classes=[...]"
    )


def is_fraction(value: object) -> bool:
    """Return whether a label is a real number that is no whole one."""
    return isinstance(value, float) and not value.is_integer()


def fraction_text(value: object) -> str:
    """Return what is wrong with a label that is a fraction, and what would be accepted."""
    as_text = "" if isinstance(value, str) else "make them text, or "
    return (
        f"{value!r} is a fraction, and real numbers are not made classes: round them (.round()), bin them (pd.cut, "
        f"pd.qcut) or rank them; where they are names of classes, {as_text}list all in classes=[...]"
    )


def _refuse_fractions(label: Column) -> None:
    fractions = [code for code, value in enumerate(label.ids) if is_fraction(value)]
    if fractions:
        row = int(np.flatnonzero(np.isin(label.codes, fractions))[0])
        value = label.ids[int(label.codes[row])]
        raise AnnotationError(f"{label.title}, {label.where(row)}: {fraction_text(value)}")


def _refuse_identifiers(label: Column, suggest: Callable[[], str]) -> None:
    distinct, rows = len(label.ids), len(np.asarray(label.codes))
    if distinct > MOST_CLASSES or (rows >= 50 and distinct > rows / 2):
        raise AnnotationError(
            f"{label.title} has {distinct} distinct values in {rows} rows, such as {label.ids[0]!r} and "
            f"{label.ids[1]!r}: it looks like an identifier, not like labels.{suggest()} "
            "If these are the classes, list them in classes=[...]"
        )
