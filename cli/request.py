"""Arguments that `crowdppl fit` and `crowdppl report` share: annotations, and options of the fit."""

import dataclasses
import functools
import glob
import inspect
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from ..data.errors import nearest
from .options import FILE, FOLDER, OPTIONS

SAVED = "manifest.json"
"""The file that is in each folder of a saved fit."""


def holds_saved(path: Path) -> bool:
    """Return whether a path is the folder of a fit, a baseline or an average of stories, as ``fit.save`` writes it."""
    return path.is_dir() and (path / SAVED).is_file()


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options that `crowdppl fit` and `crowdppl report` share."""

    file: str
    task: str | None = None
    worker: str | None = None
    no_worker: bool = False
    label: str | None = None
    count: str | None = None
    seconds: str | None = None
    when: str | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    question: str | None = None
    only_question: str | None = None
    columns: str | None = None
    outer: str | None = None
    several: str | None = None
    comparisons: bool | None = None
    meaning: list[str] | None = None
    preferences: bool | None = None
    tags: str | None = None
    tag_separator: str | None = None
    empty: str | None = None
    log_tasks: str | None = None
    log_workers: str | None = None
    classes: list[str] | None = None
    ordered: bool | None = None
    truth_classes: str | None = None
    abstain: list[str] | None = None
    repeats: str = "keep"
    tidy: bool = False
    merge: list[str] | None = None
    missing: str | None = None
    gold: Path | None = None
    use_gold: bool = False
    features: Path | None = None
    item_features: Path | None = None
    probabilities: list[Path] | None = None
    classifier: str | None = None
    seed: int = 0
    settings: list[str] | None = None
    quiet: bool = False

    @property
    def given(self) -> list[str]:
        """The names of the options that have another value than by default."""
        fields = dataclasses.fields(self)
        return [field.name for field in fields if field.name != "file" and getattr(self, field.name) != field.default]

    @property
    def saved(self) -> str | None:
        """The folder of a saved fit, where it stands in the place of annotations; else None."""
        return self.file if holds_saved(Path(self.file)) else None

    @property
    def is_several(self) -> bool:
        """True where a folder of Parquet files was named, or a pattern of files."""
        path = Path(self.file)
        if path.is_dir():
            return any(path.rglob("*.parquet"))
        return glob.has_magic(self.file) and not path.exists()

    def default_story(self, annotations: Any = None) -> str:
        """Return the story where none is named: of annotations, or before they are read."""
        of_preferences = getattr(annotations, "preferences", self.preferences)
        of_levels = getattr(annotations, "scored", self.truth_classes is not None)
        return "auto" if of_preferences or of_levels else "dawid_skene"

    @property
    def named_columns(self) -> dict[str, str]:
        """The columns that were named, by option."""
        return self._given("task", "worker", "label", "count", "seconds", "when")

    @property
    def kind_of_file(self) -> dict[str, Any]:
        """Options on the file's kind that were given, by name."""
        given = self._given("separator", "encoding", "sheet", "question", "columns", "outer", "several", "missing")
        given |= self._given("comparisons", "tags", "tag_separator", "empty")
        several = (self.question or "").split(",")
        if len(several) > 1 and all(name and name == name.strip() for name in several):
            given["question"] = several  # no blank beside a comma, as there is in a sentence
        return given

    @property
    def of_logs(self) -> dict[str, str]:
        """The options on what is a task and a worker in logs of evaluations that were given, by the names of `read`."""
        given = {"tasks": self.log_tasks, "workers": self.log_workers}
        return {name: value for name, value in given.items() if value is not None}

    def _given(self, *names: str) -> dict[str, Any]:
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


def takes_request(command: Callable[..., None], *, more: str = FOLDER, of: str | None = None) -> Callable[..., None]:
    """Return a command whose parameter `request` is replaced by the fields of `Request`, each an option of its own.

    Parameters that :data:`~.options.OPTIONS` has are described by it; others describe themselves.

    Args:
        command: the command.
        more: what else it takes as its file, for the help.
        of: the panel of the help whose options it takes alone; None for all.
    """
    hints = get_type_hints(Request)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(Request)
        if of is None or field.name == "file" or OPTIONS[field.name].rich_help_panel == of
    ]
    expanded = list(inspect.signature(command, eval_str=True).parameters.values())
    place = next(i for i, parameter in enumerate(expanded) if parameter.name == "request")
    expanded[place : place + 1] = shared
    described = [_described(parameter, more) for parameter in expanded]
    names = {parameter.name for parameter in shared}

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        request = Request(**{name: given.pop(name) for name in names})
        command(request=request, **given)

    with_options.__signature__ = inspect.Signature(described)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in described}
    return with_options


def _described(parameter: inspect.Parameter, more: str) -> inspect.Parameter:
    """A parameter with its entry of the table, or, of the file, with its help text."""
    name, kind = parameter.name, parameter.annotation
    if name == "file":
        about: Any = typer.Argument(metavar="FILE", help=FILE + more, show_default=False)
    elif name in OPTIONS and get_origin(kind) is not Annotated:
        about = copy(OPTIONS[name])
        if kind is bool and about.default is ...:  # where typer keeps the first flag
            about.param_decls = (f"--{name.replace('_', '-')}",)  # without its contrary
    else:
        return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, about])


class CommandWithSettings(TyperCommand):
    """A command with ``--set``, which is named where there is no option that was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, or fail with the options that may be meant."""
        known = {name for parameter in self.get_params(ctx) for name in (*parameter.opts, *parameter.secondary_opts)}
        options = args[: args.index("--")] if "--" in args else args
        for argument, after in zip_longest(options, options[1:], fillvalue=""):
            option, equals, value = argument.partition("=")
            if not option.startswith("--") or option in known:
                continue
            if not equals:  # a value of its own comes next, or none does
                value = after if after and not after.startswith("-") else "true"
            near = nearest(option, known)
            name = option.removeprefix("--").replace("-", "_")
            ctx.fail(
                f"No such option: {option}{f'; did you mean {near}?' if near else '.'} A hyperparameter of the story "
                f"or an option of the engine is given by --set {name}={value}"
            )
        return super().parse_args(ctx, args)
