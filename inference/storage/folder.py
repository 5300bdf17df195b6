"""Fits on disk: a folder that others may open, of which nothing is ever executed.

``manifest.json`` says what the fit is, as ``manifest.schema.json`` describes, with size and checksum of each other
file. A part is a story at its draws, or a rule without a likelihood; an average has several. ``posterior.nc`` has the
draws and the annotations of the first part, and ArviZ opens it too; ``weights.safetensors`` has its weights that have
no draws; ``posterior_1.nc`` and so on are of the next parts. :func:`read` looks at sizes and checksums first, follows
no link, imports nothing that a file names, and allocates nothing that a file cannot account for.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ...data.atomic import whole_folder
from ...data.errors import StorageError, given_path
from ...models import KNOWN_STORIES, Classifier, Story
from ...models.parts.classifier import PREFIX, Network
from ..densities.ready_programs import use_program_cache
from ..engines.checkpoints import FILE as STATE
from ..engines.checkpoints import of_several, said_of
from ..fitted.by_rule import ByRule
from ..fitted.fitted import Fitted
from ..fitted.named_draws import NamedArrays
from ..fitted.posterior import Posterior
from .arviz_groups import FIT_GROUP, constants_of, observed_of, to_groups, write_groups
from .checked_arrays import write_weights
from .checked_json import DECODING, decode, encode, encode_settings
from .manifest import MANIFEST, posterior_file, read_manifest, weights_file, write_manifest
from .stored_annotations import ids_json
from .stored_parts import read_rule, read_story


def save(fit: Posterior, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fit, with all the fits of an average, to the folder ``path``: see :meth:`crowdppl.Fit.save`."""
    sources: Mapping[str, Fitted | ByRule] = fit.members if fit.rule is None else {fit.rule.name: fit.rule}
    weights = [float(fit.weights[name]) for name in sources] if fit.rule is None else [1.0]
    about: dict[str, Any] = {
        "parts": [{"name": name, **_about(source), **ids_json(source.annotations)} for name, source in sources.items()],
        "weights": weights,
        "comparison": None if fit.comparison is None else _comparison_json(fit.comparison),
        "left_out": dict(fit.left_out),
        "votes": fit.votes,
        "misled": fit.misled,
    } | ({} if fit.power is None else {"power": fit.power})
    with whole_folder(path, overwrite=overwrite) as folder:
        for number, (source, part) in enumerate(zip(sources.values(), about["parts"], strict=True)):
            _write_arrays(source, part["weights"], folder, number)
        write_manifest(folder, about)


def _about(source: Fitted | ByRule) -> dict[str, Any]:
    """A part besides its arrays and its annotations."""
    if isinstance(source, ByRule):
        return {
            "rule": source.name,
            "classifier": None if source.classifier is None else source.classifier.to_json(),
            "settings": encode_settings(dict(source.settings)),
            "findings": [finding.to_json() for finding in source.findings],
            "weights": list(source.weights),
            "by_worker": list(source.by_worker),
        }
    return {
        "story": source.story,
        "own_story": KNOWN_STORIES.get(source.story) is not source.model.story,
        "hyperparameters": {name: encode(name, value) for name, value in source.model.hyperparameters.items()},
        "method": source.method,
        "settings": encode_settings(source.settings),
        "findings": [finding.to_json() for finding in source.findings],
        "is_point": not source.has_draws,
        "dims": source.dims,
        "draws": list(source.draws),
        "fixed": list(source.fixed),
        "origin": dict(source.origin),
        "weights": [name for name in source.fixed if name.startswith(PREFIX)],
    }


def _write_arrays(source: Fitted | ByRule, weights: list[str], folder: Path, number: int) -> None:
    """Write a part's netCDF file, and its weights where there are any."""
    if isinstance(source, ByRule):
        groups, values = _groups_of_rule(source), source.weights
    else:
        groups, values = to_groups(source), source.fixed
        groups[FIT_GROUP] = groups[FIT_GROUP].without(weights)
    try:
        write_groups(groups, folder / posterior_file(number))
    except UnicodeEncodeError as error:
        raise AnnotationError(f"the id {error.object!r} is no text that a file can hold: {error.reason}") from None
    if weights:
        write_weights({name: values[name] for name in weights}, folder / weights_file(number))


def _groups_of_rule(rule: ByRule) -> dict[str, NamedArrays]:
    arrays = {"label_probability": rule.posterior, "history": rule.history, **rule.by_worker}
    variables = {
        name: (tuple(f"{name}_dim_{i}" for i in range(np.ndim(value))), np.asarray(value))
        for name, value in arrays.items()
    }
    return {
        FIT_GROUP: NamedArrays(variables),
        "observed_data": observed_of(rule.annotations),
        "constant_data": constants_of(rule.annotations),
    }


def read(
    path: str | os.PathLike[str],
    *,
    story: Story | Mapping[str, Story] | None = None,
    classifier: Network | Classifier | Any | None = None,
) -> Posterior:
    """Read what :func:`save` wrote; arguments and errors are those of :func:`crowdppl.load_fit`."""
    folder = given_path(path, StorageError)
    _refuse_unsaved(folder)
    manifest = read_manifest(folder)
    use_program_cache()
    parts: dict[str, Any] = {part["name"]: part for part in manifest["parts"]}
    weights = np.array(manifest["weights"], float)
    if not len(weights) == len(manifest["parts"]) == len(parts) or not np.isclose(weights.sum(), 1):
        raise StorageError(
            f"{folder / MANIFEST}: {len(manifest['parts'])} parts need as many names and weights, which sum to 1; it "
            "was altered"
        )
    if any("rule" in part for part in parts.values()):
        if len(parts) > 1:
            raise StorageError(f"{folder / MANIFEST} has a rule among several parts, which is not averaged")
        return Posterior.of(read_rule(next(iter(parts.values())), classifier, folder))
    own = _own_stories(story, list(parts), folder)
    members = {
        name: read_story(part, number, own.get(name), classifier, folder)
        for number, (name, part) in enumerate(parts.items())
    }
    return Posterior(
        members,
        pd.Series(weights, pd.Index(list(members), name="story"), name="weight"),
        None if manifest["comparison"] is None else _comparison_from(manifest["comparison"], folder),
        manifest["left_out"],
        manifest["votes"],
        manifest["misled"],
        power=manifest.get("power"),
    )


def _own_stories(given: Any, names: list[str], folder: Path) -> Mapping[str, Any]:
    """The functions of stories that are not crowdppl's own, by name of the fit."""
    if given is None:
        return {}
    if len(names) == 1 and not isinstance(given, Mapping):
        return {names[0]: given}
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        shown = ", ".join(map(repr, names[:5]))
        raise StorageError(f"{folder} holds several fits: give story={{name: function}} with names among {shown}")
    return given


def _refuse_unsaved(folder: Path) -> None:
    """Refuse checkpoints, and what a streamed fit left, which are no saved fit."""
    if (folder / MANIFEST).exists():
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


def _comparison_json(comparison: pd.DataFrame) -> dict[str, Any]:
    columns = {}
    for name, column in comparison.items():
        values = [None if value is pd.NA else encode(str(name), value) for value in column.tolist()]
        columns[str(name)] = {"dtype": str(column.dtype), "values": values}
    return {"index": list(map(str, comparison.index)), "columns": columns, "how": comparison.attrs.get("how")}


def _comparison_from(saved: Mapping[str, Any], folder: Path) -> pd.DataFrame:
    index, columns = pd.Index(saved["index"], name="story"), saved["columns"]
    try:
        found = pd.DataFrame(
            {
                name: pd.Series([decode(value) for value in column["values"]], index, dtype=column["dtype"])
                for name, column in columns.items()
            }
        )
    except (*DECODING, pd.errors.IntCastingNaNError) as error:
        raise StorageError(f"{folder / MANIFEST}: the comparison cannot be read: {error}") from None
    if saved["how"] is not None:
        found.attrs["how"] = saved["how"]
    return found
