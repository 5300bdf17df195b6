"""Labels of `cp.fit("auto", …, gold=…)` with 20 and 50 gold labels on eleven datasets, at random and asked for.

The stories' label probabilities, which are what takes long, are kept in the folder `--cache`. With
`--leave-one-dataset-out` also what the other ten datasets choose for each, among sets of stories and priors.
"""

import itertools
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from accuracy import DATASETS
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.comparison.default_set import VOTES, usual_votes
from crowdppl.inference.comparison.gold_stories import GOLD_SET, OPEN, expected_weights
from crowdppl.inference.fitted.gold_mix import CENTRE, PRIOR, STIFFNESS, learned, mixed, shares_of_votes
from crowdppl.inference.fitted.next_gold import AT_RANDOM, next_gold

SETS_OF_DATA = (*DATASETS, "fact_eval")
DRAWS, NUMBERS = 12, (20, 50)
FEWER: dict[str, tuple[str, ...]] = {
    "all": (),
    "no one_coin": ("one_coin",),
    "no mace": ("mace",),
    "no hierarchy": ("hierarchical_dawid_skene",),
}
OPENS = (0.3, OPEN, 0.9)
PRIORS = (3.0, PRIOR, 10.0)
OF_POWER = {"log-power 0": (0.0, 2.0), "the default": (CENTRE, STIFFNESS)}


class Setting(NamedTuple):
    """Settings of the mix that no gold label of the crowd decides."""

    stories: str = "all"
    open: float = OPEN
    prior: float = PRIOR
    power: str = "the default"


class Crowd(NamedTuple):
    """The gold tasks of a dataset, with what is known of them without gold labels."""

    names: list[str]  # of S stories
    components: np.ndarray  # (S + 1, n, K), the votes last
    told: np.ndarray  # (S + 1,) weights without gold labels
    depends: float
    gold: np.ndarray  # (n,)
    drawn: dict[tuple[int, bool], list[np.ndarray]]  # rows by how many, and whether they were asked for


def main(cache: Path | None = None, leave_one_dataset_out: bool = False, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        cache: folder of the stories' label probabilities, which are read from it or written to it.
        leave_one_dataset_out: choose the settings for each dataset on the others too.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report('Labels of cp.fit("auto") with gold labels')
    crowds = {name: crowd_of(name, cache) for name in SETS_OF_DATA}
    rows = []
    for name, crowd in crowds.items():
        row: dict[str, object] = {"dataset": name}
        for n, asked in itertools.product(NUMBERS, (False, True)):
            accuracy, log_score = scores(crowd, Setting(), n, asked)
            row[f"{n} {'asked' if asked else 'at random'}"] = f"{accuracy:.1f} ({log_score:.2f})"
        rows.append(row)
    rows.append({"dataset": "mean"} | {
        f"{n} {'asked' if asked else 'at random'}": "{:.2f} ({:.3f})".format(
            *np.mean([scores(crowd, Setting(), n, asked) for crowd in crowds.values()], axis=0)
        )
        for n, asked in itertools.product(NUMBERS, (False, True))
    })  # fmt: skip
    report.table("Accuracy over all tasks in percent (mean log-score of the tasks without a gold label)", rows)
    report.note(
        f"Means over {DRAWS} draws of gold tasks among those with a true label; fits by EM, at the mode, which have "
        "not used the gold labels. Asked: by cp.next_gold of cp.fit('auto') without gold."
    )
    if leave_one_dataset_out:
        choose(crowds, report)
    if write:
        report.write()


def choose(crowds: dict[str, Crowd], report: Report) -> None:
    """Accuracy and log-score of each dataset with the settings that are best on the others, 20 gold labels, asked."""
    settings = [Setting(*each) for each in itertools.product(FEWER, OPENS, PRIORS, OF_POWER)]
    found = {setting: [scores(crowd, setting, NUMBERS[0], True) for crowd in crowds.values()] for setting in settings}
    table = np.array([found[setting] for setting in settings])  # settings, datasets, accuracy and log-score
    rows = []
    for what, column in (("accuracy", 0), ("log-score", 1)):
        chosen = [int(np.delete(table[:, :, column], number, axis=1).mean(1).argmax()) for number in range(len(crowds))]
        accuracy, log_score = np.mean([table[one, number] for number, one in enumerate(chosen)], axis=0)
        names = sorted({", ".join(map(str, settings[one])) for one in chosen})
        rows.append(
            {"chosen by": what, "accuracy": accuracy, "log-score": f"{log_score:.3f}", "choices": "; ".join(names)}
        )
    low, high = table.mean(1).min(0), table.mean(1).max(0)
    report.table("Settings chosen for each dataset on the other ten, 20 gold labels, asked", rows)
    report.note(
        f"{len(settings)} settings (stories, share that annotations do not tell, gold labels that weights count for, "
        f"power); their means over all eleven are between {low[0]:.2f} and {high[0]:.2f}, and between "
        f"{low[1]:.3f} and {high[1]:.3f}."
    )


def crowd_of(name: str, cache: Path | None) -> Crowd:
    """The gold tasks of a dataset, from the cache where it has them."""
    file = None if cache is None else cache / f"{name}.npz"
    if file is None or not file.exists():
        kept = fitted(name)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, **kept)
    else:
        kept = dict(np.load(file))
    drawn = {
        (n, asked): list(kept[f"{n} {'asked' if asked else 'at random'}"])
        for n, asked in itertools.product(NUMBERS, (False, True))
    }
    known = kept["names"].tolist(), kept["components"], kept["told"], float(kept["depends"])
    return Crowd(*known, kept["gold"], drawn)


def fitted(name: str) -> dict[str, Any]:
    """Label probabilities of the gold tasks by each story and the votes, gold labels, and the rows that are drawn."""
    annotations = cp.load_dataset(name)
    gold = np.asarray(annotations.gold)
    at = np.flatnonzero(gold >= 0)
    annotations = annotations.without_gold()
    auto = cp.fit("auto", annotations, sweeps=0, progress=False)
    fits = dict(auto.fits)
    for story in [story for story in GOLD_SET if story not in fits]:
        fits[story] = cp.fit(story, annotations, sweeps=0, copies="auto", progress=False)
    votes = shares_of_votes(next(iter(fits.values())).annotations)
    found = {
        "names": np.array(list(fits)),
        "components": np.stack([*(fit.posterior[at] for fit in fits.values()), votes[at]]),
        "told": np.array([*(auto.weights.get(story, 0.0) for story in fits), float(not auto.fits)]),
        "depends": usual_votes(auto.fits, auto.weights) / VOTES if auto.fits else 1.0,
        "gold": gold[at],
    }
    ids = [annotations.tasks[int(i)] for i in at]
    for n in NUMBERS:
        asked = [next_gold(auto, n, seed=seed, among=ids)["task"].tolist() for seed in range(DRAWS)]
        found[f"{n} asked"] = np.array([np.searchsorted(at, annotations.tasks.index_of(one)) for one in asked])
        rows = [np.random.default_rng(seed).choice(len(at), n, replace=False) for seed in range(DRAWS)]
        found[f"{n} {AT_RANDOM}"] = np.array(rows)
    print(name, flush=True)
    return found


def scores(crowd: Crowd, setting: Setting, n: int, asked: bool) -> tuple[float, float]:
    """Percent of all tasks that are right, gold ones among them, and mean log-score of the others; means over draws."""
    stories = crowd.names
    keep = [number for number, name in enumerate(stories) if name not in FEWER[setting.stories]] + [len(stories)]
    components = crowd.components[keep].astype(float)
    expected = expected_weights(crowd.told[keep], crowd.depends, most=setting.open)
    centre, stiffness = OF_POWER[setting.power]
    prior = {"prior": setting.prior, "centre": crowd.depends * centre, "stiffness": stiffness}
    found = []
    for rows in crowd.drawn[n, asked]:
        mix = learned(components[:, rows], crowd.gold[rows], expected, **prior)
        found.append(_scored(mixed(components, mix), crowd.gold, rows))
    accuracy, log_score = np.mean(found, axis=0)
    return float(accuracy), float(log_score)


def _scored(probabilities: np.ndarray, gold: np.ndarray, rows: Iterable[int]) -> tuple[float, float]:
    """Accuracy with ties for their share, gold tasks right, and the mean log-score of the others."""
    each = np.arange(len(gold))
    best = probabilities >= probabilities.max(1, keepdims=True) - 1e-6
    right = best[each, gold] / best.sum(1)
    right[rows] = 1.0
    others = np.delete(each, rows)
    return 100 * float(right.mean()), float(np.log(probabilities[others, gold[others]]).mean())


if __name__ == "__main__":
    typer.run(main)
