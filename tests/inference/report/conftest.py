"""Fits to report, and their pages."""

import numpy as np
import pandas as pd
import pytest
from made_fits import changed
from report_pages import EVIL, Page, crowd

import crowdppl as cp
from crowdppl import Fit
from crowdppl.inference.report.write import report


@pytest.fixture(scope="session")
def evil_fit():
    """A fit of two groups, with draws around the mode, whose names would break a page that does not escape them."""
    options = {"groups": 2, "membership": "worker"}
    fit = cp.fit("annotator_groups", crowd(), progress=False, **options)
    rng = np.random.default_rng(0)
    gamma = {name: rng.gamma(20 * np.repeat(mode, 20, axis=1) + 0.5) for name, mode in fit.outcome.draws.items()}
    draws = {name: (value / value.sum(-1, keepdims=True)).astype(np.float32) for name, value in gamma.items()}
    outcome = fit.outcome._replace(draws=draws, history=500 * np.exp(-np.arange(300) / 60))
    return changed(fit, method="svi", outcome=outcome)


@pytest.fixture(scope="session")
def evil_path(evil_fit, tmp_path_factory):
    return report(evil_fit, tmp_path_factory.mktemp("report") / "évil page.html", title=f"{EVIL} & more")


@pytest.fixture(scope="session")
def evil_page(evil_path):
    return Page(evil_path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def em_fits():
    """Two fits by EM of three classes, without gold labels."""
    rng = np.random.default_rng(1)
    truth = np.arange(12) % 3
    given = np.where(rng.random((12, 4)) < 0.75, truth[:, None], rng.integers(0, 3, (12, 4)))
    annotations = cp.Annotations.from_matrix(given)
    return {name: cp.fit(name, annotations, progress=False) for name in ("dawid_skene", "one_coin")}


@pytest.fixture
def em_stack(em_fits):
    comparison = pd.DataFrame(
        {
            "elpd": [-20.5, -22.0],
            "se": [3.0, 3.5],
            "p": [2.0, 3.0],
            "difference": [0.0, -1.5],
            "difference_se": [0.0, 1.0],
            "weight": [0.8, 0.2],
            "pseudo_bma": [0.7, 0.3],
            "pareto_k": [0.3, 1.25],
            "n_high_k": pd.array([0, 3], "Int64"),
        },
        index=pd.Index(["one_coin", "dawid_skene"], name="story"),
    )
    weights = pd.Series({"dawid_skene": 0.2, "one_coin": 0.8}, name="weight").rename_axis("story")
    members = {name: fit.fitted for name, fit in em_fits.items()}
    return Fit(members, weights, comparison, {"two_coin": "of two classes, and there are 3"})
