"""EM over some of the tasks, with what is known of the others held fixed, leads towards where EM of all tasks ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import crowdppl as cp
from crowdppl.data.some_tasks import changed_tasks, some_tasks
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims, parameter_spec
from crowdppl.inference.engines import em, sparse_em
from crowdppl.inference.engines.m_step import gradient, sums_over_tasks
from crowdppl.inference.engines.settings import EMSettings
from crowdppl.inference.engines.sparse_em import holding_tasks
from crowdppl.models import STORIES

OF_TABLES = ("dawid_skene", "mace", "one_coin", "worker_clusters", "hierarchical_dawid_skene")


def crowd(n_tasks=120, seed=0):
    found, _ = cp.simulate("dawid_skene", n_tasks=n_tasks, n_workers=8, n_classes=3, annotations_per_task=5, seed=seed)
    return found.without_gold()


def solved(name, annotations, **options):
    model = Model(STORIES[name])
    settings = EMSettings(tolerance=1e-15, max_iterations=20_000, **options)
    key = jax.random.key(0)
    return model, key, settings, em.solve(model, annotations, key, settings, progress=False).parameters


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_step_of_some_tasks_beside_the_others_counts_is_that_of_all_tasks(name):
    everything = crowd()
    with jax.enable_x64(True):
        annotations = jax.tree.map(jnp.asarray, everything)
        model = Model(STORIES[name])
        here = em.init(model, annotations, jax.random.key(1)).parameters
        of_all = gradient(model, annotations, parameter_spec(model, annotations), here).counts
        moving = np.arange(everything.n_tasks) % 3 == 0
        rest, part = (some_tasks(everything, which) for which in (~moving, moving))
        held = sums_over_tasks(model, rest, here).counts
        beside = holding_tasks(model, held, {name: value for name, value in here.items() if name not in held})
        tables = {name: here[name] for name in held}
        of_part = gradient(beside, part, parameter_spec(beside, part), tables).counts
    assert part.n_tasks + rest.n_tasks == everything.n_tasks
    for site, counts in of_all.items():
        np.testing.assert_allclose(of_part[site], counts, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["dawid_skene", "mace", "one_coin"])
def test_where_em_has_converged_nothing_moves_whichever_tasks_may(name):
    everything = crowd()
    with jax.enable_x64(True):
        model, key, settings, there = solved(name, everything)
        moving = np.random.default_rng(2).random(everything.n_tasks) < 0.3
        dims = parameter_dims(model, everything)
        found = sparse_em.solution(model, everything, moving, there, dims, key, settings)
    for site, value in there.items():
        np.testing.assert_allclose(found[site], value, atol=2e-5)


@pytest.mark.slow
def test_the_tasks_that_were_uncertain_bring_it_nearer_than_those_that_changed_alone():
    everything = crowd(400)
    late = np.random.default_rng(3).random(everything.n_rows) < 0.05
    frame = everything.to_frame()
    before = cp.Annotations.from_frame(frame[~late], classes=everything.classes)
    after = before.joined(frame[late])
    with jax.enable_x64(True):
        model, key, settings, old = solved("dawid_skene", before)
        _, _, _, new = solved("dawid_skene", after)
        changed = changed_tasks(before, after)
        posterior = cp.fit("dawid_skene", before, progress=False).posterior
        moving = sparse_em.moving_tasks(changed, posterior)
        dims = parameter_dims(model, after)

        def distance(which):
            found = old if which is None else sparse_em.solution(model, after, which, old, dims, key, settings)
            return float(sum(np.abs(found[site] - new[site]).sum() for site in new))

        by_change, by_both = distance(changed), distance(moving)
    assert changed.sum() < moving.sum() < everything.n_tasks
    assert by_both < 0.7 * by_change < 0.7 * distance(None)


def test_changed_tasks_are_new_or_have_more_annotations_or_other_evidence():
    before = cp.Annotations.from_dict({task: {"ann": "cat", "bob": "dog"} for task in ("t1", "t2", "t3")})
    more = cp.Annotations.from_dict({"t2": {"cy": "dog"}, "t4": {"cy": "cat"}})
    after = before.joined(more)
    assert changed_tasks(before, after).tolist() == [False, True, False, True]
    evidence = np.zeros((4, 2), np.float32)
    evidence[2, 0] = -np.inf
    assert changed_tasks(before, after.replace(evidence=evidence)).tolist() == [False, True, True, True]


def test_some_tasks_are_those_tasks_with_what_is_known_of_them():
    annotations = crowd().replace(features=np.arange(240.0).reshape(120, 2))
    chosen = np.arange(120) % 2 == 1
    part = some_tasks(annotations, chosen)
    frame, whole = part.to_frame(), annotations.to_frame()
    expected = whole[whole["task"] % 2 == 1]
    assert (frame["task"] * 2 + 1).tolist() == expected["task"].tolist()
    assert frame[["worker", "label"]].to_numpy().tolist() == expected[["worker", "label"]].to_numpy().tolist()
    np.testing.assert_array_equal(part.features, annotations.features[1::2])


def test_it_pays_where_the_data_are_many_and_few_tasks_move(monkeypatch):
    annotations, few = crowd(), np.arange(120) < 10
    assert not sparse_em.pays(annotations, few)
    monkeypatch.setattr(sparse_em, "LITTLE", 100)
    assert sparse_em.pays(annotations, few)
    assert not sparse_em.pays(annotations, ~few)
    assert not sparse_em.pays(annotations, few & ~few)
