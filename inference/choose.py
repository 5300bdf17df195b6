"""The choice of a story's hyperparameters by how well the story predicts held-out annotations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from ..data import Annotations
from ..data.errors import check_name
from ..models import Story
from .comparison.comparing import compare
from .engines.progress import progress_bar
from .fit import fit
from .result import Fit

RULES = ("one_se", "best")
SMALL = 4.0
"""A difference of elpd, in nats, below which two stories predict alike and its standard error tells nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Hyperparameters that were chosen by held-out annotations; made by :func:`choose`.

    Args:
        chosen: the name of the choice, such as ``"groups=3"``.
        options: the hyperparameters of each candidate, by its name, in the order in which they were given.
        fits: each candidate's fit to all annotations, by its name.
        comparison: the candidates side by side, the best predicting first, in the columns of :func:`.compare`.
        rule: how the choice follows from the comparison.
    """

    chosen: str
    options: dict[str, dict[str, Any]]
    fits: dict[str, Fit]
    comparison: pd.DataFrame
    rule: str

    @property
    def fit(self) -> Fit:
        """The fit with the chosen hyperparameters."""
        return self.fits[self.chosen]

    def __repr__(self) -> str:
        shown = self.comparison[["elpd", "se", "difference", "difference_se"]].round(1)
        return f"{self.chosen}, chosen of {len(self.fits)} by held-out annotations (rule {self.rule!r})\n{shown}"


def choose(
    story: str | Story,
    annotations: Annotations,
    candidates: Mapping[str, Iterable[Any]],
    *,
    rule: str = "one_se",
    by: str | None = None,
    compare_by: str | None = None,
    folds: int | None = None,
    refit_by: str | None = None,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> Choice:
    """Choose hyperparameters of a story, such as a number of groups, by how well it predicts held-out annotations.

    Every combination of the candidates is fitted and scored by :func:`.compare`. No gold label is looked at, unless
    ``gold=`` is among the options.

    Example:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia")
        >>> found = cp.choose("worker_clusters", annotations, {"clusters": [1, 2]}, folds=2, progress=False)
        >>> list(found.fits), found.fit.story
        (['clusters=1', 'clusters=2'], 'worker_clusters')

    Args:
        story: as of :func:`crowdppl.fit`.
        annotations: who labelled what.
        candidates: by name of a hyperparameter the values to try, the simplest first.
        rule: ``"one_se"``: of the candidates whose score lies within one standard error of the best one's, or within
            4 nats, the first in the order given, so that what predicts no better is not chosen for being larger
            (Breiman, Friedman, Olshen & Stone 1984; of differences under 4 nats the standard error says nothing:
            Sivula, Magnusson, Matamoros & Vehtari 2020); or ``"best"``: the best score.
        by: as of :func:`.compare`: ``"task"`` or ``"annotation"``.
        compare_by: the `method` of :func:`.compare`, ``"loo"`` or ``"kfold"``.
        folds: of K folds, as of :func:`.compare`.
        refit_by: the engine that refits K folds, as of :func:`.compare`.
        seed: of the fits and the folds.
        progress: whether to show a progress bar.
        options: further ones of :func:`crowdppl.fit`, the same for every candidate, such as ``method``.

    Returns:
        the choice, with its fit, and the comparison behind it.

    Raises:
        UnknownNameError: `rule` is another; or as of :func:`crowdppl.fit`.
        ValueError: fewer than two candidates, one that is given twice, or a hyperparameter that is an option too; or as
            of :func:`crowdppl.fit` and :func:`.compare`.
    """
    rule = check_name("rule", rule, RULES)
    each = _combinations(candidates, options)
    fits: dict[str, Fit] = {}
    with progress_bar("candidates", len(each) + 1, show=progress) as bar:
        for number, (name, chosen) in enumerate(each.items()):
            bar(number, name)
            fits[name] = fit(story, annotations, seed=seed, progress=False, **options, **chosen)
        bar(len(each), "comparing")
        table = compare(fits, by=by, method=compare_by, folds=folds, refit_by=refit_by, seed=seed, progress=False)
    return Choice(_chosen(table, list(each), rule), each, fits, table, rule)


def _combinations(candidates: Mapping[str, Iterable[Any]], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name every combination of values; the last hyperparameter changes fastest."""
    if not isinstance(candidates, Mapping):
        raise ValueError(
            f"candidates={candidates!r}: by name the values to try are needed, such as {{'clusters': [1, 2]}}"
        )
    for name, of_one in candidates.items():
        if isinstance(of_one, str) or not isinstance(of_one, Iterable):
            raise ValueError(f"candidates: {name}={of_one!r} is one value; a list of those to try is needed")
    values = {name: list(of_one) for name, of_one in candidates.items()}
    if both := sorted(set(values) & set(options)):
        raise ValueError(f"{both[0]!r} is among the candidates and an option too; leave out one of them")
    found: dict[str, dict[str, Any]] = {}
    for one in product(*values.values()):
        chosen = dict(zip(values, one, strict=True))
        name = ", ".join(f"{option}={value!r}" for option, value in chosen.items())
        if name in found:
            raise ValueError(f"candidates: {name} is given twice; give each value once")
        found[name] = chosen
    if len(found) < 2:
        raise ValueError(f"candidates={dict(values)!r}: two combinations at least are needed to choose from")
    return found


def _chosen(table: pd.DataFrame, order: list[str], rule: str) -> str:
    """The name that the rule takes of a comparison."""
    if rule == "best":
        return str(table.index[0])
    is_near = table["difference"] >= -table["difference_se"].clip(lower=SMALL)
    return next(name for name in order if is_near[name])
