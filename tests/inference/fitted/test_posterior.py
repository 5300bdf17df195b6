"""One result whatever made it: what a story, an average and a rule all have, and what is refused of which."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.fitted.fitted import Fitted
from crowdppl.inference.fitted.posterior import OneStoryError, Posterior

OF_ONE_STORY = (
    "draws",
    "parameters",
    "derived",
    "history",
    "outcome",
    "dims",
    "model",
    "method",
    "modes",
    "mode_labels",
)


@pytest.fixture(scope="module")
def story():
    return cp.fit("dawid_skene", cp.load_dataset("toy"), progress=False, max_iterations=20)


@pytest.fixture(scope="module")
def average(story):
    other = cp.fit("one_coin", story.annotations, progress=False, max_iterations=20)
    return cp.stack({"plain": story, "coin": other}, weights={"plain": 0.25, "coin": 0.75})


@pytest.fixture(scope="module")
def rule(story):
    return cp.fit("wawa", story.annotations)


def test_a_story_an_average_and_a_rule_are_of_one_class_with_labels_and_workers(story, average, rule):
    for fit in (story, average, rule):
        assert type(fit) is cp.Fit
        assert isinstance(fit, Posterior)
        assert list(fit.labels) == ["label", "probability", "entropy"]
        assert {"annotations", "accuracy", "realised_accuracy"} <= set(fit.workers)
        assert fit.weights.sum() == pytest.approx(0.0 if fit.rule else 1.0)
        assert "labels" in fit.summary().facts
    assert isinstance(story.fitted, Fitted)
    assert list(story.fits) == [story.story]
    assert (list(average.fits), rule.fits) == (["plain", "coin"], {})


@pytest.mark.parametrize("name", OF_ONE_STORY)
def test_a_view_of_one_story_names_the_fit_of_an_average_that_has_it(story, average, rule, name):
    assert hasattr(story, name)
    assert not hasattr(average, name)
    with pytest.raises(OneStoryError, match=r"an average of 2 fits; give .* such as fit\.fits\['plain'\]"):
        getattr(average, name)
    with pytest.raises(OneStoryError, match=r"by wawa, .* no likelihood"):
        getattr(rule, name)


@pytest.mark.parametrize(
    "view",
    [
        lambda fit: fit.log_likelihood(),
        lambda fit: fit.posterior_predictive(),
        lambda fit: fit.derived_draws(),
        lambda fit: fit.worker_scores(rank_one=True),
        lambda fit: cp.loo(fit),
        lambda fit: cp.describe_groups(fit),
    ],
    ids=["log_likelihood", "posterior_predictive", "derived_draws", "rank_one", "loo", "groups"],
)
def test_a_function_of_one_story_is_refused_of_an_average_and_of_a_rule(average, rule, view):
    for fit in (average, rule):
        with pytest.raises(TypeError, match=r"a fit of (one|a) story by cp\.fit is needed"):
            view(fit)


def test_an_average_with_the_votes_is_no_story_of_its_own(story):
    with_votes = cp.stack({"plain": story}, weights={"plain": 1.0}, votes=0.5)
    assert with_votes.is_average
    with pytest.raises(OneStoryError, match="an average of 1 fit and the votes"):
        _ = with_votes.draws
    alone = cp.stack({"plain": story}, weights={"plain": 1.0})
    assert not alone.is_average
    pd.testing.assert_frame_equal(alone.workers, story.workers)


def test_an_option_of_one_story_s_arviz_data_is_refused_of_an_average(average):
    with pytest.raises(OneStoryError, match=r"prior=5: .*fit\.fits\['plain'\]\.to_idata\(prior=…\)"):
        average.to_idata(prior=5)


def test_a_rule_knows_of_no_tasks_that_mislead_the_whole_crowd(rule):
    with pytest.raises(OneStoryError, match="wawa, which has no likelihood"):
        rule.worker_scores(misled=0.1)
    pd.testing.assert_frame_equal(rule.worker_scores(misled=0.0), rule.worker_scores())


def test_what_needs_a_likelihood_is_refused_of_a_rule_by_name(rule):
    for view in (lambda: rule.tasks, lambda: rule.models, lambda: rule.update(None), lambda: cp.check(rule)):
        with pytest.raises(TypeError, match=r"by wawa, .* no likelihood"):
            view()


def test_the_posterior_of_a_story_is_the_story_s_own_and_an_average_s_is_weighted(story, average):
    np.testing.assert_array_equal(story.posterior, story.fitted.posterior)
    each = [fitted.posterior for fitted in average.members.values()]
    np.testing.assert_allclose(average.posterior, 0.25 * each[0] + 0.75 * each[1], rtol=1e-6)
