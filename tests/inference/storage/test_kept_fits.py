"""Whatever a version saved loads in every later one, and says the same."""

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

import crowdppl as cp

_SPEC = importlib.util.spec_from_file_location("kept_fits", Path(__file__).with_name("kept_fits.py"))
kept_fits = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kept_fits)
FILES = sorted(kept_fits.KEPT.glob("*.zip"))


def test_files_of_every_format_are_kept_and_small():
    kinds = ("em", "nuts", "svi", "network", "baseline", "network_baseline", "average")
    assert {path.stem for path in FILES} >= {f"format-1-{kind}" for kind in kinds}
    assert all(path.stat().st_size < 50_000 for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kept_fit_loads_and_gives_the_same_labels(path, tmp_path):
    with zipfile.ZipFile(path) as kept:
        kept.extractall(tmp_path)
    expected = json.loads((tmp_path / "labels.json").read_text())
    fit = cp.load_fit(tmp_path)
    found = kept_fits.labels_of(fit)
    assert {task: row[0] for task, row in found.items()} == {task: row[0] for task, row in expected.items()}
    for task, row in expected.items():
        assert found[task][1:] == pytest.approx(row[1:], abs=1e-6)
    for fitted in fit.members.values():
        again = fitted.replace(stored_posterior=None).posterior  # what the story says at the draws that were kept
        assert again == pytest.approx(fitted.posterior, abs=1e-3)
