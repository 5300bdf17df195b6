"""Arguments that `crowdppl fit` and `crowdppl report` share: annotations, and options of the fit."""

from __future__ import annotations

import dataclasses
import functools
import glob
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from . import options


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options that `crowdppl fit` and `crowdppl report` share."""

    file: options.File
    task: options.Task = None
    worker: options.Worker = None
    no_worker: options.NoWorker = False
    label: options.Label = None
    count: options.Count = None
    seconds: options.Seconds = None
    separator: options.Separator = None
    encoding: options.Encoding = None
    sheet: options.Sheet = None
    question: options.Question = None
    columns: options.Columns = None
    outer: options.Outer = None
    several: options.Several = None
    classes: options.Classes = None
    abstain: options.Abstain = None
    repeats: options.Repeats = "keep"
    tidy: options.Tidy = False
    missing: options.Missing = None
    gold: options.Gold = None
    use_gold: options.UseGold = False
    features: options.Features = None
    probabilities: options.Probabilities = None
    classifier: options.Classifier = None
    seed: options.Seed = 0
    settings: options.Settings = None
    quiet: options.Quiet = False

    @property
    def is_several(self) -> bool:
        """True where a folder of Parquet files was named, or a pattern of files."""
        path = Path(self.file)
        if path.is_dir():
            return any(path.rglob("*.parquet"))
        return glob.has_magic(self.file) and not path.exists()

    @property
    def named_columns(self) -> dict[str, str]:
        """The columns that were named, and the separator, by option."""
        roles = ("task", "worker", "label", "count", "seconds", "separator")
        given = {role: getattr(self, role) for role in roles}
        return {role: value for role, value in given.items() if value is not None}

    @property
    def kind_of_file(self) -> dict[str, str]:
        """Options on the file's kind that were given, by name."""
        names = ("encoding", "sheet", "question", "columns", "outer", "several", "missing")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def column_options(self) -> list[str]:
        """The options that were given and name columns, or the separator."""
        return [f"--{name}" for name in (self.named_columns | self.kind_of_file)] + ["--no-worker"] * self.no_worker

    @property
    def shared_options(self) -> dict[str, Any]:
        """The options of `crowdppl.fit` that are not particular to a story or an engine."""
        return {
            "classifier": self.classifier,
            "gold": self.use_gold,
            "seed": self.seed,
            "progress": self.shows_progress,
        }

    @property
    def shows_progress(self) -> bool:
        """True where standard error is a terminal and quiet was not asked for."""
        return not self.quiet and sys.stderr.isatty()


def takes_request(command: Callable[..., None], *, file: Any = options.File) -> Callable[..., None]:
    """Return a command whose parameter `request` is replaced by the fields of `Request`, each an option of its own.

    Args:
        command: the command.
        file: what it takes as its file, with a help text.
    """
    hints = get_type_hints(Request, include_extras=True) | {"file": file}
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(Request)
    ]
    own = inspect.signature(command, eval_str=True).parameters.values()
    expanded = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    place = next(i for i, parameter in enumerate(expanded) if parameter.name == "request")
    expanded[place : place + 1] = shared
    names = {parameter.name for parameter in shared}

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        request = Request(**{name: given.pop(name) for name in names})
        command(request=request, **given)

    with_options.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return with_options
