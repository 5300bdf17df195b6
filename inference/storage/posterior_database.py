"""Draws of posteriors in files, in the layout of posteriordb (Magnusson et al. 2024), which its readers understand.

Below the folder of the database, for a posterior that is called ``data-model``:

- ``posteriors/data-model.json``: names of data and model, dimensions of the parameters;
- ``data/data/data.json.zip`` and ``data/info/data.info.json``: the annotations as arrays, and what they are;
- ``models/info/model.info.json``: the story, and where its program stands;
- ``reference_posteriors/draws/draws/data-model.json.zip``: by chain and scalar parameter, such as ``confusion[1,2,2]``,
  the draws, rounded as :func:`rounded` says;
- ``reference_posteriors/draws/info/data-model.info.json``: the sampler, its diagnostics, the checks that were made.

A posterior without reference draws has ``"reference_posterior_name": null``, and says why under ``"unmet"``.

Source:
    M. Magnusson, J. Torgander, P.-C. Bürkner, L. Zhang, B. Carpenter and A. Vehtari (2024), "posteriordb: Testing,
    Benchmarking and Developing Bayesian Inference Algorithms", arXiv:2407.04967.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...data.errors import StorageError

DIGITS = 3  # significant ones that draws have at the least
STEPS = 20  # to a standard deviation, at the least: rounding adds 1 / (12 · 20²) of the variance at the most

POSTERIORS = "posteriors"
DATA, DATA_INFO = "data/data", "data/info"
MODEL_INFO = "models/info"
DRAWS, DRAWS_INFO = "reference_posteriors/draws/draws", "reference_posteriors/draws/info"

INNERMOST = re.compile(r"\[\n[^\[\]{}\"]*\]")  # lists of numbers, over several lines


def posterior_names(root: Path) -> list[str]:
    """The names of all posteriors of the database, sorted."""
    return sorted(path.stem for path in (root / POSTERIORS).glob("*.json"))


def read_json(root: Path, part: str, name: str) -> dict[str, Any]:
    """Read the object of one file.

    Raises:
        StorageError: there is no such file, or it is no JSON.
    """
    path = root / part / f"{name}{_suffix(part)}"
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return json.loads(archive.read(path.stem))
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def write_json(root: Path, part: str, name: str, content: Any) -> None:
    """Write the object of one file; zipped files are the same byte for byte where their content is."""
    path = root / part / f"{name}{_suffix(part)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        text = json.dumps(content, separators=(",", ":"))
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo(path.stem), text, zipfile.ZIP_BZIP2, 9)
    else:
        text = json.dumps(content, indent=1, ensure_ascii=False)
        path.write_text(INNERMOST.sub(_on_one_line, text) + "\n", encoding="utf-8")


def rounded(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Draws ``(chain, draw, ...)`` in float32, as coarse as files have them.

    A draw has three significant digits, and more where these would be coarser than a twentieth of the standard
    deviation. Monte Carlo error is far larger, and files of all digits would be four times as large.
    """
    return {name: _rounded(values).astype(np.float32) for name, values in draws.items()}


def by_scalar(draws: Mapping[str, np.ndarray]) -> list[dict[str, list[float]]]:
    """Draws ``(chain, draw, ...)`` as files have them: by chain, then by the name of each scalar."""
    short = {name: _rounded(values) for name, values in draws.items()}
    n_chains = len(next(iter(draws.values())))
    return [
        {
            scalar: values[chain][:, *index].tolist()
            for name, values in short.items()
            for scalar, index in scalars(name, values.shape[2:])
        }
        for chain in range(n_chains)
    ]


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


def _on_one_line(found: re.Match[str]) -> str:
    return re.sub(r"\n\s*", "", found[0]).replace(",", ", ")


def _suffix(part: str) -> str:
    if part in (DATA, DRAWS):
        return ".json.zip"
    return ".json" if part == POSTERIORS else ".info.json"


def _rounded(draws: np.ndarray) -> np.ndarray:
    """Draws ``(chain, draw, ...)`` rounded, as the nearest doubles, which print short."""
    values = np.asarray(draws, float)
    with np.errstate(divide="ignore"):
        power = np.floor(np.log10(np.abs(values)))
        fine = np.ceil(-np.log10(values.std((0, 1), keepdims=True) / STEPS))
    power[values == 0] = DIGITS  # zero has no digits
    fine[~np.isfinite(fine)] = -np.inf  # a constant is as fine as it is
    decimals = np.maximum(DIGITS - 1 - power, fine).astype(int)
    out = np.empty_like(values)
    for d in np.unique(decimals):
        at = decimals == d
        out[at] = [round(value, int(d)) for value in values[at].tolist()]
    return out
