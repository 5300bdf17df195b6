"""The planned number of gold labels is the least whose interval is as narrow as wanted."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.fitted.intervals import wilson


def population(n=1000, seed=0, sharp=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 1, n) * np.array([1, -1])[np.arange(n) % 2] % 1
    truth = (rng.random(n) < p).astype(int)
    odds = (p / (1 - p)) ** sharp
    said = odds / (1 + odds)
    return pd.DataFrame({"a": 1 - said, "b": said}), pd.Series(np.array(["a", "b"])[truth])


def width(table):
    return table["high"] - table["low"]


def test_whatever_labels_are_worth_the_number_is_the_least_of_wilsons_widths_at_a_half():
    probabilities, _ = population(400)

    def of(n):
        low, high = wilson(0.5, n / (1 - n / 400), 0.9)
        return high - low

    plan = cp.gold_needed(probabilities, 0.1)
    assert plan.at_most == next(n for n in range(1, 400) if of(n) <= 0.1)


def test_predictions_that_say_nothing_take_as_many_as_counting():
    flat = pd.DataFrame({"a": np.full(400, 0.5), "b": np.full(400, 0.5)})
    plan = cp.gold_needed(flat, 0.1)
    assert int(plan) == plan.n_gold == plan.at_most
    assert (plan.table["n_gold"] == plan.at_most).all()


@pytest.mark.parametrize("sharp", [1.0, 4.0])
def test_as_many_as_a_pilot_says_give_the_width_that_was_wanted(sharp):
    """In the mean over draws; the pilot is large, so that its own error is small."""
    probabilities, gold = population(2000, sharp=sharp)
    plan = cp.gold_needed(probabilities, 0.1, gold=gold.sample(1000, random_state=0))
    for key in [("accuracy", "labels"), ("prevalence", "a")]:
        n = int(plan.table.loc[key, "n_gold"])
        tables = [cp.estimate(probabilities, gold.sample(n, random_state=seed)).table for seed in range(1, 41)]
        assert np.mean([width(table).loc[key] for table in tables]) == pytest.approx(0.1, rel=0.05)


def test_label_probabilities_that_are_right_say_what_a_pilot_says_and_too_sure_ones_say_less():
    probabilities, gold = population(4000)
    measured = int(cp.gold_needed(probabilities, 0.08, gold=gold))
    assert int(cp.gold_needed(probabilities, 0.08)) == pytest.approx(measured, rel=0.1)
    sharp, _ = population(4000, sharp=4.0)
    assert int(cp.gold_needed(sharp, 0.08)) < 0.6 * int(cp.gold_needed(sharp, 0.08, gold=gold))


def test_narrower_and_surer_intervals_take_more_and_never_more_than_there_are():
    probabilities, _ = population(300)
    numbers = [int(cp.gold_needed(probabilities, wanted)) for wanted in (0.3, 0.1, 0.05, 0.001)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 4
    assert numbers[-1] <= 300
    assert int(cp.gold_needed(probabilities, 0.1, interval=0.99)) > numbers[1]


def test_it_prints_the_number_and_what_it_is_from():
    probabilities, gold = population()
    plan, of_pilot = cp.gold_needed(probabilities, 0.1), cp.gold_needed(probabilities, 0.1, gold=gold.head(60))
    assert str(plan).startswith(f"{plan.n_gold:,} gold labels of tasks drawn at random from 1,000 make 90% intervals")
    assert "at most 0.1 wide" in repr(plan)
    assert "label probabilities, which are often too sure" in str(plan)
    assert of_pilot.n_gold > 60
    assert "a pilot of 60 gold labels, which are among them" in str(of_pilot)
    assert "a pilot of 60 gold labels, which are enough" in str(cp.gold_needed(probabilities, 0.5, gold=gold.head(60)))
    assert plan.table["width_now"].isna().all()
    expected = width(cp.estimate(probabilities, gold.head(60)).table)
    np.testing.assert_allclose(of_pilot.table["width_now"], expected, rtol=0.1)  # the plan's are Wilson's


@pytest.mark.parametrize("n_classes", [3, 4])
def test_of_more_than_three_classes_only_the_one_that_takes_the_most_is_printed(n_classes):
    shares = [0.2, 0.5, 0.25, 0.05] if n_classes == 4 else [0.2, 0.5, 0.3]
    task = np.random.default_rng(0).choice(n_classes, 400, p=shares)
    probabilities = 0.9 * np.eye(n_classes)[task] + 0.1 / n_classes
    plan = cp.gold_needed(pd.DataFrame(probabilities, columns=list("abcd")[:n_classes]), 0.1)
    assert len(plan.table) == n_classes + 1
    named = [name for name in "abcd" if f" for the prevalence of {name!r}" in str(plan)]
    most = plan.table["n_gold"].loc["prevalence"]
    assert named == (["a", "b", "c"] if n_classes == 3 else [most.idxmax()])
    assert all(f"{most[name]:,} for the prevalence of {name!r}" in str(plan) for name in named)
    assert ("of 4 classes" in str(plan)) == (n_classes == 4)


@pytest.mark.parametrize("wanted", [0, 1, -0.1, "narrow", None, float("nan")])
def test_a_width_lies_between_0_and_1(wanted):
    with pytest.raises(ValueError, match=r"width=.*a finite number above 0 and below 1 is needed"):
        cp.gold_needed(population(100)[0], wanted)


def test_a_small_pilot_is_said_and_a_wrong_one_refused():
    probabilities, gold = population(100)
    with pytest.warns(AnnotationWarning, match="a pilot of 6 gold labels says little"):
        cp.gold_needed(probabilities, gold=gold.head(6))
    with pytest.raises(AnnotationError, match="task 'x' is not among"):
        cp.gold_needed(probabilities, gold={"x": "a"})
    with pytest.raises(ValueError, match="interval=2"):
        cp.gold_needed(probabilities, interval=2)


def compared(n=120, seed=0):
    """Comparisons of four items by three workers, and their true labels."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    truth = np.where(pairs[:, 0] < pairs[:, 1], "left", "right")
    rows = []
    for worker, right in {"ann": 0.9, "bob": 0.8, "cy": 0.7}.items():
        given = np.where(rng.random(n) < right, truth, np.where(truth == "left", "right", "left"))
        rows += [
            (f"p{i}", f"m{a}", f"m{b}", worker, one) for i, ((a, b), one) in enumerate(zip(pairs, given, strict=True))
        ]
    table = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    return cp.Annotations.from_comparisons(table, prompt="prompt")


def test_of_comparisons_the_shares_of_the_sides_are_nothing_to_plan_or_to_say():
    fit = cp.fit("one_coin", compared(), progress=False)
    plan = cp.gold_needed(fit, 0.2)
    assert plan.table.index.tolist() == [("accuracy", "labels")]
    assert "revalence" not in str(plan)
    assert "revalence" not in str(cp.estimate(fit, fit.labels["label"].iloc[:40]))


def of_questions():
    """Labels of 200 tasks and two questions: of one question nearly all are right, of the other two thirds."""
    rng = np.random.default_rng(0)
    parts, gold = {}, {}
    for question, right in {"easy": 0.98, "hard": 0.67}.items():
        truth = rng.integers(0, 2, 200)
        label = np.where(rng.random(200) < right, truth, 1 - truth)
        parts[question] = pd.DataFrame(np.where(np.eye(2)[label], right, 1 - right), columns=["no", "yes"])
        gold |= {(task, question): ("no", "yes")[truth[task]] for task in range(100)}
    table = pd.concat(parts, names=["question", "task"]).swaplevel()
    return table, pd.Series(gold)


@pytest.mark.parametrize("with_pilot", [False, True])
def test_of_several_questions_it_says_what_each_takes_and_that_the_plan_pools_them(with_pilot):
    table, gold = of_questions()
    plan = cp.gold_needed(table, 0.1, gold=gold if with_pilot else None)
    each = plan.by_question
    assert each.loc["easy", "expected"] == pytest.approx(0.98, abs=0.03)
    assert each.loc["hard", "expected"] == pytest.approx(0.67, abs=0.1)
    assert 3 * each.loc["easy", "n_gold"] < each.loc["hard", "n_gold"] <= 200
    assert each["pilot"].tolist() == [100 * with_pilot] * 2
    for question, row in each.iterrows():
        alone = cp.gold_needed(
            table.xs(question, level="question"), 0.1, gold=gold[:, question] if with_pilot else None
        )
        assert row["n_gold"] == alone.table.loc[("accuracy", "labels"), "n_gold"]
        assert f"{row['n_gold']:.0f} for {question!r} (" in str(plan)
    assert "pairs of a task and a question, which pools all questions" in str(plan)
    assert cp.gold_needed(population()[0]).by_question is None
