"""Stories as programs: what they sample, what they refuse, what their hyperparameters do."""

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from numpyro.infer import Predictive

from crowdppl import Annotations, Prevalence, StoryError, UnknownNameError, list_stories
from crowdppl.models import find_story
from crowdppl.models.parts.concentration import diagonal_concentration, pseudo_counts

DAWID_SKENE = find_story("dawid_skene")


def run(annotations, **hyperparameters):
    return handlers.trace(handlers.seed(DAWID_SKENE, 0)).get_trace(annotations, **hyperparameters)


def test_sites_have_the_names_and_shapes_of_the_design(tiny):
    sites = run(tiny)
    shapes = {name: site["value"].shape for name, site in sites.items() if site["type"] == "sample"}
    assert shapes == {"confusion": (3, 3, 3), "prevalence": (3,), "truth": (5,), "annotation": (9,)}
    assert sites["truth"]["infer"] == {"enumerate": "parallel"}
    assert sites["annotation"]["is_observed"]


def test_hyperparameters_are_the_concentrations(tiny):
    history = np.arange(27.0).reshape(3, 3, 3)
    sites = run(tiny, diagonal=4.0, off_diagonal=0.5, history=history, truth_prior=Prevalence((1.0, 2.0, 3.0)))
    expected = 0.5 + 3.5 * np.eye(3) + history
    np.testing.assert_allclose(sites["confusion"]["fn"].concentration, expected)
    np.testing.assert_allclose(sites["prevalence"]["fn"].concentration, [1, 2, 3])


def test_the_story_simulates_itself_with_the_right_frequencies():
    """20,000 tasks of one worker: agreement of annotations with the simulated truth is the table's diagonal, ±4 s.e."""
    annotations = Annotations.from_matrix(np.zeros((20_000, 1), dtype=int), classes=range(2)).replace(label=None)
    drawn = Predictive(DAWID_SKENE, num_samples=3)(jax.random.key(1), annotations, diagonal=8.0)
    for prevalence, confusion, truth, answers in zip(
        *(np.asarray(drawn[s]) for s in ("prevalence", "confusion", "truth", "annotation")), strict=True
    ):
        assert abs(truth.mean() - prevalence[1]) < 4 * 0.5 / np.sqrt(len(truth))
        for k in (0, 1):
            share = (answers[truth == k] == k).mean()
            assert abs(share - confusion[0, k, k]) < 4 * 0.5 / np.sqrt((truth == k).sum())


def test_history_adds_up_by_cell():
    annotations = Annotations.from_dict({"t": {"ann": "x", "bob": "y"}})
    frame = pd.DataFrame(
        {"worker": ["bob", "bob", "ann"], "truth": ["x", "x", "y"], "label": ["y", "y", "y"], "count": [2, 3, 1.5]}
    )
    counts = pseudo_counts(frame, annotations)
    assert counts[1, 0, 1] == 5
    assert counts[0, 1, 1] == 1.5
    assert counts.sum() == 6.5
    assert pseudo_counts(frame.drop(columns="count"), annotations)[1, 0, 1] == 2


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (pd.DataFrame({"worker": [0], "label": [0]}), "lacks the column 'truth'"),
        (pd.DataFrame({"worker": [7], "truth": [0], "label": [0]}), "column 'worker', row 0: 7 is not in"),
        (pd.DataFrame({"worker": [0, 0], "truth": [0, 9], "label": [0, 0]}), "column 'truth', row 1: 9 is not in"),
        (pd.DataFrame({"worker": [0], "truth": [0], "label": [0], "count": [-1]}), "column 'count', row 0: -1.0"),
        ("history.csv", r"history is a str; a frame with the columns \['worker', 'truth', .*=pd.read_csv\(file\)"),
        ({0: {0: {0: 3}}}, "history is a dict; a frame"),
        (np.zeros((2, 2)), r"shape \(2, 2\); \(workers, classes, classes\) = \(3, 3, 3\)"),
    ],
)
def test_a_history_that_does_not_fit_is_refused(tiny, history, message):
    with pytest.raises(StoryError, match=message):
        pseudo_counts(history, tiny)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_concentration_is_positive(value):
    with pytest.raises(StoryError, match="a finite number above 0 is needed"):
        diagonal_concentration(2, value, 1.0)


@pytest.mark.parametrize("concentration", [0.0, (1.0, 2.0), (1.0, -1.0, 1.0)])
def test_a_prevalence_fits_the_classes(tiny, concentration):
    with pytest.raises(StoryError, match="one for each of the 3 classes"):
        run(tiny, truth_prior=Prevalence(concentration))


def test_unnamed_workers_are_refused_by_a_story_that_follows_them():
    with pytest.raises(StoryError, match="follows each worker"):
        run(Annotations.from_counts(np.array([[3, 1], [0, 2]])))


def test_an_unknown_story_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="dawid_skene"):
        find_story("david_skene")


def test_every_story_is_listed_with_what_it_says():
    assert all(list_stories()["says"].str.len() > 20)
