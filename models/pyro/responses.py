"""All annotations of all workers as one distribution, ragged, given the true labels: the one behind every story."""

from typing import ClassVar

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from ...data import Annotations
from .emissions import Emission

Size = torch.Size | list[int] | tuple[int, ...]


def select(scores: Tensor, truth: Tensor) -> Tensor:
    r"""Pick :math:`s_{i, z_i}` for every task: scores ``(N, K)`` and truth ``(..., N)`` give ``(..., N)``.

    A truth that is the same for all tasks, ``(..., 1)``, as enumeration has it, takes whole columns; all of them in
    their order are a transposition.
    """
    if scores.ndim > 2:  # of several particles
        batch = torch.broadcast_shapes(truth.shape, scores.shape[:-1])
        return scores.expand(*batch, scores.shape[-1]).gather(-1, truth.expand(batch)[..., None])[..., 0]
    if truth.shape[-1:] == (1,) and scores.shape[0] != 1:
        columns = truth.reshape(-1)
        in_order = truth.device.type == "cpu" and columns.tolist() == [*range(scores.shape[-1])]  # a GPU would wait
        picked = scores.T if in_order else scores.T.index_select(0, columns)
        return picked.reshape(truth.shape[:-1] + scores.shape[:1])
    return scores.expand(*truth.shape, scores.shape[-1]).gather(-1, truth[..., None])[..., 0]


class Responses(TorchDistribution):
    r"""All annotations to each task, given its true label.

    .. math:: \log p(y_i \mid z_i) = \sum_{a \in i} \log P(y_a \mid z_i, \text{worker}_a, \text{task}_i)

    The batch shape is that of the tasks, ``broadcast(truth.shape, (N,))``; the ``A`` annotations are one event, so the
    tasks may have any number of annotations each and nothing is padded.

    Args:
        truth: true classes, ``(..., N)``, or ``(K, 1, ..., 1)`` where enumerated.
        emission: what a worker annotates under each truth.
        annotations: which worker annotated which task, as tensors; ``annotations.label`` is not looked at.
    """

    arg_constraints: ClassVar[dict] = {}
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self, truth: Tensor, emission: Emission, annotations: Annotations, *, validate_args: bool | None = None
    ) -> None:
        self.truth, self.emission, self.annotations = truth, emission, annotations
        batch_shape = torch.broadcast_shapes(truth.shape, (*emission.lead, annotations.n_tasks))
        super().__init__(batch_shape, torch.Size([len(annotations.task)]), validate_args=validate_args)

    def expand(self, batch_shape: Size, _instance: object = None) -> "Responses":
        """The same annotations under a truth that is repeated."""
        if torch.Size(batch_shape) == self.batch_shape:
            return self  # and its truth stays as small as enumeration made it
        truth = self.truth.expand(batch_shape)
        return Responses(truth, self.emission, self.annotations, validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of the annotations ``value (A,)`` of each task: the batch shape."""
        by_particle = [one.by_task(self.annotations, value) for one in self.emission.each()]
        lead = self.emission.lead
        scores = torch.stack(by_particle).reshape(*lead, *by_particle[0].shape) if lead else by_particle[0]
        return select(scores, self.truth).expand(self.batch_shape)

    def sample(self, sample_shape: Size = ()) -> Tensor:
        """Annotations ``sample_shape + truth.shape[:-1] + (A,)`` of the given workers to the given tasks."""
        truth = self.truth.expand(torch.Size(sample_shape) + self.batch_shape)[..., self.annotations.task]
        rows = truth.reshape(-1, truth.shape[-1])
        worker, task, each = self.annotations.worker, self.annotations.task, self.emission.each()
        drawn = [each[i % len(each)].sample(worker, task, row) for i, row in enumerate(rows)]
        return torch.stack(drawn).reshape(truth.shape)
