"""Kinds of labels: what each says of classes, and that everything asks the kind."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations, Ids
from crowdppl.data.kinds import KINDS, NOMINAL, Kind, Nominal, Ordered, Pairwise
from crowdppl.inference.fitted.confusion_scores import scores
from crowdppl.inference.fitted.decisions import decide
from crowdppl.models.parts.starts import soft_votes

COUNTS = arrays.arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 4))
ROWS = pd.DataFrame(
    [("t1", "ann", "low"), ("t1", "bob", "mid"), ("t1", "cy", "high"), ("t1", "dan", "high"), ("t2", "ann", "low")],
    columns=["task", "worker", "label"],
)
GRADES = ["low", "mid", "high"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(counts=COUNTS)
def test_votes_of_every_kind_are_probabilities_and_equal_without_annotations(kind, counts):
    for votes in (kind.votes(counts.astype(float)), kind.majority(counts)):
        assert votes.shape == counts.shape
        assert votes.sum(-1) == pytest.approx(1)
        assert votes[counts.sum(-1) == 0] == pytest.approx(1 / counts.shape[1])
        assert not votes[(counts == 0) & (counts.sum(-1, keepdims=True) > 0)].any()


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(counts=COUNTS)
def test_the_label_of_every_kind_is_the_one_of_least_expected_distance(kind, counts):
    weights = counts + np.linspace(1, 1.01, counts.shape[1])
    posterior = weights / weights.sum(-1, keepdims=True)
    cost = posterior @ kind.distance(posterior.shape[1])
    rows = np.arange(len(posterior))
    assert cost[rows, kind.label(posterior)] == pytest.approx(cost.min(-1))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_distances_of_every_kind_are_those_of_a_metric(kind):
    distance = kind.distance(3)
    assert (distance == distance.T).all()
    assert ((distance > 0) == ~np.eye(3, dtype=bool)).all()
    assert (distance[:, None] <= distance[:, :, None] + distance[None]).all()


@given(counts=COUNTS)
def test_the_median_vote_is_that_of_the_annotations_listed(counts):
    for row, votes in zip(counts, Ordered().majority(counts), strict=True):
        listed = np.repeat(np.arange(len(row)), row)
        if listed.size:
            assert votes @ np.arange(len(row)) == pytest.approx(np.median(listed))


def test_of_ordered_classes_that_tie_the_first_is_the_label():
    assert Ordered().label(np.array([[0.5, 0.0, 0.5], [0.2, 0.2, 0.6], [0.4, 0.2, 0.4]])).tolist() == [0, 2, 1]


def test_bias_and_mean_absolute_error_of_workers_without_errors_one_step_high_and_with_abstentions():
    shares = np.full(3, 1 / 3)
    right, high = np.eye(3), np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    half_silent = np.column_stack([high / 2, np.full(3, 0.5)])
    found = Ordered().worker_scores(np.stack([right, high]), shares)
    assert found["bias"] == pytest.approx([0, 2 / 3])
    assert found["mean_absolute_error"] == pytest.approx([0, 2 / 3])
    assert Ordered().worker_scores(half_silent[None], shares)["bias"] == pytest.approx([2 / 3])
    assert np.isnan(Ordered().worker_scores(np.zeros((1, 3, 3)), shares)["bias"]).all()


def test_ordered_classes_are_those_listed_and_their_kind_goes_wherever_the_annotations_go():
    annotations = Annotations.from_frame(ROWS, ordered=GRADES)
    assert (annotations.kind, annotations.classes) == (Ordered(), Ids(GRADES))
    assert annotations.joined(ROWS.assign(task="t3")).kind == Ordered()
    assert annotations.replace(gold=None).kind == annotations.of_classes().kind == Ordered()
    assert annotations.without_workers().kind == Ordered()
    with pytest.raises(AnnotationError, match=r"ordered labels and those to be added nominal"):
        annotations.joined(Annotations.from_frame(ROWS, classes=GRADES))
    with pytest.raises(AnnotationError, match=r"classes= and ordered="):
        Annotations.from_frame(ROWS, ordered=GRADES, classes=GRADES)


@pytest.mark.parametrize("labels", [[3, 1, 2], pd.Categorical(["b", "a", "c"], ["c", "b", "a"])])
def test_numbers_and_categories_have_an_order_and_text_needs_one(labels):
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": labels})
    nominal = Annotations.from_frame(frame)
    column = cp.data.columns.encode(frame["label"], "column 'label'")
    assert Ordered().with_classes(column, None).ids == nominal.classes
    text = cp.data.columns.encode(pd.Series(["b", "a"]), "column 'label'")
    with pytest.raises(AnnotationError, match=r"column 'label'.*'b'.*ordered="):
        Ordered().with_classes(text, None)


def test_agreement_of_ordered_labels_is_krippendorffs_of_interval_data():
    # Krippendorff (2011), section D: alpha of the example's reliability data is 0.849 with the interval metric.
    rows = """1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 ."""
    cells = [line.split() for line in rows.split("\n")]
    frame = pd.DataFrame([(i, j, int(y)) for j, row in enumerate(cells) for i, y in enumerate(row) if y != "."])
    frame.columns = ["task", "worker", "label"]
    assert Annotations.from_frame(frame, ordered=range(1, 6)).krippendorff_alpha() == pytest.approx(0.849, abs=5e-4)


def test_labels_costs_and_the_majority_vote_of_ordered_classes_are_medians():
    annotations = Annotations.from_frame(ROWS, ordered=GRADES)
    fit = cp.fit("majority_vote", annotations)
    assert fit.probabilities.loc["t1"].tolist() == [0, 0.5, 0.5]
    probabilities = pd.DataFrame([[0.4, 0.25, 0.35]], columns=GRADES)
    assert decide(probabilities)["label"].tolist() == ["low"]
    ordered = decide(probabilities, kind=Ordered())
    assert (ordered["label"].tolist(), ordered["expected_cost"].tolist()) == (["mid"], [0.75])


def test_the_kind_is_saved_with_a_fit(tmp_path):
    for options in ({"ordered": GRADES}, {"classes": GRADES}):
        fit = cp.fit("majority_vote", Annotations.from_frame(ROWS, **options))
        fit.save(tmp_path / "fit", overwrite=True)
        assert cp.load_fit(tmp_path / "fit").annotations.kind == fit.annotations.kind


def test_a_pair_in_the_other_order_has_left_for_right():
    for classes in (["left", "right"], ["left", "right", "tie"]):
        column = cp.data.columns.encode(pd.Series(["right", "left", "right"]), "column 'label'")
        coded = Pairwise().with_classes(column, classes)
        assert list(coded.ids) == classes
        mirror = Pairwise().mirror(len(classes))
        assert [classes[k] for k in mirror[coded.codes]] == ["left", "right", "left"]
        assert (mirror[mirror] == np.arange(len(classes))).all()


@pytest.mark.parametrize(("labels", "classes"), [(["left", "both"], None), (["left", "right"], ["right", "left"])])
def test_comparisons_with_other_classes_are_refused(labels, classes):
    column = cp.data.columns.encode(pd.Series(labels), "column 'label'")
    with pytest.raises(AnnotationError, match=r"'tie'"):
        Pairwise().with_classes(column, classes)


FRACTIONS = pd.DataFrame({"task": [1, 2, 3, 3], "worker": [1, 1, 1, 2], "label": [1.0, 2.0, 2.5, 0.5]})


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda folder: Annotations.from_frame(FRACTIONS), r"column 'label', row 2: 2\.5"),
        (lambda folder: Annotations.from_dict({1: {"a": 1}, 2: {"a": 2.5}}), r"task 2, worker 'a': 2\.5"),
        (lambda folder: Annotations.from_matrix([[1, 0.5], [2, 1]]), r"cell \(task 0, worker 1\): 0\.5"),
        (lambda folder: in_csv(folder, abstain="none"), r"column 'label', row 3 \(line 5 of rows\.csv\): '2\.5'"),
        (lambda folder: cp.read(in_csv(folder, read=False), tell=False), r"column 'label', row 3 .*: '2\.5'"),
        (lambda folder: scanned(folder), r"row group 0, row 2, column 'label': 2\.5"),
    ],
    ids=["frame", "dict", "matrix", "csv", "read", "scan"],
)
def test_a_label_that_is_a_fraction_is_refused_with_its_place_and_advice(make, place, tmp_path):
    with pytest.raises(AnnotationError, match=rf"{place}.*round.*bin.*rank.*classes="):
        make(tmp_path)


def in_csv(folder, read=True, **options):
    path = folder / "rows.csv"
    path.write_text(f"task,worker,label\n1,a,{'none' if read else '1'}\n2,a,1\n3,a,2.0\n3,b,2.5\n")
    return Annotations.from_csv(path, **options) if read else path


def scanned(folder):
    FRACTIONS.to_parquet(folder / "rows.parquet")
    return cp.fit("dawid_skene", cp.scan(folder / "rows.parquet"), progress=False)


def test_fractions_that_are_listed_are_classes_and_whole_floats_are_numbers():
    listed = Annotations.from_frame(FRACTIONS, classes=[0.5, 1.0, 2.0, 2.5])
    assert listed.votes().sum(0).tolist() == [1, 1, 1, 1]
    assert Annotations.from_frame(FRACTIONS, ordered=[0.5, 1.0, 2.0, 2.5]).classes == listed.classes
    categories = FRACTIONS.assign(label=FRACTIONS["label"].astype("category"))
    assert Annotations.from_frame(categories).n_classes == 4
    assert Annotations.from_frame(FRACTIONS, abstain=[0.5, 2.5]).classes == Ids([1.0, 2.0])
    assert Annotations.from_frame(FRACTIONS.assign(label=[1.0, 2.0, 2.0, 1.0])).classes == Ids([1, 2])


@dataclass(frozen=True)
class Circular(Nominal):
    """Classes around a circle, such as the hours of a clock: the toy kind of CONTRIBUTING."""

    name: ClassVar[str] = "circular"

    def distance(self, n_classes):
        steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
        return np.minimum(steps, n_classes - steps).astype(float)

    def votes(self, counts):
        return NOMINAL.votes(counts + 0.25)

    def majority(self, counts):
        return NOMINAL.majority(-(counts @ self.distance(counts.shape[-1])))

    def label(self, posterior):
        return (posterior @ self.distance(posterior.shape[-1])).argmin(-1)

    def worker_scores(self, confusions, shares):
        return {"mean_distance": np.einsum("...kl,kl,k->...", confusions, self.distance(len(shares)), shares)}


def test_a_new_kind_needs_its_class_alone(monkeypatch, tmp_path):
    """CONTRIBUTING, "A new kind of label": everything that depends on it asks the class."""
    kind: Kind = Circular()
    monkeypatch.setitem(KINDS, kind.name, kind)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"task": np.repeat(np.arange(20), 3), "worker": np.tile(["a", "b", "c"], 20)})
    frame["label"] = (frame["task"] + rng.integers(0, 2, 60)) % 4
    nominal = Annotations.from_frame(frame, gold={0: 0, 1: 1})
    annotations = nominal.replace(kind=kind)
    assert annotations.krippendorff_alpha() != nominal.krippendorff_alpha()
    assert annotations.describe()["Krippendorff's alpha"] == annotations.krippendorff_alpha()
    assert np.asarray(soft_votes(annotations)).min() > 0 == np.asarray(soft_votes(nominal)).min()
    fit = cp.fit("one_coin", annotations, progress=False)
    assert fit.labels["label"].tolist() == kind.label(fit.probabilities.to_numpy()).tolist()
    costs = fit.probabilities.to_numpy() @ kind.distance(4)
    assert fit.decide()["expected_cost"].to_numpy() == pytest.approx(costs.min(-1), abs=1e-6)
    assert "mean_distance" in fit.workers
    assert "mean_distance" in scores(np.eye(4)[None], np.full(4, 0.25), kind)
    rule = cp.fit("majority_vote", annotations)
    assert rule.probabilities.to_numpy() == pytest.approx(kind.majority(annotations.votes()))
    rule.save(tmp_path / "rule")
    assert cp.load_fit(tmp_path / "rule").annotations.kind == kind
    monkeypatch.delitem(KINDS, kind.name)
    with pytest.raises(cp.StorageError, match=r"kind='circular'.*nominal"):
        cp.load_fit(tmp_path / "rule")
