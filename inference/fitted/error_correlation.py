r"""Correlation of workers' errors, and the number of independent workers that a panel of workers counts like.

Let :math:`e_{ij}` be 1 where worker j's annotation of task i is wrong, :math:`\bar e_{jk}` the worker's share of wrong
annotations in class k, and :math:`r_{ij} = (e_{ij} - \bar e_{j z_i}) / s_j`, with :math:`s_j` such that the worker's
:math:`r_{ij}^2` have mean 1. The mean correlation of two workers' errors is the mean of :math:`r_{ij} r_{ij'}` over all
pairs of annotations of one task. Workers who all find one class harder than another err together on it, and are
independent given the class, as in most stories: so errors are compared within the classes. Each share
:math:`\bar e_{jk}` counts one annotation more, wrong as often as all of the worker's annotations; this pulls the share
to the worker's overall share in classes with few annotations. Where all workers together err more or less in a class
than these shares say, for example because each annotated three tasks, the difference is subtracted from
:math:`r_{ij}` too.

A mean of J errors that correlate by :math:`\bar\rho` has the variance of a mean of
:math:`J / (1 + (J - 1) \bar\rho)` independent errors, the effective sample size of a cluster (Kish 1965, section 5.4).
A worker whose errors correlate by :math:`\rho_j` with the other workers' errors counts like
:math:`1 / (1 + (J - 1) \rho_j)` of an independent worker, so that the workers' counts add up to about the panel's.

The true labels are known through a fit alone, and the fit's story limits the correlation that can be seen. Where the
story's workers err independently of each other, tasks on which many err together get wrong labels with great
certainty, and hardly any correlation is left. A story with ``shared_error=True`` sees the correlation.

Intervals are quantiles of draws. Each draw has its own true labels, drawn from their probabilities, and its own weights
of the tasks, drawn from a Dirichlet distribution with 1 for each task: the Bayesian bootstrap (Rubin 1981), which shows
the spread of the correlation over other tasks of the same kind. Where the true labels are known, only weights are
drawn.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.some_tasks import some_tasks, tasks_alike
from ..densities.portable import SAVED
from ..engines.progress import late_bar
from .fitted import Fitted
from .intervals import INTERVAL, checked_tail, known_quantiles
from .misled import told_label
from .posterior import Posterior

DRAWS = (20, 100)  # of the true labels and of the tasks' weights, at the least and at the most
NUMBERS = 2e6  # annotations in all of these draws, about
LOOKED_AT = 250_000  # annotations; of more a sample of the tasks


BLIND = "; {} independently of each other, and {} nearly blind to errors that they share: "
OF_CLASSES = (
    BLIND.format("this story lets workers err", "is")
    + "give shared_error=True, and worker_families={worker: family, …} where some share them among themselves"
)
OF_LEVELS = BLIND.format("this story lets workers err", "is") + "fit score_factor"
OF_AVERAGE = (
    BLIND.format("the stories that have weight let workers err", "are")
    + "gold labels tell, by cp.error_correlation(fit, gold)"
)
ALLOWED = (
    "the labels allow for errors of two workers on one task that correlate by {correlation:.3f}: with these "
    "{n_workers} workers would count like {n_effective:.1f} independent ones. Annotations alone hardly tell whether "
    "workers share errors; gold labels do: cp.error_correlation(fit, gold)"
)


@dataclass(frozen=True)
class ErrorCorrelation:
    """Correlation of workers' errors, by :func:`error_correlation`.

    Attributes:
        correlation: the mean correlation of two workers' errors on one task given its class, :math:`\\bar\\rho`.
        n_workers: the number of workers who annotated, J; a worker of several questions is one.
        n_effective: the number of independent workers who err as one panel does, :math:`J / (1 + (J - 1) \\bar\\rho)`,
            from 1 to J.
        interval: of the latter, low and high, over the labels that the tasks may have and over which tasks were seen:
            it is wide where these are few, however well their labels are known.
        workers: by worker the mean correlation with the other workers' errors, NaN for a worker who is always right,
            always wrong, or alone on every task.
        by_worker: the same as error_correlation, and n_effective, like how much of an independent worker the worker
            counts, from 1 / J to 1; each with low and high, as above.
        sees_shared: whether the labels are known, or of a story whose workers may err together; another story is nearly
            blind to it.
        is_known: whether the true labels are known.
        blind: what is to be said of a story that is nearly blind to errors that workers share.
    """

    correlation: float
    n_workers: int
    n_effective: float
    interval: tuple[float, float]
    workers: pd.Series
    by_worker: pd.DataFrame
    sees_shared: bool = True
    is_known: bool = True
    blind: str = ""

    def __str__(self) -> str:
        if self.sees_shared and not self.is_known:
            return ALLOWED.format_map(vars(self))
        low, high = self.interval
        return (
            f"errors of two workers on one task correlate by {self.correlation:.3f}: {self.n_workers} workers count "
            f"like {self.n_effective:.1f} independent ones ({low:.1f}–{high:.1f})"
            + ("" if self.is_known else self.blind)
        )

    __repr__ = __str__


def error_correlation(source: Any, gold: Any = None, *, interval: float = INTERVAL, seed: int = 0) -> ErrorCorrelation:
    """Say how much workers err together, and like how many independent ones they count.

    Of more than 250,000 annotations it is said by a random sample of the tasks that has about so many.

    Args:
        source: a fit or a stack, whose label posterior the true labels are drawn from; or :class:`.Annotations`, whose
            true labels are known.
        gold: label by task, as :meth:`.Annotations.with_gold` takes it, which take the place of the posterior. By
            default those of the annotations, where `source` is annotations, and none where it is a fit.
        interval: mass of the intervals, equal-tailed, over draws of the true labels and of the tasks (Rubin's Bayesian
            bootstrap): how far the labels are unknown, and how far other tasks would give another correlation.
        seed: of these draws.

    Raises:
        TypeError: `source` is none of these.
        AnnotationError: no worker is named, no true label is known, or no task has annotations of two workers.
        ValueError: `interval` is not between 0 and 1.
    """
    if not isinstance(source, Annotations | Fitted | Posterior):
        raise TypeError(f"a fit by cp.fit, a stack, or annotations are needed, got a {type(source).__name__}")
    if isinstance(source, Posterior) and source.only is not None:
        source = source.only
    if gold is None and isinstance(source, Fitted):
        known = _known.setdefault(source, {})
        if (interval, seed) not in known:
            known[interval, seed] = _error_correlation(source, None, interval, seed)
        return known[interval, seed]
    return _error_correlation(source, gold, interval, seed)


_known: WeakKeyDictionary[Fitted, dict[tuple[float, int], ErrorCorrelation]] = WeakKeyDictionary()


def _error_correlation(
    source: Annotations | Fitted | Posterior, gold: Any, interval: float, seed: int
) -> ErrorCorrelation:
    annotations = source if isinstance(source, Annotations) else source.annotations
    if not annotations.named:
        raise AnnotationError("the annotations name no workers, so that nobody's errors can be told apart")
    rng = np.random.default_rng(seed)
    chosen = rng.random(annotations.n_tasks) < LOOKED_AT / max(annotations.n_rows, 1)
    n_draws = int(np.clip(NUMBERS / max(annotations.n_rows, 1), *DRAWS))
    if isinstance(source, Annotations) or gold is not None:
        known = annotations if gold is None else annotations.with_gold(gold)
        if known.gold is None:
            raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}, or a fit")
        truths, sees_shared, is_told = np.asarray(known.gold)[None, chosen], True, True
    else:
        # without the votes' share and misled tasks, which an average's labels allow for and no worker's errors made
        labels = source if isinstance(source, Fitted) or source.rule is not None else source.allowing_for(0.0)
        truths = drawn_labels(np.asarray(labels.posterior, dtype=float)[chosen], rng, n_draws)
        if (truths == truths[0]).all():
            truths = truths[:1]
        is_told = bool(
            (told_label(annotations) >= 0)[np.bincount(annotations.task, minlength=annotations.n_tasks) > 0].all()
        )
        sees_shared = is_told or source.shares_errors
    blind = OF_AVERAGE if isinstance(source, Posterior) else OF_LEVELS if annotations.scored else OF_CLASSES
    annotations = annotations.of_classes()
    if not chosen.all():
        annotations = some_tasks(annotations, chosen)
    seen = _Seen.of(annotations, truths)
    found = np.array([seen.correlations(i, np.ones(annotations.n_tasks)) for i in range(len(truths))])
    if np.isnan(found[:, 0]).all():
        raise AnnotationError("no task has annotations of two workers who are sometimes wrong")
    draws = np.empty((n_draws, found.shape[1]))
    with late_bar("correlation of errors", show=getattr(source, "progress", True)) as tell:
        for i in range(n_draws):
            weights = rng.standard_exponential(annotations.n_tasks)
            draws[i] = seen.correlations(i % len(truths), weights)
            tell(i + 1, n_draws)
    n = len(np.unique(np.asarray(annotations.across_questions().worker)))
    correlation = _summarised(found, draws, interval)
    effective = _summarised(_counting_like(found, n), _counting_like(draws, n), interval)
    each = pd.DataFrame(
        {
            f"{name}{end}": values[1:]
            for name, three in (("error_correlation", correlation), ("n_effective", effective))
            for end, values in zip(("", "_low", "_high"), three, strict=True)
        },
        annotations.workers.to_index("worker"),
    )
    count, low, high = (float(n * values[0]) for values in effective)
    return ErrorCorrelation(
        float(correlation[0][0]), n, count, (low, high), each["error_correlation"], each, sees_shared, is_told, blind
    )


def _means(value: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of ``value (n,)`` in each group, ``(G,)``, with one value of 0 more."""
    return np.bincount(group, weight * value) / (np.bincount(group, weight) + 1)


def _counting_like(correlation: np.ndarray, n_workers: int) -> np.ndarray:
    """Like how much of an independent worker each counts whose errors correlate so with the others'."""
    return 1 / (1 + (n_workers - 1) * np.clip(correlation, 0.0, 1.0))


def _summarised(found: np.ndarray, draws: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of what was found, ``(draw, ...)``, where there is a number, and low and high of the draws around it.

    Where few draws differ from the others the mean is outside of the quantiles; the interval is widened to hold it.
    """
    counted = (~np.isnan(found)).sum(0)
    mean = np.where(counted > 0, np.nansum(found, axis=0) / np.maximum(counted, 1), np.nan)
    tail = checked_tail(interval)
    low, high = known_quantiles(draws, [tail, 1 - tail])
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def drawn_labels(posterior: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """True labels drawn from their probabilities, ``(draw, N)``."""
    u = rng.random((n, len(posterior), 1))
    return np.minimum((u > posterior.cumsum(-1)).sum(-1), posterior.shape[-1] - 1)


@dataclass(frozen=True)
class _Seen:
    """Tasks with the true labels of each draw, those counted once that look alike and have one label in a draw.

    Args:
        annotations: of C tasks.
        pairs: of these.
        truths: their labels, ``(S, C)``, or ``(1, C)`` where tasks are counted once.
        place: which of these each task is in each draw, ``(S, N)``; None where they are the tasks themselves.
    """

    annotations: Annotations
    pairs: "_Pairs"
    truths: np.ndarray
    place: np.ndarray | None = None

    @classmethod
    def of(cls, annotations: Annotations, truths: np.ndarray) -> "_Seen":
        """The tasks themselves, where counting them once would not halve them.

        Args:
            annotations: of N tasks.
            truths: −1 where none is known, ``(S, N)``.
        """
        if (like := tasks_alike(annotations)) is not None:
            first, kind = np.unique(like, return_inverse=True)
            n = annotations.n_classes + 1
            cell = kind * n + truths + 1
            is_cell = np.bincount(cell.ravel(), minlength=n * len(first)) > 0
            cells = np.flatnonzero(is_cell)
            if SAVED * len(cells) <= annotations.n_tasks:
                once = some_tasks(annotations, first[cells // n])
                return cls(once, _pairs(once), cells[None] % n - 1, (np.cumsum(is_cell) - 1)[cell])
        return cls(annotations, _pairs(annotations), truths)

    def correlations(self, draw: int, weight: np.ndarray) -> np.ndarray:
        """The correlations at the labels of a draw, of tasks with weights ``(N,)``: :func:`_correlations`."""
        if self.place is None:
            return _correlations(self.pairs, self.annotations, self.truths[draw], weight)
        n = self.annotations.n_tasks
        return _correlations(self.pairs, self.annotations, self.truths[0], np.bincount(self.place[draw], weight, n))


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a worker and a task that the worker annotated, P of them, and the pair of each row."""

    task: np.ndarray
    worker: np.ndarray
    place: np.ndarray | None  # (A,); None where every row is a pair of its own
    row_weight: np.ndarray  # (A,)


def _pairs(annotations: Annotations) -> _Pairs:
    task, worker = np.asarray(annotations.task, np.int64), np.asarray(annotations.worker, np.int64)
    weight = annotations.row_counts
    if not annotations.annotated_again.any():
        return _Pairs(task, worker, None, weight)
    pair, place = np.unique(task * annotations.n_workers + worker, return_inverse=True)
    return _Pairs(pair // annotations.n_workers, pair % annotations.n_workers, place, weight)


def _correlations(pairs: _Pairs, annotations: Annotations, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean correlation of two workers' errors, and each worker's with the others', given true labels: ``(1 + J,)``.

    Repeated annotations of a worker for a task count as one, with their mean error. Tasks without a label, −1, are
    left out; `weight` is by task, ``(N,)``.
    """
    n_workers = annotations.n_workers
    error = (np.asarray(annotations.label) != truth[annotations.task]).astype(float)
    if pairs.place is not None:
        total = np.maximum(np.bincount(pairs.place, pairs.row_weight), 1e-9)
        error = np.bincount(pairs.place, error * pairs.row_weight) / total
    task, worker = pairs.task, pairs.worker
    if not (is_known := truth[task] >= 0).all():
        task, worker, error = task[is_known], worker[is_known], error[is_known]
    of_task = weight[task]
    n = np.maximum(np.bincount(worker, of_task, n_workers), 1e-12)
    share = np.bincount(worker, of_task * error, n_workers) / n
    variance = np.bincount(worker, of_task * error**2, n_workers) / n - share**2
    if not (differs := (variance > 1e-12)[worker]).all():
        task, worker, error, of_task = task[differs], worker[differs], error[differs], of_task[differs]
    of_class = worker * annotations.n_classes + truth[task]
    n_of_class = np.bincount(of_class, of_task)
    wrong = np.bincount(of_class, of_task * error)
    residual = error - (wrong[of_class] + share[worker]) / (n_of_class[of_class] + 1)
    spread = np.sqrt(np.bincount(worker, of_task * residual**2, n_workers) / n)
    residual /= spread[worker]
    residual -= _means(residual, truth[task], of_task)[truth[task]]
    total = np.bincount(task, residual, annotations.n_tasks)[task] - residual
    others = np.bincount(task, minlength=annotations.n_tasks)[task] - 1.0
    products = np.bincount(worker, of_task * residual * total, n_workers)
    met = np.bincount(worker, of_task * others, n_workers)
    products, met = np.append(products.sum(), products), np.append(met.sum(), met)
    return products / np.where(met, met, np.nan)
