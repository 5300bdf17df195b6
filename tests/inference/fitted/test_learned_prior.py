"""Hyperparameters that are learned from the counts of a fit, against SciPy's distributions and simulated crowds."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import betabinom, dirichlet_multinomial

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, crowd, drawn
from crowdppl.inference.fitted.learned_prior import SPREAD

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning", "ignore::crowdppl.CrowdWarning")

ASKED = (("tone", ("flat", "warm")), ("topic", ("food", "price", "place")))
COLUMNS = ["task", "worker", "question", "label"]
COIN = {"right": "learned", "wrong": "learned"}


def told(seed, *, mean=0.75, strength=12.0, n_workers=40, n_classes=3):
    """A crowd whose accuracies have a beta distribution, with its labels."""
    rng = np.random.default_rng(seed)
    accuracy = rng.beta(mean * strength, (1 - mean) * strength, n_workers)
    return crowd(*drawn(rng, accuracy, n_tasks=200, n_classes=n_classes, per_task=10), n_classes)


def counts(data):
    """How often each worker is right, and gives a label."""
    is_right = np.asarray(data.gold)[data.task] == data.label
    return np.bincount(data.worker, is_right, data.n_workers), np.bincount(data.worker, minlength=data.n_workers)


def numbers(fit, *names):
    return [fit.model.hyperparameters[name] for name in names]


def test_with_all_labels_told_it_is_the_maximum_that_scipy_finds():
    data = told(0)
    right, n = counts(data)

    def depth(logs):
        a, b = np.exp(logs)
        departure = (np.log([a / 2.0, b / 1.0]) / SPREAD) ** 2 / 2
        return departure.sum() - betabinom.logpmf(right, n, a, b).sum()

    expected = np.exp(minimize(depth, np.log([2.0, 1.0])).x)
    fit = cp.fit("one_coin", data, gold=True, **COIN, progress=False)
    assert numbers(fit, "right", "wrong") == pytest.approx(list(expected), rel=1e-3)


def test_one_that_is_none_by_default_starts_from_the_number_that_the_story_takes():
    """Off the diagonal 1 / (K - 1): from 1, a fit to many classes has lost most of them before anything is learned."""
    data, n_classes = told(0, n_classes=5), 5
    table = np.zeros((data.n_workers, n_classes, n_classes))
    np.add.at(table, (data.worker, np.asarray(data.gold)[data.task], data.label), 1)

    def depth(logs):
        diagonal, off_diagonal = np.exp(logs)
        rows = np.where(np.eye(n_classes, dtype=bool), diagonal, off_diagonal)
        departure = (np.log([diagonal / 2.0, off_diagonal * (n_classes - 1)]) / SPREAD) ** 2 / 2
        return departure.sum() - sum(
            dirichlet_multinomial.logpmf(table[:, k], rows[k], table[:, k].sum(-1).astype(int)).sum()
            for k in range(n_classes)
        )

    expected = np.exp(minimize(depth, np.log([8.0, 0.5])).x)
    both = {"diagonal": "learned", "off_diagonal": "learned"}
    fit = cp.fit("dawid_skene", data, gold=True, **both, progress=False)
    assert numbers(fit, *both) == pytest.approx(list(expected), rel=1e-3)
    many = told(0, n_classes=12, n_workers=15)
    own, learned = (
        cp.fit("dawid_skene", many.without_gold(), **options, progress=False).posterior for options in ({}, both)
    )
    scores = [np.log(posterior[np.arange(200), many.gold]).mean() for posterior in (own, learned)]
    assert scores[1] > scores[0] - 0.02


def test_mean_and_strength_of_the_workers_accuracies_come_back():
    """Within three standard errors over 40 workers of 50 annotations each, in the mean of six crowds."""
    found = []
    for seed in range(6):
        right, wrong = numbers(cp.fit("one_coin", told(seed), **COIN, progress=False), "right", "wrong")
        found.append((right / (right + wrong), np.log(right + wrong)))
    mean, strength = np.transpose(found)
    assert abs(mean.mean() - 0.75) < 3 * mean.std(ddof=1) / np.sqrt(6)
    assert abs(strength.mean() - np.log(12.0)) < 3 * strength.std(ddof=1) / np.sqrt(6)


def test_of_workers_who_are_right_equally_often_the_labels_are_as_good_as_the_votes():
    right = []
    for seed in range(4):
        data = HEALTHY["alike, two classes"](np.random.default_rng(seed))
        own, learned, average = (
            cp.fit(story, data.without_gold(), progress=False, **options)
            for story, options in (("one_coin", {}), ("one_coin", COIN), ("auto", {}))
        )
        assert sum(numbers(learned, "right", "wrong")) > 30
        assert numbers(average.fits["one_coin"], "right") == numbers(learned, "right")
        each = (data.votes(), learned.posterior, average.posterior, own.posterior)
        right.append([(scores.argmax(1) == data.gold).mean() for scores in each])
    of_votes, of_learned, of_average, of_own = np.mean(right, 0)
    assert of_learned > of_votes - 0.005 > of_own + 0.01
    assert of_average > of_own + 0.01


def test_a_fit_is_that_with_the_same_numbers_given_by_every_engine(tmp_path):
    data = told(1, n_workers=8).without_gold()
    found = {}
    brief = {"em": {}, "svi": {"max_iterations": 60, "draws": 20}, "nuts": {"draws": 5, "warmup": 5}}
    for method, options in brief.items():
        learned = cp.fit("one_coin", data, method=method, **options, **COIN, progress=False)
        found[method] = dict(zip(COIN, numbers(learned, *COIN), strict=True))
        given = cp.fit("one_coin", data, method=method, **options, **found[method], progress=False)
        np.testing.assert_array_equal(learned.posterior, given.posterior)
    assert found["em"] == found["svi"] == found["nuts"] != {"right": 2.0, "wrong": 1.0}
    cp.fit("one_coin", data, **COIN, progress=False).save(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit").model.hyperparameters == found["em"]


def test_a_learned_prior_that_outweighs_the_annotations_is_a_note_that_it_was_learned():
    rng = np.random.default_rng(0)
    data = crowd(*drawn(rng, np.full(40, 0.8), n_tasks=100, n_classes=2, per_task=3), 2).without_gold()
    both = {"diagonal": "learned", "off_diagonal": "learned"}
    fit = cp.fit("dawid_skene", data, **both, progress=False)
    (found,) = (each for each in fit.findings if each.code == "outweighed")
    assert (found.severity, found.remedy.split(",")[0]) == ("note", "it was learned")
    given = cp.fit("dawid_skene", data, **dict(zip(both, numbers(fit, *both), strict=True)), progress=False)
    assert "it was learned" not in next(each for each in given.findings if each.code == "outweighed").remedy


def test_pyro_has_the_same_numbers():
    pytest.importorskip("pyro")
    data = told(1, n_workers=8).without_gold()
    options = {"method": "svi", "backend": "pyro", "max_iterations": 5, "draws": 5}
    ours, theirs = (cp.fit("one_coin", data, **own, **COIN, progress=False) for own in ({}, options))
    assert theirs.model.hyperparameters == ours.model.hyperparameters


def around(annotations, *, mean: float = 0.7, strength: float = 3.0):
    """Accuracies of workers around one of the crowd, by a user."""
    n_classes = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers):
        beta = dist.Dirichlet(strength * jnp.stack([1.0 - mean, mean]))
        ability = numpyro.sample("ability", beta, infer={"event_dims": ["is_right"]})
    wrong, right = ability[:, 0, None, None], ability[:, 1, None, None]
    with cp.tasks(annotations) as truth:
        cp.observe(
            truth, cp.Confusion(jnp.where(jnp.eye(n_classes, dtype=bool), right, wrong / (n_classes - 1))), annotations
        )


def test_of_a_story_of_ones_own_it_is_the_maximum_too():
    data = told(2)
    right, n = counts(data)

    def depth(log):
        strength = np.exp(log[0])
        return (log[0] - np.log(3)) ** 2 / SPREAD**2 / 2 - betabinom.logpmf(
            right, n, 0.7 * strength, 0.3 * strength
        ).sum()

    fit = cp.fit(around, data, gold=True, strength="learned", progress=False)
    assert numbers(fit, "strength") == pytest.approx(list(np.exp(minimize(depth, [1.0]).x)), rel=1e-3)


@pytest.mark.parametrize(
    ("story", "options", "said"),
    [
        ("hierarchical_dawid_skene", {"spread": "learned"}, "spread is in the prior of no table"),
        ("annotator_groups", {"groups": "learned"}, "groups='learned': only a real number is learned, one of 'diag"),
        ("dawid_skene", {"history": "learned"}, "history='learned': only a real number is learned"),
        ("dawid_skene", {"diagonal": "lerned"}, "diagonal='lerned': a finite number above 0 is needed"),
    ],
)
def test_what_cannot_be_learned_says_so(story, options, said):
    with pytest.raises(cp.StoryError, match=said):
        cp.fit(story, told(0, n_workers=10), progress=False, **options)


def test_nothing_is_learned_of_a_scan_and_of_questions_with_classes_of_their_own(tmp_path):
    told(0, n_workers=10).without_gold().to_frame().to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="right='learned': none is learned of a scan; give a number, or load"):
        cp.fit("one_coin", cp.scan(tmp_path / "a.parquet"), **COIN, progress=False)
    rows = [
        (task, worker, q, of[(task + worker) % len(of)]) for task in range(9) for worker in range(3) for q, of in ASKED
    ]
    data = cp.Annotations.from_frame(pd.DataFrame(rows, columns=COLUMNS), question="question", classes=dict(ASKED))
    with pytest.raises(cp.StoryError, match="right='learned': questions have classes of their own"):
        cp.fit("one_coin", data, **COIN, progress=False)
    assert not COIN.keys() & cp.fit("auto", data, progress=False).fits["one_coin"].model.hyperparameters.keys()
