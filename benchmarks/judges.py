"""Panels of language models as judges: auto's labels beside majority vote, Dawid–Skene and a factor analysis.

Panels of judges_llmbar: all judges; the judges of one model; its natural and its adversarial tasks; judges drawn at
random. The factor analysis has one common factor of normal scores by judge,

    x_ij = m_j + a_j q_i + e_ij,   q_i ~ N(0, 1),   a_j ~ N(mean, 0.3²),   e_ij ~ N(0, ψ_j),   ψ_j ~ InvGamma(2, 1/2),

by EM, and P(z_i = 1) = Φ(q_i), which no gold label calibrates.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import typer
from scipy.stats import norm, rankdata
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.fitted.reversal import reversal_doubt

ITERATIONS = 200
SPREAD = 0.3  # of the judges' loadings
JUDGES = 20  # of a panel drawn at random


def main(draws: int = 8, only: str = "", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: panels of judges drawn at random.
        only: how the names of the panels begin that are measured; all by default.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Panels of judges")
    rows = pd.DataFrame({name: measured(panel) for name, panel in panels(draws) if name.startswith(only)}).T
    at_random = rows[rows.index.str.startswith("at random")]
    shown = pd.concat([rows, pd.DataFrame({"mean of those at random": at_random.mean(), "mean": rows.mean()}).T])
    for measure in ("accuracy", "log-score"):
        columns = {name: name.removesuffix(f", {measure}") for name in shown if name.endswith(measure)}
        table = shown[[*columns, "doubt"]].rename(columns=columns)
        report.table(measure, [{"panel": str(name), **row} for name, row in table.iterrows()])
    report.note(
        "Accuracy in percent, mean log-score of the gold label in nats, by EM with the defaults and no gold label in "
        "view. Doubt: the probability that the labels of dawid_skene with shared errors are turned around "
        "(crowdppl.inference.fitted.reversal), which has no setting that was chosen on gold labels. The "
        "panels are of one source, and no independent evidence."
    )
    if write:
        report.write()


def panels(draws: int) -> Iterator[tuple[str, cp.Annotations]]:
    """Panels of judges_llmbar by name."""
    everything = cp.load_dataset("judges_llmbar")
    yield "all judges", everything
    frame, gold = everything.to_frame(), gold_of(everything)
    model = frame["worker"].str.split(".").str[0]
    natural = frame["task"].str.startswith("Natural")
    parts = {f"judges by {name}": model == name for name in sorted(model.unique())}
    parts |= {"natural tasks": natural, "adversarial tasks": ~natural}
    judges, rng = frame["worker"].unique(), np.random.default_rng(0)
    for number in range(draws):
        chosen = rng.choice(judges, JUDGES, replace=False)
        parts[f"at random {number + 1}"] = frame["worker"].isin(chosen)
    for name, chosen in parts.items():
        options = {"classes": list(everything.classes), "abstain": list(everything.abstentions)}
        some = frame[chosen]
        yield name, cp.Annotations.from_frame(some, gold=gold[gold.index.isin(some["task"])].to_dict(), **options)


def measured(annotations: cp.Annotations) -> dict[str, float]:
    """Accuracy and log-score of each method on one panel, and the doubt of its labels."""
    gold, blind = np.asarray(annotations.gold), annotations.without_gold()
    votes = np.asarray(blind.votes(), dtype=float)
    shared = cp.fit("dawid_skene", blind, shared_error=True, progress=False)
    factor = norm.cdf(factor_scores(blind))
    found = {
        "auto": cp.fit("auto", blind, progress=False).probabilities.to_numpy(),
        "majority vote": (votes + 0.5) / (votes.sum(1, keepdims=True) + 1),
        "dawid_skene": cp.fit("dawid_skene", blind, progress=False).posterior,
        "dawid_skene, shared errors": shared.posterior,
        "factor analysis": np.stack([1 - factor, factor], 1),
    }
    known = np.flatnonzero(gold >= 0)
    scores: dict[str, float] = {"doubt": reversal_doubt(blind, shared.posterior)}
    for name, p in found.items():
        scores[f"{name}, accuracy"] = 100 * float((p.argmax(1) == gold)[known].mean())
        scores[f"{name}, log-score"] = float(np.log(np.maximum(p[known, gold[known]], 1e-6)).mean())
    return scores


def factor_scores(annotations: cp.Annotations) -> np.ndarray:
    """The common factor of each task, ``(N,)``, of the judges' verdicts as normal scores."""
    verdicts = np.full((annotations.n_tasks, annotations.n_workers), np.nan)
    given = np.asarray(annotations.label) < annotations.n_classes
    task, worker = np.asarray(annotations.task)[given], np.asarray(annotations.worker)[given]
    verdicts[task, worker] = np.asarray(annotations.label)[given]
    known = ~np.isnan(verdicts)
    scores = np.zeros(verdicts.shape)
    for judge in range(annotations.n_workers):
        own = known[:, judge]
        scores[own, judge] = norm.ppf((rankdata(verdicts[own, judge]) - 0.5) / max(own.sum(), 1))
    n = known.sum(0)
    scores = np.where(known, scores - scores.sum(0) / np.maximum(n, 1), 0.0)
    loading, offset, noise = np.full(len(n), 0.5), np.zeros(len(n)), np.ones(len(n))
    for _ in range(ITERATIONS):
        variance = 1 / (1 + (known * (loading**2 / noise)).sum(1))
        factor = variance * (known * (scores - offset) * (loading / noise)).sum(1)
        squares = (known * (factor**2 + variance)[:, None]).sum(0)
        products = (known * (scores - offset) * factor[:, None]).sum(0)
        loading = (products / noise + loading.mean() / SPREAD**2) / (squares / noise + 1 / SPREAD**2)
        offset = (known * (scores - np.outer(factor, loading))).sum(0) / (n + 1)
        left = (scores - offset - np.outer(factor, loading)) ** 2 + np.outer(variance, loading**2)
        noise = ((known * left).sum(0) / 2 + 0.5) / (n / 2 + 3)
    return factor


def gold_of(annotations: cp.Annotations) -> pd.Series:
    """The known gold labels by task."""
    gold, classes = np.asarray(annotations.gold), list(annotations.classes)
    labels = pd.Series([classes[at] if at >= 0 else None for at in gold], annotations.tasks.to_index("task"))
    return labels.dropna()


if __name__ == "__main__":
    typer.run(main)
