"""Small logs of evaluations by the tools' own writers: ``python make_logs.py`` in an environment that has the tools.

inspect_ai 0.3.285, lm_eval 0.4.13, evals 3.0.1.post1 and deepeval 4.3.1 made those in ``logs/``, which are kept so that
the tests need none of them. A new version's change is seen where the script is run with it and the tests fail.
"""

import os
import shutil
from pathlib import Path

os.environ.setdefault("OPENAI_API_KEY", "unused")  # evals makes a client where it is imported

from deepeval.test_run.api import LLMApiTestCase
from deepeval.test_run.test_run import TestRun
from deepeval.tracing.api import MetricData
from evals.base import RunSpec
from evals.record import LocalRecorder
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.log._log import EvalScorer
from inspect_ai.scorer import Score
from lm_eval.loggers import EvaluationTracker

FOLDER = Path(__file__).with_name("logs")
CREATED = "2026-11-25T08:00:00+00:00"
DATE = "2026-11-25T08-00-00.000000"


def inspect_log(name, model, samples, *, status="success", scorers=("match", "model_graded_qa"), task="sums"):
    """Write a log; samples are (id, epoch, answer, target, scores by scorer)."""
    spec = EvalSpec(
        eval_id=name,
        run_id=name,
        task_id=name,
        created=CREATED,
        task=task,
        model=model,
        dataset=EvalDataset(name=task, samples=len(samples)),
        config=EvalConfig(epochs=max(sample[1] for sample in samples)),
        packages={"inspect_ai": "0.3.285"},
        scorers=[
            EvalScorer(name=each, options={"model": "openai/judge"} if each.startswith("model_graded") else {})
            for each in scorers
        ],
    )
    made = [
        EvalSample(
            id=number,
            epoch=epoch,
            input=f"question {number}",
            target=target,
            uuid=f"{name}-{number}-{epoch}",
            scores={
                scorer: score if isinstance(score, Score) else Score(value=score, answer=answer)
                for scorer, score in scores.items()
            },
        )
        for number, epoch, answer, target, scores in samples
    ]
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(EvalLog(status=status, eval=spec, samples=made), str(path))


def failed():
    return Score.unscored(reason="grader_failed", explanation="Grade not found")


def main():
    shutil.rmtree(FOLDER)
    inspect_log(
        "inspect/one.json",
        "mock/a",
        [
            (1, 1, "4", "4", {"match": "C", "model_graded_qa": "C"}),
            (1, 2, "4", "4", {"match": "C", "model_graded_qa": "P"}),
            (2, 1, "5", "6", {"match": "I", "model_graded_qa": failed()}),
            (2, 2, "6", "6", {"match": "C", "model_graded_qa": "C"}),
            (3, 1, "", "7", {"match": "N", "model_graded_qa": "I"}),
            (3, 2, "8", "7", {"match": "I", "model_graded_qa": "I"}),
        ],
    )
    inspect_log(
        "inspect/two.eval",
        "mock/b",
        [
            (1, 1, "3", "4", {"match": "I", "model_graded_qa": "I"}),
            (2, 1, "6", "6", {"match": "C", "model_graded_qa": "C"}),
            (3, 1, "7", "7", {"match": "C", "model_graded_qa": "P"}),
        ],
        status="cancelled",
    )
    inspect_log(
        "rubric/rubric.eval",
        "mock/a",
        [
            (f"essay-{n}", 1, None, "", {"judge": {"style": s, "facts": f}, "exact": n % 2 == 0})
            for n, (s, f) in enumerate([(1, 5), (3, 4), (5, 2), (2, 3)])
        ],
        scorers=("judge", "exact"),
        task="essays",
    )
    openai_logs()
    deepeval_log("model-a", [(0.9, True), (0.2, False), (None, None)])
    deepeval_log("model-b", [(0.7, True), (0.8, True), (0.1, False)])
    for model, values in (("org/small", (1.0, 0.0, 1.0)), ("org/large", (1.0, 1.0, 0.0))):
        harness_log(model, values)


def harness_log(model, values):
    tracker = EvaluationTracker(output_path=str(FOLDER / "harness"))
    tracker.general_config_tracker.model_name = model
    tracker.general_config_tracker.model_name_sanitized = model.replace("/", "__")
    tracker.save_results_aggregated({"results": {}, "versions": {}}, None)
    folder = FOLDER / "harness" / model.replace("/", "__")
    (folder / f"results_{tracker.date_id}.json").rename(folder / f"results_{DATE}.json")
    tracker.date_id = DATE
    samples = [
        {
            "doc_id": number,
            "doc": {"question": f"question {number}"},
            "target": str(number),
            "arguments": [(f"question {number}", {"until": ["."]})],
            "resps": [["text"]],
            "filtered_resps": ["text"],
            "filter": by,
            "metrics": ["exact_match"],
            "doc_hash": "0",
            "prompt_hash": "0",
            "target_hash": "0",
            "exact_match": value if by == "flexible-extract" else min(value, float(number != 0)),
        }
        for by in ("strict-match", "flexible-extract")
        for number, value in enumerate(values)
    ]
    tracker.save_results_samples("gsm8k", samples)


def openai_logs():
    def recorder(name, eval_name, functions, args):
        spec = RunSpec(
            completion_fns=functions,
            eval_name=f"{eval_name}.dev.v0",
            base_eval=eval_name,
            split="dev",
            run_config={"eval_spec": {"args": args}},
            created_by="",
            run_id=name,
            created_at="2026-11-25 08:00:00",
        )
        path = FOLDER / "openai" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return LocalRecorder(str(path), spec)

    matches = recorder("match", "sums", ["gpt-a"], {})
    for number, picked in enumerate(["4", "5", "7"]):
        with matches.as_default_recorder(f"sums.dev.{number}"):
            matches.record_sampling("prompt", [picked])
            matches.record_match(picked != "5", expected=["4", "6", "7"][number], picked=picked)
    matches.record_final_report({"accuracy": 2 / 3})
    judged = recorder("judged", "sums", ["gpt-a", "gpt-judge"], {"modelgraded_spec": "closedqa"})
    for number, choice in enumerate(["Y", "N", "__invalid__"]):
        with judged.as_default_recorder(f"sums.dev.{number}"):
            judged.record_metrics(choice=choice, score=float(choice == "Y"))
    for each in (matches, judged):
        each.flush_events()


def deepeval_log(model, values):
    cases = []
    for number, (score, success) in enumerate(values):
        case = LLMApiTestCase(name=f"test_case_{number}", input=f"question {number}", actualOutput="text")
        error = None if success is not None else "the judge's answer is no JSON"
        about = {"threshold": 0.5, "evaluationModel": "gpt-judge"}
        case.update_metric_data(
            MetricData(name="Correctness [GEval]", score=score, success=success, error=error, **about)
        )
        case.update_metric_data(
            MetricData(name="Exact Match", score=float(number < 2), success=number < 2, threshold=1.0)
        )
        cases.append(case)
    run = TestRun(testCases=cases, hyperparameters={"model": model}, identifier=f"run of {model}")
    path = FOLDER / "deepeval" / f"test_run_{model}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        run.save(file)


if __name__ == "__main__":
    main()
