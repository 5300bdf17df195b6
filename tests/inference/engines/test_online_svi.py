"""SVI over chunks of a scan finds the guide that SVI over minibatches finds in memory."""

from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.store import open_store
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import climber, em, online_em, svi
from crowdppl.inference.engines.settings import SVISettings
from crowdppl.inference.sources import on_disk
from crowdppl.inference.sources.memory import InMemory
from crowdppl.inference.sources.on_disk import suited_files
from crowdppl.inference.sources.starting import parameter_shapes
from crowdppl.models import STORIES

N_TASKS = 1500
STEPS = 1500


def table(n_tasks=N_TASKS, n_workers=6, seed=0):
    """Annotations of three classes, some tasks with one and others with many, in no order."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)
    task, worker = np.indices((n_tasks, n_workers)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.5, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, 3, len(task)))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return frame[rng.random(len(frame)) < 0.7].sample(frac=1, random_state=seed)


def scanned(folder, frame, **options):
    frame.to_parquet(folder / "a.parquet", index=False)
    return cp.scan(folder / "a.parquet", **options)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A story fitted by SVI to some twenty chunks, and in memory by minibatches of as many tasks."""
    frame = table()
    in_memory = cp.Annotations.from_frame(
        frame, tasks=sorted(set(frame["task"])), workers=list(dict.fromkeys(frame["worker"]))
    )
    options = {"method": "svi", "max_iterations": STEPS, "progress": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "LEAST_ROWS", 400)
        streamed = cp.fit("dawid_skene", scanned(tmp_path_factory.mktemp("scan"), frame), **options)
    batch_size = in_memory.n_tasks // streamed.source.n_batches
    return streamed, cp.fit("dawid_skene", in_memory, batch_size=batch_size, **options)


@pytest.mark.slow
def test_its_draws_are_those_of_minibatches_in_memory(pair):
    streamed, expected = pair
    assert 10 < streamed.source.n_batches < 40
    assert streamed.has_draws
    assert streamed.draws["confusion"].sizes["draw"] == 1000
    for site in ("confusion", "prevalence"):
        found, other = streamed.draws[site], expected.draws[site].sel(streamed.draws[site].coords)
        spread = other.std("draw")
        # Steps are noisy to the end, so that either guide stands a part of its own spread away from the optimum.
        assert float((abs(found.mean(("chain", "draw")) - other.mean(("chain", "draw"))) / spread).max()) < 1.0
        ratio = found.std("draw") / spread
        assert float(ratio.min()) > 0.7
        assert float(ratio.max()) < 1.4


@pytest.mark.slow
def test_label_probabilities_are_averages_over_draws(pair):
    streamed, expected = pair
    labels = pd.concat(list(streamed.iter_labels()))
    found = labels.filter(like="p_").to_numpy()
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found, expected.posterior, atol=0.12)  # twenty draws of one guide, a thousand of another
    assert np.abs(found - expected.posterior).mean() < 0.01
    assert (labels["label"].to_numpy() == expected.labels["label"].to_numpy()).mean() > 0.99
    assert (streamed.workers["accuracy"] - expected.workers["accuracy"]).abs().max() < 0.02
    for end in ("_low", "_high"):  # the same guide's quantiles, but for the noise of its steps
        assert (streamed.workers[f"accuracy{end}"] - expected.workers[f"accuracy{end}"]).abs().max() < 0.03
    assert (streamed.workers["spammer_score_low"] < streamed.workers["spammer_score_high"]).all()
    assert (streamed.workers["spammer_score"] - expected.workers["spammer_score"]).abs().max() < 0.02
    for text in ("fitted by SVI, streaming", f"{STEPS:,} steps", "1,000 draws"):
        assert text in repr(streamed)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "LEAST_ROWS", 400)
    scan = scanned(tmp_path, table(400))
    options = {"method": "svi", "max_iterations": 25, "draws": 5, "progress": False}
    whole = cp.fit("one_coin", scan, **options)
    with monkeypatch.context() as patch:
        move_on, done = climber.move_on, []

        def stops(*arguments):
            if len(done) == (online_em.PASSES + 2) * whole.source.n_batches + 1:  # in the third pass of SVI
                raise KeyboardInterrupt
            done.append(1)
            return move_on(*arguments)

        patch.setattr(climber, "move_on", stops)
        with pytest.raises(KeyboardInterrupt):
            cp.fit("one_coin", scan, folder=tmp_path / "fit", **options)
    with monkeypatch.context() as patch:
        patch.setattr(online_em, "start", None)  # where it began is kept
        resumed = cp.fit("one_coin", scan, folder=tmp_path / "fit", **options)
    assert len(whole.history) == 25
    assert resumed.history.tolist() == whole.history.tolist()
    np.testing.assert_array_equal(resumed.outcome.draws["ability"], whole.outcome.draws["ability"])
    other = cp.fit("one_coin", scan, seed=1, **options)
    assert other.history.tolist() != whole.history.tolist()
    with pytest.raises(cp.StorageError, match=r"not the same options: .*step"):
        cp.fit("one_coin", scan, folder=tmp_path / "fit", progress=False)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("name", ["hierarchical_dawid_skene", pytest.param("annotator_groups", marks=pytest.mark.slow)])
def test_stories_with_real_parameters_and_derived_quantities_have_draws_too(tmp_path, name):
    frame = table(200)
    fit = cp.fit(name, scanned(tmp_path, frame), method="svi", max_iterations=150, draws=40, progress=False)
    assert np.isfinite(fit.history).all()
    assert fit.history.iloc[-20:].mean() < fit.history.iloc[:20].mean()
    assert all(values.sizes["draw"] == 40 for values in fit.draws.values())
    for values in fit.derived.values():
        assert np.isfinite(values).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_guide_that_is_a_point_has_no_draws(tmp_path):
    fit = cp.fit(
        "one_coin", scanned(tmp_path, table(200)), method="svi", guide="delta", max_iterations=50, progress=False
    )
    assert not fit.has_draws
    assert fit.outcome.draws["ability"].shape[:2] == (1, 1)


def test_more_draws_than_memory_holds_are_refused_with_how_many_it_does(tmp_path):
    scan = scanned(tmp_path, table(200), memory="4MiB")
    with pytest.raises(cp.StoryError, match=r"draws=100000: each draw of dawid_skene's parameters takes .*give draws="):
        cp.fit("dawid_skene", scan, method="svi", draws=100_000, progress=False)


def test_a_step_takes_no_more_memory_for_more_tasks_and_no_more_than_is_allowed(tmp_path):
    settings, needed = SVISettings(), []
    model = Model(STORIES["dawid_skene"], {})
    for n_tasks in (4_000, 16_000):
        store = open_store(scanned(tmp_path, table(n_tasks)))
        source = suited_files(model, store, 2**20, partial(em.bytes_needed, model))
        values, key = parameter_shapes(model, source.like), jax.random.key(0)
        of_story = svi.climber_of(model, source, values, key, settings)
        state = jax.eval_shape(svi.SVIClimber.init, of_story, InMemory(source.like), key)
        given = (of_story, source.like, source.like, state)
        memory = climber.move_on.program(*given).lower(*given).compile().memory_analysis()
        needed.append(memory.temp_size_in_bytes + memory.argument_size_in_bytes)
        assert needed[-1] <= 2**20
    assert needed[1] < 1.5 * needed[0]
