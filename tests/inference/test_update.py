"""A fit that goes on with new annotations ends where a fit of everything does."""

import warnings

import jax
import numpy as np
import pandas as pd
import pytest
from story_options import every_story

import crowdppl as cp
from crowdppl.inference.engines import sparse_em

CLOSE = {"tolerance": 1e-12, "max_iterations": 5000}


def grown(story, seed=0):
    """A crowd as it was, with its last tasks, its last worker and some annotations of old tasks still to come."""
    n_classes = 2 if story in ("two_coin", "item_response") else 3
    whole, _ = cp.simulate("one_coin", n_tasks=150, n_workers=8, n_classes=n_classes, annotations_per_task=6, seed=seed)
    frame = whole.without_gold().to_frame()
    rng = np.random.default_rng(seed)
    late = (frame["task"] >= 140) | (frame["worker"] == 7) | (rng.random(len(frame)) < 0.05)
    early = cp.Annotations.from_frame(frame[~late], ordered=list(range(n_classes)))
    return early, frame[late], early.joined(frame[late])


def few_tasks_first(monkeypatch):
    """Have small data updated as large ones are: by the tasks that move, before everything."""
    monkeypatch.setattr(sparse_em, "LITTLE", 0)
    monkeypatch.setattr(sparse_em, "MOST", 1.0)


# With a difficulty by task the log-posterior of item_response has several modes, and each start ends at one of them.
@pytest.mark.parametrize(
    ("story", "options"),
    [
        ("dawid_skene", {}),
        pytest.param("mace", {}, marks=pytest.mark.slow),
        pytest.param("item_response", {"difficulty": False}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("is_large", [False, True])
def test_em_ends_where_a_fit_of_everything_ends(story, options, is_large, monkeypatch):
    if is_large:
        few_tasks_first(monkeypatch)
    early, late, whole = grown(story)
    options = options | CLOSE
    with jax.enable_x64(True):  # in float32 EM stops where its steps are lost in rounding, a little way short of it
        updated = cp.fit(story, early, progress=False, **options).update(late, progress=False)
        at_once = cp.fit(story, whole, progress=False, **options)
    assert updated.history.iloc[-1] == pytest.approx(at_once.history.iloc[-1], rel=1e-8)
    np.testing.assert_allclose(updated.probabilities, at_once.probabilities, atol=1e-3)
    assert updated.labels.index.tolist() == list(whole.tasks)
    assert updated.workers.index.tolist() == list(whole.workers)


@pytest.mark.parametrize("story", every_story())
@pytest.mark.parametrize("is_large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_story_takes_new_tasks_and_workers(story, is_large, monkeypatch):
    if is_large:
        few_tasks_first(monkeypatch)
    early, late, whole = grown(story, seed=1)
    fit = cp.fit(story, early, progress=False, max_iterations=10)
    updated = fit.update(late, progress=False)
    assert len(updated.labels) == whole.n_tasks
    assert len(fit.labels) == early.n_tasks
    assert updated.history.iloc[-1] >= updated.history.iloc[0]  # steps on few tasks may have got there before the first


def test_it_takes_fewer_plain_steps_than_a_fit_of_everything():
    early, _, _ = grown("dawid_skene")
    one = pd.DataFrame({"task": [0, 999], "worker": [0, 1], "label": [1, 2]})
    fit = cp.fit("dawid_skene", early, accelerate=False, tolerance=1e-8, progress=False)
    at_once = cp.fit("dawid_skene", early.joined(one), accelerate=False, tolerance=1e-8, progress=False)
    updated = fit.update(one, progress=False)
    assert len(updated.history) < len(at_once.history)
    assert updated.history.iloc[0] > at_once.history.iloc[2]


def test_few_new_annotations_of_a_crowd_that_is_sure_take_few_iterations_over_everything(monkeypatch):
    few_tasks_first(monkeypatch)
    whole, _ = cp.simulate("one_coin", n_tasks=2000, n_workers=20, n_classes=3, annotations_per_task=8, seed=0)
    frame = whole.without_gold().to_frame()
    late = np.random.default_rng(0).random(len(frame)) < 0.005
    early = cp.Annotations.from_frame(frame[~late], classes=[0, 1, 2])
    updated = cp.fit("dawid_skene", early, progress=False).update(frame[late], progress=False)
    at_once = cp.fit("dawid_skene", early.joined(frame[late]), progress=False)
    assert len(updated.history) <= 4  # two steps to see that nothing changes, and the end
    assert len(at_once.history) >= 2 * len(updated.history)
    assert updated.history.iloc[-1] == pytest.approx(at_once.history.iloc[-1], rel=2e-6)
    assert (updated.labels["label"] == at_once.labels["label"]).all()


@pytest.mark.slow
def test_draws_of_svi_and_nuts_are_made_anew():
    early, late, whole = grown("dawid_skene")
    for method, options in (("svi", {"max_iterations": 500}), ("nuts", {"chains": 2, "warmup": 150, "draws": 150})):
        fit = cp.fit("dawid_skene", early, method=method, progress=False, **options)
        updated = fit.update(late, progress=False)
        at_once = cp.fit("dawid_skene", whole, method=method, progress=False, **options)
        np.testing.assert_allclose(updated.probabilities, at_once.probabilities, atol=0.12)
        assert updated.outcome.draws["confusion"].shape == at_once.outcome.draws["confusion"].shape


def test_evidence_stays_and_gold_may_be_added():
    early, late, _ = grown("dawid_skene")
    first, later = early.tasks[0], 149
    wrong = (int(cp.fit("dawid_skene", early, progress=False).labels["label"].iloc[0]) + 1) % 3
    fit = cp.fit("dawid_skene", early, gold={first: wrong}, progress=False)
    updated = fit.update(late, gold={later: 2}, progress=False)
    assert updated.labels.loc[first, "label"] == wrong
    assert updated.labels.loc[later, "label"] == 2


def test_what_cannot_be_updated_says_so():
    early, late, _ = grown("dawid_skene")
    fit = cp.fit("dawid_skene", early, progress=False)
    with pytest.raises(cp.AnnotationError, match="9"):
        fit.update(late.assign(label=9), progress=False)
    in_batches = cp.fit("dawid_skene", early, batch_size=30, epochs=2, progress=False)
    with pytest.raises(ValueError, match="fit everything anew"):
        in_batches.update(late, progress=False)


def test_a_corrected_gold_label_takes_the_place_of_the_first_also_beside_evidence():
    early, late, _ = grown("dawid_skene")
    first, other = early.tasks[0], early.tasks[1]
    options = {"progress": False, "max_iterations": 20}
    fit = cp.fit("dawid_skene", early, gold={first: 1, other: 0}, **options)
    evidence = pd.DataFrame([[0.5, 0.3, 0.2]], index=[first], columns=[0, 1, 2])
    updated = fit.update(late, gold={first: 2}, evidence=evidence, progress=False)
    assert updated.labels.loc[first, ["label", "probability"]].tolist() == [2, 1.0]
    assert updated.labels.loc[other, ["label", "probability"]].tolist() == [0, 1.0]
    assert np.isfinite(updated.history).all()


@pytest.mark.filterwarnings("ignore:repeats='first'")
def test_an_update_with_the_same_rows_leaves_them_out_where_the_first_annotations_count(tmp_path):
    frame = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].without_gold().to_frame()
    fit = cp.fit("one_coin", cp.Annotations.from_frame(frame, repeats="first"), progress=False)
    fit.save(tmp_path / "fit")
    for known in (fit, cp.load_fit(tmp_path / "fit")):
        assert known.update(frame, progress=False).annotations.n_annotations == len(frame)


def test_gold_labels_alone_and_a_table_without_rows_are_an_update():
    early, late, _ = grown("dawid_skene")
    fit = cp.fit("dawid_skene", early, progress=False)
    first = early.tasks[0]
    wrong = (int(fit.labels.loc[first, "label"]) + 1) % 3
    for more in ({}, {"more": late.head(0)}):
        updated = fit.update(**more, gold={first: wrong}, progress=False)
        assert updated.labels.loc[first, "label"] == wrong
        assert updated.annotations.n_annotations == early.n_annotations
    same = fit.update(late.head(0), progress=False)
    np.testing.assert_allclose(same.posterior, fit.posterior, atol=1e-3)


def test_an_average_says_once_what_each_of_its_stories_would_say_of_the_new_annotations():
    early = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].without_gold()
    fits = {story: cp.fit(story, early, progress=False) for story in ("one_coin", "two_coin", "dawid_skene")}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        cp.stack(fits, dict.fromkeys(fits, 1 / 3)).update(early.to_frame().head(8), progress=False)
    said = [str(each.message) for each in told]
    assert [text for text in said if "8 annotations to be added" in text]
    assert len(said) == len(set(said))
    assert told[0].filename == __file__


@pytest.mark.slow
def test_a_fit_with_families_takes_a_new_worker_with_the_family_of_that_one():
    early = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].without_gold()
    families = {worker: worker % 2 for worker in early.workers}
    options = {"shared_error": True, "worker_families": families, "progress": False, "max_iterations": 20}
    lacking = options | {"worker_families": {worker: 0 for worker in early.workers if worker != 3}}
    with pytest.raises(cp.StoryError, match=r"does not name the worker 3; give each worker a family$"):
        cp.fit("dawid_skene", early, **lacking)
    fit = cp.fit("dawid_skene", early, **options)
    more = pd.DataFrame({"task": [0, 1], "worker": [9, 9], "label": [0, 1]})
    with pytest.raises(
        cp.StoryError, match=r"does not name the worker 9.*fit\.update\(more, worker_families=\{9: …\}\)"
    ):
        fit.update(more, progress=False)
    for new in ({9: 1}, {9: "another"}, pd.DataFrame({"worker": [9], "family": [1]})):
        updated = fit.update(more, worker_families=new, progress=False)
        assert len(updated.workers) == 5
        given = updated.model.hyperparameters["worker_families"]
        assert dict(zip(given["worker"], given["family"], strict=True)) == families | {
            9: new[9] if isinstance(new, dict) else 1
        }
        assert len(updated.parameters["pull_strength"]) == given["family"].nunique()
    with pytest.raises(ValueError, match=r"diagonal=… .*worker_families"):
        fit.update(more, diagonal=3.0, progress=False)


@pytest.mark.slow
def test_a_history_of_all_workers_is_given_anew_with_a_new_worker():
    early = cp.simulate("one_coin", n_tasks=20, n_workers=4, seed=0)[0].without_gold()
    fit = cp.fit("dawid_skene", early, history=np.zeros((4, 2, 2)), progress=False)
    more = pd.DataFrame({"task": [0, 1], "worker": [9, 9], "label": [0, 1]})
    history = np.zeros((5, 2, 2))
    history[4] = [[1000, 0], [0, 1000]]
    updated = fit.update(more, history=history, progress=False)
    assert updated.workers.loc[9, "accuracy"] > 0.99
    with pytest.raises(cp.StoryError, match="history"):
        fit.update(more, progress=False)


def test_a_stack_is_updated_fit_by_fit_with_its_weights():
    early, late, whole = grown("dawid_skene")
    fits = {name: cp.fit(name, early, progress=False) for name in ("dawid_skene", "one_coin")}
    stack = cp.stack(fits, {"dawid_skene": 1.0, "one_coin": 3.0}).update(late, progress=False)
    assert stack.weights.to_dict() == {"dawid_skene": 0.25, "one_coin": 0.75}
    each = [fits[name].update(late, progress=False).posterior for name in fits]
    np.testing.assert_allclose(stack.posterior, 0.25 * each[0] + 0.75 * each[1], atol=1e-6)
    assert stack.labels.index.tolist() == list(whole.tasks)


def test_a_file_is_read_with_the_names_that_are_given(tmp_path):
    rows = [(i, f"w{j}", "ab"[(i + j // 3) % 2]) for i in range(12) for j in range(4)]
    table = pd.DataFrame(rows, columns=["item", "student", "topic"])
    first, second = tmp_path / "batch1.csv", tmp_path / "batch2.csv"
    table.iloc[:32].to_csv(first, index=False)
    of_one_class = table.iloc[32:][table.iloc[32:]["topic"] == "a"]
    of_one_class.to_csv(second, index=False)
    naming = {"task": "item", "worker": "student", "label": "topic"}
    fit = cp.fit("one_coin", cp.read(first, **naming, tell=False), progress=False)
    by_path = fit.update(second, **naming, progress=False)
    assert by_path.annotations.n_annotations == 32 + len(of_one_class)
    assert by_path.classes == ["a", "b"]
    pd.testing.assert_frame_equal(fit.update(of_one_class, **naming, progress=False).labels, by_path.labels)
    with pytest.raises(cp.AnnotationError, match=r"label='topic'.*nothing is given"):
        fit.update(label="topic")
    with pytest.raises(cp.AnnotationError, match="made already"):
        fit.update(fit.annotations, label="topic")
