"""Replicates follow the story at the fit's parameters; checks flag copied annotations, and right stories pass."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from made_fits import changed
from scipy.stats import binom, chisquare

import crowdppl as cp
from crowdppl.inference.checks import predictive
from crowdppl.inference.checks.discrepancies import DISCREPANCIES
from crowdppl.inference.checks.predictive import check, from_posterior, prior_check
from crowdppl.inference.densities.evidence import with_evidence

SIZES = {"n_tasks": 300, "n_workers": 8, "n_classes": 3, "annotations_per_task": 5}
DIAGONAL = 6.0


@pytest.fixture(scope="module")
def crowd():
    return cp.simulate("dawid_skene", diagonal=DIAGONAL, gold=0.0, **SIZES)[0]


@pytest.fixture(scope="module")
def em(crowd):
    return cp.fit("dawid_skene", crowd, diagonal=DIAGONAL, progress=False)


@pytest.fixture(scope="module")
def unnamed():
    counts = cp.Annotations.from_counts(np.array([[60, 40], [40, 60]]))
    return cp.fit("annotator_groups", counts, groups=1, progress=False)


def given_truth(fit, truth, label=None):
    """A fit with all true labels as evidence: draws of its exact posterior, which is conjugate."""
    data = fit.annotations
    data = with_evidence(data.replace(label=data.label if label is None else label), dict(enumerate(truth.tolist())))
    right = np.zeros((data.n_workers, data.n_classes, data.n_classes))
    np.add.at(right, (data.worker, truth[data.task], data.label), 1)
    rng, shares = np.random.default_rng(0), np.bincount(truth, minlength=data.n_classes)
    tables = rng.gamma(right + 1 + (DIAGONAL - 1) * np.eye(data.n_classes), size=(1, 50, *right.shape))
    prevalence = rng.gamma(shares + 1.0, size=(1, 50, data.n_classes))
    draws = {"confusion": tables, "prevalence": prevalence}
    draws = {name: (x / x.sum(-1, keepdims=True)).astype(np.float32) for name, x in draws.items()}
    return changed(fit, method="nuts", source=data, outcome=fit.outcome._replace(draws=draws, is_point=False))


@pytest.fixture(scope="module")
def copied(crowd):
    """The same crowd, where workers 5 and 6 copy worker 2 on the tasks that worker 2 annotated."""
    worker, task, label = (np.array(x) for x in (crowd.worker, crowd.task, crowd.label))
    of_second = np.full(crowd.n_tasks, -1)
    of_second[task[worker == 2]] = label[worker == 2]
    copies = np.isin(worker, [5, 6]) & (of_second[task] >= 0)
    return crowd.replace(label=np.where(copies, of_second[task], label).astype(np.int32))


def annotations_by_worker(checks):
    """Mean replicated counts ``(J, K)``."""
    table = checks.units("annotations").sort_index()
    return table["replicated"].to_numpy().reshape(-1, SIZES["n_classes"])


@pytest.mark.parametrize("truth", ["posterior", "prior"])
def test_replicated_annotations_have_the_expectation_of_the_parameters(em, crowd, truth):
    tables, prevalence = em.confusion_draws[0, 0], em.parameters["prevalence"].to_numpy()
    share = em.posterior if truth == "posterior" else np.broadcast_to(prevalence, em.posterior.shape)
    expected = np.zeros((crowd.n_workers, crowd.n_classes))
    np.add.at(expected, crowd.worker, np.einsum("ak,akl->al", share[crowd.task], tables[crowd.worker]))
    checks = check(em, "annotations", draws=100, replicates=10, truth=truth)
    error = np.sqrt(checks.result("annotations").replicated.mean(1).var(0) / 100).reshape(expected.shape)
    assert (np.abs(annotations_by_worker(checks) - expected) < 4.5 * error + 1e-3).all()  # 24 cells, normal tails


def test_a_worker_gives_as_many_replicated_annotations_as_observed_ones(em, crowd):
    totals = check(em, "annotations").result("annotations").replicated.reshape(50, 10, 8, 3).sum(-1)
    assert (totals == np.bincount(crowd.worker)).all()


def test_true_labels_of_the_posterior_are_shared_by_a_draws_replicates(em, crowd):
    """Workers who never err repeat themselves where the truth stays, and not where it is drawn anew."""
    never_wrong = np.broadcast_to(np.eye(3), em.outcome.draws["confusion"].shape)
    perfect = changed(em, outcome=em.outcome._replace(draws=em.outcome.draws | {"confusion": never_wrong}))
    same = [of_draw.std(0).max() for of_draw in from_posterior(perfect.fitted, crowd, 3, 4, "posterior", 0)]
    assert same == [0, 0, 0]
    assert all(of_draw.std(0).max() > 0 for of_draw in from_posterior(perfect.fitted, crowd, 3, 4, "prior", 0))


@pytest.mark.parametrize(
    ("draws", "expected"), [(6, [0, 1, 2, 3, 4, 5]), (3, [0, 2, 4]), (12, sorted([*range(6)] * 2))]
)
def test_parameters_are_spread_evenly_over_all_draws_of_all_chains(em, crowd, draws, expected):
    """Six draws of two chains; in each all workers give only one class, which the number of the draw decides."""
    number = np.arange(6).reshape(2, 3)
    always = np.stack([np.eye(3)[n % 3] for n in number.ravel()]).reshape(2, 3, 1, 1, 3)
    tables = np.broadcast_to(always, (2, 3, *em.outcome.draws["confusion"].shape[2:]))
    prevalence = np.broadcast_to(em.outcome.draws["prevalence"], (2, 3, 3))
    fit = changed(em, outcome=em.outcome._replace(draws={"confusion": tables, "prevalence": prevalence}))
    found = list(from_posterior(fit.fitted, crowd, draws, 2, "prior", 0))
    assert [int(of_draw.max()) for of_draw in found] == [n % 3 for n in expected]
    assert [int(of_draw.min()) for of_draw in found] == [n % 3 for n in expected]


def test_gold_labels_that_the_fit_used_stay_in_replicates_with_new_true_labels(em, crowd):
    never_wrong = np.broadcast_to(np.eye(3), em.outcome.draws["confusion"].shape)
    outcome = em.outcome._replace(draws=em.outcome.draws | {"confusion": never_wrong})
    fit = changed(em, outcome=outcome, source=with_evidence(crowd, {0: 1, 1: 2}))
    for replicated in from_posterior(fit.fitted, crowd, 4, 5, "prior", 0):
        assert (replicated[:, crowd.task == 0] == 1).all()
        assert (replicated[:, crowd.task == 1] == 2).all()


def test_a_row_with_a_count_is_as_many_independent_annotations(unnamed):
    design = unnamed.annotations.expanded()
    replicated = np.concatenate(list(from_posterior(unnamed.fitted, design, 20, 10, "posterior", 0)))
    positive = np.stack([replicated[:, design.task == i].sum(-1) for i in (0, 1)])
    variance = positive.mean() * (1 - positive.mean() / 100)
    assert 0.7 * variance < positive.var(axis=1).mean() < 1.5 * variance  # all alike would have a hundred times that


@pytest.mark.slow
def test_the_story_that_wrote_the_annotations_is_rejected_no_more_often_than_its_level(em, crowd):
    """Under draws of the exact posterior, over 40 data sets; some p-values are small: the check can fail."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tables = rng.gamma(1 + (DIAGONAL - 1) * np.eye(3), size=(8, 3, 3))
        truth = rng.integers(0, 3, crowd.n_tasks)
        probs = (tables / tables.sum(-1, keepdims=True))[crowd.worker, truth[crowd.task]]
        label = (rng.random((crowd.n_rows, 1)) > probs.cumsum(-1)[:, :-1]).sum(-1).astype(np.int32)
        found.append(check(given_truth(em, truth, label), draws=15, replicates=8).table["p_value"])
    p_values = pd.DataFrame(found)
    assert ((p_values < 0.05).sum() <= binom.ppf(0.9975, 40, 0.05)).all()
    assert (p_values.min() < 0.4).all()
    assert (p_values.max() > 0.6).all()


def test_pairs_of_workers_who_copy_are_flagged(crowd, em, copied):
    checks = check(cp.fit("dawid_skene", copied, diagonal=DIAGONAL, progress=False))
    assert checks.table.loc["agreement", "p_value"] < 0.05
    table = checks.units("agreement")
    assert set(table.index[:2]) == {(2, 5), (2, 6)}
    flagged = checks.flagged
    found = flagged.loc[flagged["discrepancy"] == "agreement", "unit"].tolist()
    assert {(2, 5), (2, 6)} <= set(found)
    assert set(found) <= {(2, 5), (2, 6), (5, 6)}
    assert (table["observed"] == table["size"])[table["flagged"]].all()
    assert not check(em, "agreement").result("agreement").n_flagged


def test_a_mix_of_very_easy_and_very_hard_tasks_is_found_by_its_vote_counts(em, crowd):
    same = crowd.votes().argmax(-1)[crowd.task]
    guessed = np.random.default_rng(0).integers(0, 3, crowd.n_rows)
    mixed = crowd.replace(label=np.where(crowd.task % 2, same, guessed).astype(np.int32))
    fit = cp.fit("dawid_skene", mixed, diagonal=DIAGONAL, progress=False)
    assert check(fit, "votes").table.loc["votes", "p_value"] < 0.01
    assert check(em, "votes").table.loc["votes", "p_value"] > 0.05


def test_the_same_seed_gives_the_same_checks(em):
    first, again, other = (check(em, "votes", seed=seed).table for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_checks_of_a_point_note_that_it_leaves_out_uncertainty(em, crowd):
    assert any("EM's mode" in note for note in check(em, "votes").notes)
    delta = em.fitted.replace(method="svi")  # as with guide="delta"
    assert any("SVI with guide='delta'" in note for note in check(delta, "votes").notes)
    notes = check(given_truth(em, np.zeros(crowd.n_tasks, dtype=int)), "votes").notes
    assert not any("the parameters are uncertain" in note for note in notes)
    assert "EM's mode" in repr(check(em, "votes"))


def test_own_discrepancies_are_compared_as_they_are(em, crowd):
    def zeros(annotations):
        return pd.Series(np.bincount(annotations.worker[annotations.label == 0], minlength=8), index=list("abcdefgh"))

    checks = check(em, {"alpha": cp.Annotations.krippendorff_alpha, "zeros": zeros, "votes": DISCREPANCIES["votes"]})
    assert checks.table.loc["alpha", "observed"] == pytest.approx(crowd.krippendorff_alpha())
    alpha = checks.result("alpha").replicated
    assert checks.table.loc["alpha", "p_value"] == pytest.approx((alpha > crowd.krippendorff_alpha()).mean(), abs=0.01)
    known = check(em, "annotations").units("annotations").sort_index()
    zero = known[known.index.get_level_values("class") == 0]
    units = checks.units("zeros").sort_index()
    np.testing.assert_allclose(units["observed"], zero["observed"])
    np.testing.assert_allclose(units["replicated"], zero["replicated"])  # the same seed, the same replicates


def test_own_discrepancies_that_change_their_units_are_refused(em):
    def of_some(annotations):
        label = np.asarray(annotations.label)
        return pd.Series({f"{(label == 0).sum()} zeros": 1.0})

    with pytest.raises(ValueError, match=r"'changing' has other units .*reindex"):
        check(em, {"changing": of_some})
    with pytest.raises(ValueError, match="'nothing' is nan"):
        check(em, {"nothing": lambda _: np.nan})
    with pytest.raises(ValueError, match=r"'many' has shape \(2,\)"):
        check(em, {"many": lambda _: np.ones(2)})
    with pytest.raises(ValueError, match="'twice' has the unit 'a' more than once"):
        check(em, {"twice": lambda _: pd.Series([1.0, 2.0], index=["a", "a"])})
    with pytest.raises(ValueError, match=r"'none' .* without units"):
        check(em, {"none": lambda _: pd.Series(dtype=float)})


def test_many_annotations_are_replicated_from_fewer_draws_unless_they_are_asked_for(em, crowd, monkeypatch):
    monkeypatch.setattr(predictive, "NUMBERS", 20 * 10 * crowd.n_rows)
    assert len(check(em, "votes").result("votes").replicated) == 20
    assert len(check(em, "votes", draws=30).result("votes").replicated) == 30
    monkeypatch.setattr(predictive, "NUMBERS", 1)
    checks = check(em, "votes")
    assert len(checks.result("votes").replicated) == 10
    assert "10 draws" in repr(checks)


def test_wrong_arguments_say_what_is_accepted(em):
    with pytest.raises(cp.UnknownNameError, match="did you mean 'agreement'"):
        check(em, "agreements")
    with pytest.raises(ValueError, match="selects none"):
        check(em, [])
    with pytest.raises(ValueError, match="draws=0"):
        check(em, draws=0)
    with pytest.raises(ValueError, match="replicates=1"):
        check(em, replicates=1)
    with pytest.raises(cp.UnknownNameError, match="value of truth"):
        check(em, truth="new")
    with pytest.raises(cp.UnknownNameError, match="unknown discrepancy 'votes'"):
        check(em, "annotations").units("votes")


def test_crowds_without_names_are_checked_by_what_needs_none(unnamed):
    checks = check(unnamed)
    assert list(checks.table.index) == ["annotations", "votes"]
    assert checks.units("annotations")["observed"].to_dict() == {0: 100, 1: 100}
    with pytest.raises(cp.AnnotationError, match="agreement needs named workers"):
        check(unnamed, "agreement")


X = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)


@pytest.mark.parametrize(
    ("story", "truth", "options"),
    [
        ("difficulty", "posterior", {"features": X, "truth_prior": cp.Classifier(lambda x: x)}),
        pytest.param("annotator_groups", "prior", {"groups": 2}, marks=pytest.mark.slow),
        pytest.param("glad", "posterior", {}, marks=pytest.mark.slow),
        pytest.param("item_response", "prior", {"method": "svi"}, marks=pytest.mark.slow),
        pytest.param("common_individual", "prior", {"features": X, "embedding": 2}, marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_story_expects_the_votes_of_its_own_data(story, truth, options):
    """By EM, but where half of the workers drawn are worse than chance and its mode is another reading."""
    of_fit = {name: value for name, value in options.items() if name != "features"}
    of_data = {name: value for name, value in options.items() if name != "method"}
    data, _ = cp.simulate(story, gold=0.0, seed=3, **SIZES | {"n_classes": 2}, **of_data)
    fit = cp.fit(story, data, progress=False, **of_fit)
    checks = check(fit, ["annotations", "votes"], truth=truth)
    assert checks.table.loc["votes", "p_value"] > 0.01
    share = checks.units("annotations").groupby("class")[["observed", "replicated"]].sum() / data.n_annotations
    np.testing.assert_allclose(share["replicated"], share["observed"], atol=0.06)  # true labels that are drawn again


def one_share(annotations, *, truth_prior=None, a=1.0):
    """All workers give the second class with one probability, whatever the truth."""
    share = numpyro.sample("share", dist.Dirichlet(jnp.array([1.0, a])))
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(jnp.broadcast_to(share, (annotations.n_workers, 2, 2))), annotations)


@pytest.mark.slow
def test_prior_replicates_are_of_the_prior():
    """With a flat prior of their probability every number of positive annotations from 0 to 9 is as likely (Bayes)."""
    frame = pd.DataFrame([(i, j, 1) for i in range(3) for j in range(3)], columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(frame, classes=[0, 1])
    checks = prior_check(one_share, annotations, {"positive": lambda a: np.asarray(a.label).sum()}, draws=1000)
    counts = np.bincount(checks.result("positive").replicated.ravel().astype(int), minlength=10)
    assert chisquare(counts).pvalue > 0.001
    assert checks.table.loc["positive", "p_value"] == pytest.approx(0.05, abs=0.02)  # half of the chance of a tie
    with_gold = annotations.with_gold({0: 1})
    again = prior_check(one_share, with_gold, {"positive": lambda a: np.asarray(a.label).sum()}, draws=1000)
    pd.testing.assert_frame_equal(again.table, checks.table)
    hopeful = prior_check(one_share, annotations, {"positive": lambda a: np.asarray(a.label).sum()}, a=50.0)
    assert hopeful.result("positive").replicated.mean() > 8.5


def test_prior_checks_take_a_truth_prior_as_fit_does(crowd):
    certain = np.eye(3)[np.arange(crowd.n_tasks) % 3]
    known = {"majority": DISCREPANCIES["majority"]}
    checks = prior_check(
        "dawid_skene",
        crowd,
        known | {"right": lambda a: (np.asarray(a.label) == np.asarray(a.task) % 3).mean()},
        truth_prior=certain,
        diagonal=1e6,
    )
    assert checks.result("right").replicated.mean() > 0.999  # one in 30,000 is wrong; without the prior two thirds are
    assert checks.table.loc["majority", "p_value"] < 0.01  # this prior has workers who never err
    with pytest.raises(ValueError, match="not both"):
        prior_check("dawid_skene", crowd, truth_prior=certain, classifier="logistic")
    with pytest.raises(cp.StoryError, match="features"):
        prior_check("dawid_skene", crowd, classifier="logistic")


@pytest.mark.data
def test_dawid_skene_is_rejected_on_music(real):
    fit = cp.fit("dawid_skene", real("music"), progress=False)
    table = check(fit, ["agreement", "majority"]).table
    assert (table["p_value"] < 0.01).all()


def test_a_check_that_the_prior_alone_fails_is_named_a_conflict_and_passes_under_a_weaker_prior():
    """Workers who agree nearly always, under a prior whose 60 pseudo-annotations expect them to be right by chance."""
    truth = np.arange(40) % 2
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((40, 5)) < 0.9, truth[:, None], 1 - truth[:, None])
    annotations = cp.Annotations.from_matrix(labels)
    options = {"method": "svi", "progress": False, "diagonal": 16.0, "off_diagonal": 14.0}
    fit = cp.fit("dawid_skene", annotations, **options)
    checks = check(fit, "agreement", weaker_prior=0.02)
    row = checks.table.loc["agreement"]
    assert row["p_value"] < 0.05 <= row["p_weaker"]
    assert row["cause"] == "prior-data conflict"
    (note,) = check(fit, "agreement").notes
    assert "weaker_prior=0.1" in note
    assert "cause" not in check(fit, "agreement").table


def test_a_check_that_the_story_fails_is_a_misfit_whatever_the_prior(copied):
    """Two workers copy a third, which no confusion matrix says."""
    fit = cp.fit("dawid_skene", copied, diagonal=DIAGONAL, progress=False)
    checks = check(fit, ["annotations", "agreement"], weaker_prior=0.3)
    assert checks.causes == {"annotations": "-", "agreement": "misfit"}


@pytest.mark.parametrize("power", [0, 1, -0.5])
def test_a_prior_that_is_not_weaker_is_refused(em, power):
    with pytest.raises(ValueError, match=f"weaker_prior={power}: a finite number above 0 and below 1"):
        check(em, "votes", weaker_prior=power)


def test_replicates_of_an_average_are_from_each_fit_by_its_weight(crowd, em):
    coin = cp.fit("one_coin", crowd, progress=False)
    first, second = check(em, draws=7, seed=3), check(coin, draws=13, seed=4)
    both = check(cp.stack({"first": em, "second": coin}, weights={"first": 0.35, "second": 0.65}), draws=20, seed=3)
    for name, result in both.results.items():
        each = [checks.results[name].replicated for checks in (first, second)]
        np.testing.assert_array_equal(result.replicated, np.concatenate(each))
    assert "second + first" in both.title
