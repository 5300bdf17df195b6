"""Modes of a posterior: their masses against sums over all labellings, one naming of the classes, and words."""

import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from picked_findings import codes, findings_of
from scipy.special import gammaln, logsumexp

import crowdppl as cp
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.findings.of_draws import worst_rhat
from crowdppl.inference.fit_story import _looked_at
from crowdppl.inference.fitted import modes
from crowdppl.inference.fitted.fitted import Fitted
from crowdppl.inference.fitted.modes import peak
from crowdppl.inference.storage.arviz_groups import group
from crowdppl.models import find_story

OPTIONS = {"diagonal": 2.0, "off_diagonal": 1.0, "truth_prior": cp.Prevalence(1.0)}


def two_camps(right, n_tasks=10, seed=0):
    """Workers of whom some name the two classes the other way round, with a slip now and then."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_tasks) % 2
    label = np.stack([np.where(rng.random(n_tasks) < p, truth, 1 - truth) for p in right], 1)
    task, worker = np.indices(label.shape).reshape(2, -1)
    return cp.Annotations.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": label.reshape(-1)})), label


def log_masses(label, diagonal, off_diagonal):
    """The log-probability of every labelling with the annotations, all of Dawid & Skene's parameters integrated out."""
    n_tasks, n_workers = label.shape

    def of_counts(counts, a):
        return gammaln(a.sum()) - gammaln((a + counts).sum()) + (gammaln(a + counts) - gammaln(a)).sum()

    masses = {}
    for labelling in product(range(2), repeat=n_tasks):
        z = np.array(labelling)
        masses[labelling] = of_counts(np.bincount(z, minlength=2), np.ones(2)) + sum(
            of_counts(np.bincount(label[z == k, j], minlength=2), np.where(np.arange(2) == k, diagonal, off_diagonal))
            for j in range(n_workers)
            for k in range(2)
        )
    return masses


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.ConvergenceWarning)
        return cp.fit(*args, progress=False, **options)


@pytest.mark.parametrize("right", [(0.95, 0.95, 0.95, 0.05, 0.05), (0.95, 0.95, 0.05, 0.05)], ids=["3:2", "2:2"])
def test_masses_are_those_of_the_sums_over_all_labellings(right):
    """Laplace's approximation is within a few hundredths of the exact share, of ten tasks."""
    annotations, label = two_camps(right)
    fit = quiet("dawid_skene", annotations, restarts=12, **OPTIONS)
    exact = log_masses(label, 2.0, 1.0)
    each = np.array(list(exact))
    two = fit.fitted.outcome.modes.labels[:2]
    nearer = (each[:, None] != two).sum(-1).argmin(1)
    of_two = [logsumexp(np.array(list(exact.values()))[nearer == m]) for m in range(2)]
    mass = fit.modes["mass"].to_numpy()[:2]
    np.testing.assert_allclose(mass / mass.sum(), np.exp(of_two - logsumexp(of_two)), atol=0.03)
    assert fit.modes["tasks_differ"].tolist()[:2] == [0, 10]
    assert sorted(end for ends in fit.modes["ends"] for end in ends) == list(range(1, 13))


def test_a_second_reading_of_much_mass_is_said_and_the_labels_of_both_are_there():
    annotations, _ = two_camps((0.95, 0.95, 0.95, 0.05, 0.05))
    with pytest.warns(cp.ConvergenceWarning, match="two readings of this crowd: A 8[0-9]% .* differ on 10 tasks"):
        fit = cp.fit("dawid_skene", annotations, restarts=12, progress=False, **OPTIONS)
    (finding,) = findings_of(fit, "readings")
    assert finding.values["tasks_differ"][:2] == [0, 10]
    assert finding.values["mass"] == pytest.approx(fit.modes["mass"].tolist())
    labels = fit.mode_labels
    assert (labels["A"] == fit.labels["label"]).all()
    assert (labels["A"] != labels["B"]).all()


def test_starts_that_end_in_one_reading_are_one_mode():
    annotations, _ = two_camps((0.9,) * 5, n_tasks=30)
    fit = quiet("dawid_skene", annotations, restarts=4, **OPTIONS)
    assert fit.modes["ends"].tolist() == [(1, 2, 3, 4)]
    assert fit.modes["mass"].tolist() == [1.0]
    assert len(fit.mode_labels) == 0
    assert not findings_of(fit, "readings")
    once = quiet("dawid_skene", annotations, **OPTIONS)
    assert once.modes["ends"].tolist() == [(1,)]
    np.testing.assert_allclose(once.modes["log_posterior"].iloc[0], once.history.iloc[-1], rtol=1e-5)


def test_starts_that_only_permute_the_classes_are_one_mode_and_named_as_the_votes_name_it():
    annotations, _ = two_camps((0.95, 0.95, 0.95, 0.05, 0.05))
    flat = OPTIONS | {"diagonal": 1.0}
    fits = [quiet("dawid_skene", annotations, restarts=12, seed=seed, **flat) for seed in range(2)]
    assert any("classes_permuted" in fit.fitted.origin for fit in fits)
    for fit in fits:
        assert len(fit.modes) == 1
        votes = fit.annotations.votes()
        agreement = (fit.posterior * votes).sum()
        assert agreement > (fit.posterior[:, ::-1] * votes).sum()


def sampled(annotations, mixed, **options):
    """A fit by NUTS of given draws, looked at as fits are."""
    model = Model(find_story("dawid_skene"), options)
    stats = {name: np.zeros(mixed["prevalence"].shape[:2], int) for name in ("diverging", "tree_depth")}
    outcome = Outcome(mixed, {}, np.zeros(0), stats)
    settings = {"seed": 0, "backend": "numpyro", "max_tree_depth": 10}
    dims = parameter_dims(model, annotations)
    return cp.Fit.of(_looked_at(Fitted(model, annotations, outcome, "nuts", settings, dims), {}))


def chains(annotations, label, swapped):
    """Independent draws given the right labels, those of some chains with the classes exchanged."""
    rng = np.random.default_rng(1)
    truth = np.arange(annotations.n_tasks) % 2
    counts = np.stack(
        [np.stack([np.bincount(column[truth == k], minlength=2) for k in range(2)]) for column in label.T]
    )

    def draw(a):
        gamma = rng.gamma(a, size=(len(swapped), 200, *a.shape))
        return (gamma / gamma.sum(-1, keepdims=True)).astype(np.float32)

    found = {"prevalence": draw(1.0 + np.bincount(truth)), "confusion": draw(1.0 + counts)}
    for chain in np.flatnonzero(swapped):
        found["prevalence"][chain] = found["prevalence"][chain][..., ::-1]
        found["confusion"][chain] = found["confusion"][chain][..., ::-1, :]
    return found


def test_chains_that_permute_the_classes_are_matched_before_r_hat_and_the_files_say_so(tmp_path):
    annotations, label = two_camps((0.9,) * 5, n_tasks=60)
    draws = chains(annotations, label, [True, False, True])
    fit = sampled(annotations, draws, diagonal=1.0, truth_prior=cp.Prevalence(1.0))
    assert worst_rhat(fit.draws)[0] < 1.02
    assert not {"rhat", "permuted_chains", "readings"} & set(codes(fit))
    said = fit.fitted.origin["classes_permuted"]
    assert said.startswith("chain 1, in which 0 is 1 there")
    assert "chain 3" in said
    assert "chain 3" in str(fit.summary())
    assert (fit.labels["label"] == np.arange(60) % 2).mean() > 0.9  # and not its complement
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert group(again.idata, "posterior").attrs["classes_permuted"] == said
    assert (
        json.loads((tmp_path / "fit" / "manifest.json").read_text())["parts"][0]["origin"]["classes_permuted"] == said
    )


def test_chains_in_readings_that_the_prior_tells_apart_are_left_and_said_with_their_masses(tmp_path):
    annotations, label = two_camps((0.9, 0.9, 0.9, 0.1, 0.1), n_tasks=20)
    draws = chains(annotations, label, [False, True, False])
    fit = sampled(annotations, draws, **OPTIONS)
    np.testing.assert_array_equal(fit.fitted.draws["confusion"], draws["confusion"])
    assert "classes_permuted" not in fit.fitted.origin
    assert fit.modes["ends"].tolist() == [(1, 3), (2,)]
    assert fit.modes["mass"].iloc[0] > 0.5
    (finding,) = findings_of(fit, "readings")
    assert "(chains 1, 3)" in finding.text
    assert "average the chains as they are" in finding.text
    assert [each.values for each in findings_of(fit, "permuted_chains")] == [{"chain": 2, "reference": 1}]
    assert findings_of(fit, "rhat")
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.modes, fit.modes)
    pd.testing.assert_frame_equal(again.mode_labels, fit.mode_labels)


def test_each_start_of_a_network_is_looked_at_with_its_own_weights():
    annotations, _ = two_camps((0.9,) * 5, n_tasks=30)
    features = np.random.default_rng(3).normal(size=(30, 2)).astype(np.float32)
    network = cp.Classifier("mlp", hidden=(3,))
    known = annotations.replace(features=features)
    fit = quiet("dawid_skene", known, classifier=network, epochs=3, restarts=2, diagonal=2.0, off_diagonal=1.0)
    assert sum(map(len, fit.modes["ends"])) == 2
    kept = fit.fitted.outcome.modes
    assert (kept.labels[kept.of_end[kept.kept]] == fit.posterior.argmax(-1)).all()


NO_PEAK = ("hierarchical_dawid_skene", "common_individual")
"""EM ends on a ridge where spreads stand in for each other, and near zero between embeddings that are multiplied."""


@pytest.mark.slow
@pytest.mark.parametrize("story", cp.models.STORIES)
def test_every_story_has_finite_masses_or_says_that_its_mode_is_no_peak(story):
    """Of tiny data; the probability of discrete annotations has a logarithm below 0, whatever the parameters."""
    annotations, label = two_camps((0.95, 0.95, 0.95, 0.05, 0.05))
    features = (label[:, :1] + np.random.default_rng(4).normal(0, 0.5, (10, 2))).astype(np.float32)
    found = peak(quiet(story, annotations.replace(features=features)).fitted)
    if story in NO_PEAK:
        assert np.isnan(found.log_mass)
    else:
        assert found.log_mass < 0


@pytest.mark.parametrize("largest", [1000, 0], ids=["all second derivatives", "the flattest direction"])
def test_a_mode_that_is_no_peak_has_no_mass_and_the_fit_says_so(largest, monkeypatch, tmp_path):
    """Of two classes only differences of logits tell, so that a hierarchy's spreads can stand in for each other."""
    monkeypatch.setattr(modes, "LARGEST", largest)
    annotations, _ = two_camps((0.95, 0.95, 0.95, 0.05, 0.05), n_tasks=60)
    fit = quiet("hierarchical_dawid_skene", annotations, restarts=6)
    assert len(fit.modes) > 1
    assert fit.modes["log_mass"].isna().any()
    assert fit.modes["mass"].isna().all()
    assert fit.modes["log_posterior"].is_monotonic_decreasing
    (finding,) = findings_of(fit, "readings")
    assert "(of unknown masses, as one is no peak of the posterior)" in finding.text
    assert "%" not in finding.text
    assert set(finding.values["mass"]) == {None}
    fit.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(cp.load_fit(tmp_path / "fit").modes, fit.modes)


def test_of_many_parameters_the_flattest_direction_lets_a_peak_keep_its_mass(monkeypatch):
    annotations, _ = two_camps((0.95, 0.95, 0.95, 0.05, 0.05), n_tasks=60)
    fit = quiet("dawid_skene", annotations, **OPTIONS)
    whole = peak(fit.fitted).log_mass
    monkeypatch.setattr(modes, "LARGEST", 0)
    assert peak(fit.fitted).log_mass == pytest.approx(whole, abs=2.0)


def test_chains_in_two_readings_have_the_masses_that_em_finds():
    """The points that Laplace's approximation is made at are means of draws there, and modes here."""
    annotations, label = two_camps((0.95, 0.95, 0.95, 0.05, 0.05))
    by_em = quiet("dawid_skene", annotations, restarts=12, **OPTIONS)
    by_chains = sampled(annotations, chains(annotations, label, [True, False, False]), **OPTIONS)
    assert by_chains.modes["ends"].tolist() == [(2, 3), (1,)]
    np.testing.assert_allclose(by_chains.modes["mass"], by_em.modes["mass"][:2], atol=0.03)
