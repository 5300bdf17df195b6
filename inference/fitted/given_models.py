"""Scores of the models whose probabilities were given: what these were found to be worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.id_text import listing
from ...models.parts.model_probabilities import BIAS, SLOPE, tempered
from ..densities.enumerated import Parameters
from ..densities.programs import compiled, keys_of
from .fitted import Fitted
from .intervals import INTERVAL, of_draws
from .posterior import Posterior, posterior_of
from .realised import DRAWS

BINS = 10  # of the calibration error
SHOWN = 3  # models in a text; of more of them their number


def model_frame(fit: Posterior | Fitted, interval: float = INTERVAL) -> pd.DataFrame:
    """By model whose probabilities were given to the fit, how good they are; with low and high.

    Of an average of stories it is by the fit of the largest weight.

    - tasks: how many the model has probabilities of.
    - accuracy: in the long run, how often the class that the model puts first is right: the mean of its tempered
      probability of that class.
    - realised_accuracy: the share of its tasks in which the class that it puts first is right, by the labels of the
      story; unlike the workers' it does not allow for misled tasks (:mod:`.misled`).
    - slope: what its log-probabilities are multiplied by; 1 for a model that is as sure as it may be, less for one that
      is too sure, 0 for one that says nothing. The temperature is its reciprocal, NaN where it is not above 0.
    - calibration_error: the expected calibration error of the probabilities as they were given, over ten bins, with the
      label posterior in the place of true labels.

    Raises:
        AnnotationError: no probabilities were given.
        ValueError: for another `interval`.
    """
    _, fitted = posterior_of(fit).heaviest
    data = fitted.annotations
    if data.model_scores is None:
        raise AnnotationError("no model's probabilities were given to the fit; give cp.fit(…, probabilities=frame)")
    scores, around = np.asarray(data.model_scores), fitted.with_uncertainty
    is_given = ~np.isnan(scores[..., 0])  # (N, M)
    first = np.nan_to_num(scores).argmax(-1)
    frame = pd.DataFrame({"tasks": is_given.sum(0)}, index=data.models.to_index("model"))
    right = np.take_along_axis(np.asarray(fitted.posterior, float), first, axis=1)
    realised = np.asarray(_right(around.thinned(n := min(int(np.prod(around.shape)), DRAWS[1])), keys_of(0, n)), float)
    found = {
        "accuracy": (_accuracy(fitted), _accuracy(around)),
        "realised_accuracy": (((right * is_given).sum(0) / is_given.sum(0))[None], realised / is_given.sum(0)),
        "slope": tuple(np.asarray(source.flat_draws[SLOPE]) for source in (fitted, around)),
    }
    for name, (values, draws) in found.items():
        frame[name] = estimate = values.mean(0)
        frame[f"{name}_low"], frame[f"{name}_high"] = of_draws(draws[None], interval, estimate)
    frame["temperature"] = 1 / frame["slope"].where(frame["slope"] > 0)
    own = np.asarray(jax.nn.softmax(jnp.nan_to_num(scores), axis=-1)).max(-1)
    frame["calibration_error"] = [
        _calibration_error(own[given, m], right[given, m]) for m, given in enumerate(is_given.T)
    ]
    return frame


def models_text(fitted: Fitted) -> str:
    """Return the reliability found for each model's probabilities, in words."""
    frame = model_frame(fitted)
    said = [
        f"{name!r} gave probabilities of {row['tasks']:,.0f} of {fitted.annotations.n_tasks:,} tasks, the class that "
        f"it puts first is right in {row['realised_accuracy']:.0%} of them "
        f"({row['realised_accuracy_low']:.0%}–{row['realised_accuracy_high']:.0%}), {_how_sure(row)}"
        for name, row in frame.iterrows()
    ]
    return listing(said, SHOWN, str, of="models, in fit.models", between="; ")


def _how_sure(row: pd.Series) -> str:
    """Return words on a model's certainty, too high or too low, by its slope."""
    multiplied = f"its log-probabilities count {row['slope']:.2f} times"
    if row["slope_low"] <= 0 <= row["slope_high"]:
        return f"and they say nothing that is sure ({multiplied})"
    if row["slope_high"] < 1:
        return f"and it is too sure ({multiplied})"
    if row["slope_low"] > 1:
        return f"and it is not sure enough ({multiplied})"
    return f"and it is about as sure as it may be ({multiplied})"


def _accuracy(fitted: Fitted) -> np.ndarray:
    """In each draw how often the class that a model puts first is right in the long run: ``(draw, M)``."""
    reference = jnp.asarray(fitted.annotations.model_reference).swapaxes(0, 1)  # (R, M, K)
    is_given = ~jnp.isnan(reference[..., 0])
    first = jnp.nan_to_num(reference).argmax(-1)[..., None]

    def of_draw(draw: tuple[Array, Array]) -> Array:
        sure = jnp.exp(jnp.take_along_axis(tempered(reference, *draw), first, axis=-1))[..., 0]
        return jnp.where(is_given, sure, 0.0).sum(0) / is_given.sum(0)

    draws = fitted.thinned(min(int(np.prod(fitted.shape)), DRAWS[1])).flat_draws
    return np.asarray(jax.lax.map(of_draw, (jnp.asarray(draws[SLOPE]), jnp.asarray(draws[BIAS]))), float)


def _calibration_error(sure: np.ndarray, right: np.ndarray) -> float:
    """The mean over tasks of how far the bin's mean confidence is from its share of right labels."""
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, sure - right, BINS)
    return float(np.abs(gaps).sum() / max(len(sure), 1))


@compiled(once=True)
def _right(fitted: Fitted, keys: Array) -> Array:
    """In how many tasks the class that a model puts first is one drawn from the posterior, ``(draw, M)``."""
    data: Annotations = fitted.annotations
    scores = jnp.asarray(data.model_scores)
    is_given, first = ~jnp.isnan(scores[..., 0]), jnp.nan_to_num(scores).argmax(-1)

    def of_draw(draw_and_key: tuple[Parameters, Array]) -> Array:
        draw, key = draw_and_key
        truth = fitted.at(draw).drawn(key)
        return ((truth[:, None] == first) & is_given).sum(0)

    return jax.lax.map(of_draw, (fitted.flat_draws, keys))
