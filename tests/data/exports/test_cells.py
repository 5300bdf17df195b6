"""Lists and dictionaries in the cells of tables, and criteria in the names of columns and keys."""

import json
import re

import pandas as pd
import pytest

import crowdppl as cp

JUDGES = ("gpt-4", "claude")
SCORES = [{judge: 1 + (number * (at + 2)) % 5 for at, judge in enumerate(JUDGES)} for number in range(12)]


def triples(annotations):
    table = annotations.to_frame()
    return sorted(zip(*(table[name].tolist() for name in table if name != "count"), strict=True))


def sources(folder, rows):
    """The rows as a table in memory, as Parquet, and as CSV with JSON and with Python's text in cells."""
    table = pd.DataFrame(rows)
    table.to_parquet(folder / "a.parquet")
    table.to_csv(folder / "python.csv", index=False)
    as_json = table.map(lambda cell: json.dumps(cell) if isinstance(cell, list | dict) else cell)
    as_json.to_csv(folder / "json.csv", index=False)
    return [table, *(folder / name for name in ("a.parquet", "python.csv", "json.csv"))]


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": number, "scores": by_judge} for number, by_judge in enumerate(SCORES)],
        [
            {"id": number, "judges": list(by_judge), "scores": list(by_judge.values())}
            for number, by_judge in enumerate(SCORES)
        ],
    ],
)
def test_labels_by_judge_in_one_cell_are_read_as_the_same_records_are(tmp_path, rows):
    expected = sorted((number, judge, score) for number, each in enumerate(SCORES) for judge, score in each.items())
    for source in (rows, *sources(tmp_path, rows)):
        assert triples(cp.read(source, tell=False)) == expected


def test_a_judge_who_is_lacking_in_some_rows_has_no_annotation_there(tmp_path):
    rows = [{"id": number, "scores": {"a": number % 2, "b" if number % 3 else "c": 1}} for number in range(9)]
    for source in sources(tmp_path, rows):
        assert cp.read(source, tell=False).n_annotations == 18


def test_labels_by_criterion_in_one_cell_of_a_judge_are_no_class_and_the_advice_reads_them(tmp_path):
    rows = [
        {"id": number // 2, "judge": "ab"[number % 2], "score": {"fluency": 1 + number % 3, "depth": 1 + number % 2}}
        for number in range(24)
    ]
    for source in sources(tmp_path, rows):
        with pytest.raises(cp.AnnotationError, match=r"has 'score' by 'a' and by 'b'") as refused:
            cp.read(source)
        found = re.search(r"(label='[^']*').* by (question=\[[^]]*\])", str(refused.value))
        one, all_of_them = (
            eval(f"cp.read(source, {code}, tell=False)", {"cp": cp, "source": source}) for code in found.groups()
        )
        # Parquet written by older versions of PyArrow has the keys of a dictionary in the order of the alphabet.
        criterion = found[1].removeprefix("label='score.").rstrip("'")
        assert triples(one) == sorted((row["id"], row["judge"], row["score"][criterion]) for row in rows)
        assert set(all_of_them.questions) == {"score.fluency", "score.depth"}
        assert all_of_them.n_annotations == 48


def test_lists_of_several_labels_are_refused_in_tables_and_are_tags_where_that_is_said(tmp_path):
    rows = [
        {"id": number // 2, "worker": "ab"[number % 2], "label": ["x", "y"][: 1 + number % 2]} for number in range(8)
    ]
    for source in sources(tmp_path, rows):
        with pytest.raises(cp.AnnotationError, match=r"is a list of labels, .*; tags='label' takes"):
            cp.read(source)
        tagged = cp.read(source, tags="label", tell=False)
        assert (list(tagged.questions), tagged.n_annotations) == (["x", "y"], 16)


@pytest.mark.parametrize("labels", [["[[A]]", "[[B]]"], ["[1]", "[2]"], ["[A", "B]"]])
def test_a_label_in_brackets_stays_a_class(tmp_path, labels):
    table = pd.DataFrame({"id": [0, 0, 1, 1], "worker": [*"abab"], "label": labels * 2})
    table.to_csv(tmp_path / "a.csv", index=False)
    assert set(cp.read(tmp_path / "a.csv", tell=False).classes) == set(labels)


def test_labels_by_criterion_and_then_by_judge_are_those_of_the_judges():
    by_criterion = {"fluency": {"x1": 1, "y2": 2}, "accuracy": {"x1": 2, "y2": 1}}
    by_judge = {judge: {name: each[judge] for name, each in by_criterion.items()} for judge in ("x1", "y2")}
    expected = cp.read([{"id": number, "scores": by_judge} for number in range(6)], tell=False)
    found = cp.read([{"id": number, "scores": by_criterion} for number in range(6)], tell=False)
    assert list(found.workers) == ["x1", "y2"]
    assert triples(found) == triples(expected)


@pytest.mark.parametrize("name", ["{judge}_{criterion}", "{criterion}.{judge}"])
def test_columns_of_judges_and_known_criteria_are_questions(name):
    names = {name.format(judge=j, criterion=c): (j, c) for j in ("gpt4", "claude-3") for c in ("fluency", "depth")}
    rows = [{"id": number, **{each: 1 + number * len(each) % 3 for each in names}} for number in range(9)]
    found = cp.read(pd.DataFrame(rows), tell=False)
    assert (list(found.workers), list(found.questions)) == (["gpt4", "claude-3"], ["fluency", "depth"])
    expected = [(row["id"], c, j, row[each]) for row in rows for each, (j, c) in names.items()]
    assert triples(found) == sorted(expected)


@pytest.mark.parametrize(
    "names", [["correctness", "brevity"], ["gpt4_fluency", "gpt4_depth"], ["accuracy/v1/score", "depth/v1/score"]]
)
def test_criteria_are_no_workers_where_half_of_them_are_known(names):
    table = pd.DataFrame({"id": range(8), **{name: [0, 1, 1, 0] * 2 for name in names}})
    with pytest.raises(cp.AnnotationError, match="called as criteria are, and no worker"):
        cp.read(table)


def test_a_mean_beside_workers_is_none_of_them(capsys):
    table = pd.DataFrame({"id": range(8), **{name: [0, 1, 1, 0] * 2 for name in ("ann", "bob", "overall")}})
    assert list(cp.read(table).workers) == ["ann", "bob"]
    assert "left out: 'overall'" in capsys.readouterr().err


def test_a_verdict_that_a_judge_wrote_as_json_is_the_label_and_its_reason_is_none(tmp_path):
    texts = [json.dumps({"score": 1 + number % 3, "reason": f"{number} words"}) for number in range(12)]
    rows = [{"item": n // 2, "judge": "ab"[n % 2], "output": text} for n, text in enumerate(texts)]
    for source in (rows, *sources(tmp_path, rows)):
        found = cp.read(source, tell=False)
        assert triples(found) == sorted((n // 2, "ab"[n % 2], 1 + n % 3) for n in range(12))


def test_lists_of_annotator_labels_are_those_of_workers_without_a_name(tmp_path):
    given = [["yes", "yes", "no"], ["no", "no", "no"], ["yes", "no", "no"]]
    rows = [{"pairID": f"p{n}", "annotator_labels": labels, "gold_label": labels[1]} for n, labels in enumerate(given)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = cp.read(tmp_path / "a.jsonl", tell=False)
    assert (found.named, found.n_annotations) == (False, 9)
    assert [found.classes[k] for k in found.gold] == ["yes", "no", "no"]
