"""Tables with a column for each criterion, and of tags: the advice that their errors give is complete, and works."""

import ast
import re

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError

CRITERIA = ["safe", "cites", "helpful", "clear", "accurate"]


def rubric(**changes):
    """Six answers, judged by three workers each, by two criteria of yes and no and three of 1 to 5."""
    rows = [
        {"id": f"a{i}", "judge": f"j{j}"}
        | {name: ["no", "yes"][(i + j // 2) % 2] for name in CRITERIA[:2]}
        | dict.fromkeys(CRITERIA[2:], 1 + (i + j // 2) % 5)
        for i in range(6)
        for j in range(3)
    ]
    return pd.DataFrame(rows).assign(**changes)


def advised(table):
    """The columns that the error of a table names as questions, and those that it says are left out."""
    with pytest.raises(AnnotationError) as error:
        cp.read(table, tell=False)
    asked, rest = re.search(r"question=(\[.*?\])(?: \(which leaves out (.*?)\))?\.", str(error.value)).groups()
    return ast.literal_eval(asked), rest


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"helpful": lambda table: table["helpful"].where(table.index != 3)},
        {"helpful": lambda table: table["helpful"] * 20},
        {"helpful": lambda table: table["helpful"] + 0.5},
    ],
    ids=["as it is", "an empty cell", "another scale", "halves"],
)
def test_a_criterion_with_an_empty_cell_or_on_another_scale_is_among_the_questions(changes):
    assert advised(rubric(**changes)) == (CRITERIA, None)


def test_columns_that_say_something_else_are_no_questions_and_are_named_as_left_out():
    table = rubric(length=lambda table: table.index % 7, total=lambda table: table["helpful"] + table["clear"])
    asked, rest = advised(table)
    assert (asked, rest) == (CRITERIA, "'length', 'total'")
    assert list(cp.read(table, question=asked, tell=False).questions) == CRITERIA


def test_answers_that_are_judged_are_the_tasks_in_a_table_with_a_column_for_each_criterion():
    """The same column was found in the table with a row for each criterion."""
    table = rubric().rename(columns={"id": "answer"})
    asked, _ = advised(table)
    for question in (asked, "safe"):
        found = cp.read(table, question=question, tell=False)
        assert found.n_workers == 3
        named = cp.read(rubric(), question=question, tell=False)
        pd.testing.assert_frame_equal(found.to_frame(), named.to_frame())


def test_an_error_names_the_columns_that_the_table_has():
    table = rubric().rename(columns={"judge": "xx"})
    for options in ({"question": CRITERIA}, {"tags": "safe"}):
        with pytest.raises(AnnotationError) as error:
            cp.read(table, **options)
        assert f"its columns are 'id', 'xx', {', '.join(map(repr, CRITERIA))}." in str(error.value)
        assert "safe" not in str(error.value).partition("'accurate'.")[2]


@pytest.mark.parametrize("cells", [[["x"], ["x", "y"], [], ["y"]], ['["x"]', '["x", "y"]', "[]", '["y"]']])
def test_a_column_of_lists_is_one_of_tags_however_it_is_called(cells):
    """Its lists could not be counted: TypeError: unhashable type."""
    table = pd.DataFrame({"id": [1, 1, 2, 2], "judge": ["a", "b"] * 2, "topics": cells})
    with pytest.raises(AnnotationError, match=r"no column 'label'.*By what is in them: tags='topics'\?"):
        cp.read(table)
    assert cp.read(table, tags="topics", tell=False).n_annotations == 8


def test_tags_beside_an_unknown_column_of_tasks_are_asked_for_as_tags_and_not_as_tasks(tmp_path):
    (tmp_path / "tickets.csv").write_text("ticket,annotator,tags\n1,a,x|y\n1,b,x\n2,a,y\n2,b,x|y\n3,a,x\n3,b,y\n")
    with pytest.raises(AnnotationError, match=r"By what is in them: task='ticket', tags='tags'\?"):
        cp.read(tmp_path / "tickets.csv")
    with pytest.raises(AnnotationError, match=r"its columns are 'ticket', 'annotator', 'tags'.*: task='ticket'\?"):
        cp.read(tmp_path / "tickets.csv", tags="tags")
    assert cp.read(tmp_path / "tickets.csv", tags="tags", task="ticket", tell=False).n_annotations == 12
