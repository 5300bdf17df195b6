"""Labels averaged over several stories, with weights by how well each predicts held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.errors import check_name
from ...models.parts.shared_error import families_of
from ..fitted.crowd_trust import crowd_warnings, is_of_crowd
from ..fitted.fitted import CELLS, Fitted, HoldsFitted, Weighted, n_cells
from ..fitted.intervals import INTERVAL
from ..fitted.labelled import interval_around
from ..fitted.misled import checked, misled_share
from ..fitted.realised import n_truths, realised_accuracy, realised_accuracy_draws
from ..fitted.summary import (
    Summary,
    best_and_worst,
    certainty,
    differing,
    gold_accuracy,
    panel,
    positive_class,
    shared_errors,
    sizes,
    suspects,
)
from ..fitted.tasks import averaged_task_scores
from ..fitted.workers import fitted_scores, with_realised_accuracy
from .comparing import by_name, check_same_data, compare

MIXTURE_DRAWS = (50, 1000)  # about how many draws the mixture of the stories' confusion matrices has
SHOWN_WEIGHT = 0.005  # smaller weights are left out of texts


@dataclass(frozen=True, eq=False, repr=False)
class Averaged(Weighted):
    r"""Several fits of the same annotations, averaged: :math:`P(z_i = k) = \sum_m w_m P_m(z_i = k \mid y)`.

    With a share :math:`v` of votes it is, with :math:`n_{ik}` annotations of task i that are k,

    .. math:: (1 - v) P(z_i = k) + v \, \frac{n_{ik} + P(z_i = k)}{\sum_l n_{il} + 1}

    but of tasks of which something is known from elsewhere, such as gold labels. Where `misled` is not 0, :math:`P_m`
    allows for tasks that mislead the whole crowd (:mod:`.misled`). Workers are judged without the votes' share, which
    takes what they disagree in for doubt of the label: it keeps labels from being too sure, and draws each worker to
    how often he agrees with the others.

    It has labels, probabilities, decisions and workers as a fit has them. `Stack` holds it.

    Args:
        fits: by name.
        weights: of each fit, by name; they sum to 1.
        comparison: the comparison that the weights come from, as :func:`.compare` returns it; None where they were
            given.
        left_out: stories that were asked for and do not fit these data, by name, with the reason.
        votes: the share of the votes, from 0 to below 1.
        misled: the share of misled tasks that is expected, from 0 to below 1; None for what is usual (:mod:`.misled`).
    """

    fits: dict[str, Fitted]
    weights: pd.Series
    comparison: pd.DataFrame | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    votes: float = 0.0
    misled: float | None = 0.0

    @property
    def annotations(self) -> Annotations:
        """The data of the fits."""
        return next(iter(self.fits.values())).annotations

    @property
    def story(self) -> str:
        """The names of the stories that have weight, the largest weight first."""
        return " + ".join(self.weights[self.weights > SHOWN_WEIGHT].sort_values(ascending=False).index)

    @property
    def has_draws(self) -> bool:
        """True where every fit has draws to take intervals from."""
        return all(fitted.has_draws for fitted in self.fits.values())

    @property
    def shares_errors(self) -> bool:
        """True where a story with weight lets workers err together."""
        return any(fitted.shares_errors for name, fitted in self.fits.items() if self.weights[name] > 0)

    @cached_property
    def with_uncertainty(self) -> Averaged:
        """The average of the same fits with draws, around their points where they are points."""
        fits = {name: fitted.with_uncertainty for name, fitted in self.fits.items()}
        return self if self.has_draws else replace(self, fits=fits)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the fits that have weight, each after the fit's name, and what the crowd cannot tell."""
        of_fits = (
            f"{name}: {text}" for name, fitted in self.fits.items() if self.weights[name] for text in fitted.warnings
        )
        return (*(text for text in of_fits if not is_of_crowd(text)), *self.of_crowd)

    @cached_property
    def of_crowd(self) -> tuple[str, ...]:
        """Warnings of questions that the annotations alone leave open, by averaged labels: :func:`.crowd_warnings`."""
        families, *others = (families_of(fitted.model.hyperparameters) for fitted, _ in self.weighty)
        return crowd_warnings(self.annotations, self.posterior, families if all(f == families for f in others) else {})

    @cached_property
    def posterior(self) -> np.ndarray:
        """``P(truth | annotations)`` averaged over the stories: ``(N, K)``."""
        each = [misled_share(fitted, self.misled).beside(fitted.posterior) for fitted, _ in self.weighty]
        mean = np.tensordot([weight for _, weight in self.weighty], each, axes=1)
        return mean if self.votes == 0 else _beside_votes(mean, self.annotations, self.votes)

    @property
    def posterior_of_workers(self) -> np.ndarray:
        """The label probabilities by which workers are judged, ``(N, K)``.

        They allow for misled tasks in any case, and the votes have no share in them.
        """
        return replace(self, misled=self.misled or None, votes=0.0).posterior

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in draws of the mixture of stories: ``(1, draw, J, K, L)``.

        There are about a thousand, from each fit in proportion to its weight, and fewer, at least 50, where they would
        have more than :data:`.CELLS` numbers. Where a fit has no draws, the weighted mean of the confusion matrices is
        the only draw.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        if not self.has_draws:
            return np.tensordot(
                [weight for _, weight in self.weighty], [fitted.confusion_draws for fitted, _ in self.weighty], axes=1
            )
        picked = []
        for fitted, weight in self.weighty:
            flat = fitted.confusion_draws.reshape(-1, *fitted.confusion_draws.shape[2:])
            n = round(self.n_mixture_draws * weight)
            picked.append(flat[np.linspace(0, len(flat), n, endpoint=False).astype(int)])
        return np.concatenate(picked)[None]

    @property
    def n_mixture_draws(self) -> int:
        """About how many draws the mixture has: a thousand, and fewer where matrices have many cells."""
        return int(np.clip(CELLS / n_cells(self.annotations), *MIXTURE_DRAWS))

    @property
    def weighty(self) -> list[tuple[Fitted, float]]:
        """The fits that have weight, each with it."""
        return [(fitted, float(self.weights[name])) for name, fitted in self.fits.items() if self.weights[name] > 0]

    def worker_scores(self, interval: float, misled: float | None = None) -> pd.DataFrame:
        """The workers' scores from the confusion matrices, and the realised accuracy: :meth:`.Stack.worker_scores`."""
        misled = self.misled or None if misled is None else misled
        frame = fitted_scores(self, interval)
        estimate = realised_accuracy(replace(self, misled=misled, votes=0.0).posterior, self.annotations)
        draws = np.concatenate(list(self._realised_accuracy_draws(misled)))
        return with_realised_accuracy(frame, estimate, interval_around(self, estimate, draws[None], interval))

    def _realised_accuracy_draws(self, misled: float | None) -> Iterator[np.ndarray]:
        """Of each fit as many draws as its weight asks for: ``(draw, J)``."""
        around = [(fitted.with_uncertainty, weight) for fitted, weight in self.weighty]
        total = max(n_truths(fitted) for fitted, _ in around)
        for fitted, weight in around:
            yield realised_accuracy_draws(fitted, misled_share(fitted, misled), max(1, round(total * weight)))

    def task_scores(self, *, replicates: int, seed: int) -> pd.DataFrame:
        """The tasks' scores, those from replicated annotations averaged: :meth:`.Stack.task_scores`."""
        return averaged_task_scores(self, replicates=replicates, seed=seed)

    def summary(self) -> Summary:
        """Return a summary: the averaged fits, their weights and the reason, and a fit's tables of classes and workers.

        It prints as text and shows as tables in notebooks.
        """
        facts = {"data": sizes(self.annotations), "labels": certainty(self) + differing(self)}
        tables = {"weights": self.weights.to_frame()}
        if len(self.weighty) == 1:
            facts |= shared_errors(self.weighty[0][0].model, self.weighty[0][0].parameters)
        facts |= panel(self, self.warnings)
        if self.votes:
            facts["votes"] = f"their share of the label probabilities is {self.votes:.0%}, beside the stories'"
        if self.misled != 0:
            each = [misled_share(fitted, self.misled).mean for fitted, _ in self.weighty]
            mean = np.average(each, weights=[weight for _, weight in self.weighty])
            facts["misled"] = f"the label probabilities allow for {mean:.1%} of tasks that mislead the whole crowd"
        if self.comparison is not None:
            facts["why"] = why(self.comparison)
            if how := self.comparison.attrs.get("how"):
                facts["compared by"] = str(how)
            tables = {"comparison": self.comparison}
        if self.left_out:
            facts["left out"] = "; ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
        if self.annotations.gold is not None:
            facts["gold"] = gold_accuracy(self)
        shares = pd.Series(self.posterior.mean(0), self.annotations.classes.to_index("class"), name="share_of_labels")
        tables["classes"] = shares.to_frame()
        if self.annotations.named:
            scores = fitted_scores(self, INTERVAL)
            facts |= positive_class(self.annotations.classes) | suspects(scores)
            tables |= best_and_worst(scores)
        methods = " and ".join(sorted({fitted.method.upper() for fitted in self.fits.values()}))
        many = "1 story" if len(self.fits) == 1 else f"{len(self.fits)} stories"
        return Summary(f"{many} fitted by {methods} and averaged", facts, tables, self.warnings)

    @property
    def weights_text(self) -> str:
        """The stories that have weight, each with its weight."""
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items() if weight > SHOWN_WEIGHT)


def _beside_votes(posterior: np.ndarray, annotations: Annotations, share: float) -> np.ndarray:
    """Label probabilities ``(N, K)`` with a share of the votes.

    The posterior counts to them as one vote more, and as one more for each model that gave probabilities.
    """
    votes = np.asarray(annotations.votes(), dtype=float)
    extra = 1 + len(annotations.models)  # models that gave probabilities have no vote but in the posterior
    mixed = (1 - share) * posterior + share * (votes + extra * posterior) / (votes.sum(1, keepdims=True) + extra)
    if annotations.evidence is None:
        return mixed
    known = np.ptp(np.asarray(annotations.evidence), axis=1) > 0
    return np.where(known[:, None], posterior, mixed)


def averaged(
    fits: Mapping[str, HoldsFitted] | Iterable[HoldsFitted],
    weights: Mapping[str, float] | pd.Series | None = None,
    *,
    votes: float = 0.0,
    misled: float | None = 0.0,
    **options: object,
) -> Averaged:
    """Average fits of the same annotations by stacking weights: see :func:`crowdppl.stack`."""
    named, votes = by_name(fits, least=2 if weights is None else 1), share_of_votes(votes)
    misled = None if misled is None else checked(misled)
    if weights is None:
        comparison = compare(named, **options)  # type: ignore[arg-type]
        return Averaged(named, comparison["weight"].reindex(list(named)), comparison, votes=votes, misled=misled)
    if options:
        raise ValueError(
            f"weights are given, so nothing is compared; leave out {', '.join(map(repr, options))}, or weights"
        )
    check_same_data(named)
    return Averaged(named, _given(dict(weights), named), votes=votes, misled=misled)


def share_of_votes(votes: float) -> float:
    """The votes' share of label probabilities itself.

    Raises:
        ValueError: it is none.
    """
    if isinstance(votes, bool) or not (isinstance(votes, Real) and 0 <= votes < 1):
        raise ValueError(f"votes={votes!r}: a share from 0 to below 1 is needed")
    return float(votes)


def _given(weights: Mapping[str, float], fits: Mapping[str, Fitted]) -> pd.Series:
    """The weights of all fits, by name, scaled to sum 1; 0 where none was given."""
    for name, weight in weights.items():
        check_name("fit", name, fits)
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} is {weight!r}: a finite number from 0 is needed")
    found = pd.Series({name: float(weights.get(name, 0.0)) for name in fits}, name="weight").rename_axis("story")
    if not found.sum() > 0:
        raise ValueError("all weights are 0; at least one has to be positive")
    return found / found.sum()


def why(comparison: pd.DataFrame) -> str:
    """Which story a comparison puts first, which are near it, and the stacking weights, in a sentence.

    Args:
        comparison: as :func:`.compare` returns it.
    """
    best, *others = comparison.index
    text = f"{best} predicts held-out annotations best"
    near = [str(o) for o in others if -comparison.loc[o, "difference"] <= comparison.loc[o, "difference_se"]]
    if near:
        text += f"; within one standard error of it: {', '.join(near)}"
    weights = comparison["weight"][comparison["weight"] > SHOWN_WEIGHT].sort_values(ascending=False)
    return f"{text}; stacking weights: {', '.join(f'{weight:.0%} {name}' for name, weight in weights.items())}"
