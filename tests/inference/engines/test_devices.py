"""Tasks spread over several devices, and over several processes, give what one device gives."""

import json
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

import crowdppl as cp
from crowdppl.inference.sources.devices import mesh_of, raise_if_different

ON_EIGHT = """
import json, sys
import jax
jax.config.update("jax_num_cpu_devices", 8)
import numpy as np
import crowdppl as cp

method, options, stories = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
for story in stories:
    annotations, _ = cp.simulate(
        story, n_tasks=61, n_workers=7, annotations_per_task=3, seed=1, n_classes=3
    )
    fits = [
        cp.fit(story, annotations, method=method, progress=False, devices=devices, **options) for devices in (None, 8)
    ]
    one, eight = (fit.fitted.outcome for fit in fits)
    far = {name: float(np.abs(one.draws[name] - eight.draws[name]).max()) for name in one.draws}
    labels = [fit.probabilities.to_numpy() for fit in fits]
    far["label probabilities"] = float(np.abs(labels[0] - labels[1]).max())
    print(json.dumps({"story": story, "far": far}))
"""

OF_TWO_PROCESSES = """
import sys
import jax
me, port = int(sys.argv[1]), sys.argv[2]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_cpu_enable_async_dispatch", False)
jax.distributed.initialize(f"127.0.0.1:{port}", 2, me)
import numpy as np
import crowdppl as cp

whole, _ = cp.simulate("dawid_skene", n_tasks=50, n_workers=6, n_classes=3, annotations_per_task=3, seed=2)
own = np.arange(31) if me == 0 else np.arange(31, 50)
rows = np.isin(whole.task, own)
annotations = whole.replace(
    task=whole.task[rows] - own[0], worker=whole.worker[rows], label=whole.label[rows], gold=None, tasks=cp_ids(own)
)
for story in ("dawid_skene", "glad"):
    fit = cp.fit(story, annotations, progress=False, devices="all", max_iterations=20)
    np.savez(f"{sys.argv[3]}/{story}{me}.npz", probabilities=fit.probabilities.to_numpy(), **fit.fitted.outcome.draws)
""".replace("cp_ids(own)", "type(whole.tasks)(own.tolist())")


def run(program, *arguments):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


SOME = (
    "dawid_skene",
    "glad",
    "independent_confusion_subtypes",
)  # tables only, parameters by task, a random start by task


def test_em_on_eight_devices_equals_that_on_one():
    """Of all stories and engines `test_equal_results` says so of four."""
    found = run(ON_EIGHT, "em", json.dumps({"max_iterations": 5, "restarts": 2, "sweeps": 0}), *SOME)
    assert [line["story"] for line in found] == list(SOME)
    for line in found:
        assert max(line["far"].values()) < 2e-4, line


@pytest.mark.slow  # on cores that other work holds too, gloo's messages come in another order, and it ends a process
def test_two_processes_with_their_own_tasks_fit_what_one_process_fits(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", OF_TWO_PROCESSES, str(me), str(port), str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for me in (0, 1)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-3000:]
    whole, _ = cp.simulate("dawid_skene", n_tasks=50, n_workers=6, n_classes=3, annotations_per_task=3, seed=2)
    for story, by_task in (("dawid_skene", ()), ("glad", ("difficulty",))):
        one = cp.fit(story, whole.without_gold(), progress=False, max_iterations=20)
        parts = [np.load(tmp_path / f"{story}{me}.npz") for me in (0, 1)]
        labels = np.concatenate([part["probabilities"] for part in parts])
        np.testing.assert_allclose(labels, one.probabilities.to_numpy(), atol=2e-4)
        for name, value in one.fitted.outcome.draws.items():
            if name in by_task:
                np.testing.assert_allclose(np.concatenate([part[name] for part in parts], 2), value, atol=2e-3)
            else:
                for part in parts:
                    np.testing.assert_allclose(part[name], value, atol=2e-4)


def test_processes_that_know_other_workers_are_refused():
    with pytest.raises(cp.AnnotationError, match=r"process 1 has other workers than process 0.*workers=\[…\]"):
        raise_if_different(np.array([[9, 9, 3, 2, 111, 5], [8, 8, 3, 2, 112, 5]]))
    raise_if_different(np.array([[9, 9, 3, 2, 111, 5], [8, 8, 3, 2, 111, 5]]))


@pytest.mark.parametrize("devices", [0, 2, "some", True, 1.5, ["cpu"]])
def test_devices_that_are_not_there_are_refused(devices, tiny):
    with pytest.raises(ValueError, match=r"devices=.*'all'"):
        cp.fit("dawid_skene", tiny, devices=devices, progress=False)


def test_one_device_over_a_mesh_gives_what_the_data_themselves_give(tiny):
    one, mesh = (cp.fit("dawid_skene", tiny, devices=devices, progress=False) for devices in (None, 1))
    np.testing.assert_allclose(one.probabilities, mesh.probabilities, atol=1e-5)


def test_cpus_of_several_processes_that_run_programs_one_beside_another_are_refused(monkeypatch):
    """Sums of two programs at once would meet in another order in each process, which ends it."""
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match=r"devices='all'.*jax_cpu_enable_async_dispatch.*False"):
        mesh_of("all")


def test_minibatches_and_pyro_on_several_devices_are_refused(tiny):
    with pytest.raises(ValueError, match="leave out devices"):
        cp.fit("dawid_skene", tiny, devices=1, batch_size=2, progress=False)
    with pytest.raises(ValueError, match="backend='pyro' runs on one device"):
        cp.fit("dawid_skene", tiny, devices=1, backend="pyro", method="svi", progress=False)
