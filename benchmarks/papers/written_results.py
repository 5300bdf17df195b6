"""What is written of an experiment: the rows, the tables, the verdicts, the figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crowdppl.data.atomic import whole_file

from .experiment import Experiment
from .kept_cells import cell_frame

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("claim", "where", "paper", "ours", "verdict", "rule")


def judged(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the claims with the figures that were measured, the verdicts, and the rules that these follow."""
    import pandas as pd

    rows = []
    for claim in experiment.claims:
        finding = claim.judge(frame)
        rows.append((claim.says, claim.where, claim.paper, finding.ours, finding.verdict, claim.rule))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_results(experiment: Experiment, store: Path, folder: Path, seeds: int) -> dict[str, str]:
    """Write the rows, tables, claims and figures of an experiment.

    Args:
        experiment: the experiment.
        store: the file of its runs.
        folder: of what is written; made where there is none.
        seeds: how many.

    Returns:
        What is in each file, by its name in the folder.
    """
    import matplotlib.pyplot as plt

    frame = cell_frame(experiment, store, seeds)
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"rows.csv": "every run with its settings", "claims.csv": "the claims with their verdicts"}
    tables = {"rows.csv": frame, "claims.csv": judged(experiment, frame)}
    for number, (title, table) in enumerate(experiment.tables(frame).items(), start=1):
        name = f"table_{number}.csv"
        contents[name], tables[name] = title, table.reset_index()
    for name, table in tables.items():
        with whole_file(folder / name) as part:
            table.to_csv(part, index=False, encoding="utf-8")
    for stem, figure in experiment.figures(frame).items():
        try:
            with whole_file(folder / f"{stem}.png") as part:
                figure.savefig(part, dpi=130, format="png")
        finally:
            plt.close(figure)
        contents[f"{stem}.png"] = "figure"
    return contents


def cell_text(value: object) -> str:
    """Return what stands in a table's cell."""
    if isinstance(value, float):
        return "–" if value != value else f"{value:g}" if value == round(value, 3) else f"{value:.2f}"
    return str(value)
