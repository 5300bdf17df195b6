"""Plots inside the page: drawn, written into the page as SVG or PNG, and closed again."""

import base64
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from markupsafe import Markup

from .templates import render

MOST_SVG = 300_000  # bytes of an SVG; a plot of very many marks takes more and is written as PNG
FITS_A_PHONE = 6.5  # inches of width that can be read on a phone as a whole; a wider plot scrolls in its box
DPI = 150  # of PNGs
LOOK = {"svg.fonttype": "none", "svg.hashsalt": "crowdppl", "figure.dpi": 100}  # the browser's letters, fixed ids


def picture(draw: Callable[[], Any], alt: str) -> Markup:
    """A plot as an image of the page, in Matplotlib's default style whatever style the reader has set.

    Args:
        draw: makes a figure and returns its axes.
        alt: what the plot shows; the titles of the axes are added to it.
    """
    from matplotlib import pyplot as plt
    from matplotlib import style

    with style.context(["default", LOOK]), plt.ioff(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the browser has more letters
        axes = np.ravel(np.asarray(draw(), dtype=object))
        figure = axes[0].figure
        try:
            width = float(figure.get_size_inches()[0])
            kind, data = _written(figure)
            titles = _titles(figure, axes)
        finally:
            plt.close(figure)
    return render(
        "picture",
        alt=alt,
        titles=titles,
        kind=kind,
        data=base64.b64encode(data).decode("ascii"),
        width=f"{width * 96:.0f}",
        wide=width > FITS_A_PHONE,
    )


def _written(figure: Any) -> tuple[str, bytes]:
    """The kind of image and its bytes, which hold neither a date nor anything else that changes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    if buffer.tell() <= MOST_SVG:
        return "svg+xml", buffer.getvalue()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, transparent=True, metadata={"Software": None})
    return "png", buffer.getvalue()


def _titles(figure: Any, axes: np.ndarray) -> str:
    """The titles of the figure and its axes, in one line."""
    found = [figure.get_suptitle()] + [ax.get_title(loc=side) for ax in axes for side in ("left", "center")]
    return "; ".join(" ".join(title.split()) for title in found if title)
