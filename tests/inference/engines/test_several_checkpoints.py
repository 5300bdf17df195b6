"""Checkpoints of calls that make several fits, and of networks beside stories: finished parts are not run again."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.engines import climber
from crowdppl.inference.engines.checkpoints import FILE, Checkpoints
from crowdppl.inference.engines.minibatch_em import MinibatchEM

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")

TWO = {"coin": {"story": "one_coin"}, "plain": {"story": "dawid_skene"}}
NETWORK = {"classifier": cp.Classifier("mlp", hidden=(3,)), "epochs": 6, "progress": False}


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    task, worker = np.indices((30, 5)).reshape(2, -1)
    label = np.where(rng.random(len(task)) < 0.75, truth[task], 1 - truth[task])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    features = (truth[:, None] + rng.normal(0, 0.5, (30, 2))).astype(np.float32)
    return cp.Annotations.from_frame(frame).replace(features=features)


def stopped(monkeypatch, n_notes, within=""):
    """Have the process get Ctrl-C when a part of the work of that name has taken so many notes of where it stands.

    The list of the checkpoints that notes are taken for grows with them.
    """
    note, taken = Checkpoints.save, []

    def noting(self, *arguments, **options):
        note(self, *arguments, **options)
        if within in str(self._store.path):
            taken.append(self._store.path)
        if len(taken) == n_notes:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoints, "save", noting)
    return taken


def climbers(monkeypatch):
    """The climbers that move from now on, one entry for each program that is run."""
    advance, moving = climber.advance, []

    def noting(climbs, *arguments):
        moving.append(type(climbs))
        return advance(climbs, *arguments)

    monkeypatch.setattr(climber, "advance", noting)
    return moving


def test_auto_goes_on_with_the_story_that_was_stopped_and_ends_at_the_same_bits(crowd, tmp_path, monkeypatch):
    options = {"stories": TWO, "progress": False, "max_iterations": 60, "tolerance": 0.0}
    whole = cp.fit("auto", crowd, **options)
    kept = options | {"checkpoint": tmp_path, "every": 0}
    with monkeypatch.context() as patch:
        stopped(patch, 1, "story 1")
        with pytest.raises(
            KeyboardInterrupt, match=rf"the same call with checkpoint='{tmp_path}', resume=True goes on"
        ):
            cp.fit("auto", crowd, **kept)
    assert sorted(os.listdir(tmp_path)) == ["story 0", "story 1"]
    with pytest.raises(cp.StorageError, match=r"story 0.*is of an earlier run; give resume=True"):
        cp.fit("auto", crowd, **kept)
    taken = stopped(monkeypatch, -1)
    again = cp.fit("auto", crowd, **kept, resume=True)
    assert {path.parent.name for path in taken} == {"story 1"}
    np.testing.assert_array_equal(again.posterior, whole.posterior)


def test_ctrl_c_in_nuts_stops_auto_instead_of_giving_the_draws_so_far(crowd, tmp_path, monkeypatch):
    options = {"stories": TWO, "method": "nuts", "warmup": 20, "draws": 30, "chains": 2, "progress": False}
    with monkeypatch.context() as patch:
        stopped(patch, 6)
        with pytest.raises(KeyboardInterrupt, match="resume=True goes on"):
            cp.fit("auto", crowd, checkpoint=tmp_path, every=0, **options)
    assert os.listdir(tmp_path) == ["story 0"]


def test_other_stories_or_the_checkpoint_of_one_fit_are_refused(crowd, tmp_path):
    options = {"progress": False, "max_iterations": 3}
    cp.fit("auto", crowd, stories=TWO, checkpoint=tmp_path / "two", **options)
    turned = dict(reversed(TWO.items()))
    with pytest.raises(cp.StorageError, match="not the same story"):
        cp.fit("auto", crowd, stories=turned, checkpoint=tmp_path / "two", resume=True, **options)
    cp.fit("one_coin", crowd, checkpoint=tmp_path / "one", **options)
    with pytest.raises(cp.StorageError, match="of a single fit"):
        cp.fit("auto", crowd, checkpoint=tmp_path / "one", resume=True, **options)


@pytest.mark.parametrize("name", ["doctor_net", "wdn", "max_mig", "majority_vote"])
def test_a_baselines_network_goes_on_to_the_same_bits(crowd, tmp_path, monkeypatch, name):
    whole = cp.fit(name, crowd, **NETWORK)
    kept = NETWORK | {"checkpoint": tmp_path, "every": 0}
    with monkeypatch.context() as patch:
        stopped(patch, 3)
        with pytest.raises(KeyboardInterrupt, match="resume=True goes on"):
            cp.fit(name, crowd, **kept)
    assert os.listdir(tmp_path) == [FILE]
    with pytest.raises(cp.StorageError, match="not the same seed"):
        cp.fit(name, crowd, **kept, resume=True, seed=1)
    again = cp.fit(name, crowd, **kept, resume=True)
    assert again.rule.history.tolist() == whole.rule.history.tolist()
    np.testing.assert_array_equal(again.posterior, whole.posterior)
    for site, value in whole.rule.weights.items():
        np.testing.assert_array_equal(again.rule.weights[site], value)


def test_label_then_train_does_not_label_again_and_ends_at_the_same_bits(crowd, tmp_path, monkeypatch):
    options = NETWORK | {"label_options": {"method": "svi", "max_iterations": 40, "draws": 5}}
    whole = cp.label_then_train("one_coin", crowd, **options)
    kept = options | {"checkpoint": tmp_path, "every": 0}
    with monkeypatch.context() as patch:
        stopped(patch, 3, "training")
        with pytest.raises(KeyboardInterrupt, match=rf"checkpoint='{tmp_path}', resume=True goes on"):
            cp.label_then_train("one_coin", crowd, **kept)
    assert sorted(os.listdir(tmp_path)) == ["labels", "training"]
    with pytest.raises(cp.StorageError, match="earlier run"):
        cp.label_then_train("one_coin", crowd, **kept)
    moving = climbers(monkeypatch)
    again = cp.label_then_train("one_coin", crowd, **kept, resume=True)
    assert set(moving) == {MinibatchEM}
    np.testing.assert_array_equal(again.posterior, whole.posterior)
    for site, value in whole.rule.weights.items():
        np.testing.assert_array_equal(again.rule.weights[site], value)


def test_self_training_goes_on_with_the_round_that_was_stopped(crowd, tmp_path, monkeypatch):
    few = crowd.replace(**{name: getattr(crowd, name)[::2] for name in ("task", "worker", "label")})
    options = {"rounds": 2, "growth": 0.2, "progress": False, "tolerance": 0.0, "max_iterations": 60, "held_out": 0.2}
    whole = cp.self_train("one_coin", few, **options)
    kept = options | {"checkpoint": tmp_path, "every": 0}
    with monkeypatch.context() as patch:
        stopped(patch, 1, "round 1")
        with pytest.raises(KeyboardInterrupt, match=rf"checkpoint='{tmp_path}', resume=True goes on"):
            cp.self_train("one_coin", few, **kept)
    assert sorted(os.listdir(tmp_path / "held out")) == ["round 0", "round 1"]
    with pytest.raises(cp.StorageError, match="earlier run"):
        cp.self_train("one_coin", few, **kept)
    again = cp.self_train("one_coin", few, **kept, resume=True)
    pd.testing.assert_frame_equal(again.rounds, whole.rounds)
    pd.testing.assert_frame_equal(again.pseudo, whole.pseudo)
    np.testing.assert_array_equal(again.fit.posterior, whole.fit.posterior)


def test_load_fit_says_what_a_checkpoint_is_and_how_it_goes_on(crowd, tmp_path):
    options = {"progress": False, "max_iterations": 3}
    cp.fit("one_coin", crowd, checkpoint=tmp_path / "one", **options)
    says = rf"checkpoint of a fit of one_coin by EM, and no saved fit; .* checkpoint='{tmp_path / 'one'}', resume=True"
    with pytest.raises(cp.StorageError, match=says):
        cp.load_fit(tmp_path / "one")
    cp.fit("auto", crowd, stories=TWO, checkpoint=tmp_path / "two", **options)
    with pytest.raises(cp.StorageError, match=r"checkpoints of 2 fits \(one_coin by EM, dawid_skene by EM\)"):
        cp.load_fit(tmp_path / "two")
    (tmp_path / "one" / FILE).write_bytes(b"PK")
    with pytest.raises(cp.StorageError, match="is damaged"):
        cp.load_fit(tmp_path / "one")
