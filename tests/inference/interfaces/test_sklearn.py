"""A crowd's classifier as scikit-learn has it: its checks, pipelines, cross-validation and grid search."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import crowdppl as cp
from crowdppl.sklearn import CrowdClassifier

SKIPPED = {
    "check_supervised_y_2d": "a Y of one column is one worker, as of several; there is nothing to warn of",
}
"""What of scikit-learn's contract does not apply, with the reason."""

CHECKS = list(estimator_checks_generator(CrowdClassifier(), expected_failed_checks=SKIPPED))


def names(checks):
    return [getattr(check, "func", check).__name__ for _, check in checks]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=[f"{i}-{name}" for i, name in enumerate(names(CHECKS))])
def test_scikit_learns_check(estimator, check):
    name = getattr(check, "func", check).__name__
    if name in SKIPPED:
        pytest.skip(SKIPPED[name])
    check(estimator)


def test_abstentions_are_named_and_no_class(crowd):
    x, y, _ = crowd
    numbers = np.select([y == "yes", y == "no"], [1.0, 0.0], -1.0)
    model = CrowdClassifier(missing_label=-1, abstain=-1).fit(x, numbers)
    assert model.classes_.tolist() == [0, 1]
    annotations = cp.Annotations.from_matrix(numbers, missing=-1, abstain=[-1], classes=[0, 1], features=x)
    expected = cp.fit("dawid_skene", annotations, classifier="logistic", progress=False)
    np.testing.assert_allclose(model.fit_.posterior, expected.posterior, atol=1e-5)
    assert model.fit_.annotations.abstains
    assert model.score(x, numbers) == CrowdClassifier.score(model, x, np.where(numbers < 0, np.nan, numbers))


def test_no_check_is_skipped_that_scikit_learn_does_not_have():
    assert set(SKIPPED) <= set(names(CHECKS))
    assert len(CHECKS) > 40


@pytest.fixture(scope="module")
def crowd():
    """300 tasks with two features, of which the first decides; six workers, right four times in five; 40 % missing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    truth = np.where(x[:, 0] > 0.3, "yes", "no")
    right = rng.random((300, 6)) < 0.8
    y = np.where(right, truth[:, None], np.where(truth == "yes", "no", "yes")[:, None]).astype(object)
    y[rng.random(y.shape) < 0.4] = None
    return x, y, truth


def test_it_learns_the_true_labels_of_a_crowd_and_names_its_workers(crowd):
    x, y, truth = crowd
    table = pd.DataFrame(y, columns=list("abcdef"))
    model = CrowdClassifier().fit(x, table)
    assert list(model.classes_) == ["no", "yes"]
    assert (model.predict(x) == truth).mean() > 0.95  # the classes are separated by one feature
    assert (model.labels_ == truth).mean() > 0.95
    np.testing.assert_allclose(model.fit_.workers["accuracy"].loc[list("abcdef")], 0.8, atol=0.1)


def test_it_is_the_fit_of_the_same_annotations(crowd):
    x, y, _ = crowd
    annotations = cp.Annotations.from_matrix(y, missing=None, features=x)
    expected = cp.fit("one_coin", annotations, classifier="logistic", seed=3, progress=False, max_iterations=40)
    options = {"max_iterations": 40}
    model = CrowdClassifier("one_coin", options=options, random_state=3).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), expected.predict_proba(x), atol=1e-6)
    assert model.fit_.settings["max_iterations"] == 40


@pytest.mark.parametrize("missing", [np.nan, -1])
def test_cells_without_an_annotation_are_empty_or_of_the_value_that_is_said(crowd, missing):
    x, y, _ = crowd
    expected = CrowdClassifier().fit(x, y).predict_proba(x)
    numbers = pd.DataFrame(y).replace({"no": 0, "yes": 1}).fillna(missing).to_numpy(float)
    model = CrowdClassifier(missing_label=missing).fit(x, numbers)
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=1e-6)
    assert model.fit_.n_annotations == (y != None).sum()  # noqa: E711


def test_pipelines_cross_validation_and_grid_search_take_it(crowd):
    x, y, truth = crowd
    pipeline = make_pipeline(StandardScaler(), CrowdClassifier())
    scores = cross_val_score(pipeline, x, y, cv=KFold(3))
    grid = {"crowdclassifier__story": ["dawid_skene", "majority_vote"]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3)).fit(x, y)
    np.testing.assert_allclose(scores, 0.8, atol=0.08)  # what is held out are annotations, which are right in 80 %
    assert (search.predict(x) == truth).mean() > 0.95
    assert set(search.cv_results_["param_crowdclassifier__story"]) == set(grid["crowdclassifier__story"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    numbers = pd.DataFrame(y).replace({"no": 0, "yes": 1}).fillna(-1).to_numpy(int)
    pipeline.set_params(crowdclassifier__missing_label=-1)
    np.testing.assert_allclose(cross_val_score(pipeline, x, numbers, cv=3), scores)


def test_the_score_is_the_share_of_annotations_that_are_predicted(crowd):
    x, y, truth = crowd
    model = CrowdClassifier().fit(x, y)
    predicted = model.predict(x)
    given = [(label, predicted[i]) for i, row in enumerate(y) for label in row if label is not None]
    assert model.score(x, y) == pytest.approx(np.mean([one == other for one, other in given]))
    assert model.score(x, truth) == pytest.approx((predicted == truth).mean())
    weight = np.arange(300.0)
    assert model.score(x, truth, weight) == pytest.approx(np.average(predicted == truth, weights=weight))


def test_every_option_makes_another_fit(crowd):
    x, y, _ = crowd
    base = CrowdClassifier().fit(x, y)
    numbers = pd.DataFrame(y).replace({"no": 0, "yes": 1}).to_numpy(float, copy=True)
    numbers[:5, 0] = 2
    ordered = CrowdClassifier(story="ordinal_dawid_skene", ordered=True, options={"max_iterations": 5}).fit(x, numbers)
    assert ordered.fit_.expected["expected"].between(0, 2).all()
    assert not np.allclose(CrowdClassifier("one_coin").fit(x, y).predict_proba(x), base.predict_proba(x), atol=1e-6)
    assert CrowdClassifier(method="svi", options={"max_iterations": 50}).fit(x, y).fit_.method == "svi"
    network = CrowdClassifier(classifier="mlp", options={"epochs": 2})
    one, same, other = (clone(network).set_params(random_state=seed).fit(x, y).predict_proba(x) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    generators = [np.random.RandomState(4), np.random.RandomState(4)]
    first, second = (clone(network).set_params(random_state=rng).fit(x, y).predict_proba(x) for rng in generators)
    np.testing.assert_array_equal(first, second)


def test_images_go_to_a_network_for_images():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 8, 8))
    x[:30] += 1
    y = np.repeat([0, 1], 30)[:, None] * np.ones((1, 3))
    model = CrowdClassifier(classifier="cnn", options={"epochs": 3}).fit(x, y)
    assert model.predict_proba(x).shape == (60, 2)


def test_it_is_cloned_with_its_parameters_and_pickled_with_its_fit(crowd):
    x, y, _ = crowd
    model = CrowdClassifier("one_coin", options={"max_iterations": 30}).fit(x, y)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full((4, 2), np.nan), "all 8 cells"),
        ([["a", None]] * 4, "one class, 'a'"),
        ([[0.5, 0.2]] * 4, "Unknown label type"),
        ([[0, 1]] * 3, "inconsistent"),
    ],
)
def test_what_is_no_crowd_is_refused(y, words):
    with pytest.raises(ValueError, match=words):
        CrowdClassifier().fit(np.arange(8.0).reshape(4, 2), y)


def test_a_checkout_as_working_directory_does_not_hide_scikit_learn():
    code = "import sklearn, crowdppl.sklearn, crowdppl; print(sklearn.__file__, crowdppl.sklearn.CrowdClassifier)"
    folder = cp.__path__[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "site-packages" in done.stdout.split()[0]
