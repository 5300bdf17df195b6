"""Pictures of a fit: workers' confusion tables, workers' accuracy, how an engine converged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..data import AnnotationError, Ids, UnknownNameError, unknown_name
from ..data.columns import type_hint
from .results import INTERVAL, Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = "Blues"  # one hue: it is read by lightness alone
DARK = "#08519c"
MAX_CELLS = 10  # classes up to which the cells of a table hold numbers
MAX_NAMES = 24  # classes up to which all are named on an axis


def plot_confusions(
    fit: Fit,
    *,
    workers: Iterable[Hashable] | None = None,
    max_workers: int = 20,
    interval: float = INTERVAL,
    axes: Any = None,
) -> np.ndarray:
    """Draw workers' confusion tables as heat maps: the true class downwards, the answer across.

    With up to ten classes the cells hold the probabilities and, where the fit has draws, half the width of their
    intervals.

    Args:
        fit: a fit of annotations that name their workers.
        workers: ids of the workers to show, in this order; by default those with the most answers.
        max_workers: how many to show at the most where `workers` does not say which.
        interval: mass of the equal-tailed intervals, between 0 and 1.
        axes: axes to draw in, one a worker, without title and colour bar around them; by default a new figure.

    Returns:
        The axes drawn in, shape (number of workers shown,).

    Raises:
        UnknownNameError: a worker is none of the fit's.
        AnnotationError: the annotations name no workers.
        ValueError: nobody is selected, there are too few axes, or `interval` is no mass.
    """
    scores = _scores(fit, interval)
    given = None if axes is None else np.ravel(np.asarray(axes, dtype=object))
    limit = max_workers if given is None else min(max_workers, len(given))
    shown = _most_answers(scores, limit) if workers is None else _positions(fit.annotations.workers, workers)
    if given is not None and len(given) < len(shown):
        raise ValueError(f"axes={len(given)} axes: the {len(shown)} workers need one each")

    tables = fit.worker_draws[:, :, shown]
    means = tables.mean((0, 1))
    spread = _half_width(tables, interval) if fit.has_draws else None
    names = [_short(name, 18) for name in fit.annotations.classes]
    n_columns = _n_columns(len(shown), len(names))
    drawn = _new_grid(len(shown), n_columns, names) if given is None else given[: len(shown)]
    for i, ax in enumerate(drawn):
        image = ax.imshow(means[i], cmap=COLOURS, vmin=0, vmax=1)
        if len(names) <= MAX_CELLS:
            _write_cells(ax, means[i], None if spread is None else spread[i])
        alone = given is not None
        _name_classes(ax, names, x=alone or i + n_columns >= len(shown), y=alone or i % n_columns == 0)
        ax.set_title(_title(scores.iloc[shown[i]]), fontsize=8, linespacing=1.4, parse_math=False)
    if given is None:
        figure = drawn[0].figure
        note = f"\nsmall: ± half its {interval:.0%} interval" if spread is not None and len(names) <= MAX_CELLS else ""
        shrink = min(1.0, 3.0 / figure.get_figheight())
        bar = figure.colorbar(image, ax=list(drawn), aspect=20, fraction=0.03, pad=0.02, shrink=shrink)
        bar.set_label(f"probability of the answer{note}", fontsize=9)
        bar.outline.set_visible(False)
        figure.supxlabel("answer", fontsize=10)
        figure.supylabel("true class", fontsize=10)
        figure.suptitle(f"Confusion tables of {_whom(len(shown), scores, workers is None)}", fontsize=11)
    return drawn


def plot_workers(fit: Fit, *, ax: Axes | None = None, max_workers: int = 40, interval: float = INTERVAL) -> Axes:
    """Draw workers' accuracy from the best down, with intervals where the fit has draws.

    The area of a dot grows with the worker's number of answers.

    Args:
        fit: a fit of annotations that name their workers.
        ax: axes to draw in; by default a new figure.
        max_workers: how many to show at the most: those with the most answers.
        interval: mass of the equal-tailed intervals, between 0 and 1.

    Returns:
        The axes.

    Raises:
        AnnotationError: the annotations name no workers.
        ValueError: `max_workers` is less than one, or `interval` is no mass.
    """
    scores = _scores(fit, interval)
    shown = scores.iloc[_most_answers(scores, max_workers)].sort_values("accuracy", kind="stable")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.5, 1.3 + 0.2 * max(len(shown), 5)), layout="constrained")
    rows = np.arange(len(shown))
    if fit.has_draws:
        ax.hlines(rows, shown["accuracy_low"], shown["accuracy_high"], color=DARK, alpha=0.45, linewidth=1.6)
    most = max(int(scores["annotations"].max()), 1)
    dots = ax.scatter(shown["accuracy"], rows, s=12 + 90 * shown["annotations"] / most, color=DARK, zorder=3)
    dots.set_edgecolor("white")
    ax.set_yticks(rows, [_short(worker, 24) for worker in shown.index], fontsize=7, parse_math=False)
    ax.set_ylim(-0.8, len(shown) - 0.2)
    ax.set_ylabel("worker")
    ax.set_xlabel("accuracy" + (f", with {interval:.0%} intervals" if fit.has_draws else ""))
    ax.set_title(f"Accuracy of {_whom(len(shown), scores, True)}", fontsize=11)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    sizes = sorted({int(n) for n in np.quantile(shown["annotations"], [0, 0.5, 1], method="nearest")})
    for n in sizes:
        ax.scatter([], [], s=12 + 90 * n / most, color=DARK, edgecolor="white", label=f"{n:,}")
    ax.legend(title="answers", fontsize=7, title_fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax


def plot_history(fit: Fit, ax: Axes | None = None) -> Axes:
    """Draw how the engine converged: EM's log-posterior, or SVI's loss with its running mean.

    Args:
        fit: a fit by EM or SVI.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: the fit has no history, as those by NUTS.
    """
    history = fit.history
    if history.empty:
        raise ValueError(
            f"a fit by method={fit.method!r} has no history to plot; look at its chains with "
            "arviz.plot_trace(fit.idata)"
        )
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    if fit.method == "svi":
        ax.plot(history.index, history, color=DARK, alpha=0.25, linewidth=0.7, label="each step")
        window = max(len(history) // 50, 1)
        ax.plot(history.rolling(window, center=True, min_periods=1).mean(), color=DARK, label=f"mean of {window} steps")
        ax.set_ylabel("loss: negative evidence lower bound")
        ax.legend(frameon=False, fontsize=8)
    else:
        ax.plot(history.index, history, color=DARK, marker="o", markersize=3 if len(history) <= 100 else 0)
        ax.set_ylabel("log-posterior")
    ax.set_xlabel("iteration")
    ax.set_title(f"{fit.story} by {fit.method.upper()}", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _scores(fit: Fit, interval: float) -> pd.DataFrame:
    if not fit.annotations.named:
        raise AnnotationError("the annotations name no workers, so there is nothing to draw of them")
    return fit.worker_scores(interval)


def _most_answers(scores: pd.DataFrame, limit: int) -> list[int]:
    """Positions of the workers with the most answers, ties in the order of the workers."""
    if limit < 1:
        raise ValueError(f"max_workers={limit}: at least one worker is needed")
    return np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:limit].tolist()


def _positions(ids: Ids, workers: Iterable[Hashable]) -> list[int]:
    chosen = workers if isinstance(workers, str) else list(workers)
    found = ids.index_of(chosen).tolist()
    if not found:
        raise ValueError("workers=[] selects nobody; name at least one, or leave workers out")
    if -1 in found:
        raise _unknown_worker(list(chosen)[found.index(-1)], ids)
    return found


def _unknown_worker(worker: Hashable, ids: Ids) -> UnknownNameError:
    return UnknownNameError(f"{unknown_name('worker', worker, ids)}{type_hint(worker, ids)}")


def _half_width(tables: np.ndarray, interval: float) -> np.ndarray:
    tail = (1 - interval) / 2
    low, high = np.quantile(tables, [tail, 1 - tail], axis=(0, 1))
    return (high - low) / 2


def _whom(n_shown: int, scores: pd.DataFrame, by_answers: bool) -> str:
    if n_shown >= len(scores):
        return f"all {len(scores):,} workers" if len(scores) > 1 else "the only worker"
    which = "those with the most answers" if by_answers else "as chosen"
    return f"{n_shown} of {len(scores):,} workers, {which}"


def _title(score: pd.Series) -> str:
    n = int(score["annotations"])
    low_high = f" ({score['accuracy_low']:.2f}–{score['accuracy_high']:.2f})" if "accuracy_low" in score else ""
    answers = f"{n:,} answer{'' if n == 1 else 's'}"
    worker = _short(score.name, 20)
    return f"{'worker ' if len(worker) <= 8 else ''}{worker}: {answers}\naccuracy {score['accuracy']:.2f}{low_high}"


def _short(name: object, width: int) -> str:
    """A name on one line, its middle left out where it is long: ids often differ only at the end."""
    text = " ".join(str(name).split())
    if len(text) <= width:
        return text
    return f"{text[: width - width // 3 - 1]}…{text[-(width // 3) :]}"


def _n_columns(n_workers: int, n_classes: int) -> int:
    widest = 5 if n_classes <= 5 else 4
    return n_workers if n_workers <= widest else min(widest, int(np.ceil(np.sqrt(n_workers))) + 1)


def _new_grid(n_workers: int, n_columns: int, names: Sequence[str]) -> np.ndarray:
    """A figure of as many panels as workers, each large enough for its title and the numbers in its cells."""
    import matplotlib.pyplot as plt

    panel = max(1.9, 0.42 * len(names)) if len(names) <= MAX_CELLS else 3.2
    n_rows = -(-n_workers // n_columns)
    longest = 0.065 * max(map(len, names))
    below = 0.1 if _fit_side_by_side(names) else 0.7 * longest
    size = (1.5 + longest + (panel + 0.12) * n_columns, 0.7 + below + (panel + 0.48) * n_rows)
    _, grid = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
    for ax in grid.flat[n_workers:]:
        ax.remove()
    return grid.ravel()[:n_workers]


def _write_cells(ax: Axes, means: np.ndarray, spread: np.ndarray | None) -> None:
    size = 9.0 if len(means) <= 5 else 7.5
    for (k, answer), p in np.ndenumerate(means):
        lines = [(_decimals(p), size, 0.0)]
        if spread is not None:
            lines = [
                (_decimals(p), size, 0.25 * size),
                (f"±{_decimals(float(spread[k, answer]))}", 0.65 * size, -0.7 * size),
            ]
        for text, fontsize, rise in lines:
            ax.annotate(
                text,
                (answer, k),
                (0, rise),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=fontsize,
                color="white" if p > 0.55 else "#1a1a1a" if p >= 0.005 else "0.6",
                in_layout=False,
            )


def _decimals(value: float) -> str:
    """Two decimals without the zero before the point: .07, 1.00."""
    return f"{value:.2f}".removeprefix("0")


def _fit_side_by_side(names: Sequence[str]) -> bool:
    return max(map(len, names)) <= (5 if len(names) <= 5 else 2)


def _name_classes(ax: Axes, names: Sequence[str], *, x: bool, y: bool) -> None:
    ticks = range(0, len(names), -(-len(names) // MAX_NAMES))
    shown = [names[k] for k in ticks]
    font: dict[str, Any] = {"fontsize": 8 if len(names) <= MAX_CELLS else 6, "parse_math": False}
    turned: dict[str, Any] = (
        {} if _fit_side_by_side(shown) else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    )
    ax.set_xticks(ticks, shown if x else [""] * len(shown), **font, **turned)
    ax.set_yticks(ticks, shown if y else [""] * len(shown), **font)
    ax.tick_params(length=0)
    ax.spines[:].set(color="0.8", linewidth=0.6)
