"""Which items to have compared next: the gain is the information about the scores, and asking by it pays."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import crowdppl as cp
from crowdppl.data import AnnotationError
from crowdppl.inference.fitted.item_ranking import item_draws

QUALITY = {"able": 0.95, "fair": 0.8, "guesser": 0.5}
SCORE = np.array([3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -3.0])


def rows_of(pairs, rng, first=0):
    """Comparisons of pairs of items by a worker each."""
    rows = []
    for number, (left, right, worker) in enumerate(pairs):
        is_left = rng.random() < 1 / (1 + np.exp(SCORE[right] - SCORE[left]))
        said = is_left == (rng.random() < QUALITY[worker])
        rows.append((first + number, f"i{left}", f"i{right}", worker, "left" if said else "right"))
    return pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])


def random_pairs(n, rng, workers=tuple(QUALITY)):
    return [(*rng.permutation(len(SCORE))[:2], rng.choice(workers)) for _ in range(n)]


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    frame = rows_of(random_pairs(240, rng), rng)
    return cp.fit("one_coin", cp.Annotations.from_comparisons(frame, prompt="prompt"), seed=0, progress=False)


def test_the_gain_is_the_mutual_information_of_the_scores_and_the_annotation(fit):
    draws = item_draws(fit.with_uncertainty).score
    items = list(fit.annotations.items)
    for row in cp.next_comparisons(fit, 1, workers="able").itertuples():
        gap = draws[:, items.index(row.left)] - draws[:, items.index(row.right)]
        gap = np.random.default_rng(1).normal(gap.mean(), gap.std(ddof=1), 200_000)
        truth = np.stack([1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(gap))], axis=1)
        of_label = truth @ np.asarray(fit.confusions().pivot(index=["worker", "truth"], columns="annotation",
                                                             values="probability").loc["able"])  # fmt: skip
        mean = of_label.mean(0)
        by_hand = -(mean * np.log(mean)).sum() + (of_label * np.log(of_label)).sum(1).mean()
        assert row.expected_gain == pytest.approx(by_hand, rel=0.02)
        assert row.p_left == pytest.approx(truth[:, 0].mean(), abs=0.01)


def test_able_workers_and_items_that_are_hardly_known_are_asked_for_first(fit):
    asked = cp.next_comparisons(fit, 6, workers=list(QUALITY))
    assert set(asked["worker"]) == {"able"}
    assert {"i0", "i6"} not in [set(pair) for pair in asked[["left", "right"]].to_numpy()]  # whose order is known
    assert len(asked.drop_duplicates(["left", "right"])) > 3  # one pair's second comparison tells less
    assert (asked["expected_gain"] > 0).all()
    of_crowd = cp.next_comparisons(fit, 2)
    assert list(of_crowd) == ["left", "right", "expected_gain", "p_left", "n_comparisons"]
    assert of_crowd["expected_gain"].iloc[0] < asked["expected_gain"].iloc[0]
    counts = fit.annotations.pairs.apply(frozenset, axis=1).value_counts()
    row = of_crowd.iloc[0]
    assert row["n_comparisons"] == counts.get(frozenset((row["left"], row["right"])), 0)


def test_a_pair_that_is_a_task_tells_less_the_surer_its_label_is():
    rng = np.random.default_rng(3)
    frame = pd.concat([rows_of(random_pairs(40, rng), rng), rows_of([(3, 4, "able")] * 12, rng, 40)])
    by_pair, by_prompt = (
        cp.fit("one_coin", cp.Annotations.from_comparisons(frame, prompt=prompt), seed=0, progress=False)
        for prompt in (None, "prompt")
    )

    def gain(fit):
        asked = cp.next_comparisons(fit, 1, workers="able")
        return asked["expected_gain"].iloc[0], {asked["left"].iloc[0], asked["right"].iloc[0]}

    assert gain(by_pair)[1] != {"i3", "i4"}
    assert gain(by_prompt)[0] > 0


def test_it_is_refused_where_nothing_is_compared(fit):
    with pytest.raises(ValueError, match=r"n=0"):
        cp.next_comparisons(fit, 0)
    with pytest.raises(AnnotationError, match=r"'nobody' is not in"):
        cp.next_comparisons(fit, 1, workers="nobody")
    plain = cp.fit("one_coin", cp.load_dataset("anesthesia"), progress=False)
    with pytest.raises(AnnotationError, match=r"no comparisons"):
        cp.next_comparisons(plain, 1)


@pytest.mark.slow
def test_asking_by_it_ranks_better_than_asking_at_random():
    taus = {"asked": [], "random": []}
    for seed in range(12):
        for how, found in taus.items():
            rng = np.random.default_rng(seed)
            frame = rows_of(random_pairs(30, rng), rng)
            for _ in range(6):
                fit = cp.fit("one_coin", cp.Annotations.from_comparisons(frame, prompt="prompt"), progress=False)
                if how == "asked":
                    asked = cp.next_comparisons(fit, 10, workers=list(QUALITY))
                    pairs = [(int(r.left[1:]), int(r.right[1:]), r.worker) for r in asked.itertuples()]
                else:
                    pairs = random_pairs(10, rng)
                frame = pd.concat([frame, rows_of(pairs, rng, len(frame))])
            fit = cp.fit("one_coin", cp.Annotations.from_comparisons(frame, prompt="prompt"), progress=False)
            scores = fit.derived["score"].to_series().sort_index()
            found.append(kendalltau(scores, SCORE)[0])
    assert np.mean(taus["asked"]) > np.mean(taus["random"]) + 0.03, taus
