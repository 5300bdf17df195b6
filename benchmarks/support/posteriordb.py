"""The writer of posteriordb's layout, which :mod:`crowdppl.inference.checks.posterior_database` describes and reads."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdppl.inference.checks.posterior_database import file_of, scalars

DIGITS = 3  # significant ones that draws have at the least
STEPS = 20  # to a standard deviation, at the least: rounding adds 1 / (12 · 20²) of the variance at the most
INNERMOST = re.compile(r"\[\n[^\[\]{}\"]*\]")  # lists of numbers, over several lines


def write_json(root: Path, part: str, name: str, content: Any) -> None:
    """Write the object of one file; zipped files are the same byte for byte where their content is."""
    path = file_of(root, part, name)
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


def _on_one_line(found: re.Match[str]) -> str:
    return re.sub(r"\n\s*", "", found[0]).replace(",", ", ")


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
