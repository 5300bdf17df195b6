"""Sweeps of data augmentation: their end is the posterior, wherever they start, and their number is bounded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_labellings import exact_labels

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, UNTRUSTWORTHY
from crowdppl.inference.densities import augmented, sweeps
from crowdppl.inference.densities.model import Model
from crowdppl.inference.findings.of_draws import sweeps_apart
from crowdppl.inference.fitted import averaged_labels
from crowdppl.inference.fitted.averaged_labels import THIN
from crowdppl.models import find_story

CROWD = {"n_tasks": 8, "n_workers": 3, "seed": 2}


def test_label_probabilities_are_those_of_all_labellings_with_the_parameters_integrated_out():
    annotations = cp.simulate("dawid_skene", diagonal=2.0, **CROWD)[0].without_gold()
    exact = exact_labels(annotations, 2.0, 1.0)
    options = {
        "method": "svi",
        "diagonal": 2.0,
        "off_diagonal": 1.0,
        "progress": False,
        "truth_prior": cp.Prevalence(1.0),
    }
    guide, found = (cp.fit("dawid_skene", annotations, sweeps=number, **options) for number in (0, None))
    assert found.outcome.facts["sweeps"] == sweeps.MOST
    off = [np.abs(np.asarray(fit.posterior) - exact).mean() for fit in (guide, found)]
    assert off[1] < 0.03  # of a hundred chains whose draws depend on each other
    assert off[1] < off[0] / 2


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    annotations = cp.simulate("glad", **CROWD)[0].without_gold()
    options = {"method": "svi", "progress": False, "max_iterations": 100, "draws": 20, "sweeps": 3}
    one, same, other = (cp.fit("glad", annotations, seed=seed, **options).outcome for seed in (0, 0, 1))
    assert one.facts["sweeps"] == 3
    for name, draws in one.draws.items():
        np.testing.assert_array_equal(draws, same.draws[name])
        assert not np.array_equal(draws, other.draws[name])


def test_loss_and_number_of_draws_are_those_without_sweeps():
    annotations = cp.simulate("dawid_skene", **CROWD)[0].without_gold()
    options = {"method": "svi", "progress": False, "max_iterations": 100, "draws": 30}
    guide, found = (cp.fit("dawid_skene", annotations, sweeps=number, **options).outcome for number in (0, 5))
    np.testing.assert_array_equal(guide.history, found.history)
    for name, draws in guide.draws.items():
        assert draws.shape == found.draws[name].shape
        assert not np.array_equal(draws, found.draws[name])


def test_data_that_a_second_does_not_sweep_have_no_sweeps_unless_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(sweeps, "WORK", 0)
    annotations = cp.simulate("dawid_skene", **CROWD)[0].without_gold()
    options = {"method": "svi", "progress": False, "max_iterations": 100, "draws": 30}
    facts = [cp.fit("dawid_skene", annotations, **options, **asked).outcome.facts for asked in ({}, {"sweeps": 2})]
    assert [each["sweeps"] for each in facts] == [0, 2]


@pytest.mark.parametrize("n", [1, 7, 30, 1000])
@pytest.mark.parametrize("asked", [None, 1, 2, 8, 15, 100])
def test_draws_that_are_kept_are_of_the_later_sweeps_and_differ(n, asked):
    n_chains, n_sweeps = sweeps.planned(n, asked, 10**6)
    kept = sweeps.kept_sweeps(n_sweeps, -(-n // n_chains))
    assert len(set(kept)) == len(kept)
    assert n_chains * len(kept) >= n
    assert kept[-1] == n_sweeps - 1
    assert kept[0] >= n_sweeps - max(n_sweeps // 2, sweeps.later(n_sweeps))


def test_gold_labels_stay_known_where_chains_begin_at_the_votes():
    annotations = cp.simulate("dawid_skene", **CROWD)[0]
    wrong = annotations.replace(gold=1 - np.asarray(annotations.votes().argmax(-1), dtype=np.int32))
    fit = cp.fit("dawid_skene", wrong, gold=True, method="svi", sweeps=1, draws=20, progress=False)
    accuracy = fit.workers["accuracy"]
    assert accuracy.max() < 0.5  # whoever agrees with the votes is wrong by the gold labels


def test_tables_of_shared_errors_take_trajectories_where_steps_have_to_be_exact():
    """Given the labels alone they have no Dirichlet distribution: who fell for an impression is not known."""
    annotations = cp.simulate("dawid_skene", **CROWD)[0].without_gold()
    model = Model(find_story("dawid_skene"), {"shared_error": True})
    fit = cp.fit("dawid_skene", annotations, shared_error=True, max_iterations=3, progress=False)
    draws = {name: np.asarray(value)[0] for name, value in fit.draws.items()}
    steps = [augmented.Steps.around(model, annotations, draws, {}, exact=exact).moved for exact in (False, True)]
    assert steps[0] == ()
    assert set(steps[1]) >= {"confusion"}


def test_a_padded_worker_stays_where_it_is():
    """Without a density of its own it would walk off, until its values are infinite and every step is refused."""
    annotations = cp.simulate("glad", **CROWD)[0].without_gold()
    seen = cp.fit("glad", annotations, progress=False, max_iterations=3).fitted.at_size
    draws = {name: np.asarray(value)[0] for name, value in seen.draws.items()}
    assert draws["ability"].shape[1] > annotations.n_workers
    steps = augmented.Steps.around(seen.model, seen.annotations, draws, seen.fixed, exact=True)
    after, _, _ = steps.taken(draws, 0.4, jax.random.key(0), 0, np.random.default_rng(0))
    moved = ~np.isclose(after["ability"], draws["ability"], rtol=1e-4)[0]
    assert jnp.isfinite(after["ability"]).all()
    assert not moved[annotations.n_workers :].any()
    assert moved[: annotations.n_workers].all()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 5, 10])
def test_intervals_hold_the_confusion_matrices_and_prevalence_that_crowds_were_simulated_with(n_classes):
    """Entries of one crowd depend on each other: the error of a share of 90 % over the crowds is about 2 %."""
    held: dict[str, list[np.ndarray]] = {"confusion": [], "prevalence": []}
    for seed in range(6):
        sizes = {"n_tasks": 100, "n_workers": 10, "n_classes": n_classes, "annotations_per_task": 4}
        annotations, actual = cp.simulate(
            "dawid_skene", seed=seed, diagonal=3.0, off_diagonal=1 / (n_classes - 1), **sizes
        )
        options = {"diagonal": 3.0, "off_diagonal": 1 / (n_classes - 1), "method": "svi", "progress": False}
        draws = cp.fit("dawid_skene", annotations.without_gold(), seed=seed, **options).fitted.draws
        for name, shares in held.items():
            low, high = np.quantile(np.asarray(draws[name])[0], (0.05, 0.95), axis=0)
            shares.append((low <= actual[name]) & (actual[name] <= high))
    assert 0.86 < np.mean(held["confusion"]) < 0.94
    assert np.mean(held["prevalence"]) > 0.78


def test_labels_that_depend_on_where_the_sweeps_began_are_told():
    """The second half of the draws, which are of chains from the votes, has the classes swapped.

    Of fewer draws than these the Monte Carlo error of a half alone is as large as the gap that is told.
    """
    annotations = cp.simulate("dawid_skene", **CROWD)[0].without_gold()
    fit = cp.fit("dawid_skene", annotations, method="svi", sweeps=20, draws=400, progress=False).fitted
    met = sweeps_apart(fit)
    draws = {name: np.array(value) for name, value in fit.draws.items()}
    draws["confusion"][:, 200:] = draws["confusion"][:, 200:, :, ::-1]
    draws["prevalence"][:, 200:] = draws["prevalence"][:, 200:, ::-1]
    (finding,) = sweeps_apart(fit.with_draws(draws))
    assert not met
    of_guide, of_votes = fit.by_start
    assert finding.values["gap"] == pytest.approx(np.abs(of_guide - of_votes[:, ::-1]).sum(-1).mean() / 2, abs=1e-5)
    assert finding.values["gap"] > 0.4
    assert finding.values["sweeps"] == 20
    assert "method='nuts'" in finding.remedy


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_labels_of_em_that_depend_on_where_the_sweeps_began_are_told_and_those_of_healthy_crowds_are_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(averaged_labels, "THIN", THIN)  # as by default
    shapes = {**HEALTHY, **UNTRUSTWORTHY}
    for shape, told in {"pairs of classes": True, "plain": False, "few experts": False}.items():
        annotations = shapes[shape](np.random.default_rng(0))
        fit = cp.fit("dawid_skene", annotations.without_gold(), progress=False)
        found = sweeps_apart(fit.fitted)
        assert bool(found) == told
        if told:
            right = (fit.posterior.argmax(1) == np.asarray(annotations.gold)).mean()
            assert fit.posterior.max(1).mean() > right + 0.1
            assert found[0].values["gap"] == fit.fitted.outcome.facts["apart"]
            rows = annotations.to_frame()[["task", "worker", "label"]].sort_values("task")
            rows.to_parquet(tmp_path / "crowd.parquet")
            of_files = cp.fit("dawid_skene", cp.scan(tmp_path / "crowd.parquet"), progress=False)
            assert "sweeps_apart" in [one.code for one in of_files.findings]
            average = cp.fit("auto", annotations.without_gold(), progress=False)
            assert [one.code for one in average.findings.warnings] == ["sweeps_apart"]
