r"""Weight of the story's prior on a worker before any annotation, as a number of annotations.

A Dirichlet prior on a row of a confusion matrix counts like as many annotations as its concentrations sum to. Where
the workers' matrices have a Dirichlet prior, its concentrations are read off the story; for any other story,
accuracies are drawn from the prior.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.description import count_text
from ...data.id_text import name_quoted
from ...data.questions import workers_noun
from ...models.parts.abstaining import SITE
from ...models.parts.general import hyperparameters_of
from ...models.parts.kernels import FAST
from ...models.parts.own_classes import own_of_tasks
from ..densities.enumerated import Site, run_enumerated, site_values
from ..densities.padded_sites import dirichlet_of, is_table
from ..densities.prior import quick_rows
from ..densities.programs import compiled, keys_of
from ..fitted.fitted import Fitted
from ..fitted.learned_prior import LEARNED
from .facts import listed
from .of_crowd import tables_of
from .register import Said, check

DRAWS = (50, 200)  # from the prior, at the least and at the most, where its moments are estimated
CLOSE = 1e-3  # relatively, of weights that are one number
MOVED = 0.05  # by which a prior moves the median worker's accuracy, from which it is warned of
MOVED_MUCH = 0.03  # the same, if it is more than a standard error, where it outweighs hardly anybody
MOVED_RARE = 0.03  # by which it moves the same of a rare class
RARE = 0.5  # of an equal share of the annotations, below which a class is rare
FEW = 5  # tasks of a class at the least, for something to be said of it
WEAKENED = ("diagonal", "off_diagonal", "right", "wrong")  # options of which smaller ones are a weaker prior
ENTRIES = 4e6  # of confusion matrices drawn, about
OF_ROWS = (("worker", "class", "annotation"), ("worker", "annotation"))
"""Dimensions of sites that are the workers' confusion matrices, or one row of each."""


@dataclass(frozen=True, eq=False)
class WorkerPrior:
    """The prior of the workers' confusion matrices.

    Args:
        weight: pseudo-annotations of each worker, ``(J,)``.
        accuracy: of each worker, as the prior expects it where all classes are equally frequent, ``(J,)``.
        is_exact: whether the weight is a sum of concentrations; else it is estimated from draws.
    """

    weight: np.ndarray
    accuracy: np.ndarray
    is_exact: bool

    def text(self, annotations: Annotations) -> str:
        """In words, medians over the workers, beside how many annotations they gave."""
        n_by_worker, noun = annotations.of_classes().n_by_worker(), workers_noun(annotations.workers)
        weight, accuracy, given = (float(np.median(value)) for value in (self.weight, self.accuracy, n_by_worker))
        about = "" if self.is_exact else "about "
        least, most = self.weight.min(), self.weight.max()
        ends = f" ({_number(least)} to {_number(most)})" if self.is_exact and most > (1 + CLOSE) * least else ""
        return (
            f"{about}{pseudo_annotations(weight)} a {noun}{ends}, expected accuracy {accuracy:.2f}; "
            f"the median {noun} gave {count_text(round(given), 'annotation')}"
        )


def pseudo_annotations(weight: float) -> str:
    """A number of pseudo-annotations, in words.

    >>> pseudo_annotations(4.5), pseudo_annotations(92.0)
    ('4.5 pseudo-annotations', '92 pseudo-annotations')
    """
    number = _number(weight)
    return f"{number} pseudo-annotation{'' if number == '1' else 's'}"


def _number(weight: float) -> str:
    return f"{weight:.1f}".removesuffix(".0") if weight < 10 else f"{weight:,.0f}"


def worker_prior(fitted: Fitted) -> WorkerPrior | None:
    r"""Return the weight of the prior on a worker's confusion matrix, in annotations, and its expected accuracy.

    Where rows are :math:`\beta_{jk} \sim \text{Dirichlet}(\gamma_{jk})`, the weight is
    :math:`\sum_{kl} \gamma_{jkl}` and the expected accuracy :math:`\frac1K \sum_k \gamma_{jkk} / \sum_l \gamma_{jkl}`;
    concentrations that depend on other parameters are taken at these parameters' posterior mean. For other stories the
    mean :math:`m` and the variance :math:`v` of a worker's accuracy are estimated from draws of the prior; the weight
    is then the weight of a Beta distribution with this mean and variance, :math:`m (1 - m) / v - 1`. Abstentions are
    left out here: the frequency of a worker's abstentions has its own prior.

    Returns:
        the prior; None where no worker is named, where nothing can be drawn from the prior of a parameter, and where it
        leaves a worker's accuracy no spread.
    """
    if not fitted.annotations.named:
        return None
    if (exact := exact_worker_prior(fitted)) is not None:
        return exact
    try:
        found = _estimated(_of_classes(fitted))
    except NotImplementedError:  # an improper prior
        return None
    return found if np.isfinite(found.weight).all() else None


def exact_worker_prior(fitted: Fitted) -> WorkerPrior | None:
    """Return the worker prior without draws, where the workers' matrices have a Dirichlet prior; else None."""
    if (concentration := _row_concentrations(fitted)) is None:
        return None
    total = concentration.sum(-1)
    right = np.diagonal(concentration, axis1=-2, axis2=-1)
    return WorkerPrior(total.sum(-1), (right / total).mean(-1), is_exact=True)


def _row_concentrations(fitted: Fitted) -> np.ndarray | None:
    """The concentrations of workers' rows, ``(J, K, L)``, where their matrices have a Dirichlet prior; else None."""
    if not fitted.annotations.named or not any(dims in OF_ROWS for dims in fitted.dims.values()):
        return None
    fitted, n = _of_classes(fitted), fitted.annotations.n_workers
    priors, confusions = jax.tree.map(lambda value: np.asarray(value, float)[:n], _row_priors(_at_mean(fitted.at_size)))
    return _concentration(priors, confusions)


@check("rare_class", "prior", needs={"story", "workers"})
def rare_class(of: Fitted) -> Iterator[Said]:
    """A rare class on which the prior expects workers to err more than they do elsewhere, as a note.

    Of the median worker the row of that class is moved by more than 3 points from what the annotations of other classes
    show, as in :func:`outweighed`. Errors on frequent tasks then look like tasks of the rare class, and its share of
    the labels is too large. Of several classes it is said once, with the figures of the one that is moved
    the most.
    """
    tables, concentration = tables_of(of), _row_concentrations(of)
    if tables is None or concentration is None or concentration.shape != tables.shape:
        return
    if own_of_tasks(of.annotations) is not None:  # a class that few questions have is rare over all of them
        return
    n = tables.sum(-1)
    asked, share = n.sum(1) > 0, n.sum(0) / max(n.sum(), 1e-9)
    tasks, right = np.asarray(of.posterior, float).sum(0), np.trace(tables, axis1=1, axis2=2).sum()
    weight = concentration.sum(-1)
    expected = np.diagonal(concentration, axis1=1, axis2=2) / weight
    names = () if of.outcome.facts.get("learned") else ("diagonal", "off_diagonal")
    options = " and ".join(f"{name}={LEARNED!r}" for name in names if name in _options(of))
    learned = f"with {options}, by which workers are about as right on it as elsewhere, " * bool(options)
    classes, found = list(of.annotations.classes), []
    for k in np.flatnonzero((share < RARE / len(share)) & (tasks >= FEW)).tolist():
        elsewhere = float((right - tables[:, k, k].sum()) / max(n.sum() - n[:, k].sum(), 1e-9))
        drawn = weight[:, k] / (weight + n)[:, k] * (expected[:, k] - elsewhere)
        moved = float(np.median(drawn[asked]))
        if moved < -MOVED_RARE:
            found.append((moved, k, elsewhere))
    if not found:
        return
    (moved, k, elsewhere), *others = sorted(found)
    given, row, accuracy = (float(np.median(x[asked, k])) for x in (n, weight, expected))
    so_others = [classes[other] for _, other, _ in others]
    so = f"; so it is with {'another class' if len(others) == 1 else f'{len(others):,} other classes'}" * bool(others)
    so += f", {listed(so_others)}" * bool(others)
    these = "these classes" if others else "this class"
    yield Said(
        f"by the labels {tasks[k] / len(of.posterior):.0%} of the tasks are of the class {name_quoted(classes[k])}, "
        f"and how many are follows the prior, too: the median worker gave {count_text(round(given), 'annotation')} of "
        f"them, beside {pseudo_annotations(row)} of the prior, which expects {accuracy:.0%} of them to be right, where "
        f"{elsewhere:.0%} of the others are{so}. Errors on other tasks may pass for tasks of {these}, and what workers "
        f"are worth on {'them' if others else 'it'} is hardly known",
        f"compare with one_coin, which has one accuracy for all classes, {learned}and with gold labels",
        {"class": classes[k], "annotations": given, "weight": row, "moved": moved, "others": so_others},
        "note",
    )


@check("outweighed", "prior", needs={"story", "workers"})
def outweighed(of: Fitted) -> Iterator[Said]:
    r"""A prior that counts for more than the annotations do, of half of the workers, or that moves them far.

    It is a warning where the prior expects another accuracy :math:`a` than that of all annotations by the labels, so
    that the median worker's is moved by more than 5 points: :math:`g_j / (g_j + n_j)` of the difference, with weight g
    and n annotations. Where it outweighs fewer workers, and nobody gave it, it is one from 3 points and a standard
    error :math:`\sqrt{a (1 - a) / (g_j + n_j)}` on, by which intervals hold less than they say: of thirty classes and
    a hundred annotations a worker 90 % intervals held half. Of sixteen open crowds by Dawid and Skene's story it is
    said of labelme alone, and of none of nine healthy shapes (the most is half of a standard error). Else it is a note,
    as on crowds of ten classes with the default prior, which expects what they show.
    """
    prior = exact_worker_prior(of)
    if prior is None:
        return
    given = (of.annotations.of_classes() if of.sampled_from is None else of.sampled_from).n_by_worker()
    asked, noun = given > 0, workers_noun(of.annotations.workers)
    few = asked & (prior.weight > given)
    if not asked.any():
        return
    total = (prior.weight + given)[asked]
    right, outweighs = _accuracy_by_labels(of), 2 * few.sum() >= asked.sum()
    moved = float(np.median(prior.weight[asked] / total * (prior.accuracy[asked] - right)))
    error = float(np.median(np.sqrt(right * (1 - right) / total)))
    is_moved = abs(moved) > (MOVED if outweighs else max(MOVED_MUCH, error))
    if not outweighs and (not is_moved or _was_given(of)):
        return
    weight, accuracy, median = (float(np.median(x)) for x in (prior.weight, prior.accuracy, given[asked]))
    as_right = _concentrations(of, weight, right) if is_moved else {}
    said = f"outweighs the annotations of {few.sum():,} of {count_text(int(asked.sum()), noun)}"
    yield Said(
        f"the prior {said if outweighs else 'moves accuracies by more than their standard error'}: it counts like "
        f"{pseudo_annotations(weight)} a {noun} with accuracy {accuracy:.2f}, and the median {noun} gave "
        f"{median:,.0f}; accuracies are drawn to it, by {100 * moved:+.0f} points in the median",
        _remedy(of, as_right),
        {
            "weight": weight,
            "accuracy": accuracy,
            "annotations": median,
            "few": few.sum(),
            "asked": asked.sum(),
            "moved": moved,
            **as_right,
        },
        "warning" if is_moved else "note",
    )


def _accuracy_by_labels(fitted: Fitted) -> float:
    """The share of the annotations of classes that is right by the labels' probabilities."""
    data = fitted.annotations.of_classes()
    right = np.asarray(fitted.posterior, float)[np.asarray(data.task), np.asarray(data.label)]
    return float(np.average(right, weights=None if data.count is None else np.asarray(data.count, float)))


def _of_classes(fitted: Fitted) -> Fitted:
    """The fit of the annotations that are classes, as if nobody had abstained, at the same parameters."""
    if not fitted.annotations.abstains:
        return fitted
    draws = {name: value for name, value in fitted.draws.items() if name != SITE}
    return fitted.with_draws(draws).with_data(fitted.annotations.of_classes())


def _options(fitted: Fitted) -> list[str]:
    """Return the story's options of which smaller ones are a weaker prior."""
    import inspect

    return [name for name in WEAKENED if name in inspect.signature(fitted.model.story).parameters]


def _was_given(fitted: Fitted) -> bool:
    """Return whether one of these options has another value than the story's own."""
    own, used = hyperparameters_of(fitted.model.story), fitted.model.hyperparameters
    return any(used.get(name, own[name]) != own[name] for name in _options(fitted))


def _concentrations(fitted: Fitted, weight: float, accuracy: float) -> dict[str, float]:
    """Return options of as much weight that expect an accuracy; none of a story that does not take them."""
    n_classes = fitted.annotations.n_classes
    known = {"diagonal", "off_diagonal"} <= set(_options(fitted)) and own_of_tasks(fitted.annotations) is None
    if not known or fitted.model.hyperparameters.get("history") is not None:
        return {}
    row = weight / n_classes
    found = {"diagonal": row * accuracy, "off_diagonal": row * (1 - accuracy) / (n_classes - 1)}
    return {name: float(f"{value:.2g}") for name, value in found.items()}


def _remedy(fitted: Fitted, as_right: dict[str, float]) -> str:
    """Return advice, in words, on the story's options that weaken the prior, or expect what the labels say."""
    if as_right:
        given = ", ".join(f"{name}={value:g}" for name, value in as_right.items())
        return (
            f"{given} expect the accuracy of the annotations by the labels; a story with fewer parameters a worker, "
            "such as one_coin, needs fewer annotations"
        )
    if fitted.outcome.facts.get("learned"):
        return (
            "it was learned, so that workers are taken for about as alike, and intervals of theirs are too narrow "
            "where the rows of one have more in common than its prior says, as those of an able worker: one_coin has "
            "one accuracy a worker"
        )
    names = _options(fitted)
    smaller = f"Smaller {' and '.join(f'{name}=' for name in names)} weaken it" if names else "A weaker prior helps"
    return f"{smaller}; a story with fewer parameters a worker, such as one_coin, needs fewer annotations"


def _at_mean(fitted: Fitted) -> Fitted:
    """The fit at one draw, the mean of all."""
    return fitted.with_draws({name: np.asarray(value).mean((0, 1))[None, None] for name, value in fitted.draws.items()})


@compiled(once=True)
def _row_priors(fitted: Fitted) -> tuple[list[tuple[Array, Array]], Array]:
    """Of sites that are rows of probabilities of each worker the concentrations and values, and the confusion matrices.

    ``(J, K, L)``, or ``(J, L)`` of a site that is one row, at the fit's first draw.
    """
    parameters = fitted.first_draw | fitted.fixed
    sites, by_task = run_enumerated(fitted.model, fitted.annotations, site_values(parameters))
    confusions = by_task["annotation"]["fn"].emission.confusions(fitted.annotations)
    of_rows = [site for site in sites.values() if site["type"] == "sample" and is_table(site)]
    shapes = (confusions.shape, confusions[:, 0].shape)
    return [
        (jnp.broadcast_to(dirichlet_of(site["fn"]).concentration, site["fn"].shape()), site["value"])
        for site in of_rows
        if site["fn"].shape() in shapes
    ], confusions


def _concentration(priors: list[tuple[np.ndarray, np.ndarray]], confusions: np.ndarray) -> np.ndarray | None:
    """The concentrations of the rows of confusion matrices, ``(J, K, L)``; None where something else makes them too."""
    rows = {}  # by class
    for concentration, value in priors:
        if value.shape == confusions.shape and np.allclose(value, confusions, atol=1e-5):
            return concentration
        for k in range(confusions.shape[1]):
            if k not in rows and value.ndim == 2 and np.allclose(value, confusions[:, k], atol=1e-5):
                rows[k] = concentration
                break  # a site is the row of one class
    return np.stack([rows[k] for k in sorted(rows)], axis=1) if len(rows) == confusions.shape[1] else None


def _estimated(fitted: Fitted) -> WorkerPrior:
    entries = fitted.annotations.n_workers * fitted.annotations.n_classes**2
    n_draws = int(np.clip(ENTRIES / entries, *DRAWS))
    keys = keys_of(0, n_draws, FAST)
    drawn = np.asarray(_accuracies(_at_mean(fitted.at_size), keys), float)[:, : fitted.annotations.n_workers]
    mean, variance = drawn.mean(0), drawn.var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = mean * (1 - mean) / variance - 1
    return WorkerPrior(np.maximum(weight, 0.0), mean, is_exact=False)


@compiled
def _accuracies(fitted: Fitted, keys: Array) -> Array:
    """Accuracies of the workers in draws from the prior, ``(draw, J)``; what has no prior is as it was fitted."""

    of_fixed = site_values(fitted.fixed)

    def of_draw(key: Array) -> Array:
        of_tables, of_others = jax.random.split(key)

        def value(site: Site) -> Array | None:
            if not is_table(site) or site["name"] in fitted.fixed:
                return of_fixed(site)
            concentration = jnp.broadcast_to(dirichlet_of(site["fn"]).concentration, site["fn"].shape())
            return quick_rows(jax.random.fold_in(of_tables, crc32(site["name"].encode())), concentration)

        _, by_task = run_enumerated(fitted.model, fitted.annotations, value, of_others)
        confusions = by_task["annotation"]["fn"].emission.confusions(fitted.annotations)
        return jnp.diagonal(confusions, axis1=-2, axis2=-1).mean(-1)

    return jax.lax.map(of_draw, keys)
