"""Annotations that say little of the tasks: agreement by chance, one class always, and classes that labels lost."""

import itertools
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of, found_of_crowd

import crowdppl as cp
from crowdppl.benchmarks.papers.setups import two_gaussians
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, UNTRUSTWORTHY
from crowdppl.data import Ids
from crowdppl.data.kinds import Pairwise
from crowdppl.inference.findings.constant_workers import constant_workers
from crowdppl.inference.fitted.beyond_chance import agreement, by_chance

NEEDS_DATA = pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
REAL = (
    "bluebird", "dog", "rte", "trec", "adult", "product", "sentiment", "weather_amt", "movie_sp", "labelme", "music",
)  # fmt: skip


def drawn(shape, seed):
    return {**HEALTHY, **UNTRUSTWORTHY}[shape](np.random.default_rng(seed))


def by_votes(annotations):
    votes = annotations.votes() + 1e-9
    return found_of_crowd(annotations, votes / votes.sum(1, keepdims=True))


def test_judges_who_rank_tasks_alike_on_scales_of_their_own_agree_and_those_who_guess_do_not():
    rng = np.random.default_rng(0)
    quality = rng.normal(size=200)
    given = 3 + quality[:, None] + rng.normal(size=(200, 3)) + [-2, 0, 2]
    for scores, agree in ((given, True), (rng.integers(0, 7, (200, 3)), False)):
        frame = pd.DataFrame(scores.round().clip(0, 6).astype(int)).stack().reset_index()
        frame.columns = ["task", "worker", "label"]
        ordered, nominal = (agreement(cp.Annotations.from_frame(frame, ordered=order)) for order in (True, False))
        assert nominal.z < 2
        assert (ordered.z > 5) == agree
    centred = given.round().clip(0, 6) - given.round().clip(0, 6).mean(0)
    deviations = np.sqrt((centred**2).mean(0))
    first = agreement(cp.Annotations.from_matrix(given.round().clip(0, 6).astype(int), ordered=True))
    pairs = list(itertools.combinations(range(3), 2))
    alike = sum((centred[:, a] * centred[:, b]).sum() for a, b in pairs)
    assert first.share == pytest.approx(alike / sum(200 * deviations[a] * deviations[b] for a, b in pairs))


def test_the_excess_of_agreement_is_that_of_all_pairs_in_standard_deviations_of_shuffled_annotations():
    rng = np.random.default_rng(0)
    given = rng.choice(3, (40, 6), p=[0.5, 0.3, 0.2])
    given[:, 1] = np.where(rng.random(40) < 0.5, given[:, 0], given[:, 1])
    shares = np.stack([(given == k).mean(0) for k in range(3)], -1)

    def excess(given):
        apart = np.eye(3)[given] - shares
        return sum((apart[:, a] * apart[:, b]).sum() for a, b in itertools.combinations(range(6), 2))

    shuffled = [excess(rng.permuted(given, axis=0)) for _ in range(2000)]
    found = agreement(cp.Annotations.from_matrix(given, classes=[0, 1, 2]))
    assert np.mean(shuffled) == pytest.approx(0, abs=4 * np.std(shuffled) / np.sqrt(2000))
    assert found.z == pytest.approx(excess(given) / np.std(shuffled), rel=0.06)  # 2 % of sampling, 2 % of 1 / N
    assert found.share / found.share_se == pytest.approx(found.z)


def test_one_class_of_two_agrees_as_both_and_repeats_count_once():
    annotations = drawn("plain", 0)
    frame = annotations.to_frame()
    binary = cp.Annotations.from_frame(frame.assign(label=frame["label"].eq("0").astype(int)))
    found = agreement(binary)
    np.testing.assert_allclose(found.z_by_class, found.z)
    repeated = pd.concat([binary.to_frame(), binary.to_frame().iloc[:200]])
    again = agreement(cp.Annotations.from_frame(repeated))
    np.testing.assert_allclose(again.z_by_class, found.z_by_class)


@pytest.mark.parametrize("shape", [name for name in UNTRUSTWORTHY if name.startswith("noise")])
def test_workers_who_guess_are_said_with_their_figures(shape):
    found = [by_votes(drawn(shape, seed)) for seed in range(20)]
    said = [one["no_agreement"] for one in found if "no_agreement" in one]
    warned = [finding for finding in said if finding.severity == "warning"]
    assert len(warned) >= 18
    most = 0.2 if "thin" in shape else 0.1  # of 200 annotations, and of 1,250
    assert all(finding.values["upper"] < most for finding in warned)
    assert f"{said[0].values['confidence']:.0%}" in said[0].text


def test_parties_who_contradict_each_other_are_not_said_to_guess():
    """Of 15 workers seven say the other class in most of their annotations: in all they agree by chance."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 500)
        right = rng.random((500, 15)) < np.where(np.arange(15) < 8, 0.8, 0.2)
        given = np.where(
            rng.random(right.shape).argsort(1) < 6, np.where(right, truth[:, None], 1 - truth[:, None]), -1
        )
        finding = by_votes(cp.Annotations.from_matrix(given, classes=[0, 1]))["no_agreement"]
        assert finding.severity == "note"
        assert finding.values["between"] < -5


def test_of_few_annotations_there_is_a_warning_where_they_speak_for_chance_and_else_a_note():
    rng = np.random.default_rng(0)
    crowds = [cp.Annotations.from_matrix(rng.integers(0, 2, (40, 4))) for _ in range(40)]
    said = [(by_chance(one), by_votes(one)["no_agreement"]) for one in crowds if "no_agreement" in by_votes(one)]
    assert {finding.severity for _, finding in said} == {"note", "warning"}
    for chance, finding in said:
        assert (finding.severity == "warning") == (chance > 0.5 or finding.values["upper"] < 0.1)
    assert all(finding.values["upper"] > 0.1 for _, finding in said if finding.severity == "note")


@pytest.mark.parametrize("shape", [name for name in UNTRUSTWORTHY if name.startswith("constant")])
def test_constant_workers_are_found_and_nobody_else(shape):
    n = round(20 * int(shape.split()[1].rstrip("%,")) / 100)
    for seed in range(5):
        annotations = drawn(shape, seed)
        found = constant_workers(annotations)
        assert sorted(annotations.workers[j] for j in found.workers) == list(range(n))
        assert found.share == pytest.approx(np.isin(annotations.worker, found.workers).mean())


@pytest.mark.parametrize("shape", HEALTHY)
def test_healthy_crowds_have_no_constant_workers_and_agree(shape):
    for seed in range(10):
        found = by_votes(drawn(shape, seed))
        assert "constant_workers" not in found
        assert "lost_class" not in found
        assert "no_agreement" not in found or found["no_agreement"].severity == "note"


def test_cautious_workers_functions_that_abstain_and_workers_who_choose_their_tasks_are_not_constant():
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.3).astype(int)
    able = np.where(rng.random((600, 5)) < 0.85, truth[:, None], 1 - truth[:, None])
    cautious = truth * (rng.random(600) < 0.15)
    assert (cautious == 0).mean() > 0.95
    assert not len(constant_workers(cp.Annotations.from_matrix(np.column_stack([able, cautious]))).workers)
    fires = rng.random(600) < np.where(truth == 1, 0.6, 0.1)
    of_rule = cp.Annotations.from_matrix(np.column_stack([able, np.where(fires, 1, -1)]), abstain=[-1])
    assert not len(constant_workers(of_rule).workers)
    chosen = np.where(fires, 1, -1)
    assert not len(constant_workers(cp.Annotations.from_matrix(np.column_stack([able, chosen]))).workers)
    anywhere = np.where(rng.random(600) < 0.25, 1, -1)
    found = constant_workers(cp.Annotations.from_matrix(np.column_stack([able, anywhere])))
    assert found.workers.tolist() == [5]


def test_workers_with_few_annotations_are_constant_together():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    able = np.where(rng.random((300, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    few = np.full((300, 30), -1)
    for j in range(30):
        few[rng.choice(300, 6, replace=False), j] = 0
    found = constant_workers(cp.Annotations.from_matrix(np.column_stack([able, few])))
    assert set(found.workers) <= set(range(4, 34))
    assert len(found.workers) > 20


def test_a_lost_class_is_said_of_any_labels_and_not_where_nobody_agrees_on_it():
    annotations = drawn("plain", 0)
    without = np.resize([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0]], (annotations.n_tasks, 3))
    (finding,) = [one for code, one in found_of_crowd(annotations, without).items() if code == "lost_class"]
    assert finding.values["class"] == "2"
    assert finding.values["z"] == pytest.approx(agreement(annotations).z_by_class[2])
    shared = np.resize([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]], without.shape)  # as where votes have a share in the labels
    assert finding.values | {"tasks": 0} == found_of_crowd(annotations, shared)["lost_class"].values
    shuffled = annotations.replace(label=np.random.default_rng(0).permutation(annotations.label))
    assert "lost_class" not in found_of_crowd(shuffled, without)


def two_qualities(seed, share):
    """Eight judges in five levels, five of whom rate another quality than the others for a share of its variance."""
    rng = np.random.default_rng(seed)
    quality, other = rng.normal(size=(2, 250))
    rated = np.where(np.arange(8) < 5, share, 0.0)
    score = np.sqrt(1 - rated**2) * quality[:, None] + rated * other[:, None] + rng.normal(0, 0.4, (250, 8))
    levels = np.digitize(score, [-1.2, -0.4, 0.4, 1.2])
    return cp.Annotations.from_matrix(np.where(rng.random((250, 8)) < 0.6, levels, -1), ordered=True)


def test_families_who_rate_different_qualities_are_said_of_any_labels_and_none_of_healthy_crowds():
    for seed in range(4):
        finding = by_votes(two_qualities(seed, 0.8))["families"]
        assert sorted(map(sorted, finding.values["families"])) == [[0, 1, 2, 3, 4], [5, 6, 7]]
        assert finding.values["contradicted"] > 0.2
        assert "families" not in by_votes(two_qualities(seed, 0.0))
    assert not [shape for shape in HEALTHY for seed in range(3) if "families" in by_votes(drawn(shape, seed))]
    rng = np.random.default_rng(0)
    truth, right = rng.integers(3, size=300), np.where(np.arange(12) < 6, 0.95, 1 / 3)
    given = np.where(rng.random((300, 12)) < right, truth[:, None], rng.integers(3, size=(300, 12)))
    guessing = cp.Annotations.from_matrix(np.where(rng.random((300, 12)) < 0.4, given, -1))
    assert "families" not in by_votes(guessing)  # of whom two agree by chance


def test_families_that_the_story_knows_are_not_said():
    annotations = two_qualities(0, 0.8)
    names = {worker: "first" if worker < 5 else "second" for worker in annotations.workers}
    options = {"max_iterations": 5, "sweeps": 0, "progress": False}
    fit = cp.fit("dawid_skene", annotations, **options)
    knowing = cp.fit("dawid_skene", annotations, shared_error=True, worker_families=names, **options)
    assert [bool(findings_of(each, "families")) for each in (fit, knowing)] == [True, False]


@NEEDS_DATA
@pytest.mark.parametrize("name", REAL)
def test_real_crowds_agree_on_every_class_that_the_votes_give_some_tasks(name):
    found = agreement(cp.load_dataset(name))
    assert found.z > 20
    assert (found.z_by_class[found.votes >= 5] > 3).all()


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("story", ["majority_vote", "one_coin"])
def test_a_fit_says_that_its_crowd_guesses(story):
    with pytest.warns(cp.CrowdWarning, match="than if none of them looked"):
        fit = cp.fit(story, drawn("noise, 3 classes", 0).without_gold(), progress=False)
    assert len(findings_of(fit, "no_agreement")) == 1


def test_another_reading_is_said_where_a_majority_takes_one_class_for_another():
    annotations = drawn("wrong majority", 0)
    swallowed = np.eye(3)[[0, 2, 2]][annotations.gold] * 0.97 + 0.01
    finding = found_of_crowd(annotations, swallowed)["other_reading"]
    assert (finding.values["label"], finding.values["other"]) == ("2", "1")
    assert finding.values["tasks"] == pytest.approx((annotations.gold == 1).sum(), rel=0.3)
    assert finding.values["nats"] == pytest.approx(0, abs=0.05)  # EM does not stay at these labels
    assert "EM goes there from these labels" in finding.text
    right = np.eye(3)[annotations.gold] * 0.97 + 0.01
    assert "other_reading" not in found_of_crowd(annotations, right)


def test_votes_of_a_majority_that_takes_a_class_for_another_are_warned_of_and_those_of_healthy_crowds_are_not():
    found = []
    for seed in range(4):
        annotations = drawn("wrong majority", seed).without_gold()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = cp.fit("majority_vote", annotations, progress=False)
        found += findings_of(fit, "wrong_majority")
    assert len(found) >= 3
    assert {(one.values["label"], one.values["other"]) for one in found} == {("2", "1")}
    assert all(one.values["share"] > 0.7 * one.values["share_other"] for one in found)
    healthy = [by_votes(drawn(shape, seed)) for shape in HEALTHY for seed in range(2)]
    assert not any("wrong_majority" in codes for codes in healthy)


def test_another_reading_is_looked_for_by_labels_alone_also_of_comparisons():
    annotations = drawn("wrong majority", 0)
    sides = np.tile(np.array([[0, 1]], np.int32), (annotations.n_tasks, 1))
    compared = annotations.replace(kind=Pairwise(), sides=sides, items=Ids(["a", "b"]))
    swallowed = np.eye(3)[[0, 2, 2]][annotations.gold] * 0.97 + 0.01
    assert "other_reading" in found_of_crowd(compared, swallowed)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_another_reading_is_not_looked_for_where_features_had_a_part_in_the_labels():
    by_labels_alone = 0
    for seed in range(3):
        annotations = two_gaussians(seed)[0].without_gold()
        fit = cp.fit("difficulty", annotations, classifier="logistic", progress=False)
        assert not findings_of(fit, "other_reading")
        by_labels_alone += "other_reading" in found_of_crowd(annotations, np.asarray(fit.posterior))
    assert by_labels_alone  # by a story without features


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_another_reading_is_looked_for_where_workers_agree_on_it_by_little():
    annotations = drawn("wrong majority", 14).without_gold()
    with pytest.warns(cp.CrowdWarning, match="another reading of this crowd"):
        fit = cp.fit("dawid_skene", annotations, progress=False)
    (finding,) = findings_of(fit, "other_reading")
    assert 1.5 < finding.values["z"] < 3
    assert abs(finding.values["nats"]) < 5


@pytest.mark.parametrize("seed", [7, 14])
def test_another_reading_is_looked_for_beyond_contested_votes(seed):
    """Where Dawid and Skene's story stays with the wrong majority, from which the votes alone show no other reading."""
    codes = by_votes(drawn("wrong majority", seed))
    assert "other_reading" in codes
    assert "wrong_majority" not in codes


@pytest.mark.parametrize("shape", HEALTHY)
def test_right_labels_of_healthy_crowds_have_no_other_reading(shape):
    found = []
    for seed in range(20):
        annotations = drawn(shape, seed)
        n_classes = annotations.n_classes
        right = np.eye(n_classes)[annotations.gold] * 0.9 + 0.1 / n_classes
        found.append("other_reading" in found_of_crowd(annotations, right))
    assert sum(found) <= 2


@NEEDS_DATA
def test_labels_that_dawid_and_skene_read_otherwise_are_said_of_a_real_crowd():
    """Half of the annotators of *bluebird* take one bird for the other; one coin each follows them."""
    annotations = cp.load_dataset("bluebird").without_gold()
    with pytest.warns(cp.CrowdWarning, match="another reading of this crowd"):
        fit = cp.fit("one_coin", annotations, progress=False)
    assert len(findings_of(fit, "other_reading")) == 1
    assert not findings_of(cp.fit("dawid_skene", annotations, progress=False), "other_reading")


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_fit_of_files_says_that_it_did_not_look_at_the_crowd_where_another_engine_keeps_them(tmp_path, monkeypatch):
    drawn("plain", 0).to_frame().to_parquet(tmp_path / "crowd.parquet")
    scan = cp.scan(str(tmp_path / "crowd.parquet"))
    assert not findings_of(cp.fit("one_coin", scan, progress=False), "not_looked_at")
    monkeypatch.setattr("crowdppl.inference.sources.on_disk.Files.sample", lambda self, n_rows: None)
    fit = cp.fit("one_coin", scan, progress=False)
    (finding,) = findings_of(fit, "not_looked_at")
    assert finding.severity == "note"
    assert fit.verdict.trust == "unknown"
    assert "review" not in fit.workers


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_errors_that_workers_make_together_are_said_of_stories_that_take_them_for_independent():
    hard = [drawn("two difficulties", seed).without_gold() for seed in range(4)]

    def said(story, annotations, **options):
        fit = cp.fit(story, annotations, progress=False, **options)
        return [one for one in fit.findings.warnings if one.code == "err_together"]

    found = [said("dawid_skene", one) for one in hard]
    assert sum(map(bool, found)) >= 3
    assert all(f"{one.values['correlation']:.2f}" in one.text for (one,) in filter(None, found))
    assert not any(said("dawid_skene", one, task_difficulty=True) for one in hard[:2])
    assert not any(said("glad", one) for one in hard[:2])
    gold = pd.Series([hard[0].classes[int(k)] for k in drawn("two difficulties", 0).gold], list(hard[0].tasks))
    assert not said("dawid_skene", hard[0], gold=gold)


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_errors_that_workers_make_together_are_said_of_the_votes_and_not_where_these_are_unsure():
    crowds = [drawn("two difficulties", seed).without_gold() for seed in range(8)]
    hard = [cp.fit("majority_vote", one) for one in crowds]
    found = [one for fit in hard for one in findings_of(fit, "err_together")]
    assert len(found) >= 3
    assert all("the vote of most takes for agreement" in one.text for one in found)
    assert not any(findings_of(cp.fit("naive_soft", one), "err_together") for one in crowds)
    healthy = [drawn(shape, seed) for shape in ("plain", "dense", "rare class", "ten classes") for seed in range(5)]
    assert not any(findings_of(cp.fit("majority_vote", one), "err_together") for one in healthy)


def test_an_average_that_allows_for_errors_in_common_says_that_there_are_some():
    """Forms that a model filled in, right in .7, of which workers accept six of ten unread."""
    rng = np.random.default_rng(0)
    truth, n = rng.integers(0, 4, 500), 4
    filled = np.where(rng.random(500) < 0.7, truth, (truth + rng.integers(1, 4, 500)) % 4)
    worker = np.stack([rng.choice(12, n, replace=False) for _ in truth])
    own = np.where(rng.random((500, n)) < 0.85, truth[:, None], rng.integers(0, 4, (500, n)))
    label = np.where(rng.random((500, n)) < 0.6, filled[:, None], own)
    columns = {"task": np.repeat(np.arange(500), n), "worker": worker.ravel(), "label": label.ravel()}
    fit = cp.fit("auto", cp.Annotations.from_frame(pd.DataFrame(columns), ordered=False), progress=False)
    (note,) = [finding for finding in fit.findings if finding.code == "err_together"]
    confidence = fit.labels["probability"].mean()
    assert note.severity == "note"
    assert f"here they are {confidence:.2f}" in note.text
    assert note.values["confidence"] > confidence + 0.05
    assert fit.verdict.trust == "with care"


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_an_average_whose_weights_are_those_of_stories_of_independent_workers_warns_of_errors_in_common():
    found = []
    for seed in range(4):
        annotations = drawn("one class in doubt", seed)
        fit = cp.fit("auto", annotations.without_gold(), progress=False)
        for one in findings_of(fit, "err_together"):
            found.append(one)
            assert "for which these labels hardly allow" in one.text
            assert (fit.posterior.argmax(1) == np.asarray(annotations.gold)).mean() < fit.posterior.max(1).mean() - 0.08
            assert fit.verdict.trust == "with care"
    assert len(found) >= 3
    assert all(one.severity == "warning" for one in found)


def test_tasks_that_mislead_most_workers_are_said_where_shared_errors_explain_the_annotations_better():
    found = []
    for seed in range(4):
        annotations = drawn("misleading tasks", seed)
        fit = cp.fit("dawid_skene", annotations.without_gold(), sweeps=15, progress=False)  # as by default
        for one in findings_of(fit, "err_together"):
            found.append(one)
            right = (fit.posterior.argmax(1) == np.asarray(annotations.gold)).mean()
            assert one.values["confidence"] > right + 0.08
    assert len(found) >= 3
    assert all(one.severity == "warning" for one in found)
    assert any(one.values.get("gain", 0) >= 3 for one in found)


def test_independent_errors_are_not_taken_for_common_ones():
    crowds = [
        drawn(shape, seed) for shape in ("plain", "thin", "dense", "rare class", "ten classes") for seed in range(5)
    ]
    fits = [cp.fit("dawid_skene", one.without_gold(), progress=False) for one in crowds]
    assert sum("err_together" in {one.code for one in fit.findings} for fit in fits) <= 1


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
@pytest.mark.parametrize(
    ("story", "shape"),
    [("majority_vote", "pairs of classes"), ("one_coin", "pairs of classes"), ("majority_vote", "few experts")],
)
def test_labels_that_are_surer_than_workers_agree_are_said(story, shape):
    for seed in range(3):
        annotations = drawn(shape, seed)
        fit = cp.fit(story, annotations.without_gold(), progress=False)
        (finding,) = findings_of(fit, "overconfident")
        assert finding.severity == "warning"
        right = (fit.posterior.argmax(1) == np.asarray(annotations.gold)).mean()
        assert finding.values["confidence"] == pytest.approx(fit.posterior.max(1).mean())
        assert finding.values["confidence"] > right + 0.2
        assert finding.remedy.startswith("cp.fit('auto', …)")


def test_labels_that_are_right_more_often_than_they_are_sure_are_no_sign_of_errors_in_common():
    """Six judges who err independently, and a story that expects the truth to be no more than near what they share."""
    warned = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = rng.choice(5, 200, p=[0.1, 0.2, 0.3, 0.25, 0.15])
        noise = rng.normal(size=(200, 6)) * (0.5, 0.6, 0.8, 0.7, 1.2, 0.9)
        score = np.clip(np.rint(truth[:, None] + (0, 0.3, -0.3, 0.5, 0, -0.2) + noise), 0, 4).astype(int)
        fit = cp.fit("score_factor", cp.Annotations.from_matrix(score, ordered=True), progress=False)
        assert (fit.posterior.argmax(1) == truth).mean() > fit.posterior.max(1).mean() + 0.05
        warned += "err_together" in {one.code for one in fit.findings}
    assert warned <= 1


def test_a_tie_of_three_classes_leaves_votes_that_workers_are_asked_of():
    """Their shares are thirds in single precision, which no third in double precision is equal to."""
    frame = drawn("two difficulties", 1).without_gold().to_frame()
    tie = frame.head(3).assign(task="tied", worker=frame["worker"].unique()[:3], label=frame["label"].unique()[:3])
    with pytest.warns(cp.CrowdWarning, match="workers err together"):
        fit = cp.fit("majority_vote", pd.concat([frame, tie]))
    assert (np.asarray(fit.posterior) > 0).sum(1).max() == 3
    assert len(findings_of(fit, "err_together")) == 1


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_an_average_that_is_too_sure_is_not_told_to_be_averaged():
    annotations = drawn("pairs of classes", 0).without_gold()
    (finding,) = findings_of(cp.fit("auto", annotations, stories=["one_coin"], progress=False), "overconfident")
    assert finding.remedy.startswith("gold labels")


def test_probabilities_that_are_right_as_often_as_they_say_are_not_surer_than_workers_agree():
    for shape, seed in itertools.product(("plain, two classes", "few experts", "dense", "abstaining"), range(5)):
        annotations = drawn(shape, seed)
        truth, votes = np.asarray(annotations.gold), annotations.votes()
        tables = np.full((annotations.n_workers, votes.shape[1], votes.shape[1] + annotations.abstains), 1e-3)
        np.add.at(tables, (np.asarray(annotations.worker), truth[annotations.task], annotations.label), 1)
        log_likelihood = np.zeros(votes.shape)
        given = np.log(tables / tables.sum(-1, keepdims=True))[annotations.worker, :, annotations.label]
        np.add.at(log_likelihood, annotations.task, given)
        known = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
        assert "overconfident" not in found_of_crowd(annotations, known / known.sum(1, keepdims=True))
