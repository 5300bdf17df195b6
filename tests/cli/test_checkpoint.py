"""A fit of the command line that is stopped says by which command it goes on, and goes on to the same results."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused

from crowdppl.inference.engines.checkpoints import FILE, Checkpoints


@pytest.fixture
def command(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    task, worker = np.indices((30, 4)).reshape(2, -1)
    label = np.where(rng.random(len(task)) < 0.7, truth[task], 1 - truth[task])
    pd.DataFrame({"task": task, "worker": worker, "label": label}).to_csv(tmp_path / "crowd.csv", index=False)
    return ["fit", tmp_path / "crowd.csv", "--story", "one_coin", "--set", "tolerance=0"]


def stopped(monkeypatch, number):
    """Have the process get a signal at the second note of where a fit stands."""
    note, taken = Checkpoints.save, []

    def noting(self, *arguments, **options):
        note(self, *arguments, **options)
        taken.append(1)
        if len(taken) == 2:
            signal.raise_signal(number)

    monkeypatch.setattr(Checkpoints, "save", noting)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_fit_says_by_which_command_it_goes_on(command, tmp_path, monkeypatch, number, status):
    plain, out, at = tmp_path / "plain", tmp_path / "out", tmp_path / "at"
    assert crowdppl(*command, "--out", plain).exit_code == 0
    with monkeypatch.context() as patch:
        stopped(patch, number)
        done = crowdppl(*command, "--out", out, "--checkpoint", at, "--every", "1h", "-q")
    assert done.exit_code == status, done.output
    said = " ".join(done.stderr.split())
    assert "topped; " in said
    assert f"the same command with --checkpoint '{at}' --resume goes on from there" in said
    assert not out.exists()
    assert os.listdir(at) == [FILE]
    assert "give --resume to go on from it" in refused(*command, "--out", out, "--checkpoint", at)
    assert "not the same seed (0 there, 1 now)" in refused(
        *command, "--out", out, "--checkpoint", at, "--resume", "--seed", 1
    )
    assert crowdppl(*command, "--out", out, "--checkpoint", at, "--resume").exit_code == 0
    assert (out / "labels.csv").read_bytes() == (plain / "labels.csv").read_bytes()


def test_a_time_that_is_none_is_refused(command, tmp_path):
    assert "--every soon" in refused(*command, "--out", tmp_path / "out", "--checkpoint", tmp_path, "--every", "soon")
    assert "--every 5s belongs to --checkpoint" in refused(*command, "--out", tmp_path / "out", "--every", "5s")
