"""CoNAL where the common confusions are of any strength, and where tasks have fewer or more annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common_confusions import OURS, PAPER, PUBLISHED, TEST_ACCURACY, rise_table, to_the_end, trained_for
from .conal_synthetic import ANNOTATIONS, COMMON, EPOCHS, LONG, READINGS, TO_THE_END, TRAININGS
from .conal_synthetic import run as run_one
from .experiment import FAILS, HOLDS, NOT_TESTED, TWICE, Cell, Claim, Experiment, Finding, above, draw_spread, mean_sd

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

READING = next(iter(READINGS))
COMMON_RIGHT = (0.2, 0.5, 0.8)
"""How often a common annotation is right: the less, the stronger the common confusions."""

EACH = (1, 3, 5)
"""Annotations of a task."""

METHODS = ("DL-MV", "DL-CL", "AggNet", PUBLISHED, OURS)
RIVALS = METHODS[:3]
STRENGTHS = [{"common": common, "each": ANNOTATIONS} for common in COMMON_RIGHT]
NUMBERS = [{"common": COMMON, "each": each} for each in EACH]
SWEEPS = {
    "figure 4": ("how often a common annotation is right", "common", STRENGTHS),
    "figure 5": ("annotations of a task", "each", NUMBERS),
}
"""By the paper's figure: what is varied, in words and as a setting, and its values beside those of the others."""

SAYS = {
    "figure 4": "however often a common annotation is right",
    "figure 5": "however many annotations a task has",
}


def cells(seeds: int) -> list[Cell]:
    """A cell for each length of training, strength or number of annotations, method and seed."""
    settings = [*STRENGTHS, *(at for at in NUMBERS if at not in STRENGTHS)]
    return [
        {**at, "method": method, **training, "seed": seed}
        for training in TRAININGS
        for at in settings
        for method in METHODS
        for seed in range(seeds)
    ]


def run(common: float, each: int, method: str, seed: int, **sizes: Any) -> dict[str, Any]:
    """Train one network, and measure it on the test tasks and its labels on the annotated ones."""
    found = run_one(READING, method, seed, common_right=common, each=each, **sizes)
    return {name: found[name] for name in ("accuracy", "labels", "rise")}


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Test accuracy of every method along each sweep."""
    if frame.empty:
        return {}
    found = {}
    for epochs in (LONG, None):
        for figure, (what, name, settings) in SWEEPS.items():
            rows = _along(trained_for(frame, epochs), settings)
            if rows.empty:
                continue
            table = rows.groupby(["method", name], sort=False)["accuracy"].agg(mean_sd).unstack()
            title = f"{figure.capitalize()}, by {what}: test accuracy, % after {epochs or EPOCHS} epochs"
            found[title] = table.reindex(columns=[at[name] for at in settings], fill_value="–").fillna("–")
    if "rise" in frame:
        found["Log-posterior that the last quarter of the epochs added, nats an annotation"] = rise_table(frame, EPOCHS)
    return found


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """Test accuracy of every method along each sweep, after the long training."""
    from matplotlib.figure import Figure

    frame = trained_for(frame, LONG)
    if frame.empty:
        return {}
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, (what, name, settings) in zip(figure.subplots(1, len(SWEEPS), sharex=True), SWEEPS.values(), strict=True):
        rows = _along(frame, settings)
        for number, (method, of_one) in enumerate(rows.groupby("method", sort=False)):
            for place, (_, values) in enumerate(of_one.groupby(name)["accuracy"]):
                style = {"color": f"C{number}", "label": None if place else str(method)}
                draw_spread(ax, values, place + 0.1 * number, **style)
        ax.set_yticks(range(len(settings)), [str(at[name]) for at in settings])
        ax.set(ylabel=what, xlabel=TEST_ACCURACY.lower())
    figure.axes[0].legend(fontsize=7)
    return {"sweeps": figure}


def _along(frame: pd.DataFrame, settings: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows of one sweep."""
    return frame[[{"common": c, "each": e} in settings for c, e in zip(frame["common"], frame["each"], strict=True)]]


def _above_along(frame: pd.DataFrame, rival: str, figure: str) -> Finding:
    _, name, settings = SWEEPS[figure]
    found = {at[name]: above(frame, "accuracy", at | {"method": PUBLISHED}, at | {"method": rival}) for at in settings}
    untested = [finding for finding in found.values() if finding.verdict.startswith(NOT_TESTED)]
    if untested:
        return untested[0]
    ours = "; ".join(f"{value}: {finding.ours} ({finding.verdict})" for value, finding in found.items())
    return Finding(ours, HOLDS if all(finding.verdict == HOLDS for finding in found.values()) else FAILS)


def _claim(rival: str, figure: str) -> Claim:
    return Claim(
        f"CoNAL is above {rival}, {SAYS[figure]}.",
        figure,
        "",
        to_the_end(lambda frame: _above_along(frame, rival, figure), EPOCHS, LONG),
        f"{TWICE} {TO_THE_END} It has to be so at each value of what is varied.",
    )


EXPERIMENT = Experiment(
    name="conal-sweeps",
    title="CoNAL and three rivals along the strength of common confusions and the number of annotations.",
    paper=PAPER,
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=tuple(_claim(rival, figure) for figure in SWEEPS for rival in RIVALS),
    notes=(
        f"Crowds and training are those of the experiment conal-synthetic, with the reading '{READING}'; where one "
        f"thing is varied, the other is as there: a common annotation is right in {COMMON:.0%}, and a task has "
        f"{ANNOTATIONS} annotations. The paper's curves are of CIFAR-10's images, which are not among the data that "
        "are open here, so that its values on the axes and its figures are no comparison. CoNAL is judged as "
        f"published; '{OURS}' is in the tables."
    ),
)
