"""Slips in tables that can be used are told, with the option that mends them."""

import warnings

import pandas as pd
import pytest

from crowdppl import Annotations
from crowdppl.data import Ids
from crowdppl.data.errors import AnnotationWarning


def frame(*labels):
    return pd.DataFrame({"task": range(len(labels)), "worker": "w", "label": labels})


def test_classes_that_differ_by_case_or_blanks_are_told_and_tidied():
    rows = frame("Cat", "cat", "cat ", "dog", "cat", "a  b", "a b")
    with pytest.warns(AnnotationWarning, match=r"'Cat' and 'cat' and 'cat '.*tidy=True"):
        assert Annotations.from_frame(rows).n_classes == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tidy = Annotations.from_frame(rows, tidy=True)
    assert tidy.classes == Ids(["a b", "cat", "dog"])
    assert tidy.votes().sum(0).tolist() == [2, 4, 1]


@pytest.mark.parametrize("word", ["N/A", "nan", "NULL", "?"])
def test_a_class_that_means_nothing_is_told_with_the_option_for_it(word):
    with pytest.warns(AnnotationWarning, match=r"counts as a class.*abstain="):
        Annotations.from_frame(frame("x", "y", word))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_frame(frame("x", "y", "x", word), classes=["x", "y", word]).n_classes == 3


def test_a_table_appended_to_itself_is_told():
    rows = frame("x", "y", "x")
    with pytest.warns(AnnotationWarning, match=r"each of the 6 annotations is there twice.*repeats='first'"):
        assert Annotations.from_frame(pd.concat([rows, rows])).n_annotations == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_frame(pd.concat([rows, rows.iloc[:2]]))
