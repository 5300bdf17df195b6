"""Workers who change over time are named, with what they were before and since; harder tasks name nobody."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl
from picked_findings import codes, findings_of, found_of_crowd

import crowdppl as cp
from crowdppl.inference.findings.of_time import date_text, round_start


def crowd(n_tasks=200, n_workers=8, tired=(0,), late=0.45, seed=0, early=0.85):
    """A table of annotations of all tasks by all workers, task by task, and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    task, worker = (index.ravel() for index in np.indices((n_tasks, n_workers)))
    right = np.where(np.isin(worker, tired) & (task >= n_tasks // 2), late, early)
    label = np.where(rng.random(len(task)) < right, truth[task], 1 - truth[task])
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(3 * task + rng.random(len(task)), unit="min")
    names = [f"w{j}" for j in worker]
    return pd.DataFrame({"task": task, "worker": names, "label": label, "at": when}), truth


def found_in(table, **options):
    annotations = cp.Annotations.from_frame(table, **{"when": "at"} | options)
    votes = annotations.votes() + 0.1
    return annotations, found_of_crowd(annotations, votes / votes.sum(1, keepdims=True)).get("changed")


def test_a_worker_who_became_worse_is_named_with_both_shares_and_the_remedy_takes_it_for_two():
    table, truth = crowd()
    annotations = cp.Annotations.from_frame(table, when="at")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    (finding,) = findings_of(fit, "changed")
    assert (finding.severity, finding.values["workers"]) == ("note", ["w0"])
    assert finding.values["annotations"] == [[100, 100]]
    ((early, late),) = finding.values["right"]
    own = table[table["worker"] == "w0"]
    right = (own["label"] == truth).to_numpy()
    assert (early, late) == pytest.approx((right[:100].mean(), right[100:].mean()), abs=0.05)  # the others' labels err
    assert f"'w0' was right in {early:.0%} (" in finding.text
    assert "before 2024-03-01 05:00" in finding.text

    names = {"table": annotations.to_frame(), "annotations": annotations, "pd": pd}
    exec(finding.remedy.split("another name: ")[1].removesuffix("; and fit the table, when='when'"), names)
    split = names["table"]
    assert (split["worker"] == "the same, later").sum() == 100
    two = cp.fit("dawid_skene", cp.Annotations.from_frame(split, when="when"), progress=False)
    assert not findings_of(two, "changed")
    renamed = fit.pseudonymised(b"0123456789abcdef")
    (hidden,) = findings_of(renamed, "changed")
    assert "w0" not in hidden.sentence
    assert hidden.values["workers"] == [renamed.annotations.workers[0]]


def test_terminal_table_of_workers_report_and_python_say_who_changed_in_the_same_words(tmp_path, monkeypatch):
    crowd()[0].to_csv(tmp_path / "a.csv", index=False)
    done = crowdppl("fit", tmp_path / "a.csv", "--when", "at", "--out", tmp_path / "fit")
    assert done.exit_code == 0, done.output
    workers = pd.read_csv(tmp_path / "fit" / "workers.csv", index_col="worker", keep_default_na=False)
    assert workers.index[workers["review"]].tolist() == ["w0"]
    reason = workers.loc["w0", "reason"]
    fit = cp.load_fit(tmp_path / "fit")
    (finding,) = findings_of(fit, "changed")
    ((early, late),) = finding.values["right"]
    assert reason == f"changed: right in {early:.0%} before 2024-03-01 05:00 and in {late:.0%} since"
    assert fit.verdict.trust == "with care"
    assert "'w0' was right in" in fit.verdict.why[0]
    assert finding.remedy in fit.verdict.why[0]
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"in Python: (.*); and crowdppl", " ".join(done.output.split()))[1])
    done_again = crowdppl("fit", "two.csv", "--when", "when", "--out", "two")
    assert done_again.exit_code == 0, done_again.output
    assert "the same, later" in pd.read_csv("two/workers.csv")["worker"].tolist()
    fit.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for said in (" ".join(done.output.split()), str(fit.verdict), page):
        assert f"w0: {reason}" in said
        assert "no check warns" not in said


@pytest.mark.parametrize(
    ("before", "first", "shown"),
    [
        ("2024-03-01 23:00", "2024-03-02 07:12", "2024-03-02"),
        ("2024-03-02 06:30", "2024-03-02 07:12", "2024-03-02 07:00"),
        ("2024-03-02 07:12:10", "2024-03-02 07:12:40.5", "2024-03-02 07:12:40"),
        ("2024-03-02 07:12:40.25", "2024-03-02 07:12:40.5", "2024-03-02 07:12:40.500000"),
    ],
)
def test_the_later_half_begins_at_a_round_date_that_parts_it_from_the_earlier(before, first, shown):
    early, late = (pd.Timestamp(time).timestamp() for time in (before, first))
    for parts in (1, 1_000, 1_000_000):  # of a second
        start = round_start(early * parts, late * parts)
        assert early * parts < start <= late * parts
        assert date_text(start) == shown
    assert round_start(11.0, 12.5) == 12.5


def test_many_who_change_are_a_warning_and_the_rest_is_not_named():
    _, finding = found_in(crowd(n_tasks=300, tired=(0, 1))[0])
    assert finding.severity == "warning"
    assert set(finding.values["workers"]) == {"w0", "w1"}
    assert finding.values["share"] == 0.25


@pytest.mark.parametrize(("early", "late"), [(0.9, 0.55), (0.55, 0.9)])
def test_of_a_crowd_of_which_half_changed_none_of_the_others_is_named(early, late):
    """The median change lies between both halves, and who did not change was far from it."""
    said = 0
    for seed in range(8):
        table, _ = crowd(400, tired=(0, 1, 2, 3), seed=seed, early=0.85)
        rng = np.random.default_rng(seed)
        changers, is_late = table["worker"].isin(["w0", "w1", "w2", "w3"]), table["task"] >= 200
        share = np.where(changers, np.where(is_late, late, early), 0.85)
        truth = rng.integers(0, 2, 400)[table["task"]]
        table["label"] = np.where(rng.random(len(table)) < share, truth, 1 - truth)
        table = table[rng.random(len(table)) < 0.5]
        annotations = cp.Annotations.from_frame(table, when="at")
        fit = cp.fit("one_coin", annotations, progress=False)
        named = [name for finding in findings_of(fit, "changed") for name in finding.values["workers"]]
        assert set(named) <= {"w0", "w1", "w2", "w3"}
        apart = findings_of(fit, "changed_apart")
        said += bool(named or apart)
        assert not (named and apart)
        if apart:
            assert fit.verdict.trust == "with care"
    assert said >= 6


def test_of_crowds_that_do_not_change_or_change_alike_nothing_is_said_of_workers():
    said = 0
    for seed in range(20):
        table, _ = crowd(seed=seed, tired=range(8) if seed % 2 else (), late=0.65)
        fit = cp.fit("one_coin", cp.Annotations.from_frame(table, when="at"), progress=False)
        said += bool({"changed", "changed_apart"} & set(codes(fit)))
    assert said == 0


def test_nobody_changed_where_tasks_become_harder_for_everybody_or_times_are_of_no_order():
    harder, _ = crowd(tired=tuple(range(8)), late=0.6)
    assert found_in(harder)[1] is None
    table, _ = crowd()
    shuffled = table.assign(at=table["at"].sample(frac=1, random_state=0).to_numpy())
    assert found_in(shuffled)[1] is None
    assert found_in(table, when=None)[1] is None


def test_a_class_that_becomes_frequent_changes_nobody_who_knows_the_other_class_less_well():
    rng = np.random.default_rng(0)
    truth = (rng.random(300) < np.repeat([0.2, 0.8], 150)).astype(int)
    task, worker = (index.ravel() for index in np.indices((300, 8)))
    right = np.where((worker == 0) & (truth[task] == 1), 0.5, 0.9)
    label = np.where(rng.random(len(task)) < right, truth[task], 1 - truth[task])
    assert found_in(pd.DataFrame({"task": task, "worker": worker, "label": label, "at": task}))[1] is None


def test_annotations_of_unknown_time_are_left_out_and_too_few_say_nothing():
    table, _ = crowd()
    known = (table["worker"] != "w0") | (table["task"] % 20 == 0)
    assert found_in(table.assign(at=table["at"].where(known)))[1] is None
    two = table[table["worker"].isin(["w0", "w1"])]
    assert found_in(two)[1] is None  # of two workers nobody says which one changed


def agreement_in(table, **options):
    annotations = cp.Annotations.from_frame(table, when="at", **options)
    votes = annotations.votes() + 0.1
    return found_of_crowd(annotations, votes / votes.sum(1, keepdims=True)).get("agreement_changed")


@pytest.mark.parametrize(("early", "late", "word"), [(0.9, 0.65, "harder"), (0.65, 0.9, "easier")])
def test_tasks_that_become_harder_or_easier_for_everybody_are_said_with_the_agreement_of_both_halves(early, late, word):
    table, _ = crowd(tired=tuple(range(8)), late=late, early=early)
    fit = cp.fit("dawid_skene", cp.Annotations.from_frame(table, when="at"), progress=False)
    (finding,) = findings_of(fit, "agreement_changed")
    assert f"tasks became {word}" in finding.text
    given = table.pivot(index="task", columns="worker", values="label").to_numpy()
    pairs = (given[:, :, None] == given[:, None])[:, *np.triu_indices(8, 1)].mean(1)
    assert finding.values["agreement"] == pytest.approx(
        [pairs[:100].mean(), pairs[100:].mean()], abs=0.03
    )  # of those who change like the others
    assert finding.values["since"] == pd.Timestamp("2024-03-01 05:00").timestamp()
    assert fit.verdict.trust == "with care"
    assert finding.text[1:] in fit.verdict.why[0]
    assert not findings_of(fit, "changed")


def test_agreement_that_falls_by_who_annotates_or_by_one_worker_or_not_at_all_is_no_harder_task():
    easy, hard = (crowd(tired=(), early=accuracy)[0] for accuracy in (0.9, 0.65))
    assert agreement_in(easy) is None
    later = hard.assign(at=hard["at"] + pd.Timedelta(days=1))
    questions = pd.concat([easy.assign(question="easy"), later.assign(question="hard")], ignore_index=True)
    assert agreement_in(questions.drop(columns="question").assign(task=np.arange(len(questions)) // 8)) is not None
    assert agreement_in(questions, question="question") is None
    assert agreement_in(crowd(n_tasks=300, tired=(0, 1), late=0.5)[0]) is None
    table, truth = crowd(n_tasks=300, tired=())
    able, poor = table["worker"].isin(["w0", "w1", "w2", "w3"]), np.random.default_rng(1).random(len(table)) < 0.4
    table["label"] = np.where(~able & poor, 1 - truth[table["task"]], table["label"])
    late = np.where(able, 0.2, 0.9)  # the able ones leave
    often = np.where(table["task"] >= 150, late, 1 - late)
    table = table[np.random.default_rng(2).random(len(table)) < often]
    assert agreement_in(table) is None
