"""Every story with every option by every engine in double precision.

``python benchmarks/golden_fits.py compare`` fits again and prints the largest difference of each fit from the one that
is kept in ``benchmarks/golden/fits.npz``; ``write`` keeps new ones; a further argument takes those fits alone whose
names have it in them. A change that is to leave every result as it is leaves these as they are.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).with_name("golden") / "fits.npz"
TESTS = Path(__file__).parents[1] / "tests"  # which has the list of options
ENGINES: dict[str, dict[str, Any]] = {
    "em": {"max_iterations": 200, "sweeps": 0},
    "svi": {"max_iterations": 40, "draws": 4, "sweeps": 0},
    "nuts": {"warmup": 6, "draws": 4, "chains": 1},
}
"""By engine, options that make its fits short."""


def fits(only: str = "") -> dict[str, np.ndarray]:
    """Label posterior, parameters and history of each fit, by ``story-options/engine/quantity``.

    Args:
        only: fits whose names have this in them.
    """
    from story_options import DEFAULTS, FURTHER

    import crowdppl as cp
    from crowdppl.models import WITH_CLASSIFIER

    numbers: dict[str, np.ndarray] = {}
    for case in [*DEFAULTS, *FURTHER]:
        options = dict(case.options)
        annotations = case.annotations()
        if case.story in WITH_CLASSIFIER and "truth_prior" not in options:
            features = np.random.default_rng(1).normal(size=(annotations.n_tasks, 2)).astype(np.float32)
            annotations, options["classifier"] = (
                annotations.replace(features=features),
                cp.Classifier("logistic", prior=None),
            )
        for engine, settings in ENGINES.items():
            name = f"{case.name}/{engine}"
            if only not in name:
                continue
            fit = cp.fit(case.story, annotations, method=engine, seed=3, progress=False, **settings, **options)
            numbers[f"{name}/posterior"] = np.asarray(fit.posterior)
            numbers[f"{name}/last"] = np.asarray(fit.history)[-1:]
            for site, draws in fit.draws.items():
                numbers[f"{name}/{site}"] = np.asarray(draws)
    return numbers


def differences(kept: dict[str, np.ndarray], fitted: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest absolute difference by fit; infinite where a quantity is missing or has another shape."""
    by_fit: dict[str, float] = {}
    for name in sorted(kept.keys() | fitted.keys()):
        fit = name.rpartition("/")[0]
        one, other = kept.get(name), fitted.get(name)
        if one is None or other is None or one.shape != other.shape:
            difference = float("inf")
        else:
            difference = float(np.max(np.abs(one - other), initial=0.0)) if one.size else 0.0
        by_fit[fit] = max(by_fit.get(fit, 0.0), difference)
    return by_fit


def main(verb: str, only: str = "") -> int:
    """Write the fits, or compare with those that are kept; the exit status is 1 where one differs by over 1e-10."""
    warnings.simplefilter("ignore")
    fitted = fits(only)
    with np.load(KEPT) as file:
        kept = dict(file)
    if verb == "write":
        np.savez_compressed(KEPT, **{name: value for name, value in kept.items() if only not in name} | fitted)
        print(f"{len(fitted)} arrays in {KEPT}")
        return 0
    kept = {name: value for name, value in kept.items() if only in name}
    by_fit = differences(kept, fitted)
    changed = {name: value for name, value in by_fit.items() if not value <= 1e-10}
    for name, value in sorted(changed.items(), key=lambda item: -item[1]):
        print(f"{value:8.1e}  {name}")
    print(f"{len(by_fit) - len(changed)} of {len(by_fit)} fits are equal to 1e-10")
    return int(bool(changed))


if __name__ == "__main__":
    os.environ["JAX_ENABLE_X64"] = "1"
    sys.path.insert(0, str(TESTS))
    sys.exit(main(*sys.argv[1:]))
