"""From what was typed to what `crowdppl.fit` takes: annotations, hyperparameters and options of the engine."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from ..data import AnnotationError, Annotations, UnknownNameError, load_dataset
from ..data.errors import nearest
from ..data.text import as_numbers
from ..inference.engines.registry import ENGINES
from ..models import STORIES
from .request import Request

ELSEWHERE = {name: f"{name} has an option of its own, --{name}" for name in ("story", "method", "seed", "classifier")}
ELSEWHERE["gold"] = "gold labels have options of their own, --gold FILE --use-gold"
ELSEWHERE |= {
    name: f"{name} can only be given in Python"
    for name in ("annotations", "truth_prior", "evidence", "backend", "progress", "stories")
}
"""Arguments of `crowdppl.fit` that --set does not take, and why."""


def read_annotations(request: Request) -> Annotations:
    """Return the annotations in a file, or of the dataset of that name where there is no such file.

    Raises:
        AnnotationError: the file, the gold labels or the features cannot be used.
        UnknownNameError: there is neither such a file nor such a dataset.
    """
    path = Path(request.file)
    options: dict[str, Any] = {**request.columns, "repeats": request.repeats}
    if request.no_worker and request.worker is not None:
        raise AnnotationError("--no-worker and --worker cannot be given together")
    if request.no_worker:
        options["worker"] = None
    if options.get("separator") == "\\t":
        options["separator"] = "\t"
    if request.classes is not None:
        options["classes"] = _class_names(request.classes)
    if request.gold is not None:
        if not request.gold.is_file():
            raise AnnotationError(f"--gold: there is no file {request.gold}{_similar(request.gold)}")
        options["gold"] = request.gold
    if request.features is not None:
        options["features"] = _read_features(request.features)
    named = [f"--{name}" for name in request.columns] + ["--no-worker"] * request.no_worker
    annotations = _read(path, options, named)
    if request.use_gold and annotations.gold is None:
        raise AnnotationError(f"--use-gold: {path} comes without gold labels; give them with --gold FILE")
    return annotations


def parse_settings(pairs: Iterable[str], story: str, method: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs, with values as JSON and else as text.

    Unknown names are left for `crowdppl.fit` to refuse, and so are numbers out of bounds.

    Args:
        pairs: as given on the command line.
        story: the story whose hyperparameters they may be.
        method: the engine whose options they may be.

    Raises:
        ValueError: it is no pair, the option is given elsewhere or belongs to another engine, or the value is of
            another kind than its default.
    """
    parameters = inspect.signature(STORIES[story]).parameters.values() if story in STORIES else ()
    hyperparameters = {parameter.name: parameter.default for parameter in parameters}
    settings = ENGINES[method].settings._field_defaults if method in ENGINES else {}
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name):
            raise ValueError(f"--set {pair}: NAME=VALUE is needed, such as max_iterations=500")
        if name in ELSEWHERE:
            raise ValueError(f"--set {pair}: {ELSEWHERE[name]}")
        if name not in hyperparameters:
            _check_engine(pair, name, method)
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
        _check_kind(pair, found[name], (settings | hyperparameters).get(name))
    return found


def _check_engine(pair: str, name: str, method: str) -> None:
    having = [engine for engine, about in ENGINES.items() if name in about.settings._fields]
    if method in ENGINES and having and method not in having:
        raise ValueError(f"--set {pair}: {name} belongs to {' and '.join(having)}, not to {method}")


def _check_kind(pair: str, value: object, default: object) -> None:
    if isinstance(default, bool) and not isinstance(value, bool):
        raise ValueError(f"--set {pair}: true or false is needed")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, int | float) and not isinstance(default, bool) and not is_number:
        raise ValueError(f"--set {pair}: a number is needed, such as {default}")


def _read(path: Path, options: dict[str, Any], column_options: list[str]) -> Annotations:
    """Return the annotations of a file or dataset; `column_options` are those typed options that name columns."""
    suffix = path.suffix.lower()
    if path.is_file():
        if column_options and suffix == ".json":
            raise AnnotationError(f"{column_options[0]}: a JSON file {{task: {{worker: label}}}} has no columns")
        if "separator" in options and suffix not in (".csv", ".tsv"):
            raise AnnotationError(f"--separator: {path} is no .csv or .tsv file, so that it has no separator")
        try:
            return Annotations.read(path, **options)
        except OSError as error:
            raise AnnotationError(f"{path} cannot be read: {error.strerror}") from error
    if path.suffix or len(path.parts) > 1:
        raise AnnotationError(f"there is no file {path}{_similar(path)}")
    if column_options:
        raise AnnotationError(f"{column_options[0]}: there is no file {path}, and a dataset has no columns to name")
    try:
        return load_dataset(str(path), **options)
    except UnknownNameError as error:
        raise UnknownNameError(f"there is no file {str(path)!r} here, and: {error}") from None


def _class_names(text: str) -> list[Any]:
    """Return the names separated by commas; whole numbers where all are."""
    names = [name.strip() for name in text.split(",")]
    return list(as_numbers(names).values()) if len(set(names)) == len(names) else names


def _read_features(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise AnnotationError(f"--features: there is no file {file}{_similar(file)}")
    try:
        if file.suffix.lower() == ".parquet":
            return pd.read_parquet(file)
        return pd.read_csv(file, sep="\t" if file.suffix.lower() == ".tsv" else ",")
    except (OSError, ValueError) as error:
        raise AnnotationError(f"--features: {file} cannot be read as a table: {error}") from error


def _similar(path: Path) -> str:
    """Return "; did you mean ...?" with the file in the same folder that has the most similar name, or nothing."""
    files = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
    near = nearest(path.name, files)
    return f"; did you mean {path.with_name(near)}?" if near else ""
