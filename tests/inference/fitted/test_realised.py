"""The share of the annotations given that are right, in draws of truth and parameters together."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions

import crowdppl as cp
from crowdppl.inference.fitted import realised
from crowdppl.inference.fitted.misled import MisledShare, misled_share
from crowdppl.inference.fitted.realised import realised_accuracy_draws


def test_draws_have_the_distribution_that_enumerating_all_truths_gives():
    """Four tasks, two workers, two draws of the parameters 10,000 times each: shares within 4.5 standard errors."""
    annotations = cp.simulate("dawid_skene", n_tasks=4, n_workers=2, n_classes=2, seed=5)[0].without_gold()
    two, n = random_confusions(annotations, 2, seed=3), 20_000
    many = {name: np.tile(value, (n // 2, *[1] * (value.ndim - 1))) for name, value in two.items()}
    fitted = fit_at("dawid_skene", annotations, many, method="svi").fitted
    found = np.rint(realised_accuracy_draws(fitted, misled_share(fitted, 0.0), n=n) * 4).astype(int)
    for worker in range(2):
        own = annotations.worker == worker
        task, label = annotations.task[own], annotations.label[own]
        exact = np.zeros(5)
        for table, prevalence in zip(two["confusion"], two["prevalence"], strict=True):
            joint = np.tile(np.log(prevalence), (4, 1))
            for i, j, y in zip(annotations.task, annotations.worker, annotations.label, strict=True):
                joint[i] += np.log(table[j, :, y])
            posterior = np.exp(joint) / np.exp(joint).sum(-1, keepdims=True)
            for truth in product(range(2), repeat=4):
                exact[(np.array(truth)[task] == label).sum()] += posterior[range(4), truth].prod() / 2
        shares = np.bincount(found[:, worker], minlength=5) / n
        assert (np.abs(shares - exact) <= 4.5 * np.sqrt(exact * (1 - exact) / n) + 1e-12).all()


@pytest.fixture(scope="module")
def simulated():
    """A hundred workers with 24 annotations each, of tasks that have eight, drawn from the story that is fitted."""
    options = {"diagonal": 3.0, "off_diagonal": 1.0}
    sizes = {"n_tasks": 300, "n_workers": 100, "n_classes": 3, "annotations_per_task": 8}
    annotations, parameters = cp.simulate("dawid_skene", **sizes, seed=3, **options)
    fit = cp.fit("dawid_skene", annotations.without_gold(), method="svi", seed=0, progress=False, **options)
    return fit, annotations, parameters


def test_intervals_of_the_realised_accuracy_hold_what_workers_got_right(simulated):
    """Of 100 workers nine in ten, within three standard errors; shares of 24 are coarse, which adds some.

    The story is that of the simulation, so that no task misleads the whole crowd.
    """
    fit, annotations, _ = simulated
    right = annotations.gold[annotations.task] == annotations.label
    n = np.bincount(annotations.worker, minlength=100)
    actual = np.bincount(annotations.worker, right, 100) / n
    found = fit.worker_scores(misled=0.0)
    held = (found["realised_accuracy_low"] - 1e-9 <= actual) & (actual <= found["realised_accuracy_high"] + 1e-9)
    assert 0.81 <= held.mean() <= 0.99
    assert abs((found["realised_accuracy"] - actual).mean()) < 0.02


def test_intervals_of_the_accuracy_hold_the_long_run_and_not_what_workers_got_right(simulated):
    """The long run is wider, since annotations yet to come are right by chance."""
    fit, annotations, parameters = simulated
    shares = np.bincount(annotations.gold, minlength=3) / annotations.n_tasks
    actual = np.einsum("jkk,k->j", np.asarray(parameters["confusion"]), shares)
    found = fit.worker_scores(misled=0.0)
    held = (found["accuracy_low"] <= actual) & (actual <= found["accuracy_high"])
    assert 0.81 <= held.mean() <= 0.99
    width = {name: (found[f"{name}_high"] - found[f"{name}_low"]).mean() for name in ("accuracy", "realised_accuracy")}
    assert width["realised_accuracy"] < width["accuracy"]


def test_realised_accuracy_stands_beside_the_accuracy(simulated):
    columns = list(simulated[0].workers)
    at = columns.index("accuracy")
    assert columns[at : at + 6] == [
        f"{name}{end}" for name in ("accuracy", "realised_accuracy") for end in ("", "_low", "_high")
    ]
    assert cp.plot_workers(simulated[0], score="realised_accuracy").get_title().startswith("Realised accuracy of")


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_sure_labels_counted_by_binomial_distributions_are_right_as_often_as_drawn_truths(share, monkeypatch):
    crowd = {"n_tasks": 600, "n_workers": 10, "n_classes": 3, "annotations_per_task": 8}
    annotations = cp.simulate("dawid_skene", **crowd, seed=0)[0].without_gold()
    fitted = cp.fit("dawid_skene", annotations, progress=False).fitted
    sure = (fitted.posterior.max(-1) >= realised.SURE).mean()
    told = np.arange(600) < 50
    misled, n = MisledShare(np.array([share]), np.ones(1), told), 2_000
    every = realised_accuracy_draws(fitted, misled, n=n)
    monkeypatch.setattr(realised, "LITTLE", 100)
    some = realised_accuracy_draws(fitted, misled, n=n, seed=1)
    assert 0.2 < sure < 0.8
    spread = every.std(0)
    np.testing.assert_allclose((some.mean(0) - every.mean(0)) / spread, 0, atol=5 * np.sqrt(2 / n))  # five errors
    np.testing.assert_allclose(some.std(0) / spread, 1, atol=5 / np.sqrt(n))


def test_levels_of_another_truth_are_right_where_their_class_is_the_truth():
    rng = np.random.default_rng(0)
    quality, loading = rng.normal(size=100), np.array([0.9, 0.8, 0.8, 0.7])
    scores = 4.5 + 2 * (loading * quality[:, None] + np.sqrt(1 - loading**2) * rng.normal(size=(100, 4)))
    rows = pd.DataFrame(scores.round().clip(0, 9).astype(int)).stack().reset_index()
    rows.columns = ["task", "worker", "label"]
    annotations = cp.Annotations.from_frame(rows, ordered=range(10), truth_classes=["no", "yes"])
    workers = cp.fit("score_factor", annotations, progress=False).workers
    low, point, high = (workers[f"realised_accuracy{end}"] for end in ("_low", "", "_high"))
    assert (low > 0.3).all()
    assert (high > point + 0.02).all()
