"""Output of batches of requests to judges, and folders with a file of JSON Lines for each judge."""

import json

import pytest

import crowdppl as cp


def of_openai(task, model, text, **response):
    body = {"object": "chat.completion", "model": model, "choices": [{"index": 0, "message": {"content": text}}]}
    return {"id": "b", "custom_id": task, "response": {"status_code": 200, "body": body} | response, "error": None}


def of_responses(task, model, text):
    parts = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": text}]},
    ]
    return {
        "custom_id": task,
        "response": {"body": {"object": "response", "model": model, "output": parts}},
        "error": None,
    }


def of_anthropic(task, model, text):
    content = [{"type": "thinking", "thinking": "Score: 1"}, {"type": "text", "text": text}]
    return {"custom_id": task, "result": {"type": "succeeded", "message": {"model": model, "content": content}}}


def of_gemini(task, model, text):
    parts = [{"text": "Score: 1", "thought": True}, {"text": text}]
    return {"key": task, "response": {"candidates": [{"content": {"parts": parts}}], "modelVersion": model}}


MESSAGES = [{"role": "user", "content": "Rate it."}]
REQUESTS = {
    "openai": {"custom_id": "q1", "method": "POST", "url": "…", "body": {"model": "gpt", "messages": MESSAGES}},
    "anthropic": {"custom_id": "q1", "params": {"model": "claude", "max_tokens": 9, "messages": MESSAGES}},
    "gemini": {"key": "q1", "request": {"contents": [{"parts": [{"text": "Rate it."}]}]}},
    "vertex": {"request": {"contents": [{"parts": [{"text": "Rate it."}]}]}},
}


def write(path, records):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def labels(annotations):
    frame = annotations.to_frame()
    return {(row.task, row.worker): row.label for row in frame.itertuples()}


@pytest.mark.parametrize("line", [of_openai, of_responses, of_anthropic, of_gemini])
def test_answers_of_a_folder_of_batches_are_the_labels_of_its_models(tmp_path, line):
    texts = {"a": "I'd say {}/5", "b": "It has 2 flaws.\n\n**Rating: {}**", "c": '{{"score": {}, "why": "漢字"}}'}
    for model, text in texts.items():
        write(tmp_path / "out" / f"{model}.jsonl", [line(f"q{i}", model, text.format(i % 5 + 1)) for i in range(10)])
    found = cp.read(tmp_path / "out", tell=False, ordered=True)
    assert labels(found) == {(f"q{i}", model): i % 5 + 1 for i in range(10) for model in texts}


def test_failed_requests_and_answers_without_a_label_are_abstentions_of_the_file_s_model_which_is_said(
    tmp_path, capsys
):
    lines = [of_openai("q1", "gpt", "Yes."), of_openai("q2", "gpt", "I'm sorry, I can't judge this.")]
    lines += [
        of_openai("q3", "gpt", "", body={"error": {"message": "rate limit"}}),
        of_openai("q5", "gpt", "Verdict: no"),
    ]
    lines += [{"custom_id": "q4", "response": None, "error": {"code": "batch_expired"}}]
    found = cp.read(write(tmp_path / "out.jsonl", lines))
    assert labels(found) == {("q1", "gpt"): "Yes", ("q5", "gpt"): "no"} | {
        (f"q{i}", "gpt"): "unreadable" for i in (2, 3, 4)
    }
    assert list(found.abstentions) == ["unreadable"]
    assert "no label 3 × (a request failed, or its answer says none), first line 2" in capsys.readouterr().err


def test_parts_of_one_batch_have_one_worker_and_two_prompts_of_a_model_are_two(tmp_path):
    said = ("yes", "no")
    for name, tasks in (("part1", "ab"), ("part2", "cd")):
        write(tmp_path / "parts" / f"{name}.jsonl", [of_openai(task, "gpt", said[task in "ac"]) for task in tasks])
        write(tmp_path / "prompts" / f"{name}.jsonl", [of_openai(task, "gpt", said[task == "a"]) for task in "ab"])
    assert list(cp.read(tmp_path / "parts", tell=False).workers) == ["gpt"]
    assert list(cp.read(tmp_path / "prompts", tell=False).workers) == ["gpt (part1)", "gpt (part2)"]


def test_answers_with_several_fields_have_questions_and_a_line_without_an_id_is_named(tmp_path):
    answer = '{"score": 4, "verdict": "pass"}'
    answers = {"a": answer, "b": answer.replace("pass", "fail")}
    path = write(tmp_path / "out.jsonl", [of_openai(task, "gpt", text) for task, text in answers.items()])
    with pytest.raises(
        cp.AnnotationError, match="several questions: 'score', 'verdict'; say which by question='score'"
    ):
        cp.read(path)
    assert set(labels(cp.read(path, tell=False, question="verdict")).values()) == {"pass", "fail"}
    write(path, [of_openai("a", "gpt", "yes"), of_openai(None, "gpt", "yes")])
    with pytest.raises(cp.AnnotationError, match="line 2: custom_id is missing"):
        cp.read(path)


def test_scores_on_two_scales_and_a_batch_that_failed_are_refused_and_answers_given_again_are_said(tmp_path, capsys):
    path = write(tmp_path / "out.jsonl", [of_openai("a", "gpt", "I'd say 4/5"), of_openai("b", "gpt", "Score: 8/10")])
    with pytest.raises(
        cp.AnnotationError, match="out of 5 and out of 10: line 1 has '4/5' and line 2 has '8/10'; give"
    ):
        cp.read(path)
    write(path, [{"custom_id": task, "response": None, "error": {"code": "batch_expired"}} for task in "ab"])
    with pytest.raises(cp.AnnotationError, match=r"no annotation \(2 failed requests of an unknown model left out"):
        cp.read(path)
    write(path, [of_openai("a", "gpt", text) for text in ("yes", "no", "yes")])
    assert cp.read(path).n_annotations == 3
    assert "2 answers to a request that its model had answered already kept as repeats" in capsys.readouterr().err


def test_a_folder_with_a_file_of_json_lines_for_each_judge_is_joined(tmp_path, capsys):
    for number, judge in enumerate(("gpt", "claude")):
        rows = [{"id": i, "verdict": "yes" if i > number else "no", "why": "…"} for i in range(6)]
        write(tmp_path / "named" / f"{judge}.jsonl", rows)
        write(tmp_path / "by_folder" / judge / "results.jsonl", rows)
        answers = [{"id": i, "model": model, "score": i + number} for i in range(3) for model in ("small", "large")]
        write(tmp_path / "of_models" / f"{judge}.jsonl", answers)
    found = cp.read(tmp_path / "named")
    assert "each file has one worker, of its name: 'claude', 'gpt'" in capsys.readouterr().err
    assert labels(found) == labels(cp.read(tmp_path / "by_folder", tell=False))
    assert labels(found)[1, "claude"] == "no"
    assert labels(found)[1, "gpt"] == "yes"
    judged = cp.read(tmp_path / "of_models", tell=False, ordered=True)
    assert (judged.n_tasks, list(judged.workers)) == (6, ["claude", "gpt"])
    (tmp_path / "named" / "gpt.jsonl").write_text('{"id": 1, "verdict": null}\n' * 2)
    with pytest.raises(cp.AnnotationError, match=r"gpt\.jsonl, line 1"):
        cp.read(tmp_path / "named", worker="id", task="verdict", label="why")
    (tmp_path / "named" / "gpt.jsonl").write_text("")
    with pytest.raises(cp.AnnotationError, match=r"gpt\.jsonl: there is no record in it; leave the file out"):
        cp.read(tmp_path / "named")


@pytest.mark.parametrize("of", REQUESTS)
def test_requests_without_answers_are_refused_and_those_beside_answers_left_out(tmp_path, capsys, of):
    path = write(tmp_path / "batch" / "input.jsonl", [REQUESTS[of]] * 3)
    with pytest.raises(
        cp.AnnotationError, match=r"input\.jsonl has requests to a model, 3 of them, and no answers; read"
    ):
        cp.read(path)
    (tmp_path / "input.json").write_text(json.dumps({"requests": [REQUESTS[of]]}))
    with pytest.raises(cp.AnnotationError, match="requests to a model, 1 of them"):
        cp.read(tmp_path / "input.json")
    write(tmp_path / "batch" / "output.jsonl", [of_openai("q1", "gpt", "yes"), of_openai("q2", "gpt", "no")])
    assert labels(cp.read(tmp_path / "batch")) == {("q1", "gpt"): "yes", ("q2", "gpt"): "no"}
    assert "3 requests without an answer left out" in capsys.readouterr().err


def test_answers_of_gemini_without_the_requests_keys_are_refused_with_what_is_missing(tmp_path):
    line = {name: value for name, value in of_gemini("q1", "gemini", "yes").items() if name != "key"}
    with pytest.raises(cp.AnnotationError, match=r"line 1: custom_id is missing.*or key, of Gemini"):
        cp.read(write(tmp_path / "output.jsonl", [line | {"request": {}, "status": ""}]))
