"""Fits that were kept before the package was rebuilt, which a change may not alter by accident."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "golden_fits.py"


@pytest.mark.slow
def test_every_story_option_and_engine_finds_what_was_kept_to_ten_digits():
    done = subprocess.run([sys.executable, str(SCRIPT), "compare"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_a_fit_that_differs_or_is_missing_is_found(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import golden_fits
    import numpy as np

    kept = {"story/em/posterior": np.ones(2), "story/svi/posterior": np.ones(2), "other/em/posterior": np.ones(2)}
    fitted = {"story/em/posterior": np.array([1.0, 1.5]), "story/svi/posterior": np.ones(2)}

    by_fit = golden_fits.differences(kept, fitted)

    assert by_fit == {"story/em": 0.5, "story/svi": 0.0, "other/em": np.inf}
