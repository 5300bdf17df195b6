"""Findings on what the annotations alone do not tell, and silence where they do."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
from picked_findings import findings_of, found_of_crowd
from scipy.stats import dirichlet
from story_options import every_story

import crowdppl as cp


def crowd(accuracy, n_tasks=300, n_classes=2, per_task=None, seed=0):
    """Workers of given accuracies who annotate all tasks, or some of them; annotations and sure right labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random((n_tasks, len(accuracy))) < accuracy
    wrong = (truth[:, None] + rng.integers(1, n_classes, right.shape)) % n_classes
    task, worker = np.indices(right.shape).reshape(2, -1)
    label = np.where(right, truth[:, None], wrong).reshape(-1)
    kept = np.ones(len(task), bool)
    if per_task is not None:
        kept = rng.random(right.shape).argsort(1).argsort(1).reshape(-1) < per_task
    frame = pd.DataFrame({"task": task[kept], "worker": worker[kept], "label": label[kept]})
    return cp.Annotations.from_frame(frame), 0.9 * np.eye(n_classes)[truth] + 0.1 / n_classes


def test_a_plain_crowd_is_trusted():
    assert not found_of_crowd(*crowd([0.8, 0.7, 0.75, 0.6, 0.5]))
    assert not found_of_crowd(*crowd([0.6, 0.5, 0.7, 0.4], n_classes=4))


def test_workers_worse_than_chance_are_named_with_their_share():
    found = found_of_crowd(*crowd([0.9, 0.85, 0.8, 0.85, 0.1]))
    assert list(found) == ["below_chance"]
    assert found["below_chance"].values == {"workers": [4], "share": pytest.approx(0.2)}
    assert "cp.estimate(fit, gold)" in found["below_chance"].remedy


@pytest.mark.parametrize("story", every_story())
def test_every_story_says_that_a_part_of_the_crowd_is_worse_than_chance(story):
    """Two workers of ten name the other of two classes on nine tasks of ten."""
    annotations, posterior = crowd([0.9] * 8 + [0.1] * 2, n_tasks=60)
    rng = np.random.default_rng(2)
    features = posterior[:, :1] + rng.normal(0, 0.3, (60, 2))
    known = annotations.replace(features=features.astype(np.float32))
    with pytest.warns(cp.CrowdWarning, match="2 workers of 10, with 20% of the annotations"):
        fit = cp.fit(story, known, progress=False, max_iterations=200)
    (finding,) = findings_of(fit, "below_chance")
    assert finding.values["workers"] == [8, 9]


def test_two_namings_are_said_where_as_many_workers_are_able_either_way():
    annotations, posterior = crowd([0.85, 0.85, 0.15, 0.15])
    assert found_of_crowd(annotations, posterior)["two_namings"].values["classes"] == [0, 1]
    known = annotations.replace(evidence=np.where(posterior > 0.5, 0.0, -np.inf))
    assert "two_namings" not in found_of_crowd(known, posterior)


def test_neighbours_of_ordered_classes_are_not_taken_for_each_other_and_an_order_may_be_turned_round():
    """Four workers of six give noise: any two classes could be exchanged, and ordered ones only all together."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 4
    label = np.where(np.arange(6) < 2, truth[:, None], rng.integers(0, 4, (120, 6)))
    label[:, 1] = 3 - truth
    rows = pd.DataFrame(label).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    posterior = np.eye(4)[truth]
    nominal, ordered = (
        found_of_crowd(cp.Annotations.from_frame(rows, ordered=given), posterior)["two_namings"]
        for given in (False, True)
    )
    assert len(nominal.values["classes"]) == 2
    assert "the order of the classes from its reverse" in ordered.text
    label[:, 1] = truth
    rows["label"] = label.ravel()
    assert "two_namings" not in found_of_crowd(cp.Annotations.from_frame(rows, ordered=True), posterior)


def test_the_lead_of_a_naming_is_the_difference_of_the_log_densities_of_the_workers_tables():
    annotations, posterior = crowd([0.7, 0.65, 0.35], n_tasks=60)
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (annotations.worker, slice(None), annotations.label), posterior[annotations.task])
    tables = (counts + 1) / (counts + 1).sum(-1, keepdims=True)

    def log_density(tables):
        return sum(dirichlet.logpdf(table[k], 1 + np.eye(2)[k]) for table in tables for k in range(2))

    finding = found_of_crowd(annotations, posterior)["two_namings"]
    assert finding.values["nats"] == pytest.approx(log_density(tables) - log_density(tables[:, ::-1]), rel=1e-5)
    assert f"leads by {finding.values['nats']:.1f} nats" in finding.text


def test_a_crowd_of_pairs_leaves_prevalence_and_errors_open():
    pairs = found_of_crowd(*crowd([0.8] * 8, per_task=2))
    assert pairs["few_workers_a_task"].values == {"few": 300, "annotated": 300}
    assert not found_of_crowd(*crowd([0.8] * 8, per_task=3))


def test_three_workers_of_two_classes_explain_any_agreement_and_four_or_three_classes_do_not():
    annotations, posterior = crowd([0.8] * 3)
    assert found_of_crowd(annotations, posterior)["three_workers"].severity == "note"
    assert not found_of_crowd(*crowd([0.8] * 4))
    known = annotations.replace(evidence=np.where(posterior > 0.5, 0.0, -np.inf))
    assert "three_workers" not in found_of_crowd(known, posterior)
    three = cp.simulate("one_coin", n_tasks=100, n_workers=3, n_classes=3, seed=0)[0].without_gold()
    assert "three_workers" not in found_of_crowd(three, three.votes() / 3)


def test_what_three_workers_of_two_classes_give_is_explained_though_tasks_mislead_two_of_them():
    rng = np.random.default_rng(0)
    truth, misleads = rng.random(4_000) < 0.4, rng.random(4_000) < 0.2
    wrong = [misleads | (rng.random(4_000) < 0.15), misleads | (rng.random(4_000) < 0.15), rng.random(4_000) < 0.2]
    frame = pd.DataFrame({f"w{j}": (truth ^ errs).astype(int) for j, errs in enumerate(wrong)})
    fit = cp.fit("dawid_skene", cp.Annotations.from_matrix(frame), progress=False)
    prevalence, tables = (np.asarray(fit.parameters[name]) for name in ("prevalence", "confusion"))
    explained = np.einsum("k,ka,kb,kc->abc", prevalence, *tables)
    given = np.bincount(frame.to_numpy() @ [4, 2, 1], minlength=8).reshape(2, 2, 2) / len(frame)
    np.testing.assert_allclose(explained, given, atol=5e-3)
    assert fit.posterior.max(1).mean() > ((fit.posterior[:, 1] > 0.5) == truth).mean() + 0.1
    assert "three_workers" in {finding.code for finding in fit.findings}


def test_of_two_workers_nothing_tells_who_is_right_where_they_differ_unless_gold_labels_do():
    annotations, posterior = crowd([0.9, 0.6])
    found = found_of_crowd(annotations, posterior)
    differ = int(((annotations.votes() > 0).sum(1) > 1).sum())
    assert found["two_workers"].values == {"tasks": differ}
    assert f"two workers differ, on {differ:,} tasks" in found["two_workers"].text
    assert "few_workers_a_task" not in found
    assert "two_workers" not in found_of_crowd(*crowd([0.9, 0.6], n_tasks=4))  # as of any crowd so small
    known = annotations.replace(evidence=np.where(posterior > 0.5, 0.0, -np.inf))
    assert "two_workers" not in found_of_crowd(known, posterior)
    assert "two_workers" not in found_of_crowd(*crowd([0.9, 0.6], per_task=1))  # who share no task
    assert "two_workers" not in found_of_crowd(*crowd([0.9, 0.6, 0.7]))


def test_a_fit_of_two_workers_cannot_be_trusted_without_gold_labels():
    annotations, _ = crowd([0.9, 0.6])
    for story in ("dawid_skene", "majority_vote"):
        assert cp.fit(story, annotations, progress=False).verdict.trust == "no"
    assert cp.fit("dawid_skene", crowd([0.9, 0.6, 0.8])[0], progress=False).verdict.trust != "no"


def of_one_and_others(share, seed=0, n_tasks=400):
    """A worker on a share of the tasks, of which every second has another one too, and the others on two of these."""
    rng = np.random.default_rng(seed)
    truth, is_of_one = rng.integers(0, 2, n_tasks), rng.random(n_tasks) < share
    rows = [(task, "one") for task in np.flatnonzero(is_of_one)]
    for task in range(n_tasks):
        n = int(task % 2) if is_of_one[task] else 2
        rows += [(task, f"w{j}") for j in rng.choice(12, n, replace=False)]
    label = [int(truth[task] ^ (rng.random() < 0.2)) for task, _ in rows]
    frame = pd.DataFrame(rows, columns=["task", "worker"]).assign(label=label)
    annotations = cp.Annotations.from_frame(frame)
    return annotations, annotations.votes() / annotations.votes().sum(1, keepdims=True)


def test_a_worker_on_whom_most_labels_hang_is_named_with_the_share_and_the_number_of_tasks():
    annotations, posterior = of_one_and_others(0.9)
    finding = found_of_crowd(annotations, posterior)["hangs_on_one"]
    n = int((np.asarray(annotations.worker) == list(annotations.workers).index("one")).sum())
    share = n / annotations.n_annotations
    assert finding.values == {"worker": "one", "share": pytest.approx(share), "tasks": n, "annotated": 400}
    assert finding.text.startswith(f"'one' gave {share:.0%} of the annotations, and {n} of 400 labels hang")
    assert cp.fit("dawid_skene", annotations, progress=False).verdict.trust == "with care"
    hidden = cp.fit("dawid_skene", annotations, progress=False).pseudonymised(b"0" * 16)
    assert not any("'one'" in finding.sentence for finding in hidden.findings)


def test_nobody_is_named_who_gave_less_or_whose_tasks_others_annotated_too():
    assert "hangs_on_one" not in found_of_crowd(*of_one_and_others(0.4))
    assert "hangs_on_one" not in found_of_crowd(*crowd([0.8] * 6, per_task=2))
    annotations, posterior = crowd([0.8, 0.7, 0.75])
    again = annotations.to_frame().query("worker == 0")
    frame = pd.concat([annotations.to_frame(), again, again, again])  # who repeats gave no task more than others
    assert "hangs_on_one" not in found_of_crowd(cp.Annotations.from_frame(frame, repeats="keep"), posterior)
    known = of_one_and_others(0.9)
    evidence = np.where(known[1] == known[1].max(1, keepdims=True), 0.0, -np.inf)
    assert "hangs_on_one" not in found_of_crowd(known[0].replace(evidence=evidence), known[1])


def test_nobody_disagrees_and_nobody_meets():
    assert found_of_crowd(*crowd([1.0, 1.0, 1.0]))["nobody_disagrees"].values == {"tasks": 300}
    assert "nobody_meets" in found_of_crowd(*crowd([0.8, 0.8, 0.8], per_task=1))


@pytest.mark.parametrize("story", ["majority_vote", "dawid_skene", "auto"])
def test_labels_of_a_crowd_that_abstains_from_all_tasks_are_not_to_be_used(story):
    silent = cp.Annotations.from_dict(
        {f"t{i}": dict.fromkeys("abc", "skip") for i in range(20)}, abstain=["skip"], classes=["x", "y"]
    )
    fit = cp.fit(story, silent, progress=False)
    (finding,) = fit.findings.warnings
    assert finding.code == "nobody_meets"
    assert "all annotations are abstentions" in finding.text
    assert fit.verdict.trust == "no"


def test_nobody_knows_how_often_a_single_worker_errs():
    annotations, posterior = crowd([0.8])
    assert list(found_of_crowd(annotations, posterior)) == ["one_worker"]
    assert list(found_of_crowd(*crowd([0.8], n_tasks=3))) == ["one_worker"]  # of fewer tasks no more is known
    known = annotations.replace(evidence=np.where(posterior > 0.5, 0.0, -np.inf))
    assert "one_worker" not in found_of_crowd(known, posterior)


def test_of_a_crowd_on_few_tasks_nothing_is_said():
    assert not found_of_crowd(*crowd([0.1] * 4, n_tasks=19))


def test_groups_of_workers_who_share_no_task_are_counted():
    (first, a), (second, b) = crowd([0.8] * 4, n_tasks=200), crowd([0.8] * 4, n_tasks=100, seed=1)
    frames = [
        first.to_frame(),
        second.to_frame().assign(task=lambda f: f["task"] + 1000, worker=lambda f: f["worker"] + 9),
    ]
    annotations = cp.Annotations.from_frame(pd.concat(frames))
    groups = found_of_crowd(annotations, np.concatenate([a, b]))
    assert list(groups) == ["groups_apart"]
    assert groups["groups_apart"].values == {"groups": 2, "largest": pytest.approx(2 / 3)}


def test_a_fit_and_auto_warn_once_and_a_filter_of_the_engines_warnings_leaves_it():
    annotations, _ = crowd([0.8] * 6, per_task=2)
    for story in ("one_coin", "auto"):
        with pytest.warns(cp.CrowdWarning) as caught:
            fit = cp.fit(story, annotations, progress=False)
        said = [one.message.finding for one in caught if isinstance(one.message, cp.CrowdWarning)]
        assert [finding.code for finding in said] == ["few_workers_a_task"]
        assert findings_of(fit, "few_workers_a_task") == said
    with warnings.catch_warnings(record=True, action="always") as caught:
        warnings.simplefilter("ignore", cp.ConvergenceWarning)
        cp.fit("one_coin", annotations, progress=False)
    assert any(isinstance(one.message, cp.CrowdWarning) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.CrowdWarning)
        cp.fit("one_coin", crowd([0.8] * 6)[0], progress=False)


@pytest.mark.skipif("CROWDPPL_DATA" not in os.environ, reason="CROWDPPL_DATA names no folder of datasets")
@pytest.mark.parametrize(
    "name",
    ["bluebird", "dog", "rte", "trec", "adult", "product", "sentiment", "weather_amt", "movie_sp", "labelme", "music"],
)
def test_open_crowds_are_trusted_but_for_what_their_gold_labels_show(name):
    annotations = cp.load_dataset(name)
    votes = annotations.votes() + 1e-9
    found = found_of_crowd(annotations, votes / votes.sum(1, keepdims=True)).values()
    said = [finding.code for finding in found if finding.severity == "warning"]
    # a quarter of trec's annotations; a quarter of bluebird's votes are wrong, and a ninth of Dawid and Skene's labels
    assert said == {"trec": ["constant_workers"], "bluebird": ["wrong_majority"]}.get(name, [])


def test_gold_that_contradicts_a_unanimous_crowd_is_named():
    rows = [(task, worker, "yes" if task % 2 else "no") for task in range(8) for worker in range(4)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    with pytest.warns(cp.CrowdWarning, match="gold label of the task 3"):
        fit = cp.fit("dawid_skene", annotations, gold={0: "no", 3: "no", 5: "no"}, progress=False)
    (finding,) = findings_of(fit, "contradicted_gold")
    assert (finding.about, finding.values) == ("gold", {"task": 3, "gold": "no", "given": "yes", "tasks": 2})
    agreed = cp.fit("dawid_skene", annotations, gold={0: "no", 3: "yes"}, progress=False)
    assert not findings_of(agreed, "contradicted_gold")


def labelling_functions(seed=0, n_tasks=400):
    """Nine functions that give one class each, more often to tasks of that class; −1 where they abstain."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)
    own = np.arange(9) % 3
    fires = rng.random((n_tasks, 9)) < np.where(truth[:, None] == own, 0.5, 0.15)
    return np.where(fires, own, -1)


def test_labelling_functions_of_one_class_each_need_their_abstentions():
    matrix = labelling_functions()
    with pytest.warns(cp.CrowdWarning):
        silent = cp.fit("dawid_skene", cp.Annotations.from_matrix(matrix), progress=False)
    (finding,) = findings_of(silent, "one_class_each")
    assert finding.values == {"workers": list(range(9)), "share": 1.0}
    assert "name them by abstain=[...]" in finding.remedy
    named = cp.Annotations.from_matrix(matrix, abstain=[-1])
    with pytest.warns(cp.CrowdWarning):
        told = cp.fit("dawid_skene", named, abstentions="uninformative", progress=False)
    (finding,) = findings_of(told, "one_class_each")
    assert finding.remedy.startswith("fit without abstentions=")
    assert "one_class_each" not in found_of_crowd(named, np.full((400, 3), 1 / 3))


def test_whoever_gave_one_annotation_or_two_is_no_labelling_function():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    rows = [(i, f"few {j}", int(truth[i])) for i in range(200) for j in rng.integers(300, size=3)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert "one_class_each" not in found_of_crowd(annotations, np.eye(2)[truth])


def test_nobody_is_told_to_leave_out_the_abstentions_of_labelling_functions_of_one_class_each():
    named = cp.Annotations.from_matrix(labelling_functions(), abstain=[-1])
    with pytest.warns(cp.ConvergenceWarning, match="decides the labels"):
        fit = cp.fit("dawid_skene", named, progress=False)
    (finding,) = findings_of(fit, "abstentions_decide")
    assert "the majority vote" in finding.remedy
    assert not any("uninformative" in text for text in fit.warnings)


def test_a_worker_who_always_gives_the_same_class_is_no_labelling_function():
    annotations, posterior = crowd([0.8, 0.7, 0.75, 0.6])
    frame = annotations.to_frame()
    always = pd.DataFrame({"task": annotations.tasks[:], "worker": "always", "label": 1})
    found = found_of_crowd(cp.Annotations.from_frame(pd.concat([frame, always])), posterior)
    assert list(found) == ["constant_workers"]
