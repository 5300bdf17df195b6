"""Workers' scores against their definitions in loops."""

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions
from made_fits import changed
from scipy import stats

import crowdppl as cp
from crowdppl.inference.fitted.class_mix import class_mix_draws
from crowdppl.inference.fitted.confusion_scores import (
    accuracy,
    informativeness,
    more_scores,
    rank_one_distance,
    scores,
    spammer_score,
    trace,
)
from crowdppl.inference.fitted.misled import misled_share
from crowdppl.inference.fitted.realised import realised_accuracy, realised_accuracy_draws
from crowdppl.inference.fitted.workers import gold_scores, seconds_by_worker


def test_accuracy_is_the_chance_of_a_right_annotation():
    tables, shares = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4, 3)), np.array([0.2, 0.3, 0.5])
    expected = [[sum(shares[k] * t[k, k] for k in range(3)) for t in row] for row in tables]
    np.testing.assert_allclose(accuracy(tables, shares), expected)


def test_spammer_score_is_the_mean_squared_distance_between_rows():
    for k in (2, 3, 5):
        tables = np.random.default_rng(k).dirichlet(np.ones(k), (6, k))
        expected = [
            sum(((t[a] - t[b]) ** 2).sum() for a in range(k) for b in range(a + 1, k)) / (k * (k - 1)) for t in tables
        ]
        np.testing.assert_allclose(spammer_score(tables), expected)


def test_perfect_workers_score_one_and_spammers_zero():
    np.testing.assert_allclose(spammer_score(np.eye(4)), 1, atol=1e-15)
    np.testing.assert_allclose(spammer_score(np.tile([0.1, 0.2, 0.7], (3, 1))), 0, atol=1e-15)


def test_for_two_classes_it_is_the_square_of_youdens_index():
    table = np.array([[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(spammer_score(table), (0.7 + 0.9 - 1) ** 2)


def test_two_classes_have_a_sensitivity_and_a_specificity_and_more_have_not():
    tables = np.random.default_rng(1).dirichlet(np.ones(2), (6, 4, 2))
    found = scores(tables, np.array([0.3, 0.7]))
    assert list(found) == ["accuracy", "spammer_score", "sensitivity", "specificity"]
    np.testing.assert_array_equal(found["sensitivity"], tables[..., 1, 1])  # the second class is the positive one
    np.testing.assert_array_equal(found["specificity"], tables[..., 0, 0])
    np.testing.assert_allclose(found["accuracy"], 0.7 * found["sensitivity"] + 0.3 * found["specificity"])
    three = np.random.default_rng(1).dirichlet(np.ones(3), (4, 3))
    assert list(scores(three, np.ones(3) / 3)) == ["accuracy", "spammer_score"]


def test_the_trace_is_the_accuracy_under_even_classes():
    tables = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5, 4))
    np.testing.assert_allclose(trace(tables), accuracy(tables, np.ones(4) / 4))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_informativeness_is_the_mutual_information_of_truth_and_annotation(k):
    rng = np.random.default_rng(k)
    tables, shares = rng.dirichlet(np.ones(k), (5, k)), rng.dirichlet(np.ones(k))
    joint = shares[:, None] * tables
    expected = [stats.entropy(j.ravel(), np.outer(j.sum(1), j.sum(0)).ravel()) for j in joint]
    np.testing.assert_allclose(informativeness(tables, shares), expected)


def test_who_always_errs_in_the_same_way_is_as_informative_as_a_perfect_worker_and_a_spammer_says_nothing():
    shares = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(informativeness(np.eye(3)[[1, 2, 0]], shares), stats.entropy(shares))
    np.testing.assert_allclose(informativeness(np.eye(3), shares), stats.entropy(shares))
    np.testing.assert_allclose(informativeness(np.tile([0.1, 0.2, 0.7], (3, 1)), shares), 0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_distance_to_rank_one_is_that_to_the_best_outer_product(k):
    tables = np.random.default_rng(k).dirichlet(np.ones(k), (20, k))
    u, s, v = np.linalg.svd(tables)
    nearest = s[:, 0, None, None] * u[:, :, :1] * v[:, :1, :]
    expected = ((tables - nearest) ** 2).sum((1, 2)) / (k - 1)
    np.testing.assert_allclose(rank_one_distance(tables), expected)
    assert (rank_one_distance(tables) <= spammer_score(tables)).all()
    np.testing.assert_allclose(rank_one_distance(np.eye(k)), 1)
    np.testing.assert_allclose(rank_one_distance(np.tile(tables[0, 0], (k, 1))), 0, atol=1e-12)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 24)
    frame = pd.DataFrame(
        [(i, j, t if rng.random() < 0.75 else rng.integers(3)) for i, t in enumerate(truth) for j in range(4)],
        columns=["task", "worker", "label"],
    )
    frame["took"] = rng.lognormal(2, 0.5, len(frame)).astype(np.float32)
    frame.loc[frame["worker"] == 2, "took"] = np.nan
    frame.loc[frame.index[frame["worker"] == 3][4:], "took"] = np.nan
    gold = {i: int(t) for i, t in enumerate(truth) if i % 3 == 0}
    return cp.Annotations.from_frame(frame, seconds="took", gold=gold, workers=[0, 1, 2, 3, "new"])


@pytest.fixture(scope="module")
def em(crowd):
    return fit_at("dawid_skene", crowd, random_confusions(crowd))


@pytest.fixture(scope="module")
def svi(crowd):
    return fit_at("dawid_skene", crowd, random_confusions(crowd, 150), method="svi")


def test_new_columns_come_after_the_old_ones(em, svi):
    assert [name for name in em.workers if not name.endswith(("_low", "_high"))] == [
        "annotations", "review", "reason", "accuracy", "realised_accuracy", "spammer_score", "bias",
        "mean_absolute_error", "trace", "informativeness", "error_correlation", "n_effective", "gold_annotations",
        "gold_right", "gold_accuracy", "seconds",
    ]  # fmt: skip
    columns = list(svi.worker_scores(rank_one=True))
    assert columns[:4] == ["annotations", "accuracy", "accuracy_low", "accuracy_high"]
    for name in ("trace", "informativeness", "rank_one_distance", "realised_accuracy", "gold_accuracy", "seconds"):
        at = columns.index(name)
        assert columns[at + 1 : at + 3] == [f"{name}_low", f"{name}_high"]


def test_what_gold_labels_and_times_say_is_there_of_every_fit(em, svi, crowd):
    average = cp.stack({"em": em, "svi": svi}, weights={"em": 0.4, "svi": 0.6})
    rule = cp.fit("majority_vote", crowd, progress=False)
    for counted in (gold_scores(crowd), seconds_by_worker(crowd)):
        for fit in (average, rule):
            pd.testing.assert_frame_equal(fit.workers[counted.columns], counted)
    assert average.workers["error_correlation"].notna().sum() == 4  # but of the worker who annotated nothing
    assert "error_correlation" not in rule.workers


def test_a_point_and_draws_are_averaged(em, svi):
    average = cp.stack({"em": em, "svi": svi}, weights={"em": 0.4, "svi": 0.6})
    expected = 0.4 * em.confusion_draws[0, 0] + 0.6 * svi.confusion_draws.mean((0, 1))
    np.testing.assert_allclose(average.confusion_draws, expected[None, None], rtol=1e-6)


def test_scores_are_averaged_over_draws_with_their_quantiles(svi):
    tables, shares = svi.confusion_draws, svi.posterior.mean(0)
    found, around = svi.worker_scores(interval=0.6), more_scores(tables, class_mix_draws(svi))
    for name, values in more_scores(tables, shares).items():
        np.testing.assert_allclose(found[name], values.mean((0, 1)), rtol=1e-5)
        draws = around[name]
        low, high = np.quantile(draws, [0.2, 0.8], axis=(0, 1), method="weibull")
        np.testing.assert_allclose(found[f"{name}_low"], low, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[f"{name}_high"], high, rtol=1e-4, atol=1e-6)


def test_realised_accuracy_is_the_expected_share_of_right_annotations(em, svi, crowd):
    for fit in (em, svi):
        p = fit.posterior[crowd.task, crowd.label]
        expected = [p[crowd.worker == j].mean() for j in range(4)]
        found = fit.worker_scores(misled=0.0)["realised_accuracy"]
        np.testing.assert_allclose(found.iloc[:4], expected, rtol=1e-4)
        assert np.isnan(found.iloc[4])  # who annotated nothing


def test_realised_accuracys_interval_is_of_the_share_itself(svi, crowd):
    """200 truths at 150 draws: the mean within four standard errors of the expectation."""
    share = misled_share(svi.fitted)
    drawn = realised_accuracy_draws(svi.fitted, share)
    assert drawn.shape == (200, 5)
    found = svi.worker_scores(interval=0.8)
    np.testing.assert_allclose(
        found["realised_accuracy_low"].iloc[:4], np.quantile(drawn[:, :4], 0.1, axis=0, method="weibull")
    )
    np.testing.assert_allclose(
        found["realised_accuracy_high"].iloc[:4], np.quantile(drawn[:, :4], 0.9, axis=0, method="weibull")
    )
    rights = drawn[:, :4] * 24
    np.testing.assert_allclose(rights, rights.round(), atol=1e-6)  # a whole number of the 24 annotations is right
    error = drawn[:, :4].std(0) / np.sqrt(200)
    expected = realised_accuracy(share.beside(svi.posterior), svi.annotations)
    assert (np.abs(drawn[:, :4].mean(0) - expected[:4]) < 4 * error + 1e-6).all()
    assert len(realised_accuracy_draws(svi.fitted, share, n=20)) == 20


def test_gold_scores_count_raw_annotations_with_jeffreys_interval(em, crowd):
    found = em.gold_scores(interval=0.8)
    for j in range(4):
        rows = (crowd.worker == j) & (crowd.gold[crowd.task] >= 0)
        right = int((crowd.label[rows] == crowd.gold[crowd.task][rows]).sum())
        assert found["gold_annotations"].iloc[j] == rows.sum() == 8
        assert found["gold_right"].iloc[j] == right
        low, high = stats.beta.ppf([0.1, 0.9], right + 0.5, 8 - right + 0.5)
        assert found["gold_accuracy_low"].iloc[j] == (0 if right == 0 else pytest.approx(low))
        assert found["gold_accuracy_high"].iloc[j] == (1 if right == 8 else pytest.approx(high))
    assert found.loc["new", "gold_annotations"] == 0
    assert found.loc["new", ["gold_accuracy", "gold_accuracy_low", "gold_accuracy_high"]].isna().all()
    traps = em.gold_scores({1: 0, 2: 2})
    assert traps["gold_annotations"].iloc[:4].tolist() == [2] * 4


def test_a_counted_row_counts_as_often():
    frame = pd.DataFrame({"task": [0, 0, 1], "worker": ["a", "b", "b"], "label": [0, 1, 1], "n": [3, 1, 2]})
    frame["took"] = [2.0, 5.0, 9.0]
    annotations = cp.Annotations.from_frame(frame, count="n", seconds="took", gold={0: 0})
    found = gold_scores(annotations)
    assert found["gold_annotations"].tolist() == [3, 1]
    assert found["gold_right"].tolist() == [3, 0]
    assert seconds_by_worker(annotations)["seconds"].tolist() == [2.0, 9.0]


def test_seconds_are_the_median_of_known_times_with_an_interval_between_two_of_them(svi, crowd):
    found = svi.workers
    for j in (0, 1, 3):
        own = np.sort(crowd.seconds[crowd.worker == j])
        own = own[~np.isnan(own)]
        assert found["seconds"].iloc[j] == pytest.approx(np.median(own))
        if j < 3:
            # P(Binomial(24, ½) < 8) = 0.032 and < 9 = 0.076: the eighth from either side, for 90 %
            assert found["seconds_low"].iloc[j] == pytest.approx(own[7])
            assert found["seconds_high"].iloc[j] == pytest.approx(own[-8])
    assert np.isnan(found["seconds_low"].iloc[3])  # four times cannot hold the median with 90 %
    assert np.isnan(found["seconds"].iloc[[2, 4]]).all()


def test_what_is_not_there_is_said(em):
    with pytest.raises(cp.AnnotationError, match="seconds='column'"):
        seconds_by_worker(em.annotations.replace(seconds=None))
    with pytest.raises(cp.AnnotationError, match="no gold labels"):
        gold_scores(em.annotations.replace(gold=None))
    unnamed = cp.Annotations.from_counts([[3, 1], [0, 4]], gold={0: 0})
    for score in (gold_scores, seconds_by_worker):
        with pytest.raises(cp.AnnotationError, match="name no workers"):
            score(unnamed)
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        _ = changed(em, source=unnamed).workers


def test_no_probability_is_above_one_where_rounded_rows_are():
    tables = np.full((2, 2, 2), np.float32(1.0000001)) * np.eye(2, dtype=np.float32)
    for values in (accuracy(tables, np.array([0.4, 0.6])), trace(tables)):
        assert (values <= 1).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("method", "options", "error"),
    # The mean of a Beta(2, 1) has a standard error of 0.24 / √400 = 0.012 for independent draws; SVI is a rough guide.
    [
        ("em", {}, 1e-3),
        ("svi", {"max_iterations": 500}, 0.1),
        pytest.param("nuts", {"warmup": 200, "draws": 400, "chains": 1}, 0.06, marks=pytest.mark.slow),
    ],
)
def test_a_worker_who_only_abstains_has_the_scores_of_the_prior_by_every_engine(method, options, error):
    frame = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].to_frame().astype({"label": str})
    frame.loc[frame["worker"] == 3, "label"] = "skip"
    annotations = cp.Annotations.from_frame(frame, abstain=["skip"])
    fit = cp.fit("dawid_skene", annotations, method=method, progress=False, **options)
    silent = fit.workers.loc[3]
    for score in ("accuracy", "sensitivity", "specificity", "trace"):
        assert silent[score] == pytest.approx(2 / 3, abs=error)
        assert silent[f"{score}_low"] < 0.45
        assert silent[f"{score}_high"] > 0.85
    assert np.isnan(silent["realised_accuracy"])
