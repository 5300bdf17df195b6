"""SVI in minibatches in a process that has just started: ``minibatches.py TASKS``.

Prints its peak resident memory and what the features of all tasks would take, in MiB, as JSON.
"""

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import Dataset

import crowdppl as cp

CHANNELS, SIDE, ANSWERS, WORKERS = 3, 32, 3, 50


class Images(Dataset[torch.Tensor]):
    """Images that are made when they are asked for.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((CHANNELS, SIDE, SIDE), i % 7 / 7)


n_tasks = int(sys.argv[1])
torch.set_num_threads(1)
rng = np.random.default_rng(0)
task = np.repeat(np.arange(n_tasks), ANSWERS)
worker, label = rng.integers(0, WORKERS, len(task)), rng.integers(0, 2, len(task))
frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
network = nn.Sequential(nn.Conv2d(CHANNELS, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * (SIDE - 2) ** 2, 2))
with warnings.catch_warnings():
    warnings.simplefilter("ignore", cp.ConvergenceWarning)  # its memory is measured, not its solution
    cp.fit(
        "dawid_skene",
        cp.Annotations.from_frame(frame, repeats="keep"),
        backend="pyro",
        classifier=network,
        dataset=Images(n_tasks),
        method="svi",
        batch_size=64,
        max_iterations=60,
        draws=5,
        progress=False,
    )
# Not getrusage, whose peak a child process inherits from its parent.
(peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps({"MiB": int(peak) / 2**10, "features": n_tasks * CHANNELS * SIDE**2 * 4 / 2**20}))
