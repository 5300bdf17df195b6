r"""Errors that workers share: what any story becomes where the annotations of a task follow a common impression.

Stories let workers err independently of each other given the true class. Crowds do not: some tasks mislead most
workers to the same wrong class, and language models share their errors. Here each task :math:`i` makes an impression
:math:`c_i` on each family of workers, which is one class, and a worker's annotation is that class with a probability of
:math:`\delta_i`, and otherwise what the story says:

.. math::
    \delta_{fi} &\in \{\delta_0 = 0, \dots, \delta_{Q-1}\},
        \quad P(\delta_{fi} = \delta_q) = \text{pull\_strength}_{fq} & (F, N) \\
    c_{fi} &\sim \text{Categorical}(\text{pull}_{z_i}) & (F, N) \\
    P(y_a = l \mid z_i, \delta_{fi}, c_{fi}) &= \delta_{fi} \, [l = c_{fi}] + (1 - \delta_{fi}) \, P(l \mid z_i, j_a)

:math:`\delta` and :math:`c` are summed out task by task, so that the posterior of the labels knows that an agreement of
many may be one impression, and the parameters do not grow with the tasks. Where the data show no shared errors, the
strength of the pull goes to :math:`\delta_0 = 0`, and the story is what it is without.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations, Ids
from ...data.columns import positions_of
from ...data.padding import counts_by_task
from ...data.questions import Units, of_each_question
from .concentration import diagonal_concentration, positive
from .contract import Story, StoryError
from .emissions import Emission, Over, OverClasses
from .kernels import kind_at, numbers_by, safe_log, upto
from .own_classes import cut_rows, mean_over_questions, wrong_classes

LEVELS = np.array([0.0, 0.2, 0.4, 0.6, 0.8])  # of the pull
USUAL_STRENGTH = np.array([0.35, 0.25, 0.2, 0.12, 0.08])  # how often each level is expected
USUAL_RIGHT = 0.7  # how often an impression is expected to be the true class
WEIGHT = 50.0  # of the first of these expectations, in tasks
TIMES = 4.0  # as much has the second: hardly anything but gold labels tells how often an impression is right

GENERAL: dict[str, Any] = {"shared_error": False, "worker_families": None, "shared_weight": WEIGHT}
"""Hyperparameters of :func:`crowdppl.with_shared_error`, which every story takes, with their defaults."""

SUBTYPES = "the subtypes of its classes mislead all workers alike already; leave shared_error out"

LEVELED = (
    "an impression is a class, and these annotations are levels of another truth; leave shared_error out: of levels "
    "the story score_factor lets judges share errors by itself"
)

STRENGTH = "pull_strength"
"""The site of how often each level of the pull is, by family."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SharedError(Over):
    """Another emission whose annotations to a task follow a common impression with some probability.

    Args:
        emission: of an annotation that does not follow the impression.
        strength: probabilities of the levels of the pull, ``(F, Q)``.
        pull: probabilities of the impression given the true class, ``(K, K)``; of each question ``(Q, K, K)``.
        family: of each worker, ``(J,)``; None where there is one family.
        own: where questions have classes of their own, these, ``(Q, K)`` of bool.
        question: of each task, ``(N,)``, where they have.
    """

    emission: Emission
    strength: Array
    pull: Array
    family: Array | None
    own: Array | None = None
    question: Array | None = None

    independent: ClassVar[bool] = False
    shares_errors: ClassVar[bool] = True

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Of one annotation, the impression summed out: ``(A, K, L)``."""
        alone = self.emission.probs(worker, task)
        followed = self._followed(worker, len(task))[:, None, None]
        pull = self.pull if self.question is None else self.pull[self.question[task]]
        return (1 - followed) * alone + followed * self._pull_to(alone.shape[-1], pull)

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """The sum over the impressions, family by family: ``(N, K)``.

        Under a pull of level q to class c an annotation other than c has (1 − δ) times its own probability p, and c
        itself also the factor 1 + δ / ((1 − δ) p).
        """
        scores = self._scores(annotations, annotation)
        return scores.own + logsumexp(scores.shared, axis=(2, 3)).sum(1)

    def further(self, annotations: Annotations, annotation: Array) -> "Impressed | None":
        """Return the story's emission with the impressions that a task's annotations tell of, under each class."""
        alone = self.emission.further(annotations, annotation)
        if alone is None:
            return None
        shared = self._scores(annotations, annotation).shared  # (N, F, C, Q, K)
        weight = jnp.exp(shared - logsumexp(shared, axis=(2, 3), keepdims=True))
        return Impressed(alone, jnp.einsum("nfcqk,q->nfkc", weight, jnp.asarray(LEVELS, weight.dtype)), self.family)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``; rows of one task and family share their impression."""
        of_row, of_task = jax.random.split(key)
        family = self._family(worker, len(task))
        numbers = numbers_by(of_task, jnp.asarray(task) * len(self.strength) + family, 2)
        level = kind_at(numbers[:, 0], upto(self.strength)[family])
        sums = upto(self.pull)
        sums = sums[truth] if self.question is None else sums[self.question[task], truth]
        impression = kind_at(numbers[:, 1], sums)
        follows_key, own_key = jax.random.split(of_row)
        follows = jax.random.uniform(follows_key, level.shape) < jnp.asarray(LEVELS)[level]
        return jnp.where(follows, impression, self.emission.sample(own_key, worker, task, truth))

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix in the long run, over tasks with and without a pull: ``(J, K, L)``."""
        alone = self.emission.confusions(annotations)
        followed = self._followed(jnp.arange(annotations.n_workers), annotations.n_workers)[:, None, None]
        if self.own is None or self.question is None:
            return (1 - followed) * alone + followed * self._pull_to(alone.shape[-1], self.pull)
        pull = mean_over_questions(self.pull[:, None], self.own, self.question, annotations)
        return (1 - followed) * alone + followed * self._pull_to(alone.shape[-1], pull)

    def _scores(self, annotations: Annotations, annotation: Array) -> "_Scores":
        n_tasks, n_classes = annotations.n_tasks, self.pull.shape[-1]
        n_families, n_rows = len(self.strength), len(annotation)
        own = self.emission.log_prob(annotations.worker, annotations.task, annotation)
        count = counts_by_task(annotations)
        weight = jnp.ones(n_rows) if count is None else jnp.asarray(count)
        place = jnp.asarray(annotations.task) * n_families + self._family(annotations.worker, n_rows)
        # A level of 0 adds nothing, so that it needs no sums.
        log_odds = safe_log(jnp.asarray(LEVELS[1:] / (1 - LEVELS[1:])))
        ratio = jnp.logaddexp(0.0, log_odds[:, None] - own[:, None, :])  # (A, Q - 1, K)
        # What is no class, such as an abstention, is nobody's impression.
        is_towards = (weight > 0) & (annotation < n_classes)
        ratio = jnp.where(is_towards[:, None, None], weight[:, None, None] * ratio, 0.0)
        cell = place * n_classes + jnp.minimum(annotation, n_classes - 1)
        towards = jax.ops.segment_sum(ratio, cell, n_tasks * n_families * n_classes)
        towards = towards.reshape(n_tasks, n_families, n_classes, *ratio.shape[1:])
        n = jax.ops.segment_sum(weight, place, n_tasks * n_families, indices_are_sorted=n_families == 1)
        away = n.reshape(n_tasks, n_families, 1, 1, 1) * jnp.log1p(-jnp.asarray(LEVELS[1:]))[:, None]
        pulled = jnp.concatenate([jnp.zeros_like(towards[..., :1, :]), towards + away], axis=-2)
        pull = safe_log(self.pull).swapaxes(-1, -2)[..., :, None, :]  # (C, 1, K), of each question
        pull = pull if self.question is None else pull[self.question][:, None]
        prior = safe_log(self.strength)[:, None, :, None] + pull
        own = jnp.where(weight[:, None] > 0, weight[:, None] * own, 0.0)
        of_task = jax.ops.segment_sum(own, annotations.task, n_tasks, indices_are_sorted=True)
        return _Scores(of_task, pulled + prior)

    def _pull_to(self, n_categories: int, pull: Array) -> Array:
        """Probabilities of the impression among all categories, ``(..., K, L)``: none is other than a class."""
        return jnp.pad(pull, [(0, 0)] * (pull.ndim - 1) + [(0, n_categories - pull.shape[-1])])

    def _family(self, worker: Array | None, n_rows: int) -> Array:
        return _family_of(self.family, worker, n_rows)

    def _followed(self, worker: Array | None, n_rows: int) -> Array:
        """The probability that an annotation follows the impression, ``(A,)``."""
        return (self.strength @ jnp.asarray(LEVELS, self.strength.dtype))[self._family(worker, n_rows)]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Impressed(Emission):
    """Another emission where it is known how probably an annotation follows which impression.

    Args:
        emission: of an annotation that follows none.
        pulled: the probability that an annotation to the task follows the impression of each class, given the task's
            own, ``(N, F, K, K)``.
        family: of each worker, ``(J,)``; None where there is one family.
    """

    emission: Emission
    pulled: Array
    family: Array | None

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Return probabilities over annotations that follow no impression and those that follow one: ``(A, K, L)``."""
        alone = self.emission.probs(worker, task)
        pulled = self.pulled[task, _family_of(self.family, worker, len(task))]
        none = 1 - pulled.sum(-1, keepdims=True)
        return none * alone + jnp.pad(pulled, ((0, 0), (0, 0), (0, alone.shape[-1] - pulled.shape[-1])))


def _family_of(family: Array | None, worker: Array | None, n_rows: int) -> Array:
    if family is None or worker is None:
        return jnp.zeros(n_rows, jnp.int32)
    return jnp.asarray(family)[worker]


@dataclass(frozen=True)
class _Scores:
    """Log-scores of tasks: of what is the workers' own, ``(N, K)``, and of impressions, ``(N, F, C, Q, K)``."""

    own: Array
    shared: Array


def sharing(
    story: Story,
    *,
    worker_families: pd.DataFrame | Mapping[Any, Any] | pd.Series | None = None,
    shared_weight: float = WEIGHT,
) -> Story:
    """Return the story in which workers share some of their errors: :func:`crowdppl.with_shared_error`."""

    @wraps(story)
    def shared(annotations: Annotations, **hyperparameters: Any) -> None:
        if annotations.scored:
            raise StoryError(LEVELED)
        weight = positive("shared_weight", shared_weight)
        family, n_families = _families(worker_families, annotations)
        n_classes = annotations.n_classes
        with numpyro.plate("family", n_families, dim=-1):
            strength = numpyro.sample(
                STRENGTH,
                dist.Dirichlet(_prior_strength(weight)),
                infer={"event_dims": ["level"]},
            )
        expected = diagonal_concentration(n_classes, USUAL_RIGHT, None, (1 - USUAL_RIGHT) * wrong_classes(annotations))
        with numpyro.plate("class", n_classes, dim=-1):
            prior = dist.Dirichlet(TIMES * weight * jnp.asarray(expected))
            pull = numpyro.sample("pull", prior, infer={"event_dims": ["annotation"]})

        def pulled(emission: Emission) -> SharedError:
            if emission.shares_errors:
                raise StoryError(SUBTYPES)
            if annotations.kind.own is None:
                return SharedError(emission, strength, pull, family)
            own = jnp.asarray(annotations.kind.own)
            return SharedError(emission, strength, cut_rows(pull, own), family, own, jnp.asarray(annotations.question))

        with OverClasses(pulled):
            story(annotations, **hyperparameters)

    return shared


def _prior_strength(weight: float) -> Array:
    return weight * jnp.asarray(USUAL_STRENGTH, float)


def prior_share(hyperparameters: Mapping[str, Any]) -> float:
    """The share of annotations that follow a common impression, as the prior expects it."""
    concentration = np.asarray(_prior_strength(hyperparameters.get("shared_weight", WEIGHT)))
    return float(concentration @ LEVELS / concentration.sum())


def coordinates(hyperparameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the labels of the dimensions of :data:`STRENGTH`, by name; none where errors are not shared."""
    if not hyperparameters.get("shared_error"):
        return {}
    families = hyperparameters.get("worker_families")
    names = ["all workers"] if families is None else _names(families_frame(families))[0]
    return {"family": np.array(names), "level": LEVELS}


def _names(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The families in their order, and which of them each row has."""
    return np.unique(frame["family"].astype(str).to_numpy(dtype=str), return_inverse=True)


def families_frame(families: pd.DataFrame | Mapping[Any, Any] | pd.Series) -> pd.DataFrame:
    """Return the families as a frame with the columns worker and family.

    Raises:
        StoryError: a frame lacks one of them, or it is no table at all.
    """
    if isinstance(families, pd.DataFrame):
        missing = [column for column in ("worker", "family") if column not in families.columns]
        if missing:
            raise StoryError(
                f"worker_families lacks the column {missing[0]!r}; it has {list(families.columns)}, needed are "
                "['worker', 'family']"
            )
        return _without_gaps(families[["worker", "family"]])
    if not isinstance(families, Mapping | pd.Series):
        raise StoryError(
            f"worker_families is a {type(families).__name__}; a mapping or series from workers to families is needed, "
            "or a frame with the columns worker and family"
        )
    series = families if isinstance(families, pd.Series) else pd.Series(dict(families), dtype=object)
    return _without_gaps(pd.DataFrame({"worker": series.index.tolist(), "family": series.tolist()}))


def families_of(hyperparameters: Mapping[str, Any], workers: Ids) -> dict[Hashable, Hashable]:
    """The family of each of the workers that the hyperparameters name; empty where they name none."""
    families = hyperparameters.get("worker_families")
    if families is None:
        return {}
    return dict(_of_each_question(families_frame(families), workers)[["worker", "family"]].itertuples(index=False))


def _of_each_question(frame: pd.DataFrame, workers: Ids) -> pd.DataFrame:
    """The families of the workers; where these are pairs with a question, of all pairs of a worker who is named."""
    if not isinstance(workers, Units):
        return frame
    found = {
        pair: family
        for name, family in frame[["worker", "family"]].itertuples(index=False)
        for pair in of_each_question([name], workers)
    }
    return pd.DataFrame({"worker": pd.Series(list(found), dtype=object), "family": list(found.values())})


def _without_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    if (missing := frame["family"].isna().to_numpy()).any():
        worker, n = frame["worker"].tolist()[int(np.argmax(missing))], int(missing.sum())
        others = f" ({n} such workers)" if n > 1 else ""
        raise StoryError(f"worker_families has no family for the worker {worker!r}{others}; give each worker a family")
    return frame


def more_families(known: pd.DataFrame, new: pd.DataFrame | Mapping[Any, Any] | pd.Series) -> pd.DataFrame:
    """Return the families of both as a frame; of a worker that both name the new one.

    Raises:
        StoryError: as :func:`families_frame`.
    """
    both = pd.concat([families_frame(known), families_frame(new)], ignore_index=True)
    return both.drop_duplicates("worker", keep="last", ignore_index=True)


def without_family(families: pd.DataFrame, annotations: Annotations) -> list[Hashable]:
    """The workers whom the families do not name."""
    named = annotations.workers.index_of(_of_each_question(families, annotations.workers)["worker"].tolist())
    lacking = np.setdiff1d(np.arange(annotations.n_workers), named)
    return [annotations.workers[j] for j in lacking.tolist()]


def _families(families: Any, annotations: Annotations) -> tuple[Array | None, int]:
    """Return the family of each worker ``(J,)`` and the number of families."""
    if families is None:
        return None, 1
    if annotations.worker is None:
        raise StoryError("worker_families needs named workers, and the annotations name none")
    frame = _of_each_question(families_frame(families), annotations.workers)
    known = positions_of(
        frame["worker"], annotations.workers, lambda row: f"worker_families, row {row}: the worker", error=StoryError
    )
    if lacking := without_family(frame, annotations):
        raise StoryError(f"worker_families does not name the worker {lacking[0]!r}; give each worker a family")
    names, codes = _names(frame)
    found = np.empty(annotations.n_workers, int)
    found[known] = codes
    return jnp.asarray(found, jnp.int32), len(names)
