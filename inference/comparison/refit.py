"""A fitted story's refit to a part of its annotations."""

import numpy as np

from ..fit_story import refit
from ..fitted.fitted import Fitted
from .held_out import counts


def refit_without(fitted: Fitted, held: np.ndarray, by: str | None = None) -> Fitted:
    """Fit again without some annotations, with the same seed and, by the same engine, the same options.

    Args:
        fitted: the story.
        held: how many of each row's annotations are not shown, ``(A,)``.
        by: another engine's name, with its default options; None for the fit's own.

    Raises:
        UnknownNameError: there is no such engine.
        ValueError: the fit is one of Pyro's.
    """
    return refit(fitted, fitted.annotations.replace(count=counts(fitted.annotations) - held), by)
