"""One question of several, asked for by its name, in tables of any form."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError

SCORES = {"helpfulness": [1, 4, 2, 3], "safety": ["no", "yes"]}
RATERS = ["ann", "bob", "cy"]


def long_table(**more):
    rows = [
        {"item": f"i{item}", "rater": rater, "question": name, "label": of[(item + at) % len(of)], **more}
        for item in range(8)
        for at, rater in enumerate(RATERS)
        for name, of in SCORES.items()
    ]
    return pd.DataFrame(rows)


def given(annotations):
    return annotations.to_frame().set_index(["task", "worker"])["label"].to_dict()


HELPFULNESS = {
    (f"i{item}", rater): SCORES["helpfulness"][(item + at) % 4] for item in range(8) for at, rater in enumerate(RATERS)
}


@pytest.fixture(params=["frame", "csv", "jsonl", "parquet", "shuffled"])
def source(request, tmp_path):
    table, path = long_table(), tmp_path / f"long.{request.param}"
    if request.param == "csv":
        table.to_csv(path, index=False)
    elif request.param == "jsonl":
        table.to_json(path, orient="records", lines=True)
    elif request.param == "parquet":
        table.astype({"label": str}).to_parquet(path)
    else:
        return table if request.param == "frame" else table.sample(frac=1, random_state=0)
    return path


@pytest.mark.filterwarnings("ignore:column 'label'. the whole numbers")
def test_a_question_by_its_name_is_read_without_the_others_and_their_classes(source, capsys):
    found = cp.read(source, question="helpfulness")
    assert {of: int(label) for of, label in given(found).items()} == HELPFULNESS
    assert [int(label) for label in found.classes] == [1, 2, 3, 4]
    assert len(found.questions) == 0
    assert "'helpfulness' of 'question' alone" in capsys.readouterr().err
    assert list(cp.read(source, question="safety", tell=False).classes) == ["no", "yes"]


def test_a_question_that_is_unknown_is_refused_with_those_there_are(source):
    with pytest.raises(AnnotationError, match="there is no question 'tone'; there are ") as refused:
        cp.read(source, question="tone")
    assert set(re.findall("'(.*?)'", str(refused.value).partition("there are ")[2])) == {"helpfulness", "safety"}


def test_the_row_at_fault_is_that_of_the_whole_table(tmp_path):
    table = long_table().astype({"label": object})
    table.loc[9, "label"] = np.nan
    table.to_csv(tmp_path / "long.csv", index=False)
    with pytest.raises(AnnotationError, match="row 9"):
        cp.read(tmp_path / "long.csv", question=long_table().loc[9, "question"])


def test_gold_of_the_question_is_its_own(tmp_path):
    table = long_table().assign(gold=lambda rows: np.where(rows["question"] == "safety", "yes", "3"))
    table.to_csv(tmp_path / "long.csv", index=False)
    found = cp.read(tmp_path / "long.csv", question="safety", tell=False)
    assert {found.classes[k] for k in found.gold} == {"yes"}


@pytest.mark.filterwarnings("ignore:column 'helpfulness'. the whole numbers")
def test_a_column_of_labels_is_a_question_where_each_worker_has_a_row_for_each_task(tmp_path):
    table = long_table().pivot_table(index=["item", "rater"], columns="question", values="label", aggfunc="first")
    table.reset_index().to_csv(tmp_path / "wide.csv", index=False)
    for whole in (table.reset_index().astype({"helpfulness": int}), tmp_path / "wide.csv"):
        assert given(cp.read(whole, question="helpfulness", tell=False)) == HELPFULNESS
        with pytest.raises(AnnotationError, match=re.escape("question=['helpfulness', 'safety']")):
            cp.read(whole, question="tone")
    ungiven = long_table().rename(columns={"label": "grade_x", "question": "asks"})
    assert len(cp.read(ungiven, question="asks", label="grade_x", tell=False).questions) == 2


def test_a_question_of_columns_for_each_worker_and_question_is_read_by_its_name(tmp_path):
    rng = np.random.default_rng(0)
    columns = [f"{judge}_{name}" for judge in ("gpt4", "claude") for name in ("fluency", "coherence")]
    table = pd.DataFrame({"item": range(12)} | {name: rng.integers(1, 4, 12).astype(str) for name in columns})
    table.to_csv(tmp_path / "grid.csv", index=False)
    found = cp.read(tmp_path / "grid.csv", question="fluency", tell=False)
    assert set(found.workers) == {"gpt4", "claude"}
    assert given(found)[0, "gpt4"] == int(table["gpt4_fluency"][0])
    with pytest.raises(AnnotationError, match="no question 'tone'; there are 'fluency', 'coherence'"):
        cp.read(tmp_path / "grid.csv", question="tone")


def test_a_criterion_of_comparisons_is_read_by_its_name(tmp_path):
    rows = [
        {"model_a": a, "model_b": b, "prompt": f"p{n}", "rater": rater, "criterion": name, "winner": side}
        for n in range(4)
        for a, b in (("x", "y"), ("y", "z"))
        for rater in RATERS
        for name, side in (("tone", "model_a"), ("facts", "model_b"))
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = cp.read(tmp_path / "pairs.jsonl", question="tone", tell=False)
    assert found.sides is not None
    assert set(found.to_frame()["label"]) == {"left"}
    with pytest.raises(AnnotationError, match="no question 'length'; there are 'tone', 'facts'"):
        cp.read(tmp_path / "pairs.jsonl", question="length")


def test_a_table_without_questions_has_none_to_ask_for(tmp_path):
    table = long_table().query("question == 'safety'").drop(columns="question")
    with pytest.raises(AnnotationError, match=r"question='safety' has no meaning; name the column .* label="):
        cp.read(table, question="safety")


def test_a_column_of_questions_is_one_beside_labels_also_where_a_worker_has_one_row_for_a_task():
    rows = [(1, "a", "style", 3), (1, "b", "tone", 4), (2, "a", "tone", 3), (2, "b", "style", 5)]
    table = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    for read in (table, table.rename(columns={"question": "which", "label": "rating"})):
        found = cp.read(read, question=read.columns[2], ordered=True, tell=False)
        assert list(found.questions) == ["style", "tone"]
        assert list(found.classes) == [3, 4, 5]
