"""EM says where a scale that is learned went to nothing, and where the mode makes it too large."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.reparam import LocScaleReparam
from picked_findings import findings_of

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


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_em_warns_of_a_prior_that_it_narrows_without_end(crowd):
    """The joint density grows as scale to the power of minus 10, once all skills are the mean."""
    fit = cp.fit(centred, crowd, progress=False)
    assert float(fit.parameters["scale"]) < 0.02
    (finding,) = findings_of(fit, "no_maximum")
    assert finding.values["site"] == "skill"
    assert finding.values["after"] < 0.02 * finding.values["before"]
    assert "skill = mean + scale * offset" in finding.remedy


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_the_story_written_as_the_warning_says_has_a_mode_and_no_warning(crowd):
    fit = cp.fit(not_centred, crowd, progress=False)
    assert not findings_of(fit, "no_maximum")
    assert float(fit.parameters["scale"]) > 0.1


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_draws_and_the_packages_own_stories_are_not_warned_of(crowd):
    assert not findings_of(
        cp.fit(centred, crowd, method="nuts", chains=1, warmup=50, draws=20, progress=False), "no_maximum"
    )
    assert not findings_of(cp.fit("hierarchical_dawid_skene", crowd, max_iterations=20, progress=False), "no_maximum")


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_em_says_that_workers_of_few_annotations_differ_more_at_the_mode_than_they_do():
    """Nine of ten labels are said to be right, and four are; votes are right for 55 %."""
    sizes = {"n_tasks": 3000, "n_workers": 300, "n_classes": 4, "annotations_per_task": 3}
    annotations, parameters = cp.simulate("hierarchical_dawid_skene", **sizes, seed=12)
    fit = cp.fit("hierarchical_dawid_skene", annotations.without_gold(), progress=False)
    right = (fit.labels["label"].to_numpy() == np.asarray(annotations.gold)).mean()
    assert fit.labels["probability"].mean() - right > 0.3
    assert fit.parameters["spread"].mean() > 3 * parameters["spread"].mean()
    (finding,) = findings_of(fit, "wide_scale")
    assert finding.values["site"] == "individual"
    assert "method='svi'" in finding.remedy


def test_em_says_nothing_of_workers_of_many_annotations_and_of_stories_without_a_learned_scale():
    sizes = {"n_tasks": 1000, "n_workers": 5, "annotations_per_task": 5, "n_classes": 3}
    annotations, _ = cp.simulate("hierarchical_dawid_skene", **sizes, seed=1)
    for story in ("hierarchical_dawid_skene", "dawid_skene", "glad"):
        assert not findings_of(cp.fit(story, annotations.without_gold(), progress=False), "wide_scale")
