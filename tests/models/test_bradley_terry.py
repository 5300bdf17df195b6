"""Scores of items as the prior of comparisons: the program that others write, all labellings, and every engine."""

import os
from itertools import permutations, product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro import handlers
from numpyro.infer import MCMC, NUTS, init_to_value
from numpyro.infer.util import log_density
from scipy.optimize import minimize
from story_options import every_story
from whole_density import density

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.data import Ids
from crowdppl.data.padding import padded, unread
from crowdppl.inference.densities.enumerated import is_latent
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.portable import gives_the_same
from crowdppl.inference.engines.registry import ENGINES
from crowdppl.models import STORIES, BradleyTerry
from crowdppl.models.parts.simulated_inputs import in_order

BINARY = {"two_coin", "item_response"}
BINARY |= {name for name, story in STORIES.items() if getattr(story, "prepare_simulation", None) is in_order}
"""Stories of two classes, or of more only where these have an order, as left, right and tie have none."""


def comparisons(*, n_pairs=6, n_items=4, workers="uvw", ties=True, seed=0):
    """Comparisons of each pair by all workers, who are better than chance."""
    rng = np.random.default_rng(seed)
    score = np.linspace(1.5, -1.5, n_items)
    rows = []
    for pair in range(n_pairs):
        one, two = rng.permutation(n_items)[:2]
        better = "left" if rng.random() < 1 / (1 + np.exp(score[two] - score[one])) else "right"
        for worker in workers:
            other = ["left", "right"] + ["tie"] * ties
            said = better if rng.random() < 0.8 else rng.choice(other)
            rows.append((f"p{pair}", f"i{one}", f"i{two}", worker, said))
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
    classes = ["left", "right", "tie"] if ties else ["left", "right"]
    return cp.Annotations.from_comparisons(frame, task="task", classes=classes)


def with_features(annotations, seed=0):
    """Three features of the items, of which the last is the same for all, and two of the tasks."""
    rng = np.random.default_rng(seed)
    of_items = np.column_stack([rng.normal(100, 10, len(annotations.items)), rng.normal(size=len(annotations.items))])
    return annotations.replace(
        item_features=np.append(of_items, np.full((len(of_items), 1), 0.3), axis=1).astype(np.float32),
        item_feature_names=Ids(["length", "age", "alike"]),
        features=rng.normal(size=(annotations.n_tasks, 2)).astype(np.float32),
        feature_names=Ids(["maths", "code"]),
    )


def drawn(model, annotations, seed=0):
    """Parameters from the prior by site."""
    sites = handlers.trace(handlers.seed(model, seed)).get_trace(annotations)
    return {site["name"]: site["value"] for site in sites.values() if is_latent(site) and site["name"] != "truth"}


def scores_by_hand(values, annotations, scale=None):
    """Scores of the items by the formulas of the papers, and by their features."""
    effect = np.asarray(values["item_effect"], dtype=float)
    score = float(values.get("item_scale", scale)) * (effect - effect.mean())
    for column, slope in enumerate(values.get("item_slope", [])):
        feature = np.asarray(annotations.item_features, dtype=float)[:, column]
        if feature.max() > feature.min():
            score = score + float(slope) * (feature - feature.mean()) / feature.std()
    return score


def log_probs_by_hand(values, annotations, scale=None, by_prompt=None):
    """Log-probabilities of the classes of each pair, task by task."""
    score, rows = scores_by_hand(values, annotations, scale), []
    for task, (left, right) in enumerate(np.asarray(annotations.sides)):
        there = score
        if by_prompt is not None:
            effect = np.asarray(values["prompt_effect"], dtype=float)
            there = score + by_prompt * (effect - effect.mean(0)) @ annotations.features[task]
        worth = np.exp(there)
        tie = np.exp(values["tie"]) * np.sqrt(worth[left] * worth[right]) if "tie" in values else 0.0
        rows.append([worth[left], worth[right], tie][: annotations.n_classes])
    return np.log(np.array(rows) / np.sum(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("story", every_story())
def test_density_of_every_story_is_the_sum_over_all_labellings(story):
    annotations = comparisons(ties=story not in BINARY)
    model = Model(STORIES[story], {"truth_prior": BradleyTerry()})
    values = drawn(model, annotations)
    at = density(model, values, annotations)
    prior = log_probs_by_hand(values, annotations)
    np.testing.assert_allclose(at.truth_prior, prior, atol=1e-5)
    emission = at.likelihood.emission
    scores = np.asarray(emission.by_task(annotations, annotations.label), dtype=float) + prior
    total, mass = 0.0, np.zeros(prior.shape)
    for labelling in product(range(annotations.n_classes), repeat=annotations.n_tasks):
        p = np.exp(scores[np.arange(annotations.n_tasks), labelling].sum())
        total += p
        mass[np.arange(annotations.n_tasks), labelling] += p
    np.testing.assert_allclose(at.log_likelihood.sum(), np.log(total), rtol=1e-5)
    np.testing.assert_allclose(at.posterior, mass / total, atol=1e-5)


def plain(annotations):
    """Dawid & Skene's story over Bradley & Terry's prior, written out in NumPyro, the truth summed out."""
    n_classes, sides = annotations.n_classes, np.asarray(annotations.sides)
    scale = numpyro.sample("item_scale", dist.HalfNormal(1.5))
    effect = numpyro.sample("item_effect", dist.Normal(0.0, 1.0).expand([len(annotations.items)]).to_event(1))
    tie = numpyro.sample("tie", dist.Normal(-1.0, 1.0))
    score = numpyro.deterministic("score", scale * (effect - effect.mean()))
    left, right = score[sides[:, 0]], score[sides[:, 1]]
    concentration = (0.5 + 1.5 * jnp.eye(n_classes)) * jnp.array([1.0, 1.0, 2.0])[:, None]
    with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", dist.Dirichlet(concentration))
    prior = jax.nn.log_softmax(jnp.stack([left, right, tie + (left + right) / 2], axis=-1), axis=-1)
    of_row = jnp.log(confusion)[annotations.worker, :, annotations.label]
    joint = prior + jax.ops.segment_sum(of_row, annotations.task, annotations.n_tasks)
    numpyro.factor("annotations", jax.scipy.special.logsumexp(joint, axis=-1))


def test_density_is_that_of_the_model_in_plain_numpyro():
    annotations = comparisons(n_pairs=12)
    given = drawn(Model(STORIES["dawid_skene"]), annotations, 3)
    program, data = cp.marginal("dawid_skene", annotations)
    ours, _ = log_density(program, data, {}, given)
    theirs, _ = log_density(plain, (annotations,), {}, given)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.slow
def test_nuts_has_the_posterior_of_the_model_in_plain_numpyro():
    """On real comparisons: five items, 999 pairs, five judges."""
    if "CROWDPPL_DATA" not in os.environ:
        pytest.skip("CROWDPPL_DATA is unset: it names the folder of the real datasets")
    frame = pd.read_csv(Path(os.environ["CROWDPPL_DATA"], "pairs_pandalm", "comparisons.csv"))
    annotations = cp.Annotations.from_comparisons(frame[frame["label"] != "abstain"], task="task")
    fit = cp.fit("dawid_skene", annotations, method="nuts", seed=0, draws=1000, progress=False)
    # Starts where workers are right more often than not: classes have no names in the likelihood.
    start = init_to_value(values={"confusion": jnp.full((5, 3, 3), 0.15) + 0.55 * jnp.eye(3)})
    kernel = NUTS(plain, init_strategy=start)
    mcmc = MCMC(kernel, num_warmup=500, num_samples=1500, num_chains=2, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(1), annotations)
    theirs = mcmc.get_samples()
    np.testing.assert_allclose(fit.derived["score"], theirs["score"].mean(0), atol=1e-2)
    np.testing.assert_allclose(
        fit.derived_draws("score")["score"].std(("chain", "draw")), theirs["score"].std(0), atol=1e-2
    )
    np.testing.assert_allclose(fit.parameters["tie"], theirs["tie"].mean(), atol=1e-2)
    np.testing.assert_allclose(fit.parameters["confusion"], theirs["confusion"].mean(0), atol=1e-2)


def test_a_given_scale_is_not_learned_and_spreads_scores():
    annotations = comparisons(n_pairs=12)
    near, far = (
        cp.fit("dawid_skene", annotations, truth_prior=BradleyTerry(scale=scale), seed=0, progress=False)
        for scale in (0.1, 2.0)
    )
    assert "item_scale" not in near.parameters
    assert float(far.derived["score"].std()) > 5 * float(near.derived["score"].std())


@pytest.mark.parametrize("prior", [BradleyTerry(1.0), BradleyTerry(1.0, slope=0.5, by_prompt=0.7)])
@pytest.mark.parametrize("method", list(ENGINES))
def test_scores_of_every_engine_sum_to_zero_and_a_folder_keeps_them(method, prior, tmp_path):
    annotations = comparisons(n_pairs=30)
    if prior.slope is not None:
        annotations = with_features(annotations)
    few = {"em": {}, "svi": {"max_iterations": 300, "sweeps": 0}, "nuts": {"warmup": 50, "draws": 50, "chains": 1}}[
        method
    ]
    fit = cp.fit("one_coin", annotations, method=method, truth_prior=prior, seed=0, progress=False, **few)
    scores = fit.derived_draws("score")["score"]
    np.testing.assert_allclose(scores.sum("item"), 0.0, atol=1e-5)
    assert list(scores["item"].values) == ["i0", "i1", "i2", "i3"]
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    assert again.model.truth_prior == prior
    np.testing.assert_array_equal(again.derived["score"], fit.derived["score"])
    if prior.slope is not None:
        np.testing.assert_allclose(again.derived_draws("prompt_slope")["prompt_slope"].sum("item"), 0.0, atol=1e-5)
        named = {"item_feature": ["length", "age", "alike"], "feature": ["maths", "code"]}
        for dim, names in named.items():
            of = again.parameters["item_slope" if dim == "item_feature" else "prompt_effect"]
            assert list(of[dim].values) == list(fit.parameters[dim].values) == names
        np.testing.assert_array_equal(again.annotations.item_features, annotations.item_features)


def test_it_is_the_prior_of_comparisons_where_none_is_given():
    annotations = comparisons()
    default, given, even = (
        cp.fit("one_coin", annotations, truth_prior=prior, seed=0, progress=False)
        for prior in (None, BradleyTerry(), "uniform")
    )
    np.testing.assert_array_equal(default.posterior, given.posterior)
    assert "score" in default.derived
    assert "score" not in even.derived


@pytest.mark.parametrize("story", ["glad", "score_factor"])
def test_stories_with_a_prior_of_their_own_fit_comparisons_without_ties(story):
    """glad keeps its even shares, and score_factor leaves it to the comparisons."""
    fit = cp.fit(story, comparisons(ties=False), progress=False, max_iterations=20)
    assert ("item_effect" in fit.draws) == (story == "score_factor")
    assert np.isfinite(np.asarray(fit.posterior)).all()


def test_parts_over_a_story_and_minibatches_leave_the_scores_in_place():
    annotations = comparisons(n_pairs=40, workers="stuvwxyz")
    whole = cp.fit("dawid_skene", annotations, seed=0, progress=False).derived["score"]
    shared = cp.fit("dawid_skene", annotations, shared_error=True, seed=0, progress=False).derived["score"]
    in_batches = cp.fit(
        "dawid_skene", annotations, method="svi", batch_size=20, max_iterations=1500, sweeps=0, seed=0, progress=False
    ).derived["score"]
    for scores in (shared, in_batches):
        assert list(scores.argsort().values) == list(whole.argsort().values)
        np.testing.assert_allclose(scores, whole, atol=0.35)


def test_abstentions_say_nothing_of_the_scores_that_the_story_does_not():
    frame = comparisons(n_pairs=20).to_frame()
    silent = frame.assign(worker="mute", label="refused").drop_duplicates("task")
    both = cp.Annotations.from_comparisons(pd.concat([frame, silent]), task="task", abstain=["refused"])
    alone = cp.Annotations.from_comparisons(frame, task="task")
    ours, theirs = (cp.fit("dawid_skene", each, seed=0, tolerance=1e-9, progress=False) for each in (both, alone))
    np.testing.assert_allclose(ours.derived["score"], theirs.derived["score"], atol=1e-2)


def test_padding_leaves_it_as_it_is(caplog):
    caplog.set_level("INFO", "crowdppl")  # says why, where it does not
    annotations = comparisons(n_pairs=20)
    assert gives_the_same(Model(STORIES["dawid_skene"]), annotations, unread(padded(annotations, spare=1)))


def test_log_probabilities_with_features_are_those_of_the_formulas_and_padding_leaves_them():
    annotations = with_features(comparisons(n_pairs=20, n_items=6))
    model = Model(STORIES["dawid_skene"], {"truth_prior": BradleyTerry(slope=0.5, by_prompt=0.7)})
    for seed in range(3):
        values = drawn(model, annotations, seed)
        found = density(model, values, annotations).truth_prior
        np.testing.assert_allclose(found, log_probs_by_hand(values, annotations, by_prompt=0.7), atol=1e-5)
    assert gives_the_same(model, annotations, unread(padded(annotations, spare=1)))


def test_slopes_have_the_normal_priors_that_are_asked_for():
    annotations = with_features(comparisons(ties=False))
    model = Model(STORIES["one_coin"], {"truth_prior": BradleyTerry(1.0, slope=0.5, by_prompt=0.7)})
    sites = handlers.trace(handlers.seed(model, 0)).get_trace(annotations)
    for name, spread in (("item_slope", 0.5), ("prompt_effect", 1.0), ("item_effect", 1.0)):
        expected = dist.Normal(0.0, spread).log_prob(sites[name]["value"]).sum()
        np.testing.assert_allclose(sites[name]["fn"].log_prob(sites[name]["value"]).sum(), expected, rtol=1e-6)


def by_length(n_tasks=500, n_items=20, seed=0):
    """Comparisons whose items' scores follow two features; the last three items have 2, 2 and 0 comparisons."""
    rng = np.random.default_rng(seed)
    about = pd.DataFrame(rng.normal(size=(n_items, 2)) * [30, 1] + [200, 0], [f"m{i}" for i in range(n_items)])
    about.columns = ["length", "age"]
    score = (about - about.mean()) / about.std(ddof=0) @ np.array([1.2, -0.8]) + rng.normal(0, 0.3, n_items)
    pairs = [rng.choice(n_items - 3, 2, replace=False) for _ in range(n_tasks)]
    pairs += [(few, other) for few in (n_items - 3, n_items - 2) for other in rng.choice(n_items - 3, 2, replace=False)]
    rows = []
    for task, (one, two) in enumerate(pairs):
        better = one if rng.random() < 1 / (1 + np.exp(score.iloc[two] - score.iloc[one])) else two
        for worker in "uvw":
            said = better if rng.random() < 0.85 else one + two - better
            rows.append((task, f"m{one}", f"m{two}", worker, f"m{said}"))
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
    return frame, about, score - score.mean()


def test_slopes_lie_in_their_intervals_and_features_help_the_items_that_few_or_none_compared():
    """Intervals of 98 %, of NUTS; what is beyond the features in the scores, 0.3, is the error that is left."""
    frame, about, score = by_length()
    annotations = cp.Annotations.from_comparisons(frame, item_features=about)
    fit = cp.fit("one_coin", annotations, method="nuts", warmup=300, draws=300, seed=0, progress=False)
    low, high = (fit.draws["item_slope"].quantile(at, ("chain", "draw")).to_series() for at in (0.01, 0.99))
    assert (low < [1.2, -0.8]).all()
    assert (high > [1.2, -0.8]).all()
    assert list(low.index) == ["length", "age"]
    few = about.index[-3:]
    bare = cp.fit("one_coin", cp.Annotations.from_comparisons(frame), seed=0, progress=False).ranking["score"]
    ranking = fit.ranking
    errors = {
        name: (of[few[:2]] - score[few[:2]]).abs().mean()
        for name, of in (("with", ranking["score"]), ("without", bare))
    }
    assert errors["with"] < 0.5 * errors["without"]
    alone = ranking.loc[few[2]]
    assert alone["n_comparisons"] == 0
    assert alone["score_low"] < score[few[2]] < alone["score_high"]
    assert alone["score"] == pytest.approx(score[few[2]], abs=1.0)
    widths = ranking["score_high"] - ranking["score_low"]
    assert widths[few[2]] > widths[about.index[:-3]].mean()


def test_features_are_data_so_that_others_of_the_same_shape_are_fitted_anew():
    frame, about, _ = by_length(n_tasks=200)
    of = [cp.Annotations.from_comparisons(frame, item_features=each) for each in (about, -about)]
    ours, turned = (cp.fit("one_coin", each, seed=0, progress=False) for each in of)
    np.testing.assert_allclose(turned.parameters["item_slope"], -ours.parameters["item_slope"], atol=1e-2)
    np.testing.assert_allclose(turned.derived["score"], ours.derived["score"], atol=1e-2)
    assert abs(float(ours.parameters["item_slope"][0])) > 0.5
    shrunk = cp.fit("one_coin", of[0], truth_prior=BradleyTerry(slope=0.01), seed=0, progress=False)
    assert abs(float(shrunk.parameters["item_slope"][0])) < 0.1


def test_an_item_that_is_better_on_some_prompts_is_found_by_their_features():
    rng, rows = np.random.default_rng(0), []
    about = pd.DataFrame({"maths": [-1.0, 1.0] * 150}, [f"q{i}" for i in range(300)])
    slope = {"a": 1.5, "b": 0.0, "c": -1.5}
    for prompt, maths in about["maths"].items():
        one, two = rng.permutation(list(slope))[:2]
        better = one if rng.random() < 1 / (1 + np.exp((slope[two] - slope[one]) * maths)) else two
        for worker in "uvw":
            rows.append((prompt, one, two, worker, better if rng.random() < 0.9 else one if better == two else two))
    frame = pd.DataFrame(rows, columns=["q", "left", "right", "worker", "label"])
    annotations = cp.Annotations.from_comparisons(frame, prompt="q", features=about)
    fit = cp.fit("one_coin", annotations, truth_prior=BradleyTerry(by_prompt=1.0), seed=0, progress=False)
    found = fit.derived["prompt_slope"].sel(feature="maths").to_series()
    np.testing.assert_allclose(found, pd.Series(slope), atol=0.5)
    np.testing.assert_allclose(fit.derived["score"], 0.0, atol=0.5)


def test_features_that_are_not_there_or_are_no_vectors_are_named():
    annotations = comparisons()
    images = annotations.replace(features=np.zeros((annotations.n_tasks, 2, 2), np.float32))
    for data, prior, message in (
        (annotations, BradleyTerry(slope=2.0), r"slope=2.0\) is of features of the items.*item_features="),
        (
            annotations,
            BradleyTerry(by_prompt=0.5),
            r"BradleyTerry\(by_prompt=0.5\) needs features of the prompts.*from_comparisons\(",
        ),
        (images, BradleyTerry(by_prompt=0.5), r"shape \(2, 2\); give vectors"),
        (with_features(annotations), BradleyTerry(slope=0.0), r"slope=0\.0: a finite number above 0"),
        (with_features(annotations), BradleyTerry(by_prompt="x"), r"by_prompt='x': a finite number above 0"),
    ):
        with pytest.raises(StoryError, match=message):
            cp.fit("one_coin", data, truth_prior=prior, progress=False)


def test_annotations_without_items_and_a_scale_that_is_none_are_refused():
    frame = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1, 0, 1], "label": list("abba")})
    with pytest.raises(StoryError, match=r"from_comparisons"):
        cp.fit("dawid_skene", cp.Annotations.from_frame(frame), truth_prior=BradleyTerry(), progress=False)
    with pytest.raises(StoryError, match=r"scale=-1"):
        cp.fit("dawid_skene", comparisons(), truth_prior=BradleyTerry(scale=-1), progress=False)


@pytest.mark.parametrize("ties", [False, True])
def test_known_labels_have_the_mode_of_the_papers_density_in_single_precision(ties):
    """Newton's steps lead there; Adam's stop where single precision shows no rise, at .007 from it."""
    annotations = comparisons(n_pairs=400, n_items=6, ties=ties, seed=3)
    rng = np.random.default_rng(0)
    gold = rng.integers(0, annotations.n_classes, annotations.n_tasks)
    gold = {task: annotations.classes[int(k)] for task, k in zip(annotations.tasks, gold, strict=True)}
    annotations = annotations.with_gold(gold)
    known = np.asarray(annotations.gold)
    fit = cp.fit("one_coin", annotations, truth_prior=BradleyTerry(scale=1.5), gold=True, progress=False)

    def negative(values):
        effect = values[:6]
        given = {"item_effect": effect, "item_scale": 1.5} | ({"tie": values[6]} if ties else {})
        log_probs = log_probs_by_hand(given, annotations)
        of_tie = (values[6] + 1) ** 2 / 2 if ties else 0.0
        return -log_probs[np.arange(len(known)), known].sum() + (effect**2).sum() / 2 + of_tie

    mode = minimize(negative, np.zeros(6 + ties), tol=1e-10).x
    score = 1.5 * (mode[:6] - mode[:6].mean())
    np.testing.assert_allclose(fit.derived["score"].to_numpy(), score, atol=1e-4)
    if ties:
        assert float(fit.parameters["tie"].item()) == pytest.approx(mode[6], abs=1e-4)


@pytest.fixture(scope="module")
def preferences():
    """Three judges who draw each preference from the scores of eight items, with ties, in both orders; the scores."""
    rng = np.random.default_rng(1)
    score = rng.normal(0, 1.2, 8)
    score -= score.mean()
    rows = []
    for one, two in permutations(range(8), 2):
        better = 1 / (1 + np.exp(score[two] - score[one]))
        for again, worker in product(range(6), "uvw"):
            said = "tie" if rng.random() < 0.05 else "left" if rng.random() < better else "right"
            rows.append((f"{min(one, two)} {max(one, two)} {again}", f"i{one}", f"i{two}", worker, said))
    return pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"]), score


def slope(fit, score):
    found = fit.ranking["score"].loc[[f"i{item}" for item in range(len(score))]]
    return np.polyfit(score, found, 1)[0]


def test_scores_of_annotations_are_those_of_a_task_for_each_and_of_true_labels_larger(preferences):
    """By a prior of half the weight many labels are ties that few gave, which the finding says; by the default none."""
    table, score = preferences
    of_pairs = cp.Annotations.from_comparisons(table, task="task")
    usual, weak = (
        cp.fit("dawid_skene", of_pairs, seed=0, progress=False, **options)
        for options in ({}, {"diagonal": 1.0, "off_diagonal": 0.25})
    )
    rows = cp.Annotations.from_comparisons(table.assign(task=range(len(table))), task="task")
    of_rows = cp.fit("one_coin", rows, right=1000.0, wrong=1.0, progress=False)
    assert slope(of_rows, score) == pytest.approx(1, abs=0.2)
    assert 2 < slope(usual, score) < 0.9 * slope(weak, score)  # NUTS: 3.7 and 5.0; draws around the weak mode: 4.6
    assert float(usual.posterior[:, 2].mean()) < 0.05 < 0.3 < float(weak.posterior[:, 2].mean())
    codes = [{finding.code for finding in fit.findings} for fit in (usual, weak, of_rows)]
    assert ["ties_that_few_gave" in each for each in codes] == [False, True, False]


def test_a_scale_does_not_run_away_where_no_comparison_contradicts_the_order():
    rng, n_items = np.random.default_rng(0), 60
    rows = []
    for pair in range(150):
        one, two = rng.permutation(n_items)[:2]
        better, worse = sorted((one, two))
        said = [better if rng.random() < 0.95 else worse for _ in range(5)]
        rows += [(pair, f"i{one}", f"i{two}", f"w{j}", f"i{each}") for j, each in enumerate(said)]
    frame = pd.DataFrame(rows, columns=["task", "left", "right", "worker", "label"])
    fit = cp.fit("one_coin", cp.Annotations.from_comparisons(frame, task="task"), progress=False)
    place = [int(name[1:]) for name in fit.annotations.items]
    assert np.corrcoef(fit.derived["score"], place)[0, 1] < -0.85
    assert fit.parameters["item_scale"] < 8.0  # under a log-normal prior it was 10.6
