"""The command line on Parquet files that are streamed: what it writes, when it streams, and what it refuses."""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from command_line import crowdppl, refused

import crowdppl as cp
from crowdppl.data import scan as scanning
from crowdppl.inference import fit_story


@pytest.fixture
def folder(tmp_path):
    """Two files of annotations, in no order."""
    rng = np.random.default_rng(0)
    task, worker = np.indices((60, 5)).reshape(2, -1)
    label = np.where(rng.random(300) < 0.8, task % 2, rng.integers(0, 2, 300))
    frame = pd.DataFrame({"item": task, "worker": [f"w{j}" for j in worker], "label": np.array(["no", "yes"])[label]})
    frame = frame.sample(frac=1, random_state=0)
    (tmp_path / "crowd").mkdir()
    frame[:100].to_parquet(tmp_path / "crowd" / "a.parquet", index=False)
    frame[100:].to_parquet(tmp_path / "crowd" / "b.parquet", index=False)
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    return tmp_path


def test_a_folder_is_streamed_and_its_labels_are_those_of_python(folder):
    done = crowdppl("fit", folder / "crowd", "--task", "item", "--story", "one_coin", "--out", folder / "out")
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(folder / "out")) == ["labels", "parameters.nc", "workers.csv"]
    for text in ("one_coin fitted by EM, streaming", "60 tasks, 5 workers", "labels", "Parquet data set"):
        assert text in done.stdout
    found = pd.read_parquet(folder / "out" / "labels").set_index("task")
    fit = cp.fit("one_coin", cp.Annotations.from_parquet(folder / "all.parquet", task="item"), progress=False)
    assert found["label"].tolist() == fit.labels.loc[found.index, "label"].tolist()
    assert pd.read_csv(folder / "out" / "workers.csv").shape[0] == 5
    with xr.open_dataset(folder / "out" / "parameters.nc") as parameters:
        assert parameters["ability"].sizes["worker"] == 5
    again = crowdppl(
        "fit",
        f"{folder}/crowd/*.parquet",
        "--task",
        "item",
        "--story",
        "one_coin",
        "--out",
        folder / "out",
        "--overwrite",
    )
    assert again.exit_code == 0, again.output


def test_the_folder_of_a_streamed_fit_says_how_it_is_read(folder):
    command = ("fit", folder / "crowd", "--task", "item", "--story", "one_coin", "--set", "max_iterations=2")
    crowdppl(*command, "--out", folder / "out", "--work", folder / "work")
    with pytest.raises(cp.StorageError, match=r"results of a streamed fit.*read_parquet\(folder / 'labels'\)"):
        cp.load_fit(folder / "out")
    with pytest.raises(cp.StorageError, match=r"state of a streamed fit.*cp\.fit\(story, scan, folder=…\)"):
        cp.load_fit(folder / "work")


@pytest.mark.parametrize(
    ("work", "said"), [((), "with --work DIR the same command"), (("--work",), "goes on from what")]
)
def test_an_interrupted_fit_says_how_it_goes_on_also_where_it_is_quiet(folder, monkeypatch, work, said):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_story, "open_store", interrupted)
    work = (*work, folder / "work") if work else ()
    done = crowdppl("fit", folder / "crowd", "--task", "item", "--out", folder / "out", "-q", *work)
    assert done.exit_code == 130
    assert said in done.stderr
    assert not (folder / "out").exists()


def test_a_folder_is_fitted_by_svi_and_its_draws_are_kept(folder):
    command = ("fit", folder / "crowd", "--task", "item", "--story", "one_coin", "--method", "svi")
    done = crowdppl(*command, "--set", "max_iterations=200", "--set", "draws=30", "--out", folder / "out")
    assert done.exit_code == 0, done.output
    assert "one_coin fitted by SVI, streaming" in done.stdout
    with xr.open_dataset(folder / "out" / "parameters.nc") as draws:
        assert draws["ability"].sizes["draw"] == 30
        assert draws["ability"].sizes["worker"] == 5
    assert len(pd.read_parquet(folder / "out" / "labels")) == 60


def test_one_file_is_streamed_on_request_or_where_it_is_too_large(folder, monkeypatch):
    command = ("fit", folder / "all.parquet", "--task", "item", "--story", "one_coin", "--out")
    assert "streaming" not in crowdppl(*command, folder / "plain").stdout
    asked = crowdppl(*command, folder / "asked", "--stream", "--memory", "1GiB", "--work", folder / "work")
    assert "streaming" in asked.stdout
    assert (folder / "work" / "checkpoint.npz").exists()
    monkeypatch.setattr(scanning, "physical_memory", lambda: 2 * 300 * scanning.BYTES_IN_MEMORY - 2)
    assert "streaming" in crowdppl(*command, folder / "large").stdout
    assert "streaming" not in crowdppl(*command, folder / "not", "--no-stream").stdout


def test_what_a_streamed_fit_does_not_have_is_refused_with_the_option(folder):
    crowd, out = folder / "crowd", folder / "out"
    for options, said in [
        (("--method", "nuts"), "--method nuts needs the annotations in memory"),
        (("--story", "auto"), "--story auto needs the annotations in memory"),
        (("--repeats", "first"), "--repeats needs the annotations in memory"),
        (("--tidy",), "--tidy needs the annotations in memory"),
        (("--merge", "x=y"), "--merge needs the annotations in memory"),
        (("--question", "label"), "--question needs the annotations in memory"),
        (("--no-stream",), "--no-stream:"),
        (("--plot",), "--plot draws all workers of a fit in memory"),
        (("--memory", "much"), "--memory much: bytes"),
        (("--story", "glad"), "'difficulty' has a value for each task"),
    ]:
        assert said in refused("fit", crowd, "--task", "item", *options, "--out", out)
    assert "has no column 'task'" in refused("fit", crowd, "--out", out)
    text = folder / "crowd.csv"
    text.write_text("task,worker,label\n1,a,x\n")
    assert "--stream:" in refused("fit", text, "--stream", "--out", out)
    assert "--memory is the limit" in refused("fit", text, "--memory", "1GiB", "--out", out)
    assert "--work keeps" in refused("fit", text, "--work", folder / "work", "--out", out)
    assert "stands for several files" in refused("report", crowd, "--out", folder / "report.html")
    assert not out.exists()
