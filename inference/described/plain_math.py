"""The stories' densities as plain text: what their docstrings write in TeX."""

import inspect
import re
from collections.abc import Callable
from typing import Any

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
