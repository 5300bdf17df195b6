"""EM over a scan in a process that has just started: ``streamed.py FILE FOLDER MEMORY ITERATIONS LABELS``.

Prints, as JSON, the seconds until the annotations were coded and sorted in FOLDER, those of each iteration, those of
writing the labels (where LABELS is 1), and the peaks of resident memory up to each of these, in MiB.
"""

import json
import re
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import jax

import crowdppl as cp
from crowdppl.data.store import open_store
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.inference.engines.settings import EMSettings
from crowdppl.inference.fitted.fitted import Fitted
from crowdppl.inference.sources.on_disk import suited_files
from crowdppl.models import find_story


def peak() -> float:
    """MiB; not getrusage's, which a child process inherits from its parent."""
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found) / 2**10


file, folder, memory, iterations, labels = sys.argv[1:]
peaks, imported = {"imported": peak()}, perf_counter()
scan = cp.scan(file, folder=folder, memory=memory)
store = open_store(scan)
prepared_at, peaks["prepared"] = perf_counter(), peak()
model = Model(find_story("dawid_skene"))
source = suited_files(model, store, scan.memory, partial(em.bytes_needed, model))
times = [perf_counter()]
settings = EMSettings(max_iterations=int(iterations), tolerance=-1.0)
outcome = em.run(
    model,
    source,
    jax.random.key(0),
    settings,
    progress=False,
    after=lambda state: times.append(perf_counter()),
)
peaks["fitted"] = peak()
found = {
    "prepare": prepared_at - imported,
    "passes": [after - before for before, after in pairwise(times)],
    "chunks": source.n_batches,
    "history": outcome.history.tolist(),
}
if labels == "1":
    begun = perf_counter()
    cp.Fit.of(Fitted(model, source, outcome)).write_labels(Path(folder) / "labels")
    found["labels"] = perf_counter() - begun
    peaks["labelled"] = peak()
print(json.dumps(found | {"MiB": peaks}))
