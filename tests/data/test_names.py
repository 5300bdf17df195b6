"""Names are looked up, and unknown ones refused with the nearest one and all there are."""

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.column_names import likely_columns, named_for
from crowdppl.data.errors import UnknownNameError, check_name, look_up

ENGINES = {"em": 1, "svi": 2, "nuts": 3}


def test_a_name_gives_what_it_stands_for():
    assert look_up("engine", "svi", ENGINES) == 2
    assert check_name("engine", "svi", ENGINES) == "svi"


@pytest.mark.parametrize("look", [look_up, check_name])
def test_an_unknown_name_is_refused_with_the_nearest_and_all(look):
    with pytest.raises(
        UnknownNameError, match=r"unknown engine 'nutz'; did you mean 'nuts'\? There are: em, svi, nuts"
    ):
        look("engine", "nutz", ENGINES)
    with pytest.raises(UnknownNameError, match=r"unknown engine 'xyz'\. There are none\."):
        look("engine", "xyz", {})
    assert cp.UnknownNameError is UnknownNameError


@pytest.mark.parametrize("name", [None, 1, ["em"], {}])
def test_what_is_no_text_is_no_name(name):
    with pytest.raises(UnknownNameError, match="unknown engine"):
        look_up("engine", name, ENGINES)


@pytest.mark.parametrize("name", ["answer_id", "answerId", "Response ID", "OUTPUT_ID"])
def test_what_has_an_identifier_of_answers_names_tasks_where_nothing_else_does(name):
    columns = [name, "rater", "score"]
    assert (named_for("task", columns), named_for("label", columns)) == ([name], ["score"])
    assert named_for("task", [*columns, "item"]) == ["item"]
    assert named_for("label", [name, "rater"]) == [name]
    assert named_for("label", ["valid", "answer"]) == ["answer"]


def test_columns_with_as_many_values_are_not_told_apart_by_them():
    table = pd.DataFrame({"a": [1, 2, 1, 2], "b": list("xyzx"), "c": ["yes", "no", "yes", "no"]})
    assert likely_columns(table, ["task", "worker", "label"], []) == {}
    more = pd.DataFrame({"a": [1, 2, 3, 4] * 3, "b": list("xxxxyyyyzzzz"), "c": ["yes", "no"] * 6})
    assert likely_columns(more, ["task", "worker", "label"], []) == {"task": "a", "worker": "b", "label": "c"}


@pytest.mark.parametrize("name", ["judge_model", "Judge Model", "grader_model_name", "evaluator", "evaluator_id"])
def test_models_that_judge_are_workers(name):
    assert named_for("worker", ["item", name, "score"]) == [name]
    assert name in named_for("worker", ["item", name, "model", "score"])  # two that may be workers are asked about
