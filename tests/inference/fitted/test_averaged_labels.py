"""EM's label probabilities are averaged over sweeps of data augmentation where data are thin, and nowhere else."""

import warnings

import numpy as np
import pandas as pd
import pytest
from all_labellings import exact_labels
from story_options import DEFAULTS

import crowdppl as cp
from crowdppl.inference.densities import sweeps
from crowdppl.inference.fitted import averaged_labels as module
from crowdppl.inference.fitted.averaged_labels import are_at_mode, n_free
from crowdppl.inference.fitted.fitted import label_posteriors
from crowdppl.models import WITH_CLASSIFIER

THIN = 30
CROWD = {"n_tasks": 8, "n_workers": 3, "seed": 2}


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    monkeypatch.setattr(module, "THIN", THIN)


def fitted(story, annotations, **options):
    return cp.fit(story, annotations, progress=False, **options)


def thin(**options):
    return cp.simulate("dawid_skene", diagonal=2.0, **(CROWD | options))[0].without_gold()


def test_labels_come_nearer_to_those_of_all_labellings_the_more_sweeps_there_are():
    annotations = thin()
    exact = exact_labels(annotations, 2.0, 1.0)
    options = {"diagonal": 2.0, "off_diagonal": 1.0, "truth_prior": cp.Prevalence(1.0)}
    mode, default, many = (fitted("dawid_skene", annotations, sweeps=n, **options) for n in (0, None, 200))
    off = [np.abs(np.asarray(fit.posterior) - exact).mean() for fit in (mode, default, many)]
    assert off[2] < 0.02  # of two hundred chains
    assert off[1] < off[0] / 2
    assert default.outcome.facts["sweeps"] == sweeps.FEWEST


def test_mode_and_log_posterior_are_those_without_sweeps():
    mode, averaged = (fitted("dawid_skene", thin(), sweeps=n) for n in (0, 3))
    np.testing.assert_array_equal(mode.history, averaged.history)
    for name, value in mode.draws.items():
        np.testing.assert_array_equal(value, averaged.draws[name])
    assert not np.array_equal(mode.posterior, averaged.posterior)
    np.testing.assert_allclose(averaged.posterior.sum(-1), 1, atol=1e-5)


def test_an_order_of_the_rows_moves_averages_as_a_seed_does_and_not_the_mode():
    table = thin(n_tasks=40).to_frame()
    there, back = (cp.Annotations.from_frame(rows, classes=[0, 1]) for rows in (table, table[::-1]))
    for options, least, most in (({"sweeps": 0}, 0.0, 1e-3), ({}, 1e-3, 0.3)):  # the mode within EM's tolerance
        first, other = (fitted("dawid_skene", rows, **options).probabilities for rows in (there, back))
        assert least <= (first - other.loc[first.index]).abs().to_numpy().max() <= most
    seeds = [fitted("dawid_skene", there, seed=seed).posterior for seed in (0, 1)]
    assert 1e-3 < np.abs(seeds[0] - seeds[1]).max() < 0.3


def test_labels_that_depend_on_which_chains_there_are_have_more_of_them(monkeypatch):
    annotations = cp.simulate("graded_response", n_tasks=60, n_workers=5, n_classes=5, seed=2)[0].without_gold()
    moved, chains = {}, {}
    for noisy in (1.0, module.NOISY):
        monkeypatch.setattr(module, "NOISY", noisy)
        fits = [fitted("graded_response", annotations, seed=seed) for seed in range(4)]
        chains[noisy] = {fit.outcome.facts["chains"] for fit in fits}
        moved[noisy] = np.std([fit.posterior for fit in fits], axis=0).mean()
    assert min(chains[module.NOISY]) >= 2 * max(chains[1.0])
    assert moved[module.NOISY] < 0.8 * moved[1.0]


def test_data_that_are_not_thin_have_the_labels_at_the_mode_to_the_last_bit(monkeypatch):
    annotations = thin(n_tasks=20)
    mode, averaged = (fitted("one_coin", annotations, sweeps=n) for n in (0, None))
    assert not np.array_equal(mode.posterior, averaged.posterior)
    per_parameter = annotations.n_rows / n_free(mode.fitted, annotations)
    assert averaged.outcome.facts["per_parameter"] == pytest.approx(per_parameter)
    for name, value, place in (
        ("THIN", per_parameter, module),
        ("FEW_ROWS", 1, sweeps),
        ("LITTLE", 0, sweeps),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            same = fitted("one_coin", annotations)
        assert "sweeps" not in same.outcome.facts
        np.testing.assert_array_equal(mode.posterior, same.posterior)


def test_a_fit_and_the_same_from_its_folder_know_whether_their_labels_are_at_the_mode(monkeypatch, tmp_path):
    annotations = thin(n_tasks=20)
    mode, averaged = (fitted("one_coin", annotations, sweeps=n) for n in (0, None))
    for place in (sweeps, module):
        monkeypatch.setattr(place, "FEW_ROWS", annotations.n_rows - 1)
    many = fitted("one_coin", annotations)
    assert are_at_mode(many.fitted)
    monkeypatch.undo()
    mode.save(tmp_path / "fit")
    for fit in (mode, cp.load_fit(tmp_path / "fit")):
        assert are_at_mode(fit.fitted)
        np.testing.assert_allclose(fit.posterior, label_posteriors(fit.fitted)[0], atol=1e-6)
    np.testing.assert_array_equal(many.posterior, mode.posterior)
    assert not are_at_mode(averaged.fitted)
    assert not np.allclose(averaged.posterior, label_posteriors(averaged.fitted)[0], atol=1e-3)


def test_parameters_are_counted_without_what_rows_of_probabilities_sum_to():
    fit = fitted("dawid_skene", thin(), sweeps=0).fitted
    k, j = fit.annotations.n_classes, fit.annotations.n_workers
    assert n_free(fit, fit.annotations) == j * k * (k - 1) + k - 1


def test_the_same_seed_gives_the_same_labels_and_a_saved_fit_has_them(tmp_path):
    one, same, other = (fitted("glad", thin(), seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.posterior, same.posterior)
    assert not np.array_equal(one.posterior, other.posterior)
    one.save(tmp_path / "fit")
    np.testing.assert_array_equal(cp.load_fit(tmp_path / "fit").posterior, one.posterior)


def test_a_fit_that_goes_on_has_the_same_labels(tmp_path):
    whole = fitted("dawid_skene", thin())
    fitted("dawid_skene", thin(), checkpoint=tmp_path)
    again = fitted("dawid_skene", thin(), checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(whole.posterior, again.posterior)


@pytest.mark.slow
@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.name)
def test_every_story_averages_its_labels(case):
    annotations, options = case.annotations(), dict(case.options)
    if case.story in WITH_CLASSIFIER:
        features = np.random.default_rng(1).normal(size=(annotations.n_tasks, 2)).astype(np.float32)
        annotations, options["classifier"] = annotations.replace(features=features), "logistic"
    mode, averaged = (fitted(case.story, annotations, sweeps=n, **options) for n in (0, None))
    assert averaged.outcome.facts["sweeps"] == sweeps.FEWEST
    assert np.abs(averaged.posterior - mode.posterior).max() > 1e-3
    np.testing.assert_allclose(averaged.posterior.sum(-1), 1, atol=1e-4)


def test_gold_labels_that_a_fit_is_given_stay():
    annotations, _ = cp.simulate("dawid_skene", **CROWD)
    told = (np.asarray(annotations.gold) + 1) % annotations.n_classes  # against the annotations
    told[-1] = -1  # one label is left, for which others are averaged at all
    fit = fitted("dawid_skene", annotations.replace(gold=told), gold=True)
    assert fit.outcome.facts["sweeps"]
    np.testing.assert_array_equal(fit.posterior.argmax(-1)[:-1], told[:-1])


def test_sweeps_of_a_scan_are_refused_and_none_are_taken_as_what_it_has(tmp_path):
    path = tmp_path / "crowd.parquet"
    thin(n_tasks=30).to_frame()[["task", "worker", "label"]].to_parquet(path)
    with pytest.raises(ValueError, match="sweeps=3 would be ignored: sweeps take all tasks at once"):
        fitted("dawid_skene", cp.scan(path), sweeps=3)
    assert "sweeps" not in fitted("dawid_skene", cp.scan(path), sweeps=0).outcome.facts


def test_labels_that_are_far_less_sure_than_at_the_mode_are_told_of_in_a_note():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 60)
    rows = [(task, worker) for task in range(60) for worker in range(5)]
    given = [truth[t] if rng.random() < 0.55 else int(np.clip(truth[t] + rng.choice([-1, 1]), 0, 4)) for t, _ in rows]
    table = pd.DataFrame(rows, columns=["task", "worker"]).assign(label=given)
    annotations = cp.Annotations.from_frame(table, ordered=[0, 1, 2, 3, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fitted("dawid_skene", annotations)
    (finding,) = [each for each in fit.findings if each.code == "averaged_labels"]
    assert finding.severity == "note"
    assert finding.values["sure"] == pytest.approx(fit.posterior.max(-1).mean())
    right = (fit.posterior.argmax(-1) == truth).mean()
    assert abs(finding.values["sure"] - right) < abs(finding.values["sure_at_mode"] - right)
    assert not [each for each in fitted("dawid_skene", annotations, sweeps=0).findings if each.code == finding.code]


def test_labels_at_the_mode_of_thin_data_of_many_annotations_are_told_of_in_a_note(monkeypatch):
    monkeypatch.setattr(sweeps, "FEW_ROWS", 10)
    annotations = thin()

    def told(**options):
        found = fitted("dawid_skene", annotations, **options).findings
        return [each for each in found if each.code == "labels_at_mode"]

    (finding,) = told()
    assert finding.severity == "note"
    assert finding.values["per_parameter"] == pytest.approx(24 / (3 * 2 + 1))
    assert not told(sweeps=0)
    assert not told(sweeps=15)
    assert not told(method="svi", max_iterations=20, draws=20)
    monkeypatch.setattr(module, "THIN", 3)
    assert not told()


def test_where_parameters_are_more_than_annotations_labels_are_averaged_as_far_as_seconds_go_and_else_warned_of(
    monkeypatch,
):
    annotations = thin(n_tasks=40, n_workers=10, n_classes=12)  # 400 annotations, and 1,331 parameters
    monkeypatch.setattr(sweeps, "LITTLE", 0)
    assert fitted("dawid_skene", annotations).outcome.facts["sweeps"] == sweeps.FEWEST
    monkeypatch.setattr(sweeps, "WORK", 0)
    fit = fitted("dawid_skene", annotations)
    (finding,) = (each for each in fit.findings if each.code == "labels_at_mode")
    assert finding.severity == "warning"
    assert fit.verdict.trust != "yes"


def test_where_all_labels_are_told_none_is_averaged_or_said_to_be_too_sure(monkeypatch):
    annotations = thin(n_tasks=40, n_workers=10, n_classes=12)
    labels = np.random.default_rng(0).integers(12, size=40)
    for told in (labels, np.where(np.arange(40) == 39, -1, labels)):
        known = annotations.replace(gold=told)
        facts = fitted("dawid_skene", known, gold=True).outcome.facts
        assert ("sweeps" in facts) == (told is not labels)
        with monkeypatch.context() as few:
            few.setattr(sweeps, "WORK", 0)
            codes = {each.code for each in fitted("dawid_skene", known, gold=True).findings}
            assert ("labels_at_mode" in codes) == (told is not labels)


def test_minibatches_are_told_that_sweeps_need_all_tasks_at_once():
    annotations = thin(n_tasks=40, n_workers=10, n_classes=12)
    features = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    minibatches = {"classifier": "logistic", "batch_size": 16, "epochs": 1}
    fit = fitted("dawid_skene", annotations.replace(features=features), **minibatches)
    (finding,) = (each for each in fit.findings if each.code == "labels_at_mode")
    assert "sweeps=15 without a batch_size" in finding.remedy
    with pytest.raises(ValueError, match="leave it out, or a batch_size"):
        fitted("dawid_skene", annotations.replace(features=features), sweeps=15, **minibatches)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["em", "svi"])
def test_thin_data_are_as_surely_labelled_from_files_as_in_memory(tmp_path, method):
    """Nine levels by eight workers: labels at one point of the parameters would be surer by a fifth.

    Those of single tasks differ between both by the rounding of sums, which chains of sweeps make larger.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 9, 120)
    task, worker = np.indices((120, 8)).reshape(2, -1)
    label = np.clip(np.round(truth[task] + rng.normal(0, 1.5, len(task))), 0, 8).astype(int)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    frame = frame[rng.random(len(frame)) < 0.4]
    frame.to_parquet(tmp_path / "thin.parquet", index=False)
    story, options = "ordinal_dawid_skene", {"method": method, "progress": False}
    here = cp.fit(story, cp.Annotations.from_frame(frame, tasks=sorted(set(frame["task"]))), **options)
    there = cp.fit(story, cp.scan(tmp_path / "thin.parquet"), **options)
    at_point = cp.fit(story, cp.scan(tmp_path / "thin.parquet"), sweeps=0, **options)
    labels = here.labels.sort_index()
    sure, streamed, plain = (
        each.loc[labels.index, "probability"].mean()
        for each in (labels, *(pd.concat(fit.iter_labels()) for fit in (there, at_point)))
    )
    assert abs(streamed - sure) < 0.04
    assert plain - streamed > 0.1
    doubtful = (pd.concat(there.iter_labels())["probability"] < 0.5).mean()
    assert abs(doubtful - (labels["probability"] < 0.5).mean()) < 0.12
