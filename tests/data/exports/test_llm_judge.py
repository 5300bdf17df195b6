"""Judgments of FastChat's llm_judge, written here by hand with the fields of its `gen_judgment`."""

import json

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError


def write(path, records):
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def single(question, model, judge, score, *, turn=1, template="single-v1"):
    return {
        "question_id": question,
        "model": model,
        "judge": [judge, template],
        "user_prompt": "[Question] …",
        "judgment": f"Rating: [[{score}]]",
        "score": score,
        "turn": turn,
        "tstamp": 1718000000.5,
    }


def pair(question, one, two, g1, g2, *, turn=1, **more):
    told = {f"g{n}_{what}": "…" for n in (1, 2) for what in ("user_prompt", "judgment")}
    names = {"question_id": question, "model_1": one, "model_2": two, "judge": ["gpt-4", "pair-v2"], "turn": turn}
    return {**names, "g1_winner": g1, "g2_winner": g2, **told, "tstamp": 1718000000.5, **more}


SINGLES = [
    single(81, "alpaca", "gpt-4", 8),
    single(81, "alpaca", "gpt-4", 7.5, turn=2, template="single-v1-multi-turn"),
    single(81, "vicuna", "gpt-4", -1),
    single(81, "alpaca", "claude-v1", 10),
    single(81, "vicuna", "claude-v1", 9),
]


def labels(annotations):
    frame = annotations.to_frame()
    return frame.groupby(["task", "worker"], sort=False)["label"].agg(list).to_dict()


def test_of_single_answers_a_judge_is_the_worker_and_what_could_not_be_parsed_an_abstention(tmp_path, capsys):
    annotations = cp.read(write(tmp_path / "gpt-4_single.jsonl", SINGLES))
    assert labels(annotations) == {
        ("81, turn 1 @ alpaca", "gpt-4"): [8],
        ("81, turn 1 @ alpaca", "claude-v1"): [10],
        ("81, turn 2 @ alpaca", "gpt-4"): [7.5],
        ("81, turn 1 @ vicuna", "gpt-4"): ["unreadable"],
        ("81, turn 1 @ vicuna", "claude-v1"): [9],
    }
    assert list(annotations.classes) == [7.5, 8, 9, 10]
    assert annotations.kind.name == "ordered"
    said = capsys.readouterr().err
    assert "task = a model's answer to a sample (3 tasks of 2 models); worker = a scorer (gpt-4, claude-v1)" in said
    assert "a sample is a turn of a question" in said
    assert "the score -1 is no verdict; no verdict once" in said


def test_a_template_is_named_where_a_judge_has_judged_one_answer_by_several(tmp_path):
    more = [*SINGLES, single(81, "alpaca", "gpt-4", 6, template="single-math-v1"), SINGLES[3]]
    annotations = cp.read(write(tmp_path / "gpt-4_single.jsonl", more))
    assert set(annotations.workers) == {
        "gpt-4 (single-v1)",
        "gpt-4 (single-v1-multi-turn)",
        "gpt-4 (single-math-v1)",
        "claude-v1",
    }
    assert labels(annotations)["81, turn 1 @ alpaca", "claude-v1"] == [10, 10]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (single(82, "a", "gpt-4", "eight"), r"line 6: score is 'eight'; a number is needed, -1 where"),
        ({**single(82, "a", "gpt-4", 8), "judge": "gpt-4"}, r"line 6: judge is 'gpt-4'; a list of"),
        ({"question_id": 82}, r"line 6: a judgment with question_id, model, judge, score"),
    ],
)
def test_a_line_that_is_no_judgment_is_refused_with_its_number(tmp_path, record, message):
    with pytest.raises(AnnotationError, match=message):
        cp.read(write(tmp_path / "gpt-4_single.jsonl", [*SINGLES, record]))


PAIRS = [
    pair(81, "vicuna", "alpaca", "model_1", "model_2"),
    pair(81, "vicuna", "alpaca", "tie", "error", turn=2),
    pair(82, "llama", "alpaca", "model_1", "model_1"),
]


def test_pairs_are_comparisons_in_both_orders_and_an_error_is_an_abstention(tmp_path, capsys):
    path = write(tmp_path / "gpt-4_pair.jsonl", PAIRS)
    rows = [
        ("81, turn 1", "vicuna", "alpaca", "gpt-4", "vicuna"),
        ("81, turn 1", "alpaca", "vicuna", "gpt-4", "alpaca"),
        ("81, turn 2", "vicuna", "alpaca", "gpt-4", "tie"),
        ("81, turn 2", "alpaca", "vicuna", "gpt-4", "error"),
        ("82, turn 1", "llama", "alpaca", "gpt-4", "llama"),
        ("82, turn 1", "alpaca", "llama", "gpt-4", "llama"),
    ]
    wanted = cp.Annotations.from_comparisons(
        pd.DataFrame(rows, columns=["question", "left", "right", "worker", "label"]),
        prompt="question",
        abstain=["error"],
    )
    for source in (path, PAIRS, pd.DataFrame(PAIRS)):
        found = cp.read(source)
        assert found.pairs.equals(wanted.pairs)
        assert found.to_frame().equals(wanted.to_frame())
        assert (found.mirrored == wanted.mirrored).all()
        assert list(found.abstentions) == ["error"]
        said = capsys.readouterr().err
        assert "6 comparisons of 3 items, 2 pairs, 1 worker" in said
        assert "in both orders (g2 with the sides exchanged)" in said
        assert "1 × 'error' an abstention" in said


def test_a_pair_whose_winner_has_the_higher_score_was_judged_once(tmp_path):
    scored = pair(81, "a", "b", "model_1", "model_1", m1_score=8, m2_score=5)
    assert cp.read(write(tmp_path / "gpt-4_pair.jsonl", [scored])).n_annotations == 1


def test_a_winner_that_is_no_side_is_refused_with_its_row(tmp_path):
    path = write(tmp_path / "gpt-4_pair.jsonl", [*PAIRS, pair(83, "a", "b", "model_1", "A")])
    with pytest.raises(AnnotationError, match=r"gpt-4_pair\.jsonl, row 3: g2_winner is 'A'; expected 'model_1', "):
        cp.read(path)


def test_model_1_and_model_2_name_sides_whatever_the_columns_are_called():
    table = pd.DataFrame(
        [("a", "b", "j", "model_2"), ("b", "c", "j", "model_1")], columns=["left", "right", "worker", "label"]
    )
    assert cp.Annotations.from_comparisons(table).to_frame()["label"].tolist() == ["right", "left"]


def test_items_that_are_called_like_sides_are_refused_only_where_both_readings_differ():
    rows = [("model_1", "model_2", "j", "model_2"), ("model_1", "model_2", "k", "model_1")]
    table = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
    assert cp.Annotations.from_comparisons(table).to_frame()["label"].tolist() == ["right", "left"]
    table.loc[2] = ["model_2", "model_1", "l", "model_1"]
    with pytest.raises(AnnotationError, match=r"'model_[12]' names a side and an item"):
        cp.Annotations.from_comparisons(table)
