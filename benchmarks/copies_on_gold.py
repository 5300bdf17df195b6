"""Workers who agree as copies do: how often gold labels tell copies from able workers, by how many there are."""

from collections import Counter
from typing import Any

import typer
from support.panels import first_three, panel_of
from support.report import Report

from crowdppl.inference.findings.copies_on_gold import WORDS, on_gold

SHAPES: dict[str, dict[str, Any]] = {
    "copies, no better than the rest": {"copied": 0.95, "ours": 0.75, "others": 0.75},
    "copies, better than the rest": {"copied": 0.95, "ours": 0.85, "others": 0.6},
    "able, independent": {"copied": 0.0, "ours": 0.95, "others": 0.7},
    "able, independent, misleading tasks": {"copied": 0.0, "ours": 0.95, "others": 0.7, "misleading": 0.2},
    "as able as the rest, misleading tasks": {"copied": 0.0, "ours": 0.75, "others": 0.75, "misleading": 0.3},
    "four classes: half copies, better": {"copied": 0.5, "ours": 0.7, "others": 0.6, "n_classes": 4},
    "four classes: able, misleading tasks": {
        "copied": 0.0,
        "ours": 0.95,
        "others": 0.7,
        "misleading": 0.2,
        "n_classes": 4,
    },
}


def main(panels: int = 200, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        panels: of each shape and number of gold labels.
        write: refresh this section of RESULTS.md.
    """
    report = Report("Copies or better, by gold labels")
    rows = [_row(shape, n_gold, panels) for shape in SHAPES for n_gold in (10, 20, 50, 150)]
    report.table("Three judges who agree, of seven: told, % of the panels", rows)
    report.note(
        f"{panels} panels each of 300 tasks of two classes, or of four (benchmarks/support/panels.py). Who copy do so "
        "in 95 % of the tasks, or in half. A misleading task misleads any judge with a probability of 0.6."
    )
    if write:
        report.write()


def _row(shape: str, n_gold: int, panels: int) -> dict[str, Any]:
    told: Counter[str] = Counter()
    for seed in range(panels):
        annotations = panel_of(seed, n_gold=n_gold, **SHAPES[shape])
        found = on_gold(annotations, first_three(annotations))
        told["too few" if found is None else found.told] += 1
    return {"shape": shape, "gold labels": n_gold} | {name: 100 * told[name] / panels for name in WORDS}


if __name__ == "__main__":
    typer.run(main)
