"""Fits in a process of their own that is killed at a random moment: ``python tests/killed_fits.py JOBS.json``.

A job is what `crowdppl.fit` is asked for. All jobs are run in their order, each with a folder for its checkpoint; what
each found is written to a file. Where the file of jobs says so, the process sends itself SIGKILL some time after the
first note that a job takes of where it stands: in the midst of a step, of writing a checkpoint, or of what follows.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

SLACK = 1.2  # kills come up to so many times as late as a job takes from its first note on


def crowd(n_classes=2, features=False, n_tasks=40, n_workers=6, seed=0):
    """A table of annotations that are right more often than not, and features that tell the classes apart."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task, worker = np.indices((n_tasks, n_workers)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.5, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    x = rng.normal(size=(n_tasks, 2)).astype(np.float32) + 2 * truth[:, None]
    return frame, dict(enumerate(x)) if features else None


def fitted(job, checkpoint, table):
    """The fit that a job asks for, kept in a folder; in none where that is None. A scan is of the file ``table``."""
    import crowdppl as cp

    given = {"progress": False, **job["options"]}
    if checkpoint is not None:
        given |= {"checkpoint": checkpoint, "every": job.get("every", 0), "resume": True}
    frame, features = crowd(job.get("classes", 2), job.get("features", False))
    if "module" in job:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
        layers = [torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3), torch.nn.Linear(4, 2)]
        given["classifier"] = torch.nn.Sequential(*layers)
    data = cp.Annotations.from_frame(frame, features=features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "rows" in job:  # of a chunk
            from crowdppl.inference.sources import on_disk

            on_disk.LEAST_ROWS = on_disk.MOST_ROWS = job["rows"]
            if not table.exists():
                frame.to_parquet(table.with_suffix(".part"), index=False)
                os.replace(table.with_suffix(".part"), table)
            data = cp.scan(table)
        return cp.fit(job["story"], data, **given)


def found(fit):
    """All numbers of a fit."""
    outcome = fit.outcome
    named = {f"draws {name}": value for name, value in outcome.draws.items()}
    named |= {f"fixed {name}": value for name, value in outcome.fixed.items()}
    named |= {f"stats {name}": value for name, value in outcome.stats.items()}
    if hasattr(fit, "posterior"):
        named["posterior"] = fit.posterior
    return {name: np.asarray(value) for name, value in named.items()} | {"history": outcome.history}


def run(spec):
    """Run all jobs."""
    from crowdppl.inference.engines import checkpoints

    note = checkpoints.Checkpoints.save
    folder, kill = Path(spec["folder"]), spec.get("kill")
    for number, job in enumerate(spec["jobs"]):
        out, began = folder / f"{number}.npz", []

        def noting(*arguments, number=number, began=began, **options):
            if not began:
                began.append(time.perf_counter())
                if kill is not None and kill["job"] == number:
                    timer = threading.Timer(kill["after"], os.kill, (os.getpid(), signal.SIGKILL))
                    timer.daemon = True
                    timer.start()
            return note(*arguments, **options)

        if out.exists():
            continue
        checkpoints.Checkpoints.save = noting
        checkpoint = folder / f"checkpoint {number}" if spec["keeps"] else None
        numbers = found(fitted(job, checkpoint, folder / "crowd.parquet"))
        seconds = time.perf_counter() - began[0] if began else 0.0
        with open(folder / "part", "wb") as file:
            np.savez(file, seconds=seconds, **numbers)
        os.replace(folder / "part", out)


def start(folder, jobs, *, keeps=True, kill=None):
    """Run jobs in a process of their own, and return its exit status."""
    folder.mkdir(exist_ok=True, parents=True)
    spec = folder / "jobs.json"
    spec.write_text(json.dumps({"folder": str(folder), "jobs": jobs, "keeps": keeps, "kill": kill}))
    done = subprocess.run([sys.executable, __file__, spec], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def read(folder, number):
    """What a job found, and the seconds that it took from its first note on."""
    with np.load(folder / f"{number}.npz") as kept:
        numbers = {name: kept[name] for name in kept.files}
    return numbers, float(numbers.pop("seconds"))


def killed(folder, jobs, rng, n_kills):
    """Run jobs in processes that are killed at random moments, until so many kills have come and all jobs are done.

    Each kill is meant for one job, which gets its share of them in a round; where that was over before, the next is.

    Returns:
        the folders of the rounds, in each of which all jobs came to their end, and how many kills came.
    """
    seconds = [1.0] * len(jobs)
    rounds, n_done = [], 0
    while not rounds or n_done < n_kills:
        rounds.append(folder / f"round {len(rounds)}")
        meant = [0] * len(jobs)
        while True:
            left = [i for i in range(len(jobs)) if not (rounds[-1] / f"{i}.npz").exists()]
            left = [i for i in left if meant[i] < -(-n_kills // len(jobs))]
            kill = None
            if n_done < n_kills and left:
                meant[left[0]] += 1
                kill = {"job": left[0], "after": rng.uniform(0, SLACK * seconds[left[0]])}
            status = start(rounds[-1], jobs, kill=kill)
            n_done += status != 0
            for i in range(len(jobs)):
                if (rounds[-1] / f"{i}.npz").exists():
                    seconds[i] = max(read(rounds[-1], i)[1], 0.05)
            if status == 0:
                break
    return rounds, n_done


def assert_same(one, other):
    """Both found the same bits."""
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()))
