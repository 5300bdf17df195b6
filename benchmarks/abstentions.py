"""Abstentions in weak supervision and in judging by language models: accuracy and log-score of auto and every story."""

import warnings

import jax
import numpy as np
import typer
from support.report import Report

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data.gold import right_shares
from crowdppl.models import STORIES
from crowdppl.models.parts import abstaining

CHOSEN_ON = ("ws_youtube", "ws_sms")
DATASETS = (*CHOSEN_ON, "judges_llmbar")
SETTINGS: tuple[dict[str, float], ...] = (
    {}, {"RARER": 0.25}, {"RARER": 1.0}, {"RIGHT": 0.8}, {"RIGHT": 0.95}, {"ONE_CLASS": 0.1}, {"ONE_CLASS": 1.0},
)  # fmt: skip
"""Constants of the prior, beside those of the package, among which one set chooses for the other."""
LEFT_OUT = ("difficulty",)  # which takes difficulties from votes that most tasks do not have
KINDS = ("informative", "uninformative")


def main(choose: bool = True, only: str = "", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        choose: also choose the prior's constants on each of two sets, and measure them on the other.
        only: datasets whose name has this in it.
        write: refresh this section of RESULTS.md.
    """
    report = Report("Abstentions: annotations that are no class")
    if choose:
        report.table("The prior's constants, chosen by auto's log-score on the other set", left_out())
    for name in DATASETS:
        if only not in name:
            continue
        annotations = _loaded(name)
        share = float((annotations.label >= annotations.n_classes).mean())
        report.table(f"{name}: {share:.1%} abstentions", rows(annotations))
    report.note(
        "Accuracy in percent and mean log-score of the gold label (probabilities from 10⁻⁶), by EM with the defaults. "
        "Uninformative abstentions are as if they had been left out. Majority vote: of classes, ties at random, its "
        "probabilities are the shares of the votes, even where a task has none. The prior of the rates of abstention "
        "was chosen with the gold labels of ws_sms and ws_youtube in view; what each set would choose for the other "
        f"among {len(SETTINGS)} settings (as it is, and each constant smaller and greater) is in the first table."
    )
    if write:
        report.write()


def left_out() -> list[dict[str, object]]:
    """A row for each of two sets: its scores with the constants as they are, and with those that the other chooses."""
    scores = {name: [_by_auto(_loaded(name), setting) for setting in SETTINGS] for name in CHOSEN_ON}
    found: list[dict[str, object]] = []
    for name, other in zip(CHOSEN_ON, reversed(CHOSEN_ON), strict=True):
        chosen = int(np.argmax([log_score for _, log_score in scores[other]]))
        shown = ", ".join(f"{constant} = {value:g}" for constant, value in SETTINGS[chosen].items())
        texts = [f"{100 * right:.1f} ({log_score:.3f})" for right, log_score in scores[name]]
        worst = min(texts, key=lambda text: float(text.split("(")[1].rstrip(")")))
        found.append(
            {
                "measured on": name,
                "as it is": texts[0],
                "chosen on the other": texts[chosen],
                "which is": shown or "as it is",
                "worst of all": worst,
            }
        )
    return found


def _by_auto(annotations: cp.Annotations, setting: dict[str, float]) -> tuple[float, float]:
    """Accuracy and log-score of auto with some of the prior's constants changed."""
    usual = {constant: getattr(abstaining, constant) for constant in setting}
    try:
        for constant, value in setting.items():
            setattr(abstaining, constant, value)
        jax.clear_caches()  # programs have the constants in them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = cp.fit("auto", annotations.without_gold(), progress=False).posterior
    finally:
        for constant, value in usual.items():
            setattr(abstaining, constant, value)
        jax.clear_caches()
    gold = np.asarray(annotations.gold)
    known = gold >= 0
    score = float((p.argmax(-1) == gold)[known].mean()), _log_score(p, gold)
    print(setting, score, flush=True)
    return score


def _loaded(name: str) -> cp.Annotations:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tasks and workers with nothing but abstentions
        return cp.load_dataset(name)


def rows(annotations: cp.Annotations) -> list[dict[str, object]]:
    """A row for the majority vote and for each story."""
    votes, gold = annotations.votes(), np.asarray(annotations.gold)
    total = votes.sum(1, keepdims=True)
    shares = np.where(total > 0, votes / np.maximum(total, 1), 1 / annotations.n_classes)
    known = gold >= 0
    right = right_shares(annotations.kind.majority(votes[known]), gold[known]).mean()
    vote = f"{100 * right:.1f} ({_log_score(shares, gold):.2f})"
    found: list[dict[str, object]] = [{"story": "majority vote", KINDS[0]: vote, KINDS[1]: vote}]
    for story in ("auto", *STORIES):
        if story not in LEFT_OUT:
            print(story, flush=True)
            found.append({"story": story} | {kind: _scores(story, annotations, kind) for kind in KINDS})
    return found


def _scores(story: str, annotations: cp.Annotations, kind: str) -> str:
    """Accuracy and log-score of a story's labels; a dash where it does not fit the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = cp.fit(story, annotations.without_gold(), abstentions=kind, progress=False)
    except StoryError:
        return "–"
    gold, p = np.asarray(annotations.gold), fit.probabilities.to_numpy()
    known = gold >= 0
    return f"{100 * (p.argmax(-1) == gold)[known].mean():.1f} ({_log_score(p, gold):.2f})"


def _log_score(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Mean log-probability of the gold labels, in nats."""
    known = np.flatnonzero(gold >= 0)
    return float(np.log(np.maximum(probabilities[known, gold[known]], 1e-6)).mean())


if __name__ == "__main__":
    typer.run(main)
