"""The picture of groups of annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import entropy

from ..fitted.fitted import HoldsFitted, fitted_of
from ..fitted.groups import group_confusion_draws, group_share_draws, similarity_to_identity
from ..fitted.intervals import INTERVAL, checked_tail
from .heatmaps import draw_tables
from .style import given_axes, share


def plot_groups(fit: HoldsFitted, *, interval: float = INTERVAL, axes: Any = None) -> np.ndarray:
    r"""Draw the confusion matrices of groups, or clusters, of annotators, the one with the greatest share first.

    Above each: the group's share, and of its table the mean entropy of the rows in nats (0 where every annotation is
    certain) and the similarity to the identity, one minus the mean Jensen–Shannon divergence in bits of its rows from
    the identity's (1 where every annotation is right, as ``describe_groups`` has it).

    Args:
        fit: of a story that has, as parameter or reported, tables with the dimensions group, class and response.
        interval: mass of the equal-tailed intervals, between 0 and 1, half of whose width is in the cells where the
            fit has draws.
        axes: axes to draw in, one a group; by default a new figure.

    Returns:
        The axes, one a group.

    Raises:
        ValueError: the story has no groups, there are too few axes, or ``interval`` is no mass.
    """
    checked_tail(interval)
    fitted = fitted_of(fit)
    tables, shares = group_confusion_draws(fitted), group_share_draws(fitted)
    n_groups = tables.shape[2]
    weights = None if shares is None else shares.mean((0, 1))
    order = range(n_groups) if weights is None else np.argsort(-weights, kind="stable").tolist()
    disorder = entropy(tables, axis=-1).mean(-1).mean((0, 1))
    alike = similarity_to_identity(tables).mean((0, 1))
    titles = []
    for m in order:
        weight = "" if weights is None else f": {share(float(weights[m]))}"
        titles.append(f"group {m}{weight}\nentropy {disorder[m]:.2f}, similarity {alike[m]:.2f}")
    return draw_tables(
        tables[:, :, order],
        titles,
        fitted.annotations.classes,
        interval=interval if fitted.has_draws else None,
        heading=f"{n_groups} groups of annotators, by {fitted.story}"
        if n_groups > 1
        else f"The group of {fitted.story}",
        axes=given_axes(axes, n_groups, f"{n_groups} groups"),
    )
