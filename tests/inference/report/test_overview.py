"""The verdict and what to act on: said of made findings, and found of made fits."""

from dataclasses import replace

import numpy as np
import pytest
from made_fits import changed
from report_pages import Page

import crowdppl as cp
from crowdppl.inference.findings.gold_share import GoldShare
from crowdppl.inference.findings.review import BELOW_CHANCE
from crowdppl.inference.findings.verdict import Step, Verdict
from crowdppl.inference.fitted.intervals import jeffreys
from crowdppl.inference.report.overview import Overview, alerts, all_clear, overview, trust
from crowdppl.inference.report.page import opening
from crowdppl.inference.report.subject import subject

GOLD = GoldShare(tasks=100, right=0.8, low=0.73, high=0.86, promised=0.95, chance=0.25)
RHAT = cp.Finding("rhat", "draws", "warning", "R̂ = 1.2 for prevalence[class a]: the chains do not agree")
OUTWEIGHED = cp.Finding(
    "outweighed",
    "prior",
    "warning",
    "the prior outweighs the annotations of 12 of 20 workers",
    "Smaller diagonal= weaken it",
)
DOUBTFUL = Verdict(
    trust="with care",
    why=("The chains do not agree.",),
    labels=("88 of 500 labels are doubtful.", "The most doubtful: <t1>."),
    workers=("1 of 20 workers is to be reviewed.", f"<w2>: {BELOW_CHANCE}."),
    next=(
        Step("20 tasks to label", "crowdppl next-gold DIR", "cp.next_gold(fit, 20)"),
        Step("a page", "crowdppl report DIR", "fit.report(path)"),
    ),
)
WORST = Overview(
    DOUBTFUL,
    failed=(("Agreement of pairs of workers", 0.0004), ("Annotations of each class", 0.031)),
    n_checks=4,
    gold=GOLD,
    warnings=cp.Findings([RHAT, OUTWEIGHED]),
)
BEST = Overview(Verdict("yes", (), (), (), ()), n_checks=4, gold=replace(GOLD, promised=0.82))


def test_how_far_to_trust_the_labels_is_by_checks():
    assert trust(WORST) == "The story failed 2 of 4 checks against the annotations."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "The story passed all 4 checks"),
        ({"gold": None}, "There are no gold labels to say how often the labels are right, and the story passed all 4"),
        ({"n_checks": None}, "The story was not checked against the annotations."),
        ({"sampled": False, "n_checks": None}, "Without a likelihood nothing checks the method"),
    ],
)
def test_the_sentence_is_of_what_there_is(changes, said):
    assert said in trust(replace(BEST, **changes))


def test_alerts_come_in_the_order_of_their_weight():
    found = alerts(WORST)
    assert [one.anchor for one in found] == ["convergence", "checks", "prior", "gold"]
    assert [one.title for one in found] == [
        "Warnings of the fit",
        "2 of 4 checks failed",
        "The prior outweighs the annotations",
        "The labels are overconfident",
    ]
    assert all_clear(WORST) == []


@pytest.mark.parametrize("left_out", range(4))
def test_without_a_cause_there_is_no_alert_and_the_others_keep_their_order(left_out):
    without = [
        {"warnings": cp.Findings([OUTWEIGHED])},
        {"failed": ()},
        {"warnings": cp.Findings([RHAT])},
        {"gold": None},
    ]
    every = alerts(WORST)
    assert alerts(replace(WORST, **without[left_out])) == every[:left_out] + every[left_out + 1 :]


def test_alerts_name_what_they_are_about():
    engine, checks, prior, gold = (" ".join(one.texts) for one in alerts(WORST))
    assert engine == "R̂ = 1.2 for prevalence[class a]: the chains do not agree."
    assert "Agreement of pairs of workers (p = 0.0004); Annotations of each class (p = 0.031)" in checks
    assert prior == "The prior outweighs the annotations of 12 of 20 workers. Smaller diagonal= weaken it."
    assert gold.startswith("On 100 gold tasks their mean probability is 15 percentage points above")


def test_a_clear_engine_and_failed_checks_do_not_contradict_each_other():
    (said,) = all_clear(replace(WORST, warnings=cp.Findings([OUTWEIGHED])))
    assert said == ("The engine gave no warnings: nothing points to the computation as the reason why checks failed.")
    assert "which speaks for the computation, and not for the story" in " ".join(all_clear(BEST))
    assert len(all_clear(BEST)) == 3


def test_the_page_begins_with_the_verdict_and_names_are_escaped():
    page = Page(opening(WORST))
    assert not page.all("t1", "w2")
    said = next(e for e in page.all("div") if e.get("id") == "said")["text"]
    lines = [line for heading, of_it in DOUBTFUL.sections.items() for line in (heading, *of_it)]
    places = [said.index(line) for line in [*lines, DOUBTFUL.next[0].call, trust(WORST)]]
    assert places == sorted(places)
    assert "crowdppl report" not in said
    assert "DIR" not in said
    named = next(e for e in Page(opening(WORST, "my fit")).all("div") if e.get("id") == "said")["text"]
    assert "crowdppl next-gold 'my fit'" in named
    assert "DIR" not in named
    assert [e["href"] for e in page.all("a")] == ["#convergence", "#checks", "#prior", "#gold"]


@pytest.fixture(scope="module")
def gold_fit(em_fits):
    """A fit that promises 0.95 of each label, of which 8 of 12 are right."""
    fit = em_fits["dawid_skene"]
    posterior = np.full((12, 3), 0.025, np.float32)
    labels = np.arange(12) % 3
    posterior[np.arange(12), labels] = 0.95
    gold = {task: int(labels[task] if task < 8 else (labels[task] + 1) % 3) for task in range(12)}
    return changed(fit, source=fit.annotations.with_gold(gold), stored_posterior=posterior)


def found_of(fit, checks=None):
    about = subject(fit, None, None, 0)
    return overview(about, checks)


def test_a_page_has_the_views_that_its_fit_has_computed_already(gold_fit):
    assert subject(gold_fit, None, None, 0).source is gold_fit
    judged = subject(gold_fit, None, dict.fromkeys(range(12), 0), 0).source
    assert judged.annotations.gold.tolist() == [0] * 12


def test_overconfidence_is_a_promise_above_the_interval_of_the_share_that_is_right(gold_fit):
    gold = found_of(gold_fit).gold
    low, high = jeffreys(np.array(8.0), np.array(12), 0.9)
    assert (gold.tasks, gold.right, gold.low, gold.high) == (12, 8 / 12, low, high)
    assert gold.promised == pytest.approx(0.95, abs=1e-6)
    assert gold.overconfident == (high < 0.95)
    assert gold.overconfident
    humble = np.asarray(gold_fit.posterior) * 0 + 0.2
    humble[np.arange(12), np.arange(12) % 3] = 0.6
    assert not found_of(changed(gold_fit, stored_posterior=humble)).gold.overconfident


def test_a_promise_that_is_hardly_more_than_is_right_is_no_alert():
    near = GoldShare(tasks=100_000, right=0.979, low=0.978, high=0.98, promised=0.985, chance=0.25)
    assert not near.overconfident
    assert replace(near, promised=0.9991).overconfident


def test_gold_labels_that_fewer_labels_match_than_guesses_would_are_told_before_all_labels(gold_fit):
    annotations = gold_fit.annotations
    labels = np.arange(12) % 3
    against = changed(gold_fit, source=annotations.with_gold({t: int(labels[t] + 1) % 3 for t in range(12)}))
    found = found_of(against)
    assert found.gold.contradicts
    assert found.gold.high < 1 / 3
    titles = [one.title for one in alerts(replace(found, warnings=WORST.warnings))]
    assert titles[:2] == ["Warnings of the fit", "The gold labels contradict the labels"]
    assert "The labels are overconfident" not in titles
    assert not found_of(gold_fit).gold.contradicts


def test_the_page_has_the_warnings_of_the_fit_and_no_notes(gold_fit):
    note = cp.Finding("toy", "labels", "note", "a toy is nice to have")
    found = found_of(changed(gold_fit, findings=(RHAT, note, OUTWEIGHED)))
    assert found.warnings == (RHAT, OUTWEIGHED)


def test_a_baseline_has_sentences_and_no_word_of_an_engine(gold_fit):
    found = found_of(cp.fit("majority_vote", gold_fit.annotations))
    assert not found.sampled
    assert "engine" not in " ".join(all_clear(found))
    assert "ithout a likelihood" in trust(found)
