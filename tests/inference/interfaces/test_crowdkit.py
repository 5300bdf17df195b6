"""The classes of crowd-kit over the stories: the same tables in and out, so that one import is changed."""

import inspect

import crowdkit.aggregation as theirs
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
import crowdppl.crowdkit as ours
from crowdppl.data.errors import UnknownNameError

NAMES = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE")


@pytest.fixture(scope="module")
def crowd():
    """150 tasks of three classes, by six of twelve workers each, who are right in four of five."""
    sizes = {"n_tasks": 150, "n_workers": 12, "annotations_per_task": 6, "n_classes": 3}
    annotations, _ = cp.simulate("dawid_skene", **sizes, diagonal=8.0, off_diagonal=1.0, seed=1)
    frame = annotations.to_frame().sample(frac=1, random_state=0)
    frame["label"] = frame["label"].map({0: "a", 1: "b", 2: "c"})
    return frame[["task", "worker", "label"]], pd.Series(annotations.gold, annotations.tasks).map(
        dict(enumerate("abc"))
    )


@pytest.mark.parametrize("name", NAMES)
def test_labels_probabilities_and_skills_are_tables_as_crowd_kit_has_them(crowd, name):
    data, gold = crowd
    one, other = getattr(ours, name)(), getattr(theirs, name)()
    labels, their_labels = one.fit_predict(data), other.fit_predict(data)
    probabilities, their_probabilities = one.fit_predict_proba(data), other.fit_predict_proba(data)

    pd.testing.assert_index_equal(labels.index.sort_values(), their_labels.index.sort_values(), exact="equiv")
    assert (labels.name, labels.index.name) == (their_labels.name, their_labels.index.name)
    assert list(probabilities.columns) == sorted(their_probabilities.columns)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert (probabilities.idxmax(axis=1) == labels).all()
    right, their_right = (found.reindex(gold.index) == gold for found in (labels, their_labels))
    assert right.mean() >= their_right.mean() - 0.02  # three tasks of 150, on which the priors decide
    assert one.skills_.between(0, 1).all()
    assert set(one.skills_.index) == set(data["worker"])


def test_majority_vote_is_crowd_kits_but_for_ties(crowd):
    data, _ = crowd
    one, other = ours.MajorityVote().fit(data), theirs.MajorityVote().fit(data)
    expected = other.probas_.sort_index()[list("abc")]
    pd.testing.assert_frame_equal(one.probas_.sort_index(), expected, check_index_type=False, rtol=1e-6)
    clear = (expected.max(axis=1).to_numpy()[:, None] == expected.to_numpy()).sum(axis=1) == 1
    assert (one.labels_.sort_index()[clear] == other.labels_.sort_index()[clear]).all()  # which is first differs
    assert 0.9 < clear.mean() < 1


def test_without_priors_dawid_and_skene_is_crowd_kits():
    """Both climb one likelihood from the votes; ours in float32, whose rounding is 1e-6."""
    sizes = {"n_tasks": 400, "n_workers": 10, "n_classes": 2}
    annotations, _ = cp.simulate("dawid_skene", **sizes, diagonal=8.0, off_diagonal=2.0, seed=0)
    data = annotations.to_frame()
    flat = {"diagonal": 1e-6, "off_diagonal": 1e-6, "truth_prior": cp.Prevalence(1e-6)}
    one = ours.DawidSkene(n_iter=2000, tol=1e-9, **flat).fit(data)
    other = theirs.DawidSkene(n_iter=2000, tol=1e-12).fit(data)
    np.testing.assert_allclose(one.probas_.sort_index(), other.probas_.sort_index()[[0, 1]], atol=1e-5)
    np.testing.assert_allclose(one.errors_, other.errors_.reindex(one.errors_.index)[[0, 1]], atol=1e-5)
    np.testing.assert_allclose(one.priors_, other.priors_[[0, 1]], atol=1e-5)


def test_true_labels_are_told(crowd):
    data, gold = crowd
    wrong = gold.map({"a": "b", "b": "c", "c": "a"}).iloc[:5]
    assert (ours.DawidSkene().fit_predict(data, wrong)[wrong.index] == wrong).all()


@pytest.mark.parametrize("name", [*NAMES, "BradleyTerry"])
def test_positional_arguments_stand_in_crowd_kits_order(name):
    theirs_ = list(inspect.signature(getattr(theirs, name)).parameters)[:2]
    ours_ = list(inspect.signature(getattr(ours, name)).parameters)[:2]
    assert name == "MajorityVote" or theirs_ == ours_


def test_options_of_crowd_kit_are_ours_by_their_names(crowd):
    data, _ = crowd
    settings = ours.MACE(3, 7, random_state=5, verbose=0).fit(data).fit_.settings
    assert (settings["restarts"], settings["max_iterations"], settings["seed"]) == (3, 7, 5)
    assert ours.GLAD(tol=1e-3, silent=True).fit(data).fit_.settings["tolerance"] == 1e-3


def test_progress_is_shown_where_crowd_kit_shows_it(crowd, capsys):
    data, _ = crowd
    ours.DawidSkene(n_iter=3).fit(data)
    assert not capsys.readouterr().err
    assert ours.GLAD(silent=False).options["progress"]
    assert ours.MACE(verbose=1).options["progress"]
    assert not ours.MACE().options["progress"]


def test_an_option_that_no_story_has_is_refused_by_its_name(crowd):
    data, _ = crowd
    with pytest.raises(UnknownNameError, match="initial_error_strategy"):
        ours.DawidSkene(initial_error_strategy="assign").fit(data)


def test_a_missing_column_is_named(crowd):
    data, _ = crowd
    with pytest.raises(cp.AnnotationError, match=r"'worker'"):
        ours.DawidSkene().fit(data.drop(columns="worker"))


def test_whole_numbers_are_classes_without_an_order(crowd):
    data, _ = crowd
    numbers = data.assign(label=data["label"].map({"a": 1, "b": 2, "c": 3}))
    found = ours.MajorityVote().fit_predict(numbers)
    assert found.dtype == theirs.MajorityVote().fit_predict(numbers).dtype
    assert (found.map({1: "a", 2: "b", 3: "c"}) == ours.MajorityVote().fit_predict(data)).all()


def test_items_are_ranked_as_by_crowd_kits_bradley_terry():
    rng = np.random.default_rng(0)
    worth = {"a": 2.0, "b": 1.0, "c": 0.0, "d": -1.0}
    rows = []
    for _ in range(400):
        left, right = rng.choice(list(worth), 2, replace=False)
        better = left if rng.random() < 1 / (1 + np.exp(worth[right] - worth[left])) else right
        rows.append((f"w{rng.integers(5)}", left, right, better))
    data = pd.DataFrame(rows, columns=["worker", "left", "right", "label"])
    found, expected = ours.BradleyTerry(n_iter=100).fit_predict(data), theirs.BradleyTerry(n_iter=100).fit_predict(data)
    assert list(found.index) == list(expected.index)
    assert list(found.sort_values().index) == list(expected.sort_values().index) == list("dcba")
    assert found.sum() == pytest.approx(1)
    with pytest.raises(cp.AnnotationError, match="'worker'"):
        ours.BradleyTerry().fit(data.drop(columns="worker"))
