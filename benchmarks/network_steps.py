"""A network's training by how far its steps can take a weight: labels beside the default's, and who is warned."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import typer
from support.report import Report

import crowdppl as cp

CROWDS: dict[str, dict[str, Any]] = {
    f"{n_classes} classes, {n_tasks} tasks": {"n_classes": n_classes, "n_tasks": n_tasks, "right": right}
    for n_classes, right in ((2, 0.7), (4, 0.5))
    for n_tasks in (200, 1000)
}
RATES = {1e-4: (20, 50, 200), 3e-4: (1, 2, 5, 10, 20, 50, 200), 1e-3: (20, 50, 200), 1e-2: (5, 50)}
"""Epochs by the rate of Adam."""
BOUNDS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.3, np.inf)
"""Of steps times rate, which is as far as Adam can move a weight."""
CODE = "network_still_learns"


def main(draws: int = 3, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: crowds of each kind.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    found = [one for crowd in CROWDS.values() for seed in range(draws) for one in _fits(seed, **crowd)]
    rows = []
    for low, high in pairwise(BOUNDS):
        loss, said = np.array([(loss, said) for reach, loss, said in found if low <= reach < high]).T
        rows.append(
            {
                "steps times rate": f"{low:g} to {high:g}",
                "fits": len(loss),
                "points below the default, least": f"{loss.min():.1f}",
                "mean": f"{loss.mean():.1f}",
                "most": f"{loss.max():.1f}",
                "a point and more below": f"{(loss >= 1).mean():.0%}",
                "warned": f"{said.mean():.0%}",
                "warned, and less than a point below": f"{(said * (loss < 1)).mean():.0%}",
            }
        )
    report = Report("Networks that are trained for few steps")
    report.table("Accuracy of the labels in percent: dawid_skene with a classifier 'mlp' by EM", rows)
    report.note(
        f"Crowds of {'; '.join(CROWDS)}; {draws} of each, with ten features that tell the class in part, ten workers "
        f"and five annotations a task. The finding is {CODE}."
    )
    if write:
        report.write()


def _fits(seed: int, *, n_tasks: int, n_classes: int, right: float) -> list[tuple[float, float, bool]]:
    """Of each training: steps times rate, points of accuracy below the default's, and whether it is warned of."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    centres = rng.normal(size=(n_classes, 10))
    x = 2 * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[truth] + 0.7 * rng.normal(size=(n_tasks, 10))
    workers = np.argsort(rng.random((n_tasks, 10)), axis=1)[:, :5]
    wrong = (truth[:, None] + rng.integers(1, n_classes, workers.shape)) % n_classes
    labels = np.full((n_tasks, 10), -1)
    np.put_along_axis(labels, workers, np.where(rng.random(workers.shape) < right, truth[:, None], wrong), axis=1)
    annotations = cp.Annotations.from_matrix(labels, classes=range(n_classes), missing=-1).replace(features=x)

    def accuracy(**options: Any) -> tuple[float, cp.Fit]:
        fit = cp.fit("dawid_skene", annotations, classifier="mlp", progress=False, **options)
        return 100 * float((fit.posterior.argmax(1) == truth).mean()), fit

    best, _ = accuracy()
    found = []
    for rate, numbers in RATES.items():
        for epochs in numbers:
            own, fit = accuracy(network_rate=rate, epochs=epochs)
            said = any(finding.code == CODE for finding in fit.findings)
            found.append((fit.outcome.facts["steps"] * rate, best - own, said))
            print(n_classes, n_tasks, seed, rate, epochs, f"{best - own:.1f}", said, flush=True)
    return found


if __name__ == "__main__":
    typer.run(main)
