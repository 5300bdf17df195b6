"""EM over chunks of a scan gives what EM gives in memory, goes on where it stopped, and refuses what it cannot do."""

import re
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.data.store import open_store
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import climber, em, looks
from crowdppl.inference.engines.em_climber import EMState
from crowdppl.inference.engines.settings import EMSettings
from crowdppl.inference.findings.look import look_at
from crowdppl.inference.fitted import averaged_labels
from crowdppl.inference.fitted import fitted as fitted_module
from crowdppl.inference.sources import on_disk
from crowdppl.inference.sources.on_disk import Files, suited_files
from crowdppl.inference.storage import label_files
from crowdppl.models import STORIES, Confusion

ITERATIONS = 12
GROW = {"glad", "item_response"}  # stories that have a parameter for each task
UNLIKE = ("dawid_skene", "difficulty", "annotator_groups", "score_factor")
STREAMED = [
    *((name, {}) for name in UNLIKE),
    *(
        pytest.param(*options, marks=pytest.mark.slow)
        for options in [
            *((name, {}) for name in STORIES if name not in GROW.union(UNLIKE)),
            ("item_response", {"difficulty": False}),
            ("annotator_groups", {"membership": "worker"}),
            ("annotator_groups", {"truth": "answer"}),
            ("difficulty", {"votes_as_prior": False, "by_class": True}),
            ("common_individual", {"separation": 0.5}),
            ("dawid_skene", {"truth_prior": cp.Prevalence((2.0, 3.0))}),
        ]
    ),
]


def table(n_classes=2, n_tasks=60, n_workers=6, seed=0):
    """Annotations that are right more often than not, in no order, some tasks with one and others with many."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task, worker = np.indices((n_tasks, n_workers)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.5, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return frame[rng.random(len(frame)) < 0.7].sample(frac=1, random_state=seed)


def written(tmp_path, frame, **options):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    return cp.scan(tmp_path / "a.parquet", **options)


def in_memory(frame, **options):
    """The annotations with tasks in ascending order, as a scan has them."""
    return cp.Annotations.from_frame(frame, tasks=sorted(set(frame["task"])), **options)


@pytest.mark.parametrize(
    ("name", "options"), STREAMED, ids=lambda value: value if isinstance(value, str) else str(value)
)
def test_every_story_is_fitted_as_in_memory(tmp_path, name, options):
    frame, settings = table(), EMSettings(max_iterations=ITERATIONS)
    model, key = Model(STORIES[name], options), jax.random.key(3)
    store = open_store(written(tmp_path, frame))
    with jax.enable_x64(True):  # so that rounding explains no difference
        expected = em.run(model, in_memory(frame), key, settings, progress=False)
        source = Files(store, store.plan(40), model)
        passes: list[EMState] = []
        found = em.run(model, source, key, settings, progress=False, after=passes.append)
    assert source.n_batches > 5
    assert passes[-1].iteration == len(expected.history) - 1
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-6)
    for site, value in expected.draws.items():
        np.testing.assert_allclose(found.draws[site], value, rtol=1e-6, atol=1e-9, err_msg=site)
    assert found.facts == pytest.approx(expected.facts, rel=1e-3)


def test_steps_that_go_too_far_are_halved_as_in_memory(tmp_path):
    frame, settings = table(), EMSettings(max_iterations=ITERATIONS, learning_rate=3.0)
    model, key = Model(STORIES["item_response"], {"difficulty": False}), jax.random.key(0)
    store = open_store(written(tmp_path, frame))
    passes = []
    with jax.enable_x64(True):
        expected = em.run(model, in_memory(frame), key, settings, progress=False)
        source = Files(store, store.plan(40), model)
        found = em.run(model, source, key, settings, progress=False, after=passes.append)
    assert len(passes) > len(found.history) + 1  # the start's pass, one for each step, and those that were in vain
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-9)
    assert (np.diff(found.history) >= 0).all()


def test_a_fit_without_worker_names_and_with_counts_is_that_in_memory(tmp_path):
    frame = table(3).drop(columns="worker").assign(n=lambda rows: 1 + np.arange(len(rows)) % 3)
    fit = cp.fit("annotator_groups", written(tmp_path, frame, worker=None, count="n"), progress=False)
    expected = cp.fit("annotator_groups", in_memory(frame, worker=None, count="n"), progress=False)
    assert fit.n_annotations == frame["n"].sum()
    np.testing.assert_allclose(fit.outcome.history[-1], expected.outcome.history[-1], rtol=1e-5)
    labels = pd.concat(list(fit.iter_labels()))
    np.testing.assert_allclose(labels.filter(like="p_"), expected.posterior, atol=2e-4)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A streamed fit in many chunks, and the same in memory."""
    frame = table(3, n_tasks=200)
    options = {"max_iterations": 40, "progress": False, "sweeps": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "MOST_ROWS", 100)
        patch.setattr(on_disk, "LEAST_ROWS", 50)
        scan = written(tmp_path_factory.mktemp("scan"), frame)
        streamed = cp.fit("annotator_groups", scan, membership="worker", seed=1, **options)
    expected = cp.fit("annotator_groups", in_memory(frame), membership="worker", seed=1, **options)
    return streamed, expected


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_labels_workers_and_derived_quantities_are_those_in_memory(pair):
    streamed, expected = pair
    assert isinstance(streamed, cp.Fit)
    assert streamed.source.n_batches > 5
    labels = pd.concat(list(streamed.iter_labels()))
    pd.testing.assert_frame_equal(
        labels[["label", "probability", "entropy"]], expected.labels, check_exact=False, atol=2e-3, check_dtype=False
    )
    np.testing.assert_allclose(labels.filter(like="p_"), expected.posterior, atol=2e-3)
    (whole,) = expected.iter_labels()
    assert list(whole) == list(labels)
    for name in ("n_tasks", "n_workers", "n_annotations", "classes"):
        assert getattr(streamed, name) == getattr(expected, name)
    pd.testing.assert_frame_equal(streamed.class_totals, expected.class_totals, rtol=1e-3, check_dtype=False)
    np.testing.assert_allclose(streamed.confusion_matrices, expected.confusion_matrices, atol=2e-3)
    workers = streamed.workers  # without intervals
    pd.testing.assert_frame_equal(
        workers, expected.workers[list(workers)], check_exact=False, atol=2e-3, check_dtype=False, check_names=False
    )
    assert set(streamed.derived) == set(expected.derived)
    shares = (np.sort(fit.derived["group_share"]) for fit in pair)
    np.testing.assert_allclose(*shares, atol=2e-3)
    for text in ("annotator_groups", "200 tasks", "6 workers", "3 classes", "chunks"):
        assert text in repr(streamed)
    assert "mean_probability" in str(streamed.summary())


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A streamed fit in several chunks, of two passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "MOST_ROWS", 100)
        patch.setattr(on_disk, "LEAST_ROWS", 50)
        scan = written(tmp_path_factory.mktemp("scan"), table(3))
        with warnings.catch_warnings(action="ignore", category=cp.ConvergenceWarning):
            return cp.fit("dawid_skene", scan, max_iterations=2, progress=False)


PROPERTIES_IN_MEMORY = {
    *("annotations", "beats", "expected", "labels", "probabilities", "posterior", "entropies", "tasks", "ranking"),
    *("posterior_of_workers", "with_uncertainty", "modes", "mode_labels", "models", "idata", "n_mixture_draws"),
    *("given", "totals", "questions", "shares_errors"),
}
VIEWS_IN_MEMORY = [
    *(cp.plot_workers, cp.plot_confusions, cp.error_correlation, cp.score, cp.worker_divergences),
    *(cp.check, cp.without_workers, lambda fit: cp.next_annotations(fit, 1), lambda fit: cp.label_error_bound(fit, 3)),
    *(cp.Fit.decide, cp.Fit.update, cp.Fit.log_likelihood, cp.Fit.derived_draws, cp.Fit.gold_scores, cp.Fit.to_idata),
    *(cp.Fit.task_scores, cp.Fit.confusions, cp.Fit.extreme_confusions, cp.Fit.posterior_predictive),
    *(lambda fit: fit.save("x"), lambda fit: fit.report("x.html"), lambda fit: fit.pseudonymised(b"k" * 16)),
    *(lambda fit: fit.predict_proba([[0.0]]), lambda fit: fit.new_worker_confusions([[0.0]])),
    *(lambda fit: fit.join(pd.DataFrame({"task": [0]})), lambda fit: fit.write_labels("x.csv", to="csv")),
]


def test_what_stays_on_the_disk_says_where_it_is_to_be_had(streamed):
    said = r"needed in memory.*Annotations\.from_parquet\(path\).*iter_labels\(\).*write_labels\(path\).*folder=…\)"
    for view in VIEWS_IN_MEMORY:
        with pytest.raises(TypeError, match=said):
            view(streamed)
    known = {name for name in dir(cp.Fit) if not name.startswith("_") and not callable(getattr(cp.Fit, name))}
    refused = {name for name in known if not hasattr(streamed, name)}
    assert refused == PROPERTIES_IN_MEMORY
    for name in refused:
        with pytest.raises(AttributeError, match=said):
            getattr(streamed, name)
    with pytest.raises(AttributeError, match="no attribute 'lables'"):
        streamed.lables  # noqa: B018


def test_labels_are_written_as_a_data_set_or_not_at_all(streamed, tmp_path, monkeypatch):
    folder = streamed.write_labels(tmp_path / "labels")
    found = pd.read_parquet(folder)
    expected = pd.concat(list(streamed.iter_labels()))
    pd.testing.assert_frame_equal(found.set_index("task"), expected)
    assert found["task"].is_monotonic_increasing
    with pytest.raises(cp.StorageError, match="has something in it"):
        streamed.write_labels(tmp_path / "labels")
    frames = label_files.iter_labels

    def broken(fit):
        yield next(frames(fit))
        raise KeyboardInterrupt

    monkeypatch.setattr(label_files, "iter_labels", broken)
    with pytest.raises(KeyboardInterrupt):
        streamed.write_labels(tmp_path / "others")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels"]


def interrupted_after(monkeypatch, n_passes):
    """Interrupt the fit in the pass after so many."""
    look_over, done = looks.look_over, []

    def stops(*arguments, **options):
        if len(done) == n_passes:
            raise KeyboardInterrupt
        done.append(1)
        return look_over(*arguments, **options)

    for module in (climber, em):
        monkeypatch.setattr(module, "look_over", stops)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("name", ["dawid_skene", "worker_clusters"])  # an exact M-step, and one that is judged
@pytest.mark.parametrize("n_passes", [4])
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch, name, n_passes):
    monkeypatch.setattr(on_disk, "MOST_ROWS", 60)
    monkeypatch.setattr(on_disk, "LEAST_ROWS", 50)
    options = {"max_iterations": 6, "progress": False}
    scan = written(tmp_path, table(3))
    whole = cp.fit(name, scan, **options)
    with monkeypatch.context() as patch:
        interrupted_after(patch, n_passes)
        with pytest.raises(KeyboardInterrupt):
            cp.fit(name, scan, folder=tmp_path / "fit", **options)
    with monkeypatch.context() as patch:
        interrupted_after(patch, len(whole.history) + 3)
        resumed = cp.fit(name, scan, folder=tmp_path / "fit", **options)
    assert resumed.history.tolist() == whole.history.tolist()
    for site, value in whole.outcome.draws.items():
        np.testing.assert_array_equal(resumed.outcome.draws[site], value)
    with monkeypatch.context() as patch:
        interrupted_after(patch, 0)  # what is finished takes no pass
        again = cp.fit(name, scan, folder=tmp_path / "fit", **options)
    assert again.history.tolist() == whole.history.tolist()


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_folder_of_another_fit_is_refused_and_more_iterations_go_on(tmp_path):
    scan, folder = written(tmp_path, table(3)), tmp_path / "fit"
    cp.fit("one_coin", scan, folder=folder, max_iterations=2, progress=False)
    more = cp.fit("one_coin", scan, folder=folder, max_iterations=4, progress=False)
    assert len(more.history) == 5
    for story, options, said in [
        ("mace", {}, "not the same story"),
        ("one_coin", {"right": 3.0}, r"not the same hyperparameters: right .* 3\.0 now"),
        ("one_coin", {"seed": 1}, "not the same seed"),
    ]:
        with pytest.raises(cp.StorageError, match=f"holds another fit.*{said}.*name another folder"):
            cp.fit(story, scan, folder=folder, progress=False, **options)
    with pytest.raises(cp.StorageError, match="not the same files"):
        cp.fit("one_coin", written(tmp_path, table(3, seed=1)), folder=folder, progress=False)
    (folder / "checkpoint.npz").write_bytes(b"half")
    with pytest.raises(cp.StorageError, match=r"checkpoint\.npz is damaged"):
        cp.fit("one_coin", written(tmp_path, table(3, seed=1)), folder=folder, progress=False)


@pytest.mark.parametrize(
    ("story", "options", "said"),
    [
        ("glad", {}, "'difficulty' has a value for each task"),
        ("item_response", {}, "'difficulty' has a value for each task"),
        ("difficulty", {"votes": np.full((60, 2), 0.5)}, "difficulty(votes=…) has a value for each task"),
        ("dawid_skene", {"method": "nuts"}, "method='nuts'"),
        ("dawid_skene", {"method": "svi", "step": "stochastic"}, "step='stochastic'"),
        ("dawid_skene", {"method": "svi", "batch_size": 10}, "batch_size=10 would be ignored"),
        ("dawid_skene", {"method": "svi", "epochs": 10}, "epochs=10 would be ignored"),
        ("dawid_skene", {"method": "svi", "guide": "flat"}, "unknown guide 'flat'"),
        ("auto", {}, "story='auto'"),
        ("majority_vote", {}, "story='majority_vote' labels annotations in memory"),
        ("dawid_skene", {"classifier": "logistic"}, "classifier="),
        ("dawid_skene", {"classifier": "mlp"}, "classifier="),
        ("dawid_skene", {"truth_prior": np.full((60, 2), 0.5)}, "truth_prior="),
        ("dawid_skene", {"gold": {0: 1}}, "gold="),
        ("dawid_skene", {"batch_size": 10}, "batch_size=10 would be ignored"),
        ("dawid_skene", {"restarts": 3}, "restarts=3 would be ignored"),
        ("dawid_skene", {"epochs": 3}, "epochs=3 would be ignored"),
        ("dawid_skene", {"backend": "pyro"}, "backend='pyro'"),
        ("dawid_skene", {"devices": "all"}, "devices='all'"),
        ("dawid_skene", {"step": "stochastic", "max_iterations": 5}, "max_iterations=5 would be ignored"),
        ("dawid_skene", {"step": "stochastic", "held_out": 0.1}, "held_out=0.1 would be ignored"),
        ("dawid_skene", {"step": "fast"}, "unknown value of step 'fast'"),
        ("dawid_skene", {"itertions": 3}, "unknown option 'itertions'"),
    ],
)
def test_what_a_scan_cannot_be_fitted_with_is_refused(tmp_path, story, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        cp.fit(story, written(tmp_path, table()), progress=False, **options)


def test_a_folder_is_for_scans_alone(tmp_path):
    with pytest.raises(ValueError, match=r"folder=.*annotations in memory"):
        cp.fit("one_coin", in_memory(table()), folder=tmp_path)


def from_first_votes(annotations):
    """A story whose start looks at the annotations by itself."""
    n_classes = annotations.n_classes
    shares = jnp.bincount(annotations.label, weights=annotations.count, length=n_classes)
    with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        rows = dist.Dirichlet(jnp.ones(n_classes))
        begin = jnp.broadcast_to(shares / shares.sum(), (annotations.n_workers, n_classes, n_classes))
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["annotation"], "start": lambda key: begin})
    with cp.tasks(annotations) as truth:
        cp.observe(truth, Confusion(confusion), annotations)


def plain(annotations):
    """A story of a user's own that keeps the contract."""
    n_classes = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        rows = dist.Dirichlet(jnp.ones(n_classes) + jnp.eye(n_classes))
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["annotation"]})
    with cp.tasks(annotations) as truth:
        cp.observe(truth, Confusion(confusion), annotations)


def test_a_story_of_ones_own_is_fitted_unless_it_reads_all_annotations_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "MOST_ROWS", 60)
    monkeypatch.setattr(on_disk, "LEAST_ROWS", 50)
    frame = table(3)
    fit = cp.fit(plain, written(tmp_path, frame), progress=False)
    expected = cp.fit(plain, in_memory(frame), progress=False)
    np.testing.assert_allclose(fit.outcome.history[-1], expected.outcome.history[-1], rtol=1e-5)
    with pytest.raises(cp.StoryError, match="the start of 'confusion'"):
        cp.fit(from_first_votes, written(tmp_path, frame), progress=False)


def test_too_little_memory_is_refused_before_the_fit_starts(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n_rows = 20_000
    columns = {
        "task": np.arange(n_rows) // 5,
        "worker": rng.integers(0, 5000, n_rows),
        "label": rng.integers(0, 20, n_rows),
    }
    scan = written(tmp_path, pd.DataFrame(columns), memory="20MiB")
    monkeypatch.setattr(em, "look_over", None)
    with pytest.raises(
        cp.StoryError, match=r"needs about .* MiB.*4,909 workers.*memory=20\.0 MiB.*'confusion' \(4909, 20"
    ):
        cp.fit("dawid_skene", scan, progress=False)


def test_chunks_shrink_to_the_memory_and_need_no_more_for_more_tasks(tmp_path):
    needed = []
    for n_tasks in (4_000, 16_000):
        store = open_store(written(tmp_path, table(2, n_tasks)))
        model = Model(STORIES["dawid_skene"], {})
        source = suited_files(model, store, 2**20, partial(em.bytes_needed, model))
        needed.append(em.bytes_needed(model, source))
        assert needed[-1] <= 2**20
        assert source.n_batches > 1
    assert needed[1] < 1.5 * needed[0]  # chunks are as even as they come, so that their size differs a little


def test_sums_over_many_chunks_keep_what_single_precision_would_lose():
    one = looks.Sums({}, {}, jnp.float32(1.0))
    running = looks.Running(
        one._replace(log_likelihood=jnp.float32(2.0**24)), one._replace(log_likelihood=jnp.float32(0))
    )

    @jax.jit
    def add(running):
        total = jax.tree.map(jnp.add, running.total, one)
        return looks.Running(total, jax.tree.map(looks.lost, running.lost, running.total, one, total))

    for _ in range(100):
        running = add(running)
    assert float(running.total.log_likelihood) + float(running.lost.log_likelihood) == 2**24 + 100


@pytest.fixture
def many_chunks(tmp_path, monkeypatch):
    """A scan of 4,000 tasks that is read in some 40 chunks."""
    monkeypatch.setattr(on_disk, "LEAST_ROWS", 400)
    return written(tmp_path, table(3, n_tasks=4000))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("name", ["dawid_skene", "hierarchical_dawid_skene"])  # tables, and real-valued parameters
def test_a_few_passes_of_stochastic_steps_end_near_exact_ones(many_chunks, name):
    exact = cp.fit(name, many_chunks, progress=False, max_iterations=60, tolerance=1e-7)
    start = exact.history.iloc[0]
    best = exact.history.iloc[-1]
    found = cp.fit(name, many_chunks, progress=False, step="stochastic", epochs=6)
    assert found.source.n_batches > 30
    assert len(found.history) == 7  # of six passes, and of the parameters in the end
    assert best - found.history.iloc[-1] < 0.02 * (best - start)  # all but a fiftieth of the way is gone
    if name != "dawid_skene":  # which exact steps fit in ten passes; real-valued parameters take them hundreds
        assert found.history.iloc[-1] > exact.history.iloc[4 * len(found.history)]
    labels, expected = (pd.concat(list(fit.iter_labels()))["label"] for fit in (found, exact))
    assert (labels == expected).mean() > 0.99


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_an_interrupted_stochastic_fit_goes_on_to_the_same_bits(many_chunks, tmp_path):
    options = {"step": "stochastic", "progress": False}
    whole = cp.fit("dawid_skene", many_chunks, epochs=3, **options)
    cp.fit("dawid_skene", many_chunks, folder=tmp_path / "fit", epochs=1, **options)
    resumed = cp.fit("dawid_skene", many_chunks, folder=tmp_path / "fit", epochs=3, **options)
    assert resumed.history.tolist() == whole.history.tolist()
    np.testing.assert_array_equal(resumed.outcome.draws["confusion"], whole.outcome.draws["confusion"])
    with pytest.raises(cp.StorageError, match=r"not the same options: .*step"):
        cp.fit("dawid_skene", many_chunks, folder=tmp_path / "fit", progress=False)


def test_stochastic_steps_on_one_chunk_say_that_exact_ones_are_better(tmp_path):
    fit = cp.fit("one_coin", written(tmp_path, table()), step="stochastic", progress=False)
    assert fit.source.n_batches == 1
    (finding,) = findings_of(fit, "one_chunk")
    assert finding.values == {"rows": 247}
    assert "leave out step" in finding.remedy


def rare_second_class(annotations):
    """Truth prior: one task of a billion is of the second class."""
    return np.log(np.array([1 - 1e-9, 1e-9]))


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_sample_that_checks_look_at_tells_how_many_annotations_there_are_in_all(tmp_path, monkeypatch):
    """What says how thin the data are would else take the sample's annotations for all."""
    monkeypatch.setattr(averaged_labels, "FEW_ROWS", 0)
    monkeypatch.setattr(averaged_labels, "THIN", 30)
    monkeypatch.setattr(fitted_module, "LOOKED_AT", 400)
    frame = table(n_tasks=80, n_workers=60)
    fit = cp.fit("dawid_skene", written(tmp_path, frame), progress=False).fitted
    looked_at = fit.in_memory
    assert looked_at.annotations.n_annotations < len(frame)
    (told,) = [found.values for found in look_at(looked_at) if found.code == "labels_at_mode"]
    assert told["per_parameter"] == pytest.approx(len(frame) / (2 * 60 + 1))


def test_a_lost_class_is_said_by_its_share_as_in_memory_by_agreement(tmp_path):
    frame = table()
    options = {"truth_prior": rare_second_class, "max_iterations": 3, "progress": False}
    streamed = cp.fit("one_coin", written(tmp_path, frame), **options)
    expected = cp.fit("one_coin", in_memory(frame), **options)
    (lost,), (in_a_scan,) = findings_of(expected, "lost_class"), findings_of(streamed, "lost_class")
    assert in_a_scan.values["class"] == lost.values["class"]
    assert in_a_scan.remedy == lost.remedy
    assert not findings_of(cp.fit("one_coin", written(tmp_path, frame)), "lost_class")
