"""Posterior and prior predictive checks (Rubin 1984; Gelman, Meng & Stern 1996), and the annotations they replicate.

Replicated annotations: the same workers annotate the same tasks, and what they give is drawn anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpyro import handlers

from ...data import AnnotationError, Annotations
from ...data.errors import check_name, real_number, truth_value, whole_number
from ...models import Classifier, Story, TruthPrior, find_story
from ...models.parts.classifier import Network
from ...models.parts.emissions import Emission
from ...models.parts.kernels import FAST
from ..densities.enumerated import site_values
from ..densities.evidence import with_truth_prior
from ..densities.model import Model
from ..densities.prior import proper, with_fewer_pseudo_counts
from ..densities.programs import compiled, key_of
from ..densities.ready_programs import use_program_cache
from ..engines.progress import late_bar, told
from ..fit_story import refit
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior, posterior_of
from ..fitted.replicated_annotations import before_annotations
from .check_results import LEVEL, Checks, DiscrepancyResult
from .discrepancies import DISCREPANCIES, Discrepancy, Measure, of_function

NewTruth = Literal["prior", "posterior"]
DRAWS = (10, 50)  # of the parameters, at the least and at the most
NUMBERS = 1e7  # annotations in all replicates, about, where their number is not asked for
Discrepancies = str | Iterable[str] | Mapping[str, Discrepancy | Callable[[Annotations], Any]] | None


def check(
    fit: Posterior | Fitted,
    discrepancies: Discrepancies = None,
    *,
    draws: int | None = None,
    replicates: int = 10,
    truth: NewTruth = "posterior",
    weaker_prior: float | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Checks:
    r"""Posterior predictive checks: compare the annotations with replicates from the fitted story.

    The same workers annotate the same tasks again, :math:`\tilde y \sim p(y \mid z, \theta)`, with parameters and true
    labels drawn from the posterior. Discrepancies are then compared between observed and replicated annotations:

    - ``"annotations"``: how often each worker gave each class;
    - ``"votes"``: how many tasks have which largest share of annotations of one class;
    - ``"agreement"``: how often the two workers of each pair agree on the tasks that both annotated;
    - ``"majority"``: how often each worker agrees with the majority of a task's other workers.

    A p-value near 0 is misfit: the observed annotations deviate more than nearly all replicates. Each draw's replicates
    are compared with the annotations separately, and the p-value averages over the draws (realised discrepancies of
    Gelman, Meng & Stern 1996; :class:`.DiscrepancyResult`). It is conservative, since the posterior has seen the
    annotations: of right stories less than 5 % have a p-value under 0.05. A fit to a point is an exception: where
    workers have many parameters and few annotations, the mode fits the annotations too well, and right stories are
    rejected (Dawid-Skene by EM by ``"votes"`` in 3 of 8 data sets of 15 workers with 80 annotations each:
    ``benchmarks/checks.py``). Copied annotations show in ``"agreement"``, and :attr:`Checks.flagged` names the pairs;
    tasks that differ in difficulty show in ``"votes"``.

    A check can fail because of the prior alone, where that pulls the parameters away from what the annotations say.
    ``weaker_prior=0.1`` fits the story again by the same engine, with a tenth of the pseudo-counts of its Dirichlet
    priors, and ``table["cause"]`` tells prior-data conflict (the check passes then) from misfit (it fails again).

    Example:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> checks = cp.check(fit, ["votes", "agreement"], draws=5)
        >>> checks.table[["units", "n_flagged"]].loc["agreement"].tolist()
        [10, 0]

    Args:
        fit: a fit by any engine; before a story is rejected, use one with draws. Of a stack replicates are from each
            fit in proportion to its weight.
        discrepancies: names of the above, by default all that the annotations allow (the last two need named workers);
            or a mapping from names to functions of :class:`~crowdppl.Annotations`, which return a number, large where
            the annotations are unusual, or a series of numbers by unit. To combine both, take the above from
            ``DISCREPANCIES``. Functions see one row for each annotation, without counts.
        draws: how many draws of the parameters, from 1, spread evenly over the fit's; of a point the only one is
            repeated. None for 50, of more than 20,000 annotations fewer, down to 10, so that checks take about as long
            as a fit by EM.
        replicates: how many replicates of each draw, from 2.
        truth: the replicates' true labels: ``"posterior"``, drawn given the annotations once for each draw; or
            ``"prior"``, drawn anew from the truth prior for each replicate, as for tasks without annotations.
        weaker_prior: by what the concentrations of the story's Dirichlet priors are multiplied for a second fit,
            between 0 and 1; None for no second fit.
        seed: the same seed gives the same replicates.
        progress: whether to show a progress bar where it takes more than two seconds.

    Returns:
        The checks: ``.table`` with a p-value for each discrepancy, ``.units(name)`` and ``.flagged``.

    Raises:
        UnknownNameError: there is no discrepancy, or value of `truth`, of that name.
        AnnotationError: a discrepancy needs named workers, or annotations to compare, and there are none.
        ValueError: `draws`, `replicates` or `weaker_prior` is out of range, the fit is one of Pyro's and
            `weaker_prior` is given, no discrepancy is asked for, or a function returns other
            units or no number.
    """
    truth_value("progress", progress)
    replicates = whole_number("replicates", replicates, 2)
    check_name("value of truth", truth, get_args(NewTruth))
    if weaker_prior is not None:
        real_number("weaker_prior", weaker_prior, above=0, below=1)
    source = posterior_of(fit)
    design = source.annotations.expanded()
    if draws is None:
        draws = int(np.clip(NUMBERS / (replicates * max(design.n_rows, 1)), *DRAWS))
    draws = whole_number("draws", draws, 1)
    title = f"Posterior predictive checks of {source.story}: {draws} draws, {replicates} replicates of each"
    if truth == "prior":
        title += ", with true labels drawn from their prior"
    points = [fitted for fitted, _ in source.weighty if not fitted.has_draws]
    notes = (_point_note(points[0]),) if points else ()

    def compared(stories: list[tuple[Fitted, float]]) -> Checks:
        shares = np.diff(np.rint(draws * np.cumsum([0.0, *(weight for _, weight in stories)])).astype(int))
        new = (
            of_draw
            for i, ((fitted, _), share) in enumerate(zip(stories, shares, strict=True))
            for of_draw in from_posterior(fitted, design, int(share), replicates, truth, seed + i)
        )
        with late_bar("replicates", show=progress) as tell:
            return _compare(design, discrepancies, told(new, int(shares.sum()), tell), title, notes)

    checks = compared(source.weighty)
    if weaker_prior is None:
        return _with_advice(checks, source)
    weaker = [
        (refit(fitted.replace(model=with_fewer_pseudo_counts(fitted.model, weaker_prior)), fitted.annotations), weight)
        for fitted, weight in source.weighty
    ]
    p_weaker = {name: result.p_value for name, result in compared(weaker).results.items()}
    return replace(checks, p_weaker=p_weaker)


def _with_advice(checks: Checks, source: Posterior) -> Checks:
    """The checks with a note on how to tell misfit from the prior, where one fails and the story can be refitted."""
    failed = [name for name, result in checks.results.items() if result.p_value < LEVEL]
    if not failed or any(fitted.settings.get("backend") == "pyro" for fitted, _ in source.weighty):
        return checks
    note = (
        f"The prior alone can be why {' and '.join(failed)} fail{'s' if len(failed) == 1 else ''}: "
        "cp.check(fit, weaker_prior=0.1) fits the story again with a tenth of its pseudo-annotations and tells "
        "prior-data conflict from misfit."
    )
    return replace(checks, notes=(*checks.notes, note))


def _point_note(fitted: Fitted) -> str:
    """Return a caution about p-values from a fit without draws, a sentence."""
    how = {"em": "EM's mode", "svi": "the point of SVI with guide='delta'"}.get(fitted.method, "a point")
    return (
        f"The fit is {how}, which leaves out that the parameters are uncertain: p-values can be small for a right "
        'story with many parameters; confirm them with method="nuts".'
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
    r"""Prior predictive checks: compare the annotations with replicates from a story's priors, before it is fitted.

    As :func:`check`, with parameters and true labels drawn from their priors. The weights of a network without a prior
    are drawn as they start. A p-value near 0 says that hardly any parameters that the priors allow give annotations
    like these (Box 1980).

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        annotations: who annotated what.
        discrepancies: as for :func:`check`.
        draws: how many replicates, from 20, each with parameters of its own.
        classifier: as for :func:`crowdppl.fit`.
        truth_prior: as for :func:`crowdppl.fit`.
        seed: the same seed gives the same replicates.
        **hyperparameters: of the story.

    Returns:
        The checks: ``.table`` with a p-value for each discrepancy, ``.units(name)`` and ``.flagged``.

    Raises:
        UnknownNameError: there is no story or discrepancy of that name.
        AnnotationError: a discrepancy needs named workers, or annotations to compare, and there are none.
        StoryError: the story does not fit these annotations.
        ValueError: `draws` is less than 20, both a classifier and a truth_prior are given, or a function returns other
            units or no number.
    """
    draws = whole_number("draws", draws, 20)
    prior, design = with_truth_prior(annotations.expanded(), truth_prior, classifier)
    use_program_cache()
    model = Model(find_story(story), hyperparameters | ({} if prior is None else {"truth_prior": prior}))
    title = f"Prior predictive checks of {model.story.__name__}: {draws} replicates"
    return _compare(design, discrepancies, [from_prior(model, design, draws, seed)], title, ())


def _compare(
    design: Annotations, wanted: Discrepancies, replicates: Iterable[np.ndarray], title: str, notes: tuple[str, ...]
) -> Checks:
    """The checks by the wanted discrepancies, of replicates ``(M, A)`` for each draw in turn."""
    if not design.n_rows:
        raise AnnotationError("there are no annotations, so there is nothing to compare with replicates")
    first, design = design.n_classes if design.scored else 0, design.by_level()  # levels are compared as classes are
    chosen = _choose(wanted, design)
    measures = {name: discrepancy.prepare(design) for name, discrepancy in chosen.items()}
    observed = {name: _values(name, measure, np.asarray(design.label)) for name, measure in measures.items()}
    taken: dict[str, list[np.ndarray]] = {name: [] for name in measures}
    for of_draw in replicates:
        for name, measure in measures.items():
            values = [_values(name, measure, label) for label in of_draw - first]
            taken[name].append(np.stack(values))
    results = {}
    for name, discrepancy in chosen.items():
        measure, replicated = measures[name], np.stack(taken[name])
        results[name] = DiscrepancyResult(
            title=discrepancy.title,
            axis=discrepancy.axis,
            observed=observed[name],
            replicated=replicated,
            units=measure.units,
            size=measure.size,
            added_variance=discrepancy.added_variance,
        )
    left_out = {name: measure.left_out for name, measure in measures.items() if measure.left_out}
    notes += tuple(
        f"{name}: only the {len(observed[name]):,} largest units are compared; {n:,} smaller ones are left out."
        for name, n in left_out.items()
    )
    return Checks(title, results, notes)


def _choose(wanted: Discrepancies, annotations: Annotations) -> dict[str, Discrepancy]:
    """The wanted discrepancies by name; by default all that the annotations allow."""
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
        chosen = {name: DISCREPANCIES[check_name("discrepancy", name, DISCREPANCIES)] for name in wanted}
    if not chosen:
        raise ValueError(f"discrepancies={wanted!r} selects none; known by name are {', '.join(DISCREPANCIES)}")
    for name, discrepancy in chosen.items():
        if discrepancy.of_workers and not annotations.named:
            raise AnnotationError(
                f"{name} needs named workers, and the annotations name none; annotations and votes need no names"
            )
    return chosen


def _values(name: str, measure: Measure, label: np.ndarray) -> np.ndarray:
    """A discrepancy's values of annotations ``label (A,)``, by unit, checked: ``(U,)``, or ``(1,)`` without units."""
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


def from_posterior(
    fitted: Fitted, design: Annotations, draws: int, replicates: int, truth: NewTruth, seed: int
) -> Iterator[np.ndarray]:
    r"""Annotations :math:`\tilde y \sim p(y \mid \theta)` of the rows of ``design``: ``(replicates, A)`` for each draw.

    The draws are the fit's, evenly thinned or, where it has fewer, each taken several times; a point is one draw.
    """
    flat, available = fitted.flat_draws, int(np.prod(fitted.shape))
    data = fitted.data if design.mirrored is None else design  # orders are of the rows that the story is run with
    at_one = fitted.replace(source=jax.tree.map(jnp.asarray, data))
    rows = jax.tree.map(jnp.asarray, (design.worker, design.task))
    there, key = None, key_of(seed, FAST)
    for i in range(draws):
        if (which := i * available // draws) != there:
            at = _at(at_one.with_draws({name: value[which][None, None] for name, value in flat.items()}))
            there = which
        yield np.asarray(_replicate(at, *rows, key, np.int32(i), replicates, truth))


def from_prior(model: Model, design: Annotations, draws: int, seed: int) -> np.ndarray:
    """Annotations of the rows of ``design`` with parameters and true labels from their priors: ``(draws, A)``."""
    unannotated = jax.tree.map(jnp.asarray, design.replace(label=None, gold=None))
    return np.stack([_simulate(model, unannotated, key_of(seed, FAST), np.int32(i)) for i in range(draws)])


class _At(NamedTuple):
    """Distributions from which annotations are drawn, at one draw of the parameters."""

    emission: Emission
    posterior: Array  # (N, K) log-weights of the true labels given the annotations
    prior: Array  # (N, K) and before them


@compiled
def _at(fitted: Fitted) -> _At:
    """At the only draw of ``fitted``."""
    at = fitted.at(fitted.first_draw)
    return _At(at.likelihood.emission, at.log_joint, before_annotations(at, fitted.annotations))


@compiled(static=("replicates", "truth"))
def _replicate(
    at: _At, worker: Array | None, task: Array, key: Array, number: Array, replicates: int, truth: NewTruth
) -> Array:
    """Annotations of the rows, of one draw by its number: ``(replicates, A)``."""
    shared_key, own_key = jax.random.split(jax.random.fold_in(key, number))
    shared = jax.random.categorical(shared_key, at.posterior)

    def once(key: Array) -> Array:
        truth_key, annotation_key = jax.random.split(key)
        new = jax.random.categorical(truth_key, at.prior) if truth == "prior" else shared
        return at.emission.sample(annotation_key, worker, task, new[task])

    return jax.lax.map(once, jax.random.split(own_key, replicates))


@compiled(static=("model",))
def _simulate(model: Model, design: Annotations, key: Array, number: Array) -> Array:
    """Annotations of the rows of ``design``, of one draw by its number, ``(A,)``: everything from its prior."""
    key = jax.random.fold_in(key, number)
    started = handlers.substitute(substitute_fn=site_values({}))
    with handlers.trace() as sites, proper(), started, handlers.seed(rng_seed=key):
        model(design)
    return sites["annotation"]["value"]
