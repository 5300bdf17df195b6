"""Pairs that are shown in both orders: confusion matrices are of positions, true labels of items, in every story."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data import Ids
from crowdppl.data.padding import padded, unread
from crowdppl.inference.densities.enumerated import is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.portable import gives_the_same
from crowdppl.models import STORIES
from crowdppl.models.parts.simulated_inputs import in_order

BINARY = {"two_coin", "item_response"}
BINARY |= {name for name, story in STORIES.items() if getattr(story, "prepare_simulation", None) is in_order}
"""Stories of two classes, or of more only where these have an order, as left, right and tie have none."""


def crowd(*, n_pairs=5, ties=True, seed=0, biased=(0.9, 0.9), n_items=4, workers="uvw"):
    """Comparisons, each by every worker in both orders; a worker is right at so and so many right pairs by position."""
    rng = np.random.default_rng(seed)
    score, rows = np.linspace(1.5, -1.5, n_items), []
    for pair in range(n_pairs):
        items = rng.permutation(n_items)[:2]
        better = items[int(rng.random() > 1 / (1 + np.exp(score[items[1]] - score[items[0]])))]
        for worker, shown in product(workers, (items, items[::-1])):
            place = int(shown[1] == better)
            said = place if rng.random() < biased[place] else 1 - place
            said = 2 if ties and rng.random() < 0.2 else said
            names = [f"i{item}" for item in shown]
            rows.append((f"p{pair}", *names, worker, ("left", "right", "tie")[said]))
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
    return cp.Annotations.from_comparisons(frame, classes=["left", "right", "tie"][: 2 + ties])


def drawn(model, annotations, seed=0):
    """Parameters from the prior by site."""
    sites = handlers.trace(handlers.seed(model, seed)).get_trace(annotations)
    return {site["name"]: site["value"] for site in sites.values() if is_latent(site) and site["name"] != "truth"}


def turned(annotations, tasks):
    """The same annotations with some tasks' items the other way round."""
    mirror = np.array([1, 0, 2, 3])
    of_row = tasks[annotations.task]
    return annotations.replace(
        sides=np.where(tasks[:, None], annotations.sides[:, ::-1], annotations.sides),
        label=np.where(of_row, mirror[annotations.label], annotations.label),
        mirrored=annotations.mirrored ^ of_row,
    )


@pytest.mark.parametrize("story", list(STORIES))
def test_density_of_every_story_is_the_sum_over_all_labellings_of_the_pairs_as_they_were_shown(story):
    annotations = crowd(ties=story not in BINARY)
    model = Model(STORIES[story], {})
    values = drawn(model, annotations.replace(mirrored=None))
    plain = density(model, values, annotations.replace(mirrored=None))
    if not plain.likelihood.emission.independent:  # annotations share more than the class
        with pytest.raises(StoryError, match=r"both orders.*mirrored=None"):
            density(model, values, annotations)
        return
    n_tasks, k = annotations.n_tasks, annotations.n_classes
    at = density(model, values, annotations)
    probs = np.asarray(plain.likelihood.emission.probs(annotations.worker, annotations.task), dtype=float)
    scores = np.array(np.broadcast_to(plain.truth_prior, (n_tasks, k)), dtype=float)
    for row, (task, label) in enumerate(zip(annotations.task, annotations.label, strict=True)):
        mirror = [1, 0, 2] if annotations.mirrored[row] else [0, 1, 2]
        for truth in range(k):
            scores[task, truth] += np.log(probs[row, mirror[truth], mirror[label]])
    total, mass = 0.0, np.zeros((n_tasks, k))
    for labelling in product(range(k), repeat=n_tasks):
        p = np.exp(scores[np.arange(n_tasks), labelling].sum())
        total += p
        mass[np.arange(n_tasks), labelling] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


@pytest.mark.parametrize("parts", [{}, {"shared_error": True}, {"task_difficulty": True}])
def test_which_item_of_a_pair_is_called_left_changes_no_density(parts):
    annotations = crowd(n_pairs=8)
    model = Model(STORIES["dawid_skene"], parts)
    values = drawn(model, annotations)
    if "pull" in values:  # the impression is an item: its prior alone does not tell left from right
        values["pull"] = jnp.full((3, 3), 0.2) + 0.4 * jnp.eye(3)
    tasks = np.arange(8) % 3 == 0
    ours, theirs = (density(model, values, each) for each in (annotations, turned(annotations, tasks)))
    np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-5)
    mirrored = np.where(tasks[:, None], np.asarray(theirs.posterior)[:, [1, 0, 2]], theirs.posterior)
    np.testing.assert_allclose(ours.posterior, mirrored, atol=1e-5)


def test_the_forms_of_the_emission_agree_also_beneath_abstentions():
    annotations = crowd(n_pairs=8)
    annotations = annotations.replace(
        label=np.where(np.arange(annotations.n_rows) % 7 == 0, 3, annotations.label), abstentions=Ids(["none"])
    )
    model = Model(STORIES["dawid_skene"], {})
    emission = density(model, drawn(model, annotations), annotations).likelihood.emission
    rows = annotations.worker, annotations.task
    probs = np.asarray(emission.probs(*rows))
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-5)
    each = np.arange(annotations.n_rows)
    np.testing.assert_allclose(
        emission.log_prob(*rows, annotations.label), np.log(probs[each, :, annotations.label]), atol=1e-5
    )
    truth = each % 3
    np.testing.assert_allclose(emission.probs_given(*rows, truth), probs[each, truth], atol=1e-6)
    draws = jax.vmap(lambda key: emission.sample(key, *rows, truth))(jax.random.split(jax.random.key(0), 4000))
    shares = (np.asarray(draws)[..., None] == np.arange(4)).mean(0)
    np.testing.assert_allclose(shares, probs[each, truth], atol=0.05)  # six standard errors


def test_a_position_bias_is_found_and_the_items_are_not_blamed_for_it():
    annotations = crowd(n_pairs=250, biased=(0.95, 0.55), ties=False)
    fit = cp.fit("dawid_skene", annotations, seed=0, progress=False)
    bias = fit.workers["position_bias"]  # (.95 + .45 − .05 − .55) / 2
    np.testing.assert_allclose(bias, 0.4, atol=0.12)
    assert (fit.workers["position_bias_low"] < 0.4).all()
    assert (fit.workers["position_bias_high"] > 0.4).all()
    np.testing.assert_allclose(fit.workers["accuracy"], 0.75, atol=0.06)
    blind = cp.fit("dawid_skene", annotations.replace(mirrored=None), seed=0, progress=False)
    np.testing.assert_allclose(blind.workers["position_bias"], 0.0, atol=0.1)
    told, untold = (float(each.fitted.log_likelihood().sum()) for each in (fit, blind))
    assert told > untold + 20  # of as many parameters


def test_padding_and_minibatches_carry_the_orders():
    annotations = crowd(n_pairs=20)
    assert gives_the_same(Model(STORIES["dawid_skene"]), annotations, unread(padded(annotations, spare=1)))
    many = crowd(n_pairs=120, biased=(0.95, 0.6))
    options = {"method": "svi", "batch_size": 40, "max_iterations": 800, "sweeps": 0, "seed": 0, "progress": False}
    in_batches = cp.fit("dawid_skene", many, **options)
    whole = cp.fit("dawid_skene", many, seed=0, progress=False)
    np.testing.assert_allclose(in_batches.workers["position_bias"], whole.workers["position_bias"], atol=0.08)


def test_every_view_takes_them_and_a_folder_keeps_them(tmp_path):
    annotations = crowd(n_pairs=30)
    fit = cp.fit("dawid_skene", annotations, seed=0, progress=False, shared_error=True, task_difficulty=True)
    assert len(cp.next_annotations(fit, 2)) == 2
    plain = cp.fit("dawid_skene", annotations, seed=0, progress=False)
    assert cp.check(plain, draws=5, replicates=5).flagged.empty
    assert len(fit.tasks) == 30
    assert annotations.expanded().mirrored.tolist() == annotations.mirrored.tolist()
    assert annotations.without_workers().mirrored is None
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    np.testing.assert_array_equal(again.annotations.mirrored, annotations.mirrored)
    np.testing.assert_allclose(again.workers["position_bias"], fit.workers["position_bias"], atol=1e-5)
