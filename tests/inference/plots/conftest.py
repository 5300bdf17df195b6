"""Fits that several pictures are drawn of, and figures closed after each test."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from made_fits import changed, made_fit

import crowdppl as cp

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def em():
    return cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)


@pytest.fixture(scope="session")
def svi(em):
    """A fit with 40 draws and a noisy loss."""
    rng = np.random.default_rng(1)
    loss = 500 * np.exp(-np.arange(300) / 60) + rng.normal(0, 20, 300)
    made = made_fit(em, em.annotations, draws=40)
    return changed(made, method="svi", outcome=made.outcome._replace(history=loss))


@pytest.fixture(scope="session")
def binary_data():
    """120 tasks of two classes, twelve workers, true labels, and the parameters by site."""
    return cp.simulate("two_coin", n_tasks=120, n_workers=12, annotations_per_task=5, seed=3)


@pytest.fixture(scope="session")
def binary(binary_data, svi):
    """A fit of two classes with 40 draws."""
    return made_fit(svi, binary_data[0], draws=40)


@pytest.fixture(scope="session")
def crowded(em):
    """A fit of 450 workers of two classes, without draws."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(600), 3)
    rows = pd.DataFrame({"task": task, "worker": (7 * np.arange(1800)) % 450, "label": rng.integers(0, 2, 1800)})
    return made_fit(em, cp.Annotations.from_frame(rows, workers=range(450), classes=[0, 1]), draws=1)


@pytest.fixture
def unnamed(em):
    """A fit of annotations that name no workers."""
    data = cp.Annotations.from_counts([[1, 1, 1, 1], [3, 0, 0, 0]])
    return changed(em, source=data, stored_posterior=np.full((2, 4), 0.25))
