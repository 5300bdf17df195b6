"""What follows from label probabilities and workers' tables, whoever has them: a fit, or a stack of fits."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data import Annotations
from . import decisions
from .intervals import INTERVAL, of_draws
from .workers import fitted_scores, gold_scores


class Labelled:
    """Labels, decisions and workers' scores.

    They need ``annotations``; ``posterior``, that is ``P(truth | annotations) (N, K)``; ``confusion_draws``, each worker's
    confusion matrix in each draw ``(chain, draw, J, K, L)``; and ``has_draws``, whether there are any but the mode.
    """

    if TYPE_CHECKING:

        @property
        def annotations(self) -> Annotations:
            """The data."""

        @property
        def posterior(self) -> np.ndarray:
            """``P(truth | annotations)``, ``(N, K)``."""

        @property
        def confusion_draws(self) -> np.ndarray:
            """``(chain, draw, J, K, L)``."""

        @property
        def has_draws(self) -> bool:
            """Whether there is more than the mode."""

    @property
    def probabilities(self) -> pd.DataFrame:
        """``P(truth = class | annotations)``, tasks × classes."""
        classes = self.annotations.classes.to_index("class")
        return pd.DataFrame(self.posterior, index=self.annotations.tasks.to_index("task"), columns=classes)

    @property
    def labels(self) -> pd.DataFrame:
        """By task: the most probable label (ties: the first class), its probability, and the entropy in nats."""
        frame = self.decide()[["label", "probability"]]
        p = self.posterior.astype(float)
        return frame.assign(entropy=-(p * np.log(np.where(p > 0, p, 1.0))).sum(-1))

    @property
    def workers(self) -> pd.DataFrame:
        """By worker: annotations given, accuracy, spammer score and more, with 90 % intervals: :meth:`worker_scores`."""
        return self.worker_scores()

    def worker_scores(self, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker the scores that follow from the tables: :func:`.fitted_scores`.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        return fitted_scores(self, interval)

    def gold_scores(self, gold: Any = None, interval: float = INTERVAL) -> pd.DataFrame:
        """By worker how many annotations to gold or trap tasks are right, with Jeffreys' interval: :func:`.gold_scores`."""
        return gold_scores(self.annotations, gold, interval=interval)

    def confusions(self, interval: float = INTERVAL) -> pd.DataFrame:
        """The workers' confusion matrices in long form: worker, truth, response, probability, and low, high with draws.

        Args:
            interval: mass of the equal-tailed intervals, between 0 and 1.
        """
        tables = self.confusion_draws
        ids = [self.annotations.workers, self.annotations.classes, self.annotations.classes]
        index = pd.MultiIndex.from_product(
            [i.to_index(name) for i, name in zip(ids, ("worker", "truth", "annotation"), strict=True)]
        )
        columns = {"probability": tables.mean((0, 1)).ravel()}
        if self.has_draws:
            low, high = of_draws(tables, interval)
            columns |= {"low": low.ravel(), "high": high.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()

    def report(self, path: str | PathLike, **options: Any) -> Path:
        """Write one self-contained page with labels, workers, checks and pictures: :func:`.write.report`.

        Args:
            path: of the new file, such as ``"report.html"``.
            options: ``title``, ``fits`` to compare with by name, ``gold``, ``checks=False`` to leave the checks out.

        Raises:
            StorageError: the file cannot be written; said before anything is computed.
        """
        from ..report.write import report

        return report(self, path, **options)  # type: ignore[arg-type]

    def decide(
        self,
        *,
        threshold: float | None = None,
        positive: object = None,
        costs: pd.DataFrame | np.ndarray | None = None,
        abstain: float | None = None,
    ) -> pd.DataFrame:
        """A label for each task by a threshold or by least expected cost: :func:`.decisions.decide`."""
        return decisions.decide(
            self.probabilities, threshold=threshold, positive=positive, costs=costs, abstain=abstain
        )
