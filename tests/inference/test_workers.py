"""Workers' scores against their definitions in loops."""

import numpy as np

from crowdppl.inference.workers import accuracy, scores, spammer_score


def test_accuracy_is_the_chance_of_a_right_answer():
    tables, shares = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4, 3)), np.array([0.2, 0.3, 0.5])
    expected = [[sum(shares[k] * t[k, k] for k in range(3)) for t in row] for row in tables]
    np.testing.assert_allclose(accuracy(tables, shares), expected)


def test_spammer_score_is_the_mean_squared_distance_between_rows():
    for k in (2, 3, 5):
        tables = np.random.default_rng(k).dirichlet(np.ones(k), (6, k))
        expected = [
            sum(((t[a] - t[b]) ** 2).sum() for a in range(k) for b in range(a + 1, k)) / (k * (k - 1)) for t in tables
        ]
        np.testing.assert_allclose(spammer_score(tables), expected)


def test_perfect_workers_score_one_and_spammers_zero():
    np.testing.assert_allclose(spammer_score(np.eye(4)), 1, atol=1e-15)
    np.testing.assert_allclose(spammer_score(np.tile([0.1, 0.2, 0.7], (3, 1))), 0, atol=1e-15)


def test_for_two_classes_it_is_the_square_of_youdens_index():
    table = np.array([[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(spammer_score(table), (0.7 + 0.9 - 1) ** 2)


def test_two_classes_have_a_sensitivity_and_a_specificity_and_more_have_not():
    tables = np.random.default_rng(1).dirichlet(np.ones(2), (6, 4, 2))
    found = scores(tables, np.array([0.3, 0.7]))
    assert list(found) == ["accuracy", "spammer_score", "sensitivity", "specificity"]
    np.testing.assert_array_equal(found["sensitivity"], tables[..., 1, 1])  # the second class is the positive one
    np.testing.assert_array_equal(found["specificity"], tables[..., 0, 0])
    np.testing.assert_allclose(found["accuracy"], 0.7 * found["sensitivity"] + 0.3 * found["specificity"])
    three = np.random.default_rng(1).dirichlet(np.ones(3), (4, 3))
    assert list(scores(three, np.ones(3) / 3)) == ["accuracy", "spammer_score"]
