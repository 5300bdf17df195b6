"""Simulation-based calibration of NUTS for the five stories: p-values of uniform ranks, and pictures of the ranks."""

from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np
import typer
from jax import Array
from support.report import Report

import crowdppl as cp

PICTURES = Path(__file__).parent / "pictures"
LEVEL = 0.01  # of the test over all entries of a story
SIZES = {"n_tasks": 40, "n_workers": 4}


def main(simulations: int = 300, seed: int = 0, write: bool = False) -> None:
    """Calibrate each story, and print the smallest p-value over its parameters' entries.

    Args:
        simulations: data sets of each story.
        seed: of the first data set.
        write: refresh this section of RESULTS.md, and the pictures.
    """
    matplotlib.use("Agg")
    report = Report(f"Simulation-based calibration of NUTS, {simulations} data sets a story")
    rows = []
    for name, (story, options) in stories().items():
        found = cp.calibrate(story, n_simulations=simulations, seed=seed, **SIZES, **options)
        p_values = found.p_values()
        adjusted = 1 - (1 - p_values.min()) ** len(p_values)
        rows.append(
            {
                "story": name,
                "entries": len(p_values),
                "smallest p": float(p_values.min()),
                "of": p_values.idxmin(),
                "adjusted for the number": float(adjusted),
                "divergences": found.divergences,
                "uniform": bool(adjusted > LEVEL),
            }
        )
        if write:
            draw(name, found)
    report.table("χ² of ten bins of ranks", rows)
    report.note(
        "Each data set is drawn from the story with parameters of its prior: 40 tasks, each annotated by 4 workers. "
        "One chain from EM's solution, 300 warmup, 63 draws kept of 504. The priors keep the classes apart, since one "
        "chain sees one naming of them; of annotator_groups what is ranked does not depend on the groups' order. "
        "Adjusted: the chance of a p-value as small among so many independent ones; entries of one row of "
        "probabilities are not, which errs on the side of uniform. Pictures of the ranks are in `benchmarks/pictures`."
    )
    if write:
        report.write()


def stories() -> dict[str, tuple[str, dict]]:
    """The five stories, with priors that keep the classes apart, and common_individual with both kinds of switch."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1.5, (SIZES["n_tasks"], 2))
    return {
        "two_coin": ("two_coin", {"right": 6.0, "wrong": 2.0}),
        "dawid_skene": ("dawid_skene", {"n_classes": 3, "diagonal": 8.0}),
        "difficulty": ("difficulty", {"features": logits, "truth_prior": cp.Classifier(_as_they_are)}),
        "annotator_groups": (
            "annotator_groups",
            {"membership": "worker", "groups": 2, "diagonal": 6.0, "quantities": _without_order},
        ),
        "common_individual": ("common_individual", {"diagonal": 6.0}),
        "common_individual by task": (
            "common_individual",
            {"diagonal": 6.0, "embedding": 2, "features": rng.normal(size=(SIZES["n_tasks"], 2))},
        ),
    }


def draw(name: str, found: "cp.Ranks") -> None:
    """Write the picture of a story's ranks."""
    PICTURES.mkdir(exist_ok=True)
    figure = cp.plot_ranks(found)[0].figure
    figure.suptitle(f"{name}: ranks of the actual parameters among their draws", fontsize=10)
    figure.savefig(PICTURES / f"ranks_{name.replace(' ', '_')}.png", dpi=110)
    matplotlib.pyplot.close(figure)


def _as_they_are(x: Array) -> Array:
    """A classifier whose logits are the features."""
    return x


def _without_order(parameters: Mapping[str, Array]) -> dict[str, Array]:
    """What no order of the groups changes: workers' confusion matrices, and the groups' mean weights by size."""
    weights, tables = parameters["weights"], parameters["group_confusion"]
    return {
        "prevalence": parameters["prevalence"],
        "worker_confusion": jnp.einsum("jm,mkl->jkl", weights, tables),
        "smaller_share": weights.mean(0).min(),
    }


if __name__ == "__main__":
    typer.run(main)
