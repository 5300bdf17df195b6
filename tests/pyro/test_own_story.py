"""A story of one's own, written once in NumPyro, is a Pyro program, and is fitted by Pyro's engines."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from pyro import poutine
from pyro.infer import SVI, Predictive, TraceEnum_ELBO
from pyro.infer.autoguide import AutoNormal

import crowdppl as cp
from crowdppl.inference.torch import in_pyro, marginal_in_pyro

pytestmark = [
    pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning"),
]


def hasty(annotations, *, truth_prior=None, haste=2.0):
    """Some annotations of each worker are slips, which are any class alike."""
    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers):
        slip = numpyro.sample("slip", dist.Dirichlet(jnp.array([6.0, haste])), infer={"event_dims": ["slips"]})
    table = slip[:, :1, None] * jnp.eye(k) + slip[:, 1:, None] / k
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)


def of_many_supports(annotations, *, truth_prior=None):
    """Each worker is right as often as four numbers of different supports say together."""
    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers):
        skill = numpyro.sample("skill", dist.Beta(2.0, 2.0))
        pace = numpyro.sample("pace", dist.HalfNormal(1.0))
        bound = numpyro.sample("bound", dist.Uniform(-1.0, 2.0))
        drift = numpyro.sample("drift", dist.Normal(0.0, 1.0))
    odds = jnp.log(skill) - jnp.log1p(-skill) + pace + bound + drift
    right = 1 / (1 + jnp.exp(-odds))
    table = right[:, None, None] * jnp.eye(k) + (1 - right[:, None, None]) / k
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)


@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_every_method_of_the_backend_fits_it(crowd, method):
    few = {"em": {}, "svi": {"max_iterations": 300}, "nuts": {"warmup": 50, "draws": 50, "chains": 1}}[method]
    ours = cp.fit(hasty, crowd, backend="pyro", method=method, progress=False, haste=1.5, **few)
    theirs = cp.fit(hasty, crowd, progress=False, haste=1.5)
    assert ours.story == "hasty"
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=0 if method == "em" else 0.1)
    assert ours.workers["accuracy"].between(0, 1).all()


def test_it_takes_a_torch_module_as_classifier_whose_type_chooses_the_backend(crowd):
    torch.manual_seed(0)
    options = {"epochs": 30, "network_rate": 0.05, "progress": False, "haste": 1.0}
    fit = cp.fit(hasty, crowd, classifier=torch.nn.Linear(2, 2), **options)
    assert fit.settings["backend"] == "pyro"
    assert (fit.predict_proba(crowd.features).argmax(-1) == crowd.gold).mean() > 0.9


def test_abstentions_shared_errors_difficulty_and_models_probabilities_are_fitted_too(crowd):
    frame = crowd.to_frame().astype({"label": str})
    frame.loc[::7, "label"] = "none"
    some = cp.Annotations.from_frame(frame, abstain=["none"])
    told = np.full((40, 2), 0.5)
    options = {"shared_error": True, "task_difficulty": True, "probabilities": told, "max_iterations": 5}
    fits = [cp.fit("dawid_skene", some, backend=b, progress=False, **options) for b in ("numpyro", "pyro")]
    np.testing.assert_array_equal(fits[0].posterior, fits[1].posterior)
    by_pyro = cp.fit("dawid_skene", some, backend="pyro", method="svi", draws=5, progress=False, **options)
    assert {"abstention", "pull", "model_slope"} <= set(by_pyro.outcome.draws)


@pytest.mark.parametrize("story", [hasty, of_many_supports])
def test_pyros_own_svi_and_predictive_run_on_it_without_another_program(crowd, story):
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    program = in_pyro(story)
    guide = AutoNormal(poutine.block(program, hide=["truth"]))
    svi = SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=2))
    losses = [svi.step(crowd) for _ in range(60)]
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    drawn = Predictive(program, guide=guide, num_samples=3)(crowd.replace(label=None))
    assert drawn["annotation"].reshape(3, -1).shape == (3, crowd.n_rows)
    assert set(drawn["annotation"].unique().tolist()) <= {0, 1}
    pyro.clear_param_store()


def test_a_param_site_is_one_of_pyros_and_is_optimised_without_a_posterior(crowd):
    def sharp(annotations, *, truth_prior=None):
        right = numpyro.param("right", jnp.asarray(0.6), constraint=dist.constraints.unit_interval)
        table = jnp.broadcast_to(right * jnp.eye(2) + (1 - right) / 2, (annotations.n_workers, 2, 2))
        numpyro.sample("unused", dist.Normal(0.0, 1.0))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Confusion(table), annotations)

    fit = cp.fit(sharp, crowd, backend="pyro", method="svi", max_iterations=60, draws=3, progress=False)
    mode = cp.fit(sharp, crowd, progress=False).outcome.fixed["right"]
    assert set(fit.outcome.fixed) == {"right"}
    assert float(fit.outcome.fixed["right"]) == pytest.approx(float(mode), abs=0.05)
    assert float(fit.outcome.fixed["right"]) != float(mode)
    assert set(fit.outcome.draws) == {"unused", "prevalence"}


def test_a_support_that_pyro_lacks_is_refused_by_the_sites_name(crowd):
    def by_another(annotations, *, truth_prior=None):
        top = numpyro.sample("top", dist.HalfNormal(1.0))
        numpyro.sample("below", dist.Uniform(0.0, top))
        hasty(annotations, truth_prior=truth_prior)

    with pytest.raises(cp.StoryError, match=r"the site 'below' has the support .* fit with backend='numpyro'"):
        marginal_in_pyro(by_another)(crowd)
