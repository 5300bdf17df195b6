"""Numbers and votes are of the annotations as they were given, and estimates of those that count in the fit."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.data.errors import StorageError
from crowdppl.inference.findings.facts import beside_votes
from crowdppl.inference.findings.review import reviewed
from crowdppl.inference.storage.privacy import labels_alone

COPIES = ["ann", "bob", "cleo"]
N = 120


def table():
    """Rows of three workers who give the same, the first of them twice on 30 tasks, and of four others, with times."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, N)

    def gives(accuracy):
        return np.where(rng.random(N) < accuracy, truth, 1 - truth)

    copied = gives(0.75)
    given = dict.fromkeys(COPIES, copied) | {name: gives(0.8) for name in ("dan", "eve", "flo", "gus")}
    frame = pd.DataFrame(given).rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
    frame["seconds"] = frame["worker"].map({name: i + 1.0 for i, name in enumerate(given)})
    return frame, truth


@pytest.fixture(scope="module")
def annotations():
    frame, truth = table()
    return cp.Annotations.from_frame(frame, seconds="seconds").with_gold(dict(enumerate(truth[:40].tolist())))


@pytest.fixture(scope="module")
def fit(annotations):
    with pytest.warns(cp.CrowdWarning, match="counts as one worker"):
        return cp.fit("one_coin", annotations, copies="auto", progress=False)


@pytest.fixture(params=["fitted", "loaded", "average", "pseudonyms"])
def shown(request, fit, annotations, tmp_path):
    """The fit, the same from the disk, an average of two, and the fit with pseudonyms."""
    if request.param == "loaded":
        fit.save(tmp_path / "fit")
        return cp.load_fit(tmp_path / "fit")
    if request.param == "average":
        return cp.fit("auto", annotations, stories=["one_coin", "dawid_skene"], progress=False)
    return fit.pseudonymised(b"0123456789abcdef") if request.param == "pseudonyms" else fit


def test_numbers_and_votes_are_of_all_annotations(shown, annotations):
    assert shown.annotations.n_annotations == 5 * N
    assert shown.n_annotations == 7 * N
    assert (shown.workers["annotations"] == N).all()
    assert (shown.workers["gold_annotations"] == 40).all()
    assert shown.workers["seconds"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert (shown.tasks["annotations"] == 7).all()
    assert (cp.next_annotations(shown, 5)["annotations"] == 7).all()
    assert (reviewed(shown)["annotations"] == N).all()
    assert "840 annotations" in shown.summary().facts["data"]
    np.testing.assert_array_equal(shown.given.votes(), annotations.votes())
    votes, labels = annotations.votes().argmax(1), np.asarray(shown.posterior).argmax(1)
    assert beside_votes(shown).differs.sum() == (votes != labels).sum()  # seven annotations of two classes tie nowhere
    assert labels_alone(shown).annotations.n_annotations == 7 * N


def test_copies_have_one_confusion_matrix_that_of_the_annotations_that_count(shown):
    matrices = shown.confusion_matrices
    np.testing.assert_array_equal(matrices[1], matrices[0])
    np.testing.assert_array_equal(matrices[2], matrices[0])
    assert np.diagonal(matrices[0]) @ shown.class_shares == pytest.approx(shown.workers["accuracy"].iloc[0], abs=1e-6)


def test_the_votes_of_a_task_are_all_in_the_page_and_the_plot_says_who_counts_as_one(fit, tmp_path):
    page = fit.report(tmp_path / "report.html", checks=False).read_text()
    assert ">840<" in page
    assert "×7" in page or "×6" in page
    titles = [ax.get_title() for ax in cp.plot_confusions(fit)]
    assert all(f"{N} annotations" in title for title in titles)
    assert [title.splitlines()[1] for title in titles[:3]] == [
        "as one with bob, cleo",
        "as one with ann, cleo",
        "as one with ann, bob",
    ]
    assert not any("one with" in title for title in titles[3:])
    hatched = [len(ax.patches) for ax in cp.plot_confusions(fit)]
    assert hatched == [0] * 7


def test_repeats_that_count_once_are_shown_as_they_were_given():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    said = {name: np.where(rng.random(200) < 0.75, truth, 1 - truth) for name in ("ann", "bob", "cleo", "dan")}
    frame = pd.DataFrame(said).rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
    again = pd.concat([frame, frame[frame["worker"] == "ann"], frame[frame["worker"] == "ann"]])
    data = cp.Annotations.from_frame(again, repeats="keep")
    fit = cp.fit("one_coin", data, copies="one", progress=False)
    assert (fit.annotations.n_annotations, fit.n_annotations) == (800, 1200)
    assert fit.workers.loc["ann", "annotations"] == 600


def test_more_annotations_are_put_to_those_that_were_given(fit):
    more = pd.DataFrame({"task": ["new"] * 4, "worker": [*COPIES, "dan"], "label": [0, 0, 1, 1]})
    updated = fit.update(more, progress=False)
    assert (updated.n_annotations, updated.annotations.n_annotations) == (7 * N + 4, 5 * N + 2)
    assert updated.workers["annotations"].tolist() == [N + 1] * 4 + [N] * 3


def test_a_file_whose_rows_as_given_are_of_other_tasks_is_refused(fit, tmp_path, monkeypatch):
    from crowdppl.inference.storage import stored_annotations

    kept = stored_annotations.given_rows_of
    monkeypatch.setattr(
        "crowdppl.inference.storage.arviz_groups.given_rows_of",
        lambda given: {
            name: (dims, values + 1 if name == "given_task" else values) for name, (dims, values) in kept(given).items()
        },
    )
    fit.save(tmp_path / "fit")
    with pytest.raises(StorageError, match="given_task"):
        cp.load_fit(tmp_path / "fit")


def test_without_workers_no_export_says_whose_row_as_given_is(fit):
    groups = fit.to_idata(workers="drop")
    assert "given_worker" not in groups["fit"]
    assert "given_label" in groups["fit"]
