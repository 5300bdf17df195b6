"""Constant workers are left out of a fit, named, and kept where they are asked for."""

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import constants
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.findings import constant_workers as module
from crowdppl.inference.findings.constant_workers import constant_workers
from crowdppl.inference.fitted.counted_as_one import are_left_out
from crowdppl.inference.report.story_sections import quantities

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning", "ignore::crowdppl.ConvergenceWarning")


@pytest.fixture(scope="module")
def crowd():
    return constants(0.5)(np.random.default_rng(0))


def accuracy(fit, crowd):
    return (fit.posterior.argmax(1) == np.asarray(crowd.gold)).mean()


def test_the_report_has_no_parameters_of_those_left_out_who_have_the_priors(crowd):
    fit = cp.fit("glad", crowd.without_gold(), progress=False)
    gone = are_left_out(fit.fitted)
    assert {crowd.workers[int(j)] for j in np.flatnonzero(gone)} == set(range(10))
    ((table, caption),) = (
        found for found in quantities(fit.fitted, list(fit.parameters), derived=False) if "ability" in found[1]
    )
    assert "workers who were left out" in caption
    assert (table["ability"].isna() == gone).all()
    kept = cp.fit("glad", crowd.without_gold(), constant_workers="keep", progress=False)
    assert not are_left_out(kept.fitted).any()


@pytest.mark.parametrize("story", ["dawid_skene", "glad"])
def test_labels_follow_the_others_where_constant_workers_are_left_out(story, crowd):
    fit = cp.fit(story, crowd.without_gold(), progress=False)
    kept = cp.fit(story, crowd.without_gold(), constant_workers="keep", progress=False)
    (finding,), (of_kept,) = findings_of(fit, "constant_workers"), findings_of(kept, "constant_workers")
    assert finding.values["left_out"]
    assert "constant_workers='keep'" in finding.remedy
    assert sorted(finding.values["workers"]) == sorted(of_kept.values["workers"]) == list(range(10))
    assert finding.values["share"] == of_kept.values["share"]
    assert "left_out" not in of_kept.values
    assert accuracy(fit, crowd) > accuracy(kept, crowd) + 0.1
    names = np.array(list(crowd.workers))[np.asarray(crowd.worker)]
    without = cp.fit(story, crowd.without_gold().rows(names >= 10), progress=False)
    np.testing.assert_array_equal(fit.posterior, without.posterior)
    scores = fit.workers.drop(columns=["annotations", "review", "reason"])
    assert scores.loc[finding.values["workers"]].isna().all(None)  # and not the prior's
    assert scores["accuracy"].notna().sum() == crowd.n_workers - 10
    assert fit.annotations.n_annotations == round(crowd.n_annotations * (1 - finding.values["share"]))


def test_they_are_looked_for_once_for_all_fits_of_annotations_and_what_follows_from_these(monkeypatch):
    looks = []
    look = module._constant
    monkeypatch.setattr(module, "_constant", lambda *given: looks.append(given) or look(*given))
    annotations = cp.simulate("one_coin", n_tasks=40, n_workers=6, seed=0)[0].without_gold()
    fits = [cp.fit(story, annotations, progress=False) for story in ("one_coin", "dawid_skene")]
    assert all(fit.annotations is annotations for fit in fits)
    assert [len(fit.workers) for fit in fits] == [6, 6]
    assert len(looks) == 1


def test_an_average_says_it_once_and_so_does_its_folder(crowd, tmp_path):
    with pytest.warns(cp.CrowdWarning) as caught:
        fit = cp.fit("auto", crowd.without_gold(), progress=False)
    (finding,) = findings_of(fit, "constant_workers")
    assert [one.message.finding for one in caught if one.message.finding.code == finding.code] == [finding]
    assert finding.story == ""
    fit.save(tmp_path / "fit")
    assert findings_of(cp.load_fit(tmp_path / "fit"), "constant_workers") == [finding]


def test_who_was_left_out_stays_so_when_a_fit_is_updated(crowd):
    frame = crowd.without_gold().to_frame()
    first = cp.Annotations.from_frame(frame[frame["task"] < 200], classes=["0", "1"])
    updated = cp.fit("one_coin", first, progress=False).update(frame[frame["task"] >= 200], progress=False)
    again = cp.fit("one_coin", first.joined(frame[frame["task"] >= 200]), progress=False)
    np.testing.assert_allclose(updated.posterior, again.posterior, atol=0.01)
    (finding,) = findings_of(updated, "constant_workers")
    assert finding.values["left_out"]


def test_who_was_left_out_and_gives_other_classes_since_counts_in_an_update_with_a_warning(crowd):
    frame = crowd.without_gold().to_frame()
    fit = cp.fit("one_coin", frame, progress=False)
    (finding,) = findings_of(fit, "constant_workers")
    back, *others = finding.values["workers"]
    more = pd.DataFrame({"task": [f"new {i}" for i in range(40)], "worker": back, "label": ["0", "1"] * 20})
    with pytest.warns(AnnotationWarning, match="fit everything anew by cp.fit") as caught:
        updated = fit.update(more, progress=False)
    assert any(repr(back) in str(one.message) for one in caught)
    place = list(updated.annotations.workers).index(back)
    assert updated.annotations.n_by_worker()[place] == len(more)
    assert updated.workers["annotations"][back] == len(more) + (frame["worker"] == back).sum()
    (finding,) = findings_of(updated, "constant_workers")
    assert finding.values["workers"] == others


def test_a_few_constant_workers_stay_with_a_note():
    crowd = constants(0.1)(np.random.default_rng(0)).without_gold()
    fit = cp.fit("one_coin", crowd, progress=False)
    (finding,) = findings_of(fit, "constant_workers")
    assert (finding.severity, "left_out" in finding.values) == ("note", False)
    assert fit.annotations.n_annotations == crowd.n_annotations


def test_another_rule_and_fits_that_have_all_annotations_refuse_the_option(crowd, tmp_path):
    with pytest.raises(cp.UnknownNameError, match="constant_workers"):
        cp.fit("one_coin", crowd, constant_workers="drop")
    with pytest.raises(ValueError, match="constant_workers='keep': majority_vote has no likelihood"):
        cp.fit("majority_vote", crowd, constant_workers="keep")
    crowd.to_frame().to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="constant_workers='keep': a scan has all annotations"):
        cp.fit("one_coin", cp.scan(str(tmp_path / "a.parquet")), constant_workers="keep", progress=False)


def rubric(seed, constant=None):
    """Workers who are right on 60 to 95 % of the tasks of three questions with other shares, else by habits of theirs.

    Args:
        seed: of the draw.
        constant: by worker and question what is given whatever the task.
    """
    rng = np.random.default_rng(seed)
    rows, right, constant = [], rng.uniform(0.6, 0.95, 6), constant or {}
    for question, n_classes in (("safe", 2), ("tone", 4), ("fit", 3)):
        shares = rng.dirichlet(np.full(n_classes, 2.0))
        habits = rng.dirichlet(np.full(n_classes, 2.0), 6)
        for i in range(60):
            z = rng.choice(n_classes, p=shares)
            for j in range(6):
                y = z if rng.random() < right[j] else rng.choice(n_classes, p=habits[j])
                rows.append((f"t{i}", f"w{j}", question, f"{question}{constant.get((j, question), y)}"))
    table = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    classes = {name: [f"{name}{k}" for k in range(n)] for name, n in (("safe", 2), ("tone", 4), ("fit", 3))}
    return cp.Annotations.from_frame(table, question="question", classes=classes)


def test_who_is_constant_on_one_question_is_named_with_it_and_left_out_there_alone():
    annotations = rubric(3, {(0, "tone"): 1})
    found = constant_workers(annotations)
    assert [(w, annotations.classes[k], annotations.questions[q]) for w, k, q in zip(*found[:3], strict=True)] == [
        (0, "tone1", "tone")
    ]
    assert (found.share, found.most) == (pytest.approx(1 / 18), pytest.approx(1 / 6))
    fit = cp.fit("one_coin", annotations, progress=False)
    (finding,) = findings_of(fit, "constant_workers")
    assert finding.values["questions"] == ["tone"]
    assert "'tone1' on 'tone' by 1" in finding.text
    assert fit.annotations.n_annotations == annotations.n_annotations - 60
    assert "gives 'tone1' on 'tone' whatever the task" in fit.workers.loc["w0", "reason"]
    assert fit.workers["accuracy"].notna().all()  # the other questions tell
    table = annotations.to_frame()
    updated = fit.update(table[table["task"] == "t0"].assign(task="new"), progress=False)
    assert updated.annotations.n_annotations == fit.annotations.n_annotations + 17


def test_who_is_constant_on_all_questions_is_so_on_each():
    always = {(0, "safe"): 1, (0, "tone"): 2, (0, "fit"): 0}
    for seed in range(5):
        found = constant_workers(rubric(seed, always))
        assert set(found.workers) <= {0}
        assert len(found.workers) > 1


def test_healthy_rubrics_have_no_constant_workers():
    # Of 400 rubrics of two to six questions, three to twelve workers and 20 to 300 tasks, two had one.
    assert sum(bool(len(constant_workers(rubric(seed)).workers)) for seed in range(20)) <= 1


def test_scores_of_those_left_out_are_missing_where_workers_have_a_quality_on_each_question():
    fit = cp.fit("one_coin", rubric(3, {(0, "tone"): 1}), quality="by_question", progress=False)
    missing = fit.workers["accuracy"].isna()
    assert missing[missing].index.tolist() == [("w0", "tone")]


def rows(n, rates, labels, seed=0):
    """By task and worker a label, or an abstention: −1, of two classes with the shares .5."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    able = {
        f"able{j}": np.where(rng.random(n) < 0.5, np.where(rng.random(n) < 0.75, truth, 1 - truth), -1) for j in "abcd"
    }
    one = {f"one{j}": np.where(rng.random(n) < rates[truth], labels, -1) for j in "abcd"}
    gold = dict(enumerate(truth.tolist()))
    return cp.Annotations.from_matrix(pd.DataFrame(able | one), abstain=[-1], gold=gold)


def test_who_gives_one_class_to_any_half_of_the_tasks_is_constant():
    crowd = rows(1_000, np.array([0.5, 0.5]), 0)
    found = constant_workers(crowd)
    assert [crowd.workers[int(j)] for j in found.workers] == ["onea", "oneb", "onec", "oned"]
    fit = cp.fit("dawid_skene", crowd.without_gold(), progress=False)
    kept = cp.fit("dawid_skene", crowd.without_gold(), constant_workers="keep", progress=False)
    assert accuracy(fit, crowd) > accuracy(kept, crowd) + 0.1


@pytest.mark.parametrize(("n", "rates"), [(1_000, [0.6, 0.3]), (1_000, [0.04, 0.02]), (60, [0.5, 0.5])])
def test_who_abstains_is_not_constant_where_the_tasks_are_chosen_or_too_few_tell(n, rates):
    assert not len(constant_workers(rows(n, np.array(rates), 0)).workers)


def test_abstentions_that_say_nothing_leave_the_constant_workers_that_there_are_without_them():
    there = rows(60, np.array([0.5, 0.5]), 0).without_gold()
    gone = cp.Annotations.from_frame(there.to_frame().query("label != -1"))
    assert not len(constant_workers(there).workers)
    silent = cp.fit("one_coin", there, abstentions="uninformative", sweeps=0, progress=False)
    other = cp.fit("one_coin", gone, sweeps=0, progress=False)
    for fit in (silent, other):
        (finding,) = findings_of(fit, "constant_workers")
        assert sorted(finding.values["workers"]) == ["onea", "oneb", "onec", "oned"]
    same = other.probabilities.loc[silent.probabilities.index.intersection(other.probabilities.index)]
    pd.testing.assert_frame_equal(silent.probabilities.loc[same.index], same, atol=1e-3)


def test_whoever_gives_a_rare_class_where_others_give_it_looks_at_the_tasks():
    rng = np.random.default_rng(0)
    is_rare = rng.random(1000) < 0.02
    table = {f"able {k}": np.where(rng.random(1000) < np.where(is_rare, 0.8, 0.01), "fraud", "fine") for k in range(3)}
    other = {"other classes": np.where(rng.random(1000) < 0.6, "fine", "pass")}
    annotations = cp.Annotations.from_matrix(pd.DataFrame(table | other))
    assert not len(constant_workers(annotations).workers)
    labels = cp.fit("dawid_skene", annotations, progress=False).labels["label"]
    assert ((labels == "fraud") == is_rare).mean() > 0.99
