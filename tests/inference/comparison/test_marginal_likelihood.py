"""How probable annotations are by a story, against sums over all labellings."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import crowdppl as cp
from crowdppl.inference.comparison.marginal_likelihood import at_mean, compared_by
from crowdppl.inference.comparison.weights import weights_by_probability
from crowdppl.tests.all_labellings import dirichlet_multinomial, log_joint

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning", "ignore::crowdppl.CrowdWarning")


def of(story, data, **options):
    return at_mean(cp.fit(story, data, progress=False, **options).fitted).log_marginal_likelihood


def log_joint_of_coins(data, labels):
    """How probable annotations and labels ``(N,)`` are by one_coin, parameters integrated out."""
    k, j = data.n_classes, data.n_workers
    is_right = labels[data.task] == data.label
    counts = np.stack([np.bincount(data.worker, ~is_right, j), np.bincount(data.worker, is_right, j)], -1)
    of_labels = dirichlet_multinomial(np.ones(k), np.bincount(labels, minlength=k))
    return of_labels + dirichlet_multinomial(np.array([1.0, 2.0]), counts) - (~is_right).sum() * np.log(k - 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_all_labels_are_told_it_is_exact(n_classes):
    data = cp.simulate("dawid_skene", n_tasks=30, n_workers=5, n_classes=n_classes, seed=2)[0]
    labels = np.asarray(data.gold)
    exact = log_joint(data, labels, 2.0, 1 / (n_classes - 1))
    assert of("dawid_skene", data, gold=True) == pytest.approx(exact, rel=1e-5)
    assert of("one_coin", data, gold=True) == pytest.approx(log_joint_of_coins(data, labels), rel=1e-5)


@pytest.mark.parametrize("method", ["em", "svi"])
def test_where_none_is_told_it_is_near_the_sum_over_all_labellings(method):
    """Below it: the sum has labels of the other modes too, those with classes exchanged at the least."""
    gaps = []
    for seed in range(4):
        data = cp.simulate("dawid_skene", n_tasks=10, n_workers=6, n_classes=2, seed=seed)[0].without_gold()
        every = [np.array(labels) for labels in product(range(2), repeat=10)]
        exact = logsumexp([log_joint(data, labels, 2.0, 1.0) for labels in every])
        of_coins = logsumexp([log_joint_of_coins(data, labels) for labels in every])
        gaps.append([of("dawid_skene", data, method=method) - exact, of("one_coin", data, method=method) - of_coins])
    assert -1.5 < np.min(gaps) < np.max(gaps) < 0.1


def test_stories_are_compared_that_differ_by_tables_alone():
    data = cp.simulate("dawid_skene", n_tasks=20, n_workers=4, seed=0)[0].without_gold()
    data = data.replace(features=np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32))
    options = {"max_iterations": 2, "progress": False}
    plain = {name: compared_by(cp.fit(name, data, **options).fitted) for name in ("dawid_skene", "one_coin", "glad")}
    assert plain == {"dawid_skene": ("",), "one_coin": ("",), "glad": None}
    taught = [compared_by(cp.fit(name, data, classifier="logistic", **options).fitted) for name in list(plain)[:2]]
    assert taught[0] == taught[1] != ("",)


def test_stories_of_questions_with_classes_of_their_own_keep_their_shares():
    """Rows that are cut to a question's classes have slopes that are no counts."""
    rng = np.random.default_rng(0)
    classes = {"safe": ["no", "yes"], "topic": ["art", "law", "war"]}
    rows = [
        (task, worker, question, rng.choice(of))
        for task in range(12)
        for worker in "abc"
        for question, of in classes.items()
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    data = cp.Annotations.from_frame(frame, question="question", classes=classes)
    fits = {name: cp.fit(name, data, max_iterations=3, progress=False).fitted for name in ("dawid_skene", "one_coin")}
    assert {compared_by(fit) for fit in fits.values()} == {None}
    shares = {"dawid_skene": 0.6, "one_coin": 0.4}
    assert weights_by_probability(fits, shares).to_dict() == pytest.approx(shares)


def test_what_was_learned_counts_as_it_was_before():
    """Of labels that are told it is exact with the numbers before, at whatever point the learned ones led to."""
    data = cp.simulate("one_coin", n_tasks=30, n_workers=5, n_classes=3, seed=2)[0]
    exact = log_joint_of_coins(data, np.asarray(data.gold))
    learned = of("one_coin", data, gold=True, right="learned", wrong="learned")
    assert learned == pytest.approx(exact, rel=1e-5)
