"""Formulas as MathML, which browsers show without a script: the pages need no network."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

SPELLED = {r"\dots": r"\ldots", r"\Big": ""}
"""What the converter of docutils does not know, and what it is written as."""


def mathml(formula: str, *, as_block: bool) -> str:
    """The MathML element of a formula in LaTeX.

    Raises:
        docutils.utils.math.MathError: the formula has what the converter does not know.
    """
    for unknown, known in SPELLED.items():
        formula = formula.replace(unknown, known)
    if as_block and (r"\\" in formula or "&" in formula) and r"\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    return str(tex2mathml(formula.strip(), as_block=as_block))


def setup(app: Any) -> None:
    """Render the formulas of all HTML pages so."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode
