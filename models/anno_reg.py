r"""Confusion matrices on top of the classifier, driven off the identity by their trace (Tanno et al. 2019, Anno-Reg).

.. math::
    \beta_{jk} &\sim \text{Dirichlet}(\gamma_k) & (J, K, K) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid x_i) &= \sum_k f_k(x_i) \, \beta_{j_a k l} & (A)

and :math:`-\lambda \sum_j \text{tr}(\beta_j)` is added to the log-posterior: what workers annotate is to be explained
by workers as unreliable, and a classifier as sure, as the annotations allow. The truth is summed out of each annotation
by itself, so that a label is the classifier's prediction.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import diagonal_concentration
from .parts.contract import StoryError
from .parts.emissions import Confusion, PerAnnotation
from .parts.own_classes import wrong_classes
from .parts.scored_annotations import by_classifier, focused
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def anno_reg(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    weight: float = 0.1,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    focus: float = 0.0,
) -> None:
    r"""Workers have confusion matrices of small trace on top of a classifier, which is needed; labels are its own.

    Sites: ``confusion (J, K, K)``, ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: a classifier of the tasks' features, or other probabilities of the classes by task.
        weight: :math:`\lambda`, weight of each worker's trace, in nats; the paper's 0.01 is of means over tasks and
            over workers, so that it is :math:`0.01 N / J` here.
        diagonal: Dirichlet concentration of right annotations, :math:`\gamma_{kk}`.
        off_diagonal: of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default.
        focus: :math:`\gamma`, exponent of the focal loss in the place of the log-probability of each annotation (Lin et
            al. 2017); 0 for the log-probability itself.

    Raises:
        StoryError: no worker is named, there is no prior by task, a concentration is not positive, or the weight or
            the focus is negative.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal, wrong_classes(annotations))
    if not weight >= 0:
        raise StoryError(f"weight={weight!r}: a number from 0 is needed")
    log_probs = by_classifier("anno_reg", annotations, truth_prior)
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample(
            "confusion", dist.Dirichlet(prior), infer={"event_dims": ["annotation"], "role": "confusion"}
        )
    if weight:
        with numpyro.plate("worker", n_workers, dim=-1):
            numpyro.factor("trace", -weight * jnp.trace(confusion, axis1=-2, axis2=-1))
    emission = focused(PerAnnotation(Confusion(confusion), log_probs, annotations.evidence), focus)
    with tasks(annotations, log_probs) as truth:
        observe(truth, emission, annotations)
