"""Sensitivity to prior and likelihood by power-scaling: closed forms, ArviZ's own, and what is scaled."""

import arviz as az
import numpy as np
import pandas as pd
import pytest
from abstaining import with_abstentions
from fit_at import fit_at, random_confusions
from scipy import special, stats

import crowdppl as cp
from crowdppl.inference.checks.power_scaling import CONFLICT, DELTA, NOTHING, components, distance, sensitivity
from crowdppl.inference.densities.prior import log_prior_by_site, log_prior_to_scale


def exact_distance(p, q, ends):
    """The cumulative Jensen–Shannon distance of two distributions between two ends, by a sum over a grid."""

    def one_way(a, b):
        divergence = special.rel_entr(a, (a + b) / 2) + special.rel_entr(b, (a + b) / 2)
        return np.sqrt(divergence.sum() / np.log(2) / (a + b).sum())

    grid = np.linspace(*ends, 100_001)
    return max(one_way(p.cdf(grid), q.cdf(grid)), one_way(p.sf(grid), q.sf(grid)))


def test_sensitivity_of_a_conjugate_posterior_is_its_closed_form():
    """Beta(6, 3) and 14 of 20 right: the power of the prior is Beta(6 α, 3 α), that of the likelihood 14 α of 20 α.

    In place of draws 100,000 quantiles, so that no more than the grid tells the two apart; the divergence's bound is
    that between the smallest and the largest draw.
    """
    n = 100_000
    values = stats.beta(6 + 14, 3 + 6).ppf((np.arange(n) + 0.5) / n)
    prior = 6 * np.log(values) + 3 * np.log1p(-values)
    likelihood = 14 * np.log(values) + 6 * np.log1p(-values)
    found = sensitivity(values[:, None].repeat(2, 1), np.stack([prior, likelihood], 1))
    base = stats.beta(20, 9)
    for at, scaled in enumerate(
        (lambda a: stats.beta(14 + 6 * a, 6 + 3 * a), lambda a: stats.beta(14 * a + 6, 6 * a + 3))
    ):
        powers = (1 + DELTA, 1 / (1 + DELTA))
        exact = sum(exact_distance(base, scaled(power), values[[0, -1]]) for power in powers) / (2 * np.log2(1 + DELTA))
        assert found[at] == pytest.approx(exact, rel=0.01)


def test_distance_is_nothing_without_weights_and_at_most_one():
    values = np.random.default_rng(1).normal(size=(500, 3))
    np.testing.assert_allclose(distance(values, np.ones((500, 3))), 0, atol=1e-6)
    extreme = np.exp(100 * values)
    found = distance(values, extreme)
    assert ((found > 0.1) & (found <= 1)).all()


@pytest.mark.skipif(not hasattr(az, "psens"), reason="this ArviZ has no psens")
def test_sensitivity_equals_arvizs_from_the_groups_of_idata():
    """The densities on the simplex, as idata has them. ArviZ smooths the weights' tail, which hardly matters near 1."""
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", diagonal=3.0, progress=False)
    idata = fit.idata
    values = np.asarray(fit.outcome.draws["prevalence"])[0]
    log_prior = sum(np.asarray(part)[0].astype(float) for part in idata["log_prior"].data_vars.values())
    log_likelihood = np.asarray(idata["log_likelihood"]["majority_share"], float).sum(-1)[0]
    for component, logs in (("prior", log_prior), ("likelihood", log_likelihood)):
        theirs = np.asarray(az.psens(idata, component=component, var_names=["prevalence"]))
        np.testing.assert_allclose(sensitivity(values, logs[:, None]), theirs, rtol=0.06)


@pytest.fixture(scope="module")
def known():
    """Six tasks whose truth is known, so that a worker's annotations are draws of the rows of that truth."""
    annotations, _ = cp.simulate("dawid_skene", n_tasks=6, n_workers=3, n_classes=2, seed=4)
    evidence = np.where(np.eye(2, dtype=bool)[annotations.gold], 0.0, -np.inf).astype(np.float32)
    return annotations.replace(evidence=evidence)


def test_where_the_truth_is_known_a_workers_part_is_conjugate(known):
    r"""The prior of a worker scales as :math:`\prod \beta^\gamma`, the annotations as :math:`\prod \beta^n`."""
    fit = fit_at("dawid_skene", known, random_confusions(known, 7), method="svi", diagonal=3.0, off_diagonal=0.5)
    found = components(fit.fitted)
    tables = np.log(np.asarray(fit.outcome.draws["confusion"], float))[0]
    gamma = np.where(np.eye(2, dtype=bool), 3.0, 0.5)
    prior = (gamma * tables).sum((-1, -2))
    np.testing.assert_allclose(found.prior_by_worker - found.prior_by_worker[0], prior - prior[0], rtol=1e-4, atol=1e-3)
    own = np.zeros(tables.shape[:2])
    for task, worker, label in zip(known.task, known.worker, known.label, strict=True):
        own[:, worker] += tables[:, worker, known.gold[task], label]
    np.testing.assert_allclose(found.likelihood_by_worker, own, rtol=1e-4)
    shares = fit.posterior.mean(0)
    accuracy = np.einsum("sjkk,k->sj", np.exp(tables), shares)
    np.testing.assert_allclose(found.accuracy, accuracy, rtol=1e-5)


def test_with_abstentions_accuracy_is_among_the_annotations_that_are_none():
    """The mean over the draws of a worker's chance of a right annotation, by that of any class."""
    annotations = with_abstentions(n_tasks=30, n_rows=90)
    fit = cp.fit("dawid_skene", annotations, method="svi", draws=50, progress=False)
    found, shares = components(fit.fitted.thinned(50)).accuracy, fit.posterior.mean(0)
    tables = fit.confusion_draws[0]
    given = tables[..., :2].sum(-1)
    right = np.einsum("sjkk,k->sj", tables[..., :2], shares)
    np.testing.assert_allclose(found, right / (given @ shares), rtol=1e-5)
    assert cp.prior_sensitivity(fit).loc["accuracy"].index.tolist() == list(annotations.workers)


def test_the_slope_of_a_workers_power_is_that_of_the_likelihood_with_more_of_these_annotations():
    """Where the truth is not known: a finite difference in how often the worker's annotations count."""
    annotations = cp.simulate("dawid_skene", n_tasks=12, n_workers=3, n_classes=3, seed=2)[0].without_gold()
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations, 4), method="svi")
    found, step = components(fit.fitted), 0.01
    for worker in range(3):
        whole = [
            fit.fitted.with_data(annotations.replace(count=np.where(annotations.worker == worker, power, 1.0)))
            for power in (1 + step, 1 - step)
        ]
        up, down = (one.log_likelihood()[0].astype(float).sum(-1) for one in whole)
        np.testing.assert_allclose(found.likelihood_by_worker[:, worker], (up - down) / (2 * step), rtol=1e-2)


def test_a_prior_against_the_data_is_a_conflict_and_a_weak_one_is_not():
    """Workers who are right nine times in ten, under a prior of 30 pseudo-annotations that expects one in three.

    The weak prior has sparse rows, which draw the worker who errs least, in three tasks, to no errors at all: by NUTS,
    too, that one's sensitivity is over 0.05, and nobody else's.
    """
    truth = np.arange(60) % 3
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((60, 6)) < 0.9, truth[:, None], (truth[:, None] + rng.integers(1, 3, (60, 6))) % 3)
    annotations = cp.Annotations.from_matrix(labels)
    diagnoses = {}
    for name, concentration in {"strong": 30 / 9, "weak": 0.02}.items():
        options = {"diagonal": 1.05 * concentration, "off_diagonal": concentration}
        fit = cp.fit("dawid_skene", annotations, method="svi", seed=1, progress=False, **options)
        found = cp.prior_sensitivity(fit)
        diagnoses[name] = found.loc["accuracy", "diagnosis"].tolist()
    assert diagnoses["strong"] == [CONFLICT] * 6
    errs_least = int((labels != truth[:, None]).sum(0).argmin())
    assert np.delete(diagnoses["weak"], errs_least).tolist() == [NOTHING] * 5


def test_quantities_are_named_by_worker_and_class_and_without_workers_by_class_alone():
    fit = cp.fit("one_coin", cp.load_dataset("anesthesia"), method="svi", draws=100, progress=False)
    found = cp.prior_sensitivity(fit)
    assert found.index.names == ["quantity", "of"]
    assert found.loc["accuracy"].index.tolist() == list(fit.annotations.workers)
    assert found.loc["label_share"].index.tolist() == list(fit.annotations.classes)
    counts = np.random.default_rng(0).multinomial(5, [0.3, 0.7], 30)
    nameless = cp.Annotations.from_counts(counts)
    fit = cp.fit("annotator_groups", nameless, method="svi", draws=100, progress=False)
    assert cp.prior_sensitivity(fit).index.unique("quantity").tolist() == ["prevalence", "label_share"]


def test_a_point_is_refused_and_a_threshold_that_is_not_positive():
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", guide="delta", progress=False)
    with pytest.raises(ValueError, match=r"one point.*method='svi' or method='nuts'"):
        cp.prior_sensitivity(fit)
    with pytest.raises(ValueError, match="threshold=0: a finite number above 0"):
        cp.prior_sensitivity(fit, threshold=0)
    with pytest.raises(TypeError, match=r"one story by cp\.fit"):
        cp.prior_sensitivity("fit")
    with pytest.raises(TypeError, match=r"cp\.prior_sensitivity"):
        cp.plot_prior_sensitivity(fit)


def test_the_plot_has_a_point_for_each_quantity_and_counts_the_conflicts():
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", draws=200, progress=False)
    found = cp.prior_sensitivity(fit)
    ax = cp.plot_prior_sensitivity(found)
    points = np.concatenate([drawn.get_offsets() for drawn in ax.collections if len(drawn.get_offsets())])
    np.testing.assert_allclose(points, found[["prior", "likelihood"]])
    conflicts = (found["diagnosis"] == CONFLICT).sum()
    assert ax.get_title() == f"Prior-data conflict in {conflicts} of {len(found)} quantities"


def test_the_plot_names_the_workers_and_classes_that_have_a_diagnosis_and_nobody_else():
    index = pd.MultiIndex.from_tuples(
        [("accuracy", "rater 1"), ("accuracy", "rater 2"), ("prevalence", "ill")], names=["quantity", "of"]
    )
    values = {"prior": [0.3, 0.01, 0.1], "likelihood": [0.4, 0.2, 0.1], "diagnosis": [CONFLICT, NOTHING, CONFLICT]}
    ax = cp.plot_prior_sensitivity(pd.DataFrame(values, index))
    assert {text.get_text() for text in ax.texts} == {"rater 1", "ill"}


def test_rows_that_are_one_event_of_their_worker_are_scaled_row_by_row():
    annotations = cp.Annotations.from_matrix(np.random.default_rng(0).integers(0, 4, (20, 4)))
    fitted = cp.fit("common_individual", annotations, max_iterations=2, tolerance=1e9, progress=False).fitted
    parameters = {name: np.asarray(values[0, 0]) for name, values in fitted.outcome.draws.items()}
    total, by_worker = log_prior_to_scale(fitted.model, parameters, annotations)
    densities = log_prior_by_site(fitted.model, parameters, annotations)
    log_odds = sum(float(value) for value in densities.values()) + sum(np.log(v).sum() for v in parameters.values())
    assert float(total) == pytest.approx(log_odds, rel=1e-4)  # all sites are rows of probabilities
    assert by_worker.shape == (4,)
