"""The experiment of difficulty: its data are the paper's, and its verdicts follow from its cells."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from crowdppl.benchmarks.papers import difficulty_specified as paper
from crowdppl.benchmarks.papers.setups import two_gaussians
from crowdppl.benchmarks.papers.written_results import judged


@pytest.fixture(scope="module")
def frame():
    """Cells of two seeds: adaptive ranks best, fixed with the votes as prior worst, nothing of unstructured images."""
    rng, rows = np.random.default_rng(0), []
    ranks = {paper.MV: 0.70, paper.EM: 0.95, paper.ADAPTIVE: 0.97, paper.FIXED: 0.71, paper.OTHER_PRIOR: 0.96}
    for seed in range(3):
        for method, auc in ranks.items():
            rows.append(
                {
                    "data": "gaussians",
                    "method": method,
                    "seed": seed,
                    "accuracy": 90 + 2 * auc + 0.01 * rng.normal(),
                    "auc": auc + 0.001 * rng.normal(),
                    "true_positive_rates": np.linspace(0, 1, paper.GRID).tolist(),
                    "sensitivity": None if method == paper.MV else [0.7] * 5,
                    "specificity": None if method == paper.MV else [0.7] * 5,
                    "coins": np.nan if method == paper.MV else 1 - auc + 0.001 * rng.normal(),
                }
            )
    return pd.DataFrame(rows)


def test_a_claim_of_fixed_is_judged_under_both_of_its_priors(frame):
    found = judged(paper.EXPERIMENT, frame).set_index("claim")["verdict"]
    assert found["Adaptive ranks the tasks better than EM."] == "holds"
    assert found["Fixed ranks the tasks better than EM."] == f"holds if the method is: {paper.OTHER_PRIOR}"
    assert found["Fixed ranks the tasks worse than adaptive."] == "holds"
    assert found["Fixed has a higher test accuracy than adaptive."] == "fails"
    claims = judged(paper.EXPERIMENT, frame)
    untold = claims[claims["where"] == "images, unstructured"]["verdict"]
    assert len(untold) == 3
    assert untold.str.startswith("not tested").all()


def test_tables_and_figures_bear_missing_cells(frame):
    tables = paper.tables(frame)
    gaussians = tables["Two Gaussians: over data sets (4 of each seed)"]
    assert gaussians.loc[paper.FIXED, "test accuracy, paper"] == "94.4 ± 0.13"
    assert (tables["Images, structural annotations"]["test accuracy, %"] == "–").all()
    figures = paper.figures(frame)
    assert set(figures) == {"roc_gaussians", "sensitivity", "specificity"}
    assert all(isinstance(figure, Figure) for figure in figures.values())
    assert paper.figures(frame.iloc[:0]) == {}


def test_unstructured_experts_err_as_often_as_the_paper_says():
    annotations, x, y = paper.images("unstructured", 0)
    assert (annotations.n_workers, x.shape[1:], set(y)) == (5, (8, 8), {0, 1})
    wrong = np.asarray(annotations.label) != np.asarray(annotations.gold)[annotations.task]
    expected = np.mean([1 / (3 + k) for k in range(6)])
    assert wrong.mean() == pytest.approx(expected, abs=5 * 0.4 / np.sqrt(len(wrong)))  # five standard errors


def test_structural_experts_err_more_where_a_linear_rule_is_in_doubt():
    annotations, _, _ = paper.images("structural", 0)
    x, z = np.asarray(annotations.features), np.asarray(annotations.gold)
    margin = np.abs(paper._margin(x, z))[annotations.task]
    right = np.asarray(annotations.label) == z[annotations.task]
    hard = margin < np.quantile(margin, 0.25)
    assert right[hard].mean() < right[~hard].mean() - 0.03


def test_a_cell_of_gaussians_has_what_the_tables_and_figures_need():
    row = paper.run("gaussians", paper.ADAPTIVE, 0)
    assert row["accuracy"] > 85
    assert row["auc"] > 0.95
    assert row["coins"] < 0.1
    assert (len(row["true_positive_rates"]), len(row["sensitivity"])) == (paper.GRID, 5)
    bayes = paper.run("gaussians", paper.BAYES, 0)
    _, x, y = two_gaussians(0)
    assert bayes["accuracy"] == pytest.approx(100 * ((x.sum(1) > 0) == y).mean())


def test_the_cells_are_those_of_all_seeds():
    cells = paper.cells(2)
    assert len(cells) == 2 * (2 * paper.SETS * len(paper.OF_GAUSSIANS) + 2 * len(paper.OF_IMAGES))
    assert {cell["data"] for cell in cells} == {*paper.PAPER, paper.INTERCEPT}


def test_the_regression_of_the_gaussians_has_an_intercept_where_the_data_say_so():
    """Without one the classes are even at the origin, so that its test accuracy is another."""
    with_one, without = (paper.run(data, paper.EM, 0)["accuracy"] for data in (paper.INTERCEPT, "gaussians"))
    assert with_one < without - 0.5
