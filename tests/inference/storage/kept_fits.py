"""Fits that were saved by earlier versions, kept for ever: `python tests/inference/storage/kept_fits.py format-1` adds.

Each is a zip file of the folder and of `labels.json`, what the fit said of its tasks when it was saved. A kept file is
never written anew: it says what users have on their disks.
"""

import json
import sys
import zipfile
from pathlib import Path

KEPT = Path(__file__).parent / "kept"
WITH_PRIOR = ("nuts", "svi")
"""Kinds whose folders have a thousand draws from the prior, of as many tasks as there are: of fewer they are small."""


def labels_of(fit):
    """By task the label and the probabilities of all classes, as JSON."""
    probabilities = fit.probabilities.round(6)
    return {str(t): [str(label), *map(float, probabilities.loc[t])] for t, label in fit.labels["label"].items()}


def keep(fit, name, folder):
    """Write a saved fit and its labels to a zip file, which must be small."""
    fit.save(folder)
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{name}.zip"
    if path.exists():
        raise FileExistsError(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        for file in sorted(Path(folder).iterdir()):
            kept.write(file, file.name)
        kept.writestr("labels.json", json.dumps(labels_of(fit)))


if __name__ == "__main__":
    import tempfile

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from saved_fits import FURTHER, KINDS, made, small_annotations

    for kind in (*KINDS, *FURTHER) if len(sys.argv) < 3 else sys.argv[2:]:
        annotations = small_annotations(n_tasks=2 if kind in WITH_PRIOR else 8)
        with tempfile.TemporaryDirectory() as made_in:
            keep(made(kind, annotations), f"{sys.argv[1]}-{kind}", Path(made_in) / "fit")
