"""Figures of irrCAC that tests/data/test_agreement_coefficients.py holds; irrCAC needs an environment of its own.

python -m venv /tmp/irr && /tmp/irr/bin/pip install irrCAC && /tmp/irr/bin/python tests/data/agreement_figures.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from irrCAC.raw import CAC

FILE = Path(__file__).with_suffix(".json")
WEIGHTS = {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"}


def skewed():
    """Sixty tasks of four classes by four workers, of whom a fifth of the annotations is missing."""
    rng = np.random.default_rng(5)
    truth = rng.choice(4, (60, 1), p=[0.6, 0.2, 0.15, 0.05])
    noisy = np.clip(truth + rng.integers(-1, 2, (60, 4)) * (rng.random((60, 4)) < 0.4), 0, 3) + 1.0
    return np.where(rng.random((60, 4)) < 0.2, np.nan, noisy)


PUBLISHED = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def published():
    """Krippendorff (2011), section C: twelve units by four observers."""
    lines = [line.replace(".", "nan").split() for line in PUBLISHED.split("\n") if line]
    return np.array(lines, dtype=float).T


if __name__ == "__main__":
    stored = []
    for matrix in (published(), skewed()):
        figures = {}
        for metric, weights in WEIGHTS.items():
            cac = CAC(pd.DataFrame(matrix), weights=weights, digits=12)
            made = {"gwet_ac": cac.gwet(), "fleiss_kappa": cac.fleiss()}
            figures[metric] = {name: float(one["est"]["coefficient_value"]) for name, one in made.items()}
            figures[metric]["observed"] = float(made["gwet_ac"]["est"]["pa"])
        matrix = [[None if np.isnan(one) else int(one) for one in row] for row in matrix]
        stored.append({"matrix": matrix, "figures": figures})
    FILE.write_text(json.dumps(stored) + "\n")
