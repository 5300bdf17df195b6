"""No output has a worker's name where pseudonyms or nothing were asked for, and nobody stands alone in a group."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.data.pseudonyms import pseudonym, without_names
from crowdppl.inference.storage.arviz_groups import group, groups, save_netcdf
from crowdppl.inference.storage.privacy import ANNOTATIONS, REST, STEP, worker_groups

NAMES = ["alice.b@mail.org", "Bob Smith", "zoë", "dot.com"]
KEY = b"0123456789abcdef"


def crowd():
    """Six tasks, four workers with seconds, features and gold labels."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "task": f"t{i}",
            "worker": name,
            "label": ["no", "yes"][int(rng.random() < 0.2 + 0.6 * (i % 2))],
            "seconds": 2.5,
            "when": 7,
        }
        for i in range(6)
        for name in NAMES
    ]
    return cp.Annotations.from_frame(pd.DataFrame(rows), seconds="seconds", when="when", classes=["no", "yes"])


@pytest.fixture(scope="module")
def fit():
    families = dict(zip(NAMES, ["one", "one", "two", "two"], strict=True))
    options = {"shared_error": True, "worker_families": families, "max_iterations": 5}
    found = cp.fit("one_coin", crowd(), progress=False, **options)
    entry = f"ability[worker {NAMES[0]}, is_right 1]"
    more = (
        cp.Finding("rhat", "draws", "warning", f"R̂ = 1.5 for {entry}", "raise draws", {"entry": entry, "rhat": 1.5}),
        cp.Finding("erred", "crowd", "warning", "Bob Smith erred", "", {"workers": ["Bob Smith"], "n": 1}),
    )
    return cp.Fit.of(found.fitted.replace(findings=(*found.findings, *more)))


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "workers.key"
    path.write_bytes(KEY + b"\n")
    return path


def outputs(fit, folder, workers, key):
    """Everything that a fit writes, as bytes by name."""
    folder.mkdir()
    fit.save(folder / "fit", workers=workers, key=key)
    fit.report(folder / "report.html", workers=workers, key=key, checks=False)
    for to, suffix in (("csv", "csv"), ("hf", "parquet"), ("argilla", "json"), ("label-studio", "json")):
        fit.write_labels(folder / f"{to}.{suffix}", to=to)
    fit.annotations.to_frame(workers=workers, key=key).to_csv(folder / "annotations.csv")
    if fit.rule is None:
        idata = fit.to_idata(workers=workers, key=key, log_likelihood="task")
        save_netcdf(idata, folder / "idata.nc")
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_no_output_has_a_name_under_hash_and_all_of_them_have_the_same_pseudonyms(fit, key_file, tmp_path):
    found = outputs(fit, tmp_path / "out", "hash", key_file)
    for name in NAMES:
        written = {file for file, content in found.items() if name.encode() in content}
        assert not written, f"{name} is in {written}"
        other = pseudonym(name, KEY).encode()
        having = {file for file, content in found.items() if other in content}
        assert {"manifest.json", "posterior.nc", "report.html", "annotations.csv", "idata.nc"} <= having


def test_no_output_has_a_name_or_a_worker_s_numbers_under_drop(fit, tmp_path):
    found = outputs(fit, tmp_path / "out", "drop", None)
    assert not [(file, name) for file, content in found.items() for name in NAMES if name.encode() in content]
    again = cp.load_fit(tmp_path / "out" / "fit")
    assert again.rule is not None
    pd.testing.assert_frame_equal(again.labels, fit.labels, check_exact=True)
    assert again.annotations.n_workers == 0
    assert again.annotations.seconds is again.annotations.when is None
    np.testing.assert_array_equal(again.annotations.votes(), fit.annotations.votes())
    with pytest.raises(AnnotationError, match="name no workers"):
        _ = again.workers
    idata = fit.to_idata(workers="drop", log_likelihood=None)
    for name in groups(idata):
        assert "worker" not in group(idata, name).dims
        assert not {"row_worker", "row_seconds", "row_when", "worker"} & set(group(idata, name).variables)


def test_a_pseudonymised_fit_says_the_same_of_the_same_workers(fit, key_file):
    hashed = fit.pseudonymised(key_file)
    assert list(hashed.annotations.workers) == [pseudonym(name, KEY) for name in fit.annotations.workers]
    pd.testing.assert_frame_equal(hashed.labels, fit.labels, check_exact=True)
    again = hashed.fitted.replace(stored_posterior=None).posterior  # families are found by the pseudonyms
    np.testing.assert_allclose(again, fit.posterior, atol=1e-5)
    assert not any(name in str(finding) for finding in hashed.findings for name in NAMES)
    assert hashed.warnings[-1] == f"{pseudonym('Bob Smith', KEY)} erred"
    assert hashed.findings[-1].values == {"workers": [pseudonym("Bob Smith", KEY)], "n": 1}


@pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning")
@pytest.mark.parametrize("first", ["judge-", 77_123_00])
def test_families_that_are_found_and_numbers_that_are_names_have_pseudonyms_everywhere(first, key_file, tmp_path):
    """Three families of three judges who err together, each on tasks of its own."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    names = [f"{first}{j}" if isinstance(first, str) else first + j for j in range(9)]
    columns = []
    for misled in rng.random((3, 400)) < 0.2:
        right = np.where(misled & (rng.random((3, 400)) < 0.85), False, rng.random((3, 400)) < 0.85)
        columns.extend(np.where(right, truth, 1 - truth))
    frame = pd.DataFrame(
        {"task": np.tile(np.arange(400), 9), "worker": np.repeat(names, 400), "label": np.concatenate(columns)}
    )
    fit = cp.fit("auto", cp.Annotations.from_frame(frame, ordered=False), progress=False)
    assert {"families", "copies"} & {finding.code for finding in fit.findings}
    assert any("worker_families" in one.model.hyperparameters for one in fit.members.values())
    found = outputs(fit, tmp_path / "out", "hash", key_file)
    written = {(name, file) for name in names for file, content in found.items() if str(name).encode() in content}
    assert not written


def test_pseudonyms_depend_on_the_key_and_on_the_type_of_the_name_and_on_nothing_else():
    assert pseudonym("7", KEY) == pseudonym("7", bytes(KEY))
    names = [pseudonym(name, key) for name in ("7", 7, "8") for key in (KEY, KEY + b"x")]
    assert len(set(names)) == len(names)
    # BLAKE2b of '"7"' with this key, made by b2sum's algorithm: what was written years ago is found again
    assert pseudonym("7", KEY) == "w9750d5c190253e4cc91d"


@pytest.mark.parametrize("bad", [None, b"", b"short", b"x" * 65, "no such file"])
def test_a_key_that_is_missing_or_none_is_refused_before_anything_is_written(fit, bad, tmp_path):
    with pytest.raises(AnnotationError, match="key"):
        fit.save(tmp_path / "fit", workers="hash", key=bad)
    with pytest.raises(AnnotationError, match="key"):
        fit.report(tmp_path / "report.html", workers="hash", key=bad)
    with pytest.raises(AnnotationError, match="key"):
        fit.annotations.to_frame(workers="hash", key=bad)
    assert not list(tmp_path.iterdir())


def test_a_key_file_that_is_not_there_is_told_with_the_command_that_makes_it(fit, tmp_path):
    with pytest.raises(AnnotationError, match=r"no such file; make it once, .* > .*workers\.key"):
        fit.annotations.to_frame(workers="hash", key=tmp_path / "workers.key")


def test_a_key_for_nothing_and_other_ways_are_refused(fit, tmp_path):
    with pytest.raises(AnnotationError, match="give workers='hash' too"):
        fit.save(tmp_path / "fit", key=KEY)
    with pytest.raises(UnknownNameError, match="did you mean 'hash'"):
        fit.annotations.to_frame(workers="hashed", key=KEY)


def test_a_baseline_and_an_average_take_pseudonyms_too(fit, tmp_path):
    votes = cp.fit("wawa", crowd())
    files = outputs(votes, tmp_path / "votes", "hash", KEY)
    assert not [(file, name) for file, content in files.items() for name in NAMES if name.encode() in content]
    average = cp.stack({"a": fit, "b": fit}, weights={"a": 0.5, "b": 0.5}).pseudonymised(KEY)
    assert set(average.annotations.workers) == {pseudonym(name, KEY) for name in NAMES}
    assert cp.without_workers(average).annotations.n_workers == 0


def test_the_report_marks_what_describes_individuals(tmp_path):
    fit = cp.fit("wawa", crowd())
    marked = fit.report(tmp_path / "a.html", checks=False).read_text()
    assert "describes individual workers" in marked
    dropped = fit.report(tmp_path / "b.html", workers="drop").read_text()
    assert "describes individual workers" not in dropped


def test_numbers_are_replaced_only_where_they_name_a_worker():
    names = {1: "wa", 10: "wb", "Ann": "wc"}
    text = "R̂ = 1.1 for confusion[worker 10, truth 1]; 10 draws; worker 1 and Ann, not Anna"
    listed = "in 10 of 12 tasks 1, 10 and Ann agree in 10%, 1.5 and 10 times"
    assert without_names(listed, names, {"1", "10"}) == "in 10 of 12 tasks wa, wb and wc agree in 10%, 1.5 and 10 times"
    assert (
        without_names(text, names) == "R̂ = 1.1 for confusion[worker wb, truth 1]; 10 draws; worker wa and wc, not Anna"
    )


WORKERS = st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 1)), min_size=1, max_size=60)


@given(workers=WORKERS, k=st.integers(2, 8))
def test_every_row_of_the_groups_stands_for_k_workers_of_whom_the_same_is_shown(workers, k):
    table = pd.DataFrame(workers, columns=["annotations", "accuracy"])
    if len(table) < k:
        with pytest.raises(AnnotationError, match="no group can be that large"):
            worker_groups(table, k)
        return
    found = worker_groups(table, k)
    assert found["workers"].sum() == len(table)
    assert (found["workers"] >= k).all()
    for name, row in found.iterrows():
        if name == REST:
            assert row.drop("workers").isna().all()
            continue
        low, high = row["annotations_from"], row["annotations_to"]
        peers = table[
            (table["annotations"] >= low)
            & (table["annotations"] <= high)
            & (
                np.floor(np.minimum(table["accuracy"], 1 - STEP / 2) / STEP + 1e-8)
                == round(row["accuracy_from"] / STEP)
            )
        ]
        assert len(peers) == row["workers"]
        assert low in ANNOTATIONS


def test_groups_are_refused_that_are_none(fit):
    with pytest.raises(AnnotationError, match="there are 4 workers"):
        fit.worker_groups(5)
    with pytest.raises(AnnotationError, match="min_group=1: a whole number from 2"):
        fit.worker_groups(1)
    assert fit.worker_groups(2)["workers"].sum() == 4
