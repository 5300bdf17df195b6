"""Confusion matrices as softmax of log-odds: :mod:`crowdppl.models.parts.confusion_logits` in torch."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .emissions import Emission, rows_at


class FromLogits(Emission):
    r"""Rows of confusion matrices as softmax: :math:`P(y = l \mid z = k, i, j) = \text{softmax}_l(\Lambda_{ijk})`."""

    def logits(self, worker: Tensor | None, task: Tensor) -> Tensor:
        r""":math:`\Lambda` of each (worker, task) pair: ``(A, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no logits(worker, task)")

    def probs(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The softmax over the annotations: ``(A, K, L)``."""
        return torch.softmax(self.logits(worker, task), dim=-1)

    def log_prob(self, worker: Tensor | None, task: Tensor, annotation: Tensor) -> Tensor:
        """One column of its logarithm each: ``(A, K)``."""
        logits = self.logits(worker, task)
        chosen = logits.gather(-1, annotation[:, None, None].expand(-1, logits.shape[1], 1))[..., 0]
        return chosen - torch.logsumexp(logits, dim=-1)


@dataclass(frozen=True)
class AddedLogits(FromLogits):
    r"""What the worker brings and what the task brings, added: :math:`\Lambda_{ij} = A_j + C_i`.

    Args:
        workers: :math:`A`, ``(J, K, L)``, real.
        tasks: :math:`C`, ``(N, K, L)``, real.
    """

    workers: Tensor
    tasks: Tensor
    ranks: ClassVar[dict[str, int]] = {"workers": 3, "tasks": 3}

    def logits(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The sums: ``(A, K, L)``."""
        return rows_at(self.workers, worker) + rows_at(self.tasks, task)


@dataclass(frozen=True)
class NetworkLogits(FromLogits):
    r"""A hidden layer over embeddings of worker and task and over their product, element by element.

    .. math::
        \Lambda_{ij} = B + \sum_h O_h \tanh\left(r + R^\top [u_j, v_i, u_j \odot v_i]\right)_h

    Args:
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
        weights: :math:`R`, ``(3 E, H)``.
        bias: :math:`r`, ``(H,)``.
        output: :math:`O`, ``(H, K, L)``.
        base: :math:`B`, ``(K, L)``.
    """

    workers: Tensor
    tasks: Tensor
    weights: Tensor
    bias: Tensor
    output: Tensor
    base: Tensor
    ranks: ClassVar[dict[str, int]] = {"workers": 2, "tasks": 2, "weights": 2, "bias": 1, "output": 3, "base": 2}

    def logits(self, worker: Tensor | None, task: Tensor) -> Tensor:
        """The network's: ``(A, K, L)``."""
        of_workers, of_tasks = rows_at(self.workers, worker), rows_at(self.tasks, task)
        inputs = torch.cat([of_workers, of_tasks, of_workers * of_tasks], dim=-1)
        return through_hidden(inputs, self.weights, self.bias, self.output, self.base)


def through_hidden(inputs: Tensor, weights: Tensor, bias: Tensor, output: Tensor, base: Tensor) -> Tensor:
    """Log-odds ``(..., n, K, L)`` of inputs ``(..., n, I)`` by a hidden layer: see :class:`NetworkLogits`."""
    hidden = torch.tanh(inputs @ weights + bias[..., None, :])
    return base[..., None, :, :] + torch.einsum("...nh,...hkl->...nkl", hidden, output)
