"""NUTS: Dawid–Skene beside a padded program in plain NumPyro, and five stories on music and rte."""

import os
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import typer
from numpyro.contrib.funsor import config_enumerate
from numpyro.infer import MCMC, NUTS, init_to_value
from support.data import data_folder, read_annotations
from support.report import Report
from support.timing import CompileClock, interleaved

import crowdppl as cp
from crowdppl.data.padding import padded
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.padded_sites import grown
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines import em, nuts
from crowdppl.inference.engines.settings import NUTSSettings
from crowdppl.inference.findings.convergence import convergence
from crowdppl.inference.findings.of_draws import RHAT_LIMIT, worst_rhat
from crowdppl.inference.findings.of_draws import smallest_ess as smallest_of_bulk_and_tail
from crowdppl.models import find_story

DIAGONAL, OFF_DIAGONAL = 2.0, 1.0  # concentrations of right and of wrong annotations, on both sides
ON = [(story, "music") for story in ("dawid_skene", "difficulty", "annotator_groups", "common_individual")]
ON += [("two_coin", "rte")]  # it is of two classes
PADDED = (
    "padded: tasks × positions, Categorical(confusion[worker, truth]) with the truth enumerated by NumPyro, as in "
    "NumPyro's examples/annotation.py, sampled by NumPyro's MCMC with its defaults. Seconds an effective sample are of "
    "the entry with the fewest of them, in the bulk or the tails. Without compiling: less the time of XLA's compiler, "
    "medians over the runs."
)


numpyro.set_host_device_count(os.cpu_count() or 1)  # so that the peer's chains too run side by side on a CPU


class Padded(NamedTuple):
    """Annotations as tasks × positions; a task with fewer annotations than the others has masked positions."""

    worker: np.ndarray  # (N, P)
    label: np.ndarray  # (N, P)
    real: np.ndarray  # (N, P)
    n_workers: int
    n_classes: int


class Sampled(NamedTuple):
    """Runs of NUTS: how long it took, and how many effective samples its worst entry has."""

    total: float  # seconds, median over the runs
    running: float  # seconds without those of the compiler
    ess: float
    steps: int  # gradients of all draws


def main(
    datasets: str = "rte,music",
    chains: int = 2,
    warmup: int = 500,
    draws: int = 500,
    repeats: int = 3,
    stories: bool = True,
    write: bool = False,
) -> None:
    """Sample, and print what was found.

    Args:
        datasets: folders of CROWDPPL_DATA on which Dawid–Skene is compared with the peer.
        chains: run side by side, as far as there are cores.
        warmup: steps of adaptation.
        draws: kept in each chain.
        repeats: runs that both programs take turns in.
        stories: whether to sample every story with 4 chains of 1,000 + 1,000.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("NUTS")
    for dataset in datasets.split(","):
        frame = read_annotations(dataset)
        compare_programs(report, dataset, frame, cp.Annotations.from_frame(frame), chains, warmup, draws, repeats)
    report.note(PADDED)
    if stories:
        measure_stories(report)
    if jax.default_backend() == "gpu":
        measure_vectorised(report)
    if write:
        report.write()


def measure_stories(report: Report) -> None:
    """``cp.fit`` as a user calls it, with 4 chains of 1,000 + 1,000."""
    rows = [row_of_fit(story, dataset, sample(story, dataset, chains=4)) for story, dataset in ON]
    report.table("cp.fit(…, method='nuts'), 4 chains of 1,000 + 1,000 after EM", rows, absolute=["s", "s of processor"])
    report.note(
        "Within 5 minutes: from the call to the draws, with compilation, by the clock of this machine. R̂ is the "
        "rank-normalised split one, its largest value over all parameters; ESS is the smallest of bulk and tail."
    )


def measure_vectorised(report: Report) -> None:
    """16 chains as one program on the GPU."""
    rows = [
        row_of_fit("dawid_skene", dataset, sample("dawid_skene", dataset, chains=16)) for dataset in ("rte", "music")
    ]
    report.table("16 vectorised chains of 1,000 + 1,000", rows, absolute=["s", "s of processor"])


def sample(story: str, dataset: str, chains: int) -> tuple[cp.Fit, float, float]:
    """A fit, the seconds that it took, and those of the processor."""
    annotations = cp.Annotations.from_frame(read_annotations(dataset))
    started, busy = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.ConvergenceWarning)  # R̂ and ESS are in the table
        fit = cp.fit(story, annotations, method="nuts", chains=chains, warmup=1000, draws=1000, progress=False)
    return fit, perf_counter() - started, process_time() - busy


def row_of_fit(story: str, dataset: str, sampled: tuple[cp.Fit, float, float]) -> dict[str, object]:
    """A row of the tables of fits."""
    fit, seconds, busy = sampled
    stats, rhat = fit.outcome.stats, worst_rhat(fit.draws)
    return {
        "story": story,
        "dataset": dataset,
        "s": seconds,
        "s of processor": busy,
        "within 5 minutes": seconds <= 300,
        "largest R̂": f"{rhat[0]:.4f}",
        "under 1.01": rhat[0] < RHAT_LIMIT,
        "smallest ESS": round(smallest_of_bulk_and_tail(fit.draws)[0]),
        "divergences": int(stats["diverging"].sum()),
        "gradients a draw": float(stats["n_steps"].mean()),
    }


def compare_programs(
    report: Report,
    dataset: str,
    frame: pd.DataFrame,
    annotations: cp.Annotations,
    chains: int,
    warmup: int,
    draws: int,
    repeats: int,
) -> None:
    """Our engine and the padded program: same priors, start, sampler and numbers of chains and draws."""
    model = Model(find_story("dawid_skene"), {"diagonal": DIAGONAL, "off_diagonal": OFF_DIAGONAL})
    of_em = em.EMSettings(tolerance=1e-5)
    start = em.solve(model, annotations, jax.random.key(0), of_em, progress=False).parameters
    names = ("crowdppl", "padded")
    peer = sampler_of(config_enumerate(padded_dawid_skene), start, chains, warmup, draws)
    tables, runs = pad(frame, annotations), {}
    seen = jax.tree.map(jnp.asarray, padded(annotations, fine=True))  # as cp.fit samples it
    begin = nuts.start_at(model, seen, grown(start, parameter_dims(model, annotations), seen))
    settings = NUTSSettings(chains, warmup, draws)

    def ours() -> None:
        rows = nuts.sample_chains(model, begin, jax.random.split(jax.random.key(0), chains), settings)
        real = {
            "prevalence": rows.draws["prevalence"],
            "confusion": rows.draws["confusion"][:, :, : annotations.n_workers],
        }
        runs["crowdppl"] = real, int(rows.stats["n_steps"].sum())

    def theirs() -> None:
        run(peer, tables)
        runs["padded"] = peer.get_samples(group_by_chain=True), int(peer.get_extra_fields()["num_steps"].sum())

    seconds = interleaved(dict(zip(names, (ours, theirs), strict=True)), repeats, CompileClock())
    found = {name: summary(*runs[name], seconds[name]) for name in names}
    rows = [row_of(name, found[name], found["padded"]) for name in names]
    absolute = ["in all, s", "without compiling, s", "s an effective sample", "… without compiling"]
    report.table(f"Dawid–Skene on {dataset}, {chains} chains of {warmup} + {draws}, in one process", rows, absolute)


def row_of(name: str, run: Sampled, peer: Sampled) -> dict[str, object]:
    """A row of the comparison."""
    return {
        "program": name,
        "in all, s": run.total,
        "without compiling, s": run.running,
        "gradients": run.steps,
        "smallest effective sample size": run.ess,
        "s an effective sample": f"{run.total / run.ess:.4f}",
        "… without compiling": f"{run.running / run.ess:.4f}",
        "faster an effective sample": (peer.total / peer.ess) / (run.total / run.ess),
        "faster without compiling": (peer.running / peer.ess) / (run.running / run.ess),
        "faster per gradient": (peer.running / peer.steps) / (run.running / run.steps),
    }


def sampler_of(program: Callable[..., None], start: dict[str, Any], chains: int, warmup: int, draws: int) -> MCMC:
    """NUTS from one start, with NumPyro's defaults."""
    parallel = jax.default_backend() == "cpu" and jax.local_device_count() >= chains
    return MCMC(
        NUTS(program, init_strategy=init_to_value(values=start)),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="parallel" if parallel else "vectorized",
        progress_bar=False,
    )


def run(sampler: MCMC, data: Any) -> None:
    """Sample with a fixed seed; NumPyro compiles the chains anew each time."""
    sampler.run(jax.random.key(0), data, extra_fields=("num_steps",))
    jax.block_until_ready(sampler.get_samples())


def summary(draws: dict[str, Any], steps: int, seconds: np.ndarray) -> Sampled:
    """What is known of the runs of a sampler.

    Args:
        draws: by site, of the last run, which drew what the others drew.
        steps: gradients of these draws.
        seconds: (runs, 2), in all and compiling.
    """
    total, compiling = seconds.T
    return Sampled(float(np.median(total)), float(np.median(total - compiling)), smallest_ess(draws), steps)


def smallest_ess(draws: dict[str, Any]) -> float:
    """The smallest effective sample size, of the bulk or the tails, of all of the prevalence and the confusions.

    Args:
        draws: by site, (chain, draw, ...).
    """
    sizes = []
    for site in ("prevalence", "confusion"):
        values = np.asarray(draws[site], float)
        found = convergence(np.moveaxis(values.reshape(*values.shape[:2], -1), -1, 0))
        sizes += [np.nanmin(found.bulk_ess), np.nanmin(found.tail_ess)]
    return float(min(sizes))


def pad(frame: pd.DataFrame, annotations: cp.Annotations) -> Padded:
    """Each task's annotations in a row of their own, as long as the longest."""
    row = annotations.tasks.to_index().get_indexer(frame["task"])
    position = frame.groupby("task").cumcount().to_numpy()
    shape = (annotations.n_tasks, int(position.max()) + 1)
    worker, label, real = np.zeros(shape, int), np.zeros(shape, int), np.zeros(shape, bool)
    worker[row, position] = annotations.workers.to_index().get_indexer(frame["worker"])
    label[row, position] = annotations.classes.to_index().get_indexer(frame["label"])
    real[row, position] = True
    return Padded(worker, label, real, annotations.n_workers, annotations.n_classes)


def padded_dawid_skene(padded: Padded) -> None:
    """Dawid–Skene over tasks × positions, its truth left to NumPyro's enumeration."""
    n_tasks, n_positions = padded.label.shape
    prior = jnp.where(jnp.eye(padded.n_classes, dtype=bool), DIAGONAL, OFF_DIAGONAL)
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.ones(padded.n_classes)))
    with (
        numpyro.plate("worker", padded.n_workers, dim=-2),
        numpyro.plate("class", padded.n_classes, dim=-1),
    ):
        confusion = numpyro.sample("confusion", dist.Dirichlet(prior))
    with numpyro.plate("task", n_tasks, dim=-2):
        truth = numpyro.sample("truth", dist.Categorical(prevalence))
        with numpyro.plate("position", n_positions, dim=-1), numpyro.handlers.mask(mask=padded.real):
            rows = confusion[padded.worker, truth]
            numpyro.sample("annotation", dist.Categorical(rows), obs=padded.label)


if __name__ == "__main__":
    typer.run(main)
