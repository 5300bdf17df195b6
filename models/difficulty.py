r"""Workers err more on difficult tasks (Xu et al., Data Difficulty Specified Crowdsourcing).

.. math::
    \lambda_{jk} &\sim \text{LogNormal}(\mu, \sigma) & (J, K) \text{ or } (J, 1) \\
    d_i &= (\max_k p_{ik} - 1 / K)^2 & (N) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = k \mid z_i = k) &= \frac{e^{\lambda_{jk} d_i}}{e^{\lambda_{jk} d_i} + K - 1} & (A)

with the rest spread evenly over the other classes. For two classes it is the paper's :math:`\sigma(\lambda_{jk} d_i)`,
:math:`d_i = (p_i - 1/2)^2` (equations 1 and 2, with the second class as the positive one); for more, a worker has one
ability for all of them, or by choice one for each, which costs K logarithms an annotation.

*Adaptive*: :math:`p_i` is what the truth's prior, a classifier, says of the task. In the paper the classifier learns
through :math:`d_i` too, so that the gradient of its weights is that of the likelihood. A network without a prior learns
from the labels alone unless ``through_difficulty=True``: through :math:`d_i` it can learn where workers agree instead
of what the classes are.
*Fixed*: it is the share of each class among the task's annotations, which is then the prior of the truth as well; a
classifier learns from the posterior and does not change it.
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from .parts.concentration import positive
from .parts.contract import StoryError
from .parts.correct import Correct
from .parts.derived import derived
from .parts.kernels import safe_log
from .parts.own_classes import beside, own_of_tasks
from .parts.simulated_inputs import features_decide, simulated_with
from .parts.starts import soft_votes, vote_confusions
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import ClassPrior, Given, TruthPrior, class_log_probs, differs_by_task


def _prepare_simulation(
    design: Annotations, hyperparameters: dict[str, Any], rng: np.random.Generator
) -> tuple[Annotations, dict[str, Any]]:
    """Features that decide the truth, where nothing was asked for that tells tasks apart."""
    if hyperparameters.get("kind") == "fixed" or {"truth_prior", "votes"} & hyperparameters.keys():
        return design, hyperparameters
    return features_decide(design, hyperparameters, rng)


@simulated_with(_prepare_simulation)
def difficulty(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    kind: Literal["adaptive", "fixed"] | None = None,
    votes: np.ndarray | None = None,
    votes_as_prior: bool = True,
    by_class: bool | None = None,
    through_difficulty: bool | None = None,
    location: float = 1.5,
    scale: float = 1.0,
) -> None:
    r"""Workers err more on difficult tasks; a classifier or the vote counts decide which tasks are difficult.

    Sites: ``ability (J, K)``, or ``(J, 1)`` where classes share it (positive), ``truth (N,)``, ``annotation (A,)``.
    Derived: ``difficulty (N,)``, which is 0 for the hardest tasks, and ``recall (J, K)``, each worker's probability of
    a right annotation to the clearest task of the class, :math:`\sigma(\lambda_{jk} / 4)` for two classes:
    specificity and sensitivity.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; *adaptive* needs one by task: a classifier, or probabilities given.
        kind: where a task's difficulty comes from: the prior (``"adaptive"``) or the annotations (``"fixed"``); None
            for the prior where it differs by task and no ``votes`` are given, and for the annotations elsewhere.
        votes: for *fixed*, the classes' shares ``(N, K)`` in place of those of the annotations; a simulation of *fixed*
            needs them.
        votes_as_prior: for *fixed*, whether the votes are the prior of the truth too, as in the paper; else
            ``truth_prior`` is.
        by_class: whether a worker has an ability for each class; None for yes with two classes, no with more.
        through_difficulty: for *adaptive*, whether a classifier without a prior learns through the difficulty too, as
            in the paper; else it learns from the labels alone. None for yes of a logistic regression, and no of a
            network.
        location: :math:`\mu`, mean of the logarithm of the abilities.
        scale: :math:`\sigma`, its standard deviation.

    Raises:
        StoryError: no worker is named, a scale is not positive, the difficulty has nothing to come from, a
            classifier that does not change the posterior has a prior, or ``through_difficulty`` would be ignored.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    n_abilities = n_classes if (n_classes == 2 if by_class is None else by_class) else 1
    prior = dist.LogNormal(location, positive("scale", scale)).expand([n_abilities]).to_event(1)
    possible = beside(annotations)
    clearest, odds = (1 - 1 / possible) ** 2, np.log(possible - 1)  # (K,)

    dims = ["class"] if n_abilities > 1 else ["all_classes"]

    def start(key: Array) -> Array:
        right = jnp.diagonal(vote_confusions(annotations), axis1=-2, axis2=-1)
        right = jnp.clip(right if n_abilities > 1 else right.mean(-1, keepdims=True), 0.01, 0.99)
        chance, clear = (odds, clearest) if n_abilities > 1 else (odds.mean(), clearest.mean())
        return jnp.maximum((jax.scipy.special.logit(right) + chance) / clear, 0.1)

    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", prior, infer={"event_dims": dims, "start": start})
    if kind is None:
        kind = "adaptive" if votes is None and differs_by_task(truth_prior, annotations) else "fixed"
    log_probs, clarity = _by_task(annotations, truth_prior, kind, votes, votes_as_prior, through_difficulty)
    with tasks(annotations, log_probs) as truth:
        observe(truth, Correct(ability, n_classes, scale=clarity, offset=-math.log(n_classes - 1)), annotations)
    derived("difficulty", clarity, "task", role="clarity")
    recall = jax.nn.sigmoid(ability * clearest - odds)
    derived("recall", jnp.broadcast_to(recall, (n_workers, n_classes)), "worker", "class")


def _by_task(
    annotations: Annotations,
    truth_prior: TruthPrior | None,
    kind: str,
    votes: np.ndarray | None,
    votes_as_prior: bool,
    through_difficulty: bool | None,
) -> tuple[Array, Array]:
    """Log-probabilities of the classes ``(N, K)``, and how clear each task is, ``(N,)``."""
    if kind == "adaptive":
        if votes is not None:
            raise StoryError("votes= are difficulties for kind='fixed'; leave them out, or give kind='fixed'")
        log_probs = class_log_probs(annotations, truth_prior)
        if jnp.ndim(log_probs) != 2:
            raise StoryError(
                "difficulty(kind='adaptive') takes a task's difficulty from the probabilities of its classes, and this "
                "prior is the same for all tasks; give a classifier, probabilities as truth_prior, or kind='fixed'"
            )
        probs = jnp.exp(log_probs)
        through = learns_through(truth_prior, through_difficulty)
        return log_probs, _clarity(probs if through else jax.lax.stop_gradient(probs), annotations)
    if kind != "fixed":
        raise StoryError(f"kind={kind!r}: 'adaptive' or 'fixed' is needed")
    if through_difficulty is not None:
        raise StoryError(
            f"through_difficulty={through_difficulty} would be ignored: difficulties of kind='fixed' come from the "
            "annotations, and no classifier learns through them; leave it out"
        )
    shares = _shares(annotations, votes)
    if not votes_as_prior:
        return class_log_probs(annotations, truth_prior), _clarity(shares, annotations)
    log_shares = safe_log(shares)
    if not (isinstance(truth_prior, ClassPrior) and truth_prior.learns):
        return log_shares, _clarity(shares, annotations)
    if truth_prior.has_posterior:
        raise StoryError(
            "difficulty(kind='fixed'): a classifier that learns from the votes and does not change them has no "
            "posterior; give it no prior, as cp.Classifier('logistic', prior=None), or votes_as_prior=False"
        )
    student = truth_prior(annotations)
    return log_shares + student - jax.lax.stop_gradient(student), _clarity(shares, annotations)  # its gradient alone


def learns_through(truth_prior: object, asked: bool | None) -> bool:
    """Return whether the truth's prior learns through the difficulty that it decides."""
    if asked is not None and isinstance(truth_prior, Given):
        raise StoryError(
            f"through_difficulty={asked} would be ignored: given probabilities learn nothing; leave it out"
        )
    if not (isinstance(truth_prior, ClassPrior) and truth_prior.learns):
        return asked is None or asked
    if not truth_prior.has_posterior:
        return not truth_prior.is_network if asked is None else asked
    if asked is False:
        raise StoryError(
            "through_difficulty=False is for a classifier without a prior: one with a prior has a posterior, of which "
            "the difficulty is a part; leave it out, or give cp.Classifier('logistic', prior=None)"
        )
    return True


def _clarity(probs: Array, annotations: Annotations) -> Array:
    own = own_of_tasks(annotations)
    return (probs.max(-1) - 1 / (probs.shape[-1] if own is None else own.sum(-1))) ** 2


def _check_shares(votes: np.ndarray) -> None:
    """Refuse what is no share of the classes."""
    wrong = ~((votes >= 0).all(-1) & (np.abs(votes.sum(-1) - 1) < 1e-3))  # not a number is neither
    if wrong.any():
        task = int(np.flatnonzero(wrong)[0])
        raise StoryError(
            f"votes of task number {task} are {votes[task].tolist()}; shares of the classes are needed, from 0 to 1 "
            "with the sum 1, such as counts divided by their sum"
        )


def _shares(annotations: Annotations, votes: np.ndarray | None) -> Array:
    shape = (annotations.n_tasks, annotations.n_classes)
    if votes is not None:
        if np.shape(votes) != shape:
            raise StoryError(f"votes have shape {np.shape(votes)}; (tasks, classes) = {shape} is needed")
        if not isinstance(votes, jax.core.Tracer):
            _check_shares(np.asarray(votes, float))
        return jnp.asarray(votes, dtype=float)
    if annotations.label is None:
        raise StoryError(
            "difficulty(kind='fixed') takes difficulties from annotations; to simulate annotations, give votes=, or "
            "leave out kind"
        )
    return soft_votes(annotations)
