"""Abstentions in a fit: how many labels they decide, and classes that may be abstentions."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data.input_warnings import standing_for_none
from ...models import Abstaining
from ..densities.enumerated import Parameters
from ..densities.evidence import UNINFORMATIVE
from ..densities.programs import compiled
from ..fitted.fitted import Fitted
from .of_crowd import ONE_SIDED, of_one_class_each
from .register import Labels, Said, check

MANY = 0.1  # share of the labels that abstentions decide beyond which it is said
TIED = 1e-3  # probability by which classes differ that tie
LIFTED = 0.05  # probability by which abstentions lift a label among classes that tie, for it to be theirs


@check("abstentions_decide", "labels", needs={"story", "memory"})
def abstentions_decide(of: Fitted) -> Iterator[Said]:
    """Labels of many tasks that follow from what abstaining says of the class."""
    annotations, posterior = of.annotations, of.posterior
    if not (annotations.abstains and annotations.informative):
        return
    n_tasks = annotations.n_tasks
    without = np.asarray(_without_rates(of.at_size))[:n_tasks]
    # Where classes tie to rounding, no label is changed by choosing another, but abstentions may lift one of them.
    own, most = without[np.arange(n_tasks), posterior.argmax(-1)], np.sort(without, -1)
    tied = (most[:, -1] - most[:, -2] < TIED) & (posterior.max(-1) > most[:, -1] + LIFTED)
    changed = int(((own < most[:, -1] - TIED) | tied).sum())
    if changed <= MANY * n_tasks:
        return
    _, one_sided = of_one_class_each(annotations) if annotations.named else (None, 0.0)
    remedy = (
        "the workers give one class each, so that hardly anything else tells the classes: compare with gold labels of "
        "some tasks, and with the majority vote"
        if one_sided > ONE_SIDED
        else f"where a worker's abstaining does not depend on the true class, fit with abstentions={UNINFORMATIVE!r}"
    )
    yield Said(
        f"how often workers abstain decides the labels of {changed:,} of {n_tasks:,} tasks ({changed / n_tasks:.0%}), "
        "which would be others without it, or open",
        remedy,
        {"changed": changed, "tasks": n_tasks},
    )


@check("class_of_none", "labels", needs={"memory"})
def class_of_none(of: Labels) -> Iterator[Said]:
    """Classes whose names say that there is no label, such as "abstain", as a note: reading them has warned."""
    if not standing_for_none(of.annotations.classes):
        return
    votes = of.annotations.votes().sum(0)
    share = dict(zip(of.annotations.classes, votes / max(votes.sum(), 1), strict=True))
    if names := [name for name in standing_for_none(of.annotations.classes) if share[name] > 0]:
        listing = ", ".join(map(repr, names))
        yield Said(
            f"{listing}, of {sum(share[name] for name in names):.0%} of the annotations, counts as a class that tasks "
            "may be of, and looks like an abstention",
            f"where it is none of the classes, read the annotations with abstain=[{listing}]",
            {"classes": names},
            severity="note",
        )


@compiled(once=True)
def _without_rates(fitted: Fitted) -> Array:
    """The labels' posterior at the same parameters without what rates of abstention say, ``(N, K)``."""
    data = fitted.annotations

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        emission = at.likelihood.emission
        said = emission.rates_by_task(data, jnp.asarray(data.label)) if isinstance(emission, Abstaining) else 0.0
        return jax.nn.softmax(at.log_joint - said, axis=-1)

    return fitted.mean_over_draws(of_draw)
