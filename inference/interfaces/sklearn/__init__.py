"""Stories behind the face of a scikit-learn estimator: a classifier that learns from several workers' annotations."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from crowdppl.data import Annotations
from crowdppl.data.abstentions import abstentions_of
from crowdppl.data.errors import truth_value
from crowdppl.inference.fit import fit

__all__ = ["CrowdClassifier"]


class CrowdClassifier(ClassifierMixin, BaseEstimator):
    r"""A classifier of tasks' features that is trained on the annotations of several workers, as scikit-learn has it.

    :func:`crowdppl.fit` with a classifier as prior of the true labels,
    :math:`z_i \sim \text{Categorical}(\text{softmax}(f_w(x_i)))`: workers' reliability and the classifier are learned
    together (Raykar et al. 2010). It goes into pipelines, cross-validation and grid search. Where y has empty cells,
    scikit-learn cannot choose the splits: give ``cv=KFold(5)`` rather than ``cv=5``. ``fit`` takes no sample_weight:
    each annotation counts once, and how much it says is learned of its worker; ``score`` takes one.

    Example:
        >>> import numpy as np
        >>> from crowdppl.sklearn import CrowdClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> truth = (X[:, 0] > 0).astype(int)
        >>> y = np.where(rng.random((200, 5)) < 0.8, truth[:, None], 1 - truth[:, None]).astype(float)
        >>> y[rng.random((200, 5)) < 0.4] = np.nan  # not every worker annotates every task
        >>> model = CrowdClassifier().fit(X, y)
        >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
        array([1., 0.])

    Args:
        story: a story's name, or any story; or ``"auto"``, or a baseline such as ``"majority_vote"``.
        classifier: as for :func:`crowdppl.fit`.
        method: the engine.
        options: further arguments of :func:`crowdppl.fit`, such as ``{"max_iterations": 50}`` or
            ``{"gold": {0: "cat"}}``, where tasks are the rows, from 0.
        ordered: whether the classes, as sorted, are ordered.
        missing_label: the value of cells of y without an annotation, beside None and NaN.
        abstain: the values of annotations that are no class, or one value, as for :meth:`.Annotations.from_matrix`.
            Where ``missing_label`` is among them, such as −1, its cells are abstentions, and only None and NaN are
            missing.
        random_state: the seed; or a generator, or None, of which one is drawn.

    Attributes:
        classes_: the K classes, sorted.
        fit_: the :class:`.Fit`, with workers, findings and a report. Tasks are the rows of y, workers its columns.
        labels_: the labels of the N tasks that it was fitted to, which follow features and annotations both.
        n_features_in_: how many features a task has.
    """

    def __init__(
        self,
        story: Any = "dawid_skene",
        *,
        classifier: Any = "logistic",
        method: str = "em",
        options: Mapping[str, Any] | None = None,
        ordered: bool = False,
        missing_label: Any = np.nan,
        abstain: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.story = story
        self.classifier = classifier
        self.method = method
        self.options = options
        self.ordered = ordered
        self.missing_label = missing_label
        self.abstain = abstain
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the story and its classifier.

        Args:
            X: features of the tasks, ``(N, D)``, or ``(N, ...)`` for images.
            y: tasks × workers, ``(N, J)``, with a class or nothing in each cell: an array, or a table whose columns are
                the workers. ``(N,)`` for one worker, who has annotated all.

        Raises:
            ValueError: X has empty or infinite cells; y has another length, no annotation, or numbers that are no
                classes; and as :func:`crowdppl.fit`.
            AnnotationError: likewise, of what is no set of annotations.
        """
        X = validate_data(self, X, allow_nd=True)
        values, present, workers = self._annotations(y)
        check_consistent_length(X, values)
        check_classification_targets(values[present])
        self.classes_ = np.unique(values[present])
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs two at least")
        classes = self.classes_.tolist()
        cells = values.astype(object)
        cells[~present] = None
        abstain = list(abstentions_of(self.abstain))
        for value in abstain:
            cells[values == value] = value
        of_classes: dict[str, Any] = {"ordered" if truth_value("ordered", self.ordered) else "classes": classes}
        of_classes |= {"abstain": abstain}
        annotations = Annotations.from_matrix(cells, missing=None, workers=workers, features=X, **of_classes)
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        shared: dict[str, Any] = {
            "method": self.method,
            "classifier": self.classifier,
            "seed": int(seed),
            "progress": False,
        }
        self.fit_ = fit(self.story, annotations, **shared, **(self.options or {}))
        self.labels_ = self.classes_[self.fit_.probabilities.to_numpy().argmax(1)]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The classifier's probabilities of the classes, ``(n, K)`` in the order of ``classes_``.

        Args:
            X: features of any tasks, ``(n, D)`` or ``(n, ...)``.

        Raises:
            sklearn.exceptions.NotFittedError: it was not fitted.
            ValueError: the features have another shape or are not finite; there is no classifier.
        """
        check_is_fitted(self)
        X = validate_data(self, X, allow_nd=True, reset=False)
        found = np.asarray(self.fit_.predict_proba(X), dtype=float)
        return found / found.sum(1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each task, ``(n,)``; arguments and errors as :meth:`predict_proba`."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the annotations of y that are the class predicted; of true labels, ``(n,)``, the accuracy.

        Args:
            X: features of the tasks, ``(n, D)`` or ``(n, ...)``.
            y: as for :meth:`fit`; or the true labels, ``(n,)``.
            sample_weight: of each task, ``(n,)``.

        Raises:
            ValueError: as :meth:`predict_proba`; y has no annotation.
        """
        predicted = self.predict(X)
        values, present, _ = self._annotations(y)
        check_consistent_length(predicted, values, sample_weight)
        weight = present * (1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float)[:, None])
        return float(np.average(values == predicted[:, None], weights=weight))

    def _annotations(self, y: Any) -> tuple[np.ndarray, np.ndarray, list[Any] | None]:
        """The cells ``(N, J)``, which of them are of a class, and the names of the workers, if y has them."""
        if y is None:
            raise ValueError("CrowdClassifier requires y to be passed, but the target y is None")
        workers = list(y.columns) if hasattr(y, "columns") else None
        values = check_array(y, dtype=None, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        values = values.reshape(len(values), -1)
        present = ~(pd.isna(values) | (values == self.missing_label))
        for value in abstentions_of(self.abstain):
            present &= values != value
        if not present.any():
            raise ValueError(f"y: all {values.size:,} cells are without a class; one at least is needed")
        return values, present, workers
