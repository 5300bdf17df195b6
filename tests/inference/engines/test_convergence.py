"""R̂ and effective sample sizes are ArviZ's, of all entries at once, and what users are warned about follows them."""

import time
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr

from crowdppl.inference.engines import diagnostics
from crowdppl.inference.engines.convergence import convergence
from crowdppl.inference.engines.diagnostics import sampling_warnings, smallest_ess, worst_rhat

FINE = {"diverging": np.zeros((4, 500), bool), "tree_depth": np.full((4, 500), 3)}


def arviz_scores(draws):
    """ArviZ's R̂ and bulk and tail effective sample sizes of ``draws (chain, draw, entry)``, by either of its lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as az

        data = xr.Dataset({"x": (("chain", "draw", "entry"), draws)})
        if int(version("arviz").partition(".")[0]) == 0:
            found = (az.rhat(data), az.ess(data, method="bulk"), az.ess(data, method="tail"))
        else:
            tree = xr.DataTree.from_dict({"posterior": data})
            found = (az.rhat(tree), az.ess(tree, method="bulk"), az.ess(tree, method="tail"))
    return [np.asarray(scores["x"]) for scores in found]


def autoregressive(rng, correlation, *, chains=4, draws=200, entries=20):
    """Draws ``(chain, draw, entry)`` of which each depends on the one before."""
    x = rng.normal(size=(chains, draws, entries))
    for t in range(1, draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * x[:, t]
    return x


@pytest.mark.parametrize("correlation", [0.0, 0.9, -0.7])
@pytest.mark.parametrize(("chains", "draws"), [(4, 200), (2, 101), (3, 7), (2, 4), (4, 5), (2, 6)])
def test_the_numbers_are_those_of_arviz(chains, draws, correlation):
    x = autoregressive(np.random.default_rng(0), correlation, chains=chains, draws=draws)
    x[0, :, :5] += 1.0  # a chain that is elsewhere
    x[:, :, 5:10] = np.round(x[:, :, 5:10])  # ties
    for ours, theirs in zip(convergence(x.transpose(2, 0, 1)), arviz_scores(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


def test_one_chain_is_compared_with_itself():
    x = np.random.default_rng(0).normal(size=(1, 1, 200))
    assert convergence(x).rhat < 1.02
    x[..., 100:] += 3.0
    assert convergence(x).rhat > 1.5


def test_equal_draws_have_no_rhat_and_stuck_chains_an_infinite_one():
    assert np.isnan(convergence(np.ones((1, 4, 50))).rhat)
    assert np.isinf(convergence(np.broadcast_to(np.arange(4.0)[:, None], (1, 4, 50))).rhat)
    assert np.isnan(convergence(np.ones((1, 4, 3)))).all()


def test_heavy_tails_and_scales_that_differ_are_seen():
    """Two chains of one mean and another spread: the classic R̂ is 1; the folded draws differ."""
    x = np.random.default_rng(0).normal(size=(1, 2, 500)) * np.array([1.0, 5.0])[:, None]
    assert convergence(x).rhat > 1.1


def dataset(draws):
    return xr.Dataset({"x": (("chain", "draw", "entry"), draws)}, coords={"entry": np.arange(draws.shape[-1]) + 100})


def test_the_worst_entry_is_named():
    x = np.random.default_rng(0).normal(size=(4, 500, 30))
    x[0, :, 7] += 2.0
    assert worst_rhat(dataset(x))[1] == "x[entry 107]"
    assert smallest_ess(dataset(x))[1] == "x[entry 107]"
    assert worst_rhat(dataset(np.ones((4, 500, 3)))) == (pytest.approx(np.nan, nan_ok=True), "no parameter")


@pytest.mark.parametrize(("chains", "limit"), [(4, 400), (2, 200)])
def test_the_least_effective_sample_size_is_a_hundred_a_chain_in_bulk_and_tails(chains, limit):
    x = autoregressive(np.random.default_rng(0), 0.95, chains=chains, draws=500)
    stats = {name: value[:chains] for name, value in FINE.items()}
    found = sampling_warnings(dataset(x), stats, 10)
    for kind in ("bulk", "tail"):
        assert any(f"the {kind} effective sample size of x[entry" in m and f"under {limit}, which" in m for m in found)
    assert sampling_warnings(dataset(np.random.default_rng(0).normal(size=(4, 500, 3))), FINE, 10) == ()


@pytest.mark.parametrize(("chains", "who"), [(4, "the chains"), (1, "the two halves of the chain")])
@pytest.mark.parametrize(
    ("shift", "said"), [(2.0, "do not agree; raise warmup and draws"), (0.45, "agree only roughly; raise draws")]
)
def test_what_disagrees_is_chains_or_the_halves_of_one_and_by_how_much(chains, who, shift, said):
    x = np.random.default_rng(0).normal(size=(4, 500, 3))[:chains]
    x[0, :250] += shift if chains > 1 else shift / 1.5
    found = sampling_warnings(dataset(x), {name: value[:chains] for name, value in FINE.items()}, 10)
    assert any(text.startswith("R̂ = ") and text.endswith(f", over 1.01: {who} {said}") for text in found), found


def test_of_many_entries_the_worst_are_looked_at(monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST", 40 * 4 * 50)
    x = np.random.default_rng(0).normal(size=(4, 50, 1000))
    x[0, :, 617] += 2.0
    assert worst_rhat(dataset(x))[1] == "x[entry 717]"


def test_a_million_parameters_take_seconds(monkeypatch):
    """With a twentieth of the draws that are looked at; it takes a second or two."""
    monkeypatch.setattr(diagnostics, "MOST", diagnostics.MOST // 20)
    x = np.random.default_rng(0).normal(size=(2, 10, 1_000_000)).astype(np.float32)
    begin = time.process_time()
    worst_rhat(dataset(x))
    assert time.process_time() - begin < 20
