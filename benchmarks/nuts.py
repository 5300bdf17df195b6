"""NUTS on Dawid–Skene: effective samples on rte, beside the same model written with dense padding in plain NumPyro."""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import typer
from numpyro.contrib.funsor import config_enumerate
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, init_to_value
from support.data import data_folder, read_annotations
from support.report import Report
from support.timing import CompileClock, interleaved

import crowdppl as cp
from crowdppl.inference.densities.marginals import marginal_program
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.models import find_story

DIAGONAL, OFF_DIAGONAL = 2.0, 1.0  # of the tables' prior, on both sides


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
    dataset: str = "rte",
    chains: int = 2,
    warmup: int = 500,
    draws: int = 500,
    repeats: int = 3,
    write: bool = False,
) -> None:
    """Sample, and print what was found.

    Args:
        dataset: a folder of CROWDPPL_DATA.
        chains: run side by side, as far as there are cores.
        warmup: steps of adaptation.
        draws: kept in each chain.
        repeats: runs that both programs take turns in.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report(f"NUTS on {dataset}, {chains} chains, {warmup} + {draws}")
    answers = read_annotations(dataset)
    annotations = cp.Annotations.from_frame(answers)
    measure_fit(report, annotations, chains, warmup, draws)
    compare_programs(report, answers, annotations, chains, warmup, draws, repeats)
    if write:
        report.write()


def measure_fit(report: Report, annotations: cp.Annotations, chains: int, warmup: int, draws: int) -> None:
    """``cp.fit`` as a user calls it."""
    started = perf_counter()
    fit = cp.fit(
        "dawid_skene",
        annotations,
        method="nuts",
        chains=chains,
        warmup=warmup,
        draws=draws,
        diagonal=DIAGONAL,
        off_diagonal=OFF_DIAGONAL,
        progress=False,
    )
    seconds = perf_counter() - started
    row = {
        "fit, s": seconds,
        "smallest effective sample size": smallest_ess(fit.outcome.draws),
        "target": 400,
        "reached": smallest_ess(fit.outcome.draws) >= 400,
        "divergences": int(fit.outcome.stats["diverging"].sum()),
        "gradients a draw": float(fit.outcome.stats["n_steps"].mean()),
        "warnings": len(fit.warnings),
    }
    report.table('cp.fit("dawid_skene", …, method="nuts")', [row], absolute=["fit, s"])


def compare_programs(
    report: Report,
    answers: pd.DataFrame,
    annotations: cp.Annotations,
    chains: int,
    warmup: int,
    draws: int,
    repeats: int,
) -> None:
    """Our program and the padded one: same priors, start, seed, sampler and number of draws."""
    model = Model(find_story("dawid_skene"), {"diagonal": DIAGONAL, "off_diagonal": OFF_DIAGONAL})
    start = em.interior_solution(model, annotations, jax.random.key(0), em.EMSettings(tolerance=1e-5), progress=False)
    programs = {
        "crowdppl": (marginal_program(model), annotations),
        "padded": (config_enumerate(padded_dawid_skene), pad(answers, annotations)),
    }
    samplers = {name: sampler_of(program, start, chains, warmup, draws) for name, (program, _) in programs.items()}
    seconds = interleaved(
        {name: partial(run, samplers[name], data) for name, (_, data) in programs.items()}, repeats, CompileClock()
    )
    runs = {name: summary(sampler, seconds[name]) for name, sampler in samplers.items()}
    rows = [row_of(name, run, runs["padded"]) for name, run in runs.items()]
    absolute = ["in all, s", "without compiling, s", "s an effective sample", "… without compiling"]
    report.table("The same model by the same sampler from the same start, in one process", rows, absolute)
    report.note(
        "padded: tasks × positions, Categorical(confusion[worker, truth]) with the truth enumerated by NumPyro, as in "
        "NumPyro's examples/annotation.py. Seconds an effective sample are of the entry with the fewest of them. "
        "Without compiling: less the time of XLA's compiler, medians over the runs."
    )


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


def summary(sampler: MCMC, seconds: np.ndarray) -> Sampled:
    """What is known of the runs of a sampler.

    Args:
        sampler: after its last run, which drew what the others drew.
        seconds: (runs, 2), in all and compiling.
    """
    steps = int(sampler.get_extra_fields()["num_steps"].sum())
    ess = smallest_ess(sampler.get_samples(group_by_chain=True))
    total, compiling = seconds.T
    return Sampled(float(np.median(total)), float(np.median(total - compiling)), ess, steps)


def smallest_ess(draws: dict[str, Any]) -> float:
    """The smallest effective sample size over all entries of the prevalence and the workers' tables.

    Args:
        draws: by site, (chain, draw, ...).
    """
    return min(float(effective_sample_size(np.asarray(draws[site])).min()) for site in ("prevalence", "confusion"))


def pad(answers: pd.DataFrame, annotations: cp.Annotations) -> Padded:
    """Each task's annotations in a row of their own, as long as the longest."""
    row = annotations.tasks.to_index().get_indexer(answers["task"])
    position = answers.groupby("task").cumcount().to_numpy()
    shape = (annotations.n_tasks, int(position.max()) + 1)
    worker, label, real = np.zeros(shape, int), np.zeros(shape, int), np.zeros(shape, bool)
    worker[row, position] = annotations.workers.to_index().get_indexer(answers["worker"])
    label[row, position] = annotations.classes.to_index().get_indexer(answers["label"])
    real[row, position] = True
    return Padded(worker, label, real, annotations.n_workers, annotations.n_classes)


def padded_dawid_skene(answers: Padded) -> None:
    """Dawid–Skene over tasks × positions, its truth left to NumPyro's enumeration."""
    n_tasks, n_positions = answers.label.shape
    prior = jnp.where(jnp.eye(answers.n_classes, dtype=bool), DIAGONAL, OFF_DIAGONAL)
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.ones(answers.n_classes)))
    with (
        numpyro.plate("worker", answers.n_workers, dim=-2),
        numpyro.plate("class", answers.n_classes, dim=-1),
    ):
        confusion = numpyro.sample("confusion", dist.Dirichlet(prior))
    with numpyro.plate("task", n_tasks, dim=-2):
        truth = numpyro.sample("truth", dist.Categorical(prevalence))
        with numpyro.plate("position", n_positions, dim=-1), numpyro.handlers.mask(mask=answers.real):
            table = confusion[answers.worker, truth]
            numpyro.sample("annotation", dist.Categorical(table), obs=answers.label)


if __name__ == "__main__":
    typer.run(main)
