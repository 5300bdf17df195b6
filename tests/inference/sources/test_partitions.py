"""Frames of Dask, Spark and Ray are fitted where their partitions are, to what a fit in memory gives."""

import os
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.partitions import PartitionsError, n_partitions, partitions_of
from crowdppl.inference.engines import checkpoints
from crowdppl.inference.sources import partitioned
from crowdppl.models import STORIES, Confusion

ENGINES = ("dask", "spark", "ray")
QUIET = {"progress": False, "max_iterations": 8, "tolerance": 0.0}
GROW = {"glad", "item_response"}  # stories that have a parameter for each task
OTHERS = [name for name in STORIES if name not in GROW | {"dawid_skene", "difficulty"}]


def table(n_classes=3, n_tasks=120, n_workers=7, seed=0):
    """Annotations that are right more often than not, in no order, so that every partition has rows of most tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task, worker = np.indices((n_tasks, n_workers)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.5, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    frame = pd.DataFrame({"task": [f"t{t}" for t in task], "worker": [f"w{w}" for w in worker], "label": label})
    frame["label"] = frame["label"].map(dict(enumerate("abcdefgh")))
    return frame[rng.random(len(frame)) < 0.6].sample(frac=1, random_state=seed, ignore_index=True)


@pytest.fixture(scope="session")
def dask():
    """Make a Dask frame of a table."""
    frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")
    return lambda frame: frames.from_pandas(frame, npartitions=3)


@pytest.fixture(scope="session")
def spark():
    """Make a Spark frame of a table, in local mode with two threads and four tries."""
    sql = pytest.importorskip("pyspark.sql", reason="the extra spark is not installed")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("Spark needs Java, such as Debian's default-jre-headless")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {"spark.ui.enabled": "false", "spark.log.level": "OFF"}
    session = sql.SparkSession.builder.master("local[2,4]").config(map=options).getOrCreate()
    yield lambda frame: session.createDataFrame(frame).repartition(3)
    session.stop()


@pytest.fixture(scope="session")
def ray():
    """Make a Ray dataset of a table."""
    package = pytest.importorskip("ray", reason="the extra ray is not installed")
    data = pytest.importorskip("ray.data", reason="the extra ray is not installed")
    package.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=2**28)
    yield lambda frame: data.from_pandas([frame[part::3] for part in range(3)])
    package.shutdown()


@pytest.fixture
def made(request):
    """Make a frame of the engine that the test names."""
    return request.getfixturevalue(request.param)


def collected(frame):
    """The rows of an engine's frame."""
    return partitions_of(frame).collected().to_pandas()


def in_memory(frame, fit, **options):
    """The annotations with tasks, workers and classes in the order that a fit has them."""
    files = fit.source
    tasks = [task for part in files.plan.slices for task in files.store.tasks(part)]
    return cp.Annotations.from_frame(
        frame, tasks=tasks, workers=list(files.workers), classes=list(files.classes), **options
    )


def assert_equal(frame, fit, story, **options):
    """Hold a fit to that in memory, to 1e-8 in double precision; clusters have no order of their own."""
    expected = cp.fit(story, in_memory(frame, fit), **options)
    np.testing.assert_allclose(fit.outcome.history, expected.outcome.history, rtol=1e-8)
    for site in expected.outcome.draws:
        one, other = (by_size(each, site) for each in (fit.outcome.draws, expected.outcome.draws))
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8, err_msg=site)
    return expected


def by_size(draws, site):
    """Draws of a site, of the clusters of worker_clusters from the smallest on."""
    if site not in ("weights", "cluster_logits"):
        return draws[site]
    return np.asarray(draws[site])[:, :, np.asarray(draws["weights"])[0, 0].argsort()]


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_a_frame_is_fitted_as_in_memory_and_labels_are_a_frame_of_its_engine(made):
    frame = table()
    given = made(frame)
    with jax.enable_x64(True):
        fit = cp.fit("dawid_skene", given, **QUIET)
        expected = assert_equal(frame, fit, "dawid_skene", **QUIET)
        labels = fit.labels
        assert type(labels).__module__.split(".")[0] == type(given).__module__.split(".")[0]
        labels = collected(labels).set_index("task").loc[expected.labels.index]
    assert 2 <= fit.source.n_batches <= 3
    assert labels["label"].tolist() == expected.labels["label"].tolist()
    np.testing.assert_allclose(labels.filter(like="p_"), expected.posterior, atol=1e-8)
    np.testing.assert_allclose(labels["entropy"], expected.labels["entropy"], atol=1e-7)
    workers = expected.workers.loc[fit.workers.index]
    assert fit.workers["annotations"].tolist() == workers["annotations"].tolist()
    np.testing.assert_allclose(fit.workers["accuracy"], workers["accuracy"], atol=1e-8)


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_labels_of_thin_data_are_averaged_over_draws_as_in_memory(made, monkeypatch):
    monkeypatch.setattr("crowdppl.inference.fitted.averaged_labels.THIN", 30)  # as users have it
    frame = table()
    with jax.enable_x64(True):
        fit = cp.fit("dawid_skene", made(frame), **QUIET)
        expected = assert_equal(frame, fit, "dawid_skene", **QUIET)
        at_mode = cp.fit("dawid_skene", in_memory(frame, fit), sweeps=0, **QUIET).posterior
        labels = collected(fit.labels).set_index("task").loc[expected.labels.index].filter(like="p_")
    assert fit.outcome.facts["sweeps"] == expected.outcome.facts["sweeps"] > 0
    np.testing.assert_allclose(labels, expected.posterior, atol=1e-8)
    assert abs(labels - at_mode).to_numpy().max() > 0.02


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_steps_of_other_parameters_than_tables_are_those_in_memory(made):
    frame = table(2)
    with jax.enable_x64(True):
        fit = cp.fit("difficulty", made(frame), **QUIET)
        assert_equal(frame, fit, "difficulty", **QUIET)


@pytest.mark.slow
@pytest.mark.parametrize("story", OTHERS)
def test_every_story_is_fitted_as_in_memory(dask, story):
    frame = table(2)
    with jax.enable_x64(True):
        fit = cp.fit(story, dask(frame), **QUIET)
        assert_equal(frame, fit, story, **QUIET)


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_a_story_of_a_users_own_goes_to_the_partitions(made):
    import numpyro
    import numpyro.distributions as dist

    from crowdppl.models import observe, tasks

    def shared_table(annotations, truth_prior=None):
        """One confusion matrix for the whole crowd."""
        n_classes = annotations.n_classes
        with numpyro.plate("class", n_classes, dim=-1):
            table = numpyro.sample("table", dist.Dirichlet(1.0 + jnp.eye(n_classes)))
        with tasks(annotations, truth_prior) as truth:
            tables = jnp.broadcast_to(table, (annotations.n_workers, n_classes, n_classes))
            observe(truth, Confusion(tables), annotations)

    frame = table()
    with jax.enable_x64(True):
        fit = cp.fit(shared_table, made(frame), **QUIET)
        assert_equal(frame, fit, shared_table, **QUIET)


def failing_at(call, counter, kills):
    """What sums a partition, but fails in one of its calls, and in no later one."""
    real = partitioned.summed

    def failing(*args):
        with Path(counter).open("ab") as file:
            file.write(b".")
        if Path(counter).stat().st_size == call:
            if kills:
                os._exit(1)
            raise RuntimeError("a lost worker")
        return real(*args)

    return failing


@pytest.mark.parametrize("made", ["spark", "ray"], indirect=True)
def test_a_process_of_the_engine_that_dies_midway_changes_nothing(made, tmp_path, monkeypatch):
    frame, counter = table(), str(tmp_path / "calls")
    monkeypatch.setattr(partitioned, "summed", failing_at(12, counter, kills=True))
    with jax.enable_x64(True):
        fit = cp.fit("dawid_skene", made(frame), **QUIET)
        assert_equal(frame, fit, "dawid_skene", **QUIET)
    assert Path(counter).stat().st_size > 12


def test_a_fit_goes_on_from_its_last_pass_where_the_engine_gave_up(dask, tmp_path, monkeypatch):
    frame, counter, fits = table(), str(tmp_path / "calls"), []
    n_calls, real = [], partitioned.summed
    monkeypatch.setattr(checkpoints, "BRIEFLY", 0.0)  # so that also passes of milliseconds are kept
    with jax.enable_x64(True):
        with monkeypatch.context() as patch:
            patch.setattr(partitioned, "summed", failing_at(15, counter, kills=False))
            with pytest.raises(PartitionsError, match=r"Dask gave up on a pass.*a lost worker.*folder="):
                cp.fit("dawid_skene", dask(frame), folder=tmp_path / "fit", **QUIET)
        for folder in ("fit", "another"):
            calls = []
            monkeypatch.setattr(partitioned, "summed", lambda *args, calls=calls: [calls.append(1), real(*args)][1])
            fits.append(cp.fit("dawid_skene", dask(frame), folder=tmp_path / folder, **QUIET))
            n_calls.append(len(calls))
    assert fits[0].outcome.history.tolist() == fits[1].outcome.history.tolist()
    assert 0 < n_calls[0] < n_calls[1]


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_counts_rows_that_lack_a_value_and_no_workers(made):
    frame = table().drop(columns="worker").assign(n=lambda rows: 1 + np.arange(len(rows)) % 3)
    lacking = frame.copy()
    lacking.loc[[3, 50], "label"] = None
    columns = {"worker": None, "count": "n", "missing": "drop"}
    with jax.enable_x64(True):
        with pytest.warns(cp.data.errors.AnnotationWarning, match=f"left out 2 of {len(frame):,} rows"):
            fit = cp.fit("annotator_groups", cp.scan(made(lacking), **columns), **QUIET)
        kept = lacking.dropna()
        expected = cp.fit("annotator_groups", cp.Annotations.from_frame(kept, worker=None, count="n"), **QUIET)
    assert fit.n_annotations == kept["n"].sum()
    np.testing.assert_allclose(fit.outcome.history, expected.outcome.history, rtol=1e-8)
    assert sorted(collected(fit.labels)["task"]) == sorted(set(kept["task"]))


def test_labels_come_chunk_by_chunk_too(dask, tmp_path):
    frame = table()
    fit = cp.fit("dawid_skene", dask(frame), **QUIET)
    rows = pd.concat(list(fit.iter_labels()))
    there = collected(fit.labels).set_index("task").loc[rows.index]
    assert rows["label"].tolist() == there["label"].tolist()
    fit.write_labels(tmp_path / "labels")
    assert sorted(pd.read_parquet(tmp_path / "labels")["task"]) == sorted(set(frame["task"]))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda rows: rows.rename(columns={"label": "answer"}), {}, "no column 'label'.*answer"),
        (lambda rows: rows.assign(label=[None, *rows["label"][1:]]), {}, "column 'label': 1 of .*missing='drop'"),
        (lambda rows: rows.assign(worker=0.5), {}, "column 'worker': its values are real numbers; for worker="),
        (lambda rows: rows.assign(label=np.linspace(0, 1, len(rows))), {"classes": [0, 1]}, "is not in classes="),
        (lambda rows: rows.assign(label=np.linspace(0, 1, len(rows)).round(1)), {}, "0.1 is a fraction"),
        (lambda rows: rows.assign(label="a"), {}, "single class, 'a'"),
        (lambda rows: rows.assign(n=-1), {"count": "n"}, "a row of task 't.*': -1 is no number of annotations"),
        (lambda rows: rows.assign(n=0), {"count": "n"}, "column 'n' is 0 in every row"),
        (lambda rows: rows[:0], {}, "no row: no annotations"),
        (lambda rows: rows.assign(label=None), {"missing": "drop"}, "leaves no row"),
        (lambda rows: pd.concat([rows] * 3).assign(label=range(3 * len(rows))), {}, "more than 1,000 distinct values"),
        (lambda rows: rows, {"folder": "somewhere"}, "Dask keeps what is prepared; leave it out"),
    ],
)
def test_what_cannot_be_used_is_refused(dask, change, options, message):
    with pytest.raises(cp.AnnotationError, match=message):
        cp.fit("dawid_skene", cp.scan(dask(change(table())), **options), **QUIET)


@pytest.mark.parametrize("options", [{"method": "svi"}, {"step": "stochastic"}])
def test_engines_that_step_after_each_batch_are_refused(dask, options):
    with pytest.raises(ValueError, match=r"partitions are fitted by method='em' with step='exact'"):
        cp.fit("dawid_skene", dask(table()), progress=False, **options)


def test_memory_decides_how_large_the_batches_are(dask):
    frame = table(n_tasks=3000)
    small = cp.fit("dawid_skene", cp.scan(dask(frame), memory="2MiB"), **QUIET)
    large = cp.fit("dawid_skene", dask(frame), **QUIET)
    assert small.source.n_batches > large.source.n_batches == 3
    np.testing.assert_allclose(small.outcome.history, large.outcome.history, rtol=1e-5)


@pytest.mark.parametrize(
    ("n_rows", "n_slots", "expected"),
    [(10, 2, 2), (2**21, 1, 1), (2**21 + 1, 1, 2), (2**22 + 1, 2, 4), (10**9, 8, 480)],
)
def test_rows_are_shuffled_into_as_many_partitions_for_each_slot(n_rows, n_slots, expected):
    assert n_partitions(n_rows, n_slots) == expected


def test_a_frame_is_known_by_its_class_alone():
    assert partitions_of(table()) is None
    assert partitions_of("annotations.csv") is None


def test_a_scan_of_a_frame_says_what_it_reads(dask):
    assert repr(cp.scan(dask(table().rename(columns={"task": "item"})), task="item")) == (
        "Scan of a frame of Dask\n  columns  task = 'item', worker, label"
    )
