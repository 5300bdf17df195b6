"""Groups of workers, and each worker's probability of each group, also for a worker whom the fit has not seen.

Groups are recognised by the kinds of a story's quantities and by the dimension ``group``; names play no role.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.description import count_text
from ...models.parts.kernels import SMALLEST
from ..densities.enumerated import run_enumerated, site_dims, site_values
from ..densities.padded_sites import dirichlet_of, is_table
from ..densities.programs import compiled
from .confusion_scores import entropy
from .fitted import Fitted
from .intervals import INTERVAL, of_draws
from .posterior import Posterior, fitted_of


def describe_groups(fit: Posterior | Fitted, interval: float = INTERVAL) -> pd.DataFrame:
    """By group: its share, the entropy of its confusion matrix in nats, and the similarity to the identity (0 to 1).

    Args:
        fit: of a story with groups of workers or of annotations, such as ``annotator_groups`` or ``worker_clusters``.
        interval: mass of the equal-tailed intervals, where the fit has draws; between 0 and 1.

    Returns:
        By group share, entropy, similarity; with draws each with low and high. A share is of the annotations
        (``annotator_groups``) or of the workers (``worker_clusters``), as the story has it.

    Raises:
        ValueError: the story has no groups.
    """
    fitted = fitted_of(fit)
    tables = group_confusion_draws(fitted)
    shares = group_share_draws(fitted)
    columns = {} if shares is None else {"share": shares}
    columns |= {"entropy": entropy(tables).mean(-1), "similarity": similarity_to_identity(tables)}
    frame = pd.DataFrame(index=pd.RangeIndex(tables.shape[2], name="group"))
    for name, values in columns.items():
        frame[name] = values.mean((0, 1))
        if fitted.has_draws:
            frame[f"{name}_low"], frame[f"{name}_high"] = of_draws(values, interval)
    return frame


def weights_prior(fitted: Fitted) -> str | None:
    """The prior of the weights of groups, in words: the concentration in force, whether it was given or not.

    Returns:
        the sentence; None where the story has no weights of groups with a Dirichlet prior.
    """
    if not any(dims[-1:] == ("group",) for dims in fitted.dims.values()):
        return None
    found = {name: np.unique(np.asarray(values)) for name, values in _concentrations(fitted.at_size).items()}
    texts = []
    for name, values in found.items():
        each = f"each {fitted.dims[name][0]}'s weights over " if len(fitted.dims[name]) > 1 else "the weights of "
        n_groups = fitted.draws[name].shape[-1]
        numbers = ", ".join(f"{value:g}" for value in values)
        texts.append(f"{each}{count_text(n_groups, 'group')} are Dirichlet with concentration {numbers}")
    return "; ".join(texts) or None


@compiled(once=True)
def _concentrations(fitted: Fitted) -> dict[str, Array]:
    """Of sites that are weights of groups the concentrations, at the fit's first draw."""
    parameters = fitted.first_draw | fitted.fixed
    sites, _ = run_enumerated(fitted.model, fitted.annotations, site_values(parameters))
    return {
        name: dirichlet_of(site["fn"]).concentration
        for name, site in sites.items()
        if is_table(site) and site_dims(site)[-1:] == ("group",)
    }


def group_memberships(fit: Posterior | Fitted, annotations: Annotations | None = None) -> pd.DataFrame:
    r"""Probability that a worker is of each group, given all of the worker's annotations: workers × groups.

    Where the story derives it, it is the mean over the draws. Else

    .. math:: p(m \mid j) \propto \alpha_m \prod_{a \in j} \sum_k P(z_{i_a} = k) \, \beta^{(m)}_{k y_a}

    at the mean of the parameters, with the truth's posterior of each task.

    Args:
        fit: of a story with groups, such as ``annotator_groups`` or ``worker_clusters``.
        annotations: of workers in or outside the training data; those of the fit by default. Tasks that the fit has not
            seen get their posterior from these annotations, for which ``membership="answer"`` is needed.

    Raises:
        ValueError: the story has no groups.
        AnnotationError: no worker is named, the classes are others, a task is new where that cannot be, or the
            story says nothing of workers whom it has not seen.
    """
    fitted = fitted_of(fit)
    tables = group_confusion_draws(fitted).mean((0, 1))
    asked = fitted.annotations if annotations is None else annotations
    if not asked.named:
        raise AnnotationError("the annotations name no workers, so there is nobody to give a group")
    columns = pd.RangeIndex(len(tables), name="group")
    index = asked.workers.to_index("worker")
    if members := fitted.draws_of_role("membership"):
        if annotations is not None:
            raise AnnotationError(
                f"{fitted.story} gives each worker of the fit a group, and says nothing of others; leave annotations "
                "out, or fit annotator_groups"
            )
        return pd.DataFrame(members[0].mean(("chain", "draw")).to_numpy(), index=index, columns=columns)
    shares = group_share_draws(fitted)
    share = np.full(len(tables), 1 / len(tables)) if shares is None else shares.mean((0, 1))
    truth, asked = _truth(fitted, asked), asked.of_classes()
    of_row, label = asked.as_shown(truth[np.asarray(asked.task)]), asked.label_as_shown
    by_row = np.log(np.maximum(np.einsum("ak,mka->am", of_row, tables[:, :, label]), SMALLEST))
    if asked.count is not None:
        by_row *= np.asarray(asked.count)[:, None]
    scores = np.tile(np.log(np.maximum(share, SMALLEST)), (asked.n_workers, 1))
    np.add.at(scores, np.asarray(asked.worker), by_row)
    return pd.DataFrame(jax.nn.softmax(jnp.asarray(scores)), index=index, columns=columns)


def group_worker_confusions(fit: Posterior | Fitted, annotations: Annotations | None = None) -> np.ndarray:
    r"""Each worker's confusion matrix by the groups, :math:`\sum_m p(m \mid j) \, \beta^{(m)}`: ``(J, K, K)``.

    Arguments and errors as of :func:`group_memberships`.
    """
    tables = group_confusion_draws(fitted_of(fit)).mean((0, 1))
    return np.einsum("jm,mkl->jkl", group_memberships(fit, annotations).to_numpy(), tables)


def group_confusion_draws(fitted: Fitted) -> np.ndarray:
    """The groups' confusion matrices in each draw, ``(chain, draw, M, K, L)``.

    Raises:
        ValueError: the story has none.
    """
    for values in fitted.draws_of_role("group_confusion"):
        return values.to_numpy().astype(float)
    raise ValueError(
        f"{fitted.story} has no confusion matrices of groups; fit a story that has, such as annotator_groups or "
        "worker_clusters, or call derived(name, matrices, 'group', 'class', 'annotation', role='group_confusion') in a "
        "story of your own"
    )


def group_share_draws(fitted: Fitted) -> np.ndarray | None:
    """Return each group's share in each draw, ``(chain, draw, M)``; None where the story has no group shares."""
    for values in fitted.draws_of_role("group_share"):
        return values.to_numpy().astype(float)
    return None


def similarity_to_identity(confusions: np.ndarray) -> np.ndarray:
    """One minus the mean Jensen–Shannon divergence, in bits, of a confusion matrix's rows from the identity's.

    Args:
        confusions: ``(..., K, K)``.

    Returns:
        ``(...)``, 0 to 1.
    """
    from scipy.spatial.distance import jensenshannon

    identity = np.broadcast_to(np.eye(confusions.shape[-1]), confusions.shape)
    return 1 - (jensenshannon(confusions, identity, base=2, axis=-1) ** 2).mean(-1)


def _truth(fitted: Fitted, asked: Annotations) -> np.ndarray:
    """The truth's posterior of the tasks asked for, ``(N, K)``: the fit's own where it has seen the task."""
    if asked is fitted.annotations:
        return fitted.posterior
    if list(asked.classes) != list(fitted.annotations.classes):
        raise AnnotationError(
            f"the classes are {list(asked.classes)}, and the fit's are {list(fitted.annotations.classes)}; give "
            "classes=fit.annotations.classes when you make the annotations"
        )
    at = fitted.annotations.tasks.index_of(list(asked.tasks))
    new = at < 0
    truth = fitted.posterior[at]
    if not new.any():
        return truth
    if any("worker" in dims for dims in fitted.dims.values()):
        raise AnnotationError(
            f"task {asked.tasks[int(np.argmax(new))]!r} is none of the fit's, and {fitted.story} has parameters of "
            "each worker, so that nothing is known of new workers' annotations of new tasks; ask for the fit's tasks"
        )
    return np.where(new[:, None], fitted.with_data(asked).posterior, truth)
