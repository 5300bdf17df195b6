"""A fit in four answers: can this crowd be trusted, which labels are doubtful, whom to review, and what to do next.

Terminal, report and Python say the same words: :class:`Verdict` has them once. They are made of the findings
(:mod:`.look`), of the labels' probabilities and of :mod:`.review`.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import bdtrc

from ...data import Annotations
from ...data.description import count_text
from ...data.gold import right_shares
from ...data.id_text import as_sentence, listing, n_shown, name_quoted, name_text
from ...data.questions import workers_noun
from ...models import KNOWN_STORIES
from ..fitted.beyond_chance import agreement
from ..fitted.item_ranking import takes_as_given
from ..fitted.posterior import Posterior
from ..sources.on_disk import Files
from .facts import SURE, certainty, n_sure, sure_of_what
from .gold_share import FEWEST_GOLD, gold_accuracy, gold_share, unused_gold
from .look import findings
from .register import once
from .review import reviewed, tells_of_nobody

USELESS = ("no_agreement", "turned_around", "nobody_meets", "one_worker", "two_workers", "one_class_each")
"""Codes of warnings by which the labels are not to be used without gold labels."""

NOTED = (
    *(*USELESS, "class_of_none", "items_apart", "perhaps_copies", "names_alike", "changed", "agreement_changed"),
    "changed_apart",
    "rare_class",
    "three_workers",
    "err_together",
)
"""Codes of findings that ask for care as notes, too."""

DECIDE = (("copies", "warning"), ("perhaps_copies", "note"), ("perhaps_copies", "warning"))
"""Findings on copies, if they are such, whose rule decides the labels, by code and severity."""

AS_ONE = (
    "labels with each group of workers who may copy as one worker, which are better if they do",
    "one",
    "fit.annotations",
)
IN_FULL = (
    "labels with each worker in full, which are better if they are much better than the rest and do not copy",
    "keep",
    "annotations",
)
"""The gain of another rule on copies, the rule, and the annotations that it is for."""

SHOWN = 5  # doubtful tasks, pairs of classes and workers that are named
FAR = 0.2  # by which probabilities are above the share of right labels where they are worth nothing
SOME = 0.2  # of the labels, from which doubtful ones are in the heading
MOST = 0.5  # of the labels, beyond which doubtful ones ask for care
MANY = 1 / 3  # of the annotations, from which those of workers to be reviewed ask for care
LOST, LOST_VOTES = "lost_class", 0.05  # code of the finding, and share of the tasks by majority vote, that matter
UNLIKELY = 0.05  # the probability by chance of a difference that is said
TO_LABEL = 20  # tasks of which true labels are asked for

Trust = Literal["yes", "with care", "no", "unknown"]
HEADLINES: dict[Trust, str] = {
    "yes": "This crowd can be trusted",
    "with care": "This crowd can be trusted with care",
    "no": "This crowd cannot be trusted without gold labels",
    "unknown": "Whether this crowd can be trusted was not looked at",
}

DOUBTED = "The probabilities of this crowd can be trusted; {:.0%} of its labels are doubtful"
"""The headline where the crowd can be trusted and from :data:`SOME` of its labels on are doubtful."""

UNSEEN = "Errors that most of them share show in no annotations; a few gold labels tell."
"""The limit of all checks."""


OF_ITEMS = "No comparison has a true label: what the fit says is the scores of the items (ranking.csv)."
"""The sentence on labels where annotations are preferences."""


OF_NOBODY = "Preferences are no errors, so that none of the workers is to be reviewed by them."
"""The sentence on workers then."""


class Step(NamedTuple):
    """Something to do next.

    Args:
        text: what it does.
        command: of the shell, with DIR for the folder of the fit and FILE for the annotations.
        call: of Python, on ``fit``.
    """

    text: str
    command: str
    call: str

    def on(self, folder: str) -> str:
        """Return the command of the shell on a folder, which is no option either where it begins with a dash."""
        return self.command.replace("DIR", shlex.quote(f"./{folder}" if folder.startswith("-") else folder))


PREFERENCES = Step(
    "scores and intervals of the workers' preferences, if these are no errors",
    "crowdppl fit FILE --preferences --story auto --out preferences",
    'cp.fit("auto", cp.read(…, preferences=True))',
)


@dataclass(frozen=True)
class Verdict:
    """Four answers on a fit; prints as text, with calls of Python.

    Trust rests on the fit's findings, on gold labels that the fit did not use, and on how many labels are doubtful and
    how many annotations are of workers to be reviewed. Labels without classes to which the majority vote gives a
    twentieth of the tasks are not to be used where they are surer than that allows. No predictive check is made for
    it: they take seconds and are those of :func:`crowdppl.check`, among them the agreement of each pair of workers.

    Args:
        trust: whether the crowd can be trusted.
        why: the reasons, a clause each.
        labels: how many labels are doubtful and where they lie, a sentence each.
        workers: how many workers to review, and who and why, a sentence each.
        next: what to do next, the page last.
        doubtful: the share of the labels that are doubtful, from 0 to 1.
    """

    trust: Trust
    why: tuple[str, ...]
    labels: tuple[str, ...]
    workers: tuple[str, ...]
    next: tuple[Step, ...]
    doubtful: float = 0.0

    @property
    def headline(self) -> str:
        """The heading of the first answer, with the share of doubtful labels where it is a fifth or more.

        Probabilities of labels may be right as often as they say where many of them are low.
        """
        is_doubted = self.trust == "yes" and self.doubtful >= SOME
        return DOUBTED.format(self.doubtful) if is_doubted else HEADLINES[self.trust]

    @property
    def sections(self) -> dict[str, tuple[str, ...]]:
        """The first three answers: their lines by heading."""
        return {self.headline: self.why, "Labels": self.labels, "Workers": self.workers}

    def commands(self, folder: str) -> dict[str, str]:
        """Return what to do next: by command of the shell, on the folder of the fit, what it does."""
        return {step.on(folder): step.text for step in self.next}

    def __str__(self) -> str:
        steps = tuple(f"{step.call}: {step.text}" for step in self.next)
        parts = {**self.sections, "Next": steps}
        return "\n\n".join("\n  ".join([name, *lines]) for name, lines in parts.items() if lines)

    __repr__ = __str__


@once
def verdict(of: Posterior) -> Verdict:
    """Return the verdict on a fit of a story, an average, or labels by a rule.

    Of a fit whose annotations stay on the disk it has the labels' certainty, and of findings and workers what all of
    them, or a sample, say.
    """
    all_found = findings(of)
    warnings = all_found.warnings
    codes = {each.code for each in warnings}
    trust: Trust = "no" if codes & set(USELESS) else "with care" if warnings else "yes"
    why = [each.short for each in warnings]
    if noted := [each for each in all_found if each.code in NOTED and each.severity == "note"]:  # as of few tasks
        trust = "with care" if trust == "yes" else trust
        why += [as_sentence(each.sentence, named=bool(each.story), first=True) for each in noted]
    if of.on_disk:
        return _of_files(of, trust, why)
    against, gap = _against_gold(of)
    trust = "no" if gap > FAR or _is_sure_without_classes(of) else "with care" if against and trust == "yes" else trust
    why = [*against, *why]
    annotations = of.annotations
    doubtful = 1 - n_sure(of) / max(annotations.n_tasks, 1)
    if trust == "yes" and doubtful > MOST:
        trust, why = "with care", ["Most labels are doubtful.", *why]
    if trust == "yes" and annotations.named and (share := _to_review(of)) >= MANY:
        trust, why = "with care", [f"Workers who are to be reviewed gave {share:.0%} of the annotations.", *why]
    if annotations.preferences and takes_as_given(of):
        given = (
            f"Each of {count_text(annotations.n_annotations, 'annotation')} is a preference, and taken as it was given."
        )
        page = Step(
            "the items' scores and checks on a page", "crowdppl report DIR --out report.html", "fit.report(path)"
        )
        return Verdict("with care", (given, *why), (OF_ITEMS,), (OF_NOBODY,), (page,))
    if not why:
        why += [_agreement(of), *([UNSEEN] if annotations.gold is None else [])]
    if annotations.gold is not None and unused_gold(annotations).any():
        why.insert(len(against) or len(why), as_sentence(gold_accuracy(of), first=True))
    labels, workers = _labels(of), _workers(of, of.given)
    if gap:
        points = f"{100 * gap:.0f} percentage points"
        labels = (f"By the gold tasks the probabilities are too high by {points}, so that more are doubtful.", *labels)
    return Verdict(trust, tuple(why), labels, workers, (*_other_way(of), *_next(annotations)), doubtful)


def _of_files(of: Posterior, trust: Trust, why: list[str]) -> Verdict:
    """The verdict on a fit of files, whose findings are of all annotations or of a sample."""
    source, here = of.source, of.in_memory
    n_doubtful = source.n_tasks - int(of.fitted.label_sums.sure)
    labels = (_how_many(source.n_tasks, n_doubtful, source),)
    doubtful = n_doubtful / max(source.n_tasks, 1)
    if here is None:
        untold = ["Its annotations stay where they are, so that no check looked at them."]
        return Verdict("unknown" if trust == "yes" else trust, tuple(why or untold), labels, (), ())
    if trust == "yes" and doubtful > MOST:
        trust, why = "with care", ["Most labels are doubtful.", *why]
    if trust == "yes" and source.named and (share := _to_review(here)) >= MANY:
        trust, why = "with care", [f"Workers who are to be reviewed gave {share:.0%} of the annotations.", *why]
    why = why or [_agreement(here), UNSEEN]
    if here.annotations.n_tasks < source.n_tasks:
        why.append(f"Checks looked at {here.annotations.n_tasks:,} of {source.n_tasks:,} tasks.")
    return Verdict(trust, tuple(why), labels, _workers(here, source), (), doubtful)


def _against_gold(of: Posterior) -> tuple[list[str], float]:
    """Sentences on gold labels that the fit did not use and that speak against it, and by how much it is too sure.

    How many are right is said by :func:`.gold_accuracy` alone.

    They are where the labels' mean probability is far above how many are right (:attr:`.GoldShare.overconfident`), and
    where the majority vote is right of more tasks by a sign test.
    """
    share, annotations = gold_share(of), of.annotations
    if share is None or share.tasks < FEWEST_GOLD:
        return [], 0.0
    against, too_sure = [], share.promised - share.right if share.overconfident else 0.0
    if too_sure:
        against.append(
            f"Of {share.tasks:,} gold tasks fewer are right than the probabilities say, {share.promised:.4f}."
        )
    scored = unused_gold(annotations)
    gold, votes = np.asarray(annotations.gold)[scored], annotations.kind.majority(of.given.votes())[scored]
    right, votes = right_shares(np.asarray(of.posterior)[scored], gold), right_shares(votes, gold)
    better, worse = int((votes > right).sum()), int((votes < right).sum())
    if better > worse and bdtrc(better - 1, better + worse, 0.5) < UNLIKELY:
        against.append("Majority vote is right of more of the gold tasks.")
    return against, too_sure


def _is_sure_without_classes(of: Posterior) -> bool:
    """Return whether labels that have lost classes are surer than they could be if the votes for these were right."""
    lost = {each.values["class"]: each.values.get("tasks_of_votes", 0.0) for each in findings(of) if each.code == LOST}
    share = sum(lost.values()) / max(of.annotations.n_tasks, 1)
    return share >= LOST_VOTES and float(np.asarray(of.posterior, float).max(1).mean()) > 1 - share


def _agreement(of: Posterior) -> str:
    """That no check warns, and how much workers agree."""
    if not of.annotations.named:
        return "No check warns; the annotations name no workers, so that nobody's errors are known."
    z = agreement(of.annotations).z
    if not np.isfinite(z) or z <= 0:
        return "No check warns."
    return f"Workers agree on a task {z:.0f} standard deviations more than by chance, and no check warns."


def _how_many(n: int, unsure: int, annotations: Annotations | Files) -> str:
    what = sure_of_what(annotations)
    if not unsure:
        return f"None of {count_text(n, 'label')} is doubtful: each has a probability of at least {SURE}{what}."
    verb = "is" if unsure == 1 else "are"
    where = "labels" if isinstance(annotations, Files) else "labels.csv"
    return f"{unsure:,} of {count_text(n, 'label')} {verb} doubtful, of a probability below {SURE}{what} ({where})."


def _labels(of: Posterior) -> tuple[str, ...]:
    """Sentences on the doubtful labels: their number, classes and numbers of annotations, and the most doubtful."""
    posterior, annotations = np.asarray(of.posterior, float), of.annotations
    n = len(posterior)
    sure = certainty(of)
    unsure = np.flatnonzero(sure < SURE)
    said = [_how_many(n, len(unsure), annotations)]
    if not len(unsure):
        return tuple(said)
    classes = list(annotations.classes)
    two = np.sort(np.argsort(-posterior[unsure], 1, kind="stable")[:, :2], 1)
    pairs, counts = np.unique(two, axis=0, return_counts=True)
    if len(classes) > 2:
        order = np.argsort(-counts, kind="stable").tolist()
        listed = [f"{' and '.join(name_quoted(classes[k]) for k in pairs[i])} ({counts[i]:,})" for i in order]
        said.append(f"They lie between {listing(listed, SHOWN, str, of='pairs')}.")
    given = of.given.counts_by_kind().sum(1)
    of_few = int((2 * given[unsure] <= np.median(given)).sum())
    if of_few:
        verb = "has" if of_few == 1 else "have"
        said.append(f"{of_few:,} of them {verb} at most half as many annotations as the median task.")
    most = unsure[np.argsort(sure[unsure], kind="stable")].tolist()
    said.append(f"The most doubtful: {listing(most, SHOWN, lambda i: name_text(annotations.tasks[i]))}.")
    return tuple(said)


def _to_review(of: Posterior) -> float:
    """The share of the annotations that workers who are to be reviewed gave."""
    return float(reviewed(of)["annotations"].sum() / max(of.given.n_annotations, 1))


def _workers(of: Posterior, source: Annotations | Files) -> tuple[str, ...]:
    """Sentences on the workers to review: how many, and the first of them with the reasons.

    Args:
        of: the result, which may be of a sample of the tasks.
        source: all annotations, of which each worker's number is said.
    """
    if not of.annotations.named:
        return ("The annotations name no workers, so that none can be reviewed.",)
    found, n = reviewed(of), of.annotations.n_workers
    everyone = count_text(n, workers_noun(of.annotations.workers))
    if not len(found) and tells_of_nobody(of):
        return (f"Which of {everyone} to review is not told: they agree no more than by chance.",)
    if not len(found):
        nobody = f"None of {everyone} is" if n > 1 else "The only one is not"
        return (f"{nobody} to be reviewed, by what the annotations tell.",)
    first = found.head(n_shown(len(found), SHOWN))
    verb = "is" if len(found) == 1 else "are"
    said = [f"{len(found):,} of {everyone} {verb} to be reviewed (workers.csv)."]
    counts = dict(zip(of.annotations.workers, source.n_by_worker().tolist(), strict=True))
    for name, reason in first["reason"].items():
        given = f"; {count_text(int(counts[name]), 'annotation')}" if counts[name] else ""
        said.append(f"{name_text(name)}: {reason}{given}.")
    if len(found) > len(first):
        said.append(f"And {len(found) - len(first):,} more, whom the column review of workers.csv names.")
    return tuple(said)


def _other_way(of: Posterior) -> tuple[Step, ...]:
    """Return the fits by which findings can be mended: of names mended, of preferences, and with copies otherwise."""
    by_code = {each.code for each in findings(of).warnings}
    return (*_read_otherwise(of), *(PREFERENCES,) * ("preferences" in by_code), *_copies_otherwise(of))


def _read_otherwise(of: Posterior) -> tuple[Step, ...]:
    """Return the fit of the annotations with names mended that differ by slips, and abstentions as what they are."""
    by_code = {each.code: each for each in findings(of)}
    options, arguments, does = [], [], []
    if "names_alike" in by_code:
        options, arguments, does = ["--tidy"], ["tidy=True"], ["names that differ by slips as one"]
    if none := by_code.get("class_of_none"):
        names = none.values["classes"]
        options += [f"--abstain {shlex.quote(str(name))}" for name in names]
        arguments.append(f"abstain={names!r}")
        does.append(f"{' and '.join(map(repr, names))} as abstaining")
    if not does:
        return ()
    command = f"crowdppl fit FILE --story {(story := _fitted_again(of))} {' '.join(options)} --out mended"
    call = f'cp.fit("{story}", cp.read(…, {", ".join(arguments)}))'
    return (Step(f"labels with {', and '.join(does)}", command, call),)


def _fitted_again(of: Posterior) -> str:
    """Return the name of the story of another fit like this one."""
    known = of.only is not None and of.only.story in KNOWN_STORIES
    return of.story if known else "auto" if of.is_average else "dawid_skene"


def _copies_otherwise(of: Posterior) -> Iterator[Step]:
    """Yield the fits in which copies count the other way, as one worker or in full, where they decide the labels."""
    story = _fitted_again(of)
    decide = (each.values for each in findings(of) if (each.code, each.severity) in DECIDE)
    for is_one in dict.fromkeys("as_one" in values for values in decide if not _is_settled(values)):
        text, rule, data = IN_FULL if is_one else AS_ONE
        command = f"crowdppl fit FILE --story {story} --set copies={rule} --out copies-{rule}"
        yield Step(text, command, f'cp.fit("{story}", {data}, copies="{rule}")')


def _is_settled(values: Mapping[str, Any]) -> bool:
    """Return whether groups count as one of which gold labels tell, of each, that they are copies."""
    groups = (values, *values.get("others", ()))
    return "as_one" in values and all(group.get("by_gold", "").endswith("copies") for group in groups)


def _next(annotations: Annotations) -> tuple[Step, ...]:
    known = np.zeros(annotations.n_tasks, bool) if annotations.gold is None else np.asarray(annotations.gold) >= 0
    n = min(TO_LABEL, int((~known).sum()))
    page = Step("labels, workers and checks on a page", "crowdppl report DIR --out report.html", "fit.report(path)")
    if not n:
        return (page,)
    return (
        Step(
            f"a page to label {count_text(n, 'task')} on, those whose true labels tell most; it saves gold.csv",
            f"crowdppl next-gold DIR --n {n} --page gold.html",
            f'cp.gold_page(fit, "gold.html", {n})',
        ),
        Step("how many labels are right", "crowdppl estimate DIR gold.csv", 'cp.estimate(fit, "gold.csv")'),
        page,
    )
