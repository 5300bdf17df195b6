"""The verdict: trust by the findings, doubtful labels and where they lie, whom to review, and what to do next."""

import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_fits import changed

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.findings.look import look_at
from crowdppl.inference.findings.review import UNTOLD, reviewed
from crowdppl.inference.findings.verdict import HEADLINES, SHOWN, UNSEEN, verdict
from crowdppl.inference.fitted.by_rule import ByRule
from crowdppl.inference.fitted.posterior import Posterior

N_TASKS, N_WORKERS = 120, 12


def table(accuracy: float, *, n_spammers: int = 0, seed: int = 0) -> pd.DataFrame:
    """120 tasks × 5 of three classes; the first workers draw a class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, N_TASKS)
    wrong = (truth[:, None] + rng.integers(1, 3, (N_TASKS, N_WORKERS))) % 3
    label = np.where(rng.random(wrong.shape) < accuracy, truth[:, None], wrong)
    label[:, :n_spammers] = rng.integers(0, 3, (N_TASKS, n_spammers))
    task, worker = np.nonzero(rng.random(label.shape).argsort(1).argsort(1) < 5)
    names = np.array(["cat", "dog", "owl"])
    return pd.DataFrame({"task": task, "worker": [f"w{j:02}" for j in worker], "label": names[label[task, worker]]})


@pytest.fixture(scope="module")
def healthy():
    return cp.fit("dawid_skene", table(0.85, n_spammers=2), progress=False)


@pytest.fixture(scope="module")
def noise():
    with pytest.warns(cp.CrowdWarning):
        return cp.fit("dawid_skene", table(1 / 3), progress=False)


def test_labels_that_lost_a_class_and_are_sure_all_the_same_cannot_be_trusted():
    annotations = cp.Annotations.from_frame(table(0.85))
    votes = annotations.votes()
    for kept, sure, trust in ((2, 0.97, "no"), (2, 0.62, "with care"), (3, 0.97, "yes")):
        posterior = np.full((N_TASKS, 3), (1 - sure) / (kept - 1))
        posterior[:, kept:] = 0.0
        posterior[np.arange(N_TASKS), votes[:, :kept].argmax(1)] = sure
        rule = ByRule("given", annotations, posterior)
        found = verdict(Posterior.of(replace(rule, findings=look_at(rule))))
        assert (found.trust, any("lost the class 'owl'" in why for why in found.why)) == (trust, kept == 2)


def test_a_class_that_looks_like_an_abstention_asks_for_care_and_says_the_option():
    rows = table(0.85)
    rows.loc[rows.index % 7 == 0, "label"] = "Abstain"
    with pytest.warns(AnnotationWarning, match="counts as a class"):
        as_class = cp.fit("dawid_skene", rows, progress=False)
    (finding,) = [each for each in as_class.findings if each.code == "class_of_none"]
    assert finding.values == {"classes": ["Abstain"]}
    assert finding.severity == "note"
    assert as_class.verdict.trust == "with care"
    assert [why for why in as_class.verdict.why if "abstain=['Abstain']" in why]
    read = cp.Annotations.from_frame(rows, abstain=["Abstain"])
    for story in ("dawid_skene", "majority_vote"):
        found = cp.fit(story, read, progress=False).findings
        assert "class_of_none" not in {each.code for each in found}


def test_names_that_differ_by_slips_alone_ask_for_care_and_say_the_option():
    rows = table(0.85)
    rows.loc[rows.index % 3 == 0, "label"] = rows["label"] + " "
    rows.loc[(rows.index % 2 == 0) & (rows["worker"] == "w03"), "worker"] = "W03"
    with pytest.warns(AnnotationWarning, match="tidy=True"):
        annotations = cp.Annotations.from_frame(rows)
    for story in ("one_coin", "majority_vote"):
        fit = cp.fit(story, annotations, progress=False)
        found = [each for each in fit.findings if each.code == "names_alike"]
        assert [each.severity for each in found] == ["note", "note"]
        assert sorted(map(sorted, found[0].values["classes"])) == [[name, f"{name} "] for name in ("cat", "dog", "owl")]
        assert sorted(found[1].values["workers"][0]) == ["W03", "w03"]
        assert all("tidy=True" in each.remedy for each in found)
        assert fit.verdict.trust == "with care"
    tidy = cp.fit("one_coin", cp.Annotations.from_frame(rows, tidy=True), progress=False)
    assert "names_alike" not in {each.code for each in tidy.findings}


def test_trust_is_by_the_findings(healthy, noise):
    assert healthy.verdict.trust == "yes"
    assert not healthy.warnings
    assert noise.verdict.trust == "no"
    assert [each.code for each in noise.findings.warnings if each.short in noise.verdict.why]


@pytest.mark.parametrize("story", ["dawid_skene", "majority_vote"])
def test_where_nobody_agrees_it_is_said_that_nothing_is_told_of_workers(story):
    with pytest.warns(cp.CrowdWarning):
        fit = cp.fit(story, table(1 / 3), progress=False)
    assert (fit.workers["reason"] == UNTOLD).all()
    assert not fit.workers["review"].any()
    (said,) = fit.verdict.workers
    assert "agree no more than by chance" in said
    assert "review" not in fit.summary().facts


def test_a_warning_that_leaves_labels_of_use_asks_for_care():
    few = table(0.85).groupby("task").head(2)  # two annotations a task
    with pytest.warns(cp.CrowdWarning):
        fit = cp.fit("dawid_skene", few, progress=False)
    assert fit.verdict.trust == "with care"
    assert len(fit.verdict.why) == len(fit.findings.warnings)


def test_gold_labels_that_the_fit_does_not_use_speak_for_or_against_it(healthy):
    labels = healthy.labels["label"]
    first = list(labels.index[:40])
    other = {"cat": "dog", "dog": "owl", "owl": "cat"}

    def trusted(n_wrong: int, **options) -> cp.Verdict:
        gold = {task: other[labels[task]] if i < n_wrong else labels[task] for i, task in enumerate(first)}
        annotations = healthy.annotations.with_gold(gold)
        return cp.fit("dawid_skene", annotations, progress=False, **options).verdict

    assert trusted(0).trust == trusted(1).trust == "yes"
    care, no = trusted(6), trusted(20)
    assert care.trust == "with care"
    assert re.match(r"Of 40 gold tasks fewer are right than the probabilities say, 0\.9", care.why[0])
    assert care.why[1].startswith("Accuracy 0.8500 (")
    assert no.trust == "no"
    assert no.why[1].startswith("Accuracy 0.5000 (")
    assert re.match(r"By the gold tasks the probabilities are too high by 4\d percentage points", no.labels[0])
    assert not any("By the gold tasks" in said for said in trusted(0).labels)
    assert UNSEEN in healthy.verdict.why
    assert UNSEEN not in trusted(0).why
    few = healthy.annotations.with_gold({task: other[labels[task]] for task in first[:5]})
    assert cp.fit("dawid_skene", few, progress=False).verdict.trust == "yes"  # too few to speak
    assert not any("the probabilities say" in why for why in trusted(20, gold=True).why)  # known labels: no measure


def test_a_promise_that_is_hardly_more_than_is_right_does_not_speak_against_labels():
    """Of so many tasks any difference is beyond chance; by two percentage points and more it matters to a reader."""
    n, n_wrong = 20_000, 500
    label = np.where(np.arange(n) % 2, "a", "b")
    rows = pd.DataFrame(
        {"task": np.tile(np.arange(n), 2), "worker": np.repeat(["v", "w"], n), "label": np.tile(label, 2)}
    )
    annotations = cp.Annotations.from_frame(rows)
    gold = dict(enumerate(np.where(np.arange(n) < n_wrong, np.where(label == "a", "b", "a"), label)))
    fit = cp.fit("one_coin", annotations.with_gold(gold), progress=False)
    is_a = (label == "a")[:, None] == [True, False]
    near, far = (changed(fit, stored_posterior=np.where(is_a, p, 1 - p)) for p in (0.985, 0.9999))
    assert not any("the probabilities say" in why for why in near.verdict.why)
    assert any("the probabilities say, 0.9999" in why for why in far.verdict.why)


def test_labels_of_which_most_are_doubtful_ask_for_care(healthy):
    doubtful = cp.fit("dawid_skene", table(0.6), sweeps=15, progress=False)
    assert not doubtful.warnings
    assert (doubtful.labels["probability"] < 0.9).mean() > 0.5
    assert doubtful.verdict.trust == "with care"
    assert doubtful.verdict.why[0] == "Most labels are doubtful."  # their number is said of the labels
    assert not any("Most labels" in why for why in healthy.verdict.why)


def test_where_a_third_of_the_labels_is_doubtful_their_share_is_in_the_heading(healthy, tmp_path):
    """Of able workers who gave few annotations each, labels are right as often as they say, and many are in doubt."""
    rows = table(0.75)
    few = rows[rows.groupby("task").cumcount() < 4]
    in_memory = cp.fit("one_coin", few, progress=False)
    folder = tmp_path / "few"
    folder.mkdir()
    from_files = cp.fit("one_coin", by_table(few, folder), progress=False)
    for fit in (in_memory, from_files):
        share = (in_memory.labels["probability"] < 0.9).mean()
        assert 0.2 <= share <= 0.5
        assert fit.verdict.trust == "yes"
        assert fit.verdict.doubtful == pytest.approx(share)
        assert f"{share:.0%} of its labels are doubtful" in fit.verdict.headline
        assert next(iter(fit.verdict.sections)) == fit.verdict.headline != healthy.verdict.headline
    assert healthy.verdict.doubtful < 0.2
    assert replace(healthy.verdict, doubtful=0.199).headline == healthy.verdict.headline
    assert "20%" in replace(healthy.verdict, doubtful=0.2).headline
    assert replace(in_memory.verdict, trust="with care").headline == HEADLINES["with care"]


@pytest.mark.parametrize(("n_guessing", "trust"), [(1, "yes"), (6, "with care")])
def test_many_annotations_of_workers_to_be_reviewed_ask_for_care(n_guessing, trust):
    verdict = cp.fit("dawid_skene", table(0.95, n_spammers=n_guessing), progress=False).verdict
    assert verdict.trust == trust
    assert any("to be reviewed gave" in line for line in verdict.why) == (trust == "with care")


def test_noise_on_few_tasks_which_is_a_note_asks_for_care():
    rng = np.random.default_rng(1)
    rows = [(t, w, "ab"[rng.integers(2)]) for t in range(20) for w in rng.choice(12, 5, replace=False)]
    annotations = cp.Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    fit = cp.fit("dawid_skene", annotations, progress=False)
    (noted,) = [each for each in fit.findings if each.code == "no_agreement"]
    assert noted.severity == "note"
    assert fit.verdict.trust == "with care"
    assert noted.short in fit.verdict.why


def test_a_vote_that_is_right_of_more_gold_tasks_is_said():
    frame = table(0.85)
    fit = cp.fit("dawid_skene", frame, progress=False, diagonal=1.0, off_diagonal=50.0)
    votes = frame.groupby("task")["label"].agg(lambda given: given.mode()[0])
    told = cp.fit(
        "dawid_skene", fit.annotations.with_gold(votes.to_dict()), progress=False, diagonal=1.0, off_diagonal=50.0
    )
    assert told.verdict.trust != "yes"
    assert any(why.startswith("Majority vote is right of ") for why in told.verdict.why)


def test_doubtful_labels_are_counted_as_the_summary_counts_them(noise):
    unsure = (noise.labels["probability"] < 0.9).sum()
    first, between, *_, last = noise.verdict.labels
    assert first.startswith(f"{unsure:,} of {N_TASKS:,} labels")
    assert sum(int(each.rstrip("),. ").rpartition("(")[2]) for each in between.split("), ")) == unsure
    most = noise.labels["probability"].sort_values(kind="stable").index[:SHOWN]
    assert last.partition(": ")[2].startswith(", ".join(map(str, most)))


def test_workers_have_the_reasons_of_the_table(healthy):
    found = reviewed(healthy)
    assert set(found.index) == {"w00", "w01"}
    said = " ".join(healthy.verdict.workers)
    assert all(f"{name}: {reason}" in said for name, reason in healthy.workers.loc[found.index, "reason"].items())


def test_commands_are_of_the_folder_and_the_shell_reads_it_back(healthy):
    commands = list(healthy.verdict.commands("my fit"))
    names = ("next-gold", "estimate", "report")
    assert [shlex.split(each)[1:3] for each in commands] == [[name, "my fit"] for name in names]
    assert 'cp.gold_page(fit, "gold.html", 20)' in str(healthy.verdict)
    assert all(shlex.split(each)[2] == "./-x y" for each in healthy.verdict.commands("-x y"))


def test_nothing_is_asked_of_tasks_whose_true_labels_are_known():
    frame = table(0.85)
    annotations = cp.Annotations.from_frame(frame, gold=dict.fromkeys(range(N_TASKS), "cat"))
    fit = cp.fit("majority_vote", annotations, progress=False)
    assert [step.command.split()[1] for step in fit.verdict.next] == ["report"]
    assert any("gold" in line for line in fit.verdict.why)


def test_without_names_nobody_is_reviewed():
    frame = table(0.85)
    fit = cp.fit("majority_vote", cp.Annotations.from_frame(frame[["task", "label"]], worker=None), progress=False)
    assert len(fit.verdict.workers) == 1
    assert fit.verdict.sections["Labels"][0]


def by_table(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return cp.scan(folder / "rows.parquet")


@pytest.mark.parametrize("shape", ["able", "noise", "constant", "copies"])
def test_files_have_the_findings_and_reviews_that_they_have_in_memory(shape, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(400, 1))
    label = np.where(rng.random((400, 5)) < (0.5 if shape == "noise" else 0.85), truth, 1 - truth)
    if shape == "constant":
        label[:, 4] = 0
    if shape == "copies":
        label[:, 3:] = label[:, 2:3]
    task, worker = np.indices(label.shape)
    frame = pd.DataFrame({"task": task.ravel(), "worker": worker.ravel(), "label": label.ravel()})
    from_files = cp.fit("dawid_skene", by_table(frame, tmp_path), progress=False)
    here = cp.fit(
        "dawid_skene", cp.Annotations.from_frame(frame), constant_workers="keep", copies="keep", progress=False
    )
    assert from_files.verdict.trust == here.verdict.trust
    assert from_files.verdict.workers == here.verdict.workers
    assert [each.code for each in from_files.findings] == [each.code for each in here.findings]
    pd.testing.assert_frame_equal(from_files.workers[["review", "reason"]], here.workers[["review", "reason"]])


def test_of_many_rows_in_files_a_sample_is_looked_at(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    task, worker = np.indices((3_000, 5))
    truth = rng.integers(2, size=(3_000, 1))
    label = np.where(worker == 4, 0, np.where(rng.random(worker.shape) < 0.85, truth, 1 - truth))
    frame = pd.DataFrame({"task": task.ravel(), "worker": worker.ravel(), "label": label.ravel()})
    monkeypatch.setattr("crowdppl.inference.fitted.fitted.LOOKED_AT", 5_000)
    monkeypatch.setattr("crowdppl.data.store.BLOCK", 710)  # of tasks, over whose bounds a run goes
    fit = cp.fit("dawid_skene", by_table(frame, tmp_path), progress=False)
    assert fit.verdict.trust == "with care"
    assert "4: gives 0 whatever the task; 3,000 annotations." in fit.verdict.workers  # all, and not the sample's
    (said,) = [why for why in fit.verdict.why if "of 3,000 tasks" in why]
    sample = fit.fitted.in_memory.annotations
    assert f"{sample.n_tasks:,}" in said
    assert 4_000 < sample.n_rows <= 5_000
    rows = frame.set_index(["task", "worker"])["label"]
    assert (
        sample.to_frame().set_index(["task", "worker"])["label"]
        == rows.reindex(sample.to_frame().set_index(["task", "worker"]).index)
    ).all()


def test_a_share_of_gold_labels_that_the_fit_was_told_is_no_reason(healthy):
    gold = healthy.labels["label"].head(40).to_dict()
    annotations = healthy.annotations.with_gold(gold)
    told, kept = (cp.fit("dawid_skene", annotations, gold=use, progress=False).verdict for use in (True, None))
    assert not any("gold task" in why for why in told.why)
    assert any("on 40 gold tasks" in why for why in kept.why)


def test_a_stop_within_the_name_of_a_class_ends_no_reason():
    rng = np.random.default_rng(0)
    given = rng.integers(0, 2, (60, 7))
    given[:, :4] = 0
    table = pd.DataFrame(given).stack().reset_index().set_axis(["task", "worker", "label"], axis=1)
    table["label"] = table["label"].map({0: "Art. 5", 1: "Art. 6"})
    fit = cp.fit("dawid_skene", table, progress=False)
    assert any("'Art. 5'" in reason for reason in fit.verdict.why)
    assert all(reason.endswith(".") for reason in fit.verdict.why)
