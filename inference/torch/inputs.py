"""The inputs of a torch classifier: features of the tasks, or items of a dataset that is loaded lazily."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ...data import Annotations
from ...models.parts.truth import needed_features
from .module_classifier import CHUNK, as_inputs

OURS = ("batch_sampler", "batch_size", "dataset", "drop_last", "sampler", "shuffle")  # of a DataLoader's arguments


class TaskInputs:
    """The classifier's input of each task.

    Args:
        annotations: whose features they are, unless there is a dataset.
        dataset: the input of each task, in the order of ``annotations.tasks``.
        loader: arguments of its DataLoader.

    Raises:
        StoryError: there are neither features nor a dataset.
        ValueError: the dataset has not as many items as there are tasks, or an argument of the loader is ours to set.
    """

    def __init__(self, annotations: Annotations, dataset: Dataset | None, loader: Mapping[str, Any] | None) -> None:
        self.n_tasks, self.dataset, self.loader = annotations.n_tasks, dataset, dict(loader or {})
        if dataset is None:
            instead = ", or dataset=, a torch Dataset of the tasks"
            self.features = as_inputs(needed_features(annotations, "the classifier", instead))
            return
        n_items = len(dataset)  # type: ignore[arg-type]
        if n_items != self.n_tasks:
            raise ValueError(
                f"the dataset has {n_items} items, the annotations {self.n_tasks} tasks; "
                "item i must be the x of annotations.tasks[i], also of tasks without annotations"
            )
        for name in OURS:
            if name in self.loader:
                raise ValueError(
                    f"loader has {name!r}, which crowdppl sets; batch_size is an option of fit, and tasks are shuffled"
                )

    def batches(self, chosen: Sequence[np.ndarray], seed: int = 0) -> Iterator[Any]:
        """Inputs of the tasks ``chosen``, positions by batch; ``seed`` is that of the workers that load them."""
        if self.dataset is None:
            return (self.features[torch.as_tensor(np.array(which)).long()] for which in chosen)
        generator = torch.Generator().manual_seed(seed)
        order = [which.tolist() for which in chosen]
        return iter(DataLoader(self.dataset, batch_sampler=order, **{"generator": generator, **self.loader}))

    def all_tasks(self) -> Iterator[Any]:
        """Inputs of all tasks, in their order, some at a time."""
        return self.batches(np.array_split(np.arange(self.n_tasks), range(CHUNK, self.n_tasks, CHUNK)))
