"""Options of ``backend="pyro"`` beside the engine's own: what of PyTorch is left to the user's hands."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer
from torch.utils.data import Dataset


class TorchOptions(NamedTuple):
    """Options of PyTorch that are left to the user's hands.

    Args:
        device: where the classifier's weights are, to be sure of it; JAX computes the story where it always does.
        dataset: what the classifier sees in place of the annotations' features, loaded lazily: item i is the x of task
            i, in the order of ``annotations.tasks``; a tensor, or a mapping of tensors for a module that takes
            keywords.
        loader: arguments of ``torch.utils.data.DataLoader`` for the dataset, such as ``num_workers``, ``collate_fn``.
        optimizer: a function of groups of parameters, such as ``functools.partial(torch.optim.AdamW, lr=1e-3)``: the
            story's own with a learning rate (``learning_rate``), then the classifier's weights without one, in place of
            ``network_rate`` and ``weight_decay``. Adam by default.
        scheduler: a function of the optimizer that returns a learning-rate schedule; it moves on after each step.
        clip: the norm to which the gradients of each step are cut; None for no cutting. It, ``optimizer`` and
            ``scheduler`` are used in training by minibatches and in SVI.
        autocast: precision of the classifier's forward pass, such as ``torch.bfloat16``. Used with a classifier, as
            are ``dataset`` and ``loader``.
    """

    device: str | torch.device | None = None
    dataset: Dataset | None = None
    loader: Mapping[str, Any] | None = None
    optimizer: Callable[[Iterable[dict[str, Any]]], Optimizer] | None = None
    scheduler: Callable[[Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None
    clip: float | None = None
    autocast: torch.dtype | None = None


OF_MODULE = ("device", "dataset", "loader", "autocast")
SUCH_AS = {
    "optimizer": "torch.optim.AdamW, or functools.partial(torch.optim.AdamW, lr=1e-3)",
    "scheduler": "functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.99)",
}
OF_STEPS = ("optimizer", "scheduler", "clip")


def refuse_unused_options(options: TorchOptions, method: str, *, has_module: bool) -> None:
    """Refuse options that a fit would ignore.

    Args:
        options: the user's.
        method: name of the engine.
        has_module: whether a torch module is the truth's prior.

    Raises:
        ValueError: one of them is given, or what must be a function is none.
    """
    if has_module:
        if options.loader and options.dataset is None:
            raise ValueError("loader= is of a dataset, and none is given; give dataset=, a torch Dataset of the tasks")
    else:
        for name in OF_MODULE:
            if getattr(options, name) is not None:
                raise ValueError(
                    f"{name}= is of a classifier that is a torch module, and there is none; give classifier="
                )
        for name in OF_STEPS:
            if getattr(options, name) is not None and method != "svi":
                raise ValueError(
                    f"{name}= is of the training of a torch module, and of SVI; method={method!r} without a module "
                    "does not use it: leave it out, or give classifier="
                )
    for name in ("optimizer", "scheduler"):
        if (value := getattr(options, name)) is not None and not callable(value):
            raise ValueError(f"{name}={value!r}: a function is needed, such as {SUCH_AS[name]}")


def unused_with_optimizer(options: TorchOptions) -> dict[str, str]:
    """Return the options of an engine that the user's own optimizer leaves without use, with the reason."""
    if options.optimizer is None:
        return {}
    reason = "the classifier's weights are moved by optimizer=; give it there"
    return dict.fromkeys(("network_rate", "weight_decay"), reason)
