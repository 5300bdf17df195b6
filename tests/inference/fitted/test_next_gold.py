"""Tasks to check: a sample of fixed size with true inclusion probabilities, denser where stories disagree."""

import doctest

import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from fit_at import fit_at, random_confusions

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.fitted.next_gold import disagreement, inclusion_probabilities, next_gold, systematic
from crowdppl.inference.fitted.posterior import Posterior, equal_weights


@pytest.fixture(scope="module")
def annotations():
    return random_annotations(np.random.default_rng(0), n_tasks=40, n_workers=5, n_classes=3, n_rows=120)


@pytest.fixture(scope="module")
def average(annotations):
    members = {
        name: fit_at("dawid_skene", annotations, random_confusions(annotations, seed=seed))
        for seed, name in enumerate(("first", "second"))
    }
    return Posterior(members, equal_weights(members), votes=0.3)


@pytest.mark.parametrize("n", [1, 7, 30, 40])
def test_inclusion_probabilities_sum_to_the_size_and_follow_the_shares(n):
    share = np.random.default_rng(1).gamma(0.3, size=40) + 1e-3
    chance = inclusion_probabilities(share, n)
    assert chance.sum() == pytest.approx(n)
    assert ((chance > 0) & (chance <= 1)).all()
    free = chance < 1
    np.testing.assert_allclose(chance[free] / share[free], (chance[free] / share[free])[:1].repeat(free.sum()))


def test_each_task_is_drawn_as_often_as_its_inclusion_probability_says():
    chance = inclusion_probabilities(np.random.default_rng(2).gamma(0.5, size=30) + 1e-3, 8)
    draws = [systematic(chance, np.random.default_rng(seed)) for seed in range(4000)]
    assert {len(set(drawn)) for drawn in draws} == {8}
    often = np.bincount(np.concatenate(draws), minlength=30) / 4000
    np.testing.assert_allclose(often, chance, atol=4 * 0.5 / np.sqrt(4000))  # four standard errors


def test_the_disagreement_is_the_mutual_information_of_story_and_label_the_votes_among_them(annotations, average):
    votes = np.asarray(annotations.votes(), float)
    each = [fitted.posterior for fitted in average.members.values()] + [(votes + 1 / 3) / (votes.sum(1)[:, None] + 1)]
    p = np.maximum(np.stack(each), 0.02)
    p = p / p.sum(-1).sum(0)[:, None]  # joint of story and label
    independent = p.sum(0)[None] * p.sum(-1)[..., None]
    expected = (p * np.log(p / independent)).sum((0, 2))
    np.testing.assert_allclose(disagreement(average), expected, atol=1e-6)
    assert expected.max() > 10 * expected.min()


def test_half_of_the_sample_is_even_and_half_follows_the_disagreement(annotations, average):
    found = next_gold(average, 6, seed=3)
    assert found.columns.tolist() == ["task", "inclusion_probability", "why"]
    assert len(found) == 6
    worth = disagreement(average) + 1e-4
    chance = 6 * (0.5 / 40 + 0.5 * worth / worth.sum())
    at = annotations.tasks.index_of(found["task"].tolist())
    np.testing.assert_allclose(found["inclusion_probability"], chance[at], rtol=1e-6)
    disagree = worth[at] / worth.sum() > 1 / 40
    assert found["why"].tolist() == np.where(disagree, "stories disagree", "at random").tolist()
    pd.testing.assert_frame_equal(next_gold(average, 6, seed=3), found)
    assert next_gold(average, 6, seed=4)["task"].tolist() != found["task"].tolist()


def test_of_one_story_the_entropy_of_the_label_takes_the_place_of_the_disagreement(average):
    fitted = average.members["first"]
    p = np.maximum(np.asarray(fitted.posterior, float), 1e-30)
    np.testing.assert_allclose(disagreement(Posterior.of(fitted)), -(p * np.log(p)).sum(1), atol=1e-6)
    assert set(next_gold(fitted, 20)["why"]) == {"at random", "label in doubt"}


def test_known_labels_are_left_out_and_so_are_tasks_that_cannot_be_checked(annotations):
    known = {annotations.tasks[i]: annotations.classes[0] for i in range(20)}
    carrying = annotations.with_gold(known)
    fit = fit_at("dawid_skene", carrying, random_confusions(carrying))
    with pytest.warns(AnnotationWarning, match="20 tasks of 40 .*, fewer than the"):
        found = next_gold(fit, 25)
    assert not set(found["task"]) & set(known)
    assert (found["inclusion_probability"] == 1).all()
    some = [annotations.tasks[i] for i in (3, 25, 30, 31)]
    with pytest.warns(AnnotationWarning, match="3 tasks of 40 can be checked"):
        assert set(next_gold(fit, 4, among=some)["task"]) == set(some[1:])
    with pytest.raises(AnnotationError, match="every task is known already"):
        next_gold(fit, 1, among=some[0])
    with pytest.raises(AnnotationError, match="among: 'nobody'"):
        next_gold(fit, 1, among="nobody")


@pytest.mark.parametrize("n", [0, 2.5, "many"])
def test_the_number_is_a_whole_one(average, n):
    with pytest.raises((TypeError, ValueError), match="n="):
        next_gold(average, n)


def test_shares_that_are_weighed_by_the_inclusion_probabilities_hold_where_tasks_were_asked_for():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 300)
    sure = rng.beta(2, 1, 300) / 2 + 0.5
    label = np.where(rng.random(300) < sure, truth, 1 - truth)
    probabilities = np.where(np.arange(2) == label[:, None], sure[:, None], 1 - sure[:, None])
    frame = pd.DataFrame(probabilities)
    right = (label == truth).mean()
    chance = inclusion_probabilities(0.5 / 300 + 0.5 * (1 - sure) / (1 - sure).sum(), 50)
    held, weighed, plain = [], [], []
    for seed in range(300):
        drawn = systematic(chance, np.random.default_rng(seed))
        gold = pd.DataFrame({"task": drawn, "label": truth[drawn], "inclusion_probability": chance[drawn]})
        accuracy = cp.estimate(frame, gold, method="classical").accuracy
        held.append(accuracy["low"] <= right <= accuracy["high"])
        weighed.append(accuracy["estimate"])
        plain.append((label == truth)[drawn].mean())
    assert abs(np.mean(plain) - right) > 0.03
    assert np.mean(weighed) == pytest.approx(right, abs=0.01)
    assert np.mean(held) > 0.86


@pytest.mark.filterwarnings("ignore")
def test_the_example_runs():
    found = doctest.DocTestFinder(recurse=False).find(cp.next_gold, "next_gold")
    assert doctest.DocTestRunner().run(found[0]).failed == 0
