"""Several questions a task in what follows from a fit: tables, files, storage, scores and more annotations."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.gold import resolve_inclusion
from crowdppl.data.questions import ids_from_json
from crowdppl.inference.comparison.elpd import annotation_index, tasks_and_workers

QUESTIONS = ["coherence", "fluency"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (12, 2))
    wrong = rng.random((12, 4, 2)) < 0.2
    rows = [
        {"task": f"t{i}", "worker": f"w{j}", "question": name, "label": int(truth[i, q] ^ wrong[i, j, q])}
        for i in range(12)
        for j in range(4)
        for q, name in enumerate(QUESTIONS)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def fit(table) -> cp.Fit:
    return cp.fit("one_coin", cp.Annotations.from_frame(table, question="question"), progress=False)


def test_results_have_a_row_for_task_and_question(fit):
    for frame in (fit.labels, fit.probabilities, fit.tasks, fit.entropies):
        assert frame.index.names == ["task", "question"]
    assert fit.labels.loc["t3"].index.tolist() == QUESTIONS
    assert fit.labels.xs("fluency", level="question").shape[0] == 12


def test_people_read_a_task_and_its_question_with_a_dot_between(table, tmp_path):
    lone = ("t3", "fluency")
    of_unit = (table["task"] == lone[0]) & (table["question"] == lone[1])
    annotations = cp.Annotations.from_frame(table.assign(label=table["label"].where(~of_unit, 1)), question="question")
    fit = cp.fit("one_coin", annotations.with_gold({lone: 0}), gold=True, progress=False)
    assert "the gold label of the task 't3 · fluency' is 0" in str(fit.summary())
    fit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "t3 · fluency" in page
    for text in (page, str(fit.summary()), fit._repr_html_()):
        assert not re.search(r"\((?:'|&#39;|\\u0027)t\d", text)


def test_plots_and_warnings_name_single_annotations_by_task_question_and_worker(fit):
    by_task, by_annotation = fit.probabilities.index, annotation_index(fit.annotations)
    assert tasks_and_workers(by_task)[0] == (("t0", "coherence"),)
    assert tasks_and_workers(by_annotation)[0] == (("t0", "coherence"), "w0")
    assert tasks_and_workers(pd.Index(["t0"], name="task")) == [("t0",)]


def test_with_one_prevalence_the_fit_is_that_of_pairs_as_tasks(table):
    pairs = table.assign(task=table["task"] + "/" + table["question"]).drop(columns="question")
    plain = cp.fit("one_coin", pairs, progress=False).probabilities
    annotations = cp.Annotations.from_frame(table, question="question")
    prior = cp.Prevalence(by_question=False)
    ours = cp.fit("one_coin", annotations, truth_prior=prior, progress=False).probabilities
    rows = [f"{task}/{question}" for task, question in ours.index]
    np.testing.assert_allclose(ours, plain.loc[rows], atol=1e-6)


def test_a_saved_fit_has_its_questions(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.annotations.tasks == fit.annotations.tasks
    assert list(again.annotations.questions) == QUESTIONS
    pd.testing.assert_frame_equal(again.labels, fit.labels)


def test_questions_come_back_from_json_and_positions_beyond_them_do_not(fit):
    saved = {"units": {"tasks": ["a"], "questions": ["x"], "task": [0], "question": [1]}}
    assert ids_from_json(fit.annotations.tasks.to_json()) == fit.annotations.tasks
    with pytest.raises(IndexError):
        ids_from_json(saved)


def test_gold_labels_score_questions(fit):
    label = fit.labels["label"]
    by_table = label.rename("label").reset_index()
    for gold in (by_table, label.to_dict()):
        assert cp.score(fit, gold)["accuracy"] == 1
        assert cp.score(fit.probabilities, gold)["accuracy"] == 1


def test_tasks_to_ask_about_have_a_column_of_questions(fit):
    asked = cp.next_gold(fit, 5)
    assert asked.columns[:2].tolist() == ["task", "question"]
    assert cp.next_annotations(fit, 3).columns[:2].tolist() == ["task", "question"]
    place = pd.MultiIndex.from_frame(asked[["task", "question"]])
    checked = asked.assign(label=fit.labels.loc[place, "label"].to_numpy())
    annotations = fit.annotations
    chance = resolve_inclusion(checked, annotations.tasks, annotations.classes)
    assert chance is not None
    np.testing.assert_allclose(chance[annotations.tasks.index_of(list(place))], asked["inclusion_probability"])


def test_files_of_labels_have_a_column_of_questions(table, fit, tmp_path):
    fit.write_labels(tmp_path / "labels.csv", to="csv")
    fit.write_labels(tmp_path / "labels.parquet", to="hf")
    for frame in (pd.read_csv(tmp_path / "labels.csv"), pd.read_parquet(tmp_path / "labels.parquet")):
        assert frame.columns[:2].tolist() == ["task", "question"]
        assert len(frame) == 24
    fit.write_labels(tmp_path / "labels.json", to="label-studio", question="fluency")
    assert [each["data"]["task"] for each in json.loads((tmp_path / "labels.json").read_text())][:2] == ["t0", "t1"]
    with pytest.raises(cp.AnnotationError, match="several questions: 'coherence', 'fluency'"):
        fit.write_labels(tmp_path / "labels.json", to="label-studio")


def test_labels_join_the_table_by_task_and_question(table, fit):
    joined = fit.join(table.drop(columns="label"))
    for row in joined.iloc[:4].itertuples():
        assert row.label == fit.labels.loc[(row.task, row.question), "label"]
    with pytest.raises(cp.AnnotationError, match="no column 'question'"):
        fit.join(table[["task"]])


def test_more_annotations_update_their_question(table, fit):
    more = fit.update(table[:4].assign(worker="new"), progress=False)
    assert list(more.annotations.questions) == QUESTIONS
    assert more.annotations.n_annotations == len(table) + 4


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_each_question_has_its_own_prevalence(method):
    rng = np.random.default_rng(1)
    truth = rng.random((60, 2)) < [0.1, 0.7]
    said = truth[:, None] ^ (rng.random((60, 5, 2)) < 0.1)
    cells = [(i, j, QUESTIONS[q], int(said[i, j, q])) for i, j, q in np.ndindex(said.shape)]
    annotations = cp.Annotations.from_frame(
        pd.DataFrame(cells, columns=["task", "worker", "question", "label"]), question="question"
    )
    few = {"nuts": {"warmup": 100, "draws": 50}, "svi": {"max_iterations": 500}}.get(method, {})
    fit = cp.fit("one_coin", annotations, method=method, seed=0, progress=False, **few)
    share = fit.parameters["prevalence"]
    assert share.dims == ("question", "truth")
    assert share.coords["question"].to_numpy().tolist() == QUESTIONS
    np.testing.assert_allclose(share.to_numpy()[:, 1], truth.mean(0), atol=0.08)  # of 60 tasks, with few draws


@pytest.mark.filterwarnings("ignore:the annotations alone do not tell workers of different groups")
def test_prevalences_of_questions_alone_are_those_of_separate_fits():
    rng = np.random.default_rng(2)
    said = (rng.random((40, 1, 2)) < [0.2, 0.6]) ^ (rng.random((40, 3, 2)) < 0.2)
    names = {0: ["a", "b", "c"], 1: ["d", "e", "f"]}  # no worker answers both questions
    cells = [(i, names[q][j], QUESTIONS[q], int(said[i, j, q])) for i, j, q in np.ndindex(said.shape)]
    table = pd.DataFrame(cells, columns=["task", "worker", "question", "label"])
    annotations = cp.Annotations.from_frame(table, question="question")
    to_the_end = {"tolerance": 1e-9, "max_iterations": 500, "progress": False}  # by default it ends .001 before
    both = cp.fit("dawid_skene", annotations, **to_the_end).probabilities
    for name in QUESTIONS:
        alone = cp.fit("dawid_skene", annotations.of_question(name), **to_the_end).probabilities
        np.testing.assert_allclose(both.xs(name, level="question"), alone, atol=1e-4)


def by_question_data(seed: int = 3, n_tasks: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of four workers on two questions, and the accuracies (workers, questions) that it was drawn with."""
    rng = np.random.default_rng(seed)
    accuracy = np.array([[0.95, 0.65], [0.65, 0.95], [0.85, 0.85], [0.9, 0.9]])
    truth = rng.integers(0, 2, (n_tasks, 1, 2))
    said = truth ^ (rng.random((n_tasks, 4, 2)) > accuracy)
    cells = [(f"t{i}", f"w{j}", QUESTIONS[q], int(said[i, j, q])) for i, j, q in np.ndindex(said.shape)]
    return pd.DataFrame(cells, columns=["task", "worker", "question", "label"]), accuracy


def test_quality_by_question_is_a_fit_of_each_question_alone():
    table, _ = by_question_data()
    annotations = cp.Annotations.from_frame(table, question="question")
    fit = cp.fit("dawid_skene", annotations, quality="by_question", progress=False)
    assert fit.workers.index.names == ["worker", "question"]
    for name in QUESTIONS:
        alone = cp.fit("dawid_skene", annotations.of_question(name), progress=False)
        np.testing.assert_allclose(fit.probabilities.xs(name, level="question"), alone.probabilities, atol=1e-3)
        for score in ("accuracy", "spammer_score"):  # of the question's own mix of tasks
            ours = fit.workers[score].xs(name, level="question")
            pd.testing.assert_series_equal(ours, alone.workers[score], atol=1e-3, check_dtype=False)


def test_confusion_matrices_by_question_have_a_column_of_questions():
    table, _ = by_question_data(n_tasks=20)
    fit = cp.fit("one_coin", table, quality="by_question", progress=False)
    confusions, extreme = fit.confusions(), fit.extreme_confusions()
    assert list(confusions.columns) == ["worker", "question", "truth", "annotation", "probability", "low", "high"]
    np.testing.assert_allclose(confusions["probability"], fit.confusion_matrices.ravel())
    assert tuple(extreme.loc[0, ["which", "worker", "question"]]) == ("best", *fit.workers["accuracy"].idxmax())
    assert cp.confusion_divergences(fit, confusions)["i_js"] == pytest.approx(0, abs=1e-9)


def test_a_worker_by_question_is_asked_about_tasks_of_the_own_question():
    table, _ = by_question_data(n_tasks=20)
    annotations = cp.Annotations.from_frame(
        table[table["worker"].ne("w0") | table["task"].lt("t15")], question="question"
    )
    fit = cp.fit("dawid_skene", annotations, quality="by_question", progress=False)
    asked, typical = cp.next_annotations(fit, 100, workers="w0"), cp.next_annotations(fit, 100)
    given = annotations.to_frame().query("worker == 'w0'")
    units = set(map(tuple, asked[["task", "question"]].to_numpy().tolist()))
    assert units == set(annotations.tasks) - set(map(tuple, given[["task", "question"]].to_numpy().tolist()))
    assert len(asked) == len(units)
    limited = cp.next_annotations(fit, 100, workers=["w0", "w1"], most_per_worker=4)
    assert limited["worker"].value_counts().to_dict() == {"w0": 4}
    one = cp.next_annotations(fit, 100, workers=[("w0", QUESTIONS[0])])
    assert set(one["question"]) == {QUESTIONS[0]}
    for name in QUESTIONS:
        alone = cp.fit("dawid_skene", annotations.of_question(name), progress=False)
        ours = typical[typical["question"] == name].set_index("task")["expected_gain"]
        theirs = cp.next_annotations(alone, 100).set_index("task")["expected_gain"]
        np.testing.assert_allclose(ours.loc[theirs.index], theirs, atol=1e-3)


def test_a_fit_by_question_is_kept_updated_and_given_pseudonyms(tmp_path):
    table, _ = by_question_data()
    fit = cp.fit("one_coin", table, quality="by_question", progress=False)
    assert not [each for each in fit.findings if each.code == "groups_apart"]
    fit.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(cp.load_fit(tmp_path / "fit").workers, fit.workers)
    more = fit.update(table[:4].assign(worker="new"), progress=False)
    assert more.workers.loc["new"].index.tolist() == QUESTIONS
    hidden = more.annotations.pseudonymised(b"0123456789abcdef")
    assert [pair[1] for pair in hidden.workers] == [pair[1] for pair in more.annotations.workers]
    assert len({pair[0] for pair in hidden.workers}) == 5
    assert not set(hidden.to_frame()["worker"]) & set(table["worker"])
    assert more.annotations.to_frame().columns.tolist() == ["task", "question", "worker", "label"]


def test_groups_of_workers_who_share_no_task_within_a_question_are_told():
    table, _ = by_question_data()
    apart = table[(table["task"] < "t3") == table["worker"].isin(["w0", "w1"])]
    fit = cp.fit("one_coin", apart, quality="by_question", progress=False)
    assert [each.values["groups"] for each in fit.findings if each.code == "groups_apart"] == [3]


def test_worker_features_are_those_of_the_pairs_worker():
    table, _ = by_question_data()
    given = pd.DataFrame({"worker": ["w0", "w1", "w2", "w3"], "age": [1.0, 2.0, 3.0, 4.0]})
    annotations = cp.Annotations.from_frame(table, question="question", worker_features=given).by_question()
    assert annotations.worker_features.ravel().tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_quality_that_cannot_be_is_refused(tmp_path):
    table, _ = by_question_data()
    annotations = cp.Annotations.from_frame(table, question="question")
    with pytest.raises(cp.UnknownNameError, match="by_question"):
        cp.fit("one_coin", annotations, quality="by_questions", progress=False)
    with pytest.raises(cp.AnnotationError, match=r"several questions.*question="):
        cp.fit("one_coin", annotations.of_question("fluency"), quality="by_question", progress=False)
    with pytest.raises(cp.AnnotationError, match=r"pairs \(worker, question\) already"):
        cp.fit("one_coin", annotations.by_question(), quality="by_question", progress=False)
    with pytest.raises(cp.AnnotationError, match="workers are named"):
        annotations.without_workers().by_question()
    table.to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="in memory"):
        cp.fit("one_coin", cp.scan(tmp_path / "table.parquet"), quality="by_question", progress=False)


def test_totals_of_ordered_questions_are_of_their_scores(table):
    scored = table.assign(label=2 * table["label"] + 1 + (table["task"] == "t0"))
    annotations = cp.Annotations.from_frame(scored, question="question", ordered=[1, 2, 3, 4])
    for story in ("one_coin", "majority_vote", "auto"):
        fit = cp.fit(story, annotations, progress=False)
        expected = fit.expected["expected"].groupby(level="task").sum()
        totals = fit.totals
        np.testing.assert_allclose(totals["total"], expected.loc[totals.index], atol=1e-5)
        assert (totals["total_low"] <= totals["total"]).all()
        assert (totals["total"] <= totals["total_high"]).all()
        assert totals["questions"].eq(2).all()
        ends = totals[["total_low", "total_high"]].to_numpy()
        assert (ends == ends.round()).all()  # totals of whole numbers
        assert ends.min() >= 2
        assert ends.max() <= 8


def test_totals_are_of_several_questions_with_an_order(table):
    annotations = cp.Annotations.from_frame(table, question="question")
    alone = cp.fit("majority_vote", annotations.of_question("fluency"))
    with pytest.raises(cp.AnnotationError, match=r"several questions about each task.*question="):
        alone.totals  # noqa: B018
    three = cp.Annotations.from_frame(table.assign(label=["a", "b", "c"] * (len(table) // 3)), question="question")
    with pytest.raises(cp.AnnotationError, match="have no order"):
        cp.fit("majority_vote", three).totals  # noqa: B018


def test_the_first_line_of_the_summary_says_that_scores_are_noise():
    rng = np.random.default_rng(0)
    rows = [(i, j, name, int(rng.integers(1, 4))) for i in range(150) for j in range(5) for name in QUESTIONS]
    noise = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    annotations = cp.Annotations.from_frame(noise, question="question", ordered=True)
    first = str(cp.fit("majority_vote", annotations).summary()).splitlines()[0]
    assert first.startswith("majority_vote")
    assert "use none of these labels without gold labels" in first


def test_workers_are_counted_once_where_each_question_has_its_own_quality(table, tmp_path):
    annotations = cp.Annotations.from_frame(table, question="question")
    fit = cp.fit("one_coin", annotations, quality="by_question", progress=False)
    assert fit.summary().facts["data"].startswith("12 tasks with 2 questions, 4 workers")
    assert cp.error_correlation(fit).n_workers == 4
    assert 0 < cp.error_correlation(fit).n_effective <= 4
    assert annotations.describe()["workers"] == annotations.by_question().describe()["workers"] == 4
    fit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<h1>12 tasks with 2 questions labelled by 4 workers</h1>" in page
    assert "('w" not in page  # a worker on a question, as Python writes it


def test_annotations_by_question_are_taken_back(table):
    features = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0]}, index=["w3", "w1", "w0", "w2"])
    annotations = cp.Annotations.from_frame(table, question="question", worker_features=features)
    for shared in (False, True):
        again = annotations.by_question(shared=shared).across_questions()
        assert again.workers == annotations.workers
        np.testing.assert_array_equal(again.worker, annotations.worker)
        np.testing.assert_array_equal(again.worker_features, annotations.worker_features)
    assert annotations.across_questions() is annotations


def test_annotations_by_question_are_taken_back_once_so_that_what_is_known_of_them_is_found_again(table):
    by_question = cp.Annotations.from_frame(table, question="question").by_question()
    assert by_question.across_questions() is by_question.across_questions()


def test_qualities_of_workers_are_compared_on_the_same_annotations(table):
    annotations = cp.Annotations.from_frame(table, question="question")
    fits = {q: cp.fit("one_coin", annotations, quality=q, progress=False) for q in ("shared", "by_question", "pooled")}
    assert set(cp.compare(fits, folds=2, progress=False).index) == set(fits)
    with pytest.raises(ValueError, match="different quality="):
        cp.stack(fits, weights={"shared": 1.0})


def test_families_are_named_by_worker_where_each_question_has_its_own_quality(table):
    annotations = cp.Annotations.from_frame(table, question="question")
    family = {"w0": "x", "w1": "x", "w2": "y", "w3": "y"}
    by_pair = {(name, question): family[name] for name in family for question in QUESTIONS}
    options = {"quality": "by_question", "shared_error": True, "progress": False}
    named, pairs = (cp.fit("one_coin", annotations, worker_families=each, **options) for each in (family, by_pair))
    pd.testing.assert_frame_equal(named.probabilities, pairs.probabilities)
    with pytest.raises(cp.StoryError, match="w3"):
        cp.fit("one_coin", annotations, worker_families={"w0": "x", "w1": "x", "w2": "y"}, **options)
