"""The plot of how an engine converged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..fitted.posterior import Posterior, fitted_of
from .style import clean, legend, new_axes, short, strong, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_history(fit: Posterior, ax: Axes | None = None) -> Axes:
    """Draw the engine's objective by iteration: EM's log-posterior, or SVI's loss with its running mean.

    Args:
        fit: a fit by EM or SVI.
        ax: axes to draw in; by default a new figure.

    Raises:
        ValueError: the fit has no history; NUTS leaves none.
    """
    fitted = fitted_of(fit)
    history = fitted.history
    if history.empty:
        raise ValueError(
            f"a fit by method={fitted.method!r} has no history to plot; fits by 'em' and 'svi' have. Look at its "
            "chains with arviz.plot_trace(fit.idata)"
        )
    ax = new_axes(ax, 6.5, 3.5)
    if fitted.method == "svi":
        ax.plot(history.index, history, color=strong(), alpha=0.25, linewidth=0.7, label="each step")
        window = max(len(history) // 50, 1)
        ax.plot(
            history.rolling(window, center=True, min_periods=1).mean(), color=strong(), label=f"mean of {window} steps"
        )
        ax.set_ylabel("loss (negative evidence lower bound)")
        legend(ax)
    else:
        ax.plot(history.index, history, color=strong(), marker="o", markersize=3 if len(history) <= 100 else 0)
        ax.set_ylabel("log-posterior")
    ax.set_xlabel("iteration" if fitted.method == "em" else "step")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "−"))
    title(ax, f"{short(fitted.story, 40)} fitted by {fitted.method.upper()}")
    clean(ax)
    return ax
