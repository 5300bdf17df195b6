"""Self-training: quotas and choices by hand, rounds that add up, gold that is not looked at."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, Classifier, UnknownNameError
from crowdppl.inference.baselines.self_training import class_shares, completed, predicted_annotations, select_pairs

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
FEW = {"classifier": Classifier("mlp", hidden=(8,), dropout=0.0), "epochs": 3, "network_rate": 1e-2}


@pytest.fixture(scope="module")
def crowd():
    """60 tasks of two Gaussians, the first class three times as frequent; three of six workers annotate each."""
    rng = np.random.default_rng(1)
    truth = (rng.random(60) < 0.25).astype(int)
    x = rng.normal(np.where(truth, 2.0, -2.0)[:, None], 1.0, (60, 2))
    rows = [
        (i, j, truth[i] if rng.random() < 0.8 else 1 - truth[i])
        for i in range(60)
        for j in rng.choice(6, 3, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))


def test_quotas_are_inverse_to_the_classes_shares():
    np.testing.assert_allclose(class_shares(np.array([1, 2, 4])), np.array([4, 2, 1]) / 7)
    np.testing.assert_allclose(class_shares(np.array([3, 0])), [1 / 4, 3 / 4])


def test_each_class_gets_the_surest_of_its_quota_and_no_more_than_there_are():
    """Classes have 30 and 10 annotations, so that of 8 new ones 2 are of the first and 6 of the second, which has 3."""
    sure = np.array([0.9, 0.6, 0.8, 0.95, 0.7, 0.99, 0.55])
    p = np.where((np.arange(7) < 4)[:, None], np.stack([sure, 1 - sure], -1), np.stack([1 - sure, sure], -1))
    is_open = np.ones(7, bool)
    rng = np.random.default_rng(0)
    chosen = select_pairs(p, is_open, np.array([30, 10]), 8, "distribution", rng)
    assert sorted(chosen) == [0, 3, 4, 5, 6]
    assert sorted(select_pairs(p, is_open, np.array([30, 10]), 3, "confidence", rng)) == [0, 3, 5]
    is_open[5] = False
    assert sorted(select_pairs(p, is_open, np.array([30, 10]), 3, "confidence", rng)) == [0, 2, 3]
    drawn = select_pairs(p, is_open, np.array([30, 10]), 4, "random", rng)
    assert len(set(drawn)) == 4
    assert 5 not in drawn


def test_the_grid_has_every_pair_once_and_rows_that_are_not_given_count_nothing(crowd):
    grid, first = completed(crowd)
    assert (first, grid.n_rows, grid.n_annotations) == (180, 360, 180)
    assert len(set(zip(grid.task.tolist(), grid.worker.tolist(), strict=True))) == 360
    order = np.argsort(grid.task, kind="stable")
    rows = {name: np.asarray(getattr(grid, name))[order] for name in ("task", "worker", "label", "count")}
    plain, padded = (cp.fit("dawid_skene", data, progress=False) for data in (crowd, grid.replace(**rows)))
    np.testing.assert_allclose(padded.posterior, plain.posterior, atol=1e-4)


def test_predicted_annotations_mix_the_workers_rows_by_the_label_probabilities(crowd):
    fit = cp.fit("dawid_skene", crowd, progress=False)
    expected = np.einsum("nk,jkl->njl", fit.posterior, fit.confusion_draws[0, 0])
    np.testing.assert_allclose(predicted_annotations(fit.fitted), expected, atol=1e-5)


@pytest.mark.parametrize("story", ["crowd_layer", "anno_reg", "dawid_skene"])
def test_rounds_add_pseudo_annotations_of_pairs_that_nobody_annotated_and_even_the_classes_out(crowd, story):
    found = cp.self_train(story, crowd, rounds=2, growth=0.2, **FEW)
    assert found.rounds["pseudo_annotations"].tolist()[0] == 0
    assert found.rounds["pseudo_annotations"].iloc[-1] == len(found.pseudo) <= 73  # 36 a round, up to rounding
    given = set(zip(*(crowd.to_frame()[name] for name in ("task", "worker")), strict=True))
    made = set(zip(found.pseudo["task"], found.pseudo["worker"], strict=True))
    assert len(made) == len(found.pseudo)
    assert not given & made
    assert found.rounds["imbalance"].iloc[0] == pytest.approx(cp.imbalance_ratio(crowd))
    sure = cp.self_train(story, crowd, rounds=2, growth=0.2, select="confidence", **FEW)
    assert found.rounds["imbalance"].iloc[-1] <= sure.rounds["imbalance"].iloc[-1]
    assert found.fit.annotations.n_rows == 180
    assert found.rounds[["precision", "recall", "balanced_accuracy"]].iloc[-1].between(0, 1).all()


@pytest.mark.parametrize("anew", [True, False])
def test_a_round_has_as_many_more_whether_it_chooses_anew_or_keeps_earlier_ones(crowd, anew):
    found = cp.self_train("crowd_layer", crowd, rounds=2, growth=0.1, select="confidence", anew=anew, **FEW)
    assert found.rounds["pseudo_annotations"].tolist() == [0, 18, 36]
    assert set(found.pseudo["round"]) == ({2} if anew else {1, 2})


def test_without_rounds_it_is_the_fit_and_gold_labels_change_nothing(crowd):
    plain = cp.fit("crowd_layer", crowd, progress=False, **FEW)
    same = cp.self_train("crowd_layer", crowd, rounds=0, **FEW).fit
    np.testing.assert_allclose(same.posterior, plain.posterior, atol=1e-4)
    with_gold, without = (cp.self_train("crowd_layer", data, rounds=1, **FEW) for data in (crowd, crowd.without_gold()))
    pd.testing.assert_frame_equal(with_gold.pseudo, without.pseudo)
    assert "precision" not in without.rounds


def test_held_out_annotations_choose_the_number_of_rounds(crowd):
    found = cp.self_train("crowd_layer", crowd, rounds=2, growth=0.2, held_out=0.2, **FEW)
    assert list(found.stopped.index) == [0, 1, 2]
    assert found.rounds.index[-1] == found.stopped.idxmax()
    assert (found.stopped < 0).all()


@pytest.mark.parametrize("how", ["reweighting", "resampling"])
def test_rebalanced_annotations_are_as_many_of_each_class(crowd, how):
    found = cp.rebalanced(crowd, how, seed=1)
    assert cp.imbalance_ratio(found) == pytest.approx(1.0, rel=1e-5)
    assert np.asarray(found.count).sum() == pytest.approx(180, rel=1e-5)
    cp.fit("dawid_skene", found, progress=False)


def test_levels_of_another_truth_are_counted_by_the_class_they_lie_in_and_not_rebalanced():
    levels = cp.Annotations.from_matrix([[0, 1, 3], [0, 1, 2]], ordered=range(4), truth_classes=["no", "yes"])
    assert cp.imbalance_ratio(levels) == 2
    with pytest.raises(AnnotationError, match=r"annotations\.verdicts\(\)"):
        cp.rebalanced(levels)
    assert cp.imbalance_ratio(cp.rebalanced(levels.verdicts())) == pytest.approx(1)


def test_effective_numbers_lie_between_even_annotations_and_even_classes(crowd):
    """Of n annotations (1 - beta^n) / (1 - beta) count: at beta 0 one of each class, towards 1 all of them."""
    label = np.asarray(crowd.label)
    n = np.bincount(label)
    for beta in (0.0, 0.9, 0.999):
        count = np.asarray(cp.rebalanced(crowd, "effective_number", beta=beta).count)
        weight = (1 - beta) / (1 - beta**n)
        np.testing.assert_allclose(count, (weight / weight[label].mean())[label], rtol=1e-5)
    assert cp.imbalance_ratio(cp.rebalanced(crowd, "effective_number", beta=1 - 1e-9)) == pytest.approx(1.0, rel=1e-4)
    with pytest.raises(ValueError, match="beta=1"):
        cp.rebalanced(crowd, "effective_number", beta=1.0)


def test_what_cannot_be_is_refused(crowd):
    with pytest.raises(UnknownNameError, match="distribution"):
        cp.self_train("crowd_layer", crowd, select="distributon", **FEW)
    for growth in (0, float("inf"), "8"):
        with pytest.raises(ValueError, match=f"growth={growth!r}: a finite number above 0 is needed"):
            cp.self_train("crowd_layer", crowd, growth=growth, **FEW)
    with pytest.raises(ValueError, match="anew='yes'"):
        cp.self_train("crowd_layer", crowd, anew="yes", **FEW)
    with pytest.raises(ValueError, match="held_out=1"):
        cp.self_train("crowd_layer", crowd, held_out=1, **FEW)
    with pytest.raises(AnnotationError, match="their names"):
        cp.self_train("crowd_layer", cp.Annotations.from_counts([[2, 1], [0, 3]]), **FEW)


def test_what_was_given_of_each_task_is_of_every_round(crowd):
    """Probabilities as prior of the truth, or of a model that is one more worker."""
    sure = pd.DataFrame(np.where(np.asarray(crowd.gold)[:, None] == [0, 1], 0.99, 0.01), list(crowd.tasks), [0, 1])
    for name in ("truth_prior", "probabilities"):
        found = cp.self_train("dawid_skene", crowd, rounds=1, growth=0.5, select="confidence", **{name: sure})
        assert len(found.pseudo) == 90
        assert found.rounds["accuracy"].iloc[-1] > 0.95


def test_findings_on_the_crowd_are_of_the_annotations_that_were_given(crowd):
    """Pseudo-annotations of a task agree, since one classifier makes them all; nothing follows of the workers."""
    found = cp.self_train("crowd_layer", crowd, rounds=1, growth=2.0, **FEW)
    assert len(found.pseudo) > 100
    codes = {finding.code for finding in found.fit.findings}
    assert not codes & {"copies", "perhaps_copies", "err_together"}


def test_a_file_is_read_and_what_are_no_annotations_is_refused(crowd, tmp_path):
    crowd.to_frame().to_csv(tmp_path / "crowd.csv", index=False)
    crowd.to_frame().to_parquet(tmp_path / "crowd.parquet")
    assert len(cp.self_train("dawid_skene", tmp_path / "crowd.csv", rounds=1, growth=0.1).pseudo) == 18
    with pytest.raises(AnnotationError, match=r"annotations in memory are needed second, got a int; .*cp\.read"):
        cp.self_train("dawid_skene", 3, rounds=1)
    with pytest.raises(AnnotationError, match="got a Scan"):
        cp.label_then_train("majority_vote", cp.scan(tmp_path / "crowd.parquet"), classifier="mlp")


def test_members_are_self_trainings_from_one_seed_each(crowd, tmp_path):
    options = FEW | {"rounds": 1, "growth": 0.5, "held_out": 0.2}
    found = cp.self_train("crowd_layer", crowd, members=2, seed=3, checkpoint=tmp_path / "kept", **options)
    alone = [cp.self_train("crowd_layer", crowd, seed=seed, **options) for seed in (3, 4)]
    assert list(found.fit.fits) == ["seed 3", "seed 4"]
    np.testing.assert_allclose(found.fit.probabilities, np.mean([one.fit.probabilities for one in alone], 0), rtol=1e-5)
    for one, name in zip(alone, found.fit.fits, strict=True):
        pd.testing.assert_frame_equal(found.rounds.loc[name], one.rounds)
        pd.testing.assert_series_equal(found.stopped.loc[name], one.stopped)
        own = found.pseudo[found.pseudo["member"] == name].drop(columns="member")
        pd.testing.assert_frame_equal(own.reset_index(drop=True), one.pseudo)
    again = cp.self_train("crowd_layer", crowd, members=2, seed=3, checkpoint=tmp_path / "kept", resume=True, **options)
    np.testing.assert_array_equal(again.fit.posterior, found.fit.posterior)


@pytest.mark.parametrize(("story", "classifier"), [("wdn", "mlp"), ("auto", "mlp"), ("crowd_layer", "logistic")])
def test_what_has_no_members_is_not_trained_several_times(crowd, story, classifier):
    with pytest.raises(ValueError, match="members=2"):
        cp.self_train(story, crowd, members=2, classifier=classifier)
