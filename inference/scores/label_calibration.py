"""Label probabilities made to mean what they say, from gold labels that the fit has not seen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special

from ...data import AnnotationError
from ...data.description import count_text
from ...data.errors import look_up, warn, whole_number
from .against_gold import GoldTasks, against_gold, with_gold
from .gold_sample import FEW
from .label_scores import SMALLEST, log_scores, scores_of, standard_error

LEAST = 10  # gold labels without which nothing can be held out
BOUNDS = (0.02, 200.0)  # of the temperature

Map = Callable[[np.ndarray], np.ndarray]  # from probabilities to calibrated ones, (n, K)


@dataclass(frozen=True, eq=False, repr=False)
class LabelCalibration:
    """Calibrated label probabilities, and what calibration gains on held-out gold labels.

    Attributes:
        probabilities: tasks × classes, as ``fit.probabilities``; of tasks whose label the fit was told as they were.
        scores: "as fitted" and "calibrated", as :func:`crowdppl.score` has them; the latter of each gold task by a
            calibration that has not seen its gold label.
        gain: by how much the log-score rises on held-out gold labels, in nats a task.
        gain_se: its standard error.
        method: "temperature" or "isotonic".
        temperature: T, above 1 where labels were too sure; None for "isotonic".
        n_gold: how many gold labels it is from.
    """

    probabilities: pd.DataFrame
    scores: pd.DataFrame
    gain: float
    gain_se: float
    method: str
    temperature: float | None
    n_gold: int

    def __str__(self) -> str:
        how = "isotonic regression" if self.temperature is None else f"temperature {self.temperature:.2f}"
        before, after = self.scores.iloc[0], self.scores.iloc[1]
        return (
            f"label probabilities calibrated by {how} on {self.n_gold:,} gold labels: on held-out gold labels the mean "
            f"log-score goes from {before['log_score']:.3f} to {after['log_score']:.3f} (by {self.gain:+.3f} ± "
            f"{self.gain_se:.3f}), the calibration error from {before['ece']:.3f} to {after['ece']:.3f}"
        )

    __repr__ = __str__


def calibrate_labels(
    source: Any, gold: Any = None, *, method: str = "temperature", folds: int = 10, seed: int = 0
) -> LabelCalibration:
    r"""Calibrate label probabilities on gold labels that the fit was not told.

    ``"temperature"`` takes each probability to the power :math:`1/T` and scales them to sum 1 (Guo et al. 2017), with
    the T of the greatest likelihood of the gold labels times :math:`\log T \sim \text{Normal}(0, 1)`, which bounds T
    where all gold labels agree with the labels. The order of the classes stays. ``"isotonic"`` replaces each class's
    probability by a step function that rises with it (Zadrozny & Elkan 2002, one class against the others, scaled to
    sum 1; scikit-learn's ``IsotonicRegression``), between :math:`1/(n+2)` and :math:`(n+1)/(n+2)`; it asks
    for more gold labels than the one number of a temperature.

    What it gains is measured by K folds: the gold labels of each fold are scored by a calibration on the others.

    Example:
        >>> import crowdppl as cp
        >>> annotations, _ = cp.simulate("glad", n_tasks=400, n_workers=20, annotations_per_task=5, gold=0.3, seed=2)
        >>> fit = cp.fit("dawid_skene", annotations, progress=False)
        >>> found = cp.calibrate_labels(fit)
        >>> found.probabilities.shape
        (400, 2)

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: gold labels of tasks drawn at random, as for :func:`crowdppl.estimate`; None for those of the annotations.
        method: ``"temperature"`` or ``"isotonic"``.
        folds: of the gold tasks, from 2; one for each gold task where there are fewer.
        seed: of the folds.

    Returns:
        :class:`LabelCalibration`.

    Warns:
        AnnotationWarning: there are fewer than 20 gold labels, or fewer than 50 for ``"isotonic"``.

    Raises:
        AnnotationError: there are fewer than 10 gold labels that the fit was not told, or they are of an unknown task
            or class.
        UnknownNameError: there is no such `method`.
        ValueError: `folds` is no whole number from 2.
        TypeError: `source` is something else.
    """
    learn = look_up("method", method, METHODS)
    folds = whole_number("folds", folds, 2)
    found = against_gold(source, gold)
    n = len(found.gold)
    if n < LEAST:
        raise AnnotationError(
            f"gold: {count_text(n, 'gold label')} that the fit was not told {'is' if n == 1 else 'are'} too few to "
            f"calibrate {len(found.classes)} classes' probabilities and to hold some out; at least {LEAST} are needed, "
            "and 50 say something"
        )
    enough = FEW if method == "temperature" else 50
    if n < enough:
        warn(f"{n} gold labels are few to calibrate by method={method!r}; {enough} or more are advised")
    held_out = replace(found, probabilities=_cross_fitted(found, learn, folds, seed))
    scores = pd.DataFrame([scores_of(found), scores_of(held_out)], index=pd.Index(["as fitted", "calibrated"]))
    difference = log_scores(held_out) - log_scores(found)
    everything = with_gold(source, gold)
    values = everything.probabilities.to_numpy(dtype=float)
    calibrated = np.where(everything.gold_used[:, None], values, learn(found.probabilities, found.gold)(values))
    return LabelCalibration(
        pd.DataFrame(calibrated, everything.probabilities.index, everything.probabilities.columns),
        scores.astype({"tasks": int, "gold_used": int}),
        float(difference.mean()),
        standard_error(difference),
        method,
        temperature_of(found.probabilities, found.gold) if method == "temperature" else None,
        n,
    )


def temperature_of(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """The temperature of gold tasks: ``probabilities (n, K)``, and ``gold (n,)`` as positions of classes."""
    log = np.log(np.maximum(probabilities, SMALLEST))

    def loss(log_temperature: float) -> float:
        scaled = special.log_softmax(log / np.exp(log_temperature), axis=-1)
        return float(-scaled[np.arange(len(gold)), gold].sum() + log_temperature**2 / 2)

    found = optimize.minimize_scalar(loss, bounds=np.log(BOUNDS), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def _temperature(probabilities: np.ndarray, gold: np.ndarray) -> Map:
    temperature = temperature_of(probabilities, gold)
    return lambda p: special.softmax(np.log(np.maximum(p, SMALLEST)) / temperature, axis=-1)


def _isotonic(probabilities: np.ndarray, gold: np.ndarray) -> Map:
    from sklearn.isotonic import IsotonicRegression  # a second to import

    n, k = probabilities.shape
    columns = range(1, 2) if k == 2 else range(k)
    bounds = {"y_min": 1 / (n + 2), "y_max": (n + 1) / (n + 2), "out_of_bounds": "clip"}
    steps = [IsotonicRegression(**bounds).fit(probabilities[:, j], gold == j) for j in columns]

    def calibrated(p: np.ndarray) -> np.ndarray:
        risen = np.column_stack([step.predict(p[:, j]) for j, step in zip(columns, steps, strict=True)])
        return np.column_stack([1 - risen, risen]) if k == 2 else risen / risen.sum(-1, keepdims=True)

    return calibrated


METHODS: Mapping[str, Callable[[np.ndarray, np.ndarray], Map]] = {"temperature": _temperature, "isotonic": _isotonic}


def _cross_fitted(
    found: GoldTasks, learn: Callable[[np.ndarray, np.ndarray], Map], folds: int, seed: int
) -> np.ndarray:
    """Each gold task's calibrated probabilities by the gold labels of the other folds, ``(n, K)``."""
    n = len(found.gold)
    calibrated = np.empty_like(found.probabilities)
    for part in np.array_split(np.random.default_rng(seed).permutation(n), min(folds, n)):
        others = np.delete(np.arange(n), part)
        calibrated[part] = learn(found.probabilities[others], found.gold[others])(found.probabilities[part])
    return calibrated
