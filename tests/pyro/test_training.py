"""EM with ``backend="pyro"``: JAX's without a torch module, and training of the module in minibatches with one."""

import warnings

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from torch_crowd import network, stopped_after

import crowdppl as cp
from crowdppl.inference.torch import module_training


def test_em_without_a_module_is_that_of_jax_to_the_bit(crowd):
    """Restarts, evidence, acceleration and minibatches are options of it as ever."""
    gold = dict(enumerate(np.asarray(crowd.gold)[:6].tolist()))
    for options in ({"gold": gold, "restarts": 2}, {"accelerate": False}, {"batch_size": 15, "epochs": 3}):
        theirs, ours = (cp.fit("two_coin", crowd, backend=b, progress=False, **options) for b in ("numpyro", "pyro"))
        np.testing.assert_array_equal(ours.posterior, theirs.posterior)
        np.testing.assert_array_equal(ours.history, theirs.history)
        assert ours.settings["backend"] == "pyro"


def test_em_without_a_module_is_updated_and_with_one_it_says_that_it_is_not(crowd):
    options = {"backend": "pyro", "progress": False}
    more = pd.DataFrame({"task": [0, 1], "worker": [0, 0], "label": [0, 1]})
    fit = cp.fit("two_coin", crowd.replace(features=None, repeats="keep"), **options)
    assert fit.update(more, progress=False).annotations.n_annotations == crowd.n_annotations + 2
    by_module = cp.fit("two_coin", crowd, classifier=network(), epochs=2, **options)
    with pytest.raises(ValueError, match="two_coin was fitted by Pyro, whose fits are not updated"):
        by_module.update(more, progress=False)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("story", "options"), [("dawid_skene", {}), ("glad", {}), ("annotator_groups", {"groups": 2})])
def test_an_epoch_of_a_module_that_is_not_trained_is_an_iteration_on_its_probabilities(crowd, story, options):
    """Tables take the exact M-step of all batches together, whatever their size."""
    module = network().requires_grad_(False)
    common = {"epochs": 4, "warmup": 1, "learning_rate": 1e-9, "progress": False, **options}
    fits = [cp.fit(story, crowd, classifier=module, batch_size=size, **common) for size in (40, 13)]
    for name in set(fits[0].outcome.draws) & {"confusion", "group_confusion", "weights"}:
        np.testing.assert_allclose(fits[0].outcome.draws[name], fits[1].outcome.draws[name], atol=1e-8)
    known = torch.softmax(module(torch.as_tensor(np.array(crowd.features)).double()), -1).detach().numpy()
    np.testing.assert_allclose(fits[0].annotations.prior, known)


@pytest.mark.parametrize(
    ("story", "options"),
    [
        ("dawid_skene", {}),
        ("two_coin", {}),
        ("difficulty", {}),
        ("annotator_groups", {"membership": "worker", "groups": 2}),
        ("common_individual", {"by_task": False}),
    ],
)
def test_every_story_teaches_a_torch_network_what_numpyros_learns(crowd, story, options):
    torch.manual_seed(0)
    fit = cp.fit(
        story, crowd, classifier=network(), backend="pyro", epochs=20, network_rate=0.02, progress=False, **options
    )
    assert (fit.labels["label"].to_numpy() == np.asarray(crowd.gold)).mean() >= 0.95
    unseen = np.random.default_rng(1).normal(size=(200, 2)) + 3 * (2 * (np.arange(200) % 2) - 1)[:, None]
    assert (fit.predict_proba(unseen).argmax(-1) == np.arange(200) % 2).mean() >= 0.95
    assert {"classifier.0.weight", "classifier.3.bias"} <= set(fit.outcome.fixed)
    np.testing.assert_allclose(fit.predict_proba(np.asarray(crowd.features)), fit.annotations.prior, atol=1e-5)


def test_the_module_that_came_in_is_left_as_it_was_and_torchs_random_numbers_too(crowd):
    module = network()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    cp.fit("two_coin", crowd, classifier=module, backend="pyro", epochs=2, progress=False)
    assert torch.rand(3).tolist() == expected.tolist()
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_same_seed_gives_the_same_fit_and_another_another(crowd):
    def fit(seed):
        return cp.fit(
            "two_coin", crowd, classifier=network_from(0), backend="pyro", epochs=3, seed=seed, progress=False
        )

    def network_from(seed):
        torch.manual_seed(seed)
        return network(dropout=0.5)

    one, two, other = fit(0), fit(0), fit(1)
    np.testing.assert_array_equal(one.posterior, two.posterior)
    assert not np.array_equal(one.posterior, other.posterior)


def test_a_step_of_training_is_the_optimizers_with_clipped_gradients_and_its_schedule(crowd):
    rates = []

    class Watched(torch.optim.SGD):
        def step(self, *arguments, **options):
            norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
            rates.append((self.param_groups[-1]["lr"], float(norm)))
            return super().step(*arguments, **options)

    cp.fit(
        "two_coin",
        crowd,
        classifier=network(),
        backend="pyro",
        epochs=2,
        batch_size=20,
        optimizer=lambda groups: Watched(groups, lr=1.0),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
        clip=0.01,
        progress=False,
    )
    assert [rate for rate, _ in rates] == [1.0, 0.5, 0.25, 0.125]
    assert max(norm for _, norm in rates) == pytest.approx(0.01, rel=1e-3)


def test_training_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(crowd, tmp_path, monkeypatch):
    torch.manual_seed(0)
    module = network(dropout=0.5)
    options = {"classifier": module, "backend": "pyro", "batch_size": 16, "held_out": 0.2, "progress": False}
    whole = cp.fit("two_coin", crowd, epochs=6, restarts=2, **options)
    for n_epochs in (3, 5):  # of the first start, and of the second
        with monkeypatch.context() as patch:
            stopped_after(patch, module_training.Trainer, "epoch", n_epochs)
            with pytest.raises(KeyboardInterrupt, match="resume=True goes on from there"):
                cp.fit("two_coin", crowd, epochs=6, restarts=2, checkpoint=tmp_path, every=0, resume=True, **options)
    rest = cp.fit("two_coin", crowd, epochs=6, restarts=2, checkpoint=tmp_path, resume=True, **options)
    np.testing.assert_array_equal(rest.posterior, whole.posterior)
    np.testing.assert_array_equal(rest.history, whole.history)


def test_training_stops_where_held_out_annotations_are_no_longer_predicted(crowd):
    fit = cp.fit(
        "two_coin",
        crowd,
        classifier=network(),
        backend="pyro",
        epochs=300,
        held_out=0.3,
        patience=3,
        network_rate=0.05,
        progress=False,
    )
    assert 3 < len(fit.history) - 1 < 300


def test_bfloat16_is_the_precision_of_the_forward_pass_alone(crowd):
    seen = []

    class Watching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            out = self.linear(x)
            seen.append(out.dtype)
            return out

    fit = cp.fit(
        "two_coin",
        crowd,
        classifier=Watching(),
        backend="pyro",
        epochs=15,
        network_rate=0.05,
        autocast=torch.bfloat16,
        progress=False,
    )
    assert set(seen) == {torch.bfloat16}
    assert fit.outcome.fixed["classifier.linear.weight"].dtype == np.float32
    assert (fit.labels["label"].to_numpy() == np.asarray(crowd.gold)).mean() >= 0.95


def test_frozen_weights_stay_and_the_others_learn(crowd):
    module = network()
    module[0].requires_grad_(False)
    fit = cp.fit("two_coin", crowd, classifier=module, backend="pyro", epochs=5, progress=False)
    np.testing.assert_array_equal(fit.outcome.fixed["classifier.0.weight"], module[0].weight.numpy())
    assert np.abs(fit.outcome.fixed["classifier.3.weight"]).max() > 0


def test_running_statistics_of_batch_norm_are_kept_and_used(crowd):
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
    fit = cp.fit("two_coin", crowd, classifier=module, backend="pyro", epochs=10, batch_size=13, progress=False)
    mean = np.asarray(crowd.features).mean(0)
    assert fit.outcome.fixed["classifier.0.running_mean"] == pytest.approx(mean, abs=0.5)
    np.testing.assert_allclose(fit.predict_proba(np.asarray(crowd.features)), fit.annotations.prior, atol=1e-5)


@pytest.mark.parametrize("with_dataset", [False, True])
def test_a_fit_comes_back_from_a_file_with_the_module_and_not_without(crowd, tmp_path, with_dataset):
    x = torch.as_tensor(np.array(crowd.features))
    dataset = {"dataset": torch.utils.data.TensorDataset(x)} if with_dataset else {}
    annotations = crowd.replace(features=None) if with_dataset else crowd
    fit = cp.fit("two_coin", annotations, classifier=network(), backend="pyro", epochs=3, progress=False, **dataset)
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit", classifier=network())
    np.testing.assert_array_equal(back.posterior, fit.posterior)
    np.testing.assert_allclose(back.predict_proba(x), fit.predict_proba(x))
    pd.testing.assert_frame_equal(back.workers, fit.workers)
    with pytest.raises(cp.StorageError, match="classifier=module"):
        cp.load_fit(tmp_path / "fit")
    with pytest.raises(cp.StorageError, match=r"another module: '0\.bias' has shape \(8,\), \(9,\) here"):
        cp.load_fit(tmp_path / "fit", classifier=network(hidden=9))


def test_members_are_fits_of_the_module_from_one_seed_each_and_come_back(crowd, tmp_path):
    options = {"classifier": network(dropout=0.5), "epochs": 2, "network_rate": 0.01, "progress": False}
    fit = cp.fit("two_coin", crowd, members=2, seed=4, checkpoint=tmp_path / "kept", **options)
    each = fit.predict_proba(crowd.features, by_member=True)
    alone = [cp.fit("two_coin", crowd, seed=seed, **options).predict_proba(crowd.features) for seed in (4, 5)]
    np.testing.assert_allclose(each, alone, rtol=1e-5)
    assert each.std(0).max() > 0
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit", classifier=network(dropout=0.5))
    np.testing.assert_array_equal(back.predict_proba(crowd.features, by_member=True), each)


def test_a_module_of_random_weights_learns_from_the_votes_first():
    """Else its guesses decide the labels of a crowd as unsure as this one, and these what it learns."""
    simulation = {"n_tasks": 200, "n_workers": 12, "n_classes": 3, "annotations_per_task": 3, "seed": 2}
    annotations, _ = cp.simulate("dawid_skene", **simulation)
    gold, rng = np.asarray(annotations.gold), np.random.default_rng(2)
    centres = rng.normal(size=(3, 10))
    x = 1.8 * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[gold] + rng.normal(size=(200, 10))
    right = {}
    for warmup in (1, None):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(10, 128), torch.nn.ReLU(), torch.nn.Linear(128, 3))
        options = {"classifier": module, "warmup": warmup, "progress": False}
        fit = cp.fit("dawid_skene", annotations.replace(features=x.astype("f4")), **options)
        right[warmup] = (fit.posterior.argmax(-1) == gold).mean()
    assert right[None] > right[1] + 0.1


@pytest.mark.parametrize("story", ["dawid_skene", "crowd_layer"])
def test_a_module_is_self_trained(crowd, story):
    """From a copy in each round, so that the labels and predictions are of the last round's."""
    module = network()
    before = [weight.clone() for weight in module.parameters()]
    options = {"epochs": 40, "network_rate": 0.02, "rounds": 2, "growth": 0.1, "select": "confidence"}
    found = cp.self_train(story, crowd, classifier=module, **options)
    gold = np.asarray(crowd.gold)
    assert len(found.pseudo) == 40
    assert (found.fit.posterior.argmax(-1) == gold).mean() >= 0.9
    assert (found.fit.predict_proba(crowd.features).argmax(-1) == gold).mean() >= 0.9
    assert all(torch.equal(now, then) for now, then in zip(module.parameters(), before, strict=True))


@pytest.mark.parametrize(("dropout", "batch_size", "are_equal"), [(0.0, 40, True), (0.5, 40, False), (0.0, 16, False)])
def test_members_of_a_module_that_nothing_lets_differ_are_said_to_be_equal(crowd, dropout, batch_size, are_equal):
    """All tasks in one batch without dropout: every seed trains the same network."""
    torch.manual_seed(0)
    options = {"members": 2, "epochs": 5, "network_rate": 0.02, "batch_size": batch_size, "progress": False}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = cp.fit("dawid_skene", crowd, classifier=network(dropout=dropout), **options)
    said = [str(warning.message) for warning in caught if "all networks are equal" in str(warning.message)]
    assert len(said) == are_equal
    assert all("a module with dropout" in each and "batch_size below" in each for each in said)
    assert (fit.predict_proba(crowd.features, by_member=True).std(0).max() < 1e-5) == are_equal
