"""Fits that are made and not fitted, for what is drawn or counted of them."""

import numpy as np

import crowdppl as cp


def made_fit(like, annotations, *, draws):
    """A fit of Dawid and Skene's story whose tables are drawn at random and whose posterior is smoothed votes."""
    rng = np.random.default_rng(0)
    k, shape = annotations.n_classes, (1, draws)
    tables = rng.dirichlet(np.ones(k), (annotations.n_workers, k)) * 20 + 0.5
    drawn = {
        "prevalence": rng.dirichlet(np.full(k, 50.0), shape).astype(np.float32),
        "confusion": np.array(
            [[[rng.dirichlet(row) for row in table] for table in tables] for _ in range(draws)], dtype=np.float32
        )[None],
    }
    votes = annotations.votes() + rng.uniform(0.05, 1, (annotations.n_tasks, k))
    posterior = (votes**2 / (votes**2).sum(-1, keepdims=True)).astype(np.float32)
    outcome = like.outcome._replace(draws=drawn)
    return cp.Fit(like.model, annotations, like.method, like.settings, outcome, posterior, like.dims)
