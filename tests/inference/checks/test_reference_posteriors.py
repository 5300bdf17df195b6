"""Reference posteriors meet their bar, and independent samplers agree with them."""

import doctest
import json

import numpy as np
import pytest
from scipy.stats import norm

import crowdppl as cp
from crowdppl.benchmarks.support import posteriordb
from crowdppl.benchmarks.support.reference_bar import Diagnostics, diagnose, shortcomings
from crowdppl.inference.checks import posterior_database as database
from crowdppl.inference.checks import reference_posteriors as known
from crowdppl.inference.storage.arviz_groups import group

TABLE = cp.list_reference_posteriors()
SHIPPED = TABLE.index[TABLE["reference"]].tolist()
UNMET = TABLE.index[~TABLE["reference"]].tolist()


def bound(n):
    """What none of n standard normal values exceeds in 999 of 1,000 cases."""
    return norm.ppf(1 - 0.001 / (2 * n))


@pytest.fixture(scope="module")
def toy():
    return cp.load_dataset("toy").without_gold()


@pytest.mark.parametrize(("story", "dataset"), SHIPPED)
def test_the_shipped_draws_meet_the_bar(story, dataset):
    reference = cp.reference_posterior(story, dataset)
    said = reference.info["diagnostics"]
    arrays = {str(name): values.to_numpy() for name, values in reference.draws.items()}
    found = diagnose(arrays, np.tile([0.0, 1.0], (said["nchains"], 1)), np.zeros((said["nchains"], 2), bool))
    of_energy = {
        "efmi": np.array(said["expected_fraction_of_missing_information"]),
        "divergent": np.array(said["divergent_transitions"]),
    }  # as the file has them: it has no energies
    assert shortcomings(found._replace(**of_energy)) == []
    np.testing.assert_allclose(found.rhat, said["r_hat"], atol=1e-4)
    np.testing.assert_allclose(found.lag, said["lag_1_autocorrelation"], atol=1e-3)
    assert found.names == said["diagnostic_information"]["names"]
    labels = reference.label_probabilities
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-4)


@pytest.mark.parametrize(("story", "dataset"), UNMET)
def test_a_posterior_without_reference_says_what_it_fell_short_of(story, dataset):
    with pytest.raises(ValueError, match=f"{story} on {dataset} has no reference posterior: .+list_reference"):
        cp.reference_posterior(story, dataset)


def test_every_story_is_listed_on_every_dataset():
    assert sorted(TABLE.index) == sorted(
        (story, dataset) for story in cp.list_stories().index for dataset in known.DATASETS
    )
    assert (TABLE["unmet"] == "").tolist() == TABLE["reference"].tolist()


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(cp.UnknownNameError, match="unknown story 'dawid'"):
        cp.reference_posterior("dawid")
    with pytest.raises(cp.UnknownNameError, match=r"reference posteriors 'toi'; did you mean 'toy'\? There are: anes"):
        cp.reference_posterior("one_coin", "toi")


@pytest.mark.parametrize("dataset", known.DATASETS)
def test_the_data_of_the_database_are_those_of_the_package(dataset):
    data, annotations = database.read_json(known.ROOT, database.DATA, dataset), cp.load_dataset(dataset)
    assert (data["N"], data["J"], data["K"]) == (annotations.n_tasks, annotations.n_workers, annotations.n_classes)
    for name in ("task", "worker", "label"):
        np.testing.assert_array_equal(np.array(data[name]) - 1, getattr(annotations, name))


def test_draws_come_back_from_the_layout_of_posteriordb_in_three_digits_or_more():
    rng = np.random.default_rng(0)
    narrow = 100 + rng.normal(size=(2, 5))  # three digits would be steps of a standard deviation
    draws = {"a": narrow, "b": rng.dirichlet([0.1, 1], (2, 5, 3)), "c": np.zeros((2, 5, 1))}
    chains = json.loads(json.dumps(posteriordb.by_scalar(draws)))
    assert list(chains[0]) == ["a", "b[1,1]", "b[1,2]", "b[2,1]", "b[2,2]", "b[3,1]", "b[3,2]", "c[1]"]
    back = database.from_scalars(chains, {name: list(values.shape[2:]) for name, values in draws.items()})
    for name, values in draws.items():
        assert back[name].dtype == np.float32
        np.testing.assert_array_equal(back[name], posteriordb.rounded({name: values})[name])
        np.testing.assert_array_equal(posteriordb.rounded(back)[name], back[name])  # once is enough
        np.testing.assert_allclose(back[name], values, rtol=5.1e-3)
    np.testing.assert_allclose(back["a"], narrow, atol=narrow.std() / posteriordb.STEPS)


def independent(seed=0, lag=0.0):
    """Draws of two parameters with this autocorrelation, and the energies of a sampler that moves freely."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(4, 2500, 2))
    draws = noise.copy()
    for t in range(1, 2500):
        draws[:, t] = lag * draws[:, t - 1] + np.sqrt(1 - lag**2) * noise[:, t]
    return {"a": draws}, rng.normal(size=(4, 25_000)), np.zeros((4, 25_000), bool)


def found(change=lambda draws, energy, diverging: None, **options) -> Diagnostics:
    draws, energy, diverging = independent(**options)
    change(draws["a"], energy, diverging)
    return diagnose(draws, energy, diverging)


def test_independent_draws_meet_the_bar():
    assert [shortcomings(found(seed=seed)) for seed in range(5)] == [[]] * 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda draws, energy, diverging: diverging.__setitem__((1, 7), True), "1 transitions diverged"),
        (lambda draws, energy, diverging: draws.__iadd__(np.array([0, 0, 0, 0.5])[:, None, None]), "R̂ is 1.0"),
        (lambda draws, energy, diverging: np.cumsum(energy, axis=1, out=energy), "E-FMI is 0.0"),
        (lambda draws, energy, diverging: draws.__setitem__((..., 1), 0.0), "R̂ is nan of a"),
    ],
)
def test_what_is_wrong_with_draws_is_named(change, said):
    assert any(said in sentence for sentence in shortcomings(found(change)))


def test_draws_that_follow_each_other_fall_short():
    said = " ".join(shortcomings(found(lag=0.1)))
    assert "lag-1 autocorrelation" in said
    assert "effective size" in said
    assert shortcomings(found()._replace(n_draws=9_999))[0].startswith("9,999 draws of 4 chains")


def gibbs(annotations, diagonal, off_diagonal, *, chains=40, sweeps=600, burn=100, seed=0):
    """Dawid and Skene's posterior by Gibbs sampling in NumPy, from labels drawn by the votes: (chain, draw, ...)."""
    rng = np.random.default_rng(seed)
    n, j, k = annotations.n_tasks, annotations.n_workers, annotations.n_classes
    task, worker, label = (np.asarray(a) for a in (annotations.task, annotations.worker, annotations.label))
    votes = np.asarray(annotations.votes(), float)
    p = np.broadcast_to(votes / votes.sum(1, keepdims=True), (chains, n, k))
    prior = np.where(np.eye(k, dtype=bool), diagonal, off_diagonal)
    first = np.searchsorted(task, np.arange(n))
    kept = {"prevalence": [], "confusion": []}
    for sweep in range(sweeps):
        truth = (rng.random((chains, n, 1)) > p.cumsum(-1)[..., :-1]).sum(-1)
        counts = np.zeros((chains, j, k, k))
        np.add.at(counts, (np.arange(chains)[:, None], worker, truth[:, task], label), 1)
        prevalence = rng.standard_gamma(1.0 + (truth[..., None] == np.arange(k)).sum(1))
        confusion = rng.standard_gamma(prior + counts)
        prevalence /= prevalence.sum(-1, keepdims=True)
        confusion /= confusion.sum(-1, keepdims=True)
        terms = np.log(np.maximum(confusion, 1e-300))[:, worker, :, label].swapaxes(0, 1)  # (chain, row, class)
        log_p = np.log(prevalence)[:, None] + np.add.reduceat(terms, first, axis=1)
        p = np.exp(log_p - log_p.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        if sweep >= burn:
            kept["prevalence"].append(prevalence)
            kept["confusion"].append(confusion)
    return {name: np.stack(values, 1) for name, values in kept.items()}


@pytest.mark.parametrize("dataset", [dataset for story, dataset in SHIPPED if story == "dawid_skene"])
def test_a_gibbs_sampler_that_knows_nothing_of_this_package_agrees(dataset):
    reference = cp.reference_posterior("dawid_skene", dataset)
    k = reference.annotations.n_classes
    compared = reference.compare(gibbs(reference.annotations, 2.0, 1 / (k - 1)))
    assert compared["z"].abs().max() < bound(len(compared))
    assert compared["error"].max() < 0.05  # standard deviations: small enough to find a wrong prior
    np.testing.assert_allclose(compared["other_sd"], compared["sd"], rtol=0.15)


def test_a_wrong_prior_is_found_out():
    reference = cp.reference_posterior("dawid_skene", "toy")
    compared = reference.compare(gibbs(reference.annotations, 3.0, 1.0, sweeps=300))
    assert compared["z"].abs().max() > bound(len(compared))


def test_a_short_run_of_nuts_has_the_same_means_and_labels(toy):
    reference = cp.reference_posterior("dawid_skene", "toy")
    fit = cp.fit("dawid_skene", toy, method="nuts", chains=4, warmup=300, draws=300, progress=False)
    compared = reference.compare(fit)
    assert compared["z"].abs().max() < bound(len(compared))
    np.testing.assert_allclose(fit.probabilities, reference.label_probabilities, atol=0.03)
    assert (fit.draws["prevalence"].coords["truth"] == reference.draws["prevalence"].coords["truth"]).all()


def test_a_mean_field_guide_has_nearly_the_same_means(toy):
    reference = cp.reference_posterior("one_coin", "toy")
    fit = cp.fit("one_coin", toy, method="svi", progress=False)
    # what a normal guide of skewed posteriors misses, and no sampling error
    assert reference.compare(fit)["difference"].abs().max() < 0.3


def test_the_example_shows_what_comes_out_and_arviz_reads_the_draws():
    assert doctest.testmod(known).failed == 0
    posterior = group(cp.reference_posterior("one_coin", "toy").idata, "posterior")
    assert posterior.sizes == {"chain": 4, "draw": 2500, "truth": 2, "worker": 6, "is_right": 2}
    assert posterior["worker"].values.tolist() == ["w1", "w2", "w3", "w4", "w5", "w6"]


def test_draws_of_another_shape_and_missing_sites_are_refused():
    reference = cp.reference_posterior("one_coin", "toy")
    with pytest.raises(cp.UnknownNameError, match=r"draws of .+ are missing; the reference has"):
        reference.compare({})
    sites = {name: values.to_numpy() for name, values in reference.draws.items()}
    assert (reference.compare(sites)["difference"] == 0).all()
    with pytest.raises(ValueError, match=r"prevalence is of shape \(4, 2500, 1\)"):
        reference.compare(sites | {"prevalence": sites["prevalence"][..., :1]})


def test_a_point_has_no_draws_to_compare_and_arvizs_data_have():
    annotations = cp.load_dataset("toy").without_gold()
    with pytest.raises(ValueError, match="a point has no draws"):
        cp.reference_posterior("one_coin", "toy").compare(cp.fit("one_coin", annotations, progress=False))
    reference = cp.reference_posterior("one_coin", "toy")
    np.testing.assert_allclose(reference.compare(reference.idata)["z"], 0, atol=1e-6)
