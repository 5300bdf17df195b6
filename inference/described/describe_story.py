"""`crowdppl.describe_story`: a story's density in plain text, and everything that may be set."""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...data.errors import check_name
from ...data.html_templates import templates_of
from ...models import ALIASES, KNOWN_STORIES
from ...models.parts.general import SAYS as GENERAL_SAYS
from ...models.parts.general import hyperparameters_of
from ..baselines.fit_baseline import BASELINES, SAYS
from ..engines.registry import ENGINES
from .plain_math import density_of, inline

TRAINING = ("epochs", "batch_size", "network_rate", "weight_decay", "held_out", "patience")
ELSEWHERE = ("classifier", "gold", "seed", "progress")  # arguments of cp.fit itself
WIDTH = 100

render = templates_of(__package__)


class Setting(NamedTuple):
    """Something that may be set: its name, its default as text, and what it is."""

    name: str
    default: str
    about: str


@dataclass(frozen=True)
class StoryDescription:
    """A story in words: what `describe_story` returns. It is shown as text, and as a page in notebooks.

    Args:
        name: the story's.
        aliases: its other names, of papers mostly.
        says: what it assumes, in a sentence.
        density: the lines of its density, in plain text; none for a baseline.
        note: what else is to be said, with the source.
        hyperparameters: its own, and those that every story has; arguments of :func:`crowdppl.fit`.
        engines: the options of each engine by its name; arguments of :func:`crowdppl.fit`, too.
    """

    name: str
    aliases: tuple[str, ...]
    says: str
    density: tuple[str, ...]
    note: str
    hyperparameters: tuple[Setting, ...]
    engines: Mapping[str, tuple[Setting, ...]]

    @property
    def titled(self) -> list[tuple[str, tuple[Setting, ...]]]:
        """The tables with their titles."""
        own = [("hyperparameters", self.hyperparameters)] if self.hyperparameters else []
        return own + [(_title(name), options) for name, options in self.engines.items()]

    def __repr__(self) -> str:
        also = f" (also {', '.join(self.aliases)})" if self.aliases else ""
        parts = [f"{self.name}{also}\n{textwrap.fill(self.says, WIDTH)}"]
        if self.density:
            parts.append("\n".join(f"    {line}" for line in self.density))
        if self.note:
            parts.append("\n\n".join(textwrap.fill(each, WIDTH) for each in self.note.split("\n\n")))
        return "\n\n".join([*parts, *(_as_text(title, settings) for title, settings in self.titled)])

    def _repr_html_(self) -> str:
        return str(render("story", story=self))


def describe_story(name: str) -> StoryDescription:
    """Describe a story or a baseline: its density, its hyperparameters with defaults, and the engines' options.

    ```python
    cp.describe_story("glad")
    ```

    Args:
        name: of the story, as in :func:`crowdppl.list_stories`, or of a baseline; names of papers are known, too.

    Raises:
        UnknownNameError: there is no such story or baseline; the message suggests the nearest one.
        TypeError: it is no name, such as a story of your own, which its docstring describes.
    """
    if not isinstance(name, str):
        called = getattr(name, "__name__", repr(name))
        raise TypeError(f"a story's name is needed, such as 'dawid_skene'; help({called}) describes one of your own")
    plain = name.lower().replace("-", "_")
    name = ALIASES.get(plain, plain)
    check_name("story", name, [*KNOWN_STORIES, *BASELINES])
    aliases = tuple(alias for alias, of in ALIASES.items() if of == name)
    if name in BASELINES:
        return _baseline(name, aliases)
    story = KNOWN_STORIES[name]
    says, density, note = density_of(story)
    texts = _arguments(story) | GENERAL_SAYS
    own = (Setting(each, _written(default), texts.get(each, "")) for each, default in hyperparameters_of(story).items())
    engines = {engine: _settings(about.settings) for engine, about in ENGINES.items()}
    return StoryDescription(name, aliases, says, tuple(density), note, tuple(own), engines)


def _baseline(name: str, aliases: tuple[str, ...]) -> StoryDescription:
    texts = _arguments(BASELINES[name])
    given = [
        Setting(each.name, _written(None if each.default is each.empty else each.default), texts.get(each.name, ""))
        for each in inspect.signature(BASELINES[name]).parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.name not in ELSEWHERE
    ]
    training = tuple(option for option in _settings(ENGINES["em"].settings) if option.name in TRAINING)
    note = "It is a baseline, without a likelihood."
    return StoryDescription(name, aliases, SAYS[name], (), note, tuple(given), {"training": training})


def _settings(kind: Any) -> tuple[Setting, ...]:
    """The options of an engine, of a NamedTuple whose docstring says what each is."""
    texts = _arguments(kind)
    return tuple(
        Setting(name, _written(default), texts.get(name, "")) for name, default in kind._field_defaults.items()
    )


def _arguments(documented: Callable[..., Any]) -> dict[str, str]:
    """Return a docstring's text on each argument, by name, in plain text."""
    text = inspect.cleandoc(documented.__doc__ or "")
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


def _title(engine: str) -> str:
    return "options of the classifier's training" if engine == "training" else f"options of {engine}"


def _as_text(title: str, settings: tuple[Setting, ...]) -> str:
    name, default = (max(len(each[at]) for each in settings) for at in (0, 1))
    lines = []
    for each in settings:
        head = f"    {each.name:{name}}  {each.default:{default}}  "
        lines.append(textwrap.fill(each.about, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or head)
    return "\n".join([title, *lines])
