"""Tables of evaluators' scores: experiments and feedback of LangSmith, and results of RAGAS."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning

FEEDBACK = {"feedback.correct": [1, 0, 1, 1, 0, 1], "feedback.concise": [1, 0, 0, 1, np.nan, 1]}


def experiment(feedback):
    examples = [f"e{number}" for number in range(6)]
    table = pd.DataFrame({"inputs.question": examples, "outputs.answer": ["1", "0"] * 3, "error": None})
    return table.assign(**feedback, execution_time=0.5, example_id=examples, id=[f"run {name}" for name in examples])


def test_evaluators_of_an_experiment_of_langsmith_are_the_workers_and_no_other_column_is(tmp_path, capsys):
    table = experiment(FEEDBACK | {"feedback.tone.v2": [0, 1] * 3})
    table.to_csv(tmp_path / "experiment.csv", index=False)
    table.to_json(tmp_path / "experiment.json", orient="records")
    for source in (table, tmp_path / "experiment.csv", tmp_path / "experiment.json"):
        found = cp.read(source)
        assert found.to_frame().groupby("worker")["label"].agg(list).to_dict() == {
            "correct": [1, 0, 1, 1, 0, 1],
            "concise": [1, 0, 0, 1, 1],
            "tone.v2": [0, 1] * 3,
        }
        assert list(found.tasks) == list(table["example_id"])
        assert "1 log of LangSmith" in capsys.readouterr().err


def test_tables_of_two_experiments_of_langsmith_are_of_two_models(tmp_path):
    for name, scores in (("new", [1] * 6), ("old", [0] * 6)):
        experiment({**FEEDBACK, "feedback.correct": scores}).to_csv(tmp_path / f"{name}.csv", index=False)
    rows = cp.read(tmp_path, tell=False).to_frame().set_index(["task", "worker"])["label"]
    assert [rows["e0 @ new", "correct"], rows["e0 @ old", "correct"]] == [1, 0]


def test_scores_of_a_run_of_langsmith_that_failed_are_left_out(capsys):
    """The table is by langsmith's own ``evaluate(…).to_pandas()``, one of whose six runs raised an error."""
    path = Path(__file__).with_name("experiments") / "langsmith" / "table.csv"
    for source in (path, pd.read_csv(path)):
        found = cp.read(source)
        scores = found.to_frame().groupby("worker")["label"].agg(list).to_dict()
        assert scores == {"exact": [1, 0, 1, 1, 1], "short": [1] * 5}
        assert f"{3:036d}" not in "".join(map(str, found.tasks))
        assert "1 answer with an error left out" in capsys.readouterr().err


def test_evaluators_of_langsmith_of_several_scales_are_refused_by_their_names(tmp_path):
    table = experiment({**FEEDBACK, "feedback.helpful": [0, 0.5, 1, 0.5, 1, 1]})
    table.to_csv(tmp_path / "experiment.csv", index=False)
    for source in (table, tmp_path / "experiment.csv"):
        with pytest.raises(cp.AnnotationError, match=r"verdict by 'correct', 'concise'; fraction by 'helpful'"):
            cp.read(source)
        assert list(cp.read(source, question="verdict", tell=False).workers) == ["correct", "concise"]


class Client:
    """LangSmith's, of two evaluators who gave feedback on each run."""

    def list_feedback(self, run_ids):
        given = [("correct", 1.0), ("concise", 0.0), ("comment", None)]
        names = ("run_id", "key", "score")
        rows = [dict(zip(names, (run, *each), strict=True)) for run in run_ids for each in given]
        return [type("Feedback", (), row) for row in rows]


def test_means_of_feedback_of_langsmith_are_refused_with_the_code_that_gets_each(tmp_path):
    runs = [{"id": f"r{number}", "feedback_stats": {"correct": {"n": 2, "avg": 0.5}}} for number in range(3)]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, runs)))
    with pytest.raises(cp.AnnotationError, match=r"means of feedback \('correct'\).*cp\.read") as refused:
        cp.read(path)
    code = str(refused.value)
    known = {"cp": cp, "runs": runs, "langsmith": type("module", (), {"Client": Client})}
    found = eval(code[code.index("cp.read(") :], known)
    assert (list(found.workers), list(found.tasks)) == (["correct", "concise"], ["r0", "r1", "r2"])


@pytest.mark.parametrize("names", [("user_input", "response", "contexts"), ("question", "answer", "contexts")])
def test_results_of_ragas_are_refused_with_the_code_that_makes_classes_of_all_metrics(tmp_path, names):
    texts = {name: [f"{name} {number}" for number in range(4)] for name in names}
    metrics = {"faithfulness": [0.9, 0.1, 1.0, 0.52], "context_recall": [0.0, 1.0, 1.0, np.nan]}
    table = pd.DataFrame(texts | metrics)
    table.to_csv(tmp_path / "ragas.csv", index=False)
    for source in (table, tmp_path / "ragas.csv"):
        with pytest.raises(cp.AnnotationError, match="0 to 1 in 'faithfulness', 'context_recall', and") as refused:
            cp.read(source)
    code, _, options = str(refused.value).partition("0 to 4: ")[2].partition(". Then read it")
    options = options.partition("a question: ")[2].partition(". Tables")[0].replace(" and", ",")
    steps = {"table": table.copy()}
    exec(code, steps)
    found = eval(f"cp.read(table, {options})", {"cp": cp, **steps})
    assert list(found.questions) == [*metrics]
    labels = found.to_frame().groupby("question")["label"].agg(list).to_dict()
    assert labels == {"faithfulness": [4, 0, 4, 2], "context_recall": [0, 4, 4]}
    judges = pd.concat([steps["table"].assign(worker=name) for name in "ab"])
    assert cp.read(judges, task=names[0], question=[*metrics], tell=False).n_annotations == 14
    assert cp.read(table.assign(worker="j"), label="context_recall", task=names[0], missing="drop").n_annotations == 3


def feedback(run, key, score=None, kind="model", user=None, value=None):
    source = {"type": kind, "metadata": {}, "user_id": user}
    names = {"id": f"{run} {key} {kind}", "created_at": "2026-01-01T00:00:00Z", "run_id": run, "comment": f"for {run}"}
    return names | {"key": key, "score": score, "value": value, "feedback_source": source, "session_id": "s"}


def dumps(folder, rows):
    """The rows in memory, as JSON, as JSON Lines, and as CSV."""
    (folder / "a.json").write_text(json.dumps(rows))
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pd.DataFrame(rows).to_csv(folder / "a.csv", index=False)
    return [rows, *(folder / f"a.{suffix}" for suffix in ("json", "jsonl", "csv"))]


def test_feedback_that_langsmith_lists_has_its_keys_as_workers_where_each_has_one_source(tmp_path, capsys):
    rows = [feedback(f"r{n}", key, (n + at) % 2) for n in range(4) for at, key in enumerate(("correct", "concise"))]
    rows.append(feedback("r0", "note"))
    for source in dumps(tmp_path, rows):
        found = cp.read(source)
        assert (list(found.workers), list(found.classes), found.n_annotations) == (["correct", "concise"], [0, 1], 8)
        said = " ".join(capsys.readouterr().err.split())
        assert "1 empty annotation left out" in said
        assert "its key is the worker" in said
        with pytest.raises(cp.AnnotationError, match="leave out question="):
            cp.read(source, question="correct")


def test_evaluators_of_one_key_who_cannot_be_told_apart_are_warned_of(tmp_path):
    rows = [feedback(f"r{n}", "correct", (n + judge) % 2) for n in range(4) for judge in range(2)]
    for source in dumps(tmp_path, [*rows, feedback("r0", "correct", 1, "app", "ann")]):
        with pytest.warns(AnnotationWarning, match=r"'model' gave .* to 4 runs;.* a key of its own"):
            assert cp.read(source, tell=False).n_annotations == 9


def test_keys_of_feedback_are_questions_where_several_gave_it_or_some_of_it_is_text(tmp_path):
    rows = [feedback(f"r{n}", "correct", n % 2) for n in range(4)]
    rows += [feedback(f"r{n}", "correct", 1, "app", "ann") for n in range(4)]
    rows += [feedback(f"r{n}", "tone", value=["calm", "rude"][n % 2]) for n in range(4)]
    for source in dumps(tmp_path, rows):
        with pytest.raises(cp.AnnotationError, match="several questions: 'correct', 'tone'"):
            cp.read(source)
        assert list(cp.read(source, question="correct", tell=False).workers) == ["model", "ann"]
        assert list(cp.read(source, question="tone", tell=False).classes) == ["calm", "rude"]
    for source in dumps(tmp_path, [row for row in rows if row["feedback_source"]["type"] == "model"]):
        with pytest.raises(cp.AnnotationError, match="several questions: 'correct', 'tone'"):
            cp.read(source)


def test_a_page_of_langsmith_is_refused_with_the_columns_of_its_evaluators(tmp_path):
    run = {"status": "success", "latency": 1.5, "tokens": 12, "total_cost": 0.01}
    rows = [
        {"id": f"e{n}", "inputs": '{"q": "2 + 2?"}', "outputs": json.dumps({"a": f"text {n}"}), **run}
        | {"reference_outputs": '{"a": "4"}', "correct": n % 2, "concise": int(n > 4)}
        for n in range(9)
    ]
    path = tmp_path / "experiment.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    with pytest.raises(AnnotationError, match=re.escape("['id', 'correct', 'concise']], columns='workers')")):
        cp.read(path)
    annotations = cp.read(pd.read_csv(path)[["id", "correct", "concise"]], columns="workers", tell=False)
    assert list(annotations.workers) == ["correct", "concise"]
    rows[3] |= {"status": "error", "error": "no answer", "outputs": "{}"}
    pd.DataFrame(rows).to_csv(path, index=False)
    with pytest.raises(AnnotationError, match="of the runs without an error") as refused:
        cp.read(path)
    code = str(refused.value)
    found = eval(code[code.index("cp.read(") :], {"cp": cp, "pd": pd})
    assert (found.n_tasks, list(found.workers)) == (8, ["correct", "concise"])
