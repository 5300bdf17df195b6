"""One story on the terminal: its density, its hyperparameters with defaults, and the options of the engines."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from ..data.errors import check_name
from ..inference.baselines.fit_baseline import BASELINES, SAYS
from ..inference.engines.registry import ENGINES
from ..models import ALIASES, KNOWN_STORIES
from ..models.parts.general import SAYS as GENERAL_SAYS
from ..models.parts.general import hyperparameters_of
from .plain_math import density_of, inline
from .terminal import make_table

if TYPE_CHECKING:
    from rich.console import Console

EM = ENGINES["em"].settings._field_defaults
TRAINING = ("epochs", "batch_size", "network_rate", "held_out", "patience")
ELSEWHERE = ("classifier", "gold", "seed", "progress")  # options of the command line itself
PYTHON_ONLY = ("truth_prior",)


def show_story(name: str, console: Console) -> None:
    """Print what a story assumes and what may be set.

    Raises:
        UnknownNameError: there is no such story or baseline.
    """
    name = ALIASES.get(name.lower().replace("-", "_"), name.lower().replace("-", "_"))
    if name in BASELINES:
        _show_baseline(name, console)
        return
    story = KNOWN_STORIES[check_name("story", name, [*KNOWN_STORIES, *BASELINES])]
    says, density, more = density_of(story)
    others = ", ".join(alias for alias, of in ALIASES.items() if of == name)
    console.print(Text.assemble((name, "bold"), (f" (also {others})" if others else "", "dim")))
    console.print(says)
    if density:
        console.print(Padding(Text("\n".join(density)), (1, 0, 1, 4)))
    if more:
        console.print(Text(more + "\n"))
    texts = _described(story) | GENERAL_SAYS
    table = make_table("hyperparameters, as --set NAME=VALUE")
    for heading in ("name", "default", "what it is"):
        table.add_column(heading, overflow="fold")
    for parameter, default in hyperparameters_of(story).items():
        if parameter not in PYTHON_ONLY:
            table.add_row(Text(parameter, style="cyan"), Text(_written(default)), Text(texts.get(parameter, "")))
    console.print(table)
    engines = make_table("options of the engines, as --set NAME=VALUE")
    for heading in ("engine", "options and their defaults"):
        engines.add_column(heading, overflow="fold")
    for engine, about in ENGINES.items():
        options = about.settings._field_defaults
        engines.add_row(engine, Text(", ".join(f"{option}={_written(default)}" for option, default in options.items())))
    console.print(engines)


def _show_baseline(name: str, console: Console) -> None:
    """Print what a baseline does, and the options of its function and of its training."""
    console.print(Text.assemble((name, "bold"), (" (a baseline, without a likelihood)", "dim")))
    console.print(SAYS[name])
    texts = _described(BASELINES[name])
    table = make_table("options, as --set NAME=VALUE")
    for heading in ("name", "default", "what it is"):
        table.add_column(heading, overflow="fold")
    for parameter in inspect.signature(BASELINES[name]).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in ELSEWHERE:
            default = None if parameter.default is parameter.empty else parameter.default
            table.add_row(Text(parameter.name, style="cyan"), _written(default), Text(texts.get(parameter.name, "")))
    if table.row_count:
        console.print(table)
    training = ", ".join(f"{option}={_written(EM[option])}" for option in TRAINING)
    console.print(Text(f"With a classifier (--classifier mlp), of its training: {training}"))


def _described(story: Any) -> dict[str, str]:
    """What the story's docstring says of each argument."""
    text = inspect.cleandoc(story.__doc__ or "")
    _, _, arguments = text.partition("\nArgs:\n")
    arguments = re.split(r"\n\S", arguments)[0]
    found = re.findall(r"^    (\w+): ((?:.*\n?(?:        .*\n?)*))", arguments, flags=re.MULTILINE)
    return {name: inline(what).strip() for name, what in found}


def _written(default: Any) -> str:
    if default is None:
        return "–"
    if isinstance(default, bool):
        return "true" if default else "false"
    return f"{default:g}" if isinstance(default, float) else str(default)
