"""EM over partitions of Dask and Spark on this machine, against crowdppl's own streaming of the same file."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np
import typer
from streaming import CLASSES, n_workers, simulate
from support.report import Report

import crowdppl as cp
from crowdppl.data.partitions import values_of
from crowdppl.data.store import open_store
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.ready_programs import use_program_cache
from crowdppl.inference.engines import em
from crowdppl.inference.engines.settings import EMSettings
from crowdppl.inference.sources.on_disk import Files, suited_files
from crowdppl.inference.sources.partitioned import Partitioned, packed_by_its_engine
from crowdppl.models import find_story

MOST = 2.0  # times the iteration of our own streaming
COMPILING = 2  # passes of a fit that are not counted


def main(
    rows: str = "2000000", iterations: int = 6, rounds: int = 3, engines: str = "Dask,Spark", write: bool = False
) -> None:
    """Measure, and print what was found.

    Args:
        rows: the number of annotations.
        iterations: of EM, in each fit.
        rounds: fits of each, in turn.
        engines: Dask, Spark or both, separated by commas.
        write: refresh this section of RESULTS.md.
    """
    report, n_rows = Report("EM over partitions of Dask and Spark, against streaming one file"), int(float(rows))
    model = Model(find_story("dawid_skene"))
    use_program_cache()
    with tempfile.TemporaryDirectory(dir=os.environ.get("CROWDPPL_SCRATCH")) as folder:
        file = Path(folder) / "annotations.parquet"
        simulate(file, n_rows)
        sources, prepared = {}, {}
        makers = {"streaming": streamed, "Dask": of_dask, "Spark": of_spark}
        for name in ("streaming", *engines.split(",")):
            begun = perf_counter()
            try:
                sources[name] = makers[name](model, file)
            except ImportError as error:
                report.note(f"{name} is left out: {error}.")
            prepared[name] = perf_counter() - begun
        passes: dict[str, list[float]] = {name: [] for name in sources}
        last, empty = {}, {name: median(empty_passes(source)) for name, source in sources.items()}
        for _ in range(rounds):
            for name, source in sources.items():
                seconds, last[name] = fitted(model, source, iterations)
                passes[name].append(seconds)
    table: list[dict[str, object]] = []
    for name in passes:
        ratios = [own / ours for own, ours in zip(passes[name], passes["streaming"], strict=True)]
        table.append(
            {
                "engine": name,
                "batches": sources[name].n_batches,
                "prepare, s": prepared[name],
                "iteration, s": median(passes[name]),
                "times the time": median(ratios),
                "from – to": f"{min(ratios):.2f} – {max(ratios):.2f}",
                f"at most {MOST:g}": median(ratios) <= MOST,
                "an empty pass, times": empty[name] / median(passes["streaming"]),
                "prepare, times": prepared[name] / prepared["streaming"],
                "log-posterior, relative difference": f"{abs(last[name] / last['streaming'] - 1):.1e}",
            }
        )
    title = f"Dawid–Skene, {n_rows:,} annotations, {n_workers(n_rows):,} workers, {CLASSES} classes"
    report.table(title, table, absolute=["prepare, s", "iteration, s"])
    report.note(
        f"Each row is {rounds} fits of {iterations} iterations, in turn; an iteration is the median of a fit's passes "
        f"after the first {COMPILING}, in single precision; an empty pass counts the batches. Dask computes with its "
        f"threads, Spark in local mode with {os.cpu_count()} threads, each with a Python process; the preparation of "
        "Spark starts it."
    )
    if write:
        report.write()


def streamed(model: Model, file: Path) -> Files:
    """The file, coded and sorted in a folder, in chunks."""
    scan = cp.scan(file)
    return suited_files(model, open_store(scan), scan.memory, partial(em.bytes_needed, model))


def of_dask(model: Model, file: Path) -> Files:
    """The file as a Dask frame, shuffled and packed."""
    import dask.dataframe as frames

    frame = frames.read_parquet(file).repartition(npartitions=os.cpu_count())
    return Partitioned(packed_by_its_engine(cp.scan(frame)), model)


def of_spark(model: Model, file: Path) -> Files:
    """The file as a Spark frame, shuffled and packed."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {"spark.ui.enabled": "false", "spark.driver.memory": "3g", "spark.log.level": "OFF"}
    options |= {"spark.ui.showConsoleProgress": "false"}
    session = SparkSession.builder.master(f"local[{os.cpu_count()},4]").config(map=options).getOrCreate()
    return Partitioned(packed_by_its_engine(cp.scan(session.read.parquet(str(file)))), model)


def empty_passes(source: Files) -> list[float]:
    """Seconds of passes in which the engine only counts the packed batches; 0 without an engine."""
    if not isinstance(source, Partitioned):
        return [0.0]
    times = [perf_counter()]
    for _ in range(3):
        values_of(source.store.partitions.select(("key",)), n_batches)
        times.append(perf_counter())
    return [later - sooner for sooner, later in pairwise(times)]


def n_batches(rows: Iterator[Any]) -> int:
    """The rows of a partition."""
    return sum(part.num_rows for part in rows)


def fitted(model: Model, source: Files, iterations: int) -> tuple[float, float]:
    """The median seconds of a pass, and the log-posterior at the end."""
    times: list[float] = [perf_counter()]
    after: Callable[[object], None] = lambda state: times.append(perf_counter())  # noqa: E731
    settings = EMSettings(max_iterations=iterations, tolerance=-1.0)
    outcome = em.run(model, source, jax.random.key(0), settings, progress=False, after=after)
    return float(np.median([b - a for a, b in pairwise(times)][COMPILING:])), float(outcome.history[-1])


if __name__ == "__main__":
    typer.run(main)
