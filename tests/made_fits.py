"""Fits that are made and not fitted, for what is drawn or counted of them."""

import numpy as np

import crowdppl as cp


def changed(fit, **changes):
    """A fit with other fields of what it holds; another engine than EM says that its draws are no point."""
    fitted = fit.fitted.replace(**changes)
    if "method" in changes:
        fitted = fitted.replace(outcome=fitted.outcome._replace(is_point=changes["method"] == "em"))
    return cp.Fit.of(fitted)


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
    outcome = like.outcome._replace(draws=drawn, is_point=draws == 1)
    return changed(like, source=annotations, outcome=outcome, stored_posterior=posterior)
