"""Stories of one's own in both languages, annotations of arrays, derived quantities and draws in Pyro."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions
import pyro.distributions as dist
from numpyro import handlers
from pyro import poutine
from pyro.infer import Predictive
from story_options import DEFAULTS, FURTHER

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.models import KNOWN_STORIES
from crowdppl.models import pyro as in_pyro
from crowdppl.models.parts.general import GENERAL

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")


def hasty(annotations, *, truth_prior=None, haste=2.0):
    """Some annotations of each worker are slips, which are any class alike."""
    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers):
        slip = numpyro.sample(
            "slip", numpyro.distributions.Dirichlet(jnp.array([6.0, haste])), infer={"event_dims": ["slips"]}
        )
    table = slip[:, :1, None] * jnp.eye(k) + slip[:, 1:, None] / k
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)


@in_pyro.twin_of(hasty)
def hasty_in_pyro(annotations, *, truth_prior=None, haste=2.0):
    """The same in Pyro."""
    k = annotations.n_classes
    with pyro.plate("worker", annotations.n_workers):
        slip = pyro.sample("slip", dist.Dirichlet(torch.tensor([6.0, haste])))
    table = slip[:, :1, None] * torch.eye(k) + slip[:, 1:, None] / k
    with in_pyro.tasks(annotations, truth_prior) as truth:
        in_pyro.observe(truth, in_pyro.Confusion(table), annotations)


@pytest.mark.parametrize("story", [hasty, hasty_in_pyro])
@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_every_engine_of_pyros_fits_a_story_of_ones_own(crowd, story, method):
    few = {
        "em": {},
        "svi": {"max_iterations": 300},
        "nuts": {"warmup": 50, "draws": 50, "chains": 1},
    }[method]
    ours = cp.fit(story, crowd, backend="pyro", method=method, progress=False, haste=1.5, **few)
    theirs = cp.fit(hasty, crowd, progress=False, haste=1.5)
    assert ours.story == "hasty"
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=0.01 if method == "em" else 0.1)  # where EM stops
    assert ours.workers["accuracy"].between(0, 1).all()


def test_it_takes_a_module_as_classifier_and_hyperparameters(crowd):
    torch.manual_seed(0)
    options = {"epochs": 30, "network_rate": 0.05, "progress": False, "haste": 1.0}
    fit = cp.fit(hasty, crowd, backend="pyro", classifier=torch.nn.Linear(2, 2), **options)
    assert (fit.predict_proba(crowd.features).argmax(-1) == crowd.gold).mean() > 0.9


def test_a_story_without_a_pyro_program_is_refused_with_what_declares_one(crowd):
    def other(annotations, *, truth_prior=None):
        hasty(annotations, truth_prior=truth_prior)

    with pytest.raises(ValueError, match=r"'other' needs backend='numpyro', or a Pyro program .*twin_of declares"):
        cp.fit(other, crowd, backend="pyro", progress=False)


def test_programs_that_are_two_stories_are_refused_with_their_densities(crowd):
    def mine(annotations, *, truth_prior=None):
        hasty(annotations, truth_prior=truth_prior)

    @in_pyro.twin_of(mine)
    def other(annotations, *, truth_prior=None):
        hasty_in_pyro(annotations, truth_prior=truth_prior, haste=9.0)

    with pytest.raises(StoryError, match=r"'mine' are not one story: .* in Pyro and .* in NumPyro"):
        cp.fit(mine, crowd, backend="pyro", progress=False)

    def third(annotations, *, truth_prior=None):
        hasty(annotations, truth_prior=truth_prior)

    @in_pyro.twin_of(third)
    def with_more(annotations, *, truth_prior=None):
        pyro.sample("extra", dist.Normal(0.0, 1.0))
        hasty_in_pyro(annotations, truth_prior=truth_prior)

    with pytest.raises(StoryError, match=r"samples 'extra', which its NumPyro program does not"):
        cp.fit(third, crowd, backend="pyro", progress=False)


def test_every_story_has_a_pyro_program():
    assert in_pyro.STORIES.keys() == KNOWN_STORIES.keys()


@pytest.mark.parametrize("option", [pytest.param(o, id=o.story) for o in DEFAULTS])
def test_stories_take_annotations_of_arrays_and_their_draws_serve_posterior_predictions(option):
    """Replicated annotations of a posterior's draws, run one after the other by Pyro's own ``Predictive``."""
    annotations, story = option.annotations(), in_pyro.STORIES[option.story]
    fit = cp.fit(option.story, annotations, backend="pyro", method="svi", max_iterations=20, draws=4, progress=False)
    samples = {name: torch.tensor(np.asarray(value[0])) for name, value in fit.outcome.draws.items()}
    hyperparameters = (
        {"votes": np.asarray(fit.annotations.votes(), dtype=np.float32)} if option.story == "difficulty" else {}
    )
    if hyperparameters:
        hyperparameters["votes"] = np.full_like(hyperparameters["votes"], 0.5)
    new = annotations.replace(label=None)
    found = Predictive(story, samples)(new, **hyperparameters)
    assert found["annotation"].reshape(4, -1).shape == (4, annotations.n_rows)
    assert set(found["annotation"].unique().tolist()) <= {0, 1}


def derives(option):
    """Whether the Pyro program of a story with an option has derived quantities to compare."""
    parts = not GENERAL.keys().isdisjoint(option.options) or "abstentions" in option.has
    return option.story in DERIVE and not parts


DERIVE = ("hierarchical_dawid_skene", "worker_clusters", "annotator_groups", "common_individual")
DERIVE = (*DERIVE, "confusion_from_features")


@pytest.mark.parametrize("option", [pytest.param(o, id=o.name) for o in [*DEFAULTS, *FURTHER] if derives(o)])
def test_derived_quantities_are_those_of_the_numpyro_twin(option):
    """At parameters that the NumPyro program draws from its prior."""
    annotations = option.annotations()
    story = handlers.seed(KNOWN_STORIES[option.story], 0)
    theirs = handlers.trace(story).get_trace(jax.tree.map(jnp.asarray, annotations), **option.options)
    values = {
        name: torch.tensor(np.asarray(site["value"]))
        for name, site in theirs.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    values["truth"] = torch.zeros(annotations.n_tasks, dtype=torch.long)
    ours = poutine.condition(in_pyro.STORIES[option.story], values)
    sites = poutine.trace(ours).get_trace(annotations, **option.options).nodes
    derived = {name: site["value"] for name, site in theirs.items() if site["type"] == "deterministic"}
    assert derived
    for name, value in derived.items():
        np.testing.assert_allclose(sites[name]["value"], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_engines_leave_derived_quantities_out(crowd):
    """What nobody looks at is not computed at every step."""

    def looked_at():
        raise AssertionError("computed")

    def watched(annotations, *, truth_prior=None):
        hasty_in_pyro(annotations, truth_prior=truth_prior)
        in_pyro.derived("unseen", looked_at, "worker")

    def plain(annotations, *, truth_prior=None):
        hasty(annotations, truth_prior=truth_prior)

    in_pyro.twin_of(plain)(watched)
    cp.fit(plain, crowd, backend="pyro", max_iterations=2, progress=False)
    with pytest.raises(AssertionError, match="computed"):
        poutine.trace(in_pyro.program_of(plain)).get_trace(crowd)


def test_the_same_annotations_are_made_tensors_once(crowd):
    from crowdppl.models.pyro.twins import _as_tensors

    assert _as_tensors(crowd) is _as_tensors(crowd)
    made = _as_tensors(crowd)
    assert _as_tensors(made) is made


@pytest.mark.parametrize("story", ["glad", "item_response"])
def test_stories_with_parameters_by_task_learn_with_a_module(crowd, story):
    """The votes are right in 36 of the 40 tasks or so, which the features tell apart without error."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    options = {"batch_size": 16, "epochs": 60, "network_rate": 1e-2, "progress": False}
    fit = cp.fit(story, crowd, backend="pyro", classifier=network, **options)
    assert (fit.predict_proba(crowd.features).argmax(-1) == crowd.gold).mean() > 0.95
    assert np.ptp(np.asarray(fit.parameters["difficulty"])) > 0.1


@pytest.mark.slow
def test_minibatches_of_torch_end_where_those_of_jax_do(crowd):
    options = {"batch_size": 13, "epochs": 150, "progress": False, "discrimination": True, "guessing": True}
    ours, theirs = (cp.fit("item_response", crowd, backend=b, **options) for b in ("pyro", "numpyro"))
    assert ours.outcome.history[-1] == pytest.approx(theirs.outcome.history[-1], abs=0.3)
    assert np.abs(ours.posterior - theirs.posterior).mean() < 0.05  # along a flat ridge of five annotations a task
