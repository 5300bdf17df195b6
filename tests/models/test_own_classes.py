"""Questions with classes of their own: densities are sums over these classes, and nothing is left for others."""

import itertools
import re

import jax
import numpy as np
import pandas as pd
import pytest
from rubrics import CLASSES, rubric

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data.kinds import NOMINAL
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import compiled_start
from crowdppl.models import STORIES
from crowdppl.models.parts.order_of_questions import order_of_classes
from crowdppl.models.parts.shared_error import LEVELS

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")

STORIES_OF_ANY_CLASSES = [
    ("dawid_skene", {}),
    ("mace", {}),
    ("hierarchical_dawid_skene", {}),
    ("worker_clusters", {"clusters": 2}),
    ("common_individual", {"by_task": False}),
    ("annotator_groups", {"groups": 2, "membership": "worker"}),
    ("dawid_skene", {"truth_prior": "uniform"}),
    ("dawid_skene", {"truth_prior": cp.Prevalence(by_question=False)}),
]


def small(n_tasks: int = 3, **options) -> cp.Annotations:
    return cp.Annotations.from_frame(rubric(n_tasks, 3, seed=4)[0], question="question", classes=CLASSES, **options)


def at_random(model: Model, annotations: cp.Annotations, seed: int = 0) -> dict:
    """Random parameters: rows of probabilities at random, others near zero."""
    rng = np.random.default_rng(seed)

    def drawn(value):
        value = np.asarray(value)
        rows = value.ndim and np.allclose(value.sum(-1), 1) and (value >= 0).all()
        return rng.dirichlet(np.ones(value.shape[-1]), value.shape[:-1]) if rows else rng.normal(size=value.shape) / 2

    return {name: drawn(value) for name, value in compiled_start(model, annotations, jax.random.key(0)).items()}


def enumerated(annotations: cp.Annotations, prior: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The log-joint of each unit and class by explicit sums, of a prior ``(Q, K)`` and rows ``(A, K, K)`` not cut."""
    own = annotations.kind.own
    found = np.full((annotations.n_tasks, annotations.n_classes), -np.inf)
    for unit, question in enumerate(np.asarray(annotations.question)):
        classes = np.flatnonzero(own[question])
        for k in classes:
            p = prior[question, k] / prior[question, classes].sum()
            for row in np.flatnonzero(np.asarray(annotations.task) == unit):
                p *= rows[row, k, annotations.label[row]] / rows[row, k, classes].sum()
            found[unit, k] = np.log(p)
    return found


@pytest.mark.parametrize(("story", "options"), STORIES_OF_ANY_CLASSES)
def test_the_density_is_the_sum_over_the_question_s_classes(story, options):
    annotations = small()
    with jax.enable_x64(True):
        model = Model(STORIES[story], options)
        values = at_random(model, annotations)
        at = density(model, values, annotations)
        uncut = density(model, values, annotations.replace(kind=NOMINAL))
        rows = np.asarray(uncut.likelihood.emission.probs(annotations.worker, annotations.task))
        prior = np.broadcast_to(values.get("prevalence", 0.1), (3, 10))
        expected = enumerated(annotations, prior, rows)
        own = np.isfinite(expected)
        np.testing.assert_allclose(np.asarray(at.log_joint)[own], expected[own], rtol=1e-6)
        np.testing.assert_allclose(at.total, np.log(np.exp(expected).sum(-1)).sum(), rtol=1e-7)
        assert not np.asarray(at.posterior)[~own].any()
        cut = np.asarray(at.likelihood.emission.probs(annotations.worker, annotations.task))
        assert cut.sum(-1) == pytest.approx(1)
        assert not cut[np.broadcast_to(~own[annotations.task][:, None], cut.shape)].any()


def test_one_coin_s_errors_are_spread_over_the_question_s_classes():
    annotations = small()
    with jax.enable_x64(True):
        model = Model(STORIES["one_coin"], {})
        values = at_random(model, annotations)
        found = density(model, values, annotations).log_joint
        of_question = annotations.kind.own.sum(-1)[annotations.question]
        for unit, k in itertools.product(range(annotations.n_tasks), range(10)):
            question = annotations.question[unit]
            if not annotations.kind.own[question, k]:
                continue
            shares = values["prevalence"][question] * annotations.kind.own[question]
            expected = np.log(shares[k] / shares.sum())
            for row in np.flatnonzero(np.asarray(annotations.task) == unit):
                wrong, right = values["ability"][annotations.worker[row]]
                expected += np.log(right if annotations.label[row] == k else wrong / (of_question[unit] - 1))
            np.testing.assert_allclose(found[unit, k], expected, rtol=1e-7)


def test_shared_errors_are_of_the_question_s_classes():
    annotations = small(2)
    with jax.enable_x64(True):
        model = Model(STORIES["dawid_skene"], {"shared_error": True})
        values = at_random(model, annotations)
        found = density(model, values, annotations).log_joint
    for unit, question in enumerate(np.asarray(annotations.question)):
        classes = np.flatnonzero(annotations.kind.own[question])
        for k in classes:
            total = 0.0
            for level, c in itertools.product(range(len(LEVELS)), classes):
                p = values["pull_strength"][0, level] * values["pull"][k, c] / values["pull"][k, classes].sum()
                for row in np.flatnonzero(np.asarray(annotations.task) == unit):
                    table, label = values["confusion"][annotations.worker[row], k], annotations.label[row]
                    p *= LEVELS[level] * (label == c) + (1 - LEVELS[level]) * table[label] / table[classes].sum()
                total += p
            share = values["prevalence"][question, k] / values["prevalence"][question, classes].sum()
            np.testing.assert_allclose(found[unit, k], np.log(share * total), rtol=1e-6)


def test_difficult_tasks_are_chance_among_the_question_s_classes():
    annotations = small()
    model = Model(STORIES["one_coin"], {"task_difficulty": True})
    values = at_random(model, annotations)
    emission = density(model, values, annotations).likelihood.emission.emission.tempered(0.0)
    rows = np.asarray(emission.probs(annotations.worker, annotations.task))
    own = annotations.kind.own[annotations.question][annotations.task]
    np.testing.assert_allclose(
        rows[own], np.broadcast_to((own / own.sum(-1, keepdims=True))[:, None], rows.shape)[own], rtol=1e-5
    )


def test_questions_that_depend_on_each_other_keep_to_their_classes():
    annotations = small()
    with jax.enable_x64(True):
        model = Model(STORIES["one_coin"], {"truth_prior": cp.CorrelatedQuestions(kinds=2)})
        values = at_random(model, annotations)
        at = density(model, values, annotations)
        own = annotations.kind.own
        of_rows = np.asarray(at.likelihood.emission.log_prob(annotations.worker, annotations.task, annotations.label))
        scores = np.zeros((annotations.n_tasks, 10))
        np.add.at(scores, np.asarray(annotations.task), of_rows)
        total = 0.0
        for task in range(3):
            units = np.flatnonzero(annotations.tasks.task == task)
            p = 0.0
            for m in range(2):
                each = values["kind_share"][m]
                for unit in units:
                    question = annotations.question[unit]
                    share = values["kind_prevalence"][m, question] * own[question]
                    each *= (share / share.sum() * np.exp(scores[unit]))[own[question]].sum()
                p += each
            total += np.log(p)
        np.testing.assert_allclose(at.total, total, rtol=1e-7)
        assert not np.asarray(at.posterior)[~own[annotations.question]].any()


@pytest.mark.parametrize("story", ["one_coin", "dawid_skene"])
def test_each_question_is_fitted_as_alone_where_quality_is_by_question(story):
    annotations = cp.Annotations.from_frame(rubric(30)[0], question="question", classes=CLASSES)
    options = {"progress": False, "sweeps": 0, "tolerance": 1e-9, "max_iterations": 2000}
    fit = cp.fit(story, annotations, quality="by_question", **options)
    for number, name in enumerate(CLASSES):
        alone = cp.fit(story, annotations.of_question(name), **options)
        found = np.asarray(fit.posterior)[annotations.question == number][:, annotations.kind.own[number]]
        np.testing.assert_allclose(found, alone.posterior, atol=2e-3)
        scores = ["accuracy", "spammer_score", "informativeness"]
        of_pairs = fit.workers.xs(name, level="question")[scores]
        np.testing.assert_allclose(of_pairs, alone.workers[scores], atol=4e-3)


ORDERED = CLASSES | {"topic": [3, 4, 5, 6]}  # two questions have classes in common


def ordered(n_tasks: int = 3, **orders) -> cp.Annotations:
    table = rubric(n_tasks, 3, seed=4)[0]
    topics = {name: 3 + place for place, name in enumerate(CLASSES["topic"])}
    table["label"] = [topics.get(label, label) for label in table["label"]]
    orders = {"safe": False, "helpful": ORDERED["helpful"], "topic": ORDERED["topic"]} | orders
    return cp.Annotations.from_frame(table, question="question", classes={"safe": ["no", "yes"]}, ordered=orders)


def test_classes_lie_in_the_order_of_the_questions_that_have_them():
    annotations = ordered()
    assert list(annotations.classes) == ["no", "yes", 1, 2, 3, 4, 5, 6]
    found = order_of_classes(annotations)
    assert found.place.tolist() == [0, 1, 0, 1, 2, 3, 4, 5]
    assert [classes.tolist() for classes in found.lines] == [[0, 1], [2, 3, 4, 5, 6, 7]]
    lines = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(found.beside, lines[:, None] == lines)
    assert order_of_classes(annotations.of_question("helpful")).place.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("story", ["ordinal_dawid_skene", "graded_response"])
@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ({"topic": [6, 5, 4, 3]}, r"'helpful', 'topic' have theirs in two orders.*ordered="),
        ({"topic": False}, r"3, 4, 5 of the question 'topic' have none.*ordered=\{'topic': \[\.\.\.\]\}"),
    ],
)
def test_orders_that_contradict_and_questions_without_one_are_named(story, orders, message):
    with pytest.raises(StoryError, match=message):
        cp.fit(story, ordered(**orders), progress=False)


def graded_tables(values: dict, lines: list[list[int]]) -> np.ndarray:
    """The probabilities between the cuts of each line, by the story's formula, ``(J, K, K)``."""
    n_workers, n_classes = len(values["individual"]), sum(map(len, lines))
    tables, at = np.zeros((n_workers, n_classes, n_classes)), 0
    for line in lines:
        inner = slice(at, at + len(line) - 1)
        place = np.append(0.0, np.cumsum(np.exp(values["step"][inner])))
        middle = (place[1:] + place[:-1]) / 2
        for j, own in enumerate(values["individual"]):
            moved = (values["common"] + own[1:])[inner]
            cut = np.append(0.0, np.cumsum(np.diff(middle) * np.exp(moved[1:])))
            cut += middle.mean() + moved[0] - cut.mean()
            beyond = 1 / (1 + np.exp(-np.exp(own[0]) * (place[:, None] - cut)))
            reached = np.hstack([np.ones((len(line), 1)), beyond, np.zeros((len(line), 1))])
            tables[j][np.ix_(line, line)] = -np.diff(reached)
        at += len(line) - 1
    return tables


def coarse_and_fine() -> cp.Annotations:
    """A scale of three and one of five on one line, whose classes come as 1, 3, 5, 2, 4."""
    table = rubric(6, 3, seed=4)[0].query("question != 'safe'").sort_values(["question"], ascending=False)
    coarse = table["question"] == "topic"
    table.loc[coarse, "label"] = [1 + 2 * CLASSES["topic"].index(topic) for topic in table["label"][coarse]]
    classes = {"topic": [1, 3, 5], "helpful": [1, 2, 3, 4, 5]}
    annotations = cp.Annotations.from_frame(table, question="question", ordered=classes)
    assert list(annotations.classes) == [1, 3, 5, 2, 4]
    return annotations


@pytest.mark.parametrize("story", ["ordinal_dawid_skene", "graded_response"])
@pytest.mark.parametrize(
    ("made", "lines"), [(ordered, [[0, 1], [2, 3, 4, 5, 6, 7]]), (coarse_and_fine, [[0, 3, 1, 4, 2]])]
)
def test_stories_of_ordered_classes_have_the_sum_over_those_of_the_question(story, made, lines):
    annotations = made()
    with jax.enable_x64(True):
        model = Model(STORIES[story], {})
        values = at_random(model, annotations)
        at = density(model, values, annotations)
        tables = values["confusion"] if "confusion" in values else graded_tables(values, lines)
        rows = tables[np.asarray(annotations.worker)]
        expected = enumerated(annotations, values["prevalence"], rows)
        own = np.isfinite(expected)
        np.testing.assert_allclose(np.asarray(at.log_joint)[own], expected[own], rtol=1e-6)


@pytest.mark.parametrize("story", ["score_factor", "independent_confusion_subtypes"])
def test_what_has_an_order_or_more_than_a_class_in_common_is_refused_with_what_to_do(story):
    with pytest.raises(StoryError, match=r"classes of their own.*of_question"):
        cp.fit(story, small(), progress=False)


def test_labels_of_ordered_questions_are_those_of_each_question_alone():
    annotations = ordered(40)
    fit = cp.fit("ordinal_dawid_skene", annotations, progress=False)
    common = fit.derived["common_confusion"].to_numpy()
    beside = order_of_classes(annotations).beside
    np.testing.assert_allclose(np.where(beside, common, 0).sum(-1), 1, rtol=1e-5)
    alone = cp.fit("ordinal_dawid_skene", annotations.of_question("safe"), progress=False)
    found = fit.probabilities.xs("safe", level="question")[["no", "yes"]]
    # The prior's even part is 1 / K of the classes of all questions: one annotation in four of a row of two.
    np.testing.assert_allclose(found, alone.probabilities, atol=0.1)


@pytest.mark.parametrize("ordered", [{"helpful": ["1", "2", "3"]}, {}], ids=["in order", "without order"])
def test_a_story_of_one_order_names_the_stories_that_fit_all_questions(ordered):
    rows = [
        (task, worker, question, classes[(task + worker) % len(classes)])
        for task in range(6)
        for worker in range(3)
        for question, classes in (("safe", "01"), ("helpful", "123"))
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    classes = {"safe": ["0", "1"], "helpful": ["1", "2", "3"]}
    named = {question: values for question, values in classes.items() if question not in ordered}
    annotations = cp.Annotations.from_frame(frame, question="question", classes=named, ordered=ordered or None)
    with pytest.raises(cp.StoryError) as refused:
        cp.fit("score_factor", annotations, progress=False)
    advised = set(re.findall(r"\w+", str(refused.value).partition("fit all together by")[2]))
    for story in ("graded_response", "ordinal_dawid_skene", "dawid_skene"):
        if story in advised:
            cp.fit(story, annotations, progress=False, max_iterations=2, sweeps=0)
        else:
            with pytest.raises(cp.StoryError):
                cp.fit(story, annotations, progress=False)
    assert ("graded_response" in advised) == bool(ordered)
