"""Abstentions in a fit: whether they say something of the true class, and how many labels they decide."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.errors import check_name
from ...models import Abstaining
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .crowd_trust import ONE_SIDED, of_one_class_each
from .fitted import Fitted

INFORMATIVE, UNINFORMATIVE = "informative", "uninformative"
MANY = 0.1  # share of the labels that abstentions decide beyond which it is said


def with_abstentions_that(annotations: Annotations, are: str | None) -> Annotations:
    """The annotations whose abstentions are ``"informative"`` or ``"uninformative"``; None for what they are.

    Raises:
        UnknownNameError: it is another word.
        ValueError: there are no abstentions.
    """
    if are is None:
        return annotations
    check_name("value of abstentions", are, (INFORMATIVE, UNINFORMATIVE))
    if not annotations.abstains:
        raise ValueError(
            f"abstentions={are!r}: the annotations have no abstentions; name the values that are no class when you "
            "make them, as in Annotations.from_frame(frame, abstain=['abstain'])"
        )
    return annotations.replace(informative=are == INFORMATIVE)


def abstentions_decide(fitted: Fitted, posterior: np.ndarray) -> list[str]:
    """A warning where the labels of many tasks follow from what abstaining says of the class; else nothing.

    Args:
        fitted: of annotations with or without abstentions.
        posterior: of the labels, ``(N, K)``.
    """
    annotations = fitted.annotations
    if not (annotations.abstains and annotations.informative):
        return []
    n_tasks = annotations.n_tasks
    without = np.asarray(_without_rates(fitted.at_size))[:n_tasks]
    # Where classes tie to rounding, no label is changed by choosing another.
    rows = np.arange(n_tasks)
    other = without[rows, posterior.argmax(-1)] < without.max(-1) - 1e-3
    changed = int(other.sum())
    if changed <= MANY * n_tasks:
        return []
    _, one_sided = of_one_class_each(annotations) if annotations.named else (None, 0.0)
    remedy = (
        "the workers give one class each, so that hardly anything else tells the classes: compare with gold labels of "
        "some tasks, and with the majority vote"
        if one_sided > ONE_SIDED
        else f"where a worker's abstaining does not depend on the true class, fit with abstentions={UNINFORMATIVE!r}"
    )
    return [
        f"how often workers abstain decides the labels of {changed:,} of {n_tasks:,} tasks ({changed / n_tasks:.0%}), "
        f"which would be others without it; {remedy}"
    ]


@compiled(once=True)
def _without_rates(fitted: Fitted) -> Array:
    """The labels' posterior at the same parameters without what rates of abstention say, ``(N, K)``."""
    data = fitted.annotations

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        emission = at.responses.emission
        said = emission.rates_by_task(data, jnp.asarray(data.label)) if isinstance(emission, Abstaining) else 0.0
        return jax.nn.softmax(at.log_joint - said, axis=-1)

    return fitted.mean_over_draws(of_draw)
