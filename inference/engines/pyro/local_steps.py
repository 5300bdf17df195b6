r"""What each task has of its own, in minibatches by torch: :mod:`crowdppl.inference.engines.local_steps`."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from ..local_steps import OWN, STEPS
from .ascent import slopes_of, tables_mode
from .density import Anatomy, Density, Parameters


class Here(NamedTuple):
    """The parameters by task of one batch, in their own space: the tables, and what the others are functions of."""

    tables: Parameters
    reals: Parameters  # unconstrained

    def values(self, parts: Anatomy) -> Parameters:
        """Return the parameters in their own space."""
        return self.tables | parts.from_reals(self.reals)


class Locals:
    """The parameters by task of all tasks, which :meth:`climb` moves for the tasks of a batch.

    Args:
        parts: of the story.
        dims: names of each parameter's dimensions.
        parameters: where they start, in their own space.
        rate: of Adam.
    """

    def __init__(
        self, parts: Anatomy, dims: Mapping[str, tuple[str, ...]], parameters: Mapping[str, Tensor], rate: float
    ) -> None:
        self.parts = parts
        self.axes = {name: dims[name].index(OWN) for name in parts.all_bijections if OWN in dims[name]}
        self.tables = {name: parameters[name].detach().clone() for name in parts.tables if name in self.axes}
        reals = {name: real.detach() for name, real in parts.to_reals(parameters).items() if name in self.axes}
        self.shapes = {name: real.movedim(self.axes[name], 0).shape for name, real in reals.items()}
        self.rows = {  # one row a task, of which a step moves some
            name: real.movedim(self.axes[name], 0).reshape(len(real), -1).clone().requires_grad_()
            for name, real in reals.items()
        }
        self.adam = torch.optim.SparseAdam([*self.rows.values()] or [torch.zeros(1)], lr=rate)

    @property
    def is_empty(self) -> bool:
        """Whether tasks have nothing of their own."""
        return not self.axes

    def at(self, chosen: Tensor) -> Here:
        """Return the parameters of the tasks ``chosen (n,)``, by position."""
        tables = {name: table.index_select(self.axes[name], chosen) for name, table in self.tables.items()}
        return Here(tables, {name: self._shaped(name, rows.detach()[chosen]) for name, rows in self.rows.items()})

    @property
    def everyone(self) -> Parameters:
        """Return the parameters of all tasks, in their own space."""
        reals = {name: self._shaped(name, rows.detach()) for name, rows in self.rows.items()}
        return Here(self.tables, reals).values(self.parts)

    def climb(
        self, density: Callable[[Parameters], Density], posterior: Tensor, chosen: Tensor, weight: Tensor
    ) -> None:
        """Take a few steps uphill with the parameters of the tasks chosen whose weight is not zero.

        Args:
            density: of the batch, which stands for the population, at the tasks' own parameters.
            posterior: of the tasks' classes, ``(n, K)``.
            chosen: which tasks these are, ``(n,)``.
            weight: of the tasks, ``(n,)``.
        """
        real = weight > 0
        for _ in range(STEPS):
            still = self.at(chosen)
            tables = {name: table.clone().requires_grad_() for name, table in still.tables.items()}
            reals = {}
            for name, rows in self.rows.items():
                moving = rows.detach()[chosen].index_put((real,), embedding(chosen[real], rows, sparse=True))
                reals[name] = self._shaped(name, moving)
            at = density(Here(tables, reals).values(self.parts))
            expected = torch.where(posterior > 0, posterior * at.log_joint, torch.zeros_like(posterior)).sum(-1)
            gain = (weight * expected).sum() + at.log_prior_in_log_odds / at.scale
            of_tables = slopes_of(gain, tables) if not self.rows else self._backward(gain, tables)
            counts = {name: still.tables[name] * of_tables[name] for name in tables}
            if self.rows:
                self.adam.step()
            for name, mode in tables_mode(counts, still.tables).items():
                axis = self.axes[name]
                kept = mode.index_select(axis, real.nonzero()[:, 0])
                self.tables[name] = self.tables[name].index_copy(axis, chosen[real], kept)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        rows = {name: value.detach().clone() for name, value in self.rows.items()}
        return {"tables": dict(self.tables), "rows": rows, "adam": self.adam.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.tables = dict(state["tables"])
        with torch.no_grad():
            for name, rows in self.rows.items():
                rows.copy_(state["rows"][name])
        self.adam.load_state_dict(state["adam"])

    def _backward(self, gain: Tensor, tables: Parameters) -> Parameters:
        """Give the rows the slopes down, and return those of the tables up."""
        self.adam.zero_grad()
        (-gain).backward(inputs=[*self.rows.values(), *tables.values()])
        return {name: -table.grad for name, table in tables.items() if table.grad is not None}

    def _shaped(self, name: str, rows: Tensor) -> Tensor:
        """Return rows of some tasks in the parameter's own shape."""
        return rows.reshape(len(rows), *self.shapes[name][1:]).movedim(0, self.axes[name])
