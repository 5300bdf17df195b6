"""What a fit gives back: names, averages over draws, intervals, ArviZ data, files."""

import json
import uuid
import warnings

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy.special import gammaln
from whole_density import density

import crowdppl as cp
from crowdppl import Annotations, ConvergenceWarning, StorageError, StoryError, UnknownNameError
from crowdppl.data.id_text import name_text
from crowdppl.inference.fitted.class_mix import class_mix_draws
from crowdppl.inference.storage.arviz_groups import group, groups
from crowdppl.inference.storage.folder import whole_folder

IDS = ["α", "β", uuid.UUID(int=7), 4, ("a", 1)]


@pytest.fixture(scope="module")
def annotations():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    rows = [
        (f"t{i}", IDS[j], "yes" if (truth[i] if rng.random() < 0.8 else 1 - truth[i]) else "no")
        for i in range(30)
        for j in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    tasks = [*(f"t{i}" for i in range(30)), "never asked"]
    return Annotations.from_frame(frame, tasks=tasks, gold={"t0": "no"})


@pytest.fixture(scope="module")
def em(annotations):
    return cp.fit("dawid_skene", annotations, progress=False)


@pytest.fixture(scope="module")
def nuts(annotations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cp.fit("dawid_skene", annotations, method="nuts", chains=2, warmup=200, draws=200, progress=False)


def test_outputs_bear_the_names_that_came_in(nuts, annotations):
    assert list(nuts.labels.index) == list(annotations.tasks)
    assert list(nuts.probabilities.columns) == ["no", "yes"]
    assert list(nuts.workers.index) == IDS
    assert [type(i) for i in nuts.workers.index] == [type(i) for i in IDS]
    assert set(nuts.labels["label"]) <= {"no", "yes"}


def test_probabilities_are_averaged_over_draws(nuts, annotations):
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in nuts.outcome.draws.items()}
    each = jax.vmap(lambda draw: density(nuts.model, draw, annotations).posterior)(flat)
    np.testing.assert_allclose(nuts.posterior, each.mean(0), atol=1e-5)


def test_labels_are_the_most_probable_with_their_entropy(nuts):
    p = nuts.probabilities.to_numpy(dtype=float)
    np.testing.assert_allclose(nuts.labels["probability"], p.max(-1))
    np.testing.assert_allclose(nuts.labels["entropy"], [-(q[q > 0] * np.log(q[q > 0])).sum() for q in p])
    assert list(nuts.labels["label"]) == [["no", "yes"][k] for k in p.argmax(-1)]


def test_a_task_without_annotations_has_the_prevalence(nuts):
    np.testing.assert_allclose(
        nuts.probabilities.loc["never asked"], nuts.parameters["prevalence"].to_numpy(), atol=1e-5
    )


def test_workers_intervals_are_quantiles_of_the_draws(nuts):
    tables = nuts.outcome.draws["confusion"]
    accuracy = np.einsum("cdjkk,k->cdj", tables, nuts.posterior.mean(0))
    around = np.einsum("cdjkk,cdk->cdj", tables, class_mix_draws(nuts)[..., 0, :])
    low, high = np.quantile(around, [0.25, 0.75], axis=(0, 1), method="weibull")
    scores = nuts.worker_scores(interval=0.5)
    np.testing.assert_allclose(scores["accuracy"], accuracy.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(scores["accuracy_low"], low, atol=1e-6)
    np.testing.assert_allclose(scores["accuracy_high"], high, atol=1e-6)
    assert list(scores["annotations"]) == [30] * 5


def test_two_classes_have_sensitivity_and_specificity_with_intervals(nuts, tiny):
    tables = nuts.outcome.draws["confusion"]
    for name, k in (("sensitivity", 1), ("specificity", 0)):  # "yes", the second class, is the positive one
        right = tables[..., k, k]
        low, high = np.quantile(right, [0.05, 0.95], axis=(0, 1), method="weibull")
        np.testing.assert_allclose(nuts.workers[name], right.mean((0, 1)), atol=1e-6)
        np.testing.assert_allclose(nuts.workers[f"{name}_low"], low, atol=1e-6)
        np.testing.assert_allclose(nuts.workers[f"{name}_high"], high, atol=1e-6)
    assert "sensitivity" not in cp.fit("dawid_skene", tiny, progress=False).workers  # of three classes


def test_the_summary_names_the_class_that_sensitivity_is_of():
    names = np.array(["no", "yes", "maybe"])
    given = np.array([[0, 1, 1], [1, 1, 1], [0, 0, 1], [0, 0, 0]])
    annotations = cp.Annotations.from_matrix(names[given])
    said = (
        "yes, the second of the classes: sensitivity is P(annotation yes | truth yes), "
        "specificity is P(annotation no | truth no)"
    )
    for story in ("two_coin", "majority_vote"):
        assert cp.fit(story, annotations, progress=False).summary().facts["positive class"] == said
    of_three = cp.Annotations.from_matrix(names[given], classes=list(names))
    assert "positive class" not in cp.fit("dawid_skene", of_three, progress=False).summary().facts


def test_a_point_estimate_has_intervals_around_it(em):
    workers, confusions = em.workers, em.confusions()
    assert not em.has_draws
    assert (workers["accuracy_low"] < workers["accuracy"]).all()
    assert (workers["accuracy"] < workers["accuracy_high"]).all()
    assert list(confusions.columns) == ["worker", "truth", "annotation", "probability", "low", "high"]
    assert (confusions["low"] < confusions["high"]).all()


def test_confusions_are_the_tables_in_long_form(nuts):
    frame = nuts.confusions()
    wide = frame.set_index(["worker", "truth", "annotation"])["probability"].to_numpy().reshape(5, 2, 2)
    np.testing.assert_allclose(wide, nuts.parameters["confusion"], atol=1e-6)
    assert (frame["low"] <= frame["probability"]).all()
    assert (frame["probability"] <= frame["high"]).all()


@pytest.mark.parametrize("interval", [0.0, 1.0, 90])
def test_an_interval_has_a_mass_between_zero_and_one(nuts, interval):
    with pytest.raises(ValueError, match="above 0 and below 1"):
        nuts.worker_scores(interval=interval)


def test_idata_has_the_groups_dimensions_and_coordinates_of_arviz(nuts, annotations):
    assert set(groups(nuts.idata)) >= {
        "posterior", "sample_stats", "log_likelihood", "log_prior", "observed_data", "constant_data", "prior",
        "prior_predictive", "posterior_predictive",
    }  # fmt: skip
    posterior = group(nuts.idata, "posterior")
    assert posterior["confusion"].dims == ("chain", "draw", "worker", "truth", "annotation")
    assert posterior["prevalence"].dims == ("chain", "draw", "truth")
    assert list(posterior["annotation"].values) == ["no", "yes"]
    assert list(posterior["worker"].values) == [name_text(i) for i in IDS]
    assert {"diverging", "energy", "n_steps", "lp", "tree_depth"} <= set(group(nuts.idata, "sample_stats"))
    likelihood = group(nuts.idata, "log_likelihood")["majority_share"]
    assert likelihood.sizes == {"chain": 2, "draw": 200, "task": 30}  # not the task that has no annotation
    np.testing.assert_array_equal(group(nuts.idata, "observed_data")["annotation"], annotations.label)
    assert posterior.attrs["story"] == "dawid_skene"
    assert posterior.attrs["inference_library"] == "crowdppl"
    np.testing.assert_allclose(group(nuts.idata, "fit")["label_probability"], nuts.posterior)


def test_the_log_likelihood_is_by_task_by_annotation_or_left_out(nuts, annotations):
    by_row = group(nuts.to_idata(log_likelihood="annotation"), "log_likelihood")["annotation"]
    assert by_row.sizes == {"chain": 2, "draw": 200, "row": annotations.n_rows}
    assert "log_likelihood" not in groups(nuts.to_idata(log_likelihood=None))
    with pytest.raises(cp.UnknownNameError, match=r"'annotations'.*'annotation'"):
        nuts.to_idata(log_likelihood="annotations")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by", ["task", "annotation"])
def test_arvizs_loo_is_ours_by_either_unit(nuts, by):
    theirs = az.loo(nuts.to_idata(log_likelihood=by))
    found = theirs.elpd if hasattr(theirs, "elpd") else theirs.elpd_loo
    assert float(found) == pytest.approx(cp.loo(nuts, by=by).elpd, abs=0.05)


def test_the_prior_group_has_the_priors_moments_and_log_prior_is_their_density(nuts):
    """Means of 2,000 draws of Dirichlet rows within five standard errors of their own."""
    idata = nuts.to_idata(prior=2000, seed=3)
    drawn = group(idata, "prior")["confusion"]
    assert drawn.dims == ("chain", "draw", "worker", "truth", "annotation")
    mean = drawn.mean(("chain", "draw", "worker")).to_numpy()
    np.testing.assert_allclose(np.diagonal(mean), 2 / 3, atol=0.02)
    assert group(idata, "prior_predictive")["annotation"].sizes["row"] == nuts.annotations.n_rows
    log_prior = group(idata, "log_prior")
    confusion = nuts.outcome.draws["confusion"][1, 7].astype(float)
    alpha = np.where(np.eye(2, dtype=bool), 2.0, 1.0)
    expected = dirichlet_log_density(confusion, alpha).sum()
    assert float(log_prior["confusion"][1, 7]) == pytest.approx(expected, abs=1e-3)


def dirichlet_log_density(rows, alpha):
    normaliser = gammaln(alpha.sum(-1)) - gammaln(alpha).sum(-1)
    return normaliser + ((alpha - 1) * np.log(rows)).sum(-1)


def test_log_likelihood_is_that_of_the_density(nuts, annotations):
    draw = {name: value[1, 17] for name, value in nuts.outcome.draws.items()}
    np.testing.assert_allclose(
        nuts.log_likelihood()[1, 17], density(nuts.model, draw, annotations).log_likelihood, atol=1e-5
    )


@pytest.mark.filterwarnings("ignore")
def test_arviz_summarises_plots_and_compares_a_fit(nuts, annotations):
    summary = az.summary(nuts.idata, var_names=["prevalence"])
    assert len(summary) == 2
    assert az.plot_forest(nuts.idata, var_names=["confusion"], combined=True) is not None
    coin = cp.fit(
        "dawid_skene", annotations, method="nuts", chains=2, warmup=100, draws=100, diagonal=1e3, off_diagonal=1e3,
        progress=False,
    )  # fmt: skip
    compared = az.compare({"tables": nuts.idata, "spammers": coin.idata})
    assert compared.index[0] == "tables"  # annotations that are right in 80 % are no coin tosses


def test_posterior_predictive_replicates_the_annotations(nuts, annotations):
    """Mean share of 'yes' in 400 replications is near the observed one: within four of their standard deviations."""
    replicated = nuts.posterior_predictive(seed=1)
    assert replicated["annotation"].shape == (2, 200, annotations.n_rows)
    shares = replicated["annotation"].mean("row")
    assert abs(float(shares.mean()) - annotations.label.mean()) < 4 * float(shares.std())
    assert "posterior_predictive" not in groups(nuts.to_idata(posterior_predictive=False, prior=0))
    np.testing.assert_array_equal(replicated["annotation"], nuts.posterior_predictive(seed=1)["annotation"])
    drawn = replicated["truth"].mean(("chain", "draw"))
    np.testing.assert_allclose(drawn, nuts.posterior[:, 1], atol=5 * 0.5 / np.sqrt(400))


@pytest.mark.parametrize("method", ["em", "nuts"])
def test_a_fit_comes_back_from_its_files(method, request, tmp_path):
    fit = request.getfixturevalue(method)
    fit.save(tmp_path / "fit")
    assert {p.name for p in (tmp_path / "fit").iterdir()} == {"posterior.nc", "manifest.json"}
    back = cp.load_fit(tmp_path / "fit")
    pd.testing.assert_frame_equal(back.labels, fit.labels)
    pd.testing.assert_frame_equal(back.workers, fit.workers)
    assert back.model == fit.model
    assert back.settings == fit.settings
    assert back.warnings == fit.warnings
    assert str(back.summary()) == str(fit.summary())
    np.testing.assert_array_equal(back.log_likelihood(), fit.log_likelihood())
    assert az.from_netcdf(tmp_path / "fit" / "posterior.nc") is not None


def test_hyperparameters_come_back_from_files(annotations, tmp_path):
    history = pd.DataFrame({"worker": [IDS[2]], "truth": ["no"], "label": ["yes"], "count": [3.0]})
    fit = cp.fit(
        "dawid_skene", annotations, truth_prior=cp.Prevalence((2.0, 3.0)), history=history, diagonal=3.5, progress=False
    )
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit").model.hyperparameters
    assert back["truth_prior"] == cp.Prevalence((2.0, 3.0))
    assert back["diagonal"] == 3.5
    pd.testing.assert_frame_equal(back["history"], history)


def test_a_story_of_ones_own_is_loaded_with_its_function(tiny, tmp_path):
    def mine(annotations, *, truth_prior=None):
        cp.models.find_story("dawid_skene")(annotations, truth_prior=truth_prior)

    cp.fit(mine, tiny, progress=False).save(tmp_path / "fit")
    with pytest.raises(StorageError, match="'mine' is none of"):
        cp.load_fit(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit", story=mine).story == "mine"


def test_saving_is_whole_or_not_at_all(em, tmp_path, monkeypatch):
    monkeypatch.setattr(json, "dumps", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        em.save(tmp_path / "fit")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_overwritten_unasked(em, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="has something in it"):
        em.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(StorageError, match="is a file"):
        em.save(tmp_path / "notes.txt")
    with pytest.raises(StorageError, match="cannot be written"), whole_folder("/proc/nowhere"):
        pass


def test_a_folder_that_filled_up_meanwhile_is_not_replaced(tmp_path):
    def fill_up_meanwhile():
        with whole_folder(tmp_path / "a" / "b"):
            (tmp_path / "a" / "b").mkdir()
            (tmp_path / "a" / "b" / "old.txt").write_text("old")

    with pytest.raises(StorageError, match="has something in it"):
        fill_up_meanwhile()
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["a", "a/b", "a/b/old.txt"]


def test_a_failed_block_leaves_no_folders_behind(tmp_path):
    with pytest.raises(KeyError), whole_folder(tmp_path / "a" / "b" / "c"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_loading_what_is_no_fit_is_refused(tmp_path):
    with pytest.raises(StorageError, match="holds no fit"):
        cp.load_fit(tmp_path)


def test_prediction_needs_a_classifier(em):
    with pytest.raises(ValueError, match="without a classifier"):
        em.predict_proba(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("david_skene",), {}, UnknownNameError, "dawid_skene"),
        (("dawid_skene",), {"method": "nut"}, UnknownNameError, "nuts"),
        (("dawid_skene",), {"backend": "pyr"}, UnknownNameError, "numpyro"),
        (("dawid_skene",), {"diagnal": 2}, UnknownNameError, "diagonal"),
        (("dawid_skene",), {"max_iteration": 2}, UnknownNameError, "max_iterations"),
        (("dawid_skene",), {"diagonal": -2}, StoryError, "diagonal=-2"),
        (("dawid_skene",), {"diagonal": "two"}, StoryError, "diagonal='two'"),
        (("dawid_skene",), {"max_iterations": 0}, ValueError, "max_iterations=0: a whole number from 1"),
        (("dawid_skene",), {"restarts": 2.5}, ValueError, "restarts=2.5: a whole number from 1"),
        (("dawid_skene",), {"tolerance": "small"}, ValueError, "tolerance='small': a finite number from 0"),
        (("dawid_skene",), {"method": "nuts", "chains": 0}, ValueError, "chains=0"),
    ],
)
def test_unfit_arguments_are_annotated_with_what_would_do(tiny, arguments, options, error, message):
    with pytest.raises(error, match=message):
        cp.fit(*arguments, tiny, progress=False, **options)


@pytest.mark.slow
def test_a_task_with_a_thousand_annotations_and_a_worker_with_one():
    frame = pd.DataFrame({"task": ["big"] * 1000 + ["small"], "worker": [*range(1000), "once"]})
    frame["label"] = ["x"] * 700 + ["y"] * 301
    fit = cp.fit("dawid_skene", Annotations.from_frame(frame), progress=False)
    assert np.isfinite(fit.posterior).all()
    assert fit.workers.loc["once", "annotations"] == 1


def test_a_story_without_workers_has_labels_and_nobody_to_score():
    def same_for_all(annotations, *, truth_prior=None):
        with numpyro.plate("class", annotations.n_classes):
            table = numpyro.sample("table", dist.Dirichlet(jnp.ones(annotations.n_classes) + jnp.array([1.0, 0.0])))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, Anonymous(table[None]), annotations)

    class Anonymous(cp.Confusion):
        def log_prob(self, worker, task, answer):
            return super().log_prob(jnp.zeros_like(answer), task, answer)

    fit = cp.fit(same_for_all, Annotations.from_counts(np.array([[3, 1], [0, 2]])), progress=False)
    assert fit.labels.shape == (2, 3)
    assert "2 tasks, 0 workers" in str(fit.summary())
    with pytest.raises(ValueError, match="nobody to score"):
        _ = fit.workers


def test_summary_names_what_a_user_looks_for(nuts):
    text = str(nuts.summary())
    for words in ("dawid_skene fitted by NUTS", "31 tasks, 5 workers, 2 classes", "2 chains × 200 draws", "prevalence"):
        assert words in text
    assert "<table" in nuts._repr_html_()


def test_gold_labels_that_are_given_stay_with_the_fit_beside_those_that_the_annotations_carry(annotations):
    fit = cp.fit("dawid_skene", annotations, gold={"t1": "yes"}, progress=False)
    assert np.flatnonzero(fit.annotations.gold >= 0).tolist() == [0, 1]
    assert "gold labels of 2" in repr(fit)
    assert fit.probabilities.loc["t1", "yes"] == 1
    bare = cp.fit("dawid_skene", annotations.without_gold(), gold={"t1": "yes"}, progress=False)
    assert "neither gold" not in repr(bare)
