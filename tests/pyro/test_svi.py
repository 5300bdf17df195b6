"""SVI with the truth summed out, in minibatches from datasets that are loaded lazily, and NUTS."""

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro.infer.autoguide import AutoLaplaceApproximation
from torch.utils.data import Dataset
from torch_crowd import network, stopped_after

import crowdppl as cp
from crowdppl.inference.torch import chains, steps


class Loaded(Dataset):
    """Features that note which were asked for."""

    def __init__(self, x):
        self.x, self.asked = torch.as_tensor(np.array(x)), []

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        self.asked.append(i)
        return self.x[i]


def fit(annotations, story="two_coin", **options):
    options = {"method": "svi", "max_iterations": 300, "draws": 200, "tolerance": 1.0} | options
    return cp.fit(story, annotations, backend="pyro", progress=False, **options)


def same_posterior(ours, theirs):
    """Means agree within a third of the posterior's own standard deviation: both are Monte Carlo and optimised."""
    for name, draws in theirs.outcome.draws.items():
        spread = np.maximum(draws.std((0, 1)), 0.02)
        gap = np.abs(ours.outcome.draws[name].mean((0, 1)) - draws.mean((0, 1))) / spread
        assert gap.max() < 1, name
        assert gap.mean() < 1 / 3, name


def test_svi_has_numpyros_posterior(crowd):
    steps = {"max_iterations": 1500, "learning_rate": 0.05, "draws": 2000}
    theirs = cp.fit("two_coin", crowd, method="svi", progress=False, tolerance=1.0, sweeps=0, **steps)
    ours = fit(crowd, **steps)
    same_posterior(ours, theirs)
    assert ours.outcome.draws["sensitivity"].shape == (1, 2000, 7, 2)
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=0.05)


GUIDES = [("delta", 1000), ("multivariate_normal", 20), ("low_rank", 20), (AutoLaplaceApproximation, 20)]


@pytest.mark.parametrize(("guide", "draws"), GUIDES)
def test_every_guide_finds_the_labels_one_of_pyros_classes_too(crowd, guide, draws):
    found = fit(crowd, guide=guide, max_iterations=150, draws=draws)
    assert (found.labels["label"].to_numpy() == np.asarray(crowd.gold)).mean() >= 0.9


@pytest.mark.parametrize(
    ("story", "options"),
    [
        ("dawid_skene", {}),
        ("difficulty", {"kind": "fixed"}),
        ("annotator_groups", {"membership": "worker", "groups": 2}),
        ("common_individual", {"by_task": False, "separation": 0.1}),
    ],
)
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_every_story_comes_down_in_minibatches(crowd, story, options):
    found = fit(crowd, story, batch_size=20, max_iterations=120, draws=20, **options)
    assert found.history.iloc[-20:].mean() < found.history.iloc[:20].mean()
    assert set(found.outcome.draws) == set(found.dims)


def test_a_network_learns_from_a_dataset_that_is_loaded_task_by_task(crowd):
    dataset = Loaded(crowd.features)
    found = fit(
        crowd.replace(features=None),
        classifier=network(),
        dataset=dataset,
        batch_size=10,
        optimizer=lambda groups: torch.optim.Adam(groups, lr=0.02),
        max_iterations=100,
    )
    assert (found.predict_proba(crowd.features).argmax(-1) == np.asarray(crowd.gold)).mean() >= 0.95
    probabilities = found.predict_proba(Loaded(crowd.features))
    np.testing.assert_allclose(probabilities, found.predict_proba(crowd.features), atol=1e-6)
    steps = pd.Series(dataset.asked).value_counts()
    assert steps.index.sort_values().tolist() == list(range(40))
    assert steps.max() - steps.min() <= 2  # every task as often as any other, but for those tried out before


def test_items_may_be_mappings_for_a_module_that_takes_keywords_and_returns_an_object_with_logits(crowd):
    class Output:
        def __init__(self, logits):
            self.logits = logits

    class Keywords(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, *, first, second):
            return Output(self.linear(torch.stack([first, second], -1)))

    items = [{"first": float(a), "second": float(b)} for a, b in np.asarray(crowd.features)]
    torch.manual_seed(1)  # of the module's weights, from which few epochs cannot turn a network that is sure and wrong
    found = cp.fit(
        "two_coin",
        crowd.replace(features=None),
        classifier=Keywords(),
        backend="pyro",
        dataset=items,
        epochs=10,
        network_rate=0.05,
        progress=False,
    )
    assert (found.labels["label"].to_numpy() == np.asarray(crowd.gold)).mean() >= 0.95


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("batch_size", [7, pytest.param(None, marks=pytest.mark.slow)])
def test_svi_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(crowd, tmp_path, monkeypatch, batch_size):
    torch.manual_seed(0)
    options = {
        "classifier": network(dropout=0.5),
        "batch_size": batch_size,
        "optimizer": lambda groups: torch.optim.Adam(groups, lr=0.01),
        "draws": 5,
    }
    whole = fit(crowd, max_iterations=20, **options)
    with monkeypatch.context() as patch:
        stopped_after(patch, steps.Stepper, "step", 9)
        with pytest.raises(KeyboardInterrupt, match="resume=True goes on from there"):
            fit(crowd, max_iterations=20, checkpoint=tmp_path, every=0, **options)
    rest = fit(crowd, max_iterations=20, checkpoint=tmp_path, resume=True, **options)
    np.testing.assert_array_equal(rest.history, whole.history)
    for name, draws in whole.outcome.draws.items():
        np.testing.assert_array_equal(rest.outcome.draws[name], draws)


def test_nothing_is_left_in_pyros_store(crowd):
    pyro.clear_param_store()
    fit(crowd, classifier=network(), max_iterations=5, draws=5)
    assert not list(pyro.get_param_store().keys())


@pytest.mark.slow
def test_pyros_nuts_has_numpyros_posterior_and_its_statistics(crowd):
    few = {"warmup": 100, "draws": 150, "chains": 2, "progress": False}
    ours = cp.fit("two_coin", crowd, backend="pyro", method="nuts", **few)
    theirs = cp.fit("two_coin", crowd, method="nuts", **few)
    same_posterior(ours, theirs)
    assert ours.outcome.draws["sensitivity"].shape == (2, 150, 7, 2)
    assert ours.outcome.stats.keys() == theirs.outcome.stats.keys()
    assert ours.outcome.stats["acceptance_rate"].mean() == pytest.approx(0.8, abs=0.12)
    at, steps = ours.outcome.stats["energy"] + ours.outcome.stats["lp"], ours.outcome.stats["n_steps"]
    assert (steps >= 1).all()
    assert at.mean() == pytest.approx(15 / 2, abs=4)  # kinetic energy: half a number for each of 15 parameters


NUTS = {"backend": "pyro", "method": "nuts", "warmup": 20, "draws": 12, "chains": 3, "progress": False}


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_pyros_nuts_goes_on_from_its_finished_chains_to_the_same_draws(crowd, tmp_path, monkeypatch):
    whole = cp.fit("two_coin", crowd, **NUTS)
    with monkeypatch.context() as patch:
        stopped_after(patch, chains._Counted, "drawn", 50)  # within the second chain
        stopped = cp.fit("two_coin", crowd, checkpoint=tmp_path, every=0, **NUTS)
    assert any("Ctrl-C" in text or "interrupted" in text for text in stopped.warnings)
    assert stopped.outcome.draws["sensitivity"].shape[:2] == (1, 12)
    rest = cp.fit("two_coin", crowd, checkpoint=tmp_path, resume=True, **NUTS)
    for name, draws in whole.outcome.draws.items():
        np.testing.assert_array_equal(rest.outcome.draws[name], draws)
        np.testing.assert_array_equal(stopped.outcome.draws[name], draws[:1])


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_nuts_holds_the_networks_weights_at_ems_solution(crowd):
    few = {"warmup": 30, "draws": 10, "chains": 1, "epochs": 5, "progress": False}
    found = cp.fit("difficulty", crowd, classifier=network(), method="nuts", **few)
    assert found.outcome.draws["ability"].shape == (1, 10, 7, 2)
    assert found.outcome.draws["ability"].std(1).min() > 0
    np.testing.assert_allclose(found.predict_proba(crowd.features), found.annotations.prior, atol=1e-5)
