"""The experiments of the Crowd Mixture Model: the data, the divergences, the verdicts by prior, the tables."""

import os

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.papers import cmm_labelme, cmm_matrices, cmm_simulated, setups
from crowdppl.benchmarks.papers.crowd_mixture import above_by_prior, converged_at, each_alone, trained
from crowdppl.benchmarks.papers.experiment import Finding
from crowdppl.benchmarks.papers.setups import three_gaussians, worker_groups
from crowdppl.inference.scores.divergences import confusion_divergences

needs_data = pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
PRIORS = ("default", "one each", "none")


def test_every_annotator_is_a_worker_of_the_crowd_and_nothing_else_changes():
    drawn = three_gaussians(300, 1, n_tasks=90)[0]
    annotations, _, _ = cmm_simulated.crowd("gaussians", 300, 1, n_tasks=90)
    assert annotations.n_workers == 300 > drawn.n_workers
    pd.testing.assert_frame_equal(annotations.to_frame(), drawn.to_frame())


def test_networks_that_are_perturbed_more_annotate_worse():
    annotations, _, _ = cmm_simulated.crowd("perturbed", 60, 0, n_tasks=600)
    right = np.asarray(annotations.label) == np.asarray(annotations.gold)[annotations.task]
    group = worker_groups(60, 0)[np.asarray(annotations.worker)]
    shares = [right[group == g].mean() for g in range(3)]
    assert shares[0] > shares[1] > shares[2] > 1 / 3


def test_each_annotation_is_of_a_worker_of_its_own_for_the_rivals_without_names():
    annotations = three_gaussians(5, 0, n_tasks=12)[0]
    alone = each_alone(annotations)
    assert (alone.n_workers, alone.n_rows) == (60, 60)
    assert alone.n_by_worker().tolist() == [1] * 60
    np.testing.assert_array_equal(alone.votes(), annotations.votes())
    _, labelled = trained("DL-DS", annotations, alone=True, classifier="mlp", epochs=1, seed=0)
    assert labelled.n_workers == 60


def test_convergence_is_counted_from_the_last_epoch_that_moved():
    assert converged_at([-100.0, -90.0, -89.99, -80.0, -79.99, -79.98]) == 4
    assert converged_at([-100.0, -99.99]) == 1


@pytest.mark.slow
def test_a_cell_of_every_setup_gives_its_rows():
    cell = cmm_simulated.run("gaussians", 60, 0, n_tasks=300)
    methods = {(row["method"], row["prior"]) for row in cell}
    assert {("DL-EM", prior) for prior in PRIORS} < methods
    by = {(row["method"], row["prior"]): row["accuracy"] for row in cell}
    assert by["truth known", ""] > 80
    one, several = cmm_simulated.run("restarts", 60, 0, n_tasks=300, restarts=2)
    assert several["log_posterior"] >= one["log_posterior"]
    cost = cmm_simulated.run("cost", 60, 0, n_tasks=300)
    # three groups of nine numbers and their weights; a confusion matrix for each annotator, and the prevalence is none
    assert [row["parameters_of_crowd"] for row in cost] == [3 * 9 + 3, 60 * 9]


def frame_of(method, prior, mean):
    """Five seeds of a method at 100 and 10,000 annotators, with a little noise."""
    rng = np.random.default_rng(len(method) + len(prior))
    return pd.DataFrame(
        [
            {"setup": "gaussians", "annotators": n, "method": method, "prior": prior, "seed": seed}
            | {"accuracy": mean + 0.1 * rng.normal(), "epochs_to_converge": 7, "log_posterior": -1.0}
            for n in (100, 10_000)
            for seed in range(5)
        ]
    )


def test_a_claim_that_holds_under_one_prior_of_the_rival_says_which():
    frame = pd.concat(
        [frame_of("CMM", "one each", 93.0), frame_of("DL-EM", "one each", 65.0), frame_of("DL-EM", "none", 94.0)]
    )
    judge = next(claim.judge for claim in cmm_simulated.CLAIMS if "above DL-EM at 10,000" in claim.says)
    finding = judge(frame)
    assert finding.verdict == "holds if the other's prior is 'one each'"
    assert "one each: 93.0" in finding.ours
    assert "against 65.0" in finding.ours


@pytest.mark.parametrize(("others", "verdict"), [((65.0, 66.0), "holds"), ((95.0, 96.0), "fails")])
def test_a_claim_that_holds_under_all_priors_or_none_says_so(others, verdict):
    frame = pd.concat(
        [frame_of("CMM", "one each", 93.0)]
        + [frame_of("DL-EM", prior, mean) for prior, mean in zip(("default", "none"), others, strict=True)]
    )
    first = {"setup": "gaussians", "method": "CMM", "prior": "one each", "annotators": 10_000}
    second = {"setup": "gaussians", "method": "DL-EM", "annotators": 10_000}
    assert above_by_prior(frame, first, second).verdict == verdict


@pytest.mark.parametrize(
    ("named", "verdict"),
    [((80, 80, 80), "holds"), ((80, 90, 90), "holds if the other's prior is 'default'"), ((90, 90, 90), "fails")],
)
def test_as_good_as_with_names_is_judged_under_each_prior(named, verdict):
    accuracy = {("DL-EM", "individual", prior): mean for prior, mean in zip(PRIORS, named, strict=True)}
    accuracy["CMM", "global", "one each"] = 80
    frame = pd.DataFrame(
        {**cell, "accuracy": accuracy.get((cell["method"], cell["setting"], cell["prior"]), 0) + cell["seed"] % 2}
        for cell in cmm_labelme.EXPERIMENT.cells(4)
    )
    claim = next(claim for claim in cmm_labelme.CLAIMS if "as good as" in claim.says)
    assert claim.judge(frame).verdict == verdict


@pytest.mark.parametrize(("epochs", "verdict"), [(22, "holds"), (50, "fails")])
def test_em_that_still_moves_where_training_ends_has_not_converged(epochs, verdict):
    frame = frame_of("CMM", "one each", 93.0).assign(epochs_to_converge=epochs)
    claim = next(claim for claim in cmm_simulated.CLAIMS if "converges" in claim.says)
    assert claim.judge(frame).verdict == verdict


@pytest.mark.parametrize("module", [cmm_simulated, cmm_labelme])
def test_nothing_run_is_nothing_claimed(module):
    for claim in module.EXPERIMENT.claims:
        assert claim.judge(pd.DataFrame()).verdict.startswith("not tested")
    assert module.EXPERIMENT.tables(pd.DataFrame()) == {}
    assert module.EXPERIMENT.figures(pd.DataFrame()) == {}


def test_the_simulated_tables_and_figures_bear_missing_cells():
    frame = pd.concat([frame_of("CMM", "one each", 93.0), frame_of("softMV", "", 70.0)])
    table = cmm_simulated.EXPERIMENT.tables(frame)["Setup 1: test accuracy in percent"]
    assert table.loc["softMV", 100].startswith(("70.", "69."))
    assert table.loc["CMM, paper", 10_000] == 90.46
    assert set(cmm_simulated.EXPERIMENT.figures(frame)) == {"figure_1"}


@needs_data
@pytest.mark.parametrize(("hard", "i_js", "g_js"), [(False, 0.216, 0.024), (True, 0.225, 0.035)])
def test_the_votes_divergences_are_those_of_the_papers_table_4(hard, i_js, g_js):
    annotations = cp.load_dataset("labelme")
    found = cmm_labelme.divergences(annotations, *cmm_labelme.votes_confusions(annotations, hard=hard))
    assert (round(found["i_js"], 3), round(found["g_js"], 3)) == (i_js, g_js)
    assert found["g_js_weighted"] == found["g_js"]


@needs_data
def test_a_worker_weighs_as_much_as_the_worker_annotated_where_that_is_asked_for():
    annotations = cp.load_dataset("labelme")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    found = cmm_labelme.divergences(annotations, fit.fitted.confusion_draws.mean((0, 1)))
    assert found["g_js_weighted"] == pytest.approx(confusion_divergences(fit)["g_js"], rel=1e-5)
    assert found["g_js_weighted"] != pytest.approx(found["g_js"], rel=0.05)


def test_labelmes_tables_have_the_papers_figures_beside_ours():
    frame = pd.DataFrame(
        [
            {**cell, "accuracy": 80.0 + cell["seed"], "i_js": 0.2, "g_js": 0.1, "g_js_weighted": 0.1}
            for cell in cmm_labelme.EXPERIMENT.cells(2)
        ]
    )
    three, four = cmm_labelme.EXPERIMENT.tables(frame).values()
    assert three.loc[("DL-DS", "each alone", "default", "paper's"), "paper"] == 14.08
    assert np.isnan(three.loc[("DL-DS", "global", "default", "paper's"), "paper"])
    assert three.loc[("CMM", "global", "one each", "paper's"), "test accuracy, %"] == "80.5 ± 0.7"
    assert four.loc[("DL-EM", "one each"), "G-JS, paper"] == 0.259
    assert set(cmm_labelme.EXPERIMENT.figures(frame)) == {"accuracies"}


def test_drawn_matrices_are_what_the_names_of_their_groups_say():
    sets = [confusions for seed in range(20) for confusions in cmm_matrices.drawn(seed)]
    assert len({confusions.tobytes() for confusions in sets}) == 20 * cmm_matrices.DRAWS
    for experts, inexperts, spammers in sets:
        for rows in (experts, inexperts, spammers):
            assert rows.sum(-1) == pytest.approx(1)
        assert (rows >= 0).all()
        assert (np.diagonal(experts) >= 0.5).all()
        assert (np.diagonal(inexperts) <= np.diagonal(experts)).all()
        assert (spammers == spammers[0]).all()
    assert min(np.diagonal(inexperts).min() for _, inexperts, _ in sets) < 0.05  # also those who err on purpose


def test_the_authors_matrices_are_those_of_the_simulated_crowds_within_what_is_said():
    assert np.abs(setups.AUTHORS - setups.GROUP_CONFUSIONS).max() < 0.025
    assert pytest.approx(1, abs=2e-5) == setups.AUTHORS.sum(-1)


@pytest.mark.parametrize(("right", "verdict"), [(15, "holds"), (14, "fails")])
def test_most_sets_are_as_many_as_the_binomial_test_asks(right, verdict):
    """Of 20 sets 15: the probability of as many by chance is 0.021, of 14 it is 0.058."""
    rows = [
        {"matrices": "drawn", "annotators": 10_000, "seed": number // 4, "draw": number % 4}
        | {"method": method, "accuracy": 80 + (method == "CMM") * (1 if number < right else -1)}
        for number in range(20)
        for method in ("CMM", "DL-EM")
    ]
    judge = next(c.judge for c in cmm_matrices.EXPERIMENT.claims if "DL-EM" in c.says and "most" in c.says)
    assert judge(pd.DataFrame(rows)) == Finding(f"{right} of 20 sets", verdict)


def test_the_groups_of_table_4_are_in_the_order_of_their_weights_and_measured_against_identity_and_even_rows():
    annotations = three_gaussians(30, 0, n_tasks=60)[0]
    fit = cp.fit("cmm", annotations, groups=3, max_iterations=20, progress=False)
    found = cmm_labelme.groups(fit)
    assert found["alpha"] == sorted(found["alpha"], reverse=True)
    assert sum(found["alpha"]) == pytest.approx(1, abs=1e-4)
    matrices = np.asarray(fit.parameters["group_confusion"], dtype=float)
    matrices = matrices[np.argsort(-np.asarray(fit.parameters["weights"], dtype=float))]
    entropies = -(matrices * np.log(matrices)).sum(-1).mean(-1) / np.log(3)
    assert found["h"] == pytest.approx(entropies, abs=1e-4)
    middle = (matrices + np.eye(3)) / 2
    to_middle = (matrices * np.log2(matrices / middle)).sum(-1) - np.log2(np.diagonal(middle, axis1=-2, axis2=-1))
    assert found["i_sim"] == pytest.approx(1 - to_middle.mean(-1) / 2, abs=1e-4)


@pytest.mark.parametrize(("second", "verdict"), [(0.3, "holds"), (0.001, "fails")])
def test_cmm_has_several_groups_where_the_second_has_annotations_of_every_seed(second, verdict):
    rows = [{**cmm_labelme.PUBLISHED, "seed": 0, "alpha": [0.7, 0.3]}]
    rows.append({**cmm_labelme.PUBLISHED, "seed": 1, "alpha": [1 - second, second]})
    judge = next(claim.judge for claim in cmm_labelme.CLAIMS if "more than one group" in claim.says)
    assert judge(pd.DataFrame(rows)).verdict == verdict
