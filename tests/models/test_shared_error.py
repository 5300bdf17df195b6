"""Errors that workers share: what every story becomes where a task's annotations follow a common impression."""

import itertools

import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from numpyro import handlers
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.inference.findings.summary import options_text, shared_errors
from crowdppl.models import STORIES, SharedError, with_shared_error
from crowdppl.models.parts.shared_error import LEVELS


def model_of(story="dawid_skene", **options):
    return Model(STORIES[story], {"shared_error": True} | options)


def parameters_of(model, annotations, seed=0):
    """Random parameters: Dirichlet sites at random probabilities."""
    import jax

    rng = np.random.default_rng(seed)
    start = jax.eval_shape(lambda: starting_point(model, annotations, jax.random.key(0)))
    return {name: rng.dirichlet(np.ones(value.shape[-1]), value.shape[:-1]) for name, value in start.items()}


@pytest.mark.parametrize("families", [None, {"a": 0, "b": 1, "c": 1}])
def test_the_density_is_the_sum_over_classes_impressions_and_levels(families):
    plain = random_annotations(np.random.default_rng(3), n_tasks=4, n_workers=3, n_classes=2, n_rows=11)
    names = ["a", "b", "c"]
    frame = plain.to_frame()
    frame["worker"] = [names[int(w)] for w in plain.worker]
    annotations = cp.Annotations.from_frame(frame, classes=list(plain.classes))
    family = np.zeros(3, int) if families is None else np.array([families[w] for w in annotations.workers])
    n_families, n_classes = family.max() + 1, 2
    model = model_of() if families is None else model_of(worker_families=families)
    values = parameters_of(model, annotations)
    table, strength, pull = values["confusion"], values["pull_strength"], values["pull"]
    expected = np.zeros((annotations.n_tasks, n_classes))
    states = list(itertools.product(range(len(LEVELS)), range(n_classes)))
    for task, truth in itertools.product(range(annotations.n_tasks), range(n_classes)):
        total = 0.0
        for state in itertools.product(states, repeat=n_families):
            p = values["prevalence"][truth]
            for f, (level, impression) in enumerate(state):
                p *= strength[f, level] * pull[truth, impression]
            for row in np.flatnonzero(np.asarray(annotations.task) == task):
                worker, label = annotations.worker[row], annotations.label[row]
                level, impression = state[family[worker]]
                follows = LEVELS[level]
                p *= follows * (label == impression) + (1 - follows) * table[worker, truth, label]
            total += p
        expected[task, truth] = np.log(total)
    np.testing.assert_allclose(density(model, values, annotations).log_joint, expected, rtol=2e-5)


def test_without_a_pull_it_is_the_story_itself():
    annotations = random_annotations(np.random.default_rng(1), n_tasks=6, n_workers=4, n_classes=3, n_rows=20)
    values = parameters_of(model_of(), annotations)
    values["pull_strength"] = np.array([[1.0, 0, 0, 0, 0]])
    own = {name: value for name, value in values.items() if not name.startswith("pull")}
    np.testing.assert_allclose(
        density(model_of(), values, annotations).log_joint,
        density(Model(STORIES["dawid_skene"]), own, annotations).log_joint,
        rtol=1e-5,
    )


def test_annotations_of_one_task_are_drawn_as_their_joint_probability_says():
    """Two workers, 40,000 tasks: how often each pair of annotations comes, given the class, against the density."""
    parameters = {
        "confusion": np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]]),
        "pull_strength": np.array([[0.3, 0.1, 0.1, 0.2, 0.3]]),
        "pull": np.array([[0.6, 0.4], [0.5, 0.5]]),
        "prevalence": np.array([0.5, 0.5]),
    }
    drawn, _ = cp.simulate("dawid_skene", n_tasks=40_000, n_workers=2, parameters=parameters, shared_error=True, seed=2)
    labels = np.asarray(drawn.label).reshape(-1, 2)
    truth = np.asarray(drawn.gold)
    for z, (one, two) in itertools.product(range(2), itertools.product(range(2), repeat=2)):
        expected = 0.0
        for q, c in itertools.product(range(5), range(2)):
            each = [
                LEVELS[q] * (label == c) + (1 - LEVELS[q]) * parameters["confusion"][j, z, label]
                for j, label in enumerate((one, two))
            ]
            expected += parameters["pull_strength"][0, q] * parameters["pull"][z, c] * each[0] * each[1]
        found = ((labels == (one, two)).all(1))[truth == z].mean()
        assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / (truth == z).sum()))


def test_the_confusion_matrices_are_those_in_the_long_run():
    annotations = random_annotations(np.random.default_rng(1), n_tasks=6, n_workers=4, n_classes=3, n_rows=20)
    values = parameters_of(model_of(), annotations)
    at = density(model_of(), values, annotations)
    assert isinstance(at.likelihood.emission, SharedError)
    followed = (values["pull_strength"][0] * LEVELS).sum()
    expected = (1 - followed) * values["confusion"] + followed * values["pull"]
    np.testing.assert_allclose(at.likelihood.emission.confusions(annotations), expected, rtol=1e-5)


@pytest.mark.parametrize("families", [None, [0, 1, 1, 0]])
@pytest.mark.parametrize("abstains", [False, True])
def test_one_more_annotation_is_as_probable_as_the_ratio_of_the_densities_with_and_without_it(families, abstains):
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    task, worker = np.sort(np.r_[rng.integers(0, 5, 14), range(5)]), rng.integers(0, 4, 19)
    rows = pd.DataFrame({"task": task, "worker": worker, "label": rng.integers(0, 3 + abstains, 19)})
    annotations = cp.Annotations.from_frame(rows, classes=[0, 1, 2], abstain=[3] if abstains else [], workers=range(4))
    options = {} if families is None else {"worker_families": dict(enumerate(families))}
    values = parameters_of(model := model_of(**options), annotations)
    emission = density(model, values, annotations).likelihood.emission
    further = emission.further(annotations, jnp.asarray(annotations.label))
    before = emission.by_task(annotations, jnp.asarray(annotations.label))
    for who in range(4):
        found = further.probs(jnp.full(5, who), jnp.arange(5))
        for kind in range(3 + abstains):
            one = pd.DataFrame({"task": range(5), "worker": who, "label": kind})
            more = pd.concat([rows, one]).sort_values("task", kind="stable")
            both = cp.Annotations.from_frame(
                more, classes=[0, 1, 2], abstain=[3] if abstains else [], workers=range(4), repeats="keep"
            )
            ratio = np.exp(emission.by_task(both, jnp.asarray(both.label)) - before)
            np.testing.assert_allclose(found[:, :, kind], ratio, rtol=2e-4)


@pytest.mark.parametrize("story", ["one_coin", "glad", "hierarchical_dawid_skene"])
def test_every_kind_of_story_takes_it(story):
    annotations, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=6, seed=0)
    fit = cp.fit(story, annotations.without_gold(), shared_error=True, max_iterations=20, progress=False)
    assert np.isfinite(fit.history).all()
    np.testing.assert_allclose(fit.posterior.sum(-1), 1.0, atol=1e-5)
    assert fit.history.iloc[-1] > fit.history.iloc[0]


def test_a_story_of_ones_own_takes_it_under_numpyros_own_tools():
    import jax

    program = with_shared_error(STORIES["dawid_skene"])
    annotations, _ = cp.simulate("dawid_skene", n_tasks=12, n_workers=3, seed=0)
    with handlers.seed(rng_seed=jax.random.key(0)), handlers.trace() as sites:
        program(annotations.without_gold())
    assert {"pull", "pull_strength", "confusion", "truth", "annotation"} <= set(sites)
    fit = cp.fit(program, annotations.without_gold(), max_iterations=5, progress=False)
    assert "pull" in fit.fitted.draws


def shared_crowd(seed=0):
    """A crowd of fair workers of whom 60 of 100 follow a wrong impression in a fifth of the tasks."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = 600, 12
    truth = rng.integers(0, 2, n_tasks)
    misled = rng.random(n_tasks) < 0.2
    follows = misled[:, None] & (rng.random((n_tasks, n_workers)) < 0.6)
    right = rng.random((n_tasks, n_workers)) < rng.uniform(0.65, 0.95, n_workers)
    labels = np.where(follows, 1 - truth[:, None], np.where(right, truth[:, None], 1 - truth[:, None]))
    matrix = pd.DataFrame(labels)
    return cp.Annotations.from_matrix(matrix.to_numpy()), truth


def log_score(fit, truth):
    return np.log(np.maximum(fit.posterior[np.arange(len(truth)), truth], 1e-12)).mean()


def test_where_errors_are_shared_labels_are_less_sure_and_score_better():
    annotations, truth = shared_crowd()
    plain = cp.fit("dawid_skene", annotations, progress=False)
    shared = cp.fit("dawid_skene", annotations, shared_error=True, progress=False)
    assert log_score(shared, truth) > log_score(plain, truth) + 0.1


def test_where_errors_are_not_shared_the_pull_is_small_and_the_labels_are_as_good():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=2000, n_workers=10, seed=3)
    truth = np.asarray(annotations.gold)
    plain = cp.fit("dawid_skene", annotations.without_gold(), progress=False)
    shared = cp.fit("dawid_skene", annotations.without_gold(), shared_error=True, progress=False)
    expected_pull = shared.fitted.draws["pull_strength"][0, 0, 0] @ LEVELS
    assert expected_pull < 0.1
    right = [(fit.posterior.argmax(1) == truth).mean() for fit in (plain, shared)]
    assert right[1] > right[0] - 0.01


def test_families_that_do_not_fit_the_workers_are_refused_by_name():
    annotations = cp.load_dataset("anesthesia")
    known = list(annotations.workers)
    with pytest.raises(StoryError, match="'nobody'"):
        cp.fit("dawid_skene", annotations, shared_error=True, worker_families={"nobody": 1}, progress=False)
    with pytest.raises(StoryError, match="does not name the worker"):
        cp.fit("dawid_skene", annotations, shared_error=True, worker_families={known[0]: 1}, progress=False)
    with pytest.raises(StoryError, match="column 'family'"):
        cp.fit("dawid_skene", annotations, shared_error=True, worker_families=pd.DataFrame({"worker": known}))
    with pytest.raises(StoryError, match="shared_error=True"):
        cp.fit("dawid_skene", annotations, worker_families=dict.fromkeys(known, 1), progress=False)


def test_subtypes_which_are_shared_errors_take_no_others():
    options = {"shared_error": True, "max_iterations": 2, "progress": False}
    with pytest.raises(StoryError, match="leave shared_error out"):
        cp.fit("independent_confusion_subtypes", cp.load_dataset("anesthesia"), **options)


def test_abstentions_follow_no_impression():
    frame = cp.load_dataset("anesthesia").to_frame().astype({"label": str})
    frame.loc[::7, "label"] = "none"
    annotations = cp.Annotations.from_frame(frame, abstain=["none"])
    model = model_of()
    values = parameters_of(model, annotations)
    at = density(model, values, annotations)
    alone = at.likelihood.emission
    values["abstention"] = np.broadcast_to(np.array([1 - 1e-6, 1e-6]), values["abstention"].shape)
    rare = density(model, values, annotations).log_joint
    given = annotations.of_classes()
    own = {name: value for name, value in values.items() if name != "abstention"}
    n_abstained = np.bincount(annotations.task, np.asarray(annotations.label) >= 4, annotations.n_tasks)
    expected = density(model, own, given).log_joint + n_abstained[:, None] * np.log(1e-6)
    np.testing.assert_allclose(rare, expected, rtol=1e-3, atol=1e-3)
    assert isinstance(alone.emission, SharedError)


def test_joint_probabilities_with_abstentions_and_a_truth_for_each_annotation_sum_to_one():
    """Over all annotations of one task by two workers who may abstain, where the emission beneath knows abstentions."""
    total = 0.0
    for first, second in itertools.product(["a", "b", "skip"], repeat=2):
        rows = [("i", "u", first), ("i", "v", second)]
        annotations = cp.Annotations.from_frame(
            pd.DataFrame(rows, columns=["task", "worker", "label"]), classes=["a", "b"], abstain=["skip"]
        )
        model = Model(STORIES["annotator_groups"], {"shared_error": True, "truth": "answer", "groups": 2})
        values = parameters_of(model, annotations)
        total += np.exp(np.asarray(density(model, values, annotations).log_joint)).sum()
    np.testing.assert_allclose(total, 1.0, rtol=1e-5)


def test_a_fit_with_families_comes_back_from_its_folder(tmp_path):
    annotations = cp.load_dataset("anesthesia")
    families = {worker: i % 2 for i, worker in enumerate(annotations.workers)}
    fit = cp.fit(
        "dawid_skene", annotations, shared_error=True, worker_families=families, progress=False, max_iterations=5
    )
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(again.posterior, fit.posterior, atol=1e-6)


def own(annotations, *, truth_prior=None):
    """A story that the package does not have, under the name of one that it has."""
    STORIES["one_coin"](annotations, truth_prior=truth_prior)


own.__name__ = "dawid_skene"


@pytest.mark.slow
@pytest.mark.parametrize("story", ["dawid_skene", STORIES["dawid_skene"]])
def test_a_story_with_shared_error_is_the_fit_of_shared_error_true_and_comes_back_from_its_folder(story, tmp_path):
    annotations = cp.load_dataset("anesthesia").without_gold()
    families = {worker: i % 2 for i, worker in enumerate(annotations.workers)}
    options = {"max_iterations": 5, "progress": False}
    wrapped = cp.fit(with_shared_error(story, worker_families=families, shared_weight=20.0), annotations, **options)
    asked = cp.fit(
        "dawid_skene", annotations, shared_error=True, worker_families=families, shared_weight=20.0, **options
    )
    np.testing.assert_array_equal(wrapped.posterior, asked.posterior)
    assert "shared_error" in str(wrapped.summary())
    wrapped.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.workers, wrapped.workers, check_exact=False, rtol=1e-5)
    assert "pull" in again.update(annotations.to_frame().head(3), progress=False).parameters


@pytest.mark.slow
def test_a_story_of_ones_own_with_shared_error_is_not_read_as_the_story_of_its_name(tmp_path):
    annotations = cp.load_dataset("anesthesia").without_gold()
    fit = cp.fit(with_shared_error(own), annotations, max_iterations=5, progress=False)
    fit.save(tmp_path / "fit")
    with pytest.raises(cp.StorageError, match="story=…"):
        cp.load_fit(tmp_path / "fit")
    with pytest.raises(cp.StorageError, match="'confusion' is not saved"):
        cp.load_fit(tmp_path / "fit", story="dawid_skene")
    for story in (own, with_shared_error(own)):
        again = cp.load_fit(tmp_path / "fit", story=story)
        np.testing.assert_allclose(again.workers["accuracy"], fit.workers["accuracy"], rtol=1e-5)


def test_shared_errors_asked_for_twice_are_refused():
    annotations = cp.load_dataset("anesthesia")
    once = with_shared_error("dawid_skene", shared_weight=20.0)
    for twice in ({"shared_error": True}, {"shared_weight": 5.0}):
        with pytest.raises(StoryError, match=f"{next(iter(twice))} is given twice"):
            cp.fit(once, annotations, progress=False, **twice)
    with pytest.raises(StoryError, match="already"):
        with_shared_error(once)
    with pytest.raises(cp.UnknownNameError, match="dawid_skene"):
        with_shared_error("david_skene")


def test_families_that_are_missing_and_a_switch_that_is_no_switch_are_refused():
    annotations = cp.load_dataset("anesthesia")
    known = list(annotations.workers)
    with pytest.raises(StoryError, match=rf"no family for the worker {known[0]!r} \(5 such workers\)"):
        cp.fit("dawid_skene", annotations, shared_error=True, worker_families=dict.fromkeys(known), progress=False)
    for value in ("yes", 1):
        with pytest.raises(StoryError, match=f"shared_error={value!r}: True or False is needed"):
            cp.fit("dawid_skene", annotations, shared_error=value, progress=False)


def test_families_take_a_line_in_errors_and_summaries():
    annotations = cp.simulate("one_coin", n_tasks=10, n_workers=39, seed=0)[0]
    families = {worker: worker % 3 for worker in annotations.workers}
    with pytest.raises(StoryError, match="shared_error=True") as error:
        cp.fit("one_coin", annotations, worker_families=families, progress=False)
    assert "\n" not in str(error.value)
    fit = cp.fit("one_coin", annotations, shared_error=True, worker_families=families, max_iterations=2, progress=False)
    assert options_text(fit.model) == "shared_error=True, worker_families=3 families of 39 workers"


def test_the_summary_says_how_strong_the_pull_is_and_the_parameters_name_families_and_levels(tmp_path):
    annotations = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].without_gold()
    families = {worker: "even" if worker % 2 == 0 else "odd" for worker in annotations.workers}
    options = {"shared_error": True, "max_iterations": 3, "progress": False}
    plain = cp.fit("one_coin", annotations, **options)
    strength = plain.parameters["pull_strength"]
    assert strength["family"].values.tolist() == ["all workers"]
    np.testing.assert_allclose(strength["level"], LEVELS)
    share = float((strength * strength["level"]).sum())
    text = plain.summary().facts["shared errors"]
    # The prior expects 0.35, 0.25, 0.2, 0.12 and 0.08 of the levels 0, 0.2, …, 0.8.
    assert text.startswith(f"{share:.0%} of the annotations follow a common impression")
    assert "(the prior expects 27%)" in text
    wrong = 1 - float(np.diagonal(plain.parameters["pull"]).mean())
    assert f"An impression is wrong in {wrong:.0%} of the tasks of a class (the prior expects 30%" in text
    assert "independent ones" in plain.summary().facts["independence"]
    by_family = cp.fit("one_coin", annotations, worker_families=families, **options)
    pulls = by_family.parameters["pull_strength"] @ by_family.parameters["level"]
    expected = ", ".join(f"{float(pulls.sel(family=name)):.0%} of {name}" for name in ("even", "odd"))
    said = shared_errors(by_family.only)["shared errors"]
    assert said.startswith(f"{expected}: shares of annotations that follow")
    by_family.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit").parameters["pull_strength"]
    np.testing.assert_allclose(again.sel(family="odd"), by_family.parameters["pull_strength"].sel(family="odd"))
    own = cp.fit("one_coin", annotations, max_iterations=3, progress=False)
    assert shared_errors(own.only) == {}


@pytest.mark.slow
def test_ranks_of_the_mean_pull_are_uniform_under_nuts():
    """100 simulations; a right sampler has a p-value below 0.001 in one test of a thousand."""

    def quantities(parameters):
        return {"pull": parameters["pull_strength"][0] @ np.asarray(LEVELS, np.float32)}

    sizes = {"n_tasks": 60, "n_workers": 6, "n_simulations": 100, "right": 12.0, "wrong": 3.0}
    found = cp.calibrate("one_coin", shared_error=True, shared_weight=5.0, quantities=quantities, **sizes)
    assert found.p_values().min() > 1e-3


@pytest.fixture(scope="module")
def misread():
    """A crowd of whom most take class 1 for class 2, and its true labels."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 250)
    right = rng.random((250, 20)) < 0.8
    label = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, right.shape)) % 3)
    takes = (truth[:, None] == 1) & (np.arange(20) < 13) & (rng.random(label.shape) < 0.8)
    task, worker = np.nonzero(rng.random(label.shape).argsort(1).argsort(1) < 8)
    label = np.where(takes, 2, label)[task, worker]
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return cp.Annotations.from_frame(frame, classes=range(3)), truth


def test_em_starts_also_where_the_plain_story_ends_and_keeps_the_higher_end(misread, monkeypatch):
    annotations, truth = misread
    both = cp.fit("dawid_skene", annotations, shared_error=True, progress=False)
    monkeypatch.setattr(Model, "plain", None)
    alone = cp.fit("dawid_skene", annotations, shared_error=True, progress=False)
    assert both.history.iloc[-1] > alone.history.iloc[-1] + 5
    right = [(fit.posterior.argmax(-1) == truth).mean() for fit in (alone, both)]
    assert right[0] < 0.75
    assert right[1] > 0.9


def test_the_plain_form_has_neither_the_parts_nor_their_hyperparameters():
    model = Model(STORIES["dawid_skene"], {"shared_error": True, "shared_weight": 9.0, "diagonal": 3.0}, ("diagonal",))
    assert model.plain == Model(STORIES["dawid_skene"], {"diagonal": 3.0}, ("diagonal",))
    assert Model(with_shared_error(STORIES["mace"]), {}).plain == Model(STORIES["mace"], {})
    assert Model(STORIES["mace"], {"shared_error": False}).plain is None
