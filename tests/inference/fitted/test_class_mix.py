"""The crowd's mix of tasks in draws: as uncertain as the labels are, and together with the confusion matrices."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.fitted.class_mix import class_mix_draws
from crowdppl.inference.fitted.fitted import label_draws


@pytest.fixture(scope="module")
def thin():
    """Fifty tasks, two classes, workers who are hardly better than chance: who is right is open."""
    sizes = {"n_tasks": 50, "n_workers": 6, "annotations_per_task": 4}
    return cp.simulate("dawid_skene", seed=2, **sizes)[0].without_gold()


@pytest.mark.parametrize("method", ["em", "svi"])
def test_the_mix_of_a_draw_is_that_of_labels_drawn_with_its_parameters(thin, method):
    """A share of 50 drawn labels has a standard deviation of .07 at the most around what the draw expects."""
    fit = cp.fit("dawid_skene", thin, method=method, progress=False)
    found = class_mix_draws(fit)[..., 0, :]
    expected = label_draws(fit.with_uncertainty.only).mean(2)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-5)
    assert expected.std((0, 1)).max() > 0.1  # the draws do not agree
    gap = found - expected
    assert np.sqrt(np.square(gap).mean()) < 0.08
    np.testing.assert_allclose(gap.mean((0, 1)), 0, atol=5 * 0.07 / np.sqrt(found[..., 0].size))


def test_intervals_of_accuracy_are_of_each_draws_own_mix(thin):
    fit = cp.fit("dawid_skene", thin, method="svi", progress=False)
    right = np.einsum("cdjkk,cdk->cdj", fit.with_uncertainty.only.confusion_draws, class_mix_draws(fit)[..., 0, :])
    low, high = np.quantile(right, [0.05, 0.95], axis=(0, 1), method="weibull")
    np.testing.assert_allclose(fit.workers["accuracy_low"], low, rtol=1e-5)
    np.testing.assert_allclose(fit.workers["accuracy_high"], high, rtol=1e-5)


def test_known_labels_have_a_known_mix(thin):
    gold = {task: int(i % 2) for i, task in enumerate(thin.tasks)}
    fit = cp.fit("dawid_skene", thin, gold=gold, progress=False)
    np.testing.assert_allclose(class_mix_draws(fit), 0.5, atol=1e-6)


def test_workers_have_the_mix_of_their_own_question():
    """Three workers of four say yes on one question and no on the other, of every task."""
    rows = [
        {"task": task, "question": question, "worker": worker, "label": label if worker else other}
        for task in range(20)
        for question, label, other in (("a", "yes", "no"), ("b", "no", "yes"))
        for worker in range(4)
    ]
    fit = cp.fit("one_coin", pd.DataFrame(rows), quality="by_question", progress=False)
    shares = class_mix_draws(fit).mean((0, 1))
    yes = list(fit.annotations.classes).index("yes")
    on_a = np.array([question == "a" for _, question in fit.annotations.workers])
    assert len(shares) == len(on_a) == 8
    assert (shares[on_a, yes] > 0.8).all()
    assert (shares[~on_a, yes] < 0.2).all()


def test_an_average_mixes_the_mixes_of_its_stories(thin):
    fit = cp.fit("auto", thin, progress=False)
    shares = class_mix_draws(fit)
    assert shares.shape[:2] == fit.with_uncertainty.confusion_draws.shape[:2]
    np.testing.assert_allclose(shares.sum(-1), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_intervals_of_accuracy_hold_where_classes_are_taken_for_each_other():
    """Of 12 crowds with ten workers each, whose share has a standard error of .04 or so; .77 with the point's mix."""
    held = []
    for seed in range(12):
        sizes = {"n_tasks": 100, "n_workers": 10, "annotations_per_task": 6, "n_classes": 3}
        annotations, actual = cp.simulate("hierarchical_dawid_skene", seed=seed, **sizes)
        logits = actual["common"] + actual["spread"] * actual["individual"]
        rows = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        accuracy = np.einsum("k,jkk->j", actual["prevalence"], rows)
        workers = cp.fit("hierarchical_dawid_skene", annotations.without_gold(), progress=False).workers
        held.append((workers["accuracy_low"] <= accuracy) & (accuracy <= workers["accuracy_high"]))
    assert 0.84 < np.mean(held) < 0.98
