"""Groups of workers who agree more than independent ones can: found where they copy, not where they are able."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from picked_findings import codes, findings_of

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, accuracies, copied_functions, copies, drawn, twins
from crowdppl.benchmarks.support.crowd_shapes import crowd as crowd_of
from crowdppl.inference.findings import copies as room
from crowdppl.inference.findings.copies import (
    AgreeingGroup,
    agreeing_groups,
    always_same_groups,
    copying_groups,
    doubtful_groups,
    same_groups,
)
from crowdppl.inference.findings.of_copies import as_one
from crowdppl.inference.fitted.error_families import BY_FAMILY

JUDGES = {"human": 0.9, "claude": 0.87, "llama": 0.73, "gpt-a": 0.7, "gpt-b": 0.7, "gpt-c": 0.7, "gpt-d": 0.7}


def independent(accuracy, seed, n_tasks=200, n_classes=2, per_task=None):
    """Classes given by workers who err independently, ``(N, J)``, and NaN where a worker did not annotate a task."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random((n_tasks, len(accuracy))) < accuracy
    given = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, n_classes, right.shape)) % n_classes)
    if per_task is None:
        return given.astype(float)
    return np.where(rng.random(right.shape).argsort(1).argsort(1) < per_task, given, np.nan)


def crowd(given, names=None):
    frame = pd.DataFrame(given, columns=names).rename_axis("task").reset_index()
    return cp.Annotations.from_frame(frame.melt("task", var_name="worker", value_name="label").dropna())


def copying(seed, n_tasks=200):
    """Three judges of seven who repeat on 95 % of the tasks what a fourth one says."""
    given = independent(list(JUDGES.values()), seed, n_tasks)
    copies = np.random.default_rng(seed + 1000).random((n_tasks, 3)) < 0.95
    given[:, 4:] = np.where(copies, given[:, 3:4], given[:, 4:])
    return crowd(given, list(JUDGES))


def found_in(annotations):
    return [sorted(annotations.workers[j] for j in group.workers) for group in agreeing_groups(annotations)]


def test_of_many_tasks_a_sample_finds_the_same_copies(monkeypatch):
    annotations = copying(0, n_tasks=400)
    (every,) = agreeing_groups(annotations)
    monkeypatch.setattr(room, "PRODUCTS", 200 * len(JUDGES) ** 2)
    (some,) = agreeing_groups(annotations.replace())  # of which nothing is known yet
    assert some.n_tasks == 200 < every.n_tasks
    assert some.workers.tolist() == every.workers.tolist()
    assert some.within == pytest.approx(every.within, abs=0.05)


def test_judges_that_copy_one_are_found_together():
    found = [found_in(copying(seed)) for seed in range(40)]
    assert np.mean([each == [["gpt-a", "gpt-b", "gpt-c", "gpt-d"]] for each in found]) >= 0.9


@pytest.mark.parametrize("share", [0.75, 0.85])
def test_two_groups_that_copy_a_share_are_found_though_no_single_pair_is_sure(share):
    groups = [{0, 1, 2, 3}, {4, 5, 6, 7}]
    found = [found_in(copies(share, per_task=7)(np.random.default_rng(seed))) for seed in range(20)]
    assert np.mean([bool(each) and all(set(group) in groups for group in each) for each in found]) >= 0.9


@pytest.mark.parametrize("shape", HEALTHY)
def test_healthy_crowds_give_no_alarm(shape):
    crowds = (HEALTHY[shape](np.random.default_rng(seed)).of_classes() for seed in range(20))
    found = [(bool(copying_groups(annotations)), bool(doubtful_groups(annotations))) for annotations in crowds]
    assert (np.sum(found, axis=0) <= [1, 2]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"accuracy": [0.95, 0.95, 0.55, 0.55, 0.5, 0.5, 0.6]},  # two experts among spammers
        {"accuracy": [0.97, 0.97, 0.97, 0.6, 0.6, 0.6, 0.6, 0.6]},
        {"accuracy": [0.97, 0.97, 0.75, 0.75, 0.7, 0.7], "n_tasks": 2000},
        {"accuracy": [0.95, 0.95, 0.5, 0.5, 0.4, 0.3], "n_classes": 4},
        {"accuracy": [0.99, 0.99, 0.8], "n_tasks": 1000, "n_classes": 4},  # three workers: nobody else tells
        {"accuracy": [0.995, 0.995, 0.8, 0.8], "n_tasks": 500},
        {"accuracy": np.linspace(0.5, 1, 60), "n_tasks": 1500, "per_task": 8},  # pairs share 26 tasks
    ],
    ids=["pair", "three", "many tasks", "four classes", "three workers", "hardly an error", "few common tasks"],
)
def test_able_workers_among_poor_ones_give_no_alarm(options):
    assert np.mean([bool(copying_groups(crowd(independent(seed=seed, **options)))) for seed in range(40)]) <= 0.05


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_crowds_of_dawid_and_skenes_prior_give_no_alarm(n_classes):
    sizes = {"n_tasks": 1000, "n_workers": 10, "n_classes": n_classes}
    crowds = (cp.simulate("dawid_skene", seed=seed, **sizes)[0] for seed in range(40))
    assert np.mean([bool(copying_groups(annotations)) for annotations in crowds]) <= 0.05


def rated(questions, n_tasks=300):
    """Three raters' scores from 1 to 5; of the question "style" the last one's are those of the second."""
    parts = []
    for seed, question in enumerate(questions):
        given = independent([0.6, 0.6, 0.6], seed, n_tasks, n_classes=5)
        if question == "style":
            given[:, 2] = given[:, 1]
        parts.append(pd.DataFrame(given.astype(int) + 1, columns=["a", "b", "c"]).assign(question=question))
    wide = pd.concat(parts).rename_axis("task").reset_index()
    return wide.melt(["task", "question"], var_name="worker", value_name="label")


def test_workers_who_give_the_same_on_all_tasks_are_copies_though_only_one_other_differs():
    annotations = cp.Annotations.from_frame(rated(["style"]).drop(columns="question"))
    (group,) = same_groups(annotations)
    assert [annotations.workers[j] for j in group.workers] == ["b", "c"]
    assert (group.within, group.n_tasks, group.question) == (1.0, 300, None)


def test_three_judges_who_never_differ_are_copies_though_the_others_agree_by_little_more_than_chance():
    found = [
        [group.workers.tolist() for group in same_groups(twins(np.random.default_rng(seed)))] for seed in range(10)
    ]
    assert np.mean([each == [[0, 1, 2]] for each in found]) >= 0.9


def test_three_experts_among_novices_who_err_now_and_then_are_no_copies():
    crowds = [crowd(independent([0.99] * 3 + [0.62] * 4, seed, 1000)) for seed in range(10)]
    assert sum(len(same_groups(one)) > 0 for one in crowds) <= 1


def test_copies_of_one_question_are_named_with_it():
    annotations = cp.Annotations.from_frame(rated(["facts", "style", "tone"]), question="question")
    with pytest.warns(cp.CrowdWarning, match="'b' and 'c' are .*or copies"):
        fit = cp.fit("one_coin", annotations, progress=False)
    (finding,) = findings_of(fit, "copies")
    assert finding.values["question"] == "style"
    assert finding.values["workers"] == ["b", "c"]
    assert "100% of their annotations of one task of question 'style' (300 tasks)" in finding.sentence


def test_the_copy_of_an_able_worker_is_found_among_others_who_are_nearly_as_able():
    given = independent([0.9, 0.85, 0.8, 0.5], 0, 400)
    annotations = crowd(np.column_stack([given, given[:, 0]]), ["a", "b", "c", "d", "copy of a"])
    assert [[annotations.workers[j] for j in group.workers] for group in same_groups(annotations)] == [
        ["a", "copy of a"]
    ]


def with_a_copy(seed, n_tasks=100):
    """Ten workers who are right in .6 to .85, four on each task, and one who gives what the last of them gives."""
    accuracy = np.random.default_rng(seed).uniform(0.6, 0.85, 10)
    given = independent(accuracy, seed, n_tasks, 3, per_task=4)
    return crowd(np.column_stack([given, given[:, -1]]))


def test_the_copy_of_an_ordinary_worker_is_found_on_some_forty_tasks():
    found = [[group.workers.tolist() for group in same_groups(with_a_copy(seed))] for seed in range(20)]
    assert np.mean([each == [[9, 10]] for each in found]) >= 0.7
    assert all(each in ([[9, 10]], []) for each in found)


@pytest.mark.parametrize(("accuracy", "n_classes"), [((0.9, 0.99), 3), ((0.5, 0.99), 3), ((0.9, 1.0), 2)])
def test_able_workers_who_always_agree_are_no_copies(accuracy, n_classes):
    each = (np.random.default_rng(seed).uniform(*accuracy, 8) for seed in range(20))
    crowds = [crowd(independent(able, seed, 100, n_classes, per_task=4)) for seed, able in enumerate(each)]
    assert sum(len(same_groups(one)) > 0 for one in crowds) <= 1


def with_two_copies(seed, n_workers=3, n_tasks=55):
    """Workers who are right in .55 to .85, and two who give what the last of them gives."""
    given = independent(np.random.default_rng(seed).uniform(0.55, 0.85, n_workers), seed, n_tasks, 3)
    return crowd(np.column_stack([given, given[:, -1], given[:, -1]]))


def test_a_column_that_is_there_twice_is_a_copy_whatever_the_others_are_worth():
    """Beside a guesser, or one who is mostly wrong, independent workers of any worth might have given the same."""
    for seed, more in enumerate([(), (0.5,), (0.2,), (0.5, 0.2)] * 3):
        given = independent((0.9, 0.85, 0.75, *more), seed, n_tasks=240)
        (group,) = same_groups(cp.Annotations.from_matrix(np.column_stack([given, given[:, 0]])))
        assert group.workers.tolist() == [0, given.shape[1]]
    for seed in range(20):
        able = independent((0.98, 0.98, 0.85, 0.75, 0.5), seed, n_tasks=240)
        assert not same_groups(cp.Annotations.from_matrix(able))


def test_workers_who_give_the_same_on_all_tasks_are_named_by_a_note_where_they_are_not_surely_copies():
    crowds = [with_two_copies(seed) for seed in range(20)]
    warned = [[group.workers.tolist() for group in copying_groups(one)] for one in crowds]
    noted = [[group.workers.tolist() for group in always_same_groups(one)] for one in crowds]
    assert all(each in ([], [[2, 3, 4]]) for each in noted)
    assert np.mean([[2, 3, 4] in one + other for one, other in zip(warned, noted, strict=True)]) >= 0.9
    annotations = next(one for one, groups, other in zip(crowds, noted, warned, strict=True) if groups and not other)
    fit = cp.fit("one_coin", annotations, progress=False)
    (finding,) = findings_of(fit, "always_the_same")
    assert finding.severity == "note"
    assert finding.values["groups"] == [{"workers": [2, 3, 4]}]
    assert 0.05 <= finding.values["by_chance"][0] < 0.3
    assert finding not in fit.findings.warnings
    (renamed,) = findings_of(fit.pseudonymised(b"0123456789abcdef"), "always_the_same")
    assert not {2, 3, 4} & set(renamed.values["groups"][0]["workers"])


def test_able_workers_who_often_give_the_same_are_hardly_ever_noted():
    each = (np.random.default_rng(seed).uniform(0.95, 1.0, 8) for seed in range(40))
    crowds = [crowd(independent(able, seed, 100, 2, per_task=4)) for seed, able in enumerate(each)]
    assert sum(len(always_same_groups(one)) > 0 for one in crowds) <= 2


def test_workers_who_give_the_same_among_others_who_do_so_too_are_no_copies():
    given = independent([1.0, 1.0, 0.99, 0.98], 0, 1000, n_classes=5)
    assert same_groups(crowd(given)) == []


def test_equal_annotations_of_nearly_one_class_say_nothing():
    given = np.zeros((500, 3))
    given[:3, :2] = given[:200, 2:] = 1
    assert same_groups(crowd(given)) == []


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
def test_two_raters_of_one_question_of_a_rubric_are_found():
    table = pd.read_csv(Path(os.environ["CROWDPPL_DATA"]) / "rubric_campus" / "annotations.csv")
    annotations = cp.Annotations.from_frame(table, question="question")
    (group,) = same_groups(annotations)
    assert [annotations.workers[j] for j in group.workers] == ["rater1", "rater2"]
    assert (group.question, group.within, group.n_tasks) == ("coherence", 1.0, 1400)


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
@pytest.mark.parametrize("name", ["bluebird", "dog", "rte", "weather_amt", "judges_llmbar"])
def test_no_two_workers_of_open_crowds_give_the_same(name):
    assert same_groups(cp.load_dataset(name).of_classes()) == []


def test_copies_among_labelling_functions_show_in_who_abstains():
    for seed in range(4):
        annotations = copied_functions(np.random.default_rng(seed)).without_gold()
        found = {frozenset(annotations.workers[j] for j in group.workers) for group in agreeing_groups(annotations)}
        assert found == {frozenset({j, j + 8, j + 12}) for j in range(4)}
        apart = annotations.rows(np.asarray([annotations.workers[j] < 8 for j in annotations.worker]))
        assert not copying_groups(apart)
        assert not agreeing_groups(annotations.of_classes())  # of two who give the same class all are the same


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_auto_counts_a_labelling_function_that_came_thrice_once():
    right = []
    for seed in range(2):
        annotations = copied_functions(np.random.default_rng(seed))
        fits = [cp.fit("auto", annotations.without_gold(), copies=rule, progress=False) for rule in ("auto", "keep")]
        right.append([(fit.posterior.argmax(1) == annotations.gold).mean() for fit in fits])
        (finding,) = findings_of(fits[0], "copies")
        assert "give the same label, or abstain together, in" in finding.text
    once, in_full = np.mean(right, 0)
    assert once > in_full + 0.05


@pytest.mark.parametrize(("n_classes", "covers"), [(2, 0.35), (2, 0.08), (4, 0.3)])
def test_labelling_functions_that_err_independently_are_no_copies(n_classes, covers):
    """They agree by the class that they give, some fire on most tasks of it, and of two classes rarely both fire."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, of_class, right = rng.integers(0, n_classes, 800), np.arange(16) % n_classes, rng.uniform(0.7, 0.95, 16)
        fires = rng.random((800, 16)) < 2 * covers * np.where(truth[:, None] == of_class, right, 1 - right)
        matrix = np.where(fires, of_class, -1)
        assert not copying_groups(cp.Annotations.from_matrix(matrix, abstain=[-1], ordered=False))


def test_labelling_functions_of_one_kind_of_text_are_no_copies():
    """Three kinds of text, on whose own words four functions each fire four times as often, and a third elsewhere."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, kind, of_kind = rng.integers(0, 2, 1000), rng.integers(0, 3, 1000), np.arange(12) % 3
        of_class = np.arange(12) // 3 % 2
        often = np.where(kind[:, None] == of_kind, 4.0, 1 / 3) * np.where(truth[:, None] == of_class, 0.85, 0.15)
        matrix = np.where(rng.random((1000, 12)) < 0.15 * often, of_class, -1)
        assert not copying_groups(cp.Annotations.from_matrix(matrix, abstain=[-1], ordered=False))


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
@pytest.mark.parametrize("name", ["ws_sms", "ws_youtube"])
def test_no_labelling_functions_of_open_sets_are_copies(name):
    assert not copying_groups(cp.load_dataset(name))


def test_repeated_annotations_change_nothing():
    annotations = copying(0)
    (once,) = agreeing_groups(annotations)
    frame = annotations.to_frame()
    (twice,) = agreeing_groups(cp.Annotations.from_frame(pd.concat([frame, frame])))
    assert once.within == pytest.approx(twice.within)
    assert once.outside == pytest.approx(twice.outside)


def test_shares_are_those_of_pairs_of_annotations():
    annotations = copying(1)
    (group,) = agreeing_groups(annotations)
    given = annotations.to_frame().pivot(index="task", columns="worker", values="label")
    inside = [annotations.workers[j] for j in group.workers]
    outside = [name for name in given if name not in inside]
    pairs = [(a, b) for i, a in enumerate(inside) for b in inside[i + 1 :]]
    assert group.within == pytest.approx(np.mean([given[a] == given[b] for a, b in pairs]))
    assert group.outside == pytest.approx(np.mean([given[a] == given[b] for a in inside for b in outside]))


def test_a_fit_names_the_copies_and_what_helps():
    annotations = copying(0)
    with pytest.warns(cp.CrowdWarning, match="'gpt-a', 'gpt-b', 'gpt-c' and 'gpt-d' are"):
        fit = cp.fit("one_coin", annotations, progress=False)
    assert codes(fit) == ["copies"]
    (group,) = agreeing_groups(annotations)
    expected = {"workers": [*list(JUDGES)[3:]], "within": group.within, "outside": group.outside, "groups": 1}
    assert fit.findings[0].values == expected | {"others": []}
    assert "worker_families={worker: family, …}; cp.error_correlation(fit, gold)" in fit.findings[0].remedy


def test_a_copy_is_found_among_thousands_of_workers_with_few_tasks_each():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 20_000)
    task, worker = np.repeat(np.arange(20_000), 5), rng.integers(0, 5000, 100_000)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": truth[task] ^ (rng.random(100_000) < 0.15)})
    original = pd.DataFrame({"task": np.arange(300), "worker": 6000, "label": truth[:300] ^ (rng.random(300) < 0.15)})
    both = [original, original.assign(worker=6001)]
    annotations = cp.Annotations.from_frame(pd.concat([frame, *both]).drop_duplicates(["task", "worker"]))
    assert found_in(annotations) == [[6000, 6001]]


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
def test_prompts_of_one_language_model_are_found():
    annotations = cp.load_dataset("judges_llmbar").of_classes()
    found = found_in(annotations)
    assert len(found[0]) == 25
    model = {"ChatGPT-0301": "ChatGPT"}  # a dated version of it
    families = [{name.split(".")[0] for name in group} for group in found]
    assert all(len({model.get(family, family) for family in each}) == 1 for each in families)


@pytest.mark.filterwarnings("error")
def test_rows_that_count_for_nothing_and_workers_of_one_class_change_nothing():
    given = independent(list(JUDGES.values()), 0)
    given[:, 4:] = given[:, 3:4]
    given = np.column_stack([given, np.zeros(len(given))])
    annotations = crowd(given, [*JUDGES, "always the same"])
    count = np.ones(annotations.n_rows, np.float32)
    count[np.asarray(annotations.task) == 7] = 0.0
    weighed = dataclasses.replace(annotations, count=count)
    assert found_in(weighed) == found_in(annotations) == [["gpt-a", "gpt-b", "gpt-c", "gpt-d"]]


def test_a_story_that_knows_the_copies_as_one_family_is_not_told_to_name_families():
    annotations = copying(0)
    families = {name: "gpt" if name.startswith("gpt") else name for name in JUDGES}
    with pytest.warns(cp.CrowdWarning):
        fit = cp.fit("dawid_skene", annotations, shared_error=True, worker_families=families, progress=False)
    (finding,) = findings_of(fit, "copies")
    assert "although the story knows them as one family: compare with copies='one'" in finding.remedy
    assert "worker_families" not in finding.sentence


def test_a_summary_does_not_count_copies_as_independent_without_a_word():
    with pytest.warns(cp.CrowdWarning):
        fit = cp.fit("dawid_skene", copying(0), progress=False)
    assert fit.summary().facts["independence"].endswith("They are fewer if those whom a warning names are copies")
    alone = cp.fit("dawid_skene", crowd(independent([0.8, 0.7, 0.75, 0.8], 0)), progress=False)
    assert "copies" not in alone.summary().facts["independence"]


def test_of_a_group_that_counts_as_one_what_most_of_it_give_is_kept_by_the_member_who_gives_it_most_often():
    rows = [(0, "a", "x"), (0, "b", "x"), (0, "c", "y"), (0, "d", "y"), (1, "a", "y"), (1, "c", "y"), (1, "b", "x"),
            (2, "c", "-"), (2, "b", "-"), (2, "a", "x"), (3, "b", "y"), (3, "a", "x"), (3, "d", "x")]  # fmt: skip
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]), abstain=["-"])
    group = AgreeingGroup(np.array([annotations.workers.index(name) for name in "abc"]), 1.0, 0.5, 4)
    found = as_one(annotations, [group]).to_frame()
    assert sorted(found[["task", "worker", "label"]].itertuples(index=False, name=None)) == [
        (0, "a", "x"), (0, "d", "y"), (1, "a", "y"), (2, "a", "x"), (3, "a", "x"), (3, "d", "x"),
    ]  # fmt: skip


def test_groups_that_copy_and_count_as_one_leave_the_labels_to_the_others():
    annotations = copies(0.75)(np.random.default_rng(1))
    gold, data = np.asarray(annotations.gold), annotations.without_gold()
    with pytest.warns(cp.CrowdWarning, match="copies='one' counts"):
        kept = cp.fit("one_coin", data, progress=False)
    fit = cp.fit("one_coin", data, copies="one", progress=False)
    right = [(np.asarray(one.posterior).argmax(1) == gold).mean() for one in (kept, fit)]
    assert right[1] > right[0] + 0.08
    (finding,) = findings_of(fit, "copies")
    assert finding.severity == "note"
    assert "Each group counts as one worker" in finding.sentence
    assert sorted(sorted(one["workers"]) for one in finding.values["as_one"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (fit.annotations.n_by_worker() > 0).sum() == 8


@pytest.mark.parametrize(
    ("story", "named"), [("one_coin", "one_coin"), ("majority_vote", "dawid_skene"), ("auto", "auto")]
)
def test_the_fit_that_mends_copies_comes_next_wherever_it_is_said(story, named, tmp_path):
    data = copies(0.85)(np.random.default_rng(1)).without_gold()
    options = {"stories": ["one_coin", "mace"], "copies": "keep"} if story == "auto" else {}
    with pytest.warns(cp.CrowdWarning, match="copies='one'"):
        fit = cp.fit(story, data, progress=False, **options)
    step, *others = fit.verdict.next
    assert step.call == f'cp.fit("{named}", fit.annotations, copies="one")'
    assert step.command == f"crowdppl fit FILE --story {named} --set copies=one --out copies-one"
    frame = fit.findings.to_frame().set_index("code")
    assert "copies='one'" in frame.loc["copies", "remedy"]
    if story == "majority_vote":  # whose page is made in a moment
        page = fit.report(tmp_path / "page.html", checks=False).read_text()
        assert f"<code>{step.command}</code>" in page
    reasons = fit.workers["reason"]
    assert reasons.index[reasons.str.contains("may copy")].tolist() == list(range(8))  # of both groups
    mended = eval(step.call, {"cp": cp, "fit": fit})
    assert "as_one" in findings_of(mended, "copies")[0].values
    assert mended.verdict.next == tuple(others)


@pytest.mark.parametrize("share", [0.75, 0.85])
def test_auto_counts_copies_as_one_by_itself_says_so_and_keeps_them_where_asked(share):
    annotations = copies(share)(np.random.default_rng(1))
    data, gold = annotations.without_gold(), np.asarray(annotations.gold)
    with pytest.warns(cp.CrowdWarning, match="Each group counts as one worker, .*copies='keep'"):
        fit = cp.fit("auto", data, progress=False)
    asked = cp.fit("auto", data, copies="one", progress=False)
    with pytest.warns(cp.CrowdWarning, match="copies='one'"):
        kept = cp.fit("auto", data, copies="keep", progress=False)
    np.testing.assert_array_equal(fit.posterior, asked.posterior)
    plain = cp.fit("dawid_skene", data, progress=False)
    plainly, by_families, as_one = ((np.asarray(one.posterior).argmax(1) == gold).mean() for one in (plain, kept, fit))
    assert as_one > plainly + 0.08
    assert abs(by_families - as_one) < 0.03  # copies that are kept are a family whose errors are shared
    assert [findings_of(one, "copies")[0].severity for one in (fit, asked)] == ["warning", "note"]
    assert fit.verdict.trust == "with care"
    step = fit.verdict.next[0]
    assert step.call == 'cp.fit("auto", annotations, copies="keep")'
    assert step.command == "crowdppl fit FILE --story auto --set copies=keep --out copies-keep"


def test_workers_whom_labels_follow_are_noted_where_it_is_too_few_to_tell_whether_they_copy():
    def made(seed):
        rng = np.random.default_rng(seed)
        truth, label, given = drawn(rng, accuracies(rng, 10, 0.62, 0.08), per_task=5, n_classes=2)
        copied = rng.random((len(truth), 2)) < 0.85
        label[:, 1:3] = np.where(copied, label[:, :1], label[:, 1:3])
        return crowd_of(truth, label, given, 2)

    crowds = [made(seed) for seed in range(20)]
    found = [doubtful_groups(annotations) for annotations in crowds]
    assert np.mean([bool(each) for each in found]) >= 0.6
    assert not any(copying_groups(annotations) for annotations in crowds)
    annotations = next(one for one, each in zip(crowds, found, strict=True) if each).without_gold()
    fit = cp.fit("one_coin", annotations, progress=False)
    (finding,) = findings_of(fit, "perhaps_copies")
    assert finding.severity == "note"
    assert finding.values["workers"] == [annotations.workers[j] for j in doubtful_groups(annotations)[0].workers]
    assert fit.verdict.trust == "with care"
    known = cp.fit("one_coin", annotations, gold={0: "0"}, progress=False)
    assert not findings_of(known, "perhaps_copies")
    assert 'cp.fit("one_coin", fit.annotations, copies="one")' in [step.call for step in fit.verdict.next]
    as_one = cp.fit("one_coin", annotations, copies="one", progress=False)
    assert not findings_of(as_one, "perhaps_copies")
    (counted,) = findings_of(as_one, "copies")
    assert counted.values["as_one"][0]["workers"] == finding.values["workers"]
    assert as_one.annotations.n_annotations < annotations.n_annotations


def test_two_of_five_judges_who_are_one_model_decide_no_labels_where_they_count_as_one():
    rng = np.random.default_rng(3)
    truth = rng.choice([1, 2, 3, 4, 5], 300, p=[0.08, 0.17, 0.3, 0.3, 0.15])
    scores = [np.clip(np.round(truth + rng.normal(0, by, 300)), 1, 5).astype(int) for by in (0.7, 0.7, 1.1, 1.1)]
    twin = np.where(rng.random(300) < 0.06, scores[3], scores[2])
    judges = pd.DataFrame({"a": scores[0], "b": scores[1], "c": scores[2], "d": twin, "e": rng.choice([3, 4], 300)})
    annotations = cp.Annotations.from_matrix(judges, gold=dict(enumerate(truth.tolist())))
    assert doubtful_groups(annotations)
    kept, as_one = (
        (cp.fit("dawid_skene", annotations.without_gold(), copies=rule, progress=False).labels["label"] == truth).mean()
        for rule in ("keep", "one")
    )
    assert as_one > kept + 0.1


def families(n_families, size, together, seed, n_tasks=400):
    """Families of workers who nearly always give what the first of them says, who all err together on some tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    misled = rng.random((n_tasks, 1)) < together
    own = np.where(rng.random((n_tasks, n_families)) < 0.83, truth[:, None], 1 - truth[:, None])
    given = np.repeat(np.where(misled, 1 - truth[:, None], own), size, axis=1)
    given = np.where(rng.random(given.shape) < 0.02, 1 - given, given)
    return crowd(given, [f"judge {i // size}, run {i % size}" for i in range(given.shape[1])]), truth


@pytest.mark.parametrize(("n_families", "size"), [(4, 3), (3, 2), (5, 4)])
def test_runs_of_several_judges_who_are_all_of_a_crowd_count_as_one_judge_each(n_families, size):
    """Where nothing else is shared, errors in common are the runs', and no reading of the crowd as a whole."""
    annotations, truth = families(n_families, size, together=0.0, seed=3)
    assert [len(group.workers) for group in copying_groups(annotations)] == n_families * [size]
    with pytest.warns(cp.CrowdWarning, match="Each group counts as one worker"):
        fit = cp.fit("auto", annotations, progress=False)
    (finding,) = findings_of(fit, "copies")
    assert len(finding.values["as_one"]) == n_families
    votes, shared = (
        cp.fit(story, annotations, progress=False, **options)
        for story, options in [("majority_vote", {}), ("dawid_skene", {"shared_error": True})]
    )
    kept = cp.fit("auto", annotations, copies="keep", progress=False)
    by_auto, by_families, by_votes, by_one_impression = (
        (np.asarray(one.posterior).argmax(1) == truth).mean() for one in (fit, kept, votes, shared)
    )
    assert min(by_auto, by_families) > by_votes - 0.03
    assert min(by_auto, by_families) > by_one_impression + 0.03


def test_a_new_worker_beside_families_of_copies_is_alone_or_is_given_one():
    annotations, _ = families(4, 3, together=0.0, seed=3, n_tasks=150)
    fit = cp.fit("auto", annotations, copies="keep", progress=False)
    more = pd.DataFrame({"task": range(20), "worker": "new", "label": 0.0})
    for given, family in (({}, "new alone"), ({"worker_families": {"new": "family 0"}}, "family 0")):
        updated = fit.update(more, progress=False, **given)
        families_of = updated.fits[BY_FAMILY].model.hyperparameters["worker_families"]
        assert families_of.set_index("worker")["family"]["new"] == family
    assert updated.annotations.n_annotations == annotations.n_annotations + 20
    with pytest.raises(ValueError, match="history=… is not given anew"):
        fit.update(more, history={}, worker_families={"new": "new"}, progress=False)


def test_a_judge_who_was_run_thrice_is_weighed_as_those_who_were_run_once():
    annotations, truth = families(4, 3, together=0.0, seed=3)
    panel = cp.judge(annotations)
    right = (np.asarray(annotations.label) == truth[np.asarray(annotations.task)]).reshape(-1)
    share = pd.Series(right).groupby(np.asarray(annotations.worker)).mean()
    share.index = list(annotations.workers)
    judges = panel.judges.loc[share.index]
    assert ((judges["right_low"] <= share) & (share <= judges["right_high"])).all()
    assert not panel.drop["reason"].str.contains("guessing|next to nothing").any()


def test_runs_of_judges_who_score_another_truth_count_in_full():
    """One coin for each judge says nothing of levels, so that what is left cannot be told to be independent."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 150)
    scores = np.clip(np.round(3 + 1.6 * (2 * truth[:, None] - 1) + rng.normal(0, 1.3, (150, 4))), 1, 5).astype(int)
    frame = pd.DataFrame(np.repeat(scores, 3, axis=1)).rename_axis("task").reset_index()
    annotations = cp.Annotations.from_frame(
        frame.melt("task", var_name="worker", value_name="label"), ordered=[1, 2, 3, 4, 5], truth_classes=["no", "yes"]
    )
    assert copying_groups(annotations.of_classes())
    fit = cp.fit("auto", annotations, progress=False)
    assert fit.annotations.n_annotations == annotations.n_annotations
    assert len(cp.judge(annotations).judges) == 12


def test_copies_that_are_most_of_a_crowd_which_errs_together_count_in_full_where_nobody_asked():
    annotations, _ = families(5, 3, together=0.25, seed=3)
    assert copying_groups(annotations)
    with pytest.warns(cp.CrowdWarning, match="copies='one'"):
        fit = cp.fit("one_coin", annotations, copies="auto", progress=False)
    assert findings_of(fit, "copies")[0].values.keys().isdisjoint({"as_one"})
    kept = cp.fit("one_coin", annotations, copies="keep", progress=False)
    np.testing.assert_array_equal(fit.posterior, kept.posterior)
    with pytest.warns(cp.CrowdWarning, match=r"leaves 33% of the annotations.*cp\.next_gold\(fit, 20\)"):
        asked = cp.fit("one_coin", annotations, copies="one", progress=False)
    assert findings_of(asked, "copies")[0].values["left"] == asked.annotations.n_annotations / annotations.n_annotations
    again = findings_of(asked.update(annotations.to_frame()[:1].assign(task=-1), progress=False), "copies")[0]
    assert (again.severity, again.values["unasked"]) == ("warning", False)


def test_an_update_goes_on_warning_of_copies_that_count_as_one_though_nobody_asked():
    frame = copies(0.85)(np.random.default_rng(1)).without_gold().to_frame()
    early = frame["task"] < 200
    with pytest.warns(cp.CrowdWarning, match="Each group counts as one worker"):
        fit = cp.fit("one_coin", frame[early], copies="auto", progress=False)
    more = fit.update(frame[~early], progress=False)
    assert [findings_of(one, "copies")[0].severity for one in (fit, more)] == ["warning", "warning"]


def test_copies_count_as_one_in_what_an_update_adds_too():
    annotations = copies(0.85)(np.random.default_rng(1)).without_gold()
    frame = annotations.to_frame()
    early = frame["task"] < 200
    classes = list(annotations.classes)
    fit = cp.fit("one_coin", cp.Annotations.from_frame(frame[early], classes=classes), copies="one", progress=False)
    more = fit.update(frame[~early], progress=False)
    worker = np.asarray(more.annotations.worker)
    late = np.asarray(more.annotations.task) >= 200
    assert len(np.unique(worker[late])) == len(np.unique(worker[~late])) == 8
    assert "as_one" in findings_of(more, "copies")[0].values


def test_an_average_says_that_copies_count_as_one_and_a_wrong_rule_is_refused():
    annotations = copies(0.85)(np.random.default_rng(0)).without_gold()
    fit = cp.fit("auto", annotations, stories=["one_coin", "dawid_skene"], copies="one", progress=False)
    assert "as_one" in findings_of(fit, "copies")[0].values
    with pytest.raises(cp.UnknownNameError, match=r"copies.*keep.*one"):
        cp.fit("one_coin", annotations, copies="none", progress=False)
    with pytest.raises(ValueError, match="copies='one': majority_vote has no likelihood"):
        cp.fit("majority_vote", annotations, copies="one", progress=False)


def test_copies_have_the_scores_of_the_one_who_gives_their_annotations_and_the_fit_says_who(tmp_path):
    annotations = copying(1)
    fit = cp.fit("one_coin", annotations, copies="one", progress=False)
    workers, copied = fit.workers, ["gpt-a", "gpt-b", "gpt-c", "gpt-d"]
    counted = dict(zip(fit.annotations.workers, fit.annotations.n_by_worker(), strict=True))
    (by,) = (name for name in copied if counted[name])
    scores = workers.columns.drop(["annotations", "group", "review", "reason"])
    for name in copied:
        pd.testing.assert_series_equal(workers.loc[name, scores], workers.loc[by, scores], check_names=False)
    assert (workers.loc[copied, "group"] == ", ".join(copied)).all()
    assert (workers.loc[["human", "claude", "llama"], "group"] == "").all()
    said = fit.summary().facts["copies"]
    assert f"{', '.join(copied)} as {by}, with 200 annotations" in said
    fit.report(tmp_path / "report.html", checks=False)
    assert said in (tmp_path / "report.html").read_text()
    assert "group" not in cp.fit("one_coin", annotations, progress=False).workers


def test_pseudonyms_take_the_place_of_the_names_of_copies_everywhere():
    fit = cp.fit("one_coin", copying(1), copies="one", progress=False).pseudonymised(b"0123456789abcdef")
    (finding,) = findings_of(fit, "copies")
    assert "gpt-a" not in str(finding.to_json())
    assert set(finding.values["as_one"][0]["workers"]) <= set(fit.annotations.workers)


def test_a_fit_with_copies_as_one_is_compared_only_with_fits_of_the_same_annotations():
    annotations = copying(1)
    fits = {name: cp.fit("one_coin", annotations, copies=name, progress=False) for name in ("keep", "one")}
    with pytest.raises(ValueError, match="'one' counts 'gpt-a', 'gpt-b', 'gpt-c', 'gpt-d' as one worker"):
        cp.compare(fits, progress=False)


def able_people_and_models_who_err_together(seed, n_tasks=1000):
    """Three people of .95 and two models of .75, who err together in a quarter of the tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_tasks) < 0.5
    common, shared = rng.random((2, n_tasks, 1)) < [[[0.25]], [[0.25]]]
    people = truth[:, None] ^ (rng.random((n_tasks, 3)) < 0.05)
    models = truth[:, None] ^ np.where(shared, common, rng.random((n_tasks, 2)) < 0.25)
    return crowd(np.hstack([people, models]).astype(float), ["ann", "bob", "cy", "model a", "model b"]), truth


def test_able_people_who_are_most_of_the_crowd_stay_as_they_are_and_copies_who_are_most_count_once():
    found, right = 0, []
    for seed in range(6):
        annotations, truth = able_people_and_models_who_err_together(seed)
        found += ["ann", "bob", "cy"] in found_in(annotations)
        fit = cp.fit("one_coin", annotations, copies="auto", progress=False)
        assert all("as_one" not in one.values for one in findings_of(fit, "copies"))
        right.append((fit.labels["label"].astype(float) == truth[fit.labels.index.astype(int)]).mean())
    assert found >= 3
    assert np.mean(right) > 0.98
    again = annotations.to_frame().query("worker == 'model a'").assign(worker="model a again")  # half of the rows then
    twice = cp.Annotations.from_frame(pd.concat([annotations.to_frame(), again]))
    fit = cp.fit("one_coin", twice, copies="auto", progress=False)
    finding, in_full = findings_of(fit, "copies")
    assert [one["workers"] for one in finding.values["as_one"]] == [["model a", "model a again"]]
    assert (in_full.values["workers"], in_full.severity) == (["ann", "bob", "cy"], "warning")
    assert {"ann", "bob", "cy"} <= set(fit.workers.query("review").index)
    assert [f'copies="{rule}"' in step.call for rule in ("keep", "one") for step in fit.verdict.next[:2]] == [
        *(True, False),
        *(False, True),
    ]
    average = cp.fit("auto", twice, stories=["one_coin", "mace"], progress=False)
    again = fit.update(twice.to_frame()[:1].assign(task=-1), progress=False)
    assert all(len(findings_of(one, "copies")) == 2 for one in (average, again))
    (finding,) = findings_of(cp.fit("one_coin", copying(1), copies="auto", progress=False), "copies")
    assert finding.values["as_one"][0]["workers"] == ["gpt-a", "gpt-b", "gpt-c", "gpt-d"]  # four of seven


def sides_of_one_source(seed, n_tasks=200):
    """Four judges of twelve who give in each order the side that a source of that order gives, and know no item."""
    rng = np.random.default_rng(seed)
    left_is_better = np.stack([truth := rng.random(n_tasks) < 0.5, ~truth], -1)  # by task and order
    source = rng.random((n_tasks, 2)) < 0.7
    frames = []
    for judge in range(12):
        own = left_is_better ^ (rng.random((n_tasks, 2)) < 0.25)
        is_left = np.where(rng.random((n_tasks, 2)) < 0.85, source, own) if judge < 4 else own
        for order in (0, 1):
            sides = [f"{i} {'ab'[order]}" for i in range(n_tasks)], [f"{i} {'ba'[order]}" for i in range(n_tasks)]
            label = np.where(is_left[:, order], "left", "right")
            frames.append(pd.DataFrame({"left": sides[0], "right": sides[1], "worker": f"j{judge}", "label": label}))
    return cp.Annotations.from_comparisons(pd.concat(frames))


def test_copies_of_sides_are_found_in_either_order():
    annotations = sides_of_one_source(1)
    assert found_in(annotations) == [["j0", "j1", "j2", "j3"]]
    assert found_in(annotations.replace(mirrored=None)) == []  # across the orders they agree as independent ones


@pytest.mark.slow
@pytest.mark.long
def test_a_panel_read_as_comparisons_has_labels_no_worse_than_as_labels(real):
    labels = real("judges_llmbar")
    frame = labels.to_frame().astype({"label": str})
    is_swapped = frame["worker"].str.endswith(".ba")
    first, second = frame["task"] + " 1", frame["task"] + " 2"
    better = first.where(frame["label"] == "1", second.where(frame["label"] == "2", frame["label"]))
    frame = frame.assign(left=second.where(is_swapped, first), right=first.where(is_swapped, second), label=better)
    frame["worker"] = frame["worker"].str.replace(r"\.(ab|ba)$", "", regex=True)
    pairs = cp.Annotations.from_comparisons(frame.drop(columns="task"), abstain=[*labels.abstentions])
    as_labels = cp.fit("auto", labels.without_gold(), progress=False).probabilities["2"]
    as_pairs = cp.fit("auto", pairs, progress=False)
    name = pairs.pairs.loc[as_pairs.probabilities.index, "left"].str
    is_second = as_pairs.probabilities["left"].where(name.endswith(" 2"), as_pairs.probabilities["right"])
    is_second.index = name[:-2]
    gold = pd.Series(np.asarray(labels.gold) == 1, list(labels.tasks))
    accuracies = [((p > 0.5) == gold[p.index]).mean() for p in (as_labels, is_second)]
    assert accuracies[1] >= accuracies[0]
    scores = [np.log(np.where(gold[p.index], p, 1 - p)).mean() for p in (as_labels, is_second)]
    assert scores[1] >= scores[0]


def test_workers_of_another_code_who_are_worse_than_chance_are_not_said_to_outvote_the_rest():
    """Six of twenty give each of three classes for the next one; two of them were said to be better, perhaps."""
    rng = np.random.default_rng(2)
    _, label, given = drawn(rng, rng.uniform(0.75, 0.9, 20), n_tasks=500)
    label[:, :6] = (label[:, :6] + 1) % 3
    task, worker = np.nonzero(given)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label[task, worker]})
    fit = cp.fit("dawid_skene", frame, progress=False)
    assert set(fit.workers.index[fit.workers["review"]]) == set(range(6))
    agree = [{fit.annotations.workers[j] for j in group.workers.tolist()} for group in doubtful_groups(fit.annotations)]
    assert any(group <= set(range(6)) for group in agree)
    for finding in findings_of(fit, "perhaps_copies"):
        assert not set(finding.values["workers"]) & set(range(6))
