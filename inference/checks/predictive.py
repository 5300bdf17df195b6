"""Posterior and prior predictive checks (Rubin 1984; Gelman, Meng & Stern 1996)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations, unknown_name
from ...models import Classifier, Story, TruthPrior, find_story
from ...models.parts.classifier import Network
from ..densities.evidence import with_truth_prior
from ..densities.model import Model
from ..densities.program_cache import use_program_cache
from ..fitted.fitted import HoldsFitted, fitted_of
from .check_results import Checks
from .discrepancies import DISCREPANCIES, Discrepancy, Measure, of_function
from .discrepancy_result import Found
from .replicate import NewTruth, from_posterior, from_prior

Discrepancies = str | Iterable[str] | Mapping[str, Discrepancy | Callable[[Annotations], Any]] | None


def check(
    fit: HoldsFitted,
    discrepancies: Discrepancies = None,
    *,
    draws: int = 50,
    replicates: int = 10,
    truth: NewTruth = "posterior",
    seed: int = 0,
) -> Checks:
    r"""Whether the fitted story would have written annotations like these: posterior predictive checks.

    The same workers annotate the same tasks again, :math:`\tilde y \sim p(y \mid z, \theta)` with parameters and true
    labels of the posterior, and discrepancies compare what they write with what they wrote:

    - ``"annotations"``: annotations of each class by worker;
    - ``"votes"``: tasks by the share of the annotations that their winner has;
    - ``"agreement"``: how often the two workers of each pair agree on the tasks that both annotated;
    - ``"majority"``: how often each worker agrees with the majority of a task's other workers.

    A small p-value says that the annotations are odder than the story's; each draw's replicates are compared with the
    annotations by themselves, and the p-value averages over the draws (:class:`Found`). It is conservative, as the
    posterior has seen the annotations: of right stories fewer than 5 % have one under 0.05. Not so by EM, whose mode fits
    the annotations too well where workers have many parameters and few annotations: there it rejects right stories
    (Dawid-Skene by its votes in 3 of 8 data sets of 15 workers with 80 annotations each: ``benchmarks/checks.py``).
    Copied annotations show in ``"agreement"``, whose pairs are then named by :attr:`Checks.worst`; tasks that are harder
    than others in ``"votes"``.

    Args:
        fit: a fit by any engine; use one with draws before a story is given up.
        discrepancies: names of the above, by default all that the annotations allow (those of workers need names); or a
            mapping from names to functions of :class:`~crowdppl.Annotations`, which return a number, large where the
            annotations are odd, or a series of numbers by unit. ``DISCREPANCIES`` holds the above, to be put beside one's
            own. Functions see one row for each annotation, without counts.
        draws: how many draws of the parameters, spread evenly over the fit's.
        replicates: how many times each draw's workers annotate again.
        truth: the replicates' true labels: of the ``"posterior"`` given the annotations, once for each draw, or drawn anew
            from the truth's ``"prior"`` for each replicate, as of tasks that nobody has annotated.
        seed: the same seed gives the same replicates.

    Raises:
        UnknownNameError: there is no discrepancy, or value of `truth`, of that name.
        AnnotationError: a discrepancy needs named workers, or annotations to compare, and there are none.
        ValueError: there are no draws, or fewer than two replicates, no discrepancy is asked for, or a function returns
            other units or no number.
    """
    _check_number("draws", draws, 1)
    _check_number("replicates", replicates, 2)
    if truth not in get_args(NewTruth):
        raise unknown_name("value of truth", truth, get_args(NewTruth))
    fitted = fitted_of(fit)
    design = fitted.annotations.expanded()
    title = f"Posterior predictive checks of {fitted.story}: {draws} draws, {replicates} replicates of each"
    if truth == "prior":
        title += ", with true labels of their prior"
    new = from_posterior(fitted, design, draws, replicates, truth, seed)
    return _compare(design, discrepancies, new, title, () if fitted.has_draws else (EM_NOTE,))


EM_NOTE = (
    "The fit is EM's mode, which leaves out that the parameters are uncertain: p-values can be small for a right story "
    'with many parameters; confirm them with method="nuts".'
)


def prior_check(
    story: str | Story,
    annotations: Annotations,
    discrepancies: Discrepancies = None,
    *,
    draws: int = 200,
    classifier: Network | Classifier | None = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> Checks:
    r"""Whether a story with its priors could write annotations like these, before it is fitted: prior predictive checks.

    As :func:`check`, with parameters and true labels from their priors. The weights of a network without a prior are
    drawn as they start. A small p-value says that hardly any parameters that the priors allow give such annotations.

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        annotations: who annotated what.
        discrepancies: see :func:`check`.
        draws: how many replicates.
        classifier: as in :func:`crowdppl.fit`.
        truth_prior: as in :func:`crowdppl.fit`.
        seed: the same seed gives the same replicates.
        **hyperparameters: of the story.

    Raises:
        UnknownNameError: there is no story or discrepancy of that name.
        AnnotationError: a discrepancy needs named workers, or annotations to compare, and there are none.
        StoryError: the story cannot be told of these annotations.
        ValueError: `draws` is less than 20, both a classifier and a truth_prior are given, or a function returns other
            units or no number.
    """
    _check_number("draws", draws, 20)
    prior, design = with_truth_prior(annotations.expanded(), truth_prior, classifier)
    use_program_cache()
    model = Model(find_story(story), hyperparameters | ({} if prior is None else {"truth_prior": prior}))
    title = f"Prior predictive checks of {model.story.__name__}: {draws} replicates"
    return _compare(design, discrepancies, [from_prior(model, design, draws, seed)], title, ())


def _compare(
    design: Annotations, wanted: Discrepancies, replicates: Iterable[np.ndarray], title: str, notes: tuple[str, ...]
) -> Checks:
    """Take the discrepancies of the observed annotations and of the replicates ``(M, A)`` of each draw in turn."""
    if not design.n_rows:
        raise AnnotationError("there are no annotations, so there is nothing to compare with replicates")
    chosen = _choose(wanted, design)
    measures = {name: discrepancy.prepare(design) for name, discrepancy in chosen.items()}
    observed = {name: _values(name, measure, np.asarray(design.label)) for name, measure in measures.items()}
    taken: dict[str, list[np.ndarray]] = {name: [] for name in measures}
    for of_draw in replicates:
        for name, measure in measures.items():
            values = [_values(name, measure, label) for label in of_draw]
            taken[name].append(np.stack(values))
    found = {}
    for name, discrepancy in chosen.items():
        measure, replicated = measures[name], np.stack(taken[name])
        found[name] = Found(
            title=discrepancy.title,
            axis=discrepancy.axis,
            observed=observed[name],
            replicated=replicated,
            units=measure.units,
            size=measure.size,
            grain=discrepancy.grain,
        )
    left_out = {name: measure.left_out for name, measure in measures.items() if measure.left_out}
    notes += tuple(
        f"{name}: the {len(observed[name]):,} largest units are looked at, {n:,} smaller ones are not."
        for name, n in left_out.items()
    )
    return Checks(title, found, notes)


def _choose(wanted: Discrepancies, annotations: Annotations) -> dict[str, Discrepancy]:
    if wanted is None:
        return {name: d for name, d in DISCREPANCIES.items() if annotations.named or not d.of_workers}
    if isinstance(wanted, str):
        wanted = [wanted]
    if isinstance(wanted, Mapping):
        chosen = {
            name: given if isinstance(given, Discrepancy) else of_function(name, given)
            for name, given in wanted.items()
        }
    else:
        chosen = {}
        for name in wanted:
            if name not in DISCREPANCIES:
                raise unknown_name("discrepancy", name, DISCREPANCIES)
            chosen[name] = DISCREPANCIES[name]
    if not chosen:
        raise ValueError(f"discrepancies={wanted!r} selects none; known by name are {', '.join(DISCREPANCIES)}")
    for name, discrepancy in chosen.items():
        if discrepancy.of_workers and not annotations.named:
            raise AnnotationError(
                f"{name} is of workers, and the annotations name none; annotations and votes need no names"
            )
    return chosen


def _values(name: str, measure: Measure, label: np.ndarray) -> np.ndarray:
    values = measure.take(label)
    if measure.size is not None:
        values = values.astype(np.float32)  # counts, of many units
    expected = (1,) if measure.units is None else (len(measure.units),)
    if values.shape != expected:
        raise ValueError(f"discrepancy {name!r} has shape {values.shape}; a number or a series by unit is needed")
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        unit = "" if measure.units is None else f" of unit {measure.units[at]!r}"
        raise ValueError(f"discrepancy {name!r}{unit} is {values[at]}; a finite number is needed for any annotations")
    return values


def _check_number(name: str, value: int, least: int) -> None:
    if not (isinstance(value, int | np.integer) and value >= least):
        raise ValueError(f"{name}={value!r}: a whole number from {least} is needed")
