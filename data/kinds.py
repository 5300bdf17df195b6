"""Kinds of labels: nominal classes, ordered classes, comparisons. A kind has all that depends on how classes relate."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from .answers import label_in
from .arrays import midranks
from .columns import Column, Where, encode, row_number
from .errors import AnnotationError, look_up
from .id_text import listing
from .ids import Ids
from .text import are_digits

Array = Any  # NumPy where people hold it, JAX inside compiled functions

MOST_CLASSES = 1000
"""More distinct labels than this are taken for identifiers, unless `classes=` lists them."""

LARGEST_WHOLE = 2.0**53
"""Below it, double precision has each whole number."""

MOST_SCORES = 20
"""More distinct whole numbers than this are not taken as ordered by themselves: they may be codes."""

LARGEST_SCORE = 100
"""Nor are whole numbers further from zero."""

POWERS = {"absolute": 1, "squared": 2}
"""Costs by name: powers of the difference of two classes' values."""

ROUNDING = 1e-6
"""Sums of probabilities that differ by less are equal: they come in single precision."""


@dataclass(frozen=True)
class Kind:
    """A kind of labels: which classes there are, in what order, and how far apart they are.

    Everything that depends on it asks the kind of the annotations (:attr:`.Annotations.kind`), and nothing asks which
    kind it is. A kind is immutable, hashable and compares by value. What a kind does not say otherwise holds of classes
    without an order, of which a label is right or wrong.
    """

    name: ClassVar[str]
    """Its name in files."""

    remark: ClassVar[str] = ""
    """A few words on the classes for descriptions of annotations; empty of nominal ones."""

    truth_prior: ClassVar[str] = "prevalence"
    """The kind of truth prior where none is given: the name of a `ClassPrior` in files."""

    in_order: ClassVar[bool] = False
    """True where the classes have an order, from the least to the greatest, that stories may use."""

    shows_sides: ClassVar[bool] = False
    """True where annotations were given of sides that the workers saw, so that a worker may lean to one of them."""

    by_question: ClassVar[bool] = False
    """True where questions may have classes, or kinds, of their own."""

    @property
    def order_is_stated(self) -> bool:
        """True where somebody says so, and not the labels alone, whose numbers may be codes."""
        return False

    @property
    def own(self) -> np.ndarray | None:
        """A mask of the classes that each question has, shape (Q, K) bool; None where all tasks have all classes."""
        return None

    def of_question(self, question: int) -> "Kind":
        """Return the kind of one question's labels, by the question's position."""
        return self

    def classes_of(self, question: int, n_classes: int) -> np.ndarray:
        """Return the classes of one question in their order, as class indices."""
        return np.arange(n_classes)

    def to_json(self) -> Any:
        """Return a JSON value that says which kind it is: by default its name."""
        return self.name

    def with_classes(
        self,
        label: Column,
        classes: Iterable[Any] | None,
        suggest: Callable[[], str] = lambda: "",
        option: str = "classes",
    ) -> Column:
        """Return the label column with codes into the K classes in their order, which are its `ids`.

        They are those given, in that order; else those that the column's type lists (a pandas Categorical, a polars
        Enum), in its order; else the distinct labels, sorted: text that is whole numbers by number, labels of several
        types by their text.

        Args:
            label: the labels.
            classes: all classes in the wanted order, or None.
            suggest: says which other column may hold the labels, for the message where this one seems not to.
            option: that lists the classes, for messages.

        Raises:
            AnnotationError: a label is none of the given classes, or a fraction where none were given; there is only
                one class; or the column looks like an identifier, with more than 1000 distinct values, or distinct
                values in more than half of 50 rows or more.
        """
        given = None if classes is None else Ids(of_one_type(classes, label.ids), what=option)
        self.check_order(label, given, option)
        if given is not None:
            if len(given) < 2:
                raise AnnotationError(f"{option}={list(given)!r} must list at least two classes")
            return label.aligned(given, option)
        if label.categories is not None and len(label.categories) > 1:
            _refuse_identifiers(label, suggest)
            return label.aligned(label.categories, "classes")
        _refuse_fractions(label)
        _refuse_identifiers(label, suggest)
        if len(label.ids) == 1:
            raise single_class(label.title, label.ids[0], len(label.codes))
        return label.aligned(Ids(sorted_labels(label.ids)), "classes")

    def check_order(self, label: Column, classes: Ids | None, option: str) -> None:
        """Refuse classes whose order is not known, or is not that of the column's type; by default none are.

        Args:
            label: the labels.
            classes: those that are listed; None where none are.
            option: that lists them.

        Raises:
            AnnotationError: the order is not known, or another.
        """

    def distance(self, n_classes: int) -> np.ndarray:
        """Return how wrong each label is by true class, shape (K, K): zero on the diagonal, symmetric; else 1."""
        return 1.0 - np.eye(n_classes)

    def votes(self, counts: Array) -> Array:
        r"""Return the classes' probabilities by the votes alone: EM starts there, and soft labels are these.

        By default they are shares of a task's votes, :math:`n_{ik} / \sum_l n_{il}`.

        Args:
            counts: how many annotations of each class each task has, shape (N, K), of NumPy or JAX; not below 0.

        Returns:
            Rows that sum to 1, shape (N, K); equal shares for a task without annotations.
        """
        total = counts.sum(-1, keepdims=True)
        is_empty = total == 0
        return (counts + is_empty) / (total + is_empty * counts.shape[-1])

    def majority(self, counts: np.ndarray) -> np.ndarray:
        r"""Return the majority vote as probabilities, shape (N, K): classes that tie have equal shares.

        By default they are of the classes with the most votes, :math:`\arg\max_k n_{ik}`.

        Args:
            counts: how many annotations of each class each task has, shape (N, K).
        """
        most = counts == counts.max(-1, keepdims=True)
        return most / most.sum(-1, keepdims=True)

    def label(self, posterior: np.ndarray) -> np.ndarray:
        """Return the label of each task as a class index, shape (N,): the most probable class, of a tie the first.

        Args:
            posterior: probabilities of the classes, shape (N, K).
        """
        return posterior.argmax(-1)

    def near(self, n_classes: int) -> int:
        """Return how many classes a label may be off and be as good as right: none of classes without an order."""
        return 0

    def certainty(self, posterior: Any, question: Any = None) -> Any:
        """Return the probability that each label is right, or near enough (:meth:`near`), shape (N,).

        Args:
            posterior: probabilities of the classes, shape (N, K); JAX takes it, too.
            question: position of each task's question, shape (N,); needed where questions have kinds of their own.
        """
        return posterior.max(-1)

    def values(self, classes: Sequence[Any]) -> np.ndarray:
        """Return the number that each class stands for in a mean, shape (K,), rising.

        Raises:
            AnnotationError: classes of this kind have no mean, by default; the message says how an order is stated.
        """
        raise AnnotationError(
            f"classes {listing(classes, 4)} have no order, and so no mean; make the annotations with ordered=[...], "
            "all classes from the least to the greatest, or with ordered=True where they are whole numbers"
        )

    def costs(self, classes: Sequence[Any], name: str | None = None) -> np.ndarray:
        """Return the costs of each label by true class, shape (K, K): those that `label` keeps least by default.

        Args:
            classes: the K classes.
            name: ``"absolute"`` or ``"squared"`` difference of the classes' values; None for the default, which is 0
                for the true class and 1 for every other.

        Raises:
            AnnotationError: costs are named, and the classes have no values.
            UnknownNameError: there are no costs of that name.
        """
        if name is None:
            return 1.0 - np.eye(len(classes))
        power, values = look_up("costs", name, POWERS), self.values(classes)
        return np.abs(values[:, None] - values) ** power

    def label_scores(
        self, probabilities: np.ndarray, gold: np.ndarray, classes: Sequence[Any]
    ) -> dict[str, float | np.ndarray]:
        """Return the scores of labels that this kind has beside those of every kind, by name; by default none.

        Args:
            probabilities: of the classes, shape (n, K).
            gold: the true classes as class indices, shape (n,).
            classes: the K classes.

        Returns:
            Numbers, and arrays of shape (n,) where the score is the mean over tasks.
        """
        return {}

    def shown(self, weights: np.ndarray, most: int) -> np.ndarray:
        """Return the classes with the greatest weights in the order in which people read them, as class indices.

        By default the greatest comes first, and of equal ones the first class.

        Args:
            weights: of the classes, and of abstentions after them, shape (L,): probabilities, or vote counts.
            most: how many are shown at the most.
        """
        return np.argsort(-weights, kind="stable")[:most]

    def mirror(self, n_classes: int) -> np.ndarray:
        """Return each class as a class index where a task's two sides change places, shape (K,); itself without."""
        return np.arange(n_classes)

    def renamings(self, n_classes: int) -> np.ndarray:
        """Return what the classes may be taken for instead, as class indices, shape (P, K).

        By default two of them are exchanged, for each of the K (K - 1) / 2 pairs.
        """
        first, second = np.triu_indices(n_classes, 1)
        names = np.tile(np.arange(n_classes), (len(first), 1))
        pair = np.arange(len(first))
        names[pair, first], names[pair, second] = second, first
        return names

    def refuse_other_order(self, classes: Sequence[Any], others: Sequence[Any]) -> None:
        """Refuse classes of annotations that are to be added to those of `classes`, where they are in another order.

        Raises:
            AnnotationError: they have an order, and not the same.
        """

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of workers that this kind has beside those of every kind, by name, shape (..., J) each.

        By default there are none.

        Args:
            confusions: shape (..., J, K, L): rows are true classes; columns from K on are abstentions.
            shares: of the classes, shape (K,); or of the tasks that each worker is asked about, or in each draw, any
                shape (..., K) that goes with (..., J, K).
        """
        return {}


@dataclass(frozen=True)
class Nominal(Kind):
    """Classes without an order: a label is right or wrong."""

    name: ClassVar[str] = "nominal"


@dataclass(frozen=True)
class Ordered(Kind):
    """Classes in an order, such as low, mid, high: a label is the more wrong, the more classes lie between.

    Votes, majority vote and label are those of nominal classes: whole numbers may be codes of classes without an order,
    which lose nothing by it. The order enters through distance, means and scores.

    Attributes:
        stated: whether somebody says that there is an order, and not the numbers alone.
    """

    stated: bool = field(default=True, compare=False)
    name: ClassVar[str] = "ordered"
    remark: ClassVar[str] = "classes from the least to the greatest"
    in_order: ClassVar[bool] = True

    @property
    def order_is_stated(self) -> bool:
        """True where somebody says that there is an order."""
        return self.stated

    def check_order(self, label: Column, classes: Ids | None, option: str) -> None:
        """Refuse text without listed classes, and classes in another order than the column's type states."""
        stated = label.categories if label.in_order else None
        if classes is not None:
            _refuse_two_orders(label.title, classes, stated, option)
        elif stated is None:
            refuse_alphabet(label)

    def distance(self, n_classes: int) -> np.ndarray:
        r"""Return the number of steps between two classes, :math:`|k - l|`, shape (K, K)."""
        position = np.arange(n_classes, dtype=np.float64)
        return np.abs(position[:, None] - position)

    def near(self, n_classes: int) -> int:
        """Return a tenth of the scale, in whole levels: none of up to six, one of 7 to 16, ten of 101."""
        return (n_classes + 3) // 10

    def certainty(self, posterior: Any, question: Any = None) -> Any:
        """Return the probability that the true level is the label or one near it, shape (N,).

        Of a scale of ten hardly a level has most of the probability, however well a task is known.
        """
        n_tasks, n_classes = posterior.shape
        is_near = self.distance(n_classes) <= self.near(n_classes)
        return (posterior @ is_near)[np.arange(n_tasks), posterior.argmax(-1)]

    def values(self, classes: Sequence[Any]) -> np.ndarray:
        """Return the classes where they are numbers that rise, also as text, else their positions from 0, (K,)."""
        names = list(classes)
        are_numbers = all(type(name) in (int, float) for name in names)
        if are_numbers or (all(isinstance(name, str) for name in names) and are_digits(names)):
            values = np.array(names, dtype=np.float64)
            if np.isfinite(values).all() and (np.diff(values) > 0).all():
                return values
        return np.arange(len(names), dtype=np.float64)

    def label_scores(
        self, probabilities: np.ndarray, gold: np.ndarray, classes: Sequence[Any]
    ) -> dict[str, float | np.ndarray]:
        r"""Return how far labels and probabilities are from gold labels, by name.

        With :math:`x_k` the value of class k (:meth:`values`), :math:`m_i` the median class of task i, :math:`l_i` its
        most probable class, :math:`F_{ik}` the probability of the classes up to k, and :math:`g_i` the true class:

        - mae, the mean of :math:`|x_{m_i} - x_{g_i}|`,
        - ranked_probability, the mean of :math:`\frac{1}{K - 1} \sum_{k < K} (F_{ik} - [g_i \le k])^2`, between 0 and
          1, lower is better (Epstein 1969; Murphy 1971),
        - weighted_kappa, :math:`1 - \sum_i (l_i - g_i)^2 / \frac1n \sum_{ij} (l_i - g_j)^2` (Cohen 1968); NaN where
          all labels and gold labels are one class,
        - spearman, the rank correlation of :math:`\sum_k p_{ik} x_k` with :math:`x_{g_i}`; NaN where one of both does
          not vary.
        """
        values, label, n_classes = self.values(classes), self.label(probabilities), len(classes)
        cumulative = np.cumsum(probabilities, axis=-1)[:, :-1]
        reached = gold[:, None] <= np.arange(n_classes - 1)
        by_chance = (label[:, None] - gold) ** 2
        return {
            "mae": np.abs(values[self.median(probabilities)] - values[gold]),
            "ranked_probability": ((cumulative - reached) ** 2).mean(-1),
            "weighted_kappa": 1 - ((label - gold) ** 2).mean() / by_chance.mean() if by_chance.any() else np.nan,
            "spearman": _correlation(midranks(np.round(probabilities @ values, 6)), midranks(gold)),
        }

    def rating_scores(
        self, probabilities: np.ndarray, ratings: np.ndarray, classes: Sequence[Any]
    ) -> dict[str, float | np.ndarray]:
        r"""Return how far labels are from numbers that tasks are rated with, by name.

        With :math:`e_i = \sum_k p_{ik} x_k` the expected value of task i (:meth:`values`) and :math:`r_i` its rating:

        - mae, the mean of :math:`|e_i - r_i|`; NaN where a rating lies outside of the classes' values, which are then
          on another scale,
        - spearman, the rank correlation of both, and kendall, Kendall's (1945) :math:`\tau_b`; NaN where one of both
          does not vary.

        Args:
            probabilities: of the classes, shape (n, K).
            ratings: shape (n,).
            classes: the K classes.
        """
        from scipy.stats import kendalltau

        values = self.values(classes)
        expected = np.round(probabilities @ values, 6)
        on_scale = values[0] <= ratings.min() and ratings.max() <= values[-1]
        varies = np.ptp(expected) > 0 and np.ptp(ratings) > 0
        return {
            "mae": np.abs(expected - ratings) if on_scale else np.nan,
            "spearman": _correlation(midranks(expected), midranks(ratings)),
            "kendall": float(kendalltau(expected, ratings).statistic) if varies else np.nan,
        }

    def shown(self, weights: np.ndarray, most: int) -> np.ndarray:
        """Return the classes with the greatest weights, from the least class to the greatest."""
        return np.sort(super().shown(weights, most))

    def refuse_other_order(self, classes: Sequence[Any], others: Sequence[Any]) -> None:
        """Refuse classes of annotations that are to be added to those of `classes`, where they are in another order.

        Raises:
            AnnotationError: two classes that both have stand the other way round.
        """
        common = [name for name in others if name in classes]
        if common != (ours := [name for name in classes if name in common]):
            raise AnnotationError(
                f"these annotations have the order {ours}, from the least to the greatest, and those to be added the "
                f"order {common}; make both with the same ordered=[...]"
            )

    def renamings(self, n_classes: int) -> np.ndarray:
        """Return the classes from the greatest to the least, shape (1, K): other namings part neighbours."""
        return np.arange(n_classes)[None, ::-1]

    @staticmethod
    def median(posterior: np.ndarray) -> np.ndarray:
        """Return the median class as a class index, shape (N,): the first with half of the probability up to it."""
        return quantile(posterior, 0.5)

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        r"""Return bias and mean absolute error in classes, given an annotation that is a class, shape (..., J) each.

        With :math:`w_{kl} = \rho_k \, \beta_j[k, l]` for the K classes l,

        .. math::
            \text{bias}_j = \frac{\sum_{kl} w_{kl} (l - k)}{\sum_{kl} w_{kl}}, \quad
            \text{MAE}_j = \frac{\sum_{kl} w_{kl} |l - k|}{\sum_{kl} w_{kl}},

        which are positive for a worker who annotates too high, and 0 for one without errors.
        """
        n_classes = confusions.shape[-2]
        weights = confusions[..., :n_classes] * shares[..., None]
        total = weights.sum((-1, -2))
        position = np.arange(n_classes)
        errors = {"bias": position - position[:, None], "mean_absolute_error": self.distance(n_classes)}
        return {
            name: np.where(total > 0, (weights * error).sum((-1, -2)) / np.where(total > 0, total, 1.0), np.nan)
            for name, error in errors.items()
        }


def quantile(posterior: np.ndarray, mass: float) -> np.ndarray:
    """Return the first class with at least a mass of the probability up to it, as a class index, shape (N,).

    Args:
        posterior: probabilities of the classes in their order, shape (N, K).
        mass: between 0 and 1.
    """
    cumulative = np.cumsum(posterior, axis=-1, dtype=np.float64)
    return (cumulative[..., :-1] < mass * cumulative[..., -1:] - ROUNDING).sum(-1)


SIDES = ("left", "right", "tie")


@dataclass(frozen=True)
class Pairwise(Kind):
    """Comparisons: a task is a pair of items, and its classes are left, right and, where there are some, tie.

    They are nominal labels with a mirror: the pair with its items exchanged has left for right.
    """

    name: ClassVar[str] = "pairwise"
    truth_prior: ClassVar[str] = "bradley_terry"
    shows_sides: ClassVar[bool] = True

    def with_classes(
        self,
        label: Column,
        classes: Iterable[Any] | None,
        suggest: Callable[[], str] = lambda: "",
        option: str = "classes",
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

    def values(self, classes: Sequence[Any]) -> np.ndarray:
        """Return nothing: sides have no mean.

        Raises:
            AnnotationError: always; the message says what has the scores.
        """
        raise AnnotationError(
            f"classes {listing(classes, 3)} are the sides of comparisons, and have no mean; fit.ranking has the scores "
            "of the items"
        )

    def mirror(self, n_classes: int) -> np.ndarray:
        """Return each class of the exchanged pair as a class index, shape (K,): left and right change places."""
        return np.array([1, 0, 2])[:n_classes]

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        r"""Return the position bias, shape (..., J): from −1, who always takes the right side, to 1, always the left.

        .. math:: \text{bias}_j = \frac{\sum_{k < 2} (\beta_j[k, 0] - \beta_j[k, 1])}
            {\sum_{k < 2} (\beta_j[k, 0] + \beta_j[k, 1])}

        is by how much more often left is named than right, among annotations that name a side of pairs whose better
        item is as often left as right. Of two items about equally good, left is named with the probability
        :math:`(1 + \text{bias}_j) / 2`. It is NaN where no worker has any in any of the matrices, to rounding: under a
        story that cannot have one, such as ``one_coin``.
        """
        named = confusions[..., :2, :2].sum(-2)
        total = named.sum(-1)
        bias = (named[..., 0] - named[..., 1]) / np.where(total > 0, total, 1.0)
        can_have = bool((np.abs(bias) > ROUNDING).any())
        return {"position_bias": np.where((total > 0) & can_have, bias, np.nan)}


@dataclass(frozen=True)
class DrawnSides(Pairwise):
    """Comparisons of which nobody knows what stood left: sides were drawn, and no worker leans to one of them."""

    name: ClassVar[str] = "pairwise of drawn sides"
    shows_sides: ClassVar[bool] = False

    def worker_scores(self, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
        """Return no scores: there is no position to prefer."""
        return {}


NOMINAL = Nominal()

KINDS: dict[str, Kind] = {kind.name: kind for kind in (NOMINAL, Ordered(), Pairwise(), DrawnSides())}
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
    return encode(values_of_labels(values, classes), title, where)


def values_of_labels(values: pd.Series, classes: Iterable[Any] | None) -> pd.Series:
    """Return labels of which whole floats are the integers that they are, unless listed `classes` have floats."""
    has_floats = classes is not None and any(isinstance(value, float) for value in classes)
    return values if has_floats else whole_as_integers(values)


def order_of_all(columns: Mapping[str, pd.Series]) -> pd.CategoricalDtype | None:
    """Return the type of columns of labels that are all ordered categoricals: that of the one with the most categories.

    Args:
        columns: by title.

    Returns:
        The type; None where a column is no ordered categorical, or has categories that the others have not.

    Raises:
        AnnotationError: two columns have two orders.
    """
    types = _ordered_types(columns)
    if len(types) < len(columns):
        return None
    listed = {title: list(each.categories) for title, each in types.items()}
    longest = max(listed, key=lambda title: len(listed[title]))
    for title, names in listed.items():
        common = [name for name in names if name in listed[longest]]
        if common != [name for name in listed[longest] if name in names]:
            raise AnnotationError(
                f"{longest} has the order {listed[longest]}, from the least to the greatest, and {title} has {names}; "
                "make one of them the other's, by .cat.reorder_categories([...], ordered=True), or both unordered "
                "(.cat.as_unordered())"
            )
    return types[longest] if all(set(names) <= set(listed[longest]) for names in listed.values()) else None


def orders_by_column(columns: Mapping[str, pd.Series]) -> dict[str, list[Any]] | None:
    """Return the orders that ordered categoricals state, by name, where columns have no order in common.

    Args:
        columns: of labels, by name.

    Returns:
        None where no column states one, or all have that of one of them.

    Raises:
        AnnotationError: as `order_of_all`.
    """
    types = _ordered_types(columns)
    if not types or order_of_all({f"column {name!r}": values for name, values in columns.items()}) is not None:
        return None
    return {name: list(whole_as_integers(each.categories.to_series())) for name, each in types.items()}


def _ordered_types(columns: Mapping[str, pd.Series]) -> dict[str, pd.CategoricalDtype]:
    dtypes = {name: values.dtype for name, values in columns.items()}
    return {name: each for name, each in dtypes.items() if isinstance(each, pd.CategoricalDtype) and each.ordered}


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


def listed_classes(options: Mapping[str, Any]) -> Any:
    """Return the classes that the option `classes` or `ordered` of a constructor lists; None where none does.

    Of options by question they are those of all questions.
    """
    both = [options.get("classes"), options.get("ordered")]
    if not any(isinstance(given, Mapping) for given in both):
        found = stated_classes(*both).classes
        return found.tolist() if hasattr(found, "tolist") else found  # an array has no truth value
    parts = [part for given in both for part in (given.values() if isinstance(given, Mapping) else [given])]
    listed = [part for part in parts if isinstance(part, Iterable) and not isinstance(part, str)]
    return list(dict.fromkeys(name for part in listed for name in part)) or None


class Stated(NamedTuple):
    """The classes and their order, as the options of a constructor have them."""

    classes: Any  # in their order; None where none are listed
    ordered: bool | None  # None where nothing is said of it
    option: str  # that lists the classes


def stated_classes(classes: Any, ordered: Any) -> Stated:
    """Return what the options `classes` and `ordered` of a constructor say, of which either may list the classes.

    Raises:
        AnnotationError: both do, or `ordered` is neither a truth value nor a list.
    """
    if ordered is None or isinstance(ordered, bool | np.bool_):
        return Stated(classes, None if ordered is None else bool(ordered), "classes")
    if isinstance(ordered, str | bytes | Mapping | Set) or not isinstance(ordered, Iterable):
        raise AnnotationError(
            f"ordered={ordered!r}: True, False or None is needed, or a list of all classes, from the least to the "
            "greatest; of several questions, question=, a dictionary may have one of these for each"
        )
    if classes is not None:
        raise AnnotationError("classes= and ordered= both list the classes; give one of them")
    return Stated(Ids(ordered, what="ordered"), True, "ordered")


def kind_of(label: Column, classes: Any, ordered: bool | None, silent: Iterable[Any] = ()) -> tuple[Kind, bool]:
    """Return the kind of labels, and whether they are ordered for no other reason than that they are scores.

    Args:
        label: the labels.
        classes: those that are listed; None where none are.
        ordered: what is said of their order.
        silent: the labels that are no class.
    """
    if ordered is not None or label.in_order:
        return (Ordered() if ordered is not False else NOMINAL), False
    alone = classes is None and label.categories is None
    given = [name for name in label.ids if name not in set(silent)]
    scores = alone and (are_scores(given) or (are_whole(given, LARGEST_SCORE) and is_named_score(label.title)))
    return (Ordered(stated=False) if scores else NOMINAL), scores


def are_scores(labels: Iterable[Any]) -> bool:
    """Return whether distinct labels are whole numbers that are taken as ordered where nothing else is said.

    They are 3 to 20 whole numbers from −100 to 100: with two classes an order says nothing, and more or larger ones
    may be codes.
    """
    values = list(labels)
    return are_whole(values, LARGEST_SCORE) and len(values) <= MOST_SCORES


def are_whole(labels: Sequence[Any], largest: float = np.inf) -> bool:
    """Return whether three distinct labels or more are whole numbers, none further from zero than `largest`."""
    return len(labels) >= 3 and all(type(value) is int and abs(value) <= largest for value in labels)


def is_named_score(title: str) -> bool:
    """Return whether a column is named for scores, of which more than :data:`MOST_SCORES` are no codes either."""
    return re.search(r"column '(?:[^']*[ ._-])?(?:score|rating|grade|points)s?'$", title, re.IGNORECASE) is not None


def single_class(title: str, value: object, n_rows: int) -> AnnotationError:
    """Make the error for a column whose labels are all alike."""
    rows = f"all {n_rows:,} rows" if n_rows > 1 else "its only row"
    return AnnotationError(
        f"{title} holds a single class, {value!r}, in {rows}, so that there is nothing to infer; if there are classes "
        "that nobody used, list all in classes=[...]"
    )


def is_fraction(value: object) -> bool:
    """Return whether a label is a real number that is no whole one."""
    return isinstance(value, float) and not value.is_integer()


def fraction_text(value: object, *, merges: bool = True) -> str:
    """Return what is wrong with a label that is a fraction, and what would be accepted.

    Args:
        value: the label.
        merges: whether ranges of numbers can stand for labels, ``merge=``, where it was given.
    """
    as_text = "" if isinstance(value, str) else "make them text, or "
    binned = "bin them, as by merge={'0..0.3': 0, '0.3..0.7': 1, '0.7..1': 2}," if merges else "bin them (pd.cut)"
    return (
        f"{value!r} is a fraction, and real numbers are not made classes: round them (.round()), {binned} or rank "
        f"them; where they are names of classes, {as_text}list all in classes=[...], or from the least to the greatest "
        "in ordered=[...] where they are steps of a scale"
    )


def of_one_type(classes: Iterable[Any], labels: Iterable[Any]) -> list[Any]:
    """Return listed classes, whole numbers among them of the type of the labels, int or float."""
    listed, given = list(classes), set(map(type, labels))
    if not {type(value) for value in listed} <= {int, float} or given not in ({int}, {float}):
        return listed
    return [next(iter(given))(value) if value % 1 == 0 else value for value in listed]


def _refuse_fractions(label: Column) -> None:
    fractions = [code for code, value in enumerate(label.ids) if is_fraction(value)]
    if fractions:
        row = int(np.flatnonzero(np.isin(label.codes, fractions))[0])
        value = label.ids[int(label.codes[row])]
        raise AnnotationError(f"{label.title}, {label.where(row)}: {fraction_text(value)}")


def _refuse_two_orders(title: str, classes: Ids, stated: Ids | None, option: str) -> None:
    """Refuse classes in another order than the one that the column's type states."""
    common = [name for name in stated or () if name in classes]
    if common != [name for name in classes if name in common]:
        raise AnnotationError(
            f"{title}: its type has the order {common}, and {option}={list(classes)!r} has another; leave {option} out "
            "to take the column's, or make the column unordered (.cat.as_unordered())"
        )


def refuse_alphabet(label: Column) -> None:
    """Refuse text without a stated order, also as categories that are sorted as pandas sorts text."""
    names = list(label.ids if label.categories is None else label.categories)
    if all(type(name) is int for name in names):
        return
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) == len(names) and are_digits(texts):
        return
    if label.categories is None or names == sorted(texts):
        numbers = sorted(name for name in names if isinstance(name, int | float) and np.isfinite(name))
        are_few = len(numbers) == len(names) <= MOST_SCORES
        raise AnnotationError(
            f"{label.title}: labels such as {names[0]!r} have no order of their own, as whole numbers have; list the "
            f"classes from the least to the greatest in ordered={numbers if are_few else '[...]'}"
        )


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Pearson's correlation; NaN where one of both does not vary."""
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / scale) if scale > 0 else float("nan")


def _refuse_identifiers(label: Column, suggest: Callable[[], str]) -> None:
    distinct, rows = len(label.ids), len(np.asarray(label.codes))
    if distinct > MOST_CLASSES or (rows >= 50 and distinct > rows / 2):
        first, second = label.ids[:2]
        said = label_in(first) if isinstance(first, str) else None
        mend = suggest() if said is None else f" tidy=True takes the label that is said in each, here {said!r}."
        raise AnnotationError(
            f"{label.title} has {distinct} distinct values in {rows} rows, such as {first!r} and "
            f"{second!r}: it looks like an identifier, not like labels.{mend} "
            "If these are the classes, list them in classes=[...]"
        )
