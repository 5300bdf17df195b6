"""Truths of a task's questions that depend on each other by kinds of tasks."""

from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density
from whole_density import density

import crowdppl as cp
from crowdppl import CorrelatedQuestions, StoryError
from crowdppl.inference.comparison.cross_validation import task_folds
from crowdppl.inference.comparison.held_out import predict_tasks
from crowdppl.inference.densities.augmented import _Complete
from crowdppl.inference.densities.enumerated import Latent
from crowdppl.inference.densities.model import Model
from crowdppl.inference.fitted.question_frame import drawn_truths
from crowdppl.models import STORIES, find_story

QUESTIONS = ["coherence", "fluency", "style"]


def drawn(n_tasks=300, n_workers=4, right=0.75, seed=0, gold=True):
    """Yes and no to three questions of tasks that are mostly good or mostly bad in all of them."""
    rng = np.random.default_rng(seed)
    is_good = rng.random(n_tasks) < 0.5
    truth = (rng.random((n_tasks, 3)) < np.where(is_good, 0.92, 0.08)[:, None]).astype(int)
    said = truth[:, None] ^ (rng.random((n_tasks, n_workers, 3)) > right)
    cells = [(i, f"w{j}", QUESTIONS[q], int(said[i, j, q])) for i, j, q in np.ndindex(said.shape)]
    table = pd.DataFrame(cells, columns=["task", "worker", "question", "label"])
    known = {(i, QUESTIONS[q]): int(truth[i, q]) for i, q in np.ndindex(truth.shape)} if gold else None
    return cp.Annotations.from_frame(table, question="question", gold=known)


def small():
    """Two tasks with three questions, one of them not asked about the second, with rows left out."""
    annotations = drawn(2, 3, gold=False).to_frame()
    table = annotations[~((annotations["task"] == 1) & (annotations["question"] == "style"))].drop(index=[0, 4])
    return cp.Annotations.from_frame(table, question="question")


VALUES = {
    "kind_share": np.array([0.6, 0.4]),
    "kind_prevalence": np.random.default_rng(1).dirichlet([1, 1], (2, 3)),
    "confusion": np.random.default_rng(2).dirichlet([1, 1], (3, 2)),
}


def brute_force(annotations, scores):
    """Log-likelihood, label posterior and that of kinds, by summing over all labellings and kinds of all tasks."""
    units, n = annotations.tasks, annotations.n_tasks
    n_tasks = len(units.tasks)
    total, mass, of_kind = 0.0, np.zeros((n, 2)), np.zeros((n_tasks, 2))
    for kinds in product(range(2), repeat=n_tasks):
        for labels in product(range(2), repeat=n):
            p = np.prod(VALUES["kind_share"][list(kinds)])
            for i, z in enumerate(labels):
                p *= VALUES["kind_prevalence"][kinds[units.task[i]], annotations.question[i], z] * scores[i, z]
            total += p
            mass[np.arange(n), labels] += p
            of_kind[np.arange(n_tasks), kinds] += p
    return np.log(total), mass / total, of_kind / total


def given(model, annotations):
    at = density(model, VALUES, annotations)
    return at, np.exp(np.asarray(at.likelihood.emission.by_task(annotations, annotations.label), float))


MODEL = Model(STORIES["dawid_skene"], {"truth_prior": CorrelatedQuestions(kinds=2)})


def test_likelihood_and_posterior_are_those_of_all_labellings_and_kinds():
    annotations = small()
    at, scores = given(MODEL, annotations)
    total, posterior, kinds = brute_force(annotations, scores)
    np.testing.assert_allclose(at.total, total, rtol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)
    np.testing.assert_allclose(at.expected.kinds, kinds, atol=1e-5)


def test_a_unit_s_likelihood_is_given_the_other_questions_of_its_task():
    annotations = small()
    at, scores = given(MODEL, annotations)
    total, _, _ = brute_force(annotations, scores)
    for i in range(annotations.n_tasks):
        others = scores.copy()
        others[i] = 1
        np.testing.assert_allclose(at.log_likelihood[i], total - brute_force(annotations, others)[0], atol=1e-5)


def test_gold_labels_of_one_question_speak_of_the_others():
    annotations = small()
    evidence = np.zeros((annotations.n_tasks, 2), np.float32)
    evidence[0] = [-np.inf, 0]
    at = density(MODEL, VALUES, annotations.replace(evidence=evidence))
    _, scores = given(MODEL, annotations)
    total, posterior, _ = brute_force(annotations, scores * np.exp(evidence))
    np.testing.assert_allclose(at.total, total, rtol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)


def test_slopes_are_those_of_the_sum_and_all_programs_have_one_density():
    annotations = jax.tree.map(jax.numpy.asarray, small())
    values = {name: jax.numpy.asarray(value, float) for name, value in VALUES.items()}
    program, arguments = cp.marginal("dawid_skene", annotations, truth_prior=CorrelatedQuestions(kinds=2))
    ours = density(MODEL, values, annotations).log_posterior
    theirs = log_density(program, arguments, {}, values)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    slope = jax.grad(lambda table: density(MODEL, values | {"kind_prevalence": table}, annotations).total)
    counts = np.asarray(slope(values["kind_prevalence"]) * values["kind_prevalence"])
    expected = np.zeros((2, 3, 2))
    at = density(MODEL, values, annotations)
    of_both = at.together.scores[:, None] + at.together.kinds.log_probs - at.together.of_units[..., None]
    weight = at.expected.kinds[annotations.tasks.task][..., None] * np.exp(of_both)  # (N, M, K)
    for i, q in enumerate(np.asarray(annotations.question)):
        expected[:, q] += weight[i]
    np.testing.assert_allclose(counts, expected, atol=1e-5)


def test_pyro_has_the_density():
    torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
    poutine = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro").poutine
    from crowdppl.inference.torch import in_pyro, marginal_in_pyro

    annotations = small()
    values = {name: torch.tensor(value, dtype=torch.float32) for name, value in VALUES.items()}
    program = poutine.condition(marginal_in_pyro(MODEL), data=values)
    found = poutine.trace(program).get_trace(annotations).log_prob_sum()
    at = density(MODEL, VALUES, annotations)
    np.testing.assert_allclose(float(found), float(at.log_posterior), rtol=1e-5)
    with pytest.raises(StoryError, match=r"summed out together"):
        poutine.trace(poutine.condition(in_pyro(MODEL), data=values)).get_trace(annotations)


def test_one_kind_is_a_prevalence_of_each_question():
    annotations = drawn(40, gold=False)
    one = cp.fit("one_coin", annotations, truth_prior=CorrelatedQuestions(kinds=1), progress=False)
    plain = cp.fit("one_coin", annotations, progress=False)
    np.testing.assert_allclose(one.posterior, plain.posterior, atol=2e-3)  # EM stops near its end from both starts
    share = one.parameters["kind_prevalence"][0]
    assert share.dims == ("question", "truth")
    np.testing.assert_allclose(share, plain.parameters["prevalence"], atol=5e-3)


@pytest.fixture(scope="module")
def annotations():
    return drawn()


@pytest.fixture(scope="module")
def fit(annotations):
    return cp.fit("one_coin", annotations, truth_prior=CorrelatedQuestions(kinds=2), progress=False)


def test_em_climbs_and_finds_the_kinds(fit):
    rises = np.diff(fit.history.to_numpy())
    assert (rises > -1e-5 * np.abs(fit.history.iloc[-1])).all()
    yes = np.sort(fit.parameters["kind_prevalence"].to_numpy()[..., 1], axis=0)
    np.testing.assert_allclose(yes, [[0.08] * 3, [0.92] * 3], atol=0.1)  # of 150 tasks each, with four workers


def test_labels_of_correlated_questions_are_better_than_of_questions_alone(fit, annotations):
    plain = cp.fit("one_coin", annotations, progress=False)
    ours, theirs = (cp.score(each, annotations) for each in (fit, plain))
    assert ours["log_score"] > theirs["log_score"] + 0.05
    assert ours["accuracy"] > theirs["accuracy"] + 0.02


def test_intervals_and_draws_are_of_kinds_and_labels_together(fit, annotations):
    assert (fit.workers["accuracy_high"] > fit.workers["accuracy"]).all()
    around = fit.fitted.with_uncertainty
    spread = np.asarray(around.draws["kind_prevalence"])[0].std(0)
    assert spread.min() > 0.01
    assert spread.max() < 0.1  # of 150 tasks: 0.022, and more by the errors of workers
    at = density(fit.fitted.model, {name: value[0, 0] for name, value in fit.fitted.draws.items()}, annotations)
    truths = np.asarray(jax.vmap(at.drawn)(jax.random.split(jax.random.key(0), 2000)))
    np.testing.assert_allclose(truths.mean(0), at.posterior[:, 1], atol=0.06)  # five standard errors
    first, second = truths[:, 0].astype(float), truths[:, 1].astype(float)
    both = np.cov(first, second)[0, 1]
    assert both > -0.01


def test_the_complete_density_has_the_annotations_the_labels_and_the_kinds():
    annotations = small()
    at, scores = given(MODEL, annotations)
    labels, kinds = np.array([0, 1, 1, 0, 1]), np.array([1, 0])
    latent = Latent(np.eye(2)[labels], np.eye(2)[kinds])
    expected = np.log(VALUES["kind_share"][kinds]).sum()
    for i, z in enumerate(labels):
        own = VALUES["kind_prevalence"][kinds[annotations.tasks.task[i]], annotations.question[i], z]
        expected += np.log(scores[i, z] * own)
    np.testing.assert_allclose(at.complete(latent), expected, rtol=1e-5)
    complete = _Complete(MODEL, annotations, {}, VALUES, ())
    counted = complete.counted({name: jax.numpy.asarray(v, float) for name, v in VALUES.items()}, {}, latent)
    np.testing.assert_allclose(counted["kind_share"], [2, 2], atol=1e-4)  # one of each, and the flat prior


def test_folds_hold_all_questions_of_a_task_and_predict_them_together(fit, annotations):
    held = task_folds(annotations, 3, np.random.default_rng(0))
    task = annotations.tasks.task[np.asarray(annotations.task)]
    for fold in held:
        assert all(len(set(fold[task == i])) == 1 for i in range(5))
    without = fit.fitted.with_data(fit.annotations.replace(count=1 - held[0]))
    by_unit = np.asarray(predict_tasks(without, held[0]))
    draw = {name: value[0, 0] for name, value in fit.fitted.draws.items()}
    whole = density(fit.fitted.model, draw, annotations.replace(gold=None))
    in_fold = annotations.tasks.task[np.asarray(annotations.task)[held[0] > 0]]
    expected = np.asarray(whole.together.log_likelihood)[np.unique(in_fold)].sum()
    np.testing.assert_allclose(by_unit.sum(), expected, rtol=1e-4)


def test_draws_of_truths_are_those_of_the_joint_posterior():
    annotations = small()
    at, scores = given(MODEL, annotations)
    truths = np.asarray(jax.vmap(at.drawn)(jax.random.split(jax.random.key(1), 20000)))
    units, expected = annotations.tasks, np.zeros(4)
    for labels in product(range(2), repeat=3):
        one = scores.copy()
        one[np.arange(3), 1 - np.array(labels)] = 0  # the three units of the first task
        expected[sum(labels)] += np.exp(brute_force(annotations, one)[0] - brute_force(annotations, scores)[0])
    assert units.task.tolist() == [0, 0, 0, 1, 1]
    shares = np.bincount(truths[:, :3].sum(1), minlength=4) / len(truths)
    np.testing.assert_allclose(shares, expected, atol=0.015)  # four standard errors


def test_totals_of_correlated_questions_are_less_certain_than_of_questions_alone(fit, annotations):
    totals = fit.totals
    assert totals.columns.tolist() == ["total", "total_low", "total_high", "questions"]
    truth = np.bincount(annotations.tasks.task, np.asarray(annotations.gold))
    held = (totals["total_low"] <= truth) & (truth <= totals["total_high"])
    assert held.mean() > 0.85  # of nine in ten and more, since totals are whole numbers
    expected = fit.probabilities[1].groupby(level="task").sum()
    np.testing.assert_allclose(totals["total"], expected.loc[totals.index], atol=1e-5)
    drawn = drawn_truths(fit)
    together = np.stack([np.bincount(annotations.tasks.task, truth) for truth in drawn]).var(0).mean()
    alone = drawn.var(0).sum() / len(totals)
    assert together > 1.1 * alone
    wider = fit.rubric_totals(interval=0.99)
    assert (wider["total_high"] - wider["total_low"]).mean() > (totals["total_high"] - totals["total_low"]).mean()


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("method", ["svi", "nuts"])
def test_other_engines_give_nearly_the_labels_of_em(fit, annotations, method):
    few = {"nuts": {"warmup": 100, "draws": 50, "chains": 1}, "svi": {"max_iterations": 500}}[method]
    prior = CorrelatedQuestions(kinds=2)
    other = cp.fit("one_coin", annotations, truth_prior=prior, method=method, progress=False, **few)
    assert np.abs(other.posterior - fit.posterior).mean() < 0.03


def test_a_fit_is_kept_and_updated(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.fitted.model.truth_prior == CorrelatedQuestions(kinds=2)
    np.testing.assert_allclose(again.posterior, fit.posterior, atol=1e-6)
    more = pd.DataFrame([{"task": "new", "worker": "w0", "question": name, "label": 1} for name in QUESTIONS])
    assert fit.update(more, progress=False).labels.loc["new"].index.tolist() == QUESTIONS


def test_what_cannot_be_is_refused(annotations):
    prior = CorrelatedQuestions()
    with pytest.raises(StoryError, match=r"several questions about each task.*question="):
        cp.fit("one_coin", annotations.of_question("style"), truth_prior=prior, progress=False)
    with pytest.raises(StoryError, match=r"probabilities of one truth.*dawid_skene"):
        cp.fit("annotator_groups", annotations, truth_prior=prior, progress=False)
    for wrong in (CorrelatedQuestions(kinds=0), CorrelatedQuestions(kinds=2.5), CorrelatedQuestions(2, -1.0)):
        with pytest.raises(StoryError, match=r"kinds=|concentration"):
            cp.fit("one_coin", annotations, truth_prior=wrong, progress=False)
    with pytest.raises(ValueError, match="devices=1"):
        cp.fit("one_coin", annotations, truth_prior=prior, devices=1, progress=False)
    with pytest.raises(StoryError, match=r"cp\.marginal"):
        log_density(handlers.seed(find_story("one_coin"), 0), (annotations,), {"truth_prior": prior}, {})
