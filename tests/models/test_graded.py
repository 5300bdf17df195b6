"""The emission of graded responses, and the story over it."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import spearmanr

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.models import Confusion, Graded
from crowdppl.models.parts.graded import cuts_around, places

PLACE = np.array([0.0, 2.0, 3.0])
CUT = np.array([[-1.0, 0.5, 1.0, 2.5], [0.0, 1.0, 2.0, 4.0]])
WORKERS = np.array([1.0, 2.5])


def test_levels_have_the_differences_of_the_cumulative_logits():
    """Of three classes and five levels."""
    upto = expit(-WORKERS[:, None, None] * (PLACE[:, None] - CUT[:, None]))
    by_hand = np.diff(np.concatenate([np.zeros((2, 3, 1)), upto, np.ones((2, 3, 1))], -1))
    table = np.asarray(Graded(jnp.asarray(PLACE), jnp.asarray(WORKERS), jnp.asarray(CUT)).table)
    np.testing.assert_allclose(table, by_hand, atol=1e-6)


def test_a_level_far_from_the_class_keeps_its_probability():
    """60 logits away, where differences of cumulative probabilities are zero in single precision."""
    table = np.asarray(Graded(jnp.zeros(1), jnp.ones(1), jnp.array([[58.0, 60.0]])).table)
    np.testing.assert_allclose(table[0, 0, 1], np.exp(-58) - np.exp(-60), rtol=1e-4)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"place": jnp.arange(2.0)}, "place"),
        ({"discrimination": jnp.ones(5)}, "discrimination"),
        ({"cut": jnp.ones(3)}, "cut"),
    ],
)
def test_arrays_of_other_sizes_are_refused(changed, name):
    annotations = cp.Annotations.from_frame(pd.DataFrame({"task": [0, 0, 1], "worker": [0, 1, 1], "label": [0, 1, 2]}))
    right = {"place": jnp.arange(3.0), "discrimination": jnp.ones(2), "cut": jnp.zeros((2, 2))}
    Graded(**right).check(annotations)
    with pytest.raises(StoryError, match=f"the {name} of Graded has shape"):
        Graded(**right | changed).check(annotations)


def test_cuts_keep_their_order_and_their_mean_is_moved():
    cut = cuts_around(jnp.array([1.0, 2.0, 4.0]), jnp.array([[0.0, 0.0, 0.0], [0.5, -3.0, 2.0]]))
    np.testing.assert_allclose(cut[0], [1.0, 2.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(cut[1].mean(), 7 / 3 + 0.5, rtol=1e-6)
    np.testing.assert_allclose(np.diff(cut[1]), [np.exp(-3), 2 * np.exp(2)], rtol=1e-5)
    np.testing.assert_allclose(places(jnp.log(jnp.array([2.0, 1.0]))), PLACE, rtol=1e-6)


@pytest.fixture(scope="module")
def simulated():
    """Five classes, 400 tasks with 6 annotations each, and what drew them."""
    return cp.simulate(
        "graded_response", n_tasks=400, n_workers=12, n_classes=5, annotations_per_task=6, seed=1, spread=0.8
    )


def test_the_story_finds_classes_and_severities_of_its_own_simulation(simulated):
    """As many tasks right as Dawid-Skene at least, which has four times the parameters."""
    annotations, parameters = simulated
    fit = cp.fit("graded_response", annotations, spread=0.8, progress=False)
    nominal = cp.fit("dawid_skene", annotations, progress=False)
    right, as_nominal = ((each.posterior.argmax(-1) == annotations.gold).mean() for each in (fit, nominal))
    assert right >= as_nominal
    assert right > 0.75
    drawn = np.asarray(parameters["individual"])[:, 1]
    assert spearmanr(fit.derived["severity"].values, drawn)[0] > 0.8


def test_less_spread_makes_workers_alike(simulated):
    annotations, _ = simulated
    widths = [
        cp.fit("graded_response", annotations, spread=s, progress=False).derived["cuts"].std("worker").mean()
        for s in (0.05, 0.8)
    ]
    assert 5 * widths[0] < widths[1]


def test_a_larger_step_expects_better_workers():
    """Before any annotation says otherwise: of tasks annotated once."""
    few = cp.Annotations.from_frame(pd.DataFrame({"task": [0, 1, 2], "worker": [0, 0, 0], "label": [0, 1, 2]}))
    diagonal = [
        np.trace(cp.fit("graded_response", few, step=step, progress=False).derived["confusion"].values[0])
        for step in (1.0, 6.0)
    ]
    assert diagonal[0] < diagonal[1] - 0.5


def test_the_emission_of_more_levels_than_classes_has_the_forms_of_its_tables():
    emission = Graded(jnp.asarray(PLACE), jnp.asarray(WORKERS), jnp.asarray(CUT))
    table, worker, level = Confusion(emission.table), np.array([0, 1, 1]), np.array([4, 0, 2])
    task = np.zeros(3, int)
    np.testing.assert_array_equal(emission.log_prob(worker, task, level), table.log_prob(worker, task, level))
    np.testing.assert_array_equal(emission.probs_given(worker, task, task), table.probs_given(worker, task, task))
    np.testing.assert_array_equal(emission.tempered(0.5).table, table.tempered(0.5).table)


@pytest.mark.parametrize("story", ["graded_response", "ordinal_dawid_skene", "score_factor"])
@pytest.mark.parametrize(("labels", "options"), [(["mid", "low", "high"], {}), ([3, 1, 2], {"ordered": False})])
def test_stories_of_ordered_classes_refuse_others_and_name_the_mend(story, labels, options):
    frame = pd.DataFrame({"task": [0, 0, 1], "worker": [0, 1, 1], "label": labels})
    with pytest.raises(ValueError, match=r"order of the classes.*ordered=\[\.\.\.\]"):
        cp.fit(story, cp.Annotations.from_frame(frame, **options), progress=False)


def test_comparisons_with_ties_have_no_order():
    rows = [("a", "b", 0, "left"), ("a", "b", 1, "tie"), ("b", "c", 0, "right"), ("b", "c", 1, "right")]
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
    with pytest.raises(StoryError, match="'left', 'right', 'tie' have none"):
        cp.fit("graded_response", cp.Annotations.from_comparisons(frame), progress=False)


@pytest.mark.parametrize("story", ["graded_response", "ordinal_dawid_skene", "score_factor"])
def test_simulations_of_ordered_classes_have_five_of_them(story):
    annotations, _ = cp.simulate(story, n_tasks=20, n_workers=3)
    assert annotations.kind.in_order
    assert list(annotations.classes) == [0, 1, 2, 3, 4]
