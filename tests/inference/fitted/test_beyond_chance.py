"""The probability that workers look at no task, and what an average of stories makes of it."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, UNTRUSTWORTHY, crowd
from crowdppl.benchmarks.support.crowd_shapes import drawn as drawn_labels
from crowdppl.inference.fitted.beyond_chance import agreement, by_chance, parties


def drawn(shape, seed=0):
    return {**HEALTHY, **UNTRUSTWORTHY}[shape](np.random.default_rng(seed)).without_gold()


def two_parties(seed=0):
    """Ten workers who are right in nine of ten, and ten who contradict them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 80)
    right = rng.random((80, 20)) < np.where(np.arange(20) < 10, 0.9, 0.1)
    table = pd.DataFrame(np.where(right, truth[:, None], 1 - truth[:, None])).stack().reset_index()
    return cp.Annotations.from_frame(table.set_axis(["task", "worker", "label"], axis=1), ordered=False)


@pytest.mark.parametrize("shape", [name for name in UNTRUSTWORTHY if name.startswith("noise")])
def test_workers_who_draw_their_annotations_look_at_no_task(shape):
    found = [by_chance(drawn(shape, seed)) for seed in range(10)]
    assert np.mean(found) > 0.6
    assert max(abs(parties(drawn(shape, seed)).z) for seed in range(10)) < 4
    assert max(abs(parties(drawn(shape, seed)).between) for seed in range(10)) < 4
    assert max(parties(drawn(shape, seed)).few for seed in range(10)) < 3


@pytest.mark.parametrize("shape", [name for name in HEALTHY if name != "thin"])
def test_workers_of_healthy_crowds_look(shape):
    assert max(by_chance(drawn(shape, seed)) for seed in range(5)) < 0.01


def test_two_parties_who_agree_no_more_than_by_chance_look():
    assert parties(two_parties()).z > 8
    assert parties(two_parties()).between < -8
    assert by_chance(two_parties()) < 1e-6


def three_who_look(seed):
    """Three workers who are right in 95 of 100 and twenty who guess, seven of whom annotate each of 300 tasks."""
    rng = np.random.default_rng(seed)
    accuracy = np.where(np.arange(23) < 3, 0.95, 0.5)
    return crowd(*drawn_labels(rng, accuracy, n_tasks=300, per_task=7, n_classes=2), 2)


def test_a_few_workers_who_look_among_many_who_do_not_are_seen():
    crowds = [three_who_look(seed).without_gold() for seed in range(6)]
    assert all(abs(agreement(each).z) < 3 for each in crowds)
    assert np.median([parties(each).few for each in crowds]) > 3
    assert np.median([by_chance(each) for each in crowds]) < 0.01


def test_an_average_is_nearly_as_sure_of_labels_by_a_few_workers_as_it_is_right():
    right, sure = [], []
    for seed in range(3):
        annotations = three_who_look(seed)
        fit = cp.fit("auto", annotations.without_gold(), progress=False)
        right.append(np.mean(fit.posterior.argmax(1) == annotations.gold))
        sure.append(fit.posterior.max(1).mean())
        assert [finding.severity for finding in fit.findings if finding.code == "no_agreement"] in ([], ["note"])
    assert np.mean(right) > 0.75
    assert np.mean(sure) == pytest.approx(np.mean(right), abs=0.07)  # three standard errors of 900 labels are 0.04


def test_parties_are_as_far_from_chance_as_their_largest_eigenvalue_is_from_that_of_shuffled_annotations():
    """Ten workers of whom a half contradicts the others, too weakly for one pair of them to show it."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    given = np.where(
        rng.random((120, 10)) < np.where(np.arange(10) < 5, 0.65, 0.35), truth[:, None], 1 - truth[:, None]
    )

    def largest(given):
        matrix = np.corrcoef(given.T) * np.sqrt(120)
        np.fill_diagonal(matrix, 0)
        return np.linalg.eigvalsh(matrix)[-1]

    shuffled = np.array([largest(rng.permuted(given, axis=0)) for _ in range(2000)])
    annotations = cp.Annotations.from_matrix(given, classes=[0, 1])
    expected = (largest(given) - shuffled.mean()) / shuffled.std()
    # a hundred orders have an error of 7 % in their deviation; skewness takes 15 % off 3 standard deviations
    assert parties(annotations).z == pytest.approx(expected, rel=0.3)
    assert abs(agreement(annotations).z) < 2
    assert by_chance(annotations) < 0.5
    assert (
        np.mean([by_chance(cp.Annotations.from_matrix(rng.permuted(given, axis=0), classes=[0, 1])) for _ in range(10)])
        > 0.6
    )


def test_workers_who_copy_a_guess_are_no_parties_that_contradict_each_other():
    guessed = np.random.default_rng(0).integers(0, 2, (200, 10))
    guessed[:, 1] = guessed[:, 0]
    found = parties(cp.Annotations.from_matrix(guessed, classes=[0, 1]))
    assert found.z > 4
    assert found.between > -4


@pytest.mark.parametrize("n_workers", [2, 3, 60])
def test_parties_are_looked_for_among_few_workers_and_many(n_workers):
    rng = np.random.default_rng(0)
    guessed = rng.integers(0, 2, (40, n_workers))
    assert abs(parties(cp.Annotations.from_matrix(guessed, classes=[0, 1])).z) < 3
    against = np.where(np.arange(n_workers) < n_workers / 2, guessed[:, :1], 1 - guessed[:, :1])
    assert parties(cp.Annotations.from_matrix(against, classes=[0, 1])).z > 3


def test_judges_on_scales_of_their_own_of_whom_one_turns_it_around_are_seen_by_the_values_of_ordered_classes():
    rng = np.random.default_rng(1)
    quality = rng.normal(size=(100, 1))
    means, spreads = np.array([5.5, 8.0, 3.5, 5.5]), np.array([1.5, 1.0, 0.8, -1.5])
    scores = np.clip(np.round(means + spreads * (quality + 0.6 * rng.normal(size=(100, 4)))), 1, 10).astype(int)
    ordered, nominal = (cp.Annotations.from_matrix(scores, ordered=order) for order in (True, False))
    assert parties(ordered).z > 8 > 4 > parties(nominal).z
    assert by_chance(ordered) < 1e-6


def test_nothing_is_said_where_something_else_tells_of_the_labels():
    noise = drawn("noise, 2 classes")
    told = cp.fit("one_coin", noise, gold={noise.tasks[0]: noise.classes[0]}, progress=False).annotations
    with_features = noise.replace(features=np.zeros((noise.n_tasks, 2)))
    of_model = noise.replace(prior=np.full((noise.n_tasks, 2), 0.5, np.float32))
    for annotations in (noise.without_workers(), told, with_features, of_model):
        assert by_chance(annotations) == 0
    rng = np.random.default_rng(0)
    rows = [(*rng.choice(list("abcdefgh"), 2, replace=False), w, rng.choice(["left", "right"])) for w in "uvwx" * 60]
    pairs = cp.Annotations.from_comparisons(pd.DataFrame(rows, columns=["left", "right", "worker", "label"]))
    assert by_chance(pairs) == 0  # items that pairs share tell of the labels
    assert by_chance(noise) > 0.5


def test_an_average_of_stories_is_about_as_unsure_of_noise_as_guessing_is():
    noise = drawn("noise, 3 classes")
    with pytest.warns(cp.CrowdWarning, match="no more than if none of them looked"):
        fit = cp.fit("auto", noise, progress=False)
    one = fit.fits["dawid_skene"]
    guess = 1 / 3
    assert np.asarray(fit.posterior).max(1).mean() - guess < (np.asarray(one.posterior).max(1).mean() - guess) / 3


def test_chance_is_that_of_each_question():
    """Nobody looks at a task; but one question is answered yes nearly always, and another one nearly never."""
    rates, found = {"safe": 0.95, "biased": 0.05, "long": 0.5}, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = [
            (f"s{i}", f"r{j}", question, "yes" if rng.random() < rate else "no")
            for i in range(100) for j in range(5) for question, rate in rates.items()
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
        annotations = cp.Annotations.from_frame(frame, question="question")
        found.append(agreement(annotations).z)
        assert agreement(annotations).z == agreement(annotations.by_question()).z
    assert abs(np.mean(found)) < 1.2
    assert np.max(np.abs(found)) < 4
