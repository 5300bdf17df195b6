""":func:`crowdppl.describe_story`: a story's density in plain text, from its docstring's TeX, and what may be set."""

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

TRAINING = ("epochs", "batch_size", "network_rate", "weight_decay", "held_out", "patience")
ELSEWHERE = ("classifier", "gold", "seed", "progress")  # arguments of cp.fit itself
WIDTH = 100

render = templates_of(__package__)
LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "psi": "ψ", "omega": "ω", "Sigma": "Σ", "Omega": "Ω", "Lambda": "Λ", "Phi": "Φ",
    "sim": "~", "propto": "∝", "sum": "Σ", "prod": "Π", "cdot": "·", "times": "×", "odot": "⊙", "mid": "|", "le": "≤",
    "leq": "≤", "ge": "≥", "geq": "≥", "neq": "≠", "ne": "≠", "in": "∈", "infty": "∞", "dots": "…", "ldots": "…",
    "to": "→", "top": "ᵀ", "lVert": "‖", "rVert": "‖", "ell": "ℓ", "log": "log", "exp": "exp", "max": "max",
    "min": "min", "quad": "  ", "left": "", "right": "", "big": "", "circ": "∘", "partial": "∂", "approx": "≈",
    "lfloor": "⌊", "rfloor": "⌋", "Big": "", "bigl": "", "bigr": "", "mapsto": "↦",
}  # fmt: skip
ACCENTS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303"}
"""Marks that stand above the letter before them."""
DISPLAYED = re.compile(r"\.\. math::(?:[ \t]+(.+)|\n((?:[ \t]+.*\n?|\n(?=[ \t]))+))")
"""A formula that stands by itself: on the line of its directive, or in an indented block below it."""


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


def density_of(story: Callable[..., Any]) -> tuple[str, list[str], str]:
    """Return what a story's module says of it: the first sentence, the lines of its density, and the rest."""
    text = inspect.cleandoc(inspect.getmodule(story).__doc__ or "")  # type: ignore[union-attr]
    head, _, rest = text.partition("\n\n")
    found = re.search(DISPLAYED, rest)
    if found is None:
        return plain(" ".join(head.split())), [], inline(rest)
    formula = re.split(r"\\\\", found[1] or found[2])
    lines = [_line(part) for part in formula if part.strip()]
    return plain(" ".join(head.split())), lines, inline(rest[found.end() :].strip())


def inline(text: str) -> str:
    """Return running text with its formulas and references as plain text, in paragraphs of one line."""
    text = re.sub(r":math:`([^`]*)`", lambda found: plain(found[1]), text)
    text = re.sub(DISPLAYED, _displayed, text)
    text = re.sub(r":\w+:`[~.]*([^`]*)`", r"\1", text).replace("``", "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def plain(tex: str) -> str:
    """Return a formula as plain text.

    >>> plain(r"\\beta_{jk} \\sim \\text{Dirichlet}(\\gamma_k)")
    'β_jk ~ Dirichlet(γ_k)'
    """
    tex = re.sub(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}", r"\1", tex)
    while (fraction := re.search(r"\\t?frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", tex)) is not None:
        parts = [part if re.fullmatch(r"\\?\w+", part.strip()) else f"({part})" for part in fraction.groups()]
        tex = tex[: fraction.start()] + " / ".join(parts) + tex[fraction.end() :]
    tex = re.sub(r"\\sqrt\{([^{}]*)\}", r"√(\1)", tex)
    tex = re.sub(r"\\sqrt (\w)", r"√\1", tex)
    tex = re.sub(r"\\(bar|hat|tilde) ?\{?(\\[A-Za-z]+|\w)\}?", lambda found: plain(found[2]) + ACCENTS[found[1]], tex)
    tex = re.sub(r"\\([A-Za-z]+) ?", lambda found: _command(found[1], found[0]), tex)
    tex = re.sub(r"\\[,;:! ]", " ", tex).replace(r"\{", "{").replace(r"\}", "}")
    tex = re.sub(r"([_^])\{(\w+)\}", r"\1\2", tex)
    while (inner := re.sub(r"([_^])\{([^{}]*)\}", r"\1(\2)", tex)) != tex:
        tex = inner
    return " ".join(tex.replace("{", "").replace("}", "").split())


def _displayed(found: re.Match[str]) -> str:
    return ";  ".join(_line(part) for part in re.split(r"\\\\", found[1] or found[2]) if part.strip())


def _command(name: str, whole: str) -> str:
    letter = LETTERS.get(name, name)
    return letter + (" " if whole.endswith(" ") and letter else "")


def _line(tex: str) -> str:
    """A line of a density: the formula, and how many of it there are, at the right."""
    formula, _, size = re.sub(r"&(?=\\sim|\\propto|=)", "", tex).rpartition("&")
    return f"{plain(formula or size)}    {plain(size) if formula else ''}".rstrip()
