"""Fits of stories in a process of its own, under circumstances that are no matter of the result: ``python
tests/every_fit.py JOB.json``.

A job names the stories, the engine with its options, and circumstances: devices, the number of threads and what Python
hashes strings with (both in the environment), and whether annotations are padded to the sizes of the ladder. What every
fit found is written to a file.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from killed_fits import crowd, found

BINARY = ("two_coin", "item_response")
"""Stories of two classes."""


def run(job):
    """Fit all stories, and write what they found."""
    import jax

    if job["devices"]:
        jax.config.update("jax_num_cpu_devices", job["devices"])
    import crowdppl as cp
    from crowdppl.inference.densities import portable
    from crowdppl.models import WITH_CLASSIFIER

    if job["exact"]:
        portable.is_portable = lambda model, annotations: False
    warnings.simplefilter("ignore")
    for story in job["stories"]:
        needs = story in WITH_CLASSIFIER
        frame, features = crowd(2 if story in BINARY else 3, needs, n_tasks=job["n_tasks"])
        annotations = cp.Annotations.from_frame(frame, features=features)
        options = job["options"] | ({"classifier": "logistic"} if needs else {})
        fit = cp.fit(
            story, annotations, method=job["method"], seed=3, progress=False, devices=job["devices"], **options
        )
        np.savez(Path(job["folder"]) / f"{story}.npz", **found(fit))


def fitted(
    folder, stories, method, options, *, n_tasks=41, devices=None, threads=None, hashes="0", exact=False
) -> dict[str, dict[str, np.ndarray]]:
    """What every story's fit found in a process with these circumstances, by story.

    Args:
        folder: to write to.
        stories: their names.
        method: the engine.
        options: of the engine.
        n_tasks: tasks of the crowd, whom six workers annotate.
        devices: over which tasks are spread; None for fits that know of none.
        threads: of XLA; None for as many as there are cores.
        hashes: Python's PYTHONHASHSEED.
        exact: whether annotations keep their own sizes.
    """
    folder.mkdir()
    job = {"stories": list(stories), "method": method, "options": options, "n_tasks": n_tasks, "folder": str(folder)}
    (folder / "job.json").write_text(json.dumps(job | {"devices": devices, "exact": exact}))
    environment = os.environ | {"PYTHONHASHSEED": hashes} | ({"NPROC": str(threads)} if threads else {})
    command = [sys.executable, __file__, str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    numbers = {}
    for story in stories:
        with np.load(folder / f"{story}.npz") as kept:
            numbers[story] = {name: kept[name] for name in kept.files}
    return numbers


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()))
