"""Padded data give what the data themselves give, and data of nearby sizes share compiled programs."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from conftest import random_annotations
from kept_programs import forget_programs, n_kept
from numpyro.infer.util import potential_energy
from story_options import DEFAULTS, FURTHER, STAND_FOR_OTHERS, Option

import crowdppl as cp
from crowdppl import Annotations, Classifier, Confusion, observe, tasks
from crowdppl.data.padding import ROWS, TASKS, WORKERS, PaddedAnnotations, padded
from crowdppl.inference.densities import padded_sites, portable
from crowdppl.inference.densities.marginals import marginal_program, potential
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.portable import with_numbers
from crowdppl.inference.densities.sites import parameter_dims, starting_point
from crowdppl.inference.engines import climber, em, nuts, svi
from crowdppl.inference.engines.registry import ENGINES, run_at_size
from crowdppl.inference.findings import of_agreement
from crowdppl.inference.fitted import fitted as views
from crowdppl.models import find_story
from crowdppl.models.parts.contract import promised

THREE_CLASSES = ("dawid_skene", "glad", "annotator_groups", "worker_clusters", "difficulty", "mace")


class OfThree(Option):
    """A story with its default options on three classes, with counts, evidence and tasks that nobody annotated."""

    @property
    def name(self) -> str:
        return f"{self.story}-three-classes"

    def annotations(self) -> Annotations:
        rng = np.random.default_rng(8)
        plain = random_annotations(rng, n_tasks=9, n_workers=4, n_classes=3, n_rows=17)
        evidence = rng.normal(size=(9, 3)).astype(np.float32)
        return plain.replace(count=rng.integers(1, 4, 17).astype(np.float32), evidence=evidence)


OPTIONS = [*DEFAULTS, OfThree("dawid_skene", {})]
FURTHER_OPTIONS = [*FURTHER, *(OfThree(story, {}) for story in THREE_CLASSES[1:])]
EVERY = pytest.mark.parametrize(
    "option",
    [
        *(o if o.story in STAND_FOR_OTHERS else pytest.param(o, marks=pytest.mark.long) for o in OPTIONS),
        *(pytest.param(option, marks=pytest.mark.slow) for option in FURTHER_OPTIONS),
    ],
    ids=lambda option: option.name,
)


def named(rng, n_tasks, n_workers, name):
    """A data set of 4 annotations a task, whose identifiers have a name of their own."""
    task = np.repeat(np.arange(n_tasks), 4)
    worker = np.concatenate([rng.permutation(n_workers)[:4] for _ in range(n_tasks)])
    truth = rng.integers(0, 2, n_tasks)[task]
    label = np.where(rng.random(len(task)) < 0.8, truth, 1 - truth)
    columns = {"task": [f"{name}{i}" for i in task], "worker": [f"{name}{j}" for j in worker], "label": label}
    return Annotations.from_frame(pd.DataFrame(columns))


def own_story(annotations, *, truth_prior=None, strength=2.0, power=1.0):
    """A story of a user's own that branches on one of its numbers."""
    concentration = jnp.ones(annotations.n_classes) * strength
    if power > 1:
        concentration = concentration**power
    with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", annotations.n_classes, dim=-1):
        confusion = numpyro.sample("confusion", dist.Dirichlet(concentration))
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)


@pytest.mark.parametrize("ladder", [ROWS, TASKS, WORKERS])
def test_a_bucket_holds_the_size_and_is_its_own_bucket(ladder):
    sizes = np.arange(1, 40_000, 7)
    buckets = np.array([ladder.bucket(int(size)) for size in sizes])
    assert (buckets >= sizes).all()
    assert (np.diff(buckets) >= 0).all()
    assert all(ladder.bucket(int(bucket)) == bucket for bucket in np.unique(buckets))
    large = sizes > ladder.coarse
    assert (buckets[large] / sizes[large]).max() < 1.34
    assert ladder.bucket(0) == 0


@EVERY
def test_start_potential_and_gradient_are_those_of_the_data_themselves(option):
    """At random points, with padded parameters at other points; a sampler's own density of these is a term beside."""
    annotations = option.annotations()
    model = Model(find_story(option.story), option.options)
    seen = portable.sized(model, annotations)
    assert isinstance(seen, PaddedAnnotations)
    assert seen.n_tasks > annotations.n_tasks
    dims = parameter_dims(model, annotations)
    rng = np.random.default_rng(0)
    shapes = potential(option.story, annotations, **option.options).initial
    point = {name: rng.normal(size=value.shape).astype(np.float32) for name, value in shapes.items()}
    grown = padded_sites.grown(point, dims, seen)

    def look(data, point):
        def energy(point, proper):
            return potential_energy(marginal_program(model, proper=proper), (data,), {}, point)

        proper = jax.grad(lambda point: energy(point, True))(point)
        return starting_point(model, data, jax.random.key(1)), jax.value_and_grad(energy)(point, False), proper

    start, (energy, slope), sampled = jax.jit(look)(annotations, point)
    padded_start, (padded_energy, padded_slope), padded_sampled = jax.jit(look)(seen, grown)
    np.testing.assert_allclose(padded_energy, energy, rtol=1e-5)
    for ours, theirs in ((padded_start, start), (padded_slope, slope), (padded_sampled, sampled)):
        for name, value in padded_sites.cut(ours, dims, annotations).items():
            np.testing.assert_allclose(value, theirs[name], rtol=1e-4, atol=2e-5)
    for name, value in padded_slope.items():
        for axis, size in padded_sites.real_axes(dims[name], annotations):
            beyond = np.asarray(value).take(range(size, value.shape[axis]), axis)
            np.testing.assert_array_equal(beyond, 0.0)


@pytest.mark.parametrize(
    ("story", "site"), [("glad", "difficulty"), ("glad", "ability"), ("item_response", "difficulty")]
)
def test_padded_parameters_are_standard_normal_to_a_sampler(story, site):
    """With no density they would drift until they overflow, and every trajectory would end as a divergence."""
    annotations = next(option for option in DEFAULTS if option.story == story).annotations()
    model = Model(find_story(story))
    seen = portable.sized(model, annotations)
    dims = parameter_dims(model, annotations)
    rng = np.random.default_rng(0)
    grown = padded_sites.grown(potential(story, annotations).initial, dims, seen)
    point = {name: rng.normal(size=np.shape(value)).astype(np.float32) for name, value in grown.items()}
    program = marginal_program(model, proper=True)
    slope = jax.jit(jax.grad(lambda point: potential_energy(program, (seen,), {}, point)))(point)
    ((axis, size),) = padded_sites.real_axes(dims[site], annotations)
    beyond = range(size, point[site].shape[axis])
    assert beyond
    np.testing.assert_allclose(np.take(slope[site], beyond, axis), np.take(point[site], beyond, axis), rtol=1e-5)


@pytest.mark.parametrize(
    "story",
    [
        "dawid_skene",
        "glad",
        pytest.param("common_individual", marks=pytest.mark.slow),
        pytest.param("worker_clusters", marks=pytest.mark.slow),
    ],
)
def test_em_ends_where_it_ends_on_the_data_themselves(story):
    annotations = OfThree(story, {}).annotations()
    # So many iterations in both: where the steps become as small as float32's rounding, that decides which is the last.
    settings = em.EMSettings(max_iterations=20, tolerance=0, restarts=2)
    model, key = Model(find_story(story)), jax.random.key(3)
    exact = em.run(model, annotations, key, settings, progress=False)
    dims = parameter_dims(model, annotations)
    found = run_at_size(ENGINES["em"], model, annotations, dims, key, settings, progress=False)
    assert len(found.history) == len(exact.history)
    np.testing.assert_allclose(found.history, exact.history, rtol=1e-5)
    for name, value in exact.draws.items():
        np.testing.assert_allclose(found.draws[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("guide", ["normal", pytest.param("delta", marks=pytest.mark.slow)])
def test_svi_has_the_loss_and_the_draws_of_the_data_themselves(guide):
    annotations = OfThree("dawid_skene", {}).annotations()
    model, key = Model(find_story("dawid_skene")), jax.random.key(3)
    settings = svi.SVISettings(max_iterations=130, guide=guide, sweeps=None if guide == "delta" else 0)
    exact = svi.run(model, annotations, key, settings, progress=False)
    dims = parameter_dims(model, annotations)
    found = run_at_size(ENGINES["svi"], model, annotations, dims, key, settings, progress=False)
    assert len(found.history) == 130
    np.testing.assert_allclose(found.history, exact.history, rtol=1e-3)
    for name, value in exact.draws.items():
        first = found.draws[name][0, 0]  # of later draws the random numbers depend on the size
        np.testing.assert_allclose(first, value[0, 0], rtol=5e-3, atol=5e-3)


def test_nuts_on_padded_data_tells_the_log_posterior_of_the_data_themselves():
    annotations = OfThree("glad", {}).annotations()
    model = Model(find_story("glad"))
    settings = nuts.NUTSSettings(chains=1, warmup=60, draws=4)
    dims = parameter_dims(model, annotations)
    found = run_at_size(ENGINES["nuts"], model, annotations, dims, jax.random.key(0), settings, progress=False)
    target = potential("glad", annotations)
    for draw in range(4):
        point = {name: jnp.asarray(value[0, draw]) for name, value in found.draws.items()}
        assert {name: value.shape for name, value in point.items()} == {
            name: np.shape(value) for name, value in target.constrain(target.initial).items()
        }
        energy = potential_energy(marginal_program(model), (annotations,), {}, target.unconstrain(point))
        np.testing.assert_allclose(-energy, found.stats["lp"][0, draw], rtol=1e-4)


@pytest.mark.parametrize("story", ["dawid_skene", "common_individual", "annotator_groups"])
def test_views_are_those_of_the_data_themselves(story):
    options = {"gated": True} if story == "annotator_groups" else {}
    annotations = named(np.random.default_rng(0), 30, 6, "t")
    annotations = annotations.replace(features=np.random.default_rng(1).normal(size=(30, 2)).astype(np.float32))
    fit = cp.fit(story, annotations, progress=False, max_iterations=30, **options)
    fitted = fit.fitted
    assert isinstance(fitted.at_size.annotations, PaddedAnnotations)
    exact = fitted.replace(dims={}, stored_posterior=None)  # without names of dimensions nothing can be padded
    np.testing.assert_allclose(views.label_posteriors(fitted), views.label_posteriors(exact), atol=1e-5)
    np.testing.assert_allclose(fitted.log_likelihood(), exact.log_likelihood(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fitted.confusion_draws, exact.confusion_draws, atol=1e-5)
    for name, value in fitted.derived.items():
        np.testing.assert_allclose(value, exact.derived[name], atol=1e-5)
        assert value.shape == exact.derived[name].shape


def test_nearby_data_share_programs_whatever_their_names_numbers_and_seeds(monkeypatch):
    """Those of the fits: a finding that tries shared errors has programs of its own."""
    monkeypatch.setattr(of_agreement, "gain_of_shared_errors", lambda *_: (-np.inf, np.nan))
    rng = np.random.default_rng(0)
    programs = (em.init, climber.advance, views._label_posteriors)
    forget_programs()
    for i, (n_tasks, n_workers) in enumerate([(100, 10), (103, 11), (97, 12), (110, 9), (101, 13), (99, 10)]):
        cp.fit(
            "dawid_skene",
            named(rng, n_tasks, n_workers, f"set {i} "),
            diagonal=2.0 + i,
            off_diagonal=1 + i % 2,
            tolerance=1e-5 * (1 + i),
            max_iterations=500 + i,
            seed=i,
            progress=False,
        )
    assert list(map(n_kept, programs)) == [1, 1, 1]


@pytest.mark.parametrize(
    ("options", "n_estimates"), [({}, 0), ({"method": "svi", "max_iterations": 5, "draws": 5}, 2)], ids=["em", "svi"]
)
def test_a_second_fit_runs_the_story_once_against_the_data(options, n_estimates):
    """SVI's sweeps estimate what a step of theirs computes by a run for each kind of step."""
    runs = []

    @promised
    def counted(annotations, **hyperparameters):
        runs.append(type(annotations))
        find_story("dawid_skene")(annotations, **hyperparameters)

    rng = np.random.default_rng(0)
    for _ in range(2):
        runs.clear()
        cp.fit(counted, named(rng, 50, 10, "named "), progress=False, **options)
    assert runs == [Annotations, *[PaddedAnnotations] * n_estimates]


def test_nuts_is_compiled_once_whatever_the_names_seeds_and_numbers():
    """The step is compiled ahead of time, so what XLA compiles is counted, in the engine alone."""
    rng, compiled = np.random.default_rng(0), []

    def listen(event, seconds, **_):
        compiled.append(event.endswith("backend_compile_duration"))

    def sample(n_tasks, n_workers, seed, accept, diagonal):
        annotations = named(rng, n_tasks, n_workers, f"set {seed} ")
        model = Model(find_story("dawid_skene"), {"diagonal": diagonal, "off_diagonal": 1.0})
        model, dims = with_numbers(model, annotations), parameter_dims(model, annotations)
        settings = nuts.NUTSSettings(chains=2, warmup=20, draws=10 + seed, target_accept=accept)
        key = jax.random.key(seed)
        return run_at_size(ENGINES["nuts"], model, annotations, dims, key, settings, progress=False)

    sample(59, 10, 0, 0.8, 2.0)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for i, (n_tasks, n_workers) in enumerate([(59, 10), (58, 11), (60, 9)]):
            sample(n_tasks, n_workers, 1 + i, 0.7 + 0.05 * i, 2.5 + i)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert sum(compiled) == 0


def test_what_names_workers_or_has_a_table_is_not_padded():
    annotations = named(np.random.default_rng(0), 20, 5, "a")
    history = pd.DataFrame({"worker": ["a0"], "truth": [0], "label": [0], "count": [3]})
    dawid_skene = find_story("dawid_skene")
    for model in (
        Model(dawid_skene, {"history": history}),
        Model(dawid_skene, {"truth_prior": lambda data: jnp.zeros(data.n_classes) * len(data.workers[0])}),
        Model(dawid_skene, {"truth_prior": Classifier(lambda x: x)}),
    ):
        assert portable.sized(model, annotations) is annotations
    for model in (
        Model(own_story),
        Model(dawid_skene, {"truth_prior": lambda data: jnp.full(data.n_classes, -jnp.log(2.0))}),
    ):
        assert isinstance(portable.sized(model, annotations), PaddedAnnotations)
    network = portable.sized(Model(dawid_skene, {"truth_prior": Classifier("mlp")}), annotations)
    assert not isinstance(network, PaddedAnnotations)
    assert network.n_tasks == 20
    assert network.tasks[0] == 0


def test_a_number_that_a_story_looks_at_stays_static():
    annotations = named(np.random.default_rng(0), 20, 5, "a")
    model = with_numbers(Model(own_story, {"strength": 1.5, "power": 2.0}), annotations)
    assert model.numbers == ("strength",)
    ours = with_numbers(Model(find_story("worker_clusters"), {"clusters": 2, "strength": 3, "share": 0.5}), annotations)
    assert ours.numbers == ("share", "strength")
    leaves = jax.tree.leaves(ours)
    assert leaves == [0.5, 3.0]
    whole = with_numbers(Model(own_story, {"strength": 3}), annotations)  # its default is a real number
    assert whole.numbers == ("strength",)
    again = jax.tree.unflatten(jax.tree.structure(ours), leaves)
    assert again == ours
    assert with_numbers(Model(own_story), annotations).numbers == ()


def test_padding_keeps_the_data_in_front(tiny):
    seen = padded(tiny)
    assert seen.n_real.tolist() == [5, 3]
    assert seen.count.sum() == 9
    assert (np.diff(seen.task) >= 0).all()
    np.testing.assert_array_equal(seen.label[:9], tiny.label)
    np.testing.assert_array_equal(
        padded(tiny.replace(worker=None, workers=cp.Annotations.from_counts([[1, 2]]).workers)).n_real, [5, 0]
    )
