"""Rules over votes: their formulas, and that what they give behaves as a fit does."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, Fit
from crowdppl.inference.baselines.votes import agreement

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
RULES = ("majority_vote", "wawa", "naive_soft", "smoothed_votes")
ROWS = [
    ("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y"),
    ("t2", "a", "y"), ("t2", "b", "x"),
    ("t3", "a", "y"), ("t3", "c", "y"),
]  # fmt: skip


@pytest.fixture(scope="module")
def crowd():
    frame = pd.DataFrame(ROWS, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, tasks=["t1", "t2", "t3", "never asked"], classes=["x", "y"])


def posterior(name, annotations, **options):
    return cp.fit(name, annotations, progress=False, **options).posterior


def test_the_majority_vote_shares_ties_and_naive_soft_has_the_shares_of_the_votes(crowd):
    np.testing.assert_allclose(posterior("majority_vote", crowd), [[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]])
    np.testing.assert_allclose(posterior("naive_soft", crowd), [[2 / 3, 1 / 3], [0.5, 0.5], [0, 1], [0.5, 0.5]])


def test_smoothed_votes_have_one_vote_more_by_the_shares_of_all(crowd):
    """Three of seven annotations are x."""
    x = np.array([(2 + 3 / 7) / 4, (1 + 3 / 7) / 3, 3 / 7 / 3, 3 / 7])
    np.testing.assert_allclose(posterior("smoothed_votes", crowd), np.stack([x, 1 - x], 1), rtol=1e-6)
    nothing = cp.Annotations.from_frame(crowd.to_frame()[:1].assign(label="-"), classes=["x", "y"], abstain=["-"])
    np.testing.assert_array_equal(posterior("smoothed_votes", nothing), [[0.5, 0.5]])


def test_wawa_weighs_votes_by_the_workers_agreement_with_the_majority(crowd):
    """Worker a agrees in t1 and t3 and by half in the tie of t2: 2.5 of 3; b 1.5 of 2; c 1 of 2."""
    np.testing.assert_allclose(agreement(crowd), [2.5 / 3, 0.75, 0.5])
    a, b, c = 2.5 / 3, 0.75, 0.5
    expected = [[(a + b) / (a + b + c), c / (a + b + c)], [b / (a + b), a / (a + b)], [0, 1], [0.5, 0.5]]
    np.testing.assert_allclose(posterior("wawa", crowd), expected, rtol=1e-6)
    np.testing.assert_allclose(cp.fit("wawa", crowd).workers["vote_weight"], [a, b, c])


def test_the_workers_weights_are_crowd_kits_where_there_are_no_ties():
    """With ties crowd-kit takes one of the classes, and shares differ."""
    kit = pytest.importorskip("crowdkit.aggregation")
    rng = np.random.default_rng(0)
    rows = [(i, j, rng.choice([i % 3, 0, 1, 2])) for i in range(80) for j in rng.choice(7, 4, replace=False)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    votes = cp.Annotations.from_frame(frame).votes()
    frame = frame[frame["task"].isin(np.flatnonzero((votes == votes.max(-1, keepdims=True)).sum(-1) == 1))]
    assert 100 < len(frame) < 320
    annotations = cp.Annotations.from_frame(frame)
    expected = kit.Wawa().fit(frame).skills_.loc[list(annotations.workers)]
    np.testing.assert_allclose(agreement(annotations), expected, rtol=1e-6)


@pytest.mark.parametrize("name", RULES)
def test_a_row_with_a_count_is_as_many_rows(crowd, name):
    frame = crowd.to_frame().assign(count=[3, 1, 2, 1, 1, 4, 1])
    counted = cp.Annotations.from_frame(frame, count="count")
    np.testing.assert_allclose(posterior(name, counted), posterior(name, counted.expanded()), rtol=1e-6)


@pytest.mark.parametrize("name", RULES)
def test_abstentions_are_no_votes_and_columns_of_the_confusion_matrices(crowd, name):
    more = pd.DataFrame({"task": ["t2", "t3"], "worker": ["c", "b"], "label": ["pass", "pass"]})
    frame = pd.concat([crowd.to_frame(), more])
    abstaining = cp.Annotations.from_frame(frame, classes=["x", "y"], abstain=["pass"])
    plain = cp.Annotations.from_frame(crowd.to_frame(), classes=["x", "y"])
    fit = cp.fit(name, abstaining)
    np.testing.assert_allclose(fit.posterior, posterior(name, plain))
    assert fit.confusion_draws.shape == (1, 1, 3, 2, 3)
    np.testing.assert_allclose(fit.confusion_draws.sum(-1), 1)


def test_confusion_matrices_are_counts_against_the_labels_beside_the_prior(crowd):
    """Of class y worker a annotated t3 (certain) and half of the tie t2, both y; and none of t1, which is x."""
    table = cp.fit("majority_vote", crowd).confusion_draws[0, 0, 0]
    np.testing.assert_allclose(table, [[(2 + 1) / 4.5, (1 + 0.5) / 4.5], [1 / 4.5, 3.5 / 4.5]])


@pytest.mark.parametrize("name", RULES)
def test_it_decides_scores_and_reports_as_a_fit_does(crowd, name, tmp_path):
    fit = cp.fit(name, crowd.with_gold({"t1": "x", "t3": "x"}))
    assert isinstance(fit, Fit)
    assert fit.rule.name == fit.story
    assert fit.labels.loc["t3", "label"] == "y"
    assert fit.decide(costs=[[0, 1], [5, 0]]).loc["t2", "label"] == "y"
    scored = cp.score(fit)
    assert (scored["tasks"], scored["accuracy"]) == (2, 0.5)
    workers = fit.workers
    assert (workers["accuracy_low"] < workers["accuracy"]).all()
    assert (workers["accuracy"] < workers["accuracy_high"]).all()
    page = fit.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "without a likelihood" in page
    assert 'id="workers"' in page
    assert 'id="checks"' not in page
    assert "gold" in str(fit.summary())


@pytest.mark.parametrize("name", RULES)
def test_it_comes_back_from_the_disk(crowd, name, tmp_path):
    fit = cp.fit(name, crowd, gold={"t2": "x"})
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    assert back.rule is not None
    assert back.story == name
    pd.testing.assert_frame_equal(back.labels, fit.labels)
    pd.testing.assert_frame_equal(back.workers, fit.workers)
    assert cp.score(back, {"t1": "x", "t2": "x"})["gold_used"] == 1


def test_known_labels_take_the_place_of_votes(crowd):
    np.testing.assert_allclose(posterior("majority_vote", crowd, gold={"t3": "x"})[2], [1, 0])


def test_workers_without_names_can_be_counted_and_not_weighed():
    unnamed = cp.Annotations.from_counts([[2, 1], [0, 3]])
    np.testing.assert_allclose(posterior("naive_soft", unnamed), [[2 / 3, 1 / 3], [0, 1]])
    with pytest.raises(AnnotationError, match="majority_vote or naive_soft"):
        cp.fit("wawa", unnamed)
    with pytest.raises(AnnotationError, match="name no workers"):
        cp.fit("naive_soft", unnamed).workers  # noqa: B018  # the property raises


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nuts"}, "method='nuts': majority_vote has no likelihood"),
        ({"evidence": np.eye(2)[[0, 0, 0, 0]]}, "evidence=…: majority_vote has no likelihood"),
        ({"devices": 2}, "devices=2"),
        ({"abstentions": "informative"}, "abstentions='informative'"),
        ({"epochs": 3}, "trains none"),
        ({"methd": "em"}, "unknown option 'methd'; did you mean 'method'"),
        ({"draws": 100}, "unknown option 'draws'"),
    ],
)
def test_what_needs_a_likelihood_or_a_classifier_is_refused(crowd, options, message):
    with pytest.raises(ValueError, match=message):
        cp.fit("majority_vote", crowd, **options)


def test_entropies_are_those_of_the_label_and_of_the_votes(crowd):
    found = cp.fit("dawid_skene", crowd, progress=False).entropies
    third = -(np.log(1 / 3) / 3 + 2 * np.log(2 / 3) / 3)
    np.testing.assert_allclose(found["vote_entropy"], [third, np.log(2), 0, np.nan], atol=1e-12)
    assert found.loc["t1", "entropy"] != found.loc["t1", "vote_entropy"]


def test_the_best_and_the_worst_worker_are_by_accuracy_and_not_by_annotations():
    """Worker 0 annotates most and is right in 80 %; worker 1 is always right, worker 2 never; 3 gave nothing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    rows = [(i, 0, truth[i] if rng.random() < 0.8 else 1 - truth[i]) for i in range(300)]
    rows += [(i, 1, truth[i]) for i in range(100)] + [(i, 2, 1 - truth[i]) for i in range(60)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(frame, workers=[3, 0, 1, 2])
    fit = cp.fit("majority_vote", annotations, gold=dict(enumerate(truth)))
    found = fit.extreme_confusions().set_index("which")
    assert found.loc["best", "worker"].unique().tolist() == [1]
    assert found.loc["worst", "worker"].unique().tolist() == [2]
    tables = fit.confusion_draws[0, 0]
    average = (300 * tables[1] + 100 * tables[2] + 60 * tables[3]) / 460
    np.testing.assert_allclose(found.loc["average", "probability"], average.ravel(), rtol=1e-6)
    titles = [ax.get_title() for ax in cp.plot_confusions(fit, by="accuracy")]
    assert [title.split(":")[0] for title in titles[:2]] == ["best", "worst"]
    assert "460 annotations" in titles[2]
    with pytest.raises(ValueError, match="leave out workers="):
        cp.plot_confusions(fit, workers=[1], by="accuracy")


def test_the_votes_entropy_is_drawn_around_the_labels():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=50, n_workers=5, seed=0)
    fit = cp.fit("majority_vote", annotations)
    ax = cp.plot_entropy(fit, bins=5, votes=True)
    outline = next(patch for patch in ax.patches if hasattr(patch, "get_data"))
    assert outline.get_data().values.sum() == 50


@pytest.mark.parametrize(
    ("alias", "story"),
    [
        ("conal", "common_individual"),
        ("cmm", "annotator_groups"),
        ("aggnet", "dawid_skene"),
    ],
)
def test_stories_are_found_by_the_names_that_papers_give_them(crowd, alias, story):
    fit = cp.fit(alias, crowd, progress=False, max_iterations=5)
    assert fit.story == story
    np.testing.assert_array_equal(fit.posterior, posterior(story, crowd, max_iterations=5))
    assert alias in cp.list_stories().loc[story, "also_called"]
