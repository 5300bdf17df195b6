"""Labels and workers of a crowd by one story, by an average of several, or by a rule: the argument of every view."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.comparisons import better_items
from ...data.description import count_text
from ..sources.on_disk import Files, OnDiskError
from ..sources.partitioned import Partitioned
from .by_batch import label_partitions
from .by_rule import ByRule
from .confusion_scores import entropy
from .decisions import decide
from .fitted import CELLS, Fitted, n_cells
from .gold_mix import Mix, mixed, shares_of_votes
from .intervals import of_draws
from .misled import misled_share, told_label

MIXTURE_DRAWS = (50, 1000)  # about how many draws the mixture of the stories' confusion matrices has
SHOWN_WEIGHT = 0.005  # smaller weights are left out of texts
HALF = 10  # annotations of a task at which the votes have half of their share


class OneStoryError(AttributeError, TypeError):
    """A view of one story's parameters is asked of an average, or of labels without a likelihood.

    It is an ``AttributeError`` where the view is a property, so that ``hasattr`` answers, and a ``TypeError``
    where it is a function.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    r"""Probabilities of the true labels, and the workers' confusion matrices, by members that are averaged.

    .. math:: P(z_i = k) = \sum_m w_m P_m(z_i = k \mid y)

    With a share :math:`v` of votes it is, with :math:`n_{ik}` annotations of task i that are k, :math:`n_i` in all,

    .. math:: (1 - v_i) P(z_i = k) + v_i \, \frac{n_{ik} + P(z_i = k)}{n_i + 1}, \qquad v_i = \frac{v}{1 + n_i / 10}

    since the votes' shares of a task with many annotations tell how good the workers are, and not how sure its label
    is; but of tasks of which something is known from elsewhere, such as gold labels. Where `misled` is not 0,
    :math:`P_m` allows for tasks that mislead the whole crowd (:mod:`.misled`). Workers are judged without the votes'
    share, which takes what they disagree in for doubt of the label: it keeps labels from being too sure, and draws each
    worker to how often he agrees with the others.

    With a `power` it is a mix that gold labels taught, the votes one of its components (:mod:`.gold_mix`).

    A single member without a share of votes or of misled tasks is a fit of one story, and has the views of its
    parameters (:attr:`fitted`). A rule has no members.

    Args:
        members: the stories at draws of their parameters, by name; empty where the labels are by a rule.
        weights: of each member, by name; they sum to 1.
        comparison: the comparison that the weights come from, as :func:`.compare` returns it; None where they were
            given.
        left_out: stories that were asked for and do not fit these data, by name, with the reason.
        votes: the share of the votes of a task without annotations, from 0 to below 1; it falls with their number.
        misled: the share of misled tasks that is expected, from 0 to below 1; None for what is usual (:mod:`.misled`),
            and more where workers are hardly better than chance (:mod:`.reversal`).
        rule: labels without a likelihood; None where there are members.
        power: of the label probabilities of each member and of the votes, in a mix that gold labels taught; None for an
            average of the probabilities themselves.
    """

    members: Mapping[str, Fitted]
    weights: pd.Series
    comparison: pd.DataFrame | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    votes: float = 0.0
    misled: float | None = 0.0
    rule: ByRule | None = None
    power: float | None = None

    @classmethod
    def of(cls, source: "Fitted | ByRule | Posterior") -> Self:
        """The posterior of one story, of a rule, or of another posterior."""
        if isinstance(source, Posterior):
            return cls(**{part.name: getattr(source, part.name) for part in fields(source)})
        members = {source.story: source} if isinstance(source, Fitted) else {}
        rule = source if isinstance(source, ByRule) else None
        return cls(members, equal_weights(members), rule=rule)

    @property
    def only(self) -> Fitted | None:
        """The story whose labels these are, unchanged; None of an average, and of a rule."""
        if len(self.members) != 1 or self.votes != 0 or self.misled != 0 or self.power is not None:
            return None
        return next(iter(self.members.values()))

    @property
    def fitted(self) -> Fitted:
        """The one story at draws of its parameters.

        Raises:
            OneStoryError: the labels are an average, or without a likelihood.
        """
        if self.only is not None:
            return self.only
        beside = " and the votes" if self.votes else ""
        raise OneStoryError(
            f"a fit of one story by cp.fit is needed, got an average of {count_text(len(self.stories), 'fit')}{beside};"
            f" give one of its fits, such as fit.fits[{next(iter(self.stories))!r}]"
        )

    @property
    def stories(self) -> Mapping[str, Fitted]:
        """The members, of which there is one at least.

        Raises:
            OneStoryError: the labels are without a likelihood.
        """
        if self.rule is not None:
            raise OneStoryError(
                f"a fit of a story by cp.fit is needed, got labels by {self.rule.name}, which has no likelihood; fit a "
                "story, such as cp.fit('dawid_skene', annotations)"
            )
        return self.members

    @property
    def is_average(self) -> bool:
        """True where the labels are averaged over stories, or a story's labels with the votes."""
        return self.rule is None and self.only is None

    @property
    def heaviest(self) -> tuple[str, Fitted]:
        """Name and fit of the largest weight; of several the first.

        Raises:
            OneStoryError: the labels are without a likelihood.
        """
        stories = self.stories
        name = str(self.weights.idxmax())
        return name, stories[name]

    @property
    def weighty(self) -> list[tuple[Fitted, float]]:
        """The members that have weight, each with it.

        Raises:
            OneStoryError: the labels are without a likelihood.
        """
        return [(fitted, float(self.weights[name])) for name, fitted in self.stories.items() if self.weights[name] > 0]

    @property
    def annotations(self) -> Annotations:
        """The data, with the evidence that was used.

        Raises:
            OnDiskError: they are not in memory.
        """
        return next(iter(self.members.values())).annotations if self.rule is None else self.rule.annotations

    @property
    def given(self) -> Annotations:
        """The annotations as they were given, of which views of the data are: those that do not count in the fit, too.

        Raises:
            OnDiskError: they are not in memory.
        """
        return next(iter(self.members.values())).given if self.rule is None else self.rule.given

    @property
    def source(self) -> Annotations | Files:
        """The annotations in memory, or the files that have them."""
        return next(iter(self.members.values())).source if self.rule is None else self.rule.annotations

    @property
    def on_disk(self) -> bool:
        """True where the annotations stay on the disk: labels come chunk by chunk, in files."""
        return isinstance(self.source, Files)

    @property
    def in_memory(self) -> "Posterior | None":
        """Itself, or of files what :attr:`.Fitted.in_memory` says of them."""
        if not self.on_disk:
            return self
        fitted = self.fitted.in_memory
        return None if fitted is None else Posterior.of(fitted)

    @property
    def story(self) -> str:
        """The story's or the rule's name; of an average the stories that carry weight, the heaviest first."""
        if self.rule is not None:
            return self.rule.name
        if self.only is not None:
            return self.only.story
        return " + ".join(self.weights[self.weights > SHOWN_WEIGHT].sort_values(ascending=False).index)

    @property
    def has_draws(self) -> bool:
        """True where all members with weight have draws; EM, a guide that is one point, and rules have none."""
        parts = [fitted for fitted, _ in self.weighty] if self.rule is None else [self.rule]
        return all(part.has_draws for part in parts)

    @property
    def shares_errors(self) -> bool:
        """True where a story with weight lets workers err together."""
        return self.rule is None and any(fitted.shares_errors for fitted, _ in self.weighty)

    @cached_property
    def with_uncertainty(self) -> Self:
        """Itself where it has draws; else with draws around its points, or of the confusion matrices by a rule.

        Members without weight, of which no draw counts, stay as they are.
        """
        if self.has_draws:
            return self
        if self.rule is not None:
            return replace(self, rule=self.rule.with_uncertainty)
        drawn = {name: self.members[name].with_uncertainty for name in self.members if self.weights[name] > 0}
        return replace(self, members={**self.members, **drawn})

    @cached_property
    def posterior(self) -> np.ndarray:
        """``P(truth | annotations)``, averaged over the draws and over the members: ``(N, K)``."""
        if self.rule is not None:
            return self.rule.posterior
        if self.only is not None:
            return self.only.posterior
        if self.power is not None:
            return self._of_gold(self.power)
        each = [misled_share(fitted, self.misled).beside(fitted.posterior) for fitted, _ in self.weighty]
        mean: np.ndarray = np.tensordot([weight for _, weight in self.weighty], each, axes=1)
        return mean if self.votes == 0 else _beside_votes(mean, self.annotations, self.votes)

    def _of_gold(self, power: float) -> np.ndarray:
        """The mix that gold labels taught, ``(N, K)``; labels that the fits were told stay as they are."""
        stories = [(fitted.posterior, (1 - self.votes) * weight) for fitted, weight in self.weighty]
        each, weights = zip(*stories, (shares_of_votes(self.annotations), self.votes), strict=True)
        known = told_label(self.annotations)[:, None] >= 0
        return np.where(known, each[0], mixed(np.stack(each), Mix(np.array(weights), power)))

    @property
    def mean_votes(self) -> float:
        """The share of the votes in the label probabilities, its mean over the tasks."""
        return float(_shares_of_votes(self.annotations, self.votes).mean()) if self.votes else 0.0

    @property
    def class_shares(self) -> np.ndarray:
        """The classes' shares of the labels, ``(K,)``."""
        return self.posterior.mean(0) if self.only is None else self.only.class_shares

    @property
    def posterior_of_workers(self) -> np.ndarray:
        """The label probabilities by which workers are judged, ``(N, K)``.

        Those of stories allow for misled tasks in any case, and the votes have no share in them.
        """
        return self.posterior if self.rule is not None else self.allowing_for(self.misled or None).posterior

    def allowing_for(self, misled: float | None) -> Self:
        """The posterior without a share of votes, that allows for another share of misled tasks."""
        return replace(self, misled=misled, votes=0.0, power=None)

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in each draw: ``(chain, draw, J, K, L)``.

        A point is one draw. Those by a rule are counted against its labels. Draws of an average are one chain of the
        mixture of its stories: about a thousand, from each member in proportion to its weight, and fewer, at least 50,
        where they would have more than :data:`.CELLS` numbers. Where a member has no draws, the weighted mean of the
        confusion matrices is the only draw.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        if self.rule is not None:
            return self.rule.confusion_draws
        if self.only is not None:
            return self.only.confusion_draws
        if not self.has_draws:
            mean: np.ndarray = sum(
                weight * fitted.confusion_draws.mean((0, 1), keepdims=True) for fitted, weight in self.weighty
            )
            return mean
        return self.in_draws(lambda fitted: fitted.confusion_draws)

    def in_draws(self, of: Callable[[Fitted], np.ndarray]) -> np.ndarray:
        """Return a quantity in the draws that :attr:`.Posterior.confusion_draws` are of: ``(chain, draw, ...)``.

        Args:
            of: the quantity of a story in each of its draws, ``(chain, draw, ...)``.
        """
        if self.only is not None:
            return of(self.only)
        picked = []
        for fitted, weight in self.weighty:
            draws = of(fitted)
            flat = draws.reshape(-1, *draws.shape[2:])
            n = round(self.n_mixture_draws * weight)
            picked.append(flat[np.linspace(0, len(flat), n, endpoint=False).astype(int)])
        return np.concatenate(picked)[None]

    @property
    def n_mixture_draws(self) -> int:
        """About how many draws the mixture has: a thousand, and fewer where matrices have many cells."""
        return int(np.clip(CELLS / n_cells(self.annotations), *MIXTURE_DRAWS))

    @property
    def probabilities(self) -> pd.DataFrame:
        """``P(truth = class | annotations)``, tasks × classes.

        Those of EM on thin data are averages over random draws, which belong to the places of tasks and workers:
        another seed, or another order of the rows, moves single ones, by .03 to .09 at the most in the crowds of
        ``benchmarks/averaged_labels.py``. The option ``sweeps=0`` has those at the mode, which depend on neither.
        """
        classes = self.annotations.classes.to_index("class")
        return pd.DataFrame(self.posterior, index=self.annotations.tasks.to_index("task"), columns=classes)

    @property
    def labels(self) -> pd.DataFrame:
        """By task: the label (the most probable class; ties: the first), its probability, and the entropy in nats.

        Of comparisons also better: the item that the label left or right stands for, or "tie". Of a fit of a frame of
        Spark, Dask or Ray a frame of that engine with these columns, task, and ``p_<class>``, not computed yet.
        """
        if isinstance(self.source, Partitioned):
            return label_partitions(self.fitted.model, self.source, self.fitted.draws, self.fitted.stored_posterior)
        frame = decide(self.probabilities, kind=self.annotations.kind)[["label", "probability"]]
        sides, items = self.annotations.sides, self.annotations.items
        if sides is not None:
            frame.insert(1, "better", pd.Series(better_items(sides, items, frame["label"]), frame.index, dtype=object))
        return frame.assign(entropy=entropy(np.asarray(self.posterior, dtype=float)))

    @property
    def entropies(self) -> pd.DataFrame:
        """By task the entropy of the label, and vote_entropy, that of the votes' shares (naive soft labels), in nats.

        The votes' is high where workers disagree, the label's where the disagreement is not resolved by who they are. A
        task without annotations has no vote entropy: NaN.
        """
        votes = self.given.votes().astype(float)
        total = votes.sum(-1)
        of_votes = entropy(votes / np.where(total > 0, total, 1.0)[:, None])
        return self.labels[["entropy"]].assign(vote_entropy=np.where(total > 0, of_votes, np.nan))

    @property
    def weights_text(self) -> str:
        """The members that have weight, each with its weight."""
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items() if weight > SHOWN_WEIGHT)


def equal_weights(members: Mapping[str, Any]) -> pd.Series:
    """Equal weights of members, by name, that sum to 1."""
    index = pd.Index(list(members), name="story")
    return pd.Series(np.full(len(index), 1 / max(len(index), 1)), index=index, name="weight")


def fitted_of(source: Fitted | Posterior | Any) -> Fitted:
    """The fitted story that a view is asked about.

    Raises:
        TypeError: `source` is no fit, an average, without a likelihood, or leaves its annotations on the disk.
    """
    return source if isinstance(source, Fitted) else posterior_of(source).fitted


def posterior_of(source: Fitted | Posterior | Any) -> Posterior:
    """The posterior that a view is asked about.

    Raises:
        TypeError: `source` is no fit, or leaves its annotations on the disk.
    """
    if isinstance(source, Fitted):
        source = Posterior.of(source)
    if not isinstance(source, Posterior):
        raise TypeError(f"a fit of one story by cp.fit is needed, got a {type(source).__name__}")
    if source.on_disk:
        raise OnDiskError
    return source


def interval_around(
    source: Posterior | Fitted, estimate: np.ndarray | float, draws: np.ndarray, interval: float
) -> np.ndarray:
    """The interval of an estimate: equal-tailed quantiles of draws of the ``with_uncertainty`` of `source`.

    Where `source` is a point, the interval is widened to hold the estimate. A quantity that is no linear function of
    the parameters differs at the point from its mean over the draws around it: the spammer score of confusion matrices
    that scatter around one is greater than that of the one.

    Args:
        source: a fit or an average, with draws or at a point.
        estimate: the quantity, ``(...)``: at the point, or its mean over the draws.
        draws: the quantity in the draws, ``(chain, draw, ...)``.

    Returns:
        Both ends, ``(2, ...)``.
    """
    return of_draws(draws, interval, None if source.has_draws else estimate)


def _shares_of_votes(annotations: Annotations, share: float) -> np.ndarray:
    """The votes' share in the label probabilities of each task, ``(N,)``."""
    n: np.ndarray = np.asarray(annotations.votes(), dtype=float).sum(1)
    return share / (1 + n / HALF)


def _beside_votes(posterior: np.ndarray, annotations: Annotations, share: float) -> np.ndarray:
    """Label probabilities ``(N, K)`` with a share of the votes.

    The posterior counts to them as one vote more, and as one more for each model that gave probabilities.
    """
    votes, of_votes = np.asarray(annotations.votes(), dtype=float), _shares_of_votes(annotations, share)[:, None]
    extra = 1 + len(annotations.models)  # models that gave probabilities have no vote but in the posterior
    mean = (votes + extra * posterior) / (votes.sum(1, keepdims=True) + extra)
    mixed = (1 - of_votes) * posterior + of_votes * mean
    if annotations.evidence is None:
        return mixed
    known = np.ptp(np.asarray(annotations.evidence), axis=1) > 0
    return np.where(known[:, None], posterior, mixed)
