"""A check whether a story's annotations depend on the classifier's probabilities of the task."""

import jax
from jax import Array
from jax.extend.core import Jaxpr, Var

from ...data import Annotations
from .enumerated import Parameters, density
from .model import Model
from .sites import parameter_spec, starting_point


def classifier_decides_annotations(model: Model, annotations: Annotations) -> bool:
    r"""Return whether :math:`P(y \mid z, i, j)` depends on what a classifier says of the task's class.

    It does for ``difficulty``, whose tasks are as difficult as the classifier finds them, and for ``crowd_layer``. Then
    a classifier that has learnt nothing says something wrong of the annotations; else it says nothing. The story's
    operations are followed from the classifier's weights, or from the probabilities that are given in their place;
    nothing is computed.

    Args:
        model: the story.
        annotations: the data.
    """

    def log_likelihood(weights: Parameters, prior: Array | None) -> Array:
        at = density(model, weights, annotations.replace(prior=prior))
        return at.likelihood.log_prob(annotations.label)

    def start() -> Parameters:
        values = starting_point(model, annotations, jax.random.key(0))
        return {name: values[name] for name in parameter_spec(model, annotations).weights}

    weights = jax.eval_shape(start)
    return _depends(jax.make_jaxpr(log_likelihood)(weights, annotations.prior).jaxpr)


def _depends(program: Jaxpr) -> bool:
    """Return whether a program's outputs may come from its inputs, as any output of an operation may from any input."""
    reached = set(program.invars)
    for operation in program.eqns:
        if any(isinstance(value, Var) and value in reached for value in operation.invars):
            reached.update(operation.outvars)
    return any(isinstance(value, Var) and value in reached for value in program.outvars)
