"""Averages of fits on disk: everything comes back, and a folder that was changed is refused."""

import json
import shutil

import arviz as az
import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl
from conftest import random_annotations
from saved_fits import rewrite, small_annotations

import crowdppl as cp
from crowdppl.data.errors import StorageError
from crowdppl.inference.storage.arviz_groups import group
from crowdppl.inference.storage.manifest import MANIFEST

TWO = {"plain": {"story": "dawid_skene"}, "coin": {"story": "one_coin"}}


@pytest.fixture(scope="module")
def stack():
    data = random_annotations(np.random.default_rng(3), n_tasks=20, n_workers=4, n_classes=2, n_rows=60)
    return cp.fit("auto", data, stories=TWO, weights="stacking", folds=2, max_iterations=50, progress=False)


@pytest.fixture(scope="module")
def folder(stack, tmp_path_factory):
    path = tmp_path_factory.mktemp("stacks") / "stack"
    stack.save(path)
    return path


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_an_average_comes_back_with_all_that_it_has(stack, folder):
    again = cp.load_fit(folder)
    assert again.is_average
    np.testing.assert_array_equal(again.posterior, stack.posterior)
    pd.testing.assert_series_equal(again.weights, stack.weights)
    pd.testing.assert_frame_equal(again.comparison, stack.comparison)
    assert again.comparison.attrs["how"] == stack.comparison.attrs["how"]
    pd.testing.assert_frame_equal(again.workers, stack.workers)
    pd.testing.assert_frame_equal(again.tasks, stack.tasks)
    assert again.left_out == stack.left_out
    assert (again.votes, again.misled) == (stack.votes, stack.misled)
    assert str(again.summary()) == str(stack.summary())
    assert again.warnings == stack.warnings


def test_the_default_set_of_named_and_nameless_workers_comes_back(tmp_path):
    named = small_annotations()
    for i, annotations in enumerate((named, named.without_workers())):
        fit = cp.fit("auto", annotations, progress=False)
        fit.save(tmp_path / str(i))
        np.testing.assert_array_equal(cp.load_fit(tmp_path / str(i)).posterior, fit.posterior)


def own_coin(annotations, *, truth_prior=None):
    """A story that the package does not have."""
    return cp.models.find_story("one_coin")(annotations, truth_prior=truth_prior)


def test_a_story_of_ones_own_is_given_by_the_name_of_its_fit(tmp_path):
    fit = cp.fit("auto", small_annotations(), stories={"own": {"story": own_coin}, "coin": {"story": "one_coin"}})
    fit.save(tmp_path / "own")
    with pytest.raises(StorageError, match="own_coin"):
        cp.load_fit(tmp_path / "own")
    with pytest.raises(StorageError, match="names among 'own', 'coin'"):
        cp.load_fit(tmp_path / "own", story=own_coin)
    again = cp.load_fit(tmp_path / "own", story={"own": own_coin})
    np.testing.assert_array_equal(again.posterior, fit.posterior)


def test_without_workers_and_with_pseudonyms_nobody_is_named(stack, tmp_path):
    fit = cp.fit("auto", small_annotations(), progress=False)
    fit.save(tmp_path / "dropped", workers="drop")
    assert cp.load_fit(tmp_path / "dropped").rule is not None
    fit.save(tmp_path / "hashed", workers="hash", key=b"0123456789abcdef")
    text = b"".join(file.read_bytes() for file in (tmp_path / "hashed").rglob("*") if file.is_file())
    assert b"=bob()" not in text
    assert "=bob()" in fit.workers.index
    dropped = fit.to_idata(workers="drop")
    assert not any("worker" in group(dropped, name).dims for name in ("posterior", "constant_data"))
    assert "bob" not in str(group(dropped, "posterior").attrs)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: (f / MANIFEST).unlink(), "holds no fit"),
        (lambda f: (f / "posterior_1.nc").unlink(), r"posterior_1\.nc cannot be read"),
        (lambda f: (f / "posterior.nc").write_bytes(b""), "not the whole file"),
        (lambda f: (f / "posterior.nc").write_bytes((f / "posterior_1.nc").read_bytes()), r"SHA-256|bytes"),
    ],
    ids=["no manifest", "a fit less", "a fit's file emptied", "a fit exchanged for another"],
)
def test_a_folder_that_was_changed_is_refused(copy, change, says):
    change(copy)
    with pytest.raises(StorageError, match=says):
        cp.load_fit(copy)


def test_an_altered_weight_is_told_by_the_manifest_s_own_checksum(copy):
    about = json.loads((copy / MANIFEST).read_text()) | {"weights": [1.0, 0.0]}
    (copy / MANIFEST).write_text(json.dumps(about))
    with pytest.raises(StorageError, match=r"manifest\.json is not the file"):
        cp.load_fit(copy)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights": [0.5, 0.6]}, "sum to 1"),
        ({"weights": [1.0]}, "as many names and weights"),
        ({"votes": 2}, "votes"),
        ({"more": 1}, "more"),
    ],
)
def test_what_a_manifest_may_not_say_is_refused_though_it_is_sealed(copy, change, says):
    with pytest.raises(StorageError, match=says):
        cp.load_fit(rewrite(copy, lambda about: about.update(change)))


def test_two_fits_of_one_name_are_refused_though_they_are_sealed(copy):
    with pytest.raises(StorageError, match="as many names and weights"):
        cp.load_fit(rewrite(copy, lambda about: about["parts"][1].update(name="plain")))


def test_a_manifest_of_fewer_fits_than_there_are_files_is_refused(copy):
    about = json.loads((copy / MANIFEST).read_text())
    about["files"].pop("posterior_1.nc")
    (copy / MANIFEST).write_text(json.dumps(about))
    with pytest.raises(StorageError, match=r"the files of its parts|SHA-256"):
        cp.load_fit(copy)


def test_a_rule_is_none_of_several_fits_though_they_are_sealed(copy, tmp_path):
    cp.fit("majority_vote", small_annotations()).save(tmp_path / "rule")
    part = json.loads((tmp_path / "rule" / MANIFEST).read_text())["parts"][0]
    shutil.copy(tmp_path / "rule" / "posterior.nc", copy / "posterior_1.nc")
    with pytest.raises(StorageError, match="a rule among several parts"):
        cp.load_fit(rewrite(copy, lambda about: about["parts"].__setitem__(1, part)))


def test_fits_of_other_annotations_are_refused_though_they_are_sealed(copy, tmp_path):
    cp.fit("one_coin", small_annotations(), progress=False).save(tmp_path / "other")
    part = json.loads((tmp_path / "other" / MANIFEST).read_text())["parts"][0]
    shutil.copy(tmp_path / "other" / "posterior.nc", copy / "posterior_1.nc")
    with pytest.raises(StorageError, match="different annotations"):
        cp.load_fit(rewrite(copy, lambda about: about["parts"].__setitem__(1, part | {"name": "coin"})))


def test_no_link_is_followed(copy, tmp_path):
    (copy / "posterior_1.nc").rename(tmp_path / "elsewhere")
    (copy / "posterior_1.nc").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="symbolic link"):
        cp.load_fit(copy)


def test_the_command_line_writes_a_folder_that_comes_back(tmp_path):
    data = small_annotations()
    data.to_frame().to_csv(tmp_path / "crowd.csv", index=False)
    done = crowdppl("fit", tmp_path / "crowd.csv", "--story", "auto", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.output
    found = cp.load_fit(tmp_path / "results")
    labels = pd.read_csv(tmp_path / "results" / "labels.csv", index_col=0)
    assert found.labels["label"].astype(str).to_dict() == labels["label"].astype(str).to_dict()
    assert {"posterior.nc", "manifest.json", "labels.csv", "workers.csv"} <= {
        file.name for file in (tmp_path / "results").iterdir()
    }


def test_tasks_of_an_average_are_those_of_its_fits_by_weight(stack):
    each = {name: fit.tasks for name, fit in stack.fits.items()}
    for column in ("expected_entropy", "ambiguity", "surprise", "surprise_p"):
        mean = sum(stack.weights[name] * frame[column] for name, frame in each.items())
        np.testing.assert_allclose(stack.tasks[column], mean)
    pd.testing.assert_series_equal(stack.tasks["label"], stack.labels["label"])
    alone = cp.stack({"a": stack.fits["coin"]}, weights={"a": 1.0})
    pd.testing.assert_frame_equal(alone.tasks, stack.fits["coin"].tasks, check_dtype=False)


def test_idata_of_an_average_is_of_the_mixture_and_arviz_reads_it(stack):
    posterior = group(stack.idata, "posterior")
    parts = [(stack.weights[name], group(fit.idata, "posterior")["prevalence"]) for name, fit in stack.fits.items()]
    mean = sum(weight * value.mean(("chain", "draw")) for weight, value in parts)
    n_draws = posterior.sizes["chain"] * posterior.sizes["draw"]  # of each story its share of them
    variance = sum(weight * value.var(("chain", "draw")) / n_draws for weight, value in parts)
    error = np.abs(posterior["prevalence"].mean(("chain", "draw")) - mean)
    assert (error < 3 * np.sqrt(variance)).all()
    found, expected = posterior["worker_confusion"][0], stack.with_uncertainty.confusion_draws[0]
    np.testing.assert_allclose(found.mean("draw"), expected.mean(0), atol=0.02)
    np.testing.assert_allclose(found.std("draw"), expected.std(0), atol=0.02)
    np.testing.assert_array_equal(group(stack.idata, "fit")["label_probability"], stack.posterior)
    sampled = {
        name: cp.fit(name, stack.annotations, method="nuts", warmup=20, draws=50, chains=2, progress=False)
        for name in ("dawid_skene", "one_coin")
    }
    mixture = cp.stack(sampled, weights={"dawid_skene": 0.25, "one_coin": 0.75}).idata
    posterior = group(mixture, "posterior")
    assert posterior.sizes["draw"] == 1000
    assert set(posterior) == {"prevalence", "worker_confusion", "truth_probability"}
    assert "prevalence[0]" in az.summary(mixture, var_names=["prevalence"]).index


def test_idata_of_an_average_on_scores_has_confusions_of_verdicts_beside_levels():
    rng = np.random.default_rng(0)
    given = np.clip(2 * rng.integers(0, 2, (12, 1)) + rng.integers(0, 3, (12, 3)), 0, 4)
    task, worker = (index.ravel() for index in np.indices(given.shape))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": given.ravel()})
    scores = cp.Annotations.from_frame(frame, ordered=range(5), truth_classes=["no", "yes"])
    fits = {name: cp.fit(name, scores, progress=False) for name in ("graded_response", "score_factor")}
    stack = cp.stack(fits, weights=dict.fromkeys(fits, 0.5))
    tables = group(stack.idata, "posterior")["worker_confusion"]
    assert tables.sizes == {"chain": 1, "draw": tables.sizes["draw"], "worker": 3, "truth": 2, "verdict": 2}
    np.testing.assert_array_equal(tables["verdict"], ["no", "yes"])
    np.testing.assert_allclose(tables[0].mean("draw"), stack.with_uncertainty.confusion_draws[0].mean(0), atol=0.02)
