import warnings

import arviz as az
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from netcdf import ENGINE, load_netcdf

import crowdppl as cp
from crowdppl.inference.densities.prior import log_prior_by_site
from crowdppl.inference.fitted.replicated_annotations import log_prior
from crowdppl.inference.storage import arviz_groups as module
from crowdppl.inference.storage.arviz_groups import group, groups, make_idata, save_netcdf, to_groups

matplotlib.use("Agg")

TREE = int(az.__version__.partition(".")[0]) >= 1
CHAINS, DRAWS = 4, 1000


def sample_coordinates(**coords):
    return {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), **coords}


def crowd(workers=("Ana", "Özgür", "李"), classes=("no", "yes"), tasks=(30, 10, 20)):
    """A made-up posterior of two coins for each worker, with everything that a fit's file holds."""
    rng = np.random.default_rng(0)
    sizes = (CHAINS, DRAWS, len(workers), len(classes))
    posterior = xr.Dataset(
        {
            "confusion": (
                ("chain", "draw", "worker", "truth", "annotation"),
                rng.dirichlet(np.ones(len(classes)), sizes).astype("float32"),
            ),
            "prevalence": (("chain", "draw", "truth"), rng.dirichlet(np.ones(len(classes)), sizes[:2])),
        },
        coords=sample_coordinates(worker=ids_array(workers), truth=ids_array(classes), annotation=ids_array(classes)),
    )
    return make_idata(
        {
            "posterior": posterior,
            "sample_stats": xr.Dataset(
                {"diverging": (("chain", "draw"), rng.random(sizes[:2]) < 0.1)}, coords=sample_coordinates()
            ),
            "log_likelihood": xr.Dataset(
                {"annotation": (("chain", "draw", "task"), rng.normal(-1, 0.1, (*sizes[:2], len(tasks))))},
                coords=sample_coordinates(task=ids_array(tasks)),
            ),
            "observed_data": xr.Dataset({"annotation": ("row", [0, 1, 1])}, coords={"row": range(3)}),
            "constant_data": xr.Dataset({"row_worker": ("row", [0, 1, 2])}, coords={"row": range(3)}),
        }
    )


def ids_array(ids):
    if isinstance(ids, np.ndarray | pd.Index):
        return ids
    if len({type(i) for i in ids}) == 1 and isinstance(ids[0], str | int):
        return np.array(ids)
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


def normal_mean(y, offset=0.0, seed=0):
    """The exact posterior of the mean of y_i ~ Normal(mean, 1) under a flat prior, moved by an offset."""
    mean = np.random.default_rng(seed).normal(y.mean() + offset, len(y) ** -0.5, (CHAINS, DRAWS))
    log_likelihood = -0.5 * np.log(2 * np.pi) - 0.5 * (y - mean[..., None]) ** 2
    return make_idata(
        {
            "posterior": xr.Dataset({"mean": (("chain", "draw"), mean)}, coords=sample_coordinates()),
            "log_likelihood": xr.Dataset(
                {"annotation": (("chain", "draw", "task"), log_likelihood)},
                coords=sample_coordinates(task=np.arange(len(y))),
            ),
        }
    )


def elpd(loo):
    return loo.elpd if TREE else loo.elpd_loo


def test_the_container_is_the_one_of_the_installed_arviz():
    if TREE:
        assert isinstance(crowd(), xr.DataTree)
    else:
        assert isinstance(crowd(), az.InferenceData)


def test_groups_are_datasets_with_named_coordinates():
    idata = crowd()
    assert set(groups(idata)) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "observed_data",
        "constant_data",
    }
    posterior = group(idata, "posterior")
    assert type(posterior) is xr.Dataset
    assert posterior["confusion"].dims == ("chain", "draw", "worker", "truth", "annotation")
    assert list(posterior["worker"].values) == ["Ana", "Özgür", "李"]


def test_a_group_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(KeyError, match=r"no group 'prior'; there are .*posterior"):
        group(crowd(), "prior")


def test_netcdf_gives_back_every_group_variable_and_coordinate(tmp_path):
    idata = crowd()
    back = load_netcdf(save_netcdf(idata, tmp_path / "posterior.nc"))
    assert type(back) is type(idata)
    assert groups(back) == groups(idata)
    for name in groups(idata):
        before, after = group(idata, name), group(back, name)
        xr.testing.assert_identical(before, after)
        for variable in before.variables:
            assert after[variable].dtype == before[variable].dtype, f"{name}/{variable}"


@pytest.mark.parametrize("ids", [(3, 1, 2), ("3", "1", "ü")], ids=["numbers", "text"])
def test_netcdf_keeps_numbers_and_text_as_coordinates(tmp_path, ids):
    back = load_netcdf(save_netcdf(crowd(workers=ids, tasks=ids), tmp_path / "posterior.nc"))
    for name, dim in [("posterior", "worker"), ("log_likelihood", "task")]:
        assert tuple(group(back, name)[dim].values.tolist()) == ids


ROWS = {"task": [1.5, 2.5, 3.5] * 3, "worker": ["Ana"] * 3 + ["Özgür"] * 3 + ["李"] * 3}
LABELS = {
    "text and abstentions": ["yes", "no", "?", "yes", "no", "no", "no", "no", "yes"],
    "truth values": [True, False, True, True, False, False, False, False, True],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("method", ["em", "svi"])
def test_the_file_has_what_xarray_would_write(tmp_path, labels, method):
    frame = pd.DataFrame(ROWS | {"label": labels})
    annotations = cp.Annotations.from_frame(frame, abstain=["?"] if "?" in labels else None)
    options = {"max_iterations": 20, "draws": 5} if method == "svi" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CrowdWarning)  # so few steps
        fit = cp.fit("dawid_skene", annotations, method=method, progress=False, **options)
    written_groups = to_groups(fit.fitted)
    module.write_groups(written_groups, tmp_path / "ours.nc")
    for i, (name, arrays) in enumerate(written_groups.items()):
        arrays.dataset().to_netcdf(tmp_path / "theirs.nc", mode="a" if i else "w", group=name, engine=ENGINE)
    for name in written_groups:
        ours, theirs = (
            xr.open_dataset(tmp_path / file, group=name, engine=ENGINE) for file in ("ours.nc", "theirs.nc")
        )
        with ours, theirs:
            xr.testing.assert_identical(ours, theirs)
            for variable in theirs.variables:
                written, expected = ours[variable], theirs[variable]
                assert written.dtype == expected.dtype
                kept = {key: str(value) for key, value in expected.encoding.items() if key != "source"}
                assert {key: str(value) for key, value in written.encoding.items() if key != "source"} == kept


def test_saving_over_a_file_replaces_it_whole(tmp_path):
    path = save_netcdf(crowd(), tmp_path / "posterior.nc")
    first = load_netcdf(path)
    save_netcdf(normal_mean(np.arange(3.0)), path)
    assert set(groups(load_netcdf(path))) == {"posterior", "log_likelihood"}
    assert group(first, "posterior")["confusion"].shape == (CHAINS, DRAWS, 3, 2, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.nc"]


def test_a_failed_save_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    path = save_netcdf(crowd(), tmp_path / "posterior.nc")
    before = path.read_bytes()
    monkeypatch.setattr(module, "group", lambda idata, name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_netcdf(normal_mean(np.arange(3.0)), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.nc"]


def test_arviz_opens_the_file_itself(tmp_path):
    idata = crowd()
    save_netcdf(idata, tmp_path / "posterior.nc")
    opened = az.from_netcdf(str(tmp_path / "posterior.nc"))
    assert set(groups(opened)) == set(groups(idata))
    xr.testing.assert_equal(group(opened, "posterior").load(), group(idata, "posterior"))
    opened.close()


def test_summary_names_every_entry_and_gives_its_mean_and_sd():
    idata = crowd()
    table = az.summary(idata, var_names=["confusion"], round_to="none")
    draws = group(idata, "posterior")["confusion"]
    assert list(table.index[:2]) == ["confusion[Ana, no, no]", "confusion[Ana, no, yes]"]
    entry = draws.sel(worker="李", truth="yes", annotation="no").values.astype(float)
    row = table.loc["confusion[李, yes, no]"]
    np.testing.assert_allclose([row["mean"], row["sd"]], [entry.mean(), entry.std(ddof=1)], rtol=1e-4)
    assert row["r_hat"] < 1.01  # independent draws


def test_forest_plot_has_a_row_for_each_worker():
    az.plot_forest(crowd(), var_names=["confusion"], coords={"truth": ["no"], "annotation": ["no"]}, combined=True)
    texts = " ".join(text.get_text() for text in plt.gcf().findobj(matplotlib.text.Text))
    plt.close("all")
    assert all(worker in texts for worker in ("Ana", "Özgür", "李"))


def test_loo_is_the_exact_leave_one_out_density_of_a_normal_mean():
    # Without y_i the mean is Normal(mean of the others, 1/(n − 1)), so y_i is Normal(that, 1 + 1/(n − 1)).
    y = np.array([-1.0, 0.2, 0.5, 1.0, 2.3, -0.7, 0.1, 0.9])
    others = (y.sum() - y) / (len(y) - 1)
    variance = 1 + 1 / (len(y) - 1)
    exact = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - others) ** 2 / variance
    loo = az.loo(normal_mean(y), pointwise=True)
    # Over 200 seeds of 4,000 draws the sum is off by 0.026 (standard deviation), an entry by 0.045 at most.
    assert elpd(loo) == pytest.approx(exact.sum(), abs=4 * 0.026)
    pointwise = loo.elpd_i if TREE else loo.loo_i
    np.testing.assert_allclose(pointwise.values, exact, atol=0.06)
    assert pointwise.dims == ("task",)


def test_compare_puts_the_right_posterior_before_the_moved_one(tmp_path):
    y = np.array([-1.0, 0.2, 0.5, 1.0, 2.3, -0.7, 0.1, 0.9])
    right, moved = normal_mean(y), normal_mean(y, offset=0.8)
    saved = load_netcdf(save_netcdf(right, tmp_path / "right.nc"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eight tasks are few for the standard error of a difference
        table = az.compare({"moved": moved, "right": saved})
    assert list(table.index) == ["right", "moved"]
    assert table["rank"].tolist() == [0, 1]
    difference = elpd(az.loo(right)) - elpd(az.loo(moved))
    assert abs(table.loc["moved", "elpd_diff"]) == pytest.approx(difference, rel=0.05)  # ArviZ 1 rounds and signs it


@pytest.mark.parametrize("story", ["glad", "hierarchical_dawid_skene"])  # sites of tasks, and of workers under others
def test_log_priors_of_padded_annotations_are_those_of_the_real_tasks_and_workers(story):
    annotations, _ = cp.simulate(story, n_tasks=37, n_workers=7, n_classes=3, annotations_per_task=4, seed=1)
    fitted = cp.fit(story, annotations.without_gold(), max_iterations=3, progress=False).only
    assert fitted.at_size.annotations.n_tasks > 37
    first = {name: value[0, 0] for name, value in fitted.draws.items()}
    real = log_prior_by_site(fitted.model, first | fitted.fixed, fitted.annotations)
    found = log_prior(fitted).variables
    assert found.keys() == real.keys()
    for name, value in real.items():
        np.testing.assert_allclose(found[name][1], np.reshape(value, (1, 1)), rtol=1e-5)
