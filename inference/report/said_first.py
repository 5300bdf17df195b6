"""The page's opening in words: how far to trust the labels, and alerts to act on, the weightiest first."""

from dataclasses import dataclass

from ...data.description import count_text
from ..engines.finding import Finding
from ..plots.style import share
from .overview import Overview


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
    """Return a sentence on how far gold labels and checks speak for the labels."""
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
