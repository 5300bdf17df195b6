"""The experiment of the lecture: labels are counted right, and verdicts follow from the cells."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import crowdppl as cp
from crowdppl.benchmarks.papers import lecture
from crowdppl.benchmarks.papers.written_results import judged


@pytest.fixture(scope="module")
def frame():
    """Labels of anesthesia by two methods, and accuracies that were made up: Dawid–Skene right, GLAD wrong."""
    rows = [
        {"part": "labels", "data": "anesthesia", "method": name, "seed": 0}
        | lecture.run("labels", "anesthesia", name, 0)
        for name in ("majority vote", "Dawid–Skene")
    ]
    for data in ("bluebird", "digits", "labelme"):
        for name, right in (("majority vote", 80.0), ("Dawid–Skene", 85.0), ("GLAD", 70.0)):
            rows.append({"part": "labels", "data": data, "method": name, "seed": 0, "accuracy": right + len(data) / 10})
    for seed in range(3):
        for name, right in (("DL-MV", 80.0), ("DL-DS", 83.0)):
            rows.append({"part": "training", "data": "labelme", "method": name, "seed": seed, "accuracy": right + seed})
    return pd.DataFrame(rows)


def test_verdicts_are_of_the_differences_by_dataset_and_by_seed(frame):
    found = judged(lecture.EXPERIMENT, frame).set_index("claim")["verdict"]
    assert found["Dawid–Skene labels better than majority vote, in the mean of the datasets."] == "holds"
    assert found["GLAD labels better than majority vote, in the mean of the datasets."] == "fails"
    assert found["WAWA labels better than majority vote, in the mean of the datasets."].startswith("not tested")
    assert found["A network learns better from labels of DL-DS than of DL-MV."].tolist()[0] == "holds"


def test_tables_and_figures_bear_missing_cells(frame):
    tables = lecture.tables(frame)
    taught = tables["Label, then train: test accuracy of the network, %"]
    assert taught.loc["DL-DS", "labelme"] == "84.0 ± 1.0"
    assert taught.loc["DL-GLAD", "music"] == "–"
    figures = lecture.figures(frame[frame["data"] == "anesthesia"])
    assert set(figures) == {"entropy_anesthesia", "workers_anesthesia"}
    assert all(isinstance(figure, Figure) for figure in figures.values())
    assert lecture.figures(frame.iloc[:0]) == {}


def test_the_labels_entropy_is_below_the_votes_where_workers_are_known(frame):
    row = frame[(frame["data"] == "anesthesia") & (frame["method"] == "Dawid–Skene")].iloc[0]
    assert row["entropy"] < row["vote_entropy"]
    assert sum(row["entropy_counts"]) == sum(row["vote_entropy_counts"]) == 45
    assert row["worst_accuracy"] < row["average_accuracy"] < row["best_accuracy"]
    workers = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False).workers["accuracy"]
    assert row["best_accuracy"] == pytest.approx(100 * workers.max(), abs=0.1)


def test_ties_count_as_what_they_would_by_a_draw():
    posterior = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    assert lecture.right_labels(posterior, np.array([0, 1, 2, -1])) == pytest.approx((0.5 + 1 + 1 / 3) / 3)


def test_a_cell_of_training_is_the_test_accuracy_of_the_named_method(monkeypatch):
    monkeypatch.setitem(lecture.TRAINED, "digits", ({}, {"epochs": 2}))
    found = lecture.run("training", "digits", "DL-WAWA", 0)["accuracy"]
    assert 20 < found < 100


def test_labels_are_cells_once_and_networks_for_each_seed():
    cells = lecture.cells(3)
    labels = [cell for cell in cells if cell["part"] == "labels"]
    assert len(labels) == len(lecture.LABELLED) * len(lecture.LABELLERS)
    assert len(cells) - len(labels) == 3 * len(lecture.TRAINED) * len(lecture.TEACHERS)
