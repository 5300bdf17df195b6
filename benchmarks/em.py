"""EM of Dawid–Skene against crowd-kit's: time per iteration, likelihood reached, and a whole fit from a CSV file."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import typer
from crowdkit.aggregation import DawidSkene
from support.data import accuracy, data_folder, read_annotations, read_gold, simulate_annotations, simulate_many
from support.report import Report
from support.timing import interleaved

import crowdppl as cp
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.em_climber import EMClimber
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.sources.memory import InMemory
from crowdppl.models import find_story

FRESH = Path(__file__).parent / "support" / "fresh.py"
ITERATIONS = 1_000  # enough for the slowest of the datasets
ROUNDING = 1e-7  # of float32
NO_PRIOR = {"diagonal": 1e-9, "off_diagonal": 1e-9, "truth_prior": cp.Prevalence(1e-9)}
AS_GIVEN = {"sweeps": 0, "constant_workers": "keep"}  # labels at the mode, of all annotations, as crowd-kit's
WITHOUT_STOP = em.EMSettings(tolerance=-1.0)


def main(repeats: int = 5, largest: bool = False, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        repeats: rounds that ours and crowd-kit's take turns in.
        largest: take 100,000,000 annotations too; it needs 8 GiB.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("EM of Dawid–Skene against crowd-kit")
    compare_speed(report, repeats)
    compare_sizes(report, repeats, largest=largest)
    compare_acceleration(report)
    compare_likelihood(report)
    compare_whole_fit(report, repeats)
    if write:
        report.write()


def compare_speed(report: Report, repeats: int) -> None:
    """Time of an iteration; crowd-kit's is the difference of two runs, so that neither start counts."""
    million = simulate_annotations(n_tasks=100_000, n_workers=1_000, n_classes=10, per_task=10)
    rows = [
        iteration_times("trec", read_annotations("trec"), repeats, iterations=(100, 10), target=30),
        iteration_times("simulated", million, repeats, iterations=(25, 3), target=25),
    ]
    report.table("Time per iteration", rows, absolute=["crowd-kit, ms", "crowdppl, ms"])


def iteration_times(
    name: str, frame: pd.DataFrame, repeats: int, iterations: tuple[int, int], target: float
) -> dict[str, object]:
    """Median seconds per iteration over the rounds, and the median of the rounds' ratios.

    Args:
        name: of the data.
        annotations: task, worker, label.
        repeats: rounds.
        iterations: to time in each round, ours and crowd-kit's.
        target: the ratio to reach.
    """
    ours, theirs = iterations
    seconds = interleaved(
        {
            "ours": steps_of(cp.Annotations.from_frame(frame), ours),
            "theirs, short": lambda: DawidSkene(1, tol=-np.inf).fit(frame),
            "theirs, long": lambda: DawidSkene(1 + theirs, tol=-np.inf).fit(frame),
        },
        repeats,
    )
    our_time = seconds["ours"] / ours
    their_time = (seconds["theirs, long"] - seconds["theirs, short"]) / theirs
    ratio = their_time / our_time
    return {
        "data": name,
        "annotations": len(frame),
        "classes": frame["label"].nunique(),
        "crowd-kit, ms": 1e3 * float(np.median(their_time)),
        "crowdppl, ms": 1e3 * float(np.median(our_time)),
        "times faster": float(np.median(ratio)),
        "from – to": f"{ratio.min():.1f} – {ratio.max():.1f}",
        "target": target,
        "reached": bool(np.median(ratio) >= target),
    }


def steps_of(annotations: cp.Annotations, iterations: int) -> Callable[[], object]:
    """A run of so many compiled plain iterations from EM's start, all at once or in whole chunks."""
    model = Model(find_story("dawid_skene"))
    start = em.init(model, annotations, jax.random.key(0))
    at_once = min(iterations, EMClimber.most)

    def run() -> em.EMState:
        state = start
        for _ in range(iterations // at_once):
            state, _ = advance(EMClimber(model, WITHOUT_STOP), InMemory(annotations), state, at_once)
        return jax.block_until_ready(state)

    run()  # compiles
    return run


def compare_sizes(report: Report, repeats: int, *, largest: bool) -> None:
    """How an iteration's time grows with the annotations, beside a copy of a gigabyte by NumPy in the same rounds."""
    source = np.ones(2**28, np.float32)
    target = np.empty_like(source)
    rows, found = [], []
    for n_classes, exponents in ((10, (7,)), (5, (5, 6, 7, 8) if largest else (5, 6, 7))):
        for exponent in exponents:
            n_rows, n_tasks = 10**exponent, 10 ** (exponent - 1)
            n_workers = n_tasks // 100
            iterations = 25 if exponent < 7 else 4 if exponent == 7 else 2
            run = steps_of(simulate_many(n_tasks, n_workers, n_classes), iterations)
            seconds = interleaved({"copy": lambda: np.copyto(target, source), "ours": run}, repeats)
            time = seconds["ours"] / iterations
            least = 4 * (3 * n_rows + n_classes * n_rows + n_classes * n_tasks)
            share = (least / time) / (2 * source.nbytes / seconds["copy"])
            rows.append(
                {
                    "annotations": n_rows,
                    "tasks": n_tasks,
                    "workers": n_workers,
                    "classes": n_classes,
                    "seconds": float(np.median(time)),
                    "ns an annotation": 1e9 * float(np.median(time)) / n_rows,
                    "share of the copy's bandwidth, %": 100 * float(np.median(share)),
                    "peak of the process, GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                }
            )
            if n_classes == 5:
                found.append((n_rows, float(np.median(time))))
    report.table("Time per iteration by size", rows, absolute=["seconds", "ns an annotation"])
    slope = float(np.polyfit(*np.log(np.array(found)).T, 1)[0])
    report.note(
        f"Of five classes, time grows with the annotations to the power of {slope:.2f}. The share: three columns of "
        "whole numbers, a row of K numbers for each annotation and one for each task, once each, over the time; a copy "
        "reads and writes a gigabyte. The peak is that of the process so far, the copy's two gigabytes included."
    )


def compare_acceleration(report: Report) -> None:
    """Iterations to the same tolerance, by plain steps and accelerated; each costs one gradient."""
    rows = []
    for name in ("rte", "trec", "product", "bluebird"):
        annotations = cp.Annotations.from_frame(read_annotations(name))
        with jax.enable_x64(True):
            plain, fast = (
                cp.fit(
                    "dawid_skene",
                    annotations,
                    **NO_PRIOR,
                    **AS_GIVEN,
                    accelerate=accelerate,
                    max_iterations=ITERATIONS,
                    tolerance=1e-12,
                    progress=False,
                )
                for accelerate in (False, True)
            )
        rows.append(
            {
                "data": name,
                "plain": len(plain.history) - 1,
                "accelerated": len(fast.history) - 1,
                "share, %": 100 * (len(fast.history) - 1) / (len(plain.history) - 1),
                "log-posterior, relative difference": f"{1 - fast.history.iloc[-1] / plain.history.iloc[-1]:+.1e}",
                "labels that differ": int((fast.labels["label"] != plain.labels["label"]).sum()),
            }
        )
    report.table("Iterations to a tolerance of 1e-12 in float64, without priors", rows)


def compare_likelihood(report: Report) -> None:
    """Log-likelihood and accuracy of both packages' maximum-likelihood solutions."""
    found = {name: likelihoods(name) for name in ("rte", "trec", "product", "bluebird")}
    report.table("Log-likelihood without priors, each stopping by itself", [row["stopped"] for row in found.values()])
    report.table(f"The same after {ITERATIONS:,} iterations of both", [row["endless"] for row in found.values()])
    report.note(
        f"By itself: crowd-kit with tol=1e-9, crowdppl in float64 (jax.enable_x64) with tolerance=1e-12, as in float32 "
        f"the changes of the last iterations are below rounding; each solution with its number of iterations. After "
        f"{ITERATIONS:,} iterations: crowdppl in float32. All solutions are scored by one function of the benchmark, "
        f"in float64; a difference under {ROUNDING:.0e} of the value counts as none. Accuracy is of the labels on gold "
        f"tasks, in percent."
    )


def likelihoods(name: str) -> dict[str, dict[str, object]]:
    """Fit a dataset by both packages, with and without their own rules to stop, and score the solutions."""
    frame, gold = read_annotations(name), read_gold(name)
    annotations = cp.Annotations.from_frame(frame)
    with jax.enable_x64(True):
        ours = cp.fit(
            "dawid_skene",
            annotations,
            **NO_PRIOR,
            **AS_GIVEN,
            max_iterations=ITERATIONS,
            tolerance=1e-12,
            progress=False,
        )
    settings = WITHOUT_STOP._replace(max_iterations=ITERATIONS)
    ours_endless = em.run(
        Model(find_story("dawid_skene"), NO_PRIOR), annotations, jax.random.key(0), settings, progress=False
    )
    theirs, theirs_endless = (DawidSkene(ITERATIONS, tol=tol).fit(frame) for tol in (1e-9, -np.inf))
    stopped = score_row(
        log_likelihood(annotations, *our_parameters(ours.outcome)),
        log_likelihood(annotations, *their_parameters(theirs, annotations)),
        (len(ours.history) - 1, len(theirs.loss_history_)),
    )
    endless = score_row(
        log_likelihood(annotations, *our_parameters(ours_endless)),
        log_likelihood(annotations, *their_parameters(theirs_endless, annotations)),
        (ITERATIONS, ITERATIONS),
    )
    accuracies = {
        "accuracy, crowd-kit": accuracy(theirs.probas_, gold),
        "accuracy, crowdppl": accuracy(ours.probabilities, gold),
    }
    return {"stopped": {"data": name, **stopped, **accuracies}, "endless": {"data": name, **endless}}


def score_row(ours: float, theirs: float, iterations: tuple[int, int]) -> dict[str, object]:
    """Two log-likelihoods side by side; ``iterations`` are ours and theirs."""
    return {
        "crowd-kit (iterations)": f"{theirs:,.4f} ({iterations[1]:,})",
        "crowdppl (iterations)": f"{ours:,.4f} ({iterations[0]:,})",
        "difference": f"{ours - theirs:+.1e}",
        "at least": ours >= theirs - ROUNDING * abs(theirs),
    }


def our_parameters(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Prevalence ``(K,)`` and confusion matrices ``(J, K, L)`` of EM's only draw."""
    return outcome.draws["prevalence"][0, 0], outcome.draws["confusion"][0, 0]


def their_parameters(fit: DawidSkene, annotations: cp.Annotations) -> tuple[np.ndarray, np.ndarray]:
    """The same of crowd-kit, which leaves out annotations that a worker never gave."""
    workers, classes = annotations.workers.to_index(), annotations.classes.to_index()
    cells = pd.MultiIndex.from_product([workers, classes])
    by_annotation = fit.errors_.reindex(index=cells, columns=classes, fill_value=0.0).to_numpy()
    tables = by_annotation.reshape(len(workers), len(classes), len(classes)).swapaxes(1, 2)
    return fit.priors_.reindex(classes).to_numpy(), tables


def log_likelihood(annotations: cp.Annotations, prevalence: np.ndarray, tables: np.ndarray) -> float:
    r""":math:`\sum_i \log \sum_k \rho_k \prod_{a \in i} \beta_{j_a}[k, y_a]` in float64, rows summing to one."""
    smallest = np.finfo(np.float64).tiny
    prevalence, tables = prevalence.astype(np.float64), tables.astype(np.float64)
    log_prevalence = np.log(np.maximum(prevalence / prevalence.sum(), smallest))
    totals = np.maximum(tables.sum(-1, keepdims=True), smallest)
    log_tables = np.log(np.maximum(tables / totals, smallest))
    scores = np.tile(log_prevalence, (annotations.n_tasks, 1))
    np.add.at(scores, annotations.task, log_tables[annotations.worker, :, annotations.label])
    return float(np.logaddexp.reduce(scores, axis=-1).sum())


def compare_whole_fit(report: Report, repeats: int) -> None:
    """From a CSV file to labels in processes that have just started, compilation included."""
    file = data_folder() / "rte" / "annotations.csv"
    found = [{package: fresh_fit(package, file) for package in ("crowdppl", "crowd-kit")} for _ in range(repeats)]
    rows = []
    for part in ("without imports", "with imports"):
        ours, theirs = (float(np.median([f[package][part] for f in found])) for package in ("crowdppl", "crowd-kit"))
        rows.append(
            {
                "time": part,
                "crowd-kit, s": theirs,
                "crowdppl, s": ours,
                "crowdppl / crowd-kit": ours / theirs,
                "at most 3 s": ours <= 3,
            }
        )
    title = "rte from CSV to labels in a fresh process, compilation included, the start of Python not"
    report.table(title, rows, absolute=["crowd-kit, s", "crowdppl, s"])


def fresh_fit(package: str, file: Path) -> dict[str, float]:
    """Seconds of a fit in a process of its own, with and without the imports, nothing compiled before."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, FRESH, package, file]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    typer.run(main)
