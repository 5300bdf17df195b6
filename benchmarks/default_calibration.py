"""Simulation-based calibration of every story with its default priors: ranks of NUTS, and coverage of all engines."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import typer
from jax import Array
from support.report import Report

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.fitted.labelled import interval_around
from crowdppl.models import KNOWN_STORIES, WITH_CLASSIFIER, find_story

LEVEL = 0.01  # of the test over all entries of all stories
INTERVAL, LEAST, MOST = 0.95, 93.0, 97.0  # mass, and percent of NUTS's intervals that are to hold the actual values
SIZES = {"n_tasks": 40, "n_workers": 4}
BY_FEATURES = ("difficulty", *WITH_CLASSIFIER)
"""Stories whose truth depends on features of the tasks."""

Quantities = Callable[[Mapping[str, Array]], dict[str, Array]]


def main(
    simulations: int = 500,
    fits: int = 100,
    stories: str = ",".join(KNOWN_STORIES),
    engines: str = "em,svi",
    seed: int = 0,
    write: bool = False,
) -> None:
    """Calibrate each story, and print p-values of its ranks and the coverage of its intervals.

    Args:
        simulations: data sets of each story that NUTS is run on.
        fits: of them, how many the other engines fit, one by one; 0 for none.
        stories: their names, with commas.
        engines: the other engines, with commas.
        seed: of the first data set.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    names, others = stories.split(","), engines.split(",") if fits else []
    report = Report(f"Calibration of {len(names)} stories with default priors, {simulations} data sets each")
    rows = []
    for name in names:
        options = options_of(name)
        quantities = quantities_of(name, options)
        found = cp.calibrate(
            name, n_simulations=simulations, seed=seed, draws=79, quantities=quantities, **SIZES, **options
        )
        p_values, held = found.p_values(), 100 * float(found.coverage(INTERVAL).mean())
        adjusted = 1 - (1 - p_values.min()) ** len(p_values)
        row = {
            "story": name,
            "entries": len(p_values),
            "smallest p": f"{p_values.min():.1e}",
            "of": p_values.idxmin(),
            "adjusted": f"{adjusted:.2g}",
            "uniform": bool(adjusted > LEVEL / len(KNOWN_STORIES)),
            "NUTS, %": held,
            f"{LEAST:.0f}–{MOST:.0f}": bool(LEAST <= held <= MOST),
        }
        row |= {f"{engine}, %": coverage(name, engine, fits, seed, options, quantities) for engine in others}
        rows.append(row)
        report.console.print(row)
    report.table(f"Ranks of NUTS, and how often {INTERVAL:.0%} intervals hold the actual values", rows)
    report.note(
        "Each data set is drawn from the story with parameters of its default priors: 40 tasks, two classes, each task "
        "annotated by 4 workers. What is ranked is what any story has whatever the order of its groups: the entries of "
        "the workers' confusion matrices, and the prevalence where it is a parameter. NUTS: one chain from EM's "
        "solution, 300 warmup, 79 draws kept of 632. p: χ² of ten bins of ranks. Adjusted: the chance of one as small "
        f"among the story's entries; uniform where it is over {LEVEL:.0%} divided by the {len(KNOWN_STORIES)} stories. "
        "A chain sees the mode that it starts in: where a prior leaves the classes' names open, ranks say so. Tasks' "
        "features decide the truth in " + ", ".join(BY_FEATURES) + "; anno_reg is without its factor on the trace, "
        "with which its prior is none that can be drawn from."
        + (
            f" The other engines: {fits} of the data sets, and the intervals that results have around a point."
            if others
            else ""
        )
    )
    if write:
        report.write()


def options_of(story: str) -> dict[str, Any]:
    """What a story needs beside its defaults to be drawn from."""
    options: dict[str, Any] = {"weight": 0.0} if story == "anno_reg" else {}
    if story in BY_FEATURES:
        features = np.random.default_rng(0).normal(0, 1.5, (SIZES["n_tasks"], 2))
        options |= {"features": features, "truth_prior": cp.Classifier(_as_they_are)}
    return options


def quantities_of(story: str, options: dict[str, Any]) -> Quantities:
    """A function from a story's parameters to workers' confusion matrices, and to the prevalence if it has one."""
    design = cp.simulate(story, **SIZES, **options)[0].without_gold()
    model = Model(find_story(story), {name: value for name, value in options.items() if name != "features"})

    def quantities(parameters: Mapping[str, Array]) -> dict[str, Array]:
        emission = density(model, dict(parameters), design).responses.emission
        found = {"confusion": emission.confusions(design)[..., :1]}  # of two classes the other column is the rest
        if "prevalence" in parameters:
            found["prevalence"] = parameters["prevalence"][:1]
        return found

    return quantities


def coverage(story: str, method: str, n: int, seed: int, options: dict[str, Any], quantities: Quantities) -> float:
    """Percent of the actual values that lie in the intervals of an engine's fits, over so many data sets."""
    given = {name: value for name, value in options.items() if name != "features"}
    of_draws, of_one = jax.jit(jax.vmap(jax.vmap(quantities))), jax.jit(quantities)
    held = []
    for i in range(n):
        annotations, parameters = cp.simulate(story, seed=seed + i, **SIZES, **options)
        fitted = cp.fit(story, annotations.without_gold(), method=method, progress=False, **given).fitted
        estimate = {name: np.mean(value, (0, 1)) for name, value in of_draws(_arrays(fitted.draws)).items()}
        around = of_draws(_arrays(fitted.with_uncertainty.draws))
        for name, actual in of_one(_arrays(parameters)).items():
            low, high = interval_around(fitted, estimate[name], np.asarray(around[name]), INTERVAL)
            held.append(np.mean((low <= actual) & (actual <= high)))
    return 100 * float(np.mean(held))


def _arrays(draws: Mapping[str, Any]) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in draws.items()}


def _as_they_are(x: Array) -> Array:
    """A classifier whose logits are the features."""
    return x


if __name__ == "__main__":
    typer.run(main)
