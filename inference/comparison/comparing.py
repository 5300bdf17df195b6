"""Comparison of several stories by how well they predict held-out data."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.errors import check_name, warn
from ...data.id_text import name_quoted
from ...data.questions import Units
from ..engines.finding import ConvergenceWarning, FindingWarning
from ..engines.progress import late_bar, told
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior, fitted_of
from .cross_validation import kfold
from .elpd import Elpd
from .leave_one_out import high_k_message, loo, why_not
from .weights import pseudo_bma_weights, stacking_weights

METHODS = ("loo", "kfold")

TO_FIT_FIRST = (
    "fits are compared, and no names of stories: fit each first, "
    "cp.compare({'one': cp.fit('dawid_skene', annotations), 'other': cp.fit('one_coin', annotations)})"
)


def compare(
    fits: Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted],
    *others: object,
    by: str | None = None,
    method: str | None = None,
    folds: int | None = None,
    refit_by: str | None = None,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Compare stories of the same annotations by how well each predicts held-out data.

    Fits with draws (NUTS, SVI) are compared by leave-one-out, without refits: :func:`loo`. Where one of the fits cannot
    be, such as a fit by EM, all are compared by K folds of the annotations, which refits each K times: :func:`kfold`;
    a warning says so where others could be.
    Leave-one-out needs good draws: SVI's mean-field guide is narrower than the posterior, which costs stories with many
    parameters some nats; where stories are close, use NUTS or ``guide="multivariate_normal"``.

    Example:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia")
        >>> fits = {name: cp.fit(name, annotations, progress=False) for name in ("dawid_skene", "one_coin")}
        >>> comparison = cp.compare(fits, folds=3, progress=False)
        >>> comparison.index[0], float(comparison["difference"].iloc[0])
        ('dawid_skene', 0.0)

    Args:
        fits: by name; or several, which are named after their stories.
        others: refused: annotations are given to the fits, and several fits as one argument.
        by: ``"task"``, all annotations to one predicted together (the default of leave-one-out), or ``"annotation"``,
            each predicted given the other annotations to its task (the default of K folds).
        method: ``"loo"`` or ``"kfold"``; by default leave-one-out where all fits allow it.
        folds: of K folds: K, from 2 to the number of units; 5 by default.
        refit_by: of K folds: the engine of the refits; the fits' own by default. ``"em"`` takes a fraction of their
            time.
        seed: of the division into folds, and of the Bayesian bootstrap.
        progress: whether to show progress bars: of K folds, and of leave-one-out where it takes more than two seconds.

    Returns:
        By story, the best first: ``elpd``, the expected log predictive density (nats, higher is better), and its
        standard error ``se``; ``p``, the effective number of parameters; ``difference`` to the best story (nats, 0 or
        negative) and its standard error ``difference_se``; the weights ``weight`` (stacking) and ``pseudo_bma``
        (pseudo-BMA with Bayesian bootstrap), each with sum 1 (Yao, Vehtari, Simpson & Gelman 2018); ``pareto_k``, the
        highest Pareto k, and ``n_high_k``, how many units have a high one. `p`, `pareto_k` and `n_high_k` are missing
        by K folds.

    Raises:
        UnknownNameError: `by`, `method` or `refit_by` is another than those above.
        ValueError: fewer than two fits, names of stories in their place, fits of different data, a method that a fit
            does not allow, or `folds` or `refit_by` where the fits are compared by leave-one-out.

    Warns:
        ConvergenceWarning: units have a high Pareto k, so that their values cannot be trusted.
        FindingWarning: some of the fits could be compared by leave-one-out, and `method` is not given.
    """
    if others and not isinstance(fits, Posterior | Fitted):
        raise ValueError(TO_FIT_FIRST)
    named = by_name(fits)
    check_same_data(named, by_worker=False)
    if method is None:
        refused = {name: reason for name, fitted in named.items() if (reason := why_not(fitted)) is not None}
        method = "kfold" if refused else "loo"
        if 0 < len(refused) < len(named):
            name, reason = next(iter(refused.items()))
            warn(
                f"all are compared by K folds, with a refit for each, since {name!r} cannot be by leave-one-out: "
                f"{reason}; method='kfold' says so beforehand",
                FindingWarning,
            )
    method = check_name("method", method, METHODS)
    if method == "loo":
        for option, value in (("folds", folds), ("refit_by", refit_by)):
            if value is not None:
                raise ValueError(
                    f"{option}={value!r}: these fits are compared by leave-one-out, which has no such option; leave it "
                    "out, or give method='kfold'"
                )
        with late_bar("leave-one-out", show=progress) as tell:
            each = told(named.items(), len(named), tell)
            scores = {name: loo(fitted, by=by or "task") for name, fitted in each}
        if (message := high_k_message(scores)) is not None:
            warn(message, ConvergenceWarning)
    else:
        options: dict[str, Any] = {
            "folds": 5 if folds is None else folds,
            "refit_by": refit_by,
            "seed": seed,
            "progress": progress,
        }
        scores = {name: kfold(fitted, by=by or "annotation", **options) for name, fitted in named.items()}
    return table(scores, seed)


def table(scores: Mapping[str, Elpd], seed: int = 0) -> pd.DataFrame:
    """Scores of the same units side by side, in the columns of :func:`compare`, the best story first.

    Args:
        scores: by name of the story.

    Raises:
        ValueError: fewer than two scores, or scores of different units.
    """
    check_same_units(scores)
    values = np.stack([score.values for score in scores.values()], axis=1)
    best = int(values.sum(0).argmax())
    difference = values - values[:, [best]]
    ks = [score.pareto_k for score in scores.values()]
    n_high_k = [pd.NA if score.pareto_k is None else score.n_high_k for score in scores.values()]
    frame = pd.DataFrame(
        {
            "elpd": values.sum(0),
            "se": [score.se for score in scores.values()],
            "p": [np.nan if score.p is None else score.p for score in scores.values()],
            "difference": difference.sum(0),
            "difference_se": np.sqrt(len(values) * difference.var(0)),
            "weight": stacking_weights(values),
            "pseudo_bma": pseudo_bma_weights(values, seed),
            "pareto_k": [np.nan if k is None else float(np.max(k)) for k in ks],
            "n_high_k": pd.array(n_high_k, "Int64"),
        },
        index=pd.Index(list(scores), name="story"),
    )
    return frame.sort_values("elpd", ascending=False, kind="stable")


def by_name(fits: Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted], least: int = 2) -> dict[str, Fitted]:
    """Fits by the names that were given, or else by those of their stories; several of one story are numbered.

    Args:
        least: how many there have to be.

    Raises:
        ValueError: there are fewer, or one is no fit.
    """
    if isinstance(fits, Posterior | Fitted):
        raise ValueError(
            "one fit is given, and two at least are needed to compare; give several, by name: "
            "cp.compare({'name': fit, 'other name': other_fit})"
        )
    if isinstance(fits, str):
        raise ValueError(TO_FIT_FIRST)
    if not isinstance(fits, Iterable):
        raise ValueError(
            f"{fits!r}: fits are needed, such as by name: cp.compare({{'name': fit, 'other name': other_fit}})"
        )
    if isinstance(fits, Mapping):
        named = dict(fits)
    else:
        named = {}
        for fit in fits:
            if isinstance(fit, str):
                raise ValueError(TO_FIT_FIRST)
            story = getattr(fit, "story", type(fit).__name__)
            same = sum(name == story or name.startswith(f"{story} (") for name in named)
            named[f"{story} ({same + 1})" if same else story] = fit
    found: dict[str, Fitted] = {}
    for name, fit in named.items():
        try:
            found[name] = fitted_of(fit)
        except TypeError as error:
            raise ValueError(f"{name!r}: {error}") from error
    if len(found) < least:
        raise ValueError(f"{len(found)} fits are given, and two at least are needed to compare")
    return found


def check_same_data(fits: Mapping[str, Fitted], *, by_worker: bool = True) -> None:
    """Refuse fits of different annotations.

    Args:
        fits: by name.
        by_worker: whether fits are refused, too, of which one takes a worker for several, one for each question.

    Raises:
        ValueError: with the first difference.
    """
    (first, fitted), *others = fits.items()
    for name, other in others:
        left_out = {one: _left_out(each) for one, each in ((first, fitted), (name, other))}
        if left_out[first] != left_out[name]:
            said = "; ".join(f"{one!r} {what or 'has all annotations'}" for one, what in left_out.items())
            raise ValueError(
                f"{first!r} and {name!r} were fitted to different annotations, so their scores cannot be compared: "
                f"{said}. Fit both with the same copies= and constant_workers=, or compare labels with gold labels by "
                "cp.score"
            )
        if by_worker and _workers_differ(fitted.annotations, other.annotations):
            raise ValueError(
                f"{first!r} and {name!r} were fitted with different quality=, so that their workers are not the same "
                "and they have no average; cp.compare compares them"
            )
        if (difference := _difference(fitted.annotations, other.annotations)) is not None:
            raise ValueError(
                f"{first!r} and {name!r} were fitted to different data, so their scores cannot be compared: "
                f"{difference}"
            )


def _left_out(fitted: Fitted) -> str:
    """Return in words whose annotations a fit leaves out by its options; "" where it has all."""
    said = []
    for finding in fitted.findings:
        names = [", ".join(map(name_quoted, one["workers"])) for one in finding.values.get("as_one", ())]
        said += [f"counts {each} as one worker" for each in names]
        if finding.code == "repeats" and "left" in finding.values:
            said.append(f"counts repeats of {', '.join(map(name_quoted, finding.values['workers']))} once")
        if finding.values.get("left_out"):
            said.append(f"leaves out the annotations of {', '.join(map(name_quoted, finding.values['workers']))}")
    return ", ".join(said)


def _workers_differ(a: Annotations, b: Annotations) -> bool:
    """Return whether one has pairs with questions, or others, in the place of workers."""
    both = (a.workers, b.workers)
    return a.named and b.named and any(isinstance(each, Units) for each in both) and a.workers != b.workers


def _difference(a: Annotations, b: Annotations) -> str | None:
    """The first difference between two crowds' annotations in words, or None where they are the same."""
    a, b = a.across_questions(), b.across_questions()
    for kind in ("tasks", "classes", "workers"):
        ours, theirs = getattr(a, kind), getattr(b, kind)
        if kind == "workers" and not (a.named and b.named):
            continue  # the likelihood is of the same labels, whether workers are named or not
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
    if (differ := np.flatnonzero((ours != theirs).any(-1))).size:
        task = list(a.tasks)[int(differ[0])]
        return f"they used other gold labels or evidence, first of task {name_quoted(task)}"
    return _other_probabilities(a, b)


def _other_probabilities(a: Annotations, b: Annotations) -> str | None:
    """Return a difference between the models' probabilities given to two fits, in words; None where there is none."""
    ours, theirs = ({name: np.asarray(x.model_scores)[:, place] for place, name in enumerate(x.models)} for x in (a, b))
    if differ := [
        name for name in [*ours, *theirs] if not np.array_equal(ours.get(name, 0), theirs.get(name, 0), True)
    ]:
        return f"they were given other probabilities of the model {differ[0]!r}"
    return None


def _row(annotations: Annotations, row: int) -> str:
    """One row of the annotations in words: each column's name and value."""
    return ", ".join(f"{name} {value!r}" for name, value in annotations.to_frame().iloc[row].items())


def check_same_units(scores: Mapping[str, Elpd]) -> None:
    """Refuse scores by different methods or of different units.

    Raises:
        ValueError: there are fewer than two, or two differ; with the difference.
    """
    if len(scores) < 2:
        raise ValueError(f"{len(scores)} scores are given, and two at least are needed to compare")
    (name, first), *others = scores.items()
    for other, score in others:
        for what in ("method", "by"):
            if getattr(first, what) != getattr(score, what):
                raise ValueError(
                    f"{name!r} is scored with {what}={getattr(first, what)!r} and {other!r} with "
                    f"{what}={getattr(score, what)!r}; score both in the same way"
                )
        if len(first.values) != len(score.values):
            raise ValueError(f"{name!r} has {len(first.values):,} {first.by}s and {other!r} {len(score.values):,}")
