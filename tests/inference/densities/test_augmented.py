"""Draws around a mode: rows of probabilities by NumPy, of many classes too."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy.stats import dirichlet_multinomial, halfnorm

import crowdppl as cp
from crowdppl.inference.densities import augmented
from crowdppl.inference.densities.augmented import OTHERWISE, dirichlet_rows, have_same_means, with_tails


def test_rows_have_the_mean_and_variance_of_their_dirichlet_distribution():
    concentration = np.array([0.05, 0.7, 1.0, 4.0])
    rows = dirichlet_rows(np.random.default_rng(0), np.broadcast_to(concentration, (200_000, 4)))
    mean = concentration / concentration.sum()
    variance = mean * (1 - mean) / (concentration.sum() + 1)
    np.testing.assert_allclose(rows.sum(-1), 1.0)
    np.testing.assert_allclose(rows.mean(0), mean, atol=5 * np.sqrt(variance.max() / len(rows)))  # five standard errors
    np.testing.assert_allclose(rows.var(0), variance, rtol=0.05)  # the rarest one's error is 1 %


def test_concentrations_too_small_for_a_float_give_corners_in_their_proportions():
    concentration = np.broadcast_to(np.array([3e-5, 1e-5], np.float32), (10_000, 2))
    rows = dirichlet_rows(np.random.default_rng(0), concentration)
    assert rows.dtype == np.float32
    assert ((rows > 0.999).sum(-1) == 1).mean() > 0.99
    np.testing.assert_allclose(rows.mean(0), [0.75, 0.25], atol=0.02)  # five standard errors


def test_a_worker_has_either_prior_by_the_odds_of_what_was_given():
    """Of 20,000 draws the share of the flatter prior is within five standard errors of that of Bayes' rule."""
    prior = np.broadcast_to(np.array([[2.0, 1.0], [1.0, 2.0]]), (20_000, 3, 2, 2))
    counts = np.array([[[9, 1], [2, 8]], [[2, 1], [3, 4]], [[0, 3], [2, 0]]])
    found = with_tails(np.random.default_rng(0), counts + prior, prior)
    is_other = np.isclose(found[:, :, 0, 0], counts[:, 0, 0] + 0.5)
    np.testing.assert_allclose(found[is_other], (np.broadcast_to(counts, prior.shape) + 0.5)[is_other])
    np.testing.assert_allclose(found[~is_other], (counts + prior)[~is_other])
    for worker, share in enumerate(is_other.mean(0)):
        rows = list(zip(counts[worker], prior[0, 0], strict=True))
        usual = np.prod([dirichlet_multinomial.pmf(row, of_row, row.sum()) for row, of_row in rows])
        other = np.prod([dirichlet_multinomial.pmf(row, [0.5, 0.5], row.sum()) for row, _ in rows])
        expected = OTHERWISE * other / (OTHERWISE * other + (1 - OTHERWISE) * usual)
        assert share == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 20_000))


def test_where_nobody_gave_anything_tails_are_as_frequent_as_before_any_annotation():
    prior = np.broadcast_to(np.array([[3.0, 1], [1, 3]]), (2000, 4, 2, 2))
    found = with_tails(np.random.default_rng(0), prior, prior)
    is_other = (found == 0.5).all((-1, -2))
    np.testing.assert_array_equal(found[~is_other], prior[~is_other])
    # Of 8,000 draws the share has a standard error below .0056; it is within four.
    assert is_other.mean() == pytest.approx(OTHERWISE, abs=0.0225)


def test_what_is_known_of_workers_before_and_what_is_padded_stays():
    prior = np.broadcast_to(np.array([[2.0, 1.0], [1.0, 2.0]]), (100, 3, 2, 2)).copy()
    rng = np.random.default_rng(0)
    prior[:, 2] = 0
    np.testing.assert_array_equal(with_tails(rng, prior + 1, prior)[:, 2], prior[:, 2] + 1)
    prior[:, 1, 0, 0] += 30
    np.testing.assert_array_equal(with_tails(rng, prior + 1, prior), prior + 1)


def test_intervals_go_as_far_as_workers_who_are_mostly_wrong(monkeypatch):
    """Of two with twenty annotations of four classes, which the prior alone would take for better by a tenth."""
    rng = np.random.default_rng(0)
    truth, task = rng.integers(0, 4, 40), np.repeat(np.arange(40), 6)
    worker = np.concatenate([rng.permutation(12)[:6] for _ in range(40)])
    right = rng.random(240) < np.where(worker < 2, 0.15, 0.85)
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, 4, 240)) % 4)
    annotations = cp.Annotations.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": label}))
    lows = [cp.fit("dawid_skene", annotations, progress=False).workers["accuracy_low"]]
    monkeypatch.setattr(augmented, "OTHERWISE", 1e-12)
    lows.append(cp.fit("dawid_skene", annotations, progress=False).workers["accuracy_low"])
    wrong, able = zip(*((low[[0, 1]], low.drop([0, 1])) for low in lows), strict=True)
    assert (wrong[0] < 0.15).all()
    assert (wrong[1] > wrong[0] + 0.05).all()
    np.testing.assert_allclose(able[0], able[1], atol=0.1)


@pytest.mark.slow
def test_workers_of_a_hundred_classes_have_intervals_in_less_than_a_minute():
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(2_000), 4)
    worker = (worker + task) % 40
    truth = task % 100
    label = np.where(rng.random(2_000) < 0.8, truth, rng.integers(100, size=2_000))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    annotations = cp.Annotations.from_frame(frame)
    fit = cp.fit("dawid_skene", annotations, progress=False)
    before = time.process_time()
    workers = fit.workers
    assert time.process_time() - before < 60  # 10; variates drawn one after the other take 200
    assert (workers["accuracy_low"] < workers["accuracy_high"]).all()


def test_a_story_with_one_number_for_all_workers_has_intervals():
    def common_skill(annotations, *, truth_prior=None):
        skill = numpyro.sample("skill", dist.Normal(1.0, 1.0))
        with cp.tasks(annotations, truth_prior) as truth:
            ability = skill * np.ones((annotations.n_workers, 1))
            cp.observe(truth, cp.Correct(ability, annotations.n_classes), annotations)

    workers = cp.fit(common_skill, cp.load_dataset("toy"), progress=False).workers
    assert (workers["accuracy_low"] < workers["accuracy_high"]).all()


def test_positive_parameters_of_which_the_data_say_nothing_are_drawn_from_their_prior():
    """Moved as logarithms without their change of volume, they ran away to zero."""

    def with_spreads(annotations, *, truth_prior=None):
        numpyro.sample("spread", dist.HalfNormal(1.0).expand([40]).to_event(1))
        right = numpyro.sample("right", dist.Beta(2.0, 1.0))
        with cp.tasks(annotations, truth_prior) as truth:
            ability = jnp.log(right / (1 - right)) * np.ones((annotations.n_workers, 1))
            cp.observe(truth, cp.Correct(ability, annotations.n_classes), annotations)

    fit = cp.fit(with_spreads, cp.load_dataset("toy"), method="svi", sweeps=100, progress=False)
    found = np.quantile(fit.draws["spread"], [0.1, 0.5, 0.9])
    np.testing.assert_allclose(found, halfnorm.ppf([0.1, 0.5, 0.9]), rtol=0.15)


LATENT = ["mace", "common_individual"]
"""Stories whose annotations have a latent variable of their own: given the labels, tables are no Dirichlet
distributions, whose counts would be taken for seen."""


@pytest.mark.parametrize(
    "story", ["item_response", "confusion_from_features", *(pytest.param(s, marks=pytest.mark.slow) for s in LATENT)]
)
def test_parameters_that_depend_on_each_other_have_intervals_as_wide_as_those_of_nuts(story):
    """Such as weights and their base, abilities and difficulties: moved at once, each for itself, they fly apart."""
    annotations = cp.simulate(story, n_tasks=60, n_workers=15, annotations_per_task=6, seed=1)[0].without_gold()
    of_point = cp.fit(story, annotations, progress=False).workers
    sampled = cp.fit(story, annotations, method="nuts", chains=2, progress=False).workers
    width = [(workers["accuracy_high"] - workers["accuracy_low"]).mean() for workers in (of_point, sampled)]
    assert 0.75 < width[0] / width[1] < 1.25


@pytest.mark.slow
def test_thousands_of_parameters_leave_the_mode_as_far_as_those_of_nuts():
    """Accepted by the exact rule, trajectories would be so short that abilities spread by 0.048 around 0.36."""
    sizes = {"n_tasks": 3000, "n_workers": 40, "n_classes": 3, "annotations_per_task": 5}
    annotations = cp.simulate("dawid_skene", seed=1, **sizes)[0].without_gold()
    around = cp.fit("glad", annotations, progress=False).fitted.with_uncertainty.draws
    sampled = cp.fit("glad", annotations, method="nuts", chains=2, warmup=300, draws=300, progress=False).draws
    for name in ("ability", "difficulty"):
        ours, theirs = np.asarray(around[name]), sampled[name].to_numpy()
        np.testing.assert_allclose(ours.mean(), theirs.mean(), atol=0.03)
        np.testing.assert_allclose(ours.std((0, 1)).mean(), theirs.std((0, 1)).mean(), rtol=0.1)


@pytest.mark.slow
def test_real_valued_matrices_of_many_classes_have_intervals():
    """Of 26 classes they have 676 directions, too many to take the curvature along each."""
    sizes = {"n_tasks": 300, "n_workers": 8, "n_classes": 26, "annotations_per_task": 5}
    annotations = cp.simulate("dawid_skene", seed=1, diagonal=20.0, **sizes)[0].without_gold()
    around = cp.fit("hierarchical_dawid_skene", annotations, progress=False)
    assert (around.workers["accuracy_high"] - around.workers["accuracy_low"]).min() > 0.02
    for values in around.fitted.with_uncertainty.draws.values():
        assert np.std(values, axis=(0, 1)).min() > 0


def test_steps_that_are_hardly_ever_accepted_are_told(monkeypatch):
    """As they are where the density is far steeper around the mode than its curvature there says.

    And where there is work for eight steps alone: from both ends sixty make the leaps short enough.
    """
    monkeypatch.setattr(augmented, "LONGEST", 1e30)
    monkeypatch.setattr(augmented, "BOTH_ENDS", 0.0)
    with pytest.warns(cp.ConvergenceWarning, match=r"hardly a step .* method='nuts'"):
        _ = cp.fit("glad", cp.load_dataset("toy"), progress=False).workers


def test_rows_that_take_trajectories_in_logarithms_have_their_dirichlet_distribution():
    """The free direction, the mean of the logarithms, has a normal density of its own, and changes nothing."""
    alpha, shares = jnp.array([1.5, 4.0, 8.0]), augmented.Shares()

    def log_density(reals):
        return (alpha * jnp.log(shares(reals["row"]))).sum() - 0.5 * reals["row"].mean() ** 2

    def step(now, key):
        there, accepted = augmented.trajectory(
            key, log_density, now, jax.value_and_grad(log_density)(now), {"row": alpha}, jnp.float32(0.3)
        )
        return there, (shares(there["row"]), accepted)

    start = {"row": shares.inv(alpha / alpha.sum())}
    _, (rows, accepted) = jax.lax.scan(step, start, jax.random.split(jax.random.key(0), 20_000))
    mean = alpha / alpha.sum()
    np.testing.assert_allclose(rows.mean(0), mean, atol=0.01)
    np.testing.assert_allclose(rows.var(0), mean * (1 - mean) / (alpha.sum() + 1), rtol=0.1)
    assert accepted.mean() > 0.8


def test_logarithms_of_rows_come_back_from_zeros_too():
    rows, shares = np.random.default_rng(0).dirichlet(np.ones(4), 5), augmented.Shares()
    rows[0] = [0.0, 0.5, 0.5, 0.0]
    np.testing.assert_allclose(shares(shares.inv(rows)), rows, rtol=1e-5, atol=1e-20)
    np.testing.assert_allclose(shares(shares.inv(rows) + 3.0), rows, rtol=1e-5, atol=1e-20)


@pytest.mark.parametrize("limit", [7, 43, 199])
def test_draws_are_taken_in_equal_parts(limit):
    """A part of another size would be a program of its own."""
    for n in augmented.NUMBERS:
        assert max(size for size in augmented.divisors(n) if size <= limit) >= min(limit, n) / 2


def test_what_a_function_computes_is_counted_within_loops_and_calls():
    def function(own):
        doubled = jax.lax.scan(lambda sum, row: (sum + row, None), jnp.zeros(10), own["rows"])[0]
        return jax.jit(jnp.exp)(doubled).sum()

    assert augmented.computed(function, {"rows": jnp.ones((7, 10))}) in range(7 * 10 + 10 + 1, 7 * 10 + 10 + 20)


def test_stories_that_take_longer_have_fewer_draws_around_their_point(monkeypatch):
    """A density that sums impressions and levels out computes many times as many numbers."""
    monkeypatch.setattr(augmented, "WORK", augmented.WORK / 15)
    sizes = {"n_tasks": 100, "n_workers": 20, "n_classes": 5, "annotations_per_task": 5}
    annotations = cp.simulate("dawid_skene", **sizes, seed=3)[0].without_gold()
    shapes = [
        cp.fit("dawid_skene", annotations, progress=False, **parts).fitted.with_uncertainty.shape
        for parts in ({}, {"shared_error": True, "task_difficulty": True})
    ]
    assert shapes == [(1, 200), (1, 25)]


def test_fewer_ways_give_as_many_draws(monkeypatch):
    """Ten draws of a way, one a step: from both ends, of whose ways only the last step is kept, there would be 20."""
    monkeypatch.setattr(augmented, "LITTLE", 0)
    annotations = cp.simulate("dawid_skene", n_tasks=40, n_workers=6, seed=3)[0].without_gold()
    assert cp.fit("dawid_skene", annotations, progress=False).fitted.with_uncertainty.shape == (1, 200)


def test_means_are_the_same_where_two_halves_of_draws_differ_by_chance_alone():
    rng = np.random.default_rng(0)
    part = np.arange(200) > 99
    draws = {"a": rng.normal(size=(200, 30)), "b": rng.normal(size=200), "c": np.ones((200, 2))}
    assert have_same_means(draws, part)
    assert not have_same_means(draws | {"b": draws["b"] + 0.5 * part}, part)


def test_intervals_of_few_annotations_hold_what_the_crowd_was_drawn_with_more_often_than_those_that_remember_the_mode():
    """Of 20 crowds of 40 tasks and 4 workers: 160 probabilities, whose share has a standard error of .03 or so."""
    held = {"both ends": [], "the mode": []}
    for start, most in (("both ends", augmented.MOST_STEPS), ("the mode", 10**9)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(augmented, "MOST_STEPS", most)
            for seed in range(20):
                annotations, actual = cp.simulate("one_coin", n_tasks=40, n_workers=4, seed=seed)
                fit = cp.fit("one_coin", annotations.without_gold(), progress=False)
                draws = np.asarray(fit.with_uncertainty.only.flat_draws["ability"])
                low, high = np.quantile(draws, [0.05, 0.95], axis=0)
                held[start].append((low <= actual["ability"]) & (actual["ability"] <= high))
    both_ends, the_mode = (np.mean(each) for each in held.values())
    assert the_mode + 0.05 < both_ends
    assert 0.82 < both_ends < 0.98


@pytest.mark.slow
def test_scales_of_workers_differences_are_nearer_to_those_of_nuts_than_draws_that_begin_at_the_mode(monkeypatch):
    """On a crowd whose mode has scales that are up to three times too large or too small.

    Means of 200 draws of a scale whose logarithm spreads by one have an error of .07, and of NUTS's likewise.
    """
    sizes = {"n_tasks": 100, "n_workers": 10, "n_classes": 3, "annotations_per_task": 6}
    annotations = cp.simulate("hierarchical_dawid_skene", seed=3, **sizes)[0].without_gold()
    sampled = cp.fit("hierarchical_dawid_skene", annotations, method="nuts", chains=2, progress=False).draws["spread"]
    gaps = []
    for started in (augmented.Steps.started, lambda *_: {}):
        monkeypatch.setattr(augmented.Steps, "started", started)
        around = cp.fit("hierarchical_dawid_skene", annotations, progress=False).with_uncertainty.only.draws["spread"]
        gap = np.log(around).mean((0, 1)) - np.log(sampled.to_numpy()).mean((0, 1))
        gaps.append(np.sqrt(np.square(gap).mean()))
    assert gaps[0] < 0.3 < 0.35 < gaps[1]
