"""A fitted story's numbers by ArviZ's groups, arrays and with named tasks, workers and classes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version

import numpy as np

from ...data import Annotations
from ...data.errors import check_name
from ...data.fingerprint import fingerprint
from ...models import StoryError
from ..engines.outcome import Modes
from ..fitted.fitted import Fitted, label_draws
from ..fitted.named_draws import NamedArrays, Variable, coords_of
from ..fitted.pointwise import log_likelihood_by_annotation
from ..fitted.replicated_annotations import Unit, log_prior
from .arviz_predictive import (
    MAJORITY_SHARE,
    annotated_tasks,
    can_be_predicted,
    predictive,
    prior_groups,
    with_majority_share,
)
from .checked_json import is_plain

FIT_GROUP = "fit"  # what is not ArviZ's: the posterior of the labels, the engine's history, parameters without draws
MODES = "mode_"  # before the names of what is known of them
TRUTH_PROBABILITY = "truth_probability"  # P(truth | θ, annotations) in each draw, among the parameters
AROUND_POINT = "around a point, by a few steps of data augmentation"
AFFORDABLE = 5_000_000  # numbers in a group that nobody asked for: 20 MB of float32
PRIOR_DRAWS = 1000
LIKELIHOODS = ("task", "annotation")


def to_groups(
    fitted: Fitted,
    *,
    log_likelihood: str | None = "task",
    truth_probability: bool | None = None,
    posterior_predictive: bool | None = None,
    prior: int | None = None,
    uncertainty: bool = False,
    seed: int = 0,
) -> dict[str, NamedArrays]:
    """A fit's groups, ArviZ's and :data:`FIT_GROUP`: see :meth:`crowdppl.Fit.to_idata`.

    Args:
        fitted: the story at its draws.
        log_likelihood: the unit, ``"task"`` or ``"annotation"``, of log-likelihood and predictive draws; None for no
            log-likelihood.
        truth_probability: whether `posterior` has the label probabilities in each draw. None, as of the next two: where
            that is no more than :data:`AFFORDABLE` numbers.
        posterior_predictive: whether to replicate the annotations in each draw; by default not at a point.
        prior: number of draws from the prior; 0 for none; by default :data:`PRIOR_DRAWS`, and none at a point or of a
            story that takes something from the annotations.
        uncertainty: whether a point comes with draws around it.
        seed: of what is drawn.

    Raises:
        UnknownNameError: `log_likelihood` is none of these.
        AnnotationError: predictive draws by annotation are asked for that cannot be (:func:`.predicted`).
        StoryError: draws from the prior are asked for that the story does not have.
    """
    has_draws, fitted = fitted.has_draws, fitted.with_uncertainty if uncertainty else fitted
    annotations, outcome = fitted.annotations, fitted.outcome
    unit: Unit = "annotation" if _named_unit(log_likelihood) == "annotation" else "task"
    draws = int(np.prod(fitted.shape))
    rows, n_labels = annotations.n_annotations, annotations.n_tasks * annotations.n_classes
    if truth_probability is None:
        truth_probability = draws * n_labels <= AFFORDABLE
    if posterior_predictive is None:
        posterior_predictive = has_draws and draws * rows <= AFFORDABLE and can_be_predicted(fitted, unit)

    posterior = fitted.named_arrays
    if truth_probability:
        labels: Variable = (("chain", "draw", "task", "truth"), label_draws(fitted))
        posterior = posterior.with_more({TRUTH_PROBABILITY: labels}, coords_of(annotations, ("task", "truth")))
    said = {"draws": AROUND_POINT} if fitted.has_draws and not has_draws else {}
    groups = {"posterior": posterior.with_more(attrs=provenance(fitted) | said)}
    if posterior_predictive:
        groups["posterior_predictive"] = predictive(fitted, unit, seed)
    if not said:  # draws around a point are not the posterior's: neither LOO nor a sensitivity follows from them
        if log_likelihood is not None:
            groups["log_likelihood"] = _log_likelihood(fitted, unit)
        groups["log_prior"] = log_prior(fitted)
    if outcome.stats:
        coords = {"chain": np.arange(fitted.shape[0]), "draw": np.arange(fitted.shape[1])}
        stats: dict[str, Variable] = {name: (("chain", "draw"), value) for name, value in outcome.stats.items()}
        groups["sample_stats"] = NamedArrays(stats, coords)
    if prior or (prior is None and has_draws and PRIOR_DRAWS * rows <= AFFORDABLE):
        with suppress(*(() if prior else (StoryError,))):  # a story that takes something from the annotations has none
            groups |= prior_groups(fitted, prior or PRIOR_DRAWS, unit, seed)
    groups["observed_data"] = observed_of(annotations)
    if unit == "task":
        groups["observed_data"] = with_majority_share(groups["observed_data"], annotations)
    groups["constant_data"] = constants_of(annotations)
    groups[FIT_GROUP] = NamedArrays(
        {"label_probability": (("task", "truth"), fitted.posterior), "history": (("iteration",), outcome.history)}
        | {name: (_unnamed(name, np.ndim(value)), np.asarray(value)) for name, value in outcome.fixed.items()}
        | ({} if outcome.modes is None else modes_of(outcome.modes)),
        coords_of(annotations, ("task", "truth")),
    )
    return groups


def modes_of(modes: Modes) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """The modes in which starts of EM or chains ended, as variables of :data:`FIT_GROUP`."""
    dims = {
        "log_posterior": ("mode",),
        "log_mass": ("mode",),
        "labels": ("mode", "task"),
        "of_end": ("end",),
        "kept": (),
    }
    return {MODES + name: (dims[name], np.asarray(value)) for name, value in modes._asdict().items()}


def modes_from(found: Mapping[str, np.ndarray], n_tasks: int, n_classes: int) -> Modes | None:
    """The modes of :func:`modes_of`; None where a file has none.

    Raises:
        ValueError: they are of other sizes than each other and the labels, or hold what cannot be.
    """
    if MODES + "labels" not in found:
        return None
    log_posterior, log_mass, labels, of_end, kept = (np.asarray(found[MODES + name]) for name in Modes._fields)
    n, n_ends = len(labels), of_end.size
    fits = (
        labels.shape == (n, n_tasks)
        and log_posterior.shape == log_mass.shape == (n,)
        and (of_end.ndim, kept.ndim) == (1, 0)
        and all(value.dtype.kind in "iu" for value in (labels, of_end, kept))
        and _within(labels, 0, n_classes)
        and _within(kept, -1, n_ends)
        and set(of_end.tolist()) == set(range(n))
        and (n == 1 or bool(np.isfinite(log_posterior).all() and not np.isinf(log_mass).any()))  # NaN: unknown
    )
    if not fits:
        raise ValueError("they are not of one size, or hold what cannot be")
    return Modes(log_posterior, log_mass, labels, of_end, int(kept))


def _within(values: np.ndarray, low: int, end: int) -> bool:
    return bool(((values >= low) & (values < end)).all())


def _named_unit(log_likelihood: str | None) -> str | None:
    return None if log_likelihood is None else check_name("log_likelihood", log_likelihood, LIKELIHOODS)


def _log_likelihood(fitted: Fitted, unit: Unit) -> NamedArrays:
    coords = {"chain": np.arange(fitted.shape[0]), "draw": np.arange(fitted.shape[1])}
    if unit == "annotation":
        return NamedArrays({"annotation": (("chain", "draw", "row"), log_likelihood_by_annotation(fitted))}, coords)
    annotated = annotated_tasks(fitted.annotations)  # the others have nothing that could be left out
    said = {"description": "log-probability of all annotations of the task, the truth summed out"}
    by_task: Variable = (("chain", "draw", "task"), fitted.log_likelihood()[..., annotated], said)
    return NamedArrays({MAJORITY_SHARE: by_task}, coords | {"task": fitted.annotations.tasks.coords()[annotated]})


def observed_of(annotations: Annotations) -> NamedArrays:
    """The annotations, row by row."""
    named = coords_of(annotations, ("kind",)) if annotations.abstains else {}
    return NamedArrays({"annotation": (("row",), np.asarray(annotations.label))}, named)


def constants_of(annotations: Annotations) -> NamedArrays:
    """Task and worker of each row, and what else is known; the names of all of them."""
    n_feature_dims = 0 if annotations.features is None else np.ndim(annotations.features) - 1
    by_dims = {
        "row_task": (("row",), annotations.task),
        "row_worker": (("row",), annotations.worker),
        "row_count": (("row",), annotations.count),
        "row_seconds": (("row",), annotations.seconds),
        "row_when": (("row",), annotations.when),
        "row_mirrored": (("row",), None if annotations.mirrored is None else annotations.mirrored.astype(np.int8)),
        "gold": (("task",), annotations.gold),
        "evidence": (("task", "truth"), annotations.evidence),
        "prior": (("task", "truth"), annotations.prior),
        "sides": (("task", "side"), annotations.sides),
        "model_scores": (("task", "model", "truth"), annotations.model_scores),
        "model_reference": (("model", "reference", "truth"), annotations.model_reference),
        "features": (("task", *_unnamed("features", n_feature_dims)), annotations.features),
        "worker_features": (("worker", "worker_feature"), annotations.worker_features),
        "item_features": (("item", "item_feature"), annotations.item_features),
    }
    variables = {name: (dims, np.asarray(value)) for name, (dims, value) in by_dims.items() if value is not None}
    return NamedArrays(variables, coords_of(annotations, ("task", "worker", "truth", "model")))


def _unnamed(name: str, n_dims: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(n_dims))


def provenance(fitted: Fitted) -> dict[str, str]:
    """The library, the story and its hyperparameters, the engine, its settings and seed, the data, time and versions.

    ``created_at`` and ``versions`` are of the fit, not of the file; a fit from files that do not know them has none.
    """
    annotations = fitted.annotations
    settings = {name: value if is_plain(value) else repr(value) for name, value in fitted.settings.items()}
    return {
        "inference_library": "crowdppl",
        "inference_library_version": version("crowdppl"),
        "story": fitted.story,
        "hyperparameters": json.dumps({name: repr(value) for name, value in fitted.model.hyperparameters.items()}),
        "method": fitted.method,
        "settings": json.dumps(settings),
        "seed": str(fitted.settings.get("seed", "")),
        "data": f"{annotations.n_tasks} tasks, {annotations.n_workers} workers, {annotations.n_classes} classes, "
        f"{annotations.n_annotations} annotations"
        + (f", abstentions {list(annotations.abstentions)}" if annotations.abstains else ""),
        "data_fingerprint": fingerprint(annotations),
        **fitted.origin,
    }
