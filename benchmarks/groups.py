"""annotator_groups without worker names, for a hundred to a million annotators: accuracy, time and memory of a fit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import typer
from support.memory import held_bytes
from support.report import Report
from support.seeds import majority, target, with_error
from support.timing import interleaved

import crowdppl as cp
from crowdppl.data.setups import three_gaussians
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines import epochs as training
from crowdppl.inference.engines import minibatches as batches
from crowdppl.models import Classifier, find_story

STORY = "annotator_groups"
NETWORK = Classifier("mlp", hidden=(32,), dropout=0.0)
WITH_DROPOUT = Classifier("mlp", hidden=(32,))
CROWDS = (100, 500, 1_500, 3_500, 6_000, 10_000, 1_000_000)
PAPER = (90.53, 91.07, 91.66, 90.45, 90.26, 90.46, np.nan)  # CMM at each of them
BATCH = 64  # tasks
BEHIND = 4.5  # points of accuracy at the most
FLAT = 1.2  # times what a hundred annotators take

TRUTH, VOTES, ANSWER, SHARED = "truth known", "majority vote, then train", "truth='answer'", "truth='shared'"
DROPOUT = "truth='answer', dropout 0.5"


def main(seeds: int = 5, repeats: int = 15, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        seeds: data sets for each number of annotators.
        repeats: rounds of timing that the numbers of annotators take turns in.
        write: refresh this section of RESULTS.md.
    """
    report = Report("Groups of nameless annotators: three Gaussians, five annotations a task, a network of 32 units")
    found = {n_workers: accuracies(n_workers, seeds) for n_workers in CROWDS}
    report.table(f"Test accuracy in percent, means of {seeds} data sets ± standard errors", accuracy_rows(found))
    report.note(
        "One setting for all: the defaults of annotator_groups and of EM, and a network without dropout, chosen on "
        "these data; the last column but one is the network's default. "
        "With truth='answer' the truth is summed out of each annotation by itself, as in the paper; with "
        "truth='shared' a task's annotations have one truth. The paper's truth known reaches 94.75."
    )
    report.table(f"Points behind the known truth, at most {BEHIND}", target_rows(found))
    costs = cost_rows(repeats)
    report.table("Cost with truth='answer', and its ratio to that of a hundred annotators", costs, absolute=["fit, ms"])
    report.note(
        "Time: of a fit that is compiled, median over the rounds. Memory: of the compiled epoch, what goes in, what "
        f"comes out and what it needs between, by XLA's own analysis. Flat: both at most {FLAT} times as much."
    )
    if write:
        report.write()


def accuracies(n_workers: int, seeds: int) -> dict[str, np.ndarray]:
    """Test accuracy of each way to train, for each data set."""
    found: dict[str, list[float]] = {way: [] for way in (TRUTH, VOTES, ANSWER, SHARED, DROPOUT)}
    for seed in range(seeds):
        counts, x, y = three_gaussians(n_workers, seed, named=False)
        annotations = row_by_annotation(counts)
        fit = partial(cp.fit, STORY, annotations, seed=seed, progress=False)
        for way, fitted in {
            TRUTH: fit(gold=True, classifier=NETWORK),
            VOTES: fit(gold=majority(annotations), classifier=NETWORK),
            ANSWER: fit(truth="answer", classifier=NETWORK),
            SHARED: fit(truth="shared", classifier=NETWORK),
            DROPOUT: fit(truth="answer", classifier=WITH_DROPOUT),
        }.items():
            found[way].append(100 * float((fitted.predict_proba(x).argmax(-1) == y).mean()))
    return {way: np.array(values) for way, values in found.items()}


def row_by_annotation(counts: cp.Annotations) -> cp.Annotations:
    """The same annotations with a row for each annotation, so that all data sets have one shape and compile once."""
    times = np.asarray(counts.count).astype(int)
    return counts.replace(task=np.repeat(counts.task, times), label=np.repeat(counts.label, times), count=None)


def accuracy_rows(found: dict[int, dict[str, np.ndarray]]) -> list[dict[str, object]]:
    """A row for each number of annotators, beside the paper's figure."""
    return [
        {
            "annotators": n_workers,
            **{way: with_error(values, 2) for way, values in by_way.items()},
            "the paper's CMM": "–" if np.isnan(paper) else f"{paper:.2f}",
        }
        for (n_workers, by_way), paper in zip(found.items(), PAPER, strict=True)
    ]


def target_rows(found: dict[int, dict[str, np.ndarray]]) -> list[dict[str, object]]:
    """How far either way stays behind, where it does most."""
    rows = []
    for way in (ANSWER, SHARED, DROPOUT):
        behind = {n_workers: by_way[TRUTH] - by_way[way] for n_workers, by_way in found.items()}
        worst = max(behind, key=lambda n_workers: behind[n_workers].mean())
        rows.append(target(f"{way}, worst at {worst:,} annotators", behind[worst], 2, most=BEHIND))
    return rows


def cost_rows(repeats: int) -> list[dict[str, object]]:
    """Time and memory of a fit for each number of annotators, on counts of the annotations."""
    data = {n_workers: three_gaussians(n_workers, named=False)[0] for n_workers in CROWDS}
    fits = {
        str(n_workers): partial(cp.fit, STORY, annotations, classifier=NETWORK, truth="answer", progress=False)
        for n_workers, annotations in data.items()
    }
    for fit in fits.values():
        fit()  # compiles
    seconds = interleaved(fits, repeats)
    memory = {n_workers: epoch_bytes(annotations) for n_workers, annotations in data.items()}
    rows: list[dict[str, object]] = []
    for n_workers, annotations in data.items():
        times_longer = float(np.median(seconds[str(n_workers)] / seconds[str(CROWDS[0])]))
        times_larger = memory[n_workers] / memory[CROWDS[0]]
        rows.append(
            {
                "annotators": n_workers,
                "rows": annotations.n_rows,
                "fit, ms": 1e3 * float(np.median(seconds[str(n_workers)])),
                "time, ratio": times_longer,
                "memory, MiB": memory[n_workers] / 2**20,
                "memory, ratio": times_larger,
                "flat": max(times_longer, times_larger) <= FLAT,
            }
        )
    return rows


def epoch_bytes(annotations: cp.Annotations) -> int:
    """What a compiled epoch holds at once."""
    model = Model(find_story(STORY), {"truth": "answer", "truth_prior": NETWORK})
    data = jax.tree.map(jnp.asarray, annotations.replace(gold=None))
    key, settings = jax.random.key(0), em.EMSettings()
    state = training.start(model, data, em.init(model, data, key, settings).parameters, settings)
    plan = batches.plan(data, BATCH)
    arguments = (model, data, plan, state, key, settings)
    return held_bytes(training.epoch.program(*arguments).lower(*arguments).compile())


if __name__ == "__main__":
    typer.run(main)
