"""Small experiments by the tools' own writers: ``python make_experiments.py`` in an environment that has the tools.

weave 0.54.0, braintrust 0.48.1, langsmith 0.15.1 and lm_eval 0.4.13 made those in ``experiments/``, and promptfoo
0.121.20, which ``npx promptfoo`` is to run. They are kept so that the tests need none of them; nothing is sent to a
server.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["WEAVE_DISABLED"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"

import braintrust
import langsmith
import weave

FOLDER = Path(__file__).with_name("experiments")
DATE = "2026-11-25T08-00-00.000000"
SUMS = [("1 + 1", "2"), ("2 + 3", "4"), ("2 + 5", "7"), ("fails", "1"), ("4 + 4", "8"), ("3 + 6", "9")]
PROMPTFOO = """
description: sums
prompts: ["{{sum}}", "Say {{sum}}"]
providers: [{id: "file://model.js", label: small}, echo]
tests:
  - vars: {sum: one}
    assert:
      - {type: contains, value: one, metric: has}
      - {type: equals, value: one, metric: is}
  - vars: {sum: two}
    assert:
      - {type: contains, value: three, metric: has}
      - {type: equals, value: two, metric: is}
  - vars: {sum: three}
    assert: [{type: contains, value: three}]
  - vars: {sum: fails}
    assert: [{type: contains, value: fails, metric: has}]
"""
MODEL = """
module.exports = class {
  id() { return "model"; }
  async callApi(prompt) { return prompt.includes("fails") ? { error: "no sum" } : { output: prompt }; }
};
"""


def answer(question):
    """The sum, but for one question."""
    if question == "fails":
        raise ValueError("no sum")
    return str(eval(question))


def of_weave():
    @weave.op
    def model(question):
        return answer(question)

    @weave.op
    def exact(expected, output):
        return {"correct": output == expected}

    @weave.op
    def short(output):
        return len(output) < 2

    rows = [{"question": question, "expected": expected} for question, expected in SUMS]
    evaluation = weave.Evaluation(dataset=rows, scorers=[exact, short])
    found = asyncio.run(evaluation.get_eval_results(model))
    write("weave/rows.json", list(found.rows))


def of_braintrust():
    def exact(input, output, expected):
        return float(output == expected)

    def judge(input, output, expected):
        if input == "2 + 5":
            raise RuntimeError("no verdict")
        return None if input == "4 + 4" else 1

    data = [{"input": question, "expected": expected} for question, expected in SUMS]
    result = braintrust.Eval("sums", data=data, task=answer, scores=[exact, judge], no_send_logs=True)
    found = result.as_dict()
    for each in found["results"]:
        each["exc_info"] = None  # which has the places of files
        if errors := (each["metadata"] or {}).get("scorer_errors"):
            errors.update(dict.fromkeys(errors, "Traceback"))
    write("braintrust/results.json", found)
    path = FOLDER / "braintrust" / "summary.jsonl"
    path.write_text(json.dumps(result.summary.as_dict()) + "\n", encoding="utf-8")


def of_langsmith():
    from datetime import UTC, datetime
    from uuid import UUID

    from langsmith.schemas import Example

    def exact(outputs, reference_outputs):
        return (outputs or {}).get("answer") == reference_outputs["answer"]

    def short(outputs):
        return len((outputs or {}).get("answer", "")) < 2

    known = {"dataset_id": UUID(int=1), "created_at": datetime(2026, 1, 1, tzinfo=UTC)}
    examples = [
        Example(id=UUID(int=number), inputs={"q": question}, outputs={"answer": expected}, **known)
        for number, (question, expected) in enumerate(SUMS)
    ]
    client = langsmith.Client(api_key="unused", api_url="http://127.0.0.1:9")
    found = client.evaluate(
        lambda inputs: {"answer": answer(inputs["q"])},
        data=examples,
        evaluators=[exact, short],
        upload_results=False,
        max_concurrency=0,
    )
    path = FOLDER / "langsmith" / "table.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = found.to_pandas()
    table["error"] = table["error"].str.partition("\n")[0]  # what follows has the places of files
    table.to_csv(path, index=False)


def of_promptfoo():
    folder = FOLDER / "promptfoo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(PROMPTFOO, encoding="utf-8")
    (folder / "model.js").write_text(MODEL, encoding="utf-8")
    own = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(folder)}
    outputs = [part for kind in ("csv", "jsonl") for part in ("-o", str(folder / f"results.{kind}"))]
    command = ["npx", "promptfoo", "eval", "-c", str(folder / "config.yaml"), "--no-cache", *outputs]
    subprocess.run(command, env=os.environ | own, check=False)  # it fails where an assertion does
    for file in folder.iterdir():
        if file.name not in ("results.csv", "results.jsonl"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def of_harness():
    """Two models that answer sums, which two filters read, and choose one of two answers."""
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Toy(LM):
        """Say a sum in words where it is small, and choose the shorter answer or the longer."""

        def __init__(self, name):
            super().__init__()
            self.is_small = name == "small"

        def loglikelihood(self, requests):
            return [(len(each.args[1]) * (1.0 if self.is_small else -1.0), False) for each in requests]

        def loglikelihood_rolling(self, requests):
            return [(0.0,) for _ in requests]

        def generate_until(self, requests):
            sums = (each.args[0] for each in requests)
            wrong = "none" if self.is_small else "12"
            return [wrong if of == "fails" else ("It is " if self.is_small else "") + str(eval(of)) for of in sums]

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"q": q, "a": a, "choices": [a, f"{a}0"], "gold": n % 2} for n, (q, a) in enumerate(SUMS)]
        rows = [row | {"choices": row["choices"][:: -1 if row["gold"] else 1]} for row in rows]
        Path(folder, "sums.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        common = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": f"{folder}/sums.jsonl"}}}
        common |= {"test_split": "test", "doc_to_text": "{{q}}"}
        number = [{"function": "regex", "regex_pattern": r"(\d+)"}, {"function": "take_first"}]
        filters = [{"name": "whole", "filter": number[1:]}, {"name": "number", "filter": number}]
        sums = common | {"task": "sums", "doc_to_target": "So it is {{a}}, and no other number, by the rules of sums"}
        sums |= {"output_type": "generate_until", "filter_list": filters}
        sums |= {"metric_list": [{"metric": "exact_match", "regexes_to_ignore": ["So it is ", ", and no.*"]}]}
        picks = common | {"task": "picks", "output_type": "multiple_choice", "doc_to_choice": "{{choices}}"}
        picks |= {"doc_to_target": "gold", "metric_list": [{"metric": "acc"}]}
        for name in ("small", "large"):
            tracker = EvaluationTracker(output_path=str(FOLDER / "harness"))
            tracker.general_config_tracker.model_name = f"org/{name}"
            tracker.general_config_tracker.model_name_sanitized = f"org__{name}"
            found = simple_evaluate(Toy(name), tasks=[sums, picks], task_manager=TaskManager(), log_samples=True)
            tracker.save_results_aggregated({"results": {}, "versions": {}}, None)
            results = FOLDER / "harness" / f"org__{name}" / f"results_{tracker.date_id}.json"
            results.rename(results.with_name(f"results_{DATE}.json"))
            tracker.date_id = DATE
            for task, samples in found["samples"].items():
                tracker.save_results_samples(task, samples)


def write(name, content):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, default=str, indent=1) + "\n", encoding="utf-8")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for made in (of_weave, of_braintrust, of_langsmith, of_harness, of_promptfoo):
        made()
    sys.stdout.write("\n".join(str(path) for path in sorted(FOLDER.rglob("*.*"))) + "\n")


if __name__ == "__main__":
    main()
