"""Tasks that look alike are counted once: the density, the engines and the draws around a mode are those of all."""

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data.some_tasks import some_tasks, tasks_alike
from crowdppl.inference.densities import portable
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.portable import standing_for
from crowdppl.inference.densities.sites import starting_point
from crowdppl.models import find_story

ACCURACY = np.array([0.9, 0.8, 0.85, 0.7, 0.75])


def panel(n_tasks=1500, seed=0, refused=0.0):
    """Five workers who say yes or no of every task, or refuse; there are no more than 243 different tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_tasks) < 0.4
    says = np.where(rng.random((n_tasks, 5)) < ACCURACY, truth[:, None], ~truth[:, None])
    labels = np.where(rng.random(says.shape) < refused, "can't tell", np.where(says, "yes", "no"))
    frame = pd.DataFrame(
        {"task": np.repeat(np.arange(n_tasks), 5), "worker": np.tile(np.arange(5), n_tasks), "label": labels.ravel()}
    )
    return cp.Annotations.from_frame(frame, abstain="can't tell" if refused else None)


@pytest.fixture
def one_by_one(monkeypatch):
    def switch():
        monkeypatch.setattr(portable, "FEWEST_ROWS", 10**9)

    return switch


ROWS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 1), st.integers(1, 2)), min_size=1, max_size=30
)


@given(ROWS, st.lists(st.integers(0, 1), min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_tasks_look_alike_where_their_rows_and_what_is_known_of_them_are_the_same(rows, known):
    frame = pd.DataFrame(sorted(rows, key=lambda row: row[0]), columns=["task", "worker", "label", "count"])
    annotations = cp.Annotations.from_frame(frame, classes=[0, 1], count="count", repeats="keep")
    evidence = np.zeros((annotations.n_tasks, 2), np.float32)
    evidence[:, 1] = [-np.inf * known[task] if known[task] else 0.0 for task in annotations.tasks]
    found = tasks_alike(annotations.replace(evidence=evidence))
    looks = [
        (known[task], tuple(sorted(zip(of.worker, of.label, of["count"], strict=True))))
        for task, of in frame.groupby("task")
    ]
    assert found.tolist() == [looks.index(look) for look in looks]


def test_tasks_that_all_differ_are_looked_at_no_further():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"task": np.repeat(np.arange(9000), 9), "worker": rng.integers(0, 400, 81_000)})
    assert tasks_alike(cp.Annotations.from_frame(frame.assign(label=rng.integers(0, 2, 81_000)))) is None


@pytest.mark.parametrize("refused", [0.0, 0.2])
@pytest.mark.parametrize("story", ["dawid_skene", "hierarchical_dawid_skene"])
def test_the_density_is_that_of_all_tasks(story, refused):
    annotations = panel(400, refused=refused)
    model = Model(find_story(story), {})
    counted = standing_for(annotations, tasks_alike(annotations))
    assert counted.n_real[0] <= 3**5
    point = starting_point(model, annotations, jax.random.key(1))
    for name, value in starting_point(model, counted, jax.random.key(1)).items():
        np.testing.assert_allclose(value[: len(point[name])] if np.ndim(value) else value, point[name], rtol=1e-5)
    found = density(model, starting_point(model, counted, jax.random.key(1)), counted)
    np.testing.assert_allclose(found.log_posterior, density(model, point, annotations).log_posterior, rtol=1e-5)


def test_labels_of_tasks_alike_are_drawn_one_by_one_and_added_up():
    annotations = some_tasks(panel(400), np.zeros(400, int))
    model = Model(find_story("dawid_skene"), {})
    counted = standing_for(annotations, tasks_alike(annotations))
    at = density(model, starting_point(model, counted, jax.random.key(0)), counted)
    scores = np.log(np.broadcast_to([0.3, 0.7], at.log_joint.shape))
    drawn = np.asarray(
        jax.jit(jax.vmap(lambda key: at.latent_by(key, scores).labels))(jax.random.split(jax.random.key(0), 300))
    )
    assert (drawn.sum(-1) == np.asarray(counted.copies)).all()
    assert drawn[:, 0, 1].mean() == pytest.approx(280, abs=4 * np.sqrt(400 * 0.21 / 300))
    assert drawn[:, 0, 1].std() == pytest.approx(np.sqrt(400 * 0.21), rel=0.15)


@pytest.mark.parametrize("options", [{}, {"gold": {0: "yes", 7: "no"}}, {"shared_error": True}], ids=str)
def test_em_is_where_it_is_task_by_task(options, one_by_one):
    annotations = panel(refused=0.1)
    counted = cp.fit("dawid_skene", annotations, progress=False, tolerance=1e-7, max_iterations=500, **options)
    one_by_one()
    each = cp.fit("dawid_skene", annotations, progress=False, tolerance=1e-7, max_iterations=500, **options)
    np.testing.assert_allclose(counted.posterior, each.posterior, atol=2e-3)
    np.testing.assert_allclose(counted.fitted.draws["confusion"], each.fitted.draws["confusion"], atol=2e-3)
    np.testing.assert_allclose(counted.history.iloc[-1], each.history.iloc[-1], rtol=1e-5)


@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_draws_have_the_mean_and_the_spread_that_they_have_task_by_task(method, one_by_one):
    annotations = panel()
    options = {"method": method, "progress": False}
    options |= {"nuts": {"draws": 500, "warmup": 200, "chains": 2}, "svi": {"draws": 1000}, "em": {}}[method]

    def draws():
        fitted = cp.fit("dawid_skene", annotations, **options).fitted
        found = np.asarray(fitted.with_uncertainty.draws["confusion"])
        return found.reshape(-1, *found.shape[2:])[..., 0]

    counted = draws()
    one_by_one()
    each = draws()
    spread = each.std(0)
    assert (spread > 0).all()
    assert np.abs(counted.mean(0) - each.mean(0)).max() < 0.4 * spread.max()
    np.testing.assert_allclose(counted.std(0).mean(), spread.mean(), rtol=0.15)


@pytest.mark.parametrize("story", ["glad", "item_response"])
def test_a_story_with_parameters_of_single_tasks_has_every_task(story):
    annotations = panel()
    fitted = cp.fit(story, annotations, max_iterations=2, progress=False).fitted
    assert portable.counted_once(fitted.model, annotations, fitted.dims) is None


def test_data_of_which_few_tasks_are_alike_stay_as_they_are():
    annotations = cp.simulate("dawid_skene", n_tasks=800, n_workers=60, annotations_per_task=6, seed=0)[0]
    fitted = cp.fit("dawid_skene", annotations, max_iterations=2, progress=False).fitted
    assert portable.counted_once(fitted.model, annotations.without_gold(), fitted.dims) is None
    assert portable.counted_once(fitted.model, panel(), {}).n_real[0] == 32
