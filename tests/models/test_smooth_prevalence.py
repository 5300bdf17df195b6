"""Shares of ordered classes whose logarithms are a smooth curve."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from scipy.stats import norm
from whole_density import density

import crowdppl as cp
from crowdppl import SmoothPrevalence, StoryError
from crowdppl.data.kinds import Ordered
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines.registry import ENGINES
from crowdppl.models import STORIES
from crowdppl.models.parts.smooth_prevalence import TREND

STEP = np.array([0.3, -1.2])


def overused_middle(seed: int) -> cp.Annotations:
    """100 tasks of five even classes, with ten annotations each, of which four are the middle class."""
    rng = np.random.default_rng(seed)
    place, cuts = rng.normal(size=100), norm.ppf(np.arange(1, 5) / 5)
    task = np.repeat(np.arange(100), 10)
    worker = np.concatenate([rng.choice(38, 10, replace=False) for _ in range(100)])
    severity, noise = rng.normal(0, 0.3, 38), np.exp(rng.normal(0, 0.4, 38))
    perceived = place[task] + severity[worker] + noise[worker] * rng.normal(size=len(task))
    label = np.searchsorted(cuts, 0.35 * perceived)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    gold = dict(enumerate(np.searchsorted(cuts, place).tolist()))
    return cp.Annotations.from_frame(frame, ordered=[*range(5)], gold=gold)


@pytest.fixture(scope="module")
def overused():
    return overused_middle(0)


@pytest.mark.parametrize("story", ["one_coin", "dawid_skene"])
@pytest.mark.parametrize("scale", [0.7, None])
def test_label_posteriors_are_those_of_the_curve_over_all_labellings(story, scale):
    annotations = random_annotations(np.random.default_rng(2), n_tasks=5, n_workers=3, n_classes=3, n_rows=12)
    annotations = annotations.replace(kind=Ordered())
    model = Model(STORIES[story], {"truth_prior": SmoothPrevalence(scale)})
    rng = np.random.default_rng(3)
    confusion, ability = rng.dirichlet([1] * 3, (3, 3)), rng.dirichlet([1, 2], 3)
    own = {"one_coin": {"ability": ability}, "dawid_skene": {"confusion": confusion}}
    values = own[story] | {"prevalence_step": STEP} | ({"prevalence_scale": np.array(0.7)} if scale is None else {})
    at = density(model, values, annotations)
    half = 0.7 * STEP[1] / np.sqrt(2) / 2  # of the change from the first slope to the second
    slopes = np.array([TREND * STEP[0] - half, TREND * STEP[0] + half]) / 2
    shares = np.exp([0, slopes[0], slopes.sum()])
    shares /= shares.sum()
    np.testing.assert_allclose(np.exp(at.truth_prior)[0], shares, rtol=1e-5)
    scores = np.exp(np.asarray(at.likelihood.emission.by_task(annotations, annotations.label), dtype=float)) * shares
    total, mass = 0.0, np.zeros((5, 3))
    for labelling in product(range(3), repeat=5):
        p = scores[np.arange(5), labelling].prod()
        total += p
        mass[np.arange(5), labelling] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


def test_a_middle_class_that_everybody_overuses_does_not_swallow_its_neighbours():
    """In the mean of crowds: of some the mode that EM finds has every class one further up or down."""
    middle, distance = {"smooth": [], "free": []}, {"smooth": [], "free": []}
    for seed in range(6):
        crowd = overused_middle(seed)
        for name, prior in {"smooth": SmoothPrevalence(), "free": cp.Prevalence()}.items():
            posterior = cp.fit("graded_response", crowd, truth_prior=prior, progress=False).posterior
            middle[name].append(posterior[:, 2].mean())
            distance[name].append(np.abs(posterior.argmax(-1) - crowd.gold).mean())
    assert np.mean(middle["smooth"]) < np.mean(middle["free"])
    assert np.mean(distance["smooth"]) < np.mean(distance["free"])


def test_the_larger_the_scale_the_more_a_class_differs_from_its_neighbours(overused):
    steps = [
        np.abs(np.diff(np.log(fit.derived["prevalence"].values), n=2)).max()
        for scale in (0.1, 1.0, 10.0)
        for fit in [cp.fit("one_coin", overused, truth_prior=SmoothPrevalence(scale), progress=False)]
    ]
    assert steps[0] < steps[1] < steps[2]


@pytest.mark.parametrize("method", ENGINES)
def test_every_engine_keeps_it_and_so_does_a_folder(method, overused, tmp_path):
    few = {"nuts": {"draws": 20, "warmup": 30, "chains": 1}, "svi": {"max_iterations": 50}}.get(method, {})
    prior = SmoothPrevalence(0.3)
    fit = cp.fit("one_coin", overused, method=method, truth_prior=prior, seed=0, progress=False, **few)
    np.testing.assert_allclose(fit.derived["prevalence"].sum(), 1.0, rtol=1e-5)
    shown = fit.summary().tables["classes"]["prevalence"]
    np.testing.assert_allclose(shown, fit.derived["prevalence"].values, rtol=1e-4)
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.model.truth_prior == prior
    np.testing.assert_allclose(again.posterior, fit.posterior, atol=1e-6)


@pytest.mark.parametrize("n_classes", [3, 5, 7])
def test_shares_that_fall_evenly_cost_as_much_as_those_that_rise_and_less_than_a_peak(n_classes):
    """By the density of the slopes that give log-shares: of a line by its slope alone, of a peak by each bend."""
    annotations = cp.Annotations.from_frame(
        pd.DataFrame({"task": range(n_classes), "worker": 0, "label": range(n_classes)}), ordered=[*range(n_classes)]
    )
    model = Model(STORIES["one_coin"], {"truth_prior": SmoothPrevalence()})

    def log_shares(step):
        ability = np.full((1, 2), 0.5)
        values = {"ability": ability, "prevalence_step": np.asarray(step)}
        return np.asarray(density(model, values, annotations).truth_prior, dtype=float)[0]

    unit = np.eye(n_classes - 1)
    of_step = np.array([np.diff(log_shares(row)) for row in unit])  # by step and gap; a linear map
    line, middle = np.full(n_classes - 1, -0.5), np.zeros(n_classes)
    middle[n_classes // 2] = 1.0
    cost = {
        name: 0.5 * (np.linalg.solve(of_step.T, target) ** 2).sum()
        for name, target in {"falls": line, "rises": -line, "peak": np.diff(middle)}.items()
    }
    np.testing.assert_allclose(cost["falls"], cost["rises"], rtol=1e-4)
    np.testing.assert_allclose(cost["falls"], 0.5 * (0.5 * (n_classes - 1) / TREND) ** 2, rtol=1e-4)
    assert cost["peak"] > 5 * cost["falls"]


def test_each_question_has_its_own():
    rows = [(t, w, q, (t + (q == "b")) % 3) for t in range(4) for w in range(3) for q in "ab"]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    annotations = cp.Annotations.from_frame(frame, question="question", ordered=[0, 1, 2])
    fit = cp.fit("one_coin", annotations, truth_prior=SmoothPrevalence(None), progress=False)
    assert fit.derived["prevalence"].sizes == {"question": 2, "truth": 3}
    of_a, of_b = fit.derived["prevalence"].values
    assert of_a[0] > of_b[0]


@pytest.mark.parametrize("scale", [0, -1.0, float("nan")])
def test_a_scale_that_is_not_positive_is_refused(scale, overused):
    with pytest.raises(StoryError, match=f"scale={scale}"):
        cp.fit("one_coin", overused, truth_prior=SmoothPrevalence(scale), progress=False)


def test_more_than_two_classes_without_an_order_are_refused():
    annotations, _ = cp.simulate("dawid_skene", n_tasks=10, n_workers=3, n_classes=3, annotations_per_task=2, seed=0)
    with pytest.raises(StoryError, match=r"cp\.SmoothPrevalence\(\) uses the order .* 0, 1, 2 have none; .*ordered=\["):
        cp.fit("one_coin", annotations, truth_prior=SmoothPrevalence(), progress=False)


def test_a_prior_that_was_not_called_is_asked_to_be(overused):
    with pytest.raises(StoryError, match=r"SmoothPrevalence is a class; write SmoothPrevalence\(\)"):
        cp.fit("one_coin", overused, truth_prior=SmoothPrevalence, progress=False)
