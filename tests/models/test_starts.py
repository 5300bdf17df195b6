"""Where EM starts: votes, tables against them, groups of workers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans

import crowdppl as cp
from crowdppl.benchmarks.papers.setups import three_gaussians
from crowdppl.models import StoryError
from crowdppl.models.parts.starts import annotation_confusions, k_means, soft_votes, subtype_confusions, vote_confusions


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


def test_k_means_lets_a_point_of_weight_two_be_two_points():
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 6.0]).astype("f4")
    times = rng.integers(0, 4, 60)
    _, weighted = k_means(points, 2, jax.random.key(0), weight=jnp.asarray(times, float))
    _, repeated = k_means(np.repeat(points, times, axis=0), 2, jax.random.key(1))
    np.testing.assert_allclose(np.sort(weighted, axis=0), np.sort(repeated, axis=0), atol=1e-5)


def test_annotations_start_in_groups_of_the_classes_that_others_say_instead():
    """Three tasks: all say 0; most say 0 and one says 1; most say 1 and one says 2."""
    counts = np.array([[6, 0, 0], [5, 1, 0], [0, 5, 1]])
    annotations = cp.Annotations.from_counts(counts)
    shares = counts / counts.sum(-1, keepdims=True)
    task, label = np.nonzero(counts)
    points = np.where(np.eye(3, dtype=bool)[label], 0.0, shares[task])
    peer = KMeans(3, n_init=20, random_state=0).fit(points, sample_weight=counts[task, label])
    expected = np.ones((3, 3, 3))
    for group, i, k in zip(peer.labels_, task, label, strict=True):
        expected[group, :, k] += counts[i, k] * shares[i]
    expected /= expected.sum(-1, keepdims=True)
    found = np.asarray(annotation_confusions(annotations, 3, jax.random.key(0)))
    order = [np.abs(expected - matrix).sum((1, 2)).argmin() for matrix in found]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(found, expected[order], atol=1e-5)


def test_groups_of_annotations_start_and_end_apart_from_groups_of_workers(tiny):
    with pytest.raises(StoryError, match="start='annotations' needs membership='answer'"):
        cp.fit("annotator_groups", tiny, membership="worker", start="annotations", progress=False)
    with pytest.raises(cp.UnknownNameError, match=r"unknown start 'votes'.* There are: workers, annotations"):
        cp.fit("annotator_groups", tiny, start="votes", progress=False)
    drawn = three_gaussians(50, n_tasks=300)[0]
    by_workers, by_annotations = (
        cp.fit("annotator_groups", drawn, start=start, progress=False).draws["group_confusion"].to_numpy()
        for start in ("workers", "annotations")
    )
    assert np.abs(by_workers - by_annotations).max() > 0.05
