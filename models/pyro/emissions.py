"""Emissions, the distributions of annotations given the truth: :mod:`crowdppl.models.parts.emissions` in torch."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ...data import Annotations
from ..parts.emissions import SMALLEST
from .ragged import cells, gather, gathered_by_task, sum_by_task


def safe_log(probs: Tensor) -> Tensor:
    """Logarithms of probabilities, finite also at zero."""
    return probs.clamp_min(SMALLEST).log()


class Emission:
    """The distribution of an annotation given worker, task and true class. A subclass defines :meth:`probs`.

    Attributes:
        ranks: dimensions of each tensor, by the field's name. What a tensor has before them are particles or draws, as
            of ``vectorize_particles=True`` and ``Predictive(parallel=True)``; :meth:`each` takes them apart.
    """

    ranks: ClassVar[dict[str, int]] = {}

    @property
    def lead(self) -> tuple[int, ...]:
        """Sizes of the particles' dimensions; none where there is one particle."""
        shapes = [
            value.shape[: value.ndim - rank]
            for name, rank in self.ranks.items()
            if isinstance(value := getattr(self, name), Tensor) and value.ndim > rank
        ]
        return tuple(torch.broadcast_shapes(*shapes)) if shapes else ()

    def each(self) -> "list[Emission]":
        """The emission of each particle, in the order of :attr:`lead`."""
        if not (lead := self.lead):
            return [self]
        apart = {
            name: value.expand(*lead, *value.shape[value.ndim - rank :]).flatten(0, len(lead) - 1)
            for name, rank in self.ranks.items()
            if isinstance(value := getattr(self, name), Tensor) and value.ndim > rank
        }
        n_particles = math.prod(lead)
        return [replace(self, **{name: value[p] for name, value in apart.items()}) for p in range(n_particles)]  # type: ignore[type-var]

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        r"""All of :math:`P(y = l \mid z = k)` for each (worker, task) pair: ``(A, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no probs(worker, task)")

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Log-probability of each observed annotation under each true class: ``(A, K)``."""
        probs = self.probs(worker, task)
        return safe_log(probs.gather(-1, annotation[:, None, None].expand(-1, probs.shape[1], 1))[..., 0])

    def by_task(self, annotations: Annotations, annotation: Tensor) -> Tensor:
        """Log-probability of each task's annotations together under each true class: ``(N, K)``."""
        return sum_by_task(self.log_prob(annotations.worker, annotations.task, annotation), annotations)

    def sample(self, worker: Tensor | None, task: Tensor, truth: Tensor) -> Tensor:
        """One annotation a row, ``(A,)``, of ``worker`` to ``task`` whose true class is ``truth (A,)``."""
        rows = self.probs(worker, task)[torch.arange(len(task), device=task.device), truth]
        return torch.multinomial(rows, 1)[:, 0]


@dataclass(frozen=True)
class Confusion(Emission):
    r"""Every worker has a confusion matrix: :math:`P(y = l \mid z = k, j) = \text{table}_j[k, l]`.

    Args:
        table: ``(J, K, L)``, rows sum to one.
    """

    table: Tensor
    ranks: ClassVar[dict[str, int]] = {"table": 3}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The workers' tables: ``(A, K, L)``."""
        return self.table[worker]

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Columns of the tables, with the K numbers of one (worker, annotation) pair side by side: ``(A, K)``."""
        return gather(*_columns(safe_log(self.table), worker, annotation))

    def by_task(self, annotations: Annotations, annotation: Tensor) -> Tensor:
        """The sums of :meth:`log_prob`, in one pass: ``(N, K)``."""
        return gathered_by_task(*_columns(safe_log(self.table), annotations.worker, annotation), annotations)


@dataclass(frozen=True)
class Correct(Emission):
    r"""Right with a probability that worker, task and true class decide; errors spread evenly over the other classes.

    .. math::
        P(y = l \mid z = k, i, j) = p_{ijk} \text{ if } l = k, \text{ else } \frac{1 - p_{ijk}}{K - 1}, \qquad
        p_{ijk} = g_i + (1 - g_i) \, \sigma(s_i a_{jk} + o_i)

    Args:
        ability: :math:`a`, real, ``(J, K)``, or ``(J, 1)`` where the class does not matter.
        n_classes: K.
        scale: :math:`s`, ``(N,)``, or one number for all tasks.
        offset: :math:`o`, ``(N,)``, or one number for all tasks.
        guess: :math:`g`, probability of being right by luck, ``(N,)``; or rows of :math:`1 - g` and :math:`g`,
            ``(N, 2)``, of which EM has exact M-steps; None for zero.
    """

    ability: Tensor
    n_classes: int
    scale: Tensor | float = 1.0
    offset: Tensor | float = 0.0
    guess: Tensor | None = None

    @property
    def ranks(self) -> dict[str, int]:  # type: ignore[override]
        """Dimensions of each tensor; what tasks share may be one number."""
        by_task = dict.fromkeys(("scale", "offset"), 1)
        rows = 1 if self.guess is None or self.guess.ndim == 1 else 2
        return {"ability": 2, **by_task, "guess": rows}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """Tables of each pair: ``(A, K, K)``."""
        log_right, log_wrong = self._log_odds(worker, task)
        is_right = torch.eye(self.n_classes, dtype=torch.bool, device=task.device)
        return torch.where(is_right, log_right[..., None], log_wrong[..., None]).exp()

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Of the right annotation under its own class, of an error under the others: ``(A, K)``."""
        log_right, log_wrong = self._log_odds(worker, task)
        is_right = annotation[:, None] == torch.arange(self.n_classes, device=task.device)
        return torch.where(is_right, log_right, log_wrong)

    def _log_odds(self, worker: Tensor | None, task: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the right annotation and of each error: ``(A, K)`` or ``(A, 1)``."""
        scale, offset = (_by_task(x, task) for x in (self.scale, self.offset))
        logit = scale * rows_at(self.ability, worker) + offset
        log_right, log_wrong = logsigmoid(logit), logsigmoid(-logit)
        if self.guess is not None:
            guess = gather(self.guess, task)
            able, lucky = (1 - guess, guess) if guess.ndim == 1 else (guess[:, 0], guess[:, 1])
            log_right = safe_log(lucky[:, None] + able[:, None] * torch.sigmoid(logit))
            log_wrong = log_wrong + safe_log(able)[:, None]
        return log_right, log_wrong - math.log(self.n_classes - 1)


@dataclass(frozen=True)
class SharedConfusion(Emission):
    r"""All workers share one confusion matrix, :math:`P(y = l \mid z = k) = \text{table}[k, l]`; they need no names.

    Args:
        table: ``(K, L)``, rows sum to one.
    """

    table: Tensor
    ranks: ClassVar[dict[str, int]] = {"table": 2}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The table for each annotation: ``(A, K, L)``."""
        return self.table.expand(len(task), -1, -1)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Columns of the table: ``(A, K)``."""
        return rows_at(safe_log(self.table).T, annotation)

    def by_task(self, annotations: Annotations, annotation: Tensor) -> Tensor:
        """The sums of :meth:`log_prob`, in one pass: ``(N, K)``."""
        return gathered_by_task(safe_log(self.table).T, annotation, annotations)


@dataclass(frozen=True)
class Gated(Emission):
    r"""A mixture of tables whose weights depend on the task.

    .. math:: P(y = l \mid z = k, i) = \sum_m \alpha_{im} \text{table}_m[k, l]

    Args:
        table: ``(M, K, L)``, rows sum to one.
        weights: :math:`\alpha`, of each task, ``(N, M)``.
    """

    table: Tensor
    weights: Tensor
    ranks: ClassVar[dict[str, int]] = {"table": 3, "weights": 2}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """Each task's mixture, ``(A, K, L)``."""
        return torch.einsum("am,mkl->akl", rows_at(self.weights, task), self.table)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Columns of each task's mixture, group by group: ``(A, K)``."""
        weights = rows_at(self.weights, task)
        mixed = [weights[:, m, None] * rows_at(table.T, annotation) for m, table in enumerate(self.table)]
        return safe_log(torch.stack(mixed).sum(0))


@dataclass(frozen=True)
class PerAnnotation(Emission):
    r"""Every annotation has a truth of its own, drawn from the task's prior and summed out of that annotation alone.

    .. math:: P(y = l \mid i, j) = \sum_k f_k(x_i) P(y = l \mid z = k, i, j)

    Args:
        emission: what a worker annotates under each truth.
        log_probs: of the classes, ``(K,)`` or ``(N, K)``.
        evidence: log-weights of the classes, ``(N, K)``, or None.
    """

    emission: Emission
    log_probs: Tensor
    evidence: Tensor | None

    @property
    def lead(self) -> tuple[int, ...]:
        """Those of the emission and of the prior, whose two last dimensions are those of ``(N, K)`` or ``(1, K)``."""
        return tuple(torch.broadcast_shapes(self.emission.lead, self.log_probs.shape[:-2]))

    def each(self) -> list[Emission]:
        """Every annotation's truth summed out of each particle's emission, under that particle's prior."""
        lead = self.lead
        emissions = self.emission.each() * (1 if self.emission.lead else math.prod(lead))
        if self.log_probs.ndim <= 2:
            return [replace(self, emission=one) for one in emissions]
        priors = self.log_probs.expand(*lead, *self.log_probs.shape[-2:]).flatten(0, len(lead) - 1)
        pairs = zip(emissions, priors, strict=True)
        return [replace(self, emission=one, log_probs=prior[0] if len(prior) == 1 else prior) for one, prior in pairs]

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The sum over the truths, under each class: ``(A, K, L)``."""
        of_each = self.emission.probs(worker, task)
        mixed = (self._prior(task).exp()[..., None] * of_each).sum(-2)
        return mixed[:, None].expand(of_each.shape)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """The logarithm of the sum over the truths, under each class: ``(A, K)``."""
        of_each = self.emission.log_prob(worker, task, annotation)
        return torch.logsumexp(self._prior(task) + of_each, dim=-1, keepdim=True).expand(of_each.shape)

    def _prior(self, task: Tensor) -> Tensor:
        weights = self.log_probs
        if self.evidence is not None:
            weights = torch.log_softmax(weights + self.evidence, dim=-1)
        return rows_at(weights, task) if weights.ndim == 2 else weights


@dataclass(frozen=True)
class Switch(Emission):
    r"""An annotation follows the common confusion matrix or the worker's own, by how near the worker is to the task.

    .. math::
        P(y = l \mid z = k, i, j) = \omega_{ij} \, \text{common}[k, l] + (1 - \omega_{ij}) \, \text{individual}_j[k, l],
        \qquad \omega_{ij} = \sigma(u_j \cdot v_i)

    Args:
        common: ``(K, L)``, or ``(J, K, L)`` where groups of workers have one each; rows sum to one.
        individual: ``(J, K, L)``, rows sum to one.
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
        common_rank: dimensions of ``common``, 2 or 3.
    """

    common: Tensor
    individual: Tensor
    workers: Tensor
    tasks: Tensor
    common_rank: int = 2

    @property
    def ranks(self) -> dict[str, int]:  # type: ignore[override]
        """Dimensions of each tensor."""
        return {"common": self.common_rank, "individual": 3, "workers": 2, "tasks": 2}

    def switch(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """Probability that an annotation follows the common table: ``(A,)``."""
        return switch_of(self.workers, self.tasks, worker, task)

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The mixed tables: ``(A, K, L)``."""
        share = self.switch(worker, task)[:, None, None]
        common = self.common if self.common.ndim == 2 else self.common[worker]
        return share * common + (1 - share) * self.individual[worker]

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Columns of the mixed tables: ``(A, K)``."""
        share = self.switch(worker, task)[:, None]
        own = gather(*_columns(self.individual, worker, annotation))
        if self.common.ndim == 2:
            ours = rows_at(self.common.T, annotation)
        else:
            ours = gather(*_columns(self.common, worker, annotation))
        return safe_log(share * ours + (1 - share) * own)


@dataclass(frozen=True)
class SwitchedKernels(Emission):
    r"""The classifier's probabilities through a common kernel or the worker's own, by a switch, and a softmax.

    .. math::
        P(y = l \mid i, j) = \text{softmax}_l\left(\sum_k f_k(x_i)
        \left(\omega_{ij} C_{kl} + (1 - \omega_{ij}) B_{jkl}\right)\right), \qquad \omega_{ij} = \sigma(u_j \cdot v_i)

    Args:
        common: :math:`C`, ``(K, K)``, real.
        individual: :math:`B`, ``(J, K, K)``, real.
        classes: :math:`f`, probabilities of the classes, ``(N, K)``.
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
    """

    common: Tensor
    individual: Tensor
    classes: Tensor
    workers: Tensor
    tasks: Tensor
    ranks: ClassVar[dict[str, int]] = {"common": 2, "individual": 3, "classes": 2, "workers": 2, "tasks": 2}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The same under each class: ``(A, K, K)``."""
        found = self._scores(worker, task).exp()
        return found[:, None].expand(-1, found.shape[-1], -1)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Of the observed annotations, the same under each class: ``(A, K)``."""
        scores = self._scores(worker, task)
        return scores.gather(-1, annotation[:, None]).expand_as(scores)

    def _scores(self, worker: Tensor | None, task: Tensor) -> Tensor:
        share = switch_of(self.workers, self.tasks, worker, task)[:, None]
        own = torch.einsum("ak,akl->al", rows_at(self.classes, task), rows_at(self.individual, worker))
        return torch.log_softmax(share * rows_at(self.classes @ self.common, task) + (1 - share) * own, dim=-1)


def switch_of(workers: Tensor, tasks: Tensor, worker: Tensor | None, task: Tensor) -> Tensor:
    r""":math:`\sigma(u_j \cdot v_i)` of each (worker, task) pair, of vectors ``(J, E)`` and ``(N, E)``: ``(A,)``.

    Vectors of particles have their dimensions before these, and so have the numbers.
    """
    if workers.ndim > 2 or tasks.ndim > 2:
        return torch.sigmoid((workers[..., worker, :] * tasks[..., task, :]).sum(-1))
    return torch.sigmoid((rows_at(workers, worker) * rows_at(tasks, task)).sum(-1))


@dataclass(frozen=True)
class Focused(Emission):
    r"""Annotations that are explained already weigh less: the focal loss in the place of the log-probability.

    .. math:: s_a = (1 - p_a)^\gamma \log p_a

    with :math:`p_a` the probability of an annotation under an emission beneath (Lin et al. 2017). What is drawn follows
    the emission beneath.

    Args:
        emission: scores annotations one by one.
        focus: :math:`\gamma`, above 0.
    """

    emission: Emission
    focus: float

    @property
    def lead(self) -> tuple[int, ...]:
        """Those of the emission."""
        return self.emission.lead

    def each(self) -> list[Emission]:
        """The same weights over each particle's emission."""
        return [replace(self, emission=one) for one in self.emission.each()]

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """As the emission beneath has them: ``(A, K, L)``."""
        return self.emission.probs(worker, task)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """The log-probabilities of the emission beneath, weighed: ``(A, K)``."""
        score = self.emission.log_prob(worker, task, annotation)
        return (-torch.expm1(score)).clamp_min(SMALLEST) ** self.focus * score


@dataclass(frozen=True)
class Subtypes(Emission):
    r"""Each task is of one subtype of its true class, and every worker has a row of annotations for each subtype.

    .. math::
        p(y_i \mid z_i = k) = \sum_m w_{km} \prod_{a \in i} \text{table}_{j_a}[k, m, y_a]

    Args:
        table: ``(J, K, M, L)``, rows sum to one.
        weights: :math:`w`, shares of the subtypes of each class: ``(K, M)``.
    """

    table: Tensor
    weights: Tensor
    ranks: ClassVar[dict[str, int]] = {"table": 4, "weights": 2}

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The workers' tables, averaged over the subtypes: ``(A, K, L)``."""
        return torch.einsum("km,jkml->jkl", self.weights, self.table)[worker]

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Of each annotation under each class and subtype: ``(A, K, M)``."""
        return self._rows().log_prob(worker, task, annotation).reshape(-1, *self.weights.shape)

    def by_task(self, annotations: Annotations, annotation: Tensor) -> Tensor:
        """Each task's annotations under each class and subtype, the subtypes summed out: ``(N, K)``."""
        scores = self._rows().by_task(annotations, annotation).reshape(-1, *self.weights.shape)
        return torch.logsumexp(scores + safe_log(self.weights), dim=-1)

    def sample(self, worker: Tensor | None, task: Tensor, truth: Tensor) -> Tensor:
        """One annotation a row, ``(A,)``; rows of one task have one subtype."""
        n_tasks = int(task.max()) + 1 if len(task) else 0
        noise = -torch.empty(n_tasks, self.weights.shape[-1], device=task.device).exponential_().log()
        subtype = (safe_log(self.weights)[truth] + noise[task]).argmax(-1)
        return torch.multinomial(self.table[worker, truth, subtype], 1)[:, 0]

    def _rows(self) -> Confusion:
        """The rows of all classes and subtypes side by side, as of more classes."""
        return Confusion(self.table.reshape(len(self.table), -1, self.table.shape[-1]))


@dataclass(frozen=True)
class CrowdLayer(Emission):
    r"""A worker's layer on top of the classifier's probabilities, and a softmax; the same under each class.

    .. math::
        P(y = l \mid i, j) = \text{softmax}_l\left(\sum_k W_{jkl} f_k(x_i) + b_{jl}\right)

    Args:
        layer: :math:`W`, ``(J, K, K)``, from classes to annotations; ``(J, K)`` for a diagonal one.
        bias: :math:`b`, ``(J, K)``, or None.
        classes: :math:`f`, probabilities of the classes, ``(N, K)``.
    """

    layer: Tensor
    bias: Tensor | None
    classes: Tensor

    @property
    def ranks(self) -> dict[str, int]:  # type: ignore[override]
        """Dimensions of each tensor; a diagonal layer is one of a single particle."""
        return {"layer": 2 if self.layer.ndim == 2 else 3, "bias": 2, "classes": 2}

    def scores(self, worker: Tensor | None, task: Tensor) -> Tensor:
        r""":math:`\log P(y = l \mid i, j)` of each (worker, task) pair: ``(A, K)``."""
        probs, layer = rows_at(self.classes, task), rows_at(self.layer, worker)
        logits = layer * probs if layer.ndim == 2 else torch.einsum("ak,akl->al", probs, layer)
        return torch.log_softmax(logits if self.bias is None else logits + rows_at(self.bias, worker), dim=-1)

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The same under each class: ``(A, K, K)``."""
        found = self.scores(worker, task).exp()
        return found[:, None].expand(-1, found.shape[-1], -1)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """Of the observed annotations, the same under each class: ``(A, K)``."""
        scores = self.scores(worker, task)
        return scores.gather(-1, annotation[:, None]).expand(scores.shape)


def rows_at(values: Tensor, index: Tensor | None) -> Tensor:
    """Rows of ``values`` by position."""
    assert index is not None, "this emission follows each worker, and the annotations name none"
    return gather(values, index)


def _columns(table: Tensor, worker: Tensor | None, annotation: Tensor) -> tuple[Tensor, Tensor]:
    """Columns of the workers' tables ``(J, K, L)``, one below the other ``(J * L, K)``, and where each row's is."""
    assert worker is not None, "this emission follows each worker, and the annotations name none"
    n_workers, n_classes, n_annotations = table.shape
    columns = table.transpose(-1, -2).reshape(n_workers * n_annotations, n_classes)
    return columns, cells(worker, annotation, n_annotations)


def _by_task(values: Tensor | float, task: Tensor) -> Tensor | float:
    return gather(values, task)[:, None] if isinstance(values, Tensor) and values.ndim else values
