"""Files that were once read wrongly, or not at all."""

import gzip
import json
import subprocess
import sys
import warnings
import zipfile

import pandas as pd
import polars as pl
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.data.errors import AnnotationWarning


def read(path, content, **options):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return cp.read(path, **{"tell": False, **options})


def lines(records):
    return "\n".join(map(json.dumps, records)) + "\n"


def rows(annotations):
    return sorted(map(tuple, annotations.to_frame()[["task", "worker", "label"]].to_numpy().tolist()), key=str)


@pytest.mark.parametrize("cells", ["1,0,1,1\n2,1,1,1\n3,0,0,0", "1,x,y,\n2,x,x,y\n3,y,,x"])
def test_a_wide_table_keeps_its_workers_names(tmp_path, cells):
    assert list(read(tmp_path / "w.csv", f"id,ann,bob,cec\n{cells}\n").workers) == ["ann", "bob", "cec"]


def test_a_wide_table_may_have_gold_text_dates_an_index_and_a_majority(tmp_path, capsys):
    text = (
        "Unnamed: 0,id,text,created_at,ann,bob,cec,majority,gold\n0,a,one,2020-01-01,x,y,x,x,x\n"
        "1,b,two,2020-01-02,x,x,y,x,\n2,c,three,2020-01-03,y,N/A,y,y,y\n3,d,four,2020-01-04,y,y,x,y,x\n"
    )
    with pytest.warns(AnnotationWarning, match="'N/A' counts as a class"):
        annotations = read(tmp_path / "w.csv", text, tell=True)
    assert list(annotations.workers) == ["ann", "bob", "cec"]
    assert [None if k < 0 else annotations.classes[k] for k in annotations.gold] == ["x", None, "y", "x"]
    said = capsys.readouterr().err
    assert "gold labels in 'gold'; left out: 'Unnamed: 0', 'text', 'created_at', 'majority'" in said


def test_metadata_beside_a_label_are_no_panel_of_judges(tmp_path):
    records = [
        {"task": i, "worker": w, "label": v, "meta": {"src": "web", "lang": "en"}}
        for i, w, v in [(1, "a", "x"), (1, "b", "y"), (2, "a", "x")]
    ]
    expected = [(1, "a", "x"), (1, "b", "y"), (2, "a", "x")]
    assert rows(read(tmp_path / "n.jsonl", lines(records))) == expected
    assert rows(read(tmp_path / "n.jsonl", lines(records), task="task", worker="worker", label="label")) == expected
    with pytest.raises(AnnotationError, match="no column 'worker'"):
        read(tmp_path / "m.json", [{"id": 1, "meta": {"a": "x"}}])


def test_nested_annotations_are_one_each(tmp_path):
    expected = [("q0", "a", 0), ("q0", "b", 1), ("q1", "a", 1), ("q1", "b", 1)]
    beside = [{"id": f"q{i}", "annotators": ["a", "b"], "labels": [i, 1]} for i in range(2)]
    listed = [
        {"id": f"q{i}", "text": "t", "annotations": [{"annotator": "a", "label": i}, {"annotator": "b", "label": 1}]}
        for i in range(2)
    ]
    by_judge = [{"item": f"q{i}", "labels": {"a": i, "b": 1}} for i in range(2)]
    for records in (beside, listed, by_judge):
        assert rows(read(tmp_path / "n.jsonl", lines(records))) == expected
    with pytest.raises(AnnotationError, match=r"record 0: .* annotators has 1, labels"):
        read(tmp_path / "n.jsonl", lines([{"id": "q", "annotators": ["a"], "labels": [0, 1]}]))


def test_judges_and_verdicts_with_further_fields_are_no_panels_of_judges(tmp_path, capsys):
    """The fields of the judge were read as workers, their values as labels, and the verdicts were left out."""
    said = [("q0", "gpt", "good"), ("q0", "llama", "bad"), ("q1", "gpt", "bad"), ("q1", "llama", "bad")]
    records = [
        {
            "item_id": item,
            "judge": {"model": judge, "temperature": 0.0},
            "verdict": {"label": label, "reason": "because"},
            "usage": {"in": 100, "out": 20},
        }
        for item, judge, label in said
    ]
    assert rows(read(tmp_path / "j.jsonl", lines(records), tell=True)) == said
    assert "(task 'item_id', worker 'judge.model', label 'verdict.label')" in capsys.readouterr().err
    plain = [{**record, "judge": record["judge"]["model"]} for record in records]
    assert rows(read(tmp_path / "j.jsonl", lines(plain))) == said
    deep = [
        {"item": i, "run": {"by": {"model": j}}, "output": {"parsed": {"label": v}}, "label": "raw"} for i, j, v in said
    ]
    named = {"worker": "run.by.model", "label": "output.parsed.label"}
    assert rows(read(tmp_path / "j.jsonl", lines(deep), **named)) == said
    with pytest.raises(AnnotationError, match=r"no column 'run.by.nobody'"):
        read(tmp_path / "j.jsonl", lines(deep), worker="run.by.nobody")


def test_verdicts_with_reasons_are_read_by_judge_and_by_task_and_in_a_wrapper(tmp_path):
    said = [("q0", "a", "x"), ("q0", "b", "y"), ("q1", "a", "y"), ("q1", "b", "y")]
    tasks = ("q0", "q1")
    of = {task: {j: {"verdict": v, "reason": "because"} for t, j, v in said if t == task} for task in tasks}
    listed = [{"item": t, "judges": [{"name": j, **v} for j, v in of[t].items()]} for t in tasks]
    by_judge = [{"item": t, "judges": of[t]} for t in tasks]
    described = [{"doc": {"id": t, "text": "…"}, "judge": j, "output": {"label": v, "score": 0.3}} for t, j, v in said]
    wrapped = {"judgments": described, "meta": {"version": 1}, "models": ["a", "b"]}
    for content in (of, listed, by_judge, described, wrapped):
        assert rows(read(tmp_path / "n.json", content)) == said


def test_a_judge_at_two_temperatures_is_told_and_how_to_make_two_of_it(tmp_path, capsys):
    said = [("q0", "a", 0.0, "x"), ("q0", "a", 0.7, "y"), ("q1", "a", 0.0, "y"), ("q1", "b", 0.0, "y")]
    records = [dict(zip(("item", "judge", "temperature", "label"), row, strict=True)) for row in said]
    assert read(tmp_path / "n.jsonl", lines(records), tell=True).n_workers == 2
    assert "2 workers; repeated by the same worker: 1 annotation" in capsys.readouterr().err
    with pytest.raises(
        AnnotationError, match=r"one column is needed; .* table\['worker'\] = table\['judge'\].astype\(str\)"
    ):
        read(tmp_path / "n.jsonl", lines(records), worker=["judge", "temperature"])


def test_what_a_json_file_has_is_read_from_memory_too(tmp_path):
    records = [
        {"item": "q0", "judge": "a", "verdict": {"label": "x"}},
        {"item": "q0", "judge": "b", "verdict": {"label": "y"}},
    ]
    by_task = {"q0": {"a": "x", "b": "y"}, "q1": {"a": "y", "b": "y"}}
    for content in (records, by_task):
        assert rows(cp.read(content, tell=False)) == rows(read(tmp_path / "n.json", content))
    with pytest.raises(AnnotationError, match=r"not a list; .*\(task, worker, label\)"):
        cp.read([1, 2])


def test_a_record_for_each_judge_has_labels_by_task(tmp_path):
    records = [{"judge": "a", "labels": {"q0": 0, "q1": 1}}, {"judge": "b", "labels": {"q0": 1, "q1": 1}}]
    expected = [("q0", "a", 0), ("q0", "b", 1), ("q1", "a", 1), ("q1", "b", 1)]
    assert rows(read(tmp_path / "n.jsonl", lines(records))) == expected


def test_a_column_of_inputs_is_rather_that_of_tasks_than_the_rows_ids(tmp_path):
    said = [("q0", "a", "x"), ("q0", "b", "y"), ("q1", "a", "y"), ("q1", "b", "y")]
    records = [{"id": n, "input_id": i, "model": m, "answer": v} for n, (i, m, v) in enumerate(said)]
    assert rows(read(tmp_path / "n.jsonl", lines(records))) == said


def test_tasks_that_each_have_one_annotation_are_told_with_the_column(tmp_path):
    records = [{"id": n, "request": n // 2, "model": "ab"[n % 2], "answer": "xy"[n % 3 == 0]} for n in range(8)]
    with pytest.warns(AnnotationWarning, match=r"each of the 8 tasks has one annotation.*'id'.*task="):
        read(tmp_path / "n.jsonl", lines(records))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path / "n.jsonl", lines(records), task="request")


def test_argilla_of_the_server_and_its_uneven_lists(tmp_path):
    records = [
        {
            "id": f"r{i}",
            "fields": {"text": "a"},
            "responses": [
                {"user_id": user, "status": "submitted", "values": {"label": {"value": value}}}
                for user, value in (("u1", "pos"), ("u2", "neg"))
            ],
        }
        for i in range(2)
    ]
    assert rows(read(tmp_path / "a.json", records)) == [
        ("r0", "u1", "pos"),
        ("r0", "u2", "neg"),
        ("r1", "u1", "pos"),
        ("r1", "u2", "neg"),
    ]
    uneven = [{"id": "r1", "label.responses": ["pos", "neg"], "label.responses.users": ["u1"]}]
    with pytest.raises(AnnotationError, match=r"record 'r1': label\.responses has 2, its users 1"):
        read(tmp_path / "u.json", uneven)


@pytest.mark.parametrize("orient", ["columns", "list", "split", "records"])
def test_every_shape_of_json_that_pandas_writes(tmp_path, orient):
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": list("xyx")})
    content = frame.to_dict("list") if orient == "list" else json.loads(frame.to_json(orient=orient))
    assert rows(read(tmp_path / "p.json", content)) == [(1, "a", "x"), (1, "b", "y"), (2, "a", "x")]


def test_a_repeated_header_and_numbers_with_a_point_are_told(tmp_path):
    with pytest.raises(AnnotationError, match=r"row 2 \(line 4 of h\.csv\): the header is there again"):
        read(tmp_path / "h.csv", "task,worker,label\n1,a,x\n1,b,y\ntask,worker,label\n2,a,x\n")
    with pytest.warns(AnnotationWarning, match=r"'1' and '1\.0'"):
        read(tmp_path / "p.csv", "task,worker,label\n1,a,1.0\n1,b,2b\n2,a,1\n")
    assert list(read(tmp_path / "p.csv", "task,worker,label\n1,a,1.0\n1,b,2b\n2,a,1\n", tidy=True).classes) == [
        "1",
        "2b",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": "oops"}]}], r"annotations\[0\]: a dict"),
        ([{"id": 1, "data": {}, "annotations": {"result": []}}], "annotations is a dict; a list is needed"),
    ],
)
def test_a_label_studio_export_of_an_odd_shape_says_where(tmp_path, content, said):
    with pytest.raises(AnnotationError, match=said):
        read(tmp_path / "s.json", content)


def test_a_zip_names_its_file_and_skips_what_systems_add(tmp_path):
    one, two = [{"id": 1, "text": "x", "label": ["a"]}], [{"id": 1, "text": "x", "label": ["a", "b"]}]
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("ann.jsonl", lines(one))
        archive.writestr("bob.jsonl", lines(two))
        archive.writestr("__MACOSX/._ann.jsonl", "\0\1")
    with pytest.raises(AnnotationError, match=r"d\.zip: doccano export, bob\.jsonl, line 1: there are 2 labels"):
        cp.read(tmp_path / "d.zip", tell=False)
    with zipfile.ZipFile(tmp_path / "c.csv.zip", "w") as archive:
        archive.writestr("c.csv", "task,worker,label\n1,a,x\n1,b,y\n")
    assert cp.read(tmp_path / "c.csv.zip", tell=False).n_annotations == 2


def test_compression_is_known_by_content_and_encodings_by_name(tmp_path):
    text = b"task,worker,label\n1,a,x\n1,b,y\n"
    (tmp_path / "packed").write_bytes(gzip.compress(text))
    assert cp.read(tmp_path / "packed", tell=False).n_annotations == 2
    code = "import crowdppl as cp; print(cp.read('-').n_annotations)"
    done = subprocess.run([sys.executable, "-c", code], input=gzip.compress(text), capture_output=True, check=True)
    assert done.stdout.strip() == b"2"
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(AnnotationError, match="encoding='klingon' is not known"):
        cp.read(tmp_path / "a.csv", encoding="klingon")
    with pytest.raises(UnknownNameError, match="unknown option 'tidyy'; did you mean 'tidy'"):
        cp.read(tmp_path / "a.csv", tidyy=True)
    with pytest.raises(UnknownNameError, match=r"'seperator'; did you mean 'separator'.*question, task.* in all"):
        cp.read(tmp_path / "a.csv", seperator=";")


def test_an_mturk_worker_who_chose_nothing_is_left_out(tmp_path, capsys):
    def answer(choice):
        told = json.dumps([{"q": {"pos": choice == "pos", "neg": choice == "neg"}}])
        return told.replace('"', '""')

    text = "HITId,WorkerId,Answer.taskAnswers\n" + "".join(
        f'H{i},W{j},"{answer(choice)}"\n'
        for i, j, choice in [(1, 1, "pos"), (1, 2, None), (2, 1, "neg"), (2, 2, "pos")]
    )
    assert len(rows(read(tmp_path / "m.csv", text, tell=True))) == 3
    assert "1 empty annotation left out" in capsys.readouterr().err
    assert len(rows(read(tmp_path / "m.csv", text, question="Answer.q"))) == 3


def test_tables_with_a_name_twice_are_refused():
    frame = pd.DataFrame([[1, "a", "x", "y"]], columns=["task", "worker", "label", "label"])
    with pytest.raises(AnnotationError, match="two columns have the same name"):
        cp.read(frame)
    assert cp.read(pl.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]})).n_annotations == 2


def test_what_tells_repeated_annotations_apart_is_named(tmp_path, capsys):
    """Two variants of an answer to one prompt are one task, as nothing says that they are answers."""
    records = [
        {"prompt_id": f"q{i}", "variant": of, "judge": judge, "reason": f"{i}{of}{judge}", "score": (i + j) % 3}
        for i in range(30)
        for of in ("m1", "m2")
        for j, judge in enumerate("abc")
    ]
    assert read(tmp_path / "n.jsonl", lines(records), tell=True).n_tasks == 30
    assert "repeated by the same worker: 90 annotations, each with another 'variant'" in capsys.readouterr().err
    read(tmp_path / "n.jsonl", lines([each for each in records if each["variant"] == "m1"]), tell=True)
    assert "repeated by" not in capsys.readouterr().err


def test_labels_by_criterion_of_several_judges_are_asked_about(tmp_path):
    """The criteria were taken for workers, and the judges left out."""
    records = [
        {"id": f"q{i}", "model": judge, "scores": {"helpful": (i + j) % 3, "harmless": 2}}
        for i in range(3)
        for j, judge in enumerate("abc")
    ]
    path = tmp_path / "n.jsonl"
    message = r"'scores' by 'a' and by 'b' \('model'\).* by label='scores.helpful' or label='scores.harmless'"
    with pytest.raises(AnnotationError, match=message):
        read(path, lines(records))
    found = cp.read(path, label="scores.helpful", tell=False)
    assert list(found.workers) == ["a", "b", "c"]
    assert found.n_annotations == 9
    reasoned = [
        {**each, "scores": {key: {"score": of, "why": "…"} for key, of in each["scores"].items()}} for each in records
    ]
    with pytest.raises(AnnotationError, match=r"by label='scores.helpful.score' or label='scores.harmless.score'"):
        read(path, lines(reasoned))
    assert list(cp.read(path, label="scores.helpful.score", tell=False).workers) == ["a", "b", "c"]
    by_judge = [{"id": f"q{i}", "model": "evaluated", "scores": {"a": i % 2, "b": 1}} for i in range(3)]
    assert list(read(path, lines(by_judge)).workers) == ["a", "b"]


def test_keys_of_a_label_do_not_take_the_place_of_the_worker_that_a_record_names(tmp_path):
    """The one key was taken for the worker, and the column of workers was gone without a word."""
    path = tmp_path / "n.json"
    for tasks in ((1, 1, 2, 2), (1, 2, 3, 4)):
        records = [
            {"task": task, "worker": worker, "label": {"x": i % 2}}
            for i, (task, worker) in enumerate(zip(tasks, "abab", strict=True))
        ]
        with pytest.raises(AnnotationError, match=r"record \d.*'label'.*'worker'.* by label='label.x'"):
            read(path, json.dumps(records))
        assert list(cp.read(path, label="label.x", tell=False).workers) == ["a", "b"]


def test_the_one_list_whose_dictionaries_name_workers_and_labels_is_opened_whatever_it_is_called(capsys):
    records = [
        {
            "sample": {"id": f"s{i}", "prompt": "Name a river."},
            "messages": [{"role": "user", "content": "Name a river."}],
            "grades": [
                {"grader": {"name": name, "type": "score_model"}, "result": {"verdict": "fail" if i % k else "pass"}}
                for k, name in ((2, "a"), (3, "b"))
            ],
        }
        for i in range(4)
    ]
    found = cp.read(records)
    assert found.to_frame()["label"].tolist() == ["pass", "pass", "fail", "fail", "pass", "fail", "fail", "pass"]
    assert list(found.tasks) == ["s0", "s1", "s2", "s3"]
    assert list(found.workers) == ["a", "b"]
    assert "task 'sample.id', worker 'grader.name', label 'verdict'" in capsys.readouterr().err
    for record in records:
        for grade in record["grades"]:
            grade["outcome"] = {"is": grade.pop("result")["verdict"]}
    assert cp.read(records, label="outcome.is").to_frame().equals(found.to_frame())
    with pytest.raises(AnnotationError, match=r"'outcome\.is'.* row 8"):
        cp.read([*records, {"sample": {"id": "s9"}, "grades": []}], label="outcome.is")
    own = [{**record, "judge": "a", "label": i % 2} for i, record in enumerate(records)]  # nothing is opened
    assert cp.read(own).n_annotations == len(own)


def test_more_questions_on_images_than_a_form_has_are_tasks_with_their_image(capsys):
    """As of visual question answering: a worker's three answers on an image are to three questions."""
    answers = ("yes", "no", "two")
    rows = [(f"i{i}", f"question {i}-{q}", w, answers[q]) for i in range(60) for q in range(3) for w in "ab"]
    found = cp.read(pd.DataFrame(rows, columns=["image_id", "question", "worker", "answer"]))
    assert (found.n_tasks, found.votes().max()) == (180, 2)
    assert "task 'image_id | question'" in capsys.readouterr().err


SCORES = {
    judge: {f"i{i}": {"help": (i + j) % 5 + 1, "style": i % 3 + 1, "why": f"{judge} of {i}"} for i in range(9)}
    for j, judge in enumerate(("ann", "bob", "cec"))
}


@pytest.mark.parametrize("outer", ["worker", "task"])
def test_scores_by_worker_task_and_criterion_are_questions_and_reasons_are_none(tmp_path, outer):
    given = SCORES
    if outer == "task":
        given = {f"i{i}": {judge: SCORES[judge][f"i{i}"] for judge in SCORES} for i in range(9)}
    annotations = read(tmp_path / "scores.json", given, outer=outer)
    assert list(annotations.questions) == ["help", "style"]
    wide = pd.DataFrame([{"task": i, "worker": j, **cell} for j, by in SCORES.items() for i, cell in by.items()])
    table = cp.Annotations.from_frame(wide, question=["help", "style"])
    keys = ["task", "question", "worker"]
    one, other = (each.to_frame()[[*keys, "label"]].sort_values(keys) for each in (annotations, table))
    assert one.to_numpy().tolist() == other.to_numpy().tolist()
    alone = read(tmp_path / "scores.json", given, outer=outer, question="style")
    assert (alone.n_annotations, list(alone.classes)) == (27, [1, 2, 3])


def test_several_places_of_a_task_by_one_worker_are_told_though_all_columns_have_their_names(capsys):
    spans = [
        {"task": i, "worker": w, "start": 40 * i + k, "label": "AB"[(i + k) % 2]}
        for i in range(9) for w in "ab" for k in (0, 7)
    ]  # fmt: skip
    cp.read(spans)
    assert "18 annotations, each with another 'start'" in capsys.readouterr().err


def test_a_table_without_a_header_is_said_to_have_none_and_how_it_is_read(tmp_path):
    path = tmp_path / "crowd.csv"
    for rows in (["1,a,x", "1,b,x", "2,a,y", "2,b,x"], ["t1,ann,yes", "t1,bob,no", "t2,ann,yes", "t2,bob,no"]):
        path.write_text("\n".join(rows), encoding="utf-8")
        with pytest.raises(AnnotationError, match="no header") as error:
            cp.read(path)
        call = str(error.value).partition("read it with names: ")[2]
        found = eval(call, {"cp": cp, "pd": pd})
        assert (found.n_annotations, found.n_tasks, found.n_workers, found.n_classes) == (4, 2, 2, 2)
    path.write_text("a,b,c\n1,5,x\n1,6,y\n2,5,x\n", encoding="utf-8")
    with pytest.raises(AnnotationError) as error:
        cp.read(path)
    assert "no header" not in str(error.value)


def test_text_that_is_named_as_excel_files_are_is_said_to_be_none_with_how_it_begins(tmp_path):
    for name in ("crowd.xlsx", "crowd.xls"):
        with pytest.raises(AnnotationError, match=r"crowd\.xlsx?.*'task,worker,label'.*\.csv"):
            read(tmp_path / name, "task,worker,label\n1,a,x\n1,b,y\n")


@pytest.mark.parametrize("above", ["", "sep=,\n"])
def test_a_quotation_mark_that_is_not_closed_is_told_with_its_place(tmp_path, above):
    lines_below = "".join(f"{task},b,y\n" for task in range(3, 9))
    for text, place in (
        ('task,worker,label\n1,a,x\n\n1,"b\nc",y\n2,a,"x\n' + lines_below, ("row 2", 6)),
        ('task,worker,label\n1,a,x\n2,a,"x\n' + "3,b,y\n" * 30_000, ("row 1", 3)),
        ('task,worker,"label\n1,a,x\n', ("the header", 1)),
    ):
        row, line = place
        with pytest.raises(AnnotationError, match=rf"{row} \(line {line + bool(above)}\).*quotation mark"):
            read(tmp_path / "crowd.csv", above + text)


def test_the_folder_of_a_fit_beside_a_table_is_left_out_and_alone_is_refused_by_its_name(tmp_path, capsys):
    table = read(tmp_path / "crowd.csv", "task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n")
    cp.fit("majority_vote", table, progress=False).save(tmp_path / "fitted")
    assert rows(cp.read(tmp_path)) == rows(table)
    assert "'manifest.json'" in capsys.readouterr().err.partition("left out: ")[2]
    with pytest.raises(AnnotationError, match=r"fitted is the folder of a fit.*load_fit"):
        cp.read(tmp_path / "fitted")
