"""Time and memory of an EM iteration of every story, at a million annotations, beside dawid_skene's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import typer
from support.data import simulate_annotations
from support.memory import held_bytes
from support.report import Report
from support.timing import interleaved

import crowdppl as cp
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines.climber import advance
from crowdppl.inference.engines.em_climber import EMClimber
from crowdppl.inference.sources.memory import InMemory
from crowdppl.models import STORIES, Given, find_story

N_TASKS, N_WORKERS, PER_TASK, N_FEATURES = 100_000, 1_000, 10, 20
WITHOUT_STOP = em.EMSettings(tolerance=-1.0)
SLOWER, GIBIBYTES = 4.0, 4.0  # at the most


class Variant(NamedTuple):
    """A story with its arguments, the number of classes, and whether tasks have features."""

    story: str
    arguments: dict[str, Any]
    n_classes: int = 10
    features: bool = False


BINARY = ("two_coin", "item_response")  # stories of two classes
REFERENCES = {10: "dawid_skene", 2: "dawid_skene, two classes"}
VARIANTS = {
    **{name: Variant(name, {}) for name in STORIES if name not in (*BINARY, "difficulty")},
    "annotator_groups, by worker": Variant("annotator_groups", {"membership": "worker"}),
    "annotator_groups, truth='answer'": Variant("annotator_groups", {"truth": "answer"}),
    "common_individual, features": Variant("common_individual", {}, features=True),
    "difficulty, fixed": Variant("difficulty", {"kind": "fixed"}),
    "difficulty, adaptive": Variant("difficulty", {"truth_prior": Given()}),
    REFERENCES[2]: Variant("dawid_skene", {}, n_classes=2),
    **{f"{name}, two classes": Variant(name, {}, n_classes=2) for name in BINARY},
}


def main(steps: int = 10, repeats: int = 7, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        steps: iterations to time, the first after EM's start.
        repeats: rounds that all stories take turns in.
        write: refresh this section of RESULTS.md.
    """
    report = Report("An EM iteration of every story, 1,000,000 annotations")
    data = {n_classes: simulated(n_classes) for n_classes in REFERENCES}
    runs: dict[str, Callable[[], object]] = {}
    gibibytes: dict[str, float] = {}
    for name, variant in VARIANTS.items():
        runs[name], gibibytes[name] = steps_of(variant, data[variant.n_classes], steps)
    seconds = interleaved(runs, repeats)
    rows = []
    for name, variant in VARIANTS.items():
        ratio = seconds[name] / seconds[REFERENCES[variant.n_classes]]
        rows.append(
            {
                "story": name,
                "ms": 1e3 * float(np.median(seconds[name])) / steps,
                "times dawid_skene's": float(np.median(ratio)),
                "from – to": f"{ratio.min():.1f} – {ratio.max():.1f}",
                "GiB": gibibytes[name],
                "reached": bool(np.median(ratio) <= SLOWER and gibibytes[name] <= GIBIBYTES),
            }
        )
    title = f"Targets: at most {SLOWER:g} times dawid_skene's time, and {GIBIBYTES:g} GiB"
    report.table(title, rows, absolute=["ms"])
    report.note(
        f"{N_TASKS:,} tasks, {N_WORKERS:,} workers, ten classes unless two are named. Time: of the first {steps} "
        f"iterations, as a ratio to as many of dawid_skene in the same round, with as many classes; median over the "
        f"rounds. Memory: of the compiled iterations, what goes in, what comes out and what they need between, by "
        f"XLA's own analysis. Features: {N_FEATURES} of each task. Difficulty has the vote "
        f"shares as votes, or as given probabilities of the classes."
    )
    if write:
        report.write()


def simulated(n_classes: int) -> cp.Annotations:
    """Annotations, with their shares as probabilities that are given, and random features."""
    annotations = cp.Annotations.from_frame(simulate_annotations(N_TASKS, N_WORKERS, n_classes, PER_TASK))
    votes = np.float32(annotations.votes() / PER_TASK)
    features = np.random.default_rng(0).normal(size=(N_TASKS, N_FEATURES)).astype(np.float32)
    return jax.tree.map(jnp.asarray, annotations.replace(prior=votes, features=features))


def steps_of(variant: Variant, annotations: cp.Annotations, steps: int) -> tuple[Callable[[], object], float]:
    """So many compiled iterations from EM's start, and the GiB that they hold at once."""
    model = Model(find_story(variant.story), variant.arguments)
    data = annotations if variant.features else annotations.replace(features=None)
    start = em.init(model, data, jax.random.key(0))
    n_steps = jnp.int32(steps)
    given = (EMClimber(model, WITHOUT_STOP), InMemory(data), start, n_steps)
    compiled = advance.program(*given).lower(*given).compile()

    def run() -> object:
        return jax.block_until_ready(compiled(*given))

    run()  # memory that is touched for the first time is slow
    return run, held_bytes(compiled) / 2**30


if __name__ == "__main__":
    typer.run(main)
