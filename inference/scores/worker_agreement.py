"""Agreement of the workers as people report it, with bootstrap intervals, and what a fit says of the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ...data import AnnotationError, Annotations, Ids, unknown_name
from ...data.agreement import METRICS, VoteAgreement, beyond_chance, class_weights, distances
from ...data.arrays import counts, cross_counts
from ...data.cards import never_raising
from ...data.columns import type_hint
from ...data.description import count_text
from ...data.errors import check_name
from ...data.exports.reading import read_if_needed
from ...data.id_text import listing, name_quoted, name_text
from ...data.questions import QUESTION, unknown_question
from ..fitted.error_correlation import error_correlation
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL, checked_tail, known_quantiles
from ..fitted.posterior import Posterior, fitted_of
from ..fitted.replicated_annotations import posterior_predictive

DRAWS = (200, 1000)  # of the bootstrap, at the least and at the most
NUMBERS = 3e7  # annotations in all of these draws, about
CELLS = 4e6  # numbers in memory at a time, about
GROUPS = 2000  # of tasks that are drawn together where there are more: their number leaves 1.6 % of a width uncertain
MOST_PAIRS = 1000  # pairs of workers, those with the most tasks in common
REPLICATES = 50  # of a fit's draws, at the most
MISLEADS = 0.2  # difference of kappa to that of even classes from which it is said
MODERATE = 0.4  # kappa of even classes from which it is said: moderate agreement of Landis & Koch 1977


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """Coefficients of agreement, by :func:`agreement`. All frames have ``low`` and ``high`` of the bootstrap.

    Attributes:
        table: by coefficient ``estimate``, ``low``, ``high``; with a fit also ``even_classes``, the coefficient of the
            same workers if each class were as common as the others, and ``expected``, ``expected_low`` and
            ``expected_high``, those of annotations that the fitted story would write again.
        by_class: by class, of several questions by question and class, its ``share`` of the annotations, ``specific``
            agreement (the probability that a second annotation is of the class where one is), and ``alpha`` of the
            class against the rest.
        by_worker: by worker the number of ``tasks`` shared with others, ``agreement`` with another worker, and
            ``kappa`` with the others; empty where no worker is named.
        pairs: by pair of workers the number of ``tasks`` in common and Cohen's ``kappa``: of the 1,000 pairs with the
            most tasks in common.
        by_group: by group of tasks and coefficient, as in `table`: by question, or as ``by`` says; else empty.
        metric: how far apart two classes are: a name, or that of the labels' kind.
        interval: mass of the intervals.
        n_tasks: tasks with two annotations or more.
        n_effective: like how many independent workers the crowd counts, by the fit; None without.
    """

    table: pd.DataFrame
    by_class: pd.DataFrame
    by_worker: pd.DataFrame
    pairs: pd.DataFrame
    by_group: pd.DataFrame
    metric: str
    interval: float
    n_tasks: int
    n_effective: float | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return all figures as one frame.

        Columns: of ("crowd", "class", "worker", "pair", "group"), name, quantity, estimate, low, high.
        """
        crowd = self.table[["estimate", "low", "high"]].rename_axis("quantity").reset_index()
        parts = [crowd.assign(of="crowd", name="")]
        for of, frame in (("class", self.by_class), ("worker", self.by_worker), ("pair", self.pairs)):
            for quantity in (name.removesuffix("_low") for name in frame.columns if name.endswith("_low")):
                values = frame[[quantity, f"{quantity}_low", f"{quantity}_high"]].set_axis(
                    ["estimate", "low", "high"], axis=1
                )
                names = [" & ".join(map(str, key)) if of == "pair" else _one_name(key) for key in frame.index]
                parts.append(values.assign(of=of, name=names, quantity=quantity).reset_index(drop=True))
        if len(self.by_group):
            groups = self.by_group.reset_index().rename(columns={"group": "name", "coefficient": "quantity"})
            parts.append(groups.assign(of="group"))
        return pd.concat(parts, ignore_index=True)[["of", "name", "quantity", "estimate", "low", "high"]]

    @property
    def misleads(self) -> bool:
        """True where the same workers would have a kappa of .4 or more if classes were even, and .2 more than it is."""
        if "even_classes" not in self.table:
            return False
        kappa = self.table.loc["fleiss_kappa"]
        even = kappa["even_classes"]
        return bool(even >= MODERATE and even - kappa["estimate"] >= MISLEADS)

    def __str__(self) -> str:
        rows = {str(name): _text(row) for name, row in self.table.iterrows()}
        within = ", means over the questions" if self.by_class.index.nlevels > 1 else ""
        lines = [
            f"Agreement on {count_text(self.n_tasks, 'task')} with two annotations or more ({self.metric} classes, "
            f"{self.interval:.0%} intervals by task{within}): two annotations of a task agree by {rows['observed']}"
        ]
        lines += [f"{NAMES[name]}: {text}" for name, text in rows.items() if name != "observed"]
        if self.n_effective is not None:
            lines.append(f"by the fit its workers count like {self.n_effective:.1f} independent ones")
        if self.misleads:
            kappa, share = self.table.loc["fleiss_kappa"], self.by_class["share"]
            lines.append(
                f"kappa misleads here: {share.max():.0%} of the annotations are {name_quoted(share.idxmax())}, so that "
                f"chance alone agrees often; if the classes were even, the same workers would have "
                f"{kappa['even_classes']:.2f} in the place of {kappa['estimate']:.2f}. Look at the agreement by class, "
                "and at AC1"
            )
        return "\n".join(lines)

    __repr__ = __str__

    @never_raising
    def _repr_html_(self) -> str:
        return self.table.rename(index=NAMES).style.format(precision=3, na_rep="–").to_html()


NAMES = {
    "observed": "observed agreement",
    "alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa, mean over pairs",
    "gwet_ac": "Gwet's AC",
}

BY_VOTES = ["observed", "alpha", "fleiss_kappa", "gwet_ac"]  # in the order of their figures, before Cohen's kappa
PAIR_MEAN = (len(BY_VOTES),)  # the place of Cohen's kappa


def agreement(
    annotations: Annotations | Any,
    fit: Posterior | Fitted | None = None,
    *,
    metric: str | None = None,
    by: Mapping[Any, Any] | pd.Series | None = None,
    workers: Iterable[Hashable] | None = None,
    interval: float = INTERVAL,
    draws: int | None = None,
    seed: int = 0,
) -> Agreement:
    r"""Return coefficients of the workers' agreement with bootstrap intervals, and what a fit says beside them.

    Krippendorff's alpha, Fleiss' kappa, the mean of Cohen's kappas over pairs of workers (Light 1971), and Gwet's AC1,
    which is AC2 where classes are partly alike. Abstentions are missing. Alpha leaves out tasks with one annotation;
    Fleiss' kappa and AC count them for the classes' shares alone; a pair's kappa is of the tasks that both annotated,
    where repeated annotations of a worker share the place of one. A worker's kappa is that of the worker and any other
    worker of the same task (Schouten 1982). Where workers are not named, there are none by worker or pair.

    Where there are several questions each has the coefficients of its classes and of its kind, and the agreement by
    chance of its own shares: over all questions together, shares that differ from question to question would pass for
    agreement. The crowd's, and those of a worker and a pair, are their means, in which a question counts as often as it
    has tasks with two annotations; so are the bounds of their intervals, which are wider than those of independent
    questions.

    Intervals are quantiles over resamples of the tasks with replacement: how far other tasks of the same kind would
    give other figures. More than 2,000 tasks are drawn in 2,000 random groups, which scatter as tasks alone do. The
    mean of Cohen's kappas has the basic bootstrap interval (Davison & Hinkley 1997, section 5.2): the kappa of a pair
    with few tasks in common is too small in a resample, as it is in the annotations.

    Args:
        annotations: of any kind of label; or a table or a path, of which :func:`.read` makes such.
        fit: a fit of them. It gives ``even_classes``: tasks are weighed by their label probabilities such that each
            class weighs as much; and, of one story, ``expected``: the coefficients of up to 50 replicates of the
            annotations (posterior predictive).
        metric: how far apart classes are: ``"nominal"``, ``"ordinal"`` (alpha by mean ranks, the others by Gwet's
            ordinal weights), ``"interval"`` (quadratic weights, with positions of the classes for numbers); by default
            as the kind of the labels says: 0 or 1, and for ordered classes the interval metric.
        by: group of each task: a mapping or series by task; tasks that are not in it, or whose group is missing (None,
            NaN), are in no group. By default the questions, where there are several.
        workers: names of two workers or more, whose annotations alone are looked at; a name may be given as text. By
            default all. A fit's label probabilities are still those by all workers, and nothing is said of like how
            many independent workers they count.
        interval: mass of the intervals, between 0 and 1.
        draws: resamples; by default 1,000, and down to 200 for many annotations.
        seed: of the resamples and replicates.

    Raises:
        TypeError: `annotations`, `by` or `workers` are something else.
        AnnotationError: no task has two annotations, `by` names an unknown task, `workers` fewer than two workers, or
            the annotations name none.
        UnknownNameError: there is no such metric, or no such worker.
        ValueError: `interval` is not between 0 and 1, or `draws` is below 1.

    Source:
        Krippendorff 2011; Fleiss 1971; Cohen 1968, "Weighted kappa"; Light 1971; Gwet 2008, 2014; Schouten 1982.

    Examples:
        >>> import crowdppl as cp
        >>> cp.agreement(cp.load_dataset("anesthesia")).table["estimate"].round(3).to_dict()["alpha"]
        0.583
    """
    annotations = read_if_needed(annotations)
    if not isinstance(annotations, Annotations):
        raise TypeError(f"annotations are needed, got a {type(annotations).__name__}")
    tail = checked_tail(interval)
    if draws is not None and draws < 1:
        raise ValueError(f"draws={draws} must be at least 1")
    if metric is not None:
        check_name("metric", metric, METRICS)
    if not isinstance(by, Mapping | pd.Series | None):
        raise TypeError(
            f"by={by!r}: a mapping or a series by task is needed, which says the group of each; by_worker and pairs of "
            "the result are there without it"
        )
    _groups(annotations, by)
    group = None if by is None else dict(by.items())
    said = None if fit is None else _OfFit.of(annotations, fit, seed)
    if workers is not None:
        annotations = _of_workers(annotations, workers)
        said = None if said is None else said.of_workers(annotations.workers)
    asked: list[Any] = list(annotations.questions) or [None]
    parts: dict[Any, Agreement] = {}
    for question in asked:
        part = _Part.of(annotations, question, group)
        if (part.annotations.votes().sum(1) >= 2).any():
            parts[question] = _within(part, said, metric, (interval, tail), draws, seed)
    if not parts:
        raise AnnotationError("no task has two annotations, so that there is no agreement to measure")
    return parts[None] if asked == [None] else _mean_of(parts, by_question=group is None)


def _of_workers(annotations: Annotations, workers: Iterable[Hashable]) -> Annotations:
    """Return the annotations of some workers alone, on the same tasks.

    Raises:
        AnnotationError: no worker is named, or fewer than two are asked for.
        TypeError: `workers` is one text.
        UnknownNameError: there is no such worker.
    """
    if isinstance(workers, str) or not isinstance(workers, Iterable):
        raise TypeError(f"workers={workers!r}: a list of names is needed, such as workers=['ann', 'bob']")
    if not annotations.named:
        raise AnnotationError("the annotations name no workers, so that none can be chosen")
    one_each = annotations.across_questions()
    names = list(one_each.workers)
    by_text = {str(name): name for name in names}
    asked = [name if name in names else by_text.get(str(name), name) for name in workers]
    if strange := [name for name in asked if name not in names]:
        raise unknown_name("worker", strange[0], names)
    chosen = [name for name in names if name in asked]
    if len(chosen) < 2:
        raise AnnotationError(
            f"agreement is of two workers or more, and {listing(chosen, 1) or 'none'} alone is chosen; there are "
            f"{listing(names, 8)}"
        )
    place = np.full(len(names), -1, np.int32)
    place[[names.index(name) for name in chosen]] = np.arange(len(chosen))
    kept = one_each.rows(place[np.asarray(one_each.worker)] >= 0)
    return kept.replace(
        worker=place[np.asarray(kept.worker)], workers=Ids(chosen), worker_features=None, category_counts=None
    )


@dataclass(frozen=True)
class _Part:
    """The annotations of one question, or all where there are none, and which tasks and classes of all they have."""

    annotations: Annotations
    tasks: np.ndarray
    classes: np.ndarray
    group: dict[Any, Any] | None

    @classmethod
    def of(cls, annotations: Annotations, question: Any, group: dict[Any, Any] | None) -> _Part:
        """Return the part of a question, of None all."""
        if question is None:
            everything = np.ones(annotations.n_tasks, bool)
            return cls(annotations.of_classes(), everything, np.arange(annotations.n_classes), group)
        place = annotations.questions.index_of([question])[0]
        own = None if group is None else {unit[0]: name for unit, name in group.items() if unit[1] == question}
        chosen = annotations.question_classes(question)[0]
        tasks = np.asarray(annotations.question) == place
        return cls(annotations.of_question(question).of_classes(), tasks, chosen, own)


def _within(
    part: _Part, said: _OfFit | None, metric: str | None, interval: tuple[float, float], draws: int | None, seed: int
) -> Agreement:
    """Return the agreement of a part, whose classes and chance are its own."""
    of, tail = part.annotations, interval[1]
    distance = distances(of.n_classes, of.kind, metric)
    votes = VoteAgreement(of.votes(), distance, ranks=metric == "ordinal")
    n_draws = draws or int(np.clip(NUMBERS / max(of.n_rows, of.n_tasks), *DRAWS))
    rng = np.random.default_rng(seed)
    rows = _votes_of_workers(of) if of.named else None
    pairs = None if rows is None else _Pairs.of_most(rows, of, distance)

    def of_crowd(sums: Sequence[Any]) -> np.ndarray:
        """Return the coefficients, and the mean of Cohen's kappas, of sums of votes and of pairs: (B, 5)."""
        kappas = np.full((len(sums[0]), 1), np.nan) if pairs is None else pairs.kappas(sums[1])
        return np.concatenate([votes.coefficients(sums[0]), _mean(kappas)[:, None]], 1)

    def sums_of_crowd(weights: Any) -> list[Any]:
        return [votes.sums(weights)] + ([] if pairs is None else [pairs.sums(weights)])

    def summarised(
        figures: Callable[[Sequence[Any]], np.ndarray], sums: Sequence[Any], basic: tuple[int, ...] = ()
    ) -> np.ndarray:
        """Return estimate, low and high of figures of sums over tasks: shape (3, C).

        Args:
            figures: of sums of each resample, (B, T) each, (B, C).
            sums: over each group of tasks, (G, T) each.
            basic: the columns that have basic intervals; the others have quantiles.
        """
        n = sums[0].shape[0]
        estimate = figures([np.ones((1, n)) @ by_group for by_group in sums])[0]
        resamples = _resamples(n, n_draws, seed)
        n_blocks = 1 + n_draws * max(by_group.shape[1] for by_group in sums) // int(CELLS)
        blocks = np.array_split(resamples, min(n_blocks, n_draws))
        drawn = np.concatenate([figures([weights @ by_group for by_group in sums]) for weights in blocks])
        ends = known_quantiles(drawn, [tail, 1 - tail])
        for at in basic:
            ends[:, at] = np.minimum(2 * estimate[at] - ends[::-1, at], 1.0)
        return np.stack([estimate, np.fmin(ends[0], estimate), np.fmax(ends[1], estimate)])

    together = _drawn_together(np.ones(of.n_tasks, bool), rng)
    sums = sums_of_crowd(together)
    names = [*BY_VOTES, "cohen_kappa"]
    ends = ["estimate", "low", "high"]
    table = pd.DataFrame(summarised(of_crowd, sums, PAIR_MEAN).T, pd.Index(names, name="coefficient"), ends)
    table = table.loc[[name for name in NAMES if name in names]]
    by_class = summarised(lambda sums: votes.by_class(sums[0]), sums[:1])
    workers, pair_frame = pd.DataFrame(), pd.DataFrame()
    if rows is not None and pairs is not None:
        others = _Others(rows, of, class_weights(distance))
        found = summarised(lambda sums: others.figures(sums[0]), [others.sums(together)])
        workers = _frame(["agreement", "kappa"], found, of.workers.to_index("worker"))
        workers.insert(0, "tasks", others.tasks)
        index = pd.MultiIndex.from_arrays(
            [of.workers.to_index()[pairs.first], of.workers.to_index()[pairs.second]], names=["worker", "other"]
        )
        pair_frame = _frame(["kappa"], summarised(lambda sums: pairs.kappas(sums[0]), sums[1:]), index)
        pair_frame.insert(0, "tasks", pairs.tasks)
    groups = {
        name: pd.DataFrame(
            summarised(of_crowd, sums_of_crowd(_drawn_together(tasks, rng)), PAIR_MEAN).T,
            pd.Index(names, name="coefficient"),
            ends,
        )
        for name, tasks in _groups(of, part.group).items()
    }
    return Agreement(
        table if said is None else said.beside(table, part, votes, lambda weights: of_crowd(sums_of_crowd(weights))[0]),
        _frame(["share", "specific", "alpha"], by_class, of.classes.to_index("class")),
        workers,
        pair_frame,
        pd.concat(groups, names=["group"]) if groups else pd.DataFrame(),
        metric or _name_of(distance, of.kind.name),
        interval[0],
        int(votes.by_task[1].sum()),
        None if said is None else said.n_effective,
    )


def _mean_of(parts: dict[Any, Agreement], *, by_question: bool) -> Agreement:
    """Return the means of agreements within questions, by their tasks, and the classes of each question.

    Args:
        parts: by question.
        by_question: whether the groups are the questions; else they are those of the parts.
    """
    found, ends = list(parts.values()), ["estimate", "low", "high"]
    of_tasks = [float(part.n_tasks) for part in found]
    metrics = {part.metric for part in found}
    if by_question:
        groups = pd.concat({name: part.table[ends] for name, part in parts.items()}, names=["group"])
    else:
        groups = _means([part.by_group for part in found], of_tasks)
    return Agreement(
        _means([part.table for part in found], of_tasks),
        pd.concat({name: part.by_class for name, part in parts.items()}, names=[QUESTION]),
        _means([part.by_worker for part in found], None),
        _means([part.pairs for part in found], None),
        groups,
        metrics.pop() if len(metrics) == 1 else "each question's own",
        found[0].interval,
        int(sum(of_tasks)),
        found[0].n_effective,
    )


def _means(frames: list[pd.DataFrame], weights: list[float] | None) -> pd.DataFrame:
    """Return the means of frames, row by row where a row has a value, in the order in which rows come.

    Args:
        frames: of numbers.
        weights: of the frames; None for their column tasks, which is added up.
    """
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame()
    values = pd.concat(frames).astype(float)
    weight = values["tasks"] if weights is None else np.repeat(weights, [len(frame) for frame in frames])
    known = values.notna().mul(np.asarray(weight, float), axis=0)
    levels = list(range(values.index.nlevels))
    sums, total = (each.groupby(level=levels, sort=False).sum() for each in (values.fillna(0.0) * known, known))
    means = sums / total.where(total > 0)
    if weights is None:
        means["tasks"] = values["tasks"].groupby(level=levels, sort=False).sum().astype(int)
    return means


def _name_of(distance: np.ndarray, default: str) -> str:
    """Return the name of the metric that has these distances of two classes, or the default."""
    names = (name for name in METRICS if np.array_equal(distances(len(distance), metric=name), distance))
    return next(names, default)


def _drawn_together(tasks: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Return which of the chosen tasks, (N,) bool, are drawn together: (G, N), each alone where they are few enough.

    Groups at random have the variance of tasks: sums over them scatter as sums over tasks drawn one by one do.
    """
    places = np.flatnonzero(tasks)
    group = np.arange(len(places)) if len(places) <= GROUPS else rng.permutation(len(places)) % GROUPS
    return sparse.csr_array((np.ones(len(places)), (group, places)), (min(len(places), GROUPS), len(tasks)))


def _resamples(n: int, n_draws: int, seed: int) -> np.ndarray:
    """Return how often each resample has each of n groups, (B, G)."""
    drawn = np.random.default_rng(seed).integers(n, size=(n_draws, n)) + n * np.arange(n_draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=n_draws * n).reshape(n_draws, n).astype(np.float64)


@dataclass(frozen=True)
class _OfFit:
    """A fit's part in agreement: label probabilities, replicated annotations, and an effective number of workers.

    Args:
        annotations: those that were fitted.
        posterior: of the labels, (N, K).
        replicates: labels of the rows as the fitted story would write them again, (R, A); None of an average.
        n_effective: like how many independent workers they count; None where nothing says so.
    """

    annotations: Annotations
    posterior: np.ndarray
    replicates: np.ndarray | None
    n_effective: float | None

    @classmethod
    def of(cls, annotations: Annotations, fit: Posterior | Fitted, seed: int) -> _OfFit:
        """Return what a fit says.

        Raises:
            AnnotationError: it is of other tasks.
        """
        if fit.annotations.n_tasks != annotations.n_tasks or list(fit.annotations.tasks) != list(annotations.tasks):
            raise AnnotationError("the fit is of other tasks than the annotations; give a fit of these annotations")
        n_effective = None
        if annotations.named:
            with suppress(AnnotationError):  # nobody errs, or nobody shares a task
                n_effective = error_correlation(fit, seed=seed).n_effective
        posterior = np.asarray(fit.posterior, np.float64)
        if isinstance(fit, Posterior) and fit.only is None:
            return cls(fit.annotations, posterior, None, n_effective)
        fitted = fitted_of(fit)
        around = fitted.with_uncertainty
        some = around.thinned(min(REPLICATES, int(np.prod(around.shape))))
        labels = posterior_predictive(some, seed=seed)["annotation"].to_numpy()[0].astype(np.int32)
        return cls(fitted.annotations, posterior, labels, n_effective)

    def of_workers(self, workers: Ids) -> _OfFit:
        """Return what the fit says where some workers' annotations alone are looked at."""
        names = self.annotations.across_questions()
        kept = np.isin(np.asarray(names.worker), names.workers.index_of(workers))
        replicates = None if self.replicates is None else self.replicates[:, kept]
        return replace(self, annotations=self.annotations.rows(kept), replicates=replicates, n_effective=None)

    def beside(
        self, table: pd.DataFrame, part: _Part, votes: VoteAgreement, coefficients: Callable[[np.ndarray], np.ndarray]
    ) -> pd.DataFrame:
        """Return the table of a part with the coefficients of even classes, and those that the story expects."""
        posterior = self.posterior[part.tasks][:, part.classes]
        mass = posterior.sum(0)
        kept = mass >= 1  # of a class that hardly any task has, little is known
        even = (posterior[:, kept] / mass[kept]).sum(1) * len(posterior) / max(kept.sum(), 1)
        table = table.assign(even_classes=pd.Series(coefficients(even[None]), [*BY_VOTES, "cohen_kappa"]))
        if self.replicates is None:
            return table
        ones, again = np.ones((1, len(posterior))), []
        for label in self.replicates:
            new = self.annotations.replace(label=label).votes()[part.tasks][:, part.classes]
            replicate = VoteAgreement(new, votes.distance, votes.ranks)
            again.append(replicate.coefficients(replicate.sums(ones))[0])
        low, high = known_quantiles(np.array(again), [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
        columns = {"expected": np.nanmean(again, 0), "expected_low": low, "expected_high": high}
        return table.assign(**{name: pd.Series(values, BY_VOTES) for name, values in columns.items()})


def _groups(annotations: Annotations, by: Mapping[Any, Any] | pd.Series | None) -> dict[Any, np.ndarray]:
    """Return which tasks each group has, (N,) bool, in the order of the groups."""
    if by is None:
        return {}
    named = [(task, name) for task, name in by.items() if not pd.isna(name)]
    group, tasks = dict(named), annotations.tasks
    for (task, name), place in zip(named, tasks.index_of([task for task, _ in named]), strict=True):
        if place < 0:
            pairs = unknown_question(task, tasks)
            raise AnnotationError(f"by= has the task {task!r}, which has no annotations{type_hint(task, tasks)}{pairs}")
        if group[task] != name:
            raise AnnotationError(f"by= has the task {task!r} in two groups, {name!r} and {group[task]!r}; keep one")
    of_task = [group.get(task) for task in tasks]
    return {name: np.array([one == name for one in of_task]) for name in dict.fromkeys(group.values())}


def _frame(names: list[str], values: np.ndarray, index: pd.Index) -> pd.DataFrame:
    """Return (3, C) values as a frame with columns ``name``, ``name_low`` and ``name_high`` for each name."""
    blocks = values.reshape(3, len(names), len(index))
    ends = ("", "_low", "_high")
    return pd.DataFrame(
        {f"{name}{end}": blocks[i, j] for j, name in enumerate(names) for i, end in enumerate(ends)}, index
    )


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of each row over its numbers, (B,): NaN where it has none."""
    known = ~np.isnan(values)
    n = known.sum(1)
    return np.where(n > 0, np.where(known, values, 0.0).sum(1) / np.maximum(n, 1), np.nan)


@dataclass(frozen=True)
class _Votes:
    """Of each worker on each task that the worker annotated, P pairs by task: the share of each class, (P, K)."""

    task: np.ndarray
    worker: np.ndarray
    share: np.ndarray


def _votes_of_workers(annotations: Annotations) -> _Votes:
    """Return the shares of classes by worker and task; repeated annotations have one place together."""
    pair = np.asarray(annotations.task, np.int64) * annotations.n_workers + np.asarray(annotations.worker)
    pair, place = np.unique(pair, return_inverse=True)
    votes = cross_counts((len(pair), annotations.n_classes), place, annotations.label, weight=counts(annotations))
    share = votes / votes.sum(1, keepdims=True)
    return _Votes(pair // annotations.n_workers, pair % annotations.n_workers, share)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of workers, and by task what each adds to its pair's joint counts: sparse, (N, pairs K K)."""

    first: np.ndarray
    second: np.ndarray
    tasks: np.ndarray
    joint: sparse.csr_array
    weights: np.ndarray

    @classmethod
    def of_most(cls, votes: _Votes, annotations: Annotations, distance: np.ndarray) -> _Pairs:
        """Return the pairs of workers with the most tasks in common."""
        n_workers, n_tasks, k = annotations.n_workers, annotations.n_tasks, annotations.n_classes
        size = np.bincount(votes.task, minlength=n_tasks)
        start = np.cumsum(size) - size
        ahead = size[votes.task] - 1 - (np.arange(len(votes.task)) - start[votes.task])
        one = np.repeat(np.arange(len(votes.task)), ahead)
        other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(ahead) - ahead, ahead)
        key = votes.worker[one] * n_workers + votes.worker[other]
        keys, n_common = np.unique(key, return_counts=True)
        most = np.sort(np.argsort(-n_common, kind="stable")[:MOST_PAIRS])
        keys, n_common = keys[most], n_common[most]
        place = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
        is_kept = keys[place] == key if len(keys) else np.zeros(0, bool)
        one, other, place = one[is_kept], other[is_kept], place[is_kept]
        joint = (votes.share[one][:, :, None] * votes.share[other][:, None, :]).reshape(len(one), k * k)
        column = place[:, None] * k * k + np.arange(k * k)
        row = np.broadcast_to(votes.task[one][:, None], column.shape)
        is_some = joint > 0
        found = sparse.csr_array((joint[is_some], (row[is_some], column[is_some])), (n_tasks, len(keys) * k * k))
        return cls(keys // n_workers, keys % n_workers, n_common, found, class_weights(distance))

    def sums(self, weights: Any) -> Any:
        """Return the joint counts over weighted tasks, (B, pairs K K)."""
        return _by_column(weights @ self.joint)

    def kappas(self, sums: np.ndarray) -> np.ndarray:
        r"""Return Cohen's weighted kappa of each pair, (B, pairs), of joint counts.

        With the joint shares :math:`p_{kl}` of two workers,
        :math:`p_o = \sum w_{kl} p_{kl}` and :math:`p_e = \sum w_{kl} p_{k\cdot} p_{\cdot l}` (Cohen 1968).
        """
        k = len(self.weights)
        table = sums.reshape(len(sums), len(self.first), k, k)
        first, second = np.einsum("bpkl->bpk", table), np.einsum("bpkl->bpl", table)
        total = np.einsum("bpk->bp", first)
        total = np.where(total > 0, total, np.nan)
        observed = np.einsum("bpkl,kl->bp", table, self.weights) / total
        by_chance = np.einsum("bpl,bpl->bp", first @ self.weights, second) / total**2
        return beyond_chance(observed, by_chance)


class _Others:
    """Agreement of each worker with any other worker of the same task."""

    def __init__(self, votes: _Votes, annotations: Annotations, weights: np.ndarray) -> None:
        n_workers, n_tasks, k = annotations.n_workers, annotations.n_tasks, annotations.n_classes
        n = np.bincount(votes.task, minlength=n_tasks)
        total = np.stack([np.bincount(votes.task, share, n_tasks) for share in votes.share.T], 1)
        kept = n[votes.task] > 1
        task, worker, own = votes.task[kept], votes.worker[kept], votes.share[kept]
        others = (total[task] - own) / (n[task] - 1)[:, None]
        agree = ((own @ weights) * others).sum(1)
        self.weights, self.n_workers = weights, n_workers
        self.tasks = np.bincount(worker, minlength=n_workers)
        values = np.concatenate([np.ones((len(task), 1)), agree[:, None], own, others], 1)
        row, place = np.nonzero(values)
        column = worker[row] * (2 * k + 2) + place
        self.by_task = sparse.csr_array(
            (values[row, place], (task[row], column)), shape=(n_tasks, n_workers * (2 * k + 2))
        )

    def sums(self, weights: Any) -> Any:
        """Return the sums over weighted tasks of which a worker's figures are made, (B, J (2 K + 2))."""
        return _by_column(weights @ self.by_task)

    def figures(self, sums: np.ndarray) -> np.ndarray:
        """Return the workers' agreement with another worker, and the same beyond chance, (B, 2 J)."""
        k = len(self.weights)
        n, agree, own, others = np.split(sums.reshape(len(sums), self.n_workers, -1), [1, 2, 2 + k], axis=2)
        n = np.where(n > 0, n, np.nan)[:, :, 0]
        observed = agree[:, :, 0] / n
        by_chance = ((own @ self.weights) * others).sum(2) / n**2
        return np.concatenate([observed, beyond_chance(observed, by_chance)], 1)


def _by_column(sums: Any) -> Any:
    """Return sums as they are, or, where they are sparse, by column: as resamples of them are made quickest."""
    return sums.tocsc() if sparse.issparse(sums) else sums


def _one_name(key: Any) -> Any:
    return name_text(key) if isinstance(key, tuple) else key


def _text(row: pd.Series) -> str:
    if np.isnan(row["estimate"]):
        return "not defined"
    to = " to " if row["low"] < 0 else "–"
    return f"{row['estimate']:.3f} ({row['low']:.3f}{to}{row['high']:.3f})"
