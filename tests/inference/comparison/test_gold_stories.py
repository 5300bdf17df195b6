"""cp.fit("auto", …, gold=…): stories weighted by what gold labels say of them."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.inference.comparison.gold_stories import EXPECTED, GOLD_SET, OTHERS, VOTES
from crowdppl.inference.fitted.gold_mix import Mix, learned, mixed, shares_of_votes

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning", "ignore::crowdppl.CrowdWarning")
TWO = {"plain": {"story": "dawid_skene"}, "eager": {"story": "one_coin", "right": 4.0}}
OPTIONS = {"max_iterations": 30, "progress": False}


@pytest.fixture(scope="module")
def crowd():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=60, n_workers=6, n_classes=3, seed=1, annotations_per_task=3)
    gold = {annotations.tasks[i]: annotations.classes[int(annotations.gold[i])] for i in range(12)}
    return annotations.without_gold(), gold


@pytest.fixture(scope="module")
def fit(crowd):
    annotations, gold = crowd
    return cp.fit("auto", annotations, stories=TWO | {"binary": {"story": "two_coin"}}, gold=gold, **OPTIONS)


def test_the_weights_are_learned_from_fits_that_gold_has_not_taught_and_the_labels_are_of_those_it_has(crowd, fit):
    annotations, gold = crowd
    assert list(fit.fits) == ["plain", "eager"]
    assert "two classes" in fit.left_out["binary"]
    alone = [cp.fit(**{"story": name} | about, annotations=annotations, **OPTIONS) for name, about in TWO.items()]
    at = annotations.tasks.index_of(list(gold))
    votes = shares_of_votes(annotations)
    judged = np.stack([*(one.posterior[at] for one in alone), votes[at]])
    mix = learned(judged, annotations.classes.index_of(list(gold.values())), np.array([OTHERS, OTHERS, VOTES]))
    assert fit.power == pytest.approx(mix.power)
    assert fit.votes == pytest.approx(mix.weights[-1], abs=1e-6)
    np.testing.assert_allclose((1 - fit.votes) * fit.weights, mix.weights[:-1], atol=1e-6)
    expected = mixed(np.stack([*(one.posterior for one in fit.fits.values()), votes]), Mix(mix.weights, mix.power))
    np.testing.assert_allclose(fit.posterior[12:], expected[12:], atol=1e-6)
    taught = cp.fit("one_coin", annotations, right=4.0, gold=gold, **OPTIONS)
    np.testing.assert_array_equal(fit.fits["eager"].posterior, taught.posterior)


def test_gold_labels_stay_known_and_are_no_sample_of_the_others(crowd, fit):
    gold = crowd[1]
    assert fit.labels["label"].iloc[:12].tolist() == list(gold.values())
    np.testing.assert_allclose(fit.labels["probability"].iloc[:12], 1, atol=1e-6)
    assert (fit.labels["probability"].iloc[12:] < 1).all()
    assert not set(cp.next_gold(fit, 5)["task"]) & set(gold)
    with pytest.raises(AnnotationError, match="told all of them"):
        cp.estimate(fit, gold)


def test_a_mix_is_saved_stacked_again_and_shown(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.power == fit.power
    np.testing.assert_allclose(again.posterior, fit.posterior, atol=1e-7)
    stacked = cp.stack(fit.fits, weights=fit.weights, votes=fit.votes, power=fit.power)
    np.testing.assert_array_equal(stacked.posterior, fit.posterior)
    assert f"to the power {fit.power:.2f}" in str(fit.summary())
    assert len(fit.workers) == 6
    with pytest.raises(ValueError, match="power=2: with a power"):
        cp.stack(fit.fits, power=2)
    with pytest.raises(ValueError, match="power=0"):
        cp.stack(fit.fits, weights=fit.weights, power=0)


def test_a_table_of_asked_tasks_and_gold_that_annotations_carry_are_gold_labels(crowd, fit):
    annotations, gold = crowd
    frame = pd.DataFrame({"task": list(gold), "label": list(gold.values())}).assign(inclusion_probability=0.2)
    by_frame = cp.fit("auto", annotations, stories=TWO, gold=frame, **OPTIONS)
    np.testing.assert_array_equal(by_frame.posterior, fit.posterior)
    carried = cp.fit("auto", annotations.with_gold(gold), stories=TWO, gold=True, **OPTIONS)
    np.testing.assert_array_equal(carried.posterior, fit.posterior)


def test_with_weights_that_are_given_gold_labels_only_count_as_known(crowd):
    annotations, gold = crowd
    found = cp.fit("auto", annotations, stories=TWO, gold=gold, weights="equal", **OPTIONS)
    assert found.power is None
    assert found.weights.tolist() == [0.5, 0.5]
    assert found.labels["label"].iloc[:12].tolist() == list(gold.values())


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"nobody": 0}, "task 'nobody' is not among the annotated tasks"),
        ({0: "maybe"}, "label 'maybe' of task 0 is none of the classes"),
        (pd.DataFrame({"task": [0, 0], "label": [0, 1]}), "task 0 has two labels, 0 .* and 1"),
        (pd.DataFrame({"task": range(61), "label": [0] * 61}), "task 60 is not among the annotated tasks"),
        (True, "gold"),
        ({0: None}, "gold: none of the labels is known"),
    ],
)
@pytest.mark.filterwarnings("ignore:gold. the only label is missing")
def test_gold_that_cannot_be_used_is_refused_before_anything_is_fitted(crowd, gold, message):
    with pytest.raises(AnnotationError, match=message):
        cp.fit("auto", crowd[0], gold=gold, progress=False)


def test_the_default_set_is_diverse_and_has_the_story_that_is_expected_most():
    assert set(EXPECTED) < set(GOLD_SET)
    assert {about.get("story", name) for name, about in GOLD_SET.items()} >= {"dawid_skene", "one_coin", "mace", "glad"}


def test_an_average_without_gold_labels_notes_that_they_would_tell_and_by_how_much(crowd, fit):
    annotations, _ = crowd
    average = cp.fit("auto", annotations, stories=TWO, **OPTIONS)
    (note,) = (found for found in average.findings if found.code == "gold_would_tell")
    labels = np.stack([one.posterior.argmax(1) for one in average.fits.values()])
    votes = np.asarray(annotations.votes())
    differs = (labels[0] != labels[1]) | (votes[np.arange(60), labels[0]] < votes.max(1))
    assert note.values["share"] == pytest.approx(differs.mean())
    assert (note.severity, f"{differs.mean():.1%} of the tasks" in note.text) == ("note", True)
    assert "cp.next_gold(fit, 20)" in note.remedy
    assert "gold_would_tell" not in {found.code for found in fit.findings}
    assert "gold_would_tell" not in {found.code for one in average.fits.values() for found in one.findings}


def test_gold_labels_of_one_class_alone_are_noted(crowd, fit):
    annotations, gold = crowd
    one = [task for task, label in gold.items() if label == 0]
    others = dict.fromkeys(annotations.tasks[20:25], 0)
    found = cp.fit("one_coin", annotations, gold=dict.fromkeys(one, 0) | others, **OPTIONS)
    (note,) = (finding for finding in found.findings if finding.code == "one_gold_class")
    assert note.text.startswith(f"all {len(one) + 5} gold labels are 0")
    assert "one_gold_class" not in {finding.code for finding in fit.findings}


def test_what_is_taken_for_gold_labels_is_said_once(tmp_path):
    annotations, _ = cp.simulate("one_coin", n_tasks=40, n_workers=6, annotations_per_task=4, seed=1)
    labels = [annotations.classes[n % 2] for n in range(12)]
    path = tmp_path / "gold.csv"
    pd.DataFrame({"nr": list(annotations.tasks)[:12], "antw": labels}).to_csv(path, index=False)
    fit = cp.fit("one_coin", annotations, progress=False)
    few = {"stories": ["one_coin", "dawid_skene"], "progress": False}
    for run in (lambda: cp.estimate(fit, path), lambda: cp.fit("auto", annotations, gold=path, **few)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run()
        assert sum("by what is in them" in str(each.message) for each in told) == 1
