"""Annotations in levels of a truth that has other classes."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data import AnnotationError, Ids
from crowdppl.data.levels import level_shares, verdicts

ROWS = pd.DataFrame(
    [("t1", "ann", 0), ("t1", "bob", 4), ("t2", "ann", 2), ("t2", "bob", 3), ("t2", "cy", 1), ("t3", "cy", 4)],
    columns=["task", "worker", "label"],
)
TRUTH = ["no", "yes"]


@pytest.fixture(scope="module")
def annotations():
    return cp.Annotations.from_frame(ROWS, truth_classes=TRUTH, gold={"t1": "yes"})


def test_levels_lie_in_the_classes_that_cut_the_same_line():
    np.testing.assert_allclose(level_shares(5, 2), [[1, 0], [1, 0], [0.5, 0.5], [0, 1], [0, 1]])
    np.testing.assert_allclose(level_shares(4, 3)[1], [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(level_shares(7, 7), np.eye(7), atol=1e-12)
    assert verdicts(5, 2).tolist() == [0, 0, -1, 1, 1]
    assert verdicts(4, 3).tolist() == [0, 1, 1, 2]


def test_truth_has_its_classes_and_annotations_their_levels(annotations):
    assert list(annotations.classes) == TRUTH
    assert list(annotations.levels) == [0, 1, 2, 3, 4]
    assert (annotations.n_classes, annotations.n_levels, annotations.n_categories) == (2, 5, 7)
    assert annotations.gold.tolist() == [1, -1, -1]
    assert not annotations.abstains
    pd.testing.assert_frame_equal(annotations.to_frame(), ROWS, check_dtype=False)


def test_votes_are_verdicts_and_the_middle_is_none(annotations):
    assert annotations.votes().tolist() == [[1, 1], [1, 1], [0, 1]]
    assert annotations.of_classes().n_rows == 5
    assert annotations.verdicts().kind.name == "ordered"


def test_classes_and_levels_may_have_the_same_names():
    same = cp.Annotations.from_frame(ROWS, truth_classes=[0, 1], gold={"t1": 1})
    assert list(same.classes) == [0, 1]
    assert same.to_frame()["label"].tolist() == ROWS["label"].tolist()


def test_levels_that_nobody_used_are_listed_in_ordered_and_several_classes_are_ordered():
    wide = cp.Annotations.from_frame(ROWS, truth_classes=["low", "mid", "high"], ordered=range(10))
    assert wide.n_levels == 10
    assert wide.kind.name == "ordered"
    text = ROWS.assign(label=ROWS["label"].map(dict(enumerate("edcba"))))
    named = cp.Annotations.from_frame(text, truth_classes=TRUTH, ordered=list("edcba"))
    assert named.votes().tolist() == [[1, 1], [1, 1], [0, 1]]


def test_more_of_them_join(annotations):
    more = annotations.joined(pd.DataFrame([("t4", "ann", 3)], columns=["task", "worker", "label"]))
    assert more.scored
    assert more.votes()[-1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth_classes": ["yes"]}, r"truth_classes=\['yes'\]: from 2 to 5 classes can be told by the 5 levels"),
        ({"truth_classes": list("abcdef")}, "from 2 to 5 classes"),
        ({"truth_classes": ["no", "no"]}, "no"),
        ({"truth_classes": TRUTH, "abstain": 2}, "leave out the rows that are no level"),
        ({"truth_classes": TRUTH, "ordered": False}, "leave ordered=False out"),
        ({"truth_classes": TRUTH, "gold": {"t1": 3}}, "label 3 of task 't1' is none of the classes"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(AnnotationError, match=message):
        cp.Annotations.from_frame(ROWS, **options)


def test_text_without_an_order_and_comparisons_are_refused():
    with pytest.raises(AnnotationError, match=r"ordered=\[\.\.\.\]"):
        cp.Annotations.from_frame(ROWS.assign(label=list("abcdea")), truth_classes=TRUTH)
    pairs = pd.DataFrame([("a", "b", "ann", "left")], columns=["left", "right", "worker", "label"])
    with pytest.raises(AnnotationError, match="truth_classes= cannot be used of comparisons"):
        cp.Annotations.from_comparisons(pairs, truth_classes=TRUTH)


def test_files_and_the_reader_take_them(tmp_path):
    ROWS.to_csv(tmp_path / "scores.csv", index=False)
    for read in (cp.Annotations.from_csv, cp.read):
        assert read(tmp_path / "scores.csv", truth_classes=TRUTH).levels == Ids([0, 1, 2, 3, 4])
