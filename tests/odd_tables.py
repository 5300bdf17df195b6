"""Annotation tables that are odd or hostile, small enough that few programs are compiled for them."""

import signal
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.inference.engines.outcome import Outcome

TASKS, WORKERS, ROWS = 16, 8, 64
"""Sizes up to which all tables share one compiled program of a story."""

HANG, WAITING = 60, 600
"""Seconds of the processors after which a fit counts as hanging, and seconds by the clock, as others work there too."""

ODD_IDS = [
    "'",
    " -",
    "=1+1",
    "<script>",
    "NaN",
    "None",
    "\u202e",
    "é",
    "e\u0301",
    "0",
    "-1",
    "a\nb",
    "🦊",
    "x" * 500,
]


class Table(NamedTuple):
    """Annotations, and what a fit of them is asked for besides."""

    annotations: cp.Annotations
    options: dict[str, Any]


def _table(rows: list[tuple], n_classes: int, **options: Any) -> cp.Annotations:
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, classes=range(n_classes), **options)


def ragged(rng: np.random.Generator, k: int) -> Table:
    """Any number of annotations of any task, repeats among them, tasks without any; odd names."""
    n, j, a = rng.integers(1, TASKS + 1), rng.integers(1, WORKERS + 1), rng.integers(1, ROWS + 1)
    tasks = [ODD_IDS[i] if i < len(ODD_IDS) else f"t{i}" for i in range(n)]
    rows = [(tasks[rng.integers(n)], f"w{rng.integers(j)}", rng.integers(k)) for _ in range(a)]
    return Table(_table(rows, k, tasks=tasks), {})


def all_agree(rng: np.random.Generator, k: int) -> Table:
    """Every worker gives the same class everywhere, or the same one for each task."""
    n, j = rng.integers(1, 9), rng.integers(1, WORKERS + 1)
    truth = rng.integers(k, size=n) if rng.random() < 0.5 else np.full(n, rng.integers(k))
    return Table(_table([(i, w, truth[i]) for i in range(n) for w in range(j)], k), {})


def all_disagree(rng: np.random.Generator, k: int) -> Table:
    """Every task has every class equally often."""
    n = rng.integers(1, ROWS // k // 2 + 1)
    n = min(n, TASKS)
    return Table(_table([(i, w, (w + i) % k) for i in range(n) for w in range(min(k, WORKERS))], k), {})


def adversarial(rng: np.random.Generator, k: int) -> Table:
    """Some workers are right, the others always give the class after the true one."""
    n, bad = 8, rng.integers(1, WORKERS + 1)
    truth = rng.integers(k, size=n)
    return Table(_table([(i, w, (truth[i] + (w < bad)) % k) for i in range(n) for w in range(WORKERS)], k), {})


def islands(rng: np.random.Generator, k: int) -> Table:
    """Two groups of workers without a common task, who may name the classes differently."""
    rows = [(i, w, (i + (i < 8) * rng.integers(2)) % k) for i in range(16) for w in ((0, 1) if i < 8 else (2, 3))]
    return Table(_table(rows, k), {})


def unused_classes(rng: np.random.Generator, k: int) -> Table:
    """Only one class is ever given."""
    given = rng.integers(k)
    return Table(_table([(i, w, given) for i in range(rng.integers(1, 9)) for w in range(3)], k), {})


def one_of_everything(rng: np.random.Generator, k: int) -> Table:
    """One annotation of one task by one worker."""
    return Table(_table([("t", "w", rng.integers(k))], k), {})


def busy_task(rng: np.random.Generator, k: int) -> Table:
    """One task with 10,000 annotations by few workers beside tasks with one."""
    rows = [("busy", w, int(rng.integers(k))) for w in range(WORKERS) for _ in range(3)] + [("idle", 0, 0)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame["count"] = rng.multinomial(9_000, np.full(len(frame), 1 / len(frame))) + 1
    return Table(cp.Annotations.from_frame(frame, classes=range(k), count="count"), {})


def huge_counts(rng: np.random.Generator, k: int) -> Table:
    """Rows that stand for 2**24 annotations, beyond which float32 does not count by ones."""
    rows = [(i, w, int(rng.integers(k))) for i in range(6) for w in range(3)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame["count"] = rng.choice([1, 2**24 - 1, 2**24], len(frame))
    return Table(cp.Annotations.from_frame(frame, classes=range(k), count="count"), {})


def contradicting_gold(rng: np.random.Generator, k: int) -> Table:
    """Gold labels that contradict every annotation."""
    truth = rng.integers(k, size=8)
    annotations = _table([(i, w, truth[i]) for i in range(8) for w in range(4)], k)
    return Table(annotations.with_gold({i: int((truth[i] + 1) % k) for i in range(rng.integers(1, 9))}), {"gold": True})


def abstentions_only(rng: np.random.Generator, k: int) -> Table:
    """Nobody gives a class anywhere, or hardly anybody."""
    rows: list[tuple] = [(i, w, "?") for i in range(5) for w in range(3)]
    if rng.random() < 0.5:
        rows[0] = (0, 0, 0)
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return Table(cp.Annotations.from_frame(frame, classes=range(k), abstain=["?"]), {})


def no_names(rng: np.random.Generator, k: int) -> Table:
    """Annotations of which nobody knows who gave them."""
    counts = pd.DataFrame(rng.integers(0, 4, (6, k)), columns=range(k))
    return Table(cp.Annotations.from_counts(counts), {})


SHAPES: dict[str, Callable[[np.random.Generator, int], Table]] = {
    shape.__name__: shape
    for shape in (
        ragged,
        all_agree,
        all_disagree,
        adversarial,
        islands,
        unused_classes,
        one_of_everything,
        busy_task,
        huge_counts,
        contradicting_gold,
        abstentions_only,
        no_names,
    )
}
"""Kinds of odd tables by name, each a function of a generator and the number of classes."""


def crowd_of_thousands(rng: np.random.Generator) -> Table:
    """One task with 10,000 annotations, each by a worker of its own."""
    rows = [("busy", w, int(rng.random() < 0.3)) for w in range(10_000)] + [("idle", 0, 0)]
    return Table(_table(rows, 2), {})


def thousand_classes(rng: np.random.Generator) -> Table:
    """K = 1,000, of which few are given."""
    return Table(_table([(i, w, int(rng.integers(1000))) for i in range(8) for w in range(2)], 1000), {})


@st.composite
def tables(draw: st.DrawFn, shapes: tuple[str, ...] = tuple(SHAPES), n_classes: tuple[int, ...] = (2,)) -> Table:
    """A table of one of these shapes, with one of these numbers of classes; shrinks to the first shape."""
    shape, k = draw(st.sampled_from(shapes)), draw(st.sampled_from(n_classes))
    return SHAPES[shape](np.random.default_rng(draw(st.integers(0, 2**32 - 1))), k)


class Hangs(Exception):
    """A fit took longer than :data:`HANG` seconds."""


@contextmanager
def _no_hang(seconds: int):
    def stop(*_: object) -> None:
        raise Hangs(f"longer than {seconds} s")

    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(max(WAITING, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for kind, handler in before.items():
            signal.signal(kind, handler)


def fits_or_refuses(story: str, table: Table, *, hang: int = HANG, **options: Any) -> str:
    """Fit a story to a table: "fits" if all it says is finite and probabilities sum to 1, "refused" if it says why not.

    Raises:
        AssertionError: something is not finite, does not sum to 1, or the error is not crowdppl's own.
    """
    try:
        with _no_hang(hang):
            fit = cp.fit(story, table.annotations, progress=False, **table.options, **options)
            found = np.asarray(fit.posterior, dtype=float)
    except ValueError as error:  # AnnotationError, StoryError and UnknownNameError are of this kind
        if "site-packages" in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts:
            raise AssertionError(f"{story}: an error from inside a library: {error}") from error
        return "refused"
    assert found.shape == (table.annotations.n_tasks, table.annotations.n_classes)
    assert np.isfinite(found).all(), f"{story}: the label probabilities are not finite"
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-3)
    assert (found >= 0).all()
    outcome: Outcome = fit.outcome
    for name, value in {**outcome.draws, **outcome.fixed}.items():
        assert np.isfinite(value).all(), f"{story}: {name} is not finite"
    assert np.isfinite(outcome.history).all()
    return "fits"
