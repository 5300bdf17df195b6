"""The confusion matrix whose prior falls with the distance between classes."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data.kinds import Ordered
from crowdppl.inference.densities.model import Model
from crowdppl.models import STORIES

SPARSE = pd.DataFrame({"task": [*range(5)], "worker": [0] * 5, "label": [*range(5)]})


@pytest.fixture(scope="module")
def simulated():
    """Five classes, of which the crowd puts the lowest higher than it is, and workers with 30 annotations a row."""
    parameters = {"fall": np.full(5, 1.5), "place": np.array([0.7, 1.0, 2.0, 3.0, 4.0]), "prevalence": np.full(5, 0.2)}
    sizes = {"n_tasks": 400, "n_workers": 16, "n_classes": 5, "annotations_per_task": 6}
    annotations, drawn = cp.simulate("ordinal_dawid_skene", **sizes, seed=3, parameters=parameters)
    return annotations, drawn, cp.fit("ordinal_dawid_skene", annotations, progress=False)


def test_where_rows_do_not_fall_it_is_dawid_and_skene_with_a_flat_prior():
    """The same joint density of labels and annotations at the same parameters, the prior of both sites aside."""
    annotations = random_annotations(np.random.default_rng(0), n_tasks=8, n_workers=3, n_classes=4, n_rows=30)
    annotations = annotations.replace(kind=Ordered())
    rng = np.random.default_rng(1)
    tables = {"confusion": rng.dirichlet(np.ones(4), (3, 4)), "prevalence": rng.dirichlet(np.ones(4))}
    flat = {"diagonal": 1.5, "off_diagonal": 1.5}  # 1 / 4 + 5 / 4
    theirs = density(Model(STORIES["dawid_skene"], flat), tables, annotations)
    own = {"fall": np.full(4, 1e-6), "place": np.arange(4.0)}
    ours = density(Model(STORIES["ordinal_dawid_skene"], {}), tables | own, annotations)
    np.testing.assert_allclose(ours.log_joint, theirs.log_joint, atol=1e-5)
    of_sites = -0.5 * ((np.log(own["fall"]) / 0.5) ** 2 + np.log(2 * np.pi) + 2 * np.log(0.5) + 2 * np.log(own["fall"]))
    of_sites = of_sites.sum() - 4 * 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(ours.log_prior - of_sites, theirs.log_prior, rtol=1e-4)


def test_rows_of_a_class_without_annotations_fall_with_distance():
    annotations = cp.Annotations.from_frame(SPARSE.iloc[:4], ordered=[*range(5)])
    row = cp.fit("ordinal_dawid_skene", annotations, progress=False).derived["common_confusion"].values[2]
    assert row.argmax() == 2
    assert (np.diff(row[:3]) > 0).all()
    assert (np.diff(row[2:]) < 0).all()


def test_it_finds_the_crowds_rows_of_its_own_simulation(simulated):
    """Within .15: 16 workers differ from the crowd's rows by .2 in the mean, and by .05 together."""
    _, parameters, fit = simulated
    step = jnp.hypot(jnp.arange(5.0) - np.asarray(parameters["place"])[:, None], 0.5)
    crowd = np.exp(-np.asarray(parameters["fall"])[:, None] * np.asarray(step))
    crowd /= crowd.sum(-1, keepdims=True)
    np.testing.assert_allclose(fit.derived["common_confusion"].values, crowd, atol=0.15)


def test_its_log_score_is_above_that_of_dawid_and_skene(simulated):
    """Of its own simulation, where Dawid-Skene has the same parameters a worker and no crowd."""
    annotations, _, fit = simulated
    other = cp.fit("dawid_skene", annotations, progress=False)
    ours, theirs = (float(cp.score(each)["log_score"]) for each in (fit, other))
    assert ours > theirs


@pytest.mark.parametrize(
    ("options", "changed"),
    [({"strength": 50.0}, "strength"), ({"fall": 3.0}, "fall"), ({"shift": 0.05}, "shift")],
)
def test_each_hyperparameter_moves_a_worker_with_few_annotations(options, changed):
    annotations = cp.Annotations.from_frame(SPARSE, ordered=[*range(5)])
    usual, other = (
        cp.fit("ordinal_dawid_skene", annotations, progress=False, **given).parameters["confusion"].values[0]
        for given in ({}, options)
    )
    assert np.abs(usual - other).max() > 0.003, changed


@pytest.mark.parametrize("name", ["strength", "fall", "shift"])
def test_a_hyperparameter_that_is_not_positive_is_refused(name):
    with pytest.raises(StoryError, match=f"{name}=0"):
        cp.fit("ordinal_dawid_skene", cp.Annotations.from_frame(SPARSE, ordered=[*range(5)]), **{name: 0})
