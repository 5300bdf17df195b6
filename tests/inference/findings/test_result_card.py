"""What notebooks show of a fit: numbers that the fit already has, and nothing that is computed for it."""

import html
import re

import numpy as np
import pytest
from fit_at import fit_at, random_confusions

import crowdppl as cp
from crowdppl.inference.densities import programs

EVIL = "<script>alert(1)</script>"


def text(shown):
    assert not shown.startswith("<pre>")
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", shown).split()))


@pytest.fixture(scope="module")
def annotations():
    rng = np.random.default_rng(0)
    labels = np.array(["a", EVIL])[rng.integers(0, 2, (12, 9))]
    return cp.Annotations.from_matrix(labels, workers=[EVIL, *"bcdefghi"])


@pytest.fixture(scope="module")
def fit(annotations):
    found = fit_at("dawid_skene", annotations, random_confusions(annotations)).fitted
    return cp.Fit.of(found.replace(stored_posterior=found.posterior))


def test_a_fit_is_shown_without_running_anything(fit, monkeypatch):
    monkeypatch.setattr(programs.Compiled, "__call__", lambda *args, **named: 1 / 0)
    shown = text(fit._repr_html_())
    sure = int((fit.posterior.max(-1) >= 0.9).sum())
    assert f"{sure} of 12 labels have probability ≥ 0.9" in shown
    assert "dawid_skene by EM" in shown
    assert "and 3 between these" in shown  # six of nine workers


def test_names_are_escaped_whatever_is_shown(fit, annotations):
    stack = cp.stack({EVIL: fit, "other": fit}, weights={EVIL: 0.4, "other": 0.6})
    votes = cp.fit("majority_vote", annotations, progress=False)
    checks = cp.check(fit, draws=20, discrepancies=["agreement"])
    for shown in (fit, annotations, stack, votes, checks):
        card = shown._repr_html_()
        assert not card.startswith("<pre>")
        assert "<script" not in card
    assert EVIL in text(stack._repr_html_())


def test_the_card_of_a_stack_has_the_weights_the_largest_first(fit):
    shown = text(cp.stack({"light": fit, "heavy": fit}, weights={"light": 0.25, "heavy": 0.75})._repr_html_())
    assert shown.index("heavy 75%") < shown.index("light 25%")


def test_the_card_of_checks_says_what_fails(fit):
    checks = cp.check(fit, draws=20)
    failed = int((checks.table["p_value"] < 0.05).sum())
    said = f"{failed} of {len(checks.table)} fail" if failed else "all pass"
    shown = text(checks._repr_html_())
    assert said in shown
    for row in checks.table.itertuples():
        assert f"{row.Index} {row.p_value:.3f} {row.n_flagged:,} of {row.units:,}" in shown


def test_the_workers_shares_are_those_of_the_fits_table(annotations, fit):
    alone = cp.stack({"one": fit}, weights={"one": 1.0})
    for shown in (fit, alone, cp.fit("majority_vote", annotations, progress=False)):
        best = shown.workers["realised_accuracy"].max()
        assert re.search(rf"realised accuracy .*?{best:.0%}", text(shown._repr_html_()))
