"""All checks asked of one result, and the findings on a posterior, whatever made it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, get_args

from ...data.id_text import listing
from ..engines.finding import OF_DATA, About, Finding
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from . import of_abstentions as of_abstentions
from . import of_agreement as of_agreement
from . import of_classifier as of_classifier
from . import of_comparisons as of_comparisons
from . import of_copies as of_copies
from . import of_crowd as of_crowd
from . import of_draws as of_draws
from . import of_gold as of_gold
from . import of_labels as of_labels
from . import of_modes as of_modes
from . import of_names as of_names
from . import of_order as of_order
from . import of_prior as of_prior
from . import of_questions as of_questions
from . import of_scales as of_scales
from . import of_scores as of_scores
from . import of_seen as of_seen
from . import of_time as of_time
from .register import CHECKS, Findings, once

ORDER = get_args(About)
NAMED = 3  # members that a finding of more names
LITTLE = 0.1  # weight below which a member of an average moves its labels too little for findings on that member


def look_at(of: Any, subjects: Collection[About] = ORDER) -> tuple[Finding, ...]:
    """Return the findings on a result, by subject in the order of :data:`.About`.

    Args:
        of: a fitted story, an average of several, or the outcome of an engine with its method and settings; checks that
            need what it lacks are left out.
        subjects: those that are asked about.
    """
    asked = sorted(
        (each for each in CHECKS.values() if each.about in subjects), key=lambda each: ORDER.index(each.about)
    )
    return tuple(finding for check in asked for finding in check(of))


@once
def findings(of: Posterior | Fitted) -> Findings:
    """Return what was found when a fit or labels by a rule were made.

    Of an average it is what was found of the members with a weight of a tenth and more, each with the member's name,
    and of the crowd by the averaged labels. Where members are one story from several seeds, what was found of many is
    said once, of the first of them, with their names.
    """
    if isinstance(of, Fitted):
        return Findings(of.findings)
    part = of.only if of.rule is None else of.rule
    if part is not None:
        return Findings(part.findings)
    weighty = of.weights[of.weights >= min(LITTLE, of.weights.max())].index
    each = ((name, finding) for name in weighty for finding in of.members[name].findings)
    of_members = [replace(finding, story=name) for name, finding in each if finding.about not in OF_DATA]
    if _differ_by_seed([of.members[name] for name in weighty]):
        of_members = _said_once(of_members)
    return Findings([*of_members, *look_at(of, OF_DATA)])


def _differ_by_seed(members: list[Fitted]) -> bool:
    """Return whether fits are of one story, each from a seed of its own."""
    return len({each.story for each in members}) == 1 and len({each.settings["seed"] for each in members}) == len(
        members
    )


def _said_once(found: list[Finding]) -> list[Finding]:
    """Return the first finding of each code and severity, with the names of all members of which there is one."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.code, finding.severity), []).append(finding)
    return [
        replace(first, story=listing([first.story, *(each.story for each in others)], NAMED, str, last=" and "))
        for first, *others in alike.values()
    ]
