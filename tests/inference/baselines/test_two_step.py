"""A classifier trained on labels that were made before."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import Classifier, StoryError, UnknownNameError
from crowdppl.inference.baselines.two_step import lesson_of
from crowdppl.inference.training_on_labels import TWO_STEP


@pytest.fixture(scope="module")
def crowd():
    """Two Gaussians whose Bayes rule is right in 98 %; four of six workers, right in 60 to 90 %, annotate each task."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 150)
    x = rng.normal(np.where(truth, 1.5, -1.5)[:, None], 1.0, (150, 2))
    ability = np.linspace(0.6, 0.9, 6)
    rows = [
        (i, j, truth[i] if rng.random() < ability[j] else 1 - truth[i])
        for i in range(150)
        for j in rng.choice(6, 4, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))


def test_a_logistic_classifier_has_the_weights_of_scikit_learns_on_the_same_soft_labels(crowd):
    """The maximum of the weighted log-likelihood is one: both optimisers reach it, so probabilities agree to 1e-3."""
    from sklearn.linear_model import LogisticRegression

    flat = cp.Classifier("logistic", prior=None)
    fit = cp.fit("naive_soft", crowd, classifier=flat, tolerance=1e-9, progress=False)
    x, q = np.asarray(crowd.features), fit.posterior
    twice, labels = np.concatenate([x, x]), np.repeat([0, 1], len(x))
    model = LogisticRegression(C=1e4, max_iter=2000).fit(twice, labels, sample_weight=q.T.ravel())
    np.testing.assert_allclose(fit.predict_proba(x), model.predict_proba(x), atol=1e-3)


def test_labels_are_those_of_the_first_step_and_the_classifier_does_not_change_them(crowd):
    fit = cp.fit("wawa", crowd, classifier="logistic", progress=False)
    np.testing.assert_array_equal(fit.posterior, cp.fit("wawa", crowd).posterior)
    assert "vote_weight" in fit.workers


def test_hard_labels_share_ties_and_tasks_without_labels_teach_nothing():
    frame = {"a": {"u": "x", "v": "y"}, "b": {"u": "x", "v": "x"}}
    annotations = cp.Annotations.from_dict(frame)
    annotations = cp.Annotations.from_frame(annotations.to_frame(), tasks=["a", "b", "c", "d"])
    lesson = lesson_of(cp.fit("naive_soft", annotations, gold={"d": "y"}), soft=False)
    rows = [*zip(lesson.task.tolist(), lesson.label.tolist(), lesson.count.tolist(), strict=True)]
    assert [row for row in rows if row[-1] > 0] == [(0, 0, 0.5), (0, 1, 0.5), (1, 0, 1.0), (3, 1, 1.0)]
    assert len(rows) == 4 * 2  # of one shape, whatever the labels


@pytest.mark.parametrize("name", TWO_STEP)
def test_every_two_step_method_of_the_papers_learns_the_classes(crowd, name):
    """The best line is right in 98 %, votes in about 85 %: a line through the labels gains at least half of that."""
    fit = cp.label_then_train(name, crowd, classifier="logistic", progress=False)
    assert (fit.predict_proba(crowd.features).argmax(-1) == crowd.gold).mean() > 0.92
    assert fit.story == f"{TWO_STEP[name][0]}, then train"
    np.testing.assert_allclose(fit.posterior.sum(-1), 1, atol=1e-5)


def test_a_fit_can_be_the_first_step_and_soft_labels_differ_from_hard_ones(crowd):
    first = cp.fit("dawid_skene", crowd, progress=False)
    hard, soft = (
        cp.label_then_train(first, crowd, classifier="logistic", soft=soft, progress=False) for soft in (False, True)
    )
    by_name = cp.label_then_train("DL-DS", crowd, classifier="logistic", progress=False)
    np.testing.assert_allclose(hard.predict_proba(crowd.features), by_name.predict_proba(crowd.features), atol=1e-5)
    assert np.abs(hard.predict_proba(crowd.features) - soft.predict_proba(crowd.features)).max() > 1e-3


def test_a_networks_weights_come_back_from_the_disk(crowd, tmp_path):
    network = Classifier("mlp", hidden=(4,), batch_norm=True)
    fit = cp.fit("majority_vote", crowd, classifier=network, epochs=2, seed=3, progress=False)
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(back.predict_proba(crowd.features), fit.predict_proba(crowd.features), atol=1e-6)
    assert back.settings["epochs"] == 2
    assert back.settings["seed"] == 3


def test_what_cannot_be_taught_is_refused(crowd):
    with pytest.raises(StoryError, match="needs features"):
        cp.fit("majority_vote", crowd.replace(features=None), classifier="mlp")
    with pytest.raises(ValueError, match="without a classifier"):
        cp.fit("majority_vote", crowd).predict_proba(crowd.features)
    with pytest.raises(UnknownNameError, match="dl_dss"):
        cp.label_then_train("dl_dss", crowd, classifier="mlp")
    with pytest.raises(ValueError, match=r"majority_vote .*'gold', not 'epochs'; "):
        cp.label_then_train("majority_vote", crowd, classifier="mlp", label_options={"epochs": 2})
    with pytest.raises(ValueError, match="label_options='em': options by name are needed"):
        cp.label_then_train("dawid_skene", crowd, classifier="mlp", label_options="em")
    with pytest.raises(cp.AnnotationError, match="other tasks"):
        cp.label_then_train(cp.fit("naive_soft", cp.load_dataset("anesthesia")), crowd, classifier="mlp")
