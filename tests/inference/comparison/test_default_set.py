"""cp.fit("auto"): a set of stories, compared and averaged."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.kinds import NOMINAL
from crowdppl.inference.comparison import weights
from crowdppl.inference.comparison.default_set import (
    DEFAULT_SET,
    DEFAULT_SET_LEVELS,
    DEFAULT_SET_UNNAMED,
    DEFAULT_SHARES,
    ORDERED,
    ORDERED_SHARES,
    _shares,
    story_set,
)
from crowdppl.inference.comparison.marginal_likelihood import AtMean
from crowdppl.inference.fitted.dependence import dependence

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
TWO = {"plain": {"story": "dawid_skene"}, "eager": {"story": "one_coin", "right": 4.0}}


@pytest.fixture(scope="module")
def auto():
    stories = TWO | {"binary": {"story": "two_coin"}}
    options = {"misled": 0.0, "votes": 0.5, "max_iterations": 50, "seed": 3, "progress": False}
    return cp.fit("auto", cp.load_dataset("anesthesia"), stories=stories, **options)


@pytest.fixture(scope="module")
def stacked():
    data = cp.load_dataset("anesthesia")
    options = {"weights": "stacking", "votes": 0.0, "misled": 0.0, "max_iterations": 50, "seed": 3, "progress": False}
    return cp.fit("auto", data, stories=TWO, **options)


@pytest.mark.parametrize(
    "stories", [5, True, [5], {"name": 5}, {"name": {"story": None}}, ["one_coin", ["mace"]], [], {}]
)
def test_stories_that_are_none_are_refused_with_what_is_taken(stories):
    with pytest.raises(ValueError, match=r"stories=.*(is|there is) no story.*\['dawid_skene', 'one_coin'\]"):
        cp.fit("auto", cp.load_dataset("toy"), stories=stories, progress=False)


def test_the_stories_are_fitted_as_they_would_be_alone(auto):
    assert list(auto.fits) == ["plain", "eager"]
    alone = cp.fit("one_coin", auto.annotations, right=4.0, max_iterations=50, seed=3, progress=False)
    np.testing.assert_array_equal(auto.fits["eager"].posterior, alone.posterior)


def test_the_posterior_of_stories_is_one_vote_among_the_votes(auto):
    assert (auto.weights >= 0.25).all()
    assert auto.comparison is None
    mean = sum(auto.weights[name] * fit.posterior for name, fit in auto.fits.items())
    votes = auto.annotations.votes()
    n = votes.sum(1, keepdims=True)
    share = 0.5 / (1 + n / 10)
    expected = (1 - share) * mean + share * (votes + mean) / (n + 1)
    np.testing.assert_allclose(auto.posterior, expected, atol=1e-6)
    assert f"their share of the label probabilities is {share.mean():.0%} in the mean" in str(auto.summary())


def test_the_votes_share_falls_with_the_annotations_of_a_task(auto):
    """Thirty annotations, of which 70 % are right, leave little doubt of a label."""
    rng = np.random.default_rng(0)
    truth, task = np.arange(60) % 2, np.repeat(np.arange(60), 30)
    label = np.where(rng.random(len(task)) < 0.7, truth[task], 1 - truth[task])
    frame = pd.DataFrame({"task": task, "worker": np.tile(np.arange(30), 60), "label": label})
    options = {"stories": "one_coin", "votes": 0.5, "misled": 0.0, "progress": False}
    fit = cp.fit("auto", cp.Annotations.from_frame(frame), **options)
    assert fit.mean_votes == pytest.approx(0.5 / (1 + 30 / 10))
    assert fit.labels["probability"].mean() > 0.94


def test_the_votes_have_half_of_a_task_without_annotations_as_far_as_these_may_depend_on_each_other(auto):
    usual = cp.fit("auto", auto.annotations, stories=TWO, max_iterations=50, seed=3, progress=False)
    found = [dependence(fit.annotations, fit.fitted.posterior) for fit in usual.fits.values()]
    assert usual.votes == pytest.approx(0.5 * (usual.weights * found).sum())
    assert 0 < usual.votes < 0.5


@pytest.mark.parametrize("of_part", [-4.0, 40.0])
def test_stories_have_half_of_their_weight_and_parts_all_of_it_by_how_probable_the_annotations_are(
    monkeypatch, of_part
):
    data = cp.simulate("dawid_skene", n_tasks=25, n_workers=4, n_classes=2, seed=5)[0].without_gold()
    own = {
        "plain": ("dawid_skene", {}),
        "shared": ("dawid_skene", {"shared_error": True}),
        "coin": ("one_coin", {}),
        "two": ("two_coin", {}),
        "real": ("item_response", {}),
    }
    options = {"max_iterations": 5, "progress": False}
    fits = {name: cp.fit(story, data, **options, **other).fitted for name, (story, other) in own.items()}
    of_posterior = {"plain": 3.0, "shared": 99.0, "coin": 0.0, "two": 2.0, "real": -99.0}
    heights = {name: AtMean(of_part * (name == "shared"), {"a": value}, {}) for name, value in of_posterior.items()}
    of_fit = {id(fits[name]): height for name, height in heights.items()}
    monkeypatch.setattr(weights, "at_mean", lambda fit: of_fit[id(fit)])
    shares = {"plain": 0.1, "shared": 0.2, "coin": 0.3, "two": 0.2, "real": 0.2}
    found = weights.weights_by_probability(fits, shares)
    asked = 2 * np.exp(of_part) / (1 + 2 * np.exp(of_part))
    each = np.array([0.3, 0.3, 0.2]) * np.exp([-3, 0, -2])
    expected = 0.5 * np.array([0.3, 0.3, 0.2]) + 0.4 * ((1 - asked) * each / each.sum() + asked * np.array([1, 0, 0]))
    assert found["real"] == pytest.approx(0.2)
    assert [found["plain"] + found["shared"], found["coin"], found["two"]] == pytest.approx(list(expected), abs=1e-6)
    assert found["shared"] == pytest.approx(asked * expected[0], abs=1e-6)


def test_of_workers_who_err_evenly_the_labels_are_as_often_right_as_the_votes():
    """A confusion matrix for each worker takes chance for more than that, and is .01 below."""
    right = []
    for seed in range(4):
        data = HEALTHY["plain"](np.random.default_rng(seed))
        fit = cp.fit("auto", data.without_gold(), progress=False)
        each = (data.votes(), fit.posterior, fit.fits["dawid_skene"].posterior)
        right.append([(scores.argmax(1) == data.gold).mean() for scores in each])
        assert fit.weights["one_coin"] > 0.5
    of_votes, of_average, of_one = np.mean(right, 0)
    assert of_average > of_votes
    assert of_average > of_one + 0.005


@pytest.fixture(scope="module")
def functions():
    """Eight labelling functions of one class each, on 400 tasks of which 30 % are spam; and the true labels."""
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < 0.3).astype(int)
    rows = []
    spam = [(1, 0.3, 0.9), (1, 0.15, 0.7), (1, 0.1, 0.6), (1, 0.05, 0.95)]  # class, coverage, precision
    ham = [(0, 0.4, 0.9), (0, 0.2, 0.8), (0, 0.3, 0.75), (0, 0.1, 0.6)]
    for j, (own, coverage, precision) in enumerate(spam + ham):
        share = (truth == own).mean()
        fires = np.where(truth == own, coverage * precision / share, coverage * (1 - precision) / (1 - share))
        given = np.where(rng.random(400) < fires, own, 2)
        rows += [(i, f"lf{j}", ["ham", "spam", "none"][k]) for i, k in enumerate(given)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return frame, np.array(["ham", "spam"])[truth]


@pytest.mark.parametrize("dropped", [False, True])
def test_where_all_stories_lose_a_class_of_labelling_functions_the_labels_are_the_votes(functions, dropped):
    frame, truth = functions
    if dropped:
        data, options = cp.Annotations.from_frame(frame[frame["label"] != "none"]), {}
    else:
        data, options = cp.Annotations.from_frame(frame, abstain=["none"]), {"abstentions": "uninformative"}
    with pytest.warns(cp.CrowdWarning, match="give one class each"):
        fit = cp.fit("auto", data, progress=False, **options)
    right = (fit.labels["label"] == truth[fit.labels.index]).mean()
    assert right >= (cp.fit("majority_vote", data, progress=False).labels["label"] == truth[fit.labels.index]).mean()
    assert fit.labels["probability"].mean() < right
    assert fit.left_out.keys() == DEFAULT_SET.keys()
    assert fit.verdict.trust == "no"
    assert not fit.workers["review"].any()


@pytest.mark.parametrize("how", ["equal", "gold"])
def test_a_story_that_loses_a_class_has_no_weight_however_stories_are_weighted(functions, how):
    frame, truth = functions
    options = {"gold": {i: truth[i] for i in frame["task"].unique()[:6]}} if how == "gold" else {"weights": how}
    options |= {"stories": ["one_coin", "dawid_skene"], "progress": False}
    data = cp.Annotations.from_frame(frame, abstain=["none"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cp.fit("auto", data, **options)
    assert (fit.fits["one_coin"].labels["label"] == "ham").mean() > 0.95
    assert fit.weights.to_dict() == {"one_coin": 0.0, "dawid_skene": 1.0}
    assert (fit.labels["label"] == truth[fit.labels.index]).mean() > 0.85


def test_a_story_that_loses_a_class_of_labelling_functions_has_no_weight_and_blames_none_of_them(functions):
    frame, truth = functions
    with pytest.warns(cp.ConvergenceWarning, match="decides the labels"):
        fit = cp.fit("auto", cp.Annotations.from_frame(frame, abstain=["none"]), progress=False)
    assert fit.weights["one_coin"] == 0
    assert fit.weights.sum() == pytest.approx(1)
    assert (fit.fits["one_coin"].labels["label"] == "ham").all()
    assert (fit.labels["label"] == truth[fit.labels.index]).mean() > 0.85
    assert not fit.workers["review"].any()


def test_one_fit_is_averaged_with_the_votes_as_auto_does(auto):
    fit = cp.fit("one_coin", auto.annotations, progress=False)
    alone = cp.fit("auto", auto.annotations, stories="one_coin", votes=0.5, misled=0.1, progress=False)
    stack = cp.stack([fit], weights={"one_coin": 1.0}, votes=0.5, misled=0.1)
    np.testing.assert_array_equal(stack.posterior, alone.posterior)
    assert np.abs(stack.posterior - fit.posterior).max() > 0.01


def test_a_task_without_votes_or_with_a_gold_label_has_the_stories_probabilities():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=6, n_classes=3, seed=1, gold=0.0)
    frame = annotations.to_frame()
    some = cp.Annotations.from_frame(frame[frame["task"] != 3], tasks=list(annotations.tasks), classes=range(3))
    stack = cp.fit("auto", some, stories=TWO, gold={0: 2}, misled=0.0, progress=False)
    mean = sum(stack.weights[name] * fit.posterior for name, fit in stack.fits.items())
    np.testing.assert_allclose(stack.posterior[[0, 3]], mean[[0, 3]], atol=1e-6)
    np.testing.assert_allclose(stack.posterior[0], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(stack.posterior.sum(1), 1, atol=1e-6)
    assert np.abs(stack.posterior - mean).max() > 0.01


def test_the_weights_are_those_of_stacking_over_held_out_annotations(stacked):
    expected = cp.compare(stacked.fits, method="kfold", refit_by="em", seed=3, progress=False)
    assert stacked.weights.to_dict() == pytest.approx(expected["weight"].to_dict())
    assert stacked.weights.sum() == pytest.approx(1)
    mixed = sum(stacked.weights[name] * fit.posterior for name, fit in stacked.fits.items())
    np.testing.assert_allclose(stacked.posterior, mixed)


@pytest.mark.parametrize(("option", "value"), [("weights", "best"), ("votes", 1.0), ("votes", -0.1), ("votes", "all")])
def test_weights_and_votes_that_cannot_be_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option}={value!r}"):
        cp.fit("auto", cp.load_dataset("anesthesia"), **{option: value}, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stories": TWO}, "folds=3: stories with weights='probability' are not compared .* give weights='stacking'"),
        ({"stories": TWO, "weights": "equal"}, "folds=3: stories with weights='equal'"),
        ({"stories": ["one_coin"], "weights": "stacking"}, "folds=3: one story is compared with none"),
    ],
)
def test_folds_are_refused_where_no_stories_are_compared(options, message):
    with pytest.raises(ValueError, match=message):
        cp.fit("auto", cp.load_dataset("anesthesia"), folds=3, **options, progress=False)


def test_folds_change_what_stacking_compares(stacked):
    options = {"weights": "stacking", "votes": 0.0, "misled": 0.0, "max_iterations": 50, "seed": 3, "progress": False}
    by_two = cp.fit("auto", stacked.annotations, stories=TWO, folds=2, **options)
    expected = cp.compare(by_two.fits, method="kfold", folds=2, refit_by="em", seed=3, progress=False)
    np.testing.assert_allclose(by_two.comparison["elpd"], expected["elpd"])
    assert by_two.comparison.attrs["how"].startswith("2 folds")
    assert stacked.comparison.attrs["how"].startswith("5 folds")


def test_a_story_that_does_not_fit_the_data_is_left_out_with_its_reason(auto):
    assert list(auto.left_out) == ["binary"]
    assert "4" in auto.left_out["binary"]
    assert f"binary: {auto.left_out['binary']}" in str(auto.summary())


def test_the_summary_says_which_story_predicts_best_and_what_is_averaged(stacked):
    best = stacked.comparison.index[0]
    heaviest = stacked.weights.idxmax()
    text = str(stacked.summary())
    assert f"{best} predicts held-out annotations best" in text
    assert f"{stacked.weights[heaviest]:.0%} {heaviest}" in text


def test_the_summary_has_classes_and_workers_as_that_of_a_fit(stacked):
    """It had the stories' weights alone."""
    found = stacked.summary()
    assert "the majority vote differs on" in found.facts["labels"]
    np.testing.assert_allclose(found.tables["classes"]["mean_probability"], stacked.probabilities.mean())
    accuracy = stacked.worker_scores()["accuracy"]
    for name, workers in found.tables.items():
        if "worker" in name or "worst" in name:
            np.testing.assert_allclose(workers["accuracy"], accuracy[workers.index])
    assert any("worker" in name for name in found.tables)


def test_the_prevalence_of_a_rare_class_by_an_average_is_that_of_its_stories_and_not_of_the_votes():
    """The votes' share and that of misled tasks made 11 % of a class that 5 % of the tasks are of."""
    means = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truth, able = np.arange(300) < 15, rng.uniform(0.7, 0.95, 20)
        task, worker = np.repeat(np.arange(300), 3), np.concatenate([rng.permutation(20)[:3] for _ in range(300)])
        label = np.where(rng.random(900) < able[worker], truth[task], ~truth[task]).astype(int)
        frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
        fit = cp.fit("auto", frame, progress=False)
        by_stories = sum(fit.weights[name] * one.probabilities.mean() for name, one in fit.fits.items())
        shown = fit.summary().tables["classes"]
        np.testing.assert_allclose(shown["prevalence"], by_stories, atol=1e-5)
        np.testing.assert_allclose(shown["mean_probability"], fit.probabilities.mean())
        means.append(shown.loc[1])
    assert pd.DataFrame(means)["prevalence"].mean() == pytest.approx(0.05, abs=0.025)
    assert pd.DataFrame(means)["mean_probability"].mean() > 0.09


def test_unnamed_annotations_have_a_default_set_of_stories_that_need_no_names():
    unnamed = cp.load_dataset("anesthesia").replace(worker=None)
    assert story_set(None, unnamed) is DEFAULT_SET_UNNAMED
    assert story_set(None, cp.load_dataset("anesthesia").replace(kind=NOMINAL)) == DEFAULT_SET
    assert DEFAULT_SHARES.keys() == DEFAULT_SET.keys()
    assert sum(DEFAULT_SHARES.values()) == pytest.approx(1)


def test_stories_are_taken_by_name_and_as_functions():
    from crowdppl.models import dawid_skene

    assert story_set(["mace", dawid_skene], cp.load_dataset("anesthesia")) == {
        "mace": {"story": "mace"},
        "dawid_skene": {"story": dawid_skene},
    }
    named = {"strong": {"story": "mace", "knows": 3.0}, "one_coin": {"right": 4.0}, "own": dawid_skene}
    assert story_set(named, cp.load_dataset("anesthesia")) == {
        "strong": {"story": "mace", "knows": 3.0},
        "one_coin": {"story": "one_coin", "right": 4.0},
        "own": {"story": dawid_skene},
    }


def test_where_no_story_fits_the_data_the_reasons_are_given():
    with pytest.raises(ValueError, match=r"none of 2 stories fits these data.* two_coin: .*item_response: "):
        cp.fit("auto", cp.load_dataset("anesthesia"), stories=["two_coin", "item_response"], progress=False)


@pytest.mark.slow
def test_the_default_sets_are_fitted_to_named_and_to_unnamed_annotations(real):
    annotations = real("bluebird")
    for data, stories in (
        (annotations, DEFAULT_SET),
        (cp.Annotations.from_counts(annotations.votes()), DEFAULT_SET_UNNAMED),
    ):
        stack = cp.fit("auto", data, progress=False)
        assert set(stack.fits) >= set(stories)  # and the story with the families that bluebird's workers are told by
        assert stack.weights.sum() == pytest.approx(1)
        truth = np.asarray(annotations.gold)
        assert (stack.posterior.argmax(-1) == truth).mean() > 0.7


def test_an_average_predicts_as_its_classifiers_do_by_weight():
    rng = np.random.default_rng(0)
    data = cp.simulate("dawid_skene", n_tasks=80, n_workers=6, n_classes=2, seed=1)[0].without_gold()
    data = data.replace(features=rng.normal(size=(80, 3)).astype(np.float32))
    fits = {name: cp.fit(name, data, classifier="logistic", progress=False) for name in ("dawid_skene", "one_coin")}
    x = rng.normal(size=(5, 3))
    expected = 0.25 * fits["dawid_skene"].predict_proba(x) + 0.75 * fits["one_coin"].predict_proba(x)
    found = cp.stack(fits, {"dawid_skene": 1.0, "one_coin": 3.0}).predict_proba(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="without a classifier"):
        cp.stack(
            fits | {"plain": cp.fit("mace", data, progress=False)}, dict.fromkeys([*fits, "plain"], 1)
        ).predict_proba(x)


def test_the_summary_says_what_the_prior_of_shared_errors_expects_where_it_judges_the_workers():
    stories = {"shared": {"story": "dawid_skene", "shared_error": True}}
    options = {"stories": stories, "max_iterations": 5, "progress": False}
    auto = cp.fit("auto", cp.load_dataset("anesthesia"), **options)
    (shared,) = auto.fits.values()
    said = auto.summary().facts["shared errors"]
    assert said == shared.summary().facts["shared errors"]
    assert "(the prior expects 27%)" in said
    assert "(the prior expects 30%, and hardly anything but gold labels tells otherwise)" in said


GRADES = pd.DataFrame(
    [(t, w, min(max(t % 4 + (w == t % 3) - (w == 3), 0), 3)) for t in range(20) for w in range(4)],
    columns=["task", "worker", "label"],
)


def test_the_default_set_has_an_ordinal_story_where_more_than_two_classes_are_ordered():
    ordered, nominal = (cp.Annotations.from_frame(GRADES, ordered=given) for given in (True, False))
    assert list(story_set(None, ordered)) == [*DEFAULT_SET, *ORDERED]
    assert list(story_set(None, nominal)) == list(DEFAULT_SET)
    with pytest.warns(AnnotationWarning, match="taken as ordered"):
        maybe_codes = cp.Annotations.from_frame(GRADES)
    assert maybe_codes.kind == ordered.kind
    assert list(story_set(None, maybe_codes)) == [*DEFAULT_SET, *ORDERED]
    with pytest.warns(AnnotationWarning, match="taken as ordered"):
        codes = cp.Annotations.from_frame(GRADES.assign(label=GRADES["label"].map({0: 2, 1: 0, 2: 3, 3: 1})))
    assert list(story_set(None, codes)) == list(DEFAULT_SET)
    two = cp.Annotations.from_frame(GRADES.assign(label=GRADES["label"] // 2), ordered=True)
    assert list(story_set(None, two)) == list(DEFAULT_SET)
    assert story_set(None, cp.Annotations.from_frame(GRADES, truth_classes=["no", "yes"])) == DEFAULT_SET_LEVELS
    fit = cp.fit("auto", ordered, progress=False, max_iterations=20)
    assert fit.fits[next(iter(ORDERED))].model.truth_prior == cp.SmoothPrevalence(0.8)
    assert fit.fits["graded_response"].model.truth_prior == cp.Prevalence()
    # Stories that leave dependence of annotations lose some of their share, which the others gain.
    assert all(share <= fit.weights[name] < share + 0.02 for name, share in ORDERED_SHARES.items())
    assert 0 < fit.weights["one_coin"] <= (1 - sum(ORDERED_SHARES.values())) * DEFAULT_SHARES["one_coin"]
    assert fit.weights.sum() == pytest.approx(1)


def test_of_raters_who_know_the_scale_auto_is_more_right_than_votes_and_nominal_stories():
    """A middle class that is frequent, and that nobody overuses."""
    found = {"auto": [], "dawid_skene": [], "majority_vote": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.choice(5, 300, p=[0.05, 0.25, 0.4, 0.23, 0.07])
        perceived = truth[:, None] + rng.normal(0, 0.25, 6) + rng.normal(0, 0.7, (300, 6))
        given = np.where(rng.random((300, 6)).argsort(1) < 3, np.clip(perceived.round(), 0, 4).astype(int), -1)
        rows = [(i, j, given[i, j]) for i, j in zip(*np.nonzero(given >= 0), strict=True)]
        table = pd.DataFrame(rows, columns=["task", "worker", "label"])
        ordered = cp.Annotations.from_frame(table, ordered=[*range(5)], gold=dict(enumerate(truth.tolist())))
        for story, scores in found.items():
            scores.append(cp.score(cp.fit(story, ordered, progress=False))["accuracy"])
    assert np.mean(found["auto"]) > max(np.mean(found["dawid_skene"]), np.mean(found["majority_vote"])) + 0.03


@pytest.mark.parametrize(("kinds", "story"), [(True, "graded_response"), (False, "score_factor")])
def test_scores_of_tasks_of_two_kinds_tell_how_frequent_each_is_and_those_by_degrees_do_not(kinds, story):
    rng = np.random.default_rng(1)
    good = rng.random(200) < 0.9
    quality = np.where(good, 1.2, -1.2) if kinds else rng.normal(size=200)
    scales = [(5, 1.5), (6.5, 1.2), (4, 1), (5, 2)]
    given = [np.clip((m + s * (quality + rng.normal(size=200))).round(), 0, 9).astype(int) for m, s in scales]
    table = pd.DataFrame(np.transpose(given)).melt(ignore_index=False, var_name="worker", value_name="label")
    table = table.reset_index(names="task")
    scores = cp.Annotations.from_frame(table, ordered=range(10), truth_classes=["bad", "good"])
    fit = cp.fit("auto", scores, progress=False)
    assert fit.weights[story] == pytest.approx(1, abs=0.01)
    shares = fit.labels["label"].value_counts(normalize=True)
    assert shares["good"] == pytest.approx(good.mean() if kinds else 0.5, abs=0.05)


def test_a_truth_prior_that_is_given_is_that_of_the_ordinal_story_too_which_is_then_one():
    ordered = cp.Annotations.from_frame(GRADES, ordered=True)
    fit = cp.fit("auto", ordered, truth_prior="uniform", progress=False, max_iterations=5)
    assert list(fit.fits) == [*DEFAULT_SET, "graded_response"]
    assert fit.fits["graded_response"].model.truth_prior == fit.fits["dawid_skene"].model.truth_prior
    shares = _shares(story_set(None, ordered, {"truth_prior": "uniform"}))
    assert shares == pytest.approx(
        {name: share / 10 for name, share in DEFAULT_SHARES.items()} | {"graded_response": 0.9}
    )
