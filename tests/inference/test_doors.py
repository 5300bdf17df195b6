"""What `cp.fit` takes beside annotations: paths, tables and records are read as `cp.read` reads them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning

ROWS = [
    {"item": f"t{i}", "annotator": f"w{j}", "answer": "yes" if (i + (j == 2 and i % 3 == 0)) % 2 else "no"}
    for i in range(12)
    for j in range(4)
]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return 48 annotations of 12 tasks, in columns of common names."""
    return pd.DataFrame(ROWS)


def test_a_frame_a_path_and_records_give_the_fit_of_what_read_returns(frame: pd.DataFrame, tmp_path: Path) -> None:
    expected = cp.fit("dawid_skene", cp.read(frame, tell=False), progress=False).probabilities
    csv, records = tmp_path / "annotations.csv", tmp_path / "annotations.json"
    frame.to_csv(csv, index=False)
    records.write_text(json.dumps(ROWS))
    for data in (frame, csv, str(csv), records, ROWS):
        fit = cp.fit("dawid_skene", data, progress=False)
        pd.testing.assert_frame_equal(fit.probabilities, expected)


@pytest.mark.parametrize("story", ["majority_vote", "auto"])
def test_rules_and_averages_take_a_frame(frame: pd.DataFrame, story: str) -> None:
    fit = cp.fit(story, frame, progress=False)
    assert list(fit.probabilities.index) == [f"t{i}" for i in range(12)]
    np.testing.assert_allclose(fit.probabilities.sum(axis=1), 1, atol=1e-5)


def test_what_was_taken_for_what_is_said_unless_progress_is_off(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    cp.fit("majority_vote", frame, progress=False)
    assert capsys.readouterr().err == ""
    cp.fit("majority_vote", frame)
    said = capsys.readouterr().err
    assert all(column in said for column in ("item", "annotator", "answer"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").touch()
    with pytest.raises(FileNotFoundError, match=r"there is no file .*anotations\.csv; did you mean .*annotations\.csv"):
        cp.fit("dawid_skene", tmp_path / "anotations.csv")


@pytest.mark.parametrize("data", [None, 3, np.eye(3)])
def test_what_is_no_annotations_is_refused_with_what_would_do(data: object) -> None:
    with pytest.raises(cp.AnnotationError, match=rf"got a {type(data).__name__}.*cp\.read.*from_matrix"):
        cp.fit("dawid_skene", data)


@pytest.mark.parametrize("story", ["dawid_skene", "majority_vote", "auto"])
def test_what_is_taken_for_the_gold_labels_is_said_once(frame: pd.DataFrame, tmp_path: Path, story: str) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("wer,wie\nt0,no\nt1,yes\n")
    with pytest.warns(AnnotationWarning, match="is taken for the tasks") as said:
        fit = cp.fit(story, cp.read(frame, tell=False), gold=gold, progress=False)
    assert ["is taken for the tasks" in str(warning.message) for warning in said].count(True) == 1
    assert fit.labels.loc[["t0", "t1"], "label"].tolist() == ["no", "yes"]
