"""Warnings of what the annotations alone do not tell, and silence where they do."""

import os
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import dirichlet

import crowdppl as cp
from crowdppl.inference.fitted.crowd_trust import SAID, crowd_warnings


def crowd(accuracy, n_tasks=300, n_classes=2, per_task=None, seed=0):
    """Workers of given accuracies who annotate all tasks, or some of them; annotations and sure right labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random((n_tasks, len(accuracy))) < accuracy
    wrong = (truth[:, None] + rng.integers(1, n_classes, right.shape)) % n_classes
    task, worker = np.indices(right.shape).reshape(2, -1)
    label = np.where(right, truth[:, None], wrong).reshape(-1)
    kept = np.ones(len(task), bool)
    if per_task is not None:
        kept = rng.random(right.shape).argsort(1).argsort(1).reshape(-1) < per_task
    frame = pd.DataFrame({"task": task[kept], "worker": worker[kept], "label": label[kept]})
    return cp.Annotations.from_frame(frame), 0.9 * np.eye(n_classes)[truth] + 0.1 / n_classes


def test_a_plain_crowd_is_trusted():
    assert crowd_warnings(*crowd([0.8, 0.7, 0.75, 0.6, 0.5])) == ()
    assert crowd_warnings(*crowd([0.6, 0.5, 0.7, 0.4], n_classes=4)) == ()


def test_workers_worse_than_chance_are_counted_with_their_share():
    (text,) = crowd_warnings(*crowd([0.9, 0.85, 0.8, 0.85, 0.1]))
    assert text.startswith(SAID)
    assert "1 worker of 5, with 20% of the annotations" in text
    assert "cp.estimate(fit, gold)" in text


@pytest.mark.parametrize("story", cp.models.STORIES)
def test_every_story_says_in_words_that_a_part_of_the_crowd_is_worse_than_chance(story):
    """Two workers of ten name the other of two classes on nine tasks of ten."""
    annotations, posterior = crowd([0.9] * 8 + [0.1] * 2, n_tasks=60)
    rng = np.random.default_rng(2)
    features = posterior[:, :1] + rng.normal(0, 0.3, (60, 2))
    known = annotations.replace(features=features.astype(np.float32))
    with pytest.warns(cp.CrowdWarning, match=r"2 workers of 10, with 20% of the annotations, would be right less"):
        cp.fit(story, known, progress=False, max_iterations=200)


def test_two_namings_are_said_where_as_many_workers_are_able_either_way():
    annotations, posterior = crowd([0.85, 0.85, 0.15, 0.15])
    assert any("0 from 1" in text and "exchanged" in text for text in crowd_warnings(annotations, posterior))
    known = annotations.replace(evidence=np.where(posterior > 0.5, 0.0, -np.inf))
    assert not any("exchanged" in text for text in crowd_warnings(known, posterior))


def test_the_lead_of_a_naming_is_the_difference_of_the_log_densities_of_the_workers_tables():
    annotations, posterior = crowd([0.7, 0.65, 0.35], n_tasks=60)
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (annotations.worker, slice(None), annotations.label), posterior[annotations.task])
    tables = (counts + 1) / (counts + 1).sum(-1, keepdims=True)

    def log_density(tables):
        return sum(dirichlet.logpdf(table[k], 1 + np.eye(2)[k]) for table in tables for k in range(2))

    (text,) = (text for text in crowd_warnings(annotations, posterior) if "exchanged" in text)
    nats = float(re.search(r"leads by ([\d.]+) nats", text).group(1))
    assert nats == pytest.approx(log_density(tables) - log_density(tables[:, ::-1]), abs=0.06)  # one digit is shown


def test_a_crowd_of_pairs_leaves_prevalence_and_errors_open():
    found = crowd_warnings(*crowd([0.8] * 8, per_task=2))
    assert any("300 of 300 tasks have annotations of fewer than 3 workers" in text for text in found)
    assert crowd_warnings(*crowd([0.8] * 8, per_task=3)) == ()


def test_nobody_disagrees_and_nobody_meets():
    annotations, posterior = crowd([1.0, 1.0, 1.0])
    assert any("all workers agree on each of the 300 tasks" in text for text in crowd_warnings(annotations, posterior))
    annotations, posterior = crowd([0.8, 0.8, 0.8], per_task=1)
    assert any("no task has annotations of two workers" in text for text in crowd_warnings(annotations, posterior))


def test_groups_of_workers_who_share_no_task_are_counted():
    (first, a), (second, b) = crowd([0.8] * 4, n_tasks=200), crowd([0.8] * 4, n_tasks=100, seed=1)
    frames = [
        first.to_frame(),
        second.to_frame().assign(task=lambda f: f["task"] + 1000, worker=lambda f: f["worker"] + 9),
    ]
    annotations = cp.Annotations.from_frame(pd.concat(frames))
    (text,) = crowd_warnings(annotations, np.concatenate([a, b]))
    assert "2 groups that share no task, the largest with 67% of the annotations" in text


def test_a_fit_and_auto_warn_once_and_the_summary_shows_it():
    annotations, _ = crowd([0.8] * 6, per_task=2)
    for story in ("one_coin", "auto"):
        with pytest.warns(cp.CrowdWarning, match="prevalence from errors") as caught:
            fit = cp.fit(story, annotations, progress=False)
        assert sum(SAID in str(warning.message) for warning in caught) == 1
        assert "prevalence from errors" in str(fit.summary())
    with warnings.catch_warnings(record=True, action="always") as caught:  # a filter of the engines' warnings leaves it
        warnings.simplefilter("ignore", cp.ConvergenceWarning)
        cp.fit("one_coin", annotations, progress=False)
    assert any(SAID in str(warning.message) for warning in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.CrowdWarning)
        cp.fit("one_coin", crowd([0.8] * 6)[0], progress=False)


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
@pytest.mark.parametrize(
    "name",
    ["bluebird", "dog", "rte", "trec", "adult", "product", "sentiment", "weather_amt", "movie_sp", "labelme", "music"],
)
def test_crowds_with_gold_that_the_votes_are_near_are_trusted(name):
    annotations = cp.load_dataset(name)
    votes = annotations.votes() + 1e-9
    assert crowd_warnings(annotations, votes / votes.sum(1, keepdims=True)) == ()


def test_gold_that_contradicts_a_unanimous_crowd_is_named():
    rows = [(task, worker, "yes" if task % 2 else "no") for task in range(8) for worker in range(4)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    with pytest.warns(cp.CrowdWarning, match=r"task 3 is 'no', and all 4 annotations of it are"):
        fit = cp.fit("dawid_skene", annotations, gold={0: "no", 3: "no", 5: "no"}, progress=False)
    assert [text for text in fit.warnings if "so it is with 1 other task." in text]
    agreed = cp.fit("dawid_skene", annotations, gold={0: "no", 3: "yes"}, progress=False)
    assert not [text for text in agreed.warnings if "gold label" in text]


def labelling_functions(seed=0, n_tasks=400):
    """Nine functions that give one class each, more often to tasks of that class; −1 where they abstain."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)
    own = np.arange(9) % 3
    fires = rng.random((n_tasks, 9)) < np.where(truth[:, None] == own, 0.5, 0.15)
    return np.where(fires, own, -1)


def test_labelling_functions_of_one_class_each_need_their_abstentions():
    matrix = labelling_functions()
    silent = cp.Annotations.from_matrix(matrix)
    with pytest.warns(
        cp.CrowdWarning, match=r"9 workers of 9, with 100% of the annotations, give one class each"
    ) as said:
        cp.fit("dawid_skene", silent, progress=False)
    assert any("name them by abstain=[...]" in str(warning.message) for warning in said)
    named = cp.Annotations.from_matrix(matrix, abstain=[-1])
    with pytest.warns(cp.CrowdWarning, match="give one class each whatever the task.*fit without abstentions="):
        cp.fit("dawid_skene", named, abstentions="uninformative", progress=False)
    posterior = np.full((400, 3), 1 / 3)
    assert not any("give one class each" in text for text in crowd_warnings(named, posterior))


def test_nobody_is_told_to_leave_out_the_abstentions_of_labelling_functions_of_one_class_each():
    named = cp.Annotations.from_matrix(labelling_functions(), abstain=[-1])
    with pytest.warns(cp.ConvergenceWarning, match="the workers give one class each, so that hardly anything else"):
        fit = cp.fit("dawid_skene", named, progress=False)
    assert not any("uninformative" in text for text in fit.warnings)


def test_a_worker_who_always_gives_the_same_class_is_no_labelling_function():
    annotations, posterior = crowd([0.8, 0.7, 0.75, 0.6])
    frame = annotations.to_frame()
    always = pd.DataFrame({"task": annotations.tasks[:], "worker": "always", "label": 1})
    assert crowd_warnings(cp.Annotations.from_frame(pd.concat([frame, always])), posterior) == ()
