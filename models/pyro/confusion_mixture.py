"""A prior of workers' tables that are near one of a few: :mod:`crowdppl.models.parts.confusion_mixture` in torch."""

from typing import ClassVar

import torch
from pyro.distributions import Dirichlet, TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from .emissions import safe_log
from .responses import Size


class ConfusionMixture(TorchDistribution):
    r"""Tables :math:`\theta` around one of M tables :math:`c_m`, with which of them summed out.

    .. math:: p(\theta) = \sum_m w_m \prod_k \text{Dirichlet}(\theta_k \mid 1 / L + s \, c_{mk})

    Args:
        weights: :math:`w`, ``(M,)``.
        tables: :math:`c`, ``(M, K, L)``, rows sum to one.
        strength: :math:`s`, how many annotations to tasks of each class the table of its component is worth.
        shape: of the batch.
    """

    arg_constraints: ClassVar[dict] = {}
    support = constraints.independent(constraints.simplex, 1)

    def __init__(
        self,
        weights: Tensor,
        tables: Tensor,
        strength: float,
        shape: tuple[int, ...] = (),
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.weights, self.tables, self.strength = weights, tables, strength
        lead = (*tables.shape[:-3], 1) if tables.ndim > 3 else ()  # of particles
        super().__init__(torch.broadcast_shapes(lead, tuple(shape)), tables.shape[-2:], validate_args=validate_args)

    @property
    def base_dist(self) -> Dirichlet:
        """A Dirichlet distribution of the same mean, which tells engines that the event is a table."""
        shares = self.weights.squeeze(-2) if self.weights.ndim > 1 else self.weights
        return Dirichlet(self._concentration((shares[..., None, None] * self.tables).sum(-3)))

    def expand(self, batch_shape: Size, _instance: object = None) -> "ConfusionMixture":
        """The same mixture for each member of a batch."""
        return ConfusionMixture(self.weights, self.tables, self.strength, tuple(batch_shape), validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of tables ``(..., K, L)``: ``(...)``."""
        return torch.logsumexp(self._by_component(value), dim=-1)

    def membership(self, value: Tensor) -> Tensor:
        """Probability of each component given tables ``(..., K, L)``: ``(..., M)``."""
        return torch.softmax(self._by_component(value), dim=-1)

    def sample(self, sample_shape: Size = ()) -> Tensor:
        """Tables ``sample_shape + (..., K, L)``."""
        shape = torch.Size(sample_shape) + self.batch_shape
        chosen = torch.distributions.OneHotCategorical(self.weights.expand(*shape, -1)).sample()
        tables = torch.einsum("...m,...mkl->...kl", chosen, self.tables[..., None, :, :, :])
        return Dirichlet(self._concentration(tables)).sample()

    def _by_component(self, value: Tensor) -> Tensor:
        concentration = self._concentration(self.tables)[..., None, :, :, :]
        normaliser = (torch.lgamma(concentration.sum(-1)) - torch.lgamma(concentration).sum(-1)).sum(-1)
        inner = (safe_log(value)[..., None, :, :] * (concentration - 1)).sum((-1, -2))
        return inner + normaliser + safe_log(self.weights)

    def _concentration(self, tables: Tensor) -> Tensor:
        """Of rows around the rows of `tables`, ``(..., K, L)``."""
        return 1 / tables.shape[-1] + self.strength * tables
