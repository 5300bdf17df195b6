"""Rankings by comparisons: crowdppl beside choix, evalica and crowd-kit's NoisyBradleyTerry, and its intervals.

crowdppl's scores are those of `fit.ranking`.

Simulated items have scores s from Normal(0, 1.5²) and each comparison is by one judge, who says i before j with

    γ σ(s_i − s_j) + (1 − γ) / 2,

with γ from 0.6 to 1, and 0 for the third of the judges who guess, where there are any. The mode of the scores where
every γ is known, under their own prior, says what a way that has to learn the judges can reach at most.
"""

import warnings
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path

import choix
import evalica
import jax
import numpy as np
import pandas as pd
import typer
from crowdkit.aggregation import NoisyBradleyTerry
from scipy.optimize import minimize
from scipy.stats import kendalltau
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.fitted.item_ranking import item_draws, item_ranking

JUDGES, ITEMS = 15, 20
SIZES = (100, 200, 400, 800, 1600)
SPREAD = 1.5  # standard deviation of the scores
PRIORS = (
    "crowdppl is one_coin with its defaults, a prior of a judge's accuracy that counts like 2 right answers and 1 "
    "wrong one; the prior of 10 is right=8, wrong=2, which was the better one with 200 comparisons on crowds of seeds "
    "100 to 113."
)
ASKED = (
    "Asked are a tau no lower than NoisyBradleyTerry's with any number of comparisons, half of the comparisons for the "
    "same tau where a third of the judges guess, intervals that cover 87 to 93 %, and judges_llmbar read as "
    "comparisons with labels that are no worse than those of a worker for each judge and order."
)
ORDERS = (
    "With the orders left out four small groups of judges count as copies, and auto takes what most of the other "
    "judges fall for as the better answer."
)
FLAT = 100.0  # standard deviation of a prior that says nearly nothing


BATTLES = {
    "12 items, 400 battles by 40 judges, 10 % ties": (12, 400, 40, 0.1),
    "8 items, 200 battles by 3 judges, no ties": (8, 200, 3, 0.0),
    "20 items, 1,000 battles by 300 judges, 25 % ties": (20, 1000, 300, 0.25),
}
"""Items, battles, judges and the share of ties, by what is said of them."""


WEAK = {
    "4 items, 100 comparisons, 3 judges right in 85, 60 and 55 %": (4, 100, (0.85, 0.6, 0.55)),
    "8 items, 120 comparisons, 3 judges right in 95, 80 and 65 %": (8, 120, (0.95, 0.8, 0.65)),
    "10 items, 100 comparisons by 3 of 5 judges right in 55 to 90 %": (
        10,
        100,
        (0.9, 0.8, 0.7, 0.6, 0.55),
    ),
}
"""Items, comparisons by three judges each, and how often judges are right, by what is said of them."""


def main(
    seeds: int = 20,
    simulations: int = 200,
    draws: int = 8,
    battles: int = 20,
    only_battles: bool = False,
    readings: bool = True,
    write: bool = False,
) -> None:
    """Measure, and print what was found.

    Args:
        seeds: simulated crowds of each size.
        simulations: of which the coverage of intervals is counted.
        draws: simulated crowds of preferences, and of items with features.
        battles: simulated arenas of each size.
        only_battles: print their tables and nothing else.
        readings: fit judges_llmbar read as labels and as comparisons, too, which takes minutes.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    report = Report("Comparisons")
    report.table(
        f"Arenas in which a battle has one judge, who draws a preference; mean of {battles} each",
        [of_battles(*of, battles) for of in product(BATTLES, (0.0, 0.1), (False, True))],
    )
    report.table(
        f"Root mean square errors of scores by EM, of a true label each; mean of {battles} arenas",
        [row for name in WEAK for row in by_estimate(name, battles)],
    )
    if only_battles:
        return
    report.table(
        "The same model: largest difference of scores",
        [{"precision": name, **same_model(double=name == "double")} for name in ("single", "double")],
    )
    for guessing in (0.0, 1 / 3):
        who = "a third of them guess" if guessing else "none guesses"
        taus = pd.DataFrame([of_crowd(n, seed, guessing) for n in SIZES for seed in range(seeds)])
        means = taus.groupby("comparisons").mean()
        report.table(
            f"Kendall's tau with the true order, {JUDGES} judges of unequal quality, {who}; mean of {seeds} crowds",
            [{"comparisons": n, **row} for n, row in means.iterrows()],
        )
        report.note(" ".join(needed(means, way) for way in ("crowdppl", "judges known")))
    report.note(f"{PRIORS} {ASKED}")
    methods = ("em", "svi", "nuts")
    report.table("Coverage of 90 % intervals of scores", [coverage(method, simulations) for method in methods])
    report.table("pairs_pandalm and pairs_music", real())
    report.table("pairs_pandalm: how often each judge is right, no gold label in view", of_judges())
    report.table(
        f"Scores of 8 items by 3 judges who draw each preference from them, with 5 % ties; mean of {draws} crowds",
        preferring(draws),
    )
    report.table(
        f"Crowds of which dawid_skene warns that comparisons are preferences, of {2 * draws} each", warned(2 * draws)
    )
    report.table(
        f"Items with few comparisons or none, whose scores follow two features but for 0.3; mean of {draws} crowds",
        by_features(draws),
    )
    if readings:
        report.table("judges_llmbar by auto, no gold label in view", llmbar())
        report.note(ORDERS)
    if write:
        report.write()


def same_model(*, double: bool) -> dict[str, str]:
    """The largest differences from choix' mode under a normal prior, and from evalica's maximum under nearly none."""
    frame, _ = crowd(2000, 0, 0.0, items=8)
    gold = dict(zip(frame["task"], np.where(frame["label"] == frame["left"], "left", "right"), strict=True))
    annotations = cp.Annotations.from_comparisons(frame, gold=gold)
    names = list(annotations.items)
    place = {name: at for at, name in enumerate(names)}
    loser = frame["left"].where(frame["label"] == frame["right"], frame["right"])
    wins = list(zip(frame["label"].map(place), loser.map(place), strict=True))

    def ours(scale: float) -> np.ndarray:
        prior = cp.BradleyTerry(scale=scale)
        with jax.enable_x64(double):
            fit = cp.fit("one_coin", annotations, truth_prior=prior, gold=True, tolerance=1e-12, progress=False)
        return fit.derived["score"].sel(item=names).to_numpy().astype(float)

    theirs = choix.opt_pairwise(len(names), wins, alpha=0.5 / SPREAD**2, tol=1e-10)
    winners = [evalica.Winner.X if is_left else evalica.Winner.Y for is_left in frame["label"] == frame["left"]]
    found = evalica.bradley_terry(frame["left"], frame["right"], winners, tolerance=1e-12, limit=10_000).scores
    strength = np.log(found.reindex(names).to_numpy(dtype=float))
    return {
        "choix, Normal(0, 1.5²)": f"{np.abs(ours(SPREAD) - (theirs - theirs.mean())).max():.1e}",
        "evalica, no prior": f"{np.abs(ours(FLAT) - (strength - strength.mean())).max():.1e}",
    }


def crowd(n: int, seed: int, guessing: float, items: int = ITEMS) -> tuple[pd.DataFrame, pd.Series]:
    """A crowd's comparisons, each a task of its own, with the γ of its judge, and the true scores."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, SPREAD, items)
    quality = np.where(np.arange(JUDGES) < round(guessing * JUDGES), 0.0, rng.uniform(0.6, 1.0, JUDGES))
    rows = []
    for task in range(n):
        i, j = rng.choice(items, 2, replace=False)
        judge = rng.integers(JUDGES)
        first = 1 / (1 + np.exp(score[j] - score[i])) if rng.random() < quality[judge] else 0.5
        rows.append((task, i, j, f"w{judge}", i if rng.random() < first else j, quality[judge]))
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label", "quality"])
    for name in ("left", "right", "label"):
        frame[name] = frame[name].map("item {:02}".format)
    return frame, pd.Series(score, [f"item {item:02}" for item in range(items)])


def of_crowd(n: int, seed: int, guessing: float) -> dict[str, float]:
    """Kendall's tau of each method's scores with the true ones."""
    frame, truth = crowd(n, seed, guessing)
    annotations = cp.Annotations.from_comparisons(frame.drop(columns="quality"))
    ours = {"crowdppl": {}, "crowdppl, prior of 10": {"right": 8.0, "wrong": 2.0}}
    winners = [evalica.Winner.X if is_left else evalica.Winner.Y for is_left in frame["label"] == frame["left"]]
    scores = {
        name: cp.fit("one_coin", annotations, progress=False, **options).ranking["score"]
        for name, options in ours.items()
    } | {
        "NoisyBradleyTerry": NoisyBradleyTerry(n_iter=100).fit_predict(frame),
        "evalica, Bradley-Terry": evalica.bradley_terry(frame["left"], frame["right"], winners).scores,
        "judges known": of_known_judges(frame, truth.index),
    }
    found = {name: tau(each, truth) for name, each in scores.items()}
    return {"comparisons": n, **found}


def of_known_judges(frame: pd.DataFrame, items: pd.Index) -> pd.Series:
    """The mode of the scores under Normal(0, 1.5²), given every judge's γ."""
    loser = frame["left"].where(frame["label"] == frame["right"], frame["right"])
    winner, loser = (items.get_indexer(each) for each in (frame["label"], loser))
    quality = frame["quality"].to_numpy()

    def cost(score: np.ndarray) -> tuple[float, np.ndarray]:
        first = 1 / (1 + np.exp(score[loser] - score[winner]))
        said = quality * first + (1 - quality) / 2
        slope = quality * first * (1 - first) / said
        pull = np.bincount(winner, slope, len(items)) - np.bincount(loser, slope, len(items))
        return 0.5 * np.sum(score**2) / SPREAD**2 - np.log(said).sum(), score / SPREAD**2 - pull

    return pd.Series(minimize(cost, np.zeros(len(items)), jac=True).x, items)


def tau(scores: pd.Series, truth: pd.Series) -> float:
    """Kendall's tau; an item without a score has the mean of the others."""
    return float(kendalltau(scores.reindex(truth.index).fillna(scores.mean()), truth)[0])


def needed(means: pd.DataFrame, way: str) -> str:
    """How many comparisons one way needs for the tau that NoisyBradleyTerry has of so many, by interpolation."""
    said = []
    for n, theirs in means["NoisyBradleyTerry"].items():
        ours = means[way]
        if ours.min() <= theirs <= ours.max():
            own = np.exp(np.interp(theirs, ours, np.log(ours.index)))
            said.append(f"{own:.0f} for NoisyBradleyTerry's {n} ({n / own:.2f} times fewer)")
    return f"For the same tau {way} needs " + (", ".join(said) or "fewer than were tried") + "."


def coverage(method: str, simulations: int, items: int = 8, n_tasks: int = 120) -> dict[str, float | str]:
    """How often 90 % intervals hold the scores, which sum to zero, of items drawn from the prior."""
    held, width = [], []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        effect = rng.normal(size=items)
        score = abs(rng.normal(0, 1.5)) * (effect - effect.mean())
        right = rng.beta(2, 1, 3)
        rows = []
        for task in range(n_tasks):
            i, j = rng.choice(items, 2, replace=False)
            better = i if rng.random() < 1 / (1 + np.exp(score[j] - score[i])) else j
            for judge, accuracy in enumerate(right):
                said = better if rng.random() < accuracy else i + j - better
                rows.append((task, f"item {i}", f"item {j}", f"w{judge}", f"item {said}"))
        frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
        fit = cp.fit("one_coin", cp.Annotations.from_comparisons(frame), method=method, seed=seed, progress=False)
        found = item_ranking(fit, 0.9).loc[[f"item {item}" for item in range(items)]]
        held.append(((found["score_low"] <= score) & (score <= found["score_high"])).mean())
        width.append((found["score_high"] - found["score_low"]).mean())
    error = float(np.std(held, ddof=1) / np.sqrt(simulations))
    return {
        "method": method,
        "simulations": simulations,
        "covered, %": 100 * float(np.mean(held)),
        "standard error, %": 100 * error,
        "mean width": float(np.mean(width)),
    }


def real() -> list[dict[str, object]]:
    """How far halves of the workers agree on the order of the items, by each method."""
    found: list[dict[str, object]] = []
    for name in ("pairs_pandalm", "pairs_music"):
        frame = pd.read_csv(Path(data_folder(), name, "comparisons.csv"), dtype={"worker": str, "task": str})
        frame = frame[frame["label"] != "abstain"]
        taus: dict[str, list[float]] = {"crowdppl": [], "evalica, Bradley-Terry": []}
        workers = frame["worker"].unique()
        for seed in range(10):
            half = np.random.default_rng(seed).permutation(workers)[: len(workers) // 2]
            parts = [frame[frame["worker"].isin(half) == inside] for inside in (True, False)]
            for method in taus:
                one, two = (scores_by(method, part).dropna() for part in parts)  # evalica has none of some items
                common = one.index.intersection(two.index)
                taus[method].append(float(kendalltau(one[common], two[common])[0]))
        row: dict[str, object] = {"data": name}
        for method, each in taus.items():  # evalica has no scores at all of some halves of a graph in parts
            row |= {
                f"tau of halves, {method}": float(np.nanmean(each)),
                f"halves, {method}": int(np.isfinite(each).sum()),
            }
        found.append(row)
    return found


def of_judges(name: str = "pairs_pandalm") -> list[dict[str, object]]:
    """The accuracy of each judge, by dawid_skene and by auto."""
    frame = pd.read_csv(Path(data_folder(), name, "comparisons.csv"), dtype={"worker": str, "task": str})
    annotations = cp.Annotations.from_comparisons(frame, classes=["left", "right", "tie"], abstain=["abstain"])
    by_fit = {
        f"{story}, {method}": cp.fit(story, annotations, method=method, progress=False).workers["accuracy"]
        for story, method in (("dawid_skene", "em"), ("dawid_skene", "nuts"), ("auto", "em"))
    }
    return pd.DataFrame(by_fit).reset_index(names="judge").to_dict("records")


def scores_by(method: str, frame: pd.DataFrame) -> pd.Series:
    """The items' scores of comparisons with ties."""
    if method == "crowdppl":
        annotations = cp.Annotations.from_comparisons(frame, classes=["left", "right", "tie"])
        return cp.fit("dawid_skene", annotations, seed=0, progress=False).derived["score"].to_series()
    sides = {"left": evalica.Winner.X, "right": evalica.Winner.Y, "tie": evalica.Winner.Draw}
    return evalica.bradley_terry(frame["left"], frame["right"], [sides[label] for label in frame["label"]]).scores


def preferring(draws: int) -> list[dict[str, object]]:
    """The regression of scores on the true ones, and the share of ties, by what is taken for a task."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        score = rng.normal(0, 1.2, 8)
        rows = []
        for (one, two), again, judge in product(permutations(range(8), 2), range(6), "uvw"):
            better = rng.random() < 1 / (1 + np.exp(score[two] - score[one]))
            said = "tie" if rng.random() < 0.05 else "left" if better else "right"
            rows.append((f"{min(one, two)} {max(one, two)} {again}", f"i{one}", f"i{two}", judge, said))
        frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
        own = frame.assign(task=range(len(frame)))
        for read, table, story, options in (
            ("dawid_skene, a pair is a task", frame, "dawid_skene", {}),
            ("dawid_skene, a prior of half the weight", frame, "dawid_skene", {"diagonal": 1.0, "off_diagonal": 0.25}),
            ("one_coin, a pair is a task", frame, "one_coin", {}),
            ("one_coin, an annotation is a task, and right", own, "one_coin", {"right": 1000.0, "wrong": 1.0}),
        ):
            annotations = cp.Annotations.from_comparisons(table)
            fit = cp.fit(story, annotations, seed=0, progress=False, **options)
            scores = item_ranking(fit, 0.9).loc[[f"i{item}" for item in range(8)]]
            centred = score - score.mean()
            found.append(
                {
                    "read": read,
                    "slope": np.polyfit(score, scores["score"], 1)[0],
                    "labels that are ties, %": 100 * float(fit.posterior[:, 2].mean()),
                    "covered, %": 100 * scores["score_low"].lt(centred).mul(scores["score_high"].gt(centred)).mean(),
                }
            )
    means = pd.DataFrame(found).groupby("read", sort=False).mean()
    return [{"read": read, **row} for read, row in means.iterrows()]


def of_battles(name: str, again: float, own: bool, draws: int) -> dict[str, object]:
    """The spread of scores beside the true one, and their intervals, where a share of the battles has a second judge.

    Args:
        name: of :data:`BATTLES`.
        again: the share.
        own: whether the battles are read as they are by default, as preferences, and fitted by auto; else with a true
            label each, by dawid_skene.
        draws: simulated arenas.
    """
    items, n_battles, n_judges, ties = BATTLES[name]
    ratio, held = [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        score = rng.normal(size=items)
        rows = []
        for battle in range(n_battles):
            i, j = rng.choice(items, 2, replace=False)
            for judge in rng.choice(n_judges, 1 + (rng.random() < again), replace=False):
                better = rng.random() < 1 / (1 + np.exp(score[j] - score[i]))
                said = "tie" if rng.random() < ties else "left" if better else "right"
                rows.append((f"q{battle}", f"i{i}", f"i{j}", f"w{judge}", said))
        frame = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
        annotations = cp.Annotations.from_comparisons(frame, prompt="prompt", preferences=None if own else False)
        fit = cp.fit("auto" if own else "dawid_skene", annotations, seed=0, progress=False)
        table = item_ranking(fit, 0.9).loc[[f"i{item}" for item in range(items)]]
        centred = score - score.mean()
        ratio.append(table["score"].std() / centred.std(ddof=1))
        held.append(((table["score_low"] <= centred) & (centred <= table["score_high"])).mean())
    return {
        "arena": name,
        "battles with two judges, %": 100 * again,
        "read as": "preferences" if own else "true labels",
        "spread / true spread": float(np.mean(ratio)),
        "covered, %": 100 * float(np.mean(held)),
    }


def by_estimate(name: str, draws: int) -> Iterator[dict[str, object]]:
    """Errors of the median and the mean of draws around EM's point, and of the point, by two stories.

    Args:
        name: of :data:`WEAK`.
        draws: simulated arenas.
    """
    items, n_tasks, accuracy = WEAK[name]
    for story in ("one_coin", "dawid_skene"):
        found = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            score = rng.normal(size=items)
            rows = []
            for task in range(n_tasks):
                i, j = rng.choice(items, 2, replace=False)
                better = rng.random() < 1 / (1 + np.exp(score[j] - score[i]))
                for judge in rng.choice(len(accuracy), 3, replace=False):
                    said = better if rng.random() < accuracy[judge] else not better
                    rows.append((task, f"i{i}", f"i{j}", f"w{judge}", "left" if said else "right"))
            frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
            fit = cp.fit(story, cp.Annotations.from_comparisons(frame), seed=0, progress=False)
            names = [name for name in (f"i{item}" for item in range(items)) if name in fit.annotations.items]
            true = pd.Series(score, [f"i{item}" for item in range(items)])[names]
            true -= true.mean()
            table, drawn = item_ranking(fit, 0.9).loc[names], item_draws(fit.with_uncertainty).score
            places = [list(fit.annotations.items).index(name) for name in names]
            estimates = {
                "median": table["score"],
                "mean": drawn.mean(0)[places],
                "point": fit.derived["score"].to_series()[names],
            }
            found.append(
                {f"{of}, error": np.sqrt(np.square(each - true).mean()) for of, each in estimates.items()}
                | {"covered, %": 100 * ((table["score_low"] <= true) & (true <= table["score_high"])).mean()}
            )
        yield {"arena": name, "story": story, **pd.DataFrame(found).mean()}


def warned(draws: int) -> list[dict[str, object]]:
    """How many crowds of preferences, and of errors about one draw for each pair, are said to be preferences."""
    found = []
    for again, ties, errors in product((1, 6), (0.0, 0.05), (False, True)):
        warnings_of = 0
        for seed in range(100, 100 + draws):
            rng = np.random.default_rng(seed)
            score = rng.normal(0, 1.2, 8)
            rows = []
            for (one, two), time in product(permutations(range(8), 2), range(again)):
                first = 1 / (1 + np.exp(score[two] - score[one]))
                truth = 2 if rng.random() < ties else int(rng.random() > first)
                for judge, accuracy in {"u": 0.95, "v": 0.8, "w": 0.7}.items():
                    said = 2 if rng.random() < ties else int(rng.random() > first)
                    if errors:
                        others = [k for k in range(3 if ties else 2) if k != truth]
                        said = truth if rng.random() < accuracy else int(rng.choice(others))
                    label = ("left", "right", "tie")[said]
                    rows.append((f"{min(one, two)} {max(one, two)} {time}", f"i{one}", f"i{two}", judge, label))
            frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
            fit = cp.fit("dawid_skene", cp.Annotations.from_comparisons(frame), seed=0, progress=False)
            warnings_of += any(each.code == "preferences" for each in fit.findings)
        kind = "errors of judges right in 95, 80 and 70 %" if errors else "preferences"
        found.append({"comparisons": 168 * again, "ties, %": 100 * ties, "drawn": kind, "warned of": warnings_of})
    return found


def by_features(draws: int, items: int = 20, few: int = 6) -> list[dict[str, object]]:
    """Errors of the scores of items that were compared twice, or never, with and without the items' features."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        names = [f"i{item:02}" for item in range(items)]
        about = pd.DataFrame(rng.normal(size=(items, 2)), names, ["one", "two"])
        score = about.to_numpy() @ np.array([1.2, -0.8]) + rng.normal(0, 0.3, items)
        often, seldom, never = np.split(np.arange(items), [items - few, items - few // 2])
        pairs = [rng.choice(often, 2, replace=False) for _ in range(400)]
        pairs += [(item, other) for item in seldom for other in rng.choice(often, 2, replace=False)]
        rows = []
        for task, (one, two) in enumerate(pairs):
            better = one if rng.random() < 1 / (1 + np.exp(score[two] - score[one])) else two
            for judge in "uvw":
                said = better if rng.random() < 0.85 else one + two - better
                rows.append((task, names[one], names[two], judge, names[said]))
        frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
        for how, options in (("no features", {}), ("item_features=", {"item_features": about})):
            annotations = cp.Annotations.from_comparisons(frame, **options)
            table = item_ranking(cp.fit("one_coin", annotations, seed=0, progress=False), 0.9).reindex(names)
            ours, known = table["score"], score - score[often].mean()
            error = (ours - ours.iloc[often].mean() - known).pow(2)  # from the mean of those that both ways know
            found.append(
                {"scores by": how}
                | {
                    f"error of items compared {times}": np.sqrt(error.iloc[which].mean())
                    for times, which in (("often", often), ("twice", seldom), ("never", never))
                }
            )
    means = pd.DataFrame(found).groupby("scores by", sort=False).mean()
    return [{"scores by": how, **row} for how, row in means.iterrows()]


def llmbar() -> list[dict[str, object]]:
    """Labels of judges_llmbar, where each judge is asked in both orders: as labels, and as comparisons."""
    as_labels = cp.load_dataset("judges_llmbar")
    frame = as_labels.to_frame().astype({"label": str})
    is_swapped = frame["worker"].str.endswith(".ba")
    first, second = frame["task"] + " 1", frame["task"] + " 2"
    table = pd.DataFrame(
        {
            "left": second.where(is_swapped, first),
            "right": first.where(is_swapped, second),
            "worker": frame["worker"].str.replace(r"\.(ab|ba)$", "", regex=True),
            "label": first.where(frame["label"] == "1", second.where(frame["label"] == "2", frame["label"])),
        }
    )
    compared = cp.Annotations.from_comparisons(table, abstain=[str(name) for name in as_labels.abstentions])
    better = np.asarray(compared.pairs["left"].str.endswith(" 2"), dtype=int)  # whether left is the second output
    of_pair = as_labels.tasks.index_of([name[:-2] for name in compared.pairs["left"]])
    gold = np.asarray(as_labels.gold)[of_pair] ^ better
    found = []
    for name, annotations, options, truth in (
        ("as labels, a judge in each order", as_labels.without_gold(), {}, np.asarray(as_labels.gold)),
        ("as comparisons", compared, {}, gold),
        ("as comparisons, one prevalence", compared, {"truth_prior": cp.Prevalence()}, gold),
        ("as comparisons, orders left out", compared.replace(mirrored=None), {}, gold),
    ):
        p = cp.fit("auto", annotations, progress=False, **options).probabilities.to_numpy()
        right = np.maximum(p[np.arange(len(truth)), truth], 1e-6)
        found.append({"read": name, "accuracy": (p.argmax(1) == truth).mean(), "log-score": np.log(right).mean()})
    return found


if __name__ == "__main__":
    typer.run(main)
