import warnings

import numpy as np
import pandas as pd
import pytest

from crowdppl.data import AnnotationError, Annotations, UnknownNameError

ROWS = pd.DataFrame(
    [("t", "ann", "a"), ("t", "bob", "b"), ("t", "ann", "a"), ("u", "bob", "b"), ("t", "ann", "b")],
    columns=["task", "worker", "label"],
)


def test_all_annotations_are_kept_by_default_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_frame(ROWS).n_annotations == 5


def test_the_first_annotations_are_kept_and_the_warning_counts_the_others_and_points_here():
    with pytest.warns(UserWarning, match="left out 2 of 5 annotations") as caught:
        annotations = Annotations.from_frame(ROWS, repeats="first")
    assert caught[0].filename == __file__
    assert annotations.to_frame().to_numpy().tolist() == ROWS.iloc[[0, 1, 3]].to_numpy().tolist()


def test_a_count_above_one_repeats_too():
    counted = ROWS.iloc[[3, 1, 0]].assign(n=[3, 0, 1])
    with pytest.warns(UserWarning, match="left out 2 of 4 annotations"):
        annotations = Annotations.from_frame(counted, count="n", repeats="first")
    assert annotations.votes().tolist() == [[0, 1], [1, 0]]
    with pytest.raises(AnnotationError, match="worker 'bob' annotated task 'u' more than once: row 0;"):
        Annotations.from_frame(counted, count="n", repeats="error")


def test_the_first_repeated_annotation_is_named_with_all_its_rows():
    with pytest.raises(AnnotationError, match="worker 'ann' annotated task 't' more than once: row 0, row 2, row 4; "):
        Annotations.from_frame(ROWS, repeats="error")


def test_where_nothing_repeats_the_three_values_give_the_same():
    matrix = np.array([[0, 1], [1, -1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [Annotations.from_matrix(matrix, repeats=repeats) for repeats in ("keep", "first", "error")]
    assert all(np.array_equal(found[0].label, other.label) for other in found)


def test_another_value_of_repeats_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="'frist'; did you mean 'first'"):
        Annotations.from_frame(ROWS, repeats="frist")


@pytest.mark.parametrize("counted", [False, True])
def test_tasks_that_are_annotated_again_are_those_of_which_a_worker_has_several_annotations(counted):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"task": rng.integers(0, 60, 200), "worker": rng.integers(0, 30, 200), "label": "x"})
    frame["count"] = rng.integers(1, 3, 200) if counted else 1
    annotations = Annotations.from_frame(frame, count="count" if counted else None, classes=["x", "y"])
    given = frame.groupby(["task", "worker"])["count"].sum()
    again = set(given[given > 1].index.get_level_values("task"))
    found = {annotations.tasks[i] for i in np.flatnonzero(annotations.annotated_again).tolist()}
    assert found == again
    assert 0 < len(again) < 60
    assert not annotations.without_workers().annotated_again.any()
