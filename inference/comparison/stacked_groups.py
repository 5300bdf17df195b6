"""ArviZ's groups of an average of fits: draws of the mixture of its stories."""

import json
from importlib.metadata import version

import numpy as np

from ..fitted.fitted import Fitted, label_draws
from ..fitted.named_draws import NamedArrays, Variable, coords_of, parameter_arrays
from ..fitted.posterior import Posterior
from ..storage.arviz_groups import AFFORDABLE, FIT_GROUP, TRUTH_PROBABILITY, constants_of, observed_of, provenance

CONFUSION = "worker_confusion"
"""The workers' confusion matrices in the draws, whatever the stories' own parameters are called."""


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
        by_worker = ("worker", "truth", "kind" if annotations.abstains else "annotation")
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
