"""Simulation-based calibration of every story with its default priors: ranks of NUTS, and coverage of all engines."""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import typer
from jax import Array
from support.report import Report

import crowdppl as cp
from crowdppl.inference.checks.simulation_based_calibration import (
    Quantities,
    Ranks,
    crowd_quantities,
    ranks_among,
    sample_simulations,
)
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.findings.look import look_at
from crowdppl.inference.fitted.by_rule import ByRule
from crowdppl.inference.fitted.posterior import interval_around
from crowdppl.models import KNOWN_STORIES, WITH_CLASSIFIER, find_story

LEVEL = 0.01  # of the test over all entries of all stories
INTERVAL, LEAST, MOST = 0.95, 93.0, 97.0  # mass, and percent of NUTS's intervals that are to hold the actual values
SIZES = {"n_tasks": 40, "n_workers": 4}
DRAWS = 79  # of each data set by NUTS: of their 80 ranks the middle 76 are 95 %
ROUND = 100  # data sets of each story, after which the next story has its turn
BLOCKS = {"nuts": ROUND, "em": 50, "svi": 25}
"""Data sets whose results are kept together; NUTS samples those of a block in one program."""

BY_FEATURES = ("difficulty", *WITH_CLASSIFIER)
"""Stories whose truth depends on features of the tasks."""


class Looks(NamedTuple):
    """Compiled functions of a story's parameters: the same for all of its data sets."""

    of_one: Quantities  # (...)
    of_several: Quantities  # (simulation, ...)
    of_draws: Quantities  # (chain or simulation, draw, ...)
    labels: Callable[[Mapping[str, Array], Array], Array]  # mean label probabilities (simulation, N, K)


def main(
    simulations: int = 500,
    fits: int = 100,
    stories: str = ",".join(KNOWN_STORIES),
    engines: str = "em,svi",
    seed: int = 0,
    results: Path = Path("build/default_calibration.jsonl"),
    stored: bool = False,
    write: bool = False,
) -> None:
    """Calibrate each story, and print p-values of its ranks and the coverage of its intervals.

    Args:
        simulations: data sets of each story that NUTS is run on.
        fits: of them, how many the other engines fit, one by one; 0 for none.
        stories: their names, with commas.
        engines: the other engines, with commas.
        seed: of the first data set.
        results: a file that has what was found so far, a line each block of data sets; a later run goes on from there.
        stored: take of the data sets those that the file has, and run nothing.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    names = stories.split(",")
    n_of = {"nuts": simulations} | dict.fromkeys(engines.split(",") if fits else [], fits)
    report = Report(f"Calibration of {len(names)} stories with default priors, up to {simulations} data sets each")
    found = all_results(names, n_of, seed, results, stored=stored)
    rows = [row_of(name, found, n_of) for name in names]
    report.table(f"Ranks of NUTS, and how often {INTERVAL:.0%} intervals hold the actual values", rows, ["ms"])
    report.table("The same where the order of the classes is open", [naming_row(name, found) for name in names])
    report.table(
        "The same of the crowds that are better than chance", [better_row(name, found, n_of) for name in names]
    )
    report.note(
        "Each data set is drawn from the story with parameters of its default priors: 40 tasks, two classes, each task "
        "annotated by 4 workers. What is ranked is what any story has whatever the order of its groups: the entries of "
        "the workers' confusion matrices, and the prevalence where it is a parameter. NUTS: one chain from EM's "
        "solution, 300 warmup, 79 draws kept of 632. p: χ² of ten bins of ranks. Adjusted: the chance of one as small "
        f"among the story's entries; uniform where it is over {LEVEL:.0%} divided by the {len(KNOWN_STORIES)} stories. "
        "Tasks' features decide the truth in " + ", ".join(BY_FEATURES) + "; anno_reg is without its factor on the "
        "trace, with which its prior is none that can be drawn from."
        + (f" The other engines: {fits} of the data sets, and the intervals around a point." if len(n_of) > 1 else "")
    )
    report.note(
        "A chain sees the mode that it starts in. Where the prior lets workers be wrong more often than right, the "
        "classes may be drawn in the other order, and the annotations do not tell which. Exchanged: data sets whose "
        "actual values are nearer to the fit's with the two classes exchanged. With the nearer order: NUTS's "
        "intervals against the actual values in the order that is nearer, a choice that flatters a little. "
        "Warned: data sets whose fit says that the annotations alone do not tell the classes or who is "
        "right; coverage of the others follows."
    )
    report.note(
        "Better than chance: data sets drawn with workers who are right with a probability over a half, in the mean "
        "over workers and classes. A prior that is cut to these tells the two orders of the classes apart, so that "
        "ranks are to be uniform and intervals to hold what they say where the chain stays on this side."
    )
    report.note(
        f"{results.name} keeps what was found, a line each block, so that a run can be cut off and gone on with; "
        "--stored takes it as it is. Without, a run takes about half a minute for 100 data sets of a story on a core, "
        "and half an hour of ebcc."
    )
    if write:
        report.write()


def all_results(names: list[str], n_of: Mapping[str, int], seed: int, path: Path, *, stored: bool) -> pd.DataFrame:
    """What was found in each block of data sets of each story and engine; those not in the file are run, or left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = [
        {"story": name, "engine": engine, "seed": seed + begin, "n": min(BLOCKS[engine], n - begin)}
        for engine, n in n_of.items()
        for name in names
        for begin in range(0, n, BLOCKS[engine])
    ]
    engines = list(n_of)
    blocks.sort(key=lambda block: ((block["seed"] - seed) // ROUND, engines.index(block["engine"])))
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(row[key] for key in ("story", "engine", "seed", "n")): row for row in known}
    for block in blocks:
        key = tuple(block.values())
        if stored or key in done:
            continue
        began = process_time()
        run = of_nuts if block["engine"] == "nuts" else of_fits
        done[key] = block | run(**block) | {"seconds": process_time() - began}
        with path.open("a") as file:
            print(json.dumps(done[key]), file=file)
        print(*key, f"{done[key]['seconds']:.0f} s", flush=True)
    return pd.DataFrame([done[key] for key in (tuple(block.values()) for block in blocks) if key in done])


def of_nuts(story: str, engine: str, seed: int, n: int) -> dict[str, Any]:
    """Ranks of the actual values in either order of the classes, and what a user would be told."""
    options = options_of(story)
    found = sample_simulations(story, n_simulations=n, draws=DRAWS, seed=seed, **SIZES, **options)
    looks = looks_of(story)
    actual, draws = looks.of_several(found.actual), looks.of_draws(found.draws)
    other = exchanged(actual)
    posteriors = np.asarray(looks.labels(found.draws, jnp.asarray(found.labels)))
    told = [
        bool(look_at(ByRule("given", found.design.replace(label=given), posterior)))
        for given, posterior in zip(found.labels, posteriors, strict=True)
    ]
    ranks, of_other = ranks_among(actual, draws), ranks_among(other, draws)
    is_other = np.asarray(
        jax.vmap(is_nearer)(other["confusion"], actual["confusion"], draws["confusion"].mean(1))
    ).tolist()
    return {
        "entries": list(ranks),
        "found": ranks.to_numpy().tolist(),
        "exchanged": of_other.to_numpy().tolist(),
        "is_exchanged": is_other,
        "warned": told,
        "divergences": found.divergences,
    }


def of_fits(story: str, engine: str, seed: int, n: int) -> dict[str, Any]:
    """Whether the intervals of an engine's fits hold the actual values, in either order of the classes."""
    options = options_of(story)
    looks = looks_of(story)
    given = {name: value for name, value in options.items() if name != "features"}
    found: dict[str, list[Any]] = {"found": [], "exchanged": [], "is_exchanged": [], "warned": []}
    for i in range(seed, seed + n):
        annotations, parameters = cp.simulate(story, seed=i, **SIZES, **options)
        fit = cp.fit(story, annotations.without_gold(), method=engine, progress=False, **given)
        estimate = {name: np.mean(value, (0, 1)) for name, value in looks.of_draws(_arrays(fit.fitted.draws)).items()}
        around = looks.of_draws(_arrays(fit.fitted.with_uncertainty.draws))
        intervals = {
            name: interval_around(fit.fitted, value, np.asarray(around[name]), INTERVAL)
            for name, value in estimate.items()
        }
        actual = looks.of_one(_arrays(parameters))
        other = exchanged(actual)
        for kind, values in (("found", actual), ("exchanged", other)):
            held = [(low <= values[name]) & (values[name] <= high) for name, (low, high) in intervals.items()]
            found[kind].append(np.concatenate([np.ravel(each) for each in held]).tolist())
        found["is_exchanged"].append(bool(is_nearer(other["confusion"], actual["confusion"], estimate["confusion"])))
        found["warned"].append(any(finding.about == "crowd" for finding in fit.findings))
    return found


def exchanged(values: Mapping[str, Array]) -> dict[str, Array]:
    """Confusion matrices ``(..., J, 2, 1)`` and prevalence ``(..., 1)`` with the two true classes exchanged."""
    other = {"confusion": values["confusion"][..., ::-1, :]}
    return other | ({"prevalence": 1 - values["prevalence"]} if "prevalence" in values else {})


def is_nearer(one: Array, other: Array, to: Array) -> Array:
    """Whether the squared distance of the one is less than that of the other."""
    return jnp.square(one - to).sum() < jnp.square(other - to).sum()


def row_of(story: str, found: pd.DataFrame, n_of: Mapping[str, int]) -> dict[str, Any]:
    """The story's line: ranks of NUTS, and coverage of all engines."""
    blocks = found[(found.story == story) & (found.engine == "nuts")]
    ranks = ranks_of(blocks)
    p_values, held = ranks.p_values(), 100 * float(ranks.coverage(INTERVAL).mean())
    adjusted = 1 - (1 - p_values.min()) ** len(p_values)
    row = {
        "story": story,
        "data sets": int(blocks.n.sum()),
        "entries": len(p_values),
        "smallest p": f"{p_values.min():.1e}",
        "of": p_values.idxmin(),
        "adjusted": f"{adjusted:.2g}",
        "uniform": bool(adjusted > LEVEL / len(KNOWN_STORIES)),
        "divergent, %": 100 * blocks.divergences.sum() / (DRAWS * blocks.n.sum()),
        "NUTS, %": held,
        f"{LEAST:.0f}–{MOST:.0f}": bool(LEAST <= held <= MOST),
    }
    for engine in n_of:
        if engine != "nuts":
            row[f"{engine.upper()}, %"] = 100 * held_by(found[(found.story == story) & (found.engine == engine)]).mean()
    return row | {"ms": 1000 * blocks.seconds.sum() / blocks.n.sum()}


def naming_row(story: str, found: pd.DataFrame) -> dict[str, Any]:
    """The story's line about the order of the classes: coverage with the actual values in the nearer one."""
    blocks = found[(found.story == story) & (found.engine == "nuts")]
    held, nearer = held_by(blocks), held_by(blocks, nearer=True)
    other, warned = (np.array(joined(blocks[name])) for name in ("is_exchanged", "warned"))
    return {
        "story": story,
        "exchanged, %": 100 * other.mean(),
        "as drawn, %": 100 * held.mean(),
        "with the nearer order, %": 100 * nearer.mean(),
        "warned, %": 100 * warned.mean(),
        "not warned: as drawn, %": 100 * held[~warned].mean() if not warned.all() else np.nan,
    }


def better_row(story: str, found: pd.DataFrame, n_of: Mapping[str, int]) -> dict[str, Any]:
    """The story's line about the data sets whose crowds are better than chance: ranks, and coverage of all engines."""
    blocks = found[(found.story == story) & (found.engine == "nuts")]
    better = better_of(blocks)
    ranks = ranks_of(blocks)._replace(ranks=ranks_of(blocks).ranks[better])
    p_values, held = ranks.p_values(), 100 * float(ranks.coverage(INTERVAL).mean())
    adjusted = 1 - (1 - p_values.min()) ** len(p_values)
    row = {
        "story": story,
        "better, %": 100 * better.mean(),
        "adjusted": f"{adjusted:.2g}",
        "uniform": bool(adjusted > LEVEL / len(KNOWN_STORIES)),
        "NUTS, %": held,
        f"{LEAST:.0f}–{MOST:.0f}": bool(LEAST <= held <= MOST),
    }
    for engine in n_of:
        if engine != "nuts":
            blocks = found[(found.story == story) & (found.engine == engine)]
            row[f"{engine.upper()}, %"] = 100 * held_by(blocks)[better_of(blocks)].mean()
    return row


def better_of(blocks: pd.DataFrame) -> np.ndarray:
    """Of which data sets of these blocks the crowd is better than chance."""
    return np.concatenate([is_better(*block) for block in zip(blocks.story, blocks.seed, blocks.n, strict=True)])


@cache
def is_better(story: str, seed: int, n: int) -> np.ndarray:
    """Of which data sets the workers are right with a probability over a half, in the mean over workers and classes."""
    looks, options = looks_of(story), options_of(story)
    right = []
    for i in range(seed, seed + n):
        _, parameters = cp.simulate(story, seed=i, **SIZES, **options)
        first = np.asarray(looks.of_one(_arrays(parameters))["confusion"])[..., 0]  # of the first class, by true class
        right.append(np.mean(first[:, 0] + 1 - first[:, 1]) / 2)
    return np.array(right) > 0.5


def ranks_of(blocks: pd.DataFrame) -> Ranks:
    """The ranks of all blocks of NUTS."""
    return Ranks(pd.DataFrame(joined(blocks["found"]), columns=blocks.entries.iloc[0]), DRAWS, blocks.divergences.sum())


def held_by(blocks: pd.DataFrame, nearer: bool = False) -> np.ndarray:
    """In each data set the share of the actual values that intervals hold, in the order drawn or the nearer one."""
    held = np.array(joined(blocks["found"]))
    if nearer:
        held = np.where(np.array(joined(blocks.is_exchanged))[:, None], np.array(joined(blocks.exchanged)), held)
    if held.dtype != bool:
        beyond = round((DRAWS + 1) * (1 - INTERVAL) / 2)
        held = (beyond <= held) & (held <= DRAWS - beyond)
    return held.mean(1)


def joined(parts: Iterable[list[Any]]) -> list[Any]:
    """One list of all."""
    return [each for part in parts for each in part]


def options_of(story: str) -> dict[str, Any]:
    """What a story needs beside its defaults to be drawn from."""
    options: dict[str, Any] = {"weight": 0.0} if story == "anno_reg" else {}
    if story in BY_FEATURES:
        features = np.random.default_rng(0).normal(0, 1.5, (SIZES["n_tasks"], 2))
        options |= {"features": features, "truth_prior": cp.Classifier(_as_they_are)}
    return options


@cache
def looks_of(story: str) -> Looks:
    """From a story's parameters to workers' confusion matrices, to the prevalence if it has one, and to labels."""
    options = options_of(story)
    design = cp.simulate(story, **SIZES, **options)[0].without_gold()
    model = Model(find_story(story), {name: value for name, value in options.items() if name != "features"})

    def labels(draws: Mapping[str, Array], given: Array) -> Array:
        annotations = design.replace(label=given)
        return jax.lax.map(lambda draw: density(model, draw, annotations).posterior, draws).mean(0)

    quantities = crowd_quantities(model, design)
    several = jax.vmap(quantities)
    return Looks(jax.jit(quantities), jax.jit(several), jax.jit(jax.vmap(several)), jax.jit(jax.vmap(labels)))


def _arrays(draws: Mapping[str, Any]) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in draws.items()}


def _as_they_are(x: Array) -> Array:
    """A classifier whose logits are the features."""
    return x


if __name__ == "__main__":
    typer.run(main)
