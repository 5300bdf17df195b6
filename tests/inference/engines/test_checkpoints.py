"""A fit's checkpoint: the same bits with it and without, refusals that name what differs, and interruptions."""

import errno
import functools
import io
import json
import os
import pickle
import signal
import sys
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.data import atomic
from crowdppl.inference.engines import checkpoints
from crowdppl.inference.engines.checkpoints import (
    CheckpointOptions,
    Checkpoints,
    CheckpointWarning,
    decoded,
    encoded,
    read,
    seconds,
)
from crowdppl.inference.engines.same_fit import described
from crowdppl.inference.sources import on_disk

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")

FITS = {
    "em": {"tolerance": 0.0, "max_iterations": 120},
    "svi": {"method": "svi", "max_iterations": 250, "draws": 10},
    "nuts": {"method": "nuts", "warmup": 60, "draws": 70, "chains": 3},
}
DAMAGED = "is damaged.*delete it to begin anew"


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    task, worker = np.indices((30, 5)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.55, 0.95, 5)[worker]
    return cp.Annotations.from_frame(
        pd.DataFrame({"task": task, "worker": worker, "label": np.where(right, truth[task], 1 - truth[task])})
    )


@pytest.fixture(scope="module")
def whole(crowd):
    """A fit of each engine without a checkpoint, made once."""

    @functools.cache
    def of(method):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cp.fit("one_coin", crowd, progress=False, **FITS[method])

    return of


def assert_same(one, other):
    assert one.outcome.history.tolist() == other.outcome.history.tolist()
    for kind in ("draws", "stats"):
        values, others = getattr(one.outcome, kind), getattr(other.outcome, kind)
        assert set(values) == set(others)
        for name, value in values.items():
            np.testing.assert_array_equal(others[name], value, err_msg=name)


def signalled(monkeypatch, number, n_notes):
    """Have the process get a signal when a fit has taken so many notes of where it stands."""
    note, taken = Checkpoints.save, []

    def noting(self, *arguments, **options):
        note(self, *arguments, **options)
        taken.append(1)
        if len(taken) == n_notes:
            signal.raise_signal(number)

    monkeypatch.setattr(Checkpoints, "save", noting)


@pytest.mark.parametrize("method", FITS)
def test_a_fit_in_pieces_with_a_checkpoint_after_each_is_the_fit_without(crowd, whole, tmp_path, method):
    options = {"progress": False, "checkpoint": tmp_path / "at", **FITS[method]}
    kept = cp.fit("one_coin", crowd, every=0, **options)
    assert_same(kept, whole(method))
    assert os.listdir(tmp_path / "at") == [checkpoints.FILE]
    again = cp.fit("one_coin", crowd, resume=True, **options)  # what is finished is there at once
    assert_same(again, whole(method))


@pytest.mark.parametrize(("method", "n_notes"), [("em", 2), ("svi", 2), ("svi", 6), ("nuts", 2), ("nuts", 5)])
def test_ctrl_c_says_how_to_go_on_and_the_fit_goes_on_to_the_same_bits(
    crowd, whole, tmp_path, monkeypatch, method, n_notes
):
    options = {"progress": False, "checkpoint": tmp_path, **FITS[method]}
    with monkeypatch.context() as patch:
        signalled(patch, signal.SIGINT, n_notes)
        with pytest.raises(
            KeyboardInterrupt, match=r"stopped; .*the same call with checkpoint=.*, resume=True goes on"
        ):
            cp.fit("one_coin", crowd, every="1h", **options)  # written because it was interrupted
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    _, stages = read(tmp_path / checkpoints.FILE)
    assert stages
    assert_same(cp.fit("one_coin", crowd, resume=True, **options), whole(method))


def test_a_second_ctrl_c_leaves_the_last_checkpoint(crowd, whole, tmp_path, monkeypatch):
    options = {"progress": False, "checkpoint": tmp_path, **FITS["em"]}
    with monkeypatch.context() as patch:
        signalled(patch, signal.SIGINT, 3)
        whole_file = checkpoints.whole_file

        def again(path):
            if (tmp_path / checkpoints.FILE).exists():
                signal.raise_signal(signal.SIGINT)
            return whole_file(path)

        patch.setattr(checkpoints, "whole_file", again)
        with pytest.raises(KeyboardInterrupt, match=r"stopped; .*goes on from there"):
            cp.fit("one_coin", crowd, **options)
    assert_same(cp.fit("one_coin", crowd, resume=True, **options), whole("em"))


def test_sigterm_ends_with_its_status_and_a_sentence(crowd, whole, tmp_path, monkeypatch):
    options = {"progress": False, "checkpoint": tmp_path, **FITS["svi"]}
    with monkeypatch.context() as patch:
        signalled(patch, signal.SIGTERM, 4)
        with (
            pytest.warns(CheckpointWarning, match=r"stopped; .*resume=True goes on from there"),
            pytest.raises(SystemExit) as end,
        ):
            cp.fit("one_coin", crowd, **options)
    assert end.value.code == 128 + signal.SIGTERM
    assert_same(cp.fit("one_coin", crowd, resume=True, **options), whole("svi"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_and_a_folder_that_turns_read_only_leave_the_last_checkpoint_and_the_fit_goes_on(
    crowd, whole, tmp_path, monkeypatch, number
):
    options = {"progress": False, "checkpoint": tmp_path, **FITS["em"]}
    flushed, flush = [], atomic._flush

    def fails(file):
        flushed.append(1)
        if len(flushed) > 3:
            raise OSError(number, os.strerror(number))
        flush(file)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_flush", fails)
        with pytest.warns(
            CheckpointWarning, match=rf"cannot be written: {os.strerror(number)};.*; the fit goes on.*resume"
        ):
            found = cp.fit("one_coin", crowd, every=0, **options)
    assert_same(found, whole("em"))
    _, stages = read(tmp_path / checkpoints.FILE)
    assert 0 < len(stages["start 0/em"]["history"]) < 120
    assert os.listdir(tmp_path) == [checkpoints.FILE]
    assert_same(cp.fit("one_coin", crowd, resume=True, **options), whole("em"))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(crowd, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(cp.StorageError, match="file"):
        cp.fit("one_coin", crowd, checkpoint=tmp_path / "file", progress=False)


def test_nuts_that_is_interrupted_returns_the_draws_so_far(crowd, whole, tmp_path, monkeypatch):
    options = {"progress": False, **FITS["nuts"] | {"draws": 5000}}
    kept = {"checkpoint": tmp_path, "every": "1h"}
    signalled(monkeypatch, signal.SIGINT, 40)
    with pytest.warns(
        cp.ConvergenceWarning, match=r"NUTS was interrupted: these are [\d,]+ of 5,000 draws of \d of 3 ch"
    ):
        part = cp.fit("one_coin", crowd, **options, **kept)
    n_chains, n_draws = part.outcome.stats["lp"].shape
    assert n_chains in (1, 2, 3)
    assert 0 < n_draws < 5000
    (finding,) = findings_of(part, "interrupted")
    assert finding.values == {"draws": n_draws, "chains": n_chains}
    assert "resume=True goes on from there" in finding.remedy
    if n_chains == 3:  # the chains are those of a run with fewer draws
        n = min(n_draws, 70)
        np.testing.assert_array_equal(
            part.outcome.draws["ability"][:, :n], whole("nuts").outcome.draws["ability"][:, :n]
        )
    assert part.labels.shape[0] == crowd.n_tasks


def test_as_many_chains_are_kept_of_an_interrupted_run_as_make_the_most_draws():
    from crowdppl.inference.engines.nuts import Rows, _so_far

    def rows(n, at):
        return Rows({"x": np.full(n, at)}, {"lp": np.zeros(n)})

    chains = [(rows(50, 0), rows(30, 0)), (), (rows(60, 2),), (rows(3, 3),)]
    found = _so_far(chains)  # two chains of 60 are more than one of 80 or three of 3
    assert found.draws["x"].tolist() == [[0] * 60, [2] * 60]
    assert _so_far([(), ()]) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 1}, r"not the same seed \(0 there, 1 now\)"),
        ({"max_iterations": 7}, r"not the same options: max_iterations \(120 there, 7 now\)"),
        ({"right": 3.0}, r"not the same hyperparameters: right \(nothing there, 3.0 now\)"),
        ({"story": "mace"}, r"not the same story \(.*one_coin there, .*mace now\)"),
        ({"method": "svi", "tolerance": 0.0, "max_iterations": 120}, r"not the same method \('?em'? there, svi now\)"),
        ({"annotations": 1}, "not the same annotations: label"),
        ({"annotations": 2}, "not the same annotations: workers"),
        ({"version": "9.9"}, r"not the same versions: crowdppl \(.* there, 9.9 now\)"),
    ],
    ids=lambda value: None if isinstance(value, dict) else "",
)
def test_going_on_with_something_else_is_refused_by_its_name(crowd, tmp_path, monkeypatch, changed, said):
    options = {"progress": False, "checkpoint": tmp_path, **FITS["em"]}
    with monkeypatch.context() as patch:
        signalled(patch, signal.SIGINT, 1)
        with pytest.raises(KeyboardInterrupt):
            cp.fit("one_coin", crowd, **options)
    before = (tmp_path / checkpoints.FILE).read_bytes()
    if "version" in changed:
        monkeypatch.setattr(sys.modules["crowdppl"], "__version__", changed.pop("version"))
    changed = dict(changed)
    other = changed.pop("annotations", 0)
    if other == 1:
        crowd = crowd.replace(label=1 - crowd.label)
    elif other == 2:
        crowd = crowd.replace(workers=type(crowd.workers)(list("vwxyz")))
    with pytest.raises(cp.StorageError, match=f"holds another fit.*: {said}.*another folder"):
        cp.fit(changed.pop("story", "one_coin"), crowd, resume=True, **options | changed)
    assert (tmp_path / checkpoints.FILE).read_bytes() == before


def test_a_checkpoint_is_not_written_over_unless_it_is_gone_on_from(crowd, tmp_path):
    options = {"progress": False, "checkpoint": tmp_path, "max_iterations": 2}
    cp.fit("one_coin", crowd, **options)
    with pytest.raises(cp.StorageError, match="of an earlier run; give resume=True"):
        cp.fit("one_coin", crowd, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 3}, "every=3 belongs to checkpoint="),
        ({"resume": True}, "resume=True belongs to checkpoint="),
        ({"resume": "at"}, "resume='at': True or False is needed"),
        ({"checkpoint": "at", "every": "often"}, "every='often': seconds, or a time such as '30s'"),
        ({"checkpoint": "at", "every": -1}, "every=-1"),
        ({"checkpoint": "at", "story": "majority_vote"}, "checkpoint=.*at': majority_vote takes a moment"),
    ],
)
def test_what_cannot_be_kept_so_is_refused(crowd, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    options = {"story": "one_coin", "progress": False} | options
    with pytest.raises(ValueError, match=said):
        cp.fit(options.pop("story"), crowd, **options)
    assert os.listdir(tmp_path) == []


def test_times_are_seconds_minutes_and_hours():
    assert [seconds(x) for x in (0, 1.5, "30s", "5min", "1h", " 2 min ", "7")] == [0, 1.5, 30, 300, 3600, 120, 7]


def test_what_an_engine_keeps_comes_back_from_the_file_as_it_was():
    nest = {
        "a": [1, 2.5, float("inf"), None, True, "x"],
        0: (np.arange(3, dtype=np.int16), {"b": np.float32(0.1)}),
        "none": {},
        "empty": np.zeros((0, 2), bool),
    }
    arrays = []
    found = decoded(json.loads(json.dumps(encoded(nest, arrays))), arrays)
    assert found["a"] == nest["a"]
    assert isinstance(found[0], tuple)
    np.testing.assert_array_equal(found[0][0], nest[0][0])
    assert found[0][0].dtype == np.int16
    assert found[0][1]["b"] == np.float32(0.1)
    assert (found["empty"].shape, found["empty"].dtype) == ((0, 2), bool)
    for value in (object(), np.array([object()]), {1, 2}, len):
        with pytest.raises(cp.StorageError, match="cannot hold a"):
            encoded(value, [])


class Runs:
    """An object that runs something where it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("was_run",)


def bad_files(tmp_path, good):
    """Files that are no checkpoint, by what is wrong with each."""

    def savez(name, save=np.savez, **arrays):
        with open(tmp_path / name, "wb") as file:
            save(file, **arrays)
        return tmp_path / name

    def text(**about):
        return np.frombuffer(json.dumps(about).encode(), np.uint8)

    def bytes_of(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    about = {"format": 1, "fit": {}, "stages": {"em": {"array": 0}}}
    yield "empty", bytes_of("a", b"")
    yield "text", bytes_of("b", b"half")
    yield "cut", bytes_of("c", good[: len(good) // 2])
    yield "altered", bytes_of("d", good[:300] + bytes([good[300] ^ 255]) + good[301:])
    yield "pickle", bytes_of("e", pickle.dumps(Runs()))
    yield "pickled array", savez("f", about=text(**about), **{"0": np.array([Runs()], object)})
    yield "pickled about", savez("g", about=np.array([Runs()], object))
    yield "compressed", savez("h", np.savez_compressed, about=text(**about), **{"0": np.zeros(10**6)})
    yield "without about", savez("i", **{"0": np.zeros(2)})
    yield "no such array", savez("j", about=text(**about))
    yield "unknown kind", savez("k", about=text(**about | {"stages": {"em": {"python": "os.mkdir"}}}))
    yield "not JSON", savez("l", about=np.frombuffer(b"{1", np.uint8))
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        np.save(content := io.BytesIO(), text(**about))
        archive.writestr("about.npy", content.getvalue())
        archive.writestr(
            "0.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }".ljust(128),
        )
    yield "absurd size", tmp_path / "m"
    with zipfile.ZipFile(tmp_path / "o", "w") as archive:
        archive.writestr("about.npy", b"about")
    yield "no array", tmp_path / "o"
    (tmp_path / "n").mkdir()
    yield "folder", tmp_path / "n"


def test_files_that_are_no_checkpoint_are_refused_and_nothing_in_them_is_run(crowd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cp.fit("one_coin", crowd, checkpoint=tmp_path / "at", progress=False, max_iterations=2)
    good = (tmp_path / "at" / checkpoints.FILE).read_bytes()
    for what, path in bad_files(tmp_path, good):
        assert path.exists(), what
        with pytest.raises(cp.StorageError, match=DAMAGED):
            read(path)
    assert not (tmp_path / "was_run").exists()
    with open(tmp_path / "newer", "wb") as file:
        np.savez(file, about=np.frombuffer(b'{"format": 2}', np.uint8))
    with pytest.raises(cp.StorageError, match=r"written by a newer crowdppl \(format 2, known is 1\)"):
        read(tmp_path / "newer")


def test_arrays_of_other_shapes_are_refused(crowd, tmp_path, monkeypatch):
    options = {"progress": False, "checkpoint": tmp_path, **FITS["em"]}
    cp.fit("one_coin", crowd, **options)
    kept = checkpoints.read

    def shorter(path):
        about, stages = kept(path)
        (name,) = stages
        stages[name]["state"] = [array.reshape(-1)[:1] for array in stages[name]["state"]]
        return about, stages

    monkeypatch.setattr(checkpoints, "read", shorter)
    with pytest.raises(cp.StorageError, match=r"the checkpoint is damaged: .* where .* is needed"):
        cp.fit("one_coin", crowd, resume=True, **options)


def test_objects_are_described_by_what_they_are():
    def one(x, scale=2.0):
        return x * scale

    def other(x, scale=2.0):
        return x + scale

    other.__qualname__ = one.__qualname__
    factor = 1.0

    def holding(x):
        return x * factor

    before = described(holding)
    factor = 2.0
    assert described(one) != described(other)
    assert before != described(holding)
    assert described(functools.partial(one, scale=1.0)) != described(functools.partial(one, scale=3.0))
    arrays = [np.arange(4.0), np.arange(4.0).reshape(2, 2), np.arange(4.0, dtype=np.float32), np.arange(1.0, 5.0)]
    assert len({described(array) for array in arrays}) == 4
    assert described({"a": 1, "b": [2]}) == described({"b": [2], "a": 1})
    assert " at 0x" not in described(object())
    assert described(cp.Classifier("mlp")) != described(cp.Classifier("mlp", dropout=0.1))
    assert described(pd.DataFrame({"a": [1]})) != described(pd.DataFrame({"a": [2]}))


def is_within_a_pass(stages):
    """Whether a climber that moves after each of eight batches has taken some of a pass: its state counts them."""
    numbers = [array for nest in stages.values() if isinstance(nest, dict) for array in nest["state"]]
    return any(array.dtype == np.int32 and array.ndim == 0 and array % 8 for array in numbers)


@pytest.mark.parametrize(
    "options",
    [
        {"max_iterations": 6},
        pytest.param({"step": "stochastic", "epochs": 3}, marks=pytest.mark.slow),
        pytest.param({"method": "svi", "max_iterations": 20, "draws": 5}, marks=pytest.mark.slow),
    ],
    ids=["exact", "stochastic", "svi"],
)
def test_a_fit_of_a_scan_goes_on_from_within_a_pass(crowd, tmp_path, monkeypatch, options):
    for name in ("LEAST_ROWS", "MOST_ROWS"):
        monkeypatch.setattr(on_disk, name, 20)
    frame = pd.DataFrame({"task": crowd.task, "worker": crowd.worker, "label": crowd.label})
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    scan = cp.scan(tmp_path / "a.parquet")
    whole = cp.fit("one_coin", scan, progress=False, **options)
    kept = {"progress": False, "checkpoint": tmp_path / "at", "every": 0, **options}
    for n_notes in (4, 13):  # in the midst of passes of eight chunks
        with monkeypatch.context() as patch:
            signalled(patch, signal.SIGINT, n_notes)
            with pytest.raises(KeyboardInterrupt, match="stopped; "):
                cp.fit("one_coin", scan, resume=True, **kept)
        _, stages = read(tmp_path / "at" / checkpoints.FILE)
        assert any(name.endswith("pass") for name in stages) or is_within_a_pass(stages)
    resumed = cp.fit("one_coin", scan, resume=True, **kept)
    assert resumed.history.tolist() == whole.history.tolist()
    np.testing.assert_array_equal(resumed.outcome.draws["ability"], whole.outcome.draws["ability"])
    with pytest.raises(ValueError, match="both keep the state; give one"):
        cp.fit("one_coin", scan, folder=tmp_path / "other", **kept)


def test_a_ctrl_c_that_is_lost_in_a_callback_is_heeded_at_the_next_note(crowd, tmp_path, monkeypatch):
    note = Checkpoints.save
    lost = []

    def note_once_interrupted(self, *arguments, **options):
        if not lost:
            lost.append(True)
            with suppress(KeyboardInterrupt):  # as where Python is called back and cannot raise
                signal.raise_signal(signal.SIGINT)
        note(self, *arguments, **options)

    monkeypatch.setattr(Checkpoints, "save", note_once_interrupted)
    with pytest.raises(KeyboardInterrupt, match="goes on from there"):
        cp.fit("one_coin", crowd, method="svi", checkpoint=tmp_path / "c", progress=False, max_iterations=50)


def test_passes_that_take_no_second_are_not_all_written(tmp_path, monkeypatch):
    """SVI over one chunk has a step a pass; writing, with its flush to the disk, took more than half of the time."""
    written, now, write = [], [1000.0], checkpoints.Store.write
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    keep = checkpoints.opened(CheckpointOptions(tmp_path, 300.0, resume=None, milestones=True), {})
    monkeypatch.setattr(checkpoints.Store, "write", lambda store: (written.append(now[0]), write(store)))
    for _ in range(50):
        now[0] += 0.1
        keep.save("state", lambda: {"at": now[0]}, milestone=True)
    np.testing.assert_allclose(np.diff(written), 1.0, atol=0.11)
    assert 4 <= len(written) <= 6  # in five seconds
