"""The page as a whole: what is in it, that it stands alone, and that no name can break it."""

import base64
import hashlib
import io
import re
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from made_fits import changed, made_fit
from report_pages import CLASSES, EVIL, TASKS, WORKERS, Page

import crowdppl as cp
from crowdppl.data.harmless_csv import harmless
from crowdppl.inference.densities.evidence import with_evidence
from crowdppl.inference.findings.of_draws import smallest_ess, worst_rhat
from crowdppl.inference.findings.of_prior import worker_prior
from crowdppl.inference.fitted.intervals import jeffreys
from crowdppl.inference.report import label_sections as labels
from crowdppl.inference.report import worker_section as workers
from crowdppl.inference.report.story_sections import convergence_section
from crowdppl.inference.report.subject import Subject, subject
from crowdppl.inference.report.trust_sections import checks_in_words
from crowdppl.inference.report.worker_section import agreement_section
from crowdppl.inference.report.write import report
from crowdppl.inference.scores.label_scores import score


def test_the_page_is_well_formed_and_its_contents_lead_to_its_sections(evil_page):
    ids = [e["id"] for e in evil_page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    links = [e["href"] for e in evil_page.all("a") if "nav" in e["inside"]]
    sections = [e["id"] for e in evil_page.all("section")]
    assert links == [f"#{one}" for one in sections]
    expected = ["labels", "votes", "workers", "agreement", "gold", "checks", "next", "data", "prior", "story"]
    assert sections == [*expected, "reproduce", "convergence"]
    headings = evil_page.all("h1", "h2", "h3")
    assert [e["tag"] for e in headings].count("h1") == 1
    assert headings[0]["tag"] == "h1"
    for e in evil_page.elements:
        assert e.get("aria-labelledby", ids[0]) in ids
    assert evil_page.all("html")[0]["lang"] == "en"


def test_pictures_say_what_they_show(evil_page):
    images = evil_page.all("img")
    assert len(images) >= 8
    for image in images:
        assert len(image["alt"]) > 20
    alts = " ".join(image["alt"] for image in images)
    assert "Accuracy of all 5 workers" in alts
    assert "Confusion matrices of 2 groups" in alts


def test_nothing_refers_to_anything_outside(evil_page):
    for element in evil_page.elements:
        assert element["tag"] not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "srcset", "poster", "action", "background"):
            assert element.get(name, "#").startswith(
                ("#", "data:image/svg+xml;base64,", "data:image/png;base64,", "data:text/csv;charset=utf-8;base64,")
            )
        assert "url(" not in element.get("style", "")
        assert not [name for name in element if name.startswith("on")]
    style = evil_page.all("style")[0]["text"]
    assert not re.search(r"url\(|@import|https?:", style)
    (script,) = evil_page.scripts
    assert not re.search(
        r"https?:|fetch|XMLHttp|import\b|eval|innerHTML|outerHTML|insertAdjacent|document\.write", script
    )
    for image in evil_page.all("img"):
        kind, _, data = image["src"].partition(";base64,")
        if kind == "data:image/svg+xml":
            drawing = base64.b64decode(data).decode("utf-8")
            links = re.findall(r"""(?:href|src)\s*=\s*["']([^"']*)""", drawing) + re.findall(r"url\(([^)]*)", drawing)
            assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
            assert "<script" not in drawing.lower()


def test_the_coefficients_of_agreement_are_those_of_the_fit_with_what_it_says_beside(evil_fit, evil_page):
    heads, *rows = evil_page.table("Agreement of the crowd")
    found = cp.agreement(evil_fit.annotations, evil_fit, draws=200)
    shown = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    numbers = re.findall(r"\d\.\d+", shown["Krippendorff's alpha"]["estimate"])
    assert numbers == [f"{value:.3f}" for value in found.table.loc["alpha", ["estimate", "low", "high"]]]
    assert float(shown["Fleiss' kappa"]["even classes"]) == pytest.approx(
        found.table.loc["fleiss_kappa", "even_classes"], abs=0.0006
    )
    assert sorted(row[0] for row in evil_page.table("By worker")[1:]) == sorted(WORKERS)


def test_annotations_of_which_no_two_share_a_task_have_no_section_on_agreement():
    annotations = cp.Annotations.from_dict({"a": {"x": 0}, "b": {"y": 1}})
    fit = cp.fit("majority_vote", annotations, progress=False)
    assert agreement_section(subject(fit, None, None, 0)) is None


def test_names_are_text_wherever_they_stand(evil_page):
    assert len(evil_page.scripts) == 1
    assert len(evil_page.all("script")) == 3  # and the details of tasks and of workers, which are data
    assert evil_page.comments == []
    assert not evil_page.all("i", "b")
    assert evil_page.all("title")[0]["text"] == evil_page.all("h1")[0]["text"] == f"{EVIL} & more"
    labels = evil_page.table("Labels")
    assert sorted(row[0] for row in labels[1:]) == sorted(TASKS)
    assert {row[labels[0].index("label")] for row in labels[1:]} <= set(CLASSES)
    assert sorted(row[0] for row in evil_page.table("Workers’ scores")[1:]) == sorted(WORKERS)
    assert [row[0] for row in evil_page.table("Classes")[1:]] == CLASSES


def test_only_the_page_s_own_script_may_run(evil_page):
    policy = next(e["content"] for e in evil_page.all("meta") if e.get("http-equiv") == "Content-Security-Policy")
    digest = hashlib.sha256(evil_page.scripts[0].encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'")


def test_labels_are_those_of_the_fit_the_most_uncertain_first_with_annotations_and_gold(evil_fit, evil_page):
    heads, *rows = evil_page.table("Labels")
    expected = evil_fit.labels.sort_values("entropy", ascending=False, kind="stable")
    assert [row[0] for row in rows] == list(map(str, expected.index))
    assert [row[heads.index("label")] for row in rows] == list(expected["label"])
    shown = [float(row[heads.index("probability")]) for row in rows]
    np.testing.assert_allclose(shown, expected["probability"], atol=0.00051)
    other = {CLASSES[0]: CLASSES[1], CLASSES[1]: CLASSES[0]}
    second = [
        f"{other[label]} {1 - p:.3f}" for label, p in zip(expected["label"], expected["probability"], strict=True)
    ]
    assert [row[heads.index("runner-up")] for row in rows] == second
    by_task = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    assert by_task["t9"]["annotations"] == "none"
    assert by_task["t9"]["gold"] == "–"
    votes = dict(zip(TASKS, evil_fit.annotations.votes(), strict=True))
    for task in TASKS[:-1]:
        n = dict(zip(CLASSES, votes[task], strict=True))
        words = [word.partition(" ×") for word in by_task[task]["annotations"].split(", ")]
        assert {name: int(times or 1) for name, _, times in words} == {name: v for name, v in n.items() if v}
    for i, task in enumerate(TASKS[:6]):
        assert by_task[task]["gold"] == CLASSES[i % 2]
        assert by_task[task]["right"] == ("yes" if by_task[task]["label"] == CLASSES[i % 2] else "no")


def test_a_click_on_a_task_shows_its_probabilities_and_who_gave_which_annotation(evil_fit, evil_page):
    found = evil_page.details["task"]
    shown = [row[0] for row in evil_page.table("Labels")[1:]]
    assert len(found["rows"]) == len(shown)
    annotations = evil_fit.annotations
    assert found["kinds"] == CLASSES
    names = found["workers"]
    accuracies = dict(zip(names, found["accuracies"], strict=True))
    for worker in WORKERS:
        assert accuracies[worker] == pytest.approx(evil_fit.workers["accuracy"][worker], abs=0.0006)
    for task, (probabilities, given, more, scores) in zip(shown, found["rows"], strict=True):
        at = TASKS.index(task)
        by_class = {CLASSES[k]: p for k, p in probabilities}
        np.testing.assert_allclose([by_class[name] for name in CLASSES], evil_fit.posterior[at], atol=0.0006)
        rows = np.flatnonzero(np.asarray(annotations.task) == at)
        expected = {(WORKERS[annotations.worker[row]], CLASSES[annotations.label[row]]) for row in rows}
        assert {(names[worker], CLASSES[kind]) for kind, _, worker in given} == expected
        assert more == 0
        assert len(scores) == len(found["scores"]) == 3


def test_a_click_on_a_worker_shows_the_confusion_matrix_with_bounds_and_annotations_to_look_at(evil_fit, evil_page):
    found = evil_page.details["worker"]
    shown = [row[0] for row in evil_page.table("Workers’ scores")[1:]]
    table = evil_fit.confusions(interval=0.9).set_index(["worker", "truth", "annotation"])
    labels = evil_fit.labels
    for worker, (matrix, scores, examples) in zip(shown, found["rows"], strict=True):
        rows = [table.loc[(worker, k, given)] for k in CLASSES for given in CLASSES]
        expected = [[row["probability"] for row in rows], [row["low"] for row in rows], [row["high"] for row in rows]]
        np.testing.assert_allclose(np.array(matrix) / 100, expected, atol=0.0051)
        assert len(scores) == len(found["scores"])
        for task, kind, label, probability in examples:
            assert CLASSES[label] == labels["label"][task] != CLASSES[kind]
            assert probability == pytest.approx(evil_fit.probabilities.loc[task, CLASSES[kind]], abs=0.0006)


def test_majority_votes_stand_beside_the_labels(evil_fit, evil_page):
    heads, *rows = evil_page.table("Tasks by label and majority vote")
    found = {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}
    votes, labels = evil_fit.annotations.votes(), evil_fit.posterior.argmax(-1)
    one = (votes.max(-1) > 0) & ((votes == votes.max(-1, keepdims=True)).sum(-1) == 1)
    same = one & (votes.argmax(-1) == labels)
    gold = evil_fit.annotations.gold
    counts = {"the label’s class": same, "another class": one & ~same, "no annotation of a class": votes.sum(-1) == 0}
    assert set(found) == {name for name, which in counts.items() if which.any()}
    for name, row in found.items():
        assert int(row["tasks"]) == counts[name].sum()
        assert int(row["gold tasks"]) == (counts[name] & (gold >= 0)).sum()
        assert int(row["labels right"]) == (counts[name] & (gold >= 0) & (labels == gold)).sum()


def test_labels_and_workers_can_be_downloaded_as_the_fit_has_them(evil_fit, evil_page):
    links = {e["download"]: e["href"].partition(",")[2] for e in evil_page.all("a") if "download" in e}
    files = {name: base64.b64decode(data).decode("utf-8") for name, data in links.items()}
    labels = pd.read_csv(io.StringIO(files["labels.csv"].removeprefix("\ufeff")), index_col="task", dtype={"task": str})
    assert list(labels.index) == [str(harmless(task)) for task in TASKS]
    np.testing.assert_allclose(labels["probability"], evil_fit.labels["probability"], rtol=1e-5)
    np.testing.assert_allclose(labels[[f"p_{name}" for name in CLASSES]], evil_fit.posterior, rtol=1e-5, atol=1e-9)
    workers = pd.read_csv(io.StringIO(files["workers.csv"].removeprefix("\ufeff")), index_col="worker")
    np.testing.assert_allclose(workers["accuracy_low"], evil_fit.workers["accuracy_low"], rtol=1e-5)
    assert set(evil_fit.workers.columns) <= set(workers.columns)


def test_the_prior_is_in_numbers_beside_the_annotations(em_fits, tmp_path):
    fit = em_fits["dawid_skene"]
    page = Page(report(fit, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    heads, *rows = page.table("Prior and annotations of a worker")
    prior = worker_prior(fit.fitted)
    by_row = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    assert float(by_row["median"]["annotations that a worker gave"]) == 12
    for name, at in (("least", 0), ("median", 0.5), ("most", 1)):
        counts = float(by_row[name]["pseudo-annotations that the prior counts like"])
        assert counts == pytest.approx(np.quantile(prior.weight, at), abs=0.05)
        share = float(by_row[name]["share of the prior in what is known of a worker"])
        assert share == pytest.approx(np.quantile(prior.weight / (prior.weight + 12), at), abs=0.0006)


def test_the_appendix_has_r_hat_and_effective_sample_sizes_of_chains_and_their_ranks(em_fits, tmp_path):
    rng = np.random.default_rng(0)
    fit = em_fits["one_coin"]
    draws = {name: np.clip(rng.beta(8, 2, (2, 100, *v.shape[2:])), 0.01, 0.99) for name, v in fit.outcome.draws.items()}
    for name, value in draws.items():
        draws[name] = (value / value.sum(-1, keepdims=True)).astype(np.float32)
    outcome = fit.outcome._replace(draws=draws, stats={"diverging": np.zeros((2, 100), bool)}, history=np.zeros(0))
    sampled = changed(fit, method="nuts", outcome=outcome)
    about = Subject(sampled, {"one_coin": sampled.fitted}, None, 0)
    page = Page(str(convergence_section(about).html))
    heads, *rows = page.table("R̂ and effective sample sizes by parameter")
    rhat, where = worst_rhat(sampled.fitted.named_draws)
    ess, _ = smallest_ess(sampled.fitted.named_draws)
    found = [dict(zip(heads, row, strict=True)) for row in rows]
    worst = max(found, key=lambda row: float(row["largest R̂"]))
    assert (float(worst["largest R̂"]), worst["of"]) == (pytest.approx(rhat, abs=0.0006), where)
    smallest = min(float(row[kind]) for row in found for kind in ("smallest bulk ESS", "smallest tail ESS"))
    assert smallest == pytest.approx(ess, abs=0.51)
    assert where in " ".join(image["alt"] for image in page.all("img"))


def test_a_page_without_chains_says_why_there_is_no_r_hat(em_fits, evil_fit):
    for fit, said in (
        (em_fits["one_coin"], "EM ends at one point"),
        (evil_fit, "independent draws of one approximation"),
    ):
        about = Subject(fit, {fit.story: fit.fitted}, None, 0)
        section = convergence_section(about)
        content = " ".join(section.content.split())
        assert said in content
        assert "This is about the computation alone" in content


def test_workers_gold_scores_and_derived_quantities_are_those_of_the_fit(evil_fit, evil_page):
    heads, *rows = evil_page.table("Workers’ scores")
    scores = evil_fit.workers.sort_values("accuracy_low", ascending=False, kind="stable")
    assert [row[0] for row in rows] == list(scores.index)
    value = scores.iloc[0]
    assert rows[0][heads.index("accuracy")] == (
        f"{value['accuracy']:.3f} {value['accuracy_low']:.3f}–{value['accuracy_high']:.3f}"
    )
    heads, row, majority = evil_page.table("Scores on gold tasks")
    scored = score(evil_fit)
    assert row[heads.index("tasks")] == "6"
    low, high = jeffreys(6 * scored["accuracy"], 6, 0.9)
    assert row[heads.index("accuracy")] == f"{scored['accuracy']:.3f} {low:.3f}–{high:.3f}"
    assert majority[0] == "majority vote"
    votes = evil_fit.annotations.votes()[:6]
    best = votes == votes.max(-1, keepdims=True)
    expected = (best / best.sum(-1, keepdims=True))[range(6), evil_fit.annotations.gold[:6]].mean()
    assert float(majority[heads.index("accuracy")].split()[0]) == pytest.approx(expected, abs=0.0005)
    assert majority[heads.index("log score")] == "–"
    heads, *rows = evil_page.table("Derived quantities: group_entropy, group_share, group_similarity")
    shares = [float(row[heads.index("group share")].split()[0]) for row in rows]
    np.testing.assert_allclose(shares, evil_fit.derived["group_share"], atol=0.00051)
    confusion = evil_page.table("Gold tasks by gold label")
    assert sum(int(cell) for row in confusion[1:] for cell in row[1:]) == 6


def test_warnings_stand_at_the_top_in_words(evil_fit, tmp_path):
    texts = ("the <first> thing", "the second thing")
    warned = changed(evil_fit, findings=tuple(cp.Finding("x", "draws", "warning", text) for text in texts))
    page = Page(report(warned, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    first = page.all("ol")[0]
    assert first["text"].startswith("Warnings of the fitThe <first> thing.The second thing.")
    shown = [e["text"] for e in page.all("p") if e.get("class") == "warning"]
    assert shown[:2] == ["⚠ the <first> thing", "⚠ the second thing"]
    assert "checks" not in [e["id"] for e in page.all("section")]
    assert "engine gave no warnings" not in " ".join(e["text"] for e in page.all("header", "section"))


def test_the_same_input_gives_the_same_bytes(evil_fit, evil_path, tmp_path):
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red"}):  # whatever style the reader has
        again = report(evil_fit, str(tmp_path / "again.html"), title=f"{EVIL} & more")
    assert again.read_bytes() == evil_path.read_bytes()


def test_the_page_of_a_stack_says_which_stories_it_averages_and_which_elpd_is_unreliable(em_stack, tmp_path):
    page = Page(report(em_stack, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    heads, *rows = page.table("Stories, the best first")
    assert rows[0][:2] == ["one_coin", "-20.50 ± 3.00"]
    assert rows[1][heads.index("n high k")] == "3"
    assert page.table("Stories that do not fit these data")[1] == ["two_coin", "of two classes, and there are 3"]
    said = " ".join(e["text"] for e in page.all("p"))
    assert "dawid_skene: the leave-one-out elpd is unreliable for 3 units with a high Pareto k (up to 1.25)" in said
    assert "80% one_coin, 20% dawid_skene" in said
    heads, *rows = page.table("Labels")
    shown = {row[0]: float(row[heads.index("probability")]) for row in rows}
    posterior = 0.2 * em_stack.fits["dawid_skene"].posterior + 0.8 * em_stack.fits["one_coin"].posterior
    np.testing.assert_allclose([shown[str(i)] for i in range(12)], posterior.max(-1), atol=0.00051)
    code = page.all("pre")[0]["text"]
    assert "cp.stack(fits, weights={'dawid_skene': 0.2, 'one_coin': 0.8})" in " ".join(code.split())


def test_the_page_of_auto_says_what_it_averages_and_its_code_gives_the_same_labels(tmp_path):
    annotations = cp.simulate("two_coin", n_tasks=30, n_workers=5, seed=0, gold=0.0)[0]
    auto = cp.fit("auto", annotations, progress=False)
    page = Page(auto.report(tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    average = next(e for e in page.all("section") if e["id"] == "comparison")["text"]
    assert (
        f"averages of these stories, by these weights, and of the votes, which count for {auto.mean_votes:.0%}"
        in average
    )
    assert re.search(r"allow for [1-5]\.\d% of tasks that mislead the whole crowd", average)
    story = next(e for e in page.all("section") if e["id"] == "story")["text"]
    assert f"This section is about {auto.weights.idxmax()}, the story with the highest weight" in story
    names = {"annotations": annotations}
    exec(page.all("pre")[0]["text"], names)
    np.testing.assert_allclose(names["stack"].probabilities, auto.probabilities, rtol=1e-14)


def test_a_long_page_says_what_it_leaves_out_and_where_that_is(em_fits, tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "ALL_TASKS", 11)
    monkeypatch.setattr(labels, "MOST_UNCERTAIN", 3)
    monkeypatch.setattr(workers, "MOST_WORKERS", 2)
    fit = em_fits["dawid_skene"]
    page = Page(report(fit, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    uncertain = fit.labels.sort_values("entropy", ascending=False, kind="stable").index[:3]
    assert [row[0] for row in page.table("Labels")[1:]] == list(map(str, uncertain))
    assert len(page.table("Workers’ scores: 2 of 4")) == 3
    said = " ".join(e["text"] for e in page.all("p"))
    assert "the 3 of 12 labels that are most uncertain; fit.labels" in said
    assert "the 2 of 4 workers with the most annotations; fit.workers" in said


def test_unnamed_workers_with_counts_have_a_page_without_scores(tmp_path):
    counts = np.array([[5, 1, 0], [0, 7, 2], [1, 1, 6], [3, 3, 0]])
    annotations = cp.Annotations.from_counts(counts)
    fit = cp.fit("annotator_groups", annotations, groups=1, max_iterations=20, progress=False)
    page = Page(report(fit, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    workers = next(e for e in page.all("section") if e["id"] == "workers")
    assert "name no workers" in workers["text"]
    assert {row[0]: row[1] for row in page.table("Labels")[1:]}["1"] == "1 ×7, 2 ×2"
    assert "gold" not in [e["id"] for e in page.all("section")]


def test_labels_of_comparisons_name_the_better_item(tmp_path):
    """The table had the sides alone, and the items of a task only in its name."""
    rows = [(*pair, worker, "left") for pair in (("a", "b"), ("c", "b"), ("a", "c")) for worker in "xyz"]
    pairs = cp.Annotations.from_comparisons(pd.DataFrame(rows, columns=["left", "right", "worker", "label"]))
    fit = cp.fit("majority_vote", pairs, progress=False)
    page = Page(report(fit, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    heads, *rows = page.table("Labels")
    assert sorted(row[heads.index("better")] for row in rows) == sorted(fit.labels["better"]) == ["a", "a", "c"]


def test_gold_labels_given_to_the_report_are_those_that_it_scores_by(em_fits, tmp_path):
    fit = em_fits["dawid_skene"]
    gold = {i: i % 3 for i in range(5)}
    page = Page(report(fit, tmp_path / "page.html", gold=gold, checks=False).read_text(encoding="utf-8"))
    heads, row, _ = page.table("Scores on gold tasks")
    right = np.mean([fit.labels["label"][i] == g for i, g in gold.items()])
    assert float(row[heads.index("accuracy")].split()[0]) == pytest.approx(right, abs=0.0005)
    assert fit.annotations.gold is None  # the fit is as it was


def test_gold_labels_that_the_fit_was_given_are_not_scored(em_fits, tmp_path):
    fit = em_fits["dawid_skene"]
    given = changed(fit, source=with_evidence(fit.annotations.with_gold({0: 0, 1: 1}), gold=True))
    page = Page(report(given, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    section = next(e for e in page.all("section") if e["id"] == "gold")
    assert "the fit used all of them" in section["text"]
    reproduce = next(e for e in page.all("section") if e["id"] == "reproduce")
    assert "evidence on 2 tasks" in reproduce["text"]


@pytest.mark.parametrize(
    ("p_values", "said"),
    [
        ([0.005, 0.4], "name: posterior predictive check failed: agreement (p = 0.005)."),
        ([0.0001, 0.04], "name: posterior predictive checks failed: agreement (p = 0.0001), shares (p = 0.040)."),
        ([0.05, 0.4], "name: all 2 posterior predictive checks passed (p ≥ 0.05)."),
    ],
)
def test_failed_checks_are_named_with_their_p_values(p_values, said):
    table = pd.DataFrame({"p_value": p_values}, index=["agreement", "shares"])
    assert checks_in_words(SimpleNamespace(table=table), "name") == said


def test_the_page_says_how_many_labels_are_certain(em_fits, tmp_path):
    fit = em_fits["dawid_skene"]
    n = int((fit.posterior.max(-1) >= 0.9).sum())
    page = Page(report(fit, tmp_path / "page.html", checks=False).read_text(encoding="utf-8"))
    labels = next(e for e in page.all("section") if e["id"] == "labels")
    which = "All 12" if n == 12 else f"{n} of 12"
    assert f"{which} labels have probability ≥ 0.9." in labels["text"]


@pytest.mark.slow
def test_two_thousand_tasks_and_three_hundred_workers_are_less_than_five_megabytes(em_fits, tmp_path):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(2000), 10)
    columns = {"task": task, "worker": rng.integers(0, 300, 20_000), "label": rng.integers(0, 6, 20_000)}
    annotations = cp.Annotations.from_frame(pd.DataFrame(columns), gold=dict(enumerate(rng.integers(0, 6, 2000))))
    fit = made_fit(em_fits["dawid_skene"], annotations, draws=20)
    path = report(changed(fit, method="svi"), tmp_path / "page.html")
    assert path.stat().st_size < 5_000_000
    page = Page(path.read_text(encoding="utf-8"))
    assert len(page.table("Labels")) == 2001
    assert len(page.table("Workers’ scores")) == 301
