"""Parameters that data were simulated with lie in the posterior's intervals as often as these say."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom

import crowdppl as cp
from crowdppl import Classifier


def as_they_are(x):
    """A classifier whose logits are the features."""
    return x


def in_order_of_groups(fit, parameters):
    """Every parameter, the groups in the order in which their tables are nearest to the actual ones.

    Not the workers' tables: those of a group are one, and a row of it that missed its interval would count for each.
    """
    draws = dict(fit.outcome.draws)
    mean = draws["group_confusion"].mean((0, 1))
    orders = [list(order) for order in permutations(range(len(mean)))]
    nearest = min(orders, key=lambda order: np.square(mean[order] - parameters["group_confusion"]).sum())
    draws |= {
        "weights": draws["weights"][..., nearest],
        "group_confusion": draws["group_confusion"][:, :, nearest],
    }
    return {name: (value, parameters[name]) for name, value in draws.items()}


def every_parameter(fit, parameters):
    return {name: (draws, parameters[name]) for name, draws in fit.outcome.draws.items()}


STORIES = {
    "two_coin": ({"right": 3.0}, every_parameter),
    "dawid_skene": ({"diagonal": 3.0}, every_parameter),
    "difficulty": ({"truth_prior": Classifier(as_they_are)}, every_parameter),
    "annotator_groups": ({"membership": "worker", "groups": 2, "diagonal": 4.0}, in_order_of_groups),
    "common_individual": ({"diagonal": 3.0, "by_task": False}, every_parameter),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STORIES))
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_intervals_of_2000_tasks_hold_the_parameters_they_were_simulated_with(name):
    """Entries outside their 95 % interval: no more than in 999 of 1,000 binomial draws of as many at 5 %."""
    options, compared = STORIES[name]
    features = np.random.default_rng(0).normal(0, 1.5, (2000, 2))
    annotations, parameters = cp.simulate(
        name, n_tasks=2000, n_workers=20, annotations_per_task=5, features=features, seed=11, **options
    )
    fit = cp.fit(name, annotations, method="nuts", chains=2, warmup=400, draws=400, progress=False, **options)
    outside, n_entries = 0, 0
    for draws, actual in compared(fit, parameters).values():
        free = (Ellipsis, slice(0, -1)) if actual.ndim and np.allclose(actual.sum(-1), 1, atol=1e-4) else Ellipsis
        low, high = np.quantile(draws, [0.025, 0.975], axis=(0, 1))
        missed = (actual < low) | (actual > high)
        outside, n_entries = outside + int(missed[free].sum()), n_entries + missed[free].size
    assert n_entries >= 20
    assert outside <= binom.ppf(0.999, n_entries, 0.05), f"{outside} of {n_entries}"
