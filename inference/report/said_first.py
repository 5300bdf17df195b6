"""The page's opening in words: three sentences, and alerts to act on, the weightiest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...data.description import count_text
from ..engines.finding import Finding
from ..findings.facts import SURE
from ..plots.style import share
from .overview import Overview

NAMED = 5  # tasks and workers that are named


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


def sentences(found: Overview) -> tuple[str, str, str]:
    """Three sentences that can be repeated: on the labels, on the workers, and on how far to trust them."""
    return _of_labels(found), _of_workers(found), _of_trust(found)


def alerts(found: Overview) -> list[Alert]:
    """Return alerts to act on, the weightiest first.

    Warnings of the fit come first, because a computation that failed leaves nothing else to rely on; then gold labels
    that contradict the labels, labels to review, workers to review, checks that failed, a prior that outweighs the
    annotations, and probabilities that gold labels show to be too high.
    """
    made = []
    of_prior = tuple(as_sentence(each) for each in found.warnings if each.about == "prior")
    others = tuple(as_sentence(each) for each in found.warnings if each.about != "prior")
    if others:
        made.append(Alert("Warnings of the fit", others, "convergence" if found.sampled else "labels"))
    if found.gold is not None and found.gold.contradicts:
        gold = found.gold
        text = (
            f"Of {count_text(gold.tasks, 'gold task')} {share(gold.right)} of the labels are right "
            f"({gold.interval}), fewer than by guessing. Look whether gold "
            "labels and annotations name the classes and the tasks alike, before anything else here is relied on."
        )
        made.append(Alert("The gold labels contradict the labels", (text,), "gold"))
    if found.unsure:
        text = (
            f"{_whose(found.unsure)} probability is below {SURE}. The most uncertain: {_listed(found.unsure)}. Look at "
            "them, or have them annotated again."
        )
        made.append(Alert(f"{count_text(len(found.unsure), 'label')} to review", (text,), "labels"))
    if found.suspects:
        texts = tuple(f"{_short(name)}: {why}." for name, why in found.suspects[:NAMED])
        if len(found.suspects) > NAMED:
            texts += (f"And {len(found.suspects) - NAMED:,} more, whom the table of the workers has.",)
        made.append(Alert(f"{count_text(len(found.suspects), found.noun)} to review", texts, "workers"))
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
            f"Their probabilities promise that {gold.promised:.1%} are right; {gold.right:.1%} are, of "
            f"{count_text(gold.tasks, 'gold task')} ({gold.interval})."
        )
        made.append(Alert("The labels are overconfident", (text,), "gold"))
    return made


def all_clear(found: Overview) -> list[str]:
    """Return a sentence for each examined point without anything to act on."""
    said = []
    if not found.unsure:
        said.append(f"Every label has a probability of at least {SURE}.")
    if found.n_workers and not found.suspects:
        said.append(f"No {found.noun} is to be reviewed.")
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


def _of_labels(found: Overview) -> str:
    n, unsure = found.n_tasks, len(found.unsure)
    sure = n - unsure
    which = f"{sure:,} of {n:,} labels ({share(sure / n)})" if unsure else f"All {n:,} labels" if n > 1 else "The label"
    certain = f"{which} {'is' if sure == 1 else 'are'} certain (probability at least {SURE})"
    review = f", {unsure:,} should be reviewed" if unsure else ""
    if found.differing:
        return f"{certain}{review}, and on {count_text(found.differing, 'task')} the label is not the majority vote."
    return f"{certain}{review}, and no label differs from a majority vote."


def _of_workers(found: Overview) -> str:
    if not found.n_workers or found.accuracy is None:
        return "The annotations name no workers, so that none can be reviewed."
    everyone = count_text(found.n_workers, found.noun)
    median = f"the median {found.noun} is right with probability {found.accuracy:.2f}"
    if found.n_workers == 1:
        median = f"the {found.noun} is right with probability {found.accuracy:.2f}"
    if not found.suspects:
        nobody = f"The only {found.noun} is not" if found.n_workers == 1 else f"None of {everyone} is"
        return f"{nobody} to be reviewed; {median}."
    n = len(found.suspects)
    names = _listed([name for name, _ in found.suspects])
    return f"{n:,} of {everyone} should be reviewed ({names}); {median}."


def _of_trust(found: Overview) -> str:
    gold = found.gold
    if gold is None:
        first = "There are no gold labels to say how often the labels are right"
    else:
        first = (
            f"On {count_text(gold.tasks, 'gold task')} {share(gold.right)} of the labels are right ({gold.interval}) "
            f"and {share(gold.majority)} of the majority votes; the labels’ probabilities promised "
            f"{share(gold.promised)}" + (", which is too much" if gold.overconfident else "")
        )
    if not found.sampled:
        return f"{first}, and without a likelihood nothing checks the method against the annotations."
    if found.n_checks is None:
        return f"{first}, and the story was not checked against the annotations."
    if found.failed:
        return f"{first}, and the story failed {len(found.failed)} of {found.n_checks} checks against the annotations."
    return f"{first}, and the story passed all {found.n_checks} checks against the annotations."


def as_sentence(finding: Finding) -> str:
    """Return a finding as a sentence that stands by itself; where it begins with a fit's name that stays as it is."""
    text = finding.sentence
    return (text if finding.story else f"{text[:1].upper()}{text[1:]}") + ("" if text.endswith(".") else ".")


def _whose(names: Sequence[str]) -> str:
    return "Its" if len(names) == 1 else "Their"


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(_short(name) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"


def _short(name: str) -> str:
    """A name of at most forty characters, its middle left out where it is longer."""
    return name if len(name) <= 40 else f"{name[:24]}…{name[-15:]}"
