"""The distribution of all annotations, against loops over tasks and annotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import random_annotations
from scipy.stats import chisquare

from crowdppl import AnnotationLikelihood, Annotations, Confusion, Emission
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.models import find_story
from crowdppl.models.parts import kernels
from crowdppl.models.parts.emissions import select
from crowdppl.models.parts.kernels import FAST, drawn_kinds


@pytest.fixture
def table():
    return np.random.default_rng(1).dirichlet(np.ones(3), (3, 3)).astype("f4")


def by_loops(annotations, table, truth):
    scores = np.zeros(annotations.n_tasks)
    count = np.ones(annotations.n_rows) if annotations.count is None else annotations.count
    for t, w, y, c in zip(annotations.task, annotations.worker, annotations.label, count, strict=True):
        scores[t] += c * np.log(table[w, truth[t], y])
    return scores


@pytest.mark.parametrize("count", [None, np.arange(9.0)])
def test_log_prob_is_the_sum_over_each_tasks_annotations(tiny, table, count):
    annotations = tiny.replace(count=count)
    for truth in np.random.default_rng(0).integers(0, 3, (4, 5)):
        got = AnnotationLikelihood(jnp.asarray(truth), Confusion(table), annotations).log_prob(tiny.label)
        np.testing.assert_allclose(got, by_loops(annotations, table, truth), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 1), (3, 1, 1)])
def test_an_enumerated_truth_scores_every_class(tiny, table, shape):
    enumerated = jnp.arange(3).reshape(shape)
    likelihood = AnnotationLikelihood(enumerated, Confusion(table), tiny)
    assert likelihood.batch_shape == (*shape[:-1], 5)
    assert likelihood.event_shape == (9,)
    got = likelihood.log_prob(tiny.label).reshape(3, 5)
    for k in range(3):
        np.testing.assert_allclose(got[k], by_loops(tiny, table, np.full(5, k)), atol=1e-5)


@pytest.mark.parametrize("columns", [[0, 1, 2], [2, 0, 1], [1, 1, 1], [2, 0]])
def test_the_same_truth_of_all_tasks_takes_columns_whether_or_not_a_program_knows_it(columns):
    scores, truth = jax.random.normal(jax.random.key(0), (5, 3)), jnp.array(columns)[:, None]
    expected = np.asarray(scores)[:, columns].T
    np.testing.assert_array_equal(select(scores, truth), expected)
    np.testing.assert_array_equal(jax.jit(lambda scores: select(scores, truth))(scores), expected)
    np.testing.assert_array_equal(jax.jit(select)(scores, truth), expected)


def test_the_density_of_few_rows_has_no_branches(tiny):
    model = Model(find_story("dawid_skene"))
    start = starting_point(model, tiny, jax.random.key(0))
    assert " cond[" not in str(jax.make_jaxpr(lambda start: density(model, start, tiny).log_posterior)(start))


@pytest.mark.parametrize("n_classes", [2, 3, 7, 16])
def test_sums_of_few_rows_are_those_of_many(monkeypatch, n_classes):
    rng = np.random.default_rng(n_classes)
    crowd = random_annotations(rng, n_tasks=20, n_workers=6, n_classes=n_classes, n_rows=90)
    table = rng.dirichlet(np.ones(n_classes), (6, n_classes)).astype("f4")

    def of(table):
        return AnnotationLikelihood(jnp.arange(n_classes)[:, None], Confusion(table), crowd).log_prob(crowd.label)

    few = of(table), jax.grad(lambda table: (of(table) ** 2).sum())(table)
    monkeypatch.setattr(kernels, "FEW", 0)
    many = of(table), jax.grad(lambda table: (of(table) ** 2).sum())(table)
    np.testing.assert_allclose(few[0], many[0], rtol=1e-6)
    np.testing.assert_allclose(few[1], many[1], rtol=1e-5)


def test_leading_sample_dimensions_of_the_truth_are_kept(tiny, table):
    truth = np.random.default_rng(2).integers(0, 3, (4, 2, 5))
    got = AnnotationLikelihood(jnp.asarray(truth), Confusion(table), tiny).log_prob(tiny.label)
    expected = [[by_loops(tiny, table, z) for z in row] for row in truth]
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_rows_of_count_zero_say_nothing_even_where_impossible(tiny):
    impossible = np.broadcast_to(np.eye(3, dtype="f4"), (3, 3, 3))
    annotations = tiny.replace(count=np.zeros(9, dtype="f4"))

    def total(table):
        return AnnotationLikelihood(jnp.zeros(5, int), Confusion(table), annotations).log_prob(tiny.label).sum()

    value, gradient = jax.value_and_grad(total)(impossible)
    assert value == 0
    assert (np.asarray(gradient) == 0).all()


def test_select_takes_the_same_entries_by_column_and_by_row():
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)))
    by_column = select(scores, jnp.arange(4)[:, None])
    by_row = select(scores, jnp.broadcast_to(jnp.arange(4)[:, None], (4, 6)))
    np.testing.assert_array_equal(by_column, by_row)


def test_emissions_own_forms_agree_with_the_general_ones(tiny, table):
    emission = Confusion(jnp.asarray(table))
    truth = tiny.label[::-1]
    np.testing.assert_allclose(
        emission.log_prob(tiny.worker, tiny.task, tiny.label),
        Emission.log_prob(emission, tiny.worker, tiny.task, tiny.label),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        emission.probs_given(tiny.worker, tiny.task, truth),
        Emission.probs_given(emission, tiny.worker, tiny.task, truth),
    )
    answered = np.isin(np.arange(3), tiny.worker)
    np.testing.assert_allclose(Emission.confusions(emission, tiny)[answered], table[answered], atol=1e-6)


def test_sampled_annotations_have_the_tables_frequencies(table):
    """Chi-square over 30,000 annotations of one worker to tasks of each class; a false alarm once in 10,000 seeds."""
    n = 30_000
    annotations = Annotations.from_matrix(np.zeros((n, 1), dtype=int), classes=range(3))
    truth = np.arange(n) % 3
    answers = np.asarray(
        AnnotationLikelihood(jnp.asarray(truth), Confusion(table), annotations).sample(jax.random.key(0))
    )
    for k in range(3):
        observed = np.bincount(answers[truth == k], minlength=3)
        assert chisquare(observed, table[0, k] / table[0, k].astype(float).sum() * observed.sum()).pvalue > 1e-4


def test_samples_have_the_shape_of_samples_then_truth_then_annotations(tiny, table):
    truth = jnp.zeros((4, 5), int)
    assert AnnotationLikelihood(truth, Confusion(table), tiny).sample(jax.random.key(0), (2, 3)).shape == (2, 3, 4, 9)


@pytest.mark.parametrize(("n", "generator"), [(100, "threefry2x32"), (10, FAST)])
def test_each_of_many_kinds_is_drawn_as_often_as_it_is_probable(n, generator):
    """By sums of probabilities, where a hundred kinds would each need a random number, and by a fast generator."""
    probs = np.random.default_rng(0).dirichlet(np.ones(n)).astype("f4")
    probs[::5] = 0.0
    probs /= probs.sum()
    drawn = drawn_kinds(jax.random.key(0, impl=generator), jnp.broadcast_to(probs, (50_000, n)))
    found = np.bincount(np.asarray(drawn), minlength=n)
    assert not found[probs == 0].any()
    some = probs > 0
    assert chisquare(found[some], 50_000 * probs[some] / probs[some].sum(dtype=float)).pvalue > 1e-3
