"""Stories with the priors of their sources, fixed prevalences, and the names of papers wherever a name is taken."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import random_annotations
from story_options import STAND_FOR_OTHERS
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError, UnknownNameError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.models import ALIASES, KNOWN_STORIES, STORIES, find_story
from crowdppl.models.parts.truth_prior import truth_prior_from_json

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
FEW = {"max_iterations": 30, "progress": False}


@pytest.fixture(scope="module")
def crowd():
    return random_annotations(np.random.default_rng(0), n_tasks=12, n_workers=4, n_classes=2, n_rows=40)


def at_start(story, annotations, **options):
    model, data = Model(find_story(story), options), jax.tree.map(jnp.asarray, annotations)
    found = jax.jit(lambda key: starting_point(model, data, key))(jax.random.key(0))
    return found, density(model, found, data)


def test_glad_has_even_shares_of_the_classes_as_published_unless_it_is_asked_to_estimate_them(crowd):
    assert "prevalence" not in cp.fit("glad", crowd, **FEW).parameters
    assert "prevalence" in cp.fit("glad", crowd, truth_prior=cp.Prevalence(), **FEW).parameters
    np.testing.assert_allclose(at_start("glad", crowd)[1].truth_prior, np.log(0.5), rtol=1e-6)


def test_glad_does_not_lose_a_class_of_data_with_two_difficult_classes():
    """On bluebird an estimated prevalence takes the labels of 40 % of the tasks into the other class."""
    try:
        bluebird = cp.load_dataset("bluebird")
    except UnknownNameError:
        pytest.skip("CROWDPPL_DATA has no bluebird")
    found = (cp.fit("glad", bluebird, progress=False).posterior.argmax(-1) == bluebird.gold).mean()
    assert found == pytest.approx(0.7222, abs=0.01)  # crowd-kit's GLAD too


@pytest.mark.parametrize(
    ("story", "shares"),
    [
        ("one_coin", "uniform"),
        *((story, [0.3, 0.7]) for story in STAND_FOR_OTHERS),
        *(
            pytest.param(story, [0.3, 0.7], marks=pytest.mark.long)
            for story in STORIES
            if story not in STAND_FOR_OTHERS
        ),
        *(pytest.param(story, "uniform", marks=pytest.mark.slow) for story in STORIES if story != "one_coin"),
    ],
)
def test_every_story_takes_shares_of_the_classes_that_are_not_estimated(crowd, story, shares):
    """Of a task without annotations the label is the prior."""
    if story == "difficulty":
        pytest.skip("its vote shares are the prior")
    empty = crowd.replace(task=np.where(crowd.task == 11, 10, crowd.task))
    fit = cp.fit(story, empty, truth_prior=shares, **FEW)
    assert "prevalence" not in fit.parameters
    np.testing.assert_allclose(fit.posterior[11], [0.5, 0.5] if shares == "uniform" else shares, atol=1e-5)


@pytest.mark.parametrize(
    ("prior", "error", "message"),
    [
        ("unifrom", UnknownNameError, "did you mean 'uniform'"),
        ([0.3, 0.3], StoryError, "which sum to 1"),
        ([0.2, 0.3, 0.5], StoryError, "one share for each of the 2 classes"),
        ([1.5, -0.5], StoryError, "which sum to 1"),
    ],
)
def test_shares_that_cannot_be_are_refused(crowd, prior, error, message):
    with pytest.raises(error, match=message):
        cp.fit("dawid_skene", crowd, truth_prior=prior, **FEW)


@pytest.mark.parametrize("shares", [None, (0.3, 0.7)])
def test_fixed_shares_come_back_from_the_disk(crowd, shares, tmp_path):
    prior = cp.FixedPrevalence(shares)
    assert truth_prior_from_json(json.loads(json.dumps(prior.to_json()))) == prior
    fit = cp.fit("dawid_skene", crowd, truth_prior=prior, **FEW)
    fit.save(tmp_path / "fit")
    np.testing.assert_allclose(cp.load_fit(tmp_path / "fit").posterior, fit.posterior, atol=1e-6)


def test_simulations_take_the_shares_too():
    annotations, drawn = cp.simulate("dawid_skene", n_tasks=4000, n_workers=2, truth_prior=[0.2, 0.8], seed=0)
    assert "prevalence" not in drawn
    assert (annotations.gold == 1).mean() == pytest.approx(0.8, abs=0.03)  # five standard errors


@pytest.mark.parametrize("story", ["hierarchical_dawid_skene", "worker_clusters"])
def test_logits_of_right_annotations_may_have_the_mean_zero(crowd, story):
    """The prior of the crowd's logits is then the same for all cells: shifted, its density is that of the diagonal."""
    fit = cp.fit(story, crowd, diagonal=0, **FEW)
    assert np.isfinite(fit.outcome.history).all()
    name = "common" if story == "hierarchical_dawid_skene" else "cluster_logits"
    swap = [1, 0]
    found, at = at_start(story, crowd, diagonal=0.0)
    swapped = density(
        Model(STORIES[story], {"diagonal": 0.0}),
        found | {name: found[name][..., swap]},
        jax.tree.map(jnp.asarray, crowd),
    )
    if story == "hierarchical_dawid_skene":
        assert float(at.log_prior) == pytest.approx(float(swapped.log_prior), rel=1e-5)
    with pytest.raises(StoryError, match="diagonal=nan"):
        cp.fit(story, crowd, diagonal=float("nan"), **FEW)


def test_ebcc_is_the_story_of_subtypes_with_the_settings_of_its_authors(crowd):
    """Li, Rubinstein & Cohn 2019: ten subtypes, a_π / M = 0.1 / 10, a_v = 4 on the diagonal and b_v = 1 off it."""
    ours = {"subtypes": 10, "share": 0.01, "diagonal": 4.0, "off_diagonal": 1.0}
    (found, published), (_, same) = (
        at_start("ebcc", crowd),
        at_start("independent_confusion_subtypes", crowd, **ours),
    )
    assert found["weights"].shape == (2, 10)
    assert float(published.log_posterior) == pytest.approx(float(same.log_posterior), rel=1e-6)
    fewer, _ = at_start("ebcc", crowd, subtypes=3)
    assert fewer["weights"].shape == (2, 3)


NAMES = [*ALIASES, "ebcc"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_papers_are_taken_by_every_function_that_takes_a_story(crowd, name):
    fit = cp.fit(name, crowd, **FEW)
    assert fit.posterior.shape == (12, 2)
    assert cp.fit("auto", crowd, stories=[name, "one_coin"], progress=False).weights.index.tolist() == [
        name,
        "one_coin",
    ]
    cp.simulate(name, n_tasks=5, n_workers=2, n_classes=2, seed=0)
    cp.marginal(name, crowd)
    cp.with_shared_error(name)
    cp.with_task_difficulty(name)
    listed = cp.list_stories()
    assert name in listed.index or name in ", ".join(listed["also_called"])


@pytest.mark.parametrize("name", ["wawa", "naive_soft"])
def test_rules_are_fitted_by_name(crowd, name):
    assert cp.fit(name, crowd).posterior.shape == (12, 2)
    assert name in cp.list_baselines().index


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("naive_sft", "naive_soft"),
        ("majority_vot", "majority_vote"),
        ("ebc", "ebcc"),
        ("conl", "conal"),
        ("glda", "glad"),
    ],
)
def test_misspelt_names_of_stories_papers_and_rules_are_suggested(crowd, wrong, right):
    with pytest.raises(UnknownNameError, match=f"did you mean '{right}'"):
        cp.fit(wrong, crowd, progress=False)


def test_a_published_story_is_known_where_fits_are_read(crowd, tmp_path):
    assert "ebcc" in KNOWN_STORIES
    fit = cp.fit("ebcc", crowd, **FEW)
    fit.save(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit").story == "ebcc"
