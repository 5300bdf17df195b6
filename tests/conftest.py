"""What tests share: small annotations, and the datasets under $CROWDPPL_DATA."""

import ctypes
import gc
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

# Most of the suite's time is XLA's compiler, for programs that run once: least optimised they compile in 40 % of it.
# Before JAX starts, and unless the caller has a say in it: make test XLA_FLAGS=… runs the programs that users run.
# To compile a program in one piece takes a fifth less than in pieces, one for each core.
# XLA ends the process at a flag that it does not know, so that all but the first are only for versions tried with them.
FLAGS = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith("0.10."):
    FLAGS += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", FLAGS)
os.environ.pop("COLUMNS", None)  # a width that xdist gives its processes, and what is told is then wrapped to
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


STATM = Path("/proc/self/statm")
MAPS = Path("/proc/self/maps")
LARGE = 4 * 2**30  # bytes of a process, of which the compiler's are the most
MUCH, MANY = 2 * 2**30, 12_000  # bytes and memory maps of a process that forgets after a file
HEAVIEST = (
    "test_program.py",
    "test_every_story.py",
    "test_pyro.py",
    "test_every_option.py",
    "test_copies.py",
    "test_readme.py",
    "test_abstentions.py",
    "test_numpyro.py",
    "test_sweeps.py",
    "test_page.py",
    "test_of_agreement.py",
    "test_at_size.py",
    "test_squarem.py",
    "test_saved_folder.py",
    "test_results.py",
    "test_conal.py",
    "test_training.py",
    "test_commands.py",
    "test_own_story.py",
    "test_streaming.py",
    "test_classifier_engines.py",
    "test_published_settings.py",
    "test_further_stories.py",
    "test_confusion_from_features.py",
    "test_nuts.py",
    "test_task_difficulty.py",
    "test_shared_error.py",
    "test_killed_fits.py",
    "test_devices.py",
)
"""Files that take long here or in the long suite, the longest first: one begun last would run on when all are done."""


LONG = Path(__file__).with_name("long_tests.txt")
"""Tests of two seconds of a processor and more, which `make test-long` and CI run, and `make test` does not.

A line names a test with its arguments, or without them whatever these are.
"""


MINUTES = float(os.environ.get("CROWDPPL_TEST_MINUTES") or 0)
"""Those after which no test is begun any more: what is left is skipped, and counted. 0 for no end.

The files then come in another order every day, so that on a slow machine, too, each has its turn.
"""
DAY = os.environ.setdefault("CROWDPPL_TEST_DAY", date.today().isoformat())  # of all processes, at midnight too
BEGUN = float(os.environ.setdefault("CROWDPPL_TEST_BEGUN", str(time.time())))


def pytest_configure(config: pytest.Config) -> None:
    """Import ArviZ before processes that share the tests do.

    The first import of a day writes a file, and one that comes at the same moment fails over it, half written or gone.
    """
    if getattr(config.option, "numprocesses", None):
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # what it announces once a day
            import arviz  # noqa: F401


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of :data:`LONG`; run the files of :data:`HEAVIEST` first, and the others as they come.

    Where minutes are counted the order is that of the day.
    """
    first = list(HEAVIEST)
    if MINUTES:
        first = sorted({item.path.name for item in items})
        random.Random(DAY).shuffle(first)
    places = {name: place for place, name in enumerate(first)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    long = set(LONG.read_text(encoding="utf-8").splitlines())
    names = [{item.nodeid, item.nodeid.partition("[")[0]} for item in items]  # a test with its arguments, or with any
    for item, of_item in zip(items, names, strict=True):
        if of_item & long:
            item.add_marker("long")
    gone = long.difference(*names)
    if gone and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        raise pytest.UsageError(f"{LONG.name} names tests that are not there: {', '.join(sorted(gone))}")


def pytest_runtest_setup() -> None:
    if MINUTES and time.time() - BEGUN > 60 * MINUTES:
        pytest.skip(f"{MINUTES:g} minutes are over: CROWDPPL_TEST_MINUTES")


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not in what is imported: tracing programs makes much that is kept."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """Matplotlib keeps every figure, and JAX what it has traced of every function, which in time would be gigabytes.

    Files share what was traced and compiled until then: most fit data of one bucket of sizes.
    """
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    if _n_bytes() > MUCH or _n_maps() > MANY:
        jax.clear_caches()
        gc.collect()
    _give_memory_back()


@pytest.fixture(scope="module", autouse=True)
def _same_programs() -> Iterator[None]:
    """No file leaves the package's own cache of programs on: all that is fitted later would be compiled anew."""
    yield
    ready_programs = sys.modules.get("crowdppl.inference.densities.ready_programs")
    assert ready_programs is None or ready_programs.folder_in_use() is None
    assert jax.config.jax_compilation_cache_dir == os.environ["JAX_COMPILATION_CACHE_DIR"]


def pytest_runtest_teardown() -> None:
    """Files of many programs give memory back on the way, and forget programs where that is not enough."""
    if _n_bytes() > LARGE:
        _give_memory_back()
        if _n_bytes() > LARGE:
            jax.clear_caches()


def _n_bytes() -> int:
    """Memory of this process; 0 where the system does not say."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if STATM.exists() else 0


def _n_maps() -> int:
    """Memory maps of this process, of which every program has some and Linux allows 65,530."""
    return MAPS.read_bytes().count(b"\n") if MAPS.exists() else 0


def _give_memory_back() -> None:
    """What is free goes to the system: glibc would keep it, half of a process's memory."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


AS_READ = ("test_readme.py", "test_docs.py", "test_guide_block.py", "test_promises.py")
"""Files of tests of what readers see."""


@pytest.fixture(autouse=True)
def _at_the_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """EM's labels are those at its mode unless a test asks for sweeps: each size of data would take a program more.

    `tests/inference/fitted/test_averaged_labels.py` has EM as users have it, and so has all that shows its output to
    readers: doctests, the README, the guides and the demo.
    """
    if isinstance(request.node, pytest.DoctestItem) or request.path.name in AS_READ:
        return
    monkeypatch.setattr("crowdppl.inference.fitted.averaged_labels.THIN", 0)


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
