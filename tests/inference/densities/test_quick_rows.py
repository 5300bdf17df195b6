"""Rows of Dirichlet distributions that are drawn without a loop are rows of Dirichlet distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta, kstest

from crowdppl.inference.densities.prior import quick_rows


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("concentration", [[0.3, 0.3, 0.3], [1.0, 1.0], [3.0, 0.5, 1.0, 20.0]])
def test_each_entry_has_its_beta_distribution(concentration, generator):
    rows = jnp.broadcast_to(jnp.array(concentration), (20_000, len(concentration)))
    drawn = np.asarray(quick_rows(jax.random.key(1, impl=generator), rows), float)
    np.testing.assert_allclose(drawn.sum(-1), 1.0, atol=1e-5)
    for k, a in enumerate(concentration):
        assert kstest(drawn[:, k], beta(a, sum(concentration) - a).cdf).pvalue > 0.001
