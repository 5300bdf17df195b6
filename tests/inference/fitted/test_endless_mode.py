"""EM says where a story of a user's own has a density without end, and what has one."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.reparam import LocScaleReparam

import crowdppl as cp


def centred(annotations, *, truth_prior=None):
    """Skills around a common mean, with a scale that is learned."""
    k = annotations.n_classes
    mean, scale = numpyro.sample("mean", dist.Normal(2.0, 1.0)), numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("worker", annotations.n_workers):
        skill = numpyro.sample("skill", dist.Normal(mean, scale))
    table = jax.nn.softmax(skill[:, None, None] * jnp.eye(k), axis=-1)
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)


def not_centred(annotations, *, truth_prior=None):
    """The same story, of standard normal offsets."""
    with numpyro.handlers.reparam(config={"skill": LocScaleReparam(0)}):
        centred(annotations, truth_prior=truth_prior)


@pytest.fixture(scope="module")
def crowd():
    """Workers who are much alike: about three quarters of each one's annotations are right."""
    alike = {"right": 60.0, "wrong": 20.0}
    return cp.simulate("one_coin", n_tasks=100, n_workers=10, n_classes=3, annotations_per_task=4, seed=1, **alike)[0]


def said(fit):
    return [text for text in fit.warnings if "has no maximum" in text]


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_em_warns_of_a_prior_that_it_narrows_without_end(crowd):
    """The joint density grows as scale to the power of minus 10, once all skills are the mean."""
    fit = cp.fit(centred, crowd, progress=False)
    assert float(fit.parameters["scale"]) < 0.02
    (text,) = said(fit)
    assert "the prior of 'skill' became ever narrower" in text
    assert "skill = mean + scale * offset" in text


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_the_story_written_as_the_warning_says_has_a_mode_and_no_warning(crowd):
    fit = cp.fit(not_centred, crowd, progress=False)
    assert not said(fit)
    assert float(fit.parameters["scale"]) > 0.1


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_draws_and_the_packages_own_stories_are_not_warned_of(crowd):
    assert not said(cp.fit(centred, crowd, method="nuts", chains=1, warmup=50, draws=20, progress=False))
    assert not said(cp.fit("hierarchical_dawid_skene", crowd, max_iterations=20, progress=False))
