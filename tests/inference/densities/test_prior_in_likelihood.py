"""Whether a classifier decides what workers annotate is found by following the story's operations."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from conftest import random_annotations

import crowdppl as cp
from crowdppl.data.kinds import Ordered
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import classifier_decides_annotations
from crowdppl.models import KNOWN_STORIES, Classifier, Given

BINARY = {"two_coin", "item_response"}
DECIDES = {"difficulty", "crowd_layer", "anno_reg"}
BY_ANNOTATION = {"membership": "answer", "truth": "answer"}


def data(n_classes=3):
    rng = np.random.default_rng(0)
    found = random_annotations(rng, n_tasks=8, n_workers=3, n_classes=n_classes, n_rows=20)
    return jax.tree.map(jnp.asarray, found.replace(features=rng.normal(size=(8, 2)).astype("f4"), kind=Ordered()))


def decides(story, *, n_classes=3, network="mlp", **options):
    return classifier_decides_annotations(Model(story, options | {"truth_prior": Classifier(network)}), data(n_classes))


@pytest.mark.parametrize("name", KNOWN_STORIES)
def test_a_classifier_decides_the_annotations_of_the_stories_that_score_them_by_it(name):
    assert decides(KNOWN_STORIES[name], n_classes=2 if name in BINARY else 3) == (name in DECIDES)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("difficulty", {"through_difficulty": True}, True),
        ("difficulty", {"kind": "fixed"}, False),
        ("difficulty", {"kind": "fixed", "votes_as_prior": False}, False),
        ("difficulty", {"shared_error": True}, True),
        ("dawid_skene", {"shared_error": True, "task_difficulty": True}, False),
        ("annotator_groups", BY_ANNOTATION, True),
        ("annotator_groups", {"membership": "answer"}, False),
    ],
)
def test_it_depends_on_the_storys_options(name, options, expected):
    assert decides(KNOWN_STORIES[name], **options) is expected


def test_it_is_found_of_given_probabilities_and_of_a_story_of_ones_own():
    def own(annotations, *, truth_prior=None, looks=True):
        log_probs = cp.class_log_probs(annotations, truth_prior)
        with numpyro.plate("worker", annotations.n_workers):
            skill = numpyro.sample("skill", dist.LogNormal(0.0, 1.0))
        scale = jnp.exp(log_probs).max(-1) if looks else 1.0
        with cp.tasks(annotations, log_probs) as truth:
            cp.observe(truth, cp.Correct(skill[:, None], annotations.n_classes, scale=scale), annotations)

    assert decides(own)
    assert not decides(own, looks=False)
    given = data().replace(prior=jnp.full((8, 3), 1 / 3))
    assert classifier_decides_annotations(Model(KNOWN_STORIES["difficulty"], {"truth_prior": Given()}), given)
