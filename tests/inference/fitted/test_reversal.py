"""The doubt that labels are turned around: none of healthy crowds, much of two parties, and none the less of copies."""

from types import SimpleNamespace

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.inference.findings.of_labels import turned_around
from crowdppl.inference.fitted.dependence import dependence
from crowdppl.inference.fitted.misled import LEAST, MOST, USUAL, misled_share
from crowdppl.inference.fitted.reversal import reversal_doubt

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 200)


def crowd(accuracies, truth=TRUTH, n_classes=2):
    """Annotations of all tasks by workers of these accuracies, and the labels' posterior, near the truth."""
    right = RNG.random((len(truth), len(accuracies))) < accuracies
    wrong = (truth[:, None] + RNG.integers(1, n_classes, right.shape)) % n_classes
    labels = np.where(right, truth[:, None], wrong)
    annotations = cp.Annotations.from_matrix(labels, classes=range(n_classes))
    return annotations, np.where(np.arange(n_classes) == truth[:, None], 0.95, 0.05 / (n_classes - 1))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_of_a_healthy_crowd_with_spammers_there_is_no_doubt(n_classes):
    truth = RNG.integers(0, n_classes, 200)
    accuracies = np.r_[np.full(12, 0.8), np.full(6, 1 / n_classes)]
    assert reversal_doubt(*crowd(accuracies, truth, n_classes)) < 1e-4


def test_of_two_parties_of_one_size_either_may_be_right():
    annotations, posterior = crowd(np.r_[np.full(10, 0.85), np.full(10, 0.15)])
    doubt = reversal_doubt(annotations, posterior)
    assert doubt == pytest.approx(0.5, abs=0.1)
    assert reversal_doubt(annotations, 1 - posterior) == pytest.approx(1 - doubt, abs=1e-6)


def test_copies_of_workers_are_no_more_evidence():
    annotations, posterior = crowd(np.r_[np.full(7, 0.75), np.full(4, 0.3)])
    labels = annotations.label.reshape(200, 11)
    copied = cp.Annotations.from_matrix(np.repeat(labels, 6, axis=1))
    doubt = reversal_doubt(annotations, posterior)
    assert 0.02 < doubt < 0.3
    assert reversal_doubt(copied, posterior) == pytest.approx(doubt, abs=0.06)


def test_few_or_unnamed_workers_say_nothing_of_others():
    annotations, posterior = crowd(np.full(9, 0.45))
    assert reversal_doubt(annotations, posterior) == 0
    annotations, posterior = crowd(np.full(12, 0.45))
    assert reversal_doubt(annotations, posterior) > 0.5
    assert reversal_doubt(annotations.without_workers(), posterior) == 0


def test_labels_allow_for_it_and_say_it():
    parties = SimpleNamespace(**dict(zip(("annotations", "posterior"), crowd(np.tile([0.8, 0.25], 8)), strict=True)))
    doubt = reversal_doubt(parties.annotations, parties.posterior)
    usual = LEAST + (USUAL - LEAST) * dependence(parties.annotations, parties.posterior)
    assert misled_share(parties).mean == pytest.approx(usual + (1 - usual) * doubt, abs=0.01)
    assert misled_share(parties, 0.1).mean == pytest.approx(0.1, abs=0.01)
    (finding,) = turned_around(parties)
    assert finding.values == {"doubt": pytest.approx(doubt)}
    assert "gold labels" in finding.remedy
    worse = SimpleNamespace(annotations=parties.annotations, posterior=1 - crowd(np.full(16, 0.9))[1])
    assert misled_share(worse).mean <= MOST
    healthy = SimpleNamespace(**dict(zip(("annotations", "posterior"), crowd(np.full(16, 0.8)), strict=True)))
    assert list(turned_around(healthy)) == []
