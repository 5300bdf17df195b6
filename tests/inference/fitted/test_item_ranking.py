"""The ranking of compared items, of draws that are known and of a crowd whose truth is."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from report_pages import Page

import crowdppl as cp
from crowdppl.cli.output import write_results
from crowdppl.data import AnnotationError
from crowdppl.inference.findings import summary as summary_module
from crowdppl.inference.fitted.item_ranking import beats, beats_by_position, item_draws, item_ranking
from crowdppl.inference.fitted.posterior import Posterior
from crowdppl.inference.plots import ranking as ranking_plot
from crowdppl.inference.report.label_sections import ranking_section
from crowdppl.inference.report.subject import subject

TRUE = {"best": 1.5, "good": 0.5, "fair": -0.5, "poor": -1.5}


def table(n_pairs=40, seed=0):
    """Comparisons by three judges; one row more is an abstention."""
    rng = np.random.default_rng(seed)
    rows = []
    for pair in range(n_pairs):
        left, right = rng.permutation(list(TRUE))[:2]
        odds = np.exp(TRUE[left] - TRUE[right])
        truth = rng.choice(
            ["left", "right", "tie"], p=np.array([odds, 1, 0.4 * odds**0.5]) / (1 + odds + 0.4 * odds**0.5)
        )
        for worker in ("ann", "bob", "cy"):
            said = truth if rng.random() < 0.85 else rng.choice(["left", "right", "tie"])
            rows.append((pair, left, right, worker, said))
    rows.append((0, *rows[0][1:3], "dee", "refused"))
    return pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])


@pytest.fixture(scope="module")
def fit():
    annotations = cp.Annotations.from_comparisons(table(), task="task", abstain=["refused"])
    return cp.fit("one_coin", annotations, seed=0, progress=False)


@pytest.fixture
def drawn(fit):
    """A posterior whose draws are given: the scores best, good, fair, poor, and the ties."""

    def with_draws(scores, ties):
        scores = np.asarray(scores, dtype=float)
        order = [list(TRUE).index(name) for name in fit.annotations.items]
        n = len(scores)
        draws = {name: np.repeat(value[:, :1], n, 1) for name, value in fit.fitted.draws.items()}
        draws |= {
            "item_scale": np.ones((1, n)),
            "item_effect": scores[None][..., order],
            "tie": np.asarray(ties, dtype=float)[None],
        }
        fitted = fit.fitted.with_draws(draws)
        return Posterior.of(fitted.replace(outcome=fitted.outcome._replace(is_point=False)))

    return with_draws


def test_score_rank_and_probability_of_being_best_are_those_of_the_draws(drawn):
    scores = [[1.0, 0.5, -0.5, -1.0], [1.0, 0.0, 0.5, -1.5], [0.5, 1.0, -0.5, -1.0], [1.5, 0.5, 0.0, -2.0]]
    found = item_ranking(drawn(scores, np.zeros(4)), interval=0.9)
    assert list(found.index) == ["best", "good", "fair", "poor"]
    np.testing.assert_allclose(found["score"], np.median(scores, 0), atol=1e-6)
    np.testing.assert_allclose(found["score_low"], np.quantile(scores, 0.05, axis=0, method="weibull"), atol=1e-6)
    np.testing.assert_allclose(found["score_high"], np.quantile(scores, 0.95, axis=0, method="weibull"), atol=1e-6)
    assert found[["rank", "rank_low", "rank_high"]].to_numpy().tolist() == [[1, 1, 2], [2, 1, 3], [3, 2, 3], [4, 4, 4]]
    np.testing.assert_allclose(found["p_best"], [0.75, 0.25, 0, 0])


def test_who_beats_whom_counts_ties_half(drawn):
    found = beats(drawn([[1.0, 0.5, -0.5, -1.0], [800.0, 0.0, 0.0, -800.0]], [0.3, -1.0]))
    ties = np.exp([0.3, -1.0])
    left = np.exp(1.0) / (np.exp(1.0) + np.exp(0.5) + ties[0] * np.exp(0.75))
    tie = ties[0] * np.exp(0.75) / (np.exp(1.0) + np.exp(0.5) + ties[0] * np.exp(0.75))
    np.testing.assert_allclose(found.loc["best", "good"], (left + tie / 2 + 1) / 2, rtol=1e-6)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose((found + found.T).to_numpy()[off], 1.0)
    assert np.isnan(found.to_numpy().diagonal()).all()


def test_what_workers_name_by_position_is_that_of_the_draws_and_of_their_confusion_matrices(fit):
    """By the formula, draw by draw, with an abstention beside three classes; a typical worker is weighted."""
    annotations = fit.annotations
    rng, order = np.random.default_rng(0), [list(TRUE).index(name) for name in annotations.items]
    scores, ties = np.array([[1.0, 0.5, -0.5, -1.0], [2.0, 0.3, 0.1, -2.4]]), [0.3, -1.0]
    tables = rng.dirichlet(np.ones(4), (1, 2, annotations.n_workers, 3))
    ds = cp.fit("dawid_skene", annotations, seed=0, progress=False).fitted
    draws = {name: np.repeat(value[:, :1], 2, 1) for name, value in ds.draws.items()}
    draws |= {"item_scale": np.ones((1, 2)), "item_effect": scores[None][..., order], "tie": np.array([ties])}
    given = ds.with_draws(draws)
    given = given.replace(outcome=given.outcome._replace(is_point=False))
    given.__dict__["confusion_draws"] = tables  # a cached property
    posterior = Posterior.of(given)
    found = beats_by_position(posterior, workers=["bob", "ann"]).set_index(["worker", "item", "other"])
    typical = beats_by_position(posterior).set_index(["item", "other"])
    assert len(found) == 2 * len(typical) == 12
    by_worker = annotations.n_by_worker() / annotations.n_by_worker().sum()
    for one, other in (("best", "good"), ("good", "poor")):
        said = {name: np.zeros(3) for name in (*annotations.workers, "all")}
        for draw in range(2):
            i, j = scores[draw][list(TRUE).index(one)], scores[draw][list(TRUE).index(other)]
            p = np.exp([i, j, ties[draw] + (i + j) / 2])
            p /= p.sum()
            each = dict(zip(annotations.workers, tables[0, draw], strict=True))
            each["all"] = np.tensordot(by_worker, tables[0, draw], 1)
            for name, table in each.items():
                shown_left, shown_right = (
                    p @ (table[:, :3] / table[:, :3].sum(1, keepdims=True)),
                    p[[1, 0, 2]] @ (table[:, :3] / table[:, :3].sum(1, keepdims=True)),
                )
                better = p[0] + p[2] / 2
                said[name] += (
                    np.array([better, shown_left[0] + shown_left[2] / 2, shown_right[1] + shown_right[2] / 2]) / 2
                )
        columns = ["p_better", "p_named_left", "p_named_right"]
        for name in ("bob", "ann"):
            np.testing.assert_allclose(found.loc[(name, one, other), columns].astype(float), said[name], rtol=1e-6)
        np.testing.assert_allclose(typical.loc[(one, other), columns].astype(float), said["all"], rtol=1e-6)
    beaten = beats(posterior)
    for pair, row in typical.iterrows():
        assert row["p_better"] == pytest.approx(beaten.loc[pair])
        assert row["position_part"] == pytest.approx((row["p_named_left"] - row["p_named_right"]) / 2)


def test_the_part_of_the_position_is_half_of_a_workers_bias_where_there_are_two_classes():
    rng, rows = np.random.default_rng(0), []
    for pair in range(150):
        shown = tuple(rng.permutation(list(TRUE))[:2])
        odds = np.exp(TRUE[shown[0]] - TRUE[shown[1]])
        better = shown[0] if rng.random() < odds / (1 + odds) else shown[1]
        for worker, sure in {"fair": (0.9, 0.9), "first": (0.95, 0.55)}.items():
            for order in (shown, shown[::-1]):
                place = order.index(better)
                said = place if rng.random() < sure[place] else 1 - place
                rows.append((pair, *order, worker, ("left", "right")[said]))
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
    fit = cp.fit("dawid_skene", cp.Annotations.from_comparisons(frame, task="task"), seed=0, progress=False)
    found = fit.beats_by_position(["fair", "first"]).groupby("worker")["position_part"]
    assert (found.max() - found.min()).max() < 1e-6
    np.testing.assert_allclose(2 * found.mean(), fit.workers["position_bias"].loc[["fair", "first"]], atol=0.03)
    assert found.mean()["first"] > 0.15 > 0.05 > abs(found.mean()["fair"])
    with pytest.raises(AnnotationError, match="nobody"):
        fit.beats_by_position("nobody")


def test_comparisons_are_counted_without_abstentions(fit):
    said = table()[:-1]
    expected = pd.concat([said["left"], said["right"]]).value_counts()
    pd.testing.assert_series_equal(
        fit.ranking["n_comparisons"].sort_index(), expected.sort_index(), check_names=False, check_index_type=False
    )


def test_a_point_has_intervals_of_draws_around_it_that_hold_the_score(fit):
    found = fit.ranking
    assert ((found["score_low"] < found["score"]) & (found["score"] < found["score_high"])).all()
    assert ((found["rank_low"] <= found["rank"]) & (found["rank"] <= found["rank_high"])).all()
    assert found["p_best"].sum() == pytest.approx(1)
    assert (found["score_high"] - found["score_low"]).between(0.3, 4).all()
    assert list(found.index) == list(TRUE)


def test_scores_of_a_point_are_of_the_draws_that_their_intervals_are_of(fit):
    """They were those at the mode, far out in intervals around another centre where judges are weak."""
    around = item_draws(fit.with_uncertainty).score
    score = fit.ranking["score"].loc[list(fit.annotations.items)]
    median = np.median(around, 0)
    np.testing.assert_allclose(score, median - median.mean(), atol=1e-6)
    assert score.sum() == pytest.approx(0, abs=1e-6)
    at_the_mode = fit.derived["score"].to_series().loc[score.index]
    assert np.abs(at_the_mode - score).max() > 0.01
    np.testing.assert_allclose(at_the_mode, fit.fitted.draws_of_role("item_score")[0][0, 0], atol=1e-6)


def test_an_average_mixes_the_stories_scores(fit):
    other = cp.fit("dawid_skene", fit.annotations, seed=0, progress=False)
    both = cp.stack({"one": fit, "other": other}, weights={"one": 0.75, "other": 0.25})
    one, two = (item_draws(each.with_uncertainty).score for each in (fit, other))
    median = np.median(np.concatenate([one, one, one, two]), 0)
    score = both.ranking["score"].loc[list(fit.annotations.items)]
    np.testing.assert_allclose(score, median - median.mean(), atol=0.05)  # a quarter of the other's draws is taken


def test_what_has_no_items_or_no_scores_is_refused(fit):
    even = cp.fit("one_coin", fit.annotations, truth_prior="uniform", seed=0, progress=False)
    with pytest.raises(AnnotationError, match=r"truth_prior=cp\.BradleyTerry\(\)"):
        even.ranking  # noqa: B018
    votes = cp.fit("majority_vote", fit.annotations)
    with pytest.raises(AttributeError, match="no likelihood"):
        votes.ranking  # noqa: B018
    plain = cp.fit("one_coin", cp.load_dataset("anesthesia"), progress=False)
    for view in (lambda: plain.ranking, lambda: plain.beats, plain.beats_by_position):
        with pytest.raises(AnnotationError, match="from_comparisons"):
            view()


def test_the_files_of_a_fit_have_the_ranking(fit, tmp_path):
    assert "ranking.csv" in write_results(fit, tmp_path)
    found = pd.read_csv(tmp_path / "ranking.csv", index_col="item")
    assert list(found.index) == list(TRUE)
    assert list(found) == list(fit.ranking)


def test_the_plot_has_the_best_item_at_the_top(fit):
    ax = cp.plot_ranking(fit, interval=0.5)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(TRUE)[::-1]
    assert "50%" in ax.get_title()
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], fit.ranking["score"][::-1])


def test_summary_and_page_have_the_ranking_and_of_many_items_the_best(fit, tmp_path, monkeypatch):
    other = cp.fit("dawid_skene", fit.annotations, seed=0, progress=False)
    both = cp.stack({"one": fit, "other": other}, weights={"one": 0.75, "other": 0.25})
    for source in (fit, both):
        pd.testing.assert_frame_equal(source.summary().tables["ranking"], source.ranking)
    monkeypatch.setattr(summary_module, "SHOWN_ITEMS", 2)
    pd.testing.assert_frame_equal(fit.summary().tables["the best 2 of 4 items"], fit.ranking.head(2))
    page = Page(ranking_section(subject(fit, None, None, 0)).html)
    heads, *rows = page.table("Ranking")
    assert [row[0] for row in rows] == list(TRUE)
    assert heads[:3] == ["item", "score", "rank"]
    assert "Ranking of 4 items" in " ".join(image["alt"] for image in page.all("img"))
    _, *pairs = page.table("Probability that the row’s item is better than the column’s, a tie counted as half")
    assert pairs[0][2] == f"{fit.beats.iloc[0, 1]:.3f}"
    plain = cp.fit("one_coin", cp.load_dataset("anesthesia"), progress=False)
    assert ranking_section(subject(plain, None, None, 0)) is None
    assert "ranking" not in plain.summary().tables


@pytest.mark.filterwarnings("ignore")
def test_items_that_nothing_connects_are_ranked_within_their_parts_which_is_said_where_they_are_shown(monkeypatch):
    rng = np.random.default_rng(0)
    better = {"a": ["a1", "a2", "a3"], "b": ["b1", "b2"]}  # in their order, and never one against the other
    pairs = [(x, y) for names in better.values() for i, x in enumerate(names) for y in names[i + 1 :]]
    rows = [
        (*(pair if j % 2 else pair[::-1]), f"w{j}", pair[int(rng.random() < 0.1)], n)
        for n in range(8)
        for pair in pairs
        for j in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label", "prompt"])
    made = cp.Annotations.from_comparisons(frame, prompt="prompt")
    fit = cp.fit("one_coin", made, progress=False)
    found = fit.ranking
    assert list(found.index) == ["a1", "a2", "a3", "b1", "b2"]
    assert found["part"].tolist() == [1, 1, 1, 2, 2]
    assert found["rank"].tolist() == [1, 2, 3, 1, 2]
    np.testing.assert_allclose(found.groupby("part")["score"].sum(), 0.0, atol=1e-5)
    assert found["p_best"].groupby(found["part"]).sum().tolist() == pytest.approx([1, 1])
    apart = np.array([name[0] for name in found.index])
    assert (fit.beats.isna().to_numpy() == ((apart[:, None] != apart) | np.eye(5, dtype=bool))).all()
    assert len(beats_by_position(fit)) == 3 + 1
    assert "ranking, within 2 parts that no comparison joins" in fit.summary().tables
    ax = cp.plot_ranking(fit)
    assert "within 2 parts" in ax.get_title()
    rows = [text.get_text() for text in ax.get_yticklabels()][::-1]
    assert rows == ["part 1 (3 items)", "a1", "a2", "a3", "part 2 (2 items)", "b1", "b2"]
    drawn = ax.collections[-1].get_offsets()[::-1, 0]
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan)[[1, 2, 3, 5, 6]], found["score"], rtol=1e-6)
    monkeypatch.setattr(ranking_plot, "NAMED", 4)
    ax = cp.plot_ranking(fit)
    assert [text.get_text() for text in ax.texts][-2:] == ["part 1 (3 items)", "part 2 (2 items)"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "1", "2"]
    assert ax.get_xticks().tolist() == [1, 3, 5, 6]  # the fourth place is the gap
    line = ax.lines[0].get_ydata()
    np.testing.assert_allclose(line[[0, 1, 2, 4, 5]], found["score"], rtol=1e-6)
    assert np.isnan(line[3])
    plt.close("all")
    joined = pd.concat([frame, pd.DataFrame([("a1", "b1", "w0", "a1", 0)], columns=frame.columns)])
    one = cp.fit("one_coin", cp.Annotations.from_comparisons(joined, prompt="prompt"), progress=False).ranking
    assert "part" not in one
    assert sorted(one["rank"]) == [1, 2, 3, 4, 5]


def test_a_story_that_can_have_no_position_bias_has_none():
    named = cp.Annotations.from_comparisons(table().query("label != 'refused'"), task="task")
    fits = {story: cp.fit(story, named, progress=False) for story in ("one_coin", "dawid_skene")}
    assert "position_bias" not in fits["one_coin"].workers  # of errors on both sides
    biases = fits["dawid_skene"].workers.filter(like="position_bias")
    assert biases["position_bias"].notna().all()
    average = cp.stack(fits, weights={"one_coin": 1, "dawid_skene": 1}).workers.filter(like="position_bias")
    pd.testing.assert_frame_equal(
        average, biases, check_dtype=False
    )  # and in an average no story that can have none drags it to zero
