"""Labels that average over stories, each as far as it predicts what it has not seen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ...data import Annotations, unknown_name
from ..fitted.fitted import Fitted, HoldsFitted
from ..fitted.labelled import Labelled
from ..fitted.summary import Summary, certainty, gold_accuracy, sizes
from .comparing import by_name, check_same_data, compare

KEPT = 1000  # draws of the mixture of worker tables
NO_WEIGHT = 0.005  # below it a weight is not spoken of


@dataclass(frozen=True, eq=False, repr=False)
class Averaged(Labelled):
    r"""Several fits of the same annotations, averaged: :math:`P(z_i = k) = \sum_m w_m P_m(z_i = k \mid y)`.

    Labels, probabilities, decisions and workers as a fit has them. What `Stack` holds.

    Args:
        fits: by name.
        weights: of each fitted, by name; they sum to 1.
        comparison: what the weights come from, as :func:`.compare` returns it; None where they were given.
        left_out: stories that were asked for and could not be told of these data, with the reason.
    """

    fits: dict[str, Fitted]
    weights: pd.Series
    comparison: pd.DataFrame | None = None
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def annotations(self) -> Annotations:
        """The data of the fits."""
        return next(iter(self.fits.values())).annotations

    @property
    def story(self) -> str:
        """The stories that carry weight, the heaviest first."""
        return " + ".join(self.weights[self.weights > NO_WEIGHT].sort_values(ascending=False).index)

    @property
    def has_draws(self) -> bool:
        """Whether every fit has draws to take intervals from."""
        return all(fitted.has_draws for fitted in self.fits.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the fits that carry weight."""
        return tuple(
            f"{name}: {text}" for name, fitted in self.fits.items() if self.weights[name] for text in fitted.warnings
        )

    @cached_property
    def posterior(self) -> np.ndarray:
        """``P(truth | annotations)`` averaged over the stories: ``(N, K)``."""
        return sum(
            self.weights[name] * fitted.posterior for name, fitted in self.fits.items() if self.weights[name] > 0
        )

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in draws of the mixture of stories: ``(1, draw, J, K, L)``.

        Of every fit as many draws as its weight is of about :data:`KEPT`; without draws the tables' weighted mean.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        weighty = {name: fitted for name, fitted in self.fits.items() if self.weights[name] > 0}
        if not self.has_draws:
            return sum(self.weights[name] * fitted.confusion_draws for name, fitted in weighty.items())
        picked = []
        for name, fitted in weighty.items():
            flat = fitted.confusion_draws.reshape(-1, *fitted.confusion_draws.shape[2:])
            n = round(KEPT * self.weights[name])
            picked.append(flat[np.linspace(0, len(flat), n, endpoint=False).astype(int)])
        return np.concatenate(picked)[None]

    def summary(self) -> Summary:
        """What was averaged, with which weights, and why; prints as text, shows as a table in notebooks."""
        facts = {"data": sizes(self.annotations), "labels": certainty(self)}
        tables = {"weights": self.weights.to_frame()}
        if self.comparison is not None:
            facts["why"] = why(self.comparison)
            tables = {"comparison": self.comparison}
        if self.left_out:
            facts["left out"] = "; ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
        if self.annotations.gold is not None:
            facts["gold"] = gold_accuracy(self)
        methods = " and ".join(sorted({fitted.method.upper() for fitted in self.fits.values()}))
        return Summary(f"{len(self.fits)} stories fitted by {methods} and averaged", facts, tables, self.warnings)

    @property
    def weights_text(self) -> str:
        """The stories that carry weight, and how much."""
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items() if weight > NO_WEIGHT)


def averaged(
    fits: Mapping[str, HoldsFitted] | Iterable[HoldsFitted],
    weights: Mapping[str, float] | pd.Series | None = None,
    **options: object,
) -> Averaged:
    """Average fits of the same annotations by stacking weights: see :func:`crowdppl.stack`."""
    named = by_name(fits)
    if weights is None:
        comparison = compare(named, **options)  # type: ignore[arg-type]
        return Averaged(named, comparison["weight"].reindex(list(named)), comparison)
    if options:
        raise ValueError(f"weights are given, so nothing is compared: leave out {', '.join(map(repr, options))}")
    check_same_data(named)
    return Averaged(named, _given(dict(weights), named))


def _given(weights: dict, fits: Mapping[str, Fitted]) -> pd.Series:
    for name, weight in weights.items():
        if name not in fits:
            raise unknown_name("fit", name, fits)
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} is {weight!r}; a finite number from 0 is needed")
    found = pd.Series({name: float(weights.get(name, 0.0)) for name in fits}, name="weight").rename_axis("story")
    if not found.sum() > 0:
        raise ValueError("all weights are 0; one at least has to be positive")
    return found / found.sum()


def why(comparison: pd.DataFrame) -> str:
    """What a comparison says of the weights, in words.

    Args:
        comparison: as :func:`.compare` returns it.
    """
    best, *others = comparison.index
    said = f"{best} predicts best what it has not seen"
    near = [str(o) for o in others if -comparison.loc[o, "difference"] <= comparison.loc[o, "difference_se"]]
    if near:
        said += f", within one standard error of it {', '.join(near)}"
    heavy = comparison["weight"][comparison["weight"] > NO_WEIGHT].sort_values(ascending=False)
    return f"{said}; the average that predicts best is {', '.join(f'{w:.0%} {name}' for name, w in heavy.items())}"
