import dataclasses
import html
import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from crowdppl.data import AnnotationError, Annotations, Ids, load_dataset


@pytest.fixture
def crowd():
    """Four tasks (one without an annotation), three workers; one repeats an annotation, another changes their mind."""
    frame = pd.DataFrame(
        [("t2", "ann", "b"), ("t1", "bob", "a"), ("t2", "bob", "a"), ("t1", "ann", "a"), ("t2", "ann", "b"),
         ("t3", "cy", "a"), ("t1", "bob", "b")],
        columns=["task", "worker", "label"],
    )  # fmt: skip
    return Annotations.from_frame(frame, tasks=["t1", "t2", "t3", "t4"], gold={"t2": "b"})


def test_rows_are_sorted_by_task_in_the_order_of_the_input_within_a_task(crowd):
    assert crowd.task.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert list(crowd.workers) == ["ann", "bob", "cy"]  # by first appearance
    assert crowd.worker.tolist() == [1, 0, 1, 0, 1, 0, 2]
    assert crowd.label.tolist() == [0, 0, 1, 1, 0, 1, 0]
    assert crowd.gold.tolist() == [-1, 1, -1, -1]
    assert [crowd.task.dtype, crowd.worker.dtype, crowd.label.dtype, crowd.gold.dtype] == [np.dtype("int32")] * 4


def test_sizes_count_tasks_without_annotations_and_classes_without_use(crowd):
    assert (crowd.n_tasks, crowd.n_workers, crowd.n_classes, crowd.n_rows, crowd.n_annotations) == (4, 3, 2, 7, 7)
    assert crowd.votes().tolist() == [[2, 1], [1, 2], [1, 0], [0, 0]]
    assert Annotations.from_matrix([[0, 1]], classes=[1, 0, 7]).votes().tolist() == [[1, 1, 0]]


def test_describe_counts_repeats_and_exact_duplicates(crowd):
    facts = crowd.describe()
    assert facts["repeated annotations"] == 2
    assert facts["repeated annotations with the same label"] == 1
    assert (facts["annotations per task, min"], facts["annotations per task, max"]) == (0, 3)
    assert (facts["annotations per worker, min"], facts["annotations per worker, median"]) == (1, 3)
    assert facts["share of tasks with gold"] == 0.25
    assert facts["share of annotation 'a'"] == 4 / 7
    assert facts["Krippendorff's alpha"] == crowd.krippendorff_alpha()


def test_a_count_is_as_good_as_as_many_rows():
    rows = pd.DataFrame({"task": [0, 1, 0], "worker": ["u", "v", "v"], "label": [1, 0, 0], "n": [3, 1, 2]})
    counted = Annotations.from_frame(rows, count="n")
    listed = Annotations.from_frame(rows.loc[rows.index.repeat(rows["n"])])
    assert counted.describe().equals(listed.describe())
    assert (counted.n_rows, counted.n_annotations, counted.count.dtype) == (3, 6, np.float32)
    assert counted.to_frame().to_dict("list") == {
        "task": [0, 0, 1], "worker": ["u", "v", "v"], "label": [1, 0, 0], "count": [3, 2, 1]
    }  # fmt: skip
    assert np.array_equal(Annotations.from_frame(rows, worker=None, count="n").votes(), counted.votes())


def test_a_count_of_zero_is_no_annotation_but_its_task_and_class_exist():
    rows = pd.DataFrame({"task": [0, 1], "worker": ["u", "v"], "label": ["x", "y"], "n": [0, 2]})
    for worker in ("worker", None):
        annotations = Annotations.from_frame(rows, count="n", worker=worker)
        assert annotations.votes().tolist() == [[0, 0], [0, 2]]
        assert list(annotations.classes) == ["x", "y"]


def test_it_passes_through_jit_with_arrays_as_leaves_and_names_static(crowd):
    traces = []

    @jax.jit
    def votes(annotations):
        traces.append(annotations.tasks)
        cell = annotations.task * annotations.n_classes + annotations.label
        return annotations, jnp.zeros(annotations.n_tasks * annotations.n_classes).at[cell].add(1)

    back, flat = votes(crowd)
    assert np.array_equal(flat.reshape(4, 2), crowd.votes())
    assert (back.tasks, back.workers, back.classes, back.population) == (
        crowd.tasks,
        crowd.workers,
        crowd.classes,
        None,
    )
    assert all(np.array_equal(one, two) for one, two in zip(*map(jax.tree.leaves, (back, crowd)), strict=True))
    # Names that are equal, though listed anew, do not compile anew; other names do.
    votes(crowd.replace(tasks=Ids(list(crowd.tasks))))
    assert len(traces) == 1
    votes(crowd.replace(tasks=Ids(["t1", "t2", "t3", "t5"])))
    assert len(traces) == 2


def test_leaves_may_be_anything_since_unflattening_checks_nothing(crowd):
    leaves, shape = jax.tree.flatten(crowd)
    assert len(leaves) == 4  # task, worker, label, gold
    assert jax.tree.unflatten(shape, ["anything", object(), None, 0]).task == "anything"
    assert jax.tree.map(lambda leaf: leaf.shape, crowd).task == (7,)
    assert "Annotations" in repr(jax.eval_shape(lambda a: a, crowd))


def test_nothing_can_be_written_to(crowd):
    with pytest.raises(dataclasses.FrozenInstanceError):
        crowd.task = crowd.label
    features = np.ones((4, 2))
    frozen = crowd.with_gold({"t1": "a"})
    with pytest.raises(ValueError, match="read-only"):
        frozen.gold[0] = 1
    for array in jax.tree.leaves(crowd):
        assert not array.flags.writeable
    own = Annotations.from_matrix([[0, 1]] * 4, features=features)
    features[0] = 7
    assert own.features.max() == 1


def test_with_gold_sets_adds_and_takes_away(crowd):
    assert crowd.with_gold(pd.Series({"t4": "a", "t1": "b"})).gold.tolist() == [1, -1, -1, 0]
    assert crowd.with_gold(None).gold is None
    assert crowd.gold.tolist() == [-1, 1, -1, -1]


def test_without_gold_takes_only_the_gold_labels_away(crowd):
    bare = crowd.without_gold()
    assert bare.gold is None
    assert bare.to_frame().equals(crowd.to_frame())


def test_expanded_has_a_row_for_each_annotation_that_a_row_stands_for():
    rows = pd.DataFrame({"task": [0, 1, 0], "worker": list("uvv"), "label": [1, 0, 0], "n": [3, 0, 2], "s": [1, 2, 3]})
    counted = Annotations.from_frame(rows, count="n", seconds="s", gold={1: 0})
    expanded = counted.expanded()
    assert expanded.to_frame().to_dict("list") == {
        "task": [0] * 5, "worker": ["u"] * 3 + ["v"] * 2, "label": [1] * 3 + [0] * 2, "seconds": [1.0] * 3 + [3.0] * 2,
    }  # fmt: skip
    assert (expanded.count, expanded.n_rows, expanded.n_annotations) == (None, 5, counted.n_annotations)
    assert np.array_equal(expanded.votes(), counted.votes())
    assert np.array_equal(expanded.gold, counted.gold)
    assert expanded.task.dtype == np.int32
    assert expanded.expanded() is expanded
    unnamed = Annotations.from_counts(np.array([[2, 1]])).expanded()
    assert (unnamed.worker, unnamed.label.tolist()) == (None, [0, 0, 1])


def test_n_by_worker_counts_annotations_and_zero_for_workers_without_any(crowd):
    assert crowd.n_by_worker().tolist() == [3, 3, 1]
    rows = pd.DataFrame({"task": [0, 1], "worker": ["u", "v"], "label": [1, 0], "n": [3, 2]})
    counted = Annotations.from_frame(rows, count="n", workers=["w", "v", "u"])
    assert counted.n_by_worker().tolist() == [0, 2, 3]
    assert counted.n_by_worker().dtype == np.int64
    with pytest.raises(AnnotationError, match="which worker gave which"):
        Annotations.from_counts(np.array([[2, 1]])).n_by_worker()


def test_the_text_says_what_else_is_known(crowd):
    assert repr(crowd).endswith("with gold labels of 1 task")
    evidence = np.zeros((4, 2), np.float32)
    evidence[1, 0] = -np.inf
    informed = crowd.without_gold().replace(evidence=evidence)
    assert repr(informed).endswith("with evidence about 1 task")
    assert "by unnamed workers" in repr(Annotations.from_counts(np.array([[2, 1]])))


def test_population_is_static_and_defaults_to_none(crowd):
    assert crowd.population is None
    assert jax.tree.leaves(crowd.replace(population=9)) == jax.tree.leaves(crowd)
    assert jax.tree.structure(crowd.replace(population=9)) != jax.tree.structure(crowd)


def test_the_text_and_the_notebook_table_say_the_same_as_describe():
    annotations = load_dataset("anesthesia")
    assert repr(annotations) == (
        "Annotations: 315 annotations of 45 tasks by 5 workers\n"
        "  4 classes: 1, 2, 3, 4\n"
        "  with classes from the least to the greatest"
    )
    shown = html.unescape(" ".join(re.sub(r"<[^>]+>", " ", annotations._repr_html_()).split()))
    for expected in (
        "tasks 45",
        "repeated annotations 90",
        "repeated annotations with the same label 77",
        "Krippendorff's alpha 0.791",
        "40.3%",
    ):
        assert expected in shown


def test_names_cannot_inject_into_the_notebook_table():
    annotations = Annotations.from_matrix(np.array([["<b>", "x"]]))
    assert "<b>'" not in annotations._repr_html_()
    assert "&lt;b&gt;" in annotations._repr_html_()


def test_annotations_whose_attributes_are_replaced_by_their_own_are_themselves(crowd):
    assert crowd.replace(gold=crowd.gold, evidence=None, repeats=crowd.repeats) is crowd
    assert crowd.replace() is not crowd
    other = crowd.replace(gold=crowd.gold.copy())
    assert other is not crowd
    assert other.gold is not crowd.gold
    assert crowd.replace(gold=None).gold is None
    with pytest.raises(TypeError, match="nothing"):
        crowd.replace(nothing=None)
