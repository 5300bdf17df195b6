"""Every experiment runs from a cell to the page, at its smallest: what it needs of datasets is a small crowd."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from paper_crowd import small_crowd

import crowdppl as cp
from crowdppl.benchmarks.papers import (
    cmm_labelme,
    cmm_matrices,
    cmm_simulated,
    conal_real,
    dasc,
    dasc_best,
    dasc_published,
    dasc_sparsity,
)
from crowdppl.benchmarks.papers.claims_page import write_page
from crowdppl.benchmarks.papers.experiments import EXPERIMENTS, experiment
from crowdppl.benchmarks.papers.kept_cells import run_cells, stored

SMALLEST = {"epochs": 1, "n_train": 30, "n_test": 30}
RUN_WITH = {
    "cmm-simulated": {"n_tasks": 30},
    "cmm-matrices": {"n_tasks": 30},
    "conal-sweeps": SMALLEST,
    "conal-synthetic": SMALLEST,
    "conal-real": {"epochs": 1},
}
"""Arguments of an experiment's run that make it small, beside what the fixture sets."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning"),
]


@pytest.fixture(autouse=True)
def _little(monkeypatch):
    """Any dataset is a crowd of 40 tasks, which are the test tasks too; one round of one epoch."""
    crowd = small_crowd()
    test = np.asarray(crowd.features), np.asarray(crowd.gold)
    monkeypatch.setattr(cp, "load_dataset", lambda name: crowd, raising=False)
    monkeypatch.setattr(cp, "load_split", lambda name, split: test, raising=False)
    of_each = dict.fromkeys(("labelme", "music"), 1)
    for module in (dasc, dasc_sparsity):
        monkeypatch.setattr(module, "ROUNDS", of_each)
        monkeypatch.setattr(module, "EPOCHS", of_each)
    monkeypatch.setattr(dasc_sparsity, "ROUNDS_HERE", 1)
    monkeypatch.setattr(dasc_published, "ROUNDS", 1)
    monkeypatch.setattr(dasc_published, "A_ROUND", dict.fromkeys(("labelme", "music"), 20))
    monkeypatch.setattr(dasc_best, "A_ROUND", dict.fromkeys(("labelme", "music"), 20))
    for number in ("ROUNDS", "EPOCHS", "NETWORKS"):
        monkeypatch.setattr(dasc_best, number, 1)
    for option, value in {"epochs": 1, "batch_size": 20}.items():
        monkeypatch.setitem(dasc_published.AS_PUBLISHED, option, value)
    monkeypatch.setitem(cmm_labelme.PROTOCOLS, "paper's", {"epochs": 1, "network_rate": 1e-3})
    monkeypatch.setattr(cmm_matrices, "METHODS", cmm_matrices.METHODS[:1])
    monkeypatch.setattr(cmm_simulated, "methods", lambda *crowd: dict([*_methods(*crowd).items()][:1]))


_methods = cmm_simulated.methods


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_first_cell_is_run_and_kept_and_the_page_is_made_of_it(name, tmp_path):
    """Of CoNAL's the first that trains: before it stands a figure of labelme's own classes."""
    each = experiment(name)
    first = next(cell for cell in each.cells(1) if cell.get("method") != conal_real.FIGURE_1)
    small = replace(each, cells=lambda seeds: [first], run=partial(each.run, **RUN_WITH.get(name, {})), needs=())
    store = tmp_path / f"{name}.jsonl"
    assert run_cells(small, store, 1, show=False) == 1
    assert run_cells(small, store, 1, show=False) == 0
    (record,) = stored(store).values()
    assert record["rows"]
    write_page(tmp_path / "page.md", [small], tmp_path, 1)
    assert f"## {name}\n" in (tmp_path / "page.md").read_text()
