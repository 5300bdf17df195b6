"""Pages of the notebooks, with the outputs that they keep, and of Markdown files: nothing is executed.

Markdown becomes HTML but for its headings, which become the page's sections; code is highlighted as elsewhere; pictures
are written beside the page.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from markdown_it import MarkdownIt
from mathml import mathml

UNDERLINES = "=-~^"
MATH = re.compile(r"(?P<code>`+[^`]+`+)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n](?:[^$]*[^$\s])?)\$", re.DOTALL)


TUTORIALS = """Tutorials
=========

The notebooks of the repository's folder ``notebooks/``, with the outputs that they keep. ``make notebooks`` executes
them.

.. toctree::
   :maxdepth: 1

"""
FIRST = (
    "quickstart",
    "comparing_stories",
    "difficulty_of_tasks",
    "groups_of_annotators",
    "common_and_individual",
    "classifier_from_crowd_labels",
    "pyro_digits",
    "self_training",
    "write_your_own_story",
)
"""The order in which the notebooks are listed; others come after them."""


def write_notebook_pages(notebooks: Path, pages: Path) -> None:
    """Write a page for each notebook of a folder and one that lists them, and remove other pages."""
    pages.mkdir(exist_ok=True)
    names = sorted(path.stem for path in notebooks.glob("*.ipynb"))
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    index = pages / "index.rst"
    _write(index, TUTORIALS + "".join(f"   {name}\n" for name in names))
    kept = {index}
    for path in sorted(notebooks.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        blocks: list[str] = []
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                blocks += _markdown(cell.source)
            elif cell.cell_type == "code":
                blocks += [_directive("code-block", "python", cell.source)]
                for place, output in enumerate(cell.outputs):
                    picture = pages / f"{path.stem}-{number}-{place}.png"
                    blocks += _output(output, picture)
                    kept.add(picture)
        page = pages / f"{path.stem}.rst"
        _write(page, "\n\n".join(blocks) + "\n")
        kept.add(page)
    for page in pages.iterdir():
        if page not in kept:
            page.unlink()


LINKS = {"(docs/static/": "(../_static/", "(docs/contracts.md)": "(contracts.html)"}
"""Links within the repository, and what they are within the pages."""


def write_markdown_page(source: Path, page: Path) -> None:
    """Write a page of a Markdown file of the repository."""
    text = source.read_text(encoding="utf-8")
    for link, target in LINKS.items():
        text = text.replace(link, target)
    _write(page, "\n\n".join(_markdown(text)) + "\n")


def _write(page: Path, text: str) -> None:
    """Write a page, and leave it alone where it has not changed, so that Sphinx does not build it again."""
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _markdown(source: str) -> Iterator[str]:
    """The blocks of a cell: headings, and HTML between them."""
    formulas: list[str] = []

    def keep(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        formulas.append(mathml(match["block"] or match["inline"], as_block=bool(match["block"])))
        return f"FORMULA{len(formulas) - 1}X"

    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(MATH.sub(keep, source))
    start, at = 0, 0
    while at <= len(tokens):
        if at == len(tokens) or tokens[at].type == "heading_open":
            html = parser.renderer.render(tokens[start:at], parser.options, {})
            if html.strip():
                html = re.sub(r"FORMULA(\d+)X", lambda match: formulas[int(match[1])], html)
                yield _directive("raw", "html", re.sub(r'href="([\w./-]+)\.ipynb"', r'href="\1.html"', html))
            if at == len(tokens):
                return
            title = tokens[at + 1].content
            yield f"{title}\n{UNDERLINES[int(tokens[at].tag[1]) - 1] * len(title)}"
            at, start = at + 3, at + 3
        else:
            at += 1


def _output(output: Any, picture: Path) -> Sequence[str]:
    """What a cell gave: a picture, a table, or text."""
    if output.output_type == "stream":
        return [_directive("code-block", "none", output.text)]
    data = output.get("data", {})
    if "image/png" in data:
        content = base64.b64decode(data["image/png"])
        if not picture.exists() or picture.read_bytes() != content:
            picture.write_bytes(content)
        return [f".. image:: {picture.name}\n   :alt: what the code above draws"]
    if "text/html" in data:
        return [_directive("raw", "html", f'<div class="output">{data["text/html"]}</div>')]
    return [_directive("code-block", "none", data["text/plain"])] if "text/plain" in data else []


def _directive(name: str, argument: str, content: str) -> str:
    lines = (f"   {line}" if line.strip() else "" for line in content.rstrip().splitlines())
    return f".. {name}:: {argument}\n\n" + "\n".join(lines)
