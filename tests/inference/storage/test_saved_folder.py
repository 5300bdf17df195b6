"""A saved fit comes back as it was; what was altered, is foreign or hostile is refused by name, and never executed."""

import gzip
import json
import os
import pickle
import zipfile
from functools import partial

import h5py
import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pandas as pd
import pytest
from saved_fits import KINDS, copied, reseal, rewrite_part, same, small_annotations

import crowdppl as cp
from crowdppl import AnnotationError, StorageError
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.fitted.fitted import Fitted
from crowdppl.inference.storage import folder as storage
from crowdppl.inference.storage.checked_json import schema
from crowdppl.inference.storage.manifest import MANIFEST
from crowdppl.models import KNOWN_STORIES, STORIES

FILES = ("posterior.nc", "weights.safetensors")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@EVERY_KIND
def test_a_fit_comes_back_as_it_was(saved, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "to_groups", partial(storage.to_groups, log_likelihood=None))
    fit = saved[1][kind]
    fit.save(tmp_path / "fit")
    same(cp.load_fit(tmp_path / "fit"), fit)


@pytest.mark.parametrize("name", STORIES)
def test_every_story_comes_back_as_it_was(name, tmp_path, monkeypatch):
    """At parameters that it was simulated with: what a folder keeps does not depend on how they were found."""
    annotations, parameters = cp.simulate(name, n_tasks=8, n_workers=3, seed=0)
    model, data = Model(STORIES[name], {}), annotations.replace(gold=None, seconds=None, when=None)
    dims = parameter_dims(model, data)
    draws = {site: np.asarray(parameters[site], np.float32)[None, None] for site in dims}
    outcome = Outcome(draws, {}, np.array([-3.5]), {}, is_point=True)
    posterior = np.random.default_rng(0).dirichlet(np.ones(annotations.n_classes), 8).astype(np.float32)
    settings = {"seed": 0, "backend": "numpyro", "a": (1, 2.5), "b": float("inf")}
    findings = (cp.Finding("x", "draws", "warning", "a warning", "do this", {"n": [1, 0.5, None]}),)
    fit = cp.Fit.of(Fitted(model, annotations, outcome, "em", settings, dims, posterior, findings=findings))
    # What the log-likelihoods of every story are is tested elsewhere, and takes a compilation each.
    monkeypatch.setattr(storage, "to_groups", partial(storage.to_groups, log_likelihood=None))
    fit.save(tmp_path / "fit")
    same(cp.load_fit(tmp_path / "fit"), fit)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpyro", "pyro"])
@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
@pytest.mark.parametrize("name", KNOWN_STORIES)
def test_every_story_engine_and_backend_comes_back_as_it_was(name, method, backend, tmp_path):
    if backend == "pyro":
        torch = pytest.importorskip("torch")
    brief = {"em": {"max_iterations": 3}, "svi": {"max_iterations": 10, "draws": 8}, "nuts": {"warmup": 5, "draws": 5}}[
        method
    ]
    annotations, given = small_annotations(), {}
    if name not in STORIES and name != "ebcc":
        given["classifier"] = "logistic" if backend == "numpyro" else torch.nn.Linear(2, 2)
    try:
        fit = cp.fit(name, annotations, method=method, backend=backend, progress=False, **brief, **given)
    except (ValueError, cp.StoryError) as error:
        pytest.skip(f"refused: {error}")
    fit.save(tmp_path / "fit")
    again = {"classifier": given["classifier"]} if backend == "pyro" and given else {}
    same(cp.load_fit(tmp_path / "fit", **again), fit)


@pytest.mark.parametrize(
    "classifier",
    [
        "logistic",
        pytest.param(cp.Classifier("cnn", hidden=(4,), dropout=0.2), marks=pytest.mark.slow),
        cp.Classifier("mlp", hidden=(3, 2), prior=1.0),
        cp.Classifier(lambda x: x.reshape(len(x), -1)[:, :2]),
    ],
    ids=["logistic", "cnn", "with a prior", "a function"],
)
def test_every_classifier_comes_back_as_it_was(classifier, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "to_groups", partial(storage.to_groups, log_likelihood=None))
    annotations = small_annotations()
    image = np.asarray(annotations.features)[:, :, None] * np.ones((1, 1, 4), np.float32)
    annotations = annotations.replace(features=image.astype(np.float32))
    brief = {"epochs": 1} if getattr(classifier, "network", None) in ("mlp", "cnn") else {"max_iterations": 2}
    fit = cp.fit("one_coin", annotations, classifier=classifier, progress=False, **brief)
    fit.save(tmp_path / "fit")
    own = isinstance(classifier, cp.Classifier) and not isinstance(classifier.network, str)
    again = cp.load_fit(tmp_path / "fit", classifier=classifier if own else None)
    same(again, fit)
    np.testing.assert_allclose(again.predict_proba(image), fit.predict_proba(image), atol=1e-6)
    weights = (tmp_path / "fit" / "weights.safetensors").exists()
    assert weights == any(name.startswith("classifier.") for name in fit.outcome.fixed)


def test_ids_and_hyperparameters_of_all_kinds_come_back(tmp_path):
    families = pd.DataFrame({"worker": ["ann", "=bob()", "<c>"], "family": ["a", "é\n", "-1"]})
    options = {"shared_error": True, "worker_families": families}
    annotations = small_annotations()
    fit = cp.fit("one_coin", annotations, truth_prior=[0.25, 0.75], max_iterations=2, progress=False, **options)
    fit.save(tmp_path / "fit")
    same(cp.load_fit(tmp_path / "fit"), fit)


def test_an_id_that_no_file_can_hold_is_named_and_leaves_nothing(tmp_path):
    annotations = cp.Annotations.from_dict({"t": {"ann": "a"}, "\ud800": {"ann": "b"}})
    with pytest.raises(AnnotationError, match=r"ud800' is no text"):
        cp.fit("majority_vote", annotations).save(tmp_path / "fit")
    assert not list(tmp_path.iterdir())


def test_the_schema_is_valid_and_describes_every_folder_that_is_written(saved):
    jsonschema.Draft202012Validator.check_schema(schema())
    for folder in saved[0].values():
        manifest = json.loads((folder / MANIFEST).read_text())
        jsonschema.validate(manifest, schema())
        assert set(manifest["files"]) == {name for name in FILES if (folder / name).exists()}


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_a_file_that_is_missing_truncated_or_altered_is_named(saved, tmp_path, name):
    source = saved[0]["network"]
    content = (source / name).read_bytes()
    middle = len(content) // 2
    for number, changed in enumerate(
        (None, b"", content[:middle], content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    ):
        folder = copied(source, tmp_path / str(number))
        (folder / name).unlink()
        if changed is not None:
            (folder / name).write_bytes(changed)
        with pytest.raises(StorageError, match=name.replace(".", r"\.")):
            cp.load_fit(folder)


def test_files_of_two_fits_are_not_one(saved, tmp_path):
    folders = saved[0]
    for name in ("posterior.nc", MANIFEST):
        folder = copied(folders["em"], tmp_path / name)
        (folder / name).write_bytes((folders["nuts"] / name).read_bytes())
        with pytest.raises(StorageError, match=r"not the file that was|bytes, and"):
            cp.load_fit(folder)
        with pytest.raises(StorageError):  # sealed again, the story has other parameters than there are draws
            cp.load_fit(reseal(folder))


def test_a_newer_format_is_told_before_anything_else_is_looked_at(saved, tmp_path):
    folder = copied(saved[0]["em"], tmp_path / "a")
    about = json.loads((folder / MANIFEST).read_text()) | {"format": 2, "something": "new"}
    (folder / MANIFEST).write_text(json.dumps(about))
    with pytest.raises(StorageError, match=r"written by a newer crowdppl \(format 2, known is 1\)"):
        cp.load_fit(folder)


def test_foreign_folders_hold_no_fit(tmp_path):
    for number, content in enumerate(
        (b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"format": 1e400}', b"1" * 5000)
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / MANIFEST).write_bytes(content)
        (folder / "posterior.nc").write_bytes(b"CDF\x01")
        with pytest.raises(StorageError):
            cp.load_fit(folder)
    for path in (tmp_path / "nowhere", tmp_path / "0" / MANIFEST):
        with pytest.raises(StorageError, match="holds no fit"):
            cp.load_fit(path)


class _Runs:
    """What would write a file if a reader unpickled it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (os.fspath(self.path), "w"))


YAML = "!!python/object/apply:builtins.open ['{path}', 'w']\n"


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_pickles_and_yaml_tags_are_no_files_of_a_fit_and_nothing_runs(saved, tmp_path, name):
    ran = tmp_path / "ran"
    yaml = YAML.format(path=ran).encode()
    for number, content in enumerate((pickle.dumps(_Runs(ran)), yaml, b"format: 1\nstory: " + yaml)):
        folder = copied(saved[0]["network"], tmp_path / str(number))
        (folder / name).write_bytes(content)
        with pytest.raises(StorageError):
            cp.load_fit(folder if name == MANIFEST else reseal(folder))
    assert not ran.exists()


STORY_NAMES = ["os.system", "builtins.exec", "crowdppl.models.dawid_skene", "__import__('os')", "../dawid_skene", ""]


@pytest.mark.parametrize("story", STORY_NAMES)
def test_a_story_s_name_is_looked_up_and_never_imported(saved, tmp_path, story):
    folder = rewrite_part(copied(saved[0]["em"], tmp_path / "fit"), lambda about: about.update(story=story))
    with pytest.raises(StorageError, match="none of crowdppl's stories"):
        cp.load_fit(folder)


def test_the_manifest_names_no_other_files(saved, tmp_path):
    for name in ("../posterior.nc", "/etc/passwd", "posterior.nc/../posterior.nc", "other.nc"):
        folder = copied(saved[0]["em"], tmp_path / "fit")
        about = json.loads((folder / MANIFEST).read_text())
        about["files"][name] = {"bytes": 1, "sha256": "0" * 64}
        (folder / MANIFEST).write_text(json.dumps(about))
        with pytest.raises(StorageError, match=r"manifest\.json.*\['files'\]"):
            cp.load_fit(folder)


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_links_and_pipes_are_not_opened(saved, tmp_path, name):
    folder = copied(saved[0]["network"], tmp_path / "fit")
    (folder / name).replace(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(StorageError, match=f"{name} is a symbolic link"):
        cp.load_fit(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(StorageError, match=f"{name} is no regular file"):
        cp.load_fit(folder)


def _changed(folder, change):
    with h5py.File(folder / "posterior.nc", "r+") as file:
        change(file)
    return reseal(folder)


def _replaced(name, make):
    def change(file):
        del file[name]
        make(file, name)

    return change


HUGE = (2**40,)
TRICKS = {
    "numbers that the file does not have": _replaced(
        "fit/label_probability", lambda file, name: file.create_dataset(name, (2**20, 2**20), "f4", chunks=(64, 64))
    ),
    "a long history of nothing": _replaced(
        "fit/history", lambda file, name: file.create_dataset(name, HUGE, "f8", chunks=(1024,))
    ),
    "packed zeros": _replaced(
        "fit/history",
        lambda file, name: file.create_dataset(name, data=np.zeros(2**24), chunks=(2**20,), compression="gzip"),
    ),
    "packed and never written": _replaced(
        "fit/history", lambda file, name: file.create_dataset(name, HUGE, "f8", chunks=(2**20,), compression="gzip")
    ),
    "a link to another file": _replaced(
        "fit/history", lambda file, name: file.__setitem__(name, h5py.ExternalLink("/etc/passwd", "/"))
    ),
    "a link to itself": _replaced("fit/history", lambda file, name: file.__setitem__(name, h5py.SoftLink(f"/{name}"))),
    "values in another file": _replaced(
        "fit/history", lambda file, name: file.create_dataset(name, (8,), "u1", external=[("/etc/passwd", 0, 8)])
    ),
    "a group in the place of numbers": _replaced("fit/history", lambda file, name: file.create_group(name)),
    "text in the place of numbers": _replaced(
        "fit/label_probability", lambda file, name: file.create_dataset(name, data=[b"0.5"] * 16)
    ),
    "not a number": lambda file: file["posterior/confusion"].write_direct(
        np.full(file["posterior/confusion"].shape, np.nan, "f4")
    ),
    "probabilities that do not sum to 1": lambda file: file["fit/label_probability"].write_direct(
        np.full(file["fit/label_probability"].shape, 0.7, "f4")
    ),
    "tasks that there are not": lambda file: file["constant_data/row_task"].write_direct(
        np.full(file["constant_data/row_task"].shape, 99, "i4")
    ),
    "no draws": lambda file: file.__delitem__("posterior"),
    "a draw more of one parameter": _replaced(
        "posterior/prevalence", lambda file, name: file.create_dataset(name, data=np.full((1, 2, 2), 0.5, "f4"))
    ),
    "other sizes": _replaced(
        "posterior/confusion", lambda file, name: file.create_dataset(name, data=np.full((1, 1, 3, 2, 3), 0.5, "f4"))
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_netcdf_that_is_absurd_or_points_elsewhere_is_refused_before_it_is_read(saved, tmp_path, trick):
    folder = _changed(copied(saved[0]["em"], tmp_path / "fit"), TRICKS[trick])
    with pytest.raises(StorageError):
        cp.load_fit(folder)


def test_zip_bombs_are_no_files_of_a_fit(saved, tmp_path):
    zeros = bytes(2**24)
    for number, name in enumerate(FILES):
        folder = copied(saved[0]["network"], tmp_path / str(number))
        (folder / name).write_bytes(gzip.compress(zeros))
        with pytest.raises(StorageError):
            cp.load_fit(reseal(folder))
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("../../manifest.json", zeros)
        with pytest.raises(StorageError):
            cp.load_fit(reseal(folder))


def _header(folder, header):
    text = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    return reseal(folder)


def test_weights_of_absurd_or_other_sizes_are_refused(saved, tmp_path):
    folder = copied(saved[0]["network"], tmp_path / "fit")
    names = json.loads((folder / MANIFEST).read_text())["parts"][0]["weights"]
    for shape, offsets in (((2**40,), (0, 2**42)), ((2,), (0, 8)), ((2,), (-8, 8))):
        header = {name: {"dtype": "F32", "shape": shape, "data_offsets": offsets} for name in names}
        with pytest.raises(StorageError, match="safetensors"):
            cp.load_fit(_header(folder, header))
    (folder / "weights.safetensors").write_bytes((2**60).to_bytes(8, "little"))
    with pytest.raises(StorageError, match="safetensors"):
        cp.load_fit(reseal(folder))


SAYS = {
    "layers that the weights do not have": lambda about: about["hyperparameters"]["truth_prior"]["truth_prior"].update(
        hidden=[10**6, 10**6]
    ),
    "a layer of another size": lambda about: about["hyperparameters"]["truth_prior"]["truth_prior"].update(hidden=[4]),
    "a prior of no kind": lambda about: about["hyperparameters"]["truth_prior"]["truth_prior"].update(kind="os.system"),
    "a size beyond all that there is": lambda about: about["hyperparameters"].update(groups=10**12),
    "an array of absurd items": lambda about: about["hyperparameters"].update(
        a={"array": [""], "dtype": "<U999999999"}
    ),
    "an array of objects": lambda about: about["hyperparameters"].update(a={"array": [1], "dtype": "object"}),
    "a hyperparameter of another story": lambda about: about["hyperparameters"].update(clusters=2),
    "more ids than there are": lambda about: about["ids"].update(tasks={"range": 10**15}),
    "more classes than there are": lambda about: about["ids"].update(classes={"range": 2**62}),
    "more workers than there are": lambda about: about["ids"].update(workers={"range": 2**40}),
    "a few more workers than there are": lambda about: about["ids"].update(workers={"range": 4}),
    "an id twice": lambda about: about["ids"].update(classes=["no", "no"]),
    "an id of no kind": lambda about: about["ids"].update(classes=["no", {"object": "yes"}]),
    "an id that is two": lambda about: about["ids"].update(classes=["no", {"uuid": "1", "date": "2"}]),
    "a time zone that is a path": lambda about: about["ids"].update(
        classes=["no", {"datetime": ["2020-01-01", "../../etc/passwd", 0]}]
    ),
    "a method of its own": lambda about: about.update(method="os.system"),
    "a key more": lambda about: about.update(__class__="os.system"),
}


@pytest.mark.parametrize("said", SAYS)
def test_what_the_manifest_says_is_held_against_its_schema_and_the_arrays(saved, tmp_path, said):
    folder = rewrite_part(copied(saved[0]["network"], tmp_path / "fit"), SAYS[said])
    with pytest.raises(StorageError):
        cp.load_fit(folder)


def test_links_among_the_numbers_of_a_loaded_fit_are_not_kept(saved):
    """A loaded fit is in memory: its folder may be moved or deleted, and nothing keeps a file open."""
    fit = cp.load_fit(saved[0]["nuts"])
    assert all(isinstance(value, np.ndarray) and value.base is None for value in fit.outcome.draws.values())
    assert jax.tree.all(jax.tree.map(lambda v: bool(jnp.isfinite(v).all()), dict(fit.outcome.draws)))
