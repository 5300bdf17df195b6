"""ArviZ's functions run on a fit's data, by the names that came in; and what they are given is what they suppose."""

import itertools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from arviz_calls import INSTALLED, run
from fit_at import fit_at, random_confusions
from netcdf import load_netcdf

import crowdppl as cp
from crowdppl.data.some_tasks import some_tasks
from crowdppl.inference.fitted.pointwise import log_likelihood_by_annotation
from crowdppl.inference.fitted.replicated_annotations import predicted
from crowdppl.inference.storage.arviz_groups import group, groups, majority_share_of, save_netcdf

matplotlib.use("Agg")
GROUPS = {"posterior", "prior", "prior_predictive", "posterior_predictive", "log_prior", "log_likelihood"}


@pytest.fixture(scope="module")
def annotations():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 25)
    noisy = np.where(rng.random((25, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    return cp.Annotations.from_matrix(
        np.array(["cat", "dog"])[noisy], tasks=[f"t{i}" for i in range(25)], workers=["Ana", "Özgür", "李", "bot"]
    )


@pytest.fixture(scope="module")
def fit(annotations):
    options = {"chains": 2, "warmup": 150, "draws": 150, "diagonal": 4.0, "progress": False}
    return cp.fit("dawid_skene", annotations, method="nuts", **options)


@pytest.mark.filterwarnings("ignore")  # of ArviZ and Matplotlib, to each other
@pytest.mark.parametrize("name", INSTALLED)
def test_it_runs_on_a_fits_data(name, fit):
    assert run(INSTALLED[name], fit.idata, fit.idata) is not None
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
def test_the_summary_names_every_parameter_and_label_probability(fit):
    names = run(INSTALLED["summary"], fit.idata, None).index.tolist()
    workers, classes, tasks = (
        list(ids) for ids in (fit.annotations.workers, fit.annotations.classes, fit.labels.index)
    )
    cells = [f"confusion[{', '.join(cell)}]" for cell in itertools.product(workers, classes, classes)]
    labels = [f"truth_probability[{', '.join(cell)}]" for cell in itertools.product(tasks, classes)]
    assert sorted(names) == sorted([*cells, *labels, "prevalence[cat]", "prevalence[dog]"])


def test_label_probabilities_of_the_draws_average_to_those_of_the_fit(fit):
    found = group(fit.idata, "posterior")["truth_probability"]
    assert found.dims == ("chain", "draw", "task", "truth")
    np.testing.assert_allclose(found.sum("truth"), 1, atol=1e-5)
    np.testing.assert_allclose(found.mean(("chain", "draw")), fit.posterior, atol=1e-5)
    assert found["task"].to_numpy().tolist() == fit.labels.index.tolist()


def test_the_log_likelihood_sums_to_that_of_the_data(fit):
    """Which power-scaling supposes."""
    values = group(fit.idata, "log_likelihood")
    assert list(values) == ["majority_share"]
    np.testing.assert_allclose(values["majority_share"].sum("task"), fit.log_likelihood().sum(-1), rtol=1e-5)


def test_files_keep_every_group_and_where_the_draws_come_from(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = load_netcdf(tmp_path / "fit" / "posterior.nc")
    assert set(groups(again)) == set(groups(fit.idata)) >= GROUPS
    for name in groups(again):
        kept, made = group(again, name), group(fit.idata, name)
        assert set(kept.variables) == set(made.variables)
    attributes = group(again, "posterior").attrs
    assert attributes["story"] == "dawid_skene"
    assert attributes["method"] == "nuts"
    assert attributes["seed"] == "0"
    assert '"diagonal": "4.0"' in attributes["hyperparameters"]
    assert '"jax": ' in attributes["versions"]
    loaded = cp.load_fit(tmp_path / "fit")
    assert group(loaded.idata, "posterior").attrs == attributes  # the time is the fit's, not that of the reading
    assert set(loaded.draws) == set(fit.draws)
    save_netcdf(loaded.idata, tmp_path / "copy.nc")
    assert group(load_netcdf(tmp_path / "copy.nc"), "posterior").attrs == attributes


def test_the_fingerprint_is_of_the_annotations(fit, annotations):
    def fingerprint(data):
        return group(fit_at("dawid_skene", data, random_confusions(data)).idata, "posterior").attrs["data_fingerprint"]

    assert fingerprint(annotations) == group(fit.idata, "posterior").attrs["data_fingerprint"]
    changed = np.where(np.arange(annotations.n_rows) == 7, 1 - annotations.label, annotations.label)
    assert fingerprint(annotations.replace(label=changed)) != fingerprint(annotations)


def test_a_point_comes_with_draws_around_it_and_what_takes_long_on_request(annotations):
    point = cp.fit("dawid_skene", annotations, progress=False)
    around, alone = point.idata, point.to_idata(uncertainty=False)
    assert {"prior", "posterior_predictive", "log_likelihood", "log_prior"}.isdisjoint(groups(around))
    assert {"log_likelihood", "log_prior"} <= set(groups(alone))
    assert {"posterior_predictive", "prior"} <= set(groups(point.to_idata(posterior_predictive=True, prior=10)))
    assert "data augmentation" in group(around, "posterior").attrs["draws"]
    assert (group(around, "posterior")["prevalence"].std("draw") > 0).all()
    assert group(alone, "posterior").sizes["draw"] == 1
    assert "draws" not in group(alone, "posterior").attrs
    drawn = group(around, "posterior")["confusion"].values
    low, high = (edge.ravel() for edge in np.quantile(drawn, [0.05, 0.95], axis=(0, 1), method="weibull"))
    cells = point.confusions(0.9)
    np.testing.assert_allclose(cells["low"], np.minimum(low, cells["probability"]), atol=1e-6)
    np.testing.assert_allclose(cells["high"], np.maximum(high, cells["probability"]), atol=1e-6)


def test_a_story_that_takes_something_from_the_annotations_has_no_prior_and_is_saved(annotations, tmp_path):
    fit = cp.fit("difficulty", annotations, method="nuts", chains=1, warmup=2, draws=4, progress=False)
    assert {"prior", "prior_predictive"}.isdisjoint(groups(fit.idata))
    fit.save(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit").parameters.keys() == fit.parameters.keys()
    with pytest.raises(cp.StoryError, match="takes difficulties from annotations"):
        fit.to_idata(prior=5)


def test_what_is_large_is_left_out_until_it_is_asked_for(fit, monkeypatch):
    monkeypatch.setattr("crowdppl.inference.storage.arviz_groups.AFFORDABLE", 10_000)
    small = fit.to_idata()
    assert {"prior_predictive", "posterior_predictive"}.isdisjoint(groups(small))
    assert "truth_probability" not in group(small, "posterior")
    assert "truth_probability" in group(fit.to_idata(truth_probability=True, posterior_predictive=False), "posterior")


def test_the_posterior_has_what_the_story_derives_unless_that_is_large(annotations, monkeypatch):
    fit = cp.fit("hierarchical_dawid_skene", annotations, method="svi", draws=20, max_iterations=50, progress=False)
    drawn = fit.derived_draws("confusion")["confusion"]
    np.testing.assert_array_equal(group(fit.idata, "posterior")["confusion"], drawn)
    assert "confusion" not in group(fit.to_idata(derived=False), "posterior")
    monkeypatch.setattr("crowdppl.inference.storage.arviz_groups.AFFORDABLE", drawn.size)
    assert "confusion" not in group(fit.to_idata(), "posterior")  # nor the matrix in common, which is more than that
    assert "confusion" in group(fit.to_idata(derived=True), "posterior")


def test_majority_share_is_the_share_of_the_most_frequent_kind_with_rows_that_count():
    annotations = cp.Annotations.from_counts(np.array([[3, 1], [0, 0], [2, 2]]))
    assert majority_share_of(annotations, np.asarray(annotations.label)).tolist() == [0.75, 0.5]
    drawn = majority_share_of(annotations, np.zeros((2, annotations.n_rows), int))
    np.testing.assert_array_equal(drawn, np.ones((2, 2)))


@pytest.mark.parametrize("story", ["dawid_skene", "independent_confusion_subtypes"])
def test_an_annotation_is_predicted_from_the_others_of_its_task(story, annotations):
    """Of 4,000 replicates at one draw as many are what was given as the log-likelihood says: ± 5 √(p q / n)."""
    few = some_tasks(annotations, np.arange(25) < 6)
    one = cp.fit(story, few, progress=False).fitted
    new = predicted(one.thinned(4000), "annotation", seed=2)[0]
    expected = np.exp(log_likelihood_by_annotation(one)[0, 0])
    found = (new == np.asarray(few.label)).mean(0)
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000) + 1e-4).all()


def test_a_task_is_predicted_as_if_it_had_not_been_annotated(annotations):
    """A unanimous pair of annotations has the probability Σ_k ρ_k π_1kl π_2kl at each draw: ± 5 √(p q / n)."""
    draws = random_confusions(annotations)
    one = fit_at("dawid_skene", annotations, draws).fitted
    new = predicted(one.thinned(4000), "task", seed=3)[0]
    first = np.flatnonzero(np.asarray(annotations.task) == 0)[:2]
    tables = draws["confusion"][0][np.asarray(annotations.worker)[first]]
    expected = np.einsum("k,kl,kl->", draws["prevalence"][0], *tables)
    found = (new[:, first[0]] == new[:, first[1]]).mean()
    assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000)
