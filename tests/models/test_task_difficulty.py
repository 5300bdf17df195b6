"""Difficulty of tasks: what every story becomes where the workers know less of some tasks than of others."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import random_annotations
from scipy.special import logsumexp
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.cli.arguments import parse_settings
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import starting_point
from crowdppl.inference.findings.summary import difficulties
from crowdppl.models import STORIES, TaskDifficulty, with_shared_error, with_task_difficulty
from crowdppl.models.parts import shared_error
from crowdppl.models.parts.subtypes import Subtypes
from crowdppl.models.parts.task_difficulty import LEVELS

SHARE = np.array([0.4, 0.1, 0.2, 0.3])
BOTH = {"shared_error": True, "task_difficulty": True}


def model_of(story="dawid_skene", **options):
    return Model(STORIES[story], {"task_difficulty": True} | options)


def parameters_of(model, annotations, seed=0):
    """Random parameters: tables at random probabilities, others where engines start."""
    rng = np.random.default_rng(seed)
    start = starting_point(model, annotations, jax.random.key(seed))
    is_table = {name: value.ndim and np.allclose(value.sum(-1), 1) for name, value in start.items()}
    drawn = {
        name: rng.dirichlet(np.ones(value.shape[-1]), value.shape[:-1]) for name, value in start.items() if value.ndim
    }
    return {name: drawn[name] if is_table[name] else np.asarray(value) for name, value in start.items()}


@partial(jax.jit, static_argnames="model")
def log_joint(model, values, annotations):
    return density(model, values, annotations).log_joint


def tempered(rows, level):
    powers = rows ** (1 - level)
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("families", [None, {0: 0, 1: 1, 2: 1}], ids=["alone", "with shared errors of families"])
def test_the_density_is_the_sum_over_classes_levels_and_impressions(families):
    n_classes = 2 if families else 3
    annotations = random_annotations(np.random.default_rng(3), n_tasks=4, n_workers=3, n_classes=n_classes, n_rows=11)
    family = [0, 0, 0] if families is None else [families[w] for w in annotations.workers]
    model = model_of() if families is None else model_of(shared_error=True, worker_families=families)
    values = parameters_of(model, annotations)
    table, share = values["confusion"], values["difficulty_share"]
    pulls = [(0.0, 0)] if families is None else [*itertools.product(shared_error.LEVELS, range(n_classes))]
    expected = np.zeros((annotations.n_tasks, n_classes))
    for task, truth in itertools.product(range(annotations.n_tasks), range(n_classes)):
        total = 0.0
        for q, of_families in itertools.product(range(len(LEVELS)), itertools.product(pulls, repeat=max(family) + 1)):
            p = values["prevalence"][truth] * share[q]
            for f, (follows, impression) in enumerate(of_families):
                if families is not None:
                    level = list(shared_error.LEVELS).index(follows)
                    p *= values["pull_strength"][f, level] * values["pull"][truth, impression]
            for row in np.flatnonzero(np.asarray(annotations.task) == task):
                worker, label = annotations.worker[row], annotations.label[row]
                follows, impression = of_families[family[worker]]
                own = tempered(table[worker, truth], LEVELS[q])[label]
                p *= follows * (label == impression) + (1 - follows) * own
            total += p
        expected[task, truth] = np.log(total)
    np.testing.assert_allclose(density(model, values, annotations).log_joint, expected, rtol=2e-5)


QUICK = ["glad", "common_individual", "independent_confusion_subtypes"]  # Correct, a mixture of tables, subtypes


@pytest.mark.parametrize(
    ("story", "options"),
    [(story, {}) for story in QUICK]
    + [pytest.param(story, {}, marks=pytest.mark.slow) for story in STORIES if story not in QUICK]
    + [pytest.param("annotator_groups", {"truth": "answer"}, marks=pytest.mark.slow)],
)
def test_every_storys_annotations_are_tempered_and_at_level_zero_it_is_the_story_itself(story, options):
    annotations = random_annotations(np.random.default_rng(1), n_tasks=6, n_workers=4, n_classes=2, n_rows=20)
    model, plain = model_of(story, **options), Model(STORIES[story], options)
    values = parameters_of(model, annotations) | {"difficulty_share": np.eye(4)[0]}
    own = {name: value for name, value in values.items() if name != "difficulty_share"}
    alone = density(plain, own, annotations)
    at_zero = log_joint(model, values, annotations)
    np.testing.assert_allclose(at_zero, alone.log_joint, rtol=1e-4, atol=1e-4)
    emission = alone.likelihood.emission
    if isinstance(emission, Subtypes):  # its annotations are rows of a subtype
        table, weights = np.asarray(emission.table), np.asarray(emission.weights)
        of_row = [tempered(table, d)[annotations.worker, :, :, annotations.label] for d in LEVELS]
        by_task = [logsumexp(summed(np.log(rows), annotations) + np.log(weights), axis=-1) for rows in of_row]
    else:
        # Where each annotation has a truth of its own, that is summed out of the tempered rows.
        of_truth = emission.emission if options else emission
        rows = np.asarray(of_truth.probs(jnp.asarray(annotations.worker), jnp.asarray(annotations.task)))
        columns = [tempered(rows, d)[np.arange(20), :, annotations.label] for d in LEVELS]
        if options:
            columns = [np.outer(column @ np.exp(np.asarray(alone.truth_prior)).ravel(), [1, 1]) for column in columns]
        by_task = [summed(np.log(column), annotations) for column in columns]
    prior = alone.log_joint - emission.by_task(annotations, annotations.label)
    expected = prior + logsumexp(np.stack(by_task) + np.log(SHARE)[:, None, None], axis=0)
    found = log_joint(model, values | {"difficulty_share": SHARE}, annotations)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def summed(rows, annotations):
    total = np.zeros((annotations.n_tasks, *rows.shape[1:]))
    np.add.at(total, np.asarray(annotations.task), rows)
    return total


@pytest.mark.parametrize("level", [1, 2])
def test_one_coin_at_a_level_is_glad_at_that_difficulty(level):
    annotations = random_annotations(np.random.default_rng(5), n_tasks=6, n_workers=4, n_classes=2, n_rows=20)
    right = np.array([0.9, 0.6, 0.75, 0.99])
    prevalence = np.array([0.3, 0.7])
    coins = {"ability": np.stack([1 - right, right], -1), "prevalence": prevalence}
    ours = density(model_of("one_coin"), coins | {"difficulty_share": np.eye(4)[level]}, annotations)
    difficulty = np.full(6, -np.log(1 - LEVELS[level]))
    abilities = {"ability": np.log(right / (1 - right)), "difficulty": difficulty, "prevalence": prevalence}
    glad = density(Model(STORIES["glad"], {"truth_prior": cp.Prevalence()}), abilities, annotations)
    np.testing.assert_allclose(ours.log_joint, glad.log_joint, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"shared_error": True}], ids=["alone", "with shared errors"])
def test_annotations_of_one_task_are_drawn_as_their_joint_probability_says(options):
    """Two workers, 40,000 tasks: how often each pair of annotations comes, given the class, against the density."""
    parameters = {
        "confusion": np.array([[[0.9, 0.1], [0.05, 0.95]], [[0.6, 0.4], [0.1, 0.9]]]),
        "difficulty_share": SHARE,
        "prevalence": np.array([0.5, 0.5]),
    }
    if options:
        parameters |= {"pull_strength": np.full((1, 5), 0.2), "pull": np.array([[0.6, 0.4], [0.5, 0.5]])}
    design = {"n_tasks": 40_000, "n_workers": 2, "parameters": parameters, "seed": 2}
    drawn, _ = cp.simulate("dawid_skene", task_difficulty=True, **options, **design)
    labels, truth = np.asarray(drawn.label).reshape(-1, 2), np.asarray(drawn.gold)
    pairs = list(itertools.product(range(2), repeat=2))
    each = cp.Annotations.from_matrix(np.array(pairs))
    joint = np.exp(density(model_of(**options), parameters, each).log_joint) / parameters["prevalence"]
    for (one, two), z in itertools.product(enumerate(pairs), range(2)):
        expected = joint[one, z]
        found = (labels == two).all(1)[truth == z].mean()
        assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / (truth == z).sum()))


def test_the_confusion_matrices_are_those_in_the_long_run():
    annotations = random_annotations(np.random.default_rng(1), n_tasks=6, n_workers=4, n_classes=3, n_rows=20)
    values = parameters_of(model_of(), annotations) | {"difficulty_share": SHARE}
    emission = density(model_of(), values, annotations).likelihood.emission
    assert isinstance(emission, TaskDifficulty)
    expected = sum(share * tempered(values["confusion"], d) for share, d in zip(SHARE, LEVELS, strict=True))
    np.testing.assert_allclose(emission.confusions(annotations), expected, rtol=1e-5)
    np.testing.assert_allclose(
        emission.probs(annotations.worker, annotations.task), expected[annotations.worker], rtol=1e-5
    )


def test_abstentions_are_not_harder():
    frame = cp.load_dataset("anesthesia").to_frame().astype({"label": str})
    frame.loc[::7, "label"] = "none"
    annotations = cp.Annotations.from_frame(frame, abstain=["none"])
    values = parameters_of(model_of(), annotations)
    rate = np.array([0.7, 0.3])
    values["abstention"] = np.broadcast_to(rate, values["abstention"].shape)
    found = density(model_of(), values, annotations).log_joint
    own = {name: value for name, value in values.items() if name != "abstention"}
    abstained = summed((np.asarray(annotations.label) >= annotations.n_classes).astype(float), annotations)
    given = summed((np.asarray(annotations.label) < annotations.n_classes).astype(float), annotations)
    said = (given * np.log(0.7) + abstained * np.log(0.3))[:, None]
    expected = density(model_of(), own, annotations.of_classes()).log_joint + said
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def hard():
    """A crowd of ten able workers to whom three of ten tasks say little, and which tasks these are."""
    rng = np.random.default_rng(0)
    n_tasks, right = 1500, rng.uniform(0.75, 0.95, 10)
    is_hard, truth = rng.random(n_tasks) < 0.3, rng.integers(0, 2, n_tasks)
    log_odds = np.log(right / (1 - right)) * np.where(is_hard, 0.3, 1.0)[:, None]
    is_right = rng.random((n_tasks, 10)) < 1 / (1 + np.exp(-log_odds))
    matrix = np.where(is_right, truth[:, None], 1 - truth[:, None])
    return cp.Annotations.from_matrix(matrix), truth, is_hard


@pytest.fixture(scope="module")
def of_hard(hard):
    return cp.fit("one_coin", hard[0], task_difficulty=True, progress=False)


def test_the_mean_difficulty_is_recovered_and_labels_score_better(hard, of_hard):
    annotations, truth, is_hard = hard
    share = of_hard.parameters["difficulty_share"]
    # Over seeds the mean level has a standard deviation of 0.02; three of these, and the prior's 14 tasks.
    assert float(share @ share["difficulty_level"]) == pytest.approx(0.7 * is_hard.mean(), abs=0.07)
    plain = cp.fit("one_coin", annotations, progress=False)
    assert log_score(of_hard, truth) > log_score(plain, truth) + 0.02


def test_hard_tasks_are_found_and_the_columns_mean_is_that_of_the_levels(hard, of_hard):
    found = of_hard.tasks["difficulty"].to_numpy()
    assert ((found >= 0) & (found < 1)).all()
    assert found[hard[2]].mean() > found[~hard[2]].mean() + 0.2
    share = of_hard.parameters["difficulty_share"]
    # The shares are the mode of their log-odds: levels' expected counts and the prior's 14 pseudo-tasks.
    prior = (1 + 10 * np.array([0.8, 0.2 / 3, 0.2 / 3, 0.2 / 3])) @ LEVELS
    expected = (found.sum() + prior) / (len(found) + 14)
    assert float(share @ share["difficulty_level"]) == pytest.approx(expected, abs=2e-3)
    plain = cp.fit("one_coin", hard[0], progress=False, max_iterations=30)
    assert "difficulty" not in plain.tasks


def log_score(fit, truth):
    return np.log(np.maximum(fit.posterior[np.arange(len(truth)), truth], 1e-12)).mean()


def test_where_no_task_is_harder_the_difficulty_goes_to_zero_and_the_labels_are_as_good():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=2000, n_workers=10, seed=3)
    truth = np.asarray(annotations.gold)
    plain = cp.fit("dawid_skene", annotations.without_gold(), progress=False)
    hard = cp.fit("dawid_skene", annotations.without_gold(), task_difficulty=True, progress=False)
    # Level 0.4 of few tasks is nearly level 0 of workers who are a little less able; the prior expects 0.24.
    assert hard.fitted.draws["difficulty_share"][0, 0] @ LEVELS < 0.05
    right = [(fit.posterior.argmax(1) == truth).mean() for fit in (plain, hard)]
    assert right[1] > right[0] - 0.005


@pytest.mark.parametrize("story", ["one_coin", "glad", pytest.param("item_response", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [{"task_difficulty": True}, BOTH], ids=["alone", "with shared errors"])
def test_em_climbs_under_every_kind_of_story(story, options):
    annotations, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=6, seed=0)
    fit = cp.fit(story, annotations.without_gold(), max_iterations=20, progress=False, **options)
    rises = np.diff(fit.history.to_numpy())
    assert (rises > -1e-5 * np.abs(fit.history.iloc[-1])).all()
    assert fit.history.iloc[-1] > fit.history.iloc[0]


@pytest.mark.slow
def test_both_parts_are_one_fit_whatever_the_order_and_come_back_from_their_folder(tmp_path):
    annotations = cp.load_dataset("anesthesia").without_gold()
    options = {"max_iterations": 5, "progress": False}
    asked = cp.fit("dawid_skene", annotations, difficulty_weight=20.0, **BOTH, **options)
    for story in (
        with_task_difficulty(with_shared_error("dawid_skene"), difficulty_weight=20.0),
        with_shared_error(with_task_difficulty("dawid_skene", difficulty_weight=20.0)),
    ):
        fit = cp.fit(story, annotations, **options)
        np.testing.assert_array_equal(fit.posterior, asked.posterior)
        with pytest.raises(StoryError, match="given twice: the story is with_task_difficulty"):
            cp.fit(story, annotations, task_difficulty=True, progress=False)
    asked.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(again.parameters["difficulty_share"], asked.parameters["difficulty_share"])
    np.testing.assert_allclose(again.tasks["difficulty"], asked.tasks["difficulty"], atol=1e-5)
    more = again.update(annotations.to_frame().head(3), progress=False)
    assert more.parameters["difficulty_share"]["difficulty_level"].values.tolist() == LEVELS.tolist()


def test_a_wrong_order_of_programs_is_the_same_density():
    annotations = random_annotations(np.random.default_rng(1), n_tasks=4, n_workers=3, n_classes=2, n_rows=10)
    stories = [with_task_difficulty(with_shared_error("one_coin")), with_shared_error(with_task_difficulty("one_coin"))]
    values = parameters_of(Model(stories[0]), annotations)
    one, other = (density(Model(story), values, annotations) for story in stories)
    np.testing.assert_array_equal(one.log_joint, other.log_joint)


def test_what_cannot_be_is_refused():
    annotations = cp.load_dataset("anesthesia")
    with pytest.raises(StoryError, match=r"difficulty_weight=5.0 would be ignored.*give task_difficulty=True"):
        cp.fit("dawid_skene", annotations, difficulty_weight=5.0, progress=False)
    with pytest.raises(StoryError, match="task_difficulty='yes': True or False is needed"):
        cp.fit("dawid_skene", annotations, task_difficulty="yes", progress=False)
    with pytest.raises(StoryError, match="difficulty_weight=-1"):
        cp.fit("dawid_skene", annotations, task_difficulty=True, difficulty_weight=-1, progress=False)
    with pytest.raises(StoryError, match="already"):
        with_task_difficulty(with_shared_error(with_task_difficulty("dawid_skene")))


def test_the_summary_says_how_difficult_tasks_are_and_the_command_line_takes_it(of_hard, hard):
    share = of_hard.parameters["difficulty_share"].to_numpy()
    said = of_hard.summary().facts["difficulties"]
    # The prior expects (1 + 8) / 14 of level 0 and (1 + 2 / 3) / 14 of each other one.
    assert said.startswith(f"{1 - share[0]:.0%} of the tasks are difficult; log-odds")
    assert f"{share @ LEVELS:.0%} smaller in the mean of all tasks (the prior expects 24%)" in said
    plain = cp.fit("one_coin", hard[0], max_iterations=30, progress=False)
    assert difficulties(plain.only) == {}
    assert parse_settings(["task_difficulty=true"], "dawid_skene", "em") == {"task_difficulty": True}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svi", "nuts"])
def test_draws_recover_the_mean_difficulty(hard, method):
    options = {"draws": 200} if method == "svi" else {"draws": 100, "warmup": 200, "chains": 2}
    fit = cp.fit("one_coin", hard[0], method=method, task_difficulty=True, progress=False, **options)
    means = fit.fitted.draws["difficulty_share"].reshape(-1, 4) @ LEVELS
    assert means.mean() == pytest.approx(0.7 * hard[2].mean(), abs=0.07)
    assert 0 < means.std() < 0.1


@pytest.mark.slow
def test_ranks_of_the_mean_difficulty_are_uniform_under_nuts():
    """100 simulations; a right sampler has a p-value below 0.001 in one test of a thousand."""

    def quantities(parameters):
        return {
            "difficulty": parameters["difficulty_share"] @ jnp.asarray(LEVELS, float),
            "ability": parameters["ability"][0, 1],
        }

    sizes = {"n_tasks": 60, "n_workers": 6, "n_simulations": 100, "right": 12.0, "wrong": 3.0}
    found = cp.calibrate("one_coin", task_difficulty=True, quantities=quantities, **sizes)
    assert found.p_values().min() > 1e-3
