"""Annotations that say little of the tasks: workers who agree by chance, and workers who give one class always."""

from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np

from ...data import Annotations
from ...data.description import count_text
from ...data.gold import TIE
from ...data.id_text import listing
from ...models.parts.shared_error import families_of
from ..fitted.beyond_chance import agreement, by_chance, parties
from ..fitted.by_rule import ByRule
from ..fitted.dependence import excess_agreement
from ..fitted.error_families import BY_FAMILY, error_families
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from .constant_workers import MUCH
from .constant_workers import constant_workers as workers_of_one_class
from .copies import copying_groups
from .facts import listed
from .of_crowd import HELP, by_auto, crowd_of, open_question
from .of_time import changed_agreement
from .other_reading import gain_of_shared_errors
from .register import Labels, Said, check, once

BY_CHANCE, CLEARLY = 2.0, 3.0  # standard deviations from which agreement is beyond chance, and clearly so
NO_MORE = 0.1  # correlation of two workers that is ruled out, by its upper limit of two standard deviations
CONTRADICT = -5.0  # standard deviations of the agreement of two parties, from which they are no chance
PROBABLE = 0.5  # that workers look at no task, from which it is warned of few annotations too
TOGETHER = 3.5  # standard deviations of the excess of agreement given the labels, beyond which workers err together
CORRELATED = 0.04  # and its share, near the correlation of two workers' errors
PERHAPS = 1.5  # standard deviations of it, from which shared errors are tried
BETTER = 3.0  # nats by which they raise the log-posterior where some tasks mislead workers
CONTRADICTED = 0.1  # share of tasks on which most of two families say different classes, from which it is a warning
CLEARLY_APART = 20.0  # nats by which two families have to be better than one where labels do not know of them
PARTS = ("shared_error", "task_difficulty")  # by which a story allows for it


@check("no_agreement", "crowd", needs={"workers"})
def no_agreement(of: Labels) -> Iterator[Said]:
    """Workers who agree on a task no more than if they gave their classes without looking: :mod:`.beyond_chance`.

    A warning where there are annotations enough to have seen a correlation of two workers of a tenth, or where it
    is more probable than not that nobody looked (:func:`.by_chance`); a note where there are too few to tell, or
    where such a correlation is ruled out and the agreement may be by chance still. Two parties who contradict each
    other agree in all as if by chance, too, and are noted as such (:func:`.parties`). Warned are 100 of 100 crowds that
    guess (250 tasks × 5 of 2, 3 and 5 classes and of one frequent class, and 50 × 4), and none of 120 healthy ones
    (``benchmarks/findings.py``).
    """
    if (crowd := crowd_of(of)) is None or crowd.knows_names:
        return
    found = agreement(of.annotations)
    upper = found.share + 2 * found.share_se
    if found.z >= (CLEARLY if upper < NO_MORE else BY_CHANCE) or not np.isfinite(found.share_se):
        return
    asked = crowd.given.question
    votes = crowd.given.votes()
    shares = (
        np.stack([votes[asked == q].sum(0) for q in range(len(crowd.given.questions))])
        if asked is not None
        else votes.sum(0)[None]
    )
    guess, confidence = float(shares.max(1).sum() / max(shares.sum(), 1)), float(crowd.posterior.max(1).mean())
    values = {"z": found.z, "correlation": found.share, "upper": upper, "confidence": confidence, "guess": guess}
    figures = (
        f"their agreement is {found.z:+.1f} standard deviations from chance, a correlation of two workers of "
        f"{found.share:+.2f}, at most {upper:.2f}"
    )
    of_each = "" if asked is None else " of each question"
    if found.z >= BY_CHANCE:
        yield Said(f"workers agree on a task hardly more than by chance: {figures}", HELP, values, severity="note")
        return
    of_pairs = parties(of.annotations)
    if of_pairs.between < CONTRADICT:
        yield Said(
            "two parties of workers contradict each other, so that workers agree on a task no more than by chance in "
            f"all: {figures}. Between the parties it is {of_pairs.between:+.0f} standard deviations; labels follow one "
            "of them",
            HELP,
            values | {"between": of_pairs.between},
            severity="note",
        )
    elif of_pairs.few >= CLEARLY:
        yield Said(
            "few of the workers agree on a task more than by chance, and all others say next to nothing: in all "
            f"{figures}. The pairs that agree most are {of_pairs.few:.1f} standard deviations above chance; labels "
            "follow them",
            HELP,
            values | {"few": of_pairs.few},
            severity="note",
        )
    elif upper < NO_MORE or by_chance(of.annotations) > PROBABLE:
        yield Said(
            f"workers agree on a task no more than if none of them looked at it: {figures}. The labels are said to be "
            f"right in {confidence:.0%}; nothing in the annotations says that they are right more often than the most "
            f"frequent class{of_each}, {guess:.0%} of the annotations",
            f"Use none of these labels without gold labels. {HELP}",
            values,
        )
    else:
        yield Said(
            f"the annotations are too few to tell whether workers agree on a task more than by chance: {figures}",
            HELP,
            values,
            severity="note",
        )


@check("err_together", "crowd", needs={"workers"})
def err_together(of: Labels) -> Iterator[Said]:
    """Workers who err together on some tasks, by labels of who takes them for independent: :mod:`.dependence`.

    They are labels of a story that says so, or the classes of most votes. Given labels that are too sure, the excess of
    independent workers is below zero, so that one above is of errors in common; it has to be there given the most
    probable classes, too, since labels that are less sure than they might be leave one of their own. That the votes are
    asked, too, with the thresholds for stories, was decided with the gold labels of fourteen open crowds in view.

    Labels that follow most workers where these are misled leave little of it to see. Where it may be, Dawid and
    Skene's story is fitted with shared errors, too: a higher log-posterior tells tasks that mislead most workers.
    The labels of such a story are surer than they are right: each worker who makes the common error counts as another
    witness. A story with parameters of each task, shared errors or difficulties has an account of it, and is not asked.
    Of ``"auto"`` it is said where its plain story says it, as a note where stories with such an account have most of
    the weight, since annotations hardly tell how much there is. How often it is said of healthy crowds, of tasks of two
    difficulties and of open crowds is in ``benchmarks/findings.py``. Its threshold was chosen with the accuracy and
    confidence of open crowds in view, and not with each left out.
    """
    if isinstance(of, Posterior) and of.rule is None:
        yield from _allowed_for(of)
        return
    if not _takes_for_independent(of) or of.annotations.scored or (crowd := crowd_of(of)) is None or crowd.knows_names:
        return
    if of.annotations.sides is not None or (of.annotations.abstains and of.annotations.informative):
        return
    if copying_groups(of.annotations) or changed_agreement(of):  # who errs together, or when, is known and said
        return
    if crowd.given.n_annotations < crowd.given.n_workers * crowd.posterior.shape[1] ** 2:
        return  # shares of classes that are pulled to a prior leave an excess of their own
    share, se = excess_agreement(of.annotations, of.posterior)
    if not np.isfinite(se) or share < PERHAPS * se:
        return
    if not _together_by_certain_labels(of):
        return
    confidence = float(crowd.posterior.max(1).mean())
    if share < CORRELATED or share < TOGETHER * se:
        if not isinstance(of, Fitted) or of.annotations.annotated_again.any():
            return  # repeats depend on each other, which shared errors explain as well
        gain, less = gain_of_shared_errors(crowd.given, crowd.posterior)
        if gain >= BETTER:
            yield Said(
                f"some tasks mislead most workers, which {of.story} takes for agreement: with errors that workers "
                f"share the log-posterior of Dawid and Skene's story is {gain:.1f} nats higher, and labels are "
                f"{less:.2f} sure in the mean. Those here, {confidence:.2f} sure, are right less often",
                "'auto' allows for it, and gold labels of some tasks tell how often: cp.estimate(fit, gold)",
                {"z": share / se, "correlation": share, "confidence": confidence, "gain": gain},
            )
        return
    maker = of.story if isinstance(of, Fitted) else "the vote of most"
    yield Said(
        f"workers err together on some tasks, which {maker} takes for agreement: given the labels they agree by "
        f"{share / se:.1f} standard deviations more than independent workers would, a correlation of two workers' "
        f"errors of {share:.2f} at the least. The labels, {confidence:.2f} sure in the mean, are right less often",
        "'auto' allows for it, and gold labels of some tasks tell how often: cp.estimate(fit, gold)",
        {"z": share / se, "correlation": share, "confidence": confidence},
    )


def _allowed_for(of: Posterior) -> Iterator[Said]:
    """Return a finding on an average where a story of its that takes workers for independent says they are not.

    It is a note where stories that allow for it have most of the weight, whose extent no annotation tells.
    """
    aware = sum(of.weights[name] for name, one in of.members.items() if not _takes_for_independent(one))
    plain = [one for one in of.members.values() if one.story == "dawid_skene" and _takes_for_independent(one)]
    if not plain or not (said := [*err_together(plain[0])]):
        return
    here = f"{float(of.posterior.max(1).mean()):.2f}"
    allows = (
        f"for which these labels allow as far as annotations tell: by Dawid and Skene's story they would be "
        f"{said[0].values['confidence']:.2f} sure in the mean, and here they are {here}"
        if aware > PROBABLE
        else f"for which these labels hardly allow: the stories that do have a weight of {aware:.2f}. The labels, "
        f"{here} sure in the mean, are right less often"
    )
    yield Said(
        f"workers err together on some tasks, {allows}",
        "gold labels of some tasks tell how often they are right: cp.estimate(fit, gold)",
        said[0].values,
        severity="note" if aware > PROBABLE else "warning",
    )


def _together_by_certain_labels(of: Labels) -> bool:
    """Return whether workers agree too much given the most probable classes, too.

    Labels that are right more often than they are sure leave an excess of independent workers, and these one below 0.
    """
    posterior = np.asarray(of.posterior, float)
    most = posterior >= posterior.max(1, keepdims=True) - TIE
    share, _ = excess_agreement(of.annotations, most / most.sum(1, keepdims=True))
    return share > 0


def _takes_for_independent(of: Labels) -> bool:
    """Return whether labels are a story's whose workers err independently, or the classes of most votes."""
    if isinstance(of, Fitted):
        by_task = any("task" in dims for dims in of.dims.values())
        return not by_task and not any(of.model.hyperparameters.get(part) for part in PARTS)
    annotations = of.annotations
    return isinstance(of, ByRule) and np.allclose(
        of.posterior, annotations.kind.majority(annotations.votes()), atol=TIE
    )


@check("overconfident", "crowd", needs={"workers"})
def overconfident(of: Labels) -> Iterator[Said]:
    """Labels that are surer than workers agree, as by a story that knows too little of them: :mod:`.dependence`.

    Given labels that are right as often as they are sure, workers agree as independent ones do, or more where they err
    together. They agree less only where labels were made too much of the votes. Thresholds are those of
    :func:`err_together` with the other sign. Of healthy crowds nothing is said of labels by dawid_skene and
    auto, and of the votes' where these are right in .87 and say 1 (``benchmarks/findings.py``).
    """
    if (crowd := crowd_of(of)) is None or crowd.knows_names or of.annotations.scored:
        return
    if of.annotations.sides is not None or (of.annotations.abstains and of.annotations.informative):
        return
    share, se = excess_agreement(of.annotations, of.posterior)
    if not np.isfinite(se) or share > -CORRELATED or share > -TOGETHER * se:
        return
    confidence = float(crowd.posterior.max(1).mean())
    yield Said(
        f"the labels are surer than workers agree: given labels that are right as often as these are sure, "
        f"{confidence:.2f} in the mean, workers would agree {-share / se:.1f} standard deviations more than they do. "
        "Labels are right less often than that",
        f"{by_auto(of, 'learns what each worker knows; ')}gold labels of some tasks tell how often labels are right: "
        "cp.estimate(fit, gold)",
        {"z": share / se, "correlation": share, "confidence": confidence},
    )


@check("families", "crowd", needs={"workers"})
def families(of: Labels) -> Iterator[Said]:
    """Families of workers who err together, found by their agreement, and how often two contradict each other.

    It is said where the story that knows them decides an average (:mod:`.error_families`): which of two families is
    right where they contradict each other is told by little more than how much each agrees within itself. Of other
    labels, which follow the larger family, it is said where two families are clearer by :data:`CLEARLY_APART`, as of
    eight judges of whom five rate another quality, too, and of no healthy crowd of those in the tests.
    """
    if (crowd := crowd_of(of)) is None or crowd.knows_names:
        return
    given, names, decides = crowd.given, dict[Hashable, Hashable](), False
    if isinstance(of, Posterior) and of.weights.get(BY_FAMILY, 0.0) > PROBABLE:
        fitted, decides = of.members[BY_FAMILY], True
        given = fitted.annotations.of_classes()
        names = families_of(fitted.model.hyperparameters, given.workers)
    elif not (isinstance(of, Fitted) and "worker_families" in of.model.hyperparameters) and not copying_groups(
        of.annotations
    ):
        names.update(_clear_families(of.annotations) or {})
    if not names:
        return
    worker, members = np.asarray(given.worker), dict[Hashable, list[int]]()
    for j in np.unique(worker).tolist():
        members.setdefault(names[given.workers[j]], []).append(j)
    groups = sorted((group for group in members.values() if len(group) > 1), key=len, reverse=True)
    if len(groups) < (1 if decides else 2):
        return  # some who are abler than each of the others look like a family
    others = [j for group in members.values() if len(group) == 1 for j in group]
    votes = np.stack([given.rows(np.isin(worker, group)).votes() for group in [*groups, others][:2]])
    is_most = votes == votes.max(-1, keepdims=True)
    share = float((~is_most.all(0).any(-1)).sum() / max(votes.any(-1).all(0).sum(), 1))
    if not decides and (share < CONTRADICTED or not all(_agree(given, worker, group) for group in groups[:2])):
        return  # among many who guess some agree by chance
    workers = [[given.workers[j] for j in group] for group in groups]
    several = ("families", "between them", "the two largest")
    within, than, who = several if len(groups) > 1 else ("a family", "with the others", "both")
    yield open_question(
        f"which workers are right where families contradict others: they agree more within {within} "
        f"({listing(workers, 2, listed, between='; ')}) than {than}, and most of {who} give different classes to "
        f"{share:.0%} of the tasks that both annotated",
        families=workers,
        contradicted=share,
    )._replace(severity="warning" if share >= CONTRADICTED else "note")


def _agree(given: Annotations, worker: np.ndarray, group: list[int]) -> bool:
    """Return whether the workers of a family agree with each other beyond chance, as those of two parties do."""
    return agreement(given.rows(np.isin(worker, group))).z > -CONTRADICT


@once
def _clear_families(annotations: Annotations) -> dict[Hashable, str] | None:
    """Return the families that are clear whatever the labels."""
    return error_families(annotations, CLEARLY_APART)


@check("constant_workers", "crowd", needs={"workers"})
def constant_workers(of: Labels) -> Iterator[Said]:
    """Workers who give one class whatever the task: :mod:`.constant_workers`.

    A warning where their annotations are many, which were left out of a story's fit unless it was asked to keep them,
    and a note where they are few. Warned are 120 of 120 crowds of which 40, 50 and 60 % are constant, and none of 120
    healthy ones (``benchmarks/findings.py``).
    """
    if isinstance(of, Posterior) and of.members:
        known = (finding for finding in of.heaviest[1].findings if finding.code == "constant_workers")
        yield from (Said(each.text, each.remedy, each.values, each.severity) for each in known)
        return
    gone = of.outcome.facts.get("constant_workers") if isinstance(of, Fitted) else None
    if crowd_of(of) is None:
        return
    found = workers_of_one_class(of.annotations) if gone is None else gone
    if not len(found.workers):
        return
    workers, classes = of.annotations.workers, list(of.annotations.classes)
    names = [workers[j] for j in found.workers.tolist()]
    on = [of.annotations.questions[q] if q >= 0 else None for q in found.questions.tolist()]
    given = [classes[k] for k in found.classes.tolist()]
    each = Counter(zip(given, on, strict=True)).most_common()
    by_class = ", ".join(
        f"{name!r}{'' if question is None else f' on {question!r}'} by {n:,}" for (name, question), n in each
    )
    people = list(dict.fromkeys(names))
    text = (
        f"{count_text(len(people), 'worker')}, with {found.share:.0%} of the annotations, "
        f"{'gives' if len(people) == 1 else 'give'} one class whatever the task ({by_class}): {listed(people)}"
    )
    values = {"workers": names, "share": found.share, "classes": given}
    if any(question is not None for question in on):
        values["questions"] = on
    if gone is not None:
        remedy = "constant_workers='keep' counts them, and labels may then follow them"
        yield Said(f"{text}. Their annotations were left out", remedy, {**values, "left_out": True})
    else:
        is_much = found.most >= MUCH
        yield Said(f"{text}. Labels may follow them", "leave them out", values, "warning" if is_much else "note")


@check("not_looked_at", "crowd", needs={"story"})
def not_looked_at(of: Fitted) -> Iterator[Said]:
    """Annotations that stay with another engine, of which the checks on crowds were not made."""
    if of.files is not None:
        yield Said(
            "the annotations stay where they are, and it was not looked whether workers agree beyond chance, give one "
            "class always, or copy each other",
            "fit some of the tasks in memory to see",
            severity="note",
        )
