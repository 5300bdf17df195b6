"""Draws of posteriors in files, in the layout of posteriordb (Magnusson et al. 2024), which its readers understand.

Below the folder of the database, for a posterior that is called ``data-model``:

- ``posteriors/data-model.json``: names of data and model, dimensions of the parameters;
- ``data/data/data.json.zip`` and ``data/info/data.info.json``: the annotations as arrays, and what they are;
- ``models/info/model.info.json``: the story, and where its program stands;
- ``reference_posteriors/draws/draws/data-model.json.zip``: by chain and scalar parameter, such as ``confusion[1,2,2]``,
  the draws, with three significant digits or more;
- ``reference_posteriors/draws/info/data-model.info.json``: the sampler, its diagnostics, the checks that were made.

A posterior without reference draws has ``"reference_posterior_name": null``, and says why under ``"unmet"``.

Source:
    M. Magnusson, J. Torgander, P.-C. Bürkner, L. Zhang, B. Carpenter and A. Vehtari (2024), "posteriordb: Testing,
    Benchmarking and Developing Bayesian Inference Algorithms", arXiv:2407.04967.
"""

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...data.errors import StorageError

POSTERIORS = "posteriors"
DATA, DATA_INFO = "data/data", "data/info"
MODEL_INFO = "models/info"
DRAWS, DRAWS_INFO = "reference_posteriors/draws/draws", "reference_posteriors/draws/info"


def posterior_names(root: Path) -> list[str]:
    """The names of all posteriors of the database, sorted."""
    return sorted(path.stem for path in (root / POSTERIORS).glob("*.json"))


def file_of(root: Path, part: str, name: str) -> Path:
    """The file of an object in a part of the database."""
    zipped = part in (DATA, DRAWS)
    return root / part / f"{name}{'.json.zip' if zipped else '.json' if part == POSTERIORS else '.info.json'}"


def read_json(root: Path, part: str, name: str) -> dict[str, Any]:
    """Read the object of one file.

    Raises:
        StorageError: there is no such file, or it is no JSON.
    """
    path = file_of(root, part, name)
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return json.loads(archive.read(path.stem))
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def from_scalars(chains: list[dict[str, list[float]]], dimensions: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """Draws ``(chain, draw, ...)`` float32 from what files have, for parameters of these dimensions."""
    found = {}
    for name, shape in dimensions.items():
        of_scalars = [[chain[scalar] for scalar, _ in scalars(name, tuple(shape))] for chain in chains]
        values = np.array(of_scalars, np.float32)  # (chain, scalar, draw)
        found[name] = np.moveaxis(values, 1, 2).reshape(*values.shape[::2], *shape)
    return found


def scalars(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name of each scalar of a parameter, counted from 1 as Stan does, with its index in NumPy."""
    for index in np.ndindex(*shape):
        yield (f"{name}[{','.join(str(i + 1) for i in index)}]" if index else name), index
