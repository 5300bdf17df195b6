"""Annotations that count for more than they say: workers who copy, who may count as one, and dependent repeats.

Of a group's annotations of a task one is kept, and the same member gives all.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.description import count_text
from ...data.errors import check_name
from ...data.id_text import places_of
from ...models.parts.shared_error import families_of
from ..engines.finding import Finding
from ..fitted.by_rule import ByRule
from ..fitted.dependence import BEFORE, dependence
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from .copies import AgreeingGroup, always_same_groups, by_abstaining, copying_groups, doubtful_groups
from .copies_on_gold import OnGold, of_question, on_gold
from .facts import listed
from .of_crowd import SAID, crowd_of, open_question, tables_of, worse_than_chance
from .register import Labels, Said, check
from .repeated import MUCH, AgreeingRepeats, agreeing_repeats, contradicting_repeats

SHOWN = 4  # groups
RULES = ("keep", "one", "auto")
LEFT = 0.5  # of the annotations that are left with copies as one, from which on they count so by "auto"
# Of a group's agreement, beyond which it stays as it is by "auto" where it is most of the crowd: chosen with
# pairs_pandalm in view, .52, beside .14 to .31 of simulated crowds where four of seven copy.
EXPLAINED = 0.4
FIGURES = ("within", "outside", "n_tasks", "question")
FIGURES_OF_REPEATS = ("pairs", "agreement", "expected")


@check("copies", "crowd", needs={"workers"})
def copies(of: Labels) -> Iterator[Said]:
    """Workers who agree with each other more than independent workers can: :mod:`.copies`.

    Where the story knows them as one family already, what is left is to fit without them. Warned are 78 of 80 crowds
    of 14 workers with two groups of four who copy .75 or .85, and none of 120 healthy (``benchmarks/findings.py``).
    """
    if known := _counted_before(of, "copies"):
        yield from known
        return
    crowd = crowd_of(of)
    facts = of.outcome.facts if isinstance(of, Fitted) else {}
    as_one, unasked = facts.get("copies") or [], bool(facts.get("copies_unasked"))
    if as_one:
        by_gold = facts.get("copies_on_gold") or [None] * len(as_one)
        yield _counted_once(of, list(zip(as_one, by_gold, strict=True)), facts["copies_left"], unasked)
    in_full = copying_groups(of.annotations) if crowd and (unasked or not as_one) else []
    if doubted := [one for one in _on_gold(of, in_full) if one[1] is None or not one[1].is_better]:
        yield _in_doubt(of, doubted)


@check("better_than_rest", "crowd", needs={"workers"})
def better_than_rest(of: Labels) -> Iterator[Said]:
    """Workers who agree as copies do and of whom gold labels tell that they are better, as a note for each group."""
    if crowd_of(of) is None:
        return
    for group, gold in _on_gold(of, copying_groups(of.annotations) or doubtful_groups(of.annotations)):
        if gold is not None and gold.is_better:
            names = [of.annotations.workers[j] for j in group.workers.tolist()]
            yield Said(
                f"{listed(names)} are better than the rest, by which they agree so much: {_agreement_of(of, group)}. "
                f"{gold.text}",
                values={"workers": names, "within": group.within, "outside": group.outside, "by_gold": gold.told},
                severity="note",
            )


OnGolds = Sequence[tuple[AgreeingGroup, OnGold | None]]
"""Groups, and what gold labels say of each."""


def _on_gold(of: Labels, groups: Iterable[AgreeingGroup]) -> OnGolds:
    return [(group, on_gold(of.annotations, group)) for group in groups]


def _agreement_of(of: Labels, group: AgreeingGroup) -> str:
    """Return how often a group gives the same label, as a clause."""
    same = "give the same label, or abstain together," if by_abstaining(of.annotations) else "give the same label"
    place = "" if group.question is None else f" of question {group.question!r}"
    return (
        f"they {same} in {group.within:.0%} of their annotations of one task{place} "
        f"({count_text(group.n_tasks, 'task')}), and the label of others in {group.outside:.0%}"
    )


def _in_doubt(of: Labels, groups: OnGolds) -> Said:
    """Return what is said of groups who agree as copies do, of whom gold labels may tell whether they are."""
    (first, gold), workers, families = groups[0], list(of.annotations.workers), _families(of)
    names = [workers[j] for j in first.workers.tolist()]
    alike = len({one and one.told for _, one in groups}) == 1
    others = f"; {'so it is with' if alike else 'so agree'} {count_text(len(groups) - 1, 'other group')}"
    agree = f"{_agreement_of(of, first)}, more than workers who err independently of each other would"
    agree += others * (len(groups) > 1) + ("" if gold is None else f". {gold.text}")
    remedy = _remedy(of, {families.get(name) for name in names})
    remedy += "; cp.error_correlation(fit, gold) says like how many they count"
    values: dict[str, Any] = {
        "workers": names,
        "within": first.within,
        "outside": first.outside,
        "groups": len(groups),
        "others": [
            one | by_gold(gold)
            for one, (_, gold) in zip(told([g for g, _ in groups[1:]], workers), groups[1:], strict=True)
        ],
        **({} if first.question is None else {"question": first.question}),
        **by_gold(gold),
    }
    if gold is not None and gold.is_better:
        return Said(f"{listed(names)} are better than the rest: {agree}", "", values)
    if gold is not None and gold.is_copy:
        return Said(f"{listed(names)} count as one, by gold labels: {agree}", remedy, values)
    either = f"whether {listed(names)} are much better than the rest, or copies that count as one: {agree}"
    return open_question(either, f"If they are copies {remedy}", **values)


def by_gold(gold: OnGold | None) -> dict[str, str]:
    """Return what gold labels tell of a group as a value of a finding; nothing where they are too few."""
    return {} if gold is None else {"by_gold": gold.told}


def _counted_once(of: Labels, groups: OnGolds, left: float, unasked: bool) -> Said:
    """Return what is said of groups who count as one worker each.

    Args:
        left: the share of the annotations that is left.
        unasked: whether nobody asked for it.
    """
    said, (_, gold) = _in_doubt(of, groups), groups[0]
    most = (
        f"; by {left:.0%} of the annotations the labels may well be worse than majority vote: gold labels of some "
        "tasks, cp.next_gold(fit, 20), tell which are nearer"
    )
    more = most * (left < LEFT and not unasked)
    known = gold is not None and gold.told != "open"
    merged = told([group for group, _ in groups], list(of.annotations.workers))
    return Said(
        f"{said.text}. Each group counts as one worker, which leaves {left:.0%} of the annotations",
        f"{'' if known else 'if they are much better than the rest, '}copies='keep' counts each of them{more}",
        {**said.values, "as_one": merged, "left": left, "unasked": unasked},
        "warning" if unasked or left < LEFT else "note",
    )


@check("perhaps_copies", "crowd", needs={"workers"})
def perhaps_copies(of: Labels) -> Iterator[Said]:
    """Workers who decide the labels, being much better than the others or copies: :func:`.doubtful_groups`, as a note.

    It is said of 15 and 14 of 20 crowds of 10 workers who are right in .62 of two classes, among them three of whom two
    copy .75 and .85 of the third; and of 3 of 240 healthy ones, 40 of each shape.
    """
    crowd = crowd_of(of)
    if crowd is None or copying_groups(of.annotations):
        return
    found = [one for one in _on_gold(of, doubtful_groups(of.annotations)) if one[1] is None or not one[1].is_better]
    found = [(group, gold) for group, gold in found if not _are_contradicted(of, group)]
    if not found:
        return
    (first, gold), workers = found[0], list(of.annotations.workers)
    names = [workers[j] for j in first.workers.tolist()]
    values = {"workers": names, "within": first.within, "outside": first.outside, **by_gold(gold)}
    if gold is not None and gold.is_copy:
        text = f"{listed(names)} count as one, by gold labels: {_agreement_of(of, first)}. {gold.text}"
        yield Said(text, "copies='one' counts them as one worker", values)
    elif not crowd.knows_names:
        text = (
            f"whether {listed(names)} are much better than the rest, or copies who outvote it: "
            f"{_agreement_of(of, first)}, and these agree too little to tell{'' if gold is None else f'. {gold.text}'}"
        )
        remedy = "Compare with majority vote, and with copies='one', which counts them as one worker"
        yield open_question(text, remedy, **values)._replace(severity="note")


def _are_contradicted(of: Labels, group: AgreeingGroup) -> bool:
    """Return whether by the labels most of a group are worse than chance, so that they outvote nobody."""
    tables = tables_of(of)
    return tables is not None and bool(worse_than_chance(tables)[group.workers].mean() > 0.5)


@check("always_the_same", "crowd", needs={"workers"})
def always_the_same(of: Labels) -> Iterator[Said]:
    """Workers who gave the same on all tasks that they share, where that is no clear sign of copies, as a note.

    Of 200 crowds of five to ten workers and 55 tasks, of whom two give what a third one gives, 155 are warned of
    copies, and 28 have this note; of 240 of able workers who err independently of each other one has it, and of 240
    healthy ones two.
    """
    crowd = crowd_of(of)
    if crowd is None:
        return
    known = [set(group.workers) for group in copying_groups(of.annotations)]
    found = [
        group for group in always_same_groups(of.annotations) if not any(set(group.workers) <= one for one in known)
    ]
    if not found:
        return
    workers = of.annotations.workers
    groups = [[workers[j] for j in group.workers.tolist()] for group in found]
    said = [
        f"{listed(names)} on all {count_text(group.n_tasks, 'task')} that they share"
        f"{'' if group.question is None else f' of question {group.question!r}'} (independent ones would with a "
        f"probability of {group.by_chance:.2f}{'' if gold is None else f'; {gold.text}'})"
        for names, (group, gold) in zip(groups[:SHOWN], _on_gold(of, found[:SHOWN]), strict=False)
    ]
    others = f"; so it is with {count_text(len(found) - SHOWN, 'other group')}" if len(found) > SHOWN else ""
    yield Said(
        f"workers gave the same label: {'; '.join(said)}{others}",
        "one person twice, or both are right",
        {"groups": [{"workers": names} for names in groups], "by_chance": [group.by_chance for group in found]},
        "note",
    )


def _remedy(of: Labels, families: set[Hashable | None]) -> str:
    """Return what to do if they are copies, by the families that the story knows them as."""
    if len(families) == 1 and None not in families:
        return (
            "the labels are still too sure, although the story knows them as one family: compare with copies='one', "
            "which counts each group as one worker"
        )
    if isinstance(of, ByRule):
        return (
            "they outvote others: fit a story, such as story='dawid_skene', with copies='one', which counts each group "
            "as one worker"
        )
    return (
        "the labels are far too sure: copies='one' counts each group as one worker, or fit with shared_error=True, "
        "worker_families={worker: family, …}"
    )


def _remedy_of_repeats(of: Labels, workers: np.ndarray) -> str:
    """Return what to do about repeats of some workers, which of comparisons may be one in each order of the pair."""
    annotations = of.annotations
    if given_once(annotations, workers).n_annotations == annotations.n_annotations:
        return (
            "They are of both orders of a pair, which tell a preference for a side, and repeats='first' would lose "
            "one of them; shared_error=True, worker_families={worker: worker, …} lets a worker's annotations of "
            "one pair err together"
        )
    once = "" if isinstance(of, ByRule) else "copies='one' counts once what a worker gave a task most often; "
    return (
        f"{once}repeats='first' keeps the first annotation; or make every run a worker, such as 'judge run 2', and "
        "fit with shared_error=True, worker_families={worker: family, …}"
    )


def _counted_before(of: Labels, code: str) -> list[Said]:
    """Return what findings on the heaviest fit of an average say of what counts once in it."""
    found = of.heaviest[1].findings if isinstance(of, Posterior) and of.members else ()
    known = [Said(one.text, one.remedy, one.values, one.severity) for one in found if one.code == code]
    return known if any("left" in one.values for one in known) else []


def _families(of: Labels) -> Mapping[Hashable, Hashable]:
    """Return the families of workers that the story lets err together, where all fits with weight have the same."""
    members = [fitted for fitted, _ in of.weighty] if isinstance(of, Posterior) else [of]
    each = [
        families_of(fitted.model.hyperparameters, of.annotations.workers)
        for fitted in members
        if isinstance(fitted, Fitted)
    ]
    return each[0] if each and all(families == each[0] for families in each) else {}


@check("repeats", "crowd", needs={"workers"})
def repeats(of: Labels) -> Iterator[Said]:
    """Workers whose repeated annotations of a task agree more than independent ones would: :mod:`.repeated`."""
    if known := _counted_before(of, "repeats"):
        yield from known
        return
    crowd = crowd_of(of)
    facts = of.outcome.facts if isinstance(of, Fitted) else {}
    once = facts.get("repeats")
    found = once or (None if crowd is None else agreeing_repeats(crowd.given))
    if found is None:
        return
    names = [of.annotations.workers[j] for j in found.workers.tolist()]
    values = {"workers": names, "pairs": found.n_pairs, "agreement": found.agreement, "expected": found.expected}
    said = (
        f"how much repeats say that the first annotation does not: {listed(names)} annotated "
        f"tasks again ({found.n_pairs:,} times), and two such annotations of a worker agree in "
        f"{found.agreement:.0%}; independent ones would in about {found.expected:.0%}, by how others agree"
    )
    if once is None:
        too_sure = f"{said}. Each counts in full, as if another worker gave it, so that the labels are too sure"
        yield open_question(too_sure, _remedy_of_repeats(of, found.workers), **values)
        return
    left, unasked = facts["copies_left"], bool(facts.get("copies_unasked"))
    yield Said(
        f"{SAID} {said}. What a worker gave a task most often counts once, which leaves {left:.0%} of the annotations",
        "if each is a look of its own at the task, copies='keep' counts all of them",
        {**values, "left": left, "unasked": unasked},
        "warning" if unasked else "note",
    )


@check("contradictions", "crowd", needs={"workers"})
def contradictions(of: Labels) -> Iterator[Said]:
    """Workers who contradict themselves where they annotate tasks again: :func:`.contradicting_repeats`.

    From :data:`.repeated.TASKS` repeated pairs of a task and a worker on: a warning where the repeats are
    :data:`.repeated.MUCH` of the annotations, and a note where they are few. Of the dataset adult 149 of 89,948 are,
    and none has the label of the first: only answers that were changed were kept beside it.
    """
    crowd = crowd_of(of)
    if crowd is None or (found := contradicting_repeats(crowd.given)) is None:
        return
    yield Said(
        f"workers contradict themselves: where they annotated a task again ({found.n_pairs:,} times), two annotations "
        f"of a worker agree in {found.agreement:.0%}, and those of different workers in {found.outside:.0%}. "
        f"Independent annotations of one worker would agree in {found.expected:.0%} at the least",
        "Look whether one column has the answers to two questions, or of two versions of the tasks or classes, or "
        "only such repeats as changed the answer; "
        "repeats='first' keeps the first annotation alone",
        {
            "pairs": found.n_pairs,
            "share": found.share,
            "agreement": found.agreement,
            "outside": found.outside,
            "expected": found.expected,
        },
        "warning" if found.share >= MUCH else "note",
    )


class Counted(NamedTuple):
    """Annotations of which copies, and repeats that are no independent ones, count once, and what these are."""

    annotations: Annotations
    groups: list[AgreeingGroup]  # of whom each counts as one worker
    repeats: AgreeingRepeats | None = None  # of workers of whom each counts once for a task

    def facts(self, rule: str, before: Annotations) -> dict[str, Any]:
        """Return what the findings on a fit are made of, by name.

        Args:
            rule: by which they count so.
            before: all annotations, with the gold labels that there are.
        """
        if not self.groups and self.repeats is None:
            return {}
        left = self.annotations.n_annotations / before.n_annotations
        known = {"copies_unasked": rule == "auto", "copies_left": left}
        by_gold = [on_gold(before, group) for group in self.groups]
        return {"copies": self.groups, "copies_on_gold": by_gold, "repeats": self.repeats, **known}


def with_copies(annotations: Annotations, rule: str, labels_of: Callable[[Annotations], np.ndarray]) -> Counted:
    """Return the annotations with each group of copies as one worker, and dependent repeats of a worker as one.

    Args:
        rule: ``"one"``, where no group is sure also of :func:`.doubtful_groups`; ``"keep"`` for the annotations as they
            are; or ``"auto"``, by which a group that gave most of the annotations stays so where independence explains
            much of its agreement (:data:`EXPLAINED`): as on pairs_pandalm, where three people agree and two models err
            together. All stay so where less than half of the annotations (:data:`LEFT`) would be left, and these still
            depend on each other (:mod:`.dependence`). There most workers are of one group or another and the groups err
            together too, as on judges_llmbar; where they do not, as runs of several judges, each group is one voice.
        labels_of: returns the probabilities of labels, ``(N, K)``, of annotations by workers who err independently.

    Raises:
        UnknownNameError: `rule` is none of these.
    """
    if check_name("copies", rule, RULES) == "keep" or not annotations.named:
        return Counted(annotations, [])
    repeats = agreeing_repeats(annotations.of_classes())
    once = annotations if repeats is None else given_once(annotations, repeats.workers)
    repeats = repeats if once.n_annotations < annotations.n_annotations else None
    groups = copying_groups(once) or (doubtful_groups(once) if rule == "one" else [])
    if rule == "auto":
        groups = [group for group in groups if not _is_able(group, once, groups)]
    merged = as_one(once, groups)
    is_few = merged.n_annotations < LEFT * once.n_annotations
    if rule == "auto" and is_few and (merged.scored or dependence(merged, labels_of(merged)) >= BEFORE):
        return Counted(once, [], repeats)
    return Counted(merged, groups, repeats)


def _is_able(group: AgreeingGroup, given: Annotations, groups: Sequence[AgreeingGroup]) -> bool:
    """Return whether a group gave most where other groups count once, and much of its agreement may be of ability."""
    left = as_one(given, [one for one in groups if one is not group])
    n = left.of_classes().n_by_worker()
    if n[group.workers].sum() <= n.sum() / 2:
        return False
    workers = group.workers.tolist()
    return any(one.workers.tolist() == workers and one.explained > EXPLAINED for one in copying_groups(left))


def as_one(annotations: Annotations, groups: Iterable[AgreeingGroup]) -> Annotations:
    """Return the annotations with one of each group for a task: what most of its members give, by one of them.

    That one is the member who gives most often what most members give, and whose word counts where they are tied. A
    class comes before an abstention.

    Args:
        groups: of workers who count as one, each of all tasks or of one question.
    """
    for group in groups:
        worker, task = np.asarray(annotations.worker), np.asarray(annotations.task)
        at = np.flatnonzero(np.isin(worker, group.workers) & of_question(annotations, group)[task])
        votes = _votes(annotations, at, task[at])
        most = np.full(annotations.n_tasks, -np.inf)
        np.maximum.at(most, task[at], votes)
        is_most = votes == most[task[at]]
        agrees = np.bincount(worker[at][is_most], minlength=annotations.n_workers)
        order = at[np.lexsort((-agrees[worker[at]], ~is_most, task[at]))]
        first = order[np.diff(task[order], prepend=-1) > 0]
        kept, by = np.ones(len(worker), bool), worker.copy()
        kept[at], kept[first] = False, True
        by[first] = group.workers[agrees[group.workers].argmax()]
        annotations = annotations.replace(worker=by).rows(kept)
    return annotations


def given_once(annotations: Annotations, workers: np.ndarray) -> Annotations:
    """Return the annotations with one of each of these workers for a task: the first of what they gave most often.

    A class comes before an abstention. Of comparisons it is one for each order of the pair.

    Args:
        workers: their positions.
    """
    worker, order = np.asarray(annotations.worker), annotations.mirrored
    at = np.flatnonzero(np.isin(worker, workers))
    pair = 2 * (np.asarray(annotations.task)[at].astype(np.int64) * annotations.n_workers + worker[at])
    _, place = np.unique(pair + (0 if order is None else np.asarray(order)[at]), return_inverse=True)
    by_votes = np.lexsort((-_votes(annotations, at, place), place))
    first = at[by_votes[np.diff(place[by_votes], prepend=-1) > 0]]
    kept = np.ones(len(worker), bool)
    kept[at], kept[first] = False, True
    if annotations.count is not None:
        count = np.array(annotations.count)
        count[first] = np.minimum(count[first], 1)
        annotations = annotations.replace(count=count)
    return annotations.rows(kept)


def _votes(annotations: Annotations, at: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return how often what each of some rows gives is given in its place, and less than nothing for abstentions.

    Args:
        at: the rows.
        place: where each counts, such as its task.
    """
    label, weight = np.asarray(annotations.label)[at], counts(annotations)[at]
    _, cell = np.unique(place.astype(np.int64) * annotations.n_categories + label, return_inverse=True)
    votes: np.ndarray = np.bincount(cell, weight)[cell] - (label >= annotations.n_classes) * (weight.sum() + 1)
    return votes


def counted_before(
    annotations: Annotations, findings: Iterable[Finding], with_gold: Annotations
) -> tuple[Annotations, dict[str, Any]]:
    """Return the annotations with what counted once in a fit as one, and the facts on it that findings are made of.

    Args:
        annotations: all of them, new ones too.
        findings: of the fit.
        with_gold: the annotations with the gold labels that there are.
    """
    told = {one.code: one.values for one in findings if one.code in ("copies", "repeats") and "left" in one.values}
    workers = annotations.workers
    facts: dict[str, Any] = {}
    if of_repeats := told.get("repeats"):
        numbers = (of_repeats[name] for name in FIGURES_OF_REPEATS)
        facts["repeats"] = AgreeingRepeats(np.array(places_of(of_repeats["workers"], workers)), *numbers)
        annotations = given_once(annotations, facts["repeats"].workers)
    if of_copies := told.get("copies"):
        facts["copies"] = [
            AgreeingGroup(np.array(places_of(one["workers"], workers)), *(one[k] for k in FIGURES))
            for one in of_copies["as_one"]
        ]
        facts["copies_on_gold"] = [on_gold(with_gold, group) for group in facts["copies"]]
        annotations = as_one(annotations, facts["copies"])
    for values in told.values():
        facts |= {"copies_unasked": values["unasked"], "copies_left": values["left"]}
    return annotations, facts


def told(groups: Sequence[AgreeingGroup], workers: Sequence[object]) -> list[dict[str, object]]:
    """Return the groups as the finding on them has them, by the workers' names."""
    return [
        {"workers": [workers[j] for j in group.workers.tolist()]} | {name: getattr(group, name) for name in FIGURES}
        for group in groups
    ]
