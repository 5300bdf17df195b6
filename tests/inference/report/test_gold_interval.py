"""The accuracy on gold tasks is shown with one interval, once before the table of scores of a page."""

import pandas as pd
import pytest
from report_pages import Page
from scipy.stats import beta

import crowdppl as cp


@pytest.fixture(scope="module")
def fit():
    rows = [(t, w, "ab"[(t % 2) ^ (t == 3)]) for t in range(30) for w in range(3)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    gold = {t: "ab"[t % 2] for t in range(15)}
    return cp.fit("majority_vote", cp.Annotations.from_frame(frame, gold=gold), progress=False)


def test_fourteen_right_of_fifteen_have_jeffreys_interval_in_summary_card_and_report(fit, tmp_path):
    low, high = beta(14.5, 1.5).ppf([0.05, 0.95])
    expected = f"accuracy 0.9333 (90% interval {low:.4f}–{high:.4f}) on 15 gold tasks whose labels the fit did not use"
    assert expected in str(fit.summary())
    assert expected in fit.summary()._repr_html_()
    assert expected in fit._repr_html_()
    page = Page(fit.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    (said,) = (e["text"] for e in page.all("div") if e.get("id") == "said")
    assert said.count("interval") == said.count(expected[1:]) == 1
    assert "gold" not in page.all("dl")[0]["text"]
    heads, row, *_ = page.table("Scores on gold tasks")
    assert row[heads.index("accuracy")] == f"0.933 {low:.3f}–{high:.3f}"


def test_gold_labels_that_the_fit_used_measure_nothing_and_have_no_interval(fit):
    used = cp.fit("one_coin", fit.annotations, gold=True, progress=False)
    assert "on 15 gold tasks whose labels the fit used" in used.summary().facts["gold"]
    assert "interval" not in used.summary().facts["gold"]
