"""What tests share: small annotations, and the datasets under $CROWDPPL_DATA."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version

from platformdirs import user_cache_path

# Most of the suite's time is XLA's compiler, for programs that run once: least optimised they compile in 40 % of it.
# Before JAX starts, and unless the caller has a say in it: make test XLA_FLAGS=… runs the programs that users run.
# XLA ends the process at a flag that it does not know, so that the second one is only for the versions tried with it.
FLAGS = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith("0.10."):
    FLAGS += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", FLAGS)
# The processes that share the suite, and the next run, take programs that were compiled before.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_path("crowdppl", appauthor=False) / "tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.03")

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from crowdppl import Annotations, load_dataset

settings.register_profile("crowdppl", deadline=None)  # time says more of the machine than of the code
settings.load_profile("crowdppl")


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """JAX keeps what it has traced of every function, which would be gigabytes; Matplotlib keeps every figure."""
    yield
    jax.clear_caches()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def real() -> Callable[[str], Annotations]:
    """Load a dataset of $CROWDPPL_DATA, or skip."""
    if "CROWDPPL_DATA" not in os.environ:
        pytest.skip("CROWDPPL_DATA is unset: it names the folder of the real datasets")
    return load_dataset


@pytest.fixture
def tiny() -> Annotations:
    """Five tasks (one without annotations), three workers, three classes, one repeated annotation."""
    return random_annotations(np.random.default_rng(0), n_tasks=5, n_workers=3, n_classes=3, n_rows=9)


def random_annotations(
    rng: np.random.Generator, *, n_tasks: int, n_workers: int, n_classes: int, n_rows: int
) -> Annotations:
    """Rows drawn at random, all tasks, workers and classes declared."""
    frame = pd.DataFrame(
        {
            "task": rng.integers(0, n_tasks - 1, n_rows),
            "worker": rng.integers(0, n_workers, n_rows),
            "label": rng.integers(0, n_classes, n_rows),
        }
    )
    return Annotations.from_frame(
        frame, tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes), repeats="keep"
    )
