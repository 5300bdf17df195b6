"""A fitted classifier's predictions for tasks without annotations."""

from typing import Any

import numpy as np

from ...data.features import columns_by_name, table_values
from ...data.frames import as_frame, is_frame
from ...data.ids import Ids
from .fitted import Fitted


def predict_proba(fitted: Fitted, x: Any) -> np.ndarray:
    """The classifier's probabilities for new tasks ``(n, K)``: see :meth:`.Fit.predict_proba`."""
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


def checked_features(x: Any, shape: tuple[int, ...], names: Ids) -> np.ndarray:
    """The features, of the shape that they had in the training, and finite; a table's in the order of these names."""
    if is_frame(x):
        frame = as_frame(x, "x").to_pandas().drop(columns="task", errors="ignore")
        x = table_values(columns_by_name(frame, names, "x"), "x")
    x = np.asarray(x, dtype=np.float32)
    if x.shape[1:] != shape or x.ndim != len(shape) + 1:
        raise ValueError(f"x has shape {x.shape}; (n, {', '.join(map(str, shape))}) is needed, as in the training")
    if not np.isfinite(x).all():
        row, *place = (int(each[0]) for each in np.nonzero(~np.isfinite(x)))
        more = int((~np.isfinite(x)).sum())
        where = f"column {place[0]}" if len(place) == 1 else f"place {tuple(place)}"
        raise ValueError(f"x, row {row}, {where}: {x[row][*place]} is not finite ({more} such); fill it in")
    return x
