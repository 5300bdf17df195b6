"""crowdppl update: a saved fit and a file with more annotations."""

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused

import crowdppl as cp


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """Two files, of 120 and 40 tasks, the second with a worker and names of columns of its own; a fit of the first."""
    folder = tmp_path_factory.mktemp("batches")
    made, _ = cp.simulate("dawid_skene", n_tasks=160, n_workers=8, n_classes=3, annotations_per_task=4, seed=1)
    frame = made.to_frame()[["task", "worker", "label"]].assign(worker=lambda table: "w" + table["worker"].astype(str))
    is_first = frame["task"].isin(frame["task"].unique()[:120])
    frame[is_first].to_csv(folder / "first.csv", index=False)
    second = frame[~is_first].replace({"worker": {frame["worker"].iloc[0]: "new"}})
    second.rename(columns={"worker": "who", "label": "what"}).to_csv(folder / "second.csv", index=False)
    done = crowdppl("fit", folder / "first.csv", "--out", folder / "fit")
    assert done.exit_code == 0, done.output
    return folder


COLUMNS = ("--worker", "who", "--label", "what")


def test_the_updated_fit_is_that_of_python_and_of_all_annotations_and_the_first_stays(batches, tmp_path):
    before = {path.name: path.read_bytes() for path in (batches / "fit").iterdir()}
    done = crowdppl("update", batches / "fit", batches / "second.csv", *COLUMNS, "--plot", "--out", tmp_path / "all")
    assert done.exit_code == 0, done.output
    assert before == {path.name: path.read_bytes() for path in (batches / "fit").iterdir()}
    assert (tmp_path / "all" / "workers.png").is_file()
    updated = cp.load_fit(tmp_path / "all")
    assert f"\n{next(iter(updated.verdict.sections))}\n" in done.stdout
    in_python = cp.load_fit(batches / "fit").update(batches / "second.csv", worker="who", label="what", progress=False)
    pd.testing.assert_frame_equal(updated.labels, in_python.labels)
    second = pd.read_csv(batches / "second.csv").rename(columns={"who": "worker", "what": "label"})
    of_all = cp.fit("dawid_skene", pd.concat([pd.read_csv(batches / "first.csv"), second]), progress=False)
    assert "new" in updated.workers.index
    assert (updated.labels["label"] == of_all.labels["label"].reindex(updated.labels.index)).mean() > 0.98


def test_gold_labels_are_used_and_the_same_folder_may_take_the_results(batches, tmp_path):
    folder = tmp_path / "same"
    crowdppl("fit", batches / "first.csv", "--out", folder)
    labels = cp.load_fit(folder).labels
    doubted = labels["probability"].idxmin()
    other = (labels.loc[doubted, "label"] + 1) % 3
    pd.DataFrame({"task": [doubted], "label": [other]}).to_csv(tmp_path / "gold.csv", index=False)
    given = ("update", folder, batches / "second.csv", *COLUMNS, "--gold", tmp_path / "gold.csv", "--out", folder)
    assert "--overwrite" in refused(*given)
    assert len(cp.load_fit(folder).labels) == 120
    done = crowdppl(*given, "--overwrite", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "")
    found = cp.load_fit(folder).labels
    assert len(found) == 160
    assert (found.loc[doubted, "label"], found.loc[doubted, "probability"]) == (other, 1.0)


def test_a_label_that_is_no_class_of_the_fit_is_refused_as_one_that_nothing_adds(batches, tmp_path):
    """The message asked for the option --classes, which no one had given, to be left out."""
    (tmp_path / "more.csv").write_text("task,worker,label\n1,w0,7\n")
    message = refused("update", batches / "fit", tmp_path / "more.csv", "--out", tmp_path / "all")
    assert "7 is not in classes [0, 1, 2]; classes cannot be added to" in message
    assert "leave" not in message
    asked = refused("update", batches / "fit", tmp_path / "more.csv", "--classes", "0,1,2", "--out", tmp_path / "all")
    assert "leave --classes out" in asked


def test_features_of_new_tasks_go_to_the_classifier(batches, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        tasks = pd.read_csv(batches / f"{name}.csv")["task"].unique()
        pd.DataFrame({"task": tasks, "x": rng.normal(size=len(tasks))}).to_csv(tmp_path / f"{name}.csv", index=False)
    options = ("--classifier", "logistic", "--features", tmp_path / "first.csv", "--out", tmp_path / "fit")
    done = crowdppl("fit", batches / "first.csv", *options)
    assert done.exit_code == 0, done.output
    more = ("update", tmp_path / "fit", batches / "second.csv", *COLUMNS, "--out", tmp_path / "all")
    assert "features" in refused(*more)
    done = crowdppl(*more, "--features", tmp_path / "second.csv")
    assert done.exit_code == 0, done.output
    assert cp.load_fit(tmp_path / "all").annotations.features.shape == (160, 1)


def test_workers_and_tasks_that_are_written_alike_are_the_same_where_a_batch_has_names_among_numbers(tmp_path):
    rows = [(task, worker, (task + worker) % 2) for task in range(6) for worker in range(3)]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    table.to_csv(tmp_path / "first.csv", index=False)
    second = table.assign(label=1).astype(str).replace({"worker": {"0": "ann"}, "task": {"5": "last"}})
    second.to_csv(tmp_path / "second.csv", index=False)
    crowdppl("fit", tmp_path / "first.csv", "--story", "one_coin", "--out", tmp_path / "fit")
    done = crowdppl("update", tmp_path / "fit", tmp_path / "second.csv", "--out", tmp_path / "all")
    assert done.exit_code == 0, done.output
    annotations = cp.load_fit(tmp_path / "all").annotations
    assert (list(annotations.workers), list(annotations.tasks)) == ([0, 1, 2, "ann"], [0, 1, 2, 3, 4, 5, "last"])
    assert annotations.n_annotations == 36


def test_what_cannot_be_added_is_refused_and_nothing_is_written(batches, tmp_path):
    out = ("--out", tmp_path / "no")
    assert f"{batches} is no folder of a fit" in refused("update", batches, batches / "second.csv", *out)
    assert "there is no file" in refused("update", batches / "fit", tmp_path / "third.csv", *out)
    assert "annotations are needed" in refused("update", batches / "fit", batches / "fit", *out)
    assert "'who'" in refused("update", batches / "fit", batches / "first.csv", "--worker", "who", *out)
    (tmp_path / "odd.csv").write_text("task,worker,label\nt,w,9\n")
    said = refused("update", batches / "fit", tmp_path / "odd.csv", *out)
    assert "row 0 (line 2 of odd.csv)" in said
    assert "'9'" in said or "9 is not" in said
    assert "--gold" in refused("update", batches / "fit", tmp_path / "odd.csv", "--gold", tmp_path / "gold.csv", *out)
    assert not (tmp_path / "no").exists()
