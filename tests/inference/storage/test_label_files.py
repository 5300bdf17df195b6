"""Labels go back beside a user's own table, and to the tools that import them."""

import json

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.data.errors import AnnotationWarning

STUDIO = [
    {
        "id": task,
        "data": {"image": f"{task}.png"},
        "annotations": [
            {
                "completed_by": worker,
                "result": [{"from_name": "animal", "to_name": "img", "type": "choices", "value": {"choices": [label]}}],
            }
            for worker, label in enumerate(labels)
        ],
    }
    for task, labels in {10: ["cat", "cat", "dog"], 11: ["dog", "dog", "dog"], 12: ["cat", "cat", "cat"]}.items()
]


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "export.json"
    path.write_text(json.dumps(STUDIO))
    return path


@pytest.fixture(scope="module")
def fit(export):
    return cp.fit("majority_vote", cp.read(export, tell=False))


def test_labels_are_joined_to_a_table_in_its_order_and_repeats(fit):
    table = pd.DataFrame({"id": [12, 10, 12], "label": ["mine"] * 3}, index=[7, 8, 9])
    with pytest.raises(AnnotationError, match="column 'label' itself; give a prefix="):
        fit.join(table, "id")
    found = fit.join(table, "id", prefix="crowd_")
    assert found.index.tolist() == [7, 8, 9]
    assert found["crowd_label"].tolist() == ["cat", "cat", "cat"]
    np.testing.assert_allclose(found["crowd_probability"], fit.labels.loc[[12, 10, 12], "probability"])
    assert found["label"].tolist() == ["mine"] * 3


@pytest.mark.parametrize("keys", [["left", "right"], ["prompt", "left", "right"]])
def test_labels_of_comparisons_are_joined_on_the_items_as_each_row_has_them(keys):
    rows = [("p", "x", "y", "ann", "left"), ("q", "y", "z", "ann", "tie"), ("p", "y", "x", "bob", "right")]
    given = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    annotations = cp.Annotations.from_comparisons(given[[*keys, "worker", "label"]])
    fit = cp.fit("majority_vote", annotations, progress=False)
    found = fit.join(given[keys])
    assert found["label"].tolist() == ["left", "tie", "right"]
    assert found["probability"].tolist() == fit.labels["probability"].iloc[[0, 1, 0]].tolist()
    as_exported = given[keys].rename(columns={"prompt": "question_id", "left": "model_a", "right": "model_b"})
    assert fit.join(as_exported)["label"].tolist() == ["left", "tie", "right"]
    with pytest.warns(AnnotationWarning, match="1 rows .*row 1"):
        assert fit.join(given[keys].replace({"right": {"z": "w"}}))["label"].isna().tolist() == [False, True, False]
    for lacking in keys:
        with pytest.raises(AnnotationError, match=r"no column 'prompt'|two columns of items|no column 'task'"):
            fit.join(given[keys].drop(columns=lacking))


def test_labels_of_comparisons_by_several_criteria_are_joined_by_items_and_criterion():
    rows = [("x", "y", "tone", "left"), ("x", "y", "style", "right"), ("z", "y", "tone", "left")]
    given = pd.DataFrame(rows, columns=["left", "right", "question", "label"]).assign(worker="ann")
    fit = cp.fit("majority_vote", cp.Annotations.from_comparisons(given, question="question"), progress=False)
    asked = given.drop(columns=["label", "worker"]).rename(columns={"left": "right", "right": "left"})
    assert fit.join(asked)["label"].tolist() == ["right", "left", "right"]


def test_labels_of_preferences_are_not_joined_with_what_there_is_in_their_place():
    rows = pd.DataFrame({"left": "x", "right": "y", "worker": ["ann", "bob"], "label": ["left", "right"]})
    annotations = cp.Annotations.from_comparisons(rows, preferences=True)
    with pytest.raises(AnnotationError, match=r"preference of its own.*fit\.ranking"):
        cp.fit("majority_vote", annotations, progress=False).join(rows.drop(columns="label"), task="left")


def test_rows_of_unknown_tasks_are_told_and_a_table_of_others_refused(fit):
    with pytest.warns(AnnotationWarning, match="1 rows .*such as 99 in row 1"):
        found = fit.join(pd.DataFrame({"task": [10, 99]}))
    assert found["label"].isna().tolist() == [False, True]
    with pytest.raises(AnnotationError, match=r"none of its values .*such as 10"):
        fit.join(pd.DataFrame({"task": ["10", "11"]}))
    with pytest.raises(AnnotationError, match="no column 'task'"):
        fit.join(pd.DataFrame({"thing": [999]}))


def test_whole_numbers_stay_whole_beside_rows_of_unknown_tasks():
    fit = cp.fit("majority_vote", [("t1", "ann", 3), ("t2", "ann", 4)], progress=False)
    with pytest.warns(AnnotationWarning, match="t3"):
        joined = fit.join(pd.DataFrame({"task": ["t2", "t3"]}))
    assert joined["label"].isna().tolist() == [False, True]
    assert joined["label"].iloc[0] == 4
    assert type(joined["label"].iloc[0]) is int


def test_the_probability_of_a_label_is_written_as_in_the_column_of_its_class(fit, tmp_path):
    lines = [line.split(",") for line in fit.write_labels(tmp_path / "a.csv", to="csv").read_text().splitlines()]
    rows = [dict(zip(lines[0], cells, strict=True)) for cells in lines[1:]]
    assert rows
    assert all(row["probability"] == row[f"p_{row['label']}"] for row in rows)


def test_label_studio_takes_predictions_with_the_tasks_data(fit, export, tmp_path):
    path = fit.write_labels(tmp_path / "out.json", to="label-studio", source=export)
    (first, *_) = content = json.loads(path.read_text())
    assert [task["id"] for task in content] == [10, 11, 12]
    assert first["data"] == {"image": "10.png"}
    (prediction,) = first["predictions"]
    assert prediction["result"][0] == {
        "from_name": "animal",
        "to_name": "img",
        "type": "choices",
        "value": {"choices": ["cat"]},
    }
    assert prediction["score"] == pytest.approx(fit.labels.loc[10, "probability"], abs=1e-6)


def test_argilla_and_hugging_face(fit, tmp_path):
    records = json.loads(fit.write_labels(tmp_path / "a.json", to="argilla", question="q").read_text())
    assert records[1] == {
        "id": "11",
        "q.suggestion": "dog",
        "q.suggestion.score": 1.0,
        "q.suggestion.agent": "crowdppl",
    }
    table = pd.read_parquet(fit.write_labels(tmp_path / "a.parquet", to="hf"))
    assert table["label_name"].tolist() == ["cat", "dog", "cat"]
    np.testing.assert_allclose(np.stack(table["probabilities"]), fit.posterior, rtol=1e-6)


@pytest.mark.parametrize(("names", "written"), [(("a", 1), ["a", "1"]), ((("a", 1), ("a", 2)), ["a · 1", "a · 2"])])
def test_tasks_whose_names_are_of_several_types_are_text_for_hugging_face(tmp_path, names, written):
    fit = cp.fit("majority_vote", {name: {"x": "yes", "y": "no"} for name in names})
    table = pd.read_parquet(fit.write_labels(tmp_path / "a.parquet", to="hf"))
    assert table["task"].tolist() == written


def test_suggestions_for_argilla_are_of_the_question_of_the_export(fit, tmp_path):
    export = tmp_path / "argilla.json"
    answers = {"quality.responses": ["cat"], "quality.responses.users": ["u"]}
    export.write_text(json.dumps([{"id": str(task), "text": "t", **answers} for task in (10, 11, 12)]))
    records = json.loads(fit.write_labels(tmp_path / "a.json", to="argilla", source=export).read_text())
    assert {name.partition(".")[0] for name in records[0]} == {"id", "quality"}
    export.write_text(json.dumps([{"id": "10", **answers, "tone.suggestion": "x"}]))
    with pytest.raises(AnnotationError, match="several questions: 'quality', 'tone'"):
        fit.write_labels(tmp_path / "b.json", to="argilla", source=export)


def test_what_cannot_be_written_says_why_and_leaves_nothing(fit, export, tmp_path):
    with pytest.raises(UnknownNameError, match="label-studio"):
        fit.write_labels(tmp_path / "x.json", to="label_studio")
    for name, tools in {
        "x.csv": "'csv'",
        "x.parquet": "'hf'",
        "x.json": "'label-studio' or to='argilla'",
        "x.jsonl": "'jsonl'",
        "x": " or to=".join(map(repr, ("label-studio", "argilla", "hf", "csv", "jsonl", "inspect"))),
    }.items():
        with pytest.raises(
            cp.AnnotationError, match=f"label-studio, argilla, hf, csv, jsonl, inspect; give to={tools}$"
        ):
            fit.write_labels(tmp_path / name)
        assert not (tmp_path / name).exists()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(AnnotationError, match="is no Label Studio export"):
        fit.write_labels(tmp_path / "x.json", to="label-studio", source=tmp_path / "other.json")
    with pytest.raises(AnnotationError, match="is no Argilla export"):
        fit.write_labels(tmp_path / "x.json", to="argilla", source=export)
    with pytest.raises(AnnotationError, match="takes none"):
        fit.write_labels(tmp_path / "x.parquet", to="hf", source=export)
    assert not (tmp_path / "x.json").exists()


def test_a_question_keeps_its_shape_and_the_options_of_other_tools_are_refused(fit, tmp_path):
    ratings = [
        {
            "data": {"t": str(task)},
            "annotations": [
                {
                    "completed_by": worker,
                    "result": [{"from_name": "stars", "to_name": "t", "type": "rating", "value": {"rating": stars}}],
                }
                for worker, stars in enumerate(given)
            ],
        }
        for task, given in enumerate([[1, 1, 2], [2, 2, 2]])
    ]
    source = tmp_path / "stars.json"
    source.write_text(json.dumps(ratings))
    found = cp.fit("majority_vote", cp.read(source, tell=False))
    content = json.loads(found.write_labels(tmp_path / "o.json", to="label-studio", source=source).read_text())
    results = [task["predictions"][0]["result"][0] for task in content]
    assert [(each["type"], each["from_name"], each["value"]) for each in results] == [
        ("rating", "stars", {"rating": 1}),
        ("rating", "stars", {"rating": 2}),
    ]
    assert [task["data"] for task in content] == [{"t": "0"}, {"t": "1"}]
    with pytest.raises(AnnotationError, match="to='hf' takes none"):
        fit.write_labels(tmp_path / "x.parquet", to="hf", question="q")
    with pytest.raises(AnnotationError, match=r"writes a \.parquet file"):
        fit.write_labels(tmp_path / "x.csv", to="hf")


def test_any_library_s_table_is_joined_and_an_empty_one_stays_empty(fit):
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame({"task": [12, 10]})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert fit.join(table)["label"].tolist() == ["cat", "cat"]
    assert list(fit.join(frame.iloc[:0]).columns) == ["task", "label", "probability", "entropy"]
    with pytest.raises(AnnotationError, match="not a dict"):
        fit.join({"task": [10]})


def test_the_column_of_tasks_is_found_by_its_name_by_what_is_in_it_or_as_the_index(fit):
    tasks = list(fit.annotations.tasks)
    expected = fit.labels["label"].tolist()
    table = pd.DataFrame({"Auftrag": tasks, "Wert": range(100, 100 + len(tasks))})
    assert fit.join(table)["label"].tolist() == expected
    assert fit.join(table.rename(columns={"Auftrag": "item_id"}))["label"].tolist() == expected
    assert fit.join(table.set_index("Auftrag"))["label"].tolist() == expected
    with pytest.raises(AnnotationError, match=r"has no column 'task'; its columns are 'Auftrag', 'again'"):
        fit.join(pd.DataFrame({"Auftrag": tasks, "again": tasks}))
