"""Posterior predictive checks: how often they reject the story that drew the annotations, and another story."""

import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
import typer
from jax import Array
from scipy.stats import binomtest
from support.report import Report

import crowdppl as cp
from crowdppl.inference.checks.predictive import check

LEVEL = 0.05
SIZES: dict[str, Any] = {"n_tasks": 200, "n_workers": 15, "annotations_per_task": 6, "gold": 0.0}
LARGER = SIZES | {"n_tasks": 400, "annotations_per_task": 8}
ENGINES: dict[str, dict[str, Any]] = {
    "em": {},
    "nuts": {"chains": 1, "warmup": 150, "draws": 50, "max_tree_depth": 7},
}
COPYISTS = (1, 2, 3, 4)
DIAGONAL = 6.0  # of Dawid-Skene's prior, to simulate and to fit

Data = tuple[str, cp.Annotations, dict[str, Any]]  # the story to fit, the annotations, hyperparameters


def main(seeds: int = 20, write: bool = False) -> None:
    """Check fits of each story's own data by each engine, and Dawid-Skene's fits of data with correlated mistakes.

    Args:
        seeds: data sets of each kind.
        write: refresh this section of RESULTS.md.
    """
    report = Report(f"Posterior predictive checks, {seeds} data sets of each kind")
    with tempfile.TemporaryDirectory() as cache:  # data sets of a kind have the same shapes: their programs are one
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        rows = correlated(range(seeds))
        report.table(f"Dawid-Skene on correlated mistakes: rejected at {LEVEL:.0%}, of {seeds}, by nuts", rows)
        for engine in ENGINES:
            rows = []
            for name, make in stories().items():
                p_values = checked(make, engine, range(seeds), ["posterior"])["posterior"]
                rows.append({"story": name} | rejections(p_values) | {"as its level or rarer": at_most_level(p_values)})
            report.table(f"Right stories: rejected at {LEVEL:.0%}, of {seeds}, by {engine}", rows)
    report.note(
        f"Right stories: data sets of {SIZES['n_tasks']} tasks with {SIZES['annotations_per_task']} annotations each, "
        f"of {SIZES['n_workers']} workers, three classes (two for two_coin), with parameters of the story's prior; "
        "diagonal 6 where workers have confusion matrices. NUTS: one chain, 150 warmup, 50 draws. As its level or "
        "rarer: a binomial test of the most rejected discrepancy against 5 %, adjusted for their number, keeps it at "
        f"1 %. Copyists: of Dawid-Skene's annotations, those of {len(COPYISTS)} workers are copied from another's "
        "where both annotated. Tasks of different difficulty: annotations of glad, log-difficulty with deviation 1.5, "
        "abilities 0.5. Any: the smallest p-value is under 5 % divided by the number of discrepancies."
    )
    if write:
        report.write()


def correlated(seeds: range) -> list[dict[str, Any]]:
    """How often Dawid-Skene is rejected where mistakes are correlated, by the size of the data."""
    rows = []
    for name, make in {"copyists": copyists, "tasks of different difficulty": difficulties}.items():
        for sizes in (LARGER, SIZES):
            found = checked(partial(make, sizes=sizes), "nuts", seeds, ["posterior", "prior"])
            for truth, p_values in found.items():
                what = {
                    "annotations of": name,
                    "tasks × annotations": f"{sizes['n_tasks']} × {sizes['annotations_per_task']}",
                }
                any_of = int((p_values < LEVEL / p_values.shape[1]).any(axis=1).sum())
                rows.append(what | {"true labels of the": truth} | rejections(p_values) | {"any": any_of})
    return rows


def checked(
    make: Callable[..., Data], engine: str, seeds: range, truths: list[Literal["posterior", "prior"]]
) -> dict[str, pd.DataFrame]:
    """p-values, seeds × discrepancies, by where the replicates' true labels are from."""
    rows: dict[str, dict[int, pd.Series]] = {truth: {} for truth in truths}
    for seed in seeds:
        story, annotations, hyperparameters = make(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cp.ConvergenceWarning)  # short chains are enough for replicates
            fit = cp.fit(
                story, annotations, method=engine, seed=seed, progress=False, **ENGINES[engine], **hyperparameters
            )
        for truth in truths:
            rows[truth][seed] = check(fit, truth=truth, seed=seed).table["p_value"]
    return {truth: pd.DataFrame(of_truth).T for truth, of_truth in rows.items()}


def rejections(p_values: pd.DataFrame) -> dict[str, int]:
    """How many data sets each discrepancy rejects."""
    return {name: int((p_values[name] < LEVEL).sum()) for name in p_values}


def at_most_level(p_values: pd.DataFrame) -> bool:
    """Whether the most rejected discrepancy rejects no more than by chance."""
    most = max(rejections(p_values).values())
    return bool(binomtest(most, len(p_values), LEVEL, "greater").pvalue * p_values.shape[1] > 0.01)


def stories() -> dict[str, Callable[..., Data]]:
    """Data sets of the five stories by seed, with priors that keep the classes apart."""
    logits = np.random.default_rng(0).normal(0, 1.5, (SIZES["n_tasks"], 3))
    return {
        "two_coin": own("two_coin", 2, right=6.0, wrong=2.0),
        "dawid_skene": own("dawid_skene", 3, diagonal=DIAGONAL),
        "difficulty": own("difficulty", 3, features=logits, truth_prior=cp.Classifier(_as_they_are)),
        "annotator_groups": own("annotator_groups", 3, membership="worker", groups=2, diagonal=DIAGONAL),
        "common_individual": own("common_individual", 3, diagonal=DIAGONAL),
    }


def own(story: str, n_classes: int, features: np.ndarray | None = None, **options: Any) -> Callable[..., Data]:
    """Data sets that a story writes itself."""

    def make(seed: int, sizes: Mapping[str, Any] = SIZES) -> Data:
        simulated, _ = cp.simulate(story, seed=seed, n_classes=n_classes, features=features, **sizes, **options)
        return story, simulated, options

    return make


def copyists(seed: int, sizes: Mapping[str, Any]) -> Data:
    """Annotations of Dawid-Skene, of which some workers copy those of worker 0."""
    annotations = own("dawid_skene", 3, diagonal=DIAGONAL)(seed, sizes)[1]
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task)
    label = np.array(annotations.label)
    copied = np.full(annotations.n_tasks, -1)
    copied[task[worker == 0]] = label[worker == 0]
    copies = np.isin(worker, COPYISTS) & (copied[task] >= 0)
    return "dawid_skene", annotations.replace(label=np.where(copies, copied[task], label)), {"diagonal": DIAGONAL}


def difficulties(seed: int, sizes: Mapping[str, Any]) -> Data:
    """Annotations to tasks of different difficulty."""
    spread = {"ability_scale": 0.5, "difficulty_scale": 1.5}
    simulated, _ = cp.simulate("glad", seed=seed, n_classes=3, **sizes, **spread)
    return "dawid_skene", simulated, {"diagonal": DIAGONAL}


def _as_they_are(x: Array) -> Array:
    """A classifier whose logits are the features."""
    return x


if __name__ == "__main__":
    typer.run(main)
