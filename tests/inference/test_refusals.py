"""What is no truth prior, no continuous parameter or no end of an optimisation is said, and never taken in silence."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import crowdppl as cp
from crowdppl.inference.baselines.fit_baseline import BASELINES
from crowdppl.inference.fit import CALLED_ELSEWHERE
from crowdppl.models import ALIASES, KNOWN_STORIES


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        (3, r"truth_prior=.*Prevalence\(3\.0\).*is needed"),
        (-3, r"truth_prior=.*Prevalence\(3\.0\).*is needed"),
        ("even", "unknown truth_prior 'even'. There are: uniform"),
        ([0.5, 0.3, 0.3], "one share for each of the 3 classes .* which sum to 1"),
        ({0: 0.5, 1: 0.3, 2: 0.3}, "one share for each of the 3 classes .* which sum to 1"),
        ({0: 0.5, 1: 0.3, 3: 0.2}, "unknown class in truth_prior 3. There are: 0, 1, 2"),
        ({0: 0.5, 1: 0.5}, "truth_prior={0: 0.5, 1: 0.5}: the class 2 has no share"),
        ({0: 0.5, 1: "half", 2: 0.0}, "shares of the classes are numbers: .* 'half'"),
    ],
)
def test_what_is_no_truth_prior_is_refused(tiny, prior, said):
    with pytest.raises(ValueError, match=said):
        cp.fit("dawid_skene", tiny, truth_prior=prior, progress=False)


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.array([0.98, 0.01, 0.01]), "exponentials do not sum to 1"), (np.zeros(2), r"array of shape \(2,\)")],
)
def test_a_function_that_returns_no_log_probabilities_is_refused(tiny, values, message):
    with pytest.raises(cp.StoryError, match=message):
        cp.fit("dawid_skene", tiny, truth_prior=lambda annotations: values, progress=False)


def test_a_function_that_returns_log_probabilities_is_a_prior(tiny):
    given = np.array([0.98, 0.01, 0.01])
    by_function = cp.fit("dawid_skene", tiny, truth_prior=lambda annotations: jnp.log(given), progress=False)
    by_table = cp.fit("dawid_skene", tiny, truth_prior=np.tile(given, (tiny.n_tasks, 1)), progress=False)
    np.testing.assert_allclose(by_function.posterior, by_table.posterior, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpyro", "pyro"])
def test_shares_by_class_are_those_in_the_order_of_the_classes(tiny, backend):
    by_class = cp.fit("dawid_skene", tiny, truth_prior={2: 0.1, 0: 0.6, 1: 0.3}, progress=False, backend=backend)
    in_order = cp.fit("dawid_skene", tiny, truth_prior=[0.6, 0.3, 0.1], progress=False, backend=backend)
    even = cp.fit("dawid_skene", tiny, truth_prior="uniform", progress=False, backend=backend)
    np.testing.assert_array_equal(by_class.posterior, in_order.posterior)
    assert not np.allclose(by_class.posterior, even.posterior)


def test_a_discrete_parameter_is_refused_by_its_name(tiny):
    def story(annotations, *, truth_prior=None):
        skill = numpyro.sample("skill", dist.Bernoulli(0.5))
        confusion = jnp.full((annotations.n_workers, 3, 3), 1 / 3) + 0 * skill
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Confusion(confusion), annotations)

    with pytest.raises(cp.StoryError, match="the site 'skill' is discrete"):
        cp.fit(story, tiny, progress=False)


@pytest.mark.parametrize(("steps", "message"), [(50, "too few to see"), (120, "did not converge in 120 steps")])
def test_svi_that_stops_early_warns(steps, message):
    with pytest.warns(cp.ConvergenceWarning, match=message):
        cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="svi", max_iterations=steps, progress=False)


def test_one_iteration_of_em_says_that_it_is_too_few(tiny):
    with pytest.warns(cp.ConvergenceWarning, match="EM took 1 iterations"):
        cp.fit("dawid_skene", tiny, max_iterations=1, progress=False)


def test_the_summary_scores_the_gold_tasks_whose_labels_the_fit_did_not_use():
    drawn, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=5, n_classes=2, seed=0)
    some = {task: drawn.classes[int(drawn.gold[task])] for task in range(10)}
    told = cp.fit("dawid_skene", drawn, gold=some, progress=False)
    assert "on 30 gold tasks whose labels the fit did not use (10 others it used)" in str(told.summary())
    blank = cp.fit("dawid_skene", drawn.without_gold(), gold={0: None}, progress=False)
    assert "no gold label is known" in str(blank.summary())


def test_the_truth_of_a_simulation_can_be_given_back_as_gold():
    drawn, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=5, n_classes=2, seed=0)
    bare = drawn.without_gold()
    fit = cp.fit("dawid_skene", bare, progress=False)
    assert cp.score(fit, drawn.gold)["tasks"] == 40
    np.testing.assert_array_equal(bare.with_gold(drawn.gold).gold, drawn.gold)


def test_a_saved_fit_is_replaced_where_it_is_asked_for(tiny, tmp_path):
    fit = cp.fit("dawid_skene", tiny, progress=False)
    fit.save(tmp_path / "fit")
    with pytest.raises(cp.StorageError, match="overwrite=True"):
        fit.save(tmp_path / "fit")
    fit.save(tmp_path / "fit", overwrite=True)


@pytest.mark.parametrize(
    ("story", "said"),
    [
        ("svi", "method='svi'"),
        ("MCMC", "method='nuts'"),
        ("mv", "did you mean 'majority_vote'"),
        ("IRT", "did you mean 'item_response'"),
        ("dawidskene", "did you mean 'dawid_skene'"),
    ],
)
def test_a_name_from_elsewhere_is_told_what_it_is_here(tiny, story, said):
    with pytest.raises(cp.UnknownNameError, match=said):
        cp.fit(story, tiny, progress=False)


def test_names_from_elsewhere_are_none_of_ours_and_stand_for_what_there_is():
    ours = {*KNOWN_STORIES, *ALIASES, *BASELINES}
    assert not ours & CALLED_ELSEWHERE.keys()
    assert ours >= {*CALLED_ELSEWHERE.values()}


@pytest.mark.parametrize("option", ["ordered", "truth_classes", "task"])
def test_an_option_of_reading_is_told_where_it_belongs(tiny, option):
    with pytest.raises(cp.UnknownNameError, match=rf"cp\.read\(source, {option}=\['a', 'b'\]\)"):
        cp.fit("dawid_skene", tiny, progress=False, **{option: ["a", "b"]})


def test_a_function_of_nothing_is_no_story(tiny):
    def alone():
        numpyro.sample("ability", dist.Beta(1, 1))

    with pytest.raises(cp.StoryError, match=r"def alone\(annotations\)"):
        cp.fit(alone, tiny, progress=False)
