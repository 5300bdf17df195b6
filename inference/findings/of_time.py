r"""Workers whose quality changed in the course of their annotations, of which it is known when they were given.

The other workers' annotations of a task give its class the probabilities :math:`q_k`, by the crowd's prevalence and the
confusion matrices :math:`\theta_{jkl}` that go with the labels. An annotation l of worker j has the residual

.. math:: r = q_l - \sum_k q_k \sum_m \theta_{jkm} q_m

of how right it is by the others beyond what the worker is in general on such a task: neither a class that becomes more
frequent nor tasks on which the others are in doubt move it. Of each worker the mean of the later half less that of the
earlier is compared, as Student's t with the variance of all residuals, with the workers' median: where tasks become
harder for everybody nobody has changed. Where the median may be zero, by an interval that assumes no distribution, it
is taken for that: of a crowd of which half changed it lies between both halves, and who did not would seem to. A worker
who did not move the same way, by two standard errors, has not changed. The tail counts as many times as there are
workers who are looked at. Where none of them is named, their changes may still differ more than by chance, by the
:math:`\chi^2` of their distances from the mean.

That they become harder shows in the share of pairs of annotations of a task that agree, less what the two workers'
confusion matrices expect of tasks of the class, and less the question's mean where there are several: its means over
the later and the earlier tasks are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, softmax, stdtr

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.description import count_text
from ...data.id_text import name_quoted
from ...data.questions import Units
from ..fitted.intervals import INTERVAL, of_median, wilson
from .of_crowd import crowd_of, tables_of
from .register import Labels, Said, check

FEWEST = 20  # annotations of known time that others annotated, too, of a worker who is looked at
WORKERS = 3  # who are looked at, for one of them to have changed rather than the others
TAIL = 0.01  # of both sides, for all workers
MUCH = 0.15  # share of the annotations that those who changed give, from which it is warned
MOVED = 2.0  # standard errors by which a worker's own halves differ, who changed
SHOWN = 3
TASKS = 40  # of each half at the least, for the agreement of all workers to be looked at
TAIL_OF_ALL = 0.001  # of both sides
PERHAPS = 1.0  # tail of the workers who may have changed by themselves, whom the agreement leaves out
FAR = 0.05  # change of the agreement from which it is said
DATES = 1e8, 1e11  # numbers between these are taken for seconds since 1970 where a text says when
PER_SECOND = 1.0, 1e3, 1e6  # and so many times these for thousandths and millionths of them
UNITS = 86400.0, 3600.0, 60.0, 1.0  # seconds of a day, an hour, a minute and a second


class Halves(NamedTuple):
    """The earlier and the later half of workers' annotations.

    Args:
        workers: who were looked at, ``(W,)``.
        since: when the later half begins, of dates the roundest after the earlier half, ``(W,)``.
        n: annotations that are looked at, ``(W, 2)``.
        right: their mean probability to be right by the others, ``(W, 2)``.
        tail: probability of as large a change where nobody changes, times W: ``(W,)``.
        apart: probability that all together differ so much in their changes where nobody changes.
    """

    workers: np.ndarray
    since: np.ndarray
    n: np.ndarray
    right: np.ndarray
    tail: np.ndarray
    apart: float


@check("changed", "crowd", needs={"workers"})
def changed(of: Labels) -> Iterator[Said]:
    """Workers who are right more or less often in the later half of their annotations than in the earlier.

    A warning where they give :data:`MUCH` of the annotations, else a note. Of those who are right in .40 less of the
    later half most are named with 250 annotations each, and few with 62 (``benchmarks/over_time.py``).
    """
    crowd, tables = crowd_of(of), tables_of(of)
    if crowd is None or tables is None or crowd.given.when is None:
        return
    found = halves(crowd.given, crowd.posterior, tables)
    order = np.argsort(found.tail)
    order = order[found.tail[order] < TAIL]
    if not len(order):
        return
    names = [of.annotations.workers[j] for j in found.workers[order].tolist()]
    since = found.since[order].tolist()
    said = []
    for name, place in list(zip(names, order.tolist(), strict=True))[:SHOWN]:
        early, late = (
            f"{right:.0%} ({low:.0%}–{high:.0%}) of {count_text(n, 'annotation')}"
            for right, n in zip(found.right[place], found.n[place].tolist(), strict=True)
            for low, high in [wilson(right, n, INTERVAL)]
        )
        said.append(
            f"{name_quoted(name)} was right in {early} before {date_text(found.since[place])} and in {late} since"
        )
    others = f"; so it is with {count_text(len(order) - SHOWN, 'other worker')}" if len(order) > SHOWN else ""
    share = float(np.isin(np.asarray(crowd.given.worker), found.workers[order]).mean())
    yield Said(
        f"workers changed, by the labels that the others give: {'; '.join(said)}{others}",
        "each counts as equally good all the time; to take one for two, give the later annotations another name: "
        "table = annotations.to_frame(); "
        f"table.loc[(table['worker'] == {names[0]!r}) & ({_from(since[0])}), 'worker'] = 'the same, later'; "
        "and fit the table, when='when'",
        {
            "workers": names,
            "since": since,
            "right": found.right[order].tolist(),
            "annotations": found.n[order].tolist(),
            "share": share,
        },
        "warning" if share >= MUCH else "note",
    )


@check("changed_apart", "crowd", needs={"workers"})
def changed_apart(of: Labels) -> Iterator[Said]:
    """Workers whose changes differ more than by chance, where none is named by :func:`changed`, as a note.

    Where half of a crowd changed and half did not, hardly anything tells which half it was.
    """
    crowd, tables = crowd_of(of), tables_of(of)
    if crowd is None or tables is None or crowd.given.when is None:
        return
    found = halves(crowd.given, crowd.posterior, tables)
    if found.apart >= TAIL_OF_ALL or (found.tail < TAIL).any():
        return
    change = found.right[:, 1] - found.right[:, 0]
    order = np.argsort(change)
    worst, best = (
        f"{name_quoted(of.annotations.workers[int(found.workers[place])])} from {early:.0%} to {late:.0%}"
        for place in (order[0], order[-1])
        for early, late in [found.right[place]]
    )
    yield Said(
        "some workers changed, and others did not, of which nothing tells who: from the earlier half of their "
        f"annotations to the later they are right, by the labels that the others give, between {worst} and {best}, "
        "which differ by more than chance. Each counts as equally good all the time",
        "fit the tasks before and since apart, and compare with gold labels of both",
        {"change": change[order].tolist(), "apart": found.apart},
        "note",
    )


@check("agreement_changed", "crowd", needs={"workers"})
def agreement_changed(of: Labels) -> Iterator[Said]:
    """Tasks on which workers agree more or less in the later half than in the earlier, whoever they are, as a note.

    Who may have changed otherwise than the others, with a tail below :data:`PERHAPS`, is left out.
    ``benchmarks/over_time.py`` measures how often it is said, wrongly too, and how much too sure the labels then are.
    """
    if (pairs := changed_agreement(of)) is None:
        return
    early, late = pairs.shares
    worse, better = ("since", "before") if pairs.change < 0 else ("before", "since")
    date = date_text(pairs.since)
    yield Said(
        f"tasks became {'harder' if pairs.change < 0 else 'easier'} for the workers: two annotations of a task agree "
        f"in {early:.0%} on tasks before {date} and in {late:.0%} since, and each worker counts as equally good all "
        f"the time, so that labels are too sure {worse} and not sure enough {better}",
        "fit the tasks before and since apart, and compare with gold labels of both",
        {"since": pairs.since, "agreement": list(pairs.shares), "change": pairs.change},
        "note",
    )


def changed_agreement(of: Labels) -> Agreement | None:
    """The agreement of the earlier and the later tasks where it is not the same; None where it is or cannot be told."""
    crowd, tables = crowd_of(of), tables_of(of)
    if crowd is None or tables is None or crowd.given.when is None:
        return None
    found = halves(crowd.given, crowd.posterior, tables)
    pairs = agreement(crowd.given, crowd.posterior, tables, without=found.workers[found.tail < PERHAPS])
    return None if pairs is None or pairs.tail >= TAIL_OF_ALL or abs(pairs.change) < FAR else pairs


class Agreement(NamedTuple):
    """Shares of pairs of annotations of a task that agree in the earlier and in the later half of the tasks.

    Args:
        since: when the later half begins.
        shares: of the pairs that agree, in each half.
        change: of the share that agrees beyond what the workers' confusion matrices expect, from half to half.
        tail: probability of as large a change where nothing changes, of both sides.
    """

    since: float
    shares: tuple[float, float]
    change: float
    tail: float


def agreement(given: Annotations, posterior: np.ndarray, tables: np.ndarray, without: np.ndarray) -> Agreement | None:
    """Return how the agreement of workers changed; None where a half has fewer than :data:`TASKS` tasks.

    Args:
        given: annotations that are classes, of named workers, with times.
        posterior: label probabilities, ``(N, K)``.
        tables: expected numbers of annotations by worker, true class and class given, ``(J, K, K)``.
        without: workers who are left out.
    """
    task, worker, label, when = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label", "when"))
    _, rows = np.unique(task.astype(np.int64) * given.n_workers + worker, return_index=True)
    rows = rows[np.isfinite(when[rows]) & ~np.isin(worker[rows], without)]
    task, worker, label, when = task[rows], worker[rows], label[rows], when[rows]
    n = np.bincount(task, minlength=given.n_tasks)
    pairs = n * (n - 1) / 2
    used = np.flatnonzero(pairs)
    if len(used) < 2 * TASKS:
        return None
    agree = ((cross_counts((given.n_tasks, posterior.shape[1]), task, label) ** 2).sum(1) - n) / 2
    expected = np.zeros(given.n_tasks)
    for own, q in zip(_confusion(tables).swapaxes(0, 1), posterior.T, strict=True):
        given_k = own[worker]
        sums = np.stack([np.bincount(task, column, given.n_tasks) for column in given_k.T], axis=1)
        expected += q * ((sums**2).sum(1) - np.bincount(task, (given_k**2).sum(1), given.n_tasks)) / 2
    beyond = (agree - expected)[used] / pairs[used]
    if isinstance(given.tasks, Units):  # a question that is asked later than another may be harder
        question = given.tasks.question[used]
        beyond -= (np.bincount(question, beyond) / np.maximum(np.bincount(question), 1))[question]
    time = np.bincount(task, when, given.n_tasks)[used] / n[used]
    is_late = time >= np.median(time)
    if min(is_late.sum(), (~is_late).sum()) < TASKS:
        return None
    early, late = (float(agree[used][half].sum() / pairs[used][half].sum()) for half in (~is_late, is_late))
    change = float(beyond[is_late].mean() - beyond[~is_late].mean())
    error = np.sqrt(sum(beyond[half].var(ddof=1) / half.sum() for half in (is_late, ~is_late)))
    tail = float(2 * ndtr(-abs(change) / max(error, 1e-12)))
    since = round_start(float(time[~is_late].max()), float(time[is_late].min()))
    return Agreement(since, (early, late), change, tail)


def _confusion(tables: np.ndarray) -> np.ndarray:
    """Return workers' confusion matrices of expected numbers, with the crowd's as a prior: ``(J, K, K)``."""
    common = tables.sum(0) + 1.0
    common /= common.sum(-1, keepdims=True)
    rows = tables + tables.shape[1] * common
    return np.asarray(rows / rows.sum(-1, keepdims=True))


def halves(given: Annotations, posterior: np.ndarray, tables: np.ndarray) -> Halves:
    """Return the halves of the workers' annotations, and how probable their differences are by chance.

    Args:
        given: annotations that are classes, of named workers, with times.
        posterior: label probabilities, ``(N, K)``.
        tables: expected numbers of annotations by worker, true class and class given, ``(J, K, K)``.
    """
    n_workers = given.n_workers
    task, worker, label, when = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label", "when"))
    rows = _confusion(tables)
    logs = np.log(rows)[worker, :, label] * given.row_counts[:, None]
    _, pair = np.unique(task.astype(np.int64) * n_workers + worker, return_inverse=True)
    by_others = _sums(logs, task)[task] - _sums(logs, pair)[pair]
    by_others += np.log(posterior.mean(0) + 1e-12)
    if given.evidence is not None:
        by_others += np.asarray(given.evidence)[task]
    q = softmax(by_others, axis=1)
    right = q[np.arange(len(task)), label]
    residual = right - np.einsum("ak,akm,am->a", q, rows[worker], q)

    pairs_of_task = np.bincount(task[np.unique(pair, return_index=True)[1]], minlength=given.n_tasks)
    used = np.flatnonzero((pairs_of_task[task] > 1) & np.isfinite(when))
    used = used[np.lexsort((when[used], worker[used]))]
    n_used = np.bincount(worker[used], minlength=n_workers)
    looked_at = np.flatnonzero(n_used >= FEWEST)
    first = np.cumsum(n_used) - n_used
    found = []
    for j in looked_at.tolist():
        own = used[first[j] : first[j] + n_used[j]]
        middle = when[own[len(own) // 2]]
        n_early = int(np.searchsorted(when[own], middle)) or int(np.searchsorted(when[own], middle, side="right"))
        early, late = own[:n_early], own[n_early:]
        if min(len(early), len(late)) >= FEWEST // 4:
            change = residual[late].mean() - residual[early].mean()
            variance = residual[own].var(ddof=1) * (1 / len(early) + 1 / len(late))
            each = [(len(half), right[half].mean()) for half in (early, late)]
            found.append((j, round_start(when[early[-1]], when[late[0]]), *zip(*each, strict=True), change, variance))
    if len(found) < WORKERS:
        return Halves(np.zeros(0), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), 1.0)
    workers, since, sizes, shares, change, variance = (np.array(column) for column in zip(*found, strict=True))
    low, high = of_median(change, INTERVAL)
    usual = 0.0 if low <= 0 <= high else np.median(change)
    # The median of W normal variables has pi / (2 W) of the variance of one.
    error = np.maximum(np.sqrt(variance + np.pi / 2 * variance.mean() / len(found)), 1e-12)
    tail = 2 * stdtr(sizes.sum(1) - 2, -np.abs((change - usual) / error))
    has_moved = (change - usual) * change >= MOVED * np.sqrt(variance) * np.abs(change - usual)
    tail = np.where(has_moved, np.minimum(len(found) * tail, 1.0), 1.0)
    usually = np.average(change, weights=1 / np.maximum(variance, 1e-12))
    apart = chdtrc(len(found) - 1, ((change - usually) ** 2 / np.maximum(variance, 1e-12)).sum())
    return Halves(workers, since, sizes, shares, tail, float(apart))


def _sums(values: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Return the sums of the rows of each code, ``(code.max() + 1, K)`` of ``(A, K)``."""
    return np.stack([np.bincount(code, column) for column in values.T], axis=1)


def date_text(when: float) -> str:
    """Return a time in words: a date where its number is one of seconds since 1970, or of parts of them."""
    parts = _per_second(when)
    if parts is None:
        return f"{when:.12g}"
    return str(pd.Timestamp(when / parts, unit="s").floor("us")).removesuffix(" 00:00:00").removesuffix(":00")


def round_start(before: float, first: float) -> float:
    """Return the roundest date after one time and not after another, or the latter where they are no dates."""
    parts = _per_second(first)
    if parts is None:
        return first
    starts = (first // (unit * parts) * unit * parts for unit in UNITS)
    return next((start for start in starts if start > before), first)


def _per_second(when: float) -> float | None:
    """The parts of a second that a number of a date counts, None where it is no date."""
    return next((parts for parts in PER_SECOND if DATES[0] * parts < when < DATES[1] * parts), None)


def _from(when: float) -> str:
    """Return the condition on rows of a table that they are not before a time, in Python."""
    parts = _per_second(when)
    if parts is None:
        return f"table['when'] >= {when!r}"
    return f"table['when'] >= pd.Timestamp({date_text(when)!r}).timestamp()" + f" * {parts:g}" * (parts > 1)
