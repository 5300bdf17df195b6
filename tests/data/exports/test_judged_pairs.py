"""Judgments of pairs by AlpacaEval and Arena-Hard, written here by hand with the fields of their files."""

import json

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp

REFERENCE = "gpt4_turbo"


def alpaca(preferences, model="small", annotator="weighted_gpt4"):
    return [
        {
            "instruction": f"do {number}",
            "output_1": f"{REFERENCE} {number}",
            "generator_1": REFERENCE,
            "output_2": f"{model} {number}",
            "generator_2": model,
            "annotator": annotator,
            "preference": preference,
            "preference_version": "alpaca_eval==0.6.6",
        }
        for number, preference in enumerate(preferences)
    ]


def write(path, records):
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records), encoding="utf-8")
    return path


def winners(annotations):
    """By row, in the table's order where each is a task: the item that was preferred, or the label that is none."""
    frame = annotations.to_frame()
    pairs = annotations.pairs
    return [
        pairs.loc[[task], label].iloc[0] if label in ("left", "right") else label
        for task, label in zip(frame["task"], frame["label"], strict=True)
    ]


def test_a_preference_is_the_nearer_side_and_0_a_tie_and_none_an_abstention_which_is_said(tmp_path, capsys):
    given = [1.0, 2.0, 1.0003, 1.93, 1.6, 1.5, 0, None, 1.4999]
    path = write(tmp_path / "annotations.json", alpaca(given))
    found = cp.read(path, preferences=True)
    one, two = REFERENCE, "small"
    assert winners(found) == [one, two, one, two, two, "tie", "tie", "unreadable", one]
    said = capsys.readouterr().err
    assert "of 4 fractions the nearer side is taken (3 from 1.05 to 1.95, where the judge was not sure)" in said
    assert "2 × 1.5 or 0 a tie; no preference 1 ×, an abstention called 'unreadable'" in said
    table = pd.DataFrame(alpaca(given))
    table.to_csv(tmp_path / "annotations.csv", index=False)
    for source in (table, tmp_path / "annotations.csv"):
        assert winners(cp.read(source, preferences=True, tell=False)) == winners(found)


def test_sides_are_drawn_so_that_the_reference_is_no_position():
    found = cp.read(alpaca([1.0] * 400), tell=False)
    assert not found.kind.shows_sides
    is_left = np.asarray(found.sides)[:, 0] == found.items.index_of([REFERENCE])[0]
    assert 0.4 < is_left.mean() < 0.6  # four standard errors of 400 draws
    assert set(winners(found)) == {REFERENCE}


def test_annotators_of_a_folder_of_results_compare_all_models_and_other_files_are_named(tmp_path, capsys):
    for model in ("small", "large"):
        for annotator in ("gpt4", "claude"):
            folder = tmp_path / "results" / model / annotator
            write(folder / "annotations.json", alpaca([1.0, 2.0, 1.5, 1.0], model, annotator))
            (folder / "leaderboard.csv").write_text(",win_rate\nsmall,40\n")
        outputs = [{"instruction": "do 0", "output": "…", "generator": model}]
        write(tmp_path / "results" / model / "model_outputs.json", outputs)
    found = cp.read(tmp_path / "results")
    assert set(found.items) == {REFERENCE, "small", "large"}
    assert set(found.workers) == {"gpt4", "claude"}
    assert (found.n_tasks, found.n_annotations) == (8, 16)
    assert "6 other files left out: 'leaderboard.csv', 'model_outputs.json'" in capsys.readouterr().err


def test_a_preference_beyond_1_and_2_is_refused_with_its_place_and_a_model_against_itself_left_out(tmp_path, capsys):
    path = write(tmp_path / "annotations.json", alpaca([1.0, 2.0, 2.5]))
    with pytest.raises(cp.AnnotationError, match=r"column 'preference', row 2: the value is 2\.5; expected 1 for"):
        cp.read(path)
    write(tmp_path / "results" / "annotations.json", [*alpaca([1.0, 2.0]), *alpaca([1.5], REFERENCE)])
    write(tmp_path / "results" / "more" / "annotations.json", alpaca([1.0, -1]))
    with pytest.raises(cp.AnnotationError, match=r"annotations\.json, line 2: the value is -1\.0; expected"):
        cp.read(tmp_path / "results")
    assert cp.read(tmp_path / "results" / "annotations.json").n_annotations == 2
    assert "1 comparison of an item with itself left out" in capsys.readouterr().err


def test_what_is_said_of_preferences_goes_before_their_usual_meaning():
    rows = alpaca([1.0, 1.5, 2.0, 1.5])
    assert "tie" in cp.read(rows, meaning={1.5: "tie"}, tell=False).classes
    with pytest.raises(cp.AnnotationError, match=r"row 0.*1\.02.*round\(\)"):
        cp.read(alpaca([1.02, 1.97]), label="preference", tell=False)


def arena(uid, model, *scores, **fields):
    games = [None if score == "failed" else {"score": score, "judgment": {}, "prompt": []} for score in scores]
    named = {"uid": uid, "category": "coding", "judge": "gpt-4.1", "model": model, "baseline": "o3"}
    return named | {"games": games} | fields


ARENA = [
    arena("q1", "small", "A>>B", "B>A"),
    arena("q1", "large", "B>A", "A=B"),
    arena("q2", "small", None, "failed"),
    arena("q2", "large", "A<<B", "[[A>B]]", judge="claude"),
]


def test_the_baseline_is_a_in_the_first_game_of_arena_hard_and_b_in_the_second(tmp_path, capsys):
    rows = [
        ("q1", "o3", "small", "gpt-4.1", "o3"),
        ("q1", "small", "o3", "gpt-4.1", "o3"),
        ("q1", "o3", "large", "gpt-4.1", "large"),
        ("q1", "large", "o3", "gpt-4.1", "tie"),
        ("q2", "o3", "small", "gpt-4.1", "unreadable"),
        ("q2", "small", "o3", "gpt-4.1", "unreadable"),
        ("q2", "o3", "large", "claude", "large"),
        ("q2", "large", "o3", "claude", "large"),
    ]
    table = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    wanted = cp.Annotations.from_comparisons(table, prompt="prompt", abstain=["unreadable"])
    for source in (write(tmp_path / "one.jsonl", ARENA), ARENA, pd.DataFrame(ARENA)):
        found = cp.read(source)
        assert found.to_frame().equals(wanted.to_frame())
        assert found.pairs.equals(wanted.pairs)
        assert (found.mirrored == wanted.mirrored).all()
        said = capsys.readouterr().err
        assert "2 × A>>B or B>>A of 8 is A>B or B>A" in said
        assert "no verdict 2 ×, an abstention called 'unreadable'" in said


def test_a_folder_of_arena_hard_is_read_whatever_else_is_in_it(tmp_path, capsys):
    for model in ("small", "large"):
        own = [record for record in ARENA if record["model"] == model]
        write(tmp_path / "bench" / "model_judgment" / "gpt-4.1" / f"{model}.jsonl", own)
        write(tmp_path / "bench" / "model_answer" / f"{model}.jsonl", [{"uid": "q1", "model": model, "messages": []}])
    write(tmp_path / "bench" / "question.jsonl", [{"uid": "q1", "category": "coding", "prompt": "…"}])
    found = cp.read(tmp_path / "bench")
    assert (list(found.items), found.n_annotations) == (["large", "o3", "small"], 8)
    assert "3 other files left out: 'large.jsonl', 'small.jsonl', 'question.jsonl'" in capsys.readouterr().err


def test_a_baseline_without_a_name_is_one_for_each_category_which_is_said(tmp_path, capsys):
    older = [
        {key: value for key, value in record.items() if key not in ("baseline", "category", "uid")} for record in ARENA
    ]
    older = [record | {"question_id": number} for number, record in enumerate(older)]
    assert "baseline" in cp.read(write(tmp_path / "old.jsonl", older)).items
    assert "the files do not name the baseline, here 'baseline'" in capsys.readouterr().err
    by_category = [record | {"category": name} for record, name in zip(older, ["coding", "writing"] * 2, strict=True)]
    assert {"baseline of coding", "baseline of writing"} < set(cp.read(by_category, tell=False).items)


def test_a_score_of_a_game_that_is_no_verdict_is_refused_and_a_model_against_itself_left_out(tmp_path, capsys):
    path = write(tmp_path / "small.jsonl", [*ARENA, arena("q3", "small", "A>B", 7)])
    with pytest.raises(cp.AnnotationError, match=r"small\.jsonl, row 4: the score of games\[1\] is 7; expected A>>B"):
        cp.read(path)
    write(path, [*ARENA, arena("q3", "o3", "A=B", "A=B"), arena("q4", "small")])
    assert cp.read(path).n_annotations == 8
    said = capsys.readouterr().err
    assert "1 comparison of an item with itself left out; 1 judgment without games left out" in said
    write(path, [arena("q4", "small")])
    with pytest.raises(cp.AnnotationError, match="no game of two models"):
        cp.read(path)
