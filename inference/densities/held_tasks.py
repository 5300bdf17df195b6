r"""A story on some of the tasks, beside what is known of the others: their labels' probabilities are held fixed.

With :math:`n` the expected counts of the probability tables from the tasks that are held, their expected complete
log-likelihood is :math:`\sum n \log \theta` up to a constant. A story with it as a factor has, on the other tasks
alone, the steps of EM that Neal & Hinton (1998) call incremental: "A view of the EM algorithm that justifies
incremental, sparse, and other variants".
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpyro
from numpyro import handlers

from ...data import Annotations
from ...models import Story
from ...models.parts.kernels import SMALLEST
from .enumerated import Parameters
from .model import Model


@dataclass(frozen=True)
class HoldingTasks:
    """A story whose tables have expected counts of other tasks, and whose other parameters stay where they are."""

    story: Story

    def __call__(
        self, annotations: Annotations, *, held: Parameters, fixed: Parameters, **hyperparameters: Any
    ) -> None:
        """Run the story.

        Args:
            annotations: the tasks that are not held.
            held: expected counts by site, of the tasks that are.
            fixed: values by site of the parameters that do not move.
            hyperparameters: of the story.
        """
        hidden, values = handlers.block(hide=list(fixed)), handlers.substitute(data=fixed)
        with hidden, values, handlers.trace() as sites:
            self.story(annotations, **hyperparameters)
        for name, count in held.items():
            table = jnp.maximum(sites[name]["value"], SMALLEST)
            numpyro.factor(f"held_{name}", (count * jnp.log(table)).sum())


def holding_tasks(model: Model, held: Parameters, fixed: Parameters) -> Model:
    """The model that has :class:`HoldingTasks` as its story; arguments are those of a run of it."""
    hyperparameters = dict(model.hyperparameters) | {"held": held, "fixed": fixed}
    return Model(HoldingTasks(model.story), hyperparameters, (*model.numbers, "held", "fixed"))
