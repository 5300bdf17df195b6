"""cp.fit("auto"): a set of stories, compared and averaged."""

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.inference.comparison.default_set import DEFAULT_SET, DEFAULT_SET_UNNAMED, story_set

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
TWO = {"plain": {"story": "dawid_skene"}, "eager": {"story": "one_coin", "right": 4.0}}


@pytest.fixture(scope="module")
def auto():
    stories = TWO | {"binary": {"story": "two_coin"}}
    return cp.fit("auto", cp.load_dataset("anesthesia"), stories=stories, max_iterations=50, seed=3, progress=False)


def test_the_stories_are_fitted_as_they_would_be_alone(auto):
    assert list(auto.fits) == ["plain", "eager"]
    alone = cp.fit("one_coin", auto.annotations, right=4.0, max_iterations=50, seed=3, progress=False)
    np.testing.assert_array_equal(auto.fits["eager"].posterior, alone.posterior)


def test_the_weights_are_those_of_stacking_over_held_out_annotations(auto):
    expected = cp.compare(auto.fits, method="kfold", refit_by="em", seed=3, progress=False)
    assert auto.weights.to_dict() == pytest.approx(expected["weight"].to_dict())
    assert auto.weights.sum() == pytest.approx(1)
    mixed = sum(auto.weights[name] * fit.posterior for name, fit in auto.fits.items())
    np.testing.assert_allclose(auto.posterior, mixed)


def test_a_story_that_does_not_fit_the_data_is_left_out_with_its_reason(auto):
    assert list(auto.left_out) == ["binary"]
    assert "4" in auto.left_out["binary"]
    assert f"binary: {auto.left_out['binary']}" in str(auto.summary())


def test_the_summary_says_which_story_predicts_best_and_what_is_averaged(auto):
    best = auto.comparison.index[0]
    heaviest = auto.weights.idxmax()
    text = str(auto.summary())
    assert f"{best} predicts held-out annotations best" in text
    assert f"{auto.weights[heaviest]:.0%} {heaviest}" in text


def test_unnamed_annotations_have_a_default_set_of_stories_that_need_no_names():
    unnamed = cp.load_dataset("anesthesia").replace(worker=None)
    assert story_set(None, unnamed) is DEFAULT_SET_UNNAMED
    assert story_set(None, cp.load_dataset("anesthesia")) is DEFAULT_SET


def test_stories_are_taken_by_name_and_as_functions():
    from crowdppl.models import dawid_skene

    assert story_set(["mace", dawid_skene], cp.load_dataset("anesthesia")) == {
        "mace": {"story": "mace"},
        "dawid_skene": {"story": dawid_skene},
    }


def test_fewer_than_two_stories_that_fit_the_data_are_refused_with_the_reasons():
    with pytest.raises(ValueError, match=r"1 of 2 stories fit these data.* two_coin"):
        cp.fit("auto", cp.load_dataset("anesthesia"), stories=["one_coin", "two_coin"], progress=False)


@pytest.mark.slow
def test_the_default_sets_are_fitted_to_named_and_to_unnamed_annotations(real):
    annotations = real("bluebird")
    for data, stories in (
        (annotations, DEFAULT_SET),
        (cp.Annotations.from_counts(annotations.votes()), DEFAULT_SET_UNNAMED),
    ):
        stack = cp.fit("auto", data, progress=False)
        assert set(stack.fits) == set(stories)
        assert stack.weights.sum() == pytest.approx(1)
        truth = np.asarray(annotations.gold)
        assert (stack.posterior.argmax(-1) == truth).mean() > 0.7
