"""Parts of a saved fit: a story at its draws, or a rule without a likelihood, checked when they come back.

Sizes are those of the arrays before a story or a network is made of them: a claim alone allocates nothing.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...data import AnnotationError, Annotations
from ...data.errors import StorageError
from ...models import KNOWN_STORIES, Story, StoryError, find_story
from ...models.parts.classifier import PREFIX
from ...models.parts.general import split_parts
from ...models.parts.truth_prior import ClassPrior, truth_prior_from_json
from ..densities.model import Model
from ..densities.programs import traced
from ..densities.sites import parameter_sites
from ..engines.finding import Finding
from ..engines.outcome import Outcome
from ..fitted.by_rule import ByRule
from ..fitted.fitted import Fitted
from .arviz_groups import FIT_GROUP, modes_from
from .checked_arrays import Arrays, read_groups, read_weights
from .checked_json import DECODING, decode
from .manifest import MANIFEST, posterior_file, weights_file
from .stored_annotations import GROUPS, annotations_from, checked_probabilities, given_rows_from

SIZES = 10_000
"""Hyperparameters that are whole numbers are sizes of something that the draws have, or at most this."""


def read_rule(about: Mapping[str, Any], classifier: Any, folder: Path) -> ByRule:
    """A rule, of what the manifest and the files say.

    Args:
        about: the part of the manifest.
        classifier: the module or function, where the classifier is not one of crowdppl's own.

    Raises:
        StorageError: an array is missing or is of other sizes, or the classifier's network is not known.
    """
    groups = read_groups(folder / posterior_file(0), (FIT_GROUP, *GROUPS))
    annotations = annotations_from(about, groups, folder)
    arrays = groups.get(FIT_GROUP, {})
    if missing := [name for name in ("label_probability", "history", *about["by_worker"]) if name not in arrays]:
        raise StorageError(f"{folder}: posterior.nc lacks {', '.join(map(repr, missing[:3]))}")
    weights = read_weights(folder / weights_file(0), about["weights"]) if about["weights"] else {}
    posterior = checked_probabilities(arrays["label_probability"], annotations, folder)  # before a network is made
    by_worker = {name: arrays[name] for name in about["by_worker"]}
    if any(value.shape != (annotations.n_workers,) for value in by_worker.values()):
        raise StorageError(f"{folder}: the workers' numbers in posterior.nc are not of the workers in {MANIFEST}")
    known = about["classifier"]
    return ByRule(
        about["rule"],
        annotations,
        posterior,
        classifier=None if known is None else _restored_prior(known, classifier, weights, annotations, folder),
        weights=weights,
        settings={name: decode(value) for name, value in about["settings"].items()},
        by_worker=by_worker,
        history=arrays["history"],
        findings=_findings(about),
    )


def read_story(about: Mapping[str, Any], number: int, given: Story | None, classifier: Any, folder: Path) -> Fitted:
    """A story at its draws, of what the manifest and the files say.

    Args:
        about: the part of the manifest.
        number: of the part, by which its files are named.
        given: the story's function, where it is not one of crowdppl's own.
        classifier: the module or function, where the classifier is not one of crowdppl's own.

    Raises:
        StorageError: an array is missing or is of other sizes, or the story or the classifier's network is not known.
    """
    story, shared = split_parts(_story(about, given), {})
    groups = read_groups(folder / posterior_file(number), ("posterior", "sample_stats", FIT_GROUP, *GROUPS))
    annotations = annotations_from(about, groups, folder)
    outcome = _outcome(about, groups, folder, number)
    posterior = checked_probabilities(groups[FIT_GROUP]["label_probability"], annotations, folder)
    _check_lengths(about["dims"], outcome, annotations, folder)
    try:
        modes = modes_from(groups[FIT_GROUP], annotations.n_tasks, annotations.n_classes)
    except (ValueError, LookupError, TypeError) as error:
        raise StorageError(f"{folder}: what posterior.nc says of modes cannot be read: {error}") from error
    hyperparameters = shared | _hyperparameters(about, classifier, outcome, annotations, folder)
    model = Model(story, hyperparameters)
    _check_parameters(model, annotations, about["dims"], outcome, folder)
    return Fitted(
        model=model,
        source=annotations,
        method=about["method"],
        settings={name: decode(value) for name, value in about["settings"].items()},
        outcome=outcome._replace(modes=modes),
        stored_posterior=posterior,
        dims={name: tuple(dims) for name, dims in about["dims"].items()},
        origin=about.get("origin", {}),
        findings=_findings(about),
        given_rows=given_rows_from(groups[FIT_GROUP], annotations, folder),
    )


def _findings(about: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings that a part has, which the schema has checked."""
    return tuple(Finding(**fields) for fields in about["findings"])


def _story(about: Mapping[str, Any], given: Story | None) -> Story:
    """The story's function: one of crowdppl's own by its name, or the one given; a file's name is never imported."""
    own = None if about["own_story"] else KNOWN_STORIES.get(about["story"])
    chosen = own if given is None else given
    if chosen is None:
        raise StorageError(
            f"{about['story']!r} is none of crowdppl's stories; give its function: load_fit(path, story=…)"
        )
    return find_story(chosen)


def _outcome(about: Mapping[str, Any], groups: Mapping[str, Arrays], folder: Path, number: int) -> Outcome:
    """Return the engine's outcome, with one number of chains and draws for all parameters."""
    posterior, found = groups.get("posterior", {}), groups.get(FIT_GROUP, {})
    names = about["draws"]
    held = [name for name in about["fixed"] if name not in about["weights"]]
    missing = [name for name in names if name not in posterior] + [
        name for name in ("label_probability", "history", *held) if name not in found
    ]
    if missing:
        raise StorageError(f"{folder}: {posterior_file(number)} lacks {', '.join(map(repr, missing[:3]))}")
    weights = read_weights(folder / weights_file(number), about["weights"]) if about["weights"] else {}
    fixed = {name: weights[name] if name in weights else found[name] for name in about["fixed"]}
    draws, stats = {name: posterior[name] for name in names}, groups.get("sample_stats", {})
    shapes = {value.shape[:2] for value in draws.values()}
    chains = next(iter(shapes))
    if len(shapes) > 1 or len(chains) < 2 or 0 in chains or any(value.shape != chains for value in stats.values()):
        raise StorageError(f"{folder}: the draws in posterior.nc are not of one number of chains and draws")
    for name, value in (draws | fixed).items():
        if not np.isfinite(value).all():
            raise StorageError(f"{folder}: {name} holds numbers that are not finite; it was altered")
    return Outcome(
        draws=draws,
        fixed=fixed,
        history=found["history"],
        stats=stats,
        is_point=about["is_point"],
    )


def _check_lengths(dims: Mapping[str, Any], outcome: Outcome, annotations: Annotations, folder: Path) -> None:
    """Refuse draws whose dimensions are not as long as there are ids of them."""
    k = annotations.n_classes
    lengths = {
        "task": annotations.n_tasks,
        "worker": annotations.n_workers,
        "class": k,
        "truth": k,
        "annotation": annotations.n_levels,
        "abstaining": 1 + len(annotations.abstentions),
        "model": len(annotations.models),
        "row": annotations.n_rows,
        "question": len(annotations.questions) or 1,
    }
    for site, value in outcome.draws.items():
        for name, length in zip(dims.get(site, ()), value.shape[2:], strict=False):
            if lengths.get(name, length) != length:
                raise StorageError(
                    f"{folder}: {site!r} has {length} along {name}, and {MANIFEST} has {lengths[name]}; the files are "
                    "of two fits, or were altered"
                )


def _hyperparameters(
    about: Mapping[str, Any], classifier: Any, outcome: Outcome, annotations: Annotations, folder: Path
) -> dict[str, Any]:
    saved = about["hyperparameters"]
    largest = max([SIZES, annotations.n_rows, *(value.size for value in outcome.draws.values())])
    found = {}
    for name, value in saved.items():
        if isinstance(value, int) and abs(value) > largest:
            raise StorageError(f"{folder}: the hyperparameter {name}={value} is larger than anything that the fit has")
        if isinstance(value, dict) and "truth_prior" in value:
            found[name] = _truth_prior(value, classifier, outcome, annotations, folder)
            continue
        try:
            found[name] = decode(value)
        except (AnnotationError, *DECODING) as error:
            raise StorageError(f"{folder}: the hyperparameter {name} in {MANIFEST} cannot be read: {error}") from None
    return found


def _check_parameters(
    model: Model, annotations: Annotations, saved: dict[str, Any], outcome: Outcome, folder: Path
) -> None:
    """Refuse a story that has other parameters than those that were saved, or of other sizes."""
    name, data = model.story.__name__, annotations.replace(gold=None, seconds=None, when=None)
    try:
        shapes = traced(lambda: {n: np.shape(site["value"]) for n, site in parameter_sites(model, data).items()})
    except (StoryError, TypeError, ValueError, MemoryError, ArithmeticError, KeyError, AttributeError) as error:
        raise StorageError(f"{folder}: the story {name} cannot be told with what the files have: {error}") from error
    lacking, other = sorted(set(saved) - set(shapes)), sorted(set(shapes) - set(saved))
    if lacking or other:
        differing = [f"{site!r} is saved only" for site in lacking] + [f"{site!r} is not saved" for site in other]
        raise StorageError(
            f"{folder}: the story {name} has other parameters than the one that was fitted ({', '.join(differing)}); "
            "give the function that was fitted: load_fit(path, story=…)"
        )
    values = {site: np.shape(value) for site, value in outcome.fixed.items()}
    values |= {site: np.shape(value)[2:] for site, value in outcome.draws.items()}
    for site, shape in shapes.items():
        if values.get(site) != shape:
            raise StorageError(
                f"{folder}: {site!r} has shape {values.get(site)} in the files, and {shape} in the story {name}"
            )


def _truth_prior(
    saved: Mapping[str, Any], classifier: Any, outcome: Outcome, annotations: Annotations, folder: Path
) -> ClassPrior:
    """The truth's prior that a file has, with its weights."""
    values = {name: value[0, 0] for name, value in outcome.draws.items()} | outcome.fixed
    weights = {n: np.asarray(v) for n, v in values.items() if n.startswith(PREFIX)}
    return _restored_prior(saved["truth_prior"], classifier, weights, annotations, folder)


def _restored_prior(
    saved: Mapping[str, Any], classifier: Any, weights: Mapping[str, np.ndarray], annotations: Annotations, folder: Path
) -> Any:
    """A prior of the truth, or a classifier, with the weights that a folder has of it."""
    total = sum(value.size for value in weights.values())
    hidden = saved.get("hidden", ())
    units = sum(hidden) + sum(a * b for a, b in pairwise(hidden))  # a network of them has at least as many weights
    if saved.get("network") in ("mlp", "cnn") and units > total:
        raise StorageError(
            f"{folder}: {MANIFEST} has hidden layers {hidden[:5]}, more than the {total:,} weights allow"
        )
    try:
        if saved["kind"] == "torch":
            from .. import torch  # noqa: F401  # its kind is known once it is imported
        if saved["kind"] == "classifier" and annotations.features is None:
            raise StoryError("the classifier was fitted to features, and the file has none")
        return truth_prior_from_json(saved, classifier).restored(weights, annotations)
    except StoryError as error:
        raise StorageError(f"{folder}: {error}; load_fit(path, classifier=…) takes the network") from error
    except DECODING as error:
        raise StorageError(f"{folder}: the prior of the true labels in {MANIFEST} cannot be read: {error}") from error
