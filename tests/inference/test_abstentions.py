"""Everything after a fit knows annotations that are no class."""

import warnings

import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from abstaining import ABSTAIN, with_abstentions
from command_line import crowdppl

import crowdppl as cp
from crowdppl.data import UnknownNameError
from crowdppl.data.gold import right_shares
from crowdppl.inference.checks.discrepancies import DISCREPANCIES
from crowdppl.inference.plots.confusion_matrices import plot_confusions

RATE = np.array([[[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]]] * 3 + [[[0.2, 0.4, 0.4], [0.5, 0.1, 0.4]]] * 2)
TABLE = np.broadcast_to([[0.9, 0.1], [0.2, 0.8]], (5, 2, 2))


@pytest.fixture(scope="module")
def crowd():
    parameters = {"prevalence": [0.4, 0.6], "confusion": TABLE, "abstention": RATE}
    return cp.simulate("dawid_skene", n_tasks=60, n_workers=5, abstain=ABSTAIN, parameters=parameters, seed=1)[0]


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cp.fit(*arguments, progress=False, **options)


@pytest.fixture(scope="module")
def em(crowd):
    return quietly("dawid_skene", crowd)


@pytest.fixture(scope="module")
def svi(crowd):
    return quietly("dawid_skene", crowd, method="svi", max_iterations=300, draws=20)


def test_confusions_have_a_column_for_each_abstention(em):
    table = em.confusions()
    assert table["annotation"].unique().tolist() == [0, 1, *ABSTAIN]
    assert table["truth"].unique().tolist() == [0, 1]
    sums = table.groupby(["worker", "truth"])["probability"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_workers_are_right_among_the_annotations_that_are_classes(em):
    table = em.fitted.confusion_draws[0, 0]
    shares = em.probabilities.mean().to_numpy()
    given = np.einsum("jkl,k->j", table[..., :2], shares)
    right = np.einsum("jkk,k->j", table[..., :2], shares)
    np.testing.assert_allclose(em.workers["accuracy"], right / given, rtol=1e-5)
    np.testing.assert_allclose(em.workers["abstention_rate"], 1 - given, rtol=1e-4)
    np.testing.assert_allclose(em.workers["sensitivity"], table[:, 1, 1] / table[:, 1, :2].sum(-1), rtol=1e-5)


def test_realised_and_gold_accuracy_leave_abstentions_out(crowd, svi):
    scores = svi.worker_scores(misled=0.0)
    given = crowd.label < 2
    right = svi.probabilities.to_numpy()[crowd.task[given], crowd.label[given]]
    expected = np.bincount(crowd.worker[given], right) / np.bincount(crowd.worker[given])
    np.testing.assert_allclose(scores["realised_accuracy"], expected, rtol=1e-5)
    assert (scores["realised_accuracy_low"] <= scores["realised_accuracy_high"]).all()
    np.testing.assert_allclose(scores["gold_annotations"], np.bincount(crowd.worker[given]))
    hits = np.bincount(crowd.worker, crowd.label == crowd.gold[crowd.task])
    np.testing.assert_allclose(scores["gold_accuracy"], hits / np.bincount(crowd.worker[given]))


def test_tasks_and_the_summary_count_all_annotations(crowd, em):
    assert (em.task_scores(replicates=20)["annotations"] == 5).all()
    share = (crowd.label >= 2).mean()
    assert f"300 annotations ({share:.0%} of them abstentions)" in str(em.summary())


def test_uninformative_abstentions_are_fitted_as_dropped_ones_are(crowd):
    with jax.enable_x64(True):  # both stop where the log-posterior does not change: in the twelfth digit
        converged = {"tolerance": 1e-13, "max_iterations": 5000}
        silent = quietly("dawid_skene", crowd, abstentions="uninformative", **converged)
        dropped = quietly("dawid_skene", crowd.of_classes(), **converged)
    np.testing.assert_allclose(silent.probabilities, dropped.probabilities, atol=1e-3)
    rate = (np.bincount(crowd.worker, crowd.label >= 2) + 2) / (60 + 3)  # beside one of each kind by the prior
    np.testing.assert_allclose(1 - silent.fitted.draws["abstention"][0, 0, :, 0], rate, atol=1e-5)
    assert not silent.annotations.informative


def test_a_task_of_abstentions_only_has_the_prevalence_where_they_say_nothing():
    with pytest.warns(match="1 of 4 tasks have abstentions only"):
        annotations = cp.Annotations.from_dict(
            {1: {"a": "x", "b": "x"}, 2: {"a": "y", "b": "y"}, 3: {"a": "?", "b": "?"}, 4: {"a": "x", "b": "x"}},
            abstain="?",
        )
    fit = quietly("dawid_skene", annotations, abstentions="uninformative")
    prevalence = fit.fitted.draws["prevalence"][0, 0]
    np.testing.assert_allclose(fit.probabilities.loc[3], prevalence, atol=1e-3)
    informed = quietly("dawid_skene", annotations)
    assert np.isfinite(informed.probabilities.to_numpy()).all()


def test_a_worker_of_abstentions_only_is_fitted(crowd):
    mute = crowd.replace(label=np.where(crowd.worker == 4, 2, crowd.label).astype(np.int32))
    fit = quietly("one_coin", mute)
    prior = 0.5 * (60 + 1.5) / 0.5  # half an annotation at the worker's own rate, of half in 60 and three halves
    assert fit.workers["abstention_rate"].iloc[4] == pytest.approx(1 - 0.5 / (30 + prior), abs=0.0005)
    assert np.isfinite(fit.probabilities.to_numpy()).all()


def test_labels_that_abstentions_decide_are_said():
    rng = np.random.default_rng(0)
    truth = rng.random(100) < 0.5
    gives = rng.random((100, 6)) < np.where(truth, 0.9, 0.1)[:, None]
    labels = np.where(gives, np.where(rng.random((100, 6)) < 0.5, "a", "b"), "?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        annotations = cp.Annotations.from_matrix(labels, abstain="?")
    fit = quietly("dawid_skene", annotations)
    assert any("how often workers abstain decides the labels" in text for text in fit.warnings)
    silent = quietly("dawid_skene", annotations, abstentions="uninformative")
    assert not any("abstain" in text for text in silent.warnings)


def test_labels_of_tasks_that_nobody_annotated_are_decided_by_abstentions_under_even_shares():
    gives = np.arange(10) % 2
    rng = np.random.default_rng(3)
    truth = rng.random(300) < 0.3
    rate = np.where(gives == truth[:, None], np.where(gives, 0.2, 0.04), 0.01)
    labels = np.where(rng.random((300, 10)) < rate, gives, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = quietly("glad", cp.Annotations.from_matrix(labels, abstain=[-1]))
    assert any("which would be others without it, or open" in text for text in fit.warnings)


def test_what_abstentions_are_is_one_of_two_words(crowd):
    with pytest.raises(UnknownNameError, match="did you mean 'uninformative'"):
        cp.fit("dawid_skene", crowd, abstentions="uninformativ")
    with pytest.raises(ValueError, match="the annotations have no abstentions"):
        cp.fit("dawid_skene", crowd.of_classes(), abstentions="informative")


def test_replicates_have_the_abstentions_of_the_observed(crowd, svi):
    replicated = svi.posterior_predictive(seed=0)["annotation"].to_numpy().ravel()
    assert (replicated >= 2).mean() == pytest.approx((crowd.label >= 2).mean(), abs=0.03)
    checks = cp.check(svi, draws=20)
    assert set(checks.table.index) == set(DISCREPANCIES)
    assert (checks.table["p_value"] > 0.001).all()


def test_discrepancies_count_agreements_of_classes_alone(crowd):
    take = DISCREPANCIES["agreement"].prepare(crowd).take
    wide = crowd.label.reshape(60, 5)
    pairs = [(j, i) for j in range(5) for i in range(j + 1, 5)]
    expected = [((wide[:, j] == wide[:, i]) & (wide[:, j] < 2)).sum() for j, i in pairs]
    np.testing.assert_array_equal(take(crowd.label), expected)
    shares = DISCREPANCIES["annotations"].prepare(crowd)
    assert shares.take(crowd.label).sum() == 300
    counts = DISCREPANCIES["votes"].prepare(crowd).take(crowd.label)
    assert counts.sum() == 60
    credit = DISCREPANCIES["majority"].prepare(crowd).take(crowd.label)
    by_hand = np.zeros(5)
    for j in range(5):
        for row in wide:
            votes = np.bincount(np.delete(row, j), minlength=4)[:2]
            if row[j] < 2 and votes.max() > 0 and votes[row[j]] == votes.max():
                by_hand[j] += 1 / (votes == votes.max()).sum()
    np.testing.assert_allclose(credit, by_hand)


def test_the_next_annotation_may_be_an_abstention(em):
    asked = cp.next_annotations(em, 5, workers=[0, 1])
    assert len(asked) == 0  # both have annotated all tasks
    typical = cp.next_annotations(em, 5)
    assert (typical["expected_gain"] >= 0).all()
    assert (typical["annotations"] == 5).all()


def test_held_out_annotations_are_predicted_abstentions_among_them(svi):
    other = quietly("one_coin", svi.annotations, method="svi", max_iterations=300, draws=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = cp.compare({"ds": svi, "coin": other})
    assert np.isfinite(table["elpd"].to_numpy(dtype=float)).all()
    by_row = svi.to_idata(log_likelihood="annotation")["log_likelihood"]["annotation"]
    assert by_row.shape == (1, 20, 300)


def test_a_folder_brings_everything_back(tmp_path, crowd, svi):
    svi.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    assert back.annotations.abstentions == crowd.abstentions
    assert back.annotations.informative
    np.testing.assert_array_equal(back.annotations.label, crowd.label)
    np.testing.assert_allclose(back.confusions()["probability"], svi.confusions()["probability"], rtol=1e-6)
    silent = quietly("dawid_skene", crowd, abstentions="uninformative")
    silent.save(tmp_path / "silent")
    assert not cp.load_fit(tmp_path / "silent").annotations.informative


def test_arviz_data_name_the_kinds_and_the_rates(svi):
    rates = svi.idata["posterior"]["abstention"]
    assert rates.dims == ("chain", "draw", "worker", "truth", "abstaining")
    assert rates["abstaining"].values.tolist() == ["a class", *ABSTAIN]
    assert svi.idata["observed_data"]["kind"].values.tolist()[-2:] == ABSTAIN


def test_heat_maps_have_columns_of_abstentions(em):
    ax = plot_confusions(em, workers=[0, 4])[0]
    assert ax.images[0].get_array().shape == (2, 4)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1", *ABSTAIN]
    plt.close("all")


def test_empirical_confusions_have_the_shape_of_the_estimated(crowd, em):
    found = cp.confusion_divergences(em)
    assert 0 <= found["i_js"] < 0.2
    assert cp.confusion_divergences(em, em.confusions())["i_js"] == pytest.approx(0, abs=1e-9)


def test_the_report_shows_abstentions(tmp_path, em):
    em.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "abstentions" in page
    assert "none of these" in page


def test_more_annotations_are_fitted_from_where_the_fit_ended(em):
    more = pd.DataFrame({"task": [0, 99], "worker": [7, 0], "label": pd.Series(["?", 1], dtype=object)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = em.update(more, progress=False)
    assert fit.annotations.n_tasks == 61
    assert fit.fitted.draws["abstention"].shape == (1, 1, 6, 2, 3)


def test_the_command_line_takes_abstentions(tmp_path):
    annotations = with_abstentions(3, n_tasks=12, n_rows=60, abstain=["skip", "-1"])
    annotations.to_frame().to_csv(tmp_path / "crowd.csv", index=False)
    asked = ["fit", tmp_path / "crowd.csv", "--abstain", "skip", "--abstain", "-1"]
    done = crowdppl(*asked, "--set", "abstentions=uninformative", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "2 classes, 60 annotations" in done.stdout
    assert "of them abstentions" in done.stdout
    assert "abstention_rate" in pd.read_csv(tmp_path / "out" / "workers.csv")
    assert not cp.load_fit(tmp_path / "out").annotations.informative


def test_whole_numbers_are_abstentions_of_the_command_line_too(tmp_path):
    rows = [(i, j, [0, 1, -1][(i + j) % 3]) for i in range(6) for j in range(4)]
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(tmp_path / "crowd.csv", index=False)
    done = crowdppl("fit", tmp_path / "crowd.csv", "--abstain", "-1", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert list(cp.load_fit(tmp_path / "out").annotations.abstentions) == [-1]


@pytest.mark.parametrize("name", ["ws_youtube", "ws_sms"])
def test_dawid_skene_with_abstentions_is_not_behind_the_majority_vote(real, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        annotations = real(name)
    fit = quietly("dawid_skene", annotations)
    accuracy = (fit.probabilities.to_numpy().argmax(-1) == annotations.gold).mean()
    assert accuracy >= right_shares(annotations.kind.majority(annotations.votes()), annotations.gold).mean()
