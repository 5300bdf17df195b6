r"""Classes have subtypes: the annotations to a task share more than its class (Li, Rubinstein & Cohn 2019, EBCC).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    w_k &\sim \text{Dirichlet}(\eta) & (K, M) \\
    \beta_{jkm} &\sim \text{Dirichlet}(\gamma_k) & (J, K, M, K) \\
    z_i &\sim \text{Categorical}(\rho), \quad g_i \sim \text{Categorical}(w_{z_i}) & (N) \\
    y_a &\sim \text{Categorical}(\beta_{j_a z_{i_a} g_{i_a}}) & (A)

(The subtype :math:`g_i` is summed out.) What workers have in common beyond the class, such as a trap that most fall
into, is a subtype of its own. :func:`ebcc` is the story with the authors' settings.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import diagonal_concentration, sample_shares, whole
from .parts.own_classes import wrong_classes
from .parts.starts import subtype_confusions
from .parts.subtypes import Subtypes
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def independent_confusion_subtypes(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    subtypes: int = 2,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    share: float = 1.0,
) -> None:
    r"""Classes have subtypes of tasks, and every worker a row of annotations for each subtype of each class.

    Sites: ``prevalence (K,)``, ``weights (K, M)``, ``confusion (J, K, M, K)``, ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        subtypes: number M of subtypes of each class; with one it is Dawid & Skene's story.
        diagonal: Dirichlet concentration of the right annotation, :math:`\gamma_{kk}`.
        off_diagonal: concentration of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default.
        share: :math:`\eta`, concentration of each subtype's share of its class.

    Raises:
        StoryError: no worker is named, a concentration is not positive, or there is no subtype.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    n_subtypes = whole("subtypes", subtypes)
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal, wrong_classes(annotations))
    rows = dist.Dirichlet(jnp.broadcast_to(prior[:, None], (n_classes, n_subtypes, n_classes))).to_event(2)
    weights = sample_shares("weights", n_subtypes, share, "subtype", plate=("class", n_classes))
    with numpyro.plate("worker", n_workers, dim=-1):
        confusion = numpyro.sample(
            "confusion",
            rows,
            infer={
                "event_dims": ["class", "subtype", "annotation"],
                "start": lambda key: subtype_confusions(annotations, n_subtypes, key),
            },
        )
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Subtypes(confusion, weights), annotations)


def ebcc(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    subtypes: int = 10,
    diagonal: float = 4.0,
    off_diagonal: float | None = 1.0,
    share: float | None = None,
) -> None:
    r"""Classes have subtypes of tasks, with the priors and the ten subtypes of its authors (EBCC).

    It is :func:`independent_confusion_subtypes` with M = 10, :math:`\eta = 0.1 / M`, :math:`\gamma_{kk} = 4` and
    :math:`\gamma_{kl} = 1`. The authors fit it by variational inference from several starts, of which they keep the one
    of the highest bound; EM does so with ``restarts=``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        subtypes: number M of subtypes of each class.
        diagonal: Dirichlet concentration of the right annotation, :math:`\gamma_{kk}`.
        off_diagonal: concentration of each wrong annotation, :math:`\gamma_{kl}`.
        share: :math:`\eta`, concentration of each subtype's share of its class; :math:`0.1 / M` by default.

    Raises:
        StoryError: no worker is named, a concentration is not positive, or there is no subtype.
    """
    independent_confusion_subtypes(
        annotations,
        truth_prior=truth_prior,
        subtypes=subtypes,
        diagonal=diagonal,
        off_diagonal=off_diagonal,
        share=0.1 / whole("subtypes", subtypes) if share is None else share,
    )
