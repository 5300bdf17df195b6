"""R̂ and effective sample sizes are ArviZ's, of all entries at once, and what users are warned about follows them."""

import time
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr

from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.findings import of_draws
from crowdppl.inference.findings.convergence import convergence
from crowdppl.inference.findings.of_draws import smallest_ess, worst_rhat
from crowdppl.inference.findings.register import CHECKS

FINE = {"diverging": np.zeros((4, 500), bool), "tree_depth": np.full((4, 500), 3)}


class Sampled:
    """Draws with the sampler's statistics, as checks of draws look at them."""

    def __init__(self, draws, stats):
        self.named_draws, self.settings = draws, {"max_tree_depth": 10}
        self.outcome = Outcome({}, {}, np.zeros(0), stats)


def found_of(draws, stats=FINE):
    sampled = Sampled(draws, stats)
    return [finding for code in ("divergences", "rhat", "ess", "tree_depth") for finding in CHECKS[code](sampled)]


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
    found = [finding for finding in found_of(dataset(x), stats) if finding.code == "ess"]
    assert [finding.values["kind"] for finding in found] == ["bulk", "tail"]
    for finding in found:
        assert finding.values["entry"].startswith("x[entry ")
        assert finding.values["ess"] < finding.values["limit"] == limit
    assert not found_of(dataset(np.random.default_rng(0).normal(size=(4, 500, 3))))


@pytest.mark.parametrize(("chains", "who"), [(4, "the chains"), (1, "the two halves of the chain")])
@pytest.mark.parametrize(
    ("shift", "said", "remedy"),
    [(2.0, "do not agree", "raise warmup and draws"), (0.7, "agree only roughly", "raise draws")],
)
def test_what_disagrees_is_chains_or_the_halves_of_one_and_by_how_much(chains, who, shift, said, remedy):
    x = np.random.default_rng(0).normal(size=(4, 500, 3))[:chains]
    x[0, :250] += shift if chains > 1 else shift / 2
    found = found_of(dataset(x), {name: value[:chains] for name, value in FINE.items()})
    (finding,) = (each for each in found if each.code == "rhat")
    assert finding.text.endswith(f"{who} {said}")
    assert finding.remedy == remedy
    assert finding.values["rhat"] == pytest.approx(worst_rhat(dataset(x))[0])


def test_an_rhat_a_little_over_the_limit_counts_only_where_there_are_few_effective_draws():
    """Of the largest among many entries whose chains agree, which is over 1.01 by chance, nothing is said."""
    x = autoregressive(np.random.default_rng(0), 0.3, draws=500, entries=2000)
    x[:, :, 0] = autoregressive(np.random.default_rng(0), 0.95, draws=500)[..., 0]
    assert worst_rhat(dataset(x[..., 1:]))[0] > 1.01
    assert not [each for each in found_of(dataset(x[..., 1:])) if each.code == "rhat"]
    (finding,) = (each for each in found_of(dataset(x)) if each.code == "rhat")
    assert finding.values["entry"] == "x[entry 100]"


def test_divergences_and_cut_trajectories_are_counted_with_what_helps():
    stats = {name: value.copy() for name, value in FINE.items()}
    stats["diverging"][0, :7], stats["tree_depth"][1, :3] = True, 10
    first, second = found_of(dataset(np.random.default_rng(0).normal(size=(4, 500, 3))), stats)
    assert (first.code, first.values) == ("divergences", {"divergences": 7, "draws": 2000})
    assert "target_accept" in first.remedy
    assert (second.code, second.values) == ("tree_depth", {"draws": 3, "depth": 10})
    assert "max_tree_depth" in second.remedy


def test_of_many_entries_the_worst_are_looked_at(monkeypatch):
    monkeypatch.setattr(of_draws, "MOST", 40 * 4 * 50)
    x = np.random.default_rng(0).normal(size=(4, 50, 1000))
    x[0, :, 617] += 2.0
    assert worst_rhat(dataset(x))[1] == "x[entry 717]"


def test_a_million_parameters_take_seconds(monkeypatch):
    """With a twentieth of the draws that are looked at; it takes a second or two."""
    monkeypatch.setattr(of_draws, "MOST", of_draws.MOST // 20)
    x = np.random.default_rng(0).normal(size=(2, 10, 1_000_000)).astype(np.float32)
    begin = time.process_time()
    worst_rhat(dataset(x))
    assert time.process_time() - begin < 20
