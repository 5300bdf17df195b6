"""A story's densities with the labels summed out, against sums over every labelling and against NumPyro's own."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from brute_force import enumerate_labellings
from numpyro.contrib.funsor import config_enumerate
from numpyro.contrib.funsor import enum as funsor_enum
from numpyro.contrib.funsor.infer_util import log_density as funsor_log_density
from numpyro.infer.util import log_density

import crowdppl as cp
from crowdppl import Annotations, Confusion, Prevalence, observe, tasks
from crowdppl.inference.densities.enumerated import density, drawn_classes
from crowdppl.inference.densities.marginals import marginal_program
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_spec
from crowdppl.models import find_story

DAWID_SKENE = find_story("dawid_skene")


def parameters(annotations: Annotations, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    k = annotations.n_classes
    return {
        "prevalence": rng.dirichlet(np.ones(k)).astype("f4"),
        "confusion": rng.dirichlet(np.ones(k), (annotations.n_workers, k)).astype("f4"),
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("with_counts", [False, True])
@pytest.mark.parametrize("with_evidence", [False, True])
def test_density_equals_the_sum_over_all_labellings(tiny, seed, with_counts, with_evidence):
    rng = np.random.default_rng(seed)
    evidence = rng.normal(size=(5, 3)) if with_evidence else None
    count = rng.integers(1, 4, tiny.n_rows) if with_counts else None
    annotations = tiny.replace(evidence=evidence, count=count)
    theta = parameters(annotations, seed)
    log_z, posterior, by_task = enumerate_labellings(annotations, *theta.values(), evidence)
    at = density(Model(DAWID_SKENE), theta, annotations)
    np.testing.assert_allclose(at.log_likelihood, by_task, atol=1e-5)
    np.testing.assert_allclose(at.log_likelihood.sum(), log_z, atol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)


def test_gold_evidence_gives_its_class_probability_one(tiny):
    evidence = np.zeros((5, 3))
    evidence[1] = [-np.inf, -np.inf, 0]
    at = density(Model(DAWID_SKENE), parameters(tiny), tiny.replace(evidence=evidence))
    np.testing.assert_array_equal(at.posterior[1], [0, 0, 1])
    assert np.isfinite(at.log_posterior)


def test_gradient_with_respect_to_the_evidence_is_the_label_posterior(tiny):
    theta, model = parameters(tiny), Model(DAWID_SKENE)

    def log_z(evidence):
        return density(model, theta, tiny.replace(evidence=evidence)).log_likelihood.sum()

    gradient = jax.grad(log_z)(jnp.zeros((5, 3)))
    np.testing.assert_allclose(gradient, density(model, theta, tiny).posterior, atol=1e-6)


def test_marginal_program_has_the_density_of_numpyros_own_enumeration(tiny):
    theta, model = parameters(tiny), Model(DAWID_SKENE, {"diagonal": 3.0})
    ours, _ = log_density(marginal_program(model), (tiny,), {}, theta)
    with funsor_enum(first_available_dim=-3):
        theirs, _ = funsor_log_density(config_enumerate(model), (tiny,), {}, theta)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(density(model, theta, tiny).log_posterior, theirs, rtol=1e-6)


def test_a_batch_is_scaled_up_to_its_population(tiny):
    theta, model = parameters(tiny), Model(DAWID_SKENE)
    whole, batch = density(model, theta, tiny), density(model, theta, tiny.replace(population=50))
    np.testing.assert_allclose(
        batch.log_posterior - batch.log_prior, 10 * (whole.log_posterior - whole.log_prior), rtol=1e-6
    )


def test_the_spec_sorts_sites_into_tables_and_others(tiny):
    def story(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers):
            ability = numpyro.sample("ability", dist.LogNormal(0, 1))
        numpyro.factor("regulariser", -(ability**2).sum())
        right = jax.nn.sigmoid(ability)[:, None, None]
        eye = jnp.eye(annotations.n_classes)
        with tasks(annotations, truth_prior) as truth:
            observe(truth, Confusion(right * eye + (1 - right) * (1 - eye) / 2), annotations)

    parts = parameter_spec(Model(story), tiny)
    assert parts.tables == ("prevalence",)
    assert list(parts.bijections) == ["ability"]
    assert parts.has_factors
    assert parts.dims == {"ability": ("worker",), "prevalence": ("truth",)}
    assert not parameter_spec(Model(DAWID_SKENE), tiny).has_factors


def test_models_are_equal_where_story_and_hyperparameters_are():
    assert Model(DAWID_SKENE, {"truth_prior": Prevalence(3.0)}) == Model(DAWID_SKENE, {"truth_prior": Prevalence(3.0)})
    assert Model(DAWID_SKENE, {"diagonal": 3.0}) != Model(DAWID_SKENE, {"diagonal": 2.0})
    history = np.zeros((2, 2, 2))
    assert Model(DAWID_SKENE, {"history": history}) == Model(DAWID_SKENE, {"history": history.copy()})
    assert Model(DAWID_SKENE, {"history": history}) != Model(DAWID_SKENE, {"history": history + 1})
    array = jnp.zeros(2)
    assert Model(DAWID_SKENE, {"history": array}) == Model(DAWID_SKENE, {"history": array})


@pytest.mark.parametrize("n_classes", [5, 40])
def test_classes_are_drawn_as_often_as_their_scores_say_and_impossible_ones_never(n_classes):
    probs = np.zeros(n_classes, np.float32)
    probs[[1, 3]] = 0.9, 0.1
    with np.errstate(divide="ignore"):
        scores = np.broadcast_to(np.log(probs) - 7, (1_000_000, n_classes))
    drawn = np.asarray(drawn_classes(jax.random.key(0), scores))
    counts = np.bincount(drawn, minlength=n_classes)
    assert counts[probs == 0].sum() == 0
    assert counts[3] / len(scores) == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / len(scores)))  # five standard errors


def story_of(annotations: Annotations, *, pseudo_counts: object) -> None:
    with numpyro.plate("worker", annotations.n_workers):
        rows = dist.Dirichlet(jnp.asarray(pseudo_counts, dtype=float)).to_event(1)
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["class", "annotation"]})
    with tasks(annotations) as truth:
        observe(truth, Confusion(confusion), annotations)


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
@pytest.mark.parametrize("kind", ["array", "lists"])
def test_a_table_that_was_changed_in_place_is_another_hyperparameter(kind):
    """JAX and programs that are kept know an array by where it is, and not by what stands in it."""
    table = np.eye(2) * 3 + 1 if kind == "array" else [[4.0, 1.0], [1.0, 4.0]]
    sizes = {"n_tasks": 30, "n_workers": 4, "n_classes": 2}

    def found():
        drawn = cp.simulate(story_of, pseudo_counts=table, **sizes)[1]
        fit = cp.fit(story_of, given, pseudo_counts=table, progress=False)
        return drawn["confusion"], fit.parameters["confusion"]

    given = cp.simulate("one_coin", **sizes)[0].without_gold()
    before = found()
    for row in range(2):
        table[row][row] = 400.0
    for earlier, later in zip(before, found(), strict=True):
        assert np.diagonal(later, axis1=-2, axis2=-1).min() > 0.95
        assert np.diagonal(earlier, axis1=-2, axis2=-1).min() < 0.95


def test_models_with_equal_tables_are_equal_and_keep_them_as_they_are():
    table = np.eye(2) * 3 + 1
    first, same = (Model(story_of, {"pseudo_counts": each}) for each in (table, table.copy()))
    assert first == same
    table[0, 0] = 400.0
    assert first == same
    assert first != Model(story_of, {"pseudo_counts": table})
