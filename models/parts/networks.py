"""Classifiers ready-made: logistic regression, a perceptron with hidden layers, a small convolutional network."""

import math
from typing import Any

import jax
from flax import nnx
from jax import Array

CHANNELS = (32, 64)  # of a convolutional network's layers


class Logistic(nnx.Module):
    r"""Multinomial logistic regression: logits :math:`W^\top x + b` of the flattened features, ``(N, K)``.

    Without ``bias`` there is no :math:`b`, so that all classes are equally probable at features of zero.
    """

    def __init__(self, shape: tuple[int, ...], n_classes: int, *, bias: bool, rngs: nnx.Rngs) -> None:
        self.linear = _even(math.prod(shape), n_classes, rngs, bias=bias)

    def __call__(self, x: Array) -> Array:
        """Logits ``(N, K)`` of features ``(N, ...)``."""
        return self.linear(x.reshape(len(x), -1))


class MLP(nnx.Module):
    """Hidden layers with ReLU, each followed by dropout; with batch norm also of the features.

    Args:
        shape: of a task's features.
        n_classes: K.
        hidden: units of each hidden layer.
        dropout: share of the units switched off in training.
        batch_norm: normalise the features and each hidden layer over the batch.
        rngs: of Flax.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        n_classes: int,
        *,
        hidden: tuple[int, ...],
        dropout: float,
        batch_norm: bool,
        rngs: nnx.Rngs,
    ) -> None:
        sizes = (math.prod(shape), *hidden)
        self.layers = nnx.List(nnx.Linear(a, b, rngs=rngs) for a, b in zip(sizes, hidden, strict=False))
        self.norms = nnx.List(_batch_norm(size, rngs) for size in sizes) if batch_norm else None
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.out = _even(sizes[-1], n_classes, rngs)

    def __call__(self, x: Array) -> Array:
        """Logits ``(N, K)`` of features ``(N, ...)``."""
        x = x.reshape(len(x), -1)
        x = x if self.norms is None else self.norms[0](x)
        for i, layer in enumerate(self.layers):
            x = nnx.relu(layer(x))
            x = self.dropout(x if self.norms is None else self.norms[i + 1](x))
        return self.out(x)


class CNN(nnx.Module):
    """Convolutions of 3 × 3 with ReLU and pooling by 2, then hidden layers as in :class:`MLP`.

    Args:
        shape: of a task's image, ``(height, width)`` or ``(height, width, channels)``.
        n_classes: K.
        batch_norm: normalise each layer over the batch.
        rngs: of Flax.
        of_head: ``hidden`` and ``dropout`` of :class:`MLP`.
    """

    def __init__(
        self, shape: tuple[int, ...], n_classes: int, *, batch_norm: bool, rngs: nnx.Rngs, **of_head: Any
    ) -> None:
        height, width, depth = (*shape, 1)[:3]
        sizes = (depth, *CHANNELS)
        self.convolutions = nnx.List(nnx.Conv(a, b, (3, 3), rngs=rngs) for a, b in zip(sizes, CHANNELS, strict=False))
        self.norms = nnx.List(_batch_norm(size, rngs) for size in CHANNELS) if batch_norm else None
        for _ in CHANNELS:
            height, width = -(-height // 2), -(-width // 2)
        self.head = MLP((height, width, CHANNELS[-1]), n_classes, batch_norm=batch_norm, rngs=rngs, **of_head)

    def __call__(self, x: Array) -> Array:
        """Logits ``(N, K)`` of images ``(N, height, width)`` or ``(N, height, width, channels)``."""
        x = x[..., None] if x.ndim == 3 else x
        for i, convolution in enumerate(self.convolutions):
            x = jax.nn.relu(convolution(x))
            x = nnx.max_pool(x if self.norms is None else self.norms[i](x), (2, 2), (2, 2), padding="SAME")
        return self.head(x)


def _even(size: int, n_classes: int, rngs: nnx.Rngs, *, bias: bool = True) -> nnx.Linear:
    """A last layer that starts with equal probabilities, so that the first E-step depends on annotations alone."""
    return nnx.Linear(size, n_classes, use_bias=bias, kernel_init=nnx.initializers.zeros, rngs=rngs)


def _batch_norm(size: int, rngs: nnx.Rngs) -> nnx.BatchNorm:
    """With running statistics of the last few dozen batches: a small table of tasks has no more in many epochs."""
    return nnx.BatchNorm(size, momentum=0.9, rngs=rngs)
