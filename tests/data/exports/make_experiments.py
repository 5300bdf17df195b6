"""Small experiments by the tools' own writers: ``python make_experiments.py`` in an environment that has the tools.

weave 0.54.0, braintrust 0.48.1 and langsmith 0.15.1 made those in ``experiments/``, and promptfoo 0.121.20, which
``npx promptfoo`` is to run. They are kept so that the tests need none of them; nothing is sent to a server.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

os.environ["WEAVE_DISABLED"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"

import braintrust
import langsmith
import weave

FOLDER = Path(__file__).with_name("experiments")
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


def write(name, content):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, default=str, indent=1) + "\n", encoding="utf-8")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for made in (of_weave, of_braintrust, of_langsmith, of_promptfoo):
        made()
    sys.stdout.write("\n".join(str(path) for path in sorted(FOLDER.rglob("*.*"))) + "\n")


if __name__ == "__main__":
    main()
