"""The four discrepancies equal counts in plain loops."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from conftest import random_annotations
from hypothesis import assume, given
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.inference.checks import discrepancies
from crowdppl.inference.checks.discrepancies import DISCREPANCIES

crowds = st.builds(
    lambda seed, n_tasks, n_workers, n_classes, n_rows: random_annotations(
        np.random.default_rng(seed), n_tasks=n_tasks, n_workers=n_workers, n_classes=n_classes, n_rows=n_rows
    ),
    st.integers(0, 2**16),
    n_tasks=st.integers(2, 6),
    n_workers=st.integers(2, 5),
    n_classes=st.integers(2, 4),
    n_rows=st.integers(12, 40),
)


def annotations_of(annotations):
    """Every annotation as (task, worker, label)."""
    columns = (annotations.task, annotations.worker, annotations.label)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def measured(name, annotations):
    """Counts by unit, and sizes by unit."""
    measure = DISCREPANCIES[name].prepare(annotations)
    values = pd.Series(measure.take(np.asarray(annotations.label)), index=measure.units)
    return values.to_dict(), pd.Series(measure.size, index=measure.units).to_dict()


@given(crowds)
def test_annotations_are_counted_by_worker_and_class(annotations):
    expected = Counter((j, label) for _, j, label in annotations_of(annotations))
    of_worker = Counter(j for _, j, _ in annotations_of(annotations))
    counts, sizes = measured("annotations", annotations)
    assert counts == {(j, k): expected[j, k] for j in of_worker for k in range(annotations.n_classes)}
    assert sizes == {(j, k): of_worker[j] for j in of_worker for k in range(annotations.n_classes)}


@given(crowds)
def test_agreements_are_counted_by_pair_of_different_workers(annotations):
    rows = annotations_of(annotations)
    agreed, shared = Counter(), Counter()
    for i, (task, j, label) in enumerate(rows):
        for other_task, other, other_label in rows[i + 1 :]:
            if task == other_task and j != other:
                shared[min(j, other), max(j, other)] += 1
                agreed[min(j, other), max(j, other)] += label == other_label
    assume(shared)
    counts, sizes = measured("agreement", annotations)
    assert counts == {pair: agreed[pair] for pair in shared}
    assert sizes == dict(shared)


def without_repeats(annotations):
    """The first annotation of each worker to each task."""
    pairs = np.stack([annotations.task, annotations.worker], axis=1)
    first = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
    return annotations.replace(**{name: getattr(annotations, name)[first] for name in ("task", "worker", "label")})


@given(crowds.flatmap(lambda crowd: st.sampled_from([crowd, without_repeats(crowd)])))
def test_agreement_with_the_majority_of_the_others_is_counted_and_ties_are_shared(annotations):
    rows = annotations_of(annotations)
    credit, size = Counter(), Counter()
    for task, j, label in rows:
        others = Counter(said for i, other, said in rows if i == task and other != j)
        if others:
            winners = [k for k, n in others.items() if n == max(others.values())]
            size[j] += 1
            credit[j] += (label in winners) / len(winners)
    assume(size)
    counts, sizes = measured("majority", annotations)
    assert sizes == dict(size)
    assert counts == pytest.approx({j: credit[j] for j in size})


@pytest.mark.parametrize(
    ("name", "reason"), [("agreement", "nothing to compare"), ("majority", "no majority of others")]
)
def test_where_no_task_has_two_workers_the_reason_is_said(name, reason):
    frame = pd.DataFrame({"task": [0, 0, 1], "worker": ["a", "a", "b"], "label": [0, 1, 1]})
    with pytest.raises(AnnotationError, match=reason):
        DISCREPANCIES[name].prepare(cp.Annotations.from_frame(frame))


@given(crowds)
def test_every_task_with_two_annotations_is_counted_once_by_its_largest_share(annotations):
    votes = annotations.votes()
    votes = votes[votes.sum(1) >= 2]
    counts, sizes = measured("votes", annotations)
    assert sum(counts.values()) == len(votes)
    assert set(sizes.values()) == {len(votes)}
    assert counts["all agree"] == (votes.max(1) == votes.sum(1)).sum()


def test_steps_of_the_largest_share_are_named_by_vote_counts_where_only_one_fits():
    frame = pd.DataFrame(
        {"task": [0] * 5 + [1] * 5, "worker": [*range(5)] * 2, "label": [0, 0, 0, 1, 1, 1, 0, 1, 1, 1]}
    )
    counts, _ = measured("votes", cp.Annotations.from_frame(frame))
    assert counts == {"3 of 5": 1, "4 of 5": 1, "all agree": 0}
    mixed = pd.concat([frame, pd.DataFrame({"task": 2, "worker": range(8), "label": [0, 0, 0, 0, 0, 1, 1, 1]})])
    counts, _ = measured("votes", cp.Annotations.from_frame(mixed))
    assert counts == {"4 of 8": 0, "60–69 %": 2, "6 of 8": 0, "80–89 %": 1, "all agree": 0}


@pytest.mark.parametrize("name", ["majority", "agreement"])
def test_majorities_and_agreements_are_the_same_in_any_number_of_pieces(monkeypatch, name):
    annotations = random_annotations(np.random.default_rng(3), n_tasks=40, n_workers=9, n_classes=3, n_rows=300)
    whole = measured(name, annotations)
    monkeypatch.setattr("crowdppl.inference.checks.discrepancies.CELLS", 100)
    assert measured(name, annotations) == whole


def test_of_very_many_units_the_largest_are_taken_and_the_number_of_the_others_is_kept(monkeypatch):
    annotations = random_annotations(np.random.default_rng(1), n_tasks=30, n_workers=8, n_classes=2, n_rows=120)
    _, sizes = measured("agreement", annotations)
    monkeypatch.setattr(discrepancies, "MAX_UNITS", 5)
    measure = DISCREPANCIES["agreement"].prepare(annotations)
    assert measure.left_out == len(sizes) - 5
    assert sorted(measure.size) == sorted(sizes.values())[-5:]
    assert all(sizes[pair] == size for pair, size in zip(measure.units, measure.size, strict=True))


@pytest.mark.parametrize(("name", "of"), [("annotations", ["worker", "class"]), ("agreement", ["worker", "other"])])
def test_units_by_worker_and_question_are_named_as_those_by_worker(name, of):
    rows = [(task, worker, question, "yes") for task in range(3) for worker in "uv" for question in ("x", "y")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    data = cp.Annotations.from_frame(frame, question="question", classes=["no", "yes"]).by_question()
    units = DISCREPANCIES[name].prepare(data).units
    assert units.names == of
    assert units[0][0] == ("u", "x")


def test_rows_with_counts_are_as_many_annotations():
    frame = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1, 0, 1], "label": [0, 1, 1, 1], "count": [3, 2, 1, 4]})
    counted = cp.Annotations.from_frame(frame, count="count", repeats="keep").expanded()
    longer = frame.loc[frame.index.repeat(frame["count"])].drop(columns="count")
    plain = cp.Annotations.from_frame(longer, repeats="keep")
    assert sorted(annotations_of(counted)) == sorted(annotations_of(plain))
    assert counted.count is None


def test_annotations_that_a_discrepancy_cannot_compare_are_refused():
    alone = cp.Annotations.from_frame(pd.DataFrame({"task": [0, 1], "worker": [0, 1], "label": [0, 1]}))
    for name, text in {"votes": "two annotations", "agreement": "same task", "majority": "others"}.items():
        with pytest.raises(cp.AnnotationError, match=text):
            DISCREPANCIES[name].prepare(alone)
