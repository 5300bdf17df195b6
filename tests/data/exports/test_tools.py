"""Exports of annotation tools, as small files with the fields that the tools document."""

import json
import pathlib

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning


def read(path, content, capsys=None, **options):
    """Write a file and read it; the annotations, and what was said of them."""
    if isinstance(content, list | dict):
        content = json.dumps(content)
    path.write_text(content, encoding="utf-8")
    annotations = cp.read(path, **options)
    return annotations if capsys is None else (annotations, capsys.readouterr().err.strip())


def rows(annotations):
    return sorted(map(tuple, annotations.to_frame()[["task", "worker", "label"]].to_numpy().tolist()), key=str)


def choice(label, name="sentiment"):
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [label]}}


LABEL_STUDIO = [
    {
        "id": 11,
        "data": {"text": "a"},
        "annotations": [
            {"id": 1, "completed_by": 3, "result": [choice("pos")], "was_cancelled": False, "lead_time": 4.5},
            {"id": 2, "completed_by": {"id": 4, "email": "eva@x.org"}, "result": [choice("neg")], "lead_time": 2.0},
            {"id": 3, "completed_by": 5, "result": [choice("neg")], "was_cancelled": True},
            {"id": 7, "completed_by": 6, "result": [choice("pos")], "ground_truth": True},
        ],
        "predictions": [{"model_version": "bert-1", "score": 0.9, "result": [choice("pos")]}],
    },
    {
        "id": 12,
        "data": {"text": "b"},
        "annotations": [
            {"id": 4, "completed_by": 3, "result": [choice("neg"), choice("sports", "topic")], "lead_time": 1.5},
            {"id": 5, "completed_by": 4, "result": []},
        ],
        "predictions": [],
    },
]


def test_label_studio(tmp_path, capsys):
    annotations, said = read(tmp_path / "export.json", LABEL_STUDIO, capsys, question="sentiment")
    assert rows(annotations) == [
        (11, "bert-1", "pos"),
        (11, "eva@x.org", "neg"),
        (11, 3, "pos"),
        (11, 6, "pos"),
        (12, 3, "neg"),
    ]
    assert {annotations.tasks[i]: annotations.classes[k] for i, k in enumerate(annotations.gold) if k >= 0} == {
        11: "pos"
    }
    assert sorted(map(float, annotations.seconds[~(annotations.seconds != annotations.seconds)])) == [1.5, 2.0, 4.5]
    assert said.endswith(
        "Label Studio export, question 'sentiment': 2 tasks, 3 annotators, 1 model, 1 gold label, "
        "1 cancelled annotation left out, 1 empty annotation left out"
    )


def test_a_project_with_several_questions_is_asked_which(tmp_path):
    with pytest.raises(AnnotationError, match=r"several questions: 'sentiment', 'topic'; say which by question="):
        read(tmp_path / "export.json", LABEL_STUDIO)
    with pytest.raises(AnnotationError, match="no question 'sentimet'"):
        read(tmp_path / "export.json", LABEL_STUDIO, question="sentimet")


def test_several_choices_in_one_annotation_are_named_with_their_place(tmp_path):
    several = [
        {
            "id": 1,
            "data": {},
            "annotations": [{"completed_by": 1, "result": [choice("a") | {"value": {"choices": ["a", "b"]}}]}],
        }
    ]
    with pytest.raises(AnnotationError, match=r"task 1, annotations\[0\]: there are 2 labels, 'a', 'b'"):
        read(tmp_path / "export.json", several)


def test_several_choices_are_left_out_where_that_is_asked_for_and_counted(tmp_path, capsys):
    both = choice("a") | {"value": {"choices": ["a", "b"]}}
    made = [{"completed_by": 1, "result": [both]}, {"completed_by": 2, "result": [choice("a")]}]
    made.append({"completed_by": 3, "result": [choice("b")]})
    content = [{"id": 1, "data": {}, "annotations": made}]
    annotations, said = read(tmp_path / "export.json", content, capsys, several="leave_out")
    assert rows(annotations) == [(1, 2, "a"), (1, 3, "b")]
    assert said.endswith("2 annotators, 1 annotation of several classes left out")
    with pytest.raises(ValueError, match="several 'drop'"):
        read(tmp_path / "export.json", content, several="drop")


def test_label_studio_small_tables(tmp_path):
    text = (
        "id,text,sentiment,annotator,annotation_id,lead_time\n"
        "1,x,pos,3,9,1.5\n1,x,neg,4,10,2\n2,y,pos,3,11,3\n2,y,pos,4,12,1\n"
    )
    annotations = read(tmp_path / "export.csv", text)
    assert rows(annotations) == [(1, 3, "pos"), (1, 4, "neg"), (2, 3, "pos"), (2, 4, "pos")]
    assert annotations.seconds.tolist() == [1.5, 2.0, 3.0, 1.0]


ARGILLA = [
    {
        "id": "r1",
        "text": "x",
        "label.responses": ["a", "b", "a"],
        "label.responses.users": ["u1", "u2", "u3"],
        "label.responses.status": ["submitted", "submitted", "draft"],
        "label.suggestion": "b",
        "label.suggestion.agent": "gpt",
    },
    {"id": "r2", "text": "y", "label.responses": ["b"], "label.responses.users": ["u1"], "label.suggestion": None},
]


def test_argilla_as_a_table_and_nested(tmp_path, capsys):
    expected = [("r1", "gpt", "b"), ("r1", "u1", "a"), ("r1", "u2", "b"), ("r2", "u1", "b")]
    annotations, said = read(tmp_path / "flat.json", ARGILLA, capsys)
    assert rows(annotations) == expected
    assert said.endswith("question 'label': 2 tasks, 2 annotators, 1 model, 1 draft response left out")
    nested = [
        {
            "id": "r1",
            "fields": {"text": "x"},
            "responses": {
                "label": [
                    {"value": "a", "user_id": "u1", "status": "submitted"},
                    {"value": "b", "user_id": "u2"},
                    {"value": "a", "user_id": "u3", "status": "discarded"},
                ]
            },
            "suggestions": {"label": {"value": "b", "agent": "gpt", "score": 0.5}},
        },
        {"id": "r2", "fields": {}, "responses": {"label": [{"value": "b", "user_id": "u1"}]}, "suggestions": {}},
    ]
    assert rows(read(tmp_path / "nested.json", nested)) == expected


def lines(records):
    return "\n".join(map(json.dumps, records)) + "\n"


def test_prodigy_choices(tmp_path, capsys):
    records = [
        {"text": "x", "_input_hash": 1, "_task_hash": 5, "accept": ["A"], "answer": "accept", "_annotator_id": "d-eva"},
        {"text": "x", "_input_hash": 1, "_task_hash": 5, "accept": ["B"], "answer": "accept", "_annotator_id": "d-tom"},
        {"text": "y", "_input_hash": 2, "_task_hash": 6, "accept": [], "answer": "ignore", "_session_id": "d-tom"},
        {"text": "y", "_input_hash": 2, "_task_hash": 6, "accept": ["B"], "answer": "accept", "_session_id": "d-eva"},
    ]
    annotations, said = read(tmp_path / "p.jsonl", lines(records), capsys)
    assert rows(annotations) == [(1, "d-eva", "A"), (1, "d-tom", "B"), (2, "d-eva", "B")]
    assert "Prodigy export: 2 tasks, 2 annotators, 1 ignored example left out" in said


def test_prodigy_yes_or_no(tmp_path):
    records = [
        {"text": "x", "_input_hash": i, "_task_hash": i, "label": "SPAM", "answer": answer, "_annotator_id": who}
        for i, who, answer in [(1, "a", "accept"), (1, "b", "reject"), (2, "a", "accept"), (2, "b", "ignore")]
    ]
    assert rows(read(tmp_path / "p.jsonl", lines(records))) == [
        (1, "a", "accept"),
        (1, "b", "reject"),
        (2, "a", "accept"),
    ]
    with pytest.raises(AnnotationError, match="several questions: 'SPAM', 'HAM'"):
        read(tmp_path / "p.jsonl", lines([*records, records[0] | {"label": "HAM"}]))


def test_doccano_with_users_and_a_file_for_each_annotator(tmp_path):
    old = [{"id": 1, "text": "x", "annotations": [{"label": 3, "user": 1}, {"label": 4, "user": 2}]}]
    assert rows(read(tmp_path / "old.jsonl", lines(old))) == [(1, 1, 3), (1, 2, 4)]
    folder = tmp_path / "project"
    folder.mkdir()
    for name, labels in {"eva": ["pos"], "tom": ["neg"]}.items():
        (folder / f"{name}.jsonl").write_text(lines([{"id": 1, "text": "x", "label": labels, "Comments": []}]))
    assert rows(cp.read(folder, tell=False)) == [(1, "eva", "pos"), (1, "tom", "neg")]


def labelbox(task, *labels):
    """A data row, with who chose what under which name."""
    return {
        "data_row": {"id": task, "external_id": "same.txt"},
        "projects": {
            "p": {
                "name": "crowd",
                "labels": [
                    {
                        "label_details": {"created_by": worker},
                        "performance_details": {"seconds_to_create": 7},
                        "annotations": {"objects": [], "classifications": [{"name": question, **answer}]},
                    }
                    for worker, question, answer in labels
                ],
            }
        },
    }


def test_labelbox_lines(tmp_path, capsys):
    pos, neg = ({"radio_answer": {"name": label, "value": label.lower()}} for label in ("Positive", "Negative"))
    many = {"checklist_answers": [{"name": "Spam", "value": "spam"}]}
    content = [labelbox("d1", ("eva", "tone", pos), ("tom", "tone", neg)), labelbox("d2", ("eva", "tone", pos))]
    annotations, said = read(tmp_path / "export.ndjson", lines(content), capsys)
    assert rows(annotations) == [("d1", "eva", "Positive"), ("d1", "tom", "Negative"), ("d2", "eva", "Positive")]
    assert annotations.seconds.tolist() == [7, 7, 7]
    assert "Labelbox export, question 'tone': 2 tasks, 2 annotators" in said
    content += [labelbox("d3", ("eva", "tags", many), ("tom", "note", {"text_answer": {"content": "hm"}}))]
    with pytest.raises(AnnotationError, match=r"questions: 'tone', 'tags'; say which"):
        read(tmp_path / "export.ndjson", lines(content))
    with pytest.raises(AnnotationError, match=r"single class, 'Spam'"):
        read(tmp_path / "export.ndjson", lines(content), question="tags")


def test_ground_truth_of_sagemaker(tmp_path, capsys):
    def given(worker, content):
        return {"workerId": worker, "annotationData": {"content": json.dumps(content)}}

    label, radio = {"crowd-classifier": {"label": "cat"}}, {"crowd-classifier": {"dog": True, "cat": False}}
    content = [
        {"datasetObjectId": "0", "dataObject": {"s3Uri": "s3://b/0"}, "annotations": [given("a", label)]},
        {"datasetObjectId": "1", "annotations": [given("a", radio), given("b", label)]},
    ]
    annotations, said = read(tmp_path / "request.json", content, capsys)
    assert rows(annotations) == [("0", "a", "cat"), ("1", "a", "dog"), ("1", "b", "cat")]
    assert "question 'crowd-classifier'" in said
    content[1]["annotations"][1]["annotationData"]["content"] = "cat"
    with pytest.raises(AnnotationError, match=r"object '1', annotations\[1\]: content is no JSON"):
        read(tmp_path / "request.json", content)


def zooniverse(*classifications):
    """A table of who answered what of a subject, as a list of tasks in JSON."""
    head = ["classification_id", "user_name", "user_id", "annotations", "subject_data", "subject_ids"]
    made = [
        [str(9 + n), who, "", json.dumps(given), "{}", subject]
        for n, (who, subject, given) in enumerate(classifications)
    ]
    return pd.DataFrame(made, columns=head).to_csv(index=False)


def test_zooniverse(tmp_path, capsys):
    yes, no = ([{"task": "T0", "task_label": "A bird?", "value": value}] for value in ("Yes", "No"))
    marks = [{"task": "T1", "task_label": "Where?", "value": [{"x": 1, "y": 2}]}]
    content = zooniverse(("eva", "7", yes + marks), ("not-logged-in-1", "7", no), ("eva", "8", no))
    annotations, said = read(tmp_path / "project.csv", content, capsys)
    assert rows(annotations) == [(7, "eva", "Yes"), (7, "not-logged-in-1", "No"), (8, "eva", "No")]
    assert "Zooniverse classifications, question 'T0': 2 tasks, 2 annotators" in said
    two = [*yes, {"task": "T2", "value": ["red", "blue"]}]
    with pytest.raises(AnnotationError, match=r"'T0', 'T2'; say which"):
        read(tmp_path / "project.csv", zooniverse(("eva", "7", two), ("tom", "7", no)))
    with pytest.raises(AnnotationError, match=r"row 0: there are 2 labels, 'red', 'blue'"):
        read(tmp_path / "project.csv", zooniverse(("eva", "7", two), ("tom", "7", two)), question="T2")
    with pytest.raises(AnnotationError, match=r"row 1: annotations is .* a list of dictionaries with task"):
        read(tmp_path / "project.csv", zooniverse(("eva", "7", yes), ("tom", "7", {"T0": "Yes"})))


MTURK = """HITId,Title,AssignmentId,WorkerId,AssignmentStatus,WorkTimeInSeconds,Input.url,Answer.sentiment.label
H1,t,A1,W1,Approved,12,u1,pos
H1,t,A2,W2,Approved,30,u1,neg
H2,t,A3,W1,Rejected,2,u2,pos
H2,t,A4,W3,Submitted,9,u2,pos
"""


def test_mturk(tmp_path, capsys):
    annotations, said = read(tmp_path / "Batch_1_batch_results.csv", MTURK, capsys)
    assert rows(annotations) == [("H1", "W1", "pos"), ("H1", "W2", "neg"), ("H2", "W3", "pos")]
    assert annotations.seconds.tolist() == [12, 30, 9]
    assert "MTurk results, question 'sentiment'" in said
    assert "1 rejected assignment left out" in said


def test_mturk_radio_buttons_and_json_answers(tmp_path):
    radio = "HITId,WorkerId,Answer.animal.cat,Answer.animal.dog\nH1,W1,true,false\nH1,W2,false,true\n"
    assert rows(read(tmp_path / "a.csv", radio)) == [("H1", "W1", "cat"), ("H1", "W2", "dog")]
    answer = json.dumps([{"animal": {"cat": True, "dog": False}}]).replace('"', '""')
    other = json.dumps([{"animal": {"label": "dog"}}]).replace('"', '""')
    text = f'HITId,WorkerId,Answer.taskAnswers\nH1,W1,"{answer}"\nH1,W2,"{other}"\n'
    assert rows(read(tmp_path / "b.csv", text)) == [("H1", "W1", "cat"), ("H1", "W2", "dog")]
    with pytest.raises(AnnotationError, match=r"row 1: Answer\.taskAnswers is no JSON"):
        read(tmp_path / "c.csv", "HITId,WorkerId,Answer.taskAnswers\nH1,W1,[]\nH1,W2,[x\n")


def test_toloka(tmp_path, capsys):
    text = (
        "INPUT:image\tOUTPUT:result\tGOLDEN:result\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
        "i1\tcat\t\tt1\tw1\tAPPROVED\ni1\tdog\t\tt1\tw2\tAPPROVED\n"
        "i2\tcat\tcat\tt2\tw1\tAPPROVED\ni2\tdog\tcat\tt2\tw3\tREJECTED\n"
    )
    annotations, said = read(tmp_path / "assignments.tsv", text, capsys)
    assert rows(annotations) == [("t1", "w1", "cat"), ("t1", "w2", "dog"), ("t2", "w1", "cat")]
    assert annotations.gold.tolist() == [-1, 0]
    assert "Toloka assignments, question 'result': 2 tasks, 2 annotators, 1 gold label, 1 rejected" in said


def test_appen(tmp_path, capsys):
    text = (
        "_unit_id,_golden,_worker_id,_trust,_tainted,relevant,relevant_gold,url\n"
        "7,true,20,0.9,false,yes,yes,u\n7,true,21,0.4,true,no,yes,u\n"
        "8,false,20,0.9,false,no,,v\n8,false,22,0.8,false,yes,,v\n"
    )
    annotations, said = read(tmp_path / "f1.csv", text, capsys)
    assert rows(annotations) == [(7, 20, "yes"), (8, 20, "no"), (8, 22, "yes")]
    assert annotations.gold.tolist() == [1, -1]
    assert "1 tainted judgment left out" in said
    with pytest.raises(AnnotationError, match="aggregated; export the full report"):
        read(tmp_path / "a.csv", "_unit_id,_golden,relevant,relevant:confidence\n7,false,yes,0.8\n8,false,no,1\n")


def test_lewidi(tmp_path):
    old = {
        "1": {
            "text": "x",
            "number of annotations": 2,
            "annotations": "0,1",
            "annotators": "Ann1, Ann2",
            "hard_label": "0",
        }
    }
    new = {"1": {"text": "x", "annotations": {"Ann1": "0", "Ann2": "1"}}}
    expected = [("1", "Ann1", "0"), ("1", "Ann2", "1")]
    for content in (old, new):
        found = read(tmp_path / "MD_train.json", content)
        assert rows(found) == expected
        assert found.gold is None  # a majority of annotations is no truth
    broken = {"1": {"annotations": "0,1,1", "annotators": "Ann1,Ann2"}}
    with pytest.raises(AnnotationError, match="task '1' has 3 annotations by 2 annotators"):
        read(tmp_path / "MD_train.json", broken)


def test_panels_of_judges(tmp_path):
    expected = [("q1", "gpt", "A"), ("q1", "llama", "B"), ("q2", "gpt", "A"), ("q2", "llama", "A"), ("q3", "gpt", "B")]
    by_judge = {"gpt": {"q1": "A", "q2": "A", "q3": "B"}, "llama": {"q1": "B", "q2": "A"}}
    assert rows(read(tmp_path / "p.json", by_judge, outer="worker")) == expected
    with pytest.warns(AnnotationWarning, match="outer='task'"):
        read(tmp_path / "p.json", by_judge)
    records = [{"item": i, "judge": j, "label": v} for i, j, v in expected]
    assert rows(read(tmp_path / "r.jsonl", lines(records))) == expected
    by_item = [
        {"item": "q1", "labels": {"gpt": "A", "llama": "B"}},
        {"item": "q2", "labels": {"gpt": "A", "llama": "A"}},
    ]
    assert rows(read(tmp_path / "i.json", by_item)) == expected[:4]


@pytest.mark.parametrize("names", [(1, 2), (1, "a"), (("a", 1), ("a", 2))])
def test_keys_of_dictionaries_in_python_are_names_of_any_type(names):
    one, other = names
    given = {one: {"x": "A", "y": "B"}, other: {"x": "A", "y": "A"}}
    assert set(rows(cp.read(given, tell=False))) == {
        (one, "x", "A"),
        (one, "y", "B"),
        (other, "x", "A"),
        (other, "y", "A"),
    }
    by_inner = {"x": dict.fromkeys(names, "A"), "y": {one: "B"}}
    assert set(rows(cp.read(by_inner, tell=False))) == {("x", one, "A"), ("x", other, "A"), ("y", one, "B")}


def test_a_path_in_a_taxonomy_is_one_label_and_no_part_of_it_is_lost(tmp_path):
    def of(worker, *path):
        value = {"taxonomy": [list(path)]}
        return {"completed_by": worker, "result": [{"from_name": "kind", "type": "taxonomy", "value": value}]}

    content = [{"id": 1, "data": {}, "annotations": [of(1, "animal", "dog"), of(2, "animal", "cat")]}]
    assert rows(read(tmp_path / "a.json", content)) == [(1, 1, "animal / dog"), (1, 2, "animal / cat")]


def test_spans_are_no_classes(tmp_path):
    with pytest.raises(AnnotationError, match=r"line 1: \[0, 2, 'PER'\] is no class"):
        read(tmp_path / "doccano.jsonl", lines([{"id": n, "text": "x", "label": [[n, 2, "PER"]]} for n in range(3)]))
    made = {"spans": [{"start": 0, "end": 1, "label": "PER"}], "_input_hash": 1, "_annotator_id": "a"}
    by_hand = [made | {"answer": answer, "_view_id": "ner_manual"} for answer in ("accept", "reject")]
    with pytest.raises(AnnotationError, match=r"no annotation \(2 examples of ner_manual, whose spans are no class"):
        read(tmp_path / "prodigy.jsonl", lines(by_hand))
    one_each = [made | {"answer": a, "_view_id": "ner", "_task_hash": n} for n, a in enumerate(("accept", "reject"))]
    found = rows(read(tmp_path / "prodigy.jsonl", lines(one_each)))
    assert found == [(0, "a", "accept"), (1, "a", "reject")]


def test_output_of_ground_truth_without_workers_is_refused_with_the_code_that_reads_theirs(tmp_path):
    about = {
        "class-name": "cat",
        "confidence": 0.9,
        "human-annotated": "yes",
        "type": "groundtruth/image-classification",
    }
    manifest = [{"source-ref": f"s3://b/{n}.png", "pets": n % 2, "pets-metadata": about} for n in range(4)]
    answers = [
        {"workerId": who, "answerContent": {"crowd-image-classifier": {"label": label}}, "submissionTime": "2026"}
        for who, label in (("a", "cat"), ("b", "dog"))
    ]
    folder = tmp_path / "worker-response"
    for task in ("0", "1"):
        (folder / "iteration-1" / task).mkdir(parents=True)
        path = folder / "iteration-1" / task / "2026.json"
        path.write_text(json.dumps({"answers": answers}))
    (tmp_path / "output.manifest").write_text(lines(manifest))
    for source in (tmp_path / "output.manifest", path):
        with pytest.raises(AnnotationError, match="output of SageMaker Ground Truth, with") as refused:
            cp.read(source)
        code = str(refused.value)
        code = code[code.index("cp.read(") :].replace("'worker-response'", "folder")
        found = eval(code, {"cp": cp, "json": json, "pathlib": pathlib, "folder": folder})
        assert rows(found) == [(task, who, label) for task in ("0", "1") for who, label in (("a", "cat"), ("b", "dog"))]


@pytest.mark.parametrize(
    "start", ['<?xml version="1.0"?><annotations/>', "\ufeff <!DOCTYPE html><html></html>", "<html>"]
)
def test_markup_is_said_to_be_no_table(tmp_path, start):
    with pytest.raises(AnnotationError, match="is XML or a page of HTML, and no table"):
        read(tmp_path / "a.csv", start)
