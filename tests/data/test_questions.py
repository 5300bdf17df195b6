"""Several questions a task: tables in and out, gold labels, what is refused and what is warned of."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.ids import Ids
from crowdppl.data.questions import Units

QUESTIONS = ["coherence", "fluency"]


def long(n_tasks: int = 4, workers: tuple[str, ...] = ("ann", "bob", "cy")) -> pd.DataFrame:
    """A complete table, whose label is a function of task, question and worker."""
    rows = [
        {"task": f"t{i}", "worker": worker, "question": question, "label": "yes" if (i + q + j // 2) % 2 else "no"}
        for i in range(n_tasks)
        for j, worker in enumerate(workers)
        for q, question in enumerate(QUESTIONS)
    ]
    return pd.DataFrame(rows)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    return table.pivot(index=["task", "worker"], columns="question", values="label").reset_index().rename_axis(None)


def cells(annotations: cp.Annotations) -> list[tuple[str, ...]]:
    return sorted(annotations.to_frame().astype(str).itertuples(index=False, name=None))


def gold_by_pair(annotations: cp.Annotations) -> dict:
    assert annotations.gold is not None
    return {pair: annotations.classes[k] for pair, k in zip(annotations.tasks, annotations.gold, strict=True) if k >= 0}


GOLD = {("t0", "coherence"): "no", ("t0", "fluency"): "yes", ("t2", "fluency"): "yes"}
GOLD_TABLE = pd.DataFrame([{"task": task, "question": name, "label": label} for (task, name), label in GOLD.items()])


def test_a_unit_is_a_pair_of_task_and_question():
    annotations = cp.Annotations.from_frame(long(), question="question")
    assert list(annotations.tasks[:3]) == [("t0", "coherence"), ("t0", "fluency"), ("t1", "coherence")]
    assert list(annotations.questions) == QUESTIONS
    assert annotations.votes()[1].tolist() == [1, 2]  # of fluency in t0
    assert annotations.to_frame().columns.tolist() == ["task", "question", "worker", "label"]
    assert "'coherence', 'fluency' about 4 tasks" in repr(annotations)


def test_columns_for_questions_are_the_long_table():
    table = long()
    both = [cp.Annotations.from_frame(table, question="question"), None]
    both[1] = cp.Annotations.from_frame(wide(table), question=QUESTIONS)
    assert cells(both[0]) == cells(both[1])


def test_an_empty_cell_of_a_column_for_a_question_is_no_annotation():
    table = wide(long())
    table.loc[3, "fluency"] = None
    annotations = cp.Annotations.from_frame(table, question=QUESTIONS)
    assert annotations.n_annotations == 2 * len(table) - 1


def test_integers_beside_an_empty_cell_stay_integers():
    table = pd.DataFrame({"task": ["a", "a", "b"], "worker": ["x", "y", "y"], "one": [1, 2, 1], "two": [1, None, 2]})
    assert list(cp.Annotations.from_frame(table, question=["one", "two"]).classes) == [1, 2]


def test_files_are_read_like_tables(tmp_path):
    table = long()
    table.to_csv(tmp_path / "long.csv", index=False)
    wide(table).to_csv(tmp_path / "wide.csv", index=False)
    wide(table).to_parquet(tmp_path / "wide.parquet")
    table.to_parquet(tmp_path / "long.parquet")
    wanted = cells(cp.Annotations.from_frame(table, question="question"))
    for name, question in (("long", "question"), ("wide", QUESTIONS)):
        assert cells(cp.Annotations.from_csv(tmp_path / f"{name}.csv", question=question)) == wanted
        assert cells(cp.Annotations.from_parquet(tmp_path / f"{name}.parquet", question=question)) == wanted
        assert cells(cp.read(tmp_path / f"{name}.csv", question=question, tell=False)) == wanted


@pytest.mark.parametrize("name", ["question", "aspect", "dimension", "criterion"])
def test_read_finds_the_column_of_questions_and_says_so(name, capsys):
    annotations = cp.read(long().rename(columns={"question": name}))
    assert list(annotations.questions) == QUESTIONS
    assert f"question {name!r}" in capsys.readouterr().err


def asked_about(task: str, question: str = "question") -> pd.DataFrame:
    """Answers of each worker to each question about each of some things, whose columns have other names."""
    table = long().rename(columns={"task": task, "question": question, "label": "answer"})
    return table[[task, "worker", question, "answer"]]


@pytest.mark.parametrize("task", ["response_id", "conversation ID", "turnId", "essay"])
@pytest.mark.parametrize("question", ["question", "question_id"])
def test_read_takes_for_the_task_what_questions_are_asked_about(task, question, capsys):
    """The questions were the tasks, and the answers to one about all things were repeated annotations."""
    table = asked_about(task, question)
    annotations = cp.read(table)
    assert f"(task {task!r}, label 'answer', question {question!r})" in capsys.readouterr().err
    assert list(annotations.questions) == QUESTIONS
    assert annotations.n_tasks == len(table[[task, question]].value_counts())
    assert cells(annotations) == cells(cp.read(table, task=task, question=question, tell=False))


def test_read_takes_answers_to_many_questions_for_the_tasks(capsys):
    """Answers of several models to a question are judged, each answer to one question."""
    rows = [(f"q{i // 5}", f"q{i // 5}-{i % 5}", f"w{j}", (i + j) % 2) for i in range(40) for j in range(3)]
    annotations = cp.read(pd.DataFrame(rows, columns=["question_id", "answer_id", "judge", "verdict"]))
    assert "task 'answer_id'" in capsys.readouterr().err
    assert annotations.n_tasks == 40
    assert not annotations.questions


def test_read_asks_whether_questions_are_the_tasks_where_the_other_column_may_number_sessions():
    """Each session has one worker, as has each submission of a form."""
    table = asked_about("response_id")
    table["response_id"] = table["worker"] + table["response_id"]
    both = r"say task='question', or task='response_id' with question='question'"
    with pytest.raises(cp.AnnotationError, match=both):
        cp.read(table, tell=False)
    with pytest.raises(cp.AnnotationError, match=both):
        cp.read(asked_about("response_id"), worker=None, tell=False)
    assert len(cp.read(table, task="question", tell=False).tasks) == len(QUESTIONS)
    assert list(cp.read(table, task="response_id", tell=False).questions) == QUESTIONS
    second = asked_about("response_id").assign(turn_id=asked_about("response_id")["response_id"] + "b")
    with pytest.raises(cp.AnnotationError, match=r"task='response_id' or task='turn_id' with"):
        cp.read(second, tell=False)


@pytest.mark.parametrize("repeats", [1, 3])
def test_read_keeps_questions_as_tasks_where_no_column_can_be_what_they_are_about(repeats):
    """A number of the row, one of the worker's, and one of a table that has each answer once."""
    rows = [(f"q{i}", f"w{j}", (i + j + r) % 2, r) for r in range(repeats) for i in range(20) for j in range(4)]
    table = pd.DataFrame(rows, columns=["question", "worker", "answer", "wave"])
    others = {
        "row_id": range(len(table)),
        "country_id": table["worker"].str[1].astype(int) // 2,
        "topic_id": table["question"].str[1:].astype(int) // 5,
    }
    for name, column in others.items():
        annotations = cp.read(table.drop(columns="wave").assign(**{name: column}), tell=False)
        assert list(annotations.tasks) == [f"q{i}" for i in range(20)]
        assert not annotations.questions


def test_read_leaves_a_column_that_is_the_content_of_tasks():
    table = long()[lambda frame: frame["question"] == "fluency"]
    assert not cp.read(table.assign(question="what of " + table["task"]), tell=False).questions
    assert not cp.read(long(), question=None, tell=False).questions


def test_read_takes_gold_labels_of_a_column_by_question():
    table = long()
    table["gold"] = [GOLD.get(pair) for pair in zip(table["task"], table["question"], strict=True)]
    assert gold_by_pair(cp.read(table, tell=False)) == GOLD


def test_gold_labels_in_any_form(tmp_path):
    GOLD_TABLE.to_csv(tmp_path / "truth.csv", index=False)
    by_question = GOLD_TABLE.pivot(index="task", columns="question", values="label").reset_index()
    by_question.to_csv(tmp_path / "wide_truth.csv", index=False)
    table = long()
    table.to_csv(tmp_path / "long.csv", index=False)
    series = GOLD_TABLE.set_index(["task", "question"])["label"]
    files = [tmp_path / "truth.csv", tmp_path / "wide_truth.csv"]
    for gold in (GOLD, GOLD_TABLE, by_question, series, *files):
        annotations = cp.Annotations.from_frame(table, question="question", gold=gold)
        assert gold_by_pair(annotations) == GOLD
        assert gold_by_pair(annotations.without_gold().with_gold(gold)) == GOLD
    assert gold_by_pair(cp.read(tmp_path / "long.csv", gold=str(files[0]), tell=False)) == GOLD


def test_gold_labels_whose_columns_have_other_names_are_found_by_what_is_in_them(tmp_path):
    """The file of a rubric with answer, criterion and rating was read beside the annotations, and refused of a fit."""
    named = {"task": "answer", "question": "criterion", "label": "rating"}
    gold = GOLD_TABLE.rename(columns=named)
    by_question = gold.pivot(index="answer", columns="criterion", values="rating").reset_index()
    gold.to_csv(tmp_path / "long.csv", index=False)
    by_question.to_csv(tmp_path / "wide.csv", index=False)
    annotations = cp.Annotations.from_frame(long(), question="question")
    for given, told in (
        (gold, "'answer' is taken for the tasks and 'rating' for the labels"),
        (by_question, "'answer' is taken for the tasks$"),
        (tmp_path / "long.csv", "'answer' is taken for the tasks and 'rating' for the labels"),
        (tmp_path / "wide.csv", "'answer' is taken for the tasks$"),
    ):
        with pytest.warns(AnnotationWarning, match=told):
            assert gold_by_pair(annotations.with_gold(given)) == GOLD


def test_gold_of_an_unknown_question_is_refused_with_its_row():
    gold = GOLD_TABLE.replace({"question": {"coherence": "tone"}})
    with pytest.raises(cp.AnnotationError, match=r"row 0.*'tone' is none of 'coherence', 'fluency'"):
        cp.Annotations.from_frame(long(), question="question", gold=gold)


def test_gold_by_question_without_a_column_of_tasks_is_refused_with_the_columns_that_it_has():
    wide = GOLD_TABLE.pivot(index="task", columns="question", values="label").reset_index(drop=True)
    with pytest.raises(cp.AnnotationError, match=f"its columns are {', '.join(map(repr, wide.columns))}\\."):
        cp.Annotations.from_frame(long(), question="question", gold=wide)


def test_gold_without_questions_is_refused():
    with pytest.raises(cp.AnnotationError, match=r"gold has no column 'question'.*a column for each"):
        cp.Annotations.from_frame(long(), question="question", gold=GOLD_TABLE.drop(columns="question"))


def test_tasks_have_every_question_or_those_that_are_listed():
    annotations = cp.Annotations.from_frame(long(2), question="question", tasks=["t1", "t0", "new"])
    assert list(annotations.tasks) == [(task, name) for task in ("t1", "t0", "new") for name in QUESTIONS]
    listed = [*annotations.tasks[:4], ("new", "fluency")]
    assert list(cp.Annotations.from_frame(long(2), question="question", tasks=listed).tasks) == listed


def test_features_of_a_task_are_those_of_its_questions():
    features = {f"t{i}": np.array([i, 2 * i]) for i in range(4)}
    annotations = cp.Annotations.from_frame(long(), question="question", features=features)
    for (task, _), row in zip(annotations.tasks, annotations.features, strict=True):
        assert row.tolist() == features[task].tolist()


def test_one_question_is_what_its_rows_alone_would_be():
    table = long()
    one = cp.Annotations.from_frame(table, question="question", gold=GOLD).of_question("fluency")
    alone = cp.Annotations.from_frame(table[table["question"] == "fluency"])
    pd.testing.assert_frame_equal(one.to_frame(), alone.to_frame())
    assert gold_by_pair(one) == {"t0": "yes", "t2": "yes"}
    with pytest.raises(cp.AnnotationError, match=r"'tone'; the questions are: 'coherence', 'fluency'"):
        cp.Annotations.from_frame(table, question="question").of_question("tone")


def test_more_annotations_join_theirs_of_the_same_question():
    table = long()
    whole = cp.Annotations.from_frame(table, question="question")
    first = cp.Annotations.from_frame(table[:14], question="question")
    for more in (table[14:], cp.Annotations.from_frame(table[14:], question="question")):
        joined = first.joined(more)
        assert cells(joined) == cells(whole)
        assert list(joined.questions) == QUESTIONS
    with pytest.raises(cp.AnnotationError, match="only these annotations have questions"):
        whole.joined(cp.Annotations.from_frame(table[table["question"] == "fluency"]))


def test_units_with_and_without_questions_are_two_things():
    pairs = [("a", "x"), ("b", "x")]
    assert Units(pairs) == Units(pairs)
    assert Units(pairs) != Ids(pairs)
    assert Ids(pairs) != Units(pairs)


def test_a_question_that_one_worker_alone_answered_is_warned_of():
    table = long()
    table = table[(table["question"] == "coherence") | (table["worker"] == "bob")]
    with pytest.warns(AnnotationWarning, match=r"'fluency' .* one worker alone, 'bob'"):
        cp.Annotations.from_frame(table, question="question")


def test_a_question_without_annotations_is_named():
    table = long()
    table["question"] = pd.Categorical(table["question"], [*QUESTIONS, "tone"])
    with pytest.warns(AnnotationWarning, match=r"column 'question': no row answers 'tone'"):
        cp.Annotations.from_frame(table, question="question")
    with pytest.raises(cp.AnnotationError, match=r"column 'tone': the question has no annotation; leave it out"):
        cp.Annotations.from_frame(wide(long()).assign(tone=None), question=[*QUESTIONS, "tone"])


@pytest.mark.parametrize("question", [["fluency"], ["fluency", "fluency"]])
def test_columns_for_questions_are_two_or_more_each_once(question):
    with pytest.raises(cp.AnnotationError, match=r"two columns or more"):
        cp.Annotations.from_frame(wide(long()), question=question)


def test_a_column_of_questions_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(cp.AnnotationError, match=r"no column 'aspects'"):
        cp.Annotations.from_frame(long(), question="aspects")
    with pytest.raises(cp.AnnotationError, match=r"no column 'tone'"):
        cp.Annotations.from_frame(wide(long()), question=["fluency", "tone"])
    with pytest.raises(cp.AnnotationError, match=r"column 'worker' is given for both"):
        cp.Annotations.from_frame(wide(long()), question=["fluency", "worker"])
    wide(long()).to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(cp.AnnotationError, match=r"column 'task' is given for both task= and question="):
        cp.Annotations.from_csv(tmp_path / "wide.csv", question=["fluency", "task"])


def test_a_missing_label_in_a_long_table_names_its_row():
    table = long()
    table.loc[5, "question"] = None
    with pytest.raises(cp.AnnotationError, match=r"column 'question': .*missing in row 5"):
        cp.Annotations.from_frame(table, question="question")


def test_a_wrong_cell_of_a_column_for_a_question_is_named():
    table = wide(long()).astype(object)
    table.loc[2, "fluency"] = 0.5
    with pytest.raises(cp.AnnotationError, match=r"row 2, column 'fluency'"):
        cp.Annotations.from_frame(table, question=QUESTIONS)


TAGGED = pd.DataFrame({"task": ["a", "a", "b"], "worker": ["x", "y", "x"], "tags": ["sports|politics", " sports ", ""]})


def test_gold_labels_of_tags_that_a_fit_asked_for_are_taken_with_the_table_too(tmp_path):
    fit = cp.fit("majority_vote", cp.Annotations.from_tags(TAGGED, empty="no"))
    gold = cp.next_gold(fit, 2).assign(gold="yes")
    gold.to_csv(tmp_path / "gold.csv", index=False)
    for given in (gold, tmp_path / "gold.csv"):
        found = cp.Annotations.from_tags(TAGGED, empty="no", gold=given)
        np.testing.assert_array_equal(found.gold, fit.annotations.with_gold(gold).gold)
    assert (found.gold == 1).sum() == 2


def test_tags_are_questions_of_yes_and_no():
    annotations = cp.Annotations.from_tags(TAGGED, empty="no", gold={"b": ["politics"]})
    assert list(annotations.questions) == ["sports", "politics"]
    assert list(annotations.classes) == ["no", "yes"]
    assert cells(annotations) == sorted(
        [
            ("a", "sports", "x", "yes"),
            ("a", "politics", "x", "yes"),
            ("a", "sports", "y", "yes"),
            ("a", "politics", "y", "no"),
            ("b", "sports", "x", "no"),
            ("b", "politics", "x", "no"),
        ]
    )
    assert gold_by_pair(annotations) == {("b", "sports"): "no", ("b", "politics"): "yes"}


def test_lists_of_tags_and_other_separators_are_the_same():
    wanted = cells(cp.Annotations.from_tags(TAGGED, empty="no"))
    listed = TAGGED.assign(tags=[["sports", "politics"], ["sports", "sports"], []])
    comma = TAGGED.assign(tags=TAGGED["tags"].str.replace("|", ","))
    assert cells(cp.Annotations.from_tags(listed)) == wanted
    assert cells(cp.Annotations.from_tags(comma, tag_separator=",", empty="no")) == wanted


def test_all_known_tags_are_asked():
    annotations = cp.Annotations.from_tags(TAGGED, empty="no", known=["politics", "sports", "arts"])
    assert list(annotations.questions) == ["politics", "sports", "arts"]
    assert annotations.votes()[annotations.question == 2].tolist() == [[2, 0], [1, 0]]


def test_tags_that_cannot_be_are_refused_with_their_place():
    with pytest.raises(cp.AnnotationError, match="the tag 'politics' is none of known="):
        cp.Annotations.from_tags(TAGGED, empty="no", known=["sports", "arts"])
    with pytest.raises(cp.AnnotationError, match=r"column 'tags', row 2: 3.*no list of tags"):
        cp.Annotations.from_tags(TAGGED.assign(tags=[["a"], ["b"], 3]))
    with pytest.raises(cp.AnnotationError, match=r"tags are \['sports'\], and two are needed"):
        cp.Annotations.from_tags(TAGGED.assign(tags="sports"))
    with pytest.raises(cp.AnnotationError, match="labels"):
        cp.Annotations.from_tags(TAGGED, tags="labels")
    with pytest.raises(cp.AnnotationError, match=r"column 'tags', row 1: 'x,y' may be one tag.*separator=','"):
        cp.Annotations.from_tags(TAGGED.assign(tags=["a", "x,y", "z"]))
    assert len(cp.Annotations.from_tags(TAGGED.assign(tags=["a", "x,y", "z"]), tag_separator="|").questions) == 3
    with pytest.raises(
        cp.AnnotationError, match=r"^separator= cannot be used of tags; .*tag_separator=; options are cou"
    ):
        cp.Annotations.from_tags(TAGGED.assign(tags="a,b"), separator=",")
    with pytest.raises(cp.AnnotationError, match=r"^colour= cannot be used of tags; options are count, seconds"):
        cp.Annotations.from_tags(TAGGED, empty="no", colour=1)
    with pytest.raises(cp.AnnotationError, match="row 2"):
        cp.Annotations.from_tags(TAGGED.assign(task=["a", "b", None]), empty="no")


@pytest.mark.parametrize("nothing", ["", "  ", None, np.nan])
def test_an_empty_cell_of_tags_says_nothing_unless_somebody_says_what(nothing):
    table = TAGGED.assign(tags=["sports|politics", "sports", nothing])
    with pytest.raises(cp.AnnotationError, match="column 'tags', row 2: the cell is empty; empty='no'"):
        cp.Annotations.from_tags(table)
    assert cells(cp.Annotations.from_tags(table, empty="no")) == cells(cp.Annotations.from_tags(TAGGED, empty="no"))
    said = r"empty='drop' left out 1 of 3 rows, whose cell in column 'tags' is empty.*: row 2$"
    with pytest.warns(AnnotationWarning, match=said):
        assert cells(cp.Annotations.from_tags(table, empty="drop")) == cells(cp.Annotations.from_tags(TAGGED[:2]))
    lonely = table.assign(task=["t", "t", "alone"])
    with pytest.warns(AnnotationWarning, match="is empty, and with them 1 task: row 2"):
        cp.Annotations.from_tags(lonely, empty="drop")


def test_gold_of_a_task_without_its_question_is_told_what_tasks_are():
    rows = [(task, worker, question, "yes") for task in "st" for worker in "ab" for question in ("q1", "q2")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    annotations = cp.Annotations.from_frame(frame, question="question", classes=["no", "yes"])
    with pytest.raises(cp.AnnotationError, match=r"pairs of a task and a question, such as \('s', 'q1'\)"):
        annotations.with_gold({"s": "yes"})


def test_a_column_of_questions_that_is_not_used_is_named_with_the_argument():
    rows = pd.DataFrame(
        [(task, worker, question, "yes") for task in "st" for worker in "ab" for question in ("safe", "kind")],
        columns=["task", "worker", "question", "label"],
    )
    rows.loc[0, "label"] = "no"
    with pytest.warns(AnnotationWarning, match=r"column 'question'.*not used.*question='question'"):
        assert cp.Annotations.from_frame(rows).n_tasks == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.Annotations.from_frame(rows, question="question")
        cp.Annotations.from_frame(rows.assign(task=rows["task"] + rows["question"]))  # of one question each


@pytest.mark.parametrize("task", ["answer", "response", "output"])
@pytest.mark.parametrize("question", ["question", "criterion", None])
def test_answers_that_judges_score_are_the_tasks_where_no_column_is_called_so(task, question, capsys):
    """The message asked for the column of scores as tasks, or of answers as labels, and its command was followed."""
    questions = ["helpful", "safe"] if question else ["helpful"]
    rows = [(f"a{i}", f"j{j}", q, (i + j) % 5 + 1) for i in range(12) for j in range(3) for q in questions]
    table = pd.DataFrame(rows, columns=[task, "judge", question or "left out", "score"])
    annotations = cp.read(table, ordered=True)
    assert f"task {task!r}, " in capsys.readouterr().err
    assert annotations.n_tasks == 12 * len(questions)
    assert list(annotations.questions) == (questions if question else [])


@pytest.mark.parametrize("answers", [["Paris", "Rome"], [f"city {i}" for i in range(20)]])
def test_answers_to_other_questions_are_no_tasks_and_scores_are_asked_for_as_labels(answers):
    """Each answer is to a question of its own, or to some that others are to as well."""
    rows = [(f"q{i}", answers[i % len(answers)], f"j{j}", (i + j) % 5 + 1) for i in range(20) for j in range(3)]
    table = pd.DataFrame(rows, columns=["question", "answer", "judge", "score"])
    with pytest.raises(cp.AnnotationError, match="'answer' and 'score' may all name the labels; say label='score'"):
        cp.read(table, tell=False)
    assert cp.read(table, label="score", tell=False).n_tasks == 20
