"""The folder that `crowdppl fit` writes: the saved fit, tables for people and other programs, and a picture."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.atomic import whole_folder
from ..data.errors import AnnotationError, StorageError, warn
from ..data.text_files import suffix_of
from .request import SAVED, Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .. import Fit
    from ..data import Annotations

GROUPS = "worker_groups.csv"
TOOLS = {
    "label-studio": ("label-studio.json", "labels as predictions with scores, for Label Studio to import"),
    "argilla": ("argilla.json", "labels as suggestions with scores, for Argilla"),
    "hf": ("hf.parquet", "labels and soft labels, for Hugging Face datasets"),
    "jsonl": ("labels.jsonl", "label of each task, and the probabilities of all classes"),
    "inspect": ("inspect", "copies of inspect_ai's logs, with crowdppl as one more scorer"),
}
"""The file or folder that is written for each tool, and what is in it."""
FILES = {
    "labels.csv": "label of each task, and the probabilities of all classes",
    "workers.csv": "whom to review and why, accuracy and spammer score of each worker",
    "workers.png": "confusion matrices of the workers",
    GROUPS: "groups of workers of whom the same is shown",
    **dict(TOOLS.values()),
    "ranking.csv": "score and rank of each item that was compared",
    "ranking.png": "scores of the items that were compared",
    "questions.csv": "agreement, doubtful labels and classes of each question",
    "totals.csv": "total score over the questions, or number of tags, of each task",
    "comparison.csv": "the weight of each story, and of a comparison how well it predicts held-out annotations",
    "posterior.nc": "posterior and log-likelihood, for arviz.from_netcdf",
    "weights.safetensors": "weights of the classifier",
    "manifest.json": "story, options and checksums; crowdppl report reads the folder, and crowdppl.load_fit in Python",
    "labels": "Parquet data set: label of each task, and the probabilities of all classes",
    "parameters.nc": "the story's parameters, or SVI's draws of them, for xarray.open_dataset",
}
"""The files of a fit, in memory and streamed, and what is in each.

Those of an average's second story have ``_1`` before their suffix.
"""


def is_of_fit(name: str) -> bool:
    """Return whether a fit writes a file of that name."""
    return _of_first_story(name) in FILES


def files_of_fit(names: Iterable[str]) -> dict[str, str]:
    """Return what is in each of a fit's files, in the order of :data:`FILES`, and of a file by the stories' numbers."""
    order = list(FILES)
    own = sorted(filter(is_of_fit, names), key=lambda name: (order.index(_of_first_story(name)), len(name), name))
    return {name: FILES[_of_first_story(name)] for name in own}


def _of_first_story(name: str) -> str:
    """The name of a file without the number of its story."""
    return re.sub(r"_\d+(?=\.(nc|safetensors)$)", "", name)


def check_privacy(workers: str, key: Path | None, min_group: int | None, *, plot: bool = False) -> None:
    """Refuse what says nothing of the workers in the output, before anything is computed.

    Raises:
        UnknownNameError: there is no such way to show workers.
        AnnotationError: a key is missing, none, or for nothing; or single workers are asked for where they are
            left out, or groups beside single workers.
    """
    if workers == "keep" and key is None and min_group is None:
        return
    from ..data.pseudonyms import check_workers, read_key

    check_workers(workers, key)
    if workers == "hash":
        read_key(key)
    if plot and workers == "drop":
        raise AnnotationError(
            "--plot draws the confusion matrix of each worker, and --workers drop leaves single workers out; leave out "
            "--plot, or give --workers hash for pseudonyms"
        )
    if min_group is not None and workers != "drop":
        raise AnnotationError(
            f"--min-group {min_group} keeps single workers out of the output, and --workers {workers} writes them; "
            "give --workers drop"
        )


def named_for_others(annotations: Annotations, workers: str, key: Path | None) -> Annotations:
    """The annotations with their workers' names, with pseudonyms, or, where workers are left out, with their numbers.

    What a fit of them says on the way names nobody.
    """
    if workers == "keep" or not annotations.named:
        return annotations
    if workers == "hash":
        from ..data.pseudonyms import read_key

        return annotations.pseudonymised(read_key(key))
    return annotations.with_worker_names({name: f"worker {i}" for i, name in enumerate(annotations.workers)})


def shown_to_others(result: Any, workers: str) -> Any:
    """The result, or its labels alone where workers are left out."""
    from .. import without_workers

    return without_workers(result) if workers == "drop" else result


@contextmanager
def output_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a new folder that takes the place of `path` when the block ends, and vanishes when the block fails.

    Args:
        path: where the files shall be in the end.
        overwrite: replace a folder that holds files of an earlier fit, and nothing else.

    Raises:
        StorageError: `path` is a file, cannot be written, or is a folder that may not be replaced.
    """
    path = Path(path).resolve()
    names = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    others = [name for name in names if not is_of_fit(name)]
    if overwrite and others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise StorageError(
            f"{path} holds {others[0]!r}{more}, which a fit did not write and overwriting would delete; name another "
            "folder"
        )
    with whole_folder(path, overwrite=overwrite) as folder:
        yield folder


def write_for_tool(result: Fit, folder: Path, to: str, request: Request) -> dict[str, str]:
    """Write the labels for one of `TOOLS`; what is in the file, by its name.

    Where the tool's export was read, Label Studio's tasks keep their data, and labels are of its question.

    Raises:
        AnnotationError: the fit is streamed.
    """
    if result.on_disk:
        raise AnnotationError(f"--to {to} takes a fit in memory; labels of a streamed fit are in the folder labels")
    name, about = TOOLS[to]
    question = request.question if to in ("label-studio", "argilla") else None
    source = request.file if to == "inspect" or _is_export_of(to, request.file) else None
    result.write_labels(folder / name, to=to, question=question, source=source)
    return {name: about}


def _is_export_of(tool: str, file: str) -> bool:
    """Return whether a file is the tool's export: Label Studio's tasks with data in JSON, or Argilla's records."""
    from ..data.exports.json_tools import is_argilla
    from ..data.exports.opening import TEXT, records_in
    from ..data.json_files import JSON

    suffixes = {"label-studio": (".json",), "argilla": (*JSON, *TEXT, ".parquet")}.get(tool, ())
    if suffix_of(file) not in suffixes or not Path(file).is_file():
        return False
    records = records_in(Path(file)) or []
    return any(map(is_argilla, records)) if tool == "argilla" else all("data" in each for each in records)


def write_results(result: Fit, folder: Path, *, plot: bool = False) -> dict[str, str]:
    """Write `FILES` of a fit, of an average of several, or of a streamed fit to an existing folder.

    The files of workers are left out where no worker is named, and manifest.json where ids are of a type that it cannot
    hold (a warning says so).

    Args:
        result: the fit.
        folder: where to; it is empty.
        plot: draw the workers' confusion matrices too, of a fit in memory, and the items' scores where it ranks them.

    Returns:
        What is in each of the files that were written, by name.
    """
    from ..data.harmless_csv import write_csv
    from ..inference.fitted.item_ranking import ranks_items
    from ..inference.fitted.question_frame import has_totals
    from ..inference.storage.label_files import label_table

    named = result.source.named
    if result.on_disk:
        result.write_labels(folder / "labels")
        parameters = result.draws if result.has_draws else result.parameters
        parameters.to_netcdf(folder / "parameters.nc", engine="h5netcdf")
    else:
        if result.is_average:
            table = result.weights.to_frame() if result.comparison is None else result.comparison
            write_csv(table, folder / "comparison.csv")
        _save(result, folder)
        write_csv(label_table(result), folder / "labels.csv")
        if ranks_items(result):
            write_csv(result.ranking, folder / "ranking.csv")
            if plot:
                from .. import plot_ranking

                _draw(plot_ranking(result), folder / "ranking.png")
        if len(result.annotations.questions):
            write_csv(result.questions, folder / "questions.csv")
        if has_totals(result):
            write_csv(result.totals, folder / "totals.csv")
        if plot and named:
            from .. import plot_confusions

            _draw(plot_confusions(result)[0], folder / "workers.png")
    if named:
        write_csv(result.workers, folder / "workers.csv")
    return files_of_fit(os.listdir(folder))


def _save(fit: Fit, folder: Path) -> None:
    """Write the files that `crowdppl.load_fit` reads; posterior.nc alone where ids cannot be saved."""
    try:
        fit.save(folder / "saved")
    except AnnotationError as error:
        from ..inference.storage.arviz_groups import save_netcdf

        warn(f"{SAVED} is not written, so that crowdppl report and crowdppl.load_fit cannot read the folder: {error}")
        save_netcdf(fit.idata, folder / "posterior.nc")
    else:
        for file in (folder / "saved").iterdir():
            file.replace(folder / file.name)
    shutil.rmtree(folder / "saved", ignore_errors=True)


def _draw(axes: Axes, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = axes.get_figure(root=True)
    assert figure is not None
    try:
        figure.savefig(path, dpi=130)
    finally:
        plt.close(figure)
