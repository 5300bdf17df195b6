"""Gold labels tell copies from workers who are better than the rest, in findings, reviews and panels."""

import numpy as np
import pandas as pd
import pytest
from report_pages import Page

import crowdppl as cp
from crowdppl.benchmarks.support.panels import N_TASKS, first_three, panel_of
from crowdppl.inference.findings.copies import AgreeingGroup, copying_groups
from crowdppl.inference.findings.copies_on_gold import on_gold


def told(**shape):
    """How often gold labels tell what of the first three judges, of 40 panels."""
    found = []
    for seed in range(40):
        annotations = panel_of(seed, **shape)
        found.append(on_gold(annotations, first_three(annotations)).told)
    return pd.Series(found).value_counts()


def test_gold_labels_tell_copies_who_are_no_better_from_able_workers():
    """One-sided 5 % errors of an interval allow 2 of 40 on average, and 6 in a run of luck once in a hundred."""
    assert told(copied=0.95, ours=0.75, others=0.75).filter(like="copies").sum() >= 38
    assert told(copied=0.95, ours=0.75, others=0.75).get("copies", 0) >= 34
    assert told(copied=0.0, ours=0.95, others=0.7).get("better", 0) >= 34


def test_workers_whom_tasks_mislead_as_others_are_misled_are_no_copies():
    assert told(copied=0.0, ours=0.75, others=0.75, misleading=0.3).filter(like="copies").sum() <= 6


def test_copies_who_are_better_all_the_same_are_both():
    assert told(copied=0.95, ours=0.85, others=0.6, n_gold=150).get("better copies", 0) >= 34


def test_of_several_classes_copies_are_told_by_the_wrong_label_that_they_share():
    """Who err independently give the same wrong label more seldom than they err."""
    shape = {"ours": 0.7, "others": 0.6, "n_gold": 150, "n_classes": 4}
    assert told(copied=0.5, **shape).filter(like="copies").sum() >= 36
    assert told(copied=0.0, **shape, misleading=0.2).filter(like="copies").sum() <= 4


def test_few_gold_labels_and_none_say_nothing():
    group = AgreeingGroup(np.arange(3), 0.97, 0.6, N_TASKS)
    few = panel_of(0, copied=0.95, ours=0.75, others=0.75, n_gold=9)
    assert on_gold(few, group) is None
    assert on_gold(few.without_gold(), group) is None


def test_a_worker_who_annotates_a_task_twice_does_not_agree_with_itself():
    annotations = panel_of(0, copied=0.0, ours=0.8, others=0.8)
    (first,) = np.flatnonzero(np.asarray(annotations.workers.to_index() == "judge 0"))
    rows = np.asarray(annotations.worker) == first
    twice = annotations.joined(annotations.rows(rows)).with_gold(np.asarray(annotations.gold))
    group = AgreeingGroup(np.arange(3), 0.7, 0.7, N_TASKS)
    assert on_gold(twice, group) == on_gold(annotations, group)


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
@pytest.mark.parametrize("use", ["unused", "used"])
@pytest.mark.parametrize("copies", ["keep", "one"])
def test_a_fit_and_its_review_say_what_gold_labels_tell_of_copies(copies, use):
    annotations = panel_of(1, copied=0.97, ours=0.75, others=0.75)
    assert copying_groups(annotations)
    options = {"gold": True} if use == "used" else {}
    fit = cp.fit("one_coin", annotations, copies=copies, progress=False, **options)
    (finding,) = [one for one in fit.findings if one.code == "copies"]
    assert finding.values["by_gold"] == "copies"
    assert "50 gold labels tell that they are copies" in finding.text
    assert "much better" not in finding.sentence
    assert all("copies, or is copied by" in fit.workers.loc[name, "reason"] for name in ("judge 0", "judge 1"))
    open_fit = cp.fit("one_coin", annotations.without_gold(), copies=copies, progress=False)
    (finding,) = [one for one in open_fit.findings if one.code == "copies"]
    assert "by_gold" not in finding.values
    assert "much better than the rest" in finding.sentence


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_copies_that_gold_labels_tell_are_not_to_be_counted_in_full_and_stay_told_in_an_update():
    annotations = panel_of(1, copied=0.97, ours=0.75, others=0.75)
    options = {"stories": ["one_coin", "dawid_skene"], "progress": False}
    assert not any("copies=" in step.call for step in cp.fit("auto", annotations, **options).verdict.next)
    unknown = cp.fit("auto", annotations.without_gold(), **options)
    assert any('copies="keep"' in step.call for step in unknown.verdict.next)
    fit = cp.fit("one_coin", annotations, copies="one", gold=True, progress=False)
    more = cp.Annotations.from_frame(pd.DataFrame({"task": [0, 1], "worker": "new", "label": ["no", "yes"]}))
    known = np.asarray(annotations.gold)
    gold = {task: annotations.classes[known[task]] for task in np.flatnonzero(known >= 0).tolist()}
    (finding,) = [one for one in fit.update(more, gold=gold).findings if one.code == "copies"]
    assert finding.values["by_gold"] == "copies"


def better_panel():
    annotations = panel_of(4, copied=0.0, ours=0.998, others=0.65, n_gold=60)
    assert copying_groups(annotations)
    return annotations


def test_who_gold_labels_show_to_be_better_are_no_copies_in_a_fit():
    fit = cp.fit("one_coin", better_panel(), copies="keep", progress=False)
    codes = {one.code: one for one in fit.findings}
    assert "copies" not in codes
    assert codes["better_than_rest"].severity == "note"
    assert "better than the rest" in codes["better_than_rest"].text
    assert not fit.workers["reason"].str.contains("cop").any()


def test_a_panel_says_whether_those_who_agree_are_copies_or_better(tmp_path):
    panel = cp.judge(panel_of(1, copied=0.97, ours=0.75, others=0.75), story="majority_vote")
    assert panel.copies["by_gold"].tolist() == ["copies"]
    (texts,) = [texts for _, texts, place in panel.alerts if place == "copies"]
    assert "tell that they are copies" in texts[0]
    assert "much better" not in texts[0]
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    (section,) = [one["text"] for one in page.all("section") if one["id"] == "copies"]
    assert texts[0] in section
    assert "annotations alone do not tell" not in section

    panel = cp.judge(better_panel(), story="majority_vote")
    assert panel.copies["by_gold"].tolist() == ["better"]
    assert not [place for _, _, place in panel.alerts if place == "copies"]
    assert not panel.drop["reason"].str.contains("the same as").any()
    page = Page(panel.report(tmp_path / "better.html").read_text(encoding="utf-8"))
    (section,) = [one["text"] for one in page.all("section") if one["id"] == "copies"]
    assert "tell that they are better than the rest" in section
