"""Pyro's backend beside NumPyro's: an SVI step, memory of minibatches, and networks learnt from two crowds."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import typer
from support.data import data_folder, read_annotations
from support.report import Report
from support.seeds import with_deviation
from svi import GUIDES, LEARNING_RATE, Run, ways
from torch import nn

import crowdppl as cp
from crowdppl.inference.densities.model import Model
from crowdppl.inference.torch.steps import Stepper
from crowdppl.models import Classifier, find_story

STEPS = 100
SLOWER = 4.0  # times NumPyro's step on trec, at the most
MORE_MEMORY = 1.1  # times the peak, for ten times the tasks
SIZES = (5_000, 50_000)
STORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dawid_skene": ("dawid_skene", {}),
    "annotator_groups, by worker": ("annotator_groups", {"membership": "worker"}),
    "common_individual": ("common_individual", {}),
}
EPOCHS = {"labelme": 30, "music": 100}
UNITS, DROPOUT = 128, 0.5


def main(seeds: int = 5, repeats: int = 5, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        seeds: of the networks' starts and the batches.
        repeats: rounds of timing that both backends take turns in.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    torch.set_num_threads(1)
    report = Report(f"The classifier in PyTorch: Pyro {pyro_version()} beside NumPyro")
    report.table(
        "An SVI step of dawid_skene on trec, all tasks at once", [step_time(repeats)], ["Pyro, ms", "NumPyro, ms"]
    )
    report.note(
        f"AutoNormal, one particle, PyTorch on one thread, the median of {repeats} rounds of {STEPS} steps; "
        "NumPyro's with its truth summed out by crowdppl, compiled."
    )
    report.table("Minibatches of 64 images from a dataset that is loaded lazily", memory())
    report.note(
        "Peak resident memory, each in a fresh process; features: what all images of 3 × 32 × 32 would take. "
        f"Target: at most {MORE_MEMORY} times the memory for {SIZES[1] // SIZES[0]} times the tasks."
    )
    rows = [row(name, story, seeds) for name in EPOCHS for story in STORIES]
    report.table(f"Accuracy on test tasks in percent, mean of {seeds} seeds ± standard deviation", rows)
    report.note(
        f"One network of {UNITS} hidden units, dropout {DROPOUT}, with batch norm on music, {EPOCHS['labelme']} and "
        f"{EPOCHS['music']} epochs of EM; the module starts as NumPyro's does. Within one: the means differ by no more "
        "than the larger of the two standard deviations."
    )
    if write:
        report.write()


def pyro_version() -> str:
    """Of Pyro and PyTorch."""
    from importlib.metadata import version

    return f"{version('pyro-ppl')} on PyTorch {version('torch').split('+')[0]}"


def step_time(repeats: int) -> dict[str, object]:
    """A row: both backends' steps, in turn."""
    annotations = cp.Annotations.from_frame(read_annotations("trec"))
    way = ways(Model(find_story("dawid_skene")))["crowdppl, Trace_ELBO"]
    theirs = Run(Model(find_story("dawid_skene")), *way, GUIDES[0], annotations)
    theirs.advance(STEPS)
    ms: dict[str, list[float]] = {"Pyro": [], "NumPyro": []}
    for _ in range(repeats):
        ms["Pyro"].append(pyro_step(annotations))
        started = perf_counter()
        theirs.advance(STEPS)
        ms["NumPyro"].append(1e3 * (perf_counter() - started) / STEPS)
    ratio = float(np.median(np.divide(ms["Pyro"], ms["NumPyro"])))
    return {
        "annotations": annotations.n_annotations,
        "Pyro, ms": float(np.median(ms["Pyro"])),
        "NumPyro, ms": float(np.median(ms["NumPyro"])),
        "Pyro's step, of NumPyro's": ratio,
        "target": f"≤ {SLOWER:g}",
        "reached": ratio <= SLOWER,
    }


def pyro_step(annotations: cp.Annotations) -> float:
    """Milliseconds of a step of Pyro's backend, the median of a fit's."""
    times: list[float] = []
    with after_each_step(lambda: times.append(perf_counter())):
        cp.fit(
            "dawid_skene",
            annotations,
            method="svi",
            backend="pyro",
            max_iterations=STEPS,
            learning_rate=LEARNING_RATE,
            tolerance=1.0,  # it is timed, not brought to an end
            draws=1,
            progress=False,
        )
    return 1e3 * float(np.median(np.diff(times[-STEPS:])))


@contextmanager
def after_each_step(look: Callable[[], None]) -> Iterator[None]:
    """Look whenever an optimizer's step of Pyro's backend is done."""
    step = Stepper.step

    def watched(self: Stepper, loss: torch.Tensor) -> None:
        step(self, loss)
        look()

    Stepper.step = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        Stepper.step = step  # type: ignore[method-assign]


def memory() -> list[dict[str, object]]:
    """A row for each number of tasks, measured in a process of its own."""
    script = Path(__file__).parent / "support" / "minibatches.py"
    peaks = []
    for size in SIZES:
        ran = subprocess.run([sys.executable, script, str(size)], check=True, capture_output=True, text=True)
        peaks.append(json.loads(ran.stdout.splitlines()[-1]))
    least = peaks[0]["MiB"]
    return [
        {
            "tasks": size,
            "peak, MiB": f"{peak['MiB']:.0f}",
            "features, MiB": f"{peak['features']:.0f}",
            "times the first": peak["MiB"] / least,
            "reached": peak["MiB"] <= MORE_MEMORY * least,
        }
        for size, peak in zip(SIZES, peaks, strict=True)
    ]


class Net(nn.Module):
    """The network of NumPyro's ``"mlp"``: (norm), linear, relu, (norm), dropout, and a linear layer from zero.

    Args:
        n_features: of a task.
        n_classes: K.
        batch_norm: whether it has the norms.
    """

    def __init__(self, n_features: int, n_classes: int, *, batch_norm: bool) -> None:
        super().__init__()
        first, last = nn.Linear(n_features, UNITS), nn.Linear(UNITS, n_classes)
        scale = n_features**-0.5 / 0.87962566  # the deviation of a normal that is cut at two of its own
        nn.init.trunc_normal_(first.weight, std=scale, a=-2 * scale, b=2 * scale)
        for zero in (first.bias, last.weight, last.bias):
            nn.init.zeros_(zero)
        norms = [nn.BatchNorm1d(n) if batch_norm else nn.Identity() for n in (n_features, UNITS)]
        self.layers = nn.Sequential(nn.Flatten(), norms[0], first, nn.ReLU(), norms[1], nn.Dropout(DROPOUT), last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits, tasks × classes."""
        logits: torch.Tensor = self.layers(x)
        return logits


def row(name: str, method: str, seeds: int) -> dict[str, object]:
    """Test accuracy of one story on one dataset by both backends."""
    found = {backend: accuracies(name, method, backend, seeds) for backend in ("pyro", "numpyro")}
    gap = abs(found["pyro"].mean() - found["numpyro"].mean())
    spread = max(values.std(ddof=1) for values in found.values())
    return {
        "data": name,
        "story": method,
        "Pyro": with_deviation(found["pyro"], 2),
        "NumPyro": with_deviation(found["numpyro"], 2),
        "within one standard deviation": bool(gap <= spread),
    }


def accuracies(name: str, method: str, backend: str, seeds: int) -> np.ndarray:
    """Percent of test tasks, for each seed."""
    story, options = STORIES[method]
    annotations, (x, y) = cp.load_dataset(name), cp.load_split(name, "test")
    found = []
    for seed in range(seeds):
        fit = cp.fit(
            story,
            annotations,
            classifier=network(annotations, name, backend, seed),
            backend=backend,
            epochs=EPOCHS[name],
            seed=seed,
            progress=False,
            **options,
        )
        found.append(100 * float((fit.predict_proba(x).argmax(-1) == y).mean()))
    return np.array(found)


def network(annotations: cp.Annotations, name: str, backend: str, seed: int) -> Classifier | Net:
    """The same network for either backend."""
    if backend == "numpyro":
        return Classifier("mlp", hidden=(UNITS,), dropout=DROPOUT, batch_norm=name == "music")
    torch.manual_seed(seed)
    n_features = int(np.prod(np.shape(annotations.features)[1:]))
    return Net(n_features, annotations.n_classes, batch_norm=name == "music")


if __name__ == "__main__":
    typer.run(main)
