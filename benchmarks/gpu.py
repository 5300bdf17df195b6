"""EM, SVI and NUTS on a GPU: absolute times, which count there, beside those of the processor of the same machine."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.data.annotations import Annotations
from crowdppl.data.ids import Ids
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.em_climber import EMClimber
from crowdppl.inference.findings.convergence import convergence
from crowdppl.inference.sources.memory import InMemory
from crowdppl.models import find_story

WITHOUT_STOP = em.EMSettings(tolerance=-1.0)


def main(rows: int = 10_000_000, chains: int = 16, seconds: bool = False, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        rows: annotations of the largest crowd but one, which is ten times as large.
        chains: of NUTS, vectorised.
        seconds: print those of fits, wherever JAX runs, and nothing else.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    if seconds:
        print(json.dumps(seconds_of_fits()))
        return
    if jax.default_backend() != "gpu":
        print("skipped: JAX sees no GPU")
        return
    data_folder()
    report = Report(f"On a GPU: {jax.devices()[0].device_kind}")
    sizes = [rows // 100, rows // 10, rows, 10 * rows]
    report.table("EM of Dawid–Skene, one iteration", [iteration(size, n_classes=10) for size in sizes])
    crowds = {"rte": cp.load_dataset("rte").without_gold(), "simulated, 10 classes": simulated(100_000, 10)}
    found = [{"crowd": name, **nuts(annotations, chains)} for name, annotations in crowds.items()]
    report.table(f"NUTS of Dawid–Skene, {chains} vectorised chains, 500 + 500", found)
    report.table("Whole fits without compiling", beside_the_processor())
    report.note(
        "Each is the second fit of a process, with another seed; the processor's are of another process on the same "
        "machine."
    )
    if write:
        report.write()


def iteration(rows: int, n_classes: int) -> dict[str, object]:
    """Milliseconds of an iteration beside those of a copy of what it has to read and write at the least."""
    annotations = jax.device_put(simulated(rows, n_classes))
    model = Model(find_story("dawid_skene"))
    start = em.init(model, annotations, jax.random.key(0))

    def steps() -> object:
        return advance(EMClimber(model, WITHOUT_STOP), InMemory(annotations), start, EMClimber.most)

    seconds = median_seconds(steps) / EMClimber.most
    least = 4 * (3 * rows + 2 * rows * n_classes + 2 * annotations.n_tasks * n_classes)
    block = jnp.zeros(least // 8, jnp.float32)
    copy = median_seconds(jax.jit(lambda: block + 1))
    return {
        "annotations": f"{rows:,}",
        "tasks": f"{annotations.n_tasks:,}",
        "workers": f"{annotations.n_workers:,}",
        "classes": n_classes,
        "ms an iteration": f"{1e3 * seconds:.2f}",
        "target": "≤ 10 ms" if rows == 10_000_000 else "",
        "times a copy of the bytes it needs": f"{seconds / copy:.1f}",
    }


def simulated(rows: int, n_classes: int, per_task: int = 10) -> Annotations:
    """Annotations of a crowd that is right seven times in ten; a worker for a thousand rows."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers = rows // per_task, max(rows // 1_000, 10)
    truth = rng.integers(n_classes, size=n_tasks, dtype=np.int32)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    right = rng.random(rows) < 0.7
    label = np.where(right, truth[task], rng.integers(n_classes, size=rows)).astype(np.int32)
    worker = rng.integers(n_workers, size=rows, dtype=np.int32)
    ids = {name: Ids.range(size) for name, size in (("tasks", n_tasks), ("workers", n_workers), ("classes", n_classes))}
    return Annotations(task, worker, label, None, None, None, None, **ids)


def nuts(annotations: Annotations, chains: int) -> dict[str, object]:
    """Seconds of a second run, in which nothing is compiled, and how well the chains mix."""
    options = {"method": "nuts", "chains": chains, "warmup": 500, "draws": 500, "progress": False}
    cp.fit("dawid_skene", annotations, **options)
    began = perf_counter()
    fit = cp.fit("dawid_skene", annotations, seed=1, **options)
    seconds = perf_counter() - began
    draws = fit.outcome.draws["prevalence"]
    by_entry = np.concatenate([values.reshape(*values.shape[:2], -1) for values in fit.outcome.draws.values()], -1)
    mixing = convergence(np.moveaxis(by_entry, -1, 0))
    least = float(np.nanmin(mixing.bulk_ess))
    return {
        "annotations": f"{annotations.n_rows:,}",
        "seconds, without compiling": f"{seconds:.1f}",
        "draws": f"{draws.shape[0] * draws.shape[1]:,}",
        "least bulk ESS": f"{least:,.0f}",
        "ms per effective sample": f"{1e3 * seconds / least:.1f}",
        "largest R̂": f"{float(np.nanmax(mixing.rhat)):.3f}",
    }


def beside_the_processor() -> list[dict[str, object]]:
    """Seconds of fits on the GPU, and on the processor in a process that sees no other device."""
    command = [sys.executable, __file__, "--seconds"]
    done = subprocess.run(
        command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, check=True, capture_output=True, text=True
    )
    processor = json.loads(done.stdout.splitlines()[-1])
    return [
        {"fit": name, "GPU, s": f"{seconds:.2f}", "processor, s": f"{processor[name]:.2f}"}
        for name, seconds in seconds_of_fits().items()
    ]


def seconds_of_fits() -> dict[str, float]:
    """Seconds of a second fit, in which nothing is compiled, by what is fitted."""
    trec, large = cp.load_dataset("trec").without_gold(), simulated(1_000_000, 10)
    rng = np.random.default_rng(0)
    tasks = simulated(200_000, 10)
    with_features = tasks.replace(features=rng.normal(size=(tasks.n_tasks, 512)).astype(np.float32))
    fits = {
        "EM, trec": (trec, {}),
        "EM, 1,000,000 annotations": (large, {}),
        "SVI, trec": (trec, {"method": "svi"}),
        "SVI, 200,000 annotations": (tasks, {"method": "svi"}),
        "EM with a network, 20,000 tasks with 512 features": (
            with_features,
            {"classifier": "mlp", "epochs": 5},
        ),
    }
    found = {}
    for name, (annotations, options) in fits.items():
        for seed in range(2):
            began = perf_counter()
            cp.fit("dawid_skene", annotations, seed=seed, progress=False, **options)
            found[name] = perf_counter() - began
    return found


def median_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Median seconds of runs, the first one aside."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        began = perf_counter()
        jax.block_until_ready(run())
        times.append(perf_counter() - began)
    return float(np.median(times))


if __name__ == "__main__":
    typer.run(main)
