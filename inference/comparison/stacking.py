"""Averages of several stories, weighted by how well each predicts held-out data, and their draws as ArviZ's groups."""

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version

import numpy as np
import pandas as pd

from ...data.errors import check_name, real_number
from ..fitted.fitted import Fitted, label_draws
from ..fitted.misled import checked
from ..fitted.named_draws import NamedArrays, Variable, coords_of, parameter_arrays
from ..fitted.posterior import Posterior
from ..storage.arviz_groups import AFFORDABLE, FIT_GROUP, TRUTH_PROBABILITY, constants_of, observed_of, provenance
from .comparing import by_name, check_same_data, compare

CONFUSION = "worker_confusion"
"""The workers' confusion matrices in the draws, whatever the stories' own parameters are called."""


def averaged(
    fits: Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted],
    weights: Mapping[str, float] | pd.Series | None = None,
    *,
    votes: float = 0.0,
    misled: float | None = 0.0,
    power: float | None = None,
    **options: object,
) -> Posterior:
    """Average fits of the same annotations by stacking weights: see :func:`crowdppl.stack`."""
    named, votes = by_name(fits, least=2 if weights is None else 1), real_number("votes", votes, 0, below=1)
    misled = None if misled is None else checked(misled)
    if weights is None and power is not None:
        raise ValueError(f"power={power!r}: with a power the votes are one of the weights; give weights")
    if weights is None:
        comparison = compare(named, **options)  # type: ignore[arg-type]
        return Posterior(named, comparison["weight"].reindex(list(named)), comparison, votes=votes, misled=misled)
    if options:
        raise ValueError(
            f"weights are given, so nothing is compared; leave out {', '.join(map(repr, options))}, or weights"
        )
    check_same_data(named)
    power = None if power is None else real_number("power", power, above=0)
    return Posterior(named, _given(dict(weights), named), votes=votes, misled=misled, power=power)


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


def stacked_groups(averaged: Posterior) -> dict[str, NamedArrays]:
    """Groups of an average, each of whose fits has draws: see :meth:`crowdppl.Fit.to_idata`."""
    annotations = averaged.annotations
    parts = [fitted.thinned(max(1, round(averaged.n_mixture_draws * weight))) for fitted, weight in averaged.weighty]
    first = parts[0]
    shared = [name for name in first.draws if all(_is_like(name, first, other) for other in parts)]

    def mixture(values: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(values, axis=1)

    draws = {name: mixture([np.asarray(fitted.draws[name]) for fitted in parts]) for name in shared}
    posterior = parameter_arrays(draws, first.dims, annotations, first.model.hyperparameters)
    n_draws = sum(fitted.shape[1] for fitted in parts)
    posterior = posterior.with_more(coords={"chain": np.arange(1), "draw": np.arange(n_draws)})
    labels = ("task", "truth")
    if n_draws * annotations.n_tasks * annotations.n_classes <= AFFORDABLE:
        of_tasks: Variable = (("chain", "draw", *labels), mixture([label_draws(fitted) for fitted in parts]))
        posterior = posterior.with_more({TRUTH_PROBABILITY: of_tasks}, coords_of(annotations, labels))
    n_entries = annotations.n_workers * annotations.n_classes * annotations.n_categories
    if annotations.named and n_draws * n_entries <= AFFORDABLE:
        given = "verdict" if annotations.scored else "kind" if annotations.abstains else "annotation"
        by_worker = ("worker", "truth", given)
        of_workers: Variable = (("chain", "draw", *by_worker), mixture([fitted.confusion_draws for fitted in parts]))
        posterior = posterior.with_more({CONFUSION: of_workers}, coords_of(annotations, by_worker))
    return {
        "posterior": posterior.with_more(attrs=_provenance(averaged)),
        "observed_data": observed_of(annotations),
        "constant_data": constants_of(annotations),
        FIT_GROUP: NamedArrays(
            {"label_probability": (labels, averaged.posterior), "weight": (("story",), averaged.weights.to_numpy())},
            coords_of(annotations, labels) | {"story": np.array(list(averaged.weights.index))},
        ),
    }


def _is_like(name: str, one: Fitted, other: Fitted) -> bool:
    """Return whether both fits have a parameter, with the same dimensions and shape."""
    if name not in other.draws or one.dims[name] != other.dims[name]:
        return False
    return bool(np.shape(one.draws[name])[2:] == np.shape(other.draws[name])[2:])


def _provenance(averaged: Posterior) -> dict[str, str]:
    return {
        "inference_library": "crowdppl",
        "inference_library_version": version("crowdppl"),
        "story": averaged.story,
        "weights": json.dumps({str(name): float(weight) for name, weight in averaged.weights.items()}),
        "votes": str(averaged.votes),
        "misled": str(averaged.misled),
        "fits": json.dumps({name: provenance(fitted) for name, fitted in averaged.members.items()}),
    }
