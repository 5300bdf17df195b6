"""The page around the sections: head, heading, table of contents, styles and script."""

import base64
import hashlib
from importlib.resources import files

from markupsafe import Markup

from ...data import Annotations
from ...data.description import count_text
from ...data.questions import tasks_of
from .overview import Overview, alerts, all_clear, trust
from .sections import Section, render
from .subject import Subject


def page(title: str, lead: str, first: Markup, tiles: list[tuple[str, str]], sections: list[Section]) -> str:
    """The whole document, in which nothing refers to anything outside.

    Args:
        lead: which story was fitted by which engine, in a sentence or two.
        first: what the page says first.
        tiles: names and values of the numbers at the top.
    """
    return standalone("page", title=title, lead=lead, opening=first, tiles=tiles, sections=sections)


def standalone(template: str, **values: object) -> str:
    """A whole document with its styles and its one script, which may run by the hash that the template gives.

    Args:
        template: its name; ``name.js`` is the script, and ``name.css`` follows the styles of all pages.
        values: what the template shows.
    """
    sheets = ["page.css"] + [f"{template}.css"] * (template != "page")
    styles = "".join(_text(name) for name in sheets)
    script = _text(f"{template}.js")
    shared = {"styles": Markup(styles), "script": Markup(script), "script_hash": _hash(script)}
    return str(render(template, **shared, **values))


def opening(found: Overview, folder: str | None = None) -> Markup:
    """Return the page's opening: the verdict, the alerts, the weightiest first, and the passed tests.

    Args:
        found: what it says.
        folder: where the fit is saved, for commands of the shell; None where that is not known.
    """
    return render(
        "opening",
        verdict=found.verdict,
        folder=folder,
        steps=found.verdict.next[:-1],  # the last one is this page
        sentences=[trust(found)],
        alerts=alerts(found),
        all_clear=all_clear(found),
    )


def tiles(subject: Subject, noun: str = "worker") -> list[tuple[str, str]]:
    """Names and values of the numbers at the top, with the noun for who annotated."""
    annotations = subject.annotations
    return [
        _tile(len(tasks_of(annotations.tasks)), "task"),
        *([_tile(len(annotations.questions), "question")] if len(annotations.questions) else []),
        _tile(len(tasks_of(annotations.workers)), noun) if annotations.named else (f"{noun}s", "not named"),
        _tile(annotations.n_annotations, "annotation"),
        ("classes", f"{annotations.n_classes:,}"),
        *([("abstentions", f"{_abstained(annotations):.0%}")] if annotations.abstains else []),
    ]


def _tile(n: int, noun: str) -> tuple[str, str]:
    """A number under its noun."""
    number, name = count_text(n, noun).split(" ", 1)
    return name, number


def _abstained(annotations: Annotations) -> float:
    """The share of the annotations that are abstentions."""
    counts = annotations.counts_by_kind().sum(0)
    return float(counts[annotations.n_classes :].sum() / max(counts.sum(), 1))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """SHA-256 of the script, as a content security policy takes it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
