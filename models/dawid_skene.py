r"""Every worker has a confusion matrix (Dawid & Skene 1979; its Bayesian form as in Paun et al. 2018, figure 2).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    \beta_{jk} &\sim \text{Dirichlet}(\gamma_k) & (J, K, K) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    y_a &\sim \text{Categorical}(\beta_{j_a z_{i_a}}) & (A)
"""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd

from ..data import Annotations
from .parts.concentration import diagonal_concentration, pseudo_counts
from .parts.emissions import Confusion
from .parts.own_classes import wrong_classes
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior

TIE = 2.0
"""Factor of the prior of the row of ties, of comparisons."""


def dawid_skene(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    history: pd.DataFrame | np.ndarray | None = None,
) -> None:
    r"""Every worker has a confusion matrix: how often each class is annotated to tasks of each class.

    Sites: ``prevalence (K,)``, ``confusion (J, K, K)``, ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        diagonal: Dirichlet concentration of the right annotation, :math:`\gamma_{kk}`.
        off_diagonal: concentration of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default. With
            both defaults each class of a worker's confusion matrix counts like two right annotations and a wrong one,
            whatever the K. Of comparisons the row of ties counts twice: with the weight of the others, a few ties by
            chance make a class of all pairs on which workers differ. A ``history`` is added.
        history: what is known of workers from before, as pseudo-counts: a frame with the columns worker, truth,
            label, count, or an array ``(J, K, K)``. Workers without a history keep the prior.

    Raises:
        StoryError: no worker is named, a concentration is not positive, or a history does not fit the annotations.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal, wrong_classes(annotations))
    if annotations.sides is not None:
        prior = prior * np.array([1.0, 1.0, TIE], np.float32)[:n_classes, None]
    concentration = prior if history is None else prior + pseudo_counts(history, annotations)
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample(
            "confusion", dist.Dirichlet(concentration), infer={"event_dims": ["annotation"], "role": "confusion"}
        )
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
