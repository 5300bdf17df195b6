"""Which of several stories the data support."""

import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ...data import Annotations
from ..engines.outcome import ConvergenceWarning
from ..fitted.fitted import Fitted, HoldsFitted, fitted_of
from .cross_validation import kfold
from .elpd import Elpd
from .leave_one_out import high_k_message, loo
from .weights import pseudo_bma, stacking

METHODS = ("loo", "kfold")


def compare(
    fits: Mapping[str, HoldsFitted] | Iterable[HoldsFitted],
    *,
    by: str | None = None,
    method: str | None = None,
    folds: int = 5,
    refit_by: str | None = None,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Compare stories of the same annotations by how well each predicts what it has not seen.

    Fits with draws (NUTS, SVI) are compared by leave-one-out, without refitting. Where one of the fits has none (EM),
    all are compared by K folds of the annotations, which refits each K times. The draws must be good: SVI's mean field is
    narrower than the posterior, and holds stories with many parameters back by some nats; for close calls take NUTS or
    ``guide="multivariate_normal"``.

    Args:
        fits: by name, or several that are named after their stories.
        by: ``"task"``, all annotations to one predicted together (the default of leave-one-out), or ``"annotation"``, given the
            other annotations to its task (the default of K folds).
        method: ``"loo"`` or ``"kfold"``; by default as the fits allow.
        folds: K.
        refit_by: the engine of K folds' refits; the fits' own by default. ``"em"`` takes a fraction of their time.
        seed: of the folds.
        progress: show progress bars of K folds.

    Returns:
        By story, the best first: ``elpd`` (nats, higher is better) and its standard error ``se``; ``p``, the effective
        number of parameters; ``difference`` to the best (0, or negative) and ``difference_se``; the weights ``weight``
        (stacking) and ``pseudo_bma`` (with Bayesian bootstrap); ``pareto_k``, the largest, and ``n_high_k``, how many
        units are over its threshold. `p`, `pareto_k` and `n_high_k` are missing by K folds.

    Raises:
        ValueError: for fewer than two fits, fits of different data, or a method that the fits do not allow.
    """
    named = by_name(fits)
    check_same_data(named)
    if method is None:
        method = "loo" if all(fit.has_draws for fit in named.values()) else "kfold"
    if method not in METHODS:
        raise ValueError(f"method={method!r}: 'loo' or 'kfold' is needed")
    if method == "loo":
        found = {name: loo(fit, by=by or "task") for name, fit in named.items()}
    else:
        found = {
            name: kfold(fit, by=by or "annotation", folds=folds, refit_by=refit_by, seed=seed, progress=progress)
            for name, fit in named.items()
        }
    for score in found.values():
        if (message := high_k_message(score)) is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return table(found)


def table(found: Mapping[str, Elpd]) -> pd.DataFrame:
    """The comparison of scores of the same units: see :func:`compare`.

    Args:
        found: by name.

    Raises:
        ValueError: for fewer than two scores, or scores of different units.
    """
    check_same_units(found)
    names = list(found)
    values = np.stack([found[name].values for name in names], axis=1)
    best = int(values.sum(0).argmax())
    difference = values - values[:, [best]]
    ks = [found[name].pareto_k for name in names]
    n_high_k = [pd.NA if k is None else len(found[name].high_k) for name, k in zip(names, ks, strict=True)]
    frame = pd.DataFrame(
        {
            "elpd": values.sum(0),
            "se": [found[name].se for name in names],
            "p": [np.nan if found[name].p is None else found[name].p for name in names],
            "difference": difference.sum(0),
            "difference_se": np.sqrt(len(values) * difference.var(0)),
            "weight": stacking(values),
            "pseudo_bma": pseudo_bma(values),
            "pareto_k": [np.nan if k is None else float(np.max(k)) for k in ks],
            "n_high_k": pd.array(n_high_k, "Int64"),
        },
        index=pd.Index(names, name="story"),
    )
    return frame.sort_values("elpd", ascending=False, kind="stable")


def by_name(fits: Mapping[str, HoldsFitted] | Iterable[HoldsFitted]) -> dict[str, Fitted]:
    """Fits by name: their own where they come without; two of one story are told apart by a number.

    Raises:
        ValueError: for fewer than two, or what is no fit.
    """
    if hasattr(fits, "fitted"):
        raise ValueError("one fit is nothing to compare; give several: cp.compare({'name': fit, 'other': other_fit})")
    if isinstance(fits, Mapping):
        named = dict(fits)
    else:
        named = {}
        for fit in fits:
            story = getattr(fit, "story", type(fit).__name__)
            same = sum(name == story or name.startswith(f"{story} (") for name in named)
            named[f"{story} ({same + 1})" if same else story] = fit
    found = {}
    for name, fit in named.items():
        try:
            found[name] = fitted_of(fit)
        except TypeError as error:
            raise ValueError(f"{name!r} is {type(fit).__name__}; fits by cp.fit are needed") from error
    if len(found) < 2:
        raise ValueError(f"{len(found)} fits: two at least are needed to compare")
    return found


def check_same_data(fits: Mapping[str, Fitted]) -> None:
    """Refuse fits of different annotations.

    Raises:
        ValueError: with the difference.
    """
    first, *others = fits.items()
    for name, fit in others:
        if (difference := _difference(first[1].annotations, fit.annotations)) is not None:
            raise ValueError(
                f"{first[0]!r} and {name!r} were fitted to different data, so their scores cannot be compared: "
                f"{difference}"
            )


def _difference(a: Annotations, b: Annotations) -> str | None:
    """In what two annotations differ, or None."""
    for kind in ("tasks", "classes", "workers"):
        ours, theirs = getattr(a, kind), getattr(b, kind)
        if kind == "workers" and not (a.named and b.named):
            continue  # a story of unnamed annotations says as much of them as one of named ones
        if len(ours) != len(theirs):
            return f"{len(ours):,} {kind} and {len(theirs):,}"
        for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            if x != y:
                return f"{kind[:-1] if kind != 'classes' else 'class'} {i} is {x!r} and {y!r}"
    if a.n_rows != b.n_rows:
        return f"{a.n_rows:,} rows of annotations and {b.n_rows:,}"
    columns = ("task", "label", "count") + (("worker",) if a.named and b.named else ())
    for column in columns:
        ours, theirs = (
            np.ones(x.n_rows) if getattr(x, column) is None else np.asarray(getattr(x, column)) for x in (a, b)
        )
        if (rows := np.flatnonzero(ours != theirs)).size:
            row = int(rows[0])
            return f"row {row} is {_row(a, row)} and {_row(b, row)}"
    ours, theirs = (
        np.zeros((x.n_tasks, x.n_classes)) if x.evidence is None else np.asarray(x.evidence) for x in (a, b)
    )
    if (told := np.flatnonzero((ours != theirs).any(-1))).size:
        task = list(a.tasks)[int(told[0])]
        return f"other gold labels or evidence, first of task {task!r}"
    return None


def _row(annotations: Annotations, row: int) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in annotations.to_frame().iloc[row].items())


def check_same_units(found: Mapping[str, Elpd]) -> None:
    """Refuse scores of different kinds or units.

    Raises:
        ValueError: with the difference.
    """
    if len(found) < 2:
        raise ValueError(f"{len(found)} scores: two at least are needed to compare")
    (name, first), *others = found.items()
    for other, score in others:
        for what in ("kind", "by"):
            if getattr(first, what) != getattr(score, what):
                raise ValueError(
                    f"{name!r} is scored with {what}={getattr(first, what)!r} and {other!r} with "
                    f"{what}={getattr(score, what)!r}; score both in the same way"
                )
        if len(first.values) != len(score.values):
            raise ValueError(f"{name!r} has {len(first.values):,} {first.by}s and {other!r} {len(score.values):,}")
