"""A fit as files for people and other programs: two tables, the posterior and a picture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from ..inference.plots import plot_confusions
from ..inference.results import Fit, Stack
from ..inference.storage.arviz_data import save_netcdf
from ..inference.storage.fit_folder import StorageError, whole_folder

FILES = {
    "labels.csv": "each task's label and the probabilities of all classes",
    "workers.csv": "each worker's accuracy and spammer score",
    "posterior.nc": "the posterior, for arviz.from_netcdf",
    "workers.png": "the workers' confusion matrices",
}
"""What `export` writes of a fit, and what is in it."""

STACK_FILES = {name: content for name, content in FILES.items() if name != "posterior.nc"} | {
    "comparison.csv": "how well each story predicts what it has not seen, and its weight",
}
"""The same of a stack of fits."""


@contextmanager
def results_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """A new folder that takes the place of `path` when the block ends, and vanishes when the block fails.

    Args:
        path: where the files shall be in the end.
        overwrite: replace a folder that holds files of an earlier `export`, and nothing else.

    Raises:
        StorageError: `path` is a file, cannot be written, or is a folder that may not be replaced.
    """
    path = Path(path).resolve()
    others = sorted(p.name for p in path.iterdir() if p.name not in FILES | STACK_FILES) if path.is_dir() else []
    if overwrite and others:
        raise StorageError(
            f"{path} holds {others[0]!r}{f' and {len(others) - 1} more' if len(others) > 1 else ''}, which a fit did "
            "not write; overwriting would delete it: name another folder"
        )
    with whole_folder(path, overwrite=overwrite) as folder:
        yield folder


def export(fit: Fit | Stack, folder: Path) -> dict[str, str]:
    """Write the files named in `FILES`, or in `STACK_FILES`, to an existing folder.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers.
        folder: where to.

    Returns:
        What was written, and what is in it.
    """
    label_table(fit).to_csv(folder / "labels.csv", encoding="utf-8")
    fit.workers.to_csv(folder / "workers.csv", encoding="utf-8")
    if isinstance(fit, Stack):
        table = fit.weights.to_frame() if fit.comparison is None else fit.comparison
        table.to_csv(folder / "comparison.csv", encoding="utf-8")
    else:
        save_netcdf(fit.idata, folder / "posterior.nc")
    figure = plot_confusions(fit)[0].figure
    try:
        figure.savefig(folder / "workers.png", dpi=130)
    finally:
        import matplotlib.pyplot as plt

        plt.close(figure)
    return STACK_FILES if isinstance(fit, Stack) else FILES


def label_table(fit: Fit | Stack) -> pd.DataFrame:
    """By task: label, probability, entropy, and a column `p_<class>` with the probability of each class."""
    return fit.labels.join(fit.probabilities.set_axis([f"p_{name}" for name in fit.annotations.classes], axis=1))
