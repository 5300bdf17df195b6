"""cp.judge: what it says of judges, copies, systems and gold labels, the page, and the command."""

import json
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl
from report_pages import Page

import crowdppl as cp
from crowdppl.inference.panel.systems import scores_of_classes, system_scores

ACCURACY = {"a": 0.9, "b": 0.85, "c": 0.8, "d": 0.75, "guess": 0.5}
N_TASKS = 400


def judged(seed=0):
    """A long table of five judges and a copy of b, of four systems whose answers are right more or less often."""
    rng = np.random.default_rng(seed)
    system = np.arange(N_TASKS) % 4
    truth = (rng.random(N_TASKS) < np.array([0.85, 0.6, 0.45, 0.2])[system]).astype(int)
    right = rng.random((N_TASKS, len(ACCURACY))) < list(ACCURACY.values())
    given = pd.DataFrame(np.where(right, truth[:, None], 1 - truth[:, None]), columns=list(ACCURACY))
    given["copy of b"] = given["b"]
    given["model"] = [f"model {s}" for s in system]
    table = given.rename_axis("task").reset_index().melt(["task", "model"], var_name="worker", value_name="label")
    return table.assign(label=table["label"].map({0: "fail", 1: "pass"})), np.array(["fail", "pass"])[truth]


@pytest.fixture(scope="module")
def crowd():
    return judged()


@pytest.fixture(scope="module")
def panel(crowd):
    table, truth = crowd
    known = {int(task): truth[task] for task in np.random.default_rng(1).choice(N_TASKS, 100, replace=False)}
    with pytest.warns(cp.CrowdWarning, match="copies"):
        return cp.judge(table, known, system="model", story="majority_vote", n_gold=7)


def test_judges_are_ordered_by_what_gold_labels_say_of_them(panel, crowd):
    _, truth = crowd
    assert list(panel.judges.index)[-1] == "guess"
    table = crowd[0].set_index(["worker", "task"])["label"]
    for name, row in panel.judges.iterrows():
        right = (table[name].to_numpy() == truth).mean()
        assert row["gold_right_low"] <= right <= row["gold_right_high"], name
        assert row["n_gold"] == 100
    assert {"sensitivity", "specificity", "kappa", "n_effective"} <= set(panel.judges)
    best = panel.judges["gold_right"].idxmax()
    assert repr(best) in panel.sentences[1]


def test_copies_and_those_who_guess_are_named_with_the_reason(panel):
    assert sorted(panel.copies.loc[0, "judges"]) == ["b", "copy of b"]
    assert panel.copies.loc[0, ["same", "tasks"]].tolist() == [1.0, N_TASKS]
    assert len(panel.drop.index.intersection(["b", "copy of b"])) == 1
    assert "100%" in panel.drop.loc[panel.drop.index.intersection(["b", "copy of b"])[0], "reason"]
    assert not set(panel.drop.index) & {"a", "c"}
    assert panel.alerts[0][2] == "copies"


@pytest.mark.slow
def test_judges_who_may_outvote_the_rest_and_labels_that_gold_speaks_against_are_to_act_on(tmp_path):
    """Two of five judges are one model: what others say does not tell whether they are copies, and gold labels do."""
    rng = np.random.default_rng(3)
    truth = rng.choice([1, 2, 3, 4, 5], 300, p=[0.08, 0.17, 0.3, 0.3, 0.15])

    def scores(noise, shift=0.0):
        return np.clip(np.round(truth + rng.normal(0, noise, 300) + shift), 1, 5).astype(int)

    base = scores(1.1)
    copied = np.where(rng.random(300) < 0.06, scores(1.1), base)
    judges = {"a": scores(0.7, 0.3), "b": scores(0.7, -0.2), "c": base, "d": copied, "e": rng.choice([3, 4], 300)}
    gold = {int(i): int(truth[i]) for i in rng.choice(300, 40, replace=False)}
    panel = cp.judge(cp.Annotations.from_matrix(pd.DataFrame(judges)), gold=gold, progress=False)
    titles = [title for title, _, _ in panel.alerts]
    assert any("less often right" in title for title in titles)
    (told,) = [texts for _, texts, place in panel.alerts if place == "copies"]
    assert len(panel.copies) == 0
    assert "'c' and 'd'" in told[0]
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    (section,) = [element for element in page.all("section") if element["id"] == "copies"]
    assert told[0] in section["text"]
    assert "No group" not in section["text"]


def test_systems_are_ranked_by_the_share_of_the_class_that_counts(panel):
    assert list(panel.systems.index) == [f"model {i}" for i in range(4)]
    assert panel.system_score == "share of 'pass'"
    expected = panel.fit.probabilities["pass"].to_numpy().reshape(-1, 4).mean(0)
    np.testing.assert_allclose(panel.systems["score"], expected)
    assert panel.systems["rank"].tolist() == [1, 2, 3, 4]
    assert panel.systems["best"].sum() == pytest.approx(1, abs=0.01)
    assert panel.systems["best"].iloc[0] > 0.95


def test_gold_labels_judge_labels_that_were_not_told_them(panel, crowd):
    right = (panel.fit.labels["label"].to_numpy() == crowd[1]).mean()
    assert panel.estimate.accuracy["low"] <= right <= panel.estimate.accuracy["high"]
    assert panel.fit.annotations.gold is None
    assert len(panel.next_gold) == 7
    assert not set(panel.next_gold["task"]) & {t for t, g in zip(range(N_TASKS), panel.gold, strict=True) if g >= 0}
    assert panel.gold_needed.pilot == 100


def test_the_page_has_the_figures_and_leads_to_its_sections(panel, tmp_path):
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    sections = [e["id"] for e in page.all("section")]
    assert sections == ["judges", "copies", "drop", "systems", "human_labels", "gold", "agreement", "labels"]
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    assert {e["href"] for e in page.all("a") if e.get("href", "").startswith("#")} <= {f"#{one}" for one in ids}
    heads, *rows = page.table("Judges")
    assert [row[0] for row in rows] == list(panel.judges.index)
    first = rows[0][heads.index("gold right")].split()[0]
    assert float(first) == pytest.approx(panel.judges["gold_right"].iloc[0], abs=0.0006)
    assert page.table("By judge")[0][0] == "judge"
    assert page.table("Cohen’s kappa by pair")[0][:2] == ["judge", "other"]
    named = [e["text"] for e in page.all("dt", "h2", "figcaption")]
    assert "judges" in named
    assert not any("worker" in one for one in named)
    assert [row[0] for row in page.table("Systems")[1:]] == list(panel.systems.index)


def test_the_picture_of_the_judges_has_the_figures_and_the_order_of_their_table(panel, crowd, tmp_path):
    without = cp.judge(crowd[0][crowd[0]["worker"] != "copy of b"], story="dawid_skene")
    for judged, by in ((panel, "gold_right"), (without, "right")):
        ax = judged._draw_judges(by)
        dots, (lines,) = ax.collections[-1], [one for one in ax.collections if hasattr(one, "get_segments")]
        drawn = dots.get_offsets()[::-1]
        np.testing.assert_allclose(drawn[:, 0], judged.judges[by])
        np.testing.assert_allclose(
            np.array(lines.get_segments())[::-1, :, 0], judged.judges[[f"{by}_low", f"{by}_high"]]
        )
        assert [text.get_text() for text in ax.get_yticklabels()][::-1] == list(judged.judges.index)
        plt.close(ax.figure)
        page = Page(judged.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
        alt = next(e["alt"] for e in page.all("img"))
        assert ("gold" in alt) == (by == "gold_right")


def test_systems_are_drawn_in_their_order_where_there_are_several(panel, crowd, tmp_path):
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    assert [e["alt"] for e in page.all("img") if e["alt"].startswith("Systems")]
    ax = panel._draw(panel.systems, "score", "system", panel.system_score, "Systems")
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[::-1, 0], panel.systems["score"])
    assert [text.get_text() for text in ax.get_yticklabels()][::-1] == list(panel.systems.index)
    plt.close(ax.figure)
    one = cp.judge(crowd[0].assign(model="model 0"), system="model", story="majority_vote")
    page = Page(one.report(tmp_path / "one.html").read_text(encoding="utf-8"))
    assert not [e for e in page.all("img") if e["alt"].startswith("Systems")]


def test_judges_whose_quality_is_by_question_have_a_row_for_each_and_count_once(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame([(t, w) for t in range(40) for w in "abc"], columns=["task", "worker"])
    table["helpful"], table["safe"] = rng.integers(0, 2, (2, len(table)))
    panel = cp.judge(table, question=["helpful", "safe"], story="one_coin", quality="by_question")
    assert panel.judges.index.names == ["judge", "question"]
    assert (len(panel.judges), panel.n_judges) == (6, 3)
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    assert page.all("h1")[0]["text"].startswith("A panel of 3 judges")
    header, *rows = page.table("Judges")
    assert header[:2] == ["judge", "question"]
    assert {tuple(row[:2]) for row in rows} == set(panel.judges.index)
    assert " · ".join(panel.judges.index[0]) in str(panel)


def test_a_page_of_several_questions_counts_tasks_alike_everywhere_and_speaks_of_no_gold_labels(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame([(t, w) for t in range(40) for w in "abc"], columns=["task", "worker"])
    table["helpful"], table["safe"] = rng.integers(0, 2, (2, len(table)))
    panel = cp.judge(table, story="majority_vote", question=["helpful", "safe"])
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    assert page.all("h1")[0]["text"] == "A panel of 3 judges on 40 tasks with 2 questions"
    assert "40 tasks with 2 questions" in panel.sentences[0]
    tiles = dict(zip([e["text"] for e in page.all("dt")], [e["text"] for e in page.all("dd")], strict=True))
    assert (tiles["tasks"], tiles["questions"]) == ("40", "2")
    (lead,) = [e["text"] for e in page.all("p") if e.get("class") == "lead"]
    assert "without gold labels" in lead


@pytest.mark.parametrize("n_systems", [1, 3])
def test_a_leaning_that_all_judges_share_is_said_to_be_unseen(n_systems, tmp_path):
    """Judges who are all lenient: biases miss the truth together, their differences do not."""
    rng = np.random.default_rng(0)
    quality = rng.normal(3, 0.9, 300)
    truth = np.clip(np.round(quality), 1, 5)
    lenient = {"a": 0.9, "b": 0.1, "c": 0.8, "d": 0.2}
    given = {w: np.clip(np.round(quality + b + rng.normal(0, 0.5, 300)), 1, 5).astype(int) for w, b in lenient.items()}
    annotations = cp.Annotations.from_matrix(pd.DataFrame(given), ordered=True)
    system = {i: f"system {i % n_systems}" for i in range(300)}
    panel = cp.judge(annotations, story="graded_response", system=system)
    true = pd.DataFrame(given).sub(truth, axis=0).mean()
    off = panel.judges["bias"] - true
    assert (panel.judges["bias_high"] < true.reindex(panel.judges.index)).all()
    assert off.max() - off.min() < 0.2 * abs(off.mean())
    (leaning,) = [one for one in panel.sentences if "most judges share" in one]
    assert "biases are relative to the panel" in leaning
    assert "who leans as it does comes out too well" in leaning
    too_often = panel.judges["right"] - pd.DataFrame(given).eq(truth, axis=0).mean()
    assert too_often[["a", "c"]].min() > 0.1 + too_often[["b", "d"]].max()
    assert ("between judges and between systems" in leaning) == (n_systems > 1)
    page = panel.report(tmp_path / "panel.html").read_text(encoding="utf-8")
    assert page.count("A leaning that most judges share") == 1


@pytest.fixture(scope="module")
def compared():
    """Answers by a panel whose judges name the left item of two about equally good with probability .8."""
    rng = np.random.default_rng(2)
    score = {"gpt": 1.2, "llama": 0.4, "qwen": -0.2, "phi": -1.4}
    rows = []
    for i in range(150):
        left, right = rng.choice(list(score), 2, replace=False)
        lead = score[left] - score[right]
        truth = rng.random() < 1 / (1 + np.exp(-lead))
        for j in range(4):
            named = truth if rng.random() < 0.7 else rng.random() < (0.95 if j else 0.5)
            rows.append((f"q{i}", left, right, f"w{j}", "left" if named else "right"))
    return pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])


def test_comparisons_have_a_ranking_and_position_bias_in_the_opening_the_page_and_the_command(compared, tmp_path):
    panel = cp.judge(cp.Annotations.from_comparisons(compared, prompt="prompt"), story="dawid_skene", interval=0.8)
    pd.testing.assert_frame_equal(panel.ranking, panel.fit.item_ranking(0.8))
    (positions,) = [one for one in panel.sentences if "position bias" in one]
    clear = panel.judges[panel.judges["position_bias_low"] > 0]
    assert len(clear) >= 2
    assert "4 judges of 4 name an item" in positions
    alone = replace(panel, judges=panel.judges.loc[[clear.index[0]]])
    assert any("1 judge of 1 names an item" in one for one in alone.sentences)
    for name, row in clear.iterrows():
        ends = f"({row['position_bias_low']:.2f} to {row['position_bias_high']:.2f})"
        assert f"{row['position_bias']:.2f} {ends} of {name!r}" in positions
    assert repr(panel.ranking.index[0]) in panel.sentences[-1]
    assert [row["item"] for row in panel.to_json()["ranking"]] == list(panel.ranking.index)
    page = Page(panel.report(tmp_path / "panel.html").read_text(encoding="utf-8"))
    heads, *rows = page.table("Ranking")
    assert [row[0] for row in rows] == list(panel.ranking.index)
    assert rows[0][heads.index("score")].split()[0] == f"{panel.ranking['score'].iloc[0]:.3f}"
    _, first, *_ = page.table("Tasks to have checked first")
    assert first[0] == " · ".join(panel.next_gold["task"][0])
    compared.to_csv(tmp_path / "pairs.csv", index=False)
    done = crowdppl("judge", tmp_path / "pairs.csv", "--story", "dawid_skene")
    shown = " ".join(done.stdout.split())
    assert "Ranking" in shown
    assert "position bias is" in shown


def test_items_of_two_parts_are_named_by_part_in_the_opening_and_the_narrow_table(compared, tmp_path):
    """Two items of rank 1 stood below each other, and the column that says why was left out."""
    others = compared.replace({name: f"{name}-2" for name in ("gpt", "llama", "qwen", "phi")})
    both = pd.concat([compared, others.assign(prompt="other " + others["prompt"])])
    both.to_csv(tmp_path / "pairs.csv", index=False)
    shown = " ".join(crowdppl("judge", tmp_path / "pairs.csv", "--story", "dawid_skene").stdout.split())
    assert "8 items are in 2 parts that no comparison joins" in shown
    ranking = cp.judge(cp.read(both, tell=False), story="dawid_skene").ranking
    for part in (1, 2):
        assert f"{ranking.index[ranking['part'] == part][0]!r}, score " in shown
    assert " item part score " in shown.partition("Ranking")[2]


def test_no_position_bias_is_told_under_a_story_that_cannot_have_one(compared):
    panel = cp.judge(cp.Annotations.from_comparisons(compared, prompt="prompt"), story="one_coin")
    assert not any("position" in one for one in panel.sentences)
    assert panel.ranking is not None


@pytest.mark.filterwarnings("ignore")
def test_winners_and_losers_of_drawn_sides_have_no_position_bias_in_any_view(compared, tmp_path):
    """Two judges of drawn sides had a position bias whose interval excludes none."""
    is_left = compared["label"] == "left"
    won, lost = (compared["left"].where(side, compared["right"]) for side in (is_left, ~is_left))
    compared.assign(winner=won, loser=lost)[["prompt", "worker", "winner", "loser"]].to_csv(tmp_path / "won.csv")
    panel = cp.judge(cp.read(tmp_path / "won.csv", tell=False), story="dawid_skene")
    panel.fit.save(tmp_path / "fit")
    fit = cp.load_fit(tmp_path / "fit")
    for frame in (panel.judges, panel.fit.workers, fit.workers):
        assert not [name for name in frame if "position" in name]
    page, report = panel.report(tmp_path / "panel.html"), fit.report(tmp_path / "fit.html", checks=False)
    assert not any("position" in one for one in panel.sentences)
    assert not any("position bias" in path.read_text(encoding="utf-8") for path in (page, report))
    assert set(fit.ranking.index) == {*compared["left"]}
    with pytest.raises(cp.AnnotationError, match=r"do not say which item was shown left.*fit\.beats"):
        fit.beats_by_position()


def test_json_has_all_tables_and_no_number_that_json_lacks(panel, tmp_path):
    found = json.loads(panel.write_json(tmp_path / "panel.json").read_text(), parse_constant=pytest.fail)
    assert [row["judge"] for row in found["judges"]] == list(panel.judges.index)
    assert found["n_effective"] == panel.errors.n_effective
    assert found["gold_needed"] == int(panel.gold_needed)
    assert found["systems"][0]["score"] == panel.systems["score"].iloc[0]


def test_judges_of_ordered_classes_have_a_bias():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 300)
    given = {name: np.where(rng.random(300) < 0.8, truth, rng.integers(1, 6, 300)) for name in "abc"}
    given["high"] = np.minimum(given["a"] + (rng.random(300) < 0.7), 5)
    table = pd.DataFrame(given).rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
    panel = cp.judge(cp.Annotations.from_frame(table, ordered=True), story="majority_vote")
    assert panel.judges["bias"].idxmax() == "high"
    assert panel.judges.loc["high", "bias_low"] > 0.2
    assert any("biases are relative to the panel" in one for one in panel.sentences)
    assert not any("systems' scores" in one for one in panel.sentences)
    assert panel.systems is None
    assert panel.ranking is None
    assert panel.estimate is None
    assert panel.system_score == "expected score"


@pytest.mark.parametrize("shape", ["tasks", "answers", "wide", "file", "questions", "answer_id"])
def test_systems_are_found_by_the_column_that_names_them(shape, tmp_path):
    """Each of four systems answers each question; of one row in three the task has a name of its own."""
    rng = np.random.default_rng(0)
    keys = [(f"q{i}", f"s{k}", f"judge {j}") for i in range(30) for k in range(4) for j in range(3)]
    table = pd.DataFrame(keys, columns=["question", "system", "judge"])
    score = table["system"].str[1].astype(int)
    table["score"] = np.clip(score + rng.integers(0, 2, len(table)), 0, 4)
    options = {"ordered": True}
    if shape == "tasks":
        table["task"] = table.pop("question") + "/" + table["system"]
    if shape == "answer_id":
        table["answer_id"] = table["question"] + "/" + table["system"]
    if shape == "wide":
        table = table.pivot(index=["question", "system"], columns="judge", values="score").reset_index()
    if shape == "questions":
        table["safe"] = table["helpful"] = table.pop("score")
        options["question"] = ["helpful", "safe"]
    if shape == "file":
        table.to_csv(tmp_path / "judged.csv", index=False)
        table = str(tmp_path / "judged.csv")
    found = cp.judge(table, story="majority_vote", **options).systems
    assert list(found.index) == ["s3", "s2", "s1", "s0"]
    named = cp.judge(table, story="majority_vote", system="system", **options).systems
    pd.testing.assert_frame_equal(named, found)


def test_systems_scores_of_certain_labels_are_means_of_their_values():
    annotations = cp.Annotations.from_matrix(np.repeat([[1], [2], [3], [3]], 3, axis=1), ordered=True)
    fit = cp.fit("majority_vote", annotations, progress=False)
    values, _ = scores_of_classes(annotations.kind, list(annotations.classes))
    tasks = list(annotations.tasks)
    found = system_scores(fit, {tasks[0]: "x", tasks[1]: "x", tasks[2]: "y"}, values, interval=0.9)
    assert found["score"].to_dict() == {"y": 3.0, "x": 1.5}
    assert found["tasks"].to_dict() == {"y": 1, "x": 2}


def test_intervals_of_scores_hold_the_shares_that_the_systems_have():
    held = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.1, 0.9, 4)
        truth = (rng.random(200) < share[np.arange(200) % 4]).astype(int)
        given = np.where(rng.random((200, 5)) < 0.97, truth[:, None], 1 - truth[:, None])
        fit = cp.fit("majority_vote", cp.Annotations.from_matrix(given, missing=None), progress=False)
        found = system_scores(fit, {i: i % 4 for i in range(200)}, np.array([0, 1]), interval=0.9, seed=seed)
        true = share[found.index.to_numpy(int)]
        held += list((found["score_low"] <= true) & (true <= found["score_high"]))
    assert 0.83 <= np.mean(held) <= 0.97  # 100 intervals of mass .9


@pytest.mark.parametrize(
    ("classes", "positive", "expected"),
    [
        (["C", "I"], None, [1, 0]),
        (["fail", "pass"], None, [0, 1]),
        (["x", "y"], None, [0, 1]),
        (["x", "y"], "x", [1, 0]),
        ([0, 1], "0", [1, 0]),  # of the command line, where numbers were none of the classes
    ],
)
def test_the_class_that_counts_is_the_one_whose_name_says_right(classes, positive, expected):
    annotations = cp.Annotations.from_dict({"t": {"a": classes[0], "b": classes[1]}})
    assert scores_of_classes(annotations.kind, classes, positive)[0].tolist() == expected


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"system": "modle"}, cp.AnnotationError, "no such column"),
        ({"system": {"nowhere": "x"}}, cp.AnnotationError, "no task has a system"),
        ({"system": 3}, TypeError, "int"),
        ({"positive": "maybe"}, cp.AnnotationError, "'maybe' is none of the classes"),
        ({"gold": {0: "maybe"}}, cp.AnnotationError, "maybe"),
        ({"interval": 2}, ValueError, "interval=2"),
    ],
)
@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
def test_what_it_cannot_use_is_refused_by_name(crowd, options, error, said):
    with pytest.raises(error, match=said):
        cp.judge(crowd[0], story="majority_vote", **options)


def test_judges_without_names_cannot_be_weighed(crowd):
    annotations = cp.Annotations.from_frame(crowd[0]).without_workers()
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        cp.judge(annotations)


def test_one_judge_is_no_panel(crowd):
    with pytest.raises(cp.AnnotationError, match=r"'a' alone .* two judges"):
        cp.judge(crowd[0][crowd[0]["worker"] == "a"], story="majority_vote")


def test_no_system_is_the_best_of_one(crowd):
    table = crowd[0][crowd[0]["worker"].isin(["a", "c", "d"])]
    panel = cp.judge(table, story="majority_vote", system=dict.fromkeys(range(N_TASKS), "only"))
    assert list(panel.systems.index) == ["only"]
    assert not any("the best is" in one for one in panel.sentences)


def test_the_judge_who_is_least_often_right_is_so_for_sure(crowd):
    """Five annotations of gold tasks say hardly anything, wherever their share lies."""
    table, truth = crowd
    table = table[table["worker"].isin(["a", "c", "guess"])]
    wrong = np.where(truth == "pass", "fail", "pass")
    few = pd.DataFrame({"task": range(95, 145), "worker": "few", "label": [*truth[95:97], *wrong[97:145]]})
    panel = cp.judge(pd.concat([table, few]), {t: truth[t] for t in range(100)}, story="majority_vote")
    assert panel.judges["gold_right"].idxmin() == "few"
    assert "least often 'guess'" in panel.sentences[1]


def test_it_is_not_said_of_a_judge_who_is_sure_alone_to_be_most_often_right(panel):
    first, second = panel.judges.index[:2]
    assert panel.sentences[1].startswith(f"Most often right is {first!r}")
    judges = panel.judges.copy()
    judges.loc[second, "gold_right"] = 0.99  # of few gold labels, whose interval begins lower
    assert replace(panel, judges=judges).sentences[1].startswith(f"Most often right, as far as is sure, is {first!r}")


def test_a_gold_label_that_contradicts_all_annotations_is_warned_of_once(crowd):
    table, truth = crowd
    table = table[table["worker"].isin(["a", "c", "d"])]
    task = next(t for t, each in table.groupby("task")["label"] if each.nunique() == 1)
    given = table.loc[table["task"] == task, "label"].iloc[0]
    gold = {t: truth[t] for t in range(100, 160)} | {task: "pass" if given == "fail" else "fail"}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cp.judge(table, gold, story="majority_vote")
    assert sum("contradicts all annotations" in str(one.message) for one in found) == 1


def test_the_command_prints_and_writes_what_python_gives(crowd, panel, tmp_path):
    table, truth = crowd
    table.to_csv(tmp_path / "verdicts.csv", index=False)
    known = np.flatnonzero(panel.gold >= 0)
    pd.DataFrame({"task": known, "label": truth[known]}).to_csv(tmp_path / "gold.csv", index=False)
    options = ["--gold", tmp_path / "gold.csv", "--system", "model", "--story", "majority_vote"]
    done = crowdppl("judge", tmp_path / "verdicts.csv", *options, "--json", tmp_path / "panel.json")
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "panel.json").read_text())
    assert [row["judge"] for row in written["judges"]] == list(panel.judges.index)
    assert [row["system"] for row in written["systems"]] == list(panel.systems.index)
    shown = " ".join(done.stdout.split())
    assert all(one in shown for one in panel.sentences)
    assert "Systems (column 'model'), by share of 'pass'" in shown
    assert "Of 4 systems (column 'model') the best is" in shown
    assert "copy of b" in shown
    quiet = crowdppl("judge", tmp_path / "verdicts.csv", *options, "--json", tmp_path / "again.json", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert json.loads((tmp_path / "again.json").read_text()) == written


def test_the_command_refuses_a_page_that_is_none_before_it_reads(tmp_path):
    done = crowdppl("judge", tmp_path / "nothing.csv", "--out", tmp_path / "page.pdf")
    assert done.exit_code == 2
    assert ".html" in done.output


def test_with_every_true_label_known_it_is_said_that_intervals_have_no_width(crowd, tmp_path):
    table, truth = crowd
    with pytest.warns(cp.CrowdWarning, match="copies"):
        panel = cp.judge(table, dict(enumerate(truth)), story="majority_vote")
    assert panel.estimate.knows_all
    assert "by the gold labels of all tasks, so that these shares are counts" in panel.sentences[1]
    said = panel.sentences[2]
    assert "All 400 true labels are known" in said
    assert "interval " not in said.partition("All 400")[0]
    assert not cp.estimate(panel.fit, dict(enumerate(truth)), of="population").knows_all
    table.to_csv(tmp_path / "verdicts.csv", index=False)
    pd.DataFrame({"task": range(N_TASKS), "label": truth}).to_csv(tmp_path / "gold.csv", index=False)
    done = crowdppl("judge", tmp_path / "verdicts.csv", "--gold", tmp_path / "gold.csv", "--story", "majority_vote")
    shown = " ".join(done.stdout.split())
    assert "crowdppl estimate DIR GOLD --of population" in shown
    assert "worker_families={" not in shown
    assert "of='population'" not in shown


def test_labels_that_say_too_much_are_told_once_with_by_how_much(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    misled = rng.random(200) < 0.25
    given = np.where(misled[:, None], 1 - truth[:, None], truth[:, None]) ^ (rng.random((200, 5)) < 0.05)
    annotations = cp.Annotations.from_matrix(pd.DataFrame(np.array(["no", "yes"])[given], columns=list("abcde")))
    gold = {int(i): ("no", "yes")[truth[i]] for i in rng.choice(200, 80, replace=False)}
    panel = cp.judge(annotations, gold, story="one_coin")
    (text,) = [texts[0] for title, texts, _ in panel.alerts if "less often right" in title]
    accuracy = panel.estimate.accuracy
    assert f"too high by {100 * (accuracy['without_gold'] - accuracy['estimate']):.0f} percentage points" in text
    assert not set(panel.sentences) & {one for _, texts, _ in panel.alerts for one in texts}


def test_the_command_tells_a_finding_of_the_fit_once(crowd, tmp_path):
    """A fit that had not converged was told as a warning and again among the panel's findings."""
    crowd[0].to_csv(tmp_path / "verdicts.csv", index=False)
    done = crowdppl("judge", tmp_path / "verdicts.csv", "--story", "one_coin", "--set", "max_iterations=1")
    assert " ".join(done.output.split()).count("too few to see whether it converged") == 1


def test_findings_of_a_panel_ask_for_gold_labels_only_where_it_has_none_and_by_no_option_that_it_refuses(crowd):
    """Of two judges nothing tells who is right; the command said to give --use-gold, which it refuses."""
    table, truth = crowd
    two = table[table["worker"].isin(["a", "b"])]
    with pytest.warns(cp.CrowdWarning, match="where the two workers differ"):
        panels = [cp.judge(two, known, story="one_coin") for known in (None, dict(enumerate(truth[:40])))]
    texts = [[one for _, each, place in panel.alerts if place == "labels" for one in each] for panel in panels]
    assert all(any("where the two workers differ" in one for one in each) for each in texts)
    assert [any("Gold labels of some tasks tell." in one for one in each) for each in texts] == [True, False]
    assert not any("cp.fit(" in one for each in texts for one in each)
