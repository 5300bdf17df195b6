"""Stories of annotations in levels of another truth: K classes, L levels."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from scipy.stats import norm
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.inference.densities.enumerated import is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.models import STORIES, Subtypes
from crowdppl.models.parts.graded import even_cuts, places

LEVELED = ("score_factor", "graded_response", "ordinal_dawid_skene")


def scores(seed=0, n_tasks=5, n_workers=3, n_levels=4, **options):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(list(product(range(n_tasks), range(n_workers))), columns=["task", "worker"])
    frame["label"] = rng.integers(0, n_levels, len(frame))
    return cp.Annotations.from_frame(frame, ordered=range(n_levels), **options)


def drawn(story, annotations):
    sites = handlers.trace(handlers.seed(STORIES[story], 1)).get_trace(annotations)
    return {site["name"]: site["value"] for site in sites.values() if is_latent(site) and site["name"] != "truth"}


@pytest.mark.parametrize("story", LEVELED)
def test_label_posteriors_are_those_of_the_sum_over_all_labellings(story):
    """Three classes and four levels; the factor's points are summed task by task."""
    annotations = scores(truth_classes=["a", "b", "c"])
    at = density(Model(STORIES[story], {}), drawn(story, annotations), annotations)
    emission = at.likelihood.emission.emission
    weights, rows = np.ones((3, 1)), np.asarray(emission.probs(annotations.worker, annotations.task))[:, :, None]
    if isinstance(emission, Subtypes):
        weights = np.asarray(emission.weights, dtype=float)
        rows = np.broadcast_to(emission.table, (3, 3, *emission.table.shape[2:]))[annotations.worker]
    level = np.asarray(annotations.label) - 3
    own = rows.astype(float)[np.arange(len(level)), :, :, level]  # (A, K, M)
    by_task = np.stack([(own[annotations.task == i].prod(0) * weights).sum(-1) for i in range(5)])
    by_task = by_task * np.exp(np.asarray(at.truth_prior, dtype=float))
    total, mass = 0.0, np.zeros((5, 3))
    for labelling in product(range(3), repeat=5):
        p = by_task[np.arange(5), labelling].prod()
        total += p
        mass[np.arange(5), labelling] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)
    probs = np.asarray(at.likelihood.emission.probs(annotations.worker, annotations.task))
    assert not probs[..., :3].any()
    np.testing.assert_allclose(probs[..., 3:], emission.probs(annotations.worker, annotations.task), rtol=1e-6)
    np.testing.assert_allclose(at.likelihood.emission.confusions(annotations).sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("story", LEVELED[1:])
def test_as_many_levels_as_classes_are_the_classes(story):
    """Of score_factor they are not: the truth's classes have other cuts than the crowd's."""
    classes, levels = scores(), scores(truth_classes=[*range(4)])
    theta = drawn(story, classes)
    of_classes, of_levels = (density(Model(STORIES[story], {}), theta, each) for each in (classes, levels))
    np.testing.assert_allclose(of_levels.log_joint, of_classes.log_joint, atol=1e-5)


def test_even_cuts_are_in_the_middle_of_as_many_classes_and_go_on_beyond_the_ends():
    place = places(np.log(np.array([2.0, 1.0])))
    np.testing.assert_allclose(even_cuts(place, 3), [1.0, 2.5], rtol=1e-6)
    np.testing.assert_allclose(even_cuts(place[:2], 4), [0.0, 1.0, 2.0], atol=1e-6)


@pytest.fixture(scope="module")
def panel():
    """14 judges on scales of their own, from 0 to 9, of 300 tasks that are no or yes, with a confounder they share."""
    rng = np.random.default_rng(4)
    quality, confounder = rng.normal(size=(2, 300))
    truth = quality + 0.3 * rng.normal(size=300) > 0
    loading, pulled = rng.uniform(0.2, 0.8, 14), rng.uniform(0.1, 0.4, 14)
    noise = np.sqrt(1 - loading**2 - pulled**2) * rng.normal(size=(300, 14))
    heard = loading * quality[:, None] + pulled * confounder[:, None] + noise
    level = np.clip(np.round(6.5 + rng.normal(0, 0.8, 14) + rng.uniform(0.6, 2, 14) * heard), 0, 9).astype(int)
    frame = pd.DataFrame(level).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    gold = {i: "yes" if is_so else "no" for i, is_so in enumerate(truth.tolist())}
    return cp.Annotations.from_frame(frame, truth_classes=["no", "yes"], ordered=range(10), gold=gold)


def test_the_factor_is_more_accurate_and_less_sure_than_verdicts_cut_at_the_middle(panel):
    factor, verdicts = cp.fit("score_factor", panel, progress=False), cp.fit("dawid_skene", panel.verdicts())
    ours, theirs = (cp.score(fit) for fit in (factor, verdicts))
    assert ours["accuracy"] > theirs["accuracy"]
    assert ours["log_score"] > theirs["log_score"] + 0.1
    level = np.asarray(panel.label) - 2
    mean = np.bincount(panel.task, level) / np.bincount(panel.task)
    yes = np.asarray(panel.gold) == 1
    assert ours["auc"] > norm.cdf(norm.ppf(_auc(mean, yes)) - 0.1)


def _auc(estimate, yes):
    return ((estimate[yes][:, None] > estimate[~yes]) + 0.5 * (estimate[yes][:, None] == estimate[~yes])).mean()


def test_gold_labels_are_of_the_truth_and_decide(panel):
    gold = {0: panel.classes[1 - panel.gold[0]]}
    fit = cp.fit("score_factor", panel.without_gold(), gold=gold, progress=False)
    np.testing.assert_allclose(fit.posterior[0, 1 - panel.gold[0]], 1.0)


def test_views_show_verdicts_and_a_folder_keeps_the_levels(panel, tmp_path):
    fit = cp.fit("score_factor", panel, progress=False, max_iterations=30)
    assert set(fit.confusions()["annotation"]) == {"no", "yes"}
    assert fit.derived["confusion"].sizes["annotation"] == 10
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.annotations.levels == panel.levels
    np.testing.assert_allclose(again.posterior, fit.posterior, atol=1e-6)
    frame = again.posterior_predictive(seed=0)["annotation"]
    assert frame.values.min() >= 2
    assert "2 classes" in str(fit.summary())


@pytest.mark.parametrize("story", ["dawid_skene", "one_coin"])
def test_stories_whose_annotations_are_classes_refuse_levels_and_name_the_mend(story, panel):
    with pytest.raises(StoryError, match=r"10 levels of another truth .* score_factor.*annotations\.verdicts\(\)"):
        cp.fit(story, panel, progress=False)


def test_shared_errors_over_levels_are_refused(panel):
    with pytest.raises(StoryError, match="levels of another truth; leave shared_error out"):
        cp.fit("ordinal_dawid_skene", panel, shared_error=True, progress=False)


def test_checks_compare_levels_and_not_nothing():
    rng = np.random.default_rng(0)
    given = rng.integers(0, 6, (80, 4))
    given[:, 1] = given[:, 0]  # one copies another, whatever the truth is
    rows = [(i, j, int(given[i, j])) for i in range(80) for j in range(4)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(frame, ordered=range(6), truth_classes=["no", "yes"])
    table = cp.check(cp.fit("graded_response", annotations, progress=False), draws=5).table
    levels = annotations.by_level()
    assert (levels.classes, levels.n_rows) == (annotations.levels, annotations.n_rows)
    assert levels.to_frame()["label"].tolist() == frame["label"].tolist()
    assert table.loc["agreement", "p_value"] < 0.05


def small_panel(seed, *, n_tasks=60, n_workers=5, n_levels=5, apart=0.4, shift=0.0):
    """A panel of judges who tell two classes by `apart` of their noise, with the truth: levels, classes (N,)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    severity, able = rng.normal(0, 0.5, n_workers), apart * np.exp(rng.normal(0, 0.3, n_workers))
    seen = rng.normal(size=(n_tasks, n_workers)) + (2 * truth[:, None] - 1) * able - severity + shift
    level = (seen[..., None] > np.linspace(-1.5, 1.5, n_levels - 1)).sum(-1)
    frame = pd.DataFrame(level).rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
    return cp.Annotations.from_frame(frame, ordered=range(n_levels), truth_classes=["no", "yes"]), truth


def in_one_class(fit):
    return fit.probabilities.to_numpy().mean(0).max() > 0.95


@pytest.mark.filterwarnings("ignore")
def test_small_panels_do_not_end_with_all_tasks_in_one_class():
    """Under a flat prior of the shares some do. Twenty panels' mean accuracies are known to .02."""
    right = {"flat": [], "usual": []}
    collapsed = {"flat": 0, "usual": 0}
    for seed in range(20):
        annotations, truth = small_panel(seed)
        for name, prior in (("flat", cp.Prevalence()), ("usual", None)):
            fit = cp.fit("graded_response", annotations, truth_prior=prior, progress=False)
            right[name].append((fit.probabilities.to_numpy().argmax(1) == truth).mean())
            collapsed[name] += in_one_class(fit)
    assert collapsed["usual"] == 0 < collapsed["flat"]
    assert np.mean(right["usual"]) > np.mean(right["flat"]) + 0.05


@pytest.mark.filterwarnings("ignore")
def test_tasks_of_one_class_whose_levels_differ_alike_are_warned_of_and_others_are_not():
    """Under a flat prior, on a shifted scale, of twenty panels; and twenty whose scale is not shifted."""

    def warned(fit):
        return any(finding.code == "one_class_of_levels" for finding in fit.findings)

    shifted = [
        cp.fit(
            "graded_response", small_panel(seed, apart=0.7, shift=1.5)[0], truth_prior=cp.Prevalence(), progress=False
        )
        for seed in range(20)
    ]
    plain = [cp.fit("graded_response", small_panel(seed, apart=0.8)[0], progress=False) for seed in range(20)]
    one = [fit for fit in shifted if in_one_class(fit)]
    assert len(one) >= 8
    assert np.mean([warned(fit) for fit in one]) >= 0.9
    assert not any(warned(fit) for fit in [*plain, *(fit for fit in shifted if not in_one_class(fit))])


def test_classes_told_by_levels_have_their_order_and_gold_is_beside_verdicts():
    annotations = small_panel(0, apart=1.0)[0]
    fit = cp.fit("score_factor", annotations, max_iterations=20, progress=False)
    np.testing.assert_allclose(fit.expected["expected"], fit.probabilities["yes"])
    assert fit.decide(costs="absolute")["label"].isin(["no", "yes"]).all()
    gold = fit.gold_scores({0: "yes", 1: "no"})
    verdicts = annotations.verdicts().to_frame()
    of_gold = verdicts[verdicts["task"].isin([0, 1])]
    assert gold["gold_annotations"].sum() == len(of_gold) > 0
    assert gold["gold_right"].sum() == (of_gold["label"] == of_gold["task"].map({0: "yes", 1: "no"})).sum()
