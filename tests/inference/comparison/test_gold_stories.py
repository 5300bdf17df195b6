"""cp.fit("auto", …, gold=…): stories weighted by what gold labels say of them."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.inference.comparison.default_set import DEFAULT_SET
from crowdppl.inference.comparison.gold_stories import GOLD_SET, LEAST_OPEN, OPEN, VOTES
from crowdppl.inference.fitted.gold_mix import CENTRE, Mix, learned, mixed, shares_of_votes

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
    average = cp.fit("auto", annotations, stories=TWO, **OPTIONS)
    depends = average.votes / 0.5  # the share of the votes where annotations are sure to depend on each other
    share = max(OPEN * depends, LEAST_OPEN)
    expected = (1 - share) * np.array([*average.weights, 0]) + share * np.array([1, 1, VOTES]) / (2 + VOTES)
    known = annotations.classes.index_of(list(gold.values()))
    mix = learned(judged, known, expected, centre=depends * CENTRE)
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


@pytest.mark.slow
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


def test_the_set_is_that_without_gold_labels_and_more_diverse():
    assert set(DEFAULT_SET) < set(GOLD_SET)
    assert {about.get("story", name) for name, about in GOLD_SET.items()} >= {"dawid_skene", "one_coin", "mace", "glad"}


def _share_right(fit, truth, tasks):
    return np.mean([fit.labels.loc[task, "label"] == truth[task] for task in tasks])


@pytest.fixture(scope="module")
def copied():
    """Three workers who err on the same quarter of the tasks, beside two of four others, and the true labels."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 200)
    misled = np.where(rng.random(200) < 0.25, (true + rng.integers(1, 3, 200)) % 3, true)
    rows = []
    for i, (label, common) in enumerate(zip(true, misled, strict=True)):
        given = dict.fromkeys(["a", "b", "c"], common) | dict.fromkeys(
            rng.choice(["d", "e", "f", "g"], 2, False), label
        )
        right = {worker: 0.95 if worker in "abc" else 0.8 for worker in given}
        rows += [
            (i, worker, int(said if rng.random() < right[worker] else rng.integers(0, 3)))
            for worker, said in given.items()
        ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"]).astype({"label": str}), dict(
        enumerate(map(str, true))
    )


def test_copies_count_as_one_with_gold_labels_as_without(copied):
    frame, truth = copied
    rng = np.random.default_rng(1)
    gold = {task: truth[task] for task in rng.choice(200, 20, replace=False).tolist()}
    others = [task for task in truth if task not in gold]
    of_few = {"stories": ["dawid_skene", "one_coin"], "progress": False}
    without, taught = cp.fit("auto", frame, **of_few), cp.fit("auto", frame, gold=gold, **of_few)
    for fit in (without, taught):
        (found,) = (one for one in fit.findings if one.code == "copies")
        assert found.values["as_one"][0]["workers"] == ["a", "b", "c"]
    assert _share_right(taught, truth, others) >= _share_right(without, truth, others) - 0.01
    kept = cp.fit("auto", frame, gold=gold, copies="keep", **of_few)
    assert _share_right(kept, truth, others) < _share_right(taught, truth, others) - 0.1


def test_gold_labels_choose_from_what_annotations_find_and_from_stories_that_lost_a_class():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 150)
    rows = [
        (i, f"{name} {number}", name)
        for i, label in enumerate(true)
        for k, name in enumerate(["no", "yes"])
        for number in range(4)
        if rng.random() < (0.4 if label == k else 0.05)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    gold = {task: ["no", "yes"][true[task]] for task in frame["task"].unique()[:15].tolist()}
    few = {"stories": ["dawid_skene", "one_coin"], "progress": False}
    without, taught = cp.fit("auto", frame, **few), cp.fit("auto", frame, gold=gold, **few)
    assert (list(without.fits), list(taught.fits)) == ([], few["stories"])
    assert taught.votes > OPEN
    others = without.labels.index.difference(list(gold))
    right = [
        np.mean(fit.labels.loc[others, "label"] == np.array(["no", "yes"])[true[others]]) for fit in (without, taught)
    ]
    assert right[1] >= right[0] - 0.02


def test_gold_labels_on_which_all_agree_leave_the_weights_and_the_rare_class():
    rng = np.random.default_rng(0)
    true = (rng.random(500) < 0.04).astype(int)
    found, wrong = rng.uniform(0.5, 0.9, 12), rng.uniform(0.01, 0.1, 12)
    rows = [
        (i, int(j), int(rng.random() < (found[j] if true[i] else wrong[j])))
        for i in range(500)
        for j in rng.choice(12, 5, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    gold = dict.fromkeys(np.flatnonzero(true == 0)[:20].tolist(), 0)
    without, taught = (cp.fit("auto", frame, stories=DEFAULT_SET, gold=known, progress=False) for known in (None, gold))
    assert taught.weights.idxmax() == without.weights.idxmax()
    assert taught.weights.max() * (1 - taught.votes) > 0.75 * without.weights.max()
    is_rare = [fit.labels["label"].to_numpy() == 1 for fit in (without, taught)]
    assert (is_rare[1] & (true == 1)).sum() >= (is_rare[0] & (true == 1)).sum() - 1
    assert (is_rare[1] != true).sum() <= (is_rare[0] != true).sum() + 1


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


def test_of_few_tasks_half_are_named_to_be_checked():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=12, n_workers=4, n_classes=3, seed=1, annotations_per_task=3)
    average = cp.fit("auto", annotations.without_gold(), stories=TWO, **OPTIONS)
    (note,) = (found for found in average.findings if found.code == "gold_would_tell")
    assert "true labels of 6 tasks improve" in note.text
    assert "cp.next_gold(fit, 6)" in note.remedy


def test_findings_on_members_with_little_weight_are_theirs_alone(crowd):
    """An average is warned of what moves its labels; a member with a twentieth of the weight does not."""
    annotations, gold = crowd
    average = cp.fit("auto", annotations, gold=gold, **OPTIONS)
    little = average.weights.index[average.weights < 0.1]
    assert len(little)
    of_little = {found.code for name in little for found in average.members[name].findings}
    assert "em_not_converged" in of_little
    assert not set(little) & {found.story for found in average.findings}


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
