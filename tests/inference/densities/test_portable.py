"""A story that gives on padded data what it gives on the data themselves is told from one that does not."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from conftest import random_annotations
from kept_programs import forget_programs, n_kept
from story_options import DEFAULTS, FURTHER, Option, as_parameters

import crowdppl as cp
from crowdppl.data.ids import Ids, UnreadError
from crowdppl.data.kinds import Ordered
from crowdppl.data.padding import PaddedAnnotations, padded, unread
from crowdppl.inference.densities import portable
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.portable import is_portable, promises_it
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines import climber, em
from crowdppl.inference.fitted import fitted as views
from crowdppl.models import AS_PUBLISHED, KNOWN_STORIES, WITH_CLASSIFIER, find_story
from crowdppl.models.parts import general
from crowdppl.models.parts.contract import is_promised


def crowd(n_tasks=40, n_workers=7, n_rows=160, seed=0):
    return random_annotations(
        np.random.default_rng(seed), n_tasks=n_tasks, n_workers=n_workers, n_classes=3, n_rows=n_rows
    )


def confusions(annotations, concentration, *, dim=-2):
    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers, dim=dim), numpyro.plate("class", k, dim=dim + 1):
        return numpyro.sample("confusion", dist.Dirichlet(concentration * (1 + jnp.eye(k))))


def observed(annotations, truth_prior, emission):
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, emission, annotations)


def plain(annotations, *, truth_prior=None, strength=1.0):
    observed(annotations, truth_prior, cp.Confusion(confusions(annotations, strength)))


def of_skills(annotations, *, truth_prior=None):
    """Skills of a hierarchy, difficulties of tasks, and a derived quantity by worker."""
    mean, scale = numpyro.sample("mean", dist.Normal(1.0, 1.0)), numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("worker", annotations.n_workers):
        offset = numpyro.sample("offset", dist.Normal(0.0, 1.0))
    with numpyro.plate("task", annotations.n_tasks):
        ease = numpyro.sample("ease", dist.LogNormal(0.0, 0.5))
    skill = mean + scale * offset
    observed(annotations, truth_prior, cp.Correct(skill[:, None], annotations.n_classes, scale=ease))
    cp.derived("skill", skill, "worker")


def prior_of_size(annotations, *, truth_prior=None):
    observed(annotations, truth_prior, cp.Confusion(confusions(annotations, 1.0 + annotations.n_workers)))


def scale_of_tasks(annotations, *, truth_prior=None):
    tables = confusions(annotations, 1.0)
    numpyro.factor("held", -0.01 * annotations.n_tasks * (tables[0] ** 2).sum())
    observed(annotations, truth_prior, cp.Confusion(tables))


def around_the_mean(annotations, *, truth_prior=None):
    """The mean of all workers, padded ones too."""
    with numpyro.plate("worker", annotations.n_workers):
        skill = numpyro.sample("skill", dist.Normal(0.0, 1.0))
    observed(annotations, truth_prior, cp.Correct((1 + skill - skill.mean())[:, None], annotations.n_classes))


def counts_rows(annotations, *, truth_prior=None):
    """Shares of the labels among all rows, which padded rows without a count enter."""
    shares = jnp.bincount(annotations.label, length=annotations.n_classes) / annotations.n_rows
    observed(annotations, truth_prior, cp.Confusion(confusions(annotations, 1 + shares)))


def derives_a_mean(annotations, *, truth_prior=None):
    """The density is the same on padded data, and what is derived is not."""
    tables = confusions(annotations, 1.0)
    observed(annotations, truth_prior, cp.Confusion(tables))
    cp.derived("mean", tables.mean(0), "class", "annotation")


def without_a_plate(annotations, *, truth_prior=None):
    skill = numpyro.sample("skill", dist.Normal(jnp.ones(annotations.n_workers), 1.0).to_event(1))
    observed(annotations, truth_prior, cp.Correct(skill[:, None], annotations.n_classes))


def _with(read):
    """A story that reads something and does nothing with it that would show."""

    def story(annotations, *, truth_prior=None):
        read(annotations)
        plain(annotations, truth_prior=truth_prior)

    return story


CLEAN = [plain, of_skills]
CAUGHT = [prior_of_size, scale_of_tasks, around_the_mean, counts_rows, derives_a_mean, without_a_plate]
READS = {
    "a worker": lambda annotations: annotations.workers[0],
    "all workers": lambda annotations: list(annotations.workers),
    "a worker's place": lambda annotations: annotations.workers.index_of(["ann"]),
    "whether there is a worker": lambda annotations: "ann" in annotations.workers,
    "a copy": lambda annotations: list(Ids(annotations.workers)),
    "tasks": lambda annotations: annotations.tasks.to_index(),
    "classes": lambda annotations: annotations.classes.to_json(),
    "kinds, as text": lambda annotations: repr(annotations.categories),
    "annotations as text": lambda annotations: repr(annotations),
}


def by_logits(story):
    return Option(story, {"truth_prior": cp.Classifier("logistic", prior=1.0)}, ("features",))


OPTIONS = [*DEFAULTS, *FURTHER, *(Option(story, {}) for story in AS_PUBLISHED), *map(by_logits, WITH_CLASSIFIER)]


def test_the_options_are_of_every_registered_story():
    assert {option.story for option in OPTIONS} == set(KNOWN_STORIES)


@pytest.mark.parametrize("option", as_parameters(OPTIONS))
def test_registered_stories_keep_their_promise(option):
    """Also with counts, abstentions, features and the parts that any story takes: they are never run in a fit."""
    annotations = option.annotations()
    model = Model(find_story(option.story), option.options)
    assert promises_it(model) or option.options
    assert portable.gives_the_same(model, *portable._pieces(annotations))


@pytest.mark.parametrize("option", as_parameters(OPTIONS))
def test_in_registered_stories_a_task_weighs_as_many_as_it_stands_for(option):
    """Starts of subtypes are drawn by task, so that equal tasks have one draw together."""
    annotations = option.annotations()
    model = Model(find_story(option.story), option.options)
    if {"task", "row"} & {dim for dims in parameter_dims(model, annotations).values() for dim in dims}:
        pytest.skip("a parameter is of single tasks, so that none is counted for others")
    if model.truth_prior.joint:
        pytest.skip("truths depend on each other, so that no task is counted for others")
    own, seen = portable._pieces(annotations)
    by_chance = option.story in ("independent_confusion_subtypes", "ebcc") and option.options.get("subtypes") != 1
    assert portable.gives_twice(model, own, seen) is not by_chance


def counts_tasks(annotations, *, truth_prior=None):
    """A story that sees how many tasks there are, padded ones left out."""
    n = annotations.n_real[0] if isinstance(annotations, PaddedAnnotations) else annotations.n_tasks
    observed(annotations, truth_prior, cp.Confusion(confusions(annotations, 1.0 + n)))


def test_a_story_of_ones_own_that_counts_tasks_is_told_from_one_that_does_not():
    annotations = crowd()
    assert portable.counts_alike(Model(plain, {}), annotations)
    assert is_portable(Model(counts_tasks, {}), annotations)
    assert not portable.counts_alike(Model(counts_tasks, {}), annotations)


def test_classes_that_follow_the_levels_of_the_workers_leave_padded_ones_out():
    model = Model(find_story("score_factor"), {})
    assert portable.gives_the_same(model, *portable._pieces(crowd().replace(kind=Ordered())))


@pytest.mark.parametrize("name", KNOWN_STORIES)
def test_the_promise_is_of_the_story_itself_and_of_nothing_made_of_it(name):
    story = KNOWN_STORIES[name]
    assert is_promised(story)
    assert not is_promised(functools.wraps(story)(lambda *args, **kwargs: story(*args, **kwargs)))
    assert not is_promised(type("Own", (cp.Prevalence,), {}))
    assert is_promised(cp.Prevalence)


@pytest.mark.parametrize("story", CLEAN, ids=lambda story: story.__name__)
@pytest.mark.parametrize("has", ["plain", "counts", "evidence", "features", "unnamed"])
def test_a_story_of_ones_own_is_portable(story, has):
    rng, annotations = np.random.default_rng(1), crowd()
    more = {
        "counts": {"count": rng.integers(1, 4, 160).astype(np.float32)},
        "evidence": {"evidence": np.where(np.arange(40)[:, None] < 5, [0, -np.inf, -np.inf], 0).astype(np.float32)},
        "features": {"features": rng.normal(size=(40, 2)).astype(np.float32)},
    }
    assert is_portable(Model(story), annotations.replace(**more.get(has, {})))


@pytest.mark.parametrize("n_workers", [7, 8, 16])
@pytest.mark.parametrize("story", CAUGHT, ids=lambda story: story.__name__)
def test_a_story_that_sees_the_padding_is_caught(story, n_workers):
    """Also where the workers are as many as a bucket of the ladder holds."""
    annotations = crowd(n_workers=n_workers)
    assert not is_portable(Model(story), annotations)
    assert portable.sized(Model(story), annotations) is annotations


@pytest.mark.parametrize("read", READS)
def test_a_story_that_reads_identifiers_is_caught(read):
    assert not is_portable(Model(_with(READS[read])), crowd())
    with pytest.raises(UnreadError, match="read the identifiers"):
        READS[read](unread(padded(crowd())))


def test_unread_identifiers_are_counted_and_compared():
    assert len(Ids.unread(3)) == 3
    assert Ids.unread(3) == Ids.unread(3)
    assert hash(Ids.unread(3)) == hash(Ids.unread(3))
    assert Ids.unread(3) != Ids.unread(4)
    assert Ids.unread(3) != Ids.range(3)


def test_hyperparameters_decide_and_tables_are_of_one_data_set():
    def story(annotations, *, truth_prior=None, pull=0.0, table=None):
        plain(annotations, truth_prior=truth_prior, strength=1 + pull * annotations.n_workers)

    annotations = crowd()
    numbers = [Model(story, {"pull": pull}, ("pull",)) for pull in (0.0, 0.5)]
    assert [is_portable(model, annotations) for model in numbers] == [True, False]
    assert not is_portable(Model(story, {"table": np.ones(3)}), annotations)
    assert not is_portable(
        Model(plain, {"truth_prior": lambda data: jnp.ones((data.n_tasks, 3))[data.tasks[0]]}), annotations
    )
    assert is_portable(Model(plain, {"truth_prior": lambda data: jnp.log(jnp.ones(3) / 3)}), annotations)


def test_a_story_is_run_once_whatever_the_size_of_the_data_and_is_let_go():
    runs = []

    def story(annotations, *, truth_prior=None):
        runs.append(annotations.n_tasks)
        plain(annotations, truth_prior=truth_prior)

    model = Model(story)
    assert is_portable(model, crowd())
    first = len(runs)
    assert max(runs) < 200
    for n_tasks in (20, 41, 500):
        assert is_portable(Model(story), crowd(n_tasks=n_tasks, n_rows=4 * n_tasks, seed=n_tasks))
    assert len(runs) == first
    assert is_portable(Model(story), crowd().replace(features=np.ones((40, 2), np.float32)))
    assert len(runs) > first  # a story may do otherwise where there are features
    gone = weakref.ref(story)
    del story, model
    forget_programs()
    portable._numbers.cache_clear()
    general._flags.cache_clear()
    jax.clear_caches()
    gc.collect()
    assert gone() is None


def test_a_fit_of_ones_own_story_to_data_of_a_nearby_size_compiles_nothing():
    """What is compiled for the data's own sizes are single operations alone, which JAX does and no program."""
    programs = (em.init, climber.advance, views._label_posteriors, portable._both)
    forget_programs()
    rng = np.random.default_rng(0)

    def fit(n_tasks, n_workers, **options):
        annotations = random_annotations(rng, n_tasks=n_tasks, n_workers=n_workers, n_classes=3, n_rows=3 * n_tasks)
        named = annotations.replace(workers=Ids([f"{n_tasks} {j}" for j in range(n_workers)]))
        return cp.fit(plain, named, progress=False, **options)

    found = fit(100, 10, strength=1.5)
    assert isinstance(found.fitted.at_size.annotations, PaddedAnnotations)
    for i, (n_tasks, n_workers) in enumerate([(103, 11), (97, 12), (110, 9)]):
        fit(n_tasks, n_workers, strength=2.0 + i, seed=i)
    assert list(map(n_kept, programs)) == [1, 1, 1, 1]


def test_a_fit_of_a_story_that_sees_the_padding_is_that_of_the_data_themselves():
    annotations = crowd()
    fit = cp.fit(prior_of_size, annotations, progress=False, max_iterations=20)
    key, settings = jax.random.key(0), em.EMSettings(max_iterations=20)
    exact = em.run(Model(prior_of_size), annotations, key, settings, progress=False)
    np.testing.assert_allclose(fit.outcome.history, exact.history, rtol=1e-5)
