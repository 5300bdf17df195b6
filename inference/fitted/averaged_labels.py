r"""Label probabilities averaged over what the parameters may be, where the data do not tell these well.

At a mode, :math:`P(z_i = k \mid \hat\theta, y)` takes the parameters for known. Of five workers with five classes on a
hundred tasks they are not, and labels of which three in four are right are said to be right in nineteen of twenty. So
where there are fewer than :data:`THIN` annotations for each free parameter, and it is little work, the probabilities
are averaged over draws after sweeps of data augmentation (:func:`.sweeps.swept_from`), as those of SVI are; mode and
log-posterior stay what they are. Elsewhere it is not taken: from there on it moves labels of ``dawid_skene`` and
``one_coin`` by .02 at the most; of ``graded_response``, whose abilities are told less well than as many probabilities,
it may move them by more (``benchmarks/averaged_labels.py``).
"""

from typing import Any, NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ..densities.augmented import has_parts
from ..densities.programs import key_of
from ..densities.sites import parameter_names
from ..densities.sweeps import FEW_ROWS, swept_from
from . import by_batch
from .fitted import Fitted, apart, label_posteriors
from .misled import told_label

NOISY = 0.03  # distance of labels by where their sweeps began, over which more chains are taken
THIN = 30  # annotations for each free parameter, from which on labels at the mode are as sure as the average


class AveragedLabels(NamedTuple):
    """Label probabilities averaged over sweeps, and what they are made of.

    Args:
        posterior: ``(N, K)``.
        facts: the sweeps of each chain, the number of chains, annotations for each parameter, the mean of the largest
            probabilities of the tasks at the mode and averaged, and how far they are apart by where the sweeps began,
            by name.
    """

    posterior: np.ndarray
    facts: dict[str, Any]


def averaged_labels(fitted: Fitted, at_mode: np.ndarray) -> AveragedLabels | None:
    """Return the averaged label probabilities of a fit by EM; None where there are none.

    Args:
        fitted: at its mode; its setting ``sweeps`` is the number, None for fifteen where data are thin, 0 for none.
        at_mode: its label probabilities there, ``(N, K)``.
    """
    sweeps = fitted.settings.get("sweeps")
    if sweeps == 0 or all_told(fitted):
        return None
    seen = fitted.at_size
    per_parameter = float(counts(fitted.annotations).sum()) / max(n_free(fitted, seen.annotations), 1)
    if sweeps is None and per_parameter >= THIN:
        return None
    mode = {name: np.asarray(value)[0, 0] for name, value in seen.draws.items()}
    key = key_of(fitted.settings["seed"])
    found = None
    for found in swept_from(fitted.model, seen.annotations, mode, seen.fixed, key, sweeps=sweeps):
        half = len(next(iter(found.draws.values()))) // 2
        halves = {name: value[: 2 * half].reshape(2, half, *value.shape[1:]) for name, value in found.draws.items()}
        by_start = label_posteriors(seen.with_draws(halves))[:, : fitted.annotations.n_tasks]
        if apart(by_start) <= NOISY:
            break
    if found is None:
        return None
    posterior = by_start.mean(0)
    facts = {"sweeps": found.sweeps, "chains": found.chains, "per_parameter": per_parameter}
    facts |= {"sure_at_mode": float(at_mode.max(-1).mean()), "sure": float(posterior.max(-1).mean())}
    facts["apart"] = apart(by_start)
    return AveragedLabels(posterior, facts)


def are_at_mode(fitted: Fitted) -> bool:
    """Return whether a fit's label probabilities are those at its mode, by its settings and the size of its data."""
    if fitted.method != "em" or not fitted.outcome.is_point:
        return False
    sweeps = fitted.settings.get("sweeps")
    return sweeps == 0 or (sweeps is None and fitted.annotations.n_rows > FEW_ROWS)


def averaged_from_files(fitted: Fitted) -> Fitted:
    """Return a fit by EM of so few annotations in files that they may be read for it, with averaged labels if any.

    They are those that a fit of the same annotations in memory has.
    """
    annotations = None if fitted.files is None else fitted.files.all_of_few(FEW_ROWS)
    if annotations is None:
        return fitted
    here = fitted.replace(source=annotations)
    averaged = averaged_labels(here, label_posteriors(here)[0])
    if averaged is None:
        return fitted
    facts = {**fitted.outcome.facts, **averaged.facts}
    sums = by_batch.sums_of(averaged.posterior, annotations)
    outcome = fitted.outcome._replace(facts=facts)
    return fitted.replace(outcome=outcome, stored_posterior=averaged.posterior, stored_sums=sums)


def thin_at_mode(fitted: Fitted) -> float | None:
    """Return how many annotations there are for each parameter where they are few and labels are those at the mode.

    None for other fits, and for one that was told all labels. It is for data of so many annotations, or so much work,
    that labels are averaged only where sweeps are asked for.
    """
    if (
        fitted.method != "em"
        or fitted.settings.get("sweeps") is not None
        or "sweeps" in fitted.outcome.facts
        or has_parts(fitted.model)
        or fitted.model.has_network
        or all_told(fitted)
    ):
        return None
    files = fitted.files
    seen = fitted.at_size.annotations if files is None else files.like
    per_parameter = fitted.whole.n_annotations / max(n_free(fitted, seen), 1)
    return per_parameter if per_parameter < THIN else None


def all_told(fitted: Fitted) -> bool:
    """Return whether a fit in memory was told the label of each task, so that none is left to be sure of."""
    return fitted.files is None and bool((told_label(fitted.annotations) >= 0).all())


def n_free(fitted: Fitted, seen: Annotations) -> int:
    """Return how many numbers the parameters are, of each row of probabilities one less than it has.

    Args:
        seen: its annotations, of which sizes does not matter: those of the ladder share what is known of the story.
    """
    tables = parameter_names(fitted.model, seen).tables
    sizes = {name: np.shape(value)[2:] for name, value in fitted.draws.items()}
    return sum(int(np.prod(size)) - (int(np.prod(size[:-1])) if name in tables else 0) for name, size in sizes.items())
