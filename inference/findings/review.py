r"""Workers to review, and why: by the posterior probability that a worker looks at no task, or names wrong classes.

Given the labels by the others, the annotation l of a task of class k has the probability :math:`\beta[k, l]`. It
follows from the worker's habit :math:`v`, the shares of the classes among the worker's other annotations with the
crowd's as a prior that counts for :data:`HABIT` annotations, by one of four kinds:

.. math::
    \text{looks}: \quad & r \, [l = k] + (1 - r) \, v_l, \qquad r \sim \text{Beta}(s m, \, s (1 - m)) \\
    \text{says nothing}: \quad & v_l \\
    \text{below chance}: \quad & v_l \, (1 - u \, [l = k]) / (1 - u v_k), \; u \sim \text{Beta}(s' m', s' (1 - m')) \\
    \text{takes classes for others}: \quad & \beta_k \sim \text{Dirichlet}

The shares of the kinds, m and s, and m' and s', are those of the crowd: EM finds them over the workers, but for those
who are known to give one class whatever the task and tell of nobody else, the shares with a prior that counts like
seven workers of whom six look. The densities of r and u vanish at 0, with :math:`s m` and :math:`s' m'` of
:data:`LEAST` or more, so that who is below chance clearly is. The labels are those of the fit without the worker's own
annotation, :math:`P(z_i = k \mid y_{-ij}) \propto P(z_i = k \mid y) / \beta_j[k, y_{ij}]`; of a rule they are the
others' votes. A worker is to be reviewed who is more probably than not of the second or third kind, or of the fourth
with an accuracy below that of the habit (of ordered classes: in the reverse order). Few annotations leave a worker
among those who look, as most do. Of more than a million annotations a random part is looked at, of each of J workers
about a J-th of a million at the most.

Who looks at ordered classes gives the class with probability r, as above, or, half and half, follows their order with
correlation r: a judge who is lenient, or spreads scores in a way of their own, says much and names few classes rightly,

.. math:: \beta[x, l] \propto v_l \, c(x, y_l; r),

with c the density of a normal copula, y the normal scores of the worker's own annotations, and x those of the mean that
the others' annotations tell. Likewise who is below chance reverses the order, or names wrong classes.

Where it is more probable than not that workers look at no task (:mod:`.beyond_chance`), labels tell of nobody: those
who contradict them are as good as those whom they follow, and only the reasons of findings are left.

Who chooses the tasks, as a labelling function does that gives its class where its rule applies, has the habit of the
crowd's shares, and is none of the fourth kind: what is given says something where it is right more often than these.
Where most give one class each and abstentions are not known, or count for nothing, nothing tells how good these are
(:func:`.untold_of_one_class`): none of them is reviewed.
"""

from collections.abc import Hashable, Iterator

import numpy as np
import pandas as pd
from scipy.special import betaln, expit, gammaln, ndtr, ndtri

from ...data import Annotations
from ...data.arrays import cross_counts, expected_counts, midranks
from ...data.id_text import name_quoted, name_text
from ...data.questions import Units
from ..fitted.averaged_labels import are_at_mode
from ..fitted.beyond_chance import by_chance
from ..fitted.fitted import Fitted, label_posteriors
from ..fitted.posterior import Posterior
from .constant_workers import CHOOSES, NEARLY, constant_workers
from .facts import listed
from .look import findings
from .of_crowd import untold_of_one_class
from .of_time import date_text
from .register import once

SAYS_NOTHING = "says next to nothing of the true class"
BELOW_CHANCE = "is right less often than by guessing"
PROBABLE = 0.5  # probability from which a worker is to be reviewed
UNTOLD = "not told: workers agree no more than by chance, and scores say nothing"  # of who is reviewed for nothing
UNTOLD_OF_ONE = "not told: gives one class alone, and abstentions, which would tell, are not known or do not count"
UNTOLD_OF_FAMILIES = "not told: families contradict each other, and labels follow one of them"
BEYOND = 3.0
SURELY = 0.95  # share of it from which such a worker is said to be below chance, and not only to say nothing
LOOKS, NOTHING, BELOW, OTHERWISE = range(4)
PRIOR = np.array([6.0, 0.5, 0.25, 0.25])  # of the shares of these kinds, in workers
LEAST = 3.0  # s m of those who look, and of those who are below chance
GRID = (np.arange(40) + 0.5) / 40  # values of r
COARSE = (np.arange(10) + 0.5) / 10  # values of u, as many as of r of who reverses an order
CORRELATIONS = (np.arange(-10, 10) + 0.5) / 10  # values of r of who follows an order, and below 0 of who reverses it
MEANS, SIZES = np.arange(1, 20) / 20, 2.0 ** np.arange(2, 7)  # values of m and s, of either
HABIT, ROW = 10.0, 2.0  # annotations that the prior of a habit, and of a row of a confusion matrix, counts for
ITERATIONS = 200
LOOKED_AT, NUMBERS = 1e6, 2e7  # annotations that are looked at, and probabilities of their classes, at the most
IN_ORDER = 200_000  # annotations whose order is looked at, at the most
BLOCK = 2**14  # of them at a time, which stay in a core's cache
CLOSE = 1e-6  # change of a share at which EM ends


def review(of: Posterior | Fitted) -> pd.DataFrame:
    """Return which workers to review, and why.

    The reasons are those above, with their probability; that a worker gives one class whatever the task
    (:mod:`.constant_workers`), may copy others (:mod:`.copies`), or changed over time (:mod:`.of_time`), as the
    findings say. Several that hold are said after each other, except that one class whatever the task says enough.

    Args:
        of: a fit of a story, an average, or labels by a rule, whose annotations are in memory and name workers.

    Returns:
        By worker: review, a bool, and reason, empty where there is none; where workers agree no more than by chance
        it is said of each that nothing is told, lest no review be read as praise. So it is of families who contradict
        each other: by labels that follow one of them the other says next to nothing.
    """
    return _review(of if isinstance(of, Fitted) or of.only is None else of.only)


@once
def _review(of: Posterior | Fitted) -> pd.DataFrame:
    annotations = of.annotations
    found = _by_findings(of)
    wrong = {name_text(worker): said for worker, said in spammers(of).items()}
    if of_family := found["families"]:  # labels follow one of them, by which the others say next to nothing
        for name in _agree_with_others(annotations) & wrong.keys():
            if wrong[name].startswith(SAYS_NOTHING):
                of_family[name] = UNTOLD_OF_FAMILIES
                del wrong[name]
    reasons, names = [], [*map(name_text, annotations.workers)]
    for name in names:
        others = (of_kind.get(name) for of_kind in (wrong, found["copies"], found["changed"]))
        reasons.append(found["constant_workers"].get(name) or "; ".join(filter(None, others)))
    reason = np.array(reasons, object)
    is_review = reason != ""
    reason[~is_review] = [found["families"].get(name, "") for name in np.array(names, object)[~is_review]]
    if tells_of_nobody(of):
        reason[~is_review] = UNTOLD
    else:
        reason[~is_review & untold_of_one_class(annotations)] = UNTOLD_OF_ONE
    return pd.DataFrame({"review": is_review, "reason": reason}, annotations.workers.to_index("worker"))


def _agree_with_others(annotations: Annotations) -> set[str]:
    """Return the workers who agree with the others beyond chance, by :data:`BEYOND` standard errors over tasks."""
    given = _looked_at(annotations.of_classes())
    task, worker, label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
    n = cross_counts((given.n_workers, given.n_classes), worker, label, weight=given.row_counts)
    beyond = np.eye(given.n_classes)[label] - (n / np.maximum(n.sum(1, keepdims=True), 1))[worker]
    of_task = np.stack([np.bincount(task, one, given.n_tasks) for one in beyond.T], 1)
    excess = (beyond * (of_task[task] - beyond)).sum(1)
    total, square = (np.bincount(worker, values, given.n_workers) for values in (excess, excess**2))
    return {name_text(given.workers[j]) for j in np.flatnonzero(total > BEYOND * np.sqrt(square)).tolist()}


def tells_of_nobody(of: Posterior | Fitted) -> bool:
    """Return whether it is more probable than not that nobody looked."""
    return by_chance(of.annotations) > PROBABLE


def with_review(scores: pd.DataFrame, of: Posterior | Fitted) -> pd.DataFrame:
    """Return the workers' scores with the columns review and reason after that of the annotations."""
    return pd.concat([scores[["annotations"]], review(of), scores.drop(columns="annotations")], axis=1)


def reviewed(of: Posterior | Fitted) -> pd.DataFrame:
    """Return the workers to review alone, those with the most annotations first: annotations and reason by worker."""
    frame = review(of).copy()
    frame.insert(0, "annotations", np.asarray(of.given.n_by_worker()).astype(int))
    frame = frame[frame["review"]].drop(columns="review")
    return frame.sort_values("annotations", ascending=False, kind="stable")


def spammers(of: Posterior | Fitted) -> dict[Hashable, str]:
    """Return by worker who says next to nothing, or is right less often than by guessing, this as a reason.

    It is empty where :func:`tells_of_nobody`.
    """
    if tells_of_nobody(of):
        return {}
    source = Posterior.of(of) if isinstance(of, Fitted) else of
    probability, above, reasons = probabilities(source), _above_chance(source), {}
    doubted = (probability[:, [NOTHING, BELOW]].sum(1) > PROBABLE) & ~untold_of_one_class(source.annotations)
    for j in np.flatnonzero(doubted).tolist():
        either = probability[j, [NOTHING, BELOW]].sum()
        is_below = probability[j, BELOW] > SURELY * either and not above[j]
        said = BELOW_CHANCE if is_below else SAYS_NOTHING
        shown = f"{either:.2f}" if either < 0.995 else "> 0.99"
        reasons[source.annotations.workers[j]] = f"{said} (probability {shown})"
    return reasons


def _above_chance(of: Posterior) -> np.ndarray:
    """A mask of the workers whose confusion matrix of the fit is right more often than chance, or in order, ``(J,)``.

    Labels that followed a worker are, without this worker, of other classes than the worker names: who only guesses
    then seems to avoid the true class. Of labels by a rule, and of levels of another truth, nobody is.
    """
    if of.rule is not None or of.annotations.scored:
        return np.zeros(of.annotations.n_workers, bool)
    shares = of.class_shares
    tables = of.confusion_draws.mean((0, 1))[:, :, : len(shares)]  # without abstentions
    tables = tables / tables.sum(-1, keepdims=True)
    given = np.einsum("k,jkl->jl", shares, tables)
    if of.annotations.kind.in_order and len(shares) > 2:
        place = np.arange(len(shares))
        return np.asarray((tables @ place) @ (shares * place) > (given @ place) * (shares @ place))
    return np.asarray(np.diagonal(tables, axis1=1, axis2=2) @ shares > given @ shares)


def _by_findings(of: Posterior | Fitted) -> dict[str, dict[str, str]]:
    """By code of findings, and by worker, the reason that they give."""
    found: dict[str, dict[str, str]] = {"constant_workers": {}, "copies": {}, "changed": {}, "families": {}}
    for finding in findings(of):
        reasons = found.get(finding.code, {})
        if finding.code == "constant_workers":
            gone = finding.values.get("left_out", False)
            constant, on = finding.values["workers"], finding.values.get("questions")
            each = zip(constant, finding.values["classes"], on or [None] * len(constant), strict=True)
            for name, given, question in each:
                if question is None:
                    place, so = "", "; its annotations are left out, and nothing else is said of it" * gone
                else:
                    place, so = f" on {question!r}", "; its annotations there are left out" * gone
                said = f"gives {name_quoted(given)}{place} whatever the task{so}"
                reasons[name_text(name)] = "; ".join(filter(None, [reasons.get(name_text(name)), said]))
        elif finding.code == "copies":
            for group in (finding.values, *finding.values.get("others", ())):
                if group.get("by_gold") == "better":
                    continue
                names: list[Hashable] = group["workers"]
                asked = "" if group.get("question") is None else f" of question {group['question']!r}"
                for name in names:
                    others = [other for other in names if other != name]
                    copies = "copies, or is" if group.get("by_gold", "").endswith("copies") else "may copy, or be"
                    said = f"{copies} copied by, {listed(others)}: {group['within']:.0%} the same{asked}"
                    reasons.setdefault(name_text(name), said)
        elif finding.code == "families" and finding.severity == "warning":
            reasons |= {name_text(name): "" for group in finding.values["families"] for name in group}
        elif finding.code == "changed":
            each = zip(*(finding.values[name] for name in ("workers", "right", "since")), strict=True)
            for name, (early, late), since in each:
                said = f"changed: right in {early:.0%} before {date_text(since)} and in {late:.0%} since"
                reasons[name_text(name)] = said
    return found


def probabilities(of: Posterior) -> np.ndarray:
    """Return the probability of each kind by worker, ``(J, 4)``; the fourth without what is below chance.

    A worker without annotations of classes looks.
    """
    every = of.annotations.of_classes()
    given = _looked_at(every)
    n_workers, n_classes = given.n_workers, given.n_classes
    worker, label, count = np.asarray(given.worker), given.label_as_shown, given.row_counts
    labels = of.posterior if of.rule is not None else of.allowing_for(0.0).posterior
    shares = np.asarray(labels, float).mean(0)
    others = given.as_shown(_by_others(of, every, given))
    n = cross_counts((n_workers, n_classes), worker, label, weight=count)
    tables = expected_counts(given, label, others, by_row=True)
    chooses = _choose(n, tables, shares)
    constant = np.zeros(n_workers, bool)
    constant[constant_workers(of.annotations).workers] = True
    sums = np.zeros((n_workers, 1 + len(GRID) + len(COARSE)))
    block = max(BLOCK, n_workers)
    for first in range(0, len(label), block):
        rows = slice(first, first + block)
        may_be = None if given.own is None else given.own[np.asarray(given.task)[rows]]
        habit = _habit(n, worker[rows], label[rows], shares, chooses, may_be)
        logs = _log_probabilities(others[rows], habit, label[rows])
        for of_kind, values in zip(sums.T, logs, strict=True):
            of_kind += np.bincount(worker[rows], count[rows] * values, n_workers)
    nothing, looks, below = np.split(sums, [1, 1 + len(GRID)], axis=1)
    by_rows = np.zeros(n_workers)
    for own in _blocks(given):
        habit = n[:, own] + 0.5
        by_rows += _beside_habit(tables[:, own][:, :, own], habit / habit.sum(1, keepdims=True))
    habits = _smoothed(n, shares)
    for own in _blocks(given) if given.own is not None else ():
        habits[:, own] /= habits[:, own].sum(1, keepdims=True)
    wrong = _probably_below(tables, habits, shares)
    if groups := _ordered_groups(given):
        reverses, follows = np.split(_by_order(given, groups, others, label, shares) + nothing, 2, axis=1)
        looks = np.logaddexp(looks, np.repeat(follows, len(GRID) // follows.shape[1], axis=1)) - np.log(2)
        follow, reverse = (np.logaddexp.reduce(each, 1) - np.log(each.shape[1]) for each in (follows, reverses))
        below, wrong = np.logaddexp(below, reverses[:, ::-1]) - np.log(2), expit(reverse - follow)
    otherwise = np.where(chooses, -np.inf, nothing[:, 0] + by_rows)
    found = _mixture(looks, below, nothing[:, 0], otherwise, constant)
    wrong *= found[:, OTHERWISE]
    found[:, BELOW] += wrong
    found[:, OTHERWISE] -= wrong
    found[n.sum(1) == 0] = np.eye(4)[LOOKS]
    return found


def _looked_at(annotations: Annotations) -> Annotations:
    """The annotations, or a random part of them where they are many, of each worker as many at the most."""
    most = min(LOOKED_AT, NUMBERS / annotations.n_classes)
    if annotations.n_rows <= most:
        return annotations
    worker = np.asarray(annotations.worker)
    n = np.bincount(worker)
    share = most / np.maximum((n > 0).sum() * n, 1)
    return annotations.rows(np.random.default_rng(0).random(len(worker), np.float32) < share[worker])


def _by_others(of: Posterior, every: Annotations, given: Annotations) -> np.ndarray:
    """The probabilities of the true class of each row that is looked at by the other workers, ``(A, K)``.

    Of a point they are those at its parameters, whose confusion matrices take the worker's own annotation out again:
    taken out of labels that are averaged around it, a worker whom it follows would leave the opposite behind.

    Args:
        every: all annotations.
        given: the rows that are looked at.
    """
    task, worker, label = np.asarray(given.task), np.asarray(given.worker), np.asarray(given.label)
    if of.rule is not None or of.annotations.scored:
        votes = every.votes().astype(float)[task]
        votes[np.arange(len(task)), label] -= 1
        return np.asarray(given.kind.votes(np.maximum(votes, 0.0)), float)
    columns = np.ascontiguousarray(of.confusion_draws.mean((0, 1)).swapaxes(1, 2))
    likelihood = given.as_shown(columns[worker, given.label_as_shown])
    each = [
        label_posteriors(at).mean(0) if at.outcome.is_point and not are_at_mode(at) else at.posterior
        for at, _ in of.weighty
    ]
    others = np.tensordot([weight for _, weight in of.weighty], each, axes=1)[task]
    others /= np.maximum(likelihood, CLOSE)
    others /= np.maximum(np.einsum("ak->a", others), CLOSE)[:, None]
    return np.asarray(others)


def _choose(n: np.ndarray, tables: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A mask of the workers who give one class, on tasks that are of it more often than others, ``(J,)``."""
    total, main = n.sum(1), n.argmax(1)
    of_main = tables.sum(2)[np.arange(len(n)), main]
    spread = np.sqrt(total * shares[main] * (1 - shares[main]))
    return np.asarray((n.max(1) >= NEARLY * total) & (of_main - total * shares[main] > CHOOSES * spread))


def _blocks(given: Annotations) -> list[np.ndarray]:
    """The classes of each question, as class indices; all classes where questions have no classes of their own."""
    own = given.kind.own
    return [np.arange(given.n_classes)] if own is None else [np.flatnonzero(row) for row in np.unique(own, axis=0)]


def _habit(
    n: np.ndarray,
    worker: np.ndarray,
    label: np.ndarray,
    shares: np.ndarray,
    chooses: np.ndarray,
    own: np.ndarray | None,
) -> np.ndarray:
    """The habit of each row's worker by the worker's other annotations, ``(A, K)``, among the classes that may be."""
    others, row = n[worker], np.arange(len(label))
    others[row, label] = np.maximum(others[row, label] - 1, 0)
    if own is not None:
        others, shares = others * own, np.where(own, np.maximum(shares, CLOSE), 0.0)
        shares /= shares.sum(-1, keepdims=True)
    habit = _smoothed(others, shares)
    habit[chooses[worker]] = np.maximum(shares if own is None else shares[chooses[worker]], CLOSE)
    return habit.astype(np.float32)


def _log_probabilities(others: np.ndarray, habit: np.ndarray, label: np.ndarray) -> Iterator[np.ndarray]:
    """The log-probability of each row, ``(A,)``: of the habit alone, of each r of who looks, each u of who avoids."""
    row = np.arange(len(label))
    own, by_habit = others[row, label], habit[row, label]
    yield np.log(by_habit)
    for r in GRID.tolist():
        yield np.log(r * own + (1 - r) * by_habit)
    for u in COARSE.tolist():
        scale = 1 / (1 - u * habit)
        given = by_habit * (np.einsum("ak,ak->a", others, scale) - u * own * scale[row, label])
        yield np.log(np.maximum(given, 1e-12))


def _smoothed(n: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The mean of a Dirichlet posterior whose prior mean are the crowd's shares, ``(..., K)``."""
    return np.maximum((n + HABIT * shares) / (n.sum(-1, keepdims=True) + HABIT), CLOSE)


def _beside_habit(tables: np.ndarray, habit: np.ndarray) -> np.ndarray:
    """The log-evidence of rows with Dirichlet priors around the habit beside the likelihood of the habit, ``(J,)``.

    The habit is at its best, so that rows must say much to count: expected annotations follow the worker's own.

    Args:
        tables: expected annotations by true class and class given, ``(J, K, K)``.
        habit: ``(J, K)``.
    """
    prior = ROW * habit[:, None]
    rows = gammaln(prior.sum(-1)) - gammaln(prior.sum(-1) + tables.sum(-1))
    cells = gammaln(tables + prior) - gammaln(prior) - tables * np.log(habit)[:, None]
    return np.asarray(cells.sum((1, 2)) + rows.sum(1))


def _by_order(
    given: Annotations,
    groups: list[tuple[np.ndarray, np.ndarray]],
    others: np.ndarray,
    label: np.ndarray,
    shares: np.ndarray,
) -> np.ndarray:
    """The log-likelihood of each worker's correlation with the others beside the habit's, ``(J, len(CORRELATIONS))``.

    Args:
        given: the rows that are looked at.
        groups: rows and classes in their order, by question.
        others: the probabilities of the true class of each row by the other workers, ``(A, K)``.
        label: classes of the rows as they were shown, ``(A,)``.
        shares: of the classes, ``(K,)``.
    """
    found = np.zeros((given.n_workers, len(CORRELATIONS)))
    for rows, classes in groups:
        if len(rows) > IN_ORDER:
            rows = np.sort(np.random.default_rng(0).choice(rows, IN_ORDER, replace=False))
        worker, count = np.asarray(given.worker)[rows], given.row_counts[rows]
        place = np.zeros(given.n_classes, np.int64)
        place[classes] = np.arange(len(classes))
        level, row = place[label[rows]], np.arange(len(rows))
        n = cross_counts((given.n_workers, len(classes)), worker, level, weight=count)
        own = ndtri((n.cumsum(1) - n / 2 + 0.5) / (n.sum(1, keepdims=True) + 1))[worker]
        told = others[np.ix_(rows, classes)]
        mean = told @ np.arange(len(classes)) / np.maximum(told.sum(1), CLOSE)
        score = ndtri((midranks(mean) - 0.5) / len(rows))[:, None]
        rest = n[worker]
        rest[row, level] = np.maximum(rest[row, level] - 1, 0)
        usual = np.maximum(shares[classes], CLOSE)
        habit = np.log(_smoothed(rest, usual / usual.sum()))
        for column, rho in zip(found.T, CORRELATIONS.tolist(), strict=True):
            logs = habit + (rho * score * own - rho**2 * own**2 / 2) / (1 - rho**2)
            beside = logs[row, level] - np.logaddexp.reduce(logs, 1) - habit[row, level]
            column += np.bincount(worker, count * beside, given.n_workers)
    return found


def _ordered_groups(given: Annotations) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows and the classes, from the least to the greatest, of each question that has more than two in order."""
    kind, units = given.kind, given.tasks
    if kind.own is None or not isinstance(units, Units):
        groups = [(np.arange(given.n_rows), np.arange(given.n_classes))] if kind.in_order else []
    else:
        of_row = units.question[np.asarray(given.task)]
        groups = [
            (np.flatnonzero(of_row == place), kind.classes_of(place, given.n_classes))
            for place in range(len(units.questions))
            if kind.of_question(place).in_order
        ]
    return [(rows, classes) for rows, classes in groups if len(classes) > 2]


def _probably_below(tables: np.ndarray, habit: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The probability that accuracy is below that of the habit, of rows with Dirichlet posteriors, ``(J,)``."""
    n = tables.sum(-1) + HABIT
    right = (np.diagonal(tables, axis1=1, axis2=2) + HABIT * habit) / n
    spread = np.sqrt((right * (1 - right) / (n + 1)) @ shares**2)
    return np.asarray(ndtr((habit @ shares - right @ shares) / np.maximum(spread, CLOSE)))


def _mixture(
    looks: np.ndarray, below: np.ndarray, nothing: np.ndarray, otherwise: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """The kinds' probabilities, ``(J, 4)``, by EM.

    Args:
        looks: the log-likelihood of those who look by value of r, ``(J, R)``.
        below: of those who are below chance by value of u, ``(J, U)``.
        nothing: of those who say nothing, ``(J,)``.
        otherwise: the log-evidence of the fourth kind, ``(J,)``.
        known: a mask of the workers who tell nothing of the others, ``(J,)``.
    """
    of_looks, of_below = _by_population(looks, GRID), _by_population(below, COARSE)
    best, shares = (of_looks.shape[1] // 2, of_below.shape[1] // 2), PRIOR / PRIOR.sum()
    for _ in range(ITERATIONS):
        logs = np.stack([of_looks[:, best[0]], nothing, of_below[:, best[1]], otherwise], 1) + np.log(shares)
        found = np.exp(logs - np.logaddexp.reduce(logs, 1, keepdims=True))
        last, told = (best, shares), found[~known]
        best = int((told[:, LOOKS] @ of_looks[~known]).argmax()), int((told[:, BELOW] @ of_below[~known]).argmax())
        shares = (told.sum(0) + PRIOR) / (len(told) + PRIOR.sum())
        if best == last[0] and np.abs(shares - last[1]).max() < CLOSE:
            break
    return np.asarray(found)


def _by_population(logs: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Log-likelihoods by value of r or u as ones by population of them, ``(J, P)``, whose density vanishes at 0."""
    mean, size = (values.ravel() for values in np.meshgrid(MEANS, SIZES, indexing="ij"))
    kept = mean * size >= LEAST
    a, b = (mean * size)[kept, None], ((1 - mean) * size)[kept, None]
    population = (a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid) - betaln(a, b)
    population -= np.logaddexp.reduce(population, 1, keepdims=True)
    highest = logs.max(1, keepdims=True)
    return np.asarray(np.log(np.maximum(np.exp(logs - highest) @ np.exp(population).T, 1e-300)) + highest)
