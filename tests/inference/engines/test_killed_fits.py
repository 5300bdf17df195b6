"""A fit that is killed at random moments and resumed has the bits of one that was never stopped."""

import os

import numpy as np
import pytest
from killed_fits import assert_same, killed, read, start

KILLS = int(os.environ.get("CROWDPPL_KILLS", "200"))
"""Kills of the slow suite in all, over engines, stories and backends."""

NUTS = {"method": "nuts", "warmup": 100, "draws": 100, "chains": 2}
LONG = {"tolerance": 0.0, "max_iterations": 400}
GROUPS = {
    "em": [
        {"story": "dawid_skene", "classes": 3, "options": LONG | {"restarts": 2}},
        {"story": "item_response", "options": LONG},
        {"story": "annotator_groups", "options": LONG | {"membership": "worker"}},
        {"story": "dawid_skene", "features": True, "options": {**LONG, "classifier": "logistic"}},
    ],
    "em in minibatches": [
        {"story": "crowd_layer", "features": True, "options": {"classifier": "mlp", "epochs": 40, "held_out": 0.2}},
        {"story": "glad", "options": {"epochs": 60, "batch_size": 8}},
    ],
    "svi": [
        {"story": "dawid_skene", "classes": 3, "options": {"method": "svi", "max_iterations": 400, "draws": 20}},
        {"story": "glad", "options": {"method": "svi", "max_iterations": 300, "draws": 20, "batch_size": 9}},
        {"story": "mace", "options": {"method": "svi", "max_iterations": 300, "draws": 20, "guide": "low_rank"}},
    ],
    "nuts": [
        {"story": "dawid_skene", "classes": 3, "options": NUTS},
        {"story": "item_response", "options": NUTS},
        {"story": "hierarchical_dawid_skene", "options": NUTS | {"chains": 3}},
    ],
    "pyro": [
        {"story": "dawid_skene", "options": {"backend": "pyro", "tolerance": 0.0, "max_iterations": 60}},
        {"story": "hierarchical_dawid_skene", "options": {"backend": "pyro", "tolerance": 0.0, "max_iterations": 30}},
        {
            "story": "two_coin",
            "features": True,
            "module": True,
            "options": {"backend": "pyro", "epochs": 20, "batch_size": 8, "held_out": 0.2},
        },
        {
            "story": "dawid_skene",
            "options": {"backend": "pyro", "method": "svi", "max_iterations": 300, "draws": 10},
        },
        {
            "story": "two_coin",
            "features": True,
            "module": True,
            "options": {"backend": "pyro", "method": "svi", "max_iterations": 200, "draws": 10, "batch_size": 9},
        },
        {"story": "dawid_skene", "options": NUTS | {"backend": "pyro"}},
    ],
    "scan": [
        {"story": "dawid_skene", "rows": 30, "options": {"tolerance": 0.0, "max_iterations": 40}},
        {"story": "worker_clusters", "rows": 30, "options": {"tolerance": 0.0, "max_iterations": 30}},
        {"story": "dawid_skene", "rows": 30, "options": {"step": "stochastic", "epochs": 20}},
        {"story": "one_coin", "rows": 30, "options": {"method": "svi", "max_iterations": 200, "draws": 10}},
    ],
}
"""Jobs by what they have in common."""


def test_em_svi_and_nuts_killed_at_random_moments_go_on_to_the_same_bits(tmp_path):
    """One story, as the compiled programs are what takes time; the slow test has the others."""
    jobs = [
        {"story": "one_coin", "options": LONG},
        {"story": "one_coin", "options": {"method": "svi", "max_iterations": 200, "draws": 10}},
        {"story": "one_coin", "options": NUTS | {"warmup": 60, "draws": 60}},
    ]
    start(tmp_path / "whole", jobs, keeps=False)
    rounds, n_kills = killed(tmp_path, jobs, np.random.default_rng(), n_kills=3)
    for resumed in rounds:  # more than one where a kill came after its job was over
        for number in range(len(jobs)):
            assert_same(read(tmp_path / "whole", number)[0], read(resumed, number)[0])
    assert n_kills >= 3


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_engines_over_stories_and_backends_killed_at_random_moments_go_on_to_the_same_bits(tmp_path, group):
    if group == "pyro":
        pytest.importorskip("pyro")
    jobs = GROUPS[group]
    start(tmp_path / "whole", jobs, keeps=False)
    rounds, n_kills = killed(tmp_path, jobs, np.random.default_rng(), -(-KILLS // len(GROUPS)))
    for resumed in rounds:
        for number in range(len(jobs)):
            assert_same(read(tmp_path / "whole", number)[0], read(resumed, number)[0])
    print(f"{group}: {n_kills} kills in {len(rounds)} rounds")  # noqa: T201  # seen with -s
    assert n_kills >= KILLS // len(GROUPS)
