"""The experiments of CoNAL: the paper's percentages from the data, what is simulated, and verdicts on little data."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.special import softmax

import crowdppl as cp
from crowdppl.benchmarks.papers import conal_real, conal_sweeps, conal_synthetic
from crowdppl.benchmarks.papers.common_confusions import OURS, PUBLISHED, learnt, methods, shares_who_confuse, train

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")


@pytest.mark.data
@pytest.mark.parametrize("name", ["labelme", "music"])
def test_the_four_percentages_of_figure_1_follow_from_the_data(real, name):
    share = shares_who_confuse(real(name)).set_index(["gold", "annotation"])["share"]
    for pair, percent in conal_real.SHARES[name].items():
        assert f"{100 * share[pair]:.1f}" == f"{percent:.1f}"
    rows = conal_real.run(name, conal_real.FIGURE_1, conal_real.DEFAULT, 0)
    assert rows[0]["share"] == share.iloc[0] == share.max()


def test_a_worker_who_errs_twice_counts_once_and_one_who_never_errs_counts_below():
    rows = [(0, "a", "y"), (1, "a", "y"), (0, "b", "x"), (1, "b", "y"), (2, "c", "y"), (2, "d", "z")]
    annotations = cp.Annotations.from_frame(
        pd.DataFrame(rows, columns=["task", "worker", "label"]), gold={0: "x", 1: "x", 2: "y"}
    )
    found = shares_who_confuse(annotations)
    assert found.to_dict("records") == [
        {"gold": "x", "annotation": "y", "share": 0.5},
        {"gold": "y", "annotation": "z", "share": 0.25},
    ]


@pytest.mark.parametrize("reading", conal_synthetic.READINGS)
def test_simulated_annotations_have_the_frequencies_of_their_matrices(reading):
    """8,000 tasks of three annotations: shares of each class within five standard errors of what the switch mixes."""
    crowd = conal_synthetic.simulated(reading, 0, n_train=8000, n_test=10)
    annotations, omega = crowd.annotations, crowd.switch
    gold = np.asarray(annotations.gold)[annotations.task]
    tables = omega[:, None] * crowd.common[gold] + (1 - omega)[:, None] * crowd.individual[annotations.worker, gold]
    counts = np.bincount(annotations.task)
    assert (counts == 3).all()
    assert (annotations.n_workers, annotations.n_classes) == (30, 6)
    for k in range(6):
        of_class = gold == k
        found = np.bincount(np.asarray(annotations.label)[of_class], minlength=6) / of_class.sum()
        np.testing.assert_allclose(found, tables[of_class].mean(0), atol=5 * 0.5 / np.sqrt(of_class.sum()))
    near = np.corrcoef((np.asarray(annotations.label) == gold), tables[np.arange(len(gold)), gold])
    right = conal_synthetic.READINGS[reading]
    assert near[0, 1] > 0  # rows of the switch are in the order of the annotations
    assert np.diagonal(crowd.individual, axis1=1, axis2=2) == pytest.approx(right)


def test_the_start_is_as_far_from_the_common_matrix_as_the_softmax_of_twice_the_identity():
    common = conal_synthetic.simulated("strength is how often right", 0, n_train=10, n_test=1).common
    start = softmax(2 * np.eye(6), axis=-1)
    assert pytest.approx(np.abs(start - common).sum(-1).mean() / 2) == conal_synthetic.START_ERROR


def test_a_cell_measures_and_its_row_is_json():
    row = conal_synthetic.run("strength is how often right", PUBLISHED, 0, epochs=2, n_train=60, n_test=40)
    assert json.loads(json.dumps(row)) == row
    assert 0 <= row["accuracy"] <= 100
    assert np.array(row["common"]).sum(-1) == pytest.approx(1, abs=1e-3)
    assert sum(row["switch"]) == pytest.approx(1, abs=1e-3)
    assert 0.269 < row["switch_mean"] < 0.731


@pytest.mark.slow
def test_both_conals_are_told_apart_by_what_they_learn():
    crowd = conal_synthetic.simulated("strength is how often right", 1, n_train=60, n_test=10)
    settings = {"classifier": "logistic", "max_iterations": 3, "seed": 0, "embedding": 3}
    published, ours = (train(method, crowd.annotations, **settings) for method in (PUBLISHED, OURS))
    assert "common" in published.derived
    assert "common" in ours.parameters
    assert published.fitted.model.hyperparameters["separation"] == pytest.approx(1e-5 * 180)
    assert learnt(published)["common"] != learnt(ours)["common"]


def fake(cells, better):
    """Rows of cells where one method has more accuracy than the others by five points."""
    rng = np.random.default_rng(0)
    matrix = np.eye(3).tolist()
    return pd.DataFrame(
        {
            **cell,
            "accuracy": 80 + 5 * (cell["method"] == better) + rng.normal(0, 0.5),
            "labels": 80.0,
            **(
                {"common": matrix, "individual": matrix, "actual_common": matrix, "actual_individual": matrix}
                | {"switch": [0.05] * 20, "common_error": 0.1 + rng.normal(0, 0.01)}
                | {"switch_correlation": 0.4 + rng.normal(0, 0.01)}
                if cell["method"] in (PUBLISHED, OURS)
                else {}
            ),
        }
        for cell in cells
        if cell["method"] != conal_real.FIGURE_1
    )


@pytest.mark.parametrize(
    ("better", "verdict"), [(PUBLISHED, "holds"), ("AggNet", "fails"), (OURS, "holds if the annotations to a task")]
)
@pytest.mark.parametrize("experiment", [conal_real.EXPERIMENT, conal_synthetic.EXPERIMENT], ids=lambda e: e.name)
def test_claims_follow_the_differences_and_name_the_condition(experiment, better, verdict):
    frame = fake(experiment.cells(4), better)
    findings = {claim.says: claim.judge(frame) for claim in experiment.claims}
    found = next(finding for says, finding in findings.items() if "above AggNet" in says)
    assert found.verdict.startswith(verdict)
    assert "difference" in found.ours
    assert all(isinstance(figure, Figure) for figure in experiment.figures(frame).values())
    assert len(experiment.figures(frame)) >= 3
    plt.close("all")
    tables = experiment.tables(frame)
    first = next(table for title, table in tables.items() if title.startswith("Test accuracy, %"))
    assert set(methods()) <= set(first.index)


@pytest.mark.parametrize("trained", [True, False])
def test_synthetic_claims_are_judged_after_the_long_training_and_say_what_the_short_one_gives(trained):
    """CoNAL is better after one of the two numbers of epochs alone."""
    cells = conal_synthetic.cells(4)
    frame = pd.concat(
        fake([cell for cell in cells if ("epochs" in cell) == long], PUBLISHED if long == trained else "AggNet")
        for long in (True, False)
    )
    claim = next(claim for claim in conal_synthetic.CLAIMS if "above AggNet" in claim.says)
    finding = claim.judge(frame)
    assert finding.verdict == ("holds" if trained else "fails")
    assert finding.ours.endswith(f"After {conal_synthetic.EPOCHS} epochs: {'fails' if trained else 'holds'}")
    assert claim.judge(frame[frame["epochs"].isna()]).verdict.startswith("not tested")
    titles = [title for title in conal_synthetic.tables(frame) if title.startswith("Test accuracy")]
    assert titles == [f"Test accuracy, % after {n} epochs" for n in (conal_synthetic.LONG, conal_synthetic.EPOCHS)]


def test_what_the_last_quarter_added_is_in_a_table_by_method_and_number_of_epochs():
    frame = fake(conal_synthetic.cells(2), None)
    assert "rise" not in frame
    frame = frame.assign(
        rise=[None if m == "DL-MV" else 0.01 if e > 0 else 0.05 for m, e in frame[["method", "epochs"]].values]
    )
    table = next(table for title, table in conal_synthetic.tables(frame).items() if "last quarter" in title)
    assert table.loc[PUBLISHED].tolist() == ["0.050 ± 0.000", "0.010 ± 0.000"]
    assert list(table.columns) == [conal_synthetic.EPOCHS, conal_synthetic.LONG]
    assert "DL-MV" not in table.index


def test_a_weight_that_does_nothing_does_not_help_and_none_is_chosen_by_what_it_brings():
    frame = fake(conal_real.EXPERIMENT.cells(5), None)
    findings = [claim.judge(frame) for claim in conal_real.CLAIMS if "apart helps" in claim.says]
    assert len(findings) == 2
    assert all(finding.ours.count("against none") == 4 for finding in findings)
    published = frame["method"] == PUBLISHED
    claims = [claim for claim in conal_real.CLAIMS if "apart helps" in claim.says]
    frame.loc[published & (frame["separation"] == 0.0), "accuracy"] += 5
    assert {claim.judge(frame).verdict for claim in claims} == {"fails"}
    frame.loc[published & (frame["separation"] == 1.0), "accuracy"] += 10
    assert {claim.judge(frame).verdict for claim in claims} == {"holds if the weight is 1"}


@pytest.mark.parametrize(("share", "verdict"), [(0.610, "reproduced"), (0.612, "fails")])
def test_shares_that_were_looked_for_are_reproduced_and_prove_nothing(share, verdict):
    found = [("labelme", "street", "insidecity", share), ("labelme", "insidecity", "street", 0.441)]
    found += [("music", "metal", "rock", 0.636), ("music", "disco", "pop", 0.386)]
    frame = pd.DataFrame(found, columns=["dataset", "gold", "annotation", "share"]).assign(method=conal_real.FIGURE_1)
    claim = conal_real.CLAIMS[0]
    assert claim.judge(frame).verdict == verdict
    assert claim.rule.startswith("No test")


@pytest.mark.parametrize("experiment", [conal_real.EXPERIMENT, conal_synthetic.EXPERIMENT], ids=lambda e: e.name)
def test_what_has_not_been_run_is_not_judged(experiment):
    empty = pd.DataFrame()
    assert all(claim.judge(empty).verdict.startswith("not tested") for claim in experiment.claims)
    assert experiment.tables(empty) == {}
    assert experiment.figures(empty) == {}
    some = fake([cell for cell in experiment.cells(3) if cell["method"] == "DL-MV"], None)
    assert any(claim.judge(some).verdict.startswith("not tested") for claim in experiment.claims)
    experiment.tables(some)
    experiment.figures(some)


def test_each_method_of_the_paper_has_a_cell_for_each_seed_and_dataset():
    cells = conal_real.EXPERIMENT.cells(2)
    assert len({json.dumps(cell, sort_keys=True) for cell in cells}) == len(cells)
    default = [cell for cell in cells if cell["separation"] == conal_real.DEFAULT and "epochs" not in cell]
    for dataset in ("labelme", "music"):
        of_dataset = [cell["method"] for cell in default if cell["dataset"] == dataset]
        assert all(of_dataset.count(method) == 2 for method in methods())


@pytest.mark.parametrize("dataset", ["labelme", "music"])
def test_on_real_data_one_rival_is_judged_after_the_long_training_and_all_after_the_usual(dataset):
    long, usual = (
        fake([cell for cell in conal_real.cells(3) if ("epochs" in cell) == of_long], better)
        for of_long, better in ((True, PUBLISHED), (False, "AggNet"))
    )
    frame = pd.concat([long, usual], ignore_index=True)
    claims = {claim.says: claim for claim in conal_real.EXPERIMENT.claims}
    finding = claims[f"CoNAL is above AggNet on {dataset}."].judge(frame)
    assert finding.verdict == "holds"
    assert finding.ours.endswith(f"After {conal_real.DATASETS[dataset]['epochs']} epochs: fails")
    assert claims[f"CoNAL is above every other method on {dataset}."].judge(frame).verdict == "fails"
    (longer,) = (table for title, table in conal_real.tables(frame).items() if "epochs on labelme" in title)
    assert set(longer.index) == {PUBLISHED, OURS, *conal_real.ONE_BY_ONE}


def test_a_task_has_as_many_annotations_as_the_sweep_says_and_the_common_matrix_is_as_often_right():
    crowd = conal_synthetic.simulated(conal_sweeps.READING, 0, n_train=50, n_test=5, common_right=0.8, each=5)
    assert (np.bincount(crowd.annotations.task) == 5).all()
    assert np.diagonal(crowd.common) == pytest.approx(0.8)
    assert crowd.common.sum(-1) == pytest.approx(1)


def sweep_of(gains):
    """Five seeds along both sweeps, CoNAL above every rival by what is given for the setting."""
    return pd.DataFrame(
        [
            {**cell, "accuracy": 90 + cell["seed"] + gains.get(cell["common"], 1) * (cell["method"] == PUBLISHED)}
            for cell in conal_sweeps.cells(5)
        ]
    )


def test_a_sweep_holds_only_where_every_setting_does_and_says_which_does_not():
    by_figure = {claim.where: claim for claim in conal_sweeps.EXPERIMENT.claims if "DL-MV" in claim.says}
    holds = sweep_of({})
    holds["accuracy"] += 0.01 * np.arange(len(holds)) % 0.05  # so that differences vary
    assert {claim.judge(holds).verdict for claim in by_figure.values()} == {"holds"}
    worse = sweep_of({0.2: -1})
    assert by_figure["figure 4"].judge(worse).verdict == "fails"
    assert by_figure["figure 4"].judge(worse).ours.count("(fails)") == 1
    assert by_figure["figure 5"].judge(worse).verdict == "holds"
    strengths, numbers, *_ = conal_sweeps.tables(worse).values()
    assert list(strengths.columns) == [0.2, 0.5, 0.8]
    assert list(numbers.columns) == [1, 3, 5]
