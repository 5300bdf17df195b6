"""Tasks that mislead the whole crowd: the share of them, and what it does to labels and to what workers got right."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import crowdppl as cp
from crowdppl.inference.fitted.dependence import dependence
from crowdppl.inference.fitted.misled import LEAST, USUAL, WEIGHT, MisledShare, misled_share
from crowdppl.inference.fitted.realised import realised_accuracy, realised_accuracy_draws


@pytest.fixture(scope="module")
def crowd():
    return cp.simulate("dawid_skene", n_tasks=60, n_workers=6, n_classes=3, annotations_per_task=4, seed=2)[0]


@pytest.fixture(scope="module")
def fit(crowd):
    return cp.fit("dawid_skene", crowd.without_gold(), sweeps=0, progress=False)


@pytest.fixture(scope="module")
def told(crowd):
    """A fit that was told the labels of forty tasks."""
    label = {crowd.tasks[i]: crowd.classes[crowd.gold[i]] for i in range(40)}
    return cp.fit("dawid_skene", crowd.without_gold(), gold=label, progress=False)


def expected_share(fit):
    """Return the mean of the share without gold labels."""
    return LEAST + (USUAL - LEAST) * dependence(fit.annotations, fit.fitted.posterior)


def test_without_gold_labels_the_share_is_as_in_its_prior(fit):
    usual = expected_share(fit)
    share, prior = misled_share(fit.fitted), stats.beta(WEIGHT * usual, WEIGHT * (1 - usual))
    assert LEAST < usual < USUAL
    assert abs(share.mean - usual) < 1e-3
    assert share.nobody_looked < 0.01
    draws = share.draws(20_000, seed=0)
    assert stats.kstest(draws, prior.cdf).statistic < 0.015
    assert not share.told.any()


def test_gold_labels_tell_of_the_share_as_integrating_over_it_does(told, crowd):
    """Against numerical integration of how likely the labels that the crowd gives alone are right where they are."""
    share = misled_share(told.fitted)
    assert share.told.sum() == 40
    alone = told.fitted.with_data(told.annotations.replace(evidence=None)).posterior[:40]
    is_right = alone.argmax(1) == np.asarray(crowd.gold)[:40]
    assert 0 < is_right.sum() < 40
    usual = expected_share(told)
    prior = stats.beta(WEIGHT * usual, WEIGHT * (1 - usual))

    def weight(e: float) -> float:
        right = (1 - e) * alone.max(1) + e * (1 - alone.max(1)) / 2
        return np.prod(np.where(is_right, right, 1 - right)) * prior.pdf(e)

    ends = np.geomspace(1e-30, 1, 40)  # the prior's density has no bound at 0
    pieces = list(pairwise(ends))
    total = sum(integrate.quad(weight, *piece)[0] for piece in pieces)
    mean = sum(integrate.quad(lambda e: e * weight(e), *piece)[0] for piece in pieces) / total
    np.testing.assert_allclose(share.mean, mean, atol=1e-3)


def test_draws_average_to_the_probabilities_that_allow_for_misled_tasks(fit):
    share = MisledShare(np.array([0.3]), np.ones(1), np.zeros(60, bool))
    many = fit.fitted.thinned(4000)
    drawn = realised_accuracy_draws(many, share, n=4000)
    expected = realised_accuracy(share.beside(fit.posterior), fit.annotations)
    assert (np.abs(drawn.mean(0) - expected) < 4.5 * drawn.std(0) / np.sqrt(4000)).all()


def test_workers_of_an_average_are_judged_without_the_votes(fit):
    """Half of the label probabilities from votes, and the same intervals of the workers."""
    of = [cp.stack({"only": fit}, {"only": 1.0}, votes=votes).workers for votes in (0.0, 0.5)]
    realised = [column for column in of[0] if column.startswith("realised")]
    assert len(realised) == 3
    np.testing.assert_allclose(of[0][realised], of[1][realised])


def test_tasks_that_were_told_mislead_nobody(told, crowd):
    share = MisledShare(np.array([0.9]), np.ones(1), misled_share(told.fitted).told)
    beside = share.beside(told.posterior)
    np.testing.assert_allclose(beside[:40], told.posterior[:40])
    assert (beside[40:].max(1) < told.posterior[40:].max(1)).all()


def test_labels_of_auto_are_no_surer_than_misled_tasks_allow(crowd):
    data = crowd.without_gold()
    auto = cp.fit("auto", data, votes=0.0, progress=False)
    least = min(misled_share(fit.fitted).mean for fit in auto.fits.values())
    assert LEAST - 1e-3 <= least <= USUAL + 1e-3
    assert auto.posterior.max() <= 1 - least + 1e-3
    assert "% of tasks that mislead the whole crowd" in str(auto.summary())
    sure = cp.fit("auto", data, votes=0.0, misled=0.0, progress=False)
    doubtful = cp.fit("auto", data, votes=0.0, misled=0.2, progress=False)
    assert sure.posterior.max() > 0.9
    assert doubtful.posterior.max() <= 0.8 + 1e-3
    assert "mislead" not in str(sure.summary())
    np.testing.assert_allclose(auto.posterior.sum(1), 1)
    assert (auto.posterior.argmax(1) == sure.posterior.argmax(1)).all()


def test_a_stack_has_realised_accuracies_with_intervals_that_hold_them(fit):
    workers = cp.stack({"a": fit, "b": fit}, {"a": 0.5, "b": 0.5}, votes=0.2).workers
    found = workers["realised_accuracy"]
    assert (workers["realised_accuracy_low"] <= found).all()
    assert (found <= workers["realised_accuracy_high"]).all()


def test_more_misled_tasks_make_intervals_wider_and_workers_worse_in_a_good_crowd():
    """Where workers are right on nine tasks of ten, the labels themselves leave little open."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    task, worker = np.indices((60, 6)).reshape(2, -1)
    label = np.where(rng.random(360) < 0.9, truth[task], rng.integers(3, size=360))
    rows = pd.DataFrame({"task": task, "worker": worker, "label": label})
    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(rows), progress=False)
    few, many = fit.worker_scores(misled=0.0), fit.worker_scores(misled=0.2)
    width = [frame["realised_accuracy_high"] - frame["realised_accuracy_low"] for frame in (few, many)]
    assert (width[1] > width[0]).all()
    assert (many["realised_accuracy"] < few["realised_accuracy"]).all()


@pytest.mark.parametrize("share", [-0.1, 1.0, True, "few", np.nan])
def test_a_share_that_is_none_is_refused(fit, crowd, share):
    with pytest.raises(ValueError, match="misled="):
        fit.worker_scores(misled=share)
    with pytest.raises(ValueError, match="misled="):
        cp.fit("auto", crowd.without_gold(), misled=share, progress=False)
    with pytest.raises(ValueError, match="misled="):
        cp.stack({"only": fit}, {"only": 1.0}, misled=share)


def test_intervals_hold_what_real_workers_got_right(real):
    """On rte, workers with thirty annotations: with misled tasks at least three in four, without less than half."""
    annotations = real("rte")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    actual = fit.gold_scores()
    actual = actual["gold_accuracy"][actual["gold_annotations"] >= 30]

    def held(**options: float) -> float:
        found = fit.worker_scores(**options).loc[actual.index]
        return actual.between(found["realised_accuracy_low"] - 1e-9, found["realised_accuracy_high"] + 1e-9).mean()

    assert held() >= 0.75
    assert held(misled=0.0) < 0.5


def test_where_nobody_looked_labels_are_guessed_by_the_shares_of_the_annotations():
    share = MisledShare(np.array([0.1]), np.ones(1), np.zeros(2, bool), 0.5, np.array([[0.2, 0.3, 0.5]]))
    found = share.beside(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(found, [[0.55, 0.175, 0.275], [0.125, 0.175, 0.7]])
    draws = share.draws(1000, seed=0)
    assert np.mean(draws == 0.1) == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(draws[draws != 0.1], 2 / 3)
