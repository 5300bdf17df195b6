"""A table written in the shape of each tool comes back the same."""

import csv
import io
import json
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import crowdppl as cp

CLASSES = ("pos", "neg", "n/e")
# Names as people have them: letters of any script, blanks and punctuation within, no number in disguise.
NAMES = st.text(st.characters(categories=["Ll", "Lu", "Lo"], exclude_characters="ªº"), min_size=1, max_size=6).map(
    lambda text: f"w {text}"
)


@st.composite
def annotated(draw):
    """Rows (task, worker, label): at least two tasks and workers, whom every class was given by, each pair once."""
    workers = draw(st.lists(NAMES, min_size=2, max_size=4, unique_by=str.casefold))
    n_tasks = draw(st.integers(3, 6))
    cells = draw(
        st.lists(
            st.lists(st.sampled_from([*CLASSES, None]), min_size=len(workers), max_size=len(workers)),
            min_size=n_tasks,
            max_size=n_tasks,
        )
    )
    for task, label in enumerate(CLASSES):  # every class, and nobody without an annotation
        cells[task] = [label] * len(workers)
    return [(f"t {t}", w, label) for t, row in enumerate(cells) for w, label in zip(workers, row, strict=True) if label]


def by_task(rows):
    found = {}
    for task, worker, label in rows:
        found.setdefault(task, []).append((worker, label))
    return found


def text_of(header, rows, separator=",", quoting=csv.QUOTE_MINIMAL):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, quoting=quoting)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def studio(rows):
    def result(label):
        return [{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]

    return [
        {
            "id": int(task[2:]),
            "data": {"text": task},
            "annotations": [{"completed_by": {"id": 7, "email": w}, "result": result(label)} for w, label in each],
        }
        for task, each in by_task(rows).items()
    ]


def argilla(rows):
    return [
        {
            "id": task,
            "mood.responses": [label for _, label in each],
            "mood.responses.users": [worker for worker, _ in each],
            "mood.responses.status": ["submitted"] * len(each),
        }
        for task, each in by_task(rows).items()
    ]


def argilla_nested(rows):
    return [
        {
            "id": task,
            "fields": {"text": task},
            "responses": {"mood": [{"value": label, "user_id": worker} for worker, label in each]},
        }
        for task, each in by_task(rows).items()
    ]


def prodigy(rows):
    options = [{"id": label, "text": label} for label in CLASSES]
    return "\n".join(
        json.dumps(
            {
                "_input_hash": int(task[2:]),
                "_annotator_id": worker,
                "options": options,
                "accept": [label],
                "answer": "accept",
            }
        )
        for task, worker, label in rows
    )


def doccano(rows):
    return "\n".join(
        json.dumps({"id": int(task[2:]), "text": task, "label": [label], "annotator": worker})
        for task, worker, label in rows
    )


def lewidi(rows, listed):
    def item(each):
        if not listed:
            return {"annotations": dict(each)}
        return {
            "annotations": ",".join(label for _, label in each),
            "annotators": ",".join(worker for worker, _ in each),
        }

    return {task: item(each) for task, each in by_task(rows).items()}


def judges(rows):
    found = {}
    for task, worker, label in rows:
        found.setdefault(worker, {})[task] = label
    return found


def wide(rows):
    return pd.DataFrame(rows, columns=["task", "worker", "label"]).pivot(index="task", columns="worker", values="label")


TASK = {"numbered": lambda task: int(task[2:]), "named": lambda task: task}
# By shape: the file's name, its content, how tasks come back, and options of the reader.
SHAPES = {
    "csv": ("x.csv", lambda rows: text_of(["task", "worker", "label"], rows), "named", {}),
    "other names": ("x.csv", lambda rows: text_of(["item_id", "annotator", "response"], rows), "named", {}),
    "semicolons": ("x.csv", lambda rows: text_of(["task", "worker", "label"], rows, ";"), "named", {}),
    "sep=": ("x.csv", lambda rows: "sep=|\r\n" + text_of(["task", "worker", "label"], rows, "|"), "named", {}),
    "quoted": ("x.csv", lambda rows: text_of(["task", "worker", "label"], rows, quoting=csv.QUOTE_ALL), "named", {}),
    "tabs": ("x.tsv", lambda rows: text_of(["task", "worker", "label"], rows, "\t"), "named", {}),
    "json lines": (
        "x.jsonl",
        lambda rows: "\n".join(json.dumps({"item": t, "judge": w, "label": label}) for t, w, label in rows),
        "named",
        {},
    ),
    "records": (
        "x.json",
        lambda rows: json.dumps([{"task": t, "rater": w, "label": label} for t, w, label in rows]),
        "named",
        {},
    ),
    "wide": ("x.csv", lambda rows: wide(rows).to_csv(), "named", {}),
    "judges": ("x.json", lambda rows: json.dumps(judges(rows)), "named", {"outer": "worker"}),
    "label studio": ("x.json", lambda rows: json.dumps(studio(rows)), "numbered", {}),
    "argilla": ("x.json", lambda rows: json.dumps(argilla(rows)), "named", {}),
    "argilla nested": ("x.json", lambda rows: json.dumps(argilla_nested(rows)), "named", {}),
    "prodigy": ("x.jsonl", prodigy, "numbered", {}),
    "doccano": ("x.jsonl", doccano, "numbered", {}),
    "mturk": (
        "x.csv",
        lambda rows: text_of(
            ["HITId", "WorkerId", "AssignmentStatus", "WorkTimeInSeconds", "Answer.mood.label"],
            [(t, w, "Approved", 9, label) for t, w, label in rows],
        ),
        "named",
        {},
    ),
    "toloka": (
        "x.tsv",
        lambda rows: text_of(
            ["INPUT:text", "OUTPUT:mood", "GOLDEN:mood", "ASSIGNMENT:worker_id"],
            [(t, label, "", w) for t, w, label in rows],
            "\t",
        ),
        "named",
        {},
    ),
    "appen": (
        "x.csv",
        lambda rows: text_of(
            ["_unit_id", "_worker_id", "_trust", "_golden", "mood"],
            [(t, w, 0.9, "false", label) for t, w, label in rows],
        ),
        "named",
        {},
    ),
    "lewidi lists": ("x.json", lambda rows: json.dumps(lewidi(rows, listed=True)), "named", {}),
    "lewidi dictionaries": ("x.json", lambda rows: json.dumps(lewidi(rows, listed=False)), "named", {}),
}


def read(name, content, encoding="utf-8", **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode(encoding))
        return cp.read(path, tell=False, **options)


def rows_of(annotations):
    return sorted(annotations.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None), key=str)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(rows=annotated())
def test_annotations_written_as_a_tool_writes_them_come_back_the_same(shape, rows):
    name, written, task, options = SHAPES[shape]
    found = rows_of(read(name, written(rows), **options))
    assert found == sorted(((TASK[task](t), w, label) for t, w, label in rows), key=str)


@settings(max_examples=30)
@example(rows=[("t 0", "w Ā", "x"), ("t 0", "w A", "y")], encoding="utf-16-le")  # Ā has a zero byte where A has none
@given(rows=annotated(), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le"]))
def test_text_comes_back_the_same_from_every_encoding(rows, encoding):
    content = text_of(["task", "worker", "label"], rows)
    assert rows_of(read("x.csv", content, encoding)) == sorted(rows, key=str)


def test_a_named_column_of_a_wide_table_is_gold():
    content = "task,ann,bob,cy,checked\na,x,y,x,x\nb,y,y,x,y\nc,x,x,y,x\n"
    annotations = read("x.csv", content, gold="checked")
    assert list(annotations.workers) == ["ann", "bob", "cy"]
    assert [annotations.classes[k] for k in annotations.gold] == ["x", "y", "x"]


def test_a_named_column_of_a_long_table_is_gold():
    content = "task,worker,label,checked\na,ann,x,y\na,bob,y,y\nb,ann,x,x\n"
    annotations = read("x.csv", content, gold="checked")
    assert [annotations.classes[k] for k in annotations.gold] == ["y", "x"]


def test_a_line_that_names_the_separator_counts_where_errors_name_lines():
    with pytest.raises(cp.AnnotationError, match=r"line 4 of x\.csv"):
        read("x.csv", "sep=;\ntask;worker;label\na;b;x\na;;y\n")
