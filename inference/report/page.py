"""The page around the sections: head, heading, table of contents, styles and script."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from ...data import Annotations
from ..plots.style import counted
from .findings import Findings, GoldShare
from .html import Html, Section, paragraph, tag, together
from .said_first import alerts, all_clear, sentences
from .subject import Subject


def page(title: str, lead: str, first: Html, tiles: list[tuple[str, str]], sections: list[Section]) -> str:
    """The whole document, in which nothing refers to anything outside.

    Args:
        title: of the page.
        lead: which story was fitted by which engine, in a sentence or two.
        first: what the page says first.
        tiles: names and values of the numbers at the top.
        sections: of the page, in their order.
    """
    styles, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # No script but the page's own can run, and nothing is fetched, whatever the names in the data hold.
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'",
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="crowdppl"),
        tag("title", title),
        tag("style", Html(styles)),
    )
    heading = tag(
        "header",
        tag("h1", title),
        first,
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles), class_="tiles"),
        paragraph(lead, class_="lead"),
    )
    entries = (tag("li", tag("a", one.title, href=f"#{one.anchor}")) for one in sections)
    contents = tag("nav", tag("ul", *entries), aria_label="Contents")
    body = tag(
        "body",
        tag("a", "To the content", href="#content", class_="skip"),
        contents,
        tag("main", heading, *(one.html for one in sections), id="content"),
        tag("footer", "Made by crowdppl. The page is one file and loads nothing from the network."),
        tag("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def opening(found: Findings) -> Html:
    """Return the page's opening: three sentences, the alerts, the weightiest first, and the passed tests."""
    said = tag("div", *(tag("p", sentence) for sentence in sentences(found)), class_="said", id="said")
    acts = [
        tag("li", tag("a", tag("strong", one.title), href=f"#{one.anchor}"), *(paragraph(text) for text in one.texts))
        for one in alerts(found)
    ]
    heading = tag("h2", "To act on, the weightiest first")
    fine = [tag("li", tag("span", "✓", aria_hidden="true"), " ", text) for text in all_clear(found)]
    return together(
        [
            said,
            tag("div", heading, tag("ol", *acts), class_="alerts", id="alerts") if acts else None,
            tag("ul", *fine, class_="fine", id="fine") if fine else None,
        ]
    )


def tiles(subject: Subject, gold: GoldShare | None) -> list[tuple[str, str]]:
    """Names and values of the numbers at the top, the accuracy on gold labels among them where there is one."""
    annotations, posterior = subject.annotations, subject.source.posterior
    sure = int((posterior.max(-1) >= 0.9).sum())
    found = [
        _tile(annotations.n_tasks, "task"),
        _tile(annotations.n_workers, "worker") if annotations.named else ("workers", "not named"),
        _tile(annotations.n_annotations, "annotation"),
        ("classes", f"{annotations.n_classes:,}"),
        *([("abstentions", f"{_abstained(annotations):.0%}")] if annotations.abstains else []),
        ("labels of probability ≥\N{NO-BREAK SPACE}0.9", f"{sure:,}"),
    ]
    if gold is not None:
        found.append((f"accuracy on {counted(gold.tasks, 'gold task')}", f"{gold.right:.1%} ({gold.interval})"))
    return found


def _tile(n: int, noun: str) -> tuple[str, str]:
    """A number under its noun."""
    number, name = counted(n, noun).split(" ", 1)
    return name, number


def _abstained(annotations: Annotations) -> float:
    """The share of the annotations that are abstentions."""
    counts = annotations.counts_by_kind().sum(0)
    return float(counts[annotations.n_classes :].sum() / max(counts.sum(), 1))


def _hash(script: str) -> str:
    """SHA-256 of the script, as a content security policy takes it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
