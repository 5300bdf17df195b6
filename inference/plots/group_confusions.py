"""The picture of groups of annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from ..fitted.intervals import INTERVAL, checked_tail
from ..results import Fit
from .heatmaps import draw_tables
from .style import given_axes, share

TABLE = ("group", "truth", "annotation")  # as fits name the dimensions group, class and response of a story


def plot_groups(fit: Fit, *, interval: float = INTERVAL, axes: Any = None) -> np.ndarray:
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
    tables = _tables(fit)
    n_groups = tables.shape[2]
    of_whom, weights = _shares(fit)
    order = range(n_groups) if weights is None else np.argsort(-weights, kind="stable").tolist()
    disorder = entropy(tables, axis=-1).mean(-1).mean((0, 1))
    alike = similarity_to_identity(tables).mean((0, 1))
    titles = []
    for m in order:
        weight = "" if weights is None else f": {share(float(weights[m]))} of the {of_whom}"
        titles.append(f"group {m}{weight}\nentropy {disorder[m]:.2f}, similarity {alike[m]:.2f}")
    return draw_tables(
        tables[:, :, order],
        titles,
        fit.annotations.classes,
        interval=interval if fit.has_draws else None,
        heading=f"{n_groups} groups of annotators, by {fit.story}" if n_groups > 1 else f"The group of {fit.story}",
        axes=given_axes(axes, n_groups, f"{n_groups} groups"),
    )


def similarity_to_identity(tables: np.ndarray) -> np.ndarray:
    """One minus the mean Jensen–Shannon divergence, in bits, of a table's rows from the identity's.

    Args:
        tables: ``(..., K, K)``.

    Returns:
        ``(...)``, 0 to 1.
    """
    identity = np.broadcast_to(np.eye(tables.shape[-1]), tables.shape)
    return 1 - (jensenshannon(tables, identity, base=2, axis=-1) ** 2).mean(-1)


def _tables(fit: Fit) -> np.ndarray:
    """The groups' tables in each draw, ``(chain, draw, M, K, L)``, whatever the story calls them."""
    reported = [str(name) for name, values in fit.derived.items() if values.dims == TABLE]
    found = [fit.derived_draws(name)[name] for name in reported]
    found += [values for values in fit.draws.values() if values.dims[2:] == TABLE]
    for values in found:
        if np.allclose(values.sum("annotation"), 1, atol=1e-3):  # logits are none
            return values.to_numpy().astype(float)
    raise ValueError(
        f"{fit.story} has no tables of groups; fit a story that has, such as annotator_groups or worker_clusters, or "
        "report(name, tables, 'group', 'class', 'response') in your own"
    )


def _shares(fit: Fit) -> tuple[str, np.ndarray | None]:
    """What the groups have a share of, and each group's; None where the story has no weights of groups."""
    found = [value for name, value in fit.derived.items() if value.dims == ("group",) and str(name).endswith("share")]
    if found:
        return "annotations", found[0].to_numpy()
    of_groups = [value for value in fit.parameters.values() if value.dims == ("group",)]
    return "workers", of_groups[0].to_numpy() if of_groups else None
