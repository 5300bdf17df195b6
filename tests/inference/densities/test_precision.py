"""In float32, the default, every story says what it says in float64, to the digits that float32 has."""

import jax
import numpy as np
import pytest
from every_fit import BINARY
from killed_fits import crowd
from numpyro import handlers

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density, is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.models import KNOWN_STORIES, WITH_CLASSIFIER, Classifier, find_story

EVERY = pytest.mark.parametrize("story", KNOWN_STORIES)

DENSITY, POSTERIOR, SLOPE = 2e-6, 2e-6, 6e-6
"""Relative error of log-likelihoods, error of label probabilities, and error of the log-posterior's slopes by the
greatest of their site, at the same parameters: five times the greatest that were measured over the stories, 4e-7, 5e-7
and 1.2e-6, which are some roundings of float32 (6e-8 each)."""


def data(story):
    """41 tasks that six workers annotate, with features where the story needs a classifier."""
    needs = story in WITH_CLASSIFIER
    frame, features = crowd(2 if story in BINARY else 3, needs, n_tasks=41)
    return cp.Annotations.from_frame(frame, features=features)


@EVERY
def test_densities_and_label_probabilities_are_those_of_float64(story):
    """And slopes of the log-posterior: EM climbs by them, and SVI and NUTS see nothing else of a story."""
    annotations, program = data(story), find_story(story)
    options = {"truth_prior": Classifier("logistic", prior=1.0)} if story in WITH_CLASSIFIER else {}
    sites = handlers.trace(handlers.seed(program, 5)).get_trace(annotations, **options)
    theta = {name: site["value"] for name, site in sites.items() if is_latent(site) and name != "truth"}

    def look(theta):
        def log_posterior(theta):
            at = density(Model(program, options), theta, annotations)
            return at.log_posterior, (at.log_likelihood, at.posterior)

        slopes, seen = jax.grad(log_posterior, has_aux=True)(theta)
        return *seen, slopes

    single = jax.jit(look)(theta)
    with jax.enable_x64(True):
        double = jax.jit(lambda theta: look(theta))({name: np.float64(value) for name, value in theta.items()})
    assert (single[0].dtype, double[0].dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single[0], double[0], rtol=DENSITY)
    np.testing.assert_allclose(single[1], double[1], atol=POSTERIOR)
    for name, slope in double[2].items():
        np.testing.assert_allclose(single[2][name], slope, rtol=0, atol=SLOPE * np.abs(slope).max(), err_msg=name)
