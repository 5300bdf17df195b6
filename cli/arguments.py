"""What is given on the command line, as what `crowdppl.fit` takes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..data import AnnotationError, Annotations, UnknownNameError, load_dataset
from ..data.errors import nearest
from ..data.text import as_numbers
from ..inference.engines.registry import ENGINES, MAY_BE_ZERO
from ..models import STORIES

ELSEWHERE = {name: f"{name} is an option of its own: --{name}" for name in ("story", "method", "seed", "classifier")}
ELSEWHERE["gold"] = "gold is an option of its own: --gold FILE --use-gold"
ELSEWHERE |= {
    name: f"{name} can only be given in Python"
    for name in ("annotations", "truth_prior", "evidence", "backend", "progress")
}


def read_annotations(
    file: str,
    columns: Mapping[str, str | None],
    *,
    classes: str | None,
    gold: Path | None,
    features: Path | None,
    repeats: str,
) -> Annotations:
    """Read a file, or the dataset of that name where there is no such file.

    Args:
        file: a path or a name.
        columns: by role (task, worker, label, count, seconds) a column, and the separator; None for the usual one.
        classes: names separated by commas; whole numbers where all are.
        gold: a file with gold labels.
        features: a .csv, .tsv or .parquet file with the tasks in one column and numbers in the others.
        repeats: what to do with several annotations of a worker to a task.

    Raises:
        AnnotationError: the file cannot be used.
        UnknownNameError: there is neither such a file nor such a dataset.
    """
    options: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    path = Path(file)
    if options and path.suffix.lower() == ".json":
        raise AnnotationError(f"--{next(iter(options))}: a JSON file {{task: {{worker: label}}}} has no columns")
    options["repeats"] = repeats
    if classes is not None:
        names = [name.strip() for name in classes.split(",")]
        options["classes"] = list(as_numbers(names).values()) if len(set(names)) == len(names) else names
    if gold is not None:
        if not gold.is_file():
            raise AnnotationError(f"--gold: there is no file {gold}{_similar(gold)}")
        options["gold"] = gold
    if features is not None:
        options["features"] = _read_features(features)
    if path.is_file():
        try:
            return Annotations.read(path, **options)
        except OSError as error:
            raise AnnotationError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return load_dataset(file, **options)
    except UnknownNameError as error:
        if path.suffix or len(path.parts) > 1:
            raise AnnotationError(f"there is no file {path}{_similar(path)}") from None
        raise UnknownNameError(f"there is no file {file!r} here, and: {error}") from None


def check_gold_told(annotations: Annotations, file: str, use_gold: bool) -> None:
    """Refuse to tell a fit gold labels that are not there.

    Raises:
        AnnotationError: ``--use-gold`` is given, and the annotations of `file` come without gold labels.
    """
    if use_gold and annotations.gold is None:
        raise AnnotationError(f"--use-gold: {file} comes without gold labels; give them with --gold FILE")


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
    files = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
    near = nearest(path.name, files)
    return f"; did you mean {path.with_name(near)}?" if near else ""


def parse_settings(pairs: Iterable[str], story: str, method: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs: values as JSON, else as text.

    Names that nobody knows are left for `crowdppl.fit` to refuse.

    Args:
        pairs: as given on the command line.
        story: the story whose hyperparameters they may be.
        method: the engine whose options they may be.

    Raises:
        ValueError: it is no pair, the option is given elsewhere, or the value is of another kind than its default.
    """
    parameters = inspect.signature(STORIES[story]).parameters.values() if story in STORIES else ()
    defaults = {parameter.name: parameter.default for parameter in parameters}
    defaults |= ENGINES[method].settings._field_defaults if method in ENGINES else {}
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name):
            raise ValueError(f"--set {pair}: NAME=VALUE is needed, such as max_iterations=500")
        if name in ELSEWHERE:
            raise ValueError(f"--set {pair}: {ELSEWHERE[name]}")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
        _check_number(pair, found[name], defaults.get(name))
    return found


def _check_number(pair: str, value: object, default: object) -> None:
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"--set {pair}: true or false is needed")
        return
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if isinstance(default, float) and not 0 <= number < float("inf"):
        raise ValueError(f"--set {pair}: a number from 0 is needed, such as {default}")
    least = 0 if pair.partition("=")[0] in MAY_BE_ZERO else 1
    if isinstance(default, int) and not (isinstance(number, int) and number >= least):
        raise ValueError(f"--set {pair}: a whole number from {least} is needed, such as {default}")
