"""What is said of comparisons."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.cli.advice import for_the_shell
from crowdppl.inference.findings.model_names import same_models
from crowdppl.inference.findings.of_comparisons import LEAD, SPREAD, _by_preferences, prefers_own


def comparisons(*groups, features=None):
    """Three workers who compare the letters of each group, of which the first ones are better."""
    rng = np.random.default_rng(0)
    pairs = [rng.choice(list(group), 2, replace=False) for group in groups for _ in range(40)]
    rows = [
        (left, right, worker, "left" if (left < right) == (rng.random() < 0.85) else "right")
        for left, right in pairs
        for worker in ("ann", "bob", "cleo")
    ]
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
    return cp.Annotations.from_comparisons(frame, item_features=features)


def test_items_that_nothing_connects_are_in_the_findings_and_the_verdict():
    with pytest.warns(UserWarning, match="'a', 'b', 'c'; 'x', 'y', 'z'"):
        annotations = comparisons("abc", "xyz")
    fit = cp.fit("dawid_skene", annotations, progress=False)
    assert [each.code for each in fit.findings] == ["items_apart"]
    assert fit.verdict.trust == "with care"
    assert any("'x', 'y', 'z'" in each for each in fit.verdict.why)


def test_items_that_comparisons_or_features_connect_are_not():
    fit = cp.fit("dawid_skene", comparisons("abc", "cde"), progress=False)
    assert "items_apart" not in {each.code for each in fit.findings}
    length = pd.DataFrame({"length": range(6)}, pd.Index(list("abcxyz"), name="item"))
    fit = cp.fit("dawid_skene", comparisons("abc", "xyz", features=length), progress=False)
    assert "items_apart" not in {each.code for each in fit.findings}


def drawn(seed, *, preferences, ties=0.0, times=4):
    """Comparisons of eight items by three workers, each by the items' scores, or with errors about one draw by them."""
    rng = np.random.default_rng(seed)
    score, rows = rng.normal(0, 1.2, 8), []
    for left, right, time in ((*pair, time) for pair in permutations(range(8), 2) for time in range(times)):
        truth = rng.random() < 1 / (1 + np.exp(score[right] - score[left]))
        for worker, accuracy in {"ann": 0.95, "bob": 0.8, "cleo": 0.7}.items():
            right_one = rng.random() < 1 / (1 + np.exp(score[right] - score[left])) if preferences else truth
            said = right_one if preferences or rng.random() < accuracy else not right_one
            label = "tie" if rng.random() < ties else "left" if said else "right"
            rows.append((f"{left} {right} {time}", f"i{left}", f"i{right}", worker, label))
    return pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ties", [0.0, 0.05])
def test_preferences_are_told_from_errors_about_true_labels(ties):
    of_preferences, of_errors = (drawn(2, preferences=each, ties=ties) for each in (True, False))
    fit = cp.fit("dawid_skene", cp.Annotations.from_comparisons(of_preferences), progress=False)
    (warning,) = (each for each in fit.findings if each.code == "preferences")
    assert warning.values["lead"] > LEAD
    assert any("--preferences" in step.command for step in fit.verdict.next)
    errs = cp.fit("dawid_skene", cp.Annotations.from_comparisons(of_errors), progress=False)
    assert "preferences" not in {each.code for each in errs.findings}
    own = cp.Annotations.from_comparisons(of_preferences, preferences=True)
    mended = cp.fit("one_coin", own, right=1000, wrong=1, progress=False)
    assert "preferences" not in {each.code for each in mended.findings}
    ratio = fit.ranking["score"].std() / mended.ranking["score"].std()
    assert warning.values["larger"] == pytest.approx(ratio, rel=0.2)  # of another prior of the scores


def test_auto_takes_preferences_as_they_were_given_and_says_so(capsys, tmp_path):
    """It averaged stories of errors about true labels, which no two annotations share."""
    own = cp.Annotations.from_comparisons(drawn(2, preferences=True, times=1), preferences=True)
    fit = cp.fit("auto", own)
    assert "the story is one_coin with right=1000, wrong=1" in capsys.readouterr().err
    by_name = cp.fit("one_coin", own, right=1000, wrong=1, progress=False)
    pd.testing.assert_frame_equal(fit.ranking, by_name.ranking)
    assert not fit.findings.warnings
    assert fit.verdict.why == ("Each of 168 annotations is a preference, and taken as it was given.",)
    assert fit.verdict.trust == "with care"
    assert "ranking.csv" in fit.verdict.labels[0]
    assert not any("gold" in step.command for step in fit.verdict.next)
    assert list(fit.summary().tables) == ["classes", "ranking"]  # all workers are right
    page = fit.report(tmp_path / "page.html", checks=False).read_text(encoding="utf-8")
    assert 'id="ranking"' in page
    assert 'id="workers"' not in page
    softer = cp.fit("auto", own, right=30, progress=False)
    assert softer.ranking["score"].iloc[0] != fit.ranking["score"].iloc[0]


@pytest.mark.filterwarnings("ignore")
def test_another_story_of_preferences_names_the_call_that_takes_them():
    """It said that gold labels tell how often workers err, and preferences are no errors."""
    table = drawn(2, preferences=True, times=1)
    fit = cp.fit("dawid_skene", cp.Annotations.from_comparisons(table, preferences=True), progress=False)
    assert [each.code for each in fit.findings.warnings] == ["preferences"]
    assert "preferences are fitted by cp.fit('auto'" in fit.findings.warnings[0].sentence
    assert fit.verdict.trust == "with care"
    assert "--preferences" in fit.verdict.next[0].command
    alone = table.assign(task=range(len(table)))
    alone["task"] = "pair " + alone["task"].astype(str)
    codes = {
        each.code
        for each in cp.fit(
            "dawid_skene", cp.Annotations.from_comparisons(alone, preferences=False), progress=False
        ).findings
    }
    assert {"nobody_meets", "preferences"} <= codes


@pytest.mark.filterwarnings("ignore")
def test_the_log_likelihood_of_preferences_is_that_of_a_logistic_regression_without_ties():
    annotations = cp.Annotations.from_comparisons(drawn(1, preferences=True))
    explained, score = _by_preferences(annotations)
    left, right = np.asarray(annotations.sides).T
    gap, votes = score[left] - score[right], annotations.votes()
    by_hand = -(votes[:, 0] @ np.logaddexp(0, -gap) + votes[:, 1] @ np.logaddexp(0, gap))
    assert explained == pytest.approx(by_hand, rel=1e-6)
    wins = np.zeros(8)
    np.add.at(wins, left, votes[:, 0] - votes.sum(1) / (1 + np.exp(-gap)))
    np.add.at(wins, right, votes[:, 1] - votes.sum(1) / (1 + np.exp(gap)))
    np.testing.assert_allclose(wins, score / SPREAD**2, atol=1e-2)  # the slope of the density is zero


def battles(seed, again=0.0):
    """Four hundred battles of twelve models on prompts of their own, each by one judge, who draws a preference."""
    rng = np.random.default_rng(seed)
    score, rows = rng.normal(size=12), []
    for battle in range(400):
        left, right = rng.choice(12, 2, replace=False)
        for judge in rng.choice(40, 2 if rng.random() < again else 1, replace=False):
            better = rng.random() < 1 / (1 + np.exp(score[right] - score[left]))
            rows.append((f"q{battle}", f"m{left}", f"m{right}", f"j{judge}", "model_a" if better else "model_b"))
    table = pd.DataFrame(rows, columns=["question_id", "model_a", "model_b", "judge", "winner"])
    return table, pd.Series(score - score.mean(), [f"m{i}" for i in range(12)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("again", [0.0, 0.1])
def test_battles_of_one_judge_each_have_scores_of_their_true_spread_where_nothing_is_said(again):
    """They were fitted with a true winner of each, and their scores were three times too large."""
    ratios = {None: [], False: []}
    for seed in range(3):
        table, score = battles(seed, again)
        for said, of_each in ratios.items():
            annotations = cp.read(table, preferences=said, tell=False)
            assert annotations.preferences is (said is None)
            story = "auto" if annotations.preferences else "dawid_skene"  # which is the shell's default
            fit = cp.fit(story, annotations, progress=False)
            of_each.append(fit.ranking["score"].std() / score.std())
            assert ("preferences" in {each.code for each in fit.findings}) is not annotations.preferences
    assert 0.85 < np.mean(ratios[None]) < 1.2
    assert np.mean(ratios[False]) > 2


@pytest.mark.filterwarnings("ignore")
def test_preferences_of_workers_without_names_rank_items_as_those_with_names_and_no_panel_judges_them():
    table = drawn(2, preferences=True, times=1, ties=0.1)
    alone = table.assign(task=[f"pair {i}" for i in range(len(table))])
    rankings, at_the_mode = [], []
    for columns in ("worker", None):
        own = cp.Annotations.from_comparisons(table, worker=columns, preferences=True)
        fit = cp.fit("auto", own, progress=False)
        assert fit.verdict.why[0].startswith("Each of 168 annotations is a preference")
        rankings.append(fit.ranking.sort_index()["score"])
        at_the_mode.append(fit.derived["score"].to_series().sort_index())
        for said in (None, False):
            numbered = cp.Annotations.from_comparisons(alone, worker=columns, preferences=said)
            with pytest.raises(cp.AnnotationError, match=r"no judge can be weighed; .*preferences=True.* ranks"):
                cp.judge(numbered, progress=False)
    np.testing.assert_allclose(*at_the_mode, atol=1e-2)  # 1000 : 1 in two priors
    np.testing.assert_allclose(*rankings, atol=0.1)  # medians of other draws


@pytest.mark.filterwarnings("ignore")
def test_how_much_larger_scores_are_is_known_of_an_average_of_points():
    fit = cp.fit("auto", cp.Annotations.from_comparisons(drawn(2, preferences=True)), progress=False)
    (warning,) = (each for each in fit.findings if each.code == "preferences")
    one = cp.fit("dawid_skene", fit.annotations, progress=False)
    preferred = one.ranking["score"].std() / next(e for e in one.findings if e.code == "preferences").values["larger"]
    assert warning.values["larger"] == pytest.approx(fit.ranking["score"].std() / preferred)


class Crowd:
    """Labels of a crowd of which the check asks the annotations alone."""

    def __init__(self, seed, accuracy, *, own=0.0, is_best=True, n=400, names=("openai/V", "b", "c")):
        rng = np.random.default_rng(seed)
        score = np.sort(rng.normal(0, 1.2, 5))[:: -1 if is_best else 1]
        rows = []
        for prompt in range(n):
            left, right = rng.choice(5, 2, replace=False)
            truth = rng.random() < 1 / (1 + np.exp(score[right] - score[left]))
            for at, (name, right_share) in enumerate(zip(names, accuracy, strict=True)):
                said = truth if rng.random() < right_share else not truth
                if at == 0 and 0 in (left, right) and rng.random() < own:
                    said = left == 0
                said = "tie" if rng.random() < 0.05 else "left" if said else "right"
                rows.append((prompt, "vwxyz"[left], "vwxyz"[right], name, said))
        frame = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
        self.annotations = cp.Annotations.from_comparisons(frame, prompt="prompt")


@pytest.mark.parametrize("is_best", [True, False])
def test_a_judge_who_names_its_own_item_is_told(is_best):
    """Such a judge was the most accurate one, and its item the best, without a word."""
    for seed in range(3):
        (finding,) = prefers_own(Crowd(seed, (0.85, 0.85, 0.8), own=1.0, is_best=is_best))
        assert finding.values["worker"] == "openai/V"
        assert finding.values["share"] > 0.9
        assert finding.values["share"] - finding.values["expected"] > 0.1
        assert "'openai/V' is one of the items" in finding.text


def among_equals(seed, own, n=300):
    """Three models that are equally good judge each other beside two people; the first one names itself more often."""
    rng, models, rows = np.random.default_rng(seed), ["gpt", "claude", "llama"], []
    for prompt in range(n):
        pair = rng.permutation(models)[:2]
        better = rng.integers(2)
        for judge in (*models, "ann", "bob"):
            winner = pair[better if rng.random() < 0.85 else 1 - better]
            if judge == "gpt" and "gpt" in pair and rng.random() < own:
                winner = "gpt"
            rows.append((prompt, *pair, judge, winner))
    frame = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    return cp.Annotations.from_comparisons(frame, prompt="prompt")


@pytest.mark.parametrize("own", [0.6, 0.9])
def test_a_judge_who_names_its_own_item_is_told_where_no_item_is_better(own):
    """Others' shares of the items are even there, and tell nothing of how far a judge's own would be."""
    for seed in range(5):
        (finding,) = prefers_own(cp.fit("wawa", among_equals(seed, own), progress=False))
        assert finding.values["worker"] == "gpt"
        assert finding.values["share"] - finding.values["expected"] > 0.1


def test_judges_of_equal_items_who_favour_nothing_are_not_told():
    for seed in range(10):
        assert not prefers_own(cp.fit("wawa", among_equals(seed, 0.0), progress=False))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("seed", "own"), [(4, 0.9), (1, 0.9)])
def test_auto_does_not_take_a_judges_preference_for_the_truth(seed, own):
    """Errors in common were what most judges said, and .68 and .76 of the labels right where their votes have .95."""
    rng = np.random.default_rng(seed)
    rows, models = [], ["gpt", "claude", "llama"]
    truth = {}
    for prompt in range(300):
        one, other = rng.permutation(models)[:2]
        best = truth[prompt] = one if rng.random() < 0.5 else other
        for judge in (*models, "ann", "bob"):
            winner = best if rng.random() < 0.85 else other if best == one else one
            if judge == "gpt" and "gpt" in (one, other) and rng.random() < own:
                winner = "gpt"
            rows.append((prompt, one, other, judge, winner))
    frame = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    fit = cp.fit("auto", cp.Annotations.from_comparisons(frame, prompt="prompt"), progress=False)
    found = fit.labels["better"]
    assert np.mean([truth[prompt] == better for (prompt, *_), better in found.items()]) > 0.92


def test_what_a_judge_says_of_its_own_item_is_held_against_no_other():
    names = ("openai/V", "w", "c")  # of whom the second is the item that the first one puts behind its own
    (finding,) = prefers_own(Crowd(0, (0.85, 0.85, 0.8), own=1.0, names=names))
    assert finding.values["worker"] == "openai/V"


@pytest.mark.parametrize("is_best", [True, False])
@pytest.mark.parametrize("accuracy", [(0.8, 0.8, 0.8), (0.95, 0.55, 0.55), (0.55, 0.95, 0.9)])
def test_judges_who_are_more_or_less_accurate_than_others_favour_nothing(accuracy, is_best):
    for seed in range(10):
        assert not prefers_own(Crowd(seed, accuracy, is_best=is_best))
    assert not prefers_own(Crowd(0, (0.85, 0.85, 0.8), own=1.0, names=("a", "b", "c")))  # who are no items
    assert not prefers_own(Crowd(0, (0.85, 0.85, 0.8), own=1.0, n=25))  # a judge of few comparisons of its own


@pytest.mark.parametrize(
    ("name", "item"), [("openai/gpt-4o-2024-08-06", "gpt-4o"), ("gpt-4o", "openai:gpt-4o-2024-08-06")]
)
def test_a_judge_is_known_by_its_name_but_for_provider_and_snapshot_and_its_rows_are_left_out_as_is_said(name, item):
    table = Crowd(0, (0.85, 0.85, 0.8), own=1.0, names=(name, "b", "c")).annotations.to_frame()
    annotations = cp.Annotations.from_comparisons(table.replace({"left": {"v": item}, "right": {"v": item}}))
    fit = cp.fit("majority_vote", annotations, progress=False)
    (finding,) = prefers_own(fit)
    assert (finding.values["worker"], finding.values["item"]) == (name, item)
    names = {"annotations": annotations}
    exec(finding.remedy.split("compares itself: ")[1].removesuffix("; and fit the table"), names)
    others = cp.Annotations.from_comparisons(names["table"])
    assert others.n_annotations == annotations.n_annotations - finding.values["n"]
    assert not prefers_own(cp.fit("majority_vote", others, progress=False))
    command = for_the_shell(finding.remedy, "folder")
    assert "load_fit('folder').annotations.to_frame()" in command
    assert command.endswith("table.to_csv('others.csv', index=False); and crowdppl fit others.csv")


def test_names_of_models_are_the_same_but_for_provider_and_a_snapshot_of_one():
    same = {
        "gpt-4o": ["GPT-4o", "openai/gpt-4o", "openai:chat:gpt-4o", "gpt-4o-2024-11-20", "azure/gpt_4o"],
        "claude-3-5-sonnet-20240620": ["anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-latest"],
        "gemini-1.5-pro-002": ["google/gemini-1.5-pro"],
        "llama3.1:8b": ["ollama/llama3.1:8b"],
    }
    for item, names in same.items():
        assert same_models(names, ["other", item]).tolist() == [1] * len(names), names
    different = [
        ("gpt-4-0314", "gpt-4-0613"),
        ("gpt-4", "gpt-4o"),
        ("llama3.1:8b", "llama3.1:70b"),
        ("qwen:7b", "mistral:7b"),
    ]
    for name, item in different:
        assert same_models([name], [item]).tolist() == [-1], name
    assert same_models(["gpt-4", "gpt-4-0613"], ["gpt-4-0314", "gpt-4-0613"]).tolist() == [-1, 1]  # of two snapshots


def test_the_verdict_asks_for_care_where_a_judge_prefers_its_own():
    fit = cp.fit("one_coin", Crowd(0, (0.85, 0.85, 0.8), own=1.0).annotations, progress=False)
    assert fit.verdict.trust == "with care"
    assert any("'openai/V' is one of the items" in each for each in fit.verdict.why)
