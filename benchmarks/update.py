"""A fit that goes on with new annotations, against a fit of everything: passes over the data, and seconds."""

from collections.abc import Callable
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import typer
from support.report import Report

import crowdppl as cp
from crowdppl.inference.engines import em, sparse_em

CLASSES, PER_TASK, PER_WORKER = 5, 5, 1000
SURE, WEAK = 10.0, 3.0  # what a confusion matrix's Dirichlet prior has on its diagonal beside 1
STORIES = ("dawid_skene", "mace", "one_coin", "hierarchical_dawid_skene")


def main(rows: str = "1e6", new: int = 1000, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        rows: number of annotations that were fitted.
        new: number of annotations that come, of old tasks and of a few new ones.
        write: refresh this section of RESULTS.md.
    """
    report = Report("A fit goes on with new annotations")
    n_rows = int(float(rows))
    found = [measured("dawid_skene", n_rows, new, WEAK)]
    found += [measured(story, n_rows, new, SURE) for story in STORIES]
    seconds = ["update, s", "its first, s", "fit of everything, s", "its first, s "]
    report.table(f"{new:,} new annotations beside {n_rows:,}", found, absolute=seconds)
    report.note(
        f"{PER_TASK} annotations a task, {PER_WORKER:,} a worker, {CLASSES} classes. A pass is one gradient over all "
        "annotations: of an update the one that holds the tasks that do not move, those over the tasks that move in "
        "proportion to their annotations, and the iterations over everything. Times are of whole calls: of the third "
        "update in a row, each with annotations of its own, whose programs are compiled, as those of the fit of "
        "everything are; the last column has both with what they compile, where the second crowd of dawid_skene finds "
        "the fit's programs compiled by the first. A difference of log-posteriors is that of the update less that of "
        "the fit of everything, in shares of the tolerance. An update joins the annotations first; the fit of "
        "everything is given annotations that are joined already."
    )
    if write:
        report.write()


def measured(story: str, n_rows: int, new: int, diagonal: float) -> dict[str, object]:
    """One story: fitted, updated three times, and fitted to everything twice."""
    crowd = Crowd(n_rows, diagonal)
    tasks = np.repeat(np.arange(n_rows // PER_TASK), PER_TASK)
    fit: Any = cp.fit(story, cp.Annotations.from_frame(crowd.annotate(tasks), classes=range(CLASSES)), progress=False)
    times: list[float] = []
    with watched() as parts:
        for _ in range(3):
            more = crowd.annotate(crowd.rng.integers(len(crowd.truth), size=new))
            fit, seconds = timed(lambda fit=fit, more=more: fit.update(more, progress=False))
            times.append(seconds)
    steps, share = (parts[-1][0], parts[-1][1] / fit.annotations.n_rows) if parts else (0, float("nan"))
    whole, first = timed(lambda: cp.fit(story, fit.annotations, progress=False))
    whole, again = timed(lambda: cp.fit(story, fit.annotations, progress=False))
    passes = len(fit.history) + (1 + steps * share if parts else 1)
    ends = fit.history.iloc[-1], whole.history.iloc[-1]
    return {
        "story": f"{story}, weak crowd" if diagonal == WEAK else story,
        "share that moves": share,
        "iterations over it": steps,
        "over everything": len(fit.history) - 1,
        "in passes": passes,
        "fit of everything": len(whole.history) + 1,
        "log-posteriors apart": (ends[0] - ends[1]) / abs(ends[1]) / fit.settings["tolerance"],
        "update, s": times[-1],
        "its first, s": times[0],
        "fit of everything, s": again,
        "its first, s ": first,
        "times faster": again / times[-1],
        "with compilation": first / times[0],
    }


class Crowd:
    """Workers with confusion matrices, and true labels of old tasks and a few new ones."""

    def __init__(self, n_rows: int, diagonal: float) -> None:
        self.rng = np.random.default_rng(0)
        self.n_workers = max(n_rows // PER_WORKER, 2 * PER_TASK)
        rows = 1 + diagonal * np.eye(CLASSES)
        self.cumulative = np.stack([self.rng.dirichlet(row, self.n_workers) for row in rows], axis=1).cumsum(-1)
        self.truth = self.rng.integers(CLASSES, size=n_rows // PER_TASK + 100)

    def annotate(self, task: np.ndarray) -> pd.DataFrame:
        """An annotation of each of the tasks, by a worker drawn at random."""
        worker = self.rng.integers(self.n_workers, size=len(task))
        drawn = self.rng.random((len(task), 1))
        label = (drawn > self.cumulative[worker, self.truth[task], :-1]).sum(-1)
        return pd.DataFrame({"task": task, "worker": worker, "label": label})


@contextmanager
def watched() -> Any:
    """Note the iterations over the tasks that move, and the number of their rows."""
    found: list[tuple[int, int]] = []
    solution, solve = sparse_em.solution, em.solve

    def noted(model: Any, annotations: Any, moving: np.ndarray, *others: Any) -> Any:
        n_moving = np.count_nonzero(moving[annotations.task])

        def counted(*arguments: Any, **options: Any) -> Any:
            solved = solve(*arguments, **options)
            found.append((len(solved.history), n_moving))
            return solved

        em.solve = counted
        try:
            return solution(model, annotations, moving, *others)
        finally:
            em.solve = solve

    sparse_em.solution = noted
    try:
        yield found
    finally:
        sparse_em.solution = solution


def timed(do: Callable[[], Any]) -> tuple[Any, float]:
    """What comes back, and the seconds that it took."""
    begun = perf_counter()
    found = do()
    return found, perf_counter() - begun


if __name__ == "__main__":
    typer.run(main)
