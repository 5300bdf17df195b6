"""The stories are plain NumPyro programs: NumPyro's own samplers, guides, handlers and printers run on them."""

from functools import partial

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import handlers
from numpyro.contrib.funsor import enum
from numpyro.contrib.funsor.infer_util import log_density as enumerated_log_density
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from numpyro.infer.util import log_density
from story_options import DEFAULTS, FURTHER, N_ROWS, N_TASKS
from whole_density import density

import crowdppl as cp
from crowdppl import Classifier, StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.models import STORIES
from crowdppl.models.parts.general import apply_parts

DRAWS = 2
KEY = jax.random.key(0)
GUIDED = ("worker_clusters", "glad")  # stories of the default suite to which a multivariate guide is fitted
TWO_CHAINS = ("dawid_skene", "glad")  # stories sampled with two chains at a time, whose program takes longer to compile


def by_name(options, slow=()):
    return pytest.mark.parametrize(
        "option",
        [*(pytest.param(o, id=o.name) for o in options)]
        + [pytest.param(o, id=o.name, marks=pytest.mark.slow) for o in slow],
    )


EVERY_STORY = by_name(DEFAULTS)
FURTHER_ARE_SLOW = by_name(DEFAULTS, slow=FURTHER)


def program(option):
    """The story with its hyperparameters, as a function of the annotations."""
    story, own = apply_parts(STORIES[option.story], option.options)
    return partial(story, **own)


def drawn(option, annotations):
    """Values of all latent sites, from the prior."""
    sites = handlers.trace(handlers.seed(program(option), 0)).get_trace(annotations)
    return {n: s["value"] for n, s in sites.items() if s["type"] == "sample" and not s["is_observed"]}


def posterior_draws(option, kernel=NUTS, chain_method="vectorized"):
    mcmc = MCMC(
        kernel(program(option)),
        num_warmup=2,
        num_samples=DRAWS,
        num_chains=2 if chain_method == "vectorized" else 1,
        chain_method=chain_method,
        progress_bar=False,
    )
    mcmc.run(KEY, option.annotations())
    return mcmc


def assert_finite(samples):
    assert samples
    for name, values in samples.items():
        assert np.isfinite(values).all() or name.startswith("switch_by_task"), name  # a task without annotations


@FURTHER_ARE_SLOW
def test_nuts_samples_it_and_its_draws_serve_predictive_log_likelihood_and_arviz(option):
    mcmc = posterior_draws(option, chain_method="vectorized" if option.story in TWO_CHAINS else "sequential")
    story, annotations = program(option), option.annotations()
    samples = mcmc.get_samples()
    assert_finite(samples)
    assert "truth" not in samples
    truth = Predictive(story, samples, infer_discrete=True)(KEY, annotations)["truth"]
    assert truth.shape == (mcmc.num_chains * DRAWS, N_TASKS)
    assert set(np.unique(truth)) <= {0, 1}
    by_task = log_likelihood(story, {**samples, "truth": truth}, annotations)["annotation"]
    assert by_task.shape == (mcmc.num_chains * DRAWS, N_TASKS)
    first = {name: values[0] for name, values in samples.items()}
    at = density(Model(STORIES[option.story], option.options), first, annotations)
    prior = jnp.broadcast_to(at.truth_prior, (N_TASKS, 2))
    if annotations.evidence is not None:
        prior = prior + annotations.evidence
    expected = jnp.take_along_axis(at.log_joint - prior, truth[0][:, None], axis=1)[:, 0]
    np.testing.assert_allclose(by_task[0], expected, rtol=1e-4, atol=1e-4)
    idata = az.from_numpyro(mcmc, log_likelihood=False)
    assert idata.posterior.sizes["chain"] == mcmc.num_chains
    assert "annotation" in idata.observed_data


@pytest.mark.slow
@by_name([*DEFAULTS, *FURTHER])
@pytest.mark.parametrize(
    ("kernel", "chain_method"),
    [
        pytest.param(NUTS, "vectorized", id="nuts, two chains at a time"),
        pytest.param(partial(HMC, num_steps=2), "sequential", id="hmc"),
    ],
)
def test_chains_beside_each_other_and_hmc_sample_it_too(option, kernel, chain_method):
    assert_finite(posterior_draws(option, kernel, chain_method).get_samples())


@FURTHER_ARE_SLOW
def test_svi_trains_a_mean_field_guide_with_the_truth_enumerated(option):
    story = program(option)
    guide = AutoNormal(handlers.block(story, hide=["truth"]))
    svi = SVI(story, guide, numpyro.optim.Adam(0.05), TraceEnum_ELBO())
    if is_within_one(story, option.annotations()):
        with pytest.raises(ValueError, match=r"Invalid shape: expected \(\), actual \(1,\)"):
            svi.run(KEY, 5, option.annotations(), progress_bar=False)
        return
    result = svi.run(KEY, 5, option.annotations(), progress_bar=False)
    assert np.isfinite(result.losses).all()
    assert np.ptp(result.losses) > 0


def is_within_one(story, annotations):
    """Tell sites that lie in plates of size one alone, to which NumPyro 0.22 gives no name (its issue 1448)."""
    sites = handlers.trace(handlers.seed(story, 0)).get_trace(annotations).values()
    shapes = [site["fn"].batch_shape for site in sites if site["type"] == "sample"]
    return any(shape and max(shape) == 1 for shape in shapes)


@by_name(
    [o for o in DEFAULTS if o.story in GUIDED],
    slow=[*(o for o in DEFAULTS if o.story not in GUIDED), *FURTHER],
)
def test_a_multivariate_guide_fits_the_marginal(option):
    marginal, arguments = cp.marginal(option.story, option.annotations(), **option.options)
    svi = SVI(marginal, AutoMultivariateNormal(marginal), numpyro.optim.Adam(0.01), Trace_ELBO())
    result = svi.run(KEY, 5, *arguments, progress_bar=False)
    assert np.isfinite(result.losses).all()


@FURTHER_ARE_SLOW
def test_its_densities_under_handlers_are_those_of_the_story(option):
    """With truth enumerated by NumPyro and by crowdppl; of one labelling; scaled; and without the annotations."""
    story, annotations = program(option), option.annotations()
    latent = drawn(option, annotations)
    truth = latent.pop("truth")

    @jax.jit
    def densities(latent):
        def of(handled, values=latent):
            return log_density(handled, (annotations,), {}, values)[0]

        with enum(first_available_dim=-3):
            enumerated, _ = enumerated_log_density(story, (annotations,), {}, latent)
        at = density(Model(STORIES[option.story], option.options), latent, annotations)
        do = handlers.do(handlers.seed(story, 0), {"truth": truth})
        intervened, sites = log_density(do, (annotations,), {}, latent)  # its site truth is a draw that nothing reads
        return {
            "enumerated": (enumerated, at.log_posterior),
            "conditioned": (of(handlers.condition(story, {"truth": truth})), of(story, {**latent, "truth": truth})),
            "one labelling": (
                of(handlers.condition(story, {"truth": truth})),
                at.log_prior + at.log_joint[jnp.arange(N_TASKS), truth].sum(),
            ),
            "intervention leaves out the truth's prior": (
                intervened - sites["truth"]["fn"].log_prob(sites["truth"]["value"]).sum(),
                at.log_prior + (at.log_joint - at.truth_prior)[jnp.arange(N_TASKS), truth].sum(),
            ),
            "scaled": (of(handlers.scale(handlers.condition(story, {"truth": truth}), 2.0)), None),
            "prior alone": (
                of(handlers.block(handlers.seed(story, 0), hide=["truth", "annotation", "evidence"])),
                at.log_prior,
            ),
        }

    found = densities(latent)
    scaled, _ = found.pop("scaled")
    factors = option.options.get("separation") is not None
    if not factors:
        np.testing.assert_allclose(scaled, 2 * found["conditioned"][0], rtol=1e-4, atol=1e-3)
    for name, (ours, theirs) in found.items():
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3, err_msg=name)


@FURTHER_ARE_SLOW
def test_predictive_draws_from_the_prior(option):
    story, annotations = program(option), option.annotations()
    if option.story == "difficulty" and "truth_prior" not in option.options:
        story = partial(story, votes=np.full((N_TASKS, 2), 0.5, dtype=np.float32))  # there are no annotations to count
    sites = jax.eval_shape(lambda key: Predictive(story, num_samples=3)(key, annotations.replace(label=None)), KEY)
    assert sites["truth"].shape == (3, N_TASKS)
    assert sites["annotation"].shape == (3, N_ROWS)


@FURTHER_ARE_SLOW
def test_its_shapes_are_printed(option):
    printed = []

    def run():
        sites = handlers.trace(handlers.seed(program(option), 0)).get_trace(option.annotations())
        printed.append(numpyro.util.format_shapes(sites))

    jax.eval_shape(run)
    assert f"truth dist {N_TASKS}" in " ".join(printed[0].replace("|", "").split())


@EVERY_STORY
def test_its_graph_is_drawn(option):
    pytest.importorskip("graphviz", reason="render_model needs the Python package graphviz")
    source = numpyro.render_model(program(option), model_args=(option.annotations(),)).source
    assert "truth -> annotation" in source
    assert "task" in source


def test_a_log_likelihood_without_a_truth_says_what_is_missing():
    option = DEFAULTS[0]
    latent = drawn(option, option.annotations())
    del latent["truth"]
    with pytest.raises(StoryError, match=r"infer_discrete=True.*cp\.marginal"):
        log_likelihood(program(option), {n: v[None] for n, v in latent.items()}, option.annotations())


def test_the_marginals_draws_give_arviz_the_log_likelihood_by_task():
    annotations = DEFAULTS[0].annotations()
    marginal, arguments = cp.marginal("dawid_skene", annotations)
    mcmc = MCMC(NUTS(marginal), num_warmup=5, num_samples=5, progress_bar=False)
    mcmc.run(KEY, *arguments)
    found = az.from_numpyro(mcmc, log_likelihood=True).log_likelihood["log_likelihood"].to_numpy()[0]
    samples = mcmc.get_samples()
    expected = [
        density(Model(STORIES["dawid_skene"]), {n: v[i] for n, v in samples.items()}, annotations).log_likelihood
        for i in range(5)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


class TestAClassifierWithoutPrior:
    option = DEFAULTS[0]._replace(options={"truth_prior": Classifier("logistic", prior=None)}, has=("features",))

    def test_says_under_a_sampler_that_it_stays_untrained(self):
        with pytest.warns(UserWarning, match="stays untrained"):
            posterior_draws(self.option)

    @pytest.mark.filterwarnings("error")
    def test_is_trained_by_svi_without_a_word(self):
        story = program(self.option)
        guide = AutoNormal(handlers.block(story, hide=["truth"]))
        svi = SVI(story, guide, numpyro.optim.Adam(0.05), TraceEnum_ELBO())
        params = svi.run(KEY, 5, self.option.annotations(), progress_bar=False).params
        assert np.abs(params["classifier.linear.kernel"]).max() > 0  # it starts at zero

    def test_asks_predictive_for_its_weights(self):
        latent = drawn(self.option, self.option.annotations())
        with pytest.raises(StoryError, match="give trained weights"):
            log_likelihood(program(self.option), {n: v[None] for n, v in latent.items()}, self.option.annotations())
