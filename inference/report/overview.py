"""Findings that a reader of a fit should know first, in words: how far to trust the labels, and alerts."""

from dataclasses import dataclass

from ...data.description import count_text
from ...data.id_text import as_sentence
from ..checks.check_results import LEVEL, Checks
from ..findings.gold_share import GoldShare, gold_share
from ..findings.register import Findings
from ..findings.verdict import Verdict, verdict
from ..fitted.fitted import Fitted
from .subject import Subject

NOTHING = Findings()


@dataclass(frozen=True)
class Overview:
    """Facts on a fit that the page says first, from which its alerts are made.

    Args:
        verdict: on the fit.
        failed: titles of the predictive checks that failed with their p-values, the smallest first.
        n_checks: the number of checks made; None where there are none.
        gold: the share of right labels; None without gold labels.
        warnings: of the fits.
        sampled: whether an engine fitted a likelihood, so that there is something to warn of and to check.
    """

    verdict: Verdict
    failed: tuple[tuple[str, float], ...] = ()
    n_checks: int | None = None
    gold: GoldShare | None = None
    warnings: Findings = NOTHING
    sampled: bool = True


def overview(subject: Subject, checks: Checks | None) -> Overview:
    """Return the facts that the page says first.

    Args:
        checks: predictive checks of the fit that leads; None where there are none.
    """
    found = {} if checks is None else {r.title: r.p_value for r in checks.results.values() if r.p_value < LEVEL}
    return Overview(
        verdict=verdict(subject.source),
        failed=tuple(sorted(found.items(), key=lambda item: item[1])),
        n_checks=None if checks is None else len(checks.results),
        gold=gold_share(subject.source),
        warnings=subject.findings.warnings,
        sampled=isinstance(subject.lead[1], Fitted),
    )


@dataclass(frozen=True)
class Alert:
    """Something to act on.

    Args:
        title: what it is, in a few words.
        texts: what was found, and what to do, a sentence or more each.
        anchor: of the section that has more.
    """

    title: str
    texts: tuple[str, ...]
    anchor: str


def alerts(found: Overview) -> list[Alert]:
    """Return alerts to act on, the weightiest first.

    Warnings of the fit come first, because a computation that failed leaves nothing else to rely on; then gold labels
    that contradict the labels, checks that failed, a prior that outweighs the annotations, and probabilities that gold
    labels show to be too high. Labels and workers to review are in the verdict.
    """
    made = []
    of_prior = tuple(each.standing for each in found.warnings if each.about == "prior")
    others = tuple(each.standing for each in found.warnings if each.about != "prior")
    if others:
        made.append(Alert("Warnings of the fit", others, "convergence" if found.sampled else "labels"))
    if found.gold is not None and found.gold.contradicts:
        text = (
            "Fewer labels are right on the gold tasks than by guessing. Look whether gold labels and annotations name "
            "the classes and the tasks alike, before anything else here is relied on."
        )
        made.append(Alert("The gold labels contradict the labels", (text,), "gold"))
    if found.failed:
        listed = "; ".join(f"{title} (p = {p_value(p)})" for title, p in found.failed)
        text = (
            f"The story does not replicate this in the annotations: {listed}. The labels’ probabilities may then be "
            "too high or too low; another story may describe these annotations better."
        )
        checked = "check" if found.n_checks == 1 else "checks"
        made.append(Alert(f"{len(found.failed)} of {found.n_checks} {checked} failed", (text,), "checks"))
    if of_prior:
        made.append(Alert("The prior outweighs the annotations", of_prior, "prior"))
    if found.gold is not None and found.gold.overconfident and not found.gold.contradicts:
        gold = found.gold
        text = (
            f"On {count_text(gold.tasks, 'gold task')} their mean probability is "
            f"{100 * (gold.promised - gold.right):.0f} percentage points above the share of labels that are right."
        )
        made.append(Alert("The labels are overconfident", (text,), "gold"))
    return made


def all_clear(found: Overview) -> list[str]:
    """Return a sentence for each examined point without anything to act on."""
    said = []
    if found.n_checks and not found.failed:
        said.append(f"No predictive check failed ({found.n_checks} were made).")
    if found.gold is not None and not found.gold.overconfident:
        said.append("The gold labels do not show the labels’ probabilities to be too high.")
    if found.sampled and all(each.about == "prior" for each in found.warnings):
        meaning = (
            ": nothing points to the computation as the reason why checks failed"
            if found.failed
            else ", which speaks for the computation, and not for the story"
        )
        said.append(f"The engine gave no warnings{meaning}.")
    return said


def p_value(value: float) -> str:
    """A p-value with the decimals that it needs."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def trust(found: Overview) -> str:
    """Return a sentence on how far checks speak for the labels, and on gold labels where there are none.

    What gold labels say is in the verdict.
    """
    if not found.sampled:
        said = "without a likelihood nothing checks the method against the annotations"
    elif found.n_checks is None:
        said = "the story was not checked against the annotations"
    elif found.failed:
        said = f"the story failed {len(found.failed)} of {found.n_checks} checks against the annotations"
    else:
        said = f"the story passed all {found.n_checks} checks against the annotations"
    if found.gold is None:
        return f"There are no gold labels to say how often the labels are right, and {said}."
    return as_sentence(said)
