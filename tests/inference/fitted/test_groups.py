"""Groups of annotators: what they are like, and who is of which."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError

EXPERT, SPAMMER = 0.92 * np.eye(3) + 0.04 * (1 - np.eye(3)), np.full((3, 3), 1 / 3)


@pytest.fixture(scope="module")
def crowd():
    """Thirty experts and ten who guess, each of whom annotations 120 of 300 tasks."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    rows = []
    for worker in range(40):
        for task in rng.choice(300, 120, replace=False):
            table = EXPERT if worker < 30 else SPAMMER
            rows.append((task, f"w{worker}", rng.choice(3, p=table[truth[task]])))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.fixture(scope="module")
def fit(crowd):
    annotations = cp.Annotations.from_frame(crowd, classes=[0, 1, 2])
    return cp.fit("annotator_groups", annotations, membership="worker", groups=2, restarts=3, progress=False)


@pytest.mark.parametrize(
    ("story", "options", "said"),
    [
        ("annotator_groups", {}, "the weights of 3 groups are Dirichlet with concentration 1"),
        ("annotator_groups", {"share": 0.5}, "the weights of 3 groups are Dirichlet with concentration 0.5"),
        (
            "annotator_groups",
            {"membership": "worker", "groups": 2},
            "each worker's weights over 2 groups are Dirichlet with concentration 0.1",
        ),
        ("worker_clusters", {}, "the weights of 3 groups are Dirichlet with concentration 1"),
        ("annotator_groups", {"groups": 1}, None),
        ("dawid_skene", {}, None),
    ],
)
def test_the_summary_says_the_prior_of_groups_that_is_in_force(story, options, said):
    fit = cp.fit(story, cp.load_dataset("anesthesia"), max_iterations=2, tolerance=1e9, progress=False, **options)
    assert fit.summary().facts.get("prior of groups") == said


def test_each_worker_is_of_the_group_that_he_was_drawn_from(fit):
    memberships = cp.group_memberships(fit)
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0, atol=1e-5)
    experts = cp.describe_groups(fit)["similarity"].idxmax()
    is_expert = memberships.index.str.removeprefix("w").astype(int) < 30
    assert ((memberships[experts] > 0.5) == is_expert).all()


def test_groups_have_the_share_of_those_drawn_and_the_confusions_that_these_have_against_the_labels(fit, crowd):
    described = cp.describe_groups(fit).sort_values("similarity")
    np.testing.assert_allclose(described["share"], [0.25, 0.75], atol=0.1)
    tables = fit.parameters["group_confusion"].values[described.index]
    is_expert = crowd["worker"].str.removeprefix("w").astype(int) < 30
    truth = crowd["task"].map(fit.labels["label"])
    for found, drawn in zip(tables, (~is_expert, is_expert), strict=True):
        actual = pd.crosstab(truth[drawn], crowd["label"][drawn], normalize="index").to_numpy()
        # A worker of one group is taken to give a few annotations, right ones of a guesser, as one of the other.
        np.testing.assert_allclose(found, actual, atol=0.08)


def test_a_worker_outside_the_training_data_gets_a_group_from_his_annotations(fit, crowd):
    label = fit.labels["label"]
    tasks = list(label.index[:25])
    right = pd.DataFrame({"task": tasks, "worker": "new expert", "label": label[tasks].to_numpy()})
    wrong = pd.DataFrame({"task": tasks, "worker": "new guesser", "label": np.arange(25) % 3})
    asked = cp.Annotations.from_frame(pd.concat([right, wrong]), classes=[0, 1, 2])
    memberships = cp.group_memberships(fit, asked)
    experts = cp.describe_groups(fit)["similarity"].idxmax()
    assert memberships.loc["new expert", experts] > 0.99
    assert memberships.loc["new guesser", experts] < 0.01
    tables = cp.group_worker_confusions(fit, asked)
    at = list(asked.workers).index("new expert")
    np.testing.assert_allclose(tables[at], fit.parameters["group_confusion"].values[experts], atol=0.01)


def test_memberships_are_bayes_rule_by_loops(fit):
    annotations, tables = fit.annotations, fit.parameters["group_confusion"].values.astype(float)
    share = cp.describe_groups(fit)["share"].to_numpy()
    scores = np.tile(np.log(share), (40, 1))
    for task, worker, y in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        scores[worker] += np.log(tables[:, :, y] @ fit.posterior[task].astype(float))
    odds = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(cp.group_memberships(fit), odds / odds.sum(1, keepdims=True), atol=1e-4)


def test_who_has_no_groups_or_no_names_is_told(fit, crowd):
    with pytest.raises(ValueError, match=r"dawid_skene .* of groups"):
        cp.describe_groups(cp.fit("dawid_skene", fit.annotations, progress=False))
    with pytest.raises(AnnotationError, match="nobody to give a group"):
        cp.group_memberships(fit, cp.Annotations.from_counts(np.eye(3, dtype=int)))
    frame = pd.DataFrame({"task": ["unseen"] * 2, "worker": ["w0", "w1"], "label": [0, 1]})
    new_task = cp.Annotations.from_frame(frame, classes=[0, 1, 2])
    with pytest.raises(AnnotationError, match="task 'unseen'"):
        cp.group_memberships(fit, new_task)
    other_classes = cp.Annotations.from_frame(frame)
    with pytest.raises(AnnotationError, match=r"the classes are \[0, 1\]"):
        cp.group_memberships(fit, other_classes)


def test_of_annotations_without_names_the_mixed_table_is_found_and_new_workers_get_groups(crowd):
    """The Global setting: only the mixture is identified, which is 0.75 expert and 0.25 guesser."""
    named = cp.Annotations.from_frame(crowd, classes=[0, 1, 2])
    fit = cp.fit("annotator_groups", cp.Annotations.from_counts(named.votes()), groups=2, progress=False)
    mixed = np.einsum("m,mkl->kl", *(fit.parameters[name].values for name in ("weights", "group_confusion")))
    np.testing.assert_allclose(mixed, 0.75 * EXPERT + 0.25 * SPAMMER, atol=0.06)
    frame = pd.DataFrame({"task": ["unseen"] * 2, "worker": ["a", "b"], "label": [0, 0]})
    memberships = cp.group_memberships(fit, cp.Annotations.from_frame(frame, classes=[0, 1, 2]))
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0, atol=1e-5)
