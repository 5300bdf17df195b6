"""Steps of an optimizer, and the state of what it moves: a module's weights, and checkpoints of both."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..engines.checkpoints import Tree
from .torch_options import TorchOptions

Groups = list[dict[str, Any]]
TENSOR = "tensor"  # by which a checkpoint knows one


class Stepper:
    """An optimizer with its schedule, clipping and scaling of gradients: one step down a loss.

    Args:
        groups: of parameters, as optimizers take them; empty ones are left out.
        options: the user's.
        default: the optimizer where the user names none.
        schedule: the schedule where the user names neither.
    """

    def __init__(
        self,
        groups: Groups,
        options: TorchOptions,
        default: Callable[[Groups], torch.optim.Optimizer],
        schedule: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None,
    ) -> None:
        groups = [group for group in groups if group["params"]]
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.clip = options.clip
        if not self.parameters:
            return
        self.optimizer = default(groups) if options.optimizer is None else options.optimizer(groups)
        make = options.scheduler or (schedule if options.optimizer is None else None)
        self.scheduler = None if make is None else make(self.optimizer)
        scaled = options.autocast is torch.float16  # whose small gradients would vanish
        self.scaler = torch.amp.GradScaler(self.parameters[0].device.type, enabled=scaled)

    def step(self, loss: Tensor) -> None:
        """One step down ``loss``."""
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if self.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scheduler is not None:
            self.scheduler.step()

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        if not self.parameters:
            return {}
        parts = {"optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler}
        return {name: part.state_dict() for name, part in parts.items() if part is not None}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        for name, value in state.items():
            getattr(self, name).load_state_dict(value)


def trainable(module: nn.Module | None) -> list[nn.Parameter]:
    """Return the weights to be trained: all but those that the user has frozen."""
    return [] if module is None else [p for p in module.parameters() if p.requires_grad]


def snapshot(module: nn.Module | None) -> dict[str, Tensor] | None:
    """Return a copy of a module's weights and running statistics."""
    return None if module is None else {name: value.clone() for name, value in module.state_dict().items()}


def restore(module: nn.Module | None, state: dict[str, Tensor] | None) -> None:
    """Bring a module back to a :func:`snapshot`."""
    if module is not None and state is not None:
        module.load_state_dict(state)


def noted(state: Mapping[str, Any], device: torch.device) -> Tree:
    """Return the state of an engine as a checkpoint holds it, with that of torch's random numbers."""
    random = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(device)
    return _as_arrays({**state, "random": random})


def went_on(found: Tree, device: torch.device) -> dict[str, Any]:
    """Return the state that :func:`noted` had, on the device; torch's random numbers are what they were then."""
    state = _as_tensors(found, device)
    random = state.pop("random")
    torch.set_rng_state(random["cpu"].cpu())
    if "cuda" in random:
        torch.cuda.set_rng_state(random["cuda"].cpu(), device)
    return state


def _as_arrays(value: Any) -> Tree:
    """Return the nest with arrays of NumPy, which has no bfloat16, in the place of tensors."""
    if isinstance(value, Tensor):
        kept = value.detach().cpu()
        bits = kept.view(torch.int16) if kept.dtype == torch.bfloat16 else kept
        return {TENSOR: bits.numpy().copy(), "is_bfloat16": bits.dtype != kept.dtype}
    if isinstance(value, Mapping):
        return {key: _as_arrays(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_as_arrays, value))
    return value


def _as_tensors(value: Tree, device: torch.device) -> Any:
    """The way back."""
    if isinstance(value, dict) and TENSOR in value:
        tensor = torch.from_numpy(value[TENSOR].copy()).to(device)
        return tensor.view(torch.bfloat16) if value["is_bfloat16"] else tensor
    if isinstance(value, dict):
        return {key: _as_tensors(one, device) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_as_tensors(one, device) for one in value)
    return value
