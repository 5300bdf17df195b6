"""What the tests of the Pyro programs share; each file skips where the extra ``pyro`` is not installed."""

import numpy as np
import pandas as pd
import pytest

from crowdppl import Annotations


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of torch that wait for a busy core make tiny steps a hundred times slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def double():
    """Both backends in float64."""
    import jax
    import torch

    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def crowd() -> Annotations:
    """Forty tasks, two classes that two features tell apart, five annotations each, seven workers, one of them bad."""
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    x = rng.normal(size=(40, 2)) + 3 * (2 * truth[:, None] - 1)
    right = np.array([0.9, 0.85, 0.9, 0.8, 0.85, 0.9, 0.4])
    rows = [(i, j) for i in range(40) for j in rng.choice(7, 5, replace=False)]
    label = [truth[i] if rng.random() < right[j] else 1 - truth[i] for i, j in rows]
    frame = pd.DataFrame(rows, columns=["task", "worker"]).assign(label=label)
    return Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))
