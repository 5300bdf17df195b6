"""Every engine, classifiers and Pyro on a GPU give what they give on a CPU; `pytest -m gpu`, skipped without one."""

import jax
import numpy as np
import pytest

import crowdppl as cp
from crowdppl.models import STORIES

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_a_gpu():
    if jax.default_backend() != "gpu":
        pytest.skip(f"JAX sees no GPU here, only {jax.default_backend()}; install crowdppl[cuda] on a machine with one")


def crowd(story, n_tasks=200):
    n_classes = 2 if story in ("two_coin", "item_response") else 3
    annotations, _ = cp.simulate(
        story, n_tasks=n_tasks, n_workers=9, n_classes=n_classes, annotations_per_task=4, seed=3
    )
    return annotations.without_gold()


def on_both(story, annotations, **options):
    """The same fit on the GPU and on the CPU beside it."""
    fits = []
    for device in (jax.devices()[0], jax.devices("cpu")[0]):
        with jax.default_device(device):
            fits.append(cp.fit(story, annotations, progress=False, **options))
    return fits


@pytest.mark.parametrize("story", STORIES)
def test_em_of_every_story_is_that_of_the_cpu(story):
    gpu, cpu = on_both(story, crowd(story), max_iterations=5)
    np.testing.assert_allclose(gpu.probabilities, cpu.probabilities, atol=5e-3)


@pytest.mark.parametrize("story", STORIES)
def test_em_of_every_story_ends_where_it_does_on_the_cpu(story):
    gpu, cpu = on_both(story, crowd(story))
    assert gpu.outcome.history[-1] == pytest.approx(cpu.outcome.history[-1], rel=1e-4)
    assert (np.abs(gpu.probabilities - cpu.probabilities).to_numpy().max(-1) < 2e-2).mean() > 0.98


def test_svi_is_that_of_the_cpu():
    gpu, cpu = on_both("dawid_skene", crowd("dawid_skene"), method="svi", max_iterations=200)
    np.testing.assert_allclose(gpu.probabilities, cpu.probabilities, atol=2e-2)


def test_nuts_samples_the_posterior_of_the_cpu_in_vectorised_chains():
    gpu, cpu = on_both("dawid_skene", crowd("dawid_skene"), method="nuts", chains=4, warmup=200, draws=200)
    assert gpu.outcome.draws["prevalence"].shape == (4, 200, 3)
    np.testing.assert_allclose(gpu.probabilities, cpu.probabilities, atol=5e-2)


@pytest.mark.parametrize("classifier", ["logistic", "mlp"])
def test_classifiers_learn_on_the_gpu_what_they_learn_on_the_cpu(classifier):
    rng = np.random.default_rng(0)
    annotations = crowd("dawid_skene")
    truth = annotations.votes().argmax(-1)
    features = (np.eye(3)[truth] + 0.3 * rng.normal(size=(200, 3))).astype(np.float32)
    gpu, cpu = on_both("dawid_skene", annotations.replace(features=features), classifier=classifier)
    agree = gpu.labels["label"].to_numpy() == cpu.labels["label"].to_numpy()
    assert agree.mean() > 0.97
    assert (gpu.labels["label"].to_numpy() == truth).mean() > 0.9


def test_pyro_trains_a_torch_module_on_the_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU here")
    annotations = crowd("dawid_skene")
    features = np.eye(3, dtype=np.float32)[annotations.votes().argmax(-1)]
    fit = cp.fit(
        "dawid_skene",
        annotations.replace(features=features),
        method="svi",
        backend="pyro",
        classifier=torch.nn.Linear(3, 3).to("cuda"),
        device="cuda",
        max_iterations=200,
        progress=False,
    )
    assert (fit.labels["label"].to_numpy() == annotations.votes().argmax(-1)).mean() > 0.9


def test_tasks_over_the_mesh_of_all_gpus_give_what_one_gives():
    annotations = crowd("dawid_skene")
    one, all_of_them = (
        cp.fit("dawid_skene", annotations, devices=devices, max_iterations=5, progress=False)
        for devices in (None, "all")
    )
    np.testing.assert_allclose(one.probabilities, all_of_them.probabilities, atol=1e-3)
