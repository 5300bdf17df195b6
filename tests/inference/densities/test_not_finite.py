"""A density that is no number where a fit starts is refused with the site, its first value at fault and the mend."""

import re

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest

import crowdppl as cp


def of_skills(effect, *, factor=None, scale=None):
    """A story whose annotations are right with the effect of a worker's skill, which is negative where fits start."""

    def story(annotations, *, truth_prior=None):
        spread = 1.0 if scale is None else numpyro.sample("spread", scale)
        with numpyro.plate("worker", annotations.n_workers):
            skill = numpyro.sample("skill", dist.Normal(-3.0, spread))
        if factor is not None:
            numpyro.factor("anchor", factor(skill))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(effect(skill)[:, None], annotations.n_classes), annotations)

    return story


def plain(skill):
    return skill


@pytest.mark.parametrize(
    ("story", "place", "mend"),
    [
        (
            of_skills(jnp.log),
            r"'annotation' is nan at worker 'w1', task 1, true class 'no', where skill is -",
            "softplus",
        ),
        (of_skills(plain, factor=lambda s: jnp.log(s).sum()), r"site 'anchor' is nan", "softplus"),
        (of_skills(plain, factor=lambda s: jnp.inf * s.sum()), r"site 'anchor' is -inf", "softplus"),
        (
            of_skills(plain, scale=dist.Normal(-3.0, 1.0)),
            r"'skill' is nan at worker 'w1', where spread is -",
            "HalfNormal",
        ),
        (
            of_skills(lambda skill: jnp.where(skill > 0, jnp.sqrt(skill), skill)),
            r"slope along the site 'skill' is nan at worker 'w1', where skill is -",
            r"jnp\.where\(x > 0",
        ),
    ],
    ids=["emission", "factor", "infinite factor", "prior", "slope"],
)
def test_the_site_and_its_first_value_at_fault_are_named(story, place, mend):
    annotations = cp.load_dataset("toy").without_gold()
    with pytest.raises(FloatingPointError, match=place) as refused:
        cp.fit(story, annotations, progress=False)
    assert re.search(mend, str(refused.value))


@pytest.mark.parametrize("method", ["svi", "nuts"])
def test_every_engine_names_the_slope_that_no_step_leads_from(method):
    story = of_skills(lambda skill: jnp.where(skill > 0, jnp.sqrt(skill), skill))
    with pytest.raises(FloatingPointError, match="slope along the site 'skill'"):
        cp.fit(story, cp.load_dataset("toy").without_gold(), method=method, progress=False)


def test_the_worker_that_is_named_is_the_first_at_fault():
    def half(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers):
            start = jnp.array([1.0, 2.0, 3.0, 4.0, -1.0, -2.0])
            skill = numpyro.sample("skill", dist.Normal(1.0, 1.0), infer={"start": lambda _: start})
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(jnp.sqrt(skill)[:, None], annotations.n_classes), annotations)

    annotations = cp.load_dataset("toy").without_gold()
    with pytest.raises(FloatingPointError, match=rf"worker {annotations.workers[4]!r}.*skill is -1;"):
        cp.fit(half, annotations, progress=False)
