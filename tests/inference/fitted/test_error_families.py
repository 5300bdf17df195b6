"""Families of workers who err together: found where there are some, and what auto makes of them."""

import itertools

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning
from crowdppl.inference.fitted.dependence import excess_agreement, given_labels
from crowdppl.inference.fitted.error_families import (
    BY_FAMILY,
    _abilities,
    _evidence,
    _log_prior,
    error_families,
    pair_excess,
)
from crowdppl.inference.fitted.gold_mix import shares_of_votes
from crowdppl.models.parts.shared_error import families_of

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")


def judges(seed, *, sizes=(3, 3), follow=0.6, n_tasks=300, n_classes=2, accuracy=0.8):
    """Return annotations with gold labels by families of judges, right in .8, who say in a share what it would say."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(len(sizes)), sizes)
    truth = rng.integers(0, n_classes, n_tasks)

    def given(n):
        wrong = (truth[:, None] + rng.integers(1, n_classes, (n_tasks, n))) % n_classes
        return np.where(rng.random((n_tasks, n)) < np.resize(accuracy, n), truth[:, None], wrong)

    common = given(len(sizes))[:, family]
    label = np.where(rng.random((n_tasks, len(family))) < follow, common, given(len(family)))
    task, worker = np.indices(label.shape)
    frame = pd.DataFrame({"task": task.ravel(), "worker": worker.ravel(), "label": label.ravel()})
    frame["label"] = frame["label"].map("abcd".__getitem__)
    return cp.Annotations.from_frame(frame).with_gold({t: "abcd"[k] for t, k in enumerate(truth.tolist())})


def on_questions(seeds, **options):
    """Return the annotations of as many questions as seeds, by families that are those of every question."""
    frames, gold = [], {}
    for seed in seeds:
        one = judges(seed, **options)
        frames.append(one.to_frame().assign(question=f"q{seed}"))
        gold |= {(task, f"q{seed}"): one.classes[k] for task, k in zip(one.tasks, one.gold, strict=True)}
    return cp.Annotations.from_frame(pd.concat(frames), question="question").with_gold(gold)


def partitions(n):
    """Every partition of n workers, as families numbered in the order of their first."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*cut, family] for cut in found for family in range(max(cut) + 2)]
    return found


def test_the_partitions_of_all_workers_have_the_probability_one():
    assert len(partitions(5)) == 52
    np.testing.assert_allclose(sum(np.exp(_log_prior(np.array(cut))) for cut in partitions(5)), 1.0)


@pytest.mark.parametrize("make", [lambda: judges(0, n_classes=3), lambda: on_questions([0, 1], n_tasks=100)])
def test_the_excess_of_all_pairs_together_is_that_of_the_crowd(make):
    data = make().without_gold()
    posterior = cp.fit("one_coin", data, progress=False).posterior
    pairs = np.triu_indices(6, 1)
    excess, variance, most = (of_pairs[pairs].sum() for of_pairs in pair_excess(data, posterior))
    np.testing.assert_allclose((excess / most, np.sqrt(variance) / most), excess_agreement(data, posterior), rtol=1e-5)


def test_the_excess_of_a_pair_is_the_sum_over_the_tasks_of_both():
    data = judges(1, n_tasks=20, n_classes=3).without_gold()
    data = data.rows(np.random.default_rng(0).random(data.n_rows) < 0.7)
    posterior = shares_of_votes(data)
    task, worker, label, rows = given_labels(data, posterior, 1e9)
    excess, variance, most = np.zeros((3, 6, 6))
    for a, b in itertools.product(range(len(task)), repeat=2):
        for k in range(3) if task[a] == task[b] else ():
            one, other, weight = rows[worker[a], k], rows[worker[b], k], posterior[task[a], k]
            beyond = [np.eye(3)[label[a]] - one, np.eye(3)[label[b]] - other]
            of_both = (np.diag(one) - np.outer(one, one)) * (np.diag(other) - np.outer(other, other))
            excess[worker[a], worker[b]] += weight * beyond[0] @ beyond[1]
            variance[worker[a], worker[b]] += weight * of_both.sum()
            most[worker[a], worker[b]] += weight * np.sqrt((1 - one @ one) * (1 - other @ other))
    np.testing.assert_allclose(pair_excess(data, posterior), [excess, variance, most], rtol=1e-6, atol=1e-9)


def test_what_a_partition_explains_is_the_mean_of_the_likelihood_over_what_pairs_may_have_in_common():
    rng = np.random.default_rng(0)
    family, excess, precision = np.array([0, 0, 1, 0, 2]), rng.normal(0.2, 0.3, (5, 5)), rng.uniform(5, 40, (5, 5))
    pairs = np.stack(np.triu_indices(5, 1))
    inside = family[pairs[0]] == family[pairs[1]]
    expected = 0.0
    for chosen, low in ((inside, 0.0), (~inside, -1.0)):
        at = np.linspace(low, 1, 20_001)[:, None]
        r, pi = excess[tuple(pairs[:, chosen])], precision[tuple(pairs[:, chosen])]
        expected += np.log(np.exp((pi * (at * r - at**2 / 2)).sum(1)).mean())
    np.testing.assert_allclose(_evidence(family, excess, precision), expected, rtol=1e-3)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (3, 3, 3), (3, 1, 1, 1)])
def test_families_are_found(sizes):
    family = [*error_families(judges(1, sizes=sizes)).values()]
    groups = np.split(np.array(family), np.cumsum(sizes)[:-1])
    assert [len(set(group.tolist())) for group in groups] == [1] * len(sizes)
    assert len(set(family)) == len(sizes)


def test_hardly_any_crowd_of_independent_judges_has_families():
    # Each of them would cost a fit, and nothing else: the log-posteriors decide.
    assert sum(error_families(judges(seed, sizes=(6,), follow=0.0)) is not None for seed in range(8)) <= 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_able_judges_are_no_family_against_less_able_ones(n_classes):
    """Where their abilities do not count, 35 and 36 of these 40 crowds have families."""
    rng, found = np.random.default_rng([n_classes, 0]), 0
    for seed in range(40):
        accuracy = np.clip(rng.normal(0.75, 0.1, 8), 0.4, 0.97)
        found += error_families(independent(seed, accuracy, n_tasks=150, n_classes=n_classes)) is not None
    assert found <= 4


@pytest.mark.parametrize("n_classes", [2, 4])
def test_independent_judges_agree_beyond_the_votes_by_the_product_of_two_abilities(n_classes):
    accuracy = np.array([0.5, 0.6, 0.65, 0.7, 0.8, 0.85, 0.9, 0.95])
    data = independent(0, accuracy, n_tasks=20_000, n_classes=n_classes)
    excess, variance, most = pair_excess(data.without_gold(), shares_of_votes(data))
    one, other = np.triu_indices(len(accuracy), 1)
    share, precision = excess / most, most**2 / variance
    ability = _abilities(np.zeros(len(accuracy), int), share, precision)
    assert (np.diff(ability[np.argsort(data.workers)]) > 0).all()
    beyond = (share - np.outer(ability, ability))[one, other]
    assert share[one, other].std() > 0.08
    assert np.abs(beyond).max() < 0.03


def independent(seed, accuracy, **options):
    """Return annotations of all tasks by independent judges of these accuracies."""
    return judges(seed, sizes=(len(accuracy),), follow=0.0, accuracy=accuracy, **options)


def test_workers_who_annotate_nothing_and_crowds_that_cannot_tell_are_no_obstacle():
    data = judges(1)
    lacking = data.rows(np.asarray(data.worker) != 5)
    assert error_families(lacking).keys() == set(data.workers)
    assert error_families(judges(1, n_tasks=15)) is None
    assert error_families(on_questions([1, 2]).by_question()) is None


@pytest.mark.parametrize(("sizes", "n_tasks"), [((3, 3), 150), ((3, 1, 1, 1), 200)])
def test_families_of_several_questions_are_found_and_none_is_taken_for_the_truth(sizes, n_tasks):
    annotations = on_questions([1, 2, 3], sizes=sizes, n_tasks=n_tasks)
    gold, votes = np.asarray(annotations.gold), annotations.votes()
    most = votes == votes.max(1, keepdims=True)
    fit = cp.fit("auto", annotations.without_gold(), copies="keep", progress=False)
    families = families_of(fit.fits[BY_FAMILY].model.hyperparameters, annotations.workers)
    assert len({families[j] for j in range(3)}) == 1
    assert len(set(families.values())) == len(sizes)
    by_votes = (most[np.arange(len(gold)), gold] / most.sum(1)).mean()
    assert (fit.posterior.argmax(1) == gold).mean() > by_votes - 0.02  # without families it is .05 to .1 below


def test_a_family_of_several_questions_is_found_where_it_is_not_asked_all_of_them():
    annotations = on_questions([1, 2, 3], n_tasks=150)
    question = np.asarray(annotations.question)[annotations.task]
    asked = (np.asarray(annotations.worker) != 0) | (question == 0)
    found = error_families(annotations.rows(asked))
    assert [found[j] == found[1] for j in range(6)] == [True] * 3 + [False] * 3


def test_auto_takes_no_family_for_the_truth_and_says_that_they_contradict_each_other():
    for seed in range(2):
        annotations = judges(seed)
        gold, votes = np.asarray(annotations.gold), annotations.votes()
        fit = cp.fit("auto", annotations.without_gold(), progress=False)
        most = votes == votes.max(1, keepdims=True)
        by_votes = (most[np.arange(len(gold)), gold] / most.sum(1)).mean()
        one, by_family = (
            (np.asarray(each.posterior).argmax(1) == gold).mean()
            for each in (fit.fits["dawid_skene with shared errors"], fit)
        )
        assert one < by_votes - 0.03  # one impression for all takes what a family says for the truth
        assert by_family > by_votes - 0.02
        assert fit.weights[BY_FAMILY] > 0.5
        (finding,) = [each for each in fit.findings.warnings if each.code == "families"]
        assert sorted(map(sorted, finding.values["families"])) == [[0, 1, 2], [3, 4, 5]]
        of_family = [votes_of(annotations, range(3)), votes_of(annotations, range(3, 6))]
        np.testing.assert_allclose(finding.values["contradicted"], (of_family[0] != of_family[1]).mean())


def test_auto_does_not_take_the_errors_of_one_family_for_the_truth_against_independent_judges():
    """A common impression for the independent ones, or for all, would be .85 to .9 right."""
    for seed in range(1, 3):
        annotations = judges(seed, sizes=(3, 1, 1, 1))
        gold, votes = np.asarray(annotations.gold), annotations.votes()
        fit = cp.fit("auto", annotations.without_gold(), progress=False)
        most = votes == votes.max(1, keepdims=True)
        by_votes = (most[np.arange(len(gold)), gold] / most.sum(1)).mean()
        assert (np.asarray(fit.posterior).argmax(1) == gold).mean() > by_votes - 0.02
        (finding,) = [each for each in fit.findings.warnings if each.code == "families"]
        assert finding.values["families"] == [[0, 1, 2]]
        of_family = [votes_of(annotations, range(3)), votes_of(annotations, range(3, 6))]
        np.testing.assert_allclose(finding.values["contradicted"], (of_family[0] != of_family[1]).mean())


def votes_of(annotations, workers):
    return annotations.rows(np.isin(annotations.worker, list(workers))).votes().argmax(1)


def test_a_crowd_without_families_is_told_of_none():
    fit = cp.fit("auto", judges(0, sizes=(6,), follow=0.0).without_gold(), progress=False)
    assert fit.weights.get(BY_FAMILY, 0.0) == 0.0
    assert not [each for each in fit.findings if each.code == "families"]


def test_a_new_worker_is_alone_in_a_family_of_an_average_that_found_families():
    annotations = judges(0, n_tasks=200).without_gold()
    fit = cp.fit("auto", annotations, progress=False, max_iterations=20)
    more = pd.DataFrame({"task": [annotations.tasks[0]], "worker": ["newcomer"], "label": [annotations.classes[0]]})
    with pytest.warns(AnnotationWarning, match="family of their own: 'newcomer'") as told:
        updated = fit.update(more, progress=False)
    assert len([one for one in told if one.category is AnnotationWarning]) == 1
    families = updated.fits[BY_FAMILY].model.hyperparameters["worker_families"].set_index("worker")["family"]
    assert (families == families["newcomer"]).sum() == 1
    assert len(families) == annotations.n_workers + 1
