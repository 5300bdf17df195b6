"""Minibatches of whole tasks with all their annotations, ragged, and the classifier's inputs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ....data import Annotations, Ids
from ....models.pyro import moved
from ....models.pyro.classifier import on

OURS = ("batch_sampler", "batch_size", "dataset", "drop_last", "sampler", "shuffle")  # of a DataLoader's arguments


class Batch(NamedTuple):
    """Some tasks."""

    annotations: Annotations  # of tensors, on the device
    weight: Tensor  # (n,) 1, or 0 for tasks that only fill up the last batch, which come again
    inputs: Any  # of the classifier, where they are not the annotations' features
    chosen: Tensor  # (n,) which tasks they are, by position


class TaskSource:
    """All tasks, from which batches are taken.

    Args:
        annotations: of tensors, on the CPU.
        dataset: the classifier's input of each task; None for the annotations' features.
        loader: arguments of its DataLoader.
        device: where batches go.

    Raises:
        ValueError: the dataset has not as many items as there are tasks, or an argument of the loader is ours to set.
    """

    def __init__(
        self,
        annotations: Annotations,
        dataset: Dataset | None,
        loader: Mapping[str, Any] | None,
        device: torch.device,
    ) -> None:
        self.annotations, self.dataset, self.loader, self.device = annotations, dataset, dict(loader or {}), device
        if dataset is not None and len(dataset) != annotations.n_tasks:  # type: ignore[arg-type]
            raise ValueError(
                f"the dataset has {len(dataset)} items, the annotations {annotations.n_tasks} tasks; "  # type: ignore[arg-type]
                "item i must be the x of annotations.tasks[i], also of tasks without annotations"
            )
        for name in OURS:
            if name in self.loader:
                raise ValueError(
                    f"loader has {name!r}, which crowdppl sets; batch_size is an option of fit, and tasks are shuffled"
                )
        if self.loader and dataset is None:
            raise ValueError("loader= is of a dataset, and none is given; give dataset=, a torch Dataset of the tasks")
        self._rows = torch.bincount(annotations.task, minlength=annotations.n_tasks)
        self._first = torch.cumsum(self._rows, 0) - self._rows

    def with_annotations(self, annotations: Annotations) -> "TaskSource":
        """Return these tasks with other annotations."""
        return TaskSource(annotations, self.dataset, self.loader, self.device)

    def epoch(
        self, size: int, generator: torch.Generator, *, population: int | None = None, begin: int = 0
    ) -> Iterator[Batch]:
        """Yield all tasks once, in a random order, in batches of ``size``; the last is filled up with weights of zero.

        Args:
            size: tasks in a batch.
            generator: of the order.
            population: how many tasks a batch stands for; None for its own number.
            begin: batches to leave out at the start.
        """
        n_tasks = self.annotations.n_tasks
        order, seed = self.shuffle(generator)
        position = torch.arange(-(-n_tasks // size) * size)
        chosen, weight = (x.split(size)[begin:] for x in (order[position % n_tasks], position < n_tasks))
        for which, real, inputs in zip(chosen, weight, self._inputs(chosen, seed), strict=True):
            annotations = moved(take(self.annotations, which, self._first, self._rows), self.device)
            real_weight = real.to(self.device, torch.get_default_dtype())
            here = which.to(self.device)
            yield Batch(annotations.replace(population=population), real_weight, inputs, here)

    def shuffle(self, generator: torch.Generator) -> tuple[Tensor, int]:
        """Return an epoch's order of the tasks, and a seed for the workers that load them."""
        return torch.randperm(self.annotations.n_tasks, generator=generator), int(
            torch.randint(2**62, (), generator=generator)
        )

    def whole(self, *, population: int | None = None) -> Batch:
        """Return all tasks in one batch."""
        n_tasks = self.annotations.n_tasks
        (inputs,) = self._inputs((torch.arange(n_tasks),))
        annotations = moved(self.annotations, self.device).replace(population=population)
        everyone = torch.arange(n_tasks, device=self.device)
        return Batch(annotations, torch.ones(n_tasks, device=self.device), inputs, everyone)

    def inputs(self, size: int) -> Iterator[Any]:
        """Return the classifier's inputs of all tasks, in their order, in batches of ``size``."""
        if self.dataset is None:
            features: Tensor = self.annotations.features  # type: ignore[assignment]  # a classifier has one of both
            return (x.to(self.device) for x in features.split(size))
        return self._inputs(torch.arange(self.annotations.n_tasks).split(size))

    def _inputs(self, chosen: Any, seed: int = 0) -> Iterator[Any]:
        if self.dataset is None:
            return (None for _ in chosen)
        order = [which.tolist() for which in chosen]
        generator = torch.Generator().manual_seed(seed)
        batches = DataLoader(self.dataset, batch_sampler=order, **{"generator": generator, **self.loader})
        return (on(inputs, self.device) for inputs in batches)


def take(annotations: Annotations, chosen: Tensor, first: Tensor, rows: Tensor) -> Annotations:
    """Return the tasks ``chosen (n,)``, by position, with all their annotations.

    Args:
        annotations: of tensors.
        chosen: positions of tasks.
        first: the first row of each task, ``(N,)``.
        rows: its number of rows, ``(N,)``.
    """
    n_rows = rows[chosen]
    slot = torch.repeat_interleave(torch.arange(len(chosen)), n_rows)
    row = torch.arange(len(slot)) + (first[chosen] - (torch.cumsum(n_rows, 0) - n_rows))[slot]
    by_row = {name: v[row] for name in ("worker", "label", "count") if (v := getattr(annotations, name)) is not None}
    by_task = {
        name: v[chosen]
        for name in ("gold", "features", "evidence", "prior")
        if (v := getattr(annotations, name)) is not None
    }
    return annotations.replace(task=slot, tasks=Ids.range(len(chosen)), **by_row, **by_task)
