"""Arrays of JAX and tensors of PyTorch over one memory, and JAX's functions as operations of :mod:`torch.autograd`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array
from torch import Tensor

Values = Sequence[Array]


def home() -> torch.device:
    """The device on which JAX computes, as one of PyTorch; the CPU where PyTorch does not have JAX's device."""
    on_gpu = jax.default_backend() != "cpu" and torch.cuda.is_available()
    return torch.device("cuda", jax.devices()[0].local_hardware_id) if on_gpu else torch.device("cpu")


def to_jax(tensor: Tensor) -> Any:
    """A tensor's values as an array for JAX, of its default precision, not copied where both are on one device."""
    given = tensor.detach()
    if given.is_floating_point():
        given = given.to(torch.float64 if jax.dtypes.canonicalize_dtype(np.float64) == np.float64 else torch.float32)
    elif given.dtype is torch.int64:
        given = given.to(torch.int32)
    if not given.numel() or given.device.type == "cpu" or jax.default_backend() == "cpu":
        return given.cpu().numpy()  # which JAX takes as it is, in a fraction of the time that DLPack takes
    return jnp.from_dlpack(given.contiguous())


def to_torch(array: Array) -> Tensor:
    """An array as a tensor at :func:`home`, not copied where JAX computes there."""
    if not array.size or (home().type == "cpu") != (jax.default_backend() == "cpu"):
        return torch.tensor(np.asarray(array), device=home())
    return torch.from_dlpack(array)


class Look:
    """A number that JAX computes of arrays, together with its slopes along them.

    Args:
        values_and_slopes: a pure function of the arrays to the number and its slopes.
        bends: a pure function of the arrays, and of as many directions, to the slope of the slopes' product with the
            directions; None where nothing asks for second derivatives.
    """

    def __init__(
        self,
        values_and_slopes: Callable[[Values], tuple[Array, Values]],
        bends: Callable[[Values, Values], Values] | None = None,
    ) -> None:
        self.values_and_slopes, self.bends = values_and_slopes, bends

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The number at tensors, whose gradient PyTorch may take: once, or twice where there are ``bends``."""
        found: Tensor = _Number.apply(self, *inputs)  # type: ignore[no-untyped-call]
        return found


class _Number(torch.autograd.Function):
    """The number of a look; its slopes are computed with it, in one program."""

    @staticmethod
    def forward(ctx: Any, look: Look, *inputs: Tensor) -> Tensor:
        value, slopes = look.values_and_slopes([to_jax(x) for x in inputs])
        ctx.look, ctx.slopes = look, slopes
        ctx.save_for_backward(*inputs)
        return to_torch(value)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        twice = torch.is_grad_enabled() and ctx.look.bends is not None
        slopes = _Slopes.apply(ctx.look, *ctx.saved_tensors) if twice else map(to_torch, ctx.slopes)  # type: ignore[no-untyped-call]
        return None, *(slope * one for one in slopes)


class _Slopes(torch.autograd.Function):
    """The slopes of a look, for second derivatives."""

    @staticmethod
    def forward(ctx: Any, look: Look, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.look = look
        ctx.save_for_backward(*inputs)
        return tuple(map(to_torch, look.values_and_slopes([to_jax(x) for x in inputs])[1]))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *along: Tensor) -> Any:
        bends = ctx.look.bends([to_jax(x) for x in ctx.saved_tensors], [to_jax(x) for x in along])
        return None, *map(to_torch, bends)
