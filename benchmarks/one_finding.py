"""Findings one by one: how often each is said of healthy crowds and of others, and what a remedy does to the labels."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import typer
from support.crowd_shapes import HEALTHY, UNTRUSTWORTHY, one_gave_most, two_workers
from support.report import Report

import crowdppl as cp

Shape = Callable[[np.random.Generator], cp.Annotations]

COPYING: dict[str, Shape] = {name: make for name, make in UNTRUSTWORTHY.items() if name.startswith("copies")}
COPYING["judges_llmbar"] = lambda rng: cp.load_dataset("judges_llmbar")
OTHERS: dict[str, Shape] = {name: make for name, make in UNTRUSTWORTHY.items() if "constant" not in name}
ALONE: dict[str, Shape] = {"one of 31 gave most": one_gave_most, "two workers": two_workers}
PARTS = {"shared_error": True, "task_difficulty": True}


def main(draws: int = 10, svi_draws: int = 2, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: crowds of each shape, fitted by EM.
        svi_draws: the same, fitted by SVI, and by EM with two parts.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report("Findings one by one")
    counted: list[tuple[str, dict[str, Any], dict[str, Shape], int]] = [
        ("turned_around", {"story": "dawid_skene"}, HEALTHY | OTHERS, draws),
        ("mode_of_many", {"story": "dawid_skene", **PARTS}, HEALTHY, svi_draws),
        ("two_workers, hangs_on_one", {"story": "majority_vote"}, HEALTHY | ALONE, 2 * draws),
        ("sweeps_apart, leaves_votes", {"story": "one_coin", "method": "svi"}, HEALTHY | OTHERS, svi_draws),
    ]
    as_one = [
        _as_one(shape, make, story, draws if story == "dawid_skene" else svi_draws)
        for story in ("dawid_skene", "auto")
        for shape, make in COPYING.items()
    ]
    report.table("Workers who copy, in full and as one worker (`copies=`): accuracy (mean probability)", as_one)
    for codes, options, shapes, n in counted:
        rows = [_said(shape, make, codes.split(", "), options, n) for shape, make in shapes.items()]
        given = ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "story")
        report.table(f"{codes}: {options['story']}{', ' if given else ''}{given}; {n} draws", rows)
    report.note(
        f"Shapes are described in benchmarks/support/crowd_shapes.py. In the first table dawid_skene has {draws} draws "
        f"of each shape, and auto {svi_draws}; the other tables have shares of the draws in which a finding is said, a "
        "warning or a note, and means of accuracy and mean probability of the labels."
    )
    if write:
        report.write()


def _labels(annotations: cp.Annotations, options: dict[str, Any]) -> tuple[cp.Fit, float, float]:
    """A fit, the accuracy of its labels and their mean probability."""
    gold = np.asarray(annotations.gold)
    fit = cp.fit(annotations=annotations.without_gold(), progress=False, **options)
    right = fit.posterior.argmax(1)[gold >= 0] == gold[gold >= 0]
    return fit, float(right.mean()), float(fit.posterior.max(1).mean())


def _drawn(make: Shape, draws: int) -> Iterable[cp.Annotations]:
    return (make(np.random.default_rng(seed)) for seed in range(draws))


def _as_one(shape: str, make: Shape, story: str, draws: int) -> dict[str, object]:
    """A row for crowds of one shape: the labels by what `copies` says."""
    row: dict[str, object] = {"crowd": shape, "fit": story}
    crowds = list(_drawn(make, 1 if shape == "judges_llmbar" else draws))
    for rule in ("keep", "one"):
        found = [_labels(annotations, {"story": story, "copies": rule})[1:] for annotations in crowds]
        accuracy, confidence = np.mean(found, axis=0)
        row[rule] = f"{accuracy:.3f} ({confidence:.2f})"
    print(*row.values(), sep=" | ", flush=True)
    return row


def _said(shape: str, make: Shape, codes: list[str], options: dict[str, Any], draws: int) -> dict[str, object]:
    """A row for crowds of one shape: how often each finding is said."""
    fits = [_labels(annotations, options) for annotations in _drawn(make, draws)]
    row: dict[str, object] = {"shape": shape}
    for code in codes:
        said = np.mean([any(one.code == code for one in fit.findings) for fit, _, _ in fits])
        row[code] = f"{said:.0%}"
    row["accuracy"] = f"{np.mean([accuracy for _, accuracy, _ in fits]):.2f}"
    row["mean probability"] = f"{np.mean([confidence for _, _, confidence in fits]):.2f}"
    print(*row.values(), sep=" | ", flush=True)
    return row


if __name__ == "__main__":
    typer.run(main)
