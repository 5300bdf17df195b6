"""The page of the papers' claims: it is what the code makes of kept runs, and every rule on it is one of the code."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.papers.claims_page import (
    KINDS,
    claims_of,
    kind_of,
    overview,
    section,
    sections_of,
    write_page,
)
from crowdppl.benchmarks.papers.experiment import NOT_TESTED, TWICE, Claim, Experiment, Finding, above
from crowdppl.benchmarks.papers.experiments import EXPERIMENTS, experiment
from crowdppl.benchmarks.papers.kept_cells import cell_frame, run_cells
from crowdppl.benchmarks.papers.sources import digests, whole

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGE, KEPT = BENCHMARKS / "PAPERS.md", BENCHMARKS / "papers"
SECTIONS = sections_of(PAGE.read_text(encoding="utf-8"))


def coin(name="coin"):
    """Two methods of which the first is better by one; a claim by the usual rule and one by its own."""

    def run(seed, method):
        return {"accuracy": 80 + seed + (method == "first") + 1 / 3}

    def better(frame):
        return above(frame, "accuracy", {"method": "first"}, {"method": "second"})

    def cells(seeds):
        return [{"method": method, "seed": seed} for seed in range(seeds) for method in ("first", "second")]

    claims = (
        Claim("The first is better.", "table 1", "1 | 2", better),
        Claim("There is a figure.", "figure 1", "", lambda frame: Finding("80", "reproduced"), "It is given."),
    )

    def tables(frame):
        return {"Accuracy": pd.DataFrame({"method": ["first"], "ours": [1.0]}).set_index("method")}

    return Experiment(name, "Two methods.", "Nobody 2026", cells, run, tables, lambda frame: {}, claims)


def test_the_page_is_what_the_code_makes_of_the_kept_runs(tmp_path):
    shutil.copy(PAGE, tmp_path)
    write_page(tmp_path / PAGE.name, map(experiment, EXPERIMENTS), KEPT, 5)
    assert (tmp_path / PAGE.name).read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_every_section_has_its_runs_kept():
    assert list(SECTIONS) == list(EXPERIMENTS)
    assert {path.stem for path in KEPT.glob("*.jsonl")} == set(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_claims_of_a_section_and_their_rules_are_those_of_the_code(name):
    on_page = [(row["claim"], row["where"], row["paper"], row["rule"]) for row in claims_of(SECTIONS[name])]
    assert on_page == [(claim.says, claim.where, claim.paper, claim.rule) for claim in experiment(name).claims]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_was_not_run_is_on_the_page_with_its_reason_and_what_it_would_take_and_is_counted(name):
    unrun = experiment(name).not_run
    for each in unrun:
        assert f"| {each.says} | {each.where} | {each.why} | {each.takes} |" in SECTIONS[name]
        assert all((each.says, each.where, each.why, each.takes))
    assert re.search(rf"^\| {name} \|.*\| {len(unrun)} \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("paper", "parts"),
    [
        (
            "difficulty",
            ["Gaussians, test", "Gaussians, figure of the ROC", "Gaussians, figure of the experts'", "images"],
        ),
        ("cmm", ["setup 1", "setup 2", "figure 3", "table 3", "table 3, Global", "table 4"]),
        ("conal", ["figure 1", "figure 4", "figure 5", "table 2", "real data", "synthetic data", "discussion of"]),
        ("dasc", ["table 1", "main table", "figure of imbalance by", "section 4.4", "section 4.5", "sparsity study"]),
        ("lecture", ["lecture", "the lecture's examples"]),
    ],
)
def test_each_part_of_a_paper_that_is_known_has_a_claim_or_is_said_not_to_have_been_run(paper, parts):
    named = [experiment(name) for name in EXPERIMENTS if name.partition("-")[0] == paper]
    where = {each.where for one in named for each in (*one.claims, *one.not_run)}
    for part in parts:
        assert any(place.startswith(part) for place in where), (part, where)


def test_the_last_row_of_the_overview_counts_all_claims_and_all_that_was_not_run():
    table = overview(SECTIONS)
    counts = table.iloc[-1]
    assert counts["experiment"] == "all"
    assert counts["claims"] == sum(len(experiment(name).claims) for name in EXPERIMENTS)
    assert counts["not run"] == sum(len(experiment(name).not_run) for name in EXPERIMENTS)
    assert counts["claims"] == sum(counts[kind] for kind in KINDS)


def test_verdicts_of_a_difference_alone_follow_the_usual_rule():
    """Of claims without a rule of their own, the printed difference and n give the printed verdict."""
    rows = [row for text in SECTIONS.values() for row in claims_of(text) if row["rule"] == TWICE]
    assert len(rows) > 20
    for row in rows:
        if kind_of(row["verdict"]) == NOT_TESTED:
            continue
        difference, _, n = row["ours"].rpartition("difference ")[2].partition(", n = ")
        mean, deviation = map(float, difference.split(" ± "))
        above_zero = mean - 2 * deviation / int(n) ** 0.5
        if abs(above_zero) > 0.1:  # else rounding may hide it
            assert row["verdict"] == ("holds" if above_zero > 0 else "fails"), row


def test_a_section_has_claims_rules_tables_and_what_the_runs_were_made_with(tmp_path):
    run_cells(coin(), tmp_path / "coin.jsonl", 3, show=False)
    write_page(tmp_path / "page.md", [coin()], tmp_path, 3)
    text = (tmp_path / "page.md").read_text()
    assert (
        "| The first is better. | table 1 | 1 \\| 2 | 82.3 ± 1.0 against 81.3 ± 1.0; difference 1.0 ± 0.0, n = 3 |"
        in text
    )
    assert "| There is a figure. | figure 1 |  | 80 | reproduced | 1 |\n" in text
    assert "\n1. It is given.\n" in text
    assert "| first | 1 |" in text
    assert "python -m benchmarks.papers coin --seeds 3" in text
    assert "| coin | 2 | 1 | 0 | 0 | 1 | 0 | 0 |" in text
    first, second = claims_of(sections_of(text)["coin"])
    assert (first["paper"], first["rule"], second["rule"]) == ("1 | 2", TWICE, "It is given.")
    assert kind_of(second["verdict"]) == "reproduced"


def test_the_page_has_the_days_and_versions_of_the_runs_and_which_are_missing(tmp_path):
    store = tmp_path / "coin.jsonl"
    run_cells(coin(), store, 2, show=False)
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    assert lines[0]["rows"] == [{"accuracy": 81.3333}]
    lines[0]["ran"], lines[1]["ran"], lines[2]["ran"] = "2026-01-03", "2026-01-02", "2025-12-31"
    lines[1]["versions"]["jax"] = "0.9.9"
    store.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]))
    text = section(coin(), tmp_path, 2)
    assert "3 of 4 runs (2 of seed 0, 1 of seed 1) · 2025-12-31 to 2026-01-03 · crowdppl" in text
    assert "jax 0.9.9" in text
    assert "; and crowdppl" in text
    store.write_text(
        "".join(json.dumps({name: line[name] for name in ("cell", "rows", "warnings")}) + "\n" for line in lines)
    )
    assert "4 runs · day unknown · crowdppl of an unknown version" in section(coin(), tmp_path, 2)


def test_a_section_says_which_runs_are_of_another_version_and_which_have_no_warnings(tmp_path):
    store = tmp_path / "coin.jsonl"
    run_cells(coin(), store, 2, show=False)
    assert not re.search("this version|without", section(coin(), tmp_path, 2))
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    lines[1]["version"], lines[3]["warnings"] = "0.0.9", None
    store.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = section(coin(), tmp_path, 2)
    this = f"by crowdppl 0.0.9 and not by {cp.__version__}, this version: "
    assert f" · {this}1 of the 4 runs (method second, seed 0); without --stored the command runs them again" in text
    assert " · without their warnings, which were not kept: 1 of the 4 runs" in text
    store.write_text("".join(json.dumps(line | {"version": "0.0.9", "warnings": None}) + "\n" for line in lines))
    text = section(coin(), tmp_path, 2)
    assert f"{this}all 4 runs (method first, seed 0; method second, seed 0; method first, seed 1" in text
    assert "which were not kept: all 4 runs" in text
    assert set(cell_frame(coin(), store, 2)["warnings"]) == {""}


def test_a_section_says_of_which_sources_its_runs_are_and_not_whether_these_have_changed(tmp_path, monkeypatch):
    store = tmp_path / "coin.jsonl"
    run_cells(coin(), store, 2, show=False)
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    digest = whole(digests(coin()))
    before = section(coin(), tmp_path, 2)
    assert f" · sources {digest}\n" in before
    monkeypatch.setattr("crowdppl.benchmarks.papers.sources._of_rooms", lambda: {"models": "another"})
    assert section(coin(), tmp_path, 2) == before
    del lines[0]["sources"]
    lines[1]["sources"]["models"] = "another"
    store.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = section(coin(), tmp_path, 2)
    other = whole(lines[1]["sources"])
    said = "of before digests of sources were kept: 1 of the 4 runs"
    assert f" · sources {other} (1 runs), sources {digest} (2 runs), {said}\n" in text


@pytest.mark.parametrize(("warned", "rate"), [("still learning", 6e-4), ("hardly trained", 3e-4)])
def test_a_section_says_of_which_methods_a_network_was_still_learning_at_the_end(tmp_path, warned, rate):
    store = tmp_path / "coin.jsonl"
    run_cells(coin(), store, 2, show=False)
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    annotations, _ = cp.simulate("dawid_skene", n_tasks=200, n_workers=5, n_classes=4, seed=0)
    features = np.eye(4)[np.asarray(annotations.gold)] + 0.1 * np.random.default_rng(0).normal(size=(200, 4))
    annotations = annotations.replace(features=features.astype(np.float32), gold=None)
    with pytest.warns(cp.ConvergenceWarning, match=warned) as caught:
        cp.fit("dawid_skene", annotations, classifier="mlp", epochs=50, network_rate=rate, progress=False)
    lines[1]["warnings"] = [str(warning.message) for warning in caught]
    store.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = "the classifier was still learning when the epochs ended: second 1 of 2"
    assert f" · {said}\n" in section(coin(), tmp_path, 2)


def test_sections_of_experiments_without_runs_stay_as_they_are(tmp_path):
    run_cells(coin(), tmp_path / "coin.jsonl", 2, show=False)
    page = tmp_path / "page.md"
    page.write_text("# Mine\n\n## no experiment\n\nA table is missing.\n")
    write_page(page, [coin()], tmp_path, 2)
    assert list(sections_of(page.read_text())) == ["coin"]
    before = sections_of(page.read_text())["coin"]
    run_cells(coin("dasc"), tmp_path / "dasc.jsonl", 3, show=False)
    (tmp_path / "coin.jsonl").unlink()
    write_page(page, [coin(), coin("dasc")], tmp_path, 3)
    after = sections_of(page.read_text())
    assert after["coin"] == before
    assert "--seeds 3" in after["dasc"]
    assert "| coin | 2 | 1 |" in page.read_text()
