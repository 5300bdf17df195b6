"""Whether annotations depend on each other given the labels: by chance alone, by tasks of unlike difficulty, or not."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import crowdppl as cp
from crowdppl.inference.comparison.default_set import LEFT, by_dependence
from crowdppl.inference.fitted.dependence import MOST, dependence, excess_agreement
from crowdppl.inference.fitted.misled import LEAST, USUAL, misled_share


def crowd(seed, *, n_tasks=300, per_task=6, n_classes=3, hard=0.0):
    """Return annotations by twelve workers with confusion matrices of their own, and true labels as probabilities.

    Args:
        seed: of everything.
        n_tasks: tasks.
        per_task: annotations of each.
        n_classes: of any of which a task is.
        hard: of the tasks, share at which everybody guesses.
    """
    rng = np.random.default_rng(seed)
    truth, n_workers = rng.integers(0, n_classes, n_tasks), 12
    right = rng.beta(8, 3, (n_workers, n_classes))
    errors = rng.dirichlet(np.ones(n_classes - 1), (n_workers, n_classes))
    table = np.stack(
        [np.insert((1 - right[:, k, None]) * errors[:, k], k, right[:, k], axis=1) for k in range(n_classes)], 1
    )
    table = np.where((rng.random(n_tasks) < hard)[:, None, None], 1 / n_classes, table[:, truth].swapaxes(0, 1))
    label = (rng.random((n_tasks, n_workers, 1)) > table.cumsum(-1)).sum(-1).clip(0, n_classes - 1)
    label[rng.random(label.shape).argsort(1) >= per_task] = -1
    return cp.Annotations.from_matrix(label, classes=range(n_classes), missing=-1), np.eye(n_classes)[truth]


def z_of(annotations, posterior):
    share, se = excess_agreement(annotations, posterior)
    return share / se


def test_excess_over_pairs_and_its_deviation_are_those_of_a_loop_over_all_pairs():
    annotations, truth = crowd(1, n_tasks=25, per_task=3)
    rows = np.full((12, 3, 3), 0.5) + 1.5 * np.eye(3)
    np.add.at(rows, (annotations.worker, truth.argmax(1)[annotations.task], annotations.label), 1)
    rows /= rows.sum(-1, keepdims=True)
    excess = variance = most = 0.0
    for task in range(25):
        at = np.flatnonzero(annotations.task == task)
        each = [rows[worker, truth[task].argmax()] for worker in annotations.worker[at]]
        given = [np.eye(3)[label] - row for label, row in zip(annotations.label[at], each, strict=True)]
        spread = [np.diag(row) - np.outer(row, row) for row in each]
        for one in range(len(at)):
            for other in range(one):
                excess += given[one] @ given[other]
                variance += np.trace(spread[one] @ spread[other])
                most += np.sqrt(np.trace(spread[one]) * np.trace(spread[other]))
    np.testing.assert_allclose(excess_agreement(annotations, truth), (excess / most, np.sqrt(variance) / most))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_of_independent_annotations_the_excess_is_chance(n_classes):
    """Forty crowds: the mean of z lies within three standard errors of 0, and their spread is near 1."""
    found = [z_of(*crowd(seed, n_classes=n_classes)) for seed in range(40)]
    assert abs(np.mean(found)) < 3 / np.sqrt(40)
    assert 0.65 < np.std(found) < 1.4  # 99.9 % of the spreads of forty draws of a normal distribution


def test_the_probability_is_that_of_four_to_one_before_the_annotations():
    annotations, truth = crowd(3)
    share, se = excess_agreement(annotations, truth)
    within = integrate.quad(lambda rho: stats.norm.pdf(share, rho, se) / MOST, 0, MOST, points=[max(share, 0.0)])[0]
    expected = 4 * within / (4 * within + stats.norm.pdf(share, 0, se))
    assert dependence(annotations, truth) == pytest.approx(expected, rel=1e-6)


def test_it_falls_with_evidence_and_rises_where_tasks_are_hard_for_everybody():
    found = [[dependence(*crowd(s, n_tasks=n)) for s in range(10)] for n in (30, 1000)]
    few, many = (np.mean([p / (p + 4 * (1 - p)) for p in each]) for each in found)  # by the annotations alone
    assert many < 0.15 < few < 0.6
    assert min(dependence(*crowd(s, hard=0.25)) for s in range(10)) > 0.99


def test_far_out_it_stays_a_number():
    annotations, truth = crowd(4, n_tasks=2000)
    assert dependence(annotations, truth[:, [1, 2, 0]].copy()) <= 1
    votes = annotations.votes() / annotations.votes().sum(1, keepdims=True)
    assert 0 <= dependence(annotations, votes) <= 1


def test_where_it_cannot_be_told_it_is_sure():
    annotations, truth = crowd(5, n_tasks=40)
    assert dependence(annotations.without_workers(), truth) == 1
    assert dependence(crowd(5, n_tasks=15)[0], truth[:15]) == 1
    assert dependence(crowd(5, n_tasks=40, per_task=1)[0], truth) == 1


def test_auto_is_as_sure_as_it_is_right_where_the_crowd_follows_a_story():
    """Three crowds of 300 tasks and six annotations: within four points, where half of the votes would take ten."""
    gaps = []
    for seed in range(3):
        annotations, truth = crowd(seed)
        fit = cp.fit("auto", annotations, progress=False)
        gaps.append((fit.posterior.argmax(1) == truth.argmax(1)).mean() - fit.posterior.max(1).mean())
        plain = fit.fits["dawid_skene"].fitted
        found = dependence(plain.annotations, plain.posterior)
        assert misled_share(plain).mean == pytest.approx(LEAST + (USUAL - LEAST) * found, abs=2e-3)
        assert 0 < fit.votes < 0.25
    assert abs(np.mean(gaps)) < 0.04


def test_a_story_given_whose_labels_workers_err_together_loses_weight_where_they_do_not_given_others():
    fits = {}
    annotations, truth = crowd(0)
    for name, off in {"right": 0.0, "near": 0.0, "wrong": 0.15}.items():
        moved = np.random.default_rng(1).random(len(truth)) < off
        labels = np.where(moved[:, None], np.roll(truth, 1, axis=1), truth)
        fits[name] = SimpleNamespace(annotations=annotations.replace(), posterior=labels)
    weights = pd.Series({"right": 0.6, "near": 0.2, "wrong": 0.2})
    found = by_dependence(fits, weights)
    of = {name: dependence(fit.annotations, fit.posterior) for name, fit in fits.items()}
    assert of["right"] < 0.4 < 0.95 < of["wrong"]
    factor = (1 + LEFT - of["wrong"]) / (1 + LEFT - of["right"])
    expected = np.array([0.6, 0.2, 0.2 * factor])
    np.testing.assert_allclose(found, expected / expected.sum())
    same = dict.fromkeys(weights.index, fits["wrong"])
    np.testing.assert_allclose(by_dependence(same, weights), weights)
