"""Questions that are not equally hard: told of a story with one quality over all, and heeded by ``auto``."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.engines import registry
from crowdppl.inference.findings import of_questions
from crowdppl.inference.findings.of_questions import unequal_questions

QUESTIONS = {"correct": 0.5, "clear": 0.7, "safe": 0.97, "complete": 0.4}  # share of "yes"


def rubric(seed, right, items=150, raters=5):
    """Answers of raters who are right in so many of each question, and the truth."""
    rng = np.random.default_rng(seed)
    rows, truth = [], {}
    for i in range(items):
        for (question, share), p in zip(QUESTIONS.items(), right, strict=True):
            yes = bool(rng.random() < share)
            truth[i, question] = "yes" if yes else "no"
            correct = rng.random(raters) < p
            rows += [(i, question, j, "yes" if yes == ok else "no") for j, ok in enumerate(correct)]
    frame = pd.DataFrame(rows, columns=["task", "question", "worker", "label"])
    return cp.Annotations.from_frame(frame, question="question"), truth


def share_right(fit, truth):
    return np.mean([label == truth[unit] for unit, label in fit.labels["label"].items()])


@pytest.mark.parametrize("seed", range(3))
def test_the_easiest_and_the_hardest_question_are_named_with_how_often_two_agree(seed):
    annotations, _ = rubric(seed, (0.9, 0.75, 0.95, 0.65))
    found = unequal_questions(annotations)
    assert (found.easiest, found.hardest) == ("safe", "complete")
    np.testing.assert_allclose(found.agree, [0.95**2 + 0.05**2, 0.65**2 + 0.35**2], atol=0.04)
    assert unequal_questions(annotations.by_question()) is None


def test_the_programs_of_what_is_looked_for_before_a_fit_are_kept(monkeypatch):
    asked = []
    monkeypatch.setattr(registry, "use_program_cache", lambda: asked.append(True))
    unequal_questions(rubric(0, (0.9, 0.75, 0.95, 0.65))[0])
    assert asked


def test_of_many_annotations_a_sample_of_the_tasks_is_asked(monkeypatch):
    monkeypatch.setattr(of_questions, "LOOKED_AT", 2_000)
    found = unequal_questions(rubric(0, (0.9, 0.75, 0.95, 0.65))[0])
    assert (found.easiest, found.hardest) == ("safe", "complete")
    assert unequal_questions(rubric(0, (0.8,) * 4)[0]) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("right", [(0.8,) * 4, (0.85, 0.75, 0.85, 0.75)])
def test_questions_about_as_hard_as_each_other_ask_for_nothing(right, seed):
    assert unequal_questions(rubric(seed, right)[0]) is None


@pytest.mark.parametrize("seed", range(3))
def test_errors_that_are_not_even_are_no_difference_between_questions(seed):
    rng = np.random.default_rng(seed)
    yes = rng.random((150, 3)) < [0.9, 0.5, 0.3]
    given = rng.random((150, 3, 5)) < np.where(yes, 0.95, 0.4)[..., None]
    task, question, worker = (index.ravel() for index in np.indices(given.shape))
    frame = pd.DataFrame({"task": task, "question": question, "worker": worker, "label": given.ravel().astype(str)})
    assert unequal_questions(cp.Annotations.from_frame(frame, question="question")) is None


def test_one_quality_over_such_questions_is_warned_of_and_auto_has_one_on_each():
    annotations, truth = rubric(11, (0.9, 0.75, 0.95, 0.65))
    with pytest.warns(cp.CrowdWarning, match="'safe', and in .*'complete'.*quality='by_question'"):
        shared = cp.fit("dawid_skene", annotations, progress=False)
    own = cp.fit("dawid_skene", annotations, quality="by_question", progress=False)
    assert share_right(own, truth) > share_right(shared, truth) + 0.03
    assert "unequal_questions" not in {finding.code for finding in own.findings}


def test_auto_is_no_worse_than_votes_on_such_questions_and_says_what_it_took():
    annotations, truth = rubric(11, (0.9, 0.75, 0.95, 0.65))
    taken = cp.fit("auto", annotations, progress=False)
    votes = cp.fit("majority_vote", annotations, progress=False)
    assert share_right(taken, truth) > share_right(votes, truth) - 0.02
    assert taken.workers.index.names == ["worker", "question"]
    (note,) = [finding for finding in taken.findings if finding.code == "unequal_questions"]
    assert note.severity == "note"
    assert "quality='shared'" in note.remedy
    told = cp.fit("auto", annotations, quality="shared", progress=False)
    assert told.workers.index.names == ["worker"]


def test_of_comparisons_by_several_criteria_nothing_is_asked():
    rng = np.random.default_rng(0)
    left_is_better = rng.random((60, 2, 5)) < np.array([0.5, 0.97])[:, None]
    pair, question, worker = (index.ravel() for index in np.indices(left_is_better.shape))
    columns = {"prompt": pair, "question": question.astype(str), "worker": worker, "left": "a", "right": "b"}
    frame = pd.DataFrame(columns | {"winner": np.where(left_is_better.ravel(), "left", "right")})
    comparisons = cp.Annotations.from_comparisons(frame, prompt="prompt", question="question")
    assert unequal_questions(comparisons) is None
    fit = cp.fit("dawid_skene", comparisons, truth_prior=cp.Prevalence(), progress=False)
    assert len(fit.labels) == 120
