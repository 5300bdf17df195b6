"""Files as people have them today, each of which was read as something else without a word, or refused without help."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.column_names import both_columns
from crowdppl.data.errors import AnnotationError, AnnotationWarning


def written(tmp_path, frame, separator=","):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False, sep=separator)
    return path


def read(tmp_path, frame, **options):
    return cp.read(written(tmp_path, frame), tell=False, **options)


@pytest.mark.parametrize(
    "names",
    [
        ("Aufgabe", "Annotator", "Bewertung"),
        ("Bild", "Bewerter", "Kategorie"),
        ("Tâche", "Annotateur", "Réponse"),
        ("tarea", "anotador", "etiqueta"),
    ],
)
def test_usual_words_of_other_languages_name_columns(tmp_path, names):
    rows = [(f"t{i}", f"w{j}", "ab"[(i + j) % 2]) for i, j in product(range(4), range(3))]
    annotations = cp.read(written(tmp_path, pd.DataFrame(rows, columns=names), ";"), tell=False)
    assert (annotations.n_tasks, annotations.n_workers) == (4, 3)


def test_many_questions_about_images_are_tasks_with_their_image(tmp_path):
    rows = [
        (f"{i % 40}.png", f"What is thing {i}?", f"u{j}", "yes" if i % 3 else "no")
        for i, j in product(range(120), range(2))
    ]
    annotations = read(tmp_path, pd.DataFrame(rows, columns=["image_id", "question", "user_id", "answer"]))
    assert annotations.n_tasks == 120
    assert "7.png | What is thing 47?" in annotations.tasks
    by_image = read(
        tmp_path, pd.DataFrame(rows, columns=["image_id", "question", "user_id", "answer"]), task="image_id"
    )
    assert by_image.n_tasks == 40


def test_an_id_that_numbers_the_rows_is_no_task_beside_a_question_that_several_answered(tmp_path):
    rows = [(n, f"Is it {i}?", f"u{j}", "yes") for n, (i, j) in enumerate(product(range(5), range(3)))]
    annotations = read(
        tmp_path, pd.DataFrame(rows, columns=["id", "question", "user_id", "answer"]), classes=["yes", "no"]
    )
    assert list(annotations.tasks) == [f"Is it {i}?" for i in range(5)]


@pytest.mark.parametrize("count", ["count", "n_votes"])
def test_rows_that_stand_for_several_annotations_are_counted_so(tmp_path, count):
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "label": ["a", "b", "a", "b"], count: [3, 2, 0, 5]})
    assert read(tmp_path, frame, worker=None).votes().tolist() == [[3, 2], [0, 5]]
    with pytest.raises(cp.AnnotationError, match=f"worker=None and count='{count}'"):
        read(tmp_path, frame)


@pytest.mark.parametrize("name", ["metric", "attribute"])
def test_scores_by_metric_are_questions(tmp_path, name):
    rows = [(i, f"w{j}", what, 1 + (i + j) % 3) for i, j, what in product(range(4), range(2), ["fluent", "true"])]
    annotations = read(tmp_path, pd.DataFrame(rows, columns=["sample", "judge", name, "score"]))
    assert list(annotations.questions) == ["fluent", "true"]


@pytest.mark.parametrize(
    ("labels", "in_order"),
    [
        (["Agree", "Strongly agree", "Neutral", "Disagree"], ["Disagree", "Neutral", "Agree", "Strongly agree"]),
        (["often", "never", "always"], ["never", "often", "always"]),
        (["100%", "20%", "0%"], ["0%", "20%", "100%"]),
    ],
)
def test_words_of_a_scale_are_told_of_with_their_order(tmp_path, labels, in_order):
    rows = [(i, f"w{j}", labels[(i + j) % len(labels)]) for i, j in product(range(6), range(3))]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    with pytest.warns(AnnotationWarning) as caught:
        read(tmp_path, frame)
    assert any(f"ordered={in_order!r}" in str(each.message) for each in caught)
    assert list(read(tmp_path, frame, ordered=in_order).classes) == in_order


def test_names_without_an_order_are_not_told_of(tmp_path, recwarn):
    rows = [(i, f"w{j}", ["positive", "good", "cat"][(i + j) % 3]) for i, j in product(range(6), range(3))]
    read(tmp_path, pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert not [each for each in recwarn if "scale" in str(each.message)]


def test_two_winners_of_a_comparison_are_refused_with_how_to_read_one(tmp_path):
    rows = [
        (f"p{i}", "x", "y", f"j{j}", "AB"[(i + j) % 2], ["A", "B", "tie"][i % 3])
        for i, j in product(range(6), range(2))
    ]
    frame = pd.DataFrame(rows, columns=["prompt", "model_a", "model_b", "judge", "winner_helpful", "winner_safe"])
    with pytest.raises(cp.AnnotationError, match=r"'winner_helpful' and 'winner_safe'.*label='winner_helpful'"):
        read(tmp_path, frame)
    one = read(tmp_path, frame, label="winner_safe")
    assert one.votes().sum(0).tolist() == [4, 4, 4]


def test_several_labels_at_once_are_refused_with_their_place_and_read_as_tags():
    records = [
        {
            "id": i,
            "annotations": [{"annotator": who, "labels": ["a", "b"][: 1 + (i + j) % 2]} for j, who in enumerate("xy")],
        }
        for i in range(4)
    ]
    with pytest.raises(cp.AnnotationError, match=r"record 0, annotations\[0\].labels: \['a'\].*tags='labels'"):
        cp.read(records)
    tags = cp.read(records, tags="labels", tell=False)
    assert list(tags.questions) == ["a", "b"]
    assert tags.of_question("b").votes().sum(0).tolist() == [4, 4]


DAYS = 1.7e9 + 86400 * np.arange(6)


@pytest.mark.parametrize(
    ("place", "value", "said"), [(2, 0, "unknown"), (4, -1, "unknown"), (3, 1.7e12, "another unit than most")]
)
def test_a_time_that_is_none_or_of_another_unit_is_refused_with_its_row(place, value, said):
    when = np.array(DAYS)
    when[place] = value
    frame = pd.DataFrame({"task": [1, 1, 2, 2, 3, 3], "worker": ["a", "b"] * 3, "label": ["x", "y"] * 3, "when": when})
    with pytest.raises(cp.AnnotationError, match=f"column 'when', row {place}.*{said}"):
        cp.Annotations.from_frame(frame, when="when")
    numbered = cp.Annotations.from_frame(frame.assign(when=range(6)), when="when")
    assert numbered.when.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_annotation_given_again_at_another_time_is_no_table_appended_to_itself(recwarn):
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "y", "x", "y"]})
    frame = pd.concat([frame, frame], ignore_index=True).assign(when=1.7e9 + np.arange(8))
    cp.Annotations.from_frame(frame, when="when")
    assert not [each for each in recwarn if "appended" in str(each.message)]
    with pytest.warns(AnnotationWarning, match=r"appended.*keeps one of each"):
        cp.Annotations.from_frame(frame)


def test_what_the_first_annotations_leave_is_said_where_workers_changed_their_minds():
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "a", "b"], "label": ["x", "y", "y"]})
    frame = pd.concat([frame, frame], ignore_index=True)
    with pytest.warns(AnnotationWarning, match="each worker's first for a task, 2 of 3 that differ"):
        cp.Annotations.from_frame(frame)
    with pytest.warns(AnnotationWarning):
        assert cp.Annotations.from_frame(frame, repeats="first").n_annotations == 2


def test_how_sure_workers_are_beside_their_labels_is_no_worker(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(20)})
    for who in ("ann", "bob"):
        frame[who] = rng.choice(["yes", "no"], 20)
        frame[f"{who}_confidence"] = rng.integers(1, 6, 20)
    annotations = read(tmp_path, frame)
    assert list(annotations.workers) == ["ann", "bob"]
    assert list(annotations.classes) == ["no", "yes"]
    sureness = frame.rename(columns={"ann_confidence": "sure1", "bob_confidence": "sure2"})
    with pytest.raises(cp.AnnotationError, match=r"'ann', 'bob' have 'no', 'yes' and 'sure1', 'sure2' have"):
        read(tmp_path, sureness)


def test_models_whose_names_begin_alike_stay_workers(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(20)} | {name: rng.choice(["yes", "no"], 20) for name in ("gpt-4", "gpt-4-turbo")})
    assert read(tmp_path, frame).n_workers == 2


def test_means_below_a_pivoted_table_are_refused_with_their_row(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [(f"t{i}", who, rng.choice([1, 2, 4])) for i, who in product(range(8), ["ann", "bob", "cy"])],
        columns=["task", "worker", "score"],
    )
    pivot = rows.pivot_table(index="task", columns="worker", values="score", margins=True)
    with pytest.raises(cp.AnnotationError, match=r"column 'ann', row 8: '.*' is a fraction"):
        read(tmp_path, pivot.reset_index())


def test_lists_of_labels_with_one_twice_are_of_workers_without_names():
    records = [
        {"id": i, "sentence": "…", "labels": labels} for i, labels in enumerate([[0, 1, 1], [1, 1, 1], [0, 0, 1]])
    ]
    annotations = cp.read(records, tell=False)
    assert not annotations.named
    assert annotations.votes().tolist() == [[1, 2], [0, 3], [2, 1]]


def test_judges_of_an_answer_are_read_and_not_the_answer_that_they_judge():
    records = [
        {
            "prompt_id": i,
            "response": {"model": "m1", "text": "foo"},
            "judgments": [{"judge": who, "score": 1 + (i + j) % 3} for j, who in enumerate(["gpt", "claude"])],
        }
        for i in range(5)
    ]
    annotations = cp.read(records, tell=False)
    assert list(annotations.workers) == ["gpt", "claude"]
    assert list(annotations.classes) == [1, 2, 3]


def test_criteria_of_judges_in_records_are_questions():
    records = [
        {
            "id": i,
            "judges": [{"name": who, "scores": {"helpful": 1 + (i + j) % 3, "safe": 3}} for j, who in enumerate("xy")],
        }
        for i in range(4)
    ]
    annotations = cp.read(records, tell=False)
    assert list(annotations.questions) == ["helpful", "safe"]
    assert list(annotations.workers) == ["x", "y"]
    assert annotations.of_question("safe").votes()[:, annotations.classes.index_of([3])[0]].tolist() == [2, 2, 2, 2]


def of_judges_by_criterion():
    """Records of twenty answers, which two judges score by two criteria each with their reasons."""
    return [
        {
            "id": i,
            "prompt": f"text {i}",
            "judges": {
                who: {"clarity": 1 + (i + j) % 5, "accuracy": 1 + i % 3, "reason": f"{who} on {i}"}
                for j, who in enumerate(("gpt-4", "claude"))
            },
        }
        for i in range(20)
    ]


def lines_of(records, path):
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def test_records_by_judge_and_criterion_are_workers_with_questions_of_which_one_may_be_asked_for(tmp_path, capsys):
    records = of_judges_by_criterion()
    path = lines_of(records, tmp_path / "scores.jsonl")
    annotations = cp.read(path)
    assert "'prompt', 'reason'" in capsys.readouterr().err.partition("left out: ")[2]
    rows = [{"task": each["id"], "worker": who, **cell} for each in records for who, cell in each["judges"].items()]
    table = cp.Annotations.from_frame(pd.DataFrame(rows), question=["clarity", "accuracy"])
    assert sorted(annotations.to_frame().to_numpy().tolist()) == sorted(table.to_frame().to_numpy().tolist())
    assert len(cp.read(records, tell=False).questions) == 2
    alone = cp.read(path, question="accuracy", tell=False)
    assert (alone.n_annotations, list(alone.classes)) == (40, [1, 2, 3])
    with pytest.raises(AnnotationError, match=r"no column 'tone'; its columns are 'clarity', 'accuracy'"):
        cp.read(path, question="tone")


@pytest.mark.parametrize(("cell", "said"), [(5, r"'judges' has 5"), ({"clarity": 2.5}, r"judges.gpt-4.*2\.5")])
def test_errors_in_records_by_judge_and_criterion_name_file_and_line(tmp_path, cell, said):
    records = of_judges_by_criterion()
    records[3]["judges"]["gpt-4"] = cell
    with pytest.raises(AnnotationError, match=f"line 4 of scores.jsonl.*{said}"):
        cp.read(lines_of(records, tmp_path / "scores.jsonl"))


JUDGES = ("gpt4", "human_anna", "llama-3.1")


def folder_of_judges(folder, columns, row):
    folder.mkdir()
    for j, judge in enumerate(JUDGES):
        lines = [",".join(map(str, row(i, j))) for i in range(30)]
        (folder / f"{judge}.csv").write_text("\n".join([columns, *lines]) + "\n", encoding="utf-8")
    return folder


def test_a_folder_with_a_file_for_each_judge_is_one_table_whose_workers_are_the_files(tmp_path, capsys):
    folder = folder_of_judges(tmp_path / "judged", "id,label", lambda i, j: (i, "no" if (i + j) % 3 else "yes"))
    annotations = cp.read(folder)
    assert "each file has one worker, of its name: 'gpt4', 'human_anna', 'llama-3.1'" in capsys.readouterr().err
    assert (annotations.n_tasks, tuple(annotations.workers)) == (30, JUDGES)
    assert annotations.to_frame().query("worker == 'human_anna'")["label"].to_list()[:3] == ["no", "no", "yes"]
    assert cp.read(str(folder / "*.csv"), tell=False).n_workers == 3
    assert not cp.read(folder, worker=None, tell=False).named
    path = folder / "human_anna.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("\n4,no", "\n4,"), encoding="utf-8")
    with pytest.raises(AnnotationError, match=r"missing in row 4 \(line 6 of human_anna\.csv\)"):
        cp.read(folder)


def test_files_of_a_judge_each_may_be_comparisons_or_have_several_questions(tmp_path):
    names = "question_id,model_a,model_b,winner"
    folder = folder_of_judges(
        tmp_path / "pairs", names, lambda i, j: (i, f"m{i % 3}", f"m{i % 3 + 1}", "ab"[i // 9 % 2])
    )
    pairs = cp.read(folder, tell=False)
    assert (pairs.n_tasks, tuple(pairs.workers), pairs.preferences) == (30, JUDGES, False)
    rubric = folder_of_judges(tmp_path / "rubric", "id,clarity,safe", lambda i, j: (i, i % 3 + 1, (i + j) % 2))
    assert cp.read(rubric, question=["clarity", "safe"], tell=False).n_workers == 3


def test_parts_of_one_table_have_no_workers_by_their_files(tmp_path):
    parts = folder_of_judges(tmp_path / "parts", "id,label", lambda i, j: (100 * j + i, "ab"[i % 2]))
    assert not cp.read(parts, worker=None, tell=False).named
    with pytest.raises(AnnotationError, match="no column 'worker'"):
        cp.read(parts)


def test_criteria_are_no_workers(tmp_path):
    records = [{"id": i, "scores": {"helpful": 1 + i % 3, "safe": 2}} for i in range(4)]
    with pytest.raises(cp.AnnotationError, match=r"'helpful', 'safe' of 'scores'.*label='scores.helpful'"):
        cp.read(records)
    assert cp.read(records, label="scores.helpful", worker=None, tell=False).n_annotations == 4
    frame = pd.DataFrame(
        {"id": range(6), "Clarity": [1, 2, 3] * 2, "Fluency": [1, 2, 2] * 2, "Accuracy": [1, 3, 3] * 2}
    )
    with pytest.raises(cp.AnnotationError, match=r"'Clarity', 'Fluency', 'Accuracy'.*columns='workers'"):
        read(tmp_path, frame)
    assert read(tmp_path, frame, columns="workers").n_workers == 3


def test_items_of_a_survey_are_no_comparison_of_the_first_two(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"participant": [f"p{j}" for j in range(5)]})
    frame = frame.assign(**{f"item_{i}": rng.integers(1, 6, 5) for i in range(12)})
    annotations = read(tmp_path, frame)
    assert (annotations.n_tasks, annotations.n_workers) == (12, 5)
    assert annotations.sides is None


@pytest.mark.parametrize("names", ["annotators", "annotator_ids"])
def test_lists_of_workers_and_their_labels_beside_a_text_are_read_by_place(names):
    records = [{"id": i, "text": "…", names: ["a", "b", "c"], "labels": [0, i % 2, 1]} for i in range(4)]
    annotations = cp.read(records, tell=False)
    assert list(annotations.workers) == ["a", "b", "c"]
    assert annotations.to_frame().query("worker == 'b'")["label"].tolist() == [0, 1, 0, 1]


def test_a_column_for_each_outcome_is_one_winner(tmp_path):
    rng = np.random.default_rng(0)
    side = rng.integers(0, 3, 60)
    pairs = pd.DataFrame({"id": range(60), "model_a": ["x", "y", "z"] * 20, "model_b": ["y", "z", "x"] * 20})
    outcomes = {f"winner_{name}": (side == k).astype(int) for k, name in enumerate(["model_a", "model_b", "tie"])}
    pairs.assign(**outcomes).to_csv(tmp_path / "train.csv", index=False)
    found = cp.read(tmp_path / "train.csv", tell=False)
    said = np.asarray(["model_a", "model_b", "tie"])[side]
    assert same_comparisons(found, cp.read(pairs.assign(winner=said), tell=False))
    twice = pairs.assign(**{**outcomes, "winner_tie": 1})
    with pytest.raises(cp.AnnotationError, match="'winner_model_a' and 'winner_model_b'"):
        cp.read(twice, tell=False)


def same_comparisons(one: cp.Annotations, other: cp.Annotations) -> bool:
    return one.to_frame().equals(other.to_frame()) and one.pairs.equals(other.pairs)


def test_the_column_of_the_chosen_answer_compares_both():
    rng = np.random.default_rng(0)
    sides = ["response_a", "response_b"]
    rows = [(f"p{i}", who, f"x{i}", f"y{i}", rng.choice(sides)) for i, who in product(range(6), "abc")]
    frame = pd.DataFrame(rows, columns=["prompt_id", "annotator", *sides, "chosen"])
    with pytest.warns(AnnotationWarning, match="parts"):
        found = cp.read(frame, tell=False)
    assert list(found.classes) == ["left", "right"]
    assert found.label.sum() == (frame["chosen"] == "response_b").sum()


@pytest.mark.parametrize(("one", "other"), [("chosen", "rejected"), ("chosen_model", "rejected_model")])
def test_chosen_and_rejected_items_are_refused_with_what_makes_comparisons_of_them(one, other):
    models = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "b")]
    table = pd.DataFrame(models, columns=[one, other]).assign(prompt=[*"pqrs"])
    with pytest.raises(cp.AnnotationError, match="second opinion") as refused:
        cp.read(table, tell=False)
    advice = str(refused.value)
    made = advice[advice.index("table.assign(") :].partition(", for cp.")[0]
    made = eval(made, {"table": table})
    found = cp.Annotations.from_comparisons(made, prompt="prompt", worker=None, preferences=True)
    sides = np.asarray(found.sides)
    winners = [found.items[int(pair[label])] for pair, label in zip(sides, found.label, strict=True)]
    assert sorted(winners) == sorted(table[one])


def test_annotations_of_spans_are_by_name_and_no_column_without_a_value_names_their_workers():
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"{i}{name}{kind}", "span_id": f"s{i}", "annotation_name": name, "annotator_kind": kind}
        | {"user_id": None, "result.label": rng.choice(["yes", "no"]), "result.explanation": "…"}
        for i, name, kind in product(range(8), ["correct", "toxic"], ["HUMAN", "LLM"])
    ]
    with pytest.raises(cp.AnnotationError, match=r"Did you mean label='result.label'"):
        cp.read(pd.DataFrame(rows), tell=False)
    found = cp.read(pd.DataFrame(rows), label="result.label", tell=False)
    assert list(found.questions) == ["correct", "toxic"]
    assert set(found.workers) == {"HUMAN", "LLM"}
    assert set(found.classes) == {"yes", "no"}
    assert found.n_annotations == len(rows)


@pytest.mark.parametrize("beside", [{}, {"ncols": 3, "nrows": 4}, {"index": [0, 1, 2, 3]}])
def test_tables_of_columns_and_rows_in_json_are_read(beside, tmp_path):
    rows = [[0, "a", "good"], [0, "b", "bad"], [1, "a", "bad"], [1, "b", "bad"]]
    content = {"columns": ["id", "judge", "verdict"], "data": rows, **beside}
    path = tmp_path / "table.json"
    path.write_text(json.dumps(content))
    assert cp.read(path, tell=False).to_frame()["label"].tolist() == [row[2] for row in rows]
    path.write_text(json.dumps(content | {"data": [*rows, [2, "a"]]}))
    with pytest.raises(cp.AnnotationError, match=r"data\[4\] has 2 values.*3 columns"):
        cp.read(path, tell=False)


@pytest.mark.parametrize("pattern", ["{worker}_{question}", "{question}.{worker}"])
def test_a_column_for_each_rater_and_criterion_is_a_row_for_each_answer(pattern, tmp_path):
    rng = np.random.default_rng(0)
    scores = {(f"rater{j}", q): rng.integers(1, 6, 20) for j in range(3) for q in ("fluency", "coherence")}
    columns = {pattern.format(worker=worker, question=q): given for (worker, q), given in scores.items()}
    pd.DataFrame({"id": range(20), **columns}).to_csv(tmp_path / "scores.csv", index=False)
    with pytest.warns(AnnotationWarning, match="taken as ordered"):
        found = cp.read(tmp_path / "scores.csv", tell=False)
    long = found.to_frame().set_index(["worker", "question", "task"])["label"]
    for (worker, q), given in scores.items():
        assert [long[worker, q, i] for i in range(20)] == given.tolist()


def test_columns_of_raters_that_share_no_labels_are_no_questions():
    table = pd.DataFrame({"id": range(9), "rater1_label": [*"aba"] * 3, "rater2_label": [*"bba"] * 3})
    with pytest.raises(cp.AnnotationError, match="no value in common"):
        cp.read(table.assign(rater1_sure=[1, 2, 3] * 3, rater2_sure=[3, 2, 3] * 3), tell=False)


def test_a_survey_has_a_row_for_each_respondent_and_qualtrics_two_rows_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(rng.integers(1, 6, (20, 4)), columns=["Q1_1", "Q1_2", "Q2", "Q3"])
    monkey = answers.assign(**{"Respondent ID": range(100, 120), "Custom Data": np.nan})
    head = ["Respondent ID", "Custom Data"]
    monkey[[*head, *answers]].to_csv(tmp_path / "monkey.csv", index=False)
    qualtrics = answers.assign(StartDate="2024-03-01 10:00:00", ResponseId=[f"R_{i}" for i in range(20)]).astype(str)
    above = pd.DataFrame(
        [{name: f"What of {name}?" for name in qualtrics}, dict.fromkeys(qualtrics, '{"ImportId":"x"}')]
    )
    pd.concat([above, qualtrics]).to_csv(tmp_path / "qualtrics.csv", index=False)
    for name in ("monkey.csv", "qualtrics.csv"):
        with pytest.warns(AnnotationWarning, match="taken as ordered"):
            found = cp.read(tmp_path / name, tell=False)
        assert (found.n_tasks, found.n_workers, found.n_annotations) == (4, 20, 80)
        assert found.to_frame().groupby("task", sort=False)["label"].sum().to_dict() == answers.sum().to_dict()


def test_feedback_of_langsmith_is_refused_with_the_code_that_makes_rows_of_it(tmp_path):
    runs = [
        {
            "run_id": f"r{i}",
            "outputs": {"a": str(i % 3)},
            "feedback": [
                {"key": "correctness", "score": i % 2, "evaluator": name} for name in ("gpt", "claude")
            ],
        }
        for i in range(6)
    ]  # fmt: skip
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    with pytest.raises(AnnotationError, match=r"LangSmith with feedback of 'correctness'.*cp\.read\(") as refused:
        cp.read(tmp_path / "runs.json", tell=False)
    code = str(refused.value)
    found = eval(code[code.index("cp.read(") :], {"cp": cp, "runs": runs})
    assert sorted(found.workers) == ["claude", "gpt"]
    assert found.votes().tolist() == [[2, 0], [0, 2]] * 3


def test_a_judge_beside_a_model_is_the_worker_and_each_answer_of_a_model_a_task(tmp_path, capsys):
    rows = [
        {"question_id": i, "model": model, "judge": judge, "score": (i + len(judge)) % 5 + 1}
        for i in range(10)
        for model in "AB"
        for judge in ("gpt", "claude")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "judged.csv", index=False)
    with pytest.warns(AnnotationWarning, match="taken as ordered"):
        found = cp.read(tmp_path / "judged.csv")
    assert sorted(found.workers) == ["claude", "gpt"]
    assert found.n_tasks == 20
    assert set(found.tasks) == {f"{i} | {model}" for i in range(10) for model in "AB"}
    assert "task 'question_id | model', worker 'judge'" in capsys.readouterr().err


def of_systems(name="model", question="question"):
    """Judgments of three judges on the answers of three systems to 40 questions; the last system is the best."""
    rng = np.random.default_rng(0)
    keys = [(f"q{i}", system, judge) for i in range(40) for system in "ABC" for judge in ("gpt", "claude", "me")]
    table = pd.DataFrame(keys, columns=[question, name, "judge"])
    score = 2 + table[name].map({"A": 0, "B": 1, "C": 2}) + rng.integers(-1, 2, len(table))
    return table.assign(score=score)


@pytest.mark.parametrize(
    "name",
    ["model", "system", "model_id", "candidate", "response_model", "Generator Name", "evaluated_system", "targetModel"],
)
def test_each_answer_of_a_system_is_a_task_whatever_the_systems_are_called(tmp_path, name):
    of_systems(name).to_csv(tmp_path / "judged.csv", index=False)
    found = cp.read(tmp_path / "judged.csv", ordered=True, tell=False)
    assert found.n_tasks == 120
    assert list(found.tasks[:2]) == ["q0 | A", "q0 | B"]
    assert sorted(found.workers) == ["claude", "gpt", "me"]


def test_answers_of_systems_have_rows_questions_gold_labels_and_repeats_too(tmp_path):
    table = of_systems()
    wide = table.pivot(index=["question", "model"], columns="judge", values="score").reset_index()
    found = cp.read(wide, ordered=True, tell=False)
    assert (found.n_tasks, sorted(found.workers)) == (120, ["claude", "gpt", "me"])
    asked = pd.concat([table.assign(criterion=name) for name in ("helpful", "safe")])
    found = cp.read(asked, ordered=True, tell=False)
    assert found.tasks[0] == ("q0 | A", "helpful")
    assert found.n_tasks == 240
    both = table.assign(helpful=table["score"], safe=table["score"]).drop(columns="score")
    assert cp.read(both, question=["helpful", "safe"], ordered=True, tell=False).n_tasks == 240
    again = cp.read(pd.concat([table, table]), ordered=True, tell=False)
    assert (again.n_tasks, again.n_annotations) == (120, 720)
    checked = wide[["question", "model", "me"]].head(7).rename(columns={"me": "label"})
    checked.to_csv(tmp_path / "gold.csv", index=False)
    for gold in (checked, tmp_path / "gold.csv"):
        known = cp.read(table, gold=gold, ordered=True, tell=False)
        assert (np.asarray(known.gold) >= 0).sum() == 7


@pytest.mark.parametrize("task", [["question", "variant"], "question,variant", "question | variant"])
def test_two_columns_name_the_tasks_together(tmp_path, task):
    table = of_systems("variant").assign(note="x")
    table.to_csv(path := tmp_path / "judged.csv", index=False)
    (tmp_path / "judged.jsonl").write_text(table.to_json(orient="records", lines=True))
    said = []
    options = {"task": task, "ordered": True, "tell": lambda text: said.append(text) or text}
    for source in (path, table, tmp_path / "judged.jsonl"):
        found = cp.read(source, **options)
        assert (found.n_tasks, found.n_annotations, list(found.tasks[:2])) == (120, 360, ["q0 | A", "q0 | B"])
    assert all("left out: 'note'" in text for text in said)
    wide = table.pivot(index=["question", "variant"], columns="judge", values="score").reset_index()
    assert sorted(cp.read(wide, **options).workers) == ["claude", "gpt", "me"]
    gold = wide[["question", "variant", "me"]].head(7).rename(columns={"me": "label"})
    gold.to_csv(tmp_path / "gold.csv", index=False)
    assert (np.asarray(cp.read(path, gold=tmp_path / "gold.csv", **options).gold) >= 0).sum() == 7
    joined = cp.fit("majority_vote", cp.read(path, **options)).join(table)
    assert joined["probability"].notna().all()


def test_two_places_in_records_name_the_tasks_together():
    records = [
        {"of": {"prompt": row.question, "by": row.variant}, "judge": row.judge, "score": row.score}
        for row in of_systems("variant").itertuples()
    ]
    found = cp.read(records, task=["of.prompt", "of.by"], ordered=True, tell=False)
    assert (found.n_tasks, found.tasks[0], found.n_workers) == (120, "q0 | A", 3)


def test_two_columns_of_tasks_of_which_one_is_lacking_and_a_name_with_a_comma(tmp_path):
    table = of_systems("variant")
    for task in (["question", "varian"], "question,varian"):
        with pytest.raises(AnnotationError, match=r"has no column 'varian'; .*Did you mean task='variant'"):
            cp.read(table, task=task)
    with pytest.raises(AnnotationError, match=r"task=\['question'\]: a column is needed, or a list of two"):
        cp.read(table, task=["question"])
    named = table.assign(**{"question,variant": table["question"]})
    assert cp.read(named, task="question,variant", ordered=True, tell=False).n_tasks == 40
    also = cp.read(table, task="question,variant", worker="variant", label="score", ordered=True, tell=False)
    assert list(also.workers) == ["A", "B", "C"]


@pytest.mark.parametrize("label", ["Score (1-10)", "Rating [1 to 5]", "score(0–100)", "Score"])
def test_a_column_of_scores_is_known_with_their_range_and_a_worker_as_llm(label):
    table = of_systems().rename(columns={"score": label, "judge": "LLM", "question": "#", "model": "Notes"})
    found = cp.read(table, task="#", ordered=True, tell=False)
    assert (found.n_tasks, sorted(found.workers), found.classes[0]) == (40, ["claude", "gpt", "me"], 1)
    judged = of_systems().rename(columns={"model": "LLM"})
    assert cp.read(judged, ordered=True, tell=False).tasks[0] == "q0 | A"


def test_a_model_that_labels_is_the_worker_where_no_judge_is_named():
    table = of_systems().groupby(["question", "model"], as_index=False)["score"].first()
    found = cp.read(table, ordered=True, tell=False)
    assert (found.n_tasks, list(found.workers)) == (40, ["A", "B", "C"])


def test_labels_are_joined_to_a_table_whose_tasks_are_answers_of_systems():
    table = of_systems()
    joined = cp.fit("majority_vote", cp.read(table, ordered=True, tell=False)).join(table)
    assert joined["probability"].notna().all()
    assert joined.groupby(["question", "model"])["label"].nunique().eq(1).all()


def test_columns_that_name_tasks_together_are_found_by_the_first_task_whatever_the_others_are_called():
    table = pd.DataFrame({"prompt": ["p1", "p2"], "model": ["a", "b"], "task": ["x | y", "z"]})
    assert both_columns(table, ["p1 | a", "p2 | b", "alone"]) == ("prompt", "model")
    assert both_columns(table, ["z", "x | y"]) is None
    assert both_columns(table, []) is None


def test_a_table_of_rubrics_with_a_column_for_each_is_refused_with_all_of_them(tmp_path):
    rows = [(f"t{i}", worker, i % 5 + 1, "yes", "abc"[i % 3]) for i in range(9) for worker in "xy"]
    table = pd.DataFrame(rows, columns=["task", "worker", "helpful", "safe", "topic"])
    table.loc[0, "safe"] = "no"
    table.to_csv(tmp_path / "rubric.csv", index=False)
    with pytest.raises(AnnotationError, match=r"question=\['helpful', 'safe', 'topic'\]"):
        cp.read(tmp_path / "rubric.csv")
    asked = ["helpful", "safe", "topic"]
    with pytest.warns(AnnotationWarning, match="classes of their own"):
        assert list(cp.read(tmp_path / "rubric.csv", question=asked, tell=False).questions) == asked


def test_two_systems_by_side_in_one_dictionary_are_compared(tmp_path, capsys):
    """The models were read as labels by workers a and b, and what the judge said was left out."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(60):
        models = rng.permutation(["x", "y", "z"])[:2]
        for judge in ("m", "n"):
            sides = {side: {"model": str(model), "text": "…"} for side, model in zip("ab", models, strict=True)}
            verdict = {"winner": rng.choice(["a", "b", "tie"]), "reason": f"since {number}"}
            lines.append(
                {"id": len(lines), "prompt": f"q{number}", "responses": sides, "verdict": verdict}
                | {"judge": {"model": judge}}
            )
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = cp.read(path)
    assert sorted(found.items) == ["x", "y", "z"]
    assert (found.n_tasks, found.n_annotations, sorted(found.workers)) == (60, 120, ["m", "n"])
    said = capsys.readouterr().err
    assert "('model_a' with 'model_b', label 'verdict.winner', worker 'judge.model', prompt 'prompt')" in said


def test_of_comparisons_an_identifier_of_rows_is_no_prompt_where_prompts_stand_beside_it(tmp_path, capsys):
    rows = [(n, f"q{n // 2}", "x", "y", "mn"[n % 2], "left") for n in range(60)]
    columns = ["id", "prompt", "model_a", "model_b", "judge", "winner"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(path := tmp_path / "pairs.csv", index=False)
    assert cp.read(path, classes=["left", "right"]).n_tasks == 30
    assert "prompt 'prompt'" in capsys.readouterr().err
    table.assign(prompt=[f"q{n}" for n in range(60)]).to_csv(path, index=False)
    assert cp.read(path, classes=["left", "right"]).n_tasks == 60


def test_an_output_beside_a_dictionary_of_verdicts_by_judge_is_no_label(tmp_path, capsys):
    lines = [
        {"id": f"q{n}", "output": "as said" if n % 3 else "not so"}
        | {"verdicts": {judge: {"score": 1 + (n + at) % 3, "reasoning": "…"} for at, judge in enumerate("gcm")}}
        for n in range(20)
    ]
    path = tmp_path / "verdicts.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = cp.read(path, ordered=True)
    assert (found.n_tasks, found.n_annotations, sorted(found.workers), list(found.classes)) == (
        20,
        60,
        [*"cgm"],
        [1, 2, 3],
    )
    assert "left out: 'record.output', 'reasoning'" in capsys.readouterr().err


def test_labels_by_criterion_of_a_named_judge_are_read_as_the_questions_that_are_listed(tmp_path):
    """The error named the keys, and refused them as questions as well."""
    lines = [
        {"id": f"q{n // 2}", "judge": "gc"[n % 2], "scores": {"helpful": n % 5 + 1, "safe": n % 2}} for n in range(40)
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(AnnotationError, match=r"question=\['scores\.helpful', 'scores\.safe'\]"):
        cp.read(path)
    found = cp.read(path, question=["scores.helpful", "scores.safe"], tell=False)
    assert (list(found.questions), found.n_tasks) == (["scores.helpful", "scores.safe"], 40)


def test_records_with_a_judge_and_a_verdict_are_not_read_by_another_dictionary(tmp_path):
    lines = [
        {"id": n // 2, "judge": {"model": "gc"[n % 2]}, "verdict": {"label": "ab"[n % 3 > 0], "why": "…"}}
        | {"responses": {"x": {"length": n % 4}}}
        for n in range(24)
    ]
    path = tmp_path / "verdicts.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = cp.read(path, tell=False)
    assert (sorted(found.workers), list(found.classes), found.n_tasks) == (["c", "g"], ["a", "b"], 12)
