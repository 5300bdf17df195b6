"""Tasks' scores against enumeration of all annotations, and on crowds whose faults are known."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from fit_at import fit_at, random_confusions
from kept_programs import forget_programs
from scipy.special import softmax
from scipy.stats import entropy

import crowdppl as cp
from crowdppl.inference.densities import programs
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.fitted.tasks import expected_confusion, task_scores
from crowdppl.inference.scores.label_scores import label_confusion
from crowdppl.models import STORIES


@pytest.fixture(scope="module")
def em():
    annotations = random_annotations(np.random.default_rng(0), n_tasks=5, n_workers=3, n_classes=3, n_rows=9)
    return fit_at("dawid_skene", annotations, random_confusions(annotations))


def exact(prevalence, tables, observed):
    """Of one task: entropy now, expected entropy with its variance, surprise, its variance and its tail."""
    k = len(prevalence)

    def joint(answers):
        return prevalence * np.prod([table[:, y] for table, y in zip(tables, answers, strict=True)], axis=0)

    every = np.array([joint(y) for y in product(range(k), repeat=len(tables))])  # (outcomes, K)
    marginal, now = every.sum(1), joint(observed)
    entropies = np.array([entropy(row) for row in every])
    mean = marginal @ entropies
    given = every / prevalence @ (now / now.sum())  # of each outcome, the truth as likely as it is now
    excess = np.log(marginal) - np.log(now.sum())
    surprise = given @ excess
    tail = given @ np.where(np.abs(excess) < 1e-5, 0.5, excess < 0)
    return entropy(now), mean, marginal @ (entropies - mean) ** 2, surprise, given @ (excess - surprise) ** 2, tail


def test_the_first_columns_are_the_labels_and_the_next_best_class(em):
    found, p = em.tasks, em.probabilities
    pd.testing.assert_frame_equal(found[["label", "probability", "entropy"]], em.labels)
    for i, row in enumerate(p.to_numpy()):
        second = np.argsort(-row, kind="stable")[1]
        assert found["runner_up"].iloc[i] == p.columns[second]
        assert found["runner_up_probability"].iloc[i] == row[second]
    assert found["annotations"].tolist() == em.annotations.votes().sum(1).tolist()


@pytest.mark.parametrize("n_draws", [1, 3, 7])
def test_expectations_are_those_over_all_annotations_that_could_be(em, n_draws):
    """6,000 replicates, not as many of each of 7 draws: within five standard errors, whose variances are enumerated."""
    annotations, replicates = em.annotations, 6000
    fit = fit_at("dawid_skene", annotations, random_confusions(annotations, n_draws, seed=5))
    found = task_scores(fit, replicates=replicates, seed=1)
    for i in range(4):
        rows = annotations.task == i
        if not rows.any():
            continue
        draws = [
            exact(
                fit.outcome.draws["prevalence"][0, d].astype(float),
                fit.outcome.draws["confusion"][0, d].astype(float)[annotations.worker[rows]],
                annotations.label[rows],
            )
            for d in range(n_draws)
        ]
        now, mean, variance, surprise, surprise_variance, tail = np.array(draws).T
        spread = 5 * np.sqrt(variance.mean() / replicates)
        assert found["expected_entropy"].iloc[i] == pytest.approx(mean.mean(), abs=spread + 1e-5)
        assert found["ambiguity"].iloc[i] == pytest.approx((now - mean).mean(), abs=spread + 1e-5)
        n = rows.sum()
        assert found["surprise"].iloc[i] * n == pytest.approx(
            surprise.mean(), abs=5 * np.sqrt(surprise_variance.mean() / replicates) + 1e-4
        )
        assert found["surprise_p"].iloc[i] == pytest.approx(tail.mean(), abs=5 * 0.5 / np.sqrt(replicates))


def test_a_task_without_annotations_is_as_uncertain_as_expected(em):
    found = em.tasks.iloc[4]
    assert found["annotations"] == 0
    assert found["expected_entropy"] == pytest.approx(entropy(em.outcome.draws["prevalence"][0, 0]), abs=1e-5)
    assert found["ambiguity"] == pytest.approx(0, abs=1e-6)
    assert np.isnan(found["surprise"])
    assert np.isnan(found["surprise_p"])


def test_a_row_that_stands_for_several_annotations_is_replicated_as_several():
    """Four annotations by one confusion matrix: 16 outcomes by their probabilities; 4,000 replicates, five errors."""
    annotations = cp.Annotations.from_counts([[3, 1], [0, 4], [4, 0], [1, 3], [4, 1]])
    table, prevalence = np.array([[0.8, 0.2], [0.35, 0.65]]), np.array([0.4, 0.6])
    parameters = {"group_confusion": table[None, None], "prevalence": prevalence[None], "weights": np.ones((1, 1))}
    fit = fit_at("annotator_groups", annotations, parameters, groups=1, truth="shared")
    _, mean, variance, *_ = exact(prevalence, [table] * 4, [0, 0, 0, 1])
    found = task_scores(fit, replicates=4000)
    assert found["expected_entropy"].iloc[0] == pytest.approx(mean, abs=5 * np.sqrt(variance / 4000) + 1e-5)
    assert found["annotations"].tolist() == [4, 4, 4, 4, 5]


def test_a_gold_label_leaves_no_doubt(em):
    annotations = with_evidence(em.annotations, {0: 1})
    found = fit_at("dawid_skene", annotations, random_confusions(annotations)).tasks.iloc[0]
    assert (found["label"], found["entropy"], found["expected_entropy"]) == (1, 0, 0)
    assert found["ambiguity"] == pytest.approx(0, abs=1e-6)
    assert np.isfinite(found["surprise"])


def faulty_crowd(seed=0):
    """200 plain tasks; 15 on which good workers are split; 15 that only spammers annotated. 8 good ones, 8 spammers."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(200):
        z = rng.integers(2)
        rows += [(f"plain {i}", j, z if rng.random() < 0.9 else 1 - z) for j in rng.permutation(8)[:5]]
        rows += [(f"plain {i}", 8 + j, rng.integers(2)) for j in rng.permutation(8)[:2]]
    for i in range(15):
        rows += [(f"ambiguous {i}", j, n % 2) for n, j in enumerate(rng.permutation(8)[:4])]
        rows += [(f"spammed {i}", 8 + j, rng.integers(2)) for j in rng.permutation(8)[:4]]
    return cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))


def test_ambiguous_tasks_are_told_from_those_that_spammers_annotated():
    """Both kinds are in doubt. Four good workers (0.9) leave little doubt on average, four spammers almost log 2.

    Two of four good workers err with probability 0.05, more of them with 0.004.
    """
    fit = cp.fit("dawid_skene", faulty_crowd(), progress=False)  # which finds out who is good
    kind = fit.tasks.index.str.split().str[0]
    by_kind = fit.tasks.groupby(kind)
    assert (by_kind["entropy"].median()[["ambiguous", "spammed"]] > 0.3).all()
    assert by_kind["ambiguity"].min()["ambiguous"] > 0.2
    assert abs(by_kind["ambiguity"].mean()["spammed"]) < 0.1
    assert by_kind["ambiguity"].max()["spammed"] < by_kind["ambiguity"].median()["ambiguous"]
    assert by_kind["expected_entropy"].max()["ambiguous"] < 0.15
    assert by_kind["expected_entropy"].min()["spammed"] > 0.4
    assert by_kind["surprise_p"].max()["ambiguous"] < 0.1
    assert by_kind["surprise_p"].median()["spammed"] > 0.2


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(em):
    pd.testing.assert_frame_equal(task_scores(em, replicates=50), task_scores(em, replicates=50))
    other = task_scores(em, replicates=50, seed=1)
    assert (other["expected_entropy"] != task_scores(em, replicates=50)["expected_entropy"]).any()
    with pytest.raises(ValueError, match="replicates=0"):
        task_scores(em, replicates=0)


def test_the_expected_confusion_is_the_expectation_of_the_counted_one():
    """Truths drawn 400 times from the probabilities: cells within five standard errors."""
    rng = np.random.default_rng(3)
    p = pd.DataFrame(softmax(2 * rng.normal(size=(40, 3)), axis=1), columns=["a", "b", "c"])
    found = expected_confusion(p)
    drawn = np.mean(
        [
            label_confusion(p, {i: p.columns[rng.choice(3, p=row)] for i, row in enumerate(p.to_numpy())})
            for _ in range(400)
        ],
        axis=0,
    )
    np.testing.assert_allclose(found, drawn, atol=5 * np.sqrt(40 / 4) / 20)
    np.testing.assert_allclose(found.sum(axis=0), np.bincount(p.to_numpy().argmax(1), minlength=3))
    np.testing.assert_allclose(found.sum(axis=1), p.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.filterwarnings("ignore")
def test_every_story_has_them(story):
    """Entropies lie between 0 and log K; replicates of the story itself are no more surprising than they should be."""
    needed = {"difficulty": {"truth_prior": np.random.default_rng(0).dirichlet([1, 1], 40)}}.get(story, {})
    annotations, _ = cp.simulate(story, n_tasks=40, n_workers=6, n_classes=2, seed=2, **needed)
    fit = cp.fit(story, annotations, method="svi", max_iterations=300, draws=40, progress=False, **needed)
    found = fit.tasks
    assert found["expected_entropy"].between(-1e-6, np.log(2) + 1e-6).all()
    assert (found["ambiguity"].abs() <= np.log(2) + 1e-6).all()
    assert 0.2 < found["surprise_p"].mean() < 0.8
    assert jax.tree.all(jax.tree.map(lambda x: bool(jnp.isfinite(x).all()), found["surprise"].to_numpy()))


def test_scores_are_the_same_however_their_program_is_compiled(monkeypatch):
    """To the rounding of single precision; shares of surprising replicates by one replicate, where two are a tie."""
    fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
    found = []
    for little in (0, 10**9):
        monkeypatch.setattr(programs, "LITTLE", little)
        forget_programs()
        found.append(fit.task_scores().select_dtypes(float))
    forget_programs()
    pd.testing.assert_frame_equal(*(one.drop(columns="surprise_p") for one in found), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(*(one["surprise_p"] for one in found), atol=1 / 200)
