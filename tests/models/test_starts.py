"""Where EM starts: votes, tables against them, groups of workers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans

from crowdppl.models.parts.starts import k_means, soft_votes, subtype_confusions, vote_confusions


def test_soft_votes_and_the_tables_against_them_are_counted(tiny):
    count = np.arange(1.0, 10.0, dtype="f4")
    for annotations in (tiny, tiny.replace(count=count)):
        weight = np.ones(9) if annotations.count is None else count
        votes = np.zeros((5, 3))
        np.add.at(votes, (tiny.task, tiny.label), weight)
        shares = np.where(votes.sum(-1, keepdims=True) > 0, votes / np.maximum(votes.sum(-1, keepdims=True), 1), 1 / 3)
        np.testing.assert_allclose(soft_votes(annotations), shares, atol=1e-6)
        tables = np.ones((3, 3, 3))
        for task, worker, label, w in zip(tiny.task, tiny.worker, tiny.label, weight, strict=True):
            tables[worker, :, label] += w * shares[task]
        np.testing.assert_allclose(vote_confusions(annotations), tables / tables.sum(-1, keepdims=True), atol=1e-6)
        by_subtype = np.asarray(subtype_confusions(annotations, 1, jax.random.key(0)))[:, :, 0]
        np.testing.assert_allclose(by_subtype, vote_confusions(annotations), atol=1e-6)


def test_subtypes_start_apart(tiny):
    start = np.asarray(subtype_confusions(tiny, 2, jax.random.key(0)))
    assert start.shape == (3, 3, 2, 3)
    assert np.abs(start[:, :, 0] - start[:, :, 1]).max() > 0.01


def test_k_means_finds_groups_that_are_apart():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 5.0]])
    actual = np.repeat(range(4), 25)
    points = centres[actual] + rng.normal(size=(100, 2)) * 0.5
    labels, found = jax.jit(k_means, static_argnums=1)(points, 4, jax.random.key(0))
    labels = np.asarray(labels)
    assert all(len(set(labels[actual == m])) == 1 for m in range(4))
    for m in range(4):
        np.testing.assert_allclose(found[labels[actual == m][0]], points[actual == m].mean(0), atol=1e-4)


@pytest.mark.parametrize("n_clusters", [2, 5, 9])
def test_k_means_is_about_as_tight_as_scikit_learns(n_clusters):
    """On points without any clusters, where local optima are many: within 5 % of the best of ten seedings."""
    points = np.random.default_rng(n_clusters).normal(size=(300, 4))
    peer = KMeans(n_clusters, n_init=10, random_state=0).fit(points)
    labels, centres = jax.jit(k_means, static_argnums=1)(points, n_clusters, jax.random.key(0))
    centres = np.asarray(centres, dtype=float)
    distances = ((points[:, None] - centres) ** 2).sum(-1)
    np.testing.assert_array_equal(labels, distances.argmin(-1))
    assert distances.min(-1).sum() < 1.05 * peer.inertia_


def test_k_means_copes_with_more_clusters_than_different_points():
    labels, centres = k_means(jnp.ones((5, 2)), 3, jax.random.key(0))
    assert np.isfinite(centres).all()
    np.testing.assert_allclose(np.asarray(centres)[np.asarray(labels)], 1.0)
