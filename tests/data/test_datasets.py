import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits as sklearn_digits

from crowdppl.data import Annotations, Ids, UnknownNameError, list_datasets, load_dataset, load_split
from crowdppl.data.digits import worker_confusions
from crowdppl.data.toy import TOY, TOY_SPARSE

needs_data = pytest.mark.skipif(
    "CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA is unset: it names the folder of the real datasets"
)

# The table in the folder's README: tasks, workers, classes, annotations, gold.
SIZES = {
    "anesthesia": (45, 5, 4, 315, 0),
    "digits": (1297, 40, 10, 3891, 1297),
    "toy": (40, 6, 2, 240, 40),
    "toy_sparse": (48, 8, 2, 240, 48),
    "bluebird": (108, 39, 2, 4212, 108),
    "dog": (807, 109, 4, 8070, 807),
    "rte": (800, 164, 2, 8000, 800),
    "trec": (19033, 762, 2, 88385, 2275),
    "adult": (11040, 825, 4, 89948, 333),
    "product": (8315, 176, 2, 24945, 8315),
    "sentiment": (1000, 85, 2, 20000, 1000),
    "weather_amt": (300, 110, 5, 6025, 300),
    "movie_sp": (4999, 203, 2, 27746, 4999),
    "fact_eval": (42624, 57, 3, 214960, 576),
    "relevance": (20232, 766, 4, 97164, 4460),
    "labelme": (1000, 59, 8, 2547, 1000),
    "music": (700, 44, 10, 2945, 700),
    "cifar10h": (10000, 0, 10, 511000, 10000),
}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A folder of two datasets: one with a task and a class that only its gold labels have, and one of counts."""
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "annotations.csv").write_text("task,worker,label\n2,a,cat\n1,a,dog\n2,b,dog\n")
    (odd / "truth.csv").write_text("task,label\n1,bird\n3,cat\n")
    features = {"task": np.array([3, 2, 1]), "x": np.array([[3.0], [2.0], [1.0]])}
    np.savez(odd / "features.npz", **features, x_test=np.ones((2, 1)), y_test=np.array(["dog", "bird"]))
    counts = tmp_path / "tallies"
    counts.mkdir()
    np.savez(counts / "counts.npz", counts=np.array([[0, 2], [1, 1]]), classes=np.array(["no", "yes"]), truth=[1, 0])
    (tmp_path / "not_a_dataset").mkdir()
    monkeypatch.setenv("CROWDPPL_DATA", str(tmp_path))
    return tmp_path


def test_anesthesia_is_table_1_of_dawid_and_skene():
    annotations = load_dataset("anesthesia")
    assert (annotations.n_tasks, annotations.n_workers, annotations.n_annotations) == (45, 5, 315)
    assert np.bincount(annotations.worker).tolist() == [135, 45, 45, 45, 45]
    assert annotations.classes == Ids([1, 2, 3, 4])
    # The row of patient 36: 4, 3, 3; 4; 3; 4; 3.
    rows = annotations.to_frame().query("task == 36")
    assert rows[["worker", "label"]].to_numpy().tolist() == [[1, 4], [1, 3], [1, 3], [2, 4], [3, 3], [4, 4], [5, 3]]
    assert load_dataset("anesthesia", classes=[4, 3, 2, 1]).classes == Ids([4, 3, 2, 1])


def test_digits_has_the_images_and_their_truth_split_without_overlap():
    annotations = load_dataset("digits")
    x_test, y_test = load_split("digits", "test")
    bunch = sklearn_digits()
    held_out = np.setdiff1d(np.arange(1797), list(annotations.tasks))
    at = np.array(list(annotations.tasks))
    np.testing.assert_allclose(annotations.features, bunch.images[at] / 16)
    np.testing.assert_array_equal(annotations.gold, bunch.target[at])
    assert (len(at), len(held_out), x_test.dtype, y_test.dtype) == (1297, 500, np.float32, np.int32)
    np.testing.assert_allclose(x_test, bunch.images[held_out] / 16)
    np.testing.assert_array_equal(y_test, bunch.target[held_out])


def test_digits_has_three_different_workers_a_task_and_few_who_annotate_most():
    annotations = load_dataset("digits")
    by_task = annotations.to_frame().groupby("task")["worker"]
    assert set(by_task.nunique()) == {3}
    given = np.sort(np.bincount(annotations.worker))[::-1]
    assert given[:5].sum() > 0.4 * given.sum() > 0
    assert given[-20:].sum() < 0.25 * given.sum()


def test_digits_is_annotated_by_its_confusion_matrices():
    """Counts by truth and annotation are within five standard deviations of what the confusion matrices expect."""
    annotations = load_dataset("digits")
    rows = worker_confusions()[annotations.worker, annotations.gold[annotations.task]]
    np.testing.assert_allclose(rows.sum(-1), 1)
    z = annotations.gold[annotations.task]
    expected, seen, variance = (np.zeros((10, 10)) for _ in range(3))
    np.add.at(expected, z, rows)
    np.add.at(variance, z, rows * (1 - rows))
    np.add.at(seen, (z, annotations.label), 1)
    assert (np.abs(seen - expected) < 5 * np.sqrt(variance)).all()


def test_the_crowd_of_digits_has_spammers_and_workers_who_mix_up_two_digits():
    confusions = worker_confusions()
    assert sum(np.allclose(confusion, confusion[0]) for confusion in confusions) == 5
    for this, other in ((1, 7), (3, 8)):
        mixed = confusions[:, this, other] > confusions[:, this, this]
        assert (mixed & (confusions[:, other, this] > confusions[:, other, other])).sum() == 4


def test_options_replace_what_digits_brings():
    annotations = load_dataset("digits", gold=None, classes=range(9, -1, -1))
    assert annotations.gold is None
    assert annotations.classes == Ids(range(9, -1, -1))
    with pytest.raises(UnknownNameError, match="split of digits 'tets'; did you mean 'test'"):
        load_split("digits", "tets")


def test_scikit_learn_is_imported_only_for_digits():
    code = (
        "import sys; from crowdppl import data; data.list_datasets(); assert 'sklearn' not in sys.modules; "
        "data.load_dataset('digits'); assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


def test_classes_and_tasks_that_only_gold_labels_have_are_kept(folders):
    annotations = load_dataset("odd")
    assert annotations.tasks == Ids([2, 1, 3])
    assert annotations.classes == Ids(["bird", "cat", "dog"])
    assert annotations.gold.tolist() == [-1, 0, 1]
    assert annotations.votes().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert annotations.features.tolist() == [[2.0], [1.0], [3.0]]


def test_counts_are_a_dataset_of_unnamed_workers(folders):
    annotations = load_dataset("tallies")
    assert annotations.to_frame().to_numpy().tolist() == [[0, "yes", 2], [1, "no", 1], [1, "yes", 1]]
    assert annotations.gold.tolist() == [1, 0]
    assert not annotations.named


def test_held_out_labels_are_indices_into_the_classes(folders):
    x, y = load_split("odd", "test")
    assert x.shape == (2, 1)
    assert [load_dataset("odd").classes[k] for k in y] == ["dog", "bird"]
    with pytest.raises(UnknownNameError, match="split of odd 'tset'; did you mean 'test'"):
        load_split("odd", "tset")
    with pytest.raises(UnknownNameError, match="anesthesia has no split 'test'"):
        load_split("anesthesia", "test")


def test_the_list_says_where_datasets_are_and_how_large(folders):
    table = list_datasets().set_index("name")
    assert list(table.index) == ["anesthesia", "digits", "odd", "tallies", "toy", "toy_sparse"]
    assert table.loc["anesthesia", "where"] == "in the package"
    assert Path(table.loc["odd", "where"]) == folders / "odd"
    columns = ["tasks", "workers", "classes", "annotations", "gold", "features"]
    assert table.loc["odd", columns].tolist() == [2, 2, 2, 3, 2, "1"]
    assert table.loc["tallies", columns].tolist() == [2, 0, 2, 4, 2, ""]


def test_an_unknown_dataset_says_the_nearest_and_whether_the_folder_is_set(folders, monkeypatch):
    with pytest.raises(
        UnknownNameError,
        match=r"dataset 'od'; did you mean 'odd'\? There are: anesthesia, digits, odd, tallies, toy, toy_sparse",
    ):
        load_dataset("od")
    monkeypatch.delenv("CROWDPPL_DATA")
    with pytest.raises(UnknownNameError, match=r"'anestesia'; did you mean 'anesthesia'\?.*CROWDPPL_DATA is not set"):
        load_dataset("anestesia")
    assert list(list_datasets()["name"]) == ["anesthesia", "digits", "toy", "toy_sparse"]


@pytest.mark.data
@needs_data
def test_the_embedded_anesthesia_is_the_file():
    file = pd.read_csv(Path(os.environ["CROWDPPL_DATA"]) / "anesthesia" / "annotations.csv")
    assert load_dataset("anesthesia").to_frame().equals(file)
    assert load_dataset("anesthesia").to_frame().equals(Annotations.from_frame(file).to_frame())


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", SIZES)
def test_datasets_have_the_published_sizes(name):
    a = load_dataset(name)
    gold = 0 if a.gold is None else int((a.gold >= 0).sum())
    assert (a.n_tasks, a.n_workers, a.n_classes, a.n_annotations, gold) == SIZES[name]
    listed = list_datasets().set_index("name").loc[name]
    assert tuple(listed[["tasks", "workers", "classes", "annotations", "gold"]]) == SIZES[name]


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(
    ("name", "split", "shape"),
    [("labelme", "test", (1188, 512)), ("labelme", "valid", (500, 512)), ("music", "test", (300, 124))],
)
def test_held_out_labels_come_as_indices_of_the_same_classes(name, split, shape):
    annotations = load_dataset(name)
    x, y = load_split(name, split)
    with np.load(Path(os.environ["CROWDPPL_DATA"]) / name / "features.npz") as arrays:
        labels = arrays[f"y_{split}"].tolist()
    assert [annotations.classes[k] for k in y] == labels
    assert x.shape == shape
    assert annotations.features.shape == (annotations.n_tasks, shape[1])


@pytest.mark.parametrize(("name", "toy"), [("toy", TOY), ("toy_sparse", TOY_SPARSE)])
def test_toy_crowds_are_annotated_about_as_well_as_they_were_drawn(name, toy):
    annotations, n_workers = load_dataset(name), len(toy.sensitivity)
    truth, label = annotations.gold[annotations.task], annotations.label
    assert abs(annotations.gold.mean() - toy.prevalence) < 0.23  # 40 tasks: 3 standard deviations
    for positive, drawn_by in ((1, toy.sensitivity), (0, toy.specificity)):
        given = [label[(annotations.worker == j) & (truth == positive)] == positive for j in range(n_workers)]
        share, by, n = (np.array(x) for x in ([right.mean() for right in given], drawn_by, [*map(len, given)]))
        spread = np.sqrt(by * (1 - by) / n)
        assert (np.abs(share - by) < 3.5 * spread).all()  # of eight workers
        right = np.concatenate(given)
        assert abs(right.mean() - (n * by).sum() / n.sum()) < 0.1  # 90 annotations or more: 2.5 of 0.04 or more
    assert (annotations.votes().argmax(1) == annotations.gold).mean() > 0.85
    at = np.asarray(annotations.features) @ toy.center
    assert ((at > 0) == annotations.gold).mean() > 0.75  # the best rule for what the features were drawn from


def test_in_the_sparse_toy_five_of_eight_workers_annotate_each_task():
    assert set(load_dataset("toy_sparse").votes().sum(1)) == {5}


def test_a_folder_s_column_of_questions_is_known_and_means_are_no_gold_labels(tmp_path, monkeypatch):
    rows = [
        (task, worker, name, 1 + (task + i) % 3) for task in range(4) for i, worker in enumerate("ab") for name in "xy"
    ]
    for name, gold in (("scores", 2), ("means", 2.333)):
        (tmp_path / name).mkdir()
        table = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
        table.to_csv(tmp_path / name / "annotations.csv", index=False)
        truth = pd.DataFrame({"task": [0, 7], "question": ["x", "y"], "label": [1, gold]})
        truth.to_csv(tmp_path / name / "truth.csv", index=False)
    monkeypatch.setenv("CROWDPPL_DATA", str(tmp_path))
    scores, means = (load_dataset(name) for name in ("scores", "means"))
    assert list(scores.questions) == list(means.questions) == ["x", "y"]
    assert scores.kind.name == means.kind.name == "ordered"
    assert means.gold is None
    assert scores.tasks[8] == (7, "y")
    assert np.flatnonzero(scores.gold >= 0).tolist() == [0, 8]
