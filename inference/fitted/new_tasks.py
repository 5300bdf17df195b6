"""A fitted classifier's predictions for tasks without annotations."""

from typing import Any

import numpy as np

from ...data.errors import truth_value
from ...data.features import checked_features
from .fitted import Fitted
from .posterior import Posterior, posterior_of


def predict_proba(fit: Posterior | Fitted, x: Any, *, by_member: bool = False) -> np.ndarray:
    """The classifier's probabilities for new tasks, averaged over the draws where its weights have a posterior.

    Those of an average of stories, or of fits from several seeds (``members=`` of :func:`crowdppl.fit`), are averaged
    by weight.

    Args:
        x: features ``(n, ...)``, each of the shape that the classifier was trained on; of a table the columns are
            found by their names, where the fit was given a table too; for a torch module that was trained on a
            Dataset, another one.
        by_member: give each member's probabilities instead of their average: how far they lie apart is what the
            classifier's start and course of training leave open.

    Returns:
        ``(n, K)``, in the order of ``annotations.classes``; of the members ``(M, n, K)``, in the order of ``fit.fits``
        and of their weights, of those that have weight. One story has one member.

    Raises:
        ValueError: the story was fitted without a classifier, or the features have another shape or are not
            finite.
        AnnotationError: a table lacks a feature, has another one, or one that is no number.
    """
    source, by_member = posterior_of(fit), truth_value("by_member", by_member)
    if by_member:
        each = [source.rule.predict_proba(x)] if source.rule is not None else None
        return np.stack(each or [_of_story(fitted, x) for fitted, _ in source.weighty])
    if source.rule is not None:
        return source.rule.predict_proba(x)
    if source.only is not None:
        return _of_story(source.only, x)
    return np.sum([weight * _of_story(fitted, x) for fitted, weight in source.weighty], axis=0)


def _of_story(fitted: Fitted, x: Any) -> np.ndarray:
    annotations, prior = fitted.annotations, fitted.model.truth_prior
    if annotations.features is not None:  # a torch module on a Dataset of its own has its own idea of what x is
        x = checked_features(x, np.shape(annotations.features)[1:], annotations.feature_names)
        if not len(x):
            return np.zeros((0, annotations.n_classes), dtype=np.float32)
    try:
        return prior.predict_proba(x, annotations.n_classes, fitted.draws, fitted.fixed)
    except NotImplementedError as error:
        raise ValueError(
            f"{fitted.story} was fitted without a classifier, so it says nothing of tasks without annotations; "
            "fit.probabilities has the tasks that it saw"
        ) from error
