r"""Classes lie on a line, which every worker cuts into ordered levels in a way of their own (Uebersax & Grove 1993).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    \delta_k &\sim \text{Normal}(\log d, 1/2) & (K - 1) \\
    \mu_m &\sim \text{Normal}(0, 1/2) & (K - 1) \\
    \epsilon_{jm} &\sim \text{Normal}(0, \sigma) & (J, K) \\
    x_k &= \sum_{m \le k} e^{\delta_m}, \quad x_0 = 0, \quad h_k = (x_{k-1} + x_k) / 2 & (K) \\
    a_j &= e^{\epsilon_{j1}}, \quad \bar c_j = \bar h + \mu_1 + \epsilon_{j2} & (J) \\
    c_{j,l+1} - c_{jl} &= (h_{l+1} - h_l) \, e^{\mu_{l+1} + \epsilon_{j,l+2}} & (J, K - 2) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    P(y_a \ge l \mid z_i = k) &= \sigma(a_j (x_k - c_{jl})) & (A)

The first class lies at 0, and the crowd's discrimination is 1, by which the steps between classes, and all cuts, are
in logits. A worker has :math:`a_j`, how finely they discriminate; :math:`\bar c_j`, the mean of their cuts, which is
high for a severe one; and the widths of the K − 2 levels that are not at the ends. All shrink to the crowd's, and the
crowd's cuts to the middle between classes. A level that is wide for the whole crowd takes annotations from its
neighbours, whose tasks are then told by who went beyond it. (How far workers differ, :math:`\sigma`, is not learned:
the mode of it and of what workers differ in is far above it.)

Where questions have classes of their own, those that share classes are of one line, as in :mod:`.order_of_questions`.
Of G lines there are K − G steps and as many cuts of the crowd; each line has a mean of the cuts and widths of its own,
and a worker has one discrimination on all.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.derived import derived
from .parts.graded import Graded, cuts_around, even_cuts, on_lines, places
from .parts.order_of_questions import order_of_classes
from .parts.simulated_inputs import in_order, simulated_with
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import Prevalence, TruthPrior

OF_LEVELS = Prevalence(10.0)
"""The truth prior where annotations are levels of another truth, and none is given.

A rare class and cuts that lie high look alike. At the mode under a flat prior small panels have all their tasks in one
class: of 20 panels of 60 tasks and 5 workers, who hardly tell the classes apart, 3 had, and none under this one, with
.78 of the labels right instead of .71 (``tests/models/test_of_levels.py``).
"""

SCALE = 0.5  # standard deviations of what is the crowd's, in logits and in logarithms of widths


@simulated_with(in_order, n_classes=5)
def graded_response(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    step: float = 3.0,
    spread: float = 0.3,
) -> None:
    r"""Every worker cuts the line of the ordered classes at places of their own, near those of the crowd.

    Sites, of one line: ``prevalence (K,)``, ``step (K - 1,)`` (:math:`\delta`, logarithms of the distances of
    neighbouring classes), ``common (K - 1,)`` (:math:`\mu`, the crowd's cuts: how far their mean lies above the middle,
    and the logarithms of how much wider each inner level is than the class), ``individual (J, K)``
    (:math:`\epsilon`), ``truth (N,)``, ``annotation (A,)``. Derived: ``confusion (J, K, K)``, ``discrimination (J,)``,
    ``severity (J,)``, how many logits the worker's cuts lie above the crowd's, of several lines in the mean, and ``cuts
    (J, K - 1)``.

    Args:
        annotations: who labelled what, in classes from the least to the greatest; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default, of levels of another
            truth with :data:`OF_LEVELS`.
        step: the distance of neighbouring classes that is expected, :math:`d`, in logits; at 3, and with cuts in the
            middle between them, 64 % of the annotations of an inner class are right, and 82 % at the ends.
        spread: :math:`\sigma`, how far workers differ in their cuts' mean, in logits, and in the logarithms of
            discrimination and widths.

    Raises:
        StoryError: no worker is named, more than two classes have no order, those of two questions have two orders, or
            ``step`` or ``spread`` is not positive.
    """
    n_workers, lines = named_workers(annotations), order_of_classes(annotations).lines
    truth_prior = OF_LEVELS if truth_prior is None and annotations.scored else truth_prior
    usual, apart = jnp.log(positive("step", step)), positive("spread", spread)
    n_levels = [annotations.n_levels] if len(lines) == 1 else [len(classes) for classes in lines]
    n_cuts = sum(n_levels) - len(lines)
    steps = dist.Normal(usual, SCALE).expand([annotations.n_classes - len(lines)]).to_event(1)
    steps = numpyro.sample("step", steps, infer={"event_dims": ["gap"]})
    cuts = dist.Normal(0.0, SCALE).expand([n_cuts]).to_event(1)
    common = numpyro.sample("common", cuts, infer={"event_dims": ["cut"]})
    with numpyro.plate("worker", n_workers, dim=-1):
        around = dist.Normal(0.0, apart).expand([1 + n_cuts]).to_event(1)
        own = numpyro.sample("individual", around, infer={"event_dims": ["facet"]})
    ends = np.cumsum([len(classes) - 1 for classes in lines])[:-1]  # of each line but the last
    severity = own[:, 1 + np.array([0, *ends])].mean(-1)
    changes = jnp.split(common + own[:, 1:], ends, axis=-1)
    each = []
    for step_sizes, change, levels in zip(jnp.split(steps, ends), changes, n_levels, strict=True):
        place = places(step_sizes)
        each.append(Graded(place, jnp.exp(own[:, 0]), cuts_around(even_cuts(place, levels), change)))
    emission = on_lines(each, lines)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, emission, annotations)
    derived("confusion", emission.table, "worker", "class", "annotation", role="confusion")
    derived("discrimination", jnp.exp(own[:, 0]), "worker")
    derived("severity", severity, "worker")
    derived("cuts", jnp.concatenate([of_line.cut for of_line in each], -1), "worker", "cut")
