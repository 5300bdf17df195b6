"""Fits on disk: a folder that others may open, of which nothing is ever executed.

``posterior.nc`` has draws and annotations, and ArviZ opens it too; ``weights.safetensors`` has weights of a
classifier that have no draws; ``fit.json`` has the rest, as ``fit.schema.json`` describes; ``manifest.json`` has size
and checksum of each (``manifest.schema.json``). :func:`read` looks at sizes and checksums first, follows no link,
imports nothing that a file names, and allocates nothing that a file cannot account for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ...data import AnnotationError, Annotations
from ...data.atomic import whole_folder
from ...data.errors import StorageError
from ...models import KNOWN_STORIES, Classifier, Story, StoryError, find_story
from ...models.parts.classifier import PREFIX, Network
from ...models.parts.general import unwrapped
from ...models.parts.truth_prior import ClassPrior, truth_prior_from_json
from ..densities.model import Model
from ..densities.program_cache import use_program_cache
from ..densities.sites import parameter_sites
from ..engines.checkpoints import FILE as STATE
from ..engines.checkpoints import of_several, said_of
from ..engines.finding import Finding
from ..engines.outcome import Outcome
from ..fitted.fitted import Fitted
from .arviz_data import write_groups
from .arviz_groups import FIT_GROUP, modes_from, to_groups
from .checked_arrays import Arrays, read_groups, read_weights, write_weights
from .checked_json import DECODING, decode, encode, encode_settings
from .sealed_folder import ABOUT, POSTERIOR, WEIGHTS, read_about, seal
from .stored_annotations import GROUPS, annotations_from, checked_probabilities, ids_json

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 4
"""The format that is written, and the newest that is known."""

SIZES = 10_000
"""Hyperparameters that are whole numbers are sizes of something that the draws have, or at most this."""


def save(fitted: Fitted, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fit to the folder ``path``, whole or not at all.

    Args:
        overwrite: replace a folder that has something in it.

    Raises:
        StorageError: where the folder cannot be written, or a hyperparameter is of a kind that JSON cannot hold.
        AnnotationError: for ids of a type that JSON cannot bring back.
    """
    weights = {name: value for name, value in fitted.outcome.fixed.items() if name.startswith(PREFIX)}
    about: dict[str, Any] = {
        "format": FORMAT,
        "story": fitted.story,
        "own_story": KNOWN_STORIES.get(fitted.story) is not fitted.model.story,
        "hyperparameters": {name: encode(name, value) for name, value in fitted.model.hyperparameters.items()},
        "method": fitted.method,
        "settings": encode_settings(fitted.settings),
        "findings": [finding.to_json() for finding in fitted.findings],
        "is_point": not fitted.has_draws,
        "dims": fitted.dims,
        "draws": list(fitted.draws),
        "fixed": list(fitted.outcome.fixed),
        "origin": dict(fitted.origin),
        "weights": list(weights),
        **ids_json(fitted.annotations),
    }
    groups = to_groups(fitted)
    groups[FIT_GROUP] = groups[FIT_GROUP].drop_vars(list(weights), errors="ignore")
    with whole_folder(path, overwrite=overwrite) as folder:
        write_files(groups, about, weights, folder)


def write_files(
    groups: Mapping[str, xr.Dataset], about: Mapping[str, Any], weights: Mapping[str, Any], folder: Path
) -> None:
    """Write ``posterior.nc``, the weights where there are any, ``fit.json`` and the manifest to an empty folder.

    Raises:
        AnnotationError: an id is no text that a file can hold.
    """
    try:
        write_groups(groups, folder / POSTERIOR)
    except UnicodeEncodeError as error:
        raise AnnotationError(f"the id {error.object!r} is no text that a file can hold: {error.reason}") from None
    if weights:
        write_weights(weights, folder / WEIGHTS)
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / ABOUT).write_text(text, encoding="utf-8")
    seal(folder)


def read(
    path: str | os.PathLike[str],
    *,
    story: Story | None = None,
    classifier: Network | Classifier | Any | None = None,
) -> Fitted:
    """Read what :func:`save` wrote: see :func:`crowdppl.load_fit`.

    Args:
        story: the function, where the story is not one of crowdppl's own.
        classifier: the module or function, where the classifier is not one of crowdppl's own, or is a torch module; its
            weights are read.

    Raises:
        StorageError: where there is no fit, a file is not as it was written, it was written by a newer crowdppl, its
            story or its classifier's network is not known, or the network given has other weights.
    """
    folder = Path(path)
    _refuse_unsaved(folder)
    about = read_about(folder, FORMAT, "fit")
    use_program_cache()
    story, shared = unwrapped(_story(about, story), {})
    groups = read_groups(folder / POSTERIOR, ("posterior", "sample_stats", FIT_GROUP, *GROUPS))
    annotations = annotations_from(about, groups, folder)
    outcome = _outcome(about, groups, folder)
    # Sizes are those of the arrays before a story or a network is made of them: a claim alone allocates nothing.
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
        annotations=annotations,
        method=about["method"],
        settings={name: decode(value) for name, value in about["settings"].items()},
        outcome=outcome._replace(modes=modes),
        stored_posterior=posterior,
        dims={name: tuple(dims) for name, dims in about["dims"].items()},
        origin=about.get("origin", {}),
        findings=findings_from(about),
    )


def findings_from(about: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings that a file has, which its schema has checked."""
    return tuple(Finding(**fields) for fields in about.get("findings", ()))


def _refuse_unsaved(folder: Path) -> None:
    """Refuse checkpoints, and what a streamed fit left, which are no saved fit.

    Raises:
        StorageError: with how to read it.
    """
    if (folder / ABOUT).exists():
        return
    if (folder / STATE).is_file():
        about = said_of(folder / STATE)
        if "files" in about:
            raise StorageError(
                f"{folder} has the state of a streamed fit, and no fit in memory; cp.fit(story, scan, folder=…) with "
                "the same arguments reads it again"
            )
        raise StorageError(
            f"{folder} has the checkpoint of a fit of {_of(about)}, and no saved fit; the same cp.fit(…) with "
            f"checkpoint={str(folder)!r}, resume=True goes on from it, or gives the fit at once where it had come to "
            "its end; fit.save(path) then writes what load_fit reads"
        )
    if several := of_several(folder):
        stories = dict.fromkeys(_of(said_of(path)) for path in several)
        raise StorageError(
            f"{folder} has the checkpoints of {len(several)} fits ({', '.join(stories)}), and no saved fit; the same "
            f"call with checkpoint={str(folder)!r}, resume=True goes on from them, and .save(path) of what it gives "
            "writes what load_fit reads"
        )
    if (folder / "labels").is_dir() and (folder / "parameters.nc").is_file():
        raise StorageError(
            f"{folder} has the results of a streamed fit, and no fit in memory: pd.read_parquet(folder / 'labels') has "
            "the labels, pd.read_csv(folder / 'workers.csv') the workers, and xarray.open_dataset(folder / "
            "'parameters.nc') the parameters; crowdppl fit --no-stream writes a fit, where memory allows it"
        )


def _of(about: Mapping[str, Any]) -> str:
    """The story and the engine of a checkpoint's fit, for a reader."""
    story = str(about.get("story", "?")).partition(" ")[0].rpartition(".")[-1]
    return f"{story} by {str(about.get('method', '?')).upper()}"


def _story(about: Mapping[str, Any], given: Story | None) -> Story:
    """The story's function: one of crowdppl's own by its name, or the one given; a file's name is never imported."""
    own = None if about["own_story"] else KNOWN_STORIES.get(about["story"])
    chosen = own if given is None else given
    if chosen is None:
        raise StorageError(
            f"{about['story']!r} is none of crowdppl's stories; give its function: load_fit(path, story=…)"
        )
    return find_story(chosen)


def _outcome(about: Mapping[str, Any], groups: Mapping[str, Arrays], folder: Path) -> Outcome:
    """Return the engine's outcome, with one number of chains and draws for all parameters.

    Raises:
        StorageError: a variable is missing, not finite, or of other numbers of chains and draws.
    """
    posterior, found = groups.get("posterior", {}), groups.get(FIT_GROUP, {})
    names = about.get("draws", list(posterior))  # formats before 4 name no draws
    held = [name for name in about["fixed"] if name not in about.get("weights", ())]
    missing = [name for name in names if name not in posterior] + [
        name for name in ("label_probability", "history", *held) if name not in found
    ]
    if missing or not names:
        raise StorageError(f"{folder}: posterior.nc lacks {', '.join(map(repr, missing[:3])) or 'all draws'}")
    weights = read_weights(folder / WEIGHTS, about["weights"]) if about.get("weights") else {}
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
    """Refuse draws whose dimensions are not as long as there are ids of them.

    Raises:
        StorageError: with the parameter and the dimension.
    """
    k = annotations.n_classes
    lengths = {
        "task": annotations.n_tasks,
        "worker": annotations.n_workers,
        "class": k,
        "truth": k,
        "annotation": k,
        "abstaining": 1 + annotations.n_kinds - k,
        "model": len(annotations.models),
        "row": annotations.n_rows,
    }
    for site, value in outcome.draws.items():
        for name, length in zip(dims.get(site, ()), value.shape[2:], strict=False):
            if lengths.get(name, length) != length:
                raise StorageError(
                    f"{folder}: {site!r} has {length} along {name}, and fit.json has {lengths[name]}; the files are of "
                    "two fits, or were altered"
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
            raise StorageError(f"{folder}: the hyperparameter {name} in fit.json cannot be read: {error}") from None
    return found


def _check_parameters(
    model: Model, annotations: Annotations, saved: dict[str, Any], outcome: Outcome, folder: Path
) -> None:
    """Refuse a story that has other parameters than those that were saved, or of other sizes.

    Raises:
        StorageError: with the parameters that differ.
    """
    name, data = model.story.__name__, annotations.replace(gold=None, seconds=None)
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        jax.eval_shape(
            lambda: shapes.update({n: np.shape(site["value"]) for n, site in parameter_sites(model, data).items()})
        )
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
    return restored_prior(saved["truth_prior"], classifier, weights, annotations, folder)


def restored_prior(
    saved: Mapping[str, Any], classifier: Any, weights: Mapping[str, np.ndarray], annotations: Annotations, folder: Path
) -> Any:
    """A prior of the truth, or a classifier, with the weights that a folder has of it.

    Raises:
        StorageError: its network is not known, or is larger than the weights that there are.
    """
    total = sum(value.size for value in weights.values())
    hidden = saved.get("hidden", ())
    units = sum(hidden) + sum(a * b for a, b in pairwise(hidden))  # a network of them has at least as many weights
    if saved.get("network") in ("mlp", "cnn") and units > total:
        raise StorageError(f"{folder}: fit.json has hidden layers {hidden[:5]}, more than the {total:,} weights allow")
    try:
        if saved["kind"] == "torch":
            from .. import torch  # noqa: F401  # its kind is known once it is imported
        if saved["kind"] == "classifier" and annotations.features is None:
            raise StoryError("the classifier was fitted to features, and the file has none")
        return truth_prior_from_json(saved, classifier).restored(weights, annotations)
    except StoryError as error:
        raise StorageError(f"{folder}: {error}; load_fit(path, classifier=…) takes the network") from error
    except DECODING as error:
        raise StorageError(f"{folder}: the prior of the true labels in fit.json cannot be read: {error}") from error
