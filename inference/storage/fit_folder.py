"""Fits on disk: a folder with ``posterior.nc``, which ArviZ opens too, and ``fit.json``. Nothing is pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pandas as pd

from ...data import Annotations, Ids
from ...data.atomic import whole_folder
from ...data.errors import StorageError
from ...data.id_json import decode_id, encode_id
from ...models import KNOWN_STORIES, Classifier, Story, StoryError, find_story
from ...models.parts.classifier import PREFIX, Network
from ...models.parts.general import unwrapped
from ...models.parts.truth_prior import ClassPrior, truth_prior_from_json
from ..densities.model import Model
from ..densities.program_cache import use_program_cache
from ..densities.sites import parameter_dims
from ..engines.outcome import Outcome
from ..engines.stream_state import FILE as STATE
from ..fitted.fitted import Fitted
from .arviz_data import read_groups, write_groups
from .arviz_groups import FIT_GROUP, TRUTH_PROBABILITY, to_groups
from .provenance import is_plain

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 1
WITH_MODELS = 3  # the format where models gave probabilities, which an older crowdppl would leave out
WITH_ABSTENTIONS = 2  # the format where there are abstentions, which an older crowdppl would take for classes


def save(fitted: Fitted, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fit to the folder ``path``, whole or not at all.

    Args:
        overwrite: replace a folder that has something in it.

    Raises:
        StorageError: where the folder cannot be written, or a hyperparameter is of a kind that JSON cannot hold.
        AnnotationError: for ids of a type that JSON cannot bring back.
    """
    about: dict[str, Any] = {
        "format": FORMAT,
        "story": fitted.story,
        "own_story": KNOWN_STORIES.get(fitted.story) is not fitted.model.story,
        "hyperparameters": {name: _encode(name, value) for name, value in fitted.model.hyperparameters.items()},
        "method": fitted.method,
        "settings": {name: value if is_plain(value) else repr(value) for name, value in fitted.settings.items()},
        "warnings": fitted.warnings,
        "is_point": not fitted.has_draws,
        "dims": fitted.dims,
        "fixed": list(fitted.outcome.fixed),
        "origin": dict(fitted.origin),
        **ids_json(fitted.annotations),
    }
    if fitted.annotations.abstains:
        about["format"] = WITH_ABSTENTIONS
    if len(fitted.annotations.models):
        about["format"] = WITH_MODELS
    with whole_folder(path, overwrite=overwrite) as folder:
        write_groups(to_groups(fitted), folder / "posterior.nc")
        (folder / "fit.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")


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
        StorageError: where there is no fit, it was written by a newer crowdppl, its story or its classifier's network
            is not known, or the network given has other weights.
    """
    import xarray as xr

    folder = Path(path)
    _refuse_streamed(folder)
    try:
        about = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        groups = read_groups(folder / "posterior.nc")
    except (OSError, json.JSONDecodeError) as error:
        raise StorageError(f"{folder} holds no fit: {error}") from error
    if about["format"] > (known := max(FORMAT, WITH_ABSTENTIONS, WITH_MODELS)):
        raise StorageError(f"{folder} was written by a newer crowdppl (format {about['format']}, known is {known})")
    use_program_cache()
    own = None if about.get("own_story") else KNOWN_STORIES.get(about["story"])
    given = own if story is None else story
    if given is None:
        raise StorageError(
            f"{about['story']!r} is none of crowdppl's stories; give its function: load_fit(path, story=…)"
        )
    story, shared = unwrapped(find_story(given), {})
    posterior, found = groups["posterior"], groups[FIT_GROUP]
    stats = groups["sample_stats"] if "sample_stats" in groups else xr.Dataset()
    annotations = annotations_from(about, groups)
    outcome = Outcome(
        draws={name: posterior[name].to_numpy() for name in map(str, posterior) if name != TRUTH_PROBABILITY},
        fixed={name: found[name].to_numpy() for name in about["fixed"]},
        history=found["history"].to_numpy(),
        stats={str(name): values.to_numpy() for name, values in stats.items()},
        warnings=tuple(about["warnings"]),
        is_point=about["is_point"],
    )
    hyperparameters = shared | {
        name: _decode(value) for name, value in about["hyperparameters"].items() if name != "truth_prior"
    }
    if "truth_prior" in about["hyperparameters"]:
        saved = about["hyperparameters"]["truth_prior"]
        hyperparameters["truth_prior"] = _truth_prior(saved, classifier, outcome, annotations, folder)
    model = Model(story, hyperparameters)
    _check_parameters(model, annotations, about["dims"], folder)
    return Fitted(
        model=model,
        annotations=annotations,
        method=about["method"],
        settings=about["settings"],
        outcome=outcome,
        stored_posterior=found["label_probability"].to_numpy(),
        dims={name: tuple(dims) for name, dims in about["dims"].items()},
        origin=about.get("origin", {}),
    )


def _refuse_streamed(folder: Path) -> None:
    """Refuse what a streamed fit left, which is no fit in memory.

    Raises:
        StorageError: with how to read it.
    """
    if (folder / "fit.json").exists():
        return
    if (folder / STATE).is_file():
        raise StorageError(
            f"{folder} has the state of a streamed fit, and no fit in memory; cp.fit(story, scan, folder=…) with the "
            "same arguments reads it again"
        )
    if (folder / "labels").is_dir() and (folder / "parameters.nc").is_file():
        raise StorageError(
            f"{folder} has the results of a streamed fit, and no fit in memory: pd.read_parquet(folder / 'labels') has "
            "the labels, pd.read_csv(folder / 'workers.csv') the workers, and xarray.open_dataset(folder / "
            "'parameters.nc') the parameters; crowdppl fit --no-stream writes a fit, where memory allows it"
        )


def _check_parameters(model: Model, annotations: Annotations, saved: dict[str, Any], folder: Path) -> None:
    """Refuse a story that has other parameters than those that were saved.

    Raises:
        StorageError: with the parameters that differ.
    """
    name, found = model.story.__name__, set(parameter_dims(model, annotations.replace(gold=None, seconds=None)))
    lacking, other = sorted(set(saved) - found), sorted(found - set(saved))
    if lacking or other:
        differing = [f"{site!r} is saved only" for site in lacking] + [f"{site!r} is not saved" for site in other]
        raise StorageError(
            f"{folder}: the story {name} has other parameters than the one that was fitted ({', '.join(differing)}); "
            "give the function that was fitted: load_fit(path, story=…)"
        )


def _truth_prior(saved: Any, classifier: Any, outcome: Outcome, annotations: Annotations, folder: Path) -> ClassPrior:
    """The truth's prior that a file has, with its weights."""
    try:
        if saved["truth_prior"]["kind"] == "torch":
            from ...models import pyro  # noqa: F401  # its kind is known once it is imported
        prior = truth_prior_from_json(saved["truth_prior"], classifier)
        values = {name: value[0, 0] for name, value in outcome.draws.items()} | outcome.fixed
        return prior.restored({n: np.asarray(v) for n, v in values.items() if n.startswith(PREFIX)}, annotations)
    except StoryError as error:
        raise StorageError(f"{folder}: {error}; load_fit(path, classifier=…) takes the network") from error


def ids_json(annotations: Annotations) -> dict[str, Any]:
    """What JSON keeps of annotations: the ids, and what was said of abstentions and repeats."""
    about: dict[str, Any] = {
        "ids": {kind: getattr(annotations, kind).to_json() for kind in ("tasks", "workers", "classes")}
    }
    if annotations.abstains:
        about["ids"]["abstentions"] = annotations.abstentions.to_json()
        about["informative"] = annotations.informative
    if len(annotations.models):
        about["ids"]["models"] = annotations.models.to_json()
    if annotations.repeats != "keep":
        about["repeats"] = annotations.repeats
    return about


def annotations_from(about: dict[str, Any], groups: Mapping[str, xr.Dataset]) -> Annotations:
    """The annotations of :func:`ids_json` and of the groups ``observed_data`` and ``constant_data``."""
    ids, observed, constant = about["ids"], groups["observed_data"], groups["constant_data"]

    def read(name: str) -> np.ndarray | None:
        return constant[name].to_numpy() if name in constant else None

    return Annotations(
        task=constant["row_task"].to_numpy(),
        worker=read("row_worker"),
        label=observed["annotation"].to_numpy(),
        count=read("row_count"),
        gold=read("gold"),
        features=read("features"),
        worker_features=read("worker_features"),
        evidence=read("evidence"),
        prior=read("prior"),
        model_scores=read("model_scores"),
        model_reference=read("model_reference"),
        seconds=read("row_seconds"),
        tasks=Ids.from_json(ids["tasks"]),
        workers=Ids.from_json(ids["workers"]),
        classes=Ids.from_json(ids["classes"]),
        abstentions=Ids.from_json(ids["abstentions"]) if "abstentions" in ids else Ids(),
        models=Ids.from_json(ids["models"]) if "models" in ids else Ids(),
        informative=about.get("informative", True),
        repeats=about.get("repeats", "keep"),
    )


def _encode(name: str, value: object) -> Any:
    """A hyperparameter as JSON: plain values as they are, others as an object with their kind."""
    if is_plain(value):
        return value
    if isinstance(value, ClassPrior):
        return {"truth_prior": value.to_json()}
    if isinstance(value, tuple | list):
        return {"tuple": [_encode(name, item) for item in value]}
    if isinstance(value, pd.DataFrame):
        return {"frame": {str(column): [encode_id(v) for v in value[column].tolist()] for column in value}}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": np.asarray(value).tolist(), "dtype": str(value.dtype)}
    raise StorageError(f"the hyperparameter {name}={value!r} is a {type(value).__name__}, which a file cannot hold")


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decode(item) for item in value["tuple"])
    if "frame" in value:
        return pd.DataFrame({column: [decode_id(v) for v in values] for column, values in value["frame"].items()})
    return np.array(value["array"], dtype=value["dtype"])
